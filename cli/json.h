// JSON in and out, with the library's exceptions kept inside.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ingot::cli {

using Json = nlohmann::ordered_json;  // keys stay in the order in which they were set

// Fails with Malformed, naming line and column.
[[nodiscard]] Result<Json> parse_json(std::string_view text, const std::string& file);

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
