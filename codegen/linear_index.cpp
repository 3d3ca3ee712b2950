#include "codegen/linear_index.h"

#include <algorithm>

namespace ingot {
namespace {

// Ranges beyond this are treated as unknown, so that sums of them cannot overflow.
constexpr std::int64_t kFarAway = std::int64_t{1} << 60;

std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t wrapping_mul(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t divisor) {
  const std::int64_t quotient = a / divisor;
  return quotient * divisor > a ? quotient - 1 : quotient;
}

std::optional<Interval> checked(std::int64_t low, std::int64_t high) {
  if (low < -kFarAway || high > kFarAway) return std::nullopt;
  return Interval{low, high};
}

// Range of coefficient * [low, high] added to `sum`.
std::optional<Interval> add_scaled(const Interval& sum, const Interval& range,
                                   std::int64_t coefficient) {
  std::int64_t a = 0;
  std::int64_t b = 0;
  if (__builtin_mul_overflow(range.low, coefficient, &a)) return std::nullopt;
  if (__builtin_mul_overflow(range.high, coefficient, &b)) return std::nullopt;
  std::int64_t low = 0;
  std::int64_t high = 0;
  if (__builtin_add_overflow(sum.low, std::min(a, b), &low)) return std::nullopt;
  if (__builtin_add_overflow(sum.high, std::max(a, b), &high)) return std::nullopt;
  return checked(low, high);
}

}  // namespace

LinearIndex combine(const LinearIndex& a, std::int64_t factor, const LinearIndex& b,
                    std::int64_t other_factor) {
  LinearIndex sum;
  sum.constant =
      wrapping_add(wrapping_mul(a.constant, factor), wrapping_mul(b.constant, other_factor));
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    LinearTerm term;
    if (j == b.terms.size() || (i < a.terms.size() && a.terms[i].atom < b.terms[j].atom)) {
      term = {a.terms[i].atom, wrapping_mul(a.terms[i].coefficient, factor)};
      ++i;
    } else if (i == a.terms.size() || b.terms[j].atom < a.terms[i].atom) {
      term = {b.terms[j].atom, wrapping_mul(b.terms[j].coefficient, other_factor)};
      ++j;
    } else {
      term = {a.terms[i].atom, wrapping_add(wrapping_mul(a.terms[i].coefficient, factor),
                                            wrapping_mul(b.terms[j].coefficient, other_factor))};
      ++i;
      ++j;
    }
    if (term.coefficient != 0) sum.terms.push_back(term);
  }
  return sum;
}

void IndexAnalyzer::bind(std::uint32_t variable, Binding binding) {
  bindings_[variable] = binding;
  ++version_;
}

LinearIndex IndexAnalyzer::linearize(ExprId id) {
  if (remembered_.size() < pool_.size()) remembered_.resize(pool_.size());
  if (remembered_[id.index].version == version_) return remembered_[id.index].form;
  LinearIndex form = compute(id);
  remembered_[id.index] = {version_, form};
  return form;
}

LinearIndex IndexAnalyzer::compute(ExprId id) {
  const Expr& expr = pool_[id];
  if (expr.dtype != DType::I64) return {0, {{id, 1}}};
  if (expr.kind == ExprKind::Constant) return {expr.constant.as_int(), {}};
  if (expr.kind == ExprKind::Variable) {
    const Binding& bound = bindings_[expr.id];
    if (bound.kind == Binding::Kind::Constant) return {bound.value, {}};
    return {0, {{id, 1}}};
  }
  if (expr.kind != ExprKind::Scalar) return {0, {{id, 1}}};
  switch (expr.op) {
    case ScalarOp::Add:
      return combine(linearize(expr.operands[0]), 1, linearize(expr.operands[1]), 1);
    case ScalarOp::Sub:
      return combine(linearize(expr.operands[0]), 1, linearize(expr.operands[1]), -1);
    case ScalarOp::Neg: return combine(linearize(expr.operands[0]), -1, {}, 0);
    case ScalarOp::Mul: {
      const LinearIndex a = linearize(expr.operands[0]);
      const LinearIndex b = linearize(expr.operands[1]);
      if (b.terms.empty()) return combine(a, b.constant, {}, 0);
      if (a.terms.empty()) return combine(b, a.constant, {}, 0);
      return {0, {{id, 1}}};
    }
    case ScalarOp::FloorDiv: return divide(id, false);
    case ScalarOp::FloorMod: return divide(id, true);
    case ScalarOp::Min:
    case ScalarOp::Max: {
      // The winner is known if the ranges do not overlap, or both are numbers.
      const auto a = range(expr.operands[0]);
      const auto b = range(expr.operands[1]);
      if (a && b) {
        const bool is_min = expr.op == ScalarOp::Min;
        if (a->high <= b->low) return linearize(expr.operands[is_min ? 0 : 1]);
        if (b->high <= a->low) return linearize(expr.operands[is_min ? 1 : 0]);
      }
      return {0, {{id, 1}}};
    }
    default: return {0, {{id, 1}}};
  }
}

// (d*Q + R) / d with R known to stay in [0, d): the quotient is Q, the remainder R.
LinearIndex IndexAnalyzer::divide(ExprId id, bool remainder) {
  const Expr& expr = pool_[id];
  const LinearIndex atom{0, {{id, 1}}};
  const LinearIndex divisor = linearize(expr.operands[1]);
  if (!divisor.terms.empty() || divisor.constant <= 0) return atom;
  const std::int64_t d = divisor.constant;
  const LinearIndex value = linearize(expr.operands[0]);
  if (!range_of(value)) return atom;  // may wrap: leave it alone
  LinearIndex quotient;
  LinearIndex rest;
  quotient.constant = floor_quotient(value.constant, d);
  rest.constant = value.constant - quotient.constant * d;
  for (const LinearTerm& term : value.terms) {
    if (term.coefficient % d == 0) {
      quotient.terms.push_back({term.atom, term.coefficient / d});
    } else {
      rest.terms.push_back(term);
    }
  }
  const auto range = range_of(rest);
  if (!range || range->low < 0 || range->high >= d) return atom;
  return remainder ? rest : quotient;
}

std::optional<Interval> IndexAnalyzer::range(ExprId id) { return range_of(linearize(id)); }

std::optional<Interval> IndexAnalyzer::range_of(const LinearIndex& form) {
  std::optional<Interval> sum = checked(form.constant, form.constant);
  for (const LinearTerm& term : form.terms) {
    if (!sum) return std::nullopt;
    const auto range = range_of_atom(term.atom);
    if (!range) return std::nullopt;
    sum = add_scaled(*sum, *range, term.coefficient);
  }
  return sum;
}

std::optional<Interval> IndexAnalyzer::range_of_atom(ExprId atom) {
  const Expr& expr = pool_[atom];
  switch (expr.kind) {
    case ExprKind::Variable:
      return checked(0, std::max<std::int64_t>(variables_[expr.id].extent, 1) - 1);
    case ExprKind::ClampIndex:
      return checked(0, std::max<std::int64_t>(expr.constant.as_int(), 1) - 1);
    case ExprKind::Cast: {
      const DType from = pool_[expr.operands[0]].dtype;
      if (expr.dtype != DType::I64) return std::nullopt;
      if (from == DType::U8) return Interval{0, 255};
      if (from == DType::U16) return Interval{0, 65535};
      if (from == DType::Bool) return Interval{0, 1};
      return std::nullopt;
    }
    case ExprKind::Scalar: break;
    default: return std::nullopt;
  }
  if (expr.dtype != DType::I64) return std::nullopt;
  switch (expr.op) {
    case ScalarOp::FloorMod: {
      const LinearIndex divisor = linearize(expr.operands[1]);
      if (!divisor.terms.empty() || divisor.constant <= 0) return std::nullopt;
      return checked(0, divisor.constant - 1);
    }
    case ScalarOp::FloorDiv: {
      const LinearIndex divisor = linearize(expr.operands[1]);
      const auto value = range(expr.operands[0]);
      if (!value || !divisor.terms.empty() || divisor.constant <= 0) return std::nullopt;
      return checked(floor_quotient(value->low, divisor.constant),
                     floor_quotient(value->high, divisor.constant));
    }
    case ScalarOp::Min:
    case ScalarOp::Max: {
      const auto a = range(expr.operands[0]);
      const auto b = range(expr.operands[1]);
      if (!a || !b) return std::nullopt;
      if (expr.op == ScalarOp::Min)
        return checked(std::min(a->low, b->low), std::min(a->high, b->high));
      return checked(std::max(a->low, b->low), std::max(a->high, b->high));
    }
    default: return std::nullopt;
  }
}

}  // namespace ingot
