// Rules by brute force: every small case, every type, and the values at the edges.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/compiler/rules/rule_support.h"

namespace ingot {
namespace {

RangedKernel parsed(const std::string& text) {
  const auto kernel = parse_ranged_kernel("ranged kernel k\n" + text);
  EXPECT_TRUE(kernel.has_value()) << text << (kernel ? "" : to_line(kernel.error().diagnostics[0]));
  if (!kernel) return {};
  const auto valid = validate_kernel(*kernel);
  EXPECT_TRUE(valid.has_value()) << text << (valid ? "" : to_line(valid.error().diagnostics[0]));
  return *kernel;
}

Rewritten rewritten(const RangedKernel& kernel, RulePass pass) {
  const auto result = pass(kernel, rule_options());
  EXPECT_TRUE(result.has_value()) << (result ? "" : to_line(result.error().diagnostics[0]));
  return result ? *result : Rewritten{kernel, {}};
}

bool applied(const Rewritten& after, Rule rule) {
  return after.counts[static_cast<std::size_t>(rule)] > 0;
}

Scalar element(const RangedKernel& kernel, const Memory& memory, std::size_t parameter,
               std::int64_t i) {
  const DType dtype = kernel.parameters[parameter].dtype;
  return Scalar::load(dtype, memory[parameter].data() + i * size_bytes(dtype));
}

void set(const RangedKernel& kernel, Memory& memory, std::size_t parameter, std::int64_t i,
         Scalar value) {
  value.store(memory[parameter].data() + i * size_bytes(kernel.parameters[parameter].dtype));
}

// --- reduces over ranges that nothing depends on

// Half the distance to the next number, as a share.
double rounding(DType dtype) {
  switch (dtype) {
    case DType::F16: return std::ldexp(1, -11);
    case DType::BF16: return std::ldexp(1, -8);
    case DType::F32: return std::ldexp(1, -24);
    default: return std::ldexp(1, -53);
  }
}

// n equal terms, added one after the other or at once: each operation rounds once.
void expect_near(double want, double got, std::int64_t turns, DType dtype,
                 const std::string& where) {
  if (std::isnan(want) || std::isinf(want)) {
    EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : want == got) << where << want << " " << got;
    return;
  }
  const double bound = 2 * static_cast<double>(turns + 1) * rounding(dtype) * std::abs(want);
  EXPECT_LE(std::abs(want - got), bound) << where << want << " " << got;
}

// Whether the kernel may be rewritten, by docs/passes.md.
bool is_expected(const std::string& op, std::int64_t turns, DType dtype, bool strict) {
  const bool ordered = op == "sum" || op == "product";
  if (ordered && is_float(dtype) && strict) return turns == 0;
  return op != "sum" || turns <= 256 || dtype != DType::BF16;
}

TEST(RuleValues, ReducesOfOneValueOfEveryType) {
  const std::vector<std::int64_t> turns = {0, 1, 2, 7, 300};
  for (const char* type :
       {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"}) {
    for (const char* op : {"sum", "product", "max", "min"}) {
      for (const bool strict : {false, true}) {
        for (const std::int64_t n : turns) {
          const std::string where =
              fmt::format("{} {}{} over {}: ", type, op, strict ? "!" : "", n);
          const RangedKernel before = parsed(
              fmt::format("read x: {0}[16] row\nwrite y: {0}[16] row\nrange a: 16\nreduce k: {1}\n"
                          "store y[a] = {2}{3}(load x[a] over k)\n",
                          type, n, op, strict ? "!" : ""));
          const Rewritten after = rewritten(before, simplify_reduces);
          const DType dtype = before.parameters[0].dtype;
          EXPECT_EQ(applied(after, Rule::InvariantReduce), is_expected(op, n, dtype, strict))
              << where;
          Memory memory = random_memory(before, 3);
          for (std::int64_t i = 0; i < 16; ++i) {
            // Integers of all sizes, so that they wrap.
            const auto wide = static_cast<std::int64_t>(0x9E3779B97F4A7C15U * (i + 1U));
            set(before, memory, 0, i,
                is_float(dtype) ? Scalar::of_float(dtype, 0.37 * static_cast<double>(i - 7))
                                : Scalar::of_int(dtype, wide));
          }
          const Memory want = results(before, memory), got = results(after.kernel, memory);
          for (std::int64_t i = 0; i < 16; ++i) {
            const Scalar a = element(before, want, 1, i), b = element(before, got, 1, i);
            if (!is_float(dtype) || op == std::string("max") || op == std::string("min")) {
              EXPECT_EQ(a, b) << where << i;
            } else if (std::abs(a.as_double()) > 1e-3 || a.as_double() == 0) {
              expect_near(a.as_double(), b.as_double(), n, dtype, where);
            }
          }
        }
      }
    }
  }
}

// --- sums of gates

TEST(RuleValues, ClippedLengthsAreThoseOfCounting) {
  int applications = 0;
  for (std::int64_t turns = 1; turns <= 5; ++turns) {
    for (std::int64_t factor = 1; factor <= 3; ++factor) {
      for (std::int64_t low = -4; low <= 4; ++low) {
        for (std::int64_t high = -4; high <= 4; ++high) {
          const RangedKernel before = parsed(fmt::format(
              "read x: f32[9] row\nwrite y: f32[9] row\nrange a: 9\nreduce k: {}\n"
              "store y[a] = sum(select(a < {} * k + {} && k + {} < a, load x[a], f32 0) over k)\n",
              turns, factor, 4 + low, 4 + high));
          const Rewritten after = rewritten(before, simplify_reduces);
          applications += applied(after, Rule::CountGates) ? 1 : 0;
          expect_same_results(before, after.kernel, 5);
        }
      }
    }
  }
  EXPECT_GT(applications, 400);
}

TEST(RuleValues, ClippedTurnsAreThoseOfThePadding) {
  int applications = 0;
  for (const auto& [op, identity] : {std::pair("sum", "0"), std::pair("product", "1"),
                                     std::pair("max", "-128"), std::pair("min", "127")}) {
    for (std::int64_t first = -3; first <= 6; ++first) {
      for (std::int64_t end = -1; end <= 8; ++end) {
        const RangedKernel before = parsed(
            fmt::format("read x: i8[5] row\nwrite y: i8[1] row\nreduce k: 5\n"
                        "store y[0] = {}(select({} < k + 4 && k < {}, load x[k], i8 {}) over k)\n",
                        op, first + 3, end, identity));
        const Rewritten after = rewritten(before, simplify_reduces);
        applications += applied(after, Rule::ClipTurns) ? 1 : 0;
        expect_same_results(before, after.kernel, 5);
      }
    }
  }
  EXPECT_GT(applications, 100);
}

// What no turn reads is not multiplied by 0, which would make a NaN of an infinity.
TEST(RuleValues, SumsOfNothingAreZero) {
  for (const char* infinity : {"f32 inf", "f32 -inf", "f32 nan", "load x[0]"}) {
    const RangedKernel counted =
        parsed(fmt::format("read x: f32[1] row\nwrite y: f32[9] row\nrange a: 9\nreduce k: 7\n"
                           "store y[a] = sum(select(k < a, {}, f32 0) over k)\n",
                           infinity));
    const RangedKernel pulled = parsed(fmt::format(
        "read x: f32[1] row\nread z: f32[9,1] row\nwrite y: f32[9] row\nrange a: 9\nreduce k: 0\n"
        "store y[a] = sum(mul(load z[a, k], {}) over k)\n",
        infinity));
    for (const RangedKernel& before : {counted, pulled}) {
      Memory memory = random_memory(before, 1);
      set(before, memory, 0, 0, Scalar::of_float(DType::F32, INFINITY));
      const Memory want = results(before, memory);
      const Memory got = results(rewritten(before, simplify_reduces).kernel, memory);
      const std::size_t y = before.parameters.size() - 1;
      EXPECT_EQ(element(before, want, y, 0).as_double(), 0);
      EXPECT_EQ(element(before, got, y, 0), element(before, want, y, 0)) << print_kernel(before);
      EXPECT_EQ(element(before, got, y, 8), element(before, want, y, 8)) << print_kernel(before);
    }
    EXPECT_TRUE(applied(rewritten(counted, simplify_reduces), Rule::CountGates));
  }
}

// Terms that hold a reduce of their own are left alone.
TEST(RuleValues, NestedReducesAreNotCollapsed) {
  const RangedKernel before = parsed(
      "read x: i32[6,3] row\nread n: i32[4] row\nwrite y: i32[4] row\nrange a: 4\nreduce k: 6\n"
      "reduce j: 3\n%0 = sum!(load x[k, j] over j)\n"
      "store y[a] = sum(select(k == i64(load n[a]), %0, i32 0) over k)\n");
  const Rewritten after = rewritten(before, simplify_reduces);
  EXPECT_FALSE(applied(after, Rule::Gather));
  expect_same_results(before, after.kernel, 5);
}

// --- gathers

template <typename Int>
void expect_gathered(const char* type) {
  constexpr std::int64_t kRows = 6;
  const RangedKernel before = parsed(fmt::format(
      "read x: f32[6] row\nread n: {0}[8] row\nwrite y: f32[8] row\nrange a: 8\nreduce k: 6\n"
      "store y[a] = sum(select(eq({0}(k), load n[a]), load x[k], f32 0) over k)\n",
      type));
  const Rewritten after = rewritten(before, simplify_reduces);
  EXPECT_TRUE(applied(after, Rule::Gather)) << type;
  const std::array<Int, 8> indices = {
      0, -1,    kRows - 1, kRows, std::numeric_limits<Int>::min(), std::numeric_limits<Int>::max(),
      3, -kRows};
  Memory memory = random_memory(before, 1);
  for (std::int64_t i = 0; i < 8; ++i) {
    set(before, memory, 1, i, Scalar::of_int(before.parameters[1].dtype, indices[i]));
  }
  for (std::int64_t i = 0; i < kRows; ++i) {
    set(before, memory, 0, i, Scalar::of_float(DType::F32, 10.0 + static_cast<double>(i)));
  }
  // The interpreter fails on reads outside.
  const Memory got = results(after.kernel, memory);
  for (std::int64_t i = 0; i < 8; ++i) {
    const std::int64_t index = indices[i];
    const double want = index >= 0 && index < kRows ? 10.0 + static_cast<double>(index) : 0;
    EXPECT_EQ(element(before, got, 2, i).as_double(), want) << type << " index " << index;
  }
}

TEST(RuleValues, GatheredIndicesAreCheckedAtTheEdges) {
  expect_gathered<std::int8_t>("i8");
  expect_gathered<std::int16_t>("i16");
  expect_gathered<std::int32_t>("i32");
  expect_gathered<std::int64_t>("i64");
}

// --- ranges

std::size_t divisions(const RangedKernel& kernel) {
  const std::string text = print_kernel(kernel);
  std::size_t count = 0;
  for (const std::string_view word : {" div ", " mod "}) {
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      ++count;
    }
  }
  return count;
}

// Two ranges in every order and every split of a row, with contiguous and other buffers.
TEST(RuleValues, MergingNeverCostsADivision) {
  int merged = 0, kept = 0;
  for (std::int64_t m = 1; m <= 6; ++m) {
    for (std::int64_t n = 1; n <= 6; ++n) {
      const std::string two = fmt::format("{},{}", m, n), turned = fmt::format("{},{}", n, m);
      const std::string flat = fmt::format("a * {} + b", n);
      for (const std::string& x :
           {fmt::format("read x: i32[{}] row\n$[a, b]", two),
            fmt::format("read x: i32[{}] row\n$[b, a]", turned),
            fmt::format("read x: i32[{}] row\n$[{}]", m * n, flat),
            fmt::format("read x: i32[{}] row\n$[({}) mod 4]", m * n, flat),
            fmt::format("read x: i32[{}] row\n$[({}) div 2]", m * n, flat),
            fmt::format("read x: i32[{}] order 1,0\n$[a, b]", two),
            fmt::format("read x: i32[{}] order 0,1 halo 1:1+0\n$[a, b]", two)}) {
        for (const std::string& y : {fmt::format("write y: i32[{}] row\n$[a, b]", two),
                                     fmt::format("write y: i32[{}] row\n$[b, a]", turned),
                                     fmt::format("write y: i32[{}] row\n$[{}]", m * n, flat)}) {
          const std::size_t read = x.find('$'), written = y.find('$');
          const RangedKernel before = parsed(fmt::format(
              "{}{}range a: {}\nrange b: {}\nstore y{} = neg(load x{})\n", x.substr(0, read),
              y.substr(0, written), m, n, y.substr(written + 1), x.substr(read + 1)));
          const Rewritten after = rewritten(before, arrange_ranges);
          (applied(after, Rule::MergeRanges) ? merged : kept) += 1;
          EXPECT_LE(divisions(after.kernel), divisions(before))
              << print_kernel(before) << print_kernel(after.kernel);
          expect_same_results(before, after.kernel, 7);
        }
      }
    }
  }
  EXPECT_GT(merged, 50);
  EXPECT_GT(kept, 300);
}

TEST(RuleValues, RangesAreSplitOnlyWhereTheyDivide) {
  for (std::int64_t n = 1; n <= 130; ++n) {
    for (const std::int64_t m : {2, 4, 10, 16, 24, 32, 48, 64}) {
      const RangedKernel before =
          parsed(fmt::format("read x: i32[{1},{2}] row\nwrite y: i32[{0}] row\nrange a: {0}\n"
                             "store y[a] = load x[a mod {1}, a div {1}]\n",
                             n, m, (n + m - 1) / m));
      const Rewritten after = rewritten(before, arrange_ranges);
      const bool divides = n % m == 0 && m % 16 == 0 && n > m;
      EXPECT_EQ(applied(after, Rule::SplitRange), divides) << n << " by " << m;
      expect_same_results(before, after.kernel, 7);
    }
  }
}

TEST(RuleValues, RangesShrinkToTheLargestBoundOnly) {
  for (std::int64_t first = 1; first <= 9; ++first) {
    for (std::int64_t second = 1; second <= 9; ++second) {
      const std::string gates = fmt::format(
          "read x: i32[9] row\nwrite y: i32[9] row\nrange a: 9\n"
          "%0 = load x[a] if a < {} else i32 0\n%1 = load x[a] if a < {} else i32 3\n",
          first, second);
      const std::int64_t largest = std::max(first, second);
      const RangedKernel before =
          parsed(gates + fmt::format("store y[min(a, {})] = add(%0, %1)\n", largest - 1));
      const Rewritten after = rewritten(before, arrange_ranges);
      ASSERT_EQ(after.kernel.ranges.size(), largest > 1 ? 1U : 0U) << print_kernel(after.kernel);
      if (largest > 1) {
        EXPECT_EQ(after.kernel.ranges[0].extent, largest) << print_kernel(after.kernel);
      }
      // The last turn that stores an element may be another one: what it stores is not.
      const RangedKernel ungated = parsed(gates + "store y[a] = add(%0, %1)\n");
      EXPECT_EQ(rewritten(ungated, arrange_ranges).kernel.ranges[0].extent, 9);
    }
  }
}

// --- passes are functions of the kernel alone

TEST(RuleValues, WhatCameBeforeChangesNoAnswer) {
  std::vector<RangedKernel> kernels;
  for (const std::int64_t n : {3, 16, 32, 40}) {
    kernels.push_back(
        parsed(fmt::format("read x: f32[{0},7] row\nwrite y: f32[{0}] row\nrange a: {0}\n"
                           "reduce k: 7\nreduce j: 5\n"
                           "store y[a] = sum(mul(load x[a, k], load x[a, 0]) over k, j)\n",
                           n)));
  }
  const auto texts = [&](bool backwards) {
    std::vector<std::string> result(kernels.size());
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const std::size_t at = backwards ? kernels.size() - 1 - i : i;
      RangedKernel kernel = kernels[at];
      for (const RangedPass& pass : ranged_passes()) kernel = rewritten(kernel, pass.run).kernel;
      result[at] = print_kernel(kernel);
    }
    return result;
  };
  const std::vector<std::string> forwards = texts(false);
  EXPECT_EQ(forwards, texts(true));
  EXPECT_NE(forwards[0], print_kernel(kernels[0]));
}

}  // namespace
}  // namespace ingot
