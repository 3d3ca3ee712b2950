// Values that do not come from data: constants, shapes, ranges, and conversions of type.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx_frontend/import_graph.h"
#include "onnx_frontend/importers.h"

namespace ingot {
namespace {

Result<ValueId> tensor_constant(NodeImport& node, const OnnxTensor& tensor) {
  Result<Tensor> value = to_tensor(tensor);
  if (!value) return std::unexpected(std::move(value).error());
  return node.builder.constant(*std::move(value));
}

template <typename Number>
std::vector<double> doubles(const std::vector<Number>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

Result<void> import_constant(NodeImport& node) {
  AttributeReader& a = node.attributes;
  INGOT_RETURN_IF_ERROR(node.at_most(0));
  if (node.node.attributes.size() != 1) return node.malformed("exactly one value is needed");
  if (const OnnxTensor* tensor = a.tensor("value")) {
    INGOT_ASSIGN(const ValueId value, tensor_constant(node, *tensor));
    return node.set_output(value);
  }
  if (node.opset >= 12) {
    if (a.has("value_float")) {
      return node.set_output(node.floats({a.number("value_float", 0)}, {}, DType::F32));
    }
    if (a.has("value_int")) return node.set_output(node.ints({a.integer("value_int", 0)}, {}));
    if (a.has("value_floats")) {
      const std::vector<double> values = doubles(a.numbers("value_floats"));
      return node.set_output(
          node.floats(values, {static_cast<std::int64_t>(values.size())}, DType::F32));
    }
    if (a.has("value_ints")) {
      const std::vector<std::int64_t> values = a.integers("value_ints");
      return node.set_output(node.ints(values, {static_cast<std::int64_t>(values.size())}));
    }
  }
  return node.unsupported_attribute(
      fmt::format("a constant given as '{}' is not supported", node.node.attributes[0].name));
}

Result<void> import_constant_of_shape(NodeImport& node) {
  const OnnxTensor* given = node.attributes.tensor("value");
  INGOT_ASSIGN(const std::vector<std::int64_t> wanted, node.known_ints(0));
  INGOT_ASSIGN(const Shape shape, node.checked_shape(wanted));
  Scalar value = Scalar::of_float(DType::F32, 0);
  if (given != nullptr) {
    Result<Tensor> tensor = to_tensor(*given);
    if (!tensor) return std::unexpected(std::move(tensor).error());
    if (element_count(tensor->shape) != 1) return node.malformed("value must be one element");
    value = tensor->at(0);
  }
  return node.set_output(node.builder.splat(value, shape));
}

Result<void> import_shape(NodeImport& node) {
  const bool has_range = node.opset >= 15;
  INGOT_ASSIGN(const ValueId x, node.input(0));
  const auto rank = static_cast<std::int64_t>(node.rank(x));
  const auto place = [&](std::int64_t p) {
    return std::clamp<std::int64_t>(p < 0 ? p + rank : p, 0, rank);
  };
  const std::int64_t start = place(has_range ? node.attributes.integer("start", 0) : 0);
  const std::int64_t end = place(has_range ? node.attributes.integer("end", rank) : rank);
  std::vector<std::int64_t> dims;
  for (std::int64_t d = start; d < end; ++d) {
    dims.push_back(node.shape(x)[static_cast<std::size_t>(d)]);
  }
  return node.set_output(node.ints(dims, {static_cast<std::int64_t>(dims.size())}));
}

Result<void> import_size(NodeImport& node) {
  INGOT_ASSIGN(const ValueId x, node.input(0));
  return node.set_output(node.ints({element_count(node.shape(x))}, {}));
}

namespace {

Result<void> range_of(NodeImport& node, DType dtype, const Tensor& start, const Tensor& limit,
                      const Tensor& delta) {
  constexpr double longest = 1 << 28;
  double count = 0;
  if (is_float(dtype)) {
    const double step = delta.at(0).as_double();
    count = std::ceil((limit.at(0).as_double() - start.at(0).as_double()) / step);
  } else {
    const std::int64_t step = delta.at(0).as_int();
    if (step == 0) return node.malformed("delta is 0");
    // In extended precision: the difference of two 64-bit numbers has 65 bits.
    count = static_cast<double>(std::ceil((static_cast<long double>(limit.at(0).as_int()) -
                                           static_cast<long double>(start.at(0).as_int())) /
                                          static_cast<long double>(step)));
  }
  if (!(std::abs(count) <= longest)) return node.malformed("the range has no usable length");
  const auto size = static_cast<std::int64_t>(std::max(0.0, count));
  // Half precision counts in f32 and is rounded once.
  GraphBuilder& b = node.builder;
  const bool narrow = dtype == DType::F16 || dtype == DType::BF16;
  const DType compute = narrow ? DType::F32 : dtype;
  const auto number = [&](const Tensor& tensor) {
    return b.cast(b.constant(Tensor::splat({}, tensor.at(0))), compute);
  };
  const ValueId index = b.cast(b.iota(DType::I64, {size}, 0), compute);
  const ValueId values = b.add(number(start), b.mul(index, number(delta)));
  return node.set_output(b.cast(values, dtype));
}

}  // namespace

Result<void> import_range(NodeImport& node) {
  // Opset 27 added half precision, counted in the type that stash_type names.
  if (node.opset >= 27 && node.attributes.integer("stash_type", 1) != 1) {
    return node.unsupported_attribute("stash_type must be 1 (float32)");
  }
  INGOT_ASSIGN(const ValueId first, node.input(0, Types::Numbers));
  for (std::size_t i = 0; i < 3; ++i) {
    INGOT_ASSIGN(const ValueId value, node.input(i, Types::Numbers));
    INGOT_RETURN_IF_ERROR(node.same_type(first, value));
    if (element_count(node.shape(value)) != 1) return node.malformed("inputs must be one number");
  }
  INGOT_ASSIGN(const Tensor start, node.known(0));
  INGOT_ASSIGN(const Tensor limit, node.known(1));
  INGOT_ASSIGN(const Tensor delta, node.known(2));
  return range_of(node, node.dtype(first), start, limit, delta);
}

Result<void> import_eye_like(NodeImport& node) {
  const std::int64_t offset = node.attributes.integer("k", 0);
  const bool has_type = node.attributes.has("dtype");
  const std::int64_t code = node.attributes.integer("dtype", 0);
  INGOT_ASSIGN(const ValueId x, node.input(0));
  if (node.rank(x) != 2) return node.malformed("the input must be a matrix");
  const auto in_range = [](std::int64_t v) { return v >= 0 && v <= 64; };
  const std::optional<DType> dtype = !has_type        ? node.dtype(x)
                                     : in_range(code) ? dtype_from_onnx(static_cast<int>(code))
                                                      : std::nullopt;
  if (!dtype) return node.unsupported_attribute(fmt::format("dtype {} is not supported", code));
  const std::int64_t bounded =
      std::clamp<std::int64_t>(offset, -(std::int64_t{1} << 41), std::int64_t{1} << 41);
  GraphBuilder& b = node.builder;
  const Shape shape = node.shape(x);
  const ValueId row = b.iota(DType::I64, {shape[0], 1}, 0);
  const ValueId column = b.iota(DType::I64, {1, shape[1]}, 1);
  const ValueId on = b.map(ScalarOp::Eq, b.add(row, node.ints({bounded}, {})), column);
  return node.set_output(b.cast(on, *dtype));
}

// Keeps the upper or lower triangle of the last two dimensions.
Result<void> import_trilu(NodeImport& node) {
  const bool upper = node.attributes.flag("upper", true);
  INGOT_ASSIGN(const ValueId x, node.input(0));
  std::int64_t offset = 0;
  if (node.has_input(1)) {
    INGOT_ASSIGN(const std::vector<std::int64_t> k, node.known_ints(1));
    if (k.size() != 1) return node.malformed("k must be one number");
    offset = std::clamp<std::int64_t>(k[0], -(std::int64_t{1} << 41), std::int64_t{1} << 41);
  }
  if (node.rank(x) < 2) return node.malformed("the input must be a matrix");
  GraphBuilder& b = node.builder;
  const Shape& shape = node.shape(x);
  const ValueId row =
      b.add(b.iota(DType::I64, {shape[shape.size() - 2], 1}, 0), node.ints({offset}, {}));
  const ValueId column = b.iota(DType::I64, {1, shape[shape.size() - 1]}, 1);
  const ValueId kept = upper ? b.map(ScalarOp::Le, row, column) : b.map(ScalarOp::Le, column, row);
  const ValueId zero = b.splat(Scalar::zero(node.dtype(x)), {});
  return node.set_output(b.select(kept, x, zero));
}

// --- types

namespace {

// Kept out of the names so that a newer opset's attributes for 8-bit floats do not matter here.
void ignore_float8_attributes(NodeImport& node) {
  if (node.opset >= 19) node.attributes.ignore({"saturate"});
  if (node.opset >= 24) node.attributes.ignore({"round_mode"});
}

}  // namespace

Result<void> import_cast(NodeImport& node) {
  const std::int64_t code = node.attributes.required_integer("to");
  ignore_float8_attributes(node);
  INGOT_ASSIGN(const ValueId x, node.input(0));
  const std::optional<DType> dtype =
      code >= 0 && code < 64 ? dtype_from_onnx(static_cast<int>(code)) : std::nullopt;
  if (!dtype) {
    return node.unsupported_attribute(fmt::format(
        "a cast to {} is not supported",
        code >= 0 && code < 64 ? onnx_type_name(static_cast<int>(code)) : std::to_string(code)));
  }
  return node.set_output(node.builder.cast(x, *dtype));
}

// The type as text, such as "FLOAT".
Result<void> import_cast_1(NodeImport& node) {
  const std::string to = node.attributes.text("to", "");
  constexpr std::string_view names[] = {"UNDEFINED", "FLOAT",  "UINT8",  "INT8",   "UINT16",
                                        "INT16",     "INT32",  "INT64",  "STRING", "BOOL",
                                        "FLOAT16",   "DOUBLE", "UINT32", "UINT64"};
  INGOT_ASSIGN(const ValueId x, node.input(0));
  const auto* found = std::ranges::find(names, to);
  const std::optional<DType> dtype =
      found == std::end(names) ? std::nullopt : dtype_from_onnx(static_cast<int>(found - names));
  if (!dtype) return node.unsupported_attribute(fmt::format("a cast to {} is not supported", to));
  return node.set_output(node.builder.cast(x, *dtype));
}

Result<void> import_cast_like(NodeImport& node) {
  ignore_float8_attributes(node);
  INGOT_ASSIGN(const ValueId x, node.input(0));
  INGOT_ASSIGN(const ValueId like, node.input(1));
  return node.set_output(node.builder.cast(x, node.dtype(like)));
}

// --- dropout: nothing happens outside training

namespace {

Result<void> pass_through(NodeImport& node, ValueId x) {
  if (node.wants_output(1)) {
    node.set_output(1, node.builder.splat(Scalar::of_int(DType::Bool, 1), node.shape(x)));
  }
  return node.set_output(x);
}

}  // namespace

// The mask of these opsets has no settled value when nothing is dropped.
Result<void> import_dropout_1(NodeImport& node) {
  const bool is_test = node.attributes.flag("is_test", false);
  node.attributes.ignore({"ratio", "consumed_inputs"});
  INGOT_ASSIGN(const ValueId x, node.input(0));
  if (!is_test)
    return node.unsupported("dropout in training mode", "export the model for inference");
  return node.set_output(x);
}

Result<void> import_dropout_7(NodeImport& node) {
  node.attributes.ignore({"ratio"});
  INGOT_ASSIGN(const ValueId x, node.input(0));
  return node.set_output(x);
}

Result<void> import_dropout_10(NodeImport& node) {
  node.attributes.ignore({"ratio"});
  INGOT_ASSIGN(const ValueId x, node.input(0));
  return pass_through(node, x);
}

Result<void> import_dropout(NodeImport& node) {
  node.attributes.ignore({"seed"});
  INGOT_ASSIGN(const ValueId x, node.input(0));
  INGOT_RETURN_IF_ERROR(node.at_most(3));
  if (!node.has_input(2)) return pass_through(node, x);
  INGOT_ASSIGN(const std::vector<double> training, node.known_numbers(2));
  if (training.size() == 1 && training[0] == 0) return pass_through(node, x);
  // A ratio of 0 drops nothing even in training.
  if (node.has_input(1)) {
    INGOT_ASSIGN(const std::vector<double> ratio, node.known_numbers(1));
    if (ratio.size() == 1 && ratio[0] == 0) return pass_through(node, x);
  }
  return node.unsupported("dropout in training mode", "export the model for inference");
}

// An operator that ONNX took out in this opset.
Result<void> import_removed(NodeImport& node) {
  return fail(ExitCode::Malformed, "invalid-node",
              fmt::format("{} is no operator of opset {}", node.node.op_type, node.opset));
}

// --- control flow that is decided while compiling

Result<void> import_if(NodeImport& node) {
  const std::shared_ptr<const OnnxGraph> then_branch = node.attributes.graph("then_branch");
  const std::shared_ptr<const OnnxGraph> else_branch = node.attributes.graph("else_branch");
  if (!then_branch || !else_branch) return node.malformed("a branch is missing");
  INGOT_ASSIGN(const ValueId condition, node.input(0, Types::Bool));
  if (element_count(node.shape(condition)) != 1)
    return node.malformed("the condition must be one value");
  const std::optional<Tensor> known = node.builder.known(condition);
  if (!known) {
    return node.unsupported("the condition must be known when compiling",
                            "fix the model inputs that it depends on with --bind");
  }
  const OnnxGraph& branch = known->at(0).as_int() != 0 ? *then_branch : *else_branch;
  INGOT_ASSIGN(const std::vector<ValueId> values, node.import_branch(branch));
  if (values.size() != node.output_count()) {
    return node.malformed("the branch has another number of outputs");
  }
  for (std::size_t i = 0; i < values.size(); ++i) node.set_output(i, values[i]);
  return {};
}

}  // namespace ingot
