#include "cli/emit_files.h"

#include <fmt/format.h>

#include <string_view>

#include "artifact/names.h"
#include "codegen/compile_object.h"
#include "compiler/kernel/kernel.h"
#include "compiler/program/program.h"

namespace ingot::cli {
namespace {

namespace fs = std::filesystem;

std::string_view ending(const std::string& kind) {
  if (kind == "llvm") return ".ll";
  if (kind == "asm") return ".s";
  return kind == "obj" ? ".o" : ".kernel";
}

Result<void> emit_kernel_file(const ScheduledKernel& kernel, const Target& target,
                              const std::string& kind, const fs::path& path,
                              CodeGenerator& generator, OutputSet& outputs) {
  if (kind == "ir") return outputs.add(path, print_kernel(kernel));
  if (kind == "obj") {
    INGOT_ASSIGN(const CompiledObject object,
                 compile_object(kernel, target, false, artifact::file_stem(kernel.name)));
    return outputs.add(path, std::span<const std::byte>(object.elf));
  }
  INGOT_ASSIGN(const std::string text, generator.emit_text(kernel, target, kind));
  return outputs.add(path, text);
}

Result<void> emit_variant(const CompiledVariant& variant, const std::string& kind,
                          const fs::path& folder, CodeGenerator& generator, OutputSet& outputs) {
  INGOT_RETURN_IF_ERROR(outputs.make_folder(folder));
  if (kind == "schedule") {
    return outputs.add(folder / "schedule.txt", print_schedules(variant.program.schedules));
  }
  if (kind == "ir") {
    INGOT_RETURN_IF_ERROR(outputs.add(folder / "program.txt", print_program(variant.program)));
  }
  std::size_t number = 0;
  for (const auto& kernel : variant.program.kernels) {
    const fs::path path = folder / fmt::format("{:04}-{}{}", number++,
                                               artifact::file_stem(kernel->name), ending(kind));
    INGOT_RETURN_IF_ERROR(
        emit_kernel_file(*kernel, variant.target, kind, path, generator, outputs));
  }
  return {};
}

}  // namespace

Result<void> emit_files(const Compiled& compiled, const std::string& kind, const fs::path& folder,
                        CodeGenerator& generator, OutputSet& outputs) {
  for (const CompiledVariant& variant : compiled.variants) {
    const fs::path camera =
        variant.camera.empty() ? fs::path() : fs::path(artifact::file_stem(variant.camera));
    INGOT_RETURN_IF_ERROR(
        emit_variant(variant, kind, folder / camera / variant.target.name, generator, outputs));
  }
  return {};
}

}  // namespace ingot::cli
