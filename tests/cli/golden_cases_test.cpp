#include "cli/golden_cases.h"

#include <gtest/gtest.h>

#include "tests/cli/tool.h"

namespace ingot::cli {
namespace {

constexpr const char* kCases = R"([
  {"name": "one", "sha256": "0100000000000000000000000000000000000000000000000000000000000000",
   "inputs": [{"name": "x", "dtype": "float32", "shape": [1, 2], "lo": -1, "hi": 1},
              {"name": "s", "dtype": "int64", "shape": [], "file": "s.npy"}],
   "bind": ["s"], "feedback": ["a=b=x"],
   "runs": [{"seed": 3, "steps": 2, "outputs": {"a=b": {"file": "g/a.npy"}}},
            {"seed": 4, "steps": 1, "outputs": {"a=b": {"file": "g/b.npy"}}}]},
  {"name": "two", "inputs": [],
   "runs": [{"seed": 1, "steps": 1, "outputs": {"y": {"file": "g/y.npy"}}}]}
])";

TEST(GoldenCases, FindsTheCaseByTheModelsDigest) {
  const TemporaryFolder folder;
  folder.write("cases.json", kCases);
  artifact::Digest digest{};
  digest[0] = 1;
  const auto runs = read_cases(folder.path(), {"", {digest}});
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 2U);
  const CaseRun& run = runs->front();
  EXPECT_EQ(run.name, "one/s3_n2");
  EXPECT_EQ(run.seed, 3U);
  EXPECT_EQ(run.steps, 2);
  ASSERT_EQ(run.inputs.size(), 2U);
  EXPECT_EQ(run.inputs[0].shape, (Shape{1, 2}));
  EXPECT_EQ(run.inputs[0].lo, -1);
  EXPECT_EQ(run.inputs[1].file, folder / "s.npy");
  ASSERT_EQ(run.feedback.size(), 1U);
  EXPECT_EQ(run.feedback[0].output, "a=b");
  EXPECT_EQ(run.feedback[0].input, "x");
  ASSERT_EQ(run.outputs.size(), 1U);
  EXPECT_EQ(run.outputs[0].file, folder / "g/a.npy");
}

TEST(GoldenCases, ANameWinsAndAMissingCaseIsNamed) {
  const TemporaryFolder folder;
  folder.write("cases.json", kCases);
  EXPECT_TRUE(read_cases(folder / "cases.json", {"two", {}}));
  const auto none = read_cases(folder / "cases.json", {"", {}});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().exit, ExitCode::Usage);
  EXPECT_NE(none.error().diagnostics.front().hint.find("one two"), std::string::npos);
}

TEST(GoldenCases, RefusesMalformedFiles) {
  for (const char* text :
       {"", "{}", "[1]", R"([{"name": 1}])", R"([{"name": "c"}])",
        R"([{"name": "c", "inputs": [{}], "runs": []}])",
        R"([{"name": "c", "inputs": [{"name": "x", "dtype": "f"}], "runs": []}])",
        R"([{"name": "c", "inputs": [], "runs": [{"seed": 1, "steps": 0, "outputs": {}}]}])",
        R"([{"name": "c", "inputs": [], "runs": []}])",
        R"([{"name": "c", "inputs": [], "runs": [{"seed": 1, "steps": 1, "outputs": {}}]}])",
        R"([{"name": "c", "inputs": [], "runs": [{"seed": 1, "steps": 1}]}])"}) {
    const TemporaryFolder folder;
    folder.write("cases.json", text);
    const auto runs = read_cases(folder.path(), {"c", {}});
    ASSERT_FALSE(runs) << text;
    EXPECT_EQ(runs.error().exit, ExitCode::Malformed) << text;
  }
}

TEST(GoldenCases, ANameThatNoFolderHasIsUsage) {
  const TemporaryFolder folder;
  folder.write("a/output_y.pb", "");
  EXPECT_TRUE(read_cases(folder / "a", {"a", {}}));
  EXPECT_TRUE(read_cases(folder / "a/.", {"a", {}}));
  EXPECT_TRUE(read_cases(folder.path(), {"a", {}}));
  const auto none = read_cases(folder / "a", {"nope", {}});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().exit, ExitCode::Usage);
}

TEST(GoldenCases, AFolderThatCannotBeReadIsEight) {
  const TemporaryFolder folder;
  folder.write("a/output_y.pb", "");
  std::filesystem::create_symlink("loop", folder / "loop");
  const auto runs = read_cases(folder.path(), {});
  ASSERT_FALSE(runs);
  EXPECT_EQ(runs.error().exit, ExitCode::Io);
}

TEST(GoldenCases, FoldersByPositionAndName) {
  const TemporaryFolder folder;
  for (const char* name : {"b/input_0.npy", "b/input_scale.pb", "b/output_1.npy", "a/output_y.pb",
                           "a/notes.txt", "empty/readme"}) {
    folder.write(name, "");
  }
  const auto runs = read_cases(folder.path(), {});
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 2U);
  EXPECT_EQ((*runs)[0].name, "a");
  EXPECT_EQ((*runs)[0].outputs[0].name, "y");
  EXPECT_EQ((*runs)[1].inputs[0].position, 0U);
  EXPECT_EQ((*runs)[1].inputs[1].name, "scale");
  EXPECT_EQ((*runs)[1].outputs[0].position, 1U);
  EXPECT_EQ(read_cases(folder.path(), {"b", {}})->size(), 1U);
  EXPECT_FALSE(read_cases(folder.path(), {"c", {}}));
}

TEST(GoldenCases, MissingFilesAreIo) {
  const TemporaryFolder folder;
  const auto runs = read_cases(folder / "none", {});
  ASSERT_FALSE(runs);
  EXPECT_EQ(runs.error().exit, ExitCode::Io);
}

}  // namespace
}  // namespace ingot::cli
