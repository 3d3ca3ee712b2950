// Hexadecimal text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ingot {

// Value of one digit of either case, -1 for any other character.
[[nodiscard]] int hex_digit(char c);

// Two digits of either case for each byte. False, with `bytes` in any state, if the text is none.
[[nodiscard]] bool from_hex(std::string_view text, std::span<std::uint8_t> bytes);

// Lower case.
[[nodiscard]] std::string to_hex(std::span<const std::uint8_t> bytes);

}  // namespace ingot
