// Memory of one program on the build host, as a loader lays it out: arenas, slots, constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compiler/program/program.h"

namespace ingot {

// What scratch holds before the first frame. Nothing may depend on it.
enum class ScratchFill : std::uint8_t { Zero = 0, NotANumber = 0xFF };

class ProgramMemory {
 public:
  // The program must outlive it. States are zero.
  ProgramMemory(const Program& program, ScratchFill fill);

  [[nodiscard]] std::byte* at(std::uint32_t buffer) const { return address_[buffer]; }
  [[nodiscard]] std::vector<std::byte*> arguments(const ProgramCall& call) const;
  // What the loader does itself.
  void run_fill(const ProgramCall& call);

  // Bytes of all slots of one kind, in the order of Program::io; empty ones are left as they are.
  void write(BufferKind kind, std::span<const std::vector<std::byte>> values);
  // Of the buffers of kind `buffer` that belong to slots of kind `slot`: outputs, or next states of
  // states. A ring is its own next state.
  [[nodiscard]] std::vector<std::vector<std::byte>> read(BufferKind slot, BufferKind buffer) const;
  // The end of a frame: what is next becomes the state.
  void advance();

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  using Bytes = std::unique_ptr<std::byte[], Free>;
  static Bytes allocate(std::size_t size, int fill);
  [[nodiscard]] std::uint32_t buffer_of(std::uint32_t io, BufferKind kind) const;

  const Program& program_;
  std::vector<Bytes> memory_;
  std::vector<std::byte*> address_;  // by buffer
};

}  // namespace ingot
