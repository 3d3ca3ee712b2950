#include "compiler/tensor/tensor.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

TEST(Shape, CountsAndStrides) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({2, 3, 4}), 24);
  EXPECT_EQ(element_count({2, 0, 4}), 0);
  EXPECT_EQ(row_major_strides({2, 3, 4}), (std::vector<std::int64_t>{12, 4, 1}));
  EXPECT_EQ(to_text(DType::F32, {1, 3, 8, 8}), "f32[1,3,8,8]");
  EXPECT_EQ(to_text(DType::Bool, {}), "bool[]");
}

TEST(Tensor, IsRowMajorAndLittleEndian) {
  const std::int64_t values[] = {1, -2, 3, 0x0102};
  const Tensor tensor = Tensor::of_ints(DType::I16, {2, 2}, values);
  ASSERT_EQ(tensor.bytes.size(), 8u);
  EXPECT_EQ(tensor.bytes[6], std::byte{2});
  EXPECT_EQ(tensor.bytes[7], std::byte{1});
  EXPECT_EQ(tensor.at(1), Scalar::of_int(DType::I16, -2));
}

TEST(Tensor, CopiesShareTheirBytes) {
  const double values[] = {0.5, 1.5};
  Tensor copy;
  {
    const Tensor tensor = Tensor::of_floats(DType::F16, {2}, values);
    copy = tensor;
    EXPECT_EQ(copy.bytes.data(), tensor.bytes.data());
  }
  EXPECT_EQ(copy.at(1).as_double(), 1.5);
}

TEST(Tensor, Splat) {
  const Tensor tensor = Tensor::splat({3}, Scalar::of_int(DType::U8, 7));
  EXPECT_EQ(tensor.at(2).as_int(), 7);
  EXPECT_EQ(tensor.bytes.size(), 3u);
}

}  // namespace
}  // namespace ingot
