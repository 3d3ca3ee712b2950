// Writes small ONNX models: nodes by operator name, weights from a seed.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sample {

using Dims = std::vector<std::int64_t>;

class OnnxWriter {
 public:
  OnnxWriter(const std::string& name, std::uint64_t seed);

  std::string input(const std::string& name, int data_type, const Dims& dims);
  void output(const std::string& value, const Dims& dims);
  void metadata(const std::string& key, const std::string& value);

  // Constants become initializers. `weight` is uniform with a variance of gain^2 / fan_in, so that
  // a sum over fan_in products keeps the size of its inputs.
  std::string weight(const Dims& dims, std::int64_t fan_in, double gain = 1.0);
  std::string bias(std::int64_t count);
  std::string filled(const Dims& dims, float value);
  std::string integers(const std::vector<std::int64_t>& values);

  struct Attributes {
    std::vector<std::pair<std::string, std::int64_t>> ints;
    std::vector<std::pair<std::string, std::vector<std::int64_t>>> int_lists;
  };
  // Appends a node with one output and returns the output's name.
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const Attributes& attributes = {}, const std::string& output = {});
  // The same with several outputs.
  std::vector<std::string> node_of(const std::string& op, const std::vector<std::string>& inputs,
                                   const Attributes& attributes, int outputs);

  // The serialized model; equal for equal calls.
  [[nodiscard]] std::string bytes() const;

 private:
  onnx::TensorProto* add_initializer(int data_type, const Dims& dims);
  double uniform();  // -1..1

  onnx::ModelProto model_;
  std::uint64_t state_;
  int next_value_ = 0;
};

}  // namespace sample
