// What the tool says about its passes, and that asking changes nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "cli/json.h"
#include "compiler/compile.h"
#include "tests/cli/tiny_model.h"
#include "tests/cli/tool.h"

namespace ingot::cli {
namespace {

using Names = std::vector<std::string>;

// R50: no rule runs at -O0, only what turns a graph into loops.
const Names kPlainPasses = {"sort-nodes",   "fold-constants", "widen-halves", "make-plan",
                            "lower-kernel", "apply-schedule", "plan-memory"};
const Names kAllPasses = {"sort-nodes", "fold-constants", "to-double",      "widen-halves",
                          "split-maps", "make-plan",      "lower-kernel",   "simplify-reduces",
                          "fuse-bands", "arrange-ranges", "apply-schedule", "share-in-place",
                          "plan-memory"};

Names with_code(Names names) {
  names.emplace_back("code");
  return names;
}

Names optimized_passes() {
  Names names = kAllPasses;
  std::erase(names, "to-double");  // of the reference, which has no trace
  return names;
}

Names compile_arguments(const Names& more) {
  Names arguments = {"compile", "m.onnx", "-o", "m.ingot", "--unsigned", "--no-progress"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// First words of the lines of one block of the report.
Names block(const std::string& report, const std::string& title) {
  Names names;
  std::istringstream lines(report);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ")) {
      inside = line == title;
    } else if (inside) {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  return names;
}

// Each name once, in the order of their first appearance.
Names traced(const std::string& errors) {
  Names names;
  std::istringstream lines(errors);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("; after ")) continue;
    const std::string name = line.substr(8);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

Names members(const Json& list, const char* key) {
  Names names;
  for (const Json& entry : list) names.push_back(entry[key]);
  return names;
}

TEST(Passes, AreListedInOrder) {
  const TemporaryFolder folder;
  const ToolResult text = folder.tool({"pass", "--list-passes"});
  ASSERT_EQ(text.exit, 0) << text.errors;
  Names names;
  std::istringstream lines(text.output);
  for (std::string line; std::getline(lines, line);)
    names.push_back(line.substr(0, line.find(' ')));
  EXPECT_EQ(names, kAllPasses);
  const auto json = parse_json(folder.tool({"pass", "--list-passes", "--json"}).output, "passes");
  ASSERT_TRUE(json);
  EXPECT_EQ(members(*json, "name"), kAllPasses);
  for (const Json& pass : *json) {
    EXPECT_TRUE(pass["level"].is_string() && pass["text"].is_string());
  }
}

TEST(Passes, TimesNameThoseThatRan) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  const ToolResult quiet = folder.tool(compile_arguments({}));
  EXPECT_EQ(quiet.output.find("passes\n"), std::string::npos) << quiet.output;
  const ToolResult plain = folder.tool(compile_arguments({"-O0", "--time-passes"}));
  ASSERT_EQ(plain.exit, 0) << plain.errors;
  EXPECT_EQ(block(plain.output, "passes"), with_code(kPlainPasses)) << plain.output;
  const ToolResult whole = folder.tool(compile_arguments({"-O2", "--time-passes"}));
  EXPECT_EQ(block(whole.output, "passes"), with_code(optimized_passes())) << whole.output;
  const auto json = parse_json(folder.tool(compile_arguments({"-O0", "--json"})).output, "report");
  ASSERT_TRUE(json);
  EXPECT_EQ(members((*json)["passes"], "pass"), with_code(kPlainPasses));
  for (const Json& pass : (*json)["passes"]) EXPECT_GE(pass["ms"].get<double>(), 0);
}

TEST(Passes, CountersNameEveryRule) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  Names rules;
  for (const RuleInfo& rule : rule_list()) rules.emplace_back(rule.name);
  const ToolResult text =
      folder.tool(compile_arguments({"--rule-counters", "--target", "x86-64-v3"}));
  ASSERT_EQ(text.exit, 0) << text.errors;
  EXPECT_EQ(block(text.output, "rules of x86-64-v3"), rules) << text.output;
  // The two dimensions of the only kernel.
  EXPECT_NE(text.output.find("  merge-ranges                     1\n"), std::string::npos)
      << text.output;
  for (const char* level : {"-O0", "-O2"}) {
    const auto json =
        parse_json(folder.tool(compile_arguments({level, "--json"})).output, "report");
    ASSERT_TRUE(json);
    const Json& counts = (*json)["targets"][0]["rules"];
    ASSERT_EQ(counts.size(), rules.size());
    for (const std::string& rule : rules) {
      const bool is_merged = std::string(level) == "-O2" && rule == "merge-ranges";
      EXPECT_EQ(counts[rule], is_merged ? 1 : 0) << level << " " << rule;
    }
  }
}

TEST(Passes, FusionIsCounted) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  for (const auto& [level, kernels] : {std::pair("-O0", 2), std::pair("-O2", 1)}) {
    const auto json =
        parse_json(folder.tool(compile_arguments({level, "--json"})).output, "report");
    ASSERT_TRUE(json);
    const Json& target = (*json)["targets"][0];
    EXPECT_EQ(target["nodes"], 3);  // maximum and its zero in another shape, sum
    EXPECT_EQ(target["unfused_kernels"], 2);
    EXPECT_EQ(target["kernels"], kernels) << level;
    EXPECT_EQ(target["calls"], kernels) << level;
  }
}

TEST(Passes, AskingChangesNoByte) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  ASSERT_EQ(folder.tool(compile_arguments({})).exit, 0);
  const std::string expected = folder.read("m.ingot");
  for (const Names& more : std::vector<Names>{{"--verify-passes"},
                                              {"--time-passes"},
                                              {"--rule-counters"},
                                              {"--print-after", "all"},
                                              {"--check", "off"},
                                              {"--check", "full"}}) {
    std::filesystem::remove(folder / "m.ingot");
    const ToolResult result = folder.tool(compile_arguments(more));
    ASSERT_EQ(result.exit, 0) << result.errors;
    EXPECT_EQ(folder.read("m.ingot"), expected) << more.front();
  }
}

TEST(Passes, ProgramsArePrintedAfterThem) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  Names with_import = {"import"};
  for (const auto& [level, names] :
       {std::pair("-O0", kPlainPasses), std::pair("-O2", optimized_passes())}) {
    Names expected = with_import;
    expected.insert(expected.end(), names.begin(), names.end());
    const ToolResult all = folder.tool(compile_arguments({level, "--print-after", "all"}));
    ASSERT_EQ(all.exit, 0) << all.errors;
    EXPECT_EQ(traced(all.errors), expected) << level;
    EXPECT_EQ(all.output.find("; after"), std::string::npos);
    for (const std::string& name : kAllPasses) {
      const bool runs = std::ranges::find(names, name) != names.end();
      const ToolResult one = folder.tool(compile_arguments({level, "--print-after", name}));
      EXPECT_EQ(one.exit, 0) << name;
      EXPECT_EQ(traced(one.errors), runs ? Names{name} : Names{}) << level;
    }
  }
  const ToolResult unknown = folder.tool(compile_arguments({"--print-after", "nothing"}));
  EXPECT_EQ(unknown.exit, 2);
  EXPECT_NE(unknown.errors.find("arrange-ranges"), std::string::npos) << unknown.errors;
}

// Golden text of the stages; what is printed has no addresses and is the same each time. One kernel
// reads what another one reduces, and is reduced itself.
TEST(Passes, StagesOfASmallModel) {
  const TemporaryFolder folder;
  TinyModel model;
  model.inputs = {{"x", {2, 3}}};
  model.outputs = {{"y", {2, 3}}, {"z", {1, 1}}};
  model.nodes = {{"ReduceSum", {"x"}, {"total"}, "sum"},
                 {"Div", {"x", "total"}, {"y"}, "y"},
                 {"ReduceMax", {"y"}, {"z"}, "z"}};
  folder.write("m.onnx", serialize(model));
  const auto after = [&](const char* pass) {
    return folder.tool(compile_arguments({"--target", "x86-64-v3", "--print-after", pass})).errors;
  };
  EXPECT_EQ(after("sort-nodes"), R"(; after sort-nodes
graph "m" {
  %0 = input f32[2,3] "x"
  %1 = reduce.sum f32[] %0 axes=[0,1] source "sum"
  %2 = view f32[2,3] %1 [] source "y"
  %3 = map.div f32[2,3] %0 %2 source "y"
  %4 = reduce.max f32[] %3 axes=[0,1] source "z"
  %5 = view f32[1,1] %4 [] source "z"
  output "y" %3
  output "z" %5
}

)");
  EXPECT_EQ(after("make-plan"), R"(; after make-plan
plan @graph {
  io "x" input f32[2,3]
  io "y" output f32[2,3]
  io "z" output f32[1,1]
  buffer 0 input 0 f32[2,3] row
  buffer 1 scratch f32[] row
  buffer 2 output 1 f32[2,3] row
  buffer 3 scratch f32[] row
  buffer 4 output 2 f32[1,1] row
  place %0 buffer 0 at 0,0
  place %1 buffer 1 at -
  place %3 buffer 2 at 0,0
  place %4 buffer 3 at -
  kernel "sum" %1 buffer 1 at -
  kernel "y" %3 buffer 2 at 0,0
  kernel "z" %4 buffer 3 at -
  kernel "output" %5 buffer 4 at 0,0
}

)");
  EXPECT_EQ(after("lower-kernel"), R"(; after lower-kernel
ranged kernel "sum"
write out: f32[] row
read in0: f32[2,3] row
reduce r0: 2
reduce r1: 3
%0 = load in0[r0, r1]
store out[] = sum(%0 over r0, r1)

; after lower-kernel
ranged kernel y
write out: f32[2,3] row
read in0: f32[2,3] row
read in1: f32[] row
range i0: 2
range i1: 3
%0 = load in0[i0, i1]
%1 = load in1[]
store out[i0, i1] = div(%0, %1)

; after lower-kernel
ranged kernel z
write out: f32[] row
read in0: f32[2,3] row
reduce r0: 2
reduce r1: 3
%0 = load in0[r0, r1]
store out[] = max(%0 over r0, r1)

; after lower-kernel
ranged kernel output
write out: f32[1,1] row
read in0: f32[] row
store out[0, 0] = load in0[]

)");
  EXPECT_EQ(after("arrange-ranges"), R"(; after arrange-ranges
ranged kernel "sum"
write out: f32[] row
read in0: f32[6] row
reduce r0_r1: 6
%0 = load in0[r0_r1]
store out[] = sum(%0 over r0_r1)

; after arrange-ranges
ranged kernel y
write out: f32[6] row
read in0: f32[6] row
read in1: f32[] row
range i0_i1: 6
%0 = load in0[i0_i1]
%1 = load in1[]
store out[i0_i1] = div(%0, %1)

; after arrange-ranges
ranged kernel z
write out: f32[] row
read in0: f32[6] row
reduce r0_r1: 6
%0 = load in0[r0_r1]
store out[] = max(%0 over r0_r1)

; after arrange-ranges
ranged kernel output
write out: f32[1,1] row
read in0: f32[] row
store out[0, 0] = load in0[]

)");
  EXPECT_EQ(after("plan-memory"), R"(; after plan-memory
program "m" {
  workers 4
  io "x" input f32[2,3]
  io "y" output f32[2,3]
  io "z" output f32[1,1]
  arena 256
  buffer 0 input io 0 f32[2,3] 24 bytes calls 0 3 row
  buffer 1 output io 1 f32[2,3] 24 bytes calls 0 3 row
  buffer 2 output io 2 f32[1,1] 4 bytes calls 0 3 row
  buffer 3 scratch f32[] 4 bytes arena 0 0 calls 0 1 row
  buffer 4 scratch f32[] 4 bytes arena 0 0 calls 2 3 row
  call "sum" grid 1 (3,0) "sum" flops 6 read 24 written 4
  call "y" grid 2 (1,0,3) "y" flops 6 read 28 written 24
  call "z" grid 1 (4,1) "z" flops 6 read 24 written 4
  call "output" grid 1 (2,4) "output" flops 0 read 4 written 4
}

)");
}

TEST(Pass, RunsOnTextOfItsLevel) {
  const TemporaryFolder folder;
  folder.write("g",
               "graph \"g\" {\n%0 = input f16[2] \"x\"\n%1 = map.exp f16[2] %0\n"
               "%2 = constant f32[2] {1,2}\n%3 = constant f32[2] {3,4}\n"
               "%4 = map.add f32[2] %2 %3\n"
               "output \"y\" %1\noutput \"z\" %4\n}\n");
  folder.write("k",
               "ranged kernel k\nread x: f32[4] row\nwrite y: f32[4] row\nrange a: 4\n"
               "reduce i: 5\nstore y[a] = max(load x[a] over i)\n");
  folder.write("p",
               "program \"net\" {\nio \"x\" input f32[4]\nio \"y\" output f32[4]\n"
               "buffer 0 input io 0 f32[4] 16 bytes calls 0 0 row\n"
               "buffer 1 output io 1 f32[4] 16 bytes calls 0 0 row\n"
               "buffer 2 scratch f32[4] 16 bytes calls 0 0 row\n"
               "call \"k\" grid 4 (1,0,2) \"add\" flops 4 read 32 written 16\n}\n");
  const std::map<std::string, std::pair<const char*, const char*>> cases = {
      {"sort-nodes", {"g", "%4 = map.add f32[2] %2 %3"}},
      {"fold-constants", {"g", "constant f32[2] {4,6}"}},
      {"to-double", {"g", "map.exp f64[2]"}},
      {"widen-halves", {"g", "map.exp f32[2]"}},
      {"split-maps", {"g", "graph \""}},
      {"make-plan", {"g", "plan @graph {"}},
      {"lower-kernel", {"g", "ranged kernel"}},
      {"simplify-reduces", {"k", "store y[a] = load x[a]"}},
      {"fuse-bands", {"g", "; no groups"}},
      {"arrange-ranges", {"k", "reduce i: 5"}},
      {"apply-schedule", {"k", "scheduled kernel k"}},
      {"share-in-place", {"p", "program \""}},
      {"plan-memory", {"p", "arena 256"}},
  };
  for (const std::string& name : kAllPasses) {
    const auto& [file, expected] = cases.at(name);
    const ToolResult result = folder.tool({"pass", name, file});
    EXPECT_EQ(result.exit, 0) << name << result.errors;
    EXPECT_NE(result.output.find(expected), std::string::npos) << name << "\n" << result.output;
    EXPECT_EQ(folder.tool({"pass", name, file}).output, result.output) << name;
    for (const char* broken : {"", "graph \"g\" {\n", "what is this\n"}) {
      folder.write("broken", broken);
      const ToolResult refused = folder.tool({"pass", name, "broken"});
      EXPECT_NE(refused.exit, 0) << name;
      EXPECT_NE(refused.exit, 70) << name << refused.errors;
      EXPECT_TRUE(refused.output.empty()) << name;
    }
  }
  const ToolResult unknown = folder.tool({"pass", "nothing", "g"});
  EXPECT_EQ(unknown.exit, 2);
  EXPECT_NE(unknown.errors.find("plan-memory"), std::string::npos) << unknown.errors;
  EXPECT_EQ(folder.tool({"pass", "sort-nodes", "missing"}).exit, 8);
}

}  // namespace
}  // namespace ingot::cli
