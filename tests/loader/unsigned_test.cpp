// The rule that only the tool's build of the loader has.
#include <gtest/gtest.h>

#include "artifact_builder.h"

namespace ingot::test {
namespace {

ingot_policy unsigned_policy() {
  ingot_policy policy{};
  policy.allow_unsigned = 1;
  return policy;
}

TEST(Unsigned, is_accepted_when_asked_for_and_claims_no_more_than_intact) {
  ArtifactBuilder builder;
  builder.signatures.clear();
  const Bytes file = builder.seal();
  const ingot_host host = usual_host();
  ingot_load_options options{};
  options.host = &host;
  const ingot_policy policy = unsigned_policy();
  ingot_artifact* artifact = nullptr;
  ASSERT_EQ(ingot_open_memory(file.data(), file.size(), &policy, &options, &artifact, nullptr), 0u);
  ingot_artifact_info info;
  ingot_artifact_describe(artifact, &info);
  EXPECT_EQ(info.state, static_cast<std::uint32_t>(INGOT_STATE_INTACT));
  EXPECT_EQ(info.counted_keys, 0u);
  ingot_close(artifact);
  ingot_policy strict = policy;
  strict.allow_unsigned = 0;
  EXPECT_EQ(open_status(file, strict), 202u);
}

TEST(Unsigned, a_bad_signature_of_a_known_key_is_still_refused) {
  TestPolicy device;
  device.policy.allow_unsigned = 1;
  Bytes file = ArtifactBuilder().seal();
  EXPECT_EQ(open_status(file, device.policy), 0u);
  file[file.size() - 1] ^= 1;
  EXPECT_EQ(open_status(file, device.policy), 204u);
  EXPECT_EQ(open_status(file, unsigned_policy()), 0u) << "no key is known";
}

TEST(Unsigned, damage_is_still_damage) {
  Bytes file = ArtifactBuilder().seal();
  file[65536 + 7] ^= 1;
  EXPECT_EQ(open_status(file, unsigned_policy()), 109u);
}

}  // namespace
}  // namespace ingot::test
