// Steps 16 and 19, and the interface digest of step 26: names, models, cameras, slots, slices.
#include "loader/internal.h"

namespace ingot::loader {

namespace {

constexpr bool name_character(uint8_t c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == ':' || c == '/' || c == '-' || c == '+' || c == '%';
}

ingot_status check_optional_name(const ingot_artifact& artifact, IngotName name, const Place& place,
                                 uint32_t field) {
  if (name.offset == 0 && name.length == 0) return kOk;
  return check_name(artifact, name, place, field);
}

// A 32-byte tag starts every digest over tables.
void begin_tagged(Sha256* hash, Sha256Blocks blocks, const char (&tag)[32]) {
  sha256_begin(hash, blocks);
  sha256_add(hash, tag, sizeof tag);
}

// ---- step 16 ------------------------------------------------------------------------------------

#define FIELD(name) INGOT_FIELD(IngotModelRecord, name)

constexpr FieldRule kModelRules[] = {
    INGOT_RANGE(IngotModelRecord, precision, INGOT_PRECISION_F32, INGOT_PRECISION_BF16),
    // Every combination of the known bits.
    INGOT_RANGE(IngotModelRecord, float_policy, 0, INGOT_FLOAT_CONTRACT | INGOT_FLOAT_REGROUP),
};

ingot_status check_model(const ingot_artifact& artifact, const IngotModelRecord& model,
                         const Place& place) {
  if (!all_zero(model.reserved, sizeof model.reserved)) {
    return place.fail(INGOT_E_RESERVED, FIELD(reserved));
  }
  const auto bad = [&](uint32_t field, uint64_t found, uint64_t allowed) {
    return place.fail(INGOT_E_MODEL, field, found, allowed);
  };
  const bool has_onnx = !all_zero(model.onnx_sha256, sizeof model.onnx_sha256);
  const bool has_pipeline = !all_zero(model.pipeline_sha256, sizeof model.pipeline_sha256);
  if (!has_onnx && !has_pipeline) return bad(FIELD(onnx_sha256), 0, 0);
  if (has_onnx) {
    if (model.ir_version < INGOT_MIN_IR_VERSION || model.ir_version > INGOT_MAX_IR_VERSION) {
      return bad(FIELD(ir_version), model.ir_version, INGOT_MAX_IR_VERSION);
    }
    if (model.opset < 1 || model.opset > INGOT_MAX_OPSET) {
      return bad(FIELD(opset), model.opset, INGOT_MAX_OPSET);
    }
  } else {
    if (!all_zero(model.external_sha256, sizeof model.external_sha256)) {
      return bad(FIELD(external_sha256), 0, 0);
    }
    if (model.ir_version != 0) return bad(FIELD(ir_version), model.ir_version, 0);
    if (model.opset != 0) return bad(FIELD(opset), model.opset, 0);
  }
  INGOT_RETURN_IF(check_optional_name(artifact, model.producer, place, FIELD(producer)));
  INGOT_RETURN_IF(check_optional_name(artifact, model.graph_name, place, FIELD(graph_name)));
  INGOT_RETURN_IF(check_optional_name(artifact, model.domain, place, FIELD(domain)));
  const uint32_t period = model.frame_period_us;
  if (period != 0 && (period < INGOT_MIN_FRAME_PERIOD_US || period > INGOT_MAX_FRAME_PERIOD_US)) {
    return bad(FIELD(frame_period_us), period, INGOT_MAX_FRAME_PERIOD_US);
  }
  return check_fields(&model, kModelRules, INGOT_E_MODEL, place);
}

#undef FIELD

// ---- step 19: CAMERA ----------------------------------------------------------------------------

#define FIELD(name) INGOT_FIELD(IngotCameraRecord, name)

constexpr FieldRule kCameraRules[] = {
    INGOT_ZERO(IngotCameraRecord, reserved),
    INGOT_RANGE(IngotCameraRecord, width, 1, UINT32_MAX),
    INGOT_RANGE(IngotCameraRecord, height, 1, UINT32_MAX),
    INGOT_RANGE(IngotCameraRecord, pixel_format, INGOT_PIXEL_NV12, INGOT_PIXEL_NV21),
    INGOT_RANGE(IngotCameraRecord, planes, INGOT_CAMERA_PLANES, INGOT_CAMERA_PLANES),
    INGOT_RANGE(IngotCameraRecord, sample_range, INGOT_RANGE_FULL, INGOT_RANGE_LIMITED),
    INGOT_RANGE(IngotCameraRecord, colour_matrix, INGOT_COLOUR_BT601, INGOT_COLOUR_BT709),
};

ingot_status check_camera(const IngotCameraRecord& camera, const Place& place) {
  const auto bad = [&](uint32_t field, uint64_t found, uint64_t allowed) {
    return place.fail(INGOT_E_CAMERA, field, found, allowed);
  };
  INGOT_RETURN_IF(check_fields(&camera, kCameraRules, INGOT_E_CAMERA, place));
  if (camera.width % 2 != 0) return bad(FIELD(width), camera.width, 2);
  if (camera.height % 2 != 0) return bad(FIELD(height), camera.height, 2);
  if (camera.stride < camera.width) return bad(FIELD(stride), camera.stride, camera.width);
  if (camera.y_height < camera.height) return bad(FIELD(y_height), camera.y_height, camera.height);
  if (camera.uv_height < camera.height / 2) {
    return bad(FIELD(uv_height), camera.uv_height, camera.height / 2);
  }
  // 32-bit factors: the products cannot overflow 64 bits.
  const uint64_t luma = uint64_t{camera.stride} * camera.y_height;
  const uint64_t chroma = uint64_t{camera.stride} * camera.uv_height;
  if (camera.uv_offset < luma || camera.uv_offset > INGOT_MAX_CAMERA_BYTES) {
    return bad(FIELD(uv_offset), camera.uv_offset, luma);
  }
  if (chroma > INGOT_MAX_CAMERA_BYTES || camera.copy_nbytes != camera.uv_offset + chroma ||
      camera.copy_nbytes > INGOT_MAX_CAMERA_BYTES) {
    return bad(FIELD(copy_nbytes), camera.copy_nbytes, camera.uv_offset + chroma);
  }
  if (camera.buffer_nbytes < camera.copy_nbytes || camera.buffer_nbytes > INGOT_MAX_CAMERA_BYTES) {
    return bad(FIELD(buffer_nbytes), camera.buffer_nbytes, camera.copy_nbytes);
  }
  const uint32_t age = camera.max_age_us;
  if (age != 0 && (age < INGOT_MIN_FRAME_PERIOD_US || age > INGOT_MAX_FRAME_PERIOD_US)) {
    return bad(FIELD(max_age_us), age, INGOT_MAX_FRAME_PERIOD_US);
  }
  return kOk;
}

#undef FIELD

// Cameras, slots or slices: their records begin with a name.
struct NamedTable {
  const uint8_t* base;
  uint32_t count;
  uint32_t record_nbytes;

  template <typename Record>
  explicit NamedTable(const Table<Record>& table)
      : base(table.base), count(table.count), record_nbytes(sizeof(Record)) {
    static_assert(offsetof(Record, name) == 0, "the name comes first");
  }
  const uint8_t* record(uint32_t index) const { return base + size_t{index} * record_nbytes; }
  IngotName name(uint32_t index) const { return load<IngotName>(record(index)); }
};

// The name of the record is one, and differs from all before it. `from` limits the search.
ingot_status check_own_name(const ingot_artifact& artifact, const NamedTable& table, uint32_t from,
                            const Place& place) {
  const IngotName name = table.name(place.record);
  INGOT_RETURN_IF(check_name(artifact, name, place, 0));
  for (uint32_t i = from; i < place.record; ++i) {
    if (same_name(artifact, table.name(i), name)) {
      return place.fail(INGOT_E_STRING, 0, place.record, i);
    }
  }
  return kOk;
}

ingot_status check_cameras(const ingot_artifact& artifact, const Tables& tables, Place place) {
  place.section = tables.cameras.section;
  for (place.record = 0; place.record < tables.cameras.count; ++place.record) {
    const IngotCameraRecord& camera = tables.cameras[place.record];
    INGOT_RETURN_IF(check_own_name(artifact, NamedTable(tables.cameras), 0, place));
    INGOT_RETURN_IF(check_camera(camera, place));
  }
  return kOk;
}

// A slot or slice that holds a whole frame has one of the two sizes of the layout.
ingot_status check_frame_reference(const Tables& tables, uint32_t camera, bool is_frame,
                                   uint64_t nbytes, ingot_status wrong_size, uint32_t field,
                                   const Place& place) {
  if (camera == kNone) return kOk;
  if (camera >= tables.cameras.count || !is_frame) {
    return place.fail(INGOT_E_CAMERA, field, camera, tables.cameras.count);
  }
  const IngotCameraRecord& record = tables.cameras[camera];
  if (nbytes != record.copy_nbytes && nbytes != record.buffer_nbytes) {
    return place.fail(wrong_size, field, nbytes, record.copy_nbytes);
  }
  return kOk;
}

// ---- step 19: IO --------------------------------------------------------------------------------

#define FIELD(name) INGOT_FIELD(IngotIoRecord, name)

constexpr FieldRule kSlotRules[] = {
    INGOT_RANGE(IngotIoRecord, direction, INGOT_DIRECTION_INPUT, INGOT_DIRECTION_STATE),
    INGOT_RANGE(IngotIoRecord, rank, 0, INGOT_MAX_TENSOR_RANK),
};

ingot_status check_slot(const Tables& tables, const IngotIoRecord& io, const Place& place) {
  const auto bad = [&](uint32_t field, uint64_t found, uint64_t allowed) {
    return place.fail(INGOT_E_IO, field, found, allowed);
  };
  INGOT_RETURN_IF(check_fields(&io, kSlotRules, INGOT_E_IO, place));
  const uint32_t size = element_size(io.dtype);
  if (size == 0) return bad(FIELD(dtype), io.dtype, INGOT_DTYPE_U64);
  Extent extent;
  if (!measure(io.dtype, io.rank, io.shape, io.strides, &extent)) {
    return bad(FIELD(shape), io.rank, INGOT_MAX_TENSOR_RANK);
  }
  const bool frame =
      io.direction == INGOT_DIRECTION_INPUT && io.rank == 1 && io.dtype == INGOT_DTYPE_U8;
  INGOT_RETURN_IF(
      check_frame_reference(tables, io.camera, frame, io.nbytes, INGOT_E_IO, FIELD(camera), place));
  if (io.nbytes < extent.span || io.nbytes >= INGOT_MAX_VIEW_SPAN) {
    return bad(FIELD(nbytes), io.nbytes, extent.span);
  }
  if (io.logical_nbytes != extent.elements * size) {
    return bad(FIELD(logical_nbytes), io.logical_nbytes, extent.elements * size);
  }
  return kOk;
}

ingot_status check_slots(const ingot_artifact& artifact, const Tables& tables, Place place) {
  place.section = tables.io.section;
  bool has_output = false;
  for (place.record = 0; place.record < tables.io.count; ++place.record) {
    const IngotIoRecord& io = tables.io[place.record];
    INGOT_RETURN_IF(check_own_name(artifact, NamedTable(tables.io), 0, place));
    INGOT_RETURN_IF(check_slot(tables, io, place));
    has_output = has_output || io.direction == INGOT_DIRECTION_OUTPUT;
  }
  place.record = kNone;
  return has_output ? kOk : place.fail(INGOT_E_IO, FIELD(direction));
}

#undef FIELD

// ---- step 19: SLICES ----------------------------------------------------------------------------

#define FIELD(name) INGOT_FIELD(IngotSliceRecord, name)

// Where the slices of the current slot stand.
struct SliceRun {
  uint32_t io = 0;
  uint32_t first = 0;  // record
  uint64_t offset = 0;
  uint64_t end = 0;
  const IngotIoRecord* slot = nullptr;  // before the first

  bool packed() const { return slot->direction == INGOT_DIRECTION_INPUT; }
};

// The slices of a slot must reach its end, or a forgotten tail would look like a shorter output.
ingot_status finish_run(const SliceRun& run, const Place& place) {
  if (run.slot == nullptr) return kOk;
  const uint64_t end = run.packed() ? align_up(run.end, INGOT_ALIGNMENT) : run.end;
  if (end == run.slot->nbytes) return kOk;
  return place.fail(INGOT_E_SLICE, FIELD(offset), end, run.slot->nbytes);
}

ingot_status check_slice_place(const IngotSliceRecord& slice, const SliceRun& run,
                               const Place& place) {
  const uint64_t expected = run.packed() ? align_up(run.end, INGOT_ALIGNMENT) : run.end;
  const bool declared = (slice.flags & INGOT_SLICE_OVERLAPS) != 0;
  const bool overlaps = !run.packed() && slice.offset < expected;
  const bool sorted = slice.offset >= run.offset;
  if (!sorted || declared != overlaps || (!overlaps && slice.offset != expected)) {
    return place.fail(INGOT_E_SLICE, FIELD(offset), slice.offset, expected);
  }
  return kOk;
}

constexpr FieldRule kSliceRules[] = {
    INGOT_ZERO(IngotSliceRecord, reserved),
    INGOT_RANGE(IngotSliceRecord, flags, 0, INGOT_SLICE_OVERLAPS),
    INGOT_RANGE(IngotSliceRecord, rank, 0, INGOT_MAX_SLICE_RANK),
};

ingot_status check_slice(const Tables& tables, const IngotSliceRecord& slice, const SliceRun& run,
                         const Place& place) {
  const auto bad = [&](uint32_t field, uint64_t found, uint64_t allowed) {
    return place.fail(INGOT_E_SLICE, field, found, allowed);
  };
  INGOT_RETURN_IF(check_fields(&slice, kSliceRules, INGOT_E_SLICE, place));
  const uint64_t size = element_size(slice.dtype);
  const bool same_type = slice.dtype == run.slot->dtype || run.slot->dtype == INGOT_DTYPE_U8;
  if (size == 0 || !same_type) return bad(FIELD(dtype), slice.dtype, run.slot->dtype);
  uint64_t nbytes = size;
  for (uint32_t i = 0; i < INGOT_MAX_SLICE_RANK; ++i) {
    const bool used = i < slice.rank;
    if ((!used && slice.shape[i] != 0) || (used && !checked_mul(nbytes, slice.shape[i], &nbytes))) {
      return bad(FIELD(shape), slice.shape[i], 0);
    }
  }
  if (slice.nbytes != nbytes) return bad(FIELD(nbytes), slice.nbytes, nbytes);
  if (!inside(slice.offset, slice.nbytes, run.slot->nbytes)) {
    return bad(FIELD(offset), slice.offset, run.slot->nbytes);
  }
  const bool frame = slice.rank == 1 && slice.dtype == INGOT_DTYPE_U8 && run.packed();
  INGOT_RETURN_IF(check_frame_reference(tables, slice.camera, frame, slice.nbytes, INGOT_E_SLICE,
                                        FIELD(camera), place));
  return check_slice_place(slice, run, place);
}

ingot_status begin_run(const Tables& tables, uint32_t io, uint32_t record, SliceRun* run,
                       const Place& place) {
  INGOT_RETURN_IF(finish_run(*run, place));
  if (io >= tables.io.count) return place.fail(INGOT_E_SLICE, FIELD(io), io, tables.io.count);
  if (run->slot != nullptr && io < run->io)
    return place.fail(INGOT_E_SLICE, FIELD(io), io, run->io);
  *run = {io, record, 0, 0, &tables.io[io]};
  const IngotIoRecord& slot = *run->slot;
  Extent extent;
  const bool measured = measure(slot.dtype, slot.rank, slot.shape, slot.strides, &extent);
  // A slot that is cut has no padding of its own.
  if (!measured || extent.span != slot.logical_nbytes || slot.nbytes != slot.logical_nbytes) {
    return place.fail(INGOT_E_SLICE, FIELD(io), slot.nbytes, slot.logical_nbytes);
  }
  return kOk;
}

ingot_status check_slices(const ingot_artifact& artifact, const Tables& tables, Place place) {
  place.section = tables.slices.section;
  SliceRun run;
  for (place.record = 0; place.record < tables.slices.count; ++place.record) {
    const IngotSliceRecord& slice = tables.slices[place.record];
    if (run.slot == nullptr || slice.io != run.io) {
      INGOT_RETURN_IF(begin_run(tables, slice.io, place.record, &run, place));
    }
    INGOT_RETURN_IF(check_own_name(artifact, NamedTable(tables.slices), run.first, place));
    INGOT_RETURN_IF(check_slice(tables, slice, run, place));
    run.offset = slice.offset;
    const uint64_t end = slice.offset + slice.nbytes;  // inside the slot, checked
    if (end > run.end) run.end = end;
  }
  return finish_run(run, place);
}

#undef FIELD

// ---- step 26 ------------------------------------------------------------------------------------

void add_table(Sha256* hash, const ingot_artifact& artifact, const NamedTable& table) {
  sha256_add(hash, &table.count, sizeof table.count);
  for (uint32_t i = 0; i < table.count; ++i) {
    const IngotName name = table.name(i);
    sha256_add(hash, &name.length, sizeof name.length);
    sha256_add(hash, name_of(artifact, name), name.length);
    sha256_add(hash, table.record(i) + sizeof name, table.record_nbytes - sizeof name);
  }
}

}  // namespace

ingot_status check_name(const ingot_artifact& artifact, IngotName name, const Place& place,
                        uint32_t field) {
  const Bytes& strings = artifact.strings;
  const bool placed = name.length >= 1 && name.length <= INGOT_MAX_NAME &&
                      inside(name.offset, uint64_t{name.length} + 1, strings.nbytes);
  if (!placed) return place.fail(INGOT_E_STRING, field, name.offset, strings.nbytes);
  const uint8_t* text = strings.data + name.offset;
  const bool alone = (name.offset == 0 || text[-1] == 0) && text[name.length] == 0;
  if (!alone) return place.fail(INGOT_E_STRING, field, name.offset, strings.nbytes);
  for (uint32_t i = 0; i < name.length; ++i) {
    if (!name_character(text[i])) return place.fail(INGOT_E_STRING, field, text[i], 0);
  }
  return kOk;
}

bool same_name(const ingot_artifact& artifact, IngotName a, IngotName b) {
  return a.length == b.length &&
         std::memcmp(name_of(artifact, a), name_of(artifact, b), a.length) == 0;
}

ingot_status check_models(const ingot_artifact& artifact, ingot_error* error) {
  const Table<IngotModelRecord>& models = artifact.models;
  Place place = {error, 16, kNone, models.section, kNone};
  if (models.count > INGOT_MAX_MODELS) {
    return place.fail(INGOT_E_MODEL, kNone, models.count, INGOT_MAX_MODELS);
  }
  static const char tag[32] = INGOT_TAG_MODEL;
  Sha256 hash;
  begin_tagged(&hash, artifact.hash, tag);
  for (place.record = 0; place.record < models.count; ++place.record) {
    const IngotModelRecord& model = models[place.record];
    INGOT_RETURN_IF(check_model(artifact, model, place));
    sha256_add(&hash, model.onnx_sha256, 32);
    sha256_add(&hash, model.external_sha256, 32);
    sha256_add(&hash, model.pipeline_sha256, 32);
  }
  uint8_t digest[32];
  sha256_end(&hash, digest);
  place.record = kNone;
  if (std::memcmp(digest, artifact.header.model_sha256, 32) != 0) return place.fail(INGOT_E_MODEL);
  return kOk;
}

ingot_status check_interface_tables(const ingot_artifact& artifact, const Tables& tables,
                                    Place place) {
  INGOT_RETURN_IF(check_cameras(artifact, tables, place));
  INGOT_RETURN_IF(check_slots(artifact, tables, place));
  return check_slices(artifact, tables, place);
}

ingot_status check_interface_digest(const ingot_artifact& artifact, const Tables& tables,
                                    Place place) {
  static const char tag[32] = INGOT_TAG_INTERFACE;
  Sha256 hash;
  begin_tagged(&hash, artifact.hash, tag);
  add_table(&hash, artifact, NamedTable(tables.io));
  add_table(&hash, artifact, NamedTable(tables.slices));
  add_table(&hash, artifact, NamedTable(tables.cameras));
  uint8_t digest[32];
  sha256_end(&hash, digest);
  place.section = artifact.variants.section;
  place.record = tables.variant;
  if (std::memcmp(digest, tables.record->interface_sha256, 32) == 0) return kOk;
  return place.fail(INGOT_E_INTERFACE, INGOT_FIELD(IngotVariantRecord, interface_sha256));
}

}  // namespace ingot::loader
