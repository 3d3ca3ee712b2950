// inspect --header: the header compiles as C and as C++ without a warning, says what the loader
// says, and keeps out an artifact with another interface.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "cli/interface_header.h"
#include "cli/json.h"
#include "tests/cli/tiny_model.h"
#include "tests/cli/tool.h"

namespace ingot::cli {
namespace {

TEST(IdentifierPart, KeepsWhatCAllows) {
  EXPECT_EQ(identifier_part("Frame_2"), "Frame_2");
  EXPECT_EQ(identifier_part("vision.outputs"), "vision_x2eoutputs");
  EXPECT_EQ(identifier_part("next_x"), "next_x5fx");
  EXPECT_EQ(identifier_part("a_b_"), "a_b_");
}

// All names of up to five characters that could be mistaken for each other.
TEST(IdentifierPart, DifferentNamesStayDifferent) {
  const std::string letters = "x2e5f_./";
  std::set<std::string> parts;
  std::size_t count = 0;
  std::vector<std::string> names = {""};
  for (int length = 1; length <= 5; ++length) {
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const char letter : letters) longer.push_back(name + letter);
    }
    names = longer;
    for (const std::string& name : names) {
      parts.insert(identifier_part(name));
      ++count;
      EXPECT_EQ(identifier_part(name).find("_x_"), std::string::npos) << name;
    }
  }
  EXPECT_EQ(parts.size(), count);
}

class Header : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(folder.tool({"keygen", "k"}).exit, 0);
    ASSERT_EQ(shell("sed '/^-----/d' k.pub | base64 -d | tail -c 32 >k.raw"), 0);
  }

  int shell(const std::string& command) const {
    return std::system(("cd '" + folder.path().string() + "' && " + command).c_str());
  }

  void compile(const std::string& source, const std::string& out) {
    const ToolResult result =
        folder.tool({"compile", source, "-o", out, "--sign", "k.key", "--product", "my-net.2"});
    ASSERT_EQ(result.exit, 0) << result.errors;
  }

  std::string header(const std::string& artifact) const {
    const ToolResult result = folder.tool({"inspect", artifact, "--header"});
    EXPECT_EQ(result.exit, 0) << result.errors;
    return result.output;
  }

  // Builds p.c, or p.cpp, with every warning; true if it came out.
  bool build(const std::string& compiler, const std::string& source) const {
    return shell(fmt::format("'{}' {} -Wall -Wextra -Wpedantic -Wconversion -Werror {} -I. -I'{}' "
                             "{} '{}' -o p",
                             compiler, source == "p.c" ? "-std=c99" : "-std=c++17",
                             INGOT_SANITIZE_FLAGS, INGOT_SOURCE_FOLDER, source,
                             INGOT_LOADER_ARCHIVE)) == 0;
  }

  TemporaryFolder folder;
};

// Reads the key and an artifact, and compares what the header says with what the loader says.
const char* const kProgram = R"(
#include <stdio.h>
#include <string.h>
#include "a.h"
#include "loader/ingot_loader.h"

static size_t read_all(const char* path, unsigned char* to, size_t size) {
  FILE* file = fopen(path, "rb");
  size_t got = file != NULL ? fread(to, 1, size, file) : 0;
  if (file != NULL) fclose(file);
  return got;
}

static unsigned char bytes[1 << 22];

int main(int argc, char** argv) {
  static const uint32_t shape[8] = MY_NET_x2e2_SHAPE_x;
  static const uint64_t strides[8] = MY_NET_x2e2_STRIDES_x;
  ingot_key key;
  ingot_policy policy;
  ingot_artifact* artifact;
  ingot_artifact_info info;
  ingot_io_info io;
  ingot_error error;
  ingot_status status;
  size_t nbytes = argc > 1 ? read_all(argv[1], bytes, sizeof bytes) : 0;
  memset(&key, 0, sizeof key);
  memset(&policy, 0, sizeof policy);
  if (read_all("k.raw", key.public_key, 32) != 32) return 1;
  policy.keys = &key;
  policy.key_count = 1;
  policy.interface_sha256 = my_net_x2e2_interface_sha256;
  policy.product = MY_NET_x2e2_PRODUCT;
  status = ingot_open_memory(bytes, nbytes, &policy, NULL, &artifact, &error);
  if (status == INGOT_STATUS_INTERFACE) return 30;
  if (status != 0) return 2;
  ingot_artifact_describe(artifact, &info);
  if (!my_net_x2e2_interface_is(info.interface_sha256)) return 3;
  if (ingot_find_io(artifact, MY_NET_x2e2_NAME_x) != MY_NET_x2e2_SLOT_x) return 4;
  ingot_io_describe(artifact, MY_NET_x2e2_SLOT_x, &io);
  if (io.direction != MY_NET_x2e2_DIRECTION_x || io.dtype != MY_NET_x2e2_DTYPE_x ||
      io.rank != MY_NET_x2e2_RANK_x || io.nbytes != MY_NET_x2e2_NBYTES_x ||
      memcmp(io.shape, shape, sizeof shape) != 0 ||
      memcmp(io.strides, strides, sizeof strides) != 0) {
    return 5;
  }
  if (ingot_find_io(artifact, MY_NET_x2e2_NAME_y) != MY_NET_x2e2_SLOT_y) return 6;
  return ingot_close(artifact) == 0 ? 0 : 7;
}
)";

TEST_F(Header, IsUsedWithTheLoaderFromCAndFromCpp) {
  folder.write("m.onnx", relu_plus_model());
  compile("m.onnx", "a.ingot");
  ASSERT_EQ(folder.tool({"inspect", "a.ingot", "--header", "a.h"}).exit, 0);
  EXPECT_EQ(folder.read("a.h"), header("a.ingot")) << "the same in a file";
  folder.write("other.onnx", counter_model());
  compile("other.onnx", "other.ingot");
  folder.write("p.c", kProgram);
  folder.write("p.cpp", kProgram);
  for (const auto& [compiler, source] :
       {std::pair{INGOT_C_COMPILER, "p.c"}, std::pair{INGOT_CXX_COMPILER, "p.cpp"}}) {
    ASSERT_TRUE(build(compiler, source)) << folder.read("a.h");
    EXPECT_EQ(shell("./p a.ingot"), 0) << source;
    EXPECT_EQ(shell("./p other.ingot"), 30 << 8) << "another interface: refused by its digest";
  }
}

TEST_F(Header, DoesNotChangeWhileTheInterfaceStays) {
  folder.write("m.onnx", relu_plus_model());
  TinyModel same;  // other weights of the same interface would do as well
  same.inputs = {{"x", {2, 3}}};
  same.outputs = {{"y", {2, 3}}};
  same.nodes = {{"Relu", {"x"}, {"y"}, "relu"}};
  folder.write("n.onnx", serialize(same));
  compile("m.onnx", "a.ingot");
  compile("n.onnx", "b.ingot");
  EXPECT_NE(folder.tool({"inspect", "a.ingot", "--id"}).output,
            folder.tool({"inspect", "b.ingot", "--id"}).output);
  EXPECT_EQ(header("a.ingot"), header("b.ingot"));
}

// Names that would be one identifier if everything odd became `_`.
TEST_F(Header, NamesDoNotMeet) {
  TinyModel model;
  const std::vector<std::string> names = {"a.b", "a_b", "a:b", "a/b", "a_x2eb", "A_b", "a__b"};
  std::string sum = names.front();
  for (const std::string& name : names) {
    model.inputs.push_back({name, {2}});
    if (name == names.front()) continue;
    model.nodes.push_back({"Add", {sum, name}, {"sum " + name}, "add " + name});
    sum = "sum " + name;
  }
  model.nodes.push_back({"Relu", {sum}, {"out put"}, "relu"});
  model.outputs = {{"out put", {2}}};
  folder.write("m.onnx", serialize(model));
  compile("m.onnx", "a.ingot");
  ASSERT_EQ(folder.tool({"inspect", "a.ingot", "--header", "a.h"}).exit, 0);
  std::string program = "#include \"a.h\"\nint main(void) {\n  switch (0u) {\n";
  int slot = 0;
  for (const std::string& name : names) {
    program +=
        fmt::format("    case MY_NET_x2e2_SLOT_{}: return {};\n", identifier_part(name), slot++);
  }
  program += "    case MY_NET_x2e2_SLOT_out_x2520put: return 9;\n  }\n  return 10;\n}\n";
  folder.write("p.c", program);
  EXPECT_TRUE(build(INGOT_C_COMPILER, "p.c")) << folder.read("a.h");
}

TEST_F(Header, CamerasAndTheirBlocks) {
  const ToolResult cameras = folder.tool({"cameras", "--json"});
  const Result<Json> known = parse_json(cameras.output, "cameras");
  ASSERT_TRUE(known && known->is_array() && known->size() > 1);
  for (const int i : {0, 1}) {
    Json camera = (*known)[static_cast<std::size_t>(i)];
    camera.erase("devices");
    camera["name"] = i == 0 ? "near" : "far-1";
    folder.write(fmt::format("c{}.json", i), to_text(camera));
  }
  const auto pipeline = [&](const char* list) {
    folder.write("p.json", fmt::format(R"({{"format": "ingot-pipeline/1", "name": "warp",
      "cameras": {}, "frames": ["frame"], "outputs": {{"image": "image"}},
      "stages": [{{"id": "image", "warp": "road", "frame": "frame", "transform": "tfm",
                  "size": [16, 8]}}]}})",
                                       list));
    compile("p.json", "a.ingot");
    ASSERT_EQ(folder.tool({"inspect", "a.ingot", "--header", "a.h"}).exit, 0);
  };
  const auto number = [&](const char* key, std::size_t camera) {
    return (*known)[camera][key].get<std::uint64_t>();
  };
  const auto expect = [&](const std::string& prefix, const std::string& name, std::size_t camera) {
    const std::string program = fmt::format(
        "#include \"a.h\"\n#include \"loader/ingot_loader.h\"\n"
        "int main(void) {{\n  const ingot_layout l = {}CAMERA_LAYOUT_{};\n"
        "  return l.width == {} && l.height == {} && l.stride == {} && l.y_height == {} &&\n"
        "         l.uv_height == {} && l.uv_offset == {} && {}FRAME_CAMERA_frame == 0 &&\n"
        "         {}CAMERA_HEIGHT_{} == l.height ? 0 : 1;\n}}\n",
        prefix, name, number("width", camera), number("height", camera), number("stride", camera),
        number("y_height", camera), number("uv_height", camera), number("uv_offset", camera),
        prefix, prefix, name);
    folder.write("p.c", program);
    folder.write("p.cpp", program);
    ASSERT_TRUE(build(INGOT_C_COMPILER, "p.c")) << folder.read("a.h");
    EXPECT_EQ(shell("./p"), 0);
    ASSERT_TRUE(build(INGOT_CXX_COMPILER, "p.cpp"));
    EXPECT_EQ(shell("./p"), 0);
  };
  pipeline(R"(["c0.json"])");
  expect("MY_NET_x2e2_", "near", 0);
  pipeline(R"(["c0.json", "c1.json"])");
  expect("MY_NET_x2e2_near_", "near", 0);
  expect("MY_NET_x2e2_far_x2d1_", "far_x2d1", 1);
}

// A frame called like what is said of a camera.
TEST_F(Header, FramesDoNotMeetCameras) {
  folder.write("c.json", R"({"format": "ingot-camera/1", "name": "near", "pixel_format": "nv12",
      "width": 64, "height": 32, "stride": 128, "y_height": 32, "uv_height": 16, "uv_offset": 4096,
      "size": 6144})");
  folder.write("p.json", R"({"format": "ingot-pipeline/1", "name": "warp", "cameras": ["c.json"],
      "frames": ["LAYOUT_near"], "outputs": {"image": "image"},
      "stages": [{"id": "image", "warp": "road", "frame": "LAYOUT_near", "transform": "tfm",
                  "size": [16, 8]}]})");
  compile("p.json", "a.ingot");
  ASSERT_EQ(folder.tool({"inspect", "a.ingot", "--header", "a.h"}).exit, 0);
  folder.write("p.c",
               "#include \"a.h\"\n#include \"loader/ingot_loader.h\"\nint main(void) {\n"
               "  const ingot_layout l = MY_NET_x2e2_CAMERA_LAYOUT_near;\n"
               "  return l.width == 64 && MY_NET_x2e2_FRAME_CAMERA_LAYOUT_near == 0 ? 0 : 1;\n}\n");
  ASSERT_TRUE(build(INGOT_C_COMPILER, "p.c")) << folder.read("a.h");
  EXPECT_EQ(shell("./p"), 0);
}

}  // namespace
}  // namespace ingot::cli
