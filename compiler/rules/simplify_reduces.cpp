// Rules for reduces: what need not be added up turn by turn.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "compiler/rules/rewrite.h"

namespace ingot {
namespace {

// Values of 32 bits, and factors, that no index arithmetic here makes wrap.
constexpr std::int64_t kMostIndex = std::int64_t{1} << 32;
constexpr std::int64_t kMostFactor = std::int64_t{1} << 20;

bool is_op(const Expr& expr, ScalarOp op) { return expr.kind == ExprKind::Scalar && expr.op == op; }

// Integers and truth values are never rounded.
bool may_regroup(const Expr& expr) { return !is_float(expr.dtype) || !expr.strict; }

// Whether all counts up to `count` are values of the type; integers wrap anyway.
bool counts_exactly(DType dtype, std::int64_t count) {
  switch (dtype) {
    case DType::F16: return count <= std::int64_t{1} << 11;
    case DType::BF16: return count <= std::int64_t{1} << 8;
    case DType::F32: return count <= std::int64_t{1} << 24;
    case DType::F64: return count <= std::int64_t{1} << 53;
    default: return true;
  }
}

bool depends_on_any(const ExprPool& pool, ExprId expr, std::span<const std::uint32_t> ranges) {
  return std::ranges::any_of(ranges,
                             [&](std::uint32_t range) { return depends_on(pool, expr, range); });
}

template <typename Matches>
bool contains(const ExprPool& pool, ExprId root, const Matches& matches) {
  std::vector<bool> below(root.index + 1);
  below[root.index] = true;
  for (std::uint32_t i = root.index + 1; i-- > 0;) {
    if (!below[i]) continue;
    const Expr& expr = pool[ExprId{i}];
    if (matches(ExprId{i}, expr)) return true;
    for (const ExprId operand : expr.operands) below[operand.index] = true;
  }
  return false;
}

bool contains_reduce(const ExprPool& pool, ExprId root) {
  return contains(pool, root,
                  [](ExprId, const Expr& expr) { return expr.kind == ExprKind::Reduce; });
}

ExprId binary(Workpiece& work, ScalarOp op, ExprId a, ExprId b) {
  const std::array<ExprId, 2> operands{a, b};
  return work.pool().scalar(op, operands);
}

ExprId simplify(Workpiece& work, ExprId expr) {
  return simplify_index(work.pool(), expr, work.extents());
}

bool is_known(const Workpiece& work, ExprId expr) {
  return work.pool()[expr].kind == ExprKind::Constant;
}

// A constant that 0 times makes 0.
bool is_finite(const Workpiece& work, ExprId expr) {
  return is_known(work, expr) && std::isfinite(work.pool()[expr].constant.as_double());
}

std::vector<std::uint32_t> without(std::vector<std::uint32_t> ranges, std::uint32_t range) {
  std::erase(ranges, range);
  return ranges;
}

// `body` reduced over what is left of the ranges.
ExprId reduce_or_body(Workpiece& work, const Expr& reduce, ExprId body,
                      std::vector<std::uint32_t> ranges) {
  if (ranges.empty()) return body;
  return work.pool().reduce(reduce.reduce, body, std::move(ranges), reduce.strict);
}

// --- terms under a gate

// A value where all conditions hold, and a constant elsewhere.
struct Masked {
  std::vector<ExprId> conditions;
  ExprId value;
  Scalar otherwise;
  bool is_load = false;  // the load `value` may be done only where they hold
};

void collect_conditions(const ExprPool& pool, ExprId id, std::vector<ExprId>& conditions) {
  const Expr& expr = pool[id];
  if (is_op(expr, ScalarOp::And)) {
    for (const ExprId operand : expr.operands) collect_conditions(pool, operand, conditions);
  } else {
    conditions.push_back(id);
  }
}

std::optional<Masked> masked(Workpiece& work, ExprId id) {
  const Expr& expr = work.pool()[id];
  Masked result;
  if (is_op(expr, ScalarOp::Select) && is_known(work, expr.operands[2])) {
    collect_conditions(work.pool(), expr.operands[0], result.conditions);
    result.value = expr.operands[1];
    result.otherwise = work.pool()[expr.operands[2]].constant;
    return result;
  }
  if (expr.kind == ExprKind::Cast && work.pool()[expr.operands[0]].dtype == DType::Bool) {
    collect_conditions(work.pool(), expr.operands[0], result.conditions);
    result.value = work.pool().constant(Scalar::of_int(expr.dtype, 1));
    result.otherwise = Scalar::zero(expr.dtype);
    return result;
  }
  if (expr.kind == ExprKind::Load && expr.gated) {
    collect_conditions(work.pool(), expr.operands.back(), result.conditions);
    std::vector<ExprId> coordinates = expr.operands;
    coordinates.pop_back();
    result.otherwise = expr.constant;
    result.is_load = true;
    result.value = work.pool().load(expr.id, expr.dtype, std::move(coordinates));
    return result;
  }
  return std::nullopt;
}

// `value` under other conditions.
ExprId under(Workpiece& work, const Masked& term, std::span<const ExprId> conditions,
             ExprId value) {
  ExprId gate;
  for (const ExprId condition : conditions) {
    gate = work.pool().logical_and(gate, simplify(work, condition));
  }
  if (!gate.valid()) return value;
  if (is_known(work, gate)) {
    return work.pool()[gate].constant.as_int() != 0 ? value : work.pool().constant(term.otherwise);
  }
  const Expr& expr = work.pool()[value];
  if (term.is_load && expr.kind == ExprKind::Load) {
    std::vector<ExprId> coordinates = expr.operands;
    if (expr.gated) {
      gate = work.pool().logical_and(gate, coordinates.back());
      coordinates.pop_back();
    }
    return work.pool().load_gated(expr.id, expr.dtype, std::move(coordinates), gate,
                                  term.otherwise);
  }
  const std::array<ExprId, 3> operands{gate, value, work.pool().constant(term.otherwise)};
  return work.pool().scalar(ScalarOp::Select, operands);
}

// A condition as `range < limit` or `limit <= range`.
struct Bound {
  bool is_lower = false;
  ExprId limit;
};

ExprId at_zero(Workpiece& work, ExprId expr, std::uint32_t range) {
  return substitute(work.pool(), expr, {{range, work.pool().index(0)}});
}

// a - b = coefficient * range + rest, if that is so and nothing in it wraps.
struct Difference {
  std::int64_t coefficient = 0;
  ExprId rest;
};

std::optional<Difference> difference(Workpiece& work, const Expr& compare, std::uint32_t range,
                                     Gate bounded) {
  const ExprId a = compare.operands[0], b = compare.operands[1];
  if (work.pool()[a].dtype != DType::I64) return std::nullopt;
  const auto of_a = linear_coefficient(work.pool(), a, range);
  const auto of_b = linear_coefficient(work.pool(), b, range);
  if (!of_a || !of_b) return std::nullopt;
  Difference result;
  if (__builtin_sub_overflow(*of_a, *of_b, &result.coefficient)) return std::nullopt;
  const bool is_bounded = work.bounds(a).within(-kMostIndex, kMostIndex) &&
                          work.bounds(b).within(-kMostIndex, kMostIndex) &&
                          std::abs(*of_a) <= kMostFactor && std::abs(*of_b) <= kMostFactor;
  if (result.coefficient == 0 || !work.passes(bounded, is_bounded)) return std::nullopt;
  result.rest =
      work.pool().add(at_zero(work, a, range), work.pool().mul(at_zero(work, b, range), -1));
  return result;
}

std::optional<Bound> bound_of(Workpiece& work, ExprId condition, std::uint32_t range) {
  const Expr& compare = work.pool()[condition];
  if (!is_op(compare, ScalarOp::Lt) && !is_op(compare, ScalarOp::Le)) return std::nullopt;
  const auto sum = difference(work, compare, range, Gate::CountBounded);
  if (!sum) return std::nullopt;
  ExprPool& pool = work.pool();
  // coefficient * range + rest < 0
  const ExprId rest = compare.op == ScalarOp::Le ? pool.add(sum->rest, pool.index(-1)) : sum->rest;
  Bound bound;
  if (sum->coefficient > 0) {
    const ExprId last = pool.add(pool.mul(rest, -1), pool.index(-1));
    bound.limit = pool.add(pool.floor_div(last, sum->coefficient), pool.index(1));
  } else {
    bound.is_lower = true;
    bound.limit = pool.add(pool.floor_div(rest, -sum->coefficient), pool.index(1));
  }
  bound.limit = simplify(work, bound.limit);
  return bound;
}

// --- rules

const Expr* reduce_at(Workpiece& work, ExprId id) {
  const Expr& expr = work.pool()[id];
  return expr.kind == ExprKind::Reduce ? &expr : nullptr;
}

// op(op(x over b) over a) -> op(x over a, b)
ExprId flatten_reduce(Workpiece& work, ExprId id) {
  const Expr* outer = reduce_at(work, id);
  if (outer == nullptr) return {};
  const Expr& inner = work.pool()[outer->operands[0]];
  if (inner.kind != ExprKind::Reduce || inner.reduce != outer->reduce) return {};
  const bool ordered = outer->reduce == Combine::Sum || outer->reduce == Combine::Product;
  if (!work.passes(Gate::FlattenPolicy, !ordered || (may_regroup(*outer) && may_regroup(inner)))) {
    return {};
  }
  std::vector<std::uint32_t> ranges = outer->ranges;
  ranges.insert(ranges.end(), inner.ranges.begin(), inner.ranges.end());
  return work.pool().reduce(outer->reduce, inner.operands[0], std::move(ranges), outer->strict);
}

ExprId power(Workpiece& work, ExprId base, std::int64_t exponent) {
  ExprId result;
  while (true) {
    if (exponent % 2 != 0) {
      result = result.valid() ? binary(work, ScalarOp::Mul, result, base) : base;
    }
    exponent /= 2;
    if (exponent == 0) return result;
    base = binary(work, ScalarOp::Mul, base, base);
  }
}

// Ranges that the operand does not depend on.
ExprId invariant_reduce(Workpiece& work, ExprId id) {
  const Expr* reduce = reduce_at(work, id);
  if (reduce == nullptr) return {};
  std::vector<std::uint32_t> kept;
  std::int64_t turns = 1;
  for (const std::uint32_t range : reduce->ranges) {
    if (depends_on(work.pool(), reduce->operands[0], range)) {
      kept.push_back(range);
    } else if (__builtin_mul_overflow(turns, work.extent(range), &turns)) {
      return {};
    }
  }
  if (kept.size() == reduce->ranges.size()) return {};
  if (turns == 0) return work.pool().constant(identity(reduce->reduce, reduce->dtype));
  const bool ordered = reduce->reduce == Combine::Sum || reduce->reduce == Combine::Product;
  if (ordered && !work.passes(Gate::InvariantPolicy, may_regroup(*reduce))) return {};
  const bool exact = counts_exactly(reduce->dtype, turns);
  if (reduce->reduce == Combine::Sum && !work.passes(Gate::InvariantExact, exact)) return {};
  const ExprId once = reduce_or_body(work, *reduce, reduce->operands[0], std::move(kept));
  switch (reduce->reduce) {
    case Combine::Max:
    case Combine::Min: return once;
    case Combine::Product: return power(work, once, turns);
    case Combine::Sum: break;
  }
  return binary(work, ScalarOp::Mul, once,
                work.pool().constant(Scalar::of_int(reduce->dtype, turns)));
}

// How many turns of the range satisfy all of the bounds.
ExprId count_of(Workpiece& work, std::uint32_t range, std::span<const Bound> bounds) {
  ExprPool& pool = work.pool();
  ExprId first = pool.index(0), end = pool.index(work.extent(range));
  for (const Bound& bound : bounds) {
    if (bound.is_lower) {
      first = binary(work, ScalarOp::Max, bound.limit, first);
    } else {
      end = binary(work, ScalarOp::Min, bound.limit, end);
    }
  }
  const ExprId length = pool.add(end, pool.mul(first, -1));
  return simplify(work, binary(work, ScalarOp::Max, length, pool.index(0)));
}

// sum(v where bounds of r hold, else 0 over r) -> v * clipped length, v not depending on r
ExprId count_gates_over(Workpiece& work, const Expr& reduce, const Masked& term,
                        std::uint32_t range) {
  if (!work.passes(Gate::CountInvariant, !depends_on(work.pool(), term.value, range))) return {};
  std::vector<ExprId> conditions;
  std::vector<Bound> bounds;
  for (const ExprId condition : term.conditions) {
    if (!depends_on(work.pool(), condition, range)) {
      conditions.push_back(condition);
    } else if (const auto bound = bound_of(work, condition, range)) {
      bounds.push_back(*bound);
    } else {
      return {};
    }
  }
  if (bounds.empty()) return {};
  const ExprId count = count_of(work, range, bounds);
  const bool is_one = term.value == work.pool().constant(Scalar::of_int(reduce.dtype, 1));
  ExprId value = work.pool().cast(count, reduce.dtype);
  if (!is_one) value = binary(work, ScalarOp::Mul, term.value, value);
  // No turn: the value may not be read, and may be no number.
  const bool is_safe = is_finite(work, term.value) || !is_float(reduce.dtype);
  if (term.is_load || !is_safe) {
    conditions.push_back(binary(work, ScalarOp::Lt, work.pool().index(0), count));
  }
  if (term.is_load) {
    const ExprId loaded = under(work, term, conditions, term.value);
    value = binary(work, ScalarOp::Mul, loaded, work.pool().cast(count, reduce.dtype));
  } else {
    value = under(work, term, conditions, value);
  }
  return reduce_or_body(work, reduce, value, without(reduce.ranges, range));
}

bool is_zero(const Scalar& scalar) { return scalar.as_double() == 0; }

ExprId count_gates(Workpiece& work, ExprId id) {
  const Expr* reduce = reduce_at(work, id);
  if (reduce == nullptr || reduce->reduce != Combine::Sum) return {};
  const std::optional<Masked> term = masked(work, reduce->operands[0]);
  if (!term || !is_zero(term->otherwise)) return {};
  for (const std::uint32_t range : reduce->ranges) {
    const bool may = may_regroup(*reduce) && counts_exactly(reduce->dtype, work.extent(range));
    if (!work.passes(Gate::CountPolicy, may)) continue;
    const ExprId answer = count_gates_over(work, *reduce, *term, range);
    if (answer.valid()) return answer;
  }
  return {};
}

// op(x where first <= r < end, else identity over r) -> op(x over end - first turns)
ExprId clip_turns_of(Workpiece& work, const Expr& reduce, const Masked& term, std::uint32_t range) {
  std::int64_t first = 0, end = work.extent(range);
  std::vector<ExprId> conditions;
  for (const ExprId condition : term.conditions) {
    std::optional<Bound> bound;
    if (depends_on(work.pool(), condition, range)) bound = bound_of(work, condition, range);
    if (!bound || !is_known(work, bound->limit)) {
      conditions.push_back(condition);
      continue;
    }
    const std::int64_t limit = work.pool()[bound->limit].constant.as_int();
    if (bound->is_lower) {
      first = std::max(first, limit);
    } else {
      end = std::min(end, limit);
    }
  }
  if (first == 0 && end == work.extent(range)) return {};
  if (end <= first) return work.pool().constant(identity(reduce.reduce, reduce.dtype));
  const std::uint32_t made = work.add_reduce_range(work.kernel().ranges[range].name, end - first);
  ExprPool& pool = work.pool();
  const ExprId moved = pool.add(pool.variable(made), pool.index(first));
  for (ExprId& condition : conditions) condition = substitute(pool, condition, {{range, moved}});
  const ExprId value =
      under(work, term, conditions, simplify(work, substitute(pool, term.value, {{range, moved}})));
  std::vector<std::uint32_t> ranges = reduce.ranges;
  std::ranges::replace(ranges, range, made);
  return pool.reduce(reduce.reduce, value, std::move(ranges), reduce.strict);
}

ExprId clip_turns(Workpiece& work, ExprId id) {
  const Expr* reduce = reduce_at(work, id);
  if (reduce == nullptr) return {};
  const std::optional<Masked> term = masked(work, reduce->operands[0]);
  if (!term) return {};
  const Scalar neutral = identity(reduce->reduce, reduce->dtype);
  const bool is_identity =
      reduce->reduce == Combine::Sum ? is_zero(term->otherwise) : term->otherwise == neutral;
  if (!work.passes(Gate::ClipIdentity, is_identity)) return {};
  for (const std::uint32_t range : reduce->ranges) {
    const ExprId answer = clip_turns_of(work, *reduce, *term, range);
    if (answer.valid()) return answer;
  }
  return {};
}

// An expression with a range replaced by an index that may lie outside of it: loads that move with
// the range are done only where `inside` holds.
class GatheredValue {
 public:
  GatheredValue(Workpiece& work, std::uint32_t range, ExprId index, ExprId inside)
      : work_(work), range_(range), index_(index), inside_(inside) {}

  ExprId of(ExprId id) {
    if (!depends_on(work_.pool(), id, range_)) return id;
    if (const auto known = done_.find(id.index); known != done_.end()) return known->second;
    const ExprId result = of_new(work_.pool()[id]);
    done_.emplace(id.index, result);
    return result;
  }

 private:
  ExprId of_new(const Expr& expr) {
    ExprPool& pool = work_.pool();
    if (expr.kind == ExprKind::Variable) return index_;
    Expr copy = expr;
    for (ExprId& operand : copy.operands) operand = of(operand);
    if (copy.kind == ExprKind::Load && inside_.valid()) {
      if (copy.gated) {
        copy.operands.back() = pool.logical_and(inside_, copy.operands.back());
      } else {
        copy.operands.push_back(inside_);
        copy.gated = true;
        copy.constant = Scalar::zero(copy.dtype);
      }
    }
    return pool.intern(std::move(copy));
  }

  Workpiece& work_;
  std::uint32_t range_;
  ExprId index_, inside_;
  std::unordered_map<std::uint32_t, ExprId> done_;
};

// `side` is the range itself, possibly in another integer type that holds all of it.
bool is_range(const Workpiece& work, ExprId side, std::uint32_t range) {
  const Expr* expr = &work.pool()[side];
  if (expr->kind == ExprKind::Cast && is_integer(expr->dtype) && expr->dtype != DType::U64) {
    const bool is_narrow = size_bytes(expr->dtype) < 8;
    const int bits = 8 * size_bytes(expr->dtype) - (is_signed(expr->dtype) ? 1 : 0);
    if (is_narrow && work.extent(range) > std::int64_t{1} << bits) return false;
    expr = &work.pool()[expr->operands[0]];
  }
  return expr->kind == ExprKind::Variable && expr->id == range;
}

// The index for which `range == index` is the condition.
ExprId picked_index(Workpiece& work, ExprId condition, std::uint32_t range) {
  const Expr& compare = work.pool()[condition];
  if (!is_op(compare, ScalarOp::Eq)) return {};
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const ExprId other = compare.operands[1 - side];
    if (is_range(work, compare.operands[side], range) && !depends_on(work.pool(), other, range)) {
      return work.pool().cast(other, DType::I64);
    }
  }
  const auto sum = difference(work, compare, range, Gate::GatherBounded);
  if (!sum || (sum->coefficient != 1 && sum->coefficient != -1)) return {};
  return simplify(work, work.pool().mul(sum->rest, -sum->coefficient));
}

// sum(x where r == index, else 0 over r) -> x at the index if it is inside of r, else 0
ExprId gather_over(Workpiece& work, const Expr& reduce, const Masked& term, std::uint32_t range) {
  for (std::size_t k = 0; k < term.conditions.size(); ++k) {
    const ExprId index = picked_index(work, term.conditions[k], range);
    if (!index.valid()) continue;
    ExprPool& pool = work.pool();
    ExprId inside;
    if (!work.passes(Gate::GatherInside, false)) {
      const ExprId above = binary(work, ScalarOp::Le, pool.index(0), index);
      const ExprId below = binary(work, ScalarOp::Lt, index, pool.index(work.extent(range)));
      inside = simplify(work, pool.logical_and(above, below));
    }
    GatheredValue gathered(work, range, index, inside);
    std::vector<ExprId> conditions;
    if (inside.valid()) conditions.push_back(inside);
    for (std::size_t other = 0; other < term.conditions.size(); ++other) {
      if (other != k) conditions.push_back(gathered.of(term.conditions[other]));
    }
    const ExprId value = under(work, term, conditions, gathered.of(term.value));
    return reduce_or_body(work, reduce, value, without(reduce.ranges, range));
  }
  return {};
}

ExprId gather(Workpiece& work, ExprId id) {
  const Expr* reduce = reduce_at(work, id);
  if (reduce == nullptr || reduce->reduce != Combine::Sum) return {};
  const ExprId body = reduce->operands[0];
  const std::optional<Masked> term = masked(work, body);
  if (!term || !is_zero(term->otherwise)) return {};
  if (!work.passes(Gate::GatherPolicy, may_regroup(*reduce))) return {};
  if (!work.passes(Gate::GatherNoReduce, !contains_reduce(work.pool(), body))) return {};
  // The report of a clamped index must not change.
  const bool clamps = contains(work.pool(), body, [](ExprId, const Expr& expr) {
    return expr.kind == ExprKind::ClampIndex;
  });
  if (clamps) return {};
  for (const std::uint32_t range : reduce->ranges) {
    const ExprId answer = gather_over(work, *reduce, *term, range);
    if (answer.valid() && !depends_on(work.pool(), answer, range)) return answer;
  }
  return {};
}

// sum(p + q) -> sum(p) + sum(q), where one of them needs no loop any more
ExprId split_sum(Workpiece& work, ExprId id) {
  const Expr* reduce = reduce_at(work, id);
  if (reduce == nullptr || reduce->reduce != Combine::Sum) return {};
  const Expr& body = work.pool()[reduce->operands[0]];
  if (!is_op(body, ScalarOp::Add) && !is_op(body, ScalarOp::Sub)) return {};
  if (!work.passes(Gate::SplitSumPolicy, may_regroup(*reduce) && may_regroup(body))) return {};
  std::array<ExprId, 2> sums;
  bool any = false;
  for (std::size_t side = 0; side < 2; ++side) {
    sums[side] =
        work.pool().reduce(Combine::Sum, body.operands[side], reduce->ranges, reduce->strict);
    for (const auto rule : {invariant_reduce, count_gates, gather}) {
      const ExprId answer = rule(work, sums[side]);
      if (!answer.valid()) continue;
      if (!work.passes(Gate::SplitSumDone, !contains_reduce(work.pool(), answer))) continue;
      sums[side] = answer;
      any = true;
      break;
    }
  }
  if (!any) return {};
  return binary(work, body.op, sums[0], sums[1]);
}

// Factors of a product, from left to right.
void collect_factors(const Workpiece& work, ExprId id, std::vector<ExprId>& factors) {
  const Expr& expr = work.pool()[id];
  if (is_op(expr, ScalarOp::Mul) && work.passes(Gate::PullPolicy, may_regroup(expr))) {
    for (const ExprId operand : expr.operands) collect_factors(work, operand, factors);
  } else {
    factors.push_back(id);
  }
}

// sum(x * c over r) -> sum(x over r) * c, c not depending on r
ExprId pull_factor(Workpiece& work, ExprId id) {
  const Expr* reduce = reduce_at(work, id);
  if (reduce == nullptr || reduce->reduce != Combine::Sum) return {};
  if (!work.passes(Gate::PullPolicy, may_regroup(*reduce))) return {};
  std::vector<ExprId> factors;
  collect_factors(work, reduce->operands[0], factors);
  ExprId inside, outside;
  for (const ExprId factor : factors) {
    ExprId& product = depends_on_any(work.pool(), factor, reduce->ranges) ? inside : outside;
    product = product.valid() ? binary(work, ScalarOp::Mul, product, factor) : factor;
  }
  if (!inside.valid() || !outside.valid()) return {};
  // Without turns there is nothing to multiply: the factor may be no number.
  const bool has_turns = std::ranges::all_of(
      reduce->ranges, [&](std::uint32_t range) { return work.extent(range) > 0; });
  if (!has_turns) return {};
  const ExprId sum = work.pool().reduce(Combine::Sum, inside, reduce->ranges, reduce->strict);
  return binary(work, ScalarOp::Mul, sum, outside);
}

Measure measure(const RangedKernel& kernel) {
  double sum = 0;
  for (const RangedStore& store : kernel.stores) {
    sum += weight(kernel, store.value);
    for (const ExprId coordinate : store.coordinates) sum += weight(kernel, coordinate);
  }
  return {sum, 0, 0};
}

constexpr RuleCode kRules[] = {
    {.rule = Rule::FlattenReduce, .at_expr = flatten_reduce},
    {.rule = Rule::InvariantReduce, .at_expr = invariant_reduce},
    {.rule = Rule::CountGates, .at_expr = count_gates},
    {.rule = Rule::ClipTurns, .at_expr = clip_turns},
    {.rule = Rule::Gather, .at_expr = gather},
    {.rule = Rule::SplitSum, .at_expr = split_sum},
    {.rule = Rule::PullFactor, .at_expr = pull_factor},
};

}  // namespace

Result<Rewritten> simplify_reduces(const RangedKernel& kernel, const RuleOptions& options) {
  return rewrite(kernel, kRules, measure, options);
}

}  // namespace ingot
