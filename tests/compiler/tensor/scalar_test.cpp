#include "compiler/tensor/scalar.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace ingot {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(HalfConversion, EveryPatternComesBack) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    ASSERT_EQ(f16_from_double(double_from_f16(half)), half);
    ASSERT_EQ(bf16_from_double(double_from_bf16(half)), half);
  }
}

TEST(HalfConversion, KnownValues) {
  EXPECT_EQ(f16_from_double(1.0), 0x3C00);
  EXPECT_EQ(f16_from_double(-2.0), 0xC000);
  EXPECT_EQ(f16_from_double(65504.0), 0x7BFF);
  EXPECT_EQ(f16_from_double(std::ldexp(1.0, -24)), 0x0001);
  EXPECT_EQ(bf16_from_double(1.0), 0x3F80);
  EXPECT_EQ(double_from_f16(0x0001), std::ldexp(1.0, -24));
  EXPECT_EQ(double_from_bf16(0x4049), 3.140625);
}

TEST(HalfConversion, TiesGoToEven) {
  EXPECT_EQ(f16_from_double(1.0 + std::ldexp(1.0, -11)), 0x3C00);  // between ...00 and ...01
  EXPECT_EQ(f16_from_double(1.0 + 3 * std::ldexp(1.0, -11)), 0x3C02);
  EXPECT_EQ(f16_from_double(1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40)), 0x3C01);
  EXPECT_EQ(f16_from_double(std::ldexp(1.0, -25)), 0x0000);
  EXPECT_EQ(f16_from_double(3 * std::ldexp(1.0, -25)), 0x0002);
  EXPECT_EQ(f16_from_double(65519.9), 0x7BFF);
  EXPECT_EQ(f16_from_double(65520.0), 0x7C00);
}

TEST(HalfConversion, MatchesTheMachineForBinary32) {
  // A walk over doubles that are ties, near ties and subnormals of binary32.
  for (int exponent = -160; exponent <= 130; ++exponent) {
    for (const double mantissa : {1.0, 1.0 + std::ldexp(1.0, -24), 1.0 + 3 * std::ldexp(1.0, -24),
                                  1.0 + std::ldexp(1.0, -24) + std::ldexp(1.0, -52), 1.7}) {
      const double value = std::ldexp(mantissa, exponent);
      const auto expected = static_cast<double>(static_cast<float>(value));
      ASSERT_EQ(Scalar::of_float(DType::F32, value).as_double(), expected) << value;
      ASSERT_EQ(Scalar::of_float(DType::F32, -value).as_double(), -expected) << value;
    }
  }
}

TEST(Scalar, MemoryKeepsEveryBitOfANan) {
  for (const std::uint32_t bits : {0x7FC00000u, 0xFFC00001u, 0x7F800001u, 0xFF812345u}) {
    const Scalar scalar = Scalar::load(DType::F32, &bits);
    EXPECT_TRUE(std::isnan(scalar.as_double()));
    std::uint32_t back = 0;
    scalar.store(&back);
    EXPECT_EQ(back, bits);
  }
}

TEST(Scalar, IntegersWrap) {
  EXPECT_EQ(Scalar::of_int(DType::U8, 257).as_int(), 1);
  EXPECT_EQ(Scalar::of_int(DType::U8, -1).as_int(), 255);
  EXPECT_EQ(Scalar::of_int(DType::I8, 200).as_int(), -56);
  EXPECT_EQ(Scalar::of_int(DType::I32, std::int64_t{1} << 40).as_int(), 0);
  EXPECT_EQ(Scalar::of_int(DType::Bool, 2).as_int(), 1);
  EXPECT_EQ(Scalar::of_int(DType::U64, -1).as_double(), std::ldexp(1.0, 64));
}

TEST(Scalar, FloatsSaturateToIntegers) {
  EXPECT_EQ(Scalar::of_float(DType::U8, 255.9).as_int(), 255);
  EXPECT_EQ(Scalar::of_float(DType::U8, 1e9).as_int(), 255);
  EXPECT_EQ(Scalar::of_float(DType::U8, -0.9).as_int(), 0);
  EXPECT_EQ(Scalar::of_float(DType::I8, -128.9).as_int(), -128);
  EXPECT_EQ(Scalar::of_float(DType::I8, -1e9).as_int(), -128);
  EXPECT_EQ(Scalar::of_float(DType::I64, kInfinity).as_int(),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(Scalar::of_float(DType::I64, -kInfinity).as_int(),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(Scalar::of_float(DType::U64, 1e30).bits, ~std::uint64_t{0});
  EXPECT_EQ(Scalar::of_float(DType::I32, std::nan("")).as_int(), 0);
  EXPECT_EQ(Scalar::of_float(DType::Bool, 0.25).as_int(), 1);
}

TEST(Scalar, EqualityIsOfBits) {
  EXPECT_NE(Scalar::of_float(DType::F32, 0.0), Scalar::of_float(DType::F32, -0.0));
  EXPECT_EQ(Scalar::of_float(DType::F32, std::nan("")), Scalar::of_float(DType::F32, std::nan("")));
  EXPECT_NE(Scalar::of_int(DType::I32, 1), Scalar::of_int(DType::I64, 1));
}

TEST(ScalarText, Forms) {
  EXPECT_EQ(to_text(Scalar::of_float(DType::F32, 0.1)), "0.1");
  EXPECT_EQ(to_text(Scalar::of_float(DType::F16, -1.5)), "-1.5");
  EXPECT_EQ(to_text(Scalar::of_float(DType::F64, -kInfinity)), "-inf");
  EXPECT_EQ(to_text(Scalar::of_float(DType::F32, std::nan(""))), "nan");
  EXPECT_EQ(to_text(Scalar::of_float(DType::F32, -0.0)), "-0");
  EXPECT_EQ(to_text(Scalar::of_int(DType::I8, -3)), "-3");
  EXPECT_EQ(to_text(Scalar::of_int(DType::U64, -1)), "18446744073709551615");
  EXPECT_EQ(to_text(Scalar::of_int(DType::Bool, 1)), "true");
}

TEST(ScalarText, ComesBackToTheSameBits) {
  std::vector<Scalar> scalars;
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::F64}) {
    for (const double value : {0.0, -0.0, 0.1, 1.0 / 3, 1e-45, 5e-324, 65504.0, 3.4e38, 1e300,
                               -kInfinity, std::nan(""), -std::nan("")}) {
      scalars.push_back(Scalar::of_float(dtype, value));
    }
  }
  const std::uint32_t signalling = 0x7F800123;
  scalars.push_back(Scalar::load(DType::F32, &signalling));
  for (const std::int64_t value : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}}) {
    for (const DType dtype : {DType::U8, DType::I16, DType::I64, DType::U64, DType::Bool}) {
      scalars.push_back(Scalar::of_int(dtype, value));
    }
  }
  for (const Scalar& scalar : scalars) {
    EXPECT_EQ(scalar_from_text(scalar.dtype, to_text(scalar)), scalar) << to_text(scalar);
  }
}

TEST(ScalarText, RefusesWhatIsNoValueOfTheType) {
  EXPECT_EQ(scalar_from_text(DType::U8, "256"), std::nullopt);
  EXPECT_EQ(scalar_from_text(DType::I32, "1.5"), std::nullopt);
  EXPECT_EQ(scalar_from_text(DType::Bool, "1"), std::nullopt);
  EXPECT_EQ(scalar_from_text(DType::F32, "1x"), std::nullopt);
  EXPECT_EQ(scalar_from_text(DType::F32, "nan:0000000000000001"), std::nullopt);
  EXPECT_EQ(scalar_from_text(DType::F32, ""), std::nullopt);
}

}  // namespace
}  // namespace ingot
