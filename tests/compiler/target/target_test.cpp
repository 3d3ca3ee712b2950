#include "compiler/target/target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace ingot {
namespace {

TEST(Target, RowsAreComplete) {
  std::set<std::string> names;
  for (const Target& target : known_targets()) {
    EXPECT_TRUE(names.insert(target.name).second) << target.name;
    EXPECT_FALSE(target.triple.empty());
    EXPECT_NE(target.feature_bits, 0U);
    EXPECT_EQ(target.lanes(DType::F32) * 32, target.vector_bits);
    for (const std::string& feature : target.llvm_features) EXPECT_EQ(feature[0], '+') << feature;
    const Result<Target> found = find_target(target.name);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->feature_bits, target.feature_bits);
  }
  EXPECT_EQ(names, (std::set<std::string>{"aarch64", "x86-64-v2", "x86-64-v3", "x86-64-v4"}));
}

// A row's features contain those of the row before, so that "most capable" has a meaning.
TEST(Target, X86LevelsContainEachOther) {
  const Target v2 = *find_target("x86-64-v2");
  const Target v3 = *find_target("x86-64-v3");
  const Target v4 = *find_target("x86-64-v4");
  EXPECT_EQ(v2.feature_bits & ~v3.feature_bits, 0U);
  EXPECT_EQ(v3.feature_bits & ~v4.feature_bits, 0U);
  EXPECT_EQ(v3.xcr0 & ~v4.xcr0, 0U);
  EXPECT_FALSE(v2.has_fma);
  EXPECT_TRUE(v3.has_fma);
}

TEST(Target, HostIsARowOfThisArchitecture) {
  const Result<Target> host = find_target("host");
  ASSERT_TRUE(host.has_value());
  EXPECT_NE(host->name, "host");
  EXPECT_EQ(host->architecture, default_target().architecture);
  EXPECT_EQ(baseline_target().architecture, default_target().architecture);
}

TEST(Target, UnknownNamesAreAUsageFailureThatListsTheNames) {
  const Result<Target> unknown = find_target("x86-64-v9");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().exit, ExitCode::Usage);
  for (const Target& target : known_targets()) {
    EXPECT_NE(unknown.error().diagnostics[0].hint.find(target.name), std::string::npos);
  }
}

TEST(Device, NamesATargetAndNarrowsIt) {
  const Result<Target> device = parse_device(
      R"({"format": "ingot-device/1", "name": "bench", "target": "x86-64-v4",
          "vector_bits": 256, "l1_bytes": 49152, "l2_bytes": 2097152, "l3_bytes": 4294967296})",
      "device.json");
  ASSERT_TRUE(device.has_value()) << to_line(device.error().diagnostics[0]);
  EXPECT_EQ(device->name, "x86-64-v4");
  EXPECT_EQ(device->vector_bits, 256);
  EXPECT_EQ(device->l1_bytes, 49152);
  EXPECT_EQ(device->l2_bytes, 2097152);
  EXPECT_EQ(device->l3_bytes, 4294967296);
}

TEST(Device, EverythingWrongIsReportedAtOnce) {
  const Result<Target> device = parse_device(
      R"({"format": "ingot-device/2", "target": "x86-64-v3", "vector_bits": 512, "cores": 4,
          "l1_bytes": 1, "l2_bytes": -5, "name": 7})",
      "device.json");
  ASSERT_FALSE(device.has_value());
  EXPECT_EQ(device.error().exit, ExitCode::Malformed);
  std::string all;
  for (const Diagnostic& diagnostic : device.error().diagnostics) {
    EXPECT_EQ(diagnostic.file, "device.json");
    all += to_line(diagnostic) + "\n";
  }
  for (const char* part : {"unknown key 'cores'", "'format'", "'vector_bits': 512 is more",
                           "'l1_bytes': expected", "'l2_bytes': expected", "'name'"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << " in\n" << all;
  }
}

TEST(Device, OtherTextIsRefused) {
  for (const char* text :
       {"", "[", "[]", "null", "{}", R"({"format": "ingot-device/1"})",
        R"({"format": "ingot-device/1", "target": "aarch64", "target": "aarch64"})",
        R"({"format": "ingot-device/1", "target": "arm"})",
        R"({"format": "ingot-device/1", "target": "aarch64", "vector_bits": 96})",
        R"({"format": 1, "target": ["aarch64"]})"}) {
    EXPECT_FALSE(parse_device(text, "device.json").has_value()) << text;
  }
}

}  // namespace
}  // namespace ingot
