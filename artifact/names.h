// Names inside an artifact and names of files made from them.
//
// The format's alphabet is A-Z a-z 0-9 _ . : / - + %. Any other byte, and `%` itself, is written as
// `%` and two upper-case hexadecimal digits, so the original can be read back. What is then longer
// than 255 bytes is cut and ends in `%-` and 32 hexadecimal digits of the original's SHA-256; the
// manifest keeps such originals.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ingot::artifact {

// Total: every string has an encoded name of 1..255 bytes. The empty one becomes `%-`.
[[nodiscard]] std::string encode_name(std::string_view original);

// The original; nothing if `encoded` was cut or is not an encoded name.
[[nodiscard]] std::optional<std::string> decode_name(std::string_view encoded);

// A possible stored name: 1..255 bytes of the alphabet. Does not look at `%` sequences.
[[nodiscard]] bool is_stored_name(std::string_view name);

// Stem of the file that holds a slot: bytes other than A-Z a-z 0-9 . _ - become `_`; longer than
// 200 bytes is cut and ends in `-` and 32 hexadecimal digits of the original's SHA-256.
[[nodiscard]] std::string file_stem(std::string_view original);

// The stems of several slots that go into one folder. Unsupported if two are equal.
[[nodiscard]] Result<std::vector<std::string>> file_stems(std::span<const std::string> originals);

// A product made from a model's name: lower case, other characters than a-z 0-9 - . become `-`, at
// most 32; "model" if nothing is left.
[[nodiscard]] std::string product_name(std::string_view name);

// 1..32 characters of a-z 0-9 - .
[[nodiscard]] bool is_product_name(std::string_view name);

}  // namespace ingot::artifact
