#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "compiler/interpreter_runner.h"
#include "compiler/kernel/kernel.h"

namespace ingot {
namespace {

RangedKernel ranged(std::string_view text) {
  auto kernel = parse_ranged_kernel(text);
  if (!kernel) {
    ADD_FAILURE() << kernel.error().diagnostics.front().message;
    return {};
  }
  return std::move(*kernel);
}

ScheduledKernel scheduled(std::string_view text) {
  auto kernel = parse_scheduled_kernel(text);
  if (!kernel) {
    ADD_FAILURE() << kernel.error().diagnostics.front().message;
    return {};
  }
  return std::move(*kernel);
}

// Buffers of a kernel, zero at first.
class Memory {
 public:
  explicit Memory(const std::vector<KernelParameter>& parameters) : parameters_(parameters) {
    for (const KernelParameter& parameter : parameters) {
      buffers_.emplace_back(static_cast<std::size_t>(
          element_count(parameter.layout, parameter.shape) * size_bytes(parameter.dtype)));
    }
  }

  void set(std::size_t parameter, const std::vector<double>& values) {
    const DType dtype = parameters_[parameter].dtype;
    for (std::size_t i = 0; i < values.size(); ++i) {
      Scalar::of_float(dtype, values[i]).store(at(parameter, i));
    }
  }
  void set_ints(std::size_t parameter, const std::vector<std::int64_t>& values) {
    const DType dtype = parameters_[parameter].dtype;
    for (std::size_t i = 0; i < values.size(); ++i) {
      Scalar::of_int(dtype, values[i]).store(at(parameter, i));
    }
  }
  std::vector<double> get(std::size_t parameter) {
    std::vector<double> values;
    const DType dtype = parameters_[parameter].dtype;
    const std::size_t count =
        buffers_[parameter].size() / static_cast<std::size_t>(size_bytes(dtype));
    for (std::size_t i = 0; i < count; ++i) {
      values.push_back(Scalar::load(dtype, at(parameter, i)).as_double());
    }
    return values;
  }
  std::vector<std::byte*> pointers() {
    std::vector<std::byte*> result;
    for (auto& buffer : buffers_) result.push_back(buffer.data());
    return result;
  }

 private:
  std::byte* at(std::size_t parameter, std::size_t i) {
    return buffers_[parameter].data() +
           i * static_cast<std::size_t>(size_bytes(parameters_[parameter].dtype));
  }

  std::vector<KernelParameter> parameters_;
  std::vector<std::vector<std::byte>> buffers_;
};

template <typename Kernel>
InterpreterResult run(const Kernel& kernel, Memory& memory) {
  const auto result = interpret(kernel, memory.pointers());
  if (!result) {
    ADD_FAILURE() << result.error().diagnostics.front().message;
    return {};
  }
  return *result;
}

template <typename Kernel>
std::string failure_of(const Kernel& kernel) {
  Memory memory(kernel.parameters);
  const auto result = interpret(kernel, memory.pointers());
  if (result) return "no failure";
  EXPECT_EQ(result.error().exit, ExitCode::Internal);
  return result.error().diagnostics.front().message;
}

std::vector<double> numbers(std::size_t count, double scale = 1) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = scale * (static_cast<double>(i * 7 % 23) - 11) / 4;
  }
  return values;
}

// --- operations

// One operation on operands of `from`, given as exact values.
Scalar evaluate(ScalarOp op, DType from, const std::vector<Scalar>& operands) {
  RangedKernel kernel;
  kernel.name = "op";
  std::vector<ExprId> ids;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    kernel.parameters.push_back(
        {"x" + std::to_string(i), operands[i].dtype, {}, Layout::row_major(0), Access::Read});
    ids.push_back(kernel.pool.load(static_cast<std::uint32_t>(i), operands[i].dtype, {}));
  }
  const ExprId value = kernel.pool.scalar(op, ids);
  const DType result = kernel.pool[value].dtype;
  EXPECT_EQ(result, gives_bool(op) ? DType::Bool : from);
  kernel.parameters.push_back({"y", result, {}, Layout::row_major(0), Access::Write});
  kernel.stores.push_back({static_cast<std::uint32_t>(operands.size()), {}, value});
  std::vector<std::array<std::byte, 8>> memory(operands.size() + 1);
  std::vector<std::byte*> pointers;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (i < operands.size()) operands[i].store(memory[i].data());
    pointers.push_back(memory[i].data());
  }
  const auto done = interpret(kernel, pointers);
  if (!done) ADD_FAILURE() << done.error().diagnostics.front().message;
  return Scalar::load(result, memory.back().data());
}

double float_of(ScalarOp op, DType dtype, std::initializer_list<double> values) {
  std::vector<Scalar> operands;
  for (const double value : values) operands.push_back(Scalar::of_float(dtype, value));
  return evaluate(op, dtype, operands).as_double();
}

std::int64_t int_of(ScalarOp op, DType dtype, std::initializer_list<std::int64_t> values) {
  std::vector<Scalar> operands;
  for (const std::int64_t value : values) operands.push_back(Scalar::of_int(dtype, value));
  return evaluate(op, dtype, operands).as_int();
}

TEST(InterpreterOperations, FloatsRoundOnceToTheirType) {
  EXPECT_EQ(float_of(ScalarOp::Add, DType::F32, {16777216, 1}), 16777216);
  EXPECT_EQ(float_of(ScalarOp::Add, DType::F64, {16777216, 1}), 16777217);
  EXPECT_EQ(float_of(ScalarOp::Div, DType::F32, {1, 3}), static_cast<double>(1.0F / 3.0F));
  EXPECT_EQ(float_of(ScalarOp::Add, DType::F16, {2048, 1}), 2048);
  EXPECT_EQ(float_of(ScalarOp::Add, DType::F16, {2048, 3}), 2052);
  EXPECT_EQ(float_of(ScalarOp::Mul, DType::F16, {300, 300}),
            std::numeric_limits<double>::infinity());
  EXPECT_EQ(float_of(ScalarOp::Add, DType::BF16, {256, 1}), 256);
  EXPECT_EQ(float_of(ScalarOp::Round, DType::F32, {2.5}), 2);
  EXPECT_EQ(float_of(ScalarOp::Round, DType::F32, {-3.5}), -4);
  EXPECT_EQ(float_of(ScalarOp::Sqrt, DType::F32, {2}), static_cast<double>(std::sqrt(2.0F)));
}

TEST(InterpreterOperations, FmaRoundsOnce) {
  const double e = std::ldexp(1.0, -12);
  // (1 + e)^2 - (1 + 2e) = e^2, lost if the product is rounded first.
  EXPECT_EQ(float_of(ScalarOp::Fma, DType::F32, {1 + e, 1 + e, -(1 + 2 * e)}), e * e);
  const float a = 1 + 0x1p-23F;
  const float b = 1 + 0x1p-22F;
  const float c = 0x1p-60F;
  EXPECT_EQ(float_of(ScalarOp::Fma, DType::F32, {a, b, c}), static_cast<double>(std::fma(a, b, c)));
  // The product is half way between two halves; the small addend decides.
  EXPECT_EQ(float_of(ScalarOp::Fma, DType::F16, {1 + 0x1p-10, 2049.0 / 2048 - 0x1p-11, 0}),
            1 + 0x1p-10);
  EXPECT_EQ(float_of(ScalarOp::Fma, DType::BF16, {257.0 / 128 - 1.0 / 128, 1, 0x1p-100}), 2);
  EXPECT_EQ(float_of(ScalarOp::Fma, DType::BF16, {1 + 0x1p-7, 0.5, 0x1p-9}), 0.5 + 0x1p-7);
  // 9 * 29 lies half way between two neighbours in bf16; the tiny addend decides.
  EXPECT_EQ(float_of(ScalarOp::Fma, DType::BF16, {9, 29, 0}), 260);
  EXPECT_EQ(float_of(ScalarOp::Fma, DType::BF16, {9, 29, 0x1p-120}), 262);
  EXPECT_EQ(float_of(ScalarOp::Fma, DType::BF16, {7, 37, 0}), 260);
  EXPECT_EQ(float_of(ScalarOp::Fma, DType::BF16, {7, 37, -0x1p-120}), 258);
}

TEST(InterpreterOperations, NanAndSignedZeros) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ScalarOp op : {ScalarOp::Min, ScalarOp::Max}) {
    EXPECT_TRUE(std::isnan(float_of(op, DType::F32, {nan, 1})));
    EXPECT_TRUE(std::isnan(float_of(op, DType::F32, {1, nan})));
  }
  EXPECT_TRUE(std::signbit(float_of(ScalarOp::Min, DType::F32, {0.0, -0.0})));
  EXPECT_FALSE(std::signbit(float_of(ScalarOp::Max, DType::F32, {-0.0, 0.0})));
  const auto truth = [&](ScalarOp op, double a, double b) {
    return evaluate(op, DType::F32,
                    {Scalar::of_float(DType::F32, a), Scalar::of_float(DType::F32, b)})
        .as_int();
  };
  EXPECT_EQ(truth(ScalarOp::Eq, nan, nan), 0);
  EXPECT_EQ(truth(ScalarOp::Ne, nan, nan), 1);
  EXPECT_EQ(truth(ScalarOp::Lt, nan, 1), 0);
  EXPECT_EQ(truth(ScalarOp::Eq, 0.0, -0.0), 1);
  EXPECT_EQ(evaluate(ScalarOp::IsNan, DType::F16, {Scalar::of_float(DType::F16, nan)}).as_int(), 1);
}

TEST(InterpreterOperations, IntegersWrapAndNeverTrap) {
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(int_of(ScalarOp::Add, DType::I8, {127, 1}), -128);
  EXPECT_EQ(int_of(ScalarOp::Mul, DType::U8, {16, 17}), 16);
  EXPECT_EQ(int_of(ScalarOp::Sub, DType::U32, {0, 1}), 0xFFFFFFFF);
  EXPECT_EQ(int_of(ScalarOp::Neg, DType::I64, {lowest}), lowest);
  EXPECT_EQ(int_of(ScalarOp::Abs, DType::I8, {-128}), -128);
  EXPECT_EQ(int_of(ScalarOp::Abs, DType::U8, {200}), 200);
  EXPECT_EQ(int_of(ScalarOp::Div, DType::I32, {-7, 2}), -3);
  EXPECT_EQ(int_of(ScalarOp::FloorDiv, DType::I32, {-7, 2}), -4);
  EXPECT_EQ(int_of(ScalarOp::FloorMod, DType::I32, {-7, 2}), 1);
  EXPECT_EQ(int_of(ScalarOp::FloorMod, DType::I32, {7, -2}), -1);
  for (const ScalarOp op : {ScalarOp::Div, ScalarOp::FloorDiv, ScalarOp::FloorMod}) {
    EXPECT_EQ(int_of(op, DType::I64, {5, 0}), 0);
    EXPECT_EQ(int_of(op, DType::U64, {5, 0}), 0);
  }
  EXPECT_EQ(int_of(ScalarOp::Div, DType::I64, {lowest, -1}), lowest);
  EXPECT_EQ(int_of(ScalarOp::FloorMod, DType::I64, {lowest, -1}), 0);
  EXPECT_EQ(int_of(ScalarOp::Div, DType::U64, {-1, 2}), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(int_of(ScalarOp::Max, DType::U64, {-1, 2}), -1);
  EXPECT_EQ(int_of(ScalarOp::Lt, DType::U64, {2, -1}), 1);
  EXPECT_EQ(int_of(ScalarOp::Lt, DType::I64, {2, -1}), 0);
  EXPECT_EQ(int_of(ScalarOp::Not, DType::U8, {0x0F}), 0xF0);
  EXPECT_EQ(int_of(ScalarOp::Not, DType::Bool, {1}), 0);
  EXPECT_EQ(int_of(ScalarOp::Xor, DType::I16, {-1, 1}), -2);
  EXPECT_EQ(evaluate(ScalarOp::Select, DType::F32,
                     {Scalar::of_int(DType::Bool, 1), Scalar::of_float(DType::F32, 2),
                      Scalar::of_float(DType::F32, 3)})
                .as_double(),
            2);
}

Scalar cast(Scalar value, DType to) {
  RangedKernel kernel;
  kernel.name = "cast";
  kernel.parameters.push_back({"x", value.dtype, {}, Layout::row_major(0), Access::Read});
  kernel.parameters.push_back({"y", to, {}, Layout::row_major(0), Access::Write});
  kernel.stores.push_back({1, {}, kernel.pool.cast(kernel.pool.load(0, value.dtype, {}), to)});
  std::array<std::byte, 8> in{};
  std::array<std::byte, 8> out{};
  value.store(in.data());
  const std::array<std::byte*, 2> pointers = {in.data(), out.data()};
  EXPECT_TRUE(interpret(kernel, pointers).has_value());
  return Scalar::load(to, out.data());
}

TEST(InterpreterOperations, Casts) {
  const auto from_float = [](double value, DType to) {
    return cast(Scalar::of_float(DType::F32, value), to).as_int();
  };
  EXPECT_EQ(from_float(-2.9, DType::I32), -2);
  EXPECT_EQ(from_float(300, DType::U8), 255);
  EXPECT_EQ(from_float(-1, DType::U8), 0);
  EXPECT_EQ(from_float(-1e30, DType::I8), -128);
  EXPECT_EQ(from_float(1e30, DType::I64), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(from_float(std::numeric_limits<double>::quiet_NaN(), DType::I32), 0);
  EXPECT_EQ(from_float(std::numeric_limits<double>::quiet_NaN(), DType::Bool), 1);
  EXPECT_EQ(from_float(-0.0, DType::Bool), 0);
  const auto from_int = [](std::int64_t value, DType to) {
    return cast(Scalar::of_int(DType::I64, value), to);
  };
  EXPECT_EQ(from_int(300, DType::U8).as_int(), 44);
  EXPECT_EQ(from_int(-1, DType::U32).as_int(), 0xFFFFFFFF);
  EXPECT_EQ(from_int(256, DType::Bool).as_int(), 1);
  EXPECT_EQ(from_int((1 << 24) + 1, DType::F32).as_double(), 1 << 24);
  // Rounded to binary64 first these would be ties.
  const std::int64_t tie = std::int64_t{1} << 62 | std::int64_t{1} << 38;
  EXPECT_EQ(from_int(tie + 1, DType::F32).as_double(), std::ldexp(1.0, 62) + std::ldexp(1.0, 39));
  const std::int64_t tie16 = std::int64_t{1} << 62 | std::int64_t{1} << 54;
  EXPECT_EQ(from_int(tie16, DType::BF16).as_double(), std::ldexp(1.0, 62));
  EXPECT_EQ(from_int(tie16 + 1, DType::BF16).as_double(),
            std::ldexp(1.0, 62) + std::ldexp(1.0, 55));
  EXPECT_EQ(from_int(-(tie16 + 1), DType::BF16).as_double(),
            -std::ldexp(1.0, 62) - std::ldexp(1.0, 55));
  EXPECT_EQ(cast(Scalar{DType::U64, ~std::uint64_t{0}}, DType::F64).as_double(),
            std::ldexp(1.0, 64));
}

// --- whole kernels

constexpr std::string_view kRangedProduct = R"(ranged kernel matmul
read a: f32[5,8] row
read b: f32[8,16] order 1,0
write c: f32[5,16] order 0,1 block 1x8 halo 0:1+0
range i: 5
range j: 16
reduce k: 8
store c[i, j] = sum(mul(load a[i, k], load b[k, j]) over k)
)";

// b is column-major, c is [1+5][2][8] with one row of halo.
constexpr std::string_view kScheduledProduct = R"(scheduled kernel matmul
read a: f32[5,8] row
read b: f32[8,16] order 1,0
write c: f32[5,16] order 0,1 block 1x8 halo 0:1+0
register acc: f32[2][8]
parallel i: 5 {
  unroll j: 2 {
    vector l: 8 {
      set acc[j, l] = f32 0
    }
  }
  for k: 8 {
    %0 = load a[i * 8 + k]
    unroll j: 2 {
      vector l: 8 {
        set acc[j, l] = add(acc[j, l], mul(%0, load b[(j * 8 + l) * 8 + k]))
      }
    }
  }
  unroll j: 2 {
    vector l: 8 {
      store c[(i + 1) * 16 + j * 8 + l] = acc[j, l]
    }
  }
}
)";

TEST(Interpreter, RangedProductGivesHandValues) {
  const RangedKernel kernel = ranged(kRangedProduct);
  Memory memory(kernel.parameters);
  const std::vector<double> a = numbers(40);
  const std::vector<double> b = numbers(128, 2);
  memory.set(0, a);
  memory.set(1, b);
  run(kernel, memory);
  const std::vector<double> c = memory.get(2);
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = 0; j < 16; ++j) {
      double expected = 0;
      for (std::size_t k = 0; k < 8; ++k) expected += a[i * 8 + k] * b[j * 8 + k];
      EXPECT_EQ(c[(i + 1) * 16 + j], expected);
    }
  }
  for (std::size_t j = 0; j < 16; ++j) EXPECT_EQ(c[j], 0) << "the halo is not written";
}

TEST(Interpreter, BothFormsOfAProductAgree) {
  const RangedKernel before = ranged(kRangedProduct);
  const ScheduledKernel after = scheduled(kScheduledProduct);
  ASSERT_EQ(before.parameters, after.parameters);
  Memory expected(before.parameters);
  Memory memory(after.parameters);
  for (Memory* each : {&expected, &memory}) {
    each->set(0, numbers(40, 0.3));
    each->set(1, numbers(128, 0.7));
  }
  run(before, expected);
  run(after, memory);
  EXPECT_EQ(memory.get(2), expected.get(2));
  EXPECT_EQ(after.parallel_extent(), 5);
}

TEST(Interpreter, BothFormsOfAConvolutionAgree) {
  const RangedKernel before = ranged(R"(ranged kernel convolution
read x: f16[3,6,6] row
read w: f16[4,3,3,3] row
write y: f16[4,6,6] row
range o: 4
range h: 6
range v: 6
reduce c: 3
reduce p: 3
reduce q: 3
%0 = load x[c, h + p - 1, v + q - 1] if 0 < h + p && h + p < 7 && 0 < v + q && v + q < 7 else f16 0
store y[o, h, v] = max(sum(mul(%0, load w[o, c, p, q]) over c, p, q), f16 0)
)");
  const ScheduledKernel after = scheduled(R"(scheduled kernel convolution
read x: f16[3,6,6] row
read w: f16[4,3,3,3] row
write y: f16[4,6,6] row
register acc: f16[1][1]
for o: 4 {
  for h: 6 {
    for v: 6 {
      set acc[0, 0] = f16 0
      for c: 3 {
        for p: 3 {
          if 0 < h + p && h + p < 7 {
            for q: 3 {
              %0 = load x[c * 36 + (h + p - 1) * 6 + v + q - 1] if 0 < v + q && v + q < 7 else f16 0
              %1 = load w[o * 27 + c * 9 + p * 3 + q]
              set acc[0, 0] = add(acc[0, 0], mul(%0, %1))
            }
          }
        }
      }
      store y[o * 36 + h * 6 + v] = max(acc[0, 0], f16 0)
    }
  }
}
)");
  Memory expected(before.parameters);
  Memory memory(after.parameters);
  for (Memory* each : {&expected, &memory}) {
    each->set(0, numbers(108, 0.37));
    each->set(1, numbers(108, 0.11));
  }
  run(before, expected);
  run(after, memory);
  EXPECT_EQ(memory.get(2), expected.get(2));
}

TEST(Interpreter, SoftmaxInOneKernel) {
  const RangedKernel kernel = ranged(R"(ranged kernel softmax
read x: f32[3,5] row
write y: f32[3,5] row
range i: 3
range j: 5
reduce k: 5
reduce m: 5
%0 = max(load x[i, m] over m)
%1 = sum(exp(sub(load x[i, k], %0)) over k)
store y[i, j] = div(exp(sub(load x[i, j], %0)), %1)
)");
  Memory memory(kernel.parameters);
  memory.set(0, numbers(15));
  run(kernel, memory);
  const std::vector<double> y = memory.get(1);
  for (std::size_t i = 0; i < 3; ++i) {
    double total = 0;
    for (std::size_t j = 0; j < 5; ++j) total += y[i * 5 + j];
    EXPECT_NEAR(total, 1, 1e-6);
  }
}

TEST(Interpreter, ReducesStartAtTheIdentity) {
  const RangedKernel kernel = ranged(R"(ranged kernel empty
read x: i8[0] row
write y: i8[4] row
reduce k: 0
store y[0] = sum(load x[k] over k)
store y[1] = product(load x[k] over k)
store y[2] = max(load x[k] over k)
store y[3] = min(load x[k] over k)
)");
  Memory memory(kernel.parameters);
  run(kernel, memory);
  EXPECT_EQ(memory.get(1), (std::vector<double>{0, 1, -128, 127}));
}

TEST(Interpreter, ReadingRegistersSeesTheirLastValue) {
  const ScheduledKernel kernel = scheduled(R"(scheduled kernel fibonacci
write y: i64[10] row
register r: i64[2][1]
set r[0, 0] = 0
set r[1, 0] = 1
for i: 10 {
  store y[i] = r[0, 0]
  set r[1, 0] = r[0, 0] + r[1, 0]
  set r[0, 0] = sub(r[1, 0], r[0, 0])
}
)");
  Memory memory(kernel.parameters);
  run(kernel, memory);
  EXPECT_EQ(memory.get(0), (std::vector<double>{0, 1, 1, 2, 3, 5, 8, 13, 21, 34}));
}

TEST(Interpreter, ClampedIndicesAreReported) {
  const RangedKernel kernel = ranged(R"(ranged kernel gather
read x: f32[4] row
read n: i32[3] row
write y: f32[3] row
range i: 3
store y[i] = load x[clamp(i64(load n[i]), 4)]
)");
  Memory memory(kernel.parameters);
  memory.set(0, {10, 11, 12, 13});
  memory.set_ints(1, {0, 3, 2});
  EXPECT_FALSE(run(kernel, memory).index_clamped);
  EXPECT_EQ(memory.get(2), (std::vector<double>{10, 13, 12}));
  memory.set_ints(1, {-1, 1, 9});
  EXPECT_TRUE(run(kernel, memory).index_clamped);
  EXPECT_EQ(memory.get(2), (std::vector<double>{10, 11, 13}));
}

TEST(Interpreter, AccessesOutsideAreNamed) {
  EXPECT_EQ(failure_of(ranged(R"(ranged kernel shift
read x: f32[4] row
write y: f32[4] row
range i: 4
store y[i] = load x[i + 1]
)")),
            "kernel 'shift': load of 'x': coordinate 0 is 4, outside of [0, 4) (where i = 3)");
  EXPECT_EQ(failure_of(ranged(R"(ranged kernel halo
read x: f32[4] order 0 halo 0:0+1
write y: f32[2,3] row
range i: 4
store y[1, i] = load x[i + 1]
)")),
            "kernel 'halo': store to 'y': coordinate 1 is 3, outside of [0, 3) (where i = 3)");
  EXPECT_EQ(failure_of(scheduled(R"(scheduled kernel flat
read x: f32[2,2] row
write y: f32[2] row
for i: 2 {
  for k: 2 {
    store y[i] = load x[i * 2 + k - 1]
  }
}
)")),
            "kernel 'flat': load of 'x' at address -1: the buffer has 4 elements "
            "(where i = 0, k = 0)");
  EXPECT_EQ(failure_of(scheduled(R"(scheduled kernel unset
write y: f32[1] row
register r: f32[2][1]
set r[0, 0] = f32 1
store y[0] = r[1, 0]
)")),
            "kernel 'unset': read of register 'r' at element 1, lane 0: it was never set");
  EXPECT_EQ(failure_of(scheduled(R"(scheduled kernel scratch
write y: f32[4] row
worker s: f32[3][1]
for i: 4 {
  set s[i, 0] = f32 1
}
)")),
            "kernel 'scratch': set of register 's' at element 3, lane 0: it has 3 elements of 1 "
            "lanes (where i = 3)");
}

TEST(Interpreter, ClosedGatesReadNothing) {
  const RangedKernel kernel = ranged(R"(ranged kernel pad
read x: f32[2] row
write y: f32[4] row
range i: 4
store y[i] = load x[i - 1] if 0 < i && i < 3 else f32 -7
)");
  Memory memory(kernel.parameters);
  memory.set(0, {1, 2});
  run(kernel, memory);
  EXPECT_EQ(memory.get(1), (std::vector<double>{-7, 1, 2, -7}));
}

TEST(Interpreter, WrongNumberOfBuffers) {
  const RangedKernel kernel = ranged("ranged kernel none\n");
  std::byte* one = nullptr;
  EXPECT_TRUE(interpret(kernel, {}).has_value());
  EXPECT_FALSE(interpret(kernel, std::span<std::byte* const>(&one, 1)).has_value());
}

TEST(InterpreterRunner, RunsCallsInOrder) {
  const ScheduledKernel twice = scheduled(R"(scheduled kernel twice
read x: f32[4] row
write y: f32[4] row
for i: 4 {
  %0 = load x[i]
  store y[i] = add(%0, %0)
}
)");
  Memory first(twice.parameters);
  Memory second(twice.parameters);
  first.set(0, {1, 2, 3, 4});
  InterpreterRunner runner;
  const std::vector<KernelRunner::Call> calls = {
      {&twice, first.pointers()}, {&twice, {first.pointers()[1], second.pointers()[1]}}};
  ASSERT_TRUE(runner.run(calls).has_value());
  EXPECT_EQ(second.get(1), (std::vector<double>{4, 8, 12, 16}));
}

}  // namespace
}  // namespace ingot
