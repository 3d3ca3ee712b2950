// Many frames on end: nothing is allocated, no page is touched for the first time, and every output
// is that of a fresh instance.
//
// usage: soak ARTIFACT RAW_KEY FRAMES RATE [CAMERA]     RATE 0: back to back
//
// A ring of four buffers goes round through the binding cache. After the warm-up the inputs have
// filled all histories, so that outputs repeat with the ring; a fresh instance says what they are.
// Exit 0 if nothing was allocated, nothing faulted, and all outputs agreed.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
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

extern "C" unsigned long counted_allocations();  // count_allocations.c

namespace {

constexpr std::size_t kRing = 4;
constexpr std::size_t kWarmUp = 256;  // above the length of every queue of the sample

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

void sleep_until(std::uint64_t ns) {
  timespec time;
  time.tv_sec = static_cast<time_t>(ns / 1000000000U);
  time.tv_nsec = static_cast<long>(ns % 1000000000U);
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
}

struct FreeMemory {
  void operator()(std::uint8_t* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::uint8_t[], FreeMemory>;

// Seeded bytes; numbers of small magnitude; matrices of a mild perspective.
void fill(const ingot_io_info& io, std::uint8_t* to, std::uint32_t seed) {
  const float matrix[9] = {2.5f, 0.1f, 200, -0.05f, 2.4f, 300, 0.0001f, 0.0002f, 1};
  std::uint32_t x = seed * 2654435761U + 1;
  for (std::uint64_t i = 0; i < io.nbytes; ++i) {
    x = x * 1664525U + 1013904223U;
    to[i] = static_cast<std::uint8_t>(x >> 24);
  }
  if (io.dtype != INGOT_ELEMENT_F32) return;
  for (std::uint64_t i = 0; i < io.nbytes / 4; ++i) {
    const float value =
        io.nbytes == sizeof matrix ? matrix[i] : static_cast<float>(to[4 * i]) / 256;
    std::memcpy(to + 4 * i, &value, 4);
  }
}

struct Slot {
  ingot_io_info io{};
  ingot_camera_info camera{};
  std::vector<Memory> memory;  // kRing for inputs, one for outputs
};

// One instance with memory of its own for the outputs; inputs are shared.
class Host {
 public:
  Host(const ingot_artifact* artifact, std::vector<Slot>& inputs) : inputs_(inputs) {
    ingot_error error;
    if (ingot_instance_create(artifact, nullptr, &instance_, &error) != 0) std::abort();
    ingot_artifact_info info;
    ingot_artifact_describe(artifact, &info);
    for (std::uint32_t i = 0; i < info.io_count; ++i) {
      ingot_io_info io;
      ingot_io_describe(artifact, i, &io);
      if (io.direction != INGOT_SLOT_OUTPUT) continue;
      const std::size_t alignment = std::max<std::size_t>(64, io.alignment);
      const std::size_t nbytes = (io.nbytes + alignment) / alignment * alignment;
      outputs_.emplace_back(static_cast<std::uint8_t*>(std::aligned_alloc(alignment, nbytes)));
      sizes_.push_back(io.nbytes);
      ingot_binding binding;
      ingot_binding_expected(artifact, i, &binding);
      binding.data = outputs_.back().get();
      if (ingot_bind(instance_, &binding, 1, &error) != 0) std::abort();
    }
    for (const Slot& slot : inputs_) {
      ingot_binding binding;
      ingot_binding_expected(artifact, slot.io.index, &binding);
      if (slot.io.camera != INGOT_NONE) binding.layout = &slot.camera.layout;
      bindings_.push_back(binding);
    }
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host() { ingot_instance_destroy(instance_); }

  // Binds frame `n` of the ring and runs it; false if it is not valid.
  bool run(std::uint64_t n) {
    for (std::size_t i = 0; i < bindings_.size(); ++i) {
      bindings_[i].data = inputs_[i].memory[n % kRing].get();
      bindings_[i].has_sequence = 1;
      bindings_[i].sequence = n + 1;
    }
    ingot_frame frame;
    if (ingot_bind(instance_, bindings_.data(), static_cast<std::uint32_t>(bindings_.size()),
                   nullptr) != 0) {
      return false;
    }
    ingot_run(instance_, &frame);
    return frame.valid == 1 && frame.flags == 0;
  }

  bool same_outputs(const std::vector<Bytes>& expected) const {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (std::memcmp(outputs_[i].get(), expected[i].data(), sizes_[i]) != 0) return false;
    }
    return true;
  }
  std::vector<Bytes> outputs() const {
    std::vector<Bytes> all;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      all.emplace_back(outputs_[i].get(), outputs_[i].get() + sizes_[i]);
    }
    return all;
  }
  ingot_instance* get() const { return instance_; }

 private:
  ingot_instance* instance_ = nullptr;
  std::vector<Slot>& inputs_;
  std::vector<ingot_binding> bindings_;
  std::vector<Memory> outputs_;
  std::vector<std::uint64_t> sizes_;
};

struct Counters {
  unsigned long allocations;
  long minor_faults, major_faults;

  static Counters now() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return {counted_allocations(), usage.ru_minflt, usage.ru_majflt};
  }
};

std::vector<Slot> make_inputs(const ingot_artifact* artifact) {
  ingot_artifact_info info;
  ingot_artifact_describe(artifact, &info);
  std::vector<Slot> inputs;
  for (std::uint32_t i = 0; i < info.io_count; ++i) {
    Slot slot;
    ingot_io_describe(artifact, i, &slot.io);
    if (slot.io.direction != INGOT_SLOT_INPUT) continue;
    if (slot.io.camera != INGOT_NONE) {
      ingot_camera_describe(artifact, slot.io.camera, &slot.camera);
    }
    const std::size_t alignment = std::max<std::size_t>(64, slot.io.alignment);
    const std::size_t nbytes = (slot.io.nbytes + alignment) / alignment * alignment;
    for (std::uint32_t n = 0; n < kRing; ++n) {
      slot.memory.emplace_back(static_cast<std::uint8_t*>(std::aligned_alloc(alignment, nbytes)));
      fill(slot.io, slot.memory.back().get(), i * 16 + n);
    }
    inputs.push_back(std::move(slot));
  }
  return inputs;
}

int soak(const ingot_artifact* artifact, std::size_t frames, double rate) {
  std::vector<Slot> inputs = make_inputs(artifact);
  // What a fresh instance gives once all histories are full.
  std::vector<Bytes> expected[kRing];
  {
    Host fresh(artifact, inputs);
    for (std::uint64_t n = 0; n < kWarmUp + kRing; ++n) {
      if (!fresh.run(n)) return std::puts("a frame of the fresh instance is not valid"), 1;
      if (n >= kWarmUp && !fresh.same_outputs(expected[n % kRing])) {
        return std::puts("outputs do not repeat with the inputs"), 1;
      }
      expected[n % kRing] = fresh.outputs();
    }
  }
  if (expected[0] == expected[1]) return std::puts("the inputs do not matter"), 1;
  std::vector<std::uint64_t> times(frames, 1);  // written now, not in the loop
  Host host(artifact, inputs);
  for (std::uint64_t n = 0; n < kWarmUp; ++n) {
    if (!host.run(n)) return std::puts("a frame of the warm-up is not valid"), 1;
  }
  std::size_t invalid = 0, different = 0, missed = 0;
  const auto period = rate > 0 ? static_cast<std::uint64_t>(1e9 / rate) : 0;
  std::uint64_t due = now_ns();
  const Counters before = Counters::now();
  for (std::size_t i = 0; i < frames; ++i) {
    if (period != 0) sleep_until(due);
    const std::uint64_t n = kWarmUp + i;
    const std::uint64_t begin = now_ns();
    if (!host.run(n)) ++invalid;
    const std::uint64_t end = now_ns();
    times[i] = end - begin;
    if (!host.same_outputs(expected[n % kRing])) ++different;
    if (period != 0 && end - due > period) ++missed;
    due += period;
    if (end > due) due = end;  // a late frame does not make the next one late
  }
  const Counters after = Counters::now();
  ingot_bind_info known;
  ingot_bind_describe(host.get(), &known);

  // And from the beginning once more, beside a new instance.
  std::size_t unlike_fresh = 0;
  ingot_reset(host.get());
  Host fresh(artifact, inputs);
  for (std::uint64_t n = 0; n < 3 * kRing; ++n) {
    if (!host.run(n) || !fresh.run(n) || !host.same_outputs(fresh.outputs())) ++unlike_fresh;
  }

  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return static_cast<double>(
               times[static_cast<std::size_t>(share * static_cast<double>(frames - 1) + 0.5)]) *
           1e-6;
  };
  if (period != 0) {
    std::printf("%zu frames at %g Hz, %zu missed deadlines\n", frames, rate, missed);
  } else {
    std::printf("%zu frames back to back\n", frames);
  }
  std::printf("  ms: p50 %.3f, p99 %.3f, p99.9 %.3f, max %.3f\n", at(0.5), at(0.99), at(0.999),
              at(1));
  std::printf("  allocations %lu, minor faults %ld, major faults %ld\n",
              after.allocations - before.allocations, after.minor_faults - before.minor_faults,
              after.major_faults - before.major_faults);
  std::printf("  bindings: %llu hits, %llu misses\n", static_cast<unsigned long long>(known.hits),
              static_cast<unsigned long long>(known.misses));
  std::printf("  not valid %zu, other outputs than a fresh instance %zu, after a reset %zu\n",
              invalid, different, unlike_fresh);
  const bool good = after.allocations == before.allocations &&
                    after.minor_faults == before.minor_faults &&
                    after.major_faults == before.major_faults && invalid == 0 && different == 0 &&
                    unlike_fresh == 0;
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return std::puts("usage: soak ARTIFACT RAW_KEY FRAMES RATE [CAMERA]"), 2;
  const Bytes file = read(argv[1]);
  const Bytes raw = read(argv[2]);
  ingot_key key{};
  if (raw.size() != sizeof key.public_key) return 2;
  std::memcpy(key.public_key, raw.data(), raw.size());
  ingot_policy policy{};
  policy.keys = &key;
  policy.key_count = 1;
  policy.camera = argc > 5 ? argv[5] : nullptr;
  ingot_artifact* artifact = nullptr;
  ingot_error error;
  if (ingot_open_memory(file.data(), file.size(), &policy, nullptr, &artifact, &error) != 0 ||
      ingot_self_test(artifact, nullptr, 0, nullptr, &error) != 0) {
    char line[512];
    ingot_error_format(&error, line, sizeof line);
    std::puts(line);
    return 2;
  }
  const auto frames = static_cast<std::size_t>(std::strtoull(argv[3], nullptr, 10));
  const int code = frames > 0 ? soak(artifact, frames, std::strtod(argv[4], nullptr)) : 2;
  ingot_close(artifact);
  return code;
}
