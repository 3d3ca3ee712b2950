// Kernels that run together, band by band, so that what passes between them needs memory of one
// band only: attention without a whole score matrix, rows of an expanded tensor that the depthwise
// convolution behind it reads at once.
//
// A turn of the fused kernel is one band: of each level `size` turns of one of the last kernel's
// output ranges, from its origin on. Every kernel of the group computes what the band reads of it:
// along its own range the turns from factor * origin + offset on. Results that only kernels of the
// group read lie in arrays of the worker. Neighbouring bands may compute a few rows twice (windows,
// a last band that starts early), with the same results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/lowering/schedule.h"
#include "compiler/target/target.h"

namespace ingot {

inline constexpr std::uint32_t kNoLocal = 0xFFFFFFFF;

struct BandLevel {
  std::int64_t size = 1, extent = 1;  // of the last kernel's range
  [[nodiscard]] std::int64_t count() const { return (extent + size - 1) / size; }
};

// One level within one kernel.
struct BandedRange {
  std::uint32_t range = 0;  // an output range
  std::int64_t factor = 1, offset = 0;
  std::int64_t extent = 1;  // of the whole; turns outside of it give 0
};

// What passes between kernels: a band of a tensor.
struct LocalArray {
  std::string name;
  Shape shape;    // of the band; f32
  Layout layout;  // no halo along banded dimensions
  struct Level {
    std::size_t dimension = 0;
    std::int64_t factor = 1, offset = 0;  // index 0 is coordinate factor * origin + offset
  };
  std::vector<Level> levels;
  std::uint32_t in_place_of = kNoLocal;  // shares the memory of this one
};

struct BandStage {
  RangedKernel kernel;               // banded ranges have the extent of a band
  std::vector<BandedRange> ranges;   // by level
  std::vector<std::uint32_t> local;  // by parameter: an array, or kNoLocal
  // By parameter: equal numbers are one parameter of the fused kernel.
  std::vector<std::uint32_t> identity;
  Schedule schedule;
};

struct BandGroup {
  std::vector<BandLevel> levels;  // outermost first
  std::vector<LocalArray> locals;
  std::vector<BandStage> stages;  // in order; the last one stores the result

  [[nodiscard]] std::int64_t turns() const;
  // Of the arrays of one worker.
  [[nodiscard]] std::int64_t local_bytes() const;
};

// What the stages of a group read and store together at most: a call has 32 parameters, one of
// which is the memory of the workers.
inline constexpr std::size_t kMostBandParameters = 31;

// Leaves: one kernel; parameter 0 is the result, then what is read, in the order of first use, then
// the memory of the workers. `identity` gives what each of its parameters stands for (but the
// last).
struct FusedBands {
  ScheduledKernel kernel;
  std::vector<std::uint32_t> identity;
};
[[nodiscard]] FusedBands fuse_bands(const BandGroup& group, const Target& target);

}  // namespace ingot
