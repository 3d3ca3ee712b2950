// What this machine can reach at best, measured by generated code: the scale for `ingot bench` and
// for the speed tests. One thread, the best of several runs.
#pragma once

#include <cstddef>

#include "compiler/target/target.h"

namespace ingot {

// GFLOP/s of independent chains of single precision multiply-adds that never touch memory (a
// multiplication and an addition where the target has no fused one). 0 if this processor cannot
// run the target's code.
[[nodiscard]] double measure_fma_ceiling(const Target& target);

// GB/s (10^9 bytes) of reading `footprint_bytes` again and again: from one end to the other or in
// eight parts at once, whichever is faster.
[[nodiscard]] double measure_read_bandwidth(std::size_t footprint_bytes);

}  // namespace ingot
