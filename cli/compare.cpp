#include "cli/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace ingot::cli {
namespace {

double element_error(double expected, double found) {
  if (expected == found || (std::isnan(expected) && std::isnan(found))) return 0;
  const double error = std::abs(found - expected);
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

// Integers of 64 bits do not fit a double, so their difference is taken before the conversion.
double element_error(const Scalar& expected, const Scalar& found) {
  if (is_float(expected.dtype)) return element_error(expected.as_double(), found.as_double());
  if (expected.bits == found.bits) return 0;
  const bool is_larger = expected.dtype == DType::U64 ? expected.bits > found.bits
                                                      : expected.as_int() > found.as_int();
  return static_cast<double>(is_larger ? expected.bits - found.bits : found.bits - expected.bits);
}

struct Sums {
  double products = 0, expected_squares = 0, found_squares = 0;

  void add(double expected, double found) {
    if (!std::isfinite(expected) || !std::isfinite(found)) return;
    products += expected * found;
    expected_squares += expected * expected;
    found_squares += found * found;
  }
  double cosine() const {
    if (expected_squares == 0 && found_squares == 0) return 1;
    if (expected_squares == 0 || found_squares == 0) return 0;
    return products / std::sqrt(expected_squares) / std::sqrt(found_squares);
  }
};

}  // namespace

Comparison compare(const Tensor& expected, std::span<const std::byte> found) {
  const auto size = static_cast<std::size_t>(size_bytes(expected.dtype));
  Comparison result;
  Sums sums;
  bool any = false;
  for (std::size_t at = 0; at + size <= std::min(expected.bytes.size(), found.size()); at += size) {
    const Scalar want = Scalar::load(expected.dtype, expected.bytes.data() + at);
    const Scalar got = Scalar::load(expected.dtype, found.data() + at);
    const double error = element_error(want, got);
    const double magnitude = std::abs(want.as_double());
    sums.add(want.as_double(), got.as_double());
    if (std::isfinite(magnitude)) {
      result.largest_expected = std::max(result.largest_expected, magnitude);
    }
    if (magnitude > 0) result.max_rel_error = std::max(result.max_rel_error, error / magnitude);
    if (!any || error > result.max_abs_error) {
      result.max_abs_error = error;
      result.worst_index = static_cast<std::int64_t>(at / size);
      result.worst_found = got.as_double();
      result.worst_expected = want.as_double();
      any = true;
    }
  }
  result.cosine = sums.cosine();
  return result;
}

std::string index_text(const Shape& shape, std::int64_t flat) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 0) return "[]";
    index[d] = flat % shape[d];
    flat /= shape[d];
  }
  return fmt::format("[{}]", fmt::join(index, ","));
}

}  // namespace ingot::cli
