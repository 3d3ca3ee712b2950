// docs/passes.md holds the tables of the code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "compiler/compile.h"

namespace ingot {
namespace {

std::string tables() {
  std::string text = "| pass | program | what it does |\n| --- | --- | --- |\n";
  for (const PassInfo& pass : pass_list()) {
    text += fmt::format("| `{}` | {} | {} |\n", pass.name, pass.level, pass.text);
  }
  for (const RangedPass& pass : ranged_passes()) {
    text += fmt::format(
        "\n### {}\n\nMeasure: {}.\n\n| rule | pattern | answer |\n| --- | --- | --- |\n", pass.name,
        pass.measure);
    for (const RuleInfo& rule : rule_list()) {
      if (rule.pass != pass.name) continue;
      text += fmt::format("| `{}` | {} | {} |\n", rule.name, rule.pattern, rule.answer);
    }
    text += "\n| gate | holds where |\n| --- | --- |\n";
    for (const GateInfo& gate : gate_list()) {
      const RuleInfo& rule = rule_list()[static_cast<std::size_t>(gate.rule)];
      if (rule.pass != pass.name) continue;
      text += fmt::format("| `{}/{}` | {} |\n", rule.name, gate.name, gate.condition);
    }
  }
  return text;
}

TEST(RulePage, HoldsTheTables) {
  std::ifstream file(INGOT_SOURCE_DIR "/docs/passes.md");
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_NE(page.str().find("<!-- tables -->\n" + tables() + "<!-- end of tables -->\n"),
            std::string::npos)
      << "docs/passes.md must hold:\n"
      << tables();
}

// The passes in the order in which a compile runs them, by name; none without optimization.
TEST(RulePage, EveryRuleBelongsToAPass) {
  for (const RuleInfo& rule : rule_list()) {
    EXPECT_TRUE(std::ranges::any_of(ranged_passes(), [&](const RangedPass& pass) {
      return pass.name == rule.pass;
    })) << rule.name;
  }
}

}  // namespace
}  // namespace ingot
