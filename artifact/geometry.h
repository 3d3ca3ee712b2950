// Shapes, strides and sizes of what the writer is given. No sum or product of them may overflow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "artifact/format.h"
#include "base/result.h"

namespace ingot::artifact {

// The contents of an artifact contradict themselves: a defect of whoever made them.
[[nodiscard]] std::unexpected<Failure> contradiction(std::string message);

// The format has no room for that many.
[[nodiscard]] std::unexpected<Failure> over_limit(std::string_view what, std::uint64_t count,
                                                  std::uint64_t limit);
[[nodiscard]] Result<void> check_count(std::string_view what, std::size_t count,
                                       std::uint64_t limit);

constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

// Sums and products of caller-given sizes: false on overflow.
[[nodiscard]] inline bool add(std::uint64_t a, std::uint64_t b, std::uint64_t& sum) {
  return !__builtin_add_overflow(a, b, &sum);
}
[[nodiscard]] inline bool multiply(std::uint64_t a, std::uint64_t b, std::uint64_t& product) {
  return !__builtin_mul_overflow(a, b, &product);
}

struct Geometry {
  std::vector<std::uint64_t> strides;
  std::uint64_t logical_nbytes = 0;
  std::uint64_t span = 0;  // 0 if a dimension is 0
};

// Dense strides where none are given. A dimension of 0 counts as 1 in strides, so that they stay
// positive. `what` names the tensor in messages.
[[nodiscard]] Result<Geometry> geometry(std::string_view what, IngotDtype dtype,
                                        const std::vector<std::uint32_t>& shape,
                                        const std::vector<std::uint64_t>& strides,
                                        std::size_t max_rank);

}  // namespace ingot::artifact
