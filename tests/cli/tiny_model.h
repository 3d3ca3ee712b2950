// Serialized ONNX models of a node or two, written field by field.
#pragma once

#include <string>
#include <vector>

namespace ingot::cli {

struct TinyNode {
  std::string op;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::string name;
};

struct TinyValue {
  std::string name;
  std::vector<int> shape;  // -1: open
  int type = 1;            // 1 float32, 2 uint8
};

struct TinyModel {
  std::vector<TinyValue> inputs;
  std::vector<TinyValue> outputs;
  std::vector<TinyNode> nodes;
  std::vector<TinyValue> zeros;  // initializers
  int opset = 13;
};

std::string serialize(const TinyModel& model);

// y = max(x, 0) + x, both float32 [2, 3].
std::string relu_plus_model();
// y = x + s, next_s = y: a state that adds up.
std::string counter_model();

}  // namespace ingot::cli
