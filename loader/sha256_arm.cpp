// SHA-256 with the cryptographic extension of ARMv8. Empty elsewhere.
// Compiled with that extension enabled; only called after AT_HWCAP showed it.
#include "loader/sha256.h"

#if defined(__aarch64__)

#include <arm_neon.h>
#include <sys/auxv.h>

namespace ingot::loader {

namespace {

inline void four_rounds(int i, uint32x4_t& w0, uint32x4_t w1, uint32x4_t w2, uint32x4_t w3,
                        uint32x4_t& abcd, uint32x4_t& efgh) {
  if (i >= 4) w0 = vsha256su1q_u32(vsha256su0q_u32(w0, w1), w2, w3);
  const uint32x4_t sum = vaddq_u32(w0, vld1q_u32(kSha256Constants + 4 * i));
  const uint32x4_t abcd_before = abcd;
  abcd = vsha256hq_u32(abcd, efgh, sum);
  efgh = vsha256h2q_u32(efgh, abcd_before, sum);
}

inline uint32x4_t load_words(const uint8_t* data) {
  return vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(data)));
}

}  // namespace

bool sha256_arm_available() {
  constexpr unsigned long sha2 = 1ul << 6;  // HWCAP_SHA2
  return (getauxval(AT_HWCAP) & sha2) != 0;
}

void sha256_blocks_arm(uint32_t state[8], const uint8_t* data, size_t count) {
  uint32x4_t abcd = vld1q_u32(state);
  uint32x4_t efgh = vld1q_u32(state + 4);
  for (; count > 0; --count, data += 64) {
    const uint32x4_t abcd_before = abcd;
    const uint32x4_t efgh_before = efgh;
    uint32x4_t w0 = load_words(data);
    uint32x4_t w1 = load_words(data + 16);
    uint32x4_t w2 = load_words(data + 32);
    uint32x4_t w3 = load_words(data + 48);
    for (int i = 0; i < 16; i += 4) {
      four_rounds(i, w0, w1, w2, w3, abcd, efgh);
      four_rounds(i + 1, w1, w2, w3, w0, abcd, efgh);
      four_rounds(i + 2, w2, w3, w0, w1, abcd, efgh);
      four_rounds(i + 3, w3, w0, w1, w2, abcd, efgh);
    }
    abcd = vaddq_u32(abcd, abcd_before);
    efgh = vaddq_u32(efgh, efgh_before);
  }
  vst1q_u32(state, abcd);
  vst1q_u32(state + 4, efgh);
}

}  // namespace ingot::loader

#endif
