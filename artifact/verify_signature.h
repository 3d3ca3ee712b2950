// Acceptance of signatures: one strict rule for single ones, and the policy over all of them.
//
// Libraries differ in which Ed25519 signatures they accept. The rule here and in the loader:
//   1. S < L;
//   2. the public key and R are canonical encodings of curve points;
//   3. neither has small order;
//   4. encode([S]B - [k]A) equals R (no cofactor).
// The first three are checked here, the fourth by OpenSSL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "artifact/decode.h"
#include "artifact/keys.h"
#include "artifact/policy.h"
#include "base/result.h"

namespace ingot::artifact {

// E_KEY_WEAK if the key is no canonical point or has small order.
[[nodiscard]] Result<void> check_public_key(const PublicKey& key);

[[nodiscard]] bool verify_signature(const PublicKey& key, std::span<const std::byte> message,
                                    std::span<const std::uint8_t, 64> signature);

// The 640 bytes that an entry signs: domain, first half of the entry, header.
[[nodiscard]] std::vector<std::byte> signed_message(const IngotHeader& header,
                                                    const IngotSignatureEntry& entry);

// A signature that the policy counts.
struct CountedSignature {
  std::size_t key = 0;  // index into Policy::keys
  std::uint32_t purpose = 0;
};

// Step 7 of the order of validation: every signature by a known key is good, none is by a revoked
// key, no key signed twice, and those that count reach threshold and purposes. `detached` may be
// null. Failures are those of the format (E_UNSIGNED, E_KEY_UNKNOWN, E_SIG_INVALID, ...).
[[nodiscard]] Result<std::vector<CountedSignature>> verify_signatures(const Decoded& artifact,
                                                                      const Detached* detached,
                                                                      const Policy& policy);

}  // namespace ingot::artifact
