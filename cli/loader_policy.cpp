#include "cli/loader_policy.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "artifact/keys.h"

namespace ingot::cli {
namespace {

template <typename Number>
std::uint32_t mask_of(const std::vector<Number>& numbers) {
  std::uint32_t mask = 0;
  for (const Number number : numbers) mask |= 1U << static_cast<unsigned>(number);
  return mask;
}

// The loader reads 0 as "no ceiling"; a ceiling of 0 becomes the least one that is none.
float ceiling(const std::optional<float>& value) {
  if (!value) return 0;
  return std::max(*value, std::numeric_limits<float>::denorm_min());
}

}  // namespace

void add_trust_options(CLI::App& command, TrustOptions& trust) {
  CLI::Option* keys = add_repeatable(command, "--pub", trust.public_keys,
                                     "Public key that must have signed the artifact; repeatable");
  command
      .add_flag("--allow-unsigned", trust.allow_unsigned,
                "Accept an artifact without a trusted signature")
      ->excludes(keys);
}

Result<std::vector<artifact::PublicKey>> read_public_keys(const std::vector<std::string>& paths) {
  std::vector<artifact::PublicKey> keys;
  for (const std::string& path : paths) {
    INGOT_ASSIGN(const artifact::PublicKey key, artifact::read_public_key(path));
    // The same key twice is one key.
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

LoaderPolicy::LoaderPolicy(artifact::Policy policy) : policy_(std::move(policy)) {
  for (const artifact::TrustedKey& key : policy_.keys) add_key(key);
  static_assert(sizeof(artifact::Digest) == 32);
  loader_.keys = keys_.data();
  loader_.key_count = static_cast<std::uint32_t>(keys_.size());
  loader_.threshold = policy_.threshold;
  loader_.counted_purposes = mask_of(policy_.counted_purposes);
  loader_.required_purposes = mask_of(policy_.required_purposes);
  loader_.product = policy_.product ? policy_.product->c_str() : nullptr;
  loader_.device_family = policy_.device_family ? policy_.device_family->c_str() : nullptr;
  loader_.lowest_counter = policy_.lowest_counter;
  loader_.build_classes = mask_of(policy_.build_classes);
  loader_.deny_count = static_cast<std::uint32_t>(policy_.denied_ids.size());
  loader_.deny_ids = reinterpret_cast<const std::uint8_t(*)[32]>(policy_.denied_ids.data());
  loader_.interface_sha256 = policy_.interface_sha256 ? policy_.interface_sha256->data() : nullptr;
  loader_.max_file_nbytes = policy_.max_file_bytes.value_or(0);
  loader_.max_arena_nbytes = policy_.max_arena_bytes.value_or(0);
  loader_.require_vectors = policy_.require_references ? 1 : 0;
  loader_.max_ulp = policy_.tolerance.max_ulp.value_or(0);
  loader_.max_atol = ceiling(policy_.tolerance.max_atol);
  loader_.max_rtol = ceiling(policy_.tolerance.max_rtol);
  loader_.min_cosine = policy_.tolerance.min_cosine.value_or(0);
}

void LoaderPolicy::add_key(const artifact::TrustedKey& key) {
  ingot_key entry{};
  std::ranges::copy(key.key, entry.public_key);
  entry.purposes = mask_of(key.purposes);
  entry.revoked = key.revoked ? 1 : 0;
  entry.lowest_counter = key.lowest_counter;
  entry.highest_counter = key.highest_counter;
  keys_.push_back(entry);
}

void LoaderPolicy::set_detached(std::vector<std::byte> file) {
  detached_ = std::move(file);
  loader_.detached = detached_.data();
  loader_.detached_nbytes = detached_.size();
}

void LoaderPolicy::set_camera(std::string name) {
  camera_ = std::move(name);
  loader_.camera = camera_.empty() ? nullptr : camera_.c_str();
}

ingot_host host_of_target(const Target& target) {
  ingot_host host{};
  host.arch = static_cast<std::uint32_t>(target.architecture);
  host.page_size = 4096;
  host.features[0] = target.feature_bits;
  host.xcr0 = target.xcr0;
  return host;
}

Failure to_failure(const ingot_error& error, const std::string& file, std::string hint) {
  std::array<char, 512> text{};
  ingot_error_format(&error, text.data(), text.size());
  Diagnostic diagnostic;
  diagnostic.code = ingot_status_name(error.number);
  diagnostic.file = file;
  diagnostic.message = text.data();
  diagnostic.hint = std::move(hint);
  return {static_cast<ExitCode>(ingot_status_exit_code(error.number)), {std::move(diagnostic)}};
}

std::unexpected<Failure> loader_failure(const ingot_error& error, const std::string& file,
                                        std::string hint) {
  return std::unexpected(to_failure(error, file, std::move(hint)));
}

}  // namespace ingot::cli
