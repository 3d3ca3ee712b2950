#include "compiler/graph/affine.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

TEST(AffineIndex, TermsAreSortedAndMerged) {
  AffineIndex index = AffineIndex::of_axis(3);
  index.add(0, 2).add(3, 4).add(1, 5).add(1, -5);
  EXPECT_EQ(to_text(index), "2*a0+5*a3");
  EXPECT_EQ(index.coefficient_of(3), 5);
  EXPECT_EQ(index.coefficient_of(1), 0);
  EXPECT_EQ(AffineIndex::of_axis(2, 0, 7), AffineIndex::constant(7));
}

TEST(AffineIndex, TextComesBack) {
  for (const char* text :
       {"0", "-3", "a0", "-a1+4", "2*a0+a3-1", "-2*a0-a1", "(a1+1)/2", "(0)/3"}) {
    const auto index = affine_from_text(text);
    ASSERT_TRUE(index.has_value()) << text;
    EXPECT_EQ(to_text(*index), text);
  }
}

TEST(AffineIndex, RefusesOtherText) {
  for (const char* text : {"", "b0", "a", "2a0", "a0 +1", "(a0", "(a0)/0", "a0/2", "a0+", "a0a1"}) {
    EXPECT_EQ(affine_from_text(text), std::nullopt) << text;
  }
}

TEST(AffineIndex, Bounds) {
  const AffineIndex index = AffineIndex::of_axis(0, -2, 3).add(1, 5);
  const IndexBounds range = bounds(index, {4, 3});
  EXPECT_EQ(range.min, 3 - 6);
  EXPECT_EQ(range.max, 3 + 10);
  EXPECT_EQ(bounds(index, {4, 0}).min, 0);
  EXPECT_EQ(bounds(index, {4, 0}).max, -1);
}

}  // namespace
}  // namespace ingot
