// The loader's own primitives against OpenSSL and libsodium, and against the published edge cases.
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <sodium.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "loader/ed25519.h"
#include "loader/ingot_loader.h"
#include "loader/sha256.h"
#include "loader/sha512.h"

namespace ingot::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes random_bytes(std::mt19937_64& random, std::size_t size) {
  Bytes bytes(size);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

Bytes openssl_digest(const EVP_MD* type, const Bytes& bytes) {
  Bytes digest(static_cast<std::size_t>(EVP_MD_get_size(type)));
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, type, nullptr);
  return digest;
}

bool openssl_verify(const Bytes& key, const Bytes& message, const Bytes& signature) {
  EVP_PKEY* public_key =
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key.data(), key.size());
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  const bool good = public_key != nullptr &&
                    EVP_DigestVerifyInit(context, nullptr, nullptr, nullptr, public_key) == 1 &&
                    EVP_DigestVerify(context, signature.data(), signature.size(), message.data(),
                                     message.size()) == 1;
  EVP_MD_CTX_free(context);
  EVP_PKEY_free(public_key);
  return good;
}

bool accepted(const Bytes& key, const Bytes& message, const Bytes& signature) {
  return loader::ed25519_verify(key.data(), message.data(), message.size(), signature.data());
}

Bytes from_hex(const std::string& text) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

TEST(Sha256, every_length_and_implementation_agrees_with_openssl) {
  std::mt19937_64 random(1);
  for (std::size_t size = 0; size < 300; ++size) {
    const Bytes bytes = random_bytes(random, size);
    const Bytes expected = openssl_digest(EVP_sha256(), bytes);
    Bytes digest(32);
    loader::sha256(loader::sha256_blocks_portable, bytes.data(), size, digest.data());
    EXPECT_EQ(digest, expected) << size;
    ingot_sha256(bytes.data(), size, digest.data());
    EXPECT_EQ(digest, expected) << size;
  }
}

TEST(Sha256, pieces_equal_the_whole) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 200; ++round) {
    const Bytes bytes = random_bytes(random, random() % 1000);
    loader::Sha256 hash;
    loader::sha256_begin(&hash, loader::sha256_select());
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t part = std::min<std::size_t>(bytes.size() - at, random() % 150);
      loader::sha256_add(&hash, bytes.data() + at, part);
      at += part;
    }
    Bytes digest(32);
    loader::sha256_end(&hash, digest.data());
    EXPECT_EQ(digest, openssl_digest(EVP_sha256(), bytes));
  }
}

TEST(Sha512, every_length_agrees_with_openssl) {
  std::mt19937_64 random(3);
  for (std::size_t size = 0; size < 400; ++size) {
    const Bytes bytes = random_bytes(random, size);
    const std::size_t cut = size == 0 ? 0 : random() % size;
    const loader::Piece pieces[2] = {{bytes.data(), cut}, {bytes.data() + cut, size - cut}};
    Bytes digest(64);
    loader::sha512(pieces, 2, digest.data());
    EXPECT_EQ(digest, openssl_digest(EVP_sha512(), bytes)) << size;
  }
}

TEST(Ed25519, random_signatures_and_flipped_bits_agree_with_both_libraries) {
  ASSERT_GE(sodium_init(), 0);
  std::mt19937_64 random(4);
  for (int round = 0; round < 10000; ++round) {
    Bytes key(32);
    Bytes secret(64);
    Bytes signature(64);
    const Bytes seed = random_bytes(random, 32);
    crypto_sign_seed_keypair(key.data(), secret.data(), seed.data());
    Bytes message = random_bytes(random, random() % 100);
    crypto_sign_detached(signature.data(), nullptr, message.data(), message.size(), secret.data());
    ASSERT_TRUE(accepted(key, message, signature)) << round;
    ASSERT_TRUE(openssl_verify(key, message, signature)) << round;
    const std::size_t bit = random() % 512;
    signature[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    ASSERT_FALSE(accepted(key, message, signature)) << round << " bit " << bit;
    ASSERT_NE(
        crypto_sign_verify_detached(signature.data(), message.data(), message.size(), key.data()),
        0);
  }
}

TEST(Ed25519, of_the_published_edge_cases_exactly_number_three_is_accepted) {
  const char* given = std::getenv("INGOT_SHARED");
  const std::string shared = given != nullptr ? given : INGOT_SHARED_DIR;
  std::ifstream file(shared + "/golden/ed25519/cases.json");
  if (!file) {
    const char* ci = std::getenv("CI");
    ASSERT_FALSE(ci != nullptr && std::string(ci) == "true") << "no golden data in " << shared;
    GTEST_SKIP() << "no golden data in " << shared << " (set INGOT_SHARED)";
  }
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string text = stream.str();
  const auto field = [&](std::size_t& at, const std::string& name) {
    at = text.find("\"" + name + "\"", at);
    const std::size_t begin = text.find('"', text.find(':', at)) + 1;
    const std::size_t end = text.find('"', begin);
    at = end;
    return from_hex(text.substr(begin, end - begin));
  };
  std::size_t at = 0;
  for (int number = 0; number < 12; ++number) {
    const Bytes message = field(at, "message");
    const Bytes key = field(at, "pub_key");
    const Bytes signature = field(at, "signature");
    ASSERT_EQ(key.size(), 32u);
    EXPECT_EQ(accepted(key, message, signature), number == 3) << number;
    EXPECT_EQ(crypto_sign_verify_detached(signature.data(), message.data(), message.size(),
                                          key.data()) == 0,
              number == 3)
        << number;
  }
}

// All encodings of the eight points of small order, canonical and not.
std::vector<Bytes> small_order_encodings() {
  std::vector<Bytes> result;
  for (const char* text : {
           "0100000000000000000000000000000000000000000000000000000000000000",
           "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
           "0000000000000000000000000000000000000000000000000000000000000000",
           "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
           "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
           "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
           "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
       }) {
    Bytes bytes = from_hex(text);
    result.push_back(bytes);
    bytes[31] |= 0x80;
    result.push_back(bytes);
  }
  return result;
}

TEST(Ed25519, small_order_points_are_refused_as_key_and_as_r) {
  std::mt19937_64 random(5);
  Bytes good_key(32);
  Bytes secret(64);
  crypto_sign_seed_keypair(good_key.data(), secret.data(), random_bytes(random, 32).data());
  for (const Bytes& point : small_order_encodings()) {
    EXPECT_FALSE(loader::ed25519_key_valid(point.data()));
    for (const Bytes& r : small_order_encodings()) {
      Bytes signature = r;
      signature.resize(64);
      for (int i = 0; i < 20; ++i) {
        const Bytes message = random_bytes(random, 8);
        EXPECT_FALSE(accepted(point, message, signature));
        EXPECT_FALSE(accepted(good_key, message, signature));
      }
    }
  }
  EXPECT_TRUE(loader::ed25519_key_valid(good_key.data()));
}

TEST(Ed25519, s_must_be_below_the_order) {
  const Bytes order = from_hex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
  std::mt19937_64 random(6);
  Bytes key(32);
  Bytes secret(64);
  Bytes signature(64);
  crypto_sign_seed_keypair(key.data(), secret.data(), random_bytes(random, 32).data());
  const Bytes message = random_bytes(random, 33);
  crypto_sign_detached(signature.data(), nullptr, message.data(), message.size(), secret.data());
  ASSERT_TRUE(accepted(key, message, signature));
  Bytes malleable = signature;
  int carry = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    carry += malleable[32 + i] + order[i];
    malleable[32 + i] = static_cast<std::uint8_t>(carry);
    carry >>= 8;
  }
  EXPECT_FALSE(accepted(key, message, malleable));
  Bytes above = order;
  above[0] = static_cast<std::uint8_t>(above[0] + 1);
  Bytes below = order;
  below[0] = static_cast<std::uint8_t>(below[0] - 1);
  Bytes power(32);
  power[31] = 0x20;
  for (const Bytes& s : {Bytes(32, 0), below, order, above, power, Bytes(32, 0xFF)}) {
    Bytes extreme = signature;
    std::copy(s.begin(), s.end(), extreme.begin() + 32);
    EXPECT_FALSE(accepted(key, message, extreme));
  }
}

TEST(Ed25519, key_validity_agrees_with_libsodium_on_random_encodings) {
  std::mt19937_64 random(7);
  int valid = 0;
  for (int i = 0; i < 4000; ++i) {
    const Bytes encoding = random_bytes(random, 32);
    // libsodium also asks for the main subgroup, so it may only be stricter.
    const bool ours = loader::ed25519_key_valid(encoding.data());
    if (crypto_core_ed25519_is_valid_point(encoding.data()) == 1) {
      EXPECT_TRUE(ours);
    }
    valid += ours ? 1 : 0;
  }
  EXPECT_GT(valid, 1700);
  EXPECT_LT(valid, 2300);
}

TEST(KeyId, is_the_tagged_digest) {
  const Bytes key(32, 5);
  Bytes text(68);
  std::memcpy(text.data(), "ingot key id v1", 15);
  text[32] = 1;
  std::copy(key.begin(), key.end(), text.begin() + 36);
  Bytes expected = openssl_digest(EVP_sha256(), text);
  expected.resize(16);
  Bytes id(16);
  ingot_key_id(key.data(), id.data());
  EXPECT_EQ(id, expected);
}

}  // namespace
}  // namespace ingot::test
