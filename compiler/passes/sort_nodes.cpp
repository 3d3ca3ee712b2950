#include "compiler/passes/sort_nodes.h"

#include <utility>
#include <vector>

namespace ingot {
namespace {

constexpr std::uint32_t kUnseen = 0xFFFFFFFF;

class Sorting {
 public:
  explicit Sorting(const Graph& graph) : graph_(graph), place_(graph.nodes.size(), kUnseen) {}

  Graph run() {
    sorted_.name = graph_.name;
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      if (std::holds_alternative<InputOp>(graph_.nodes[i].op)) add(i);
    }
    for (const GraphOutput& output : graph_.outputs) visit(output.value.index);
    for (const GraphState& state : graph_.states) visit(state.next.index);

    for (const GraphOutput& output : graph_.outputs) {
      sorted_.outputs.push_back({output.name, moved(output.value)});
    }
    for (const GraphState& state : graph_.states) {
      sorted_.states.push_back({moved(state.state), moved(state.next), state.initial});
    }
    for (GraphTransform transform : graph_.transforms) {
      transform.input = moved(transform.input);
      transform.frame = moved(transform.frame);
      sorted_.transforms.push_back(transform);
    }
    for (GraphCamera camera : graph_.cameras) {
      camera.input = moved(camera.input);
      sorted_.cameras.push_back(camera);
    }
    return std::move(sorted_);
  }

 private:
  ValueId moved(ValueId value) const { return ValueId{place_[value.index]}; }

  void add(std::uint32_t index) {
    place_[index] = static_cast<std::uint32_t>(sorted_.nodes.size());
    Node node = graph_.nodes[index];
    for (ValueId& input : node.inputs) input = moved(input);
    sorted_.nodes.push_back(std::move(node));
  }

  // Operands from the first to the last, each with all that it needs.
  void visit(std::uint32_t root) {
    std::vector<std::pair<std::uint32_t, std::size_t>> path;  // node, operands that are there
    if (place_[root] == kUnseen) path.emplace_back(root, 0);
    while (!path.empty()) {
      auto& [index, done] = path.back();
      const std::vector<ValueId>& inputs = graph_.nodes[index].inputs;
      if (done == inputs.size()) {
        add(index);
        path.pop_back();
        continue;
      }
      const std::uint32_t next = inputs[done++].index;
      if (place_[next] == kUnseen) path.emplace_back(next, 0);
    }
  }

  const Graph& graph_;
  Graph sorted_;
  std::vector<std::uint32_t> place_;  // of each node in the result
};

}  // namespace

Graph sort_nodes(const Graph& graph) { return Sorting(graph).run(); }

}  // namespace ingot
