// Pow: exact compositions for the exponents that models use, exp(y * log x) for the others.
#include <cmath>

#include "onnx_frontend/importers.h"
#include "onnx_frontend/legacy_broadcast.h"

namespace ingot {
namespace {

using enum ScalarOp;

constexpr double largest_integer_exponent = 64;

// x^n by squaring; the base may be an integer.
ValueId integer_power(GraphBuilder& b, ValueId x, unsigned n) {
  std::optional<ValueId> result;
  ValueId square = x;
  while (true) {
    if (n & 1) result = result ? b.mul(*result, square) : square;
    n >>= 1;
    if (n == 0) break;
    square = b.mul(square, square);
  }
  return *result;
}

// sqrt, but for the values where a power differs: (-0)^0.5 = 0 and (-inf)^0.5 = inf.
ValueId half_power(GraphBuilder& b, ValueId x) {
  const ValueId root = b.map(Abs, b.map(Sqrt, x));
  return b.select(b.map(Eq, x, b.like(x, -HUGE_VAL)), b.like(x, HUGE_VAL), root);
}

// Any exponents. The magnitude is |x|^y; below zero only integer exponents have a value, and odd
// ones keep the sign.
ValueId general_power(GraphBuilder& b, ValueId x, ValueId y) {
  const ValueId zero = b.like(x, 0);
  const ValueId one = b.like(x, 1);
  const ValueId size = b.map(Abs, x);
  const ValueId raised = b.map(Exp, b.mul(y, b.map(Log, size)));
  // 1^y is 1 also for infinite y, where y * log 1 is not a number.
  const ValueId unit = b.map(And, b.map(Eq, size, one), b.map(Eq, y, y));
  const ValueId magnitude = b.select(unit, one, raised);
  const ValueId half = b.mul(y, b.like(y, 0.5));
  const ValueId is_integer = b.map(Eq, b.map(Floor, y), y);
  const ValueId is_odd = b.map(And, is_integer, b.map(Ne, b.map(Floor, half), half));
  const ValueId is_negative = b.map(Lt, b.div(one, x), zero);  // only of -0
  const ValueId is_below = b.map(Lt, x, zero);
  const ValueId is_finite = b.map(Lt, size, b.like(x, HUGE_VAL));
  const ValueId undefined = b.map(And, b.map(And, is_below, is_finite), b.map(Not, is_integer));
  const ValueId is_signed_base = b.map(Or, is_negative, is_below);
  const ValueId with_sign =
      b.select(b.map(And, is_signed_base, is_odd), b.map(Neg, magnitude), magnitude);
  const ValueId value = b.select(undefined, b.like(x, NAN), with_sign);
  const ValueId is_one = b.map(Or, b.map(Eq, y, zero), b.map(Eq, x, one));
  return b.select(is_one, one, value);
}

// The one value of a constant exponent.
std::optional<double> single_exponent(const NodeImport& node) {
  const Result<std::vector<double>> exponents = node.known_numbers(1);
  if (!exponents || exponents->empty()) return std::nullopt;
  for (const double e : *exponents) {
    if (e != exponents->front()) return std::nullopt;
  }
  return exponents->front();
}

Result<ValueId> integer_base(NodeImport& node, ValueId x, std::optional<double> exponent) {
  if (!exponent || *exponent != std::floor(*exponent) || *exponent < 0 ||
      *exponent > largest_integer_exponent) {
    return node.unsupported("an integer base needs a known exponent from 0 to 64",
                            "cast the base to float32");
  }
  GraphBuilder& b = node.builder;
  if (*exponent == 0) return b.splat(Scalar::of_int(node.dtype(x), 1), node.shape(x));
  return integer_power(b, x, static_cast<unsigned>(*exponent));
}

ValueId known_power(GraphBuilder& b, ValueId x, ValueId y, double exponent) {
  const double size = std::abs(exponent);
  std::optional<ValueId> power;
  if (size == 0) return b.expand(b.like(x, 1), b.shape(x));
  if (size == 0.5) power = half_power(b, x);
  if (size == std::floor(size) && size <= largest_integer_exponent) {
    power = integer_power(b, x, static_cast<unsigned>(size));
  }
  if (!power) return general_power(b, x, y);
  return exponent < 0 ? b.div(b.like(x, 1), *power) : *power;
}

}  // namespace

Result<void> import_pow(NodeImport& node) {
  const LegacyBroadcast legacy = read_legacy_broadcast(node);
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Numbers));
  INGOT_ASSIGN(ValueId y, node.input(1, Types::Numbers));
  INGOT_RETURN_IF_ERROR(node.at_most(2));
  INGOT_ASSIGN(y, align_legacy(node, legacy, x, y));
  INGOT_ASSIGN(const Shape shape, node.broadcast(node.shape(x), node.shape(y)));
  const std::optional<double> exponent = single_exponent(node);
  GraphBuilder& b = node.builder;
  if (is_integer(node.dtype(x))) {
    INGOT_ASSIGN(const ValueId power, integer_base(node, x, exponent));
    return node.set_output(b.expand(power, shape));
  }
  const DType dtype = node.dtype(x);
  const DType compute = dtype == DType::F64 ? DType::F64 : DType::F32;
  const ValueId base = b.cast(x, compute);
  const ValueId power = exponent ? known_power(b, base, b.cast(y, compute), *exponent)
                                 : general_power(b, base, b.cast(y, compute));
  return node.set_output(b.expand(b.cast(power, dtype), shape));
}

}  // namespace ingot
