#include "artifact/keys.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <filesystem>
#include <fstream>

#include "sample_artifact.h"

namespace ingot::artifact {
namespace {

class Keys : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(::testing::TempDir()) / ("ingot_keys_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

std::string message(const Failure& failure) { return failure.diagnostics.front().message; }

// An RSA or encrypted key in PEM, made by OpenSSL.
std::string foreign_private_pem(const char* type, bool encrypted) {
  EVP_PKEY* key = std::string(type) == "RSA"
                      ? EVP_PKEY_Q_keygen(nullptr, nullptr, type, size_t{2048})
                      : EVP_PKEY_Q_keygen(nullptr, nullptr, type);
  BIO* bio = BIO_new(BIO_s_mem());
  char password[] = "secret";
  PEM_write_bio_PKCS8PrivateKey(bio, key, encrypted ? EVP_aes_128_cbc() : nullptr,
                                encrypted ? password : nullptr, encrypted ? 6 : 0, nullptr,
                                nullptr);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  std::string pem(text, static_cast<std::size_t>(size));
  BIO_free(bio);
  EVP_PKEY_free(key);
  return pem;
}

TEST_F(Keys, WrittenPairsReadBack) {
  const auto key = generate_key();
  ASSERT_TRUE(key) << message(key.error());
  std::ofstream(path("road.key")) << *private_key_pem(*key);
  std::ofstream(path("road.pub")) << *public_key_pem(key->public_key);
  const auto private_key = read_private_key(path("road.key"));
  const auto public_key = read_public_key(path("road.pub"));
  ASSERT_TRUE(private_key);
  ASSERT_TRUE(public_key);
  EXPECT_EQ(private_key->seed, key->seed);
  EXPECT_EQ(*public_key, key->public_key);
}

TEST_F(Keys, MissingFilesAndFoldersAreIo) {
  EXPECT_EQ(read_private_key(path("none.key")).error().exit, ExitCode::Io);
  EXPECT_EQ(read_public_key(folder_.string()).error().exit, ExitCode::Io);
}

TEST_F(Keys, EveryTruncationIsRefused) {
  const std::string private_pem = *private_key_pem(sample_key(1));
  const std::string public_pem = *public_key_pem(sample_key(1).public_key);
  ASSERT_TRUE(parse_private_key(private_pem, "k"));
  for (std::size_t size = 0; size + 1 < private_pem.size(); ++size) {
    const auto key = parse_private_key(std::string_view(private_pem).substr(0, size), "k");
    ASSERT_FALSE(key) << size;
    ASSERT_EQ(key.error().exit, ExitCode::Malformed);
  }
  for (std::size_t size = 0; size + 1 < public_pem.size(); ++size) {
    ASSERT_FALSE(parse_public_key(std::string_view(public_pem).substr(0, size), "k")) << size;
  }
}

TEST_F(Keys, WrongKindsAreNamed) {
  const std::string private_pem = *private_key_pem(sample_key(1));
  const std::string public_pem = *public_key_pem(sample_key(1).public_key);
  EXPECT_EQ(message(parse_private_key(public_pem, "k").error()),
            "a public key where a private key is needed");
  EXPECT_EQ(message(parse_public_key(private_pem, "k").error()),
            "a private key where a public key is needed");
  EXPECT_EQ(message(parse_private_key("hello", "k").error()), "the file is no PEM file");
  EXPECT_EQ(message(parse_private_key(private_pem + private_pem, "k").error()),
            "the file holds more than one key");
  EXPECT_EQ(message(parse_private_key(foreign_private_pem("RSA", false), "k").error()),
            "a key of type RSA, Ed25519 is needed");
  EXPECT_EQ(message(parse_private_key(foreign_private_pem("X25519", false), "k").error()),
            "a key of type X25519, Ed25519 is needed");
}

TEST_F(Keys, EncryptedKeysAreRefusedWithoutAsking) {
  const auto key = parse_private_key(foreign_private_pem("ED25519", true), "k");
  ASSERT_FALSE(key);
  EXPECT_EQ(message(key.error()), "the private key is encrypted");
  // The old form says so inside a block with the plain label.
  const auto old = parse_private_key(
      "-----BEGIN PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778"
      "899AABBCCDDEEFF\n\nAAAA\n-----END PRIVATE KEY-----\n",
      "k");
  EXPECT_FALSE(old);
}

TEST_F(Keys, WeakPublicKeysAreRefused) {
  PublicKey identity{};
  identity[0] = 1;
  const auto key = parse_public_key(*public_key_pem(identity), "k");
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().diagnostics[0].code, "E_KEY_WEAK");
  EXPECT_EQ(key.error().exit, ExitCode::NotTrusted);
}

TEST_F(Keys, KeyIdIsStable) {
  EXPECT_EQ(key_id(sample_key(1).public_key), key_id(sample_key(1).public_key));
  EXPECT_NE(key_id(sample_key(1).public_key), key_id(sample_key(2).public_key));
}

}  // namespace
}  // namespace ingot::artifact
