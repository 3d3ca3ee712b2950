// ingot targets
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "compiler/target/target.h"

namespace ingot::cli {
namespace {

struct TargetsOptions {
  bool json = false;
};

std::string_view architecture_name(Architecture architecture) {
  return architecture == Architecture::X86_64 ? "x86-64" : "aarch64";
}

Json target_json(const Target& target) {
  Json json;
  json["name"] = target.name;
  json["architecture"] = architecture_name(target.architecture);
  json["triple"] = target.triple;
  json["features"] = target.llvm_features;
  json["vector_bits"] = target.vector_bits;
  json["default"] = target.name == default_target().name;
  return json;
}

std::string target_line(const Target& target) {
  return fmt::format("{:<12} {:<8} {:>4}-bit vectors{}\n", target.name,
                     architecture_name(target.architecture), target.vector_bits,
                     target.name == default_target().name ? "  (default)" : "");
}

Result<ExitCode> run_targets(const TargetsOptions& options, std::vector<Diagnostic>&) {
  INGOT_ASSIGN(const Target host, find_target("host"));
  Json list = Json::array();
  std::string text;
  for (const Target& target : known_targets()) {
    list.push_back(target_json(target));
    text += target_line(target);
  }
  text += fmt::format("{:<12} this machine: {}\n", "host", host.name);
  const Json json = {{"targets", list}, {"host", host.name}};
  INGOT_RETURN_IF_ERROR(print_result(options.json ? to_text(json) : text));
  return ExitCode::Done;
}

}  // namespace

void add_targets_command(CLI::App& app, Invocation& invocation) {
  CLI::App& command =
      add_command(app, "targets", "List what this build can compile for", "ingot targets --json");
  auto options = std::make_shared<TargetsOptions>();
  command.add_flag("--json", options->json, "Print JSON");
  set_action(command, invocation, options, run_targets);
}

}  // namespace ingot::cli
