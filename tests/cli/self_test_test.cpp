// verify --self-test: what the numbers say is apart from who signed and where it fits.
#include <gtest/gtest.h>

#include <memory>

#include "artifact/encode.h"
#include "artifact/keys.h"
#include "artifact/sign.h"
#include "cli/encode_program.h"
#include "cli/json.h"
#include "cli/model_source.h"
#include "codegen/llvm_code_generator.h"
#include "codegen/native_runner.h"
#include "tests/cli/npy_text.h"
#include "tests/cli/tiny_model.h"
#include "tests/cli/tool.h"

namespace ingot::cli {
namespace {

class SelfTest : public testing::Test {
 protected:
  void SetUp() override {
    folder.write("m.onnx", relu_plus_model());
    ASSERT_EQ(folder.tool({"keygen", "a"}).exit, 0);
  }

  // An artifact whose own reference has another first element, signed as if nothing had happened.
  Result<std::vector<std::byte>> altered_artifact() {
    SourceOptions source;
    source.source = folder / "m.onnx";
    std::vector<Diagnostic> warnings;
    INGOT_ASSIGN(const ModelSources sources, read_source(source, warnings));
    CompileOptions options;
    options.targets = {default_target()};
    const auto generator = make_llvm_code_generator();
    const auto runner = make_native_runner(1);
    INGOT_ASSIGN(Compiled compiled, compile(sources.pipeline.input, options, *generator, *runner));
    SharedReference& reference = compiled.variants.front().references.front();
    ReferenceSequence altered = *reference;
    altered.steps.front().outputs.front()[3] ^= std::byte{1};
    reference = std::make_shared<const ReferenceSequence>(std::move(altered));
    ArtifactFacts facts;
    facts.product = "tiny";
    facts.models = sources.models;
    INGOT_ASSIGN(const artifact::ArtifactContents contents, encode_program(compiled, facts));
    INGOT_ASSIGN(std::vector<std::byte> bytes, artifact::encode(contents));
    INGOT_ASSIGN(const artifact::PrivateKey key, artifact::read_private_key(folder / "a.key"));
    return artifact::add_signature(std::move(bytes), key, {});
  }

  void write_case(const std::string& name, double last) {
    folder.write("golden/" + name + "/input_0.npy", npy_text({2, 3}, {1, -2, 3, -4, 5, -6}));
    folder.write("golden/" + name + "/output_0.npy", npy_text({2, 3}, {2, -2, 6, -4, 10, last}));
  }

  ToolResult compile_golden() {
    return folder.tool({"compile", "m.onnx", "-o", "m.ingot", "--sign", "a.key", "--golden",
                        "golden", "--check", "off"});
  }

  Json verify(int exit, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"verify", "m.ingot",     "--pub",
                                          "a.pub",  "--self-test", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ToolResult result = folder.tool(arguments);
    EXPECT_EQ(result.exit, exit) << result.errors;
    return parse_json(result.output, "verdicts").value_or(Json());
  }

  TemporaryFolder folder;
};

TEST_F(SelfTest, AnAlteredReferenceWithAGoodSignatureIsSeven) {
  const Result<std::vector<std::byte>> bytes = altered_artifact();
  ASSERT_TRUE(bytes) << bytes.error().diagnostics.front().message;
  folder.write("m.ingot", {reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  const Json verdicts = verify(7);
  EXPECT_EQ(verdicts["intact_and_signed"]["passed"], true);
  EXPECT_EQ(verdicts["compatible"]["passed"], true);
  EXPECT_EQ(verdicts["reference_vectors"]["established"], true);
  EXPECT_EQ(verdicts["reference_vectors"]["passed"], false);
  EXPECT_EQ(verdicts["reference_vectors"]["code"], "E_SELFTEST");
  const auto message = verdicts["reference_vectors"]["message"].get<std::string>();
  EXPECT_NE(message.find("output 'y' element 0"), std::string::npos) << message;
  EXPECT_NE(message.find("step 0 of sequence 0"), std::string::npos) << message;
  EXPECT_EQ(folder.tool({"verify", "m.ingot", "--pub", "a.pub"}).exit, 0) << "nobody asked";
  EXPECT_EQ(verify(6, {"--product", "other"})["reference_vectors"]["established"], false);
}

TEST_F(SelfTest, CountsOwnAndOutsideSequences) {
  write_case("one", -6);
  write_case("two", -6);
  ASSERT_EQ(compile_golden().exit, 0);
  const Json numbers = verify(0)["reference_vectors"];
  EXPECT_EQ(numbers["own"], 1);
  EXPECT_EQ(numbers["outside"], 2);
  EXPECT_EQ(numbers["steps"], 3);
  const ToolResult text = folder.tool({"verify", "m.ingot", "--pub", "a.pub", "--self-test"});
  EXPECT_NE(text.output.find("yes (1 own sequence, 2 outside, 3 steps)"), std::string::npos)
      << text.output;
}

TEST_F(SelfTest, AWrongOutsideReferenceIsSevenAndNamed) {
  write_case("one", -6);
  write_case("two", -7);
  ASSERT_EQ(compile_golden().exit, 0);
  const Json verdicts = verify(7);
  EXPECT_EQ(verdicts["intact_and_signed"]["passed"], true);
  const auto message = verdicts["reference_vectors"]["message"].get<std::string>();
  EXPECT_NE(message.find("case 'two'"), std::string::npos) << message;
}

}  // namespace
}  // namespace ingot::cli
