// The judge of a compile's own kernels: right code passes, one wrong element is named, and nothing
// is said where rounding decides.
#include "compiler/program/check_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "compiler/compile.h"
#include "compiler/graph/builder.h"
#include "compiler/graph/evaluate_element.h"
#include "compiler/program/build_program.h"
#include "tests/support/graph_interpreter.h"
#include "tests/support/interpreted_code.h"

namespace ingot {
namespace {

// The outputs of one call are changed a little.
class SpoiledCode final : public InterpretedCode {
 public:
  using InterpretedCode::InterpretedCode;

  Result<void> run(std::size_t entry, std::span<std::byte* const> buffers,
                   std::uint32_t turns) override {
    INGOT_RETURN_IF_ERROR(InterpretedCode::run(entry, buffers, turns));
    if (calls_++ == spoiled_call) {
      const KernelParameter& out = program_.kernels[entry]->parameters[0];
      auto* const elements = reinterpret_cast<float*>(buffers[0]);
      for (std::int64_t i = 0; i < element_count(out.layout, out.shape); ++i) {
        elements[i] = elements[i] * (1 + spoiled_share) + spoiled_offset;
      }
    }
    return {};
  }

  int spoiled_call = -1;
  float spoiled_share = 0, spoiled_offset = 0;

 private:
  int calls_ = 0;
};

struct Built {
  Graph graph;
  Plan plan;
  Program program;
  std::vector<KernelCheckFrame> frames;
  std::vector<std::vector<std::byte>> states;

  explicit Built(Graph made, int steps = 1) : graph(std::move(made)) {
    plan = *make_plan(graph, default_target(), PlanOptions{});
    program = *build_program(plan, default_target(), BuildOptions{});
    frames.resize(static_cast<std::size_t>(steps));
    for (const PlanIo& io : program.io) {
      for (std::size_t step = 0; io.kind == BufferKind::Input && step < frames.size(); ++step) {
        frames[step].inputs.push_back(generate_input(io.name, io.dtype, io.shape, step, -1, 1));
      }
      if (io.kind == BufferKind::State)
        states.push_back(generate_input(io.name, io.dtype, io.shape, 9, -1, 1));
    }
  }

  Result<KernelCheckCounts> check(LoadedCode& code, int elements = 100'000) const {
    KernelCheckOptions options;
    options.elements = elements;
    options.steps_per_kernel = 100'000'000;
    return check_kernels(plan, program, code, states, frames, options);
  }
};

Tensor floats(const char* name, const Shape& shape) {
  return Tensor::own(DType::F32, shape, generate_input(name, DType::F32, shape, 7, -1, 1));
}

Graph network() {
  GraphBuilder b("network");
  const ValueId x = b.input("x", DType::F32, {1, 16, 9, 9});
  const ValueId state = b.input("state", DType::F32, {1, 16, 9, 9});
  const GraphBuilder::Convolution same{{1, 1}, {1, 1}, {1, 1}, {9, 9}, 1};
  const ValueId joined = b.add(x, state);
  const ValueId y = b.convolution(joined, b.constant(floats("w", {16, 16, 3, 3})), same);
  const ValueId z = b.max(y, b.like(y, 0));
  const ValueId both[] = {z, b.map(ScalarOp::Tanh, joined)};
  const ValueId parts = b.concat(both, 1);
  const ValueId sums = b.reduce(ReduceOp::Sum, parts, {2, 3}, false);
  b.output("p", b.softmax(sums, 1));
  b.state(state, b.sigmoid(z));
  return b.take();
}

TEST(CheckKernels, RightCodePasses) {
  const Built built(network(), 2);
  InterpretedCode code(built.program);
  const auto counts = built.check(code);
  ASSERT_TRUE(counts) << counts.error().diagnostics[0].message;
  EXPECT_EQ(counts->kernels, built.plan.kernels.size());
  EXPECT_GT(counts->elements, 2000U);
  EXPECT_EQ(counts->undecided, 0U);
}

TEST(CheckKernels, NamesTheFirstCallThatIsWrong) {
  const Built built(network());
  for (std::size_t call = 0; call < built.plan.kernels.size(); ++call) {
    SpoiledCode code(built.program);
    code.spoiled_call = static_cast<int>(call);
    code.spoiled_offset = 1e-3F;
    const auto counts = built.check(code);
    ASSERT_FALSE(counts) << call;
    EXPECT_EQ(counts.error().exit, ExitCode::Internal);
    const Diagnostic& diagnostic = counts.error().diagnostics[0];
    EXPECT_EQ(diagnostic.code, "kernel-differs");
    EXPECT_EQ(diagnostic.node, built.plan.kernels[call].name);
    EXPECT_NE(diagnostic.message.find("element [0"), std::string::npos) << diagnostic.message;
  }
}

TEST(CheckKernels, RoundingErrorsAreNoMistake) {
  const Built built(network());
  SpoiledCode code(built.program);
  code.spoiled_call = static_cast<int>(built.plan.kernels.size()) - 1;  // the softmax
  code.spoiled_share = 1e-7F;
  EXPECT_TRUE(built.check(code));
}

// --- elements

// Every element of every input holds one number.
class StoredInputs final : public StoredValues {
 public:
  StoredInputs(const Graph& graph, double number) : graph_(graph), number_(number) {}
  bool contains(ValueId value) const override {
    return std::holds_alternative<InputOp>(graph_[value].op);
  }
  Scalar load(ValueId value, const std::vector<std::int64_t>&) const override {
    return Scalar::of_float(graph_[value].dtype, number_);
  }

 private:
  const Graph& graph_;
  double number_;
};

// Every element of every node of a graph of constants against the interpreter of graphs.
void expect_as_interpreted(const Graph& graph) {
  const GraphRun run = interpret_graph(graph, {});
  const StoredInputs stored(graph, 0);
  ElementEvaluator evaluator(graph, stored);
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    for (std::int64_t flat = 0; flat < element_count(node.shape); ++flat) {
      ElementEvaluator::Coordinates at(node.shape.size());
      std::int64_t rest = flat;
      for (std::size_t d = at.size(); d-- > 0;) {
        at[d] = rest % node.shape[d];
        rest /= node.shape[d];
      }
      const Element element = evaluator.evaluate(ValueId{i}, at, 1'000'000);
      const Scalar want = run[ValueId{i}].at(flat);
      ASSERT_FALSE(element.undecided) << to_text(node) << " element " << flat;
      if (is_float(node.dtype)) {
        EXPECT_NEAR(element.as_double(), want.as_double(), element.error + 1e-300)
            << to_text(node) << " element " << flat;
      } else {
        EXPECT_EQ(element.bits, want.bits) << to_text(node) << " element " << flat;
      }
    }
  }
}

TEST(EvaluateElement, EveryOperationAsInterpreted) {
  GraphBuilder b("all");
  const ValueId x = b.constant(floats("x", {2, 6, 5}));
  const ValueId w = b.constant(floats("w", {5, 4}));
  const ValueId product = b.matmul(x, w);
  const std::int64_t numbers[] = {0, 2, -1};
  const ValueId index = b.constant(Tensor::of_ints(DType::I64, {3}, numbers));
  const ValueId chosen = b.gather(product, index, 1);
  const int swap[] = {2, 0, 1};
  const ValueId turned = b.transpose(chosen, swap);
  const std::int64_t one[] = {1, 0, 2};
  const ValueId padded = b.pad(turned, one, one, Scalar::of_float(DType::F32, -3));
  const ValueId flat = b.reshape(padded, {element_count(b.shape(padded))});
  const ValueId exp = b.map(ScalarOp::Exp, flat);
  const ValueId steps = b.cast(b.mul(flat, b.like(flat, 10)), DType::I32);
  const ValueId halves = b.cast(b.cast(exp, DType::F16), DType::F32);
  const ValueId both[] = {b.div(exp, b.add(exp, b.like(exp, 1))), b.cast(steps, DType::F32),
                          halves};
  const ValueId joined = b.concat(both, 0);
  b.output("max", b.reduce(ReduceOp::Max, joined, {0}, false));
  b.output("sum", b.reduce(ReduceOp::Sum, joined, {0}, true));
  b.output("product", b.reduce(ReduceOp::Product, b.sigmoid(x), {1}, false));
  b.output("lines", b.softmax(x, 2));
  b.output("place", b.cast(b.iota(DType::I32, {4, 3}, 1), DType::U8));
  expect_as_interpreted(b.take());
}

TEST(EvaluateElement, WhatRoundingDecidesIsLeftOpen) {
  GraphBuilder b("ties");
  const ValueId tenth = b.input("x", DType::F32, {1});
  const ValueId sum = b.add(b.add(tenth, tenth), tenth);
  const ValueId equal = b.map(ScalarOp::Eq, sum, b.like(sum, 0.3));
  const ValueId floor = b.map(ScalarOp::Floor, b.mul(sum, b.like(sum, 10)));
  const ValueId less = b.map(ScalarOp::Lt, sum, b.like(sum, 1));
  const ValueId round = b.map(ScalarOp::Round, tenth);
  const ValueId whole = b.cast(b.add(round, b.like(round, 4)), DType::I32);
  const Graph graph = b.take();
  const StoredInputs stored(graph, 0.1);
  ElementEvaluator evaluator(graph, stored);
  EXPECT_TRUE(evaluator.evaluate(equal, {0}, 100).undecided);
  EXPECT_TRUE(evaluator.evaluate(floor, {0}, 100).undecided);
  EXPECT_EQ(evaluator.evaluate(less, {0}, 100).bits, 1U);
  // Whole numbers are exact, whatever the order.
  EXPECT_EQ(evaluator.evaluate(whole, {0}, 100).bits, 4U);
}

TEST(EvaluateElement, StopsAtItsLimit) {
  GraphBuilder b("long");
  const ValueId sum = b.reduce(ReduceOp::Sum, b.constant(floats("x", {1000})), {0}, false);
  const Graph graph = b.take();
  const StoredInputs stored(graph, 0);
  ElementEvaluator evaluator(graph, stored);
  EXPECT_FALSE(evaluator.evaluate(sum, {}, 5000).undecided);
  EXPECT_TRUE(evaluator.evaluate(sum, {}, 500).undecided);
}

TEST(EvaluateElement, WhatHasNoBoundIsLeftOpen) {
  GraphBuilder b("poles");
  const ValueId x = b.input("x", DType::F32, {3});
  const ValueId zero = b.sub(b.add(b.mul(x, x), x), b.add(b.mul(x, x), x));  // but for rounding
  const ValueId root = b.map(ScalarOp::Sqrt, zero);
  const ValueId log = b.map(ScalarOp::Log, zero);
  const ValueId quotient = b.div(x, zero);
  const ValueId truth = b.cast(zero, DType::Bool);
  const ValueId product = b.reduce(ReduceOp::Product, zero, {0}, false);
  const ValueId large = b.reduce(ReduceOp::Product, b.mul(x, b.like(x, 1e20)), {0}, false);
  const Graph graph = b.take();
  const StoredInputs stored(graph, 0.3);
  ElementEvaluator evaluator(graph, stored);
  for (const ValueId value : {root, log, quotient, truth}) {
    EXPECT_TRUE(evaluator.evaluate(value, {0}, 100).undecided) << to_text(graph[value]);
  }
  EXPECT_TRUE(evaluator.evaluate(product, {}, 1000).undecided);
  EXPECT_TRUE(evaluator.evaluate(large, {}, 1000).undecided);
}

// A masked score, far below: double precision has a number, single precision has 0.
TEST(EvaluateElement, ExponentialsOfInexactNumbersFarBelow) {
  GraphBuilder b("mask");
  const ValueId x = b.input("x", DType::F32, {1});
  const ValueId masked = b.add(x, b.mul(x, b.like(x, -1e10)));
  const ValueId exp = b.map(ScalarOp::Exp, masked);
  const Graph graph = b.take();
  const StoredInputs stored(graph, 0.7);
  ElementEvaluator evaluator(graph, stored);
  const Element want = evaluator.evaluate(exp, {0}, 100);
  EXPECT_FALSE(want.undecided);
  EXPECT_EQ(want.as_double(), 0);
  EXPECT_LT(want.error, 1e-30);
}

// 10,000 times 0.1, one after the other in single precision, is off by almost 1e-4.
TEST(EvaluateElement, ErrorsOfEqualTermsAddUp) {
  GraphBuilder b("equal");
  const ValueId sum = b.reduce(ReduceOp::Sum, b.input("x", DType::F32, {10'000}), {0}, false);
  const Graph graph = b.take();
  const StoredInputs stored(graph, 0.1);
  ElementEvaluator evaluator(graph, stored);
  const Element want = evaluator.evaluate(sum, {}, 100'000);
  float found = 0;
  for (int i = 0; i < 10'000; ++i) found += 0.1F;
  EXPECT_NEAR(want.as_double(), static_cast<double>(found), want.error);
}

TEST(EvaluateElement, SumsThatAreTooLargeForTheType) {
  GraphBuilder b("large");
  const ValueId x = b.input("x", DType::F32, {1});
  const ValueId twice = b.add(x, x);
  const Graph graph = b.take();
  const StoredInputs stored(graph, 3e38);
  ElementEvaluator evaluator(graph, stored);
  EXPECT_TRUE(std::isinf(evaluator.evaluate(twice, {0}, 100).as_double()));
}

}  // namespace
}  // namespace ingot
