#include "onnx_frontend/wire_format.h"

#include <fmt/format.h>

namespace ingot {

std::nullopt_t WireReader::stop(std::string error) {
  error_ = std::move(error);
  rest_ = {};
  return std::nullopt;
}

std::optional<std::uint64_t> WireReader::varint() {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < 10 && i < rest_.size(); ++i) {
    const auto byte = std::to_integer<std::uint64_t>(rest_[i]);
    if (i == 9 && byte > 1) break;
    value |= (byte & 0x7F) << (7 * i);
    if ((byte & 0x80) == 0) {
      rest_ = rest_.subspan(i + 1);
      return value;
    }
  }
  return stop(rest_.size() < 10 ? "a number is cut off" : "a number is too long");
}

std::optional<std::uint64_t> WireReader::fixed(std::size_t size) {
  if (rest_.size() < size) return stop("a number is cut off");
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value |= std::to_integer<std::uint64_t>(rest_[i]) << (8 * i);
  }
  rest_ = rest_.subspan(size);
  return value;
}

std::optional<WireField> WireReader::next() {
  if (rest_.empty()) return std::nullopt;
  const std::span<const std::byte> start = rest_;
  const std::optional<std::uint64_t> tag = varint();
  if (!tag) return std::nullopt;
  WireField field;
  if (*tag >> 3 == 0 || *tag >> 3 > 0x1FFFFFFF) return stop("a field has an impossible number");
  field.number = static_cast<std::uint32_t>(*tag >> 3);
  field.type = static_cast<WireType>(*tag & 7);
  switch (*tag & 7) {
    case 0:
    case 1:
    case 5: {
      const auto value = (*tag & 7) == 0 ? varint() : fixed((*tag & 7) == 1 ? 8 : 4);
      if (!value) return std::nullopt;
      field.number_value = *value;
      break;
    }
    case 2: {
      const std::optional<std::uint64_t> length = varint();
      if (!length) return std::nullopt;
      if (*length > rest_.size()) {
        return stop(fmt::format("field {} needs {} bytes, {} are left", field.number, *length,
                                rest_.size()));
      }
      field.content = rest_.first(static_cast<std::size_t>(*length));
      rest_ = rest_.subspan(static_cast<std::size_t>(*length));
      break;
    }
    default: return stop(fmt::format("field {} has an unknown wire type", field.number));
  }
  field.whole = start.first(start.size() - rest_.size());
  return field;
}

void append_varint(std::string& message, std::uint64_t value) {
  while (value >= 0x80) {
    message += static_cast<char>(static_cast<unsigned char>(value | 0x80));
    value >>= 7;
  }
  message += static_cast<char>(value);
}

void append_bytes_field(std::string& message, std::uint32_t number, std::string_view content) {
  append_varint(message, std::uint64_t{number} << 3 | 2);
  append_varint(message, content.size());
  message += content;
}

void append_varint_field(std::string& message, std::uint32_t number, std::uint64_t value) {
  append_varint(message, std::uint64_t{number} << 3);
  append_varint(message, value);
}

}  // namespace ingot
