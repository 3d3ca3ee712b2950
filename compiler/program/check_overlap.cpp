// The planner's judge: walks the call list with a byte-owner map of sorted intervals per arena.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/program/program.h"

namespace ingot {
namespace {

std::unexpected<Failure> broken(std::string message) {
  return fail(ExitCode::Internal, "memory-plan", std::move(message));
}

// start -> (end, buffer) of the buffers alive at the current call.
using Owners = std::map<std::uint64_t, std::pair<std::uint64_t, std::uint32_t>>;

Result<void> take(Owners& owners, const ProgramBuffer& buffer, std::uint32_t index,
                  std::uint32_t call) {
  const std::uint64_t start = buffer.arena_offset;
  const std::uint64_t end = start + buffer.size_bytes;
  auto next = owners.lower_bound(start);
  if (next != owners.end() && next->first < end) {
    return broken(
        fmt::format("buffers {} and {} share bytes at call {}", index, next->second.second, call));
  }
  if (next != owners.begin()) {
    const auto& [owner_start, owner] = *std::prev(next);
    if (owner.first > start) {
      return broken(
          fmt::format("buffers {} and {} share bytes at call {}", index, owner.second, call));
    }
  }
  if (buffer.size_bytes > 0) owners.emplace(start, std::pair(end, index));
  return {};
}

// What the caller or the next frame sees lives through the whole list, and in no arena that scratch
// buffers share.
Result<void> check_held(const Program& program) {
  const std::size_t last = program.calls.empty() ? 0 : program.calls.size() - 1;
  for (std::uint32_t i = 0; i < program.buffers.size(); ++i) {
    const ProgramBuffer& buffer = program.buffers[i];
    const bool is_scratch = buffer.kind == BufferKind::Scratch;
    if (buffer.arena < program.arenas.size() && program.arenas[buffer.arena].state == is_scratch) {
      return broken(fmt::format("buffer {} lies in an arena of another kind", i));
    }
    if (!is_scratch && (buffer.first_call != 0 || buffer.last_call != last)) {
      return broken(fmt::format("buffer {} is held, but not through the whole list", i));
    }
  }
  return {};
}

}  // namespace

Result<void> check_overlap(const Program& program) {
  INGOT_RETURN_IF_ERROR(check_held(program));
  std::vector<Owners> arenas(program.arenas.size());
  for (std::uint32_t call = 0; call < std::max<std::size_t>(program.calls.size(), 1); ++call) {
    for (std::uint32_t i = 0; i < program.buffers.size(); ++i) {
      const ProgramBuffer& buffer = program.buffers[i];
      if (buffer.arena == kNone) continue;
      if (buffer.arena >= arenas.size()) return broken(fmt::format("buffer {} has no arena", i));
      if (buffer.arena_offset % kRegionAlignment != 0) {
        return broken(fmt::format("buffer {} is not aligned", i));
      }
      if (buffer.arena_offset + buffer.size_bytes > program.arenas[buffer.arena].size_bytes) {
        return broken(fmt::format("buffer {} ends outside its arena", i));
      }
      if (call > 0 && buffer.size_bytes > 0 && buffer.last_call + 1 == call) {
        arenas[buffer.arena].erase(buffer.arena_offset);
      }
    }
    for (std::uint32_t i = 0; i < program.buffers.size(); ++i) {
      const ProgramBuffer& buffer = program.buffers[i];
      if (buffer.arena == kNone || buffer.first_call != call) continue;
      INGOT_RETURN_IF_ERROR(take(arenas[buffer.arena], buffer, i, call));
    }
    if (call >= program.calls.size()) break;
    for (std::uint32_t index : program.calls[call].buffers) {
      const ProgramBuffer& buffer = program.buffers[index];
      if (call < buffer.first_call || call > buffer.last_call) {
        return broken(fmt::format("call {} touches buffer {} outside its lifetime", call, index));
      }
    }
  }
  return {};
}

}  // namespace ingot
