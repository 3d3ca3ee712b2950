// Deterministic test tensors: element i of tensor NAME with seed S depends on nothing else.
#include <cmath>

#include "compiler/compile.h"

namespace ingot {
namespace {

std::uint32_t fnv1a(const std::string& text) {
  std::uint32_t hash = 0x811C9DC5U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193U;
  return hash;
}

// 0 <= result < 1, a multiple of 2^-24.
double unit(std::uint32_t start, std::uint32_t i) {
  std::uint32_t x = start + i * 0x9E3779B9U;
  x ^= x >> 16;
  x *= 0x85EBCA6BU;
  x ^= x >> 13;
  x *= 0xC2B2AE35U;
  x ^= x >> 16;
  return static_cast<double>(x >> 8) / 16777216.0;
}

}  // namespace

std::vector<std::byte> generate_input(const std::string& name, DType dtype, const Shape& shape,
                                      std::uint64_t seed, double lo, double hi) {
  const std::uint32_t start = fnv1a(name) ^ (static_cast<std::uint32_t>(seed) * 0x9E3779B1U);
  const auto count = static_cast<std::size_t>(element_count(shape));
  const auto size = static_cast<std::size_t>(size_bytes(dtype));
  std::vector<std::byte> bytes(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    const double u = unit(start, static_cast<std::uint32_t>(i));
    Scalar value;
    if (dtype == DType::Bool) {
      value = Scalar::of_int(dtype, u >= 0.5 ? 1 : 0);
    } else if (is_float(dtype)) {
      value = Scalar::of_float(dtype, lo + (hi - lo) * u);
    } else {
      value = Scalar::of_int(dtype, static_cast<std::int64_t>(lo + std::floor((hi - lo + 1) * u)));
    }
    value.store(&bytes[i * size]);
  }
  return bytes;
}

}  // namespace ingot
