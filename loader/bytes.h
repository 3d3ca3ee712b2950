// Small helpers shared by every file of the loader: unaligned loads and checked sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ingot::loader {

inline constexpr uint32_t kNone = 0xFFFFFFFFu;

template <typename T>
inline T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

inline uint32_t load_be32(const uint8_t* from) { return __builtin_bswap32(load<uint32_t>(from)); }
inline uint64_t load_be64(const uint8_t* from) { return __builtin_bswap64(load<uint64_t>(from)); }

inline void store_be64(uint8_t* to, uint64_t value) {
  value = __builtin_bswap64(value);
  std::memcpy(to, &value, sizeof value);
}

// The one addition and the one multiplication used on numbers from a file: false on overflow.
[[nodiscard]] inline bool checked_add(uint64_t a, uint64_t b, uint64_t* sum) {
  return !__builtin_add_overflow(a, b, sum);
}
[[nodiscard]] inline bool checked_mul(uint64_t a, uint64_t b, uint64_t* product) {
  return !__builtin_mul_overflow(a, b, product);
}

// offset + nbytes <= limit, without computing the sum.
inline bool inside(uint64_t offset, uint64_t nbytes, uint64_t limit) {
  return offset <= limit && nbytes <= limit - offset;
}

// value must have been checked to be far from 2^64.
inline constexpr uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

// Zero bytes only? Word by word: padding and reserved fields are long.
inline bool all_zero(const void* from, uint64_t nbytes) {
  const auto* bytes = static_cast<const uint8_t*>(from);
  uint64_t any = 0;
  for (; nbytes >= 8; nbytes -= 8, bytes += 8) any |= load<uint64_t>(bytes);
  for (; nbytes > 0; --nbytes) any |= *bytes++;
  return any == 0;
}

}  // namespace ingot::loader
