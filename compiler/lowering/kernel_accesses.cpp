#include "compiler/lowering/kernel_accesses.h"

#include <algorithm>
#include <optional>

#include "compiler/kernel/index_arithmetic.h"

namespace ingot {

KernelAccesses::KernelAccesses(const RangedKernel& kernel, const std::vector<bool>& is_constant,
                               const Target& target)
    : kernel_(kernel), is_constant_(is_constant), target_(target) {
  collect();
}

void KernelAccesses::collect() {
  const RangedStore& store = kernel_.stores[0];
  sites_.push_back(AccessSite{store.parameter, store.coordinates, false, true});
  std::vector<char> reached(pool().size(), 0);  // 1: outside of reduces, 2: inside one
  reached[store.value.index] = 1;
  for (std::uint32_t i = store.value.index + 1; i-- > 0;) {
    if (reached[i] == 0) continue;
    const Expr& expr = pool()[ExprId{i}];
    char inner = reached[i];
    if (expr.kind == ExprKind::Reduce) {
      reduces_.push_back(ExprId{i});
      inner = 2;
    } else if (expr.kind == ExprKind::Load) {
      const std::size_t rank = expr.operands.size() - (expr.gated ? 1 : 0);
      sites_.push_back(AccessSite{
          expr.id,
          {expr.operands.begin(), expr.operands.begin() + static_cast<std::ptrdiff_t>(rank)},
          inner == 2,
          false});
    }
    if (expr.strict) strict_ = true;
    if (expr.dtype == DType::F64 && expr.kind != ExprKind::Constant) wide_ = true;
    for (ExprId operand : expr.operands) {
      reached[operand.index] = std::max(reached[operand.index], inner);
    }
  }
  for (std::uint32_t r = 0; r < kernel_.ranges.size(); ++r) {
    (kernel_.ranges[r].is_reduce ? reduce_ranges_ : output_ranges_).push_back(r);
  }
}

int KernelAccesses::plain_dimension(const AccessSite& site, std::uint32_t range) const {
  int found = -1;
  for (std::size_t d = 0; d < site.coordinates.size(); ++d) {
    if (!depends_on(pool(), site.coordinates[d], range)) continue;
    if (found >= 0 || linear_coefficient(pool(), site.coordinates[d], range) != 1) return -1;
    found = static_cast<int>(d);
  }
  return found;
}

bool KernelAccesses::is_bare(const AccessSite& site, int dimension, std::uint32_t range) const {
  const Expr& expr = pool()[site.coordinates[static_cast<std::size_t>(dimension)]];
  return expr.kind == ExprKind::Variable && expr.id == range;
}

Along KernelAccesses::along(const AccessSite& site, std::uint32_t range) const {
  const bool independent = std::ranges::none_of(
      site.coordinates, [&](ExprId coordinate) { return depends_on(pool(), coordinate, range); });
  if (independent) return Along::Independent;
  const int dimension = plain_dimension(site, range);
  if (dimension < 0) return Along::Strided;
  if (is_constant_[site.parameter]) return Along::Contiguous;  // it will be packed
  const KernelParameter& parameter = kernel_.parameters[site.parameter];
  if (parameter.layout.block_dim >= 0) {
    if (parameter.layout.block_dim != dimension) return Along::Strided;
    // No vector may cross a block. Few turns may be one narrow vector inside of it.
    const ExprId coordinate = site.coordinates[static_cast<std::size_t>(dimension)];
    const std::int64_t count = extent(range);
    const bool is_narrow = count > 1 && count < lanes() && (count & (count - 1)) == 0;
    const bool aligned = starts_aligned(coordinate, range, lanes()) ||
                         (is_narrow && starts_aligned(coordinate, range, count));
    return aligned ? Along::Contiguous : Along::Strided;
  }
  return strides(parameter.layout, parameter.shape)[static_cast<std::size_t>(dimension)] == 1
             ? Along::Contiguous
             : Along::Strided;
}

// Whether the rest of the coordinate is a multiple of the width.
bool KernelAccesses::starts_aligned(ExprId coordinate, std::uint32_t range,
                                    std::int64_t width) const {
  for (std::uint32_t other = 0; other < kernel_.ranges.size(); ++other) {
    if (other == range || !depends_on(pool(), coordinate, other)) continue;
    const std::optional<std::int64_t> factor = linear_coefficient(pool(), coordinate, other);
    if (!factor || *factor % width != 0) return false;
  }
  return constant_part(coordinate) % width == 0;
}

bool follows_data(const ExprPool& pool, const std::vector<ExprId>& coordinates) {
  std::vector<ExprId> open = coordinates;
  std::vector<bool> seen(pool.size());
  while (!open.empty()) {
    const ExprId at = open.back();
    open.pop_back();
    if (seen[at.index]) continue;
    seen[at.index] = true;
    const Expr& expr = pool[at];
    if (expr.dtype != DType::I64 && expr.dtype != DType::Bool) return true;
    if (expr.kind == ExprKind::Load && std::ranges::any_of(expr.operands, [&](ExprId operand) {
          return pool[operand].kind != ExprKind::Constant;
        })) {
      return true;
    }
    open.insert(open.end(), expr.operands.begin(), expr.operands.end());
  }
  return false;
}

std::int64_t KernelAccesses::constant_part(ExprId coordinate) const {
  return bounds_of(pool(), coordinate, [](std::uint32_t) { return std::int64_t{1}; }).min;
}

bool KernelAccesses::may_pad(std::uint32_t range, std::int64_t padded) const {
  return std::ranges::all_of(sites_, [&](const AccessSite& site) {
    if (along(site, range) == Along::Independent) return true;
    const int dimension = plain_dimension(site, range);
    if (dimension < 0) return false;
    if (is_constant_[site.parameter]) return is_bare(site, dimension, range);
    const KernelParameter& parameter = kernel_.parameters[site.parameter];
    if (parameter.layout.block_dim != dimension) return false;
    const ExprId coordinate = site.coordinates[static_cast<std::size_t>(dimension)];
    if (along(site, range) == Along::Contiguous && !starts_aligned(coordinate, range, lanes())) {
      return false;  // only narrow vectors stay inside of a block
    }
    const auto bounds = [&](std::int64_t turns) {
      return bounds_of(pool(), coordinate,
                       [&](std::uint32_t other) { return other == range ? turns : extent(other); });
    };
    const IndexRange own = bounds(extent(range));
    if (bounds(padded).max >= padded_extent(parameter.layout, parameter.shape, dimension)) {
      return false;
    }
    // Where another range moves it too, what lies beyond one of its turns belongs to the next.
    const bool alone = own.min == own.max + 1 - extent(range);
    const bool reaches_end = own.max + 1 == parameter.shape[static_cast<std::size_t>(dimension)];
    return !site.is_store || (alone && reaches_end);
  });
}

bool KernelAccesses::touches_block(std::uint32_t range) const {
  return std::ranges::any_of(sites_, [&](const AccessSite& site) {
    const int block_dim = kernel_.parameters[site.parameter].layout.block_dim;
    return block_dim >= 0 && !is_constant_[site.parameter] &&
           depends_on(pool(), site.coordinates[static_cast<std::size_t>(block_dim)], range);
  });
}

bool KernelAccesses::is_contraction() const {
  return std::ranges::any_of(reduces_, [&](ExprId reduce) {
    const Expr& body = pool()[pool()[reduce].operands[0]];
    return body.kind == ExprKind::Scalar && body.op == ScalarOp::Mul;
  });
}

}  // namespace ingot
