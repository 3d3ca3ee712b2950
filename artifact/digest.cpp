#include "artifact/digest.h"

#include <openssl/evp.h>

#include "artifact/format.h"
#include "base/check.h"

namespace ingot::artifact {

namespace {

EVP_MD_CTX* context_of(void* context) { return static_cast<EVP_MD_CTX*>(context); }

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  INGOT_CHECK(context_ != nullptr, "no memory for a digest");
  INGOT_CHECK(EVP_DigestInit_ex(context_of(context_), EVP_sha256(), nullptr) == 1,
              "OpenSSL has no SHA-256");
}

Sha256::~Sha256() { EVP_MD_CTX_free(context_of(context_)); }

void Sha256::add(std::span<const std::byte> bytes) {
  INGOT_CHECK(EVP_DigestUpdate(context_of(context_), bytes.data(), bytes.size()) == 1,
              "SHA-256 failed");
}

void Sha256::add(std::string_view text) { add(std::as_bytes(std::span(text))); }

void Sha256::add_u32(std::uint32_t value) {
  std::array<std::byte, 4> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(value >> (8 * i));
  add(bytes);
}

void Sha256::add_u64(std::uint64_t value) {
  add_u32(static_cast<std::uint32_t>(value));
  add_u32(static_cast<std::uint32_t>(value >> 32));
}

void Sha256::add_tag(std::string_view text) {
  std::array<char, INGOT_TAG_SIZE> tag{};
  INGOT_CHECK(text.size() <= tag.size(), "tag too long");
  text.copy(tag.data(), tag.size());
  add(std::as_bytes(std::span(tag)));
}

Digest Sha256::finish() {
  Digest digest;
  unsigned length = 0;
  INGOT_CHECK(EVP_DigestFinal_ex(context_of(context_), digest.data(), &length) == 1 &&
                  length == digest.size(),
              "SHA-256 failed");
  return digest;
}

Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

Digest sha256(std::string_view text) { return sha256(std::as_bytes(std::span(text))); }

}  // namespace ingot::artifact
