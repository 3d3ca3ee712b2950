// The order in which a graph's nodes can be computed, and the rules that make it one.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "onnx_frontend/model.h"

namespace ingot {

// Names that a graph takes from outside: read by its nodes (or their graph attributes) or given as
// outputs, and not defined in it.
[[nodiscard]] std::set<std::string> outer_names(const OnnxGraph& graph);
// Everything that a node reads, its graph attributes included.
[[nodiscard]] std::set<std::string> names_read(const OnnxNode& node);

struct NodeOrder {
  std::vector<std::size_t> nodes;   // those that some output needs, in an order that works
  std::vector<std::size_t> unused;  // the others
};

// `given` are the names defined before the first node, `wanted` those that must be computed. Nodes
// keep the file's order where that order works. Fails with Malformed for a name that is defined
// twice or not at all, and for cycles.
[[nodiscard]] Result<NodeOrder> order_nodes(const std::vector<OnnxNode>& nodes,
                                            const std::set<std::string>& given,
                                            const std::vector<std::string>& wanted);

}  // namespace ingot
