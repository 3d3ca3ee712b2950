// Code in memory of this process: written first, executable after, never both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "compiler/code_generator.h"

namespace ingot {

using ProgramFunction = std::int32_t (*)(const void* const* buffers, const std::uint64_t* scalars,
                                         std::uint32_t first, std::uint32_t last,
                                         std::uint32_t worker);

class ExecutableMemory {
 public:
  [[nodiscard]] static Result<ExecutableMemory> map(std::span<const std::byte> code);
  ExecutableMemory(ExecutableMemory&& other) noexcept;
  ExecutableMemory& operator=(ExecutableMemory&&) = delete;
  ~ExecutableMemory();

  [[nodiscard]] ProgramFunction program(const CodeBlob::Entry& entry) const;

 private:
  ExecutableMemory(void* address, std::size_t size_bytes)
      : address_(address), size_bytes_(size_bytes) {}
  void* address_;
  std::size_t size_bytes_;
};

// Turns [0, turns) in the default float mode. A status other than 0 and 1 (an index was clamped) is
// an Internal failure.
[[nodiscard]] Result<void> run_program_function(ProgramFunction program,
                                                std::span<std::byte* const> buffers,
                                                std::uint32_t turns);

// Rounding to nearest and no flushing of denormals while it lives, whatever the caller had set.
class DefaultFloatMode {
 public:
  DefaultFloatMode();
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;
  ~DefaultFloatMode();

 private:
  std::uint64_t before_;
};

}  // namespace ingot
