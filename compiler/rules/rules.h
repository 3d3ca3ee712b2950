// Rules that simplify ranged kernels, and the passes that apply them.
//
// Each rule has a pattern and an answer, each of its conditions is a gate with a name;
// docs/passes.md is made from these tables. A pass tries its rules everywhere until none answers.
// It stops because every answer lowers the pass's measure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "compiler/kernel/kernel.h"

namespace ingot {

enum class Rule : std::uint8_t {
  OneTurn,
  Unused,
  FlattenReduce,
  InvariantReduce,
  CountGates,
  ClipTurns,
  Gather,
  SplitSum,
  PullFactor,
  SplitRange,
  ShrinkRange,
  MergeRanges,
};
inline constexpr std::size_t kRuleCount = 12;

enum class Gate : std::uint8_t {
  OneTurnExtent,
  OneTurnZero,
  UnusedEverywhere,
  FlattenPolicy,
  InvariantPolicy,
  InvariantExact,
  CountPolicy,
  CountBounded,
  CountInvariant,
  ClipIdentity,
  GatherPolicy,
  GatherNoReduce,
  GatherInside,
  GatherBounded,
  SplitSumPolicy,
  SplitSumDone,
  PullPolicy,
  SplitDivides,
  SplitWide,
  ShrinkGated,
  ShrinkNoReduce,
  MergeDivisions,
  MergeReduces,
  MergeContiguous,
  MergeTurns,
  MergeSchedule,
};
inline constexpr std::size_t kGateCount = 26;

struct RuleInfo {
  Rule rule;
  std::string_view name, pass, pattern, answer;
};
struct GateInfo {
  Gate gate;
  Rule rule;
  std::string_view name, condition;
};
[[nodiscard]] std::span<const RuleInfo> rule_list();  // in the order of the enumeration
[[nodiscard]] std::span<const GateInfo> gate_list();  // likewise

// How often each rule was applied.
using RuleCounts = std::array<std::uint64_t, kRuleCount>;

#ifdef NDEBUG
inline constexpr bool kVerifyRules = false;
#else
inline constexpr bool kVerifyRules = true;
#endif

struct RuleOptions {
  // Validates the kernel, and compares the measure, after every change.
  bool verify = kVerifyRules;
  // Tests only: gates that are not looked at, bit by bit.
  std::uint32_t open_gates = 0;
};

struct Rewritten {
  RangedKernel kernel;
  RuleCounts counts{};
};

// All passes
// Need:   a valid ranged kernel
// Leave:  a valid ranged kernel with the same parameters and results. Integers and strict floats
// keep
//         their bits; relaxed sums and products may be regrouped. Shapes and layouts of parameters
//         may have fewer dimensions over the same memory.
// Errors: a defect of a rule, if `verify` finds one

// Measure: the size of the value as a tree, a reduce counting as often as it turns.
[[nodiscard]] Result<Rewritten> simplify_reduces(const RangedKernel& kernel,
                                                 const RuleOptions& options);
// Measure: divisions and modulos, then ranges, then the sum of their extents.
[[nodiscard]] Result<Rewritten> arrange_ranges(const RangedKernel& kernel,
                                               const RuleOptions& options);

struct RangedPass {
  std::string_view name, text, measure;
  Result<Rewritten> (*run)(const RangedKernel& kernel, const RuleOptions& options);
};
// In the order in which a compile runs them, after lower-kernel.
[[nodiscard]] std::span<const RangedPass> ranged_passes();

}  // namespace ingot
