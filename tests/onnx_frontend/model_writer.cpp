#include "tests/onnx_frontend/model_writer.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "onnx_frontend/read_model.h"

namespace ingot {

namespace fs = std::filesystem;

TestFolder::TestFolder() {
  std::string pattern = (fs::temp_directory_path() / "ingot-test-XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

namespace {

void set_dims(onnx::TypeProto& type, int element, const std::vector<TestDim>& dims) {
  type.mutable_tensor_type()->set_elem_type(element);
  onnx::TensorShapeProto* shape = type.mutable_tensor_type()->mutable_shape();
  for (const TestDim& dim : dims) {
    onnx::TensorShapeProto::Dimension* added = shape->add_dim();
    if (const auto* value = std::get_if<std::int64_t>(&dim)) {
      added->set_dim_value(*value);
    } else {
      added->set_dim_param(std::get<std::string>(dim));
    }
  }
}

onnx::AttributeProto& add_attribute(onnx::NodeProto& node, const std::string& name,
                                    onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

}  // namespace

ModelWriter::ModelWriter(std::int64_t opset, std::int64_t ir_version) {
  proto.set_ir_version(ir_version);
  proto.set_producer_name("test");
  proto.add_opset_import()->set_version(opset);
  proto.mutable_graph()->set_name("g");
}

ModelWriter& ModelWriter::input(const std::string& name, const std::vector<TestDim>& dims,
                                int type) {
  onnx::ValueInfoProto* value = proto.mutable_graph()->add_input();
  value->set_name(name);
  set_dims(*value->mutable_type(), type, dims);
  return *this;
}

ModelWriter& ModelWriter::output(const std::string& name, int type) {
  onnx::ValueInfoProto* value = proto.mutable_graph()->add_output();
  value->set_name(name);
  value->mutable_type()->mutable_tensor_type()->set_elem_type(type);
  return *this;
}

ModelWriter& ModelWriter::floats(const std::string& name, const std::vector<std::int64_t>& dims,
                                 const std::vector<float>& values) {
  onnx::TensorProto* tensor = proto.mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  for (const std::int64_t dim : dims) tensor->add_dims(dim);
  tensor->set_raw_data(values.data(), values.size() * sizeof(float));
  return *this;
}

ModelWriter& ModelWriter::ints(const std::string& name, const std::vector<std::int64_t>& dims,
                               const std::vector<std::int64_t>& values) {
  onnx::TensorProto* tensor = proto.mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::INT64);
  for (const std::int64_t dim : dims) tensor->add_dims(dim);
  for (const std::int64_t value : values) tensor->add_int64_data(value);
  return *this;
}

onnx::NodeProto& ModelWriter::node(const std::string& op, const std::vector<std::string>& inputs,
                                   const std::vector<std::string>& outputs,
                                   const std::string& name) {
  onnx::NodeProto& node = *proto.mutable_graph()->add_node();
  node.set_op_type(op);
  if (!name.empty()) node.set_name(name);
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  return node;
}

Result<Model> ModelWriter::read() const {
  const TestFolder folder;
  write_file(folder / "model.onnx", bytes());
  return read_model(folder / "model.onnx");
}

Result<ImportedModel> ModelWriter::import(const ImportOptions& options) const {
  INGOT_ASSIGN(const Model model, read());
  return import_graph(model, options);
}

void set_int(onnx::NodeProto& node, const std::string& name, std::int64_t value) {
  add_attribute(node, name, onnx::AttributeProto::INT).set_i(value);
}
void set_float(onnx::NodeProto& node, const std::string& name, float value) {
  add_attribute(node, name, onnx::AttributeProto::FLOAT).set_f(value);
}
void set_text(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  add_attribute(node, name, onnx::AttributeProto::STRING).set_s(value);
}
void set_ints(onnx::NodeProto& node, const std::string& name,
              const std::vector<std::int64_t>& values) {
  onnx::AttributeProto& attribute = add_attribute(node, name, onnx::AttributeProto::INTS);
  for (const std::int64_t value : values) attribute.add_ints(value);
}

fs::path shared_folder() {
  if (const char* named = std::getenv("INGOT_SHARED")) return named;
  return fs::path(INGOT_SOURCE_DIR).parent_path() / "shared";
}

bool in_continuous_integration() {
  const char* ci = std::getenv("CI");
  return ci != nullptr && std::string(ci) == "true";
}

}  // namespace ingot
