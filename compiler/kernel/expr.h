// Expressions of kernels: immutable and hash-consed, so equal structure is the same id.
//
// Both kernel forms use them. Index arithmetic is I64. A variable is a range (ranged form) or a
// loop counter (scheduled form); it belongs to the kernel that owns the pool.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/tensor/scalar.h"
#include "compiler/tensor/scalar_op.h"

namespace ingot {

struct ExprId {
  std::uint32_t index = 0xFFFFFFFF;
  [[nodiscard]] bool valid() const { return index != 0xFFFFFFFF; }
  friend auto operator<=>(const ExprId&, const ExprId&) = default;
};

enum class ExprKind : std::uint8_t {
  Constant,  // `constant`
  Variable,  // `id`: the variable's index in its kernel; I64, 0 <= value < extent
  Scalar,    // `op` over operands, elementwise; `strict` forbids fusing it with neighbours
  Cast,      // operand 0 to `dtype` (rules of CastOp, graph.h)
  Load,      // ranged form: parameter `id` at logical coordinates operands[0..rank)
  LoadFlat,  // scheduled form: parameter `id` at element address operands[0]
             // both: an optional last operand (`gated`) is a bool: false reads nothing and
             // gives `constant`
  Reduce,    // ranged form: `reduce` of operand 0 over `ranges`, in range order, outermost first
  ReadRegister,  // scheduled form: register array `id` at element operands[0], lane operands[1]
  ClampIndex,    // operand 0 (I64) clamped to [0, extent-1], extent = constant; sets the kernel's
                 // INDEX_CLAMPED result bit if it had to
};

enum class Combine : std::uint8_t { Sum, Product, Max, Min };
[[nodiscard]] std::string_view name(Combine combine);  // "sum", "product", "max", "min"
[[nodiscard]] ScalarOp scalar_op(Combine combine);     // Add, Mul, Max, Min
// The value that changes nothing, where every reduce starts: 0, 1, lowest, highest (-inf, inf).
[[nodiscard]] Scalar identity(Combine combine, DType dtype);

struct Expr {
  ExprKind kind = ExprKind::Constant;
  DType dtype = DType::I64;
  ScalarOp op = ScalarOp::Add;
  Combine reduce = Combine::Sum;
  bool strict = false;
  bool gated = false;
  std::uint32_t id = 0;
  Scalar constant;
  std::vector<ExprId> operands;
  std::vector<std::uint32_t> ranges;
  friend bool operator==(const Expr&, const Expr&) = default;
  friend auto operator<=>(const Expr&, const Expr&) = default;
};

// FloorDiv and FloorMod of numbers; divisor > 0.
constexpr std::int64_t floored_div(std::int64_t a, std::int64_t divisor) {
  return a / divisor - (a % divisor < 0 ? 1 : 0);
}
constexpr std::int64_t floored_mod(std::int64_t a, std::int64_t divisor) {
  const std::int64_t remainder = a % divisor;
  return remainder < 0 ? remainder + divisor : remainder;
}

// Owns expressions. Operands always precede their users, so walking ids upward is a postorder.
// A reference to an expression stays valid while its pool lives, whatever is added.
class ExprPool {
 public:
  [[nodiscard]] const Expr& operator[](ExprId id) const { return exprs_[id.index]; }
  [[nodiscard]] std::size_t size() const { return exprs_.size(); }

  ExprId intern(Expr expr);  // no simplification
  ExprId constant(Scalar value);
  ExprId index(std::int64_t value);         // I64 constant
  ExprId variable(std::uint32_t variable);  // I64
  ExprId scalar(ScalarOp op, std::span<const ExprId> operands, bool strict = false);
  ExprId cast(ExprId value, DType dtype);
  ExprId load(std::uint32_t parameter, DType dtype, std::vector<ExprId> coordinates);
  ExprId load_gated(std::uint32_t parameter, DType dtype, std::vector<ExprId> coordinates,
                    ExprId gate, Scalar fill);
  ExprId load_flat(std::uint32_t parameter, DType dtype, ExprId address);
  ExprId load_flat_gated(std::uint32_t parameter, DType dtype, ExprId address, ExprId gate,
                         Scalar fill);
  ExprId reduce(Combine combine, ExprId value, std::vector<std::uint32_t> ranges,
                bool strict = false);
  ExprId read_register(std::uint32_t array, DType dtype, ExprId element, ExprId lane);
  ExprId clamp_index(ExprId value, std::int64_t extent);

  // Index arithmetic with folding: constants, x+0, x*1, x*0, nested constant sums and products.
  ExprId add(ExprId a, ExprId b);
  ExprId mul(ExprId a, std::int64_t factor);
  ExprId floor_div(ExprId a, std::int64_t divisor);  // divisor > 0
  ExprId floor_mod(ExprId a, std::int64_t divisor);
  ExprId min(ExprId a, std::int64_t bound);
  ExprId logical_and(ExprId a, ExprId b);  // folds true; an invalid id counts as true

 private:
  void grow_slots();

  std::deque<Expr> exprs_;
  std::vector<std::uint64_t> hashes_;  // of exprs_[i]
  std::vector<std::uint32_t> slots_;   // open addressing: index of an expression, or kEmptySlot
};

// The ends of a float whose last two operations are a minimum and a maximum with constants, low <=
// high; it may be NaN nevertheless.
struct FloatRange {
  double low = 0, high = 0;
};
[[nodiscard]] std::optional<FloatRange> clamped_range(const ExprPool& pool, ExprId value);

}  // namespace ingot
