// What an artifact holds, as plain structures.
#include "loader/internal.h"

namespace ingot::loader {

namespace {

ingot_status index_status(const ingot_artifact& artifact, uint32_t index, uint32_t count) {
  if (artifact.state < INGOT_STATE_COMPATIBLE) return INGOT_E_STATE;
  if (index >= count) return INGOT_E_ARG_UNKNOWN;
  return kOk;
}

uint32_t count_steps(const Table<IngotRefRecord>& refs) {
  uint32_t steps = 0;
  for (uint32_t i = 0; i < refs.count; ++i) {
    const bool same =
        i > 0 && refs[i].sequence == refs[i - 1].sequence && refs[i].step == refs[i - 1].step;
    if (!same) ++steps;
  }
  return steps;
}

}  // namespace

}  // namespace ingot::loader

using namespace ingot::loader;

uint32_t ingot_element_size(uint32_t dtype) { return element_size(dtype); }

void ingot_artifact_describe(const ingot_artifact* artifact, ingot_artifact_info* info) {
  std::memset(info, 0, sizeof *info);
  const IngotHeader& header = artifact->header;
  const Tables& tables = artifact->tables;
  std::memcpy(info->id, artifact->id, 32);
  std::memcpy(info->model_sha256, header.model_sha256, 32);
  if (tables.record != nullptr) {
    std::memcpy(info->interface_sha256, tables.record->interface_sha256, 32);
  }
  std::memcpy(info->product, header.product, 32);
  std::memcpy(info->device_family, header.device_family, 32);
  info->version_major = header.version_major;
  info->version_minor = header.version_minor;
  std::memcpy(info->producer, header.producer, sizeof info->producer);
  info->build_class = header.build_class;
  info->security_counter = header.security_counter;
  info->content_nbytes = header.content_size;
  info->max_host_arena = header.max_host_arena;
  info->max_device_arena = header.max_device_arena;
  // Nobody vouches for an unsigned artifact, whatever else was found out about it.
  info->state = artifact->trusted ? artifact->state : static_cast<uint32_t>(INGOT_STATE_INTACT);
  info->signature_count = artifact->signature_count;
  info->counted_keys = artifact->counted_keys;
  info->variant = tables.variant;
  info->variant_count = artifact->variants.count;
  info->model_count = artifact->models.count;
  info->io_count = tables.io.count;
  info->slice_count = tables.slices.count;
  info->camera_count = tables.cameras.count;
  info->buffer_count = tables.buffers.count;
  info->call_count = tables.calls.count;
  info->program_count = tables.programs.count;
  info->arena_count = tables.arenas.count;
  info->transform_count = tables.transforms.count;
  info->reference_count = tables.refs.count;
  info->step_count = count_steps(tables.refs);
  for (uint32_t i = 0; i < artifact->models.count && info->frame_period_us == 0; ++i) {
    info->frame_period_us = artifact->models[i].frame_period_us;
  }
  info->code_sealed = artifact->code_sealed ? 1 : 0;
  info->huge_pages = artifact->huge_pages ? 1 : 0;
  info->locked = artifact->locked ? 1 : 0;
  info->block_count = header.block_count;
}

ingot_status ingot_variant_describe(const ingot_artifact* artifact, uint32_t index,
                                    ingot_variant_info* info) {
  if (index >= artifact->variants.count) return INGOT_E_ARG_UNKNOWN;
  const IngotVariantRecord& v = artifact->variants[index];
  std::memset(info, 0, sizeof *info);
  info->name = name_of(*artifact, v.name);
  info->arch = v.arch;
  info->os = v.os;
  std::memcpy(info->cpu_features, v.cpu_features, sizeof v.cpu_features);
  info->xcr0 = v.xcr0;
  info->sve_bits = v.sve_bits;
  info->max_page_size = v.max_page_size;
  info->fp_control = v.fp_control;
  info->threads = v.threads;
  info->priority = v.priority;
  info->stack_nbytes = v.stack_bytes;
  info->device_kind = v.device_kind;
  info->host_arena_nbytes = v.host_arena_bytes;
  info->device_arena_nbytes = v.device_arena_bytes;
  std::memcpy(info->interface_sha256, v.interface_sha256, 32);
  info->fits = variant_fits(v, artifact->host);
  return kOk;
}

ingot_status ingot_io_describe(const ingot_artifact* artifact, uint32_t index,
                               ingot_io_info* info) {
  const Tables& tables = artifact->tables;
  INGOT_RETURN_IF(index_status(*artifact, index, tables.io.count));
  const IngotIoRecord& io = tables.io[index];
  std::memset(info, 0, sizeof *info);
  info->name = name_of(*artifact, io.name);
  info->index = index;
  info->direction = io.direction;
  info->dtype = io.dtype;
  info->rank = io.rank;
  std::memcpy(info->shape, io.shape, sizeof io.shape);
  std::memcpy(info->strides, io.strides, sizeof io.strides);
  info->nbytes = io.nbytes;
  info->logical_nbytes = io.logical_nbytes;
  info->camera = io.camera;
  for (uint32_t i = 0; i < tables.buffers.count; ++i) {
    const IngotBufferRecord& b = tables.buffers[i];
    if (b.io != index || b.kind == INGOT_BUFFER_NEXT_STATE) continue;
    info->buffer = i;
    info->by_pointer = (b.flags & INGOT_BUFFER_CALLER_MEMORY) != 0 ? 1 : 0;
    info->in_place = (b.flags & INGOT_BUFFER_IN_PLACE) != 0 ? 1 : 0;
    info->alignment = info->by_pointer != 0 ? 1u << b.align_log2 : element_size(io.dtype);
  }
  return kOk;
}

ingot_status ingot_slice_describe(const ingot_artifact* artifact, uint32_t index,
                                  ingot_slice_info* info) {
  INGOT_RETURN_IF(index_status(*artifact, index, artifact->tables.slices.count));
  const IngotSliceRecord& slice = artifact->tables.slices[index];
  std::memset(info, 0, sizeof *info);
  info->name = name_of(*artifact, slice.name);
  info->io = slice.io;
  info->dtype = slice.dtype;
  info->rank = slice.rank;
  std::memcpy(info->shape, slice.shape, sizeof slice.shape);
  info->offset = slice.offset;
  info->nbytes = slice.nbytes;
  info->camera = slice.camera;
  info->overlaps = slice.flags & INGOT_SLICE_OVERLAPS;
  return kOk;
}

ingot_status ingot_camera_describe(const ingot_artifact* artifact, uint32_t index,
                                   ingot_camera_info* info) {
  INGOT_RETURN_IF(index_status(*artifact, index, artifact->tables.cameras.count));
  const IngotCameraRecord& c = artifact->tables.cameras[index];
  std::memset(info, 0, sizeof *info);
  info->name = name_of(*artifact, c.name);
  info->layout = layout_of(c);
  info->pixel_format = c.pixel_format;
  info->sample_range = c.sample_range;
  info->colour_matrix = c.colour_matrix;
  info->max_age_us = c.max_age_us;
  info->copy_nbytes = c.copy_nbytes;
  info->buffer_nbytes = c.buffer_nbytes;
  return kOk;
}

ingot_status ingot_buffer_describe(const ingot_artifact* artifact, uint32_t index,
                                   ingot_buffer_info* info) {
  INGOT_RETURN_IF(index_status(*artifact, index, artifact->tables.buffers.count));
  const IngotBufferRecord& b = artifact->tables.buffers[index];
  std::memset(info, 0, sizeof *info);
  info->kind = b.kind;
  info->arena = b.arena;
  info->arena_offset = b.arena_offset;
  info->nbytes = b.nbytes;
  info->io = b.io;
  info->first_call = b.first_call;
  info->last_call = b.last_call;
  return kOk;
}

ingot_status ingot_call_describe(const ingot_artifact* artifact, uint32_t index,
                                 ingot_call_info* info) {
  const Tables& tables = artifact->tables;
  INGOT_RETURN_IF(index_status(*artifact, index, tables.calls.count));
  const IngotCallRecord& call = tables.calls[index];
  std::memset(info, 0, sizeof *info);
  info->kind = call.kind;
  info->queue = call.queue;
  info->program = call.program;
  if (call.program != kNone) {
    info->program_name = name_of(*artifact, tables.programs[call.program].name);
  }
  std::memcpy(info->grid, call.grid, sizeof call.grid);
  info->arg_count = call.arg_count;
  info->source = call.source;
  for (uint32_t i = 0; i < call.arg_count; ++i) {
    const IngotArgRecord& arg = tables.args[call.arg_first + i];
    if (arg.kind != INGOT_ARG_VIEW) continue;
    const uint64_t nbytes = tables.views[arg.view].nbytes;
    if ((arg.access & INGOT_ACCESS_READ) != 0) info->read_nbytes += nbytes;
    if ((arg.access & INGOT_ACCESS_WRITE) != 0) info->written_nbytes += nbytes;
  }
  return kOk;
}

ingot_status ingot_argument_describe(const ingot_artifact* artifact, uint32_t call_index,
                                     uint32_t argument, ingot_argument_info* info) {
  const Tables& tables = artifact->tables;
  INGOT_RETURN_IF(index_status(*artifact, call_index, tables.calls.count));
  const IngotCallRecord& call = tables.calls[call_index];
  if (argument >= call.arg_count) return INGOT_E_ARG_UNKNOWN;
  const IngotArgRecord& arg = tables.args[call.arg_first + argument];
  std::memset(info, 0, sizeof *info);
  info->buffer = kNone;
  info->access = arg.access;
  info->immediate = arg.immediate;
  if (arg.kind != INGOT_ARG_VIEW) return kOk;
  const IngotViewRecord& view = tables.views[arg.view];
  info->buffer = view.buffer;
  info->dtype = view.dtype;
  info->rank = view.rank;
  std::memcpy(info->shape, view.shape, sizeof view.shape);
  std::memcpy(info->strides, view.strides, sizeof view.strides);
  info->offset = view.offset;
  info->nbytes = view.nbytes;
  return kOk;
}

uint32_t ingot_find_io(const ingot_artifact* artifact, const char* name) {
  const Tables& tables = artifact->tables;
  for (uint32_t i = 0; i < tables.io.count; ++i) {
    if (std::strcmp(name_of(*artifact, tables.io[i].name), name) == 0) return i;
  }
  return INGOT_NONE;
}
