// ingot check-model SOURCE: everything that would keep it from compiling.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "cli/json.h"
#include "cli/model_source.h"
#include "cli/options.h"

namespace ingot::cli {
namespace {

struct CheckModelOptions {
  SourceOptions source;
  bool json = false;
};

Result<ExitCode> run_check_model(const CheckModelOptions& options,
                                 std::vector<Diagnostic>& warnings) {
  const Result<ModelSources> sources = read_source(options.source, warnings);
  std::vector<Diagnostic> found = warnings;
  if (!sources) {
    found.insert(found.end(), sources.error().diagnostics.begin(),
                 sources.error().diagnostics.end());
  }
  // The list is this command's result: as JSON it goes to standard output.
  if (options.json) {
    warnings.clear();
    INGOT_RETURN_IF_ERROR(print_result(to_text(to_json(found))));
    return sources ? ExitCode::Done : sources.error().exit;
  }
  if (!sources) return std::unexpected(sources.error());
  const std::size_t nodes = sources->pipeline.input.variants.front().graph.nodes.size();
  INGOT_RETURN_IF_ERROR(
      print_result(fmt::format("{}: nothing keeps it from compiling ({} model{}, {} graph nodes)\n",
                               printable(options.source.source), sources->pipeline.models.size(),
                               sources->pipeline.models.size() == 1 ? "" : "s", nodes)));
  return ExitCode::Done;
}

}  // namespace

void add_check_model_command(CLI::App& app, Invocation& invocation) {
  CLI::App& command =
      add_command(app, "check-model", "List everything that would keep a source from compiling",
                  "ingot check-model model.onnx --dim batch=1");
  auto options = std::make_shared<CheckModelOptions>();
  add_source_options(command, options->source);
  command.add_flag("--json", options->json, "Print the list as JSON");
  set_action(command, invocation, options, run_check_model);
}

}  // namespace ingot::cli
