// Constants and references: every kernel strictly compiled for the least processor of this
// architecture, so that the numbers do not depend on the machine that compiles.
#include "codegen/native_runner.h"

#include <map>
#include <set>

#include "codegen/executable_memory.h"
#include "codegen/llvm_code_generator.h"

namespace ingot {
namespace {

class NativeRunner final : public KernelRunner {
 public:
  explicit NativeRunner(int jobs) : jobs_(jobs) {}
  Result<void> run(std::span<const Call> calls) override;

 private:
  // Of each call; what is not compiled yet is compiled together.
  Result<std::vector<ProgramFunction>> programs_of(std::span<const Call> calls);

  int jobs_;
  std::unique_ptr<CodeGenerator> generator_ = make_llvm_code_generator();
  std::vector<ExecutableMemory> memory_;
  std::map<std::string, ProgramFunction> programs_;  // by identity of the kernel
};

Result<std::vector<ProgramFunction>> NativeRunner::programs_of(std::span<const Call> calls) {
  std::vector<std::string> keys;
  std::vector<const ScheduledKernel*> missing;
  std::vector<std::string> missing_keys;
  std::set<std::string> seen;
  std::map<const ScheduledKernel*, std::string> known_keys;
  for (const Call& call : calls) {
    auto [known, is_new] = known_keys.try_emplace(call.kernel);
    if (is_new) known->second = identity_key(*call.kernel);
    keys.push_back(known->second);
    if (programs_.contains(keys.back()) || !seen.insert(keys.back()).second) continue;
    missing.push_back(call.kernel);
    missing_keys.push_back(keys.back());
  }
  if (!missing.empty()) {
    CodeOptions options;
    options.strict = true;
    options.jobs = jobs_;
    INGOT_ASSIGN(const CodeBlob blob, generator_->generate(missing, baseline_target(), options));
    INGOT_ASSIGN(ExecutableMemory memory, ExecutableMemory::map(blob.bytes));
    for (std::size_t i = 0; i < missing.size(); ++i) {
      programs_[missing_keys[i]] = memory.program(blob.entries[i]);
    }
    memory_.push_back(std::move(memory));
  }
  std::vector<ProgramFunction> programs;
  for (const std::string& key : keys) programs.push_back(programs_.at(key));
  return programs;
}

Result<void> NativeRunner::run(std::span<const Call> calls) {
  INGOT_ASSIGN(const std::vector<ProgramFunction> programs, programs_of(calls));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto turns = static_cast<std::uint32_t>(calls[i].kernel->parallel_extent());
    Result<void> result = run_program_function(programs[i], calls[i].buffers, turns);
    if (result) continue;
    result.error().diagnostics.front().node = calls[i].kernel->name;
    return result;
  }
  return {};
}

}  // namespace

std::unique_ptr<KernelRunner> make_native_runner(int jobs) {
  return std::make_unique<NativeRunner>(jobs);
}

}  // namespace ingot
