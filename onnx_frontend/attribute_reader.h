// Typed access to a node's attributes, with defaults, remembering what was read.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "onnx_frontend/model.h"

namespace ingot {

// An importer asks for each attribute that its operator defines. What has the wrong type, or is
// required and missing, is noted and answered with the default; what nobody asked for is found by
// `unread`. The caller reports both (import_graph.cpp), so importers need not check each call.
class AttributeReader {
 public:
  explicit AttributeReader(const OnnxNode& node);

  [[nodiscard]] bool has(std::string_view name) const;

  std::int64_t integer(std::string_view name, std::int64_t fallback);
  std::int64_t required_integer(std::string_view name);
  bool flag(std::string_view name, bool fallback);  // an integer that is 0 or 1
  float number(std::string_view name, float fallback);
  // One of `choices`; the first is the default. Another value is noted as unsupported.
  std::string choice(std::string_view name, std::initializer_list<std::string_view> choices);
  std::string text(std::string_view name, std::string_view fallback);
  std::vector<std::int64_t> integers(std::string_view name);  // empty if absent
  std::optional<std::vector<std::int64_t>> optional_integers(std::string_view name);
  std::vector<float> numbers(std::string_view name);
  std::vector<std::string> texts(std::string_view name);
  const OnnxTensor* tensor(std::string_view name);                // null if absent
  std::shared_ptr<const OnnxGraph> graph(std::string_view name);  // null if absent
  // Known, and without influence on the result.
  void ignore(std::initializer_list<std::string_view> names);

  // What was wrong so far: exit code and message of each problem.
  struct Problem {
    ExitCode exit;
    std::string code;
    std::string message;
  };
  [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }
  [[nodiscard]] std::vector<std::string> unread() const;

 private:
  const OnnxAttribute* find(std::string_view name, OnnxAttributeType type);

  const OnnxNode& node_;
  std::set<std::string, std::less<>> read_;
  std::vector<Problem> problems_;
};

}  // namespace ingot
