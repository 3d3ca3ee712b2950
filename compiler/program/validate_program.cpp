// A well-formed program:
//   workers    1 to 256
//   buffers    slots name an io of their kind and hold its bytes; constants exist and fill theirs
//   calls      kernels exist; as many buffers as parameters, of the parameters' type, shape and
//              layout; the grid is the kernel's parallel extent
//   access     nobody writes inputs, constants, or states that have a next state; what is read was
//              written before, but a written state is no more read; every output and next state is
//              written
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/program/program.h"

namespace ingot {
namespace {

class Validator {
 public:
  explicit Validator(const Program& program) : program_(program) {}

  Result<void> run() {
    if (program_.workers < 1 || program_.workers > 256) wrong("{} workers", program_.workers);
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) check_buffer(i);
    for (const ProgramBuffer& buffer : program_.buffers) {
      if (buffer.kind == BufferKind::NextState) has_next_.insert(buffer.io);
    }
    for (std::size_t i = 0; i < program_.calls.size(); ++i) check_call(i);
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      const ProgramBuffer& buffer = program_.buffers[i];
      const bool must = buffer.kind == BufferKind::Output || buffer.kind == BufferKind::NextState ||
                        (buffer.kind == BufferKind::State && !has_next_.contains(buffer.io));
      if (must && buffer.size_bytes > 0 && !written_.contains(i)) {
        wrong("buffer {}: nothing writes it", i);
      }
    }
    if (message_.empty()) return {};
    return fail(ExitCode::Internal, "invalid-program", message_);
  }

 private:
  template <typename... Args>
  void wrong(fmt::format_string<Args...> text, Args&&... args) {
    if (message_.empty()) message_ = fmt::format(text, std::forward<Args>(args)...);
  }

  static bool there_before(BufferKind kind) {
    return kind == BufferKind::Input || kind == BufferKind::State || kind == BufferKind::Constant;
  }

  void check_buffer(std::size_t i) {
    const ProgramBuffer& buffer = program_.buffers[i];
    if (buffer.kind == BufferKind::Constant) {
      if (buffer.constant >= program_.constants.size() ||
          program_.constants[buffer.constant].bytes->size() != buffer.size_bytes) {
        wrong("buffer {}: its constant is missing or has another size", i);
      }
      return;
    }
    if (buffer.kind == BufferKind::Scratch) return;
    if (buffer.io >= program_.io.size()) {
      wrong("buffer {}: there is no io {}", i, buffer.io);
      return;
    }
    const PlanIo& io = program_.io[buffer.io];
    if (io.dtype != buffer.dtype || io.shape != buffer.shape) {
      wrong("buffer {}: differs from io '{}'", i, io.name);
    }
  }

  void check_call(std::size_t i) {
    const ProgramCall& call = program_.calls[i];
    for (std::uint32_t buffer : call.buffers) {
      if (buffer >= program_.buffers.size()) {
        wrong("call {}: there is no buffer {}", i, buffer);
        return;
      }
    }
    if (call.kind == CallKind::Program) {
      check_program(i);
    } else if (call.kind == CallKind::Fill && call.buffers.size() == 1) {
      write(i, call.buffers[0]);
    } else if (call.kind == CallKind::Copy && call.buffers.size() == 2) {
      read(i, call.buffers[0]);
      write(i, call.buffers[1]);
    } else {
      wrong("call {}: wrong number of buffers", i);
    }
  }

  void check_program(std::size_t i) {
    const ProgramCall& call = program_.calls[i];
    if (call.kernel >= program_.kernels.size()) {
      wrong("call {}: there is no kernel {}", i, call.kernel);
      return;
    }
    const ScheduledKernel& kernel = *program_.kernels[call.kernel];
    if (kernel.parameters.size() != call.buffers.size()) {
      wrong("call {}: {} buffers for {} parameters", i, call.buffers.size(),
            kernel.parameters.size());
      return;
    }
    if (kernel.parallel_extent() != static_cast<std::int64_t>(call.grid)) {
      wrong("call {}: the grid is not the kernel's", i);
    }
    for (std::size_t p = 0; p < call.buffers.size(); ++p) {
      const ProgramBuffer& buffer = program_.buffers[call.buffers[p]];
      const KernelParameter& parameter = kernel.parameters[p];
      if (buffer.dtype != parameter.dtype ||
          !same_places(buffer.layout, buffer.shape, parameter.layout, parameter.shape)) {
        wrong("call {}: buffer {} does not fit parameter {}", i, call.buffers[p], p);
      }
      if (reads(parameter.access)) read(i, call.buffers[p]);
    }
    for (std::size_t p = 0; p < call.buffers.size(); ++p) {
      if (!writes(kernel.parameters[p].access)) continue;
      write(i, call.buffers[p]);
      const bool is_ring = program_.buffers[call.buffers[p]].kind == BufferKind::State;
      if (is_ring && std::ranges::count(call.buffers, call.buffers[p]) > 1) {
        wrong("call {}: reads the ring {} that it writes", i, call.buffers[p]);
      }
    }
  }

  void read(std::size_t call, std::uint32_t buffer) {
    const BufferKind kind = program_.buffers[buffer].kind;
    if (!there_before(kind) && !written_.contains(buffer)) {
      wrong("call {}: reads buffer {} before it is written", call, buffer);
    }
    if (kind == BufferKind::State && written_.contains(buffer)) {
      wrong("call {}: reads state {} after it was written", call, buffer);
    }
  }

  void write(std::size_t call, std::uint32_t buffer) {
    const ProgramBuffer& written = program_.buffers[buffer];
    const bool is_ring = written.kind == BufferKind::State && !has_next_.contains(written.io);
    if (there_before(written.kind) && !is_ring) {
      wrong("call {}: writes buffer {}, which nobody may write", call, buffer);
    }
    written_.insert(buffer);
  }

  const Program& program_;
  std::set<std::size_t> written_;
  std::set<std::uint32_t> has_next_;  // slots
  std::string message_;
};

}  // namespace

Result<void> validate_program(const Program& program) { return Validator(program).run(); }

}  // namespace ingot
