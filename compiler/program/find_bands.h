// Which calls run together band by band (lowering/bands.h), by the traffic that this saves.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/lowering/bands.h"
#include "compiler/lowering/lower_kernel.h"
#include "compiler/plan/plan.h"
#include "compiler/target/target.h"

namespace ingot {

struct FoundBands {
  std::vector<std::uint32_t> kernels;  // indices into Plan::kernels, in order; the last one's
                                       // result is the only one that others read
  BandGroup group;                     // stages without schedules; identities are plan buffers
};

// `kernels` are those of the plan, in its order; `alone` marks those that stay calls of their own.
// A kernel is in one group at most. Deterministic; measures nothing.
[[nodiscard]] std::vector<FoundBands> find_bands(const Plan& plan,
                                                 const std::vector<LoweredKernel>& kernels,
                                                 const std::vector<bool>& alone,
                                                 const Target& target);

}  // namespace ingot
