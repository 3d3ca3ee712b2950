#include "onnx_frontend/output_slices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/onnx_frontend/model_writer.h"

namespace ingot {
namespace {

TEST(OutputSlices, AgreeWithTheGoldenSamples) {
  INGOT_NEED_SHARED("golden/metadata/output_slices.json");
  std::ifstream file(shared_folder() / "golden/metadata/output_slices.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  int accepted = 0;
  int rejected = 0;
  for (const auto& sample : golden["cases"]) {
    const std::string id = sample["id"];
    const auto decoded = decode_output_slices(sample["base64"].get<std::string>(),
                                              sample["output_width"].get<std::int64_t>());
    if (sample["expect"] == "reject") {
      ++rejected;
      EXPECT_EQ(exit_of(decoded), ExitCode::Malformed) << id << ": " << sample["why"];
      continue;
    }
    ++accepted;
    ASSERT_TRUE(decoded) << id << ": " << problems(decoded);
    EXPECT_EQ(decoded->size(), sample["slices"].size()) << id;
    for (const OutputSlice& slice : *decoded) {
      ASSERT_TRUE(sample["slices"].contains(slice.name)) << id;
      EXPECT_EQ(slice.start, sample["slices"][slice.name][0]) << id << " " << slice.name;
      EXPECT_EQ(slice.stop, sample["slices"][slice.name][1]) << id << " " << slice.name;
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_GT(rejected, 0);
}

// Nothing may crash or hang, whatever byte is changed or missing.
TEST(OutputSlices, SurviveDamage) {
  INGOT_NEED_SHARED("golden/metadata/output_slices.json");
  std::ifstream file(shared_folder() / "golden/metadata/output_slices.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  unsigned state = 1;
  for (const auto& sample : golden["cases"]) {
    const std::string text = sample["base64"];
    for (int round = 0; round < 200 && !text.empty(); ++round) {
      std::string damaged = text;
      state = state * 1664525 + 1013904223;
      damaged[state % damaged.size()] = static_cast<char>('A' + state / 65536 % 26);
      (void)decode_output_slices(damaged, 100);
      (void)decode_output_slices(std::string_view(text).substr(0, state % text.size() / 4 * 4),
                                 100);
    }
  }
}

TEST(OutputSlices, AreSortedByStart) {
  const auto sorted = sort_slices({{"b", 4, 6}, {"none", 4, 4}, {"a", 0, 2}});
  ASSERT_TRUE(sorted) << problems(sorted);
  const std::vector<OutputSlice> wanted = {{"a", 0, 2}, {"none", 4, 4}, {"b", 4, 6}};
  EXPECT_EQ(*sorted, wanted);
}

TEST(OutputSlices, RefuseOverlap) {
  const auto sorted = sort_slices({{"a", 0, 5}, {"b", 4, 6}});
  ASSERT_FALSE(sorted);
  EXPECT_EQ(sorted.error().exit, ExitCode::Malformed);
  EXPECT_NE(problems(sorted).find("'b' overlaps 'a'"), std::string::npos);
}

}  // namespace
}  // namespace ingot
