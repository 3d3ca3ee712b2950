#include "compiler/tensor/scalar_op.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

TEST(ScalarOp, NamesComeBack) {
  for (int i = 0; i <= static_cast<int>(ScalarOp::Select); ++i) {
    const auto op = static_cast<ScalarOp>(i);
    EXPECT_EQ(scalar_op_from_name(name(op)), op) << i;
  }
  EXPECT_EQ(scalar_op_from_name("pow"), std::nullopt);
}

TEST(ScalarOp, OperandCounts) {
  EXPECT_EQ(operand_count(ScalarOp::Erf), 1);
  EXPECT_EQ(operand_count(ScalarOp::Le), 2);
  EXPECT_EQ(operand_count(ScalarOp::Fma), 3);
}

TEST(ScalarOp, AcceptsItsTypesOnly) {
  EXPECT_FALSE(accepts(ScalarOp::Add, DType::Bool));
  EXPECT_TRUE(accepts(ScalarOp::And, DType::Bool));
  EXPECT_FALSE(accepts(ScalarOp::And, DType::F32));
  EXPECT_FALSE(accepts(ScalarOp::FloorDiv, DType::F32));
  EXPECT_FALSE(accepts(ScalarOp::Sqrt, DType::I32));
  EXPECT_TRUE(accepts(ScalarOp::Sqrt, DType::BF16));
}

TEST(ScalarOp, ComparisonsGiveBool) {
  EXPECT_TRUE(gives_bool(ScalarOp::IsNan));
  EXPECT_TRUE(gives_bool(ScalarOp::Lt));
  EXPECT_FALSE(gives_bool(ScalarOp::Select));
  EXPECT_FALSE(gives_bool(ScalarOp::Max));
}

}  // namespace
}  // namespace ingot
