// Printing and parsing of programs; the grammar is in docs/ir/program.md.
//
// Constants print their size only and parse as zeros; kernels print as their parameters.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/line_scanner.h"
#include "compiler/program/program.h"

namespace ingot {
namespace {

std::string print_buffer(std::size_t i, const ProgramBuffer& buffer) {
  std::string text = fmt::format("  buffer {} {}", i, name(buffer.kind));
  if (buffer.io != kNone) text += fmt::format(" io {}", buffer.io);
  text += fmt::format(" {} {} bytes", to_text(buffer.dtype, buffer.shape), buffer.size_bytes);
  if (buffer.arena != kNone) text += fmt::format(" arena {} {}", buffer.arena, buffer.arena_offset);
  return text + fmt::format(" calls {} {} {}\n", buffer.first_call, buffer.last_call,
                            to_text(buffer.layout));
}

std::string print_call(const Program& program, const ProgramCall& call) {
  std::string text;
  switch (call.kind) {
    case CallKind::Program:
      text = fmt::format("  call {} grid {}", quote(program.kernels[call.kernel]->name), call.grid);
      break;
    case CallKind::Copy: text = "  copy"; break;
    case CallKind::Fill: text = fmt::format("  fill {}", call.fill); break;
  }
  text += fmt::format(" ({})", fmt::join(call.buffers, ","));
  return text + fmt::format(" {} flops {} read {} written {}\n", quote(call.name), call.flops,
                            call.bytes_read, call.bytes_written);
}

class ProgramParser {
 public:
  Result<Program> run(std::string_view text) {
    int number = 0;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      LineScanner line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      ++number;
      if (line.at_end() || line.rest().starts_with("//")) continue;
      if (closed_ || !read(line) || !line.at_end()) {
        return fail(ExitCode::Malformed, "program-text",
                    fmt::format("line {}: this is not a line of a program", number));
      }
    }
    if (!closed_) {
      return fail(ExitCode::Malformed, "program-text", "the program does not end with '}'");
    }
    return std::move(program_);
  }

 private:
  bool read(LineScanner& line) {
    if (line.take("program")) {
      const auto name = line.quoted();
      if (!name || !line.take("{")) return false;
      program_.name = *name;
      return true;
    }
    if (line.take("}")) return closed_ = true;
    if (line.take("workers")) return read_number(line, program_.workers);
    if (line.take("io")) return read_io(line);
    if (line.take("arena")) return read_arena(line);
    if (line.take("buffer")) return read_buffer(line);
    if (line.take("call")) return read_call(line, CallKind::Program);
    if (line.take("copy")) return read_call(line, CallKind::Copy);
    return line.take("fill") && read_call(line, CallKind::Fill);
  }

  static bool read_kind(LineScanner& line, BufferKind& kind) {
    const auto known = buffer_kind_from_name(line.word());
    if (known) kind = *known;
    return known.has_value();
  }

  template <typename Int>
  static bool read_number(LineScanner& line, Int& value) {
    const auto number = line.number<Int>();
    if (number) value = *number;
    return number.has_value();
  }

  bool read_io(LineScanner& line) {
    PlanIo io;
    const auto name = line.quoted();
    if (!name || !read_kind(line, io.kind) || !line.type(io.dtype, io.shape)) return false;
    io.name = *name;
    if (line.take("camera") && !read_number(line, io.camera)) return false;
    program_.io.push_back(std::move(io));
    return true;
  }

  bool read_arena(LineScanner& line) {
    ProgramArena arena;
    if (!read_number(line, arena.size_bytes)) return false;
    arena.state = line.take("state");
    program_.arenas.push_back(arena);
    return true;
  }

  bool read_buffer(LineScanner& line) {
    ProgramBuffer buffer;
    std::uint32_t index = 0;
    if (!read_number(line, index) || index != program_.buffers.size()) return false;
    if (!read_kind(line, buffer.kind)) return false;
    if (line.take("io") && !read_number(line, buffer.io)) return false;
    if (!line.type(buffer.dtype, buffer.shape) || !read_number(line, buffer.size_bytes)) {
      return false;
    }
    if (!line.take("bytes")) return false;
    if (line.take("arena") &&
        (!read_number(line, buffer.arena) || !read_number(line, buffer.arena_offset))) {
      return false;
    }
    if (!line.take("calls") || !read_number(line, buffer.first_call) ||
        !read_number(line, buffer.last_call)) {
      return false;
    }
    const auto layout = parse_layout(line.rest(), static_cast<int>(buffer.shape.size()));
    if (!layout || buffer.size_bytes > (std::uint64_t{1} << 36)) return false;
    buffer.layout = *layout;
    line = LineScanner("");
    if (buffer.kind == BufferKind::Constant) add_constant(buffer);
    program_.buffers.push_back(std::move(buffer));
    return true;
  }

  void add_constant(ProgramBuffer& buffer) {
    buffer.constant = static_cast<std::uint32_t>(program_.constants.size());
    program_.constants.push_back(
        ProgramConstant{std::make_shared<const std::vector<std::byte>>(buffer.size_bytes)});
  }

  bool read_call(LineScanner& line, CallKind kind) {
    ProgramCall call;
    call.kind = kind;
    std::optional<std::string> kernel;
    if (kind == CallKind::Program) {
      kernel = line.quoted();
      if (!kernel || !line.take("grid") || !read_number(line, call.grid)) return false;
    } else if (kind == CallKind::Fill && !read_number(line, call.fill)) {
      return false;
    }
    if (!read_buffers(line, call) || (kernel && !add_kernel(*kernel, call))) return false;
    const auto name = line.quoted();
    if (!name) return false;
    call.name = *name;
    if (!line.take("flops") || !read_number(line, call.flops) || !line.take("read") ||
        !read_number(line, call.bytes_read) || !line.take("written") ||
        !read_number(line, call.bytes_written)) {
      return false;
    }
    program_.calls.push_back(std::move(call));
    return true;
  }

  bool read_buffers(LineScanner& line, ProgramCall& call) const {
    const std::string_view text = line.word();
    if (text.size() < 3 || text.front() != '(' || text.back() != ')') return false;
    LineScanner list(text.substr(1, text.size() - 2));
    const auto buffers = list.numbers<std::uint32_t>();
    if (!buffers || !list.at_end()) return false;
    call.buffers = *buffers;
    return std::ranges::all_of(call.buffers,
                               [&](std::uint32_t b) { return b < program_.buffers.size(); });
  }

  // A kernel known by name only: its parameters are those of its first call, the first is written.
  bool add_kernel(const std::string& name, ProgramCall& call) {
    for (std::uint32_t i = 0; i < program_.kernels.size(); ++i) {
      if (program_.kernels[i]->name != name) continue;
      call.kernel = i;
      return true;
    }
    ScheduledKernel kernel;
    kernel.name = name;
    if (call.grid > 1) {
      kernel.variables.push_back(Variable{"p", call.grid, LoopKind::Parallel});
      kernel.body.push_back(Statement{ForStatement{0, {}}});
    }
    for (std::uint32_t index : call.buffers) {
      const ProgramBuffer& buffer = program_.buffers[index];
      const Access access = kernel.parameters.empty() ? Access::Write : Access::Read;
      kernel.parameters.push_back(KernelParameter{fmt::format("b{}", index), buffer.dtype,
                                                  buffer.shape, buffer.layout, access});
    }
    call.kernel = static_cast<std::uint32_t>(program_.kernels.size());
    program_.kernels.push_back(std::make_shared<const ScheduledKernel>(std::move(kernel)));
    return true;
  }

  Program program_;
  bool closed_ = false;
};

}  // namespace

std::string print_program(const Program& program) {
  std::string text =
      fmt::format("program {} {{\n  workers {}\n", quote(program.name), program.workers);
  for (const PlanIo& io : program.io) {
    text +=
        fmt::format("  io {} {} {}", quote(io.name), name(io.kind), to_text(io.dtype, io.shape));
    text += io.camera < 0 ? "\n" : fmt::format(" camera {}\n", io.camera);
  }
  for (const ProgramArena& arena : program.arenas) {
    text += fmt::format("  arena {}{}\n", arena.size_bytes, arena.state ? " state" : "");
  }
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    text += print_buffer(i, program.buffers[i]);
  }
  for (const ProgramCall& call : program.calls) text += print_call(program, call);
  return text + "}\n";
}

Result<Program> parse_program(std::string_view text) { return ProgramParser().run(text); }

}  // namespace ingot
