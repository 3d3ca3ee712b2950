// Compiled warps between unreadable pages: whatever the matrix, a frame is refused by a number or
// its picture is that of a warp written down here once more, pixel by pixel.
//
// check_frames.py compiles the two artifacts and says where they are: $INGOT_FRAMES holds
// road.ingot (two frames, bound by pointer), cabin.ingot (fill 16) and key.raw.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "loader/ingot_loader.h"
#include "tests/loader/guarded_memory.h"

namespace ingot::test {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Matrix = std::array<float, 9>;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int kMatrices = 10000;

// ---- the warp, by its definition ----------------------------------------------------------------

struct Plane {
  const std::uint8_t* data;
  int pitch, step, width, height;
};

// Every operation is one of binary32; the test is compiled without contraction.
std::uint8_t sample(const Plane& plane, const Matrix& m, int x, int y, int fill) {
  const auto fx = static_cast<float>(x);
  const auto fy = static_cast<float>(y);
  const float d = (m[6] * fx + m[7] * fy) + m[8];
  const float u = std::nearbyint(((m[0] * fx + m[1] * fy) + m[2]) / d);
  const float v = std::nearbyint(((m[3] * fx + m[4] * fy) + m[5]) / d);
  const auto right = static_cast<float>(plane.width - 1);
  const auto bottom = static_cast<float>(plane.height - 1);
  if (fill >= 0 && !(u >= 0 && u <= right && v >= 0 && v <= bottom)) {
    return static_cast<std::uint8_t>(fill);
  }
  const int column = static_cast<int>(std::min(std::max(u, 0.0f), right));
  const int row = static_cast<int>(std::min(std::max(v, 0.0f), bottom));
  return plane.data[row * plane.pitch + column * plane.step];
}

Bytes cabin_picture(const std::uint8_t* frame, const ingot_layout& l, const Matrix& m, int width,
                    int height, int fill) {
  const Plane luma = {frame, static_cast<int>(l.stride), 1, static_cast<int>(l.width),
                      static_cast<int>(l.height)};
  Bytes picture;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) picture.push_back(sample(luma, m, x, y, fill));
  }
  return picture;
}

Bytes road_picture(const std::uint8_t* frame, const ingot_layout& l, const Matrix& m, int width,
                   int height) {
  const Bytes luma = cabin_picture(frame, l, m, width, height, -1);
  Bytes picture;
  const int phases[4][2] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};  // row, column
  for (const auto& phase : phases) {
    for (int y = phase[0]; y < height; y += 2) {
      for (int x = phase[1]; x < width; x += 2) {
        picture.push_back(luma[static_cast<std::size_t>(y * width + x)]);
      }
    }
  }
  Matrix half = m;
  for (const int i : {2, 5}) half[static_cast<std::size_t>(i)] *= 0.5f;
  for (const int i : {6, 7}) half[static_cast<std::size_t>(i)] *= 2.0f;
  for (int colour = 0; colour < 2; ++colour) {
    const Plane plane = {frame + l.uv_offset + colour, static_cast<int>(l.stride), 2,
                         static_cast<int>(l.width / 2), static_cast<int>(l.height / 2)};
    for (int y = 0; y < height / 2; ++y) {
      for (int x = 0; x < width / 2; ++x) picture.push_back(sample(plane, half, x, y, -1));
    }
  }
  return picture;
}

// What the rules say of a matrix, in more digits than the loader has.
ingot_status verdict(const Matrix& m, int width, int height) {
  bool any = false;
  for (const float value : m) {
    if (!std::isfinite(value)) return INGOT_STATUS_TRANSFORM_NOT_FINITE;
    any = any || value != 0;
  }
  if (!any) return INGOT_STATUS_TRANSFORM_NONE;
  using Wide = long double;
  const Wide right = width - 1;
  const Wide bottom = height - 1;
  for (std::size_t row = 0; row < 9; row += 3) {
    const Wide most = std::fabs(Wide{m[row]}) * right + std::fabs(Wide{m[row + 1]}) * bottom +
                      std::fabs(Wide{m[row + 2]});
    if (most > std::ldexp(Wide{1}, 127)) return INGOT_STATUS_TRANSFORM_RANGE;
  }
  const Wide scale = std::max(
      {std::fabs(Wide{m[6]}) * right, std::fabs(Wide{m[7]}) * bottom, std::fabs(Wide{m[8]})});
  const Wide least = std::max(std::ldexp(scale, -40), std::ldexp(Wide{1}, -60));
  int positive = 0;
  Wide far = 0;
  for (int corner = 0; corner < 4; ++corner) {
    const Wide x = corner % 2 == 0 ? 0 : right;
    const Wide y = corner / 2 == 0 ? 0 : bottom;
    const Wide d = m[6] * x + m[7] * y + m[8];
    if (std::fabs(d) < least) return INGOT_STATUS_TRANSFORM_DEGENERATE;
    if (d > 0) ++positive;
    far = std::max(far, std::fabs((m[0] * x + m[1] * y + m[2]) / d));
    far = std::max(far, std::fabs((m[3] * x + m[4] * y + m[5]) / d));
  }
  if (positive % 4 != 0) return INGOT_STATUS_TRANSFORM_DEGENERATE;
  return far < std::ldexp(Wide{1}, 22) ? 0 : INGOT_STATUS_TRANSFORM_RANGE + 0u;
}

// ---- an artifact between guards -----------------------------------------------------------------

std::string folder() {
  const char* path = std::getenv("INGOT_FRAMES");
  return path != nullptr ? path : "";
}

Bytes read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class Warp {
 public:
  Warp(const std::string& name, Edge edge) {
    const Bytes file = read(folder() + "/" + name);
    const Bytes raw = read(folder() + "/key.raw");
    ingot_key key{};
    if (raw.size() != sizeof key.public_key) return;
    std::memcpy(key.public_key, raw.data(), raw.size());
    ingot_policy policy{};
    policy.keys = &key;
    policy.key_count = 1;
    ingot_error error;
    if (ingot_open_memory(file.data(), file.size(), &policy, nullptr, &artifact_, &error) != 0 ||
        ingot_self_test(artifact_, nullptr, 0, nullptr, &error) != 0 ||
        ingot_instance_create(artifact_, nullptr, &instance_, &error) != 0) {
      return;
    }
    ingot_camera_info camera;
    ingot_camera_describe(artifact_, 0, &camera);
    layout_ = camera.layout;
    ingot_artifact_info info;
    ingot_artifact_describe(artifact_, &info);
    bool bound = true;
    for (std::uint32_t i = 0; i < info.io_count; ++i) {
      ingot_io_info io;
      ingot_io_describe(artifact_, i, &io);
      memory_.push_back(std::make_unique<GuardedMemory>(io.nbytes, edge, io.alignment));
      ingot_binding binding;
      ingot_binding_expected(artifact_, i, &binding);
      binding.data = memory_.back()->data();
      if (io.camera != INGOT_NONE) {
        binding.layout = &layout_;
        frames_.push_back(memory_.back()->data());
        frame_nbytes_ = io.nbytes;
      } else if (io.direction == INGOT_SLOT_INPUT) {
        matrices_ = memory_.back()->data();
      } else {
        picture_ = memory_.back()->data();
        picture_nbytes_ = io.nbytes;
      }
      bound = bound && ingot_bind(instance_, &binding, 1, &error) == 0;
    }
    ready_ = bound && matrices_ != nullptr && picture_ != nullptr && !frames_.empty();
  }
  Warp(const Warp&) = delete;
  Warp& operator=(const Warp&) = delete;
  ~Warp() {
    ingot_instance_destroy(instance_);
    ingot_close(artifact_);
  }

  bool ready() const { return ready_; }
  const ingot_layout& layout() const { return layout_; }
  std::size_t frame_count() const { return frames_.size(); }
  std::uint8_t* frame(std::size_t i) const { return frames_[i]; }
  Bytes picture() const { return Bytes(picture_, picture_ + picture_nbytes_); }

  void fill_frames(std::mt19937& random) {
    for (std::uint8_t* frame : frames_) {
      for (std::size_t i = 0; i < frame_nbytes_; ++i)
        frame[i] = static_cast<std::uint8_t>(random());
    }
  }
  // Everything that is no pixel.
  void fill_padding(std::mt19937& random) {
    for (std::uint8_t* frame : frames_) {
      for (std::size_t i = 0; i < frame_nbytes_; ++i) {
        const bool luma = i < layout_.uv_offset;
        const std::size_t at = luma ? i : i - layout_.uv_offset;
        const std::size_t rows = luma ? layout_.height : layout_.height / 2;
        const bool pixel = at % layout_.stride < layout_.width && at / layout_.stride < rows;
        if (!pixel) frame[i] = static_cast<std::uint8_t>(random());
      }
    }
  }

  ingot_frame run(const std::vector<Matrix>& matrices) {
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      std::memcpy(matrices_ + i * sizeof(Matrix), matrices[i].data(), sizeof(Matrix));
    }
    std::memset(picture_, 0xA5, picture_nbytes_);
    ingot_frame frame;
    ingot_run(instance_, &frame);
    return frame;
  }

 private:
  ingot_artifact* artifact_ = nullptr;
  ingot_instance* instance_ = nullptr;
  std::vector<std::unique_ptr<GuardedMemory>> memory_;
  std::vector<std::uint8_t*> frames_;
  std::size_t frame_nbytes_ = 0;
  std::uint8_t* matrices_ = nullptr;
  std::uint8_t* picture_ = nullptr;
  std::size_t picture_nbytes_ = 0;
  ingot_layout layout_{};
  bool ready_ = false;
};

// ---- matrices -----------------------------------------------------------------------------------

class Matrices {
 public:
  Matrix next() {
    Matrix m = plausible();
    switch (random_() % 8) {
      case 0: break;
      case 1: m[random_() % 9] = any_bits(); break;
      case 2:
        for (float& value : m) value = any_bits();
        break;
      case 3: m[random_() % 9] = special(); break;
      case 4:  // rank 2 or 1
        for (std::size_t i = 0; i < 3; ++i) m[3 + i] = m[i] * 2;
        if (random_() % 2 == 0) {
          for (std::size_t i = 0; i < 3; ++i) m[6 + i] = m[i] * 0.01f;
        }
        break;
      case 5: {  // the same map, other numbers
        const float by =
            std::ldexp(random_() % 2 == 0 ? 1.0f : -1.0f, static_cast<int>(random_() % 60) - 30);
        for (float& value : m) value *= by;
        break;
      }
      case 6:  // half a pixel away from ties
        m = {1, 0, tie(), 0, 1, tie(), 0, 0, 1};
        break;
      default:  // the denominator gets near to zero, or through it
        m[6] = between(-0.06f, 0.06f);
        m[7] = between(-0.06f, 0.06f);
        break;
    }
    return m;
  }
  std::mt19937& random() { return random_; }

 private:
  float between(float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(random_);
  }
  float tie() { return static_cast<float>(random_() % 200) * 0.5f - 50.0f; }
  float any_bits() { return std::bit_cast<float>(static_cast<std::uint32_t>(random_())); }
  float special() {
    constexpr float kTiny = std::numeric_limits<float>::denorm_min();
    constexpr float kMost = std::numeric_limits<float>::max();
    const float values[] = {0,     -0.0f,  kTiny,         -kTiny,     kMost,       -kMost, kInf,
                            -kInf, 1e-38f, std::nanf(""), 4194304.0f, -4194303.0f, 1e19f,  1e30f};
    return values[random_() % std::size(values)];
  }
  Matrix plausible() {
    return {between(-2, 2),           between(-0.5f, 0.5f),     between(-20, 60),
            between(-0.5f, 0.5f),     between(-2, 2),           between(-20, 60),
            between(-0.004f, 0.004f), between(-0.004f, 0.004f), between(0.5f, 2)};
  }

  std::mt19937 random_{20};
};

class WarpFrames : public testing::TestWithParam<Edge> {
 protected:
  void SetUp() override {
    if (folder().empty()) GTEST_SKIP() << "started without check_frames.py";
  }
};

std::string edge_name(const testing::TestParamInfo<Edge>& info) {
  return info.param == Edge::AtEnd ? "AtEnd" : "AtBegin";
}
INSTANTIATE_TEST_SUITE_P(Guards, WarpFrames, testing::Values(Edge::AtBegin, Edge::AtEnd),
                         edge_name);

constexpr int kRoadWidth = 32, kRoadHeight = 16;
constexpr int kCabinWidth = 24, kCabinHeight = 32, kCabinFill = 16;

TEST_P(WarpFrames, TenThousandMatricesOfTheRoad) {
  Warp warp("road.ingot", GetParam());
  ASSERT_TRUE(warp.ready());
  ASSERT_EQ(warp.frame_count(), 2u);
  Matrices matrices;
  warp.fill_frames(matrices.random());
  std::array<int, 2> count{};
  for (int n = 0; n < kMatrices; ++n) {
    const std::vector<Matrix> both = {matrices.next(), {1, 0, 3, 0, 1, 2, 0, 0, 1}};
    const ingot_frame frame = warp.run(both);
    ASSERT_EQ(frame.status, verdict(both[0], kRoadWidth, kRoadHeight)) << n;
    ++count[frame.status == 0 ? 0 : 1];
    ASSERT_EQ(frame.accepted, frame.status == 0 ? 1u : 0u);
    ASSERT_EQ(frame.valid, frame.accepted);
    if (frame.status != 0) continue;
    Bytes expected = road_picture(warp.frame(0), warp.layout(), both[0], kRoadWidth, kRoadHeight);
    const Bytes second =
        road_picture(warp.frame(1), warp.layout(), both[1], kRoadWidth, kRoadHeight);
    expected.insert(expected.end(), second.begin(), second.end());
    ASSERT_TRUE(warp.picture() == expected) << "matrix " << n;
  }
  EXPECT_GT(count[0], kMatrices / 5);
  EXPECT_GT(count[1], kMatrices / 5);
}

TEST_P(WarpFrames, TenThousandMatricesOfTheCabin) {
  Warp warp("cabin.ingot", GetParam());
  ASSERT_TRUE(warp.ready());
  Matrices matrices;
  warp.fill_frames(matrices.random());
  std::array<int, 2> count{};
  for (int n = 0; n < kMatrices; ++n) {
    const Matrix m = matrices.next();
    const ingot_frame frame = warp.run({m});
    ASSERT_EQ(frame.status, verdict(m, kCabinWidth, kCabinHeight)) << n;
    ++count[frame.status == 0 ? 0 : 1];
    if (frame.status != 0) continue;
    ASSERT_TRUE(warp.picture() == cabin_picture(warp.frame(0), warp.layout(), m, kCabinWidth,
                                                kCabinHeight, kCabinFill))
        << "matrix " << n;
  }
  EXPECT_GT(count[0], kMatrices / 5);
  EXPECT_GT(count[1], kMatrices / 5);
}

// The matrices with which the original gives a picture and no notice.
TEST_P(WarpFrames, MatricesThatNobodyElseChecks) {
  const float nan = std::nanf("");
  const std::vector<std::pair<Matrix, ingot_status>> cases = {
      {{0, 0, 0, 0, 0, 0, 0, 0, 0}, INGOT_STATUS_TRANSFORM_NONE},
      {{nan, 0, 0, nan, 1, 0, 0, 0, 1}, INGOT_STATUS_TRANSFORM_NOT_FINITE},
      {{1, 0, 0, 0, 1, 0, 0, 0, nan}, INGOT_STATUS_TRANSFORM_NOT_FINITE},
      {{1, 0, 0, 0, 1, 0, 0, 0, 0}, INGOT_STATUS_TRANSFORM_DEGENERATE},
      {{1, 0, 0, 0, 1, 0, -0.1f, 0, 1}, INGOT_STATUS_TRANSFORM_DEGENERATE},
      {{1, 0, kInf, 0, 1, 0, 0, 0, 1}, INGOT_STATUS_TRANSFORM_NOT_FINITE},
      {{1, 0, -kInf, 0, 1, 0, 0, 0, 1}, INGOT_STATUS_TRANSFORM_NOT_FINITE},
      {{1, 0, 0, 0, 1, kInf, 0, 0, 1}, INGOT_STATUS_TRANSFORM_NOT_FINITE},
      {{1, 0, 0, 0, 1, 0, 0, 0, 1e-30f}, INGOT_STATUS_TRANSFORM_DEGENERATE},
      {{1e38f, 0, 0, 0, 1, 0, 0, 0, 1}, INGOT_STATUS_TRANSFORM_RANGE},
      {{3e38f, 0, 3e38f, 0, 1, 0, 0, 0, 1}, INGOT_STATUS_TRANSFORM_RANGE},
  };
  for (const char* name : {"road.ingot", "cabin.ingot"}) {
    Warp warp(name, GetParam());
    ASSERT_TRUE(warp.ready());
    Matrices matrices;
    warp.fill_frames(matrices.random());
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const std::vector<Matrix> all(warp.frame_count(), cases[i].first);
      const ingot_frame frame = warp.run(all);
      EXPECT_EQ(frame.status, cases[i].second) << name << " " << i;
      EXPECT_EQ(frame.accepted, 0u);
    }
    // D below zero everywhere: the same map, the same picture.
    const Matrix map = {1.5f, 0.25f, 4, -0.125f, 1.25f, 6, 0.001f, 0.002f, 1};
    Matrix turned = map;
    for (float& value : turned) value = -value;
    ASSERT_EQ(warp.run(std::vector<Matrix>(warp.frame_count(), map)).status, 0u);
    const Bytes expected = warp.picture();
    ASSERT_EQ(warp.run(std::vector<Matrix>(warp.frame_count(), turned)).status, 0u);
    EXPECT_EQ(warp.picture(), expected);
  }
}

TEST_P(WarpFrames, BytesOfPaddingChangeNothing) {
  for (const char* name : {"road.ingot", "cabin.ingot"}) {
    Warp warp(name, GetParam());
    ASSERT_TRUE(warp.ready());
    Matrices matrices;
    warp.fill_frames(matrices.random());
    int looked_at = 0;
    for (int n = 0; n < 300; ++n) {
      const std::vector<Matrix> all(warp.frame_count(), matrices.next());
      if (warp.run(all).status != 0) continue;
      const Bytes expected = warp.picture();
      warp.fill_padding(matrices.random());
      ASSERT_EQ(warp.run(all).status, 0u);
      ASSERT_EQ(warp.picture(), expected) << name << " " << n;
      ++looked_at;
    }
    EXPECT_GT(looked_at, 50);
  }
}

}  // namespace
}  // namespace ingot::test
