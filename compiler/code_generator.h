// The two interfaces through which the compiler reaches machine code. codegen/ implements them
// with LLVM; tests without LLVM use the kernel interpreter (interpreter_runner.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace ingot {

// Position-independent machine code of several programs, without relocations or calls.
struct CodeBlob {
  struct Entry {
    std::uint64_t offset = 0;  // 16-byte (x86-64) or 4-byte (aarch64) aligned
    std::uint64_t size_bytes = 0;
    std::uint32_t stack_bytes = 0;  // frame of the program, nothing else is called
  };
  std::vector<std::byte> bytes;
  std::vector<Entry> entries;  // in the order of the kernels given
};

struct CodeOptions {
  int jobs = 1;         // threads; never changes the bytes
  bool strict = false;  // every node strict, no contraction (constants, references)
  // Called with the number of kernels finished; may come from any thread, one at a time.
  std::function<void(std::size_t done, std::size_t total)> progress;
};

// Code in memory of this process.
class LoadedCode {
 public:
  virtual ~LoadedCode() = default;
  // Turns [0, turns) of the program `entry`. Buffers in parameter order.
  [[nodiscard]] virtual Result<void> run(std::size_t entry, std::span<std::byte* const> buffers,
                                         std::uint32_t turns) = 0;
};

class CodeGenerator {
 public:
  virtual ~CodeGenerator() = default;
  // One blob for all kernels. Kernels are distinct (the caller removes duplicates).
  [[nodiscard]] virtual Result<CodeBlob> generate(std::span<const ScheduledKernel* const> kernels,
                                                  const Target& target,
                                                  const CodeOptions& options) = 0;
  // Null if this processor cannot run code of the target.
  [[nodiscard]] virtual Result<std::unique_ptr<LoadedCode>> load(const CodeBlob& code,
                                                                 const Target& target) = 0;
  // Text for --emit: "llvm" or "asm".
  [[nodiscard]] virtual Result<std::string> emit_text(const ScheduledKernel& kernel,
                                                      const Target& target,
                                                      const std::string& kind) = 0;
};

// Runs kernels here and now, compiled strictly for the baseline of the build host.
class KernelRunner {
 public:
  struct Call {
    const ScheduledKernel* kernel = nullptr;
    std::vector<std::byte*> buffers;  // in parameter order, aligned for their elements
  };
  virtual ~KernelRunner() = default;
  // Runs the calls in order; equal kernels are compiled once.
  [[nodiscard]] virtual Result<void> run(std::span<const Call> calls) = 0;
};

}  // namespace ingot
