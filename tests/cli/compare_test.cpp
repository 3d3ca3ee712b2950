#include "cli/compare.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace ingot::cli {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor floats(const std::vector<double>& values) {
  return Tensor::of_floats(DType::F32, {static_cast<std::int64_t>(values.size())}, values);
}

Comparison compare_floats(const std::vector<double>& expected, const std::vector<double>& found) {
  return compare(floats(expected), floats(found).bytes);
}

TEST(Compare, EqualValues) {
  const Comparison c = compare_floats({1, -2, 0}, {1, -2, 0});
  EXPECT_EQ(c.max_abs_error, 0);
  EXPECT_EQ(c.max_rel_error, 0);
  EXPECT_EQ(c.largest_expected, 2);
  EXPECT_DOUBLE_EQ(c.cosine, 1);
}

TEST(Compare, NamesTheFirstWorstElement) {
  const Comparison c = compare_floats({4, 8, 8}, {4, 7, 9});
  EXPECT_EQ(c.max_abs_error, 1);
  EXPECT_EQ(c.max_rel_error, 0.125);
  EXPECT_EQ(c.worst_index, 1);
  EXPECT_EQ(c.worst_found, 7);
  EXPECT_EQ(c.worst_expected, 8);
}

TEST(Compare, NotANumberEqualsOnlyItself) {
  EXPECT_EQ(compare_floats({kNan, kInf}, {kNan, kInf}).max_abs_error, 0);
  EXPECT_EQ(compare_floats({1}, {kNan}).max_abs_error, kInf);
  EXPECT_EQ(compare_floats({kNan}, {1}).max_abs_error, kInf);
  EXPECT_EQ(compare_floats({kInf}, {-kInf}).max_abs_error, kInf);
}

TEST(Compare, ZerosHaveACosine) {
  EXPECT_EQ(compare_floats({0, 0}, {0, 0}).cosine, 1);
  EXPECT_EQ(compare_floats({0, 0}, {0, 1}).cosine, 0);
}

TEST(Compare, LargeIntegersAreSubtractedExactly) {
  const std::array<std::int64_t, 1> a = {(std::int64_t{1} << 60) + 1};
  const std::array<std::int64_t, 1> b = {std::int64_t{1} << 60};
  const Tensor expected = Tensor::of_ints(DType::I64, {1}, a);
  EXPECT_EQ(compare(expected, Tensor::of_ints(DType::I64, {1}, b).bytes).max_abs_error, 1);
}

TEST(Compare, Indices) {
  EXPECT_EQ(index_text({2, 3, 4}, 23), "[1,2,3]");
  EXPECT_EQ(index_text({}, 0), "[]");
  EXPECT_EQ(index_text({0, 2}, 0), "[]");
}

}  // namespace
}  // namespace ingot::cli
