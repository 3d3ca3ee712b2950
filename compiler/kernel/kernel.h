// The two forms of a kernel. Grammar and examples: docs/ir/kernel.md.
//
// Ranged: what is computed. One store per result over output ranges, values built from loads at
// logical coordinates and reduces over reduce ranges; no order, no addresses.
// Scheduled: how. An ordered tree of loops, register arrays and stores at element addresses;
// code generation and nothing before it reads this form. Its meaning is that of running all loops
// in order, one turn after the other; `vector` and `unroll` only say how to emit them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "compiler/kernel/expr.h"
#include "compiler/kernel/layout.h"

namespace ingot {

// Update, of scheduled kernels only: every element is read at most in the statement that stores it,
// which runs once.
enum class Access : std::uint8_t { Read = 1, Write = 2, Update = 3 };

constexpr bool reads(Access access) { return access != Access::Write; }
constexpr bool writes(Access access) { return access != Access::Read; }

// A buffer the kernel touches, in the order of the program's `buffers` argument. Parameters never
// overlap in memory.
struct KernelParameter {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;  // logical
  Layout layout;
  Access access = Access::Read;
  friend bool operator==(const KernelParameter&, const KernelParameter&) = default;
};

struct Range {
  std::string name;
  std::int64_t extent = 1;
  bool is_reduce = false;
  friend bool operator==(const Range&, const Range&) = default;
};

struct RangedStore {
  std::uint32_t parameter = 0;
  std::vector<ExprId> coordinates;  // logical
  ExprId value;
  friend bool operator==(const RangedStore&, const RangedStore&) = default;
};

struct RangedKernel {
  std::string name;  // for people; not part of its identity
  std::vector<KernelParameter> parameters;
  std::vector<Range> ranges;  // output ranges first
  ExprPool pool;
  std::vector<RangedStore> stores;
};

enum class LoopKind : std::uint8_t {
  Serial,
  Parallel,  // the only statement of the body, at most one: turns [first, last) of it are run
  Unroll,
  Vector,  // innermost, power-of-two extent: one lane per turn
};

// The counter of exactly one loop.
struct Variable {
  std::string name;
  std::int64_t extent = 1;
  LoopKind kind = LoopKind::Serial;
  friend bool operator==(const Variable&, const Variable&) = default;
};

enum class AddressSpace : std::uint8_t { Register, Worker, Group };

// Register: `elements` values of `lanes` lanes each; after unrolling every element index is a
// constant; the lane index is 0 (lanes 1), the enclosing vector variable, or a constant after
// unrolling. This is how accumulators are carried by loops. Worker and Group: memory, any index.
// Elements hold nothing before they are set.
//
// Worker arrays lie on the stack or, with a `parameter`, one after the other in the row of a Write
// parameter of shape [workers, elements] that belongs to the worker; nothing else touches it.
inline constexpr std::uint32_t kNoParameter = 0xFFFFFFFF;
struct RegisterArray {
  std::string name;
  AddressSpace space = AddressSpace::Register;
  DType dtype = DType::F32;
  std::int64_t elements = 1;
  std::int64_t lanes = 1;
  std::uint32_t parameter = kNoParameter;
  friend bool operator==(const RegisterArray&, const RegisterArray&) = default;
};

struct Statement;
using Block = std::vector<Statement>;

struct ForStatement {
  std::uint32_t variable = 0;
  Block body;
};
struct StoreStatement {
  std::uint32_t parameter = 0;
  ExprId address;  // element address
  ExprId value;
};
struct SetRegisterStatement {
  std::uint32_t array = 0;
  ExprId element, lane;
  ExprId value;
};
struct IfStatement {
  ExprId condition;  // the same for all lanes
  Block body;
};
struct PrefetchStatement {
  std::uint32_t parameter = 0;
  ExprId address;  // may lie outside the buffer; never faults
};
struct BarrierStatement {};

struct Statement {
  std::variant<ForStatement, StoreStatement, SetRegisterStatement, IfStatement, PrefetchStatement,
               BarrierStatement>
      node;
};

struct ScheduledKernel {
  std::string name;
  std::vector<KernelParameter> parameters;
  std::vector<Variable> variables;
  std::vector<RegisterArray> registers;
  ExprPool pool;
  Block body;
  // Schedule in text, one step per line, as it was applied; for people and `--schedule`.
  std::vector<std::string> steps;

  // Turns of the parallel loop; 1 if there is none.
  [[nodiscard]] std::int64_t parallel_extent() const;
};

[[nodiscard]] Result<void> validate_kernel(const RangedKernel& kernel);
[[nodiscard]] Result<void> validate_kernel(const ScheduledKernel& kernel);

// print -> parse -> print is a fixed point. Names of parameters, ranges and variables are kept.
[[nodiscard]] std::string print_kernel(const RangedKernel& kernel);
[[nodiscard]] std::string print_kernel(const ScheduledKernel& kernel);
[[nodiscard]] Result<RangedKernel> parse_ranged_kernel(std::string_view text);
[[nodiscard]] Result<ScheduledKernel> parse_scheduled_kernel(std::string_view text);

// Everything that decides the code, and nothing else: the printed form without names. Equal keys
// mean one program in the artifact.
[[nodiscard]] std::string identity_key(const ScheduledKernel& kernel);

// The judge of passes: runs a kernel element by element. `buffers[i]` is parameter i's memory in
// its layout, element_count(layout, shape) elements. Every access is checked against its buffer;
// a failure names the access. Transcendental operations use the C library (tests only).
struct InterpreterResult {
  bool index_clamped = false;
};
[[nodiscard]] Result<InterpreterResult> interpret(const RangedKernel& kernel,
                                                  std::span<std::byte* const> buffers);
[[nodiscard]] Result<InterpreterResult> interpret(const ScheduledKernel& kernel,
                                                  std::span<std::byte* const> buffers);

}  // namespace ingot
