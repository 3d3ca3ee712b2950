// Tensors in files: .npy, ONNX TensorProto .pb, or raw .bin.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "compiler/tensor/tensor.h"

namespace ingot::cli {

// By the name's ending, which must be .npy or .pb.
[[nodiscard]] Result<Tensor> read_tensor_file(const std::filesystem::path& path);

// Also takes .bin, which must have exactly the bytes of dtype and shape. The others must have this
// type and shape: nothing is converted. Failures are Malformed and name both.
[[nodiscard]] Result<Tensor> read_tensor_file(const std::filesystem::path& path, DType dtype,
                                              const Shape& shape);

// Whether the name ends as that of a tensor: .npy, .pb or .bin.
[[nodiscard]] bool is_tensor_file(const std::filesystem::path& path);

// FOLDER/STEM.npy, .pb or .bin; Io if there is none.
[[nodiscard]] Result<std::filesystem::path> find_tensor_file(const std::filesystem::path& folder,
                                                             const std::string& stem);

}  // namespace ingot::cli
