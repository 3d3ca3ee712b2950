#include "compiler/kernel/index_arithmetic.h"

#include <gtest/gtest.h>

#include <random>

namespace ingot {
namespace {

std::int64_t floored_div(std::int64_t a, std::int64_t b) {
  return b == 0 ? 0 : a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}
std::int64_t floored_mod(std::int64_t a, std::int64_t b) {
  return b == 0 ? 0 : a - floored_div(a, b) * b;
}

// The value of an index expression; loads are functions of their address.
std::int64_t value_of(const ExprPool& pool, ExprId id, const std::vector<std::int64_t>& variables) {
  const Expr& expr = pool[id];
  const auto operand = [&](std::size_t i) { return value_of(pool, expr.operands[i], variables); };
  switch (expr.kind) {
    case ExprKind::Constant: return expr.constant.as_int();
    case ExprKind::Variable: return variables[expr.id];
    case ExprKind::Load:
      if (expr.gated && operand(expr.operands.size() - 1) == 0) return expr.constant.as_int();
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(operand(0)) *
                                       0x123456789ABCDEF1ULL);
    case ExprKind::ClampIndex:
      return std::clamp<std::int64_t>(operand(0), 0, expr.constant.as_int() - 1);
    case ExprKind::Scalar: {
      const auto u = [&](std::size_t i) { return static_cast<std::uint64_t>(operand(i)); };
      switch (expr.op) {
        case ScalarOp::Add: return static_cast<std::int64_t>(u(0) + u(1));
        case ScalarOp::Sub: return static_cast<std::int64_t>(u(0) - u(1));
        case ScalarOp::Mul: return static_cast<std::int64_t>(u(0) * u(1));
        case ScalarOp::Neg: return static_cast<std::int64_t>(-u(0));
        case ScalarOp::Abs: return operand(0) < 0 ? static_cast<std::int64_t>(-u(0)) : operand(0);
        case ScalarOp::Div: return operand(1) == 0 ? 0 : operand(0) / operand(1);
        case ScalarOp::FloorDiv: return floored_div(operand(0), operand(1));
        case ScalarOp::FloorMod: return floored_mod(operand(0), operand(1));
        case ScalarOp::Min: return std::min(operand(0), operand(1));
        case ScalarOp::Max: return std::max(operand(0), operand(1));
        case ScalarOp::Lt: return operand(0) < operand(1);
        case ScalarOp::Le: return operand(0) <= operand(1);
        case ScalarOp::Eq: return operand(0) == operand(1);
        case ScalarOp::Ne: return operand(0) != operand(1);
        case ScalarOp::And: return operand(0) & operand(1);
        case ScalarOp::Or: return operand(0) | operand(1);
        case ScalarOp::Not: return operand(0) == 0;
        case ScalarOp::Select: return operand(0) != 0 ? operand(1) : operand(2);
        default: break;
      }
      break;
    }
    default: break;
  }
  ADD_FAILURE() << "not an index expression";
  return 0;
}

// Calls `check` with every assignment of the variables.
template <typename Check>
void for_all(const std::vector<std::int64_t>& extents, const Check& check) {
  std::vector<std::int64_t> point(extents.size(), 0);
  while (true) {
    check(point);
    std::size_t d = extents.size();
    while (d-- > 0) {
      if (++point[d] < extents[d]) break;
      point[d] = 0;
    }
    if (d == static_cast<std::size_t>(-1)) return;
  }
}

class RandomIndex {
 public:
  RandomIndex(ExprPool& pool, std::uint64_t seed, std::size_t variables)
      : pool_(pool), random_(seed), variables_(variables) {}

  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }

  ExprId number(int depth) {
    if (depth == 0) {
      if (pick(0, 3) == 0) return pool_.index(pick(-9, 20));
      return pool_.variable(static_cast<std::uint32_t>(pick(0, std::ssize(variables_) - 1)));
    }
    const auto a = [&] { return number(depth - 1); };
    switch (pick(0, 15)) {
      case 0:
      case 1:
      case 2: return op(ScalarOp::Add, a(), a());
      case 3: return op(ScalarOp::Sub, a(), a());
      case 4:
      case 5: return op(ScalarOp::Mul, a(), pool_.index(factors_[pick(0, 9)]));
      case 6:
      case 7:
      case 8: return op(ScalarOp::FloorDiv, a(), pool_.index(factors_[pick(2, 9)]));
      case 9:
      case 10:
      case 11: return op(ScalarOp::FloorMod, a(), pool_.index(factors_[pick(2, 9)]));
      case 12: return op(pick(0, 1) == 0 ? ScalarOp::Min : ScalarOp::Max, a(), a());
      case 13: {
        const ExprId operands[] = {truth(depth - 1), a(), a()};
        return pool_.scalar(ScalarOp::Select, operands);
      }
      case 14:
        switch (pick(0, 4)) {
          case 0: return pool_.clamp_index(a(), pick(1, 20));
          case 1: return op(ScalarOp::Mul, a(), a());
          case 2: return op(ScalarOp::Div, a(), pool_.index(pick(0, 5)));
          case 3: return pool_.load(0, DType::I64, {a()});
          default:
            return pool_.load_gated(0, DType::I64, {a()}, truth(depth - 1),
                                    Scalar::of_int(DType::I64, pick(-3, 3)));
        }
      default: {
        const ExprId operand = a();
        return pool_.scalar(pick(0, 1) == 0 ? ScalarOp::Neg : ScalarOp::Abs, {&operand, 1});
      }
    }
  }

  ExprId truth(int depth) {
    if (depth == 0) return op(ScalarOp::Lt, number(0), number(0));
    switch (pick(0, 7)) {
      case 0:
      case 1: return op(ScalarOp::Lt, number(depth - 1), number(depth - 1));
      case 2: return op(ScalarOp::Le, number(depth - 1), number(depth - 1));
      case 3: return op(ScalarOp::Eq, number(depth - 1), number(depth - 1));
      case 4: return op(ScalarOp::Ne, number(depth - 1), number(depth - 1));
      case 5: return op(ScalarOp::And, truth(depth - 1), truth(depth - 1));
      case 6: return op(ScalarOp::Or, truth(depth - 1), truth(depth - 1));
      default: {
        const ExprId operand = truth(depth - 1);
        return pool_.scalar(ScalarOp::Not, {&operand, 1});
      }
    }
  }

 private:
  ExprId op(ScalarOp scalar_op, ExprId a, ExprId b) {
    const ExprId operands[] = {a, b};
    return pool_.scalar(scalar_op, operands);
  }

  ExprPool& pool_;
  std::mt19937_64 random_;
  std::vector<std::int64_t> variables_;
  std::int64_t factors_[10] = {-4, -1, 1, 2, 3, 4, 6, 8, 12, 16};
};

class IndexArithmetic : public testing::Test {
 protected:
  ExprId v(std::uint32_t i) { return pool.variable(i); }
  ExprId c(std::int64_t value) { return pool.index(value); }
  ExprId op(ScalarOp scalar_op, ExprId a, ExprId b) {
    const ExprId operands[] = {a, b};
    return pool.scalar(scalar_op, operands);
  }
  ExprId div(ExprId a, std::int64_t b) { return op(ScalarOp::FloorDiv, a, c(b)); }
  ExprId mod(ExprId a, std::int64_t b) { return op(ScalarOp::FloorMod, a, c(b)); }
  ExprId simple(ExprId id) {
    return simplify_index(pool, id, [this](std::uint32_t i) { return extents[i]; });
  }
  IndexRange range(ExprId id) {
    return bounds_of(pool, id, [this](std::uint32_t i) { return extents[i]; });
  }
  ExprId truth(bool value) { return pool.constant(Scalar::of_int(DType::Bool, value)); }

  ExprPool pool;
  std::vector<std::int64_t> extents = {8, 16, 3, 1, 100};
};

TEST_F(IndexArithmetic, RandomExpressionsKeepTheirValue) {
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    ExprPool own;
    RandomIndex random(own, seed, 3);
    std::vector<std::int64_t> sizes;
    for (int i = 0; i < 3; ++i) sizes.push_back(random.pick(1, 9));
    const int depth = static_cast<int>(random.pick(1, 5));
    const ExprId before = seed % 4 == 0 ? random.truth(depth) : random.number(depth);
    const Extents extent = [&](std::uint32_t i) { return sizes[i]; };
    const ExprId after = simplify_index(own, before, extent);
    ASSERT_EQ(own[after].dtype, own[before].dtype);
    EXPECT_EQ(simplify_index(own, after, extent), after) << "not a fixed point, seed " << seed;
    const IndexRange before_range = bounds_of(own, before, extent);
    const IndexRange after_range = bounds_of(own, after, extent);
    std::map<std::uint32_t, std::int64_t> slopes;
    for (std::uint32_t i = 0; i < 3; ++i) {
      if (own[after].dtype != DType::I64) continue;
      if (const auto slope = linear_coefficient(own, after, i)) slopes[i] = *slope;
      EXPECT_EQ(slopes.contains(i) && slopes[i] == 0, !depends_on(own, after, i));
    }
    bool same = true;
    for_all(sizes, [&](const std::vector<std::int64_t>& point) {
      const std::int64_t expected = value_of(own, before, point);
      same = same && value_of(own, after, point) == expected &&
             before_range.within(before_range.min, before_range.max) &&
             before_range.min <= expected && expected <= before_range.max &&
             after_range.min <= expected && expected <= after_range.max;
      for (const auto& [i, slope] : slopes) {
        std::vector<std::int64_t> next = point;
        ++next[i];
        same = same && static_cast<std::uint64_t>(value_of(own, after, next)) -
                               static_cast<std::uint64_t>(expected) ==
                           static_cast<std::uint64_t>(slope);
      }
    });
    ASSERT_TRUE(same) << "seed " << seed;
  }
}

TEST_F(IndexArithmetic, DivisionOfSums) {
  const ExprId sum = pool.add(pool.mul(v(4), 16), v(1));  // 16*v4 + v1, v1 < 16
  EXPECT_EQ(simple(div(sum, 16)), v(4));
  EXPECT_EQ(simple(mod(sum, 16)), v(1));
  EXPECT_EQ(simple(div(v(0), 8)), c(0));
  EXPECT_EQ(simple(mod(v(0), 8)), v(0));
  EXPECT_EQ(simple(div(div(v(4), 3), 4)), div(v(4), 12));
  EXPECT_EQ(simple(mod(mod(v(4), 12), 4)), mod(v(4), 4));
  EXPECT_EQ(simple(div(pool.add(pool.mul(v(4), 16), v(0)), 32)), div(v(4), 2));
  // 16*v4 + v1 mod 32 = 16 * (v4 mod 2) + v1
  const ExprId split = simple(mod(sum, 32));
  EXPECT_EQ(split, simple(pool.add(v(1), pool.mul(mod(v(4), 2), 16))));
  EXPECT_EQ(linear_coefficient(pool, split, 1), 1);
}

TEST_F(IndexArithmetic, QuotientAndRemainderMeetAgain) {
  const ExprId x = v(4);
  EXPECT_EQ(simple(pool.add(pool.mul(div(x, 8), 8), mod(x, 8))), x);
  EXPECT_EQ(simple(op(ScalarOp::Add,
                      op(ScalarOp::Add, pool.mul(div(x, 12), 12), pool.mul(mod(div(x, 4), 3), 4)),
                      mod(x, 4))),
            x);
  // x - 8 * floor(x / 8) keeps its form: there is nothing to join.
  EXPECT_EQ(simple(mod(op(ScalarOp::Add, pool.mul(mod(x, 32), 3), c(64)), 32)),
            simple(mod(pool.mul(x, 3), 32)));
}

TEST_F(IndexArithmetic, Comparisons) {
  EXPECT_EQ(simple(op(ScalarOp::Lt, v(0), c(8))), truth(true));
  EXPECT_EQ(simple(op(ScalarOp::Le, c(0), v(0))), truth(true));
  EXPECT_EQ(simple(op(ScalarOp::Lt, v(0), c(0))), truth(false));
  EXPECT_EQ(simple(op(ScalarOp::Le, v(0), c(4))), op(ScalarOp::Lt, v(0), c(5)));
  EXPECT_EQ(simple(op(ScalarOp::Le, c(0), op(ScalarOp::Sub, v(0), c(1)))),
            op(ScalarOp::Lt, c(0), v(0)));
  EXPECT_EQ(simple(op(ScalarOp::Lt, div(v(4), 8), c(3))), op(ScalarOp::Lt, v(4), c(24)));
  EXPECT_EQ(simple(op(ScalarOp::Lt, pool.add(v(0), v(1)), v(1))), truth(false));
  EXPECT_EQ(simple(op(ScalarOp::Eq, pool.mul(v(0), 2), c(5))), truth(false));
  EXPECT_EQ(simple(op(ScalarOp::Eq, v(3), c(0))), truth(true));
  EXPECT_EQ(simple(op(ScalarOp::And, op(ScalarOp::Lt, v(0), c(8)), op(ScalarOp::Lt, v(1), c(9)))),
            op(ScalarOp::Lt, v(1), c(9)));
}

TEST_F(IndexArithmetic, LoadedValuesAreUnbounded) {
  const ExprId loaded = pool.load(0, DType::I64, {v(0)});
  EXPECT_EQ(range(loaded), IndexRange{});
  EXPECT_EQ(range(pool.add(loaded, c(1))), IndexRange{});
  // 8 * x wraps for large x, so the quotient is not x.
  const ExprId quotient = div(pool.mul(loaded, 8), 8);
  EXPECT_EQ(simple(quotient), quotient);
  EXPECT_EQ(range(pool.clamp_index(loaded, 10)), (IndexRange{0, 9}));
  EXPECT_EQ(range(pool.cast(pool.load(0, DType::U8, {v(0)}), DType::I64)), (IndexRange{0, 255}));
  EXPECT_EQ(simple(pool.clamp_index(v(0), 8)), v(0));
  EXPECT_NE(simple(pool.clamp_index(v(0), 7)), v(0));
}

// NaN becomes 0, which a clamp from 3 on does not hold back.
TEST_F(IndexArithmetic, ClampedFloatsAreBounded) {
  const auto number = [this](double value) {
    return pool.constant(Scalar::of_float(DType::F32, value));
  };
  const auto cast_of_clamped = [&](double low, double high, DType to) {
    const ExprId loaded = pool.load(0, DType::F32, {pool.index(0)});
    const std::array<ExprId, 2> raised{number(low), loaded};
    const std::array<ExprId, 2> lowered{pool.scalar(ScalarOp::Max, raised), number(high)};
    return range(pool.cast(pool.scalar(ScalarOp::Min, lowered), to));
  };
  EXPECT_EQ(cast_of_clamped(0, 1207, DType::I32), (IndexRange{0, 1207}));
  EXPECT_EQ(cast_of_clamped(3, 7.9, DType::I32), (IndexRange{0, 7}));
  EXPECT_EQ(cast_of_clamped(-2.5, -1, DType::I64), (IndexRange{-2, 0}));
  EXPECT_EQ(cast_of_clamped(0, 300, DType::U8), (IndexRange{0, 255}));
  EXPECT_EQ(cast_of_clamped(7, 3, DType::U8), (IndexRange{0, 255}));
}

TEST_F(IndexArithmetic, GatesThatAreDecidedDisappear) {
  const Scalar fill = Scalar::of_int(DType::U8, 7);
  const ExprId open = pool.load_gated(2, DType::U8, {v(0)}, op(ScalarOp::Lt, v(0), c(8)), fill);
  EXPECT_EQ(simple(open), pool.load(2, DType::U8, {v(0)}));
  const ExprId shut = pool.load_gated(2, DType::U8, {v(0)}, op(ScalarOp::Lt, v(0), c(0)), fill);
  EXPECT_EQ(simple(shut), pool.constant(fill));
}

TEST_F(IndexArithmetic, Substitute) {
  const ExprId x = op(ScalarOp::Add, op(ScalarOp::Mul, v(0), c(4)), v(1));
  EXPECT_EQ(substitute(pool, x, {{0, c(2)}}), pool.add(v(1), c(8)));
  EXPECT_EQ(substitute(pool, x, {{0, c(2)}, {1, c(1)}}), c(9));
  EXPECT_EQ(substitute(pool, x, {{5, c(2)}}), x);
  const ExprId sum = pool.reduce(Combine::Sum, pool.load(0, DType::F32, {v(0), v(1)}), {1});
  EXPECT_EQ(substitute(pool, sum, {{1, v(2)}}),
            pool.reduce(Combine::Sum, pool.load(0, DType::F32, {v(0), v(2)}), {2}));
  EXPECT_TRUE(depends_on(pool, sum, 0));
  EXPECT_FALSE(depends_on(pool, sum, 1));
}

TEST_F(IndexArithmetic, Coefficients) {
  const ExprId x = pool.add(pool.add(pool.mul(v(0), 12), pool.mul(v(1), -3)), c(5));
  EXPECT_EQ(linear_coefficient(pool, x, 0), 12);
  EXPECT_EQ(linear_coefficient(pool, x, 1), -3);
  EXPECT_EQ(linear_coefficient(pool, x, 2), 0);
  EXPECT_EQ(linear_coefficient(pool, op(ScalarOp::Mul, v(0), v(1)), 0), std::nullopt);
  EXPECT_EQ(linear_coefficient(pool, div(v(0), 2), 0), std::nullopt);
  EXPECT_EQ(linear_coefficient(pool, div(v(0), 2), 1), 0);
}

}  // namespace
}  // namespace ingot
