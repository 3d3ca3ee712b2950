#include "cli/loaded_artifact.h"

#include <gtest/gtest.h>

namespace ingot::cli {
namespace {

TEST(RecordedOption, IsFoundByName) {
  const char* manifest = R"({"tool":{"options":[["target","x"],["numerics","float16"]]}})";
  EXPECT_EQ(recorded_option(manifest, "numerics"), "float16");
  EXPECT_EQ(recorded_option(manifest, "nothing"), "");
}

// Anybody may sign a manifest of any shape.
TEST(RecordedOption, OddManifestsHaveNone) {
  for (const char* manifest :
       {"", "null", "[]", "7", R"("text")", "{}", R"({"tool":null})", R"({"tool":[]})",
        R"({"tool":[["options"]]})", R"({"tool":"options"})", R"({"tool":{"options":null}})",
        R"({"tool":{"options":{"numerics":"x"}}})", R"({"tool":{"options":"numerics"}})",
        R"({"tool":{"options":[[],["numerics"],["numerics",1],"numerics",null]}})"}) {
    EXPECT_EQ(recorded_option(manifest, "numerics"), "") << manifest;
  }
}

TEST(NameTable, OddManifestsHaveNoNames) {
  for (const char* manifest : {"", "[]", "{\"names\":[]}", "{\"names\":{\"a\":1}}"}) {
    EXPECT_EQ(NameTable(manifest).original("a"), "a") << manifest;
  }
}

}  // namespace
}  // namespace ingot::cli
