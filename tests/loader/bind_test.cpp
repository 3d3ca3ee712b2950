// Binding: whatever the caller states is compared; a list is taken whole or not at all.
#include <gtest/gtest.h>

#include "session.h"

namespace ingot::test {
namespace {

class Bind : public testing::Test {
 protected:
  void SetUp() override {
    REQUIRE_RUNNABLE();
    ASSERT_EQ(session_.open(ArtifactBuilder()), 0u);
  }

  template <typename Change>
  ingot_status changed(std::uint32_t slot, Change change) {
    ingot_binding binding = session_.expected(slot);
    change(binding);
    return ingot_bind(session_.instance, &binding, 1, &error_);
  }

  Session session_;
  ingot_error error_{};
};

TEST_F(Bind, a_run_without_every_input_is_refused) {
  ingot_frame frame;
  EXPECT_EQ(ingot_run(session_.instance, &frame), 810u);
  EXPECT_EQ(frame.slot, 0u);
  EXPECT_EQ(frame.accepted, 0u);
  ASSERT_EQ(session_.bind_all(), 0u);
  EXPECT_EQ(ingot_run(session_.instance, &frame), 0u);
  ingot_unbind_all(session_.instance);
  EXPECT_EQ(ingot_run(session_.instance, &frame), 810u);
}

TEST_F(Bind, each_difference_has_its_own_number) {
  EXPECT_EQ(changed(1, [](auto& b) { b.data = nullptr; }), 802u);
  EXPECT_EQ(changed(1, [](auto& b) { b.dtype = INGOT_ELEMENT_I8; }), 803u);
  EXPECT_EQ(changed(1, [](auto& b) { b.rank = 2; }), 804u);
  EXPECT_EQ(changed(1, [](auto& b) { ++b.shape[0]; }), 805u);
  EXPECT_EQ(changed(1, [](auto& b) { --b.shape[0]; }), 805u);
  EXPECT_EQ(changed(2, [](auto& b) { b.strides[0] = 128; }), 806u);
  EXPECT_EQ(changed(1, [](auto& b) { --b.nbytes; }), 807u);
  EXPECT_EQ(changed(1, [](auto& b) { ++b.nbytes; }), 807u);
  EXPECT_EQ(changed(0, [](auto& b) { --b.nbytes; }), 807u);
  EXPECT_EQ(changed(0, [](auto& b) { b.data = static_cast<std::uint8_t*>(b.data) + 64; }), 808u);
  EXPECT_EQ(changed(2, [](auto& b) { b.data = static_cast<std::uint8_t*>(b.data) + 2; }), 808u);
  EXPECT_EQ(changed(0, [](auto& b) { b.memory = INGOT_MEMORY_NON_COHERENT; }), 809u);
  EXPECT_EQ(changed(1, [](auto& b) { b.memory = INGOT_MEMORY_DEVICE; }), 809u);
  EXPECT_EQ(changed(1, [](auto& b) { b.name = "pack"; }), 811u);
  EXPECT_EQ(changed(1, [](auto& b) { b.slot = 4; }), 811u);
  EXPECT_EQ(changed(1, [](auto& b) { b.slot = 3; }), 811u) << "states belong to the instance";
  EXPECT_EQ(changed(0, [](auto& b) { b.layout = nullptr; }), 814u);
  const ingot_binding twice[2] = {session_.expected(1), session_.expected(1)};
  EXPECT_EQ(ingot_bind(session_.instance, twice, 2, &error_), 812u);
  EXPECT_EQ(error_.slot, 1u);
  // Allowed: non-coherent memory that is copied, more bytes behind a frame, names.
  EXPECT_EQ(changed(1, [](auto& b) { b.memory = INGOT_MEMORY_NON_COHERENT; }), 0u);
  EXPECT_EQ(changed(0, [](auto& b) { b.nbytes = 4096; }), 0u);
  EXPECT_EQ(changed(0, [](auto& b) { b.name = "packed"; }), 805u);
}

TEST_F(Bind, length_four_bound_as_eight_is_refused) {
  ingot_binding binding = session_.expected(2);
  binding.nbytes = 128;
  binding.shape[1] = 32;
  binding.strides[0] = 128;
  EXPECT_EQ(ingot_bind(session_.instance, &binding, 1, &error_), 805u);
  EXPECT_EQ(error_.found, 32u);
  EXPECT_EQ(error_.allowed, 16u);
}

TEST_F(Bind, a_frame_of_another_layout_with_enough_bytes_is_refused) {
  for (int number = 0; number < 6; ++number) {
    ingot_layout other = session_.layout;
    std::uint32_t* const fields[5] = {&other.width, &other.height, &other.stride, &other.y_height,
                                      &other.uv_height};
    if (number < 5) *fields[number] += 2;
    if (number == 5) other.uv_offset += 64;
    EXPECT_EQ(changed(0, [&](auto& b) { b.layout = &other, b.nbytes = 4096; }), 814u);
    EXPECT_NE(error_.layout_found[number], error_.layout_allowed[number]);
  }
}

TEST_F(Bind, overlaps) {
  alignas(64) static std::uint8_t memory[2048];
  const auto two = [&](std::uint8_t* input, std::uint8_t* output) {
    ingot_binding list[2] = {session_.expected(1), session_.expected(2)};
    list[0].data = input;
    list[1].data = output;
    return ingot_bind(session_.instance, list, 2, &error_);
  };
  EXPECT_EQ(two(memory, memory + 512), 0u) << "adjacent";
  EXPECT_EQ(two(memory + 64, memory), 0u) << "adjacent";
  EXPECT_EQ(two(memory, memory), 813u);
  EXPECT_EQ(two(memory, memory + 508), 813u);
  EXPECT_EQ(two(memory + 63, memory), 813u) << "one byte";
  ingot_binding frame = session_.expected(0);
  ingot_binding packed = session_.expected(1);
  packed.data = frame.data;
  const ingot_binding inputs[2] = {frame, packed};
  EXPECT_EQ(ingot_bind(session_.instance, inputs, 2, &error_), 0u) << "inputs may share memory";
  auto* state = const_cast<void*>(ingot_slot_data(session_.instance, 3));
  EXPECT_EQ(changed(2, [&](auto& b) { b.data = state; }), 813u) << "the instance's own memory";
  ingot_io_info io;
  ingot_io_describe(session_.artifact, 0, &io);
  auto* name = const_cast<char*>(io.name);
  EXPECT_EQ(changed(2,
                    [&](auto& b) {
                      b.data =
                          reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(name) & ~63ull);
                    }),
            809u)
      << "the artifact";
}

TEST_F(Bind, a_refused_list_changes_nothing) {
  ASSERT_EQ(session_.bind_all(), 0u);
  std::array<float, 16> other{};
  ingot_binding list[2] = {session_.expected(2), session_.expected(1)};
  list[0].data = other.data();
  list[1].dtype = INGOT_ELEMENT_F32;
  EXPECT_EQ(ingot_bind(session_.instance, list, 2, &error_), 803u);
  EXPECT_EQ(ingot_run(session_.instance, nullptr), 0u);
  EXPECT_EQ(other[3], 0.0f);
  EXPECT_NE(session_.out[3], 0.0f);
}

}  // namespace
}  // namespace ingot::test
