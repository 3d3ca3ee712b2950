#include "artifact/sign.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "artifact/decode.h"
#include "artifact/verify_signature.h"
#include "sample_artifact.h"

namespace ingot::artifact {
namespace {

constexpr SignOptions kRelease{INGOT_PURPOSE_RELEASE, 0};

std::vector<std::byte> signed_by(std::initializer_list<std::uint8_t> keys,
                                 SignOptions options = kRelease) {
  std::vector<std::byte> bytes = sample_artifact();
  for (const std::uint8_t key : keys) {
    auto next = add_signature(std::move(bytes), sample_key(key), options);
    EXPECT_TRUE(next);
    bytes = std::move(*next);
  }
  return bytes;
}

Policy policy_for(std::initializer_list<std::uint8_t> keys, std::uint32_t threshold = 1) {
  std::vector<PublicKey> list;
  for (const std::uint8_t key : keys) list.push_back(sample_key(key).public_key);
  Policy policy = policy_of_keys(list);
  policy.threshold = threshold;
  return policy;
}

std::string verdict(std::span<const std::byte> bytes, const Policy& policy,
                    const Detached* detached = nullptr) {
  const auto decoded = decode(bytes);
  if (!decoded) return decoded.error().diagnostics.front().code;
  const auto counted = verify_signatures(*decoded, detached, policy);
  return counted ? "OK" : counted.error().diagnostics.front().code;
}

TEST(Sign, ASignatureVerifies) { EXPECT_EQ(verdict(signed_by({1}), policy_for({1})), "OK"); }

TEST(Sign, IsDeterministicAndRepeatable) {
  const std::vector<std::byte> once = signed_by({1});
  EXPECT_EQ(once, signed_by({1}));
  const auto twice = add_signature(once, sample_key(1), kRelease);
  ASSERT_TRUE(twice);
  EXPECT_EQ(*twice, once);
}

TEST(Sign, AKeySignsOnce) {
  const auto other = add_signature(signed_by({1}), sample_key(1), {INGOT_PURPOSE_FLEET, 0});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().exit, ExitCode::Usage);
}

TEST(Sign, EightSignaturesAtMost) {
  const auto ninth = add_signature(signed_by({1, 2, 3, 4, 5, 6, 7, 8}), sample_key(9), kRelease);
  ASSERT_FALSE(ninth);
  EXPECT_EQ(ninth.error().exit, ExitCode::Unsupported);
}

TEST(Sign, DamagedArtifactsAreNotSigned) {
  std::vector<std::byte> bytes = sample_artifact();
  bytes[header_of(bytes).body_offset] ^= std::byte{1};
  const auto result = add_signature(bytes, sample_key(1), kRelease);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().exit, ExitCode::NotTrusted);
}

TEST(Sign, EveryFlippedByteOfAnEntryIsRefused) {
  std::vector<std::byte> bytes = signed_by({1});
  const std::size_t start = header_of(bytes).content_size;
  for (std::size_t i = start; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{1};
    const auto decoded = decode(bytes);
    const auto exit = !decoded ? decoded.error().exit
                               : verify_signatures(*decoded, nullptr, policy_for({1})).error().exit;
    ASSERT_EQ(exit, ExitCode::NotTrusted) << "byte " << i - start;
    bytes[i] ^= std::byte{1};
  }
}

TEST(Sign, APolicyCountsKeys) {
  const auto two = signed_by({1, 2});
  EXPECT_EQ(verdict(two, policy_for({1, 2}, 2)), "OK");
  EXPECT_EQ(verdict(two, policy_for({1, 3}, 2)), "E_SIG_POLICY");
  EXPECT_EQ(verdict(two, policy_for({3})), "E_KEY_UNKNOWN");
  EXPECT_EQ(verdict(two, policy_for({})), "E_KEY_UNKNOWN");
  EXPECT_EQ(verdict(sample_artifact(), policy_for({1})), "E_UNSIGNED");
}

TEST(Sign, APolicyJudgesPurposeCounterAndRevocation) {
  const auto bytes = signed_by({1});
  Policy policy = policy_for({1});
  policy.counted_purposes = {INGOT_PURPOSE_FLEET};
  EXPECT_EQ(verdict(bytes, policy), "E_SIG_POLICY");
  policy = policy_for({1});
  policy.required_purposes = {INGOT_PURPOSE_FLEET};
  EXPECT_EQ(verdict(bytes, policy), "E_SIG_POLICY");
  policy.required_purposes = {INGOT_PURPOSE_RELEASE};
  EXPECT_EQ(verdict(bytes, policy), "OK");
  policy.keys[0].purposes = {INGOT_PURPOSE_DEVELOPMENT};
  EXPECT_EQ(verdict(bytes, policy), "E_SIG_POLICY");
  policy = policy_for({1});
  policy.keys[0].highest_counter = 6;
  EXPECT_EQ(verdict(bytes, policy), "E_SIG_POLICY");
  policy.keys[0].highest_counter = 7;
  EXPECT_EQ(verdict(bytes, policy), "OK");
  policy.keys[0].revoked = true;
  EXPECT_EQ(verdict(bytes, policy), "E_KEY_REVOKED");
  policy = policy_for({1});
  policy.keys[0].key = {1};
  EXPECT_EQ(verdict(bytes, policy), "E_KEY_WEAK");
}

TEST(Sign, ABadSignatureByAKnownKeyRefusesTheArtifact) {
  auto bytes = signed_by({1, 2});
  bytes.back() ^= std::byte{1};
  EXPECT_EQ(verdict(bytes, policy_for({1, 2})), "E_SIG_INVALID");
  EXPECT_EQ(verdict(bytes, policy_for({1})), "OK");
}

TEST(Sign, OneEntryTwiceIsRefused) {
  auto bytes = signed_by({1, 2});
  const std::size_t start = header_of(bytes).content_size + 32;
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(start), 128,
              bytes.begin() + static_cast<std::ptrdiff_t>(start) + 128);
  EXPECT_EQ(verdict(bytes, policy_for({1, 2}, 2)), "E_SIG_DUPLICATE");
}

TEST(Sign, DetachedSignaturesAddToEmbeddedOnes) {
  const auto bytes = signed_by({1});
  const auto file = sign_detached(bytes, sample_key(2), kRelease);
  ASSERT_TRUE(file);
  const auto detached = decode_detached(*file);
  ASSERT_TRUE(detached);
  EXPECT_EQ(verdict(bytes, policy_for({1, 2}, 2), &*detached), "OK");
  EXPECT_EQ(verdict(sample_artifact(), policy_for({2}), &*detached), "OK");

  const auto both = sign_detached(bytes, sample_key(3), kRelease, *file);
  ASSERT_TRUE(both);
  EXPECT_EQ(decode_detached(*both)->entries.size(), 2U);

  Detached wrong = *detached;
  wrong.artifact_id[0] ^= 1;
  EXPECT_EQ(verdict(bytes, policy_for({2}), &wrong), "E_DETACHED_MISMATCH");
}

TEST(Sign, TheDateComesFromTheEnvironmentOnly) {
  ::unsetenv("SOURCE_DATE_EPOCH");
  EXPECT_EQ(signed_at_from_environment(), 0U);
  ::setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
  EXPECT_EQ(signed_at_from_environment(), 1700000000U);
  ::setenv("SOURCE_DATE_EPOCH", "yesterday", 1);
  EXPECT_EQ(signed_at_from_environment().error().exit, ExitCode::Usage);
  ::unsetenv("SOURCE_DATE_EPOCH");
}

}  // namespace
}  // namespace ingot::artifact
