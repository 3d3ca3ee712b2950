#include "artifact/names.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace ingot::artifact {
namespace {

TEST(Names, PlainNamesStayAsTheyAre) {
  EXPECT_EQ(encode_name("model/layer.1:0_a-b+c"), "model/layer.1:0_a-b+c");
}

TEST(Names, OtherBytesBecomePercentAndTwoDigits) {
  EXPECT_EQ(encode_name("out puts"), "out%20puts");
  EXPECT_EQ(encode_name("100%"), "100%25");
  EXPECT_EQ(encode_name("\xC3\xA9\x1B"), "%C3%A9%1B");
}

TEST(Names, EveryNameThatFitsReadsBack) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string name(random() % 80, '\0');
    for (char& c : name) c = static_cast<char>(random());
    const std::string encoded = encode_name(name);
    EXPECT_TRUE(is_stored_name(encoded));
    EXPECT_EQ(decode_name(encoded), name);
  }
}

TEST(Names, LongNamesAreCutBetweenCharactersAndStayDistinct) {
  const std::string long_name(200, ' ');
  const std::string encoded = encode_name(long_name);
  EXPECT_LE(encoded.size(), 255U);
  EXPECT_EQ(decode_name(encoded), std::nullopt);
  const std::size_t mark = encoded.find("%-");
  ASSERT_NE(mark, std::string::npos);
  EXPECT_EQ(mark % 3, 0U);
  EXPECT_EQ(encoded.size() - mark, 34U);
  EXPECT_NE(encode_name(std::string(201, ' ')), encoded);
  EXPECT_EQ(encode_name(std::string(255, 'a')), std::string(255, 'a'));
  EXPECT_EQ(encode_name(std::string(256, 'a')).size(), 255U);
}

TEST(Names, OnlyOneSpellingDecodes) {
  EXPECT_EQ(decode_name("%41"), std::nullopt);
  EXPECT_EQ(decode_name("%c3"), std::nullopt);
  EXPECT_EQ(decode_name("a%2"), std::nullopt);
  EXPECT_EQ(decode_name("a b"), std::nullopt);
  EXPECT_EQ(decode_name("%-"), "");
  EXPECT_EQ(decode_name(""), std::nullopt);
}

TEST(Names, FileStemsUseTheReplacedName) {
  EXPECT_EQ(file_stem("a/b:c d.0"), "a_b_c_d.0");
  EXPECT_EQ(file_stem(std::string(300, 'x')).size(), 200U);
  EXPECT_EQ(file_stem(""), "_");
}

TEST(Names, FileStemsThatCollideAreRefused) {
  const std::vector<std::string> good = {"a", "b/c"};
  EXPECT_EQ(file_stems(good), (std::vector<std::string>{"a", "b_c"}));
  const std::vector<std::string> bad = {"a/b", "a:b", "a b"};
  const auto result = file_stems(bad);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().exit, ExitCode::Unsupported);
  EXPECT_EQ(result.error().diagnostics.size(), 2U);
}

TEST(Names, ProductsAreMadeFromModelNames) {
  EXPECT_EQ(product_name("Driving_Vision v2"), "driving-vision-v2");
  EXPECT_EQ(product_name(""), "model");
  EXPECT_TRUE(is_product_name(product_name(std::string(100, '/'))));
  EXPECT_FALSE(is_product_name("Road"));
  EXPECT_FALSE(is_product_name(std::string(33, 'a')));
}

}  // namespace
}  // namespace ingot::artifact
