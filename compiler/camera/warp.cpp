#include "compiler/camera/warp.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "base/check.h"

namespace ingot {
namespace {

// Makes the nodes of its lifetime strict.
class StrictScope {
 public:
  explicit StrictScope(GraphBuilder& builder) : builder_(builder), before_(builder.strict()) {
    builder_.set_strict(true);
  }
  ~StrictScope() { builder_.set_strict(before_); }
  StrictScope(const StrictScope&) = delete;
  StrictScope& operator=(const StrictScope&) = delete;

 private:
  GraphBuilder& builder_;
  bool before_;
};

// The nine numbers of a matrix, each a value of shape [].
using Matrix = std::array<ValueId, 9>;

Matrix read_matrix(GraphBuilder& builder, ValueId matrix, std::size_t frame) {
  const bool several = builder.shape(matrix).size() == 3;
  Matrix numbers;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::vector<AffineIndex> index;
    if (several) index.push_back(AffineIndex::constant(static_cast<std::int64_t>(frame)));
    index.push_back(AffineIndex::constant(static_cast<std::int64_t>(i / 3)));
    index.push_back(AffineIndex::constant(static_cast<std::int64_t>(i % 3)));
    numbers[i] = builder.view(matrix, {}, std::move(index));
  }
  return numbers;
}

// The matrix of the chroma plane, at half the size on both sides: S M S^-1 with
// S = diag(1/2, 1/2, 1). Multiplying by powers of two is exact.
Matrix chroma_matrix(GraphBuilder& builder, Matrix m) {
  for (const std::size_t i : {2U, 5U}) m[i] = builder.mul(m[i], builder.like(m[i], 0.5));
  for (const std::size_t i : {6U, 7U}) m[i] = builder.mul(m[i], builder.like(m[i], 2.0));
  return m;
}

// Where output pixels (x, y) lie in the source, rounded to the nearest pixel, not yet clamped.
struct Source {
  ValueId column, row;  // f32
};

Source locate(GraphBuilder& builder, const Matrix& m, ValueId x, ValueId y) {
  const ValueId fx = builder.cast(x, DType::F32);
  const ValueId fy = builder.cast(y, DType::F32);
  const auto line = [&](std::size_t i) {
    return builder.add(builder.add(builder.mul(m[i], fx), builder.mul(m[i + 1], fy)), m[i + 2]);
  };
  const ValueId divisor = line(6);
  return {.column = builder.map(ScalarOp::Round, builder.div(line(0), divisor)),
          .row = builder.map(ScalarOp::Round, builder.div(line(3), divisor))};
}

// An index in 0..extent-1, also for NaN, which the cast takes to 0.
ValueId clamp_index(GraphBuilder& builder, ValueId rounded, std::int64_t extent) {
  const auto last = static_cast<double>(extent - 1);
  const ValueId clamped =
      builder.min(builder.max(rounded, builder.like(rounded, 0)), builder.like(rounded, last));
  return builder.cast(clamped, DType::I32);
}

// Of a byte in the frame's plane: row * stride + column * step, for clamped coordinates.
struct Plane {
  std::int64_t width, height;  // samples
  std::int64_t stride, step;   // bytes
};

ValueId place_of(GraphBuilder& builder, const Plane& plane, const Source& source) {
  const ValueId row = clamp_index(builder, source.row, plane.height);
  ValueId column = clamp_index(builder, source.column, plane.width);
  if (plane.step != 1) {
    column = builder.mul(column, builder.like(column, static_cast<double>(plane.step)));
  }
  const ValueId start = builder.mul(row, builder.like(row, static_cast<double>(plane.stride)));
  return builder.add(start, column);
}

ValueId sample(GraphBuilder& builder, ValueId frame, ValueId place) {
  return builder.gather(frame, place, 0, true);
}

// u8 [1, 4, H/2, W/2] over the axes (odd column, odd row, y, x): phases 00, 10, 01, 11.
ValueId warp_luma_phases(GraphBuilder& builder, const Warp& warp, const Camera& camera,
                         ValueId frame, const Matrix& matrix) {
  const Shape shape = {2, 2, warp.height / 2, warp.width / 2};
  const auto twice = [&](int axis) {
    const ValueId half = builder.iota(DType::I32, shape, axis);
    return builder.mul(half, builder.like(half, 2));
  };
  const ValueId x = builder.add(twice(3), builder.iota(DType::I32, shape, 0));
  const ValueId y = builder.add(twice(2), builder.iota(DType::I32, shape, 1));
  const Plane plane = {camera.width, camera.height, camera.stride, 1};
  const ValueId place = place_of(builder, plane, locate(builder, matrix, x, y));
  const ValueId luma = sample(builder, frame, place);
  return builder.reshape(luma, {1, 4, shape[2], shape[3]});
}

// u8 [1, 2, H/2, W/2]: U, then V. They differ by one byte of the place, which is computed once.
ValueId warp_chroma(GraphBuilder& builder, const Warp& warp, const Camera& camera, ValueId frame,
                    const Matrix& matrix) {
  const Shape plane_shape = {warp.height / 2, warp.width / 2};
  const Shape shape = {1, 2, plane_shape[0], plane_shape[1]};
  const ValueId x = builder.iota(DType::I32, plane_shape, 1);
  const ValueId y = builder.iota(DType::I32, plane_shape, 0);
  const ValueId is_v = builder.iota(DType::I32, shape, 1);
  const auto uv_offset = static_cast<double>(camera.uv_offset);
  const ValueId offset = camera.pixel_format == PixelFormat::Nv21
                             ? builder.sub(builder.like(is_v, uv_offset + 1), is_v)
                             : builder.add(is_v, builder.like(is_v, uv_offset));
  const Plane plane = {camera.width / 2, camera.height / 2, camera.stride, 2};
  const ValueId place =
      place_of(builder, plane, locate(builder, chroma_matrix(builder, matrix), x, y));
  return sample(builder, frame, builder.add(builder.expand(place, shape), offset));
}

void check_operands(GraphBuilder& builder, const Camera& camera, std::span<const ValueId> frames,
                    ValueId matrix) {
  for (const ValueId frame : frames) {
    const Shape expected = {static_cast<std::int64_t>(camera.size_bytes)};
    INGOT_CHECK(builder.dtype(frame) == DType::U8 && builder.shape(frame) == expected,
                "a frame is not the bytes of its camera");
  }
  const auto count = static_cast<std::int64_t>(frames.size());
  const Shape expected = count == 1 ? Shape{3, 3} : Shape{count, 3, 3};
  INGOT_CHECK(builder.dtype(matrix) == DType::F32 && builder.shape(matrix) == expected,
              "one 3x3 matrix per frame is needed");
}

}  // namespace

std::string illegal_size(const Warp& warp) {
  constexpr std::int64_t largest = 16384;
  if (warp.width < 1 || warp.height < 1 || warp.width > largest || warp.height > largest) {
    return fmt::format("size {}x{} is outside 1..{}", warp.width, warp.height, largest);
  }
  if (warp.cabin) return {};
  if (warp.width % 2 != 0)
    return fmt::format("a road picture {} wide has an odd width", warp.width);
  if (warp.height % 4 != 0) {
    return fmt::format("a road picture {} high is no multiple of 4", warp.height);
  }
  return {};
}

ValueId road_warp(GraphBuilder& builder, const Warp& warp, const Camera& camera,
                  std::span<const ValueId> frames, ValueId matrix) {
  INGOT_CHECK(!warp.cabin && illegal_size(warp).empty(), "not a road warp of a legal size");
  check_operands(builder, camera, frames, matrix);
  const StrictScope strict(builder);
  std::vector<ValueId> pictures;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const Matrix numbers = read_matrix(builder, matrix, i);
    const ValueId planes[] = {warp_luma_phases(builder, warp, camera, frames[i], numbers),
                              warp_chroma(builder, warp, camera, frames[i], numbers)};
    pictures.push_back(builder.concat(planes, 1));
    builder.transform({.input = matrix,
                       .offset_bytes = static_cast<std::int64_t>(i) * 36,
                       .width = warp.width,
                       .height = warp.height,
                       .frame = frames[i]});
  }
  return builder.concat(pictures, 0);
}

ValueId cabin_warp(GraphBuilder& builder, const Warp& warp, const Camera& camera, ValueId frame,
                   ValueId matrix) {
  INGOT_CHECK(warp.cabin && illegal_size(warp).empty(), "not a cabin warp of a legal size");
  check_operands(builder, camera, std::span(&frame, 1), matrix);
  const StrictScope strict(builder);
  const Shape shape = {warp.height, warp.width};
  const Source source =
      locate(builder, read_matrix(builder, matrix, 0), builder.iota(DType::I32, shape, 1),
             builder.iota(DType::I32, shape, 0));
  const Plane plane = {camera.width, camera.height, camera.stride, 1};
  ValueId picture = sample(builder, frame, place_of(builder, plane, source));
  if (warp.fill) {
    // Decided on the rounded coordinates before the clamp; NaN is outside.
    const auto inside = [&](ValueId rounded, std::int64_t extent) {
      const ValueId last = builder.like(rounded, static_cast<double>(extent - 1));
      return builder.map(ScalarOp::And,
                         builder.map(ScalarOp::Le, builder.like(rounded, 0), rounded),
                         builder.map(ScalarOp::Le, rounded, last));
    };
    const ValueId both = builder.map(ScalarOp::And, inside(source.column, plane.width),
                                     inside(source.row, plane.height));
    picture = builder.select(both, picture, builder.like(picture, *warp.fill));
  }
  builder.transform(
      {.input = matrix, .width = warp.width, .height = warp.height, .cabin = true, .frame = frame});
  return builder.reshape(picture, {1, warp.width * warp.height});
}

}  // namespace ingot
