// NumPy's .npy files, versions 1 to 3.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/tensor/tensor.h"

namespace ingot::cli {

// Everything is checked: the header must be exactly a dictionary of descr, fortran_order and shape,
// the data must have exactly the size that follows, bools must be 0 or 1. Fortran order is turned
// into row-major. Big-endian and structured types are Unsupported; bfloat16 is the 2-byte void V2.
[[nodiscard]] Result<Tensor> parse_npy(std::span<const std::byte> bytes, const std::string& file);

// Version 1, or 2 where the header is too long for it.
[[nodiscard]] std::vector<std::byte> encode_npy(DType dtype, const Shape& shape,
                                                std::span<const std::byte> data);

}  // namespace ingot::cli
