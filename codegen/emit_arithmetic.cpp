// Scalar operations by the rules of compiler/tensor/scalar_op.def.
//
// Floats: every operation is one IEEE operation, whatever the float policy; no fast-math flag is
// ever set. Half and bfloat16 are computed in single precision and rounded once, which for + - * /
// and sqrt is the correctly rounded result.
#include "codegen/emit_operations.h"

namespace ingot {
namespace {

using llvm::Intrinsic::ID;

bool is_small_float(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; }

llvm::Constant* splat_int(llvm::Type* type, std::uint64_t value) {
  return llvm::ConstantInt::get(type, value, /*isSigned=*/true);
}

// A constant that is no NaN, in all lanes.
bool is_number(llvm::Value* value) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
  if (constant == nullptr) return false;
  if (constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  return number != nullptr && !number->isNaN();
}

// NaN if an operand is NaN. Of equal operands (zeros of either sign) the one that is not the
// constant, else the second: the same on every machine, since the comparison decides and nothing
// else. One instruction on x86-64 against a constant, three otherwise.
llvm::Value* emit_float_extreme(const Emission& emission, bool is_min, llvm::Value* a,
                                llvm::Value* b) {
  llvm::IRBuilder<>& builder = emission.builder;
  const auto wins = [&](llvm::Value* x, llvm::Value* y) {
    return is_min ? builder.CreateFCmpOLT(x, y) : builder.CreateFCmpOGT(x, y);
  };
  if (is_number(b)) std::swap(a, b);
  if (is_number(a)) return builder.CreateSelect(wins(a, b), a, b);
  llvm::Value* const extreme = builder.CreateSelect(wins(a, b), a, b);
  return builder.CreateSelect(builder.CreateFCmpUNO(a, a), a, extreme);
}

// Vectors of f32 by a positive number of ordinary size, without the division unit: the product with
// the reciprocal, corrected by what it is off, is the correctly rounded quotient (Markstein, IA-64
// and Elementary Functions, 2000) unless something underflows. Where the correction is undefined
// the product is infinite or undefined, and right.
llvm::Value* emit_float_quotient(const Emission& emission, DType dtype, bool strict, llvm::Value* a,
                                 llvm::Value* b) {
  llvm::IRBuilder<>& builder = emission.builder;
  llvm::Type* const type = a->getType();
  const auto* splat = llvm::dyn_cast<llvm::Constant>(b);
  if (splat != nullptr && type->isVectorTy()) splat = splat->getSplatValue();
  const auto* divisor = llvm::dyn_cast_or_null<llvm::ConstantFP>(splat);
  if (strict || dtype != DType::F32 || !type->isVectorTy() || !emission.target.has_fma ||
      divisor == nullptr) {
    return builder.CreateFDiv(a, b);
  }
  const float number = divisor->getValueAPF().convertToFloat();
  constexpr float kLargest = 0x1p60F;
  if (!(number < kLargest && number > 1 / kLargest)) return builder.CreateFDiv(a, b);
  const auto fma = [&](llvm::Value* x, llvm::Value* y, llvm::Value* z) {
    return builder.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {x, y, z});
  };
  const double reciprocal = 1 / number;
  llvm::Value* const product = builder.CreateFMul(a, llvm::ConstantFP::get(type, reciprocal));
  llvm::Value* const excess = fma(product, b, builder.CreateFNeg(a));
  llvm::Value* const quotient = fma(excess, llvm::ConstantFP::get(type, -reciprocal), product);
  return builder.CreateSelect(builder.CreateFCmpORD(quotient, quotient), quotient, product);
}

llvm::Value* emit_float_op(const Emission& emission, ScalarOp op, DType dtype, bool strict,
                           llvm::ArrayRef<llvm::Value*> x) {
  llvm::IRBuilder<>& builder = emission.builder;
  const auto unary = [&](ID id) { return builder.CreateUnaryIntrinsic(id, x[0]); };
  switch (op) {
    case ScalarOp::Neg: return builder.CreateFNeg(x[0]);
    case ScalarOp::Abs: return unary(llvm::Intrinsic::fabs);
    case ScalarOp::Sqrt: return unary(llvm::Intrinsic::sqrt);
    case ScalarOp::Floor: return unary(llvm::Intrinsic::floor);
    case ScalarOp::Ceil: return unary(llvm::Intrinsic::ceil);
    case ScalarOp::Trunc: return unary(llvm::Intrinsic::trunc);
    case ScalarOp::Round: return unary(llvm::Intrinsic::roundeven);
    case ScalarOp::IsNan: return builder.CreateFCmpUNO(x[0], x[0]);
    case ScalarOp::Exp:
    case ScalarOp::Log:
    case ScalarOp::Sin:
    case ScalarOp::Cos:
    case ScalarOp::Tanh:
    case ScalarOp::Sigmoid:
    case ScalarOp::SigmoidInSteps:
    case ScalarOp::Erf: return emit_math(emission, op, dtype, strict, x[0]);
    case ScalarOp::Add: return builder.CreateFAdd(x[0], x[1]);
    case ScalarOp::Sub: return builder.CreateFSub(x[0], x[1]);
    case ScalarOp::Mul: return builder.CreateFMul(x[0], x[1]);
    case ScalarOp::Div: return emit_float_quotient(emission, dtype, strict, x[0], x[1]);
    case ScalarOp::Min: return emit_float_extreme(emission, true, x[0], x[1]);
    case ScalarOp::Max: return emit_float_extreme(emission, false, x[0], x[1]);
    case ScalarOp::Eq: return builder.CreateFCmpOEQ(x[0], x[1]);
    case ScalarOp::Ne: return builder.CreateFCmpUNE(x[0], x[1]);
    case ScalarOp::Lt: return builder.CreateFCmpOLT(x[0], x[1]);
    case ScalarOp::Le: return builder.CreateFCmpOLE(x[0], x[1]);
    case ScalarOp::Fma:
      if (!emission.target.has_fma) {
        emission.refuse("a fused multiply-add, which target '" + emission.target.name +
                        "' does not have");
      }
      return builder.CreateIntrinsic(llvm::Intrinsic::fma, {x[0]->getType()}, {x[0], x[1], x[2]});
    case ScalarOp::Select: return builder.CreateSelect(x[0], x[1], x[2]);
    case ScalarOp::Not:
    case ScalarOp::FloorDiv:
    case ScalarOp::FloorMod:
    case ScalarOp::And:
    case ScalarOp::Or:
    case ScalarOp::Xor: break;
  }
  emission.refuse("operation '" + std::string(name(op)) + "' on floats");
  return llvm::PoisonValue::get(x[0]->getType());
}

// a * b + c of halves or bfloat16, rounded once. In double precision the product is exact; a sum
// that is not gets an odd last bit, so that rounding it again cannot fall on a tie that is none.
llvm::Value* emit_small_float_fma(const Emission& emission, DType dtype,
                                  llvm::ArrayRef<llvm::Value*> x) {
  llvm::IRBuilder<>& builder = emission.builder;
  llvm::SmallVector<llvm::Value*, 3> wide;
  for (llvm::Value* operand : x) {
    wide.push_back(emit_cast(emission, dtype, DType::F64, operand));
  }
  llvm::Value* const product = builder.CreateFMul(wide[0], wide[1]);
  llvm::Value* const sum = builder.CreateFAdd(product, wide[2]);
  llvm::Value* const part = builder.CreateFSub(sum, product);
  llvm::Value* const rest =
      builder.CreateFAdd(builder.CreateFSub(product, builder.CreateFSub(sum, part)),
                         builder.CreateFSub(wide[2], part));
  llvm::Type* const integer = with_lanes_of(builder.getInt64Ty(), sum->getType());
  llvm::Value* const bits = builder.CreateBitCast(sum, integer);
  llvm::Value* const zero = llvm::ConstantFP::get(sum->getType(), 0.0);
  llvm::Value* const grows =
      builder.CreateICmpEQ(builder.CreateFCmpOGT(rest, zero), builder.CreateFCmpOGT(sum, zero));
  llvm::Value* const odd =
      builder.CreateSelect(grows, builder.CreateAdd(bits, splat_int(integer, 1)),
                           builder.CreateSub(bits, splat_int(integer, 1)));
  llvm::Value* const is_even =
      builder.CreateICmpEQ(builder.CreateAnd(bits, splat_int(integer, 1)), splat_int(integer, 0));
  // Not ordered: a rest of NaN comes from an infinite or NaN sum, which stays.
  llvm::Value* const is_inexact = builder.CreateFCmpONE(rest, zero);
  llvm::Value* const chosen =
      builder.CreateSelect(builder.CreateAnd(is_inexact, is_even), odd, bits);
  return emit_cast(emission, DType::F64, dtype, builder.CreateBitCast(chosen, sum->getType()));
}

// On the stored bits where that is exact, otherwise through single precision.
llvm::Value* emit_small_float_op(const Emission& emission, ScalarOp op, DType dtype, bool strict,
                                 llvm::ArrayRef<llvm::Value*> x) {
  llvm::IRBuilder<>& builder = emission.builder;
  if (op == ScalarOp::Neg) return builder.CreateXor(x[0], splat_int(x[0]->getType(), 0x8000));
  if (op == ScalarOp::Abs) return builder.CreateAnd(x[0], splat_int(x[0]->getType(), 0x7FFF));
  if (op == ScalarOp::Select) return builder.CreateSelect(x[0], x[1], x[2]);
  if (op == ScalarOp::Fma) return emit_small_float_fma(emission, dtype, x);
  llvm::SmallVector<llvm::Value*, 3> wide;
  for (llvm::Value* operand : x) {
    wide.push_back(emit_cast(emission, dtype, DType::F32, operand));
  }
  llvm::Value* const result = emit_float_op(emission, op, DType::F32, strict, wide);
  if (gives_bool(op)) return result;
  return emit_cast(emission, DType::F32, dtype, result);
}

// Quotient or remainder toward zero; 0 for a divisor of 0. MIN / -1 wraps. Nothing traps, since
// the operands are replaced before the division.
llvm::Value* emit_division(const Emission& emission, bool remainder, bool is_signed, llvm::Value* a,
                           llvm::Value* b) {
  llvm::IRBuilder<>& builder = emission.builder;
  llvm::Type* const type = a->getType();
  llvm::Value* const zero = splat_int(type, 0);
  llvm::Value* const one = splat_int(type, 1);
  llvm::Value* const by_zero = builder.CreateICmpEQ(b, zero);
  llvm::Value* unsafe = by_zero;
  if (is_signed) {
    const llvm::APInt lowest = llvm::APInt::getSignedMinValue(type->getScalarSizeInBits());
    llvm::Value* const overflows =
        builder.CreateAnd(builder.CreateICmpEQ(a, llvm::ConstantInt::get(type, lowest)),
                          builder.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type)));
    unsafe = builder.CreateOr(by_zero, overflows);
  }
  llvm::Value* const divisor = builder.CreateSelect(unsafe, one, b);
  llvm::Value* result = nullptr;
  if (remainder) {
    result = is_signed ? builder.CreateSRem(a, divisor) : builder.CreateURem(a, divisor);
  } else {
    result = is_signed ? builder.CreateSDiv(a, divisor) : builder.CreateUDiv(a, divisor);
  }
  return builder.CreateSelect(by_zero, zero, result);
}

// Toward minus infinity: where the remainder is not zero and has the other sign than the divisor.
llvm::Value* emit_floor_division(const Emission& emission, bool remainder, bool is_signed,
                                 llvm::Value* a, llvm::Value* b) {
  if (!is_signed) return emit_division(emission, remainder, false, a, b);
  llvm::IRBuilder<>& builder = emission.builder;
  llvm::Type* const type = a->getType();
  const auto* constant = llvm::dyn_cast<llvm::Constant>(b);
  if (constant != nullptr && type->isVectorTy()) constant = constant->getSplatValue();
  if (const auto* divisor = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant);
      divisor != nullptr && divisor->getValue().isStrictlyPositive() &&
      divisor->getValue().isPowerOf2()) {
    if (remainder)
      return builder.CreateAnd(a, llvm::ConstantInt::get(type, divisor->getValue() - 1));
    return builder.CreateAShr(a, splat_int(type, divisor->getValue().logBase2()));
  }
  llvm::Value* const zero = splat_int(type, 0);
  llvm::Value* const rest = emit_division(emission, true, true, a, b);
  llvm::Value* const adjust = builder.CreateAnd(
      builder.CreateICmpNE(rest, zero), builder.CreateICmpSLT(builder.CreateXor(rest, b), zero));
  if (remainder) return builder.CreateSelect(adjust, builder.CreateAdd(rest, b), rest);
  llvm::Value* const quotient = emit_division(emission, false, true, a, b);
  return builder.CreateSelect(adjust, builder.CreateSub(quotient, splat_int(type, 1)), quotient);
}

llvm::Value* emit_integer_op(const Emission& emission, ScalarOp op, DType dtype,
                             llvm::ArrayRef<llvm::Value*> x) {
  llvm::IRBuilder<>& builder = emission.builder;
  const bool with_sign = is_signed(dtype);
  switch (op) {
    case ScalarOp::Neg: return builder.CreateNeg(x[0]);
    case ScalarOp::Abs:
      if (!with_sign) return x[0];
      return builder.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x[0], builder.getFalse());
    case ScalarOp::Not: return builder.CreateNot(x[0]);
    case ScalarOp::Add: return builder.CreateAdd(x[0], x[1]);
    case ScalarOp::Sub: return builder.CreateSub(x[0], x[1]);
    case ScalarOp::Mul: return builder.CreateMul(x[0], x[1]);
    case ScalarOp::Div: return emit_division(emission, false, with_sign, x[0], x[1]);
    case ScalarOp::FloorDiv: return emit_floor_division(emission, false, with_sign, x[0], x[1]);
    case ScalarOp::FloorMod: return emit_floor_division(emission, true, with_sign, x[0], x[1]);
    case ScalarOp::Min:
      return builder.CreateBinaryIntrinsic(
          with_sign ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, x[0], x[1]);
    case ScalarOp::Max:
      return builder.CreateBinaryIntrinsic(
          with_sign ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, x[0], x[1]);
    case ScalarOp::And: return builder.CreateAnd(x[0], x[1]);
    case ScalarOp::Or: return builder.CreateOr(x[0], x[1]);
    case ScalarOp::Xor: return builder.CreateXor(x[0], x[1]);
    case ScalarOp::Eq: return builder.CreateICmpEQ(x[0], x[1]);
    case ScalarOp::Ne: return builder.CreateICmpNE(x[0], x[1]);
    case ScalarOp::Lt:
      return with_sign ? builder.CreateICmpSLT(x[0], x[1]) : builder.CreateICmpULT(x[0], x[1]);
    case ScalarOp::Le:
      return with_sign ? builder.CreateICmpSLE(x[0], x[1]) : builder.CreateICmpULE(x[0], x[1]);
    case ScalarOp::Select: return builder.CreateSelect(x[0], x[1], x[2]);
    case ScalarOp::Sqrt:
    case ScalarOp::Floor:
    case ScalarOp::Ceil:
    case ScalarOp::Trunc:
    case ScalarOp::Round:
    case ScalarOp::IsNan:
    case ScalarOp::Exp:
    case ScalarOp::Log:
    case ScalarOp::Sin:
    case ScalarOp::Cos:
    case ScalarOp::Tanh:
    case ScalarOp::Sigmoid:
    case ScalarOp::SigmoidInSteps:
    case ScalarOp::Erf:
    case ScalarOp::Fma: break;
  }
  emission.refuse("operation '" + std::string(name(op)) + "' on integers");
  return llvm::PoisonValue::get(x[0]->getType());
}

// false < true
llvm::Value* emit_bool_op(const Emission& emission, ScalarOp op, llvm::ArrayRef<llvm::Value*> x) {
  llvm::IRBuilder<>& builder = emission.builder;
  switch (op) {
    case ScalarOp::Min: return builder.CreateAnd(x[0], x[1]);
    case ScalarOp::Max: return builder.CreateOr(x[0], x[1]);
    case ScalarOp::Lt: return builder.CreateAnd(builder.CreateNot(x[0]), x[1]);
    case ScalarOp::Le: return builder.CreateOr(builder.CreateNot(x[0]), x[1]);
    default: return emit_integer_op(emission, op, DType::Bool, x);
  }
}

}  // namespace

llvm::Type* value_type(llvm::LLVMContext& context, DType dtype) {
  switch (dtype) {
    case DType::F32: return llvm::Type::getFloatTy(context);
    case DType::F64: return llvm::Type::getDoubleTy(context);
    case DType::Bool: return llvm::Type::getInt1Ty(context);
    default: return llvm::Type::getIntNTy(context, 8 * static_cast<unsigned>(size_bytes(dtype)));
  }
}

llvm::Type* memory_type(llvm::LLVMContext& context, DType dtype) {
  return dtype == DType::Bool ? llvm::Type::getInt8Ty(context) : value_type(context, dtype);
}

llvm::Type* with_lanes_of(llvm::Type* scalar, llvm::Type* like) {
  if (const auto* vector = llvm::dyn_cast<llvm::VectorType>(like)) {
    return llvm::VectorType::get(scalar, vector->getElementCount());
  }
  return scalar;
}

llvm::Constant* constant_value(llvm::LLVMContext& context, const Scalar& scalar) {
  llvm::Type* const type = value_type(context, scalar.dtype);
  switch (scalar.dtype) {
    case DType::F64: {
      const llvm::APFloat value(llvm::APFloat::IEEEdouble(), llvm::APInt(64, scalar.bits));
      return llvm::ConstantFP::get(context, value);
    }
    case DType::F32: {
      std::uint32_t bits = 0;
      scalar.store(&bits);
      const llvm::APFloat value(llvm::APFloat::IEEEsingle(), llvm::APInt(32, bits));
      return llvm::ConstantFP::get(context, value);
    }
    case DType::F16:
    case DType::BF16: {
      std::uint16_t bits = 0;
      scalar.store(&bits);
      return llvm::ConstantInt::get(type, bits);
    }
    default:
      return llvm::ConstantInt::get(type, static_cast<std::uint64_t>(scalar.as_int()),
                                    /*isSigned=*/true);
  }
}

llvm::Value* emit_scalar_op(const Emission& emission, ScalarOp op, DType dtype, bool strict,
                            llvm::ArrayRef<llvm::Value*> operands) {
  if (is_small_float(dtype)) return emit_small_float_op(emission, op, dtype, strict, operands);
  if (is_float(dtype)) return emit_float_op(emission, op, dtype, strict, operands);
  if (dtype == DType::Bool) return emit_bool_op(emission, op, operands);
  return emit_integer_op(emission, op, dtype, operands);
}

}  // namespace ingot
