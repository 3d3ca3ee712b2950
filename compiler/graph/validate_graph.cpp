// What a well-formed graph is.
//
// Every node
//   - reads only values defined before it, as many as its operation takes
//   - has an element type and a shape that fits memory
// Input         a name, unique among inputs; no operands
// Constant      tensor and node agree in type, shape and size in bytes
// Iota          an integer type, an axis it has
// Map           operands of the node's shape, of one type that the operation accepts
//               (Select: a bool condition first); the result's type follows
// Cast          operand of the node's shape
// View          the operand's type, one well-formed index per dimension over the node's axes;
//               a fill of that type, or no index leaves the operand
// Reshape       the operand's type and number of elements
// Concat        operands of the node's type, which fit but for the axis and add up along it
// Reduce        sorted axes that the operand has; shape and type follow; no sum of bool
// Contract      indices over the axes; output indices hit every output element exactly once
// Gather        an i32 or i64 index; shape and type follow
// Outputs       a value and a unique name
// States        an input each, at most one per input, of the type of its next and initial value
// Transforms    36 aligned bytes of an f32 input, a rectangle, a u8 input as frame
// Cameras       a u8 input of rank 1 each, an index that is not negative
//
// Not checked: whether a node is used, whether equal nodes were shared, whether views are merged.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/graph/graph.h"
#include "compiler/graph/view_algebra.h"

namespace ingot {
namespace {

std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

bool fits_memory(DType dtype, const Shape& shape) {
  std::int64_t size = size_bytes(dtype);
  for (const std::int64_t extent : shape) {
    if (extent < 0) return false;
    if (extent != 0 && __builtin_mul_overflow(size, extent, &size)) return false;
  }
  return true;
}

bool agrees(const Tensor& tensor, DType dtype, const Shape& shape) {
  return tensor.dtype == dtype && tensor.shape == shape &&
         static_cast<std::int64_t>(tensor.bytes.size()) == element_count(shape) * size_bytes(dtype);
}

bool well_formed(const AffineIndex& index, std::size_t axes) {
  int previous = -1;
  for (const auto& term : index.terms) {
    if (term.axis <= previous || at(term.axis) >= axes || term.coefficient == 0) return false;
    previous = term.axis;
  }
  return index.divisor >= 1;
}

// Whether the output indices hit each element of `shape` exactly once: in every dimension the
// axes are the digits of the index, and no axis is used twice or left out.
bool hits_each_once(const ContractOp& op, const Shape& shape) {
  if (std::ranges::find(shape, 0) != shape.end()) return true;
  std::vector<int> uses(at(op.output_axes), 0);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<AffineIndex::Term> digits;
    for (const auto& term : op.output[d].terms) {
      if (op.extents[at(term.axis)] != 1) digits.push_back(term);
    }
    std::ranges::sort(digits, {}, &AffineIndex::Term::coefficient);
    std::int64_t weight = 1;
    for (const auto& digit : digits) {
      if (digit.coefficient != weight) return false;
      weight *= op.extents[at(digit.axis)];
      ++uses[at(digit.axis)];
    }
    if (weight != shape[d] || op.output[d].offset != 0 || op.output[d].divisor != 1) return false;
  }
  for (std::size_t axis = 0; axis < uses.size(); ++axis) {
    if (uses[axis] != (op.extents[axis] == 1 ? 0 : 1)) return false;
  }
  return true;
}

// The rules of one operation; an empty answer means that all hold, otherwise it names the broken
// one. Operands are known to exist.
class NodeRules {
 public:
  NodeRules(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  std::string operator()(const InputOp& op) const {
    if (op.name.empty()) return "an input has a name";
    return operands(0);
  }

  std::string operator()(const ConstantOp& op) const {
    if (!agrees(op.tensor, node_.dtype, node_.shape)) return "a constant has its tensor's type";
    return operands(0);
  }

  std::string operator()(const IotaOp& op) const {
    if (!is_integer(node_.dtype)) return "an iota has an integer type";
    if (op.axis < 0 || at(op.axis) >= node_.shape.size()) return "an iota has its axis";
    return operands(0);
  }

  std::string operator()(const MapOp& op) const {
    if (auto broken = operands(at(operand_count(op.op))); !broken.empty()) return broken;
    const DType type = operand(node_.inputs.size() - 1).dtype;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      const DType wanted = op.op == ScalarOp::Select && i == 0 ? DType::Bool : type;
      if (operand(i).dtype != wanted) return "the operands of a map have one type";
      if (operand(i).shape != node_.shape) return "the operands of a map have its shape";
    }
    if (!accepts(op.op, type)) return "a map accepts its operands' type";
    if (node_.dtype != (gives_bool(op.op) ? DType::Bool : type)) {
      return "a map has the type of its last operand, a comparison bool";
    }
    return {};
  }

  std::string operator()(const CastOp&) const {
    if (auto broken = operands(1); !broken.empty()) return broken;
    return operand(0).shape == node_.shape ? "" : "a cast has its operand's shape";
  }

  std::string operator()(const ViewOp& op) const {
    if (auto broken = operands(1); !broken.empty()) return broken;
    const Node& from = operand(0);
    if (from.dtype != node_.dtype) return "a view has its operand's type";
    if (op.fill && op.fill->dtype != node_.dtype) return "a fill has the view's type";
    if (op.index.size() != from.shape.size()) return "a view has an index per dimension";
    for (std::size_t d = 0; d < op.index.size(); ++d) {
      if (!well_formed(op.index[d], node_.shape.size())) return "an index is well-formed";
      if (!op.fill && may_leave(op.index[d], from.shape[d], node_.shape)) {
        return "a view without a fill stays within its operand";
      }
    }
    return {};
  }

  std::string operator()(const ReshapeOp&) const {
    if (auto broken = operands(1); !broken.empty()) return broken;
    if (operand(0).dtype != node_.dtype) return "a reshape has its operand's type";
    return element_count(operand(0).shape) == element_count(node_.shape)
               ? ""
               : "a reshape has its operand's number of elements";
  }

  std::string operator()(const ConcatOp& op) const {
    if (node_.inputs.empty()) return "a concat has operands";
    if (op.axis < 0 || at(op.axis) >= node_.shape.size()) return "a concat has its axis";
    std::int64_t total = 0;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      Shape rest = operand(i).shape;
      if (operand(i).dtype != node_.dtype) return "the operands of a concat have its type";
      if (rest.size() != node_.shape.size()) return "the operands of a concat have its rank";
      total += rest[at(op.axis)];
      rest[at(op.axis)] = node_.shape[at(op.axis)];
      if (rest != node_.shape) return "the operands of a concat fit but for the axis";
    }
    return total == node_.shape[at(op.axis)] ? "" : "the operands of a concat add up";
  }

  std::string operator()(const ReduceNodeOp& op) const {
    if (auto broken = operands(1); !broken.empty()) return broken;
    const Node& from = operand(0);
    if (from.dtype != node_.dtype) return "a reduction has its operand's type";
    if (node_.dtype == DType::Bool && (op.op == ReduceOp::Sum || op.op == ReduceOp::Product)) {
      return "a reduction of bool is max or min";
    }
    Shape kept = from.shape;
    int previous = static_cast<int>(kept.size());
    for (auto axis = op.axes.rbegin(); axis != op.axes.rend(); ++axis) {
      if (*axis < 0 || *axis >= previous) return "a reduction has sorted axes of its operand";
      kept.erase(kept.begin() + *axis);
      previous = *axis;
    }
    return kept == node_.shape ? "" : "a reduction drops its axes";
  }

  std::string operator()(const ContractOp& op) const {
    if (node_.inputs.empty()) return "a contraction has operands";
    if (node_.dtype == DType::Bool) return "a contraction is not bool";
    if (std::ranges::any_of(op.extents, [](std::int64_t extent) { return extent < 0; })) {
      return "the extents of a contraction are not negative";
    }
    if (op.output_axes < 0 || at(op.output_axes) > op.extents.size()) {
      return "a contraction has its output axes";
    }
    if (op.output.size() != node_.shape.size()) return "a contraction has an index per dimension";
    for (const AffineIndex& index : op.output) {
      if (!well_formed(index, at(op.output_axes))) return "an output index is over output axes";
    }
    if (op.operands.size() != node_.inputs.size()) return "a contraction indexes each operand";
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (op.operands[i].size() != operand(i).shape.size()) {
        return "a contraction has an index per dimension";
      }
      for (const AffineIndex& index : op.operands[i]) {
        if (!well_formed(index, op.extents.size())) return "an index is well-formed";
      }
    }
    return hits_each_once(op, node_.shape) ? "" : "a contraction hits each output once";
  }

  std::string operator()(const GatherOp& op) const {
    if (auto broken = operands(2); !broken.empty()) return broken;
    const Node& data = operand(0);
    const Node& index = operand(1);
    if (data.dtype != node_.dtype) return "a gather has its data's type";
    if (index.dtype != DType::I32 && index.dtype != DType::I64) return "an index is i32 or i64";
    if (op.axis < 0 || at(op.axis) >= data.shape.size()) return "a gather has its axis";
    Shape shape(data.shape.begin(), data.shape.begin() + op.axis);
    shape.insert(shape.end(), index.shape.begin(), index.shape.end());
    shape.insert(shape.end(), data.shape.begin() + op.axis + 1, data.shape.end());
    if (shape != node_.shape) return "a gather replaces its axis by the index's dimensions";
    if (data.shape[at(op.axis)] == 0 && element_count(shape) != 0) return "a gather has data";
    return {};
  }

 private:
  [[nodiscard]] const Node& operand(std::size_t i) const { return graph_[node_.inputs[i]]; }
  [[nodiscard]] std::string operands(std::size_t count) const {
    if (node_.inputs.size() == count) return {};
    return fmt::format("this operation has {} operands", count);
  }

  const Graph& graph_;
  const Node& node_;
};

class Validation {
 public:
  explicit Validation(const Graph& graph) : graph_(graph) {}

  Result<void> run() {
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      if (const auto broken = check_node(i); !broken.empty())
        return ill_formed(value_name(i), broken);
    }
    std::set<std::string_view> output_names;
    for (const GraphOutput& output : graph_.outputs) {
      const std::string place = fmt::format("output '{}'", output.name);
      if (!exists(output.value)) return ill_formed(place, "an output has a value");
      if (output.name.empty() || !output_names.insert(output.name).second) {
        return ill_formed(place, "an output has a name of its own");
      }
    }
    std::set<ValueId> state_inputs;
    for (const GraphState& state : graph_.states) {
      const std::string place = "state " + value_name(state.state.index);
      if (!is_input(state.state)) return ill_formed(place, "a state is an input");
      if (!state_inputs.insert(state.state).second)
        return ill_formed(place, "a state has one next");
      if (!exists(state.next)) return ill_formed(place, "a state has a next value");
      const Node& now = graph_[state.state];
      const Node& next = graph_[state.next];
      Shape written = now.shape;
      if (state.entry) {
        if (!is_input(*state.entry) || graph_[*state.entry].dtype != DType::I64 ||
            element_count(graph_[*state.entry].shape) != 1 || written.empty() || written[0] == 0) {
          return ill_formed(place, "an input of one i64 says which entry of a ring is next");
        }
        written[0] = 1;
      }
      if (now.dtype != next.dtype || written != next.shape ||
          (state.initial && !agrees(*state.initial, now.dtype, now.shape))) {
        return ill_formed(place, "a state keeps its type");
      }
    }
    for (const GraphTransform& transform : graph_.transforms) {
      if (const auto broken = check_transform(transform); !broken.empty()) {
        return ill_formed("transform of " + value_name(transform.input.index), broken);
      }
    }
    for (const GraphCamera& camera : graph_.cameras) {
      const std::string place = "camera " + value_name(camera.input.index);
      if (!is_input(camera.input)) return ill_formed(place, "a camera is an input");
      const Node& node = graph_[camera.input];
      if (node.dtype != DType::U8 || node.shape.size() != 1) {
        return ill_formed(place, "a camera is bytes in one dimension");
      }
      if (camera.camera < 0) return ill_formed(place, "a camera has an index");
    }
    return {};
  }

 private:
  static std::string value_name(std::uint32_t index) { return fmt::format("%{}", index); }

  [[nodiscard]] std::unexpected<Failure> ill_formed(const std::string& place,
                                                    const std::string& rule) const {
    return fail(ExitCode::Internal, "ill-formed-graph",
                fmt::format("graph '{}', {}: broken rule: {}", graph_.name, place, rule));
  }

  [[nodiscard]] bool exists(ValueId id) const { return id.index < graph_.nodes.size(); }
  [[nodiscard]] bool is_input(ValueId id) const {
    return exists(id) && std::holds_alternative<InputOp>(graph_[id].op);
  }

  std::string check_node(std::uint32_t index) {
    const Node& node = graph_.nodes[index];
    const auto code = static_cast<int>(node.dtype);
    if (code < static_cast<int>(DType::F32) || code > static_cast<int>(DType::U64)) {
      return "a node has an element type";
    }
    if (!fits_memory(node.dtype, node.shape)) return "a shape fits memory";
    for (const ValueId input : node.inputs) {
      if (input.index >= index) return "a node reads only earlier values";
    }
    if (const auto* input = std::get_if<InputOp>(&node.op)) {
      if (!input_names_.insert(input->name).second) return "an input has a name of its own";
    }
    return std::visit(NodeRules(graph_, node), node.op);
  }

  [[nodiscard]] std::string check_transform(const GraphTransform& transform) const {
    constexpr std::int64_t kMatrixBytes = 36;
    if (!is_input(transform.input)) return "a matrix lies in an input";
    const Node& matrix = graph_[transform.input];
    if (matrix.dtype != DType::F32) return "a matrix is f32";
    const std::int64_t size = element_count(matrix.shape) * size_bytes(matrix.dtype);
    if (transform.offset_bytes < 0 || transform.offset_bytes % 4 != 0 ||
        transform.offset_bytes > size - kMatrixBytes) {
      return "a matrix lies within its input";
    }
    if (transform.width < 1 || transform.height < 1) return "a transform has a rectangle";
    if (!is_input(transform.frame)) return "a frame is an input";
    if (graph_[transform.frame].dtype != DType::U8) return "a frame is bytes";
    return {};
  }

  const Graph& graph_;
  std::set<std::string_view> input_names_;
};

}  // namespace

Result<void> validate_graph(const Graph& graph) { return Validation(graph).run(); }

}  // namespace ingot
