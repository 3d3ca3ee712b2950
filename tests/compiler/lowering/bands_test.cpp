// Kernels that run together band by band compute what the graph says, everywhere: at the borders of
// bands, where windows leave the image, where the last band starts early.
#include "compiler/lowering/bands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "compiler/compile.h"
#include "compiler/graph/builder.h"
#include "compiler/program/build_program.h"
#include "compiler/program/check_kernels.h"
#include "tests/support/interpreted_code.h"

namespace ingot {
namespace {

// Caches so small that everything leaves them.
Target small_caches(std::int64_t l2_bytes) {
  Target target = default_target();
  target.l2_bytes = l2_bytes;
  target.l3_bytes = 2 * l2_bytes;
  return target;
}

struct Built {
  Graph graph;
  Plan plan;
  Program program;

  Built(Graph made, const Target& target, bool bands = true) : graph(std::move(made)) {
    plan = *make_plan(graph, target, PlanOptions{});
    BuildOptions options;
    options.bands = bands;
    program = *build_program(plan, target, options);
  }

  // Calls but those that zero halos.
  std::size_t kernels() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        program.calls, [](const ProgramCall& call) { return call.plan_kernel != kNone; }));
  }

  // Every element against the graph in double precision.
  void check() const {
    KernelCheckFrame frame;
    for (const PlanIo& io : program.io) {
      if (io.kind == BufferKind::Input) {
        frame.inputs.push_back(generate_input(io.name, io.dtype, io.shape, 3, -1, 1));
      }
    }
    KernelCheckOptions options;
    options.elements = 100'000;
    options.steps_per_kernel = 1'000'000'000;
    InterpretedCode code(program);
    const auto counts = check_kernels(plan, program, code, {}, std::span(&frame, 1), options);
    ASSERT_TRUE(counts) << counts.error().diagnostics[0].message;
    EXPECT_GT(counts->elements, 0U);
    EXPECT_EQ(counts->undecided, 0U);
  }
};

Tensor floats(const char* name, const Shape& shape) {
  return Tensor::own(DType::F32, shape, generate_input(name, DType::F32, shape, 7, -1, 1));
}

Graph attention(std::int64_t heads, std::int64_t queries, std::int64_t keys) {
  GraphBuilder b("attention");
  const ValueId q = b.input("q", DType::F32, {heads, queries, 8});
  const ValueId k = b.input("k", DType::F32, {heads, 8, keys});
  const ValueId v = b.input("v", DType::F32, {heads, keys, 16});
  const ValueId scores = b.matmul(q, k);
  b.output("y", b.matmul(b.softmax(b.mul(scores, b.like(scores, 0.35)), 2), v));
  return b.take();
}

TEST(Bands, AttentionHasNoWholeScoreMatrix) {
  for (const auto& [queries, keys] : {std::pair(48, 64), std::pair(41, 37)}) {
    const Built apart(attention(1, queries, keys), small_caches(4 << 10), false);
    const Built built(attention(1, queries, keys), small_caches(4 << 10));
    EXPECT_EQ(apart.kernels(), 6U);
    EXPECT_EQ(built.kernels(), 1U) << print_program(built.program);
    built.check();
  }
}

TEST(Bands, HeadsComeFirst) {
  // One head fits, then only some queries of one head do.
  for (const std::int64_t bytes : {14 << 10, 6 << 10}) {
    const Built built(attention(3, 40, 36), small_caches(bytes));
    EXPECT_EQ(built.kernels(), 1U);
    EXPECT_EQ(built.program.calls[0].grid % 3, 0U);
    EXPECT_EQ(built.program.calls[0].grid > 3, bytes < (14 << 10));
    built.check();
  }
}

// A block of MobileNetV2: expand, depthwise, project, and the input again.
Graph inverted(std::int64_t batch, std::int64_t side, std::int64_t stride, std::int64_t rows,
               std::int64_t columns, bool residual) {
  GraphBuilder b("inverted");
  const std::int64_t out = (side - 1) / stride + 1;
  const ValueId x = b.input("x", DType::F32, {batch, 4, side, side});
  const GraphBuilder::Convolution point{{1, 1}, {1, 1}, {0, 0}, {side, side}, 1};
  const GraphBuilder::Convolution slide{
      {stride, stride}, {1, 1}, {rows / 2, columns / 2}, {out, out}, 48};
  const GraphBuilder::Convolution last{{1, 1}, {1, 1}, {0, 0}, {out, out}, 1};
  const ValueId in = b.map(ScalarOp::Tanh, x);
  ValueId y = b.convolution(in, b.constant(floats("w1", {48, 4, 1, 1})), point);
  y = b.add(y, b.like(y, 0.3));  // not 0 where the image ends
  y = b.convolution(y, b.constant(floats("w2", {48, 1, rows, columns})), slide);
  y = b.max(y, b.like(y, 0));
  y = b.convolution(y, b.constant(floats("w3", {4, 48, 1, 1})), last);
  b.output("y", residual ? b.add(y, in) : y);
  return b.take();
}

TEST(Bands, RowsOfAWindow) {
  struct Case {
    std::int64_t side, stride, rows, columns, cache;
  };
  // The last bands start early at 25 rows.
  for (const auto& [side, stride, rows, columns, cache] : {Case{20, 1, 3, 3, 72},
                                                           {20, 2, 3, 3, 72},
                                                           {20, 1, 5, 1, 72},
                                                           {25, 1, 3, 3, 72},
                                                           {27, 2, 3, 3, 72},
                                                           {25, 1, 5, 1, 72}}) {
    const Built built(inverted(1, side, stride, rows, columns, stride == 1),
                      small_caches(cache << 10));
    EXPECT_LT(built.kernels(), 4U) << side << " " << stride << " " << rows;
    built.check();
  }
}

// The halos of rows and of columns are larger than what they surround.
TEST(Bands, ImagesOfABatch) {
  const Built built(inverted(24, 4, 1, 3, 3, false), small_caches(64 << 10));
  EXPECT_LT(built.kernels(), 4U) << print_program(built.program);
  built.check();
}

// A gate is true or false for the whole, not for a band.
TEST(Bands, WindowsBehindGates) {
  GraphBuilder b("pool");
  const ValueId x = b.input("x", DType::F32, {1, 16, 24, 24});
  const Scalar lowest = Scalar::of_float(DType::F32, -std::numeric_limits<double>::infinity());
  const ValueId windows = b.windows(x, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {24, 24}}, lowest);
  const ValueId y = b.reduce(ReduceOp::Max, windows, {4, 5}, false);
  b.output("y", b.convolution(y, b.constant(floats("w", {4, 16, 1, 1})),
                              {{1, 1}, {1, 1}, {0, 0}, {24, 24}, 1}));
  const Built built(b.take(), small_caches(4 << 10));
  EXPECT_EQ(built.kernels(), 1U) << print_program(built.program);
  built.check();
}

// The window's rows reach further than those of its neighbour, which has the same shape as the
// operand but another band.
TEST(Bands, OperandsOfAnotherBandStay) {
  for (const bool columns : {false, true}) {
    GraphBuilder b("place");
    const Shape out = columns ? Shape{20, 20} : Shape{16, 24};
    const ValueId x = b.input("x", DType::F32, {1, 4, 20, 24});
    const GraphBuilder::Convolution valid{{1, 1}, {1, 1}, {0, 0}, out, 1};
    const ValueId wide = b.convolution(x, b.constant(floats("w1", {32, 4, 1, 1})),
                                       {{1, 1}, {1, 1}, {0, 0}, {20, 24}, 1});
    const Shape window = columns ? Shape{4, 32, 1, 5} : Shape{4, 32, 5, 1};
    const ValueId d = b.convolution(wide, b.constant(floats("w2", window)), valid);
    const std::vector<std::int64_t> first{0, 0, columns ? 0 : 2, columns ? 2 : 0}, step(4, 1);
    const ValueId z = b.slice(b.map(ScalarOp::Tanh, wide), first, step, {1, 32, out[0], out[1]});
    const ValueId y = b.convolution(z, b.constant(floats("w3", {4, 32, 1, 1})), valid);
    b.output("y", b.mul(y, b.reduce(ReduceOp::Max, d, {1}, true)));
    const Graph graph = b.take();
    for (const std::int64_t cache : {4, 6, 8, 12, 24}) {
      Built(graph, small_caches(cache << 10)).check();
    }
  }
}

// What writes into a ring comes last: its operands are not computed behind another ring's entry.
TEST(Bands, RingsStayBehindTheirReaders) {
  GraphBuilder b("rings");
  const ValueId entry = b.input("entry", DType::I64, {1});
  const ValueId x = b.input("x", DType::F32, {1, 48, 8});
  const ValueId first = b.input("first", DType::F32, {2, 48, 8});
  const ValueId second = b.input("second", DType::F32, {2, 48, 48});
  const std::vector<std::int64_t> start(3, 0), step(3, 1);
  const std::vector<int> swap{0, 2, 1};
  const ValueId keys = b.transpose(b.slice(first, start, step, {1, 48, 8}), swap);
  b.output("sum", b.reduce(ReduceOp::Sum, x, {2}, false));
  b.state(first, b.map(ScalarOp::Tanh, x), std::nullopt, entry);
  b.state(second, b.softmax(b.matmul(x, keys), 2), std::nullopt, entry);
  const Built built(b.take(), small_caches(2 << 10));
  const ProgramCall& last = built.program.calls.back();
  EXPECT_EQ(built.program.kernels[last.kernel]->name, "ring");
  EXPECT_EQ(built.program.kernels[last.kernel]->registers.size(), 0U) << "nothing but a copy";
}

TEST(Bands, RowsThatNoCacheHolds) {
  const Built built(attention(1, 16, 3000), small_caches(16 << 10));
  EXPECT_GT(built.kernels(), 1U);
}

TEST(Bands, NothingIsFusedThatStaysInTheCaches) {
  Target target = default_target();
  const Built built(inverted(1, 12, 1, 3, 3, true), target);
  EXPECT_EQ(built.kernels(), 4U);
}

// What somebody else reads stays in its buffer.
TEST(Bands, ResultsThatOthersRead) {
  GraphBuilder b("both");
  const ValueId q = b.input("q", DType::F32, {1, 48, 8});
  const ValueId k = b.input("k", DType::F32, {1, 8, 64});
  const ValueId v = b.input("v", DType::F32, {1, 64, 16});
  const ValueId shares = b.softmax(b.matmul(q, k), 2);
  b.output("shares", shares);
  b.output("y", b.matmul(shares, v));
  const Built built(b.take(), small_caches(4 << 10));
  EXPECT_EQ(built.kernels(), 2U);
  built.check();
}

TEST(Bands, SameBytesEachTime) {
  const Built one(inverted(1, 20, 2, 3, 3, false), small_caches(72 << 10));
  const Built two(inverted(1, 20, 2, 3, 3, false), small_caches(72 << 10));
  EXPECT_EQ(print_program(one.program), print_program(two.program));
}

}  // namespace
}  // namespace ingot
