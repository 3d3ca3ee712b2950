// The engine of the rules: one traversal that all passes share.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "compiler/kernel/index_arithmetic.h"
#include "compiler/rules/rules.h"

namespace ingot {

// A kernel while a pass rewrites it. Rules add expressions and ranges and never change one.
class Workpiece {
 public:
  Workpiece(RangedKernel kernel, const RuleOptions& options)
      : kernel_(std::move(kernel)), options_(options) {}

  [[nodiscard]] const RangedKernel& kernel() const { return kernel_; }
  [[nodiscard]] RangedKernel& kernel() { return kernel_; }
  [[nodiscard]] ExprPool& pool() { return kernel_.pool; }
  [[nodiscard]] const ExprPool& pool() const { return kernel_.pool; }
  [[nodiscard]] std::int64_t extent(std::uint32_t range) const {
    return kernel_.ranges[range].extent;
  }
  // Whether a condition holds, or is not looked at.
  [[nodiscard]] bool passes(Gate gate, bool condition) const {
    return condition || (options_.open_gates >> static_cast<unsigned>(gate) & 1U) != 0;
  }
  [[nodiscard]] IndexRange bounds(ExprId expr) const;
  [[nodiscard]] Extents extents() const;
  std::uint32_t add_reduce_range(std::string name, std::int64_t extent);

 private:
  RangedKernel kernel_;
  const RuleOptions& options_;
};

// A rule looks at one expression, or at one range; without an answer nothing is changed.
struct RuleCode {
  Rule rule;
  ExprId (*at_expr)(Workpiece& work, ExprId expr) = nullptr;  // invalid: no answer
  std::optional<RangedKernel> (*at_range)(const Workpiece& work, std::uint32_t range) = nullptr;
};

// Compared from the first number on.
using Measure = std::array<double, 3>;

// Expressions bottom up, then ranges from the last to the first, until no rule answers. An
// expression is replaced only by one of less weight.
[[nodiscard]] Result<Rewritten> rewrite(const RangedKernel& kernel, std::span<const RuleCode> rules,
                                        Measure (*measure)(const RangedKernel& kernel),
                                        const RuleOptions& options);

// Size of the expression as a tree, a reduce counting as often as it turns.
[[nodiscard]] double weight(const RangedKernel& kernel, ExprId expr);

// Which expressions the stores reach.
[[nodiscard]] std::vector<bool> reached(const RangedKernel& kernel);

// The same kernel over other ranges.
struct RangeChange {
  std::vector<Range> ranges;  // the new ones
  ExprPool pool;              // of the new kernel
  // Of each old range: its value, and the new ranges that a reduce over it runs over. A reduce
  // without ranges becomes its operand.
  std::vector<ExprId> value_of;
  std::vector<std::vector<std::uint32_t>> owned;
};
[[nodiscard]] RangedKernel change_ranges(const RangedKernel& kernel, RangeChange change);

}  // namespace ingot
