// Prints what this machine can reach: the multiply-add ceiling of every target it runs, and the
// best read bandwidth by footprint. Kernels are judged against these figures, measured in the same
// process (tests/codegen/convolution_test.cpp prints one with --gtest_also_run_disabled_tests).
#include <fmt/core.h>

#include "codegen/ceilings.h"

int main() {
  for (const ingot::Target& target : ingot::known_targets()) {
    const double ceiling = ingot::measure_fma_ceiling(target);
    if (ceiling == 0) {
      fmt::print("{:<12} not run by this processor\n", target.name);
    } else {
      fmt::print("{:<12} {:8.1f} GFLOP/s multiply-add\n", target.name, ceiling);
    }
  }
  for (const std::size_t kib : {16U, 512U, 8192U, 262144U}) {
    fmt::print("{:>7} KiB  {:8.1f} GB/s read\n", kib, ingot::measure_read_bandwidth(kib << 10));
  }
  return 0;
}
