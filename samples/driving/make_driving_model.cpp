// Makes the two models of the driving sample: driving_vision.onnx and driving_policy.onnx.
//
//   make_driving_model FOLDER [--width W] [--seed N]
//
// They have the published structure of driving models (mixer blocks with GELU, 7x7 down-sampling
// with two outputs per input channel, residual heads; one attention block over the history) at a
// small width, and random weights: for trying the tool, not for driving. The published width is 64.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "samples/driving/onnx_writer.h"

namespace sample {
namespace {

constexpr std::int64_t kHistory = 25;

struct Slice {
  std::string name;
  std::int64_t size;
};

std::string base64(const std::string& bytes) {
  constexpr const char* alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      const auto byte = i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U;
      group = group << 8U | byte;
    }
    for (std::size_t k = 0; k < 4; ++k) {
      const bool padding = i + k > bytes.size();
      text += padding ? '=' : alphabet[(group >> (18 - 6 * k)) & 63U];
    }
  }
  return text;
}

// What Python's pickle (protocol 3) writes for {name: slice(start, stop, None), ...}.
std::string pickle(const std::vector<Slice>& slices) {
  const auto number = [](std::int64_t value) {
    std::string bytes = "J";
    for (unsigned shift = 0; shift < 32; shift += 8) {
      bytes += static_cast<char>((value >> shift) & 0xFF);
    }
    return bytes;
  };
  std::string bytes = "\x80\x03}(";
  std::int64_t start = 0;
  for (const Slice& slice : slices) {
    bytes += 'X' + number(static_cast<std::int64_t>(slice.name.size())).substr(1) + slice.name;
    bytes += "cbuiltins\nslice\n" + number(start) + number(start + slice.size) + "N\x87R";
    start += slice.size;
  }
  return bytes + "u.";
}

std::int64_t total(const std::vector<Slice>& slices) {
  std::int64_t size = 0;
  for (const Slice& slice : slices) size += slice.size;
  return size;
}

// GELU by its tanh form, written out as exporters do.
std::string gelu(OnnxWriter& w, const std::string& x) {
  const std::string cubed = w.node("Mul", {x, w.node("Mul", {x, x})});
  const std::string inner = w.node("Add", {x, w.node("Mul", {cubed, w.filled({}, 0.044715F)})});
  const std::string tanh = w.node("Tanh", {w.node("Mul", {inner, w.filled({}, 0.7978845608F)})});
  const std::string half = w.node("Mul", {x, w.filled({}, 0.5F)});
  return w.node("Mul", {half, w.node("Add", {tanh, w.filled({}, 1.0F)})});
}

struct Conv {
  std::int64_t in, out, kernel;
  std::int64_t stride = 1;
  std::int64_t groups = 1;
  double gain = 1.0;
};

std::string conv(OnnxWriter& w, const std::string& x, const Conv& c) {
  const std::int64_t pad = c.kernel / 2;
  const std::int64_t fan_in = c.in / c.groups * c.kernel * c.kernel;
  return w.node(
      "Conv",
      {x, w.weight({c.out, c.in / c.groups, c.kernel, c.kernel}, fan_in, c.gain), w.bias(c.out)},
      {.ints = {{"group", c.groups}},
       .int_lists = {{"dilations", {1, 1}},
                     {"kernel_shape", {c.kernel, c.kernel}},
                     {"pads", {pad, pad, pad, pad}},
                     {"strides", {c.stride, c.stride}}}});
}

std::string gemm(OnnxWriter& w, const std::string& x, std::int64_t in, std::int64_t out,
                 double gain = 1.0) {
  return w.node("Gemm", {x, w.weight({out, in}, in, gain), w.bias(out)},
                {.ints = {{"transB", 1}}, .int_lists = {}});
}

// Token mixing by a depthwise convolution, then two 1x1 convolutions with GELU between, added back
// at a small scale.
std::string mixer_block(OnnxWriter& w, const std::string& x, std::int64_t channels) {
  const std::string mixed =
      conv(w, x, {.in = channels, .out = channels, .kernel = 3, .groups = channels});
  std::string y =
      conv(w, mixed, {.in = channels, .out = channels, .kernel = 7, .groups = channels});
  y = gelu(w, conv(w, y, {.in = channels, .out = 3 * channels, .kernel = 1, .gain = 1.4}));
  y = conv(w, y, {.in = 3 * channels, .out = channels, .kernel = 1, .gain = 1.4});
  return w.node("Add", {mixed, w.node("Mul", {y, w.filled({1, channels, 1, 1}, 0.3F)})});
}

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

// x + two layers of it.
std::string residual(OnnxWriter& w, const std::string& x, std::int64_t size) {
  const std::string y = gemm(w, w.node("Relu", {gemm(w, x, size, size, 1.4)}), size, size);
  return w.node("Relu", {w.node("Add", {x, y})});
}

std::string head(OnnxWriter& w, const std::string& feature, std::int64_t in, std::int64_t hidden,
                 std::int64_t out) {
  const std::string x = w.node("Relu", {gemm(w, feature, in, hidden, 1.4)});
  return gemm(w, residual(w, x, hidden), hidden, out);
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
  w.node("Concat", parts, {.ints = {{"axis", 1}}, .int_lists = {}}, "outputs");
  w.output("outputs", {1, total(slices)});
  w.metadata("output_slices", base64(pickle(slices)));
  return w.bytes();
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
  w.node("Concat", parts, {.ints = {{"axis", 1}}, .int_lists = {}}, "outputs");
  w.output("outputs", {1, total(slices)});
  w.metadata("output_slices", base64(pickle(slices)));
  return w.bytes();
}

bool write(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  if (!file) std::cerr << "make_driving_model: cannot write " << path << "\n";
  return static_cast<bool>(file);
}

int run(const std::vector<std::string>& arguments) {
  std::string folder;
  std::int64_t width = 16;
  std::uint64_t seed = 20;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool has_value = i + 1 < arguments.size();
    if (arguments[i] == "--width" && has_value) {
      width = std::atoll(arguments[++i].c_str());
    } else if (arguments[i] == "--seed" && has_value) {
      seed = std::strtoull(arguments[++i].c_str(), nullptr, 10);
    } else if (folder.empty() && !arguments[i].starts_with("-")) {
      folder = arguments[i];
    } else {
      folder.clear();
      break;
    }
  }
  if (folder.empty() || width < 8 || width > 256 || width % 8 != 0) {
    std::cerr << "usage: make_driving_model FOLDER [--width W] [--seed N]\n"
                 "  W is a multiple of 8 from 8 to 256 (default 16)\n";
    return 2;
  }
  const bool done = write(folder + "/driving_vision.onnx", vision_model(width, seed)) &&
                    write(folder + "/driving_policy.onnx", policy_model(width, seed + 1));
  return done ? 0 : 8;
}

}  // namespace
}  // namespace sample

int main(int argc, char** argv) { return sample::run({argv + 1, argv + argc}); }
