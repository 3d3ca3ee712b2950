// What the sample models are built of, and the command line of their generators.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "samples/models/onnx_writer.h"

namespace sample {

struct Slice {
  std::string name;
  std::int64_t size;
};

// The metadata `output_slices`: base64 text of what Python's pickle (protocol 3) writes for
// {name: slice(start, stop, None), ...}.
std::string output_slices(const std::vector<Slice>& slices);
std::int64_t total(const std::vector<Slice>& slices);

// GELU by its tanh form, written out as exporters do.
std::string gelu(OnnxWriter& w, const std::string& x);

struct Conv {
  std::int64_t in, out, kernel;
  std::int64_t stride = 1;
  std::int64_t groups = 1;
  double gain = 1.0;
};

std::string conv(OnnxWriter& w, const std::string& x, const Conv& c);
std::string gemm(OnnxWriter& w, const std::string& x, std::int64_t in, std::int64_t out,
                 double gain = 1.0);

// Token mixing by a depthwise convolution, then two 1x1 convolutions with GELU between, added back
// at a small scale.
std::string mixer_block(OnnxWriter& w, const std::string& x, std::int64_t channels);

// x + two layers of it.
std::string residual(OnnxWriter& w, const std::string& x, std::int64_t size);
std::string head(OnnxWriter& w, const std::string& feature, std::int64_t in, std::int64_t hidden,
                 std::int64_t out);

// One output `outputs` of the parts in a row, with the metadata that names them; the model's bytes.
std::string finish(OnnxWriter& w, const std::vector<std::string>& parts,
                   const std::vector<Slice>& slices);

struct Options {
  std::string folder;
  std::int64_t width;
  std::uint64_t seed;
};
// FOLDER [--width W] [--seed N]; W is a multiple of 8 from 8 to 256. False after a usage message.
bool read_options(int argc, char** argv, Options& options);

// File name and bytes of each model, into the folder. Returns the exit code.
int write_models(const Options& options,
                 const std::vector<std::pair<std::string, std::string>>& models);

}  // namespace sample
