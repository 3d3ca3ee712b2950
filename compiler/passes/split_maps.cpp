#include "compiler/passes/split_maps.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/passes/copy_interface.h"

namespace ingot {
namespace {

// A kernel for each.
constexpr std::size_t kMostParts = 8;

bool is_elementwise(const Node& node) {
  return std::holds_alternative<MapOp>(node.op) || std::holds_alternative<CastOp>(node.op);
}

bool is_movement(const Node& node) {
  return std::holds_alternative<ViewOp>(node.op) || std::holds_alternative<ReshapeOp>(node.op);
}

class Splitting {
 public:
  explicit Splitting(const Graph& graph)
      : graph_(graph), place_(graph.nodes.size()), parts_(graph.nodes.size()) {}

  Graph run() {
    result_.name = graph_.name;
    find_readers();
    find_parts();
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) visit(i);
    copy_interface(graph_, result_, [this](ValueId value) { return made(value); });
    return std::move(result_);
  }

 private:
  // A value that is not whole yet.
  struct Parts {
    int axis = 0;
    std::vector<ValueId> values;  // of the result
  };

  // What is seen from outside has a second reader, and so is whole.
  void find_readers() {
    readers_.resize(graph_.nodes.size());
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const ValueId input : graph_.nodes[i].inputs) readers_[input.index].push_back(i);
    }
    const auto outside = [&](ValueId value) {
      readers_[value.index].insert(readers_[value.index].end(), 2, value.index);
    };
    for (const GraphOutput& output : graph_.outputs) outside(output.value);
    for (const GraphState& state : graph_.states) {
      outside(state.next);
      if (state.entry) outside(*state.entry);
    }
  }

  // A map whose other operands are no results of a kernel, with which it would run otherwise.
  bool only_a_map_reads(std::uint32_t index) const {
    return readers_[index].size() == 1 && may_split(graph_.nodes[readers_[index][0]]);
  }

  bool may_split(const Node& node) const {
    return is_elementwise(node) && std::ranges::all_of(node.inputs, [&](ValueId input) {
             return may_have_parts_[input.index] || is_given(input);
           });
  }

  // Read once: concatenations of parts that are free, and maps of such.
  void find_parts() {
    may_have_parts_.resize(graph_.nodes.size());
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (readers_[i].size() != 1) continue;
      if (std::holds_alternative<ConcatOp>(node.op)) {
        may_have_parts_[i] =
            node.inputs.size() <= kMostParts &&
            std::ranges::all_of(node.inputs, [&](ValueId part) { return is_free(part); });
      } else {
        may_have_parts_[i] =
            may_split(node) && std::ranges::any_of(node.inputs, [&](ValueId input) {
              return may_have_parts_[input.index];
            });
      }
    }
  }

  bool is_given(ValueId value) const {
    while (is_movement(graph_[value])) value = graph_[value].inputs[0];
    const GraphOp& op = graph_[value].op;
    return std::holds_alternative<ConstantOp>(op) || std::holds_alternative<InputOp>(op) ||
           std::holds_alternative<IotaOp>(op);
  }

  void visit(std::uint32_t index) {
    const Node& node = graph_.nodes[index];
    const auto* const concat = std::get_if<ConcatOp>(&node.op);
    if (concat != nullptr && may_have_parts_[index] && only_a_map_reads(index)) {
      parts_[index] = Parts{concat->axis, made_of(node.inputs)};
      return;
    }
    if (is_elementwise(node)) {
      const auto whole = std::ranges::find_if(
          node.inputs, [&](ValueId input) { return parts_[input.index].has_value(); });
      if (whole != node.inputs.end()) {
        split(index, *parts_[whole->index]);
        return;
      }
    }
    Node copy = node;
    copy.inputs = made_of(node.inputs);
    place_[index] = add(std::move(copy));
  }

  bool is_free(ValueId part) const {
    return readers_[part.index].size() == 1 || std::holds_alternative<InputOp>(graph_[part].op);
  }

  void split(std::uint32_t index, const Parts& like) {
    const Node& node = graph_.nodes[index];
    Parts made_parts{like.axis, {}};
    std::int64_t offset = 0;
    for (std::size_t k = 0; k < like.values.size(); ++k) {
      const auto axis = static_cast<std::size_t>(like.axis);
      Node part = node;
      part.shape[axis] = result_[like.values[k]].shape[axis];
      for (ValueId& input : part.inputs) {
        input = part_of(input, like, k, offset, part.shape[axis]);
      }
      offset += part.shape[axis];
      made_parts.values.push_back(add(std::move(part)));
    }
    parts_[index] = std::move(made_parts);
    if (only_a_map_reads(index)) return;
    (void)made(ValueId{index});
    parts_[index].reset();
  }

  // Part k of an operand: its own, or a slice of the whole.
  ValueId part_of(ValueId operand, const Parts& like, std::size_t k, std::int64_t offset,
                  std::int64_t extent) {
    const std::optional<Parts>& own = parts_[operand.index];
    const auto axis = static_cast<std::size_t>(like.axis);
    if (own && own->axis == like.axis &&
        std::ranges::equal(
            own->values, like.values, {}, [&](ValueId value) { return result_[value].shape[axis]; },
            [&](ValueId value) { return result_[value].shape[axis]; })) {
      return own->values[k];
    }
    const ValueId whole = made(operand);
    Node slice;
    slice.dtype = result_[whole].dtype;
    slice.shape = result_[whole].shape;
    slice.shape[axis] = extent;
    ViewOp view;
    for (std::size_t d = 0; d < slice.shape.size(); ++d) {
      view.index.push_back(AffineIndex::of_axis(static_cast<int>(d), 1, d == axis ? offset : 0));
    }
    slice.op = std::move(view);
    slice.inputs = {whole};
    slice.source = graph_[operand].source;
    return add(std::move(slice));
  }

  // The whole value of the result.
  ValueId made(ValueId old) {
    std::optional<ValueId>& place = place_[old.index];
    if (!place) {
      Node whole;
      whole.dtype = graph_[old].dtype;
      whole.shape = graph_[old].shape;
      whole.source = graph_[old].source;
      whole.op = ConcatOp{parts_[old.index]->axis};
      whole.inputs = parts_[old.index]->values;
      place = add(std::move(whole));
    }
    return *place;
  }

  std::vector<ValueId> made_of(const std::vector<ValueId>& old) {
    std::vector<ValueId> result;
    for (const ValueId value : old) result.push_back(made(value));
    return result;
  }

  ValueId add(Node node) {
    result_.nodes.push_back(std::move(node));
    return ValueId{static_cast<std::uint32_t>(result_.nodes.size() - 1)};
  }

  const Graph& graph_;
  Graph result_;
  std::vector<std::vector<std::uint32_t>> readers_;
  std::vector<bool> may_have_parts_;
  std::vector<std::optional<ValueId>> place_;  // of whole values
  std::vector<std::optional<Parts>> parts_;
};

}  // namespace

Graph split_maps(const Graph& graph) { return Splitting(graph).run(); }

}  // namespace ingot
