#include "compiler/program/run_program.h"

#include <cstring>
#include <memory>
#include <new>

#include "base/check.h"
#include "compiler/program/build_program.h"

namespace ingot {
namespace {

constexpr std::align_val_t kAlignment{64};

struct AlignedDelete {
  void operator()(std::byte* bytes) const { ::operator delete(bytes, kAlignment); }
};
using AlignedBytes = std::unique_ptr<std::byte[], AlignedDelete>;

AlignedBytes zeroed(std::size_t size) {
  auto* bytes = static_cast<std::byte*>(::operator new(size + 64, kAlignment));
  std::memset(bytes, 0, size + 64);
  return AlignedBytes(bytes);
}

// Every buffer of a frame, each in memory of its own: nothing is reused, so halos stay zero.
class Frame {
 public:
  explicit Frame(const Program& program) : program_(program) {
    for (const ProgramBuffer& buffer : program.buffers) {
      memory_.push_back(zeroed(buffer.size_bytes));
      if (buffer.kind == BufferKind::Constant) copy_in(*program.constants[buffer.constant].bytes);
    }
  }

  void fill_slots(BufferKind kind, std::span<const std::vector<std::byte>> values) {
    std::size_t next = 0;
    for (std::uint32_t io = 0; io < program_.io.size() && next < values.size(); ++io) {
      if (program_.io[io].kind != kind) continue;
      for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
        const ProgramBuffer& buffer = program_.buffers[b];
        if (buffer.kind != kind || buffer.io != io || values[next].empty()) continue;
        std::memcpy(memory_[b].get(), values[next].data(), values[next].size());
      }
      ++next;
    }
  }

  std::vector<std::vector<std::byte>> read_slots(BufferKind slot, BufferKind buffer_kind) const {
    std::vector<std::vector<std::byte>> values;
    for (std::uint32_t io = 0; io < program_.io.size(); ++io) {
      if (program_.io[io].kind != slot) continue;
      values.emplace_back();
      for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
        const ProgramBuffer& buffer = program_.buffers[b];
        if (buffer.kind != buffer_kind || buffer.io != io) continue;
        values.back().assign(memory_[b].get(), memory_[b].get() + buffer.size_bytes);
      }
    }
    return values;
  }

  std::vector<KernelRunner::Call> calls() const {
    std::vector<KernelRunner::Call> calls;
    for (const ProgramCall& call : program_.calls) {
      INGOT_CHECK(call.kind != CallKind::Copy, "copies are not run on the build host");
      if (call.kind == CallKind::Fill) continue;  // the memory is zero already
      KernelRunner::Call made;
      made.kernel = program_.kernels[call.kernel].get();
      for (std::uint32_t buffer : call.buffers) made.buffers.push_back(memory_[buffer].get());
      calls.push_back(std::move(made));
    }
    return calls;
  }

 private:
  void copy_in(const std::vector<std::byte>& bytes) {
    if (!bytes.empty()) std::memcpy(memory_.back().get(), bytes.data(), bytes.size());
  }

  const Program& program_;
  std::vector<AlignedBytes> memory_;
};

}  // namespace

Result<FrameResult> run_program(const Program& program,
                                std::span<const std::vector<std::byte>> inputs,
                                std::span<const std::vector<std::byte>> states,
                                KernelRunner& runner) {
  Frame frame(program);
  frame.fill_slots(BufferKind::Input, inputs);
  frame.fill_slots(BufferKind::State, states);
  const std::vector<KernelRunner::Call> calls = frame.calls();
  INGOT_RETURN_IF_ERROR(runner.run(calls));
  return FrameResult{frame.read_slots(BufferKind::Output, BufferKind::Output),
                     frame.read_slots(BufferKind::State, BufferKind::NextState)};
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
