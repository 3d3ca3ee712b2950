// Convolution and transposed convolution.
#include <fmt/format.h>

#include <algorithm>

#include "onnx_frontend/importers.h"
#include "onnx_frontend/spatial_window.h"
#include "onnx_frontend/wide_contraction.h"

namespace ingot {
namespace {

Shape spatial_part(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

// Adds one number per channel (dimension 1).
Result<ValueId> add_bias(NodeImport& node, ValueId y, std::size_t input, Types types) {
  INGOT_ASSIGN(const std::optional<ValueId> bias, node.optional_input(input, types));
  if (!bias) return y;
  INGOT_RETURN_IF_ERROR(node.same_type(y, *bias));
  const std::int64_t channels = node.shape(y)[1];
  if (node.shape(*bias) != Shape{channels}) {
    return node.malformed(fmt::format("the bias must have shape [{}]", channels));
  }
  Shape per_channel(node.rank(y) - 1, 1);
  per_channel[0] = channels;
  return node.builder.add(y, node.builder.reshape(*bias, per_channel));
}

struct Operands {
  ValueId x, w;
};

Result<Operands> operands(NodeImport& node, std::size_t x_index, std::size_t w_index, Types types) {
  INGOT_ASSIGN(const ValueId x, node.input(x_index, types));
  INGOT_ASSIGN(const ValueId w, node.input(w_index, types));
  if (node.rank(x) < 3 || node.rank(w) != node.rank(x)) {
    return node.malformed(fmt::format("input {} and weights {} need the same rank of 3 or more",
                                      shape_text(node.shape(x)), shape_text(node.shape(w))));
  }
  return Operands{x, w};
}

// kernel_shape may be left out; if it is there it must be that of the weights.
Result<void> take_kernel(const NodeImport& node, WindowAttributes& window, ValueId w) {
  const Shape kernel = spatial_part(node.shape(w));
  if (window.kernel.empty()) window.kernel = kernel;
  if (window.kernel == kernel) return {};
  return node.malformed(fmt::format("kernel_shape is {}, the weights have {}",
                                    shape_text(window.kernel), shape_text(kernel)));
}

Result<ValueId> convolve(NodeImport& node, Operands o, WindowAttributes attributes,
                         std::int64_t groups) {
  const Shape& x = node.shape(o.x);
  const Shape& w = node.shape(o.w);
  if (groups < 1 || w[0] % groups != 0 || w[1] == 0 || x[1] / groups != w[1] ||
      x[1] % groups != 0) {
    return node.malformed(fmt::format("weights {} in {} groups do not fit the input {}",
                                      shape_text(w), groups, shape_text(x)));
  }
  INGOT_RETURN_IF_ERROR(take_kernel(node, attributes, o.w));
  INGOT_ASSIGN(SpatialWindow window, resolve_window(node, std::move(attributes), spatial_part(x)));
  Shape result = {x[0], w[0]};
  result.insert(result.end(), window.outputs.begin(), window.outputs.end());
  INGOT_RETURN_IF_ERROR(node.checked_shape(result));
  GraphBuilder::Convolution convolution;
  convolution.strides = std::move(window.strides);
  convolution.dilations = std::move(window.dilations);
  convolution.pads_before = std::move(window.pads_before);
  convolution.outputs = std::move(window.outputs);
  convolution.groups = groups;
  return node.builder.convolution(o.x, o.w, convolution);
}

}  // namespace

Result<void> import_conv(NodeImport& node) {
  const std::int64_t groups = node.attributes.integer("group", 1);
  WindowAttributes attributes = read_window(node, true, false);
  INGOT_ASSIGN(const Operands o, operands(node, 0, 1, Types::Floats));
  INGOT_RETURN_IF_ERROR(node.at_most(3));
  INGOT_RETURN_IF_ERROR(node.same_type(o.x, o.w));
  INGOT_ASSIGN(ValueId y, convolve(node, o, std::move(attributes), groups));
  y = sum_in_f32(node.builder, y);
  INGOT_ASSIGN(y, add_bias(node, y, 2, Types::Floats));
  return node.set_output(y);
}

namespace {

// x[n, g*Cg+c, (y + pad - k*dilation) / stride] * w[g*Cg+c, o, k], summed over c and k where the
// division is exact: each input element spreads its kernel over the output.
ValueId spread(GraphBuilder& b, Operands o, const SpatialWindow& window, std::int64_t groups) {
  const Shape x = b.shape(o.x);
  const Shape w = b.shape(o.w);
  const std::int64_t group_inputs = x[1] / groups;
  const auto rank = static_cast<int>(window.outputs.size());
  // Axes: n, g, o, spatial...; c, kernel...
  ContractOp op;
  op.extents = {x[0], groups, w[1]};
  op.extents.insert(op.extents.end(), window.outputs.begin(), window.outputs.end());
  op.output_axes = 3 + rank;
  op.extents.push_back(group_inputs);
  op.extents.insert(op.extents.end(), window.kernel.begin(), window.kernel.end());
  const int c = op.output_axes;

  op.output = {AffineIndex::of_axis(0), AffineIndex::of_axis(1, w[1]).add(2, 1)};
  const AffineIndex channel = AffineIndex::of_axis(1, group_inputs).add(c, 1);
  std::vector<AffineIndex> image = {AffineIndex::of_axis(0), channel};
  std::vector<AffineIndex> weights = {channel, AffineIndex::of_axis(2)};
  for (int d = 0; d < rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    op.output.push_back(AffineIndex::of_axis(3 + d));
    AffineIndex place = AffineIndex::of_axis(3 + d, 1, window.pads_before[i]);
    place.add(c + 1 + d, -window.dilations[i]);
    place.divisor = window.strides[i];
    image.push_back(place);
    weights.push_back(AffineIndex::of_axis(c + 1 + d));
  }
  op.operands = {std::move(image), std::move(weights)};
  const ValueId inputs[] = {o.x, o.w};
  return b.contract(b.dtype(o.x), inputs, std::move(op));
}

// Whether the taps of an output element follow from its phase, y mod stride, by one affine rule.
bool has_phases(const SpatialWindow& window, std::size_t d) {
  const std::int64_t stride = window.strides[d];
  return window.dilations[d] == 1 && window.outputs[d] % stride == 0 &&
         (window.pads_before[d] % stride == 0 || stride == 2);
}

// The same for one group, without divisions. With y = s z + j the taps of output y are k = r + s q,
// where r is (j + pad) mod s, and read input z + (j + pad - r) / s - q. Both are affine in z, j and
// q if s divides the padding (r = j), or if s is 2 (r = 1 - j). Weights are padded to whole turns.
ValueId spread_by_phases(GraphBuilder& b, Operands o, const SpatialWindow& window) {
  const Shape x = b.shape(o.x);
  const Shape w = b.shape(o.w);
  const auto rank = static_cast<int>(window.outputs.size());
  // Axes: n, o, (z, j)...; c, q...
  ContractOp op;
  op.extents = {x[0], w[1]};
  op.output = {AffineIndex::of_axis(0), AffineIndex::of_axis(1)};
  std::vector<std::int64_t> none(w.size(), 0), missing(w.size(), 0);
  for (int d = 0; d < rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    const std::int64_t stride = window.strides[i];
    op.extents.push_back(window.outputs[i] / stride);
    op.extents.push_back(stride);
    op.output.push_back(AffineIndex::of_axis(2 + 2 * d, stride).add(3 + 2 * d, 1));
    missing[2 + i] = (stride - window.kernel[i] % stride) % stride;
  }
  op.output_axes = 2 + 2 * rank;
  const int c = op.output_axes;
  op.extents.push_back(x[1]);
  std::vector<AffineIndex> image = {AffineIndex::of_axis(0), AffineIndex::of_axis(c)};
  std::vector<AffineIndex> weights = {AffineIndex::of_axis(c), AffineIndex::of_axis(1)};
  for (int d = 0; d < rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    const std::int64_t stride = window.strides[i];
    const std::int64_t pad = window.pads_before[i];
    const int z = 2 + 2 * d, j = z + 1, q = c + 1 + d;
    op.extents.push_back((window.kernel[i] + missing[2 + i]) / stride);
    AffineIndex place = AffineIndex::of_axis(z, 1, pad / stride);
    AffineIndex tap;
    if (pad % stride == 0) {
      tap = AffineIndex::of_axis(j);
    } else {
      place.add(j, 1);
      tap = AffineIndex::of_axis(j, -1, 1);
    }
    image.push_back(place.add(q, -1));
    weights.push_back(tap.add(q, stride));
  }
  op.operands = {std::move(image), std::move(weights)};
  const ValueId inputs[] = {o.x, b.pad(o.w, none, missing, Scalar::zero(b.dtype(o.w)))};
  return b.contract(b.dtype(o.x), inputs, std::move(op));
}

bool has_phases(const SpatialWindow& window) {
  for (std::size_t d = 0; d < window.outputs.size(); ++d) {
    if (!has_phases(window, d)) return false;
  }
  return true;
}

struct TransposedAttributes {
  std::vector<std::int64_t> output_padding, output_shape;
};

// Outputs from the padding, or the padding from the outputs.
Result<void> transposed_outputs(const NodeImport& node, const TransposedAttributes& given,
                                const std::string& auto_pad, const Shape& spatial,
                                SpatialWindow& window) {
  const std::size_t rank = spatial.size();
  if (!given.output_shape.empty() && given.output_shape.size() != rank) {
    return node.malformed("output_shape must name the spatial dimensions");
  }
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t extra = given.output_padding.empty() ? 0 : given.output_padding[d];
    const std::int64_t full = (spatial[d] - 1) * window.strides[d] + extra + window.reach(d);
    const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
    if (given.output_shape.empty() && !same) {
      window.outputs.push_back(full - window.pads_before[d] - window.pads_after[d]);
      continue;
    }
    const std::int64_t wanted =
        given.output_shape.empty() ? spatial[d] * window.strides[d] : given.output_shape[d];
    const std::int64_t total = std::max<std::int64_t>(0, full - wanted);
    window.pads_before[d] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    window.pads_after[d] = total - window.pads_before[d];
    window.outputs.push_back(wanted);
  }
  return {};
}

}  // namespace

Result<void> import_conv_transpose(NodeImport& node) {
  const std::int64_t groups = node.attributes.integer("group", 1);
  WindowAttributes attributes = read_window(node, true, false);
  TransposedAttributes given;
  given.output_padding = node.attributes.integers("output_padding");
  given.output_shape = node.attributes.integers("output_shape");
  INGOT_ASSIGN(const Operands o, operands(node, 0, 1, Types::Floats));
  INGOT_RETURN_IF_ERROR(node.at_most(3));
  INGOT_RETURN_IF_ERROR(node.same_type(o.x, o.w));
  const Shape x = node.shape(o.x);
  const Shape w = node.shape(o.w);
  const std::size_t rank = x.size() - 2;
  if (groups < 1 || groups > x[1] || x[1] % groups != 0 || w[0] != x[1]) {
    return node.malformed(fmt::format("weights {} in {} groups do not fit the input {}",
                                      shape_text(w), groups, shape_text(x)));
  }
  if (!given.output_padding.empty()) {
    const bool fits = given.output_padding.size() == rank &&
                      std::ranges::all_of(given.output_padding,
                                          [](std::int64_t p) { return 0 <= p && p < 1 << 24; });
    if (!fits) return node.malformed("output_padding does not fit");
  }
  INGOT_RETURN_IF_ERROR(take_kernel(node, attributes, o.w));
  const std::string auto_pad = attributes.auto_pad;
  if (auto_pad != "NOTSET") attributes.pads.clear();
  INGOT_ASSIGN(SpatialWindow window, check_window(node, std::move(attributes), rank));
  INGOT_RETURN_IF_ERROR(transposed_outputs(node, given, auto_pad, spatial_part(x), window));
  Shape result = {x[0], w[1] * groups};
  result.insert(result.end(), window.outputs.begin(), window.outputs.end());
  INGOT_RETURN_IF_ERROR(node.checked_shape(result));
  ValueId y = groups == 1 && has_phases(window) ? spread_by_phases(node.builder, o, window)
                                                : spread(node.builder, o, window, groups);
  y = sum_in_f32(node.builder, y);
  INGOT_ASSIGN(y, add_bias(node, y, 2, Types::Floats));
  return node.set_output(y);
}

// Integers minus their zero points, multiplied and summed in i32.
Result<void> import_conv_integer(NodeImport& node) {
  const std::int64_t groups = node.attributes.integer("group", 1);
  WindowAttributes attributes = read_window(node, true, false);
  INGOT_ASSIGN(Operands o, operands(node, 0, 1, Types::Integers));
  INGOT_RETURN_IF_ERROR(node.at_most(4));
  GraphBuilder& b = node.builder;
  ValueId* both[] = {&o.x, &o.w};
  for (std::size_t i = 0; i < 2; ++i) {
    ValueId& value = *both[i];
    if (size_bytes(node.dtype(value)) != 1) return node.malformed("operands must be 8 bits wide");
    INGOT_ASSIGN(const std::optional<ValueId> zero, node.optional_input(i + 2, Types::Integers));
    if (zero) INGOT_RETURN_IF_ERROR(node.same_type(value, *zero));
    value = b.cast(value, DType::I32);
    if (!zero) continue;
    // The padding must stay 0 after the subtraction, so it is done before the convolution.
    ValueId point = b.cast(*zero, DType::I32);
    const std::int64_t count = element_count(node.shape(point));
    Shape shape;
    if (count != 1) {
      if (i == 0 || node.shape(point) != Shape{node.shape(o.w)[0]}) {
        return node.malformed("a zero point does not fit");
      }
      shape.assign(node.rank(o.w), 1);
      shape[0] = count;
    }
    value = b.sub(value, b.reshape(point, shape));
  }
  INGOT_ASSIGN(const ValueId y, convolve(node, o, std::move(attributes), groups));
  return node.set_output(y);
}

}  // namespace ingot
