#include "compiler/kernel/expr.h"

#include <limits>
#include <utility>

#include "base/check.h"

namespace ingot {
namespace {

constexpr std::uint32_t kEmptySlot = 0xFFFFFFFF;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

std::uint64_t hash_of(const Expr& expr) {
  std::uint64_t hash = mix(0, static_cast<std::uint64_t>(expr.kind));
  hash = mix(hash, static_cast<std::uint64_t>(expr.dtype) << 32 |
                       static_cast<std::uint64_t>(expr.op) << 24 |
                       static_cast<std::uint64_t>(expr.reduce) << 16 |
                       static_cast<std::uint64_t>(expr.strict) << 8 |
                       static_cast<std::uint64_t>(expr.gated));
  hash = mix(hash, expr.id);
  hash = mix(hash, static_cast<std::uint64_t>(expr.constant.dtype));
  hash = mix(hash, expr.constant.bits);
  for (const ExprId operand : expr.operands) hash = mix(hash, operand.index);
  hash = mix(hash, expr.operands.size());
  for (const std::uint32_t range : expr.ranges) hash = mix(hash, range);
  return hash;
}

bool is_index_constant(const Expr& expr) {
  return expr.kind == ExprKind::Constant && expr.dtype == DType::I64;
}

bool is_op(const Expr& expr, ScalarOp op) { return expr.kind == ExprKind::Scalar && expr.op == op; }

std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

std::int64_t wrapping_mul(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

}  // namespace

std::string_view name(Combine combine) {
  switch (combine) {
    case Combine::Sum: return "sum";
    case Combine::Product: return "product";
    case Combine::Max: return "max";
    case Combine::Min: return "min";
  }
  return "sum";
}

ScalarOp scalar_op(Combine combine) {
  switch (combine) {
    case Combine::Sum: return ScalarOp::Add;
    case Combine::Product: return ScalarOp::Mul;
    case Combine::Max: return ScalarOp::Max;
    case Combine::Min: return ScalarOp::Min;
  }
  return ScalarOp::Add;
}

Scalar identity(Combine combine, DType dtype) {
  switch (combine) {
    case Combine::Sum: return Scalar::zero(dtype);
    case Combine::Product: return Scalar::of_int(dtype, 1);
    case Combine::Max:
    case Combine::Min: break;
  }
  const bool highest = combine == Combine::Min;
  if (is_float(dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return Scalar::of_float(dtype, highest ? infinity : -infinity);
  }
  if (dtype == DType::Bool) return Scalar::of_int(dtype, highest ? 1 : 0);
  if (!is_signed(dtype)) return Scalar::of_int(dtype, highest ? -1 : 0);
  const std::int64_t lowest =
      std::numeric_limits<std::int64_t>::min() >> (64 - 8 * size_bytes(dtype));
  return Scalar::of_int(dtype, highest ? ~lowest : lowest);
}

void ExprPool::grow_slots() {
  const std::size_t size = slots_.empty() ? 64 : slots_.size() * 2;
  slots_.assign(size, kEmptySlot);
  for (std::size_t i = 0; i < hashes_.size(); ++i) {
    std::size_t slot = hashes_[i] & (size - 1);
    while (slots_[slot] != kEmptySlot) slot = (slot + 1) & (size - 1);
    slots_[slot] = static_cast<std::uint32_t>(i);
  }
}

ExprId ExprPool::intern(Expr expr) {
  for (const ExprId operand : expr.operands) {
    INGOT_CHECK(operand.index < exprs_.size(), "operands precede their users");
  }
  if (exprs_.size() * 2 >= slots_.size()) grow_slots();
  const std::uint64_t hash = hash_of(expr);
  std::size_t slot = hash & (slots_.size() - 1);
  while (slots_[slot] != kEmptySlot) {
    const std::uint32_t index = slots_[slot];
    if (hashes_[index] == hash && exprs_[index] == expr) return ExprId{index};
    slot = (slot + 1) & (slots_.size() - 1);
  }
  INGOT_CHECK(exprs_.size() < kEmptySlot, "too many expressions");
  const auto index = static_cast<std::uint32_t>(exprs_.size());
  slots_[slot] = index;
  hashes_.push_back(hash);
  exprs_.push_back(std::move(expr));
  return ExprId{index};
}

ExprId ExprPool::constant(Scalar value) {
  Expr expr;
  expr.kind = ExprKind::Constant;
  expr.dtype = value.dtype;
  expr.constant = value;
  return intern(std::move(expr));
}

ExprId ExprPool::index(std::int64_t value) { return constant(Scalar::of_int(DType::I64, value)); }

ExprId ExprPool::variable(std::uint32_t variable) {
  Expr expr;
  expr.kind = ExprKind::Variable;
  expr.dtype = DType::I64;
  expr.id = variable;
  return intern(std::move(expr));
}

ExprId ExprPool::scalar(ScalarOp op, std::span<const ExprId> operands, bool strict) {
  INGOT_CHECK(operands.size() == static_cast<std::size_t>(operand_count(op)),
              "operands of a scalar operation");
  Expr expr;
  expr.kind = ExprKind::Scalar;
  expr.op = op;
  expr.strict = strict;
  expr.operands.assign(operands.begin(), operands.end());
  expr.dtype = gives_bool(op) ? DType::Bool : (*this)[operands.back()].dtype;
  return intern(std::move(expr));
}

ExprId ExprPool::cast(ExprId value, DType dtype) {
  if ((*this)[value].dtype == dtype) return value;
  Expr expr;
  expr.kind = ExprKind::Cast;
  expr.dtype = dtype;
  expr.operands = {value};
  return intern(std::move(expr));
}

ExprId ExprPool::load(std::uint32_t parameter, DType dtype, std::vector<ExprId> coordinates) {
  Expr expr;
  expr.kind = ExprKind::Load;
  expr.dtype = dtype;
  expr.id = parameter;
  expr.operands = std::move(coordinates);
  return intern(std::move(expr));
}

ExprId ExprPool::load_gated(std::uint32_t parameter, DType dtype, std::vector<ExprId> coordinates,
                            ExprId gate, Scalar fill) {
  Expr expr;
  expr.kind = ExprKind::Load;
  expr.dtype = dtype;
  expr.id = parameter;
  expr.operands = std::move(coordinates);
  expr.operands.push_back(gate);
  expr.gated = true;
  expr.constant = fill;
  return intern(std::move(expr));
}

ExprId ExprPool::load_flat(std::uint32_t parameter, DType dtype, ExprId address) {
  Expr expr;
  expr.kind = ExprKind::LoadFlat;
  expr.dtype = dtype;
  expr.id = parameter;
  expr.operands = {address};
  return intern(std::move(expr));
}

ExprId ExprPool::load_flat_gated(std::uint32_t parameter, DType dtype, ExprId address, ExprId gate,
                                 Scalar fill) {
  Expr expr;
  expr.kind = ExprKind::LoadFlat;
  expr.dtype = dtype;
  expr.id = parameter;
  expr.operands = {address, gate};
  expr.gated = true;
  expr.constant = fill;
  return intern(std::move(expr));
}

ExprId ExprPool::reduce(Combine combine, ExprId value, std::vector<std::uint32_t> ranges,
                        bool strict) {
  Expr expr;
  expr.kind = ExprKind::Reduce;
  expr.dtype = (*this)[value].dtype;
  expr.reduce = combine;
  expr.strict = strict;
  expr.operands = {value};
  expr.ranges = std::move(ranges);
  return intern(std::move(expr));
}

ExprId ExprPool::read_register(std::uint32_t array, DType dtype, ExprId element, ExprId lane) {
  Expr expr;
  expr.kind = ExprKind::ReadRegister;
  expr.dtype = dtype;
  expr.id = array;
  expr.operands = {element, lane};
  return intern(std::move(expr));
}

ExprId ExprPool::clamp_index(ExprId value, std::int64_t extent) {
  Expr expr;
  expr.kind = ExprKind::ClampIndex;
  expr.dtype = DType::I64;
  expr.constant = Scalar::of_int(DType::I64, extent);
  expr.operands = {value};
  return intern(std::move(expr));
}

ExprId ExprPool::add(ExprId a, ExprId b) {
  if (is_index_constant((*this)[a])) std::swap(a, b);
  const Expr& left = (*this)[a];
  const Expr& right = (*this)[b];
  if (is_index_constant(right)) {
    const std::int64_t value = right.constant.as_int();
    if (is_index_constant(left)) return index(wrapping_add(left.constant.as_int(), value));
    if (value == 0) return a;
    if (is_op(left, ScalarOp::Add) && is_index_constant((*this)[left.operands[1]])) {
      return add(left.operands[0],
                 index(wrapping_add((*this)[left.operands[1]].constant.as_int(), value)));
    }
  } else if (is_op(left, ScalarOp::Add) && is_index_constant((*this)[left.operands[1]])) {
    // Constants move outward, where the next one meets them.
    return add(add(left.operands[0], b), left.operands[1]);
  } else if (is_op(right, ScalarOp::Add) && is_index_constant((*this)[right.operands[1]])) {
    return add(add(a, right.operands[0]), right.operands[1]);
  }
  const ExprId operands[] = {a, b};
  return scalar(ScalarOp::Add, operands);
}

ExprId ExprPool::mul(ExprId a, std::int64_t factor) {
  const Expr& left = (*this)[a];
  if (is_index_constant(left)) return index(wrapping_mul(left.constant.as_int(), factor));
  if (factor == 0) return index(0);
  if (factor == 1) return a;
  if (is_op(left, ScalarOp::Mul) && is_index_constant((*this)[left.operands[1]])) {
    return mul(left.operands[0], wrapping_mul((*this)[left.operands[1]].constant.as_int(), factor));
  }
  const ExprId operands[] = {a, index(factor)};
  return scalar(ScalarOp::Mul, operands);
}

ExprId ExprPool::floor_div(ExprId a, std::int64_t divisor) {
  INGOT_CHECK(divisor > 0, "index divisors are positive");
  if (divisor == 1) return a;
  const Expr& left = (*this)[a];
  if (is_index_constant(left)) return index(floored_div(left.constant.as_int(), divisor));
  if (is_op(left, ScalarOp::FloorDiv) && is_index_constant((*this)[left.operands[1]])) {
    const std::int64_t inner = (*this)[left.operands[1]].constant.as_int();
    std::int64_t product = 0;
    if (inner > 0 && !__builtin_mul_overflow(inner, divisor, &product)) {
      return floor_div(left.operands[0], product);
    }
  }
  const ExprId operands[] = {a, index(divisor)};
  return scalar(ScalarOp::FloorDiv, operands);
}

ExprId ExprPool::floor_mod(ExprId a, std::int64_t divisor) {
  INGOT_CHECK(divisor > 0, "index divisors are positive");
  if (divisor == 1) return index(0);
  const Expr& left = (*this)[a];
  if (is_index_constant(left)) return index(floored_mod(left.constant.as_int(), divisor));
  if (is_op(left, ScalarOp::FloorMod) && is_index_constant((*this)[left.operands[1]])) {
    const std::int64_t inner = (*this)[left.operands[1]].constant.as_int();
    if (inner > 0 && inner % divisor == 0) return floor_mod(left.operands[0], divisor);
    if (inner > 0 && inner <= divisor) return a;
  }
  const ExprId operands[] = {a, index(divisor)};
  return scalar(ScalarOp::FloorMod, operands);
}

ExprId ExprPool::min(ExprId a, std::int64_t bound) {
  const Expr& left = (*this)[a];
  if (is_index_constant(left)) {
    return left.constant.as_int() <= bound ? a : index(bound);
  }
  if (is_op(left, ScalarOp::Min) && is_index_constant((*this)[left.operands[1]])) {
    const std::int64_t inner = (*this)[left.operands[1]].constant.as_int();
    return inner <= bound ? a : min(left.operands[0], bound);
  }
  const ExprId operands[] = {a, index(bound)};
  return scalar(ScalarOp::Min, operands);
}

ExprId ExprPool::logical_and(ExprId a, ExprId b) {
  if (!a.valid()) return b;
  if (!b.valid() || a == b) return a;
  for (const auto& [one, other] : {std::pair{a, b}, std::pair{b, a}}) {
    const Expr& expr = (*this)[one];
    if (expr.kind == ExprKind::Constant) return expr.constant.as_int() != 0 ? other : one;
  }
  const ExprId operands[] = {a, b};
  return scalar(ScalarOp::And, operands);
}

std::optional<FloatRange> clamped_range(const ExprPool& pool, ExprId value) {
  if (!is_float(pool[value].dtype)) return std::nullopt;
  std::optional<double> low, high;
  for (int step = 0; step < 2; ++step) {
    const Expr& expr = pool[value];
    const bool is_bounded =
        expr.kind == ExprKind::Scalar && (expr.op == ScalarOp::Min || expr.op == ScalarOp::Max);
    if (!is_bounded) return std::nullopt;
    const bool is_first = pool[expr.operands[0]].kind == ExprKind::Constant;
    const Expr& bound = pool[expr.operands[is_first ? 0 : 1]];
    if (bound.kind != ExprKind::Constant) return std::nullopt;
    (expr.op == ScalarOp::Min ? high : low) = bound.constant.as_double();
    value = expr.operands[is_first ? 1 : 0];
  }
  if (!low || !high || !(*low <= *high)) return std::nullopt;
  return FloatRange{*low, *high};
}

}  // namespace ingot
