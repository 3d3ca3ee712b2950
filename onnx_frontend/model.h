// An ONNX model as plain structs: what the file says, nothing interpreted, no protobuf.
//
// Only read_model.cpp knows protobuf. Tensor bytes are ranges of mapped files (the model or its
// side files) or small buffers; `owner` keeps them alive, so a Model may be copied and outlive
// everything else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ingot {

// A file that the model consists of: the .onnx file first, then external data sorted by name. The
// caller hashes `bytes` (docs/artifact_format.md, MODEL).
struct SourceFile {
  std::string name;            // as the model refers to it; the file name for the .onnx itself
  std::filesystem::path path;  // where it was opened
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

// TensorProto. Elements are row-major little-endian bytes, wherever the file keeps them.
struct OnnxTensor {
  std::string name;
  int data_type = 0;  // TensorProto.DataType as in the file, also codes that ingot cannot use
  std::vector<std::int64_t> dims;
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;  // empty where `unreadable` is set
  std::string unreadable;            // why the elements are not there, such as "string elements"
};

// One dimension of a declared type: a number, a name, or nothing.
struct OnnxDimension {
  std::optional<std::int64_t> value;
  std::string name;
};

enum class OnnxTypeKind { Missing, Tensor, Sequence, Map, Optional, SparseTensor };
[[nodiscard]] std::string_view name(OnnxTypeKind kind);

// ValueInfoProto.
struct OnnxValueInfo {
  std::string name;
  OnnxTypeKind kind = OnnxTypeKind::Missing;
  int elem_type = 0;                                // TensorProto.DataType, of tensors
  std::optional<std::vector<OnnxDimension>> shape;  // nullopt: not even the rank is known
};

struct OnnxGraph;

enum class OnnxAttributeType {
  Undefined = 0,
  Float = 1,
  Int = 2,
  String = 3,
  Tensor = 4,
  Graph = 5,
  Floats = 6,
  Ints = 7,
  Strings = 8,
  Tensors = 9,
  Graphs = 10,
  SparseTensor = 11,
  SparseTensors = 12,
  TypeProto = 13,
  TypeProtos = 14,
};
[[nodiscard]] std::string_view name(OnnxAttributeType type);

// AttributeProto: the member that belongs to `type` is set.
struct OnnxAttribute {
  std::string name;
  OnnxAttributeType type = OnnxAttributeType::Undefined;
  std::string refers_to;  // in a function body: the attribute of the calling node
  float f = 0;
  std::int64_t i = 0;
  std::string s;
  std::vector<float> floats;
  std::vector<std::int64_t> ints;
  std::vector<std::string> strings;
  std::vector<OnnxTensor> tensors;                       // one for Tensor
  std::vector<std::shared_ptr<const OnnxGraph>> graphs;  // one for Graph
};

// NodeProto. An input or output that is left out has an empty name.
struct OnnxNode {
  std::string name;
  std::string domain;  // "" for ai.onnx
  std::string op_type;
  std::string overload;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<OnnxAttribute> attributes;
  // The node as diagnostics call it: its name, or its first output, or its position.
  std::string label;
};

struct OnnxGraph {
  std::string name;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxValueInfo> inputs;
  std::vector<OnnxValueInfo> outputs;
  std::vector<OnnxValueInfo> values;  // value_info
  std::vector<OnnxTensor> initializers;
  std::vector<std::string> sparse_initializers;  // names only: not supported
};

// A function that the model defines itself. The default domain's own functions are not here.
struct OnnxFunction {
  std::string domain;
  std::string name;
  std::string overload;
  std::map<std::string, std::int64_t> opsets;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> attributes;            // without a default
  std::vector<OnnxAttribute> attribute_defaults;  // with one
  std::vector<OnnxNode> nodes;
};

struct Model {
  std::string file;  // as the user named it, for diagnostics
  std::int64_t ir_version = 0;
  std::int64_t model_version = 0;
  std::string producer_name;
  std::string producer_version;
  std::string domain;
  std::map<std::string, std::int64_t> opsets;   // domain ("" for ai.onnx) -> version
  std::map<std::string, std::string> metadata;  // metadata_props
  bool has_training_info = false;
  OnnxGraph graph;
  std::vector<OnnxFunction> functions;
  std::vector<SourceFile> sources;

  // What reading met and cannot honour: fields of newer ONNX versions that change the meaning,
  // sparse tensors in attributes and the like. import_graph reports them with everything else.
  std::vector<Diagnostic> unsupported;
  std::vector<Diagnostic> warnings;
};

}  // namespace ingot
