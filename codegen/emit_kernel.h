// ScheduledKernel -> one LLVM function, program ABI of compiler/code_generator.h. Internal to
// codegen/.
#pragma once

#include <llvm/IR/Module.h>

#include <string>

#include "base/result.h"
#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace ingot {

// Needs: a valid kernel. Leaves: a function `symbol` in `module` that keeps nothing in memory but
// what the kernel stores (register arrays are single slots that promotion removes). A kernel that
// cannot be emitted is an Internal failure that says why.
[[nodiscard]] Result<void> emit_kernel(const ScheduledKernel& kernel, const Target& target,
                                       bool strict, const std::string& symbol,
                                       llvm::Module& module);

}  // namespace ingot
