// The graph with wider floats.
//
// Both passes
// Need:   a valid graph
// Leave:  strict nodes as they are, since their bits are the definition; inputs, constants, states
//         and outputs in their declared types
// Keep:   outputs, states, transforms and cameras in order, input names
#pragma once

#include "compiler/graph/graph.h"

namespace ingot {

// Every float value that is not strict is f64: for reference evaluation.
[[nodiscard]] Graph to_double(const Graph& graph);

// Every f16 and bf16 value that is not strict is f32, so that half precision is a form of storage:
// weights keep two bytes and are converted in registers, and nothing between inputs and outputs is
// rounded to a half.
[[nodiscard]] Graph widen_halves(const Graph& graph);

}  // namespace ingot
