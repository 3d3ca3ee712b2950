// Names of the files that outputs go to, by the rule of `ingot run`.
#pragma once

#include <cstddef>

namespace ingot::replay {

constexpr size_t kStemSize = 256;

// The stem for a stored name: characters other than A-Z a-z 0-9 . _ - of the original become `_`;
// longer than 200 bytes is cut and ends in `-` and 32 hexadecimal digits of the original's SHA-256.
void file_stem(const char* stored, char (&stem)[kStemSize]);

}  // namespace ingot::replay
