// docs/cli.md and --help name the same options.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/cli/tool.h"

namespace ingot::cli {
namespace {

using Options = std::set<std::string>;

// First cell of each table row: | `--name` ... |
std::map<std::string, Options> documented_options() {
  std::ifstream page(INGOT_CLI_PAGE);
  const std::regex heading("## ingot ([a-z-]+)");
  const std::regex row(R"(\| `(-[-a-zA-Z0-9]+)[^`]*` \|.*)");
  std::map<std::string, Options> options;
  std::string command;
  for (std::string line; std::getline(page, line);) {
    std::smatch match;
    if (line.starts_with("## ")) {
      command = std::regex_match(line, match, heading) ? match[1].str() : "";
      if (!command.empty()) options[command];
    } else if (!command.empty() && std::regex_match(line, match, row)) {
      options[command].insert(match[1]);
    }
  }
  return options;
}

Options options_in_help(const std::string& help) {
  const std::regex line("^  (-[^ ]*).*");
  Options options;
  std::istringstream lines(help);
  for (std::string text; std::getline(lines, text);) {
    std::smatch match;
    if (!std::regex_match(text, match, line)) continue;
    const std::string names = match[1];
    options.insert(names.substr(names.rfind(',') + 1));
  }
  options.erase("--help");
  return options;
}

std::set<std::string> commands_in_help(const std::string& help) {
  std::set<std::string> commands;
  std::istringstream lines(help);
  bool inside = false;
  for (std::string text; std::getline(lines, text);) {
    if (text == "Subcommands:") inside = true;
    if (text.empty()) inside = false;
    if (inside && text.starts_with("  ") && text[2] != ' ') {
      commands.insert(text.substr(2, text.find(' ', 2) - 2));
    }
  }
  return commands;
}

TEST(Documentation, PageAndHelpNameTheSameOptions) {
  const TemporaryFolder folder;
  const std::map<std::string, Options> documented = documented_options();
  std::set<std::string> names;
  for (const auto& [command, options] : documented) {
    names.insert(command);
    const ToolResult help = folder.tool({command, "--help"});
    EXPECT_EQ(help.exit, 0) << command;
    EXPECT_EQ(options_in_help(help.output), options) << command;
    EXPECT_NE(help.output.find("Example:\n  ingot " + command), std::string::npos) << command;
  }
  EXPECT_EQ(commands_in_help(folder.tool({"--help"}).output), names);
}

}  // namespace
}  // namespace ingot::cli
