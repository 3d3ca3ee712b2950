// What stands in a call list and what does not, whatever the model.
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/compile.h"
#include "compiler/graph/builder.h"
#include "compiler/interpreter_runner.h"
#include "compiler/passes/fold_constants.h"
#include "compiler/program/build_program.h"
#include "compiler/program/run_program.h"

namespace ingot {
namespace {

ValueId random_values(GraphBuilder& b, const std::string& name, const Shape& shape) {
  return b.constant(
      Tensor::own(DType::F32, shape, generate_input(name, DType::F32, shape, 7, -1, 1)));
}

ValueId convolution(GraphBuilder& b, ValueId x, ValueId w, std::int64_t side) {
  return b.convolution(
      x, w,
      {.strides = {1, 1}, .dilations = {1, 1}, .pads_before = {1, 1}, .outputs = {side, side}});
}

Program program_of(const Graph& graph, bool optimize) {
  const auto plan = make_plan(graph, default_target(), PlanOptions{optimize, optimize});
  EXPECT_TRUE(plan);
  BuildOptions options;
  options.schedule = optimize;
  auto program = build_program(*plan, default_target(), options);
  EXPECT_TRUE(program);
  EXPECT_TRUE(validate_program(*program));
  return *std::move(program);
}

Graph folded(const Graph& graph) {
  InterpreterRunner runner;
  auto result = fold_constants(graph, runner);
  EXPECT_TRUE(result);
  return *std::move(result);
}

std::vector<std::vector<std::byte>> outputs_of(const Program& program, const Graph& graph) {
  std::vector<std::vector<std::byte>> inputs;
  for (const Node& node : graph.nodes) {
    const auto* input = std::get_if<InputOp>(&node.op);
    if (input == nullptr) continue;
    inputs.push_back(generate_input(input->name, node.dtype, node.shape, 3, -1, 1));
  }
  InterpreterRunner runner;
  auto result = run_program(program, inputs, {}, runner);
  EXPECT_TRUE(result);
  return std::move(result->outputs);
}

// Reads something, and only constants.
bool reads_constants_alone(const Program& program, const ProgramCall& call) {
  const auto is_constant = [&](std::uint32_t buffer) {
    return program.buffers[buffer].kind == BufferKind::Constant;
  };
  return call.buffers.size() > 1 &&
         std::all_of(call.buffers.begin() + 1, call.buffers.end(), is_constant);
}

// Weights that are computed: y = conv(x, exp(a) * conv(b, c)).
Graph with_constant_part(bool known) {
  GraphBuilder b("constants");
  const ValueId x = b.input("x", DType::F32, {1, 4, 6, 6});
  const ValueId a =
      known ? random_values(b, "a", {4, 4, 3, 3}) : b.input("a", DType::F32, {4, 4, 3, 3});
  const ValueId left = b.map(ScalarOp::Exp, a);
  const ValueId right =
      convolution(b, random_values(b, "b", {4, 2, 3, 3}), random_values(b, "c", {4, 2, 3, 3}), 3);
  b.output("y", convolution(b, x, b.mul(left, right), 6));
  return b.take();
}

TEST(CallList, NothingThatDependsOnNoInputRunsEachFrame) {
  for (const bool optimize : {false, true}) {
    const Program pruned = program_of(folded(with_constant_part(true)), optimize);
    for (const ProgramCall& call : pruned.calls) {
      EXPECT_FALSE(reads_constants_alone(pruned, call)) << call.name;
    }
    // Without folding there are such calls.
    const Program whole = program_of(with_constant_part(true), optimize);
    EXPECT_TRUE(std::ranges::any_of(
        whole.calls, [&](const ProgramCall& call) { return reads_constants_alone(whole, call); }));
    EXPECT_LT(pruned.calls.size(), whole.calls.size());
    const auto want = outputs_of(whole, with_constant_part(true));
    const auto got = outputs_of(pruned, with_constant_part(true));
    ASSERT_EQ(want.size(), got.size());
    const auto* a = reinterpret_cast<const float*>(want[0].data());
    const auto* b = reinterpret_cast<const float*>(got[0].data());
    for (std::size_t i = 0; i < want[0].size() / sizeof(float); ++i) {
      EXPECT_NEAR(a[i], b[i], 1e-4) << i;
    }
    // What depends on an input stays.
    const Program other = program_of(folded(with_constant_part(false)), optimize);
    EXPECT_GT(other.calls.size(), pruned.calls.size());
  }
}

// Residual blocks and a concatenation: buffers that live across others.
Graph with_long_lives() {
  GraphBuilder b("lives");
  const ValueId x = b.input("x", DType::F32, {1, 16, 8, 8});
  std::vector<ValueId> kept;
  ValueId value = x;
  for (int i = 0; i < 4; ++i) {
    const std::string name = "w" + std::to_string(i);
    const ValueId inner = convolution(b, value, random_values(b, name, {16, 16, 3, 3}), 8);
    value = b.add(b.map(ScalarOp::Tanh, inner), value);
    if (i % 2 == 0) kept.push_back(value);
  }
  kept.push_back(value);
  b.output("y", b.concat(kept, 1));
  return b.take();
}

TEST(CallList, SharedMemoryChangesNoNumber) {
  const Graph graph = with_long_lives();
  for (const bool optimize : {false, true}) {
    Program shared = program_of(graph, optimize);
    Program apart = shared;
    std::uint64_t end = 0, sharing = 0;
    for (ProgramBuffer& buffer : apart.buffers) {
      if (buffer.arena == kNone) continue;
      sharing = std::max(sharing, apart.arenas[buffer.arena].size_bytes);
      buffer.arena = 0;
      buffer.arena_offset = end;
      end += (buffer.size_bytes + kRegionAlignment - 1) / kRegionAlignment * kRegionAlignment;
    }
    ASSERT_EQ(apart.arenas.size(), 1U);
    apart.arenas[0].size_bytes = end;
    EXPECT_LT(sharing, end);
    EXPECT_EQ(outputs_of(shared, graph), outputs_of(apart, graph));
    // Two buffers that live at one time in one place are seen in the numbers.
    std::vector<ProgramBuffer*> scratch;
    for (ProgramBuffer& buffer : shared.buffers) {
      if (buffer.arena != kNone) scratch.push_back(&buffer);
    }
    for (ProgramBuffer* buffer : scratch) buffer->arena_offset = 0;
    EXPECT_FALSE(check_overlap(shared));
    EXPECT_NE(outputs_of(shared, graph), outputs_of(apart, graph));
  }
}

}  // namespace
}  // namespace ingot
