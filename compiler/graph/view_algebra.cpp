#include "compiler/graph/view_algebra.h"

#include <algorithm>
#include <numeric>

namespace ingot {
namespace {

std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

// Whether J, read at positions of one middle axis only, is outside `extent` wherever that axis is
// outside `middle`. J is monotonic, so the two places next to the middle decide.
bool leaves_with(const AffineIndex& index, std::int64_t extent, std::int64_t middle) {
  if (index.terms.size() != 1) return false;
  const std::int64_t coefficient = index.terms[0].coefficient;
  const std::int64_t last = index.divisor * (extent - 1);
  std::int64_t low = index.offset - coefficient;
  std::int64_t high = index.offset + coefficient * middle;
  if (coefficient < 0) std::swap(low, high);
  return low < 0 && high > last;
}

// Whether every place where `steps` (the outer index of middle axis `axis`) leaves the middle
// makes some index of `inner` leave its input too, and the substitution can be written down.
bool leaves_through(const ViewOp& inner, const Shape& from, int axis, std::int64_t middle,
                    const AffineIndex& steps) {
  bool leaves = false;
  for (std::size_t d = 0; d < inner.index.size(); ++d) {
    const AffineIndex& index = inner.index[d];
    const std::int64_t coefficient = index.coefficient_of(axis);
    if (coefficient == 0) continue;
    const bool alone = index.terms.size() == 1;
    // c*(n/q) is exact where n/q is only if c is 1 or -1, and no other term hides a remainder.
    if (steps.divisor > 1 && !(alone && (coefficient == 1 || coefficient == -1))) return false;
    leaves = leaves || leaves_with(index, from[d], middle);
  }
  return leaves;
}

}  // namespace

bool may_leave(const AffineIndex& index, std::int64_t extent, const Shape& to) {
  const IndexBounds range = bounds(index, to);
  if (range.max < range.min) return false;  // no places at all
  return index.divisor != 1 || range.min < 0 || range.max >= extent;
}

void normalize_view(ViewOp& view, const Shape& from, const Shape& to) {
  bool leaves = false;
  for (std::size_t d = 0; d < view.index.size(); ++d) {
    AffineIndex& index = view.index[d];
    std::erase_if(index.terms, [&](const auto& term) { return to[at(term.axis)] == 1; });
    std::int64_t common = std::gcd(index.divisor, index.offset);
    for (const auto& term : index.terms) common = std::gcd(common, term.coefficient);
    if (common > 1) {
      index.divisor /= common;
      index.offset /= common;
      for (auto& term : index.terms) term.coefficient /= common;
    }
    leaves = leaves || may_leave(index, from[d], to);
  }
  if (!leaves) view.fill.reset();
}

bool is_identity(const ViewOp& view, const Shape& from, const Shape& to) {
  if (from != to || view.fill) return false;
  for (std::size_t d = 0; d < to.size(); ++d) {
    const AffineIndex same =
        to[d] == 1 ? AffineIndex::constant(0) : AffineIndex::of_axis(static_cast<int>(d));
    if (view.index[d] != same) return false;
  }
  return true;
}

std::optional<ViewOp> compose_views(const ViewOp& inner, const Shape& from, const Shape& middle,
                                    const ViewOp& outer, const Shape& to) {
  if (outer.fill) {
    if (inner.fill && *inner.fill != *outer.fill) return std::nullopt;
    for (std::size_t m = 0; m < middle.size(); ++m) {
      if (!may_leave(outer.index[m], middle[m], to)) continue;
      if (!leaves_through(inner, from, static_cast<int>(m), middle[m], outer.index[m])) {
        return std::nullopt;
      }
    }
  }
  ViewOp result;
  result.fill = outer.fill ? outer.fill : inner.fill;
  for (const AffineIndex& index : inner.index) {
    // At most one term has steps with a divisor, and then it is the only term.
    AffineIndex composed = AffineIndex::constant(index.offset);
    for (const auto& term : index.terms) {
      const AffineIndex& steps = outer.index[at(term.axis)];
      composed.offset = composed.offset * steps.divisor + term.coefficient * steps.offset;
      for (const auto& step : steps.terms) {
        composed.add(step.axis, term.coefficient * step.coefficient);
      }
      composed.divisor *= steps.divisor;
    }
    composed.divisor *= index.divisor;
    result.index.push_back(std::move(composed));
  }
  normalize_view(result, from, to);
  return result;
}

}  // namespace ingot
