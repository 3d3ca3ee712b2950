#include "compiler/passes/widen_floats.h"

#include "compiler/graph/builder.h"

namespace ingot {
namespace {

class Widening {
 public:
  // The type of values of `dtype` that are not strict.
  using Rule = DType (*)(DType dtype);

  Widening(const Graph& graph, Rule rule) : graph_(graph), rule_(rule), builder_(graph.name) {
    value_.reserve(graph.nodes.size());
  }

  Graph run() {
    for (const Node& node : graph_.nodes) {
      builder_.set_strict(node.strict);
      builder_.set_source(node.source);
      value_.push_back(std::visit([&](const auto& op) { return widen(op, node); }, node.op));
    }
    for (const GraphOutput& output : graph_.outputs) {
      builder_.output(output.name, as(output.value, graph_[output.value].dtype));
    }
    for (const GraphState& state : graph_.states) {
      std::optional<ValueId> entry;
      if (state.entry) entry = value_[state.entry->index];
      builder_.state(value_[state.state.index], as(state.next, graph_[state.state].dtype),
                     state.initial, entry);
    }
    for (GraphTransform transform : graph_.transforms) {
      transform.input = value_[transform.input.index];
      transform.frame = value_[transform.frame.index];
      builder_.transform(transform);
    }
    for (GraphCamera camera : graph_.cameras) {
      camera.input = value_[camera.input.index];
      builder_.camera(camera);
    }
    return builder_.take();
  }

 private:
  // The new value of an old one, in the given type.
  ValueId as(ValueId old, DType dtype) { return builder_.cast(value_[old.index], dtype); }

  DType wide(const Node& node) const { return node.strict ? node.dtype : rule_(node.dtype); }

  // Type of the node's operand `old`: operands of one type stay of one type.
  DType operand_type(const Node& node, ValueId old) const {
    const DType dtype = graph_[old].dtype;
    return node.strict ? dtype : rule_(dtype);
  }

  std::vector<ValueId> operands(const Node& node) {
    std::vector<ValueId> result;
    for (ValueId input : node.inputs) result.push_back(as(input, operand_type(node, input)));
    return result;
  }

  ValueId widen(const InputOp& op, const Node& node) {
    return builder_.input(op.name, node.dtype, node.shape);
  }
  ValueId widen(const ConstantOp& op, const Node&) { return builder_.constant(op.tensor); }
  ValueId widen(const IotaOp& op, const Node& node) {
    return builder_.iota(node.dtype, node.shape, op.axis);
  }
  ValueId widen(const MapOp& op, const Node& node) { return builder_.map(op.op, operands(node)); }
  ValueId widen(const CastOp&, const Node& node) {
    return builder_.cast(as(node.inputs[0], operand_type(node, node.inputs[0])), wide(node));
  }
  ValueId widen(const ViewOp& op, const Node& node) {
    const ValueId input = value_[node.inputs[0].index];
    std::optional<Scalar> fill = op.fill;
    if (fill && is_float(fill->dtype)) {
      fill = Scalar::of_float(builder_.dtype(input), fill->as_double());
    }
    return builder_.view(input, node.shape, op.index, fill);
  }
  ValueId widen(const ReshapeOp&, const Node& node) {
    return builder_.reshape(value_[node.inputs[0].index], node.shape);
  }
  ValueId widen(const ConcatOp& op, const Node& node) {
    return builder_.concat(operands(node), op.axis);
  }
  ValueId widen(const ReduceNodeOp& op, const Node& node) {
    return builder_.reduce(op.op, operands(node)[0], op.axes, false);
  }
  // A contraction converts its factors itself, so that weights are packed in their own type.
  ValueId widen(const ContractOp& op, const Node& node) {
    std::vector<ValueId> factors;
    for (ValueId input : node.inputs) factors.push_back(value_[input.index]);
    return builder_.contract(wide(node), factors, op);
  }
  ValueId widen(const GatherOp& op, const Node& node) {
    return builder_.gather(value_[node.inputs[0].index], value_[node.inputs[1].index], op.axis,
                           op.in_range);
  }

  const Graph& graph_;
  Rule rule_;
  GraphBuilder builder_;
  std::vector<ValueId> value_;
};

}  // namespace

Graph to_double(const Graph& graph) {
  return Widening(graph, [](DType dtype) { return is_float(dtype) ? DType::F64 : dtype; }).run();
}

Graph widen_halves(const Graph& graph) {
  return Widening(graph,
                  [](DType dtype) {
                    return dtype == DType::F16 || dtype == DType::BF16 ? DType::F32 : dtype;
                  })
      .run();
}

}  // namespace ingot
