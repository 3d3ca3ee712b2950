// An order of the nodes that follows from the graph alone, not from the file's order of independent
// nodes (docs/decisions/0017-order.md).
#pragma once

#include "compiler/graph/graph.h"

namespace ingot {

// Inputs first, in their order; then what the outputs and next states need, each operand before
// its reader and as late as possible, but for values that are only moved, which are moved at once.
// Nodes that nothing needs are gone.
[[nodiscard]] Graph sort_nodes(const Graph& graph);

}  // namespace ingot
