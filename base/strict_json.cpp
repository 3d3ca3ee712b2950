#include "base/strict_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/check.h"

namespace ingot {
namespace {

constexpr std::size_t kLargestFile = std::size_t{1} << 20;

// The library's text without its "[json.exception.parse_error.101] " in front.
std::string library_message(const char* what) {
  std::string_view text = what;
  const std::size_t end = text.find("] ");
  if (text.starts_with("[json.") && end != std::string_view::npos) text.remove_prefix(end + 2);
  return std::string(text);
}

}  // namespace

Result<Json> parse_json(std::string_view text, const std::string& file) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  std::string repeated;
  const auto watch = [&](int /*depth*/, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end && !keys.empty()) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
      if (repeated.empty()) repeated = value.get<std::string>();
    }
    return true;
  };
  try {
    Json json = Json::parse(text, watch);
    if (!repeated.empty()) {
      return fail(ExitCode::Malformed, "repeated-key",
                  fmt::format("key '{}' is given twice in one object", repeated), file);
    }
    return json;
  } catch (const Json::exception& error) {
    return fail(ExitCode::Malformed, "bad-json", library_message(error.what()), file);
  }
}

Result<Json> parse_json_file(std::string_view text, const std::string& file) {
  if (text.size() > kLargestFile) {
    return fail(ExitCode::Malformed, "bad-json",
                fmt::format("{} bytes are too many for such a file", text.size()), file);
  }
  INGOT_ASSIGN(Json json, parse_json(text, file));
  if (!json.is_object()) {
    return fail(ExitCode::Malformed, "bad-json",
                fmt::format("expected an object, found {}", json_kind(json)), file);
  }
  return json;
}

void JsonProblems::add(const std::string& place, std::string code, std::string message,
                       std::string hint) {
  Diagnostic diagnostic;
  diagnostic.code = std::move(code);
  diagnostic.file = file_;
  diagnostic.node = place;
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  diagnostics_.push_back(std::move(diagnostic));
}

std::unexpected<Failure> JsonProblems::failure() const {
  INGOT_CHECK(!diagnostics_.empty(), "a failure without a reason");
  return std::unexpected(Failure{ExitCode::Malformed, diagnostics_});
}

JsonObject::JsonObject(const Json& value, std::string place, JsonProblems& problems)
    : place_(std::move(place)), problems_(problems) {
  if (value.is_object()) {
    object_ = &value;
  } else {
    problems_.add(place_, "wrong-type",
                  fmt::format("expected an object, found {}", json_kind(value)));
  }
}

std::string JsonObject::place_of(std::string_view key) const {
  return place_.empty() ? std::string(key) : fmt::format("{}.{}", place_, key);
}

void JsonObject::problem(std::string_view key, std::string message, std::string hint) {
  problems_.add(place_of(key), "bad-value", std::move(message), std::move(hint));
}

const Json* JsonObject::find(std::string_view key) {
  if (std::ranges::find(known_, key) == known_.end()) known_.emplace_back(key);
  if (object_ == nullptr) return nullptr;
  const auto entry = object_->find(key);
  return entry == object_->end() ? nullptr : &*entry;
}

const Json* JsonObject::require(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr && object_ != nullptr) {
    problems_.add(place_, "missing-key", fmt::format("key '{}' is missing", key));
  }
  return value;
}

std::string JsonObject::text(std::string_view key) {
  return require(key) == nullptr ? std::string() : text_or(key, "");
}

std::string JsonObject::text_or(std::string_view key, std::string_view absent) {
  std::optional<std::string> found = optional_text(key);
  if (!found) return std::string(absent);
  if (found->empty()) problem(key, "must not be empty");
  return *std::move(found);
}

std::int64_t JsonObject::integer(std::string_view key, std::int64_t min, std::int64_t max) {
  return require(key) == nullptr ? min : integer_or(key, min, min, max);
}

std::int64_t JsonObject::integer_or(std::string_view key, std::int64_t absent, std::int64_t min,
                                    std::int64_t max) {
  const Json* value = find(key);
  if (value == nullptr) return absent;
  if (!value->is_number_integer()) {
    problem(key, fmt::format("expected a whole number, found {}", json_kind(*value)));
    return absent;
  }
  const bool too_large =
      value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(max);
  if (too_large || value->get<std::int64_t>() < min || value->get<std::int64_t>() > max) {
    problem(key, fmt::format("{} is outside {}..{}", value->dump(), min, max));
    return absent;
  }
  return value->get<std::int64_t>();
}

std::optional<std::string> JsonObject::optional_text(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) {
    problem(key, fmt::format("expected text, found {}", json_kind(*value)));
    return std::nullopt;
  }
  return value->get<std::string>();
}

std::optional<std::uint64_t> JsonObject::optional_count(std::string_view key, std::uint64_t min,
                                                        std::uint64_t max) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const bool good = value->is_number_unsigned() && value->get<std::uint64_t>() >= min &&
                    value->get<std::uint64_t>() <= max;
  if (!good) {
    problem(key, fmt::format("expected a whole number in {}..{}", min, max));
    return std::nullopt;
  }
  return value->get<std::uint64_t>();
}

std::optional<double> JsonObject::optional_real(std::string_view key, double min, double max) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const bool good =
      value->is_number() && value->get<double>() >= min && value->get<double>() <= max;
  if (!good) {
    problem(key, fmt::format("expected a number in {}..{}", min, max));
    return std::nullopt;
  }
  return value->get<double>();
}

std::optional<bool> JsonObject::optional_flag(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) {
    problem(key, fmt::format("expected true or false, found {}", json_kind(*value)));
    return std::nullopt;
  }
  return value->get<bool>();
}

void JsonObject::finish() {
  if (object_ == nullptr) return;
  for (const auto& [key, value] : object_->items()) {
    if (std::ranges::find(known_, key) != known_.end()) continue;
    problems_.add(place_, "unknown-key", fmt::format("unknown key '{}'", key),
                  fmt::format("keys known here: {}", fmt::join(known_, ", ")));
  }
}

std::string_view json_kind(const Json& value) {
  switch (value.type()) {
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "an array";
    case Json::value_t::string: return "text";
    case Json::value_t::boolean: return "true or false";
    case Json::value_t::null: return "null";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float: return "a number";
    case Json::value_t::binary:
    case Json::value_t::discarded: break;
  }
  return "nothing";
}

}  // namespace ingot
