// Makes the model of the cabin sample: cabin_monitoring.onnx.
//
//   make_cabin_model FOLDER [--width W] [--seed N]
//
// It has the published interface of driver-monitoring models (input_img u8 [1, 1382400], the
// brightness of 1440x960 pixels; calib f32 [1, 3]; one output of 552 values) and their end (a 1x1
// convolution to 960 channels on a grid of 8x12, its mean over the grid), and random weights: for
// trying the tool, not for watching anybody.
#include <string>
#include <vector>

#include "samples/models/model_parts.h"
#include "samples/models/onnx_writer.h"

namespace sample {
namespace {

constexpr std::int64_t kFeatures = 960;

std::string cabin_model(std::int64_t width, std::uint64_t seed) {
  OnnxWriter w("cabin_monitoring", seed);
  const std::string pixels = w.input("input_img", onnx::TensorProto::UINT8, {1, 1440 * 960});
  const std::string calib = w.input("calib", onnx::TensorProto::FLOAT, {1, 3});
  std::string x = w.node("Reshape", {pixels, w.integers({1, 1, 960, 1440})});
  x = w.node("Cast", {x}, {.ints = {{"to", onnx::TensorProto::FLOAT}}, .int_lists = {}});
  x = w.node("Div", {w.node("Sub", {x, w.filled({}, 128.0F)}), w.filled({}, 64.0F)});

  // 240x360, then half of it five times: 8x12.
  x = gelu(w, conv(w, x, {.in = 1, .out = width, .kernel = 7, .stride = 4, .gain = 1.4}));
  std::int64_t channels = width;
  for (int level = 0; level < 5; ++level) {
    const std::int64_t out = level < 4 ? 2 * channels : channels;
    x = conv(w, x, {.in = channels, .out = channels, .kernel = 3, .stride = 2, .groups = channels});
    x = gelu(w, conv(w, x, {.in = channels, .out = out, .kernel = 1, .gain = 1.4}));
    channels = out;
    if (level >= 2) x = mixer_block(w, x, channels);
  }
  x = gelu(w, conv(w, x, {.in = channels, .out = kFeatures, .kernel = 1, .gain = 1.4}));
  x = w.node("ReduceMean", {x}, {.ints = {{"keepdims", 0}}, .int_lists = {{"axes", {2, 3}}}});

  // How the camera is mounted.
  x = w.node("Add", {x, gemm(w, calib, 3, kFeatures)});
  const std::vector<Slice> slices = {{"left_face", 20}, {"right_face", 20}, {"features", 512}};
  std::vector<std::string> parts;
  for (const Slice& slice : slices) {
    parts.push_back(head(w, x, kFeatures, 8 * width, slice.size));
  }
  return finish(w, parts, slices);
}

}  // namespace
}  // namespace sample

int main(int argc, char** argv) {
  sample::Options options{.folder = {}, .width = 8, .seed = 30};
  if (!sample::read_options(argc, argv, options)) return 2;
  return sample::write_models(
      options, {{"cabin_monitoring.onnx", sample::cabin_model(options.width, options.seed)}});
}
