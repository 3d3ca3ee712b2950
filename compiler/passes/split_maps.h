// Maps of concatenations become concatenations of maps.
//
// Needs:  a valid graph without nodes that nothing reads
// Leaves: no map or cast reads a concatenation that nothing else reads, if its parts are inputs or
//         read by nothing else, and its other operands are inputs, constants, movement of them,
//         such concatenations or maps of them. (A concatenation that is a part of one stays whole.)
// Keeps:  inputs, outputs, states, transforms, cameras; every element's operations in their order
// Why here: before the plan, which then writes results of maps where the concatenation lies, each
//         by the kernel that made the part: no part is copied first
#pragma once

#include "compiler/graph/graph.h"

namespace ingot {

[[nodiscard]] Graph split_maps(const Graph& graph);

}  // namespace ingot
