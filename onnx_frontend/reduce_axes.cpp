#include "onnx_frontend/reduce_axes.h"

#include <algorithm>
#include <numeric>

namespace ingot {

// Only ReduceSum took its axes as an input in opset 13; the others followed in 18.
Result<ReduceAxes> read_reduce_axes(NodeImport& node) {
  const bool as_input = node.opset >= 18 || (node.opset >= 13 && node.node.op_type == "ReduceSum");
  ReduceAxes result;
  result.keep = node.attributes.flag("keepdims", true);
  const bool nothing_if_empty = as_input && node.attributes.flag("noop_with_empty_axes", false);
  std::vector<std::int64_t> axes;
  if (as_input) {
    INGOT_RETURN_IF_ERROR(node.at_most(2));
    if (node.has_input(1)) {
      INGOT_ASSIGN(axes, node.known_ints(1));
    }
  } else {
    axes = node.attributes.integers("axes");
    INGOT_RETURN_IF_ERROR(node.at_most(1));
  }
  INGOT_ASSIGN(const ValueId x, node.input(0));
  if (axes.empty() && !nothing_if_empty) {
    axes.resize(node.rank(x));
    std::iota(axes.begin(), axes.end(), 0);
  }
  INGOT_ASSIGN(result.axes, node.axes(axes, node.rank(x)));
  return result;
}

std::int64_t reduced_count(const Shape& shape, const ReduceAxes& reduce) {
  std::int64_t count = 1;
  for (const int axis : reduce.axes) count *= shape[static_cast<std::size_t>(axis)];
  return count;
}

Shape reduced_shape(const Shape& shape, const ReduceAxes& reduce) {
  Shape result;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const bool reduced = std::ranges::binary_search(reduce.axes, static_cast<int>(d));
    if (!reduced) {
      result.push_back(shape[d]);
    } else if (reduce.keep) {
      result.push_back(1);
    }
  }
  return result;
}

}  // namespace ingot
