// Whole models: those that must import do, with the shapes that the reference outputs have.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "onnx_frontend/read_model.h"
#include "tests/onnx_frontend/model_writer.h"
#include "tests/support/graph_interpreter.h"

namespace ingot {
namespace {

namespace fs = std::filesystem;

nlohmann::json find_case(const std::string& name) {
  std::ifstream file(shared_folder() / "models/cases.json");
  for (const auto& one : nlohmann::json::parse(file)) {
    if (one["name"] == name) return one;
  }
  return {};
}

Result<ImportedModel> import_case(const nlohmann::json& one) {
  INGOT_ASSIGN(const Model model,
               read_model(shared_folder() / "models" / one["model"].get<std::string>()));
  ImportOptions options;
  for (const auto& input : one["inputs"]) {
    options.shapes[input["name"]] = input["shape"].get<Shape>();
  }
  if (one.contains("bind")) {
    for (const auto& name : one["bind"]) {
      for (const auto& input : one["inputs"]) {
        if (input["name"] != name) continue;
        const std::vector<std::int64_t> value = {input["lo"].get<std::int64_t>()};
        options.binds[name] = Tensor::of_ints(DType::I64, input["shape"].get<Shape>(), value);
      }
    }
  }
  return import_graph(model, options);
}

class ModelFiles : public testing::TestWithParam<const char*> {};

TEST_P(ModelFiles, Import) {
  INGOT_NEED_SHARED("models/cases.json");
  const nlohmann::json one = find_case(GetParam());
  ASSERT_FALSE(one.is_null());
  const auto imported = import_case(one);
  ASSERT_TRUE(imported) << problems(imported);
  const Result<void> valid = validate_graph(imported->graph);
  ASSERT_TRUE(valid) << problems(valid);
  const auto& wanted = one["runs"][0]["outputs"];
  EXPECT_EQ(imported->outputs.size(), wanted.size());
  for (const ImportedValue& output : imported->outputs) {
    ASSERT_TRUE(wanted.contains(output.name)) << output.name;
    EXPECT_EQ(output.shape, wanted[output.name]["shape"].get<Shape>()) << output.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ModelFiles,
                         testing::Values("mnist", "ppocr_cls", "ppocr_det", "ultraface_rfb_320",
                                         "blazeface_front", "fastestdet", "mlsd_tiny_320",
                                         "twinlitenet", "wakeword_hello_deepa", "silero_vad_ifless",
                                         "silero_vad_v5"));

// The generator of test inputs, described in the models' README.
Tensor generated(const std::string& name, const Shape& shape, double low, double high,
                 std::uint32_t seed) {
  std::uint32_t hash = 0x811C9DC5;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193U;
  const std::uint32_t start = hash ^ (seed * 0x9E3779B1U);
  std::vector<double> values;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(element_count(shape)); ++i) {
    std::uint32_t x = start + i * 0x9E3779B9U;
    x ^= x >> 16;
    x *= 0x85EBCA6BU;
    x ^= x >> 13;
    x *= 0xC2B2AE35U;
    x ^= x >> 16;
    values.push_back(low + (high - low) * (static_cast<double>(x >> 8) / 16777216.0));
  }
  return Tensor::of_floats(DType::F32, shape, values);
}

std::vector<float> read_npy_floats(const fs::path& path) {
  const std::string bytes = read_file(path);
  const std::size_t start = 10 + static_cast<unsigned char>(bytes[8]) +
                            256 * static_cast<std::size_t>(static_cast<unsigned char>(bytes[9]));
  std::vector<float> values((bytes.size() - start) / sizeof(float));
  std::memcpy(values.data(), bytes.data() + start, values.size() * sizeof(float));
  return values;
}

// Models small enough for the interpreter, against the outputs of ONNX Runtime. INGOT_SLOW_TESTS=1
// takes the larger ones too.
class ModelNumbers : public testing::TestWithParam<const char*> {};

TEST_P(ModelNumbers, AreThoseOfTheReference) {
  INGOT_NEED_SHARED("models/cases.json");
  const std::string name = GetParam();
  const std::set<std::string> quick = {"mnist", "wakeword_hello_deepa", "silero_vad_ifless",
                                       "silero_vad_v5"};
  if (!quick.contains(name) && !std::getenv("INGOT_SLOW_TESTS")) {
    GTEST_SKIP() << "slow in the interpreter: set INGOT_SLOW_TESTS";
  }
  const nlohmann::json one = find_case(name);
  const auto imported = import_case(one);
  ASSERT_TRUE(imported) << problems(imported);
  const auto& run = one["runs"][0];
  NamedTensors inputs;
  for (const auto& input : one["inputs"]) {
    if (input["dtype"] != "float32") continue;  // bound while importing
    const Shape shape = input["shape"].get<Shape>();
    if (input.contains("file")) {
      const std::vector<float> read =
          read_npy_floats(shared_folder() / "models" / input["file"].get<std::string>());
      inputs[input["name"]] =
          Tensor::of_floats(DType::F32, shape, std::vector<double>(read.begin(), read.end()));
    } else {
      inputs[input["name"]] =
          generated(input["name"], shape, input["lo"], input["hi"], run["seed"]);
    }
  }
  const NamedTensors outputs = interpret_outputs(imported->graph, inputs);
  for (const auto& [output, wanted] : run["outputs"].items()) {
    const std::vector<float> want =
        read_npy_floats(shared_folder() / "models" / wanted["file"].get<std::string>());
    const std::vector<double> got = doubles(outputs.at(output));
    ASSERT_EQ(got.size(), want.size());
    double largest = 0;
    double error = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(want[i])));
      error = std::max(error, std::abs(got[i] - static_cast<double>(want[i])));
    }
    EXPECT_LE(error, 1e-4 * largest) << output;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ModelNumbers,
                         testing::Values("mnist", "wakeword_hello_deepa", "silero_vad_ifless",
                                         "silero_vad_v5", "ppocr_cls", "ultraface_rfb_320",
                                         "blazeface_front", "fastestdet"));

}  // namespace
}  // namespace ingot
