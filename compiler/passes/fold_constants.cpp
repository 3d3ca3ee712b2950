#include "compiler/passes/fold_constants.h"

#include <algorithm>

#include "compiler/program/run_program.h"

namespace ingot {
namespace {

bool is_movement(const Node& node) {
  return std::holds_alternative<ViewOp>(node.op) || std::holds_alternative<ReshapeOp>(node.op);
}

// Which nodes depend on no input.
std::vector<bool> find_constant(const Graph& graph) {
  std::vector<bool> constant(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    constant[i] = std::holds_alternative<ConstantOp>(node.op) ||
                  (!node.inputs.empty() && std::ranges::all_of(node.inputs, [&](ValueId input) {
                    return constant[input.index];
                  }));
  }
  return constant;
}

void need(const Graph& graph, const std::vector<bool>& constant, ValueId value,
          std::vector<bool>& wanted) {
  while (is_movement(graph[value])) value = graph[value].inputs[0];
  if (constant[value.index] && !std::holds_alternative<ConstantOp>(graph[value].op)) {
    wanted[value.index] = true;
  }
}

// Computed constants that something not constant reads, looking through movement.
std::vector<ValueId> find_frontier(const Graph& graph, const std::vector<bool>& constant) {
  std::vector<bool> wanted(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (constant[i]) continue;
    for (ValueId input : graph.nodes[i].inputs) need(graph, constant, input, wanted);
  }
  for (const GraphOutput& output : graph.outputs) need(graph, constant, output.value, wanted);
  for (const GraphState& state : graph.states) need(graph, constant, state.next, wanted);
  std::vector<ValueId> frontier;
  for (std::uint32_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) frontier.push_back(ValueId{i});
  }
  return frontier;
}

}  // namespace

Result<Graph> fold_constants(const Graph& graph, KernelRunner& runner) {
  const std::vector<bool> constant = find_constant(graph);
  const std::vector<ValueId> frontier = find_frontier(graph, constant);
  if (frontier.empty()) return graph;

  Graph constants;
  constants.name = "constants";
  constants.nodes = graph.nodes;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (constant[i]) {
      constants.nodes[i].strict = true;
      continue;
    }
    // Not read by any constant; an empty constant keeps the numbering.
    constants.nodes[i] =
        Node{ConstantOp{Tensor::own(DType::U8, {0}, {})}, DType::U8, {0}, {}, false, {}};
  }
  for (ValueId value : frontier) constants.outputs.push_back(GraphOutput{"", value});
  INGOT_ASSIGN(const auto values, evaluate_graph(constants, {}, runner));

  Graph folded = graph;
  for (std::size_t k = 0; k < frontier.size(); ++k) {
    Node& node = folded[frontier[k]];
    node.op = ConstantOp{Tensor::own(node.dtype, node.shape, values[k])};
    node.inputs.clear();
  }
  return folded;
}

}  // namespace ingot
