#include "compiler/program/find_bands.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "compiler/kernel/index_arithmetic.h"
#include "compiler/lowering/kernel_accesses.h"

namespace ingot {
namespace {

// Kernels of a group.
constexpr std::size_t kMostKernels = 8;
// Arrays of a band fill this part of the second cache, so that what else a kernel reads has room.
constexpr std::int64_t kPartOfSecondCache = 2;
// What fits into this part of the third cache is read again from there, nearly as fast.
constexpr std::int64_t kPartOfThirdCache = 2;
// Bytes that are written or read behind the caches in a cycle, and those that a kernel takes in and
// gives out in one.
constexpr double kBytesPerCycle = 16, kOwnBytesPerCycle = 8;
// Of the cycles that a kernel needs at best, those that it takes.
constexpr double kCycles = 1.5;
// The saving is at least this part of the group's cycles, so that errors of the estimate are no
// loss: measured ones are 0.05 to 0.5 of them for the same bytes, depending on the processor.
constexpr double kLeastSaving = 0.25;

// What a member of the group computes of a level, for bands of `size` turns of the last kernel:
// factor * size + more turns from factor * origin + offset on.
struct Reach {
  std::uint32_t range = 0;
  std::int64_t factor = 1, offset = 0, more = 0;
  std::int64_t extent = 1;    // of the whole
  std::size_t dimension = 0;  // of its result; unless it is the last
  [[nodiscard]] std::int64_t turns(std::int64_t size) const { return factor * size + more; }
};
using Reaches = std::map<std::uint32_t, Reach>;  // by kernel

class BandFinder {
 public:
  BandFinder(const Plan& plan, const std::vector<LoweredKernel>& kernels,
             const std::vector<bool>& alone, const Target& target)
      : plan_(plan), kernels_(kernels), target_(target), taken_(alone) {
    writers_.resize(plan.buffers.size());
    readers_.resize(plan.buffers.size());
    for (std::uint32_t k = 0; k < kernels.size(); ++k) {
      const std::vector<std::uint32_t>& buffers = kernels[k].buffers;
      for (std::size_t p = 0; p < buffers.size(); ++p) {
        (p == 0 ? writers_ : readers_)[buffers[p]].insert(k);
      }
    }
  }

  std::vector<FoundBands> run() {
    std::vector<FoundBands> found;
    for (std::uint32_t k = 0; k < kernels_.size(); ++k) {
      if (taken_[k] || !may_be_local(result(k)) || !leaves_caches(result(k))) continue;
      std::optional<FoundBands> best;
      double saved = 0;
      std::set<std::uint32_t> members{k};
      while (std::optional<std::set<std::uint32_t>> grown = grow(members)) {
        std::optional<FoundBands> bands = try_bands(*grown, saved);
        if (!bands) break;
        best = std::move(bands);
        members = *std::move(grown);
      }
      if (!best) continue;
      for (const std::uint32_t member : best->kernels) taken_[member] = true;
      found.push_back(*std::move(best));
    }
    return found;
  }

 private:
  bool leaves_caches(std::uint32_t buffer) const {
    return bytes(buffer) > std::max(target_.l2_bytes, target_.l3_bytes / kPartOfThirdCache);
  }

  std::uint32_t result(std::uint32_t kernel) const { return kernels_[kernel].buffers[0]; }
  const RangedKernel& ranged(std::uint32_t kernel) const { return kernels_[kernel].kernel; }

  std::int64_t bytes(std::uint32_t buffer) const {
    const PlanBuffer& b = plan_.buffers[buffer];
    return element_count(b.layout, b.shape) * size_bytes(b.dtype);
  }

  // Written as a whole by one kernel, and nobody's but the call list's.
  bool may_be_local(std::uint32_t buffer) const {
    const PlanBuffer& b = plan_.buffers[buffer];
    if (b.kind != BufferKind::Scratch || b.dtype != DType::F32 || writers_[buffer].size() != 1) {
      return false;
    }
    const PlanKernel& writer = plan_.kernels[*writers_[buffer].begin()];
    return !writer.entry && (*plan_.graph)[writer.root].shape == b.shape &&
           std::ranges::all_of(writer.destination.offset, [](std::int64_t at) { return at == 0; });
  }

  // --- members

  // With those that read the last one's result, and all that must come along: everything that
  // reads what stays inside.
  std::optional<std::set<std::uint32_t>> grow(std::set<std::uint32_t> members) const {
    const std::uint32_t before = *members.rbegin();
    if (!may_be_local(result(before)) || readers_[result(before)].empty()) return std::nullopt;
    members.insert(readers_[result(before)].begin(), readers_[result(before)].end());
    for (bool grows = true; grows;) {
      grows = false;
      if (members.size() > kMostKernels) return std::nullopt;
      const std::uint32_t last = *members.rbegin();
      for (const std::uint32_t member : std::set(members)) {
        // What writes into a ring comes after all that read it, and so must their group.
        if (taken_[member] || plan_.kernels[member].entry) return std::nullopt;
        if (member == last) continue;
        if (!may_be_local(result(member))) return std::nullopt;
        for (const std::uint32_t reader : readers_[result(member)]) {
          grows = members.insert(reader).second || grows;
        }
      }
    }
    return members;
  }

  // --- levels

  // What all members compute if the last one computes a band of `range`.
  std::optional<Reaches> reach(const std::set<std::uint32_t>& members, std::uint32_t range) const {
    Reaches reaches;
    const std::uint32_t last = *members.rbegin();
    reaches[last] = Reach{range, 1, 0, 0, ranged(last).ranges[range].extent, 0};
    for (auto member = std::next(members.rbegin()); member != members.rend(); ++member) {
      const std::optional<Reach> own = reach_of_writer(*member, reaches);
      if (!own) return std::nullopt;
      reaches[*member] = *own;
    }
    return reaches;
  }

  // Covers what every access of its readers, who come later, needs.
  std::optional<Reach> reach_of_writer(std::uint32_t kernel, const Reaches& later) const {
    std::optional<Reach> reach;
    std::int64_t first = 0, last = 0;
    for (const std::uint32_t reader : readers_[result(kernel)]) {
      const Reach& by = later.at(reader);
      const RangedKernel& ranged_reader = ranged(reader);
      const KernelAccesses accesses(ranged_reader, kernels_[reader].is_constant, target_);
      for (const AccessSite& site : accesses.sites()) {
        if (site.is_store || kernels_[reader].buffers[site.parameter] != result(kernel)) continue;
        const std::optional<std::size_t> dimension = only_dimension(ranged_reader, site, by.range);
        if (!dimension) return std::nullopt;
        const ExprId coordinate = site.coordinates[*dimension];
        if (follows_data(ranged_reader.pool, {coordinate})) return std::nullopt;
        const std::optional<std::int64_t> factor =
            linear_coefficient(ranged_reader.pool, coordinate, by.range);
        if (!factor || *factor < 1) return std::nullopt;
        const IndexRange rest = bounds_of(ranged_reader.pool, coordinate, [&](std::uint32_t r) {
          return r == by.range ? 1 : ranged_reader.ranges[r].extent;
        });
        const std::int64_t begin = *factor * by.offset + rest.min;
        const std::int64_t end = *factor * (by.offset + by.more - 1) + rest.max + 1;
        if (!reach) {
          reach = Reach{0, *factor * by.factor, 0, 0, 1, *dimension};
          first = begin;
          last = end;
        }
        if (reach->factor != *factor * by.factor || reach->dimension != *dimension) {
          return std::nullopt;
        }
        first = std::min(first, begin);
        last = std::max(last, end);
      }
    }
    if (!reach || reads_behind_gate(kernel)) return std::nullopt;
    reach->offset = first;
    reach->more = last - first;
    return along_result(kernel, *reach);
  }

  // The dimension in which the range moves the access, if it is one.
  static std::optional<std::size_t> only_dimension(const RangedKernel& kernel,
                                                   const AccessSite& site, std::uint32_t range) {
    std::optional<std::size_t> found;
    for (std::size_t d = 0; d < site.coordinates.size(); ++d) {
      if (!depends_on(kernel.pool, site.coordinates[d], range)) continue;
      if (found) return std::nullopt;
      found = d;
    }
    return found;
  }

  bool reads_behind_gate(std::uint32_t kernel) const {
    return std::ranges::any_of(readers_[result(kernel)], [&](std::uint32_t reader) {
      const ExprPool& pool = ranged(reader).pool;
      for (std::uint32_t i = 0; i < pool.size(); ++i) {
        const Expr& expr = pool[ExprId{i}];
        if (expr.kind == ExprKind::Load && expr.gated &&
            kernels_[reader].buffers[expr.id] == result(kernel)) {
          return true;
        }
      }
      return false;
    });
  }

  // The range that is the result's coordinate in that dimension, and moves nothing else of it.
  std::optional<Reach> along_result(std::uint32_t kernel, Reach reach) const {
    const RangedKernel& own = ranged(kernel);
    const RangedStore& store = own.stores[0];
    const KernelParameter& parameter = own.parameters[0];
    const Expr& coordinate = own.pool[store.coordinates[reach.dimension]];
    if (coordinate.kind != ExprKind::Variable ||
        static_cast<int>(reach.dimension) == parameter.layout.block_dim) {
      return std::nullopt;
    }
    reach.range = coordinate.id;
    reach.extent = own.ranges[coordinate.id].extent;
    if (reach.extent != parameter.shape[reach.dimension]) return std::nullopt;
    const AccessSite site{0, store.coordinates, false, true};
    if (only_dimension(own, site, reach.range) != reach.dimension) return std::nullopt;
    return reach;
  }

  // --- sizes

  struct Level {
    Reaches reaches;
    std::int64_t size = 1, extent = 1;
  };

  Shape local_shape(std::uint32_t kernel, const std::vector<Level>& levels, Layout& layout) const {
    const PlanBuffer& buffer = plan_.buffers[result(kernel)];
    Shape shape = buffer.shape;
    layout = buffer.layout;
    for (const Level& level : levels) {
      const Reach& reach = level.reaches.at(kernel);
      shape[reach.dimension] = reach.turns(level.size);
      layout.before[reach.dimension] = layout.after[reach.dimension] = 0;
    }
    return shape;
  }

  // By kernel: the one whose result it may replace.
  using Replaced = std::map<std::uint32_t, std::uint32_t>;

  std::int64_t local_bytes(const std::set<std::uint32_t>& members, const Replaced& replaced,
                           const std::vector<Level>& levels) const {
    std::int64_t sum = 0;
    for (const std::uint32_t member : members) {
      if (member == *members.rbegin() || takes_place(member, replaced, levels)) continue;
      Layout layout;
      const Shape shape = local_shape(member, levels, layout);
      sum += element_count(layout, shape) * size_bytes(DType::F32);
    }
    return sum;
  }

  // Whether bands of both hold the same elements: a window that reads the operand too makes its
  // band wider.
  bool takes_place(std::uint32_t kernel, const Replaced& replaced,
                   const std::vector<Level>& levels) const {
    const auto operand = replaced.find(kernel);
    if (operand == replaced.end()) return false;
    return std::ranges::all_of(levels, [&](const Level& level) {
      const Reach &own = level.reaches.at(kernel), &other = level.reaches.at(operand->second);
      return own.factor == other.factor && own.offset == other.offset && own.more == other.more;
    });
  }

  Replaced find_replaced(const std::set<std::uint32_t>& members) const {
    Replaced replaced;
    for (const std::uint32_t member : members) {
      if (member == *members.rbegin()) break;
      const std::optional<std::uint32_t> operand = replaces(member, members);
      if (operand) replaced[member] = *writers_[*operand].begin();
    }
    return replaced;
  }

  // The parameter whose elements it reads only at the places where it stores, for the last time.
  std::optional<std::uint32_t> replaces(std::uint32_t kernel,
                                        const std::set<std::uint32_t>& members) const {
    const LoweredKernel& own = kernels_[kernel];
    const KernelParameter& out = own.kernel.parameters[0];
    const std::vector<ExprId> stored = moving(own.kernel.stores[0].coordinates, out.shape);
    const KernelAccesses accesses(own.kernel, own.is_constant, target_);
    for (std::uint32_t p = 1; p < own.buffers.size(); ++p) {
      const std::uint32_t buffer = own.buffers[p];
      const KernelParameter& operand = own.kernel.parameters[p];
      const bool is_inside = std::ranges::any_of(
          members, [&](std::uint32_t member) { return result(member) == buffer; });
      if (!is_inside || *readers_[buffer].rbegin() != kernel ||
          !same_places(operand.layout, operand.shape, out.layout, out.shape)) {
        continue;
      }
      const bool in_place = std::ranges::all_of(accesses.sites(), [&](const AccessSite& site) {
        return site.is_store || site.parameter != p ||
               (!site.inside_reduce && moving(site.coordinates, operand.shape) == stored);
      });
      if (in_place) return buffer;
    }
    return std::nullopt;
  }

  // Coordinates of dimensions that have more than one position.
  static std::vector<ExprId> moving(const std::vector<ExprId>& coordinates, const Shape& shape) {
    std::vector<ExprId> found;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] > 1) found.push_back(coordinates[d]);
    }
    return found;
  }

  // Bands of outer ranges first, of one turn each while even that is too much, and as many bands as
  // there are workers. Nothing if no band is small enough.
  std::vector<Level> choose_sizes(const std::set<std::uint32_t>& members, const Replaced& replaced,
                                  std::vector<Level> candidates) const {
    const std::int64_t budget = target_.l2_bytes / kPartOfSecondCache;
    std::vector<Level> levels;
    std::int64_t outer = 1;
    for (Level& level : candidates) {
      if (shares_a_dimension(level, levels)) continue;
      levels.push_back(std::move(level));
      Level& own = levels.back();
      const auto fits = [&](std::int64_t size) {
        own.size = size;
        return local_bytes(members, replaced, levels) <= budget;
      };
      if (!fits(1)) {
        outer *= own.extent;
        continue;
      }
      const std::int64_t parallel = (own.extent * outer + target_.workers - 1) / target_.workers;
      std::int64_t size = 1, most = std::min(own.extent, parallel);
      while (size < most) {
        const std::int64_t middle = (size + most + 1) / 2;
        if (fits(middle)) {
          size = middle;
        } else {
          most = middle - 1;
        }
      }
      // Somewhat smaller ones may spread more evenly.
      std::int64_t best = size;
      double least = std::numeric_limits<double>::infinity();
      for (std::int64_t smaller = size; smaller * 2 > size; --smaller) {
        own.size = smaller;
        const double twice = computed_twice(members, levels);
        if (twice >= least) continue;
        least = twice;
        best = smaller;
      }
      own.size = best;
      return levels;
    }
    return {};
  }

  static bool shares_a_dimension(const Level& level, const std::vector<Level>& others) {
    return std::ranges::any_of(others, [&](const Level& other) {
      return std::ranges::any_of(level.reaches, [&](const auto& entry) {
        const Reach& reach = other.reaches.at(entry.first);
        return entry.second.range == reach.range;
      });
    });
  }

  double cycles(std::uint32_t kernel) const {
    double moved = 0;
    for (const std::uint32_t buffer : kernels_[kernel].buffers) {
      moved += static_cast<double>(bytes(buffer));
    }
    return std::max(kCycles * static_cast<double>(kernels_[kernel].flops) /
                        (4.0 * target_.lanes(DType::F32)),  // two multiply-adds
                    moved / kOwnBytesPerCycle);
  }

  // Cycles for what neighbouring bands both compute.
  double computed_twice(const std::set<std::uint32_t>& members,
                        const std::vector<Level>& levels) const {
    double sum = 0;
    for (const std::uint32_t member : members) {
      double share = 1;
      for (const Level& level : levels) {
        const Reach& reach = level.reaches.at(member);
        const std::int64_t count = (level.extent + level.size - 1) / level.size;
        share *= static_cast<double>(count * reach.turns(level.size)) /
                 static_cast<double>(reach.extent);
      }
      sum += (share - 1) * cycles(member);
    }
    return sum;
  }

  double cycles_saved(const std::set<std::uint32_t>& members) const {
    double sum = 0;
    for (const std::uint32_t member : members) {
      const std::uint32_t buffer = result(member);
      if (member == *members.rbegin() || !leaves_caches(buffer)) continue;
      sum += static_cast<double>(bytes(buffer)) * static_cast<double>(1 + readers_[buffer].size());
    }
    return sum / kBytesPerCycle;
  }

  // If it saves more than `saved`, which then is what it saves.
  std::optional<FoundBands> try_bands(const std::set<std::uint32_t>& members, double& saved) const {
    const std::uint32_t last = *members.rbegin();
    // Other parts of a concatenation lie in the same buffer.
    if (std::ranges::any_of(readers_[result(last)],
                            [&](std::uint32_t reader) { return members.contains(reader); })) {
      return std::nullopt;
    }
    std::vector<Level> candidates;
    for (std::uint32_t r = 0; r < ranged(last).ranges.size(); ++r) {
      const Range& range = ranged(last).ranges[r];
      if (range.is_reduce || range.extent < 2) continue;
      std::optional<Reaches> reaches = reach(members, r);
      if (reaches) candidates.push_back(Level{*std::move(reaches), 1, range.extent});
    }
    if (candidates.empty()) return std::nullopt;
    const Replaced replaced = find_replaced(members);
    const std::vector<Level> levels = choose_sizes(members, replaced, std::move(candidates));
    if (levels.empty()) return std::nullopt;
    const double now = cycles_saved(members) - computed_twice(members, levels);
    double all = 0;
    for (const std::uint32_t member : members) all += cycles(member);
    if (now <= saved || now < kLeastSaving * all) return std::nullopt;
    std::optional<FoundBands> found = make_group(members, replaced, levels);
    if (found) saved = now;
    return found;
  }

  // --- the group

  std::optional<FoundBands> make_group(const std::set<std::uint32_t>& members,
                                       const Replaced& replaced,
                                       const std::vector<Level>& levels) const {
    FoundBands found;
    found.kernels.assign(members.begin(), members.end());
    for (const Level& level : levels) {
      found.group.levels.push_back(BandLevel{level.size, level.extent});
    }
    if (found.group.turns() > kMostParallelTurns) return std::nullopt;
    std::map<std::uint32_t, std::uint32_t> locals;  // by plan buffer
    for (const std::uint32_t member : members) {
      if (member == *members.rbegin()) break;
      locals.emplace(result(member), static_cast<std::uint32_t>(locals.size()));
      found.group.locals.push_back(local_of(member, levels));
      if (takes_place(member, replaced, levels)) {
        found.group.locals.back().in_place_of = locals.at(result(replaced.at(member)));
      }
    }
    for (const std::uint32_t member : members) {
      found.group.stages.push_back(stage_of(member, levels, locals, found.group.locals));
    }
    if (most_parameters(members, locals) > kMostBandParameters) return std::nullopt;
    return found;
  }

  // Constants may be packed for each kernel.
  std::size_t most_parameters(const std::set<std::uint32_t>& members,
                              const std::map<std::uint32_t, std::uint32_t>& locals) const {
    std::size_t constants = 0;
    std::set<std::uint32_t> others;
    for (const std::uint32_t member : members) {
      for (const std::uint32_t buffer : kernels_[member].buffers) {
        if (locals.contains(buffer)) continue;
        if (plan_.buffers[buffer].kind == BufferKind::Constant) {
          ++constants;
        } else {
          others.insert(buffer);
        }
      }
    }
    return constants + others.size();
  }

  LocalArray local_of(std::uint32_t kernel, const std::vector<Level>& levels) const {
    LocalArray local;
    local.name = ranged(kernel).name;
    local.shape = local_shape(kernel, levels, local.layout);
    for (const Level& level : levels) {
      const Reach& reach = level.reaches.at(kernel);
      local.levels.push_back({reach.dimension, reach.factor, reach.offset});
    }
    return local;
  }

  BandStage stage_of(std::uint32_t kernel, const std::vector<Level>& levels,
                     const std::map<std::uint32_t, std::uint32_t>& locals,
                     const std::vector<LocalArray>& arrays) const {
    BandStage stage;
    stage.kernel = ranged(kernel);
    stage.identity = kernels_[kernel].buffers;
    for (const Level& level : levels) {
      const Reach& reach = level.reaches.at(kernel);
      stage.ranges.push_back(BandedRange{reach.range, reach.factor, reach.offset, reach.extent});
      stage.kernel.ranges[reach.range].extent = reach.turns(level.size);
    }
    for (std::size_t p = 0; p < stage.identity.size(); ++p) {
      const auto local = locals.find(stage.identity[p]);
      stage.local.push_back(local == locals.end() ? kNoLocal : local->second);
      if (local == locals.end()) continue;
      stage.kernel.parameters[p].shape = arrays[local->second].shape;
      stage.kernel.parameters[p].layout = arrays[local->second].layout;
    }
    return stage;
  }

  const Plan& plan_;
  const std::vector<LoweredKernel>& kernels_;
  const Target& target_;
  std::vector<bool> taken_;
  std::vector<std::set<std::uint32_t>> writers_, readers_;  // kernels, by plan buffer
};

}  // namespace

std::vector<FoundBands> find_bands(const Plan& plan, const std::vector<LoweredKernel>& kernels,
                                   const std::vector<bool>& alone, const Target& target) {
  return BandFinder(plan, kernels, alone, target).run();
}

}  // namespace ingot
