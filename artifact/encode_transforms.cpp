// Matrices that the loader checks, and whether their fills replace all that skipped calls write.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "artifact/encoder.h"

namespace ingot::artifact {

Result<void> Encoder::fill_transforms(const Variant& variant, VariantTables& tables) {
  INGOT_RETURN_IF_ERROR(check_count("matrices", variant.transforms.size(), INGOT_MAX_TRANSFORMS));
  for (const Transform& transform : variant.transforms) {
    if (transform.slot >= tables.io.size() ||
        (transform.camera && *transform.camera >= tables.cameras.size())) {
      return contradiction("a matrix of a slot or camera that does not exist");
    }
    IngotTransformRecord row{};
    row.io = transform.slot;
    row.camera = transform.camera.value_or(INGOT_NO_INDEX);
    row.matrix_offset = transform.matrix_offset;
    row.width = transform.width;
    row.height = transform.height;
    row.kind = static_cast<std::uint16_t>(transform.kind);
    row.policy = INGOT_TRANSFORM_REFUSE;
    row.fill_buffer = INGOT_NO_INDEX;
    row.first_call = INGOT_NO_INDEX;
    row.last_call = INGOT_NO_INDEX;
    if (transform.fill) {
      const Transform::Fill& fill = *transform.fill;
      if (fill.buffer >= tables.buffers.size() || fill.last_call >= tables.calls.size() ||
          fill.first_call > fill.last_call) {
        return contradiction("a fill of a buffer or of calls that do not exist");
      }
      row.policy = INGOT_TRANSFORM_FILL;
      row.fill_buffer = fill.buffer;
      row.first_call = fill.first_call;
      row.last_call = fill.last_call;
      row.fill_offset = fill.offset;
      row.fill_luma = fill.luma;
      row.fill_chroma = transform.kind == INGOT_TRANSFORM_ROAD ? fill.chroma : 0;
    }
    tables.transforms.push_back(row);
  }
  return check_fills(tables);
}

// Skipping calls must leave nothing unwritten that later calls read: what they write is filled, or
// scratch that nobody else sees.
Result<void> Encoder::check_fills(const VariantTables& tables) {
  for (const IngotTransformRecord& transform : tables.transforms) {
    if (transform.policy != INGOT_TRANSFORM_FILL) continue;
    struct Range {
      std::uint64_t first = 0;
      std::uint64_t last = 0;  // exclusive
    };
    std::map<std::uint32_t, std::vector<Range>> filled;  // bytes of each buffer, for these calls
    for (const IngotTransformRecord& other : tables.transforms) {
      if (other.policy != INGOT_TRANSFORM_FILL || other.last_call < transform.first_call ||
          transform.last_call < other.first_call) {
        continue;
      }
      if (other.first_call != transform.first_call || other.last_call != transform.last_call) {
        return contradiction("two fills skip ranges of calls that overlap without being equal");
      }
      const std::uint64_t luma = std::uint64_t{other.width} * other.height;
      const std::uint64_t nbytes = other.kind == INGOT_TRANSFORM_ROAD ? luma + luma / 2 : luma;
      auto& ranges = filled[other.fill_buffer];
      // Consecutive fills join, so that one call may write several pictures.
      if (!ranges.empty() && ranges.back().last == other.fill_offset) {
        ranges.back().last += nbytes;
      } else {
        ranges.push_back({other.fill_offset, other.fill_offset + nbytes});
      }
    }
    const auto is_filled = [&](const IngotViewRecord& view) {
      const auto found = filled.find(view.buffer);
      return found != filled.end() && std::ranges::any_of(found->second, [&](const Range& range) {
               return range.first <= view.offset && view.offset <= range.last &&
                      view.nbytes <= range.last - view.offset;
             });
    };
    for (std::uint32_t c = transform.first_call; c <= transform.last_call; ++c) {
      const IngotCallRecord& call = tables.calls[c];
      if (call.queue != INGOT_QUEUE_HOST ||
          (call.kind != INGOT_CALL_PROGRAM && call.kind != INGOT_CALL_COPY &&
           call.kind != INGOT_CALL_FILL)) {
        return contradiction(fmt::format("call {} cannot be skipped by a fill", c));
      }
      for (std::uint32_t a = 0; a < call.arg_count; ++a) {
        const IngotArgRecord& arg = tables.args[call.arg_first + a];
        if (arg.kind != INGOT_ARG_VIEW || (arg.access & INGOT_ACCESS_WRITE) == 0) continue;
        const IngotViewRecord& view = tables.views[arg.view];
        const IngotBufferRecord& buffer = tables.buffers[view.buffer];
        const bool hidden = buffer.kind == INGOT_BUFFER_SCRATCH &&
                            buffer.first_call >= transform.first_call &&
                            buffer.last_call <= transform.last_call;
        if (!hidden && !is_filled(view)) {
          return contradiction(
              fmt::format("call {} is skipped by a fill that does not cover its result", c));
        }
      }
    }
  }
  return {};
}

}  // namespace ingot::artifact
