/* In front of libc, preloaded or linked: counts calls of the allocator and of mmap, and prints the
 * sum when the process ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* memory, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

static atomic_ulong calls;

void* malloc(size_t size) {
  atomic_fetch_add(&calls, 1);
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  atomic_fetch_add(&calls, 1);
  return __libc_calloc(count, size);
}

void* realloc(void* memory, size_t size) {
  atomic_fetch_add(&calls, 1);
  return __libc_realloc(memory, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  atomic_fetch_add(&calls, 1);
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** memory, size_t alignment, size_t size) {
  atomic_fetch_add(&calls, 1);
  *memory = __libc_memalign(alignment, size);
  return *memory == NULL ? 12 : 0;
}

void* mmap(void* address, size_t length, int protection, int flags, int file, off_t offset) {
  static void* (*next)(void*, size_t, int, int, int, off_t);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "mmap");
  atomic_fetch_add(&calls, 1);
  return next(address, length, protection, flags, file, offset);
}

unsigned long counted_allocations(void);
unsigned long counted_allocations(void) { return atomic_load(&calls); }

__attribute__((destructor)) static void print_calls(void) {
  char line[64];
  const int length = snprintf(line, sizeof line, "allocations %lu\n", atomic_load(&calls));
  if (write(2, line, (size_t)length) != length) _exit(1);
}
