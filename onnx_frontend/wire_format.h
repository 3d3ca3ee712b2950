// Protobuf's wire format, as far as scanning a model needs it: fields one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ingot {

enum class WireType : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::Varint;
  std::uint64_t number_value = 0;      // of Varint, Fixed64, Fixed32
  std::span<const std::byte> content;  // of Bytes
  std::span<const std::byte> whole;    // tag and content, as in the file
};

// Goes through the fields of one message. Every length is checked against the message before use.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> message) : rest_(message) {}

  // The next field; nullopt at the end and after a violation.
  [[nodiscard]] std::optional<WireField> next();
  // What is wrong, empty if nothing is.
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  [[nodiscard]] std::optional<std::uint64_t> varint();
  [[nodiscard]] std::optional<std::uint64_t> fixed(std::size_t size);
  std::nullopt_t stop(std::string error);

  std::span<const std::byte> rest_;
  std::string error_;
};

// Appending, to rebuild a message.
void append_varint(std::string& message, std::uint64_t value);
void append_bytes_field(std::string& message, std::uint32_t number, std::string_view content);
void append_varint_field(std::string& message, std::uint32_t number, std::uint64_t value);

}  // namespace ingot
