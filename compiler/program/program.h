// The call list: programs, copies and fills over planned buffers, in order. This is what an
// artifact stores for one variant and what the loader replays; it never branches.
// Grammar: docs/ir/program.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compiler/kernel/kernel.h"
#include "compiler/plan/plan.h"
#include "compiler/program/schedule_file.h"

namespace ingot {

inline constexpr std::uint32_t kNone = 0xFFFFFFFF;
inline constexpr std::uint64_t kRegionAlignment = 256;  // bytes, of every buffer and constant

struct ProgramBuffer {
  BufferKind kind = BufferKind::Scratch;
  DType dtype = DType::F32;
  Shape shape;    // logical
  Layout layout;  // row-major for everything the caller sees
  std::uint64_t size_bytes = 0;
  std::uint32_t arena = kNone;  // none for constants and caller memory
  std::uint64_t arena_offset = 0;
  std::uint32_t io = kNone;                 // index into Program::io
  std::uint32_t constant = kNone;           // index into Program::constants
  std::vector<std::uint32_t> plan_buffers;  // indices into Plan::buffers; none for constants
  // Calls that may touch it; inputs, constants and states live through the whole list.
  std::uint32_t first_call = 0, last_call = 0;
};

// Bytes in their final layout, ready for a DATA section.
struct ProgramConstant {
  std::shared_ptr<const std::vector<std::byte>> bytes;
};

struct ProgramArena {
  std::uint64_t size_bytes = 0;
  bool state = false;  // STATE and NEXT_STATE buffers, else scratch
};

enum class CallKind : std::uint8_t { Program = 1, Copy = 2, Fill = 4 };

struct ProgramCall {
  CallKind kind = CallKind::Program;
  std::uint32_t kernel = kNone;        // index into Program::kernels
  std::vector<std::uint32_t> buffers;  // arguments; Fill: one, Copy: source, destination
  std::uint32_t grid = 1;              // turns of the parallel loop
  std::uint8_t fill = 0;
  std::string name;                   // root's source, for people
  std::uint32_t plan_kernel = kNone;  // index into Plan::kernels
  int winograd = 0;                   // tile size, if that is how the kernel convolves
  bool stores_once = false;           // the kernel stores no element twice
  // Work of one call, for the shares that `bench --per-call` prints.
  std::uint64_t flops = 0;
  std::uint64_t bytes_read = 0, bytes_written = 0;
};

struct ProgramTransform {
  std::uint32_t io = 0;  // input that holds the matrix
  std::uint64_t offset_bytes = 0;
  std::uint32_t width = 0, height = 0;
  int camera = -1;
  bool cabin = false;
};

struct Program {
  std::string name;
  std::uint32_t workers = kCpuWorkers;  // 1..256, threads that may share a call
  std::vector<PlanIo> io;  // inputs, then states, then outputs, each in declaration order
  std::vector<ProgramBuffer> buffers;
  std::vector<ProgramConstant> constants;
  std::vector<ProgramArena> arenas;
  std::vector<std::shared_ptr<const ScheduledKernel>> kernels;  // distinct by identity_key
  std::vector<ProgramCall> calls;
  std::vector<ProgramTransform> transforms;

  // Of each distinct ranged kernel, in the order of the calls; none with -O0.
  std::vector<KernelSchedule> schedules;

  // What the arena would need at least: the largest sum of live scratch buffers.
  std::uint64_t largest_live_bytes = 0;
};

[[nodiscard]] Result<void> validate_program(const Program& program);
[[nodiscard]] std::string print_program(const Program& program);
[[nodiscard]] Result<Program> parse_program(std::string_view text);  // kernels by name only

// Where a call is the last to read a scratch buffer, at the places where it stores, and the first
// to write another one of that layout, both become one. Needs: stores_once of every call. Leaves:
// fewer buffers, kernels with Update parameters; lifetimes are to be found anew.
void share_in_place(Program& program);

// Gives every scratch and state buffer its place: the smallest arena that a bounded search finds.
// Needs: first_call/last_call. Leaves: arenas, arena_offset, largest_live_bytes.
[[nodiscard]] Result<void> plan_memory(Program& program);

// Shares no code with plan_memory: compares all pairs. The failure names both buffers.
[[nodiscard]] Result<void> check_overlap(const Program& program);

}  // namespace ingot
