// Index expressions as linear forms over what cannot be taken apart further.
//
// An address such as ((c*58 + y + ky)*58 + x + p)*16 + v becomes a constant and one coefficient per
// variable, with the variables of unrolled loops already replaced by numbers. From the form follow
// how the lanes of a vector loop are spread in memory, which part of an address belongs to which
// loop, and whether a division leaves the range of its divisor.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace ingot {

// What a kernel variable stands for at the place where code is being emitted.
struct Binding {
  enum class Kind : std::uint8_t {
    Unbound,
    Loop,      // the counter of a loop that exists in the code; `value` is its scope
    Constant,  // a turn of an expanded loop; `value` is the turn
    Lanes,     // the lanes of a vector loop
  };
  Kind kind = Kind::Unbound;
  std::int64_t value = 0;
};

struct LinearTerm {
  ExprId atom;  // a variable, or an expression that is not linear
  std::int64_t coefficient = 0;
  friend auto operator<=>(const LinearTerm&, const LinearTerm&) = default;
};

// constant + sum of coefficient * atom, modulo 2^64. Terms are sorted by atom, none is zero.
struct LinearIndex {
  std::int64_t constant = 0;
  std::vector<LinearTerm> terms;
};

struct Interval {
  std::int64_t low = 0, high = 0;  // both inclusive
};

class IndexAnalyzer {
 public:
  IndexAnalyzer(const ExprPool& pool, std::span<const Variable> variables)
      : pool_(pool), variables_(variables), bindings_(variables.size()) {}

  void bind(std::uint32_t variable, Binding binding);
  [[nodiscard]] const Binding& binding(std::uint32_t variable) const { return bindings_[variable]; }

  // Of an I64 expression, under the present bindings.
  [[nodiscard]] LinearIndex linearize(ExprId id);
  // Values an I64 expression may take, if bounds are known and far from overflow.
  [[nodiscard]] std::optional<Interval> range(ExprId id);

 private:
  struct Remembered {
    std::uint64_t version = 0;
    LinearIndex form;
  };

  [[nodiscard]] LinearIndex compute(ExprId id);
  [[nodiscard]] LinearIndex divide(ExprId id, bool remainder);
  [[nodiscard]] std::optional<Interval> range_of(const LinearIndex& form);
  [[nodiscard]] std::optional<Interval> range_of_atom(ExprId atom);

  const ExprPool& pool_;
  std::span<const Variable> variables_;
  std::vector<Binding> bindings_;
  std::vector<Remembered> remembered_;
  std::uint64_t version_ = 1;
};

// a * factor + b * other_factor
[[nodiscard]] LinearIndex combine(const LinearIndex& a, std::int64_t factor, const LinearIndex& b,
                                  std::int64_t other_factor);

}  // namespace ingot
