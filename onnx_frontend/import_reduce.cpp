// Reductions: sums, extremes, norms, and the position of an extreme.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "onnx_frontend/importers.h"
#include "onnx_frontend/reduce_axes.h"

namespace ingot {
namespace {

using enum ScalarOp;

ValueId total(GraphBuilder& b, ValueId x, const ReduceAxes& r) {
  return b.reduce(ReduceOp::Sum, x, r.axes, r.keep);
}

// Floats in f32 where the type is narrower; `compute` gets the value and the axes.
template <typename Compute>
Result<void> reduction(NodeImport& node, Types types, Compute compute) {
  INGOT_ASSIGN(const ReduceAxes r, read_reduce_axes(node));
  INGOT_ASSIGN(const ValueId x, node.input(0, types));
  return node.set_output(in_f32(node.builder, x, [&](ValueId v) { return compute(v, r); }));
}

ValueId extreme(GraphBuilder& b, ReduceOp op, ValueId x, const ReduceAxes& r) {
  if (b.dtype(x) != DType::Bool) return b.reduce(op, x, r.axes, r.keep);
  return b.cast(b.reduce(op, b.cast(x, DType::U8), r.axes, r.keep), DType::Bool);
}

}  // namespace

Result<void> import_reduce_sum(NodeImport& node) {
  return reduction(node, Types::Numbers,
                   [&](ValueId x, const ReduceAxes& r) { return total(node.builder, x, r); });
}

Result<void> import_reduce_prod(NodeImport& node) {
  return reduction(node, Types::Numbers, [&](ValueId x, const ReduceAxes& r) {
    return node.builder.reduce(ReduceOp::Product, x, r.axes, r.keep);
  });
}

Result<void> import_reduce_max(NodeImport& node) {
  INGOT_ASSIGN(const ReduceAxes r, read_reduce_axes(node));
  INGOT_ASSIGN(const ValueId x, node.input(0));
  return node.set_output(extreme(node.builder, ReduceOp::Max, x, r));
}

Result<void> import_reduce_min(NodeImport& node) {
  INGOT_ASSIGN(const ReduceAxes r, read_reduce_axes(node));
  INGOT_ASSIGN(const ValueId x, node.input(0));
  return node.set_output(extreme(node.builder, ReduceOp::Min, x, r));
}

Result<void> import_reduce_mean(NodeImport& node) {
  GraphBuilder& b = node.builder;
  return reduction(node, Types::Numbers, [&](ValueId x, const ReduceAxes& r) {
    const std::int64_t count = reduced_count(b.shape(x), r);
    const ValueId sum = total(b, x, r);
    if (is_float(b.dtype(x))) return b.div(sum, b.like(sum, static_cast<double>(count)));
    return b.div(sum, b.splat(Scalar::of_int(b.dtype(x), count), {}));
  });
}

Result<void> import_reduce_l1(NodeImport& node) {
  GraphBuilder& b = node.builder;
  return reduction(node, Types::Numbers, [&](ValueId x, const ReduceAxes& r) {
    const bool is_unsigned = is_integer(b.dtype(x)) && !is_signed(b.dtype(x));
    return total(b, is_unsigned ? x : b.map(Abs, x), r);
  });
}

Result<void> import_reduce_sum_square(NodeImport& node) {
  GraphBuilder& b = node.builder;
  return reduction(node, Types::Numbers,
                   [&](ValueId x, const ReduceAxes& r) { return total(b, b.mul(x, x), r); });
}

Result<void> import_reduce_l2(NodeImport& node) {
  GraphBuilder& b = node.builder;
  return reduction(node, Types::Floats, [&](ValueId x, const ReduceAxes& r) {
    return b.map(Sqrt, total(b, b.mul(x, x), r));
  });
}

Result<void> import_reduce_log_sum(NodeImport& node) {
  GraphBuilder& b = node.builder;
  return reduction(node, Types::Floats,
                   [&](ValueId x, const ReduceAxes& r) { return b.map(Log, total(b, x, r)); });
}

// The largest value is taken out first, so that no exponential overflows; it stays in where it is
// infinite, for then the difference would not be a number.
Result<void> import_reduce_log_sum_exp(NodeImport& node) {
  GraphBuilder& b = node.builder;
  return reduction(node, Types::Floats, [&](ValueId x, const ReduceAxes& r) {
    const ValueId top = b.reduce(ReduceOp::Max, x, r.axes, true);
    const ValueId is_infinite = b.map(Eq, b.map(Abs, top), b.like(top, HUGE_VAL));
    const ValueId shift = b.select(is_infinite, b.like(top, 0), top);
    const ValueId powers = b.map(Exp, b.sub(x, shift));
    const ValueId sum = b.reduce(ReduceOp::Sum, powers, r.axes, true);
    const ValueId result = b.add(b.map(Log, sum), shift);
    return b.reshape(result, reduced_shape(b.shape(x), r));
  });
}

// --- positions

namespace {

Result<void> position_of(NodeImport& node, ReduceOp op) {
  const std::int64_t along = node.attributes.integer("axis", 0);
  const bool keep = node.attributes.flag("keepdims", true);
  const bool last = node.opset >= 12 && node.attributes.flag("select_last_index", false);
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Numbers));
  INGOT_ASSIGN(const int axis, node.axis(along, node.rank(x)));
  const std::int64_t extent = node.shape(x)[static_cast<std::size_t>(axis)];
  if (extent == 0) return node.malformed("there is no extreme of nothing");
  if (extent > std::numeric_limits<std::int32_t>::max()) return node.unsupported("axis too long");
  GraphBuilder& b = node.builder;
  ValueId is_extreme = b.map(Eq, x, b.reduce(op, x, {axis}, true));
  // If one of the values is not a number, that one is the extreme.
  if (is_float(node.dtype(x))) is_extreme = b.map(Or, is_extreme, b.map(IsNan, x));
  Shape line(node.rank(x), 1);
  line[static_cast<std::size_t>(axis)] = extent;
  const ValueId position = b.iota(DType::I32, line, axis);
  const ValueId other = b.splat(Scalar::of_int(DType::I32, last ? -1 : extent), {});
  const ValueId chosen = b.select(is_extreme, position, other);
  const ValueId result = b.reduce(last ? ReduceOp::Max : ReduceOp::Min, chosen, {axis}, keep);
  return node.set_output(b.cast(result, DType::I64));
}

}  // namespace

Result<void> import_arg_max(NodeImport& node) { return position_of(node, ReduceOp::Max); }
Result<void> import_arg_min(NodeImport& node) { return position_of(node, ReduceOp::Min); }

// --- running sums: a sum over a window that reaches back to the start

Result<void> import_cum_sum(NodeImport& node) {
  constexpr std::int64_t longest = 4096;
  const bool exclusive = node.attributes.flag("exclusive", false);
  const bool reverse = node.attributes.flag("reverse", false);
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Numbers));
  INGOT_ASSIGN(const std::vector<std::int64_t> along, node.known_ints(1));
  if (along.size() != 1) return node.malformed("axis must be one number");
  INGOT_ASSIGN(const int axis, node.axis(along[0], node.rank(x)));
  const Shape shape = node.shape(x);
  const std::int64_t extent = shape[static_cast<std::size_t>(axis)];
  if (extent > longest) {
    return node.unsupported(
        fmt::format("the axis has {} elements, at most {} are supported", extent, longest));
  }
  GraphBuilder& b = node.builder;
  return node.set_output(in_f32(b, x, [&](ValueId v) {
    // windows[..., k] = v[i + k - pad] along the axis, appended as the last dimension.
    Shape windows = shape;
    windows.push_back(extent);
    std::vector<AffineIndex> index;
    for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
      index.push_back(AffineIndex::of_axis(d));
    }
    const std::int64_t shift = exclusive ? 1 : 0;
    index[static_cast<std::size_t>(axis)].offset = reverse ? shift : -(extent - 1) - shift;
    index[static_cast<std::size_t>(axis)].add(static_cast<int>(shape.size()), 1);
    const ValueId view = b.view(v, windows, index, Scalar::zero(b.dtype(v)));
    return b.reduce(ReduceOp::Sum, view, {static_cast<int>(shape.size())}, false);
  }));
}

}  // namespace ingot
