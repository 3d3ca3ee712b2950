// Kernels of a program by the interpreter, where machine code would run.
#pragma once

#include <span>

#include "compiler/code_generator.h"
#include "compiler/program/program.h"

namespace ingot {

class InterpretedCode : public LoadedCode {
 public:
  // The program must outlive it.
  explicit InterpretedCode(const Program& program) : program_(program) {}

  Result<void> run(std::size_t entry, std::span<std::byte* const> buffers, std::uint32_t) override {
    INGOT_RETURN_IF_ERROR(interpret(*program_.kernels[entry], buffers));
    return {};
  }

 protected:
  const Program& program_;
};

}  // namespace ingot
