// Steps 12 to 15: the section table, and where each table of a variant lies.
#include "loader/internal.h"

namespace ingot::loader {

namespace {

#define FIELD(name) INGOT_FIELD(IngotSectionEntry, name)

// A row of INGOT_SECTION_LIST.
struct SectionRule {
  uint16_t type;
  uint8_t place;
  bool required;
  bool several;
  uint16_t entry_size;
  uint32_t limit;
};

constexpr SectionRule kRules[] = {
#define INGOT_ROW(name, place, presence, several, entry_size, limit) \
  {INGOT_SECTION_##name,                                             \
   INGOT_PLACED_##place,                                             \
   INGOT_PRESENCE_##presence != 0,                                   \
   several,                                                          \
   entry_size,                                                       \
   limit},
    INGOT_SECTION_LIST(INGOT_ROW)
#undef INGOT_ROW
};

const SectionRule* find_rule(uint32_t type) {
  for (const SectionRule& rule : kRules) {
    if (rule.type == type) return &rule;
  }
  return nullptr;
}

constexpr uint16_t kKnownFlags = INGOT_SECTION_REQUIRED | INGOT_SECTION_EXEC | INGOT_SECTION_PAGE;

ingot_status check_span(const IngotSectionEntry& entry, uint64_t previous_end,
                        uint64_t content_size, const Place& place) {
  if (entry.offset != previous_end) {
    return place.fail(INGOT_E_SECTION_LAYOUT, FIELD(offset), entry.offset, previous_end);
  }
  if (entry.size == 0) return place.fail(INGOT_E_SECTION_LAYOUT, FIELD(size));
  const bool pages = (entry.flags & (INGOT_SECTION_EXEC | INGOT_SECTION_PAGE)) != 0;
  const uint64_t unit = pages ? INGOT_PAGE_ALIGNMENT : INGOT_ALIGNMENT;
  if (entry.offset % unit != 0) {
    return place.fail(INGOT_E_SECTION_LAYOUT, FIELD(offset), entry.offset, unit);
  }
  if (entry.span % unit != 0 || entry.span < entry.size ||
      entry.span - entry.size >= INGOT_MAX_SPAN_SLACK ||
      !inside(entry.offset, entry.span, content_size)) {
    return place.fail(INGOT_E_SECTION_LAYOUT, FIELD(span), entry.span, entry.size);
  }
  return kOk;
}

ingot_status check_entry(const ingot_artifact& artifact, const IngotSectionEntry& entry,
                         uint64_t previous_end, const Place& place) {
  const IngotHeader& header = artifact.header;
  if (!all_zero(entry.reserved, sizeof entry.reserved)) {
    return place.fail(INGOT_E_SECTION_TABLE, FIELD(reserved));
  }
  if ((entry.flags & ~kKnownFlags) != 0) {
    return place.fail(INGOT_E_SECTION_TABLE, FIELD(flags), entry.flags, kKnownFlags);
  }
  if (entry.variant != INGOT_VARIANT_COMMON && entry.variant >= header.variant_count) {
    return place.fail(INGOT_E_SECTION_TABLE, FIELD(variant), entry.variant, header.variant_count);
  }
  INGOT_RETURN_IF(check_span(entry, previous_end, header.content_size, place));
  const SectionRule* rule = find_rule(entry.type);
  const bool needed = entry.type < INGOT_FIRST_IGNORABLE_SECTION;
  if (rule == nullptr && needed) {
    return place.fail(INGOT_E_SECTION_UNKNOWN, FIELD(type), entry.type, 0);
  }
  if (needed != ((entry.flags & INGOT_SECTION_REQUIRED) != 0) ||
      (entry.type == INGOT_SECTION_CODE) != ((entry.flags & INGOT_SECTION_EXEC) != 0)) {
    return place.fail(INGOT_E_SECTION_TABLE, FIELD(flags), entry.flags, 0);
  }
  if (rule == nullptr) return kOk;
  const bool common = entry.variant == INGOT_VARIANT_COMMON;
  if (common ? rule->place == INGOT_PLACED_EACH_VARIANT : rule->place == INGOT_PLACED_COMMON) {
    return place.fail(INGOT_E_SECTION_TABLE, FIELD(variant), entry.variant, 0);
  }
  if (entry.index != 0 && !rule->several) {
    return place.fail(INGOT_E_SECTION_TABLE, FIELD(index), entry.index, 0);
  }
  return kOk;
}

bool same_identity(const IngotSectionEntry& a, const IngotSectionEntry& b) {
  return a.type == b.type && a.variant == b.variant && a.index == b.index;
}

// Neither twice, nor common and also for a variant.
ingot_status check_unique(const ingot_artifact& artifact, uint32_t index, const Place& place) {
  const IngotSectionEntry& entry = artifact.section(index);
  const SectionRule* rule = find_rule(entry.type);
  const bool exclusive = rule != nullptr && rule->place == INGOT_PLACED_EITHER;
  for (uint32_t i = 0; i < index; ++i) {
    const IngotSectionEntry& other = artifact.section(i);
    const bool mixed =
        exclusive && other.type == entry.type &&
        (other.variant == INGOT_VARIANT_COMMON) != (entry.variant == INGOT_VARIANT_COMMON);
    if (mixed || same_identity(entry, other)) {
      return place.fail(INGOT_E_SECTION_DUPLICATE, FIELD(type), index, i);
    }
  }
  return kOk;
}

ingot_status check_table(const ingot_artifact& artifact, ingot_error* error) {
  Place place = {error, 13, kNone, kNone, kNone};
  uint64_t end = artifact.header.body_offset;
  for (uint32_t i = 0; i < artifact.header.section_count; ++i) {
    place.section = place.record = i;
    const IngotSectionEntry& entry = artifact.section(i);
    INGOT_RETURN_IF(check_entry(artifact, entry, end, place));
    INGOT_RETURN_IF(check_unique(artifact, i, place));
    end += entry.span;
  }
  if (end != artifact.header.content_size) {
    return place.fail(INGOT_E_SECTION_LAYOUT, FIELD(span), end, artifact.header.content_size);
  }
  return kOk;
}

uint32_t count_sections(const ingot_artifact& artifact, uint32_t type, bool common) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < artifact.header.section_count; ++i) {
    const IngotSectionEntry& entry = artifact.section(i);
    const bool first = entry.type == type && entry.index == 0;
    if (first && (entry.variant == INGOT_VARIANT_COMMON) == common) ++count;
  }
  return count;
}

ingot_status check_present(const ingot_artifact& artifact, const Place& place) {
  const uint32_t variants = artifact.header.variant_count;
  for (const SectionRule& rule : kRules) {
    const uint32_t common = count_sections(artifact, rule.type, true);
    const uint32_t each = count_sections(artifact, rule.type, false);
    const bool complete = common == 1 || each == variants;
    const bool needed = rule.required || (rule.place == INGOT_PLACED_EITHER && each != 0);
    if (needed && !complete) {
      return place.fail(INGOT_E_SECTION_MISSING, FIELD(type), common + each, rule.type);
    }
  }
  return kOk;
}

// Section of this type for this variant, or the common one; kNone if there is none.
uint32_t find_section(const ingot_artifact& artifact, uint32_t type, uint32_t variant) {
  for (uint32_t i = 0; i < artifact.header.section_count; ++i) {
    const IngotSectionEntry& entry = artifact.section(i);
    if (entry.type == type && entry.index == 0 &&
        (entry.variant == variant || entry.variant == INGOT_VARIANT_COMMON)) {
      return i;
    }
  }
  return kNone;
}

// Step 15 for one section.
ingot_status check_entry_size(const IngotSectionEntry& entry, const SectionRule& rule,
                              const Place& place) {
  if (entry.entry_size != rule.entry_size) {
    return place.fail(INGOT_E_SECTION_TABLE, FIELD(entry_size), entry.entry_size, rule.entry_size);
  }
  const uint64_t described = uint64_t{entry.entry_size} * entry.entry_count;
  if (rule.entry_size == 0 ? entry.entry_count != 0 : described != entry.size) {
    return place.fail(INGOT_E_SECTION_TABLE, FIELD(entry_count), entry.entry_count, entry.size);
  }
  const uint64_t amount = rule.entry_size == 0 ? entry.size : entry.entry_count;
  if (rule.limit != INGOT_UNLIMITED && amount > rule.limit) {
    return place.fail(INGOT_E_LIMIT, FIELD(entry_count), amount, rule.limit);
  }
  return kOk;
}

// Step 15 for the sections of plain bytes, which nobody opens as a table.
ingot_status check_plain_sections(const ingot_artifact& artifact, ingot_error* error) {
  Place place = {error, 15, kNone, kNone, kNone};
  for (uint32_t i = 0; i < artifact.header.section_count; ++i) {
    const IngotSectionEntry& entry = artifact.section(i);
    place.section = place.record = i;
    if (entry.type > INGOT_SECTION_MANIFEST) continue;  // ignorable, and never read
    const SectionRule& rule = *find_rule(entry.type);
    if (rule.entry_size == 0) INGOT_RETURN_IF(check_entry_size(entry, rule, place));
  }
  return kOk;
}

struct Finder {
  const ingot_artifact& artifact;
  uint32_t variant;
  ingot_error* error;

  ingot_status bytes(uint32_t type, Bytes* found) const {
    const uint32_t index = find_section(artifact, type, variant);
    *found = {nullptr, 0, kNone};
    if (index == kNone) return kOk;
    const IngotSectionEntry& entry = artifact.section(index);
    const Place place = {error, 15, variant, index, index};
    INGOT_RETURN_IF(check_entry_size(entry, *find_rule(type), place));
    *found = {artifact.content + entry.offset, entry.size, index};
    return kOk;
  }

  ingot_status table(uint32_t type, AnyTable* found) const {
    Bytes section;
    INGOT_RETURN_IF(bytes(type, &section));
    const bool there = section.section != kNone;
    *found = {section.data, there ? artifact.section(section.section).entry_count : 0,
              section.section};
    return kOk;
  }
};

}  // namespace

ingot_status check_sections(const ingot_artifact& artifact, ingot_error* error) {
  const IngotHeader& header = artifact.header;
  Place place = {error, 12, kNone, kNone, kNone};
  const uint64_t table_end =
      INGOT_HEADER_SIZE + uint64_t{header.section_count} * sizeof(IngotSectionEntry);
  const uint64_t digests_end =
      header.digest_table_offset + uint64_t{header.block_count} * INGOT_DIGEST_SIZE;
  if (!all_zero(artifact.content + table_end, header.digest_table_offset - table_end) ||
      !all_zero(artifact.content + digests_end, header.body_offset - digests_end)) {
    return place.fail(INGOT_E_PADDING);
  }
  INGOT_RETURN_IF(check_table(artifact, error));
  place.step = 14;
  for (uint32_t i = 0; i < header.section_count; ++i) {
    const IngotSectionEntry& entry = artifact.section(i);
    place.section = i;
    if (!all_zero(artifact.content + entry.offset + entry.size, entry.span - entry.size)) {
      return place.fail(INGOT_E_PADDING);
    }
  }
  place.section = kNone;
  INGOT_RETURN_IF(check_present(artifact, place));
  return check_plain_sections(artifact, error);
}

ingot_status find_common_tables(ingot_artifact* artifact, ingot_error* error) {
  const Finder find = {*artifact, kNone, error};
  INGOT_RETURN_IF(find.bytes(INGOT_SECTION_STRINGS, &artifact->strings));
  INGOT_RETURN_IF(find.table(INGOT_SECTION_MODEL, &artifact->models));
  return find.table(INGOT_SECTION_VARIANTS, &artifact->variants);
}

ingot_status find_cameras(const ingot_artifact& artifact, uint32_t variant,
                          Table<IngotCameraRecord>* cameras, ingot_error* error) {
  return Finder{artifact, variant, error}.table(INGOT_SECTION_CAMERA, cameras);
}

ingot_status find_tables(const ingot_artifact& artifact, uint32_t variant, Tables* tables,
                         ingot_error* error) {
  const Finder find = {artifact, variant, error};
  tables->variant = variant;
  tables->record = &artifact.variants[variant];
  const struct {
    uint32_t type;
    AnyTable* table;
  } wanted[] = {{INGOT_SECTION_CAMERA, &tables->cameras},
                {INGOT_SECTION_IO, &tables->io},
                {INGOT_SECTION_SLICES, &tables->slices},
                {INGOT_SECTION_ARENAS, &tables->arenas},
                {INGOT_SECTION_BUFFERS, &tables->buffers},
                {INGOT_SECTION_VIEWS, &tables->views},
                {INGOT_SECTION_PARAMS, &tables->params},
                {INGOT_SECTION_PROGRAMS, &tables->programs},
                {INGOT_SECTION_ARGS, &tables->args},
                {INGOT_SECTION_CALLS, &tables->calls},
                {INGOT_SECTION_TRANSFORMS, &tables->transforms},
                {INGOT_SECTION_REFS, &tables->refs}};
  for (const auto& one : wanted) INGOT_RETURN_IF(find.table(one.type, one.table));
  return find.bytes(INGOT_SECTION_REFDATA, &tables->refdata);
}

#undef FIELD

}  // namespace ingot::loader
