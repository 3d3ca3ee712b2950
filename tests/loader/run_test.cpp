// Frames: same numbers every time, states that follow accepted frames only, nothing allocated.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "session.h"

namespace {
std::atomic<int> g_allocations{0};
}  // namespace

extern "C" {
void* __real_malloc(std::size_t size);
void* __real_calloc(std::size_t count, std::size_t size);
void* __real_mmap(void* at, std::size_t size, int protection, int flags, int fd, long offset);
void* __wrap_malloc(std::size_t size) {
  ++g_allocations;
  return __real_malloc(size);
}
void* __wrap_calloc(std::size_t count, std::size_t size) {
  ++g_allocations;
  return __real_calloc(count, size);
}
void* __wrap_mmap(void* at, std::size_t size, int protection, int flags, int fd, long offset) {
  ++g_allocations;
  return __real_mmap(at, size, protection, flags, fd, offset);
}
}

namespace ingot::test {
namespace {

class Run : public testing::Test {
 protected:
  void SetUp() override { REQUIRE_RUNNABLE(); }
};

float weight(int i) { return 0.25f * static_cast<float>(i + 1); }

TEST_F(Run, a_thousand_frames_equal_their_definition_and_allocate_nothing) {
  Session session;
  ASSERT_EQ(session.start(ArtifactBuilder()), 0u);
  std::array<float, 16> state{};
  const int before = g_allocations;
  for (int n = 0; n < 1000; ++n) {
    ingot_frame frame;
    session.frame[n % 16] = static_cast<std::uint8_t>(n);
    ASSERT_EQ(ingot_run(session.instance, &frame), 0u);
    ASSERT_EQ(frame.accepted, 1u);
    ASSERT_EQ(frame.valid, 1u);
    ASSERT_EQ(frame.generation, static_cast<std::uint64_t>(n + 1));
    for (int i = 0; i < 16; ++i) {
      state[i] = static_cast<float>(session.frame[i]) * weight(i) + state[i];
      ASSERT_EQ(session.out[i], state[i]) << n;
    }
    const ingot_binding again = session.expected(0);
    ASSERT_EQ(ingot_bind(session.instance, &again, 1, nullptr), 0u);
  }
  EXPECT_EQ(g_allocations, before);
  EXPECT_GT(before, 0) << "the counter works";
}

TEST_F(Run, reset_gives_the_bytes_of_a_fresh_load) {
  Session session;
  ASSERT_EQ(session.start(ArtifactBuilder()), 0u);
  ingot_run(session.instance, nullptr);
  const auto first = session.out;
  for (int n = 0; n < 7; ++n) ingot_run(session.instance, nullptr);
  EXPECT_NE(session.out, first);
  ingot_reset(session.instance);
  ingot_run(session.instance, nullptr);
  EXPECT_EQ(session.out, first);
}

TEST_F(Run, states_can_be_read_and_set) {
  Session session;
  ASSERT_EQ(session.start(ArtifactBuilder()), 0u);
  std::array<float, 16> state{};
  state[4] = 1000;
  EXPECT_EQ(ingot_set_state(session.instance, 3, state.data(), 64), 0u);
  EXPECT_EQ(ingot_set_state(session.instance, 3, state.data(), 63), 807u);
  EXPECT_EQ(ingot_set_state(session.instance, 3, nullptr, 64), 802u);
  EXPECT_EQ(ingot_set_state(session.instance, 2, state.data(), 64), 811u);
  ingot_run(session.instance, nullptr);
  EXPECT_EQ(session.out[4], static_cast<float>(session.frame[4]) * weight(4) + 1000);
  EXPECT_EQ(std::memcmp(ingot_slot_data(session.instance, 3), session.out.data(), 64), 0);
  EXPECT_EQ(ingot_slot_data(session.instance, 0), nullptr);
  EXPECT_EQ(ingot_slot_data(session.instance, 2), session.out.data());
}

TEST_F(Run, initial_state_comes_from_the_artifact) {
  ArtifactBuilder builder;
  for (TestVariant& v : builder.variants) {
    v.buffers[3].init_section = v.buffers[5].init_section;
    v.buffers[3].init_nbytes = 64;
  }
  builder.refs.clear();
  builder.refdata.clear();
  const TestPolicy device;
  ingot_policy policy = Session::lenient(device);
  policy.require_vectors = 0;
  const Bytes file = builder.seal();
  Session session;
  ASSERT_EQ(
      ingot_open_memory(file.data(), file.size(), &policy, nullptr, &session.artifact, nullptr),
      0u);
  ASSERT_EQ(ingot_instance_create(session.artifact, nullptr, &session.instance, nullptr), 0u);
  ASSERT_EQ(session.bind_all(), 0u);
  ingot_run(session.instance, nullptr);
  EXPECT_EQ(session.out[2], static_cast<float>(session.frame[2]) * weight(2) + weight(2));
  EXPECT_EQ(ingot_self_test(session.artifact, nullptr, 0, nullptr, nullptr), 309u);
}

// The immediate of call 4 is what its program returns.
ArtifactBuilder returning(std::uint64_t value) {
  ArtifactBuilder builder;
  for (TestVariant& v : builder.variants) v.args.back().immediate = value;
  return builder;
}

TEST_F(Run, a_failing_program_rejects_the_frame_and_keeps_the_state) {
  Session session;
  ASSERT_EQ(session.start(returning(5)), 0u);
  ingot_frame frame;
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(ingot_run(session.instance, &frame), 820u);
    EXPECT_EQ(frame.call, 4u);
    EXPECT_EQ(frame.result, 5);
    EXPECT_EQ(frame.accepted, 0u);
    EXPECT_EQ(session.out[3], 0.0f) << "nothing was written";
    EXPECT_EQ(static_cast<const float*>(ingot_slot_data(session.instance, 3))[3], 0.0f);
  }
}

TEST_F(Run, a_clamped_index_is_never_silent) {
  Session session;
  ASSERT_EQ(session.start(returning(1)), 0u);
  ingot_frame frame;
  EXPECT_EQ(ingot_run(session.instance, &frame), 822u);
  EXPECT_EQ(frame.accepted, 1u);
  EXPECT_EQ(frame.valid, 1u);
  EXPECT_NE(frame.flags & INGOT_FRAME_CLAMPED, 0u);
  Session strict;
  ASSERT_EQ(strict.start(returning(1), 0, INGOT_RUN_REFUSE_CLAMPED), 0u);
  EXPECT_EQ(ingot_run(strict.instance, &frame), 822u);
  EXPECT_EQ(frame.accepted, 0u);
}

// The state, 64 bytes of any type, is only handed on: a copy stands where the program `mix` was.
ArtifactBuilder handing_on(IngotDtype dtype, std::uint32_t size) {
  ArtifactBuilder builder;
  const auto retype = [&](auto& tensor) {
    tensor.dtype = static_cast<std::uint16_t>(dtype);
    tensor.shape[0] = 64 / size;
    tensor.strides[0] = size;
  };
  retype(builder.io[3]);
  builder.refs.clear();
  builder.refdata.clear();
  for (TestVariant& v : builder.variants) {
    retype(v.views[5]);
    retype(v.views[7]);
    IngotArgRecord output = v.args[2];
    output.view = 6;
    v.args = {v.args[0], v.args[1], output, v.args[7], v.args[9], v.args[10], v.args[11]};
    v.calls.erase(v.calls.begin() + 3);
    v.calls[3].arg_first = 5;
    v.calls[4].arg_first = 7;
    for (IngotBufferRecord& b : v.buffers) b.last_call = std::min(b.last_call, 4u);
  }
  return builder;
}

TEST_F(Run, a_state_that_is_not_finite_never_replaces_the_old_one) {
  Session session;
  ASSERT_EQ(session.start(ArtifactBuilder()), 0u);
  ASSERT_EQ(ingot_run(session.instance, nullptr), 0u);
  std::array<float, 16> state{};
  std::memcpy(state.data(), ingot_slot_data(session.instance, 3), 64);
  const auto good = state;
  for (const float value : {std::numeric_limits<float>::infinity(), std::nanf(""),
                            -std::numeric_limits<float>::infinity()}) {
    state[9] = value;
    ASSERT_EQ(ingot_set_state(session.instance, 3, state.data(), 64), 0u);
    ingot_frame frame;
    EXPECT_EQ(ingot_run(session.instance, &frame), 821u);
    EXPECT_EQ(frame.slot, 3u);
    EXPECT_EQ(frame.element, 9u);
    EXPECT_EQ(frame.accepted, 0u);
    EXPECT_EQ(std::memcmp(ingot_slot_data(session.instance, 3), state.data(), 64), 0);
    EXPECT_EQ(session.out, good) << "the copied output still holds the last accepted frame";
    ASSERT_EQ(ingot_set_state(session.instance, 3, good.data(), 64), 0u);
  }
  ingot_frame frame;
  EXPECT_EQ(ingot_run(session.instance, &frame), 0u);
  EXPECT_EQ(session.out[9], static_cast<float>(session.frame[9]) * weight(9) + good[9]);
}

TEST_F(Run, outputs_are_looked_at_where_the_caller_asks_for_it) {
  Session session;
  ASSERT_EQ(session.start(ArtifactBuilder(), 0, INGOT_RUN_CHECK_OUTPUTS), 0u);
  std::array<float, 16> state{};
  state[9] = std::numeric_limits<float>::infinity();
  ASSERT_EQ(ingot_set_state(session.instance, 3, state.data(), 64), 0u);
  ingot_frame frame;
  EXPECT_EQ(ingot_run(session.instance, &frame), 821u);
  EXPECT_EQ(frame.slot, 2u) << "the output comes before the state";
  EXPECT_EQ(frame.element, 9u);
}

// Every type that has infinities: each element alone, the largest finite numbers beside it.
TEST_F(Run, non_finite_elements_of_every_type_are_found) {
  struct Type {
    IngotDtype dtype;
    std::uint32_t size;
    std::uint64_t largest, infinity;
  };
  const Type types[] = {{INGOT_DTYPE_F32, 4, 0xFF7FFFFF, 0x7F800000},
                        {INGOT_DTYPE_F16, 2, 0xFBFF, 0x7C00},
                        {INGOT_DTYPE_BF16, 2, 0xFF7F, 0x7F80},
                        {INGOT_DTYPE_F64, 8, 0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000}};
  for (const Type& type : types) {
    const std::uint32_t count = 64 / type.size;
    const TestPolicy device;
    ingot_policy policy = Session::lenient(device);
    policy.require_vectors = 0;
    const Bytes file = handing_on(type.dtype, type.size).seal();
    Session session;
    ASSERT_EQ(
        ingot_open_memory(file.data(), file.size(), &policy, nullptr, &session.artifact, nullptr),
        0u);
    ASSERT_EQ(ingot_instance_create(session.artifact, nullptr, &session.instance, nullptr), 0u);
    ASSERT_EQ(session.bind_all(), 0u);
    std::array<std::uint8_t, 64> state{};
    for (std::uint32_t i = 0; i < count; ++i) {
      std::memcpy(state.data() + i * type.size, &type.largest, type.size);
    }
    ingot_frame frame;
    ASSERT_EQ(ingot_set_state(session.instance, 3, state.data(), 64), 0u);
    EXPECT_EQ(ingot_run(session.instance, &frame), 0u) << type.dtype;
    for (std::uint32_t i = 0; i < count; ++i) {
      auto bad = state;
      std::memcpy(bad.data() + i * type.size, &type.infinity, type.size);
      ASSERT_EQ(ingot_set_state(session.instance, 3, bad.data(), 64), 0u);
      EXPECT_EQ(ingot_run(session.instance, &frame), 821u) << type.dtype;
      EXPECT_EQ(frame.element, i) << type.dtype;
    }
  }
}

TEST_F(Run, padding_of_the_frame_and_poisoned_arenas_change_nothing) {
  Session plain;
  Session noisy;
  ASSERT_EQ(plain.start(ArtifactBuilder()), 0u);
  ASSERT_EQ(noisy.start(ArtifactBuilder(), 0, INGOT_RUN_POISON), 0u);
  std::memset(noisy.frame + 32, 0xEE, 32);
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(ingot_run(plain.instance, nullptr), 0u);
    EXPECT_EQ(ingot_run(noisy.instance, nullptr), 0u);
    EXPECT_EQ(plain.out, noisy.out);
  }
}

TEST_F(Run, two_instances_of_one_artifact_share_nothing) {
  Session one;
  ASSERT_EQ(one.start(ArtifactBuilder()), 0u);
  Session two;
  ingot_instance* other = nullptr;
  ASSERT_EQ(ingot_instance_create(one.artifact, nullptr, &other, nullptr), 0u);
  two.artifact = one.artifact;
  two.instance = other;
  ASSERT_EQ(two.bind_all(), 0u);
  for (int i = 0; i < 16; ++i) two.frame[i] = static_cast<std::uint8_t>(200 - i);
  std::array<float, 16> a{};
  std::array<float, 16> b{};
  for (int n = 0; n < 20; ++n) {
    ingot_run(one.instance, nullptr);
    if (n % 2 == 0) ingot_run(two.instance, nullptr);
    for (int i = 0; i < 16; ++i) {
      a[i] = static_cast<float>(one.frame[i]) * weight(i) + a[i];
      if (n % 2 == 0) b[i] = static_cast<float>(two.frame[i]) * weight(i) + b[i];
    }
    EXPECT_EQ(one.out, a);
    EXPECT_EQ(two.out, b);
  }
  ingot_instance_destroy(other);
  two.instance = nullptr;
  two.artifact = nullptr;
}

TEST_F(Run, one_instance_for_each_of_two_threads) {
  Session reference;
  ASSERT_EQ(reference.start(ArtifactBuilder()), 0u);
  for (int n = 0; n < 500; ++n) ingot_run(reference.instance, nullptr);
  std::array<float, 16> results[2];
  std::vector<std::thread> threads;
  for (auto& result : results) {
    threads.emplace_back([&result] {
      Session session;
      if (session.start(ArtifactBuilder()) != 0) return;
      for (int n = 0; n < 500; ++n) ingot_run(session.instance, nullptr);
      result = session.out;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results[0], reference.out);
  EXPECT_EQ(results[1], reference.out);
}

#if defined(__x86_64__)
TEST_F(Run, the_hosts_rounding_changes_no_number_and_comes_back) {
  Session plain;
  Session odd;
  ASSERT_EQ(plain.start(ArtifactBuilder()), 0u);
  ASSERT_EQ(odd.start(ArtifactBuilder()), 0u);
  const std::array<float, 16> small = {1.0e-7f, 3.3e-7f, 0.1f};
  ingot_set_state(plain.instance, 3, small.data(), 64);
  ingot_set_state(odd.instance, 3, small.data(), 64);
  ingot_run(plain.instance, nullptr);
  const unsigned before = _mm_getcsr();
  constexpr unsigned up_and_flush = 0x1F80 | 0x4000 | 0x8040;
  _mm_setcsr(up_and_flush);
  ingot_run(odd.instance, nullptr);
  const unsigned after = _mm_getcsr() & ~0x3Fu;
  _mm_setcsr(before);
  EXPECT_EQ(after, up_and_flush & ~0x3Fu);
  EXPECT_EQ(plain.out, odd.out);
}
#endif

TEST_F(Run, frames_seen_before_and_old_frames_are_flagged) {
  Session session;
  ASSERT_EQ(session.start(ArtifactBuilder()), 0u);
  const auto run = [&](std::uint64_t sequence, std::uint64_t age) {
    ingot_binding binding = session.expected(0);
    binding.has_sequence = 1;
    binding.sequence = sequence;
    binding.has_age = 1;
    binding.age_us = age;
    EXPECT_EQ(ingot_bind(session.instance, &binding, 1, nullptr), 0u);
    ingot_frame frame;
    EXPECT_EQ(ingot_run(session.instance, &frame), 0u);
    return frame.flags;
  };
  EXPECT_EQ(run(10, 0), 0u);
  EXPECT_EQ(run(11, 100000), 0u);
  EXPECT_EQ(run(11, 0), static_cast<std::uint32_t>(INGOT_FRAME_STALE));
  EXPECT_EQ(run(9, 0), static_cast<std::uint32_t>(INGOT_FRAME_STALE));
  EXPECT_EQ(run(10, 100001), static_cast<std::uint32_t>(INGOT_FRAME_OLD));
  ingot_reset(session.instance);
  EXPECT_EQ(run(1, 0), 0u);
}

TEST_F(Run, each_call_can_be_timed) {
  Session session;
  ASSERT_EQ(session.start(ArtifactBuilder()), 0u);
  std::vector<std::uint32_t> calls;
  ingot_set_call_hook(
      session.instance,
      [](void* user, std::uint32_t call, std::uint64_t) {
        static_cast<std::vector<std::uint32_t>*>(user)->push_back(call);
      },
      &calls);
  ingot_run(session.instance, nullptr);
  EXPECT_EQ(calls, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5}));
  ingot_set_call_hook(session.instance, nullptr, nullptr);
  ingot_run(session.instance, nullptr);
  EXPECT_EQ(calls.size(), 6u);
}

TEST_F(Run, an_in_place_state_is_written_where_it_is) {
  ArtifactBuilder builder;
  for (TestVariant& v : builder.variants) {
    // mix writes `hidden` itself: the last argument is the state, the next-state buffer scratch.
    v.buffers[3].flags = INGOT_BUFFER_IN_PLACE;
    v.buffers[4].kind = INGOT_BUFFER_SCRATCH;
    v.buffers[4].io = INGOT_NO_INDEX;
    v.buffers[4].arena = 0;
    v.buffers[4].arena_offset = 1280;
    v.args[9].view = 5;
  }
  Session session;
  ASSERT_EQ(session.start(builder), 0u);
  ingot_run(session.instance, nullptr);
  ingot_run(session.instance, nullptr);
  const float once = static_cast<float>(session.frame[5]) * weight(5);
  EXPECT_EQ(session.out[5], once + once);
  EXPECT_EQ(ingot_self_test(session.artifact, nullptr, 0, nullptr, nullptr), 0u);
}

}  // namespace
}  // namespace ingot::test
