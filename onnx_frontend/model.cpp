#include "onnx_frontend/model.h"

namespace ingot {

std::string_view name(OnnxTypeKind kind) {
  switch (kind) {
    case OnnxTypeKind::Missing: return "missing type";
    case OnnxTypeKind::Tensor: return "tensor";
    case OnnxTypeKind::Sequence: return "sequence";
    case OnnxTypeKind::Map: return "map";
    case OnnxTypeKind::Optional: return "optional";
    case OnnxTypeKind::SparseTensor: return "sparse tensor";
  }
  return "?";
}

std::string_view name(OnnxAttributeType type) {
  switch (type) {
    case OnnxAttributeType::Undefined: return "undefined";
    case OnnxAttributeType::Float: return "float";
    case OnnxAttributeType::Int: return "int";
    case OnnxAttributeType::String: return "string";
    case OnnxAttributeType::Tensor: return "tensor";
    case OnnxAttributeType::Graph: return "graph";
    case OnnxAttributeType::Floats: return "floats";
    case OnnxAttributeType::Ints: return "ints";
    case OnnxAttributeType::Strings: return "strings";
    case OnnxAttributeType::Tensors: return "tensors";
    case OnnxAttributeType::Graphs: return "graphs";
    case OnnxAttributeType::SparseTensor: return "sparse tensor";
    case OnnxAttributeType::SparseTensors: return "sparse tensors";
    case OnnxAttributeType::TypeProto: return "type";
    case OnnxAttributeType::TypeProtos: return "types";
  }
  return "?";
}

}  // namespace ingot
