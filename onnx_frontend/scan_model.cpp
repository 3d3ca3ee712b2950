#include "onnx_frontend/scan_model.h"

#include <fmt/format.h>

#include "onnx_frontend/wire_format.h"

namespace ingot {
namespace {

// The messages of onnx.proto that can hold a tensor at some depth.
enum class Message {
  Model,
  Training,
  Graph,
  Node,
  Attribute,
  SparseTensor,
  Function,
  Tensor,
  Other
};

constexpr int deepest_nesting = 100;
// Protobuf takes less than 2 GB. A model without its weights is far smaller.
constexpr std::size_t largest_message = std::size_t{1} << 30;

Message child(Message message, std::uint32_t field) {
  switch (message) {
    case Message::Model:
      if (field == 7) return Message::Graph;
      if (field == 20) return Message::Training;
      if (field == 25) return Message::Function;
      break;
    case Message::Training:
      if (field == 1 || field == 2) return Message::Graph;
      break;
    case Message::Graph:
      if (field == 1) return Message::Node;
      if (field == 5) return Message::Tensor;
      if (field == 15) return Message::SparseTensor;
      break;
    case Message::Node:
      if (field == 5) return Message::Attribute;
      break;
    case Message::Attribute:
      if (field == 5 || field == 10) return Message::Tensor;
      if (field == 6 || field == 11) return Message::Graph;
      if (field == 22 || field == 23) return Message::SparseTensor;
      break;
    case Message::SparseTensor:
      if (field == 1 || field == 2) return Message::Tensor;
      break;
    case Message::Function:
      if (field == 7) return Message::Node;
      if (field == 11) return Message::Attribute;
      break;
    case Message::Tensor:
    case Message::Other: break;
  }
  return Message::Other;
}

constexpr std::uint32_t raw_data_field = 9;

class Scanner {
 public:
  // Appends `bytes`, without large tensors, to `out`; false with an error set.
  bool scan(std::span<const std::byte> bytes, Message message, int depth, std::string& out) {
    if (depth > deepest_nesting) return stop("graphs are nested too deep");
    WireReader reader(bytes);
    while (const std::optional<WireField> field = reader.next()) {
      if (!copy(*field, message, depth, out)) return false;
      if (out.size() > largest_message) {
        return stop("the model without its weights is larger than 1 GiB");
      }
    }
    return reader.error().empty() || stop(reader.error());
  }

  std::string error;
  std::vector<std::span<const std::byte>> ranges;

 private:
  bool stop(std::string text) {
    error = std::move(text);
    return false;
  }

  bool copy(const WireField& field, Message message, int depth, std::string& out) {
    if (message == Message::Tensor) {
      if (field.number == range_marker_field) {
        return stop(fmt::format("a tensor has the unknown field {}", range_marker_field));
      }
      if (field.number == raw_data_field && field.type == WireType::Bytes &&
          field.content.size() >= smallest_range) {
        append_varint_field(out, range_marker_field, ranges.size());
        ranges.push_back(field.content);
        return true;
      }
    }
    const Message inner = child(message, field.number);
    if (inner == Message::Other || field.type != WireType::Bytes) {
      out.append(reinterpret_cast<const char*>(field.whole.data()), field.whole.size());
      return true;
    }
    std::string content;
    if (!scan(field.content, inner, depth + 1, content)) return false;
    append_bytes_field(out, field.number, content);
    return true;
  }
};

}  // namespace

Result<ScannedModel> scan_model(std::span<const std::byte> bytes, ScanRoot root) {
  Scanner scanner;
  ScannedModel scanned;
  const Message message = root == ScanRoot::Model ? Message::Model : Message::Tensor;
  if (!scanner.scan(bytes, message, 0, scanned.message)) {
    return fail(ExitCode::Malformed, "not-onnx", scanner.error);
  }
  scanned.ranges = std::move(scanner.ranges);
  return scanned;
}

}  // namespace ingot
