// Leaves, elementwise operations, folding and declarations. Views are in builder_movement.cpp,
// reductions and compositions in builder_reductions.cpp.
#include "compiler/graph/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "compiler/graph/fold_node.h"

namespace ingot {
namespace {

// Constants up to this size are compared by content, larger ones by where their bytes are.
constexpr std::size_t kCompareBytes = 4096;

// Nodes with equal keys have equal values.
std::string key(const Node& node) {
  const auto* constant = std::get_if<ConstantOp>(&node.op);
  if (constant == nullptr) return to_text(node);
  const Tensor& tensor = constant->tensor;
  std::string text = fmt::format("constant {}{} ", to_text(tensor.dtype, tensor.shape),
                                 node.strict ? " strict" : "");
  if (tensor.bytes.size() <= kCompareBytes) {
    text.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    return text;
  }
  return text +
         fmt::format("{} {}", tensor.owner.get(), static_cast<const void*>(tensor.bytes.data()));
}

}  // namespace

std::optional<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (std::size_t i = 1; i <= result.size(); ++i) {
    const std::int64_t x = i <= a.size() ? a[a.size() - i] : 1;
    const std::int64_t y = i <= b.size() ? b[b.size() - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    result[result.size() - i] = x == 1 ? y : x;
  }
  return result;
}

Node GraphBuilder::node(GraphOp op, DType dtype, Shape shape, std::vector<ValueId> inputs) const {
  Node result;
  result.op = std::move(op);
  result.dtype = dtype;
  result.shape = std::move(shape);
  result.inputs = std::move(inputs);
  result.strict = strict_;
  result.source = source_;
  return result;
}

ValueId GraphBuilder::append(Node node) {
  for (const ValueId input : node.inputs) {
    INGOT_CHECK(input.index < graph_.nodes.size(), "an operand of another builder");
  }
  const ValueId id{static_cast<std::uint32_t>(graph_.nodes.size())};
  const auto [place, is_new] = known_nodes_.emplace(key(node), id);
  if (!is_new) {
    // The least name of all: which node came first is an accident of the file.
    std::string& source = graph_[place->second].source;
    if (!node.source.empty() && (source.empty() || node.source < source)) {
      source = std::move(node.source);
    }
    return place->second;
  }

  const bool known_inputs = std::ranges::all_of(
      node.inputs, [this](ValueId input) { return bool{is_known_[input.index]}; });
  const bool small = element_count(node.shape) <= kFoldLimit;
  const bool is_input = std::holds_alternative<InputOp>(node.op);
  const bool is_constant = std::holds_alternative<ConstantOp>(node.op);
  const bool shares = is_constant || std::holds_alternative<ReshapeOp>(node.op);
  is_known_.push_back(known_inputs && !is_input && (small || shares));
  graph_.nodes.push_back(std::move(node));
  return id;
}

std::optional<Tensor> GraphBuilder::known(ValueId id) const {
  if (!is_known_[id.index]) return std::nullopt;
  std::vector<Tensor> inputs;
  for (const ValueId input : graph_[id].inputs) {
    auto value = known(input);
    if (!value) return std::nullopt;
    inputs.push_back(std::move(*value));
  }
  return fold_node(graph_[id], inputs);
}

std::optional<std::vector<std::int64_t>> GraphBuilder::known_ints(ValueId id) const {
  if (is_float(dtype(id))) return std::nullopt;
  const auto value = known(id);
  if (!value) return std::nullopt;
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < element_count(value->shape); ++i) {
    result.push_back(value->at(i).as_int());
  }
  return result;
}

// The one element that a value repeats, if it is a constant or the fill-less view of one.
std::optional<Scalar> GraphBuilder::splat_value(ValueId value) const {
  const Node* node = &graph_[value];
  if (const auto* view = std::get_if<ViewOp>(&node->op); view != nullptr && !view->fill) {
    node = &graph_[node->inputs[0]];
  }
  const auto* constant = std::get_if<ConstantOp>(&node->op);
  if (constant == nullptr || element_count(node->shape) != 1) return std::nullopt;
  return constant->tensor.at(0);
}

ValueId GraphBuilder::fold_or_append(Node node) {
  const bool elementwise =
      std::holds_alternative<MapOp>(node.op) || std::holds_alternative<CastOp>(node.op);
  if (elementwise) {
    // On one element, at any size of the result.
    std::vector<Tensor> elements;
    for (const ValueId input : node.inputs) {
      const auto element = splat_value(input);
      if (!element) break;
      elements.push_back(Tensor::splat({}, *element));
    }
    if (elements.size() == node.inputs.size()) {
      Node scalar = node;
      scalar.shape = {};
      if (const auto value = fold_node(scalar, elements)) return splat(value->at(0), node.shape);
      return append(std::move(node));
    }
  }
  if (element_count(node.shape) > kFoldLimit) return append(std::move(node));
  std::vector<Tensor> values;
  for (const ValueId input : node.inputs) {
    auto value = known(input);
    if (!value) return append(std::move(node));
    values.push_back(std::move(*value));
  }
  if (auto value = fold_node(node, values)) return constant(std::move(*value));
  return append(std::move(node));
}

// --- leaves

ValueId GraphBuilder::input(std::string name, DType dtype, Shape shape) {
  INGOT_CHECK(!name.empty(), "an input without a name");
  const std::size_t before = graph_.nodes.size();
  const ValueId id = append(node(InputOp{std::move(name)}, dtype, std::move(shape), {}));
  INGOT_CHECK(id.index == before, "two inputs of one name");
  return id;
}

ValueId GraphBuilder::constant(Tensor tensor) {
  const DType dtype = tensor.dtype;
  Shape shape = tensor.shape;
  return append(node(ConstantOp{std::move(tensor)}, dtype, std::move(shape), {}));
}

ValueId GraphBuilder::splat(Scalar value, Shape shape) {
  return expand(constant(Tensor::splat({}, value)), std::move(shape));
}

ValueId GraphBuilder::iota(DType dtype, Shape shape, int axis) {
  INGOT_CHECK(is_integer(dtype), "an iota of an element type that is no integer");
  INGOT_CHECK(axis >= 0 && static_cast<std::size_t>(axis) < shape.size(), "an iota without axis");
  return append(node(IotaOp{axis}, dtype, std::move(shape), {}));
}

// --- elementwise

ValueId GraphBuilder::map(ScalarOp op, std::span<const ValueId> operands) {
  INGOT_CHECK(static_cast<int>(operands.size()) == operand_count(op),
              "a map with the wrong number of operands");
  // Select's condition is bool; all others are of the type of the last operand.
  const DType type = dtype(operands.back());
  INGOT_CHECK(accepts(op, type), "a map over an element type it is not defined for");
  Shape common;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const DType wanted = op == ScalarOp::Select && i == 0 ? DType::Bool : type;
    INGOT_CHECK(dtype(operands[i]) == wanted, "a map over operands of different element types");
    auto broadcast = broadcast_shapes(common, shape(operands[i]));
    INGOT_CHECK(broadcast.has_value(), "a map over shapes that do not broadcast");
    common = std::move(*broadcast);
  }
  std::vector<ValueId> inputs;
  for (const ValueId operand : operands) inputs.push_back(expand(operand, common));
  const DType result = gives_bool(op) ? DType::Bool : type;
  return fold_or_append(node(MapOp{op}, result, std::move(common), std::move(inputs)));
}

ValueId GraphBuilder::map(ScalarOp op, ValueId a) { return map(op, std::span(&a, 1)); }

ValueId GraphBuilder::map(ScalarOp op, ValueId a, ValueId b) {
  const ValueId operands[] = {a, b};
  return map(op, operands);
}

ValueId GraphBuilder::map(ScalarOp op, ValueId a, ValueId b, ValueId c) {
  const ValueId operands[] = {a, b, c};
  return map(op, operands);
}

ValueId GraphBuilder::select(ValueId condition, ValueId then_value, ValueId else_value) {
  return map(ScalarOp::Select, condition, then_value, else_value);
}

ValueId GraphBuilder::cast(ValueId value, DType dtype) {
  if (this->dtype(value) == dtype) return value;
  Node result = node(CastOp{}, dtype, shape(value), {value});
  if (is_float(dtype)) {
    // Counting in floats stays arithmetic: a table in memory would be slower than a conversion.
    const Node* root = &graph_[value];
    while (std::holds_alternative<ViewOp>(root->op) ||
           std::holds_alternative<ReshapeOp>(root->op)) {
      root = &graph_[root->inputs[0]];
    }
    if (std::holds_alternative<IotaOp>(root->op)) return append(std::move(result));
  }
  return fold_or_append(std::move(result));
}

ValueId GraphBuilder::like(ValueId value, double number) {
  return splat(Scalar::of_float(dtype(value), number), {});
}

// --- declarations

void GraphBuilder::output(std::string name, ValueId value) {
  INGOT_CHECK(value.index < graph_.nodes.size(), "an output of another builder");
  graph_.outputs.push_back({std::move(name), value});
}

void GraphBuilder::state(ValueId input, ValueId next, std::optional<Tensor> initial,
                         std::optional<ValueId> entry) {
  INGOT_CHECK(std::holds_alternative<InputOp>(graph_[input].op), "a state that is not an input");
  Shape written = shape(input);
  if (entry) written[0] = 1;
  INGOT_CHECK(dtype(input) == dtype(next) && written == shape(next),
              "a state that changes its type");
  graph_.states.push_back({input, next, std::move(initial), entry});
}

// --- splicing

std::vector<ValueId> GraphBuilder::splice(const Graph& other, std::span<const Binding> bindings) {
  std::vector<ValueId> values;
  std::vector<ValueId> inputs;

  struct Rebuild {
    GraphBuilder& builder;
    const Node& node;
    const std::vector<ValueId>& inputs;
    std::span<const Binding> bindings;

    ValueId operator()(const InputOp& op) const {
      for (const Binding& binding : bindings) {
        if (binding.name == op.name) return binding.value;
      }
      return builder.input(op.name, node.dtype, node.shape);
    }
    ValueId operator()(const ConstantOp& op) const { return builder.constant(op.tensor); }
    ValueId operator()(const IotaOp& op) const {
      return builder.iota(node.dtype, node.shape, op.axis);
    }
    ValueId operator()(const MapOp& op) const { return builder.map(op.op, inputs); }
    ValueId operator()(const CastOp&) const { return builder.cast(inputs[0], node.dtype); }
    ValueId operator()(const ViewOp& op) const {
      return builder.view(inputs[0], node.shape, op.index, op.fill);
    }
    ValueId operator()(const ReshapeOp&) const { return builder.reshape(inputs[0], node.shape); }
    ValueId operator()(const ConcatOp& op) const { return builder.concat(inputs, op.axis); }
    ValueId operator()(const ReduceNodeOp& op) const {
      return builder.reduce(op.op, inputs[0], op.axes, false);
    }
    ValueId operator()(const ContractOp& op) const {
      return builder.contract(node.dtype, inputs, op);
    }
    ValueId operator()(const GatherOp& op) const {
      return builder.gather(inputs[0], inputs[1], op.axis, op.in_range);
    }
  };

  const bool strict = strict_;
  const std::string source = source_;
  for (const Node& theirs : other.nodes) {
    strict_ = theirs.strict;
    source_ = theirs.source.empty() ? source : theirs.source;
    inputs.clear();
    for (const ValueId input : theirs.inputs) inputs.push_back(values[input.index]);
    const ValueId ours = std::visit(Rebuild{*this, theirs, inputs, bindings}, theirs.op);
    INGOT_CHECK(dtype(ours) == theirs.dtype && shape(ours) == theirs.shape,
                "a spliced value changes its type");
    values.push_back(ours);
  }
  strict_ = strict;
  source_ = source;
  return values;
}

}  // namespace ingot
