// The writer at work; encode.h is its interface.
//
// It works in three steps: fill the tables (names go into the string table in order of first use),
// list the sections in their final order so that buffers and programs can name rows of the section
// table, then lay the sections out and seal the result. The manifest comes last among the sections
// because it repeats the digests of all others.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/contents.h"
#include "artifact/geometry.h"
#include "artifact/payload.h"
#include "artifact/string_table.h"
#include "artifact/tables.h"

namespace ingot::artifact {

template <std::size_t kSize>
void put_text(char (&field)[kSize], std::string_view text) {
  text.copy(field, kSize);
}

inline void put_digest(std::uint8_t (&field)[32], const Digest& digest) {
  std::ranges::copy(digest, field);
}

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

}  // namespace ingot::artifact
