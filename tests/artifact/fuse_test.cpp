#include "artifact/fuse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "artifact/encode.h"
#include "artifact/pack_inputs.h"
#include "sample_artifact.h"

namespace ingot::artifact {
namespace {

Slot slot(std::string name, IngotDirection direction, IngotDtype dtype,
          std::vector<std::uint32_t> shape) {
  Slot made;
  made.name = std::move(name);
  made.direction = direction;
  made.dtype = dtype;
  made.shape = std::move(shape);
  return made;
}

Buffer caller(IngotBufferKind kind, std::uint64_t nbytes, std::uint32_t slot) {
  Buffer made;
  made.kind = kind;
  made.nbytes = nbytes;
  made.slot = slot;
  made.caller_memory = true;
  return made;
}

// One call of one program that reads the first buffers and writes the last.
Variant one_call(std::vector<Buffer> buffers) {
  Variant variant;
  variant.name = "x86-64-v3";
  variant.threads = 4;
  variant.buffers = std::move(buffers);
  Program program;
  program.name = "p";
  program.code_nbytes = 1;
  Call call;
  call.grid = {1, 1, 1};
  for (std::uint32_t b = 0; b < variant.buffers.size(); ++b) {
    const bool last = b + 1 == variant.buffers.size();
    const IngotAccess access = last ? INGOT_ACCESS_WRITE : INGOT_ACCESS_READ;
    View view;
    view.buffer = b;
    view.dtype = INGOT_DTYPE_U8;
    view.shape = {static_cast<std::uint32_t>(variant.buffers[b].nbytes)};
    variant.views.push_back(view);
    program.params.push_back(Param{INGOT_ARG_VIEW, variant.buffers[b].nbytes, INGOT_DTYPE_U8,
                                   access, INGOT_MIN_ALIGN_LOG2});
    call.args.push_back(Arg{INGOT_ARG_VIEW, b, access, 0});
  }
  variant.programs = {program};
  variant.calls = {call};
  static const std::vector<std::byte> code(16);
  variant.code = {borrow(code)};
  return variant;
}

ArtifactContents part(std::vector<Slot> slots, Variant variant) {
  ArtifactContents contents;
  contents.product = "part";
  contents.models.emplace_back();
  contents.interfaces.emplace_back().slots = std::move(slots);
  contents.variants = {std::move(variant)};
  return contents;
}

// img u8[8], gain f32[2] -> y f32[2]
ArtifactContents model() {
  return part({slot("img", INGOT_DIRECTION_INPUT, INGOT_DTYPE_U8, {8}),
               slot("gain", INGOT_DIRECTION_INPUT, INGOT_DTYPE_F32, {2}),
               slot("y", INGOT_DIRECTION_OUTPUT, INGOT_DTYPE_F32, {2})},
              one_call({caller(INGOT_BUFFER_INPUT, 8, 0), caller(INGOT_BUFFER_INPUT, 8, 1),
                        caller(INGOT_BUFFER_OUTPUT, 8, 2)}));
}

// frame u8[48] -> picture u8[8]
ArtifactContents warp() {
  ArtifactContents contents =
      part({slot("frame", INGOT_DIRECTION_INPUT, INGOT_DTYPE_U8, {48}),
            slot("picture", INGOT_DIRECTION_OUTPUT, INGOT_DTYPE_U8, {8})},
           one_call({caller(INGOT_BUFFER_INPUT, 48, 0), caller(INGOT_BUFFER_OUTPUT, 8, 1)}));
  contents.interfaces[0].cameras = sample_contents().interfaces[0].cameras;
  contents.interfaces[0].slots[0].camera = 0;
  contents.variants[0].name = "camera/x86-64-v3";
  return contents;
}

std::set<std::string> codes(const ArtifactContents& model, const ArtifactContents& warp,
                            const FuseOptions& options = {}) {
  const auto fused = fuse(model, warp, options);
  std::set<std::string> found;
  if (fused) return found;
  EXPECT_EQ(fused.error().exit, ExitCode::Malformed);
  for (const Diagnostic& diagnostic : fused.error().diagnostics) found.insert(diagnostic.code);
  return found;
}

TEST(Fuse, ThePictureBecomesScratch) {
  const auto fused = fuse(model(), warp(), {});
  ASSERT_TRUE(fused) << to_line(fused.error().diagnostics.front());
  const ArtifactContents& contents = fused->contents;
  std::vector<std::string> names;
  for (const Slot& one : contents.interfaces[0].slots) names.push_back(one.name);
  EXPECT_EQ(names, (std::vector<std::string>{"frame", "gain", "y"}));
  const Variant& variant = contents.variants[0];
  EXPECT_EQ(variant.name, "camera/x86-64-v3");
  ASSERT_EQ(variant.calls.size(), 2U);
  const View& written = variant.views[variant.calls[0].args[1].view];
  const View& read = variant.views[variant.calls[1].args[0].view];
  EXPECT_EQ(written.buffer, read.buffer);
  const Buffer& picture = variant.buffers[written.buffer];
  EXPECT_EQ(picture.kind, INGOT_BUFFER_SCRATCH);
  EXPECT_EQ(picture.first_call, 0U);
  EXPECT_EQ(picture.last_call, 1U);
  EXPECT_EQ(variant.programs[variant.calls[0].program].code, 1U);  // of the warp
  EXPECT_EQ(variant.programs[variant.calls[1].program].code, 0U);
  EXPECT_TRUE(encode(contents));
}

// Frames of two cameras that differ in their size, each a part of one input.
ArtifactContents packed_warp() {
  ArtifactContents contents = warp();
  contents.interfaces.push_back(contents.interfaces[0]);
  Interface& other = contents.interfaces[1];
  other.cameras[0].name = "other";
  other.slots[0].shape = {480};
  contents.variants.push_back(contents.variants[0]);
  Variant& variant = contents.variants[1];
  variant.interface = 1;
  variant.name = "other/x86-64-v3";
  variant.buffers[0].nbytes = 480;
  variant.views[0].shape = {480};
  variant.programs[0].params[0].nbytes = 480;
  PackOptions options;
  options.frames = true;
  EXPECT_TRUE(pack_inputs(contents, options));
  return contents;
}

TEST(Fuse, PackedFramesDifferInSizeAsFramesDo) {
  auto fused = fuse(model(), packed_warp(), {});
  ASSERT_TRUE(fused) << to_line(fused.error().diagnostics.front());
  ASSERT_TRUE(pack_inputs(fused->contents, PackOptions{}));
  ASSERT_EQ(fused->contents.interfaces.size(), 2U);
  for (const Interface& interface : fused->contents.interfaces) {
    ASSERT_EQ(interface.slots[0].name, "host");
    ASSERT_EQ(interface.slices.size(), 2U);
    EXPECT_EQ(interface.slices[0].name, "frame");
    EXPECT_TRUE(interface.slices[0].camera);
    EXPECT_EQ(interface.slices[1].name, "gain");
  }
  EXPECT_NE(fused->contents.interfaces[0].slots[0].shape,
            fused->contents.interfaces[1].slots[0].shape);
  ArtifactContents same_name = model();
  same_name.interfaces[0].slots[1].name = "frame";
  EXPECT_TRUE(codes(same_name, packed_warp()).contains("fuse-names")) << "a part has that name";
  ArtifactContents other_parts = packed_warp();
  other_parts.interfaces[1].slices[0].name = "picture_frame";
  EXPECT_TRUE(codes(model(), other_parts).contains("fuse-interfaces"));
}

TEST(Fuse, EachPreconditionIsRefusedByName) {
  using Parts = std::pair<ArtifactContents, ArtifactContents>;
  const std::vector<std::pair<std::string, std::function<void(Parts&)>>> cases = {
      {"fuse-cameras",
       [](Parts& p) { p.first.interfaces[0].cameras = p.second.interfaces[0].cameras; }},
      {"fuse-cameras", [](Parts& p) { p.second.interfaces[0].cameras.clear(); }},
      {"fuse-targets", [](Parts& p) { p.first.variants[0].name = "x86-64-v4"; }},
      {"fuse-targets", [](Parts& p) { p.first.variants[0].cpu_features[0] = 1; }},
      {"fuse-family",
       [](Parts& p) {
         p.first.device_family = "a";
         p.second.device_family = "b";
       }},
      {"fuse-threads", [](Parts& p) { p.first.variants[0].threads = 2; }},
      {"fuse-float", [](Parts& p) { p.second.variants[0].fp_control = INGOT_FP_X86_FLUSH; }},
      {"fuse-device", [](Parts& p) { p.first.variants[0].device.kind = INGOT_DEVICE_CUDA; }},
      {"fuse-sections",
       [](Parts& p) { p.first.extra_sections.emplace_back().type = INGOT_SECTION_SBOM; }},
      {"fuse-interfaces",
       [](Parts& p) {
         p.first.interfaces.push_back(p.first.interfaces[0]);
         p.first.interfaces[1].slots.pop_back();
       }},
      {"fuse-outputs", [](Parts& p) { p.second.interfaces[0].slots[1].strides = {2}; }},
      {"fuse-outputs", [](Parts& p) { p.second.interfaces[0].slots[1].dtype = INGOT_DTYPE_I8; }},
      {"fuse-outputs", [](Parts& p) { p.second.interfaces[0].slots[1].shape = {4, 2}; }},
      {"fuse-outputs",
       [](Parts& p) {
         p.first.interfaces[0].slots[1] = slot("other", INGOT_DIRECTION_INPUT, INGOT_DTYPE_U8, {8});
       }},
      {"fuse-outputs", [](Parts& p) { p.second.interfaces[0].slots[1].name = "gain"; }},
      {"fuse-states",
       [](Parts& p) {
         p.second.interfaces[0].slots[1].name = "img";
         p.first.interfaces[0].slots[0].direction = INGOT_DIRECTION_STATE;
       }},
      {"fuse-names", [](Parts& p) { p.second.interfaces[0].slots[0].name = "gain"; }},
      {"fuse-names", [](Parts& p) { p.second.interfaces[0].slots[1].name = "y"; }},
  };
  EXPECT_TRUE(codes(model(), warp()).empty());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Parts parts{model(), warp()};
    cases[i].second(parts);
    EXPECT_TRUE(codes(parts.first, parts.second).contains(cases[i].first))
        << i << " " << cases[i].first;
  }
}

TEST(Fuse, ConnectionsAreGivenByName) {
  ArtifactContents two = model();
  two.interfaces[0].slots[1] = slot("other", INGOT_DIRECTION_INPUT, INGOT_DTYPE_U8, {8});
  FuseOptions options;
  options.connections = {{"other", "picture"}};
  const auto fused = fuse(two, warp(), options);
  ASSERT_TRUE(fused);
  EXPECT_EQ(fused->contents.interfaces[0].slots[1].name, "img");
  for (const auto& wrong : std::vector<std::pair<std::string, std::string>>{
           {"nothing", "picture"}, {"other", "nothing"}, {"y", "picture"}}) {
    options.connections = {wrong};
    EXPECT_FALSE(codes(two, warp(), options).empty()) << wrong.first;
  }
  options.connections = {{"img", "picture"}, {"other", "picture"}};
  EXPECT_FALSE(codes(two, warp(), options).empty());
}

}  // namespace
}  // namespace ingot::artifact
