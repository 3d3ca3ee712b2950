// Objects -> one flat blob: code from offset 0, constants behind it, nothing to be patched.
#pragma once

#include <span>

#include "base/result.h"
#include "codegen/compile_object.h"
#include "compiler/code_generator.h"

namespace ingot {

// Links in the order given; equal objects give equal bytes. Anything that would need a loader's
// help (a relocation, an undefined symbol, writable memory) is an Internal failure that names it.
[[nodiscard]] Result<CodeBlob> link_blob(std::span<const CompiledObject> objects);

// The independent check of a linked file, by its section headers and symbols alone.
[[nodiscard]] Result<CodeBlob> flatten_linked(std::span<const std::byte> elf,
                                              std::span<const CompiledObject> objects);

}  // namespace ingot
