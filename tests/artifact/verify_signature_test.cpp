#include "artifact/verify_signature.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "sample_artifact.h"

namespace ingot::artifact {
namespace {

using Signature = std::array<std::uint8_t, 64>;

std::vector<std::uint8_t> from_hex(const std::string& text) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

Signature sign(const PrivateKey& key, std::span<const std::byte> message) {
  Signature signature{};
  EVP_PKEY* evp =
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, key.seed.data(), key.seed.size());
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  std::size_t size = signature.size();
  EVP_DigestSignInit(context, nullptr, nullptr, nullptr, evp);
  EVP_DigestSign(context, signature.data(), &size,
                 reinterpret_cast<const unsigned char*>(message.data()), message.size());
  EVP_MD_CTX_free(context);
  EVP_PKEY_free(evp);
  return signature;
}

// Adds `addend` (little-endian) to the S half, ignoring the carry out.
void add_to_s(Signature& signature, const std::array<std::uint8_t, 32>& addend) {
  unsigned carry = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    carry += static_cast<unsigned>(signature[32 + i]) + addend[i];
    signature[32 + i] = static_cast<std::uint8_t>(carry);
    carry >>= 8;
  }
}

constexpr std::array<std::uint8_t, 32> kOrder = {
    0xED, 0xD3, 0xF5, 0x5C, 0x1A, 0x63, 0x12, 0x58, 0xD6, 0x9C, 0xF7, 0xA2, 0xDE, 0xF9, 0xDE, 0x14,
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0x10};

TEST(VerifySignature, PublishedEdgeCases) {
  const char* variable = std::getenv("INGOT_SHARED");
  const std::string shared = variable != nullptr ? variable : INGOT_SOURCE_DIR "/../shared";
  std::ifstream file(shared + "/golden/ed25519/cases.json");
  if (!file) {
    const char* ci = std::getenv("CI");
    if (ci != nullptr && std::string(ci) == "true") FAIL() << "no cases in " << shared;
    GTEST_SKIP() << "no golden/ed25519/cases.json in " << shared << " (set INGOT_SHARED)";
  }
  const auto cases = nlohmann::json::parse(file);
  ASSERT_EQ(cases.size(), 12U);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto message = from_hex(cases[i]["message"]);
    const auto key_bytes = from_hex(cases[i]["pub_key"]);
    const auto signature_bytes = from_hex(cases[i]["signature"]);
    PublicKey key;
    Signature signature;
    ASSERT_EQ(key_bytes.size(), key.size());
    ASSERT_EQ(signature_bytes.size(), signature.size());
    std::ranges::copy(key_bytes, key.begin());
    std::ranges::copy(signature_bytes, signature.begin());
    EXPECT_EQ(verify_signature(key, std::as_bytes(std::span(message)), signature), i == 3)
        << "case " << i;
  }
}

TEST(VerifySignature, GoodSignaturesPassAndFlippedOnesDoNot) {
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    const PrivateKey key = sample_key(static_cast<std::uint8_t>(random()));
    std::vector<std::byte> message(random() % 700);
    for (std::byte& b : message) b = static_cast<std::byte>(random());
    Signature signature = sign(key, message);
    ASSERT_TRUE(verify_signature(key.public_key, message, signature));
    signature[random() % 64] ^= static_cast<std::uint8_t>(1U << (random() % 8));
    ASSERT_FALSE(verify_signature(key.public_key, message, signature));
  }
}

TEST(VerifySignature, SMustBeBelowTheOrder) {
  const auto message = to_bytes("message");
  const PrivateKey key = sample_key(1);
  Signature signature = sign(key, message);
  add_to_s(signature, kOrder);
  EXPECT_FALSE(verify_signature(key.public_key, message, signature));
  for (const int top : {0x10, 0x20, 0xFF}) {
    Signature extreme = sign(key, message);
    std::fill(extreme.begin() + 32, extreme.end(), std::uint8_t{0xFF});
    extreme[63] = static_cast<std::uint8_t>(top);
    EXPECT_FALSE(verify_signature(key.public_key, message, extreme));
  }
}

TEST(VerifySignature, TheIdentityKeyVerifiesNothing) {
  PublicKey identity{};
  identity[0] = 1;
  Signature signature{};
  signature[0] = 1;  // R = identity, S = 0: good for every message where this key is taken
  EXPECT_FALSE(verify_signature(identity, to_bytes("anything"), signature));
  EXPECT_FALSE(check_public_key(identity));
}

TEST(VerifySignature, SmallOrderAndNonCanonicalPointsAreWeak) {
  const std::string small[] = {
      "0100000000000000000000000000000000000000000000000000000000000000",
      "0100000000000000000000000000000000000000000000000000000000000080",
      "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
      "0000000000000000000000000000000000000000000000000000000000000000",
      "0000000000000000000000000000000000000000000000000000000000000080",
      "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
      "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
      // y = p, p + 1 and the largest: not canonical
      "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
      // y = 2: on no point of the curve
      "0200000000000000000000000000000000000000000000000000000000000000",
  };
  for (const std::string& text : small) {
    PublicKey key;
    std::ranges::copy(from_hex(text), key.begin());
    EXPECT_FALSE(check_public_key(key)) << text;
    Signature signature = sign(sample_key(1), to_bytes("message"));
    std::ranges::copy(key, signature.begin());
    EXPECT_FALSE(verify_signature(sample_key(1).public_key, to_bytes("message"), signature));
  }
  for (std::uint8_t i = 0; i < 32; ++i) EXPECT_TRUE(check_public_key(sample_key(i).public_key));
}

TEST(VerifySignature, OtherMessagesOfTheSameKeyAreNotTaken) {
  const auto artifact = sample_artifact();
  const IngotHeader header = header_of(artifact);
  const PrivateKey key = sample_key(1);
  IngotSignatureEntry entry{};
  entry.algorithm = INGOT_SIGNATURE_ED25519;
  entry.entry_size = 128;
  entry.purpose = INGOT_PURPOSE_RELEASE;
  const auto message = signed_message(header, entry);
  ASSERT_EQ(message.size(), 640U);
  const auto header_bytes = std::as_bytes(std::span(&header, 1));
  EXPECT_FALSE(verify_signature(key.public_key, message, sign(key, header_bytes)));
  auto other_domain = message;
  other_domain[27] = std::byte{'!'};
  EXPECT_FALSE(verify_signature(key.public_key, message, sign(key, other_domain)));
  EXPECT_TRUE(verify_signature(key.public_key, message, sign(key, message)));
}

}  // namespace
}  // namespace ingot::artifact
