#include "base/hex.h"

#include <gtest/gtest.h>

#include <array>

namespace ingot {
namespace {

TEST(Hex, EveryByteReadsBack) {
  std::array<std::uint8_t, 256> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
  const std::string text = to_hex(bytes);
  EXPECT_EQ(text.substr(0, 6), "000102");
  EXPECT_EQ(text.substr(506), "fdfeff");
  std::array<std::uint8_t, 256> back{};
  EXPECT_TRUE(from_hex(text, back));
  EXPECT_EQ(back, bytes);
}

TEST(Hex, OtherTextIsRefused) {
  std::array<std::uint8_t, 2> bytes{};
  EXPECT_TRUE(from_hex("aBCd", bytes));
  EXPECT_EQ(bytes[1], 0xCD);
  for (const char* text : {"", "abc", "abcde", "abcg", "ab/d", "ab:d", "ab@d", "ab`d", " bcd"}) {
    EXPECT_FALSE(from_hex(text, bytes)) << text;
  }
}

}  // namespace
}  // namespace ingot
