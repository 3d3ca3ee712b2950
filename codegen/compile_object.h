// One scheduled kernel -> one relocatable object, or its text. No LLVM type appears.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace ingot {

struct CompiledObject {
  std::string symbol;          // the program's function
  std::vector<std::byte> elf;  // relocatable object that defines it and nothing else
  std::uint32_t stack_bytes = 0;
};

// Frames above this are refused: a loader sets the stack aside for every worker.
inline constexpr std::uint32_t kMaxStackBytes = 64 << 10;

// The same bytes for the same kernel, target and symbol, on every host and in every thread.
[[nodiscard]] Result<CompiledObject> compile_object(const ScheduledKernel& kernel,
                                                    const Target& target, bool strict,
                                                    const std::string& symbol);

enum class CodeText { Llvm, Assembly };
[[nodiscard]] Result<std::string> compile_text(const ScheduledKernel& kernel, const Target& target,
                                               bool strict, CodeText kind);

}  // namespace ingot
