// Zeros in the halo of a buffer, before the first kernel writes what it surrounds.
#pragma once

#include <optional>

#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace ingot {

// One Write parameter of this type, shape and layout. None without a halo, and, unless `always`,
// where filling the whole buffer is no more work.
[[nodiscard]] std::optional<ScheduledKernel> zero_halo_kernel(DType dtype, const Shape& shape,
                                                              const Layout& layout,
                                                              const Target& target,
                                                              bool always = false);

}  // namespace ingot
