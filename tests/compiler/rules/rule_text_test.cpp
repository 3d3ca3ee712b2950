// Each rule on a kernel in text form where it answers, and where each of its gates keeps it from
// answering.
#include <gtest/gtest.h>

#include <string>

#include "tests/compiler/rules/rule_support.h"

namespace ingot {
namespace {

struct Answered {
  const char* name;
  Rule rule;
  RulePass pass;
  const char* before;
  const char* after;
};
struct Kept {
  const char* name;
  Gate gate;
  RulePass pass;
  const char* kernel;
};

const Answered kAnswered[] = {
    {"OneTurn", Rule::OneTurn, arrange_ranges,
     R"(read x: f32[4,1] row
write y: f32[4,1] row
range a: 4
range b: 1
store y[a, b] = load x[a, b]
)",
     R"(read x: f32[4,1] row
write y: f32[4,1] row
range a: 4
store y[a, 0] = load x[a, 0]
)"},
    {"OneTurnOfARelaxedSum", Rule::OneTurn, arrange_ranges,
     R"(read x: f32[4,1] row
write y: f32[4] row
range a: 4
reduce k: 1
store y[a] = sum(load x[a, k] over k)
)",
     R"(read x: f32[4,1] row
write y: f32[4] row
range a: 4
store y[a] = load x[a, 0]
)"},
    {"Unused", Rule::Unused, arrange_ranges,
     R"(read x: f32[4] row
write y: f32[4] row
range a: 4
range b: 9
store y[a] = load x[a]
)",
     R"(read x: f32[4] row
write y: f32[4] row
range a: 4
store y[a] = load x[a]
)"},
    {"Flatten", Rule::FlattenReduce, simplify_reduces,
     R"(read x: f32[4,3] row
write y: f32[1] row
reduce i: 4
reduce j: 3
%0 = sum(load x[i, j] over j)
store y[0] = sum(%0 over i)
)",
     R"(read x: f32[4,3] row
write y: f32[1] row
reduce i: 4
reduce j: 3
%0 = load x[i, j]
store y[0] = sum(%0 over i, j)
)"},
    {"FlattenStrictMax", Rule::FlattenReduce, simplify_reduces,
     R"(read x: f32[4,3] row
write y: f32[1] row
reduce i: 4
reduce j: 3
%0 = max!(load x[i, j] over j)
store y[0] = max!(%0 over i)
)",
     R"(read x: f32[4,3] row
write y: f32[1] row
reduce i: 4
reduce j: 3
%0 = load x[i, j]
store y[0] = max!(%0 over i, j)
)"},
    {"InvariantSum", Rule::InvariantReduce, simplify_reduces,
     R"(read x: f32[4] row
write y: f32[4] row
range a: 4
reduce k: 5
store y[a] = sum(load x[a] over k)
)",
     R"(read x: f32[4] row
write y: f32[4] row
range a: 4
reduce k: 5
%0 = load x[a]
store y[a] = mul(%0, f32 5)
)"},
    {"InvariantSumOfBytesWraps", Rule::InvariantReduce, simplify_reduces,
     R"(read x: i8[4,3] row
write y: i8[4] row
range a: 4
reduce j: 3
reduce k: 300
store y[a] = sum!(load x[a, j] over j, k)
)",
     R"(read x: i8[4,3] row
write y: i8[4] row
range a: 4
reduce j: 3
reduce k: 300
%0 = load x[a, j]
%1 = sum!(%0 over j)
store y[a] = mul(%1, i8 44)
)"},
    {"InvariantProduct", Rule::InvariantReduce, simplify_reduces,
     R"(read x: i32[4] row
write y: i32[4] row
range a: 4
reduce k: 5
store y[a] = product(load x[a] over k)
)",
     R"(read x: i32[4] row
write y: i32[4] row
range a: 4
reduce k: 5
%0 = load x[a]
%1 = mul(%0, %0)
%2 = mul(%1, %1)
store y[a] = mul(%0, %2)
)"},
    {"InvariantMax", Rule::InvariantReduce, simplify_reduces,
     R"(read x: f16[4] row
write y: f16[4] row
range a: 4
reduce k: 5000
store y[a] = max!(load x[a] over k)
)",
     R"(read x: f16[4] row
write y: f16[4] row
range a: 4
reduce k: 5000
store y[a] = load x[a]
)"},
    {"InvariantWithoutTurns", Rule::InvariantReduce, simplify_reduces,
     R"(read x: f32[4] row
write y: f32[4] row
range a: 4
reduce k: 0
store y[a] = sum(load x[a] over k)
)",
     R"(read x: f32[4] row
write y: f32[4] row
range a: 4
reduce k: 0
store y[a] = f32 0
)"},
    {"CountGates", Rule::CountGates, simplify_reduces,
     R"(write y: i32[9] row
range a: 9
reduce k: 7
store y[a] = sum(select(a < k + 3 && k < a, i32 1, i32 0) over k)
)",
     R"(write y: i32[9] row
range a: 9
reduce k: 7
store y[a] = i32(max(max(a - 2, 0) * -1 + min(a, 7), 0))
)"},
    {"CountGatesOfALoad", Rule::CountGates, simplify_reduces,
     R"(read x: f32[4] row
write y: f32[9] row
range a: 9
reduce k: 7
%0 = load x[a] if a < 4 && 2 * k < a else f32 0
store y[a] = sum(%0 over k)
)",
     R"(read x: f32[4] row
write y: f32[9] row
range a: 9
reduce k: 7
%0 = load x[a] if a < 4 && 0 < a else f32 0
%1 = f32((a + 1) div 2)
store y[a] = mul(%0, %1)
)"},
    {"CountGatesOfAValue", Rule::CountGates, simplify_reduces,
     R"(read x: f32[9] row
write y: f32[9] row
range a: 9
reduce k: 7
store y[a] = sum(select(k < a, load x[a], f32 0) over k)
)",
     R"(read x: f32[9] row
write y: f32[9] row
range a: 9
reduce k: 7
%0 = load x[a]
%1 = f32(min(a, 7))
%2 = mul(%0, %1)
store y[a] = select(0 < min(a, 7), %2, f32 0)
)"},
    {"ClipTurns", Rule::ClipTurns, simplify_reduces,
     R"(read x: f32[8] row
write y: f32[1] row
reduce k: 8
store y[0] = sum!(select(1 < k && k < 5, load x[k], f32 0) over k)
)",
     R"(read x: f32[8] row
write y: f32[1] row
reduce k: 8
reduce k$2: 3
%0 = load x[k$2 + 2]
store y[0] = sum!(%0 over k$2)
)"},
    {"ClipTurnsOfAMax", Rule::ClipTurns, simplify_reduces,
     R"(read x: f32[5] row
write y: f32[1] row
reduce k: 8
%0 = load x[k] if k < 5 else f32 -inf
store y[0] = max!(%0 over k)
)",
     R"(read x: f32[5] row
write y: f32[1] row
reduce k: 8
reduce k$2: 5
%0 = load x[k$2]
store y[0] = max!(%0 over k$2)
)"},
    {"Gather", Rule::Gather, simplify_reduces,
     R"(read x: f32[6,3] row
read n: i32[4] row
write y: f32[4,3] row
range a: 4
range b: 3
reduce k: 6
store y[a, b] = sum(select(eq(i32(k), load n[a]), load x[k, b], f32 0) over k)
)",
     R"(read x: f32[6,3] row
read n: i32[4] row
write y: f32[4,3] row
range a: 4
range b: 3
reduce k: 6
%0 = load n[a]
%1 = i64(%0)
%2 = %1 < 6 && -1 < %1
%3 = load x[%1, b] if %2 else f32 0
store y[a, b] = select(%2, %3, f32 0)
)"},
    {"GatherByComputedIndex", Rule::Gather, simplify_reduces,
     R"(read x: i32[6] row
read n: i32[4] row
write y: i32[4] row
range a: 4
reduce k: 6
reduce j: 2
store y[a] = sum(select(k + 1 == i64(load n[a]) && k < a + j, load x[k], i32 0) over k, j)
)",
     R"(read x: i32[6] row
read n: i32[4] row
write y: i32[4] row
range a: 4
reduce k: 6
reduce j: 2
%0 = load n[a]
%1 = i64(%0)
%2 = 0 < %1 && %1 < 7
%3 = load x[%1 - 1] if %2 else i32 0
%4 = i32(max(max(a * -1 + (%1 - 1) + 1, 0) * -1 + 2, 0))
%5 = mul(%3, %4)
store y[a] = select(%2, %5, i32 0)
)"},
    {"SplitSum", Rule::SplitSum, simplify_reduces,
     R"(read x: f32[4,5] row
read z: f32[4] row
write y: f32[4] row
range a: 4
reduce k: 5
store y[a] = sum(sub(load x[a, k], load z[a]) over k)
)",
     R"(read x: f32[4,5] row
read z: f32[4] row
write y: f32[4] row
range a: 4
reduce k: 5
%0 = load x[a, k]
%1 = sum(%0 over k)
%2 = load z[a]
%3 = mul(%2, f32 5)
store y[a] = sub(%1, %3)
)"},
    {"PullFactor", Rule::PullFactor, simplify_reduces,
     R"(read x: f32[4,5] row
read z: f32[4] row
write y: f32[4] row
range a: 4
reduce k: 5
store y[a] = sum(mul(mul(load z[a], load x[a, k]), load z[0]) over k)
)",
     R"(read x: f32[4,5] row
read z: f32[4] row
write y: f32[4] row
range a: 4
reduce k: 5
%0 = load x[a, k]
%1 = sum(%0 over k)
%2 = load z[a]
%3 = load z[0]
%4 = mul(%2, %3)
store y[a] = mul(%1, %4)
)"},
    {"SplitRange", Rule::SplitRange, arrange_ranges,
     R"(read x: f32[16,2] row
write y: f32[32] row
range a: 32
store y[a] = load x[a mod 16, a div 16]
)",
     R"(read x: f32[16,2] row
write y: f32[32] row
range ao: 2
range ai: 16
store y[ai + ao * 16] = load x[ai, ao]
)"},
    {"SplitReducedRange", Rule::SplitRange, arrange_ranges,
     R"(read x: f32[2,3,16] row
write y: f32[3] row
range a: 3
reduce k: 32
store y[a] = sum!(load x[k div 16, a, k mod 16] over k)
)",
     R"(read x: f32[2,3,16] row
write y: f32[3] row
range a: 3
reduce ko: 2
reduce ki: 16
%0 = load x[ko, a, ki]
store y[a] = sum!(%0 over ko, ki)
)"},
    {"ShrinkToTheLargestBound", Rule::ShrinkRange, arrange_ranges,
     R"(read x: f32[9] row
write y: f32[7] row
range a: 9
%0 = load x[a] if a < 5 else f32 0
store y[min(a, 6)] = %0
)",
     R"(read x: f32[9] row
write y: f32[7] row
range a: 7
store y[a] = load x[a] if a < 5 else f32 0
)"},
    {"MergeElementwise", Rule::MergeRanges, arrange_ranges,
     R"(read x: f32[3,5,7] row
read z: f32[3] row
write y: f32[3,5,7] row
range a: 3
range b: 5
range c: 7
store y[a, b, c] = add(load x[a, b, c], load z[a])
)",
     R"(read x: f32[3,35] row
read z: f32[3] row
write y: f32[3,35] row
range a: 3
range b_c: 35
%0 = load x[a, b_c]
%1 = load z[a]
store y[a, b_c] = add(%0, %1)
)"},
    {"MergeRowsOfASum", Rule::MergeRanges, arrange_ranges,
     R"(read x: f32[3,5,7] row
read w: f32[7,9] row
write y: f32[3,5,9] row
range a: 3
range b: 5
range c: 9
reduce k: 7
store y[a, b, c] = sum(mul(load x[a, b, k], load w[k, c]) over k)
)",
     R"(read x: f32[15,7] row
read w: f32[7,9] row
write y: f32[15,9] row
range a_b: 15
range c: 9
reduce k: 7
%0 = load x[a_b, k]
%1 = load w[k, c]
%2 = mul(%0, %1)
store y[a_b, c] = sum(%2 over k)
)"},
    {"MergeReduced", Rule::MergeRanges, arrange_ranges,
     R"(read x: f32[3,5,7] row
write y: f32[3] row
range a: 3
reduce b: 5
reduce c: 7
store y[a] = sum!(load x[a, b, c] over b, c)
)",
     R"(read x: f32[3,35] row
write y: f32[3] row
range a: 3
reduce b_c: 35
%0 = load x[a, b_c]
store y[a] = sum!(%0 over b_c)
)"},
    {"MergeOverBlocks", Rule::MergeRanges, arrange_ranges,
     R"(read x: f32[20,5,7] order 0,1,2 block 0x16
write y: f32[20,5,7] order 0,1,2 block 0x16
range a: 20
range b: 5
range c: 7
store y[a, b, c] = neg(load x[a, b, c])
)",
     R"(read x: f32[20,35] order 0,1 block 0x16
write y: f32[20,35] order 0,1 block 0x16
range a: 20
range b_c: 35
%0 = load x[a, b_c]
store y[a, b_c] = neg(%0)
)"},
};

const Kept kKept[] = {
    {"TwoTurns", Gate::OneTurnExtent, arrange_ranges,
     R"(read x: f32[4] row
write y: f32[4] row
range a: 4
store y[a] = load x[a]
)"},
    {"OneTurnOfAStrictSum", Gate::OneTurnZero, arrange_ranges,
     R"(read x: f32[4,1] row
write y: f32[4] row
range a: 4
reduce k: 1
store y[a] = sum!(load x[a, k] over k)
)"},
    {"Used", Gate::UnusedEverywhere, arrange_ranges,
     R"(read x: f32[4] row
write y: f32[4] row
range a: 4
store y[a] = load x[a]
)"},
    {"FlattenStrictSum", Gate::FlattenPolicy, simplify_reduces,
     R"(read x: f32[4,3] row
write y: f32[1] row
reduce i: 4
reduce j: 3
%0 = sum!(load x[i, j] over j)
store y[0] = sum!(%0 over i)
)"},
    {"InvariantStrictSum", Gate::InvariantPolicy, simplify_reduces,
     R"(read x: f32[4] row
write y: f32[4] row
range a: 4
reduce k: 5
store y[a] = sum!(load x[a] over k)
)"},
    {"InvariantSumOfHalves", Gate::InvariantExact, simplify_reduces,
     R"(read x: f16[4] row
write y: f16[4] row
range a: 4
reduce k: 4097
store y[a] = sum(load x[a] over k)
)"},
    {"CountStrict", Gate::CountPolicy, simplify_reduces,
     R"(read x: f32[9] row
write y: f32[9] row
range a: 9
reduce k: 7
store y[a] = sum!(select(k < a, load x[a], f32 0) over k)
)"},
    {"CountOfUnbounded", Gate::CountBounded, simplify_reduces,
     R"(read n: i64[4] row
write y: i32[4] row
range a: 4
reduce k: 7
store y[a] = sum(select(k + 1 < load n[a], i32 1, i32 0) over k)
)"},
    {"CountOfTerms", Gate::CountInvariant, simplify_reduces,
     R"(read x: f32[7] row
write y: f32[9] row
range a: 9
reduce k: 7
store y[a] = sum(select(k < a, load x[k], f32 0) over k)
)"},
    {"ClipOnes", Gate::ClipIdentity, simplify_reduces,
     R"(read x: f32[8] row
write y: f32[1] row
reduce k: 8
store y[0] = sum(select(k < 5, load x[k], f32 1) over k)
)"},
    {"GatherStrict", Gate::GatherPolicy, simplify_reduces,
     R"(read x: f32[6] row
read n: i32[4] row
write y: f32[4] row
range a: 4
reduce k: 6
store y[a] = sum!(select(k == i64(load n[a]), load x[k], f32 0) over k)
)"},
    {"GatherAroundAReduce", Gate::GatherNoReduce, simplify_reduces,
     R"(read x: i32[6,3] row
read n: i32[4] row
write y: i32[4] row
range a: 4
reduce k: 6
reduce j: 3
%0 = sum(load x[k, j] over j)
store y[a] = sum(select(k == i64(load n[a]), %0, i32 0) over k)
)"},
    {"GatherByUnbounded", Gate::GatherBounded, simplify_reduces,
     R"(read x: i32[6] row
read n: i64[4] row
write y: i32[4] row
range a: 4
reduce k: 6
store y[a] = sum(select(k + 1 == load n[a], load x[k], i32 0) over k)
)"},
    {"SplitStrictSum", Gate::SplitSumPolicy, simplify_reduces,
     R"(read x: f32[4,5] row
read z: f32[4] row
write y: f32[4] row
range a: 4
reduce k: 5
store y[a] = sum(add!(load x[a, k], load z[a]) over k)
)"},
    {"SplitLeavesALoop", Gate::SplitSumDone, simplify_reduces,
     R"(read x: f32[4,5] row
read z: f32[4] row
write y: f32[1] row
reduce i: 4
reduce k: 5
store y[0] = sum(add(load x[i, k], load z[i]) over i, k)
)"},
    {"PullStrict", Gate::PullPolicy, simplify_reduces,
     R"(read x: f32[4,5] row
read z: f32[4] row
write y: f32[4] row
range a: 4
reduce k: 5
store y[a] = sum!(mul(load x[a, k], load z[a]) over k)
)"},
    {"PullOutOfStrictProduct", Gate::PullPolicy, simplify_reduces,
     R"(read x: f32[4,5] row
read z: f32[4] row
write y: f32[4] row
range a: 4
reduce k: 5
store y[a] = sum(mul!(load x[a, k], load z[a]) over k)
)"},
    {"SplitNotDivided", Gate::SplitDivides, arrange_ranges,
     R"(read x: f32[16,3] row
write y: f32[40] row
range a: 40
store y[a] = load x[a mod 16, a div 16]
)"},
    {"SplitNarrow", Gate::SplitWide, arrange_ranges,
     R"(read x: f32[4,3] row
write y: f32[12] row
range a: 12
store y[a] = load x[a mod 4, a div 4]
)"},
    {"ShrinkUngated", Gate::ShrinkGated, arrange_ranges,
     R"(read x: f32[5] row
write y: f32[9] row
range a: 9
%0 = load x[a] if a < 5 else f32 0
store y[a] = %0
)"},
    {"ShrinkReduced", Gate::ShrinkNoReduce, arrange_ranges,
     R"(read x: f32[5] row
write y: f32[1] row
reduce k: 9
%0 = load x[k] if k < 5 else f32 1
store y[0] = sum(%0 over k)
)"},
    {"MergeTransposed", Gate::MergeDivisions, arrange_ranges,
     R"(read x: f32[4,3] row
write y: f32[3,4] row
range a: 3
range b: 4
store y[a, b] = load x[b, a]
)"},
    {"MergeOneOfTwo", Gate::MergeReduces, arrange_ranges,
     R"(read x: f32[4,3] row
write y: f32[1] row
reduce i: 4
reduce j: 3
%0 = sum!(load x[i, j] over j)
store y[0] = sum!(%0 over i)
)"},
    {"MergeWithAHalo", Gate::MergeContiguous, arrange_ranges,
     R"(read x: f32[3,4] order 0,1 halo 1:1+1
write y: f32[3,4] row
range a: 3
range b: 4
store y[a, b] = load x[a, b]
)"},
    {"MergeTooMany", Gate::MergeTurns, arrange_ranges,
     R"(read x: f32[300,300] row
write y: f32[300,300] row
range a: 300
range b: 300
store y[a, b] = load x[a, b]
)"},
    {"MergeBesideAWindow", Gate::MergeSchedule, arrange_ranges,
     R"(read x: f32[5,4] row
write y: f32[3,4] row
range a: 3
range b: 4
reduce k: 3
store y[a, b] = sum(load x[a + k, b] over k)
)"},
    {"MergeIntoADivision", Gate::MergeSchedule, arrange_ranges,
     R"(read x: f32[6,5,8] row
write y: f32[240] row
range a: 40
range b: 6
store y[a * 6 + b] = load x[b, a div 8, a mod 8]
)"},
    {"MergeAWindow", Gate::MergeSchedule, arrange_ranges,
     R"(read x: f32[8,8] row
write y: f32[6] row
range a: 6
reduce i: 3
reduce j: 3
store y[a] = sum(load x[a + i, a + j] over i, j)
)"},
};

RangedKernel parsed(const std::string& text) {
  const auto kernel = parse_ranged_kernel("ranged kernel k\n" + text);
  EXPECT_TRUE(kernel.has_value()) << (kernel ? "" : to_line(kernel.error().diagnostics[0]));
  if (!kernel) return {};
  const auto valid = validate_kernel(*kernel);
  EXPECT_TRUE(valid.has_value()) << (valid ? "" : to_line(valid.error().diagnostics[0]));
  return *kernel;
}

// The rewritten kernel, which gives the same results.
std::optional<Rewritten> rewritten(const RangedKernel& kernel, RulePass pass) {
  const auto result = pass(kernel, rule_options());
  EXPECT_TRUE(result.has_value()) << (result ? "" : to_line(result.error().diagnostics[0]));
  if (!result) return std::nullopt;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) expect_same_results(kernel, result->kernel, seed);
  return *result;
}

class RuleAnswers : public testing::TestWithParam<Answered> {};

TEST_P(RuleAnswers, AsText) {
  const Answered& given = GetParam();
  const RangedKernel before = parsed(given.before);
  const auto after = rewritten(before, given.pass);
  ASSERT_TRUE(after);
  EXPECT_EQ(print_kernel(after->kernel), std::string("ranged kernel k\n") + given.after);
  EXPECT_GE(after->counts[static_cast<std::size_t>(given.rule)], 1U);
}

class GateKeeps : public testing::TestWithParam<Kept> {};

TEST_P(GateKeeps, KernelAsItIs) {
  const Kept& given = GetParam();
  const RangedKernel before = parsed(given.kernel);
  const auto after = rewritten(before, given.pass);
  ASSERT_TRUE(after);
  EXPECT_EQ(print_kernel(after->kernel), print_kernel(before));
  EXPECT_EQ(after->counts, RuleCounts{});
}

const auto kName = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Rules, RuleAnswers, testing::ValuesIn(kAnswered), kName);
INSTANTIATE_TEST_SUITE_P(Rules, GateKeeps, testing::ValuesIn(kKept), kName);

// Of the gates, the check of a gathered index shows in the answer; all others keep a rule from it.
TEST(Rules, EveryRuleAndEveryGateHasACase) {
  for (const RuleInfo& rule : rule_list()) {
    EXPECT_TRUE(std::ranges::any_of(kAnswered, [&](const Answered& given) {
      return given.rule == rule.rule;
    })) << rule.name;
  }
  for (const GateInfo& gate : gate_list()) {
    if (gate.gate == Gate::GatherInside) continue;
    EXPECT_TRUE(std::ranges::any_of(kKept, [&](const Kept& given) {
      return given.gate == gate.gate;
    })) << gate.name;
  }
}

TEST(Rules, TablesAreInTheOrderOfTheEnumerations) {
  for (std::size_t i = 0; i < kRuleCount; ++i) {
    EXPECT_EQ(rule_list()[i].rule, static_cast<Rule>(i));
  }
  for (std::size_t i = 0; i < kGateCount; ++i) {
    EXPECT_EQ(gate_list()[i].gate, static_cast<Gate>(i));
  }
}

}  // namespace
}  // namespace ingot
