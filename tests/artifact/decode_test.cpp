#include "artifact/decode.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "artifact/encode.h"
#include "artifact/sign.h"
#include "sample_artifact.h"

namespace ingot::artifact {
namespace {

std::string error_of(std::span<const std::byte> bytes) {
  const auto decoded = decode(bytes);
  return decoded ? "OK" : decoded.error().diagnostics.front().code;
}

std::vector<std::byte> signed_sample() {
  auto bytes = add_signature(sample_artifact(), sample_key(1), {INGOT_PURPOSE_RELEASE, 1});
  EXPECT_TRUE(bytes);
  return std::move(*bytes);
}

TEST(Decode, AcceptsTheSample) {
  EXPECT_EQ(error_of(sample_artifact()), "OK");
  EXPECT_EQ(error_of(signed_sample()), "OK");
}

// Every single flipped byte of an unsigned artifact is refused: with exit 5, the two bytes of
// version_major with 6.
TEST(Decode, RefusesEveryFlippedByte) {
  std::vector<std::byte> bytes = sample_artifact();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    // The padding of a block is one hash away from any other byte of it; sample the long runs.
    if (i > 4096 && bytes[i] == std::byte{0} && i % 509 != 0) continue;
    bytes[i] ^= std::byte{0x10};
    const auto decoded = decode(bytes);
    ASSERT_FALSE(decoded) << "byte " << i;
    const bool version = i == 8 || i == 9;
    ASSERT_EQ(decoded.error().exit, version ? ExitCode::Incompatible : ExitCode::NotTrusted)
        << "byte " << i;
    bytes[i] ^= std::byte{0x10};
  }
}

TEST(Decode, RefusesEveryTruncation) {
  const std::vector<std::byte> bytes = sample_artifact();
  const std::span<const std::byte> all(bytes);
  for (std::size_t size = 0; size < bytes.size(); size += size < 2048 ? 1 : 997) {
    const auto decoded = decode(all.first(size));
    ASSERT_FALSE(decoded) << size;
    ASSERT_EQ(decoded.error().exit, ExitCode::NotTrusted) << size;
  }
  for (std::size_t cut = 1; cut < 64; ++cut) {
    ASSERT_FALSE(decode(all.first(bytes.size() - cut)));
  }
}

TEST(Decode, ReportsDamageByItsKind) {
  const std::vector<std::byte> good = signed_sample();
  const IngotHeader header = header_of(good);
  const auto with = [&](auto change) {
    std::vector<std::byte> bytes = good;
    change(bytes);
    return error_of(bytes);
  };
  const auto flip = [&](std::size_t offset) {
    return with([&](auto& b) { b[offset] ^= std::byte{1}; });
  };
  EXPECT_EQ(error_of({}), "E_TRUNCATED");
  EXPECT_EQ(with([&](auto& b) { b.resize(543); }), "E_TRUNCATED");
  EXPECT_EQ(with([&](auto& b) { b.resize(header.content_size); }), "E_TRUNCATED");
  EXPECT_EQ(with([&](auto& b) { b.pop_back(); }), "E_SIZE_MISMATCH");
  EXPECT_EQ(with([&](auto& b) { b.push_back(std::byte{0}); }), "E_SIZE_MISMATCH");
  EXPECT_EQ(with([&](auto& b) { b.insert(b.begin(), std::byte{0}); }), "E_MAGIC");
  EXPECT_EQ(flip(0), "E_MAGIC");
  EXPECT_EQ(flip(0x50), "E_HEADER_DIGEST");
  EXPECT_EQ(flip(0x1E0), "E_HEADER_DIGEST");
  EXPECT_EQ(flip(512), "E_META_DIGEST");
  EXPECT_EQ(flip(header.digest_table_offset), "E_META_DIGEST");
  EXPECT_EQ(flip(header.body_offset - 1), "E_META_DIGEST");
  EXPECT_EQ(flip(header.body_offset), "E_BLOCK_DIGEST");
  EXPECT_EQ(flip(header.content_size - 1), "E_BLOCK_DIGEST");
  EXPECT_EQ(flip(header.content_size), "E_SIG_BLOCK");
  EXPECT_EQ(flip(header.content_size + 8), "E_SIZE_MISMATCH");
  EXPECT_EQ(flip(header.content_size + 12), "E_SIG_BLOCK");
  EXPECT_EQ(flip(header.content_size + 31), "E_SIG_BLOCK");
  EXPECT_EQ(flip(header.content_size + 32 + 4), "E_SIG_BLOCK");
  EXPECT_EQ(flip(header.content_size + 32 + 12), "E_SIG_BLOCK");
  const auto small = decode(good, {good.size() - 1});
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().diagnostics[0].code, "E_TOO_LARGE");
  EXPECT_EQ(small.error().exit, ExitCode::NotTrusted);
}

TEST(Decode, NamesTheDamagedBlock) {
  std::vector<std::byte> bytes = sample_artifact();
  const IngotHeader header = header_of(bytes);
  bytes[header.body_offset + 65536 + 5] ^= std::byte{1};
  const auto decoded = decode(bytes);
  ASSERT_FALSE(decoded);
  EXPECT_NE(decoded.error().diagnostics[0].message.find("block 1 "), std::string::npos);
}

TEST(Decode, ChecksTheHeaderBehindItsDigest) {
  const std::vector<std::byte> good = sample_artifact();
  const auto with = [&](auto change) {
    std::vector<std::byte> bytes = good;
    IngotHeader header = header_of(bytes);
    change(header);
    put_header(bytes, header);
    return error_of(bytes);
  };
  EXPECT_EQ(with([](IngotHeader& h) { h.version_major = 2; }), "E_VERSION");
  EXPECT_EQ(with([](IngotHeader& h) { h.version_minor = 7; }), "OK");
  EXPECT_EQ(with([](IngotHeader& h) { h.header_size = 511; }), "E_HEADER_SIZE");
  EXPECT_EQ(with([](IngotHeader& h) { h.content_size = ~std::uint64_t{255}; }), "E_TOO_LARGE");
  EXPECT_EQ(with([](IngotHeader& h) { h.content_size += 1; }), "E_HEADER_SIZE");
  EXPECT_EQ(with([](IngotHeader& h) { h.content_size = 0; }), "E_HEADER_SIZE");
  EXPECT_EQ(with([](IngotHeader& h) { h.content_size += 256; }), "E_TRUNCATED");
  EXPECT_EQ(with([](IngotHeader& h) { h.content_size -= 256; }), "E_SIG_BLOCK");
  EXPECT_EQ(with([](IngotHeader& h) { h.reserved_78 = 1; }), "E_RESERVED");
  EXPECT_EQ(with([](IngotHeader& h) { h.reserved_150[143] = 1; }), "E_RESERVED");
  EXPECT_EQ(with([](IngotHeader& h) { h.features_required = 8; }), "E_FEATURE");
  EXPECT_EQ(with([](IngotHeader& h) { h.features_optional = 8; }), "OK");
  EXPECT_EQ(with([](IngotHeader& h) { h.digest_table_offset += 256; }), "E_HEADER_FIELD");
  EXPECT_EQ(with([](IngotHeader& h) { h.body_offset += 65536; }), "E_HEADER_FIELD");
  EXPECT_EQ(with([](IngotHeader& h) { h.body_offset += 1; }), "E_HEADER_FIELD");
  EXPECT_EQ(with([](IngotHeader& h) { h.block_count -= 1; }), "E_HEADER_FIELD");
  EXPECT_EQ(with([](IngotHeader& h) { h.block_count = ~0U; }), "E_HEADER_FIELD");
  EXPECT_EQ(with([](IngotHeader& h) { h.block_size_log2 = 12; }), "E_HEADER_FIELD");
  EXPECT_EQ(with([](IngotHeader& h) { h.section_entry_size = 48; }), "E_HEADER_FIELD");
  EXPECT_EQ(with([](IngotHeader& h) { h.section_table_offset = 1024; }), "E_HEADER_FIELD");
  EXPECT_EQ(with([](IngotHeader& h) { h.hash_algorithm = 2; }), "E_HEADER_FIELD");
  EXPECT_EQ(with([](IngotHeader& h) { h.build_class = 4; }), "E_HEADER_FIELD");
  EXPECT_EQ(with([](IngotHeader& h) { h.section_count = 0; }), "E_LIMIT");
  EXPECT_EQ(with([](IngotHeader& h) { h.section_count = 1025; }), "E_LIMIT");
  EXPECT_EQ(with([](IngotHeader& h) { h.variant_count = 0; }), "E_LIMIT");
  EXPECT_EQ(with([](IngotHeader& h) { h.variant_count = 33; }), "E_LIMIT");
  EXPECT_EQ(with([](IngotHeader& h) { h.variant_count = 3; }), "E_SECTION_MISSING");
  EXPECT_EQ(with([](IngotHeader& h) { h.product[31] = 'x'; }), "E_PRODUCT");
  EXPECT_EQ(with([](IngotHeader& h) { h.product[0] = 'X'; }), "E_PRODUCT");
  EXPECT_EQ(with([](IngotHeader& h) { h.model_sha256[0] ^= 1; }), "E_MODEL");
}

TEST(Decode, ChecksTheSectionTableBehindItsDigest) {
  const std::vector<std::byte> good = sample_artifact();
  const auto with = [&](IngotSectionType type, auto change) {
    std::vector<std::byte> bytes = good;
    const std::size_t row = row_of(bytes, type);
    IngotSectionEntry entry = section_of(bytes, row);
    change(entry);
    put_section(bytes, row, entry);
    reseal(bytes);
    return error_of(bytes);
  };
  using Entry = IngotSectionEntry;
  constexpr auto kIo = INGOT_SECTION_IO;
  EXPECT_EQ(with(kIo, [](Entry& e) { e.offset -= 256; }), "E_SECTION_LAYOUT");
  EXPECT_EQ(with(kIo, [](Entry& e) { e.offset += 256; }), "E_SECTION_LAYOUT");
  EXPECT_EQ(with(kIo, [](Entry& e) { e.offset = ~std::uint64_t{255}; }), "E_SECTION_LAYOUT");
  EXPECT_EQ(with(kIo, [](Entry& e) { e.span = ~std::uint64_t{255}; }), "E_SECTION_LAYOUT");
  EXPECT_EQ(with(kIo, [](Entry& e) { e.span = 0; }), "E_SECTION_LAYOUT");
  EXPECT_EQ(with(kIo, [](Entry& e) { e.size = e.span + 1; }), "E_SECTION_LAYOUT");
  EXPECT_EQ(with(kIo, [](Entry& e) { e.size = 0; }), "E_SECTION_LAYOUT");
  EXPECT_EQ(with(INGOT_SECTION_MANIFEST, [](Entry& e) { e.span += 256; }), "E_SECTION_LAYOUT");
  EXPECT_EQ(with(kIo, [](Entry& e) { e.flags |= 8; }), "E_SECTION_TABLE");
  EXPECT_EQ(with(INGOT_SECTION_DATA, [](Entry& e) { e.flags |= INGOT_SECTION_EXEC; }),
            "E_SECTION_LAYOUT");
  EXPECT_EQ(with(INGOT_SECTION_CODE, [](Entry& e) { e.flags = INGOT_SECTION_REQUIRED; }),
            "E_SECTION_TABLE");
  EXPECT_EQ(with(INGOT_SECTION_BUFFERS, [](Entry& e) { e.flags = 0; }), "E_SECTION_TABLE");
  EXPECT_EQ(with(kIo, [](Entry& e) { e.reserved[19] = 1; }), "E_SECTION_TABLE");
  EXPECT_EQ(with(kIo, [](Entry& e) { e.entry_size = 127; }), "E_SECTION_TABLE");
  EXPECT_EQ(with(kIo, [](Entry& e) { e.entry_count += 1; }), "E_SECTION_TABLE");
  EXPECT_EQ(with(kIo, [](Entry& e) { e.entry_count = ~0U; }), "E_SECTION_TABLE");
  EXPECT_EQ(with(INGOT_SECTION_BUFFERS, [](Entry& e) { e.variant = 2; }), "E_SECTION_TABLE");
  EXPECT_EQ(with(INGOT_SECTION_BUFFERS, [](Entry& e) { e.variant = INGOT_VARIANT_COMMON; }),
            "E_SECTION_TABLE");
  EXPECT_EQ(with(INGOT_SECTION_MODEL, [](Entry& e) { e.variant = 0; }), "E_SECTION_TABLE");
  EXPECT_EQ(with(kIo, [](Entry& e) { e.index = 1; }), "E_SECTION_TABLE");
  EXPECT_EQ(with(INGOT_SECTION_BUFFERS, [](Entry& e) { e.variant = 1; }), "E_SECTION_DUPLICATE");
  EXPECT_EQ(with(INGOT_SECTION_REFDATA, [](Entry& e) { e.type = 63; }), "E_SECTION_UNKNOWN");
  EXPECT_EQ(with(INGOT_SECTION_MANIFEST, [](Entry& e) { e.type = 69; }), "E_SECTION_MISSING");
  EXPECT_EQ(with(kIo, [](Entry& e) { e.variant = 0; }), "E_SECTION_MISSING");
}

TEST(Decode, RefusesNonZeroPaddingBehindTheDigests) {
  std::vector<std::byte> bytes = sample_artifact();
  const IngotSectionEntry strings = section_of(bytes, 0);
  bytes[strings.offset + strings.span - 1] = std::byte{1};
  reseal(bytes);
  EXPECT_EQ(error_of(bytes), "E_PADDING");
  bytes = sample_artifact();
  bytes[header_of(bytes).body_offset - 1] = std::byte{1};
  reseal(bytes);
  EXPECT_EQ(error_of(bytes), "E_PADDING");
}

// A change of the tables that the manifest does not follow.
TEST(Decode, RefusesAManifestThatDisagrees) {
  std::vector<std::byte> bytes = sample_artifact();
  IngotHeader header = header_of(bytes);
  header.product[0] = 'x';
  put_header(bytes, header);
  const auto decoded = decode(bytes);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().diagnostics[0].code, "E_MANIFEST");
  EXPECT_EQ(decoded.error().exit, ExitCode::NotTrusted);

  bytes = sample_artifact();
  const IngotSectionEntry code = section_of(bytes, row_of(bytes, INGOT_SECTION_CODE));
  bytes[code.offset] ^= std::byte{1};
  reseal(bytes);
  EXPECT_EQ(error_of(bytes), "E_MANIFEST");
}

TEST(Decode, ReadsNoManifestOfAnotherForm) {
  const std::vector<std::byte> good = sample_artifact();
  const std::size_t row = row_of(good, INGOT_SECTION_MANIFEST);
  const IngotSectionEntry entry = section_of(good, row);
  const auto with = [&](std::string text) {
    std::vector<std::byte> bytes = good;
    text.resize(entry.size, ' ');
    std::memcpy(bytes.data() + entry.offset, text.data(), text.size());
    reseal(bytes);
    return error_of(bytes);
  };
  EXPECT_EQ(with(""), "E_MANIFEST");
  EXPECT_EQ(with("{}"), "E_MANIFEST");
  EXPECT_EQ(with(std::string(entry.size, '[')), "E_MANIFEST");
  EXPECT_EQ(with(std::string("\xFF\x00", 2)), "E_MANIFEST");
}

// Any single field with an extreme value gives a result or a named refusal, never more.
TEST(Decode, SurvivesEveryResealedWordOfTheTables) {
  const std::vector<std::byte> good = sample_artifact();
  const std::uint32_t values[] = {0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFF00, 0xFFFFFFFF};
  std::size_t accepted = 0;
  const auto probe = [&](std::size_t offset) {
    for (const std::uint32_t value : values) {
      std::vector<std::byte> bytes = good;
      std::memcpy(bytes.data() + offset, &value, sizeof value);
      if (bytes == good) continue;
      offset < 512 ? put_header(bytes, header_of(bytes)) : reseal(bytes);
      accepted += decode(bytes).has_value() ? 1 : 0;
    }
  };
  for (std::size_t offset = 0; offset < 512; offset += 4) probe(offset);
  for (std::size_t offset = 512; offset < 512 + 64 * 8; offset += 4) probe(offset);
  EXPECT_GT(accepted, 0U);  // version_minor, optional features
}

TEST(Decode, ArtifactIdIsTheHeaderDigestAndSurvivesSigning) {
  const std::vector<std::byte> bytes = sample_artifact();
  const auto id = artifact_id(bytes);
  ASSERT_TRUE(id);
  EXPECT_TRUE(std::ranges::equal(*id, header_of(bytes).header_sha256));
  EXPECT_EQ(*artifact_id(signed_sample()), *id);
  EXPECT_EQ(decode(bytes)->id, *id);
}

TEST(Decode, DetachedFilesAreCheckedLikeTheBlock) {
  const auto good = sign_detached(sample_artifact(), sample_key(1), {});
  ASSERT_TRUE(good);
  ASSERT_TRUE(decode_detached(*good));
  EXPECT_EQ(decode_detached(*good)->entries.size(), 1U);
  for (std::size_t size = 0; size < good->size(); ++size) {
    EXPECT_FALSE(decode_detached(std::span(*good).first(size)));
  }
  std::vector<std::byte> longer = *good;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_detached(longer));
}

}  // namespace
}  // namespace ingot::artifact
