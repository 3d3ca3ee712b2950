// Steps 23 and 24: programs and their parameters, the call list with its arguments.
//
// After these checks every address that the replay will compute lies inside a buffer that the call
// may touch, with the size and access that the code was compiled for.
#include "loader/internal.h"

namespace ingot::loader {

namespace {

// ---- step 23 ------------------------------------------------------------------------------------

#define FIELD(name) INGOT_FIELD(IngotParamRecord, name)

constexpr FieldRule kParamRules[] = {
    INGOT_ZERO(IngotParamRecord, reserved),
    INGOT_RANGE(IngotParamRecord, kind, INGOT_ARG_VIEW, INGOT_ARG_IMMEDIATE),
    INGOT_RANGE(IngotParamRecord, access, INGOT_ACCESS_READ, INGOT_ACCESS_BOTH),
    INGOT_RANGE(IngotParamRecord, align_log2, 0, INGOT_MAX_ALIGN_LOG2),
};

ingot_status check_param(const IngotParamRecord& p, const Place& place) {
  const auto bad = [&](uint32_t field, uint64_t found, uint64_t allowed) {
    return place.fail(INGOT_E_PARAM, field, found, allowed);
  };
  INGOT_RETURN_IF(check_fields(&p, kParamRules, INGOT_E_PARAM, place));
  const bool immediate = p.kind == INGOT_ARG_IMMEDIATE;
  if (immediate ? p.nbytes != 8 : p.nbytes >= INGOT_MAX_VIEW_SPAN) {
    return bad(FIELD(nbytes), p.nbytes, 8);
  }
  if (immediate ? p.dtype != INGOT_DTYPE_U64 : element_size(p.dtype) == 0) {
    return bad(FIELD(dtype), p.dtype, INGOT_DTYPE_U64);
  }
  if (immediate && p.access != INGOT_ACCESS_READ) {
    return bad(FIELD(access), p.access, INGOT_ACCESS_READ);
  }
  if (immediate && p.align_log2 != 0) return bad(FIELD(align_log2), p.align_log2, 0);
  return kOk;
}

#undef FIELD
#define FIELD(name) INGOT_FIELD(IngotProgramRecord, name)

bool no_name(IngotName name) { return name.offset == 0 && name.length == 0; }

// The entry and its extent lie inside the payload of a code section of this variant.
ingot_status check_code_place(const ingot_artifact& artifact, const Tables& tables,
                              const IngotProgramRecord& p, uint32_t section_type,
                              const Place& place) {
  const auto bad = [&](uint32_t field, uint64_t found, uint64_t allowed) {
    return place.fail(INGOT_E_PROGRAM, field, found, allowed);
  };
  if (p.code_section >= artifact.header.section_count) {
    return bad(FIELD(code_section), p.code_section, artifact.header.section_count);
  }
  const IngotSectionEntry& section = artifact.section(p.code_section);
  const bool common_allowed = section_type == INGOT_SECTION_DEVCODE;
  const bool ours = section.variant == tables.variant ||
                    (common_allowed && section.variant == INGOT_VARIANT_COMMON);
  if (section.type != section_type || !ours) {
    return bad(FIELD(code_section), section.type, section_type);
  }
  const uint64_t alignment = tables.record->arch == INGOT_ARCH_X86_64 ? 16 : 4;
  const bool host = section_type == INGOT_SECTION_CODE;
  if (host && p.entry_offset % alignment != 0) {
    return bad(FIELD(entry_offset), p.entry_offset, alignment);
  }
  if (p.code_nbytes == 0 || !inside(p.entry_offset, p.code_nbytes, section.size)) {
    return bad(FIELD(code_nbytes), p.code_nbytes, section.size);
  }
  return kOk;
}

ingot_status check_program_kind(const ingot_artifact& artifact, const Tables& tables,
                                const IngotProgramRecord& p, const Place& place) {
  const auto bad = [&](uint32_t field, uint64_t found, uint64_t allowed) {
    return place.fail(INGOT_E_PROGRAM, field, found, allowed);
  };
  if (p.kind == INGOT_PROGRAM_DEVICE) {
    if (!has_device(tables)) return bad(FIELD(kind), p.kind, INGOT_PROGRAM_HOST);
    INGOT_RETURN_IF(check_code_place(artifact, tables, p, INGOT_SECTION_DEVCODE, place));
    INGOT_RETURN_IF(check_name(artifact, p.symbol, place, FIELD(symbol)));
    if (p.shared_bytes > INGOT_MAX_SHARED_BYTES) {
      return bad(FIELD(shared_bytes), p.shared_bytes, INGOT_MAX_SHARED_BYTES);
    }
    return p.threads <= INGOT_MAX_BLOCK ? kOk : bad(FIELD(threads), p.threads, INGOT_MAX_BLOCK);
  }
  if (p.kind == INGOT_PROGRAM_HOST) {
    INGOT_RETURN_IF(check_code_place(artifact, tables, p, INGOT_SECTION_CODE, place));
  } else if (p.code_section != kNone || p.entry_offset != 0 || p.code_nbytes != 0) {
    return bad(FIELD(code_section), p.code_section, kNone);
  }
  if (!no_name(p.symbol)) return bad(FIELD(symbol), p.symbol.length, 0);
  if (p.shared_bytes != 0) return bad(FIELD(shared_bytes), p.shared_bytes, 0);
  if (p.threads != 0) return bad(FIELD(threads), p.threads, 0);
  return kOk;
}

constexpr FieldRule kProgramRules[] = {
    INGOT_ZERO(IngotProgramRecord, reserved),
    INGOT_RANGE(IngotProgramRecord, kind, INGOT_PROGRAM_HOST, INGOT_PROGRAM_BUILT_IN),
    INGOT_RANGE(IngotProgramRecord, param_count, 0, INGOT_MAX_PROGRAM_PARAMS),
    INGOT_ZERO(IngotProgramRecord, flags),
};

ingot_status check_program(const ingot_artifact& artifact, const Tables& tables,
                           const IngotProgramRecord& p, const Place& place) {
  const auto bad = [&](uint32_t field, uint64_t found, uint64_t allowed) {
    return place.fail(INGOT_E_PROGRAM, field, found, allowed);
  };
  INGOT_RETURN_IF(check_fields(&p, kProgramRules, INGOT_E_PROGRAM, place));
  INGOT_RETURN_IF(check_name(artifact, p.name, place, FIELD(name)));
  if (!inside(p.param_first, p.param_count, tables.params.count)) {
    return bad(FIELD(param_first), p.param_first, tables.params.count);
  }
  if (p.stack_bytes > tables.record->stack_bytes) {
    return bad(FIELD(stack_bytes), p.stack_bytes, tables.record->stack_bytes);
  }
  return check_program_kind(artifact, tables, p, place);
}

#undef FIELD

ingot_status check_programs(const ingot_artifact& artifact, const Tables& tables, Place place) {
  place.step = 23;
  place.section = tables.params.section;
  for (place.record = 0; place.record < tables.params.count; ++place.record) {
    INGOT_RETURN_IF(check_param(tables.params[place.record], place));
  }
  place.section = tables.programs.section;
  for (place.record = 0; place.record < tables.programs.count; ++place.record) {
    INGOT_RETURN_IF(check_program(artifact, tables, tables.programs[place.record], place));
  }
  return kOk;
}

// ---- step 24 ------------------------------------------------------------------------------------

// One bit for each buffer.
struct BufferSet {
  uint64_t bits[INGOT_MAX_BUFFERS / 64] = {};

  bool has(uint32_t index) const { return (bits[index / 64] >> (index % 64) & 1) != 0; }
  void add(uint32_t index) { bits[index / 64] |= uint64_t{1} << (index % 64); }
  void clear() { std::memset(bits, 0, sizeof bits); }
  bool empty() const { return all_zero(bits, sizeof bits); }
};

#define FIELD(name) INGOT_FIELD(IngotCallRecord, name)

// Walks the calls in order and follows which buffers hold something.
class CallWalk {
 public:
  CallWalk(const Tables& tables, const Place& place) : tables_(tables), place_(place) {}

  ingot_status run();

 private:
  ingot_status check_call();
  ingot_status check_record();
  ingot_status check_program_call();
  ingot_status check_copy();
  ingot_status check_fill();
  ingot_status check_arguments();
  ingot_status check_argument(const IngotArgRecord& arg);
  ingot_status check_against_param(const IngotArgRecord& arg, const IngotParamRecord& param);
  ingot_status check_uses();
  ingot_status use(uint32_t buffer_index, uint32_t access);
  ingot_status check_end();

  const IngotArgRecord& arg(uint32_t i) const { return tables_.args[call_.arg_first + i]; }
  const IngotViewRecord& view_of(const IngotArgRecord& a) const { return tables_.views[a.view]; }
  const IngotBufferRecord& buffer_of(const IngotArgRecord& a) const {
    return tables_.buffers[view_of(a).buffer];
  }
  ingot_status bad(uint32_t field, uint64_t found, uint64_t allowed) const {
    return place_.fail(INGOT_E_CALL, field, found, allowed);
  }
  ingot_status bad_access(uint64_t found, uint64_t allowed) const {
    return place_.fail(INGOT_E_CALL_ACCESS, FIELD(arg_first), found, allowed);
  }
  ingot_status bad_order(uint64_t found, uint64_t allowed) const {
    return place_.fail(INGOT_E_CALL_ORDER, FIELD(arg_first), found, allowed);
  }

  const Tables& tables_;
  Place place_;
  IngotCallRecord call_;
  uint64_t args_used_ = 0;
  BufferSet written_;
  BufferSet on_device_;  // touched by the device queue since the last barrier
};

constexpr FieldRule kCallRules[] = {
    INGOT_ZERO(IngotCallRecord, reserved_2c),
    INGOT_ZERO(IngotCallRecord, reserved_38),
    INGOT_RANGE(IngotCallRecord, kind, INGOT_CALL_PROGRAM, INGOT_CALL_FILL),
    INGOT_ZERO(IngotCallRecord, flags),
};

bool dense_view(const IngotViewRecord& v) { return is_dense(v.dtype, v.rank, v.shape, v.nbytes); }

ingot_status CallWalk::check_record() {
  INGOT_RETURN_IF(check_fields(&call_, kCallRules, INGOT_E_CALL, place_));
  const uint16_t last_queue = has_device(tables_) ? INGOT_QUEUE_DEVICE : INGOT_QUEUE_HOST;
  if (call_.queue > last_queue) return bad(FIELD(queue), call_.queue, last_queue);
  if (call_.arg_first != args_used_) return bad(FIELD(arg_first), call_.arg_first, args_used_);
  if (call_.arg_count > tables_.args.count - args_used_) {
    return bad(FIELD(arg_count), call_.arg_count, tables_.args.count - args_used_);
  }
  args_used_ += call_.arg_count;
  if (call_.kind == INGOT_CALL_PROGRAM) return kOk;
  if (call_.program != kNone) return bad(FIELD(program), call_.program, kNone);
  if (!all_zero(call_.grid, sizeof call_.grid)) return bad(FIELD(grid), call_.grid[0], 0);
  if (!all_zero(call_.block, sizeof call_.block)) return bad(FIELD(block), call_.block[0], 0);
  if (call_.kind != INGOT_CALL_FILL && call_.immediate != 0) {
    return bad(FIELD(immediate), call_.immediate, 0);
  }
  return kOk;
}

ingot_status CallWalk::check_argument(const IngotArgRecord& a) {
  if (a.reserved != 0 || a.kind > INGOT_ARG_IMMEDIATE) {
    return bad(FIELD(arg_first), a.kind, INGOT_ARG_IMMEDIATE);
  }
  if (a.access < INGOT_ACCESS_READ || a.access > INGOT_ACCESS_BOTH) {
    return bad(FIELD(arg_first), a.access, INGOT_ACCESS_BOTH);
  }
  if (a.kind == INGOT_ARG_IMMEDIATE) {
    const bool good = a.view == kNone && a.access == INGOT_ACCESS_READ;
    return good ? kOk : bad(FIELD(arg_first), a.view, kNone);
  }
  if (a.view >= tables_.views.count || a.immediate != 0) {
    return bad(FIELD(arg_first), a.view, tables_.views.count);
  }
  return kOk;
}

ingot_status CallWalk::check_arguments() {
  for (uint32_t i = 0; i < call_.arg_count; ++i) {
    const IngotArgRecord& a = arg(i);
    INGOT_RETURN_IF(check_argument(a));
    // Only programs take immediates.
    if (call_.kind != INGOT_CALL_PROGRAM && a.kind != INGOT_ARG_VIEW) {
      return bad(FIELD(arg_first), a.kind, INGOT_ARG_VIEW);
    }
  }
  return kOk;
}

ingot_status CallWalk::check_against_param(const IngotArgRecord& a, const IngotParamRecord& p) {
  if (a.kind != p.kind) return bad_access(a.kind, p.kind);
  if (a.access != p.access) return bad_access(a.access, p.access);
  if (a.kind == INGOT_ARG_IMMEDIATE) return kOk;
  const IngotViewRecord& view = view_of(a);
  const IngotBufferRecord& buffer = buffer_of(a);
  if (view.dtype != p.dtype) return bad_access(view.dtype, p.dtype);
  if (view.nbytes != p.nbytes) return bad_access(view.nbytes, p.nbytes);
  const uint64_t mask = (uint64_t{1} << p.align_log2) - 1;
  if (buffer.align_log2 < p.align_log2 || (view.offset & mask) != 0) {
    return bad_access(view.offset, mask + 1);
  }
  const uint8_t memory = call_.queue == INGOT_QUEUE_DEVICE ? INGOT_PLACE_DEVICE : INGOT_PLACE_HOST;
  return buffer.memory == memory ? kOk : bad_access(buffer.memory, memory);
}

ingot_status CallWalk::check_program_call() {
  if (call_.program >= tables_.programs.count) {
    return bad(FIELD(program), call_.program, tables_.programs.count);
  }
  const IngotProgramRecord& program = tables_.programs[call_.program];
  const bool device = program.kind == INGOT_PROGRAM_DEVICE;
  if (call_.queue != (device ? INGOT_QUEUE_DEVICE : INGOT_QUEUE_HOST)) {
    return bad(FIELD(queue), call_.queue, device);
  }
  if (call_.arg_count != program.param_count) {
    return bad(FIELD(arg_count), call_.arg_count, program.param_count);
  }
  uint64_t block = 1;
  for (int i = 0; i < 3; ++i) {
    if (call_.grid[i] < 1 || call_.grid[i] > INGOT_MAX_GRID) {
      return bad(FIELD(grid), call_.grid[i], INGOT_MAX_GRID);
    }
    if (!device && call_.block[i] != 0) return bad(FIELD(block), call_.block[i], 0);
    if (device && call_.block[i] > INGOT_MAX_BLOCK) {
      return bad(FIELD(block), call_.block[i], INGOT_MAX_BLOCK);
    }
    block *= call_.block[i];
  }
  if (device && (block < 1 || block > INGOT_MAX_BLOCK)) {
    return bad(FIELD(block), block, INGOT_MAX_BLOCK);
  }
  if (call_.immediate != 0) return bad(FIELD(immediate), call_.immediate, 0);
  INGOT_RETURN_IF(check_arguments());
  for (uint32_t i = 0; i < call_.arg_count; ++i) {
    INGOT_RETURN_IF(check_against_param(arg(i), tables_.params[program.param_first + i]));
  }
  return kOk;
}

ingot_status CallWalk::check_copy() {
  if (call_.arg_count != 2) return bad(FIELD(arg_count), call_.arg_count, 2);
  INGOT_RETURN_IF(check_arguments());
  const IngotArgRecord& from = arg(0);
  const IngotArgRecord& to = arg(1);
  if (from.access != INGOT_ACCESS_READ || to.access != INGOT_ACCESS_WRITE) {
    return bad(FIELD(arg_first), from.access, INGOT_ACCESS_READ);
  }
  const IngotViewRecord& source = view_of(from);
  const IngotViewRecord& target = view_of(to);
  const bool alike = source.nbytes == target.nbytes && source.dtype == target.dtype &&
                     dense_view(source) && dense_view(target);
  if (!alike) return bad(FIELD(arg_first), source.nbytes, target.nbytes);
  const bool overlap = source.buffer == target.buffer &&
                       source.offset < target.offset + target.nbytes &&
                       target.offset < source.offset + source.nbytes;
  if (overlap) return bad(FIELD(arg_first), source.offset, target.offset);
  const bool device = buffer_of(from).memory != 0 || buffer_of(to).memory != 0;
  return call_.queue == device ? kOk : bad(FIELD(queue), call_.queue, device);
}

ingot_status CallWalk::check_fill() {
  if (call_.arg_count != 1) return bad(FIELD(arg_count), call_.arg_count, 1);
  if (call_.immediate > 255) return bad(FIELD(immediate), call_.immediate, 255);
  INGOT_RETURN_IF(check_arguments());
  const IngotArgRecord& to = arg(0);
  if (to.access != INGOT_ACCESS_WRITE || !dense_view(view_of(to))) {
    return bad(FIELD(arg_first), to.access, INGOT_ACCESS_WRITE);
  }
  const bool device = buffer_of(to).memory != INGOT_PLACE_HOST;
  return call_.queue == device ? kOk : bad(FIELD(queue), call_.queue, device);
}

// A buffer may be touched by this call, now.
ingot_status CallWalk::use(uint32_t index, uint32_t access) {
  const IngotBufferRecord& b = tables_.buffers[index];
  const bool writes = (access & INGOT_ACCESS_WRITE) != 0;
  const bool reads = (access & INGOT_ACCESS_READ) != 0;
  const bool in_place = (b.flags & INGOT_BUFFER_IN_PLACE) != 0;
  const bool fixed = b.kind == INGOT_BUFFER_INPUT || b.kind == INGOT_BUFFER_CONST ||
                     (b.kind == INGOT_BUFFER_STATE && !in_place);
  if (writes && fixed) return bad_access(b.kind, access);
  if (place_.record < b.first_call || place_.record > b.last_call) {
    return bad_order(place_.record, b.last_call);
  }
  const bool from_start = fixed || b.kind == INGOT_BUFFER_STATE || b.nbytes == 0;
  if (reads && !from_start && !written_.has(index)) return bad_order(index, place_.record);
  if (call_.queue == INGOT_QUEUE_DEVICE) {
    on_device_.add(index);
  } else if (on_device_.has(index)) {
    return bad_order(index, place_.record);
  }
  return kOk;
}

ingot_status CallWalk::check_uses() {
  for (uint32_t i = 0; i < call_.arg_count; ++i) {
    const IngotArgRecord& a = arg(i);
    if (a.kind == INGOT_ARG_VIEW) INGOT_RETURN_IF(use(view_of(a).buffer, a.access));
  }
  // Only afterwards: what a call writes is not there for the same call to read.
  for (uint32_t i = 0; i < call_.arg_count; ++i) {
    const IngotArgRecord& a = arg(i);
    if (a.kind == INGOT_ARG_VIEW && (a.access & INGOT_ACCESS_WRITE) != 0) {
      written_.add(view_of(a).buffer);
    }
  }
  return kOk;
}

ingot_status CallWalk::check_call() {
  INGOT_RETURN_IF(check_record());
  switch (call_.kind) {
    case INGOT_CALL_PROGRAM: INGOT_RETURN_IF(check_program_call()); break;
    case INGOT_CALL_COPY: INGOT_RETURN_IF(check_copy()); break;
    case INGOT_CALL_FILL: INGOT_RETURN_IF(check_fill()); break;
    default:  // BARRIER
      if (call_.arg_count != 0) return bad(FIELD(arg_count), call_.arg_count, 0);
      if (call_.queue != INGOT_QUEUE_HOST) return bad(FIELD(queue), call_.queue, 0);
      on_device_.clear();
  }
  return check_uses();
}

ingot_status CallWalk::check_end() {
  place_.record = kNone;
  if (args_used_ != tables_.args.count)
    return bad(FIELD(arg_first), args_used_, tables_.args.count);
  for (uint32_t i = 0; i < tables_.buffers.count; ++i) {
    const IngotBufferRecord& b = tables_.buffers[i];
    const bool result = b.kind == INGOT_BUFFER_OUTPUT || b.kind == INGOT_BUFFER_NEXT_STATE;
    if (result && b.nbytes != 0 && !written_.has(i)) return bad_order(i, tables_.calls.count);
  }
  return on_device_.empty() ? kOk : bad_order(tables_.calls.count, 0);
}

ingot_status CallWalk::run() {
  place_.step = 24;
  place_.section = tables_.calls.section;
  for (place_.record = 0; place_.record < tables_.calls.count; ++place_.record) {
    call_ = tables_.calls[place_.record];
    INGOT_RETURN_IF(check_call());
  }
  return check_end();
}

#undef FIELD

}  // namespace

ingot_status check_call_tables(const ingot_artifact& artifact, const Tables& tables, Place place) {
  INGOT_RETURN_IF(check_programs(artifact, tables, place));
  INGOT_RETURN_IF(CallWalk(tables, place).run());
  place.step = 24;
  return check_transforms(tables, place);
}

}  // namespace ingot::loader
