// Kernels that run together band by band compute what the graph says, everywhere: at the borders of
// bands, where windows leave the image, where the last band starts early.
#include "compiler/lowering/bands.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/compile.h"
#include "compiler/graph/builder.h"
#include "compiler/program/build_program.h"
#include "compiler/program/check_kernels.h"

namespace ingot {
namespace {

class InterpretedCode final : public LoadedCode {
 public:
  explicit InterpretedCode(const Program& program) : program_(program) {}
  Result<void> run(std::size_t entry, std::span<std::byte* const> buffers, std::uint32_t) override {
    INGOT_RETURN_IF_ERROR(interpret(*program_.kernels[entry], buffers));
    return {};
  }

 private:
  const Program& program_;
};

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
Graph inverted(std::int64_t side, std::int64_t stride, std::int64_t rows, std::int64_t columns,
               bool residual) {
  GraphBuilder b("inverted");
  const std::int64_t out = (side - 1) / stride + 1;
  const ValueId x = b.input("x", DType::F32, {1, 4, side, side});
  const GraphBuilder::Convolution point{{1, 1}, {0, 0}, {1, 1}, {side, side}, 1};
  const GraphBuilder::Convolution slide{
      {stride, stride}, {rows / 2, columns / 2}, {1, 1}, {out, out}, 48};
  const GraphBuilder::Convolution last{{1, 1}, {0, 0}, {1, 1}, {out, out}, 1};
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
    const Built built(inverted(side, stride, rows, columns, stride == 1),
                      small_caches(cache << 10));
    EXPECT_LT(built.kernels(), 4U) << side << " " << stride << " " << rows;
    built.check();
  }
}

TEST(Bands, NothingIsFusedThatStaysInTheCaches) {
  Target target = default_target();
  const Built built(inverted(12, 1, 3, 3, true), target);
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
  const Built one(inverted(20, 2, 3, 3, false), small_caches(72 << 10));
  const Built two(inverted(20, 2, 3, 3, false), small_caches(72 << 10));
  EXPECT_EQ(print_program(one.program), print_program(two.program));
}

}  // namespace
}  // namespace ingot
