// Places in the file, and the digests over it.
#include <algorithm>
#include <cstring>

#include "artifact/encoder.h"
#include "artifact/manifest.h"

namespace ingot::artifact {

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

}  // namespace ingot::artifact
