// JSON out, and members of what came in; base/strict_json.h reads.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/strict_json.h"

namespace ingot::cli {

// Indented, ends in a line break; bytes that are not UTF-8 are replaced.
[[nodiscard]] std::string to_text(const Json& json);
// On one line, without a line break.
[[nodiscard]] std::string to_compact_text(const Json& json);

// Members of an object that a file should have; Malformed if one is missing or of another type.
[[nodiscard]] Result<std::string> string_member(const Json& object, const std::string& key,
                                                const std::string& file);
[[nodiscard]] Result<std::int64_t> int_member(const Json& object, const std::string& key,
                                              const std::string& file);

}  // namespace ingot::cli
