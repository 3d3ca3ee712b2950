#include "compiler/tensor/scalar.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace ingot {
namespace {

// An IEEE binary format narrower than binary64.
struct Format {
  int exponent_bits;
  int mantissa_bits;
};
constexpr Format kF32 = {8, 23};
constexpr Format kF16 = {5, 10};
constexpr Format kBf16 = {8, 7};

constexpr std::uint64_t kMantissa64 = (std::uint64_t{1} << 52) - 1;
constexpr std::uint64_t kQuietNan = 0x7FF8000000000000;

// Rounds to nearest even, in integers only. NaNs keep their sign and the upper payload.
std::uint64_t narrow(double value, Format format) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int mantissa_bits = format.mantissa_bits;
  const std::uint64_t sign = (bits >> 63) << (format.exponent_bits + mantissa_bits);
  const auto exponent = static_cast<int>((bits >> 52) & 0x7FF);
  const std::uint64_t mantissa = bits & kMantissa64;
  const std::uint64_t infinity = ((std::uint64_t{1} << format.exponent_bits) - 1) << mantissa_bits;

  if (exponent == 0x7FF) {
    if (mantissa == 0) return sign | infinity;
    const std::uint64_t payload = mantissa >> (52 - mantissa_bits);
    const std::uint64_t quiet = std::uint64_t{1} << (mantissa_bits - 1);
    return sign | infinity | (payload != 0 ? payload : quiet);
  }
  if (exponent == 0) return sign;  // far below the smallest subnormal of every narrow format

  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  int target = exponent - 1023 + bias;
  int shift = 52 - mantissa_bits;
  if (target <= 0) {
    shift += 1 - target;
    target = 0;
  }
  if (shift >= 54) return sign;
  const std::uint64_t full = mantissa | (kMantissa64 + 1);
  const std::uint64_t rest = full & ((std::uint64_t{1} << shift) - 1);
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  std::uint64_t kept = full >> shift;
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  // A carry out of the mantissa increments the exponent, as it should.
  const std::uint64_t hidden = target > 0 ? std::uint64_t{1} << mantissa_bits : 0;
  const std::uint64_t result =
      (static_cast<std::uint64_t>(target) << mantissa_bits) + (kept - hidden);
  return sign | (result < infinity ? result : infinity);
}

double widen(std::uint64_t bits, Format format) {
  const int mantissa_bits = format.mantissa_bits;
  const std::uint64_t sign = (bits >> (format.exponent_bits + mantissa_bits)) << 63;
  const std::uint64_t max_exponent = (std::uint64_t{1} << format.exponent_bits) - 1;
  const std::uint64_t exponent = (bits >> mantissa_bits) & max_exponent;
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << mantissa_bits) - 1);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const std::uint64_t wide_mantissa = mantissa << (52 - mantissa_bits);

  if (exponent == max_exponent) {
    return std::bit_cast<double>(sign | (std::uint64_t{0x7FF} << 52) | wide_mantissa);
  }
  if (exponent == 0) {
    const double magnitude = std::ldexp(static_cast<double>(mantissa), 1 - bias - mantissa_bits);
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint64_t wide_exponent = exponent + static_cast<std::uint64_t>(1023 - bias);
  return std::bit_cast<double>(sign | (wide_exponent << 52) | wide_mantissa);
}

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::F32: return widen(narrow(value, kF32), kF32);
    case DType::F16: return widen(narrow(value, kF16), kF16);
    case DType::BF16: return widen(narrow(value, kBf16), kBf16);
    default: return value;
  }
}

std::uint64_t wrap(DType dtype, std::uint64_t bits) {
  if (dtype == DType::Bool) return bits != 0 ? 1 : 0;
  const int spare = 64 - 8 * size_bytes(dtype);
  if (is_signed(dtype)) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << spare) >> spare);
  }
  return (bits << spare) >> spare;
}

// Truncates, saturates, and takes NaN to 0.
std::uint64_t saturate(DType dtype, double value) {
  if (dtype == DType::Bool) return value != 0 ? 1 : 0;
  if (std::isnan(value)) return 0;
  const int bits = 8 * size_bytes(dtype);
  const double truncated = std::trunc(value);
  if (!is_signed(dtype)) {
    if (truncated <= 0) return 0;
    if (truncated >= std::ldexp(1.0, bits)) return wrap(dtype, ~std::uint64_t{0});
    return static_cast<std::uint64_t>(truncated);
  }
  const double limit = std::ldexp(1.0, bits - 1);
  const std::uint64_t lowest = ~std::uint64_t{0} << (bits - 1);
  if (truncated < -limit) return lowest;
  if (truncated >= limit) return ~lowest;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(truncated));
}

template <typename T>
std::optional<T> number_from(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

Scalar Scalar::of_float(DType dtype, double value) {
  if (!is_float(dtype)) return Scalar{dtype, saturate(dtype, value)};
  return Scalar{dtype, std::bit_cast<std::uint64_t>(round_to(dtype, value))};
}

Scalar Scalar::of_int(DType dtype, std::int64_t value) {
  if (dtype == DType::F32) return of_float(dtype, static_cast<double>(static_cast<float>(value)));
  if (is_float(dtype)) return of_float(dtype, static_cast<double>(value));
  return Scalar{dtype, wrap(dtype, static_cast<std::uint64_t>(value))};
}

Scalar Scalar::zero(DType dtype) { return Scalar{dtype, 0}; }

double Scalar::as_double() const {
  if (is_float(dtype)) return std::bit_cast<double>(bits);
  if (dtype == DType::U64) return static_cast<double>(bits);
  return static_cast<double>(static_cast<std::int64_t>(bits));
}

std::int64_t Scalar::as_int() const {
  INGOT_CHECK(!is_float(dtype), "an integer is asked of a float");
  return static_cast<std::int64_t>(bits);
}

Scalar Scalar::load(DType dtype, const void* address) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t memory = 0;
  std::memcpy(&memory, address, static_cast<std::size_t>(size_bytes(dtype)));
  switch (dtype) {
    case DType::F32: return Scalar{dtype, std::bit_cast<std::uint64_t>(widen(memory, kF32))};
    case DType::F16: return Scalar{dtype, std::bit_cast<std::uint64_t>(widen(memory, kF16))};
    case DType::BF16: return Scalar{dtype, std::bit_cast<std::uint64_t>(widen(memory, kBf16))};
    case DType::F64: return Scalar{dtype, memory};
    default: return Scalar{dtype, wrap(dtype, memory)};
  }
}

void Scalar::store(void* address) const {
  std::uint64_t memory = bits;
  switch (dtype) {
    case DType::F32: memory = narrow(as_double(), kF32); break;
    case DType::F16: memory = narrow(as_double(), kF16); break;
    case DType::BF16: memory = narrow(as_double(), kBf16); break;
    default: break;
  }
  std::memcpy(address, &memory, static_cast<std::size_t>(size_bytes(dtype)));
}

std::string to_text(const Scalar& scalar) {
  if (scalar.dtype == DType::Bool) return scalar.bits != 0 ? "true" : "false";
  if (scalar.dtype == DType::U64) return fmt::format("{}", scalar.bits);
  if (!is_float(scalar.dtype)) return fmt::format("{}", scalar.as_int());
  const double value = scalar.as_double();
  if (std::isnan(value)) {
    return scalar.bits == kQuietNan ? "nan" : fmt::format("nan:{:016x}", scalar.bits);
  }
  // The shortest text of the type that holds it: binary32 for all that fit.
  if (scalar.dtype == DType::F64) return fmt::format("{}", value);
  return fmt::format("{}", static_cast<float>(value));
}

std::optional<Scalar> scalar_from_text(DType dtype, std::string_view text) {
  if (dtype == DType::Bool) {
    if (text == "true") return Scalar{dtype, 1};
    if (text == "false") return Scalar{dtype, 0};
    return std::nullopt;
  }
  if (dtype == DType::U64) {
    const auto value = number_from<std::uint64_t>(text);
    return value ? std::optional(Scalar{dtype, *value}) : std::nullopt;
  }
  if (!is_float(dtype)) {
    const auto value = number_from<std::int64_t>(text);
    if (!value || Scalar::of_int(dtype, *value).as_int() != *value) return std::nullopt;
    return Scalar::of_int(dtype, *value);
  }
  constexpr std::string_view kNan = "nan";
  if (text == kNan) return Scalar{dtype, kQuietNan};
  if (text.starts_with("nan:")) {
    std::uint64_t bits = 0;
    const std::string_view digits = text.substr(kNan.size() + 1);
    const auto [stop, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
    if (error != std::errc() || stop != digits.data() + digits.size()) return std::nullopt;
    if (!std::isnan(std::bit_cast<double>(bits))) return std::nullopt;
    return Scalar::of_float(dtype, std::bit_cast<double>(bits));
  }
  if (text.find_first_of("nN") != std::string_view::npos && text != "inf" && text != "-inf") {
    return std::nullopt;
  }
  if (dtype == DType::F64) {
    const auto value = number_from<double>(text);
    return value ? std::optional(Scalar::of_float(dtype, *value)) : std::nullopt;
  }
  const auto value = number_from<float>(text);
  return value ? std::optional(Scalar::of_float(dtype, static_cast<double>(*value))) : std::nullopt;
}

std::uint16_t f16_from_double(double value) {
  return static_cast<std::uint16_t>(narrow(value, kF16));
}
double double_from_f16(std::uint16_t bits) { return widen(bits, kF16); }
std::uint16_t bf16_from_double(double value) {
  return static_cast<std::uint16_t>(narrow(value, kBf16));
}
double double_from_bf16(std::uint16_t bits) { return widen(bits, kBf16); }

}  // namespace ingot
