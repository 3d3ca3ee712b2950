// Operators that move elements without computing: reshapes, permutations, slices, joins.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "onnx_frontend/importers.h"

namespace ingot {
namespace {

std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

using Ints = std::vector<std::int64_t>;

// A list that is an attribute in older opsets and an input in newer ones.
Result<Ints> attribute_or_input(NodeImport& node, std::string_view attribute, std::size_t input,
                                bool as_input) {
  if (!as_input) return node.attributes.integers(attribute);
  return node.known_ints(input);
}

}  // namespace

Result<void> import_identity(NodeImport& node) {
  INGOT_ASSIGN(const ValueId x, node.input(0));
  INGOT_RETURN_IF_ERROR(node.at_most(1));
  return node.set_output(x);
}

// --- reshape

namespace {

Result<void> reshape(NodeImport& node, ValueId x, Ints wanted, bool zero_is_zero) {
  const Shape from = node.shape(x);
  std::optional<std::size_t> open;
  std::int64_t known = 1;
  for (std::size_t d = 0; d < wanted.size(); ++d) {
    if (wanted[d] == 0 && !zero_is_zero) {
      if (d >= from.size()) return node.malformed("the shape copies a dimension that is not there");
      wanted[d] = from[d];
    }
    if (wanted[d] == -1) {
      if (open) return node.malformed("the shape leaves two dimensions open");
      open = d;
      continue;
    }
    if (wanted[d] < -1) return node.malformed(fmt::format("the shape holds {}", wanted[d]));
    if (__builtin_mul_overflow(known, wanted[d], &known)) {
      return node.malformed("the shape has too many elements");
    }
  }
  const std::int64_t count = element_count(from);
  const auto misfit = [&] {
    return node.malformed(
        fmt::format("{} does not reshape to {}", shape_text(from), shape_text(wanted)));
  };
  if (open) {
    if (known == 0 || count % known != 0) return misfit();
    wanted[*open] = count / known;
  } else if (known != count) {
    return misfit();
  }
  INGOT_ASSIGN(const Shape shape, node.checked_shape(wanted));
  return node.set_output(node.builder.reshape(x, shape));
}

}  // namespace

Result<void> import_reshape_1(NodeImport& node) {
  const Ints shape = node.attributes.integers("shape");
  node.attributes.ignore({"consumed_inputs"});
  INGOT_ASSIGN(const ValueId x, node.input(0));
  INGOT_RETURN_IF_ERROR(node.at_most(1));
  return reshape(node, x, shape, false);
}

Result<void> import_reshape(NodeImport& node) {
  const bool allow_zero = node.opset >= 14 && node.attributes.flag("allowzero", false);
  INGOT_ASSIGN(const ValueId x, node.input(0));
  INGOT_RETURN_IF_ERROR(node.at_most(2));
  INGOT_ASSIGN(const Ints shape, node.known_ints(1));
  return reshape(node, x, shape, allow_zero);
}

Result<void> import_flatten(NodeImport& node) {
  const std::int64_t axis = node.attributes.integer("axis", 1);
  INGOT_ASSIGN(const ValueId x, node.input(0));
  const Shape& shape = node.shape(x);
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (axis < -rank || axis > rank) return node.malformed(fmt::format("axis {} is outside", axis));
  const auto split = shape.begin() + (axis < 0 ? axis + rank : axis);
  const Shape flat = {element_count(Shape(shape.begin(), split)),
                      element_count(Shape(split, shape.end()))};
  return node.set_output(node.builder.reshape(x, flat));
}

Result<void> import_squeeze(NodeImport& node) {
  const bool as_input = node.opset >= 13;
  Ints given = as_input ? Ints() : node.attributes.integers("axes");
  INGOT_ASSIGN(const ValueId x, node.input(0));
  INGOT_RETURN_IF_ERROR(node.at_most(as_input ? 2 : 1));
  if (as_input && node.has_input(1)) {
    INGOT_ASSIGN(given, node.known_ints(1));
  }
  INGOT_ASSIGN(const std::vector<int> axes, node.axes(given, node.rank(x)));
  Shape shape;
  for (int d = 0; d < static_cast<int>(node.rank(x)); ++d) {
    const std::int64_t extent = node.shape(x)[at(d)];
    const bool named = std::ranges::binary_search(axes, d);
    if (named && extent != 1) {
      return node.malformed(fmt::format("dimension {} is {}, not 1", d, extent));
    }
    if (!named && (extent != 1 || !axes.empty())) shape.push_back(extent);
  }
  return node.set_output(node.builder.reshape(x, shape));
}

Result<void> import_unsqueeze(NodeImport& node) {
  INGOT_ASSIGN(const Ints given, attribute_or_input(node, "axes", 1, node.opset >= 13));
  INGOT_ASSIGN(const ValueId x, node.input(0));
  const std::size_t rank = node.rank(x) + given.size();
  INGOT_ASSIGN(const std::vector<int> axes, node.axes(given, rank));
  Shape shape;
  std::size_t next = 0;
  for (int d = 0; d < static_cast<int>(rank); ++d) {
    shape.push_back(std::ranges::binary_search(axes, d) ? 1 : node.shape(x)[next++]);
  }
  return node.set_output(node.builder.reshape(x, shape));
}

Result<void> import_transpose(NodeImport& node) {
  const std::optional<Ints> given = node.attributes.optional_integers("perm");
  INGOT_ASSIGN(const ValueId x, node.input(0));
  const std::size_t rank = node.rank(x);
  std::vector<int> permutation;
  if (!given) {
    for (std::size_t d = rank; d-- > 0;) permutation.push_back(static_cast<int>(d));
  } else {
    INGOT_ASSIGN(const std::vector<int> sorted, node.axes(*given, rank));
    if (sorted.size() != rank) return node.malformed("perm is not a permutation");
    for (const std::int64_t axis : *given) {
      permutation.push_back(
          static_cast<int>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis));
    }
  }
  return node.set_output(node.builder.transpose(x, permutation));
}

// --- joining and cutting

Result<void> import_concat(NodeImport& node) {
  // Opset 1 joins along axis 1 if nothing is said.
  const std::int64_t along = node.opset < 4 ? node.attributes.integer("axis", 1)
                                            : node.attributes.required_integer("axis");
  INGOT_ASSIGN(const std::vector<ValueId> values, node.all_inputs(1, Types::Any));
  INGOT_ASSIGN(const int axis, node.axis(along, node.rank(values[0])));
  Shape joined = node.shape(values[0]);
  joined[at(axis)] = 0;
  for (const ValueId value : values) {
    Shape rest = node.shape(value);
    if (rest.size() != joined.size()) return node.malformed("inputs have different ranks");
    const std::int64_t extent = rest[at(axis)];
    rest[at(axis)] = joined[at(axis)];
    if (rest != joined) {
      return node.malformed(fmt::format("shapes {} and {} do not join along axis {}",
                                        shape_text(node.shape(values[0])),
                                        shape_text(node.shape(value)), axis));
    }
    joined[at(axis)] += extent;
  }
  INGOT_RETURN_IF_ERROR(node.checked_shape(joined));
  return node.set_output(node.builder.concat(values, axis));
}

namespace {

ValueId cut(GraphBuilder& b, ValueId x, int axis, std::int64_t start, std::int64_t extent) {
  Shape shape = b.shape(x);
  Ints starts(shape.size(), 0);
  const Ints steps(shape.size(), 1);
  starts[at(axis)] = start;
  shape[at(axis)] = extent;
  return b.slice(x, starts, steps, shape);
}

Result<void> split(NodeImport& node, ValueId x, int axis, const Ints& sizes) {
  if (sizes.size() != node.output_count()) {
    return node.malformed(
        fmt::format("{} parts for {} outputs", sizes.size(), node.output_count()));
  }
  std::int64_t start = 0;
  for (const std::int64_t size : sizes) {
    if (size < 0 || size > node.shape(x)[at(axis)] - start) {
      return node.malformed("the parts do not fit the axis");
    }
    start += size;
  }
  if (start != node.shape(x)[at(axis)]) return node.malformed("the parts do not fill the axis");
  start = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    node.set_output(i, cut(node.builder, x, axis, start, sizes[i]));
    start += sizes[i];
  }
  return {};
}

// Equal parts; only opset 18 allows a smaller last one.
Result<Ints> equal_parts(const NodeImport& node, std::int64_t extent, bool last_smaller) {
  const auto parts = static_cast<std::int64_t>(node.output_count());
  if (parts == 0) return node.malformed("there are no outputs");
  if (extent % parts != 0 && !last_smaller) {
    return node.malformed(
        fmt::format("{} elements do not split into {} equal parts", extent, parts));
  }
  const std::int64_t size = (extent + parts - 1) / parts;
  Ints sizes;
  for (std::int64_t rest = extent; static_cast<std::int64_t>(sizes.size()) < parts;) {
    sizes.push_back(std::min(size, rest));
    rest -= sizes.back();
  }
  return sizes;
}

}  // namespace

Result<void> import_split(NodeImport& node) {
  const std::int64_t along = node.attributes.integer("axis", 0);
  const bool as_input = node.opset >= 13;
  Ints sizes = as_input ? Ints() : node.attributes.integers("split");
  const bool has_count = node.opset >= 18 && node.attributes.has("num_outputs");
  const std::int64_t count = has_count ? node.attributes.integer("num_outputs", 0) : 0;
  INGOT_ASSIGN(const ValueId x, node.input(0));
  INGOT_ASSIGN(const int axis, node.axis(along, node.rank(x)));
  INGOT_RETURN_IF_ERROR(node.at_most(2));
  // Opset 1 had an input of that name too.
  const bool has_sizes = node.has_input(1) && (as_input || node.opset < 2);
  if (has_sizes) {
    INGOT_ASSIGN(sizes, node.known_ints(1));
  }
  if (has_count && (has_sizes || count != static_cast<std::int64_t>(node.output_count()))) {
    return node.malformed("num_outputs does not fit the node");
  }
  if (sizes.empty() && !has_sizes) {
    INGOT_ASSIGN(sizes, equal_parts(node, node.shape(x)[at(axis)], has_count));
  }
  return split(node, x, axis, sizes);
}

// --- slice

namespace {

struct SliceList {
  Ints starts, ends, axes, steps;
};

Result<void> slice(NodeImport& node, ValueId x, SliceList list) {
  const std::size_t rank = node.rank(x);
  const std::size_t count = list.starts.size();
  if (list.axes.empty()) {
    for (std::size_t i = 0; i < count; ++i) list.axes.push_back(static_cast<std::int64_t>(i));
  }
  if (list.steps.empty()) list.steps.assign(count, 1);
  if (list.ends.size() != count || list.axes.size() != count || list.steps.size() != count) {
    return node.malformed("starts, ends, axes and steps have different lengths");
  }
  INGOT_RETURN_IF_ERROR(node.axes(list.axes, rank));
  Shape shape = node.shape(x);
  Ints starts(rank, 0);
  Ints steps(rank, 1);
  for (std::size_t i = 0; i < count; ++i) {
    INGOT_ASSIGN(const int axis, node.axis(list.axes[i], rank));
    const std::int64_t extent = shape[at(axis)];
    const std::int64_t step = list.steps[i];
    if (step == 0) return node.malformed("a step is 0");
    // As in Python: negative places count from the end, then both are clamped.
    const std::int64_t low = step < 0 ? -1 : 0;
    const std::int64_t high = step < 0 ? extent - 1 : extent;
    const auto place = [&](std::int64_t p) {
      return std::clamp(p < 0 ? p + extent : p, low, high);
    };
    const std::int64_t start = place(list.starts[i]);
    const std::int64_t end = place(list.ends[i]);
    const std::int64_t distance = step > 0 ? end - start : start - end;
    // The smallest step has no positive counterpart.
    const std::uint64_t stride = step > 0 ? static_cast<std::uint64_t>(step)
                                          : std::uint64_t{0} - static_cast<std::uint64_t>(step);
    const std::int64_t taken =
        distance <= 0
            ? 0
            : static_cast<std::int64_t>((static_cast<std::uint64_t>(distance) - 1) / stride) + 1;
    shape[at(axis)] = taken;
    starts[at(axis)] = taken == 0 ? 0 : start;
    steps[at(axis)] = taken <= 1 ? 1 : step;
  }
  return node.set_output(node.builder.slice(x, starts, steps, shape));
}

}  // namespace

Result<void> import_slice_1(NodeImport& node) {
  SliceList list;
  list.starts = node.attributes.integers("starts");
  list.ends = node.attributes.integers("ends");
  list.axes = node.attributes.integers("axes");
  INGOT_ASSIGN(const ValueId x, node.input(0));
  INGOT_RETURN_IF_ERROR(node.at_most(1));
  return slice(node, x, std::move(list));
}

Result<void> import_slice(NodeImport& node) {
  SliceList list;
  INGOT_ASSIGN(const ValueId x, node.input(0));
  INGOT_RETURN_IF_ERROR(node.at_most(5));
  INGOT_ASSIGN(list.starts, node.known_ints(1));
  INGOT_ASSIGN(list.ends, node.known_ints(2));
  if (node.has_input(3)) {
    INGOT_ASSIGN(list.axes, node.known_ints(3));
  }
  if (node.has_input(4)) {
    INGOT_ASSIGN(list.steps, node.known_ints(4));
  }
  return slice(node, x, std::move(list));
}

// --- repetition

Result<void> import_expand(NodeImport& node) {
  INGOT_ASSIGN(const ValueId x, node.input(0));
  INGOT_ASSIGN(const Ints wanted, node.known_ints(1));
  INGOT_RETURN_IF_ERROR(node.at_most(2));
  INGOT_ASSIGN(const Shape asked, node.checked_shape(wanted));
  INGOT_ASSIGN(const Shape shape, node.broadcast(node.shape(x), asked));
  return node.set_output(node.builder.expand(x, shape));
}

namespace {

// Each dimension becomes [times, extent], then one again.
Result<void> tile(NodeImport& node, ValueId x, const Ints& times) {
  if (times.size() != node.rank(x)) return node.malformed("one repeat is needed per dimension");
  Shape apart, repeated, result;
  for (std::size_t d = 0; d < times.size(); ++d) {
    const std::int64_t extent = node.shape(x)[d];
    if (times[d] < 0) return node.malformed("a repeat is negative");
    std::int64_t all = 0;
    if (__builtin_mul_overflow(times[d], extent, &all))
      return node.malformed("a repeat is too large");
    apart.insert(apart.end(), {1, extent});
    repeated.insert(repeated.end(), {times[d], extent});
    result.push_back(all);
  }
  INGOT_RETURN_IF_ERROR(node.checked_shape(repeated));
  INGOT_RETURN_IF_ERROR(node.checked_shape(result));
  GraphBuilder& b = node.builder;
  return node.set_output(b.reshape(b.expand(b.reshape(x, apart), repeated), result));
}

}  // namespace

Result<void> import_tile_1(NodeImport& node) {
  INGOT_ASSIGN(const ValueId x, node.input(0));
  INGOT_ASSIGN(const Ints times, node.known_ints(1));
  INGOT_ASSIGN(const Ints along, node.known_ints(2));
  if (times.size() != 1 || along.size() != 1)
    return node.malformed("tiles and axis are one number");
  INGOT_ASSIGN(const int axis, node.axis(along[0], node.rank(x)));
  Ints all(node.rank(x), 1);
  all[at(axis)] = times[0];
  return tile(node, x, all);
}

Result<void> import_tile(NodeImport& node) {
  INGOT_ASSIGN(const ValueId x, node.input(0));
  INGOT_ASSIGN(const Ints times, node.known_ints(1));
  INGOT_RETURN_IF_ERROR(node.at_most(2));
  return tile(node, x, times);
}

// --- blocks

Result<void> import_depth_to_space(NodeImport& node) {
  const std::int64_t block = node.attributes.required_integer("blocksize");
  const std::string mode =
      node.opset >= 11 ? node.attributes.choice("mode", {"DCR", "CRD"}) : std::string("DCR");
  INGOT_ASSIGN(const ValueId x, node.input(0));
  if (node.rank(x) != 4) return node.malformed("the input must have 4 dimensions");
  const Shape s = node.shape(x);
  if (block < 1 || block > (1 << 20) || s[1] % (block * block) != 0) {
    return node.malformed("blocksize does not fit the channels");
  }
  const std::int64_t channels = s[1] / (block * block);
  GraphBuilder& b = node.builder;
  const bool depth_first = mode == "DCR";
  const Shape apart = depth_first ? Shape{s[0], block, block, channels, s[2], s[3]}
                                  : Shape{s[0], channels, block, block, s[2], s[3]};
  const std::vector<int> order =
      depth_first ? std::vector<int>{0, 3, 4, 1, 5, 2} : std::vector<int>{0, 1, 4, 2, 5, 3};
  const ValueId blocks = b.transpose(b.reshape(x, apart), order);
  return node.set_output(b.reshape(blocks, {s[0], channels, s[2] * block, s[3] * block}));
}

Result<void> import_space_to_depth(NodeImport& node) {
  const std::int64_t block = node.attributes.required_integer("blocksize");
  INGOT_ASSIGN(const ValueId x, node.input(0));
  if (node.rank(x) != 4) return node.malformed("the input must have 4 dimensions");
  const Shape s = node.shape(x);
  if (block < 1 || block > (1 << 20) || s[2] % block != 0 || s[3] % block != 0) {
    return node.malformed("blocksize does not fit height and width");
  }
  GraphBuilder& b = node.builder;
  const Shape apart = {s[0], s[1], s[2] / block, block, s[3] / block, block};
  const std::vector<int> order = {0, 3, 5, 1, 2, 4};
  const ValueId blocks = b.transpose(b.reshape(x, apart), order);
  return node.set_output(
      b.reshape(blocks, {s[0], s[1] * block * block, s[2] / block, s[3] / block}));
}

// --- padding

namespace {

enum class PadMode { Constant, Reflect, Edge, Wrap };

PadMode read_pad_mode(NodeImport& node) {
  const std::string mode =
      node.opset >= 19 ? node.attributes.choice("mode", {"constant", "reflect", "edge", "wrap"})
                       : node.attributes.choice("mode", {"constant", "reflect", "edge"});
  if (mode == "reflect") return PadMode::Reflect;
  if (mode == "edge") return PadMode::Edge;
  return mode == "wrap" ? PadMode::Wrap : PadMode::Constant;
}

// Where the element at `place` (outside 0..extent-1) comes from.
std::int64_t source(PadMode mode, std::int64_t place, std::int64_t extent) {
  const auto modulo = [](std::int64_t a, std::int64_t b) { return ((a % b) + b) % b; };
  if (mode == PadMode::Edge) return std::clamp<std::int64_t>(place, 0, extent - 1);
  if (mode == PadMode::Wrap) return modulo(place, extent);
  if (extent == 1) return 0;
  const std::int64_t period = 2 * (extent - 1);
  const std::int64_t p = modulo(place, period);
  return p < extent ? p : period - p;
}

// One axis, by an index that is known now. Parts of equal step become views (GraphBuilder::gather).
ValueId pad_axis(NodeImport& node, ValueId x, int axis, PadMode mode, std::int64_t before,
                 std::int64_t after) {
  GraphBuilder& b = node.builder;
  const std::int64_t extent = b.shape(x)[at(axis)];
  const auto part = [&](std::int64_t from, std::int64_t to) {
    Ints index;
    for (std::int64_t place = from; place < to; ++place) {
      index.push_back(source(mode, place, extent));
    }
    const auto size = static_cast<std::int64_t>(index.size());
    return b.gather(x, node.ints(index, {size}), axis, true);
  };
  std::vector<ValueId> parts;
  if (before > 0) parts.push_back(part(-before, 0));
  const std::int64_t start = std::max<std::int64_t>(0, -before);
  const std::int64_t end = std::min(extent, extent + after);
  if (end > start) parts.push_back(cut(b, x, axis, start, end - start));
  if (after > 0) parts.push_back(part(extent, extent + after));
  if (parts.empty()) return cut(b, x, axis, 0, 0);
  return b.concat(parts, axis);
}

Result<void> pad(NodeImport& node, ValueId x, const Ints& before, const Ints& after, PadMode mode,
                 Scalar fill) {
  constexpr std::int64_t longest_pattern = 1 << 20;
  constexpr std::int64_t largest = std::int64_t{1} << 32;
  Shape shape = node.shape(x);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (std::max(std::abs(before[d] % (largest * 2)), std::abs(after[d] % (largest * 2))) >
            largest ||
        before[d] / (largest * 2) != 0 || after[d] / (largest * 2) != 0) {
      return node.unsupported("a padding is too large");
    }
    if (mode != PadMode::Constant && shape[d] == 0 && (before[d] > 0 || after[d] > 0)) {
      return node.malformed("an empty dimension cannot be continued");
    }
    if (mode != PadMode::Constant && std::max(before[d], after[d]) > longest_pattern) {
      return node.unsupported("a padding is too large");
    }
    shape[d] += before[d] + after[d];
    if (shape[d] < 0) return node.malformed("the padding crops more than there is");
    // Crops of one side that reach into the other side's padding have no settled meaning.
    const std::int64_t extent = node.shape(x)[d];
    if (mode != PadMode::Constant && (-before[d] > extent || -after[d] > extent)) {
      return node.unsupported("a padding crops more than there is");
    }
  }
  INGOT_RETURN_IF_ERROR(node.checked_shape(shape));
  if (mode == PadMode::Constant) {
    return node.set_output(node.builder.pad(x, before, after, fill));
  }
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    if (before[at(d)] != 0 || after[at(d)] != 0) {
      x = pad_axis(node, x, d, mode, before[at(d)], after[at(d)]);
    }
  }
  return node.set_output(x);
}

Result<void> pad_attributes(NodeImport& node, std::string_view name) {
  const PadMode mode = read_pad_mode(node);
  const Ints pads = node.attributes.integers(name);
  const double value = node.attributes.number("value", 0.0F);
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  const std::size_t rank = node.rank(x);
  if (pads.size() != 2 * rank) return node.malformed("two paddings are needed per dimension");
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(rank);
  return pad(node, x, Ints(pads.begin(), middle), Ints(middle, pads.end()), mode,
             Scalar::of_float(node.dtype(x), value));
}

}  // namespace

Result<void> import_pad_1(NodeImport& node) { return pad_attributes(node, "paddings"); }
Result<void> import_pad_2(NodeImport& node) { return pad_attributes(node, "pads"); }

Result<void> import_pad(NodeImport& node) {
  const PadMode mode = read_pad_mode(node);
  INGOT_ASSIGN(const ValueId x, node.input(0));
  INGOT_RETURN_IF_ERROR(node.at_most(node.opset >= 18 ? 4 : 3));
  INGOT_ASSIGN(const Ints pads, node.known_ints(1));
  const std::size_t rank = node.rank(x);
  INGOT_ASSIGN(const std::optional<ValueId> value, node.optional_input(2));
  if (value && (node.dtype(*value) != node.dtype(x) || element_count(node.shape(*value)) != 1)) {
    return node.malformed("the constant must be one element of the input's type");
  }
  const std::optional<Tensor> known = value ? node.builder.known(*value) : std::nullopt;
  const Scalar fill = known ? known->at(0) : Scalar::zero(node.dtype(x));
  Ints axes;
  for (std::size_t d = 0; d < rank; ++d) axes.push_back(static_cast<std::int64_t>(d));
  if (node.has_input(3)) {
    INGOT_ASSIGN(axes, node.known_ints(3));
  }
  INGOT_RETURN_IF_ERROR(node.axes(axes, rank));
  if (pads.size() != 2 * axes.size()) return node.malformed("two paddings are needed per axis");
  Ints before(rank, 0), after(rank, 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    INGOT_ASSIGN(const int axis, node.axis(axes[i], rank));
    before[at(axis)] = pads[i];
    after[at(axis)] = pads[i + axes.size()];
  }
  INGOT_RETURN_IF_ERROR(pad(node, x, before, after, mode, fill));
  if (!value || known || mode != PadMode::Constant) return {};
  // A constant of run time goes where no element of the input is.
  GraphBuilder& b = node.builder;
  const ValueId ones = b.splat(Scalar::of_int(DType::Bool, 1), node.shape(x));
  const ValueId inside = b.pad(ones, before, after, Scalar::zero(DType::Bool));
  return node.set_output(b.select(inside, node.outputs()[0], b.reshape(*value, {})));
}

// Crops or pads around the middle.
Result<void> import_center_crop_pad(NodeImport& node) {
  const std::optional<Ints> given = node.attributes.optional_integers("axes");
  INGOT_ASSIGN(const ValueId x, node.input(0));
  INGOT_ASSIGN(const Ints wanted, node.known_ints(1));
  const std::size_t rank = node.rank(x);
  Ints axes;
  for (std::size_t d = 0; d < rank; ++d) axes.push_back(static_cast<std::int64_t>(d));
  if (given) axes = *given;
  INGOT_RETURN_IF_ERROR(node.axes(axes, rank));
  INGOT_RETURN_IF_ERROR(node.checked_shape(wanted));
  if (axes.size() != wanted.size()) return node.malformed("one extent is needed per axis");
  Ints before(rank, 0), after(rank, 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    INGOT_ASSIGN(const int axis, node.axis(axes[i], rank));
    const std::int64_t change = wanted[i] - node.shape(x)[at(axis)];
    // What is left over when halving goes behind, for crops as for pads.
    const std::int64_t half = std::abs(change) / 2;
    before[at(axis)] = change < 0 ? -half : half;
    after[at(axis)] = change - before[at(axis)];
  }
  return pad(node, x, before, after, PadMode::Constant, Scalar::zero(node.dtype(x)));
}

}  // namespace ingot
