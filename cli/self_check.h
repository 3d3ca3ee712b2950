// What `compile` does with its own result before it keeps it: opens it with the loader, checks the
// tables of all variants, and runs the reference vectors of those that this machine can execute.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace ingot::cli {

enum class CheckLevel { Off, Sampled, Full };

struct VariantCheck {
  enum class Outcome { NotAsked, NotExecuted, Passed };
  Outcome outcome = Outcome::NotAsked;
  // Largest absolute error of any output, and of the outputs' largest share of their tolerance.
  double max_abs_error = 0;
};

// One entry for each variant. Off checks the tables only. Sampled runs the vectors once. Full runs
// them twice, from the sealed memory file and from a private copy of the code. Failures:
// NumbersDiffer, or Internal where the loader refuses what this tool wrote.
[[nodiscard]] Result<std::vector<VariantCheck>> self_check(const std::vector<std::byte>& artifact,
                                                           const std::string& file,
                                                           CheckLevel level);

}  // namespace ingot::cli
