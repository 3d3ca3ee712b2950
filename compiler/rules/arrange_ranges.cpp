// Rules for the ranges of a kernel: which there are, and how long.
#include <algorithm>
#include <array>
#include <set>

#include "compiler/rules/rewrite.h"

namespace ingot {
namespace {

// CALLS.grid: the turns of a parallel loop.
constexpr std::int64_t kMostTurns = 65535;
// Lanes of the widest vector; a range this long can fill it alone.
constexpr std::int64_t kMostLanes = 16;

bool is_op(const Expr& expr, ScalarOp op) { return expr.kind == ExprKind::Scalar && expr.op == op; }

std::optional<std::int64_t> known(const ExprPool& pool, ExprId id) {
  const Expr& expr = pool[id];
  if (expr.kind != ExprKind::Constant || expr.dtype != DType::I64) return std::nullopt;
  return expr.constant.as_int();
}

bool is_variable(const ExprPool& pool, ExprId id, std::uint32_t range) {
  const Expr& expr = pool[id];
  return expr.kind == ExprKind::Variable && expr.id == range;
}

template <typename Visit>
void for_each_reached(const RangedKernel& kernel, const Visit& visit) {
  const std::vector<bool> marks = reached(kernel);
  for (std::uint32_t i = 0; i < marks.size(); ++i) {
    if (marks[i]) visit(kernel.pool[ExprId{i}]);
  }
}

template <typename Visit>
void for_each_reduce(const RangedKernel& kernel, const Visit& visit) {
  for_each_reached(kernel, [&](const Expr& expr) {
    if (expr.kind == ExprKind::Reduce) visit(expr);
  });
}

std::size_t count_divisions(const RangedKernel& kernel) {
  std::size_t count = 0;
  for_each_reached(kernel, [&](const Expr& expr) {
    const bool divides = is_op(expr, ScalarOp::FloorDiv) || is_op(expr, ScalarOp::FloorMod) ||
                         is_op(expr, ScalarOp::Div);
    if (divides && expr.dtype == DType::I64) ++count;
  });
  return count;
}

// Every range as it is, but for those that `replace` names: position and number of new ranges.
RangeChange replacing(const RangedKernel& kernel, std::uint32_t first, std::size_t count,
                      std::span<const Range> with) {
  RangeChange change;
  for (std::uint32_t r = 0; r < kernel.ranges.size(); ++r) {
    if (r == first) change.ranges.insert(change.ranges.end(), with.begin(), with.end());
    const bool replaced = r >= first && r < first + count;
    change.value_of.emplace_back();
    change.owned.emplace_back();
    if (replaced) continue;
    const auto now = static_cast<std::uint32_t>(change.ranges.size());
    change.ranges.push_back(kernel.ranges[r]);
    change.value_of[r] = change.pool.variable(now);
    change.owned[r] = {now};
  }
  return change;
}

RangedKernel without(const RangedKernel& kernel, std::uint32_t range) {
  RangeChange change = replacing(kernel, range, 1, {});
  change.value_of[range] = change.pool.index(0);
  return change_ranges(kernel, std::move(change));
}

// --- one turn, no use

std::optional<RangedKernel> one_turn(const Workpiece& work, std::uint32_t range) {
  if (!work.passes(Gate::OneTurnExtent, work.extent(range) == 1)) return std::nullopt;
  bool starts_at_zero = false;
  for_each_reduce(work.kernel(), [&](const Expr& reduce) {
    starts_at_zero = starts_at_zero || (reduce.ranges == std::vector{range} && reduce.strict &&
                                        reduce.reduce == Combine::Sum && is_float(reduce.dtype));
  });
  if (!work.passes(Gate::OneTurnZero, !starts_at_zero)) return std::nullopt;
  return without(work.kernel(), range);
}

std::optional<RangedKernel> unused(const Workpiece& work, std::uint32_t range) {
  bool used = false;
  for_each_reached(work.kernel(), [&](const Expr& expr) {
    used = used || (expr.kind == ExprKind::Variable && expr.id == range) ||
           std::ranges::find(expr.ranges, range) != expr.ranges.end();
  });
  if (!work.passes(Gate::UnusedEverywhere, !used)) return std::nullopt;
  return without(work.kernel(), range);
}

// --- split

// Divisors by which the range itself is divided somewhere.
std::set<std::int64_t> divisors_of(const RangedKernel& kernel, std::uint32_t range) {
  std::set<std::int64_t> divisors;
  for_each_reached(kernel, [&](const Expr& expr) {
    if (!is_op(expr, ScalarOp::FloorDiv) && !is_op(expr, ScalarOp::FloorMod)) return;
    if (!is_variable(kernel.pool, expr.operands[0], range)) return;
    if (const auto divisor = known(kernel.pool, expr.operands[1])) divisors.insert(*divisor);
  });
  return divisors;
}

// r: n*m -> outer: n, inner: m, where r div m or r mod m is read
std::optional<RangedKernel> split_range(const Workpiece& work, std::uint32_t range) {
  const RangedKernel& kernel = work.kernel();
  const Range& old = kernel.ranges[range];
  const std::size_t before = count_divisions(kernel);
  for (const std::int64_t divisor : divisors_of(kernel, range)) {
    if (divisor < 2 || divisor >= old.extent) continue;
    if (!work.passes(Gate::SplitDivides, old.extent % divisor == 0)) continue;
    if (!work.passes(Gate::SplitWide, divisor % kMostLanes == 0)) continue;
    const std::array<Range, 2> parts{Range{old.name + "o", old.extent / divisor, old.is_reduce},
                                     Range{old.name + "i", divisor, old.is_reduce}};
    RangeChange change = replacing(kernel, range, 1, parts);
    ExprPool& pool = change.pool;
    change.value_of[range] =
        pool.add(pool.mul(pool.variable(range), divisor), pool.variable(range + 1));
    change.owned[range] = {range, range + 1};
    RangedKernel answer = change_ranges(kernel, std::move(change));
    if (count_divisions(answer) < before) return answer;
  }
  return std::nullopt;
}

// --- shrink

// Up to where the values of a range matter: `range < b` around a use, or `min(range, b - 1)`.
class UsesOfRange {
 public:
  UsesOfRange(const RangedKernel& kernel, std::uint32_t range)
      : kernel_(kernel), range_(range), all_(kernel.ranges[range].extent) {
    for (const RangedStore& store : kernel.stores) {
      visit(store.value, all_);
      for (const ExprId coordinate : store.coordinates) visit(coordinate, all_);
    }
  }

  [[nodiscard]] bool is_ungated() const { return ungated_; }
  [[nodiscard]] bool is_reduced() const { return reduced_; }
  // The largest bound of a gate; 0 without any.
  [[nodiscard]] std::int64_t needed() const { return needed_; }

 private:
  const Expr& at(ExprId id) const { return kernel_.pool[id]; }

  void use(std::int64_t limit) {
    if (limit >= all_) {
      ungated_ = true;
    } else {
      needed_ = std::max(needed_, limit);
    }
  }

  // The limit inside of a gate; what else the gate says is visited under it.
  std::int64_t gate(ExprId id, std::int64_t limit) {
    std::vector<ExprId> conditions{id};
    std::vector<ExprId> others;
    while (!conditions.empty()) {
      const Expr& expr = at(conditions.back());
      const ExprId condition = conditions.back();
      conditions.pop_back();
      if (is_op(expr, ScalarOp::And)) {
        conditions.insert(conditions.end(), expr.operands.begin(), expr.operands.end());
        continue;
      }
      const bool bounds = is_op(expr, ScalarOp::Lt) &&
                          is_variable(kernel_.pool, expr.operands[0], range_) &&
                          known(kernel_.pool, expr.operands[1]);
      if (bounds) {
        limit = std::min(limit, *known(kernel_.pool, expr.operands[1]));
      } else {
        others.push_back(condition);
      }
    }
    for (const ExprId other : others) visit(other, limit);
    return limit;
  }

  void visit(ExprId id, std::int64_t limit) {
    if (!visited_.insert({id.index, limit}).second) return;
    const Expr& expr = at(id);
    if (expr.kind == ExprKind::Variable && expr.id == range_) return use(limit);
    if (std::ranges::find(expr.ranges, range_) != expr.ranges.end()) reduced_ = true;
    if (is_op(expr, ScalarOp::Min) && is_variable(kernel_.pool, expr.operands[0], range_)) {
      if (const auto bound = known(kernel_.pool, expr.operands[1])) {
        return use(std::min(limit, *bound + 1));
      }
    }
    if (is_op(expr, ScalarOp::Select)) {
      visit(expr.operands[1], gate(expr.operands[0], limit));
      return visit(expr.operands[2], limit);
    }
    if (expr.kind == ExprKind::Load && expr.gated) {
      const std::int64_t inner = gate(expr.operands.back(), limit);
      for (std::size_t i = 0; i + 1 < expr.operands.size(); ++i) visit(expr.operands[i], inner);
      return;
    }
    for (const ExprId operand : expr.operands) visit(operand, limit);
  }

  const RangedKernel& kernel_;
  std::uint32_t range_;
  std::int64_t all_;
  std::int64_t needed_ = 0;
  bool ungated_ = false, reduced_ = false;
  std::set<std::pair<std::uint32_t, std::int64_t>> visited_;
};

// r: n -> r: b, b < n the largest bound of its gates
std::optional<RangedKernel> shrink_range(const Workpiece& work, std::uint32_t range) {
  const UsesOfRange uses(work.kernel(), range);
  if (uses.needed() < 1 || uses.needed() >= work.extent(range)) return std::nullopt;
  if (!work.passes(Gate::ShrinkGated, !uses.is_ungated())) return std::nullopt;
  if (!work.passes(Gate::ShrinkNoReduce, !uses.is_reduced())) return std::nullopt;
  Range shorter = work.kernel().ranges[range];
  shorter.extent = uses.needed();
  RangeChange change = replacing(work.kernel(), range, 1, std::array{shorter});
  change.value_of[range] = change.pool.variable(range);
  change.owned[range] = {range};
  return change_ranges(work.kernel(), std::move(change));
}

// --- merge

// Coordinates of every load of and store to a parameter.
std::vector<std::vector<ExprId>> accesses_of(const RangedKernel& kernel, std::uint32_t parameter) {
  std::vector<std::vector<ExprId>> accesses;
  for (const RangedStore& store : kernel.stores) {
    if (store.parameter == parameter) accesses.push_back(store.coordinates);
  }
  for_each_reached(kernel, [&](const Expr& expr) {
    if (expr.kind != ExprKind::Load || expr.id != parameter) return;
    accesses.push_back(expr.operands);
    if (expr.gated) accesses.back().pop_back();
  });
  return accesses;
}

// The dimension d that the range walks in every access, while the next range walks d + 1, if the
// two may be one.
std::optional<int> dimension_of(const Workpiece& work, std::uint32_t parameter,
                                std::uint32_t range) {
  const RangedKernel& kernel = work.kernel();
  const auto accesses = accesses_of(kernel, parameter);
  if (accesses.empty()) return std::nullopt;
  for (std::size_t d = 0; d + 1 < kernel.parameters[parameter].shape.size(); ++d) {
    const bool match = std::ranges::all_of(accesses, [&](const std::vector<ExprId>& at) {
      return depends_on(kernel.pool, at[d], range) &&
             is_variable(kernel.pool, at[d + 1], range + 1);
    });
    const bool joins = can_join(kernel.parameters[parameter].layout, static_cast<int>(d));
    if (match && work.passes(Gate::MergeContiguous, joins)) return static_cast<int>(d);
  }
  return std::nullopt;
}

// The kernel with both dimensions as one, in every parameter where the ranges walk two.
RangedKernel joined(const Workpiece& work, std::uint32_t range) {
  RangedKernel kernel = work.kernel();
  std::vector<std::optional<int>> dimensions;
  for (std::uint32_t p = 0; p < kernel.parameters.size(); ++p) {
    dimensions.push_back(dimension_of(work, p, range));
  }
  const auto join_coordinates = [&](std::uint32_t parameter, std::vector<ExprId>& at) {
    const auto d = static_cast<std::size_t>(*dimensions[parameter]);
    const std::int64_t length = work.kernel().parameters[parameter].shape[d + 1];
    at[d] = kernel.pool.add(kernel.pool.mul(at[d], length), at[d + 1]);
    at.erase(at.begin() + static_cast<std::ptrdiff_t>(d) + 1);
  };
  const std::vector<bool> wanted = reached(kernel);
  std::vector<ExprId> place(wanted.size());
  for (std::uint32_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    Expr expr = kernel.pool[ExprId{i}];
    for (ExprId& operand : expr.operands) operand = place[operand.index];
    if (expr.kind == ExprKind::Load && dimensions[expr.id]) {
      join_coordinates(expr.id, expr.operands);
    }
    place[i] = kernel.pool.intern(std::move(expr));
  }
  for (RangedStore& store : kernel.stores) {
    for (ExprId& coordinate : store.coordinates) coordinate = place[coordinate.index];
    store.value = place[store.value.index];
    if (dimensions[store.parameter]) join_coordinates(store.parameter, store.coordinates);
  }
  for (std::uint32_t p = 0; p < kernel.parameters.size(); ++p) {
    if (dimensions[p])
      join(kernel.parameters[p].layout, kernel.parameters[p].shape, *dimensions[p]);
  }
  return kernel;
}

// Every reduce runs over both, one right inside of the other, or over neither.
bool reduced_together(const RangedKernel& kernel, std::uint32_t range) {
  bool together = true;
  for_each_reduce(kernel, [&](const Expr& reduce) {
    const auto outer = std::ranges::find(reduce.ranges, range);
    const auto inner = std::ranges::find(reduce.ranges, range + 1);
    const bool neither = outer == reduce.ranges.end() && inner == reduce.ranges.end();
    const bool both = outer != reduce.ranges.end() && outer + 1 == inner;
    together = together && (neither || both);
  });
  return together;
}

// Schedules see rows and columns of windows in their ranges: results are merged where no coordinate
// has a reduced range beside them, reduced ranges only where they stand alone.
bool leaves_schedule(const RangedKernel& kernel, std::uint32_t range) {
  const bool is_reduce = kernel.ranges[range].is_reduce;
  bool leaves = true;
  for_each_reached(kernel, [&](const Expr& expr) {
    if (expr.kind != ExprKind::Load) return;
    for (const ExprId coordinate : expr.operands) {
      if (!depends_on(kernel.pool, coordinate, range) &&
          !depends_on(kernel.pool, coordinate, range + 1)) {
        continue;
      }
      for (std::uint32_t other = 0; other < kernel.ranges.size(); ++other) {
        const bool is_beside = other != range && other != range + 1 &&
                               (is_reduce || kernel.ranges[other].is_reduce) &&
                               depends_on(kernel.pool, coordinate, other);
        leaves = leaves && !is_beside;
      }
    }
  });
  return leaves;
}

// Whether an index divides the range: an access then is not contiguous over all of it.
bool divides(const RangedKernel& kernel, std::uint32_t range) {
  bool divided = false;
  for_each_reached(kernel, [&](const Expr& expr) {
    if (!is_op(expr, ScalarOp::FloorDiv) && !is_op(expr, ScalarOp::FloorMod)) return;
    divided = divided || depends_on(kernel.pool, expr.operands[0], range);
  });
  return divided;
}

// a: m, b: n -> ab: m*n; a = ab div n, b = ab mod n
std::optional<RangedKernel> merge_ranges(const Workpiece& work, std::uint32_t range) {
  const RangedKernel& kernel = work.kernel();
  if (range + 1 >= kernel.ranges.size()) return std::nullopt;
  const Range& outer = kernel.ranges[range];
  const Range& inner = kernel.ranges[range + 1];
  if (outer.is_reduce != inner.is_reduce || inner.extent < 1) return std::nullopt;
  std::int64_t turns = 0;
  if (__builtin_mul_overflow(outer.extent, inner.extent, &turns)) return std::nullopt;
  if (!work.passes(Gate::MergeTurns, turns <= kMostTurns) ||
      !work.passes(Gate::MergeReduces, reduced_together(kernel, range)) ||
      !work.passes(Gate::MergeSchedule, leaves_schedule(kernel, range))) {
    return std::nullopt;
  }
  const Range merged{outer.name + "_" + inner.name, turns, outer.is_reduce};
  RangeChange change = replacing(kernel, range, 2, std::array{merged});
  ExprPool& pool = change.pool;
  change.value_of[range] = pool.floor_div(pool.variable(range), inner.extent);
  change.value_of[range + 1] = pool.floor_mod(pool.variable(range), inner.extent);
  change.owned[range] = {range};
  RangedKernel answer = change_ranges(joined(work, range), std::move(change));
  const bool grows = count_divisions(answer) > count_divisions(kernel);
  if (!work.passes(Gate::MergeDivisions, !grows)) return std::nullopt;
  if (!grows && !work.passes(Gate::MergeSchedule, !divides(answer, range))) return std::nullopt;
  return answer;
}

Measure measure(const RangedKernel& kernel) {
  double extents = 0;
  for (const Range& range : kernel.ranges) extents += static_cast<double>(range.extent);
  return {static_cast<double>(count_divisions(kernel)), static_cast<double>(kernel.ranges.size()),
          extents};
}

constexpr RuleCode kRules[] = {
    {.rule = Rule::OneTurn, .at_range = one_turn},
    {.rule = Rule::Unused, .at_range = unused},
    {.rule = Rule::SplitRange, .at_range = split_range},
    {.rule = Rule::ShrinkRange, .at_range = shrink_range},
    {.rule = Rule::MergeRanges, .at_range = merge_ranges},
};

}  // namespace

Result<Rewritten> arrange_ranges(const RangedKernel& kernel, const RuleOptions& options) {
  return rewrite(kernel, kRules, measure, options);
}

}  // namespace ingot
