// Ed25519, verification only, by the strict rule of the artifact format.
//
// A signature (R, S) of a message by key A is accepted if and only if
//   1. S is below the group order L;
//   2. A and R are canonical encodings of curve points (y below p, no sign bit where x is 0);
//   3. neither A nor R has small order (8 times the point is not the identity);
//   4. [S]B - [k]A encodes to the 32 bytes of R, with k = SHA-512(R || A || message) mod L.
// There is no cofactor in step 4. Everything here is public, so nothing is constant in time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot::loader {

bool ed25519_verify(const uint8_t public_key[32], const void* message, size_t nbytes,
                    const uint8_t signature[64]);

// Rules 2 and 3 for a key: fit for a trust store.
bool ed25519_key_valid(const uint8_t public_key[32]);

}  // namespace ingot::loader
