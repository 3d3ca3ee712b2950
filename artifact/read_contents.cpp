#include "artifact/read_contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "artifact/names.h"
#include "base/hex.h"

namespace ingot::artifact {
namespace {

using Json = nlohmann::json;

std::unexpected<Failure> malformed(std::string what) {
  return fail(ExitCode::Malformed, "artifact-contents", std::move(what));
}

std::optional<std::uint32_t> optional_index(std::uint32_t index) {
  if (index == INGOT_NO_INDEX) return std::nullopt;
  return index;
}

template <typename T>
std::vector<T> first_of(const T* values, std::size_t count) {
  return {values, values + count};
}

Digest digest_of(const std::uint8_t (&bytes)[32]) {
  Digest digest;
  std::ranges::copy(bytes, digest.begin());
  return digest;
}

class Reader {
 public:
  explicit Reader(const Decoded& decoded) : decoded_(decoded), tables_(decoded.tables) {}

  Result<ArtifactContents> run() {
    INGOT_RETURN_IF_ERROR(read_manifest());
    const IngotHeader& header = tables_.header;
    contents_.product = fixed_text(header.product);
    contents_.device_family = fixed_text(header.device_family);
    contents_.build_class = static_cast<IngotBuildClass>(header.build_class);
    contents_.security_counter = header.security_counter;
    std::ranges::copy(header.producer, contents_.producer.begin());
    for (const IngotModelRecord& record : tables_.models) read_model(record);
    for (std::size_t v = 0; v < tables_.variants.size(); ++v) {
      INGOT_RETURN_IF_ERROR(read_variant(v));
    }
    sort_data();
    INGOT_RETURN_IF_ERROR(read_extra_sections());
    return std::move(contents_);
  }

 private:
  std::string name(IngotName stored) const {
    std::string encoded(tables_.name(stored));
    if (encoded.empty()) return encoded;
    if (const auto cut = cut_names_.find(encoded); cut != cut_names_.end()) return cut->second;
    return decode_name(encoded).value_or(encoded);
  }

  Result<void> read_manifest() {
    const Json json = Json::parse(decoded_.manifest, nullptr, false);
    try {
      ManifestFacts& facts = contents_.manifest;
      facts.tool_version = json.at("tool").at("version").get<std::string>();
      for (const Json& option : json.at("tool").at("options")) {
        facts.options.emplace_back(option.at(0).get<std::string>(),
                                   option.at(1).get<std::string>());
      }
      for (const Json& source : json.at("sources")) {
        SourceFile file;
        file.name = source.at("name").get<std::string>();
        file.nbytes = source.at("nbytes").get<std::uint64_t>();
        if (!from_hex(source.at("sha256").get<std::string>(), file.sha256)) {
          return malformed("the manifest has a source without a digest");
        }
        facts.sources.push_back(std::move(file));
      }
      facts.licences = json.at("licences").get<std::vector<std::string>>();
      for (const Json& entry : json.at("metadata")) {
        facts.metadata.emplace_back(entry.at(0).get<std::string>(), entry.at(1).get<std::string>());
      }
      for (const Json& entry : json.at("references")) {
        ReferenceSource source;
        source.camera = entry.at("camera").get<std::string>();
        source.sequence = entry.at("sequence").get<std::uint32_t>();
        source.name = entry.at("case").get<std::string>();
        if (!entry.at("seed").is_null()) source.seed = entry.at("seed").get<std::uint64_t>();
        facts.references.push_back(std::move(source));
      }
      cut_names_ = json.at("names").get<std::map<std::string, std::string>>();
    } catch (const Json::exception&) {
      return malformed("the manifest lacks what this version writes");
    }
    return {};
  }

  void read_model(const IngotModelRecord& record) {
    ModelSource model;
    model.onnx_sha256 = digest_of(record.onnx_sha256);
    model.external_sha256 = digest_of(record.external_sha256);
    model.pipeline_sha256 = digest_of(record.pipeline_sha256);
    model.ir_version = record.ir_version;
    model.opset = record.opset;
    model.producer = name(record.producer);
    model.graph_name = name(record.graph_name);
    model.domain = name(record.domain);
    model.model_version = record.model_version;
    model.precision = static_cast<IngotPrecision>(record.precision);
    model.frame_period_us = record.frame_period_us;
    model.float_policy = record.float_policy;
    contents_.models.push_back(std::move(model));
  }

  // Variants with equal tables share one interface, as they did.
  Result<std::uint32_t> interface_of(std::size_t v) {
    const Digest& digest = digest_of(tables_.variants[v].interface_sha256);
    const auto digest_of_section = [&](IngotSectionType type) {
      const std::optional<std::size_t> row = section(type, v);
      return row ? decoded_.section_digests[*row] : Digest{};
    };
    const std::tuple key(digest, digest_of_section(INGOT_SECTION_REFS),
                         digest_of_section(INGOT_SECTION_REFDATA));
    if (const auto known = interfaces_.find(key); known != interfaces_.end()) return known->second;
    INGOT_ASSIGN(Interface interface, read_interface(v));
    contents_.interfaces.push_back(std::move(interface));
    const auto index = static_cast<std::uint32_t>(contents_.interfaces.size() - 1);
    interfaces_.emplace(key, index);
    return index;
  }

  std::optional<std::size_t> section(IngotSectionType type, std::size_t v) const {
    const auto own = decoded_.find(type, static_cast<std::uint32_t>(v));
    return own ? own : decoded_.find(type, INGOT_VARIANT_COMMON);
  }

  Result<Interface> read_interface(std::size_t v) {
    const VariantTables& tables = tables_.variant_tables[v];
    Interface interface;
    for (const IngotCameraRecord& record : tables.cameras) {
      Camera camera;
      camera.name = name(record.name);
      camera.width = record.width;
      camera.height = record.height;
      camera.stride = record.stride;
      camera.y_height = record.y_height;
      camera.uv_height = record.uv_height;
      camera.pixel_format = static_cast<IngotPixelFormat>(record.pixel_format);
      camera.uv_offset = record.uv_offset;
      camera.buffer_nbytes = record.buffer_nbytes;
      camera.sample_range = static_cast<IngotSampleRange>(record.sample_range);
      camera.colour_matrix = static_cast<IngotColourMatrix>(record.colour_matrix);
      camera.max_age_us = record.max_age_us;
      interface.cameras.push_back(std::move(camera));
    }
    for (const IngotIoRecord& record : tables.io) {
      if (record.rank > INGOT_MAX_TENSOR_RANK) return malformed("a slot of too many dimensions");
      Slot slot;
      slot.name = name(record.name);
      slot.direction = static_cast<IngotDirection>(record.direction);
      slot.dtype = static_cast<IngotDtype>(record.dtype);
      slot.shape = first_of(record.shape, record.rank);
      slot.strides = first_of(record.strides, record.rank);
      slot.nbytes = record.nbytes;
      slot.camera = optional_index(record.camera);
      interface.slots.push_back(std::move(slot));
    }
    for (const IngotSliceRecord& record : tables.slices) {
      if (record.rank > INGOT_MAX_SLICE_RANK) return malformed("a slice of too many dimensions");
      Slice slice;
      slice.name = name(record.name);
      slice.slot = record.io;
      slice.dtype = static_cast<IngotDtype>(record.dtype);
      slice.shape = first_of(record.shape, record.rank);
      slice.offset = record.offset;
      slice.camera = optional_index(record.camera);
      interface.slices.push_back(std::move(slice));
    }
    INGOT_RETURN_IF_ERROR(read_references(v, interface));
    return interface;
  }

  Result<void> read_references(std::size_t v, Interface& interface) const {
    const std::optional<std::size_t> row = section(INGOT_SECTION_REFDATA, v);
    for (const IngotRefRecord& record : tables_.variant_tables[v].refs) {
      Reference reference;
      reference.sequence = record.sequence;
      reference.step = record.step;
      reference.slot = record.io;
      reference.compare = static_cast<IngotCompare>(record.compare);
      reference.nan_matches = (record.flags & INGOT_REF_NAN_MATCHES) != 0;
      reference.atol = record.atol;
      reference.rtol = record.rtol;
      reference.max_ulp = record.max_ulp;
      reference.min_cosine = record.min_cosine;
      reference.origin = static_cast<IngotOrigin>(record.origin);
      INGOT_ASSIGN(reference.data, part_of(row, record.offset, record.nbytes));
      interface.references.push_back(std::move(reference));
    }
    return {};
  }

  Result<Blob> part_of(std::optional<std::size_t> row, std::uint64_t offset,
                       std::uint64_t nbytes) const {
    if (!row) return malformed("data of a section that does not exist");
    const std::span<const std::byte> payload = decoded_.payload(*row);
    if (offset > payload.size() || nbytes > payload.size() - offset) {
      return malformed("data outside of its section");
    }
    return borrow(payload.subspan(offset, nbytes));
  }

  Result<void> read_variant(std::size_t v) {
    const IngotVariantRecord& record = tables_.variants[v];
    Variant variant;
    variant.name = name(record.name);
    INGOT_ASSIGN(variant.interface, interface_of(v));
    variant.arch = static_cast<IngotArch>(record.arch);
    variant.os = static_cast<IngotOs>(record.os);
    std::ranges::copy(record.cpu_features, variant.cpu_features.begin());
    variant.xcr0 = record.xcr0;
    variant.sve_bits = record.sve_bits;
    variant.max_page_size = record.max_page_size;
    variant.fp_control = record.fp_control;
    variant.threads = record.threads;
    variant.priority = record.priority;
    variant.device.kind = static_cast<IngotDeviceKind>(record.device_kind);
    variant.device.rule = record.device_arch_rule;
    variant.device.arch = record.device_arch;
    std::ranges::copy(record.driver_min, variant.device.driver_min.begin());
    variant.device.memory = record.device_memory;
    variant.device.name = fixed_text(record.device_name);
    INGOT_RETURN_IF_ERROR(read_code(v, variant));
    INGOT_RETURN_IF_ERROR(read_memory(v, variant));
    INGOT_RETURN_IF_ERROR(read_calls(v, variant));
    contents_.variants.push_back(std::move(variant));
    return {};
  }

  Result<void> read_code(std::size_t v, Variant& variant) {
    const auto read_blobs = [&](IngotSectionType type, std::vector<Blob>& blobs) {
      for (std::uint32_t index = 0;; ++index) {
        const auto row = decoded_.find(type, static_cast<std::uint32_t>(v), index);
        if (!row) return;
        code_index_[*row] = index;
        blobs.push_back(borrow(decoded_.payload(*row)));
      }
    };
    read_blobs(INGOT_SECTION_CODE, variant.code);
    read_blobs(INGOT_SECTION_DEVCODE, variant.device_code);
    const VariantTables& tables = tables_.variant_tables[v];
    for (const IngotProgramRecord& record : tables.programs) {
      Program program;
      program.name = name(record.name);
      program.kind = static_cast<IngotProgramKind>(record.kind);
      if (program.kind != INGOT_PROGRAM_BUILT_IN) {
        const auto index = code_index_.find(record.code_section);
        if (index == code_index_.end()) return malformed("a program without code");
        program.code = index->second;
      }
      program.entry_offset = record.entry_offset;
      program.code_nbytes = record.code_nbytes;
      program.stack_bytes = record.stack_bytes;
      program.symbol = name(record.symbol);
      program.shared_bytes = record.shared_bytes;
      program.threads = record.threads;
      if (record.param_first > tables.params.size() ||
          record.param_count > tables.params.size() - record.param_first) {
        return malformed("a program without its parameters");
      }
      for (std::uint32_t i = 0; i < record.param_count; ++i) {
        const IngotParamRecord& entry = tables.params[record.param_first + i];
        program.params.push_back(Param{static_cast<IngotArgKind>(entry.kind), entry.nbytes,
                                       static_cast<IngotDtype>(entry.dtype),
                                       static_cast<IngotAccess>(entry.access), entry.align_log2});
      }
      variant.programs.push_back(std::move(program));
    }
    return {};
  }

  Result<void> read_memory(std::size_t v, Variant& variant) {
    const VariantTables& tables = tables_.variant_tables[v];
    for (const IngotArenaRecord& record : tables.arenas) {
      variant.arenas.push_back(Arena{record.nbytes, record.align_log2,
                                     static_cast<IngotPlace>(record.memory),
                                     static_cast<IngotArenaRole>(record.role)});
    }
    for (const IngotBufferRecord& record : tables.buffers) {
      Buffer buffer;
      buffer.kind = static_cast<IngotBufferKind>(record.kind);
      buffer.place = static_cast<IngotPlace>(record.memory);
      buffer.align_log2 = record.align_log2;
      buffer.nbytes = record.nbytes;
      buffer.arena = optional_index(record.arena);
      buffer.arena_offset = record.arena_offset;
      buffer.slot = optional_index(record.io);
      if (record.init_section != INGOT_NO_INDEX) {
        INGOT_ASSIGN(buffer.data, data_of(record));
      }
      buffer.first_call = record.first_call;
      buffer.last_call = record.last_call;
      buffer.caller_memory = (record.flags & INGOT_BUFFER_CALLER_MEMORY) != 0;
      buffer.in_place = (record.flags & INGOT_BUFFER_IN_PLACE) != 0;
      variant.buffers.push_back(buffer);
    }
    for (const IngotViewRecord& record : tables.views) {
      if (record.rank > INGOT_MAX_TENSOR_RANK) return malformed("a view of too many dimensions");
      variant.views.push_back(View{record.buffer, static_cast<IngotDtype>(record.dtype),
                                   record.offset, first_of(record.shape, record.rank),
                                   first_of(record.strides, record.rank)});
    }
    return {};
  }

  // Equal places are one blob.
  Result<std::uint32_t> data_of(const IngotBufferRecord& record) {
    if (record.init_section >= tables_.sections.size()) {
      return malformed("data of a section that does not exist");
    }
    const std::tuple key(record.init_section, record.init_offset, record.init_nbytes);
    if (const auto known = data_.find(key); known != data_.end()) return known->second;
    INGOT_ASSIGN(Blob blob, part_of(record.init_section, record.init_offset, record.init_nbytes));
    contents_.data.push_back(std::move(blob));
    const auto index = static_cast<std::uint32_t>(contents_.data.size() - 1);
    data_.emplace(key, index);
    return index;
  }

  // As they lie in the file.
  void sort_data() {
    std::vector<Blob> sorted;
    std::vector<std::uint32_t> renamed(contents_.data.size());
    for (const auto& [place, index] : data_) {
      renamed[index] = static_cast<std::uint32_t>(sorted.size());
      sorted.push_back(contents_.data[index]);
    }
    contents_.data = std::move(sorted);
    for (Variant& variant : contents_.variants) {
      for (Buffer& buffer : variant.buffers) {
        if (buffer.data) buffer.data = renamed[*buffer.data];
      }
    }
  }

  Result<void> read_calls(std::size_t v, Variant& variant) const {
    const VariantTables& tables = tables_.variant_tables[v];
    for (const IngotCallRecord& record : tables.calls) {
      Call call;
      call.kind = static_cast<IngotCallKind>(record.kind);
      call.queue = record.queue;
      call.program = optional_index(record.program).value_or(0);
      std::ranges::copy(record.grid, call.grid.begin());
      std::ranges::copy(record.block, call.block.begin());
      call.immediate = record.immediate;
      call.source = record.source;
      if (record.arg_first > tables.args.size() ||
          record.arg_count > tables.args.size() - record.arg_first) {
        return malformed("a call without its arguments");
      }
      for (std::uint32_t i = 0; i < record.arg_count; ++i) {
        const IngotArgRecord& entry = tables.args[record.arg_first + i];
        call.args.push_back(Arg{static_cast<IngotArgKind>(entry.kind),
                                optional_index(entry.view).value_or(0),
                                static_cast<IngotAccess>(entry.access), entry.immediate});
      }
      variant.calls.push_back(std::move(call));
    }
    for (const IngotTransformRecord& record : tables.transforms) {
      Transform transform;
      transform.slot = record.io;
      transform.camera = optional_index(record.camera);
      transform.matrix_offset = record.matrix_offset;
      transform.width = record.width;
      transform.height = record.height;
      transform.kind = static_cast<IngotTransformKind>(record.kind);
      if (record.policy == INGOT_TRANSFORM_FILL) {
        transform.fill = Transform::Fill{record.fill_buffer, record.first_call, record.last_call,
                                         record.fill_offset, record.fill_luma,  record.fill_chroma};
      }
      variant.transforms.push_back(transform);
    }
    return {};
  }

  Result<void> read_extra_sections() {
    for (std::size_t row = 0; row < tables_.sections.size(); ++row) {
      const IngotSectionEntry& entry = tables_.sections[row];
      if (entry.type <= INGOT_SECTION_MANIFEST) continue;
      if (entry.index != 0) {
        return fail(ExitCode::Unsupported, "artifact-contents",
                    fmt::format("a second {} section", section_name(entry.type)));
      }
      ExtraSection extra;
      extra.type = static_cast<IngotSectionType>(entry.type);
      if (entry.variant != INGOT_VARIANT_COMMON) extra.variant = entry.variant;
      extra.bytes = borrow(decoded_.payload(row));
      contents_.extra_sections.push_back(std::move(extra));
    }
    return {};
  }

  const Decoded& decoded_;
  const Tables& tables_;
  ArtifactContents contents_;
  std::map<std::string, std::string> cut_names_;  // stored to original
  std::map<std::tuple<Digest, Digest, Digest>, std::uint32_t> interfaces_;
  std::map<std::size_t, std::uint32_t> code_index_;  // by row of the section table
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, std::uint32_t> data_;
};

}  // namespace

Result<ArtifactContents> read_contents(const Decoded& decoded) { return Reader(decoded).run(); }

}  // namespace ingot::artifact
