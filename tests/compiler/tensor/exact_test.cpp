#include "compiler/tensor/exact.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace ingot {
namespace {

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();

std::optional<std::int64_t> integer(ScalarOp op, DType dtype, std::int64_t a, std::int64_t b) {
  const auto result =
      evaluate_exactly(op, std::vector{Scalar::of_int(dtype, a), Scalar::of_int(dtype, b)});
  return result ? std::optional(result->as_int()) : std::nullopt;
}

std::optional<double> floating(ScalarOp op, DType dtype, std::vector<double> values) {
  std::vector<Scalar> operands;
  for (const double value : values) operands.push_back(Scalar::of_float(dtype, value));
  const auto result = evaluate_exactly(op, operands);
  return result ? std::optional(result->as_double()) : std::nullopt;
}

TEST(EvaluateExactly, IntegersWrapAndNeverTrap) {
  EXPECT_EQ(integer(ScalarOp::Add, DType::I8, 100, 100), -56);
  EXPECT_EQ(integer(ScalarOp::Sub, DType::U8, 1, 2), 255);
  EXPECT_EQ(integer(ScalarOp::Div, DType::I32, -7, 2), -3);
  EXPECT_EQ(integer(ScalarOp::Div, DType::I32, 7, 0), 0);
  EXPECT_EQ(integer(ScalarOp::Div, DType::I64, kLowest, -1), kLowest);
  EXPECT_EQ(integer(ScalarOp::FloorDiv, DType::I32, -7, 2), -4);
  EXPECT_EQ(integer(ScalarOp::FloorDiv, DType::I64, kLowest, -1), kLowest);
  EXPECT_EQ(integer(ScalarOp::FloorMod, DType::I32, -7, 2), 1);
  EXPECT_EQ(integer(ScalarOp::FloorMod, DType::I32, 7, -2), -1);
  EXPECT_EQ(integer(ScalarOp::FloorMod, DType::I64, kLowest, -1), 0);
  EXPECT_EQ(integer(ScalarOp::FloorMod, DType::I32, 7, 0), 0);
}

TEST(EvaluateExactly, UnsignedOrder) {
  EXPECT_EQ(integer(ScalarOp::Lt, DType::U64, -1, 1), 0);
  EXPECT_EQ(integer(ScalarOp::Lt, DType::I64, -1, 1), 1);
  EXPECT_EQ(integer(ScalarOp::Max, DType::U64, -1, 1), -1);
  EXPECT_EQ(integer(ScalarOp::Div, DType::U64, -1, 2), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(integer(ScalarOp::FloorMod, DType::U64, -1, 10), 5);
}

TEST(EvaluateExactly, FloatsStayInTheirPrecision) {
  // 2^24 + 1 is no binary32 number.
  EXPECT_EQ(floating(ScalarOp::Add, DType::F32, {16777216.0, 1.0}), 16777216.0);
  EXPECT_EQ(floating(ScalarOp::Add, DType::F64, {16777216.0, 1.0}), 16777217.0);
  EXPECT_EQ(floating(ScalarOp::Div, DType::F32, {1.0, 3.0}), static_cast<double>(1.0f / 3.0f));
  EXPECT_EQ(floating(ScalarOp::Round, DType::F32, {2.5}), 2.0);
}

TEST(EvaluateExactly, RefusesWhatDependsOnTheMachine) {
  EXPECT_EQ(floating(ScalarOp::Exp, DType::F32, {1.0}), std::nullopt);
  EXPECT_EQ(floating(ScalarOp::Fma, DType::F32, {1.0, 2.0, 3.0}), std::nullopt);
  EXPECT_EQ(floating(ScalarOp::Add, DType::F16, {1.0, 2.0}), std::nullopt);
  EXPECT_EQ(floating(ScalarOp::Div, DType::F32, {0.0, 0.0}), std::nullopt);
  EXPECT_EQ(floating(ScalarOp::Max, DType::F32, {0.0, -0.0}), std::nullopt);
  EXPECT_EQ(floating(ScalarOp::Max, DType::F32, {std::nan(""), 1.0}), std::nullopt);
  EXPECT_EQ(floating(ScalarOp::Lt, DType::F16, {1.0, 2.0}), 1.0);
  EXPECT_EQ(floating(ScalarOp::IsNan, DType::F32, {std::nan("")}), 1.0);
}

TEST(CastExactly, RoundsOnce) {
  // Rounded to binary64 first, this would be a tie and go down.
  const Scalar large =
      Scalar::of_int(DType::I64, (std::int64_t{1} << 61) + (std::int64_t{1} << 37) + 1);
  const double step = std::ldexp(1.0, 38);
  EXPECT_EQ(cast_exactly(large, DType::F32)->as_double(), std::ldexp(1.0, 61) + step);
  EXPECT_EQ(cast_exactly(large, DType::BF16), std::nullopt);
  EXPECT_EQ(cast_exactly(Scalar::of_int(DType::I32, 257), DType::BF16)->as_double(), 256.0);
}

TEST(CastExactly, NansAreLeftToKernels) {
  const Scalar nan = Scalar::of_float(DType::F32, std::nan(""));
  EXPECT_EQ(cast_exactly(nan, DType::F64), std::nullopt);
  EXPECT_EQ(cast_exactly(nan, DType::I32)->as_int(), 0);
  EXPECT_EQ(cast_exactly(nan, DType::Bool)->as_int(), 1);
}

}  // namespace
}  // namespace ingot
