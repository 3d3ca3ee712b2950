// Schedules: how a ranged kernel becomes loops, as a short list of facts that prints as steps.
//
// One scheme serves contractions, reductions and elementwise kernels: one output range runs over
// vector lanes, one or two others over an unrolled tile, accumulators live in registers for the
// whole reduction, and constant operands are packed so that the inner loop reads them in order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/plan/winograd.h"
#include "compiler/target/target.h"

namespace ingot {

// How a vector range ends that its vectors do not divide.
enum class Tail : std::uint8_t {
  Exact,    // they do divide it
  Padded,   // the last vector runs into the padding of every buffer it touches
  Overlap,  // the last vector starts early and repeats some elements
  Narrow,   // the last vector has the lanes that are left
};

struct VectorStep {
  std::uint32_t range = 0;
  int lanes = 1;
  int vectors = 1;  // per tile
  Tail tail = Tail::Exact;

  [[nodiscard]] int last_lanes(std::int64_t extent) const {
    return tail == Tail::Narrow ? static_cast<int>(extent % lanes) : lanes;
  }
};

// An unrolled tile; the last one starts early if tiles do not divide the extent.
struct TileStep {
  std::uint32_t range = 0;
  std::int64_t size = 1;
};

// One reduce range, outermost first. With a split the inner loop runs over blocks of that many
// turns (a blocked layout then needs no divisions); `unroll` turns are written out.
struct ReduceStep {
  std::uint32_t range = 0;
  std::int64_t split = 1;
  std::int64_t unroll = 1;
};

inline constexpr std::int64_t kLineBytes = 64;             // of a cache
inline constexpr std::int64_t kMostParallelTurns = 65535;  // CALLS.grid

// Relaxed sums of more terms are made of partial sums, so that rounding errors do not grow with the
// number of terms.
inline constexpr std::int64_t kLongSum = 1 << 14;
inline constexpr std::int64_t kPartialSum = 1 << 10;

// A packed constant is asked for ahead of its use. The turns of the innermost reduce loop that are
// written out together read `lines` cache lines in a row, and ask for `share` of those that stand
// `distance` elements behind them: tile t of a panel for lines t * share, t * share + 1 ... (modulo
// `lines`), so that the tiles fetch the next panel together.
struct PrefetchStep {
  std::uint32_t parameter = 0;
  std::int64_t distance = 0;
  std::int64_t lines = 1, share = 1;
};

// A panel of packed 16-bit weights becomes f32 once, in memory of the worker, before the tiles that
// use it. The loop over panels is then the only one before the bar; the next one is cut into
// `chunks`, which join the parallel loop.
struct WidenStep {
  std::uint32_t parameter = 0;
  std::int64_t chunks = 1;
};

// The turns of one of the outer loops (rows) are cut into `chunks` equal parts, which run outside
// of all loops and join the parallel one: workers that split it get rows of their own through all
// blocks of channels, so that what one of them stores need not move to another's caches.
struct ChunkStep {
  std::uint32_t range = 0;
  std::int64_t chunks = 1;
};

// A kernel without a reduce reads at places that follow data: asks for those of the vector that
// many further on, which no processor foresees.
struct AheadStep {
  std::int64_t vectors = 0;
};

// A convolution computed by Winograd's algorithm (winograd.h) instead of term by term, in one
// parallel loop over bands of tile rows: transform the band's input, then for each group of output
// channels all products, and the outputs of every tile at once with what follows the reduce.
// Transformed inputs and one group's products lie in memory of the worker.
struct WinogradStep {
  int tile = 4;                                           // rows and columns of outputs
  std::uint32_t output_channel = 0, row = 0, column = 0;  // output ranges
  std::uint32_t input_channel = 0;                        // reduce ranges
  std::uint32_t kernel_row = 0, kernel_column = 0;
  std::uint32_t input = 0, weights = 0;  // parameters
  std::int64_t block = 16;               // channels of the input's layout
  std::int64_t band = 1;                 // tile rows at a time
  std::int64_t parts = 1;       // of the output channels: turns of the parallel loop per band
  std::int64_t positions = 14;  // of tiles per register tile
};

struct Schedule {
  std::optional<VectorStep> vector;
  std::optional<WinogradStep> winograd;  // then `vector` runs over output channels; no tiles
  std::vector<TileStep> tiles;
  std::vector<ReduceStep> reduces;
  std::vector<std::uint32_t> outer;  // output ranges in loop order, outermost first
  std::size_t parallel = 0;          // how many of the first outer loops form the parallel one
  // The innermost reduce range runs over lanes; partial results are combined in lane order.
  std::optional<VectorStep> vector_reduce;
  // New layouts of constant parameters.
  struct Packing {
    std::uint32_t parameter = 0;
    Layout layout;
    int winograd = 0;  // tile size: weights [O,C,3,3] become [O,C,(tile + 2)^2,1] first
  };
  std::vector<Packing> packings;
  std::optional<PrefetchStep> prefetch;
  std::optional<WidenStep> widen;
  std::optional<ChunkStep> chunk;  // not beside `widen`
  std::optional<AheadStep> ahead;
};

// Chooses by the facts of the target. Deterministic; measures nothing. `largest_tile`: of
// Winograd convolutions. `is_stage`: of a group whose bands are the parallel loop.
[[nodiscard]] Schedule choose_schedule(const RangedKernel& kernel,
                                       const std::vector<bool>& is_constant, const Target& target,
                                       int largest_tile = 4, bool is_stage = false);

// Winograd's algorithm, if the kernel is a 3x3 convolution for which it is cheaper.
[[nodiscard]] std::optional<Schedule> choose_winograd(const RangedKernel& kernel,
                                                      const std::vector<bool>& is_constant,
                                                      const Target& target, int largest_tile);

// The same with a tile, band, parts and positions of somebody else. Nothing if the kernel is no
// such convolution, or cannot be computed so.
[[nodiscard]] std::optional<Schedule> winograd_schedule(const RangedKernel& kernel,
                                                        const std::vector<bool>& is_constant,
                                                        const Target& target,
                                                        const WinogradPlan& plan);

// The plain one: loops in order, no lanes, no tiles (-O0).
[[nodiscard]] Schedule plain_schedule(const RangedKernel& kernel);

[[nodiscard]] Shape packed_shape(const Schedule::Packing& packing, const Shape& shape);

// "vector a1 16x2 padded", "tile a3 14", "reduce k4 split 16 unroll 4" ...: docs/ir/schedule.md.
[[nodiscard]] std::vector<std::string> to_steps(const Schedule& schedule,
                                                const RangedKernel& kernel);
// The schedule that such steps say, if the kernel can be computed by it. Errors name each step that
// cannot be read, or else each reason why the schedule does not fit.
[[nodiscard]] Result<Schedule> parse_steps(const std::vector<std::string>& steps,
                                           const RangedKernel& kernel,
                                           const std::vector<bool>& is_constant,
                                           const Target& target, int largest_tile = 4);
// The schedule, whoever made it, if apply_schedule makes a kernel of it that computes the same, and
// with all that follows from it filled in. Errors: every reason why not.
[[nodiscard]] Result<Schedule> fit_schedule(Schedule schedule, const RangedKernel& kernel,
                                            const std::vector<bool>& is_constant,
                                            const Target& target, int largest_tile = 4);

// Elements of a panel of a packed constant: what one block of the vector range reads of it.
[[nodiscard]] std::int64_t panel_elements(const Schedule::Packing& packing, const Shape& shape);

// Whether loops after this schedule store no element twice: nothing starts early.
[[nodiscard]] bool stores_once(const Schedule& schedule, const RangedKernel& kernel);

// Needs: a schedule of this kernel. Leaves: the scheduled form; parameters carry the new layouts.
[[nodiscard]] Result<ScheduledKernel> apply_schedule(const RangedKernel& kernel,
                                                     const Schedule& schedule,
                                                     const Target& target);

}  // namespace ingot
