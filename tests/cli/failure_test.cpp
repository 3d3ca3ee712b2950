// What must not go wrong silently, late or halfway: through the whole tool.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "tests/cli/npy_text.h"
#include "tests/cli/tiny_model.h"
#include "tests/cli/tool.h"

namespace ingot::cli {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

Arguments compile_arguments(const std::string& source, const Arguments& more = {}) {
  Arguments arguments = {"compile", source, "-o", "out.ingot", "--unsigned", "--no-progress"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// The tool ends with `exit`, and says each of `texts`; nothing new lies in the folder.
void expect_refusal(const TemporaryFolder& folder, const Arguments& arguments, int exit,
                    const std::vector<std::string>& texts) {
  const std::vector<std::string> before = folder.names();
  const ToolResult result = folder.tool(arguments);
  EXPECT_EQ(result.exit, exit) << testing::PrintToString(arguments) << result.errors;
  for (const std::string& text : texts) {
    EXPECT_NE(result.errors.find(text), std::string::npos) << "no '" << text << "' in\n"
                                                           << result.errors;
  }
  EXPECT_EQ(folder.names(), before) << testing::PrintToString(arguments);
}

// ---------------------------------------------------------------------------------------------
// Nothing is left behind

TEST(Failure, AFailedCompileLeavesNoEmittedFiles) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  fs::create_directory(folder / "there");
  expect_refusal(folder,
                 {"compile", "m.onnx", "-o", "no/such/folder.ingot", "--unsigned", "--emit", "asm",
                  "--emit-dir", "there/e"},
                 8, {"no/such/folder.ingot"});
}

TEST(Failure, ALimitOnTheSizeOfFilesIsEight) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  fs::create_directory(folder / "tmp");
  const std::vector<std::string> before = folder.names();
  for (const char* blocks : {"0", "1", "16"}) {
    const std::string command = "cd '" + folder.path().string() + "' && ulimit -f " + blocks +
                                " && TMPDIR=tmp " INGOT_TOOL
                                " compile m.onnx -o m.ingot --unsigned 2>/dev/null >&2";
    EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 8) << blocks;
    EXPECT_EQ(folder.names(), before) << blocks;
  }
}

// Opening a pipe that nobody reads blocks: by then the other files are written.
TEST(Failure, ASignalLeavesNoEmittedFiles) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const TemporaryFolder folder;
    folder.write("m.onnx", relu_plus_model());
    ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
    const std::vector<std::string> before = folder.names();
    const auto emitted = [&] {
      std::size_t files = 0;
      std::error_code error;
      for (fs::recursive_directory_iterator it(folder / "e", error), end; !error && it != end;
           it.increment(error)) {
        files += it->is_regular_file(error) ? 1 : 0;
      }
      return files > 0;
    };
    const ToolResult result = interrupt_tool(
        folder.path(),
        {"compile", "m.onnx", "-o", "pipe", "--unsigned", "--emit", "obj", "--emit-dir", "e"},
        signal, emitted);
    EXPECT_EQ(result.exit, 128 + signal) << result.errors;
    EXPECT_EQ(folder.names(), before);
  }
}

TEST(Failure, KeygenWritesBothFilesOrNone) {
  const TemporaryFolder folder;
  folder.write("k.pub", "mine");
  expect_refusal(folder, {"keygen", "k"}, 8, {"k.pub", "not overwritten"});
  EXPECT_EQ(folder.read("k.pub"), "mine");
  fs::remove(folder / "k.pub");
  ASSERT_EQ(folder.tool({"keygen", "k"}).exit, 0);
  struct stat status = {};
  ASSERT_EQ(stat((folder / "k.key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  const std::string key = folder.read("k.key");
  expect_refusal(folder, {"keygen", "k"}, 8, {"k.key", "not overwritten"});
  EXPECT_EQ(folder.read("k.key"), key);
  expect_refusal(folder, {"keygen", "no/such/k"}, 8, {"no/such/k.key"});
}

// ---------------------------------------------------------------------------------------------
// Sequences

class Sequence : public testing::Test {
 protected:
  void SetUp() override {
    folder.write("m.onnx", counter_model());
    ASSERT_EQ(folder.tool(compile_arguments("m.onnx")).exit, 0);
  }
  void frame(const std::string& name) const {
    folder.write("in/" + name + "/x.npy", npy_text({4}, {1, 2, 3, 4}));
  }
  static Arguments arguments() {
    return {"run", "out.ingot", "--sequence", "in", "--output-dir", "o", "--allow-unsigned"};
  }

  TemporaryFolder folder;
};

TEST_F(Sequence, AGapIsRefusedByName) {
  for (const char* name : {"0000", "0001", "0003"}) frame(name);
  expect_refusal(folder, arguments(), 3, {"'0002'", "'0003'"});
}

TEST_F(Sequence, AnotherStartOrWidthIsRefused) {
  frame("0001");
  expect_refusal(folder, arguments(), 3, {"'0000'", "'0001'"});
  frame("0000");
  frame("2");
  expect_refusal(folder, arguments(), 3, {"'0002'", "'2'"});
}

TEST_F(Sequence, AFailureInALaterFrameLeavesNoOutputs) {
  frame("0000");
  folder.write("in/0001/x.npy", npy_text({3}, {1, 2, 3}));
  expect_refusal(folder, arguments(), 3, {"0001/x.npy"});
  fs::remove(folder / "in/0001/x.npy");
  expect_refusal(folder, arguments(), 8, {"0001/x"});
}

TEST_F(Sequence, AFileThatNoInputTakesIsRefused) {
  for (const char* name : {"0000", "0001"}) frame(name);
  folder.write("in/0001/xx.bin", "x");
  expect_refusal(folder, arguments(), 2, {"0001/xx.bin", "no input 'xx'", "inputs: x"});
  fs::remove(folder / "in/0001/xx.bin");
  folder.write("in/0000/s.npy", npy_text({4}, {1, 2, 3, 4}));
  expect_refusal(folder, arguments(), 2, {"0000/s.npy", "'s' is a state"});
}

TEST_F(Sequence, OtherEntriesAreLeftAlone) {
  frame("0000");
  folder.write("in/notes.txt", "x");
  folder.write("in/0000/notes.txt", "x");
  folder.write("in/0000/y.npy", "the expected output");
  EXPECT_EQ(folder.tool(arguments()).exit, 0);
  EXPECT_TRUE(fs::exists(folder / "o/0000/y.npy"));
  expect_refusal(
      folder, {"run", "out.ingot", "--sequence", "none", "--output-dir", "p", "--allow-unsigned"},
      8, {"none"});
}

// ---------------------------------------------------------------------------------------------
// Outputs that are no result of a node

TEST(PassThrough, AnOutputThatIsAnInputIsNamed) {
  const TemporaryFolder folder;
  TinyModel model;
  model.inputs = {{"x", {2}}};
  model.outputs = {{"x", {2}}, {"y", {2}}};
  model.nodes = {{"Relu", {"x"}, {"y"}, "relu"}};
  folder.write("m.onnx", serialize(model));
  expect_refusal(folder, compile_arguments("m.onnx"), 4, {"output 'x'", "Identity"});
  // A pipeline can give it another name.
  folder.write("p.json", R"({"format": "ingot-pipeline/1", "name": "p",
    "stages": [{"id": "m", "model": "m.onnx"}], "outputs": {"copy": "m.x", "y": "m.y"}})");
  const ToolResult compiled = folder.tool(compile_arguments("p.json"));
  ASSERT_EQ(compiled.exit, 0) << compiled.errors;
  folder.write("x.npy", npy_text({2}, {-1, 2}));
  const ToolResult ran = folder.tool(
      {"run", "out.ingot", "--input", "x=x.npy", "--output-dir", "o", "--allow-unsigned"});
  ASSERT_EQ(ran.exit, 0) << ran.errors;
  EXPECT_EQ(npy_values(folder.read("o/copy.npy")), (std::vector<double>{-1, 2}));
  EXPECT_EQ(npy_values(folder.read("o/y.npy")), (std::vector<double>{0, 2}));
}

TEST(PassThrough, CopiesAndConstantsAreOutputs) {
  const TemporaryFolder folder;
  TinyModel model;
  model.inputs = {{"x", {2}}};
  model.outputs = {{"a", {2}}, {"b", {2}}, {"z", {3}}};
  model.nodes = {{"Identity", {"x"}, {"a"}, "one"}, {"Identity", {"a"}, {"b"}, "two"}};
  model.zeros = {{"z", {3}}};
  folder.write("m.onnx", serialize(model));
  const ToolResult compiled = folder.tool(compile_arguments("m.onnx"));
  ASSERT_EQ(compiled.exit, 0) << compiled.errors;
  folder.write("x.npy", npy_text({2}, {-1, 2}));
  const ToolResult ran = folder.tool(
      {"run", "out.ingot", "--input", "x=x.npy", "--output-dir", "o", "--allow-unsigned"});
  ASSERT_EQ(ran.exit, 0) << ran.errors;
  EXPECT_EQ(npy_values(folder.read("o/a.npy")), (std::vector<double>{-1, 2}));
  EXPECT_EQ(npy_values(folder.read("o/b.npy")), (std::vector<double>{-1, 2}));
  EXPECT_EQ(npy_values(folder.read("o/z.npy")), (std::vector<double>{0, 0, 0}));
}

// ---------------------------------------------------------------------------------------------
// Models of a pipeline file

class PipelineModels : public testing::Test {
 protected:
  void SetUp() override {
    TinyModel model;
    model.inputs = {{"x", {-1, 3}}, {"s", {4}}};
    model.outputs = {{"y", {-1, 3}}, {"t", {4}}};
    model.nodes = {{"Relu", {"x"}, {"y"}, "relu"}, {"Relu", {"s"}, {"t"}, "keep"}};
    folder.write("m.onnx", serialize(model));
  }

  // The stage's "inputs" and "states", and what the input `v` is.
  void write(const std::string& stage, const std::string& shape = "[2, 3]") const {
    folder.write("p.json", R"({"format": "ingot-pipeline/1", "name": "p",
      "inputs": {"v": {"dtype": "f32", "shape": )" +
                               shape + R"(}},
      "stages": [{"id": "m", "model": "m.onnx", )" +
                               stage + R"(}],
      "outputs": {"y": "m.y"}})");
  }

  TemporaryFolder folder;
};

TEST_F(PipelineModels, AGoodOneCompiles) {
  write(R"("inputs": {"x": "v"}, "states": {"t": "s"})");
  const ToolResult result = folder.tool(compile_arguments("p.json"));
  EXPECT_EQ(result.exit, 0) << result.errors;
}

TEST_F(PipelineModels, MistakesAreThreeAndNameTheirPlace) {
  write(R"("inputs": {"x": "v", "nothing": "v"})");
  expect_refusal(folder, compile_arguments("p.json"), 3,
                 {"p.json", "stages[0].inputs.nothing", "no input 'nothing'"});
  write(R"("inputs": {"x": "v"})", "[2, 4]");
  expect_refusal(folder, compile_arguments("p.json"), 3, {"p.json", "stages[0].inputs.x"});
  write(R"("inputs": {"x": "v"})", "[2]");
  expect_refusal(folder, compile_arguments("p.json"), 3, {"p.json", "stages[0].inputs.x"});
  for (const char* states : {R"({"none": "s"})", R"({"t": "none"})", R"({"y": "s"})"}) {
    write(std::string(R"("inputs": {"x": "v"}, "states": )") + states);
    expect_refusal(folder, compile_arguments("p.json"), 3, {"p.json", "stages[0].states."});
  }
  write(R"("inputs": {"x": "v"}, "states": {"t": "s", "y": "s"})");
  const ToolResult result = folder.tool(compile_arguments("p.json"));
  EXPECT_EQ(result.exit, 3);
  EXPECT_EQ(result.errors.find("--"), std::string::npos) << result.errors;
}

TEST_F(PipelineModels, TheCommandLineMayNotContradict) {
  write(R"("inputs": {"x": "v"}, "states": {"t": "s"})");
  expect_refusal(folder, compile_arguments("p.json", {"--shape", "x=5x3"}), 2,
                 {"--shape x", "stages[0].inputs.x"});
  folder.write("x.npy", npy_text({2, 3}, {1, 2, 3, 4, 5, 6}));
  expect_refusal(folder, compile_arguments("p.json", {"--bind", "x=x.npy"}), 2,
                 {"--bind x", "stages[0].inputs.x"});
}

// ---------------------------------------------------------------------------------------------
// Refused early, and by name

TEST(Early, TooManyVariantsAreCountedBeforeTheWork) {
  const TemporaryFolder folder;
  std::string cameras;
  for (int i = 0; i < 9; ++i) {
    const std::string name = "c" + std::to_string(i);
    folder.write(name + ".json", R"({"format": "ingot-camera/1", "name": ")" + name + R"(",
      "pixel_format": "nv12", "width": 64, "height": 32, "stride": 64, "y_height": 32,
      "uv_height": 16, "uv_offset": 2048, "size": 3072})");
    cameras += (i > 0 ? ", \"" : "\"") + name + ".json\"";
  }
  folder.write("p.json", R"({"format": "ingot-pipeline/1", "name": "warp", "cameras": [)" +
                             cameras + R"(], "frames": ["frame"],
    "stages": [{"id": "image", "warp": "road", "frame": "frame", "transform": "tfm",
                "size": [16, 16]}], "outputs": {"image": "image"}})");
  Arguments more = {"--print-after", "all"};
  for (const char* target : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"}) {
    more.insert(more.end(), {"--target", target});
  }
  expect_refusal(folder, compile_arguments("p.json", more), 4, {"p.json", "36 variants", "32"});
  const ToolResult result = folder.tool(compile_arguments("p.json", more));
  EXPECT_EQ(result.errors.find("; after"), std::string::npos) << "it was compiled before";
}

TEST(Early, SurplusInputsOfANode) {
  const TemporaryFolder folder;
  for (const char* op : {"Relu", "Add", "Softmax", "Dropout", "Transpose"}) {
    TinyModel model;
    model.inputs = {{"x", {2, 2}}};
    model.outputs = {{"y", {2, 2}}};
    model.nodes = {{op, {"x", "x", "x", "x", "x", "x", "x", "x", "x"}, {"y"}, "node"}};
    folder.write("m.onnx", serialize(model));
    expect_refusal(folder, compile_arguments("m.onnx"), 3, {"node 'node'", op});
  }
}

TEST(Early, UnknownCommands) {
  const TemporaryFolder folder;
  expect_refusal(folder, {"complie", "m.onnx"}, 2, {"unknown command 'complie'", "'compile'"});
  expect_refusal(folder, {"retarget", "a.ingot", "b.ingot"}, 2,
                 {"unknown command 'retarget'", "inspect"});
  expect_refusal(folder, {"verfy"}, 2, {"unknown command 'verfy'", "'verify'"});
}

TEST(Early, NumbersSayWhatIsAllowed) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  for (const char* jobs : {"0", "-1", "x", "1.5", "100000"}) {
    expect_refusal(folder, compile_arguments("m.onnx", {"-j", jobs}), 2, {"-j", "1 to 1024"});
  }
  for (const char* rate : {"1e-300", "0", "nan", "1e300", "-5"}) {
    expect_refusal(folder, {"bench", "a", "--allow-unsigned", "--rate", rate}, 2,
                   {"--rate", "0.001 to 1000000"});
  }
}

TEST(Early, ErrorsOfSignNameTheFile) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  ASSERT_EQ(folder.tool(compile_arguments("m.onnx")).exit, 0);
  ASSERT_EQ(folder.tool({"keygen", "k"}).exit, 0);
  folder.write("bad.ingot", folder.read("out.ingot").substr(0, 500));
  expect_refusal(folder, {"sign", "bad.ingot", "--key", "k.key"}, 5, {"bad.ingot: error"});
  folder.write("bad.sig", noise(200, 1));
  expect_refusal(folder, {"sign", "out.ingot", "--key", "k.key", "--detached", "bad.sig"}, 5,
                 {"bad.sig: error"});
  ASSERT_EQ(folder.tool({"sign", "out.ingot", "--key", "k.key"}).exit, 0);
  expect_refusal(folder, {"sign", "out.ingot", "--key", "k.key", "--purpose", "release"}, 2,
                 {"out.ingot: error"});
}

// ---------------------------------------------------------------------------------------------
// Names of output files, by the tool and by ingot_replay

std::string model_with_outputs(const std::vector<std::string>& outputs) {
  TinyModel model;
  model.inputs = {{"x", {2}}};
  for (const std::string& output : outputs) {
    model.outputs.push_back({output, {2}});
    model.nodes.push_back({"Relu", {"x"}, {output}, "relu"});
  }
  return serialize(model);
}

TEST(OutputNames, ThoseThatCollideAreRefused) {
  const TemporaryFolder folder;
  folder.write("m.onnx", model_with_outputs({"a:0", "a/0"}));
  ASSERT_EQ(folder.tool(compile_arguments("m.onnx")).exit, 0);
  folder.write("x.npy", npy_text({2}, {1, 2}));
  fs::create_directory(folder / "o");
  const Arguments more = {"out.ingot", "--allow-unsigned", "--input",
                          "x=x.npy",   "--output-dir",     "o"};
  Arguments run = {"run"};
  run.insert(run.end(), more.begin(), more.end());
  expect_refusal(folder, run, 4, {"out.ingot", "'a:0'", "'a/0'", "'a_0'"});
  const ToolResult replay = run_replay(folder.path(), more);
  EXPECT_EQ(replay.exit, 4);
  for (const char* text : {"out.ingot", "'a:0'", "'a/0'", "'a_0'"}) {
    EXPECT_NE(replay.errors.find(text), std::string::npos) << replay.errors;
  }
  EXPECT_TRUE(fs::is_empty(folder / "o"));
}

TEST(OutputNames, ToolAndReplayAgree) {
  const TemporaryFolder folder;
  folder.write("m.onnx", model_with_outputs({"plain", "a b%c", "\xC3\xA4", std::string(210, 'n'),
                                             std::string(300, 'm'), "d/e:f"}));
  ASSERT_EQ(folder.tool(compile_arguments("m.onnx")).exit, 0);
  folder.write("x.npy", npy_text({2}, {1, 2}));
  for (const char* name : {"by_tool", "by_replay"}) fs::create_directory(folder / name);
  const ToolResult ran = folder.tool(
      {"run", "out.ingot", "--allow-unsigned", "--input", "x=x.npy", "--output-dir", "by_tool"});
  ASSERT_EQ(ran.exit, 0) << ran.errors;
  const ToolResult replayed = run_replay(folder.path(), {"out.ingot", "--allow-unsigned", "--input",
                                                         "x=x.npy", "--output-dir", "by_replay"});
  ASSERT_EQ(replayed.exit, 0) << replayed.errors;
  const auto names_in = [&](const std::string& inner) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder / inner)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  };
  EXPECT_EQ(names_in("by_tool").size(), 6U);
  EXPECT_EQ(names_in("by_tool"), names_in("by_replay"));
}

TEST(Replay, AbsurdNumbersAreUsage) {
  const TemporaryFolder folder;
  for (const Arguments& numbers : std::vector<Arguments>{{"--rate", "1e-300"},
                                                         {"--rate", "inf"},
                                                         {"--rate", "nan"},
                                                         {"--rate", "-1"},
                                                         {"--frames", "-1"},
                                                         {"--frames", "0"},
                                                         {"--frames", "99999999999999999999"}}) {
    Arguments arguments = {"a.ingot", "--allow-unsigned"};
    arguments.insert(arguments.end(), numbers.begin(), numbers.end());
    EXPECT_EQ(run_replay(folder.path(), arguments).exit, 2) << numbers[1];
  }
}

}  // namespace
}  // namespace ingot::cli
