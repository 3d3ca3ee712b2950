#include "compiler/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "compiler/passes/widen_floats.h"
#include "compiler/program/run_program.h"

namespace ingot {
namespace {

// A mild perspective: every coordinate is fractional and D is positive on any legal rectangle.
constexpr std::array<float, 9> kReferenceMatrix = {1.01F, 0.02F, 3.3F,  -0.015F, 0.99F,
                                                   2.7F,  1e-5F, 2e-5F, 1.0F};

// Whether a value follows from float arithmetic that the reference does in another precision.
std::vector<bool> find_rounded(const Graph& graph) {
  std::vector<bool> rounded(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    rounded[i] = is_float(node.dtype) && !node.strict && !node.inputs.empty();
    for (ValueId input : node.inputs) rounded[i] = rounded[i] || rounded[input.index];
  }
  return rounded;
}

// Floats: a share of the largest expected magnitude. Bytes that follow from rounding may differ by
// one step; other integers agree bit for bit.
ReferenceTolerance tolerance_for(DType dtype, bool rounded, double share,
                                 const std::vector<std::byte>& expected) {
  if (!is_float(dtype)) {
    const bool one_step = rounded && (dtype == DType::U8 || dtype == DType::I8);
    return ReferenceTolerance{!one_step, one_step ? 1.0F : 0.0F};
  }
  const auto size = static_cast<std::size_t>(size_bytes(dtype));
  double largest = 0;
  for (std::size_t at = 0; at + size <= expected.size(); at += size) {
    const double value = std::abs(Scalar::load(dtype, &expected[at]).as_double());
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  if (dtype == DType::F16 || dtype == DType::BF16) share = std::max(share, 2e-2);
  const double most = std::numeric_limits<float>::max();
  return ReferenceTolerance{false, static_cast<float>(std::min(share * largest, most))};
}

// Whether no element is further from the expected one; a NaN is near a NaN only.
bool within(DType dtype, const std::vector<std::byte>& want, const std::vector<std::byte>& got,
            double atol) {
  const auto size = static_cast<std::size_t>(size_bytes(dtype));
  for (std::size_t at = 0; at + size <= want.size(); at += size) {
    const double a = Scalar::load(dtype, &want[at]).as_double();
    const double b = Scalar::load(dtype, &got[at]).as_double();
    if (a != b && !(std::isnan(a) && std::isnan(b)) && !(std::abs(a - b) <= atol)) return false;
  }
  return true;
}

// Inputs of the frames; their outputs are still to be computed.
ReferenceSequence reference_inputs(const Graph& graph, const CompileOptions& options,
                                   std::uint64_t seed) {
  const int steps =
      graph.states.empty() ? options.reference_steps : std::max(2, options.reference_steps);
  ReferenceSequence sequence;
  sequence.seed = seed;
  for (int step = 0; step < steps; ++step) {
    ReferenceStep made;
    for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
      const auto* input = std::get_if<InputOp>(&graph.nodes[i].op);
      const bool is_state = std::ranges::any_of(
          graph.states, [&](const GraphState& s) { return s.state == ValueId{i}; });
      if (input == nullptr || is_state) continue;
      made.inputs.push_back(
          reference_input(graph, ValueId{i}, seed + static_cast<std::uint64_t>(step)));
    }
    sequence.steps.push_back(std::move(made));
  }
  return sequence;
}

Result<void> run_sequence(const Graph& graph, const Program& program, KernelRunner& runner,
                          ReferenceSequence& sequence) {
  std::vector<std::vector<std::byte>> states;
  for (const GraphState& state : graph.states) states.push_back(initial_state(graph, state));
  for (ReferenceStep& step : sequence.steps) {
    INGOT_ASSIGN(FrameResult result, run_program(program, step.inputs, states, runner));
    step.outputs = std::move(result.outputs);
    states = std::move(result.next_states);
  }
  return {};
}

// The widest that any step asks for.
ReferenceTolerance widest(ReferenceTolerance a, ReferenceTolerance b) {
  return {a.same_bits && b.same_bits, std::max(a.atol, b.atol)};
}

void set_tolerances(const Graph& graph, double share, ReferenceSequence& sequence) {
  const std::vector<bool> rounded = find_rounded(graph);
  const auto of = [&](ValueId value, const std::vector<std::byte>& expected) {
    return tolerance_for(graph[value].dtype, rounded[value.index], share, expected);
  };
  sequence.tolerances.assign(graph.outputs.size(), {true, 0});
  for (const ReferenceStep& step : sequence.steps) {
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
      ReferenceTolerance& tolerance = sequence.tolerances[i];
      tolerance = widest(tolerance, of(graph.outputs[i].value, step.outputs[i]));
    }
    if (step.next_states.empty()) continue;
    sequence.state_tolerances.resize(graph.states.size(), {true, 0});
    for (std::size_t i = 0; i < graph.states.size(); ++i) {
      if (!step.next_states[i]) continue;
      ReferenceTolerance& tolerance = sequence.state_tolerances[i];
      tolerance = widest(tolerance, of(graph.states[i].next, *step.next_states[i]));
    }
  }
}

// Whether rounding may choose another branch somewhere: a comparison or a rounding to whole numbers
// of values that follow from float arithmetic.
bool is_discontinuous(const Graph& graph) {
  const std::vector<bool> rounded = find_rounded(graph);
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    const bool of_rounded = std::ranges::any_of(node.inputs, [&](ValueId input) {
      return rounded[input.index] && is_float(graph[input].dtype);
    });
    const auto* map = std::get_if<MapOp>(&node.op);
    if (map == nullptr) {
      return of_rounded && std::holds_alternative<CastOp>(node.op) && is_integer(node.dtype);
    }
    return of_rounded &&
           (gives_bool(map->op) || (map->op >= ScalarOp::Floor && map->op <= ScalarOp::Round));
  });
}

bool agree(const Graph& graph, const ReferenceSequence& expected, const ReferenceSequence& found) {
  for (std::size_t s = 0; s < expected.steps.size(); ++s) {
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
      const DType dtype = graph[graph.outputs[i].value].dtype;
      const std::vector<std::byte>& want = expected.steps[s].outputs[i];
      const std::vector<std::byte>& got = found.steps[s].outputs[i];
      const ReferenceTolerance& tolerance = expected.tolerances[i];
      if (tolerance.same_bits ? want != got : !within(dtype, want, got, tolerance.atol)) {
        return false;
      }
    }
  }
  return true;
}

// Seeds that are tried; the last one is taken as it is.
constexpr std::uint64_t kMostSeeds = 12;
constexpr std::uint64_t kBetweenSeeds = 1000;

bool all_known(const OutsideReference::KnownValues& values) {
  return std::ranges::all_of(values, [](const auto& value) { return value.has_value(); });
}

}  // namespace

std::vector<std::byte> reference_input(const Graph& graph, ValueId input, std::uint64_t seed) {
  const Node& node = graph[input];
  const bool is_matrix = std::ranges::any_of(
      graph.transforms, [&](const GraphTransform& t) { return t.input == input; });
  if (!is_matrix) {
    const double hi = is_float(node.dtype) ? 1 : node.dtype == DType::U8 ? 255 : 3;
    return generate_input(std::get<InputOp>(node.op).name, node.dtype, node.shape, seed, 0, hi);
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(element_count(node.shape)) * sizeof(float));
  for (std::size_t at = 0; at + sizeof(kReferenceMatrix) <= bytes.size();
       at += sizeof(kReferenceMatrix)) {
    std::memcpy(&bytes[at], kReferenceMatrix.data(), sizeof(kReferenceMatrix));
  }
  return bytes;
}

std::vector<std::byte> initial_state(const Graph& graph, const GraphState& state) {
  const Node& node = graph[state.state];
  if (state.initial) return {state.initial->bytes.begin(), state.initial->bytes.end()};
  return std::vector<std::byte>(static_cast<std::size_t>(element_count(node.shape)) *
                                static_cast<std::size_t>(size_bytes(node.dtype)));
}

Result<ReferenceMaker> ReferenceMaker::create(const Graph& graph, double share,
                                              KernelRunner& runner) {
  INGOT_ASSIGN(Program wide, build_strict_program(to_double(graph)));
  ReferenceMaker maker(graph, share, runner, std::move(wide));
  if (is_discontinuous(graph)) {
    INGOT_ASSIGN(Program plain, build_strict_program(widen_halves(graph)));
    maker.plain_ = std::move(plain);
  }
  return maker;
}

// Where a comparison hangs on the last bits, double precision says nothing about an implementation
// in single precision: seeds whose outputs plain single precision misses are passed over.
Result<ReferenceSequence> ReferenceMaker::make_own(const CompileOptions& options) const {
  for (std::uint64_t attempt = 0;; ++attempt) {
    ReferenceSequence sequence =
        reference_inputs(*graph_, options, options.reference_seed + attempt * kBetweenSeeds);
    ReferenceSequence single = sequence;
    INGOT_RETURN_IF_ERROR(run_sequence(*graph_, wide_, *runner_, sequence));
    set_tolerances(*graph_, share_, sequence);
    if (!plain_ || attempt + 1 == kMostSeeds) return sequence;
    INGOT_RETURN_IF_ERROR(run_sequence(*graph_, *plain_, *runner_, single));
    if (agree(*graph_, sequence, single)) return sequence;
  }
}

Result<void> ReferenceMaker::run_outside(const OutsideReference& outside,
                                         ReferenceSequence& sequence) const {
  std::vector<std::vector<std::byte>> states;
  for (const GraphState& state : graph_->states) states.push_back(initial_state(*graph_, state));
  for (std::size_t s = 0; s < sequence.steps.size(); ++s) {
    ReferenceStep& step = sequence.steps[s];
    for (const OutsideReference::Feedback& pair : outside.feedback) {
      if (s > 0) step.inputs[pair.input] = sequence.steps[s - 1].outputs[pair.output];
    }
    INGOT_ASSIGN(FrameResult result, run_program(wide_, step.inputs, states, *runner_));
    step.outputs = std::move(result.outputs);
    states = std::move(result.next_states);
  }
  return {};
}

Result<ReferenceSequence> ReferenceMaker::complete(const OutsideReference& outside) const {
  ReferenceSequence sequence;
  sequence.name = outside.name;
  sequence.seed = outside.seed;
  for (const OutsideReference::Values& inputs : outside.inputs) {
    sequence.steps.emplace_back().inputs = inputs;
  }
  const bool says_all = sequence.steps.size() == 1 && all_known(outside.outputs);
  if (!says_all) INGOT_RETURN_IF_ERROR(run_outside(outside, sequence));
  ReferenceStep& last = sequence.steps.back();
  last.outputs.resize(outside.outputs.size());
  for (std::size_t i = 0; i < outside.outputs.size(); ++i) {
    last.is_outside.push_back(outside.outputs[i].has_value());
    if (outside.outputs[i]) last.outputs[i] = *outside.outputs[i];
  }
  last.next_states = outside.next_states;
  set_tolerances(*graph_, share_, sequence);
  return sequence;
}

}  // namespace ingot
