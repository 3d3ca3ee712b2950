#include "compiler/lowering/zero_halo.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

// Zeros exactly where no element of the value lies, padding of blocks aside.
void expect_zeros_around(const Shape& shape, const std::string& layout_text) {
  const Layout layout = *parse_layout(layout_text, static_cast<int>(shape.size()));
  const auto kernel = zero_halo_kernel(DType::F32, shape, layout, *find_target("x86-64-v3"));
  ASSERT_TRUE(kernel) << layout_text;
  const auto valid = validate_kernel(*kernel);
  ASSERT_TRUE(valid) << to_line(valid.error().diagnostics[0]);
  std::vector<float> memory(static_cast<std::size_t>(element_count(layout, shape)), 1.0F);
  const std::array<std::byte*, 1> buffers{reinterpret_cast<std::byte*>(memory.data())};
  ASSERT_TRUE(interpret(*kernel, buffers));
  std::vector<bool> inside(memory.size());
  Shape padded = shape;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    padded[d] = padded_extent(layout, shape, static_cast<int>(d));
  }
  std::vector<std::int64_t> at(shape.size(), 0);
  for (std::int64_t i = 0; i < element_count(padded); ++i) {
    inside[static_cast<std::size_t>(address(layout, shape, at))] = true;
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < padded[d]) break;
      at[d] = 0;
    }
  }
  for (std::size_t i = 0; i < memory.size(); ++i) {
    EXPECT_EQ(memory[i], inside[i] ? 1 : 0) << layout_text << " at " << i;
  }
}

TEST(ZeroHalo, NothingElseIsTouched) {
  expect_zeros_around({1, 20, 30, 31}, "order 0,1,2,3 block 1x16 halo 2:1+3 3:1+2");
  expect_zeros_around({2, 5, 19, 21}, "order 0,1,2,3 halo 2:1+1 3:0+1");
  expect_zeros_around({1, 5, 22, 19}, "order 0,2,3,1 halo 2:1+1 3:1+1");
  expect_zeros_around({4, 30}, "order 0,1 halo 1:3+0");
}

TEST(ZeroHalo, IsAFillWhereThatIsNoMoreWork) {
  const Target target = *find_target("x86-64-v4");
  EXPECT_FALSE(zero_halo_kernel(DType::F32, {1, 16, 2, 2},
                                *parse_layout("order 0,1,2,3 block 1x16 halo 2:1+1 3:1+1", 4),
                                target));
  EXPECT_FALSE(zero_halo_kernel(DType::F32, {8, 8}, Layout::row_major(2), target));
}

}  // namespace
}  // namespace ingot
