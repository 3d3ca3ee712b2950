// The scalar operations shared by the graph's maps and by kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "compiler/tensor/dtype.h"

namespace ingot {

enum class ScalarOp : std::uint8_t {
#define SCALAR_OP(enumerator, text, operands) enumerator,
#include "compiler/tensor/scalar_op.def"
#undef SCALAR_OP
};

[[nodiscard]] std::string_view name(ScalarOp op);
[[nodiscard]] std::optional<ScalarOp> scalar_op_from_name(std::string_view name);
[[nodiscard]] int operand_count(ScalarOp op);
// Comparisons and IsNan give Bool, everything else the type of its last operand.
[[nodiscard]] bool gives_bool(ScalarOp op);
// Whether the operation is defined for operands of this type.
[[nodiscard]] bool accepts(ScalarOp op, DType dtype);

// Floating-point operations of one result: additions, multiplications and divisions of the
// approximation where there is one (relaxed, single precision: codegen/emit_math.cpp).
[[nodiscard]] int operations(ScalarOp op);
// Whether an approximation computes it: exp, log, sine and what is made of them.
[[nodiscard]] bool is_transcendental(ScalarOp op);

}  // namespace ingot
