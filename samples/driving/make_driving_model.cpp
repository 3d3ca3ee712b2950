// Makes the two models of the driving sample: driving_vision.onnx and driving_policy.onnx.
//
//   make_driving_model FOLDER [--width W] [--seed N]
//
// They have the published structure of driving models (mixer blocks with GELU, 7x7 down-sampling
// with two outputs per input channel, residual heads; one attention block over the history) at a
// small width, and random weights: for trying the tool, not for driving. The published width is 64.
#include <cmath>
#include <string>
#include <vector>

#include "samples/models/model_parts.h"
#include "samples/models/onnx_writer.h"

namespace sample {
namespace {

constexpr std::int64_t kHistory = 25;

// Half the size, twice the channels.
std::string down_sample(OnnxWriter& w, const std::string& x, std::int64_t channels) {
  const std::int64_t out = 2 * channels;
  const std::string y =
      conv(w, x,
           {.in = channels, .out = out, .kernel = 7, .stride = 2, .groups = channels, .gain = 1.4});
  return gelu(w, conv(w, y, {.in = out, .out = out, .kernel = 1, .gain = 1.4}));
}

std::string squeeze_excite(OnnxWriter& w, const std::string& x, std::int64_t channels) {
  const std::int64_t inner = channels / 8;
  std::string y = w.node("GlobalAveragePool", {x});
  y = w.node("Relu", {conv(w, y, {.in = channels, .out = inner, .kernel = 1})});
  y = w.node("Sigmoid", {conv(w, y, {.in = inner, .out = channels, .kernel = 1})});
  return w.node("Mul", {x, y});
}

std::string vision_model(std::int64_t width, std::uint64_t seed) {
  OnnxWriter w("driving_vision", seed);
  const Dims image = {1, 12, 128, 256};
  const std::string img = w.input("img", onnx::TensorProto::UINT8, image);
  const std::string big = w.input("big_img", onnx::TensorProto::UINT8, image);
  const OnnxWriter::Attributes to_float = {.ints = {{"to", onnx::TensorProto::FLOAT}},
                                           .int_lists = {}};
  std::string x =
      w.node("Concat", {w.node("Cast", {img}, to_float), w.node("Cast", {big}, to_float)},
             {.ints = {{"axis", 1}}, .int_lists = {}});
  x = w.node("Div", {w.node("Sub", {x, w.filled({}, 128.0F)}), w.filled({}, 64.0F)});

  // Stem: to `width` channels at 32x64.
  x = gelu(w, conv(w, x, {.in = 24, .out = width, .kernel = 3, .stride = 2, .gain = 1.4}));
  x = gelu(
      w, conv(w, x,
              {.in = width, .out = width, .kernel = 3, .stride = 2, .groups = width, .gain = 1.4}));
  x = gelu(w, conv(w, x, {.in = width, .out = width, .kernel = 1, .gain = 1.4}));

  std::int64_t channels = width;
  for (const int blocks : {2, 2, 4, 2}) {
    for (int i = 0; i < blocks; ++i) x = mixer_block(w, x, channels);
    if (channels < 8 * width) {
      x = down_sample(w, x, channels);
      channels *= 2;
    }
  }
  x = conv(w, x, {.in = channels, .out = channels, .kernel = 3, .groups = channels});
  x = gelu(w, squeeze_excite(w, x, channels));
  x = w.node("ReduceMean", {x}, {.ints = {{"keepdims", 0}}, .int_lists = {{"axes", {2, 3}}}});

  // The feature, scaled to length 1, then to about 1 per value.
  x = gemm(w, x, channels, channels);
  const std::string square = w.node("ReduceSum", {w.node("Mul", {x, x}), w.integers({1})},
                                    {.ints = {{"keepdims", 1}}, .int_lists = {}});
  const std::string length = w.node("Clip", {w.node("Sqrt", {square}), w.filled({}, 1e-6F)});
  const std::string unit = w.node("Div", {x, length});
  const std::string feature = w.node(
      "Mul", {unit, w.filled({}, static_cast<float>(std::sqrt(static_cast<double>(channels))))});

  const std::vector<Slice> slices = {{"meta", 55},
                                     {"desire_pred", 32},
                                     {"pose", 12},
                                     {"wide_from_device_euler", 6},
                                     {"road_transform", 12},
                                     {"lane_lines", 528},
                                     {"lane_lines_prob", 8},
                                     {"road_edges", 264},
                                     {"lead", 144},
                                     {"lead_prob", 3},
                                     {"hidden_state", channels}};
  std::vector<std::string> parts;
  for (const Slice& slice : slices) {
    const bool is_feature = slice.name == "hidden_state";
    parts.push_back(is_feature ? feature : head(w, feature, channels, 4 * width, slice.size));
  }
  return finish(w, parts, slices);
}

// Layer normalization over the last axis, written out.
std::string normalize(OnnxWriter& w, const std::string& x, std::int64_t size) {
  const OnnxWriter::Attributes last = {.ints = {{"keepdims", 1}}, .int_lists = {{"axes", {-1}}}};
  const std::string centred = w.node("Sub", {x, w.node("ReduceMean", {x}, last)});
  const std::string variance =
      w.node("ReduceMean", {w.node("Pow", {centred, w.filled({}, 2.0F)})}, last);
  const std::string deviation = w.node("Sqrt", {w.node("Add", {variance, w.filled({}, 1e-5F)})});
  const std::string scaled =
      w.node("Mul", {w.node("Div", {centred, deviation}), w.filled({size}, 1.0F)});
  return w.node("Add", {scaled, w.bias(size)});
}

// Self-attention over the rows of x [1, kHistory, size].
std::string attention(OnnxWriter& w, const std::string& x, std::int64_t size, std::int64_t heads) {
  const std::int64_t head_size = size / heads;
  const std::string all = w.node("MatMul", {x, w.weight({size, 3 * size}, size)});
  const auto parts = w.node_of("Split", {all, w.integers({size, size, size})},
                               {.ints = {{"axis", 2}}, .int_lists = {}}, 3);
  const auto heads_of = [&](const std::string& part, const std::vector<std::int64_t>& order) {
    const std::string cut = w.node("Reshape", {part, w.integers({1, kHistory, heads, head_size})});
    return w.node("Transpose", {cut}, {.ints = {}, .int_lists = {{"perm", order}}});
  };
  const std::string q = heads_of(parts[0], {0, 2, 1, 3});
  const std::string k = heads_of(parts[1], {0, 2, 3, 1});
  const std::string v = heads_of(parts[2], {0, 2, 1, 3});
  const std::string scores = w.node(
      "Div", {w.node("MatMul", {q, k}), w.filled({}, static_cast<float>(head_size) * 0.35F)});
  const std::string shares = w.node("Softmax", {scores}, {.ints = {{"axis", -1}}, .int_lists = {}});
  const std::string mixed = w.node("Transpose", {w.node("MatMul", {shares, v})},
                                   {.ints = {}, .int_lists = {{"perm", {0, 2, 1, 3}}}});
  const std::string rows = w.node("Reshape", {mixed, w.integers({1, kHistory, size})});
  return w.node("Add", {x, w.node("MatMul", {rows, w.weight({size, size}, size)})});
}

std::string policy_model(std::int64_t width, std::uint64_t seed) {
  OnnxWriter w("driving_policy", seed);
  const std::int64_t size = 8 * width;
  const std::string features =
      w.input("features_buffer", onnx::TensorProto::FLOAT, {1, kHistory, size});
  const std::string desire = w.input("desire_pulse", onnx::TensorProto::FLOAT, {1, kHistory, 8});
  const std::string traffic = w.input("traffic_convention", onnx::TensorProto::FLOAT, {1, 2});

  std::string x = w.node("Add", {features, w.node("MatMul", {desire, w.weight({8, size}, 8)})});
  x = w.node("Add", {x, w.weight({1, kHistory, size}, 1, 0.2)});
  x = attention(w, normalize(w, x, size), size, 8);
  x = normalize(w, x, size);
  // The newest row, with the side of the road.
  x = w.node("Gather", {x, w.integers({kHistory - 1})}, {.ints = {{"axis", 1}}, .int_lists = {}});
  x = w.node("Squeeze", {x, w.integers({1})});
  x = w.node("Concat", {x, traffic}, {.ints = {{"axis", 1}}, .int_lists = {}});
  x = w.node("Elu", {gemm(w, x, size + 2, size)});
  x = residual(w, residual(w, x, size), size);

  const std::vector<Slice> slices = {{"plan", 990}, {"desire_state", 8}, {"pad", 2}};
  std::vector<std::string> parts;
  for (const Slice& slice : slices) parts.push_back(head(w, x, size, 4 * width, slice.size));
  return finish(w, parts, slices);
}

}  // namespace
}  // namespace sample

int main(int argc, char** argv) {
  sample::Options options{.folder = {}, .width = 16, .seed = 20};
  if (!sample::read_options(argc, argv, options)) return 2;
  return sample::write_models(
      options, {{"driving_vision.onnx", sample::vision_model(options.width, options.seed)},
                {"driving_policy.onnx", sample::policy_model(options.width, options.seed + 1)}});
}
