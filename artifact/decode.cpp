// Each step uses only what earlier steps have established; the step numbers are those of
// docs/artifact_format.md. Arithmetic on values of the file has the form `b <= limit - a` after
// `a <= limit`, so nothing can wrap.
#include "artifact/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <tuple>

#include "artifact/errors.h"
#include "artifact/manifest.h"
#include "artifact/names.h"

namespace ingot::artifact {

static_assert(std::endian::native == std::endian::little, "records are read as they lie");

namespace {

using Bytes = std::span<const std::byte>;

template <typename Record>
Record read_record(Bytes bytes) {
  Record record;
  std::memcpy(&record, bytes.data(), sizeof record);
  return record;
}

template <typename T>
bool all_zero(const T& field) {
  return std::ranges::all_of(std::as_bytes(std::span(&field, 1)),
                             [](std::byte b) { return b == std::byte{0}; });
}

bool is_zero(Bytes bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

// Steps 1 to 5: a header that agrees with itself and fits into the file.
Result<IngotHeader> read_header(Bytes file, const DecodeOptions& options) {
  if (file.size() < INGOT_MIN_FILE_SIZE) {
    return fail_with(INGOT_E_TRUNCATED, fmt::format("{} bytes are no artifact", file.size()));
  }
  if (file.size() > options.max_size) {
    return fail_with(INGOT_E_TOO_LARGE,
                     fmt::format("{} bytes, at most {} accepted", file.size(), options.max_size));
  }
  const auto header = read_record<IngotHeader>(file);
  if (std::memcmp(header.magic, INGOT_MAGIC, sizeof header.magic) != 0) {
    return fail_with(INGOT_E_MAGIC, "the file does not start like an artifact");
  }
  if (header.version_major != INGOT_VERSION_MAJOR) {
    return fail_with(INGOT_E_VERSION, fmt::format("format version {}, this tool reads {}",
                                                  header.version_major, INGOT_VERSION_MAJOR));
  }
  if (header.header_size != INGOT_HEADER_SIZE) {
    return fail_with(INGOT_E_HEADER_SIZE, fmt::format("header_size {}", header.header_size));
  }
  if (header.content_size % INGOT_ALIGNMENT != 0 || header.content_size < INGOT_HEADER_SIZE) {
    return fail_with(INGOT_E_HEADER_SIZE, fmt::format("content_size {}", header.content_size));
  }
  if (header.content_size > options.max_size) {
    return fail_with(INGOT_E_TOO_LARGE, fmt::format("content_size {}, at most {} accepted",
                                                    header.content_size, options.max_size));
  }
  if (header.content_size > file.size() - INGOT_SIGNATURE_HEADER_SIZE) {
    return fail_with(INGOT_E_TRUNCATED,
                     fmt::format("{} bytes of a content of {}", file.size(), header.content_size));
  }
  const Digest digest = sha256(file.first(INGOT_HEADER_DIGEST_OFFSET));
  if (!std::ranges::equal(digest, header.header_sha256)) {
    return fail_with(INGOT_E_HEADER_DIGEST, "the header is damaged");
  }
  return header;
}

// Entries that fill `bytes` exactly, for step 6.
Result<std::vector<SignatureEntry>> read_entries(Bytes bytes, std::uint32_t count) {
  const auto bad = [](std::string detail) {
    return fail_with(INGOT_E_SIG_BLOCK, std::move(detail));
  };
  if (count > INGOT_MAX_SIGNATURES) return bad(fmt::format("{} signatures", count));
  std::vector<SignatureEntry> entries;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (bytes.size() < INGOT_MIN_SIGNATURE_ENTRY) return bad("a signature entry is cut off");
    const auto entry = read_record<IngotSignatureEntry>(bytes);
    if (entry.entry_size < INGOT_MIN_SIGNATURE_ENTRY ||
        entry.entry_size > INGOT_MAX_SIGNATURE_ENTRY || entry.entry_size % 64 != 0 ||
        entry.entry_size > bytes.size()) {
      return bad(fmt::format("a signature entry of {} bytes", entry.entry_size));
    }
    const Bytes raw = bytes.first(entry.entry_size);
    SignatureEntry read{entry.algorithm, {raw.begin(), raw.end()}, std::nullopt};
    if (entry.algorithm == INGOT_SIGNATURE_ED25519) {
      if (entry.entry_size != sizeof entry || entry.flags != 0 || !all_zero(entry.reserved) ||
          entry.purpose < INGOT_PURPOSE_DEVELOPMENT || entry.purpose > INGOT_PURPOSE_SUPPLIER) {
        return bad("a field of a signature entry is out of range");
      }
      read.ed25519 = entry;
    }
    entries.push_back(std::move(read));
    bytes = bytes.subspan(entry.entry_size);
  }
  if (!bytes.empty()) return bad(fmt::format("{} bytes after the last signature", bytes.size()));
  return entries;
}

Result<std::vector<SignatureEntry>> read_signature_block(Bytes file, const IngotHeader& header) {
  const Bytes block = file.subspan(header.content_size);
  const auto head = read_record<IngotSignatureHeader>(block);
  if (std::memcmp(head.magic, INGOT_SIGNATURE_MAGIC, sizeof head.magic) != 0) {
    return fail_with(INGOT_E_SIG_BLOCK, "no signature block after the content");
  }
  if (!all_zero(head.reserved)) {
    return fail_with(INGOT_E_SIG_BLOCK, "a reserved field of the signature block is set");
  }
  if (head.block_size != block.size()) {
    return fail_with(INGOT_E_SIZE_MISMATCH,
                     fmt::format("a signature block of {} bytes where {} are left", head.block_size,
                                 block.size()));
  }
  return read_entries(block.subspan(sizeof head), head.count);
}

bool is_padded_product(const char (&field)[32], bool may_be_empty) {
  const std::string text = fixed_text(field);
  const bool rest_is_zero =
      std::all_of(field + text.size(), field + sizeof field, [](char c) { return c == '\0'; });
  return rest_is_zero && (text.empty() ? may_be_empty : is_product_name(text));
}

// Step 8: fields of the header.
Result<void> check_header(const IngotHeader& header) {
  if (header.reserved_78 != 0 || !all_zero(header.reserved_c0) || header.reserved_10c != 0 ||
      !all_zero(header.reserved_150)) {
    return fail_with(INGOT_E_RESERVED, "a reserved field of the header is set");
  }
  if ((header.features_required & ~INGOT_FEATURES_KNOWN) != 0) {
    return fail_with(INGOT_E_FEATURE,
                     fmt::format("required features {:#x} are unknown",
                                 header.features_required & ~INGOT_FEATURES_KNOWN));
  }
  const auto bad = [](std::string_view field) {
    return fail_with(INGOT_E_HEADER_FIELD, fmt::format("{} of the header is wrong", field));
  };
  if (header.section_table_offset != INGOT_HEADER_SIZE) return bad("section_table_offset");
  if (header.section_entry_size != INGOT_SECTION_ENTRY_SIZE) return bad("section_entry_size");
  if (header.block_size_log2 != INGOT_BLOCK_SIZE_LOG2) return bad("block_size_log2");
  if (header.hash_algorithm != INGOT_HASH_SHA256) return bad("hash_algorithm");
  if (header.build_class < INGOT_BUILD_CLASS_DEVELOPMENT ||
      header.build_class > INGOT_BUILD_CLASS_RELEASE) {
    return bad("build_class");
  }
  if (header.alignment_log2 != INGOT_ALIGNMENT_LOG2) return bad("alignment_log2");
  if (header.section_count == 0 || header.section_count > INGOT_MAX_SECTIONS) {
    return fail_with(INGOT_E_LIMIT, fmt::format("{} sections", header.section_count));
  }
  if (header.variant_count == 0 || header.variant_count > INGOT_MAX_VARIANTS) {
    return fail_with(INGOT_E_LIMIT, fmt::format("{} variants", header.variant_count));
  }
  constexpr auto align_up = [](std::uint64_t value, std::uint64_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
  };
  // Counts are below 2^10 and 2^32, so these sums fit.
  const std::uint64_t table_end =
      INGOT_HEADER_SIZE + std::uint64_t{INGOT_SECTION_ENTRY_SIZE} * header.section_count;
  if (header.digest_table_offset != align_up(table_end, INGOT_ALIGNMENT)) {
    return bad("digest_table_offset");
  }
  const std::uint64_t digest_end =
      header.digest_table_offset + std::uint64_t{INGOT_DIGEST_SIZE} * header.block_count;
  if (header.body_offset != align_up(digest_end, INGOT_PAGE_ALIGNMENT)) return bad("body_offset");
  if (header.body_offset >= header.content_size) return bad("body_offset");
  const std::uint64_t body = header.content_size - header.body_offset;
  if (header.block_count != align_up(body, INGOT_BLOCK_SIZE) / INGOT_BLOCK_SIZE) {
    return bad("block_count");
  }
  if (!is_padded_product(header.product, false)) {
    return fail_with(INGOT_E_PRODUCT, "the product of the header is no product name");
  }
  if (!is_padded_product(header.device_family, true)) {
    return fail_with(INGOT_E_PRODUCT, "the device family of the header is none");
  }
  return {};
}

// Steps 11 and 12: digests of everything after the header, then the padding before the body.
Result<void> check_digests(Bytes file, const IngotHeader& header) {
  const Bytes meta = file.subspan(INGOT_HEADER_SIZE, header.body_offset - INGOT_HEADER_SIZE);
  if (!std::ranges::equal(sha256(meta), header.meta_sha256)) {
    return fail_with(INGOT_E_META_DIGEST, "the section or digest table is damaged");
  }
  for (std::uint64_t block = 0; block < header.block_count; ++block) {
    const std::uint64_t offset = header.body_offset + block * INGOT_BLOCK_SIZE;
    const std::uint64_t size =
        std::min<std::uint64_t>(INGOT_BLOCK_SIZE, header.content_size - offset);
    const Digest digest = sha256(file.subspan(offset, size));
    const Bytes stored =
        file.subspan(header.digest_table_offset + block * INGOT_DIGEST_SIZE, INGOT_DIGEST_SIZE);
    if (!std::ranges::equal(std::as_bytes(std::span(digest)), stored)) {
      return fail_with(INGOT_E_BLOCK_DIGEST,
                       fmt::format("block {} is damaged (bytes {} to {} of the file)", block,
                                   offset, offset + size - 1));
    }
  }
  const std::uint64_t table_end =
      INGOT_HEADER_SIZE + std::uint64_t{INGOT_SECTION_ENTRY_SIZE} * header.section_count;
  const std::uint64_t digest_end =
      header.digest_table_offset + std::uint64_t{INGOT_DIGEST_SIZE} * header.block_count;
  if (!is_zero(file.subspan(table_end, header.digest_table_offset - table_end)) ||
      !is_zero(file.subspan(digest_end, header.body_offset - digest_end))) {
    return fail_with(INGOT_E_PADDING, "bytes before the body are not zero");
  }
  return {};
}

// A row of INGOT_SECTION_LIST.
struct SectionRule {
  std::uint32_t type;
  IngotSectionPlace place;
  IngotSectionPresence presence;
  bool several;
  std::uint32_t entry_size;
  std::uint32_t limit;
};

constexpr SectionRule kRules[] = {
#define INGOT_ROW(name, place, presence, several, entry_size, limit) \
  {INGOT_SECTION_##name,                                             \
   INGOT_PLACED_##place,                                             \
   INGOT_PRESENCE_##presence,                                        \
   several,                                                          \
   entry_size,                                                       \
   limit},
    INGOT_SECTION_LIST(INGOT_ROW)
#undef INGOT_ROW
};

const SectionRule* find_rule(std::uint32_t type) {
  const auto* rule = std::ranges::find(kRules, type, &SectionRule::type);
  return rule == std::end(kRules) ? nullptr : rule;
}

// Step 13 for one row. `expected_offset` is where the sections before it end.
Result<void> check_section(const IngotSectionEntry& entry, std::size_t row,
                           std::uint64_t expected_offset, const IngotHeader& header) {
  const auto bad_entry = [row](std::string_view field) {
    return fail_with(INGOT_E_SECTION_TABLE, fmt::format("section {}: {} is wrong", row, field));
  };
  const auto bad_layout = [row](std::string_view field) {
    return fail_with(INGOT_E_SECTION_LAYOUT, fmt::format("section {}: {} is wrong", row, field));
  };
  if (!all_zero(entry.reserved)) return bad_entry("a reserved field");
  constexpr unsigned kKnownFlags = INGOT_SECTION_REQUIRED | INGOT_SECTION_EXEC | INGOT_SECTION_PAGE;
  if ((entry.flags & ~kKnownFlags) != 0) return bad_entry("flags");

  const bool paged = (entry.flags & (INGOT_SECTION_EXEC | INGOT_SECTION_PAGE)) != 0;
  const std::uint64_t alignment = paged ? INGOT_PAGE_ALIGNMENT : INGOT_ALIGNMENT;
  if (entry.offset != expected_offset) return bad_layout("offset");
  if (entry.offset % alignment != 0) return bad_layout("offset");
  if (entry.span > header.content_size - expected_offset) return bad_layout("span");
  if (entry.span % alignment != 0) return bad_layout("span");
  if (entry.size == 0 || entry.size > entry.span) return bad_layout("size");
  if (entry.span - entry.size >= INGOT_MAX_SPAN_SLACK) return bad_layout("size");

  const bool required = entry.type < INGOT_FIRST_IGNORABLE_SECTION;
  const SectionRule* rule = find_rule(entry.type);
  if (rule == nullptr && required) {
    return fail_with(INGOT_E_SECTION_UNKNOWN,
                     fmt::format("section {}: type {} is unknown", row, entry.type));
  }
  if (required != ((entry.flags & INGOT_SECTION_REQUIRED) != 0)) return bad_entry("flags");
  if ((entry.type == INGOT_SECTION_CODE) != ((entry.flags & INGOT_SECTION_EXEC) != 0)) {
    return bad_entry("flags");
  }
  const bool common = entry.variant == INGOT_VARIANT_COMMON;
  if (!common && entry.variant >= header.variant_count) return bad_entry("variant");
  if (rule == nullptr) return {};
  if (common ? rule->place == INGOT_PLACED_EACH_VARIANT : rule->place == INGOT_PLACED_COMMON) {
    return bad_entry("variant");
  }
  if (!rule->several && entry.index != 0) return bad_entry("index");
  return {};
}

// Steps 13 and 14 for all rows.
Result<std::vector<IngotSectionEntry>> read_sections(Bytes file, const IngotHeader& header) {
  std::vector<IngotSectionEntry> sections;
  std::uint64_t end = header.body_offset;
  for (std::uint32_t row = 0; row < header.section_count; ++row) {
    const auto entry = read_record<IngotSectionEntry>(
        file.subspan(INGOT_HEADER_SIZE + std::uint64_t{row} * INGOT_SECTION_ENTRY_SIZE));
    INGOT_RETURN_IF_ERROR(check_section(entry, row, end, header));
    end = entry.offset + entry.span;
    sections.push_back(entry);
  }
  if (end != header.content_size) {
    return fail_with(INGOT_E_SECTION_LAYOUT, "the last section does not end with the content");
  }

  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> keys;
  for (const IngotSectionEntry& entry : sections) {
    if (!keys.emplace(entry.type, entry.variant, entry.index).second) {
      return fail_with(INGOT_E_SECTION_DUPLICATE,
                       fmt::format("{} exists twice", section_name(entry.type)));
    }
  }
  const auto exists = [&](std::uint32_t type, std::uint32_t variant) {
    return keys.contains({type, variant, 0});
  };
  const auto variants_with = [&](std::uint32_t type) {
    std::uint32_t count = 0;
    for (std::uint32_t v = 0; v < header.variant_count; ++v) count += exists(type, v) ? 1 : 0;
    return count;
  };
  for (const SectionRule& rule : kRules) {
    if (rule.place == INGOT_PLACED_EITHER && exists(rule.type, INGOT_VARIANT_COMMON) &&
        variants_with(rule.type) != 0) {
      return fail_with(INGOT_E_SECTION_DUPLICATE,
                       fmt::format("{} is common and also of a variant", section_name(rule.type)));
    }
  }

  for (std::size_t row = 0; row < sections.size(); ++row) {
    const IngotSectionEntry& entry = sections[row];
    if (!is_zero(file.subspan(entry.offset + entry.size, entry.span - entry.size))) {
      return fail_with(INGOT_E_PADDING, fmt::format("bytes after section {} are not zero", row));
    }
  }
  for (const SectionRule& rule : kRules) {
    const bool common = exists(rule.type, INGOT_VARIANT_COMMON);
    const std::uint32_t each = variants_with(rule.type);
    const bool complete = common || each == header.variant_count;
    const bool required = rule.presence == INGOT_PRESENCE_REQUIRED ||
                          (rule.place == INGOT_PLACED_EITHER && each != 0);
    if (required && !complete) {
      return fail_with(INGOT_E_SECTION_MISSING,
                       fmt::format("{} is missing", section_name(rule.type)));
    }
  }
  return sections;
}

// Step 15 for one row.
Result<void> check_counts(const IngotSectionEntry& entry, std::size_t row) {
  // Nobody reads the ignorable ones after the manifest.
  const SectionRule* rule = find_rule(entry.type);
  if (rule == nullptr || entry.type > INGOT_SECTION_MANIFEST) return {};
  // entry_size is ours and small once it is compared, so the product fits into 64 bits.
  const bool good =
      entry.entry_size == rule->entry_size &&
      (rule->entry_size == 0 ? entry.entry_count == 0
                             : std::uint64_t{entry.entry_size} * entry.entry_count == entry.size);
  if (!good) {
    return fail_with(INGOT_E_SECTION_TABLE,
                     fmt::format("section {}: {} records of {} bytes in {} bytes", row,
                                 entry.entry_count, entry.entry_size, entry.size));
  }
  const std::uint64_t count = rule->entry_size == 0 ? entry.size : entry.entry_count;
  if (rule->limit != INGOT_UNLIMITED && count > rule->limit) {
    return fail_with(INGOT_E_LIMIT, fmt::format("{} has {}, at most {} allowed",
                                                section_name(entry.type), count, rule->limit));
  }
  return {};
}

// Reads the tables, step 15.
class TableReader {
 public:
  explicit TableReader(Decoded& decoded) : decoded_(decoded) {}

  Result<void> read_all() {
    Tables& tables = decoded_.tables;
    for (std::size_t row = 0; row < tables.sections.size(); ++row) {
      INGOT_RETURN_IF_ERROR(check_counts(tables.sections[row], row));
    }
    const Bytes strings =
        decoded_.payload(*decoded_.find(INGOT_SECTION_STRINGS, INGOT_VARIANT_COMMON));
    tables.strings.assign(reinterpret_cast<const char*>(strings.data()), strings.size());
    read(INGOT_SECTION_MODEL, INGOT_VARIANT_COMMON, tables.models);
    read(INGOT_SECTION_VARIANTS, INGOT_VARIANT_COMMON, tables.variants);
    if (tables.models.size() > INGOT_MAX_MODELS) {
      return fail_with(INGOT_E_MODEL, fmt::format("{} models", tables.models.size()));
    }
    if (!std::ranges::equal(model_identity(tables.models), tables.header.model_sha256)) {
      return fail_with(INGOT_E_MODEL, "the header names other models than the MODEL section");
    }
    if (tables.variants.size() != tables.header.variant_count) {
      return fail_with(INGOT_E_VARIANT,
                       fmt::format("{} variants where the header says {}", tables.variants.size(),
                                   tables.header.variant_count));
    }
    tables.variant_tables.resize(tables.header.variant_count);
    for (std::uint32_t v = 0; v < tables.header.variant_count; ++v) {
      VariantTables& variant = tables.variant_tables[v];
      read(INGOT_SECTION_IO, v, variant.io);
      read(INGOT_SECTION_SLICES, v, variant.slices);
      read(INGOT_SECTION_CAMERA, v, variant.cameras);
      read(INGOT_SECTION_REFS, v, variant.refs);
      read(INGOT_SECTION_ARENAS, v, variant.arenas);
      read(INGOT_SECTION_BUFFERS, v, variant.buffers);
      read(INGOT_SECTION_VIEWS, v, variant.views);
      read(INGOT_SECTION_PARAMS, v, variant.params);
      read(INGOT_SECTION_ARGS, v, variant.args);
      read(INGOT_SECTION_PROGRAMS, v, variant.programs);
      read(INGOT_SECTION_CALLS, v, variant.calls);
      read(INGOT_SECTION_TRANSFORMS, v, variant.transforms);
    }
    return {};
  }

 private:
  // The variant's own section, else the common one, else nothing.
  template <typename Record>
  void read(IngotSectionType type, std::uint32_t variant, std::vector<Record>& records) {
    auto row = decoded_.find(type, variant);
    if (!row) row = decoded_.find(type, INGOT_VARIANT_COMMON);
    if (!row) return;
    const Bytes bytes = decoded_.payload(*row);
    records.resize(bytes.size() / sizeof(Record));
    std::memcpy(records.data(), bytes.data(), records.size() * sizeof(Record));
  }

  Decoded& decoded_;
};

}  // namespace

Bytes Decoded::payload(std::size_t row) const {
  const IngotSectionEntry& entry = tables.sections[row];
  return file.subspan(entry.offset, entry.size);
}

std::optional<std::size_t> Decoded::find(IngotSectionType type, std::uint32_t variant,
                                         std::uint32_t index) const {
  for (std::size_t row = 0; row < tables.sections.size(); ++row) {
    const IngotSectionEntry& entry = tables.sections[row];
    if (entry.type == static_cast<std::uint32_t>(type) && entry.variant == variant &&
        entry.index == index) {
      return row;
    }
  }
  return std::nullopt;
}

Result<Decoded> decode(Bytes file, const DecodeOptions& options) {
  Decoded decoded;
  decoded.file = file;
  INGOT_ASSIGN(decoded.tables.header, read_header(file, options));
  const IngotHeader& header = decoded.tables.header;
  std::ranges::copy(header.header_sha256, decoded.id.begin());
  INGOT_ASSIGN(decoded.signatures, read_signature_block(file, header));
  INGOT_RETURN_IF_ERROR(check_header(header));
  INGOT_RETURN_IF_ERROR(check_digests(file, header));
  INGOT_ASSIGN(decoded.tables.sections, read_sections(file, header));
  INGOT_RETURN_IF_ERROR(TableReader(decoded).read_all());

  const std::size_t manifest_row = *decoded.find(INGOT_SECTION_MANIFEST, INGOT_VARIANT_COMMON);
  const Bytes manifest = decoded.payload(manifest_row);
  decoded.manifest = {reinterpret_cast<const char*>(manifest.data()), manifest.size()};
  for (std::size_t row = 0; row < decoded.tables.sections.size(); ++row) {
    decoded.section_digests.push_back(row == manifest_row ? Digest{}
                                                          : sha256(decoded.payload(row)));
  }
  INGOT_RETURN_IF_ERROR(check_manifest(decoded.manifest, decoded.tables, decoded.section_digests));
  return decoded;
}

Result<Digest> artifact_id(Bytes file, const DecodeOptions& options) {
  INGOT_ASSIGN(const IngotHeader header, read_header(file, options));
  Digest id;
  std::ranges::copy(header.header_sha256, id.begin());
  return id;
}

Result<Detached> decode_detached(Bytes file) {
  const auto bad = [](std::string_view detail) {
    return fail_with(INGOT_E_SIG_BLOCK, fmt::format("detached signature: {}", detail));
  };
  if (file.size() < INGOT_DETACHED_HEADER_SIZE) return bad("the file is too short");
  const auto header = read_record<IngotDetachedHeader>(file);
  if (std::memcmp(header.magic, INGOT_DETACHED_MAGIC, sizeof header.magic) != 0) {
    return bad("it does not start like one");
  }
  if (!all_zero(header.reserved)) return bad("a reserved field is set");
  if (header.file_size != file.size()) return bad("its size is not the one it states");
  Detached detached;
  std::ranges::copy(header.artifact_id, detached.artifact_id.begin());
  INGOT_ASSIGN(detached.entries,
               read_entries(file.subspan(INGOT_DETACHED_HEADER_SIZE), header.count));
  return detached;
}

}  // namespace ingot::artifact
