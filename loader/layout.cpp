// The six numbers of an NV12 frame: in the file, as the caller gives them, in an error.
#include "loader/internal.h"

namespace ingot::loader {

ingot_layout layout_of(const IngotCameraRecord& c) {
  return {c.width, c.height, c.stride, c.y_height, c.uv_height, 0, c.uv_offset};
}

// The first five are words that follow each other.
static_assert(offsetof(ingot_layout, uv_height) - offsetof(ingot_layout, width) == 16, "words");

bool same_layout(const ingot_layout& a, const ingot_layout& b) {
  return std::memcmp(&a, &b, 20) == 0 && a.uv_offset == b.uv_offset;
}

void store_layout(uint64_t to[6], const ingot_layout& layout) {
  for (int i = 0; i < 5; ++i) to[i] = (&layout.width)[i];
  to[5] = layout.uv_offset;
}

}  // namespace ingot::loader
