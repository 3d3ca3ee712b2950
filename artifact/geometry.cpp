#include "artifact/geometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "artifact/tables.h"

namespace ingot::artifact {

std::unexpected<Failure> contradiction(std::string message) {
  return fail(ExitCode::Internal, "artifact-contents", std::move(message), {},
              "this is a defect in ingot; please report it");
}

std::unexpected<Failure> over_limit(std::string_view what, std::uint64_t count,
                                    std::uint64_t limit) {
  return fail(ExitCode::Unsupported, "artifact-limit",
              fmt::format("{} {}, an artifact holds at most {}", count, what, limit));
}

Result<void> check_count(std::string_view what, std::size_t count, std::uint64_t limit) {
  if (count > limit) return over_limit(what, count, limit);
  return {};
}

Result<Geometry> geometry(std::string_view what, IngotDtype dtype,
                          const std::vector<std::uint32_t>& shape,
                          const std::vector<std::uint64_t>& strides, std::size_t max_rank) {
  const std::uint64_t element = dtype_size(dtype);
  if (element == 0) return contradiction(fmt::format("{} has no data type", what));
  if (shape.size() > max_rank) return over_limit("dimensions", shape.size(), max_rank);
  if (!strides.empty() && strides.size() != shape.size()) {
    return contradiction(
        fmt::format("{} has {} dimensions and {} strides", what, shape.size(), strides.size()));
  }
  Geometry result;
  result.strides.resize(shape.size());
  std::uint64_t dense = element;
  std::uint64_t span = element;
  bool empty = false;
  bool fits = true;
  result.logical_nbytes = element;
  for (std::size_t i = shape.size(); i-- > 0;) {
    const std::uint64_t extent = shape[i];
    empty = empty || extent == 0;
    result.strides[i] = strides.empty() ? dense : strides[i];
    std::uint64_t reach = 0;
    fits = fits && multiply(dense, std::max<std::uint64_t>(extent, 1), dense) &&
           multiply(result.logical_nbytes, extent, result.logical_nbytes) &&
           multiply(extent == 0 ? 0 : extent - 1, result.strides[i], reach) &&
           add(span, reach, span);
  }
  if (!fits) return contradiction(fmt::format("{} is larger than memory can be", what));
  result.span = empty ? 0 : span;
  return result;
}

}  // namespace ingot::artifact
