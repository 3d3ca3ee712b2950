// A well-formed plan:
//   buffers    slots name an io of their kind and have its type; constants are constants of the
//              graph; layouts have the buffer's rank
//   places     a value's part lies inside its buffer and has its type
//   kernels    each placed value that must be computed has one kernel that makes it; a kernel's
//              destination is writable; every output and next state is written
//   order      a kernel reads only buffers that an earlier kernel wrote or that are there before,
//              and no ring that one wrote into
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/plan/plan.h"

namespace ingot {
namespace {

class Validator {
 public:
  explicit Validator(const Plan& plan) : plan_(plan), graph_(*plan.graph) {}

  Result<void> run() {
    for (std::size_t i = 0; i < plan_.buffers.size(); ++i) check_buffer(i);
    for (const auto& [value, placement] : plan_.placed) check_placement(value, placement);
    for (const auto& [key, placement] : plan_.operand_placed)
      check_placement(key.second, placement);
    for (const PlanKernel& kernel : plan_.kernels) check_kernel(kernel);
    for (std::size_t i = 0; i < plan_.buffers.size(); ++i) check_written(i);
    if (message_.empty()) return {};
    return fail(ExitCode::Internal, "invalid-plan", message_);
  }

 private:
  template <typename... Args>
  void wrong(fmt::format_string<Args...> text, Args&&... args) {
    if (message_.empty()) message_ = fmt::format(text, std::forward<Args>(args)...);
  }

  void check_buffer(std::size_t i) {
    const PlanBuffer& buffer = plan_.buffers[i];
    if (buffer.layout.order.size() != buffer.shape.size()) {
      wrong("buffer {}: layout and shape differ in rank", i);
    }
    if (buffer.kind == BufferKind::Scratch) return;
    if (buffer.kind == BufferKind::Constant) {
      if (!buffer.constant.valid() || buffer.constant.index >= graph_.nodes.size()) {
        wrong("buffer {}: no constant of the graph", i);
      }
      return;
    }
    if (buffer.io >= plan_.io.size()) {
      wrong("buffer {}: there is no io {}", i, buffer.io);
      return;
    }
    const PlanIo& io = plan_.io[buffer.io];
    const BufferKind slot = buffer.kind == BufferKind::NextState ? BufferKind::State : buffer.kind;
    if (io.kind != slot || io.dtype != buffer.dtype || io.shape != buffer.shape) {
      wrong("buffer {}: differs from io '{}'", i, io.name);
    }
    if (!buffer.layout.is_row_major()) wrong("buffer {}: the caller sees row-major memory", i);
  }

  void check_placement(ValueId value, const Placement& placement) {
    const Node& node = graph_[value];
    if (placement.buffer >= plan_.buffers.size()) {
      wrong("%{}: there is no buffer {}", value.index, placement.buffer);
      return;
    }
    const PlanBuffer& buffer = plan_.buffers[placement.buffer];
    if (buffer.dtype != node.dtype || buffer.shape.size() != node.shape.size() ||
        placement.offset.size() != node.shape.size()) {
      wrong("%{}: type or rank differ from buffer {}", value.index, placement.buffer);
      return;
    }
    for (std::size_t d = 0; d < node.shape.size(); ++d) {
      if (placement.offset[d] < 0 || placement.offset[d] + node.shape[d] > buffer.shape[d]) {
        wrong("%{}: leaves buffer {} in dimension {}", value.index, placement.buffer, d);
      }
    }
  }

  // What the kernel reads: placed values at the edge of what it computes inside.
  void collect_reads(const PlanKernel& kernel, ValueId value, bool is_root, std::set<ValueId>& seen,
                     std::set<std::uint32_t>& reads) const {
    if (!seen.insert(value).second) return;
    const auto packed = plan_.operand_placed.find({kernel.root, value});
    if (!is_root && packed != plan_.operand_placed.end()) {
      reads.insert(packed->second.buffer);
      return;
    }
    const auto placed = plan_.placed.find(value);
    const bool made_here =
        is_root && (placed == plan_.placed.end() || makes(kernel, placed->second));
    if (placed != plan_.placed.end() && !made_here) {
      reads.insert(placed->second.buffer);
      return;
    }
    for (ValueId input : graph_[value].inputs) collect_reads(kernel, input, false, seen, reads);
  }

  static bool makes(const PlanKernel& kernel, const Placement& placement) {
    return placement.buffer == kernel.destination.buffer &&
           placement.offset == kernel.destination.offset;
  }

  void check_kernel(const PlanKernel& kernel) {
    check_placement(kernel.root, kernel.destination);
    if (!message_.empty()) return;
    const BufferKind kind = plan_.buffers[kernel.destination.buffer].kind;
    const bool is_ring = kernel.entry && kind == BufferKind::State;
    if (!is_ring && (kernel.entry || (kind != BufferKind::Scratch && kind != BufferKind::Output &&
                                      kind != BufferKind::NextState))) {
      wrong("kernel '{}': writes a buffer that nobody may write", kernel.name);
    }
    std::set<ValueId> seen;
    std::set<std::uint32_t> reads;
    collect_reads(kernel, kernel.root, true, seen, reads);
    if (kernel.entry) collect_reads(kernel, *kernel.entry, false, seen, reads);
    if (is_ring) written_.insert(kernel.destination.buffer);
    for (std::uint32_t read : reads) {
      const BufferKind source = plan_.buffers[read].kind;
      const bool there = source == BufferKind::Input || source == BufferKind::State ||
                         source == BufferKind::Constant;
      const bool empty = element_count(plan_.buffers[read].shape) == 0;
      if (!there && !empty && !written_.contains(read)) {
        wrong("kernel '{}': reads buffer {} before it is written", kernel.name, read);
      }
      if (source == BufferKind::State && written_.contains(read)) {
        wrong("kernel '{}': reads ring {} after it was written", kernel.name, read);
      }
    }
    written_.insert(kernel.destination.buffer);
  }

  void check_written(std::size_t i) {
    const PlanBuffer& buffer = plan_.buffers[i];
    const bool must = buffer.kind == BufferKind::Output || buffer.kind == BufferKind::NextState;
    const bool is_kept = buffer.kind != BufferKind::State ||
                         std::ranges::any_of(plan_.buffers, [&](const PlanBuffer& other) {
                           return other.kind == BufferKind::NextState && other.io == buffer.io;
                         });
    if ((must || !is_kept) && element_count(buffer.shape) > 0 &&
        !written_.contains(static_cast<std::uint32_t>(i))) {
      wrong("buffer {}: nothing writes it", i);
    }
  }

  const Plan& plan_;
  const Graph& graph_;
  std::set<std::uint32_t> written_;
  std::string message_;
};

}  // namespace

Result<void> validate_plan(const Plan& plan) { return Validator(plan).run(); }

const Placement* placement_of(const Plan& plan, ValueId root, ValueId value) {
  const auto packed = plan.operand_placed.find({root, value});
  if (packed != plan.operand_placed.end()) return &packed->second;
  const auto placed = plan.placed.find(value);
  return placed == plan.placed.end() ? nullptr : &placed->second;
}

bool computes_root(const Plan& plan, const PlanKernel& kernel) {
  const auto placed = plan.placed.find(kernel.root);
  return placed == plan.placed.end() || (placed->second.buffer == kernel.destination.buffer &&
                                         placed->second.offset == kernel.destination.offset);
}

}  // namespace ingot
