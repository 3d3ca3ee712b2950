#include "compiler/graph/graph.h"

#include <algorithm>
#include <limits>

namespace ingot {

std::string_view name(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum: return "sum";
    case ReduceOp::Product: return "product";
    case ReduceOp::Max: return "max";
    case ReduceOp::Min: return "min";
  }
  return {};
}

ScalarOp scalar_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum: return ScalarOp::Add;
    case ReduceOp::Product: return ScalarOp::Mul;
    case ReduceOp::Max: return ScalarOp::Max;
    case ReduceOp::Min: return ScalarOp::Min;
  }
  return ScalarOp::Add;
}

Scalar identity(ReduceOp op, DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (op) {
    case ReduceOp::Sum: return Scalar::zero(dtype);
    case ReduceOp::Product: return Scalar::of_int(dtype, 1);
    // Integers saturate to their lowest and highest value.
    case ReduceOp::Max:
      return dtype == DType::Bool ? Scalar::zero(dtype) : Scalar::of_float(dtype, -kInfinity);
    case ReduceOp::Min: return Scalar::of_float(dtype, kInfinity);
  }
  return Scalar::zero(dtype);
}

bool tests_equality_of_floats(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    const auto* map = std::get_if<MapOp>(&node.op);
    return map != nullptr && map->op == ScalarOp::Eq && is_float(graph[node.inputs[0]].dtype);
  });
}

}  // namespace ingot
