// Builds graphs: checks every operand, infers shapes and types, folds exact arithmetic.
//
// Equal nodes are made once; chains of views become one view, chains of reshapes one reshape. A
// map, cast, concat, gather or integer reduction of known operands becomes a constant where its
// bits are certain (compiler/tensor/exact.h, at most 4096 elements). Views and reshapes of
// constants stay as they are, so that layout passes see the constant they come from.
//
// The one way to make graph nodes; ONNX import, camera warps and pipelines all use it. Operands
// must belong to the same builder. Broken preconditions that a model can cause are checked by the
// caller, which knows how to name them; here they are INGOT_CHECKs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/graph/graph.h"

namespace ingot {

class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name) { graph_.name = std::move(name); }

  // --- leaves
  ValueId input(std::string name, DType dtype, Shape shape);
  ValueId constant(Tensor tensor);
  ValueId splat(Scalar value, Shape shape);  // one element, expanded by a view
  ValueId iota(DType dtype, Shape shape, int axis);

  // --- elementwise; operands are broadcast NumPy-style, dtypes must agree
  ValueId map(ScalarOp op, std::span<const ValueId> operands);
  ValueId map(ScalarOp op, ValueId a);
  ValueId map(ScalarOp op, ValueId a, ValueId b);
  ValueId map(ScalarOp op, ValueId a, ValueId b, ValueId c);
  ValueId add(ValueId a, ValueId b) { return map(ScalarOp::Add, a, b); }
  ValueId sub(ValueId a, ValueId b) { return map(ScalarOp::Sub, a, b); }
  ValueId mul(ValueId a, ValueId b) { return map(ScalarOp::Mul, a, b); }
  ValueId div(ValueId a, ValueId b) { return map(ScalarOp::Div, a, b); }
  ValueId min(ValueId a, ValueId b) { return map(ScalarOp::Min, a, b); }
  ValueId max(ValueId a, ValueId b) { return map(ScalarOp::Max, a, b); }
  ValueId select(ValueId condition, ValueId then_value, ValueId else_value);
  ValueId cast(ValueId value, DType dtype);
  // A scalar constant of the value's own dtype, to use as the other operand.
  ValueId like(ValueId value, double number);

  // --- movement
  ValueId view(ValueId value, Shape shape, std::vector<AffineIndex> index,
               std::optional<Scalar> fill = std::nullopt);
  ValueId reshape(ValueId value, Shape shape);
  ValueId transpose(ValueId value, std::span<const int> permutation);
  ValueId expand(ValueId value, Shape shape);  // NumPy broadcasting to exactly `shape`
  // starts and steps per dimension (steps may be negative, not 0); shape = resulting extents.
  ValueId slice(ValueId value, std::span<const std::int64_t> starts,
                std::span<const std::int64_t> steps, Shape shape);
  // Negative padding crops.
  ValueId pad(ValueId value, std::span<const std::int64_t> before,
              std::span<const std::int64_t> after, Scalar fill);
  // Appends one axis per window dimension: out[..., y, x, ky, kx] = in[..., y*s+ky*d-p, ...].
  // The last window.size() dimensions of the input slide; output extents are given.
  struct Window {
    std::vector<std::int64_t> extents, strides, dilations, pads_before, outputs;
  };
  ValueId windows(ValueId value, const Window& window, Scalar fill);
  ValueId concat(std::span<const ValueId> values, int axis);  // at least one value

  // --- reductions
  ValueId reduce(ReduceOp op, ValueId value, std::vector<int> axes, bool keep_dimensions);
  ValueId contract(DType dtype, std::span<const ValueId> operands, ContractOp op);
  ValueId matmul(ValueId a, ValueId b);  // NumPy matmul of ranks >= 1, broadcasts batches
  // ONNX convolution without bias: x [N,C,spatial...], w [O,C/groups,kernel...].
  struct Convolution {
    std::vector<std::int64_t> strides, dilations, pads_before, outputs;
    std::int64_t groups = 1;
  };
  ValueId convolution(ValueId x, ValueId w, const Convolution& convolution);
  // A known index in range is counted from the start; with equal steps the result is a view.
  ValueId gather(ValueId data, ValueId index, int axis, bool in_range = false);

  // --- compositions
  ValueId sigmoid(ValueId x) { return map(ScalarOp::Sigmoid, x); }
  ValueId softmax(ValueId x, int axis);

  // --- declarations
  void output(std::string name, ValueId value);
  void state(ValueId input, ValueId next, std::optional<Tensor> initial = std::nullopt,
             std::optional<ValueId> entry = std::nullopt);
  void transform(GraphTransform transform) { graph_.transforms.push_back(transform); }
  void camera(GraphCamera camera) { graph_.cameras.push_back(camera); }

  // Nodes added from now on carry this policy and this source.
  void set_strict(bool strict) { strict_ = strict; }
  [[nodiscard]] bool strict() const { return strict_; }
  void set_source(std::string source) { source_ = std::move(source); }

  [[nodiscard]] const Node& operator[](ValueId id) const { return graph_[id]; }
  [[nodiscard]] const Shape& shape(ValueId id) const { return graph_[id].shape; }
  [[nodiscard]] DType dtype(ValueId id) const { return graph_[id].dtype; }
  // The value, if it is known while building: a constant or its reshape of any size, or a view,
  // iota, concat or exact arithmetic of known values with at most 4096 elements.
  [[nodiscard]] std::optional<Tensor> known(ValueId id) const;
  [[nodiscard]] std::optional<std::vector<std::int64_t>> known_ints(ValueId id) const;

  // Adds all nodes of `other` (none of its outputs, states or other declarations), mapping its
  // inputs by name to `bindings`; returns other's values in this builder, indexed by
  // ValueId::index. Inputs without a binding become inputs here.
  struct Binding {
    std::string name;
    ValueId value;
  };
  std::vector<ValueId> splice(const Graph& other, std::span<const Binding> bindings);

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] Graph take() { return std::move(graph_); }

 private:
  ValueId append(Node node);
  Node node(GraphOp op, DType dtype, Shape shape, std::vector<ValueId> inputs) const;
  // The node's value as a constant or splat if it is certain, else the node itself.
  ValueId fold_or_append(Node node);
  std::optional<Scalar> splat_value(ValueId value) const;
  ValueId same_order(ValueId value) const;

  Graph graph_;
  bool strict_ = false;
  std::string source_;
  std::unordered_map<std::string, ValueId> known_nodes_;  // by text, for constants by content
  std::vector<bool> is_known_;                            // per node: known() may have a value
};

// NumPy broadcasting; nullopt if the shapes do not fit.
[[nodiscard]] std::optional<Shape> broadcast_shapes(const Shape& a, const Shape& b);

}  // namespace ingot
