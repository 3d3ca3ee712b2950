#include "compiler/tensor/exact.h"

#include <cmath>

#include "base/check.h"

namespace ingot {
namespace {

Scalar truth(bool value) { return Scalar{DType::Bool, value ? std::uint64_t{1} : 0}; }

// Signed 64-bit division by anything but 0 and -1, rounded down, and what it leaves.
std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return quotient - ((a % b != 0 && ((a < 0) != (b < 0))) ? 1 : 0);
}

std::int64_t floor_remainder(std::int64_t a, std::int64_t b) {
  const std::int64_t rest = a % b;
  return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
}

std::optional<Scalar> evaluate_integer(ScalarOp op, std::span<const Scalar> operands) {
  const DType dtype = operands[0].dtype;
  const std::uint64_t x = operands[0].bits;
  const std::uint64_t y = operands.size() > 1 ? operands[1].bits : 0;
  const auto a = static_cast<std::int64_t>(x);
  const auto b = static_cast<std::int64_t>(y);
  // Narrower unsigned types are not negative as 64-bit values: only u64 needs its own order.
  const bool wide = dtype == DType::U64;
  const bool less = wide ? x < y : a < b;
  const auto made = [dtype](std::uint64_t bits) {
    return Scalar::of_int(dtype, static_cast<std::int64_t>(bits));
  };
  switch (op) {
    case ScalarOp::Neg: return made(0 - x);
    case ScalarOp::Abs: return made(!wide && a < 0 ? 0 - x : x);
    case ScalarOp::Not: return dtype == DType::Bool ? truth(x == 0) : made(~x);
    case ScalarOp::Add: return made(x + y);
    case ScalarOp::Sub: return made(x - y);
    case ScalarOp::Mul: return made(x * y);
    case ScalarOp::Div:
    case ScalarOp::FloorDiv:
      if (y == 0) return made(0);
      if (wide) return made(x / y);
      if (b == -1) return made(0 - x);
      return made(static_cast<std::uint64_t>(op == ScalarOp::Div ? a / b : floor_quotient(a, b)));
    case ScalarOp::FloorMod:
      if (y == 0 || (!wide && b == -1)) return made(0);
      if (wide) return made(x % y);
      return made(static_cast<std::uint64_t>(floor_remainder(a, b)));
    case ScalarOp::Min: return less ? operands[0] : operands[1];
    case ScalarOp::Max: return less ? operands[1] : operands[0];
    case ScalarOp::And: return made(x & y);
    case ScalarOp::Or: return made(x | y);
    case ScalarOp::Xor: return made(x ^ y);
    case ScalarOp::Eq: return truth(x == y);
    case ScalarOp::Ne: return truth(x != y);
    case ScalarOp::Lt: return truth(less);
    case ScalarOp::Le: return truth(less || x == y);
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
    case ScalarOp::Fma:
    case ScalarOp::Select: return std::nullopt;
  }
  return std::nullopt;
}

// T is the precision of the operands: every step is one operation of that type.
template <typename T>
std::optional<Scalar> evaluate_float(ScalarOp op, std::span<const Scalar> operands) {
  const auto a = static_cast<T>(operands[0].as_double());
  const auto b = operands.size() > 1 ? static_cast<T>(operands[1].as_double()) : T{0};
  const auto made = [&](T value) -> std::optional<Scalar> {
    if (std::isnan(value)) return std::nullopt;
    return Scalar::of_float(operands[0].dtype, static_cast<double>(value));
  };
  switch (op) {
    case ScalarOp::Neg: return made(-a);
    case ScalarOp::Abs: return made(std::fabs(a));
    case ScalarOp::Sqrt: return made(std::sqrt(a));
    case ScalarOp::Floor: return made(std::floor(a));
    case ScalarOp::Ceil: return made(std::ceil(a));
    case ScalarOp::Trunc: return made(std::trunc(a));
    case ScalarOp::Round: return made(std::nearbyint(a));
    case ScalarOp::Add: return made(a + b);
    case ScalarOp::Sub: return made(a - b);
    case ScalarOp::Mul: return made(a * b);
    case ScalarOp::Div: return made(a / b);
    case ScalarOp::Min:
    case ScalarOp::Max:
      if (std::isnan(a) || std::isnan(b)) return std::nullopt;
      if (a == b && std::signbit(a) != std::signbit(b)) return std::nullopt;
      return made(op == ScalarOp::Min ? (a < b ? a : b) : (a < b ? b : a));
    case ScalarOp::IsNan: return truth(std::isnan(a));
    case ScalarOp::Eq: return truth(a == b);
    case ScalarOp::Ne: return truth(a != b);
    case ScalarOp::Lt: return truth(a < b);
    case ScalarOp::Le: return truth(a <= b);
    case ScalarOp::Not:
    case ScalarOp::Exp:
    case ScalarOp::Log:
    case ScalarOp::Sin:
    case ScalarOp::Cos:
    case ScalarOp::Tanh:
    case ScalarOp::Sigmoid:
    case ScalarOp::SigmoidInSteps:
    case ScalarOp::Erf:
    case ScalarOp::FloorDiv:
    case ScalarOp::FloorMod:
    case ScalarOp::And:
    case ScalarOp::Or:
    case ScalarOp::Xor:
    case ScalarOp::Fma:
    case ScalarOp::Select: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Scalar> evaluate_exactly(ScalarOp op, std::span<const Scalar> operands) {
  INGOT_CHECK(static_cast<int>(operands.size()) == operand_count(op),
              "a scalar operation with the wrong number of operands");
  if (op == ScalarOp::Select) return operands[0].bits != 0 ? operands[1] : operands[2];
  switch (operands[0].dtype) {
    case DType::F32: return evaluate_float<float>(op, operands);
    case DType::F64: return evaluate_float<double>(op, operands);
    // Comparisons round nothing; the rest would be rounded twice.
    case DType::F16:
    case DType::BF16: return gives_bool(op) ? evaluate_float<double>(op, operands) : std::nullopt;
    default: return evaluate_integer(op, operands);
  }
}

std::optional<Scalar> cast_exactly(const Scalar& value, DType dtype) {
  if (value.dtype == dtype) return value;
  if (is_float(value.dtype)) {
    if (is_float(dtype) && std::isnan(value.as_double())) return std::nullopt;
    return Scalar::of_float(dtype, value.as_double());
  }
  if (!is_float(dtype)) return Scalar::of_int(dtype, value.as_int());
  if (size_bytes(value.dtype) < 8 || dtype == DType::F64) {
    return Scalar::of_float(dtype, value.as_double());
  }
  if (dtype != DType::F32) return std::nullopt;
  const float rounded = value.dtype == DType::U64 ? static_cast<float>(value.bits)
                                                  : static_cast<float>(value.as_int());
  return Scalar::of_float(dtype, static_cast<double>(rounded));
}

}  // namespace ingot
