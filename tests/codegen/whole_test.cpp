// The code generator as a whole: the same bytes whatever the number of threads and the order,
// what a blob may hold, what is refused, and the runner of constants.
#include <elf.h>

#include <cstring>
#include <filesystem>

#include "codegen/link_blob.h"
#include "codegen/llvm_code_generator.h"
#include "codegen/native_runner.h"
#include "tests/codegen/program.h"

namespace ingot {
namespace {

ScheduledKernel map(ScalarOp op, DType dtype = DType::F32) {
  KernelWriter w(std::string(name(op)));
  const auto in = w.input("in", dtype, 64);
  const auto out = w.output("out", dtype, 64);
  w.loop("i", LoopKind::Serial, 8, [&](ExprId i) {
    w.loop("l", LoopKind::Vector, 8, [&](ExprId l) {
      const ExprId at = w.sum({{i, 8}, {l, 1}});
      const std::vector<ExprId> operands(static_cast<std::size_t>(operand_count(op)),
                                         w.load(in, at));
      w.store(out, at, w.op(op, operands));
    });
  });
  return w.finish();
}

std::vector<ScheduledKernel> several() {
  std::vector<ScheduledKernel> kernels;
  for (const ScalarOp op : {ScalarOp::Exp, ScalarOp::Add, ScalarOp::Sin, ScalarOp::Sqrt,
                            ScalarOp::Tanh, ScalarOp::Max, ScalarOp::Erf, ScalarOp::Log}) {
    kernels.push_back(map(op));
  }
  return kernels;
}

Result<CodeBlob> generate(const std::vector<ScheduledKernel>& kernels, const Target& target,
                          int jobs = 1) {
  std::vector<const ScheduledKernel*> pointers;
  for (const ScheduledKernel& kernel : kernels) pointers.push_back(&kernel);
  CodeOptions options;
  options.jobs = jobs;
  return make_llvm_code_generator()->generate(pointers, target, options);
}

TEST(CodeGenerator, ThreadsDoNotChangeTheBytes) {
  for (const Target& target : known_targets()) {
    const auto one = generate(several(), target, 1);
    ASSERT_TRUE(one.has_value()) << to_line(one.error().diagnostics[0]);
    for (const int jobs : {2, 3, 8}) {
      const auto other = generate(several(), target, jobs);
      ASSERT_TRUE(other.has_value());
      EXPECT_EQ(one->bytes, other->bytes) << target.name << ", " << jobs << " threads";
    }
  }
}

TEST(CodeGenerator, EntriesAreAlignedAndInside) {
  for (const Target& target : known_targets()) {
    const auto blob = generate(several(), target);
    ASSERT_TRUE(blob.has_value());
    ASSERT_EQ(blob->entries.size(), several().size());
    for (const CodeBlob::Entry& entry : blob->entries) {
      EXPECT_EQ(entry.offset % 16, 0U);
      EXPECT_GT(entry.size_bytes, 0U);
      EXPECT_LE(entry.offset + entry.size_bytes, blob->bytes.size());
      EXPECT_LE(entry.stack_bytes, 4096U);
    }
  }
}

TEST(CodeGenerator, NothingForNoKernels) {
  const auto blob = generate({}, default_target());
  ASSERT_TRUE(blob.has_value());
  EXPECT_TRUE(blob->bytes.empty());
}

TEST(CodeGenerator, ReportsProgress) {
  const std::vector<ScheduledKernel> kernels = several();
  std::vector<const ScheduledKernel*> pointers;
  for (const ScheduledKernel& kernel : kernels) pointers.push_back(&kernel);
  std::size_t calls = 0;
  std::size_t last = 0;
  CodeOptions options;
  options.jobs = 2;
  options.progress = [&](std::size_t done, std::size_t total) {
    ++calls;
    last = done;
    EXPECT_EQ(total, kernels.size());
  };
  ASSERT_TRUE(make_llvm_code_generator()->generate(pointers, default_target(), options));
  EXPECT_EQ(calls, kernels.size());
  EXPECT_EQ(last, kernels.size());
}

TEST(CodeGenerator, LeavesNoTemporaryFiles) {
  std::string folder = testing::TempDir() + "ingot-empty-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const char* const before = std::getenv("TMPDIR");
  const std::string saved = before == nullptr ? "" : before;
  setenv("TMPDIR", folder.c_str(), 1);
  EXPECT_TRUE(generate(several(), default_target()).has_value());
  if (before == nullptr) {
    unsetenv("TMPDIR");
  } else {
    setenv("TMPDIR", saved.c_str(), 1);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

TEST(CodeGenerator, GivesText) {
  const auto generator = make_llvm_code_generator();
  const ScheduledKernel kernel = map(ScalarOp::Sqrt);
  const auto llvm = generator->emit_text(kernel, default_target(), "llvm");
  ASSERT_TRUE(llvm.has_value());
  EXPECT_NE(llvm->find("llvm.sqrt"), std::string::npos);
  const auto text = generator->emit_text(kernel, default_target(), "asm");
  ASSERT_TRUE(text.has_value());
  EXPECT_NE(text->find("sqrt"), std::string::npos);
  const auto unknown = generator->emit_text(kernel, default_target(), "obj");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().exit, ExitCode::Usage);
}

std::string refusal(const ScheduledKernel& kernel, const Target& target) {
  const auto blob = generate({kernel}, target);
  return blob ? "" : to_line(blob.error().diagnostics[0]);
}

TEST(Refused, FusedMultiplyAddWithoutTheInstruction) {
  const Target v2 = *find_target("x86-64-v2");
  EXPECT_NE(refusal(map(ScalarOp::Fma), v2).find("fused multiply-add"), std::string::npos);
  EXPECT_EQ(refusal(map(ScalarOp::Fma), *find_target("x86-64-v3")), "");
}

TEST(Refused, FramesAboveTheLimit) {
  KernelWriter w("scratch");
  const auto out = w.output("out", DType::F32, 64);
  const auto tile = w.scratch("tile", DType::F32, 1 << 15);
  w.loop("i", LoopKind::Serial, 1 << 15, [&](ExprId i) {
    w.set(tile, i, w.at(0), w.kernel.pool.constant(Scalar::of_float(DType::F32, 1)));
  });
  w.loop("j", LoopKind::Serial, 64,
         [&](ExprId j) { w.store(out, j, w.read(tile, w.sum({{j, 100}}), w.at(0))); });
  EXPECT_NE(refusal(w.finish(), default_target()).find("bytes of stack"), std::string::npos);
}

TEST(Refused, EveryFailureIsReported) {
  const Target v2 = *find_target("x86-64-v2");
  const auto blob = generate({map(ScalarOp::Fma), map(ScalarOp::Add), map(ScalarOp::Fma)}, v2, 2);
  ASSERT_FALSE(blob.has_value());
  EXPECT_EQ(blob.error().diagnostics.size(), 2U);
}

// A linked file, small and made by hand, that the independent check accepts; then spoiled.
struct LinkedFile {
  Elf64_Ehdr header = {};
  Elf64_Shdr sections[6] = {};
  Elf64_Sym symbols[2] = {};
  char names[80] = "\0.text\0.rodata\0.symtab\0.strtab\0.rela.dyn\0program0\0memset";
  unsigned char code[16] = {0xC3};
  unsigned char constants[16] = {};

  LinkedFile() {
    header.e_shoff = offsetof(LinkedFile, sections);
    header.e_shnum = 6;
    header.e_shstrndx = 4;
    const auto section = [this](int i, const char* name, unsigned type, std::size_t offset,
                                std::size_t size, std::uint64_t flags, std::uint64_t address) {
      for (std::size_t at = 1; at + std::strlen(name) < sizeof names; ++at) {
        if (std::strcmp(names + at, name) == 0) sections[i].sh_name = static_cast<unsigned>(at);
      }
      sections[i].sh_type = type;
      sections[i].sh_offset = offset;
      sections[i].sh_size = size;
      sections[i].sh_flags = flags;
      sections[i].sh_addr = address;
    };
    section(1, ".text", SHT_PROGBITS, offsetof(LinkedFile, code), 16, SHF_ALLOC | SHF_EXECINSTR, 0);
    section(2, ".rodata", SHT_PROGBITS, offsetof(LinkedFile, constants), 16, SHF_ALLOC, 64);
    section(3, ".symtab", SHT_SYMTAB, offsetof(LinkedFile, symbols), sizeof symbols, 0, 0);
    section(4, ".strtab", SHT_STRTAB, offsetof(LinkedFile, names), sizeof names, 0, 0);
    section(5, ".rela.dyn", SHT_RELA, offsetof(LinkedFile, constants), 0, SHF_ALLOC, 128);
    sections[3].sh_link = 4;
    symbols[1].st_name = 41;
    symbols[1].st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
    symbols[1].st_shndx = 1;
    symbols[1].st_size = 1;
  }
  [[nodiscard]] Result<CodeBlob> check() const {
    const CompiledObject object{"program0", {}, 8};
    return flatten_linked(std::as_bytes(std::span(this, 1)), std::span(&object, 1));
  }
};

std::string code_of(const Result<CodeBlob>& blob) {
  return blob ? "" : blob.error().diagnostics[0].code;
}

TEST(LinkedCode, IsCheckedIndependently) {
  LinkedFile good;
  EXPECT_STREQ(good.names + 41, "program0");
  const auto blob = good.check();
  ASSERT_TRUE(blob.has_value()) << to_line(blob.error().diagnostics[0]);
  EXPECT_EQ(blob->bytes.size(), 80U);
  EXPECT_EQ(blob->entries[0].size_bytes, 1U);

  LinkedFile relocated;
  relocated.sections[5].sh_size = sizeof(Elf64_Rela);
  EXPECT_EQ(code_of(relocated.check()), "code-has-relocations");

  LinkedFile writable;
  writable.sections[2].sh_flags |= SHF_WRITE;
  EXPECT_EQ(code_of(writable.check()), "code-is-writable");

  LinkedFile incomplete;
  incomplete.symbols[1].st_shndx = SHN_UNDEF;
  EXPECT_EQ(code_of(incomplete.check()), "code-calls-library");

  LinkedFile outside;
  outside.symbols[1].st_size = 17;
  EXPECT_EQ(code_of(outside.check()), "missing-program");

  LinkedFile cut;
  cut.sections[2].sh_offset = 1 << 20;
  EXPECT_EQ(code_of(cut.check()), "malformed-link");

  LinkedFile local;
  local.sections[2].sh_flags |= SHF_TLS;
  EXPECT_EQ(code_of(local.check()), "code-needs-set-up");
}

// Both lld and the check refuse an object that calls something.
TEST(LinkedCode, LinkerFailuresAreFailures) {
  CompiledObject broken;
  broken.symbol = "program0";
  broken.elf.resize(64);
  const CompiledObject objects[] = {broken};
  EXPECT_EQ(code_of(link_blob(objects)), "cannot-link");
  EXPECT_TRUE(generate(several(), default_target()).has_value());  // and can be called again
}

TEST(NativeRunner, RunsInOrderAndCompilesEqualKernelsOnce) {
  const ScheduledKernel doubled = map(ScalarOp::Add);
  ScheduledKernel renamed = doubled;
  renamed.name = "another name";
  alignas(64) float a[64];
  alignas(64) float b[64] = {};
  alignas(64) float c[64] = {};
  for (int i = 0; i < 64; ++i) a[i] = static_cast<float>(i);
  const auto bytes = [](float* buffer) { return reinterpret_cast<std::byte*>(buffer); };
  const auto runner = make_native_runner(1);
  const KernelRunner::Call calls[] = {{&doubled, {bytes(a), bytes(b)}},
                                      {&renamed, {bytes(b), bytes(c)}}};
  for (int times = 0; times < 2; ++times) {
    const auto done = runner->run(calls);
    ASSERT_TRUE(done.has_value()) << to_line(done.error().diagnostics[0]);
    for (int i = 0; i < 64; ++i) EXPECT_EQ(c[i], static_cast<float>(4 * i));
  }
}

// Constants keep their denormals, whatever the caller's floating-point mode is.
TEST(NativeRunner, IgnoresTheCallersFloatMode) {
  const ScheduledKernel doubled = map(ScalarOp::Add);
  alignas(64) float a[64];
  alignas(64) float b[64] = {};
  for (float& x : a) x = 1e-39F;
  const KernelRunner::Call calls[] = {
      {&doubled, {reinterpret_cast<std::byte*>(a), reinterpret_cast<std::byte*>(b)}}};
#if defined(__x86_64__)
  const unsigned before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(0x9FC0);
#endif
  const auto done = make_native_runner(1)->run(calls);
#if defined(__x86_64__)
  EXPECT_EQ(__builtin_ia32_stmxcsr() & 0xFFC0U, 0x9FC0U);
  __builtin_ia32_ldmxcsr(before);
#endif
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(b[5], 2e-39F);
}

}  // namespace
}  // namespace ingot
