// SHA-512 (FIPS 180-4) of up to three pieces: what Ed25519 needs, and no more.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot::loader {

struct Piece {
  const void* data;
  size_t nbytes;
};

void sha512(const Piece* pieces, size_t count, uint8_t digest[64]);

}  // namespace ingot::loader
