// The self-check of a compile: runs the call list of one variant with its machine code and computes
// a sample of every call's outputs again from the graph, in double precision.
//
// Inputs of a call are what the calls before it left in the planned memory, so that an error shows
// at the call that makes it. Docs: docs/decisions/0008-self-check.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "compiler/code_generator.h"
#include "compiler/plan/plan.h"
#include "compiler/program/program.h"

namespace ingot {

struct KernelCheckOptions {
  std::uint64_t seed = 42;
  int elements = 24;                         // of each output, at most
  std::uint64_t steps_per_kernel = 200'000;  // operations; at least two elements are computed
  std::function<void(std::size_t done, std::size_t total)> progress;
};

struct KernelCheckCounts {
  std::size_t kernels = 0, elements = 0;
  // Elements of which rounding decides too much (a comparison of values that are equal but for it),
  // or that take more than 20 million operations.
  std::size_t undecided = 0;
};

// One frame: bytes of the inputs, in the order of Program::io.
struct KernelCheckFrame {
  std::vector<std::vector<std::byte>> inputs;
};

// `plan` is the one that `program` was built of. All frames run; the last one is judged. Failure:
// Internal; the diagnostic names kernel, element, both values and the bound.
[[nodiscard]] Result<KernelCheckCounts> check_kernels(
    const Plan& plan, const Program& program, LoadedCode& code,
    std::span<const std::vector<std::byte>> states, std::span<const KernelCheckFrame> frames,
    const KernelCheckOptions& options);

}  // namespace ingot
