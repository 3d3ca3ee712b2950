// Element types of ONNX and ours.
#include <fmt/format.h>

#include <array>

#include "onnx_frontend/import_graph.h"

namespace ingot {
namespace {

// By TensorProto.DataType.
constexpr std::array<std::string_view, 27> type_names = {
    "undefined",      "float32",  "uint8",        "int8",           "uint16",
    "int16",          "int32",    "int64",        "string",         "bool",
    "float16",        "float64",  "uint32",       "uint64",         "complex64",
    "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
    "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1",     "float8e8m0",
    "uint2",          "int2"};

constexpr std::array<std::optional<DType>, 17> dtypes = {
    std::nullopt, DType::F32, DType::U8,    DType::I8,    DType::U16, DType::I16,
    DType::I32,   DType::I64, std::nullopt, DType::Bool,  DType::F16, DType::F64,
    DType::U32,   DType::U64, std::nullopt, std::nullopt, DType::BF16};

}  // namespace

std::optional<DType> dtype_from_onnx(int data_type) {
  const auto index = static_cast<std::size_t>(data_type);
  return data_type >= 0 && index < dtypes.size() ? dtypes[index] : std::nullopt;
}

std::string onnx_type_name(int data_type) {
  const auto index = static_cast<std::size_t>(data_type);
  return data_type >= 0 && index < type_names.size() ? std::string(type_names[index])
                                                     : fmt::format("type {}", data_type);
}

Result<Tensor> to_tensor(const OnnxTensor& tensor) {
  const std::optional<DType> dtype = dtype_from_onnx(tensor.data_type);
  if (!dtype) {
    return fail(ExitCode::Unsupported, "unsupported-type",
                fmt::format("tensor '{}' has element type {}", tensor.name,
                            onnx_type_name(tensor.data_type)));
  }
  if (!tensor.unreadable.empty()) {
    return fail(ExitCode::Unsupported, "unsupported-type",
                fmt::format("tensor '{}' has {}", tensor.name, tensor.unreadable));
  }
  Tensor result;
  result.dtype = *dtype;
  result.shape = tensor.dims;
  result.owner = tensor.owner;
  result.bytes = tensor.bytes;
  return result;
}

}  // namespace ingot
