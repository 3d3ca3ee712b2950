// The warp and queue part of the driving sample as one would write it by hand: loops over pixels,
// histories that are moved by one entry each frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plain {

struct Camera {
  int width, height;
  std::size_t stride, uv_offset;
};

// How a warp is written: one loop that does everything for a pixel, or the positions of a row
// first, which the compiler can turn into vectors, and its samples after.
enum class Loops { Pixel, Row };

constexpr int kWidth = 512, kHeight = 256;
constexpr std::size_t kPicture = std::size_t{6} * (kHeight / 2) * (kWidth / 2);
constexpr std::size_t kDesire = 8;
constexpr std::size_t kRows = 25;  // of features and desires that the policy reads

// NV12 to six planes: brightness of (even, even), (odd, even), (even, odd), (odd, odd) rows and
// columns, U, V. `m` leads from a pixel of the picture to a pixel of the frame.
void road_warp(const Camera& camera, const std::uint8_t* frame, const float* m,
               std::uint8_t* picture, Loops loops);

// The last entries, oldest first.
template <typename T>
class History {
 public:
  History(std::size_t entries, std::size_t size) : size_(size), values_(entries * size) {}
  // Drops the oldest entry; returns where the newest goes.
  T* shift();
  [[nodiscard]] const T* entry(std::size_t index) const { return values_.data() + index * size_; }

 private:
  std::size_t size_;
  std::vector<T> values_;
};

struct Inputs {
  const std::uint8_t *frame, *big_frame;
  const float *tfm, *big_tfm, *desire, *feature;
};
struct Outputs {
  std::uint8_t *img, *big_img;  // 2 pictures each, four frames apart
  float *features, *desires;    // kRows rows each
};

class Frame {
 public:
  Frame(const Camera& camera, std::size_t features, Loops loops);
  void run(const Inputs& in, const Outputs& out);

  // The parts of `run`.
  void warp(const std::uint8_t* frame, const float* m, History<std::uint8_t>& history) const;
  void sample(const History<std::uint8_t>& history, std::uint8_t* out) const;
  void push_features(const float* feature, float* out);
  void push_desire(const float* desire, float* out);
  History<std::uint8_t>& images() { return images_; }
  History<std::uint8_t>& big_images() { return big_images_; }

 private:
  Camera camera_;
  std::size_t feature_count_;
  Loops loops_;
  History<std::uint8_t> images_, big_images_;
  History<float> features_, desires_;
};

}  // namespace plain
