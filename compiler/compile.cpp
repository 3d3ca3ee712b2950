// The compile from graphs to call lists with code, every stage in order.
#include "compiler/compile.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/idle_inputs.h"
#include "compiler/interpreter_runner.h"
#include "compiler/lowering/schedule.h"
#include "compiler/passes/fold_constants.h"
#include "compiler/passes/sort_nodes.h"
#include "compiler/passes/split_maps.h"
#include "compiler/passes/widen_floats.h"
#include "compiler/plan/plan.h"
#include "compiler/program/build_program.h"
#include "compiler/reference.h"

namespace ingot {
namespace {

void trace(const CompileOptions& options, const std::string& name, const std::string& text) {
  if (options.trace) options.trace(name, text);
}

void progress(const CompileOptions& options, const std::string& stage, std::size_t done = 0,
              std::size_t total = 0) {
  if (options.progress) options.progress(stage, done, total);
}

void begins(const CompileOptions& options, const std::string& pass) {
  if (options.begins) options.begins(pass);
}

// Values too large for any device are refused before memory is asked for them.
constexpr std::int64_t kMostValueBytes = std::int64_t{4} << 30;
// A node above this would run for seconds on any processor core, and far longer in the reference.
constexpr std::int64_t kMostOperations = std::int64_t{1} << 38;

// Elements that a sum or contraction reads, up to the limit and one more.
std::int64_t operations_of(const Graph& graph, const Node& node) {
  const auto* contract = std::get_if<ContractOp>(&node.op);
  if (contract == nullptr && !std::holds_alternative<ReduceNodeOp>(node.op)) return 0;
  const std::vector<std::int64_t>& extents =
      contract != nullptr ? contract->extents : graph[node.inputs[0]].shape;
  if (std::ranges::find(extents, 0) != extents.end()) return 0;
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) {
    if (__builtin_mul_overflow(count, extent, &count) || count > kMostOperations) {
      return kMostOperations + 1;
    }
  }
  return count;
}

Result<void> check_sizes(const Graph& graph) {
  Failure failure;
  failure.exit = ExitCode::Unsupported;
  std::vector<bool> stored(graph.nodes.size());
  for (const GraphOutput& output : graph.outputs) stored[output.value.index] = true;
  for (const GraphState& state : graph.states) stored[state.next.index] = true;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    std::int64_t bytes = size_bytes(node.dtype);
    bool fits = std::ranges::find(node.shape, 0) != node.shape.end();
    if (!fits) {
      fits = std::ranges::all_of(node.shape, [&](std::int64_t extent) {
        return !__builtin_mul_overflow(bytes, extent, &bytes) && bytes <= kMostValueBytes;
      });
    }
    if (operations_of(graph, node) > kMostOperations) {
      Diagnostic diagnostic;
      diagnostic.code = "too-much-work";
      diagnostic.node = node.source;
      diagnostic.message = "more than 2^38 operations in a frame";
      failure.diagnostics.push_back(std::move(diagnostic));
    }
    // Views of a small value cost nothing, unless somebody wants the result.
    if (fits || (std::holds_alternative<ViewOp>(node.op) && !stored[i])) continue;
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

// Schedules of a file, and which of them a kernel used.
class GivenSchedules {
 public:
  explicit GivenSchedules(const std::vector<KernelSchedule>& schedules)
      : schedules_(schedules), used_(schedules.size()) {}

  const KernelSchedule* find(const std::string& target, std::uint64_t key) {
    for (std::size_t i = 0; i < schedules_.size(); ++i) {
      if (schedules_[i].key != key || schedules_[i].target != target) continue;
      used_[i] = true;
      return &schedules_[i];
    }
    return nullptr;
  }

  std::vector<KernelSchedule> unused(const std::vector<Target>& targets) const {
    std::vector<KernelSchedule> found;
    for (std::size_t i = 0; i < schedules_.size(); ++i) {
      const bool asked =
          std::ranges::find(targets, schedules_[i].target, &Target::name) != targets.end();
      if (asked && !used_[i]) found.push_back(schedules_[i]);
    }
    return found;
  }

 private:
  const std::vector<KernelSchedule>& schedules_;
  std::vector<bool> used_;
};

// --- one target

// Names every pass that a kernel went through.
std::string passes_until_code() {
  std::string names;
  for (const PassInfo& pass : pass_list()) {
    if (pass.name != "to-double") names += pass.name + ", ";
  }
  return names + "code";
}

// The own reference's frames, through every call.
Result<void> check_code(const Plan& plan, const CompileOptions& options, const std::string& where,
                        CodeGenerator& generator, CompiledVariant& variant) {
  if (options.checked_elements == 0) return {};
  INGOT_ASSIGN(const std::unique_ptr<LoadedCode> code,
               generator.load(variant.code, variant.target));
  if (!code) return {};
  KernelCheckOptions check;
  check.seed = options.reference_seed;
  check.elements = options.checked_elements;
  check.progress = [&](std::size_t done, std::size_t total) {
    progress(options, "check " + where, done, total);
  };
  std::vector<std::vector<std::byte>> states;
  for (const GraphState& state : plan.graph->states) {
    states.push_back(initial_state(*plan.graph, state));
  }
  std::vector<KernelCheckFrame> frames;
  for (const ReferenceStep& step : variant.references.front()->steps) {
    frames.push_back(KernelCheckFrame{step.inputs});
  }
  Result<KernelCheckCounts> counts =
      check_kernels(plan, variant.program, *code, states, frames, check);
  if (!counts) {
    for (Diagnostic& diagnostic : counts.error().diagnostics) {
      diagnostic.message += " (" + where + ")";
      diagnostic.hint = "passes: " + passes_until_code();
    }
    return std::unexpected(std::move(counts.error()));
  }
  variant.checked = *counts;
  return {};
}

std::size_t count_operations(const Graph& graph) {
  return static_cast<std::size_t>(std::ranges::count_if(graph.nodes, [](const Node& node) {
    return !std::holds_alternative<InputOp>(node.op) &&
           !std::holds_alternative<ConstantOp>(node.op);
  }));
}

Result<CompiledVariant> compile_variant(const std::string& camera, const Graph& graph,
                                        const Target& target,
                                        const std::vector<SharedReference>& references,
                                        const CompileOptions& options, GivenSchedules& schedules,
                                        CodeGenerator& generator) {
  CompiledVariant variant;
  variant.references = references;
  variant.camera = camera;
  variant.target = target;
  const bool optimize = options.optimization > 0;
  const std::string where = camera.empty() ? target.name : target.name + ", " + camera;

  INGOT_ASSIGN(const Plan unfused, make_plan(graph, target, PlanOptions{false, false}));
  progress(options, "plan " + where);
  begins(options, "make-plan");
  INGOT_ASSIGN(const Plan plan, make_plan(graph, target, PlanOptions{optimize, optimize}));
  INGOT_RETURN_IF_ERROR(validate_plan(plan));
  trace(options, "make-plan", print_plan(plan));
  variant.fusion = {0, unfused.kernels.size(), plan.kernels.size()};

  progress(options, "schedule " + where);
  BuildOptions build;
  build.schedule = build.bands = optimize;
  build.trace = options.trace;
  build.begins = options.begins;
  build.rules.verify = options.verify_passes;
  build.counted = [&](const RuleCounts& counts) {
    for (std::size_t rule = 0; rule < kRuleCount; ++rule) variant.rules[rule] += counts[rule];
  };
  build.find_schedule = [&](std::uint64_t key) { return schedules.find(target.name, key); };
  build.packing = [&](std::size_t done, std::size_t total) {
    progress(options, "weights " + where, done, total);
  };
  INGOT_ASSIGN(variant.program, build_program(plan, target, build));
  INGOT_RETURN_IF_ERROR(validate_program(variant.program));
  INGOT_RETURN_IF_ERROR(check_overlap(variant.program));
  trace(options, "plan-memory", print_program(variant.program));

  // From here on no kernel changes: only machine code is made.
  begins(options, "code");
  std::vector<const ScheduledKernel*> kernels;
  for (const auto& kernel : variant.program.kernels) kernels.push_back(kernel.get());
  CodeOptions code;
  code.jobs = options.jobs;
  code.progress = [&](std::size_t done, std::size_t total) {
    progress(options, "code " + where, done, total);
  };
  INGOT_ASSIGN(variant.code, generator.generate(kernels, target, code));
  begins(options, "");
  INGOT_RETURN_IF_ERROR(check_code(plan, options, where, generator, variant));
  return variant;
}

// The own sequence first.
Result<std::vector<SharedReference>> make_references(const ReferenceMaker& maker,
                                                     const CompileInput::Variant& variant,
                                                     const CompileOptions& options) {
  std::vector<SharedReference> references;
  INGOT_ASSIGN(ReferenceSequence own, maker.make_own(options));
  references.push_back(std::make_shared<const ReferenceSequence>(std::move(own)));
  for (const OutsideReference& outside : variant.outside) {
    INGOT_ASSIGN(ReferenceSequence complete, maker.complete(outside));
    references.push_back(std::make_shared<const ReferenceSequence>(std::move(complete)));
  }
  return references;
}

Result<std::vector<IdleInput>> idle_inputs(const Graph& graph, const ReferenceMaker& maker,
                                           const CompileOptions& options, KernelRunner& runner) {
  if (!options.try_inputs) return find_unused_inputs(graph);
  progress(options, "inputs");
  return find_idle_inputs(graph, maker.program(), options.reference_seed, runner);
}

}  // namespace

Result<Compiled> compile(const CompileInput& input, const CompileOptions& options,
                         CodeGenerator& generator, KernelRunner& runner) {
  Compiled compiled;
  GivenSchedules schedules(options.schedules);
  for (const CompileInput::Variant& variant : input.variants) {
    INGOT_RETURN_IF_ERROR(check_sizes(variant.graph));
    INGOT_RETURN_IF_ERROR(validate_graph(variant.graph));
    trace(options, "import", print_graph(variant.graph));
    progress(options, "fold constants");
    begins(options, "sort-nodes");
    const Graph sorted = sort_nodes(variant.graph);
    trace(options, "sort-nodes", print_graph(sorted));
    begins(options, "fold-constants");
    INGOT_ASSIGN(const Graph graph, fold_constants(sorted, runner));
    INGOT_RETURN_IF_ERROR(validate_graph(graph));
    trace(options, "fold-constants", print_graph(graph));

    begins(options, "");
    progress(options, "reference");
    INGOT_ASSIGN(const ReferenceMaker maker,
                 ReferenceMaker::create(graph, input.float_tolerance, runner));
    INGOT_ASSIGN(const std::vector<SharedReference> references,
                 make_references(maker, variant, options));
    if (&variant == &input.variants.front()) {
      INGOT_ASSIGN(compiled.idle_inputs, idle_inputs(graph, maker, options, runner));
    }
    begins(options, "widen-halves");
    Graph wide = widen_halves(graph);
    INGOT_RETURN_IF_ERROR(validate_graph(wide));
    trace(options, "widen-halves", print_graph(wide));
    if (options.optimization > 0) {
      begins(options, "split-maps");
      wide = split_maps(wide);
      INGOT_RETURN_IF_ERROR(validate_graph(wide));
      trace(options, "split-maps", print_graph(wide));
    }
    for (const Target& target : options.targets) {
      INGOT_ASSIGN(CompiledVariant made, compile_variant(variant.camera, wide, target, references,
                                                         options, schedules, generator));
      made.fusion.nodes = count_operations(sorted);
      compiled.variants.push_back(std::move(made));
    }
  }
  compiled.unused_schedules = schedules.unused(options.targets);
  return compiled;
}

// --- passes by name

const std::vector<PassInfo>& pass_list() {
  static const std::vector<PassInfo> passes = [] {
    std::vector<PassInfo> list = {
        {"sort-nodes", "graph", "an order that does not depend on that of the file"},
        {"fold-constants", "graph", "computes what depends on no input"},
        {"to-double", "graph", "the graph in double precision, for references"},
        {"widen-halves", "graph", "half precision as storage only: f32 between inputs and outputs"},
        {"split-maps", "graph", "maps of concatenations become concatenations of maps"},
        {"make-plan", "graph", "chooses kernels, buffers and layouts (graph to plan)"},
        {"lower-kernel", "plan", "kernels as expressions over ranges (graph to ranged kernels)"},
    };
    for (const RangedPass& pass : ranged_passes()) {
      list.push_back({std::string(pass.name), "kernel", std::string(pass.text)});
      if (&pass != &ranged_passes().front()) continue;
      list.push_back({"fuse-bands", "plan",
                      "kernels that run together band by band (graph to scheduled kernels)"});
    }
    list.push_back(
        {"apply-schedule", "kernel", "loops, lanes and registers (ranged to scheduled kernel)"});
    list.push_back(
        {"share-in-place", "program", "results in the place of what nobody reads any more"});
    list.push_back({"plan-memory", "program", "places buffers in arenas"});
    return list;
  }();
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

Result<std::string> run_on_graph(Graph (*pass)(const Graph&), std::string_view text) {
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

// The kernels that a pass of the program's construction prints.
Result<std::string> run_build(std::string_view pass, std::string_view text) {
  INGOT_ASSIGN(const Graph graph, parse_graph(text));
  INGOT_RETURN_IF_ERROR(validate_graph(graph));
  INGOT_ASSIGN(const Plan plan, make_plan(graph, default_target(), PlanOptions{}));
  std::string out;
  BuildOptions options;
  options.bands = true;
  options.trace = [&](const std::string& name, const std::string& kernel) {
    if (name == pass) out += kernel + "\n";
  };
  INGOT_RETURN_IF_ERROR(build_program(plan, default_target(), options));
  return out;
}

Result<std::string> run_rules(const RangedPass& pass, std::string_view text) {
  INGOT_ASSIGN(const RangedKernel kernel, parse_ranged_kernel(text));
  INGOT_RETURN_IF_ERROR(validate_kernel(kernel));
  INGOT_ASSIGN(const Rewritten rewritten, pass.run(kernel, RuleOptions{.verify = true}));
  return print_kernel(rewritten.kernel);
}

Result<std::string> run_schedule(std::string_view text) {
  INGOT_ASSIGN(const RangedKernel kernel, parse_ranged_kernel(text));
  INGOT_RETURN_IF_ERROR(validate_kernel(kernel));
  const std::vector<bool> is_constant(kernel.parameters.size(), false);
  const Schedule schedule = choose_schedule(kernel, is_constant, default_target());
  INGOT_ASSIGN(const ScheduledKernel scheduled, apply_schedule(kernel, schedule, default_target()));
  return print_kernel(scheduled);
}

// Kernels are known by name only, so that none can be shown to update in place.
Result<std::string> run_share_in_place(std::string_view text) {
  INGOT_ASSIGN(Program program, parse_program(text));
  share_in_place(program);
  return print_program(program);
}

Result<std::string> run_plan_memory(std::string_view text) {
  INGOT_ASSIGN(Program program, parse_program(text));
  INGOT_RETURN_IF_ERROR(plan_memory(program));
  INGOT_RETURN_IF_ERROR(check_overlap(program));
  return print_program(program);
}

}  // namespace

Result<std::string> run_pass(const std::string& name, std::string_view text) {
  if (name == "sort-nodes") return run_on_graph(sort_nodes, text);
  if (name == "fold-constants") return run_fold(text);
  if (name == "to-double") return run_on_graph(to_double, text);
  if (name == "widen-halves") return run_on_graph(widen_halves, text);
  if (name == "split-maps") return run_on_graph(split_maps, text);
  if (name == "make-plan") return run_make_plan(text);
  if (name == "lower-kernel" || name == "fuse-bands") return run_build(name, text);
  for (const RangedPass& pass : ranged_passes()) {
    if (name == pass.name) return run_rules(pass, text);
  }
  if (name == "apply-schedule") return run_schedule(text);
  if (name == "share-in-place") return run_share_in_place(text);
  if (name == "plan-memory") return run_plan_memory(text);
  std::string names;
  for (const PassInfo& pass : pass_list()) names += " " + pass.name;
  return fail(ExitCode::Usage, "unknown-pass", fmt::format("there is no pass '{}'", name), {},
              "passes:" + names);
}

}  // namespace ingot
