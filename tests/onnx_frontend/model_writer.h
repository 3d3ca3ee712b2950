// Writes small ONNX models for tests.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "onnx_frontend/import_graph.h"

namespace ingot {

// A folder of its own for one test, removed with the object.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

void write_file(const std::filesystem::path& path, const std::string& bytes);
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

// A dimension: a number, or a name.
using TestDim = std::variant<std::int64_t, std::string>;

class ModelWriter {
 public:
  explicit ModelWriter(std::int64_t opset = 17, std::int64_t ir_version = 8);

  ModelWriter& input(const std::string& name, const std::vector<TestDim>& dims,
                     int type = onnx::TensorProto::FLOAT);
  ModelWriter& output(const std::string& name, int type = onnx::TensorProto::FLOAT);
  ModelWriter& floats(const std::string& name, const std::vector<std::int64_t>& dims,
                      const std::vector<float>& values);
  ModelWriter& ints(const std::string& name, const std::vector<std::int64_t>& dims,
                    const std::vector<std::int64_t>& values);
  onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::string& name = {});

  onnx::ModelProto proto;

  [[nodiscard]] std::string bytes() const { return proto.SerializeAsString(); }
  // Through a file, as a user's model comes.
  [[nodiscard]] Result<Model> read() const;
  [[nodiscard]] Result<ImportedModel> import(const ImportOptions& options = {}) const;
};

void set_int(onnx::NodeProto& node, const std::string& name, std::int64_t value);
void set_float(onnx::NodeProto& node, const std::string& name, float value);
void set_text(onnx::NodeProto& node, const std::string& name, const std::string& value);
void set_ints(onnx::NodeProto& node, const std::string& name,
              const std::vector<std::int64_t>& values);

// "code: message" of every diagnostic, one a line; "no failure" for a value.
template <typename T>
std::string problems(const Result<T>& result) {
  if (result) return "no failure";
  std::string text;
  for (const Diagnostic& diagnostic : result.error().diagnostics) {
    text += to_line(diagnostic) + "\n";
  }
  return text;
}

template <typename T>
ExitCode exit_of(const Result<T>& result) {
  return result ? ExitCode::Done : result.error().exit;
}

template <typename T>
bool has_code(const Result<T>& result, const std::string& code) {
  if (result) return false;
  for (const Diagnostic& diagnostic : result.error().diagnostics) {
    if (diagnostic.code == code) return true;
  }
  return false;
}

// The folder with models and test suites, or empty. Where it is missing tests that need it are
// skipped, but not in continuous integration.
[[nodiscard]] std::filesystem::path shared_folder();

}  // namespace ingot

// In a test that needs `path` below the shared folder.
#define INGOT_NEED_SHARED(path)                                             \
  if (!std::filesystem::exists(::ingot::shared_folder() / (path))) {        \
    if (::ingot::in_continuous_integration()) FAIL() << "missing " << path; \
    GTEST_SKIP() << "set INGOT_SHARED: there is no " << path;               \
  }

namespace ingot {
[[nodiscard]] bool in_continuous_integration();
}  // namespace ingot
