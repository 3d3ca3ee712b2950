// ingot inspect A.ingot
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artifact/decode.h"
#include "cli/atomic_file.h"
#include "cli/commands.h"
#include "cli/describe_artifact.h"
#include "cli/describe_html.h"
#include "cli/diagnostics.h"
#include "cli/interface_header.h"
#include "cli/json.h"
#include "cli/loaded_artifact.h"
#include "cli/options.h"

namespace ingot::cli {
namespace {

struct InspectOptions {
  std::string artifact;
  std::string html, times;
  std::optional<std::string> header;  // empty: standard output
  bool json = false;
  bool id = false;
  DescribeOptions describe;
};

Result<std::string> page(const InspectOptions& options, const artifact::Decoded& decoded) {
  Json times;
  if (!options.times.empty()) {
    INGOT_ASSIGN(const std::string text, read_text_file(options.times));
    INGOT_ASSIGN(times, parse_json(text, options.times));
  }
  std::vector<std::vector<CallCost>> costs;
  for (std::uint32_t v = 0; v < decoded.tables.variants.size(); ++v) {
    costs.push_back(call_costs(decoded, v));
  }
  const Json description = describe_artifact(decoded, {.calls = true, .buffers = true});
  return description_html(description, costs, times);
}

Result<std::string> inspect(const InspectOptions& options) {
  INGOT_ASSIGN(const std::vector<std::byte> bytes, read_artifact_file(options.artifact));
  INGOT_RETURN_IF_ERROR(check_structure(bytes, options.artifact));
  INGOT_ASSIGN(const artifact::Decoded decoded, about(options.artifact, artifact::decode(bytes)));
  if (!options.html.empty()) {
    std::error_code error;
    if (std::filesystem::equivalent(options.html, options.artifact, error)) {
      return usage_error("--html: that is the artifact");
    }
    INGOT_ASSIGN(const std::string html, page(options, decoded));
    INGOT_RETURN_IF_ERROR(write_file(options.html, html));
    return std::string();
  }
  if (options.id) return artifact::to_hex(decoded.id) + "\n";
  if (options.header) return interface_header(decoded);
  const Json description = describe_artifact(decoded, options.describe);
  return options.json ? to_text(description) : description_text(description);
}

Result<ExitCode> run_inspect(const InspectOptions& options, std::vector<Diagnostic>&) {
  INGOT_ASSIGN(const std::string text, inspect(options));
  if (options.header && !options.header->empty()) {
    INGOT_RETURN_IF_ERROR(write_file(*options.header, text));
    return ExitCode::Done;
  }
  INGOT_RETURN_IF_ERROR(print_result(text));
  return ExitCode::Done;
}

}  // namespace

void add_inspect_command(CLI::App& app, Invocation& invocation) {
  CLI::App& command = add_command(app, "inspect", "Print what an artifact holds",
                                  "ingot inspect model.ingot --calls");
  auto options = std::make_shared<InspectOptions>();
  command.add_option("ARTIFACT", options->artifact, "Artifact to look at")->required();
  CLI::Option* json = command.add_flag("--json", options->json, "Print JSON");
  CLI::Option* id =
      command.add_flag("--id", options->id, "Print only the artifact id, for a deploy list")
          ->excludes(json);
  command
      .add_option_function<std::string>(
          "--header", [options](const std::string& file) { options->header = file; },
          "Print a C header of the interface, or write it to this file")
      ->expected(0, 1)
      ->excludes(json);
  command.add_flag("--calls", options->describe.calls, "Also print the call list");
  command.add_flag("--buffers", options->describe.buffers, "Also print the planned buffers");
  CLI::Option* html =
      command.add_option("--html", options->html, "Write a page for a browser instead of printing")
          ->excludes(json)
          ->excludes(id);
  command
      .add_option("--times", options->times,
                  "What ingot bench --per-call --json printed, for the page")
      ->needs(html);
  set_action(command, invocation, options, run_inspect);
}

}  // namespace ingot::cli
