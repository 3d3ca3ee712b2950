#include "compiler/passes/sort_nodes.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compiler/passes/copy_interface.h"

namespace ingot {
namespace {

constexpr std::uint32_t kUnseen = 0xFFFFFFFF;

class Sorting {
 public:
  explicit Sorting(const Graph& graph) : graph_(graph), place_(graph.nodes.size(), kUnseen) {}

  Graph run() {
    sorted_.name = graph_.name;
    find_readers();
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      if (std::holds_alternative<InputOp>(graph_.nodes[i].op)) add(i);
    }
    for (const GraphOutput& output : graph_.outputs) visit(output.value.index);
    for (const GraphState& state : graph_.states) visit(state.next.index);

    copy_interface(graph_, sorted_, [this](ValueId value) { return moved(value); });
    return std::move(sorted_);
  }

 private:
  ValueId moved(ValueId value) const { return ValueId{place_[value.index]}; }

  // Of nodes that something needs.
  void find_readers() {
    std::vector<bool> live(graph_.nodes.size());
    for (const GraphOutput& output : graph_.outputs) live[output.value.index] = true;
    for (const GraphState& state : graph_.states) live[state.next.index] = true;
    readers_.resize(graph_.nodes.size());
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      if (!live[i]) continue;
      for (const ValueId input : graph_.nodes[i].inputs) {
        live[input.index] = true;
        readers_[input.index].push_back(static_cast<std::uint32_t>(i));
      }
    }
  }

  bool is_movement(std::uint32_t index) const {
    const GraphOp& op = graph_.nodes[index].op;
    return std::holds_alternative<ViewOp>(op) || std::holds_alternative<ReshapeOp>(op);
  }

  void add(std::uint32_t index) {
    place_[index] = static_cast<std::uint32_t>(sorted_.nodes.size());
    Node node = graph_.nodes[index];
    for (ValueId& input : node.inputs) input = moved(input);
    sorted_.nodes.push_back(std::move(node));
    move_at_once(index);
  }

  // A value that is only moved dies as soon as all of its parts are where they should be.
  void move_at_once(std::uint32_t index) {
    const std::vector<std::uint32_t>& readers = readers_[index];
    if (graph_.nodes[index].inputs.empty() ||
        !std::ranges::all_of(readers, [&](std::uint32_t reader) { return is_movement(reader); })) {
      return;
    }
    std::int64_t moved_elements = 0;
    // Equal nodes are one, so that their texts differ; all name the same operand.
    std::vector<std::pair<std::string, std::uint32_t>> parts;
    for (const std::uint32_t reader : readers) {
      moved_elements += element_count(graph_.nodes[reader].shape);
      parts.emplace_back(to_text(graph_.nodes[reader]), reader);
    }
    if (moved_elements > element_count(graph_.nodes[index].shape)) return;
    std::ranges::sort(parts);
    for (const auto& [text, reader] : parts) {
      if (place_[reader] == kUnseen) add(reader);
    }
  }

  // Operands from the first to the last, each with all that it needs.
  void visit(std::uint32_t root) {
    std::vector<std::pair<std::uint32_t, std::size_t>> path;  // node, operands that are there
    if (place_[root] == kUnseen) path.emplace_back(root, 0);
    while (!path.empty()) {
      auto& [index, done] = path.back();
      const std::vector<ValueId>& inputs = graph_.nodes[index].inputs;
      if (done == inputs.size()) {
        if (place_[index] == kUnseen) add(index);
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
  std::vector<std::vector<std::uint32_t>> readers_;
};

}  // namespace

Graph sort_nodes(const Graph& graph) { return Sorting(graph).run(); }

}  // namespace ingot
