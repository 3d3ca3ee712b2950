// keygen, sign, verify: the three verdicts and their exit codes.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "cli/json.h"
#include "tests/cli/tiny_model.h"
#include "tests/cli/tool.h"

namespace ingot::cli {
namespace {

class Signing : public testing::Test {
 protected:
  void SetUp() override {
    folder.write("m.onnx", relu_plus_model());
    for (const char* name : {"a", "b"}) ASSERT_EQ(folder.tool({"keygen", name}).exit, 0);
    const ToolResult compiled =
        folder.tool({"compile", "m.onnx", "-o", "m.ingot", "--sign", "a.key", "--product", "road",
                     "--security-counter", "3"});
    ASSERT_EQ(compiled.exit, 0) << compiled.errors;
    id = folder.tool({"inspect", "m.ingot", "--id"}).output;
    ASSERT_EQ(id.size(), 65U);
    id.pop_back();
  }

  int verify(std::vector<std::string> options) const {
    options.insert(options.begin(), {"verify", "m.ingot"});
    const ToolResult result = folder.tool(options);
    EXPECT_NE(result.output.find("intact and signed"), std::string::npos) << result.errors;
    EXPECT_NE(result.output.find("\ncompatible"), std::string::npos);
    EXPECT_NE(result.output.find("\nreference vectors"), std::string::npos);
    EXPECT_EQ(result.exit == 0, result.errors.empty()) << result.errors;
    return result.exit;
  }

  TemporaryFolder folder;
  std::string id;
};

TEST_F(Signing, KeysArePrivateAndNeverOverwritten) {
  struct stat status = {};
  ASSERT_EQ(stat((folder / "a.key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  const std::string before = folder.read("a.key");
  EXPECT_EQ(folder.tool({"keygen", "a"}).exit, 8);
  EXPECT_EQ(folder.read("a.key"), before);
}

TEST_F(Signing, GoodArtifact) {
  EXPECT_EQ(verify({"--pub", "a.pub"}), 0);
  EXPECT_EQ(verify({"--pub", "b.pub", "--pub", "a.pub", "--self-test", "--product", "road",
                    "--min-security-counter", "3", "--id", id}),
            0);
}

TEST_F(Signing, WrongOrMissingKeyIsFive) {
  EXPECT_EQ(verify({"--pub", "b.pub"}), 5);
  EXPECT_EQ(verify({}), 5);
}

TEST_F(Signing, AnIdThatIsNotListedIsFive) {
  EXPECT_EQ(verify({"--pub", "a.pub", "--id", std::string(64, '0')}), 5);
  folder.write("good.txt", "# deploy\n\n" + std::string(64, '1') + "\n" + id + " car\n");
  EXPECT_EQ(verify({"--pub", "a.pub", "--ids", "good.txt"}), 0);
  folder.write("empty.txt", "");
  EXPECT_EQ(verify({"--pub", "a.pub", "--ids", "empty.txt"}), 5);
  folder.write("bad.txt", "hello\n");
  EXPECT_EQ(folder.tool({"verify", "m.ingot", "--pub", "a.pub", "--ids", "bad.txt"}).exit, 3);
}

TEST_F(Signing, VerifySaysWhatWouldHelp) {
  EXPECT_NE(folder.tool({"verify", "m.ingot"}).errors.find("--pub"), std::string::npos);
  const std::string errors =
      folder.tool({"verify", "m.ingot", "--pub", "a.pub", "--product", "cabin"}).errors;
  EXPECT_NE(errors.find("product 'road', and 'cabin'"), std::string::npos) << errors;
}

TEST_F(Signing, AnotherProductOrDeviceIsSix) {
  EXPECT_EQ(verify({"--pub", "a.pub", "--product", "cabin"}), 6);
  EXPECT_EQ(verify({"--pub", "a.pub", "--min-security-counter", "4"}), 6);
}

TEST_F(Signing, ADeviceWithoutTheFeaturesIsSix) {
  ASSERT_EQ(
      folder
          .tool({"compile", "m.onnx", "-o", "m.ingot", "--sign", "a.key", "--target", "x86-64-v3"})
          .exit,
      0);
  for (const auto& [target, expected] :
       {std::pair("x86-64-v2", 6), {"x86-64-v4", 0}, {"aarch64", 6}}) {
    folder.write(
        "d.json",
        std::string(R"({"format": "ingot-device/1", "name": "car", "target": ")") + target + "\"}");
    EXPECT_EQ(verify({"--pub", "a.pub", "--device", "d.json"}), expected) << target;
  }
}

TEST_F(Signing, PolicyFilesAreRead) {
  folder.write("bad.json", "{");
  EXPECT_EQ(folder.tool({"verify", "m.ingot", "--policy", "bad.json"}).exit, 3);
  EXPECT_EQ(folder.tool({"verify", "m.ingot", "--policy", "none.json"}).exit, 8);
}

TEST_F(Signing, TheProductsOfPolicyAndCommandLineBothHold) {
  for (const char* product : {"road", "cabin"}) {
    Json key;
    key["public_key"] = folder.read("a.pub");
    Json policy;
    policy["format"] = "ingot-policy/1";
    policy["keys"] = Json::array({key});
    policy["product"] = product;
    folder.write(std::string(product) + ".json", to_text(policy));
  }
  const std::vector<std::string> options = {"--pub", "a.pub", "--product", "road", "--policy"};
  const auto verify_with = [&](const char* policy) {
    std::vector<std::string> arguments = {"verify", "m.ingot"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.emplace_back(policy);
    return folder.tool(arguments);
  };
  EXPECT_EQ(verify_with("road.json").exit, 0) << verify_with("road.json").errors;
  EXPECT_EQ(verify_with("cabin.json").exit, 6) << verify_with("cabin.json").errors;
}

// The loader wants 32 bytes; keygen writes a PEM file whose last bytes they are.
TEST_F(Signing, KeysOfProgramsThatLinkTheLoader) {
  const ToolResult pem = run_embed(folder.path(), {"m.ingot", "a.pub", "--frames", "2"});
  EXPECT_EQ(pem.exit, 8);
  EXPECT_NE(pem.errors.find("PEM"), std::string::npos) << pem.errors;
  ASSERT_EQ(std::system(("cd '" + folder.path().string() +
                         "' && sed '/^-----/d' a.pub | base64 -d | tail -c 32 >a.raw")
                            .c_str()),
            0);
  const ToolResult raw = run_embed(folder.path(), {"m.ingot", "a.raw", "--frames", "2"});
  EXPECT_EQ(raw.exit, 0) << raw.errors;
  for (const char* text :
       {"p99.9", "readback", "2 frames at 20 Hz", " 0 missed deadlines", "hits"}) {
    EXPECT_NE(raw.output.find(text), std::string::npos) << text << "\n" << raw.output;
  }
  const ToolResult fast =
      run_embed(folder.path(), {"--back-to-back", "m.ingot", "a.raw", "--frames", "300"});
  EXPECT_EQ(fast.exit, 0) << fast.errors;
  EXPECT_NE(fast.output.find("300 frames back to back"), std::string::npos) << fast.output;
  EXPECT_EQ(run_embed(folder.path(), {"m.ingot", "a.raw", "--frames"}).exit, 2);
  EXPECT_EQ(run_embed(folder.path(), {"m.ingot", "a.raw", "--rate", "0"}).exit, 2);
  const ToolResult replayed = run_replay(folder.path(), {"m.ingot", "--pub-hex", "a.pub"});
  EXPECT_EQ(replayed.exit, 2);
  EXPECT_NE(replayed.errors.find("--pub 'a.pub'"), std::string::npos) << replayed.errors;
}

TEST_F(Signing, SecondSignatureAndPurposes) {
  ASSERT_EQ(folder.tool({"sign", "m.ingot", "--key", "b.key", "--purpose", "release"}).exit, 0);
  EXPECT_EQ(verify({"--pub", "a.pub"}), 0);
  EXPECT_EQ(verify({"--pub", "b.pub"}), 0);
  EXPECT_EQ(folder.tool({"inspect", "m.ingot", "--id"}).output, id + "\n");
  EXPECT_EQ(folder.tool({"sign", "m.ingot", "--key", "b.key", "--purpose", "nothing"}).exit, 2);
}

TEST_F(Signing, DetachedSignatures) {
  const std::string before = folder.read("m.ingot");
  ASSERT_EQ(folder.tool({"sign", "m.ingot", "--key", "b.key", "--detached", "m.sig"}).exit, 0);
  EXPECT_EQ(folder.read("m.ingot"), before);
  EXPECT_EQ(verify({"--pub", "b.pub"}), 5);
  EXPECT_EQ(verify({"--pub", "b.pub", "--detached", "m.sig"}), 0);
}

TEST_F(Signing, AnEmptyDetachedFileIsNoSignature) {
  folder.write("empty.sig", "");
  EXPECT_EQ(verify({"--pub", "a.pub", "--detached", "empty.sig"}), 5);
  EXPECT_EQ(verify({"--pub", "a.pub", "--detached", "/dev/null"}), 5);
  EXPECT_EQ(folder.tool({"sign", "m.ingot", "--key", "b.key", "--detached", "empty.sig"}).exit, 5);
  EXPECT_EQ(folder.read("empty.sig"), "");
  EXPECT_EQ(folder.tool({"verify", "m.ingot", "--pub", "a.pub", "--detached", "/dev/zero"}).exit,
            8);
}

TEST_F(Signing, SigningAgainGivesTheSameBytes) {
  const std::string before = folder.read("m.ingot");
  EXPECT_EQ(folder.tool({"sign", "m.ingot", "--key", "a.key"}).exit, 0);
  EXPECT_EQ(folder.read("m.ingot"), before);
}

TEST_F(Signing, AChangedByteIsFiveEverywhere) {
  const std::string good = folder.read("m.ingot");
  for (std::size_t at = 0; at < good.size(); at += 1 + good.size() / 60) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    folder.write("m.ingot", bad);
    const int expected = at == 8 || at == 9 ? 6 : 5;
    EXPECT_EQ(verify({"--pub", "a.pub"}), expected) << at;
    EXPECT_EQ(folder.tool({"run", "m.ingot", "--pub", "a.pub", "--output-dir", "o"}).exit, expected)
        << at;
  }
  folder.write("m.ingot", good);
}

TEST_F(Signing, RunNeedsTrust) {
  EXPECT_EQ(folder.tool({"run", "m.ingot", "--output-dir", "o"}).exit, 5);
  EXPECT_EQ(folder.tool({"run", "m.ingot", "--output-dir", "o", "--pub", "b.pub"}).exit, 5);
  ASSERT_EQ(folder.tool({"compile", "m.onnx", "-o", "u.ingot", "--unsigned"}).exit, 0);
  const ToolResult result = folder.tool({"bench", "u.ingot", "--runs", "1"});
  EXPECT_EQ(result.exit, 5);
  EXPECT_NE(result.errors.find("--allow-unsigned"), std::string::npos) << result.errors;
}

}  // namespace
}  // namespace ingot::cli
