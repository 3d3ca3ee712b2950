// SHA-256, the only hash of the format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/hex.h"

namespace ingot::artifact {

using Digest = std::array<std::uint8_t, 32>;

// Feeds bytes in pieces; `finish` may be called once.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);
  void add_u32(std::uint32_t value);  // little-endian
  void add_u64(std::uint64_t value);
  // A tag of the format: `text` padded with zero bytes to 32.
  void add_tag(std::string_view text);
  [[nodiscard]] Digest finish();

 private:
  void* context_;
};

[[nodiscard]] Digest sha256(std::span<const std::byte> bytes);
[[nodiscard]] Digest sha256(std::string_view text);

using ingot::to_hex;

}  // namespace ingot::artifact
