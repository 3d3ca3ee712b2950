// What a processor can reach at most: independent chains of multiply-add on the widest vectors of
// the level it is compiled for, nothing else.
//   fma_ceiling                    prints GFLOP/s of one thread, the best of many short runs
//   fma_ceiling --serve THREADS    `ingot bench --serve` with frames of a fixed amount of this
//   work,
//                                  divided among so many threads
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

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

using Clock = std::chrono::steady_clock;

// Contraction is on for this file, so that a level with FMA uses it.
void multiply_add(int turns) {
  Vector sums[kChains] = {};
  Vector factor = {};
  for (int lane = 0; lane < kLanes; ++lane) factor[lane] = 0.999F;
  for (int turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 24
    for (int chain = 0; chain < kChains; ++chain) sums[chain] = sums[chain] * factor + factor;
#pragma GCC unroll 24
    for (int chain = 0; chain < kChains; ++chain) __asm__ volatile("" : "+v"(sums[chain]));
  }
}

double gflops(int turns) {
  const auto start = Clock::now();
  multiply_add(turns);
  const std::chrono::duration<double, std::nano> spent = Clock::now() - start;
  return 2.0 * kLanes * kChains * turns / spent.count();
}

double frame_ms(int threads) {
  // Some ten milliseconds, against which the start of a thread is nothing.
  constexpr int kTurns = 2'400'000;
  const auto start = Clock::now();
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(multiply_add, kTurns / threads);
  multiply_add(kTurns / threads);
  for (std::thread& other : others) other.join();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void serve(int threads) {
  frame_ms(threads);
  std::puts("{\"ready\":true}");
  std::fflush(stdout);
  for (char line[32]; std::fgets(line, sizeof line, stdin) != nullptr;) {
    std::printf("{\"ms\":[");
    const int frames = std::atoi(line);
    for (int i = 0; i < frames; ++i) std::printf("%s%.5f", i > 0 ? "," : "", frame_ms(threads));
    std::puts("]}");
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--serve") == 0 && std::atoi(argv[2]) > 0) {
    serve(std::atoi(argv[2]));
    return 0;
  }
  double best = 0;
  for (int run = 0; run < 200; ++run) {
    const double reached = gflops(50000);
    if (reached > best) best = reached;
  }
  std::printf("%.2f\n", best);
  return 0;
}
