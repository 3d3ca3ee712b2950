// Signing an artifact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "artifact/format.h"
#include "artifact/keys.h"
#include "base/result.h"

namespace ingot::artifact {

struct SignOptions {
  IngotPurpose purpose = INGOT_PURPOSE_DEVELOPMENT;
  std::uint64_t signed_at = 0;  // seconds since 1970; 0: not stated
};

// SOURCE_DATE_EPOCH, or 0 where it is not set. Usage if it is no number.
[[nodiscard]] Result<std::uint64_t> signed_at_from_environment();

// The artifact with one more entry in its signature block. The artifact must be intact (decode.h).
// Deterministic: signing again with the same key and options gives the same bytes, and a file that
// already has exactly this entry is returned as it is. Usage if the key has signed with other
// options (a key counts once, so a second entry would only spoil the file); Unsupported if there
// are eight entries.
[[nodiscard]] Result<std::vector<std::byte>> add_signature(std::vector<std::byte> artifact,
                                                           const PrivateKey& key,
                                                           const SignOptions& options);

// A detached signature file for the artifact. With `existing`, the content of such a file, the
// entry is added to it; E_DETACHED_MISMATCH if that is for another artifact.
[[nodiscard]] Result<std::vector<std::byte>> sign_detached(
    std::span<const std::byte> artifact, const PrivateKey& key, const SignOptions& options,
    std::span<const std::byte> existing = {});

}  // namespace ingot::artifact
