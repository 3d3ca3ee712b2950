// Words and names of the kernel text form, shared by printing and parsing.
#pragma once

#include <string>
#include <string_view>

namespace ingot {

// Words that a plain name may not be: keywords, operations, element types.
[[nodiscard]] bool is_reserved_word(std::string_view word);

// The name as the text form has it: plain if it is letters, digits, '_' and '.', and not reserved;
// otherwise in double quotes with \", \\ and \xHH.
[[nodiscard]] std::string name_in_text(std::string_view name);

[[nodiscard]] inline bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
[[nodiscard]] inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
[[nodiscard]] inline bool continues_name(char c) {
  return starts_name(c) || is_digit(c) || c == '.';
}

}  // namespace ingot
