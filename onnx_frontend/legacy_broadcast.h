// Broadcasting as operators before opset 7 describe it, by attributes.
#pragma once

#include "onnx_frontend/node_import.h"

namespace ingot {

// `broadcast` allows b to have the shape of a contiguous part of a's dimensions: the last ones, or
// those from `axis` on.
struct LegacyBroadcast {
  bool applies = false;  // the operator is of an opset that has the attributes
  bool allowed = false;
  std::optional<std::int64_t> axis;
};

// Reads the attributes if the node is of an opset below 7.
[[nodiscard]] LegacyBroadcast read_legacy_broadcast(NodeImport& node);
// b with dimensions of 1 appended, so that NumPy's rules align it as the attributes say.
[[nodiscard]] Result<ValueId> align_legacy(NodeImport& node, const LegacyBroadcast& legacy,
                                           ValueId a, ValueId b);

}  // namespace ingot
