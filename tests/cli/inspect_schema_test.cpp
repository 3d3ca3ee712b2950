// docs/inspect.schema.json describes what inspect --json prints, key by key.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <regex>
#include <sstream>

#include "cli/json.h"
#include "tests/cli/npy_text.h"
#include "tests/cli/tiny_model.h"
#include "tests/cli/tool.h"

namespace ingot::cli {
namespace {

// The keywords that the schema uses; another one is an error, not silently ignored.
class Validator {
 public:
  explicit Validator(Json schema) : schema_(std::move(schema)) {}

  std::vector<std::string> check(const Json& value) {
    problems_.clear();
    check(value, schema_, "$");
    return problems_;
  }

 private:
  void problem(const std::string& path, const std::string& text) {
    problems_.push_back(path + ": " + text);
  }

  static bool has_type(const Json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "integer") return value.is_number_integer();
    return type == "null" && value.is_null();
  }

  static bool has_any_type(const Json& value, const Json& types) {
    if (types.is_string()) return has_type(value, types);
    return std::ranges::any_of(types, [&](const Json& type) { return has_type(value, type); });
  }

  void check(const Json& value, const Json& schema, const std::string& path) {
    for (const auto& [keyword, rule] : schema.items()) {
      if (keyword == "$ref") {
        const std::string name = rule.get<std::string>().substr(std::string("#/$defs/").size());
        check(value, schema_.at("$defs").at(name), path);
      } else if (keyword == "type") {
        if (!has_any_type(value, rule)) problem(path, "is no " + rule.dump());
      } else if (keyword == "enum") {
        if (std::ranges::find(rule, value) == rule.end()) problem(path, value.dump());
      } else if (keyword == "minimum") {
        if (value.is_number() && value < rule) problem(path, value.dump());
      } else if (keyword == "pattern") {
        check_pattern(value, rule, path);
      } else if (keyword == "required") {
        for (const Json& key : rule) {
          if (!value.contains(key.get<std::string>())) problem(path, "lacks " + key.dump());
        }
      } else if (keyword == "properties") {
        check_properties(value, rule, path);
      } else if (keyword == "items") {
        check_items(value, rule, path);
      } else if (!is_remark(keyword, rule)) {
        problem(path, "the schema has an unknown keyword " + keyword);
      }
    }
  }

  static bool is_remark(const std::string& keyword, const Json& rule) {
    if (keyword == "additionalProperties") return rule == false;  // as check_properties() has it
    constexpr std::array<std::string_view, 5> kRemarks = {"$schema", "$id", "$defs", "title",
                                                          "description"};
    return std::ranges::find(kRemarks, keyword) != kRemarks.end();
  }

  void check_pattern(const Json& value, const Json& pattern, const std::string& path) {
    const std::regex regex(pattern.get<std::string>());
    if (value.is_string() && !std::regex_match(value.get<std::string>(), regex)) {
      problem(path, value.dump() + " is not as " + pattern.dump());
    }
  }

  void check_properties(const Json& value, const Json& properties, const std::string& path) {
    if (!value.is_object()) return;
    for (const auto& [key, member] : value.items()) {
      if (!properties.contains(key)) {
        problem(path, "has the unknown key " + key);
        continue;
      }
      check(member, properties[key], path + "." + key);
    }
  }

  void check_items(const Json& value, const Json& schema, const std::string& path) {
    if (!value.is_array()) return;
    std::size_t index = 0;
    for (const Json& item : value) check(item, schema, fmt::format("{}[{}]", path, index++));
  }

  Json schema_;
  std::vector<std::string> problems_;
};

Json published_schema() {
  std::ifstream file(INGOT_INSPECT_SCHEMA);
  std::ostringstream text;
  text << file.rdbuf();
  return parse_json(text.str(), "schema").value_or(Json());
}

class InspectSchema : public testing::Test {
 protected:
  void compile(const std::string& model, std::vector<std::string> more) {
    folder.write("m.onnx", model);
    more.insert(more.begin(), {"compile", "m.onnx", "-o", "m.ingot"});
    const ToolResult result = folder.tool(more);
    ASSERT_EQ(result.exit, 0) << result.errors;
  }

  Json inspect(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"inspect", "m.ingot", "--json"});
    const ToolResult result = folder.tool(more);
    EXPECT_EQ(result.exit, 0) << result.errors;
    return parse_json(result.output, "inspect").value_or(Json());
  }

  void expect_valid(const Json& json) {
    EXPECT_EQ(Validator(published_schema()).check(json), std::vector<std::string>{});
  }

  TemporaryFolder folder;
};

TEST_F(InspectSchema, PlainWithCallsAndBuffers) {
  compile(relu_plus_model(), {"--unsigned"});
  expect_valid(inspect());
  const Json full = inspect({"--calls", "--buffers"});
  EXPECT_TRUE(full["variants"][0].contains("call_list"));
  expect_valid(full);
}

TEST_F(InspectSchema, StatesSignaturesTargetsAndCases) {
  ASSERT_EQ(folder.tool({"keygen", "a"}).exit, 0);
  folder.write("golden/one/input_0.npy", npy_text({4}, {1, 2, 3, 4}));
  folder.write("golden/one/output_0.npy", npy_text({4}, {1, 2, 3, 4}));
  compile(counter_model(), {"--sign", "a.key", "--target", "x86-64-v2", "--target", "aarch64",
                            "--golden", "golden", "--device-family", "box"});
  const Json json = inspect({"--calls", "--buffers"});
  EXPECT_EQ(json["signatures"].size(), 1U);
  EXPECT_EQ(json["variants"].size(), 2U);
  expect_valid(json);
}

TEST_F(InspectSchema, CamerasAndTransforms) {
  const ToolResult cameras = folder.tool({"cameras", "--json"});
  const Result<Json> known = parse_json(cameras.output, "cameras");
  ASSERT_TRUE(known && known->is_array());
  Json camera = (*known)[0];
  camera.erase("devices");
  folder.write("c.json", to_text(camera));
  folder.write("p.json", R"({"format": "ingot-pipeline/1", "name": "warp", "cameras": ["c.json"],
    "frames": ["frame"], "outputs": {"image": "image"},
    "stages": [{"id": "image", "warp": "road", "frame": "frame", "transform": "tfm",
                "size": [16, 8]}]})");
  const ToolResult compiled = folder.tool({"compile", "p.json", "-o", "m.ingot", "--unsigned"});
  ASSERT_EQ(compiled.exit, 0) << compiled.errors;
  EXPECT_EQ(compiled.errors.find("changes no output"), std::string::npos) << compiled.errors;
  const Json json = inspect();
  EXPECT_EQ(json["variants"][0]["cameras"].size(), 1U);
  EXPECT_EQ(json["variants"][0]["transforms"].size(), 1U);
  expect_valid(json);
}

TEST_F(InspectSchema, FindsWhatIsWrong) {
  compile(relu_plus_model(), {"--unsigned"});
  Json json = inspect();
  json["variants"][0]["memory"].erase("code_bytes");
  json["variants"][0]["slots"][0]["dtype"] = "float";
  json["id"] = "1";
  json["extra"] = 1;
  EXPECT_EQ(Validator(published_schema()).check(json).size(), 4U);
}

}  // namespace
}  // namespace ingot::cli
