// ingot check A.ingot --golden DIR: outputs against those of another runtime.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/case_reader.h"
#include "cli/commands.h"
#include "cli/compare.h"
#include "cli/diagnostics.h"
#include "cli/golden_cases.h"
#include "cli/json.h"
#include "cli/loaded_artifact.h"
#include "cli/options.h"
#include "cli/session.h"
#include "cli/tensor_file.h"

namespace ingot::cli {
namespace {

struct CheckOptions {
  std::string artifact;
  std::string golden;
  std::string case_name;
  std::optional<double> tolerance;
  std::string camera;
  TrustOptions trust;
  bool json = false;
};

struct OutputReport {
  std::string run, output;
  Shape shape;
  Comparison comparison;
  double allowed = 0;
  bool passed = false;
};

// Shares of the largest expected magnitude that whole models are held to.
double default_tolerance(const LoadedArtifact& artifact, DType output) {
  if (artifact.numerics() == "quantized") return 8e-3;
  const bool half = output == DType::F16 || output == DType::BF16;
  return half || artifact.numerics() == "float16" ? 2e-2 : 1e-4;
}

// Runs one case.
class CaseRunner {
 public:
  CaseRunner(const LoadedArtifact& artifact, const CaseRun& run, const CheckOptions& options,
             std::vector<Diagnostic>& warnings)
      : artifact_(artifact),
        run_(run),
        options_(options),
        warnings_(warnings),
        slots_(case_slots(artifact)),
        reader_(run, slots_, artifact.path()) {}

  Result<std::vector<OutputReport>> check() {
    INGOT_ASSIGN(Session session, Session::create(artifact_));
    for (int step = 0; step < run_.steps; ++step) {
      INGOT_RETURN_IF_ERROR(set_inputs(step, session));
      INGOT_RETURN_IF_ERROR(session.run(&warnings_));
    }
    std::vector<OutputReport> reports;
    for (const CaseOutput& output : run_.outputs) {
      INGOT_ASSIGN(reports.emplace_back(), compare_output(output, session));
    }
    return reports;
  }

 private:
  // Parts of packed inputs as if each were a slot; `index` counts inputs.
  static std::vector<SlotView> case_slots(const LoadedArtifact& artifact) {
    std::vector<SlotView> slots;
    for (const InputView& input : artifact.inputs()) {
      SlotView& slot = slots.emplace_back();
      slot.index = static_cast<std::uint32_t>(slots.size() - 1);
      slot.name = input.name;
      slot.stored = input.stored;
      slot.direction = INGOT_SLOT_INPUT;
      slot.dtype = input.dtype;
      slot.shape = input.shape;
      slot.nbytes = input.nbytes;
      slot.dense = input.dense;
    }
    std::ranges::copy_if(artifact.slots(), std::back_inserter(slots),
                         [](const SlotView& slot) { return slot.direction != INGOT_SLOT_INPUT; });
    return slots;
  }

  Result<void> set_inputs(int step, Session& session) const {
    INGOT_ASSIGN(const std::vector<StepInput> inputs, reader_.step_inputs(step));
    for (const StepInput& input : inputs) {
      if (!input.value && input.fed_by->direction == INGOT_SLOT_INPUT) {
        return reader_.failure(fmt::format("'{}' is no output", input.fed_by->name));
      }
      const std::span<const std::byte> bytes =
          input.value ? input.value->bytes : session.value(*input.fed_by);
      INGOT_RETURN_IF_ERROR(input.slot->direction == INGOT_SLOT_INPUT
                                ? session.set(artifact_.inputs()[input.slot->index], bytes)
                                : session.set(*input.slot, bytes));
    }
    return {};
  }

  Result<OutputReport> compare_output(const CaseOutput& output, const Session& session) const {
    INGOT_ASSIGN(const SlotView* const slot, reader_.output_slot(output));
    INGOT_ASSIGN(const Tensor expected, read_tensor_file(output.file, slot->dtype, slot->shape));
    OutputReport report;
    report.run = run_.name;
    report.output = output.name.empty() ? slot->name : output.name;
    report.shape = slot->shape;
    report.comparison = compare(expected, session.value(*slot));
    const double share = options_.tolerance.value_or(default_tolerance(artifact_, slot->dtype));
    report.allowed = share * report.comparison.largest_expected;
    report.passed = report.comparison.max_abs_error <= report.allowed;
    return report;
  }

  const LoadedArtifact& artifact_;
  const CaseRun& run_;
  const CheckOptions& options_;
  std::vector<Diagnostic>& warnings_;
  const std::vector<SlotView> slots_;
  const CaseReader reader_;
};

// A number, or its name: JSON has no infinities.
Json json_number(double value) {
  return value - value == 0 ? Json(value) : Json(fmt::format("{}", value));
}

Json report_json(const OutputReport& report) {
  const Comparison& c = report.comparison;
  Json json;
  json["case"] = report.run;
  json["output"] = report.output;
  json["passed"] = report.passed;
  json["max_abs_error"] = json_number(c.max_abs_error);
  json["max_rel_error"] = json_number(c.max_rel_error);
  json["allowed"] = report.allowed;
  json["cosine"] = json_number(c.cosine);
  json["worst_index"] = index_text(report.shape, c.worst_index);
  json["worst_found"] = json_number(c.worst_found);
  json["worst_expected"] = json_number(c.worst_expected);
  return json;
}

std::string report_line(const OutputReport& report) {
  const Comparison& c = report.comparison;
  return fmt::format(
      "{} {}: {} max abs {:.3g} (allowed {:.3g}), max rel {:.3g}, cosine {:.9f}, worst {} got "
      "{:.9g} "
      "want {:.9g}\n",
      printable(report.run), printable(report.output), report.passed ? "ok" : "DIFFERS",
      c.max_abs_error, report.allowed, c.max_rel_error, c.cosine,
      index_text(report.shape, c.worst_index), c.worst_found, c.worst_expected);
}

Diagnostic difference(const OutputReport& report, const std::string& file) {
  const Comparison& c = report.comparison;
  Diagnostic diagnostic;
  diagnostic.code = "numbers-differ";
  diagnostic.file = file;
  diagnostic.message = fmt::format("{}: output '{}' differs by {:.3g} at {}, {:.3g} is allowed",
                                   report.run, report.output, c.max_abs_error,
                                   index_text(report.shape, c.worst_index), report.allowed);
  return diagnostic;
}

Result<std::vector<OutputReport>> check_runs(const CheckOptions& options,
                                             std::vector<Diagnostic>& warnings) {
  INGOT_ASSIGN(const LoadedArtifact artifact,
               LoadedArtifact::open(options.artifact, options.trust, options.camera));
  INGOT_ASSIGN(const std::vector<CaseRun> runs,
               read_cases(options.golden, {options.case_name, artifact.model_digests()}));
  std::vector<OutputReport> reports;
  for (const CaseRun& run : runs) {
    INGOT_ASSIGN(std::vector<OutputReport> outputs,
                 CaseRunner(artifact, run, options, warnings).check());
    std::ranges::move(outputs, std::back_inserter(reports));
  }
  return reports;
}

Result<ExitCode> run_check(const CheckOptions& options, std::vector<Diagnostic>& warnings) {
  INGOT_ASSIGN(const std::vector<OutputReport> reports, check_runs(options, warnings));
  Json list = Json::array();
  std::string text;
  Failure failure;
  failure.exit = ExitCode::NumbersDiffer;
  for (const OutputReport& report : reports) {
    list.push_back(report_json(report));
    text += report_line(report);
    if (!report.passed) failure.diagnostics.push_back(difference(report, options.artifact));
  }
  INGOT_RETURN_IF_ERROR(print_result(options.json ? to_text(list) : text));
  if (!failure.diagnostics.empty()) return std::unexpected(std::move(failure));
  return ExitCode::Done;
}

}  // namespace

void add_check_command(CLI::App& app, Invocation& invocation) {
  CLI::App& command =
      add_command(app, "check", "Compare outputs with those of another runtime",
                  "ingot check model.ingot --golden cases --tolerance 1e-4 --pub team.pub");
  auto options = std::make_shared<CheckOptions>();
  command.add_option("ARTIFACT", options->artifact, "Artifact to check")->required();
  command
      .add_option("--golden", options->golden,
                  "Folder with CASE/input_*.npy and CASE/output_*.npy (or .pb), or a cases.json")
      ->required();
  command.add_option("--case", options->case_name,
                     "Case to take; default: all folders, or the case of cases.json whose model "
                     "this is");
  command
      .add_option("--tolerance", options->tolerance,
                  "Allowed error as a share of the largest expected magnitude; default: 1e-4, "
                  "2e-2 for float16, 8e-3 for quantized models")
      ->check(real_number(0, 1'000'000));
  command.add_option("--camera", options->camera, "Use the variant for this camera layout");
  add_trust_options(command, options->trust);
  command.add_flag("--json", options->json, "Print the comparison as JSON");
  set_action(command, invocation, options, run_check);
}

}  // namespace ingot::cli
