#include "artifact/keys.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "artifact/digest.h"
#include "artifact/errors.h"
#include "artifact/format.h"
#include "artifact/verify_signature.h"
#include "base/check.h"

namespace ingot::artifact {

namespace {

constexpr std::size_t kMaxPemBytes = 64 * 1024;  // a key needs 200; anything larger is no key

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free_all(bio); }
};
struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, FreeBio>;
using EvpKey = std::unique_ptr<EVP_PKEY, FreeKey>;

// Given to OpenSSL so that it never falls back to asking on the terminal.
int no_password(char*, int, int, void*) { return -1; }

std::unexpected<Failure> bad_key(const std::string& shown, std::string message,
                                 std::string hint = {}) {
  ERR_clear_error();
  return fail(ExitCode::Malformed, "bad-key", std::move(message), shown, std::move(hint));
}

std::unexpected<Failure> io_failure(const std::string& path, std::string_view what) {
  return fail(ExitCode::Io, "io", fmt::format("{}: {}", what, std::strerror(errno)), path);
}

bool has_label(std::string_view pem, std::string_view label) {
  return pem.find(fmt::format("-----BEGIN {}-----", label)) != std::string_view::npos;
}

std::string_view type_name(const EVP_PKEY* key) {
  const char* name = EVP_PKEY_get0_type_name(key);
  return name == nullptr ? "unknown" : name;
}

Result<void> check_label(std::string_view pem, std::string_view wanted, const std::string& shown) {
  if (has_label(pem, wanted)) {
    const std::size_t first = pem.find("-----BEGIN ");
    if (pem.find("-----BEGIN ", first + 1) != std::string_view::npos) {
      return bad_key(shown, "the file holds more than one key", "keep one key in a file");
    }
    return {};
  }
  if (has_label(pem, "ENCRYPTED PRIVATE KEY")) {
    return bad_key(shown, "the private key is encrypted",
                   "decrypt it first: openssl pkey -in FILE -out PLAIN");
  }
  if (has_label(pem, "PUBLIC KEY")) {
    return bad_key(shown, "a public key where a private key is needed");
  }
  if (has_label(pem, "PRIVATE KEY")) {
    return bad_key(shown, "a private key where a public key is needed",
                   "give the .pub file, never hand out the .key file");
  }
  if (pem.find("-----BEGIN ") != std::string_view::npos) {
    return bad_key(shown, fmt::format("the file holds no PEM block of type '{}'", wanted),
                   "make a key with: ingot keygen NAME");
  }
  return bad_key(shown, "the file is no PEM file", "make a key with: ingot keygen NAME");
}

// Text of an OpenSSL writer.
template <typename Write>
Result<std::string> to_pem(EvpKey key, Write write) {
  const Bio bio(BIO_new(BIO_s_secmem()));
  if (key == nullptr || bio == nullptr || write(bio.get(), key.get()) != 1) {
    ERR_clear_error();
    return fail(ExitCode::Internal, "key", "OpenSSL could not write a key");
  }
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, static_cast<std::size_t>(size));
}

Result<std::string> read_text(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (file == nullptr) return io_failure(path, "cannot read");
  std::string text(kMaxPemBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) return io_failure(path, "cannot read");
  if (text.size() > kMaxPemBytes) return bad_key(path, "the file is too large for a key");
  return text;
}

}  // namespace

PrivateKey::~PrivateKey() { OPENSSL_cleanse(seed.data(), seed.size()); }

KeyId key_id(const PublicKey& key) {
  Sha256 hash;
  hash.add_tag(INGOT_TAG_KEY_ID);
  hash.add_u32(INGOT_SIGNATURE_ED25519);
  hash.add(std::as_bytes(std::span(key)));
  const Digest digest = hash.finish();
  KeyId id;
  std::copy_n(digest.begin(), id.size(), id.begin());
  return id;
}

PrivateKey key_from_seed(std::span<const std::uint8_t, 32> seed) {
  PrivateKey key;
  std::ranges::copy(seed, key.seed.begin());
  const EvpKey evp(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
  std::size_t size = key.public_key.size();
  INGOT_CHECK(evp != nullptr &&
                  EVP_PKEY_get_raw_public_key(evp.get(), key.public_key.data(), &size) == 1 &&
                  size == key.public_key.size(),
              "OpenSSL has no Ed25519");
  return key;
}

Result<PrivateKey> generate_key() {
  const EvpKey evp(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  PrivateKey key;
  std::size_t size = key.seed.size();
  if (evp == nullptr || EVP_PKEY_get_raw_private_key(evp.get(), key.seed.data(), &size) != 1 ||
      size != key.seed.size()) {
    ERR_clear_error();
    return fail(ExitCode::Io, "random", "no random numbers for a key");
  }
  return key_from_seed(key.seed);
}

Result<std::string> private_key_pem(const PrivateKey& key) {
  EvpKey evp(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, key.seed.data(), key.seed.size()));
  return to_pem(std::move(evp), [](BIO* bio, EVP_PKEY* k) {
    return PEM_write_bio_PKCS8PrivateKey(bio, k, nullptr, nullptr, 0, no_password, nullptr);
  });
}

Result<std::string> public_key_pem(const PublicKey& key) {
  EvpKey evp(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key.data(), key.size()));
  return to_pem(std::move(evp), [](BIO* bio, EVP_PKEY* k) { return PEM_write_bio_PUBKEY(bio, k); });
}

Result<PrivateKey> parse_private_key(std::string_view pem, const std::string& shown) {
  if (pem.size() > kMaxPemBytes) return bad_key(shown, "the file is too large for a key");
  INGOT_RETURN_IF_ERROR(check_label(pem, "PRIVATE KEY", shown));
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const EvpKey evp(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  if (evp == nullptr) return bad_key(shown, "the private key is damaged or cut off");
  if (EVP_PKEY_is_a(evp.get(), "ED25519") != 1) {
    return bad_key(shown, fmt::format("a key of type {}, Ed25519 is needed", type_name(evp.get())),
                   "make a key with: ingot keygen NAME");
  }
  PrivateKey key;
  std::size_t size = key.seed.size();
  if (EVP_PKEY_get_raw_private_key(evp.get(), key.seed.data(), &size) != 1 ||
      size != key.seed.size()) {
    return bad_key(shown, "the private key is damaged");
  }
  return key_from_seed(key.seed);
}

Result<PublicKey> parse_public_key(std::string_view pem, const std::string& shown) {
  if (pem.size() > kMaxPemBytes) return bad_key(shown, "the file is too large for a key");
  INGOT_RETURN_IF_ERROR(check_label(pem, "PUBLIC KEY", shown));
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const EvpKey evp(PEM_read_bio_PUBKEY(bio.get(), nullptr, no_password, nullptr));
  if (evp == nullptr) return bad_key(shown, "the public key is damaged or cut off");
  if (EVP_PKEY_is_a(evp.get(), "ED25519") != 1) {
    return bad_key(shown, fmt::format("a key of type {}, Ed25519 is needed", type_name(evp.get())),
                   "make a key with: ingot keygen NAME");
  }
  PublicKey key;
  std::size_t size = key.size();
  if (EVP_PKEY_get_raw_public_key(evp.get(), key.data(), &size) != 1 || size != key.size()) {
    return bad_key(shown, "the public key is damaged");
  }
  if (auto strong = check_public_key(key); !strong) {
    Failure failure = std::move(strong).error();
    failure.diagnostics.front().file = shown;
    return std::unexpected(std::move(failure));
  }
  return key;
}

Result<PrivateKey> read_private_key(const std::string& path) {
  INGOT_ASSIGN(std::string text, read_text(path));
  auto key = parse_private_key(text, path);
  OPENSSL_cleanse(text.data(), text.size());
  return key;
}

Result<PublicKey> read_public_key(const std::string& path) {
  INGOT_ASSIGN(const std::string text, read_text(path));
  return parse_public_key(text, path);
}

}  // namespace ingot::artifact
