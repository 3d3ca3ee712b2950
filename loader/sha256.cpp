#include "loader/sha256.h"

#include "loader/bytes.h"

namespace ingot::loader {

// First 32 bits of the fractional parts of the cube roots of the first 64 primes.
alignas(16) const uint32_t kSha256Constants[64] = {
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u,
    0xab1c5ed5u, 0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu,
    0x9bdc06a7u, 0xc19bf174u, 0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu,
    0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau, 0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u,
    0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u, 0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu,
    0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u, 0xa2bfe8a1u, 0xa81a664bu,
    0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u, 0x19a4c116u,
    0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
    0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u,
    0xc67178f2u,
};

namespace {

inline uint32_t rotate(uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }

// One round on the rotating window v: v[i] plays a at round 0, b at round 1 and so on.
void block(uint32_t state[8], const uint8_t* data) {
  uint32_t w[16];
  uint32_t v[8];
  std::memcpy(v, state, sizeof v);
  for (uint32_t t = 0; t < 64; ++t) {
    uint32_t& word = w[t & 15];
    if (t < 16) {
      word = load_be32(data + 4 * t);
    } else {
      const uint32_t early = w[(t + 1) & 15];
      const uint32_t late = w[(t + 14) & 15];
      word += (rotate(early, 7) ^ rotate(early, 18) ^ (early >> 3)) + w[(t + 9) & 15] +
              (rotate(late, 17) ^ rotate(late, 19) ^ (late >> 10));
    }
    const uint32_t e = v[4];
    const uint32_t a = v[0];
    const uint32_t t1 = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                        (v[6] ^ (e & (v[5] ^ v[6]))) + kSha256Constants[t] + word;
    const uint32_t t2 =
        (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & v[1]) | (v[2] & (a | v[1])));
    v[7] = v[6], v[6] = v[5], v[5] = e, v[4] = v[3] + t1;
    v[3] = v[2], v[2] = v[1], v[1] = a, v[0] = t1 + t2;
  }
  for (int i = 0; i < 8; ++i) state[i] += v[i];
}

}  // namespace

void sha256_blocks_portable(uint32_t state[8], const uint8_t* data, size_t count) {
  for (; count > 0; --count, data += 64) block(state, data);
}

Sha256Blocks sha256_select() {
#if defined(__x86_64__)
  if (sha256_x86_available()) return sha256_blocks_x86;
#elif defined(__aarch64__)
  if (sha256_arm_available()) return sha256_blocks_arm;
#endif
  return sha256_blocks_portable;
}

void sha256_begin(Sha256* hash, Sha256Blocks blocks) {
  // First 32 bits of the fractional parts of the square roots of the first 8 primes.
  static const uint32_t initial[8] = {
      0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
      0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u,
  };
  hash->blocks = blocks;
  hash->nbytes = 0;
  std::memcpy(hash->state, initial, sizeof initial);
}

void sha256_add(Sha256* hash, const void* data, size_t nbytes) {
  const auto* from = static_cast<const uint8_t*>(data);
  size_t filled = hash->nbytes & 63;
  hash->nbytes += nbytes;
  if (filled > 0) {
    const size_t part = nbytes < 64 - filled ? nbytes : 64 - filled;
    std::memcpy(hash->pending + filled, from, part);
    from += part, nbytes -= part, filled += part;
    if (filled < 64) return;
    hash->blocks(hash->state, hash->pending, 1);
  }
  hash->blocks(hash->state, from, nbytes / 64);
  if ((nbytes & 63) > 0) std::memcpy(hash->pending, from + (nbytes & ~size_t{63}), nbytes & 63);
}

void sha256_end(Sha256* hash, uint8_t digest[32]) {
  const uint64_t bits = hash->nbytes * 8;
  size_t filled = hash->nbytes & 63;
  hash->pending[filled++] = 0x80;
  if (filled > 56) {
    std::memset(hash->pending + filled, 0, 64 - filled);
    hash->blocks(hash->state, hash->pending, 1);
    filled = 0;
  }
  std::memset(hash->pending + filled, 0, 56 - filled);
  store_be64(hash->pending + 56, bits);
  hash->blocks(hash->state, hash->pending, 1);
  for (size_t i = 0; i < 8; ++i) {
    const uint32_t word = __builtin_bswap32(hash->state[i]);
    std::memcpy(digest + 4 * i, &word, 4);
  }
}

void sha256(Sha256Blocks blocks, const void* data, size_t nbytes, uint8_t digest[32]) {
  Sha256 hash;
  sha256_begin(&hash, blocks);
  sha256_add(&hash, data, nbytes);
  sha256_end(&hash, digest);
}

}  // namespace ingot::loader
