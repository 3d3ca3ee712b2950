// Step 24, last part: the matrices that are judged before each frame, and what replaces a warp.
//
// The replay skips calls without looking at what they write; after these checks that is safe.
#include "loader/internal.h"

namespace ingot::loader {

namespace {

#define FIELD(name) INGOT_FIELD(IngotTransformRecord, name)

uint64_t fill_nbytes(const IngotTransformRecord& t) {
  const uint64_t luma = uint64_t{t.width} * t.height;
  return t.kind == INGOT_TRANSFORM_ROAD ? luma + luma / 2 : luma;
}

ingot_status check_fill_fields(const Tables& tables, const IngotTransformRecord& t,
                               const Place& place) {
  const auto bad = [&](uint32_t field, uint64_t found, uint64_t allowed) {
    return place.fail(INGOT_E_TRANSFORM, field, found, allowed);
  };
  if (t.fill_buffer >= tables.buffers.count) {
    return bad(FIELD(fill_buffer), t.fill_buffer, tables.buffers.count);
  }
  const IngotBufferRecord& b = tables.buffers[t.fill_buffer];
  const bool result = b.kind == INGOT_BUFFER_SCRATCH || b.kind == INGOT_BUFFER_OUTPUT ||
                      b.kind == INGOT_BUFFER_NEXT_STATE;
  if (!result || b.memory != INGOT_PLACE_HOST) return bad(FIELD(fill_buffer), b.kind, 0);
  if (t.first_call > t.last_call || t.last_call >= tables.calls.count) {
    return bad(FIELD(last_call), t.last_call, tables.calls.count);
  }
  // Ranges of calls are equal or do not meet.
  for (uint32_t k = 0; k < place.record; ++k) {
    const IngotTransformRecord& other = tables.transforms[k];
    if (other.policy != INGOT_TRANSFORM_FILL) continue;
    const bool equal = other.first_call == t.first_call && other.last_call == t.last_call;
    if (!equal && other.first_call <= t.last_call && t.first_call <= other.last_call) {
      return bad(FIELD(first_call), t.first_call, other.first_call);
    }
  }
  // The bytes are written in place of the last skipped call, so the buffer must be alive there.
  if (t.last_call < b.first_call || t.last_call > b.last_call) {
    return bad(FIELD(last_call), t.last_call, b.last_call);
  }
  if (!inside(t.fill_offset, fill_nbytes(t), b.nbytes)) {
    return bad(FIELD(fill_offset), t.fill_offset, b.nbytes);
  }
  if (t.kind == INGOT_TRANSFORM_CABIN && t.fill_chroma != 0) {
    return bad(FIELD(fill_chroma), t.fill_chroma, 0);
  }
  return kOk;
}

constexpr FieldRule kRules[] = {
    INGOT_ZERO(IngotTransformRecord, reserved),
    INGOT_RANGE(IngotTransformRecord, kind, INGOT_TRANSFORM_ROAD, INGOT_TRANSFORM_CABIN),
    INGOT_RANGE(IngotTransformRecord, policy, INGOT_TRANSFORM_REFUSE, INGOT_TRANSFORM_FILL),
    INGOT_RANGE(IngotTransformRecord, width, 1, INGOT_MAX_TRANSFORM_EXTENT),
    INGOT_RANGE(IngotTransformRecord, height, 1, INGOT_MAX_TRANSFORM_EXTENT),
};

ingot_status check_transform(const Tables& tables, const IngotTransformRecord& t,
                             const Place& place) {
  const auto bad = [&](uint32_t field, uint64_t found, uint64_t allowed) {
    return place.fail(INGOT_E_TRANSFORM, field, found, allowed);
  };
  INGOT_RETURN_IF(check_fields(&t, kRules, INGOT_E_TRANSFORM, place));
  if (t.io >= tables.io.count) return bad(FIELD(io), t.io, tables.io.count);
  const IngotIoRecord& io = tables.io[t.io];
  const bool good_type = io.dtype == INGOT_DTYPE_F32 || io.dtype == INGOT_DTYPE_U8;
  if (io.direction != INGOT_DIRECTION_INPUT || !good_type || io.nbytes != io.logical_nbytes) {
    return bad(FIELD(io), io.dtype, INGOT_DTYPE_F32);
  }
  if (t.camera != kNone && t.camera >= tables.cameras.count) {
    return bad(FIELD(camera), t.camera, tables.cameras.count);
  }
  if (t.matrix_offset % 4 != 0 ||
      !inside(t.matrix_offset, INGOT_TRANSFORM_MATRIX_BYTES, io.nbytes)) {
    return bad(FIELD(matrix_offset), t.matrix_offset, io.nbytes);
  }
  const bool road = t.kind == INGOT_TRANSFORM_ROAD;
  if (road && t.width % 2 != 0) return bad(FIELD(width), t.width, 2);
  if (road && t.height % 4 != 0) return bad(FIELD(height), t.height, 4);
  if (t.policy == INGOT_TRANSFORM_FILL) return check_fill_fields(tables, t, place);
  const bool nothing = t.fill_buffer == kNone && t.fill_offset == 0 && t.fill_luma == 0 &&
                       t.fill_chroma == 0 && t.first_call == kNone && t.last_call == kNone;
  return nothing ? kOk : bad(FIELD(fill_buffer), t.fill_buffer, kNone);
}

// Do the fills that replace the calls of `t` write every byte of the view, one after the other?
bool is_filled(const Tables& tables, const IngotTransformRecord& t, const IngotViewRecord& view) {
  uint64_t at = view.offset;
  const uint64_t end = view.offset + view.nbytes;
  for (uint32_t k = 0; k < tables.transforms.count && at < end; ++k) {
    const IngotTransformRecord& other = tables.transforms[k];
    const bool same = other.policy == INGOT_TRANSFORM_FILL && other.first_call == t.first_call &&
                      other.fill_buffer == view.buffer;
    const uint64_t fill_end = other.fill_offset + fill_nbytes(other);
    if (same && other.fill_offset <= at && at < fill_end) at = fill_end;
  }
  return at >= end;
}

// A skipped call leaves nothing unwritten that a later one reads: what it writes is filled, or
// scratch that only skipped calls see.
ingot_status check_skipped_call(const Tables& tables, const IngotTransformRecord& t, uint32_t index,
                                const Place& place) {
  const IngotCallRecord& call = tables.calls[index];
  if (call.queue != INGOT_QUEUE_HOST || call.kind == INGOT_CALL_BARRIER) {
    return place.fail(INGOT_E_TRANSFORM, FIELD(first_call), index, t.last_call);
  }
  for (uint32_t i = 0; i < call.arg_count; ++i) {
    const IngotArgRecord& arg = tables.args[call.arg_first + i];
    if (arg.kind != INGOT_ARG_VIEW || (arg.access & INGOT_ACCESS_WRITE) == 0) continue;
    const IngotViewRecord& view = tables.views[arg.view];
    const IngotBufferRecord& b = tables.buffers[view.buffer];
    const bool hidden = b.kind == INGOT_BUFFER_SCRATCH && b.first_call >= t.first_call &&
                        b.last_call <= t.last_call;
    if (!hidden && !is_filled(tables, t, view)) {
      return place.fail(INGOT_E_TRANSFORM, FIELD(fill_buffer), view.buffer, index);
    }
  }
  return kOk;
}

ingot_status check_skipped_calls(const Tables& tables, const IngotTransformRecord& t,
                                 const Place& place) {
  if (t.policy != INGOT_TRANSFORM_FILL) return kOk;
  // Records of equal ranges share their fills: the first of them speaks for all.
  for (uint32_t k = 0; k < place.record; ++k) {
    const IngotTransformRecord& other = tables.transforms[k];
    if (other.policy == INGOT_TRANSFORM_FILL && other.first_call == t.first_call) return kOk;
  }
  for (uint32_t c = t.first_call; c <= t.last_call; ++c) {
    INGOT_RETURN_IF(check_skipped_call(tables, t, c, place));
  }
  return kOk;
}

#undef FIELD

}  // namespace

ingot_status check_transforms(const Tables& tables, Place place) {
  place.section = tables.transforms.section;
  for (place.record = 0; place.record < tables.transforms.count; ++place.record) {
    INGOT_RETURN_IF(check_transform(tables, tables.transforms[place.record], place));
  }
  for (place.record = 0; place.record < tables.transforms.count; ++place.record) {
    INGOT_RETURN_IF(check_skipped_calls(tables, tables.transforms[place.record], place));
  }
  return kOk;
}

}  // namespace ingot::loader
