// A machine for a closed subset of pickle: text, small integers, None, tuples, dicts, and one
// global that is never called but recognized. Nothing is imported and nothing is allocated by
// length fields: every string is a copy of bytes that are there.
#include "onnx_frontend/output_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <variant>

namespace ingot {
namespace {

constexpr std::size_t most_slices = 65536;
constexpr std::size_t most_values = 1 << 20;  // on the stack or in the memo

// --- values on the machine's stack

struct Mark {};
struct None {};
struct SliceClass {};
struct Slice {
  std::int64_t start, stop;
};
struct Dict {};  // the one dictionary; its entries are kept by the machine
struct Tuple {
  std::vector<std::variant<None, std::int64_t>> items;
};
using Value = std::variant<Mark, None, std::int64_t, std::string, SliceClass, Slice, Dict, Tuple>;

class Machine {
 public:
  explicit Machine(std::string_view code) : code_(code) {}

  // Runs to STOP; nullopt with `error` set.
  std::optional<std::vector<OutputSlice>> run() {
    while (error.empty()) {
      const std::optional<unsigned char> opcode = byte();
      if (!opcode) break;
      if (*opcode == '.') return stop();
      step(*opcode);
    }
    return std::nullopt;
  }

  std::string error;

 private:
  void refuse(std::string text) {
    if (error.empty()) error = std::move(text);
  }

  // --- reading; every length is checked against what is left

  std::optional<std::string_view> take(std::uint64_t count) {
    if (count > code_.size() - place_) {
      refuse("the pickle is cut off");
      return std::nullopt;
    }
    const std::string_view bytes = code_.substr(place_, static_cast<std::size_t>(count));
    place_ += static_cast<std::size_t>(count);
    return bytes;
  }
  std::optional<unsigned char> byte() {
    const auto one = take(1);
    if (!one) return std::nullopt;
    return static_cast<unsigned char>((*one)[0]);
  }
  std::optional<std::uint64_t> number(unsigned size) {
    const auto bytes = take(size);
    if (!bytes) return std::nullopt;
    std::uint64_t value = 0;
    for (unsigned i = 0; i < size; ++i) {
      value |= std::uint64_t{static_cast<unsigned char>((*bytes)[i])} << (8 * i);
    }
    return value;
  }
  std::optional<std::string_view> line() {
    const std::size_t end = code_.find('\n', place_);
    if (end == std::string_view::npos) {
      refuse("the pickle is cut off");
      return std::nullopt;
    }
    const std::string_view text = code_.substr(place_, end - place_);
    place_ = end + 1;
    return text;
  }
  std::optional<std::int64_t> decimal(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc() || end != text.data() + text.size() || text.empty()) {
      refuse("a number is malformed");
      return std::nullopt;
    }
    return value;
  }

  // --- the stack

  template <typename T>
  void push(T value) {
    if (stack_.size() >= most_values) return refuse("the pickle is too large");
    stack_.emplace_back(std::move(value));
  }
  std::optional<Value> pop() {
    if (stack_.empty() || std::holds_alternative<Mark>(stack_.back())) {
      refuse("the pickle's stack is empty");
      return std::nullopt;
    }
    Value value = std::move(stack_.back());
    stack_.pop_back();
    return value;
  }
  // Everything above the last mark, which is removed.
  std::optional<std::vector<Value>> pop_to_mark() {
    std::size_t at = stack_.size();
    while (at > 0 && !std::holds_alternative<Mark>(stack_[at - 1])) --at;
    if (at == 0) {
      refuse("the pickle has no mark");
      return std::nullopt;
    }
    std::vector<Value> values(
        std::make_move_iterator(stack_.begin() + static_cast<std::ptrdiff_t>(at)),
        std::make_move_iterator(stack_.end()));
    stack_.resize(at - 1);
    return values;
  }

  // --- opcodes

  void step(unsigned char opcode) {
    switch (opcode) {
      case 0x80: return protocol();
      case 0x95: return frame();
      case '(': return push(Mark{});
      case 'N': return push(None{});
      case '}': return new_dict();
      case 'd': return dict_from_mark();
      case 's': return set_item();
      case 'u': return set_items();
      case 't': return tuple_from_mark();
      case 0x85: return tuple(1);
      case 0x86: return tuple(2);
      case 0x87: return tuple(3);
      case 'R': return reduce();
      case 'c': return global();
      case 0x93: return stack_global();
      case 'V': return text_line();
      case 'X': return text(number(4));
      case 0x8C: return text(number(1));
      case 'I': return integer_line();
      case 'J': return signed_integer(number(4));
      case 'K': return integer(number(1));
      case 'M': return integer(number(2));
      case 0x8A: return long_integer();
      case 'p': return put(text_index());
      case 'q': return put(number(1));
      case 'r': return put(number(4));
      case 0x94: return put(memo_.size());
      case 'g': return get(text_index());
      case 'h': return get(number(1));
      case 'j': return get(number(4));
      default: return refuse(fmt::format("opcode 0x{:02x} is not allowed", opcode));
    }
  }

  void protocol() {
    const auto version = byte();
    if (place_ != 2) return refuse("a protocol mark in the middle");
    if (version && (*version < 2 || *version > 5)) refuse("the pickle's protocol is not known");
  }
  // A frame says how many bytes follow together.
  void frame() {
    const auto size = number(8);
    if (size && *size > code_.size() - place_) refuse("a frame is cut off");
  }

  void text(std::optional<std::uint64_t> size) {
    if (!size) return;
    if (const auto bytes = take(*size)) push(std::string(*bytes));
  }
  // Protocol 0 escapes what is not Latin-1; names of slices need no escapes.
  void text_line() {
    const auto bytes = line();
    if (!bytes) return;
    const bool plain =
        std::ranges::all_of(*bytes, [](char c) { return c >= 0x20 && c < 0x7F && c != '\\'; });
    if (!plain) return refuse("a name with escapes");
    push(std::string(*bytes));
  }
  void integer(std::optional<std::uint64_t> value) {
    if (value) push(static_cast<std::int64_t>(*value));
  }
  void signed_integer(std::optional<std::uint64_t> value) {
    if (value) push(std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(*value))});
  }
  void integer_line() {
    const auto digits = line();
    if (!digits) return;
    // "00" and "01" are booleans in protocol 0.
    if (*digits == "00" || *digits == "01") return refuse("a bool where a number is needed");
    if (const auto value = decimal(*digits)) push(*value);
  }
  void long_integer() {
    const auto size = byte();
    if (!size) return;
    if (*size > 8) return refuse("a number is too large");
    const auto bytes = number(*size);
    if (!bytes) return;
    std::uint64_t value = *bytes;
    if (*size > 0 && *size < 8 && (value >> (8 * *size - 1) & 1) != 0) {
      value |= ~std::uint64_t{0} << (8 * *size);
    }
    push(static_cast<std::int64_t>(value));
  }

  void global() {
    const auto module = line();
    const auto name = module ? line() : std::nullopt;
    if (name) find_global(*module, *name);
  }
  void stack_global() {
    const auto name = pop();
    const auto module = pop();
    if (!name || !module) return;
    const auto* name_text = std::get_if<std::string>(&*name);
    const auto* module_text = std::get_if<std::string>(&*module);
    if (!name_text || !module_text) return refuse("a global without a name");
    find_global(*module_text, *name_text);
  }
  void find_global(std::string_view module, std::string_view name) {
    if ((module != "builtins" && module != "__builtin__") || name != "slice") {
      return refuse("a global other than slice");
    }
    push(SliceClass{});
  }

  void tuple_from_mark() {
    if (auto values = pop_to_mark()) make_tuple(std::move(*values));
  }
  void tuple(std::size_t size) {
    std::vector<Value> values;
    for (std::size_t i = 0; i < size; ++i) {
      auto value = pop();
      if (!value) return;
      values.insert(values.begin(), std::move(*value));
    }
    make_tuple(std::move(values));
  }
  void make_tuple(std::vector<Value> values) {
    if (values.size() > 3) return refuse("a tuple of more than three");
    Tuple result;
    for (const Value& value : values) {
      if (const auto* integer = std::get_if<std::int64_t>(&value)) {
        result.items.emplace_back(*integer);
      } else if (std::holds_alternative<None>(value)) {
        result.items.emplace_back(None{});
      } else {
        return refuse("a tuple of something other than numbers");
      }
    }
    push(std::move(result));
  }

  // The only call that is understood: slice(start, stop, None).
  void reduce() {
    const auto arguments = pop();
    const auto callee = pop();
    if (!arguments || !callee) return;
    const auto* items = std::get_if<Tuple>(&*arguments);
    if (!std::holds_alternative<SliceClass>(*callee) || !items) {
      return refuse("a call of something other than slice");
    }
    if (items->items.size() != 3 || !std::holds_alternative<std::int64_t>(items->items[0]) ||
        !std::holds_alternative<std::int64_t>(items->items[1]) ||
        !std::holds_alternative<None>(items->items[2])) {
      return refuse("a slice other than slice(start, stop, None)");
    }
    push(Slice{std::get<std::int64_t>(items->items[0]), std::get<std::int64_t>(items->items[1])});
  }

  void new_dict() {
    if (has_dict_) return refuse("more than one dictionary");
    has_dict_ = true;
    push(Dict{});
  }
  void dict_from_mark() {
    auto values = pop_to_mark();
    if (!values) return;
    new_dict();
    add_items(*values);
  }
  void set_item() {
    auto value = pop();
    auto key = pop();
    if (!value || !key) return;
    add_to_top({std::move(*key), std::move(*value)});
  }
  void set_items() {
    if (auto values = pop_to_mark()) add_to_top(*values);
  }
  void add_to_top(const std::vector<Value>& items) {
    if (stack_.empty() || !std::holds_alternative<Dict>(stack_.back())) {
      return refuse("an item outside a dictionary");
    }
    add_items(items);
  }
  void add_items(const std::vector<Value>& items) {
    if (items.size() % 2 != 0) return refuse("a key without a value");
    for (std::size_t i = 0; i < items.size(); i += 2) {
      const auto* key = std::get_if<std::string>(&items[i]);
      const auto* slice = std::get_if<Slice>(&items[i + 1]);
      if (!key) return refuse("a key that is no text");
      if (!slice) return refuse(fmt::format("'{}' is no slice", *key));
      if (!names_.insert(*key).second) return refuse(fmt::format("'{}' is there twice", *key));
      if (slices_.size() >= most_slices) return refuse("too many slices");
      slices_.push_back({*key, slice->start, slice->stop});
    }
  }

  std::optional<std::uint64_t> text_index() {
    const auto digits = line();
    const auto index = digits ? decimal(*digits) : std::nullopt;
    if (!index) return std::nullopt;
    if (*index < 0) refuse("a memo index is negative");
    return static_cast<std::uint64_t>(*index);
  }
  void put(std::optional<std::uint64_t> index) {
    if (!index || !error.empty()) return;
    if (stack_.empty() || std::holds_alternative<Mark>(stack_.back())) {
      return refuse("nothing to remember");
    }
    if (memo_.size() >= most_values) return refuse("the pickle is too large");
    memo_[*index] = stack_.back();
  }
  void get(std::optional<std::uint64_t> index) {
    if (!index || !error.empty()) return;
    const auto found = memo_.find(*index);
    if (found == memo_.end()) return refuse("nothing remembered there");
    if (std::holds_alternative<Dict>(found->second)) return refuse("a dictionary within itself");
    push(found->second);
  }

  std::optional<std::vector<OutputSlice>> stop() {
    if (place_ != code_.size()) {
      refuse("bytes after the end");
    } else if (stack_.size() != 1 || !std::holds_alternative<Dict>(stack_.back())) {
      refuse("the result is not one dictionary");
    } else {
      return std::move(slices_);
    }
    return std::nullopt;
  }

  std::string_view code_;
  std::size_t place_ = 0;
  std::vector<Value> stack_;
  std::map<std::uint64_t, Value> memo_;
  bool has_dict_ = false;
  std::set<std::string> names_;
  std::vector<OutputSlice> slices_;
};

std::unexpected<Failure> malformed(std::string message) {
  return fail(ExitCode::Malformed, "invalid-output-slices", "output_slices: " + message);
}

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

// Line breaks are allowed; padding must be complete, and unused bits zero.
std::optional<std::string> from_base64(std::string_view text) {
  std::string digits;
  std::size_t padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      ++padding;
    } else if (padding > 0 || base64_digit(c) < 0) {
      return std::nullopt;
    } else {
      digits += c;
    }
  }
  if (padding > 2 || (digits.size() + padding) % 4 != 0) return std::nullopt;
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : digits) {
    bits = bits << 6 | static_cast<std::uint32_t>(base64_digit(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
    bits &= (1U << count) - 1;
  }
  if (bits != 0) return std::nullopt;
  return bytes;
}

}  // namespace

Result<std::vector<OutputSlice>> decode_output_slices(std::string_view base64, std::int64_t width) {
  const std::optional<std::string> code = from_base64(base64);
  if (!code) return malformed("not base64 text");
  Machine machine(*code);
  std::optional<std::vector<OutputSlice>> slices = machine.run();
  if (!slices) return malformed(machine.error);
  for (const OutputSlice& slice : *slices) {
    if (slice.name.empty()) return malformed("a slice has no name");
    if (slice.start < 0 || slice.stop < slice.start || slice.stop > width) {
      return malformed(fmt::format("slice '{}' is {} to {} of {} values", slice.name, slice.start,
                                   slice.stop, width));
    }
  }
  return *std::move(slices);
}

Result<std::vector<OutputSlice>> sort_slices(std::vector<OutputSlice> slices) {
  std::ranges::stable_sort(slices, {},
                           [](const OutputSlice& s) { return std::pair(s.start, s.stop); });
  for (std::size_t i = 1; i < slices.size(); ++i) {
    if (slices[i].start < slices[i - 1].stop) {
      return malformed(fmt::format("slice '{}' overlaps '{}'", slices[i].name, slices[i - 1].name));
    }
  }
  return slices;
}

}  // namespace ingot
