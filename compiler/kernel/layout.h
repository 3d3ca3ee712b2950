// Layout is a property of a buffer: it turns logical coordinates into element addresses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/tensor/tensor.h"

namespace ingot {

// Memory order, one optional inner block, and a zero halo.
//
// Logical dimension d occupies before[d] + shape[d] + after[d] positions; the halo positions hold
// zeros whenever the buffer may be read. `order` lists dimensions outermost first. With
// block > 1 dimension block_dim is cut into blocks of `block` elements: the block number stands at
// the dimension's place in `order`, the position in the block is innermost. The last block is
// padded; padded positions are inside the buffer but hold unspecified values (zeros in constants).
// A blocked dimension has no halo. With streams > 1 block b is number b / streams of stream
// b % streams; the streams follow each other in memory, each of as many blocks, so that some blocks
// at their ends may be padding. Neighbouring blocks are then read side by side, and each stream
// from one end to the other.
//
// Example: shape [1,64,56,56], order {0,1,2,3}, block_dim 1, block 16, halo 1 around 2 and 3 is
// [1][64/16][58][58][16].
struct Layout {
  std::vector<int> order;
  int block_dim = -1;
  std::int64_t block = 1;
  std::int64_t streams = 1;
  std::vector<std::int64_t> before, after;

  [[nodiscard]] static Layout row_major(int rank);
  [[nodiscard]] bool is_row_major() const;  // dense: no block, no halo
  friend bool operator==(const Layout&, const Layout&) = default;
};

// Elements the buffer occupies, padding and halo included; 0 if a dimension is 0.
[[nodiscard]] std::int64_t element_count(const Layout& layout, const Shape& shape);
// Extent of dimension d that may be addressed (blocked dimensions are rounded up, with streams to
// as many blocks for each), without halo.
[[nodiscard]] std::int64_t padded_extent(const Layout& layout, const Shape& shape, int d);
// Distance in elements between neighbours along d; of blocks of one stream for the blocked
// dimension.
[[nodiscard]] std::vector<std::int64_t> strides(const Layout& layout, const Shape& shape);
// Blocks from one stream to the next.
[[nodiscard]] std::int64_t blocks_of_stream(const Layout& layout, const Shape& shape);
// Element address of concrete coordinates (may lie in halo or padding).
[[nodiscard]] std::int64_t address(const Layout& layout, const Shape& shape,
                                   const std::vector<std::int64_t>& coordinates);
// Rearranges a dense row-major tensor into the layout; halo and padding become zero bytes.
[[nodiscard]] std::vector<std::byte> pack(const Layout& layout, const Tensor& tensor);

// Whether dimension d + 1 continues dimension d in memory, so that both may be one: neighbours in
// the order, no halo, no block.
[[nodiscard]] bool can_join(const Layout& layout, int d);
// Makes them one: the element (i, j) becomes i * shape[d + 1] + j, at the same address.
void join(Layout& layout, Shape& shape, int d);
// Whether both put every element, counted row-major, at the same address.
[[nodiscard]] bool same_places(Layout a, Shape shape_a, Layout b, Shape shape_b);

// "row", or "order 0,1,2,3 block 1x16 halo 2:1+1 3:1+1", or "order 1,0 block 1x32 streams 4".
[[nodiscard]] std::string to_text(const Layout& layout);
[[nodiscard]] Result<Layout> parse_layout(std::string_view text, int rank);

}  // namespace ingot
