// ONNX's own single-operator tests through the importers: each case must give ONNX's numbers, or be
// refused with the diagnostic that node_suite.txt names. A case that passes unexpectedly fails too,
// so that the list stays true. INGOT_UPDATE_LISTS=1 rewrites the list; wrong numbers still fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "onnx_frontend/read_model.h"
#include "tests/onnx_frontend/model_writer.h"
#include "tests/support/graph_interpreter.h"

namespace ingot {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string name;
  std::vector<std::string> binds;
  double rtol = 0;
  bool quantized = false;
};

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> result;
  std::istringstream stream(line);
  std::string cell;
  while (std::getline(stream, cell, ',')) result.push_back(cell);
  return result;
}

std::vector<Case> read_index(const fs::path& folder) {
  std::ifstream file(folder / "index.csv");
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> header = cells(line);
  const auto column = [&](const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(header, name) - header.begin());
  };
  std::vector<Case> cases;
  while (std::getline(file, line)) {
    std::vector<std::string> row = cells(line);
    row.resize(header.size());
    if (row[column("category")] != "node") continue;
    Case one;
    one.name = row[column("name")];
    std::istringstream binds(row[column("bind_inputs")]);
    for (std::string bind; binds >> bind;) one.binds.push_back(bind);
    if (!row[column("rtol")].empty()) one.rtol = std::stod(row[column("rtol")]);
    one.quantized = row[column("quantized")] == "1";
    cases.push_back(std::move(one));
  }
  return cases;
}

struct Tolerance {
  double relative = 0, absolute = 0, of_largest = 0;
};

Tolerance tolerance_of(DType dtype, const Case& one) {
  Tolerance t;
  if (dtype == DType::F32) t = {1e-3, 1e-5, 1e-6};
  if (dtype == DType::F64) t = {1e-4, 1e-6, 1e-9};
  if (dtype == DType::F16) t = {5e-3, 2e-3, 1e-3};
  if (dtype == DType::BF16) t = {2e-2, 1e-2, 1e-2};
  if (!is_float(dtype) && one.quantized) t.absolute = 1;
  if (is_float(dtype) && one.rtol > 0) t.relative = one.rtol;
  return t;
}

// Empty if `got` is close enough to `want`.
std::string compare(const Tensor& got, const Tensor& want, const Case& one) {
  if (got.dtype != want.dtype || got.shape != want.shape) {
    return to_text(got.dtype, got.shape) + " instead of " + to_text(want.dtype, want.shape);
  }
  const Tolerance t = tolerance_of(want.dtype, one);
  const std::int64_t count = element_count(want.shape);
  double largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double w = std::abs(want.at(i).as_double());
    if (std::isfinite(w)) largest = std::max(largest, w);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const double g = got.at(i).as_double();
    const double w = want.at(i).as_double();
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    const double allowed = std::max(t.absolute, t.of_largest * largest) + t.relative * std::abs(w);
    if (std::abs(g - w) <= allowed) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(g) + " instead of " +
           std::to_string(w);
  }
  return {};
}

Result<Tensor> read_value(const fs::path& path) {
  INGOT_ASSIGN(const OnnxTensor tensor, read_tensor(path));
  return to_tensor(tensor);
}

// "pass", "refused CODE", or "wrong WHY".
std::string run_case(const fs::path& folder, const Case& one) {
  const Result<Model> model = read_model(folder / "model.onnx");
  if (!model) return "wrong " + problems(model);
  ImportOptions options;
  options.find_states = false;
  NamedTensors inputs;
  std::size_t k = 0;
  for (const OnnxValueInfo& input : model->graph.inputs) {
    const bool constant = std::ranges::any_of(
        model->graph.initializers, [&](const auto& tensor) { return tensor.name == input.name; });
    if (constant) continue;
    const fs::path file = folder / "test_data_set_0" / ("input_" + std::to_string(k++) + ".pb");
    const Result<Tensor> value = read_value(file);
    if (!value) return "wrong input: " + problems(value);
    if (std::ranges::find(one.binds, input.name) != one.binds.end()) {
      options.binds[input.name] = *value;
    } else {
      inputs[input.name] = *value;
    }
  }
  const Result<ImportedModel> imported = import_graph(*model, options);
  if (!imported) {
    if (imported.error().exit != ExitCode::Unsupported) return "wrong " + problems(imported);
    return "refused " + imported.error().diagnostics.front().code;
  }
  const Result<void> valid = validate_graph(imported->graph);
  if (!valid) return "wrong graph: " + problems(valid);
  const NamedTensors outputs = interpret_outputs(imported->graph, inputs);
  for (std::size_t i = 0; i < model->graph.outputs.size(); ++i) {
    const std::string& name = model->graph.outputs[i].name;
    const Result<Tensor> want =
        read_value(folder / "test_data_set_0" / ("output_" + std::to_string(i) + ".pb"));
    if (!want) return "wrong output: " + problems(want);
    const std::string difference = compare(outputs.at(name), *want, one);
    if (!difference.empty()) return "wrong " + name + ": " + difference;
  }
  return "pass";
}

const fs::path list_path = fs::path(INGOT_SOURCE_DIR) / "tests/onnx_frontend/node_suite.txt";

std::map<std::string, std::string> read_list() {
  std::map<std::string, std::string> list;
  std::ifstream file(list_path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t space = line.find(' ');
    list[line.substr(0, space)] = line.substr(space + 1);
  }
  return list;
}

void write_list(const std::map<std::string, std::string>& results) {
  std::ofstream file(list_path);
  file << "# What becomes of each single-operator test of ONNX: it passes, or is refused with the\n"
          "# diagnostic named. Made by onnx_frontend_test with INGOT_UPDATE_LISTS=1.\n";
  for (const auto& [name, result] : results) file << name << ' ' << result << '\n';
}

TEST(NodeSuite, GivesOnnxNumbersOrRefusesByName) {
  INGOT_NEED_SHARED("onnx_suite/node");
  const fs::path suite = shared_folder() / "onnx_suite";
  const std::map<std::string, std::string> expected = read_list();
  const bool update = std::getenv("INGOT_UPDATE_LISTS") != nullptr;
  std::map<std::string, std::string> results;
  std::map<std::string, int> counts;
  for (const Case& one : read_index(suite)) {
    std::string result = run_case(suite / "node" / one.name, one);
    ++counts[result.substr(0, result.find(' '))];
    if (result.starts_with("wrong")) {
      ADD_FAILURE() << one.name << ": " << result;
      continue;
    }
    const auto entry = expected.find(one.name);
    if (!update) {
      EXPECT_EQ(result, entry == expected.end() ? "not in the list" : entry->second) << one.name;
    }
    results[one.name] = std::move(result);
  }
  for (const auto& [kind, count] : counts) std::printf("%s: %d\n", kind.c_str(), count);
  if (update) write_list(results);
}

// Whether a model that is imported is still imported with inputs that no operator has.
bool takes_surplus_inputs(const fs::path& folder, const Case& one) {
  Result<Model> model = read_model(folder / "model.onnx");
  if (!model || model->graph.nodes.empty()) return false;
  OnnxNode& node = model->graph.nodes.front();
  static const std::set<std::string> variadic = {"Concat", "Einsum", "Max", "Mean", "Min", "Sum"};
  if (variadic.contains(node.op_type) || node.inputs.empty()) return false;
  const std::string filler = node.inputs.front();
  node.inputs.resize(20, filler);
  ImportOptions options;
  options.find_states = false;
  for (const std::string& name : one.binds) {
    for (std::size_t k = 0; k < model->graph.inputs.size(); ++k) {
      if (model->graph.inputs[k].name != name) continue;
      const auto value =
          read_value(folder / "test_data_set_0" / ("input_" + std::to_string(k) + ".pb"));
      if (value) options.binds[name] = *value;
    }
  }
  return import_graph(*model, options).has_value();
}

TEST(NodeSuite, SurplusInputsAreRefused) {
  INGOT_NEED_SHARED("onnx_suite/node");
  const fs::path suite = shared_folder() / "onnx_suite";
  for (const Case& one : read_index(suite)) {
    EXPECT_FALSE(takes_surplus_inputs(suite / "node" / one.name, one)) << one.name;
  }
}

}  // namespace
}  // namespace ingot
