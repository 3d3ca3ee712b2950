// Which ONNX operators are imported, from which opset on, and with which limits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ingot {

class NodeImport;
// Imports one node: reads its inputs and attributes, sets its outputs.
using ImportFunction = Result<void> (*)(NodeImport& node);

// The newest opset of the default domain whose changes the table knows. Models of newer ones are
// refused: an operator may have changed its meaning.
inline constexpr int newest_opset = 27;

struct OperatorRow {
  std::string_view domain;  // "" for ai.onnx
  std::string_view op;
  int since = 1;  // the first opset with this meaning
  ImportFunction import = nullptr;
  std::string_view limits;  // what is not covered; empty if everything is
};

// Sorted by domain, operator, since-version.
[[nodiscard]] std::span<const OperatorRow> operator_rows();

// The row in force at `opset`: the newest one not above it. Null if there is none.
[[nodiscard]] const OperatorRow* find_operator(std::string_view domain, std::string_view op,
                                               std::int64_t opset);
// Whether any opset has the operator.
[[nodiscard]] bool knows_operator(std::string_view domain, std::string_view op);

// docs/operators.md.
[[nodiscard]] std::string operators_markdown();

}  // namespace ingot
