#include "compiler/rules/rules.h"

namespace ingot {
namespace {

constexpr std::string_view kReduces = "simplify-reduces";
constexpr std::string_view kRanges = "arrange-ranges";

constexpr RuleInfo kRules[] = {
    {Rule::OneTurn, "one-turn", kRanges, "a range of one turn", "0 in its place"},
    {Rule::Unused, "unused", kRanges, "a range that nothing reads or reduces", "none"},
    {Rule::FlattenReduce, "flatten-reduce", kReduces, "op(op(x over b) over a)", "op(x over a, b)"},
    {Rule::InvariantReduce, "invariant-reduce", kReduces,
     "op(x over a, b), x does not depend on b: n",
     "sum: n * sum(x over a); product: its n-th power; max, min: itself; without turns the "
     "identity"},
    {Rule::CountGates, "count-gates", kReduces,
     "sum(x where first <= r < end, else 0 over r), x does not depend on r",
     "x * max(min(end, n) - max(first, 0), 0)"},
    {Rule::ClipTurns, "clip-turns", kReduces,
     "op(x where first <= r < end, else the identity over r), constant bounds",
     "op(x over the turns from first to end)"},
    {Rule::Gather, "gather", kReduces, "sum(x where r == index, else 0 over r)",
     "x at the index where 0 <= index < n, else 0"},
    {Rule::SplitSum, "split-sum", kReduces, "sum(x + y over r), also x - y",
     "sum(x over r) + sum(y over r)"},
    {Rule::PullFactor, "pull-factor", kReduces, "sum(x * c over r), c does not depend on r",
     "sum(x over r) * c"},
    {Rule::SplitRange, "split-range", kRanges, "r: n with r div m or r mod m",
     "ro: n / m, ri: m, r = ro * m + ri"},
    {Rule::ShrinkRange, "shrink-range", kRanges, "r: n used only where r < b or as min(r, b - 1)",
     "r: the largest b"},
    {Rule::MergeRanges, "merge-ranges", kRanges, "a: m and b: n, neighbours of one kind",
     "ab: m * n; two dimensions that they walk become one"},
};
static_assert(std::size(kRules) == kRuleCount);

constexpr GateInfo kGates[] = {
    {Gate::OneTurnExtent, Rule::OneTurn, "extent", "the extent is 1"},
    {Gate::OneTurnZero, Rule::OneTurn, "zero",
     "it is not the last range of a strict float sum, which makes +0 of -0"},
    {Gate::UnusedEverywhere, Rule::Unused, "everywhere", "no expression reads or reduces it"},
    {Gate::FlattenPolicy, Rule::FlattenReduce, "policy",
     "integers, relaxed floats, or an order that does not matter (max, min)"},
    {Gate::InvariantPolicy, Rule::InvariantReduce, "policy",
     "integers, which wrap, or relaxed floats; max and min always"},
    {Gate::InvariantExact, Rule::InvariantReduce, "exact",
     "n and all smaller counts are values of the type"},
    {Gate::CountPolicy, Rule::CountGates, "policy",
     "integers, or relaxed floats that hold all counts"},
    {Gate::CountBounded, Rule::CountGates, "bounded",
     "what is compared is bounded, so that no index wraps; of clip-turns too"},
    {Gate::CountInvariant, Rule::CountGates, "range-left", "x does not depend on r"},
    {Gate::ClipIdentity, Rule::ClipTurns, "identity", "elsewhere each term is the identity"},
    {Gate::GatherPolicy, Rule::Gather, "policy", "integers or relaxed floats"},
    {Gate::GatherNoReduce, Rule::Gather, "no-reduce", "no reduce inside"},
    {Gate::GatherInside, Rule::Gather, "inside", "the bounds check is kept, around every load"},
    {Gate::GatherBounded, Rule::Gather, "bounded",
     "an index that is computed from what is compared is bounded"},
    {Gate::SplitSumPolicy, Rule::SplitSum, "policy", "integers or relaxed floats"},
    {Gate::SplitSumDone, Rule::SplitSum, "range-left",
     "another rule leaves no reduce of one of the sums"},
    {Gate::PullPolicy, Rule::PullFactor, "policy", "integers or relaxed floats"},
    {Gate::SplitDivides, Rule::SplitRange, "divides", "m divides n"},
    {Gate::SplitWide, Rule::SplitRange, "wide", "m is a multiple of 16, which fills any vector"},
    {Gate::ShrinkGated, Rule::ShrinkRange, "gated", "every use is gated"},
    {Gate::ShrinkNoReduce, Rule::ShrinkRange, "no-reduce", "no reduce over it"},
    {Gate::MergeDivisions, Rule::MergeRanges, "divisions",
     "the number of divisions and modulos does not grow"},
    {Gate::MergeReduces, Rule::MergeRanges, "reduces",
     "every reduce runs over both, one right inside of the other, or over neither"},
    {Gate::MergeContiguous, Rule::MergeRanges, "contiguous",
     "dimensions become one only where the second continues the first in memory: no halo, no "
     "block"},
    {Gate::MergeTurns, Rule::MergeRanges, "turns", "m * n <= 65535, the turns of a parallel loop"},
    {Gate::MergeSchedule, Rule::MergeRanges, "schedule",
     "no index divides ab; output ranges share no coordinate with a reduced one (a window); reduce "
     "ranges share none with another range"},
};
static_assert(std::size(kGates) == kGateCount && kGateCount <= 32);

constexpr RangedPass kPasses[] = {
    {kReduces, "fewer and shorter reduces",
     "size of the value as a tree, a reduce counting as often as it turns", simplify_reduces},
    {kRanges, "fewer ranges, without divisions",
     "divisions and modulos, then ranges, then the sum of their extents", arrange_ranges},
};

}  // namespace

std::span<const RuleInfo> rule_list() { return kRules; }
std::span<const GateInfo> gate_list() { return kGates; }
std::span<const RangedPass> ranged_passes() { return kPasses; }

}  // namespace ingot
