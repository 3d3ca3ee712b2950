// The graph in double precision, for reference evaluation.
//
// Needs:  a valid graph
// Leaves: every float value that is not strict is f64; strict nodes keep their type, since their
//         bits are the definition; inputs, states and outputs keep their declared types
// Keeps:  outputs and states in order, input names
#pragma once

#include "compiler/graph/graph.h"

namespace ingot {

[[nodiscard]] Graph to_double(const Graph& graph);

}  // namespace ingot
