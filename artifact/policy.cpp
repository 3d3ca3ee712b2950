#include "artifact/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "artifact/names.h"
#include "artifact/verify_signature.h"

namespace ingot::artifact {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxPolicyBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxKeys = 1024;  // the loader's limit as well

constexpr std::pair<std::string_view, IngotPurpose> kPurposes[] = {
    {"development", INGOT_PURPOSE_DEVELOPMENT},
    {"release", INGOT_PURPOSE_RELEASE},
    {"fleet", INGOT_PURPOSE_FLEET},
    {"supplier", INGOT_PURPOSE_SUPPLIER},
};

constexpr std::pair<std::string_view, IngotBuildClass> kBuildClasses[] = {
    {"development", INGOT_BUILD_CLASS_DEVELOPMENT},
    {"candidate", INGOT_BUILD_CLASS_CANDIDATE},
    {"release", INGOT_BUILD_CLASS_RELEASE},
};

bool from_hex(std::string_view text, std::span<std::uint8_t> bytes) {
  if (text.size() != 2 * bytes.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    int value = 0;
    if (c >= '0' && c <= '9') {
      value = c - '0';
    } else if (c >= 'a' && c <= 'f') {
      value = c - 'a' + 10;
    } else {
      return false;
    }
    bytes[i / 2] = static_cast<std::uint8_t>((bytes[i / 2] << 4) | value);
  }
  return true;
}

// Reads values out of the document and collects everything that is wrong with it. A place is
// written like "keys[2].purposes".
class PolicyReader {
 public:
  explicit PolicyReader(std::string shown) : shown_(std::move(shown)) {}

  Policy read(const Json& json) {
    Policy policy;
    if (!expect(json.is_object(), "", "an object")) return policy;
    check_keys(
        json, "",
        {"format", "keys", "threshold", "counted_purposes", "required_purposes", "build_classes",
         "product", "device_family", "lowest_counter", "denied_ids", "interface_sha256",
         "max_file_bytes", "max_arena_bytes", "require_references", "tolerance"});
    if (const Json* format = get(json, "", "format", true)) {
      expect(*format == "ingot-policy/1", "format", "\"ingot-policy/1\"");
    }
    if (const Json* keys = get(json, "", "keys", true)) read_keys(*keys, policy);
    if (const auto n = number(json, "", "threshold", 1, INGOT_MAX_SIGNATURES)) {
      policy.threshold = static_cast<std::uint32_t>(*n);
    }
    policy.counted_purposes = words(json, "", "counted_purposes", kPurposes);
    policy.required_purposes = words(json, "", "required_purposes", kPurposes);
    policy.build_classes = words(json, "", "build_classes", kBuildClasses);
    policy.product = product(json, "product");
    policy.device_family = product(json, "device_family");
    policy.lowest_counter = number(json, "", "lowest_counter").value_or(0);
    read_denied(json, policy);
    if (const auto text = string(json, "", "interface_sha256")) {
      Digest digest{};
      if (expect(from_hex(*text, digest), "interface_sha256", "64 hexadecimal digits a-f 0-9")) {
        policy.interface_sha256 = digest;
      }
    }
    policy.max_file_bytes = number(json, "", "max_file_bytes", 1, INGOT_MAX_CONTENT);
    policy.max_arena_bytes = number(json, "", "max_arena_bytes", 1, INGOT_MAX_ARENA_BYTES);
    policy.require_references = boolean(json, "", "require_references").value_or(false);
    read_tolerance(json, policy);
    check_reachable(policy);
    return policy;
  }

  void error(std::string_view place, std::string message, std::string hint = {}) {
    Diagnostic diagnostic;
    diagnostic.code = "bad-policy";
    diagnostic.file = shown_;
    diagnostic.node = std::string(place);
    diagnostic.message = std::move(message);
    diagnostic.hint = std::move(hint);
    failure_.diagnostics.push_back(std::move(diagnostic));
  }

  Failure& failure() { return failure_; }

 private:
  static std::string join(std::string_view place, std::string_view key) {
    return place.empty() ? std::string(key) : fmt::format("{}.{}", place, key);
  }

  bool expect(bool condition, std::string_view place, std::string_view wanted) {
    if (!condition) error(place, fmt::format("must be {}", wanted));
    return condition;
  }

  void check_keys(const Json& object, std::string_view place,
                  std::initializer_list<std::string_view> known) {
    for (const auto& [key, value] : object.items()) {
      if (std::ranges::find(known, key) != known.end()) continue;
      error(join(place, key), "this key is unknown");
    }
  }

  const Json* get(const Json& object, std::string_view place, const char* key, bool required) {
    const auto found = object.find(key);
    if (found != object.end()) return &*found;
    if (required) error(join(place, key), "this key is missing");
    return nullptr;
  }

  std::optional<std::uint64_t> number(const Json& object, std::string_view place, const char* key,
                                      std::uint64_t least = 0, std::uint64_t most = UINT64_MAX) {
    const Json* value = get(object, place, key, false);
    if (value == nullptr) return std::nullopt;
    const bool good = value->is_number_unsigned() && value->get<std::uint64_t>() >= least &&
                      value->get<std::uint64_t>() <= most;
    if (!expect(good, join(place, key), fmt::format("a whole number from {} to {}", least, most))) {
      return std::nullopt;
    }
    return value->get<std::uint64_t>();
  }

  std::optional<float> real(const Json& object, std::string_view place, const char* key,
                            double most) {
    const Json* value = get(object, place, key, false);
    if (value == nullptr) return std::nullopt;
    const bool good =
        value->is_number() && value->get<double>() >= 0 && value->get<double>() <= most;
    if (!expect(good, join(place, key), fmt::format("a number from 0 to {}", most))) {
      return std::nullopt;
    }
    return value->get<float>();
  }

  std::optional<bool> boolean(const Json& object, std::string_view place, const char* key) {
    const Json* value = get(object, place, key, false);
    if (value == nullptr || !expect(value->is_boolean(), join(place, key), "true or false")) {
      return std::nullopt;
    }
    return value->get<bool>();
  }

  std::optional<std::string> string(const Json& object, std::string_view place, const char* key) {
    const Json* value = get(object, place, key, false);
    if (value == nullptr || !expect(value->is_string(), join(place, key), "a string")) {
      return std::nullopt;
    }
    return value->get<std::string>();
  }

  std::optional<std::string> product(const Json& object, const char* key) {
    auto text = string(object, "", key);
    if (text && !expect(is_product_name(*text), key, "1 to 32 characters of a-z 0-9 - .")) {
      return std::nullopt;
    }
    return text;
  }

  template <typename T, std::size_t kCount>
  std::vector<T> words(const Json& object, std::string_view place, const char* key,
                       const std::pair<std::string_view, T> (&table)[kCount]) {
    std::vector<T> result;
    const Json* list = get(object, place, key, false);
    if (list == nullptr) return result;
    const std::string here = join(place, key);
    std::string wanted = "one of";
    for (const auto& row : table) wanted += fmt::format(" '{}'", row.first);
    if (!expect(list->is_array() && !list->empty(), here, "a list of words, at least one")) {
      return result;
    }
    for (std::size_t i = 0; i < list->size(); ++i) {
      const std::string item = fmt::format("{}[{}]", here, i);
      const auto* row = std::ranges::find_if(
          table, [&](const auto& candidate) { return (*list)[i] == candidate.first; });
      if (!expect(row != std::end(table), item, wanted)) continue;
      if (!expect(std::ranges::find(result, row->second) == result.end(), item,
                  "named only once")) {
        continue;
      }
      result.push_back(row->second);
    }
    return result;
  }

  void read_keys(const Json& keys, Policy& policy) {
    if (!expect(keys.is_array() && !keys.empty() && keys.size() <= kMaxKeys, "keys",
                fmt::format("a list of 1 to {} keys", kMaxKeys))) {
      return;
    }
    std::set<PublicKey> seen;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::string place = fmt::format("keys[{}]", i);
      const Json& json = keys[i];
      if (!expect(json.is_object(), place, "an object")) continue;
      check_keys(
          json, place,
          {"name", "public_key", "purposes", "lowest_counter", "highest_counter", "revoked"});
      TrustedKey key;
      key.name = string(json, place, "name").value_or("");
      if (const Json* value = get(json, place, "public_key", true)) {
        read_public_key(*value, join(place, "public_key"), key.key, seen);
      }
      key.purposes = words(json, place, "purposes", kPurposes);
      key.lowest_counter = number(json, place, "lowest_counter").value_or(0);
      key.highest_counter = number(json, place, "highest_counter", 1).value_or(UINT64_MAX);
      key.revoked = boolean(json, place, "revoked").value_or(false);
      if (key.lowest_counter > key.highest_counter) {
        error(join(place, "lowest_counter"), "is above highest_counter");
      }
      policy.keys.push_back(std::move(key));
    }
  }

  void read_public_key(const Json& value, const std::string& place, PublicKey& key,
                       std::set<PublicKey>& seen) {
    constexpr std::string_view kWanted = "64 hexadecimal digits a-f 0-9, or PEM text";
    if (!expect(value.is_string(), place, kWanted)) return;
    const std::string& text = value.get_ref<const std::string&>();
    if (text.starts_with("-----BEGIN ")) {
      auto parsed = parse_public_key(text, shown_);
      if (!parsed) {
        error(place, parsed.error().diagnostics.front().message);
        return;
      }
      key = *parsed;
    } else if (!expect(from_hex(text, key), place, kWanted)) {
      return;
    } else if (!check_public_key(key)) {
      error(place, "the key is weak: anybody could sign for it");
      return;
    }
    // The same key twice would let one holder reach a threshold of two.
    expect(seen.insert(key).second, place, "another key than those before it");
  }

  void read_denied(const Json& json, Policy& policy) {
    const Json* list = get(json, "", "denied_ids", false);
    if (list == nullptr || !expect(list->is_array(), "denied_ids", "a list of artifact ids")) {
      return;
    }
    for (std::size_t i = 0; i < list->size(); ++i) {
      Digest id{};
      const Json& item = (*list)[i];
      if (expect(item.is_string() && from_hex(item.get_ref<const std::string&>(), id),
                 fmt::format("denied_ids[{}]", i), "64 hexadecimal digits a-f 0-9")) {
        policy.denied_ids.push_back(id);
      }
    }
  }

  void read_tolerance(const Json& json, Policy& policy) {
    const Json* object = get(json, "", "tolerance", false);
    if (object == nullptr || !expect(object->is_object(), "tolerance", "an object")) return;
    constexpr std::string_view kPlace = "tolerance";
    check_keys(*object, kPlace, {"max_atol", "max_rtol", "max_ulp", "min_cosine"});
    constexpr double kMaxFloat = std::numeric_limits<float>::max();
    policy.tolerance.max_atol = real(*object, kPlace, "max_atol", kMaxFloat);
    policy.tolerance.max_rtol = real(*object, kPlace, "max_rtol", kMaxFloat);
    if (const auto ulp = number(*object, kPlace, "max_ulp", 1, UINT32_MAX)) {
      policy.tolerance.max_ulp = static_cast<std::uint32_t>(*ulp);
    }
    policy.tolerance.min_cosine = real(*object, kPlace, "min_cosine", 1);
  }

  // A policy that no artifact can meet is a mistake that should not wait for an artifact.
  void check_reachable(const Policy& policy) {
    const auto usable =
        std::ranges::count_if(policy.keys, [](const TrustedKey& key) { return !key.revoked; });
    if (!policy.keys.empty() && static_cast<std::uint64_t>(usable) < policy.threshold) {
      error("threshold", fmt::format("{} keys are needed, only {} are listed and not revoked",
                                     policy.threshold, usable));
    }
    for (const IngotPurpose purpose : policy.required_purposes) {
      const bool counted =
          policy.counted_purposes.empty() ||
          std::ranges::find(policy.counted_purposes, purpose) != policy.counted_purposes.end();
      if (!counted) {
        error("required_purposes",
              fmt::format("'{}' is required and not counted", purpose_name(purpose)));
      }
    }
  }

  std::string shown_;
  Failure failure_{ExitCode::Malformed, {}};
};

// A key that exists twice in one object has no meaning that everybody would agree on; the parser
// would keep the last one.
class DuplicateKeys {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    const auto level = static_cast<std::size_t>(depth);
    if (event == Json::parse_event_t::object_start) {
      if (level >= keys_.size()) keys_.resize(level + 1);
      keys_[level].clear();
    } else if (event == Json::parse_event_t::key && level >= 1 && level <= keys_.size()) {
      const std::string key = parsed.get<std::string>();
      if (!keys_[level - 1].insert(key).second) duplicates_.push_back(key);
    }
    return true;
  }

  [[nodiscard]] const std::vector<std::string>& duplicates() const { return duplicates_; }

 private:
  std::vector<std::set<std::string>> keys_;  // of the open object at each depth
  std::vector<std::string> duplicates_;
};

}  // namespace

Result<Policy> parse_policy(std::string_view text, const std::string& shown) {
  PolicyReader reader(shown);
  if (text.size() > kMaxPolicyBytes) {
    reader.error("", fmt::format("the policy has more than {} bytes", kMaxPolicyBytes));
    return std::unexpected(std::move(reader.failure()));
  }
  try {
    DuplicateKeys keys;
    const Json json = Json::parse(text, std::ref(keys));
    for (const std::string& key : keys.duplicates()) reader.error(key, "this key exists twice");
    Policy policy = reader.read(json);
    if (reader.failure().diagnostics.empty()) return policy;
  } catch (const Json::parse_error& error) {
    reader.error("", fmt::format("no JSON near byte {}", error.byte));
  } catch (const std::exception&) {
    reader.error("", "the policy cannot be read");
  }
  return std::unexpected(std::move(reader.failure()));
}

Policy policy_of_keys(const std::vector<PublicKey>& keys) {
  Policy policy;
  for (const PublicKey& key : keys) {
    TrustedKey trusted;
    trusted.key = key;
    policy.keys.push_back(std::move(trusted));
  }
  return policy;
}

std::optional<IngotPurpose> parse_purpose(std::string_view word) {
  for (const auto& [name, purpose] : kPurposes) {
    if (name == word) return purpose;
  }
  return std::nullopt;
}

std::string_view purpose_name(std::uint32_t purpose) {
  for (const auto& [name, number] : kPurposes) {
    if (static_cast<std::uint32_t>(number) == purpose) return name;
  }
  return "unknown";
}

std::optional<IngotBuildClass> parse_build_class(std::string_view word) {
  for (const auto& [name, build_class] : kBuildClasses) {
    if (name == word) return build_class;
  }
  return std::nullopt;
}

std::string_view build_class_name(std::uint32_t build_class) {
  for (const auto& [name, number] : kBuildClasses) {
    if (static_cast<std::uint32_t>(number) == build_class) return name;
  }
  return "unknown";
}

}  // namespace ingot::artifact
