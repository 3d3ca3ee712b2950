// Scalar operations whose bits do not depend on the machine that computes them.
//
// What the compiler folds must equal what the compiled code would have computed. Integer
// arithmetic and the operations that IEEE 754 rounds exactly qualify; transcendental functions
// have the bits of our own kernels, and only those kernels may compute them.
#pragma once

#include <optional>
#include <span>

#include "compiler/tensor/scalar.h"
#include "compiler/tensor/scalar_op.h"

namespace ingot {

// The value of the operation in its operands' own precision. nullopt for transcendental
// operations and fma, for arithmetic in f16 and bf16, for a result that is a NaN (its sign
// differs between machines), and for the minimum or maximum of zeros of unlike sign.
[[nodiscard]] std::optional<Scalar> evaluate_exactly(ScalarOp op, std::span<const Scalar> operands);

// The conversion of CastOp. nullopt for a NaN to another float type, and for 64-bit integers to
// f16 and bf16 (they would be rounded twice).
[[nodiscard]] std::optional<Scalar> cast_exactly(const Scalar& value, DType dtype);

}  // namespace ingot
