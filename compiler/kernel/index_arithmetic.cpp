#include "compiler/kernel/index_arithmetic.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace ingot {
namespace {

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();
// Sums of magnitudes up to here cannot wrap, nor can one more step on them.
constexpr std::int64_t kExactLimit = std::int64_t{1} << 61;

using RangeMemo = std::unordered_map<std::uint32_t, IndexRange>;

std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

std::int64_t wrapping_mul(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

std::optional<std::int64_t> constant_of(const ExprPool& pool, ExprId id) {
  const Expr& expr = pool[id];
  if (expr.kind != ExprKind::Constant || is_float(expr.dtype)) return std::nullopt;
  return expr.constant.as_int();
}

std::optional<std::int64_t> positive_constant(const ExprPool& pool, ExprId id) {
  const auto value = constant_of(pool, id);
  return value && *value > 0 ? value : std::nullopt;
}

// u64 is seen as its bits in two's complement, hence unbounded.
IndexRange range_of_type(DType dtype) {
  switch (dtype) {
    case DType::U8: return {0, 0xFF};
    case DType::U16: return {0, 0xFFFF};
    case DType::U32: return {0, 0xFFFFFFFF};
    case DType::I8: return {-0x80, 0x7F};
    case DType::I16: return {-0x8000, 0x7FFF};
    case DType::I32: return {-0x80000000LL, 0x7FFFFFFF};
    case DType::Bool: return {0, 1};
    case DType::I64:
    case DType::U64:
    case DType::F32:
    case DType::F16:
    case DType::BF16:
    case DType::F64: return {};
  }
  return {};
}

// min..max of the four products or sums of ends; nullopt if one wraps.
template <typename Operation>
std::optional<IndexRange> of_ends(const IndexRange& a, const IndexRange& b, Operation operation) {
  std::optional<IndexRange> result;
  for (const std::int64_t left : {a.min, a.max}) {
    for (const std::int64_t right : {b.min, b.max}) {
      std::int64_t value = 0;
      if (operation(left, right, &value)) return std::nullopt;
      if (!result) {
        result = IndexRange{value, value};
      } else {
        result = IndexRange{std::min(result->min, value), std::max(result->max, value)};
      }
    }
  }
  return result;
}

IndexRange range_of_mod(const IndexRange& a, std::int64_t divisor) {
  if (floored_div(a.min, divisor) == floored_div(a.max, divisor)) {
    return {floored_mod(a.min, divisor), floored_mod(a.max, divisor)};
  }
  return {0, divisor - 1};
}

IndexRange of_truth(bool always, bool never) {
  return always ? IndexRange{1, 1} : never ? IndexRange{0, 0} : IndexRange{0, 1};
}

IndexRange range_of(const ExprPool& pool, ExprId id, const Extents& extents, RangeMemo& memo);

std::optional<IndexRange> range_of_scalar(const ExprPool& pool, const Expr& expr,
                                          const Extents& extents, RangeMemo& memo) {
  const auto operand = [&](std::size_t i) {
    return range_of(pool, expr.operands[i], extents, memo);
  };
  const DType operand_type = pool[expr.operands.back()].dtype;
  if (is_float(operand_type) || operand_type == DType::U64) return std::nullopt;
  switch (expr.op) {
    case ScalarOp::Add:
      return of_ends(operand(0), operand(1),
                     [](auto a, auto b, auto* sum) { return __builtin_add_overflow(a, b, sum); });
    case ScalarOp::Sub:
      return of_ends(operand(0), operand(1), [](auto a, auto b, auto* difference) {
        return __builtin_sub_overflow(a, b, difference);
      });
    case ScalarOp::Mul:
      return of_ends(operand(0), operand(1), [](auto a, auto b, auto* product) {
        return __builtin_mul_overflow(a, b, product);
      });
    case ScalarOp::Neg: {
      const IndexRange a = operand(0);
      if (a.min == kLowest) return std::nullopt;
      return IndexRange{-a.max, -a.min};
    }
    case ScalarOp::Abs: {
      const IndexRange a = operand(0);
      if (a.min == kLowest) return std::nullopt;
      if (a.min >= 0) return a;
      return IndexRange{a.max <= 0 ? -a.max : 0, std::max(-a.min, a.max)};
    }
    case ScalarOp::FloorDiv:
      if (const auto divisor = positive_constant(pool, expr.operands[1])) {
        const IndexRange a = operand(0);
        return IndexRange{floored_div(a.min, *divisor), floored_div(a.max, *divisor)};
      }
      return std::nullopt;
    case ScalarOp::Div:
      if (const auto divisor = positive_constant(pool, expr.operands[1])) {
        const IndexRange a = operand(0);
        return IndexRange{a.min / *divisor, a.max / *divisor};
      }
      return std::nullopt;
    case ScalarOp::FloorMod:
      if (const auto divisor = positive_constant(pool, expr.operands[1])) {
        return range_of_mod(operand(0), *divisor);
      }
      return std::nullopt;
    case ScalarOp::Min: {
      const IndexRange a = operand(0);
      const IndexRange b = operand(1);
      return IndexRange{std::min(a.min, b.min), std::min(a.max, b.max)};
    }
    case ScalarOp::Max: {
      const IndexRange a = operand(0);
      const IndexRange b = operand(1);
      return IndexRange{std::max(a.min, b.min), std::max(a.max, b.max)};
    }
    case ScalarOp::And: {
      const IndexRange a = operand(0);
      const IndexRange b = operand(1);
      if (expr.dtype == DType::Bool) {
        return IndexRange{std::min(a.min, b.min), std::min(a.max, b.max)};
      }
      if (a.min >= 0 && b.min >= 0) return IndexRange{0, std::min(a.max, b.max)};
      return std::nullopt;
    }
    case ScalarOp::Or: {
      if (expr.dtype != DType::Bool) return std::nullopt;
      const IndexRange a = operand(0);
      const IndexRange b = operand(1);
      return IndexRange{std::max(a.min, b.min), std::max(a.max, b.max)};
    }
    case ScalarOp::Not: {
      if (expr.dtype != DType::Bool) return std::nullopt;
      const IndexRange a = operand(0);
      return IndexRange{1 - a.max, 1 - a.min};
    }
    case ScalarOp::Eq: {
      const IndexRange a = operand(0);
      const IndexRange b = operand(1);
      return of_truth(a.min == a.max && a == b, a.max < b.min || b.max < a.min);
    }
    case ScalarOp::Ne: {
      const IndexRange a = operand(0);
      const IndexRange b = operand(1);
      return of_truth(a.max < b.min || b.max < a.min, a.min == a.max && a == b);
    }
    case ScalarOp::Lt: {
      const IndexRange a = operand(0);
      const IndexRange b = operand(1);
      return of_truth(a.max < b.min, a.min >= b.max);
    }
    case ScalarOp::Le: {
      const IndexRange a = operand(0);
      const IndexRange b = operand(1);
      return of_truth(a.max <= b.min, a.min > b.max);
    }
    case ScalarOp::Select: {
      const IndexRange condition = operand(0);
      if (condition.min == 1) return operand(1);
      if (condition.max == 0) return operand(2);
      const IndexRange a = operand(1);
      const IndexRange b = operand(2);
      return IndexRange{std::min(a.min, b.min), std::max(a.max, b.max)};
    }
    case ScalarOp::Xor:
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
    case ScalarOp::Fma: return std::nullopt;
  }
  return std::nullopt;
}

IndexRange range_of_new(const ExprPool& pool, const Expr& expr, const Extents& extents,
                        RangeMemo& memo) {
  const IndexRange whole = range_of_type(expr.dtype);
  std::optional<IndexRange> range;
  switch (expr.kind) {
    case ExprKind::Constant:
      if (!is_float(expr.dtype)) {
        range = IndexRange{expr.constant.as_int(), expr.constant.as_int()};
      }
      break;
    case ExprKind::Variable: {
      const std::int64_t extent = extents(expr.id);
      range = IndexRange{0, extent < 0 ? kHighest : std::max<std::int64_t>(extent - 1, 0)};
      break;
    }
    case ExprKind::Scalar: range = range_of_scalar(pool, expr, extents, memo); break;
    case ExprKind::Cast: {
      const DType from = pool[expr.operands[0]].dtype;
      if (is_float(expr.dtype)) break;
      if (is_float(from)) {
        const auto clamped = clamped_range(pool, expr.operands[0]);
        const double most = static_cast<double>(kExactLimit);
        if (clamped && expr.dtype != DType::Bool && -most <= clamped->low &&
            clamped->high <= most) {
          // Truncated; NaN gives 0.
          range = IndexRange{std::min<std::int64_t>(0, static_cast<std::int64_t>(clamped->low)),
                             std::max<std::int64_t>(0, static_cast<std::int64_t>(clamped->high))};
          if (!range->within(whole.min, whole.max)) range.reset();
        }
        break;
      }
      const IndexRange operand = range_of(pool, expr.operands[0], extents, memo);
      if (expr.dtype != DType::Bool) {
        range = operand;  // integer casts wrap; below, a value outside means anything
      } else {
        range = of_truth(operand.min > 0 || operand.max < 0, operand == IndexRange{0, 0});
      }
      break;
    }
    case ExprKind::ClampIndex: {
      const std::int64_t last = expr.constant.as_int() - 1;
      const IndexRange operand = range_of(pool, expr.operands[0], extents, memo);
      if (last < 0) break;
      range = IndexRange{std::clamp<std::int64_t>(operand.min, 0, last),
                         std::clamp<std::int64_t>(operand.max, 0, last)};
      break;
    }
    case ExprKind::Load:
    case ExprKind::LoadFlat:
    case ExprKind::Reduce:
    case ExprKind::ReadRegister: break;
  }
  return range && range->within(whole.min, whole.max) ? *range : whole;
}

IndexRange range_of(const ExprPool& pool, ExprId id, const Extents& extents, RangeMemo& memo) {
  if (const auto known = memo.find(id.index); known != memo.end()) return known->second;
  const IndexRange range = range_of_new(pool, pool[id], extents, memo);
  memo.emplace(id.index, range);
  return range;
}

// One level of `expr` with other operands, folded where ExprPool folds index arithmetic.
ExprId with_operands(ExprPool& pool, const Expr& expr, std::vector<ExprId> operands) {
  if (expr.kind == ExprKind::Scalar && expr.dtype == DType::I64) {
    if (expr.op == ScalarOp::Add) return pool.add(operands[0], operands[1]);
    if (expr.op == ScalarOp::Mul) {
      if (const auto factor = constant_of(pool, operands[1])) return pool.mul(operands[0], *factor);
      if (const auto factor = constant_of(pool, operands[0])) return pool.mul(operands[1], *factor);
    }
    if (const auto divisor = positive_constant(pool, operands.back())) {
      if (expr.op == ScalarOp::FloorDiv) return pool.floor_div(operands[0], *divisor);
      if (expr.op == ScalarOp::FloorMod) return pool.floor_mod(operands[0], *divisor);
    }
  }
  if (expr.kind == ExprKind::Scalar && expr.op == ScalarOp::And && expr.dtype == DType::Bool) {
    return pool.logical_and(operands[0], operands[1]);
  }
  if (expr.kind == ExprKind::Scalar && expr.op == ScalarOp::Select) {
    if (const auto condition = constant_of(pool, operands[0])) {
      return *condition != 0 ? operands[1] : operands[2];
    }
  }
  Expr copy = expr;
  copy.operands = std::move(operands);
  return pool.intern(std::move(copy));
}

class Substitution {
 public:
  Substitution(ExprPool& pool, const std::map<std::uint32_t, ExprId>& replacements)
      : pool_(pool), replacements_(replacements) {}

  ExprId apply(ExprId id) {
    if (const auto known = done_.find(id.index); known != done_.end()) return known->second;
    const ExprId result = apply_new(id, pool_[id]);
    done_.emplace(id.index, result);
    return result;
  }

 private:
  ExprId apply_new(ExprId id, const Expr& expr) {
    if (expr.kind == ExprKind::Variable) {
      const auto replacement = replacements_.find(expr.id);
      return replacement == replacements_.end() ? id : replacement->second;
    }
    std::vector<ExprId> operands;
    operands.reserve(expr.operands.size());
    for (const ExprId operand : expr.operands) operands.push_back(apply(operand));
    std::vector<std::uint32_t> ranges = expr.ranges;
    for (std::uint32_t& range : ranges) {
      const auto replacement = replacements_.find(range);
      if (replacement == replacements_.end()) continue;
      const Expr& other = pool_[replacement->second];
      INGOT_CHECK(other.kind == ExprKind::Variable, "a reduced range is only renamed");
      range = other.id;
    }
    if (operands == expr.operands && ranges == expr.ranges) return id;
    if (expr.kind != ExprKind::Reduce) return with_operands(pool_, expr, std::move(operands));
    return pool_.reduce(expr.reduce, operands[0], std::move(ranges), expr.strict);
  }

  ExprPool& pool_;
  const std::map<std::uint32_t, ExprId>& replacements_;
  std::unordered_map<std::uint32_t, ExprId> done_;
};

bool depends_on_memo(const ExprPool& pool, ExprId id, std::uint32_t variable,
                     std::unordered_map<std::uint32_t, bool>& memo) {
  const Expr& expr = pool[id];
  if (expr.kind == ExprKind::Variable) return expr.id == variable;
  if (expr.operands.empty()) return false;
  if (const auto known = memo.find(id.index); known != memo.end()) return known->second;
  bool depends = false;
  if (std::find(expr.ranges.begin(), expr.ranges.end(), variable) == expr.ranges.end()) {
    for (const ExprId operand : expr.operands) {
      if (depends_on_memo(pool, operand, variable, memo)) {
        depends = true;
        break;
      }
    }
  }
  memo.emplace(id.index, depends);
  return depends;
}

class Coefficients {
 public:
  Coefficients(const ExprPool& pool, std::uint32_t variable) : pool_(pool), variable_(variable) {}

  std::optional<std::int64_t> of(ExprId id) {
    if (const auto known = done_.find(id.index); known != done_.end()) return known->second;
    const std::optional<std::int64_t> result = of_new(id, pool_[id]);
    done_.emplace(id.index, result);
    return result;
  }

 private:
  std::optional<std::int64_t> of_new(ExprId id, const Expr& expr) {
    if (expr.kind == ExprKind::Variable) return expr.id == variable_ ? 1 : 0;
    if (expr.kind == ExprKind::Scalar && expr.dtype == DType::I64) {
      std::int64_t result = 0;
      if (expr.op == ScalarOp::Add || expr.op == ScalarOp::Sub) {
        const auto a = of(expr.operands[0]);
        const auto b = of(expr.operands[1]);
        if (!a || !b) return std::nullopt;
        const bool wraps = expr.op == ScalarOp::Add ? __builtin_add_overflow(*a, *b, &result)
                                                    : __builtin_sub_overflow(*a, *b, &result);
        if (wraps) return std::nullopt;
        return result;
      }
      if (expr.op == ScalarOp::Neg) {
        const auto a = of(expr.operands[0]);
        if (!a || *a == kLowest) return std::nullopt;
        return -*a;
      }
      if (expr.op == ScalarOp::Mul) {
        for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
          const auto factor = constant_of(pool_, expr.operands[i]);
          if (!factor) continue;
          const auto other = of(expr.operands[1 - i]);
          if (!other || __builtin_mul_overflow(*factor, *other, &result)) return std::nullopt;
          return result;
        }
      }
    }
    if (depends_on_memo(pool_, id, variable_, depends_)) return std::nullopt;
    return 0;
  }

  const ExprPool& pool_;
  std::uint32_t variable_;
  std::unordered_map<std::uint32_t, std::optional<std::int64_t>> done_;
  std::unordered_map<std::uint32_t, bool> depends_;
};

}  // namespace

IndexRange bounds_of(const ExprPool& pool, ExprId expr, const Extents& extents) {
  RangeMemo memo;
  return range_of(pool, expr, extents, memo);
}

ExprId simplify_index(ExprPool& pool, ExprId expr, const Extents& extents) {
  return IndexSimplifier(pool, extents).simplify(expr);
}

std::optional<std::int64_t> linear_coefficient(const ExprPool& pool, ExprId expr,
                                               std::uint32_t variable) {
  return Coefficients(pool, variable).of(expr);
}

ExprId substitute(ExprPool& pool, ExprId expr,
                  const std::map<std::uint32_t, ExprId>& replacements) {
  return Substitution(pool, replacements).apply(expr);
}

bool depends_on(const ExprPool& pool, ExprId expr, std::uint32_t variable) {
  std::unordered_map<std::uint32_t, bool> memo;
  return depends_on_memo(pool, expr, variable, memo);
}

IndexRange IndexSimplifier::bounds(ExprId expr) { return range_of(pool_, expr, extents_, ranges_); }

ExprId IndexSimplifier::simplify(ExprId id) {
  if (const auto known = simplified_.find(id.index); known != simplified_.end()) {
    return known->second;
  }
  const Expr& expr = pool_[id];
  ExprId result = id;
  if (expr.dtype == DType::I64) {
    result = expression(linear(id));
  } else if (expr.dtype == DType::Bool && expr.kind == ExprKind::Scalar) {
    result = simplify_bool(id, expr);
  } else {
    result = simplify_other(id, expr);
  }
  simplified_.emplace(id.index, result);
  simplified_.emplace(result.index, result);
  return result;
}

// The expression with its operands simplified.
ExprId IndexSimplifier::rebuild(ExprId id, const Expr& expr) {
  std::vector<ExprId> operands;
  operands.reserve(expr.operands.size());
  for (const ExprId operand : expr.operands) operands.push_back(simplify(operand));
  if (operands == expr.operands) return id;
  Expr copy = expr;
  copy.operands = std::move(operands);
  return pool_.intern(std::move(copy));
}

// What is neither a sum nor a truth value made by an operation.
ExprId IndexSimplifier::simplify_other(ExprId id, const Expr& expr) {
  const ExprId result = rebuild(id, expr);
  const Expr& rebuilt = pool_[result];
  if (rebuilt.gated) {
    if (const auto gate = constant_of(pool_, rebuilt.operands.back())) {
      if (*gate == 0) return pool_.constant(rebuilt.constant);
      Expr open = rebuilt;
      open.operands.pop_back();
      open.gated = false;
      open.constant = Scalar{};
      return pool_.intern(std::move(open));
    }
  }
  if (rebuilt.kind == ExprKind::Scalar && rebuilt.op == ScalarOp::Select) {
    if (const auto condition = constant_of(pool_, rebuilt.operands[0])) {
      return rebuilt.operands[*condition != 0 ? 1 : 2];
    }
    if (rebuilt.operands[1] == rebuilt.operands[2]) return rebuilt.operands[1];
  }
  if (rebuilt.kind == ExprKind::ClampIndex) {
    const IndexRange range = bounds(rebuilt.operands[0]);
    if (range.within(0, rebuilt.constant.as_int() - 1)) return rebuilt.operands[0];
  }
  if (rebuilt.kind == ExprKind::Cast && !is_float(rebuilt.dtype) && rebuilt.dtype != DType::Bool) {
    // To a wider integer and back, or the other way if the value fits.
    const Expr& inner = pool_[rebuilt.operands[0]];
    if (inner.kind == ExprKind::Cast && inner.dtype != DType::Bool && !is_float(inner.dtype) &&
        inner.dtype != DType::U64 && pool_[inner.operands[0]].dtype == rebuilt.dtype &&
        rebuilt.dtype != DType::U64) {
      const IndexRange type = range_of_type(inner.dtype);
      if (bounds(inner.operands[0]).within(type.min, type.max)) return inner.operands[0];
    }
  }
  return result;
}

ExprId IndexSimplifier::simplify_bool(ExprId id, const Expr& expr) {
  const auto truth = [&](bool value) { return pool_.constant(Scalar::of_int(DType::Bool, value)); };
  switch (expr.op) {
    case ScalarOp::Lt:
    case ScalarOp::Le:
    case ScalarOp::Eq:
    case ScalarOp::Ne: {
      if (pool_[expr.operands[0]].dtype == DType::I64) {
        return compare(expr.op, expr.operands[0], expr.operands[1]);
      }
      const ExprId result = rebuild(id, expr);
      const IndexRange range = bounds(result);
      return range.min == range.max ? truth(range.min != 0) : result;
    }
    case ScalarOp::And: {
      std::vector<ExprId> conjuncts;
      collect_conjuncts(id, conjuncts);
      std::sort(conjuncts.begin(), conjuncts.end());
      ExprId all = truth(true);
      for (const ExprId conjunct : conjuncts) all = pool_.logical_and(all, conjunct);
      return all;
    }
    case ScalarOp::Or: {
      const ExprId a = simplify(expr.operands[0]);
      const ExprId b = simplify(expr.operands[1]);
      if (a == b) return a;
      if (const auto value = constant_of(pool_, a)) return *value != 0 ? a : b;
      if (const auto value = constant_of(pool_, b)) return *value != 0 ? b : a;
      return rebuild(id, expr);
    }
    case ScalarOp::Not: {
      const ExprId a = simplify(expr.operands[0]);
      if (const auto value = constant_of(pool_, a)) return truth(*value == 0);
      const Expr& inner = pool_[a];
      if (inner.kind == ExprKind::Scalar && inner.op == ScalarOp::Not) return inner.operands[0];
      if (inner.kind == ExprKind::Scalar && inner.op == ScalarOp::Lt &&
          pool_[inner.operands[0]].dtype == DType::I64) {
        return compare(ScalarOp::Le, inner.operands[1], inner.operands[0]);
      }
      return rebuild(id, expr);
    }
    case ScalarOp::Select:
    case ScalarOp::Xor:
    case ScalarOp::Min:
    case ScalarOp::Max:
    case ScalarOp::Neg:
    case ScalarOp::Abs:
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
    case ScalarOp::Add:
    case ScalarOp::Sub:
    case ScalarOp::Mul:
    case ScalarOp::Div:
    case ScalarOp::FloorDiv:
    case ScalarOp::FloorMod:
    case ScalarOp::Fma: return simplify_other(id, expr);
  }
  return id;
}

void IndexSimplifier::collect_conjuncts(ExprId id, std::vector<ExprId>& conjuncts) {
  const Expr& expr = pool_[id];
  if (expr.kind == ExprKind::Scalar && expr.op == ScalarOp::And) {
    for (const ExprId operand : expr.operands) collect_conjuncts(operand, conjuncts);
    return;
  }
  const ExprId simple = simplify(id);
  if (simple != id && pool_[simple].kind == ExprKind::Scalar && pool_[simple].op == ScalarOp::And) {
    collect_conjuncts(simple, conjuncts);
  } else if (std::find(conjuncts.begin(), conjuncts.end(), simple) == conjuncts.end()) {
    conjuncts.push_back(simple);
  }
}

ExprId IndexSimplifier::compare(ScalarOp op, ExprId a, ExprId b) {
  const Linear left = linear(a);
  const Linear right = linear(b);
  if (exact(left) && exact(right)) {
    Linear difference = left;
    add_scaled(difference, right, -1);
    difference = joined(std::move(difference));
    if (op == ScalarOp::Le) {
      difference.constant = wrapping_add(difference.constant, -1);
      if (const auto result = compare_sum(ScalarOp::Lt, std::move(difference))) return *result;
    } else if (const auto result = compare_sum(op, std::move(difference))) {
      return *result;
    }
  }
  const ExprId operands[] = {expression(left), expression(right)};
  const ExprId result = pool_.scalar(op, operands);
  const IndexRange range = bounds(result);
  if (range.min != range.max) return result;
  return pool_.constant(Scalar::of_int(DType::Bool, range.min));
}

// sum < 0, sum == 0 or sum != 0 in normal form.
std::optional<ExprId> IndexSimplifier::compare_sum(ScalarOp op, Linear sum) {
  if (!exact(sum)) return std::nullopt;
  const auto truth = [&](bool value) { return pool_.constant(Scalar::of_int(DType::Bool, value)); };
  const IndexRange all = range(sum);
  std::int64_t factor = 0;
  for (const Linear::Term& term : sum.terms) factor = std::gcd(factor, term.coefficient);
  if (op == ScalarOp::Lt) {
    if (all.max < 0) return truth(true);
    if (all.min >= 0) return truth(false);
    sum.constant = floored_div(sum.constant, factor);
  } else {
    const bool equal = op == ScalarOp::Eq;
    if (all == IndexRange{0, 0}) return truth(equal);
    if (all.min > 0 || all.max < 0 || sum.constant % factor != 0) return truth(!equal);
    // Equality has no direction: the first term counts as positive.
    if (sum.terms.front().coefficient < 0) factor = -factor;
    sum.constant /= factor;
  }
  for (Linear::Term& term : sum.terms) term.coefficient /= factor;

  if (op == ScalarOp::Lt && sum.terms.size() == 1) {
    // floor(x / n) < k is x < k * n, and k < floor(x / n) is k * n + n - 1 < x.
    const Linear::Term term = sum.terms.front();
    const Expr& expr = pool_[term.atom];
    if (expr.kind == ExprKind::Scalar && expr.op == ScalarOp::FloorDiv) {
      const auto divisor = positive_constant(pool_, expr.operands[1]);
      std::int64_t bound = 0;
      if (divisor && !__builtin_mul_overflow(sum.constant, *divisor, &bound)) {
        Linear inner;
        add_scaled(inner, linear(expr.operands[0]), term.coefficient);
        inner.constant = wrapping_add(inner.constant, bound);
        if (term.coefficient < 0) inner.constant = wrapping_add(inner.constant, *divisor - 1);
        if (exact(linear(expr.operands[0])) && exact(inner)) {
          if (const auto result = compare_sum(op, std::move(inner))) return result;
        }
      }
    }
  }

  Linear left;
  Linear right;
  for (const Linear::Term& term : sum.terms) {
    if (term.coefficient > 0) {
      left.terms.push_back(term);
    } else {
      right.terms.push_back({term.atom, -term.coefficient});
    }
  }
  if (left.terms.empty()) {
    left.constant = sum.constant;
  } else {
    right.constant = -sum.constant;
  }
  const ExprId operands[] = {expression(left), expression(right)};
  return pool_.scalar(op, operands);
}

IndexSimplifier::Linear IndexSimplifier::constant(std::int64_t value) {
  Linear sum;
  sum.constant = value;
  return sum;
}

IndexSimplifier::Linear IndexSimplifier::atom(ExprId id) {
  Linear sum;
  sum.terms.push_back({id, 1});
  return sum;
}

void IndexSimplifier::add_scaled(Linear& to, const Linear& from, std::int64_t factor) {
  std::vector<Linear::Term> terms;
  terms.reserve(to.terms.size() + from.terms.size());
  const auto push = [&](ExprId id, std::int64_t coefficient) {
    if (coefficient != 0) terms.push_back({id, coefficient});
  };
  auto a = to.terms.begin();
  for (const Linear::Term& term : from.terms) {
    while (a != to.terms.end() && a->atom < term.atom) terms.push_back(*a++);
    const std::int64_t scaled = wrapping_mul(term.coefficient, factor);
    if (a != to.terms.end() && a->atom == term.atom) {
      push(term.atom, wrapping_add(a->coefficient, scaled));
      ++a;
    } else {
      push(term.atom, scaled);
    }
  }
  terms.insert(terms.end(), a, to.terms.end());
  to.terms = std::move(terms);
  to.constant = wrapping_add(to.constant, wrapping_mul(from.constant, factor));
}

IndexSimplifier::Linear IndexSimplifier::linear(ExprId id) {
  if (const auto known = linear_.find(id.index); known != linear_.end()) return known->second;
  const Expr& expr = pool_[id];
  Linear sum;
  switch (expr.kind) {
    case ExprKind::Constant: sum = constant(expr.constant.as_int()); break;
    case ExprKind::Variable: {
      const std::int64_t extent = extents_(expr.id);
      sum = extent == 0 || extent == 1 ? constant(0) : atom(id);
      break;
    }
    case ExprKind::Scalar: sum = linear_of_scalar(id, expr); break;
    case ExprKind::Cast:
    case ExprKind::Load:
    case ExprKind::LoadFlat:
    case ExprKind::Reduce:
    case ExprKind::ReadRegister:
    case ExprKind::ClampIndex: {
      const ExprId simple = simplify_other(id, expr);
      sum = simple == id || pool_[simple].kind == expr.kind ? atom(simple) : linear(simple);
      break;
    }
  }
  linear_.emplace(id.index, sum);
  return sum;
}

IndexSimplifier::Linear IndexSimplifier::linear_of_scalar(ExprId id, const Expr& expr) {
  const auto unchanged = [&] { return atom(rebuild(id, expr)); };
  switch (expr.op) {
    case ScalarOp::Add:
    case ScalarOp::Sub: {
      Linear sum = linear(expr.operands[0]);
      add_scaled(sum, linear(expr.operands[1]), expr.op == ScalarOp::Add ? 1 : -1);
      return joined(std::move(sum));
    }
    case ScalarOp::Neg: {
      Linear sum;
      add_scaled(sum, linear(expr.operands[0]), -1);
      return sum;
    }
    case ScalarOp::Mul: {
      const Linear a = linear(expr.operands[0]);
      const Linear b = linear(expr.operands[1]);
      Linear product;
      if (b.terms.empty()) {
        add_scaled(product, a, b.constant);
      } else if (a.terms.empty()) {
        add_scaled(product, b, a.constant);
      } else {
        ExprId operands[] = {expression(a), expression(b)};
        std::sort(std::begin(operands), std::end(operands));
        return atom(pool_.scalar(ScalarOp::Mul, operands));
      }
      return product;
    }
    case ScalarOp::FloorDiv:
    case ScalarOp::FloorMod: {
      const Linear divisor = linear(expr.operands[1]);
      if (!divisor.terms.empty() || divisor.constant <= 0) return unchanged();
      const Linear a = linear(expr.operands[0]);
      return expr.op == ScalarOp::FloorDiv ? divide(a, divisor.constant)
                                           : modulo(a, divisor.constant);
    }
    case ScalarOp::Div: {
      const Linear divisor = linear(expr.operands[1]);
      if (!divisor.terms.empty() || divisor.constant <= 0) return unchanged();
      const Linear a = linear(expr.operands[0]);
      if (range(a).min < 0) return unchanged();
      return divide(a, divisor.constant);
    }
    case ScalarOp::Min:
    case ScalarOp::Max: {
      const Linear a = linear(expr.operands[0]);
      const Linear b = linear(expr.operands[1]);
      const Linear& smaller = expr.op == ScalarOp::Min ? a : b;
      const Linear& larger = expr.op == ScalarOp::Min ? b : a;
      // `smaller` stands if smaller - larger is never positive.
      if (exact(a) && exact(b)) {
        Linear difference = smaller;
        add_scaled(difference, larger, -1);
        difference = joined(std::move(difference));
        if (exact(difference) && range(difference).max <= 0) return a;
        if (exact(difference) && range(difference).min >= 0) return b;
      } else if (range(smaller).max <= range(larger).min) {
        return a;
      } else if (range(larger).max <= range(smaller).min) {
        return b;
      }
      ExprId operands[] = {expression(a), expression(b)};
      if (pool_[operands[0]].kind == ExprKind::Constant) std::swap(operands[0], operands[1]);
      return atom(pool_.scalar(expr.op, operands));
    }
    case ScalarOp::Abs: {
      const Linear a = linear(expr.operands[0]);
      if (range(a).min >= 0) return a;
      return unchanged();
    }
    case ScalarOp::Select: {
      const ExprId condition = simplify(expr.operands[0]);
      if (const auto value = constant_of(pool_, condition)) {
        return linear(expr.operands[*value != 0 ? 1 : 2]);
      }
      const ExprId a = simplify(expr.operands[1]);
      if (a == simplify(expr.operands[2])) return linear(a);
      return unchanged();
    }
    case ScalarOp::Not:
    case ScalarOp::And:
    case ScalarOp::Or:
    case ScalarOp::Xor:
    case ScalarOp::Eq:
    case ScalarOp::Ne:
    case ScalarOp::Lt:
    case ScalarOp::Le:
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
    case ScalarOp::Fma: return unchanged();
  }
  return unchanged();
}

ExprId IndexSimplifier::expression(const Linear& sum) {
  ExprId result;
  for (const Linear::Term& term : sum.terms) {
    const ExprId scaled = pool_.mul(term.atom, term.coefficient);
    if (!result.valid()) {
      result = scaled;
    } else {
      const ExprId operands[] = {result, scaled};
      result = pool_.scalar(ScalarOp::Add, operands);
    }
  }
  if (!result.valid()) return pool_.index(sum.constant);
  if (sum.constant != 0) {
    const ExprId operands[] = {result, pool_.index(sum.constant)};
    result = pool_.scalar(ScalarOp::Add, operands);
  }
  linear_.emplace(result.index, sum);
  return result;
}

bool IndexSimplifier::exact(const Linear& sum) {
  const auto magnitude = [](std::int64_t value) {
    return value == kLowest ? kHighest : value < 0 ? -value : value;
  };
  std::int64_t total = magnitude(sum.constant);
  for (const Linear::Term& term : sum.terms) {
    const IndexRange range = bounds(term.atom);
    std::int64_t product = 0;
    if (__builtin_mul_overflow(magnitude(term.coefficient),
                               std::max(magnitude(range.min), magnitude(range.max)), &product) ||
        __builtin_add_overflow(total, product, &total) ||
        __builtin_add_overflow(total, magnitude(term.coefficient), &total)) {
      return false;
    }
  }
  return total <= kExactLimit;
}

IndexRange IndexSimplifier::range(const Linear& sum) {
  if (sum.terms.size() == 1 && sum.terms[0].coefficient == 1 && sum.constant == 0) {
    return bounds(sum.terms[0].atom);
  }
  if (!exact(sum)) return {};
  IndexRange result{sum.constant, sum.constant};
  for (const Linear::Term& term : sum.terms) {
    const IndexRange range = bounds(term.atom);
    const bool rising = term.coefficient > 0;
    result.min += term.coefficient * (rising ? range.min : range.max);
    result.max += term.coefficient * (rising ? range.max : range.min);
  }
  return result;
}

std::optional<std::pair<IndexSimplifier::Linear, IndexSimplifier::Linear>> IndexSimplifier::split(
    const Linear& sum, std::int64_t factor) {
  Linear multiples;
  Linear rest;
  for (const Linear::Term& term : sum.terms) {
    if (term.coefficient % factor == 0) {
      multiples.terms.push_back({term.atom, term.coefficient / factor});
    } else {
      rest.terms.push_back(term);
    }
  }
  multiples.constant = floored_div(sum.constant, factor);
  rest.constant = floored_mod(sum.constant, factor);
  const IndexRange range_of_rest = range(rest);
  const std::int64_t part = floored_div(range_of_rest.min, factor);
  if (part != floored_div(range_of_rest.max, factor)) return std::nullopt;
  multiples.constant += part;
  rest.constant -= part * factor;
  return std::pair{std::move(multiples), std::move(rest)};
}

namespace {

// Common factors of a divisor with coefficients, largest first, 1 left out.
template <typename Terms>
std::vector<std::int64_t> common_factors(const Terms& terms, std::int64_t divisor) {
  std::vector<std::int64_t> factors;
  for (const auto& term : terms) {
    const std::int64_t factor = std::gcd(term.coefficient, divisor);
    if (factor > 1) factors.push_back(factor);
  }
  std::sort(factors.begin(), factors.end(), std::greater<>());
  factors.erase(std::unique(factors.begin(), factors.end()), factors.end());
  return factors;
}

}  // namespace

IndexSimplifier::Linear IndexSimplifier::divide(const Linear& sum, std::int64_t divisor) {
  if (divisor == 1) return sum;
  if (!exact(sum) || divisor > kExactLimit) {
    const ExprId whole = expression(sum);
    const ExprId quotient = pool_.floor_div(whole, divisor);
    const Expr& expr = pool_[quotient];
    return expr.kind == ExprKind::Constant ? constant(expr.constant.as_int()) : atom(quotient);
  }
  // sum = divisor * quotient + remainder
  Linear quotient;
  Linear remainder;
  for (const Linear::Term& term : sum.terms) {
    const std::int64_t times = term.coefficient / divisor;
    const std::int64_t left = term.coefficient % divisor;
    if (times != 0) quotient.terms.push_back({term.atom, times});
    if (left != 0) remainder.terms.push_back({term.atom, left});
  }
  quotient.constant = floored_div(sum.constant, divisor);
  remainder.constant = floored_mod(sum.constant, divisor);
  if (!exact(remainder)) return atom(pool_.floor_div(expression(sum), divisor));

  const IndexRange all = range(remainder);
  const std::int64_t part = floored_div(all.min, divisor);
  if (part == floored_div(all.max, divisor)) {
    quotient.constant += part;
    return quotient;
  }
  for (const std::int64_t factor : common_factors(remainder.terms, divisor)) {
    if (const auto parts = split(remainder, factor)) {
      add_scaled(quotient, divide(parts->first, divisor / factor), 1);
      return joined(std::move(quotient));
    }
  }
  if (remainder.terms.size() == 1 && remainder.terms[0].coefficient == 1) {
    const Expr& expr = pool_[remainder.terms[0].atom];
    const auto inner = expr.kind == ExprKind::Scalar && expr.operands.size() == 2
                           ? positive_constant(pool_, expr.operands[1])
                           : std::nullopt;
    std::int64_t product = 0;
    if (inner && expr.op == ScalarOp::FloorDiv &&
        !__builtin_mul_overflow(*inner, divisor, &product) && product <= kExactLimit) {
      // (x div a + c) div b = (x + a*c) div (a*b)
      Linear x = linear(expr.operands[0]);
      const bool safe = exact(x);
      x.constant = wrapping_add(x.constant, *inner * remainder.constant);
      if (safe && exact(x)) {
        add_scaled(quotient, divide(x, product), 1);
        return joined(std::move(quotient));
      }
    }
    if (inner && expr.op == ScalarOp::FloorMod && *inner % divisor == 0 &&
        remainder.constant == 0) {
      // (x mod a*b) div b = (x div b) mod a
      add_scaled(quotient, modulo(divide(linear(expr.operands[0]), divisor), *inner / divisor), 1);
      return joined(std::move(quotient));
    }
  }
  const ExprId last = pool_.floor_div(expression(remainder), divisor);
  add_scaled(quotient, atom(last), 1);
  return joined(std::move(quotient));
}

IndexSimplifier::Linear IndexSimplifier::modulo(const Linear& sum, std::int64_t divisor) {
  if (divisor == 1) return constant(0);
  if (!exact(sum) || divisor > kExactLimit) {
    const ExprId remainder = pool_.floor_mod(expression(sum), divisor);
    const Expr& expr = pool_[remainder];
    return expr.kind == ExprKind::Constant ? constant(expr.constant.as_int()) : atom(remainder);
  }
  Linear remainder;
  for (const Linear::Term& term : sum.terms) {
    const std::int64_t left = term.coefficient % divisor;
    if (left != 0) remainder.terms.push_back({term.atom, left});
  }
  remainder.constant = floored_mod(sum.constant, divisor);
  if (!exact(remainder)) return atom(pool_.floor_mod(expression(sum), divisor));

  const IndexRange all = range(remainder);
  const std::int64_t part = floored_div(all.min, divisor);
  if (part == floored_div(all.max, divisor)) {
    remainder.constant -= part * divisor;
    return remainder;
  }
  // c * (x mod m) is c * x here if the divisor divides c * m.
  for (const Linear::Term& term : remainder.terms) {
    const Expr& expr = pool_[term.atom];
    if (expr.kind != ExprKind::Scalar || expr.op != ScalarOp::FloorMod) continue;
    const auto inner = positive_constant(pool_, expr.operands[1]);
    std::int64_t product = 0;
    if (!inner || __builtin_mul_overflow(*inner, term.coefficient, &product) ||
        product % divisor != 0) {
      continue;
    }
    const Linear x = linear(expr.operands[0]);
    Linear replaced = remainder;
    add_scaled(replaced, atom(term.atom), -term.coefficient);
    add_scaled(replaced, x, term.coefficient);
    if (exact(x) && exact(replaced)) return modulo(replaced, divisor);
  }
  for (const std::int64_t factor : common_factors(remainder.terms, divisor)) {
    if (const auto parts = split(remainder, factor)) {
      Linear result = parts->second;
      add_scaled(result, modulo(parts->first, divisor / factor), factor);
      return joined(std::move(result));
    }
  }
  return atom(pool_.floor_mod(expression(remainder), divisor));
}

// Puts quotients and remainders of the same division together:
//   c*a * (x div a) + c * (x mod a) = c * x
//   c*a * ((x div a) mod b) + c * (x mod a) = c * (x mod a*b)
IndexSimplifier::Linear IndexSimplifier::joined(Linear sum) {
  while (join_once(sum)) {
  }
  return sum;
}

bool IndexSimplifier::join_once(Linear& sum) {
  if (sum.terms.size() < 2) return false;
  for (const Linear::Term mod : sum.terms) {
    const Expr& expr = pool_[mod.atom];
    if (expr.kind != ExprKind::Scalar || expr.op != ScalarOp::FloorMod) continue;
    const auto divisor = positive_constant(pool_, expr.operands[1]);
    std::int64_t scale = 0;
    if (!divisor || __builtin_mul_overflow(*divisor, mod.coefficient, &scale)) continue;
    const bool candidate =
        std::any_of(sum.terms.begin(), sum.terms.end(),
                    [&](const Linear::Term& term) { return term.coefficient == scale; });
    if (!candidate) continue;
    const Linear x = linear(expr.operands[0]);
    const ExprId quotient = expression(divide(x, *divisor));
    for (const Linear::Term term : sum.terms) {
      if (term.coefficient != scale) continue;
      Linear whole;
      if (term.atom == quotient) {
        whole = x;
      } else {
        const Expr& other = pool_[term.atom];
        if (other.kind != ExprKind::Scalar || other.op != ScalarOp::FloorMod ||
            other.operands[0] != quotient) {
          continue;
        }
        const auto outer = positive_constant(pool_, other.operands[1]);
        std::int64_t product = 0;
        if (!outer || __builtin_mul_overflow(*outer, *divisor, &product)) continue;
        whole = modulo(x, product);
      }
      add_scaled(sum, atom(mod.atom), -mod.coefficient);
      add_scaled(sum, atom(term.atom), -term.coefficient);
      add_scaled(sum, whole, mod.coefficient);
      return true;
    }
  }
  return false;
}

}  // namespace ingot
