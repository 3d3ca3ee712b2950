// Memory that ends, or begins, where nothing may be read.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace ingot::test {

enum class Edge { AtBegin, AtEnd };

class GuardedMemory {
 public:
  // The address is a multiple of `alignment` (a power of two, at most a page). At the end, what
  // that leaves between the memory and the guard is less than `alignment` bytes.
  explicit GuardedMemory(std::size_t nbytes, Edge edge = Edge::AtEnd, std::size_t alignment = 1)
      : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
        inner_((nbytes + page_ - 1) / page_ * page_) {
    void* memory = mmap(nullptr, inner_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    base_ = static_cast<std::uint8_t*>(memory);
    if (inner_ > 0 && mprotect(base_ + page_, inner_, PROT_READ | PROT_WRITE) != 0) std::abort();
    data_ = base_ + page_;
    if (edge == Edge::AtEnd) data_ += (inner_ - nbytes) / alignment * alignment;
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() { munmap(base_, inner_ + 2 * page_); }

  [[nodiscard]] std::uint8_t* data() const { return data_; }
  void make_read_only() const { mprotect(base_ + page_, inner_, PROT_READ); }

 private:
  std::size_t page_;
  std::size_t inner_;
  std::uint8_t* base_ = nullptr;
  std::uint8_t* data_ = nullptr;
};

}  // namespace ingot::test
