// Chooses a schedule from what each access does along each range.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "compiler/kernel/index_arithmetic.h"
#include "compiler/lowering/kernel_accesses.h"
#include "compiler/lowering/schedule.h"

namespace ingot {
namespace {

// Outer loops together give the parallel loop at least this many turns where they can.
constexpr std::int64_t kParallelTurns = 16;
// Cost of a gathered or scattered vector access against a contiguous one.
constexpr double kGatherCost = 4.0;
// Reduce turns over which an access outside of the reduce costs as much as one inside.
constexpr double kOutsideTurns = 8.0;
// Constants below this stay in the first caches.
constexpr std::int64_t kPrefetchedBytes = 64 << 10;
// A vector of places takes about 10 ns, memory about 100.
constexpr std::int64_t kVectorsAhead = 16;
constexpr std::int64_t kFarthest = std::int64_t{1} << 40;  // coordinates, of known places
// Of rows, outside of blocks of channels; in maps, which memory feeds in long runs.
constexpr std::int64_t kMostChunks = 8, kMostChunksOfMaps = 2;
// Ahead of a stream that is read once.
constexpr std::int64_t kStreamDistanceBytes = 4096;
// Of one row of weights: streams at a time, vectors in a tile without, and in the only tile.
constexpr std::int64_t kStreams = 4, kRowVectors = 6, kOnlyVectors = 8;
// Turns of the innermost reduce loop that are written out, times the elements of a tile.
constexpr std::int64_t kWrittenTurns = 64;
constexpr int kTwoTurnVector = 512;  // bits
// Of a depthwise tile: its extents, and what is written out.
constexpr int kManyRegisters = 32;
constexpr std::int64_t kWindowVectors = 4, kWindowSums = 8;  // with fewer registers
constexpr std::int64_t kWindowColumns = 7, kWindowRows = 2, kWindowTurns = 128, kWideWindow = 5;
// Panels of weights that are widened: tiles that use one, and its part of the second cache.
constexpr std::int64_t kTilesOfPanel = 4, kPanelPart = 4;
// Fixed cost of a tile in units of one of its elements.
constexpr double kTileOverhead = 1.5;
constexpr double kOverlapCost = 1.04;
// Vectors of a tile, and the part of the usual cost below which others than the usual are taken.
constexpr std::int64_t kMostVectors = 4;
constexpr double kWorthwhile = 0.97;
// Of a vector of 16-bit weights; whether a panel is widened instead is not known yet.
constexpr double kConversionCost = 0.5;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::int64_t floor_power_of_two(std::int64_t value) {
  std::int64_t power = 1;
  while (power * 2 <= value) power *= 2;
  return power;
}

class Chooser {
 public:
  Chooser(const RangedKernel& kernel, const std::vector<bool>& is_constant, const Target& target,
          bool is_stage)
      : kernel_(kernel),
        target_(target),
        accesses_(kernel, is_constant, target),
        is_stage_(is_stage) {}

  Schedule run() {
    choose_vector_reduce();
    choose_vector();
    choose_tiles();
    choose_reduces();
    choose_outer();
    pack_constants();
    choose_widening();
    choose_prefetch();
    return std::move(schedule_);
  }

 private:
  const ExprPool& pool() const { return kernel_.pool; }
  std::int64_t extent(std::uint32_t range) const { return kernel_.ranges[range].extent; }
  std::int64_t lanes() const { return accesses_.lanes(); }
  Along along(const AccessSite& site, std::uint32_t range) const {
    return accesses_.along(site, range);
  }

  // --- vectors

  double vector_cost(std::uint32_t range) const {
    double cost = 1;
    for (const AccessSite& site : accesses_.sites()) {
      if (along(site, range) != Along::Strided) continue;
      const bool rare = !accesses_.reduces().empty() && !site.inside_reduce;
      cost += rare ? kGatherCost * std::min(1.0, kOutsideTurns / reduce_turns()) : kGatherCost;
    }
    const std::int64_t used = std::min(lanes(), floor_power_of_two(extent(range)));
    const std::int64_t done = round_up(extent(range), used);
    return cost * static_cast<double>(lanes()) / static_cast<double>(used) *
           static_cast<double>(done) / static_cast<double>(extent(range));
  }

  double reduce_turns() const {
    double turns = 1;
    for (std::uint32_t range : accesses_.reduce_ranges())
      turns *= static_cast<double>(extent(range));
    return turns;
  }

  // The last candidate wins ties: the innermost range of the result.
  void choose_vector() {
    double best = static_cast<double>(lanes());  // scalar code
    for (std::uint32_t range : accesses_.output_ranges()) {
      if (extent(range) < 2) continue;
      const double cost = vector_cost(range);
      if (cost > best) continue;
      const std::optional<VectorStep> step = vector_step(range);
      if (!step) continue;
      best = cost;
      schedule_.vector = step;
    }
    // Gathers in the inner loop lose against lanes over the reduce range.
    if (schedule_.vector_reduce && best > kGatherCost) schedule_.vector.reset();
    if (schedule_.vector) {
      schedule_.vector_reduce.reset();
      choose_vectors_per_tile(*schedule_.vector);
    }
  }

  std::optional<VectorStep> vector_step(std::uint32_t range) const {
    const std::int64_t count = extent(range);
    VectorStep step;
    step.range = range;
    step.lanes = static_cast<int>(lanes());
    if (count % lanes() == 0) return step;
    if (ends_narrow(count)) {
      step.tail = Tail::Narrow;
      return step;
    }
    if (accesses_.may_pad(range, round_up(count, lanes()))) {
      step.tail = Tail::Padded;
      return step;
    }
    // A row of weights is bound by memory: half a vector that divides it allows streams.
    if (!accesses_.reduces().empty() && accesses_.is_contraction() && is_one_row(range) &&
        lanes() >= 4 && count % (lanes() / 2) == 0) {
      step.lanes = static_cast<int>(lanes() / 2);
      return step;
    }
    if (accesses_.touches_block(range)) {
      std::int64_t even = 1;
      while (even * 2 <= lanes() && count % (even * 2) == 0) even *= 2;
      step.lanes = static_cast<int>(even);
      if (even == 1) return std::nullopt;
      return step;
    }
    step.lanes = static_cast<int>(std::min(lanes(), floor_power_of_two(count)));
    step.tail = count % step.lanes == 0 ? Tail::Exact : Tail::Overlap;
    return step;
  }

  // Where a vector may take two turns of a unit, half of one takes one; elsewhere it takes no more
  // than the whole.
  bool ends_narrow(std::int64_t count) const {
    const std::int64_t left = count % lanes();
    return target_.vector_bits >= kTwoTurnVector && accesses_.is_contraction() &&
           (left == lanes() / 2 || left == lanes() / 4);
  }

  // Whether a load inside a reduce varies over lanes and another does not: then several vectors
  // share each broadcast.
  bool has_broadcast(std::uint32_t range) const {
    return std::ranges::any_of(accesses_.sites(), [&](const AccessSite& site) {
      return site.inside_reduce && along(site, range) == Along::Independent;
    });
  }

  bool is_one_row(std::uint32_t vector_range) const {
    return std::ranges::all_of(accesses_.output_ranges(), [&](std::uint32_t range) {
      return range == vector_range || extent(range) == 1;
    });
  }

  std::int64_t accumulators() const { return target_.vector_registers >= kManyRegisters ? 28 : 12; }

  void choose_vectors_per_tile(VectorStep& step) const {
    if (is_depthwise(step.range) && target_.vector_registers < kManyRegisters) {
      step.vectors = static_cast<int>(
          std::clamp<std::int64_t>(block_of_large_planes() / step.lanes, 1, kWindowVectors));
      return;
    }
    if (accesses_.reduces().empty() || !accesses_.is_contraction() || !has_broadcast(step.range))
      return;
    const std::int64_t in_all = (extent(step.range) + step.lanes - 1) / step.lanes;
    if (is_one_row(step.range)) {  // independent sums hide the latency
      const KernelParameter* const streamed = streamed_weights(step.range);
      const std::int64_t most =
          streamed != nullptr ? kStreams * vectors_of_stream(step, *streamed) : kRowVectors;
      step.vectors = static_cast<int>(in_all <= kOnlyVectors ? in_all : most);
    } else if (in_all <= 3) {
      step.vectors = static_cast<int>(in_all);
    } else {
      step.vectors = in_all % 2 != 0 && in_all % 3 == 0 ? 3 : 2;
    }
    if (step.tail == Tail::Overlap) {
      step.vectors =
          static_cast<int>(std::min<std::int64_t>(step.vectors, extent(step.range) / step.lanes));
    }
    if (!is_one_row(step.range)) fit_tiles(step);
  }

  // What a product of one row reads from memory.
  const KernelParameter* streamed_weights(std::uint32_t vector_range) const {
    if (!is_one_row(vector_range)) return nullptr;
    for (const AccessSite& site : accesses_.sites()) {
      const KernelParameter& parameter = kernel_.parameters[site.parameter];
      if (site.inside_reduce && accesses_.is_constant(site.parameter) &&
          along(site, vector_range) != Along::Independent &&
          bytes_of(parameter) > target_.l2_bytes) {
        return &parameter;
      }
    }
    return nullptr;
  }

  // Up to a line, and no more than hide the latency.
  static std::int64_t vectors_of_stream(const VectorStep& step, const KernelParameter& weights) {
    return step.lanes * size_bytes(weights.dtype) < kLineBytes ? 2 : 1;
  }

  // Other vectors per tile, where the tiles beside them repeat less.
  void fit_tiles(VectorStep& step) const {
    const std::int64_t most = step.tail == Tail::Overlap
                                  ? extent(step.range) / step.lanes
                                  : (extent(step.range) + step.lanes - 1) / step.lanes;
    double best = kWorthwhile * cost_of_tiles(step);
    VectorStep other = step;
    for (other.vectors = 1; other.vectors <= std::min(most, kMostVectors); ++other.vectors) {
      const double cost = cost_of_tiles(other);
      if (cost >= best) continue;
      best = cost;
      step.vectors = other.vectors;
    }
  }

  // Elements computed for each vector, with what each tile costs beside them.
  double cost_of_tiles(const VectorStep& step) const {
    double tiles = 1, size = 1, overlap = 1;
    for (const TileStep& tile : tiles_beside(step)) {
      tiles *= static_cast<double>((extent(tile.range) + tile.size - 1) / tile.size);
      size *= static_cast<double>(tile.size);
      if (extent(tile.range) % tile.size != 0) overlap = kOverlapCost;
    }
    // Two loads go with two multiply-adds.
    if (step.vectors == 1) size += 1;
    const double conversion = reads_halves() ? kConversionCost : 0;
    return tiles * (size + 2 * kTileOverhead / step.vectors + conversion) * overlap;
  }

  // Weights that each tile converts.
  bool reads_halves() const {
    return std::ranges::any_of(accesses_.sites(), [&](const AccessSite& site) {
      return site.inside_reduce && accesses_.is_constant(site.parameter) &&
             size_bytes(kernel_.parameters[site.parameter].dtype) == 2;
    });
  }

  // Long rows of a reduction that nothing else vectorizes: lanes over the reduce range.
  void choose_vector_reduce() {
    if (accesses_.strict() || accesses_.reduce_ranges().empty() || accesses_.reduces().size() != 1)
      return;
    const std::uint32_t range = accesses_.reduce_ranges().back();
    if (extent(range) < lanes()) return;
    for (const AccessSite& site : accesses_.sites()) {
      if (along(site, range) == Along::Strided) return;
      if (along(site, range) == Along::Contiguous &&
          kernel_.parameters[site.parameter].layout.block_dim >= 0) {
        return;
      }
    }
    VectorStep step;
    step.range = range;
    step.lanes = static_cast<int>(lanes());
    schedule_.vector_reduce = step;
  }

  // --- tiles

  // Spreads `count` evenly: the size up to `most` with the least work, the larger on ties. Tiles
  // that overlap compute twice, and their results cannot take the place of an operand.
  static std::int64_t tile_size(std::int64_t count, std::int64_t most) {
    std::int64_t best = 1;
    double best_cost = std::numeric_limits<double>::infinity();
    for (std::int64_t size = 1; size <= std::min(count, most); ++size) {
      const double cost = static_cast<double>((count + size - 1) / size) *
                          (static_cast<double>(size) + kTileOverhead) *
                          (count % size == 0 ? 1 : kOverlapCost);
      if (cost <= best_cost) {
        best = size;
        best_cost = cost;
      }
    }
    return best;
  }

  // A range is worth a tile if a load that varies over lanes is shared by its elements; broadcasts
  // are cheap enough to have one for each.
  bool shares_a_vector(std::uint32_t range, std::uint32_t vector_range) const {
    return std::ranges::any_of(accesses_.sites(), [&](const AccessSite& site) {
      return site.inside_reduce && along(site, range) == Along::Independent &&
             along(site, vector_range) != Along::Independent;
    });
  }

  // Lanes over the reduce: every load serves all elements of the tile that do not move it. Other
  // reductions get a few sums that do not wait for each other.
  void choose_dot_tiles() {
    const std::int64_t side = !accesses_.is_contraction()                  ? 4
                              : target_.vector_registers >= kManyRegisters ? 4
                                                                           : 3;
    for (auto range = accesses_.output_ranges().rbegin(); range != accesses_.output_ranges().rend();
         ++range) {
      if (schedule_.tiles.size() == (accesses_.is_contraction() ? 2 : 1)) break;
      const std::int64_t size = tile_size(extent(*range), side);
      if (size >= 2) schedule_.tiles.push_back(TileStep{*range, size});
    }
  }

  // Every lane has a window of its own.
  bool is_depthwise(std::uint32_t vector_range) const {
    return accesses_.is_contraction() && accesses_.reduce_ranges().size() >= 2 &&
           std::ranges::all_of(accesses_.reduce_ranges(),
                               [&](std::uint32_t range) { return is_window(range); }) &&
           std::ranges::all_of(accesses_.sites(), [&](const AccessSite& site) {
             return along(site, vector_range) == Along::Contiguous;
           });
  }

  // Elements of the smallest block, if its planes do not stay in the first cache: 1 otherwise.
  std::int64_t block_of_large_planes() const {
    std::int64_t smallest = std::numeric_limits<std::int64_t>::max(), planes = 0;
    for (const AccessSite& site : accesses_.sites()) {
      const KernelParameter& parameter = kernel_.parameters[site.parameter];
      const Layout& layout = parameter.layout;
      if (accesses_.is_constant(site.parameter)) continue;
      if (layout.block_dim < 0) return 1;
      const std::int64_t channels = padded_extent(layout, parameter.shape, layout.block_dim);
      planes = std::max(planes, element_count(layout, parameter.shape) / channels * layout.block *
                                    size_bytes(parameter.dtype));
      smallest = std::min(smallest, layout.block);
    }
    return planes > target_.l1_bytes ? smallest : 1;
  }

  // Depthwise: neighbours share what they load, but only in registers. A tile of few pixels with a
  // row of the window written out loads each pixel once (measured on 32 registers: 1.1 to 2.3 times
  // as fast as long rows turn by turn). With 16, where planes leave the first cache, a tile is as
  // wide as a block of channels: a line that is read in parts is fetched for each of them (1.2 to
  // 1.6 times as fast).
  bool slides_windows() const {
    return target_.vector_registers >= kManyRegisters && schedule_.vector &&
           schedule_.vector->vectors == 1 && is_depthwise(schedule_.vector->range);
  }

  // Output ranges in the order in which tiles take them: innermost first. Windows that do not touch
  // share little, so that a tile of several rows costs no loads and asks for more lines of memory
  // at a time (1.03 to 1.4 times as fast with a step of 2).
  std::vector<std::uint32_t> tiled_ranges(const VectorStep& vector) const {
    std::vector<std::uint32_t> ranges;
    for (auto range = accesses_.output_ranges().rbegin(); range != accesses_.output_ranges().rend();
         ++range) {
      if (*range != vector.range && extent(*range) >= 2) ranges.push_back(*range);
    }
    if (ranges.size() >= 2 && is_depthwise(vector.range) && has_step(ranges[0]) &&
        has_step(ranges[1])) {
      std::swap(ranges[0], ranges[1]);
    }
    return ranges;
  }

  bool has_step(std::uint32_t range) const {
    return std::ranges::any_of(accesses_.sites(), [&](const AccessSite& site) {
      return std::ranges::any_of(site.coordinates, [&](ExprId coordinate) {
        return linear_coefficient(pool(), coordinate, range).value_or(0) > 1;
      });
    });
  }

  void choose_window_tiles() {
    std::int64_t most = kWindowColumns;
    for (const std::uint32_t range : tiled_ranges(*schedule_.vector)) {
      if (schedule_.tiles.size() == 2) break;
      const std::int64_t size = tile_size(extent(range), most);
      if (size >= 2) schedule_.tiles.push_back(TileStep{range, size});
      // A second one pays where the window is wide.
      if (extent(accesses_.reduce_ranges().back()) < kWideWindow) break;
      most = kWindowRows;
    }
  }

  void choose_tiles() {
    if (accesses_.reduces().empty()) return;
    if (schedule_.vector_reduce) return choose_dot_tiles();
    if (!schedule_.vector) return;
    if (slides_windows()) return choose_window_tiles();
    schedule_.tiles = tiles_beside(*schedule_.vector);
  }

  std::vector<TileStep> tiles_beside(const VectorStep& vector) const {
    // Beside the sums, a register for each vector of weights and one to broadcast.
    std::int64_t budget =
        std::min(accumulators(), std::int64_t{target_.vector_registers} - vector.vectors - 1) /
        vector.vectors;
    if (is_depthwise(vector.range) && vector.vectors > 1) budget = kWindowSums / vector.vectors;
    if (!accesses_.is_contraction()) budget = 4;
    std::vector<TileStep> tiles;
    for (const std::uint32_t range : tiled_ranges(vector)) {
      if (tiles.size() == 2 || budget < 2) break;
      if (accesses_.is_contraction() && !shares_a_vector(range, vector.range)) continue;
      const std::int64_t size = tile_size(extent(range), budget);
      if (size < 2) continue;
      tiles.push_back(TileStep{range, size});
      budget /= size;
    }
    return tiles;
  }

  // --- reduces

  // Window ranges (they share a coordinate with an output range) go outside of channels, so that
  // the inner loop walks both operands in order.
  bool is_window(std::uint32_t range) const {
    return std::ranges::any_of(accesses_.sites(), [&](const AccessSite& site) {
      return std::ranges::any_of(site.coordinates, [&](ExprId coordinate) {
        return depends_on(pool(), coordinate, range) &&
               std::ranges::any_of(accesses_.output_ranges(), [&](std::uint32_t output) {
                 return depends_on(pool(), coordinate, output);
               });
      });
    });
  }

  std::int64_t split_of(std::uint32_t range) const {
    for (const AccessSite& site : accesses_.sites()) {
      const KernelParameter& parameter = kernel_.parameters[site.parameter];
      if (parameter.layout.block_dim < 0) continue;
      if (accesses_.is_constant(site.parameter)) continue;
      const ExprId coordinate =
          site.coordinates[static_cast<std::size_t>(parameter.layout.block_dim)];
      if (linear_coefficient(pool(), coordinate, range) == 1 &&
          accesses_.constant_part(coordinate) % parameter.layout.block == 0) {
        return parameter.layout.block;
      }
    }
    return 1;
  }

  void choose_reduces() {
    std::vector<std::uint32_t> order = accesses_.reduce_ranges();
    if (!accesses_.strict()) {
      std::ranges::stable_partition(order, [&](std::uint32_t range) { return is_window(range); });
    }
    if (schedule_.vector_reduce) {
      std::erase(order, schedule_.vector_reduce->range);
      order.push_back(schedule_.vector_reduce->range);
    }
    std::int64_t per_turn = 1;
    if (schedule_.vector) per_turn = schedule_.vector->vectors;
    for (const TileStep& tile : schedule_.tiles) per_turn *= tile.size;
    for (std::uint32_t range : order) {
      ReduceStep step;
      step.range = range;
      if (!schedule_.vector_reduce || range != schedule_.vector_reduce->range) {
        step.split = split_of(range);
        if (step.split > extent(range)) step.split = 1;
      }
      schedule_.reduces.push_back(step);
    }
    if (!accesses_.strict()) split_long_sums();
    if (schedule_.reduces.empty() || schedule_.vector_reduce) return;
    ReduceStep& inner = schedule_.reduces.back();
    const std::int64_t turns = inner.split > 1 ? inner.split : extent(inner.range);
    if (per_turn * turns <= (slides_windows() ? kWindowTurns : kWrittenTurns)) {
      inner.unroll = turns;
    } else {
      inner.unroll = turns % 4 == 0 ? 4 : turns % 2 == 0 ? 2 : 1;
    }
    write_out_window(per_turn * turns);
  }

  // Rows of a tile share lines between the rows of a small window.
  void write_out_window(std::int64_t turns_written) {
    if (!slides_windows() || schedule_.tiles.empty() || schedule_.reduces.size() != 2) return;
    ReduceStep& rows = schedule_.reduces.front();
    const bool fits = turns_written * extent(rows.range) <= kWrittenTurns;
    if (fits && rows.split == 1 && has_step(schedule_.tiles.front().range)) {
      rows.unroll = extent(rows.range);
    }
  }

  // The loop with which a sum becomes long runs over blocks of about kPartialSum terms.
  void split_long_sums() {
    std::int64_t inside = 1;
    for (auto step = schedule_.reduces.rbegin(); step != schedule_.reduces.rend(); ++step) {
      std::int64_t turns = extent(step->range);
      const bool in_lanes =
          schedule_.vector_reduce && step->range == schedule_.vector_reduce->range;
      if (in_lanes) turns = std::max<std::int64_t>(1, turns / schedule_.vector_reduce->lanes);
      if (inside * turns > kLongSum) {
        if (!in_lanes && step->split == 1 && inside < kPartialSum / 2) {
          step->split = kPartialSum / inside;
        }
        return;
      }
      inside *= turns;
    }
  }

  // --- loops

  std::int64_t turns(std::uint32_t range) const {
    std::int64_t step = 1;
    if (schedule_.vector && schedule_.vector->range == range) {
      step = schedule_.vector->lanes * schedule_.vector->vectors;
    }
    for (const TileStep& tile : schedule_.tiles) {
      if (tile.range == range) step = tile.size;
    }
    return (extent(range) + step - 1) / step;
  }

  // Elements of the largest tensor that is read inside a reduce and that the range moves.
  std::int64_t largest_read(std::uint32_t range) const {
    std::int64_t largest = 0;
    for (const AccessSite& site : accesses_.sites()) {
      if (!site.inside_reduce || along(site, range) == Along::Independent) continue;
      largest = std::max(largest, element_count(kernel_.parameters[site.parameter].shape));
    }
    return largest;
  }

  // Only where the places lie in memory already: to compute them twice costs more than waiting.
  void choose_ahead() {
    for (std::uint32_t i = 0; i < kernel_.pool.size(); ++i) {
      const Expr& expr = kernel_.pool[ExprId{i}];
      if (expr.kind == ExprKind::Scalar && is_float(expr.dtype)) return;
    }
    if (schedule_.vector->vectors == 1) schedule_.ahead = AheadStep{kVectorsAhead};
  }

  // Where places follow data, neighbours read the same lines: short ranges come inside of long
  // ones. Vectors stay innermost beneath a longer range, beside what they all share.
  void order_by_turns() {
    std::vector<std::uint32_t>& outer = schedule_.outer;
    const auto is_too_long = [&](std::uint32_t range) { return turns(range) > kMostParallelTurns; };
    if (std::ranges::any_of(outer, is_too_long)) return;  // the first is the parallel one
    std::ranges::stable_sort(outer, std::greater<>{},
                             [&](std::uint32_t range) { return turns(range); });
    const auto vector = std::ranges::find(outer, schedule_.vector->range);
    if (vector != outer.begin() && vector != outer.end())
      std::rotate(vector, vector + 1, outer.end());
  }

  // The layout of a store in blocks whose channels the range moves, or null.
  const Layout* stored_blocks(std::uint32_t range) const {
    for (const AccessSite& site : accesses_.sites()) {
      const Layout& layout = kernel_.parameters[site.parameter].layout;
      if (site.is_store && layout.block_dim >= 0 &&
          accesses_.plain_dimension(site, range) == layout.block_dim) {
        return &layout;
      }
    }
    return nullptr;
  }

  // Whether the turns of a range store parts of the same block, and compute nothing from constants
  // that one turn would keep for the others.
  bool shares_blocks(std::uint32_t range) const {
    if (schedule_.vector && schedule_.vector->range == range) return false;
    const Layout* layout = stored_blocks(range);
    return layout != nullptr && extent(range) < layout->block &&
           std::ranges::none_of(
               accesses_.sites(),
               [&](const AccessSite& site) {
                 return accesses_.is_constant(site.parameter) &&
                        along(site, range) == Along::Independent;
               });
  }

  // Blocks of packed weights outermost, so that one panel serves all pixels.
  void choose_outer() {
    schedule_.outer = accesses_.output_ranges();
    if (schedule_.vector && !accesses_.reduces().empty()) {
      std::ranges::stable_partition(
          schedule_.outer, [&](std::uint32_t range) { return range == schedule_.vector->range; });
    }
    // The largest operand passes by once; the smaller one is read again for each of its tiles.
    if (schedule_.vector_reduce) {
      std::ranges::stable_sort(schedule_.outer, std::greater<>{},
                               [&](std::uint32_t range) { return largest_read(range); });
    }
    if (accesses_.reduces().empty() && schedule_.vector &&
        std::ranges::any_of(accesses_.sites(), [&](const AccessSite& site) {
          return follows_data(kernel_.pool, site.coordinates);
        })) {
      order_by_turns();
      choose_ahead();
    }
    // Workers should not write parts of the same lines.
    std::ranges::stable_partition(schedule_.outer,
                                  [&](std::uint32_t range) { return !shares_blocks(range); });
    std::erase_if(schedule_.outer, [&](std::uint32_t range) { return turns(range) == 1; });
    choose_chunks();
    std::int64_t product = schedule_.chunk ? schedule_.chunk->chunks : 1;
    for (std::uint32_t range : schedule_.outer) {
      const std::int64_t part = turns(range) / chunks_of(range);
      if (product >= kParallelTurns || product * part > kMostParallelTurns) break;
      product *= part;
      ++schedule_.parallel;
    }
  }

  // Panels or blocks of channels stay outermost within a few chunks of the next loop (rows), where
  // what each chunk reads again stays in the second cache.
  void choose_chunks() {
    if (is_stage_ || schedule_.outer.size() < 2 || !is_over_blocks(schedule_.outer[0])) return;
    std::int64_t read_again = 0;
    for (std::uint32_t i = 0; i < kernel_.parameters.size(); ++i) {
      const bool is_kept = std::ranges::any_of(accesses_.sites(), [&](const AccessSite& site) {
        return site.parameter == i && !site.is_store &&
               along(site, schedule_.outer[1]) == Along::Independent;
      });
      if (is_kept) read_again += bytes_of(kernel_.parameters[i]);
    }
    if (read_again > target_.l2_bytes / 2) return;
    const std::int64_t rows = turns(schedule_.outer[1]);
    // Even, so that two workers meet between chunks; what windows of two chunks share is read
    // twice.
    const std::int64_t most = accesses_.reduces().empty() ? kMostChunksOfMaps : kMostChunks;
    const std::int64_t span = window_span(schedule_.outer[1]);
    std::int64_t best = 1;
    for (std::int64_t chunks = 2; chunks <= std::min(rows, most); ++chunks) {
      const bool is_small = 2 * span * chunks > extent(schedule_.outer[1]);
      if (is_small || rows % chunks != 0) continue;
      if (chunks % 2 == 0 || best % 2 != 0) best = chunks;
    }
    if (best == 1 || best * turns(schedule_.outer[0]) > kMostParallelTurns) return;
    schedule_.chunk = ChunkStep{schedule_.outer[1], best};
  }

  bool is_over_blocks(std::uint32_t range) const {
    const bool is_vector = schedule_.vector && schedule_.vector->range == range;
    return (is_vector && accesses_.is_contraction()) || stored_blocks(range) != nullptr;
  }

  // Turns of an output range that read at the same places as the next one.
  std::int64_t window_span(std::uint32_t range) const {
    std::int64_t most = 0;
    for (const AccessSite& site : accesses_.sites()) {
      if (accesses_.is_constant(site.parameter)) continue;
      for (const ExprId coordinate : site.coordinates) {
        const std::int64_t step = linear_coefficient(pool(), coordinate, range).value_or(0);
        if (step == 0) continue;
        const IndexRange bounds = bounds_of(pool(), coordinate, [&](std::uint32_t other) {
          return other == range ? std::int64_t{1} : extent(other);
        });
        if (!bounds.within(-kFarthest, kFarthest)) return extent(range);
        most = std::max(most, (bounds.max - bounds.min) / std::abs(step));
      }
    }
    return most;
  }

  static std::int64_t bytes_of(const KernelParameter& parameter) {
    return element_count(parameter.layout, parameter.shape) * size_bytes(parameter.dtype);
  }

  std::int64_t chunks_of(std::uint32_t range) const {
    return schedule_.chunk && schedule_.chunk->range == range ? schedule_.chunk->chunks : 1;
  }

  // --- packing

  // Order of a packed constant: other output dimensions, reduce dimensions in loop order, then the
  // vector's elements.
  void pack_constants() {
    if (!schedule_.vector) return;
    std::set<std::uint32_t> done;
    for (const AccessSite& site : accesses_.sites()) {
      if (!accesses_.is_constant(site.parameter) || !done.insert(site.parameter).second) continue;
      const int dimension = accesses_.plain_dimension(site, schedule_.vector->range);
      if (dimension < 0 || !same_everywhere(site)) continue;
      schedule_.packings.push_back(
          Schedule::Packing{site.parameter, packed_layout(site, dimension)});
    }
  }

  bool same_everywhere(const AccessSite& site) const {
    return std::ranges::all_of(accesses_.sites(), [&](const AccessSite& other) {
      return other.parameter != site.parameter || other.coordinates == site.coordinates;
    });
  }

  Layout packed_layout(const AccessSite& site, int vector_dimension) const {
    const KernelParameter& parameter = kernel_.parameters[site.parameter];
    const VectorStep& vector = *schedule_.vector;
    auto rank_of = [&](int d) -> std::size_t {
      for (std::size_t k = 0; k < schedule_.reduces.size(); ++k) {
        if (depends_on(pool(), site.coordinates[static_cast<std::size_t>(d)],
                       schedule_.reduces[k].range)) {
          return k + 1;
        }
      }
      return 0;
    };
    Layout layout = Layout::row_major(static_cast<int>(parameter.shape.size()));
    std::erase(layout.order, vector_dimension);
    std::ranges::stable_sort(layout.order, {}, rank_of);
    const bool blocks =
        vector.tail != Tail::Overlap && accesses_.is_bare(site, vector_dimension, vector.range);
    if (blocks) {
      layout.order.insert(layout.order.begin(), vector_dimension);
      layout.block_dim = vector_dimension;
      layout.block = std::int64_t{vector.lanes} * vector.vectors;
      if (reads_streams() && site.inside_reduce) {
        layout.block = vector.lanes;
        if (turns(vector.range) > 1 && &parameter == streamed_weights(vector.range)) {
          layout.block *= vectors_of_stream(vector, parameter);
          layout.streams = kStreams;
        }
      }
    } else {
      layout.order.push_back(vector_dimension);
    }
    return layout;
  }

  // The weights of one row pass by once, in streams from tile to tile without a jump, which the
  // processor foresees; some serve several faster than one (1.5 times). What the second cache holds
  // is faster as one panel for each vector (1.05 to 1.1).
  bool reads_streams() const {
    return is_one_row(schedule_.vector->range) && !accesses_.reduces().empty() &&
           schedule_.vector->vectors >= kStreams;
  }

  // --- prefetch

  // The next panel of packed weights while this one is used, across the end of the call too: the
  // constants of an artifact stand in the order of its calls.
  void choose_prefetch() {
    if (!schedule_.vector || schedule_.reduces.empty() || !accesses_.is_contraction()) return;
    if (reads_streams()) return;  // the processor foresees them
    for (const Schedule::Packing& packing : schedule_.packings) {
      const KernelParameter& parameter = kernel_.parameters[packing.parameter];
      const std::int64_t element = size_bytes(parameter.dtype);
      const bool is_inside = std::ranges::any_of(accesses_.sites(), [&](const AccessSite& site) {
        return site.parameter == packing.parameter && site.inside_reduce;
      });
      if (!is_inside || packing.layout.block_dim < 0 ||
          element_count(packing.layout, parameter.shape) * element < kPrefetchedBytes) {
        continue;
      }
      std::int64_t tiles = 1;
      for (std::uint32_t range : schedule_.outer) {
        if (range != schedule_.vector->range) tiles *= turns(range) / chunks_of(range);
      }
      const ReduceStep& inner = schedule_.reduces.back();
      if (inner.split <= 1 && inner.unroll == extent(inner.range)) return;  // no loop is left
      const std::int64_t per_turn = inner.unroll;
      PrefetchStep step;
      step.parameter = packing.parameter;
      step.lines =
          std::max<std::int64_t>(1, per_turn * packing.layout.block * element / kLineBytes);
      step.share = (step.lines + tiles - 1) / tiles;
      step.distance =
          tiles > 1 ? strides(packing.layout,
                              parameter.shape)[static_cast<std::size_t>(packing.layout.block_dim)]
                    : kStreamDistanceBytes / element;
      schedule_.prefetch = step;
      return;
    }
  }

  // --- 16-bit weights

  // To convert them beside every tile costs a tenth of it.
  void choose_widening() {
    if (!schedule_.vector || reads_streams() || !accesses_.is_contraction()) return;
    const bool is_one_panel = turns(schedule_.vector->range) == 1;
    const std::size_t loops_of_panels = is_one_panel ? 0 : 1;
    // Half of it may stay in the first cache for all tiles where the whole does not.
    const std::int64_t most = is_one_panel ? target_.l1_bytes : target_.l2_bytes / kPanelPart;
    if (schedule_.outer.size() <= loops_of_panels ||
        (!is_one_panel && schedule_.outer[0] != schedule_.vector->range)) {
      return;
    }
    for (const Schedule::Packing& packing : schedule_.packings) {
      const KernelParameter& parameter = kernel_.parameters[packing.parameter];
      const bool is_inside = std::ranges::any_of(accesses_.sites(), [&](const AccessSite& site) {
        return site.parameter == packing.parameter && site.inside_reduce;
      });
      if (!is_inside || !is_float(parameter.dtype) || size_bytes(parameter.dtype) != 2 ||
          packing.layout.block_dim < 0 ||
          panel_elements(packing, parameter.shape) * size_bytes(DType::F32) > most) {
        continue;
      }
      const std::int64_t panels = turns(schedule_.vector->range);
      const std::int64_t next = turns(schedule_.outer[loops_of_panels]);
      std::int64_t tiles = 1;
      for (std::size_t i = loops_of_panels; i < schedule_.outer.size(); ++i) {
        tiles *= turns(schedule_.outer[i]);
      }
      std::int64_t chunks = std::min(next, (kParallelTurns + panels - 1) / panels);
      while (chunks > 1 && (next % chunks != 0 || tiles / chunks < kTilesOfPanel)) --chunks;
      if (tiles / chunks < kTilesOfPanel || panels * chunks > kMostParallelTurns) return;
      schedule_.widen = WidenStep{packing.parameter, chunks};
      schedule_.chunk.reset();
      schedule_.parallel = loops_of_panels;
      return;
    }
  }

  const RangedKernel& kernel_;
  const Target& target_;
  const KernelAccesses accesses_;
  const bool is_stage_;
  Schedule schedule_;
};

}  // namespace

Schedule choose_schedule(const RangedKernel& kernel, const std::vector<bool>& is_constant,
                         const Target& target, int largest_tile, bool is_stage) {
  std::optional<Schedule> winograd = choose_winograd(kernel, is_constant, target, largest_tile);
  if (winograd) return *std::move(winograd);
  return Chooser(kernel, is_constant, target, is_stage).run();
}

Shape packed_shape(const Schedule::Packing& packing, const Shape& shape) {
  if (packing.winograd == 0) return shape;
  return {shape[0], shape[1], (packing.winograd + 2) * (packing.winograd + 2), 1};
}

std::int64_t panel_elements(const Schedule::Packing& packing, const Shape& shape) {
  return strides(packing.layout, shape)[static_cast<std::size_t>(packing.layout.block_dim)];
}

bool stores_once(const Schedule& schedule, const RangedKernel& kernel) {
  const auto extent = [&](std::uint32_t range) { return kernel.ranges[range].extent; };
  if (schedule.winograd) {
    const WinogradStep& step = *schedule.winograd;
    const std::int64_t lanes = std::int64_t{schedule.vector->lanes} * schedule.vector->vectors;
    const std::int64_t groups = (extent(step.output_channel) + lanes - 1) / lanes;
    return winograd_tiles(step.tile, extent(step.row)) % step.band == 0 && groups % step.parts == 0;
  }
  if (schedule.vector && schedule.vector->tail == Tail::Overlap) return false;
  return std::ranges::all_of(
      schedule.tiles, [&](const TileStep& tile) { return extent(tile.range) % tile.size == 0; });
}

Schedule plain_schedule(const RangedKernel& kernel) {
  Schedule schedule;
  for (std::uint32_t r = 0; r < kernel.ranges.size(); ++r) {
    if (kernel.ranges[r].is_reduce) {
      schedule.reduces.push_back(ReduceStep{r, 1, 1});
    } else {
      schedule.outer.push_back(r);
    }
  }
  if (!schedule.outer.empty() && kernel.ranges[schedule.outer[0]].extent <= kMostParallelTurns) {
    schedule.parallel = 1;
  }
  return schedule;
}

}  // namespace ingot
