// Moves the elements of constants: no arithmetic, so the bytes are the same on every host.
#include <cstring>

#include "base/check.h"
#include "compiler/program/build_program.h"

namespace ingot {
namespace {

std::vector<std::byte> filled(std::int64_t count, const Scalar& value) {
  const auto size = static_cast<std::size_t>(size_bytes(value.dtype));
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) value.store(&bytes[i * size]);
  return bytes;
}

// Flat input index of one output element, or -1 where the view shows its fill.
std::int64_t source_index(const ViewOp& view, const Shape& input,
                          const std::vector<std::int64_t>& at) {
  std::int64_t flat = 0;
  for (std::size_t d = 0; d < input.size(); ++d) {
    std::int64_t index = view.index[d].offset;
    for (const AffineIndex::Term& term : view.index[d].terms) {
      index += term.coefficient * at[static_cast<std::size_t>(term.axis)];
    }
    if (index % view.index[d].divisor != 0) return -1;
    index /= view.index[d].divisor;
    if (index < 0 || index >= input[d]) return -1;
    flat = flat * input[d] + index;
  }
  return flat;
}

Tensor move_view(const Node& node, const ViewOp& view, const Tensor& input) {
  const std::int64_t count = element_count(node.shape);
  const auto size = static_cast<std::size_t>(size_bytes(node.dtype));
  std::vector<std::byte> bytes = filled(count, view.fill.value_or(Scalar::zero(node.dtype)));
  std::vector<std::int64_t> at(node.shape.size(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t from = source_index(view, input.shape, at);
    if (from >= 0) {
      std::memcpy(&bytes[static_cast<std::size_t>(i) * size],
                  &input.bytes[static_cast<std::size_t>(from) * size], size);
    }
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < node.shape[d]) break;
      at[d] = 0;
    }
  }
  return Tensor::own(node.dtype, node.shape, std::move(bytes));
}

}  // namespace

Tensor materialize(const Graph& graph, ValueId value) {
  const Node& node = graph[value];
  if (const auto* constant = std::get_if<ConstantOp>(&node.op)) return constant->tensor;
  INGOT_CHECK(node.inputs.size() == 1, "only movement of constants can be materialized");
  Tensor input = materialize(graph, node.inputs[0]);
  if (std::holds_alternative<ReshapeOp>(node.op)) {
    input.shape = node.shape;
    return input;
  }
  const auto* view = std::get_if<ViewOp>(&node.op);
  INGOT_CHECK(view != nullptr, "only movement of constants can be materialized");
  return move_view(node, *view, input);
}

}  // namespace ingot
