// Whether a range may run into padding, from the places that its accesses reach.
#include "compiler/lowering/kernel_accesses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace ingot {
namespace {

// Of range `r` (5 turns) to 8 turns.
bool may_pad(const std::string& rest) {
  const RangedKernel kernel = parse_ranged_kernel("ranged kernel k\n" + rest).value();
  const std::vector<bool> is_constant(kernel.parameters.size(), false);
  const Target target = find_target("x86-64-v3").value();
  const auto r = std::ranges::find(kernel.ranges, "r", &Range::name) - kernel.ranges.begin();
  return KernelAccesses(kernel, is_constant, target).may_pad(static_cast<std::uint32_t>(r), 8);
}

std::string windows(int channels, int turns) {
  return "read x: f32[" + std::to_string(channels) + "] order 0 block 0x8\nwrite y: f32[" +
         std::to_string(turns) + ",5] order 0,1 block 1x8\nrange a: " + std::to_string(turns) +
         "\nrange r: 5\nstore y[a, r] = load x[a + r]\n";
}

TEST(KernelAccesses, PaddingHoldsForAllTurnsOfTheOtherRanges) {
  EXPECT_TRUE(may_pad(windows(5, 1)));
  EXPECT_TRUE(may_pad(windows(21, 17)));   // elements 0 to 23 of 24
  EXPECT_FALSE(may_pad(windows(22, 18)));  // the last turn reads element 24
}

TEST(KernelAccesses, WhatBelongsToAnotherTurnIsNotOverwritten) {
  const auto stores = [](const std::string& coordinate) {
    return may_pad(
        "read x: f32[2,5] order 0,1 block 1x8\nwrite y: f32[10] order 0 block 0x8\nrange a: 2\n"
        "range r: 5\nstore y[" +
        coordinate + "] = load x[a, r]\n");
  };
  EXPECT_FALSE(stores("a * 5 + r"));
  EXPECT_FALSE(stores("r + a * -5 + 5"));
}

}  // namespace
}  // namespace ingot
