#include "compiler/program/program_memory.h"

#include <cstring>
#include <new>

#include "base/check.h"

namespace ingot {

namespace {
constexpr std::align_val_t kAlignment{kRegionAlignment};
}  // namespace

void ProgramMemory::Free::operator()(std::byte* bytes) const {
  ::operator delete(bytes, kAlignment);
}

ProgramMemory::Bytes ProgramMemory::allocate(std::size_t size, int fill) {
  const std::size_t regions = size / kRegionAlignment + 1;
  auto* bytes = static_cast<std::byte*>(::operator new(regions * kRegionAlignment, kAlignment));
  std::memset(bytes, fill, regions * kRegionAlignment);
  return Bytes(bytes);
}

ProgramMemory::ProgramMemory(const Program& program, ScratchFill fill) : program_(program) {
  for (const ProgramArena& arena : program.arenas) {
    memory_.push_back(allocate(arena.size_bytes, arena.state ? 0 : static_cast<int>(fill)));
  }
  for (const ProgramBuffer& buffer : program.buffers) {
    if (buffer.kind == BufferKind::Constant) {
      // Only read: the one parameter that a kernel writes is never a constant.
      const std::vector<std::byte>& bytes = *program.constants[buffer.constant].bytes;
      address_.push_back(const_cast<std::byte*>(bytes.data()));
    } else if (buffer.arena != kNone) {
      address_.push_back(memory_[buffer.arena].get() + buffer.arena_offset);
    } else {
      memory_.push_back(allocate(buffer.size_bytes, 0));
      address_.push_back(memory_.back().get());
    }
  }
}

std::vector<std::byte*> ProgramMemory::arguments(const ProgramCall& call) const {
  std::vector<std::byte*> buffers;
  for (const std::uint32_t buffer : call.buffers) buffers.push_back(address_[buffer]);
  return buffers;
}

void ProgramMemory::run_fill(const ProgramCall& call) {
  INGOT_CHECK(call.kind == CallKind::Fill, "copies are not run on the build host");
  const std::uint32_t buffer = call.buffers[0];
  std::memset(address_[buffer], call.fill, program_.buffers[buffer].size_bytes);
}

std::uint32_t ProgramMemory::buffer_of(std::uint32_t io, BufferKind kind) const {
  for (std::uint32_t b = 0; b < program_.buffers.size(); ++b) {
    if (program_.buffers[b].kind == kind && program_.buffers[b].io == io) return b;
  }
  return kNone;
}

void ProgramMemory::write(BufferKind kind, std::span<const std::vector<std::byte>> values) {
  std::size_t next = 0;
  for (std::uint32_t io = 0; io < program_.io.size() && next < values.size(); ++io) {
    if (program_.io[io].kind != kind) continue;
    const std::vector<std::byte>& bytes = values[next++];
    const std::uint32_t buffer = buffer_of(io, kind);
    if (buffer == kNone || bytes.empty()) continue;
    INGOT_CHECK(bytes.size() <= program_.buffers[buffer].size_bytes, "a value of another size");
    std::memcpy(address_[buffer], bytes.data(), bytes.size());
  }
}

std::vector<std::vector<std::byte>> ProgramMemory::read(BufferKind slot, BufferKind buffer) const {
  std::vector<std::vector<std::byte>> values;
  for (std::uint32_t io = 0; io < program_.io.size(); ++io) {
    if (program_.io[io].kind != slot) continue;
    values.emplace_back();
    std::uint32_t found = buffer_of(io, buffer);
    if (found == kNone) found = buffer_of(io, slot);  // a ring
    if (found == kNone) continue;
    values.back().assign(address_[found], address_[found] + program_.buffers[found].size_bytes);
  }
  return values;
}

void ProgramMemory::advance() {
  for (std::uint32_t io = 0; io < program_.io.size(); ++io) {
    const std::uint32_t next = buffer_of(io, BufferKind::NextState);
    const std::uint32_t state = buffer_of(io, BufferKind::State);
    if (next == kNone || state == kNone) continue;
    std::memcpy(address_[state], address_[next], program_.buffers[state].size_bytes);
  }
}

}  // namespace ingot
