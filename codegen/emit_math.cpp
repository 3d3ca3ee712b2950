// exp, log, sin, cos, tanh and erf of single and double precision, as plain IEEE operations.
//
// Nothing is called. Looked up are pi/2 for angles so large that more than 64 bits of it matter,
// and, where a target permutes a register by the lanes of another, powers and coefficients. Strict
// nodes use additions and multiplications only, in one order, so that the bits are equal on every
// target; relaxed nodes fuse a multiplication with the addition that follows it where the target
// can. Special values come out of the arithmetic where possible and by selection otherwise; there
// is no branch but the one around large angles. Error bounds: docs/math.md.
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>
#include <vector>

#include "codegen/emit_operations.h"
#include "codegen/math_coefficients.h"

namespace ingot {
namespace {

using llvm::Value;

// What differs between the two types.
struct FloatFormat {
  int fraction_bits;
  std::uint64_t one;         // bits of 1
  std::uint64_t sqrt_half;   // bits of sqrt(1/2)
  double round;              // adding and subtracting it rounds to whole numbers
  std::uint64_t round_bits;  // bits of it
  double least_normal;
  double exp_low, exp_high;  // beyond, e^x is 0 or infinite
  double tanh_high;          // beyond, 2x gives a tanh of 1
  double erf_high;           // beyond, erf is 1
  std::span<const double> ln2, exp, log, tanh, sin, cos, erf_small;
};

constexpr FloatFormat kSingle = {23,      0x3F800000, 0x3F3504F3, 0x1.8p23, 0x4B400000,  0x1p-126,
                                 -104.0,  89.0,       20.0,       4.0,      kLn2F32,     kExpF32,
                                 kLogF32, kTanhF32,   kSinF32,    kCosF32,  kErfSmallF32};
constexpr FloatFormat kDouble = {52,
                                 0x3FF0000000000000,
                                 0x3FE6A09E667F3BCD,
                                 0x1.8p52,
                                 0x4338000000000000,
                                 0x1p-1022,
                                 -746.0,
                                 710.0,
                                 40.0,
                                 6.0,
                                 kLn2F64,
                                 kExpF64,
                                 kLogF64,
                                 kTanhF64,
                                 kSinF64,
                                 kCosF64,
                                 kErfSmallF64};

// Angles above need the long reduction.
constexpr double kLargeSingleAngle = 0x1p21;
constexpr double kLargeDoubleAngle = 0x1p11;
// e^87 and its reciprocal are normal numbers.
constexpr double kSigmoidHigh = 87;
// The range of kSigmoidTopF32.
constexpr double kSigmoidStepsHigh = 18;

enum class Sign { Plus, Minus };

// Powers of two in one register, and what is left of e^x between them.
struct PowerTable {
  std::span<const double> powers;  // 2^(i / size)
  std::span<const double> exp;     // as kExpF32, for |r| <= ln(2) / (2 size)
  llvm::Intrinsic::ID permutation;

  [[nodiscard]] constexpr unsigned size() const { return static_cast<unsigned>(powers.size()); }
  // By which an index is shifted, so that its whole part is added to an exponent.
  [[nodiscard]] constexpr unsigned place() const {
    return static_cast<unsigned>(kSingle.fraction_bits - std::countr_zero(size()));
  }
};

constexpr PowerTable kEighths = {kPowerOfEighthsF32, kExpEighthsF32,
                                 llvm::Intrinsic::x86_avx2_permd};
constexpr PowerTable kSixteenths = {kPowerOfSixteenthsF32, kExpSixteenthsF32,
                                    llvm::Intrinsic::x86_avx512_permvar_si_512};

class MathEmitter {
 public:
  MathEmitter(const Emission& emission, const FloatFormat& format, bool fuses, llvm::Type* type)
      : emission_(emission),
        builder_(emission.builder),
        format_(format),
        fuses_(fuses),
        type_(type),
        integer_(with_lanes_of(
            builder_.getIntNTy(static_cast<unsigned>(type->getScalarSizeInBits())), type)) {}

  Value* exp(Value* x);
  Value* log(Value* x);
  Value* tanh(Value* x);
  Value* sigmoid(Value* x);
  Value* sigmoid_in_steps(Value* x);
  Value* erf(Value* x);
  Value* sin_or_cos(Value* x, bool is_cos);

 private:
  // An angle as quadrant * pi/2 + high + low.
  struct Angle {
    Value* quadrant;  // integer, as wide as its float
    Value* high;
    Value* low;  // null if nothing is left
  };

  [[nodiscard]] bool is_single() const { return &format_ == &kSingle; }
  [[nodiscard]] Value* number(double value) const { return llvm::ConstantFP::get(type_, value); }
  [[nodiscard]] Value* integer(std::uint64_t value) const {
    return llvm::ConstantInt::get(integer_, value);
  }
  [[nodiscard]] Value* bits(Value* x) { return builder_.CreateBitCast(x, integer_); }
  [[nodiscard]] Value* from_bits(Value* x) { return builder_.CreateBitCast(x, type_); }
  [[nodiscard]] Value* magnitude(Value* x) {
    return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  }
  [[nodiscard]] Value* with_sign_of(Value* x, Value* sign) {
    return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, sign);
  }
  // a * b + c
  [[nodiscard]] Value* multiply_add(Value* a, Value* b, Value* c) {
    if (!fuses_) return builder_.CreateFAdd(builder_.CreateFMul(a, b), c);
    return builder_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
  }
  // Of t, or with Sign::Minus of -t.
  [[nodiscard]] Value* polynomial(std::span<const double> coefficients, Value* t,
                                  Sign sign = Sign::Plus) {
    const auto coefficient = [&](std::size_t i) {
      const bool flips = sign == Sign::Minus && i % 2 != 0;
      return llvm::ConstantFP::get(t->getType(), flips ? -coefficients[i] : coefficients[i]);
    };
    Value* sum = coefficient(coefficients.size() - 1);
    for (std::size_t i = coefficients.size() - 1; i-- > 0;) {
      sum = multiply_add(sum, t, coefficient(i));
    }
    return sum;
  }
  // The smaller of x and a constant; NaN stays.
  [[nodiscard]] Value* at_most(Value* x, double bound) {
    return builder_.CreateSelect(builder_.CreateFCmpOLT(number(bound), x), number(bound), x);
  }
  [[nodiscard]] Value* at_least(Value* x, double bound) {
    return builder_.CreateSelect(builder_.CreateFCmpOGT(number(bound), x), number(bound), x);
  }
  [[nodiscard]] Value* power_of_two(Value* exponent) {
    return from_bits(builder_.CreateShl(builder_.CreateAdd(exponent, bias()),
                                        static_cast<std::uint64_t>(format_.fraction_bits)));
  }
  [[nodiscard]] Value* bias() { return integer(is_single() ? 127 : 1023); }

  struct Exponential {
    Value* tail;            // e^x = (1 + tail) * 2^exponent
    Value* fraction;        // 1 + tail
    Value* shifted;         // the exponent stands in the low bits, above those of `round`
    Value* whole_exponent;  // as a float
  };
  Exponential exponential(Value* x, Sign sign, double round, std::span<const double> coefficients);
  [[nodiscard]] Exponential exponential(Value* x, Sign sign, double round) {
    return exponential(x, sign, round, format_.exp);
  }
  [[nodiscard]] Value* exponent(const Exponential& e) {
    return builder_.CreateSub(bits(e.shifted), integer(format_.round_bits));
  }
  [[nodiscard]] bool has_feature(const char* feature) const {
    return std::ranges::find(emission_.target.llvm_features, feature) !=
           emission_.target.llvm_features.end();
  }
  [[nodiscard]] bool has_scaling() const;
  [[nodiscard]] const PowerTable* power_table() const;
  Value* looked_up(const PowerTable& table, std::span<const std::uint32_t> entries, Value* index);
  Value* power_of_table(const PowerTable& table, Value* shifted);
  Value* erf_in_steps(Value* x, const PowerTable& table);
  Value* scaled(const Exponential& e);
  Value* exp_in_range(Value* x, Sign sign = Sign::Plus);
  Angle reduce_single(Value* x);
  Angle reduce_double(Value* x);
  Angle reduce_large(Value* x);
  Value* two_over_pi(Value* index);
  Value* multiply_high(Value* a, Value* b);
  Value* any_lane(Value* condition);
  template <typename Emit>
  Angle replaced_if(Value* condition, Angle usual, Emit emit);

  const Emission& emission_;
  llvm::IRBuilder<>& builder_;
  const FloatFormat& format_;
  const bool fuses_;
  llvm::Type* const type_;
  llvm::Type* const integer_;
};

// y = n ln 2 + r with |r| <= ln(2)/2; e^r = 1 + r + r^2 q(r). n is taken from the low bits of
// y/ln 2 + round, where the addition has rounded it. y is x or -x; then the same with -r, so that
// every operation gives the same bits as after a negation.
MathEmitter::Exponential MathEmitter::exponential(Value* x, Sign sign, double round,
                                                  std::span<const double> coefficients) {
  const double one = sign == Sign::Minus ? -1 : 1;
  Value* const shifted = multiply_add(x, number(one * 0x1.71547652b82fep+0), number(round));
  Value* const n = builder_.CreateFSub(shifted, number(round));
  Value* r = multiply_add(n, number(-one * format_.ln2[0]), x);
  r = multiply_add(n, number(-one * format_.ln2[1]), r);
  Value* const q = polynomial(coefficients, r, sign);
  Value* const linear = sign == Sign::Minus ? builder_.CreateFNeg(r) : r;
  Value* const tail = multiply_add(builder_.CreateFMul(r, r), q, linear);
  return {tail, builder_.CreateFAdd(tail, number(1.0)), shifted, n};
}

// AVX-512 multiplies by a power of two in one instruction, with the one rounding that the product
// has in any case.
bool MathEmitter::has_scaling() const {
  return has_feature("+avx512f") && type_->isVectorTy() && type_->getPrimitiveSizeInBits() == 512;
}

Value* MathEmitter::scaled(const Exponential& e) {
  llvm::Type* const mask = builder_.getIntNTy(is_single() ? 16 : 8);
  return builder_.CreateIntrinsic(is_single() ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_512
                                              : llvm::Intrinsic::x86_avx512_mask_scalef_pd_512,
                                  {},
                                  {e.fraction, e.whole_exponent, e.fraction,
                                   llvm::Constant::getAllOnesValue(mask), builder_.getInt32(4)});
}

// Null where the target permutes no register by the lanes of another, or every bit is promised.
const PowerTable* MathEmitter::power_table() const {
  if (!fuses_ || !is_single()) return nullptr;
  if (has_feature("+avx512f")) return &kSixteenths;
  return has_feature("+avx2") ? &kEighths : nullptr;
}

// entries[index mod their number]: of the register of a table, or of two.
Value* MathEmitter::looked_up(const PowerTable& table, std::span<const std::uint32_t> entries,
                              Value* index) {
  const unsigned size = table.size();
  if (entries.size() > size) {
    Value* const is_high = builder_.CreateICmpSLT(
        builder_.CreateShl(index, std::uint64_t{31} - std::countr_zero(size)), integer(0));
    return builder_.CreateSelect(is_high, looked_up(table, entries.subspan(size), index),
                                 looked_up(table, entries.first(size), index));
  }
  Value* const constants = llvm::ConstantDataVector::get(
      builder_.getContext(), llvm::ArrayRef(entries.data(), entries.size()));
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(index->getType());
  const unsigned lanes = vector != nullptr ? vector->getNumElements() : 1;
  Value* const lane_index =
      vector != nullptr ? index
                        : builder_.CreateInsertElement(
                              llvm::PoisonValue::get(llvm::FixedVectorType::get(integer_, 1)),
                              index, std::uint64_t{0});
  // As many lanes at a time as the register has.
  std::vector<Value*> parts;
  for (unsigned first = 0; first < lanes; first += size) {
    std::vector<int> picked(size, llvm::PoisonMaskElem);
    const unsigned count = std::min(size, lanes - first);
    std::iota(picked.begin(), picked.begin() + count, static_cast<int>(first));
    parts.push_back(builder_.CreateIntrinsic(
        table.permutation, {}, {constants, builder_.CreateShuffleVector(lane_index, picked)}));
  }
  Value* const all = llvm::concatenateVectors(builder_, parts);
  if (vector == nullptr) return builder_.CreateExtractElement(all, std::uint64_t{0});
  std::vector<int> picked(lanes);
  std::iota(picked.begin(), picked.end(), 0);
  return builder_.CreateShuffleVector(all, picked);
}

// 2^(n / size), where the low bits of `shifted` are n. Entries lack what n mod size adds to the
// exponent.
Value* MathEmitter::power_of_table(const PowerTable& table, Value* shifted) {
  std::vector<std::uint32_t> entries;
  for (const double power : table.powers) {
    const auto i = static_cast<std::uint32_t>(entries.size());
    entries.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(power)) -
                      (i << table.place()));
  }
  return from_bits(builder_.CreateAdd(looked_up(table, entries, shifted),
                                      builder_.CreateShl(shifted, table.place())));
}

// e^x or e^-x, for results that are normal numbers.
Value* MathEmitter::exp_in_range(Value* x, Sign sign) {
  if (const PowerTable* const table = power_table()) {
    // x / ln 2 is rounded to a multiple of 1 / size, which stands in the low bits.
    const Exponential e = exponential(x, sign, format_.round / table->size(), table->exp);
    Value* const power = power_of_table(*table, bits(e.shifted));
    return multiply_add(e.tail, power, power);
  }
  if (has_scaling()) return scaled(exponential(x, sign, format_.round));
  if (fuses_ && is_single()) {
    // The bias is part of the constant: a shift makes the power of it. An odd bias rounds ties the
    // other way.
    const Exponential e = exponential(x, sign, format_.round + 127);
    Value* const power = from_bits(
        builder_.CreateShl(bits(e.shifted), static_cast<std::uint64_t>(format_.fraction_bits)));
    return multiply_add(e.tail, power, power);
  }
  const Exponential e = exponential(x, sign, format_.round);
  return builder_.CreateFMul(e.fraction, power_of_two(exponent(e)));
}

// In two steps of half the exponent, so that neither power leaves the range; only the second
// rounds, where the result is subnormal, or gives infinity.
Value* MathEmitter::exp(Value* x) {
  const Exponential e = exponential(at_least(at_most(x, format_.exp_high), format_.exp_low),
                                    Sign::Plus, format_.round);
  if (has_scaling()) return scaled(e);
  Value* const whole = exponent(e);
  Value* const half = builder_.CreateAShr(whole, 1);
  Value* const rest = builder_.CreateSub(whole, half);
  return builder_.CreateFMul(builder_.CreateFMul(e.fraction, power_of_two(half)),
                             power_of_two(rest));
}

// x = 2^k (1 + f) with 1 + f from sqrt(1/2) to sqrt(2).
Value* MathEmitter::log(Value* x) {
  const auto places = static_cast<std::uint64_t>(format_.fraction_bits);
  Value* const is_small = builder_.CreateFCmpOLT(x, number(format_.least_normal));
  Value* const scale = number(is_single() ? 0x1p23 : 0x1p52);
  Value* const normal = builder_.CreateSelect(is_small, builder_.CreateFMul(x, scale), x);
  Value* const offset = builder_.CreateSub(bits(normal), integer(format_.sqrt_half));
  Value* const mask = integer((std::uint64_t{1} << places) - 1);
  Value* const f = builder_.CreateFSub(
      from_bits(builder_.CreateAdd(builder_.CreateAnd(offset, mask), integer(format_.sqrt_half))),
      number(1.0));
  // A small integer becomes a float as the low bits of `round`.
  Value* const exponent = builder_.CreateAShr(offset, places);
  Value* k = builder_.CreateFSub(
      from_bits(builder_.CreateAdd(exponent, integer(format_.round_bits))), number(format_.round));
  k = builder_.CreateSelect(is_small, builder_.CreateFSub(k, number(is_single() ? 23 : 52)), k);

  Value* const square = builder_.CreateFMul(f, f);
  Value* result = nullptr;
  if (is_single()) {
    // f - f^2/2 + f^3 p(f)
    Value* tail = builder_.CreateFMul(builder_.CreateFMul(f, square), polynomial(format_.log, f));
    tail = multiply_add(k, number(format_.ln2[1]), tail);
    tail = multiply_add(square, number(-0.5), tail);
    result = multiply_add(k, number(format_.ln2[0]), builder_.CreateFAdd(f, tail));
  } else {
    // 2 artanh(s) with s = f / (2 + f), written as f - (f^2/2 - s (f^2/2 + R(s^2)))
    Value* const s = builder_.CreateFDiv(f, builder_.CreateFAdd(f, number(2.0)));
    Value* const z = builder_.CreateFMul(s, s);
    Value* const rest = builder_.CreateFMul(z, polynomial(format_.log, z));
    Value* const half = builder_.CreateFMul(square, number(0.5));
    Value* const low = multiply_add(s, builder_.CreateFAdd(half, rest),
                                    builder_.CreateFMul(k, number(format_.ln2[1])));
    Value* const inner = builder_.CreateFSub(builder_.CreateFSub(half, low), f);
    result = builder_.CreateFSub(builder_.CreateFMul(k, number(format_.ln2[0])), inner);
  }
  Value* const infinity = llvm::ConstantFP::getInfinity(type_);
  Value* const nothing = builder_.CreateSelect(builder_.CreateFCmpOEQ(x, number(0.0)),
                                               llvm::ConstantFP::getInfinity(type_, true),
                                               llvm::ConstantFP::getNaN(type_));
  result = builder_.CreateSelect(builder_.CreateFCmpOEQ(x, infinity), infinity, result);
  return builder_.CreateSelect(builder_.CreateFCmpOGT(x, number(0.0)), result, nothing);
}

// Near zero an odd polynomial, elsewhere 1 - 2 / (e^2x + 1).
Value* MathEmitter::tanh(Value* x) {
  Value* const t = magnitude(x);
  Value* const z = builder_.CreateFMul(t, t);
  Value* const small = multiply_add(t, builder_.CreateFMul(z, polynomial(format_.tanh, z)), t);
  Value* const doubled = at_most(builder_.CreateFAdd(t, t), format_.tanh_high);
  Value* const e = exp_in_range(doubled);
  Value* const large = builder_.CreateFSub(
      number(1.0), builder_.CreateFDiv(number(2.0), builder_.CreateFAdd(e, number(1.0))));
  Value* const result =
      builder_.CreateSelect(builder_.CreateFCmpOLT(t, number(0.625)), small, large);
  return with_sign_of(result, x);
}

// Double: from e^-|x|, which keeps results below the least normal number. Single: without them.
Value* MathEmitter::sigmoid(Value* x) {
  if (is_single()) {
    Value* const t = at_least(at_most(x, kSigmoidHigh), -kSigmoidHigh);
    Value* const e = exp_in_range(t, Sign::Minus);
    return builder_.CreateFDiv(number(1.0), builder_.CreateFAdd(e, number(1.0)));
  }
  Value* const e = exp(builder_.CreateFNeg(magnitude(x)));
  Value* const above = builder_.CreateFDiv(number(1.0), builder_.CreateFAdd(e, number(1.0)));
  Value* const below = builder_.CreateFMul(e, above);
  return builder_.CreateSelect(builder_.CreateFCmpOLT(x, number(0.0)), below, above);
}

// 1/2 + x p(x^2) / q(x^2): in steps of 2^-25 below 1/2.
Value* MathEmitter::sigmoid_in_steps(Value* x) {
  Value* const t = at_least(at_most(x, kSigmoidStepsHigh), -kSigmoidStepsHigh);
  Value* const z = builder_.CreateFMul(t, t);
  Value* const p = builder_.CreateFMul(t, polynomial(kSigmoidTopF32, z));
  Value* const quotient = builder_.CreateFDiv(p, polynomial(kSigmoidBottomF32, z));
  return at_most(at_least(builder_.CreateFAdd(quotient, number(0.5)), 0.0), 1.0);
}

// A polynomial around each of 16 centers; around 0 of erf(t) - t.
Value* MathEmitter::erf_in_steps(Value* x, const PowerTable& table) {
  const double step = kErfStepF32[0];
  // Inside of the last piece, where the result is 1.
  Value* const t = at_most(magnitude(x), step * 15.49);
  Value* const shifted = multiply_add(t, number(1 / step), number(format_.round));
  Value* const center = builder_.CreateFSub(shifted, number(format_.round));
  Value* const u = multiply_add(center, number(-step), t);
  Value* sum = nullptr;
  for (std::size_t i = std::size(kErfStepsF32); i-- > 0;) {
    std::vector<std::uint32_t> entries;
    for (const double value : kErfStepsF32[i]) {
      entries.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(value)));
    }
    Value* coefficient = from_bits(looked_up(table, entries, bits(shifted)));
    if (i == 0) {
      Value* const is_first = builder_.CreateFCmpOEQ(center, number(0));
      coefficient = builder_.CreateSelect(is_first, u, coefficient);
    }
    sum = sum == nullptr ? coefficient : multiply_add(sum, u, coefficient);
  }
  return with_sign_of(sum, x);
}

// Near zero t + t p(t^2), elsewhere 1 - e^q(t), where q is the logarithm of erfc.
Value* MathEmitter::erf(Value* x) {
  if (const PowerTable* const table = power_table()) return erf_in_steps(x, *table);
  Value* const t = magnitude(x);
  Value* const z = builder_.CreateFMul(t, t);
  Value* const small = multiply_add(t, polynomial(format_.erf_small, z), t);
  Value* const bounded = at_most(t, format_.erf_high);
  Value* q = nullptr;
  if (is_single()) {
    q = polynomial(kErfLargeF32, builder_.CreateFSub(bounded, number(2.0)));
  } else {
    Value* const middle = polynomial(kErfMiddleF64, builder_.CreateFSub(bounded, number(1.75)));
    Value* const large = polynomial(kErfLargeF64, builder_.CreateFSub(bounded, number(4.0)));
    q = builder_.CreateSelect(builder_.CreateFCmpOLT(bounded, number(2.5)), middle, large);
  }
  Value* const large = builder_.CreateFSub(number(1.0), exp_in_range(q));
  Value* const result = builder_.CreateSelect(builder_.CreateFCmpOLT(t, number(1.0)), small, large);
  return with_sign_of(result, x);
}

Value* MathEmitter::any_lane(Value* condition) {
  return condition->getType()->isVectorTy() ? builder_.CreateOrReduce(condition) : condition;
}

// `usual`, or in the lanes for which `condition` holds what emit() gives; emitted behind a branch
// that is taken if there is such a lane. Works in the middle of a block too.
template <typename Emit>
MathEmitter::Angle MathEmitter::replaced_if(Value* condition, Angle usual, Emit emit) {
  Value* const any = any_lane(condition);
  llvm::BasicBlock* const head = builder_.GetInsertBlock();
  llvm::Function* const function = head->getParent();
  const bool at_end = builder_.GetInsertPoint() == head->end();
  llvm::BasicBlock* tail = nullptr;
  if (at_end) {
    tail = llvm::BasicBlock::Create(builder_.getContext(), "usual", function, head->getNextNode());
  } else {
    tail = head->splitBasicBlock(builder_.GetInsertPoint(), "usual");
    head->getTerminator()->eraseFromParent();
  }
  auto* const rare = llvm::BasicBlock::Create(builder_.getContext(), "rare", function, tail);
  builder_.SetInsertPoint(head);
  builder_.CreateCondBr(any, rare, tail);
  builder_.SetInsertPoint(rare);
  const Angle other = emit();
  const auto chosen = [&](Value* a, Value* b) { return builder_.CreateSelect(condition, a, b); };
  const Angle mixed = {chosen(other.quadrant, usual.quadrant), chosen(other.high, usual.high),
                       usual.low == nullptr ? nullptr : chosen(number(0.0), usual.low)};
  builder_.CreateBr(tail);
  builder_.SetInsertPoint(tail, tail->begin());
  const auto joined = [&](Value* a, Value* b) -> Value* {
    llvm::PHINode* const phi = builder_.CreatePHI(a->getType(), 2);
    phi->addIncoming(a, head);
    phi->addIncoming(b, rare);
    return phi;
  };
  Angle result = {joined(usual.quadrant, mixed.quadrant), joined(usual.high, mixed.high), nullptr};
  if (usual.low != nullptr) result.low = joined(usual.low, mixed.low);
  if (at_end) builder_.SetInsertPoint(tail);
  return result;
}

// In double precision, where one more part of pi/2 is enough for 21 bits of quotient.
MathEmitter::Angle MathEmitter::reduce_single(Value* x) {
  llvm::Type* const wide_type = with_lanes_of(builder_.getDoubleTy(), type_);
  MathEmitter wide(emission_, kDouble, fuses_, wide_type);
  Value* const angle = builder_.CreateFPExt(x, wide_type);
  Value* const shifted =
      wide.multiply_add(angle, wide.number(0x1.45f306dc9c883p-1), wide.number(kDouble.round));
  Value* const n = builder_.CreateFSub(shifted, wide.number(kDouble.round));
  Value* r = wide.multiply_add(n, wide.number(-kHalfPiF32[0]), angle);
  r = wide.multiply_add(n, wide.number(-kHalfPiF32[1]), r);
  const Angle usual = {wide.bits(shifted), r, nullptr};
  Value* const is_large = builder_.CreateFCmpOGE(magnitude(x), number(kLargeSingleAngle));
  const Angle reduced = wide.replaced_if(is_large, usual, [&] { return wide.reduce_large(angle); });
  return {builder_.CreateTrunc(reduced.quadrant, integer_),
          builder_.CreateFPTrunc(reduced.high, type_), nullptr};
}

// pi/2 in three parts; the second subtraction's rounding error is carried along.
MathEmitter::Angle MathEmitter::reduce_double(Value* x) {
  Value* const shifted = multiply_add(x, number(0x1.45f306dc9c883p-1), number(format_.round));
  Value* const n = builder_.CreateFSub(shifted, number(format_.round));
  Value* const first = builder_.CreateFSub(x, builder_.CreateFMul(n, number(kHalfPiF64[0])));
  Value* const second = builder_.CreateFMul(n, number(kHalfPiF64[1]));
  Value* const high = builder_.CreateFSub(first, second);
  Value* const lost = builder_.CreateFSub(builder_.CreateFSub(first, high), second);
  Value* const low = builder_.CreateFSub(lost, builder_.CreateFMul(n, number(kHalfPiF64[2])));
  const Angle usual = {bits(shifted), high, low};
  Value* const is_large = builder_.CreateFCmpOGE(magnitude(x), number(kLargeDoubleAngle));
  return replaced_if(is_large, usual, [&] { return reduce_large(x); });
}

// Words of 2/pi, one load per lane.
Value* MathEmitter::two_over_pi(Value* index) {
  llvm::Module& module = *builder_.GetInsertBlock()->getModule();
  constexpr const char* kName = "two_over_pi";
  llvm::GlobalVariable* table = module.getNamedGlobal(kName);
  if (table == nullptr) {
    std::vector<std::uint64_t> words(std::begin(kTwoOverPi), std::end(kTwoOverPi));
    llvm::Constant* const values = llvm::ConstantDataArray::get(builder_.getContext(), words);
    table = new llvm::GlobalVariable(module, values->getType(), /*isConstant=*/true,
                                     llvm::GlobalValue::PrivateLinkage, values, kName);
    table->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  }
  const auto word = [&](Value* at) -> Value* {
    return builder_.CreateLoad(builder_.getInt64Ty(),
                               builder_.CreateGEP(builder_.getInt64Ty(), table, at));
  };
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(index->getType());
  if (vector == nullptr) return word(index);
  Value* lanes = llvm::PoisonValue::get(index->getType());
  for (std::uint64_t lane = 0; lane < vector->getNumElements(); ++lane) {
    lanes =
        builder_.CreateInsertElement(lanes, word(builder_.CreateExtractElement(index, lane)), lane);
  }
  return lanes;
}

// Upper half of a product of 64 bits by 64 bits, from four products of 32 by 32.
Value* MathEmitter::multiply_high(Value* a, Value* b) {
  Value* const mask = integer(0xFFFFFFFF);
  const auto low = [&](Value* x) { return builder_.CreateAnd(x, mask); };
  const auto high = [&](Value* x) { return builder_.CreateLShr(x, 32); };
  Value* const corner = builder_.CreateMul(low(a), low(b));
  Value* const cross = builder_.CreateAdd(builder_.CreateMul(high(a), low(b)), high(corner));
  Value* const middle = builder_.CreateAdd(builder_.CreateMul(low(a), high(b)), low(cross));
  return builder_.CreateAdd(builder_.CreateAdd(builder_.CreateMul(high(a), high(b)), high(cross)),
                            high(middle));
}

// |x| = m 2^e with a whole m. Of 2/pi only the bits matter that stand from 2 * 2^-e downward: those
// above give multiples of four quadrants. 192 of them times m leave the quadrant and 126 bits of
// the fraction, however many of them cancel (a double never comes nearer to a multiple of pi/2 than
// 2^-62 or so).
MathEmitter::Angle MathEmitter::reduce_large(Value* x) {
  Value* const positive = bits(magnitude(x));
  Value* const exponent = builder_.CreateLShr(positive, 52);
  Value* const m =
      builder_.CreateOr(builder_.CreateAnd(positive, integer((std::uint64_t{1} << 52) - 1)),
                        integer(std::uint64_t{1} << 52));
  // Bit 62 + e, e = exponent - 1075, counted from the most significant of the table.
  Value* position = builder_.CreateSub(exponent, integer(1075 - 62));
  position = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, position, integer(0));
  Value* const index = builder_.CreateLShr(position, 6);
  Value* const shift = builder_.CreateAnd(position, integer(63));
  std::vector<Value*> words;
  for (std::uint64_t i = 0; i < 4; ++i) {
    words.push_back(two_over_pi(builder_.CreateAdd(index, integer(i))));
  }
  const auto window = [&](std::size_t i) {
    Value* const carried = builder_.CreateLShr(builder_.CreateLShr(words[i + 1], integer(1)),
                                               builder_.CreateSub(integer(63), shift));
    return builder_.CreateOr(builder_.CreateShl(words[i], shift), carried);
  };
  Value* const v0 = window(0);
  Value* const v1 = window(1);
  Value* const v2 = window(2);
  Value* const product = builder_.CreateMul(m, v1);
  Value* const low = builder_.CreateAdd(product, multiply_high(m, v2));
  Value* const carry = builder_.CreateZExt(builder_.CreateICmpULT(low, product), integer_);
  Value* high = builder_.CreateAdd(builder_.CreateMul(m, v0), multiply_high(m, v1));
  high = builder_.CreateAdd(high, carry);
  Value* quadrant =
      builder_.CreateLShr(builder_.CreateAdd(high, integer(std::uint64_t{1} << 61)), 62);
  high = builder_.CreateSub(high, builder_.CreateShl(quadrant, 62));
  Value* const fraction =
      builder_.CreateFAdd(builder_.CreateSIToFP(high, type_),
                          builder_.CreateFMul(builder_.CreateUIToFP(low, type_), number(0x1p-64)));
  Value* angle = builder_.CreateFMul(fraction, number(0x1.921fb54442d18p+0 * 0x1p-62));
  Value* const is_negative = builder_.CreateFCmpOLT(x, number(0.0));
  quadrant = builder_.CreateSelect(is_negative, builder_.CreateNeg(quadrant), quadrant);
  angle = builder_.CreateSelect(is_negative, builder_.CreateFNeg(angle), angle);
  return {quadrant, angle, nullptr};
}

Value* MathEmitter::sin_or_cos(Value* x, bool is_cos) {
  const Angle angle = is_single() ? reduce_single(x) : reduce_double(x);
  Value* const r = angle.high;
  Value* const z = builder_.CreateFMul(r, r);
  // r + r^3 s(z), and 1 - z/2 + z^2 c(z)
  Value* sine_tail = builder_.CreateFMul(builder_.CreateFMul(r, z), polynomial(format_.sin, z));
  Value* cosine_tail = builder_.CreateFMul(builder_.CreateFMul(z, z), polynomial(format_.cos, z));
  if (angle.low != nullptr) {
    sine_tail = builder_.CreateFAdd(sine_tail, angle.low);
    cosine_tail = builder_.CreateFSub(cosine_tail, builder_.CreateFMul(r, angle.low));
  }
  Value* const sine = builder_.CreateFAdd(r, sine_tail);
  // What 1 - z/2 loses by rounding is added again.
  Value* const half = builder_.CreateFMul(z, number(0.5));
  Value* const start = builder_.CreateFSub(number(1.0), half);
  Value* const lost = builder_.CreateFSub(builder_.CreateFSub(number(1.0), start), half);
  Value* const cosine = builder_.CreateFAdd(start, builder_.CreateFAdd(lost, cosine_tail));

  Value* const quadrant = is_cos ? builder_.CreateAdd(angle.quadrant, integer(1)) : angle.quadrant;
  Value* const is_odd = builder_.CreateICmpNE(builder_.CreateAnd(quadrant, integer(1)), integer(0));
  Value* const turn = builder_.CreateShl(builder_.CreateAnd(quadrant, integer(2)),
                                         static_cast<std::uint64_t>(is_single() ? 30 : 62));
  Value* result = builder_.CreateSelect(is_odd, cosine, sine);
  result = from_bits(builder_.CreateXor(bits(result), turn));
  if (!is_cos) {
    result = builder_.CreateSelect(builder_.CreateFCmpOEQ(x, number(0.0)), x, result);
  }
  // Infinity minus itself, and NaN, are NaN.
  Value* const is_finite =
      builder_.CreateFCmpOLT(magnitude(x), llvm::ConstantFP::getInfinity(type_));
  return builder_.CreateSelect(is_finite, result, builder_.CreateFSub(x, x));
}

}  // namespace

Value* emit_math(const Emission& emission, ScalarOp op, DType dtype, bool strict, Value* value) {
  const FloatFormat& format = dtype == DType::F64 ? kDouble : kSingle;
  MathEmitter math(emission, format, !strict && emission.target.has_fma, value->getType());
  switch (op) {
    case ScalarOp::Exp: return math.exp(value);
    case ScalarOp::Log: return math.log(value);
    case ScalarOp::Sin: return math.sin_or_cos(value, false);
    case ScalarOp::Cos: return math.sin_or_cos(value, true);
    case ScalarOp::Tanh: return math.tanh(value);
    case ScalarOp::Sigmoid: return math.sigmoid(value);
    case ScalarOp::SigmoidInSteps:
      return dtype == DType::F64 ? math.sigmoid(value) : math.sigmoid_in_steps(value);
    case ScalarOp::Erf: return math.erf(value);
    default: break;
  }
  emission.refuse("operation '" + std::string(name(op)) + "' as a mathematical function");
  return value;
}

}  // namespace ingot
