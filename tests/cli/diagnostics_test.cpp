#include "cli/diagnostics.h"

#include <gtest/gtest.h>

#include <vector>

namespace ingot::cli {
namespace {

TEST(Diagnostics, TerminalsAreNotObeyed) {
  EXPECT_EQ(printable("a\x1b[31mb\nc\td\x7f"), "a\\x1b[31mb\\nc\\td\\x7f");
  EXPECT_EQ(printable("caf\xc3\xa9"), "caf\xc3\xa9");
}

TEST(Diagnostics, JsonHasAllMembersInOrder) {
  Diagnostic diagnostic;
  diagnostic.code = "unsupported-operator";
  diagnostic.file = "m.onnx";
  diagnostic.node = "n";
  diagnostic.op = "Foo";
  diagnostic.opset = 13;
  diagnostic.message = "no";
  const Json json = to_json(std::vector{diagnostic});
  EXPECT_EQ(to_compact_text(json),
            R"([{"severity":"error","code":"unsupported-operator","file":"m.onnx","node":"n",)"
            R"("op":"Foo","opset":13,"message":"no","hint":""}])");
}

TEST(Diagnostics, BytesThatAreNoTextStayValidJson) {
  Diagnostic diagnostic;
  diagnostic.message = "\xff\xfe";
  const std::string text = to_text(to_json(std::vector{diagnostic}));
  EXPECT_TRUE(parse_json(text, "self"));
}

TEST(Json, MembersThatAreMissingOrWrong) {
  const Json json = *parse_json(R"({"a":"text","n":3,"r":1.5})", "f");
  EXPECT_EQ(*string_member(json, "a", "f"), "text");
  EXPECT_EQ(*int_member(json, "n", "f"), 3);
  EXPECT_FALSE(string_member(json, "n", "f"));
  EXPECT_FALSE(int_member(json, "r", "f"));
  EXPECT_FALSE(int_member(json, "x", "f"));
  EXPECT_FALSE(int_member(Json::array(), "x", "f"));
  const Result<Json> bad = parse_json("{", "f");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().exit, ExitCode::Malformed);
}

}  // namespace
}  // namespace ingot::cli
