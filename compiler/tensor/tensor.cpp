#include "compiler/tensor/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"

namespace ingot {
namespace {

// Bytes for `shape`, filled by value(flat index).
template <typename Value>
Tensor filled(DType dtype, Shape shape, Value value) {
  const auto count = static_cast<std::size_t>(element_count(shape));
  const auto size = static_cast<std::size_t>(size_bytes(dtype));
  std::vector<std::byte> bytes(count * size);
  for (std::size_t i = 0; i < count; ++i) value(i).store(bytes.data() + i * size);
  return Tensor::own(dtype, std::move(shape), std::move(bytes));
}

}  // namespace

std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    INGOT_CHECK(extent >= 0, "a dimension is negative");
    INGOT_CHECK(!__builtin_mul_overflow(count, extent, &count), "a shape has too many elements");
  }
  return count;
}

std::vector<std::int64_t> row_major_strides(const Shape& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

std::string to_text(DType dtype, const Shape& shape) {
  return fmt::format("{}[{}]", name(dtype), fmt::join(shape, ","));
}

Tensor Tensor::own(DType dtype, Shape shape, std::vector<std::byte> bytes) {
  const auto size =
      static_cast<std::size_t>(element_count(shape)) * static_cast<std::size_t>(size_bytes(dtype));
  INGOT_CHECK(bytes.size() == size, "a tensor's bytes do not fit its shape");
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  tensor.bytes = *owner;
  tensor.owner = std::move(owner);
  return tensor;
}

Tensor Tensor::of_ints(DType dtype, Shape shape, std::span<const std::int64_t> values) {
  INGOT_CHECK(static_cast<std::int64_t>(values.size()) == element_count(shape),
              "a tensor's values do not fit its shape");
  return filled(dtype, std::move(shape),
                [&](std::size_t i) { return Scalar::of_int(dtype, values[i]); });
}

Tensor Tensor::of_floats(DType dtype, Shape shape, std::span<const double> values) {
  INGOT_CHECK(static_cast<std::int64_t>(values.size()) == element_count(shape),
              "a tensor's values do not fit its shape");
  return filled(dtype, std::move(shape),
                [&](std::size_t i) { return Scalar::of_float(dtype, values[i]); });
}

Tensor Tensor::splat(Shape shape, Scalar value) {
  return filled(value.dtype, std::move(shape), [&](std::size_t) { return value; });
}

Scalar Tensor::at(std::int64_t flat_index) const {
  INGOT_CHECK(flat_index >= 0 && flat_index < element_count(shape), "an element outside a tensor");
  return Scalar::load(dtype, bytes.data() + flat_index * size_bytes(dtype));
}

}  // namespace ingot
