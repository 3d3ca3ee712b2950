// Arena planning. Buffers are placed one after the other, each where no buffer that lives at the
// same time is in the way; several orders are tried, and then the buffer at the top goes first,
// again and again, until nothing is left to gain or the work is used up. Offsets and sizes are
// multiples of 256 bytes.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "compiler/program/program.h"

namespace ingot {
namespace {

std::uint64_t aligned(std::uint64_t size) {
  return (size + kRegionAlignment - 1) / kRegionAlignment * kRegionAlignment;
}

bool meet(const ProgramBuffer& a, const ProgramBuffer& b) {
  return a.first_call <= b.last_call && b.first_call <= a.last_call;
}

enum class Fit : std::uint8_t { Lowest, Tightest };

// One arena: the buffers in it and where they lie.
class Arena {
 public:
  Arena(const Program& program, std::vector<std::uint32_t> members)
      : program_(program), members_(std::move(members)), offset_(program.buffers.size()) {}

  // Lowest size found; `least` cannot be undercut.
  void search(std::uint64_t least) {
    const auto by = [&](const auto& key) {
      std::vector<std::uint32_t> order = members_;
      std::ranges::stable_sort(order, std::ranges::greater{},
                               [&](std::uint32_t i) { return key(program_.buffers[i]); });
      return order;
    };
    const auto calls = [](const ProgramBuffer& b) {
      return std::uint64_t{b.last_call} - b.first_call + 1;
    };
    const std::array orders{
        by([](const ProgramBuffer& b) { return b.size_bytes; }),
        by([&](const ProgramBuffer& b) { return b.size_bytes * calls(b); }),
        by([&](const ProgramBuffer& b) { return calls(b); }),
    };
    for (const std::vector<std::uint32_t>& order : orders) {
      for (const Fit fit : {Fit::Tightest, Fit::Lowest}) raise_top(order, fit, least);
    }
    offset_ = best_offset_;
  }

  std::uint64_t size() const { return best_; }
  std::uint64_t offset(std::uint32_t buffer) const { return offset_[buffer]; }

 private:
  // Comparisons of two buffers, for all orders together.
  static constexpr std::uint64_t kMostWork = 60'000'000;

  void raise_top(std::vector<std::uint32_t> order, Fit fit, std::uint64_t least) {
    const std::uint64_t work = std::uint64_t{order.size()} * order.size() + 1;
    for (std::uint64_t turn = 0; best_ > least && turn * work * 6 <= kMostWork; ++turn) {
      const std::size_t top = place(order, fit);
      if (top == 0) break;
      std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(top),
                  order.begin() + static_cast<std::ptrdiff_t>(top) + 1);
    }
  }

  // The place in the order of the buffer that ends highest.
  std::size_t place(const std::vector<std::uint32_t>& order, Fit fit) {
    placed_.clear();
    std::uint64_t size = 0;
    std::size_t top = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const ProgramBuffer& buffer = program_.buffers[order[i]];
      const std::uint64_t offset = free_offset(buffer, fit);
      offset_[order[i]] = offset;
      const std::uint64_t end = offset + aligned(buffer.size_bytes);
      placed_.insert(std::ranges::upper_bound(placed_, offset, {}, &Placed::offset),
                     Placed{offset, end, &buffer});
      if (end > size) {
        size = end;
        top = i;
      }
    }
    if (size < best_) {
      best_ = size;
      best_offset_ = offset_;
    }
    return top;
  }

  struct Placed {
    std::uint64_t offset = 0, end = 0;
    const ProgramBuffer* buffer = nullptr;
  };

  std::uint64_t free_offset(const ProgramBuffer& buffer, Fit fit) const {
    constexpr std::uint64_t kNoGap = std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t size = aligned(buffer.size_bytes);
    std::uint64_t offset = 0, best = 0, best_gap = kNoGap;
    for (const Placed& other : placed_) {  // by offset
      if (!meet(*other.buffer, buffer)) continue;
      if (other.offset >= offset + size && other.offset - offset < best_gap) {
        best = offset;
        best_gap = other.offset - offset;
        if (fit == Fit::Lowest) break;
      }
      offset = std::max(offset, other.end);
    }
    return best_gap == kNoGap ? offset : best;
  }

  const Program& program_;
  const std::vector<std::uint32_t> members_;
  std::vector<std::uint64_t> offset_, best_offset_;  // by buffer
  std::vector<Placed> placed_;
  std::uint64_t best_ = std::numeric_limits<std::uint64_t>::max();
};

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
  program.largest_live_bytes = largest_live(program);
  for (const bool state : {false, true}) {
    std::vector<std::uint32_t> members;
    std::uint64_t all = 0;
    for (std::uint32_t i = 0; i < program.buffers.size(); ++i) {
      const ProgramBuffer& buffer = program.buffers[i];
      if (!in_arena(buffer.kind) || (buffer.kind != BufferKind::Scratch) != state) continue;
      members.push_back(i);
      all += aligned(buffer.size_bytes);
    }
    if (members.empty()) continue;
    Arena arena(program, members);
    arena.search(state ? all : program.largest_live_bytes);
    for (const std::uint32_t i : members) {
      program.buffers[i].arena = static_cast<std::uint32_t>(program.arenas.size());
      program.buffers[i].arena_offset = arena.offset(i);
    }
    program.arenas.push_back(ProgramArena{arena.size(), state});
  }
  return {};
}

}  // namespace ingot
