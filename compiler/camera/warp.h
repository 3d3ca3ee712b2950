// Camera warps as graphs: each output pixel takes the source pixel nearest to where a 3x3 matrix
// sends it. Every float operation is one IEEE binary32 operation in the stated order (strict
// nodes), so that all targets give the same bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "compiler/camera/camera.h"
#include "compiler/graph/builder.h"

namespace ingot {

// What a warp makes of a frame.
struct Warp {
  bool cabin = false;                  // brightness only, in row order; else road
  std::int64_t width = 0, height = 0;  // output, pixels
  std::optional<std::uint8_t> fill;    // cabin: for pixels outside the frame; none: nearest edge
};

// Usage text for a size that the warp cannot have, empty if it can: a road picture is cut into
// 2x2 phases, so its width must be even and its height a multiple of 4.
[[nodiscard]] std::string illegal_size(const Warp& warp);

// u8 [frames, 6, H/2, W/2]: four phases of Y in the order (row, column) 00, 10, 01, 11, then U, V.
// Frames are u8 [camera.size_bytes]; the matrix is f32 [3,3] for one frame, else [frames,3,3].
// Declares the transforms of the matrix. Needs: a legal size, not cabin.
[[nodiscard]] ValueId road_warp(GraphBuilder& builder, const Warp& warp, const Camera& camera,
                                std::span<const ValueId> frames, ValueId matrix);

// u8 [1, W*H] from one frame and a matrix f32 [3,3]; reads only the Y plane. Declares the
// transform.
[[nodiscard]] ValueId cabin_warp(GraphBuilder& builder, const Warp& warp, const Camera& camera,
                                 ValueId frame, ValueId matrix);

}  // namespace ingot
