// Runs kernels with the interpreter: stands in for compiled code in tests and in builds without
// LLVM.
#pragma once

#include "compiler/code_generator.h"

namespace ingot {

class InterpreterRunner final : public KernelRunner {
 public:
  // Stops at the first call that fails. Index clamping is not an error.
  [[nodiscard]] Result<void> run(std::span<const Call> calls) override;
};

}  // namespace ingot
