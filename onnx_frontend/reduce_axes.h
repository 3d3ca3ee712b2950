// The axes of a reduction: an attribute in older opsets, an input in newer ones.
#pragma once

#include <cstdint>
#include <vector>

#include "onnx_frontend/node_import.h"

namespace ingot {

struct ReduceAxes {
  std::vector<int> axes;  // sorted; empty: nothing is reduced
  bool keep = true;
};

[[nodiscard]] Result<ReduceAxes> read_reduce_axes(NodeImport& node);
// The number of elements that make one element of the result.
[[nodiscard]] std::int64_t reduced_count(const Shape& shape, const ReduceAxes& reduce);
[[nodiscard]] Shape reduced_shape(const Shape& shape, const ReduceAxes& reduce);

}  // namespace ingot
