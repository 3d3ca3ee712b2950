#include "compiler/kernel/expr.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

TEST(ExprPool, EqualStructureIsOneExpression) {
  ExprPool pool;
  const ExprId a = pool.load(1, DType::F32, {pool.variable(0), pool.variable(1)});
  const ExprId b = pool.load(1, DType::F32, {pool.variable(0), pool.variable(1)});
  EXPECT_EQ(a, b);
  EXPECT_NE(a, pool.load(1, DType::F32, {pool.variable(1), pool.variable(0)}));
  const ExprId operands[] = {a, a};
  EXPECT_NE(pool.scalar(ScalarOp::Add, operands), pool.scalar(ScalarOp::Add, operands, true));
  // -0 and +0 are different constants.
  EXPECT_NE(pool.constant(Scalar::of_float(DType::F32, 0.0)),
            pool.constant(Scalar::of_float(DType::F32, -0.0)));
}

TEST(ExprPool, ManyExpressionsStayUnique) {
  ExprPool pool;
  std::vector<ExprId> ids;
  for (std::int64_t i = 0; i < 10000; ++i) ids.push_back(pool.index(i));
  for (std::int64_t i = 0; i < 10000; ++i) {
    EXPECT_EQ(pool.index(i), ids[static_cast<std::size_t>(i)]);
  }
  EXPECT_EQ(pool.size(), 10000U);
}

TEST(ExprPool, IndexArithmeticFolds) {
  ExprPool pool;
  const ExprId x = pool.variable(0);
  const ExprId y = pool.variable(1);
  EXPECT_EQ(pool.add(x, pool.index(0)), x);
  EXPECT_EQ(pool.add(pool.index(2), pool.index(3)), pool.index(5));
  EXPECT_EQ(pool.add(pool.add(x, pool.index(2)), pool.index(-2)), x);
  EXPECT_EQ(pool.add(pool.index(2), x), pool.add(x, pool.index(2)));
  EXPECT_EQ(pool.add(pool.add(x, pool.index(2)), y), pool.add(pool.add(x, y), pool.index(2)));
  EXPECT_EQ(pool.mul(x, 1), x);
  EXPECT_EQ(pool.mul(x, 0), pool.index(0));
  EXPECT_EQ(pool.mul(pool.mul(x, 3), 5), pool.mul(x, 15));
  EXPECT_EQ(pool.floor_div(x, 1), x);
  EXPECT_EQ(pool.floor_div(pool.index(-7), 4), pool.index(-2));
  EXPECT_EQ(pool.floor_div(pool.floor_div(x, 3), 4), pool.floor_div(x, 12));
  EXPECT_EQ(pool.floor_mod(x, 1), pool.index(0));
  EXPECT_EQ(pool.floor_mod(pool.index(-7), 4), pool.index(1));
  EXPECT_EQ(pool.floor_mod(pool.floor_mod(x, 12), 4), pool.floor_mod(x, 4));
  EXPECT_EQ(pool.floor_mod(pool.floor_mod(x, 3), 4), pool.floor_mod(x, 3));
  EXPECT_EQ(pool.min(pool.min(x, 5), 7), pool.min(x, 5));
  EXPECT_EQ(pool.min(pool.min(x, 7), 5), pool.min(x, 5));
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(pool.floor_div(pool.index(lowest), 3), pool.index(lowest / 3 - 1));
}

TEST(ExprPool, ConjunctionsFold) {
  ExprPool pool;
  const ExprId yes = pool.constant(Scalar::of_int(DType::Bool, 1));
  const ExprId no = pool.constant(Scalar::of_int(DType::Bool, 0));
  const ExprId operands[] = {pool.variable(0), pool.index(3)};
  const ExprId x = pool.scalar(ScalarOp::Lt, operands);
  EXPECT_EQ(pool.logical_and(ExprId{}, x), x);
  EXPECT_EQ(pool.logical_and(x, ExprId{}), x);
  EXPECT_EQ(pool.logical_and(yes, x), x);
  EXPECT_EQ(pool.logical_and(x, no), no);
  EXPECT_EQ(pool.logical_and(x, x), x);
  EXPECT_EQ(pool[x].dtype, DType::Bool);
}

}  // namespace
}  // namespace ingot
