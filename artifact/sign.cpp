#include "artifact/sign.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "artifact/decode.h"
#include "artifact/errors.h"
#include "artifact/policy.h"
#include "artifact/verify_signature.h"
#include "base/check.h"

namespace ingot::artifact {

namespace {

struct FreeEvp {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

IngotSignatureEntry make_entry(const IngotHeader& header, const PrivateKey& key,
                               const SignOptions& options) {
  IngotSignatureEntry entry{};
  entry.algorithm = INGOT_SIGNATURE_ED25519;
  entry.entry_size = sizeof entry;
  entry.purpose = options.purpose;
  std::ranges::copy(key_id(key.public_key), entry.key_id);
  entry.signed_at = options.signed_at;
  const std::vector<std::byte> message = signed_message(header, entry);

  const std::unique_ptr<EVP_PKEY, FreeEvp> evp(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, key.seed.data(), key.seed.size()));
  const std::unique_ptr<EVP_MD_CTX, FreeEvp> context(EVP_MD_CTX_new());
  std::size_t size = sizeof entry.signature;
  const bool done =
      evp && context &&
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, evp.get()) == 1 &&
      EVP_DigestSign(context.get(), entry.signature, &size,
                     reinterpret_cast<const unsigned char*>(message.data()), message.size()) == 1;
  INGOT_CHECK(done && size == sizeof entry.signature, "OpenSSL could not sign");
  // A fault while signing would give away the key; a wrong signature must not leave this function.
  INGOT_CHECK(
      verify_signature(key.public_key, message, std::span<const std::uint8_t, 64>(entry.signature)),
      "a fresh signature does not verify");
  return entry;
}

// Adds `entry`, unless it is there already.
Result<void> add_entry(std::vector<SignatureEntry>& entries, const IngotSignatureEntry& entry) {
  for (const SignatureEntry& other : entries) {
    if (!other.ed25519 || !std::ranges::equal(other.ed25519->key_id, entry.key_id)) continue;
    if (std::memcmp(other.bytes.data(), &entry, sizeof entry) == 0) return {};
    return fail(ExitCode::Usage, "already-signed",
                fmt::format("this key has signed already, for purpose '{}'",
                            purpose_name(other.ed25519->purpose)),
                {}, "a key counts once; sign the unsigned artifact for another purpose or date");
  }
  if (entries.size() >= INGOT_MAX_SIGNATURES) {
    return fail(ExitCode::Unsupported, "artifact-limit",
                fmt::format("an artifact holds at most {} signatures", INGOT_MAX_SIGNATURES));
  }
  const auto bytes = std::as_bytes(std::span(&entry, 1));
  entries.push_back({entry.algorithm, {bytes.begin(), bytes.end()}, entry});
  return {};
}

template <typename Head>
std::vector<std::byte> joined(const Head& head, const std::vector<SignatureEntry>& entries) {
  const auto head_bytes = std::as_bytes(std::span(&head, 1));
  std::vector<std::byte> bytes(head_bytes.begin(), head_bytes.end());
  for (const SignatureEntry& entry : entries) {
    bytes.insert(bytes.end(), entry.bytes.begin(), entry.bytes.end());
  }
  return bytes;
}

std::uint32_t total_size(std::size_t head, const std::vector<SignatureEntry>& entries) {
  for (const SignatureEntry& entry : entries) head += entry.bytes.size();
  return static_cast<std::uint32_t>(head);
}

}  // namespace

Result<std::uint64_t> signed_at_from_environment() {
  const char* variable = std::getenv("SOURCE_DATE_EPOCH");
  if (variable == nullptr) return 0;
  const std::string_view text(variable);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return fail(ExitCode::Usage, "bad-date", "SOURCE_DATE_EPOCH is no number of seconds");
  }
  return value;
}

Result<std::vector<std::byte>> add_signature(std::vector<std::byte> artifact, const PrivateKey& key,
                                             const SignOptions& options) {
  INGOT_ASSIGN(Decoded decoded, decode(artifact));
  const IngotHeader& header = decoded.tables.header;
  INGOT_RETURN_IF_ERROR(add_entry(decoded.signatures, make_entry(header, key, options)));
  IngotSignatureHeader head{};
  std::memcpy(head.magic, INGOT_SIGNATURE_MAGIC, sizeof head.magic);
  head.count = static_cast<std::uint32_t>(decoded.signatures.size());
  head.block_size = total_size(sizeof head, decoded.signatures);
  const std::vector<std::byte> block = joined(head, decoded.signatures);
  artifact.resize(header.content_size);
  artifact.insert(artifact.end(), block.begin(), block.end());
  return artifact;
}

Result<std::vector<std::byte>> sign_detached(std::span<const std::byte> artifact,
                                             const PrivateKey& key, const SignOptions& options,
                                             std::span<const std::byte> existing) {
  INGOT_ASSIGN(const Decoded decoded, decode(artifact));
  Detached detached{decoded.id, {}};
  if (!existing.empty()) {
    INGOT_ASSIGN(detached, decode_detached(existing));
    if (detached.artifact_id != decoded.id) {
      return fail_with(INGOT_E_DETACHED_MISMATCH,
                       "the existing signature file is of another artifact");
    }
  }
  INGOT_RETURN_IF_ERROR(
      add_entry(detached.entries, make_entry(decoded.tables.header, key, options)));
  IngotDetachedHeader head{};
  std::memcpy(head.magic, INGOT_DETACHED_MAGIC, sizeof head.magic);
  head.count = static_cast<std::uint32_t>(detached.entries.size());
  head.file_size = total_size(sizeof head, detached.entries);
  std::ranges::copy(detached.artifact_id, head.artifact_id);
  return joined(head, detached.entries);
}

}  // namespace ingot::artifact
