#include "compiler/camera/camera.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/compiler/camera/warp_vectors.h"

namespace ingot {
namespace {

nlohmann::json valid() {
  return {{"format", "ingot-camera/1"},
          {"name", "ox03c10"},
          {"pixel_format", "nv12"},
          {"width", 1928},
          {"height", 1208},
          {"stride", 2048},
          {"y_height", 1216},
          {"uv_height", 608},
          {"uv_offset", 2490368},
          {"size", 4804608}};
}

Result<ParsedCamera> parse(const nlohmann::json& json) {
  return parse_camera(json.dump(), "c.json");
}

TEST(Camera, ParsesEveryNumber) {
  auto json = valid();
  json["sample_range"] = "limited";
  json["colour_matrix"] = "bt709";
  json["max_age_us"] = 60000;
  json["pixel_format"] = "nv21";
  const auto parsed = parse(json);
  ASSERT_TRUE(parsed.has_value());
  const Camera& camera = parsed->camera;
  EXPECT_EQ(camera.name, "ox03c10");
  EXPECT_EQ(camera.pixel_format, PixelFormat::Nv21);
  EXPECT_EQ(camera.stride, 2048U);
  EXPECT_EQ(camera.copy_bytes(), 3735552U);
  EXPECT_EQ(camera.size_bytes, 4804608U);
  EXPECT_EQ(camera.sample_range, SampleRange::Limited);
  EXPECT_EQ(camera.colour_matrix, ColourMatrix::Bt709);
  EXPECT_EQ(camera.max_age_us, 60000U);
  EXPECT_TRUE(parsed->warnings.empty());
}

TEST(Camera, ChromaOffsetDefaultsToTheEndOfY) {
  auto json = valid();
  json.erase("uv_offset");
  EXPECT_EQ(parse(json)->camera.uv_offset, 2490368U);
}

TEST(Camera, EveryRuleOfALayout) {
  const std::vector<std::pair<const char*, nlohmann::json>> bad = {{"width", 1927},
                                                                   {"height", 1207},
                                                                   {"stride", 1926},
                                                                   {"y_height", 1206},
                                                                   {"uv_height", 603},
                                                                   {"uv_offset", 2490367},
                                                                   {"size", 3735551},
                                                                   {"width", 0},
                                                                   {"width", -2},
                                                                   {"width", "1928"},
                                                                   {"stride", 2048.5},
                                                                   {"size", 3e9},
                                                                   {"pixel_format", "nv16"},
                                                                   {"sample_range", "wide"},
                                                                   {"colour_matrix", 1},
                                                                   {"name", ""},
                                                                   {"max_age_us", -1},
                                                                   {"max_age_us", 999},
                                                                   {"format", "ingot-camera/2"}};
  for (const auto& [key, value] : bad) {
    auto json = valid();
    json[key] = value;
    const auto parsed = parse(json);
    ASSERT_FALSE(parsed.has_value()) << key << " " << value;
    EXPECT_EQ(parsed.error().exit, ExitCode::Malformed);
    EXPECT_EQ(parsed.error().diagnostics.front().node, key) << value;
    EXPECT_EQ(parsed.error().diagnostics.front().file, "c.json");
  }
}

TEST(Camera, AllErrorsAtOnce) {
  const auto parsed = parse({{"format", "ingot-camera/1"}, {"widht", 4}, {"height", true}});
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().diagnostics.size(), 9U);  // 7 missing, 1 type, 1 unknown
}

TEST(Camera, OtherPitchesAreUsedAndWarnedAbout) {
  auto json = valid();
  json["stride"] = 1928;
  json["uv_offset"] = 1928 * 1216;
  const auto parsed = parse(json);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->camera.stride, 1928U);
  ASSERT_EQ(parsed->warnings.size(), 1U);
  EXPECT_EQ(to_line(parsed->warnings[0]),
            "c.json: warning: node 'stride': 1928 is used as given; the width rounded up to 128 "
            "would be 2048");
}

TEST(Camera, PrintedTextParsesBack) {
  for (const KnownCamera& known : known_cameras()) {
    const auto parsed = parse_camera(print_camera(known.camera), "k.json");
    ASSERT_TRUE(parsed.has_value()) << known.camera.name;
    EXPECT_EQ(parsed->camera, known.camera);
    EXPECT_TRUE(parsed->warnings.empty());
  }
}

TEST(Camera, WhoDeliversTheFramesIsForPeople) {
  auto json = valid();
  json["devices"] = "OX03C10 in a car";
  const auto parsed = parse(json);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->camera, parse(valid())->camera);
  json["devices"] = 3;
  EXPECT_FALSE(parse(json).has_value());
}

TEST(Camera, SamplesAreTheKnownCameras) {
  const auto folder = std::filesystem::path(INGOT_SOURCE_DIR) / "samples" / "cameras";
  for (const KnownCamera& known : known_cameras()) {
    EXPECT_EQ(read_text(folder / (known.camera.name + ".json")), print_camera(known.camera));
  }
}

TEST(Camera, FormulasGiveTheGoldenLayouts) {
  const auto shared = shared_folder();
  if (!shared) GTEST_SKIP() << "no shared data: set INGOT_SHARED to its folder";
  const auto json =
      nlohmann::json::parse(read_text(*shared / "golden" / "warp" / "nv12_layouts.json"));
  std::size_t compared = 0;
  for (const char* list : {"known", "others"}) {
    for (const auto& row : json.at(list)) {
      const Camera camera = camera_layout(row.at("width"), row.at("height"));
      EXPECT_EQ(camera.stride, row.at("stride"));
      EXPECT_EQ(camera.y_height, row.at("y_height"));
      EXPECT_EQ(camera.uv_height, row.at("uv_height"));
      EXPECT_EQ(camera.uv_offset, row.at("uv_offset"));
      EXPECT_EQ(camera.copy_bytes(), row.at("copy_size"));
      EXPECT_EQ(camera.size_bytes, row.at("size"));
      ++compared;
    }
  }
  EXPECT_GE(compared, 10U);
}

}  // namespace
}  // namespace ingot
