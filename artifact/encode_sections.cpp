// Which sections there are, in their final order, and what they hold.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "artifact/encoder.h"

namespace ingot::artifact {

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

}  // namespace ingot::artifact
