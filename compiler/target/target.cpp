// The table of targets, and what this processor fulfils of it.
//
// A row names exactly the features that a loader can test (docs/artifact_format.md), so that code
// which loads also runs. Cache sizes are those of a small machine of the kind: schedules must not
// depend on the machine that compiles.
#include "compiler/target/target.h"

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "artifact/format.h"

namespace ingot {
namespace {

constexpr std::uint64_t kXcr0Avx = 0x06;     // SSE and AVX state
constexpr std::uint64_t kXcr0Avx512 = 0xE6;  // and mask and upper registers

std::vector<Target> make_table() {
  std::vector<Target> table;
  Target target;
  target.name = "x86-64-v2";
  target.architecture = Architecture::X86_64;
  target.triple = "x86_64-unknown-linux-gnu";
  target.llvm_features = {"+sse2", "+sse3", "+ssse3", "+sse4.1", "+sse4.2", "+popcnt"};
  target.feature_bits = INGOT_X86_SSE42;
  target.vector_bits = 128;
  target.vector_registers = 16;
  target.l2_bytes = 256 << 10;
  table.push_back(target);

  target.name = "x86-64-v3";
  for (const char* feature :
       {"+avx", "+avx2", "+fma", "+bmi", "+bmi2", "+lzcnt", "+movbe", "+f16c"}) {
    target.llvm_features.emplace_back(feature);
  }
  target.feature_bits |= INGOT_X86_AVX2 | INGOT_X86_F16C;
  target.xcr0 = kXcr0Avx;
  target.vector_bits = 256;
  target.has_fma = true;
  target.has_f16_conversion = true;
  target.has_masked_memory = true;
  table.push_back(target);

  target.name = "x86-64-v4";
  for (const char* feature :
       {"+avx512f", "+avx512bw", "+avx512dq", "+avx512vl", "+avx512cd", "+evex512"}) {
    target.llvm_features.emplace_back(feature);
  }
  target.feature_bits |= INGOT_X86_AVX512;
  target.xcr0 = kXcr0Avx512;
  target.vector_bits = 512;
  target.vector_registers = 32;
  target.l2_bytes = 1 << 20;
  table.push_back(target);

  target = Target{};
  target.name = "aarch64";
  target.architecture = Architecture::Aarch64;
  target.triple = "aarch64-unknown-linux-gnu";
  target.llvm_features = {"+neon", "+fp-armv8", "+fullfp16", "+dotprod"};
  target.feature_bits = INGOT_AARCH64_ASIMD | INGOT_AARCH64_FP16 | INGOT_AARCH64_DOTPROD;
  target.vector_bits = 128;
  target.vector_registers = 32;
  target.has_fma = true;
  target.has_f16_conversion = true;
  table.push_back(target);
  return table;
}

const Target& row(const std::string& name) {
  return *std::ranges::find(known_targets(), name, &Target::name);
}

struct Processor {
  Architecture architecture = Architecture::X86_64;
  std::uint64_t feature_bits = 0;
  std::uint64_t xcr0 = 0;
};

#if defined(__x86_64__)
bool bit(unsigned word, int position) { return ((word >> position) & 1U) != 0; }

Processor this_processor() {
  Processor processor;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return processor;
  const unsigned leaf1_c = c;
  if (bit(leaf1_c, 20) && bit(leaf1_c, 23)) processor.feature_bits |= INGOT_X86_SSE42;
  if (!bit(leaf1_c, 27)) return processor;  // no XGETBV: the system saves no wider state
  unsigned low = 0;
  unsigned high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  processor.xcr0 = static_cast<std::uint64_t>(high) << 32 | low;
  unsigned leaf7_b = 0;
  if (__get_cpuid_count(7, 0, &a, &leaf7_b, &c, &d) == 0) leaf7_b = 0;
  unsigned extended_c = 0;
  if (__get_cpuid(0x80000001, &a, &b, &extended_c, &d) == 0) extended_c = 0;
  const bool has_fma_and_movbe = bit(leaf1_c, 12) && bit(leaf1_c, 22);
  const bool has_avx2_and_bmi = bit(leaf7_b, 5) && bit(leaf7_b, 3) && bit(leaf7_b, 8);
  const bool has_lzcnt = bit(extended_c, 5);
  if (has_fma_and_movbe && has_avx2_and_bmi && has_lzcnt) processor.feature_bits |= INGOT_X86_AVX2;
  if (bit(leaf1_c, 29)) processor.feature_bits |= INGOT_X86_F16C;
  const bool has_avx512 = bit(leaf7_b, 16) && bit(leaf7_b, 17) && bit(leaf7_b, 28) &&
                          bit(leaf7_b, 30) && bit(leaf7_b, 31);
  if (has_avx512) processor.feature_bits |= INGOT_X86_AVX512;
  return processor;
}
#elif defined(__aarch64__)
Processor this_processor() {
  Processor processor;
  processor.architecture = Architecture::Aarch64;
  const unsigned long present = getauxval(AT_HWCAP);
  if ((present & HWCAP_ASIMD) != 0) processor.feature_bits |= INGOT_AARCH64_ASIMD;
  if ((present & HWCAP_FPHP) != 0 && (present & HWCAP_ASIMDHP) != 0) {
    processor.feature_bits |= INGOT_AARCH64_FP16;
  }
  if ((present & HWCAP_ASIMDDP) != 0) processor.feature_bits |= INGOT_AARCH64_DOTPROD;
  return processor;
}
#endif

bool fulfils(const Processor& processor, const Target& target) {
  return processor.architecture == target.architecture &&
         (target.feature_bits & ~processor.feature_bits) == 0 &&
         (target.xcr0 & ~processor.xcr0) == 0;
}

}  // namespace

const std::vector<Target>& known_targets() {
  static const std::vector<Target> table = make_table();
  return table;
}

bool runs_here(const Target& target) { return fulfils(this_processor(), target); }

Result<Target> find_target(const std::string& name) {
  if (name == "host") {
    // Rows of one architecture are ordered from least to most.
    const Processor processor = this_processor();
    const Target* best = nullptr;
    for (const Target& target : known_targets()) {
      if (fulfils(processor, target)) best = &target;
    }
    if (best != nullptr) return *best;
    return fail(ExitCode::Unsupported, "unsupported-host",
                "this processor has less than the least target", {}, "name a target with --target");
  }
  std::string names = "host";
  for (const Target& target : known_targets()) {
    if (target.name == name) return target;
    names += ", " + target.name;
  }
  return fail(ExitCode::Usage, "unknown-target", "unknown target '" + name + "'", {},
              "known targets: " + names);
}

#if defined(__x86_64__)
const Target& default_target() { return row("x86-64-v3"); }
const Target& baseline_target() { return row("x86-64-v2"); }
#elif defined(__aarch64__)
const Target& default_target() { return row("aarch64"); }
const Target& baseline_target() { return row("aarch64"); }
#endif

}  // namespace ingot
