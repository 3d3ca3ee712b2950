// Steps 20 to 22: arenas, buffers with their initial data and overlaps, views.
#include "loader/internal.h"

namespace ingot::loader {

namespace {

// ---- step 20 ------------------------------------------------------------------------------------

#define FIELD(name) INGOT_FIELD(IngotArenaRecord, name)

constexpr FieldRule kArenaRules[] = {
    INGOT_ZERO(IngotArenaRecord, reserved),
    INGOT_RANGE(IngotArenaRecord, align_log2, INGOT_MIN_ALIGN_LOG2, INGOT_MAX_ALIGN_LOG2),
    INGOT_RANGE(IngotArenaRecord, role, INGOT_ARENA_FRAME, INGOT_ARENA_STATE),
};

ingot_status check_arenas(const Tables& tables, Place place) {
  place.step = 20;
  place.section = tables.arenas.section;
  uint64_t totals[2] = {0, 0};
  for (place.record = 0; place.record < tables.arenas.count; ++place.record) {
    const IngotArenaRecord& arena = tables.arenas[place.record];
    const auto bad = [&](uint32_t field, uint64_t found, uint64_t allowed) {
      return place.fail(INGOT_E_ARENA, field, found, allowed);
    };
    INGOT_RETURN_IF(check_fields(&arena, kArenaRules, INGOT_E_ARENA, place));
    if (arena.nbytes % INGOT_ALIGNMENT != 0 || arena.nbytes > INGOT_MAX_ARENA_BYTES) {
      return bad(FIELD(nbytes), arena.nbytes, INGOT_MAX_ARENA_BYTES);
    }
    const uint16_t last_place = has_device(tables) ? INGOT_PLACE_DEVICE : INGOT_PLACE_HOST;
    if (arena.memory > last_place) return bad(FIELD(memory), arena.memory, last_place);
    totals[arena.memory] += arena.nbytes;  // at most 16 times 64 GiB
  }
  place.record = kNone;
  if (totals[0] != tables.record->host_arena_bytes) {
    return place.fail(INGOT_E_ARENA, kNone, totals[0], tables.record->host_arena_bytes);
  }
  if (totals[1] != tables.record->device_arena_bytes) {
    return place.fail(INGOT_E_ARENA, kNone, totals[1], tables.record->device_arena_bytes);
  }
  return kOk;
}

#undef FIELD

// ---- step 21: fields ----------------------------------------------------------------------------

#define FIELD(name) INGOT_FIELD(IngotBufferRecord, name)

bool has_slot(uint32_t kind) {
  return kind == INGOT_BUFFER_INPUT || kind == INGOT_BUFFER_OUTPUT || kind == INGOT_BUFFER_STATE ||
         kind == INGOT_BUFFER_NEXT_STATE;
}

uint32_t direction_of(uint32_t kind) {
  if (kind == INGOT_BUFFER_INPUT) return INGOT_DIRECTION_INPUT;
  return kind == INGOT_BUFFER_OUTPUT ? INGOT_DIRECTION_OUTPUT : INGOT_DIRECTION_STATE;
}

uint32_t role_of(uint32_t kind) {
  const bool state = kind == INGOT_BUFFER_STATE || kind == INGOT_BUFFER_NEXT_STATE;
  return state ? INGOT_ARENA_STATE : INGOT_ARENA_FRAME;
}

// CONST lives where its section was loaded, CALLER_MEMORY where the caller says.
bool outside_arenas(const IngotBufferRecord& b) {
  return b.kind == INGOT_BUFFER_CONST || (b.flags & INGOT_BUFFER_CALLER_MEMORY) != 0;
}

ingot_status check_flags(const IngotBufferRecord& b, const Place& place) {
  uint32_t allowed = 0;
  if (b.kind == INGOT_BUFFER_INPUT || b.kind == INGOT_BUFFER_OUTPUT) {
    allowed = INGOT_BUFFER_CALLER_MEMORY;
  } else if (b.kind == INGOT_BUFFER_STATE) {
    allowed = INGOT_BUFFER_IN_PLACE;
  }
  const bool device_pointer =
      (b.flags & INGOT_BUFFER_CALLER_MEMORY) != 0 && b.memory != INGOT_PLACE_HOST;
  if ((b.flags & ~allowed) != 0 || device_pointer) {
    return place.fail(INGOT_E_BUFFER, FIELD(flags), b.flags, allowed);
  }
  return kOk;
}

ingot_status check_arena_place(const Tables& tables, const IngotBufferRecord& b,
                               const Place& place) {
  const auto bad = [&](uint32_t field, uint64_t found, uint64_t allowed) {
    return place.fail(INGOT_E_BUFFER, field, found, allowed);
  };
  if (outside_arenas(b)) {
    if (b.arena != kNone) return bad(FIELD(arena), b.arena, kNone);
    if (b.arena_offset != 0) return bad(FIELD(arena_offset), b.arena_offset, 0);
    return kOk;
  }
  if (b.arena >= tables.arenas.count) return bad(FIELD(arena), b.arena, tables.arenas.count);
  const IngotArenaRecord& arena = tables.arenas[b.arena];
  if (arena.memory != b.memory) return bad(FIELD(memory), b.memory, arena.memory);
  if (arena.role != role_of(b.kind)) return bad(FIELD(arena), arena.role, role_of(b.kind));
  if (b.align_log2 > arena.align_log2)
    return bad(FIELD(align_log2), b.align_log2, arena.align_log2);
  if (!inside(b.arena_offset, b.nbytes, arena.nbytes) ||
      (b.arena_offset & ((uint64_t{1} << b.align_log2) - 1)) != 0) {
    return bad(FIELD(arena_offset), b.arena_offset, arena.nbytes);
  }
  return kOk;
}

ingot_status check_slot_reference(const Tables& tables, const IngotBufferRecord& b,
                                  const Place& place) {
  if (!has_slot(b.kind)) {
    return b.io == kNone ? kOk : place.fail(INGOT_E_BUFFER, FIELD(io), b.io, kNone);
  }
  if (b.io >= tables.io.count) {
    return place.fail(INGOT_E_BUFFER, FIELD(io), b.io, tables.io.count);
  }
  const IngotIoRecord& io = tables.io[b.io];
  if (io.direction != direction_of(b.kind)) {
    return place.fail(INGOT_E_BUFFER, FIELD(io), io.direction, direction_of(b.kind));
  }
  if (b.nbytes != io.nbytes) {
    return place.fail(INGOT_E_BUFFER, FIELD(nbytes), b.nbytes, io.nbytes);
  }
  return kOk;
}

constexpr FieldRule kBufferRules[] = {
    INGOT_RANGE(IngotBufferRecord, kind, INGOT_BUFFER_INPUT, INGOT_BUFFER_NEXT_STATE),
    INGOT_RANGE(IngotBufferRecord, align_log2, INGOT_MIN_ALIGN_LOG2, INGOT_MAX_ALIGN_LOG2),
};

ingot_status check_buffer(const Tables& tables, const IngotBufferRecord& b, const Place& place) {
  const auto bad = [&](uint32_t field, uint64_t found, uint64_t allowed) {
    return place.fail(INGOT_E_BUFFER, field, found, allowed);
  };
  if (b.id != place.record) return bad(FIELD(id), b.id, place.record);
  INGOT_RETURN_IF(check_fields(&b, kBufferRules, INGOT_E_BUFFER, place));
  const uint8_t last_place = has_device(tables) ? INGOT_PLACE_DEVICE : INGOT_PLACE_HOST;
  if (b.memory > last_place) return bad(FIELD(memory), b.memory, last_place);
  INGOT_RETURN_IF(check_flags(b, place));
  INGOT_RETURN_IF(check_arena_place(tables, b, place));
  INGOT_RETURN_IF(check_slot_reference(tables, b, place));
  if (b.first_call > b.last_call) return bad(FIELD(first_call), b.first_call, b.last_call);
  if (b.last_call >= tables.calls.count) {
    return bad(FIELD(last_call), b.last_call, tables.calls.count);
  }
  return kOk;
}

// Every slot has one buffer; every state has either a next-state buffer or is written in place.
ingot_status check_slot_buffers(const Tables& tables, Place place) {
  uint8_t own[INGOT_MAX_IO] = {};
  uint8_t next[INGOT_MAX_IO] = {};
  bool in_place[INGOT_MAX_IO] = {};
  for (place.record = 0; place.record < tables.buffers.count; ++place.record) {
    const IngotBufferRecord& b = tables.buffers[place.record];
    if (!has_slot(b.kind)) continue;
    uint8_t& seen = b.kind == INGOT_BUFFER_NEXT_STATE ? next[b.io] : own[b.io];
    if (seen != 0) return place.fail(INGOT_E_BUFFER, FIELD(io), b.io, 1);
    seen = 1;
    if ((b.flags & INGOT_BUFFER_IN_PLACE) != 0) in_place[b.io] = true;
  }
  place.record = kNone;
  for (uint32_t i = 0; i < tables.io.count; ++i) {
    const bool state = tables.io[i].direction == INGOT_DIRECTION_STATE;
    const bool updated = !state || (next[i] != 0) != in_place[i];
    if (own[i] == 0 || !updated) return place.fail(INGOT_E_BUFFER, FIELD(io), i, tables.io.count);
  }
  return kOk;
}

// ---- step 21: initial data ----------------------------------------------------------------------

ingot_status check_init(const ingot_artifact& artifact, const Tables& tables,
                        const IngotBufferRecord& b, const Place& place) {
  const auto bad = [&](uint32_t field, uint64_t found, uint64_t allowed) {
    return place.fail(INGOT_E_INIT, field, found, allowed);
  };
  const bool may = b.kind == INGOT_BUFFER_CONST || b.kind == INGOT_BUFFER_STATE;
  if (b.init_section == kNone || !may) {
    const bool nothing = b.init_section == kNone && b.init_offset == 0 && b.init_nbytes == 0;
    const bool needed = b.kind == INGOT_BUFFER_CONST;
    return nothing && !needed ? kOk : bad(FIELD(init_section), b.init_section, kNone);
  }
  if (b.init_section >= artifact.header.section_count) {
    return bad(FIELD(init_section), b.init_section, artifact.header.section_count);
  }
  const IngotSectionEntry& section = artifact.section(b.init_section);
  const bool ours = section.variant == INGOT_VARIANT_COMMON || section.variant == tables.variant;
  if (section.type != INGOT_SECTION_DATA || !ours) {
    return bad(FIELD(init_section), section.type, INGOT_SECTION_DATA);
  }
  if (b.init_offset % INGOT_ALIGNMENT != 0) {
    return bad(FIELD(init_offset), b.init_offset, INGOT_ALIGNMENT);
  }
  if (b.init_nbytes != b.nbytes) return bad(FIELD(init_nbytes), b.init_nbytes, b.nbytes);
  // Constants are used where they lie: the copy in memory is aligned, so the file must be too.
  const uint64_t unit = uint64_t{1} << b.align_log2;
  if (b.kind == INGOT_BUFFER_CONST && (section.offset + b.init_offset) % unit != 0) {
    return bad(FIELD(align_log2), b.align_log2, INGOT_ALIGNMENT_LOG2);
  }
  if (!inside(b.init_offset, b.init_nbytes, section.size)) {
    return bad(FIELD(init_nbytes), b.init_nbytes, section.size);
  }
  return kOk;
}

// ---- step 21: overlap ---------------------------------------------------------------------------

bool share_bytes(const IngotBufferRecord& a, const IngotBufferRecord& b) {
  return a.arena == b.arena && a.arena_offset < b.arena_offset + b.nbytes &&
         b.arena_offset < a.arena_offset + a.nbytes;
}

bool may_share(const IngotBufferRecord& a, const IngotBufferRecord& b) {
  const bool scratch = a.kind == INGOT_BUFFER_SCRATCH && b.kind == INGOT_BUFFER_SCRATCH;
  return scratch && (a.last_call < b.first_call || b.last_call < a.first_call);
}

ingot_status check_overlap(const Tables& tables, Place place) {
  for (place.record = 0; place.record < tables.buffers.count; ++place.record) {
    const IngotBufferRecord& b = tables.buffers[place.record];
    if (outside_arenas(b)) continue;
    for (uint32_t i = 0; i < place.record; ++i) {
      const IngotBufferRecord& other = tables.buffers[i];
      if (!outside_arenas(other) && share_bytes(b, other) && !may_share(b, other)) {
        return place.fail(INGOT_E_BUFFER_OVERLAP, FIELD(arena_offset), place.record, i);
      }
    }
  }
  return kOk;
}

ingot_status check_buffers(const ingot_artifact& artifact, const Tables& tables, Place place) {
  place.step = 21;
  place.section = tables.buffers.section;
  for (place.record = 0; place.record < tables.buffers.count; ++place.record) {
    INGOT_RETURN_IF(check_buffer(tables, tables.buffers[place.record], place));
  }
  INGOT_RETURN_IF(check_slot_buffers(tables, place));
  for (place.record = 0; place.record < tables.buffers.count; ++place.record) {
    INGOT_RETURN_IF(check_init(artifact, tables, tables.buffers[place.record], place));
  }
  return check_overlap(tables, place);
}

#undef FIELD

// ---- step 22 ------------------------------------------------------------------------------------

#define FIELD(name) INGOT_FIELD(IngotViewRecord, name)

constexpr FieldRule kViewRules[] = {
    INGOT_ZERO(IngotViewRecord, reserved),
    INGOT_RANGE(IngotViewRecord, rank, 0, INGOT_MAX_TENSOR_RANK),
    INGOT_ZERO(IngotViewRecord, flags),
};

ingot_status check_view(const Tables& tables, const IngotViewRecord& view, const Place& place) {
  const auto bad = [&](uint32_t field, uint64_t found, uint64_t allowed) {
    return place.fail(INGOT_E_VIEW, field, found, allowed);
  };
  INGOT_RETURN_IF(check_fields(&view, kViewRules, INGOT_E_VIEW, place));
  if (view.buffer >= tables.buffers.count) {
    return bad(FIELD(buffer), view.buffer, tables.buffers.count);
  }
  const uint32_t size = element_size(view.dtype);
  if (size == 0) return bad(FIELD(dtype), view.dtype, INGOT_DTYPE_U64);
  Extent extent;
  if (!measure(view.dtype, view.rank, view.shape, view.strides, &extent)) {
    return bad(FIELD(shape), view.rank, INGOT_MAX_TENSOR_RANK);
  }
  if (view.offset % size != 0) return bad(FIELD(offset), view.offset, size);
  if (view.nbytes != extent.span) return bad(FIELD(nbytes), view.nbytes, extent.span);
  const uint64_t room = tables.buffers[view.buffer].nbytes;
  if (!inside(view.offset, view.nbytes, room)) return bad(FIELD(offset), view.offset, room);
  return kOk;
}

#undef FIELD

}  // namespace

uint32_t element_size(uint32_t dtype) {
  //                                f32 f16 bf16 f64 u8 i8 i16 i32 i64 bool u16 u32 u64
  static const uint8_t sizes[14] = {0, 4, 2, 2, 8, 1, 1, 2, 4, 8, 1, 2, 4, 8};
  return dtype < sizeof sizes ? sizes[dtype] : 0;
}

bool is_dense(uint32_t dtype, uint32_t rank, const uint32_t* shape, uint64_t nbytes) {
  uint64_t dense = element_size(dtype);
  for (uint32_t i = 0; i < rank; ++i) {
    if (!checked_mul(dense, shape[i], &dense)) return false;
  }
  return dense == nbytes;
}

bool measure(uint32_t dtype, uint32_t rank, const uint32_t* shape, const uint64_t* strides,
             Extent* extent) {
  for (uint32_t i = rank; i < INGOT_MAX_TENSOR_RANK; ++i) {
    if (shape[i] != 0 || strides[i] != 0) return false;
  }
  const uint64_t size = element_size(dtype);
  uint64_t inner = size;  // bytes that one step of the current dimension must at least skip
  uint64_t elements = 1;
  uint64_t span = size;
  for (uint32_t i = rank; i-- > 0;) {
    const uint64_t reach = shape[i] == 0 ? 0 : shape[i] - 1;
    uint64_t distance = 0;
    if (shape[i] >= INGOT_MAX_DIMENSION || strides[i] < inner || strides[i] == 0 ||
        strides[i] >= INGOT_MAX_VIEW_SPAN || !checked_mul(reach, strides[i], &distance) ||
        !checked_add(span, distance, &span) || !checked_mul(strides[i], shape[i], &inner) ||
        !checked_mul(elements, shape[i], &elements)) {
      return false;
    }
  }
  if (elements >= INGOT_MAX_ELEMENTS || span >= INGOT_MAX_VIEW_SPAN) return false;
  *extent = {elements, elements == 0 ? 0 : span};
  return true;
}

ingot_status check_memory_tables(const ingot_artifact& artifact, const Tables& tables,
                                 Place place) {
  INGOT_RETURN_IF(check_arenas(tables, place));
  INGOT_RETURN_IF(check_buffers(artifact, tables, place));
  place.step = 22;
  place.section = tables.views.section;
  for (place.record = 0; place.record < tables.views.count; ++place.record) {
    INGOT_RETURN_IF(check_view(tables, tables.views[place.record], place));
  }
  return kOk;
}

}  // namespace ingot::loader
