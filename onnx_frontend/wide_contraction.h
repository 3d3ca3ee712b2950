// Matrix products and convolutions of half precision, summed in f32.
#pragma once

#include "compiler/graph/builder.h"

namespace ingot {

// The contraction `id` again, with products and sums in f32 if its type is f16 or bf16, rounded
// once at the end. Operands stay as they are, so that weights keep their two bytes.
inline ValueId sum_in_f32(GraphBuilder& builder, ValueId id) {
  const Node node = builder[id];
  const DType dtype = node.dtype;
  const auto* op = std::get_if<ContractOp>(&node.op);
  if (op == nullptr || (dtype != DType::F16 && dtype != DType::BF16)) return id;
  const std::vector<ValueId> operands = node.inputs;
  return builder.cast(builder.contract(DType::F32, operands, ContractOp(*op)), dtype);
}

}  // namespace ingot
