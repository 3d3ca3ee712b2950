// The tables of an artifact as records, with a place for every variant.
//
// Both directions meet here: the writer fills it before it lays out bytes, the reader after it has
// checked them, and the manifest is made from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/digest.h"
#include "artifact/format.h"

namespace ingot::artifact {

// Interface tables are repeated for every variant, also where the file has one common section.
struct VariantTables {
  std::vector<IngotIoRecord> io;
  std::vector<IngotSliceRecord> slices;
  std::vector<IngotCameraRecord> cameras;
  std::vector<IngotRefRecord> refs;
  std::vector<IngotArenaRecord> arenas;
  std::vector<IngotBufferRecord> buffers;
  std::vector<IngotViewRecord> views;
  std::vector<IngotParamRecord> params;
  std::vector<IngotArgRecord> args;
  std::vector<IngotProgramRecord> programs;
  std::vector<IngotCallRecord> calls;
  std::vector<IngotTransformRecord> transforms;
};

struct Tables {
  IngotHeader header{};
  std::vector<IngotSectionEntry> sections;
  std::string strings;
  std::vector<IngotModelRecord> models;
  std::vector<IngotVariantRecord> variants;
  std::vector<VariantTables> variant_tables;  // as many as the header says

  // The stored name; empty for an absent one and for a place that is no name.
  [[nodiscard]] std::string_view name(IngotName name) const;
};

// Text of a fixed field that is padded with NUL.
template <std::size_t kSize>
[[nodiscard]] std::string fixed_text(const char (&field)[kSize]) {
  const std::string_view text(field, kSize);
  return std::string(text.substr(0, text.find('\0')));
}

// SHA-256 over the interface tables, names by value.
[[nodiscard]] Digest interface_digest(const Tables& tables, const VariantTables& variant);

// header.model_sha256: SHA-256 over the three digests of every model record.
[[nodiscard]] Digest model_identity(const std::vector<IngotModelRecord>& models);

// Size of one element, 0 for a number that is no data type.
[[nodiscard]] std::uint64_t dtype_size(std::uint32_t dtype);

// "f32", "u8" ...; "?" for a number that is no data type.
[[nodiscard]] std::string_view dtype_name(std::uint32_t dtype);

// "input", "output", "state"; "?" for a number that is no direction.
[[nodiscard]] std::string_view direction_name(std::uint32_t direction);

// "STRINGS" ...; "?" for an unknown type.
[[nodiscard]] std::string_view section_name(std::uint32_t type);

}  // namespace ingot::artifact
