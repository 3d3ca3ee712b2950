// ingot check: the right numbers pass, one wrong one is 7 and named.
#include <gtest/gtest.h>

#include "cli/json.h"
#include "compiler/compile.h"
#include "tests/cli/npy_text.h"
#include "tests/cli/tiny_model.h"
#include "tests/cli/tool.h"

namespace ingot::cli {
namespace {

std::vector<double> generated(const std::string& name, std::uint64_t seed) {
  const std::vector<std::byte> bytes = generate_input(name, DType::F32, {4}, seed, -1, 1);
  std::vector<double> values;
  for (std::size_t i = 0; i < 4; ++i) {
    values.push_back(Scalar::load(DType::F32, bytes.data() + 4 * i).as_double());
  }
  return values;
}

class Check : public testing::Test {
 protected:
  void compile(const std::string& model) {
    folder.write("m.onnx", model);
    const ToolResult compiled = folder.tool({"compile", "m.onnx", "-o", "m.ingot", "--unsigned"});
    ASSERT_EQ(compiled.exit, 0) << compiled.errors;
  }
  ToolResult check(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"check",    "m.ingot", "--allow-unsigned",
                                          "--golden", "golden",  "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return folder.tool(arguments);
  }

  TemporaryFolder folder;
};

TEST_F(Check, Folders) {
  compile(relu_plus_model());
  folder.write("golden/one/input_0.npy", npy_text({2, 3}, {1, -2, 3, -4, 5, -6}));
  folder.write("golden/one/output_0.npy", npy_text({2, 3}, {2, -2, 6, -4, 10, -6}));
  const ToolResult good = check();
  EXPECT_EQ(good.exit, 0) << good.errors;
  folder.write("golden/one/output_0.npy", npy_text({2, 3}, {2, -2, 6, -4, 10.5, -6}));
  const ToolResult bad = check();
  EXPECT_EQ(bad.exit, 7);
  const Result<Json> list = parse_json(bad.output, "list");
  ASSERT_TRUE(list);
  EXPECT_EQ((*list)[0]["worst_index"], "[1,1]");
  EXPECT_EQ((*list)[0]["max_abs_error"], 0.5);
  EXPECT_EQ(check({"--tolerance", "0.1"}).exit, 0);
}

TEST_F(Check, DataOfAnotherTypeOrShapeIsRefused) {
  compile(relu_plus_model());
  folder.write("golden/one/input_0.npy", npy_text({2, 3}, {1, -2, 3, -4, 5, -6}));
  folder.write("golden/one/output_0.npy", npy_text({3, 2}, {2, -2, 6, -4, 10, -6}));
  EXPECT_EQ(check().exit, 3);
  folder.write("golden/one/output_0.npy", noise(100, 8));
  EXPECT_EQ(check().exit, 3);
  folder.write("golden/one/output_7.npy", npy_text({2, 3}, {2, -2, 6, -4, 10, -6}));
  EXPECT_EQ(check().exit, 3);
}

TEST_F(Check, GeneratedInputsStepsAndStates) {
  compile(counter_model());
  std::vector<double> sum = generated("s", 5);
  for (const std::uint64_t seed : {5U, 6U, 7U}) {
    const std::vector<double> x = generated("x", seed);
    for (std::size_t i = 0; i < 4; ++i) {
      sum[i] = static_cast<double>(static_cast<float>(sum[i] + x[i]));
    }
  }
  folder.write("golden/y.npy", npy_text({4}, sum));
  folder.write("golden/cases.json", R"([{"name": "counter", "feedback": ["next_s=s"],
    "inputs": [{"name": "x", "dtype": "float32", "shape": [4], "lo": -1, "hi": 1},
               {"name": "s", "dtype": "float32", "shape": [4], "lo": -1, "hi": 1}],
    "runs": [{"seed": 5, "steps": 3, "outputs": {"y": {"file": "y.npy"},
                                                 "next_s": {"file": "y.npy"}}}]}])");
  const ToolResult result = check({"--case", "counter"});
  EXPECT_EQ(result.exit, 0) << result.errors << result.output;
  EXPECT_EQ(check().exit, 2) << "the file names no digest of this model";
}

}  // namespace
}  // namespace ingot::cli
