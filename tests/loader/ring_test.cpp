// A queue that is kept as a ring: a state that is written in place, and its index with two buffers.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "session.h"

namespace ingot::test {
namespace {

constexpr std::uint32_t kOut = 2, kRing = 3, kIndex = 4;

class Ring : public testing::Test {
 protected:
  void SetUp() override {
    REQUIRE_RUNNABLE();
    ASSERT_EQ(session_.start(ring_artifact()), 0u);
  }

  // One frame whose newest entry holds `value`, in element 5.
  ingot_status run(float value) {
    std::memcpy(&session_.packed[256 + 4 * 5], &value, sizeof value);
    return ingot_run(session_.instance, &frame_);
  }

  float entry(int n) const {
    return static_cast<const float*>(ingot_slot_data(session_.instance, kRing))[8 * n + 5];
  }
  std::int32_t index() const {
    return *static_cast<const std::int32_t*>(ingot_slot_data(session_.instance, kIndex));
  }

  Session session_;
  ingot_frame frame_{};
};

TEST_F(Ring, holds_the_last_entries) {
  std::vector<float> values = {0, 0};
  for (int n = 0; n < 10; ++n) {
    values.push_back(static_cast<float>(n * n + 1));
    ASSERT_EQ(run(values.back()), 0u);
    ASSERT_EQ(frame_.valid, 1u);
    const std::size_t last = values.size() - 1;
    EXPECT_EQ(session_.out[5], values[last] + values[last - 1] + values[last - 2]) << n;
    EXPECT_EQ(index(), (n + 1) % 3);
    EXPECT_EQ(entry(n % 3), values[last]);
  }
}

// Whatever rejected it, the frame wrote the spare entry only, and the next one writes it again.
TEST_F(Ring, rejected_frames_leave_no_trace) {
  Session good;
  ASSERT_EQ(good.start(ring_artifact()), 0u);
  for (int n = 0; n < 8; ++n) {
    const float kept[3] = {entry(0), entry(1), entry(2)};
    const std::int32_t spare = index();
    const auto out = session_.out;
    const float bad[] = {std::nanf(""), std::numeric_limits<float>::infinity()};
    EXPECT_EQ(run(bad[n % 2]), 821u);
    EXPECT_EQ(frame_.slot, kRing);
    EXPECT_EQ(frame_.element, static_cast<std::uint64_t>(8 * spare + 5));
    EXPECT_EQ(frame_.accepted, 0u);
    EXPECT_EQ(ingot_outputs_valid(session_.instance, frame_.generation), 0u);
    EXPECT_EQ(index(), spare);
    for (int i = 0; i < 3; ++i) {
      if (i != spare) {
        EXPECT_EQ(entry(i), kept[i]);
      }
    }
    EXPECT_EQ(session_.out, out) << "the copied output still holds the last accepted frame";

    const auto value = static_cast<float>(n + 3);
    ASSERT_EQ(run(value), 0u) << n;
    std::memcpy(&good.packed[256 + 4 * 5], &value, sizeof value);
    ASSERT_EQ(ingot_run(good.instance, nullptr), 0u);
    EXPECT_EQ(session_.out, good.out) << n;
    for (const std::uint32_t slot : {kRing, kIndex}) {
      EXPECT_EQ(std::memcmp(ingot_slot_data(session_.instance, slot),
                            ingot_slot_data(good.instance, slot), slot == kRing ? 96 : 4),
                0);
    }
  }
}

TEST_F(Ring, late_and_failed_frames_do_not_advance_it) {
  ingot_instance_options options{};
  options.deadline_us = 1000;
  Session late;
  ASSERT_EQ(ingot_instance_create(session_.artifact, &options, &late.instance, nullptr), 0u);
  late.artifact = session_.artifact;
  ASSERT_EQ(late.bind_all(), 0u);
  // After the entry was written.
  ingot_set_call_hook(
      late.instance,
      [](void*, std::uint32_t call, std::uint64_t) {
        const timespec pause = {0, 2000000};
        if (call == 0) nanosleep(&pause, nullptr);
      },
      nullptr);
  EXPECT_EQ(ingot_run(late.instance, &frame_), 823u);
  EXPECT_EQ(*static_cast<const std::int32_t*>(ingot_slot_data(late.instance, kIndex)), 0);
  ingot_instance_destroy(late.instance);
  late.instance = nullptr;
  late.artifact = nullptr;

  ArtifactBuilder failing = ring_artifact();
  for (TestVariant& v : failing.variants) v.args.back().immediate = 2;
  Session failed;
  ASSERT_EQ(failed.start(failing), 0u);
  EXPECT_EQ(ingot_run(failed.instance, &frame_), 820u);
  EXPECT_EQ(*static_cast<const std::int32_t*>(ingot_slot_data(failed.instance, kIndex)), 0);
}

TEST_F(Ring, reset_gives_the_entries_of_the_artifact) {
  std::vector<std::array<float, 16>> first;
  for (int round = 0; round < 3; ++round) {
    for (int n = 0; n < 5 + round; ++n) {
      ASSERT_EQ(run(static_cast<float>(n + 7)), 0u);
      if (round == 0) first.push_back(session_.out);
      if (n < 5) {
        EXPECT_EQ(session_.out, first[static_cast<std::size_t>(n)]) << round;
      }
    }
    EXPECT_EQ(run(std::nanf("")), 821u);
    ASSERT_EQ(ingot_reset(session_.instance), 0u);
    const auto* entries = static_cast<const float*>(ingot_slot_data(session_.instance, kRing));
    EXPECT_EQ(entries[0], 0.0f);
    EXPECT_EQ(entries[8], 1.0f);
    EXPECT_EQ(entries[16], 2.0f);
    EXPECT_EQ(index(), 0);
  }
}

TEST_F(Ring, can_be_read_and_set) {
  ASSERT_EQ(run(4), 0u);
  std::array<float, 24> entries{};
  std::memcpy(entries.data(), ingot_slot_data(session_.instance, kRing), 96);
  const std::int32_t at = index();
  ASSERT_EQ(run(5), 0u);
  const auto expected = session_.out;
  ASSERT_EQ(run(6), 0u);
  ASSERT_EQ(ingot_set_state(session_.instance, kRing, entries.data(), 96), 0u);
  ASSERT_EQ(ingot_set_state(session_.instance, kIndex, &at, 4), 0u);
  ASSERT_EQ(run(5), 0u);
  EXPECT_EQ(session_.out, expected);
}

// Of a history that is not finite every frame is rejected, until it is set anew.
TEST_F(Ring, all_entries_are_looked_at) {
  ASSERT_EQ(run(4), 0u);
  std::array<float, 24> entries{};
  std::memcpy(entries.data(), ingot_slot_data(session_.instance, kRing), 96);
  entries[2] = std::nanf("");
  ASSERT_EQ(ingot_set_state(session_.instance, kRing, entries.data(), 96), 0u);
  for (int n = 0; n < 4; ++n) {
    EXPECT_EQ(run(5), 821u);
    EXPECT_EQ(frame_.element, 2u);
  }
  ASSERT_EQ(ingot_reset(session_.instance), 0u);
  EXPECT_EQ(run(5), 0u);
}

TEST_F(Ring, self_test_compares_both_states) {
  ingot_slot_report reports[8];
  std::uint32_t count = 0;
  ASSERT_EQ(ingot_self_test(session_.artifact, reports, 8, &count, nullptr), 0u);
  ASSERT_EQ(count, 3u);
  EXPECT_EQ(reports[0].slot, kOut);
  EXPECT_EQ(reports[1].slot, kRing);
  EXPECT_EQ(reports[2].slot, kIndex);
  const ArtifactBuilder good = ring_artifact();
  for (const std::uint32_t slot : {kRing, kIndex}) {
    ArtifactBuilder changed = ring_artifact();
    for (const IngotRefRecord& ref : good.refs) {
      if (ref.io == slot && ref.step == 3) changed.refdata[ref.offset] ^= 1;
    }
    Session session;
    ASSERT_EQ(session.open(changed), 0u);
    ingot_error error;
    EXPECT_EQ(ingot_self_test(session.artifact, nullptr, 0, nullptr, &error), 701u);
    EXPECT_EQ(error.slot, slot);
    EXPECT_EQ(error.element_index, 0u);
  }
}

TEST_F(Ring, poison_changes_nothing) {
  Session noisy;
  ASSERT_EQ(noisy.start(ring_artifact(), 0, INGOT_RUN_POISON), 0u);
  for (int n = 0; n < 5; ++n) {
    ASSERT_EQ(run(static_cast<float>(n)), 0u);
    noisy.packed = session_.packed;
    ASSERT_EQ(ingot_run(noisy.instance, nullptr), 0u);
    EXPECT_EQ(noisy.out, session_.out);
  }
}

}  // namespace
}  // namespace ingot::test
