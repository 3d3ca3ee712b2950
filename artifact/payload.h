// Sections before they have a place in the file.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "artifact/digest.h"
#include "artifact/format.h"
#include "artifact/geometry.h"

namespace ingot::artifact {

// The order of these is the order of the sections in the file.
struct SectionKey {
  std::uint32_t type = 0;
  std::uint16_t variant = INGOT_VARIANT_COMMON;
  std::uint32_t index = 0;
  auto operator<=>(const SectionKey&) const = default;
};

// Bytes of a section: pieces at rising offsets, zeros between and after them up to `size`.
struct Payload {
  struct Piece {
    std::uint64_t offset = 0;
    std::span<const std::byte> bytes;
  };
  std::vector<Piece> pieces;
  std::uint64_t size = 0;
  std::uint32_t entry_size = 0;

  // Appends at the next multiple of `alignment`; returns the offset.
  std::uint64_t append(std::span<const std::byte> bytes, std::uint64_t alignment) {
    const std::uint64_t offset = align_up(size, alignment);
    pieces.push_back({offset, bytes});
    size = offset + bytes.size();
    return offset;
  }
};

[[nodiscard]] Digest digest_of(const Payload& payload);

// Which blob of the contents a blob is stored as, and where.
struct DataPlace {
  SectionKey section;
  std::uint64_t offset = 0;
};

template <typename Record>
std::span<const std::byte> bytes_of(const std::vector<Record>& records) {
  static_assert(std::has_unique_object_representations_v<Record> ||
                std::is_same_v<Record, IngotRefRecord>);
  return std::as_bytes(std::span(records));
}

}  // namespace ingot::artifact
