// The kernel runner of compiler/code_generator.h, by compiled code.
#pragma once

#include <memory>

#include "compiler/code_generator.h"

namespace ingot {

// Compiles on `jobs` threads.
[[nodiscard]] std::unique_ptr<KernelRunner> make_native_runner(int jobs);

}  // namespace ingot
