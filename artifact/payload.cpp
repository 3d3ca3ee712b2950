#include "artifact/payload.h"

#include <algorithm>
#include <array>

namespace ingot::artifact {

Digest digest_of(const Payload& payload) {
  static constexpr std::array<std::byte, INGOT_ALIGNMENT> kZeros{};
  Sha256 hash;
  std::uint64_t position = 0;
  const auto pad_to = [&](std::uint64_t end) {
    while (position < end) {
      const auto n = std::min<std::uint64_t>(end - position, kZeros.size());
      hash.add(std::span(kZeros).first(n));
      position += n;
    }
  };
  for (const Payload::Piece& piece : payload.pieces) {
    pad_to(piece.offset);
    hash.add(piece.bytes);
    position += piece.bytes.size();
  }
  pad_to(payload.size);
  return hash.finish();
}

}  // namespace ingot::artifact
