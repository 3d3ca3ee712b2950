// The loader takes what the writer writes, and the two readers refuse the same things for the same
// reason.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "artifact/decode.h"
#include "artifact/encode.h"
#include "artifact/errors.h"
#include "artifact/sign.h"
#include "loader/ingot_loader.h"
#include "sample_artifact.h"

namespace ingot::artifact {
namespace {

// What the loader says, whatever the processor: steps 1 to 17, then 16 to 26 of every variant.
ingot_error loader_error(std::span<const std::byte> bytes, const ingot_policy& policy) {
  ingot_load_options options{};
  options.flags = INGOT_LOAD_STOP_AT_VERIFIED;
  ingot_artifact* artifact = nullptr;
  ingot_error error{};
  if (ingot_open_memory(bytes.data(), bytes.size(), &policy, &options, &artifact, &error) == 0) {
    ingot_verify_all_variants(artifact, &error);
    ingot_close(artifact);
  }
  return error;
}

ingot_policy unsigned_policy() {
  ingot_policy policy{};
  policy.allow_unsigned = 1;
  return policy;
}

std::string text(const ingot_error& error) {
  char line[512];
  ingot_error_format(&error, line, sizeof line);
  return line;
}

TEST(LoaderAgreement, TheSampleIsWellFormedForTheLoader) {
  const ingot_error error = loader_error(sample_artifact(), unsigned_policy());
  EXPECT_EQ(error.number, 0U) << text(error);
}

TEST(LoaderAgreement, SignaturesOfTheToolVerify) {
  auto bytes = add_signature(sample_artifact(), sample_key(1), {INGOT_PURPOSE_RELEASE, 5});
  ASSERT_TRUE(bytes);
  const auto detached = sign_detached(*bytes, sample_key(2), {INGOT_PURPOSE_FLEET, 0});
  ASSERT_TRUE(detached);
  ingot_key keys[2] = {};
  std::ranges::copy(sample_key(1).public_key, keys[0].public_key);
  std::ranges::copy(sample_key(2).public_key, keys[1].public_key);
  ingot_policy policy{};
  policy.keys = keys;
  policy.key_count = 2;
  policy.threshold = 2;
  EXPECT_EQ(loader_error(*bytes, policy).number, static_cast<std::uint32_t>(INGOT_E_SIG_POLICY));
  policy.detached = detached->data();
  policy.detached_nbytes = detached->size();
  const ingot_error error = loader_error(*bytes, policy);
  EXPECT_EQ(error.number, 0U) << text(error);
}

TEST(LoaderAgreement, EmptyTensorsAndTwoInterfacesAreWellFormed) {
  ArtifactContents contents = sample_contents();
  contents.interfaces[0].slots.push_back(
      {"nothing", INGOT_DIRECTION_INPUT, INGOT_DTYPE_F32, {2, 0, 3}, {}, {}, {}});
  for (std::uint32_t step = 0; step < 2; ++step) {
    Reference reference;
    reference.step = step;
    reference.slot = 4;
    contents.interfaces[0].references.push_back(reference);
  }
  for (Variant& variant : contents.variants) {
    Buffer buffer;
    buffer.kind = INGOT_BUFFER_INPUT;
    buffer.slot = 4;
    buffer.caller_memory = true;
    variant.buffers.push_back(buffer);
  }
  contents.interfaces.push_back(contents.interfaces[0]);
  contents.interfaces[1].cameras[0].name = "other";
  contents.variants[1].interface = 1;
  const auto bytes = encode(contents);
  ASSERT_TRUE(bytes);
  const ingot_error error = loader_error(*bytes, unsigned_policy());
  EXPECT_EQ(error.number, 0U) << text(error);
}

// Every word of header and section table with other values, digests repaired: what the tool's
// reader refuses in steps 1 to 15, the loader refuses with the same number.
TEST(LoaderAgreement, BothRefuseTheSameEditsOfHeaderAndSectionTable) {
  const std::vector<std::byte> good = sample_artifact();
  const ingot_policy policy = unsigned_policy();
  const std::size_t end = 512 + 64 * std::size_t{header_of(good).section_count};
  int refused = 0;
  for (std::size_t offset = 8; offset < end; offset += 4) {
    if (offset >= 0x80 && offset < 0xC0) continue;  // digests, repaired or not
    if (offset >= INGOT_HEADER_DIGEST_OFFSET && offset < 512) continue;
    for (const std::uint32_t value : {1U, 0xFFFFFF00U}) {
      std::vector<std::byte> bytes = good;
      std::memcpy(bytes.data() + offset, &value, sizeof value);
      if (bytes == good) continue;
      if (offset < 512) {
        put_header(bytes, header_of(bytes));
      } else {
        reseal(bytes);
      }
      const auto decoded = decode(bytes);
      const std::string tool = decoded ? "OK" : decoded.error().diagnostics.front().code;
      if (tool == "E_MANIFEST") continue;  // the loader does not read it
      const ingot_error error = loader_error(bytes, policy);
      const std::string loader = error.number == 0 ? "OK" : std::string(error_name(error.number));
      EXPECT_EQ(tool, loader) << "offset " << offset << " value " << value << ": " << text(error);
      refused += decoded ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace ingot::artifact
