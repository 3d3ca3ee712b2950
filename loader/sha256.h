// SHA-256 (FIPS 180-4), with the processor's instructions where it has them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot::loader {

// Processes `count` blocks of 64 bytes.
using Sha256Blocks = void (*)(uint32_t state[8], const uint8_t* data, size_t count);

void sha256_blocks_portable(uint32_t state[8], const uint8_t* data, size_t count);

// The fastest implementation this processor can run. Asks the processor on every call and keeps
// nothing, so that there is no global state to race on; callers keep the answer.
Sha256Blocks sha256_select();

struct Sha256 {
  Sha256Blocks blocks;
  uint32_t state[8];
  uint64_t nbytes;
  uint8_t pending[64];
};

void sha256_begin(Sha256* hash, Sha256Blocks blocks);
void sha256_add(Sha256* hash, const void* data, size_t nbytes);
void sha256_end(Sha256* hash, uint8_t digest[32]);

void sha256(Sha256Blocks blocks, const void* data, size_t nbytes, uint8_t digest[32]);

extern const uint32_t kSha256Constants[64];

#if defined(__x86_64__)
bool sha256_x86_available();
void sha256_blocks_x86(uint32_t state[8], const uint8_t* data, size_t count);
#elif defined(__aarch64__)
bool sha256_arm_available();
void sha256_blocks_arm(uint32_t state[8], const uint8_t* data, size_t count);
#endif

}  // namespace ingot::loader
