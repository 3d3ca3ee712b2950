#include "base/strict_json.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

std::string first_line(const Failure& failure) { return to_line(failure.diagnostics.front()); }

TEST(StrictJson, RefusesWhatIsNoObject) {
  for (const char* text : {"", "{", "[1]", "3", "{\"a\": 1} x", "\xff\xfe", "{\"a\": nan}"}) {
    const auto json = parse_json_file(text, "f.json");
    ASSERT_FALSE(json.has_value()) << text;
    EXPECT_EQ(json.error().exit, ExitCode::Malformed);
    EXPECT_EQ(first_line(json.error()).substr(0, 15), "f.json: error: ");
  }
}

TEST(StrictJson, RefusesRepeatedKeysAtAnyDepth) {
  EXPECT_FALSE(parse_json_file(R"({"a": 1, "a": 2})", "f").has_value());
  EXPECT_FALSE(parse_json_file(R"({"a": [{"b": 1, "b": 2}]})", "f").has_value());
  EXPECT_TRUE(parse_json_file(R"({"a": {"b": 1}, "b": {"a": 1, "b": 2}})", "f").has_value());
}

TEST(StrictJson, SurvivesDeepNestingAndLargeFiles) {
  EXPECT_FALSE(parse_json_file(std::string(500000, '['), "f").has_value());
  std::string deep = "{\"a\":" + std::string(200000, '[') + std::string(200000, ']') + "}";
  EXPECT_TRUE(parse_json_file(deep, "f").has_value());
  EXPECT_FALSE(
      parse_json_file("{\"a\": \"" + std::string(2U << 20U, 'x') + "\"}", "f").has_value());
}

TEST(StrictJson, ReportsEverythingWithItsPlace) {
  const auto json = parse_json_file(R"({"a": "x", "b": 99, "c": 1.5, "extra": 0})", "f.json");
  ASSERT_TRUE(json.has_value());
  JsonProblems problems("f.json");
  JsonObject object(*json, "list[2]", problems);
  EXPECT_EQ(object.integer("a", 1, 9), 1);
  EXPECT_EQ(object.integer("b", 1, 9), 1);
  EXPECT_EQ(object.integer("c", 1, 9), 1);
  EXPECT_EQ(object.text("b"), "");
  EXPECT_EQ(object.text("d"), "");
  EXPECT_EQ(object.text_or("e", "absent"), "absent");
  object.finish();
  const Failure failure = problems.failure().error();
  ASSERT_EQ(failure.diagnostics.size(), 6U);
  EXPECT_EQ(first_line(failure),
            "f.json: error: node 'list[2].a': expected a whole number, found text");
  EXPECT_EQ(failure.diagnostics[4].code, "missing-key");
  EXPECT_EQ(failure.diagnostics[5].message, "unknown key 'extra'");
}

TEST(StrictJson, NumbersBeyond64BitsAreRefused) {
  const auto json =
      parse_json_file(R"({"a": 18446744073709551615, "b": -9223372036854775808, "c": 1e300})", "f");
  ASSERT_TRUE(json.has_value());
  JsonProblems problems("f");
  JsonObject object(*json, "", problems);
  EXPECT_EQ(object.integer("a", 0, 5), 0);
  EXPECT_EQ(object.integer("b", 0, 5), 0);
  EXPECT_EQ(object.integer("c", 0, 5), 0);
  EXPECT_EQ(problems.failure().error().diagnostics.size(), 3U);
}

TEST(StrictJson, OptionalValuesAreAbsentOrRight) {
  const auto json = parse_json_file(
      R"({"text": "", "count": 18446744073709551615, "real": 1, "flag": false,
          "bad_text": 1, "bad_count": -1, "bad_real": 2.5, "bad_flag": "true"})",
      "f");
  ASSERT_TRUE(json.has_value());
  JsonProblems problems("f");
  JsonObject object(*json, "", problems);
  EXPECT_EQ(object.optional_text("text"), "");
  EXPECT_EQ(object.optional_count("count", 0, UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(object.optional_real("real", 0, 1), 1.0);
  EXPECT_EQ(object.optional_flag("flag"), false);
  EXPECT_FALSE(object.optional_text("absent"));
  EXPECT_FALSE(object.optional_count("absent", 0, 1));
  EXPECT_TRUE(problems.empty());
  EXPECT_FALSE(object.optional_text("bad_text"));
  EXPECT_FALSE(object.optional_count("bad_count", 0, UINT64_MAX));
  EXPECT_FALSE(object.optional_real("bad_real", 0, 1));
  EXPECT_FALSE(object.optional_flag("bad_flag"));
  object.finish();
  EXPECT_EQ(problems.failure().error().diagnostics.size(), 4U);
}

}  // namespace
}  // namespace ingot
