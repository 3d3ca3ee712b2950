// What a device or a release job demands of an artifact, read from JSON.
//
// docs/policy.schema.json describes the file; this reader is as strict: an unknown key, a wrong
// type, a number out of range is an error that names its place, and all of them are reported.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/digest.h"
#include "artifact/format.h"
#include "artifact/keys.h"
#include "base/result.h"

namespace ingot::artifact {

struct TrustedKey {
  std::string name;  // for people; may be empty
  PublicKey key{};
  std::vector<IngotPurpose> purposes;  // empty: all
  std::uint64_t lowest_counter = 0;
  std::uint64_t highest_counter = UINT64_MAX;
  bool revoked = false;
};

// Tolerances of reference vectors above these are refused. None: no ceiling of that kind.
struct ToleranceCeilings {
  std::optional<float> max_atol;
  std::optional<float> max_rtol;
  std::optional<std::uint32_t> max_ulp;
  std::optional<float> min_cosine;
};

// The default demands one valid signature of any purpose by one of `keys`.
struct Policy {
  std::vector<TrustedKey> keys;
  std::uint32_t threshold = 1;                  // distinct keys whose signatures count
  std::vector<IngotPurpose> counted_purposes;   // empty: all
  std::vector<IngotPurpose> required_purposes;  // each must be among those that count
  std::vector<IngotBuildClass> build_classes;   // empty: all
  std::optional<std::string> product;
  std::optional<std::string> device_family;
  std::uint64_t lowest_counter = 0;
  std::vector<Digest> denied_ids;
  std::optional<Digest> interface_sha256;
  std::optional<std::uint64_t> max_file_bytes;
  std::optional<std::uint64_t> max_arena_bytes;
  bool require_references = false;
  ToleranceCeilings tolerance;
};

// Malformed with every problem of `text`; `shown` names its source in diagnostics. A key is given
// as 64 hexadecimal digits or as PEM text.
[[nodiscard]] Result<Policy> parse_policy(std::string_view text, const std::string& shown);

// The policy of `verify --pub A --pub B` without a policy file: one signature by one of the keys.
[[nodiscard]] Policy policy_of_keys(const std::vector<PublicKey>& keys);

// "development" ... to its number and back; nothing for other words.
[[nodiscard]] std::optional<IngotPurpose> parse_purpose(std::string_view word);
[[nodiscard]] std::string_view purpose_name(std::uint32_t purpose);
[[nodiscard]] std::optional<IngotBuildClass> parse_build_class(std::string_view word);
[[nodiscard]] std::string_view build_class_name(std::uint32_t build_class);

}  // namespace ingot::artifact
