#include "cli/encode_program.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "artifact/encode.h"
#include "cli/json.h"

namespace ingot::cli {
namespace {

constexpr std::int64_t kElements = 8;
constexpr std::uint64_t kBytes = kElements * 4;

std::shared_ptr<const ScheduledKernel> kernel() {
  auto kernel = std::make_shared<ScheduledKernel>();
  kernel->name = "add";
  for (const char* name : {"x", "w", "y"}) {
    KernelParameter parameter;
    parameter.name = name;
    parameter.shape = {kElements};
    parameter.layout = Layout::row_major(1);
    parameter.access = std::string(name) == "y" ? Access::Write : Access::Read;
    kernel->parameters.push_back(parameter);
  }
  return kernel;
}

ProgramBuffer buffer(BufferKind kind, std::uint32_t io) {
  ProgramBuffer result;
  result.kind = kind;
  result.shape = {kElements};
  result.layout = Layout::row_major(1);
  result.size_bytes = kBytes;
  result.io = io;
  return result;
}

// y = x + w, and a state s that is copied to itself.
Program program(const std::shared_ptr<const std::vector<std::byte>>& weights) {
  Program program;
  program.name = "tiny";
  program.io = {{"x", BufferKind::Input, DType::F32, {kElements}, -1},
                {"s", BufferKind::State, DType::F32, {kElements}, -1},
                {"y", BufferKind::Output, DType::F32, {kElements}, -1}};
  program.buffers = {buffer(BufferKind::Input, 0), buffer(BufferKind::State, 1),
                     buffer(BufferKind::NextState, 1), buffer(BufferKind::Output, 2),
                     buffer(BufferKind::Constant, kNone)};
  program.buffers[1].arena = program.buffers[2].arena = 0;
  program.buffers[2].arena_offset = 256;
  program.buffers[4].constant = 0;
  program.constants = {{weights}};
  program.arenas = {{512, true}};
  program.kernels = {kernel()};
  ProgramCall call;
  call.kernel = 0;
  call.buffers = {0, 4, 3};
  call.grid = 2;
  call.name = "sum";
  call.flops = 8;
  ProgramCall copy;
  copy.kind = CallKind::Copy;
  copy.buffers = {1, 2};
  program.calls = {call, copy};
  return program;
}

CompiledVariant variant(const std::string& target, const std::string& camera,
                        const std::shared_ptr<const std::vector<std::byte>>& weights) {
  CompiledVariant result;
  result.camera = camera;
  for (const Target& known : known_targets()) {
    if (known.name == target) result.target = known;
  }
  result.program = program(weights);
  result.code.bytes.resize(32);
  result.code.entries = {{0, 32, 64}};
  return result;
}

ArtifactFacts facts() {
  ArtifactFacts facts;
  facts.product = "tiny";
  facts.models.emplace_back();
  facts.models.front().ir_version = 8;
  facts.models.front().opset = 13;
  facts.models.front().onnx_sha256[0] = 1;
  return facts;
}

std::shared_ptr<const std::vector<std::byte>> weights() {
  return std::make_shared<const std::vector<std::byte>>(kBytes);
}

TEST(EncodeProgram, OneVariantForEachTargetTheMostCapableFirst) {
  const auto shared = weights();
  Compiled compiled;
  for (const char* target : {"x86-64-v2", "x86-64-v4", "aarch64", "x86-64-v3"}) {
    compiled.variants.push_back(variant(target, "", shared));
  }
  const auto contents = encode_program(compiled, facts());
  ASSERT_TRUE(contents);
  ASSERT_EQ(contents->variants.size(), 4U);
  EXPECT_LT(contents->variants[1].priority, contents->variants[3].priority);
  EXPECT_LT(contents->variants[3].priority, contents->variants[0].priority);
  EXPECT_EQ(contents->interfaces.size(), 1U);
  EXPECT_EQ(contents->data.size(), 1U) << "weights are stored once";
  EXPECT_EQ(contents->variants[0].threads, kCpuWorkers);
  EXPECT_EQ(contents->variants[0].fp_control, INGOT_FP_X86_DEFAULT);
  EXPECT_EQ(contents->variants[2].fp_control, INGOT_FP_AARCH64_DEFAULT);
  EXPECT_TRUE(artifact::encode(*contents));
}

TEST(EncodeProgram, OnlyStrictArithmeticKeepsSubnormalNumbers) {
  for (const bool strict : {true, false}) {
    auto root = std::make_shared<ScheduledKernel>(*kernel());
    const ExprId x = root->pool.load_flat(0, DType::F32, root->pool.index(0));
    root->pool.scalar(ScalarOp::Sqrt, std::array<ExprId, 1>{x}, strict);
    Compiled compiled;
    for (const char* target : {"x86-64-v3", "aarch64"}) {
      compiled.variants.push_back(variant(target, "", weights()));
      compiled.variants.back().program.kernels = {root};
    }
    const auto contents = encode_program(compiled, facts());
    ASSERT_TRUE(contents);
    for (const artifact::Variant& made : contents->variants) {
      const bool x86 = made.arch == INGOT_ARCH_X86_64;
      EXPECT_EQ(made.fp_control, strict ? (x86 ? INGOT_FP_X86_DEFAULT : INGOT_FP_AARCH64_DEFAULT)
                                        : (x86 ? INGOT_FP_X86_FLUSH : INGOT_FP_AARCH64_FLUSH));
    }
  }
}

TEST(EncodeProgram, CamerasShareWeightsAndHaveTheirOwnInterface) {
  const auto shared = weights();
  Compiled compiled;
  ArtifactFacts described = facts();
  for (const std::uint32_t width : {1928U, 1344U}) {
    Camera camera = camera_layout(width, width == 1928 ? 1208 : 760);
    camera.name = "camera" + std::to_string(width);
    compiled.variants.push_back(variant("x86-64-v3", camera.name, shared));
    described.cameras.push_back(camera);
  }
  const auto contents = encode_program(compiled, described);
  ASSERT_TRUE(contents);
  EXPECT_EQ(contents->interfaces.size(), 2U);
  EXPECT_EQ(contents->data.size(), 1U);
  EXPECT_EQ(contents->variants[0].name, "camera1928/x86-64-v3");
  EXPECT_EQ(contents->variants[0].priority, contents->variants[1].priority);
  EXPECT_EQ(contents->interfaces[1].cameras.front().width, 1344U);
}

TEST(EncodeProgram, BuffersViewsAndParameters) {
  Compiled compiled;
  compiled.variants.push_back(variant("x86-64-v3", "", weights()));
  const auto contents = encode_program(compiled, facts());
  ASSERT_TRUE(contents);
  const artifact::Variant& made = contents->variants.front();
  EXPECT_TRUE(made.buffers[0].caller_memory);
  EXPECT_FALSE(made.buffers[1].in_place) << "it has a second buffer";
  EXPECT_FALSE(made.buffers[1].caller_memory);
  EXPECT_TRUE(made.buffers[4].data.has_value());
  ASSERT_EQ(made.programs.size(), 1U);
  EXPECT_EQ(made.programs[0].stack_bytes, 64U);
  ASSERT_EQ(made.programs[0].params.size(), 3U);
  EXPECT_EQ(made.programs[0].params[2].access, INGOT_ACCESS_WRITE);
  ASSERT_EQ(made.calls.size(), 2U);
  EXPECT_EQ(made.calls[0].grid[0], 2U);
  for (std::size_t i = 0; i < 3; ++i) {
    const artifact::View& view = made.views[made.calls[0].args[i].view];
    EXPECT_EQ(view.shape.front() * 4, made.programs[0].params[i].nbytes);
  }
  EXPECT_EQ(made.calls[1].args[1].access, INGOT_ACCESS_WRITE);
  EXPECT_EQ(made.arenas.front().role, INGOT_ARENA_STATE);
}

TEST(EncodeProgram, AStateWithoutASecondBufferIsWrittenInPlace) {
  Compiled compiled;
  compiled.variants.push_back(variant("x86-64-v3", "", weights()));
  Program& program = compiled.variants.front().program;
  program.buffers.erase(program.buffers.begin() + 2);
  program.calls = {program.calls.front()};
  program.calls.front().buffers = {0, 3, 2};
  const auto contents = encode_program(compiled, facts());
  ASSERT_TRUE(contents);
  EXPECT_TRUE(contents->variants.front().buffers[1].in_place);
}

TEST(EncodeProgram, AStateBeginsAsItsGraphSays) {
  Compiled compiled;
  compiled.variants.push_back(variant("x86-64-v3", "", weights()));
  Program& program = compiled.variants.front().program;
  program.io[1].initial = Tensor::splat({kElements}, Scalar::of_float(DType::F32, 3));
  const auto contents = encode_program(compiled, facts());
  ASSERT_TRUE(contents);
  const auto& buffers = contents->variants.front().buffers;
  ASSERT_TRUE(buffers[1].data.has_value());
  EXPECT_TRUE(
      std::ranges::equal(contents->data[*buffers[1].data].bytes, program.io[1].initial->bytes));
  EXPECT_FALSE(buffers[2].data.has_value()) << "the next state is computed";
}

TEST(EncodeProgram, ReferencesHaveEveryInputAndOutputOfEveryStep) {
  Compiled compiled;
  compiled.variants.push_back(variant("x86-64-v3", "", weights()));
  auto sequence = std::make_shared<ReferenceSequence>();
  ReferenceStep step;
  step.inputs = step.outputs = {std::vector<std::byte>(kBytes)};
  sequence->steps.assign(2, step);
  sequence->tolerances = {{false, 0.5F}};
  compiled.variants.front().references = {sequence};
  const auto contents = encode_program(compiled, facts());
  ASSERT_TRUE(contents);
  const auto& references = contents->interfaces.front().references;
  ASSERT_EQ(references.size(), 4U);
  EXPECT_EQ(references[0].compare, INGOT_COMPARE_NONE);
  EXPECT_EQ(references[1].compare, INGOT_COMPARE_ABS_REL);
  EXPECT_EQ(references[1].slot, 2U);
  EXPECT_EQ(references[1].atol, 0.5F);
  EXPECT_EQ(references[3].step, 1U);
  EXPECT_TRUE(artifact::encode(*contents));
}

TEST(EncodeProgram, EachValueOfAReferenceHasItsOrigin) {
  Compiled compiled;
  compiled.variants.push_back(variant("x86-64-v3", "", weights()));
  auto own = std::make_shared<ReferenceSequence>();
  ReferenceStep step;
  step.inputs = step.outputs = {std::vector<std::byte>(kBytes)};
  own->seed = 42;
  own->steps = {step};
  own->tolerances = {{true, 0}};
  auto outside = std::make_shared<ReferenceSequence>(*own);
  outside->name = "case";
  outside->seed.reset();
  outside->steps.push_back(step);
  outside->steps[1].is_outside = {true};
  outside->steps[1].next_states = {std::vector<std::byte>(kBytes)};
  outside->state_tolerances = {{false, 0.5F}};
  compiled.variants.front().references = {own, outside};
  const auto contents = encode_program(compiled, facts());
  ASSERT_TRUE(contents);
  const auto& references = contents->interfaces.front().references;
  ASSERT_EQ(references.size(), 7U);
  EXPECT_EQ(references[1].origin, INGOT_ORIGIN_OWN_DOUBLE);
  EXPECT_EQ(references[3].origin, INGOT_ORIGIN_OWN_DOUBLE) << "an output that nobody else gave";
  EXPECT_EQ(references[3].sequence, 1U);
  EXPECT_EQ(references[5].slot, 1U) << "the state";
  EXPECT_EQ(references[5].origin, INGOT_ORIGIN_ONNX_RUNTIME);
  EXPECT_EQ(references[6].origin, INGOT_ORIGIN_ONNX_RUNTIME);
  ASSERT_EQ(contents->manifest.references.size(), 2U);
  EXPECT_EQ(contents->manifest.references[0].seed, 42U);
  EXPECT_EQ(contents->manifest.references[1].name, "case");
  EXPECT_TRUE(artifact::encode(*contents));
}

TEST(EncodeProgram, SlicesOfAnOutputAreBytes) {
  Compiled compiled;
  compiled.variants.push_back(variant("x86-64-v3", "", weights()));
  ArtifactFacts described = facts();
  described.slices = {{"y", {{"plan", 0, 3}, {"rest", 3, 8}}}, {"absent", {{"a", 0, 1}}}};
  const auto contents = encode_program(compiled, described);
  ASSERT_TRUE(contents);
  const auto& slices = contents->interfaces.front().slices;
  ASSERT_EQ(slices.size(), 2U);
  EXPECT_EQ(slices[1].offset, 12U);
  EXPECT_EQ(slices[1].shape, std::vector<std::uint32_t>{5});
}

TEST(EncodeProgram, EachRowOfAnOutputHasItsOwnSlices) {
  Compiled compiled;
  compiled.variants.push_back(variant("x86-64-v3", "", weights()));
  compiled.variants.front().program.io[2].shape = {2, kElements / 2};
  ArtifactFacts described = facts();
  described.slices = {{"y", {{"plan", 0, 3}, {"rest", 3, 4}}}};
  const auto contents = encode_program(compiled, described);
  ASSERT_TRUE(contents);
  const auto& slices = contents->interfaces.front().slices;
  ASSERT_EQ(slices.size(), 4U);
  EXPECT_EQ(slices[0].name, "plan.0");
  EXPECT_EQ(slices[3].name, "rest.1");
  EXPECT_EQ(slices[3].offset, 28U);
  EXPECT_EQ(slices[3].shape, std::vector<std::uint32_t>{1});
  EXPECT_TRUE(artifact::encode(*contents)) << "nothing is left over";
}

TEST(EncodeProgram, ContradictionsAreDefects) {
  Compiled compiled;
  compiled.variants.push_back(variant("x86-64-v3", "nowhere", weights()));
  EXPECT_EQ(encode_program(compiled, facts()).error().exit, ExitCode::Internal);
  compiled.variants.front().camera.clear();
  compiled.variants.front().code.entries.clear();
  EXPECT_EQ(encode_program(compiled, facts()).error().exit, ExitCode::Internal);
}

TEST(EncodeProgram, CostsOfCallsAreJson) {
  const Result<Json> json = parse_json(call_costs_text(program(weights())), "costs");
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["calls"][0]["name"], "sum");
  EXPECT_EQ((*json)["calls"][0]["operations"], 8);
}

}  // namespace
}  // namespace ingot::cli
