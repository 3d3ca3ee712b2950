#include "artifact/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "sample_artifact.h"

namespace ingot::artifact {
namespace {

std::string key_text(std::uint8_t number) {
  return to_hex(std::span<const std::uint8_t>(sample_key(number).public_key));
}

nlohmann::json sample_policy() {
  return {{"format", "ingot-policy/1"},
          {"keys",
           {{{"name", "one"}, {"public_key", key_text(1)}, {"purposes", {"release"}}},
            {{"public_key", *public_key_pem(sample_key(2).public_key)},
             {"lowest_counter", 1},
             {"highest_counter", 9}}}},
          {"threshold", 2},
          {"required_purposes", {"release"}},
          {"build_classes", {"release", "candidate"}},
          {"product", "road-vision"},
          {"lowest_counter", 3},
          {"denied_ids", {std::string(64, 'a')}},
          {"require_references", true},
          {"tolerance", {{"max_atol", 0.05}, {"max_ulp", 4}, {"min_cosine", 0.99}}}};
}

std::vector<std::string> places(const std::string& text) {
  const auto policy = parse_policy(text, "p.json");
  std::vector<std::string> result;
  if (policy) return result;
  EXPECT_EQ(policy.error().exit, ExitCode::Malformed);
  for (const Diagnostic& diagnostic : policy.error().diagnostics) {
    EXPECT_EQ(diagnostic.file, "p.json");
    result.push_back(diagnostic.node);
  }
  std::ranges::sort(result);
  return result;
}

using Places = std::vector<std::string>;

TEST(Policy, ReadsEveryField) {
  const auto policy = parse_policy(sample_policy().dump(), "p.json");
  ASSERT_TRUE(policy) << to_line(policy.error().diagnostics[0]);
  ASSERT_EQ(policy->keys.size(), 2U);
  EXPECT_EQ(policy->keys[0].name, "one");
  EXPECT_EQ(policy->keys[0].key, sample_key(1).public_key);
  EXPECT_EQ(policy->keys[0].purposes, std::vector{INGOT_PURPOSE_RELEASE});
  EXPECT_EQ(policy->keys[0].highest_counter, UINT64_MAX);
  EXPECT_EQ(policy->keys[1].key, sample_key(2).public_key);
  EXPECT_EQ(policy->keys[1].highest_counter, 9U);
  EXPECT_EQ(policy->threshold, 2U);
  EXPECT_EQ(policy->build_classes.size(), 2U);
  EXPECT_EQ(policy->product, "road-vision");
  EXPECT_EQ(policy->lowest_counter, 3U);
  EXPECT_EQ(policy->denied_ids.size(), 1U);
  EXPECT_TRUE(policy->require_references);
  EXPECT_FLOAT_EQ(*policy->tolerance.max_atol, 0.05F);
  EXPECT_FALSE(policy->tolerance.max_rtol);
  EXPECT_EQ(policy->tolerance.max_ulp, 4U);
}

TEST(Policy, DefaultsAreTheToolsDefaults) {
  const nlohmann::json least = {{"format", "ingot-policy/1"},
                                {"keys", {{{"public_key", key_text(1)}}}}};
  const auto policy = parse_policy(least.dump(), "p.json");
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->threshold, 1U);
  EXPECT_TRUE(policy->counted_purposes.empty());
  EXPECT_FALSE(policy->product);
}

TEST(Policy, UnknownKeysAreErrors) {
  auto json = sample_policy();
  json["treshold"] = 2;
  json["keys"][1]["purpose"] = "release";
  json["tolerance"]["atol"] = 1;
  EXPECT_EQ(places(json.dump()), (Places{"", "keys[1]", "tolerance"}));
}

TEST(Policy, EveryProblemIsReportedAtOnce) {
  auto json = sample_policy();
  json["format"] = "ingot-policy/2";
  json["threshold"] = -1;
  json["product"] = "Road";
  json["keys"][0]["public_key"] = "12";
  json["keys"][0]["purposes"] = {"release", "releases", "release"};
  json["denied_ids"][0] = "A";
  json["tolerance"]["min_cosine"] = 2;
  json["build_classes"] = nlohmann::json::array();
  json["require_references"] = 1;
  EXPECT_EQ(places(json.dump()),
            (Places{"build_classes", "denied_ids[0]", "format", "keys[0].public_key",
                    "keys[0].purposes[1]", "keys[0].purposes[2]", "product", "require_references",
                    "threshold", "tolerance.min_cosine"}));
}

TEST(Policy, MissingAndDoubledKeysAreErrors) {
  EXPECT_EQ(places("{}"), (Places{"", ""}));
  EXPECT_EQ(places(R"({"format":"ingot-policy/1","keys":[{"name":"a","name":"b"}]})"),
            (Places{""}));
  EXPECT_EQ(places("[]"), (Places{""}));
  EXPECT_EQ(places(R"({"format":)"), (Places{""}));
  EXPECT_EQ(places(std::string((1U << 20) + 1, ' ')), (Places{""}));
}

TEST(Policy, OneKeyCannotFillAThresholdOfTwo) {
  auto json = sample_policy();
  json["keys"][1]["public_key"] = key_text(1);
  EXPECT_EQ(places(json.dump()), (Places{"keys[1].public_key"}));
  json = sample_policy();
  json["keys"][1]["revoked"] = true;
  EXPECT_EQ(places(json.dump()), (Places{"threshold"}));
  json = sample_policy();
  json["keys"][0]["lowest_counter"] = 5;
  json["keys"][0]["highest_counter"] = 4;
  EXPECT_EQ(places(json.dump()), (Places{"keys[0].lowest_counter"}));
}

TEST(Policy, WeakKeysAreRefused) {
  auto json = sample_policy();
  json["keys"][0]["public_key"] = "01" + std::string(62, '0');
  EXPECT_EQ(places(json.dump()), (Places{"keys[0].public_key"}));
}

// The published schema names the same keys as the reader takes.
TEST(Policy, SchemaKnowsTheSameKeys) {
  std::ifstream file(INGOT_SOURCE_DIR "/docs/policy.schema.json");
  ASSERT_TRUE(file);
  const auto schema = nlohmann::json::parse(file);
  EXPECT_EQ(schema["additionalProperties"], false);
  auto json = sample_policy();
  for (const auto& [key, value] : schema["properties"].items()) json.emplace(key, nullptr);
  for (const auto& [key, value] : schema["$defs"]["key"]["properties"].items()) {
    json["keys"][0].emplace(key, nullptr);
  }
  for (const auto& [key, value] : schema["properties"]["tolerance"]["properties"].items()) {
    json["tolerance"].emplace(key, nullptr);
  }
  // Every added null is refused for its type, none as unknown.
  const auto policy = parse_policy(json.dump(), "p.json");
  ASSERT_FALSE(policy);
  for (const Diagnostic& diagnostic : policy.error().diagnostics) {
    EXPECT_NE(diagnostic.code, "unknown-key") << to_line(diagnostic);
  }
  EXPECT_EQ(policy.error().diagnostics.size(),
            schema["properties"].size() - sample_policy().size() +
                schema["$defs"]["key"]["properties"].size() - sample_policy()["keys"][0].size() +
                schema["properties"]["tolerance"]["properties"].size() -
                sample_policy()["tolerance"].size());
}

TEST(Policy, WordsReadBack) {
  for (const std::uint32_t purpose : {1U, 2U, 3U, 4U}) {
    EXPECT_EQ(parse_purpose(purpose_name(purpose)), static_cast<IngotPurpose>(purpose));
  }
  for (const std::uint32_t build_class : {1U, 2U, 3U}) {
    EXPECT_EQ(parse_build_class(build_class_name(build_class)),
              static_cast<IngotBuildClass>(build_class));
  }
  EXPECT_FALSE(parse_purpose("Release"));
}

}  // namespace
}  // namespace ingot::artifact
