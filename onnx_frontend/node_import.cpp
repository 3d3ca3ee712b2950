#include "onnx_frontend/node_import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ingot {
namespace {

// Above this a static shape is a mistake, and index arithmetic would come near its limits.
constexpr std::int64_t most_elements = std::int64_t{1} << 40;

}  // namespace

bool accepts(Types types, DType dtype) {
  switch (types) {
    case Types::Any: return true;
    case Types::Numbers: return dtype != DType::Bool;
    case Types::Floats: return is_float(dtype);
    case Types::Integers: return is_integer(dtype);
    case Types::SignedNumbers: return is_float(dtype) || is_signed(dtype);
    case Types::Bool: return dtype == DType::Bool;
    case Types::Index: return dtype == DType::I32 || dtype == DType::I64;
  }
  return false;
}

NodeImport::NodeImport(GraphBuilder& graph_builder, const OnnxNode& onnx_node, int version,
                       std::vector<ValueId> values, ImportBranch branch)
    : builder(graph_builder),
      node(onnx_node),
      opset(version),
      attributes(onnx_node),
      import_branch(std::move(branch)),
      inputs_(std::move(values)),
      outputs_(onnx_node.outputs.size()) {
  while (!inputs_.empty() && !inputs_.back().valid()) inputs_.pop_back();
}

std::unexpected<Failure> NodeImport::malformed(std::string message) const {
  return fail(ExitCode::Malformed, "invalid-node", std::move(message));
}

std::unexpected<Failure> NodeImport::unsupported(std::string message, std::string hint) const {
  return fail(ExitCode::Unsupported, "unsupported-form", std::move(message), {}, std::move(hint));
}

std::unexpected<Failure> NodeImport::unsupported_attribute(std::string message,
                                                           std::string hint) const {
  return fail(ExitCode::Unsupported, "unsupported-attribute", std::move(message), {},
              std::move(hint));
}

std::string NodeImport::input_name(std::size_t i) const {
  return i < node.inputs.size() && !node.inputs[i].empty()
             ? fmt::format("input {} ('{}')", i, node.inputs[i])
             : fmt::format("input {}", i);
}

bool NodeImport::has_input(std::size_t i) const {
  knows(i + 1);
  return i < inputs_.size() && inputs_[i].valid();
}

Result<void> NodeImport::check_type(std::size_t i, Types types) const {
  const DType type = builder.dtype(inputs_[i]);
  if (accepts(types, type)) return {};
  return fail(ExitCode::Unsupported, "unsupported-type",
              fmt::format("{} has element type {}, which is not supported here", input_name(i),
                          name(type)));
}

Result<ValueId> NodeImport::input(std::size_t i, Types types) const {
  if (!has_input(i)) return malformed(fmt::format("{} is missing", input_name(i)));
  INGOT_RETURN_IF_ERROR(check_type(i, types));
  return inputs_[i];
}

Result<std::optional<ValueId>> NodeImport::optional_input(std::size_t i, Types types) const {
  if (!has_input(i)) return std::nullopt;
  INGOT_RETURN_IF_ERROR(check_type(i, types));
  return inputs_[i];
}

Result<std::vector<ValueId>> NodeImport::all_inputs(std::size_t least, Types types) const {
  if (inputs_.size() < least) {
    return malformed(fmt::format("{} inputs, at least {} are needed", inputs_.size(), least));
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    INGOT_RETURN_IF_ERROR(input(i, types));
    INGOT_RETURN_IF_ERROR(same_type(inputs_[0], inputs_[i]));
  }
  return inputs_;
}

Result<Tensor> NodeImport::known(std::size_t i) const {
  INGOT_ASSIGN(const ValueId value, input(i));
  if (std::optional<Tensor> tensor = builder.known(value)) return *std::move(tensor);
  return fail(ExitCode::Unsupported, "value-not-known",
              fmt::format("{} must be known when compiling", input_name(i)), {},
              "fix the model inputs that it depends on with --bind");
}

Result<std::vector<std::int64_t>> NodeImport::known_ints(std::size_t i) const {
  INGOT_RETURN_IF_ERROR(input(i, Types::Integers));
  INGOT_ASSIGN(const Tensor tensor, known(i));
  if (tensor.shape.size() > 1) {
    return malformed(fmt::format("{} must be a list of numbers", input_name(i)));
  }
  std::vector<std::int64_t> values;
  for (std::int64_t k = 0; k < element_count(tensor.shape); ++k) {
    values.push_back(tensor.at(k).as_int());
  }
  return values;
}

Result<std::vector<double>> NodeImport::known_numbers(std::size_t i) const {
  INGOT_ASSIGN(const Tensor tensor, known(i));
  std::vector<double> values;
  for (std::int64_t k = 0; k < element_count(tensor.shape); ++k) {
    values.push_back(tensor.at(k).as_double());
  }
  return values;
}

Result<void> NodeImport::at_most(std::size_t inputs) const {
  knows(inputs);
  if (inputs_.size() <= inputs) return {};
  return malformed(fmt::format("{} inputs, at most {} are allowed", inputs_.size(), inputs));
}

bool NodeImport::wants_output(std::size_t i) const {
  return i < node.outputs.size() && !node.outputs[i].empty();
}

Result<void> NodeImport::set_output(std::size_t i, ValueId value) {
  if (i < outputs_.size()) outputs_[i] = value;
  return {};
}

Result<void> NodeImport::same_type(ValueId a, ValueId b) const {
  if (dtype(a) == dtype(b)) return {};
  return malformed(
      fmt::format("inputs have element types {} and {}", name(dtype(a)), name(dtype(b))));
}

Result<Shape> NodeImport::broadcast(const Shape& a, const Shape& b) const {
  if (std::optional<Shape> shape = broadcast_shapes(a, b)) return checked_shape(*std::move(shape));
  return malformed(fmt::format("shapes {} and {} do not fit", shape_text(a), shape_text(b)));
}

Result<int> NodeImport::axis(std::int64_t axis, std::size_t rank) const {
  const auto dims = static_cast<std::int64_t>(rank);
  if (axis < -dims || axis >= dims) {
    return malformed(fmt::format("axis {} is outside rank {}", axis, rank));
  }
  return static_cast<int>(axis < 0 ? axis + dims : axis);
}

Result<std::vector<int>> NodeImport::axes(const std::vector<std::int64_t>& axes,
                                          std::size_t rank) const {
  std::vector<int> result;
  for (const std::int64_t each : axes) {
    INGOT_ASSIGN(const int normal, axis(each, rank));
    result.push_back(normal);
  }
  std::ranges::sort(result);
  if (std::ranges::adjacent_find(result) != result.end()) {
    return malformed("an axis is named twice");
  }
  return result;
}

Result<Shape> NodeImport::checked_shape(Shape shape) const {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape) {
    if (dim < 0) return malformed(fmt::format("dimension {} is negative", dim));
    if (dim > most_elements) return unsupported(fmt::format("dimension {} is too large", dim));
  }
  for (const std::int64_t dim : shape) {
    if (dim != 0 && count > most_elements / dim) {
      return unsupported(fmt::format("shape {} is too large", shape_text(shape)));
    }
    if (dim != 0) count *= dim;
  }
  return shape;
}

ValueId NodeImport::ints(const std::vector<std::int64_t>& values, Shape shape, DType dtype) const {
  return builder.constant(Tensor::of_ints(dtype, std::move(shape), values));
}

ValueId NodeImport::floats(const std::vector<double>& values, Shape shape, DType dtype) const {
  return builder.constant(Tensor::of_floats(dtype, std::move(shape), values));
}

std::string shape_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

}  // namespace ingot
