// Whether a schedule that somebody else made computes the kernel.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "compiler/lowering/kernel_accesses.h"
#include "compiler/lowering/schedule.h"

namespace ingot {
namespace {

// Accumulators and written-out turns of one body, so that code and compile time stay bounded.
constexpr std::int64_t kMostAccumulators = 256;
constexpr std::int64_t kMostUnrolled = 4096;
constexpr std::int64_t kMostPrefetches = 64;
constexpr std::int64_t kMostPanel = std::int64_t{1} << 20;
constexpr std::int64_t kFarthestPrefetch = std::int64_t{1} << 30;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class Fitter {
 public:
  Fitter(const RangedKernel& kernel, const std::vector<bool>& is_constant, const Target& target,
         const Schedule& schedule)
      : kernel_(kernel), schedule_(schedule), accesses_(kernel, is_constant, target) {}

  // Reasons against it.
  std::vector<std::string> run() {
    check_packings();
    check_vector();
    check_tiles();
    check_reduces();
    check_vector_reduce();
    if (!reasons_.empty()) return std::move(reasons_);  // turns below would make no sense
    check_unrolled();
    check_outer();
    check_prefetch();
    check_widen();
    check_chunk();
    check_ahead();
    return std::move(reasons_);
  }

 private:
  std::int64_t extent(std::uint32_t range) const { return kernel_.ranges[range].extent; }
  const std::string& name(std::uint32_t range) const { return kernel_.ranges[range].name; }
  const std::string& parameter(std::uint32_t index) const { return kernel_.parameters[index].name; }

  template <typename... Args>
  void against(fmt::format_string<Args...> text, Args&&... args) {
    reasons_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  bool is_output(std::uint32_t range) {
    if (!kernel_.ranges[range].is_reduce) return true;
    against("range {} is reduced", name(range));
    return false;
  }

  void check_packings() {
    std::set<std::uint32_t> packed;
    for (const Schedule::Packing& packing : schedule_.packings) {
      const std::uint32_t p = packing.parameter;
      if (!accesses_.is_constant(p)) against("parameter {} is no constant", parameter(p));
      if (!packed.insert(p).second) against("parameter {} is packed twice", parameter(p));
      if (packing.winograd != 0) against("weights of tiles without step winograd");
      const bool halo = std::ranges::any_of(packing.layout.before, [](auto n) { return n != 0; }) ||
                        std::ranges::any_of(packing.layout.after, [](auto n) { return n != 0; });
      if (halo) against("parameter {}: a constant has no halo", parameter(p));
      if (packing.layout.block > kMostUnrolled)
        against("parameter {}: block too large", parameter(p));
      if (has_empty_streams(packing.layout, kernel_.parameters[p].shape))
        against("parameter {}: more streams than blocks", parameter(p));
    }
  }

  static bool has_empty_streams(const Layout& layout, const Shape& shape) {
    if (layout.streams == 1) return false;
    const std::int64_t count = shape[static_cast<std::size_t>(layout.block_dim)];
    return layout.streams > (count - 1) / layout.block + 1;
  }

  bool lanes_fit(const VectorStep& step) {
    if (step.lanes >= 2 && step.lanes <= accesses_.lanes() &&
        std::has_single_bit(static_cast<unsigned>(step.lanes))) {
      return true;
    }
    against("{} lanes: a power of two from 2 to {} is possible", step.lanes, accesses_.lanes());
    return false;
  }

  void check_vector() {
    if (!schedule_.vector) return;
    const VectorStep& step = *schedule_.vector;
    if (schedule_.vector_reduce) against("vectors of an output range and of a reduce range");
    if (!is_output(step.range) || !lanes_fit(step)) return;
    const std::int64_t count = extent(step.range);
    if (step.vectors < 1 || step.vectors > kMostAccumulators) {
      return against("{} vectors in a tile", step.vectors);
    }
    switch (step.tail) {
      case Tail::Exact:
        if (count % step.lanes != 0)
          against("{} lanes do not divide {}", step.lanes, name(step.range));
        return;
      case Tail::Overlap:
        if (std::int64_t{step.lanes} * step.vectors > count) {
          against("{} is shorter than {} vectors of {}", name(step.range), step.vectors,
                  step.lanes);
        }
        return;
      case Tail::Padded: return check_padding(step, round_up(count, step.lanes));
      case Tail::Narrow:
        if (const int left = step.last_lanes(count);
            left < 2 || !std::has_single_bit(static_cast<unsigned>(left))) {
          against("{} lanes leave {} of {}: a narrow vector has a power of two", step.lanes, left,
                  name(step.range));
        }
        return;
    }
  }

  void check_padding(const VectorStep& step, std::int64_t padded) {
    if (!accesses_.may_pad(step.range, padded)) {
      return against("{} has no padding for vectors of {}", name(step.range), step.lanes);
    }
    for (const AccessSite& site : accesses_.sites()) {
      if (!accesses_.is_constant(site.parameter)) continue;
      const int d = accesses_.plain_dimension(site, step.range);
      if (d < 0) continue;
      const KernelParameter& read = kernel_.parameters[site.parameter];
      const auto packing =
          std::ranges::find(schedule_.packings, site.parameter, &Schedule::Packing::parameter);
      const Layout& layout = packing == schedule_.packings.end() ? read.layout : packing->layout;
      if (layout.block_dim != d || padded_extent(layout, read.shape, d) < padded) {
        against("parameter {} is not packed with padding for vectors of {}", read.name, step.lanes);
      }
    }
  }

  void check_tiles() {
    std::set<std::uint32_t> tiled;
    if (schedule_.vector) tiled.insert(schedule_.vector->range);
    for (const TileStep& tile : schedule_.tiles) {
      if (!is_output(tile.range)) continue;
      if (!tiled.insert(tile.range).second) against("range {} has two steps", name(tile.range));
      if (tile.size < 1 || tile.size > extent(tile.range)) {
        against("{} has no tiles of {}", name(tile.range), tile.size);
      }
    }
  }

  void check_reduces() {
    std::set<std::uint32_t> missing(accesses_.reduce_ranges().begin(),
                                    accesses_.reduce_ranges().end());
    for (const ReduceStep& step : schedule_.reduces) {
      if (!kernel_.ranges[step.range].is_reduce) {
        against("range {} is not reduced", name(step.range));
        continue;
      }
      if (missing.erase(step.range) == 0) against("range {} is reduced twice", name(step.range));
      if (step.split < 1 || step.split > std::max<std::int64_t>(1, extent(step.range))) {
        against("{} has no blocks of {}", name(step.range), step.split);
        continue;
      }
      const std::int64_t turns = step.split > 1 ? step.split : extent(step.range);
      if (step.unroll < 1 || (step.unroll != turns && turns % step.unroll != 0)) {
        against("{} does not divide the {} turns of {}", step.unroll, turns, name(step.range));
      }
    }
    for (const std::uint32_t range : missing) against("no step reduces {}", name(range));
    if (accesses_.strict() && !std::ranges::is_sorted(schedule_.reduces, {}, &ReduceStep::range)) {
      against("strict sums keep their order");
    }
  }

  void check_vector_reduce() {
    if (!schedule_.vector_reduce) return;
    const VectorStep& step = *schedule_.vector_reduce;
    if (!kernel_.ranges[step.range].is_reduce)
      return against("range {} is not reduced", name(step.range));
    if (!lanes_fit(step)) return;
    if (accesses_.strict()) against("strict sums keep their order");
    if (accesses_.reduces().size() != 1) against("lanes over a reduce range serve one reduce");
    if (extent(step.range) < step.lanes)
      against("{} is shorter than {}", name(step.range), step.lanes);
    if (schedule_.reduces.empty() || schedule_.reduces.back().range != step.range) {
      return against("lanes run over the innermost reduce range");
    }
    if (schedule_.reduces.back().split != 1) against("{} is split and has lanes", name(step.range));
  }

  std::int64_t step_of(std::uint32_t range) const {
    if (schedule_.vector && schedule_.vector->range == range) {
      return std::int64_t{schedule_.vector->lanes} * schedule_.vector->vectors;
    }
    const auto tile = std::ranges::find(schedule_.tiles, range, &TileStep::range);
    return tile == schedule_.tiles.end() ? 1 : tile->size;
  }
  std::int64_t turns(std::uint32_t range) const {
    return (extent(range) + step_of(range) - 1) / step_of(range);
  }

  void check_unrolled() {
    std::int64_t elements = schedule_.vector ? schedule_.vector->vectors : 1;
    for (const TileStep& tile : schedule_.tiles) {
      elements = std::min(elements * std::min(tile.size, kMostUnrolled), kMostUnrolled);
    }
    if (elements > kMostAccumulators) {
      against("{} accumulators, {} are possible", elements, kMostAccumulators);
    }
    for (const ReduceStep& step : schedule_.reduces) {
      elements = std::min(elements * std::min(step.unroll, kMostUnrolled), kMostUnrolled + 1);
    }
    if (elements > kMostUnrolled) against("more than {} turns are written out", kMostUnrolled);
  }

  void check_outer() {
    std::set<std::uint32_t> missing;
    for (const std::uint32_t range : accesses_.output_ranges()) {
      if (turns(range) != 1) missing.insert(range);
    }
    std::set<std::uint32_t> seen;
    for (const std::uint32_t range : schedule_.outer) {
      if (!is_output(range)) continue;
      if (!seen.insert(range).second) against("two loops over {}", name(range));
      missing.erase(range);
    }
    for (const std::uint32_t range : missing) against("no loop over {}", name(range));
    if (parallel_turns(1) > kMostParallelTurns) {
      against("more than {} turns of the parallel loop", kMostParallelTurns);
    }
  }

  // Of the parallel loop, with a factor; capped, so that nothing overflows.
  std::int64_t parallel_turns(std::int64_t product) const {
    product = std::min(product, kMostParallelTurns + 1);
    for (std::size_t i = 0; i < schedule_.parallel; ++i) {
      product = std::min(product * std::min(turns(schedule_.outer[i]), kMostParallelTurns + 1),
                         kMostParallelTurns + 1);
    }
    return product;
  }

  void check_prefetch() {
    if (!schedule_.prefetch) return;
    const PrefetchStep& step = *schedule_.prefetch;
    if (!accesses_.is_constant(step.parameter)) {
      against("parameter {} is no constant", parameter(step.parameter));
    }
    if (!schedule_.vector) against("prefetch without vectors");
    if (step.lines < 1 || step.share < 1 || step.share > step.lines ||
        step.share > kMostPrefetches || step.distance < -kFarthestPrefetch ||
        step.distance > kFarthestPrefetch || step.lines > kFarthestPrefetch) {
      against("prefetch of {} of {} lines", step.share, step.lines);
    }
  }

  void check_widen() {
    if (!schedule_.widen) return;
    const WidenStep& step = *schedule_.widen;
    const KernelParameter& read = kernel_.parameters[step.parameter];
    const auto packing =
        std::ranges::find(schedule_.packings, step.parameter, &Schedule::Packing::parameter);
    const bool fits = packing != schedule_.packings.end() && is_float(read.dtype) &&
                      size_bytes(read.dtype) == 2 && schedule_.vector &&
                      schedule_.vector->tail != Tail::Overlap && may_widen_panels() &&
                      packing->layout.block_dim >= 0 &&
                      packing->layout.block == step_of(schedule_.vector->range) &&
                      packing->layout.streams == 1 &&
                      panel_elements(*packing, read.shape) <= kMostPanel &&
                      std::ranges::all_of(accesses_.sites(), [&](const AccessSite& site) {
                        return site.parameter != step.parameter ||
                               accesses_.plain_dimension(site, schedule_.vector->range) ==
                                   packing->layout.block_dim;
                      });
    if (!fits) {
      against(
          "parameter {}: only packed panels of 16-bit weights are widened, in the one loop over "
          "them "
          "or before all",
          read.name);
      return;
    }
    const std::uint32_t next = schedule_.outer[schedule_.parallel];
    if (step.chunks < 1 || turns(next) % step.chunks != 0 ||
        step.chunks * turns(schedule_.vector->range) > kMostParallelTurns) {
      against("{} chunks of the {} turns of {}", step.chunks, turns(next), name(next));
    }
  }

  void check_chunk() {
    if (!schedule_.chunk) return;
    const ChunkStep& step = *schedule_.chunk;
    const auto at = std::ranges::find(schedule_.outer, step.range);
    if (at == schedule_.outer.end())
      return against("chunks of {}, which has no loop", name(step.range));
    if (schedule_.parallel == 0 || schedule_.widen) {
      return against("chunks of {} {}", name(step.range),
                     schedule_.widen ? "beside widened panels" : "without a parallel loop");
    }
    const auto joined = static_cast<std::size_t>(at - schedule_.outer.begin());
    const std::int64_t beside = joined < schedule_.parallel ? 1 : step.chunks;
    if (step.chunks < 1 || turns(step.range) % step.chunks != 0 ||
        parallel_turns(beside) > kMostParallelTurns) {
      against("{} chunks of the {} turns of {}", step.chunks, turns(step.range), name(step.range));
    }
  }

  // The only one before the bar, or none where there is one panel; then a loop to cut.
  bool may_widen_panels() const {
    const std::uint32_t range = schedule_.vector->range;
    const bool one =
        turns(range) == 1 && std::ranges::find(schedule_.outer, range) == schedule_.outer.end();
    return schedule_.outer.size() > schedule_.parallel &&
           (one ? schedule_.parallel == 0 : schedule_.parallel == 1 && schedule_.outer[0] == range);
  }

  void check_ahead() {
    if (!schedule_.ahead) return;
    if (!schedule_.vector || !accesses_.reduces().empty()) {
      against("places ahead of a kernel that has a reduce or no vectors");
    }
    if (schedule_.ahead->vectors < 1 || schedule_.ahead->vectors > kFarthestPrefetch) {
      against("{} vectors ahead", schedule_.ahead->vectors);
    }
  }

  const RangedKernel& kernel_;
  const Schedule& schedule_;
  const KernelAccesses accesses_;
  std::vector<std::string> reasons_;
};

std::unexpected<Failure> does_not_fit(const std::vector<std::string>& reasons) {
  Failure failure;
  failure.exit = ExitCode::Malformed;
  for (const std::string& reason : reasons) {
    Diagnostic diagnostic;
    diagnostic.code = "schedule-does-not-fit";
    diagnostic.message = reason;
    failure.diagnostics.push_back(std::move(diagnostic));
  }
  return std::unexpected(std::move(failure));
}

// Everything but the four numbers of its step and the vectors follows from the kernel.
Result<Schedule> fit_winograd(const Schedule& schedule, const RangedKernel& kernel,
                              const std::vector<bool>& is_constant, const Target& target,
                              int largest_tile) {
  const WinogradStep& step = *schedule.winograd;
  WinogradPlan plan;
  plan.tile = step.tile;
  plan.band = step.band;
  plan.parts = step.parts;
  plan.positions = step.positions;
  plan.vectors = schedule.vector ? schedule.vector->vectors : 0;
  std::optional<Schedule> known;
  if (step.tile <= largest_tile) known = winograd_schedule(kernel, is_constant, target, plan);
  if (!known) return does_not_fit({"no Winograd convolution with these numbers"});
  const std::vector<std::string> wanted = to_steps(*known, kernel);
  if (to_steps(schedule, kernel) != wanted) {
    std::vector<std::string> reasons{"other steps than those that these numbers lead to:"};
    reasons.insert(reasons.end(), wanted.begin(), wanted.end());
    return does_not_fit(reasons);
  }
  return *std::move(known);
}

}  // namespace

Result<Schedule> fit_schedule(Schedule schedule, const RangedKernel& kernel,
                              const std::vector<bool>& is_constant, const Target& target,
                              int largest_tile) {
  if (schedule.winograd) {
    return fit_winograd(schedule, kernel, is_constant, target, largest_tile);
  }
  const std::vector<std::string> reasons = Fitter(kernel, is_constant, target, schedule).run();
  if (!reasons.empty()) return does_not_fit(reasons);
  return schedule;
}

}  // namespace ingot
