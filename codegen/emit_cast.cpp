// Conversions between element types.
//
// What a processor converts in one instruction is left to it; all else is integer arithmetic of
// our own, since LLVM would call a library. Both give the same bits: rounding to nearest even has
// one result. Floats to integers truncate, saturate and take NaN to 0.
#include <cmath>
#include <limits>

#include "codegen/emit_operations.h"

namespace ingot {
namespace {

struct Caster {
  const Emission& emission;
  llvm::IRBuilder<>& builder;
  const bool fits;

  [[nodiscard]] llvm::Type* like(llvm::Type* scalar, llvm::Value* value) const {
    return with_lanes_of(scalar, value->getType());
  }
  [[nodiscard]] llvm::Value* number(llvm::Value* shape, std::uint64_t value) const {
    return llvm::ConstantInt::get(shape->getType(), value);
  }
  [[nodiscard]] llvm::Value* bits_of_float(llvm::Value* value) const {
    return builder.CreateBitCast(value, like(builder.getInt32Ty(), value));
  }
  [[nodiscard]] llvm::Value* float_of_bits(llvm::Value* bits) const {
    return builder.CreateBitCast(bits, like(builder.getFloatTy(), bits));
  }

  [[nodiscard]] llvm::Value* f32_from_bf16(llvm::Value* value) const;
  [[nodiscard]] llvm::Value* bf16_from_f32(llvm::Value* value) const;
  [[nodiscard]] llvm::Value* f32_from_f16(llvm::Value* value) const;
  [[nodiscard]] llvm::Value* f16_from_f32(llvm::Value* value) const;
  [[nodiscard]] llvm::Value* f32_from_f64_to_odd(llvm::Value* value) const;
  [[nodiscard]] llvm::Value* widen(DType from, llvm::Value* value) const;
  [[nodiscard]] llvm::Value* from_f32(DType to, llvm::Value* value) const;
  [[nodiscard]] llvm::Value* from_f64(DType to, llvm::Value* value) const;
  [[nodiscard]] llvm::Value* float_to_integer(DType to, llvm::Value* value) const;
  [[nodiscard]] llvm::Value* integer_to_float(DType from, DType to, llvm::Value* value) const;
};

llvm::Value* Caster::f32_from_bf16(llvm::Value* value) const {
  llvm::Value* const wide = builder.CreateZExt(value, like(builder.getInt32Ty(), value));
  return float_of_bits(builder.CreateShl(wide, 16));
}

// Adds half of the last place, less one if the kept part is even. A NaN keeps its upper bits and
// becomes quiet.
llvm::Value* Caster::bf16_from_f32(llvm::Value* value) const {
  llvm::Value* const bits = bits_of_float(value);
  llvm::Value* const upper = builder.CreateLShr(bits, 16);
  llvm::Value* const odd = builder.CreateAnd(upper, 1);
  llvm::Value* const bias = builder.CreateAdd(odd, number(odd, 0x7FFF));
  llvm::Value* const rounded = builder.CreateLShr(builder.CreateAdd(bits, bias), 16);
  llvm::Value* const quiet = builder.CreateOr(upper, number(upper, 0x40));
  llvm::Value* const result =
      builder.CreateSelect(builder.CreateFCmpUNO(value, value), quiet, rounded);
  return builder.CreateTrunc(result, like(builder.getInt16Ty(), value));
}

llvm::Value* Caster::f32_from_f16(llvm::Value* value) const {
  if (emission.target.has_f16_conversion) {
    llvm::Value* const half = builder.CreateBitCast(value, like(builder.getHalfTy(), value));
    return builder.CreateFPExt(half, like(builder.getFloatTy(), value));
  }
  llvm::Value* const wide = builder.CreateZExt(value, like(builder.getInt32Ty(), value));
  llvm::Value* const sign = builder.CreateShl(builder.CreateAnd(wide, number(wide, 0x8000)), 16);
  llvm::Value* const magnitude = builder.CreateAnd(wide, number(wide, 0x7FFF));
  llvm::Value* const shifted = builder.CreateShl(magnitude, 13);
  // The exponent moves from bias 15 to 127; infinity and NaN to the top.
  llvm::Value* const normal = builder.CreateAdd(shifted, number(wide, (127 - 15) << 23));
  llvm::Value* const special =
      builder.CreateOr(builder.CreateOr(shifted, number(wide, 0x7F800000)),
                       builder.CreateSelect(builder.CreateICmpUGT(magnitude, number(wide, 0x7C00)),
                                            number(wide, 0x400000), number(wide, 0)));
  // Subnormal halves are small integers times 2^-24, and normal in single precision.
  llvm::Value* const counted = builder.CreateSIToFP(magnitude, like(builder.getFloatTy(), value));
  llvm::Value* const small = bits_of_float(
      builder.CreateFMul(counted, llvm::ConstantFP::get(counted->getType(), 0x1p-24)));
  llvm::Value* bits =
      builder.CreateSelect(builder.CreateICmpULT(magnitude, number(wide, 0x0400)), small, normal);
  bits =
      builder.CreateSelect(builder.CreateICmpUGE(magnitude, number(wide, 0x7C00)), special, bits);
  return float_of_bits(builder.CreateOr(bits, sign));
}

llvm::Value* Caster::f16_from_f32(llvm::Value* value) const {
  if (emission.target.has_f16_conversion) {
    llvm::Value* const half = builder.CreateFPTrunc(value, like(builder.getHalfTy(), value));
    return builder.CreateBitCast(half, like(builder.getInt16Ty(), value));
  }
  llvm::Value* const bits = bits_of_float(value);
  llvm::Value* const sign = builder.CreateAnd(builder.CreateLShr(bits, 16), number(bits, 0x8000));
  llvm::Value* const magnitude = builder.CreateAnd(bits, number(bits, 0x7FFFFFFF));
  // Normal results: drop 13 bits, to nearest even; a carry moves into the exponent, and past the
  // largest number to infinity.
  llvm::Value* const odd = builder.CreateAnd(builder.CreateLShr(magnitude, 13), number(bits, 1));
  llvm::Value* const rounded = builder.CreateAdd(
      builder.CreateAdd(magnitude, odd), number(bits, 0xFFF - (std::uint64_t{127 - 15} << 23)));
  llvm::Value* const normal = builder.CreateLShr(rounded, 13);
  // Subnormal results: adding 0.5 leaves the number's 2^-24 places at the end of the fraction,
  // rounded by the addition.
  llvm::Value* const aligned = bits_of_float(
      builder.CreateFAdd(float_of_bits(magnitude), llvm::ConstantFP::get(value->getType(), 0.5)));
  llvm::Value* const small = builder.CreateSub(aligned, number(bits, 0x3F000000));
  llvm::Value* const nan =
      builder.CreateOr(number(bits, 0x7E00),
                       builder.CreateAnd(builder.CreateLShr(magnitude, 13), number(bits, 0x3FF)));
  llvm::Value* result = builder.CreateSelect(
      builder.CreateICmpULT(magnitude, number(bits, (127 - 14) << 23)), small, normal);
  result = builder.CreateSelect(
      builder.CreateICmpUGE(magnitude, number(bits, std::uint64_t{127 + 16} << 23)),
      number(bits, 0x7C00), result);
  result =
      builder.CreateSelect(builder.CreateICmpUGT(magnitude, number(bits, 0x7F800000)), nan, result);
  return builder.CreateTrunc(builder.CreateOr(result, sign), like(builder.getInt16Ty(), value));
}

// Rounds to single precision so that a second rounding to fewer bits is the right one: what is
// inexact gets an odd last bit.
llvm::Value* Caster::f32_from_f64_to_odd(llvm::Value* value) const {
  llvm::Value* const nearest = builder.CreateFPTrunc(value, like(builder.getFloatTy(), value));
  llvm::Value* const back = builder.CreateFPExt(nearest, value->getType());
  llvm::Value* const bits = bits_of_float(nearest);
  const auto magnitude = [this](llvm::Value* x) {
    return builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  };
  llvm::Value* const away = builder.CreateFCmpOGT(magnitude(back), magnitude(value));
  llvm::Value* const toward_zero =
      builder.CreateSub(bits, builder.CreateZExt(away, bits->getType()));
  llvm::Value* const inexact = builder.CreateFCmpONE(back, value);
  return float_of_bits(builder.CreateOr(toward_zero, builder.CreateZExt(inexact, bits->getType())));
}

// Half and bfloat16 to single; others stay.
llvm::Value* Caster::widen(DType from, llvm::Value* value) const {
  if (from == DType::F16) return f32_from_f16(value);
  if (from == DType::BF16) return f32_from_bf16(value);
  return value;
}

llvm::Value* Caster::from_f32(DType to, llvm::Value* value) const {
  switch (to) {
    case DType::F32: return value;
    case DType::F64: return builder.CreateFPExt(value, like(builder.getDoubleTy(), value));
    case DType::F16: return f16_from_f32(value);
    case DType::BF16: return bf16_from_f32(value);
    default: return float_to_integer(to, value);
  }
}

llvm::Value* Caster::from_f64(DType to, llvm::Value* value) const {
  switch (to) {
    case DType::F32: return builder.CreateFPTrunc(value, like(builder.getFloatTy(), value));
    case DType::F64: return value;
    case DType::F16: return f16_from_f32(f32_from_f64_to_odd(value));
    case DType::BF16: return bf16_from_f32(f32_from_f64_to_odd(value));
    default: return float_to_integer(to, value);
  }
}

llvm::Value* Caster::float_to_integer(DType to, llvm::Value* value) const {
  if (to == DType::Bool) {
    return builder.CreateFCmpUNE(value, llvm::ConstantFP::get(value->getType(), 0.0));
  }
  llvm::Type* const type = like(value_type(builder.getContext(), to), value);
  const auto real = [&](double number) { return llvm::ConstantFP::get(value->getType(), number); };
  if (fits && size_bytes(to) <= 4 && to != DType::U32) {
    llvm::Value* const known =
        builder.CreateSelect(builder.CreateFCmpORD(value, value), value, real(0));
    return builder.CreateTrunc(builder.CreateFPToSI(known, like(builder.getInt32Ty(), value)),
                               type);
  }
  // LLVM saturates vectors lane by lane, with branches.
  if (to == DType::I32 && value->getType()->isVectorTy()) {
    const double least = -0x1p31;
    llvm::Value* const raised =
        builder.CreateSelect(builder.CreateFCmpOGT(value, real(least)), value, real(least));
    llvm::Value* const below = builder.CreateFCmpOLT(raised, real(-least));
    llvm::Value* const safe = builder.CreateSelect(below, raised, real(0));
    llvm::Value* const whole = builder.CreateSelect(
        below, builder.CreateFPToSI(safe, type),
        llvm::ConstantInt::get(type, std::numeric_limits<std::int32_t>::max()));
    return builder.CreateSelect(builder.CreateFCmpORD(value, value), whole,
                                llvm::Constant::getNullValue(type));
  }
  if (size_bytes(to) >= 4) {
    return builder.CreateIntrinsic(
        is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
        {type, value->getType()}, {value});
  }
  // LLVM makes narrow results of vectors lane by lane. Clamped first, they are a plain conversion.
  const int width = 8 * size_bytes(to);
  const double least = is_signed(to) ? -std::ldexp(1.0, width - 1) : 0;
  const double most = least + std::ldexp(1.0, width) - 1;
  llvm::Value* clamped = value;
  if (is_signed(to)) {
    clamped = builder.CreateSelect(builder.CreateFCmpORD(value, value), value, real(0));
  }
  clamped = builder.CreateSelect(builder.CreateFCmpOGT(clamped, real(least)), clamped, real(least));
  clamped = builder.CreateSelect(builder.CreateFCmpOLT(clamped, real(most)), clamped, real(most));
  return builder.CreateTrunc(builder.CreateFPToSI(clamped, like(builder.getInt32Ty(), value)),
                             type);
}

llvm::Value* Caster::integer_to_float(DType from, DType to, llvm::Value* value) const {
  const bool with_sign = is_signed(from);
  const auto convert = [&](llvm::Value* number, llvm::Type* type) {
    type = like(type, number);
    return with_sign ? builder.CreateSIToFP(number, type) : builder.CreateUIToFP(number, type);
  };
  if (to == DType::F32) return convert(value, builder.getFloatTy());
  if (to == DType::F64) return convert(value, builder.getDoubleTy());
  if (size_bytes(from) <= 4) return from_f64(to, convert(value, builder.getDoubleTy()));
  // 64 bits do not fit a double. Twelve places fewer do; what they held survives as one odd bit,
  // far below the places of the result.
  llvm::Value* const shifted =
      with_sign ? builder.CreateAShr(value, 12) : builder.CreateLShr(value, 12);
  llvm::Value* const dropped =
      builder.CreateICmpNE(builder.CreateAnd(value, number(value, 0xFFF)), number(value, 0));
  llvm::Value* const sticky =
      builder.CreateOr(shifted, builder.CreateZExt(dropped, value->getType()));
  llvm::Value* const magnitude =
      with_sign ? builder.CreateBinaryIntrinsic(llvm::Intrinsic::abs, value, builder.getFalse())
                : value;
  llvm::Value* const is_large =
      builder.CreateICmpUGE(magnitude, number(value, std::uint64_t{1} << 52));
  llvm::Value* const large = convert(sticky, builder.getDoubleTy());
  llvm::Value* const scaled =
      builder.CreateFMul(large, llvm::ConstantFP::get(large->getType(), 4096.0));
  llvm::Value* const exact =
      builder.CreateSelect(is_large, scaled, convert(value, builder.getDoubleTy()));
  return from_f64(to, exact);
}

}  // namespace

llvm::Value* emit_cast(const Emission& emission, DType from, DType to, llvm::Value* value,
                       bool fits) {
  if (from == to) return value;
  llvm::IRBuilder<>& builder = emission.builder;
  const Caster caster{emission, builder, fits};
  if (is_float(from)) {
    if (from == DType::F64) return caster.from_f64(to, value);
    return caster.from_f32(to, caster.widen(from, value));
  }
  if (is_float(to)) return caster.integer_to_float(from, to, value);
  if (to == DType::Bool) return builder.CreateIsNotNull(value);
  llvm::Type* const type = caster.like(value_type(builder.getContext(), to), value);
  return is_signed(from) ? builder.CreateSExtOrTrunc(value, type)
                         : builder.CreateZExtOrTrunc(value, type);
}

}  // namespace ingot
