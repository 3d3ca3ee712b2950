// SHA-256 with the SHA extensions of x86-64. Empty elsewhere.
#include "loader/sha256.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

namespace ingot::loader {

namespace {

// The four message vectors rotate through these roles; `i` counts groups of four rounds.
__attribute__((target("sha,sse4.1"), always_inline)) inline void four_rounds(
    int i, __m128i& w0, __m128i w1, __m128i w2, __m128i w3, __m128i& abef, __m128i& cdgh) {
  if (i >= 4) {
    // w0 holds words 16 rounds back, w1 12, w2 8, w3 4.
    const __m128i partial = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4));
    w0 = _mm_sha256msg2_epu32(partial, w3);
  }
  const __m128i constants =
      _mm_load_si128(reinterpret_cast<const __m128i*>(kSha256Constants + 4 * i));
  const __m128i sum = _mm_add_epi32(w0, constants);
  cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
  abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
}

}  // namespace

bool sha256_x86_available() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return false;
  const bool sse41_ssse3 = (c & (1u << 19)) != 0 && (c & (1u << 9)) != 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  return sse41_ssse3 && (b & (1u << 29)) != 0;
}

__attribute__((target("sha,sse4.1"))) void sha256_blocks_x86(uint32_t state[8], const uint8_t* data,
                                                             size_t count) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  auto* vectors = reinterpret_cast<__m128i*>(state);
  // Memory order is a b c d, e f g h; the instructions want a b e f and c d g h, high word first.
  const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(vectors), 0xB1);
  const __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128(vectors + 1), 0x1B);
  __m128i abef = _mm_alignr_epi8(badc, hgfe, 8);
  __m128i cdgh = _mm_blend_epi16(hgfe, badc, 0xF0);
  for (; count > 0; --count, data += 64) {
    const __m128i abef_before = abef;
    const __m128i cdgh_before = cdgh;
    const auto* from = reinterpret_cast<const __m128i*>(data);
    __m128i w0 = _mm_shuffle_epi8(_mm_loadu_si128(from), swap);
    __m128i w1 = _mm_shuffle_epi8(_mm_loadu_si128(from + 1), swap);
    __m128i w2 = _mm_shuffle_epi8(_mm_loadu_si128(from + 2), swap);
    __m128i w3 = _mm_shuffle_epi8(_mm_loadu_si128(from + 3), swap);
    for (int i = 0; i < 16; i += 4) {
      four_rounds(i, w0, w1, w2, w3, abef, cdgh);
      four_rounds(i + 1, w1, w2, w3, w0, abef, cdgh);
      four_rounds(i + 2, w2, w3, w0, w1, abef, cdgh);
      four_rounds(i + 3, w3, w0, w1, w2, abef, cdgh);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(vectors, _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(vectors + 1, _mm_alignr_epi8(dchg, feba, 8));
}

}  // namespace ingot::loader

#endif
