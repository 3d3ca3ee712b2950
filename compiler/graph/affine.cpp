#include "compiler/graph/affine.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/check.h"

namespace ingot {
namespace {

// Reads what to_text writes, left to right.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  [[nodiscard]] bool at_end() const { return text_.empty(); }

  bool take(char wanted) {
    if (text_.empty() || text_.front() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }

  template <typename T>
  std::optional<T> number() {
    if (text_.empty() || text_.front() < '0' || text_.front() > '9') return std::nullopt;
    T value{};
    const auto [stop, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc()) return std::nullopt;
    text_.remove_prefix(static_cast<std::size_t>(stop - text_.data()));
    return value;
  }

  // Terms with signs between them: "2*a0+a3-1".
  bool sum(AffineIndex& index) {
    bool first = true;
    while (!at_end() && text_.front() != ')') {
      std::int64_t sign = 1;
      if (take('-')) {
        sign = -1;
      } else if (!take('+') && !first) {
        return false;
      }
      first = false;
      std::int64_t coefficient = 1;
      if (const auto value = number<std::int64_t>()) {
        coefficient = *value;
        if (!take('*')) {
          index.offset += sign * coefficient;
          continue;
        }
      }
      if (!take('a')) return false;
      const auto axis = number<int>();
      if (!axis) return false;
      index.add(*axis, sign * coefficient);
    }
    return !first;
  }

 private:
  std::string_view text_;
};

}  // namespace

AffineIndex AffineIndex::of_axis(int axis, std::int64_t coefficient, std::int64_t offset) {
  AffineIndex index;
  index.offset = offset;
  return index.add(axis, coefficient);
}

AffineIndex AffineIndex::constant(std::int64_t value) {
  AffineIndex index;
  index.offset = value;
  return index;
}

AffineIndex& AffineIndex::add(int axis, std::int64_t coefficient) {
  INGOT_CHECK(axis >= 0, "an axis is negative");
  const auto place = std::lower_bound(terms.begin(), terms.end(), axis,
                                      [](const Term& term, int a) { return term.axis < a; });
  if (place == terms.end() || place->axis != axis) {
    if (coefficient != 0) terms.insert(place, Term{axis, coefficient});
    return *this;
  }
  place->coefficient += coefficient;
  if (place->coefficient == 0) terms.erase(place);
  return *this;
}

std::int64_t AffineIndex::coefficient_of(int axis) const {
  for (const Term& term : terms) {
    if (term.axis == axis) return term.coefficient;
  }
  return 0;
}

IndexBounds bounds(const AffineIndex& index, const std::vector<std::int64_t>& extents) {
  if (std::ranges::find(extents, 0) != extents.end()) return {};
  IndexBounds result{index.offset, index.offset};
  for (const AffineIndex::Term& term : index.terms) {
    INGOT_CHECK(static_cast<std::size_t>(term.axis) < extents.size(), "an axis without an extent");
    const std::int64_t reach =
        term.coefficient * (extents[static_cast<std::size_t>(term.axis)] - 1);
    (reach < 0 ? result.min : result.max) += reach;
  }
  return result;
}

std::string to_text(const AffineIndex& index) {
  std::string sum;
  for (const AffineIndex::Term& term : index.terms) {
    if (term.coefficient < 0) {
      sum += '-';
    } else if (!sum.empty()) {
      sum += '+';
    }
    const std::int64_t magnitude = term.coefficient < 0 ? -term.coefficient : term.coefficient;
    if (magnitude != 1) sum += fmt::format("{}*", magnitude);
    sum += fmt::format("a{}", term.axis);
  }
  if (index.offset != 0 || sum.empty()) {
    sum += sum.empty() ? fmt::format("{}", index.offset) : fmt::format("{:+}", index.offset);
  }
  return index.divisor == 1 ? sum : fmt::format("({})/{}", sum, index.divisor);
}

std::optional<AffineIndex> affine_from_text(std::string_view text) {
  AffineIndex index;
  Reader reader(text);
  if (!reader.take('(')) {
    if (!reader.sum(index) || !reader.at_end()) return std::nullopt;
    return index;
  }
  if (!reader.sum(index) || !reader.take(')') || !reader.take('/')) return std::nullopt;
  const auto divisor = reader.number<std::int64_t>();
  if (!divisor || *divisor < 1 || !reader.at_end()) return std::nullopt;
  index.divisor = *divisor;
  return index;
}

}  // namespace ingot
