#include "cli/json.h"

#include <fmt/format.h>

namespace ingot::cli {
namespace {

std::unexpected<Failure> bad_member(const std::string& key, std::string_view what,
                                    const std::string& file) {
  return fail(ExitCode::Malformed, "bad-json", fmt::format("'{}' {}", key, what), file);
}

}  // namespace

std::string to_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_compact_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<std::string> string_member(const Json& object, const std::string& key,
                                  const std::string& file) {
  if (!object.is_object() || !object.contains(key)) return bad_member(key, "is missing", file);
  const Json& value = object[key];
  if (!value.is_string()) return bad_member(key, "is not a text", file);
  return value.get<std::string>();
}

Result<std::int64_t> int_member(const Json& object, const std::string& key,
                                const std::string& file) {
  if (!object.is_object() || !object.contains(key)) return bad_member(key, "is missing", file);
  const Json& value = object[key];
  if (!value.is_number_integer()) return bad_member(key, "is not an integer", file);
  return value.get<std::int64_t>();
}

}  // namespace ingot::cli
