// The warp and queue part of the driving sample, compiled by ingot and written by hand in C++, on
// the same frames in strict alternation, on one thread.
//
// usage: bench_frames ARTIFACT RAW_KEY CAMERA FRAMES
//
// Prints one line of JSON: medians in milliseconds of the hand-written frame (one loop over pixels;
// positions of a row first) and of ours with its binding, and in microseconds of the parts. Exit 1
// if an output of any frame differs in a byte.
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "loader/ingot_loader.h"
#include "tests/models/plain_frame.h"

namespace {

constexpr std::size_t kRing = 4;
constexpr std::size_t kWarmUp = 128;  // above the length of every queue
constexpr std::array<const char*, 6> kInputs = {"frame",   "big_frame", "tfm",
                                                "big_tfm", "desire",    "hidden_state"};
constexpr std::array<const char*, 4> kOutputs = {"img", "big_img", "features", "desires"};

using Bytes = std::vector<std::uint8_t>;

Bytes read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::uint64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1000000000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

[[noreturn]] void fail(const char* what, const ingot_error* error = nullptr) {
  char line[512] = "";
  if (error != nullptr) ingot_error_format(error, line, sizeof line);
  std::fprintf(stderr, "bench_frames: %s %s\n", what, line);
  std::exit(2);
}

struct FreeMemory {
  void operator()(std::uint8_t* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::uint8_t[], FreeMemory>;

Memory allocate(std::uint64_t nbytes) {
  constexpr std::size_t kAlignment = 4096;
  return Memory(static_cast<std::uint8_t*>(
      std::aligned_alloc(kAlignment, (nbytes + kAlignment) / kAlignment * kAlignment)));
}

struct Slot {
  ingot_io_info io{};
  std::vector<Memory> memory;  // kRing for inputs, one for outputs
};

Slot slot_of(const ingot_artifact* artifact, const char* name, std::uint32_t direction) {
  Slot slot;
  if (ingot_io_describe(artifact, ingot_find_io(artifact, name), &slot.io) != 0 ||
      slot.io.direction != direction) {
    fail(name);
  }
  const std::size_t count = direction == INGOT_SLOT_INPUT ? kRing : 1;
  for (std::size_t n = 0; n < count; ++n) slot.memory.push_back(allocate(slot.io.nbytes));
  return slot;
}

// Seeded bytes, or small numbers.
void fill(const Slot& slot, std::uint32_t seed) {
  for (std::size_t n = 0; n < kRing; ++n) {
    std::uint8_t* to = slot.memory[n].get();
    std::uint32_t x = (seed * 16 + static_cast<std::uint32_t>(n)) * 2654435761U + 1;
    for (std::uint64_t i = 0; i < slot.io.nbytes; ++i) {
      x = x * 1664525U + 1013904223U;
      to[i] = static_cast<std::uint8_t>(x >> 24U);
    }
    if (slot.io.dtype != INGOT_ELEMENT_F32) continue;
    for (std::uint64_t i = 0; i < slot.io.nbytes / 4; ++i) {
      const float value = static_cast<float>(to[4 * i]) / 256;
      std::memcpy(to + 4 * i, &value, 4);
    }
  }
}

// The published matrix of the camera at zero calibration, turned a little and moving.
void fill_matrix(const Slot& slot, float scale, float left, float top) {
  for (std::size_t n = 0; n < kRing; ++n) {
    const float shift = 3 * static_cast<float>(n);
    const float m[9] = {
        scale, 0.02F * scale, left + shift, -0.02F * scale, scale, top + shift, 1e-5F, 2e-5F, 1};
    std::memcpy(slot.memory[n].get(), m, sizeof m);
  }
}

const float* floats(const Slot& slot, std::size_t n) {
  return reinterpret_cast<const float*>(slot.memory[n].get());
}

class Compiled {
 public:
  Compiled(const ingot_artifact* artifact, const ingot_layout& layout,
           const std::vector<Slot>& inputs, const std::vector<Slot>& outputs)
      : layout_(layout), inputs_(inputs) {
    ingot_error error;
    if (ingot_instance_create(artifact, nullptr, &instance_, &error) != 0) fail("create", &error);
    for (const Slot& slot : outputs) {
      ingot_binding binding;
      ingot_binding_expected(artifact, slot.io.index, &binding);
      binding.data = slot.memory[0].get();
      if (ingot_bind(instance_, &binding, 1, &error) != 0) fail("bind", &error);
    }
    for (const Slot& slot : inputs) {
      bindings_.emplace_back();
      ingot_binding_expected(artifact, slot.io.index, &bindings_.back());
      if (slot.io.camera != INGOT_NONE) bindings_.back().layout = &layout_;
    }
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() { ingot_instance_destroy(instance_); }

  void run(std::size_t n) {
    for (std::size_t i = 0; i < bindings_.size(); ++i) {
      bindings_[i].data = inputs_[i].memory[n % kRing].get();
    }
    ingot_error error;
    ingot_frame frame;
    if (ingot_bind(instance_, bindings_.data(), static_cast<std::uint32_t>(bindings_.size()),
                   &error) != 0) {
      fail("bind", &error);
    }
    ingot_run(instance_, &frame);
    if (frame.valid != 1) fail(ingot_status_text(frame.status));
  }
  ingot_instance* get() const { return instance_; }

 private:
  ingot_layout layout_;
  const std::vector<Slot>& inputs_;
  std::vector<ingot_binding> bindings_;
  ingot_instance* instance_ = nullptr;
};

double median(std::vector<std::uint64_t> times) {
  if (times.empty()) return 0;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return static_cast<double>(*middle);
}

struct Part {
  std::string name;
  std::vector<std::uint64_t> ns;
};

class Watch {
 public:
  void part(std::vector<Part>& parts, std::size_t index, const char* name) {
    const std::uint64_t now = now_ns();
    if (index == parts.size()) parts.push_back({name, {}});
    parts[index].ns.push_back(now - last_);
    last_ = now_ns();
  }

 private:
  std::uint64_t last_ = now_ns();
};

void print_parts(const char* key, const std::vector<Part>& parts) {
  std::printf(", \"%s\": [", key);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::printf("%s[\"%s\", %.2f]", i > 0 ? ", " : "", parts[i].name.c_str(),
                median(parts[i].ns) * 1e-3);
  }
  std::printf("]");
}

class Bench {
 public:
  Bench(const ingot_artifact* artifact, const ingot_layout& layout) : artifact_(artifact) {
    for (const char* name : kInputs) {
      inputs_.push_back(slot_of(artifact, name, INGOT_SLOT_INPUT));
    }
    for (const char* name : kOutputs) {
      outputs_.push_back(slot_of(artifact, name, INGOT_SLOT_OUTPUT));
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      fill(inputs_[i], static_cast<std::uint32_t>(i));
    }
    const bool large = layout.width > 1500;
    fill_matrix(inputs_[2], large ? 2.90989F : 1.25440F, large ? 219.068F : 350.875F,
                large ? 465.489F : 320.291F);
    fill_matrix(inputs_[3], large ? 1.24615F : 0.934615F, large ? 644.985F : 432.738F,
                large ? 414.834F : 238.125F);
    features_ = inputs_[5].io.nbytes / sizeof(float);
    const std::size_t sizes[] = {2 * plain::kPicture, 2 * plain::kPicture,
                                 plain::kRows * features_ * 4, plain::kRows * plain::kDesire * 4};
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i].io.nbytes != sizes[i]) fail("another size of an output");
      by_hand_.push_back(allocate(sizes[i]));
    }
    camera_ = {static_cast<int>(layout.width), static_cast<int>(layout.height), layout.stride,
               static_cast<std::size_t>(layout.uv_offset)};
    layout_ = layout;
  }

  int run(std::size_t frames);

 private:
  plain::Inputs inputs(std::size_t n) const {
    n %= kRing;
    return {inputs_[0].memory[n].get(), inputs_[1].memory[n].get(), floats(inputs_[2], n),
            floats(inputs_[3], n),      floats(inputs_[4], n),      floats(inputs_[5], n)};
  }
  plain::Outputs outputs() const {
    return {by_hand_[0].get(), by_hand_[1].get(), reinterpret_cast<float*>(by_hand_[2].get()),
            reinterpret_cast<float*>(by_hand_[3].get())};
  }
  void compare(std::size_t n, const char* what) const {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const std::uint8_t* ours = outputs_[i].memory[0].get();
      const std::uint8_t* theirs = by_hand_[i].get();
      const auto nbytes = static_cast<std::size_t>(outputs_[i].io.nbytes);
      if (std::memcmp(ours, theirs, nbytes) == 0) continue;
      const auto at =
          static_cast<std::size_t>(std::mismatch(ours, ours + nbytes, theirs).first - ours);
      std::fprintf(stderr, "frame %zu: byte %zu of %s is %d, by hand (%s) %d\n", n, at, kOutputs[i],
                   ours[at], what, theirs[at]);
      std::exit(1);
    }
  }
  std::vector<std::string> parts_of_calls() const;
  void print_ours(std::size_t frames);
  void print_by_hand(std::size_t frames, plain::Loops loops, const char* key);

  const ingot_artifact* artifact_;
  ingot_layout layout_{};
  plain::Camera camera_{};
  std::size_t features_ = 0;
  std::vector<Slot> inputs_, outputs_;
  std::vector<Memory> by_hand_;
};

int Bench::run(std::size_t frames) {
  plain::Frame pixel(camera_, features_, plain::Loops::Pixel);
  plain::Frame row(camera_, features_, plain::Loops::Row);
  Compiled compiled(artifact_, layout_, inputs_, outputs_);
  std::vector<std::uint64_t> pixel_ns, row_ns, ours_ns;
  for (std::size_t n = 0; n < kWarmUp + frames; ++n) {
    const plain::Inputs in = inputs(n);
    const auto timed = [&](std::vector<std::uint64_t>& times, auto&& run) {
      const std::uint64_t start = now_ns();
      run();
      if (n >= kWarmUp) times.push_back(now_ns() - start);
    };
    const auto ours = [&] { timed(ours_ns, [&] { compiled.run(n); }); };
    // The first of the two finds the frame in no cache.
    if (n % 2 == 0) ours();
    timed(pixel_ns, [&] { pixel.run(in, outputs()); });
    if (n % 2 == 1) ours();
    compare(n, "by pixel");
    timed(row_ns, [&] { row.run(in, outputs()); });
    compare(n, "by row");
  }
  std::printf("{\"compiler\": \"%s\", \"frames\": %zu, \"features\": %zu", __VERSION__, frames,
              features_);
  std::printf(", \"pixel_ms\": %.5f, \"row_ms\": %.5f, \"ingot_ms\": %.5f", median(pixel_ns) * 1e-6,
              median(row_ns) * 1e-6, median(ours_ns) * 1e-6);
  print_by_hand(frames / 4 + 1, plain::Loops::Pixel, "pixel_us");
  print_by_hand(frames / 4 + 1, plain::Loops::Row, "row_us");
  print_ours(frames / 4 + 1);
  std::printf("}\n");
  return 0;
}

void Bench::print_by_hand(std::size_t frames, plain::Loops loops, const char* key) {
  plain::Frame frame(camera_, features_, loops);
  std::vector<Part> parts;
  for (std::size_t n = 0; n < frames; ++n) {
    const plain::Inputs in = inputs(n);
    const plain::Outputs out = outputs();
    Watch watch;
    std::uint8_t* img = frame.images().shift();
    watch.part(parts, 0, "history of frame");
    plain::road_warp(camera_, in.frame, in.tfm, img, loops);
    watch.part(parts, 1, "warp frame");
    frame.sample(frame.images(), out.img);
    watch.part(parts, 0, "history of frame");
    std::uint8_t* big = frame.big_images().shift();
    watch.part(parts, 2, "history of big_frame");
    plain::road_warp(camera_, in.big_frame, in.big_tfm, big, loops);
    watch.part(parts, 3, "warp big_frame");
    frame.sample(frame.big_images(), out.big_img);
    watch.part(parts, 2, "history of big_frame");
    frame.push_features(in.feature, out.features);
    watch.part(parts, 4, "features");
    frame.push_desire(in.desire, out.desires);
    watch.part(parts, 5, "desires");
  }
  // The histories are in two places.
  for (const std::size_t part : {0, 2}) {
    std::vector<std::uint64_t>& ns = parts[part].ns;
    for (std::size_t n = 0; n < frames; ++n) ns[n] = ns[2 * n] + ns[2 * n + 1];
    ns.resize(frames);
  }
  print_parts(key, parts);
}

// Which part of the frame each call belongs to, by what it reads and writes: buffers of the frames,
// matrices and vectors, of the queues' states, or what was computed from them.
std::vector<std::string> Bench::parts_of_calls() const {
  // Each input and state, and whose it is; those of `kSubjects` that a value depends on are bits.
  constexpr std::array<const char*, 4> kSubjects = {"frame", "big_frame", "features", "desires"};
  const auto subject_of = [](const std::string& slot) -> unsigned {
    const std::string stage = slot.substr(0, slot.find('.'));  // img.queue, img.place
    if (stage == "frame" || stage == "tfm" || stage == "img") return 1;
    if (stage == "big_frame" || stage == "big_tfm" || stage == "big_img") return 2;
    if (stage == "hidden_state" || stage == "features") return 4;
    return 8;
  };
  ingot_artifact_info info;
  ingot_artifact_describe(artifact_, &info);
  std::vector<unsigned> depends(info.buffer_count, 0);
  std::vector<bool> is_input(info.buffer_count, false);
  for (std::uint32_t i = 0; i < info.buffer_count; ++i) {
    ingot_buffer_info buffer;
    ingot_io_info io;
    ingot_buffer_describe(artifact_, i, &buffer);
    const bool input = buffer.kind == INGOT_STORE_INPUT;
    if (!input && buffer.kind != INGOT_STORE_STATE) continue;
    ingot_io_describe(artifact_, buffer.io, &io);
    depends[i] = subject_of(io.name);
    is_input[i] = input;
  }
  std::vector<std::string> parts;
  for (std::uint32_t call = 0; call < info.call_count; ++call) {
    unsigned of = 0;
    bool reads_input = false;
    ingot_argument_info argument;
    for (std::uint32_t a = 0; ingot_argument_describe(artifact_, call, a, &argument) == 0; ++a) {
      if (argument.buffer == INGOT_NONE) continue;
      of |= depends[argument.buffer];
      reads_input = reads_input || is_input[argument.buffer];
    }
    for (std::uint32_t a = 0; ingot_argument_describe(artifact_, call, a, &argument) == 0; ++a) {
      if (argument.buffer != INGOT_NONE && argument.access != 1) depends[argument.buffer] |= of;
    }
    std::string name = of == 0 ? "what depends on no input" : "";
    for (std::size_t i = 0; i < kSubjects.size(); ++i) {
      if ((of >> i & 1U) == 0) continue;
      const char* what = i >= 2 ? "" : reads_input ? "warp " : "history of ";
      name += (name.empty() ? "" : ", ") + std::string(what) + kSubjects[i];
    }
    parts.push_back(name);
  }
  return parts;
}

// The parts of our frame, and what is outside of calls: binding, checks of the matrices, copies.
// Then the single calls, in their order.
void Bench::print_ours(std::size_t frames) {
  const std::vector<std::string> names = parts_of_calls();
  struct Times {
    std::vector<std::uint64_t> of_call;
  } times{std::vector<std::uint64_t>(names.size())};
  std::vector<Part> calls, parts;
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    ingot_call_info call;
    ingot_call_describe(artifact_, i, &call);
    const bool program = call.program_name != nullptr;
    calls.push_back({(program ? call.program_name : "copy") + (": " + names[i]), {}});
    if (std::none_of(parts.begin(), parts.end(),
                     [&](const Part& part) { return part.name == names[i]; })) {
      parts.push_back({names[i], {}});
    }
  }
  parts.push_back({"outside of calls", {}});
  Compiled compiled(artifact_, layout_, inputs_, outputs_);
  ingot_set_call_hook(
      compiled.get(),
      [](void* user, std::uint32_t call, std::uint64_t ns) {
        static_cast<Times*>(user)->of_call[call] = ns;
      },
      &times);
  for (std::size_t n = 0; n < frames; ++n) {
    const std::uint64_t start = now_ns();
    compiled.run(n);
    std::uint64_t rest = now_ns() - start;
    for (Part& part : parts) part.ns.push_back(0);
    for (std::size_t i = 0; i < names.size(); ++i) {
      calls[i].ns.push_back(times.of_call[i]);
      rest -= times.of_call[i];
      for (Part& part : parts) {
        if (part.name == names[i]) part.ns.back() += times.of_call[i];
      }
    }
    parts.back().ns.back() = rest;
  }
  print_parts("ingot_us", parts);
  print_parts("calls_us", calls);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return std::puts("usage: bench_frames ARTIFACT RAW_KEY CAMERA FRAMES"), 2;
  const Bytes file = read(argv[1]);
  const Bytes raw = read(argv[2]);
  ingot_key key{};
  if (raw.size() != sizeof key.public_key) fail("not a key of 32 bytes");
  std::memcpy(key.public_key, raw.data(), raw.size());
  ingot_policy policy{};
  policy.keys = &key;
  policy.key_count = 1;
  policy.camera = argv[3];
  ingot_artifact* artifact = nullptr;
  ingot_error error;
  if (ingot_open_memory(file.data(), file.size(), &policy, nullptr, &artifact, &error) != 0 ||
      ingot_self_test(artifact, nullptr, 0, nullptr, &error) != 0) {
    fail("open", &error);
  }
  ingot_io_info frame;
  ingot_camera_info camera;
  if (ingot_io_describe(artifact, ingot_find_io(artifact, "frame"), &frame) != 0 ||
      ingot_camera_describe(artifact, frame.camera, &camera) != 0) {
    fail("no camera frame");
  }
  const auto frames = static_cast<std::size_t>(std::strtoull(argv[4], nullptr, 10));
  const int code = frames > 0 ? Bench(artifact, camera.layout).run(frames) : 2;
  ingot_close(artifact);
  return code;
}
