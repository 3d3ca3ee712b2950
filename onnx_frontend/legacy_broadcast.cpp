#include "onnx_frontend/legacy_broadcast.h"

#include <fmt/format.h>

#include <algorithm>

namespace ingot {

LegacyBroadcast read_legacy_broadcast(NodeImport& node) {
  LegacyBroadcast legacy;
  if (node.opset >= 7) return legacy;
  legacy.applies = true;
  legacy.allowed = node.attributes.flag("broadcast", false);
  if (node.attributes.has("axis")) legacy.axis = node.attributes.integer("axis", 0);
  node.attributes.ignore({"consumed_inputs"});
  return legacy;
}

Result<ValueId> align_legacy(NodeImport& node, const LegacyBroadcast& legacy, ValueId a,
                             ValueId b) {
  if (!legacy.applies) return b;
  const Shape& whole = node.shape(a);
  const Shape& part = node.shape(b);
  if (whole == part) return b;
  const auto misfit = [&] {
    return node.malformed(fmt::format("shapes {} and {} do not fit{}", shape_text(whole),
                                      shape_text(part),
                                      legacy.allowed ? "" : " without broadcast=1"));
  };
  if (!legacy.allowed) return misfit();
  if (element_count(part) == 1) return node.builder.reshape(b, {});
  if (part.size() > whole.size()) return misfit();
  std::size_t start = whole.size() - part.size();
  if (legacy.axis) {
    INGOT_ASSIGN(const int axis, node.axis(*legacy.axis, whole.size()));
    start = static_cast<std::size_t>(axis);
  }
  if (start + part.size() > whole.size() ||
      !std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(start))) {
    return misfit();
  }
  Shape aligned = part;
  aligned.resize(whole.size() - start, 1);
  return node.builder.reshape(b, aligned);
}

}  // namespace ingot
