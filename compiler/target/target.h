// What the compiler may ask of a target: facts and limits, never a name. No LLVM type appears.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/tensor/dtype.h"

namespace ingot {

enum class Architecture : std::uint16_t { X86_64 = 1, Aarch64 = 2 };  // codes of VARIANTS.arch

inline constexpr std::uint32_t kCpuWorkers = 4;

struct Target {
  std::string name;  // "x86-64-v3", "aarch64"; "host" is resolved before it gets here
  Architecture architecture = Architecture::X86_64;
  std::string triple;
  std::vector<std::string> llvm_features;  // explicit list, "+avx2", never a CPU name
  std::uint64_t feature_bits = 0;          // VARIANTS.cpu_features, word 0
  std::uint64_t xcr0 = 0;                  // x86: state components that must be enabled
  int vector_bits = 128;
  int vector_registers = 16;
  bool has_fma = false;
  bool has_f16_conversion = false;      // half <-> single in one instruction
  bool has_masked_memory = false;       // masked vector loads are one instruction
  std::uint32_t workers = kCpuWorkers;  // threads that may share a call: some have memory for each
  // For the cost model: bytes, of one core; l3 of the package.
  std::int64_t l1_bytes = 32 << 10, l2_bytes = 512 << 10, l3_bytes = 8 << 20;

  [[nodiscard]] int lanes(DType dtype) const { return vector_bits / (8 * size_bytes(dtype)); }
};

// The table behind `ingot targets`: x86-64-v2, -v3, -v4, aarch64.
[[nodiscard]] const std::vector<Target>& known_targets();

// By name; "host" is the most capable table row that this processor fulfils (CPUID, XGETBV, HWCAP).
// An unknown name is a Usage failure that lists the names.
[[nodiscard]] Result<Target> find_target(const std::string& name);

// Whether this processor has all that the target asks for.
[[nodiscard]] bool runs_here(const Target& target);

// The documented default: x86-64-v3 or aarch64 by the architecture this tool was built for.
[[nodiscard]] const Target& default_target();
// Least feature set of the build host, on which constants and references are computed.
[[nodiscard]] const Target& baseline_target();

// A device file (docs/device.schema.json) names a target and may narrow or describe it.
[[nodiscard]] Result<Target> parse_device(const std::string& json, const std::string& file);

}  // namespace ingot
