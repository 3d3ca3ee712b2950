#include "loader/replay_key.h"

#include <cstring>

namespace ingot::replay {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

int base64_digit(uint8_t c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

// Decodes up to `size` bytes and stops at the first character that is neither digit nor white.
size_t decode_base64(const uint8_t* text, size_t length, uint8_t* bytes, size_t size) {
  size_t count = 0;
  uint32_t pending = 0;
  int bits = 0;
  for (size_t i = 0; i < length && count < size; ++i) {
    if (text[i] == '\n' || text[i] == '\r' || text[i] == ' ') continue;
    const int digit = base64_digit(text[i]);
    if (digit < 0) break;
    pending = pending << 6 | static_cast<uint32_t>(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes[count++] = static_cast<uint8_t>(pending >> bits);
  }
  return count;
}

}  // namespace

bool key_from_hex(const char* text, uint8_t key[32]) {
  for (int i = 0; i < 32; ++i) {
    const int high = hex_digit(text[2 * i]);
    const int low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);
    if (low < 0) return false;
    key[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return text[64] == 0;
}

bool key_from_file(const uint8_t* data, size_t nbytes, uint8_t key[32]) {
  if (nbytes == 32) {
    std::memcpy(key, data, 32);
    return true;
  }
  static const char begin[] = "-----BEGIN PUBLIC KEY-----";
  constexpr size_t begin_length = sizeof begin - 1;
  if (nbytes < begin_length || std::memcmp(data, begin, begin_length) != 0) return false;
  // SEQUENCE { SEQUENCE { OID 1.3.101.112 } BIT STRING of 32 bytes }
  static const uint8_t prefix[12] = {0x30, 0x2A, 0x30, 0x05, 0x06, 0x03,
                                     0x2B, 0x65, 0x70, 0x03, 0x21, 0x00};
  uint8_t info[45];
  const size_t length =
      decode_base64(data + begin_length, nbytes - begin_length, info, sizeof info);
  if (length != 44 || std::memcmp(info, prefix, sizeof prefix) != 0) return false;
  std::memcpy(key, info + sizeof prefix, 32);
  return true;
}

}  // namespace ingot::replay
