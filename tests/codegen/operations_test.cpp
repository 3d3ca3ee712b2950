// Every scalar operation and every cast, for every type, one lane and many, against the
// interpreter. Mathematical functions have tests of their own (math_test.cpp).
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tests/codegen/program.h"

namespace ingot {
namespace {

constexpr std::int64_t kElements = 1024;

constexpr DType kTypes[] = {DType::F32, DType::F16, DType::BF16, DType::F64, DType::U8,
                            DType::I8,  DType::I16, DType::I32,  DType::I64, DType::Bool,
                            DType::U16, DType::U32, DType::U64};

// out[i] = op(in0[i], in1[i], ...), `lanes` at a time.
ScheduledKernel map(ScalarOp op, DType dtype, std::int64_t lanes) {
  KernelWriter w(std::string(name(op)) + " of " + std::string(name(dtype)));
  std::vector<std::uint32_t> inputs;
  for (int i = 0; i < operand_count(op); ++i) {
    const bool is_condition = op == ScalarOp::Select && i == 0;
    inputs.push_back(
        w.input("in" + std::to_string(i), is_condition ? DType::Bool : dtype, kElements));
  }
  const auto out = w.output("out", gives_bool(op) ? DType::Bool : dtype, kElements);
  w.loop("i", LoopKind::Serial, kElements / lanes, [&](ExprId i) {
    w.loop("l", LoopKind::Vector, lanes, [&](ExprId l) {
      const ExprId address = w.sum({{i, lanes}, {l, 1}});
      std::vector<ExprId> operands;
      for (const std::uint32_t input : inputs) operands.push_back(w.load(input, address));
      w.store(out, address, w.op(op, operands, true));
    });
  });
  return w.finish();
}

bool is_mathematical(ScalarOp op) { return op >= ScalarOp::Exp && op <= ScalarOp::Erf; }

TEST(Operations, EveryOneAsInterpreted) {
  for (const Target& target : testable_targets()) {
    std::vector<Job> jobs;
    for (int i = 0; i <= static_cast<int>(ScalarOp::Select); ++i) {
      const auto op = static_cast<ScalarOp>(i);
      for (const DType dtype : kTypes) {
        const bool fused = op == ScalarOp::Fma && (dtype == DType::F32 || dtype == DType::F64);
        if (!accepts(op, dtype) || is_mathematical(op) || (fused && !target.has_fma)) continue;
        const bool is_extreme = op == ScalarOp::Min || op == ScalarOp::Max;
        for (const std::int64_t lanes : {std::int64_t{1}, std::int64_t{16}}) {
          const ScheduledKernel kernel = map(op, dtype, lanes);
          jobs.push_back({kernel, random_buffers(kernel, 11), !is_extreme});
        }
      }
    }
    expect_as_interpreted(jobs, target);
  }
}

ScheduledKernel cast(DType from, DType to, std::int64_t lanes) {
  KernelWriter w(std::string(name(from)) + " to " + std::string(name(to)));
  const auto in = w.input("in", from, kElements);
  const auto out = w.output("out", to, kElements);
  w.loop("i", LoopKind::Serial, kElements / lanes, [&](ExprId i) {
    w.loop("l", LoopKind::Vector, lanes, [&](ExprId l) {
      const ExprId address = w.sum({{i, lanes}, {l, 1}});
      w.store(out, address, w.kernel.pool.cast(w.load(in, address), to));
    });
  });
  return w.finish();
}

TEST(Casts, EveryPairAsInterpreted) {
  for (const Target& target : testable_targets()) {
    std::vector<Job> jobs;
    for (const DType from : kTypes) {
      for (const DType to : kTypes) {
        if (from == to) continue;
        for (const std::int64_t lanes : {std::int64_t{1}, std::int64_t{8}}) {
          const ScheduledKernel kernel = cast(from, to, lanes);
          jobs.push_back({kernel, random_buffers(kernel, 5)});
        }
      }
    }
    expect_as_interpreted(jobs, target);
  }
}

// A float between two constants needs no saturation where they lie inside of the result's range;
// where they do not, it does. NaN gives 0 in either case.
TEST(Casts, OfClampedFloatsAsInterpreted) {
  const std::pair<double, double> ranges[] = {{0, 255}, {3, 100}, {-128, 127}, {-40, 3e9}};
  for (const Target& target : testable_targets()) {
    std::vector<Job> jobs;
    for (const DType from : {DType::F32, DType::F64, DType::F16}) {
      for (const DType to :
           {DType::U8, DType::I8, DType::U16, DType::I32, DType::U32, DType::I64}) {
        for (const auto& [low, high] : ranges) {
          for (const std::int64_t lanes : {std::int64_t{1}, std::int64_t{8}}) {
            KernelWriter w("clamped");
            const auto in = w.input("in", from, kElements);
            const auto out = w.output("out", to, kElements);
            const ExprId least = w.kernel.pool.constant(Scalar::of_float(from, low));
            const ExprId most = w.kernel.pool.constant(Scalar::of_float(from, high));
            w.loop("i", LoopKind::Serial, kElements / lanes, [&](ExprId i) {
              w.loop("l", LoopKind::Vector, lanes, [&](ExprId l) {
                const ExprId address = w.sum({{i, lanes}, {l, 1}});
                const ExprId raised = w.op(ScalarOp::Max, {w.load(in, address), least});
                const ExprId value = w.op(ScalarOp::Min, {raised, most});
                w.store(out, address, w.kernel.pool.cast(value, to));
              });
            });
            const ScheduledKernel kernel = w.finish();
            jobs.push_back({kernel, random_buffers(kernel, 9)});
          }
        }
      }
    }
    expect_as_interpreted(jobs, target);
  }
}

// All 65536 halves and bfloat16 to single precision and back.
TEST(Casts, EveryHalfSurvivesTheWayToSingleAndBack) {
  for (const Target& target : testable_targets()) {
    for (const DType dtype : {DType::F16, DType::BF16}) {
      KernelWriter w("round trip");
      constexpr std::int64_t kAll = 65536;
      const auto in = w.input("in", dtype, kAll);
      const auto wide = w.output("wide", DType::F32, kAll);
      const auto back = w.output("back", dtype, kAll);
      w.loop("i", LoopKind::Serial, kAll / 8, [&](ExprId i) {
        w.loop("l", LoopKind::Vector, 8, [&](ExprId l) {
          const ExprId address = w.sum({{i, 8}, {l, 1}});
          const ExprId value = w.kernel.pool.cast(w.load(in, address), DType::F32);
          w.store(wide, address, value);
          w.store(back, address, w.kernel.pool.cast(value, dtype));
        });
      });
      const ScheduledKernel kernel = w.finish();
      Buffers buffers = random_buffers(kernel, 1);
      for (std::size_t i = 0; i < kAll; ++i) {
        buffers[in][2 * i] = static_cast<std::byte>(i);
        buffers[in][2 * i + 1] = static_cast<std::byte>(i >> 8);
      }
      expect_as_interpreted({{kernel, buffers}}, target);
    }
  }
}

// Relaxed quotients of vectors by a number, made without a division: every significand, and values
// whose products are infinite, undefined or zero.
TEST(Operations, QuotientsByANumberAreRoundedOnce) {
  constexpr std::int64_t kCount = 1 << 15;
  for (const float divisor : {255.0F, 6.0F, 9.0F, -3.0F, 0.023529412F, 1.9999999F, 7.1e-5F}) {
    KernelWriter w("quotients");
    const auto in = w.input("in", DType::F32, kCount);
    const auto out = w.output("out", DType::F32, kCount);
    const ExprId number = w.kernel.pool.constant(Scalar::of_float(DType::F32, double{divisor}));
    w.loop("i", LoopKind::Serial, kCount / 8, [&](ExprId i) {
      w.loop("l", LoopKind::Vector, 8, [&](ExprId l) {
        const ExprId at = w.sum({{i, 8}, {l, 1}});
        w.store(out, at, w.op(ScalarOp::Div, {w.load(in, at), number}));
      });
    });
    const ScheduledKernel kernel = w.finish();
    for (const Target& target : runnable_targets()) {
      const CompiledProgram program(kernel, target);
      std::vector<float> given(kCount), got(kCount);
      const auto expect_quotients = [&] {
        EXPECT_EQ(program.run({given.data(), got.data()}), 0);
        for (std::size_t i = 0; i < given.size(); ++i) {
          const float want = given[i] / divisor;
          if (std::isnan(want) && std::isnan(got[i])) continue;
          ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(want))
              << given[i] << " / " << divisor << " on " << target.name;
        }
      };
      for (std::uint32_t first = 0; first < 1U << 23; first += kCount) {
        for (std::uint32_t i = 0; i < kCount; ++i) {
          given[i] = std::bit_cast<float>(0x3F800000U + first + i);
        }
        expect_quotients();
      }
      std::ranges::fill(given, 1.0F);
      given[0] = std::numeric_limits<float>::infinity();
      given[1] = std::numeric_limits<float>::quiet_NaN();
      given[2] = -0.0F;
      given[3] = 0.0F;
      given[4] = std::numeric_limits<float>::max();
      given[5] = -given[0];
      expect_quotients();
    }
  }
}

// max(x, 0) is one instruction on x86-64, and NaN stays NaN.
TEST(Operations, ExtremeAgainstAConstant) {
  for (const Target& target : runnable_targets()) {
    KernelWriter w("clamp");
    const auto in = w.input("in", DType::F32, kElements);
    const auto out = w.output("out", DType::F32, kElements);
    const auto constant = [&](double value) {
      return w.kernel.pool.constant(Scalar::of_float(DType::F32, value));
    };
    w.loop("i", LoopKind::Serial, kElements / 16, [&](ExprId i) {
      w.loop("l", LoopKind::Vector, 16, [&](ExprId l) {
        const ExprId address = w.sum({{i, 16}, {l, 1}});
        const ExprId low = w.op(ScalarOp::Max, {w.load(in, address), constant(0)});
        w.store(out, address, w.op(ScalarOp::Min, {constant(6), low}));
      });
    });
    const ScheduledKernel kernel = w.finish();
    expect_as_interpreted({{kernel, random_buffers(kernel, 3), false}}, target);
    const std::string text = assembly(kernel, target);
    EXPECT_NE(text.find("maxps"), std::string::npos) << target.name;
    EXPECT_EQ(text.find("cmp"), text.find("cmpq")) << target.name << text;
  }
}

}  // namespace
}  // namespace ingot
