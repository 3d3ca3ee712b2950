// Public keys as people have them: hexadecimal, 32 raw bytes, or a PEM file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot::replay {

// 64 hexadecimal digits.
bool key_from_hex(const char* text, uint8_t key[32]);

// 32 raw bytes, or a PEM "PUBLIC KEY" that holds an Ed25519 SubjectPublicKeyInfo.
bool key_from_file(const uint8_t* data, size_t nbytes, uint8_t key[32]);

}  // namespace ingot::replay
