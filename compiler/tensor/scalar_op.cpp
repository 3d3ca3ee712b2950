#include "compiler/tensor/scalar_op.h"

#include <array>

#include "base/check.h"

namespace ingot {
namespace {

struct Row {
  std::string_view name;
  int operands;
};

constexpr std::array kRows = {
#define SCALAR_OP(enumerator, text, operands) Row{text, operands},
#include "compiler/tensor/scalar_op.def"
#undef SCALAR_OP
};

const Row& row(ScalarOp op) {
  const auto index = static_cast<std::size_t>(op);
  INGOT_CHECK(index < kRows.size(), "not a scalar operation");
  return kRows[index];
}

}  // namespace

std::string_view name(ScalarOp op) { return row(op).name; }
int operand_count(ScalarOp op) { return row(op).operands; }

std::optional<ScalarOp> scalar_op_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<ScalarOp>(i);
  }
  return std::nullopt;
}

bool gives_bool(ScalarOp op) {
  switch (op) {
    case ScalarOp::IsNan:
    case ScalarOp::Eq:
    case ScalarOp::Ne:
    case ScalarOp::Lt:
    case ScalarOp::Le: return true;
    case ScalarOp::Neg:
    case ScalarOp::Abs:
    case ScalarOp::Not:
    case ScalarOp::Sqrt:
    case ScalarOp::Floor:
    case ScalarOp::Ceil:
    case ScalarOp::Trunc:
    case ScalarOp::Round:
    case ScalarOp::Exp:
    case ScalarOp::Log:
    case ScalarOp::Sin:
    case ScalarOp::Cos:
    case ScalarOp::Tanh:
    case ScalarOp::Sigmoid:
    case ScalarOp::SigmoidInSteps:
    case ScalarOp::Erf:
    case ScalarOp::Add:
    case ScalarOp::Sub:
    case ScalarOp::Mul:
    case ScalarOp::Div:
    case ScalarOp::FloorDiv:
    case ScalarOp::FloorMod:
    case ScalarOp::Min:
    case ScalarOp::Max:
    case ScalarOp::And:
    case ScalarOp::Or:
    case ScalarOp::Xor:
    case ScalarOp::Fma:
    case ScalarOp::Select: return false;
  }
  return false;
}

bool accepts(ScalarOp op, DType dtype) {
  switch (op) {
    case ScalarOp::Neg:
    case ScalarOp::Abs:
    case ScalarOp::Add:
    case ScalarOp::Sub:
    case ScalarOp::Mul:
    case ScalarOp::Div: return dtype != DType::Bool;
    case ScalarOp::Sqrt:
    case ScalarOp::Floor:
    case ScalarOp::Ceil:
    case ScalarOp::Trunc:
    case ScalarOp::Round:
    case ScalarOp::IsNan:
    case ScalarOp::Exp:
    case ScalarOp::Log:
    case ScalarOp::Sin:
    case ScalarOp::Cos:
    case ScalarOp::Tanh:
    case ScalarOp::Sigmoid:
    case ScalarOp::SigmoidInSteps:
    case ScalarOp::Erf:
    case ScalarOp::Fma: return is_float(dtype);
    case ScalarOp::FloorDiv:
    case ScalarOp::FloorMod: return is_integer(dtype);
    case ScalarOp::Not:
    case ScalarOp::And:
    case ScalarOp::Or:
    case ScalarOp::Xor: return !is_float(dtype);
    // On bool, false < true.
    case ScalarOp::Min:
    case ScalarOp::Max:
    case ScalarOp::Eq:
    case ScalarOp::Ne:
    case ScalarOp::Lt:
    case ScalarOp::Le:
    case ScalarOp::Select: return true;
  }
  return false;
}

int operations(ScalarOp op) {
  switch (op) {
    case ScalarOp::Fma: return 2;
    case ScalarOp::Exp: return 21;
    case ScalarOp::Log: return 28;
    case ScalarOp::Sin:
    case ScalarOp::Cos: return 30;
    case ScalarOp::Tanh: return 36;
    case ScalarOp::Sigmoid: return 22;
    case ScalarOp::SigmoidInSteps: return 22;
    case ScalarOp::Erf: return 53;
    default: return 1;
  }
}

// Everything else is one operation, or a multiplication and an addition.
bool is_transcendental(ScalarOp op) { return operations(op) > 2; }

}  // namespace ingot
