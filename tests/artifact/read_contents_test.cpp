#include "artifact/read_contents.h"

#include <gtest/gtest.h>

#include <cstring>

#include "artifact/encode.h"
#include "artifact/pack_inputs.h"
#include "sample_artifact.h"

namespace ingot::artifact {
namespace {

TEST(ReadContents, EncodesToTheSameFile) {
  const std::vector<std::byte> bytes = sample_artifact();
  const auto decoded = decode(bytes);
  ASSERT_TRUE(decoded);
  const auto contents = read_contents(*decoded);
  ASSERT_TRUE(contents) << to_line(contents.error().diagnostics.front());
  const auto again = encode(*contents);
  ASSERT_TRUE(again) << to_line(again.error().diagnostics.front());
  EXPECT_EQ(*again, bytes);
}

// Two variants of one interface whose references differ in their bytes only.
TEST(ReadContents, ReferencesOfEachVariantComeBack) {
  ArtifactContents contents = sample_contents();
  contents.interfaces.push_back(contents.interfaces[0]);
  for (Reference& reference : contents.interfaces[1].references) {
    std::vector<std::byte> bytes(reference.data.bytes.begin(), reference.data.bytes.end());
    bytes[0] ^= std::byte{1};
    reference.data = own(std::move(bytes));
  }
  contents.variants[1].interface = 1;
  const auto bytes = encode(contents);
  ASSERT_TRUE(bytes) << to_line(bytes.error().diagnostics.front());
  const auto decoded = decode(*bytes);
  ASSERT_TRUE(decoded);
  const auto again = read_contents(*decoded);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->interfaces.size(), 2U);
  const auto same = encode(*again);
  ASSERT_TRUE(same);
  EXPECT_EQ(*same, *bytes);
}

TEST(ReadContents, LongNamesComeBackWhole) {
  ArtifactContents contents = sample_contents();
  contents.interfaces[0].slots[3].name = std::string(300, 'x') + " end";
  const auto bytes = encode(contents);
  ASSERT_TRUE(bytes);
  const auto decoded = decode(*bytes);
  const auto again = read_contents(*decoded);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->interfaces[0].slots[3].name, contents.interfaces[0].slots[3].name);
}

TEST(PackInputs, PartsStandOnTheGridAndReadersFollow) {
  ArtifactContents contents = sample_contents();
  const ArtifactContents before = contents;
  PackOptions options;
  options.name = "all";
  options.frames = true;
  ASSERT_TRUE(pack_inputs(contents, options));
  const Interface& interface = contents.interfaces[0];
  EXPECT_EQ(interface.slots[0].name, "all");
  EXPECT_EQ(interface.slots[0].shape[0] % INGOT_ALIGNMENT, 0U);
  std::uint64_t end = 0;
  for (const Slice& slice : interface.slices) {
    if (slice.slot != 0) continue;
    EXPECT_EQ(slice.offset, (end + INGOT_ALIGNMENT - 1) / INGOT_ALIGNMENT * INGOT_ALIGNMENT);
    std::uint64_t nbytes = slice.dtype == INGOT_DTYPE_U8 ? 1 : 4;
    for (const std::uint32_t extent : slice.shape) nbytes *= extent;
    end = slice.offset + nbytes;
  }
  for (std::size_t v = 0; v < contents.variants.size(); ++v) {
    const Variant& variant = contents.variants[v];
    for (std::size_t i = 0; i < variant.views.size(); ++i) {
      const View& view = variant.views[i];
      const View& old = before.variants[v].views[i];
      const Buffer& reader = before.variants[v].buffers[old.buffer];
      if (reader.kind == INGOT_BUFFER_INPUT) {
        EXPECT_EQ(view.buffer, 0U);
        EXPECT_EQ((view.offset - old.offset) % INGOT_ALIGNMENT, 0U);
      } else {
        EXPECT_EQ(view.offset, old.offset);
        EXPECT_EQ(variant.buffers[view.buffer].nbytes, reader.nbytes);
      }
    }
  }
}

TEST(PackInputs, AVariantWithoutCallsHasNoLastOne) {
  ArtifactContents contents = sample_contents();
  for (Variant& variant : contents.variants) variant.calls.clear();
  ASSERT_TRUE(pack_inputs(contents, PackOptions{}));
  EXPECT_EQ(contents.variants[0].buffers[0].last_call, 0U);
  EXPECT_FALSE(encode(contents));
}

TEST(PackInputs, PaddedInputsAreRefused) {
  ArtifactContents contents = sample_contents();
  Slot& frame = contents.interfaces[0].slots[0];
  frame.strides = {frame.shape.back() * 2ULL};
  frame.strides.resize(frame.shape.size(), 1);
  PackOptions options;
  options.name = "all";
  options.frames = true;
  const auto packed = pack_inputs(contents, options);
  ASSERT_FALSE(packed);
  EXPECT_EQ(packed.error().diagnostics.front().code, "padded-input");
}

TEST(PackInputs, ANameThatIsTakenIsRefused) {
  ArtifactContents contents = sample_contents();
  PackOptions options;
  options.name = contents.interfaces[0].slots[3].name;
  const auto packed = pack_inputs(contents, options);
  ASSERT_FALSE(packed);
  EXPECT_EQ(packed.error().exit, ExitCode::Unsupported);
}

}  // namespace
}  // namespace ingot::artifact
