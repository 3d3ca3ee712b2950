// Scalar operations by their meaning, for interpreters and checks; transcendental ones use the C
// library, so that nothing of this may reach an artifact.
//
// Values are held as Scalar::bits: floats as binary64, everything else as 64 bits in two's
// complement. Every result is rounded, or wrapped, to its type.
#pragma once

#include <cstdint>

#include "compiler/tensor/dtype.h"
#include "compiler/tensor/scalar.h"
#include "compiler/tensor/scalar_op.h"

namespace ingot {

// `operand`: type of the operands; unused ones are ignored. Select is not among the operations.
[[nodiscard]] std::uint64_t apply(ScalarOp op, DType operand, std::uint64_t a, std::uint64_t b = 0,
                                  std::uint64_t c = 0);
// As CastOp does.
[[nodiscard]] std::uint64_t convert(DType from, DType to, std::uint64_t value);

}  // namespace ingot
