// ingot inspect A.ingot
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artifact/decode.h"
#include "cli/atomic_file.h"
#include "cli/commands.h"
#include "cli/describe_artifact.h"
#include "cli/diagnostics.h"
#include "cli/interface_header.h"
#include "cli/json.h"
#include "cli/loaded_artifact.h"
#include "cli/options.h"

namespace ingot::cli {
namespace {

struct InspectOptions {
  std::string artifact;
  std::string html;
  std::optional<std::string> header;  // empty: standard output
  bool json = false;
  bool id = false;
  DescribeOptions describe;
};

Result<std::string> inspect(const InspectOptions& options) {
  INGOT_ASSIGN(const std::vector<std::byte> bytes, read_artifact_file(options.artifact));
  INGOT_RETURN_IF_ERROR(check_structure(bytes, options.artifact));
  INGOT_ASSIGN(const artifact::Decoded decoded, about(options.artifact, artifact::decode(bytes)));
  if (options.id) return artifact::to_hex(decoded.id) + "\n";
  if (options.header) return interface_header(decoded);
  const Json description = describe_artifact(decoded, options.describe);
  return options.json ? to_text(description) : description_text(description);
}

Result<ExitCode> run_inspect(const InspectOptions& options, std::vector<Diagnostic>&) {
  if (!options.html.empty()) return not_supported_yet("--html");
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
  command.add_option("--html", options->html, "Not supported yet");
  set_action(command, invocation, options, run_inspect);
}

}  // namespace ingot::cli
