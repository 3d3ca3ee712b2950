#include "compiler/kernel/layout.h"

#include <gtest/gtest.h>

#include <numeric>

namespace ingot {
namespace {

// [1,64,56,56] in blocks of 16 channels with a halo of one pixel: [1][4][58][58][16].
Layout blocked_with_halo() {
  Layout layout = Layout::row_major(4);
  layout.block_dim = 1;
  layout.block = 16;
  layout.before = {0, 0, 1, 1};
  layout.after = {0, 0, 1, 1};
  return layout;
}

TEST(Layout, RowMajor) {
  const Layout layout = Layout::row_major(3);
  EXPECT_TRUE(layout.is_row_major());
  EXPECT_EQ(element_count(layout, {2, 3, 4}), 24);
  EXPECT_EQ(strides(layout, {2, 3, 4}), (std::vector<std::int64_t>{12, 4, 1}));
  EXPECT_EQ(address(layout, {2, 3, 4}, {1, 2, 3}), 23);
  EXPECT_EQ(element_count(Layout::row_major(0), {}), 1);
  EXPECT_EQ(address(Layout::row_major(0), {}, {}), 0);
  EXPECT_EQ(element_count(layout, {2, 0, 4}), 0);
}

TEST(Layout, BlocksAndHalo) {
  const Layout layout = blocked_with_halo();
  const Shape shape = {1, 64, 56, 56};
  EXPECT_FALSE(layout.is_row_major());
  EXPECT_EQ(element_count(layout, shape), 4 * 58 * 58 * 16);
  EXPECT_EQ(strides(layout, shape),
            (std::vector<std::int64_t>{4 * 58 * 58 * 16, 58 * 58 * 16, 58 * 16, 16}));
  EXPECT_EQ(address(layout, shape, {0, 0, -1, -1}), 0);
  EXPECT_EQ(address(layout, shape, {0, 17, 0, 0}), 58 * 58 * 16 + 58 * 16 + 16 + 1);
  EXPECT_EQ(address(layout, shape, {0, 63, 56, 56}), element_count(layout, shape) - 1);
  EXPECT_EQ(padded_extent(layout, {1, 60, 56, 56}, 1), 64);
  EXPECT_EQ(padded_extent(layout, shape, 2), 56);
}

TEST(Layout, EveryElementHasItsOwnAddress) {
  Layout layout = Layout::row_major(3);
  layout.order = {2, 0, 1};
  layout.block_dim = 2;
  layout.block = 4;
  layout.before = {1, 0, 0};
  layout.after = {0, 2, 0};
  const Shape shape = {3, 2, 6};
  std::vector<int> hits(static_cast<std::size_t>(element_count(layout, shape)), 0);
  for (std::int64_t a = -1; a < 3; ++a) {
    for (std::int64_t b = 0; b < 4; ++b) {
      for (std::int64_t c = 0; c < padded_extent(layout, shape, 2); ++c) {
        ++hits.at(static_cast<std::size_t>(address(layout, shape, {a, b, c})));
      }
    }
  }
  for (const int count : hits) EXPECT_EQ(count, 1);
}

// Five blocks in three streams of two: 0 3 | 1 4 | 2 and one that is empty.
TEST(Layout, StreamsOfBlocks) {
  Layout layout = Layout::row_major(2);
  layout.order = {1, 0};
  layout.block_dim = 1;
  layout.block = 4;
  layout.streams = 3;
  const Shape shape = {7, 18};
  EXPECT_EQ(element_count(layout, shape), 6 * 7 * 4);
  EXPECT_EQ(padded_extent(layout, shape, 1), 24);
  EXPECT_EQ(blocks_of_stream(layout, shape), 2);
  EXPECT_EQ(strides(layout, shape), (std::vector<std::int64_t>{4, 28}));
  EXPECT_EQ(address(layout, shape, {0, 4}), 2 * 28);
  EXPECT_EQ(address(layout, shape, {2, 13}), 28 + 2 * 4 + 1);
  std::vector<int> hits(static_cast<std::size_t>(element_count(layout, shape)), 0);
  for (std::int64_t a = 0; a < 7; ++a) {
    for (std::int64_t b = 0; b < 24; ++b) {
      ++hits.at(static_cast<std::size_t>(address(layout, shape, {a, b})));
    }
  }
  for (const int count : hits) EXPECT_EQ(count, 1);
  EXPECT_EQ(to_text(layout), "order 1,0 block 1x4 streams 3");
  EXPECT_EQ(parse_layout(to_text(layout), 2).value(), layout);
}

TEST(Layout, PackPutsEveryElementAtItsAddress) {
  const Shape shape = {3, 5, 4};
  std::vector<std::int64_t> numbers(60);
  std::iota(numbers.begin(), numbers.end(), 1);
  for (const DType dtype : {DType::U8, DType::I16, DType::F32, DType::I64}) {
    const Tensor tensor = Tensor::of_ints(dtype, shape, numbers);
    std::vector<Layout> layouts(5, Layout::row_major(3));
    layouts[1].order = {2, 0, 1};
    layouts[2].block_dim = 1;
    layouts[2].block = 2;
    layouts[2].before[2] = 1;
    layouts[3].block_dim = 2;
    layouts[3].block = 3;
    layouts[3].after[0] = 2;
    layouts[4].block_dim = 1;
    layouts[4].block = 2;
    layouts[4].streams = 2;
    for (const Layout& layout : layouts) {
      const std::vector<std::byte> packed = pack(layout, tensor);
      ASSERT_EQ(packed.size(),
                static_cast<std::size_t>(element_count(layout, shape) * size_bytes(dtype)));
      std::int64_t flat = 0;
      std::int64_t sum = 0;
      for (std::int64_t a = 0; a < 3; ++a) {
        for (std::int64_t b = 0; b < 5; ++b) {
          for (std::int64_t c = 0; c < 4; ++c, ++flat) {
            const std::int64_t at = address(layout, shape, {a, b, c}) * size_bytes(dtype);
            EXPECT_EQ(Scalar::load(dtype, packed.data() + at), tensor.at(flat));
          }
        }
      }
      for (std::int64_t i = 0; i < element_count(layout, shape); ++i) {
        sum += static_cast<std::int64_t>(
            Scalar::load(dtype, packed.data() + i * size_bytes(dtype)).as_double());
      }
      EXPECT_EQ(sum, 60 * 61 / 2) << "halo and padding are zero";
    }
  }
}

TEST(Layout, TextComesBack) {
  Layout permuted = Layout::row_major(3);
  permuted.order = {2, 0, 1};
  for (const Layout& layout : {Layout::row_major(3), permuted}) {
    EXPECT_EQ(parse_layout(to_text(layout), 3).value(), layout);
  }
  EXPECT_EQ(to_text(blocked_with_halo()), "order 0,1,2,3 block 1x16 halo 2:1+1 3:1+1");
  EXPECT_EQ(parse_layout(to_text(blocked_with_halo()), 4).value(), blocked_with_halo());
  EXPECT_EQ(to_text(Layout::row_major(0)), "row");
  EXPECT_EQ(parse_layout("row", 0).value(), Layout::row_major(0));
}

TEST(Layout, MalformedText) {
  for (const char* text : {"",
                           "rows",
                           "row x",
                           "order",
                           "order 0",
                           "order 0,0",
                           "order 0,2",
                           "order 0,1,",
                           "order 0,1x",
                           "order 0,1 block",
                           "order 0,1 block 2x4",
                           "order 0,1 block 1x1",
                           "order 0,1 block 1x",
                           "order 0,1 block -1x4",
                           "order 0,1 block 1x4 streams",
                           "order 0,1 block 1x4 streams 1",
                           "order 0,1 block 1x4 streams -2",
                           "order 0,1 streams 2",
                           "order 0,1 halo",
                           "order 0,1 halo 2:1+1",
                           "order 0,1 halo 0:1",
                           "order 0,1 halo 0:-1+1",
                           "order 0,1 block 1x4 halo 1:1+1",
                           "order 0,1 block 1x99999999999999999999",
                           "order 0,1 row"}) {
    const auto result = parse_layout(text, 2);
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_EQ(result.error().exit, ExitCode::Malformed);
  }
}

}  // namespace
}  // namespace ingot
