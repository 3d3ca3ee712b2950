// The processor: features read one by one, and its floating-point control register.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "loader/internal.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

namespace ingot::loader {

namespace {

#if defined(__x86_64__)

struct Leaf {
  uint32_t a, b, c, d;
};

Leaf cpuid(uint32_t leaf, uint32_t subleaf) {
  Leaf r = {};
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);  // zeros if the leaf is absent
  return r;
}

bool all(uint32_t word, uint32_t bits) { return (word & bits) == bits; }
constexpr uint32_t bit(int n) { return 1u << n; }

uint64_t read_xcr0() {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

// XCR0 shows the tile state before the process may use it, so ask.
bool tiles_permitted() {
  constexpr long request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

constexpr uint64_t kStateTiles = 0x60000;

void read_processor(ingot_host* host) {
  host->arch = INGOT_ARCH_X86_64;
  const Leaf l1 = cpuid(1, 0);
  const Leaf l7 = cpuid(7, 0);
  const Leaf l71 = cpuid(7, 1);
  const Leaf extended = cpuid(0x80000001u, 0);
  constexpr uint32_t osxsave = bit(27);
  uint64_t xcr0 = all(l1.c, osxsave) ? read_xcr0() : 0;
  const bool amx = all(l7.d, bit(24)) && (xcr0 & kStateTiles) == kStateTiles;
  if (amx && !tiles_permitted()) xcr0 &= ~kStateTiles;
  host->xcr0 = xcr0;
  const struct {
    uint64_t feature;
    bool present;
  } rows[] = {
      {INGOT_X86_SSE42, all(l1.c, bit(20) | bit(23))},
      {INGOT_X86_AVX2, all(l7.b, bit(5) | bit(3) | bit(8)) &&
                           all(l1.c, bit(12) | bit(22) | bit(28)) && all(extended.c, bit(5))},
      {INGOT_X86_F16C, all(l1.c, bit(29) | bit(28))},
      {INGOT_X86_AVX512, all(l7.b, bit(16) | bit(30) | bit(17) | bit(31) | bit(28))},
      {INGOT_X86_AVX512_VNNI, all(l7.c, bit(11))},
      {INGOT_X86_AVX_VNNI, all(l71.a, bit(4))},
      {INGOT_X86_AVX512_BF16, all(l71.a, bit(5))},
      {INGOT_X86_AVX512_FP16, all(l7.d, bit(23))},
      {INGOT_X86_AMX_TILE, all(l7.d, bit(24))},
      {INGOT_X86_AMX_INT8, all(l7.d, bit(25))},
      {INGOT_X86_AMX_BF16, all(l7.d, bit(22))},
      {INGOT_X86_AMX_FP16, all(l71.a, bit(21))},
  };
  for (const auto& row : rows) {
    if (row.present) host->features[0] |= row.feature;
  }
}

#elif defined(__aarch64__)

void read_processor(ingot_host* host) {
  host->arch = INGOT_ARCH_AARCH64;
  const unsigned long word = getauxval(AT_HWCAP);
  const unsigned long word2 = getauxval(AT_HWCAP2);
  const struct {
    uint64_t feature;
    unsigned long caps;
    unsigned long caps2;
  } rows[] = {
      {INGOT_AARCH64_ASIMD, 1ul << 1, 0},
      {INGOT_AARCH64_FP16, (1ul << 9) | (1ul << 10), 0},  // scalar and vector
      {INGOT_AARCH64_DOTPROD, 1ul << 20, 0},
      {INGOT_AARCH64_I8MM, 0, 1ul << 13},
      {INGOT_AARCH64_BF16, 0, 1ul << 14},
      {INGOT_AARCH64_FHM, 1ul << 23, 0},
      {INGOT_AARCH64_SVE, 1ul << 22, 0},
      {INGOT_AARCH64_SVE2, 0, 1ul << 1},
      {INGOT_AARCH64_SME, 0, 1ul << 23},
  };
  for (const auto& row : rows) {
    if ((word & row.caps) == row.caps && (word2 & row.caps2) == row.caps2) {
      host->features[0] |= row.feature;
    }
  }
  if ((host->features[0] & INGOT_AARCH64_SVE) != 0) {
    constexpr int get_vector_length = 51;  // PR_SVE_GET_VL
    const int length = prctl(get_vector_length);
    if (length > 0) host->sve_bits = static_cast<uint32_t>(length & 0xFFFF) * 8;
  }
}

#else
#error "the loader knows x86-64 and aarch64"
#endif

}  // namespace

#if defined(__x86_64__)

uint32_t read_fp_control() {
  uint32_t value = 0;
  __asm__ volatile("stmxcsr %0" : "=m"(value));
  return value;
}

void write_fp_control(uint32_t value) { __asm__ volatile("ldmxcsr %0" ::"m"(value) : "memory"); }

#else

uint32_t read_fp_control() {
  uint64_t value = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(value));
  return static_cast<uint32_t>(value);
}

void write_fp_control(uint32_t value) {
  __asm__ volatile("msr fpcr, %0" ::"r"(uint64_t{value}) : "memory");
}

#endif

}  // namespace ingot::loader

void ingot_host_read(ingot_host* host) {
  std::memset(host, 0, sizeof *host);
  host->page_size = static_cast<uint32_t>(ingot::loader::page_size());
  ingot::loader::read_processor(host);
}
