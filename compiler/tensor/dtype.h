// Element types. The codes equal those of the artifact format (docs/artifact_format.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ingot {

enum class DType : std::uint8_t {
  F32 = 1,
  F16 = 2,
  BF16 = 3,
  F64 = 4,
  U8 = 5,
  I8 = 6,
  I16 = 7,
  I32 = 8,
  I64 = 9,
  Bool = 10,  // one byte, 0 or 1
  U16 = 11,
  U32 = 12,
  U64 = 13,
};

// Size of one element in bytes.
[[nodiscard]] int size_bytes(DType dtype);
[[nodiscard]] bool is_float(DType dtype);
[[nodiscard]] bool is_integer(DType dtype);  // not Bool
[[nodiscard]] bool is_signed(DType dtype);   // signed integers only
// "f32", "u8", "bool" ...; the same words in every text form.
[[nodiscard]] std::string_view name(DType dtype);
[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name);

}  // namespace ingot
