// Ed25519 keys of the tool: made, and read as PEM.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ingot::artifact {

using PublicKey = std::array<std::uint8_t, 32>;
using KeyId = std::array<std::uint8_t, 16>;

// A signing key. Copies are counted on the fingers, and each wipes itself.
struct PrivateKey {
  std::array<std::uint8_t, 32> seed{};
  PublicKey public_key{};

  PrivateKey() = default;
  PrivateKey(const PrivateKey&) = default;
  PrivateKey& operator=(const PrivateKey&) = default;
  ~PrivateKey();
};

// Selects a key of a trust store: first 16 bytes of SHA-256(tag || u32 1 || key).
[[nodiscard]] KeyId key_id(const PublicKey& key);

// The key with this 32-byte seed. Total.
[[nodiscard]] PrivateKey key_from_seed(std::span<const std::uint8_t, 32> seed);

// A new key from the system's random numbers.
[[nodiscard]] Result<PrivateKey> generate_key();

// PKCS#8 "PRIVATE KEY" and SubjectPublicKeyInfo "PUBLIC KEY".
[[nodiscard]] Result<std::string> private_key_pem(const PrivateKey& key);
[[nodiscard]] Result<std::string> public_key_pem(const PublicKey& key);

// Reads PEM text. `shown` names its source in diagnostics. Malformed for anything but one Ed25519
// key of the asked kind, also for encrypted keys: nobody is ever asked for a password.
[[nodiscard]] Result<PrivateKey> parse_private_key(std::string_view pem, const std::string& shown);
// Also refuses weak keys (E_KEY_WEAK, NotTrusted): anybody could sign for them.
[[nodiscard]] Result<PublicKey> parse_public_key(std::string_view pem, const std::string& shown);

// The same from files. Io if the file cannot be read.
[[nodiscard]] Result<PrivateKey> read_private_key(const std::string& path);
[[nodiscard]] Result<PublicKey> read_public_key(const std::string& path);

}  // namespace ingot::artifact
