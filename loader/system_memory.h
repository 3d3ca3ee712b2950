// Pages from the operating system, and sleeping threads. The only file of the loader, besides
// open.cpp's reading, that makes system calls.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot::loader {

struct Mapping {
  uint8_t* address = nullptr;
  size_t nbytes = 0;
};

size_t page_size();

// Readable and writable anonymous memory that starts on `alignment` (a power of two, at least a
// page); children of fork do not get it. Null address on failure.
Mapping map_memory(size_t nbytes, size_t alignment);

// The same between two 64 KiB areas without access; `usable` is the part in the middle.
Mapping map_guarded(size_t nbytes, size_t alignment, uint8_t** usable);

void unmap(Mapping* mapping);

// Asks for huge pages; false if the system does not offer them.
bool ask_huge_pages(uint8_t* address, size_t nbytes);

bool make_read_only(const Mapping& mapping);

bool lock_pages(const uint8_t* address, size_t nbytes);

// One piece of a code image.
struct CodePiece {
  const uint8_t* data;
  size_t nbytes;  // multiple of the page size
};

enum class CodeMapping { Done, NoMemory, SealFailed, ExecDenied };

// Maps the pieces, one after the other, readable and executable and never writable: from a sealed
// memory file, or (unless `allow_private` is false) from anonymous memory that is writable first
// and executable after. On aarch64 the instruction cache is made to agree, and every thread that
// runs already is told.
struct CodeRequest {
  const CodePiece* pieces;
  uint32_t count;
  bool allow_memory_file;
  bool allow_shared_exec;
  bool allow_private;
};
CodeMapping map_code(const CodeRequest& request, Mapping* mapping, bool* sealed);

// What this core fetched ahead as instructions is fetched again (aarch64; x86-64 needs nothing).
inline void synchronize_context() {
#if defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#endif
}

// Sleeps until wake_all, unless the word has another value by then. May return early.
void sleep_while(uint32_t* word, uint32_t value);
void wake_all(uint32_t* word);

}  // namespace ingot::loader
