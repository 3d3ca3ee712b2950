// Plans as text: placement, layouts, and what the validator refuses.
#include "compiler/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/compile.h"
#include "compiler/graph/builder.h"
#include "compiler/program/build_program.h"

namespace ingot {
namespace {

Graph two_convolutions() {
  GraphBuilder b("two");
  const ValueId x = b.input("x", DType::F32, {1, 16, 8, 8});
  const GraphBuilder::Convolution same{{1, 1}, {1, 1}, {1, 1}, {8, 8}, 1};
  const Tensor w = Tensor::own(DType::F32, {16, 16, 3, 3},
                               generate_input("w", DType::F32, {16, 16, 3, 3}, 1, -1, 1));
  const ValueId y = b.convolution(x, b.constant(w), same);
  b.output("y", b.convolution(b.max(y, b.like(y, 0)), b.constant(w), same));
  return b.take();
}

TEST(Plan, TextIsAFixedPoint) {
  const Graph graph = two_convolutions();
  const auto plan = make_plan(graph, default_target(), PlanOptions{});
  ASSERT_TRUE(plan);
  const std::string text = print_plan(*plan);
  const auto parsed = parse_plan(text, graph);
  ASSERT_TRUE(parsed) << parsed.error().diagnostics[0].message << "\n" << text;
  EXPECT_EQ(print_plan(*parsed), text);
  EXPECT_TRUE(validate_plan(*parsed));
}

TEST(Plan, ScratchBetweenConvolutionsHasBlocksAndAHalo) {
  const Graph graph = two_convolutions();
  const auto plan = make_plan(graph, default_target(), PlanOptions{});
  ASSERT_TRUE(plan);
  const std::string text = print_plan(*plan);
  EXPECT_NE(text.find("scratch f32[1,16,8,8] zero order 0,1,2,3 block 1x16 halo 2:1+1 3:1+1"),
            std::string::npos)
      << text;
}

// Two concatenations of the same convolutions: one of them gets copies.
TEST(Plan, ConcatenationsOfCopiesHaveBlocksToo) {
  GraphBuilder b("dense");
  const ValueId x = b.input("x", DType::F32, {1, 16, 8, 8});
  const GraphBuilder::Convolution one{{1, 1}, {1, 1}, {0, 0}, {8, 8}, 1};
  const auto weights = [&](std::int64_t out, std::int64_t in) {
    const Shape shape = {out, in, 1, 1};
    return b.constant(
        Tensor::own(DType::F32, shape, generate_input("w", DType::F32, shape, 1, -1, 1)));
  };
  const ValueId first = b.convolution(x, weights(16, 16), one);
  const ValueId second = b.convolution(first, weights(16, 16), one);
  const ValueId two[] = {first, second};
  const ValueId pair = b.concat(two, 1);
  const ValueId third = b.convolution(b.max(pair, b.like(pair, 0)), weights(16, 32), one);
  const ValueId all[] = {first, second, third};
  b.output("y", b.convolution(b.concat(all, 1), weights(16, 48), one));
  const Graph graph = b.take();
  const auto plan = make_plan(graph, find_target("x86-64-v4").value(), PlanOptions{});
  ASSERT_TRUE(plan);
  for (const PlanBuffer& buffer : plan->buffers) {
    if (buffer.kind != BufferKind::Scratch) continue;
    EXPECT_EQ(buffer.layout.block_dim, 1) << print_plan(*plan);
  }
}

// A tile of rows reads one element of each; 4096 bytes apart they would share a set of the cache.
TEST(Plan, RowsOfWholePagesGetALineBetweenThem) {
  for (const std::int64_t columns : {1024, 1008}) {
    GraphBuilder b("product");
    const auto weights = [&](const Shape& shape) {
      return b.constant(
          Tensor::own(DType::F32, shape, generate_input("w", DType::F32, shape, 1, -1, 1)));
    };
    const ValueId x = b.input("x", DType::F32, {12, 16});
    b.output("y", b.matmul(b.matmul(x, weights({16, columns})), weights({columns, 16})));
    const Graph graph = b.take();
    const auto plan = make_plan(graph, find_target("x86-64-v4").value(), PlanOptions{});
    ASSERT_TRUE(plan);
    const bool parted = print_plan(*plan).find("halo 1:0+16") != std::string::npos;
    EXPECT_EQ(parted, columns == 1024) << print_plan(*plan);
  }
}

TEST(Plan, WithoutLayoutsEverythingIsRowMajor) {
  const Graph graph = two_convolutions();
  const auto plan = make_plan(graph, default_target(), PlanOptions{false, false});
  ASSERT_TRUE(plan);
  for (const PlanBuffer& buffer : plan->buffers) EXPECT_TRUE(buffer.layout.is_row_major());
}

TEST(Plan, ValidatorRefusesABrokenPlan) {
  const Graph graph = two_convolutions();
  auto plan = make_plan(graph, default_target(), PlanOptions{});
  ASSERT_TRUE(plan);
  auto reversed = *plan;
  std::swap(reversed.kernels.front(), reversed.kernels.back());
  EXPECT_FALSE(validate_plan(reversed));
  auto unwritten = *plan;
  unwritten.kernels.pop_back();
  EXPECT_FALSE(validate_plan(unwritten));
  auto outside = *plan;
  outside.kernels.back().destination.offset[1] = 8;
  EXPECT_FALSE(validate_plan(outside));
}

// Two kernels need the same positions: each computes them, nobody stores them.
TEST(Plan, PositionsAreRepeatedInTheirReaders) {
  GraphBuilder b("positions");
  const ValueId x = b.input("x", DType::F32, {64, 64});
  const ValueId row = b.cast(b.iota(DType::I32, {64, 64}, 0), DType::F32);
  b.output("y", b.mul(x, row));
  b.output("z", b.map(ScalarOp::Exp, b.add(x, row)));
  const Graph graph = b.take();
  const auto plan = make_plan(graph, default_target(), PlanOptions{});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->kernels.size(), 2U) << print_plan(*plan);
}

// An output that is no more than a part of the ring, and a next entry of the same.
Graph ring() {
  GraphBuilder b("ring");
  const ValueId x = b.input("x", DType::F32, {1, 4});
  const ValueId history = b.input("history", DType::F32, {3, 4});
  const ValueId place = b.input("place", DType::I64, {1});
  const std::int64_t starts[] = {1, 0}, steps[] = {1, 1};
  b.output("y", b.slice(history, starts, steps, {2, 4}));
  b.state(history, b.add(x, b.slice(history, starts, steps, {1, 4})), std::nullopt, place);
  b.state(place, b.add(place, b.like(place, 1)));
  return b.take();
}

TEST(Plan, RingsAreWrittenAfterEverythingThatReadsThem) {
  const Graph graph = ring();
  for (const bool optimize : {false, true}) {
    const auto plan = make_plan(graph, default_target(), PlanOptions{optimize, optimize});
    ASSERT_TRUE(plan);
    const std::string text = print_plan(*plan);
    ASSERT_TRUE(validate_plan(*plan)) << text;
    EXPECT_TRUE(plan->kernels.back().entry.has_value()) << text;
    const auto parsed = parse_plan(text, graph);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(print_plan(*parsed), text);

    ASSERT_TRUE(validate_program(*build_program(*plan, default_target(), BuildOptions{}))) << text;

    auto early = *plan;
    std::ranges::rotate(early.kernels, early.kernels.end() - 1);
    EXPECT_FALSE(validate_plan(early)) << print_plan(early);
    auto whole = *plan;
    whole.kernels.back().entry.reset();
    EXPECT_FALSE(validate_plan(whole)) << print_plan(whole);
  }
}

}  // namespace
}  // namespace ingot
