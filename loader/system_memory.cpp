#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "loader/system_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/bytes.h"

// Older headers lack these.
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace ingot::loader {

namespace {

constexpr size_t kGuard = 65536;

uint8_t* map_anonymous(size_t nbytes, int protection) {
  void* address = mmap(nullptr, nbytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return address == MAP_FAILED ? nullptr : static_cast<uint8_t*>(address);
}

size_t total_bytes(const CodeRequest& request) {
  size_t total = 0;
  for (uint32_t i = 0; i < request.count; ++i) total += request.pieces[i].nbytes;
  return total;
}

int open_memory_file() {
  int fd = memfd_create("ingot", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
  // EINVAL: a kernel before 6.3. EACCES: only files without execute permission are allowed; their
  // pages can still be mapped executable.
  if (fd < 0 && errno == EINVAL) fd = memfd_create("ingot", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 && errno == EACCES) fd = memfd_create("ingot", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
  return fd;
}

bool write_all(int fd, const uint8_t* data, size_t nbytes) {
  while (nbytes > 0) {
    const ssize_t written = write(fd, data, nbytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    nbytes -= static_cast<size_t>(written);
  }
  return true;
}

// Executable pages of a sealed file, or null. A shared mapping cannot be made writable later, not
// even by this process.
uint8_t* map_sealed(const CodeRequest& request, size_t nbytes) {
  const int fd = open_memory_file();
  if (fd < 0) return nullptr;
  bool good = true;
  for (uint32_t i = 0; i < request.count && good; ++i) {
    good = write_all(fd, request.pieces[i].data, request.pieces[i].nbytes);
  }
  constexpr int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  good = good && fcntl(fd, F_ADD_SEALS, seals) == 0;
  void* address = MAP_FAILED;
  if (good && request.allow_shared_exec) {
    address = mmap(nullptr, nbytes, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
  }
  close(fd);
  return address == MAP_FAILED ? nullptr : static_cast<uint8_t*>(address);
}

uint8_t* map_private(const CodeRequest& request, size_t nbytes, bool* no_memory) {
  uint8_t* address = map_anonymous(nbytes, PROT_READ | PROT_WRITE);
  *no_memory = address == nullptr;
  if (address == nullptr) return nullptr;
  size_t at = 0;
  for (uint32_t i = 0; i < request.count; ++i) {
    std::memcpy(address + at, request.pieces[i].data, request.pieces[i].nbytes);
    at += request.pieces[i].nbytes;
  }
  if (mprotect(address, nbytes, PROT_READ | PROT_EXEC) == 0) return address;
  munmap(address, nbytes);
  return nullptr;
}

#if defined(__aarch64__)
// The line sizes are read every time: cores of one chip may differ.
void synchronize_instructions(const uint8_t* from, size_t nbytes) {
  uint64_t type = 0;
  __asm__ volatile("mrs %0, ctr_el0" : "=r"(type));
  const uint64_t data_line = uint64_t{4} << ((type >> 16) & 15);
  const uint64_t code_line = uint64_t{4} << (type & 15);
  const uint64_t begin = reinterpret_cast<uint64_t>(from);
  const uint64_t end = begin + nbytes;
  for (uint64_t line = begin & ~(data_line - 1); line < end; line += data_line) {
    __asm__ volatile("dc cvau, %0" ::"r"(line) : "memory");
  }
  __asm__ volatile("dsb ish" ::: "memory");
  for (uint64_t line = begin & ~(code_line - 1); line < end; line += code_line) {
    __asm__ volatile("ic ivau, %0" ::"r"(line) : "memory");
  }
  __asm__ volatile("dsb ish" ::: "memory");
  synchronize_context();
  // Threads on other cores. A kernel that refuses leaves it to ingot_work, where each does it
  // itself.
  constexpr int expedited_sync_core = 1 << 5;
  constexpr int register_expedited_sync_core = 1 << 6;
  syscall(SYS_membarrier, register_expedited_sync_core, 0, 0);
  syscall(SYS_membarrier, expedited_sync_core, 0, 0);
}
#else
void synchronize_instructions(const uint8_t*, size_t) {}
#endif

}  // namespace

size_t page_size() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

Mapping map_memory(size_t nbytes, size_t alignment) {
  const size_t page = page_size();
  size_t whole = align_up(nbytes, page);
  if (alignment < page) alignment = page;
  if (whole > SIZE_MAX / 2) return {};
  uint8_t* address = map_anonymous(whole + alignment - page, PROT_READ | PROT_WRITE);
  if (address == nullptr) return {};
  // Trim both ends to the aligned part.
  const size_t skip = (~reinterpret_cast<uintptr_t>(address) + 1) & (alignment - 1);
  const size_t tail = alignment - page - skip;
  if (skip > 0) munmap(address, skip);
  if (tail > 0) munmap(address + skip + whole, tail);
  madvise(address + skip, whole, MADV_DONTFORK);
  return {address + skip, whole};
}

Mapping map_guarded(size_t nbytes, size_t alignment, uint8_t** usable) {
  const size_t page = page_size();
  if (alignment < kGuard) alignment = kGuard;
  const size_t inner = align_up(nbytes, page);
  if (inner > SIZE_MAX / 2) return {};
  const size_t whole = inner + 2 * kGuard + alignment;
  uint8_t* address = map_anonymous(whole, PROT_NONE);
  if (address == nullptr) return {};
  const uintptr_t start = align_up(reinterpret_cast<uintptr_t>(address) + kGuard, alignment);
  *usable = reinterpret_cast<uint8_t*>(start);
  if (inner > 0 && mprotect(*usable, inner, PROT_READ | PROT_WRITE) != 0) {
    munmap(address, whole);
    return {};
  }
  madvise(*usable, inner, MADV_DONTFORK);
  return {address, whole};
}

void unmap(Mapping* mapping) {
  if (mapping->address != nullptr) munmap(mapping->address, mapping->nbytes);
  *mapping = {};
}

bool ask_huge_pages(uint8_t* address, size_t nbytes) {
  return madvise(address, nbytes, MADV_HUGEPAGE) == 0;
}

bool make_read_only(const Mapping& mapping) {
  return mprotect(mapping.address, mapping.nbytes, PROT_READ) == 0;
}

bool lock_pages(const uint8_t* address, size_t nbytes) { return mlock(address, nbytes) == 0; }

CodeMapping map_code(const CodeRequest& request, Mapping* mapping, bool* sealed) {
  const size_t nbytes = total_bytes(request);
  uint8_t* address = request.allow_memory_file ? map_sealed(request, nbytes) : nullptr;
  *sealed = address != nullptr;
  if (address == nullptr) {
    if (!request.allow_private) return CodeMapping::SealFailed;
    bool no_memory = false;
    address = map_private(request, nbytes, &no_memory);
    if (address == nullptr) return no_memory ? CodeMapping::NoMemory : CodeMapping::ExecDenied;
  }
  *mapping = {address, nbytes};
  madvise(address, nbytes, MADV_DONTFORK);
  synchronize_instructions(address, nbytes);
  return CodeMapping::Done;
}

void sleep_while(uint32_t* word, uint32_t value) {
  constexpr int wait_private = 0 | 128;  // FUTEX_WAIT, FUTEX_PRIVATE_FLAG
  syscall(SYS_futex, word, wait_private, value, nullptr);
}

void wake_all(uint32_t* word) {
  constexpr int wake_private = 1 | 128;  // FUTEX_WAKE
  syscall(SYS_futex, word, wake_private, INT_MAX);
}

}  // namespace ingot::loader
