#include "compiler/tensor/scalar_arithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace ingot {
namespace {

using Bits = std::uint64_t;

double as_double(Bits bits) { return std::bit_cast<double>(bits); }
std::int64_t as_int(Bits bits) { return static_cast<std::int64_t>(bits); }
Bits of_double(double value) { return std::bit_cast<Bits>(value); }
Bits of_int(std::int64_t value) { return static_cast<Bits>(value); }

// Rounds once. Sums, products, quotients and square roots computed in binary64 are right after
// this: binary64 has more than twice the digits of the narrower formats.
double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::F32: return static_cast<double>(static_cast<float>(value));
    case DType::F16: return double_from_f16(f16_from_double(value));
    case DType::BF16: return double_from_bf16(bf16_from_double(value));
    default: return value;
  }
}

Bits wrap_to(DType dtype, Bits bits) {
  switch (dtype) {
    case DType::I8: return of_int(static_cast<std::int8_t>(bits));
    case DType::I16: return of_int(static_cast<std::int16_t>(bits));
    case DType::I32: return of_int(static_cast<std::int32_t>(bits));
    case DType::U8: return static_cast<std::uint8_t>(bits);
    case DType::U16: return static_cast<std::uint16_t>(bits);
    case DType::U32: return static_cast<std::uint32_t>(bits);
    default: return bits;
  }
}

// Moves an inexact binary64 value whose last digit is even one step toward what was cut off, so
// that rounding it to a narrower format cannot fall on a tie that is none.
double to_odd(double value, double rest) {
  const Bits bits = of_double(value);
  if (rest == 0 || !std::isfinite(value) || (bits & 1) != 0) return value;
  return std::nextafter(value, rest > 0 ? std::numeric_limits<double>::infinity()
                                        : -std::numeric_limits<double>::infinity());
}

double fused(DType dtype, double a, double b, double c) {
  if (dtype == DType::F64) return std::fma(a, b, c);
  if (dtype == DType::F32) {
    return static_cast<double>(
        std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)));
  }
  // The product of two short floats is exact; of the sum, the rest is known exactly.
  const double product = a * b;
  const double sum = product + c;
  const double part = sum - product;
  const double rest = (product - (sum - part)) + (c - part);
  return round_to(dtype, to_odd(sum, std::isfinite(rest) ? rest : 0));
}

// NaN if either is; -0 below +0.
double least(double a, double b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
double greatest(double a, double b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

// The operation before rounding to the type.
double float_operation(ScalarOp op, DType dtype, double a, double b, double c) {
  switch (op) {
    case ScalarOp::Neg: return -a;
    case ScalarOp::Abs: return std::fabs(a);
    case ScalarOp::Sqrt: return std::sqrt(a);
    case ScalarOp::Floor: return std::floor(a);
    case ScalarOp::Ceil: return std::ceil(a);
    case ScalarOp::Trunc: return std::trunc(a);
    case ScalarOp::Round: return std::nearbyint(a);
    case ScalarOp::Exp: return std::exp(a);
    case ScalarOp::Log: return std::log(a);
    case ScalarOp::Sin: return std::sin(a);
    case ScalarOp::Cos: return std::cos(a);
    case ScalarOp::Tanh: return std::tanh(a);
    case ScalarOp::Sigmoid:
    case ScalarOp::SigmoidInSteps: return 1 / (1 + std::exp(-a));
    case ScalarOp::Erf: return std::erf(a);
    case ScalarOp::Add: return a + b;
    case ScalarOp::Sub: return a - b;
    case ScalarOp::Mul: return a * b;
    case ScalarOp::Div: return a / b;
    case ScalarOp::Min: return least(a, b);
    case ScalarOp::Max: return greatest(a, b);
    case ScalarOp::Fma: return fused(dtype, a, b, c);
    case ScalarOp::Not:
    case ScalarOp::IsNan:
    case ScalarOp::FloorDiv:
    case ScalarOp::FloorMod:
    case ScalarOp::And:
    case ScalarOp::Or:
    case ScalarOp::Xor:
    case ScalarOp::Eq:
    case ScalarOp::Ne:
    case ScalarOp::Lt:
    case ScalarOp::Le:
    case ScalarOp::Select: break;
  }
  return 0;
}

Bits float_scalar(ScalarOp op, DType dtype, Bits a, Bits b, Bits c) {
  switch (op) {
    case ScalarOp::IsNan: return std::isnan(as_double(a)) ? 1 : 0;
    case ScalarOp::Eq: return as_double(a) == as_double(b) ? 1 : 0;
    case ScalarOp::Ne: return as_double(a) != as_double(b) ? 1 : 0;
    case ScalarOp::Lt: return as_double(a) < as_double(b) ? 1 : 0;
    case ScalarOp::Le: return as_double(a) <= as_double(b) ? 1 : 0;
    default:
      return of_double(
          round_to(dtype, float_operation(op, dtype, as_double(a), as_double(b), as_double(c))));
  }
}

std::int64_t signed_div(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return as_int(-of_int(a));  // wraps
  return a / b;
}
std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return as_int(-of_int(a));
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  if (b == 0 || b == -1) return 0;
  const std::int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

// Operands of integer or bool type `dtype`; the result before wrapping to it.
Bits integer_operation(ScalarOp op, DType dtype, Bits a, Bits b) {
  const bool is_unsigned = dtype == DType::U64;  // the others are held as signed numbers
  switch (op) {
    case ScalarOp::Neg: return -a;
    case ScalarOp::Abs: return is_signed(dtype) && as_int(a) < 0 ? -a : a;
    case ScalarOp::Not: return dtype == DType::Bool ? a ^ 1 : ~a;
    case ScalarOp::Add: return a + b;
    case ScalarOp::Sub: return a - b;
    case ScalarOp::Mul: return a * b;
    case ScalarOp::Div:
      if (is_unsigned) return b == 0 ? 0 : a / b;
      return of_int(signed_div(as_int(a), as_int(b)));
    case ScalarOp::FloorDiv:
      if (is_unsigned) return b == 0 ? 0 : a / b;
      return of_int(floor_div(as_int(a), as_int(b)));
    case ScalarOp::FloorMod:
      if (is_unsigned) return b == 0 ? 0 : a % b;
      return of_int(floor_mod(as_int(a), as_int(b)));
    case ScalarOp::Min:
      if (is_unsigned) return std::min(a, b);
      return of_int(std::min(as_int(a), as_int(b)));
    case ScalarOp::Max:
      if (is_unsigned) return std::max(a, b);
      return of_int(std::max(as_int(a), as_int(b)));
    case ScalarOp::And: return a & b;
    case ScalarOp::Or: return a | b;
    case ScalarOp::Xor: return a ^ b;
    case ScalarOp::Eq: return a == b ? 1 : 0;
    case ScalarOp::Ne: return a != b ? 1 : 0;
    case ScalarOp::Lt: return (is_unsigned ? a < b : as_int(a) < as_int(b)) ? 1 : 0;
    case ScalarOp::Le: return (is_unsigned ? a <= b : as_int(a) <= as_int(b)) ? 1 : 0;
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
    case ScalarOp::Select: break;
  }
  return 0;
}

// An integer as a float that rounds to every shorter format as the integer itself would.
double double_to_odd(std::uint64_t magnitude) {
  const auto value = static_cast<double>(magnitude);
  if (magnitude < (std::uint64_t{1} << 53)) return value;
  const int spare = 11 - std::countl_zero(magnitude);  // bits below binary64's last
  std::uint64_t kept = magnitude >> spare;
  if ((kept << spare) != magnitude) kept |= 1;
  return std::ldexp(static_cast<double>(kept), spare);
}

}  // namespace

Bits apply(ScalarOp op, DType operand, Bits a, Bits b, Bits c) {
  if (is_float(operand)) return float_scalar(op, operand, a, b, c);
  const Bits result = integer_operation(op, operand, a, b);
  return gives_bool(op) ? result : wrap_to(operand, result);
}

Bits convert(DType from, DType to, Bits value) {
  if (is_float(from)) {
    if (is_float(to)) return of_double(round_to(to, as_double(value)));
    return Scalar::of_float(to, as_double(value)).bits;
  }
  if (to == DType::Bool) return value != 0 ? 1 : 0;
  if (!is_float(to)) return wrap_to(to, value);
  const bool negative = from != DType::U64 && as_int(value) < 0;
  const std::uint64_t magnitude = negative ? -value : value;
  double result = 0;
  if (to == DType::F64) {
    result = static_cast<double>(magnitude);
  } else if (to == DType::F32) {
    result = static_cast<double>(static_cast<float>(magnitude));
  } else {
    result = round_to(to, double_to_odd(magnitude));
  }
  return of_double(negative ? -result : result);
}

}  // namespace ingot
