// From graph to call list, judged by interpreters: the graph's meaning against every kernel run
// loop by loop, for each target and with and without optimization.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "compiler/compile.h"
#include "compiler/graph/builder.h"
#include "compiler/interpreter_runner.h"
#include "compiler/passes/fold_constants.h"
#include "compiler/passes/widen_floats.h"
#include "compiler/plan/plan.h"
#include "compiler/program/build_program.h"
#include "compiler/program/run_program.h"
#include "tests/support/graph_interpreter.h"

namespace ingot {
namespace {

Tensor random_tensor(const std::string& name, DType dtype, const Shape& shape) {
  const double hi = is_float(dtype) ? 1 : 100;
  return Tensor::own(dtype, shape,
                     generate_input(name, dtype, shape, 7, is_float(dtype) ? -1 : 0, hi));
}

ValueId weights(GraphBuilder& b, const std::string& name, Shape shape, DType dtype = DType::F32) {
  return b.constant(random_tensor(name, dtype, shape));
}

NamedTensors inputs_of(const Graph& graph) {
  NamedTensors inputs;
  for (const Node& node : graph.nodes) {
    if (const auto* input = std::get_if<InputOp>(&node.op)) {
      inputs.emplace(input->name, random_tensor(input->name, node.dtype, node.shape));
    }
  }
  return inputs;
}

std::vector<std::vector<std::byte>> in_order(const Program& program, const NamedTensors& inputs,
                                             BufferKind kind) {
  std::vector<std::vector<std::byte>> bytes;
  for (const PlanIo& io : program.io) {
    if (io.kind != kind) continue;
    const Tensor& tensor = inputs.at(io.name);
    bytes.emplace_back(tensor.bytes.begin(), tensor.bytes.end());
  }
  return bytes;
}

void expect_close(const Tensor& want, const std::vector<std::byte>& got, const std::string& where) {
  ASSERT_EQ(want.bytes.size(), got.size()) << where;
  const auto size = static_cast<std::size_t>(size_bytes(want.dtype));
  double largest = 0;
  for (std::int64_t i = 0; i < element_count(want.shape); ++i) {
    largest = std::max(largest, std::abs(want.at(i).as_double()));
  }
  for (std::int64_t i = 0; i < element_count(want.shape); ++i) {
    const double w = want.at(i).as_double();
    const double g = Scalar::load(want.dtype, &got[static_cast<std::size_t>(i) * size]).as_double();
    if (std::isnan(w) && std::isnan(g)) continue;
    const double bound = is_float(want.dtype) ? 1e-5 * largest : 0;
    ASSERT_LE(std::abs(w - g), bound) << where << ", element " << i << ": " << g << " for " << w;
  }
}

// Tile size of the last Winograd convolution; 0: there is none.
int winograd_tile(const Graph& graph, const Target& target) {
  const auto plan = make_plan(graph, target, PlanOptions{});
  const auto program = build_program(*plan, target, BuildOptions{});
  int tile = 0;
  for (const ProgramCall& call : program->calls) tile = std::max(tile, call.winograd);
  return tile;
}

void check(const Graph& graph) {
  ASSERT_TRUE(validate_graph(graph));
  const NamedTensors inputs = inputs_of(graph);
  const NamedTensors expected = interpret_outputs(graph, inputs);
  InterpreterRunner runner;
  const auto folded = fold_constants(graph, runner);
  ASSERT_TRUE(folded) << to_line(folded.error().diagnostics[0]);
  for (const Target& target : known_targets()) {
    for (const bool optimize : {false, true}) {
      const std::string where = target.name + (optimize ? " -O2" : " -O0");
      const auto plan = make_plan(*folded, target, PlanOptions{optimize, optimize});
      ASSERT_TRUE(plan) << where;
      const auto plan_ok = validate_plan(*plan);
      ASSERT_TRUE(plan_ok) << where << to_line(plan_ok.error().diagnostics[0]) << print_plan(*plan);
      BuildOptions options;
      options.schedule = optimize;
      const auto program = build_program(*plan, target, options);
      ASSERT_TRUE(program) << where << to_line(program.error().diagnostics[0]) << print_plan(*plan);
      const auto valid = validate_program(*program);
      ASSERT_TRUE(valid) << where << to_line(valid.error().diagnostics[0]);
      const auto apart = check_overlap(*program);
      ASSERT_TRUE(apart) << where << to_line(apart.error().diagnostics[0]);
      const auto result = run_program(*program, in_order(*program, inputs, BufferKind::Input),
                                      in_order(*program, inputs, BufferKind::State), runner);
      ASSERT_TRUE(result) << where << to_line(result.error().diagnostics[0]) << print_plan(*plan);
      std::size_t output = 0;
      for (const PlanIo& io : program->io) {
        if (io.kind != BufferKind::Output) continue;
        expect_close(expected.at(io.name), result->outputs[output++], where + ", " + io.name);
        if (testing::Test::HasFatalFailure()) {
          ADD_FAILURE() << print_plan(*plan);
          for (const auto& kernel : program->kernels) ADD_FAILURE() << print_kernel(*kernel);
          return;
        }
      }
    }
  }
}

GraphBuilder::Convolution conv(std::int64_t stride, std::int64_t pad, std::int64_t out,
                               std::int64_t groups = 1, std::int64_t dilation = 1) {
  return {{stride, stride}, {dilation, dilation}, {pad, pad}, {out, out}, groups};
}

ValueId relu(GraphBuilder& b, ValueId x) { return b.max(x, b.like(x, 0)); }

TEST(Lowering, ConvolutionWithBiasAndRelu) {
  GraphBuilder b("conv");
  const ValueId x = b.input("x", DType::F32, {1, 3, 9, 9});
  const ValueId y = b.convolution(x, weights(b, "w", {20, 3, 3, 3}), conv(1, 1, 9));
  b.output("y", relu(b, b.add(y, weights(b, "b", {1, 20, 1, 1}))));
  check(b.take());
}

TEST(Lowering, ConvolutionsInSequenceKeepHalosAndPadding) {
  GraphBuilder b("convs");
  const ValueId x = b.input("x", DType::F32, {1, 16, 8, 8});
  ValueId y = relu(b, b.convolution(x, weights(b, "w1", {24, 16, 3, 3}), conv(1, 1, 8)));
  y = relu(b, b.convolution(y, weights(b, "w2", {40, 24, 3, 3}), conv(2, 1, 4)));
  y = b.convolution(y, weights(b, "w3", {10, 40, 1, 1}), conv(1, 0, 4));
  b.output("y", y);
  check(b.take());
}

// Of 16 lanes 8 or 4 are left, alone, behind others of their tile and behind full tiles.
TEST(Lowering, LastVectorsAreNarrow) {
  for (const std::int64_t channels : {4, 8, 24, 40, 52, 72}) {
    GraphBuilder b("narrow");
    ValueId x = b.input("x", DType::F32, {1, 16, 7, 5});
    const GraphBuilder::Convolution one{{1, 1}, {1, 1}, {0, 0}, {7, 5}, 1};
    x = relu(b, b.convolution(x, weights(b, "w1", {channels, 16, 1, 1}), one));
    const GraphBuilder::Convolution each{{1, 1}, {1, 1}, {1, 1}, {7, 5}, channels};
    x = relu(b, b.convolution(x, weights(b, "w2", {channels, 1, 3, 3}), each));
    x = b.add(x, weights(b, "b", {1, channels, 1, 1}));
    x = b.convolution(x, weights(b, "w3", {channels, channels, 1, 1}), one);
    b.output("y", b.matmul(b.reshape(x, {1, channels * 35}),
                           weights(b, "w4", {channels * 35, channels + 64})));
    check(b.take());
  }
}

// The convolution in the middle reads and writes blocks of channels.
Graph convolutions(std::int64_t in, std::int64_t out, std::int64_t rows, std::int64_t columns,
                   std::int64_t batch = 1, std::int64_t pad = 1, DType dtype = DType::F32) {
  const auto convolution = [](std::int64_t padding, std::int64_t r, std::int64_t c) {
    return GraphBuilder::Convolution{{1, 1}, {1, 1}, {padding, padding}, {r, c}, 1};
  };
  GraphBuilder b("test");
  const std::int64_t less = 2 - 2 * pad;
  ValueId x = b.input("x", dtype, {batch, 3, rows, columns});
  x = b.convolution(x, weights(b, "w1", {in, 3, 1, 1}, dtype), convolution(0, rows, columns));
  x = b.convolution(x, weights(b, "w2", {out, in, 3, 3}, dtype),
                    convolution(pad, rows - less, columns - less));
  x = relu(b, b.add(x, weights(b, "b", {1, out, 1, 1}, dtype)));
  x = b.convolution(x, weights(b, "w3", {16, out, 1, 1}, dtype),
                    convolution(0, rows - less, columns - less));
  b.output("y", b.cast(x, DType::F32));
  return widen_halves(b.take());
}

TEST(Lowering, WinogradConvolutions) {
  const Target v4 = *find_target("x86-64-v4"), v3 = *find_target("x86-64-v3");
  const Graph even = convolutions(16, 32, 16, 16);
  EXPECT_EQ(winograd_tile(even, v4), 4);
  EXPECT_EQ(winograd_tile(even, v3), 4);
  check(even);
  GraphBuilder b("peaks");  // what compares its numbers gets them term by term
  const ValueId x = b.input("x", DType::F32, {4});
  b.output("y", b.map(ScalarOp::Eq, x, b.input("z", DType::F32, {4})));
  EXPECT_TRUE(tests_equality_of_floats(b.take()));
  check(convolutions(24, 20, 9, 10));         // channels that do not fill their blocks
  check(convolutions(16, 16, 7, 8, 2));       // batches
  check(convolutions(16, 48, 10, 10, 1, 0));  // no padding
}

// The outputs of the program, against the graph; the largest tile of its convolutions.
int check_winograd(const Graph& graph, const Target& target, bool in_bands) {
  const auto plan = make_plan(graph, target, PlanOptions{});
  EXPECT_TRUE(plan);
  const auto program = build_program(*plan, target, BuildOptions{});
  EXPECT_TRUE(program);
  if (!plan || !program) return 0;
  const auto call = std::ranges::max_element(program->calls, {}, &ProgramCall::winograd);
  if (in_bands) {
    EXPECT_GT(call->grid, 1U);  // for workers
  }
  InterpreterRunner runner;
  const NamedTensors inputs = inputs_of(graph);
  const auto result =
      run_program(*program, in_order(*program, inputs, BufferKind::Input), {}, runner);
  EXPECT_TRUE(result);
  if (!result) return 0;
  expect_close(interpret_outputs(graph, inputs).at("y"), result->outputs[0], "winograd");
  return call->winograd;
}

TEST(Lowering, WinogradInBands) {
  Target small = *find_target("x86-64-v4");
  small.l2_bytes = 64 << 10;
  EXPECT_EQ(check_winograd(convolutions(16, 16, 22, 17), small, true), 4);
  EXPECT_EQ(check_winograd(convolutions(32, 32, 11, 9), small, true), 2);
}

TEST(Lowering, WinogradAddsItsOwnInput) {
  GraphBuilder b("test");
  const auto convolution = [](std::int64_t padding) {
    return GraphBuilder::Convolution{{1, 1}, {1, 1}, {padding, padding}, {14, 15}, 1};
  };
  ValueId x = b.input("x", DType::F32, {1, 3, 14, 15});
  x = b.convolution(x, weights(b, "w1", {32, 3, 1, 1}), convolution(0));
  x = relu(b, b.add(x, b.convolution(x, weights(b, "w2", {32, 32, 3, 3}), convolution(1))));
  b.output("y", b.convolution(x, weights(b, "w3", {16, 32, 1, 1}), convolution(0)));
  EXPECT_EQ(check_winograd(b.take(), *find_target("x86-64-v4"), false), 4);
}

TEST(Lowering, WinogradOfHalvesWhereTheyStayInTheCache) {
  const Target v4 = *find_target("x86-64-v4");
  for (const DType half : {DType::F16, DType::BF16}) {
    EXPECT_EQ(check_winograd(convolutions(16, 32, 16, 16, 1, 1, half), v4, false), 4);
    EXPECT_EQ(winograd_tile(convolutions(160, 160, 8, 8, 1, 1, half), v4), 0);
  }
  EXPECT_GT(winograd_tile(convolutions(160, 160, 8, 8), v4), 0);
}

// Equal terms: errors of one long sum would have one sign.
TEST(Lowering, LongSumsKeepTheirAccuracy) {
  const std::pair<Shape, std::vector<int>> cases[] = {
      {{2, 300001}, {1}}, {{300001, 17}, {0}}, {{70001, 16, 3}, {0, 2}}, {{16, 40000, 2}, {1, 2}}};
  for (const auto& [shape, axes] : cases) {
    GraphBuilder b("sum");
    const ValueId x = b.input("x", DType::F32, shape);
    const ValueId like = b.add(b.mul(x, b.like(x, 0)), b.like(x, 0.1));
    b.output("y", b.reduce(ReduceOp::Sum, like, axes, false));
    const Graph graph = b.take();
    double terms = 1;
    for (const int axis : axes) terms *= static_cast<double>(shape[static_cast<std::size_t>(axis)]);
    for (const char* name : {"x86-64-v2", "x86-64-v4"}) {
      const Target target = *find_target(name);
      const auto plan = make_plan(graph, target, PlanOptions{});
      ASSERT_TRUE(plan);
      const auto program = build_program(*plan, target, BuildOptions{});
      ASSERT_TRUE(program);
      InterpreterRunner runner;
      const auto result = run_program(
          *program, in_order(*program, inputs_of(graph), BufferKind::Input), {}, runner);
      ASSERT_TRUE(result);
      const float sum = *reinterpret_cast<const float*>(result->outputs[0].data());
      EXPECT_NEAR(sum / (terms * double{0.1F}), 1, 3e-5) << to_text(DType::F32, shape) << name;
    }
  }
}

TEST(Lowering, DepthwiseAndResidual) {
  GraphBuilder b("mobile");
  const ValueId x = b.input("x", DType::F32, {1, 8, 7, 7});
  const ValueId wide = relu(b, b.convolution(x, weights(b, "w1", {24, 8, 1, 1}), conv(1, 0, 7)));
  const ValueId deep =
      relu(b, b.convolution(wide, weights(b, "w2", {24, 1, 3, 3}), conv(1, 1, 7, 24)));
  const ValueId narrow = b.convolution(deep, weights(b, "w3", {8, 24, 1, 1}), conv(1, 0, 7));
  b.output("y", b.add(x, narrow));
  check(b.take());
}

// Parameters that a kernel reads and writes.
std::size_t updates(const Graph& graph, const Target& target) {
  const auto plan = make_plan(graph, target, PlanOptions{});
  const auto program = build_program(*plan, target, BuildOptions{});
  std::size_t count = 0;
  for (const ProgramCall& call : program->calls) {
    if (call.kind != CallKind::Program) continue;
    for (const KernelParameter& parameter : program->kernels[call.kernel]->parameters) {
      count += parameter.access == Access::Update ? 1 : 0;
    }
  }
  return count;
}

// Two residual blocks of 1x1 products: each sum takes the place of what it adds to, unless that is
// read later.
TEST(Lowering, ResidualSumsAreMadeInPlace) {
  for (const bool read_later : {false, true}) {
    GraphBuilder b("residual");
    const ValueId x = b.input("x", DType::F32, {1, 32, 6, 6});
    ValueId sum = relu(b, b.convolution(x, weights(b, "w0", {32, 32, 1, 1}), conv(1, 0, 6)));
    const ValueId first = sum;
    for (const std::string name : {"w1", "w2"}) {
      const ValueId inner =
          relu(b, b.convolution(sum, weights(b, name, {16, 32, 1, 1}), conv(1, 0, 6)));
      sum = b.add(sum, b.convolution(inner, weights(b, name + "o", {32, 16, 1, 1}), conv(1, 0, 6)));
    }
    ValueId last = b.convolution(sum, weights(b, "w3", {32, 32, 1, 1}), conv(1, 0, 6));
    if (read_later) last = b.mul(last, first);
    b.output("y", last);
    const Graph graph = b.take();
    EXPECT_EQ(updates(graph, find_target("x86-64-v4").value()), read_later ? 1U : 2U);
    check(graph);
  }
}

// A result with a halo takes that of its operand.
TEST(Lowering, ResidualSumsWithHalosAreMadeInPlace) {
  GraphBuilder b("residual");
  const ValueId x = b.input("x", DType::F32, {1, 16, 6, 6});
  ValueId sum = relu(b, b.convolution(x, weights(b, "w0", {16, 16, 1, 1}), conv(1, 0, 6)));
  for (const std::string name : {"w1", "w2"}) {
    const ValueId inner =
        relu(b, b.convolution(sum, weights(b, name, {16, 16, 3, 3}), conv(1, 1, 6)));
    sum = relu(
        b, b.add(sum, b.convolution(inner, weights(b, name + "o", {16, 16, 1, 1}), conv(1, 0, 6))));
  }
  b.output("y", b.convolution(sum, weights(b, "w3", {8, 16, 3, 3}), conv(1, 1, 6)));
  const Graph graph = b.take();
  EXPECT_EQ(updates(graph, find_target("x86-64-v4").value()), 2U);
  check(graph);
}

TEST(Lowering, GroupedWithTwoOutputsPerInput) {
  GraphBuilder b("grouped");
  const ValueId x = b.input("x", DType::F32, {1, 4, 8, 8});
  const ValueId first = b.convolution(x, weights(b, "w0", {16, 4, 1, 1}), conv(1, 0, 8));
  b.output("y", b.convolution(first, weights(b, "w", {32, 1, 7, 7}), conv(2, 3, 4, 16)));
  check(b.take());
}

TEST(Lowering, GroupedAndDilated) {
  GraphBuilder b("groups");
  const ValueId x = b.input("x", DType::F32, {2, 8, 9, 9});
  b.output("y", b.convolution(x, weights(b, "w", {12, 4, 3, 3}), conv(1, 2, 9, 2, 2)));
  check(b.take());
}

TEST(Lowering, SiluIsOneKernelWithItsConvolution) {
  GraphBuilder b("silu");
  const ValueId x = b.input("x", DType::F32, {1, 4, 6, 6});
  const ValueId y = b.convolution(x, weights(b, "w", {8, 4, 3, 3}), conv(1, 0, 4));
  b.output("y", b.mul(y, b.sigmoid(y)));
  const Graph graph = b.take();
  check(graph);
  const auto plan = make_plan(graph, default_target(), PlanOptions{});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->kernels.size(), 1U) << print_plan(*plan);
}

TEST(Lowering, SqueezeAndExciteIsNotFusedAcrossItsReduce) {
  GraphBuilder b("se");
  const ValueId x = b.input("x", DType::F32, {1, 4, 6, 6});
  const ValueId y = relu(b, b.convolution(x, weights(b, "w", {20, 4, 3, 3}), conv(1, 1, 6)));
  const ValueId mean = b.mul(b.reduce(ReduceOp::Sum, y, {2, 3}, true), b.like(y, 1.0 / 36));
  const ValueId scale =
      b.sigmoid(b.convolution(mean, weights(b, "v", {20, 20, 1, 1}), conv(1, 0, 1)));
  b.output("y", b.mul(y, scale));
  check(b.take());
}

TEST(Lowering, Pooling) {
  GraphBuilder b("pool");
  const ValueId x = b.input("x", DType::F32, {1, 5, 9, 9});
  const ValueId y = b.convolution(x, weights(b, "w", {20, 5, 1, 1}), conv(1, 0, 9));
  const GraphBuilder::Window window{{3, 3}, {2, 2}, {1, 1}, {1, 1}, {5, 5}};
  const Scalar lowest = identity(ReduceOp::Max, DType::F32);
  b.output("max", b.reduce(ReduceOp::Max, b.windows(y, window, lowest), {4, 5}, false));
  const Scalar zero = Scalar::zero(DType::F32);
  const ValueId sums = b.reduce(ReduceOp::Sum, b.windows(x, window, zero), {4, 5}, false);
  b.output("average", b.mul(sums, b.like(sums, 1.0 / 9)));
  check(b.take());
}

TEST(Lowering, MatrixProducts) {
  GraphBuilder b("matmul");
  const ValueId x = b.input("x", DType::F32, {19, 24});
  const ValueId y = b.matmul(x, weights(b, "w", {24, 50}));
  b.output("constant", y);
  b.output("both", b.matmul(y, b.input("z", DType::F32, {50, 13})));
  b.output("row", b.matmul(b.input("r", DType::F32, {1, 40}), weights(b, "v", {40, 75})));
  check(b.take());
}

// Rows with a line between them, read as rows, flat and element by element.
TEST(Lowering, ProductsOfRowsThatAreWholePages) {
  GraphBuilder b("rows");
  const ValueId x = b.input("x", DType::F32, {3, 3, 8});
  ValueId y = b.matmul(b.reshape(x, {9, 8}), weights(b, "w", {8, 1024}));
  y = relu(b, b.add(y, weights(b, "b", {1, 1024})));
  b.output("product", b.matmul(y, weights(b, "v", {1024, 5})));
  b.output("flat", b.matmul(b.reshape(y, {1, 9216}), weights(b, "u", {9216, 3})));
  b.output("sum", b.reduce(ReduceOp::Sum, b.reshape(y, {3, 3, 1024}), {1}, false));
  // What lies between the rows is no halo of zeros.
  const Scalar zero = Scalar::zero(DType::F32);
  const std::int64_t none[] = {0, 0}, behind[] = {0, 4};
  b.output("padded", b.pad(y, none, behind, zero));
  const GraphBuilder::Window window{{3}, {1}, {1}, {0}, {1024}};
  b.output("windows", b.reduce(ReduceOp::Sum, b.windows(b.reshape(y, {1, 9, 1024}), window, zero),
                               {3}, false));
  check(b.take());
}

// Sums in parts, of full vectors and of a narrow one.
TEST(Lowering, NarrowVectorsOfLongSums) {
  for (const std::int64_t rows : {1, 3}) {
    GraphBuilder b("long");
    const ValueId x = b.input("x", DType::F32, {rows, 20000});
    b.output("y", b.matmul(x, weights(b, "w", {20000, 24})));
    check(b.take());
  }
}

TEST(Lowering, AttentionShapes) {
  GraphBuilder b("attention");
  const ValueId q = b.input("q", DType::F32, {2, 5, 8});
  const ValueId k = b.input("k", DType::F32, {2, 7, 8});
  const ValueId v = b.input("v", DType::F32, {2, 7, 8});
  const std::vector<int> swap = {0, 2, 1};
  const ValueId scores = b.softmax(b.matmul(q, b.transpose(k, swap)), 2);
  b.output("y", b.matmul(scores, v));
  check(b.take());
}

// Both operands contiguous along the sum: tiles of sums over lanes, with tails in all directions.
TEST(Lowering, ProductWithATransposedInput) {
  GraphBuilder b("dots");
  const ValueId x = b.input("x", DType::F32, {7, 149});
  const ValueId y = b.input("y", DType::F32, {10, 149});
  const std::vector<int> swap = {1, 0};
  b.output("z", relu(b, b.matmul(x, b.transpose(y, swap))));
  check(b.take());
}

TEST(Lowering, LongRowsReduceOverLanes) {
  GraphBuilder b("rows");
  const ValueId x = b.input("x", DType::F32, {3, 133});
  b.output("sum", b.reduce(ReduceOp::Sum, b.mul(x, x), {1}, false));
  b.output("max", b.reduce(ReduceOp::Max, x, {1}, true));
  b.output("softmax", b.softmax(x, 1));
  check(b.take());
}

TEST(Lowering, ConcatenationsAreWrittenInPlace) {
  GraphBuilder b("concat");
  const ValueId x = b.input("x", DType::F32, {1, 6, 5, 5});
  const ValueId a = relu(b, b.convolution(x, weights(b, "w1", {12, 6, 1, 1}), conv(1, 0, 5)));
  const ValueId c = relu(b, b.convolution(x, weights(b, "w2", {20, 6, 3, 3}), conv(1, 1, 5)));
  const std::vector<ValueId> parts = {a, c, x};
  const ValueId joined = b.concat(parts, 1);
  b.output("y", b.convolution(joined, weights(b, "w3", {8, 38, 3, 3}), conv(1, 1, 5)));
  b.output("joined", joined);
  check(b.take());
}

// Rows of the other part stand behind the last row of this one, where tiles read.
TEST(Lowering, PartsOfRowsHaveNoHaloOfTheirOwn) {
  GraphBuilder b("rows");
  const ValueId x = b.input("x", DType::F32, {1, 16, 13, 14});
  const ValueId part = relu(
      b, b.convolution(x, weights(b, "w1", {16, 16, 1, 1}), {{1, 1}, {1, 1}, {0, 0}, {13, 14}, 1}));
  const ValueId inner =
      b.convolution(part, weights(b, "w2", {16, 16, 3, 3}), {{1, 1}, {1, 1}, {0, 0}, {11, 12}, 1});
  const ValueId wide =
      b.convolution(inner, weights(b, "w3", {16, 16, 1, 1}), {{1, 1}, {1, 1}, {0, 1}, {11, 14}, 1});
  const ValueId whole = b.concat(std::array{part, wide}, 2);
  b.output("y", b.convolution(whole, weights(b, "w4", {16, 16, 7, 7}),
                              {{1, 1}, {1, 1}, {3, 3}, {24, 14}, 1}));
  const Graph graph = b.take();
  check(graph);
  const auto plan = make_plan(graph, *find_target("x86-64-v4"), PlanOptions{});
  ASSERT_TRUE(plan);
  const Placement home = plan->placed.at(part);
  EXPECT_NE(plan->buffers[home.buffer].shape[2], 13);  // in the concatenation
  const Placement* read = placement_of(*plan, inner, part);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(plan->buffers[read->buffer].shape[2], 13);  // a copy of its own
}

// Every concatenation of a dense block is the beginning of the last one; nothing is copied.
TEST(Lowering, DenseBlocksAreOneBuffer) {
  GraphBuilder b("dense");
  const ValueId x = b.input("x", DType::F32, {1, 16, 6, 6});
  std::vector<ValueId> parts{b.convolution(x, weights(b, "w", {16, 16, 1, 1}), conv(1, 0, 6))};
  for (int i = 0; i < 3; ++i) {
    const ValueId so_far = parts.size() == 1 ? parts[0] : b.concat(parts, 1);
    const Shape shape{16, 16 * static_cast<std::int64_t>(parts.size()), 3, 3};
    parts.push_back(relu(
        b,
        b.convolution(relu(b, so_far), weights(b, "w" + std::to_string(i), shape), conv(1, 1, 6))));
  }
  b.output("y", b.convolution(b.concat(parts, 1), weights(b, "z", {8, 64, 1, 1}), conv(1, 0, 6)));
  const Graph graph = b.take();
  check(graph);
  const auto plan = make_plan(graph, default_target(), PlanOptions{});
  ASSERT_TRUE(plan);
  for (const PlanKernel& kernel : plan->kernels) EXPECT_NE(kernel.name, "part");
}

TEST(Lowering, ConcatenationInsideConcatenation) {
  GraphBuilder b("nested");
  const ValueId x = b.input("x", DType::F32, {1, 16, 4, 4});
  const ValueId a = relu(b, b.convolution(x, weights(b, "w1", {16, 16, 1, 1}), conv(1, 0, 4)));
  const std::vector<ValueId> first = {a, x};
  const ValueId inner = b.concat(first, 1);
  const ValueId d = relu(b, b.convolution(inner, weights(b, "w2", {16, 32, 3, 3}), conv(1, 1, 4)));
  const std::vector<ValueId> second = {inner, d};
  b.output("y", b.mul(b.concat(second, 1), b.splat(Scalar::of_float(DType::F32, 2), {})));
  check(b.take());
}

TEST(Lowering, ChannelShuffle) {
  GraphBuilder b("shuffle");
  const ValueId x = b.input("x", DType::F32, {1, 8, 4, 4});
  ValueId y = b.convolution(x, weights(b, "w", {24, 8, 1, 1}), conv(1, 0, 4));
  y = b.reshape(y, {12, 2, 16});
  const std::vector<int> swap = {1, 0, 2};
  y = b.reshape(b.transpose(y, swap), {2, 1, 12, 4, 4});
  const std::vector<std::int64_t> starts = {1, 0, 0, 0, 0}, steps = {1, 1, 1, 1, 1};
  const ValueId half = b.reshape(b.slice(y, starts, steps, {1, 1, 12, 4, 4}), {1, 12, 4, 4});
  b.output("y", b.convolution(half, weights(b, "v", {12, 1, 3, 3}), conv(1, 1, 4, 12)));
  check(b.take());
}

TEST(Lowering, GatherWrapsAndClamps) {
  GraphBuilder b("gather");
  const ValueId x = b.input("x", DType::F32, {6, 5});
  const std::vector<std::int64_t> values = {5, -1, 0, -6, 3, 2, 1, 4, 4};
  const ValueId index = b.constant(Tensor::of_ints(DType::I64, {3, 3}, values));
  b.output("y", b.gather(x, index, 0));
  b.output("z", b.gather(x, b.input("i", DType::I64, {4}), 1));
  check(b.take());
}

TEST(Lowering, ZeroInsertion) {
  GraphBuilder b("zeros");
  const ValueId x = b.input("x", DType::F32, {1, 2, 4, 4});
  AffineIndex y = AffineIndex::of_axis(2), z = AffineIndex::of_axis(3);
  y.divisor = 2;
  z.divisor = 2;
  const ValueId spread =
      b.view(x, {1, 2, 7, 7}, {AffineIndex::of_axis(0), AffineIndex::of_axis(1), y, z},
             Scalar::zero(DType::F32));
  b.output("y", b.convolution(spread, weights(b, "w", {4, 2, 3, 3}), conv(1, 2, 9)));
  check(b.take());
}

TEST(Lowering, BytesAndStates) {
  GraphBuilder b("state");
  const ValueId state = b.input("s", DType::U8, {5, 37});
  const ValueId fresh = b.input("x", DType::U8, {1, 37});
  const std::vector<std::int64_t> starts = {1, 0}, steps = {1, 1};
  const std::vector<ValueId> parts = {b.slice(state, starts, steps, {4, 37}), fresh};
  const ValueId next = b.concat(parts, 0);
  b.state(state, next);
  b.output("sum", b.reduce(ReduceOp::Sum, b.cast(next, DType::F32), {0}, false));
  b.output("next", next);
  check(b.take());
}

TEST(Lowering, OutputsThatAreInputsConstantsOrViews) {
  GraphBuilder b("plain");
  const ValueId x = b.input("x", DType::F32, {4, 6});
  b.output("same", x);
  b.output("again", x);
  const std::vector<int> swap = {1, 0};
  b.output("turned", b.transpose(x, swap));
  b.output("constant", weights(b, "c", {3, 3}));
  const ValueId y = b.add(x, x);
  b.output("y", y);
  b.output("y2", y);
  b.output("used", b.mul(y, y));
  check(b.take());
}

TEST(Lowering, EmptyDimensions) {
  GraphBuilder b("empty");
  const ValueId x = b.input("x", DType::F32, {0, 6});
  b.output("y", b.add(x, x));
  b.output("sum", b.reduce(ReduceOp::Sum, b.add(x, x), {0}, false));
  const ValueId w = b.input("w", DType::F32, {6, 0});
  b.output("product", b.add(b.matmul(w, x), b.input("z", DType::F32, {6, 6})));
  check(b.take());
}

TEST(Lowering, LongChainsAreCut) {
  GraphBuilder b("chain");
  ValueId x = b.input("x", DType::F32, {3});
  for (int i = 0; i < 1000; ++i) x = b.map(ScalarOp::Sqrt, b.map(ScalarOp::Abs, x));
  b.output("y", x);
  const Graph graph = b.take();
  check(graph);
  const auto plan = make_plan(graph, default_target(), PlanOptions{});
  ASSERT_TRUE(plan);
  EXPECT_GE(plan->kernels.size(), 10U);
  EXPECT_LE(plan->kernels.size(), 30U);
}

TEST(Lowering, ToDoubleKeepsMeaningAndStrictNodes) {
  GraphBuilder b("wide");
  const ValueId x = b.input("x", DType::F32, {3, 40});
  const ValueId y = b.softmax(x, 1);
  b.set_strict(true);
  b.output("y", b.mul(y, x));
  const Graph wide = to_double(b.take());
  check(wide);
  EXPECT_EQ(wide[wide.outputs[0].value].dtype, DType::F32);
}

TEST(Lowering, HalvesAreStorageOnly) {
  GraphBuilder b("halves");
  const ValueId x = b.input("x", DType::F16, {1, 16, 4, 4});
  const ValueId w = b.cast(weights(b, "w", {16, 16, 1, 1}), DType::F16);
  b.output("y", relu(b, b.convolution(x, w, conv(1, 0, 1))));
  InterpreterRunner runner;
  const auto folded = fold_constants(b.take(), runner);
  ASSERT_TRUE(folded);
  const Graph wide = widen_halves(*folded);
  check(wide);
  EXPECT_EQ(wide[wide.outputs[0].value].dtype, DType::F16);
  for (const Node& node : wide.nodes) {
    // Weights keep their two bytes: the contraction itself converts them.
    if (std::holds_alternative<ContractOp>(node.op)) {
      EXPECT_EQ(node.dtype, DType::F32);
      EXPECT_TRUE(std::ranges::all_of(
          node.inputs, [&](ValueId input) { return wide[input].dtype == DType::F16; }));
    }
    if (std::holds_alternative<MapOp>(node.op)) {
      EXPECT_EQ(node.dtype, DType::F32);
    }
  }
}

TEST(Lowering, WideningKeepsCamerasAndTransforms) {
  GraphBuilder b("camera");
  const ValueId frame = b.input("frame", DType::U8, {64});
  const ValueId matrix = b.input("tfm", DType::F32, {3, 3});
  b.camera(GraphCamera{frame, 1});
  b.transform(GraphTransform{.input = matrix, .width = 4, .height = 2, .frame = frame});
  b.output("y", b.map(ScalarOp::Sqrt, matrix));
  const Graph graph = b.take();
  for (const Graph& wide : {to_double(graph), widen_halves(graph)}) {
    ASSERT_EQ(wide.cameras.size(), 1U);
    EXPECT_EQ(std::get<InputOp>(wide[wide.cameras[0].input].op).name, "frame");
    ASSERT_EQ(wide.transforms.size(), 1U);
    EXPECT_EQ(std::get<InputOp>(wide[wide.transforms[0].input].op).name, "tfm");
    EXPECT_EQ(std::get<InputOp>(wide[wide.transforms[0].frame].op).name, "frame");
    EXPECT_EQ(wide.transforms[0].width, 4);
  }
}

TEST(Lowering, ConstantsAreFolded) {
  GraphBuilder b("fold");
  const ValueId x = b.input("x", DType::F32, {5});
  b.output("y", b.mul(x, b.map(ScalarOp::Exp, weights(b, "c", {5}))));
  const Graph graph = b.take();
  check(graph);
  InterpreterRunner runner;
  const auto folded = fold_constants(graph, runner);
  ASSERT_TRUE(folded);
  const auto plan = make_plan(*folded, default_target(), PlanOptions{});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->kernels.size(), 1U);
}

TEST(Lowering, EqualBlocksShareCode) {
  GraphBuilder b("blocks");
  ValueId x = b.input("x", DType::F32, {1, 16, 8, 8});
  for (int i = 0; i < 12; ++i) {
    x = relu(b,
             b.convolution(x, weights(b, "w" + std::to_string(i), {16, 16, 3, 3}), conv(1, 1, 8)));
  }
  b.output("y", x);
  const Graph graph = b.take();
  const auto plan = make_plan(graph, default_target(), PlanOptions{});
  ASSERT_TRUE(plan);
  const auto program = build_program(*plan, default_target(), BuildOptions{});
  ASSERT_TRUE(program);
  EXPECT_EQ(plan->kernels.size(), 13U);  // twelve and the input's halo
  // halo, first, middle, last, and zeros around the input and around blocks of channels
  EXPECT_LE(program->kernels.size(), 6U);
}

}  // namespace
}  // namespace ingot
