// The writer works in three steps: fill the tables (names go into the string table in order of
// first use), list the sections in their final order so that buffers and programs can name rows of
// the section table, then lay the sections out and seal the result. The manifest comes last among
// the sections because it repeats the digests of all others.
#include "artifact/encode.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "artifact/errors.h"
#include "artifact/manifest.h"
#include "artifact/names.h"
#include "artifact/tables.h"

namespace ingot::artifact {

static_assert(std::endian::native == std::endian::little, "records are written as they lie");

namespace {

std::unexpected<Failure> contradiction(std::string message) {
  return fail(ExitCode::Internal, "artifact-contents", std::move(message), {},
              "this is a defect in ingot; please report it");
}

std::unexpected<Failure> over_limit(std::string_view what, std::uint64_t count,
                                    std::uint64_t limit) {
  return fail(ExitCode::Unsupported, "artifact-limit",
              fmt::format("{} {}, an artifact holds at most {}", count, what, limit));
}

constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

// Sums and products of caller-given sizes; an overflow is a contradiction like any other.
bool add(std::uint64_t a, std::uint64_t b, std::uint64_t& sum) {
  return !__builtin_add_overflow(a, b, &sum);
}

bool multiply(std::uint64_t a, std::uint64_t b, std::uint64_t& product) {
  return !__builtin_mul_overflow(a, b, &product);
}

template <typename Record>
std::span<const std::byte> bytes_of(const std::vector<Record>& records) {
  static_assert(std::has_unique_object_representations_v<Record> ||
                std::is_same_v<Record, IngotRefRecord>);
  return std::as_bytes(std::span(records));
}

// ---------------------------------------------------------------------------------------------
// Names

class StringTable {
 public:
  // The place of the encoded form of `original`.
  IngotName add(std::string_view original) {
    std::string encoded = encode_name(original);
    if (!decode_name(encoded)) cut_.emplace(encoded, original);
    const auto [place, fresh] = places_.emplace(encoded, IngotName{});
    if (fresh) {
      place->second = {static_cast<std::uint32_t>(bytes_.size()),
                       static_cast<std::uint32_t>(encoded.size())};
      bytes_ += encoded;
      bytes_ += '\0';
    }
    return place->second;
  }

  // {0, 0} where there is none.
  IngotName add_optional(std::string_view original) {
    return original.empty() ? IngotName{} : add(original);
  }

  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  [[nodiscard]] const std::map<std::string, std::string>& cut_names() const { return cut_; }

 private:
  std::string bytes_;
  std::unordered_map<std::string, IngotName> places_;
  std::map<std::string, std::string> cut_;
};

// ---------------------------------------------------------------------------------------------
// Shapes

struct Geometry {
  std::vector<std::uint64_t> strides;
  std::uint64_t logical_nbytes = 0;
  std::uint64_t span = 0;  // 0 if a dimension is 0
};

// Dense strides where none are given. A dimension of 0 counts as 1 in strides, so that they stay
// positive.
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

template <std::size_t kSize>
void put_text(char (&field)[kSize], std::string_view text) {
  text.copy(field, kSize);
}

void put_digest(std::uint8_t (&field)[32], const Digest& digest) {
  std::ranges::copy(digest, field);
}

// ---------------------------------------------------------------------------------------------
// Sections

struct SectionKey {
  std::uint32_t type = 0;
  std::uint16_t variant = INGOT_VARIANT_COMMON;
  std::uint32_t index = 0;
  auto operator<=>(const SectionKey&) const = default;
};

// Bytes of a section: pieces at rising offsets, zeros between and after them up to `size`.
struct Payload {
  struct Piece {
    std::uint64_t offset = 0;
    std::span<const std::byte> bytes;
  };
  std::vector<Piece> pieces;
  std::uint64_t size = 0;
  std::uint32_t entry_size = 0;

  // Appends at the next multiple of `alignment`; returns the offset.
  std::uint64_t append(std::span<const std::byte> bytes, std::uint64_t alignment) {
    const std::uint64_t offset = align_up(size, alignment);
    pieces.push_back({offset, bytes});
    size = offset + bytes.size();
    return offset;
  }
};

Digest digest_of(const Payload& payload) {
  static constexpr std::array<std::byte, INGOT_ALIGNMENT> kZeros{};
  Sha256 hash;
  std::uint64_t position = 0;
  const auto pad_to = [&](std::uint64_t end) {
    while (position < end) {
      const auto n = std::min<std::uint64_t>(end - position, kZeros.size());
      hash.add(std::span(kZeros).first(n));
      position += n;
    }
  };
  for (const Payload::Piece& piece : payload.pieces) {
    pad_to(piece.offset);
    hash.add(piece.bytes);
    position += piece.bytes.size();
  }
  pad_to(payload.size);
  return hash.finish();
}

// Which blob of the contents a blob is stored as, and where.
struct DataPlace {
  SectionKey section;
  std::uint64_t offset = 0;
};

// ---------------------------------------------------------------------------------------------
// The writer

class Encoder {
 public:
  explicit Encoder(const ArtifactContents& contents) : contents_(contents) {}

  Result<std::vector<std::byte>> encode();

  // Only the tables that the interface digest covers.
  Result<Digest> digest_of_interface(const Interface& interface) {
    VariantTables tables;
    INGOT_RETURN_IF_ERROR(fill_interface(interface, tables));
    tables_.strings = strings_.bytes();
    return artifact::interface_digest(tables_, tables);
  }

 private:
  Result<void> fill_identity();
  Result<void> fill_models();
  Result<void> fill_interface(const Interface& interface, VariantTables& tables);
  Result<void> fill_slots(const Interface& interface, VariantTables& tables);
  Result<void> fill_slices(const Interface& interface, VariantTables& tables);
  Result<void> fill_cameras(const Interface& interface, VariantTables& tables);
  Result<void> fill_references(const Interface& interface, VariantTables& tables);
  Result<void> fill_variant(std::uint16_t v);
  Result<void> fill_memory(const Variant& variant, VariantTables& tables,
                           IngotVariantRecord& record);
  Result<void> fill_programs(const Variant& variant, VariantTables& tables,
                             IngotVariantRecord& record);
  Result<void> fill_calls(const Variant& variant, VariantTables& tables);
  Result<void> fill_transforms(const Variant& variant, VariantTables& tables);
  static Result<void> check_fills(const VariantTables& tables);
  Result<void> place_data();
  Result<void> list_sections();
  Result<void> list_interface_sections();
  void name_sections_in_records();
  Result<std::vector<std::byte>> lay_out();

  std::uint32_t row_of(const SectionKey& key) const {
    return static_cast<std::uint32_t>(std::distance(sections_.begin(), sections_.find(key)));
  }

  // Adds a section unless the table is empty; an empty table has no section.
  template <typename Record>
  void list_table(IngotSectionType type, std::uint16_t variant,
                  const std::vector<Record>& records) {
    if (records.empty()) return;
    Payload payload;
    payload.append(bytes_of(records), 1);
    payload.entry_size = sizeof(Record);
    sections_.emplace(SectionKey{type, variant, 0}, std::move(payload));
  }

  const ArtifactContents& contents_;
  Tables tables_;
  StringTable strings_;
  std::vector<Payload> reference_data_;  // for each interface
  std::vector<std::optional<DataPlace>> data_places_;
  std::map<SectionKey, Payload> sections_;
  std::string manifest_;
};

Result<void> check_count(std::string_view what, std::size_t count, std::uint64_t limit) {
  if (count > limit) return over_limit(what, count, limit);
  return {};
}

Result<void> Encoder::fill_identity() {
  IngotHeader& header = tables_.header;
  if (!is_product_name(contents_.product)) {
    return fail(ExitCode::Usage, "bad-product",
                fmt::format("'{}' is no product name", encode_name(contents_.product)), {},
                "use 1 to 32 characters of a-z 0-9 - .");
  }
  if (!contents_.device_family.empty() && !is_product_name(contents_.device_family)) {
    return fail(ExitCode::Usage, "bad-device-family",
                fmt::format("'{}' is no device family", encode_name(contents_.device_family)), {},
                "use 1 to 32 characters of a-z 0-9 - .");
  }
  std::memcpy(header.magic, INGOT_MAGIC, sizeof header.magic);
  header.version_major = INGOT_VERSION_MAJOR;
  header.version_minor = INGOT_VERSION_MINOR;
  header.header_size = INGOT_HEADER_SIZE;
  header.section_table_offset = INGOT_HEADER_SIZE;
  header.section_entry_size = INGOT_SECTION_ENTRY_SIZE;
  header.block_size_log2 = INGOT_BLOCK_SIZE_LOG2;
  header.security_counter = contents_.security_counter;
  header.hash_algorithm = INGOT_HASH_SHA256;
  header.build_class = contents_.build_class;
  header.variant_count = static_cast<std::uint32_t>(contents_.variants.size());
  header.alignment_log2 = INGOT_ALIGNMENT_LOG2;
  std::ranges::copy(contents_.producer, header.producer);
  put_text(header.product, contents_.product);
  put_text(header.device_family, contents_.device_family);
  return {};
}

Result<void> Encoder::fill_models() {
  if (contents_.models.empty()) return contradiction("no model and no pipeline");
  INGOT_RETURN_IF_ERROR(check_count("models", contents_.models.size(), INGOT_MAX_MODELS));
  for (const ModelSource& model : contents_.models) {
    IngotModelRecord record{};
    put_digest(record.onnx_sha256, model.onnx_sha256);
    put_digest(record.external_sha256, model.external_sha256);
    put_digest(record.pipeline_sha256, model.pipeline_sha256);
    record.ir_version = model.ir_version;
    record.opset = model.opset;
    record.producer = strings_.add_optional(model.producer);
    record.graph_name = strings_.add_optional(model.graph_name);
    record.domain = strings_.add_optional(model.domain);
    record.model_version = model.model_version;
    record.precision = model.precision;
    record.frame_period_us = model.frame_period_us;
    record.float_policy = model.float_policy;
    tables_.models.push_back(record);
  }
  put_digest(tables_.header.model_sha256, model_identity(tables_.models));
  return {};
}

Result<void> Encoder::fill_interface(const Interface& interface, VariantTables& tables) {
  INGOT_RETURN_IF_ERROR(fill_slots(interface, tables));
  INGOT_RETURN_IF_ERROR(fill_slices(interface, tables));
  INGOT_RETURN_IF_ERROR(fill_cameras(interface, tables));
  return fill_references(interface, tables);
}

Result<void> Encoder::fill_slots(const Interface& interface, VariantTables& tables) {
  INGOT_RETURN_IF_ERROR(
      check_count("inputs, outputs and states", interface.slots.size(), INGOT_MAX_IO));
  std::set<std::string> names;
  for (const Slot& slot : interface.slots) {
    const std::string shown = fmt::format("slot '{}'", encode_name(slot.name));
    if (!names.insert(encode_name(slot.name)).second) {
      return fail(ExitCode::Unsupported, "duplicate-name", shown + " exists twice", {},
                  "give inputs, outputs and states different names");
    }
    INGOT_ASSIGN(const Geometry shape,
                 geometry(shown, slot.dtype, slot.shape, slot.strides, INGOT_MAX_TENSOR_RANK));
    if (slot.camera && *slot.camera >= interface.cameras.size()) {
      return contradiction(shown + " names a camera that does not exist");
    }
    IngotIoRecord record{};
    record.name = strings_.add(slot.name);
    record.direction = static_cast<std::uint8_t>(slot.direction);
    record.rank = static_cast<std::uint8_t>(slot.shape.size());
    record.dtype = static_cast<std::uint16_t>(slot.dtype);
    record.camera = slot.camera.value_or(INGOT_NO_INDEX);
    record.nbytes = slot.nbytes.value_or(shape.span);
    record.logical_nbytes = shape.logical_nbytes;
    std::ranges::copy(slot.shape, record.shape);
    std::ranges::copy(shape.strides, record.strides);
    tables.io.push_back(record);
  }
  return {};
}

Result<void> Encoder::fill_slices(const Interface& interface, VariantTables& tables) {
  std::vector<const Slice*> sorted;
  for (const Slice& slice : interface.slices) {
    if (slice.slot >= interface.slots.size()) {
      return contradiction("a slice of a slot that does not exist");
    }
    if (slice.camera && *slice.camera >= interface.cameras.size()) {
      return contradiction("a slice names a camera that does not exist");
    }
    sorted.push_back(&slice);
  }
  std::ranges::stable_sort(sorted, {},
                           [](const Slice* s) { return std::tuple(s->slot, s->offset); });

  for (std::size_t first = 0; first < sorted.size();) {
    const std::uint32_t slot_index = sorted[first]->slot;
    const Slot& slot = interface.slots[slot_index];
    std::size_t last = first;
    std::set<std::string> names;
    for (; last < sorted.size() && sorted[last]->slot == slot_index; ++last) {
      if (!names.insert(encode_name(sorted[last]->name)).second) {
        return fail(ExitCode::Unsupported, "duplicate-name",
                    fmt::format("slice '{}' of '{}' exists twice", encode_name(sorted[last]->name),
                                encode_name(slot.name)));
      }
    }
    const bool fills_gaps = slot.direction != INGOT_DIRECTION_INPUT;
    std::uint64_t end = 0;
    std::uint32_t unused_count = 0;
    const auto cover_gap = [&](std::uint64_t gap_end) -> Result<void> {
      if (!fills_gaps || gap_end <= end) return {};
      const std::uint64_t elements = (gap_end - end) / dtype_size(slot.dtype);
      if ((gap_end - end) % dtype_size(slot.dtype) != 0 || elements > UINT32_MAX) {
        return contradiction(
            fmt::format("slices of '{}' leave a part of an element", encode_name(slot.name)));
      }
      IngotSliceRecord record{};
      std::string name;
      do {
        name = unused_count == 0 ? "unused" : fmt::format("unused.{}", unused_count);
        ++unused_count;
      } while (!names.insert(name).second);
      record.name = strings_.add(name);
      record.io = slot_index;
      record.dtype = static_cast<std::uint16_t>(slot.dtype);
      record.rank = 1;
      record.offset = end;
      record.nbytes = gap_end - end;
      record.shape[0] = static_cast<std::uint32_t>(elements);
      record.camera = INGOT_NO_INDEX;
      tables.slices.push_back(record);
      end = gap_end;
      return {};
    };
    for (; first < last; ++first) {
      const Slice& slice = *sorted[first];
      const std::string shown = fmt::format("slice '{}'", encode_name(slice.name));
      INGOT_ASSIGN(const Geometry shape,
                   geometry(shown, slice.dtype, slice.shape, {}, INGOT_MAX_SLICE_RANK));
      INGOT_RETURN_IF_ERROR(cover_gap(slice.offset));
      IngotSliceRecord record{};
      record.name = strings_.add(slice.name);
      record.io = slot_index;
      record.dtype = static_cast<std::uint16_t>(slice.dtype);
      record.rank = static_cast<std::uint8_t>(slice.shape.size());
      record.flags = slice.offset < end ? INGOT_SLICE_OVERLAPS : 0;
      record.offset = slice.offset;
      record.nbytes = shape.logical_nbytes;
      std::ranges::copy(slice.shape, record.shape);
      record.camera = slice.camera.value_or(INGOT_NO_INDEX);
      tables.slices.push_back(record);
      std::uint64_t slice_end = 0;
      if (!add(slice.offset, shape.logical_nbytes, slice_end) ||
          slice_end > tables.io[slot_index].nbytes) {
        return contradiction(shown + " ends after its slot");
      }
      end = std::max(end, slice_end);
    }
    INGOT_RETURN_IF_ERROR(cover_gap(tables.io[slot_index].nbytes));
  }
  return check_count("slices", tables.slices.size(), INGOT_MAX_SLICES);
}

Result<void> Encoder::fill_cameras(const Interface& interface, VariantTables& tables) {
  INGOT_RETURN_IF_ERROR(check_count("camera layouts", interface.cameras.size(), INGOT_MAX_CAMERAS));
  for (const Camera& camera : interface.cameras) {
    IngotCameraRecord record{};
    record.name = strings_.add(camera.name);
    record.width = camera.width;
    record.height = camera.height;
    record.stride = camera.stride;
    record.y_height = camera.y_height;
    record.uv_height = camera.uv_height;
    record.pixel_format = static_cast<std::uint16_t>(camera.pixel_format);
    record.planes = INGOT_CAMERA_PLANES;
    record.uv_offset = camera.uv_offset;
    if (!add(camera.uv_offset, std::uint64_t{camera.stride} * camera.uv_height,
             record.copy_nbytes)) {
      return contradiction("a camera layout is larger than memory can be");
    }
    record.buffer_nbytes = camera.buffer_nbytes;
    record.sample_range = static_cast<std::uint16_t>(camera.sample_range);
    record.colour_matrix = static_cast<std::uint16_t>(camera.colour_matrix);
    record.max_age_us = camera.max_age_us;
    tables.cameras.push_back(record);
  }
  return {};
}

Result<void> Encoder::fill_references(const Interface& interface, VariantTables& tables) {
  INGOT_RETURN_IF_ERROR(
      check_count("reference records", interface.references.size(), INGOT_MAX_REFS));
  std::vector<const Reference*> sorted;
  for (const Reference& reference : interface.references) {
    if (reference.slot >= interface.slots.size()) {
      return contradiction("a reference for a slot that does not exist");
    }
    if (reference.data.bytes.size() != tables.io[reference.slot].nbytes) {
      return contradiction(fmt::format(
          "a reference of {} bytes for slot '{}' of {} bytes", reference.data.bytes.size(),
          encode_name(interface.slots[reference.slot].name), tables.io[reference.slot].nbytes));
    }
    sorted.push_back(&reference);
  }
  std::ranges::stable_sort(
      sorted, {}, [](const Reference* r) { return std::tuple(r->sequence, r->step, r->slot); });
  Payload data;
  for (const Reference* reference : sorted) {
    IngotRefRecord record{};
    record.sequence = reference->sequence;
    record.step = reference->step;
    record.io = reference->slot;
    record.role = static_cast<std::uint8_t>(interface.slots[reference->slot].direction);
    record.compare = static_cast<std::uint8_t>(reference->compare);
    record.flags = reference->nan_matches ? INGOT_REF_NAN_MATCHES : 0;
    record.offset = data.append(reference->data.bytes, INGOT_ALIGNMENT);
    record.nbytes = reference->data.bytes.size();
    record.atol = reference->atol;
    record.rtol = reference->rtol;
    record.max_ulp = reference->max_ulp;
    record.min_cosine = reference->min_cosine;
    record.origin = reference->origin;
    tables.refs.push_back(record);
  }
  // A section is never empty, even if every slot of the references is.
  if (!sorted.empty() && data.size == 0) data.size = 1;
  reference_data_.push_back(std::move(data));
  return {};
}

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

// Gives every blob that a buffer uses a section: its variant's if only one of several variants uses
// it, so that a device need not load the others' weights, else the common one.
Result<void> Encoder::place_data() {
  const std::size_t count = contents_.data.size();
  std::map<std::uint64_t, std::size_t> size_counts;
  for (const Blob& blob : contents_.data) ++size_counts[blob.bytes.size()];
  std::vector<std::size_t> stored_as(count);
  std::map<std::pair<std::uint64_t, Digest>, std::size_t> known;
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<const std::byte> bytes = contents_.data[i].bytes;
    stored_as[i] = i;
    if (size_counts[bytes.size()] < 2) continue;
    stored_as[i] = known.emplace(std::pair(bytes.size(), sha256(bytes)), i).first->second;
  }

  std::vector<std::set<std::uint16_t>> users(count);
  for (std::size_t v = 0; v < contents_.variants.size(); ++v) {
    for (const Buffer& buffer : contents_.variants[v].buffers) {
      if (buffer.data) users[stored_as[*buffer.data]].insert(static_cast<std::uint16_t>(v));
    }
  }
  data_places_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (users[i].empty()) continue;
    const bool single = users[i].size() == 1 && contents_.variants.size() > 1;
    const SectionKey key{INGOT_SECTION_DATA,
                         single ? *users[i].begin() : std::uint16_t{INGOT_VARIANT_COMMON}, 0};
    Payload& payload = sections_[key];
    const std::span<const std::byte> bytes = contents_.data[i].bytes;
    // An empty blob needs only a place inside the section, and a section is never empty.
    data_places_[i] = DataPlace{key, bytes.empty() ? 0 : payload.append(bytes, INGOT_ALIGNMENT)};
    payload.size = std::max<std::uint64_t>(payload.size, 1);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (stored_as[i] != i) data_places_[i] = data_places_[stored_as[i]];
  }
  return {};
}

// One common section if all variants share a table, else one for each; never for some of them.
Result<void> Encoder::list_interface_sections() {
  std::set<std::uint32_t> used;
  for (const Variant& variant : contents_.variants) used.insert(variant.interface);
  const bool common = used.size() == 1;
  const auto all_or_none = [&](std::string_view what, auto member) -> Result<void> {
    std::size_t with = 0;
    for (const VariantTables& tables : tables_.variant_tables) with += !(tables.*member).empty();
    if (with == 0 || with == tables_.variant_tables.size()) return {};
    return contradiction(fmt::format("some variants have {} and some have none", what));
  };
  INGOT_RETURN_IF_ERROR(all_or_none("slices", &VariantTables::slices));
  INGOT_RETURN_IF_ERROR(all_or_none("cameras", &VariantTables::cameras));
  INGOT_RETURN_IF_ERROR(all_or_none("references", &VariantTables::refs));
  const std::size_t copies = common ? 1 : contents_.variants.size();
  for (std::size_t v = 0; v < copies; ++v) {
    const VariantTables& tables = tables_.variant_tables[v];
    const auto owner = common ? std::uint16_t{INGOT_VARIANT_COMMON} : static_cast<std::uint16_t>(v);
    list_table(INGOT_SECTION_IO, owner, tables.io);
    list_table(INGOT_SECTION_SLICES, owner, tables.slices);
    list_table(INGOT_SECTION_CAMERA, owner, tables.cameras);
    list_table(INGOT_SECTION_REFS, owner, tables.refs);
    if (!tables.refs.empty()) {
      sections_[{INGOT_SECTION_REFDATA, owner, 0}] =
          reference_data_[contents_.variants[v].interface];
    }
  }
  return {};
}

Result<void> Encoder::list_sections() {
  if (strings_.bytes().size() > INGOT_MAX_STRINGS) {
    return over_limit("bytes of names", strings_.bytes().size(), INGOT_MAX_STRINGS);
  }
  tables_.strings = strings_.bytes();
  sections_[{INGOT_SECTION_STRINGS, INGOT_VARIANT_COMMON, 0}].append(
      std::as_bytes(std::span(tables_.strings)), 1);
  list_table(INGOT_SECTION_MODEL, INGOT_VARIANT_COMMON, tables_.models);
  list_table(INGOT_SECTION_VARIANTS, INGOT_VARIANT_COMMON, tables_.variants);
  INGOT_RETURN_IF_ERROR(list_interface_sections());
  for (std::size_t v = 0; v < contents_.variants.size(); ++v) {
    const VariantTables& tables = tables_.variant_tables[v];
    const auto owner = static_cast<std::uint16_t>(v);
    list_table(INGOT_SECTION_ARENAS, owner, tables.arenas);
    list_table(INGOT_SECTION_BUFFERS, owner, tables.buffers);
    list_table(INGOT_SECTION_VIEWS, owner, tables.views);
    list_table(INGOT_SECTION_PARAMS, owner, tables.params);
    list_table(INGOT_SECTION_ARGS, owner, tables.args);
    list_table(INGOT_SECTION_PROGRAMS, owner, tables.programs);
    list_table(INGOT_SECTION_CALLS, owner, tables.calls);
    list_table(INGOT_SECTION_TRANSFORMS, owner, tables.transforms);
    const auto list_blobs = [&](IngotSectionType type,
                                const std::vector<Blob>& blobs) -> Result<void> {
      for (std::size_t i = 0; i < blobs.size(); ++i) {
        if (blobs[i].bytes.empty()) return contradiction("a code blob of no bytes");
        sections_[{type, owner, static_cast<std::uint32_t>(i)}].append(blobs[i].bytes, 1);
      }
      return {};
    };
    INGOT_RETURN_IF_ERROR(list_blobs(INGOT_SECTION_CODE, contents_.variants[v].code));
    INGOT_RETURN_IF_ERROR(list_blobs(INGOT_SECTION_DEVCODE, contents_.variants[v].device_code));
  }
  for (const ExtraSection& extra : contents_.extra_sections) {
    if (extra.type <= INGOT_SECTION_MANIFEST || extra.bytes.bytes.empty() ||
        (extra.variant && *extra.variant >= contents_.variants.size())) {
      return contradiction("an extra section that is required, empty or of no variant");
    }
    const SectionKey key{extra.type,
                         extra.variant ? static_cast<std::uint16_t>(*extra.variant)
                                       : std::uint16_t{INGOT_VARIANT_COMMON},
                         0};
    if (sections_.contains(key)) return contradiction("an extra section exists twice");
    sections_[key].append(extra.bytes.bytes, 1);
  }
  sections_[{INGOT_SECTION_MANIFEST, INGOT_VARIANT_COMMON, 0}];  // its row; the text comes last
  return check_count("sections", sections_.size(), INGOT_MAX_SECTIONS);
}

// The payloads point into the record vectors, so patching the records patches the sections.
void Encoder::name_sections_in_records() {
  for (std::size_t v = 0; v < contents_.variants.size(); ++v) {
    const Variant& variant = contents_.variants[v];
    VariantTables& tables = tables_.variant_tables[v];
    const auto owner = static_cast<std::uint16_t>(v);
    for (std::size_t i = 0; i < variant.buffers.size(); ++i) {
      if (!variant.buffers[i].data) continue;
      const DataPlace& place = *data_places_[*variant.buffers[i].data];
      tables.buffers[i].init_section = row_of(place.section);
      tables.buffers[i].init_offset = place.offset;
      tables.buffers[i].init_nbytes = variant.buffers[i].nbytes;
    }
    for (std::size_t i = 0; i < variant.programs.size(); ++i) {
      const Program& program = variant.programs[i];
      if (program.kind == INGOT_PROGRAM_BUILT_IN) continue;
      const std::uint32_t type =
          program.kind == INGOT_PROGRAM_HOST ? INGOT_SECTION_CODE : INGOT_SECTION_DEVCODE;
      tables.programs[i].code_section = row_of({type, owner, program.code});
    }
  }
}

Result<std::vector<std::byte>> Encoder::lay_out() {
  IngotHeader& header = tables_.header;
  header.section_count = static_cast<std::uint32_t>(sections_.size());

  std::vector<Digest> digests;
  for (const auto& [key, payload] : sections_) {
    IngotSectionEntry entry{};
    entry.type = key.type;
    entry.variant = key.variant;
    entry.flags = key.type < INGOT_FIRST_IGNORABLE_SECTION ? INGOT_SECTION_REQUIRED : 0;
    if (key.type == INGOT_SECTION_CODE) entry.flags |= INGOT_SECTION_EXEC;
    entry.size = payload.size;
    entry.entry_size = payload.entry_size;
    entry.entry_count =
        payload.entry_size == 0 ? 0 : static_cast<std::uint32_t>(payload.size / payload.entry_size);
    entry.index = key.index;
    tables_.sections.push_back(entry);
    digests.push_back(key.type == INGOT_SECTION_MANIFEST ? Digest{} : digest_of(payload));
  }
  manifest_ = write_manifest(tables_, digests, contents_.manifest, strings_.cut_names());
  const SectionKey manifest_key{INGOT_SECTION_MANIFEST, INGOT_VARIANT_COMMON, 0};
  sections_[manifest_key].append(std::as_bytes(std::span(manifest_)), 1);
  tables_.sections[row_of(manifest_key)].size = manifest_.size();

  // Offsets relative to the body first: where it starts follows from how many blocks it has.
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < tables_.sections.size(); ++i) {
    IngotSectionEntry& entry = tables_.sections[i];
    const auto alignment_of = [](const IngotSectionEntry& section) {
      return (section.flags & INGOT_SECTION_EXEC) != 0 ? INGOT_PAGE_ALIGNMENT : INGOT_ALIGNMENT;
    };
    entry.offset = end;
    std::uint64_t next = align_up(entry.offset + entry.size, alignment_of(entry));
    if (i + 1 < tables_.sections.size()) {
      next = align_up(next, alignment_of(tables_.sections[i + 1]));
    }
    entry.span = next - entry.offset;
    end = next;
    if (end > INGOT_MAX_CONTENT) return over_limit("bytes of content", end, INGOT_MAX_CONTENT);
  }
  header.block_count =
      static_cast<std::uint32_t>(align_up(end, INGOT_BLOCK_SIZE) / INGOT_BLOCK_SIZE);
  header.digest_table_offset =
      align_up(INGOT_HEADER_SIZE + std::uint64_t{INGOT_SECTION_ENTRY_SIZE} * header.section_count,
               INGOT_ALIGNMENT);
  header.body_offset =
      align_up(header.digest_table_offset + std::uint64_t{INGOT_DIGEST_SIZE} * header.block_count,
               INGOT_PAGE_ALIGNMENT);
  header.content_size = header.body_offset + end;
  if (header.content_size > INGOT_MAX_CONTENT) {
    return over_limit("bytes of content", header.content_size, INGOT_MAX_CONTENT);
  }
  for (IngotSectionEntry& entry : tables_.sections) entry.offset += header.body_offset;

  std::vector<std::byte> file(header.content_size + INGOT_SIGNATURE_HEADER_SIZE);
  const auto put = [&](std::uint64_t offset, std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(file.data() + offset, bytes.data(), bytes.size());
  };
  put(header.section_table_offset, bytes_of(tables_.sections));
  std::size_t row = 0;
  for (const auto& [key, payload] : sections_) {
    for (const Payload::Piece& piece : payload.pieces) {
      put(tables_.sections[row].offset + piece.offset, piece.bytes);
    }
    ++row;
  }
  const std::span<const std::byte> all(file);
  for (std::uint64_t block = 0; block < header.block_count; ++block) {
    const std::uint64_t offset = header.body_offset + block * INGOT_BLOCK_SIZE;
    const std::uint64_t size =
        std::min<std::uint64_t>(INGOT_BLOCK_SIZE, header.content_size - offset);
    const Digest digest = sha256(all.subspan(offset, size));
    put(header.digest_table_offset + block * INGOT_DIGEST_SIZE, std::as_bytes(std::span(digest)));
  }
  put_digest(header.meta_sha256,
             sha256(all.subspan(INGOT_HEADER_SIZE, header.body_offset - INGOT_HEADER_SIZE)));
  put(0, std::as_bytes(std::span(&header, 1)));
  put_digest(header.header_sha256, sha256(all.first(INGOT_HEADER_DIGEST_OFFSET)));
  put(0, std::as_bytes(std::span(&header, 1)));

  IngotSignatureHeader signatures{};
  std::memcpy(signatures.magic, INGOT_SIGNATURE_MAGIC, sizeof signatures.magic);
  signatures.block_size = INGOT_SIGNATURE_HEADER_SIZE;
  put(header.content_size, std::as_bytes(std::span(&signatures, 1)));
  return file;
}

Result<std::vector<std::byte>> Encoder::encode() {
  if (contents_.variants.empty()) return contradiction("no variants");
  INGOT_RETURN_IF_ERROR(check_count("variants", contents_.variants.size(), INGOT_MAX_VARIANTS));
  INGOT_RETURN_IF_ERROR(fill_identity());
  INGOT_RETURN_IF_ERROR(fill_models());

  std::vector<VariantTables> interfaces;
  for (const Interface& interface : contents_.interfaces) {
    INGOT_RETURN_IF_ERROR(fill_interface(interface, interfaces.emplace_back()));
  }
  std::set<std::string> names;
  for (const Variant& variant : contents_.variants) {
    if (variant.interface >= interfaces.size()) return contradiction("a variant has no interface");
    if (!names.insert(encode_name(variant.name)).second) {
      return contradiction(fmt::format("variant '{}' exists twice", encode_name(variant.name)));
    }
    tables_.variant_tables.push_back(interfaces[variant.interface]);
  }
  for (std::size_t v = 0; v < contents_.variants.size(); ++v) {
    INGOT_RETURN_IF_ERROR(fill_variant(static_cast<std::uint16_t>(v)));
  }
  INGOT_RETURN_IF_ERROR(place_data());
  INGOT_RETURN_IF_ERROR(list_sections());
  for (std::size_t v = 0; v < tables_.variants.size(); ++v) {
    put_digest(tables_.variants[v].interface_sha256,
               artifact::interface_digest(tables_, tables_.variant_tables[v]));
  }
  name_sections_in_records();
  return lay_out();
}

}  // namespace

Result<std::vector<std::byte>> encode(const ArtifactContents& contents) {
  return Encoder(contents).encode();
}

Result<Digest> interface_digest(const Interface& interface) {
  const ArtifactContents none;
  return Encoder(none).digest_of_interface(interface);
}

Digest external_files_digest(std::vector<ExternalFile> files) {
  if (files.empty()) return {};
  std::ranges::sort(files, {}, &ExternalFile::name);
  Sha256 hash;
  for (const ExternalFile& file : files) {
    hash.add_u32(static_cast<std::uint32_t>(file.name.size()));
    hash.add(file.name);
    hash.add_u64(file.nbytes);
    hash.add(std::as_bytes(std::span(file.sha256)));
  }
  return hash.finish();
}

}  // namespace ingot::artifact
