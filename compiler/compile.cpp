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
#include "compiler/passes/to_double.h"
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

std::vector<std::byte> initial_state(const Graph& graph, const GraphState& state) {
  const Node& node = graph[state.state];
  if (state.initial) return {state.initial->bytes.begin(), state.initial->bytes.end()};
  return std::vector<std::byte>(static_cast<std::size_t>(element_count(node.shape)) *
                                static_cast<std::size_t>(size_bytes(node.dtype)));
}

Result<ReferenceSequence> make_reference(const Graph& graph, double share,
                                         const CompileOptions& options, KernelRunner& runner) {
  const Graph wide = to_double(graph);
  INGOT_ASSIGN(const Program program, build_strict_program(wide));
  const int steps =
      graph.states.empty() ? options.reference_steps : std::max(2, options.reference_steps);
  std::vector<std::vector<std::byte>> states;
  for (const GraphState& state : graph.states) states.push_back(initial_state(graph, state));
  ReferenceSequence sequence;
  for (int step = 0; step < steps; ++step) {
    ReferenceStep made;
    for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
      const auto* input = std::get_if<InputOp>(&graph.nodes[i].op);
      const bool is_state = std::ranges::any_of(
          graph.states, [&](const GraphState& s) { return s.state == ValueId{i}; });
      if (input == nullptr || is_state) continue;
      made.inputs.push_back(
          reference_input(graph, ValueId{i}, input->name,
                          options.reference_seed + static_cast<std::uint64_t>(step)));
    }
    INGOT_ASSIGN(FrameResult result, run_program(program, made.inputs, states, runner));
    made.outputs = std::move(result.outputs);
    states = std::move(result.next_states);
    sequence.steps.push_back(std::move(made));
  }
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
  return sequence;
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
    for (const Target& target : options.targets) {
      INGOT_ASSIGN(CompiledVariant made,
                   compile_variant(variant.camera, graph, target, options, generator));
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

Result<std::string> run_to_double(std::string_view text) {
  INGOT_ASSIGN(const Graph graph, parse_graph(text));
  INGOT_RETURN_IF_ERROR(validate_graph(graph));
  return print_graph(to_double(graph));
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
  if (name == "to-double") return run_to_double(text);
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
