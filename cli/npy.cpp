#include "cli/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace ingot::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;  // of the data within the file
constexpr std::size_t kMaxRank = 32;

struct TypeName {
  DType dtype;
  std::string_view descr;  // with the byte order that we write
};
constexpr std::array<TypeName, 13> kTypes = {{
    {DType::F32, "<f4"},
    {DType::F16, "<f2"},
    {DType::BF16, "|V2"},
    {DType::F64, "<f8"},
    {DType::U8, "|u1"},
    {DType::I8, "|i1"},
    {DType::I16, "<i2"},
    {DType::I32, "<i4"},
    {DType::I64, "<i8"},
    {DType::Bool, "|b1"},
    {DType::U16, "<u2"},
    {DType::U32, "<u4"},
    {DType::U64, "<u8"},
}};

struct Header {
  std::string descr;
  bool fortran = false;
  Shape shape;
};

std::unexpected<Failure> malformed(const std::string& file, std::string message) {
  return fail(ExitCode::Malformed, "bad-npy", "not a valid .npy file: " + std::move(message), file);
}

// Reads the header's Python dictionary; anything that NumPy does not write is refused.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : rest_(text) {}

  std::optional<Header> read() {
    Header header;
    if (!take('{')) return std::nullopt;
    while (!take('}')) {
      if (!read_entry(header) || (!take(',') && !at('}'))) return std::nullopt;
    }
    skip_space();
    const bool complete = seen_ == 7;  // one bit for each key
    return complete && rest_.empty() ? std::optional(std::move(header)) : std::nullopt;
  }

 private:
  bool read_entry(Header& header) {
    const std::optional<std::string> key = read_text();
    if (!key || !take(':')) return false;
    if (*key == "descr") return once(1) && assign(header.descr, read_text());
    if (*key == "fortran_order") return once(2) && assign(header.fortran, read_bool());
    if (*key == "shape") return once(4) && read_shape(header.shape);
    return false;
  }

  bool read_shape(Shape& shape) {
    if (!take('(')) return false;
    bool comma = true;
    while (!take(')')) {
      std::int64_t extent = 0;
      if (!comma || shape.size() == kMaxRank || !read_number(extent)) return false;
      shape.push_back(extent);
      comma = take(',');
    }
    return shape.size() != 1 || comma;  // (3) is a number, (3,) a tuple
  }

  bool read_number(std::int64_t& value) {
    skip_space();
    std::size_t digits = 0;
    for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits) {
      const int digit = rest_[digits] - '0';
      if (value > (std::numeric_limits<std::int64_t>::max() - digit) / 10) return false;
      value = value * 10 + digit;
    }
    rest_.remove_prefix(digits);
    return digits > 0;
  }

  std::optional<std::string> read_text() {
    skip_space();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return std::nullopt;
    const std::size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::optional<bool> read_bool() {
    skip_space();
    for (const auto& [word, value] : {std::pair("True", true), std::pair("False", false)}) {
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(std::strlen(word));
        return value;
      }
    }
    return std::nullopt;
  }

  bool once(unsigned bit) {
    if ((seen_ & bit) != 0) return false;
    seen_ |= bit;
    return true;
  }
  template <typename T>
  static bool assign(T& target, std::optional<T> value) {
    if (value) target = std::move(*value);
    return value.has_value();
  }
  void skip_space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  bool at(char c) {
    skip_space();
    return !rest_.empty() && rest_[0] == c;
  }
  bool take(char c) {
    if (!at(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::string_view rest_;
  unsigned seen_ = 0;
};

Result<DType> find_type(const std::string& descr, const std::string& file) {
  for (const TypeName& type : kTypes) {
    const bool single = size_bytes(type.dtype) == 1 || type.dtype == DType::BF16;
    const bool order_fits =
        !descr.empty() && (descr[0] == '<' || descr[0] == '=' || (single && descr[0] == '|'));
    if (order_fits && descr.substr(1) == type.descr.substr(1)) return type.dtype;
  }
  return fail(ExitCode::Unsupported, "unsupported-type",
              fmt::format(".npy type '{}' is not supported", descr), file,
              "little-endian numbers and bool are; bfloat16 is V2");
}

// The number of bytes of the data, if it is at most `limit`.
std::optional<std::size_t> data_size(DType dtype, const Shape& shape, std::size_t limit) {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  auto size = static_cast<std::size_t>(size_bytes(dtype));
  for (const std::int64_t extent : shape) {
    if (static_cast<std::uint64_t>(extent) > limit / size) return std::nullopt;
    size *= static_cast<std::size_t>(extent);
  }
  return size <= limit ? std::optional(size) : std::nullopt;
}

std::vector<std::byte> to_row_major(std::span<const std::byte> data, std::size_t element,
                                    const Shape& shape) {
  std::vector<std::byte> result(data.size());
  std::vector<std::int64_t> position(shape.size());
  for (std::size_t to = 0; to < data.size(); to += element) {
    std::size_t from = 0;
    for (std::size_t d = shape.size(); d-- > 0;) {
      from = from * static_cast<std::size_t>(shape[d]) + static_cast<std::size_t>(position[d]);
    }
    std::memcpy(result.data() + to, data.data() + from * element, element);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++position[d] < shape[d]) break;
      position[d] = 0;
    }
  }
  return result;
}

struct Parts {
  std::string_view header;
  std::span<const std::byte> data;
};

Result<Parts> split(std::span<const std::byte> bytes, const std::string& file) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() < 10 || !text.starts_with(kMagic)) return malformed(file, "wrong first bytes");
  const int version = std::to_integer<int>(bytes[6]);
  if (version < 1 || version > 3 || text[7] != 0) return malformed(file, "unknown version");
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t start = 8 + length_bytes;
  if (text.size() < start) return malformed(file, "truncated header");
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    length |= std::to_integer<std::size_t>(bytes[8 + i]) << (8 * i);
  }
  if (length > text.size() - start) return malformed(file, "truncated header");
  return Parts{text.substr(start, length), bytes.subspan(start + length)};
}

bool are_bools(std::span<const std::byte> data) {
  return std::ranges::all_of(data, [](std::byte b) { return b <= std::byte{1}; });
}

std::string shape_text(const Shape& shape) {
  std::string text = "(";
  for (const std::int64_t extent : shape) text += fmt::format("{}, ", extent);
  if (shape.size() > 1) text.resize(text.size() - 2);
  if (shape.size() == 1) text.resize(text.size() - 1);
  return text + ")";
}

}  // namespace

Result<Tensor> parse_npy(std::span<const std::byte> bytes, const std::string& file) {
  INGOT_ASSIGN(const Parts parts, split(bytes, file));
  std::optional<Header> header = HeaderReader(parts.header).read();
  if (!header) return malformed(file, "unexpected header");
  INGOT_ASSIGN(const DType dtype, find_type(header->descr, file));
  const std::optional<std::size_t> size = data_size(dtype, header->shape, parts.data.size());
  if (!size || *size != parts.data.size()) {
    return malformed(file, fmt::format("{} bytes of data do not fit shape {}", parts.data.size(),
                                       shape_text(header->shape)));
  }
  if (dtype == DType::Bool && !are_bools(parts.data)) {
    return malformed(file, "a bool is neither 0 nor 1");
  }
  std::vector<std::byte> data =
      header->fortran && header->shape.size() > 1
          ? to_row_major(parts.data, static_cast<std::size_t>(size_bytes(dtype)), header->shape)
          : std::vector<std::byte>(parts.data.begin(), parts.data.end());
  return Tensor::own(dtype, std::move(header->shape), std::move(data));
}

std::vector<std::byte> encode_npy(DType dtype, const Shape& shape,
                                  std::span<const std::byte> data) {
  const auto* type = std::ranges::find(kTypes, dtype, &TypeName::dtype);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                   type->descr, shape_text(shape));
  const bool long_header = header.size() > 65000;
  const std::size_t start = long_header ? 12 : 10;
  const std::size_t padding = (kAlignment - (start + header.size() + 1) % kAlignment) % kAlignment;
  header += std::string(padding, ' ') + "\n";
  std::string head(kMagic);
  head += {long_header ? '\x02' : '\x01', '\0'};
  for (std::size_t i = 0; i < start - 8; ++i) {
    head += static_cast<char>((header.size() >> (8 * i)) & 0xFF);
  }
  head += header;
  std::vector<std::byte> file(head.size() + data.size());
  std::memcpy(file.data(), head.data(), head.size());
  if (!data.empty()) std::memcpy(file.data() + head.size(), data.data(), data.size());
  return file;
}

}  // namespace ingot::cli
