// Bytes -> a typed view of an artifact, for tools (inspect, diff, sign).
//
// Nothing in the file is trusted. decode() does steps 1 to 6, 8 and 11 to 15 of the order of
// validation, then model_sha256 and the manifest: what it returns is *intact*, every table has the
// size it claims, and no count is above its limit. It does not judge signatures and does not check
// what the records say: that is the loader's work, and tools call the loader for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/digest.h"
#include "artifact/format.h"
#include "artifact/tables.h"
#include "base/result.h"

namespace ingot::artifact {

// One entry of a signature block or detached file, its bytes as they are.
struct SignatureEntry {
  std::uint32_t algorithm = 0;
  std::vector<std::byte> bytes;
  std::optional<IngotSignatureEntry> ed25519;  // for that algorithm
};

struct Detached {
  Digest artifact_id{};
  std::vector<SignatureEntry> entries;
};

struct Decoded {
  std::span<const std::byte> file;  // the caller's bytes; must outlive this
  Digest id{};                      // artifact id: header_sha256
  Tables tables;
  std::vector<Digest> section_digests;  // SHA-256 of each payload, parallel to tables.sections
  std::vector<SignatureEntry> signatures;
  std::string_view manifest;  // inside `file`

  // Payload of row `row` of the section table.
  [[nodiscard]] std::span<const std::byte> payload(std::size_t row) const;

  // Row of a section; nothing if there is none. `variant` may be INGOT_VARIANT_COMMON.
  [[nodiscard]] std::optional<std::size_t> find(IngotSectionType type, std::uint32_t variant,
                                                std::uint32_t index = 0) const;
};

struct DecodeOptions {
  std::uint64_t max_size = INGOT_MAX_CONTENT;  // of the whole file, bytes
};

// Failures carry the names and exit codes of the format ("E_BLOCK_DIGEST", NotTrusted).
[[nodiscard]] Result<Decoded> decode(std::span<const std::byte> file,
                                     const DecodeOptions& options = {});

// The artifact id alone: steps 1 to 5.
[[nodiscard]] Result<Digest> artifact_id(std::span<const std::byte> file,
                                         const DecodeOptions& options = {});

// A detached signature file, step 6. Whether it is for a given artifact is the caller's question.
[[nodiscard]] Result<Detached> decode_detached(std::span<const std::byte> file);

}  // namespace ingot::artifact
