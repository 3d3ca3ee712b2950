#include "artifact/tables.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace ingot::artifact {

namespace {

// Count, then for each record its name by value and the bytes after the name field.
template <typename Record>
void add_table(Sha256& hash, const Tables& tables, const std::vector<Record>& records) {
  static_assert(offsetof(Record, name) == 0);
  hash.add_u32(static_cast<std::uint32_t>(records.size()));
  for (const Record& record : records) {
    const std::string_view name = tables.name(record.name);
    hash.add_u32(static_cast<std::uint32_t>(name.size()));
    hash.add(name);
    hash.add(std::as_bytes(std::span(&record, 1)).subspan(sizeof(IngotName)));
  }
}

struct DtypeRow {
  std::string_view name;
  std::uint64_t size;
};

constexpr std::array<DtypeRow, 14> kDtypes = {{{"?", 0},
                                               {"f32", 4},
                                               {"f16", 2},
                                               {"bf16", 2},
                                               {"f64", 8},
                                               {"u8", 1},
                                               {"i8", 1},
                                               {"i16", 2},
                                               {"i32", 4},
                                               {"i64", 8},
                                               {"bool", 1},
                                               {"u16", 2},
                                               {"u32", 4},
                                               {"u64", 8}}};

const DtypeRow& dtype_row(std::uint32_t dtype) {
  return kDtypes[dtype < kDtypes.size() ? dtype : 0];
}

}  // namespace

std::string_view Tables::name(IngotName name) const {
  if (name.length == 0 || name.offset > strings.size() ||
      name.length > strings.size() - name.offset) {
    return {};
  }
  return std::string_view(strings).substr(name.offset, name.length);
}

Digest interface_digest(const Tables& tables, const VariantTables& variant) {
  Sha256 hash;
  hash.add_tag(INGOT_TAG_INTERFACE);
  add_table(hash, tables, variant.io);
  add_table(hash, tables, variant.slices);
  add_table(hash, tables, variant.cameras);
  return hash.finish();
}

Digest model_identity(const std::vector<IngotModelRecord>& models) {
  Sha256 hash;
  hash.add_tag(INGOT_TAG_MODEL);
  for (const IngotModelRecord& model : models) {
    hash.add(std::as_bytes(std::span(model.onnx_sha256)));
    hash.add(std::as_bytes(std::span(model.external_sha256)));
    hash.add(std::as_bytes(std::span(model.pipeline_sha256)));
  }
  return hash.finish();
}

std::uint64_t dtype_size(std::uint32_t dtype) { return dtype_row(dtype).size; }

std::string_view dtype_name(std::uint32_t dtype) { return dtype_row(dtype).name; }

std::string_view section_name(std::uint32_t type) {
  switch (type) {
    case INGOT_SECTION_STRINGS: return "STRINGS";
    case INGOT_SECTION_MODEL: return "MODEL";
    case INGOT_SECTION_IO: return "IO";
    case INGOT_SECTION_SLICES: return "SLICES";
    case INGOT_SECTION_CAMERA: return "CAMERA";
    case INGOT_SECTION_VARIANTS: return "VARIANTS";
    case INGOT_SECTION_REFS: return "REFS";
    case INGOT_SECTION_REFDATA: return "REFDATA";
    case INGOT_SECTION_ARENAS: return "ARENAS";
    case INGOT_SECTION_BUFFERS: return "BUFFERS";
    case INGOT_SECTION_VIEWS: return "VIEWS";
    case INGOT_SECTION_PARAMS: return "PARAMS";
    case INGOT_SECTION_ARGS: return "ARGS";
    case INGOT_SECTION_PROGRAMS: return "PROGRAMS";
    case INGOT_SECTION_CALLS: return "CALLS";
    case INGOT_SECTION_CODE: return "CODE";
    case INGOT_SECTION_DEVCODE: return "DEVCODE";
    case INGOT_SECTION_DATA: return "DATA";
    case INGOT_SECTION_TRANSFORMS: return "TRANSFORMS";
    case INGOT_SECTION_MANIFEST: return "MANIFEST";
    case INGOT_SECTION_PROVENANCE: return "PROVENANCE";
    case INGOT_SECTION_SBOM: return "SBOM";
    case INGOT_SECTION_RETARGET: return "RETARGET";
    case INGOT_SECTION_DEBUG: return "DEBUG";
    default: return "?";
  }
}

}  // namespace ingot::artifact
