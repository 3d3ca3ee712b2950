// ingot ops
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "onnx_frontend/operator_table.h"

namespace ingot::cli {
namespace {

struct OpsOptions {
  bool json = false;
  bool markdown = false;
};

Json row_json(const OperatorRow& row) {
  Json json;
  json["domain"] = row.domain;
  json["op"] = row.op;
  json["since"] = row.since;
  json["supported"] = row.import != nullptr;
  json["limits"] = row.limits;
  return json;
}

std::string row_line(const OperatorRow& row) {
  const std::string name =
      row.domain.empty() ? std::string(row.op) : fmt::format("{}.{}", row.domain, row.op);
  return fmt::format("{:<32} since {:>2}  {}{}{}\n", name, row.since,
                     row.import != nullptr ? "yes" : "no", row.limits.empty() ? "" : ": ",
                     row.limits);
}

Result<ExitCode> run_ops(const OpsOptions& options, std::vector<Diagnostic>&) {
  std::string text;
  if (options.markdown) {
    text = operators_markdown();
  } else if (options.json) {
    Json list = Json::array();
    for (const OperatorRow& row : operator_rows()) list.push_back(row_json(row));
    text = to_text(Json{{"newest_opset", newest_opset}, {"operators", list}});
  } else {
    for (const OperatorRow& row : operator_rows()) text += row_line(row);
  }
  INGOT_RETURN_IF_ERROR(print_result(text));
  return ExitCode::Done;
}

}  // namespace

void add_ops_command(CLI::App& app, Invocation& invocation) {
  CLI::App& command =
      add_command(app, "ops", "List the ONNX operators that are accepted, with their limits",
                  "ingot ops --json");
  auto options = std::make_shared<OpsOptions>();
  CLI::Option* json = command.add_flag("--json", options->json, "Print JSON");
  command.add_flag("--markdown", options->markdown, "Print the page docs/operators.md")
      ->excludes(json);
  set_action(command, invocation, options, run_ops);
}

}  // namespace ingot::cli
