#include "codegen/llvm_code_generator.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "codegen/compile_object.h"
#include "codegen/executable_memory.h"
#include "codegen/link_blob.h"

namespace ingot {
namespace {

class LlvmCodeGenerator final : public CodeGenerator {
 public:
  Result<CodeBlob> generate(std::span<const ScheduledKernel* const> kernels, const Target& target,
                            const CodeOptions& options) override;
  Result<std::unique_ptr<LoadedCode>> load(const CodeBlob& code, const Target& target) override;
  Result<std::string> emit_text(const ScheduledKernel& kernel, const Target& target,
                                const std::string& kind) override;
};

class CodeInMemory final : public LoadedCode {
 public:
  CodeInMemory(ExecutableMemory memory, std::vector<CodeBlob::Entry> entries)
      : memory_(std::move(memory)), entries_(std::move(entries)) {}

  Result<void> run(std::size_t entry, std::span<std::byte* const> buffers,
                   std::uint32_t turns) override {
    return run_program_function(memory_.program(entries_[entry]), buffers, turns);
  }

 private:
  ExecutableMemory memory_;
  std::vector<CodeBlob::Entry> entries_;
};

// No exception may leave a thread.
Result<CompiledObject> compile_one(const ScheduledKernel& kernel, const Target& target, bool strict,
                                   std::size_t index) {
  try {
    return compile_object(kernel, target, strict, "program" + std::to_string(index));
  } catch (const std::exception& exception) {
    Diagnostic diagnostic;
    diagnostic.code = "code-generation";
    diagnostic.node = kernel.name;
    diagnostic.message = std::string("code generation failed: ") + exception.what();
    return fail(ExitCode::Internal, std::move(diagnostic));
  }
}

// Those of `wanted` threads that the system gives; the first is the caller's own.
template <typename Work>
void start_threads(std::size_t wanted, const Work& work, std::vector<std::jthread>& threads) {
  try {
    for (std::size_t i = 1; i < wanted; ++i) threads.emplace_back(work);
  } catch (const std::system_error&) {
  }
}

// Each kernel is a module, a context and an object of its own, so neither the number of threads
// nor their order can show in the bytes; the link puts them together in the order given.
Result<CodeBlob> LlvmCodeGenerator::generate(std::span<const ScheduledKernel* const> kernels,
                                             const Target& target, const CodeOptions& options) {
  std::vector<CompiledObject> objects(kernels.size());
  std::vector<std::optional<Failure>> failures(kernels.size());
  std::atomic<std::size_t> next = 0;
  std::mutex progress_mutex;
  std::size_t done = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < kernels.size(); i = next++) {
      auto object = compile_one(*kernels[i], target, options.strict, i);
      if (object) {
        objects[i] = *std::move(object);
      } else {
        failures[i] = std::move(object).error();
      }
      const std::lock_guard lock(progress_mutex);
      ++done;
      if (options.progress) options.progress(done, kernels.size());
    }
  };
  {
    const auto wanted = static_cast<std::size_t>(std::max(options.jobs, 1));
    std::vector<std::jthread> threads;
    start_threads(std::min(wanted, kernels.size()), work, threads);
    work();
  }
  std::optional<Failure> all;
  for (std::optional<Failure>& failure : failures) {
    if (!failure) continue;
    if (!all) {
      all = std::move(failure);
    } else {
      std::ranges::move(failure->diagnostics, std::back_inserter(all->diagnostics));
    }
  }
  if (all) return std::unexpected(*std::move(all));
  return link_blob(objects);
}

Result<std::unique_ptr<LoadedCode>> LlvmCodeGenerator::load(const CodeBlob& code,
                                                            const Target& target) {
  if (!runs_here(target)) return nullptr;
  INGOT_ASSIGN(ExecutableMemory memory, ExecutableMemory::map(code.bytes));
  return std::make_unique<CodeInMemory>(std::move(memory), code.entries);
}

Result<std::string> LlvmCodeGenerator::emit_text(const ScheduledKernel& kernel,
                                                 const Target& target, const std::string& kind) {
  if (kind == "llvm") return compile_text(kernel, target, false, CodeText::Llvm);
  if (kind == "asm") return compile_text(kernel, target, false, CodeText::Assembly);
  return fail(ExitCode::Usage, "unknown-text", "'" + kind + "' is not a kind of text", {},
              "use llvm or asm");
}

}  // namespace

std::unique_ptr<CodeGenerator> make_llvm_code_generator() {
  return std::make_unique<LlvmCodeGenerator>();
}

}  // namespace ingot
