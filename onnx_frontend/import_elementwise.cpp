// Elementwise operators: one scalar operation per element, or a short composition of them.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "onnx_frontend/importers.h"
#include "onnx_frontend/legacy_broadcast.h"

namespace ingot {
namespace {

using enum ScalarOp;

Result<void> unary(NodeImport& node, ScalarOp op, Types types) {
  node.attributes.ignore({"consumed_inputs"});
  INGOT_ASSIGN(const ValueId x, node.input(0, types));
  INGOT_RETURN_IF_ERROR(node.at_most(1));
  return node.set_output(node.builder.map(op, x));
}

// out = compute(x) for a single float input, in f32 where the type is narrower.
template <typename Compute>
Result<void> composed(NodeImport& node, Compute compute) {
  node.attributes.ignore({"consumed_inputs"});
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  INGOT_RETURN_IF_ERROR(node.at_most(1));
  return node.set_output(in_f32(node.builder, x, compute));
}

// Two operands of one type, broadcast as the opset says.
struct Operands {
  ValueId a, b;
};

Result<Operands> operands(NodeImport& node, Types types) {
  const LegacyBroadcast legacy = read_legacy_broadcast(node);
  INGOT_ASSIGN(const ValueId a, node.input(0, types));
  INGOT_ASSIGN(ValueId b, node.input(1, types));
  INGOT_RETURN_IF_ERROR(node.at_most(2));
  INGOT_RETURN_IF_ERROR(node.same_type(a, b));
  INGOT_ASSIGN(b, align_legacy(node, legacy, a, b));
  INGOT_RETURN_IF_ERROR(node.broadcast(node.shape(a), node.shape(b)));
  return Operands{a, b};
}

Result<void> binary(NodeImport& node, ScalarOp op, Types types) {
  INGOT_ASSIGN(const Operands x, operands(node, types));
  return node.set_output(node.builder.map(op, x.a, x.b));
}

// For operators that are a comparison with the operands exchanged.
Result<void> binary_swapped(NodeImport& node, ScalarOp op, Types types) {
  INGOT_ASSIGN(const Operands x, operands(node, types));
  return node.set_output(node.builder.map(op, x.b, x.a));
}

Result<ValueId> folded(NodeImport& node, ScalarOp op, Types types) {
  INGOT_ASSIGN(const std::vector<ValueId> values, node.all_inputs(1, types));
  ValueId result = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) {
    INGOT_RETURN_IF_ERROR(node.broadcast(node.shape(result), node.shape(values[i])));
    result = node.builder.map(op, result, values[i]);
  }
  return result;
}

Result<void> variadic(NodeImport& node, ScalarOp op, Types types) {
  node.attributes.ignore({"consumed_inputs"});
  INGOT_ASSIGN(const ValueId result, folded(node, op, types));
  return node.set_output(result);
}

// max(x, 0) + log(1 + exp(-|x|)): never overflows.
ValueId softplus(GraphBuilder& b, ValueId x) {
  const ValueId decay = b.map(Exp, b.map(Neg, b.map(Abs, x)));
  return b.add(b.max(x, b.like(x, 0)), b.map(Log, b.add(b.like(x, 1), decay)));
}

// exp(x) - 1 without cancellation: 2t / (1 - t) with t = tanh(x / 2); -1 below, where t is -1.
ValueId exp_minus_one(GraphBuilder& b, ValueId x) {
  const ValueId t = b.map(Tanh, b.mul(x, b.like(x, 0.5)));
  const ValueId near = b.div(b.mul(b.like(x, 2), t), b.sub(b.like(x, 1), t));
  const ValueId far = b.sub(b.map(Exp, x), b.like(x, 1));
  return b.select(b.map(Lt, b.map(Abs, x), b.like(x, 0.5)), near, far);
}

ValueId clamped_line(GraphBuilder& b, ValueId x, double slope, double offset) {
  const ValueId line = b.add(b.mul(x, b.like(x, slope)), b.like(x, offset));
  return b.max(b.like(x, 0), b.min(b.like(x, 1), line));
}

}  // namespace

Result<void> import_abs(NodeImport& node) {
  node.attributes.ignore({"consumed_inputs"});
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Numbers));
  const bool is_unsigned = is_integer(node.dtype(x)) && !is_signed(node.dtype(x));
  return node.set_output(is_unsigned ? x : node.builder.map(Abs, x));
}

Result<void> import_neg(NodeImport& node) { return unary(node, Neg, Types::SignedNumbers); }
Result<void> import_sqrt(NodeImport& node) { return unary(node, Sqrt, Types::Floats); }
Result<void> import_floor(NodeImport& node) { return unary(node, Floor, Types::Floats); }
Result<void> import_ceil(NodeImport& node) { return unary(node, Ceil, Types::Floats); }
Result<void> import_round(NodeImport& node) { return unary(node, Round, Types::Floats); }
Result<void> import_exp(NodeImport& node) { return unary(node, Exp, Types::Floats); }
Result<void> import_log(NodeImport& node) { return unary(node, Log, Types::Floats); }
Result<void> import_sin(NodeImport& node) { return unary(node, Sin, Types::Floats); }
Result<void> import_cos(NodeImport& node) { return unary(node, Cos, Types::Floats); }
Result<void> import_tanh(NodeImport& node) { return unary(node, Tanh, Types::Floats); }
Result<void> import_erf(NodeImport& node) { return unary(node, Erf, Types::Floats); }
Result<void> import_not(NodeImport& node) { return unary(node, Not, Types::Bool); }
Result<void> import_bitwise_not(NodeImport& node) { return unary(node, Not, Types::Integers); }
Result<void> import_is_nan(NodeImport& node) { return unary(node, IsNan, Types::Floats); }

Result<void> import_is_inf(NodeImport& node) {
  const bool negative = node.attributes.flag("detect_negative", true);
  const bool positive = node.attributes.flag("detect_positive", true);
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  GraphBuilder& b = node.builder;
  const double inf = HUGE_VAL;
  if (negative && positive) {
    return node.set_output(b.map(Eq, b.map(Abs, x), b.like(x, inf)));
  }
  if (!negative && !positive) {
    return node.set_output(b.splat(Scalar::zero(DType::Bool), node.shape(x)));
  }
  return node.set_output(b.map(Eq, x, b.like(x, positive ? inf : -inf)));
}

Result<void> import_sign(NodeImport& node) {
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Numbers));
  GraphBuilder& b = node.builder;
  const DType dtype = node.dtype(x);
  const ValueId zero = b.splat(Scalar::zero(dtype), {});
  const ValueId one = b.cast(b.splat(Scalar::of_int(DType::I32, 1), {}), dtype);
  const ValueId up = b.select(b.map(Lt, zero, x), one, x);
  if (!is_float(dtype) && !is_signed(dtype)) return node.set_output(up);
  const ValueId minus_one = b.cast(b.splat(Scalar::of_int(DType::I32, -1), {}), dtype);
  return node.set_output(b.select(b.map(Lt, x, zero), minus_one, up));
}

Result<void> import_reciprocal(NodeImport& node) {
  node.attributes.ignore({"consumed_inputs"});
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  return node.set_output(node.builder.div(node.builder.like(x, 1), x));
}

// --- activations

Result<void> import_relu(NodeImport& node) {
  node.attributes.ignore({"consumed_inputs"});
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Numbers));
  const ValueId zero = node.builder.splat(Scalar::zero(node.dtype(x)), {});
  return node.set_output(node.builder.max(x, zero));
}

Result<void> import_sigmoid(NodeImport& node) {
  return composed(node, [&](ValueId x) { return node.builder.sigmoid(x); });
}

Result<void> import_softplus(NodeImport& node) {
  return composed(node, [&](ValueId x) { return softplus(node.builder, x); });
}

Result<void> import_softsign(NodeImport& node) {
  GraphBuilder& b = node.builder;
  return composed(node, [&](ValueId x) { return b.div(x, b.add(b.like(x, 1), b.map(Abs, x))); });
}

Result<void> import_mish(NodeImport& node) {
  GraphBuilder& b = node.builder;
  return composed(node, [&](ValueId x) { return b.mul(x, b.map(Tanh, softplus(b, x))); });
}

Result<void> import_swish(NodeImport& node) {
  const double alpha = node.attributes.number("alpha", 1.0F);
  GraphBuilder& b = node.builder;
  return composed(node, [&](ValueId x) {
    return b.mul(x, b.sigmoid(alpha == 1 ? x : b.mul(x, b.like(x, alpha))));
  });
}

Result<void> import_hard_swish(NodeImport& node) {
  GraphBuilder& b = node.builder;
  return composed(node, [&](ValueId x) { return b.mul(x, clamped_line(b, x, 1.0 / 6, 0.5)); });
}

Result<void> import_hard_sigmoid(NodeImport& node) {
  const double alpha = node.attributes.number("alpha", 0.2F);
  const double beta = node.attributes.number("beta", 0.5F);
  return composed(node, [&](ValueId x) { return clamped_line(node.builder, x, alpha, beta); });
}

Result<void> import_leaky_relu(NodeImport& node) {
  const double alpha = node.attributes.number("alpha", 0.01F);
  node.attributes.ignore({"consumed_inputs"});
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  GraphBuilder& b = node.builder;
  const ValueId scaled = b.mul(x, b.like(x, alpha));
  return node.set_output(b.select(b.map(Lt, x, b.like(x, 0)), scaled, x));
}

Result<void> import_thresholded_relu(NodeImport& node) {
  const double alpha = node.attributes.number("alpha", 1.0F);
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  GraphBuilder& b = node.builder;
  return node.set_output(b.select(b.map(Lt, b.like(x, alpha), x), x, b.like(x, 0)));
}

Result<void> import_shrink(NodeImport& node) {
  const double bias = node.attributes.number("bias", 0.0F);
  const double lambda = node.attributes.number("lambd", 0.5F);
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  GraphBuilder& b = node.builder;
  const ValueId below = b.map(Lt, x, b.like(x, -lambda));
  const ValueId above = b.map(Lt, b.like(x, lambda), x);
  const ValueId inner = b.select(above, b.sub(x, b.like(x, bias)), b.like(x, 0));
  return node.set_output(b.select(below, b.add(x, b.like(x, bias)), inner));
}

namespace {

// gamma * (x > 0 ? x : alpha * (exp(x) - 1))
Result<void> exponential_unit(NodeImport& node, double alpha, double gamma) {
  GraphBuilder& b = node.builder;
  return composed(node, [&](ValueId x) {
    const ValueId zero = b.like(x, 0);
    // Above 0 the exponential is not used and must not overflow.
    const ValueId below = b.mul(b.like(x, alpha), exp_minus_one(b, b.min(x, zero)));
    const ValueId unit = b.select(b.map(Lt, x, zero), below, x);
    return gamma == 1 ? unit : b.mul(b.like(x, gamma), unit);
  });
}

}  // namespace

Result<void> import_elu(NodeImport& node) {
  return exponential_unit(node, node.attributes.number("alpha", 1.0F), 1);
}

Result<void> import_selu(NodeImport& node) {
  const double alpha = node.attributes.number("alpha", 1.67326319217681884765625F);
  const double gamma = node.attributes.number("gamma", 1.05070102214813232421875F);
  return exponential_unit(node, alpha, gamma);
}

// The defaults of opset 1 have fewer digits.
Result<void> import_selu_1(NodeImport& node) {
  const double alpha = node.attributes.number("alpha", 1.6732F);
  const double gamma = node.attributes.number("gamma", 1.0507F);
  return exponential_unit(node, alpha, gamma);
}

Result<void> import_celu(NodeImport& node) {
  const double alpha = node.attributes.number("alpha", 1.0F);
  if (alpha == 0) return node.malformed("alpha is 0");
  GraphBuilder& b = node.builder;
  return composed(node, [&](ValueId x) {
    const ValueId zero = b.like(x, 0);
    const ValueId scaled = b.div(x, b.like(x, alpha));
    const ValueId bent = b.mul(b.like(x, alpha), exp_minus_one(b, scaled));
    return b.add(b.max(x, zero), b.min(zero, bent));
  });
}

Result<void> import_gelu(NodeImport& node) {
  const std::string approximate = node.attributes.choice("approximate", {"none", "tanh"});
  GraphBuilder& b = node.builder;
  return composed(node, [&](ValueId x) {
    ValueId inner;
    if (approximate == "none") {
      inner = b.map(Erf, b.mul(x, b.like(x, 1 / std::numbers::sqrt2)));
    } else {
      const ValueId cube = b.mul(x, b.mul(x, x));
      const ValueId sum = b.add(x, b.mul(b.like(x, 0.044715), cube));
      inner = b.map(Tanh, b.mul(b.like(x, std::sqrt(2 / std::numbers::pi)), sum));
    }
    return b.mul(b.mul(b.like(x, 0.5), x), b.add(b.like(x, 1), inner));
  });
}

namespace {

Result<void> prelu(NodeImport& node, ValueId x, ValueId slope) {
  INGOT_RETURN_IF_ERROR(node.same_type(x, slope));
  INGOT_ASSIGN(const Shape shape, node.broadcast(node.shape(x), node.shape(slope)));
  if (shape != node.shape(x)) return node.malformed("the slope has more elements than x");
  GraphBuilder& b = node.builder;
  const ValueId zero = b.splat(Scalar::zero(node.dtype(x)), {});
  return node.set_output(b.select(b.map(Lt, x, zero), b.mul(x, slope), x));
}

}  // namespace

Result<void> import_prelu(NodeImport& node) {
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Numbers));
  INGOT_ASSIGN(const ValueId slope, node.input(1, Types::Numbers));
  return prelu(node, x, slope);
}

// Up to opset 6 the slope is one number or one per channel (dimension 1).
Result<void> import_prelu_per_channel(NodeImport& node) {
  node.attributes.ignore({"consumed_inputs"});
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  INGOT_ASSIGN(ValueId slope, node.input(1, Types::Floats));
  const std::int64_t count = element_count(node.shape(slope));
  if (count == 1) {
    slope = node.builder.reshape(slope, {});
  } else if (node.rank(slope) == 1 && node.rank(x) >= 2 && node.shape(x)[1] == count) {
    Shape per_channel(node.rank(x) - 1, 1);
    per_channel[0] = count;
    slope = node.builder.reshape(slope, per_channel);
  } else {
    return node.malformed(
        fmt::format("{} slopes do not fit the channels of {}", count, shape_text(node.shape(x))));
  }
  return prelu(node, x, slope);
}

// --- clip: first the lower bound, then the upper one, so that the upper one wins

Result<void> import_clip_attributes(NodeImport& node) {
  const bool has_min = node.attributes.has("min");
  const bool has_max = node.attributes.has("max");
  const double low = node.attributes.number("min", 0);
  const double high = node.attributes.number("max", 0);
  node.attributes.ignore({"consumed_inputs"});
  INGOT_ASSIGN(ValueId x, node.input(0, Types::Floats));
  GraphBuilder& b = node.builder;
  if (has_min) x = b.max(x, b.like(x, low));
  if (has_max) x = b.min(x, b.like(x, high));
  return node.set_output(x);
}

Result<void> import_clip(NodeImport& node) {
  INGOT_ASSIGN(ValueId x, node.input(0, Types::Numbers));
  INGOT_RETURN_IF_ERROR(node.at_most(3));
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    INGOT_ASSIGN(const std::optional<ValueId> bound, node.optional_input(i, Types::Numbers));
    if (!bound) continue;
    INGOT_RETURN_IF_ERROR(node.same_type(x, *bound));
    if (element_count(node.shape(*bound)) != 1) return node.malformed("a bound must be one number");
    const ValueId scalar = node.builder.reshape(*bound, {});
    x = i == 1 ? node.builder.max(x, scalar) : node.builder.min(x, scalar);
  }
  return node.set_output(x);
}

// --- arithmetic of two

Result<void> import_add(NodeImport& node) { return binary(node, Add, Types::Numbers); }
Result<void> import_sub(NodeImport& node) { return binary(node, Sub, Types::Numbers); }
Result<void> import_mul(NodeImport& node) { return binary(node, Mul, Types::Numbers); }
Result<void> import_div(NodeImport& node) { return binary(node, Div, Types::Numbers); }

Result<void> import_and(NodeImport& node) { return binary(node, And, Types::Bool); }
Result<void> import_or(NodeImport& node) { return binary(node, Or, Types::Bool); }
Result<void> import_xor(NodeImport& node) { return binary(node, Xor, Types::Bool); }
Result<void> import_bitwise_and(NodeImport& node) { return binary(node, And, Types::Integers); }
Result<void> import_bitwise_or(NodeImport& node) { return binary(node, Or, Types::Integers); }
Result<void> import_bitwise_xor(NodeImport& node) { return binary(node, Xor, Types::Integers); }

Result<void> import_equal(NodeImport& node) { return binary(node, Eq, Types::Any); }
Result<void> import_less(NodeImport& node) { return binary(node, Lt, Types::Numbers); }
Result<void> import_less_or_equal(NodeImport& node) { return binary(node, Le, Types::Numbers); }
Result<void> import_greater(NodeImport& node) { return binary_swapped(node, Lt, Types::Numbers); }
Result<void> import_greater_or_equal(NodeImport& node) {
  return binary_swapped(node, Le, Types::Numbers);
}

Result<void> import_max(NodeImport& node) { return variadic(node, Max, Types::Numbers); }
Result<void> import_min(NodeImport& node) { return variadic(node, Min, Types::Numbers); }
Result<void> import_sum(NodeImport& node) { return variadic(node, Add, Types::Floats); }

Result<void> import_mean(NodeImport& node) {
  node.attributes.ignore({"consumed_inputs"});
  INGOT_ASSIGN(const ValueId sum, folded(node, Add, Types::Floats));
  GraphBuilder& b = node.builder;
  return node.set_output(b.div(sum, b.like(sum, static_cast<double>(node.input_count()))));
}

Result<void> import_where(NodeImport& node) {
  INGOT_ASSIGN(const ValueId condition, node.input(0, Types::Bool));
  INGOT_ASSIGN(const ValueId x, node.input(1));
  INGOT_ASSIGN(const ValueId y, node.input(2));
  INGOT_RETURN_IF_ERROR(node.at_most(3));
  INGOT_RETURN_IF_ERROR(node.same_type(x, y));
  INGOT_ASSIGN(const Shape values, node.broadcast(node.shape(x), node.shape(y)));
  INGOT_RETURN_IF_ERROR(node.broadcast(node.shape(condition), values));
  return node.set_output(node.builder.select(condition, x, y));
}

// 2^n by squaring: one factor for each bit of n.
Result<void> import_bit_shift(NodeImport& node) {
  const std::string direction = node.attributes.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    return node.malformed("direction must be LEFT or RIGHT");
  }
  INGOT_ASSIGN(const Operands x, operands(node, Types::Integers));
  const DType dtype = node.dtype(x.a);
  if (is_signed(dtype)) return node.malformed("bits of a signed type are not shifted");
  GraphBuilder& b = node.builder;
  const std::int64_t width = 8 * size_bytes(dtype);
  const auto number = [&](std::int64_t value) { return b.splat(Scalar::of_int(dtype, value), {}); };
  ValueId power = number(1);
  for (std::int64_t bit = 1; bit < width; bit *= 2) {
    const ValueId is_set = b.map(Ne, b.map(And, x.b, number(bit)), number(0));
    const auto factor = static_cast<std::int64_t>(std::uint64_t{1} << bit);
    power = b.mul(power, b.select(is_set, number(factor), number(1)));
  }
  const ValueId shifted = direction == "LEFT" ? b.mul(x.a, power) : b.div(x.a, power);
  return node.set_output(b.select(b.map(Lt, x.b, number(width)), shifted, number(0)));
}

Result<void> import_mod(NodeImport& node) {
  const bool fmod = node.attributes.flag("fmod", false);
  INGOT_ASSIGN(const Operands x, operands(node, Types::Numbers));
  GraphBuilder& b = node.builder;
  const DType dtype = node.dtype(x.a);
  if (is_integer(dtype)) {
    // With fmod the result has the sign of the dividend, as truncated division leaves it.
    return node.set_output(fmod ? b.sub(x.a, b.mul(b.div(x.a, x.b), x.b))
                                : b.map(FloorMod, x.a, x.b));
  }
  if (!fmod) return node.malformed("fmod must be 1 for floating point");
  if (dtype == DType::F64) {
    return node.unsupported("the remainder of float64 is not supported", "use float32");
  }
  // In f64 quotient and product are exact as long as |a / b| < 2^29; a quotient that was rounded up
  // to an integer leaves a remainder of the wrong sign, which one step corrects.
  const ValueId a = b.cast(x.a, DType::F64);
  const ValueId divisor = b.map(Abs, b.cast(x.b, DType::F64));
  const ValueId size = b.map(Abs, a);
  const ValueId rest = b.sub(size, b.mul(b.map(Floor, b.div(size, divisor)), divisor));
  const ValueId corrected = b.select(b.map(Lt, rest, b.like(rest, 0)), b.add(rest, divisor), rest);
  const ValueId is_infinite = b.map(Eq, divisor, b.like(divisor, HUGE_VAL));
  const ValueId is_finite = b.map(Lt, size, b.like(size, HUGE_VAL));
  const ValueId whole = b.select(b.map(And, is_infinite, is_finite), size, corrected);
  const ValueId is_negative = b.map(Lt, a, b.like(a, 0));
  const ValueId result = b.select(is_negative, b.map(Neg, whole), whole);
  return node.set_output(b.cast(result, dtype));
}

// --- hyperbolic functions

namespace {

// (e^x + e^-x) / 2, halved inside the exponentials so that it overflows only where the result does.
ValueId cosh_of(GraphBuilder& b, ValueId x) {
  const ValueId half = b.like(x, std::numbers::ln2);
  return b.add(b.map(Exp, b.sub(x, half)), b.map(Exp, b.sub(b.map(Neg, x), half)));
}

}  // namespace

Result<void> import_cosh(NodeImport& node) {
  return composed(node, [&](ValueId x) { return cosh_of(node.builder, x); });
}

Result<void> import_sinh(NodeImport& node) {
  GraphBuilder& b = node.builder;
  return composed(node, [&](ValueId x) { return b.mul(b.map(Tanh, x), cosh_of(b, x)); });
}

Result<void> import_tan(NodeImport& node) {
  GraphBuilder& b = node.builder;
  return composed(node, [&](ValueId x) { return b.div(b.map(Sin, x), b.map(Cos, x)); });
}

}  // namespace ingot
