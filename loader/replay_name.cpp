#include "loader/replay_name.h"

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "loader/sha256.h"

namespace ingot::replay {

namespace {

constexpr size_t kMaxStem = 200;
constexpr size_t kHashDigits = 32;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_plain(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

// The original's bytes, as far as the stored name has them. `hash`: digits of the original's
// SHA-256, if the name was cut and ends in them, else null.
size_t decode(const char* stored, char* original, const char** hash) {
  size_t length = 0;
  *hash = nullptr;
  for (const char* c = stored; *c != 0 && length + 1 < kStemSize; ++c) {
    if (c[0] == '%' && c[1] == '-') {
      if (std::strlen(c + 2) == kHashDigits) *hash = c + 2;
      break;
    }
    const int high = c[0] == '%' && c[1] != 0 ? hex_value(c[1]) : -1;
    const int low = high >= 0 ? hex_value(c[2]) : -1;
    original[length++] = low >= 0 ? static_cast<char>(high * 16 + low) : *c;
    if (low >= 0) c += 2;
  }
  return length;
}

void write_hash(const char* original, size_t length, char* digits) {
  uint8_t digest[32];
  loader::sha256(loader::sha256_select(), original, length, digest);
  for (size_t i = 0; i < kHashDigits / 2; ++i) {
    std::snprintf(digits + 2 * i, 3, "%02x", static_cast<unsigned>(digest[i]));
  }
}

}  // namespace

void file_stem(const char* stored, char (&stem)[kStemSize]) {
  char original[kStemSize];
  const char* hash = nullptr;
  size_t length = decode(stored, original, &hash);
  char digits[kHashDigits + 1] = "";
  const bool cut = hash != nullptr || length > kMaxStem;
  if (hash != nullptr) std::memcpy(digits, hash, kHashDigits);
  if (cut && hash == nullptr) write_hash(original, length, digits);
  if (cut && length > kMaxStem - 1 - kHashDigits) length = kMaxStem - 1 - kHashDigits;
  for (size_t i = 0; i < length; ++i) stem[i] = is_plain(original[i]) ? original[i] : '_';
  if (length == 0) stem[length++] = '_';
  stem[length] = 0;
  if (cut) std::snprintf(stem + length, kStemSize - length, "-%s", digits);
}

}  // namespace ingot::replay
