// The tool as a build job sees it: results, exit codes, streams.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "cli/json.h"
#include "compiler/camera/camera.h"
#include "tests/cli/npy_text.h"
#include "tests/cli/tiny_model.h"
#include "tests/cli/tool.h"

namespace ingot::cli {
namespace {

namespace fs = std::filesystem;

TEST(CommandLine, UsageErrors) {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {},
           {"nothing"},
           {"compile"},
           {"compile", "a.onnx", "--unsigned"},
           {"inspect"},
           {"inspect", "a", "--nonsense"},
           {"targets", "extra"},
           {"verify", "a", "--id", "xyz"},
           {"run", "a", "--output-dir", "o", "--pub", "k", "--allow-unsigned"},
           {"bench", "a", "--runs", "0"},
           {"check", "a"},
           {"check", "a", "--golden", "g", "--tolerance", "nan"},
           {"check", "a", "--golden", "g", "--tolerance", "0x1"},
           {"bench", "a", "--runs", "010"},
           {"bench", "a", "--seed", "-1"},
           {"bench", "a", "--seed", "010"},
           {"compile", "m.onnx", "-o", "m.ingot", "--unsigned", "--security-counter", "010"},
           {"compile", "m.onnx", "-o", "m.ingot", "--unsigned", "-j", "08"},
           {"compile", "m.onnx", "-o", "m.ingot", "--unsigned", "--split-frames"},
           {"verify", "a", "--min-security-counter", "010"},
           {"pass", "only-a-name"}}) {
    const ToolResult result = folder.tool(arguments);
    EXPECT_EQ(result.exit, 2) << testing::PrintToString(arguments);
    EXPECT_TRUE(result.output.empty()) << result.output;
    EXPECT_NE(result.errors.find("error: "), std::string::npos) << result.errors;
  }
}

TEST(CommandLine, UsageErrorsAreJsonToo) {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"nothing", "--json"}, {"compile", "--json"}, {"inspect", "", "--json"}}) {
    const ToolResult result = folder.tool(arguments);
    EXPECT_EQ(result.exit, 2);
    const Result<Json> list = parse_json(result.errors, "errors");
    ASSERT_TRUE(list) << result.errors;
    EXPECT_EQ((*list)[0]["code"], "usage");
  }
}

TEST(CommandLine, CompileAsksForAKey) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  const ToolResult result = folder.tool({"compile", "m.onnx", "-o", "m.ingot"});
  EXPECT_EQ(result.exit, 2);
  EXPECT_NE(result.errors.find("ingot keygen"), std::string::npos) << result.errors;
}

TEST(CommandLine, OptionsOfLaterVersionsAreRefused) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  for (const std::vector<std::string>& extra : std::vector<std::vector<std::string>>{
           {"--precision", "f16"}, {"--retargetable"}, {"--cache-dir", "d"}}) {
    std::vector<std::string> arguments = {"compile", "m.onnx", "-o", "m.ingot", "--unsigned"};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    const ToolResult result = folder.tool(arguments);
    EXPECT_EQ(result.exit, 4) << extra.front();
    EXPECT_NE(result.errors.find(extra.front()), std::string::npos);
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"m.onnx"});
}

TEST(CommandLine, HelpGoesToStandardOutput) {
  const TemporaryFolder folder;
  const ToolResult help = folder.tool({"compile", "--help"});
  EXPECT_EQ(help.exit, 0);
  EXPECT_TRUE(help.errors.empty());
  EXPECT_NE(help.output.find("Example"), std::string::npos);
  EXPECT_EQ(folder.tool({"--version"}).output.substr(0, 6), "ingot ");
}

TEST(CommandLine, ListsAreJson) {
  const TemporaryFolder folder;
  for (const char* command : {"targets", "cameras", "ops"}) {
    const ToolResult text = folder.tool({command});
    EXPECT_EQ(text.exit, 0) << text.errors;
    EXPECT_FALSE(text.output.empty());
    const ToolResult json = folder.tool({command, "--json"});
    EXPECT_EQ(json.exit, 0);
    EXPECT_TRUE(parse_json(json.output, command)) << command;
  }
  EXPECT_EQ(folder.tool({"ops", "--markdown"}).exit, 0);
  EXPECT_EQ(folder.tool({"pass", "--list-passes"}).exit, 0);
}

TEST(CommandLine, ListedCamerasAreCameraFiles) {
  const TemporaryFolder folder;
  const Result<Json> list = parse_json(folder.tool({"cameras", "--json"}).output, "cameras");
  ASSERT_TRUE(list && !list->empty());
  for (const Json& camera : *list) {
    const auto parsed = parse_camera(to_text(camera), "c.json");
    ASSERT_TRUE(parsed) << to_line(parsed.error().diagnostics.front());
    EXPECT_EQ(parsed->camera.name, camera["name"]);
  }
}

TEST(CommandLine, ARepeatableOptionTakesOneValue) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  ASSERT_EQ(folder.tool({"keygen", "dev"}).exit, 0);
  ASSERT_EQ(folder.tool({"keygen", "other"}).exit, 0);
  const ToolResult compiled = folder.tool({"compile", "--sign", "dev.key", "--sign", "other.key",
                                           "--target", "x86-64-v3", "m.onnx", "-o", "m.ingot"});
  EXPECT_EQ(compiled.exit, 0) << compiled.errors;
  const ToolResult verified =
      folder.tool({"verify", "--pub", "dev.pub", "--pub", "other.pub", "m.ingot"});
  EXPECT_EQ(verified.exit, 0) << verified.errors;
  EXPECT_NE(verified.output.find("signed by 2 trusted keys"), std::string::npos);
  // A second value is a positional argument, and there is one too many.
  EXPECT_EQ(folder.tool({"verify", "m.ingot", "--pub", "dev.pub", "other.pub"}).exit, 2);
}

// Long enough for a header, and none.
TEST(CommandLine, AFileThatIsNoArtifactIsCalledThat) {
  const TemporaryFolder folder;
  folder.write("zeros", std::string(100000, '\0'));
  folder.write("short", std::string(544, 'x'));
  ASSERT_EQ(folder.tool({"keygen", "dev"}).exit, 0);
  for (const char* file : {"zeros", "short"}) {
    for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
             {"inspect", file},
             {"verify", file, "--pub", "dev.pub"},
             {"run", file, "--pub", "dev.pub", "--output-dir", "out"},
             {"bench", file, "--pub", "dev.pub"},
             {"diff", file, file},
             {"sign", file, "--key", "dev.key"}}) {
      const ToolResult result = folder.tool(arguments);
      EXPECT_EQ(result.exit, 5) << arguments.front() << result.errors;
      EXPECT_NE(result.errors.find("E_MAGIC"), std::string::npos)
          << arguments.front() << result.errors;
    }
  }
}

TEST(CommandLine, CompileRunAndBench) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  const ToolResult compiled =
      folder.tool({"compile", "m.onnx", "-o", "m.ingot", "--unsigned", "--json"});
  ASSERT_EQ(compiled.exit, 0) << compiled.errors;
  const Result<Json> report = parse_json(compiled.output, "report");
  ASSERT_TRUE(report) << compiled.output;
  EXPECT_EQ(folder.tool({"inspect", "m.ingot", "--id"}).output,
            (*report)["id"].get<std::string>() + "\n");
  EXPECT_EQ((*report)["product"], "m");

  folder.write("x.npy", npy_text({2, 3}, {1, -2, 3, -4, 5, -6}));
  const ToolResult ran = folder.tool(
      {"run", "m.ingot", "--input", "x=x.npy", "--output-dir", "out", "--allow-unsigned"});
  ASSERT_EQ(ran.exit, 0) << ran.errors;
  EXPECT_EQ(npy_values(folder.read("out/y.npy")), (std::vector<double>{2, -2, 6, -4, 10, -6}));

  const ToolResult bench =
      folder.tool({"bench", "m.ingot", "--allow-unsigned", "--runs", "20", "--json", "--per-call"});
  ASSERT_EQ(bench.exit, 0) << bench.errors;
  const Result<Json> times = parse_json(bench.output, "bench");
  ASSERT_TRUE(times);
  for (const char* key :
       {"min_ms", "median_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms", "runs", "threads", "missed",
        "calls", "bytes", "ceiling_gflops", "ceiling_gbytes_per_s"}) {
    EXPECT_TRUE(times->contains(key)) << key;
  }
  ASSERT_FALSE((*times)["calls"].empty());
  EXPECT_TRUE((*times)["calls"][0].contains("share"));
  EXPECT_EQ((*times)["threads"], 1);
  const ToolResult serve =
      folder.tool({"bench", "m.ingot", "--allow-unsigned", "--serve"}, "2\n1\n");
  EXPECT_EQ(serve.exit, 0) << serve.errors;
  EXPECT_TRUE(serve.output.starts_with("{\"ready\":true}\n{\"ms\":[")) << serve.output;
  EXPECT_EQ(std::ranges::count(serve.output, '\n'), 3);
}

TEST(CommandLine, ThreadsShareFramesUpToWhatTheArtifactWasMadeFor) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  ASSERT_EQ(folder.tool({"compile", "m.onnx", "-o", "m.ingot", "--unsigned"}).exit, 0);
  folder.write("x.npy", npy_text({2, 3}, {1, -2, 3, -4, 5, -6}));
  const ToolResult bench = folder.tool({"bench", "m.ingot", "--allow-unsigned", "--runs", "3",
                                        "--json", "--per-call", "--threads", "2"});
  ASSERT_EQ(bench.exit, 0) << bench.errors;
  EXPECT_EQ((*parse_json(bench.output, "bench"))["threads"], 2);
  const std::vector<std::string> run = {"run",     "m.ingot",          "--input",
                                        "x=x.npy", "--allow-unsigned", "--output-dir",
                                        "out",     "--threads"};
  for (const auto& [threads, exit] : {std::pair{"4", 0}, {"5", 2}, {"0", 2}, {"257", 2}}) {
    std::vector<std::string> arguments = run;
    arguments.emplace_back(threads);
    const ToolResult result = folder.tool(arguments);
    EXPECT_EQ(result.exit, exit) << threads << result.errors;
    EXPECT_EQ(result.errors.empty(), exit == 0) << threads;
  }
  EXPECT_EQ(npy_values(folder.read("out/y.npy")), (std::vector<double>{2, -2, 6, -4, 10, -6}));
  for (const auto& [threads, exit] : {std::pair{"4", 0}, {"5", 2}, {"x", 2}}) {
    EXPECT_EQ(run_replay(folder.path(), {"m.ingot", "--allow-unsigned", "--input", "x=x.npy",
                                         "--threads", threads})
                  .exit,
              exit);
  }
}

TEST(CommandLine, StandardOutputIsTheResultAlone) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  const ToolResult loud = folder.tool({"compile", "m.onnx", "-o", "m.ingot", "--unsigned"});
  ASSERT_EQ(loud.exit, 0) << loud.errors;
  EXPECT_NE(loud.errors.find("read\n"), std::string::npos);
  EXPECT_NE(loud.output.find("artifact id"), std::string::npos);
  const ToolResult quiet =
      folder.tool({"compile", "m.onnx", "-o", "m.ingot", "--unsigned", "--no-progress"});
  EXPECT_TRUE(quiet.errors.empty()) << quiet.errors;
}

TEST(CommandLine, EqualInputsGiveEqualBytes) {
  const TemporaryFolder a;
  const TemporaryFolder b;
  a.write("m.onnx", relu_plus_model());
  b.write("sub/m.onnx", relu_plus_model());
  const std::vector<std::string> same = {"--target", "x86-64-v3", "--target", "aarch64",
                                         "--unsigned"};
  std::vector<std::string> first = {"compile", "m.onnx", "-o", "m.ingot", "-j", "1"};
  std::vector<std::string> second = {"compile", "sub/m.onnx", "-o", "other.ingot", "-j", "4"};
  first.insert(first.end(), same.begin(), same.end());
  second.insert(second.end(), same.begin(), same.end());
  ASSERT_EQ(a.tool(first).exit, 0);
  ASSERT_EQ(b.tool(second).exit, 0);
  EXPECT_EQ(a.read("m.ingot"), b.read("other.ingot"));
}

TEST(CommandLine, ForeignTargetsAreNotExecuted) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  const ToolResult result = folder.tool({"compile", "m.onnx", "-o", "m.ingot", "--unsigned",
                                         "--target", "aarch64", "--target", "x86-64-v2"});
  ASSERT_EQ(result.exit, 0) << result.errors;
  EXPECT_NE(result.output.find("not executed"), std::string::npos) << result.output;
}

TEST(CommandLine, SequencesCarryTheState) {
  const TemporaryFolder folder;
  folder.write("m.onnx", counter_model());
  ASSERT_EQ(folder.tool({"compile", "m.onnx", "-o", "m.ingot", "--unsigned"}).exit, 0);
  for (const char* frame : {"0000", "0001", "0002"}) {
    folder.write(std::string("in/") + frame + "/x.npy", npy_text({4}, {1, 2, 3, 4}));
  }
  const ToolResult result = folder.tool(
      {"run", "m.ingot", "--sequence", "in", "--output-dir", "out", "--allow-unsigned"});
  ASSERT_EQ(result.exit, 0) << result.errors;
  EXPECT_EQ(npy_values(folder.read("out/0002/y.npy")), (std::vector<double>{3, 6, 9, 12}));
}

TEST(CommandLine, ResultsWithoutElements) {
  const TemporaryFolder folder;
  TinyModel model;
  model.inputs = {{"x", {0, 3}}};
  model.outputs = {{"y", {0, 3}}};
  model.nodes = {{"Relu", {"x"}, {"y"}, "relu"}};
  folder.write("m.onnx", serialize(model));
  const ToolResult compiled = folder.tool({"compile", "m.onnx", "-o", "m.ingot", "--unsigned"});
  ASSERT_EQ(compiled.exit, 0) << compiled.errors;
  folder.write("x.npy", npy_text({0, 3}, {}));
  const ToolResult ran = folder.tool(
      {"run", "m.ingot", "--input", "x=x.npy", "--output-dir", "out", "--allow-unsigned"});
  EXPECT_EQ(ran.exit, 0) << ran.errors;
  EXPECT_EQ(folder.read("out/y.npy"), npy_text({0, 3}, {}));
}

TEST(CommandLine, EmitsCodeForPeople) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  for (const char* kind : {"ir", "schedule", "llvm", "asm", "obj"}) {
    const ToolResult result = folder.tool({"compile", "m.onnx", "-o", "m.ingot", "--unsigned",
                                           "--emit", kind, "--emit-dir", std::string("e/") + kind});
    EXPECT_EQ(result.exit, 0) << kind << result.errors;
    EXPECT_FALSE(fs::is_empty(folder / (std::string("e/") + kind))) << kind;
  }
  const ToolResult alone =
      folder.tool({"compile", "m.onnx", "-o", "m.ingot", "--unsigned", "--emit", "asm"});
  EXPECT_EQ(alone.exit, 2);
}

TEST(CommandLine, SchedulesAreReplayed) {
  const TemporaryFolder folder;
  folder.write("m.onnx", relu_plus_model());
  const std::vector<std::string> compile = {"compile",  "m.onnx",    "--unsigned",
                                            "--target", "x86-64-v3", "-o"};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), compile.begin(), compile.end());
    return folder.tool(arguments);
  };
  ASSERT_EQ(with({"a.ingot", "--emit", "schedule", "--emit-dir", "e"}).exit, 0);
  const std::string chosen = folder.read("e/x86-64-v3/schedule.txt");
  EXPECT_TRUE(chosen.starts_with("target x86-64-v3\n\nkernel ")) << chosen;
  const std::string file = folder / "e/x86-64-v3/schedule.txt";
  const ToolResult same = with({"b.ingot", "--schedule", file, "--emit", "asm", "--emit-dir", "s"});
  EXPECT_EQ(same.exit, 0) << same.errors;
  EXPECT_EQ(same.errors.find("warning"), std::string::npos) << same.errors;

  // Plain loops.
  std::string plain = chosen.substr(0, chosen.find("\n  ")) + "\n  loops i0_i1\n";
  folder.write("plain.txt", plain);
  const ToolResult other =
      with({"c.ingot", "--schedule", "plain.txt", "--emit", "schedule", "--emit-dir", "p"});
  EXPECT_EQ(other.exit, 0) << other.errors << chosen;
  EXPECT_EQ(folder.read("p/x86-64-v3/schedule.txt"), plain);

  folder.write("bad.txt", chosen.substr(0, chosen.find("\n  ")) + "\n  tile i0_i1 99\n  loops\n");
  const ToolResult bad = with({"d.ingot", "--schedule", "bad.txt"});
  EXPECT_EQ(bad.exit, 3);
  EXPECT_NE(bad.errors.find("bad.txt: error: line 3: kernel "), std::string::npos) << bad.errors;
  EXPECT_FALSE(fs::exists(folder / "d.ingot"));

  folder.write("old.txt", "target x86-64-v3\nkernel 0000000000000001 \"gone\"\n  loops\n");
  const ToolResult old = with({"e.ingot", "--schedule", "old.txt"});
  EXPECT_EQ(old.exit, 0);
  EXPECT_NE(old.errors.find("old.txt: warning: line 2: "), std::string::npos) << old.errors;
  EXPECT_EQ(with({"f.ingot", "--schedule", "old.txt", "-O0"}).exit, 2);
}

TEST(CommandLine, CheckModelListsEverythingAtOnce) {
  const TemporaryFolder folder;
  TinyModel model;
  model.inputs = {{"x", {2}}};
  model.outputs = {{"y", {2}}};
  model.nodes = {{"FirstUnknown", {"x"}, {"a"}, "one"}, {"SecondUnknown", {"a"}, {"y"}, "two"}};
  folder.write("m.onnx", serialize(model));
  const ToolResult text = folder.tool({"check-model", "m.onnx"});
  EXPECT_EQ(text.exit, 4);
  EXPECT_NE(text.errors.find("FirstUnknown"), std::string::npos) << text.errors;
  EXPECT_NE(text.errors.find("SecondUnknown"), std::string::npos) << text.errors;
  const ToolResult json = folder.tool({"check-model", "m.onnx", "--json"});
  EXPECT_EQ(json.exit, 4);
  const Result<Json> list = parse_json(json.output, "list");
  ASSERT_TRUE(list) << json.output;
  EXPECT_GE(list->size(), 2U);
  EXPECT_EQ((*list)[0]["node"], "one");
  EXPECT_EQ((*list)[0]["opset"], 13);
  folder.write("good.onnx", relu_plus_model());
  EXPECT_EQ(folder.tool({"check-model", "good.onnx"}).exit, 0);
}

TEST(CommandLine, FailuresOfCompileAreJsonToo) {
  const TemporaryFolder folder;
  const ToolResult result =
      folder.tool({"compile", "none.onnx", "-o", "m.ingot", "--unsigned", "--json"});
  EXPECT_EQ(result.exit, 8);
  const Result<Json> list = parse_json(result.errors, "errors");
  ASSERT_TRUE(list) << result.errors;
  EXPECT_EQ((*list)[0]["severity"], "error");
}

}  // namespace
}  // namespace ingot::cli
