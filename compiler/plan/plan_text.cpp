// Printing and parsing of plans; the grammar is in docs/ir/plan.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "compiler/line_scanner.h"
#include "compiler/plan/plan.h"

namespace ingot {
namespace {

std::string text_of(const std::vector<std::int64_t>& values) {
  return values.empty() ? "-" : fmt::format("{}", fmt::join(values, ","));
}

std::string text_of(const Placement& placement) {
  return fmt::format("buffer {} at {}", placement.buffer, text_of(placement.offset));
}

bool has_io(BufferKind kind) { return kind != BufferKind::Constant && kind != BufferKind::Scratch; }

class PlanParser {
 public:
  explicit PlanParser(const Graph& graph) : graph_(graph) { plan_.graph = &graph; }

  Result<Plan> run(std::string_view text) {
    int number = 0;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      LineScanner line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      ++number;
      if (line.at_end() || line.rest().starts_with("//")) continue;
      if (!read(line) || !line.at_end()) {
        return fail(ExitCode::Malformed, "plan-text",
                    fmt::format("line {}: this is not a line of a plan", number));
      }
    }
    if (!closed_) return fail(ExitCode::Malformed, "plan-text", "the plan does not end with '}'");
    return std::move(plan_);
  }

 private:
  bool read(LineScanner& line) {
    if (closed_) return false;
    if (line.take("plan")) return !line.word().empty() && line.take("{");
    if (line.take("}")) return closed_ = true;
    if (line.take("io")) return read_io(line);
    if (line.take("buffer")) return read_buffer(line);
    if (line.take("place")) {
      ValueId value;
      Placement placement;
      if (!read_value(line, value) || !read_placement(line, placement)) return false;
      return plan_.placed.emplace(value, std::move(placement)).second;
    }
    if (line.take("operand")) {
      ValueId root, value;
      Placement placement;
      if (!read_value(line, root) || !read_value(line, value) || !read_placement(line, placement)) {
        return false;
      }
      return plan_.operand_placed.emplace(std::pair(root, value), std::move(placement)).second;
    }
    return line.take("kernel") && read_kernel(line);
  }

  static bool read_kind(LineScanner& line, BufferKind& kind) {
    const auto known = buffer_kind_from_name(line.word());
    if (known) kind = *known;
    return known.has_value();
  }

  bool read_io(LineScanner& line) {
    PlanIo io;
    const auto name = line.quoted();
    if (!name || !read_kind(line, io.kind) || !line.type(io.dtype, io.shape)) return false;
    io.name = *name;
    if (line.take("camera")) {
      const auto camera = line.number<int>();
      if (!camera || *camera < 0) return false;
      io.camera = *camera;
    }
    plan_.io.push_back(std::move(io));
    return true;
  }

  bool read_buffer(LineScanner& line) {
    PlanBuffer buffer;
    const auto index = line.number<std::uint32_t>();
    if (!index || *index != plan_.buffers.size() || !read_kind(line, buffer.kind)) return false;
    if (has_io(buffer.kind)) {
      const auto io = line.number<std::uint32_t>();
      if (!io) return false;
      buffer.io = *io;
    } else if (buffer.kind == BufferKind::Constant && !read_value(line, buffer.constant)) {
      return false;
    }
    if (!line.type(buffer.dtype, buffer.shape)) return false;
    buffer.zero_before = line.take("zero");
    const auto layout = parse_layout(line.rest(), static_cast<int>(buffer.shape.size()));
    if (!layout) return false;
    buffer.layout = *layout;
    line = LineScanner("");
    plan_.buffers.push_back(std::move(buffer));
    return true;
  }

  bool read_value(LineScanner& line, ValueId& value) const {
    const std::string_view text = line.word();
    if (text.size() < 2 || text.front() != '%') return false;
    LineScanner digits(text.substr(1));
    const auto index = digits.number<std::uint32_t>();
    if (!index || !digits.at_end() || *index >= graph_.nodes.size()) return false;
    value = ValueId{*index};
    return true;
  }

  static bool read_placement(LineScanner& line, Placement& placement) {
    if (!line.take("buffer")) return false;
    const auto buffer = line.number<std::uint32_t>();
    if (!buffer || !line.take("at")) return false;
    const auto offset = line.numbers<std::int64_t>();
    if (!offset) return false;
    placement = Placement{*buffer, *offset};
    return true;
  }

  bool read_kernel(LineScanner& line) {
    PlanKernel kernel;
    const auto name = line.quoted();
    if (!name || !read_value(line, kernel.root) || !read_placement(line, kernel.destination)) {
      return false;
    }
    kernel.name = *name;
    if (line.take("entry")) {
      ValueId entry;
      if (!read_value(line, entry)) return false;
      kernel.entry = entry;
    }
    plan_.kernels.push_back(std::move(kernel));
    return true;
  }

  const Graph& graph_;
  Plan plan_;
  bool closed_ = false;
};

constexpr std::array<std::string_view, 7> kKinds = {"",         "input",   "output",    "state",
                                                    "constant", "scratch", "next-state"};

}  // namespace

std::string_view name(BufferKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::optional<BufferKind> buffer_kind_from_name(std::string_view name) {
  for (std::size_t i = 1; i < kKinds.size(); ++i) {
    if (kKinds[i] == name) return static_cast<BufferKind>(i);
  }
  return std::nullopt;
}

std::string print_plan(const Plan& plan) {
  std::string text = std::string("plan @graph {\n");
  for (const PlanIo& io : plan.io) {
    text +=
        fmt::format("  io {} {} {}", quote(io.name), name(io.kind), to_text(io.dtype, io.shape));
    text += io.camera < 0 ? "\n" : fmt::format(" camera {}\n", io.camera);
  }
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& buffer = plan.buffers[i];
    text += fmt::format("  buffer {} {}", i, name(buffer.kind));
    if (has_io(buffer.kind)) text += fmt::format(" {}", buffer.io);
    if (buffer.kind == BufferKind::Constant) text += fmt::format(" %{}", buffer.constant.index);
    text += fmt::format(" {}{} {}\n", to_text(buffer.dtype, buffer.shape),
                        buffer.zero_before ? " zero" : "", to_text(buffer.layout));
  }
  for (const auto& [value, placement] : plan.placed) {
    text += fmt::format("  place %{} {}\n", value.index, text_of(placement));
  }
  for (const auto& [key, placement] : plan.operand_placed) {
    text += fmt::format("  operand %{} %{} {}\n", key.first.index, key.second.index,
                        text_of(placement));
  }
  for (const PlanKernel& kernel : plan.kernels) {
    text += fmt::format("  kernel {} %{} {}", quote(kernel.name), kernel.root.index,
                        text_of(kernel.destination));
    text += kernel.entry ? fmt::format(" entry %{}\n", kernel.entry->index) : "\n";
  }
  return text + "}\n";
}

Result<Plan> parse_plan(std::string_view text, const Graph& graph) {
  return PlanParser(graph).run(text);
}

}  // namespace ingot
