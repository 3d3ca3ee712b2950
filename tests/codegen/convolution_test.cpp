// A 3x3 convolution 64 -> 64 at 56x56, scheduled by hand the way the compiler does it: right
// numbers, and accumulators that never leave their registers.
#include <memory>
#include <random>
#include <regex>
#include <span>
#include <sstream>

#include "tests/codegen/program.h"

namespace ingot {
namespace {

constexpr std::int64_t kChannels = 64;
constexpr std::int64_t kSize = 56;
constexpr std::int64_t kPadded = kSize + 2;
constexpr std::int64_t kBlock = 16;

// Tile of pixels x vectors of output channels; weights [O/group][C][3][3][group].
struct Tile {
  std::int64_t pixels, vectors, lanes;
  [[nodiscard]] std::int64_t group() const { return vectors * lanes; }
};

Tile tile_for(const Target& target) {
  if (target.vector_bits == 512) return {14, 2, 16};
  if (target.vector_bits == 256) return {6, 2, 8};
  return {6, 2, 4};
}

// W is 56: tiles of 6 pixels cover it as 9 x 6 + 2; to stay simple the last tile overlaps.
ScheduledKernel convolution(const Target& target) {
  const Tile tile = tile_for(target);
  KernelWriter w("convolution");
  const auto input = w.input("input", DType::F32, kChannels * kPadded * kPadded);
  const auto weights = w.input("weights", DType::F32, kChannels * kChannels * 9);
  const auto output = w.output("output", DType::F32, kChannels * kPadded * kPadded);
  const auto sums = w.registers("sums", DType::F32, tile.pixels * tile.vectors, tile.lanes);
  const std::int64_t tiles = (kSize + tile.pixels - 1) / tile.pixels;
  const std::int64_t plane = kPadded * kPadded * kBlock;
  w.loop("y", LoopKind::Parallel, kSize, [&](ExprId y) {
    w.loop("group", LoopKind::Serial, kChannels / tile.group(), [&](ExprId group) {
      w.loop("tile", LoopKind::Serial, tiles, [&](ExprId t) {
        const ExprId x = w.kernel.pool.min(w.sum({{t, tile.pixels}}), kSize - tile.pixels);
        const auto element = [&](ExprId p, ExprId v) { return w.sum({{p, tile.vectors}, {v, 1}}); };
        w.loop("p0", LoopKind::Unroll, tile.pixels, [&](ExprId p) {
          w.loop("v0", LoopKind::Unroll, tile.vectors, [&](ExprId v) {
            w.loop("l0", LoopKind::Vector, tile.lanes, [&](ExprId l) {
              w.set(sums, element(p, v), l, w.kernel.pool.constant(Scalar::zero(DType::F32)));
            });
          });
        });
        w.loop("outer", LoopKind::Serial, kChannels / kBlock, [&](ExprId outer) {
          w.loop("ky", LoopKind::Serial, 3, [&](ExprId ky) {
            w.loop("kx", LoopKind::Serial, 3, [&](ExprId kx) {
              w.loop("inner", LoopKind::Serial, kBlock, [&](ExprId inner) {
                w.loop("p1", LoopKind::Unroll, tile.pixels, [&](ExprId p) {
                  w.loop("v1", LoopKind::Unroll, tile.vectors, [&](ExprId v) {
                    w.loop("l1", LoopKind::Vector, tile.lanes, [&](ExprId l) {
                      const ExprId row = w.sum({{y, 1}, {ky, 1}});
                      const ExprId column = w.sum({{x, 1}, {p, 1}, {kx, 1}});
                      const ExprId a = w.load(input, w.sum({{outer, plane},
                                                            {row, kPadded * kBlock},
                                                            {column, kBlock},
                                                            {inner, 1}}));
                      const ExprId channel = w.sum({{outer, kBlock}, {inner, 1}});
                      const ExprId b = w.load(weights, w.sum({{group, kChannels * 9 * tile.group()},
                                                              {channel, 9 * tile.group()},
                                                              {ky, 3 * tile.group()},
                                                              {kx, tile.group()},
                                                              {v, tile.lanes},
                                                              {l, 1}}));
                      const ExprId before = w.read(sums, element(p, v), l);
                      const ExprId after =
                          target.has_fma
                              ? w.op(ScalarOp::Fma, {a, b, before})
                              : w.op(ScalarOp::Add, {w.op(ScalarOp::Mul, {a, b}), before});
                      w.set(sums, element(p, v), l, after);
                    });
                  });
                });
              });
            });
          });
        });
        w.loop("p2", LoopKind::Unroll, tile.pixels, [&](ExprId p) {
          w.loop("v2", LoopKind::Unroll, tile.vectors, [&](ExprId v) {
            w.loop("l2", LoopKind::Vector, tile.lanes, [&](ExprId l) {
              const ExprId channel = w.sum({{group, tile.group()}, {v, tile.lanes}, {l, 1}});
              const ExprId block = w.kernel.pool.floor_div(channel, kBlock);
              const ExprId within = w.kernel.pool.floor_mod(channel, kBlock);
              const ExprId address = w.sum({{block, plane},
                                            {w.sum({{y, 1}, {w.at(1), 1}}), kPadded * kBlock},
                                            {w.sum({{x, 1}, {p, 1}, {w.at(1), 1}}), kBlock},
                                            {within, 1}});
              w.store(output, address, w.read(sums, element(p, v), l));
            });
          });
        });
      });
    });
  });
  return w.finish();
}

// Aligned as the loader aligns buffers.
struct AlignedFloats {
  explicit AlignedFloats(std::int64_t count)
      : storage(static_cast<std::size_t>(count) + 16), size(static_cast<std::size_t>(count)) {
    void* begin = storage.data();
    std::size_t space = storage.size() * sizeof(float);
    values = static_cast<float*>(std::align(64, size * sizeof(float), begin, space));
  }
  AlignedFloats(AlignedFloats&&) = default;
  [[nodiscard]] std::span<float> all() const { return {values, size}; }
  std::vector<float> storage;
  std::size_t size;
  float* values;
};

struct Data {
  AlignedFloats input{kChannels * kPadded * kPadded};
  AlignedFloats weights{kChannels * kChannels * 9};
  AlignedFloats output{kChannels * kPadded * kPadded};
};

Data random_data() {
  Data data;
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  for (float& x : data.input.all()) x = uniform(random);
  for (float& x : data.weights.all()) x = uniform(random);
  return data;
}

std::size_t pixel(std::int64_t channel, std::int64_t row, std::int64_t column) {
  return static_cast<std::size_t>(
      (((channel / kBlock) * kPadded + row) * kPadded + column) * kBlock + channel % kBlock);
}

double expected(const Data& data, const Tile& tile, std::int64_t o, std::int64_t y,
                std::int64_t x) {
  double sum = 0;
  for (std::int64_t c = 0; c < kChannels; ++c) {
    for (std::int64_t ky = 0; ky < 3; ++ky) {
      for (std::int64_t kx = 0; kx < 3; ++kx) {
        const std::int64_t g = tile.group();
        const auto weight =
            static_cast<std::size_t>((((o / g) * kChannels + c) * 9 + ky * 3 + kx) * g + o % g);
        sum += static_cast<double>(data.input.values[pixel(c, y + ky, x + kx)]) *
               static_cast<double>(data.weights.values[weight]);
      }
    }
  }
  return sum;
}

TEST(Convolution, RightNumbersOnEveryTarget) {
  for (const Target& target : runnable_targets()) {
    const Tile tile = tile_for(target);
    Data data = random_data();
    const CompiledProgram program(convolution(target), target);
    const std::vector<const void*> buffers = {data.input.values, data.weights.values,
                                              data.output.values};
    EXPECT_EQ(program.run(buffers, 0, kSize), 0);
    for (std::int64_t o = 0; o < kChannels; o += 5) {
      for (std::int64_t i = 0; i < kSize * kSize; i += 17) {
        const double want = expected(data, tile, o, i / kSize, i % kSize);
        const double got =
            static_cast<double>(data.output.values[pixel(o, i / kSize + 1, i % kSize + 1)]);
        ASSERT_NEAR(got, want, 1e-4) << target.name << " channel " << o << " pixel " << i;
      }
    }
  }
}

// Vector registers are named v0..v31 or q0..q31 on aarch64, xmm, ymm, zmm on x86-64.
int vector_stack_accesses(const std::string& text) {
  static const std::regex access(R"(.*(\(%rsp\)|\[sp).*)");
  static const std::regex vector(R"(.*(%[xyz]mm[0-9]+|\b[vq][0-9]+\b).*)");
  int count = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, access) && std::regex_match(line, vector)) ++count;
  }
  return count;
}

TEST(Convolution, AccumulatorsStayInRegisters) {
  for (const Target& target : known_targets()) {
    EXPECT_EQ(vector_stack_accesses(assembly(convolution(target), target)), 0) << target.name;
  }
}

}  // namespace
}  // namespace ingot
