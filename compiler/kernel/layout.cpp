#include "compiler/kernel/layout.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace ingot {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kMost : sum;
}

std::int64_t saturating_mul(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kMost : product;
}

std::int64_t divided_up(std::int64_t value, std::int64_t by) {
  return value / by + (value % by != 0 ? 1 : 0);
}

// Positions along d: blocks of the blocked dimension, elements and halo of any other.
std::int64_t positions(const Layout& layout, const Shape& shape, int d) {
  const auto i = static_cast<std::size_t>(d);
  if (layout.block > 1 && layout.block_dim == d) {
    return saturating_mul(blocks_of_stream(layout, shape), layout.streams);
  }
  return saturating_add(saturating_add(shape[i], layout.before[i]), layout.after[i]);
}

void check_rank(const Layout& layout, const Shape& shape) {
  INGOT_CHECK(layout.order.size() == shape.size() && layout.before.size() == shape.size() &&
                  layout.after.size() == shape.size(),
              "layout and shape have different ranks");
}

// Reads "order 0,1 block 1x4 halo 0:1+1" piece by piece.
class LayoutReader {
 public:
  explicit LayoutReader(std::string_view text) : text_(text) {}

  bool word(std::string_view expected) {
    skip_blanks();
    if (!text_.starts_with(expected)) return false;
    const std::string_view rest = text_.substr(expected.size());
    if (!rest.empty() && rest.front() >= 'a' && rest.front() <= 'z') return false;
    text_ = rest;
    return true;
  }
  bool mark(char expected) {
    if (text_.empty() || text_.front() != expected) return false;
    text_.remove_prefix(1);
    return true;
  }
  template <typename Int>
  bool number(Int& value) {
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) return false;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return true;
  }
  bool at_number() const { return !text_.empty() && text_.front() >= '0' && text_.front() <= '9'; }
  void skip_blanks() {
    while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
  }
  bool at_end() const { return text_.empty(); }

 private:
  std::string_view text_;
};

template <typename T>
void copy_elements(std::byte* to, std::int64_t step, const std::byte* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * step * static_cast<std::int64_t>(sizeof(T)),
                from + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  }
}

void copy_elements(int size, std::byte* to, std::int64_t step, const std::byte* from,
                   std::int64_t count) {
  if (step == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(count * size));
  } else if (size == 1) {
    copy_elements<std::uint8_t>(to, step, from, count);
  } else if (size == 2) {
    copy_elements<std::uint16_t>(to, step, from, count);
  } else if (size == 4) {
    copy_elements<std::uint32_t>(to, step, from, count);
  } else {
    copy_elements<std::uint64_t>(to, step, from, count);
  }
}

}  // namespace

Layout Layout::row_major(int rank) {
  Layout layout;
  const auto dimensions = static_cast<std::size_t>(rank);
  layout.order.resize(dimensions);
  std::iota(layout.order.begin(), layout.order.end(), 0);
  layout.before.assign(dimensions, 0);
  layout.after.assign(dimensions, 0);
  return layout;
}

bool Layout::is_row_major() const {
  if (block > 1) return false;
  for (std::size_t d = 0; d < order.size(); ++d) {
    if (order[d] != static_cast<int>(d) || before[d] != 0 || after[d] != 0) return false;
  }
  return true;
}

std::int64_t element_count(const Layout& layout, const Shape& shape) {
  check_rank(layout, shape);
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t count = layout.block > 1 ? layout.block : 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    count = saturating_mul(count, positions(layout, shape, static_cast<int>(d)));
  }
  return count;
}

std::int64_t padded_extent(const Layout& layout, const Shape& shape, int d) {
  check_rank(layout, shape);
  if (layout.block > 1 && layout.block_dim == d) {
    return saturating_mul(positions(layout, shape, d), layout.block);
  }
  return shape[static_cast<std::size_t>(d)];
}

std::vector<std::int64_t> strides(const Layout& layout, const Shape& shape) {
  check_rank(layout, shape);
  std::vector<std::int64_t> result(shape.size(), 0);
  std::int64_t stride = layout.block > 1 ? layout.block : 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    const int d = layout.order[i];
    result[static_cast<std::size_t>(d)] = stride;
    stride = saturating_mul(stride, positions(layout, shape, d));
  }
  return result;
}

std::int64_t blocks_of_stream(const Layout& layout, const Shape& shape) {
  const std::int64_t extent = shape[static_cast<std::size_t>(layout.block_dim)];
  return divided_up(divided_up(extent, layout.block), layout.streams);
}

std::int64_t address(const Layout& layout, const Shape& shape,
                     const std::vector<std::int64_t>& coordinates) {
  INGOT_CHECK(coordinates.size() == shape.size(), "one coordinate per dimension");
  const std::vector<std::int64_t> stride = strides(layout, shape);
  std::int64_t result = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (layout.block > 1 && layout.block_dim == static_cast<int>(d)) {
      INGOT_CHECK(coordinates[d] >= 0, "a blocked dimension has no halo");
      const std::int64_t block = coordinates[d] / layout.block;
      const std::int64_t position =
          block % layout.streams * blocks_of_stream(layout, shape) + block / layout.streams;
      result += position * stride[d] + coordinates[d] % layout.block;
    } else {
      result += (coordinates[d] + layout.before[d]) * stride[d];
    }
  }
  return result;
}

std::vector<std::byte> pack(const Layout& layout, const Tensor& tensor) {
  const int size = size_bytes(tensor.dtype);
  if (layout.is_row_major()) return {tensor.bytes.begin(), tensor.bytes.end()};
  std::vector<std::byte> packed(
      static_cast<std::size_t>(element_count(layout, tensor.shape) * size));
  const std::int64_t total = element_count(tensor.shape);
  if (total == 0) return packed;

  // One run of the innermost logical dimension at a time. A run along the blocked dimension is
  // cut at block borders; within each piece the step is constant.
  const std::vector<std::int64_t> stride = strides(layout, tensor.shape);
  const std::size_t inner = tensor.shape.size() - 1;  // not rank 0: that layout is row-major
  const bool inner_blocked = layout.block > 1 && layout.block_dim == static_cast<int>(inner);
  const std::int64_t run = tensor.shape[inner];
  const std::int64_t piece = inner_blocked ? layout.block : run;
  std::vector<std::int64_t> coordinates(tensor.shape.size(), 0);
  for (std::int64_t done = 0; done < total; done += run) {
    for (std::int64_t first = 0; first < run; first += piece) {
      coordinates[inner] = first;
      copy_elements(size, packed.data() + address(layout, tensor.shape, coordinates) * size,
                    inner_blocked ? 1 : stride[inner], tensor.bytes.data() + (done + first) * size,
                    std::min(piece, run - first));
    }
    for (std::size_t d = inner; d-- > 0;) {
      if (++coordinates[d] < tensor.shape[d]) break;
      coordinates[d] = 0;
    }
  }
  return packed;
}

bool can_join(const Layout& layout, int d) {
  const auto outer = std::ranges::find(layout.order, d);
  if (outer == layout.order.end() || outer + 1 == layout.order.end() || *(outer + 1) != d + 1) {
    return false;
  }
  return std::ranges::all_of(std::array{d, d + 1}, [&](int dimension) {
    const auto at = static_cast<std::size_t>(dimension);
    return layout.before[at] == 0 && layout.after[at] == 0 && layout.block_dim != dimension;
  });
}

void join(Layout& layout, Shape& shape, int d) {
  const auto inner = static_cast<std::ptrdiff_t>(d) + 1;
  shape[static_cast<std::size_t>(d)] *= shape[static_cast<std::size_t>(inner)];
  shape.erase(shape.begin() + inner);
  layout.before.erase(layout.before.begin() + inner);
  layout.after.erase(layout.after.begin() + inner);
  std::erase(layout.order, d + 1);
  for (int& dimension : layout.order) dimension -= dimension > d ? 1 : 0;
  layout.block_dim -= layout.block_dim > d ? 1 : 0;
}

bool same_places(Layout a, Shape shape_a, Layout b, Shape shape_b) {
  const auto join_all = [](Layout& layout, Shape& shape) {
    for (int d = static_cast<int>(shape.size()) - 2; d >= 0; --d) {
      if (can_join(layout, d)) join(layout, shape, d);
    }
  };
  join_all(a, shape_a);
  join_all(b, shape_b);
  return a == b && shape_a == shape_b;
}

std::string to_text(const Layout& layout) {
  if (layout.is_row_major()) return "row";
  std::string text = "order ";
  for (std::size_t i = 0; i < layout.order.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(layout.order[i]);
  }
  if (layout.block > 1) {
    text += " block " + std::to_string(layout.block_dim) + 'x' + std::to_string(layout.block);
    if (layout.streams > 1) text += " streams " + std::to_string(layout.streams);
  }
  bool first = true;
  for (std::size_t d = 0; d < layout.before.size(); ++d) {
    if (layout.before[d] == 0 && layout.after[d] == 0) continue;
    text += first ? " halo " : " ";
    first = false;
    text += std::to_string(d) + ':' + std::to_string(layout.before[d]) + '+' +
            std::to_string(layout.after[d]);
  }
  return text;
}

Result<Layout> parse_layout(std::string_view text, int rank) {
  const auto wrong = [&](const std::string& what) {
    return fail(ExitCode::Malformed, "malformed-layout",
                "layout '" + std::string(text) + "': " + what);
  };
  Layout layout = Layout::row_major(rank);
  LayoutReader reader(text);
  if (reader.word("row")) {
    reader.skip_blanks();
    if (!reader.at_end()) return wrong("unexpected text after 'row'");
    return layout;
  }
  if (!reader.word("order")) return wrong("expected 'row' or 'order'");
  reader.skip_blanks();
  std::vector<bool> seen(static_cast<std::size_t>(rank), false);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    int d = 0;
    if ((i > 0 && !reader.mark(',')) || !reader.number(d)) {
      return wrong("expected " + std::to_string(rank) + " dimensions");
    }
    if (d >= rank || seen[static_cast<std::size_t>(d)]) {
      return wrong("the order is not a permutation of the dimensions");
    }
    seen[static_cast<std::size_t>(d)] = true;
    layout.order[i] = d;
  }
  if (reader.word("block")) {
    reader.skip_blanks();
    if (!reader.number(layout.block_dim) || !reader.mark('x') || !reader.number(layout.block)) {
      return wrong("expected 'block DIMENSIONxELEMENTS'");
    }
    if (layout.block_dim >= rank || layout.block < 2) return wrong("no such block");
    if (reader.word("streams")) {
      reader.skip_blanks();
      if (!reader.number(layout.streams) || layout.streams < 2) {
        return wrong("expected 'streams COUNT', two or more");
      }
    }
  }
  if (reader.word("halo")) {
    reader.skip_blanks();
    do {
      int d = 0;
      std::int64_t before = 0;
      std::int64_t after = 0;
      if (!reader.number(d) || !reader.mark(':') || !reader.number(before) || !reader.mark('+') ||
          !reader.number(after)) {
        return wrong("expected 'halo DIMENSION:BEFORE+AFTER'");
      }
      if (d >= rank || d == layout.block_dim) return wrong("no halo possible in this dimension");
      layout.before[static_cast<std::size_t>(d)] = before;
      layout.after[static_cast<std::size_t>(d)] = after;
      reader.skip_blanks();
    } while (reader.at_number());
  }
  reader.skip_blanks();
  if (!reader.at_end()) return wrong("unexpected text at its end");
  return layout;
}

}  // namespace ingot
