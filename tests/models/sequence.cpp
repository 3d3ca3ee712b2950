// Runs frames with inputs from a file and writes all outputs to another: for histories of any
// length, and small enough for an emulated processor.
//
// usage: sequence ARTIFACT RAW_KEY CAMERA INPUTS OUTPUTS FRAMES RESET NAME... -- NAME...
//
// CAMERA is "" for any. INPUTS holds for each frame the bytes of the named inputs, one after the
// other; OUTPUTS gets for each frame one byte, 1 if it was accepted, and then the named outputs.
// Before frame RESET the states are set back.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "loader/ingot_loader.h"

namespace {

std::vector<char> read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

[[noreturn]] void fail(const std::string& what, const ingot_error* error = nullptr) {
  char line[512] = "";
  if (error != nullptr) ingot_error_format(error, line, sizeof line);
  std::fprintf(stderr, "sequence: %s %s\n", what.c_str(), line);
  std::exit(2);
}

struct Slot {
  char* memory;
  std::size_t nbytes;
};

class Sequence {
 public:
  Sequence(const ingot_artifact* artifact, const std::vector<std::string>& inputs,
           const std::vector<std::string>& outputs) {
    ingot_error error;
    if (ingot_instance_create(artifact, nullptr, &instance_, &error) != 0) fail("create", &error);
    for (const std::string& name : inputs) {
      inputs_.push_back(bind(artifact, name, INGOT_SLOT_INPUT));
    }
    for (const std::string& name : outputs) {
      outputs_.push_back(bind(artifact, name, INGOT_SLOT_OUTPUT));
    }
  }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;
  ~Sequence() {
    ingot_instance_destroy(instance_);
    for (const Slot& slot : inputs_) std::free(slot.memory);
    for (const Slot& slot : outputs_) std::free(slot.memory);
  }

  void reset() {
    if (ingot_reset(instance_) != 0) fail("reset");
  }
  void run(std::ifstream& in, std::ofstream& out) {
    for (const Slot& slot : inputs_) {
      if (!in.read(slot.memory, static_cast<std::streamsize>(slot.nbytes))) fail("no more inputs");
    }
    ingot_frame frame;
    const ingot_status status = ingot_run(instance_, &frame);
    if (status != 0 && status != INGOT_STATUS_OUTPUT_NONFINITE) fail(ingot_status_text(status));
    out.put(static_cast<char>(frame.accepted));
    for (const Slot& slot : outputs_) {
      out.write(slot.memory, static_cast<std::streamsize>(slot.nbytes));
    }
  }

 private:
  Slot bind(const ingot_artifact* artifact, const std::string& name, std::uint32_t direction) {
    ingot_io_info io;
    ingot_binding binding;
    ingot_error error;
    if (ingot_io_describe(artifact, ingot_find_io(artifact, name.c_str()), &io) != 0 ||
        io.direction != direction) {
      fail("no such slot: " + name);
    }
    constexpr std::size_t kAlignment = 4096;
    const auto nbytes = static_cast<std::size_t>(io.nbytes);
    auto* memory = static_cast<char*>(
        std::aligned_alloc(kAlignment, (nbytes + kAlignment) / kAlignment * kAlignment));
    if (memory == nullptr) fail("out of memory");
    ingot_camera_info camera;
    ingot_binding_expected(artifact, io.index, &binding);
    binding.data = memory;
    if (io.camera != INGOT_NONE) {
      ingot_camera_describe(artifact, io.camera, &camera);
      binding.layout = &camera.layout;
    }
    if (ingot_bind(instance_, &binding, 1, &error) != 0) fail("bind " + name, &error);
    return {memory, nbytes};
  }

  ingot_instance* instance_ = nullptr;
  std::vector<Slot> inputs_, outputs_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 9) fail("usage: sequence ARTIFACT RAW_KEY CAMERA INPUTS OUTPUTS FRAMES RESET NAME...");
  const std::vector<char> file = read(argv[1]);
  const std::vector<char> raw = read(argv[2]);
  ingot_key key{};
  if (raw.size() != sizeof key.public_key) fail("not a key of 32 bytes");
  std::memcpy(key.public_key, raw.data(), raw.size());
  ingot_policy policy{};
  policy.keys = &key;
  policy.key_count = 1;
  policy.camera = argv[3][0] != 0 ? argv[3] : nullptr;
  policy.run_without_self_test = 1;
  ingot_artifact* artifact = nullptr;
  ingot_error error;
  if (ingot_open_memory(file.data(), file.size(), &policy, nullptr, &artifact, &error) != 0) {
    fail("open", &error);
  }
  std::vector<std::string> names[2];
  std::size_t side = 0;
  for (int i = 8; i < argc; ++i) {
    if (std::strcmp(argv[i], "--") == 0) {
      side = 1;
    } else {
      names[side].emplace_back(argv[i]);
    }
  }
  const unsigned long long frames = std::strtoull(argv[6], nullptr, 10);
  const unsigned long long reset = std::strtoull(argv[7], nullptr, 10);
  {
    Sequence sequence(artifact, names[0], names[1]);
    std::ifstream in(argv[4], std::ios::binary);
    std::ofstream out(argv[5], std::ios::binary);
    for (unsigned long long n = 0; n < frames; ++n) {
      if (n == reset && n > 0) sequence.reset();
      sequence.run(in, out);
    }
    out.close();
    if (!out) fail("cannot write the outputs");
  }
  ingot_close(artifact);
  return 0;
}
