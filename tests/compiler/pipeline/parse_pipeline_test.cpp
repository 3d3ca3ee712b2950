#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/pipeline/pipeline.h"
#include "tests/compiler/camera/warp_vectors.h"

namespace ingot {
namespace {

constexpr const char* kDriving = R"({
  "format": "ingot-pipeline/1",
  "name": "driving",
  "cameras": ["cameras/ox03c10.json", "cameras/os04c10-half.json"],
  "frames": ["frame", "big_frame"],
  "frame_binding": "in_place",
  "inputs": {"desire": {"dtype": "f32", "shape": [1, 8]}},
  "stages": [
    {"id": "new_img", "warp": "road", "frame": "frame", "transform": "tfm", "size": [512, 256]},
    {"id": "new_big", "warp": "road", "frame": "big_frame", "transform": "big_tfm", "size": [512, 256]},
    {"id": "img",     "queue": "new_img", "samples": 2, "stride": 4, "concat": 1},
    {"id": "big_img", "queue": "new_big", "samples": 2, "stride": 4, "concat": 1},
    {"id": "vision",  "model": "driving_vision.onnx", "inputs": {"img": "img", "big_img": "big_img"}},
    {"id": "features", "queue": "vision.outputs[hidden_state]", "samples": 25, "stride": 4, "stack": 1},
    {"id": "desires", "queue": "desire", "samples": 25, "stride": 4, "pool": "max", "stack": 1},
    {"id": "policy",  "model": "driving_policy.onnx",
     "inputs": {"features_buffer": "features", "desire_pulse": "desires", "traffic_convention": "traffic_convention"}}
  ],
  "outputs": {"vision": "vision.outputs", "policy": "policy.outputs"}
})";

nlohmann::ordered_json driving() { return nlohmann::ordered_json::parse(kDriving); }

Result<Pipeline> parse(const nlohmann::ordered_json& json) {
  return parse_pipeline(json.dump(), "p.json");
}

TEST(ParsePipeline, ReadsEveryKindOfStage) {
  const auto pipeline = parse_pipeline(kDriving, "p.json");
  ASSERT_TRUE(pipeline.has_value()) << to_line(pipeline.error().diagnostics.front());
  EXPECT_EQ(pipeline->name, "driving");
  EXPECT_EQ(pipeline->cameras.size(), 2U);
  EXPECT_FALSE(pipeline->packed);
  ASSERT_EQ(pipeline->inputs.size(), 1U);
  EXPECT_EQ(pipeline->inputs[0].shape, (Shape{1, 8}));
  ASSERT_EQ(pipeline->stages.size(), 8U);
  const auto& warp = std::get<WarpStage>(pipeline->stages[1].op);
  EXPECT_EQ(warp.frames, std::vector<std::string>{"big_frame"});
  EXPECT_EQ(warp.warp.width, 512);
  EXPECT_EQ(warp.transform, "big_tfm");
  const auto& queue = std::get<QueueStage>(pipeline->stages[6].op);
  EXPECT_TRUE(queue.pool_max && queue.stack);
  EXPECT_EQ(queue.axis, 1);
  EXPECT_EQ(queue.samples, 25);
  EXPECT_EQ(queue.delay, 0);
  const auto& model = std::get<ModelStage>(pipeline->stages[7].op);
  EXPECT_EQ(model.path, "driving_policy.onnx");
  ASSERT_EQ(model.inputs.size(), 3U);
  EXPECT_EQ(model.inputs[0].second, "features");
  EXPECT_EQ(pipeline->outputs[1].second, "policy.outputs");
}

// One change each: pointer into the file, new value (null removes it), place of the diagnostic.
TEST(ParsePipeline, EveryMistakeHasItsPlace) {
  struct Mistake {
    const char* pointer;
    nlohmann::ordered_json value;
    const char* place;
  };
  const std::vector<Mistake> mistakes = {
      {"/extra", 1, ""},
      {"/format", "ingot-pipeline/2", "format"},
      {"/name", nullptr, ""},
      {"/cameras", "cam.json", "cameras"},
      {"/cameras/0", "../cam.json", "cameras[0]"},
      {"/cameras/1", "/etc/cam.json", "cameras[1]"},
      {"/cameras", nlohmann::ordered_json::array(), ""},
      {"/frames/0", 3, "frames[0]"},
      {"/frames/0", "big_frame", "frames[1]"},
      {"/frames/2", "third", "frames[2]"},
      {"/frame_binding", "copied", "frame_binding"},
      {"/frame_period_us", 5, "frame_period_us"},
      {"/inputs/desire/dtype", "float", "inputs.desire.dtype"},
      {"/inputs/desire/shape", {1, 0}, "inputs.desire.shape[1]"},
      {"/inputs/desire/unit", "m", "inputs.desire"},
      {"/inputs/new_img", {{"dtype", "f32"}, {"shape", {1}}}, "stages[0]"},
      {"/stages", nlohmann::ordered_json::array(), "stages"},
      {"/stages/0/warp", "roof", "stages[0].warp"},
      {"/stages/0/frame", "other", "stages[0].frame"},
      {"/stages/0/frame", {"frame"}, "stages[0].frame"},
      {"/stages/0/size", {511, 256}, "stages[0].size"},
      {"/stages/0/size", {512, 254}, "stages[0].size"},
      {"/stages/0/size", {512}, "stages[0].size"},
      {"/stages/0/fill", 16, "stages[0].fill"},
      {"/stages/0/transform", nullptr, "stages[0]"},
      {"/stages/0/samples", 2, "stages[0]"},
      {"/stages/0/queue", "new_big", "stages[0]"},
      {"/stages/0/id", "new.img", "stages[0].id"},
      {"/stages/0/id", "vision", "stages[4]"},
      {"/stages/2/samples", 0, "stages[2].samples"},
      {"/stages/2/stride", -4, "stages[2].stride"},
      {"/stages/2/delay", "1", "stages[2].delay"},
      {"/stages/2/pool", "mean", "stages[2].pool"},
      {"/stages/2/stack", 1, "stages[2].concat"},
      {"/stages/2/concat", nullptr, "stages[2].concat"},
      {"/stages/2/initial", "zero", "stages[2].initial"},
      {"/stages/4/model", "../vision.onnx", "stages[4].model"},
      {"/stages/4/inputs/img", 1, "stages[4].inputs.img"},
      {"/stages/4/states", {1}, "stages[4].states"},
      {"/outputs", nlohmann::ordered_json::object(), "outputs"},
      {"/outputs/policy", nlohmann::ordered_json::array(), "outputs.policy"},
  };
  for (const Mistake& mistake : mistakes) {
    auto json = driving();
    const nlohmann::ordered_json::json_pointer pointer(mistake.pointer);
    if (mistake.value.is_null()) {
      json[pointer.parent_pointer()].erase(pointer.back());
    } else {
      json[pointer] = mistake.value;
    }
    const auto pipeline = parse(json);
    ASSERT_FALSE(pipeline.has_value()) << mistake.pointer << " " << mistake.value;
    EXPECT_EQ(pipeline.error().exit, ExitCode::Malformed);
    EXPECT_EQ(pipeline.error().diagnostics.front().node, mistake.place)
        << mistake.pointer << " " << mistake.value;
  }
}

TEST(ParsePipeline, AllMistakesAtOnce) {
  auto json = driving();
  json["stages"][0]["warp"] = "roof";
  json["stages"][2]["samples"] = 0;
  json["colour"] = "blue";
  const auto pipeline = parse(json);
  ASSERT_FALSE(pipeline.has_value());
  EXPECT_EQ(pipeline.error().diagnostics.size(), 3U);
}

// Blocks of a page between ```json and ```.
std::vector<std::string> json_blocks(const std::string& page) {
  std::vector<std::string> blocks;
  for (std::size_t at = page.find("```json"); at != std::string::npos;
       at = page.find("```json", at)) {
    const std::size_t begin = at + 7;
    at = page.find("```", begin);
    blocks.push_back(page.substr(begin, at - begin));
  }
  return blocks;
}

TEST(ParsePipeline, DocumentedFilesAndSamplesParse) {
  const std::filesystem::path root(INGOT_SOURCE_DIR);
  const auto blocks = json_blocks(read_text(root / "docs" / "pipeline.md"));
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_TRUE(parse_pipeline(blocks[0], "pipeline.md").has_value());
  EXPECT_TRUE(parse_camera(blocks[1], "pipeline.md").has_value());
  for (const char* name : {"driving", "cabin"}) {
    const auto folder = root / "samples" / name;
    const auto sample = parse_pipeline(read_text(folder / "pipeline.json"), "pipeline.json");
    ASSERT_TRUE(sample.has_value()) << name;
    EXPECT_EQ(sample->cameras.size(), 2U);
    for (const std::string& camera : sample->cameras) {
      const std::string text = read_text(folder / camera);
      EXPECT_TRUE(parse_camera(text, camera).has_value());
      EXPECT_EQ(text, read_text(root / "samples" / camera)) << camera;
    }
  }
}

TEST(ParsePipeline, PathsStayInTheFolder) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "ingot_pipeline_paths";
  fs::remove_all(folder);
  fs::create_directories(folder / "in" / "sub");
  std::ofstream(folder / "in" / "sub" / "a.onnx") << "a";
  std::ofstream(folder / "outside.onnx") << "b";
  std::ofstream(folder / "in2.onnx") << "c";
  fs::create_symlink("../outside.onnx", folder / "in" / "link.onnx");
  fs::create_symlink("sub/a.onnx", folder / "in" / "inner.onnx");
  fs::create_directory_symlink("..", folder / "in" / "up");
  const auto exit_of = [&](const std::string& path) {
    const auto found = resolve_path(folder / "in", path, "p.json");
    return found ? ExitCode::Done : found.error().exit;
  };
  EXPECT_EQ(exit_of("sub/a.onnx"), ExitCode::Done);
  EXPECT_EQ(exit_of("inner.onnx"), ExitCode::Done);
  EXPECT_EQ(exit_of("link.onnx"), ExitCode::Malformed);
  EXPECT_EQ(exit_of("up/in2.onnx"), ExitCode::Malformed);
  EXPECT_EQ(exit_of("../in2.onnx"), ExitCode::Malformed);
  EXPECT_EQ(exit_of((folder / "in" / "sub" / "a.onnx").string()), ExitCode::Malformed);
  EXPECT_EQ(exit_of("missing.onnx"), ExitCode::Io);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace ingot
