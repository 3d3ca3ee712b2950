// What the tests of rules share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "compiler/rules/rules.h"

namespace ingot {

using RulePass = Result<Rewritten> (*)(const RangedKernel&, const RuleOptions&);

// Verified. scripts/break_gates names one gate in INGOT_OPEN_GATE, which is then not looked at:
// some test must turn red.
inline RuleOptions rule_options() {
  RuleOptions options;
  options.verify = true;
  const char* const name = std::getenv("INGOT_OPEN_GATE");
  if (name == nullptr) return options;
  for (const GateInfo& gate : gate_list()) {
    const RuleInfo& rule = rule_list()[static_cast<std::size_t>(gate.rule)];
    if (std::string(rule.name) + "/" + std::string(gate.name) == name) {
      options.open_gates |= 1U << static_cast<unsigned>(gate.gate);
    }
  }
  EXPECT_NE(options.open_gates, 0U) << "no gate is called " << name;
  return options;
}

using Memory = std::vector<std::vector<std::byte>>;

// Small whole numbers, which no order of sums rounds; indices that lie outside too.
inline Memory random_memory(const RangedKernel& kernel, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Memory memory;
  for (const KernelParameter& parameter : kernel.parameters) {
    const std::int64_t count = element_count(parameter.layout, parameter.shape);
    const int size = size_bytes(parameter.dtype);
    std::vector<std::byte> bytes(static_cast<std::size_t>(count * size));
    for (std::int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<std::int64_t>(random() % 13) - 4;
      Scalar::of_int(parameter.dtype, value).store(bytes.data() + i * size);
    }
    memory.push_back(std::move(bytes));
  }
  return memory;
}

inline Memory results(const RangedKernel& kernel, Memory memory) {
  std::vector<std::byte*> buffers;
  for (std::vector<std::byte>& bytes : memory) buffers.push_back(bytes.data());
  const auto done = interpret(kernel, buffers);
  EXPECT_TRUE(done.has_value()) << (done ? "" : to_line(done.error().diagnostics[0])) << "\n"
                                << print_kernel(kernel);
  return memory;
}

inline void expect_same_results(const RangedKernel& before, const RangedKernel& after,
                                std::uint64_t seed) {
  const Memory memory = random_memory(before, seed);
  EXPECT_TRUE(results(before, memory) == results(after, memory))
      << print_kernel(before) << print_kernel(after);
}

}  // namespace ingot
