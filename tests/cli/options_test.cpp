#include "cli/options.h"

#include <gtest/gtest.h>

#include "tests/cli/tool.h"

namespace ingot::cli {
namespace {

TEST(Options, SplitsAtTheLastEqualsSign) {
  const Result<NameValue> pair = split_at_last_equals("a=b=c.npy", "--input");
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->name, "a=b");
  EXPECT_EQ(pair->value, "c.npy");
  for (const char* text : {"", "a", "=b", "a="}) {
    const Result<NameValue> bad = split_at_last_equals(text, "--input");
    ASSERT_FALSE(bad) << text;
    EXPECT_EQ(bad.error().exit, ExitCode::Usage);
  }
}

TEST(Options, ANameComesOnce) {
  EXPECT_TRUE(name_values({"a=1", "b=2"}, "--dim"));
  const auto twice = name_values({"a=1", "a=2"}, "--dim");
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().exit, ExitCode::Usage);
}

TEST(Options, Shapes) {
  EXPECT_EQ(*parse_shape("1x3x224x224", "--shape"), (Shape{1, 3, 224, 224}));
  EXPECT_EQ(*parse_shape("7", "--shape"), Shape{7});
  EXPECT_EQ(*parse_shape("0x2", "--shape"), (Shape{0, 2}));
  EXPECT_EQ(*parse_shape("scalar", "--shape"), Shape{});
  for (const char* text :
       {"x", "1x", "x1", "1xx2", "-1x2", "1,2", "1x2 ", "99999999999999999999"}) {
    EXPECT_FALSE(parse_shape(text, "--shape")) << text;
  }
}

TEST(Options, Integers) {
  EXPECT_EQ(*parse_integer("-12", "--dim"), -12);
  for (const char* text : {"", "1.5", "+1", " 1", "1 ", "0x10", "12a"}) {
    EXPECT_FALSE(parse_integer(text, "--dim")) << text;
  }
}

TEST(Options, ArtifactIds) {
  const std::string digits(62, '0');
  const Result<ArtifactId> id = parse_artifact_id("aF" + digits, "--id");
  ASSERT_TRUE(id);
  EXPECT_EQ((*id)[0], 0xAF);
  EXPECT_FALSE(parse_artifact_id("a" + digits, "--id"));
  EXPECT_FALSE(parse_artifact_id("ag" + digits, "--id"));
  EXPECT_FALSE(parse_artifact_id("aff" + digits, "--id"));
}

TEST(Options, FilesThatCannotBeRead) {
  const TemporaryFolder folder;
  folder.write("a", "text");
  EXPECT_EQ(*read_text_file(folder / "a"), "text");
  for (const std::filesystem::path& path : {folder / "b", folder.path()}) {
    const auto bytes = read_file(path);
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().exit, ExitCode::Io);
    EXPECT_EQ(bytes.error().diagnostics.front().file, path.string());
  }
}

TEST(Options, Sizes) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(1023), "1023 B");
  EXPECT_EQ(size_text(1536), "1.5 KiB");
  EXPECT_EQ(size_text(std::uint64_t{3} << 30), "3.0 GiB");
  EXPECT_EQ(size_text(std::uint64_t{3} << 40), "3072.0 GiB");
}

}  // namespace
}  // namespace ingot::cli
