// What the chooser decides, as steps.
#include "compiler/lowering/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/compile.h"
#include "compiler/graph/builder.h"
#include "compiler/lowering/lower_kernel.h"
#include "compiler/plan/plan.h"

namespace ingot {
namespace {

Target target(const std::string& name) { return find_target(name).value(); }

ValueId weights(GraphBuilder& b, Shape shape) {
  return b.constant(
      Tensor::own(DType::F32, shape, generate_input("w", DType::F32, shape, 1, -1, 1)));
}

// Steps of a kernel of a graph, counted from the last.
std::vector<std::string> steps_of(const Graph& graph, const Target& target, int before_last = 0) {
  const Plan plan = make_plan(graph, target, PlanOptions{}).value();
  const LoweredKernel lowered = lower_kernel(plan, plan.kernels.end()[-1 - before_last]).value();
  return to_steps(choose_schedule(lowered.kernel, lowered.is_constant, target), lowered.kernel);
}

bool has(const std::vector<std::string>& steps, const std::string& step) {
  return std::ranges::find(steps, step) != steps.end();
}

Graph convolution_chain(std::int64_t channels, std::int64_t size) {
  GraphBuilder b("conv");
  const ValueId x = b.input("x", DType::F32, {1, 16, size, size});
  const GraphBuilder::Convolution one{{1, 1}, {1, 1}, {0, 0}, {size, size}, 1};
  const GraphBuilder::Convolution three{{1, 1}, {1, 1}, {1, 1}, {size, size}, 1};
  const ValueId y = b.convolution(x, weights(b, {channels, 16, 1, 1}), one);
  const ValueId z = b.convolution(y, weights(b, {channels, channels, 3, 3}), three);
  b.output("y", z);
  return b.take();
}

TEST(Schedule, TilesFillTheRegistersOfEachTarget) {
  const Graph graph = convolution_chain(64, 56);
  const auto v4 = steps_of(graph, target("x86-64-v4"));
  EXPECT_TRUE(has(v4, "vector a1 16x2 exact"));
  EXPECT_TRUE(has(v4, "tile a3 14"));
  EXPECT_TRUE(has(v4, "reduce k4 split 16 unroll 4"));
  const auto arm = steps_of(graph, target("aarch64"));
  EXPECT_TRUE(has(arm, "tile a3 14") || has(arm, "tile a1 14"));
}

// A picture from places in memory: both planes of a place together, the next places asked for.
TEST(Schedule, GathersKeepNeighboursTogetherAndAskAhead) {
  GraphBuilder b("gather");
  const ValueId frame = b.input("frame", DType::U8, {100000});
  const ValueId places = b.input("places", DType::I32, {64, 256});
  const ValueId plane = b.iota(DType::I32, {2, 64, 256}, 0);
  const ValueId at = b.add(b.expand(places, {2, 64, 256}), plane);
  b.output("picture", b.gather(frame, at, 0, true));
  b.camera({.input = frame});
  const Graph graph = b.take();
  const Plan plan = make_plan(graph, target("x86-64-v3"), PlanOptions{}).value();
  ASSERT_EQ(plan.kernels.size(), 2U) << print_plan(plan);
  const auto steps = steps_of(graph, target("x86-64-v3"));
  EXPECT_TRUE(has(steps, "ahead 16")) << testing::PrintToString(steps);
  EXPECT_TRUE(has(steps, "loops i1 | i0 i2")) << testing::PrintToString(steps);
}

// 7 rows of 7 that stand apart: tiles of 7 beside three vectors instead of 14, which 49 lacks.
TEST(Schedule, TilesThatFitDecideTheVectorsBesideThem) {
  GraphBuilder b("conv");
  const GraphBuilder::Convolution one{{1, 1}, {1, 1}, {0, 0}, {7, 7}, 1};
  const GraphBuilder::Convolution five{{1, 1}, {1, 1}, {2, 2}, {7, 7}, 192};
  ValueId x = b.input("x", DType::F32, {1, 32, 7, 7});
  x = b.convolution(x, weights(b, {192, 32, 1, 1}), one);
  b.output("y", b.convolution(x, weights(b, {192, 1, 5, 5}), five));
  const Graph graph = b.take();
  const Plan plan = make_plan(graph, target("x86-64-v4"), PlanOptions{}).value();
  const LoweredKernel lowered = lower_kernel(plan, plan.kernels.front()).value();
  const auto steps = to_steps(
      choose_schedule(lowered.kernel, lowered.is_constant, target("x86-64-v4")), lowered.kernel);
  EXPECT_TRUE(has(steps, "vector a1 16x3 exact")) << testing::PrintToString(steps);
  EXPECT_TRUE(has(steps, "tile a3 7")) << testing::PrintToString(steps);
}

// Windows that do not touch: rows of output instead of neighbours in one.
TEST(Schedule, DepthwiseStepsTakeRowsInTiles) {
  const auto steps = [](std::int64_t step, const std::string& device) {
    GraphBuilder b("depthwise");
    const std::int64_t out = 56 / step;
    const GraphBuilder::Convolution one{{1, 1}, {1, 1}, {0, 0}, {56, 56}, 1};
    const GraphBuilder::Convolution three{{step, step}, {1, 1}, {1, 1}, {out, out}, 96};
    ValueId x = b.input("x", DType::F32, {1, 16, 56, 56});
    x = b.convolution(x, weights(b, {96, 16, 1, 1}), one);
    x = b.convolution(x, weights(b, {96, 1, 3, 3}), three);
    b.output("y",
             b.convolution(x, weights(b, {16, 96, 1, 1}), {{1, 1}, {1, 1}, {0, 0}, {out, out}, 1}));
    return steps_of(b.take(), target(device), 1);
  };
  EXPECT_TRUE(has(steps(1, "x86-64-v4"), "tile a3 7"));
  EXPECT_TRUE(has(steps(2, "x86-64-v4"), "tile a2 7"));
  EXPECT_TRUE(has(steps(2, "x86-64-v4"), "reduce k4 split 1 unroll 3"));
  EXPECT_TRUE(has(steps(1, "x86-64-v3"), "tile a3 4"));
  EXPECT_TRUE(has(steps(2, "x86-64-v3"), "tile a2 4"));
}

bool has_chunks(const std::vector<std::string>& steps) {
  return std::ranges::any_of(steps,
                             [](const std::string& step) { return step.starts_with("chunk "); });
}

// Blocks of channels run within chunks of rows, unless their weights had to be fetched for each.
TEST(Schedule, WorkersGetRowsOfTheirOwn) {
  const auto steps = steps_of(convolution_chain(32, 56), target("x86-64-v3"));
  EXPECT_TRUE(has(steps, "chunk a2 8")) << testing::PrintToString(steps);
  EXPECT_FALSE(has_chunks(steps_of(convolution_chain(512, 14), target("x86-64-v3"))));
}

// Neither do chunks read most of their rows twice.
TEST(Schedule, WideWindowsAreNotCut) {
  const auto steps = [](std::int64_t dilation) {
    GraphBuilder b("depthwise");
    const ValueId x = b.input("x", DType::F32, {1, 16, 28, 28});
    const GraphBuilder::Convolution one{{1, 1}, {1, 1}, {0, 0}, {28, 28}, 1};
    const std::int64_t pad = 2 * dilation;
    const GraphBuilder::Convolution five{{1, 1}, {dilation, dilation}, {pad, pad}, {28, 28}, 64};
    const ValueId y = b.convolution(x, weights(b, {64, 16, 1, 1}), one);
    b.output("y", b.convolution(y, weights(b, {64, 1, 5, 5}), five));
    return steps_of(b.take(), target("x86-64-v4"));
  };
  EXPECT_TRUE(has_chunks(steps(1))) << testing::PrintToString(steps(1));
  EXPECT_FALSE(has_chunks(steps(2))) << testing::PrintToString(steps(2));
}

// Channels beside a convolution's in the same blocks: few of them are a narrow vector, and no
// worker stores a part of another one's line.
TEST(Schedule, PartsOfABlockAreStoredTogether) {
  const auto steps = [](std::int64_t channels) {
    GraphBuilder b("part");
    const ValueId x = b.input("x", DType::F32, {1, 16, 32, 32});
    const GraphBuilder::Convolution one{{1, 1}, {1, 1}, {0, 0}, {32, 32}, 1};
    const ValueId y = b.convolution(x, weights(b, {24, 16, 1, 1}), one);
    const ValueId none =
        b.expand(b.constant(Tensor::own(DType::F32, {1, 1, 1, 1}, std::vector<std::byte>(4))),
                 {1, channels, 32, 32});
    const ValueId all = b.concat(std::vector<ValueId>{y, none}, 1);
    b.output("y", b.convolution(all, weights(b, {16, 24 + channels, 1, 1}), one));
    const Graph graph = b.take();
    const Plan plan = make_plan(graph, target("x86-64-v4"), PlanOptions{}).value();
    const auto part = std::ranges::find(plan.kernels, "part", &PlanKernel::name);
    const LoweredKernel lowered = lower_kernel(plan, *part).value();
    return to_steps(choose_schedule(lowered.kernel, lowered.is_constant, target("x86-64-v4")),
                    lowered.kernel);
  };
  EXPECT_TRUE(has(steps(4), "vector i1 4x1 exact")) << testing::PrintToString(steps(4));
  EXPECT_TRUE(has(steps(6), "loops i2 | i3 i1")) << testing::PrintToString(steps(6));
}

// Two lanes would be no vector worth having: a last block that is written in part is computed
// whole.
TEST(Schedule, PartsThatNoNarrowVectorHoldsArePadded) {
  for (const std::int64_t channels : {10, 12, 14}) {
    GraphBuilder b("part");
    const GraphBuilder::Convolution one{{1, 1}, {1, 1}, {0, 0}, {30, 30}, 1};
    const ValueId x =
        b.convolution(b.input("x", DType::F32, {1, 16, 30, 30}), weights(b, {64, 16, 1, 1}), one);
    const GraphBuilder::Convolution three{{1, 1}, {1, 1}, {1, 1}, {30, 30}, 1};
    const std::vector<ValueId> parts{b.convolution(x, weights(b, {72, 64, 1, 1}), one),
                                     b.convolution(x, weights(b, {channels, 64, 3, 3}), three)};
    const ValueId all = b.concat(parts, 1);
    b.output("y", b.convolution(all, weights(b, {16, 72 + channels, 1, 1}), one));
    const auto steps = steps_of(b.take(), target("x86-64-v4"), 1);
    EXPECT_TRUE(has(steps, "vector a1 16x1 padded")) << testing::PrintToString(steps);
  }
}

// The next panel (64 channels in, 3x3, 32 out) is fetched by the tiles of this one; what fits into
// the first caches needs none.
TEST(Schedule, TilesFetchTheNextPanelTogether) {
  const auto large = steps_of(convolution_chain(64, 56), target("x86-64-v4"));
  EXPECT_TRUE(has(large, "prefetch in1 +18432 share 1 of 8"));
  const auto few_tiles = steps_of(convolution_chain(512, 7), target("x86-64-v4"));
  EXPECT_TRUE(has(few_tiles, "prefetch in1 +221184 share 2 of 12"));
  const auto small = steps_of(convolution_chain(16, 56), target("x86-64-v4"));
  EXPECT_FALSE(std::ranges::any_of(
      small, [](const std::string& step) { return step.starts_with("prefetch"); }));
}

TEST(Schedule, ChannelsOfTheInputGoInsideOfTheWindow) {
  const auto steps = steps_of(convolution_chain(64, 56), target("x86-64-v4"));
  const auto window = std::ranges::find_if(
      steps, [](const std::string& step) { return step.starts_with("reduce k5"); });
  const auto channels = std::ranges::find_if(
      steps, [](const std::string& step) { return step.starts_with("reduce k4"); });
  EXPECT_LT(window, channels);
}

// Of a row times a matrix of weights.
std::vector<std::string> row_steps(std::int64_t depth, std::int64_t columns,
                                   const std::string& device = "x86-64-v4") {
  GraphBuilder b("row");
  b.output("y", b.matmul(b.input("x", DType::F32, {1, depth}), weights(b, {depth, columns})));
  return steps_of(b.take(), target(device));
}

TEST(Schedule, OneRowGetsManyIndependentSums) {
  const auto steps = row_steps(512, 512);
  EXPECT_TRUE(has(steps, "vector a1 16x6 exact"));
  EXPECT_TRUE(has(steps, "pack in1 order 1,0 block 1x16"));  // a panel for each vector
}

// What the second cache does not hold comes in streams from tile to tile.
TEST(Schedule, LargeRowsOfWeightsAreStreams) {
  EXPECT_TRUE(has(row_steps(1024, 512), "pack in1 order 1,0 block 1x16 streams 4"));
  const auto steps = row_steps(1024, 512, "x86-64-v3");  // a line of two vectors
  EXPECT_TRUE(has(steps, "vector a1 8x8 exact"));
  EXPECT_TRUE(has(steps, "pack in1 order 1,0 block 1x16 streams 4"));
  EXPECT_TRUE(has(row_steps(65536, 5 * 8, "x86-64-v3"), "pack in1 order 1,0 block 1x8"))
      << "nothing follows the only tile";
}

TEST(Schedule, FewVectorsOfARowAreOnePanel) {
  const auto steps = row_steps(2048, 32);
  EXPECT_TRUE(has(steps, "pack in1 order 1,0 block 1x32"));
  EXPECT_TRUE(has(steps, "prefetch in1 +1024 share 8 of 8"));
}

TEST(Schedule, HalfVectorsMakeStreamsOfARow) {
  const auto steps = row_steps(512, 1004, "x86-64-v3");
  EXPECT_TRUE(has(steps, "vector a1 4x8 exact"));
  EXPECT_TRUE(has(steps, "pack in1 order 1,0 block 1x8 streams 4"));
}

// What is left of the columns or channels, where half a vector costs half.
TEST(Schedule, LastVectorsOfProductsAreNarrow) {
  const auto steps = row_steps(512, 1000);
  EXPECT_TRUE(has(steps, "vector a1 16x4 narrow"));
  EXPECT_TRUE(has(steps, "pack in1 order 1,0 block 1x16 streams 4"));
  const Graph graph = convolution_chain(24, 56);
  EXPECT_TRUE(has(steps_of(graph, target("x86-64-v4")), "vector a1 16x2 narrow"));
  EXPECT_TRUE(has(steps_of(graph, target("x86-64-v3")), "vector a1 8x3 exact"));
}

TEST(Schedule, TilesOfARowNeedNotBeEqual) {
  const auto steps = row_steps(512, 16 * 17);
  EXPECT_TRUE(has(steps, "vector a1 16x6 exact"));
  EXPECT_TRUE(has(steps, "pack in1 order 1,0 block 1x16"));
}

TEST(Schedule, ShortRangesOverlapInsteadOfMasking) {
  EXPECT_TRUE(has(row_steps(64, 11), "vector a1 8x1 overlap"));
}

TEST(Schedule, OnlyRelaxedSumsRunOverLanes) {
  for (const bool strict : {false, true}) {
    GraphBuilder b("sum");
    b.set_strict(strict);
    b.output("y", b.reduce(ReduceOp::Sum, b.input("x", DType::F32, {1, 512}), {1}, false));
    const auto steps = steps_of(b.take(), target("x86-64-v4"));
    EXPECT_EQ(has(steps, "vector-reduce r1 16"), !strict);
  }
}

TEST(Schedule, SumsOverLanesShareTheirLoads) {
  GraphBuilder b("dots");
  const std::vector<int> swap = {1, 0};
  b.output("z", b.matmul(b.input("x", DType::F32, {32, 512}),
                         b.transpose(b.input("y", DType::F32, {64, 512}), swap)));
  const auto steps = steps_of(b.take(), target("x86-64-v4"));
  EXPECT_TRUE(has(steps, "vector-reduce k2 16"));
  EXPECT_TRUE(has(steps, "tile a1 4"));
  EXPECT_TRUE(has(steps, "tile a0 4"));
}

TEST(Schedule, IsDeterministic) {
  const Graph graph = convolution_chain(48, 13);
  const auto first = steps_of(graph, target("x86-64-v3"));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(steps_of(graph, target("x86-64-v3")), first);
}

}  // namespace
}  // namespace ingot
