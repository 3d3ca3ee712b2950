#include "samples/models/onnx_writer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <bit>
#include <cmath>

namespace sample {
namespace {

constexpr std::int64_t kOpset = 17;

std::int64_t element_count(const Dims& dims) {
  std::int64_t count = 1;
  for (const std::int64_t extent : dims) count *= extent;
  return count;
}

void append_float(std::string& bytes, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  for (unsigned shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<char>((bits >> shift) & 0xFFU));
  }
}

void declare(onnx::ValueInfoProto* info, const std::string& name, int data_type, const Dims& dims) {
  info->set_name(name);
  auto* type = info->mutable_type()->mutable_tensor_type();
  type->set_elem_type(data_type);
  for (const std::int64_t extent : dims) type->mutable_shape()->add_dim()->set_dim_value(extent);
}

}  // namespace

OnnxWriter::OnnxWriter(const std::string& name, std::uint64_t seed) : state_(seed) {
  model_.set_ir_version(8);
  model_.set_producer_name("ingot samples");
  auto* opset = model_.add_opset_import();
  opset->set_domain("");
  opset->set_version(kOpset);
  model_.mutable_graph()->set_name(name);
}

std::string OnnxWriter::input(const std::string& name, int data_type, const Dims& dims) {
  declare(model_.mutable_graph()->add_input(), name, data_type, dims);
  return name;
}

void OnnxWriter::output(const std::string& value, const Dims& dims) {
  declare(model_.mutable_graph()->add_output(), value, onnx::TensorProto::FLOAT, dims);
}

void OnnxWriter::metadata(const std::string& key, const std::string& value) {
  auto* entry = model_.add_metadata_props();
  entry->set_key(key);
  entry->set_value(value);
}

// SplitMix64.
double OnnxWriter::uniform() {
  state_ += 0x9E3779B97F4A7C15U;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  z ^= z >> 31U;
  return static_cast<double>(z >> 11U) * 0x1p-52 - 1.0;
}

onnx::TensorProto* OnnxWriter::add_initializer(int data_type, const Dims& dims) {
  auto* tensor = model_.mutable_graph()->add_initializer();
  tensor->set_name("c" + std::to_string(next_value_++));
  tensor->set_data_type(data_type);
  for (const std::int64_t extent : dims) tensor->add_dims(extent);
  return tensor;
}

std::string OnnxWriter::weight(const Dims& dims, std::int64_t fan_in, double gain) {
  auto* tensor = add_initializer(onnx::TensorProto::FLOAT, dims);
  const double limit = gain * std::sqrt(3.0 / static_cast<double>(fan_in));
  std::string& raw = *tensor->mutable_raw_data();
  for (std::int64_t i = 0; i < element_count(dims); ++i) {
    append_float(raw, static_cast<float>(limit * uniform()));
  }
  return tensor->name();
}

std::string OnnxWriter::bias(std::int64_t count) { return weight({count}, 1, 0.05); }

std::string OnnxWriter::filled(const Dims& dims, float value) {
  auto* tensor = add_initializer(onnx::TensorProto::FLOAT, dims);
  for (std::int64_t i = 0; i < element_count(dims); ++i) {
    append_float(*tensor->mutable_raw_data(), value);
  }
  return tensor->name();
}

std::string OnnxWriter::integers(const std::vector<std::int64_t>& values) {
  auto* tensor =
      add_initializer(onnx::TensorProto::INT64, {static_cast<std::int64_t>(values.size())});
  for (const std::int64_t value : values) tensor->add_int64_data(value);
  return tensor->name();
}

std::vector<std::string> OnnxWriter::node_of(const std::string& op,
                                             const std::vector<std::string>& inputs,
                                             const Attributes& attributes, int outputs) {
  auto* node = model_.mutable_graph()->add_node();
  node->set_op_type(op);
  node->set_name(op + "_" + std::to_string(model_.graph().node_size() - 1));
  for (const std::string& name : inputs) node->add_input(name);
  for (const auto& [name, value] : attributes.ints) {
    auto* attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(value);
  }
  for (const auto& [name, values] : attributes.int_lists) {
    auto* attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t value : values) attribute->add_ints(value);
  }
  std::vector<std::string> names;
  for (int i = 0; i < outputs; ++i) {
    names.push_back("v" + std::to_string(next_value_++));
    node->add_output(names.back());
  }
  return names;
}

std::string OnnxWriter::node(const std::string& op, const std::vector<std::string>& inputs,
                             const Attributes& attributes, const std::string& output) {
  std::string name = node_of(op, inputs, attributes, 1).front();
  if (output.empty()) return name;
  auto* nodes = model_.mutable_graph()->mutable_node();
  nodes->Mutable(nodes->size() - 1)->set_output(0, output);
  return output;
}

std::string OnnxWriter::bytes() const {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  model_.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

}  // namespace sample
