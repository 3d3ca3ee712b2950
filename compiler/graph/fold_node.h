// The value of one node whose inputs are known.
#pragma once

#include <optional>
#include <span>

#include "compiler/graph/graph.h"

namespace ingot {

// What folding computes stays below this many elements: it serves shapes, indices and the small
// constants around them. Large constants are computed by compiled kernels.
constexpr std::int64_t kFoldLimit = 4096;

// nullopt if the result is larger than kFoldLimit, if its bits are not determined by exact
// arithmetic (compiler/tensor/exact.h), for inputs and contractions, for float reductions, and for
// a gather with an index out of range. `inputs` are the values of the node's inputs.
[[nodiscard]] std::optional<Tensor> fold_node(const Node& node, std::span<const Tensor> inputs);

}  // namespace ingot
