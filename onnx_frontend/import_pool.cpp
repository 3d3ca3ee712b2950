// Pools: a window that slides over the spatial dimensions, reduced.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "onnx_frontend/importers.h"
#include "onnx_frontend/spatial_window.h"

namespace ingot {
namespace {

using enum ScalarOp;

struct Pool {
  ValueId x;
  SpatialWindow window;
};

Result<Pool> read_pool(NodeImport& node, bool has_dilations, bool has_ceil_mode, Types types) {
  WindowAttributes attributes = read_window(node, has_dilations, has_ceil_mode);
  INGOT_ASSIGN(const ValueId x, node.input(0, types));
  INGOT_RETURN_IF_ERROR(node.at_most(1));
  if (node.rank(x) < 3) return node.malformed("the input needs 3 dimensions or more");
  const Shape& shape = node.shape(x);
  INGOT_ASSIGN(SpatialWindow window,
               resolve_window(node, std::move(attributes), Shape(shape.begin() + 2, shape.end())));
  Shape all = shape;
  all.insert(all.end(), window.kernel.begin(), window.kernel.end());
  INGOT_RETURN_IF_ERROR(node.checked_shape(all));
  return Pool{x, std::move(window)};
}

// The input with one axis per window dimension appended.
ValueId windows(GraphBuilder& b, ValueId x, const SpatialWindow& w, Scalar fill) {
  GraphBuilder::Window window;
  window.extents = w.kernel;
  window.strides = w.strides;
  window.dilations = w.dilations;
  window.pads_before = w.pads_before;
  window.outputs = w.outputs;
  return b.windows(x, window, fill);
}

std::vector<int> window_axes(const GraphBuilder& b, ValueId windows, const SpatialWindow& w) {
  std::vector<int> axes(w.kernel.size());
  std::iota(axes.begin(), axes.end(), static_cast<int>(b.shape(windows).size() - axes.size()));
  return axes;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return a > 0 ? (a + b - 1) / b : -(-a / b);
}

// How many elements each window averages: the product of these numbers over the dimensions.
// Padding counts if it is asked for, what a rounded-up window has beyond it never.
std::vector<double> counts(const SpatialWindow& w, std::size_t d, std::int64_t extent,
                           bool include_pad) {
  const std::int64_t low = include_pad ? -w.pads_before[d] : 0;
  const std::int64_t high = include_pad ? extent + w.pads_after[d] : extent;
  std::vector<double> result;
  for (std::int64_t o = 0; o < w.outputs[d]; ++o) {
    // Element k of the window is at start + k * dilation.
    const std::int64_t start = o * w.strides[d] - w.pads_before[d];
    const std::int64_t first = std::max<std::int64_t>(0, ceil_div(low - start, w.dilations[d]));
    const std::int64_t end = std::min(w.kernel[d], ceil_div(high - start, w.dilations[d]));
    result.push_back(static_cast<double>(std::max<std::int64_t>(0, end - first)));
  }
  return result;
}

// The number of averaged elements, as one number or as a value that broadcasts over the result.
ValueId divisor(NodeImport& node, const Pool& pool, bool include_pad, DType dtype) {
  GraphBuilder& b = node.builder;
  const std::size_t rank = pool.window.kernel.size();
  double uniform = 1;
  std::optional<ValueId> varying;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::vector<double> c = counts(pool.window, d, node.shape(pool.x)[d + 2], include_pad);
    if (std::ranges::all_of(c, [&](double v) { return v == c.front(); })) {
      if (!c.empty()) uniform *= c.front();
      continue;
    }
    Shape shape(rank - d, 1);
    shape[0] = static_cast<std::int64_t>(c.size());
    const ValueId factor = node.floats(c, shape, dtype);
    varying = varying ? b.mul(*varying, factor) : factor;
  }
  const ValueId constant = b.splat(Scalar::of_float(dtype, uniform), {});
  if (!varying) return constant;
  return uniform == 1 ? *varying : b.mul(*varying, constant);
}

Result<void> average(NodeImport& node, bool has_dilations, bool has_ceil, bool has_include) {
  const bool include_pad = has_include && node.attributes.flag("count_include_pad", false);
  INGOT_ASSIGN(const Pool pool, read_pool(node, has_dilations, has_ceil, Types::Floats));
  GraphBuilder& b = node.builder;
  return node.set_output(in_f32(b, pool.x, [&](ValueId x) {
    const ValueId all = windows(b, x, pool.window, Scalar::zero(b.dtype(x)));
    const ValueId sum = b.reduce(ReduceOp::Sum, all, window_axes(b, all, pool.window), false);
    return b.div(sum, divisor(node, pool, include_pad, b.dtype(x)));
  }));
}

// The position of each maximum in the flattened input; the first one if several are equal.
ValueId max_positions(GraphBuilder& b, const Pool& pool, ValueId all, ValueId highest,
                      bool column_major) {
  const Shape shape = b.shape(pool.x);
  Shape spatial(shape.begin() + 2, shape.end());
  ValueId position = b.iota(DType::I64, {element_count(shape)}, 0);
  if (column_major) {
    // Only the order within one channel turns; channels stay apart.
    Shape turned(spatial.rbegin(), spatial.rend());
    Shape with_channels = {shape[0], shape[1]};
    with_channels.insert(with_channels.end(), turned.begin(), turned.end());
    position = b.reshape(position, with_channels);
    std::vector<int> permutation = {0, 1};
    for (std::size_t d = shape.size(); d-- > 2;) permutation.push_back(static_cast<int>(d));
    position = b.transpose(position, permutation);
  } else {
    position = b.reshape(position, shape);
  }
  const Scalar none = Scalar::of_int(DType::I64, std::numeric_limits<std::int64_t>::max());
  const ValueId places = windows(b, position, pool.window, none);
  Shape kept = b.shape(highest);
  kept.resize(b.shape(all).size(), 1);
  const ValueId is_highest = b.map(Eq, all, b.reshape(highest, kept));
  const ValueId chosen = b.select(is_highest, places, b.splat(none, {}));
  return b.reduce(ReduceOp::Min, chosen, window_axes(b, all, pool.window), false);
}

Result<void> maximum(NodeImport& node, bool has_dilations, bool has_ceil, bool has_order) {
  const bool column_major = has_order && node.attributes.flag("storage_order", false);
  INGOT_ASSIGN(const Pool pool, read_pool(node, has_dilations, has_ceil, Types::Numbers));
  GraphBuilder& b = node.builder;
  const Scalar lowest = identity(ReduceOp::Max, node.dtype(pool.x));
  const ValueId all = windows(b, pool.x, pool.window, lowest);
  const ValueId highest = b.reduce(ReduceOp::Max, all, window_axes(b, all, pool.window), false);
  if (node.wants_output(1)) {
    node.set_output(1, max_positions(b, pool, all, highest, column_major));
  }
  return node.set_output(highest);
}

// The spatial axes, all kept with extent 1.
Result<std::vector<int>> spatial_axes(const NodeImport& node, ValueId x) {
  if (node.rank(x) < 3) return node.malformed("the input needs 3 dimensions or more");
  std::vector<int> axes(node.rank(x) - 2);
  std::iota(axes.begin(), axes.end(), 2);
  return axes;
}

// |x|^p
ValueId powered(GraphBuilder& b, ValueId x, std::int64_t p) {
  if (p == 2) return b.mul(x, x);
  const ValueId size = b.map(Abs, x);
  ValueId power = size;
  for (std::int64_t i = 1; i < p; ++i) power = b.mul(power, size);
  return power;
}

// The p-th root of what is not negative; exp(log(0) / p) is 0.
ValueId root(GraphBuilder& b, ValueId x, std::int64_t p) {
  if (p == 1) return x;
  if (p == 2) return b.map(Sqrt, x);
  return b.map(Exp, b.div(b.map(Log, x), b.like(x, static_cast<double>(p))));
}

Result<std::int64_t> read_p(NodeImport& node) {
  constexpr std::int64_t largest = 16;
  if (node.opset == 1) {
    const double p = node.attributes.number("p", 2.0F);
    for (std::int64_t whole = 1; whole <= largest; ++whole) {
      if (p == static_cast<double>(whole)) return whole;
    }
    return node.unsupported_attribute(fmt::format("p={} is not supported", p));
  }
  const std::int64_t p = node.attributes.integer("p", 2);
  if (p >= 1 && p <= largest) return p;
  return node.unsupported_attribute(fmt::format("p={} is not supported", p));
}

}  // namespace

Result<void> import_average_pool_1(NodeImport& node) { return average(node, false, false, false); }
Result<void> import_average_pool_7(NodeImport& node) { return average(node, false, false, true); }
Result<void> import_average_pool_10(NodeImport& node) { return average(node, false, true, true); }
Result<void> import_average_pool_19(NodeImport& node) { return average(node, true, true, true); }

Result<void> import_max_pool_1(NodeImport& node) { return maximum(node, false, false, false); }
Result<void> import_max_pool_8(NodeImport& node) { return maximum(node, false, false, true); }
Result<void> import_max_pool_10(NodeImport& node) { return maximum(node, true, true, true); }

Result<void> import_global_average_pool(NodeImport& node) {
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  INGOT_ASSIGN(const std::vector<int> axes, spatial_axes(node, x));
  GraphBuilder& b = node.builder;
  std::int64_t count = 1;
  for (const int axis : axes) count *= node.shape(x)[static_cast<std::size_t>(axis)];
  return node.set_output(in_f32(b, x, [&](ValueId v) {
    const ValueId sum = b.reduce(ReduceOp::Sum, v, axes, true);
    return b.div(sum, b.like(sum, static_cast<double>(count)));
  }));
}

Result<void> import_global_max_pool(NodeImport& node) {
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  INGOT_ASSIGN(const std::vector<int> axes, spatial_axes(node, x));
  return node.set_output(node.builder.reduce(ReduceOp::Max, x, axes, true));
}

Result<void> import_global_lp_pool(NodeImport& node) {
  INGOT_ASSIGN(const std::int64_t p, read_p(node));
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  INGOT_ASSIGN(const std::vector<int> axes, spatial_axes(node, x));
  GraphBuilder& b = node.builder;
  return node.set_output(in_f32(b, x, [&](ValueId v) {
    return root(b, b.reduce(ReduceOp::Sum, powered(b, v, p), axes, true), p);
  }));
}

Result<void> import_lp_pool(NodeImport& node) {
  INGOT_ASSIGN(const std::int64_t p, read_p(node));
  const bool newer = node.opset >= 18;
  INGOT_ASSIGN(const Pool pool, read_pool(node, newer, newer, Types::Floats));
  GraphBuilder& b = node.builder;
  return node.set_output(in_f32(b, pool.x, [&](ValueId x) {
    const ValueId all = windows(b, powered(b, x, p), pool.window, Scalar::zero(b.dtype(x)));
    return root(b, b.reduce(ReduceOp::Sum, all, window_axes(b, all, pool.window), false), p);
  }));
}

}  // namespace ingot
