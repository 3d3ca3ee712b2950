// LLVM from module to object: set-up, passes, emission. The only file that runs LLVM passes.
//
// The passes are few, because the walk already leaves little to do: it emits vectors itself and
// puts every value outside of the loops that it does not depend on. Never here: vectorizers, the
// unroller, loop idioms (they call memset), or anything that knows a library function.
#include "codegen/compile_object.h"

#include <elf.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CodeGen.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/DCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>

#include "codegen/emit_kernel.h"

namespace ingot {
namespace {

// LLVM's own fatal errors abort; ours is an internal error with its exit code. It must not throw.
void report_fatal_error(void*, const char* reason, bool) {
  std::fprintf(
      stderr,
      "ingot: internal error: code generation: %s\n"
      "  hint: this is a defect in ingot; please report it with the command and its input\n",
      reason);
  std::fflush(stderr);
  _exit(70);
}

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::install_fatal_error_handler(report_fatal_error);
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
}

std::string joined(const std::vector<std::string>& features) {
  std::string text;
  for (const std::string& feature : features) text += (text.empty() ? "" : ",") + feature;
  return text;
}

Result<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const Target& target) {
  std::string error;
  const llvm::Target* const description = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (description == nullptr) {
    return fail(ExitCode::Internal, "no-llvm-target", error);
  }
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.ExceptionModel = llvm::ExceptionHandling::None;
  options.FunctionSections = true;
  options.DataSections = true;
  options.EmitStackSizeSection = true;
  // aarch64: the small model addresses pages, and would be wrong at an address that is no multiple
  // of 4 KiB; tiny is relative to the instruction.
  const auto model =
      target.architecture == Architecture::Aarch64 ? llvm::CodeModel::Tiny : llvm::CodeModel::Small;
  std::unique_ptr<llvm::TargetMachine> machine(
      description->createTargetMachine(target.triple, "", joined(target.llvm_features), options,
                                       llvm::Reloc::PIC_, model, llvm::CodeGenOptLevel::Default));
  if (!machine) return fail(ExitCode::Internal, "no-llvm-target", "no machine for " + target.name);
  return machine;
}

void set_attributes(llvm::Module& module, const Target& target) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("no-builtins");
    function.addFnAttr(llvm::Attribute::NoRedZone);  // so that the frame is all the stack there is
    function.addFnAttr("target-features", joined(target.llvm_features));
    function.setUWTableKind(llvm::UWTableKind::None);
  }
}

void run_passes(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  // Before the default analyses: no function of any library is known.
  functions.registerPass([&machine] {
    llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
    library.disableAllFunctions();
    return llvm::TargetLibraryAnalysis(library);
  });
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);

  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));  // register arrays
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::EarlyCSEPass());  // what combining made equal
  passes.addPass(llvm::DCEPass());
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) passes.run(function, functions);
  }
}

// Largest frame in .stack_sizes: an address (relocated, here 0) and a ULEB128 per function.
std::uint64_t stack_size(std::span<const char> elf) {
  Elf64_Ehdr header;
  std::memcpy(&header, elf.data(), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), elf.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  const Elf64_Shdr& names = sections[header.e_shstrndx];
  std::uint64_t largest = 0;
  for (const Elf64_Shdr& section : sections) {
    if (std::strcmp(elf.data() + names.sh_offset + section.sh_name, ".stack_sizes") != 0) continue;
    const char* at = elf.data() + section.sh_offset;
    const char* const end = at + section.sh_size;
    while (end - at > 8) {
      at += 8;
      std::uint64_t size = 0;
      for (unsigned shift = 0; at < end; shift += 7) {
        const auto byte = static_cast<unsigned char>(*at++);
        size |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0) break;
      }
      largest = std::max(largest, size);
    }
  }
  return largest;
}

struct Compilation {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module;
};

Result<void> emit_and_optimize(const ScheduledKernel& kernel, const Target& target, bool strict,
                               const std::string& symbol, Compilation& compilation) {
  initialize_llvm();
  INGOT_ASSIGN(compilation.machine, make_target_machine(target));
  compilation.module = std::make_unique<llvm::Module>("program", compilation.context);
  llvm::Module& module = *compilation.module;
  module.setTargetTriple(target.triple);
  module.setDataLayout(compilation.machine->createDataLayout());
  module.setPICLevel(llvm::PICLevel::SmallPIC);
  INGOT_RETURN_IF_ERROR(emit_kernel(kernel, target, strict, symbol, module));
  set_attributes(module, target);
  std::string complaint;
  llvm::raw_string_ostream stream(complaint);
  if (llvm::verifyModule(module, &stream)) {
    Diagnostic diagnostic;
    diagnostic.code = "malformed-llvm-module";
    diagnostic.node = kernel.name;
    diagnostic.message = complaint.substr(0, complaint.find('\n'));
    return fail(ExitCode::Internal, std::move(diagnostic));
  }
  run_passes(module, *compilation.machine);
  return {};
}

Result<llvm::SmallVector<char, 0>> emit_code(Compilation& compilation, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  // The code generator itself knows no library function either.
  llvm::TargetLibraryInfoImpl library(compilation.machine->getTargetTriple());
  library.disableAllFunctions();
  passes.add(new llvm::TargetLibraryInfoWrapperPass(library));
  if (compilation.machine->addPassesToEmitFile(passes, stream, nullptr, type)) {
    return fail(ExitCode::Internal, "no-code-emission", "the target cannot emit this kind of file");
  }
  passes.run(*compilation.module);
  return bytes;
}

}  // namespace

Result<CompiledObject> compile_object(const ScheduledKernel& kernel, const Target& target,
                                      bool strict, const std::string& symbol) {
  Compilation compilation;
  INGOT_RETURN_IF_ERROR(emit_and_optimize(kernel, target, strict, symbol, compilation));
  INGOT_ASSIGN(const auto bytes, emit_code(compilation, llvm::CodeGenFileType::ObjectFile));
  CompiledObject object;
  object.symbol = symbol;
  object.elf.resize(bytes.size());
  std::memcpy(object.elf.data(), bytes.data(), bytes.size());
  // The return address and what aligning the frame to a vector may skip.
  constexpr std::uint64_t kOutsideOfFrame = 8 + 64;
  const std::uint64_t stack = stack_size(bytes) + kOutsideOfFrame;
  if (stack > kMaxStackBytes) {
    Diagnostic diagnostic;
    diagnostic.code = "stack-too-large";
    diagnostic.node = kernel.name;
    diagnostic.message = "the program needs " + std::to_string(stack) +
                         " bytes of stack, more than " + std::to_string(kMaxStackBytes);
    diagnostic.hint = "smaller tiles or less scratch memory of one worker";
    return fail(ExitCode::Internal, std::move(diagnostic));
  }
  object.stack_bytes = static_cast<std::uint32_t>(stack);
  return object;
}

Result<std::string> compile_text(const ScheduledKernel& kernel, const Target& target, bool strict,
                                 CodeText kind) {
  Compilation compilation;
  INGOT_RETURN_IF_ERROR(emit_and_optimize(kernel, target, strict, "program", compilation));
  if (kind == CodeText::Llvm) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    compilation.module->print(stream, nullptr);
    return text;
  }
  INGOT_ASSIGN(const auto bytes, emit_code(compilation, llvm::CodeGenFileType::AssemblyFile));
  return std::string(bytes.data(), bytes.size());
}

}  // namespace ingot
