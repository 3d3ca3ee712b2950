// The compile from graphs to call lists with code, every stage in order.
#include "compiler/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "compiler/interpreter_runner.h"
#include "compiler/lowering/schedule.h"
#include "compiler/passes/fold_constants.h"
#include "compiler/passes/widen_floats.h"
#include "compiler/plan/plan.h"
#include "compiler/program/build_program.h"
#include "compiler/program/run_program.h"

namespace ingot {
namespace {

void trace(const CompileOptions& options, const std::string& name, const std::string& text) {
  if (options.trace) options.trace(name, text);
}

void progress(const CompileOptions& options, const std::string& stage, std::size_t done = 0,
              std::size_t total = 0) {
  if (options.progress) options.progress(stage, done, total);
}

// --- references

// A mild perspective: every coordinate is fractional and D is positive on any legal rectangle.
constexpr std::array<float, 9> kReferenceMatrix = {1.01F, 0.02F, 3.3F,  -0.015F, 0.99F,
                                                   2.7F,  1e-5F, 2e-5F, 1.0F};

std::vector<std::byte> reference_input(const Graph& graph, ValueId input, const std::string& name,
                                       std::uint64_t seed) {
  const Node& node = graph[input];
  const bool is_matrix = std::ranges::any_of(
      graph.transforms, [&](const GraphTransform& t) { return t.input == input; });
  if (!is_matrix) {
    const double hi = is_float(node.dtype) ? 1 : node.dtype == DType::U8 ? 255 : 3;
    return generate_input(name, node.dtype, node.shape, seed, 0, hi);
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(element_count(node.shape)) * sizeof(float));
  for (std::size_t at = 0; at + sizeof(kReferenceMatrix) <= bytes.size();
       at += sizeof(kReferenceMatrix)) {
    std::memcpy(&bytes[at], kReferenceMatrix.data(), sizeof(kReferenceMatrix));
  }
  return bytes;
}

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
  return ReferenceTolerance{false, static_cast<float>(share * largest)};
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

std::vector<std::byte> initial_state(const Graph& graph, const GraphState& state) {
  const Node& node = graph[state.state];
  if (state.initial) return {state.initial->bytes.begin(), state.initial->bytes.end()};
  return std::vector<std::byte>(static_cast<std::size_t>(element_count(node.shape)) *
                                static_cast<std::size_t>(size_bytes(node.dtype)));
}

// Inputs of the frames; their outputs are still to be computed.
ReferenceSequence reference_inputs(const Graph& graph, const CompileOptions& options,
                                   std::uint64_t seed) {
  const int steps =
      graph.states.empty() ? options.reference_steps : std::max(2, options.reference_steps);
  ReferenceSequence sequence;
  for (int step = 0; step < steps; ++step) {
    ReferenceStep made;
    for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
      const auto* input = std::get_if<InputOp>(&graph.nodes[i].op);
      const bool is_state = std::ranges::any_of(
          graph.states, [&](const GraphState& s) { return s.state == ValueId{i}; });
      if (input == nullptr || is_state) continue;
      made.inputs.push_back(
          reference_input(graph, ValueId{i}, input->name, seed + static_cast<std::uint64_t>(step)));
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

void set_tolerances(const Graph& graph, double share, ReferenceSequence& sequence) {
  const std::vector<bool> rounded = find_rounded(graph);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId value = graph.outputs[i].value;
    ReferenceTolerance tolerance;
    for (const ReferenceStep& step : sequence.steps) {
      const ReferenceTolerance one =
          tolerance_for(graph[value].dtype, rounded[value.index], share, step.outputs[i]);
      tolerance.same_bits = one.same_bits;
      tolerance.atol = std::max(tolerance.atol, one.atol);
    }
    sequence.tolerances.push_back(tolerance);
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

// Where a comparison hangs on the last bits, double precision says nothing about an implementation
// in single precision: seeds whose outputs plain single precision misses are passed over.
Result<ReferenceSequence> make_reference(const Graph& graph, double share,
                                         const CompileOptions& options, KernelRunner& runner) {
  INGOT_ASSIGN(const Program wide, build_strict_program(to_double(graph)));
  std::optional<Program> plain;
  if (is_discontinuous(graph)) {
    INGOT_ASSIGN(Program program, build_strict_program(widen_halves(graph)));
    plain = std::move(program);
  }
  for (std::uint64_t attempt = 0;; ++attempt) {
    ReferenceSequence sequence =
        reference_inputs(graph, options, options.reference_seed + attempt * kBetweenSeeds);
    ReferenceSequence single = sequence;
    INGOT_RETURN_IF_ERROR(run_sequence(graph, wide, runner, sequence));
    set_tolerances(graph, share, sequence);
    if (!plain || attempt + 1 == kMostSeeds) return sequence;
    INGOT_RETURN_IF_ERROR(run_sequence(graph, *plain, runner, single));
    if (agree(graph, sequence, single)) return sequence;
  }
}

// Values too large for any device are refused before memory is asked for them.
constexpr std::int64_t kMostValueBytes = std::int64_t{4} << 30;

Result<void> check_sizes(const Graph& graph) {
  Failure failure;
  failure.exit = ExitCode::Unsupported;
  for (const Node& node : graph.nodes) {
    std::int64_t bytes = size_bytes(node.dtype);
    bool fits = true;
    for (const std::int64_t extent : node.shape) {
      fits = fits && !__builtin_mul_overflow(bytes, extent, &bytes) && bytes <= kMostValueBytes;
    }
    // Views of a small value cost nothing.
    if (fits || std::holds_alternative<ViewOp>(node.op)) continue;
    Diagnostic diagnostic;
    diagnostic.code = "too-large";
    diagnostic.node = node.source;
    diagnostic.message =
        fmt::format("a value of {} is larger than 4 GiB", to_text(node.dtype, node.shape));
    failure.diagnostics.push_back(std::move(diagnostic));
  }
  if (failure.diagnostics.empty()) return {};
  return std::unexpected(std::move(failure));
}

// --- one target

Result<CompiledVariant> compile_variant(const std::string& camera, const Graph& graph,
                                        const Target& target, const CompileOptions& options,
                                        CodeGenerator& generator) {
  CompiledVariant variant;
  variant.camera = camera;
  variant.target = target;
  const bool optimize = options.optimization > 0;
  const std::string where = camera.empty() ? target.name : target.name + ", " + camera;

  progress(options, "plan " + where);
  INGOT_ASSIGN(const Plan plan, make_plan(graph, target, PlanOptions{optimize, optimize}));
  INGOT_RETURN_IF_ERROR(validate_plan(plan));
  trace(options, "make-plan", print_plan(plan));

  progress(options, "schedule " + where);
  BuildOptions build;
  build.schedule = optimize;
  build.trace = options.trace;
  INGOT_ASSIGN(variant.program, build_program(plan, target, build));
  INGOT_RETURN_IF_ERROR(validate_program(variant.program));
  INGOT_RETURN_IF_ERROR(check_overlap(variant.program));
  trace(options, "plan-memory", print_program(variant.program));

  // From here on no kernel changes: only machine code is made.
  std::vector<const ScheduledKernel*> kernels;
  for (const auto& kernel : variant.program.kernels) kernels.push_back(kernel.get());
  CodeOptions code;
  code.jobs = options.jobs;
  code.progress = [&](std::size_t done, std::size_t total) {
    progress(options, "code " + where, done, total);
  };
  INGOT_ASSIGN(variant.code, generator.generate(kernels, target, code));
  return variant;
}

}  // namespace

Result<Compiled> compile(const CompileInput& input, const CompileOptions& options,
                         CodeGenerator& generator, KernelRunner& runner) {
  Compiled compiled;
  for (const CompileInput::Variant& variant : input.variants) {
    INGOT_RETURN_IF_ERROR(check_sizes(variant.graph));
    INGOT_RETURN_IF_ERROR(validate_graph(variant.graph));
    trace(options, "import", print_graph(variant.graph));
    progress(options, "fold constants");
    INGOT_ASSIGN(const Graph graph, fold_constants(variant.graph, runner));
    INGOT_RETURN_IF_ERROR(validate_graph(graph));
    trace(options, "fold-constants", print_graph(graph));

    progress(options, "reference");
    INGOT_ASSIGN(ReferenceSequence sequence,
                 make_reference(graph, input.float_tolerance, options, runner));
    const auto reference = std::make_shared<const ReferenceSequence>(std::move(sequence));
    const Graph wide = widen_halves(graph);
    INGOT_RETURN_IF_ERROR(validate_graph(wide));
    trace(options, "widen-halves", print_graph(wide));
    for (const Target& target : options.targets) {
      INGOT_ASSIGN(CompiledVariant made,
                   compile_variant(variant.camera, wide, target, options, generator));
      made.reference = reference;
      compiled.variants.push_back(std::move(made));
    }
  }
  return compiled;
}

// --- passes by name

const std::vector<PassInfo>& pass_list() {
  static const std::vector<PassInfo> passes = {
      {"fold-constants", "graph", "computes what depends on no input"},
      {"to-double", "graph", "the graph in double precision, for references"},
      {"widen-halves", "graph", "half precision as storage only: f32 between inputs and outputs"},
      {"make-plan", "graph", "chooses kernels, buffers and layouts (graph to plan)"},
      {"lower-kernel", "plan", "kernels as expressions over ranges (graph to ranged kernels)"},
      {"apply-schedule", "kernel", "loops, lanes and registers (ranged to scheduled kernel)"},
      {"plan-memory", "program", "places buffers in arenas"},
  };
  return passes;
}

namespace {

Result<std::string> run_fold(std::string_view text) {
  INGOT_ASSIGN(const Graph graph, parse_graph(text));
  INGOT_RETURN_IF_ERROR(validate_graph(graph));
  InterpreterRunner runner;
  INGOT_ASSIGN(const Graph folded, fold_constants(graph, runner));
  return print_graph(folded);
}

Result<std::string> run_widening(Graph (*pass)(const Graph&), std::string_view text) {
  INGOT_ASSIGN(const Graph graph, parse_graph(text));
  INGOT_RETURN_IF_ERROR(validate_graph(graph));
  return print_graph(pass(graph));
}

Result<std::string> run_make_plan(std::string_view text) {
  INGOT_ASSIGN(const Graph graph, parse_graph(text));
  INGOT_RETURN_IF_ERROR(validate_graph(graph));
  INGOT_ASSIGN(const Plan plan, make_plan(graph, default_target(), PlanOptions{}));
  INGOT_RETURN_IF_ERROR(validate_plan(plan));
  return print_plan(plan);
}

Result<std::string> run_lower(std::string_view text) {
  INGOT_ASSIGN(const Graph graph, parse_graph(text));
  INGOT_RETURN_IF_ERROR(validate_graph(graph));
  INGOT_ASSIGN(const Plan plan, make_plan(graph, default_target(), PlanOptions{}));
  std::string out;
  BuildOptions options;
  options.trace = [&](const std::string& name, const std::string& kernel) {
    if (name == "lower-kernel") out += kernel + "\n";
  };
  INGOT_RETURN_IF_ERROR(build_program(plan, default_target(), options));
  return out;
}

Result<std::string> run_schedule(std::string_view text) {
  INGOT_ASSIGN(const RangedKernel kernel, parse_ranged_kernel(text));
  INGOT_RETURN_IF_ERROR(validate_kernel(kernel));
  const std::vector<bool> is_constant(kernel.parameters.size(), false);
  const Schedule schedule = choose_schedule(kernel, is_constant, default_target());
  INGOT_ASSIGN(const ScheduledKernel scheduled, apply_schedule(kernel, schedule, default_target()));
  return print_kernel(scheduled);
}

Result<std::string> run_plan_memory(std::string_view text) {
  INGOT_ASSIGN(Program program, parse_program(text));
  INGOT_RETURN_IF_ERROR(plan_memory(program));
  INGOT_RETURN_IF_ERROR(check_overlap(program));
  return print_program(program);
}

}  // namespace

Result<std::string> run_pass(const std::string& name, std::string_view text) {
  if (name == "fold-constants") return run_fold(text);
  if (name == "to-double") return run_widening(to_double, text);
  if (name == "widen-halves") return run_widening(widen_halves, text);
  if (name == "make-plan") return run_make_plan(text);
  if (name == "lower-kernel") return run_lower(text);
  if (name == "apply-schedule") return run_schedule(text);
  if (name == "plan-memory") return run_plan_memory(text);
  std::string names;
  for (const PassInfo& pass : pass_list()) names += " " + pass.name;
  return fail(ExitCode::Usage, "unknown-pass", fmt::format("there is no pass '{}'", name), {},
              "passes:" + names);
}

}  // namespace ingot
