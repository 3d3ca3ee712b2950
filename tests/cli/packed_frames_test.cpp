// Camera frames as parts of one input, and models joined with warps: the same numbers as bound by
// pointer in one go, and a warning for what is not looked at any more.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "artifact/encode.h"
#include "artifact/read_contents.h"
#include "cli/json.h"
#include "cli/npy.h"
#include "tests/cli/npy_text.h"
#include "tests/cli/tiny_model.h"
#include "tests/cli/tool.h"

namespace ingot::cli {
namespace {

std::string bytes_npy(const Shape& shape, const std::function<int(std::int64_t)>& value) {
  std::vector<std::byte> bytes;
  for (std::int64_t i = 0; i < element_count(shape); ++i) {
    bytes.push_back(static_cast<std::byte>(value(i)));
  }
  const std::vector<std::byte> file = encode_npy(DType::U8, shape, bytes);
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

class PackedFrames : public testing::Test {
 protected:
  void SetUp() override {
    write_camera("\"max_age_us\": 50000, ");
    for (const auto& [file, input] : {std::pair{"m.onnx", "picture"}, {"frame.onnx", "frame"}}) {
      TinyModel model;
      model.inputs = {{input, {1, 6, 4, 8}, 2}, {"level", {1}, 2}};
      model.outputs = {{"y", {1, 6, 4, 8}, 2}};
      model.nodes = {{"Max", {input, "level"}, {"y"}, "max"}};
      folder.write(file, serialize(model));
    }
    folder.write("case/input_frame.npy", bytes_npy({6144}, [](std::int64_t i) {
                   return static_cast<int>(i * 7 + i / 128);
                 }));
    folder.write("case/input_tfm.npy", npy_text({3, 3}, {2, 0.1, 3, -0.1, 2, 1, 0, 0, 1}));
    folder.write("case/input_level.npy", bytes_npy({1}, [](std::int64_t) { return 90; }));
  }

  void write_camera(const std::string& more) const {
    folder.write("c.json", fmt::format(R"({{"format": "ingot-camera/1", "name": "near", {}
      "pixel_format": "nv12", "width": 64, "height": 32, "stride": 128, "y_height": 32,
      "uv_height": 16, "uv_offset": 4096, "size": 6144}})",
                                       more));
  }

  static std::string pipeline(const std::string& binding, bool with_model) {
    const std::string warp =
        R"({"id": "picture", "warp": "road", "frame": "frame", "transform": "tfm", "size": [16, 8]})";
    const std::string model = R"({"id": "m", "model": "m.onnx", "inputs": {"picture": "picture"}})";
    return fmt::format(R"({{"format": "ingot-pipeline/1", "name": "p", "cameras": ["c.json"],
      "frames": ["frame"], "frame_binding": "{}", "stages": [{}], "outputs": {{"{}": "{}"}}}})",
                       binding, with_model ? warp + ", " + model : warp,
                       with_model ? "y" : "picture", with_model ? "m.y" : "picture");
  }

  // Compiles and returns what was said.
  std::string compile(const std::string& source, const std::string& artifact) const {
    const ToolResult result = folder.tool({"compile", source, "-o", artifact, "--unsigned"});
    EXPECT_EQ(result.exit, 0) << result.errors;
    return result.errors;
  }

  std::string fuse(const std::string& model, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"fuse",    model,        "w.ingot",         "-o",
                                          "f.ingot", "--unsigned", "--allow-unsigned"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ToolResult result = folder.tool(arguments);
    EXPECT_EQ(result.exit, 0) << result.errors;
    return result.errors;
  }

  void compile_parts() const {
    folder.write("w.json", pipeline("in_place", false));
    compile("w.json", "w.ingot");
    compile("m.onnx", "m.ingot");
    compile("frame.onnx", "frame.ingot");
  }

  std::string run(const std::string& artifact) const {
    std::vector<std::string> arguments = {"run", artifact, "--allow-unsigned", "--output-dir",
                                          "out"};
    for (const char* name : {"frame", "tfm", "level"}) {
      arguments.insert(arguments.end(), {"--input", fmt::format("{0}=case/input_{0}.npy", name)});
    }
    const ToolResult result = folder.tool(arguments);
    EXPECT_EQ(result.exit, 0) << result.errors;
    return folder.read("out/y.npy");
  }

  int check(const std::string& artifact) const {
    return folder.tool({"check", artifact, "--golden", "case", "--allow-unsigned"}).exit;
  }

  // The same artifact without reference vectors, as fuse makes it on a machine that cannot run it.
  void drop_references(const std::string& name) const {
    const std::string text = folder.read(name);
    const auto bytes = std::as_bytes(std::span(text));
    const auto decoded = artifact::decode({bytes.begin(), bytes.end()});
    ASSERT_TRUE(decoded);
    auto contents = artifact::read_contents(*decoded);
    ASSERT_TRUE(contents);
    for (artifact::Interface& interface : contents->interfaces) interface.references.clear();
    contents->manifest.references.clear();
    const auto written = artifact::encode(*contents);
    ASSERT_TRUE(written);
    folder.write(name, {reinterpret_cast<const char*>(written->data()), written->size()});
  }

  TemporaryFolder folder;
};

TEST_F(PackedFrames, AnAgeThatNobodyLooksAtIsSaid) {
  folder.write("p.json", pipeline("packed", true));
  folder.write("in_place.json", pipeline("in_place", true));
  EXPECT_NE(compile("p.json", "p.ingot").find("max_age_us is not looked at"), std::string::npos);
  EXPECT_EQ(compile("in_place.json", "i.ingot").find("max_age_us is not looked at"),
            std::string::npos);
  compile_parts();
  EXPECT_NE(fuse("m.ingot", {"--packed"}).find("max_age_us is not looked at"), std::string::npos);
  EXPECT_EQ(fuse("m.ingot").find("max_age_us is not looked at"), std::string::npos);
  write_camera("");
  EXPECT_EQ(compile("p.json", "p.ingot").find("max_age_us is not looked at"), std::string::npos);
}

TEST_F(PackedFrames, CasesGiveThePartsByName) {
  folder.write("p.json", pipeline("packed", true));
  folder.write("in_place.json", pipeline("in_place", true));
  compile("p.json", "p.ingot");
  compile("in_place.json", "i.ingot");
  const std::string y = run("i.ingot");
  EXPECT_EQ(run("p.ingot"), y);
  folder.write("case/output_y.npy", y);
  EXPECT_EQ(check("i.ingot"), 0);
  EXPECT_EQ(check("p.ingot"), 0);
  folder.write("host.bin", "x");
  const ToolResult whole = folder.tool(
      {"run", "p.ingot", "--allow-unsigned", "--output-dir", "out", "--input", "host=host.bin"});
  EXPECT_EQ(whole.exit, 2);
  EXPECT_NE(whole.errors.find("'host' is given by its parts"), std::string::npos);
  std::string wrong = y;
  wrong.back() = static_cast<char>(wrong.back() ^ 64);
  folder.write("case/output_y.npy", wrong);
  EXPECT_EQ(check("i.ingot"), 7);
  EXPECT_EQ(check("p.ingot"), 7);
  folder.write("case/output_y.npy", y);
  folder.write("case/input_host.npy", bytes_npy({64}, [](std::int64_t) { return 0; }));
  EXPECT_EQ(check("p.ingot"), 3) << "all parts, and nothing else";
}

// What the warp replaces is no input any more, so that a frame may have its name.
TEST_F(PackedFrames, AModelInputMayBeCalledLikeAFrame) {
  folder.write("in_place.json", pipeline("in_place", true));
  compile("in_place.json", "i.ingot");
  const std::string y = run("i.ingot");
  compile_parts();
  for (const char* model : {"m.ingot", "frame.ingot"}) {
    for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--packed"}}) {
      fuse(model, more);
      EXPECT_EQ(run("f.ingot"), y) << model;
    }
  }
}

TEST_F(PackedFrames, PartsWithoutVectorsGiveNoneAndThatIsSaid) {
  compile_parts();
  EXPECT_EQ(fuse("m.ingot").find("no reference vectors"), std::string::npos);
  for (const char* part : {"m.ingot", "w.ingot"}) {
    compile_parts();
    drop_references(part);
    EXPECT_NE(fuse("m.ingot").find("no reference vectors"), std::string::npos) << part;
    const ToolResult described = folder.tool({"inspect", "f.ingot", "--json"});
    const Result<Json> json = parse_json(described.output, "inspect");
    ASSERT_TRUE(json) << described.errors;
    EXPECT_EQ((*json)["variants"][0]["references"]["steps"], 0);
  }
}

}  // namespace
}  // namespace ingot::cli
