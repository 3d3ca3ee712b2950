// Arena planning: larger buffers first, each at the lowest offset where no buffer that lives at the
// same time is in the way. Offsets and sizes are multiples of 256 bytes.
#include <algorithm>
#include <limits>
#include <numeric>

#include "compiler/program/program.h"

namespace ingot {
namespace {

std::uint64_t aligned(std::uint64_t size) {
  return (size + kRegionAlignment - 1) / kRegionAlignment * kRegionAlignment;
}

bool meet(const ProgramBuffer& a, const ProgramBuffer& b) {
  return a.first_call <= b.last_call && b.first_call <= a.last_call;
}

std::uint64_t lowest_free(const std::vector<const ProgramBuffer*>& placed,
                          const ProgramBuffer& buffer) {
  std::vector<const ProgramBuffer*> in_the_way;
  for (const ProgramBuffer* other : placed) {
    if (meet(*other, buffer)) in_the_way.push_back(other);
  }
  std::ranges::sort(in_the_way, {}, &ProgramBuffer::arena_offset);
  const std::uint64_t size = aligned(buffer.size_bytes);
  std::uint64_t offset = 0, best = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t best_gap = best;
  for (const ProgramBuffer* other : in_the_way) {
    if (other->arena_offset >= offset + size && other->arena_offset - offset < best_gap) {
      best = offset;
      best_gap = other->arena_offset - offset;
    }
    offset = std::max(offset, other->arena_offset + aligned(other->size_bytes));
  }
  return best_gap == std::numeric_limits<std::uint64_t>::max() ? offset : best;
}

bool in_arena(BufferKind kind) {
  return kind == BufferKind::Scratch || kind == BufferKind::State || kind == BufferKind::NextState;
}

std::uint64_t largest_live(const Program& program) {
  std::uint64_t largest = 0;
  for (std::uint32_t call = 0; call < program.calls.size(); ++call) {
    std::uint64_t live = 0;
    for (const ProgramBuffer& buffer : program.buffers) {
      if (buffer.kind == BufferKind::Scratch && buffer.first_call <= call &&
          call <= buffer.last_call) {
        live += aligned(buffer.size_bytes);
      }
    }
    largest = std::max(largest, live);
  }
  return largest;
}

}  // namespace

Result<void> plan_memory(Program& program) {
  program.arenas.clear();
  std::vector<std::uint32_t> order(program.buffers.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::uint32_t i) { return program.buffers[i].size_bytes; });
  for (const bool state : {false, true}) {
    std::vector<const ProgramBuffer*> placed;
    std::uint64_t size = 0;
    for (std::uint32_t index : order) {
      ProgramBuffer& buffer = program.buffers[index];
      if (!in_arena(buffer.kind) || (buffer.kind != BufferKind::Scratch) != state) continue;
      buffer.arena = static_cast<std::uint32_t>(program.arenas.size());
      buffer.arena_offset = lowest_free(placed, buffer);
      placed.push_back(&buffer);
      size = std::max(size, buffer.arena_offset + aligned(buffer.size_bytes));
    }
    if (!placed.empty()) program.arenas.push_back(ProgramArena{size, state});
  }
  program.largest_live_bytes = largest_live(program);
  return {};
}

}  // namespace ingot
