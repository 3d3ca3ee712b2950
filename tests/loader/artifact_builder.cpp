#include "artifact_builder.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>

// Position-independent programs, assembled into read-only data and copied from there.
#if defined(__x86_64__)
__asm__(R"(
  .pushsection .rodata
  .balign 16
  .globl ingot_test_code, ingot_test_code_mix, ingot_test_code_answer, ingot_test_code_ring, ingot_test_code_end
ingot_test_code:
  mov (%rdi), %rax
  mov 8(%rdi), %r9
  xor %ecx, %ecx
1:
  movzbl (%rax,%rcx), %edx
  cvtsi2ss %edx, %xmm0
  movss %xmm0, (%r9,%rcx,4)
  inc %ecx
  cmp $16, %ecx
  jb 1b
  xor %eax, %eax
  ret
  .balign 16
ingot_test_code_mix:
  mov (%rdi), %rax
  mov 8(%rdi), %r9
  mov 16(%rdi), %r10
  mov 24(%rdi), %r11
  mov 32(%rdi), %rdi
  xor %ecx, %ecx
1:
  movss (%rax,%rcx,4), %xmm0
  mulss (%r9,%rcx,4), %xmm0
  addss (%r10,%rcx,4), %xmm0
  movss %xmm0, (%r11,%rcx,4)
  movss %xmm0, (%rdi,%rcx,4)
  inc %ecx
  cmp $16, %ecx
  jb 1b
  xor %eax, %eax
  ret
  .balign 16
ingot_test_code_answer:
  mov (%rsi), %eax
  ret
  .balign 16
ingot_test_code_ring:
  mov (%rdi), %rax
  mov 8(%rdi), %r9
  mov 16(%rdi), %r10
  mov 24(%rdi), %r11
  mov 32(%rdi), %rdi
  mov (%r10), %edx
  lea 1(%rdx), %ecx
  cmp $3, %ecx
  jb 1f
  xor %ecx, %ecx
1:
  mov %ecx, (%r11)
  shl $5, %rdx
  add %r9, %rdx
  xor %ecx, %ecx
2:
  movss (%rax,%rcx,4), %xmm0
  movss %xmm0, (%rdx,%rcx,4)
  movss (%r9,%rcx,4), %xmm0
  addss 32(%r9,%rcx,4), %xmm0
  addss 64(%r9,%rcx,4), %xmm0
  movss %xmm0, (%rdi,%rcx,4)
  inc %ecx
  cmp $8, %ecx
  jb 2b
  xor %eax, %eax
  ret
  .balign 16
ingot_test_code_end:
  .popsection
)");
extern "C" const std::uint8_t ingot_test_code[];
extern "C" const std::uint8_t ingot_test_code_mix[];
extern "C" const std::uint8_t ingot_test_code_answer[];
extern "C" const std::uint8_t ingot_test_code_ring[];
extern "C" const std::uint8_t ingot_test_code_end[];
#endif

namespace ingot::test {

namespace {

constexpr std::uint32_t kNone = INGOT_NO_INDEX;
constexpr std::uint64_t kF32x16 = 64;

std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

Bytes sha256(const void* data, std::size_t size) {
  Bytes digest(32);
  crypto_hash_sha256(digest.data(), static_cast<const std::uint8_t*>(data), size);
  return digest;
}

void append_bytes(Bytes& to, const void* from, std::size_t size) {
  const std::size_t at = to.size();
  to.resize(at + size);
  if (size > 0) std::memcpy(to.data() + at, from, size);
}

template <typename T>
void append(Bytes& to, const T& value) {
  append_bytes(to, &value, sizeof(T));
}

template <typename Record>
Bytes bytes_of(const std::vector<Record>& records) {
  Bytes result;
  for (const Record& record : records) append(result, record);
  return result;
}

Bytes tagged(const char* tag) {
  Bytes result(32);
  std::memcpy(result.data(), tag, std::strlen(tag));
  return result;
}

template <typename Record>
void add_named(Bytes& to, const std::string& strings, const std::vector<Record>& records) {
  append(to, static_cast<std::uint32_t>(records.size()));
  for (const Record& record : records) {
    append(to, record.name.length);
    const bool placed = record.name.offset <= strings.size() &&
                        record.name.length <= strings.size() - record.name.offset;
    if (placed) {
      const std::string name = strings.substr(record.name.offset, record.name.length);
      append_bytes(to, name.data(), name.size());
    }
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&record);
    append_bytes(to, bytes + sizeof(IngotName), sizeof(Record) - sizeof(IngotName));
  }
}

void copy_digest(std::uint8_t (&to)[32], const Bytes& digest) {
  std::copy(digest.begin(), digest.end(), to);
}

IngotViewRecord view(std::uint32_t buffer, std::uint16_t dtype, std::uint64_t offset,
                     std::vector<std::uint32_t> shape, std::uint64_t element) {
  IngotViewRecord v{};
  v.buffer = buffer;
  v.dtype = dtype;
  v.rank = static_cast<std::uint8_t>(shape.size());
  v.offset = offset;
  std::uint64_t stride = element;
  for (std::size_t i = shape.size(); i-- > 0;) {
    v.shape[i] = shape[i];
    v.strides[i] = stride;
    stride *= shape[i];
  }
  v.nbytes = stride;
  return v;
}

IngotParamRecord param(std::uint64_t nbytes, std::uint16_t dtype, std::uint8_t access) {
  IngotParamRecord p{};
  p.nbytes = nbytes;
  p.dtype = dtype;
  p.access = access;
  p.align_log2 = 2;
  return p;
}

IngotArgRecord arg(std::uint32_t view_index, std::uint8_t access) {
  IngotArgRecord a{};
  a.view = view_index;
  a.access = access;
  return a;
}

IngotBufferRecord buffer(std::uint32_t id, std::uint8_t kind, std::uint64_t nbytes,
                         std::uint32_t arena, std::uint64_t offset, std::uint32_t slot,
                         std::uint32_t first, std::uint32_t last) {
  IngotBufferRecord b{};
  b.id = id;
  b.kind = kind;
  b.align_log2 = 8;
  b.nbytes = nbytes;
  b.arena = arena;
  b.arena_offset = offset;
  b.io = slot;
  b.init_section = kNone;
  b.first_call = first;
  b.last_call = last;
  return b;
}

IngotCallRecord call(std::uint16_t kind, std::uint32_t program, std::uint32_t arg_first,
                     std::uint32_t arg_count) {
  IngotCallRecord c{};
  c.kind = kind;
  c.program = program;
  c.arg_first = arg_first;
  c.arg_count = arg_count;
  if (kind == INGOT_CALL_PROGRAM) c.grid[0] = c.grid[1] = c.grid[2] = 1;
  return c;
}

TestVariant make_variant(ArtifactBuilder& builder, const std::string& name, std::uint16_t arch) {
  TestVariant v;
  IngotVariantRecord& r = v.record;
  r.name = builder.add_name(name);
  r.arch = arch;
  r.endian = 1;
  r.os = INGOT_OS_LINUX;
  r.call_abi = 1;
  const bool x86 = arch == INGOT_ARCH_X86_64;
  r.cpu_features[0] = x86 ? std::uint64_t{INGOT_X86_SSE42} : std::uint64_t{INGOT_AARCH64_ASIMD};
  r.xcr0 = x86 ? 3 : 0;
  r.max_page_size = 4096;
  r.fp_control = x86 ? INGOT_FP_X86_DEFAULT : INGOT_FP_AARCH64_DEFAULT;
  r.threads = 1;
  r.host_arena_bytes = 2048;
  r.stack_bytes = 1024;

  IngotArenaRecord frame{};
  frame.nbytes = 1536;
  frame.align_log2 = 12;
  frame.role = INGOT_ARENA_FRAME;
  IngotArenaRecord state = frame;
  state.nbytes = 512;
  state.role = INGOT_ARENA_STATE;
  v.arenas = {frame, state};

  v.buffers = {buffer(0, INGOT_BUFFER_INPUT, 3072, kNone, 0, 0, 0, 5),
               buffer(1, INGOT_BUFFER_INPUT, 512, 0, 0, 1, 0, 5),
               buffer(2, INGOT_BUFFER_OUTPUT, kF32x16, 0, 512, 2, 0, 5),
               buffer(3, INGOT_BUFFER_STATE, kF32x16, 1, 0, 3, 0, 5),
               buffer(4, INGOT_BUFFER_NEXT_STATE, kF32x16, 1, 256, 3, 0, 5),
               buffer(5, INGOT_BUFFER_CONST, kF32x16, kNone, 0, kNone, 0, 5),
               buffer(6, INGOT_BUFFER_SCRATCH, kF32x16, 0, 768, kNone, 0, 2),
               buffer(7, INGOT_BUFFER_SCRATCH, kF32x16, 0, 1024, kNone, 1, 1),
               buffer(8, INGOT_BUFFER_SCRATCH, kF32x16, 0, 1024, kNone, 2, 3)};
  v.buffers[0].flags = INGOT_BUFFER_CALLER_MEMORY;

  v.views = {view(0, INGOT_DTYPE_U8, 0, {16}, 1),     view(6, INGOT_DTYPE_F32, 0, {16}, 4),
             view(7, INGOT_DTYPE_F32, 0, {16}, 4),    view(8, INGOT_DTYPE_F32, 0, {16}, 4),
             view(5, INGOT_DTYPE_F32, 0, {16}, 4),    view(3, INGOT_DTYPE_F32, 0, {16}, 4),
             view(2, INGOT_DTYPE_F32, 0, {1, 16}, 4), view(4, INGOT_DTYPE_F32, 0, {16}, 4),
             view(1, INGOT_DTYPE_F32, 256, {8}, 4)};

  IngotParamRecord immediate{};
  immediate.nbytes = 8;
  immediate.dtype = INGOT_DTYPE_U64;
  immediate.access = INGOT_ACCESS_READ;
  immediate.kind = INGOT_ARG_IMMEDIATE;
  IngotParamRecord pixels = param(16, INGOT_DTYPE_U8, INGOT_ACCESS_READ);
  v.params = {pixels,
              param(kF32x16, INGOT_DTYPE_F32, INGOT_ACCESS_WRITE),
              param(kF32x16, INGOT_DTYPE_F32, INGOT_ACCESS_READ),
              param(kF32x16, INGOT_DTYPE_F32, INGOT_ACCESS_READ),
              param(kF32x16, INGOT_DTYPE_F32, INGOT_ACCESS_READ),
              param(kF32x16, INGOT_DTYPE_F32, INGOT_ACCESS_WRITE),
              param(kF32x16, INGOT_DTYPE_F32, INGOT_ACCESS_WRITE),
              param(32, INGOT_DTYPE_F32, INGOT_ACCESS_READ),
              immediate};

  const CodeOffsets at = test_code_offsets();
  const std::uint64_t entries[4] = {at.pixels, at.mix, at.answer, at.ring};
  const std::uint32_t param_first[4] = {0, 2, 7, 9};
  const char* const names[3] = {"pixels", "mix", "answer"};
  for (int i = 0; i < 3; ++i) {
    IngotProgramRecord p{};
    p.name = builder.add_name(names[i]);
    p.kind = INGOT_PROGRAM_HOST;
    p.param_first = param_first[i];
    p.param_count = static_cast<std::uint16_t>(param_first[i + 1] - param_first[i]);
    p.entry_offset = entries[i];
    p.code_nbytes = entries[i + 1] - entries[i];
    p.stack_bytes = 64;
    v.programs.push_back(p);
  }

  IngotArgRecord answer{};
  answer.view = kNone;
  answer.access = INGOT_ACCESS_READ;
  answer.kind = INGOT_ARG_IMMEDIATE;
  v.args = {arg(0, 1), arg(1, 2), arg(2, 2), arg(1, 1), arg(3, 2), arg(3, 1),
            arg(4, 1), arg(5, 1), arg(6, 2), arg(7, 2), arg(8, 1), answer};
  v.calls = {call(INGOT_CALL_PROGRAM, 0, 0, 2),  call(INGOT_CALL_FILL, kNone, 2, 1),
             call(INGOT_CALL_COPY, kNone, 3, 2), call(INGOT_CALL_PROGRAM, 1, 5, 5),
             call(INGOT_CALL_PROGRAM, 2, 10, 2), call(INGOT_CALL_BARRIER, kNone, 12, 0)};
  v.code = test_code();
  return v;
}

// Everything in the order of section types.
std::vector<TestSection> list_sections(const ArtifactBuilder& b) {
  std::vector<TestSection> sections;
  const auto add = [&](std::uint32_t type, std::uint16_t variant, Bytes bytes,
                       std::uint32_t entry_size) {
    if (bytes.empty()) return;
    TestSection section;
    section.entry.type = type;
    section.entry.variant = variant;
    if (type < INGOT_FIRST_IGNORABLE_SECTION) section.entry.flags |= INGOT_SECTION_REQUIRED;
    if (type == INGOT_SECTION_CODE) section.entry.flags |= INGOT_SECTION_EXEC;
    section.entry.entry_size = entry_size;
    if (entry_size > 0) {
      section.entry.entry_count = static_cast<std::uint32_t>(bytes.size() / entry_size);
    }
    section.bytes = std::move(bytes);
    sections.push_back(std::move(section));
  };
  constexpr std::uint16_t common = INGOT_VARIANT_COMMON;
  add(INGOT_SECTION_STRINGS, common, Bytes(b.strings.begin(), b.strings.end()), 0);
  add(INGOT_SECTION_MODEL, common, bytes_of(b.models), sizeof(IngotModelRecord));
  add(INGOT_SECTION_IO, common, bytes_of(b.io), sizeof(IngotIoRecord));
  add(INGOT_SECTION_SLICES, common, bytes_of(b.slices), sizeof(IngotSliceRecord));
  add(INGOT_SECTION_CAMERA, common, bytes_of(b.cameras), sizeof(IngotCameraRecord));
  std::vector<IngotVariantRecord> records;
  for (const TestVariant& v : b.variants) records.push_back(v.record);
  add(INGOT_SECTION_VARIANTS, common, bytes_of(records), sizeof(IngotVariantRecord));
  add(INGOT_SECTION_REFS, common, bytes_of(b.refs), sizeof(IngotRefRecord));
  add(INGOT_SECTION_REFDATA, common, b.refdata, 0);
  for (std::uint16_t n = 0; n < b.variants.size(); ++n) {
    const TestVariant& v = b.variants[n];
    add(INGOT_SECTION_ARENAS, n, bytes_of(v.arenas), sizeof(IngotArenaRecord));
    add(INGOT_SECTION_BUFFERS, n, bytes_of(v.buffers), sizeof(IngotBufferRecord));
    add(INGOT_SECTION_VIEWS, n, bytes_of(v.views), sizeof(IngotViewRecord));
    add(INGOT_SECTION_PARAMS, n, bytes_of(v.params), sizeof(IngotParamRecord));
    add(INGOT_SECTION_ARGS, n, bytes_of(v.args), sizeof(IngotArgRecord));
    add(INGOT_SECTION_PROGRAMS, n, bytes_of(v.programs), sizeof(IngotProgramRecord));
    add(INGOT_SECTION_CALLS, n, bytes_of(v.calls), sizeof(IngotCallRecord));
    add(INGOT_SECTION_CODE, n, v.code, 0);
    add(INGOT_SECTION_TRANSFORMS, n, bytes_of(v.transforms), sizeof(IngotTransformRecord));
  }
  add(INGOT_SECTION_DATA, common, b.data, 0);
  add(INGOT_SECTION_MANIFEST, common, Bytes(b.manifest.begin(), b.manifest.end()), 0);
  return sections;
}

std::uint32_t row_of(const std::vector<TestSection>& sections, std::uint32_t type,
                     std::uint16_t variant) {
  for (std::uint32_t i = 0; i < sections.size(); ++i) {
    if (sections[i].entry.type == type && sections[i].entry.variant == variant) return i;
  }
  return kNone;
}

// Rows that the test left at the "fill in" value get the section's index.
constexpr std::uint32_t kFillIn = 0xFFFFFF00u;

}  // namespace

TestKey make_key(std::uint8_t seed) {
  TestKey key;
  std::array<std::uint8_t, 32> bytes{};
  bytes.fill(seed);
  crypto_sign_seed_keypair(key.public_key.data(), key.secret_key.data(), bytes.data());
  return key;
}

const Bytes& test_code() {
#if defined(__x86_64__)
  static const Bytes code(ingot_test_code, ingot_test_code_end);
#else
  static const Bytes code(64);
#endif
  return code;
}

CodeOffsets test_code_offsets() {
#if defined(__x86_64__)
  return {0, static_cast<std::uint64_t>(ingot_test_code_mix - ingot_test_code),
          static_cast<std::uint64_t>(ingot_test_code_answer - ingot_test_code),
          static_cast<std::uint64_t>(ingot_test_code_ring - ingot_test_code),
          static_cast<std::uint64_t>(ingot_test_code_end - ingot_test_code)};
#else
  return {0, 16, 32, 48, 64};
#endif
}

IngotName ArtifactBuilder::add_name(const std::string& name) {
  const IngotName place{static_cast<std::uint32_t>(strings.size()),
                        static_cast<std::uint32_t>(name.size())};
  strings += name;
  strings += '\0';
  return place;
}

ArtifactBuilder::ArtifactBuilder() {
  std::memcpy(header.magic, INGOT_MAGIC, 8);
  header.version_major = 1;
  header.header_size = INGOT_HEADER_SIZE;
  header.section_table_offset = INGOT_HEADER_SIZE;
  header.section_entry_size = INGOT_SECTION_ENTRY_SIZE;
  header.block_size_log2 = INGOT_BLOCK_SIZE_LOG2;
  header.security_counter = 7;
  header.hash_algorithm = INGOT_HASH_SHA256;
  header.build_class = INGOT_BUILD_CLASS_RELEASE;
  header.alignment_log2 = INGOT_ALIGNMENT_LOG2;
  std::memcpy(header.product, "road-vision", 11);

  IngotModelRecord model{};
  std::memset(model.onnx_sha256, 0x11, 32);
  model.ir_version = 9;
  model.opset = 17;
  model.graph_name = add_name("main");
  model.precision = INGOT_PRECISION_F32;
  model.frame_period_us = 50000;
  models = {model};

  IngotCameraRecord camera{};
  camera.name = add_name("road");
  camera.width = 32;
  camera.height = 16;
  camera.stride = 64;
  camera.y_height = 32;
  camera.uv_height = 16;
  camera.pixel_format = INGOT_PIXEL_NV12;
  camera.planes = 2;
  camera.uv_offset = 2048;
  camera.copy_nbytes = 3072;
  camera.buffer_nbytes = 4096;
  camera.sample_range = INGOT_RANGE_FULL;
  camera.colour_matrix = INGOT_COLOUR_BT601;
  camera.max_age_us = 100000;
  cameras = {camera};

  IngotIoRecord frame{};
  frame.name = add_name("frame");
  frame.direction = INGOT_DIRECTION_INPUT;
  frame.rank = 1;
  frame.dtype = INGOT_DTYPE_U8;
  frame.nbytes = frame.logical_nbytes = 3072;
  frame.shape[0] = 3072;
  frame.strides[0] = 1;
  IngotIoRecord packed = frame;
  packed.name = add_name("packed");
  packed.camera = kNone;
  packed.nbytes = packed.logical_nbytes = 512;
  packed.shape[0] = 512;
  IngotIoRecord out{};
  out.name = add_name("out");
  out.direction = INGOT_DIRECTION_OUTPUT;
  out.rank = 2;
  out.dtype = INGOT_DTYPE_F32;
  out.camera = kNone;
  out.nbytes = out.logical_nbytes = kF32x16;
  out.shape[0] = 1;
  out.shape[1] = 16;
  out.strides[0] = 64;
  out.strides[1] = 4;
  IngotIoRecord hidden = out;
  hidden.name = add_name("hidden");
  hidden.direction = INGOT_DIRECTION_STATE;
  hidden.rank = 1;
  hidden.shape[0] = 16;
  hidden.shape[1] = 0;
  hidden.strides[0] = 4;
  hidden.strides[1] = 0;
  io = {frame, packed, out, hidden};

  const auto slice = [&](const char* name, std::uint32_t slot, std::uint64_t offset,
                         std::vector<std::uint32_t> shape) {
    IngotSliceRecord s{};
    s.name = add_name(name);
    s.io = slot;
    s.dtype = INGOT_DTYPE_F32;
    s.rank = static_cast<std::uint8_t>(shape.size());
    s.offset = offset;
    s.nbytes = 4;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      s.shape[i] = shape[i];
      s.nbytes *= shape[i];
    }
    s.camera = kNone;
    return s;
  };
  slices = {slice("matrix", 1, 0, {3, 3}), slice("desire", 1, 256, {8}), slice("a", 2, 0, {4}),
            slice("b", 2, 16, {12})};

  data.resize(kF32x16);
  for (int i = 0; i < 16; ++i) {
    const float weight = 0.25f * static_cast<float>(i + 1);
    std::memcpy(data.data() + 4 * i, &weight, 4);
  }
  variants = {make_variant(*this, "x86-64", INGOT_ARCH_X86_64),
              make_variant(*this, "aarch64", INGOT_ARCH_AARCH64)};
  for (TestVariant& v : variants) {
    v.buffers[5].init_section = kFillIn;
    v.buffers[5].init_nbytes = kF32x16;
    for (IngotProgramRecord& p : v.programs) p.code_section = kFillIn;
  }
  header.variant_count = 2;
  header.max_host_arena = 2048;
  add_reference_steps();
}

void ArtifactBuilder::add_reference_steps() {
  refs.clear();
  refdata.clear();
  std::array<float, 16> state{};
  for (std::uint32_t step = 0; step < 2; ++step) {
    Bytes frame(3072);
    for (std::size_t i = 0; i < frame.size(); ++i) {
      frame[i] = static_cast<std::uint8_t>(i * 7 + step * 31);
    }
    Bytes packed(512);
    const float identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    std::memcpy(packed.data(), identity, sizeof identity);
    Bytes out(kF32x16);
    for (std::size_t i = 0; i < 16; ++i) {
      float weight = 0;
      std::memcpy(&weight, data.data() + 4 * i, 4);
      state[i] = static_cast<float>(frame[i]) * weight + state[i];
    }
    std::memcpy(out.data(), state.data(), kF32x16);
    const Bytes* const contents[3] = {&frame, &packed, &out};
    for (std::uint32_t slot = 0; slot < 3; ++slot) {
      refdata.resize(align_up(refdata.size(), 256));
      IngotRefRecord r{};
      r.step = step;
      r.io = slot;
      r.role = io[slot].direction;
      r.offset = refdata.size();
      r.nbytes = contents[slot]->size();
      r.origin = INGOT_ORIGIN_OWN_DOUBLE;
      if (slot == 2) {
        r.compare = INGOT_COMPARE_ABS_REL;
        r.atol = 0.01f;
        r.rtol = 0.001f;
      }
      refs.push_back(r);
      append_bytes(refdata, contents[slot]->data(), contents[slot]->size());
    }
  }
}

ArtifactBuilder ring_artifact() {
  constexpr std::uint64_t kEntry = 32;  // f32[8]
  ArtifactBuilder b;
  IngotIoRecord& out = b.io[2];
  out.nbytes = out.logical_nbytes = kEntry;
  out.shape[1] = 8;
  out.strides[0] = kEntry;
  b.slices.resize(2);  // those of `packed`
  IngotIoRecord& ring = b.io[3];
  ring.name = b.add_name("ring");
  ring.rank = 2;
  ring.nbytes = ring.logical_nbytes = 3 * kEntry;
  ring.shape[0] = 3;
  ring.shape[1] = 8;
  ring.strides[0] = kEntry;
  ring.strides[1] = 4;
  IngotIoRecord index = ring;
  index.name = b.add_name("index");
  index.dtype = INGOT_DTYPE_I32;
  index.rank = 1;
  index.nbytes = index.logical_nbytes = 4;
  index.shape[0] = 1;
  index.shape[1] = 0;
  index.strides[0] = 4;
  index.strides[1] = 0;
  b.io.push_back(index);
  // The history begins with the numbers 1 and 2 in its first elements.
  b.data.assign(3 * kEntry, 0);
  for (const float first : {1.0f, 2.0f}) {
    std::memcpy(&b.data[static_cast<std::size_t>(first) * kEntry], &first, sizeof first);
  }

  b.header.max_host_arena = 1536 + 768;
  const CodeOffsets at = test_code_offsets();
  for (TestVariant& v : b.variants) {
    v.buffers = {buffer(0, INGOT_BUFFER_INPUT, 3072, kNone, 0, 0, 0, 2),
                 buffer(1, INGOT_BUFFER_INPUT, 512, 0, 0, 1, 0, 2),
                 buffer(2, INGOT_BUFFER_OUTPUT, kEntry, 0, 512, 2, 0, 2),
                 buffer(3, INGOT_BUFFER_STATE, 3 * kEntry, 1, 0, 3, 0, 2),
                 buffer(4, INGOT_BUFFER_STATE, 4, 1, 256, 4, 0, 2),
                 buffer(5, INGOT_BUFFER_NEXT_STATE, 4, 1, 512, 4, 0, 2)};
    v.arenas[1].nbytes = 768;
    v.record.host_arena_bytes = 1536 + 768;
    v.buffers[0].flags = INGOT_BUFFER_CALLER_MEMORY;
    v.buffers[3].flags = INGOT_BUFFER_IN_PLACE;
    v.buffers[3].init_section = kFillIn;
    v.buffers[3].init_nbytes = 3 * kEntry;
    v.views = {view(1, INGOT_DTYPE_F32, 256, {8}, 4), view(3, INGOT_DTYPE_F32, 0, {3, 8}, 4),
               view(4, INGOT_DTYPE_I32, 0, {1}, 4), view(5, INGOT_DTYPE_I32, 0, {1}, 4),
               view(2, INGOT_DTYPE_F32, 0, {1, 8}, 4)};
    const IngotParamRecord immediate = v.params.back();
    v.params = {param(kEntry, INGOT_DTYPE_F32, INGOT_ACCESS_READ),
                param(3 * kEntry, INGOT_DTYPE_F32, INGOT_ACCESS_READ | INGOT_ACCESS_WRITE),
                param(4, INGOT_DTYPE_I32, INGOT_ACCESS_READ),
                param(4, INGOT_DTYPE_I32, INGOT_ACCESS_WRITE),
                param(kEntry, INGOT_DTYPE_F32, INGOT_ACCESS_WRITE),
                param(kEntry, INGOT_DTYPE_F32, INGOT_ACCESS_READ),
                immediate};
    IngotProgramRecord append = v.programs[0];
    append.name = b.add_name("append");
    append.param_count = 5;
    append.entry_offset = at.ring;
    append.code_nbytes = at.end - at.ring;
    IngotProgramRecord answer = v.programs[2];
    answer.param_first = 5;
    v.programs = {append, answer};
    const IngotArgRecord result = v.args.back();
    v.args = {arg(0, 1), arg(1, 3), arg(2, 1), arg(3, 2), arg(4, 2), arg(0, 1), result};
    v.calls = {call(INGOT_CALL_PROGRAM, 0, 0, 5), call(INGOT_CALL_PROGRAM, 1, 5, 2),
               call(INGOT_CALL_BARRIER, kNone, 7, 0)};
  }

  b.refs.clear();
  b.refdata.clear();
  Bytes entries = b.data;
  for (std::uint32_t step = 0; step < 5; ++step) {  // once around, and on
    const Bytes frame(3072);
    Bytes packed(512);
    Bytes sums(kEntry);
    for (std::size_t i = 0; i < 8; ++i) {
      const float value = static_cast<float>(100 * step + i);
      std::memcpy(&packed[256 + 4 * i], &value, 4);
      std::memcpy(&entries[step % 3 * kEntry + 4 * i], &value, 4);
      float all[3];
      for (std::size_t n = 0; n < 3; ++n) std::memcpy(&all[n], &entries[n * kEntry + 4 * i], 4);
      const float sum = all[0] + all[1] + all[2];
      std::memcpy(&sums[4 * i], &sum, 4);
    }
    const std::uint8_t next = static_cast<std::uint8_t>((step + 1) % 3);
    const Bytes index_after = {next, 0, 0, 0};
    const Bytes* const contents[5] = {&frame, &packed, &sums, &entries, &index_after};
    for (std::uint32_t slot = 0; slot < 5; ++slot) {
      b.refdata.resize(align_up(b.refdata.size(), 256));
      IngotRefRecord r{};
      r.step = step;
      r.io = slot;
      r.role = b.io[slot].direction;
      r.offset = b.refdata.size();
      r.nbytes = contents[slot]->size();
      r.origin = INGOT_ORIGIN_OWN_DOUBLE;
      if (slot >= 2) r.compare = INGOT_COMPARE_EXACT;
      b.refs.push_back(r);
      append_bytes(b.refdata, contents[slot]->data(), contents[slot]->size());
    }
  }
  return b;
}

Bytes ArtifactBuilder::seal() const {
  ArtifactBuilder b = *this;
  if (b.fix_interface) {
    Bytes text = tagged(INGOT_TAG_INTERFACE);
    add_named(text, b.strings, b.io);
    add_named(text, b.strings, b.slices);
    add_named(text, b.strings, b.cameras);
    for (TestVariant& v : b.variants) {
      copy_digest(v.record.interface_sha256, sha256(text.data(), text.size()));
    }
  }
  if (b.fix_model) {
    Bytes text = tagged(INGOT_TAG_MODEL);
    for (const IngotModelRecord& model : b.models) {
      append_bytes(text, model.onnx_sha256, 32);
      append_bytes(text, model.external_sha256, 32);
      append_bytes(text, model.pipeline_sha256, 32);
    }
    copy_digest(b.header.model_sha256, sha256(text.data(), text.size()));
  }
  // Rows of the section table do not depend on contents, so list once for the rows.
  std::vector<TestSection> sections = list_sections(b);
  for (std::uint16_t n = 0; n < b.variants.size(); ++n) {
    for (IngotBufferRecord& record : b.variants[n].buffers) {
      if (record.init_section == kFillIn) {
        record.init_section = row_of(sections, INGOT_SECTION_DATA, INGOT_VARIANT_COMMON);
      }
    }
    for (IngotProgramRecord& record : b.variants[n].programs) {
      if (record.code_section == kFillIn) {
        record.code_section = row_of(sections, INGOT_SECTION_CODE, n);
      }
    }
  }
  sections = list_sections(b);
  if (on_sections) on_sections(sections);

  std::uint64_t end = 0;
  const auto unit = [](const TestSection& s) -> std::uint64_t {
    return (s.entry.flags & (INGOT_SECTION_EXEC | INGOT_SECTION_PAGE)) != 0 ? 65536 : 256;
  };
  for (std::size_t i = 0; i < sections.size(); ++i) {
    IngotSectionEntry& entry = sections[i].entry;
    entry.offset = end;
    entry.size = sections[i].bytes.size();
    end = align_up(end + entry.size, unit(sections[i]));
    if (i + 1 < sections.size()) end = align_up(end, unit(sections[i + 1]));
    entry.span = end - entry.offset;
  }
  IngotHeader& h = b.header;
  h.section_count = static_cast<std::uint32_t>(sections.size());
  h.block_count = static_cast<std::uint32_t>((end + 65535) / 65536);
  h.digest_table_offset = align_up(512 + 64 * sections.size(), 256);
  h.body_offset = align_up(h.digest_table_offset + 32 * std::uint64_t{h.block_count}, 65536);
  h.content_size = h.body_offset + end;
  Bytes file(h.content_size);
  for (TestSection& s : sections) {
    s.entry.offset += h.body_offset;
    std::copy(s.bytes.begin(), s.bytes.end(),
              file.begin() + static_cast<std::ptrdiff_t>(s.entry.offset));
  }
  if (on_section_table) on_section_table(sections);
  for (std::size_t i = 0; i < sections.size(); ++i) {
    std::memcpy(file.data() + 512 + 64 * i, &sections[i].entry, 64);
  }
  if (on_content) on_content(file);
  for (std::uint64_t n = 0; n < h.block_count; ++n) {
    const std::uint64_t offset = h.body_offset + n * 65536;
    const std::uint64_t size = std::min<std::uint64_t>(65536, h.content_size - offset);
    const Bytes digest = sha256(file.data() + offset, size);
    std::copy(digest.begin(), digest.end(),
              file.begin() + static_cast<std::ptrdiff_t>(h.digest_table_offset + 32 * n));
  }
  copy_digest(h.meta_sha256, sha256(file.data() + 512, h.body_offset - 512));
  if (on_header) on_header(h);
  std::memcpy(file.data(), &h, sizeof h);
  fix_header_digest(file);

  Bytes entries;
  for (const SignRequest& request : signatures) append(entries, sign_header(file, request));
  IngotSignatureHeader block{};
  std::memcpy(block.magic, INGOT_SIGNATURE_MAGIC, 8);
  block.block_size = static_cast<std::uint32_t>(sizeof block + entries.size());
  block.count = static_cast<std::uint32_t>(signatures.size());
  append(file, block);
  append_bytes(file, entries.data(), entries.size());
  return file;
}

std::uint64_t content_size(const Bytes& file) {
  std::uint64_t size = 0;
  std::memcpy(&size, file.data() + offsetof(IngotHeader, content_size), sizeof size);
  return size;
}

void fix_header_digest(Bytes& file) {
  const Bytes digest = sha256(file.data(), INGOT_HEADER_DIGEST_OFFSET);
  std::copy(digest.begin(), digest.end(), file.begin() + INGOT_HEADER_DIGEST_OFFSET);
}

IngotSignatureEntry sign_header(const Bytes& file, const SignRequest& request) {
  const TestKey key = make_key(request.key);
  IngotSignatureEntry entry{};
  entry.algorithm = INGOT_SIGNATURE_ED25519;
  entry.entry_size = sizeof entry;
  entry.purpose = request.purpose;
  Bytes id = tagged(INGOT_TAG_KEY_ID);
  append(id, std::uint32_t{1});
  append_bytes(id, key.public_key.data(), 32);
  const Bytes digest = sha256(id.data(), id.size());
  std::copy_n(digest.begin(), 16, entry.key_id);
  std::array<std::uint8_t, 640> message{};
  std::memcpy(message.data(), INGOT_SIGNATURE_DOMAIN, std::strlen(INGOT_SIGNATURE_DOMAIN));
  std::memcpy(message.data() + 64, &entry, 64);
  std::memcpy(message.data() + 128, file.data(), 512);
  crypto_sign_detached(entry.signature, nullptr, message.data(), message.size(),
                       key.secret_key.data());
  return entry;
}

Bytes detached_file(const Bytes& file, const std::vector<SignRequest>& requests) {
  IngotDetachedHeader head{};
  std::memcpy(head.magic, INGOT_DETACHED_MAGIC, 8);
  head.count = static_cast<std::uint32_t>(requests.size());
  head.file_size = static_cast<std::uint32_t>(sizeof head + 128 * requests.size());
  std::memcpy(head.artifact_id, file.data() + INGOT_HEADER_DIGEST_OFFSET, 32);
  Bytes result;
  append(result, head);
  for (const SignRequest& request : requests) append(result, sign_header(file, request));
  return result;
}

TestPolicy::TestPolicy() {
  for (std::uint8_t i = 0; i < 2; ++i) {
    const TestKey key = make_key(static_cast<std::uint8_t>(i + 1));
    std::copy(key.public_key.begin(), key.public_key.end(), keys[i].public_key);
  }
  policy.keys = keys.data();
  policy.key_count = 2;
  policy.counted_purposes = 1u << INGOT_SIGN_RELEASE;
  policy.product = "road-vision";
  policy.build_classes = 1u << INGOT_BUILD_RELEASE;
  policy.require_vectors = 1;
  policy.max_atol = policy.max_rtol = 0.05f;
  policy.max_ulp = 16;
  policy.min_cosine = 0.9f;
}

ingot_status open_status(const Bytes& file, const ingot_policy& policy, ingot_error* error,
                         const ingot_load_options* options) {
  const ingot_host host = usual_host();
  ingot_load_options usual{};
  usual.host = &host;
  // A copy of exactly this size, so that a sanitizer sees every byte too far.
  const Bytes exact(file.begin(), file.end());
  ingot_artifact* artifact = nullptr;
  const ingot_status status = ingot_open_memory(
      exact.data(), exact.size(), &policy, options != nullptr ? options : &usual, &artifact, error);
  ingot_close(artifact);
  return status;
}

ingot_host usual_host() {
  ingot_host host{};
  host.arch = INGOT_ARCH_X86_64;
  host.page_size = 4096;
  host.features[0] = INGOT_X86_SSE42 | INGOT_X86_AVX2 | INGOT_X86_F16C;
  host.xcr0 = 7;
  return host;
}

}  // namespace ingot::test
