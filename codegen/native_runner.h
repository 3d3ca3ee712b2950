// The kernel runner of compiler/code_generator.h, by compiled code.
#pragma once

#include <memory>

#include "compiler/code_generator.h"

namespace ingot {

[[nodiscard]] std::unique_ptr<KernelRunner> make_native_runner();

}  // namespace ingot
