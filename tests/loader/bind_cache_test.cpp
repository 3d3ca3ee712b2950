// The binding cache: who hits, what a hit never skips, mappings that were replaced.
#include <gtest/gtest.h>
#include <time.h>

#include <map>
#include <vector>

#include "session.h"

namespace ingot::test {
namespace {

constexpr std::size_t kFrame = 3072;

// Frames of different content, each on its own.
class Ring {
 public:
  explicit Ring(std::size_t count) : count_(count) {
    memory_ = static_cast<std::uint8_t*>(std::aligned_alloc(256, count * kFrame));
    for (std::size_t i = 0; i < count * kFrame; ++i) {
      memory_[i] = static_cast<std::uint8_t>(i * 5 + i / kFrame * 11);
    }
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() { std::free(memory_); }

  std::uint8_t* operator[](std::size_t i) const { return memory_ + i % count_ * kFrame; }

 private:
  std::size_t count_;
  std::uint8_t* memory_;
};

class BindCache : public testing::Test {
 protected:
  void SetUp() override { REQUIRE_RUNNABLE(); }

  void start(std::uint32_t bind_sets = 0) {
    ASSERT_EQ(session_.open(ArtifactBuilder()), 0u);
    ingot_instance_destroy(session_.instance);
    session_.instance = nullptr;
    ingot_instance_options options{};
    options.bind_sets = bind_sets;
    ASSERT_EQ(ingot_instance_create(session_.artifact, &options, &session_.instance, nullptr), 0u);
    ASSERT_EQ(session_.bind_all(), 0u);
    first_ = info();
  }

  ingot_bind_info info() const {
    ingot_bind_info now;
    ingot_bind_describe(session_.instance, &now);
    return now;
  }
  // Since start().
  std::uint64_t hits() const { return info().hits - first_.hits; }
  std::uint64_t misses() const { return info().misses - first_.misses; }

  template <typename Change>
  ingot_status bind_frame(std::uint8_t* frame, Change change) {
    ingot_binding binding = session_.expected(0);
    binding.data = frame;
    change(binding);
    return ingot_bind(session_.instance, &binding, 1, &error_);
  }
  ingot_status bind_frame(std::uint8_t* frame) {
    return bind_frame(frame, [](auto&) {});
  }

  // One frame from fresh states, compared with its definition.
  void expect_result_of(const std::uint8_t* frame) {
    ASSERT_EQ(ingot_reset(session_.instance), 0u);
    ASSERT_EQ(ingot_run(session_.instance, nullptr), 0u);
    for (int i = 0; i < 16; ++i) {
      ASSERT_EQ(session_.out[i], static_cast<float>(frame[i]) * 0.25f * static_cast<float>(i + 1));
    }
  }

  void rotate(std::size_t sets, std::size_t rounds) {
    const Ring ring(sets);
    for (std::size_t n = 0; n < sets * rounds; ++n) {
      ASSERT_EQ(bind_frame(ring[n]), 0u);
      expect_result_of(ring[n]);
    }
  }

  Session session_;
  ingot_bind_info first_{};
  ingot_error error_{};
};

TEST_F(BindCache, hits_are_as_predicted_for_rings_of_every_size) {
  // Least recently used: a ring that fits hits from its second round on, a larger one never.
  const std::map<std::size_t, bool> fits = {
      {1, true}, {63, true}, {64, true}, {65, false}, {100, false}};
  for (const auto& [sets, hit] : fits) {
    Session fresh;
    std::swap(session_.artifact, fresh.artifact);
    std::swap(session_.instance, fresh.instance);
    start();
    EXPECT_EQ(info().capacity, 64u);
    rotate(sets, 3);
    EXPECT_EQ(hits(), hit ? 2 * sets : 0) << sets;
    EXPECT_EQ(misses(), hit ? sets : 3 * sets) << sets;
    // The set of start() is one of them.
    EXPECT_EQ(info().evictions, 1 + misses() > 64 ? 1 + misses() - 64 : 0) << sets;
    EXPECT_EQ(info().used, std::min<std::uint64_t>(64, 1 + misses())) << sets;
  }
}

TEST_F(BindCache, capacity_is_an_option) {
  start(3);
  EXPECT_EQ(info().capacity, 3u);
  rotate(3, 3);
  EXPECT_EQ(hits(), 6u);
  // The ring is gone; the next one may lie where it was.
  ASSERT_EQ(ingot_invalidate(session_.instance, nullptr, 0), 0u);
  ASSERT_EQ(session_.bind_all(), 0u);
  rotate(4, 3);
  EXPECT_EQ(hits(), 6u);
  ingot_instance_options options{};
  options.bind_sets = 4097;
  ingot_instance* other = nullptr;
  EXPECT_EQ(ingot_instance_create(session_.artifact, &options, &other, nullptr), 801u);
}

TEST_F(BindCache, none_at_all_gives_the_same_results) {
  start(INGOT_NONE);
  EXPECT_EQ(info().capacity, 0u);
  rotate(5, 3);
  EXPECT_EQ(hits() + misses(), 0u);
}

TEST_F(BindCache, the_least_recently_used_set_makes_room) {
  start(2);
  const Ring ring(3);
  for (const int n : {0, 1, 0, 2}) EXPECT_EQ(bind_frame(ring[n]), 0u);
  EXPECT_EQ(hits(), 1u);
  EXPECT_EQ(bind_frame(ring[0]), 0u);
  EXPECT_EQ(hits(), 2u) << "1 made room, not 0";
  EXPECT_EQ(bind_frame(ring[1]), 0u);
  EXPECT_EQ(hits(), 2u);
}

// Each fact alone: the list is no longer the remembered one, and a wrong fact is refused with its
// own number although the rest was found good before.
TEST_F(BindCache, every_fact_is_compared_on_every_call) {
  start();
  const Ring ring(1);
  std::uint8_t* const frame = ring[0];
  ASSERT_EQ(bind_frame(frame), 0u);
  ingot_layout other = session_.layout;
  const auto refused = [&](ingot_status number, auto change) {
    const std::uint64_t before = hits();
    EXPECT_EQ(bind_frame(frame, change), number);
    EXPECT_EQ(hits(), before);
    EXPECT_EQ(bind_frame(frame), 0u);
    EXPECT_EQ(hits(), before + 1) << "the good list is still known";
  };
  refused(803, [](auto& b) { b.dtype = INGOT_ELEMENT_I8; });
  refused(804, [](auto& b) { b.rank = 2; });
  refused(805, [](auto& b) { ++b.shape[0]; });
  refused(806, [](auto& b) { b.strides[0] = 2; });
  refused(807, [](auto& b) { --b.nbytes; });
  refused(809, [](auto& b) { b.memory = INGOT_MEMORY_NON_COHERENT; });
  refused(811, [](auto& b) { b.slot = 3; });
  refused(811, [](auto& b) { b.name = "fram"; });
  refused(814, [](auto& b) { b.layout = nullptr; });
  std::uint32_t* const numbers[5] = {&other.width, &other.height, &other.stride, &other.y_height,
                                     &other.uv_height};
  for (std::uint32_t* number : numbers) {
    for (const std::uint32_t by : {1u, 0u - 1u}) {
      *number += by;
      refused(814, [&](auto& b) { b.layout = &other; });
      *number -= by;
    }
  }
  ++other.uv_offset;
  refused(814, [&](auto& b) { b.layout = &other; });
  // Good, but another list.
  const std::uint64_t before = hits();
  EXPECT_EQ(bind_frame(frame, [](auto& b) { ++b.generation; }), 0u);
  EXPECT_EQ(hits(), before);
}

TEST_F(BindCache, slots_may_be_named_or_numbered) {
  start();
  const Ring ring(1);
  char name[] = "frame";
  ASSERT_EQ(bind_frame(ring[0]), 0u);
  EXPECT_EQ(bind_frame(ring[0], [&](auto& b) { b.name = name, b.slot = 99; }), 0u);
  EXPECT_EQ(hits(), 1u) << "the same slot";
  name[0] = 'g';
  EXPECT_EQ(bind_frame(ring[0], [&](auto& b) { b.name = name; }), 811u);
}

// What was disjoint may overlap once another slot moved.
TEST_F(BindCache, slots_that_are_not_in_the_list_count) {
  start();
  alignas(256) static std::uint8_t memory[4096];
  const auto out_at = [&](std::uint8_t* data) {
    ingot_binding binding = session_.expected(2);
    binding.data = data;
    return ingot_bind(session_.instance, &binding, 1, &error_);
  };
  ASSERT_EQ(out_at(memory + 3072), 0u);
  ASSERT_EQ(bind_frame(memory), 0u);
  ASSERT_EQ(bind_frame(memory), 0u);
  EXPECT_EQ(hits(), 1u);
  ASSERT_EQ(bind_frame(session_.frame), 0u);
  ASSERT_EQ(out_at(memory), 0u);
  EXPECT_EQ(bind_frame(memory), 813u) << "remembered as good, with the output elsewhere";
}

TEST_F(BindCache, sequence_age_and_time_are_taken_from_every_list) {
  start();
  const Ring ring(1);
  ingot_frame frame;
  const auto flags = [&](auto change) {
    EXPECT_EQ(bind_frame(ring[0], change), 0u);
    EXPECT_EQ(ingot_run(session_.instance, &frame), 0u);
    return frame.flags;
  };
  const auto now = [] {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1000000000u +
           static_cast<std::uint64_t>(time.tv_nsec);
  };
  EXPECT_EQ(flags([](auto& b) { b.has_sequence = 1, b.sequence = 5; }), 0u);
  EXPECT_EQ(flags([](auto& b) { b.has_sequence = 1, b.sequence = 6; }), 0u);
  EXPECT_EQ(flags([](auto& b) { b.has_sequence = 1, b.sequence = 6; }), INGOT_FRAME_STALE + 0u);
  EXPECT_EQ(frame.slot, 0u);
  EXPECT_EQ(flags([](auto& b) { b.has_age = 1, b.age_us = 100000; }), 0u);
  EXPECT_EQ(frame.age_us, 100000u);
  EXPECT_EQ(flags([](auto& b) { b.has_age = 1, b.age_us = 100001; }), INGOT_FRAME_OLD + 0u);
  // A stamp: the age is that of the start of ingot_run.
  EXPECT_EQ(flags([&](auto& b) { b.has_timestamp = 1, b.timestamp_ns = now() - 2000000; }), 0u);
  EXPECT_GE(frame.age_us, 2000u);
  EXPECT_EQ(flags([&](auto& b) { b.has_timestamp = 1, b.timestamp_ns = now() - 200000000; }),
            INGOT_FRAME_OLD + 0u);
  EXPECT_EQ(flags([&](auto& b) {
              b.has_age = 1, b.age_us = 150000;
              b.has_timestamp = 1, b.timestamp_ns = now();
            }),
            INGOT_FRAME_OLD + 0u)
      << "the larger one counts";
  EXPECT_EQ(flags([&](auto& b) { b.has_timestamp = 1, b.timestamp_ns = now() + 1000000000; }),
            INGOT_FRAME_AHEAD + 0u);
  EXPECT_EQ(frame.slot, 0u);
  EXPECT_EQ(flags([](auto&) {}), 0u) << "nothing stated, nothing known";
  EXPECT_EQ(frame.age_us, 0u);
  EXPECT_EQ(hits(), 9u);
}

TEST_F(BindCache, invalidated_memory_is_bound_nowhere_and_remembered_nowhere) {
  start();
  const Ring ring(4);
  for (int n = 0; n < 8; ++n) ASSERT_EQ(bind_frame(ring[n]), 0u);
  EXPECT_EQ(hits(), 4u);
  // The last byte of frame 2, which is not the one that is bound.
  EXPECT_EQ(ingot_invalidate(session_.instance, ring[2] + kFrame - 1, 1), 0u);
  EXPECT_EQ(info().invalidated, 1u);
  EXPECT_EQ(ingot_run(session_.instance, nullptr), 0u) << "frame 3 is still bound";
  for (int n = 0; n < 4; ++n) ASSERT_EQ(bind_frame(ring[n]), 0u);
  EXPECT_EQ(hits(), 7u);
  EXPECT_EQ(misses(), 5u);
  // Bytes on both sides of frame 3, then one of its own.
  EXPECT_EQ(ingot_invalidate(session_.instance, ring[3] + kFrame, 100), 0u);
  EXPECT_EQ(ingot_invalidate(session_.instance, ring[3] - 100, 100), 0u);
  EXPECT_EQ(ingot_run(session_.instance, nullptr), 0u);
  EXPECT_EQ(ingot_invalidate(session_.instance, ring[3], 1), 0u);
  ingot_frame frame;
  EXPECT_EQ(ingot_run(session_.instance, &frame), 810u);
  EXPECT_EQ(frame.slot, 0u);
  ASSERT_EQ(bind_frame(ring[3]), 0u);
  EXPECT_EQ(hits(), 7u);
  expect_result_of(ring[3]);
  EXPECT_EQ(ingot_invalidate(session_.instance, nullptr, 0), 0u);
  EXPECT_EQ(info().used, 0u);
  EXPECT_EQ(ingot_run(session_.instance, &frame), 810u);
  ASSERT_EQ(session_.bind_all(), 0u);
  EXPECT_EQ(ingot_run(session_.instance, &frame), 0u);
}

TEST_F(BindCache, unbinding_keeps_what_is_known) {
  start();
  ASSERT_EQ(ingot_unbind_all(session_.instance), 0u);
  EXPECT_EQ(ingot_run(session_.instance, nullptr), 810u);
  ASSERT_EQ(session_.bind_all(), 0u);
  EXPECT_EQ(hits(), 1u);
  EXPECT_EQ(ingot_run(session_.instance, nullptr), 0u);
}

TEST_F(BindCache, a_mapping_that_was_replaced_is_refused) {
  start();
  const Ring ring(2);
  const auto of = [](std::uint64_t generation) {
    return [generation](auto& b) { b.generation = generation; };
  };
  ASSERT_EQ(bind_frame(ring[0], of(7)), 0u);
  ASSERT_EQ(bind_frame(ring[1], of(3)), 0u) << "each mapping has a number of its own";
  ASSERT_EQ(bind_frame(ring[0], of(7)), 0u);
  EXPECT_EQ(hits(), 1u);
  // Remapped at the same address.
  ASSERT_EQ(bind_frame(ring[0], of(8)), 0u);
  EXPECT_EQ(hits(), 1u);
  EXPECT_EQ(info().invalidated, 1u) << "what was known of 7";
  expect_result_of(ring[0]);
  EXPECT_EQ(bind_frame(ring[0], of(7)), 815u);
  EXPECT_EQ(error_.slot, 0u);
  EXPECT_EQ(error_.found, 7u);
  EXPECT_EQ(error_.allowed, 8u);
  // Not bound any more, but remembered.
  ASSERT_EQ(bind_frame(ring[1], of(3)), 0u);
  EXPECT_EQ(bind_frame(ring[0], of(7)), 815u);
  ASSERT_EQ(bind_frame(ring[0]), 0u) << "a generation that is not stated is not compared";
  // Forgotten on demand.
  ASSERT_EQ(ingot_invalidate(session_.instance, ring[0], kFrame), 0u);
  EXPECT_EQ(bind_frame(ring[0], of(7)), 0u);
}

TEST_F(BindCache, two_slots_in_one_mapping_are_of_one_generation) {
  start();
  const Ring ring(1);
  ingot_binding list[2] = {session_.expected(0), session_.expected(1)};
  list[0].data = list[1].data = ring[0];
  list[0].generation = 2;
  list[1].generation = 1;
  EXPECT_EQ(ingot_bind(session_.instance, list, 2, &error_), 815u);
  EXPECT_EQ(error_.slot, 1u);
  list[1].generation = 2;
  EXPECT_EQ(ingot_bind(session_.instance, list, 2, &error_), 0u);
  list[1].generation = 3;
  EXPECT_EQ(ingot_bind(session_.instance, &list[1], 1, &error_), 815u);
  EXPECT_EQ(error_.slot, 0u) << "it is still bound to the old mapping";
  list[0].generation = 3;
  EXPECT_EQ(ingot_bind(session_.instance, list, 2, &error_), 0u);
}

TEST_F(BindCache, the_order_of_a_list_belongs_to_it) {
  start();
  const ingot_binding list[2] = {session_.expected(1), session_.expected(2)};
  const ingot_binding turned[2] = {list[1], list[0]};
  ASSERT_EQ(ingot_bind(session_.instance, list, 2, nullptr), 0u);
  ASSERT_EQ(ingot_bind(session_.instance, turned, 2, nullptr), 0u);
  EXPECT_EQ(hits(), 0u);
  ASSERT_EQ(ingot_bind(session_.instance, turned, 2, nullptr), 0u);
  ASSERT_EQ(ingot_bind(session_.instance, list, 1, nullptr), 0u);
  EXPECT_EQ(hits(), 1u);
  ASSERT_EQ(ingot_bind(session_.instance, list, 0, nullptr), 0u);
  EXPECT_EQ(hits() + misses(), 4u) << "an empty list is neither";
}

}  // namespace
}  // namespace ingot::test
