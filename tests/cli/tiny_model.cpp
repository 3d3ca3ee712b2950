#include "tests/cli/tiny_model.h"

#include <cstdint>
#include <string_view>

namespace ingot::cli {
namespace {

std::string varint(std::uint64_t value) {
  std::string bytes;
  while (value >= 128) {
    bytes += static_cast<char>((value & 127) | 128);
    value >>= 7;
  }
  return bytes + static_cast<char>(value);
}

std::string number_field(unsigned field, std::uint64_t value) {
  return varint(field << 3) + varint(value);
}

std::string bytes_field(unsigned field, std::string_view bytes) {
  return varint((field << 3) | 2) + varint(bytes.size()) + std::string(bytes);
}

std::string value_info(const TinyValue& value) {
  std::string shape;
  for (const int extent : value.shape) {
    shape += bytes_field(1, extent < 0 ? bytes_field(2, "batch")
                                       : number_field(1, static_cast<std::uint64_t>(extent)));
  }
  const std::string tensor =
      number_field(1, static_cast<std::uint64_t>(value.type)) + bytes_field(2, shape);
  return bytes_field(1, value.name) + bytes_field(2, bytes_field(1, tensor));
}

std::string node_message(const TinyNode& node) {
  std::string bytes;
  for (const std::string& input : node.inputs) bytes += bytes_field(1, input);
  for (const std::string& output : node.outputs) bytes += bytes_field(2, output);
  return bytes + bytes_field(3, node.name) + bytes_field(4, node.op);
}

std::string zero_tensor(const TinyValue& value) {
  std::string bytes;
  std::size_t count = 1;
  for (const int extent : value.shape) {
    bytes += number_field(1, static_cast<std::uint64_t>(extent));
    count *= static_cast<std::size_t>(extent);
  }
  return bytes + number_field(2, 1) + bytes_field(8, value.name) +
         bytes_field(9, std::string(4 * count, '\0'));
}

}  // namespace

std::string serialize(const TinyModel& model) {
  std::string graph;
  for (const TinyNode& node : model.nodes) graph += bytes_field(1, node_message(node));
  graph += bytes_field(2, "tiny");
  for (const TinyValue& value : model.zeros) graph += bytes_field(5, zero_tensor(value));
  for (const TinyValue& input : model.inputs) graph += bytes_field(11, value_info(input));
  for (const TinyValue& output : model.outputs) graph += bytes_field(12, value_info(output));
  const std::string opset = number_field(2, static_cast<std::uint64_t>(model.opset));
  return number_field(1, 8) + bytes_field(7, graph) + bytes_field(8, opset);
}

std::string relu_plus_model() {
  TinyModel model;
  model.inputs = {{"x", {2, 3}}};
  model.outputs = {{"y", {2, 3}}};
  model.nodes = {{"Relu", {"x"}, {"r"}, "relu"}, {"Add", {"r", "x"}, {"y"}, "add"}};
  return serialize(model);
}

std::string counter_model() {
  TinyModel model;
  model.inputs = {{"x", {4}}, {"s", {4}}};
  model.outputs = {{"y", {4}}, {"next_s", {4}}};
  model.nodes = {{"Add", {"x", "s"}, {"y"}, "add"}, {"Identity", {"y"}, {"next_s"}, "keep"}};
  return serialize(model);
}

}  // namespace ingot::cli
