#include "compiler/tensor/dtype.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

TEST(DType, CodesAreThoseOfTheFormat) {
  EXPECT_EQ(static_cast<int>(DType::F32), 1);
  EXPECT_EQ(static_cast<int>(DType::Bool), 10);
  EXPECT_EQ(static_cast<int>(DType::U64), 13);
}

TEST(DType, SizesAndKinds) {
  EXPECT_EQ(size_bytes(DType::F64), 8);
  EXPECT_EQ(size_bytes(DType::BF16), 2);
  EXPECT_EQ(size_bytes(DType::Bool), 1);
  EXPECT_TRUE(is_float(DType::F16));
  EXPECT_FALSE(is_float(DType::I32));
  EXPECT_TRUE(is_integer(DType::U16));
  EXPECT_FALSE(is_integer(DType::Bool));
  EXPECT_TRUE(is_signed(DType::I8));
  EXPECT_FALSE(is_signed(DType::U8));
  EXPECT_FALSE(is_signed(DType::F32));
}

TEST(DType, NamesComeBack) {
  for (int code = 1; code <= 13; ++code) {
    const auto dtype = static_cast<DType>(code);
    EXPECT_EQ(dtype_from_name(name(dtype)), dtype) << code;
  }
  EXPECT_EQ(dtype_from_name("float"), std::nullopt);
  EXPECT_EQ(dtype_from_name(""), std::nullopt);
}

}  // namespace
}  // namespace ingot
