// How far an output is from what was expected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "compiler/tensor/tensor.h"

namespace ingot::cli {

struct Comparison {
  double max_abs_error = 0;
  double max_rel_error = 0;      // over elements whose expected value is not 0
  double largest_expected = 0;   // magnitude, of finite elements
  double cosine = 1;             // 1 where both are all zero
  std::int64_t worst_index = 0;  // first element with the largest absolute error
  double worst_found = 0, worst_expected = 0;
};

// Both have the shape and type of `expected`. NaN equals NaN and an infinity equals itself;
// otherwise an element that is not finite has an infinite error.
[[nodiscard]] Comparison compare(const Tensor& expected, std::span<const std::byte> found);

// "[0,3,17]" of a flat index.
[[nodiscard]] std::string index_text(const Shape& shape, std::int64_t flat);

}  // namespace ingot::cli
