#include "compiler/program/run_program.h"

#include "compiler/program/build_program.h"
#include "compiler/program/program_memory.h"

namespace ingot {

Result<FrameResult> run_program(const Program& program,
                                std::span<const std::vector<std::byte>> inputs,
                                std::span<const std::vector<std::byte>> states,
                                KernelRunner& runner) {
  ProgramMemory memory(program, ScratchFill::Zero);
  memory.write(BufferKind::Input, inputs);
  memory.write(BufferKind::State, states);
  // Together as far as possible: the runner compiles what it does not know yet in parallel.
  std::vector<KernelRunner::Call> calls;
  for (const ProgramCall& call : program.calls) {
    if (call.kind == CallKind::Program) {
      calls.push_back({program.kernels[call.kernel].get(), memory.arguments(call)});
      continue;
    }
    INGOT_RETURN_IF_ERROR(runner.run(calls));
    calls.clear();
    memory.run_fill(call);
  }
  INGOT_RETURN_IF_ERROR(runner.run(calls));
  return FrameResult{memory.read(BufferKind::Output, BufferKind::Output),
                     memory.read(BufferKind::State, BufferKind::NextState)};
}

Result<Program> build_strict_program(const Graph& graph) {
  Target target = baseline_target();
  target.has_fma = false;
  INGOT_ASSIGN(const Plan plan, make_plan(graph, target, PlanOptions{false, false}));
  INGOT_RETURN_IF_ERROR(validate_plan(plan));
  return build_program(plan, target, BuildOptions{});
}

Result<std::vector<std::vector<std::byte>>> evaluate_graph(
    const Graph& graph, std::span<const std::vector<std::byte>> inputs, KernelRunner& runner) {
  INGOT_ASSIGN(const Program program, build_strict_program(graph));
  INGOT_ASSIGN(FrameResult result, run_program(program, inputs, {}, runner));
  return std::move(result.outputs);
}

}  // namespace ingot
