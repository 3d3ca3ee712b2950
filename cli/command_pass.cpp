// ingot pass NAME FILE, ingot pass --list-passes
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "cli/json.h"
#include "cli/options.h"
#include "compiler/compile.h"

namespace ingot::cli {
namespace {

struct PassOptions {
  std::string name;
  std::string file;
  bool list = false;
  bool json = false;
};

std::string list_text(bool as_json) {
  Json list = Json::array();
  std::string text;
  for (const PassInfo& pass : pass_list()) {
    list.push_back(Json{{"name", pass.name}, {"level", pass.level}, {"text", pass.text}});
    text += fmt::format("{:<24} {:<8} {}\n", pass.name, pass.level, pass.text);
  }
  return as_json ? to_text(list) : text;
}

Result<ExitCode> run_pass_command(const PassOptions& options, std::vector<Diagnostic>&) {
  if (options.list) {
    INGOT_RETURN_IF_ERROR(print_result(list_text(options.json)));
    return ExitCode::Done;
  }
  if (options.name.empty() || options.file.empty()) {
    return usage_error("pass needs NAME and FILE", "ingot pass --list-passes names the passes");
  }
  INGOT_ASSIGN(const std::string text, read_text_file(options.file));
  INGOT_ASSIGN(const std::string result, about(options.file, run_pass(options.name, text)));
  INGOT_RETURN_IF_ERROR(print_result(result));
  return ExitCode::Done;
}

}  // namespace

void add_pass_command(CLI::App& app, Invocation& invocation) {
  CLI::App& command = add_command(app, "pass", "Run one pass on a program in text form",
                                  "ingot pass fold-constants block.graph");
  auto options = std::make_shared<PassOptions>();
  command.add_option("NAME", options->name, "Pass to run");
  command.add_option("FILE", options->file, "Program in text form");
  command.add_flag("--list-passes", options->list, "Name all passes in order instead");
  command.add_flag("--json", options->json, "Print the list as JSON");
  set_action(command, invocation, options, run_pass_command);
}

}  // namespace ingot::cli
