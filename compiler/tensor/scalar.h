// One constant element, as kernels and graphs carry it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/tensor/dtype.h"

namespace ingot {

// Floats are held as binary64 (exact for every narrower type), integers and bool as 64 bits in
// two's complement. Equality is equality of bits, so -0 and +0 differ and NaN equals itself.
struct Scalar {
  DType dtype = DType::F32;
  std::uint64_t bits = 0;

  // Both take every dtype. A float given to an integer type truncates and saturates, as CastOp.
  [[nodiscard]] static Scalar of_float(DType dtype, double value);      // rounds to dtype first
  [[nodiscard]] static Scalar of_int(DType dtype, std::int64_t value);  // wraps to dtype
  [[nodiscard]] static Scalar zero(DType dtype);
  [[nodiscard]] double as_double() const;     // any dtype
  [[nodiscard]] std::int64_t as_int() const;  // integers and bool
  // Reads or writes the element in its memory form, size_bytes(dtype) bytes.
  [[nodiscard]] static Scalar load(DType dtype, const void* address);
  void store(void* address) const;

  friend bool operator==(const Scalar&, const Scalar&) = default;
  friend auto operator<=>(const Scalar&, const Scalar&) = default;
};

// "1.5", "-3", "true", "inf", "nan"; parses back to the same bits. A NaN other than the positive
// quiet one without payload is "nan:" and its 64 bits in hexadecimal.
[[nodiscard]] std::string to_text(const Scalar& scalar);
[[nodiscard]] std::optional<Scalar> scalar_from_text(DType dtype, std::string_view text);

// IEEE conversions, round to nearest even, independent of the host's features.
[[nodiscard]] std::uint16_t f16_from_double(double value);
[[nodiscard]] double double_from_f16(std::uint16_t bits);
[[nodiscard]] std::uint16_t bf16_from_double(double value);
[[nodiscard]] double double_from_bf16(std::uint16_t bits);

}  // namespace ingot
