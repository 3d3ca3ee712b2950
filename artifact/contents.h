// What an artifact says, before anything has a place in a file.
//
// The caller fills this in; encode.h turns it into bytes. Nothing here is an offset into the file:
// the writer places names, tables, weights and code. Indices name an element of a neighbouring
// vector, sizes and offsets are bytes within the slot, buffer, arena or code blob that they belong
// to. Names are the user's own; the writer replaces characters that the format does not have
// (names.h). Everything that follows from other fields (spans, sums, largest stack, interface
// digest, padding) is computed by the writer and therefore absent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "artifact/digest.h"
#include "artifact/format.h"

namespace ingot::artifact {

// Bytes that somebody keeps alive: `keeper`, or the caller where it is empty. Copies are cheap.
struct Blob {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keeper;
};

[[nodiscard]] inline Blob borrow(std::span<const std::byte> bytes) { return {bytes, nullptr}; }

[[nodiscard]] inline Blob own(std::vector<std::byte> bytes) {
  auto keeper = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::span<const std::byte> view(*keeper);
  return {view, std::move(keeper)};
}

// ---------------------------------------------------------------------------------------------
// Identity

struct ModelSource {
  Digest onnx_sha256{};      // zero for a part without a model (a warp alone)
  Digest external_sha256{};  // external_files_digest() of the side files, zero if there are none
  Digest pipeline_sha256{};  // zero without a pipeline file
  std::uint32_t ir_version = 0;
  std::uint32_t opset = 0;  // of the default domain
  std::string producer;     // these three may be empty
  std::string graph_name;
  std::string domain;
  std::uint64_t model_version = 0;
  IngotPrecision precision = INGOT_PRECISION_F32;
  std::uint32_t frame_period_us = 0;  // 0: does not depend on the frame rate
  std::uint32_t float_policy = 0;     // bits of IngotFloatPolicy
};

// ---------------------------------------------------------------------------------------------
// Interface: what the caller of the loader sees

struct Camera {
  std::string name;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t stride = 0;
  std::uint32_t y_height = 0;
  std::uint32_t uv_height = 0;
  IngotPixelFormat pixel_format = INGOT_PIXEL_NV12;
  std::uint64_t uv_offset = 0;
  std::uint64_t buffer_nbytes = 0;  // whole allocation, at least uv_offset + stride * uv_height
  IngotSampleRange sample_range = INGOT_RANGE_FULL;
  IngotColourMatrix colour_matrix = INGOT_COLOUR_BT601;
  std::uint32_t max_age_us = 0;  // 0: not stated
};

struct Slot {
  std::string name;  // unique among all slots
  IngotDirection direction = INGOT_DIRECTION_INPUT;
  IngotDtype dtype = INGOT_DTYPE_F32;
  std::vector<std::uint32_t> shape;
  std::vector<std::uint64_t> strides;   // bytes; empty: dense
  std::optional<std::uint64_t> nbytes;  // none: the span of shape and strides
  std::optional<std::uint32_t> camera;
};

// A named part of a slot. The writer sorts them, sets OVERLAPS, and gives bytes of an output or
// state that no slice covers a slice `unused`, `unused.1`, ... of their own.
struct Slice {
  std::string name;  // unique within its slot
  std::uint32_t slot = 0;
  IngotDtype dtype = INGOT_DTYPE_F32;
  std::vector<std::uint32_t> shape;
  std::uint64_t offset = 0;
  std::optional<std::uint32_t> camera;
};

// One slot of one step of a reference sequence. Sequences and steps count from 0 without gaps; the
// writer sorts by (sequence, step, slot).
struct Reference {
  std::uint32_t sequence = 0;
  std::uint32_t step = 0;
  std::uint32_t slot = 0;
  IngotCompare compare = INGOT_COMPARE_NONE;  // NONE for inputs
  bool nan_matches = false;
  float atol = 0;
  float rtol = 0;
  std::uint32_t max_ulp = 0;
  float min_cosine = 0;
  IngotOrigin origin = INGOT_ORIGIN_OWN_DOUBLE;
  Blob data;  // exactly the slot's nbytes
};

struct Interface {
  std::vector<Camera> cameras;
  std::vector<Slot> slots;
  std::vector<Slice> slices;
  std::vector<Reference> references;
};

// ---------------------------------------------------------------------------------------------
// Variants: one target, one set of camera layouts, one call list

struct Arena {
  std::uint64_t nbytes = 0;  // the writer rounds up to 256
  std::uint32_t align_log2 = 8;
  IngotPlace place = INGOT_PLACE_HOST;
  IngotArenaRole role = INGOT_ARENA_FRAME;
};

struct Buffer {
  IngotBufferKind kind = INGOT_BUFFER_SCRATCH;
  IngotPlace place = INGOT_PLACE_HOST;
  std::uint16_t align_log2 = 8;
  std::uint64_t nbytes = 0;
  std::optional<std::uint32_t> arena;  // none for CONST and caller_memory
  std::uint64_t arena_offset = 0;
  std::optional<std::uint32_t> slot;  // INPUT, OUTPUT, STATE, NEXT_STATE
  std::optional<std::uint32_t> data;  // index into ArtifactContents::data: CONST, maybe STATE
  std::uint32_t first_call = 0;
  std::uint32_t last_call = 0;  // inclusive
  bool caller_memory = false;   // INPUT, OUTPUT
  bool in_place = false;        // STATE
};

struct View {
  std::uint32_t buffer = 0;
  IngotDtype dtype = INGOT_DTYPE_F32;
  std::uint64_t offset = 0;
  std::vector<std::uint32_t> shape;
  std::vector<std::uint64_t> strides;  // bytes; empty: dense
};

// immediate_param() and a view's extent are the two kinds.
struct Param {
  IngotArgKind kind = INGOT_ARG_VIEW;
  std::uint64_t nbytes = 0;
  IngotDtype dtype = INGOT_DTYPE_F32;
  IngotAccess access = INGOT_ACCESS_READ;
  std::uint8_t align_log2 = 0;
};

[[nodiscard]] inline Param immediate_param() {
  return {INGOT_ARG_IMMEDIATE, 8, INGOT_DTYPE_U64, INGOT_ACCESS_READ, 0};
}

struct Program {
  std::string name;
  IngotProgramKind kind = INGOT_PROGRAM_HOST;
  std::uint32_t code = 0;  // index into Variant::code (host) or Variant::device_code (device)
  std::uint64_t entry_offset = 0;
  std::uint64_t code_nbytes = 0;
  std::vector<Param> params;
  std::uint32_t stack_bytes = 0;
  std::string symbol;              // device programs
  std::uint32_t shared_bytes = 0;  // device programs
  std::uint32_t threads = 0;       // device programs
};

struct Arg {
  IngotArgKind kind = INGOT_ARG_VIEW;
  std::uint32_t view = 0;
  IngotAccess access = INGOT_ACCESS_READ;
  std::uint64_t immediate = 0;
};

struct Call {
  IngotCallKind kind = INGOT_CALL_PROGRAM;
  std::uint16_t queue = INGOT_QUEUE_HOST;
  std::uint32_t program = 0;  // PROGRAM only
  std::vector<Arg> args;
  std::array<std::uint32_t, 3> grid{};   // PROGRAM: at least 1 each; grid[0] is the outer range
  std::array<std::uint32_t, 3> block{};  // device programs
  std::uint64_t immediate = 0;           // FILL: the byte
  std::uint32_t source = 0;              // debug number, free
};

// A matrix that the loader checks before every frame.
struct Transform {
  // With a fill, a bad matrix skips the calls and fills their result; else the frame is refused.
  struct Fill {
    std::uint32_t buffer = 0;
    std::uint32_t first_call = 0;
    std::uint32_t last_call = 0;  // inclusive
    std::uint64_t offset = 0;
    std::uint8_t luma = 16;
    std::uint8_t chroma = 128;  // the writer stores 0 for the cabin kind
  };
  std::uint32_t slot = 0;
  std::optional<std::uint32_t> camera;
  std::uint64_t matrix_offset = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  IngotTransformKind kind = INGOT_TRANSFORM_ROAD;
  std::optional<Fill> fill;
};

struct Device {
  IngotDeviceKind kind = INGOT_DEVICE_NONE;
  std::uint16_t rule = 0;  // IngotDeviceRule
  std::uint32_t arch = 0;
  std::array<std::uint32_t, 2> driver_min{};
  std::uint64_t memory = 0;  // bytes
  std::string name;          // empty or a required name
};

struct Variant {
  std::string name;             // such as "x86-64-v3"; unique
  std::uint32_t interface = 0;  // index into ArtifactContents::interfaces
  IngotArch arch = INGOT_ARCH_X86_64;
  IngotOs os = INGOT_OS_LINUX;
  std::array<std::uint64_t, 4> cpu_features{};
  std::uint64_t xcr0 = 0;
  std::uint32_t sve_bits = 0;
  std::uint32_t max_page_size = 65536;
  std::uint32_t fp_control = INGOT_FP_X86_DEFAULT;
  std::uint32_t threads = 1;
  std::uint32_t priority = 0;  // lowest is tried first
  Device device;
  std::vector<Arena> arenas;
  std::vector<Buffer> buffers;
  std::vector<View> views;
  std::vector<Program> programs;
  std::vector<Call> calls;
  std::vector<Transform> transforms;
  std::vector<Blob> code;
  std::vector<Blob> device_code;
};

// ---------------------------------------------------------------------------------------------
// The whole

// An ignorable section besides the manifest: PROVENANCE, SBOM, RETARGET, DEBUG.
struct ExtraSection {
  IngotSectionType type = INGOT_SECTION_DEBUG;
  std::optional<std::uint32_t> variant;
  Blob bytes;
};

struct SourceFile {
  std::string name;  // as the user named it, without folders
  Digest sha256{};
  std::uint64_t nbytes = 0;
};

// Where a sequence of reference vectors comes from.
struct ReferenceSource {
  std::string camera;          // of its interface; empty without one
  std::uint32_t sequence = 0;  // Reference::sequence
  std::string name;            // of the case of another runtime; empty: made by the compiler
  std::optional<std::uint64_t> seed;
};

// Facts that only the manifest holds; the rest of it is made from the tables.
struct ManifestFacts {
  std::string tool_version;
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<SourceFile> sources;
  std::vector<std::string> licences;
  std::vector<std::pair<std::string, std::string>> metadata;  // of the model, as text
  std::vector<ReferenceSource> references;
};

struct ArtifactContents {
  std::string product;        // 1..32 characters of a-z 0-9 - . (product_name() makes one)
  std::string device_family;  // likewise, or empty for any
  IngotBuildClass build_class = INGOT_BUILD_CLASS_DEVELOPMENT;
  std::uint64_t security_counter = 0;
  std::array<std::uint32_t, 3> producer{};  // version of the tool
  std::vector<ModelSource> models;
  std::vector<Interface> interfaces;
  std::vector<Variant> variants;
  std::vector<Blob> data;  // weights, tables, initial states; equal ones are stored once
  std::vector<ExtraSection> extra_sections;
  ManifestFacts manifest;
};

}  // namespace ingot::artifact
