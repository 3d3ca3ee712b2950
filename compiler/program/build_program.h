// Plan -> call list: every kernel lowered and scheduled, equal kernels once, constants packed.
//
// Needs:  a valid plan. Leaves: a program with arenas planned; every buffer is used or is a slot.
#pragma once

#include <functional>
#include <string>

#include "compiler/program/program.h"
#include "compiler/program/schedule_file.h"
#include "compiler/rules/rules.h"
#include "compiler/target/target.h"

namespace ingot {

struct BuildOptions {
  bool schedule = true;  // -O0: plain loops, no rules
  bool bands = false;    // fuse kernels band by band where that saves traffic
  RuleOptions rules;
  // Called with what the rules did in each kernel.
  std::function<void(const RuleCounts& counts)> counted;
  // Instead of the schedules that would be chosen, by key (schedule_key).
  std::function<const KernelSchedule*(std::uint64_t key)> find_schedule;
  // Called when a pass begins, which ends the one before.
  std::function<void(const std::string& name)> begins;
  std::function<void(const std::string& name, const std::string& text)> trace;
  // Called while constants are packed, which is the last thing done.
  std::function<void(std::size_t done, std::size_t total)> packing;
};

[[nodiscard]] Result<Program> build_program(const Plan& plan, const Target& target,
                                            const BuildOptions& options);

// Value of a constant built of constants by movement only, as a dense tensor.
[[nodiscard]] Tensor materialize(const Graph& graph, ValueId value);

}  // namespace ingot
