// Scalar operations, casts and mathematical functions as LLVM values. Internal to codegen/: the
// only headers with LLVM types are this one, kernel_emitter.h and emit_kernel.h.
//
// Every value is one scalar or a vector with one element per lane; both are emitted the same way.
// Half and bfloat16 are held as i16, bool as i1.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <string>

#include "compiler/target/target.h"
#include "compiler/tensor/scalar.h"
#include "compiler/tensor/scalar_op.h"

namespace ingot {

// Where operations are emitted, and what may be used there.
struct Emission {
  llvm::IRBuilder<>& builder;
  const Target& target;
  std::string* refusal;  // first thing that cannot be emitted; empty if none

  void refuse(const std::string& what) const {
    if (refusal->empty()) *refusal = what;
  }
};

[[nodiscard]] llvm::Type* value_type(llvm::LLVMContext& context, DType dtype);
// Bool is a byte in memory.
[[nodiscard]] llvm::Type* memory_type(llvm::LLVMContext& context, DType dtype);
// `scalar`, or a vector of it with the lanes of `like`.
[[nodiscard]] llvm::Type* with_lanes_of(llvm::Type* scalar, llvm::Type* like);
[[nodiscard]] llvm::Constant* constant_value(llvm::LLVMContext& context, const Scalar& scalar);

// emit_arithmetic.cpp. `dtype` is that of the last operand; all values are scalars or all have
// the same lanes. A relaxed operation may fuse inside mathematical functions only.
[[nodiscard]] llvm::Value* emit_scalar_op(const Emission& emission, ScalarOp op, DType dtype,
                                          bool strict, llvm::ArrayRef<llvm::Value*> operands);
// emit_cast.cpp
// `fits`: a float that is NaN or inside of the range of an integer `to`.
[[nodiscard]] llvm::Value* emit_cast(const Emission& emission, DType from, DType to,
                                     llvm::Value* value, bool fits = false);
// emit_math.cpp: Exp to Erf of f32 or f64.
[[nodiscard]] llvm::Value* emit_math(const Emission& emission, ScalarOp op, DType dtype,
                                     bool strict, llvm::Value* value);

}  // namespace ingot
