// The sliding window of convolutions and pools: strides, dilations, and padding given or computed.
#pragma once

#include <cstdint>
#include <vector>

#include "onnx_frontend/node_import.h"

namespace ingot {

struct SpatialWindow {
  std::vector<std::int64_t> kernel;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilations;
  std::vector<std::int64_t> pads_before;
  std::vector<std::int64_t> pads_after;
  std::vector<std::int64_t> outputs;  // extents of the result

  [[nodiscard]] std::int64_t reach(std::size_t d) const {
    return (kernel[d] - 1) * dilations[d] + 1;
  }
};

struct WindowAttributes {
  std::string auto_pad;
  std::vector<std::int64_t> kernel, strides, dilations, pads;
  bool ceil_mode = false;
};

// Reads kernel_shape, strides, dilations (if the opset has them), pads and auto_pad.
[[nodiscard]] WindowAttributes read_window(NodeImport& node, bool has_dilations,
                                           bool has_ceil_mode);

// Checks the attributes against the spatial extents of the input, and computes padding and outputs.
[[nodiscard]] Result<SpatialWindow> resolve_window(const NodeImport& node, WindowAttributes given,
                                                   const Shape& spatial);
// The same, without outputs and with padding only where it is given (transposed convolution).
[[nodiscard]] Result<SpatialWindow> check_window(const NodeImport& node, WindowAttributes given,
                                                 std::size_t rank);

}  // namespace ingot
