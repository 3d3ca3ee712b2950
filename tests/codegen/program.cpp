#include "tests/codegen/program.h"

#include "codegen/llvm_code_generator.h"

namespace ingot {

std::uint32_t KernelWriter::parameter(const std::string& name, DType dtype, Shape shape,
                                      Access access) {
  KernelParameter parameter;
  parameter.name = name;
  parameter.dtype = dtype;
  parameter.layout = Layout::row_major(static_cast<int>(shape.size()));
  parameter.shape = std::move(shape);
  parameter.access = access;
  kernel.parameters.push_back(std::move(parameter));
  return static_cast<std::uint32_t>(kernel.parameters.size() - 1);
}

std::uint32_t KernelWriter::registers(const std::string& name, DType dtype, std::int64_t elements,
                                      std::int64_t lanes) {
  kernel.registers.push_back({name, AddressSpace::Register, dtype, elements, lanes});
  return static_cast<std::uint32_t>(kernel.registers.size() - 1);
}

std::uint32_t KernelWriter::scratch(const std::string& name, DType dtype, std::int64_t elements) {
  kernel.registers.push_back({name, AddressSpace::Worker, dtype, elements, 1});
  return static_cast<std::uint32_t>(kernel.registers.size() - 1);
}

ExprId KernelWriter::sum(std::vector<std::pair<ExprId, std::int64_t>> terms) {
  ExprId total = at(0);
  for (const auto& [term, factor] : terms) {
    total = kernel.pool.add(total, kernel.pool.mul(term, factor));
  }
  return total;
}

ScheduledKernel KernelWriter::finish() {
  kernel.body = std::move(block_);
  const Result<void> valid = validate_kernel(kernel);
  EXPECT_TRUE(valid.has_value()) << to_line(valid.error().diagnostics[0]);
  return kernel;
}

CompiledProgram::CompiledProgram(const ScheduledKernel& kernel, const Target& target,
                                 bool strict) {
  CodeOptions options;
  options.strict = strict;
  const ScheduledKernel* const kernels[] = {&kernel};
  Result<CodeBlob> blob = make_llvm_code_generator()->generate(kernels, target, options);
  if (!blob) {
    ADD_FAILURE() << to_line(blob.error().diagnostics[0]);
    return;
  }
  blob_ = *std::move(blob);
  Result<ExecutableMemory> memory = ExecutableMemory::map(blob_.bytes);
  if (!memory) {
    ADD_FAILURE() << to_line(memory.error().diagnostics[0]);
    return;
  }
  memory_.emplace(*std::move(memory));
}

std::int32_t CompiledProgram::run(std::vector<const void*> buffers, std::uint32_t first,
                                  std::uint32_t last) const {
  if (!memory_) return -1;
  const DefaultFloatMode mode;
  return memory_->program(blob_.entries[0])(buffers.data(), nullptr, first, last, 0);
}

std::vector<Target> runnable_targets() {
  std::vector<Target> targets;
  const Result<Target> host = find_target("host");
  for (const Target& target : known_targets()) {
    if (host && target.architecture == host->architecture &&
        (target.feature_bits & ~host->feature_bits) == 0) {
      targets.push_back(target);
    }
  }
  return targets;
}

std::string assembly(const ScheduledKernel& kernel, const Target& target) {
  Result<std::string> text = make_llvm_code_generator()->emit_text(kernel, target, "asm");
  if (!text) ADD_FAILURE() << to_line(text.error().diagnostics[0]);
  return text ? *std::move(text) : std::string();
}

}  // namespace ingot
