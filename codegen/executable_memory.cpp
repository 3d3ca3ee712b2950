#include "codegen/executable_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ingot {

Result<ExecutableMemory> ExecutableMemory::map(std::span<const std::byte> code) {
  const std::size_t size = std::max<std::size_t>(code.size(), 1);
  void* const address =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    return fail(ExitCode::Io, "no-memory", std::string("no memory for code: ") + strerror(errno));
  }
  ExecutableMemory memory(address, size);
  if (!code.empty()) std::memcpy(address, code.data(), code.size());
  if (mprotect(address, size, PROT_READ | PROT_EXEC) != 0) {
    return fail(ExitCode::Io, "not-executable",
                std::string("this system lets no memory become executable: ") + strerror(errno));
  }
  auto* const begin = static_cast<char*>(address);
  __builtin___clear_cache(begin, begin + size);
  return memory;
}

ExecutableMemory::ExecutableMemory(ExecutableMemory&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)), size_bytes_(other.size_bytes_) {}

ExecutableMemory::~ExecutableMemory() {
  if (address_ != nullptr) munmap(address_, size_bytes_);
}

ProgramFunction ExecutableMemory::program(const CodeBlob::Entry& entry) const {
  auto* const begin = static_cast<std::byte*>(address_);
  return reinterpret_cast<ProgramFunction>(begin + entry.offset);
}

Result<void> run_program_function(ProgramFunction program, std::span<std::byte* const> buffers,
                                  std::uint32_t turns) {
  const DefaultFloatMode mode;
  const std::vector<const void*> arguments(buffers.begin(), buffers.end());
  const std::int32_t status = program(arguments.data(), nullptr, 0, turns, 0);
  if ((status & ~1) == 0) return {};
  return fail(ExitCode::Internal, "program-failed",
              "the program returned " + std::to_string(status));
}

#if defined(__x86_64__)
DefaultFloatMode::DefaultFloatMode() : before_(_mm_getcsr()) { _mm_setcsr(0x1F80); }
DefaultFloatMode::~DefaultFloatMode() { _mm_setcsr(static_cast<unsigned>(before_)); }
#elif defined(__aarch64__)
DefaultFloatMode::DefaultFloatMode() : before_(__builtin_aarch64_get_fpcr64()) {
  __builtin_aarch64_set_fpcr64(0);
}
DefaultFloatMode::~DefaultFloatMode() { __builtin_aarch64_set_fpcr64(before_); }
#endif

}  // namespace ingot
