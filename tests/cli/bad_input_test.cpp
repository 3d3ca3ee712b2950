// Every kind of input, broken: the documented exit code, one line, nothing left behind.
#include <gtest/gtest.h>

#include <limits>

#include "tests/cli/npy_text.h"
#include "tests/cli/tiny_model.h"
#include "tests/cli/tool.h"

namespace ingot::cli {
namespace {

using Arguments = std::vector<std::string>;

// The tool fails with `expected`, says why in lines of the documented form, and writes nothing.
void expect_failure(const TemporaryFolder& folder, const Arguments& arguments, int expected) {
  const std::vector<std::string> before = folder.names();
  const ToolResult result = folder.tool(arguments);
  EXPECT_EQ(result.exit, expected) << testing::PrintToString(arguments) << result.errors;
  EXPECT_NE(result.errors.find("error: "), std::string::npos) << result.errors;
  EXPECT_EQ(folder.names(), before) << testing::PrintToString(arguments);
}

Arguments compile_arguments(const std::string& source) {
  return {"compile", source, "-o", "out.ingot", "--unsigned", "--no-progress"};
}

TEST(BadInput, Models) {
  const TemporaryFolder folder;
  const std::string good = relu_plus_model();
  for (std::size_t size = 0; size < good.size(); size += 7) {
    folder.write("m.onnx", good.substr(0, size));
    const ToolResult result = folder.tool(compile_arguments("m.onnx"));
    EXPECT_TRUE(result.exit == 3 || result.exit == 4) << size << result.errors;
  }
  for (unsigned seed = 0; seed < 20; ++seed) {
    folder.write("m.onnx", noise(300, seed));
    expect_failure(folder, compile_arguments("m.onnx"), 3);
  }
  folder.write("m.onnx", "");
  expect_failure(folder, compile_arguments("m.onnx"), 3);
  expect_failure(folder, compile_arguments("missing.onnx"), 8);
  expect_failure(folder, compile_arguments("."), 8);
}

TEST(BadInput, UnsupportedOperatorsAreNamed) {
  const TemporaryFolder folder;
  TinyModel model;
  model.inputs = {{"x", {2}}};
  model.outputs = {{"y", {2}}};
  model.nodes = {{"NoSuchThing", {"x"}, {"y"}, "the\nnode"}};
  folder.write("m.onnx", serialize(model));
  expect_failure(folder, compile_arguments("m.onnx"), 4);
  const ToolResult result = folder.tool(compile_arguments("m.onnx"));
  EXPECT_NE(result.errors.find("the\\nnode"), std::string::npos) << result.errors;
  EXPECT_NE(result.errors.find("NoSuchThing, opset 13"), std::string::npos) << result.errors;
}

// An artifact gives the same outputs for the same inputs.
TEST(BadInput, RandomNumbersAreRefused) {
  const TemporaryFolder folder;
  for (const char* op : {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
                         "Multinomial", "Bernoulli"}) {
    TinyModel model;
    model.inputs = {{"x", {2, 3}}};
    model.outputs = {{"y", {2, 3}}};
    model.nodes = {{op, {"x"}, {"noise"}, "dice"}, {"Add", {"noise", "x"}, {"y"}, "add"}};
    model.opset = 15;
    folder.write("m.onnx", serialize(model));
    const ToolResult result = folder.tool(compile_arguments("m.onnx"));
    EXPECT_EQ(result.exit, 4) << op << result.errors;
    EXPECT_NE(result.errors.find("'dice' (" + std::string(op)), std::string::npos) << result.errors;
  }
}

TEST(BadInput, OpenDimensions) {
  const TemporaryFolder folder;
  TinyModel model;
  model.inputs = {{"x", {-1, 3}}};
  model.outputs = {{"y", {-1, 3}}};
  model.nodes = {{"Relu", {"x"}, {"y"}, "relu"}};
  folder.write("m.onnx", serialize(model));
  expect_failure(folder, compile_arguments("m.onnx"), 4);
  Arguments fixed = compile_arguments("m.onnx");
  fixed.insert(fixed.end(), {"--dim", "batch=2"});
  EXPECT_EQ(folder.tool(fixed).exit, 0);
  Arguments wrong = compile_arguments("m.onnx");
  wrong.insert(wrong.end(), {"--dim", "nothing=2"});
  EXPECT_EQ(folder.tool(wrong).exit, 2);
}

TEST(BadInput, OutputsThatCannotBeWritten) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  expect_failure(folder, {"compile", "m.onnx", "-o", "no/such/folder.ingot", "--unsigned"}, 8);
  expect_failure(folder, {"compile", "m.onnx", "-o", "/dev/full", "--unsigned"}, 8);
  expect_failure(folder, {"compile", "m.onnx", "-o", "m.onnx", "--unsigned"}, 2);
}

TEST(BadInput, Artifacts) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  ASSERT_EQ(folder.tool({"compile", "m.onnx", "-o", "m.ingot", "--unsigned"}).exit, 0);
  const std::string good = folder.read("m.ingot");
  std::vector<std::string> broken = {"", "x", noise(1000, 1), noise(200000, 2)};
  for (std::size_t i = 1; i < 12; ++i) broken.push_back(good.substr(0, good.size() * i / 12));
  broken.push_back(good + "x");
  for (const std::string& bytes : broken) {
    folder.write("b.ingot", bytes);
    for (const Arguments& arguments :
         std::vector<Arguments>{{"inspect", "b.ingot"},
                                {"verify", "b.ingot"},
                                {"run", "b.ingot", "--allow-unsigned", "--output-dir", "o"},
                                {"bench", "b.ingot", "--allow-unsigned"},
                                {"check", "b.ingot", "--allow-unsigned", "--golden", "."}}) {
      expect_failure(folder, arguments, 5);
    }
  }
  for (const char* command : {"inspect", "verify"}) {
    expect_failure(folder, {command, "missing.ingot"}, 8);
  }
}

TEST(BadInput, Keys) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  ASSERT_EQ(folder.tool({"keygen", "k"}).exit, 0);
  ASSERT_EQ(folder.tool({"compile", "m.onnx", "-o", "m.ingot", "--sign", "k.key"}).exit, 0);
  const std::string pem = folder.read("k.key");
  for (const std::string& bytes :
       {std::string(), noise(200, 3), pem.substr(0, pem.size() / 2), folder.read("k.pub")}) {
    folder.write("bad.key", bytes);
    expect_failure(folder, {"sign", "m.ingot", "--key", "bad.key"}, 3);
    expect_failure(folder, {"compile", "m.onnx", "-o", "n.ingot", "--sign", "bad.key"}, 3);
  }
  for (const std::string& bytes : {std::string(), noise(200, 4), pem}) {
    folder.write("bad.pub", bytes);
    expect_failure(folder, {"verify", "m.ingot", "--pub", "bad.pub"}, 3);
    expect_failure(folder, {"run", "m.ingot", "--pub", "bad.pub", "--output-dir", "o"}, 3);
  }
  expect_failure(folder, {"sign", "m.ingot", "--key", "missing.key"}, 8);
  expect_failure(folder, {"verify", "m.ingot", "--pub", "missing.pub"}, 8);
}

TEST(BadInput, PipelinesAndCameras) {
  const TemporaryFolder folder;
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{\"format\":1}"),
        noise(200, 5), std::string("{\"format\":\"ingot-pipeline/1\",\"unknown\":1}")}) {
    folder.write("p.json", text);
    expect_failure(folder, compile_arguments("p.json"), 3);
    folder.write("c.json", text);
    folder.write("m.onnx", relu_plus_model());
    Arguments arguments = compile_arguments("m.onnx");
    arguments.insert(arguments.end(), {"--camera", "c.json", "--warp", "road"});
    expect_failure(folder, arguments, 3);
  }
  expect_failure(folder, compile_arguments("missing.json"), 8);
}

TEST(BadInput, DeviceFiles) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  folder.write("d.json", "{");
  Arguments arguments = compile_arguments("m.onnx");
  arguments.insert(arguments.end(), {"--device", "d.json"});
  expect_failure(folder, arguments, 3);
  arguments.back() = "missing.json";
  expect_failure(folder, arguments, 8);
  Arguments target = compile_arguments("m.onnx");
  target.insert(target.end(), {"--target", "z80"});
  expect_failure(folder, target, 2);
}

// ---------------------------------------------------------------------------------------------
// Frames and matrices

constexpr const char* kCamera = R"({"format": "ingot-camera/1", "name": "tiny",
  "pixel_format": "nv12", "width": 64, "height": 32, "stride": 64, "y_height": 32,
  "uv_height": 16, "uv_offset": 2048, "size": 3072})";
constexpr const char* kWarp = R"({"format": "ingot-pipeline/1", "name": "warp",
  "cameras": ["c.json"], "frames": ["frame"], "frame_binding": "in_place",
  "stages": [{"id": "image", "warp": "road", "frame": "frame", "transform": "tfm",
              "size": [16, 16]}],
  "outputs": {"image": "image"}})";

class BadFrame : public testing::Test {
 protected:
  void SetUp() override {
    folder.write("c.json", kCamera);
    folder.write("p.json", kWarp);
    const ToolResult compiled = folder.tool(compile_arguments("p.json"));
    ASSERT_EQ(compiled.exit, 0) << compiled.errors;
    folder.write("frame.bin", noise(3072, 6));
    folder.write("tfm.npy", npy_text({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}));
  }

  static Arguments run_with(const std::string& frame, const std::string& tfm) {
    return {"run",     "out.ingot",      "--allow-unsigned", "--output-dir", "o",
            "--input", "frame=" + frame, "--input",          "tfm=" + tfm};
  }

  TemporaryFolder folder;
};

TEST_F(BadFrame, AGoodOneRuns) {
  const ToolResult result = folder.tool(run_with("frame.bin", "tfm.npy"));
  EXPECT_EQ(result.exit, 0) << result.errors;
}

TEST_F(BadFrame, AnotherSizeIsThree) {
  for (const std::size_t size : {0U, 3071U, 3073U}) {
    folder.write("bad.bin", noise(size, 7));
    expect_failure(folder, run_with("bad.bin", "tfm.npy"), 3);
  }
  expect_failure(folder, run_with("tfm.npy", "tfm.npy"), 3);
}

TEST_F(BadFrame, DegenerateMatricesAreThree) {
  for (const std::vector<double>& values : std::vector<std::vector<double>>{
           {0, 0, 0, 0, 0, 0, 0, 0, 0},
           {1, 0, 0, 0, 1, 0, 0, 0, 0},
           {1e30, 0, 0, 0, 1, 0, 0, 0, 1},
           {std::numeric_limits<double>::quiet_NaN(), 0, 0, 0, 1, 0, 0, 0, 1}}) {
    folder.write("bad.npy", npy_text({3, 3}, values));
    expect_failure(folder, run_with("frame.bin", "bad.npy"), 3);
  }
}

TEST_F(BadFrame, AnUnknownCameraIsTwoAndTheOthersAreListed) {
  Arguments arguments = run_with("frame.bin", "tfm.npy");
  arguments.insert(arguments.end(), {"--camera", "other"});
  expect_failure(folder, arguments, 2);
  const std::string errors = folder.tool(arguments).errors;
  EXPECT_NE(errors.find("no camera 'other'"), std::string::npos) << errors;
  EXPECT_NE(errors.find("cameras: tiny"), std::string::npos) << errors;
  arguments.back() = "tiny";
  EXPECT_EQ(folder.tool(arguments).exit, 0);
}

TEST_F(BadFrame, MissingAndUnknownInputs) {
  expect_failure(
      folder,
      {"run", "out.ingot", "--allow-unsigned", "--output-dir", "o", "--input", "tfm=tfm.npy"}, 2);
  Arguments unknown = run_with("frame.bin", "tfm.npy");
  unknown.insert(unknown.end(), {"--input", "nothing=tfm.npy"});
  expect_failure(folder, unknown, 2);
  expect_failure(folder, run_with("missing.bin", "tfm.npy"), 8);
}

}  // namespace
}  // namespace ingot::cli
