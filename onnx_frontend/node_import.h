// What an importer sees of the node that it translates.
//
// An importer reads its attributes, then its inputs, checks everything that GraphBuilder takes for
// granted, and sets the outputs. A failure needs only a message: file, node, operator and opset are
// filled in by import_graph.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compiler/graph/builder.h"
#include "onnx_frontend/attribute_reader.h"
#include "onnx_frontend/model.h"

namespace ingot {

// Which element types an input may have.
enum class Types { Any, Numbers, Floats, Integers, SignedNumbers, Bool, Index };

class NodeImport {
 public:
  // Translates a graph attribute in the scope of the node; gives the values of its outputs.
  using ImportBranch = std::function<Result<std::vector<ValueId>>(const OnnxGraph&)>;

  NodeImport(GraphBuilder& graph_builder, const OnnxNode& onnx_node, int version,
             std::vector<ValueId> values, ImportBranch branch);

  GraphBuilder& builder;
  const OnnxNode& node;
  const int opset;
  AttributeReader attributes;
  const ImportBranch import_branch;

  // --- inputs; trailing ones that are left out do not count
  [[nodiscard]] std::size_t input_count() const { return inputs_.size(); }
  [[nodiscard]] bool has_input(std::size_t i) const;
  [[nodiscard]] Result<ValueId> input(std::size_t i, Types types = Types::Any) const;
  [[nodiscard]] Result<std::optional<ValueId>> optional_input(std::size_t i,
                                                              Types types = Types::Any) const;
  // At least `least` inputs, none left out, all of one element type.
  [[nodiscard]] Result<std::vector<ValueId>> all_inputs(std::size_t least, Types types) const;
  // The value of an input that must be known while compiling, such as the shape of a Reshape.
  [[nodiscard]] Result<Tensor> known(std::size_t i) const;
  [[nodiscard]] Result<std::vector<std::int64_t>> known_ints(std::size_t i) const;
  [[nodiscard]] Result<std::vector<double>> known_numbers(std::size_t i) const;
  // Fails if there are more inputs than the operator has.
  [[nodiscard]] Result<void> at_most(std::size_t inputs) const;
  // Fails if there are inputs that the importer neither looked at nor allowed with at_most(): the
  // operator does not have them.
  [[nodiscard]] Result<void> no_surplus() const { return at_most(known_inputs_); }

  // --- outputs
  [[nodiscard]] std::size_t output_count() const { return node.outputs.size(); }
  [[nodiscard]] bool wants_output(std::size_t i) const;
  Result<void> set_output(ValueId value) { return set_output(0, value); }
  Result<void> set_output(std::size_t i, ValueId value);
  [[nodiscard]] const std::vector<ValueId>& outputs() const { return outputs_; }

  // --- failures
  [[nodiscard]] std::unexpected<Failure> malformed(std::string message) const;
  [[nodiscard]] std::unexpected<Failure> unsupported(std::string message,
                                                     std::string hint = {}) const;
  [[nodiscard]] std::unexpected<Failure> unsupported_attribute(std::string message,
                                                               std::string hint = {}) const;

  // --- checks that several families share
  [[nodiscard]] Result<void> same_type(ValueId a, ValueId b) const;
  [[nodiscard]] Result<Shape> broadcast(const Shape& a, const Shape& b) const;
  // From -rank..rank-1 to 0..rank-1; `rank` may be one more than the value's (Unsqueeze).
  [[nodiscard]] Result<int> axis(std::int64_t axis, std::size_t rank) const;
  // The same for a list without repetitions, sorted.
  [[nodiscard]] Result<std::vector<int>> axes(const std::vector<std::int64_t>& axes,
                                              std::size_t rank) const;
  // A shape that is computed from attributes or values: not negative, not absurdly large.
  [[nodiscard]] Result<Shape> checked_shape(Shape shape) const;

  // --- shorthands
  // A copy: adding nodes moves the originals.
  [[nodiscard]] Shape shape(ValueId id) const { return builder.shape(id); }
  [[nodiscard]] DType dtype(ValueId id) const { return builder.dtype(id); }
  [[nodiscard]] std::size_t rank(ValueId id) const { return builder.shape(id).size(); }
  [[nodiscard]] ValueId ints(const std::vector<std::int64_t>& values, Shape shape,
                             DType dtype = DType::I64) const;
  [[nodiscard]] ValueId floats(const std::vector<double>& values, Shape shape, DType dtype) const;

 private:
  [[nodiscard]] Result<void> check_type(std::size_t i, Types types) const;
  [[nodiscard]] std::string input_name(std::size_t i) const;
  void knows(std::size_t inputs) const { known_inputs_ = std::max(known_inputs_, inputs); }

  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  mutable std::size_t known_inputs_ = 0;
};

[[nodiscard]] bool accepts(Types types, DType dtype);
[[nodiscard]] std::string shape_text(const Shape& shape);  // "[1,3,8,8]"

// Runs `compute` in f32 for f16 and bf16 values, so that sums and exponentials keep their accuracy.
template <typename Compute>
ValueId in_f32(GraphBuilder& builder, ValueId x, Compute compute) {
  const DType dtype = builder.dtype(x);
  if (dtype != DType::F16 && dtype != DType::BF16) return compute(x);
  return builder.cast(compute(builder.cast(x, DType::F32)), dtype);
}

}  // namespace ingot
