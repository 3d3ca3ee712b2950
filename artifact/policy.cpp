#include "artifact/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "artifact/names.h"
#include "artifact/verify_signature.h"
#include "base/hex.h"
#include "base/strict_json.h"

namespace ingot::artifact {

namespace {

constexpr std::string_view kFormat = "ingot-policy/1";

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

constexpr std::string_view kDigestForm = "64 hexadecimal digits a-f 0-9";

// One spelling, so that two lists can be compared as text.
bool lower_hex(std::string_view text, std::span<std::uint8_t> bytes) {
  return from_hex(text, bytes) && to_hex(bytes) == text;
}

// Words of a table, each once; empty if the key is missing.
template <typename T, std::size_t kCount>
std::vector<T> words(JsonObject& object, const char* key,
                     const std::pair<std::string_view, T> (&table)[kCount]) {
  std::vector<T> result;
  const Json* list = object.find(key);
  if (list == nullptr) return result;
  if (!list->is_array() || list->empty()) {
    object.problem(key, "expected a list of words, at least one");
    return result;
  }
  std::string wanted = "expected one of";
  for (const auto& row : table) wanted += fmt::format(" '{}'", row.first);
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string item = fmt::format("{}[{}]", key, i);
    const auto* row = std::ranges::find_if(
        table, [&](const auto& candidate) { return (*list)[i] == candidate.first; });
    if (row == std::end(table)) {
      object.problem(item, wanted);
    } else if (std::ranges::find(result, row->second) != result.end()) {
      object.problem(item, "is named twice");
    } else {
      result.push_back(row->second);
    }
  }
  return result;
}

std::optional<std::string> product(JsonObject& object, const char* key) {
  auto text = object.optional_text(key);
  if (text && !is_product_name(*text)) {
    object.problem(key, "expected 1 to 32 characters of a-z 0-9 - .");
  }
  return text;
}

void read_public_key(JsonObject& object, std::set<PublicKey>& seen, PublicKey& key) {
  constexpr const char* kKey = "public_key";
  const std::string text = object.text(kKey);
  if (text.empty()) return;
  if (text.starts_with("-----BEGIN ")) {
    auto parsed = parse_public_key(text, {});
    if (!parsed) return object.problem(kKey, parsed.error().diagnostics.front().message);
    key = *parsed;
  } else if (!lower_hex(text, key)) {
    return object.problem(kKey, fmt::format("expected {}, or PEM text", kDigestForm));
  } else if (!check_public_key(key)) {
    return object.problem(kKey, "the key is weak: anybody could sign for it");
  }
  // The same key twice would let one holder reach a threshold of two.
  if (!seen.insert(key).second) object.problem(kKey, "is also the key of another entry");
}

TrustedKey read_key(JsonObject& object, std::set<PublicKey>& seen) {
  TrustedKey key;
  key.name = object.optional_text("name").value_or("");
  read_public_key(object, seen, key.key);
  key.purposes = words(object, "purposes", kPurposes);
  key.lowest_counter = object.optional_count("lowest_counter", 0, UINT64_MAX).value_or(0);
  key.highest_counter =
      object.optional_count("highest_counter", 1, UINT64_MAX).value_or(UINT64_MAX);
  key.revoked = object.optional_flag("revoked").value_or(false);
  if (key.lowest_counter > key.highest_counter) {
    object.problem("lowest_counter", "is above highest_counter");
  }
  object.finish();
  return key;
}

void read_keys(JsonObject& root, JsonProblems& problems, Policy& policy) {
  const Json* keys = root.require("keys");
  if (keys == nullptr) return;
  if (!keys->is_array() || keys->empty() || keys->size() > INGOT_MAX_KEYS) {
    return root.problem("keys", fmt::format("expected a list of 1 to {} keys", INGOT_MAX_KEYS));
  }
  std::set<PublicKey> seen;
  for (std::size_t i = 0; i < keys->size(); ++i) {
    JsonObject object((*keys)[i], fmt::format("keys[{}]", i), problems);
    policy.keys.push_back(read_key(object, seen));
  }
}

void read_denied(JsonObject& root, Policy& policy) {
  const Json* list = root.find("denied_ids");
  if (list == nullptr) return;
  if (!list->is_array()) return root.problem("denied_ids", "expected a list of artifact ids");
  for (std::size_t i = 0; i < list->size(); ++i) {
    Digest id{};
    const Json& item = (*list)[i];
    if (item.is_string() && lower_hex(item.get_ref<const std::string&>(), id)) {
      policy.denied_ids.push_back(id);
    } else {
      root.problem(fmt::format("denied_ids[{}]", i), fmt::format("expected {}", kDigestForm));
    }
  }
}

void read_tolerance(JsonObject& root, JsonProblems& problems, Policy& policy) {
  const Json* json = root.find("tolerance");
  if (json == nullptr) return;
  JsonObject object(*json, "tolerance", problems);
  constexpr double kMaxFloat = std::numeric_limits<float>::max();
  const auto real = [&](const char* key, double most) -> std::optional<float> {
    const std::optional<double> value = object.optional_real(key, 0, most);
    return value ? std::optional(static_cast<float>(*value)) : std::nullopt;
  };
  policy.tolerance.max_atol = real("max_atol", kMaxFloat);
  policy.tolerance.max_rtol = real("max_rtol", kMaxFloat);
  if (const auto ulp = object.optional_count("max_ulp", 1, UINT32_MAX)) {
    policy.tolerance.max_ulp = static_cast<std::uint32_t>(*ulp);
  }
  policy.tolerance.min_cosine = real("min_cosine", 1);
  object.finish();
}

// A policy that no artifact can meet is a mistake that should not wait for an artifact.
void check_reachable(JsonObject& root, const Policy& policy) {
  const auto usable =
      std::ranges::count_if(policy.keys, [](const TrustedKey& key) { return !key.revoked; });
  if (!policy.keys.empty() && static_cast<std::uint64_t>(usable) < policy.threshold) {
    root.problem("threshold", fmt::format("{} keys are needed, only {} are listed and not revoked",
                                          policy.threshold, usable));
  }
  for (const IngotPurpose purpose : policy.required_purposes) {
    const bool counted =
        policy.counted_purposes.empty() ||
        std::ranges::find(policy.counted_purposes, purpose) != policy.counted_purposes.end();
    if (!counted) {
      root.problem("required_purposes",
                   fmt::format("'{}' is required and not counted", purpose_name(purpose)));
    }
  }
}

Policy read_policy(JsonObject& root, JsonProblems& problems) {
  Policy policy;
  if (const std::string format = root.text("format"); !format.empty() && format != kFormat) {
    root.problem("format", fmt::format("'{}' is not '{}'", format, kFormat));
  }
  read_keys(root, problems, policy);
  if (const auto threshold = root.optional_count("threshold", 1, INGOT_MAX_SIGNATURES)) {
    policy.threshold = static_cast<std::uint32_t>(*threshold);
  }
  policy.counted_purposes = words(root, "counted_purposes", kPurposes);
  policy.required_purposes = words(root, "required_purposes", kPurposes);
  policy.build_classes = words(root, "build_classes", kBuildClasses);
  policy.product = product(root, "product");
  policy.device_family = product(root, "device_family");
  policy.lowest_counter = root.optional_count("lowest_counter", 0, UINT64_MAX).value_or(0);
  read_denied(root, policy);
  if (const auto text = root.optional_text("interface_sha256")) {
    Digest& digest = policy.interface_sha256.emplace();
    if (!lower_hex(*text, digest)) {
      root.problem("interface_sha256", fmt::format("expected {}", kDigestForm));
    }
  }
  policy.max_file_bytes = root.optional_count("max_file_bytes", 1, INGOT_MAX_CONTENT);
  policy.max_arena_bytes = root.optional_count("max_arena_bytes", 1, INGOT_MAX_ARENA_BYTES);
  policy.require_references = root.optional_flag("require_references").value_or(false);
  read_tolerance(root, problems, policy);
  root.finish();
  check_reachable(root, policy);
  return policy;
}

}  // namespace

Result<Policy> parse_policy(std::string_view text, const std::string& shown) {
  INGOT_ASSIGN(const Json json, parse_json_file(text, shown));
  JsonProblems problems(shown);
  JsonObject root(json, "", problems);
  Policy policy = read_policy(root, problems);
  if (!problems.empty()) return problems.failure();
  return policy;
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
