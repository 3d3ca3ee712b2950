// What one thread can reach at most: independent chains of multiply-add on the widest vectors of
// the level it is compiled for, nothing else. Prints GFLOP/s, the best of many short runs.
#include <chrono>
#include <cstdio>

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
constexpr int kChains = 24;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
constexpr int kChains = 12;
#else
constexpr int kLanes = 4;
constexpr int kChains = 12;
#endif
using Vector = float __attribute__((vector_size(kLanes * sizeof(float))));

// Contraction is on for this file, so that a level with FMA uses it.
double gflops(int turns) {
  Vector sums[kChains] = {};
  Vector factor = {};
  for (int lane = 0; lane < kLanes; ++lane) factor[lane] = 0.999F;
  const auto start = std::chrono::steady_clock::now();
  for (int turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 24
    for (int chain = 0; chain < kChains; ++chain) sums[chain] = sums[chain] * factor + factor;
#pragma GCC unroll 24
    for (int chain = 0; chain < kChains; ++chain) __asm__ volatile("" : "+v"(sums[chain]));
  }
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  return 2.0 * kLanes * kChains * turns / spent.count();
}

}  // namespace

int main() {
  double best = 0;
  for (int run = 0; run < 200; ++run) {
    const double reached = gflops(50000);
    if (reached > best) best = reached;
  }
  std::printf("%.2f\n", best);
  return 0;
}
