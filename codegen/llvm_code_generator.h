// The code generator of compiler/code_generator.h, by LLVM and lld.
#pragma once

#include <memory>

#include "compiler/code_generator.h"

namespace ingot {

[[nodiscard]] std::unique_ptr<CodeGenerator> make_llvm_code_generator();

}  // namespace ingot
