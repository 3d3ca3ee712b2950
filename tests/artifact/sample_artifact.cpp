#include "sample_artifact.h"

#include <algorithm>
#include <cstring>

#include "artifact/digest.h"
#include "artifact/encode.h"
#include "base/check.h"

namespace ingot::artifact {

namespace {

Blob filled(std::size_t nbytes, int value) {
  return own(std::vector<std::byte>(nbytes, static_cast<std::byte>(value)));
}

Interface sample_interface() {
  Interface interface;
  Camera camera;
  camera.name = "front";
  camera.width = 6;
  camera.height = 4;
  camera.stride = 8;
  camera.y_height = 4;
  camera.uv_height = 2;
  camera.uv_offset = 32;
  camera.buffer_nbytes = 64;
  camera.max_age_us = 100000;
  interface.cameras.push_back(camera);

  Slot frame{"frame", INGOT_DIRECTION_INPUT, INGOT_DTYPE_U8, {48}, {}, {}, 0};
  Slot packed{"packed", INGOT_DIRECTION_INPUT, INGOT_DTYPE_U8, {512}, {}, {}, {}};
  Slot state{"memory", INGOT_DIRECTION_STATE, INGOT_DTYPE_F32, {4}, {}, {}, {}};
  Slot output{"out puts", INGOT_DIRECTION_OUTPUT, INGOT_DTYPE_F32, {1, 8}, {}, {}, {}};
  interface.slots = {frame, packed, state, output};
  interface.slices = {
      {"plan", 3, INGOT_DTYPE_F32, {1, 4}, 0, {}},
      {"tfm", 1, INGOT_DTYPE_F32, {3, 3}, 0, {}},
      {"desire", 1, INGOT_DTYPE_F32, {8}, 256, {}},
      {"pose", 3, INGOT_DTYPE_F32, {2}, 20, {}},
  };
  for (std::uint32_t step = 0; step < 2; ++step) {
    const std::size_t nbytes[] = {48, 512, 16, 32};
    for (std::uint32_t slot = 0; slot < 4; ++slot) {
      if (slot == 2) continue;
      Reference reference;
      reference.step = step;
      reference.slot = slot;
      reference.data = filled(nbytes[slot], 1);
      if (slot == 3) {
        reference.compare = INGOT_COMPARE_ABS_REL;
        reference.atol = 1e-3F;
        reference.rtol = 1e-3F;
      }
      interface.references.push_back(reference);
    }
  }
  return interface;
}

Variant sample_variant(IngotArch arch) {
  Variant variant;
  variant.name = arch == INGOT_ARCH_X86_64 ? "x86-64-v3" : "aarch64";
  variant.arch = arch;
  variant.cpu_features[0] =
      arch == INGOT_ARCH_X86_64 ? INGOT_X86_SSE42 | INGOT_X86_AVX2 : INGOT_AARCH64_ASIMD;
  variant.fp_control = arch == INGOT_ARCH_X86_64 ? INGOT_FP_X86_DEFAULT : INGOT_FP_AARCH64_DEFAULT;
  variant.arenas = {{1000, 8, INGOT_PLACE_HOST, INGOT_ARENA_FRAME},
                    {512, 8, INGOT_PLACE_HOST, INGOT_ARENA_STATE}};

  const auto buffer = [&](IngotBufferKind kind, std::uint64_t nbytes) -> Buffer& {
    Buffer& added = variant.buffers.emplace_back();
    added.kind = kind;
    added.nbytes = nbytes;
    added.last_call = 3;
    return added;
  };
  Buffer& frame = buffer(INGOT_BUFFER_INPUT, 48);
  frame.slot = 0;
  frame.caller_memory = true;
  Buffer& packed = buffer(INGOT_BUFFER_INPUT, 512);
  packed.slot = 1;
  packed.arena = 0;
  Buffer& state = buffer(INGOT_BUFFER_STATE, 16);
  state.slot = 2;
  state.arena = 1;
  state.data = 1;
  Buffer& next = buffer(INGOT_BUFFER_NEXT_STATE, 16);
  next.slot = 2;
  next.arena = 1;
  next.arena_offset = 256;
  Buffer& output = buffer(INGOT_BUFFER_OUTPUT, 32);
  output.slot = 3;
  output.arena = 0;
  output.arena_offset = 512;
  buffer(INGOT_BUFFER_CONST, 300).data = 0;
  Buffer& warped = buffer(INGOT_BUFFER_SCRATCH, 24);
  warped.arena = 0;
  warped.arena_offset = 768;

  variant.views = {{0, INGOT_DTYPE_U8, 0, {48}, {}},   {6, INGOT_DTYPE_U8, 0, {24}, {}},
                   {5, INGOT_DTYPE_F32, 0, {75}, {}},  {2, INGOT_DTYPE_F32, 0, {4}, {}},
                   {3, INGOT_DTYPE_F32, 0, {4}, {}},   {4, INGOT_DTYPE_F32, 0, {1, 8}, {}},
                   {1, INGOT_DTYPE_F32, 0, {3, 3}, {}}};

  Program warp;
  warp.name = "warp";
  warp.code_nbytes = 16;
  warp.stack_bytes = 64;
  warp.params = {{INGOT_ARG_VIEW, 48, INGOT_DTYPE_U8, INGOT_ACCESS_READ, 0},
                 {INGOT_ARG_VIEW, 24, INGOT_DTYPE_U8, INGOT_ACCESS_WRITE, 0},
                 immediate_param()};
  Program head;
  head.name = "head";
  head.entry_offset = 16;
  head.code_nbytes = 20;
  head.stack_bytes = 128;
  head.params = {{INGOT_ARG_VIEW, 300, INGOT_DTYPE_F32, INGOT_ACCESS_READ, 8},
                 {INGOT_ARG_VIEW, 32, INGOT_DTYPE_F32, INGOT_ACCESS_WRITE, 8}};
  variant.programs = {warp, head};
  variant.code = {filled(36, 0xC3)};

  const auto view = [](std::uint32_t index, IngotAccess access) {
    return Arg{INGOT_ARG_VIEW, index, access, 0};
  };
  Call warp_call;
  warp_call.program = 0;
  warp_call.grid = {1, 1, 1};
  warp_call.args = {view(0, INGOT_ACCESS_READ),
                    view(1, INGOT_ACCESS_WRITE),
                    {INGOT_ARG_IMMEDIATE, 0, INGOT_ACCESS_READ, 42}};
  Call copy;
  copy.kind = INGOT_CALL_COPY;
  copy.args = {view(3, INGOT_ACCESS_READ), view(4, INGOT_ACCESS_WRITE)};
  Call fill;
  fill.kind = INGOT_CALL_FILL;
  fill.args = {view(5, INGOT_ACCESS_WRITE)};
  fill.immediate = 7;
  Call head_call;
  head_call.program = 1;
  head_call.grid = {2, 1, 1};
  head_call.args = {view(2, INGOT_ACCESS_READ), view(5, INGOT_ACCESS_WRITE)};
  variant.calls = {warp_call, copy, fill, head_call};

  Transform transform;
  transform.slot = 1;
  transform.camera = 0;
  transform.width = 4;
  transform.height = 4;
  transform.fill = Transform::Fill{6, 0, 0, 0, 16, 128};
  variant.transforms = {transform};
  return variant;
}

template <typename T>
T read_at(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

ArtifactContents sample_contents() {
  ArtifactContents contents;
  contents.product = "road-vision";
  contents.security_counter = 7;
  contents.producer = {0, 1, 0};
  ModelSource model;
  model.onnx_sha256 = sha256("a model");
  model.ir_version = 8;
  model.opset = 17;
  model.producer = "some exporter 1.0";
  contents.models = {model};
  contents.interfaces = {sample_interface()};
  contents.variants = {sample_variant(INGOT_ARCH_X86_64), sample_variant(INGOT_ARCH_AARCH64)};
  contents.data = {filled(300, 3), filled(16, 4)};
  contents.manifest.tool_version = "0.1.0";
  contents.manifest.options = {{"--target", "x86-64-v3"}, {"--target", "aarch64"}};
  contents.manifest.sources = {{"model.onnx", sha256("a model"), 7}};
  return contents;
}

std::vector<std::byte> sample_artifact() {
  auto bytes = encode(sample_contents());
  INGOT_CHECK(bytes.has_value(), "the sample artifact must encode");
  return std::move(*bytes);
}

PrivateKey sample_key(std::uint8_t number) {
  std::array<std::uint8_t, 32> seed;
  seed.fill(number);
  return key_from_seed(seed);
}

std::vector<std::byte> to_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

IngotHeader header_of(std::span<const std::byte> artifact) {
  return read_at<IngotHeader>(artifact, 0);
}

void put_header(std::vector<std::byte>& artifact, IngotHeader header) {
  std::memcpy(artifact.data(), &header, sizeof header);
  const Digest digest = sha256(std::span<const std::byte>(artifact).first(0x1E0));
  std::ranges::copy(std::as_bytes(std::span(digest)), artifact.begin() + 0x1E0);
}

void reseal(std::vector<std::byte>& artifact) {
  IngotHeader header = header_of(artifact);
  const std::span<const std::byte> all(artifact);
  for (std::size_t block = 0; block < header.block_count; ++block) {
    const std::size_t offset = header.body_offset + block * 65536;
    const std::size_t size = std::min<std::size_t>(65536, header.content_size - offset);
    const Digest digest = sha256(all.subspan(offset, size));
    std::memcpy(artifact.data() + header.digest_table_offset + 32 * block, digest.data(), 32);
  }
  const Digest meta = sha256(all.subspan(512, header.body_offset - 512));
  std::ranges::copy(meta, header.meta_sha256);
  put_header(artifact, header);
}

IngotSectionEntry section_of(std::span<const std::byte> artifact, std::size_t row) {
  return read_at<IngotSectionEntry>(artifact, 512 + 64 * row);
}

void put_section(std::vector<std::byte>& artifact, std::size_t row,
                 const IngotSectionEntry& entry) {
  std::memcpy(artifact.data() + 512 + 64 * row, &entry, sizeof entry);
}

std::size_t row_of(std::span<const std::byte> artifact, IngotSectionType type) {
  const std::size_t count = header_of(artifact).section_count;
  for (std::size_t row = 0; row < count; ++row) {
    if (section_of(artifact, row).type == static_cast<std::uint32_t>(type)) return row;
  }
  return count;
}

}  // namespace ingot::artifact
