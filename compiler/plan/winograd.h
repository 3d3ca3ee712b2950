// Winograd's minimal filtering for 3x3 convolutions with step 1: tile x tile outputs from
// (tile + 2)^2 products per pair of channels instead of 9 tile^2.
//
//   Y = A^T [ sum over channels of (G w G^T) .* (B^T x B) ] A
//
// Matrices of Lavin and Gray, Fast Algorithms for Convolutional Neural Networks (2015): points
// 0, 1, -1 (tile 2), and 2, -2 (tile 4). Errors: docs/math.md.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/kernel/expr.h"
#include "compiler/target/target.h"
#include "compiler/tensor/tensor.h"

namespace ingot {

struct ConvolutionExtents {
  std::int64_t input_channels = 1, output_channels = 1;
  std::int64_t rows = 1, columns = 1;  // of the output
};

struct WinogradPlan {
  int tile = 0;  // 0: the direct convolution is cheaper
  std::int64_t band = 1, parts = 1, positions = 1;
  int vectors = 1;
};

// 0 where floats are compared for equality: last bits then decide more than last bits, and sums
// keep their own terms.
[[nodiscard]] int largest_winograd_tile(const Graph& graph);

// What a schedule by facts of the target would take; float32, no measurement.
[[nodiscard]] WinogradPlan plan_winograd(const ConvolutionExtents& extents, const Target& target,
                                         int largest_tile);

// Tiles that cover `outputs`.
[[nodiscard]] std::int64_t winograd_tiles(int tile, std::int64_t outputs);

// Of weights [O,C,3,3]: [O,C,(tile + 2)^2,1].
[[nodiscard]] Shape transformed_shape(const Shape& weights, int tile);

// G w G^T of f32 weights [O,C,3,3], in double, rounded once.
[[nodiscard]] Tensor transform_weights(const Tensor& weights, int tile);

// One dimension of B^T x B: tile + 2 values of as many.
[[nodiscard]] std::vector<ExprId> transform_input(ExprPool& pool, bool fma, int tile,
                                                  const std::vector<ExprId>& x);
// One dimension of A^T m A: `tile` values of tile + 2.
[[nodiscard]] std::vector<ExprId> transform_output(ExprPool& pool, bool fma, int tile,
                                                   const std::vector<ExprId>& m);

// How far an output may be from the exact one, as a share of
// max |x| * (sum of |w| of its channel): docs/math.md.
[[nodiscard]] double winograd_error(int tile);

}  // namespace ingot
