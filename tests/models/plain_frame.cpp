#include "tests/models/plain_frame.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace plain {
namespace {

constexpr std::size_t kStride = 4;  // frames between two samples

struct Position {
  int row, column;
};

// Where output pixel (x, y) lies in a plane of w x h: nearest pixel, clamped to the edge.
inline Position position(const float* m, int x, int y, int w, int h) {
  const auto fx = static_cast<float>(x);
  const auto fy = static_cast<float>(y);
  const float d = (m[6] * fx + m[7] * fy) + m[8];
  const float u = std::nearbyint(((m[0] * fx + m[1] * fy) + m[2]) / d);
  const float v = std::nearbyint(((m[3] * fx + m[4] * fy) + m[5]) / d);
  return {static_cast<int>(std::clamp(v, 0.0F, static_cast<float>(h - 1))),
          static_cast<int>(std::clamp(u, 0.0F, static_cast<float>(w - 1)))};
}

void row_positions(const float* m, int y, int count, int w, int h, Position* positions) {
  for (int x = 0; x < count; ++x) positions[x] = position(m, x, y, w, h);
}

}  // namespace

void road_warp(const Camera& camera_of_frame, const std::uint8_t* frame, const float* matrix,
               std::uint8_t* picture, Loops loops) {
  constexpr std::size_t kPlane = kPicture / 6;
  const Camera camera =
      camera_of_frame;  // bytes that are written might be these, for all g++ knows
  float m[9];
  std::copy_n(matrix, 9, m);
  const int w = camera.width;
  const int h = camera.height;
  Position row[kWidth];
  for (int y = 0; y < kHeight; ++y) {
    if (loops == Loops::Row) row_positions(m, y, kWidth, w, h, row);
    for (int x = 0; x < kWidth; ++x) {
      const Position at = loops == Loops::Row ? row[x] : position(m, x, y, w, h);
      const int plane = y % 2 + 2 * (x % 2);
      picture[static_cast<std::size_t>(plane) * kPlane +
              static_cast<std::size_t>(y / 2 * (kWidth / 2) + x / 2)] =
          frame[static_cast<std::size_t>(at.row) * camera.stride +
                static_cast<std::size_t>(at.column)];
    }
  }
  // Chroma has half the resolution: the same matrix between halved coordinates.
  const float muv[9] = {m[0], m[1], m[2] * 0.5F, m[3], m[4], m[5] * 0.5F, m[6] * 2, m[7] * 2, m[8]};
  const std::uint8_t* chroma = frame + camera.uv_offset;
  std::uint8_t* u_plane = picture + 4 * kPlane;
  std::uint8_t* v_plane = picture + 5 * kPlane;
  for (int y = 0; y < kHeight / 2; ++y) {
    if (loops == Loops::Row) row_positions(muv, y, kWidth / 2, w / 2, h / 2, row);
    for (int x = 0; x < kWidth / 2; ++x) {
      const Position at = loops == Loops::Row ? row[x] : position(muv, x, y, w / 2, h / 2);
      const std::uint8_t* pair = chroma + static_cast<std::size_t>(at.row) * camera.stride +
                                 2 * static_cast<std::size_t>(at.column);
      const auto to = static_cast<std::size_t>(y * (kWidth / 2) + x);
      u_plane[to] = pair[0];
      v_plane[to] = pair[1];
    }
  }
}

template <typename T>
T* History<T>::shift() {
  const std::size_t kept = values_.size() - size_;
  std::memmove(values_.data(), values_.data() + size_, kept * sizeof(T));
  return values_.data() + kept;
}

template class History<std::uint8_t>;
template class History<float>;

Frame::Frame(const Camera& camera, std::size_t features, Loops loops)
    : camera_(camera),
      feature_count_(features),
      loops_(loops),
      images_(kStride + 1, kPicture),
      big_images_(kStride + 1, kPicture),
      features_((kRows - 1) * kStride + 1, features),
      desires_(kRows * kStride, kDesire) {}

void Frame::warp(const std::uint8_t* frame, const float* m, History<std::uint8_t>& history) const {
  road_warp(camera_, frame, m, history.shift(), loops_);
}

void Frame::sample(const History<std::uint8_t>& history, std::uint8_t* out) const {
  std::memcpy(out, history.entry(0), kPicture);
  std::memcpy(out + kPicture, history.entry(kStride), kPicture);
}

void Frame::push_features(const float* feature, float* out) {
  std::memcpy(features_.shift(), feature, feature_count_ * sizeof(float));
  for (std::size_t i = 0; i < kRows; ++i) {
    std::memcpy(out + i * feature_count_, features_.entry(i * kStride),
                feature_count_ * sizeof(float));
  }
}

void Frame::push_desire(const float* desire, float* out) {
  std::memcpy(desires_.shift(), desire, kDesire * sizeof(float));
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::size_t k = 0; k < kDesire; ++k) {
      float largest = desires_.entry(i * kStride)[k];
      for (std::size_t n = 1; n < kStride; ++n) {
        largest = std::max(largest, desires_.entry(i * kStride + n)[k]);
      }
      out[i * kDesire + k] = largest;
    }
  }
}

void Frame::run(const Inputs& in, const Outputs& out) {
  warp(in.frame, in.tfm, images_);
  warp(in.big_frame, in.big_tfm, big_images_);
  sample(images_, out.img);
  sample(big_images_, out.big_img);
  push_features(in.feature, out.features);
  push_desire(in.desire, out.desires);
}

}  // namespace plain
