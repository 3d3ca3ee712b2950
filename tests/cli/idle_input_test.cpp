// compile: an input that makes no difference is a warning, and nothing else.
#include <gtest/gtest.h>

#include "cli/json.h"
#include "tests/cli/tiny_model.h"
#include "tests/cli/tool.h"

namespace ingot::cli {
namespace {

class IdleInput : public testing::Test {
 protected:
  // Names in the report; warnings are in `errors`.
  std::vector<std::string> idle(const TinyModel& model, const std::string& check = "sampled") {
    folder.write("m.onnx", serialize(model));
    const ToolResult result = folder.tool(
        {"compile", "m.onnx", "-o", check + ".ingot", "--unsigned", "--json", "--check", check});
    EXPECT_EQ(result.exit, 0) << result.errors;
    errors = result.errors;
    std::vector<std::string> names;
    const Result<Json> report = parse_json(result.output, "report");
    if (!report) return names;
    for (const Json& input : (*report)["idle_inputs"]) names.push_back(input["name"]);
    return names;
  }

  static TinyModel model(std::vector<TinyNode> nodes) {
    TinyModel model;
    model.inputs = {{"x", {4}}, {"u", {4}}};
    model.outputs = {{"y", {4}}};
    model.nodes = std::move(nodes);
    return model;
  }

  TemporaryFolder folder;
  std::string errors;
};

using Names = std::vector<std::string>;

TEST_F(IdleInput, NothingToSay) {
  EXPECT_EQ(idle(model({{"Add", {"x", "u"}, {"y"}, "add"}})), Names{});
  EXPECT_EQ(errors.find("warning"), std::string::npos) << errors;
}

TEST_F(IdleInput, UnusedIsSaidWithoutTrying) {
  for (const char* check : {"sampled", "off"}) {
    EXPECT_EQ(idle(model({{"Relu", {"x"}, {"y"}, "relu"}}), check), Names{"u"});
    EXPECT_NE(errors.find("input 'u' is not used"), std::string::npos) << errors;
  }
}

TEST_F(IdleInput, TimesZeroChangesNothing) {
  TinyModel zero =
      model({{"Mul", {"u", "zero"}, {"nothing"}, "mul"}, {"Add", {"x", "nothing"}, {"y"}, "add"}});
  zero.zeros = {{"zero", {4}}};
  EXPECT_EQ(idle(zero), Names{"u"});
  EXPECT_NE(errors.find("input 'u' changes no output"), std::string::npos) << errors;
  EXPECT_NE(errors.find("computed from it: y"), std::string::npos) << errors;
  EXPECT_EQ(idle(zero, "off"), Names{}) << "that takes trying";
  EXPECT_EQ(folder.read("off.ingot"), folder.read("sampled.ingot"));
}

// The reference holds values between 0 and 1 only.
TEST_F(IdleInput, ValuesBeyondAThresholdAreTried) {
  EXPECT_EQ(idle(model({{"Neg", {"u"}, {"n"}, "neg"},
                        {"Relu", {"n"}, {"r"}, "relu"},
                        {"Add", {"x", "r"}, {"y"}, "add"}})),
            Names{});
}

TEST_F(IdleInput, AStateThatBeginsWithZerosHidesNothing) {
  TinyModel gate =
      model({{"Mul", {"x", "s"}, {"y"}, "mul"}, {"Identity", {"s"}, {"next_s"}, "keep"}});
  gate.inputs[1].name = "s";
  gate.outputs.push_back({"next_s", {4}});
  EXPECT_EQ(idle(gate), Names{});
}

TEST_F(IdleInput, AStateThatNothingReads) {
  TinyModel forgets = model({{"Relu", {"x"}, {"y"}, "relu"}, {"Neg", {"x"}, {"next_s"}, "neg"}});
  forgets.inputs[1].name = "s";
  forgets.outputs.push_back({"next_s", {4}});
  EXPECT_EQ(idle(forgets), Names{"s"});
  EXPECT_NE(errors.find("state 's' is not used"), std::string::npos) << errors;
}

// Where a queue's next entry goes matters, whatever its length.
TEST_F(IdleInput, PlacesOfQueuesAreNoMistake) {
  for (const int samples : {2, 3, 4, 5, 8, 16}) {
    folder.write("p.json", R"({"format": "ingot-pipeline/1", "name": "p",
      "inputs": {"v": {"dtype": "f32", "shape": [2]}},
      "stages": [{"id": "queue2", "queue": "v", "stack": 0, "samples": )" +
                               std::to_string(samples) + R"(}], "outputs": {"y": "queue2"}})");
    const ToolResult result =
        folder.tool({"compile", "p.json", "-o", "p.ingot", "--unsigned", "--no-progress"});
    EXPECT_EQ(result.exit, 0) << result.errors;
    EXPECT_EQ(result.errors.find("warning"), std::string::npos) << result.errors;
  }
}

}  // namespace
}  // namespace ingot::cli
