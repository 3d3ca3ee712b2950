// --emit: the code of all kernels as files for people.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "cli/atomic_file.h"
#include "compiler/compile.h"

namespace ingot::cli {

// Kinds: llvm (.ll), asm (.s), obj (.o), ir (.kernel, and the call list as program.txt). Files of a
// variant go to FOLDER/TARGET or FOLDER/CAMERA/TARGET, when the caller commits `outputs`.
[[nodiscard]] Result<void> emit_files(const Compiled& compiled, const std::string& kind,
                                      const std::filesystem::path& folder, CodeGenerator& generator,
                                      OutputSet& outputs);

}  // namespace ingot::cli
