#include "compiler/rules/rewrite.h"

#include <fmt/format.h>

#include <unordered_map>

namespace ingot {
namespace {

double weight(const RangedKernel& kernel, ExprId id,
              std::unordered_map<std::uint32_t, double>& memo) {
  if (const auto known = memo.find(id.index); known != memo.end()) return known->second;
  const Expr& expr = kernel.pool[id];
  double own = 1;
  for (const ExprId operand : expr.operands) own += weight(kernel, operand, memo);
  for (const std::uint32_t range : expr.ranges) {
    own *= static_cast<double>(kernel.ranges[range].extent);
  }
  // A reduce is more than a value.
  if (expr.kind == ExprKind::Reduce) own += 2;
  memo.emplace(id.index, own);
  return own;
}

// Only what the stores reach, in the old order.
RangedKernel compacted(const RangedKernel& kernel) {
  RangedKernel out;
  out.name = kernel.name;
  out.parameters = kernel.parameters;
  out.ranges = kernel.ranges;
  const std::vector<bool> wanted = reached(kernel);
  std::vector<ExprId> place(wanted.size());
  for (std::uint32_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    Expr expr = kernel.pool[ExprId{i}];
    for (ExprId& operand : expr.operands) operand = place[operand.index];
    place[i] = out.pool.intern(std::move(expr));
  }
  for (RangedStore store : kernel.stores) {
    for (ExprId& coordinate : store.coordinates) coordinate = place[coordinate.index];
    store.value = place[store.value.index];
    out.stores.push_back(std::move(store));
  }
  return out;
}

class Rewriting {
 public:
  Rewriting(const RangedKernel& kernel, std::span<const RuleCode> rules,
            Measure (*measure)(const RangedKernel&), const RuleOptions& options)
      : rules_(rules), measure_(measure), options_(options), work_(kernel, options) {}

  Result<Rewritten> run() {
    bool any = false;
    while (true) {
      bool changed = false;
      for (const auto step : {&Rewriting::rewrite_expressions, &Rewriting::rewrite_ranges}) {
        const Measure before = options_.verify ? measure_(work_.kernel()) : Measure{};
        if (!(this->*step)()) continue;
        changed = true;
        if (options_.verify) INGOT_RETURN_IF_ERROR(verify(before));
      }
      if (!changed) break;
      any = true;
    }
    if (any) work_.kernel() = compacted(work_.kernel());
    return Rewritten{std::move(work_.kernel()), counts_};
  }

 private:
  void count(Rule rule) {
    ++counts_[static_cast<std::size_t>(rule)];
    last_ = rule;
  }

  bool rewrite_expressions() {
    const std::vector<bool> wanted = reached(work_.kernel());
    std::vector<ExprId> place(wanted.size());
    bool changed = false;
    for (std::uint32_t i = 0; i < wanted.size(); ++i) {
      if (!wanted[i]) continue;
      Expr expr = work_.pool()[ExprId{i}];
      for (ExprId& operand : expr.operands) operand = place[operand.index];
      place[i] = work_.pool().intern(std::move(expr));
      while (const std::optional<ExprId> answer = answer_to(place[i])) {
        place[i] = *answer;
        changed = true;
      }
    }
    if (!changed) return false;
    for (RangedStore& store : work_.kernel().stores) {
      for (ExprId& coordinate : store.coordinates) coordinate = place[coordinate.index];
      store.value = place[store.value.index];
    }
    return true;
  }

  std::optional<ExprId> answer_to(ExprId id) {
    for (const RuleCode& rule : rules_) {
      if (rule.at_expr == nullptr) continue;
      const ExprId answer = rule.at_expr(work_, id);
      if (!answer.valid() ||
          ingot::weight(work_.kernel(), answer) >= ingot::weight(work_.kernel(), id)) {
        continue;
      }
      count(rule.rule);
      return answer;
    }
    return std::nullopt;
  }

  // One answer at a time: it may change the number of ranges.
  bool rewrite_ranges() {
    for (std::size_t r = work_.kernel().ranges.size(); r-- > 0;) {
      for (const RuleCode& rule : rules_) {
        if (rule.at_range == nullptr) continue;
        std::optional<RangedKernel> answer = rule.at_range(work_, static_cast<std::uint32_t>(r));
        if (!answer) continue;
        work_.kernel() = *std::move(answer);
        count(rule.rule);
        return true;
      }
    }
    return false;
  }

  Result<void> verify(const Measure& before) const {
    const std::string_view name = rule_list()[static_cast<std::size_t>(last_)].name;
    INGOT_RETURN_IF_ERROR(validate_kernel(work_.kernel()));
    if (measure_(work_.kernel()) < before) return {};
    return fail(ExitCode::Internal, "rule-defect",
                fmt::format("kernel '{}': rule {} does not lower the measure of its pass",
                            work_.kernel().name, name));
  }

  std::span<const RuleCode> rules_;
  Measure (*measure_)(const RangedKernel&);
  const RuleOptions& options_;
  Workpiece work_;
  RuleCounts counts_{};
  Rule last_ = Rule::OneTurn;
};

}  // namespace

IndexRange Workpiece::bounds(ExprId expr) const { return bounds_of(pool(), expr, extents()); }

Extents Workpiece::extents() const {
  return [this](std::uint32_t range) { return extent(range); };
}

std::uint32_t Workpiece::add_reduce_range(std::string name, std::int64_t extent) {
  kernel_.ranges.push_back(Range{std::move(name), extent, true});
  return static_cast<std::uint32_t>(kernel_.ranges.size() - 1);
}

double weight(const RangedKernel& kernel, ExprId expr) {
  std::unordered_map<std::uint32_t, double> memo;
  return weight(kernel, expr, memo);
}

std::vector<bool> reached(const RangedKernel& kernel) {
  std::vector<bool> marks(kernel.pool.size());
  for (const RangedStore& store : kernel.stores) {
    marks[store.value.index] = true;
    for (const ExprId coordinate : store.coordinates) marks[coordinate.index] = true;
  }
  for (std::size_t i = marks.size(); i-- > 0;) {
    if (!marks[i]) continue;
    for (const ExprId operand : kernel.pool[ExprId{static_cast<std::uint32_t>(i)}].operands) {
      marks[operand.index] = true;
    }
  }
  return marks;
}

RangedKernel change_ranges(const RangedKernel& kernel, RangeChange change) {
  RangedKernel out;
  out.name = kernel.name;
  out.parameters = kernel.parameters;
  out.ranges = std::move(change.ranges);
  out.pool = std::move(change.pool);
  const std::vector<bool> wanted = reached(kernel);
  std::vector<ExprId> place(wanted.size());
  for (std::uint32_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    Expr expr = kernel.pool[ExprId{i}];
    if (expr.kind == ExprKind::Variable) {
      place[i] = change.value_of[expr.id];
      continue;
    }
    for (ExprId& operand : expr.operands) operand = place[operand.index];
    if (expr.kind == ExprKind::Reduce) {
      std::vector<std::uint32_t> ranges;
      for (const std::uint32_t range : expr.ranges) {
        ranges.insert(ranges.end(), change.owned[range].begin(), change.owned[range].end());
      }
      expr.ranges = std::move(ranges);
      if (expr.ranges.empty()) {
        place[i] = expr.operands[0];
        continue;
      }
    }
    place[i] = out.pool.intern(std::move(expr));
  }
  IndexSimplifier simplifier(out.pool,
                             [&](std::uint32_t range) { return out.ranges[range].extent; });
  for (const RangedStore& store : kernel.stores) {
    RangedStore made;
    made.parameter = store.parameter;
    for (const ExprId coordinate : store.coordinates) {
      made.coordinates.push_back(simplifier.simplify(place[coordinate.index]));
    }
    made.value = simplifier.simplify(place[store.value.index]);
    out.stores.push_back(std::move(made));
  }
  return compacted(out);
}

Result<Rewritten> rewrite(const RangedKernel& kernel, std::span<const RuleCode> rules,
                          Measure (*measure)(const RangedKernel& kernel),
                          const RuleOptions& options) {
  return Rewriting(kernel, rules, measure, options).run();
}

}  // namespace ingot
