// The only file that knows protobuf: scans the file (scan_model.h), parses what is left, and copies
// it into plain structs.
//
// libonnx's message classes are older than the newest ONNX. Fields that they lack arrive as unknown
// fields: those that change no result are listed in `harmless`, a few are read by hand, and any
// other makes the model unsupported by name.
#include "onnx_frontend/read_model.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/common.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <mutex>

#include "onnx_frontend/external_data.h"
#include "onnx_frontend/mapped_file.h"
#include "onnx_frontend/scan_model.h"
#include "onnx_frontend/wire_format.h"

namespace ingot {
namespace {

using google::protobuf::UnknownFieldSet;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Protobuf's log handler is one for the process: silent while we parse, then as it was.
class SilentProtobuf {
 public:
  SilentProtobuf() : lock_(mutex()), before_(google::protobuf::SetLogHandler(nullptr)) {}
  ~SilentProtobuf() { google::protobuf::SetLogHandler(before_); }
  SilentProtobuf(const SilentProtobuf&) = delete;
  SilentProtobuf& operator=(const SilentProtobuf&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  std::lock_guard<std::mutex> lock_;
  google::protobuf::LogHandler* before_;
};

template <typename Message>
bool parse(std::span<const std::byte> bytes, Message& message) {
  if (bytes.size() > std::size_t{std::numeric_limits<int>::max()}) return false;
  const SilentProtobuf silent;
  try {
    google::protobuf::io::CodedInputStream stream(
        reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
    stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
    stream.SetRecursionLimit(100);
    return message.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
  } catch (const std::exception&) {  // FatalException of a failed check, or no memory
    return false;
  }
}

bool is_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead == 0) return false;
    const int length = lead < 0x80   ? 1
                       : lead < 0xC2 ? 0
                       : lead < 0xE0 ? 2
                       : lead < 0xF0 ? 3
                       : lead < 0xF5 ? 4
                                     : 0;
    if (length == 0 || text.size() - i < static_cast<std::size_t>(length)) return false;
    for (int k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]);
      const unsigned low = k > 1 ? 0x80 : lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
      const unsigned high = k > 1 ? 0xBF : lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
      if (next < low || next > high) return false;
    }
    i += static_cast<std::size_t>(length);
  }
  return true;
}

// Bytes of one element; 0 for types whose elements are not whole bytes or not numbers.
std::uint64_t element_size(int data_type) {
  switch (data_type) {
    case onnx::TensorProto::UINT8:
    case onnx::TensorProto::INT8:
    case onnx::TensorProto::BOOL: return 1;
    case onnx::TensorProto::UINT16:
    case onnx::TensorProto::INT16:
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16: return 2;
    case onnx::TensorProto::FLOAT:
    case onnx::TensorProto::INT32:
    case onnx::TensorProto::UINT32: return 4;
    case onnx::TensorProto::DOUBLE:
    case onnx::TensorProto::INT64:
    case onnx::TensorProto::UINT64: return 8;
    default: return 0;
  }
}

// Largest value of an element kept in int32_data, for the unsigned reading of its low bits.
bool fits_in_int32_data(int data_type, std::int32_t value) {
  switch (data_type) {
    case onnx::TensorProto::BOOL: return value == 0 || value == 1;
    case onnx::TensorProto::UINT8: return value >= 0 && value <= 0xFF;
    case onnx::TensorProto::INT8: return value >= -0x80 && value <= 0x7F;
    case onnx::TensorProto::INT16: return value >= -0x8000 && value <= 0x7FFF;
    case onnx::TensorProto::UINT16:
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16: return value >= 0 && value <= 0xFFFF;
    default: return true;
  }
}

struct OwnedBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

OwnedBytes own(std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return {owner, *owner};
}

template <typename Field>
OwnedBytes own_elements(const Field& values, std::size_t size) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(values.size()) * size);
  std::byte* to = bytes.data();
  for (const auto value : values) {
    std::memcpy(to, &value, size);  // little-endian hosts only, as all of ingot
    to += size;
  }
  return own(std::move(bytes));
}

// Which typed field holds elements of this type.
enum class TypedField { None, Float, Int32, Int64, Double, Uint64 };

TypedField typed_field(int data_type) {
  switch (data_type) {
    case onnx::TensorProto::FLOAT: return TypedField::Float;
    case onnx::TensorProto::DOUBLE: return TypedField::Double;
    case onnx::TensorProto::INT64: return TypedField::Int64;
    case onnx::TensorProto::UINT32:
    case onnx::TensorProto::UINT64: return TypedField::Uint64;
    case onnx::TensorProto::BOOL:
    case onnx::TensorProto::UINT8:
    case onnx::TensorProto::INT8:
    case onnx::TensorProto::UINT16:
    case onnx::TensorProto::INT16:
    case onnx::TensorProto::INT32:
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16: return TypedField::Int32;
    default: return TypedField::None;
  }
}

// Converts messages into structs. The first violation is kept in `failure`; conversion goes on with
// harmless values so that the code stays a straight copy.
class Converter {
 public:
  Converter(Model& model, ScannedModel scanned, MappedFile file, ExternalFiles* external)
      : model_(model), scanned_(std::move(scanned)), file_(std::move(file)), external_(external) {}

  void convert(const onnx::ModelProto& proto);
  OnnxTensor convert(const onnx::TensorProto& proto, const std::string& place);
  std::optional<Failure> failure;

 private:
  void malformed(const std::string& place, const std::string& message) {
    if (failure) return;
    failure = fail(ExitCode::Malformed, "invalid-model", place + ": " + message).error();
  }
  void unsupported(std::string code, const std::string& place, const std::string& message) {
    Diagnostic diagnostic;
    diagnostic.code = std::move(code);
    diagnostic.message = place + ": " + message;
    model_.unsupported.push_back(std::move(diagnostic));
  }
  void warn(std::string code, std::string message) {
    Diagnostic diagnostic;
    diagnostic.severity = Severity::Warning;
    diagnostic.code = std::move(code);
    diagnostic.message = std::move(message);
    model_.warnings.push_back(std::move(diagnostic));
  }
  std::string text(const std::string& value, const std::string& place) {
    if (!is_utf8(value)) {
      malformed(place, "a name is not valid UTF-8");
      return {};
    }
    return value;
  }
  std::string domain(const std::string& value, const std::string& place) {
    std::string result = text(value, place);
    return result == "ai.onnx" ? std::string() : result;
  }
  template <typename Field>
  std::vector<std::string> texts(const Field& values, const std::string& place) {
    std::vector<std::string> result;
    for (const std::string& value : values) result.push_back(text(value, place));
    return result;
  }

  // Fields that libonnx does not know, less those that change no result.
  std::vector<WireField> unknown(const UnknownFieldSet& fields, const std::string& place,
                                 std::initializer_list<std::uint32_t> harmless);
  void refuse_unknown(const UnknownFieldSet& fields, const std::string& place,
                      std::initializer_list<std::uint32_t> harmless);

  std::map<std::string, std::int64_t> opsets(
      const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& protos,
      const std::string& place);
  OnnxValueInfo convert(const onnx::ValueInfoProto& proto, const std::string& place);
  std::vector<OnnxDimension> convert(const onnx::TensorShapeProto& proto, const std::string& place);
  OnnxAttribute convert(const onnx::AttributeProto& proto, const std::string& place);
  OnnxAttributeType type_of(const onnx::AttributeProto& proto, const std::string& place);
  void convert_nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& protos,
                     std::vector<OnnxNode>& nodes);
  OnnxNode convert(const onnx::NodeProto& proto, int position);
  OnnxGraph convert(const onnx::GraphProto& proto);
  OnnxFunction convert(const onnx::FunctionProto& proto);
  void read_elements(const onnx::TensorProto& proto, std::optional<OwnedBytes> range,
                     const std::string& place, OnnxTensor& tensor);
  OwnedBytes typed_elements(const onnx::TensorProto& proto, const std::string& place);
  std::optional<ExternalRange> external_range(const onnx::TensorProto& proto,
                                              const std::string& place);
  std::optional<std::uint64_t> byte_count(const OnnxTensor& tensor, std::uint64_t element,
                                          const std::string& place);

  Model& model_;
  ScannedModel scanned_;
  MappedFile file_;
  ExternalFiles* external_;
};

std::vector<WireField> Converter::unknown(const UnknownFieldSet& fields, const std::string& place,
                                          std::initializer_list<std::uint32_t> harmless) {
  std::vector<WireField> result;
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    WireField copy;
    copy.number = static_cast<std::uint32_t>(field.number());
    if (std::ranges::find(harmless, copy.number) != harmless.end()) continue;
    switch (field.type()) {
      case google::protobuf::UnknownField::TYPE_VARINT: copy.number_value = field.varint(); break;
      case google::protobuf::UnknownField::TYPE_FIXED32:
        copy.type = WireType::Fixed32;
        copy.number_value = field.fixed32();
        break;
      case google::protobuf::UnknownField::TYPE_FIXED64:
        copy.type = WireType::Fixed64;
        copy.number_value = field.fixed64();
        break;
      case google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED:
        copy.type = WireType::Bytes;
        copy.content = bytes_of(field.length_delimited());
        break;
      case google::protobuf::UnknownField::TYPE_GROUP:
        malformed(place, fmt::format("field {} is a group", copy.number));
        continue;
    }
    result.push_back(copy);
  }
  return result;
}

void Converter::refuse_unknown(const UnknownFieldSet& fields, const std::string& place,
                               std::initializer_list<std::uint32_t> harmless) {
  for (const WireField& field : unknown(fields, place, harmless)) {
    unsupported("unknown-field", place,
                fmt::format("field {} is not known to this version of ingot", field.number));
  }
}

std::map<std::string, std::int64_t> Converter::opsets(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& protos,
    const std::string& place) {
  std::map<std::string, std::int64_t> result;
  for (const onnx::OperatorSetIdProto& proto : protos) {
    refuse_unknown(proto.unknown_fields(), place, {});
    const std::string name = domain(proto.domain(), place);
    if (proto.version() < 1 || proto.version() > 1'000'000) {
      malformed(place, fmt::format("opset version {} of domain '{}'", proto.version(), name));
    }
    const auto [entry, added] = result.emplace(name, proto.version());
    if (!added && entry->second != proto.version()) {
      malformed(place, fmt::format("domain '{}' has two opset versions", name));
    }
  }
  return result;
}

std::optional<std::uint64_t> Converter::byte_count(const OnnxTensor& tensor, std::uint64_t element,
                                                   const std::string& place) {
  // A dimension of 0 makes the tensor empty, but the others must be sizes all the same.
  std::uint64_t count = element;
  bool empty = false;
  for (const std::int64_t dim : tensor.dims) {
    if (dim < 0) {
      malformed(place, fmt::format("dimension {} is negative", dim));
      return std::nullopt;
    }
    if (dim == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(dim), &count) ||
               count > std::uint64_t{1} << 48) {
      malformed(place, "the shape has too many elements");
      return std::nullopt;
    }
  }
  return empty ? 0 : count;
}

std::optional<ExternalRange> Converter::external_range(const onnx::TensorProto& proto,
                                                       const std::string& place) {
  ExternalRange range;
  for (const onnx::StringStringEntryProto& entry : proto.external_data()) {
    const std::string& value = entry.value();
    if (entry.key() == "location") {
      range.location = value;
    } else if (entry.key() == "offset" || entry.key() == "length") {
      std::uint64_t number = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (error != std::errc() || end != value.data() + value.size()) {
        malformed(place, fmt::format("external data {} is not a number", entry.key()));
        return std::nullopt;
      }
      if (entry.key() == "offset") {
        range.offset = number;
      } else {
        range.length = number;
      }
    } else if (entry.key() == "checksum") {
      warn("checksum-not-compared", place + ": the checksum of external data is not compared");
    } else {
      unsupported("unknown-field", place,
                  fmt::format("external data entry '{}' is not known", text(entry.key(), place)));
      return std::nullopt;
    }
  }
  return range;
}

OwnedBytes Converter::typed_elements(const onnx::TensorProto& proto, const std::string& place) {
  const std::size_t size = static_cast<std::size_t>(element_size(proto.data_type()));
  switch (typed_field(proto.data_type())) {
    case TypedField::None: return {};
    case TypedField::Float: return own_elements(proto.float_data(), size);
    case TypedField::Double: return own_elements(proto.double_data(), size);
    case TypedField::Int64: return own_elements(proto.int64_data(), size);
    case TypedField::Int32:
      for (const std::int32_t value : proto.int32_data()) {
        if (!fits_in_int32_data(proto.data_type(), value)) {
          malformed(place, fmt::format("element {} is outside the type", value));
          return {};
        }
      }
      return own_elements(proto.int32_data(), size);
    case TypedField::Uint64:
      for (const std::uint64_t value : proto.uint64_data()) {
        if (size == 4 && value > 0xFFFFFFFF) {
          malformed(place, fmt::format("element {} is outside the type", value));
          return {};
        }
      }
      return own_elements(proto.uint64_data(), size);
  }
  return {};
}

void Converter::read_elements(const onnx::TensorProto& proto, std::optional<OwnedBytes> range,
                              const std::string& place, OnnxTensor& tensor) {
  const std::optional<std::uint64_t> size =
      byte_count(tensor, element_size(proto.data_type()), place);
  if (!size) return;
  const bool external = proto.data_location() == onnx::TensorProto::EXTERNAL;
  const bool raw = proto.has_raw_data() || range;
  const bool typed = proto.float_data_size() + proto.int32_data_size() + proto.int64_data_size() +
                         proto.double_data_size() + proto.uint64_data_size() +
                         proto.string_data_size() >
                     0;
  if (int{external} + int{raw && (range || !proto.raw_data().empty())} + int{typed} > 1) {
    return malformed(place, "the elements are given twice");
  }
  OwnedBytes elements;
  if (external) {
    const std::optional<ExternalRange> where = external_range(proto, place);
    if (!where) {
      tensor.unreadable = "external data";
      return;
    }
    if (external_ == nullptr) return malformed(place, "external data of a lone tensor");
    Result<MappedFile> read = external_->read(*where, *size);
    if (!read) {
      if (!failure) {
        failure = std::move(read).error();
        Diagnostic& first = failure->diagnostics.front();
        first.message = place + ": " + first.message;
      }
      return;
    }
    elements = {read->owner, read->bytes};
  } else if (range) {
    elements = *range;
  } else if (raw) {
    std::vector<std::byte> copy(proto.raw_data().size());
    if (!copy.empty()) std::memcpy(copy.data(), proto.raw_data().data(), copy.size());
    elements = own(std::move(copy));
  } else {
    elements = typed_elements(proto, place);
  }
  if (elements.bytes.size() != *size) {
    return malformed(place, fmt::format("{} bytes of elements, type and shape need {}",
                                        elements.bytes.size(), *size));
  }
  if (proto.data_type() == onnx::TensorProto::BOOL &&
      std::ranges::any_of(elements.bytes, [](std::byte b) { return b > std::byte{1}; })) {
    std::vector<std::byte> normal(elements.bytes.begin(), elements.bytes.end());
    for (std::byte& b : normal) b = b == std::byte{0} ? b : std::byte{1};
    elements = own(std::move(normal));
  }
  tensor.owner = elements.owner;
  tensor.bytes = elements.bytes;
}

OnnxTensor Converter::convert(const onnx::TensorProto& proto, const std::string& place) {
  OnnxTensor tensor;
  tensor.name = text(proto.name(), place);
  const std::string named = tensor.name.empty() ? place : fmt::format("tensor '{}'", tensor.name);
  tensor.data_type = proto.data_type();
  tensor.dims.assign(proto.dims().begin(), proto.dims().end());
  std::optional<OwnedBytes> range;
  for (const WireField& field : unknown(proto.unknown_fields(), named, {16})) {
    if (field.number != range_marker_field) {
      unsupported("unknown-field", named,
                  fmt::format("field {} is not known to this version of ingot", field.number));
    } else if (range || field.number_value >= scanned_.ranges.size()) {
      malformed(named, "the elements are given twice");
    } else {
      range = {file_.owner, scanned_.ranges[static_cast<std::size_t>(field.number_value)]};
    }
  }
  if (proto.data_type() == onnx::TensorProto::UNDEFINED) {
    malformed(named, "the element type is undefined");
  } else if (proto.has_segment()) {
    tensor.unreadable = "elements in segments";
  } else if (element_size(proto.data_type()) == 0) {
    tensor.unreadable = "an unsupported element type";
    (void)byte_count(tensor, 1, named);
  } else {
    read_elements(proto, range, named, tensor);
  }
  return tensor;
}

std::vector<OnnxDimension> Converter::convert(const onnx::TensorShapeProto& proto,
                                              const std::string& place) {
  refuse_unknown(proto.unknown_fields(), place, {});
  std::vector<OnnxDimension> dims;
  for (const onnx::TensorShapeProto::Dimension& dim : proto.dim()) {
    refuse_unknown(dim.unknown_fields(), place, {});
    OnnxDimension result;
    // Some exporters write unknown dimensions as -1, others as an empty name.
    if (dim.has_dim_value() && dim.dim_value() < -1) {
      malformed(place, fmt::format("dimension {} is negative", dim.dim_value()));
    } else if (dim.has_dim_value() && dim.dim_value() >= 0) {
      result.value = dim.dim_value();
    } else if (dim.has_dim_param()) {
      result.name = text(dim.dim_param(), place);
    }
    dims.push_back(std::move(result));
  }
  return dims;
}

OnnxValueInfo Converter::convert(const onnx::ValueInfoProto& proto, const std::string& place) {
  OnnxValueInfo info;
  info.name = text(proto.name(), place);
  const std::string named = fmt::format("{} '{}'", place, info.name);
  refuse_unknown(proto.unknown_fields(), named, {4});
  if (!proto.has_type()) return info;
  const onnx::TypeProto& type = proto.type();
  refuse_unknown(type.unknown_fields(), named, {});
  switch (type.value_case()) {
    case onnx::TypeProto::VALUE_NOT_SET: break;
    case onnx::TypeProto::kTensorType:
      refuse_unknown(type.tensor_type().unknown_fields(), named, {});
      info.kind = OnnxTypeKind::Tensor;
      info.elem_type = type.tensor_type().elem_type();
      if (type.tensor_type().has_shape()) info.shape = convert(type.tensor_type().shape(), named);
      break;
    case onnx::TypeProto::kSequenceType: info.kind = OnnxTypeKind::Sequence; break;
    case onnx::TypeProto::kMapType: info.kind = OnnxTypeKind::Map; break;
    case onnx::TypeProto::kOptionalType: info.kind = OnnxTypeKind::Optional; break;
    case onnx::TypeProto::kSparseTensorType: info.kind = OnnxTypeKind::SparseTensor; break;
    default: break;
  }
  return info;
}

// Files of IR version 1 have no type field: then the filled member says it.
OnnxAttributeType Converter::type_of(const onnx::AttributeProto& proto, const std::string& place) {
  struct Member {
    OnnxAttributeType type;
    bool set;
  };
  const Member members[] = {
      {OnnxAttributeType::Float, proto.has_f()},
      {OnnxAttributeType::Int, proto.has_i()},
      {OnnxAttributeType::String, proto.has_s()},
      {OnnxAttributeType::Tensor, proto.has_t()},
      {OnnxAttributeType::Graph, proto.has_g()},
      {OnnxAttributeType::Floats, proto.floats_size() > 0},
      {OnnxAttributeType::Ints, proto.ints_size() > 0},
      {OnnxAttributeType::Strings, proto.strings_size() > 0},
      {OnnxAttributeType::Tensors, proto.tensors_size() > 0},
      {OnnxAttributeType::Graphs, proto.graphs_size() > 0},
      {OnnxAttributeType::SparseTensor, proto.has_sparse_tensor()},
      {OnnxAttributeType::SparseTensors, proto.sparse_tensors_size() > 0},
      {OnnxAttributeType::TypeProto, proto.has_tp()},
      {OnnxAttributeType::TypeProtos, proto.type_protos_size() > 0},
  };
  auto type = static_cast<OnnxAttributeType>(proto.type());
  for (const Member& member : members) {
    if (!member.set || member.type == type) continue;
    if (type != OnnxAttributeType::Undefined) {
      malformed(place, fmt::format("is of type {} but holds a value of type {}", ingot::name(type),
                                   ingot::name(member.type)));
      break;
    }
    type = member.type;
  }
  return type;
}

OnnxAttribute Converter::convert(const onnx::AttributeProto& proto, const std::string& node) {
  OnnxAttribute attribute;
  attribute.name = text(proto.name(), node);
  const std::string place = fmt::format("{}: attribute '{}'", node, attribute.name);
  refuse_unknown(proto.unknown_fields(), place, {});
  attribute.type = type_of(proto, place);
  attribute.refers_to = text(proto.ref_attr_name(), place);
  attribute.f = proto.f();
  attribute.i = proto.i();
  attribute.s = proto.s();
  attribute.floats.assign(proto.floats().begin(), proto.floats().end());
  attribute.ints.assign(proto.ints().begin(), proto.ints().end());
  attribute.strings.assign(proto.strings().begin(), proto.strings().end());
  if (proto.has_t()) attribute.tensors.push_back(convert(proto.t(), place));
  for (const onnx::TensorProto& t : proto.tensors()) attribute.tensors.push_back(convert(t, place));
  if (proto.has_g()) {
    attribute.graphs.push_back(std::make_shared<const OnnxGraph>(convert(proto.g())));
  }
  for (const onnx::GraphProto& g : proto.graphs()) {
    attribute.graphs.push_back(std::make_shared<const OnnxGraph>(convert(g)));
  }
  return attribute;
}

OnnxNode Converter::convert(const onnx::NodeProto& proto, int position) {
  OnnxNode node;
  std::string place = fmt::format("node {}", position);
  node.name = text(proto.name(), place);
  node.op_type = text(proto.op_type(), place);
  node.domain = domain(proto.domain(), place);
  node.inputs = texts(proto.input(), place);
  node.outputs = texts(proto.output(), place);
  node.label = node.name;
  if (node.label.empty()) {
    const auto named = std::ranges::find_if(node.outputs, [](const auto& o) { return !o.empty(); });
    node.label = named != node.outputs.end() ? *named : fmt::format("#{}", position);
  }
  place = fmt::format("node '{}' ({})", node.label, node.op_type);
  for (const WireField& field : unknown(proto.unknown_fields(), place, {9, 10})) {
    if (field.number == 8 && field.type == WireType::Bytes) {
      node.overload.assign(reinterpret_cast<const char*>(field.content.data()),
                           field.content.size());
      node.overload = text(node.overload, place);
    } else {
      unsupported("unknown-field", place,
                  fmt::format("field {} is not known to this version of ingot", field.number));
    }
  }
  if (node.op_type.empty()) malformed(place, "no operator is named");
  for (const onnx::AttributeProto& attribute : proto.attribute()) {
    node.attributes.push_back(convert(attribute, place));
  }
  return node;
}

void Converter::convert_nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& protos,
                              std::vector<OnnxNode>& nodes) {
  for (int i = 0; i < protos.size(); ++i) nodes.push_back(convert(protos.Get(i), i));
}

OnnxGraph Converter::convert(const onnx::GraphProto& proto) {
  OnnxGraph graph;
  graph.name = text(proto.name(), "graph");
  refuse_unknown(proto.unknown_fields(), fmt::format("graph '{}'", graph.name), {16});
  convert_nodes(proto.node(), graph.nodes);
  for (const auto& value : proto.input()) graph.inputs.push_back(convert(value, "input"));
  for (const auto& value : proto.output()) graph.outputs.push_back(convert(value, "output"));
  for (const auto& value : proto.value_info()) graph.values.push_back(convert(value, "value"));
  for (const onnx::TensorProto& tensor : proto.initializer()) {
    graph.initializers.push_back(convert(tensor, "initializer"));
  }
  for (const onnx::SparseTensorProto& sparse : proto.sparse_initializer()) {
    graph.sparse_initializers.push_back(text(sparse.values().name(), "sparse initializer"));
  }
  return graph;
}

OnnxFunction Converter::convert(const onnx::FunctionProto& proto) {
  OnnxFunction function;
  function.name = text(proto.name(), "function");
  const std::string place = fmt::format("function '{}'", function.name);
  function.domain = domain(proto.domain(), place);
  function.inputs = texts(proto.input(), place);
  function.outputs = texts(proto.output(), place);
  function.attributes = texts(proto.attribute(), place);
  function.opsets = opsets(proto.opset_import(), place);
  convert_nodes(proto.node(), function.nodes);
  for (const WireField& field : unknown(proto.unknown_fields(), place, {12, 14})) {
    onnx::AttributeProto attribute;
    if (field.number == 13 && field.type == WireType::Bytes) {
      function.overload = text(
          std::string(reinterpret_cast<const char*>(field.content.data()), field.content.size()),
          place);
    } else if (field.number != 11 || field.type != WireType::Bytes) {
      unsupported("unknown-field", place,
                  fmt::format("field {} is not known to this version of ingot", field.number));
    } else if (parse(field.content, attribute)) {
      function.attribute_defaults.push_back(convert(attribute, place));
    } else {
      malformed(place, "an attribute default cannot be parsed");
    }
  }
  return function;
}

void Converter::convert(const onnx::ModelProto& proto) {
  model_.ir_version = proto.ir_version();
  model_.model_version = proto.model_version();
  model_.producer_name = text(proto.producer_name(), "producer");
  model_.producer_version = text(proto.producer_version(), "producer version");
  model_.domain = text(proto.domain(), "model domain");
  model_.opsets = opsets(proto.opset_import(), "opset import");
  model_.has_training_info = proto.training_info_size() > 0;
  refuse_unknown(proto.unknown_fields(), "model", {26});
  for (const onnx::StringStringEntryProto& entry : proto.metadata_props()) {
    const std::string key = text(entry.key(), "metadata");
    if (!model_.metadata.emplace(key, text(entry.value(), "metadata")).second) {
      malformed("metadata", fmt::format("key '{}' is there twice", key));
    }
  }
  model_.graph = convert(proto.graph());
  for (const onnx::FunctionProto& function : proto.functions()) {
    model_.functions.push_back(convert(function));
  }
}

std::unexpected<Failure> malformed_file(const std::filesystem::path& path, std::string message) {
  return fail(ExitCode::Malformed, "not-onnx", std::move(message), path.string());
}

// Sets the file in every diagnostic.
std::unexpected<Failure> in_file(Failure failure, const std::filesystem::path& path) {
  for (Diagnostic& diagnostic : failure.diagnostics) {
    if (diagnostic.file.empty()) diagnostic.file = path.string();
  }
  return std::unexpected(std::move(failure));
}

Result<Model> read_mapped(const std::filesystem::path& path, const MappedFile& file) {
  Result<ScannedModel> scanned = scan_model(file.bytes, ScanRoot::Model);
  if (!scanned) {
    return malformed_file(path, "not an ONNX model: " + scanned.error().diagnostics[0].message);
  }
  onnx::ModelProto proto;
  if (!parse(bytes_of(scanned->message), proto)) {
    return malformed_file(path, "not an ONNX model: its messages cannot be parsed");
  }
  if (!proto.has_ir_version() || !proto.has_graph()) {
    return malformed_file(path, "not an ONNX model: it has no IR version or no graph");
  }
  Model model;
  model.file = path.string();
  ExternalFiles external(path);
  Converter converter(model, std::move(*scanned), file, &external);
  converter.convert(proto);
  if (converter.failure) return in_file(std::move(*converter.failure), path);
  model.sources.push_back({path.filename().string(), path, file.owner, file.bytes});
  for (SourceFile& side : external.sources()) model.sources.push_back(std::move(side));
  for (Diagnostic& diagnostic : model.unsupported) diagnostic.file = model.file;
  for (Diagnostic& diagnostic : model.warnings) diagnostic.file = model.file;
  return model;
}

}  // namespace

Result<Model> read_model(const std::filesystem::path& path) {
  INGOT_ASSIGN(const MappedFile file, map_file(path));
  if (file.bytes.empty()) return malformed_file(path, "the file is empty");
  try {
    return read_mapped(path, file);
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::Io, "no-memory", "not enough memory to read the model", path.string());
  } catch (const std::length_error&) {
    return malformed_file(path, "a length is out of range");
  }
}

Result<OnnxTensor> read_tensor(const std::filesystem::path& path) {
  INGOT_ASSIGN(const MappedFile file, map_file(path));
  Result<ScannedModel> scanned = scan_model(file.bytes, ScanRoot::Tensor);
  onnx::TensorProto proto;
  if (!scanned || !parse(bytes_of(scanned->message), proto)) {
    return malformed_file(path, "not a serialized ONNX tensor");
  }
  Model unused;
  Converter converter(unused, std::move(*scanned), file, nullptr);
  OnnxTensor tensor = converter.convert(proto, "tensor");
  if (converter.failure) return in_file(std::move(*converter.failure), path);
  if (!unused.unsupported.empty()) {
    return in_file({ExitCode::Unsupported, std::move(unused.unsupported)}, path);
  }
  return tensor;
}

}  // namespace ingot
