// Questions about index expressions, and their simplification from the extents of variables.
//
// Arithmetic on I64 wraps. Every rule here gives the same value for all values of the variables;
// rules that hold for integers without wrapping are applied only where bounds prove that nothing
// wraps. Loaded values count as unbounded.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/kernel/expr.h"

namespace ingot {

// Extent of a variable; negative if it is not known.
using Extents = std::function<std::int64_t(std::uint32_t variable)>;

// All values min..max of an integer or bool expression, both included.
struct IndexRange {
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  [[nodiscard]] bool within(std::int64_t low, std::int64_t high) const {
    return low <= min && max <= high;
  }
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

// Interval arithmetic; the whole of the type where something may wrap or is not known.
[[nodiscard]] IndexRange bounds_of(const ExprPool& pool, ExprId expr, const Extents& extents);

// Rewrites every I64 and bool subexpression to its normal form:
//   sums      coefficient * atom + ... + constant, atoms in order of their ids; a coefficient of 1
//             and a constant of 0 are not written. An atom is anything that is not a sum.
//   division  floor_div and floor_mod by a positive constant hold neither multiples of the divisor
//             nor a common factor, and vanish where bounds decide them.
//   compare   `positive terms < negative terms + constant`, without a common factor; `<=` becomes
//             `<`. Where there are only negative terms: `constant < terms`.
//   and       conjuncts in order of their ids, each once.
// Variables of one turn become 0. Loads under a gate that is decided lose it or become their fill.
[[nodiscard]] ExprId simplify_index(ExprPool& pool, ExprId expr, const Extents& extents);

// Coefficient of a variable in an expression that is affine in it; 0 if it does not depend on it.
[[nodiscard]] std::optional<std::int64_t> linear_coefficient(const ExprPool& pool, ExprId expr,
                                                             std::uint32_t variable);

// Replaces variables, folding as ExprPool's index arithmetic does. A variable that a reduce inside
// runs over may only be replaced by another variable.
[[nodiscard]] ExprId substitute(ExprPool& pool, ExprId expr,
                                const std::map<std::uint32_t, ExprId>& replacements);

// Whether the value depends on the variable. A reduce over it does not.
[[nodiscard]] bool depends_on(const ExprPool& pool, ExprId expr, std::uint32_t variable);

// simplify_index for many expressions of one pool: remembers what it has done.
class IndexSimplifier {
 public:
  IndexSimplifier(ExprPool& pool, Extents extents) : pool_(pool), extents_(std::move(extents)) {}
  [[nodiscard]] ExprId simplify(ExprId expr);
  [[nodiscard]] IndexRange bounds(ExprId expr);

 private:
  // A sum: terms sorted by atom, no zero coefficients.
  struct Linear {
    struct Term {
      ExprId atom;
      std::int64_t coefficient = 1;
    };
    std::vector<Term> terms;
    std::int64_t constant = 0;
  };

  Linear linear(ExprId expr);
  Linear linear_of_scalar(ExprId id, const Expr& expr);
  ExprId simplify_other(ExprId id, const Expr& expr);
  ExprId simplify_bool(ExprId id, const Expr& expr);
  ExprId rebuild(ExprId id, const Expr& expr);
  ExprId compare(ScalarOp op, ExprId a, ExprId b);
  std::optional<ExprId> compare_sum(ScalarOp op, Linear sum);
  void collect_conjuncts(ExprId id, std::vector<ExprId>& conjuncts);

  static Linear constant(std::int64_t value);
  static Linear atom(ExprId id);
  static void add_scaled(Linear& to, const Linear& from, std::int64_t factor);
  Linear joined(Linear sum);
  bool join_once(Linear& sum);
  Linear divide(const Linear& sum, std::int64_t divisor);
  Linear modulo(const Linear& sum, std::int64_t divisor);
  ExprId expression(const Linear& sum);
  // Whether no partial sum of the terms can wrap, in any order.
  bool exact(const Linear& sum);
  IndexRange range(const Linear& sum);
  // The terms of `sum` divided into multiples of `factor` (divided by it) and the rest, if the rest
  // stays in one interval [k*factor, (k+1)*factor); k is moved to the multiples.
  std::optional<std::pair<Linear, Linear>> split(const Linear& sum, std::int64_t factor);

  ExprPool& pool_;
  Extents extents_;
  std::unordered_map<std::uint32_t, ExprId> simplified_;
  std::unordered_map<std::uint32_t, Linear> linear_;
  std::unordered_map<std::uint32_t, IndexRange> ranges_;
};

}  // namespace ingot
