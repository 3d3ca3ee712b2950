// float32 tensors as the bytes of .npy files, and back.
#pragma once

#include <string>
#include <vector>

#include "cli/npy.h"

namespace ingot::cli {

inline std::string npy_text(const Shape& shape, const std::vector<double>& values) {
  const Tensor tensor = Tensor::of_floats(DType::F32, shape, values);
  const std::vector<std::byte> file = encode_npy(DType::F32, shape, tensor.bytes);
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

// Empty if it is no .npy file.
inline std::vector<double> npy_values(const std::string& text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  const Result<Tensor> tensor = parse_npy({bytes, text.size()}, "test");
  std::vector<double> values;
  if (!tensor) return values;
  for (std::int64_t i = 0; i < element_count(tensor->shape); ++i) {
    values.push_back(tensor->at(i).as_double());
  }
  return values;
}

}  // namespace ingot::cli
