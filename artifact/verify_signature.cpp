#include "artifact/verify_signature.h"

#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>

#include "artifact/errors.h"
#include "base/check.h"

namespace ingot::artifact {

namespace {

using Encoding = std::span<const std::uint8_t, 32>;

// 32 bytes as four words, least significant first.
using Number = std::array<std::uint64_t, 4>;

// p = 2^255 - 19, and the order L of the base point.
constexpr Number kP = {0xFFFFFFFFFFFFFFED, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF,
                       0x7FFFFFFFFFFFFFFF};
constexpr Number kL = {0x5812631A5CF5D3ED, 0x14DEF9DEA2F79CD6, 0, 0x1000000000000000};

// y of the eight points of small order: the identity, order 2, order 4 (both signs of x), and the
// two y of order 8 (both signs each). Where x is 0 this also covers "no sign bit on x = 0".
constexpr Number kSmallOrderY[] = {
    {1, 0, 0, 0},
    {0xFFFFFFFFFFFFFFEC, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0x7FFFFFFFFFFFFFFF},
    {0, 0, 0, 0},
    {0xB027B2C28F95E826, 0xF098EFF289F4C345, 0x3933C6D305ACDFD5, 0x05FC536D880238B1},
    {0x4FD84D3D706A17C7, 0x0F67100D760B3CBA, 0xC6CC392CFA53202A, 0x7A03AC9277FDC74E},
};

Number to_number(Encoding bytes) {
  Number number{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    number[i / 8] |= std::uint64_t{bytes[i]} << (8 * (i % 8));
  }
  return number;
}

bool less(const Number& a, const Number& b) {
  return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

// Canonical and not of small order. That it is on the curve is another question.
bool is_strong_encoding(Encoding bytes) {
  Number y = to_number(bytes);
  y[3] &= 0x7FFFFFFFFFFFFFFF;  // the sign of x
  return less(y, kP) && std::ranges::find(kSmallOrderY, y) == std::end(kSmallOrderY);
}

struct FreeBn {
  void operator()(BIGNUM* n) const { BN_free(n); }
  void operator()(BN_CTX* c) const { BN_CTX_free(c); }
};

// x^2 = (y^2 - 1) / (d y^2 + 1) has a solution.
bool is_on_curve(Encoding bytes) {
  using Bn = std::unique_ptr<BIGNUM, FreeBn>;
  std::array<std::uint8_t, 32> little;
  std::ranges::copy(bytes, little.begin());
  little[31] &= 0x7F;
  const std::unique_ptr<BN_CTX, FreeBn> context(BN_CTX_new());
  const Bn y(BN_lebin2bn(little.data(), static_cast<int>(little.size()), nullptr));
  const Bn u(BN_new());
  const Bn v(BN_new());
  BIGNUM* p = nullptr;
  BIGNUM* d = nullptr;
  BN_hex2bn(&p, "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffed");
  BN_hex2bn(&d, "52036cee2b6ffe738cc740797779e89800700a4d4141d8ab75eb4dca135978a3");
  const Bn own_p(p);
  const Bn own_d(d);
  const bool done =
      context && y && u && v && p && d && BN_mod_sqr(u.get(), y.get(), p, context.get()) == 1 &&
      BN_mod_mul(v.get(), u.get(), d, p, context.get()) == 1 && BN_sub_word(u.get(), 1) == 1 &&
      BN_add_word(v.get(), 1) == 1 && BN_mod_mul(u.get(), u.get(), v.get(), p, context.get()) == 1;
  INGOT_CHECK(done, "arithmetic of OpenSSL failed");
  return BN_kronecker(u.get(), p, context.get()) != -1;
}

struct FreeEvp {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

bool counts(const Policy& policy, const TrustedKey& key, std::uint32_t purpose,
            std::uint64_t counter) {
  const auto contains = [purpose](const std::vector<IngotPurpose>& purposes) {
    return purposes.empty() ||
           std::ranges::find(purposes, static_cast<IngotPurpose>(purpose)) != purposes.end();
  };
  return contains(key.purposes) && contains(policy.counted_purposes) &&
         counter >= key.lowest_counter && counter <= key.highest_counter;
}

}  // namespace

Result<void> check_public_key(const PublicKey& key) {
  if (!is_strong_encoding(key) || !is_on_curve(key)) {
    return fail_with(INGOT_E_KEY_WEAK,
                     "the public key is no point of large order; anybody could sign for it");
  }
  return {};
}

bool verify_signature(const PublicKey& key, std::span<const std::byte> message,
                      std::span<const std::uint8_t, 64> signature) {
  if (!less(to_number(signature.last<32>()), kL)) return false;
  if (!is_strong_encoding(key) || !is_strong_encoding(signature.first<32>())) return false;
  const std::unique_ptr<EVP_PKEY, FreeEvp> evp(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key.data(), key.size()));
  const std::unique_ptr<EVP_MD_CTX, FreeEvp> context(EVP_MD_CTX_new());
  INGOT_CHECK(evp && context, "OpenSSL has no Ed25519");
  const bool good =
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, evp.get()) == 1 &&
      EVP_DigestVerify(context.get(), signature.data(), signature.size(),
                       reinterpret_cast<const unsigned char*>(message.data()), message.size()) == 1;
  ERR_clear_error();
  return good;
}

std::vector<std::byte> signed_message(const IngotHeader& header, const IngotSignatureEntry& entry) {
  constexpr std::size_t kEntryPart = offsetof(IngotSignatureEntry, signature);
  static_assert(INGOT_SIGNATURE_DOMAIN_SIZE + kEntryPart + sizeof(IngotHeader) ==
                INGOT_SIGNED_MESSAGE_SIZE);
  std::vector<std::byte> message(INGOT_SIGNED_MESSAGE_SIZE);
  std::memcpy(message.data(), INGOT_SIGNATURE_DOMAIN, sizeof INGOT_SIGNATURE_DOMAIN - 1);
  std::memcpy(message.data() + INGOT_SIGNATURE_DOMAIN_SIZE, &entry, kEntryPart);
  std::memcpy(message.data() + INGOT_SIGNATURE_DOMAIN_SIZE + kEntryPart, &header, sizeof header);
  return message;
}

Result<std::vector<CountedSignature>> verify_signatures(const Decoded& artifact,
                                                        const Detached* detached,
                                                        const Policy& policy) {
  if (detached != nullptr && detached->artifact_id != artifact.id) {
    return fail_with(INGOT_E_DETACHED_MISMATCH, "the detached signature is of another artifact");
  }
  for (const TrustedKey& key : policy.keys) INGOT_RETURN_IF_ERROR(check_public_key(key.key));

  std::vector<const SignatureEntry*> entries;
  for (const SignatureEntry& entry : artifact.signatures) entries.push_back(&entry);
  if (detached != nullptr) {
    for (const SignatureEntry& entry : detached->entries) entries.push_back(&entry);
  }
  if (entries.empty()) return fail_with(INGOT_E_UNSIGNED, "the artifact carries no signature");

  std::vector<CountedSignature> counted;
  std::set<std::size_t> seen;
  for (const SignatureEntry* raw : entries) {
    if (!raw->ed25519) continue;
    const IngotSignatureEntry& entry = *raw->ed25519;
    const auto known = std::ranges::find_if(policy.keys, [&](const TrustedKey& key) {
      return std::ranges::equal(key_id(key.key), entry.key_id);
    });
    if (known == policy.keys.end()) continue;
    const auto index = static_cast<std::size_t>(known - policy.keys.begin());
    const std::string id = to_hex(std::span<const std::uint8_t>(entry.key_id));
    if (!seen.insert(index).second) {
      return fail_with(INGOT_E_SIG_DUPLICATE, fmt::format("key {} signed twice", id));
    }
    if (known->revoked) {
      return fail_with(INGOT_E_KEY_REVOKED, fmt::format("key {} is revoked", id));
    }
    if (!verify_signature(known->key, signed_message(artifact.tables.header, entry),
                          std::span<const std::uint8_t, 64>(entry.signature))) {
      return fail_with(INGOT_E_SIG_INVALID, fmt::format("the signature by key {} is wrong", id));
    }
    if (counts(policy, *known, entry.purpose, artifact.tables.header.security_counter)) {
      counted.push_back({index, entry.purpose});
    }
  }
  if (seen.empty()) {
    return fail_with(INGOT_E_KEY_UNKNOWN,
                     fmt::format("none of {} signatures is by a trusted key", entries.size()));
  }
  if (counted.size() < policy.threshold) {
    return fail_with(INGOT_E_SIG_POLICY, fmt::format("{} signatures count, {} are needed",
                                                     counted.size(), policy.threshold));
  }
  for (const IngotPurpose purpose : policy.required_purposes) {
    const bool present = std::ranges::any_of(counted, [purpose](const CountedSignature& signature) {
      return signature.purpose == static_cast<std::uint32_t>(purpose);
    });
    if (!present) {
      return fail_with(INGOT_E_SIG_POLICY,
                       fmt::format("no signature for purpose '{}'", purpose_name(purpose)));
    }
  }
  return counted;
}

}  // namespace ingot::artifact
