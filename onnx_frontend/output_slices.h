// Named slices of an output, as driving models carry them in their metadata entry `output_slices`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ingot {

struct OutputSlice {
  std::string name;
  std::int64_t start = 0;
  std::int64_t stop = 0;  // one past the last element
  friend bool operator==(const OutputSlice&, const OutputSlice&) = default;
};

// Decodes base64 text of a pickle (protocols 0 to 5) that maps text to slice(start, stop, None).
//
// The pickle is data here, never a program: a closed set of opcodes, one global (`slice`), text,
// small integers. Anything else fails with Malformed, as do bounds outside [0, width], repeated
// names, and bytes after the end. The result keeps the file's order.
[[nodiscard]] Result<std::vector<OutputSlice>> decode_output_slices(std::string_view base64,
                                                                    std::int64_t width);

// The slices by start. Overlapping ones fail with Malformed. What none covers gets names when the
// artifact is written.
[[nodiscard]] Result<std::vector<OutputSlice>> sort_slices(std::vector<OutputSlice> slices);

}  // namespace ingot
