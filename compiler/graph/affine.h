// Affine index maps: how one coordinate follows from others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

// index = (offset + sum over terms of coefficient * axis) / divisor.
// With a divisor above 1 the index exists only where the division is exact (zero insertion of
// transposed convolution). Terms are sorted by axis, without zero coefficients or duplicates.
struct AffineIndex {
  struct Term {
    int axis = 0;
    std::int64_t coefficient = 1;
    friend bool operator==(const Term&, const Term&) = default;
  };
  std::vector<Term> terms;
  std::int64_t offset = 0;
  std::int64_t divisor = 1;

  [[nodiscard]] static AffineIndex of_axis(int axis, std::int64_t coefficient = 1,
                                           std::int64_t offset = 0);
  [[nodiscard]] static AffineIndex constant(std::int64_t value);
  AffineIndex& add(int axis, std::int64_t coefficient);
  [[nodiscard]] std::int64_t coefficient_of(int axis) const;

  friend bool operator==(const AffineIndex&, const AffineIndex&) = default;
};

// Smallest and largest numerator over axes 0..extent-1 each; {0, -1} if an extent is 0.
struct IndexBounds {
  std::int64_t min = 0;
  std::int64_t max = -1;
};
[[nodiscard]] IndexBounds bounds(const AffineIndex& index,
                                 const std::vector<std::int64_t>& extents);

// "2*a0+a3-1", "(a1+1)/2", "0"; no spaces.
[[nodiscard]] std::string to_text(const AffineIndex& index);
[[nodiscard]] std::optional<AffineIndex> affine_from_text(std::string_view text);

}  // namespace ingot
