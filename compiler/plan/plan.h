// The plan: which graph values are computed together, and which buffer and layout each gets.
//
// Fusion and layout passes rewrite the plan and nothing else. A value is either *placed* in a
// buffer or computed inside the kernels that read it. Every placed value that is not an input,
// state or constant is the root of exactly one plan kernel. Grammar: docs/ir/plan.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compiler/graph/graph.h"
#include "compiler/kernel/layout.h"
#include "compiler/target/target.h"

namespace ingot {

enum class BufferKind : std::uint8_t {
  Input = 1,
  Output = 2,
  State = 3,
  Constant = 4,
  Scratch = 5,
  NextState = 6,
};

// "input", "next-state" ...; the same words in every text form.
[[nodiscard]] std::string_view name(BufferKind kind);
[[nodiscard]] std::optional<BufferKind> buffer_kind_from_name(std::string_view name);

struct PlanBuffer {
  BufferKind kind = BufferKind::Scratch;
  DType dtype = DType::F32;
  Shape shape;
  Layout layout;
  ValueId constant;      // Constant: a value built of constants by movement only (packing)
  std::uint32_t io = 0;  // Input, Output, State, NextState: index into Plan::io
  // The halo must be zeroed before the first kernel writes; without that, it only keeps rows apart
  // and holds anything.
  bool zero_before = false;
};

// Where a value lives: `offset` per dimension inside the buffer's logical shape (a part of a
// concatenation starts where the parts before it end).
struct Placement {
  std::uint32_t buffer = 0;
  std::vector<std::int64_t> offset;
  friend bool operator==(const Placement&, const Placement&) = default;
};

// One kernel to be: computes `root` and stores it at `destination`. Everything that root needs and
// that is not placed is computed inside.
struct PlanKernel {
  std::string name;
  ValueId root;
  Placement destination;
  // Of a ring: the destination is its entry at this value, modulo the entries (GraphState::entry).
  std::optional<ValueId> entry = std::nullopt;
};

struct PlanIo {
  std::string name;
  BufferKind kind = BufferKind::Input;  // Input, Output or State
  DType dtype = DType::F32;
  Shape shape;
  int camera = -1;
  std::optional<Tensor> initial = std::nullopt;  // State: zeros if absent
};

struct Plan {
  const Graph* graph = nullptr;
  std::vector<PlanIo> io;
  std::vector<PlanBuffer> buffers;
  std::map<ValueId, Placement> placed;  // where readers find a value
  // Operands read in another layout than `placed` (packed weights, haloed copies): consumer root
  // and operand value -> placement.
  std::map<std::pair<ValueId, ValueId>, Placement> operand_placed;
  std::vector<PlanKernel> kernels;  // in execution order
};

// Where the kernel of `root` finds a value; null if it computes it itself.
[[nodiscard]] const Placement* placement_of(const Plan& plan, ValueId root, ValueId value);
// Whether the kernel makes its root; otherwise it copies it from where it is placed.
[[nodiscard]] bool computes_root(const Plan& plan, const PlanKernel& kernel);

struct PlanOptions {
  bool fuse = true;     // -O0: every node its own kernel
  bool layouts = true;  // -O0: everything row-major
};

[[nodiscard]] Result<Plan> make_plan(const Graph& graph, const Target& target,
                                     const PlanOptions& options);
[[nodiscard]] Result<void> validate_plan(const Plan& plan);
[[nodiscard]] std::string print_plan(const Plan& plan);
// Reads the text form back against the graph it was made for.
[[nodiscard]] Result<Plan> parse_plan(std::string_view text, const Graph& graph);

}  // namespace ingot
