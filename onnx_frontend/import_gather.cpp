// Reading elements by computed indices.
//
// Known indices are checked now: one out of range is an error of the model. Indices that are known
// only at run time stay checked there (docs/ir/graph.md): a negative one counts from the end, one
// still outside is clamped and reported by the frame.
#include <fmt/format.h>

#include <algorithm>

#include "onnx_frontend/importers.h"

namespace ingot {
namespace {

using enum ScalarOp;

std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

// Whether all indices are known and inside; fails if a known one is outside.
Result<bool> proved(const NodeImport& node, ValueId index, std::int64_t extent) {
  if (element_count(node.shape(index)) == 0) return true;
  const std::optional<Tensor> known = node.builder.known(index);
  if (!known) return false;
  for (std::int64_t i = 0; i < element_count(known->shape); ++i) {
    const std::int64_t value = known->at(i).as_int();
    if (value < -extent || value >= extent) {
      return node.malformed(fmt::format("index {} is outside 0 to {}", value, extent - 1));
    }
  }
  return true;
}

// Negative indices made positive. One that is outside 0..extent-1 stays outside.
ValueId wrapped(GraphBuilder& b, ValueId index, std::int64_t extent) {
  const ValueId zero = b.splat(Scalar::zero(b.dtype(index)), {});
  const ValueId size = b.splat(Scalar::of_int(b.dtype(index), extent), {});
  return b.select(b.map(Lt, index, zero), b.add(index, size), index);
}

ValueId is_inside(GraphBuilder& b, ValueId index, std::int64_t extent) {
  const ValueId zero = b.splat(Scalar::zero(b.dtype(index)), {});
  const ValueId size = b.splat(Scalar::of_int(b.dtype(index), extent), {});
  return b.map(And, b.map(Le, zero, index), b.map(Lt, index, size));
}

}  // namespace

Result<void> import_gather(NodeImport& node) {
  const std::int64_t along = node.attributes.integer("axis", 0);
  INGOT_ASSIGN(const ValueId data, node.input(0));
  INGOT_ASSIGN(const ValueId index, node.input(1, Types::Index));
  INGOT_RETURN_IF_ERROR(node.at_most(2));
  INGOT_ASSIGN(const int axis, node.axis(along, node.rank(data)));
  const Shape& from = node.shape(data);
  const Shape& chosen = node.shape(index);
  Shape shape(from.begin(), from.begin() + axis);
  shape.insert(shape.end(), chosen.begin(), chosen.end());
  shape.insert(shape.end(), from.begin() + axis + 1, from.end());
  INGOT_RETURN_IF_ERROR(node.checked_shape(shape));
  const std::int64_t extent = from[at(axis)];
  if (extent == 0 && element_count(shape) != 0) return node.malformed("there is nothing to gather");
  INGOT_RETURN_IF_ERROR(proved(node, index, extent));
  return node.set_output(node.builder.gather(data, index, axis));
}

namespace {

// Row-major positions in `shape` of the element whose coordinate along `axis` is replaced by
// `index` (of shape `chosen`). Positions of indices that are out of range are outside the data.
ValueId replace_coordinate(GraphBuilder& b, const Shape& shape, int axis, ValueId index,
                           const Shape& chosen) {
  const std::vector<std::int64_t> strides = row_major_strides(shape);
  const ValueId wide = b.cast(index, DType::I64);
  const ValueId place = wrapped(b, wide, shape[at(axis)]);
  const auto number = [&](std::int64_t v) { return b.splat(Scalar::of_int(DType::I64, v), {}); };
  ValueId position = b.mul(place, number(strides[at(axis)]));
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    if (d == axis || chosen[at(d)] == 0) continue;
    Shape line(shape.size(), 1);
    line[at(d)] = chosen[at(d)];
    const ValueId along = b.mul(b.iota(DType::I64, line, d), number(strides[at(d)]));
    position = b.add(position, along);
  }
  return b.select(is_inside(b, place, shape[at(axis)]), position, number(element_count(shape)));
}

}  // namespace

Result<void> import_gather_elements(NodeImport& node) {
  const std::int64_t along = node.attributes.integer("axis", 0);
  INGOT_ASSIGN(const ValueId data, node.input(0));
  INGOT_ASSIGN(const ValueId index, node.input(1, Types::Index));
  INGOT_ASSIGN(const int axis, node.axis(along, node.rank(data)));
  const Shape shape = node.shape(data);
  const Shape chosen = node.shape(index);
  if (chosen.size() != shape.size()) return node.malformed("data and indices differ in rank");
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    if (d != axis && chosen[at(d)] > shape[at(d)]) {
      return node.malformed(
          fmt::format("indices {} do not fit the data {}", shape_text(chosen), shape_text(shape)));
    }
  }
  GraphBuilder& b = node.builder;
  if (element_count(chosen) == 0) {
    return node.set_output(b.splat(Scalar::zero(node.dtype(data)), chosen));
  }
  if (shape[at(axis)] == 0) return node.malformed("there is nothing to gather");
  INGOT_ASSIGN(const bool in_range, proved(node, index, shape[at(axis)]));
  const ValueId position = replace_coordinate(b, shape, axis, index, chosen);
  const ValueId flat = b.reshape(data, {element_count(shape)});
  return node.set_output(b.gather(flat, position, 0, in_range));
}

// The last dimension of the indices names coordinates of data, after common batch dimensions.
Result<void> import_gather_nd(NodeImport& node) {
  const std::int64_t batch = node.opset >= 12 ? node.attributes.integer("batch_dims", 0) : 0;
  INGOT_ASSIGN(const ValueId data, node.input(0));
  INGOT_ASSIGN(const ValueId index, node.input(1, Types::Index));
  const Shape shape = node.shape(data);
  const Shape chosen = node.shape(index);
  if (chosen.empty() || shape.empty()) return node.malformed("data and indices need a dimension");
  const auto batches = static_cast<std::size_t>(std::clamp<std::int64_t>(batch, 0, 64));
  const auto depth = static_cast<std::size_t>(std::clamp<std::int64_t>(chosen.back(), 0, 64));
  if (batch < 0 || batches >= chosen.size() || depth < 1 || batches + depth > shape.size() ||
      !std::equal(chosen.begin(), chosen.begin() + batch, shape.begin())) {
    return node.malformed(
        fmt::format("indices {} do not fit the data {}", shape_text(chosen), shape_text(shape)));
  }
  GraphBuilder& b = node.builder;
  const auto number = [&](std::int64_t v) { return b.splat(Scalar::of_int(DType::I64, v), {}); };
  const Shape places(chosen.begin(), chosen.end() - 1);
  const Shape leading(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(batches + depth));
  const Shape trailing(shape.begin() + static_cast<std::ptrdiff_t>(batches + depth), shape.end());
  Shape result = places;
  result.insert(result.end(), trailing.begin(), trailing.end());
  INGOT_RETURN_IF_ERROR(node.checked_shape(result));
  if (element_count(result) == 0) {
    return node.set_output(b.splat(Scalar::zero(node.dtype(data)), result));
  }
  const std::vector<std::int64_t> strides = row_major_strides(leading);
  ValueId position = number(0);
  std::optional<ValueId> inside;
  bool all_proved = true;
  for (std::size_t k = 0; k < depth; ++k) {
    std::vector<std::int64_t> starts(chosen.size(), 0);
    const std::vector<std::int64_t> steps(chosen.size(), 1);
    starts.back() = static_cast<std::int64_t>(k);
    Shape one = chosen;
    one.back() = 1;
    const ValueId column = b.reshape(b.slice(index, starts, steps, one), places);
    const std::int64_t extent = leading[batches + k];
    if (extent == 0) return node.malformed("there is nothing to gather");
    INGOT_ASSIGN(const bool known, proved(node, column, extent));
    all_proved = all_proved && known;
    const ValueId place = wrapped(b, b.cast(column, DType::I64), extent);
    const ValueId good = is_inside(b, place, extent);
    inside = inside ? b.map(And, *inside, good) : good;
    position = b.add(position, b.mul(place, number(strides[batches + k])));
  }
  for (std::size_t d = 0; d < batches; ++d) {
    Shape line(places.size(), 1);
    line[d] = places[d];
    const ValueId along = b.iota(DType::I64, line, static_cast<int>(d));
    position = b.add(position, b.mul(along, number(strides[d])));
  }
  position = b.select(*inside, position, number(element_count(leading)));
  Shape flat = {element_count(leading)};
  flat.insert(flat.end(), trailing.begin(), trailing.end());
  return node.set_output(b.gather(b.reshape(data, flat), position, 0, all_proved));
}

Result<void> import_one_hot(NodeImport& node) {
  const std::int64_t along = node.attributes.integer("axis", -1);
  INGOT_ASSIGN(const ValueId index, node.input(0, Types::Numbers));
  INGOT_ASSIGN(const std::vector<double> depths, node.known_numbers(1));
  INGOT_ASSIGN(const ValueId values, node.input(2));
  if (depths.size() != 1 || !(depths[0] >= 0) || depths[0] > 1 << 28) {
    return node.malformed("depth must be one size");
  }
  if (node.shape(values) != Shape{2}) return node.malformed("two values are needed");
  INGOT_ASSIGN(const int axis, node.axis(along, node.rank(index) + 1));
  GraphBuilder& b = node.builder;
  const auto depth = static_cast<std::int64_t>(depths[0]);
  Shape spread = node.shape(index);
  spread.insert(spread.begin() + axis, 1);
  Shape line(spread.size(), 1);
  line[at(axis)] = depth;
  INGOT_RETURN_IF_ERROR(node.broadcast(spread, line));
  const ValueId wide = b.reshape(b.cast(index, DType::I64), spread);
  const ValueId on = b.map(Eq, wrapped(b, wide, depth), b.iota(DType::I64, line, axis));
  const std::int64_t step[] = {1};
  const std::int64_t first[] = {0}, second[] = {1};
  const ValueId off_value = b.reshape(b.slice(values, first, step, {1}), {});
  const ValueId on_value = b.reshape(b.slice(values, second, step, {1}), {});
  return node.set_output(b.select(on, on_value, off_value));
}

// Each sequence is reversed up to its own length.
Result<void> import_reverse_sequence(NodeImport& node) {
  const std::int64_t batch = node.attributes.integer("batch_axis", 1);
  const std::int64_t time = node.attributes.integer("time_axis", 0);
  INGOT_ASSIGN(const ValueId x, node.input(0));
  INGOT_ASSIGN(const ValueId lengths, node.input(1, Types::Index));
  if (node.rank(x) < 2) return node.malformed("the input needs 2 dimensions or more");
  if (batch + time != 1 || (batch != 0 && batch != 1)) {
    return node.malformed("time_axis and batch_axis must be 0 and 1");
  }
  const Shape shape = node.shape(x);
  const std::int64_t steps = shape[static_cast<std::size_t>(time)];
  const std::int64_t count = shape[static_cast<std::size_t>(batch)];
  if (node.shape(lengths) != Shape{count}) return node.malformed("one length is needed per batch");
  GraphBuilder& b = node.builder;
  // source = t < length ? length - 1 - t : t
  const ValueId length =
      b.reshape(b.cast(lengths, DType::I64), batch == 0 ? Shape{count, 1} : Shape{1, count});
  const ValueId t =
      b.iota(DType::I64, batch == 0 ? Shape{1, steps} : Shape{steps, 1}, static_cast<int>(time));
  const ValueId one = node.ints({1}, {});
  const ValueId source = b.select(b.map(Lt, t, length), b.sub(b.sub(length, one), t), t);
  // A length beyond the sequence gives a place outside, which the run reports.
  Shape leading = {shape[0], shape[1]};
  const ValueId line =
      b.iota(DType::I64, batch == 0 ? Shape{count, 1} : Shape{1, count}, static_cast<int>(batch));
  const std::int64_t time_stride = time == 0 ? shape[1] : 1;
  const std::int64_t batch_stride = time == 0 ? 1 : shape[1];
  const ValueId position = b.add(b.mul(source, node.ints({time_stride}, {})),
                                 b.mul(line, node.ints({batch_stride}, {})));
  const ValueId safe =
      b.select(is_inside(b, source, steps), position, node.ints({element_count(leading)}, {}));
  Shape flat = {element_count(leading)};
  flat.insert(flat.end(), shape.begin() + 2, shape.end());
  if (element_count(shape) == 0) return node.set_output(x);
  return node.set_output(b.gather(b.reshape(x, flat), safe, 0, false));
}

}  // namespace ingot
