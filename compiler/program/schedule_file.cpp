#include "compiler/program/schedule_file.h"

#include <fmt/format.h>

#include <charconv>
#include <set>
#include <utility>

#include "compiler/line_scanner.h"

namespace ingot {
namespace {

constexpr std::uint64_t kFnvOffset = 0xcbf29ce484222325, kFnvPrime = 0x100000001b3;

bool parse_key(std::string_view text, std::uint64_t& key) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), key, 16);
  return text.size() == 16 && error == std::errc() && end == text.data() + text.size();
}

class FileReader {
 public:
  explicit FileReader(std::string file) : file_(std::move(file)) {}

  void read(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      ++number_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      while (line.ends_with(' ')) line.remove_suffix(1);
      read_line(line);
    }
  }

  Result<std::vector<KernelSchedule>> finish() {
    if (!failure_.diagnostics.empty()) return std::unexpected(std::move(failure_));
    return std::move(schedules_);
  }

 private:
  void wrong(const std::string& what) {
    failure_.exit = ExitCode::Malformed;
    Diagnostic diagnostic;
    diagnostic.code = "bad-schedule";
    diagnostic.file = file_;
    diagnostic.message = fmt::format("line {}: {}", number_, what);
    failure_.diagnostics.push_back(std::move(diagnostic));
  }

  void read_line(std::string_view line) {
    const bool indented = line.starts_with(' ');
    LineScanner scanner(line);
    if (scanner.at_end() || scanner.rest().starts_with(';')) return;
    if (indented) {
      if (!in_kernel_) return wrong("a step without a kernel");
      schedules_.back().steps.emplace_back(scanner.rest());
      return;
    }
    in_kernel_ = false;
    if (scanner.take("target")) {
      target_ = scanner.word();
      if (target_.empty() || !scanner.at_end()) wrong("expected 'target NAME'");
      return;
    }
    if (!scanner.take("kernel"))
      return wrong("expected 'target', 'kernel', or a step after blanks");
    KernelSchedule schedule;
    schedule.file = file_;
    schedule.line = number_;
    schedule.target = target_;
    const bool has_key = parse_key(scanner.word(), schedule.key);
    const std::optional<std::string> name = scanner.quoted();
    if (!has_key || !name || !scanner.at_end()) {
      return wrong("expected 'kernel KEY \"NAME\"', KEY of 16 hexadecimal digits");
    }
    if (target_.empty()) return wrong("a kernel without a target");
    if (!seen_.emplace(target_, schedule.key).second) wrong("a second schedule of this kernel");
    schedule.name = *name;
    schedules_.push_back(std::move(schedule));
    in_kernel_ = true;
  }

  std::string file_;
  int number_ = 0;
  std::string target_;
  bool in_kernel_ = false;
  std::set<std::pair<std::string, std::uint64_t>> seen_;
  std::vector<KernelSchedule> schedules_;
  Failure failure_;
};

}  // namespace

std::uint64_t schedule_key(const RangedKernel& kernel, const std::vector<bool>& is_constant) {
  RangedKernel nameless = kernel;
  nameless.name = "k";
  std::string text = print_kernel(nameless);
  for (const bool constant : is_constant) text += constant ? 'c' : '-';
  std::uint64_t hash = kFnvOffset;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * kFnvPrime;
  }
  return hash;
}

std::string print_schedules(const std::vector<KernelSchedule>& schedules) {
  std::string text;
  std::string_view target;
  for (const KernelSchedule& schedule : schedules) {
    if (schedule.target != target) {
      target = schedule.target;
      text += fmt::format("target {}\n", target);
    }
    text += fmt::format("\nkernel {:016x} {}\n", schedule.key, quote(schedule.name));
    for (const std::string& step : schedule.steps) text += fmt::format("  {}\n", step);
  }
  return text;
}

Result<std::vector<KernelSchedule>> parse_schedules(std::string_view text,
                                                    const std::string& file) {
  FileReader reader(file);
  reader.read(text);
  return reader.finish();
}

}  // namespace ingot
