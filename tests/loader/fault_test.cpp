// What goes wrong around a frame: each fault has a number or a flag of its own, harms nothing else,
// and after a reset the instance gives the bytes of a new one.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "guarded_memory.h"
#include "session.h"

namespace ingot::test {
namespace {

constexpr std::size_t kFrame = 3072;

void wait_us(std::uint64_t us) {
  timespec begin;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (static_cast<std::uint64_t>((now.tv_sec - begin.tv_sec) * 1000000 +
                                      (now.tv_nsec - begin.tv_nsec) / 1000) < us);
}

// Anonymous pages at a given place, or anywhere.
std::uint8_t* map_at(void* address, std::size_t nbytes) {
  const int fixed = address != nullptr ? MAP_FIXED : 0;
  void* memory =
      mmap(address, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(memory);
}

class Fault : public testing::Test {
 protected:
  void SetUp() override {
    REQUIRE_RUNNABLE();
    ASSERT_EQ(session_.start(ArtifactBuilder()), 0u);
    for (std::size_t i = 0; i < kFrame; ++i) good_[i] = session_.frame[i];
  }

  // Another instance of the same artifact, with options, in place of the session's.
  void restart(const ingot_instance_options& options) {
    ASSERT_EQ(ingot_instance_destroy(session_.instance), 0u);
    session_.instance = nullptr;
    ASSERT_EQ(ingot_instance_create(session_.artifact, &options, &session_.instance, nullptr), 0u);
    ASSERT_EQ(session_.bind_all(), 0u);
  }

  template <typename Change>
  ingot_status bind_frame(Change change) {
    ingot_binding binding = session_.expected(0);
    change(binding);
    return ingot_bind(session_.instance, &binding, 1, &error_);
  }

  // The end of every test: good memory, a reset, and the frames of a new instance.
  void expect_fresh() {
    std::memcpy(session_.frame, good_.data(), kFrame);
    ASSERT_EQ(session_.bind_all(), 0u);
    ASSERT_EQ(ingot_reset(session_.instance), 0u);
    Session fresh;
    fresh.artifact = session_.artifact;
    ASSERT_EQ(ingot_instance_create(fresh.artifact, nullptr, &fresh.instance, nullptr), 0u);
    ASSERT_EQ(fresh.bind_all(), 0u);
    for (int n = 0; n < 3; ++n) {
      ingot_frame frame;
      ASSERT_EQ(ingot_run(session_.instance, &frame), 0u);
      EXPECT_EQ(frame.valid, 1u);
      EXPECT_EQ(frame.flags, 0u);
      ASSERT_EQ(ingot_run(fresh.instance, nullptr), 0u);
      ASSERT_EQ(std::memcmp(session_.out.data(), fresh.out.data(), 64), 0) << n;
    }
    ASSERT_EQ(ingot_instance_destroy(fresh.instance), 0u);
    fresh.instance = nullptr;
    fresh.artifact = nullptr;
  }

  Session session_;
  Bytes good_ = Bytes(kFrame);
  ingot_error error_{};
};

TEST_F(Fault, memory_that_changes_between_frames_is_seen_and_an_old_number_is_flagged) {
  const auto numbered = [](auto& b) { b.has_sequence = 1, b.sequence = 4; };
  ASSERT_EQ(bind_frame(numbered), 0u);
  ingot_frame frame;
  ASSERT_EQ(ingot_run(session_.instance, &frame), 0u);
  EXPECT_EQ(frame.flags, 0u);
  session_.frame[3] ^= 0xFF;
  ASSERT_EQ(ingot_reset(session_.instance), 0u);
  ASSERT_EQ(ingot_run(session_.instance, &frame), 0u);
  EXPECT_EQ(session_.out[3], static_cast<float>(session_.frame[3])) << "bound, not copied";
  ASSERT_EQ(ingot_run(session_.instance, &frame), 0u);
  EXPECT_EQ(frame.flags, INGOT_FRAME_STALE + 0u) << "the same number once more";
  EXPECT_EQ(frame.slot, 0u);
  expect_fresh();
}

#if !defined(__SANITIZE_THREAD__)
TEST_F(Fault, memory_that_changes_during_a_frame_gives_a_frame_of_old_and_new_bytes) {
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint8_t value = 0; !stop; ++value) {
      for (std::size_t i = 0; i < 16; ++i) {
        static_cast<volatile std::uint8_t*>(session_.frame)[i] = value;
      }
    }
  });
  for (int n = 0; n < 2000; ++n) {
    ASSERT_EQ(ingot_reset(session_.instance), 0u);
    ASSERT_EQ(ingot_run(session_.instance, nullptr), 0u);
    for (int i = 0; i < 16; ++i) {
      const float byte = session_.out[i] / (0.25f * static_cast<float>(i + 1));
      ASSERT_TRUE(byte >= 0 && byte <= 255 && byte == std::floor(byte)) << byte;
    }
  }
  stop = true;
  writer.join();
  expect_fresh();
}
#endif

TEST_F(Fault, memory_that_was_given_up_is_not_touched) {
  std::uint8_t* frame = map_at(nullptr, 4096);
  ASSERT_NE(frame, nullptr);
  const auto here = [&](auto& b) { b.data = frame; };
  ASSERT_EQ(bind_frame(here), 0u);
  ASSERT_EQ(ingot_run(session_.instance, nullptr), 0u);
  ASSERT_EQ(ingot_invalidate(session_.instance, frame, 4096), 0u);
  munmap(frame, 4096);
  ingot_frame result;
  EXPECT_EQ(ingot_run(session_.instance, &result), 810u);
  EXPECT_EQ(result.slot, 0u);
  expect_fresh();

  frame = map_at(nullptr, 4096);
  ASSERT_EQ(bind_frame(here), 0u);
  ASSERT_EQ(ingot_unbind_all(session_.instance), 0u);
  munmap(frame, 4096);
  EXPECT_EQ(ingot_run(session_.instance, &result), 810u);
  expect_fresh();
}

TEST_F(Fault, no_bytes_at_all_are_nobodys) {
  ASSERT_EQ(ingot_invalidate(session_.instance, session_.frame + 256, 0), 0u);
  EXPECT_EQ(ingot_run(session_.instance, nullptr), 0u) << "still bound";
  expect_fresh();
}

// Nobody told the loader: the process ends by a signal instead of computing with something else.
TEST_F(Fault, memory_that_vanishes_silently_ends_the_process_and_only_that) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (const int number : {SIGSEGV, SIGBUS}) signal(number, SIG_DFL);
    // An artifact is not inherited: the child opens its own.
    Session session;
    std::uint8_t* frame = map_at(nullptr, 4096);
    if (session.start(ArtifactBuilder()) != 0 || frame == nullptr) _exit(1);
    ingot_binding binding = session.expected(0);
    binding.data = frame;
    if (ingot_bind(session.instance, &binding, 1, nullptr) != 0) _exit(2);
    if (ingot_run(session.instance, nullptr) != 0) _exit(3);
    munmap(frame, 4096);
    ingot_run(session.instance, nullptr);
    _exit(4);
  }
  ingot_frame result;
  EXPECT_EQ(ingot_run(session_.instance, &result), 0u);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
  EXPECT_EQ(WTERMSIG(status), SIGSEGV);
  expect_fresh();
}

TEST_F(Fault, an_address_that_is_used_again_is_another_mapping) {
  std::uint8_t* frame = map_at(nullptr, 4096);
  ASSERT_NE(frame, nullptr);
  std::uint64_t generation = 1;
  const auto here = [&](auto& b) { b.data = frame, b.generation = generation; };
  std::memset(frame, 10, 4096);
  ASSERT_EQ(bind_frame(here), 0u);
  ASSERT_EQ(ingot_run(session_.instance, nullptr), 0u);
  // Other pages at the same place.
  ASSERT_EQ(map_at(frame, 4096), frame);
  std::memset(frame, 20, 4096);
  generation = 2;
  ASSERT_EQ(bind_frame(here), 0u);
  ingot_bind_info info;
  ingot_bind_describe(session_.instance, &info);
  EXPECT_EQ(info.hits, 0u);
  ASSERT_EQ(ingot_reset(session_.instance), 0u);
  ASSERT_EQ(ingot_run(session_.instance, nullptr), 0u);
  EXPECT_EQ(session_.out[3], 20.0f);
  generation = 1;
  EXPECT_EQ(bind_frame(here), 815u);
  EXPECT_EQ(error_.found, 1u);
  EXPECT_EQ(error_.allowed, 2u);
  ASSERT_EQ(ingot_invalidate(session_.instance, frame, 4096), 0u);
  munmap(frame, 4096);
  expect_fresh();
}

TEST_F(Fault, each_number_of_a_layout_counts) {
  for (int number = 0; number < 6; ++number) {
    for (const std::uint32_t by : {1u, 0u - 1u}) {
      ingot_layout other = session_.layout;
      std::uint32_t* const fields[5] = {&other.width, &other.height, &other.stride, &other.y_height,
                                        &other.uv_height};
      if (number < 5) *fields[number] += by;
      if (number == 5) other.uv_offset += static_cast<std::int32_t>(by);
      EXPECT_EQ(bind_frame([&](auto& b) { b.layout = &other, b.nbytes = 4096; }), 814u);
      const std::uint64_t given[6] = {other.width,    other.height,    other.stride,
                                      other.y_height, other.uv_height, other.uv_offset};
      const ingot_layout& built = session_.layout;
      const std::uint64_t allowed[6] = {built.width,    built.height,    built.stride,
                                        built.y_height, built.uv_height, built.uv_offset};
      EXPECT_EQ(std::memcmp(error_.layout_found, given, sizeof given), 0);
      EXPECT_EQ(std::memcmp(error_.layout_allowed, allowed, sizeof allowed), 0);
      char line[512];
      ingot_error_format(&error_, line, sizeof line);
      EXPECT_NE(std::string(line).find("built for 32 16 64 32 16 2048"), std::string::npos) << line;
    }
  }
  expect_fresh();
}

TEST_F(Fault, ten_thousand_layouts_beside_an_unreadable_page) {
  const GuardedMemory memory(kFrame, Edge::AtEnd, 256);
  std::mt19937 random(1);
  const std::uint32_t odd[] = {0, 1, 2, 15, 31, 63, 65, 128, 4096, 0x7FFFFFFF, 0xFFFFFFFF};
  int taken = 0;
  for (int n = 0; n < 10000; ++n) {
    ingot_layout layout = session_.layout;
    std::uint32_t* const fields[5] = {&layout.width, &layout.height, &layout.stride,
                                      &layout.y_height, &layout.uv_height};
    for (std::uint32_t* field : fields) {
      if (random() % 3 == 0)
        *field = random() % 2 == 0 ? static_cast<std::uint32_t>(random()) : odd[random() % 11];
    }
    if (random() % 3 == 0) layout.uv_offset = random() % 2 == 0 ? random() : ~0ull - random() % 9;
    layout.reserved = 0;
    const bool same = layout.uv_offset == session_.layout.uv_offset &&
                      std::memcmp(&layout, &session_.layout, 20) == 0;
    ASSERT_EQ(bind_frame([&](auto& b) { b.data = memory.data(), b.layout = &layout; }),
              same ? 0u : 814u);
    if (!same) continue;
    ++taken;
    ASSERT_EQ(ingot_run(session_.instance, nullptr), 0u);
  }
  EXPECT_GT(taken, 100);
  expect_fresh();
}

TEST_F(Fault, every_misaligned_address_is_refused) {
  for (std::uintptr_t by = 1; by < 256; ++by) {
    EXPECT_EQ(bind_frame([&](auto& b) { b.data = session_.frame + by; }), 808u);
    EXPECT_EQ(error_.found, by);
    EXPECT_EQ(error_.allowed, 256u);
  }
  ingot_binding out = session_.expected(2);
  for (std::uintptr_t by = 1; by < 4; ++by) {
    out.data = reinterpret_cast<std::uint8_t*>(session_.out.data()) + by;
    EXPECT_EQ(ingot_bind(session_.instance, &out, 1, &error_), 808u);
  }
  expect_fresh();
}

TEST_F(Fault, inputs_may_be_read_only) {
  const GuardedMemory frame(kFrame, Edge::AtEnd, 256);
  const GuardedMemory packed(512);
  std::memcpy(packed.data(), session_.packed.data(), 512);
  frame.make_read_only();
  packed.make_read_only();
  ingot_binding list[2] = {session_.expected(0), session_.expected(1)};
  list[0].data = frame.data();
  list[1].data = packed.data();
  ASSERT_EQ(ingot_bind(session_.instance, list, 2, nullptr), 0u);
  EXPECT_EQ(ingot_run(session_.instance, nullptr), 0u);
  expect_fresh();
}

// A hook that makes one call of the list take too long.
struct Slow {
  std::uint32_t call;
  std::uint64_t us;
};
void be_slow(void* user, std::uint32_t call, std::uint64_t) {
  const Slow& slow = *static_cast<Slow*>(user);
  if (call == slow.call) wait_us(slow.us);
}

TEST_F(Fault, a_frame_that_takes_too_long_is_not_accepted) {
  ingot_instance_options options{};
  options.deadline_us = 20000;
  restart(options);
  ingot_frame frame;
  ASSERT_EQ(ingot_run(session_.instance, &frame), 0u) << "in time";
  const auto out = session_.out;
  const auto* state = static_cast<const float*>(ingot_slot_data(session_.instance, 3));
  const float value = state[3];
  // After each call: the next is not begun; after the last one all were made, but too late.
  for (std::uint32_t call = 0; call < 6; ++call) {
    Slow slow = {call, 25000};
    ingot_set_call_hook(session_.instance, be_slow, &slow);
    EXPECT_EQ(ingot_run(session_.instance, &frame), 823u);
    EXPECT_EQ(frame.call, call < 5 ? call + 1 : INGOT_NONE);
    EXPECT_EQ(frame.accepted, 0u);
    EXPECT_EQ(frame.valid, 0u);
    EXPECT_EQ(ingot_outputs_valid(session_.instance, frame.generation), 0u);
    EXPECT_GE(frame.nanoseconds, 20000000u);
    EXPECT_EQ(session_.out, out) << "copied outputs still hold the last accepted frame";
    EXPECT_EQ(static_cast<const float*>(ingot_slot_data(session_.instance, 3))[3], value);
  }
  // The next frame goes on from the state of the last accepted one.
  ingot_set_call_hook(session_.instance, nullptr, nullptr);
  ASSERT_EQ(ingot_run(session_.instance, &frame), 0u);
  EXPECT_EQ(session_.out[3], out[3] + out[3]);
  EXPECT_EQ(ingot_outputs_valid(session_.instance, frame.generation), 1u);
  expect_fresh();
}

TEST_F(Fault, without_a_deadline_a_frame_takes_as_long_as_it_takes) {
  Slow slow = {2, 25000};
  ingot_set_call_hook(session_.instance, be_slow, &slow);
  EXPECT_EQ(ingot_run(session_.instance, nullptr), 0u);
  ingot_set_call_hook(session_.instance, nullptr, nullptr);
  expect_fresh();
}

TEST_F(Fault, a_state_that_is_not_finite) {
  ASSERT_EQ(ingot_run(session_.instance, nullptr), 0u);
  std::array<float, 16> state{};
  state[5] = std::nanf("");
  ASSERT_EQ(ingot_set_state(session_.instance, 3, state.data(), 64), 0u);
  ingot_frame frame;
  EXPECT_EQ(ingot_run(session_.instance, &frame), 821u);
  EXPECT_EQ(frame.slot, 3u);
  EXPECT_EQ(frame.element, 5u);
  EXPECT_EQ(ingot_outputs_valid(session_.instance, frame.generation), 0u);
  expect_fresh();
}

// Memory that is not coherent: only copied, and only where there is a place to copy it to.
TEST_F(Fault, memory_that_is_not_coherent_is_copied_or_refused) {
  const auto not_coherent = [](auto& b) { b.memory = INGOT_MEMORY_NON_COHERENT; };
  EXPECT_EQ(bind_frame(not_coherent), 809u) << "no staging was asked for";
  EXPECT_EQ(error_.slot, 0u);
  ingot_instance_options options{};
  options.flags = INGOT_RUN_STAGING;
  restart(options);
  ingot_frame frame;
  ASSERT_EQ(ingot_run(session_.instance, &frame), 0u);
  EXPECT_EQ(frame.flags, 0u);
  EXPECT_EQ(frame.copied_nbytes, 512u) << "`packed` alone";
  const auto expected = session_.out;
  ASSERT_EQ(ingot_reset(session_.instance), 0u);
  ASSERT_EQ(bind_frame(not_coherent), 0u);
  // After the copy the memory may change: the calls read the instance's own.
  struct Scribble {
    std::uint8_t* frame;
  } scribble = {session_.frame};
  ASSERT_EQ(ingot_run(session_.instance, &frame), 0u);
  EXPECT_EQ(frame.flags, INGOT_FRAME_STAGED + 0u);
  EXPECT_EQ(frame.copied_nbytes, 512u + kFrame);
  EXPECT_EQ(session_.out, expected);
  ASSERT_EQ(ingot_reset(session_.instance), 0u);
  ingot_set_call_hook(
      session_.instance,
      [](void* user, std::uint32_t, std::uint64_t) {
        std::memset(static_cast<Scribble*>(user)->frame, 0xAA, kFrame);
      },
      &scribble);
  ASSERT_EQ(ingot_run(session_.instance, &frame), 0u);
  EXPECT_EQ(session_.out, expected);
  ingot_set_call_hook(session_.instance, nullptr, nullptr);
  // New content is copied for every frame; coherent memory is used in place again.
  std::memset(session_.frame, 7, kFrame);
  ASSERT_EQ(ingot_reset(session_.instance), 0u);
  ASSERT_EQ(ingot_run(session_.instance, &frame), 0u);
  EXPECT_EQ(session_.out[3], 7.0f);
  ASSERT_EQ(bind_frame([](auto&) {}), 0u);
  ASSERT_EQ(ingot_run(session_.instance, &frame), 0u);
  EXPECT_EQ(frame.flags, 0u);
  EXPECT_EQ(bind_frame([](auto& b) { b.memory = INGOT_MEMORY_DEVICE; }), 809u);
  expect_fresh();
}

long page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// In kB.
long locked_memory() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word && word != "VmLck:") continue;
  long kilobytes = -1;
  status >> kilobytes;
  return kilobytes;
}

// The first frame that is copied there touches no page for the first time.
TEST_F(Fault, staging_is_there_when_the_instance_is) {
  long least[2] = {1000000, 1000000};
  for (int n = 0; n < 10; ++n) {
    for (const std::uint32_t kind : {INGOT_MEMORY_HOST, INGOT_MEMORY_NON_COHERENT}) {
      ingot_instance_options options{};
      options.flags = INGOT_RUN_STAGING;
      restart(options);
      ASSERT_EQ(bind_frame([&](auto& b) { b.memory = kind; }), 0u);
      const long before = page_faults();
      ASSERT_EQ(ingot_run(session_.instance, nullptr), 0u);
      least[kind] = std::min(least[kind], page_faults() - before);
    }
  }
  EXPECT_EQ(least[INGOT_MEMORY_HOST], least[INGOT_MEMORY_NON_COHERENT]);
  long locked[2] = {};
  for (const std::uint32_t staging : {0u, 1u}) {
    ingot_instance_options options{};
    options.flags = INGOT_RUN_LOCK_PAGES | (staging * INGOT_RUN_STAGING);
    restart(options);
    locked[staging] = locked_memory();
  }
  if (locked[0] > 0) {
    EXPECT_EQ(locked[1] - locked[0], sysconf(_SC_PAGESIZE) / 1024);
  }
}

TEST_F(Fault, staging_is_poisoned_too) {
  // The second half of the output is written by nobody.
  ArtifactBuilder builder = ring_artifact();
  builder.io[2].nbytes = builder.io[2].logical_nbytes = 64;
  builder.io[2].shape[1] = 16;
  builder.io[2].strides[0] = 64;
  builder.refs.clear();
  builder.refdata.clear();
  for (TestVariant& v : builder.variants) {
    v.buffers[2].nbytes = 64;
    v.buffers[2].flags = INGOT_BUFFER_CALLER_MEMORY;
    v.buffers[2].arena = INGOT_NO_INDEX;
    v.buffers[2].arena_offset = 0;
    v.views[4].strides[0] = 64;
  }
  const TestPolicy device;
  ingot_policy policy = Session::lenient(device);
  policy.require_vectors = 0;
  const Bytes file = builder.seal();
  Session session;
  ASSERT_EQ(
      ingot_open_memory(file.data(), file.size(), &policy, nullptr, &session.artifact, &error_),
      0u);
  const GuardedMemory aligned(256, Edge::AtEnd, 256);
  for (const std::uint32_t poison : {0u, INGOT_RUN_POISON + 0u}) {
    ingot_instance_options options{};
    options.flags = INGOT_RUN_STAGING | poison;
    ASSERT_EQ(ingot_instance_create(session.artifact, &options, &session.instance, nullptr), 0u);
    ingot_binding list[3] = {session.expected(0), session.expected(1), session.expected(2)};
    list[2].data = aligned.data();
    list[2].memory = INGOT_MEMORY_NON_COHERENT;
    ASSERT_EQ(ingot_bind(session.instance, list, 3, &error_), 0u);
    for (int n = 0; n < 2; ++n) {
      ASSERT_EQ(ingot_run(session.instance, nullptr), 0u);
      EXPECT_EQ(aligned.data()[31], 0) << "written by the calls";
      EXPECT_EQ(aligned.data()[32], poison != 0 ? 0xFF : 0);
      EXPECT_EQ(aligned.data()[63], poison != 0 ? 0xFF : 0);
    }
    ASSERT_EQ(ingot_instance_destroy(session.instance), 0u);
    session.instance = nullptr;
  }
}

// An output by pointer: written where the caller has it, or, not coherent, copied there at the end.
TEST_F(Fault, outputs_that_are_not_coherent_are_written_once_the_frame_is_accepted) {
  ArtifactBuilder builder;
  for (TestVariant& v : builder.variants) {
    v.buffers[2].flags = INGOT_BUFFER_CALLER_MEMORY;
    v.buffers[2].arena = INGOT_NO_INDEX;
    v.buffers[2].arena_offset = 0;
  }
  Session session;
  ASSERT_EQ(session.open(builder, 0, INGOT_RUN_STAGING), 0u);
  const GuardedMemory memory(64, Edge::AtEnd, 64);
  const GuardedMemory aligned(256, Edge::AtEnd, 256);
  ingot_binding list[3] = {session.expected(0), session.expected(1), session.expected(2)};
  list[2].data = memory.data();
  EXPECT_EQ(ingot_bind(session.instance, list, 3, &error_), 808u) << "by pointer: 256 bytes";
  list[2].data = aligned.data();
  auto* const out = reinterpret_cast<float*>(aligned.data());
  // How the memory looks after each call of the list.
  struct Look {
    const float* out;
    float seen[6];
  } look = {out, {}};
  ingot_set_call_hook(
      session.instance,
      [](void* user, std::uint32_t call, std::uint64_t) {
        auto* l = static_cast<Look*>(user);
        l->seen[call] = l->out[3];
      },
      &look);
  const auto expected = static_cast<float>(session.frame[3]);
  for (const std::uint32_t kind : {INGOT_MEMORY_HOST, INGOT_MEMORY_NON_COHERENT}) {
    list[2].memory = kind;
    out[3] = -1;
    ASSERT_EQ(ingot_bind(session.instance, list, 3, &error_), 0u);
    ASSERT_EQ(ingot_reset(session.instance), 0u);
    ingot_frame frame;
    ASSERT_EQ(ingot_run(session.instance, &frame), 0u);
    EXPECT_EQ(out[3], expected);
    EXPECT_EQ(look.seen[5], kind == INGOT_MEMORY_HOST ? expected : -1.0f);
    EXPECT_EQ(frame.flags, kind == INGOT_MEMORY_HOST ? 0u : INGOT_FRAME_STAGED + 0u);
  }
  // A frame that is not accepted leaves it as it was.
  std::array<float, 16> state{};
  state[0] = std::nanf("");
  ASSERT_EQ(ingot_set_state(session.instance, 3, state.data(), 64), 0u);
  EXPECT_EQ(ingot_run(session.instance, nullptr), 821u);
  EXPECT_EQ(out[3], expected);
}

}  // namespace
}  // namespace ingot::test
