// ingot compile --golden: the numbers of another runtime become part of the artifact.
#include <gtest/gtest.h>

#include "cli/json.h"
#include "compiler/compile.h"
#include "tests/cli/npy_text.h"
#include "tests/cli/tiny_model.h"
#include "tests/cli/tool.h"

namespace ingot::cli {
namespace {

constexpr const char* kCounterCases = R"([{"name": "counter", "feedback": ["next_s=s"],
  "inputs": [{"name": "x", "dtype": "float32", "shape": [4], "lo": -1, "hi": 1},
             {"name": "s", "dtype": "float32", "shape": [4], "lo": 0, "hi": 0}],
  "runs": [{"seed": 5, "steps": 3, "outputs": {"y": {"file": "y.npy"},
                                               "next_s": {"file": "y.npy"}}}]}])";

// Of three steps of counter_model() from zero.
std::vector<double> counter_sum() {
  std::vector<double> sum(4);
  for (const std::uint64_t seed : {5U, 6U, 7U}) {
    const std::vector<std::byte> x = generate_input("x", DType::F32, {4}, seed, -1, 1);
    for (std::size_t i = 0; i < 4; ++i) {
      sum[i] = static_cast<double>(
          static_cast<float>(sum[i] + Scalar::load(DType::F32, x.data() + 4 * i).as_double()));
    }
  }
  return sum;
}

class CompileGolden : public testing::Test {
 protected:
  ToolResult compile(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"compile",    "m.onnx",   "-o",    "m.ingot",
                                          "--unsigned", "--golden", "golden"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return folder.tool(arguments);
  }
  void write_relu_case(const std::string& name, double last) {
    folder.write("m.onnx", relu_plus_model());
    folder.write("golden/" + name + "/input_0.npy", npy_text({2, 3}, {1, -2, 3, -4, 5, -6}));
    folder.write("golden/" + name + "/output_0.npy", npy_text({2, 3}, {2, -2, 6, -4, 10, last}));
  }
  Json inspect() {
    const ToolResult result = folder.tool({"inspect", "m.ingot", "--json"});
    EXPECT_EQ(result.exit, 0) << result.errors;
    return parse_json(result.output, "inspect").value_or(Json());
  }
  bool has_artifact() { return std::filesystem::exists(folder / "m.ingot"); }

  TemporaryFolder folder;
};

TEST_F(CompileGolden, EmbedsEveryFolderBesideTheOwnSequence) {
  write_relu_case("one", -6);
  write_relu_case("two", -6);
  const ToolResult result = compile();
  ASSERT_EQ(result.exit, 0) << result.errors;
  const Json sequences = inspect()["variants"][0]["references"]["sequences"];
  ASSERT_EQ(sequences.size(), 3U);
  EXPECT_EQ(sequences[0], (Json{{"steps", 1},
                                {"origins", {"own evaluation in double precision"}},
                                {"case", ""},
                                {"seed", 42}}));
  EXPECT_EQ(
      sequences[2],
      (Json{{"steps", 1}, {"origins", {"ONNX Runtime"}}, {"case", "two"}, {"seed", nullptr}}));
  ASSERT_EQ(compile({"--case", "two"}).exit, 0);
  EXPECT_EQ(inspect()["variants"][0]["references"]["sequences"].size(), 2U);
}

TEST_F(CompileGolden, AWrongNumberIsSevenAndNamed) {
  write_relu_case("bad", -6.5);
  for (const char* check : {"sampled", "full"}) {
    const ToolResult result = compile({"--check", check});
    EXPECT_EQ(result.exit, 7) << result.errors;
    EXPECT_NE(result.errors.find("output 'y' element 5"), std::string::npos) << result.errors;
    EXPECT_NE(result.errors.find("case 'bad'"), std::string::npos) << result.errors;
    EXPECT_FALSE(has_artifact());
  }
}

TEST_F(CompileGolden, CodeThatIsNotRunHereIsAWarning) {
  write_relu_case("bad", -6.5);
  const ToolResult result = compile({"--check", "off"});
  EXPECT_EQ(result.exit, 0);
  EXPECT_NE(result.errors.find("were not run"), std::string::npos) << result.errors;
}

TEST_F(CompileGolden, StepsAndStates) {
  folder.write("m.onnx", counter_model());
  folder.write("golden/cases.json", kCounterCases);
  folder.write("golden/y.npy", npy_text({4}, counter_sum()));
  ToolResult result = compile({"--case", "counter"});
  ASSERT_EQ(result.exit, 0) << result.errors;
  const Json sequences = inspect()["variants"][0]["references"]["sequences"];
  ASSERT_EQ(sequences.size(), 2U);
  EXPECT_EQ(sequences[1]["steps"], 3);
  EXPECT_EQ(sequences[1]["seed"], 5);
  EXPECT_EQ(sequences[1]["case"], "counter/s5_n3");
  EXPECT_EQ(sequences[1]["origins"].size(), 2U) << "the first two steps are our own";
  const std::string before = folder.read("m.ingot");
  ASSERT_EQ(compile({"--case", "counter", "-j", "1"}).exit, 0);
  EXPECT_EQ(folder.read("m.ingot"), before);

  EXPECT_EQ(compile().exit, 2) << "the file names no digest of this model";
  std::vector<double> wrong = counter_sum();
  wrong[2] += 0.5;
  folder.write("golden/y.npy", npy_text({4}, wrong));
  result = compile({"--case", "counter"});
  EXPECT_EQ(result.exit, 7);
  EXPECT_NE(result.errors.find("element 2"), std::string::npos) << result.errors;
  EXPECT_NE(result.errors.find("step 2 of case 'counter/s5_n3'"), std::string::npos)
      << result.errors;
}

// Two frames of y = x + s, next = y without a state pair: the caller would feed it back.
TEST_F(CompileGolden, FeedbackIntoAPlainInput) {
  TinyModel model;
  model.inputs = {{"x", {4}}, {"s", {4}}};
  model.outputs = {{"y", {4}}};
  model.nodes = {{"Add", {"x", "s"}, {"y"}, "add"}};
  folder.write("m.onnx", serialize(model));
  std::string cases = kCounterCases;
  cases.replace(cases.find("next_s=s"), 8, "y=s");
  cases.erase(cases.rfind(','), cases.rfind(R"(}}]}])") - cases.rfind(','));
  folder.write("golden/cases.json", cases);
  folder.write("golden/y.npy", npy_text({4}, counter_sum()));
  const ToolResult result = compile({"--case", "counter"});
  EXPECT_EQ(result.exit, 0) << result.errors;
}

TEST_F(CompileGolden, AStateMustBeginWithItsInitialValue) {
  folder.write("m.onnx", counter_model());
  std::string cases = kCounterCases;
  cases.replace(cases.find(R"("lo": 0)"), 7, R"("lo": 1)");
  folder.write("golden/cases.json", cases);
  folder.write("golden/y.npy", npy_text({4}, counter_sum()));
  const ToolResult result = compile({"--case", "counter"});
  EXPECT_EQ(result.exit, 4);
  EXPECT_NE(result.errors.find("state 's'"), std::string::npos) << result.errors;
  EXPECT_FALSE(has_artifact());
}

TEST_F(CompileGolden, WhatDoesNotFitIsThree) {
  write_relu_case("one", -6);
  std::filesystem::remove(folder / "golden/one/input_0.npy");
  EXPECT_EQ(compile().exit, 3) << "no input";
  folder.write("golden/one/input_0.npy", npy_text({3, 2}, {1, -2, 3, -4, 5, -6}));
  EXPECT_EQ(compile().exit, 3) << "another shape";
  folder.write("golden/one/input_0.npy", noise(100, 3));
  EXPECT_EQ(compile().exit, 3) << "not a tensor";
  write_relu_case("one", -6);
  folder.write("golden/one/output_0.npy", npy_text({6}, {2, -2, 6, -4, 10, -6}));
  EXPECT_EQ(compile().exit, 3) << "an output of another shape";
  write_relu_case("one", -6);
  folder.write("golden/one/output_1.npy", npy_text({2, 3}, {2, -2, 6, -4, 10, -6}));
  EXPECT_EQ(compile().exit, 3) << "an output too many";
  EXPECT_FALSE(has_artifact());
}

TEST_F(CompileGolden, MissingFoldersAndCases) {
  folder.write("m.onnx", relu_plus_model());
  EXPECT_EQ(compile().exit, 8);
  folder.write("golden/readme", "");
  EXPECT_EQ(compile().exit, 2) << "no case inside";
  EXPECT_EQ(folder.tool({"compile", "m.onnx", "-o", "m.ingot", "--unsigned", "--case", "a"}).exit,
            2)
      << "--case needs --golden";
}

}  // namespace
}  // namespace ingot::cli
