// The format header beside the loader's public header, and the error table.
#include "artifact/format.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "artifact/errors.h"

namespace ingot::artifact {
namespace {

TEST(Format, MagicIsTheStatedBytes) {
  const unsigned char expected[8] = {0x89, 0x49, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A};
  EXPECT_EQ(std::memcmp(INGOT_MAGIC, expected, 8), 0);
  EXPECT_EQ(sizeof(INGOT_SIGNATURE_MAGIC), 9U);
  EXPECT_EQ(sizeof(INGOT_DETACHED_MAGIC), 9U);
}

TEST(Format, EveryErrorHasOneNameOneNumberOneExitCode) {
  std::set<int> numbers;
  std::set<std::string> names;
#define INGOT_ROW(name, number, exit_code) \
  numbers.insert(number);                  \
  names.insert(#name);
  INGOT_ERROR_LIST(INGOT_ROW)
#undef INGOT_ROW
  int rows = 0;
#define INGOT_ROW(name, number, exit_code) ++rows;
  INGOT_ERROR_LIST(INGOT_ROW)
#undef INGOT_ROW
  EXPECT_EQ(static_cast<int>(numbers.size()), rows);
  EXPECT_EQ(static_cast<int>(names.size()), rows);
  EXPECT_EQ(error_name(INGOT_E_BLOCK_DIGEST), "E_BLOCK_DIGEST");
  EXPECT_EQ(error_name(7), "E_UNKNOWN");
  EXPECT_EQ(error_exit_code(INGOT_E_VERSION), ExitCode::Incompatible);
  EXPECT_EQ(error_exit_code(INGOT_E_MANIFEST), ExitCode::NotTrusted);
  EXPECT_EQ(error_exit_code(INGOT_E_TRANSFORM_DEGENERATE), ExitCode::Malformed);
}

}  // namespace
}  // namespace ingot::artifact
