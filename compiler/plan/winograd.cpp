#include "compiler/plan/winograd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace ingot {
namespace {

using Row = std::array<double, 3>;

std::vector<Row> weight_matrix(int tile) {
  if (tile == 2) return {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
  constexpr double kSixth = 1.0 / 6, kTwelfth = 1.0 / 12, kTwentyFourth = 1.0 / 24;
  return {{0.25, 0, 0},
          {-kSixth, -kSixth, -kSixth},
          {-kSixth, kSixth, -kSixth},
          {kTwentyFourth, kTwelfth, kSixth},
          {kTwentyFourth, -kTwelfth, kSixth},
          {0, 0, 1}};
}

// Sums and small multiples, fused where the target can.
class Arithmetic {
 public:
  Arithmetic(ExprPool& pool, bool fma) : pool_(pool), fma_(fma) {}

  ExprId add(ExprId a, ExprId b) { return two(ScalarOp::Add, a, b); }
  ExprId sub(ExprId a, ExprId b) { return two(ScalarOp::Sub, a, b); }
  // factor * a + b
  ExprId add_multiple(double factor, ExprId a, ExprId b) {
    const ExprId multiple = pool_.constant(Scalar::of_float(DType::F32, factor));
    if (!fma_) return add(two(ScalarOp::Mul, multiple, a), b);
    const std::array<ExprId, 3> operands{multiple, a, b};
    return pool_.scalar(ScalarOp::Fma, operands);
  }

 private:
  ExprId two(ScalarOp op, ExprId a, ExprId b) {
    const std::array<ExprId, 2> operands{a, b};
    return pool_.scalar(op, operands);
  }

  ExprPool& pool_;
  bool fma_;
};

// --- cost, in cycles

constexpr double kFmasPerCycle = 2;
constexpr double kDirectShare = 0.85;  // of the ceiling, that direct convolutions reach
constexpr double kBytesPerCycle = 6;   // weights from memory
constexpr double kSpilledBytesPerCycle = 24;
constexpr double kTileCycles = 30, kAccumulatorCycles = 1.5, kLatencyCycles = 4;
constexpr double kOneTurn = 1.1;  // a call that workers cannot share
constexpr double kGain = 0.92;    // Winograd has to be better by that much

double transform_cycles(int tile) { return tile == 4 ? 110 : 45; }

std::int64_t divided(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct Facts {
  std::int64_t lanes, vectors_in_all, registers;
  double budget;  // bytes for transformed inputs and products
};

double direct_cycles(const ConvolutionExtents& e, const Facts& facts) {
  const double products =
      static_cast<double>(e.rows * e.columns * e.input_channels * facts.vectors_in_all * 9);
  const double weights = static_cast<double>(9 * 4 * e.input_channels * e.output_channels);
  return std::max(products / kFmasPerCycle / kDirectShare, weights / kBytesPerCycle);
}

// Of the plan's tile and band; fills in the rest of it.
double winograd_cycles(const ConvolutionExtents& e, const Facts& facts, WinogradPlan& plan) {
  const std::int64_t frequencies = (plan.tile + 2) * (plan.tile + 2);
  const std::int64_t columns = winograd_tiles(plan.tile, e.columns);
  plan.vectors = facts.vectors_in_all % 2 == 0 ? 2 : facts.vectors_in_all % 3 == 0 ? 3 : 1;
  const std::int64_t groups = facts.vectors_in_all / plan.vectors;
  const std::int64_t bands = divided(winograd_tiles(plan.tile, e.rows), plan.band);
  plan.parts = bands == 1 && groups > 1 ? 2 : 1;

  const std::int64_t tiles = plan.band * columns;
  const std::int64_t most = facts.registers / plan.vectors;
  const std::int64_t turns = divided(tiles, most);
  plan.positions = divided(tiles, turns);
  const auto accumulators = static_cast<double>(plan.positions * plan.vectors);
  const double step = std::max(accumulators / kFmasPerCycle, kLatencyCycles);
  const double products = static_cast<double>(frequencies * bands * turns * groups) *
                          (static_cast<double>(e.input_channels) * step + kTileCycles +
                           kAccumulatorCycles * accumulators);
  const double weights =
      4.0 * static_cast<double>(frequencies * e.input_channels * e.output_channels);
  const double streamed = weights * static_cast<double>(bands) / kBytesPerCycle;
  const auto all_tiles = static_cast<double>(bands * tiles);
  const std::int64_t input_vectors = divided(e.input_channels, 16) * 16 / facts.lanes;
  const double transforms = transform_cycles(plan.tile) * all_tiles *
                            static_cast<double>(plan.parts * input_vectors + facts.vectors_in_all);
  // Each group of output channels reads the transformed inputs again.
  const double held =
      4.0 * static_cast<double>(frequencies * tiles *
                                (divided(e.input_channels, 16) * 16 + plan.vectors * facts.lanes));
  const double spilled = std::max(0.0, held - facts.budget) *
                         static_cast<double>(bands * (groups + 1)) / kSpilledBytesPerCycle;
  const double cycles = std::max(products, streamed) + transforms + spilled;
  return bands * plan.parts == 1 ? cycles * kOneTurn : cycles;
}

}  // namespace

std::int64_t winograd_tiles(int tile, std::int64_t outputs) { return divided(outputs, tile); }

int largest_winograd_tile(const Graph& graph) { return tests_equality_of_floats(graph) ? 0 : 4; }

WinogradPlan plan_winograd(const ConvolutionExtents& extents, const Target& target,
                           int largest_tile) {
  const int lanes = target.lanes(DType::F32);
  const Facts facts{lanes, divided(extents.output_channels, lanes),
                    target.vector_registers >= 32 ? 28 : 12,
                    0.9 * static_cast<double>(target.l2_bytes)};
  WinogradPlan best;
  if (extents.rows < 1 || extents.columns < 1 || extents.input_channels < 16 ||
      extents.output_channels < 16 || lanes > 16)
    return best;
  double least = kGain * direct_cycles(extents, facts);
  for (const int tile : {2, 4}) {
    if (tile > largest_tile) break;
    const std::int64_t rows = winograd_tiles(tile, extents.rows);
    for (std::int64_t bands = 1; bands <= rows; ++bands) {
      if (bands > 1 && bands % 2 != 0 && bands < rows) continue;  // halves for two workers
      WinogradPlan plan;
      plan.tile = tile;
      plan.band = divided(rows, bands);
      if (divided(rows, plan.band) != bands) continue;
      const double cycles = winograd_cycles(extents, facts, plan);
      if (cycles >= least) continue;
      least = cycles;
      best = plan;
    }
  }
  return best;
}

Shape transformed_shape(const Shape& weights, int tile) {
  const std::int64_t size = tile + 2;
  return {weights[0], weights[1], size * size, 1};
}

Tensor transform_weights(const Tensor& weights, int tile) {
  INGOT_CHECK(is_float(weights.dtype) && weights.shape.size() == 4 && weights.shape[2] == 3 &&
                  weights.shape[3] == 3,
              "weights of a 3x3 convolution");
  const std::vector<Row> g = weight_matrix(tile);
  const std::size_t size = g.size();
  const auto pairs = static_cast<std::size_t>(weights.shape[0] * weights.shape[1]);
  std::vector<std::byte> bytes(pairs * size * size * sizeof(float));
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    std::array<double, 9> w{};
    for (std::size_t i = 0; i < w.size(); ++i) {
      w[i] = weights.at(static_cast<std::int64_t>(pair * w.size() + i)).as_double();
    }
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < size; ++j) {
        double sum = 0;
        for (std::size_t y = 0; y < 3; ++y) {
          for (std::size_t x = 0; x < 3; ++x) {
            sum += g[i][y] * g[j][x] * w[y * 3 + x];
          }
        }
        const auto rounded = static_cast<float>(sum);
        std::memcpy(&bytes[((pair * size + i) * size + j) * sizeof(float)], &rounded,
                    sizeof rounded);
      }
    }
  }
  return Tensor::own(DType::F32, transformed_shape(weights.shape, tile), std::move(bytes));
}

std::vector<ExprId> transform_input(ExprPool& pool, bool fma, int tile,
                                    const std::vector<ExprId>& x) {
  Arithmetic a(pool, fma);
  if (tile == 2)
    return {a.sub(x[0], x[2]), a.add(x[1], x[2]), a.sub(x[2], x[1]), a.sub(x[1], x[3])};
  const ExprId even = a.add_multiple(-4, x[2], x[4]);
  const ExprId odd = a.add_multiple(-4, x[1], x[3]);
  const ExprId even2 = a.sub(x[4], x[2]);
  const ExprId odd2 = a.sub(x[3], x[1]);
  return {a.add_multiple(4, x[0], a.add_multiple(-5, x[2], x[4])),
          a.add(even, odd),
          a.sub(even, odd),
          a.add_multiple(2, odd2, even2),
          a.add_multiple(-2, odd2, even2),
          a.add_multiple(4, x[1], a.add_multiple(-5, x[3], x[5]))};
}

std::vector<ExprId> transform_output(ExprPool& pool, bool fma, int tile,
                                     const std::vector<ExprId>& m) {
  Arithmetic a(pool, fma);
  const ExprId sum = a.add(m[1], m[2]);
  const ExprId difference = a.sub(m[1], m[2]);
  if (tile == 2) return {a.add(m[0], sum), a.sub(difference, m[3])};
  const ExprId sum2 = a.add(m[3], m[4]);
  const ExprId difference2 = a.sub(m[3], m[4]);
  return {a.add(a.add(m[0], sum), sum2), a.add_multiple(2, difference2, difference),
          a.add_multiple(4, sum2, sum), a.add_multiple(8, difference2, a.add(difference, m[5]))};
}

double winograd_error(int tile) { return std::ldexp(tile == 4 ? 128.0 : 8.0, -24); }

}  // namespace ingot
