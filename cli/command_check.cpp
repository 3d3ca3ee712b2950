// ingot check A.ingot --golden DIR: outputs against those of another runtime.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "artifact/names.h"
#include "cli/commands.h"
#include "cli/compare.h"
#include "cli/diagnostics.h"
#include "cli/golden_cases.h"
#include "cli/json.h"
#include "cli/loaded_artifact.h"
#include "cli/options.h"
#include "cli/session.h"
#include "cli/tensor_file.h"
#include "compiler/compile.h"

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

// Runs one case. The steps of a state that the artifact carries itself need no feedback.
class CaseRunner {
 public:
  CaseRunner(const LoadedArtifact& artifact, const CaseRun& run, const CheckOptions& options,
             std::vector<Diagnostic>& warnings)
      : artifact_(artifact), run_(run), options_(options), warnings_(warnings) {}

  Result<std::vector<OutputReport>> check() {
    INGOT_ASSIGN(Session session, Session::create(artifact_));
    INGOT_RETURN_IF_ERROR(check_all_given());
    for (int step = 0; step < run_.steps; ++step) {
      INGOT_RETURN_IF_ERROR(set_inputs(step, session));
      INGOT_RETURN_IF_ERROR(session.run(&warnings_));
      keep_feedback(session);
    }
    std::vector<OutputReport> reports;
    for (const CaseOutput& output : run_.outputs) {
      INGOT_ASSIGN(reports.emplace_back(), compare_output(output, session));
    }
    return reports;
  }

 private:
  std::unexpected<Failure> case_failure(std::string message) const {
    return fail(ExitCode::Malformed, "bad-case", fmt::format("{}: {}", run_.name, message),
                artifact_.path());
  }

  // Inputs in order, then states.
  const SlotView* input_at(std::size_t position) const {
    for (const std::uint32_t direction : {INGOT_SLOT_INPUT, INGOT_SLOT_STATE}) {
      for (const SlotView& slot : artifact_.slots()) {
        if (slot.direction == direction && position-- == 0) return &slot;
      }
    }
    return nullptr;
  }

  const SlotView* output_at(std::size_t position) const {
    for (const SlotView& slot : artifact_.slots()) {
      if (slot.direction == INGOT_SLOT_OUTPUT && position-- == 0) return &slot;
    }
    return nullptr;
  }

  // By name, or by the stem of a file made from the name.
  const SlotView* slot_called(const std::string& name) const {
    if (const SlotView* slot = artifact_.find_slot(name)) return slot;
    for (const SlotView& slot : artifact_.slots()) {
      if (artifact::file_stem(slot.name) == name) return &slot;
    }
    return nullptr;
  }

  const SlotView* input_slot(const CaseInput& input) const {
    const SlotView* slot = input.name.empty() ? input_at(input.position) : slot_called(input.name);
    return slot != nullptr && slot->direction == INGOT_SLOT_OUTPUT ? nullptr : slot;
  }

  Result<void> check_all_given() const {
    for (const SlotView& slot : artifact_.slots()) {
      const bool given = std::ranges::any_of(
          run_.inputs, [&](const CaseInput& input) { return input_slot(input) == &slot; });
      if (slot.direction == INGOT_SLOT_INPUT && !given) {
        return case_failure(fmt::format("no value for input '{}'", slot.name));
      }
    }
    return {};
  }

  bool is_fed(const std::string& input) const {
    return std::ranges::find(run_.feedback, input, &CaseFeedback::input) != run_.feedback.end();
  }

  Result<void> set_inputs(int step, Session& session) {
    for (const CaseInput& input : run_.inputs) {
      const SlotView* slot = input_slot(input);
      if (slot == nullptr) {
        if (std::ranges::find(run_.bound, input.name) != run_.bound.end()) continue;
        return case_failure(fmt::format("the artifact has no input '{}'", input.name));
      }
      if (step > 0 && is_fed(input.name)) {
        INGOT_RETURN_IF_ERROR(feed(*slot, input.name, session));
      } else if (step == 0 || slot->direction != INGOT_SLOT_STATE) {
        INGOT_ASSIGN(const Tensor value, input_value(input, *slot, step));
        INGOT_RETURN_IF_ERROR(session.set(*slot, value.bytes));
      }
    }
    return {};
  }

  Result<Tensor> input_value(const CaseInput& input, const SlotView& slot, int step) const {
    if (input.file) return read_tensor_file(*input.file, slot.dtype, slot.shape);
    if (input.dtype != slot.dtype || input.shape != slot.shape) {
      return case_failure(fmt::format("input '{}' is {}, the artifact has {}", slot.name,
                                      to_text(input.dtype, input.shape),
                                      to_text(slot.dtype, slot.shape)));
    }
    return Tensor::own(
        slot.dtype, slot.shape,
        generate_input(input.name, slot.dtype, slot.shape,
                       run_.seed + static_cast<std::uint64_t>(step), input.lo, input.hi));
  }

  Result<void> feed(const SlotView& slot, const std::string& input, Session& session) {
    if (slot.direction == INGOT_SLOT_STATE) return {};
    const auto kept = fed_.find(input);
    if (kept == fed_.end()) {
      return case_failure(fmt::format("no output is fed to input '{}'", input));
    }
    return session.set(slot, kept->second);
  }

  void keep_feedback(const Session& session) {
    for (const CaseFeedback& pair : run_.feedback) {
      const SlotView* output = slot_called(pair.output);
      if (output == nullptr) continue;
      const std::span<const std::byte> value = session.value(*output);
      fed_[pair.input].assign(value.begin(), value.end());
    }
  }

  // An output that became a state is compared as the state that the next frame would read.
  const SlotView* output_slot(const CaseOutput& output) const {
    if (output.name.empty()) return output_at(output.position);
    if (const SlotView* slot = slot_called(output.name)) return slot;
    for (const CaseFeedback& pair : run_.feedback) {
      if (pair.output == output.name) return slot_called(pair.input);
    }
    return nullptr;
  }

  Result<OutputReport> compare_output(const CaseOutput& output, const Session& session) const {
    const SlotView* slot = output_slot(output);
    if (slot == nullptr || slot->direction == INGOT_SLOT_INPUT) {
      return case_failure(fmt::format("the artifact has no output for {}", output.file.string()));
    }
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
  std::map<std::string, std::vector<std::byte>> fed_;  // by input
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
      ->check(CLI::NonNegativeNumber);
  command.add_option("--camera", options->camera, "Use the variant for this camera layout");
  add_trust_options(command, options->trust);
  command.add_flag("--json", options->json, "Print the comparison as JSON");
  set_action(command, invocation, options, run_check);
}

}  // namespace ingot::cli
