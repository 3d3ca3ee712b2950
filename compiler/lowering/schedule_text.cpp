// Schedules in text form: docs/ir/schedule.md.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "compiler/line_scanner.h"
#include "compiler/lowering/schedule.h"

namespace ingot {
namespace {

std::string_view word(Tail tail) {
  switch (tail) {
    case Tail::Exact: return "exact";
    case Tail::Padded: return "padded";
    case Tail::Overlap: return "overlap";
    case Tail::Narrow: return "narrow";
  }
  return "";
}

std::unexpected<Failure> wrong_step(const std::string& step, const std::string& why) {
  return fail(ExitCode::Malformed, "bad-schedule", fmt::format("step '{}': {}", step, why));
}

// Reads steps one by one into a schedule.
class StepReader {
 public:
  explicit StepReader(const RangedKernel& kernel) : kernel_(kernel) {}

  Result<void> read(const std::string& step) {
    using Read = const char* (StepReader::*)(LineScanner&);
    static constexpr std::array<std::pair<std::string_view, Read>, 11> kReaders{{
        {"pack", &StepReader::pack},
        {"vector", &StepReader::vector},
        {"winograd", &StepReader::winograd},
        {"tile", &StepReader::tile},
        {"reduce", &StepReader::reduce},
        {"vector-reduce", &StepReader::vector_reduce},
        {"prefetch", &StepReader::prefetch},
        {"widen", &StepReader::widen},
        {"chunk", &StepReader::chunk},
        {"ahead", &StepReader::ahead},
        {"loops", &StepReader::loops},
    }};
    LineScanner line(step);
    for (const auto& [word, read_rest] : kReaders) {
      if (!line.take(word)) continue;
      const char* problem = (this->*read_rest)(line);
      if (problem == nullptr && !line.at_end()) problem = "more than expected";
      if (problem != nullptr) return wrong_step(step, problem);
      return {};
    }
    return wrong_step(step, "no such step");
  }

  Schedule take() { return std::move(schedule_); }
  bool has_loops() const { return has_loops_; }

 private:
  static constexpr const char* kNoRange = "no such range";
  static constexpr const char* kNoParameter = "no such parameter";
  static constexpr const char* kTwice = "given twice";

  bool range(LineScanner& line, std::uint32_t& found) const {
    const std::string_view name = line.word();
    const auto at = std::ranges::find(kernel_.ranges, name, &Range::name);
    found = static_cast<std::uint32_t>(at - kernel_.ranges.begin());
    return at != kernel_.ranges.end();
  }
  bool parameter(LineScanner& line, std::uint32_t& found) const {
    const std::string_view name = line.word();
    const auto at = std::ranges::find(kernel_.parameters, name, &KernelParameter::name);
    found = static_cast<std::uint32_t>(at - kernel_.parameters.begin());
    return at != kernel_.parameters.end();
  }
  template <typename Int>
  static bool number(LineScanner& line, Int& value) {
    const std::optional<Int> found = line.number<Int>();
    if (found) value = *found;
    return found.has_value();
  }
  template <typename Int>
  static bool number(LineScanner& line, std::string_view word, Int& value) {
    return line.take(word) && number(line, value);
  }

  const char* pack(LineScanner& line) {
    Schedule::Packing packing;
    if (!parameter(line, packing.parameter)) return kNoParameter;
    std::string_view text = line.rest();
    if (const std::size_t at = text.find(" winograd "); at != std::string_view::npos) {
      LineScanner end(text.substr(at + 1));
      if (!number(end, "winograd", packing.winograd) || !end.at_end()) return "expected a tile";
      text = text.substr(0, at);
    }
    const std::size_t rank = kernel_.parameters[packing.parameter].shape.size();
    Result<Layout> layout = parse_layout(text, static_cast<int>(rank));
    if (!layout) return "no layout of this parameter";
    packing.layout = *std::move(layout);
    schedule_.packings.push_back(std::move(packing));
    while (!line.at_end()) (void)line.word();
    return nullptr;
  }

  const char* vector(LineScanner& line) {
    if (schedule_.vector) return kTwice;
    VectorStep step;
    if (!range(line, step.range)) return kNoRange;
    const std::string_view size = line.word();
    const std::size_t times = size.find('x');
    if (times == std::string_view::npos) return "expected LANESxVECTORS";
    LineScanner lanes(size.substr(0, times)), vectors(size.substr(times + 1));
    if (!number(lanes, step.lanes) || !lanes.at_end() || !number(vectors, step.vectors) ||
        !vectors.at_end()) {
      return "expected LANESxVECTORS";
    }
    const std::string_view tail = line.word();
    constexpr Tail kTails[] = {Tail::Exact, Tail::Padded, Tail::Overlap, Tail::Narrow};
    const auto* const known = std::ranges::find(kTails, tail, word);
    if (known == std::end(kTails)) return "expected exact, padded, overlap or narrow";
    step.tail = *known;
    schedule_.vector = step;
    return nullptr;
  }

  const char* winograd(LineScanner& line) {
    if (schedule_.winograd) return kTwice;
    WinogradStep step;
    if (!range(line, step.row) || !range(line, step.column)) return kNoRange;
    if (!number(line, "tile", step.tile) || !number(line, "band", step.band) ||
        !number(line, "parts", step.parts) || !number(line, "positions", step.positions)) {
      return "expected tile, band, parts and positions";
    }
    schedule_.winograd = step;
    return nullptr;
  }

  const char* tile(LineScanner& line) {
    TileStep step;
    if (!range(line, step.range)) return kNoRange;
    if (!number(line, step.size)) return "expected a size";
    schedule_.tiles.push_back(step);
    return nullptr;
  }

  const char* reduce(LineScanner& line) {
    ReduceStep step;
    if (!range(line, step.range)) return kNoRange;
    if (!number(line, "split", step.split) || !number(line, "unroll", step.unroll)) {
      return "expected split and unroll";
    }
    schedule_.reduces.push_back(step);
    return nullptr;
  }

  const char* vector_reduce(LineScanner& line) {
    if (schedule_.vector_reduce) return kTwice;
    VectorStep step;
    if (!range(line, step.range)) return kNoRange;
    if (!number(line, step.lanes)) return "expected lanes";
    schedule_.vector_reduce = step;
    return nullptr;
  }

  const char* prefetch(LineScanner& line) {
    if (schedule_.prefetch) return kTwice;
    PrefetchStep step;
    if (!parameter(line, step.parameter)) return kNoParameter;
    if (!line.rest().starts_with('+')) return "expected +ELEMENTS";
    LineScanner distance(line.word().substr(1));
    if (!number(distance, step.distance) || !distance.at_end() ||
        !number(line, "share", step.share) || !number(line, "of", step.lines)) {
      return "expected +ELEMENTS share LINES of LINES";
    }
    schedule_.prefetch = step;
    return nullptr;
  }

  const char* widen(LineScanner& line) {
    if (schedule_.widen) return kTwice;
    WidenStep step;
    if (!parameter(line, step.parameter)) return kNoParameter;
    if (!number(line, "chunks", step.chunks)) return "expected chunks";
    schedule_.widen = step;
    return nullptr;
  }

  const char* chunk(LineScanner& line) {
    if (schedule_.chunk) return kTwice;
    ChunkStep step;
    if (!range(line, step.range)) return kNoRange;
    if (!number(line, step.chunks)) return "expected a number of chunks";
    schedule_.chunk = step;
    return nullptr;
  }

  const char* ahead(LineScanner& line) {
    if (schedule_.ahead) return kTwice;
    schedule_.ahead.emplace();
    return number(line, schedule_.ahead->vectors) ? nullptr : "expected a number of vectors";
  }

  const char* loops(LineScanner& line) {
    if (std::exchange(has_loops_, true)) return kTwice;
    while (!line.at_end()) {
      if (line.take("|")) {
        if (schedule_.parallel > 0 || schedule_.outer.empty()) return "'|' out of place";
        schedule_.parallel = schedule_.outer.size();
        continue;
      }
      std::uint32_t found = 0;
      if (!range(line, found)) return kNoRange;
      schedule_.outer.push_back(found);
    }
    return nullptr;
  }

  const RangedKernel& kernel_;
  Schedule schedule_;
  bool has_loops_ = false;
};

}  // namespace

std::vector<std::string> to_steps(const Schedule& schedule, const RangedKernel& kernel) {
  auto range_name = [&](std::uint32_t range) { return kernel.ranges[range].name; };
  std::vector<std::string> steps;
  for (const Schedule::Packing& packing : schedule.packings) {
    std::string step = fmt::format("pack {} {}", kernel.parameters[packing.parameter].name,
                                   to_text(packing.layout));
    if (packing.winograd > 0) step += fmt::format(" winograd {}", packing.winograd);
    steps.push_back(std::move(step));
  }
  if (schedule.vector) {
    steps.push_back(fmt::format("vector {} {}x{} {}", range_name(schedule.vector->range),
                                schedule.vector->lanes, schedule.vector->vectors,
                                word(schedule.vector->tail)));
  }
  if (schedule.winograd) {
    const WinogradStep& step = *schedule.winograd;
    steps.push_back(fmt::format("winograd {} {} tile {} band {} parts {} positions {}",
                                range_name(step.row), range_name(step.column), step.tile, step.band,
                                step.parts, step.positions));
  }
  for (const TileStep& tile : schedule.tiles) {
    steps.push_back(fmt::format("tile {} {}", range_name(tile.range), tile.size));
  }
  for (const ReduceStep& reduce : schedule.reduces) {
    steps.push_back(fmt::format("reduce {} split {} unroll {}", range_name(reduce.range),
                                reduce.split, reduce.unroll));
  }
  if (schedule.vector_reduce) {
    steps.push_back(fmt::format("vector-reduce {} {}", range_name(schedule.vector_reduce->range),
                                schedule.vector_reduce->lanes));
  }
  if (schedule.prefetch) {
    const PrefetchStep& step = *schedule.prefetch;
    steps.push_back(fmt::format("prefetch {} +{} share {} of {}",
                                kernel.parameters[step.parameter].name, step.distance, step.share,
                                step.lines));
  }
  if (schedule.widen) {
    steps.push_back(fmt::format("widen {} chunks {}",
                                kernel.parameters[schedule.widen->parameter].name,
                                schedule.widen->chunks));
  }
  if (schedule.chunk) {
    steps.push_back(
        fmt::format("chunk {} {}", range_name(schedule.chunk->range), schedule.chunk->chunks));
  }
  if (schedule.ahead) steps.push_back(fmt::format("ahead {}", schedule.ahead->vectors));
  std::string outer = "loops";
  for (std::size_t i = 0; i < schedule.outer.size(); ++i) {
    outer += fmt::format(" {}", range_name(schedule.outer[i]));
    if (i + 1 == schedule.parallel) outer += " |";
  }
  steps.push_back(outer);
  return steps;
}

Result<Schedule> parse_steps(const std::vector<std::string>& steps, const RangedKernel& kernel,
                             const std::vector<bool>& is_constant, const Target& target,
                             int largest_tile) {
  StepReader reader(kernel);
  Failure failure;
  failure.exit = ExitCode::Malformed;
  for (const std::string& step : steps) {
    if (const Result<void> read = reader.read(step); !read) {
      failure.diagnostics.push_back(read.error().diagnostics.front());
    }
  }
  if (failure.diagnostics.empty() && !reader.has_loops()) {
    return fail(ExitCode::Malformed, "bad-schedule", "no step 'loops'");
  }
  if (!failure.diagnostics.empty()) return std::unexpected(std::move(failure));
  return fit_schedule(reader.take(), kernel, is_constant, target, largest_tile);
}

}  // namespace ingot
