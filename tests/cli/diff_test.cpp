// ingot diff: what changed, by name; the numbers of both on the same inputs.
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/json.h"
#include "tests/cli/npy_text.h"
#include "tests/cli/tiny_model.h"
#include "tests/cli/tool.h"

namespace ingot::cli {
namespace {

class Diff : public testing::Test {
 protected:
  void compile(const std::string& name, const std::string& model,
               std::vector<std::string> more = {}) {
    folder.write(name + ".onnx", model);
    std::vector<std::string> arguments = {"compile", name + ".onnx", "-o", name + ".ingot",
                                          "--unsigned"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ToolResult result = folder.tool(arguments);
    ASSERT_EQ(result.exit, 0) << result.errors;
  }

  Json diff(int exit = 0, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"diff", "a.ingot", "b.ingot", "--allow-unsigned",
                                          "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ToolResult result = folder.tool(arguments);
    EXPECT_EQ(result.exit, exit) << result.errors;
    return parse_json(result.output, "diff").value_or(Json());
  }

  // The difference of a path, or null.
  static Json at(const Json& diff, const std::string& path) {
    for (const Json& difference : diff["differences"]) {
      if (difference["path"] == path) return difference;
    }
    return nullptr;
  }

  static std::string one_node(const std::string& op, const std::string& name, int extent = 4) {
    TinyModel model;
    model.inputs = {{"x", {extent}}};
    model.outputs = {{"y", {extent}}};
    model.nodes = {{op, {"x"}, {"y"}, name}};
    return serialize(model);
  }

  TemporaryFolder folder;
};

TEST_F(Diff, AnArtifactIsLikeItself) {
  compile("a", relu_plus_model());
  folder.write("b.ingot", folder.read("a.ingot"));
  const Json json = diff(0, {"--same-numbers"});
  EXPECT_EQ(json["a"], json["b"]);
  EXPECT_TRUE(json["differences"].empty()) << json["differences"];
  EXPECT_EQ(json["numbers"]["same"], true);
  const ToolResult text = folder.tool({"diff", "a.ingot", "b.ingot", "--allow-unsigned"});
  EXPECT_NE(text.output.find("the same content"), std::string::npos) << text.output;
}

TEST_F(Diff, IdentityAndOptions) {
  compile("a", relu_plus_model());
  compile("b", relu_plus_model(), {"--product", "q", "--security-counter", "2", "-O0"});
  const Json json = diff(0, {"--same-numbers"});
  EXPECT_EQ(at(json, "product")["b"], "q");
  EXPECT_EQ(at(json, "security_counter")["b"], 2);
  EXPECT_EQ(at(json, "tool.options.optimization"),
            (Json{{"path", "tool.options.optimization"}, {"a", "2"}, {"b", "0"}}));
  EXPECT_TRUE(at(json, "model_sha256").is_null()) << "it is the same model";
}

TEST_F(Diff, AnotherOperatorHasOtherNumbers) {
  compile("a", one_node("Exp", "first"));
  compile("b", one_node("Neg", "second"));
  const Json json = diff();
  EXPECT_FALSE(at(json, "model_sha256").is_null());
  const Json& calls = json["variants"][0]["calls"];
  EXPECT_EQ(calls["removed"].size(), 1U);
  EXPECT_EQ(calls["added"].size(), 1U);
  const Json& numbers = json["numbers"];
  EXPECT_EQ(numbers["compared"], true);
  EXPECT_EQ(numbers["same"], false);
  ASSERT_EQ(numbers["outputs"].size(), 1U);
  EXPECT_EQ(numbers["outputs"][0]["output"], "y");
  EXPECT_GT(numbers["outputs"][0]["max_abs_error"].get<double>(), 0.5);
  diff(7, {"--same-numbers"});
}

TEST_F(Diff, TheSameNodeWithOtherCodeIsChanged) {
  compile("a", one_node("Exp", "node"));
  compile("b", one_node("Neg", "node"));
  const Json calls = diff()["variants"][0]["calls"];
  EXPECT_EQ(calls["changed"].size(), 1U) << calls;
  EXPECT_TRUE(calls["added"].empty());
}

TEST_F(Diff, AnotherInterfaceIsNotRun) {
  compile("a", one_node("Exp", "node"));
  compile("b", one_node("Exp", "node", 5));
  const Json json = diff();
  EXPECT_EQ(json["numbers"]["compared"], false);
  const auto is_shape = [](const Json& difference) {
    return difference["path"].get<std::string>().ends_with(".slots.y.shape");
  };
  EXPECT_TRUE(std::ranges::any_of(json["differences"], is_shape)) << json["differences"];
  diff(7, {"--same-numbers"});
}

TEST_F(Diff, VariantsThatOnlyOneHasAndForeignOnes) {
  compile("a", one_node("Exp", "node"), {"--target", "aarch64"});
  compile("b", one_node("Exp", "node"), {"--target", "x86-64-v2"});
  const Json json = diff();
  EXPECT_EQ(json["variants"][0], (Json{{"name", "aarch64"}, {"in", "a"}}));
  EXPECT_EQ(json["variants"][1], (Json{{"name", "x86-64-v2"}, {"in", "b"}}));
  EXPECT_EQ(json["numbers"]["compared"], false);
  diff(6, {"--same-numbers"});
}

TEST_F(Diff, StatesAndReferences) {
  compile("a", counter_model());
  folder.write("golden/one/input_0.npy", npy_text({4}, {1, 2, 3, 4}));
  folder.write("golden/one/output_0.npy", npy_text({4}, {1, 2, 3, 4}));
  compile("b", counter_model(), {"--golden", "golden"});
  const Json json = diff(0, {"--same-numbers"});
  EXPECT_EQ(json["numbers"]["outputs"].size(), 3U) << "y, next_s and s";
  const auto is_reference = [](const Json& difference) {
    return difference["path"].get<std::string>().find(".references.") != std::string::npos;
  };
  EXPECT_TRUE(std::ranges::any_of(json["differences"], is_reference));
}

TEST_F(Diff, TrustAndBrokenFiles) {
  compile("a", relu_plus_model());
  folder.write("b.ingot", folder.read("a.ingot"));
  EXPECT_EQ(folder.tool({"diff", "a.ingot", "b.ingot"}).exit, 5);
  std::string broken = folder.read("a.ingot");
  broken[broken.size() / 2] = static_cast<char>(broken[broken.size() / 2] ^ 1);
  folder.write("b.ingot", broken);
  diff(5);
  folder.write("b.ingot", "hello");
  diff(5);
  std::filesystem::remove(folder / "b.ingot");
  diff(8);
}

}  // namespace
}  // namespace ingot::cli
