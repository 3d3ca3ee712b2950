// Schedules of many kernels in one text: what `compile --emit schedule` writes and `compile
// --schedule` replays. Grammar and an example: docs/ir/schedule.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compiler/kernel/kernel.h"

namespace ingot {

// One ranged kernel, of whatever name, and the steps that make loops of it.
struct KernelSchedule {
  std::string target;
  std::uint64_t key = 0;  // schedule_key
  std::string name;       // of the first kernel that has it; for people
  std::vector<std::string> steps;
  std::string file;  // it was read from
  int line = 0;      // there, from 1
};

// Of everything that decides which schedules fit: the ranged kernel without its name, and which
// parameters are constants.
[[nodiscard]] std::uint64_t schedule_key(const RangedKernel& kernel,
                                         const std::vector<bool>& is_constant);

// print -> parse -> print is a fixed point. Errors name each line; `file` is for them. Whether
// steps fit their kernel is found out when they are used.
[[nodiscard]] std::string print_schedules(const std::vector<KernelSchedule>& schedules);
[[nodiscard]] Result<std::vector<KernelSchedule>> parse_schedules(std::string_view text,
                                                                  const std::string& file);

}  // namespace ingot
