// Quantized operators: 8 and 16 bit integers that stand for scale * (value - zero point).
#include <fmt/format.h>

#include "onnx_frontend/import_graph.h"
#include "onnx_frontend/importers.h"
#include "onnx_frontend/spatial_window.h"

namespace ingot {
namespace {

using enum ScalarOp;

bool is_narrow_integer(DType dtype) { return is_integer(dtype) && size_bytes(dtype) <= 2; }

double lowest(DType dtype) {
  if (!is_signed(dtype)) return 0;
  return size_bytes(dtype) == 1 ? -128 : -32768;
}
double highest(DType dtype) {
  const double span = size_bytes(dtype) == 1 ? 255 : 65535;
  return span + lowest(dtype);
}

// A scale or zero point beside a value: one number, or one for each place along `axis`.
Result<ValueId> along_axis(const NodeImport& node, ValueId parameter, const Shape& shape,
                           std::int64_t axis) {
  if (element_count(node.shape(parameter)) == 1 && node.rank(parameter) <= 1) {
    return node.builder.reshape(parameter, {});
  }
  INGOT_ASSIGN(const int d, node.axis(axis, shape.size()));
  const std::int64_t extent = shape[static_cast<std::size_t>(d)];
  if (node.shape(parameter) != Shape{extent}) {
    return node.malformed(fmt::format("a scale or zero point of shape {} does not fit {}",
                                      shape_text(node.shape(parameter)), shape_text(shape)));
  }
  Shape line(shape.size() - static_cast<std::size_t>(d), 1);
  line[0] = extent;
  return node.builder.reshape(parameter, line);
}

// saturate(round(x) + zero), x in f32 and `zero` of the result's type.
ValueId rounded(GraphBuilder& b, ValueId x, std::optional<ValueId> zero, DType dtype) {
  ValueId y = b.map(Round, x);
  if (zero) y = b.add(y, b.cast(*zero, DType::F32));
  y = b.min(b.max(y, b.like(y, lowest(dtype))), b.like(y, highest(dtype)));
  return b.cast(y, dtype);
}

// Value minus zero point in i32.
ValueId centred(GraphBuilder& b, ValueId x, std::optional<ValueId> zero) {
  const ValueId wide = b.cast(x, DType::I32);
  return zero ? b.sub(wide, b.cast(*zero, DType::I32)) : wide;
}

struct Parameters {
  ValueId scale;
  std::optional<ValueId> zero;
};

// Scale and zero point of a value of this shape.
Result<Parameters> parameters(const NodeImport& node, std::size_t scale_input,
                              std::size_t zero_input, const Shape& shape, std::int64_t axis) {
  Parameters p;
  INGOT_ASSIGN(const ValueId scale, node.input(scale_input, Types::Floats));
  INGOT_ASSIGN(p.scale, along_axis(node, scale, shape, axis));
  INGOT_ASSIGN(const std::optional<ValueId> zero, node.optional_input(zero_input, Types::Integers));
  if (zero) {
    INGOT_ASSIGN(p.zero, along_axis(node, *zero, shape, axis));
  }
  return p;
}

Result<std::int64_t> read_axis(NodeImport& node) {
  const std::int64_t axis = node.opset >= 13 ? node.attributes.integer("axis", 1) : 1;
  if (node.opset >= 19) node.attributes.ignore({"saturate"});  // of 8-bit floats
  if (node.opset >= 21 && node.attributes.integer("block_size", 0) != 0) {
    return node.unsupported_attribute("block_size is not supported", "quantize per axis");
  }
  return axis;
}

}  // namespace

Result<void> import_quantize_linear(NodeImport& node) {
  INGOT_ASSIGN(const std::int64_t axis, read_axis(node));
  const std::int64_t code = node.opset >= 21 ? node.attributes.integer("output_dtype", 0) : 0;
  const std::int64_t precision = node.opset >= 23 ? node.attributes.integer("precision", 0) : 0;
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Numbers));
  INGOT_RETURN_IF_ERROR(node.at_most(3));
  INGOT_ASSIGN(const Parameters p, parameters(node, 1, 2, node.shape(x), axis));
  if (precision != 0 && precision != 1) {
    return node.unsupported_attribute("precision must be float32");
  }
  DType dtype = p.zero ? node.dtype(*p.zero) : DType::U8;
  if (code != 0) {
    const std::optional<DType> named =
        code > 0 && code < 64 ? dtype_from_onnx(static_cast<int>(code)) : std::nullopt;
    if (!named) return node.unsupported_attribute(fmt::format("output_dtype {}", code));
    if (p.zero && *named != dtype)
      return node.malformed("output_dtype differs from the zero point");
    dtype = *named;
  }
  if (!is_narrow_integer(dtype))
    return node.unsupported("only 8 and 16 bit integers are supported");
  GraphBuilder& b = node.builder;
  const ValueId scaled = b.div(b.cast(x, DType::F32), b.cast(p.scale, DType::F32));
  return node.set_output(rounded(b, scaled, p.zero, dtype));
}

Result<void> import_dequantize_linear(NodeImport& node) {
  INGOT_ASSIGN(const std::int64_t axis, read_axis(node));
  const std::int64_t code = node.opset >= 23 ? node.attributes.integer("output_dtype", 0) : 0;
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Integers));
  INGOT_RETURN_IF_ERROR(node.at_most(3));
  INGOT_ASSIGN(const Parameters p, parameters(node, 1, 2, node.shape(x), axis));
  if (p.zero) INGOT_RETURN_IF_ERROR(node.same_type(x, *p.zero));
  if (!is_narrow_integer(node.dtype(x)) && node.dtype(x) != DType::I32) {
    return node.unsupported("only 8, 16 and 32 bit integers are supported");
  }
  DType dtype = node.dtype(p.scale);
  if (code != 0) {
    const std::optional<DType> named =
        code > 0 && code < 64 ? dtype_from_onnx(static_cast<int>(code)) : std::nullopt;
    if (!named || !is_float(*named)) {
      return node.unsupported_attribute(fmt::format("output_dtype {}", code));
    }
    dtype = *named;
  }
  GraphBuilder& b = node.builder;
  const DType compute = dtype == DType::F64 ? DType::F64 : DType::F32;
  const ValueId value = b.cast(centred(b, x, p.zero), compute);
  return node.set_output(b.cast(b.mul(value, b.cast(p.scale, compute)), dtype));
}

Result<void> import_dynamic_quantize_linear(NodeImport& node) {
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  if (node.dtype(x) != DType::F32) return node.malformed("the input must be float32");
  GraphBuilder& b = node.builder;
  std::vector<int> axes;
  for (std::size_t d = 0; d < node.rank(x); ++d) axes.push_back(static_cast<int>(d));
  const ValueId zero = b.like(x, 0);
  const ValueId top = b.max(b.reduce(ReduceOp::Max, x, axes, false), zero);
  const ValueId bottom = b.min(b.reduce(ReduceOp::Min, x, axes, false), zero);
  const ValueId scale = b.div(b.sub(top, bottom), b.like(x, 255));
  // All zeros: any scale gives zeros.
  const ValueId usable = b.select(b.map(Eq, scale, zero), b.like(x, 1), scale);
  const ValueId point = rounded(b, b.div(b.map(Neg, bottom), usable), std::nullopt, DType::U8);
  node.set_output(0, rounded(b, b.div(x, usable), point, DType::U8));
  node.set_output(1, scale);
  return node.set_output(2, point);
}

namespace {

// Sums of products, rescaled to the result's quantization.
Result<void> requantized(NodeImport& node, ValueId sum, ValueId a_scale, ValueId b_scale,
                         std::size_t scale_input, std::size_t zero_input) {
  INGOT_ASSIGN(const ValueId scale, node.input(scale_input, Types::Floats));
  INGOT_ASSIGN(const ValueId zero, node.input(zero_input, Types::Integers));
  if (element_count(node.shape(scale)) != 1 || element_count(node.shape(zero)) != 1) {
    return node.unsupported("only one scale and zero point of the result is supported");
  }
  if (!is_narrow_integer(node.dtype(zero)) || size_bytes(node.dtype(zero)) != 1) {
    return node.unsupported("only 8 bit integers are supported");
  }
  GraphBuilder& b = node.builder;
  const ValueId product = b.mul(b.cast(a_scale, DType::F32), b.cast(b_scale, DType::F32));
  const ValueId factor = b.div(product, b.cast(b.reshape(scale, {}), DType::F32));
  const ValueId value = b.mul(b.cast(sum, DType::F32), factor);
  return node.set_output(rounded(b, value, b.reshape(zero, {}), node.dtype(zero)));
}

}  // namespace

Result<void> import_qlinear_matmul(NodeImport& node) {
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Integers));
  INGOT_ASSIGN(const ValueId y, node.input(3, Types::Integers));
  INGOT_RETURN_IF_ERROR(node.at_most(8));
  if (size_bytes(node.dtype(x)) != 1 || size_bytes(node.dtype(y)) != 1) {
    return node.malformed("operands must be int8 or uint8");
  }
  if (node.rank(x) < 2 || node.rank(y) < 2) return node.malformed("operands must be matrices");
  // Rows of A and columns of B may have scales of their own.
  INGOT_ASSIGN(const Parameters a, parameters(node, 1, 2, node.shape(x), -2));
  INGOT_ASSIGN(const Parameters c, parameters(node, 4, 5, node.shape(y), -1));
  const Shape& left = node.shape(x);
  const Shape& right = node.shape(y);
  const Shape left_batch(left.begin(), left.end() - 2);
  const Shape right_batch(right.begin(), right.end() - 2);
  if (left.back() != right[right.size() - 2] || !broadcast_shapes(left_batch, right_batch)) {
    return node.malformed(
        fmt::format("matrices {} and {} do not fit", shape_text(left), shape_text(right)));
  }
  INGOT_RETURN_IF_ERROR(node.broadcast(left_batch, right_batch));
  GraphBuilder& b = node.builder;
  const ValueId sum = b.matmul(centred(b, x, a.zero), centred(b, y, c.zero));
  return requantized(node, sum, a.scale, c.scale, 6, 7);
}

// x, its scale and zero point; weights, theirs; the result's; bias in units of both scales.
Result<void> import_qlinear_conv(NodeImport& node) {
  const std::int64_t groups = node.attributes.integer("group", 1);
  WindowAttributes attributes = read_window(node, true, false);
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Integers));
  INGOT_ASSIGN(const ValueId w, node.input(3, Types::Integers));
  INGOT_ASSIGN(const std::optional<ValueId> bias, node.optional_input(8, Types::Integers));
  INGOT_RETURN_IF_ERROR(node.at_most(9));
  if (size_bytes(node.dtype(x)) != 1 || size_bytes(node.dtype(w)) != 1) {
    return node.malformed("operands must be int8 or uint8");
  }
  const Shape x_shape = node.shape(x);
  const Shape w_shape = node.shape(w);
  if (x_shape.size() < 3 || w_shape.size() != x_shape.size()) {
    return node.malformed("input and weights need the same rank of 3 or more");
  }
  if (groups < 1 || w_shape[0] % groups != 0 || w_shape[1] == 0 || x_shape[1] % groups != 0 ||
      x_shape[1] / groups != w_shape[1]) {
    return node.malformed("the weights do not fit the input");
  }
  const Shape kernel(w_shape.begin() + 2, w_shape.end());
  if (attributes.kernel.empty()) attributes.kernel = kernel;
  if (attributes.kernel != kernel) return node.malformed("kernel_shape differs from the weights");
  INGOT_ASSIGN(SpatialWindow window, resolve_window(node, std::move(attributes),
                                                    Shape(x_shape.begin() + 2, x_shape.end())));
  INGOT_ASSIGN(const Parameters a, parameters(node, 1, 2, x_shape, 0));
  if (node.rank(a.scale) != 0 || (a.zero && node.rank(*a.zero) != 0)) {
    return node.malformed("the input needs one scale and zero point");
  }
  INGOT_ASSIGN(const Parameters c, parameters(node, 4, 5, w_shape, 0));
  GraphBuilder& b = node.builder;
  GraphBuilder::Convolution convolution{window.strides, window.dilations, window.pads_before,
                                        window.outputs, groups};
  ValueId sum = b.convolution(centred(b, x, a.zero), centred(b, w, c.zero), convolution);
  Shape per_channel(x_shape.size() - 1, 1);
  per_channel[0] = w_shape[0];
  if (bias) {
    if (node.shape(*bias) != Shape{w_shape[0]} || node.dtype(*bias) != DType::I32) {
      return node.malformed("the bias does not fit");
    }
    sum = b.add(sum, b.reshape(*bias, per_channel));
  }
  const ValueId w_scale = node.rank(c.scale) == 0 ? c.scale : b.reshape(c.scale, per_channel);
  return requantized(node, sum, a.scale, w_scale, 6, 7);
}

}  // namespace ingot
