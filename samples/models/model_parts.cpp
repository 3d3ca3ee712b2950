#include "samples/models/model_parts.h"

#include <cstdlib>
#include <fstream>
#include <iostream>

namespace sample {
namespace {

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

}  // namespace

std::string output_slices(const std::vector<Slice>& slices) { return base64(pickle(slices)); }

std::int64_t total(const std::vector<Slice>& slices) {
  std::int64_t size = 0;
  for (const Slice& slice : slices) size += slice.size;
  return size;
}

std::string gelu(OnnxWriter& w, const std::string& x) {
  const std::string cubed = w.node("Mul", {x, w.node("Mul", {x, x})});
  const std::string inner = w.node("Add", {x, w.node("Mul", {cubed, w.filled({}, 0.044715F)})});
  const std::string tanh = w.node("Tanh", {w.node("Mul", {inner, w.filled({}, 0.7978845608F)})});
  const std::string half = w.node("Mul", {x, w.filled({}, 0.5F)});
  return w.node("Mul", {half, w.node("Add", {tanh, w.filled({}, 1.0F)})});
}

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
                 double gain) {
  return w.node("Gemm", {x, w.weight({out, in}, in, gain), w.bias(out)},
                {.ints = {{"transB", 1}}, .int_lists = {}});
}

std::string mixer_block(OnnxWriter& w, const std::string& x, std::int64_t channels) {
  const std::string mixed =
      conv(w, x, {.in = channels, .out = channels, .kernel = 3, .groups = channels});
  std::string y =
      conv(w, mixed, {.in = channels, .out = channels, .kernel = 7, .groups = channels});
  y = gelu(w, conv(w, y, {.in = channels, .out = 3 * channels, .kernel = 1, .gain = 1.4}));
  y = conv(w, y, {.in = 3 * channels, .out = channels, .kernel = 1, .gain = 1.4});
  return w.node("Add", {mixed, w.node("Mul", {y, w.filled({1, channels, 1, 1}, 0.3F)})});
}

std::string residual(OnnxWriter& w, const std::string& x, std::int64_t size) {
  const std::string y = gemm(w, w.node("Relu", {gemm(w, x, size, size, 1.4)}), size, size);
  return w.node("Relu", {w.node("Add", {x, y})});
}

std::string head(OnnxWriter& w, const std::string& feature, std::int64_t in, std::int64_t hidden,
                 std::int64_t out) {
  const std::string x = w.node("Relu", {gemm(w, feature, in, hidden, 1.4)});
  return gemm(w, residual(w, x, hidden), hidden, out);
}

std::string finish(OnnxWriter& w, const std::vector<std::string>& parts,
                   const std::vector<Slice>& slices) {
  w.node("Concat", parts, {.ints = {{"axis", 1}}, .int_lists = {}}, "outputs");
  w.output("outputs", {1, total(slices)});
  w.metadata("output_slices", output_slices(slices));
  return w.bytes();
}

bool read_options(int argc, char** argv, Options& options) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool has_value = i + 1 < arguments.size();
    if (arguments[i] == "--width" && has_value) {
      options.width = std::atoll(arguments[++i].c_str());
    } else if (arguments[i] == "--seed" && has_value) {
      options.seed = std::strtoull(arguments[++i].c_str(), nullptr, 10);
    } else if (options.folder.empty() && !arguments[i].starts_with("-")) {
      options.folder = arguments[i];
    } else {
      options.folder.clear();
      break;
    }
  }
  if (!options.folder.empty() && options.width >= 8 && options.width <= 256 &&
      options.width % 8 == 0) {
    return true;
  }
  std::cerr << "usage: " << argv[0] << " FOLDER [--width W] [--seed N]\n"
            << "  W is a multiple of 8 from 8 to 256\n";
  return false;
}

int write_models(const Options& options,
                 const std::vector<std::pair<std::string, std::string>>& models) {
  for (const auto& [name, bytes] : models) {
    const std::string path = options.folder + "/" + name;
    std::ofstream file(path, std::ios::binary);
    file << bytes;
    file.close();
    if (!file) {
      std::cerr << "cannot write " << path << "\n";
      return 8;
    }
  }
  return 0;
}

}  // namespace sample
