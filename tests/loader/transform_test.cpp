// Matrices are judged before every frame.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "session.h"

namespace ingot::test {
namespace {

ArtifactBuilder with_transform(IngotTransformPolicy policy, std::uint32_t width = 4,
                               std::uint32_t height = 4) {
  ArtifactBuilder builder;
  IngotTransformRecord t{};
  t.io = 1;
  t.camera = 0;
  t.width = width;
  t.height = height;
  t.kind = INGOT_TRANSFORM_CABIN;
  t.policy = static_cast<std::uint16_t>(policy);
  t.fill_buffer = t.first_call = t.last_call = INGOT_NO_INDEX;
  if (policy == INGOT_TRANSFORM_FILL) {
    t.width = t.height = 8;  // the 64 bytes that call 0 writes
    t.fill_buffer = 6;
    t.first_call = t.last_call = 0;
    t.fill_luma = 16;
  }
  for (TestVariant& v : builder.variants) v.transforms = {t};
  return builder;
}

class Transform : public testing::Test {
 protected:
  void SetUp() override { REQUIRE_RUNNABLE(); }

  ingot_status run(std::array<float, 9> matrix, std::uint32_t width = 4, std::uint32_t height = 4) {
    Session session;
    const ingot_status status =
        session.start(with_transform(INGOT_TRANSFORM_REFUSE, width, height));
    if (status != 0) return status;
    std::memcpy(session.packed.data(), matrix.data(), sizeof matrix);
    frame_ = {};
    return ingot_run(session.instance, &frame_);
  }

  ingot_frame frame_{};
};

TEST_F(Transform, numbers) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(run({1, 0, 0, 0, 1, 0, 0, 0, 1}), 0u);
  EXPECT_EQ(run({-1, 0, 0, 0, -1, 0, 0, 0, -1}), 0u) << "either sign of D";
  EXPECT_EQ(run({1, 0, 0, 0, 1, 0, 0, 0, std::nanf("")}), 830u);
  EXPECT_EQ(frame_.slot, 1u);
  EXPECT_EQ(frame_.accepted, 0u);
  EXPECT_EQ(run({1, 0, inf, 0, 1, 0, 0, 0, 1}), 830u);
  EXPECT_EQ(run({0, 0, 0, 0, 0, 0, 0, 0, 0}), 831u);
  EXPECT_EQ(run({0, 0, -0.0f, 0, 0, 0, 0, 0, 0}), 831u);
  EXPECT_EQ(run({1, 0, 0, 0, 1, 0, 0, 0, 0}), 832u) << "bottom row zero";
  EXPECT_EQ(run({1, 0, 0, 0, 1, 0, -1, 0, 1.5f}), 832u) << "D crosses zero inside";
  EXPECT_EQ(run({1, 0, 0, 0, 1, 0, -0.25f, 0, 1}), 0u) << "and outside";
  EXPECT_EQ(run({1, 0, 0, 0, 1, 0, 0, 0, std::ldexp(1.0f, -61)}), 832u);
  EXPECT_EQ(run({0, 0, 0, 0, 0, 0, 0, 0, std::ldexp(1.0f, -60)}), 0u);
  EXPECT_EQ(run({1, 0, 4194304, 0, 1, 0, 0, 0, 1}), 833u);
  EXPECT_EQ(run({1, 0, 0, 0, 1, -4194304, 0, 0, 1}), 833u);
  EXPECT_EQ(run({1, 0, 4194300, 0, 1, 0, 0, 0, 1}), 0u);
}

TEST_F(Transform, a_filled_frame_runs_on_but_is_not_valid) {
  Session session;
  ASSERT_EQ(session.start(with_transform(INGOT_TRANSFORM_FILL)), 0u);
  ingot_frame frame;
  EXPECT_EQ(ingot_run(session.instance, &frame), 0u);
  EXPECT_EQ(session.out[0], 0.25f * session.frame[0]);
  ingot_reset(session.instance);
  std::memset(session.packed.data(), 0, 36);
  EXPECT_EQ(ingot_run(session.instance, &frame), 831u);
  EXPECT_EQ(frame.accepted, 1u);
  EXPECT_EQ(frame.valid, 0u);
  EXPECT_NE(frame.flags & INGOT_FRAME_FILLED, 0u);
  const std::uint32_t filled = 0x10101010;
  float value = 0;
  std::memcpy(&value, &filled, 4);
  EXPECT_EQ(session.out[0], 0.25f * value) << "bytes of 16 stand where the warp would be";
}

// Two warps that share their calls: one bad matrix replaces both.
TEST_F(Transform, one_bad_matrix_fills_for_all_records_of_its_calls) {
  ArtifactBuilder builder = with_transform(INGOT_TRANSFORM_FILL);
  for (TestVariant& v : builder.variants) {
    v.transforms[0].height = 4;
    IngotTransformRecord second = v.transforms[0];
    second.matrix_offset = 36;
    second.fill_offset = 32;
    second.fill_luma = 32;
    v.transforms.push_back(second);
  }
  Session session;
  ASSERT_EQ(session.start(builder), 0u);
  const float identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  std::memcpy(session.packed.data() + 36, identity, sizeof identity);
  std::memset(session.packed.data(), 0, 36);
  ingot_frame frame;
  EXPECT_EQ(ingot_run(session.instance, &frame), 831u);
  const std::uint32_t filled = 0x20202020;
  float value = 0;
  std::memcpy(&value, &filled, 4);
  EXPECT_EQ(session.out[8], 2.25f * value) << "the second fill, seen through the ninth weight";
}

TEST_F(Transform, ranges_of_calls_are_equal_or_do_not_meet) {
  const TestPolicy device;
  for (const std::uint32_t first : {0u, 1u}) {
    ArtifactBuilder builder = with_transform(INGOT_TRANSFORM_FILL);
    for (TestVariant& v : builder.variants) {
      v.transforms[0].last_call = 1;
      v.transforms.push_back(v.transforms[0]);
      v.transforms[1].first_call = first;
    }
    EXPECT_EQ(open_status(builder.seal(), device.policy), first == 0 ? 0u : 426u);
  }
}

// A call may be skipped only if nobody misses what it writes.
TEST_F(Transform, what_is_skipped_is_filled_or_seen_by_nobody_else) {
  const TestPolicy device;
  const auto status = [&](auto change) {
    ArtifactBuilder builder = with_transform(INGOT_TRANSFORM_FILL);
    for (TestVariant& v : builder.variants) change(v.transforms);
    return open_status(builder.seal(), device.policy);
  };
  using Records = std::vector<IngotTransformRecord>;
  EXPECT_EQ(status([](Records& r) { r[0].last_call = 1; }), 0u) << "call 1 writes hidden scratch";
  EXPECT_EQ(status([](Records& r) { r[0].last_call = 2; }), 426u) << "call 3 reads what 2 writes";
  EXPECT_EQ(status([](Records& r) { r[0].height = 7; }), 426u) << "the last 8 bytes are missing";
  const auto halves = [&](std::uint64_t first, std::uint64_t second) {
    return status([&](Records& r) {
      r[0].height = 4;
      r.push_back(r[0]);
      r[0].fill_offset = first;
      r[1].fill_offset = second;
    });
  };
  EXPECT_EQ(halves(0, 32), 0u);
  EXPECT_EQ(halves(0, 24), 426u);
  EXPECT_EQ(halves(8, 32), 426u);
  // Call 3 writes the output and the next state; call 5 is a barrier.
  EXPECT_EQ(status([](Records& r) {
              r[0].fill_buffer = 2;
              r[0].first_call = r[0].last_call = 3;
            }),
            426u);
  EXPECT_EQ(status([](Records& r) {
              r[0].fill_buffer = 2;
              r[0].first_call = r[0].last_call = 3;
              r.push_back(r[0]);
              r[1].fill_buffer = 4;
            }),
            0u);
  EXPECT_EQ(status([](Records& r) {
              r[0].fill_buffer = 2;
              r[0].first_call = 4;
              r[0].last_call = 5;
            }),
            426u);
}

TEST_F(Transform, records_are_checked) {
  const TestPolicy device;
  const auto status = [&](IngotTransformPolicy policy, auto change) {
    ArtifactBuilder builder = with_transform(policy);
    change(builder.variants[0].transforms[0]);
    return open_status(builder.seal(), device.policy);
  };
  const auto refuse = INGOT_TRANSFORM_REFUSE;
  const auto fill = INGOT_TRANSFORM_FILL;
  EXPECT_EQ(status(refuse, [](auto&) {}), 0u);
  EXPECT_EQ(status(fill, [](auto&) {}), 0u);
  EXPECT_EQ(status(refuse, [](auto& t) { t.io = 2; }), 426u);
  EXPECT_EQ(status(refuse, [](auto& t) { t.io = 99; }), 426u);
  EXPECT_EQ(status(refuse, [](auto& t) { t.camera = 1; }), 426u);
  EXPECT_EQ(status(refuse, [](auto& t) { t.matrix_offset = 2; }), 426u);
  EXPECT_EQ(status(refuse, [](auto& t) { t.matrix_offset = 480; }), 426u);
  EXPECT_EQ(status(refuse, [](auto& t) { t.matrix_offset = 0 - 4ull; }), 426u);
  EXPECT_EQ(status(refuse, [](auto& t) { t.width = 0; }), 426u);
  EXPECT_EQ(status(refuse, [](auto& t) { t.kind = 3; }), 426u);
  EXPECT_EQ(status(refuse, [](auto& t) { t.policy = 3; }), 426u);
  EXPECT_EQ(status(refuse, [](auto& t) { t.fill_luma = 1; }), 426u);
  EXPECT_EQ(status(refuse, [](auto& t) { t.reserved[13] = 1; }), 426u);
  EXPECT_EQ(status(fill, [](auto& t) { t.fill_buffer = 5; }), 426u);
  EXPECT_EQ(status(fill, [](auto& t) { t.fill_buffer = 99; }), 426u);
  EXPECT_EQ(status(fill, [](auto& t) { t.last_call = 6; }), 426u);
  EXPECT_EQ(status(fill, [](auto& t) { t.last_call = 3; }), 426u) << "buffer not alive there";
  EXPECT_EQ(status(fill, [](auto& t) { t.fill_offset = 49; }), 426u);
  EXPECT_EQ(status(fill, [](auto& t) { t.width = 32768; }), 426u);
  EXPECT_EQ(status(fill, [](auto& t) { t.fill_chroma = 128; }), 426u);
}

}  // namespace
}  // namespace ingot::test
