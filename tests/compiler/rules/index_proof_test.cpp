// Rules that are about index arithmetic, proved by z3 for all values of bounded integers. Sums are
// written out, loads are unknown functions of their coordinates.
#include <gtest/gtest.h>
#include <z3++.h>

#include <map>

#include "compiler/kernel/index_arithmetic.h"
#include "tests/compiler/rules/rule_support.h"

namespace ingot {
namespace {

// Loaded indices lie in here; rules that need bounds ask for less than a wrap.
constexpr int kMostLoaded = 1000;

// What a ranged kernel computes, as a term of z3 over its output ranges.
class Terms {
 public:
  explicit Terms(z3::context& context) : context_(context), bounds_(context) {}

  // The value of an expression where the ranges have the given values.
  z3::expr of(const RangedKernel& kernel, ExprId id, const std::map<std::uint32_t, z3::expr>& at) {
    const Expr& expr = kernel.pool[id];
    const auto operand = [&](std::size_t i) { return of(kernel, expr.operands[i], at); };
    switch (expr.kind) {
      case ExprKind::Constant:
        if (expr.dtype == DType::Bool) return context_.bool_val(expr.constant.as_int() != 0);
        return context_.int_val(expr.constant.as_int());
      case ExprKind::Variable: return at.at(expr.id);
      case ExprKind::Cast:
        if (!operand(0).is_bool()) return operand(0);
        return z3::ite(operand(0), context_.int_val(1), context_.int_val(0));
      case ExprKind::Load: return load(kernel, expr, at);
      case ExprKind::Reduce: return sum(kernel, expr, 0, at);
      case ExprKind::Scalar: break;
      default: throw z3::exception("not in these tests");
    }
    switch (expr.op) {
      case ScalarOp::Add: return operand(0) + operand(1);
      case ScalarOp::Sub: return operand(0) - operand(1);
      case ScalarOp::Mul: return operand(0) * operand(1);
      case ScalarOp::FloorDiv: return operand(0) / operand(1);  // positive divisors
      case ScalarOp::FloorMod: return z3::mod(operand(0), operand(1));
      case ScalarOp::Min: return z3::min(operand(0), operand(1));
      case ScalarOp::Max: return z3::max(operand(0), operand(1));
      case ScalarOp::Lt: return operand(0) < operand(1);
      case ScalarOp::Le: return operand(0) <= operand(1);
      case ScalarOp::Eq: return operand(0) == operand(1);
      case ScalarOp::And: return operand(0) && operand(1);
      case ScalarOp::Select: return z3::ite(operand(0), operand(1), operand(2));
      default: throw z3::exception("not in these tests");
    }
  }

  // Of all loads.
  [[nodiscard]] const z3::expr_vector& bounds() const { return bounds_; }

 private:
  z3::expr load(const RangedKernel& kernel, const Expr& expr,
                const std::map<std::uint32_t, z3::expr>& at) {
    const KernelParameter& parameter = kernel.parameters[expr.id];
    z3::sort_vector sorts(context_);
    z3::expr_vector coordinates(context_);
    for (std::size_t d = 0; d < parameter.shape.size(); ++d) {
      sorts.push_back(context_.int_sort());
      coordinates.push_back(of(kernel, expr.operands[d], at));
    }
    const z3::func_decl function =
        context_.function(parameter.name.c_str(), sorts, context_.int_sort());
    const z3::expr value = function(coordinates);
    bounds_.push_back(value >= -kMostLoaded && value <= kMostLoaded);
    if (!expr.gated) return value;
    return z3::ite(of(kernel, expr.operands.back(), at), value,
                   context_.int_val(expr.constant.as_int()));
  }

  z3::expr sum(const RangedKernel& kernel, const Expr& expr, std::size_t depth,
               std::map<std::uint32_t, z3::expr> at) {
    if (depth == expr.ranges.size()) return of(kernel, expr.operands[0], at);
    z3::expr total = context_.int_val(0);
    const std::uint32_t range = expr.ranges[depth];
    for (std::int64_t turn = 0; turn < kernel.ranges[range].extent; ++turn) {
      at.insert_or_assign(range, context_.int_val(turn));
      total = total + sum(kernel, expr, depth + 1, at);
    }
    return total;
  }

  z3::context& context_;
  z3::expr_vector bounds_;
};

// Both compute the same for all values of the output ranges, which are the same ones.
void expect_proved(const RangedKernel& before, const RangedKernel& after) {
  z3::context context;
  z3::solver solver(context);
  std::map<std::uint32_t, z3::expr> at;
  for (std::uint32_t r = 0; r < before.ranges.size(); ++r) {
    if (before.ranges[r].is_reduce) continue;
    const z3::expr variable = context.int_const(before.ranges[r].name.c_str());
    at.emplace(r, variable);
    solver.add(variable >= 0 && variable < context.int_val(before.ranges[r].extent));
  }
  Terms terms(context);
  const z3::expr left = terms.of(before, before.stores[0].value, at);
  const z3::expr right = terms.of(after, after.stores[0].value, at);
  for (const z3::expr bound : terms.bounds()) solver.add(bound);
  solver.add(left != right);
  EXPECT_EQ(solver.check(), z3::unsat) << print_kernel(before) << print_kernel(after);
}

const char* const kKernels[] = {
    "reduce k: 5\nstore y[a] = sum(select(k < a, i32 1, i32 0) over k)",
    "reduce k: 5\nstore y[a] = sum(select(a <= 2 * k + 1 && k < 4, i32 3, i32 0) over k)",
    "reduce k: 5\nstore y[a] = sum(select(3 * k < a + 2 && a < k * 2 + 4, load n[a], i32 0) over "
    "k)",
    "reduce k: 7\n%0 = load n[a] if 2 * k < a && k < i64(load m[a]) else i32 0\n"
    "store y[a] = sum(%0 over k)",
    "reduce k: 6\nstore y[a] = sum(select(k == i64(load m[a]), load n[k], i32 0) over k)",
    "reduce k: 6\nstore y[a] = sum(select(2 + k == i64(load m[a]), load n[k + a], i32 0) over k)",
    "reduce k: 6\nreduce j: 3\n"
    "store y[a] = sum(select(a + 3 == k + i64(load m[a]) && j < k, load n[k * 3 + j], i32 0) "
    "over k, j)",
    "reduce k: 8\nstore y[a] = sum(select(1 < k && k < 5, load n[k], i32 0) over k)",
    "reduce k: 8\n%0 = load n[k] if 5 < 2 * k && k < a else i32 0\nstore y[a] = sum(%0 over k)",
    "reduce k: 4\nstore y[a] = sum(sub(load n[k], load m[a]) over k)",
    "reduce k: 4\nreduce j: 3\nstore y[a] = sum(mul(load n[k], load m[a]) over k, j)",
};

TEST(IndexProofs, RulesForReducesHoldForAllValues) {
  for (const char* const text : kKernels) {
    const auto kernel = parse_ranged_kernel(
        std::string("ranged kernel k\nread n: i32[64] row\nread m: i32[64] row\n"
                    "write y: i32[9] row\nrange a: 9\n") +
        text);
    ASSERT_TRUE(kernel.has_value()) << text << to_line(kernel.error().diagnostics[0]);
    const auto after = simplify_reduces(*kernel, rule_options());
    ASSERT_TRUE(after.has_value()) << to_line(after.error().diagnostics[0]);
    EXPECT_NE(after->counts, RuleCounts{}) << text;
    expect_proved(*kernel, after->kernel);
  }
}

// The ranges that arrange-ranges puts in place of others, at every turn of the old ones.
TEST(IndexProofs, MergedAndSplitRangesAreTheOldOnes) {
  z3::context context;
  const z3::expr a = context.int_const("a"), b = context.int_const("b"), n = context.int_const("n");
  z3::solver solver(context);
  const z3::expr ab = a * n + b;
  solver.add(a >= 0 && b >= 0 && b < n && n >= 1 && n <= 64);
  solver.add(!(ab / n == a && z3::mod(ab, n) == b && (ab / n) * n + z3::mod(ab, n) == ab));
  EXPECT_EQ(solver.check(), z3::unsat);
}

// Random sums, quotients and remainders of ranges against their normal form.
TEST(IndexProofs, NormalFormsHoldForAllValues) {
  std::mt19937_64 random(7);
  const auto below = [&](std::uint64_t count) { return random() % count; };
  for (int turn = 0; turn < 60; ++turn) {
    RangedKernel kernel;
    for (const char* name : {"a", "b", "c"}) {
      kernel.ranges.push_back({name, static_cast<std::int64_t>(1 + below(40)), false});
    }
    ExprPool& pool = kernel.pool;
    std::vector<ExprId> values;
    for (std::uint32_t r = 0; r < 3; ++r) values.push_back(pool.variable(r));
    const auto any = [&] { return values[below(values.size())]; };
    for (int step = 0; step < 7; ++step) {
      const auto number = static_cast<std::int64_t>(1 + below(12));
      switch (below(5)) {
        case 0: values.push_back(pool.add(any(), any())); break;
        case 1: values.push_back(pool.mul(any(), number - 4)); break;
        case 2: values.push_back(pool.floor_div(any(), number)); break;
        case 3: values.push_back(pool.floor_mod(any(), number)); break;
        default: values.push_back(pool.add(any(), pool.index(number - 6))); break;
      }
    }
    const ExprId compared[] = {values[values.size() - 2], values.back()};
    const ExprId one = pool.index(1), zero = pool.index(0);
    const ExprId chosen[] = {pool.scalar(ScalarOp::Lt, compared), one, zero};
    const ExprId sum = pool.add(values.back(), pool.scalar(ScalarOp::Select, chosen));
    RangedKernel simple = kernel;
    kernel.stores.push_back({0, {}, sum});
    simple.stores.push_back({0, {}, simplify_index(simple.pool, sum, [&](std::uint32_t range) {
                               return simple.ranges[range].extent;
                             })});
    expect_proved(kernel, simple);
  }
}

}  // namespace
}  // namespace ingot
