// Reads one line of a text form word by word; used by the plan's and the program's parsers.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/tensor/tensor.h"

namespace ingot {

class LineScanner {
 public:
  explicit LineScanner(std::string_view line) : rest_(line) { skip_blanks(); }

  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  [[nodiscard]] std::string_view rest() const { return rest_; }

  // Takes `word` if it comes next and ends there.
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    if (rest_.size() > word.size() && rest_[word.size()] != ' ') return false;
    rest_.remove_prefix(word.size());
    skip_blanks();
    return true;
  }

  // Everything up to the next blank; empty at the end.
  std::string_view word() {
    const std::string_view found = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(found.size());
    skip_blanks();
    return found;
  }

  template <typename Int>
  std::optional<Int> number() {
    Int value{};
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    skip_blanks();
    return value;
  }

  // "1,2,3"; "-" for none.
  template <typename Int>
  std::optional<std::vector<Int>> numbers() {
    std::vector<Int> values;
    if (take("-")) return values;
    for (;;) {
      Int value{};
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
      if (error != std::errc()) return std::nullopt;
      values.push_back(value);
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      if (rest_.empty() || rest_.front() != ',') break;
      rest_.remove_prefix(1);
    }
    skip_blanks();
    return values;
  }

  // A quoted name; \" and \\ stand for themselves.
  std::optional<std::string> quoted() {
    if (rest_.empty() || rest_.front() != '"') return std::nullopt;
    std::string value;
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        rest_.remove_prefix(i + 1);
        skip_blanks();
        return value;
      }
      if (rest_[i] == '\\' && ++i == rest_.size()) break;
      value += rest_[i];
    }
    return std::nullopt;
  }

  // "f32[1,8]"
  bool type(DType& dtype, Shape& shape) {
    const std::string_view text = word();
    const std::size_t open = text.find('[');
    if (open == std::string_view::npos || text.back() != ']') return false;
    const std::optional<DType> known = dtype_from_name(text.substr(0, open));
    if (!known) return false;
    dtype = *known;
    shape.clear();
    LineScanner inner(text.substr(open + 1, text.size() - open - 2));
    if (inner.at_end()) return true;
    const auto values = inner.numbers<std::int64_t>();
    if (!values || !inner.at_end()) return false;
    shape = *values;
    return true;
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

// The text in double quotes, as LineScanner::quoted reads it.
[[nodiscard]] inline std::string quote(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result + '"';
}

}  // namespace ingot
