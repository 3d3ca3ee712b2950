// What the accesses of a ranged kernel do along each of its ranges: the facts by which a schedule
// is chosen and judged.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace ingot {

// One load or store, and whether a reduce surrounds it.
struct AccessSite {
  std::uint32_t parameter = 0;
  std::vector<ExprId> coordinates;
  bool inside_reduce = false;
  bool is_store = false;
};

enum class Along : std::uint8_t { Independent, Contiguous, Strided };

class KernelAccesses {
 public:
  // All three must outlive this. Constants may be packed into any layout.
  KernelAccesses(const RangedKernel& kernel, const std::vector<bool>& is_constant,
                 const Target& target);

  const ExprPool& pool() const { return kernel_.pool; }
  std::int64_t extent(std::uint32_t range) const { return kernel_.ranges[range].extent; }
  std::int64_t lanes() const { return target_.lanes(wide_ ? DType::F64 : DType::F32); }

  const std::vector<AccessSite>& sites() const { return sites_; }
  const std::vector<ExprId>& reduces() const { return reduces_; }
  const std::vector<std::uint32_t>& output_ranges() const { return output_ranges_; }
  const std::vector<std::uint32_t>& reduce_ranges() const { return reduce_ranges_; }
  bool strict() const { return strict_; }
  bool is_constant(std::uint32_t parameter) const { return is_constant_[parameter]; }

  // The dimension whose coordinate alone is `range + constant`, -1 if there is none.
  int plain_dimension(const AccessSite& site, std::uint32_t range) const;
  // Whether the coordinate is the range itself, so that it may run into padding and a packed block
  // starts where a vector starts.
  bool is_bare(const AccessSite& site, int dimension, std::uint32_t range) const;
  Along along(const AccessSite& site, std::uint32_t range) const;
  // The least value of a coordinate.
  std::int64_t constant_part(ExprId coordinate) const;
  // Whether the range may run to `padded` turns: every access has padding for it (constants are
  // packed so that they have), and nothing beyond the result's own part of the destination is
  // overwritten.
  bool may_pad(std::uint32_t range, std::int64_t padded) const;
  bool touches_block(std::uint32_t range) const;
  // Whether a reduce sums products.
  bool is_contraction() const;

 private:
  void collect();
  bool starts_aligned(ExprId coordinate, std::uint32_t range, std::int64_t width) const;

  const RangedKernel& kernel_;
  const std::vector<bool>& is_constant_;
  const Target& target_;
  std::vector<AccessSite> sites_;
  std::vector<ExprId> reduces_;
  std::vector<std::uint32_t> output_ranges_, reduce_ranges_;
  bool strict_ = false, wide_ = false;
};

// Whether more than index arithmetic decides a place.
[[nodiscard]] bool follows_data(const ExprPool& pool, const std::vector<ExprId>& coordinates);

}  // namespace ingot
