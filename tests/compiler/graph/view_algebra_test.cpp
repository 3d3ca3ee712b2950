// Composition of views, by brute force: the composed view must give what the two views give one
// after the other, and where none is offered there must be a reason.
#include "compiler/graph/view_algebra.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/graph_interpreter.h"

namespace ingot {
namespace {

// Counts up from 1, so that no element equals a fill of 0 or -1.
Tensor counting(const Shape& shape) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < element_count(shape); ++i) values.push_back(i + 1);
  return Tensor::of_ints(DType::I32, shape, values);
}

std::vector<std::int64_t> apply(const Shape& from,
                                const std::vector<std::pair<ViewOp, Shape>>& views) {
  Graph graph;
  Node input;
  input.op = InputOp{"x"};
  input.dtype = DType::I32;
  input.shape = from;
  graph.nodes.push_back(input);
  for (const auto& [view, shape] : views) {
    Node node;
    node.op = view;
    node.dtype = DType::I32;
    node.shape = shape;
    node.inputs = {ValueId{static_cast<std::uint32_t>(graph.nodes.size() - 1)}};
    graph.nodes.push_back(node);
  }
  const auto valid = validate_graph(graph);
  EXPECT_TRUE(valid.has_value()) << print_graph(graph) << to_line(valid.error().diagnostics[0]);
  return ints(interpret_graph(graph, {{"x", counting(from)}}).values.back());
}

class RandomViews {
 public:
  explicit RandomViews(unsigned seed) : random_(seed) {}

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  Shape shape() {
    Shape result(static_cast<std::size_t>(between(0, 3)));
    for (auto& extent : result) extent = between(1, 4);
    return result;
  }
  // With a fill if it may leave.
  ViewOp view(const Shape& from, const Shape& to) {
    ViewOp op;
    bool leaves = false;
    for (const std::int64_t extent : from) {
      AffineIndex index = AffineIndex::constant(between(-1, extent));
      for (std::size_t axis = 0; axis < to.size(); ++axis) {
        if (between(0, 2) == 0) index.add(static_cast<int>(axis), between(-2, 2));
      }
      if (between(0, 3) == 0) index.divisor = between(1, 3);
      // Mostly plain ones: they are what merges.
      if (!to.empty() && between(0, 1) == 0) {
        index = AffineIndex::of_axis(static_cast<int>(between(0, std::ssize(to) - 1)),
                                     between(0, 1) * 2 - 1, between(-1, extent));
      }
      leaves = leaves || may_leave(index, extent, to);
      op.index.push_back(std::move(index));
    }
    if (leaves) op.fill = Scalar::of_int(DType::I32, between(-1, 0));
    return op;
  }

 private:
  std::mt19937 random_;
};

TEST(ComposeViews, EqualsOneAfterTheOther) {
  RandomViews random(1);
  int merged = 0, with_fill = 0, with_divisor = 0;
  for (int round = 0; round < 20000; ++round) {
    const Shape from = random.shape(), middle = random.shape(), to = random.shape();
    ViewOp inner = random.view(from, middle);
    ViewOp outer = random.view(middle, to);
    const auto written = apply(from, {{inner, middle}, {outer, to}});
    normalize_view(inner, from, middle);
    normalize_view(outer, middle, to);
    ASSERT_EQ(apply(from, {{inner, middle}, {outer, to}}), written) << "round " << round;
    const auto composed = compose_views(inner, from, middle, outer, to);
    if (!composed) {
      // Without an outer fill nothing stands in the way.
      ASSERT_TRUE(outer.fill.has_value()) << "round " << round;
      continue;
    }
    ++merged;
    with_fill += outer.fill.has_value() ? 1 : 0;
    for (const AffineIndex& index : composed->index) with_divisor += index.divisor > 1 ? 1 : 0;
    ASSERT_EQ(apply(from, {{*composed, to}}), written) << "round " << round;
  }
  EXPECT_GT(merged, 2000);
  EXPECT_GT(with_fill, 500);
  EXPECT_GT(with_divisor, 100);
}

TEST(ComposeViews, ZeroInsertionOfAFlip) {
  const Scalar zero = Scalar::zero(DType::I32);
  const ViewOp flip{{AffineIndex::of_axis(0, -1, 3)}, std::nullopt};
  AffineIndex spread = AffineIndex::of_axis(0);
  spread.divisor = 2;
  const auto composed = compose_views(flip, {4}, {4}, ViewOp{{spread}, zero}, {7});
  ASSERT_TRUE(composed.has_value());
  EXPECT_EQ(to_text(composed->index[0]), "(-a0+6)/2");
  EXPECT_EQ(composed->fill, zero);
}

TEST(ComposeViews, StepsOfTwoDoNotHideRemainders) {
  // mid[m] = in[2*m], then out[a] = mid[a/2]: in[a] would also answer for odd a.
  const ViewOp strided{{AffineIndex::of_axis(0, 2)}, std::nullopt};
  AffineIndex spread = AffineIndex::of_axis(0);
  spread.divisor = 2;
  const ViewOp outer{{spread}, Scalar::zero(DType::I32)};
  EXPECT_FALSE(compose_views(strided, {8}, {4}, outer, {7}).has_value());
}

}  // namespace
}  // namespace ingot
