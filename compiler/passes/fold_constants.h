// Computes what depends on no input while compiling, with strictly compiled kernels.
//
// Needs:  a valid graph
// Leaves: no map, cast, reduce, contraction, gather or concatenation has only constant operands;
//         their values are constants. Movement of constants stays movement.
// Keeps:  inputs, outputs, states, the order of nodes that remain
// Why here: first of all, so that every later pass sees constants as constants.
#pragma once

#include "compiler/code_generator.h"
#include "compiler/graph/graph.h"

namespace ingot {

[[nodiscard]] Result<Graph> fold_constants(const Graph& graph, KernelRunner& runner);

}  // namespace ingot
