// A small artifact for tests: a camera, a packed input, a state, a cut output, two variants.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "artifact/contents.h"
#include "artifact/format.h"
#include "artifact/keys.h"

namespace ingot::artifact {

// Contents that encode() accepts; the code is no code.
[[nodiscard]] ArtifactContents sample_contents();

// encode(sample_contents()).
[[nodiscard]] std::vector<std::byte> sample_artifact();

// A key whose seed is `number` repeated.
[[nodiscard]] PrivateKey sample_key(std::uint8_t number);

[[nodiscard]] std::vector<std::byte> to_bytes(std::string_view text);

// The header of an artifact, and putting one back with a fresh header digest.
[[nodiscard]] IngotHeader header_of(std::span<const std::byte> artifact);
void put_header(std::vector<std::byte>& artifact, IngotHeader header);

// Repairs block digests, meta digest and header digest after a change of the content.
void reseal(std::vector<std::byte>& artifact);

// Row of the section table, and putting it back without resealing.
[[nodiscard]] IngotSectionEntry section_of(std::span<const std::byte> artifact, std::size_t row);
void put_section(std::vector<std::byte>& artifact, std::size_t row, const IngotSectionEntry& entry);

// First row with this type, or the number of rows.
[[nodiscard]] std::size_t row_of(std::span<const std::byte> artifact, IngotSectionType type);

}  // namespace ingot::artifact
