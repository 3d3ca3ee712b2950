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

std::string_view direction_name(std::uint32_t direction) {
  switch (direction) {
    case INGOT_DIRECTION_INPUT: return "input";
    case INGOT_DIRECTION_OUTPUT: return "output";
    case INGOT_DIRECTION_STATE: return "state";
    default: return "?";
  }
}

std::string_view section_name(std::uint32_t type) {
  switch (type) {
#define INGOT_NAME(name, place, presence, several, entry_size, limit) \
  case INGOT_SECTION_##name: return #name;
    INGOT_SECTION_LIST(INGOT_NAME)
#undef INGOT_NAME
    default: return "?";
  }
}

}  // namespace ingot::artifact
