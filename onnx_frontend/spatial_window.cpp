#include "onnx_frontend/spatial_window.h"

#include <fmt/format.h>

#include <algorithm>

namespace ingot {
namespace {

// Far above anything useful; keeps all products within 64 bits.
constexpr std::int64_t largest_value = 1 << 24;

Result<void> check_list(const NodeImport& node, std::string_view name,
                        const std::vector<std::int64_t>& values, std::size_t size,
                        std::int64_t least) {
  if (values.size() != size) {
    return node.malformed(
        fmt::format("{} has {} values, {} are needed", name, values.size(), size));
  }
  for (const std::int64_t value : values) {
    if (value < least || value > largest_value) {
      return node.malformed(fmt::format("{} holds {}", name, value));
    }
  }
  return {};
}

}  // namespace

WindowAttributes read_window(NodeImport& node, bool has_dilations, bool has_ceil_mode) {
  WindowAttributes window;
  window.auto_pad =
      node.attributes.choice("auto_pad", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"});
  window.kernel = node.attributes.integers("kernel_shape");
  window.strides = node.attributes.integers("strides");
  if (has_dilations) window.dilations = node.attributes.integers("dilations");
  window.pads = node.attributes.integers("pads");
  if (has_ceil_mode) window.ceil_mode = node.attributes.flag("ceil_mode", false);
  return window;
}

Result<SpatialWindow> check_window(const NodeImport& node, WindowAttributes given,
                                   std::size_t rank) {
  if (given.strides.empty()) given.strides.assign(rank, 1);
  if (given.dilations.empty()) given.dilations.assign(rank, 1);
  if (given.pads.empty()) given.pads.assign(2 * rank, 0);
  INGOT_RETURN_IF_ERROR(check_list(node, "kernel_shape", given.kernel, rank, 1));
  INGOT_RETURN_IF_ERROR(check_list(node, "strides", given.strides, rank, 1));
  INGOT_RETURN_IF_ERROR(check_list(node, "dilations", given.dilations, rank, 1));
  INGOT_RETURN_IF_ERROR(check_list(node, "pads", given.pads, 2 * rank, 0));
  SpatialWindow window;
  window.kernel = std::move(given.kernel);
  window.strides = std::move(given.strides);
  window.dilations = std::move(given.dilations);
  const auto middle = given.pads.begin() + static_cast<std::ptrdiff_t>(rank);
  window.pads_before.assign(given.pads.begin(), middle);
  window.pads_after.assign(middle, given.pads.end());
  return window;
}

Result<SpatialWindow> resolve_window(const NodeImport& node, WindowAttributes given,
                                     const Shape& spatial) {
  const std::string auto_pad = given.auto_pad;
  const bool ceil_mode = given.ceil_mode;
  // Some exporters write pads beside an auto_pad that overrides them.
  if (auto_pad != "NOTSET") given.pads.clear();
  INGOT_ASSIGN(SpatialWindow window, check_window(node, std::move(given), spatial.size()));
  for (std::size_t d = 0; d < spatial.size(); ++d) {
    const std::int64_t extent = spatial[d];
    const std::int64_t stride = window.strides[d];
    const std::int64_t reach = window.reach(d);
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      const std::int64_t outputs = (extent + stride - 1) / stride;
      const std::int64_t total = std::max<std::int64_t>(0, (outputs - 1) * stride + reach - extent);
      const std::int64_t less = total / 2;
      window.pads_before[d] = auto_pad == "SAME_UPPER" ? less : total - less;
      window.pads_after[d] = total - window.pads_before[d];
      window.outputs.push_back(outputs);
      continue;
    }
    const std::int64_t room = extent + window.pads_before[d] + window.pads_after[d] - reach;
    if (room < 0) {
      return node.malformed(fmt::format(
          "the kernel spans {} elements of dimension {}, which has {}", reach, d, reach + room));
    }
    std::int64_t outputs = room / stride + 1;
    // Rounded up, unless the last window would start in the padding behind the input.
    if (ceil_mode && room % stride != 0 && outputs * stride < extent + window.pads_before[d]) {
      ++outputs;
    }
    window.outputs.push_back(outputs);
  }
  return window;
}

}  // namespace ingot
