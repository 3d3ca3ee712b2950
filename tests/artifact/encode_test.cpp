#include "artifact/encode.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "artifact/decode.h"
#include "sample_artifact.h"

namespace ingot::artifact {
namespace {

std::string reason(const Failure& failure) { return to_line(failure.diagnostics.front()); }

TEST(Encode, ReadsBackAsWritten) {
  const std::vector<std::byte> bytes = sample_artifact();
  const auto decoded = decode(bytes);
  ASSERT_TRUE(decoded) << reason(decoded.error());
  const Tables& tables = decoded->tables;
  EXPECT_EQ(fixed_text(tables.header.product), "road-vision");
  EXPECT_EQ(tables.header.security_counter, 7U);
  EXPECT_EQ(tables.header.features_required, 0U);
  EXPECT_EQ(tables.header.max_host_arena, 1024U + 512U);
  ASSERT_EQ(tables.variants.size(), 2U);
  EXPECT_EQ(tables.name(tables.variants[1].name), "aarch64");
  EXPECT_EQ(tables.variants[0].stack_bytes, 128U);
  const VariantTables& variant = tables.variant_tables[1];
  ASSERT_EQ(variant.io.size(), 4U);
  EXPECT_EQ(tables.name(variant.io[3].name), "out%20puts");
  EXPECT_EQ(variant.io[3].strides[0], 32U);
  EXPECT_EQ(variant.calls.size(), 4U);
  EXPECT_EQ(variant.args.size(), 8U);
  EXPECT_EQ(variant.args[2].view, INGOT_NO_INDEX);
  EXPECT_EQ(variant.args[2].immediate, 42U);
  EXPECT_EQ(variant.params.size(), 5U);
  ASSERT_EQ(variant.transforms.size(), 1U);
  EXPECT_EQ(variant.transforms[0].policy, INGOT_TRANSFORM_FILL);
  EXPECT_TRUE(decoded->signatures.empty());
}

TEST(Encode, IsDeterministic) { EXPECT_EQ(sample_artifact(), sample_artifact()); }

TEST(Encode, SectionsTouchAndCodeStartsOnAPage) {
  const std::vector<std::byte> bytes = sample_artifact();
  const IngotHeader header = header_of(bytes);
  std::uint64_t end = header.body_offset;
  for (std::size_t row = 0; row < header.section_count; ++row) {
    const IngotSectionEntry entry = section_of(bytes, row);
    EXPECT_EQ(entry.offset, end);
    if (entry.type == INGOT_SECTION_CODE) {
      EXPECT_EQ(entry.offset % 65536, 0U);
      EXPECT_EQ(entry.span % 65536, 0U);
    }
    end = entry.offset + entry.span;
  }
  EXPECT_EQ(end, header.content_size);
  EXPECT_EQ(bytes.size(), header.content_size + 32);
}

TEST(Encode, SlicesAreSortedAndGapsGetASliceOfTheirOwn) {
  const auto bytes = sample_artifact();
  const auto decoded = decode(bytes);
  ASSERT_TRUE(decoded);
  const Tables& tables = decoded->tables;
  std::vector<std::string> names;
  for (const IngotSliceRecord& slice : tables.variant_tables[0].slices) {
    names.emplace_back(tables.name(slice.name));
    EXPECT_EQ(slice.flags, 0U);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"tfm", "desire", "plan", "unused", "pose", "unused.1"}));
}

TEST(Encode, OverlappingSlicesAreMarked) {
  ArtifactContents contents = sample_contents();
  contents.interfaces[0].slices.push_back({"both", 3, INGOT_DTYPE_F32, {2}, 12, {}});
  const auto bytes = encode(contents);
  ASSERT_TRUE(bytes);
  const auto decoded = decode(*bytes);
  ASSERT_TRUE(decoded);
  int marked = 0;
  for (const IngotSliceRecord& slice : decoded->tables.variant_tables[0].slices) {
    if (slice.flags != INGOT_SLICE_OVERLAPS) continue;
    ++marked;
    EXPECT_EQ(decoded->tables.name(slice.name), "both");
  }
  EXPECT_EQ(marked, 1);
}

TEST(Encode, EqualWeightsAreStoredOnceAndSharedOnesAreCommon) {
  ArtifactContents contents = sample_contents();
  std::vector<std::byte> copy(300, std::byte{3});
  contents.data.push_back(borrow(copy));
  contents.variants[1].buffers[5].data = 2;
  const auto bytes = encode(contents);
  ASSERT_TRUE(bytes);
  const auto decoded = decode(*bytes);
  ASSERT_TRUE(decoded);
  const auto& first = decoded->tables.variant_tables[0].buffers[5];
  const auto& second = decoded->tables.variant_tables[1].buffers[5];
  EXPECT_EQ(first.init_section, second.init_section);
  EXPECT_EQ(first.init_offset, second.init_offset);
  EXPECT_EQ(decoded->tables.sections[first.init_section].variant, INGOT_VARIANT_COMMON);
  const auto data = decoded->payload(first.init_section).subspan(first.init_offset, 300);
  EXPECT_TRUE(std::ranges::equal(data, copy));
}

TEST(Encode, WeightsOfOneVariantStayWithIt) {
  ArtifactContents contents = sample_contents();
  contents.data.push_back(own(std::vector<std::byte>(300, std::byte{9})));
  contents.variants[1].buffers[5].data = 2;
  const auto bytes = encode(contents);
  ASSERT_TRUE(bytes);
  const auto decoded = decode(*bytes);
  ASSERT_TRUE(decoded);
  const auto& buffers = decoded->tables.variant_tables[1].buffers;
  EXPECT_EQ(decoded->tables.sections[buffers[5].init_section].variant, 1U);
  EXPECT_EQ(decoded->tables.sections[buffers[2].init_section].variant, INGOT_VARIANT_COMMON);
}

TEST(Encode, EmptyTensorsAreLegal) {
  ArtifactContents contents = sample_contents();
  contents.interfaces[0].slots.push_back(
      {"nothing", INGOT_DIRECTION_OUTPUT, INGOT_DTYPE_F32, {2, 0, 3}, {}, {}, {}});
  for (std::uint32_t step = 0; step < 2; ++step) {
    Reference reference;
    reference.step = step;
    reference.slot = 4;
    reference.compare = INGOT_COMPARE_EXACT;
    contents.interfaces[0].references.push_back(reference);
  }
  const auto bytes = encode(contents);
  ASSERT_TRUE(bytes) << reason(bytes.error());
  const auto decoded = decode(*bytes);
  ASSERT_TRUE(decoded) << reason(decoded.error());
  const IngotIoRecord& io = decoded->tables.variant_tables[0].io[4];
  EXPECT_EQ(io.nbytes, 0U);
  EXPECT_EQ(io.logical_nbytes, 0U);
  EXPECT_EQ(io.strides[0], 12U);
  EXPECT_EQ(io.strides[1], 12U);
  EXPECT_EQ(io.strides[2], 4U);
}

TEST(Encode, InterfaceDigestIsTheOneInTheArtifact) {
  const auto bytes = sample_artifact();
  const auto decoded = decode(bytes);
  ASSERT_TRUE(decoded);
  const auto digest = interface_digest(sample_contents().interfaces[0]);
  ASSERT_TRUE(digest);
  EXPECT_TRUE(std::ranges::equal(*digest, decoded->tables.variants[0].interface_sha256));
  EXPECT_EQ(*digest, interface_digest(decoded->tables, decoded->tables.variant_tables[0]));
}

TEST(Encode, TwoInterfacesGiveEachVariantItsOwnSections) {
  ArtifactContents contents = sample_contents();
  contents.interfaces.push_back(contents.interfaces[0]);
  contents.interfaces[1].cameras[0].name = "front-half";
  contents.variants[1].interface = 1;
  const auto bytes = encode(contents);
  ASSERT_TRUE(bytes);
  const auto decoded = decode(*bytes);
  ASSERT_TRUE(decoded) << reason(decoded.error());
  EXPECT_FALSE(decoded->find(INGOT_SECTION_IO, INGOT_VARIANT_COMMON));
  EXPECT_TRUE(decoded->find(INGOT_SECTION_IO, 0));
  const Tables& tables = decoded->tables;
  EXPECT_EQ(tables.name(tables.variant_tables[1].cameras[0].name), "front-half");
  EXPECT_NE(
      std::memcmp(tables.variants[0].interface_sha256, tables.variants[1].interface_sha256, 32), 0);
}

TEST(Encode, FeatureBitsAreSetExactlyWhereUsed) {
  ArtifactContents contents = sample_contents();
  contents.variants[0].calls[1].queue = 3;
  const auto bytes = encode(contents);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(header_of(*bytes).features_required, INGOT_FEATURE_QUEUES);
  const auto decoded = decode(*bytes);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().diagnostics[0].code, "E_FEATURE");
  EXPECT_EQ(decoded.error().exit, ExitCode::Incompatible);
}

TEST(Encode, ManifestRepeatsTheFactsAndKeepsCutNames) {
  ArtifactContents contents = sample_contents();
  const std::string long_name = "kernel " + std::string(300, 'k');
  contents.variants[0].programs[0].name = long_name;
  const auto bytes = encode(contents);
  ASSERT_TRUE(bytes);
  const auto decoded = decode(*bytes);
  ASSERT_TRUE(decoded);
  const auto json = nlohmann::json::parse(decoded->manifest);
  EXPECT_EQ(json["identity"]["product"], "road-vision");
  EXPECT_EQ(json["tool"]["version"], "0.1.0");
  EXPECT_EQ(json["tool"]["options"].size(), 2U);
  EXPECT_EQ(json["targets"][1]["name"], "aarch64");
  EXPECT_EQ(json["interfaces"][0]["variants"], (std::vector<int>{0, 1}));
  EXPECT_EQ(json["interfaces"][0]["references"][2]["atol"], "0.0010000000474974513");
  ASSERT_EQ(json["names"].size(), 1U);
  EXPECT_EQ(json["names"].begin().value(), long_name);
  EXPECT_EQ(decoded->manifest.find(' '), decoded->manifest.find("kernel ") + 6);
}

TEST(Encode, ContradictionsAreOurDefects) {
  const auto check = [](auto change) {
    ArtifactContents contents = sample_contents();
    change(contents);
    const auto bytes = encode(contents);
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().exit, ExitCode::Internal) << reason(bytes.error());
  };
  check([](ArtifactContents& c) { c.variants.clear(); });
  check([](ArtifactContents& c) { c.models.clear(); });
  check([](ArtifactContents& c) { c.variants[0].interface = 1; });
  check([](ArtifactContents& c) { c.variants[1].name = c.variants[0].name; });
  check([](ArtifactContents& c) { c.variants[0].calls.clear(); });
  check([](ArtifactContents& c) { c.variants[0].calls[0].program = 2; });
  check([](ArtifactContents& c) { c.variants[0].calls[0].args[0].view = 99; });
  check([](ArtifactContents& c) { c.variants[0].programs[0].code = 1; });
  check([](ArtifactContents& c) { c.variants[0].buffers[5].nbytes = 301; });
  check([](ArtifactContents& c) { c.variants[0].buffers[5].data = 2; });
  check([](ArtifactContents& c) { c.variants[0].buffers[1].arena = 2; });
  check([](ArtifactContents& c) { c.variants[0].views[0].buffer = 7; });
  check([](ArtifactContents& c) { c.variants[0].views[0].shape.assign(8, 0x7FFFFFFF); });
  check([](ArtifactContents& c) { c.variants[0].buffers[5].align_log2 = 9; });
  check([](ArtifactContents& c) { c.interfaces[0].references[0].data = {}; });
  check([](ArtifactContents& c) { c.interfaces[0].slices[0].shape = {9}; });
  check([](ArtifactContents& c) { c.interfaces[0].slots[0].camera = 1; });
}

// A fill that skips calls whose results it does not replace would leave old bytes in the frame.
TEST(Encode, FillsCoverWhatTheSkippedCallsWrite) {
  const auto refused = [](auto change) {
    ArtifactContents contents = sample_contents();
    change(contents.variants[0]);
    const auto bytes = encode(contents);
    return !bytes && bytes.error().exit == ExitCode::Internal;
  };
  EXPECT_FALSE(refused([](Variant&) {}));
  EXPECT_TRUE(refused([](Variant& v) { v.transforms[0].fill->last_call = 1; }));
  EXPECT_TRUE(refused([](Variant& v) { v.transforms[0].fill->offset = 1; }));
  EXPECT_TRUE(refused([](Variant& v) { v.transforms[0].fill->buffer = 4; }));
  EXPECT_TRUE(refused([](Variant& v) { v.transforms[0].height = 2; }));
  // Two pictures of one call: both halves are filled together.
  EXPECT_FALSE(refused([](Variant& v) {
    v.transforms[0].kind = INGOT_TRANSFORM_CABIN;
    v.transforms[0].height = 3;
    v.transforms.push_back(v.transforms[0]);
    v.transforms[1].fill->offset = 12;
  }));
  EXPECT_TRUE(refused([](Variant& v) {
    v.transforms.push_back(v.transforms[0]);
    v.transforms[1].fill->last_call = 1;
  }));
  // Scratch that only the skipped calls see needs no filling.
  EXPECT_FALSE(refused([](Variant& v) {
    v.buffers[6].last_call = 0;
    v.transforms[0].fill->buffer = 6;
    v.transforms[0].height = 2;
  }));
}

TEST(Encode, LimitsAndNamesAreTheUsers) {
  ArtifactContents contents = sample_contents();
  contents.interfaces[0].slots[1].name = "frame";
  EXPECT_EQ(encode(contents).error().exit, ExitCode::Unsupported);
  contents = sample_contents();
  contents.product = "Road Vision";
  EXPECT_EQ(encode(contents).error().exit, ExitCode::Usage);
  contents = sample_contents();
  contents.variants[0].arenas.resize(17);
  EXPECT_EQ(encode(contents).error().exit, ExitCode::Unsupported);
  contents = sample_contents();
  contents.interfaces[0].slots[0].shape.assign(9, 1);
  EXPECT_EQ(encode(contents).error().exit, ExitCode::Unsupported);
}

TEST(Encode, ExternalFilesAreHashedInOrderOfTheirNames) {
  EXPECT_EQ(external_files_digest({}), Digest{});
  const ExternalFile a{"a.bin", 1, sha256("a")};
  const ExternalFile b{"b.bin", 2, sha256("b")};
  EXPECT_EQ(external_files_digest({a, b}), external_files_digest({b, a}));
  EXPECT_NE(external_files_digest({a}), external_files_digest({b}));
}

}  // namespace
}  // namespace ingot::artifact
