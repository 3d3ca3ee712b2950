// ingot diff A.ingot B.ingot: what changed.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "artifact/decode.h"
#include "cli/artifact_diff.h"
#include "cli/commands.h"
#include "cli/compare.h"
#include "cli/diagnostics.h"
#include "cli/json.h"
#include "cli/loaded_artifact.h"
#include "cli/options.h"
#include "cli/session.h"

namespace ingot::cli {
namespace {

struct DiffOptions {
  std::string a, b;
  std::string camera;
  TrustOptions trust;
  bool same_numbers = false;
  bool json = false;
};

constexpr int kFrames = 3;

struct OutputDifference {
  std::string name;
  double max_abs_error = 0, max_rel_error = 0;
};

// Outputs of both on the same inputs, or why there are none.
struct Numbers {
  std::string reason;  // empty: compared
  std::vector<OutputDifference> outputs;

  [[nodiscard]] bool same() const {
    return reason.empty() && std::ranges::all_of(outputs, [](const OutputDifference& output) {
             return output.max_abs_error == 0;
           });
  }
};

bool same_slot(const SlotView& a, const SlotView& b) {
  return a.name == b.name && a.direction == b.direction && a.dtype == b.dtype &&
         a.shape == b.shape && a.nbytes == b.nbytes;
}

// Compares every output after every frame, and states as the next frame reads them.
class TwoSessions {
 public:
  TwoSessions(const LoadedArtifact& a, const LoadedArtifact& b) : a_(a), b_(b) {}

  Result<std::vector<OutputDifference>> run() {
    INGOT_ASSIGN(Session a, Session::create(a_));
    INGOT_ASSIGN(Session b, Session::create(b_));
    for (const SlotView& slot : a_.slots()) {
      if (slot.direction != INGOT_SLOT_INPUT) outputs_.push_back({slot.name});
    }
    for (std::uint64_t frame = 1; frame <= kFrames; ++frame) {
      INGOT_RETURN_IF_ERROR(a.fill_inputs(frame));
      INGOT_RETURN_IF_ERROR(b.fill_inputs(frame));
      INGOT_RETURN_IF_ERROR(a.run());
      INGOT_RETURN_IF_ERROR(b.run());
      compare_frame(a, b);
    }
    return std::move(outputs_);
  }

 private:
  void compare_frame(const Session& a, const Session& b) {
    std::size_t next = 0;
    for (const SlotView& slot : a_.slots()) {
      if (slot.direction == INGOT_SLOT_INPUT) continue;
      const std::span<const std::byte> value = a.value(slot);
      const Tensor expected{slot.dtype, slot.shape, nullptr, value};
      const Comparison comparison = compare(expected, b.value(*b_.find_slot(slot.name)));
      OutputDifference& output = outputs_[next++];
      output.max_abs_error = std::max(output.max_abs_error, comparison.max_abs_error);
      output.max_rel_error = std::max(output.max_rel_error, comparison.max_rel_error);
    }
  }

  const LoadedArtifact& a_;
  const LoadedArtifact& b_;
  std::vector<OutputDifference> outputs_;
};

Result<Numbers> compare_numbers(const LoadedArtifact& a, const LoadedArtifact& b) {
  Numbers numbers;
  const bool same_slots = std::ranges::is_permutation(a.slots(), b.slots(), same_slot);
  if (!same_slots) {
    numbers.reason = "inputs, outputs or states differ";
    return numbers;
  }
  INGOT_ASSIGN(numbers.outputs, TwoSessions(a, b).run());
  return numbers;
}

// Trust is a question of either artifact, whether it fits this machine one of its numbers.
Result<Numbers> find_numbers(const DiffOptions& options) {
  Result<LoadedArtifact> a = LoadedArtifact::open(options.a, options.trust, options.camera);
  if (!a && a.error().exit != ExitCode::Incompatible) return std::unexpected(a.error());
  Result<LoadedArtifact> b = LoadedArtifact::open(options.b, options.trust, options.camera);
  if (!b && b.error().exit != ExitCode::Incompatible) return std::unexpected(b.error());
  if (a && b) return compare_numbers(*a, *b);
  if (options.same_numbers) return std::unexpected(a ? b.error() : a.error());
  const std::vector<Diagnostic>& why = a ? b.error().diagnostics : a.error().diagnostics;
  return Numbers{why.front().file + ": " + why.front().message, {}};
}

Result<std::vector<std::byte>> read_well_formed(const std::string& path) {
  INGOT_ASSIGN(std::vector<std::byte> bytes, read_artifact_file(path));
  INGOT_RETURN_IF_ERROR(check_structure(bytes, path));
  return bytes;
}

// A number, or its name: JSON has no infinities.
Json json_number(double value) {
  return value - value == 0 ? Json(value) : Json(fmt::format("{}", value));
}

Json numbers_json(const Numbers& numbers) {
  Json json{{"compared", numbers.reason.empty()},
            {"reason", numbers.reason},
            {"same", numbers.same()},
            {"outputs", Json::array()}};
  for (const OutputDifference& output : numbers.outputs) {
    json["outputs"].push_back({{"output", output.name},
                               {"max_abs_error", json_number(output.max_abs_error)},
                               {"max_rel_error", json_number(output.max_rel_error)}});
  }
  return json;
}

std::string numbers_text(const Numbers& numbers) {
  if (!numbers.reason.empty()) return fmt::format("numbers: not compared ({})\n", numbers.reason);
  std::string text =
      fmt::format("numbers of {} frames: {}\n", kFrames, numbers.same() ? "the same" : "different");
  for (const OutputDifference& output : numbers.outputs) {
    if (output.max_abs_error == 0) continue;
    text += fmt::format("  {}: max abs {:.3g}, max rel {:.3g}\n", printable(output.name),
                        output.max_abs_error, output.max_rel_error);
  }
  return text;
}

Result<void> demand_same(const Numbers& numbers, const std::string& file) {
  Failure failure;
  failure.exit = ExitCode::NumbersDiffer;
  const auto add = [&](std::string message) {
    Diagnostic diagnostic;
    diagnostic.code = "numbers-differ";
    diagnostic.file = file;
    diagnostic.message = std::move(message);
    failure.diagnostics.push_back(std::move(diagnostic));
  };
  if (!numbers.reason.empty()) add(numbers.reason);
  for (const OutputDifference& output : numbers.outputs) {
    if (output.max_abs_error == 0) continue;
    add(fmt::format("'{}' differs by {:.3g}", output.name, output.max_abs_error));
  }
  if (failure.diagnostics.empty()) return {};
  return std::unexpected(std::move(failure));
}

Result<ExitCode> run_diff(const DiffOptions& options, std::vector<Diagnostic>&) {
  INGOT_ASSIGN(const std::vector<std::byte> a, read_well_formed(options.a));
  INGOT_ASSIGN(const std::vector<std::byte> b, read_well_formed(options.b));
  INGOT_ASSIGN(const Numbers numbers, find_numbers(options));
  INGOT_ASSIGN(const artifact::Decoded in_a, about(options.a, artifact::decode(a)));
  INGOT_ASSIGN(const artifact::Decoded in_b, about(options.b, artifact::decode(b)));
  Json diff = diff_artifacts(in_a, in_b);
  std::string text = options.json ? "" : diff_text(diff) + numbers_text(numbers);
  if (options.json) {
    diff["numbers"] = numbers_json(numbers);
    text = to_text(diff);
  }
  INGOT_RETURN_IF_ERROR(print_result(text));
  if (options.same_numbers) INGOT_RETURN_IF_ERROR(demand_same(numbers, options.b));
  return ExitCode::Done;
}

}  // namespace

void add_diff_command(CLI::App& app, Invocation& invocation) {
  CLI::App& command = add_command(app, "diff", "What changed between two artifacts",
                                  "ingot diff old.ingot new.ingot --pub team.pub");
  auto options = std::make_shared<DiffOptions>();
  command.add_option("A", options->a, "The one before")->required();
  command.add_option("B", options->b, "The one after")->required();
  command.add_option("--camera", options->camera, "Run the variants for this camera layout");
  command.add_flag("--same-numbers", options->same_numbers,
                   "Fail if outputs differ or cannot be compared");
  add_trust_options(command, options->trust);
  command.add_flag("--json", options->json, "Print the differences as JSON");
  set_action(command, invocation, options, run_diff);
}

}  // namespace ingot::cli
