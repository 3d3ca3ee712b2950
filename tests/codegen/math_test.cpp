// Mathematical functions: errors in units of the last place against long double, special values,
// and the same bits on every target. The bounds are those of docs/math.md.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <sstream>

#include "codegen/llvm_code_generator.h"
#include "tests/codegen/program.h"

namespace ingot {
namespace {

struct Function {
  ScalarOp op;
  long double (*reference)(long double);
  double bound_f32, bound_f64;
  double step_f32 = 0;   // the unit of bound_f32, where it is not that of the last place
  double least_f32 = 0;  // results below it may be anything up to it
};

const Function kFunctions[] = {
    {ScalarOp::Exp, [](long double x) { return std::exp(x); }, 1.0, 1.0},
    {ScalarOp::Log, [](long double x) { return std::log(x); }, 1.0, 1.0},
    {ScalarOp::Sin, [](long double x) { return std::sin(x); }, 1.5, 2.5},
    {ScalarOp::Cos, [](long double x) { return std::cos(x); }, 1.5, 2.5},
    {ScalarOp::Tanh, [](long double x) { return std::tanh(x); }, 1.5, 1.5},
    {ScalarOp::Sigmoid, [](long double x) { return 1 / (1 + std::exp(-x)); }, 2.5, 2.5, 0,
     0x1p-125},
    {ScalarOp::SigmoidInSteps, [](long double x) { return 1 / (1 + std::exp(-x)); }, 5.5, 2.5,
     0x1p-25},
    {ScalarOp::Erf, [](long double x) { return std::erf(x); }, 1.5, 1.5},
};

ScheduledKernel map(ScalarOp op, DType dtype, std::int64_t elements, std::int64_t lanes) {
  KernelWriter w(std::string(name(op)) + " of " + std::string(name(dtype)));
  const auto in = w.input("in", dtype, elements);
  const auto out = w.output("out", dtype, elements);
  w.loop("i", LoopKind::Serial, elements / lanes, [&](ExprId i) {
    w.loop("l", LoopKind::Vector, lanes, [&](ExprId l) {
      const ExprId address = w.sum({{i, lanes}, {l, 1}});
      w.store(out, address, w.op(op, {w.load(in, address)}));
    });
  });
  return w.finish();
}

// What the table says is what the code does where nothing is looked up: `bench --per-call` counts
// by it.
TEST(Math, OperationsAreThoseOfTheCode) {
  for (const Function& function : kFunctions) {
    if (function.op == ScalarOp::Sin || function.op == ScalarOp::Cos) continue;  // large angles
    const auto text = make_llvm_code_generator()->emit_text(map(function.op, DType::F32, 8, 8),
                                                            *find_target("aarch64"), "llvm");
    ASSERT_TRUE(text);
    int count = 0;
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
      for (const char* one : {" fadd ", " fsub ", " fmul ", " fdiv "}) {
        if (line.find(one) != std::string::npos) ++count;
      }
      if (line.find("call <8 x float> @llvm.fma") != std::string::npos) count += 2;
    }
    EXPECT_EQ(operations(function.op), count) << name(function.op) << *text;
  }
}

// Units in the last place between a result and the true value.
template <typename Float>
double error_ulp(Float result, long double truth) {
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  if (std::isnan(truth)) return std::isnan(result) ? 0 : kWrong;
  const auto nearest = static_cast<Float>(truth);
  if (std::isinf(nearest) || std::isinf(result) || std::isnan(result)) {
    return nearest == result ? 0 : kWrong;
  }
  if (truth == 0) return result == 0 && std::signbit(result) == std::signbit(truth) ? 0 : kWrong;
  int exponent = 0;
  std::frexp(truth, &exponent);
  constexpr int kDigits = std::numeric_limits<Float>::digits;
  exponent = std::max(exponent, std::numeric_limits<Float>::min_exponent) - kDigits;
  const long double distance = std::fabs(static_cast<long double>(result) - truth);
  return static_cast<double>(std::ldexp(distance, -exponent));
}

// Every exponent with some fractions, values of ordinary size in between, and special ones.
template <typename Float>
std::vector<Float> samples(std::size_t count) {
  using Limits = std::numeric_limits<Float>;
  std::vector<Float> values = {Float(0), -Float(0), Limits::infinity(), -Limits::infinity(),
                               Limits::quiet_NaN(), Limits::denorm_min(), -Limits::denorm_min(),
                               Limits::min(), Limits::max(), Limits::lowest(), Float(0.625),
                               Float(1), Float(-1), Float(88.72284), Float(709.7827128933841),
                               Float(-103.97), Float(-745.13), Float(2.5), Float(0x1p21),
                               Float(0x1p11), Float(6381956970095103.0), Float(0x1.921fb6p+0),
                               // nearest of all doubles to a multiple of pi/2
                               static_cast<Float>(0x1.6ac5b262ca1ffp+849)};
  for (int exponent = Limits::min_exponent - Limits::digits; exponent < Limits::max_exponent;
       ++exponent) {
    for (const double fraction : {0.5, 0.55, 0.6, 0.70710678, 0.75, 0.8, 0.9, 0.99999994}) {
      const Float value = std::ldexp(static_cast<Float>(fraction), exponent);
      values.push_back(value);
      values.push_back(-value);
    }
  }
  std::mt19937_64 random(3);
  while (values.size() < count) {
    const double unit = static_cast<double>(static_cast<std::int64_t>(random())) * 0x1p-63;
    const double scale[] = {1, 1.5, 10, 100, 1000};
    values.push_back(static_cast<Float>(unit * scale[values.size() % 5]));
  }
  values.resize(count);
  return values;
}

template <typename Float>
void expect_bounds(DType dtype, bool strict) {
  constexpr std::size_t kCount = 1 << 16;
  constexpr std::int64_t kLanes = 64 / sizeof(Float);  // a whole register of the widest target
  const std::vector<Float> inputs = samples<Float>(kCount);
  std::vector<std::byte> bytes(kCount * sizeof(Float));
  std::memcpy(bytes.data(), inputs.data(), bytes.size());
  std::vector<std::vector<std::vector<std::byte>>> by_target;
  for (const Target& target : testable_targets()) {
    std::vector<Job> jobs;
    for (const Function& function : kFunctions) {
      for (const std::int64_t lanes : {std::int64_t{1}, kLanes}) {
        const ScheduledKernel kernel = map(function.op, dtype, kCount, lanes);
        jobs.push_back({kernel, {bytes, std::vector<std::byte>(bytes.size())}, true, strict});
      }
    }
    const std::vector<Outcome> outcomes = run_jobs(jobs, target);
    ASSERT_EQ(outcomes.size(), jobs.size());
    std::vector<std::vector<std::byte>> results;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      const Function& function = kFunctions[j / 2];
      std::vector<Float> outputs(kCount);
      std::memcpy(outputs.data(), outcomes[j].buffers[1].data(), bytes.size());
      double worst = 0;
      Float at = 0;
      for (std::size_t i = 0; i < kCount; ++i) {
        const long double truth = function.reference(static_cast<long double>(inputs[i]));
        const bool is_single = sizeof(Float) == 4 && !std::isnan(truth);
        double error = is_single && function.step_f32 > 0
                           ? std::fabs(static_cast<double>(outputs[i] - truth)) / function.step_f32
                           : error_ulp(outputs[i], truth);
        if (is_single && truth < function.least_f32 && outputs[i] >= 0 &&
            outputs[i] <= function.least_f32) {
          error = 0;
        }
        if (error > worst) {
          worst = error;
          at = inputs[i];
        }
        if (std::isnan(outputs[i])) outputs[i] = std::numeric_limits<Float>::quiet_NaN();
      }
      const double bound = sizeof(Float) == 4 ? function.bound_f32 : function.bound_f64;
      EXPECT_LE(worst, bound) << jobs[j].kernel.name << " on " << target.name << " at "
                              << static_cast<double>(at);
      testing::Test::RecordProperty(jobs[j].kernel.name + " " + target.name, std::to_string(worst));
      std::vector<std::byte> normalized(bytes.size());
      std::memcpy(normalized.data(), outputs.data(), bytes.size());
      results.push_back(std::move(normalized));
    }
    // One lane or many: the same.
    for (std::size_t j = 0; j < jobs.size(); j += 2) {
      EXPECT_EQ(results[j], results[j + 1]) << jobs[j].kernel.name << " on " << target.name;
    }
    by_target.push_back(std::move(results));
  }
  if (!strict) return;
  for (std::size_t t = 1; t < by_target.size(); ++t) {
    for (std::size_t j = 0; j < by_target[t].size(); ++j) {
      EXPECT_TRUE(by_target[t][j] == by_target[0][j])
          << name(kFunctions[j / 2].op) << " differs on " << testable_targets()[t].name;
    }
  }
}

TEST(Math, SingleStrictWithinBoundsAndEqualOnAllTargets) { expect_bounds<float>(DType::F32, true); }
TEST(Math, DoubleStrictWithinBoundsAndEqualOnAllTargets) {
  expect_bounds<double>(DType::F64, true);
}
TEST(Math, SingleRelaxedWithinBounds) { expect_bounds<float>(DType::F32, false); }
TEST(Math, DoubleRelaxedWithinBounds) { expect_bounds<double>(DType::F64, false); }

// Halves and bfloat16 go through single precision: right up to one rounding of the result.
TEST(Math, ShortFloatsThroughSingle) {
  constexpr std::int64_t kAll = 65536;
  for (const DType dtype : {DType::F16, DType::BF16}) {
    std::vector<std::byte> bytes(2 * kAll);
    for (std::size_t i = 0; i < kAll; ++i) {
      bytes[2 * i] = static_cast<std::byte>(i);
      bytes[2 * i + 1] = static_cast<std::byte>(i >> 8);
    }
    for (const Target& target : testable_targets()) {
      std::vector<Job> jobs;
      for (const Function& function : kFunctions) {
        jobs.push_back({map(function.op, dtype, kAll, 8), {bytes, bytes}});
      }
      const std::vector<Outcome> outcomes = run_jobs(jobs, target);
      ASSERT_EQ(outcomes.size(), jobs.size());
      for (std::size_t j = 0; j < jobs.size(); ++j) {
        for (std::size_t i = 0; i < kAll; ++i) {
          const double x = Scalar::load(dtype, &bytes[2 * i]).as_double();
          const double got = Scalar::load(dtype, &outcomes[j].buffers[1][2 * i]).as_double();
          const auto truth =
              static_cast<double>(kFunctions[j].reference(static_cast<long double>(x)));
          if (std::isnan(truth)) {
            ASSERT_TRUE(std::isnan(got)) << jobs[j].kernel.name << " at " << x;
            continue;
          }
          // A true value next to the middle of two neighbours may go either way.
          const double steps =
              kFunctions[j].bound_f32 * kFunctions[j].step_f32 + kFunctions[j].least_f32;
          const double low = Scalar::of_float(dtype, truth * (1 - 0x1p-22) - steps).as_double();
          const double high = Scalar::of_float(dtype, truth * (1 + 0x1p-22) + steps).as_double();
          ASSERT_TRUE(got == low || got == high || (got > low && got < high))
              << jobs[j].kernel.name << " on " << target.name << " at " << x << ": " << got
              << ", not " << truth;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ingot
