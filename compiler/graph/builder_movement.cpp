// Views, reshapes and joins.
#include <algorithm>

#include "base/check.h"
#include "compiler/graph/builder.h"
#include "compiler/graph/view_algebra.h"

namespace ingot {
namespace {

std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

std::vector<AffineIndex> identity_index(std::size_t rank) {
  std::vector<AffineIndex> index;
  for (std::size_t d = 0; d < rank; ++d) index.push_back(AffineIndex::of_axis(static_cast<int>(d)));
  return index;
}

// The view from `from` to `to` if they differ by dimensions of extent 1 only.
std::optional<ViewOp> unit_view(const Shape& from, const Shape& to) {
  ViewOp view;
  std::size_t axis = 0;
  for (const std::int64_t extent : from) {
    if (extent == 1) {
      view.index.push_back(AffineIndex::constant(0));
      continue;
    }
    while (axis < to.size() && to[axis] == 1) ++axis;
    if (axis == to.size() || to[axis] != extent) return std::nullopt;
    view.index.push_back(AffineIndex::of_axis(static_cast<int>(axis)));
    ++axis;
  }
  while (axis < to.size() && to[axis] == 1) ++axis;
  if (axis != to.size()) return std::nullopt;
  return view;
}

}  // namespace

ValueId GraphBuilder::view(ValueId value, Shape shape, std::vector<AffineIndex> index,
                           std::optional<Scalar> fill) {
  INGOT_CHECK(index.size() == this->shape(value).size(), "a view needs an index per dimension");
  INGOT_CHECK(!fill || fill->dtype == dtype(value), "a view with a fill of another type");
  for (const AffineIndex& one : index) {
    INGOT_CHECK(one.divisor >= 1, "an index divided by less than 1");
    for (const auto& term : one.terms) {
      INGOT_CHECK(at(term.axis) < shape.size(), "a view over an axis it does not have");
    }
  }
  ViewOp op{std::move(index), std::move(fill)};
  normalize_view(op, this->shape(value), shape);
  for (std::size_t d = 0; d < op.index.size() && !op.fill; ++d) {
    INGOT_CHECK(!may_leave(op.index[d], this->shape(value)[d], shape),
                "a view without a fill leaves its input");
  }
  while (const auto* inner = std::get_if<ViewOp>(&graph_[value].op)) {
    const ValueId base = graph_[value].inputs[0];
    auto composed = compose_views(*inner, this->shape(base), this->shape(value), op, shape);
    if (!composed) break;
    op = std::move(*composed);
    value = base;
  }
  if (is_identity(op, this->shape(value), shape)) return value;
  return append(node(std::move(op), dtype(value), std::move(shape), {value}));
}

// The earliest value with the same elements in the same order.
ValueId GraphBuilder::same_order(ValueId value) const {
  while (true) {
    const Node& node = graph_[value];
    if (const auto* view = std::get_if<ViewOp>(&node.op)) {
      const auto unit = unit_view(graph_[node.inputs[0]].shape, node.shape);
      if (!unit || view->fill || view->index != unit->index) return value;
    } else if (!std::holds_alternative<ReshapeOp>(node.op)) {
      return value;
    }
    value = node.inputs[0];
  }
}

ValueId GraphBuilder::reshape(ValueId value, Shape shape) {
  INGOT_CHECK(element_count(this->shape(value)) == element_count(shape),
              "a reshape that changes the number of elements");
  if (this->shape(value) == shape) return value;
  const ValueId root = same_order(value);
  if (auto unit = unit_view(this->shape(root), shape)) {
    return view(root, std::move(shape), std::move(unit->index));
  }
  return append(node(ReshapeOp{}, dtype(root), std::move(shape), {root}));
}

ValueId GraphBuilder::transpose(ValueId value, std::span<const int> permutation) {
  const Shape& from = shape(value);
  INGOT_CHECK(permutation.size() == from.size(), "a permutation of another rank");
  Shape to(from.size());
  std::vector<AffineIndex> index(from.size());
  std::vector<bool> used(from.size(), false);
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    const std::size_t d = at(permutation[i]);
    INGOT_CHECK(d < from.size() && !used[d], "not a permutation");
    used[d] = true;
    to[i] = from[d];
    index[d] = AffineIndex::of_axis(static_cast<int>(i));
  }
  return view(value, std::move(to), std::move(index));
}

ValueId GraphBuilder::expand(ValueId value, Shape shape) {
  const Shape& from = this->shape(value);
  if (from == shape) return value;
  INGOT_CHECK(from.size() <= shape.size(), "an expansion to a lower rank");
  const std::size_t added = shape.size() - from.size();
  std::vector<AffineIndex> index;
  for (std::size_t d = 0; d < from.size(); ++d) {
    INGOT_CHECK(from[d] == 1 || from[d] == shape[added + d], "an expansion that does not fit");
    index.push_back(from[d] == 1 ? AffineIndex::constant(0)
                                 : AffineIndex::of_axis(static_cast<int>(added + d)));
  }
  return view(value, std::move(shape), std::move(index));
}

ValueId GraphBuilder::slice(ValueId value, std::span<const std::int64_t> starts,
                            std::span<const std::int64_t> steps, Shape shape) {
  const std::size_t rank = this->shape(value).size();
  INGOT_CHECK(starts.size() == rank && steps.size() == rank && shape.size() == rank,
              "a slice of another rank");
  std::vector<AffineIndex> index;
  for (std::size_t d = 0; d < rank; ++d) {
    INGOT_CHECK(steps[d] != 0, "a slice with a step of 0");
    index.push_back(AffineIndex::of_axis(static_cast<int>(d), steps[d], starts[d]));
  }
  return view(value, std::move(shape), std::move(index));
}

ValueId GraphBuilder::pad(ValueId value, std::span<const std::int64_t> before,
                          std::span<const std::int64_t> after, Scalar fill) {
  Shape to = shape(value);
  INGOT_CHECK(before.size() == to.size() && after.size() == to.size(), "a padding of another rank");
  std::vector<AffineIndex> index;
  for (std::size_t d = 0; d < to.size(); ++d) {
    to[d] += before[d] + after[d];
    INGOT_CHECK(to[d] >= 0, "a padding that crops more than there is");
    index.push_back(AffineIndex::of_axis(static_cast<int>(d), 1, -before[d]));
  }
  return view(value, std::move(to), std::move(index), fill);
}

ValueId GraphBuilder::windows(ValueId value, const Window& window, Scalar fill) {
  const Shape& from = shape(value);
  const std::size_t sliding = window.extents.size();
  INGOT_CHECK(sliding <= from.size() && window.strides.size() == sliding &&
                  window.dilations.size() == sliding && window.pads_before.size() == sliding &&
                  window.outputs.size() == sliding,
              "a window of another rank");
  const std::size_t leading = from.size() - sliding;
  Shape to(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(leading));
  to.insert(to.end(), window.outputs.begin(), window.outputs.end());
  to.insert(to.end(), window.extents.begin(), window.extents.end());
  std::vector<AffineIndex> index = identity_index(leading);
  for (std::size_t j = 0; j < sliding; ++j) {
    index.push_back(AffineIndex::of_axis(static_cast<int>(leading + j), window.strides[j],
                                         -window.pads_before[j]));
    index.back().add(static_cast<int>(leading + sliding + j), window.dilations[j]);
  }
  return view(value, std::move(to), std::move(index), fill);
}

ValueId GraphBuilder::concat(std::span<const ValueId> values, int axis) {
  INGOT_CHECK(!values.empty(), "a concatenation of nothing");
  Shape to = shape(values[0]);
  INGOT_CHECK(axis >= 0 && at(axis) < to.size(), "a concatenation without axis");
  to[at(axis)] = 0;
  std::vector<ValueId> inputs;
  for (const ValueId value : values) {
    Shape rest = shape(value);
    INGOT_CHECK(rest.size() == to.size() && dtype(value) == dtype(values[0]),
                "a concatenation of different ranks or element types");
    const std::int64_t extent = rest[at(axis)];
    rest[at(axis)] = to[at(axis)];
    INGOT_CHECK(rest == to, "a concatenation of shapes that do not fit");
    to[at(axis)] += extent;
    if (extent != 0) inputs.push_back(value);
  }
  if (inputs.empty()) return values[0];
  if (inputs.size() == 1) return inputs[0];
  return fold_or_append(node(ConcatOp{axis}, dtype(values[0]), std::move(to), std::move(inputs)));
}

}  // namespace ingot
