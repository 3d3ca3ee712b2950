// Shapes and constant tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/tensor/dtype.h"
#include "compiler/tensor/scalar.h"

namespace ingot {

// Dimensions, outermost first. Static and not negative; a dimension of 0 is legal.
using Shape = std::vector<std::int64_t>;

[[nodiscard]] std::int64_t element_count(const Shape& shape);
[[nodiscard]] std::vector<std::int64_t> row_major_strides(const Shape& shape);  // in elements
[[nodiscard]] std::string to_text(DType dtype, const Shape& shape);             // "f32[1,3,8,8]"

// A constant: dense, row-major, little-endian bytes that never change. `owner` keeps them alive
// (a vector, a mapped file); copies share the bytes.
struct Tensor {
  DType dtype = DType::F32;
  Shape shape;
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;

  [[nodiscard]] static Tensor own(DType dtype, Shape shape, std::vector<std::byte> bytes);
  [[nodiscard]] static Tensor of_ints(DType dtype, Shape shape,
                                      std::span<const std::int64_t> values);
  [[nodiscard]] static Tensor of_floats(DType dtype, Shape shape, std::span<const double> values);
  [[nodiscard]] static Tensor splat(Shape shape, Scalar value);
  [[nodiscard]] Scalar at(std::int64_t flat_index) const;
};

}  // namespace ingot
