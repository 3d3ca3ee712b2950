// What the tests of code generation share: writing small scheduled kernels, compiling them for a
// target and running them here.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "codegen/executable_memory.h"
#include "compiler/code_generator.h"
#include "compiler/kernel/kernel.h"

namespace ingot {

// A scheduled kernel under construction.
class KernelWriter {
 public:
  explicit KernelWriter(std::string name) { kernel.name = std::move(name); }

  std::uint32_t parameter(const std::string& name, DType dtype, Shape shape, Access access);
  std::uint32_t input(const std::string& name, DType dtype, std::int64_t elements) {
    return parameter(name, dtype, {elements}, Access::Read);
  }
  std::uint32_t output(const std::string& name, DType dtype, std::int64_t elements) {
    return parameter(name, dtype, {elements}, Access::Write);
  }
  std::uint32_t registers(const std::string& name, DType dtype, std::int64_t elements,
                          std::int64_t lanes = 1);
  std::uint32_t scratch(const std::string& name, DType dtype, std::int64_t elements);

  // A loop around what `write` adds; gives write the loop's variable.
  template <typename Write>
  void loop(const std::string& name, LoopKind kind, std::int64_t extent, Write write) {
    const auto variable = static_cast<std::uint32_t>(kernel.variables.size());
    kernel.variables.push_back({name, extent, kind});
    Block outer = std::move(block_);
    block_.clear();
    write(kernel.pool.variable(variable));
    Block body = std::move(block_);
    block_ = std::move(outer);
    block_.push_back({ForStatement{variable, std::move(body)}});
  }
  template <typename Write>
  void branch(ExprId condition, Write write) {
    Block outer = std::move(block_);
    block_.clear();
    write();
    Block body = std::move(block_);
    block_ = std::move(outer);
    block_.push_back({IfStatement{condition, std::move(body)}});
  }
  void store(std::uint32_t parameter, ExprId address, ExprId value) {
    block_.push_back({StoreStatement{parameter, address, value}});
  }
  void set(std::uint32_t array, ExprId element, ExprId lane, ExprId value) {
    block_.push_back({SetRegisterStatement{array, element, lane, value}});
  }
  void prefetch(std::uint32_t parameter, ExprId address) {
    block_.push_back({PrefetchStatement{parameter, address}});
  }

  [[nodiscard]] ExprId op(ScalarOp op, std::vector<ExprId> operands, bool strict = false) {
    return kernel.pool.scalar(op, operands, strict);
  }
  [[nodiscard]] ExprId at(std::int64_t index) { return kernel.pool.index(index); }
  // Sum of factor * expression.
  [[nodiscard]] ExprId sum(std::vector<std::pair<ExprId, std::int64_t>> terms);
  [[nodiscard]] ExprId load(std::uint32_t parameter, ExprId address) {
    return kernel.pool.load_flat(parameter, kernel.parameters[parameter].dtype, address);
  }
  [[nodiscard]] ExprId load(std::uint32_t parameter, ExprId address, ExprId gate, Scalar fill) {
    return kernel.pool.load_flat_gated(parameter, kernel.parameters[parameter].dtype, address, gate,
                                       fill);
  }
  [[nodiscard]] ExprId read(std::uint32_t array, ExprId element, ExprId lane) {
    return kernel.pool.read_register(array, kernel.registers[array].dtype, element, lane);
  }

  // The kernel, validated.
  ScheduledKernel finish();

  ScheduledKernel kernel;

 private:
  Block block_;
};

// Bytes of each parameter: outputs start as zeros.
using Buffers = std::vector<std::vector<std::byte>>;
// Random elements of every kind that the type has: small, large, and special values.
[[nodiscard]] std::vector<std::byte> random_elements(DType dtype, std::int64_t count,
                                                     unsigned seed);
[[nodiscard]] Buffers random_buffers(const ScheduledKernel& kernel, unsigned seed);

struct Job {
  ScheduledKernel kernel;
  Buffers buffers;
  bool zeros_have_signs = true;  // for comparisons
  bool strict = true;
};

// Compiles all kernels into one blob and runs each; gives the buffers afterwards and the results.
// Targets of this processor run here, others under qemu.
struct Outcome {
  Buffers buffers;
  std::int32_t result = 0;
};
[[nodiscard]] std::vector<Outcome> run_jobs(const std::vector<Job>& jobs, const Target& target);

// Runs all jobs, compiled for `target`, and in the interpreter; outputs and results must be the
// same. One NaN is as good as another.
void expect_as_interpreted(const std::vector<Job>& jobs, const Target& target);
// One kernel on every target that can be run, with random buffers.
void expect_as_interpreted_everywhere(const ScheduledKernel& kernel);

// A kernel as code of this process.
class CompiledProgram {
 public:
  CompiledProgram(const ScheduledKernel& kernel, const Target& target, bool strict = false);
  std::int32_t run(std::vector<const void*> buffers, std::uint32_t first = 0,
                   std::uint32_t last = 1, std::uint32_t worker = 0) const;
  [[nodiscard]] const CodeBlob& blob() const { return blob_; }

 private:
  CodeBlob blob_;
  std::optional<ExecutableMemory> memory_;
};

// Rows of the table that this processor can run, least first.
[[nodiscard]] std::vector<Target> runnable_targets();
// And those that qemu can run.
[[nodiscard]] std::vector<Target> testable_targets();
[[nodiscard]] std::string assembly(const ScheduledKernel& kernel, const Target& target);

}  // namespace ingot
