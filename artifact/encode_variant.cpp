// One target: memory, programs, calls.
#include <fmt/format.h>

#include <algorithm>

#include "artifact/encoder.h"
#include "artifact/names.h"

namespace ingot::artifact {

Result<void> Encoder::fill_variant(std::uint16_t v) {
  const Variant& variant = contents_.variants[v];
  VariantTables& tables = tables_.variant_tables[v];
  IngotVariantRecord record{};
  record.name = strings_.add(variant.name);
  record.arch = static_cast<std::uint16_t>(variant.arch);
  record.endian = INGOT_ENDIAN_LITTLE;
  record.os = static_cast<std::uint16_t>(variant.os);
  record.call_abi = INGOT_CALL_ABI_1;
  std::ranges::copy(variant.cpu_features, record.cpu_features);
  record.xcr0 = variant.xcr0;
  record.sve_bits = variant.sve_bits;
  record.max_page_size = variant.max_page_size;
  record.fp_control = variant.fp_control;
  record.threads = variant.threads;
  record.device_kind = static_cast<std::uint16_t>(variant.device.kind);
  record.device_arch_rule = variant.device.rule;
  record.device_arch = variant.device.arch;
  std::ranges::copy(variant.device.driver_min, record.driver_min);
  record.device_memory = variant.device.memory;
  record.priority = variant.priority;
  if (variant.device.name.size() > sizeof record.device_name) {
    return over_limit("characters of a device name", variant.device.name.size(),
                      sizeof record.device_name);
  }
  if (!variant.device.name.empty() && !is_stored_name(variant.device.name)) {
    return contradiction("a device name outside the alphabet of names");
  }
  put_text(record.device_name, variant.device.name);
  if (variant.calls.empty()) return contradiction("a variant without calls");
  INGOT_RETURN_IF_ERROR(fill_memory(variant, tables, record));
  INGOT_RETURN_IF_ERROR(fill_programs(variant, tables, record));
  INGOT_RETURN_IF_ERROR(fill_calls(variant, tables));
  INGOT_RETURN_IF_ERROR(fill_transforms(variant, tables));
  IngotHeader& header = tables_.header;
  header.max_host_arena = std::max(header.max_host_arena, record.host_arena_bytes);
  header.max_device_arena = std::max(header.max_device_arena, record.device_arena_bytes);
  tables_.variants.push_back(record);
  return {};
}

Result<void> Encoder::fill_memory(const Variant& variant, VariantTables& tables,
                                  IngotVariantRecord& record) {
  INGOT_RETURN_IF_ERROR(check_count("arenas", variant.arenas.size(), INGOT_MAX_ARENAS));
  INGOT_RETURN_IF_ERROR(check_count("buffers", variant.buffers.size(), INGOT_MAX_BUFFERS));
  INGOT_RETURN_IF_ERROR(check_count("views", variant.views.size(), INGOT_MAX_VIEWS));
  for (const Arena& arena : variant.arenas) {
    if (arena.nbytes > INGOT_MAX_ARENA_BYTES) {
      return over_limit("bytes in an arena", arena.nbytes, INGOT_MAX_ARENA_BYTES);
    }
    IngotArenaRecord row{};
    row.nbytes = align_up(arena.nbytes, INGOT_ALIGNMENT);
    row.align_log2 = arena.align_log2;
    row.memory = static_cast<std::uint16_t>(arena.place);
    row.role = static_cast<std::uint16_t>(arena.role);
    (arena.place == INGOT_PLACE_HOST ? record.host_arena_bytes : record.device_arena_bytes) +=
        row.nbytes;
    if (arena.place == INGOT_PLACE_IMAGE) {
      tables_.header.features_required |= INGOT_FEATURE_IMAGES;
    }
    tables.arenas.push_back(row);
  }
  for (const Buffer& buffer : variant.buffers) {
    const std::size_t id = tables.buffers.size();
    if (buffer.arena && *buffer.arena >= variant.arenas.size()) {
      return contradiction(fmt::format("buffer {} is in an arena that does not exist", id));
    }
    if (buffer.slot && *buffer.slot >= tables.io.size()) {
      return contradiction(fmt::format("buffer {} holds a slot that does not exist", id));
    }
    if (buffer.kind == INGOT_BUFFER_CONST && buffer.align_log2 > INGOT_ALIGNMENT_LOG2) {
      return contradiction(fmt::format("constant {} asks for more than 256-byte alignment", id));
    }
    if (buffer.data && (*buffer.data >= contents_.data.size() ||
                        contents_.data[*buffer.data].bytes.size() != buffer.nbytes)) {
      return contradiction(fmt::format("buffer {} and its initial data differ in size", id));
    }
    IngotBufferRecord row{};
    row.id = static_cast<std::uint32_t>(id);
    row.kind = static_cast<std::uint8_t>(buffer.kind);
    row.memory = static_cast<std::uint8_t>(buffer.place);
    row.align_log2 = buffer.align_log2;
    row.nbytes = buffer.nbytes;
    row.arena_offset = buffer.arena ? buffer.arena_offset : 0;
    row.arena = buffer.arena.value_or(INGOT_NO_INDEX);
    row.io = buffer.slot.value_or(INGOT_NO_INDEX);
    row.init_section = INGOT_NO_INDEX;  // name_sections_in_records()
    row.first_call = buffer.first_call;
    row.last_call = buffer.last_call;
    row.flags = (buffer.caller_memory ? std::uint32_t{INGOT_BUFFER_CALLER_MEMORY} : 0U) |
                (buffer.in_place ? std::uint32_t{INGOT_BUFFER_IN_PLACE} : 0U);
    if (buffer.place == INGOT_PLACE_IMAGE) {
      tables_.header.features_required |= INGOT_FEATURE_IMAGES;
    }
    tables.buffers.push_back(row);
  }
  for (const View& view : variant.views) {
    const std::string shown = fmt::format("view {}", tables.views.size());
    if (view.buffer >= variant.buffers.size()) {
      return contradiction(shown + " is of a buffer that does not exist");
    }
    INGOT_ASSIGN(const Geometry shape,
                 geometry(shown, view.dtype, view.shape, view.strides, INGOT_MAX_TENSOR_RANK));
    IngotViewRecord row{};
    row.buffer = view.buffer;
    row.dtype = static_cast<std::uint16_t>(view.dtype);
    row.rank = static_cast<std::uint8_t>(view.shape.size());
    row.offset = view.offset;
    row.nbytes = shape.span;
    std::ranges::copy(view.shape, row.shape);
    std::ranges::copy(shape.strides, row.strides);
    tables.views.push_back(row);
  }
  return {};
}

Result<void> Encoder::fill_programs(const Variant& variant, VariantTables& tables,
                                    IngotVariantRecord& record) {
  INGOT_RETURN_IF_ERROR(check_count("programs", variant.programs.size(), INGOT_MAX_PROGRAMS));
  for (const Program& program : variant.programs) {
    const std::string shown = fmt::format("program '{}'", encode_name(program.name));
    INGOT_RETURN_IF_ERROR(
        check_count("parameters of " + shown, program.params.size(), INGOT_MAX_PROGRAM_PARAMS));
    const std::size_t code_count = program.kind == INGOT_PROGRAM_HOST ? variant.code.size()
                                   : program.kind == INGOT_PROGRAM_DEVICE
                                       ? variant.device_code.size()
                                       : SIZE_MAX;
    if (program.code >= code_count) return contradiction(shown + " has no code");
    IngotProgramRecord row{};
    row.name = strings_.add(program.name);
    row.kind = static_cast<std::uint16_t>(program.kind);
    row.param_count = static_cast<std::uint16_t>(program.params.size());
    row.code_section = INGOT_NO_INDEX;  // name_sections_in_records()
    row.entry_offset = program.entry_offset;
    row.code_nbytes = program.code_nbytes;
    row.param_first = static_cast<std::uint32_t>(tables.params.size());
    row.stack_bytes = program.stack_bytes;
    row.symbol = strings_.add_optional(program.symbol);
    row.shared_bytes = program.shared_bytes;
    row.threads = program.threads;
    tables.programs.push_back(row);
    record.stack_bytes = std::max(record.stack_bytes, program.stack_bytes);
    for (const Param& param : program.params) {
      IngotParamRecord entry{};
      entry.nbytes = param.nbytes;
      entry.dtype = static_cast<std::uint16_t>(param.dtype);
      entry.access = static_cast<std::uint8_t>(param.access);
      entry.align_log2 = param.align_log2;
      entry.kind = static_cast<std::uint8_t>(param.kind);
      tables.params.push_back(entry);
    }
  }
  return check_count("parameters", tables.params.size(), INGOT_MAX_PARAMS);
}

Result<void> Encoder::fill_calls(const Variant& variant, VariantTables& tables) {
  INGOT_RETURN_IF_ERROR(check_count("calls", variant.calls.size(), INGOT_MAX_CALLS));
  std::uint64_t& features = tables_.header.features_required;
  for (const Call& call : variant.calls) {
    const bool is_program = call.kind == INGOT_CALL_PROGRAM;
    if (is_program && call.program >= variant.programs.size()) {
      return contradiction(
          fmt::format("call {} of a program that does not exist", tables.calls.size()));
    }
    IngotCallRecord row{};
    row.kind = static_cast<std::uint16_t>(call.kind);
    row.queue = call.queue;
    row.program = is_program ? call.program : INGOT_NO_INDEX;
    row.arg_first = static_cast<std::uint32_t>(tables.args.size());
    row.arg_count = static_cast<std::uint32_t>(call.args.size());
    std::ranges::copy(call.grid, row.grid);
    std::ranges::copy(call.block, row.block);
    row.immediate = call.immediate;
    row.source = call.source;
    tables.calls.push_back(row);
    if (call.queue > INGOT_QUEUE_DEVICE || call.kind == INGOT_CALL_WAIT ||
        call.kind == INGOT_CALL_SIGNAL) {
      features |= INGOT_FEATURE_QUEUES;
    }
    if (call.kind == INGOT_CALL_REPEAT) features |= INGOT_FEATURE_REPEAT;
    for (const Arg& arg : call.args) {
      if (arg.kind == INGOT_ARG_VIEW && arg.view >= variant.views.size()) {
        return contradiction(
            fmt::format("call {} passes a view that does not exist", tables.calls.size() - 1));
      }
      IngotArgRecord entry{};
      entry.view = arg.kind == INGOT_ARG_VIEW ? arg.view : INGOT_NO_INDEX;
      entry.access =
          static_cast<std::uint8_t>(arg.kind == INGOT_ARG_VIEW ? arg.access : INGOT_ACCESS_READ);
      entry.kind = static_cast<std::uint8_t>(arg.kind);
      entry.immediate = arg.kind == INGOT_ARG_IMMEDIATE ? arg.immediate : 0;
      tables.args.push_back(entry);
      if (arg.kind == INGOT_ARG_ITERATION) features |= INGOT_FEATURE_REPEAT;
    }
  }
  return check_count("arguments", tables.args.size(), INGOT_MAX_ARGS);
}

}  // namespace ingot::artifact
