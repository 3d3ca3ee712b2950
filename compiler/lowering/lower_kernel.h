// Plan kernel -> ranged kernel: what the kernel computes, as expressions over ranges.
//
// Needs:  a valid plan; every value that the root needs is placed or can be computed inside
// Leaves: a ranged kernel with one store; parameter 0 is the destination
// Movement becomes index arithmetic. A read that may leave its value carries a gate, unless the
// buffer's zero halo covers it and the value outside is 0.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/plan/plan.h"

namespace ingot {

struct LoweredKernel {
  RangedKernel kernel;
  std::vector<std::uint32_t> buffers;  // plan buffer of each parameter
  std::vector<bool> is_constant;       // parameter may be packed into any layout
  std::uint64_t flops = 0;             // arithmetic operations of all output elements
};

[[nodiscard]] Result<LoweredKernel> lower_kernel(const Plan& plan, const PlanKernel& kernel);

}  // namespace ingot
