// A second writer of the format, only for tests: independent of artifact/, small, and open to every
// kind of wrong value. Fields are filled in, changed by the test, then sealed into bytes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "artifact/format.h"
#include "loader/ingot_loader.h"

namespace ingot::test {

using Bytes = std::vector<std::uint8_t>;

struct TestKey {
  std::array<std::uint8_t, 32> public_key{};
  std::array<std::uint8_t, 64> secret_key{};
};

TestKey make_key(std::uint8_t seed);

struct TestVariant {
  IngotVariantRecord record{};
  std::vector<IngotArenaRecord> arenas;
  std::vector<IngotBufferRecord> buffers;
  std::vector<IngotViewRecord> views;
  std::vector<IngotParamRecord> params;
  std::vector<IngotArgRecord> args;
  std::vector<IngotProgramRecord> programs;
  std::vector<IngotCallRecord> calls;
  std::vector<IngotTransformRecord> transforms;
  Bytes code;
};

struct TestSection {
  IngotSectionEntry entry{};
  Bytes bytes;
};

struct SignRequest {
  std::uint8_t key = 1;  // seed
  std::uint32_t purpose = INGOT_PURPOSE_RELEASE;
};

// The good artifact of the mutation table, without the device variant:
//   slots      0 frame (camera, u8), 1 packed (u8: matrix f32[3,3], desire f32[8]),
//              2 out (f32[1,16]: slices a[4], b[12]), 3 hidden (state f32[16])
//   buffers    0 frame, 1 packed, 2 out, 3 hidden, 4 next hidden, 5 weights, 6 pixels, 7 zeros, 8
//   copy calls      0 pixels = first 16 bytes of the frame as floats, 1 zeros = 0, 2 copy = pixels,
//              3 out = next = copy * weights + hidden, 4 returns its immediate, 5 barrier
// `zeros` and `copy` share bytes at different times.
struct ArtifactBuilder {
  ArtifactBuilder();

  IngotHeader header{};
  std::string strings;
  std::vector<IngotModelRecord> models;
  std::vector<IngotIoRecord> io;
  std::vector<IngotSliceRecord> slices;
  std::vector<IngotCameraRecord> cameras;
  std::vector<IngotRefRecord> refs;
  Bytes refdata;
  std::vector<TestVariant> variants;
  Bytes data;  // weights
  std::string manifest = "{}";
  std::vector<SignRequest> signatures{{1}, {2}};

  // Called with what is about to be written.
  std::function<void(std::vector<TestSection>&)> on_sections;       // before layout
  std::function<void(std::vector<TestSection>&)> on_section_table;  // after layout
  std::function<void(IngotHeader&)> on_header;                      // before its digest
  std::function<void(Bytes&)> on_content;                           // before the digests
  bool fix_interface = true;  // recompute the digests of variants and models
  bool fix_model = true;

  IngotName add_name(const std::string& name);
  Bytes seal() const;

  // A reference step whose output is what the calls compute.
  void add_reference_steps();
};

// A queue of two entries f32[8] that is kept as a ring of three: `append` writes `desire` of
// `packed` over the spare entry.
//   slots      0 to 2 as above (out: f32[1,8], the sum of all entries), 3 ring (state f32[3,8],
//              in place), 4 index of the spare entry (state i32[1])
//   calls      0 append, 1 returns its immediate, 2 barrier
// The vectors hold both states. The history begins with 1 and 2.
ArtifactBuilder ring_artifact();

// Byte offset of the signature block.
std::uint64_t content_size(const Bytes& file);

// Recomputes only the header digest.
void fix_header_digest(Bytes& file);

// One entry over this header; what seal() appends.
IngotSignatureEntry sign_header(const Bytes& file, const SignRequest& request);

// A detached signature file.
Bytes detached_file(const Bytes& file, const std::vector<SignRequest>& requests);

// The device of the mutation table: one release signature, class 3, product road-vision, vectors
// required, tolerance ceilings. Owns its keys.
struct TestPolicy {
  TestPolicy();
  std::array<ingot_key, 2> keys{};
  ingot_policy policy{};
};

// Opens with a policy and closes again; the number, and optionally the record.
ingot_status open_status(const Bytes& file, const ingot_policy& policy,
                         ingot_error* error = nullptr, const ingot_load_options* options = nullptr);

// x86-64 with AVX2, 4 KiB pages.
ingot_host usual_host();

constexpr bool kCanRun =
#if defined(__x86_64__)
    true;
#else
    false;
#endif

// Offsets of the programs in the code blob.
struct CodeOffsets {
  std::uint64_t pixels, mix, answer, ring, end;
};
const Bytes& test_code();
CodeOffsets test_code_offsets();

}  // namespace ingot::test
