// Normalizations and softmax. Statistics of half precision values are computed in f32.
#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "onnx_frontend/importers.h"

namespace ingot {
namespace {

using enum ScalarOp;

// One number per channel (dimension 1), to be broadcast over a value of this rank.
Result<ValueId> per_channel(const NodeImport& node, ValueId x, std::size_t input, DType dtype) {
  INGOT_ASSIGN(const ValueId values, node.input(input, Types::Floats));
  const std::int64_t channels = node.shape(x)[1];
  if (node.shape(values) != Shape{channels}) {
    return node.malformed(fmt::format("input {} must have shape [{}]", input, channels));
  }
  Shape shape(node.rank(x) - 1, 1);
  shape[0] = channels;
  return node.builder.cast(node.builder.reshape(values, shape), dtype);
}

DType statistics_type(DType dtype) { return dtype == DType::F64 ? DType::F64 : DType::F32; }

std::int64_t count_of(const Shape& shape, const std::vector<int>& axes) {
  std::int64_t count = 1;
  for (const int axis : axes) count *= shape[static_cast<std::size_t>(axis)];
  return count;
}

ValueId mean_of(GraphBuilder& b, ValueId x, const std::vector<int>& axes) {
  const auto count = static_cast<double>(count_of(b.shape(x), axes));
  return b.div(b.reduce(ReduceOp::Sum, x, axes, true), b.like(x, count));
}

struct Normalized {
  ValueId value, mean, inverse_deviation;
};

// (x - mean) / sqrt(variance + epsilon), with the variance of the centred values.
Normalized normalized(GraphBuilder& b, ValueId x, const std::vector<int>& axes, double epsilon) {
  Normalized n;
  n.mean = mean_of(b, x, axes);
  const ValueId centred = b.sub(x, n.mean);
  const ValueId variance = mean_of(b, b.mul(centred, centred), axes);
  const ValueId deviation = b.map(Sqrt, b.add(variance, b.like(x, epsilon)));
  n.inverse_deviation = b.div(b.like(x, 1), deviation);
  n.value = b.mul(centred, n.inverse_deviation);
  return n;
}

std::vector<int> axes_from(std::size_t first, std::size_t rank) {
  std::vector<int> axes(rank > first ? rank - first : 0);
  std::iota(axes.begin(), axes.end(), static_cast<int>(first));
  return axes;
}

// x * s + t with s and t computed from the stored statistics; they are constants as a rule.
Result<void> batch_normalization(NodeImport& node, double epsilon) {
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  INGOT_RETURN_IF_ERROR(node.at_most(5));
  if (node.rank(x) < 2) return node.malformed("the input needs 2 dimensions or more");
  const DType dtype = statistics_type(node.dtype(x));
  INGOT_ASSIGN(const ValueId scale, per_channel(node, x, 1, dtype));
  INGOT_ASSIGN(const ValueId bias, per_channel(node, x, 2, dtype));
  INGOT_ASSIGN(const ValueId mean, per_channel(node, x, 3, dtype));
  INGOT_ASSIGN(const ValueId variance, per_channel(node, x, 4, dtype));
  for (std::size_t i = 1; i < node.output_count(); ++i) {
    if (node.wants_output(i)) {
      return node.unsupported("statistics of the batch are computed only in training",
                              "export the model for inference");
    }
  }
  GraphBuilder& b = node.builder;
  const ValueId deviation = b.map(Sqrt, b.add(variance, b.like(variance, epsilon)));
  const ValueId s = b.div(scale, deviation);
  const ValueId t = b.sub(bias, b.mul(mean, s));
  const ValueId y = b.add(b.mul(b.cast(x, dtype), s), t);
  return node.set_output(b.cast(y, node.dtype(x)));
}

}  // namespace

// Opsets 1 and 6 say by `is_test` whether the stored statistics are used.
Result<void> import_batch_normalization_1(NodeImport& node) {
  const double epsilon = node.attributes.number("epsilon", 1e-5F);
  const bool is_test = node.attributes.flag("is_test", false);
  const bool spatial = node.attributes.flag("spatial", true);
  node.attributes.ignore({"momentum", "consumed_inputs"});
  if (!is_test) {
    return node.unsupported("batch normalization in training mode",
                            "export the model for inference");
  }
  if (!spatial) return node.unsupported_attribute("spatial=0 is not supported");
  return batch_normalization(node, epsilon);
}

Result<void> import_batch_normalization_7(NodeImport& node) {
  const double epsilon = node.attributes.number("epsilon", 1e-5F);
  const bool spatial = node.opset >= 9 || node.attributes.flag("spatial", true);
  node.attributes.ignore({"momentum"});
  if (!spatial) return node.unsupported_attribute("spatial=0 is not supported");
  return batch_normalization(node, epsilon);
}

Result<void> import_batch_normalization_14(NodeImport& node) {
  const double epsilon = node.attributes.number("epsilon", 1e-5F);
  const bool training = node.attributes.flag("training_mode", false);
  node.attributes.ignore({"momentum"});
  if (training) {
    return node.unsupported("batch normalization in training mode",
                            "export the model for inference");
  }
  return batch_normalization(node, epsilon);
}

Result<void> import_instance_normalization(NodeImport& node) {
  const double epsilon = node.attributes.number("epsilon", 1e-5F);
  node.attributes.ignore({"consumed_inputs"});
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  if (node.rank(x) < 3) return node.malformed("the input needs 3 dimensions or more");
  const DType dtype = statistics_type(node.dtype(x));
  INGOT_ASSIGN(const ValueId scale, per_channel(node, x, 1, dtype));
  INGOT_ASSIGN(const ValueId bias, per_channel(node, x, 2, dtype));
  GraphBuilder& b = node.builder;
  const Normalized n = normalized(b, b.cast(x, dtype), axes_from(2, node.rank(x)), epsilon);
  return node.set_output(b.cast(b.add(b.mul(n.value, scale), bias), node.dtype(x)));
}

Result<void> import_layer_normalization(NodeImport& node) {
  const std::int64_t first = node.attributes.integer("axis", -1);
  const double epsilon = node.attributes.number("epsilon", 1e-5F);
  const std::int64_t stash = node.attributes.integer("stash_type", 1);
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  INGOT_ASSIGN(const ValueId scale, node.input(1, Types::Floats));
  INGOT_ASSIGN(const std::optional<ValueId> bias, node.optional_input(2, Types::Floats));
  INGOT_RETURN_IF_ERROR(node.at_most(3));
  INGOT_ASSIGN(const int axis, node.axis(first, node.rank(x)));
  if (stash != 1) return node.unsupported_attribute("stash_type must be 1 (float32)");
  for (const ValueId each : {scale, bias.value_or(scale)}) {
    INGOT_RETURN_IF_ERROR(node.same_type(x, each));
    INGOT_ASSIGN(const Shape shape, node.broadcast(node.shape(x), node.shape(each)));
    if (shape != node.shape(x)) return node.malformed("scale or bias does not fit the input");
  }
  GraphBuilder& b = node.builder;
  // Mean and deviation are float32 whatever the input is, as stash_type says.
  const DType dtype = statistics_type(node.dtype(x));
  const std::vector<int> axes = axes_from(static_cast<std::size_t>(axis), node.rank(x));
  const Normalized n = normalized(b, b.cast(x, dtype), axes, epsilon);
  // The normalized value is rounded to the input's type before scale and bias.
  ValueId y = b.mul(b.cast(n.value, node.dtype(x)), scale);
  if (bias) y = b.add(y, *bias);
  node.set_output(0, y);
  node.set_output(1, b.cast(n.mean, DType::F32));
  return node.set_output(2, b.cast(n.inverse_deviation, DType::F32));
}

Result<void> import_rms_normalization(NodeImport& node) {
  const std::int64_t first = node.attributes.integer("axis", -1);
  const double epsilon = node.attributes.number("epsilon", 1e-5F);
  const std::int64_t stash = node.attributes.integer("stash_type", 1);
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  INGOT_ASSIGN(const ValueId scale, node.input(1, Types::Floats));
  INGOT_RETURN_IF_ERROR(node.at_most(2));
  INGOT_ASSIGN(const int axis, node.axis(first, node.rank(x)));
  if (stash != 1) return node.unsupported_attribute("stash_type must be 1 (float32)");
  INGOT_ASSIGN(const Shape shape, node.broadcast(node.shape(x), node.shape(scale)));
  if (shape != node.shape(x)) return node.malformed("the scale does not fit the input");
  GraphBuilder& b = node.builder;
  const DType dtype = statistics_type(node.dtype(x));
  const std::vector<int> axes = axes_from(static_cast<std::size_t>(axis), node.rank(x));
  const ValueId wide = b.cast(x, dtype);
  const ValueId square = mean_of(b, b.mul(wide, wide), axes);
  const ValueId root = b.map(Sqrt, b.add(square, b.like(wide, epsilon)));
  const ValueId value = b.cast(b.div(wide, root), node.dtype(scale));
  return node.set_output(b.mul(value, scale));
}

namespace {

Result<void> group_normalization(NodeImport& node, bool per_group) {
  const double epsilon = node.attributes.number("epsilon", 1e-5F);
  const std::int64_t groups = node.attributes.required_integer("num_groups");
  if (node.opset >= 21 && node.attributes.integer("stash_type", 1) != 1) {
    return node.unsupported_attribute("stash_type must be 1 (float32)");
  }
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  INGOT_ASSIGN(const ValueId scale, node.input(1, Types::Floats));
  INGOT_ASSIGN(const ValueId bias, node.input(2, Types::Floats));
  const Shape shape = node.shape(x);
  if (shape.size() < 3) return node.malformed("the input needs 3 dimensions or more");
  if (groups < 1 || shape[1] % groups != 0) return node.malformed("num_groups does not fit");
  const std::int64_t parameters = per_group ? groups : shape[1];
  if (node.shape(scale) != Shape{parameters} || node.shape(bias) != Shape{parameters}) {
    return node.malformed(fmt::format("scale and bias must have shape [{}]", parameters));
  }
  GraphBuilder& b = node.builder;
  const DType dtype = statistics_type(node.dtype(x));
  Shape apart = {shape[0], groups, shape[1] / groups};
  apart.insert(apart.end(), shape.begin() + 2, shape.end());
  const ValueId wide = b.reshape(b.cast(x, dtype), apart);
  const Normalized n = normalized(b, wide, axes_from(2, apart.size()), epsilon);
  Shape spread(apart.size() - 1, 1);
  spread[0] = groups;
  spread[1] = per_group ? 1 : shape[1] / groups;
  const ValueId s = b.reshape(b.cast(scale, dtype), spread);
  const ValueId t = b.reshape(b.cast(bias, dtype), spread);
  const ValueId y = b.reshape(b.add(b.mul(n.value, s), t), shape);
  return node.set_output(b.cast(y, node.dtype(x)));
}

}  // namespace

Result<void> import_group_normalization_18(NodeImport& node) {
  return group_normalization(node, true);
}
Result<void> import_group_normalization(NodeImport& node) {
  return group_normalization(node, false);
}

Result<void> import_mean_variance_normalization(NodeImport& node) {
  constexpr double epsilon = 1e-9;
  const std::vector<std::int64_t> given =
      node.attributes.optional_integers("axes").value_or(std::vector<std::int64_t>{0, 2, 3});
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  INGOT_ASSIGN(const std::vector<int> axes, node.axes(given, node.rank(x)));
  GraphBuilder& b = node.builder;
  return node.set_output(in_f32(b, x, [&](ValueId v) {
    const ValueId centred = b.sub(v, mean_of(b, v, axes));
    const ValueId variance = mean_of(b, b.mul(centred, centred), axes);
    return b.div(centred, b.add(b.map(Sqrt, variance), b.like(v, epsilon)));
  }));
}

Result<void> import_lp_normalization(NodeImport& node) {
  const std::int64_t along = node.attributes.integer("axis", -1);
  const std::int64_t p = node.attributes.integer("p", 2);
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  INGOT_ASSIGN(const int axis, node.axis(along, node.rank(x)));
  if (p != 1 && p != 2) return node.malformed("p must be 1 or 2");
  GraphBuilder& b = node.builder;
  return node.set_output(in_f32(b, x, [&](ValueId v) {
    const ValueId sum = b.reduce(ReduceOp::Sum, p == 1 ? b.map(Abs, v) : b.mul(v, v), {axis}, true);
    const ValueId norm = p == 1 ? sum : b.map(Sqrt, sum);
    // A line of zeros stays zero.
    const ValueId zero = b.like(v, 0);
    return b.select(b.map(Eq, norm, zero), zero, b.div(v, norm));
  }));
}

// x / (bias + alpha / size * sum of squares over neighbouring channels) ^ beta
Result<void> import_lrn(NodeImport& node) {
  const double alpha = node.attributes.number("alpha", 1e-4F);
  const double beta = node.attributes.number("beta", 0.75F);
  const double bias = node.attributes.number("bias", 1.0F);
  const std::int64_t size = node.attributes.required_integer("size");
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  if (node.rank(x) < 2) return node.malformed("the input needs 2 dimensions or more");
  if (size < 1 || size > 1 << 20) return node.malformed("size does not fit");
  GraphBuilder& b = node.builder;
  const Shape shape = node.shape(x);
  const auto rank = static_cast<int>(shape.size());
  return node.set_output(in_f32(b, x, [&](ValueId v) {
    Shape around = shape;
    around.push_back(size);
    std::vector<AffineIndex> index;
    for (int d = 0; d < rank; ++d) index.push_back(AffineIndex::of_axis(d));
    index[1].offset = -((size - 1) / 2);
    index[1].add(rank, 1);
    const ValueId squares = b.view(b.mul(v, v), around, index, Scalar::zero(b.dtype(v)));
    const ValueId sum = b.reduce(ReduceOp::Sum, squares, {rank}, false);
    const ValueId base =
        b.add(b.like(v, bias), b.mul(b.like(v, alpha / static_cast<double>(size)), sum));
    if (beta == 0.75) {
      const ValueId root = b.map(Sqrt, base);
      return b.div(v, b.mul(root, b.map(Sqrt, root)));
    }
    return b.div(v, b.map(Exp, b.mul(b.like(v, beta), b.map(Log, base))));
  }));
}

// --- softmax

namespace {

enum class SoftmaxKind { Plain, Log, Hard };

// x - max - log(sum(exp(x - max))) does not lose small probabilities.
ValueId log_softmax(GraphBuilder& b, ValueId x, int axis) {
  const ValueId shifted = b.sub(x, b.reduce(ReduceOp::Max, x, {axis}, true));
  const ValueId sum = b.reduce(ReduceOp::Sum, b.map(Exp, shifted), {axis}, true);
  return b.sub(shifted, b.map(Log, sum));
}

// 1 at the first largest element, 0 elsewhere.
ValueId hardmax(GraphBuilder& b, ValueId x, int axis) {
  Shape line(b.shape(x).size(), 1);
  const std::int64_t extent = b.shape(x)[static_cast<std::size_t>(axis)];
  line[static_cast<std::size_t>(axis)] = extent;
  const ValueId place = b.iota(DType::I32, line, axis);
  const ValueId top = b.map(Eq, x, b.reduce(ReduceOp::Max, x, {axis}, true));
  const ValueId chosen = b.select(top, place, b.splat(Scalar::of_int(DType::I32, extent), {}));
  const ValueId first = b.reduce(ReduceOp::Min, chosen, {axis}, true);
  return b.cast(b.map(Eq, place, first), b.dtype(x));
}

ValueId softmax_of(GraphBuilder& b, SoftmaxKind kind, ValueId x, int axis) {
  return in_f32(b, x, [&](ValueId v) {
    switch (kind) {
      case SoftmaxKind::Plain: return b.softmax(v, axis);
      case SoftmaxKind::Log: return log_softmax(b, v, axis);
      case SoftmaxKind::Hard: return hardmax(b, v, axis);
    }
    return v;
  });
}

// Up to opset 12 the dimensions from `axis` on are taken together.
Result<void> flattened(NodeImport& node, SoftmaxKind kind) {
  const std::int64_t given = node.attributes.integer("axis", 1);
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  const Shape shape = node.shape(x);
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (given < -rank || given > rank)
    return node.malformed(fmt::format("axis {} is outside", given));
  const auto split = shape.begin() + (given < 0 ? given + rank : given);
  GraphBuilder& b = node.builder;
  const Shape flat = {element_count(Shape(shape.begin(), split)),
                      element_count(Shape(split, shape.end()))};
  const ValueId y = softmax_of(b, kind, b.reshape(x, flat), 1);
  return node.set_output(b.reshape(y, shape));
}

Result<void> along_axis(NodeImport& node, SoftmaxKind kind) {
  const std::int64_t given = node.attributes.integer("axis", -1);
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  INGOT_ASSIGN(const int axis, node.axis(given, node.rank(x)));
  return node.set_output(softmax_of(node.builder, kind, x, axis));
}

}  // namespace

Result<void> import_softmax_flattened(NodeImport& node) {
  return flattened(node, SoftmaxKind::Plain);
}
Result<void> import_softmax(NodeImport& node) { return along_axis(node, SoftmaxKind::Plain); }
Result<void> import_log_softmax_flattened(NodeImport& node) {
  return flattened(node, SoftmaxKind::Log);
}
Result<void> import_log_softmax(NodeImport& node) { return along_axis(node, SoftmaxKind::Log); }
Result<void> import_hardmax_flattened(NodeImport& node) {
  return flattened(node, SoftmaxKind::Hard);
}
Result<void> import_hardmax(NodeImport& node) { return along_axis(node, SoftmaxKind::Hard); }

}  // namespace ingot
