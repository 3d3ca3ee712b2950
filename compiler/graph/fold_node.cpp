#include "compiler/graph/fold_node.h"

#include <algorithm>
#include <cstring>

#include "compiler/tensor/exact.h"

namespace ingot {
namespace {

using Position = std::vector<std::int64_t>;

// Calls visit(position, flat index) for every element of `shape` in row-major order, until visit
// returns false. Says whether it never did.
template <typename Visit>
bool for_each_element(const Shape& shape, Visit visit) {
  Position position(shape.size(), 0);
  const std::int64_t count = element_count(shape);
  for (std::int64_t flat = 0; flat < count; ++flat) {
    if (!visit(position, flat)) return false;
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++position[d] < shape[d]) break;
      position[d] = 0;
    }
  }
  return true;
}

std::int64_t flat_index(const Shape& shape, const Position& position) {
  std::int64_t flat = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + position[d];
  return flat;
}

std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

// Folds one node; every overload is one operation.
class Folding {
 public:
  Folding(const Node& node, std::span<const Tensor> inputs)
      : node_(node), inputs_(inputs), size_(size_bytes(node.dtype)) {
    // Above the limit results are only shared, never computed.
    const std::int64_t count = element_count(node.shape);
    if (count <= kFoldLimit) bytes_.resize(static_cast<std::size_t>(count * size_));
  }

  std::optional<Tensor> operator()(const InputOp&) { return std::nullopt; }
  std::optional<Tensor> operator()(const ContractOp&) { return std::nullopt; }
  std::optional<Tensor> operator()(const ConstantOp& op) { return op.tensor; }
  std::optional<Tensor> operator()(const ReshapeOp&) {
    Tensor result = inputs_[0];
    result.shape = node_.shape;
    return result;
  }

  std::optional<Tensor> operator()(const IotaOp& op) {
    return filled([&](const Position& position, std::int64_t) {
      return Scalar::of_int(node_.dtype, position[at(op.axis)]);
    });
  }

  std::optional<Tensor> operator()(const MapOp& op) {
    std::vector<Scalar> operands(inputs_.size());
    return filled([&](const Position&, std::int64_t flat) {
      for (std::size_t i = 0; i < inputs_.size(); ++i) operands[i] = inputs_[i].at(flat);
      return evaluate_exactly(op.op, operands);
    });
  }

  std::optional<Tensor> operator()(const CastOp&) {
    return filled([&](const Position&, std::int64_t flat) {
      return cast_exactly(inputs_[0].at(flat), node_.dtype);
    });
  }

  std::optional<Tensor> operator()(const ViewOp& op) {
    const Shape& from = inputs_[0].shape;
    Position source(from.size());
    for_each_element(node_.shape, [&](const Position& position, std::int64_t flat) {
      bool inside = true;
      for (std::size_t d = 0; d < from.size(); ++d) {
        std::int64_t numerator = op.index[d].offset;
        for (const auto& term : op.index[d].terms) {
          numerator += term.coefficient * position[at(term.axis)];
        }
        source[d] = numerator / op.index[d].divisor;
        inside =
            inside && numerator % op.index[d].divisor == 0 && source[d] >= 0 && source[d] < from[d];
      }
      if (inside) {
        copy(inputs_[0], flat_index(from, source), flat);
      } else if (op.fill) {
        op.fill->store(bytes_.data() + flat * size_);
      }
      return true;
    });
    return made();
  }

  std::optional<Tensor> operator()(const ConcatOp& op) {
    std::int64_t start = 0;
    for (const Tensor& input : inputs_) {
      for_each_element(input.shape, [&](Position position, std::int64_t flat) {
        position[at(op.axis)] += start;
        copy(input, flat, flat_index(node_.shape, position));
        return true;
      });
      start += input.shape[at(op.axis)];
    }
    return made();
  }

  std::optional<Tensor> operator()(const ReduceNodeOp& op) {
    if (is_float(node_.dtype)) return std::nullopt;
    std::vector<Scalar> results(static_cast<std::size_t>(element_count(node_.shape)),
                                identity(op.op, node_.dtype));
    const ScalarOp combine = scalar_op(op.op);
    for_each_element(inputs_[0].shape, [&](const Position& position, std::int64_t flat) {
      Position kept;
      for (std::size_t d = 0; d < position.size(); ++d) {
        if (!std::ranges::binary_search(op.axes, static_cast<int>(d))) kept.push_back(position[d]);
      }
      Scalar& result = results[static_cast<std::size_t>(flat_index(node_.shape, kept))];
      result = *evaluate_exactly(combine, std::vector{result, inputs_[0].at(flat)});
      return true;
    });
    return filled([&](const Position&, std::int64_t flat) {
      return results[static_cast<std::size_t>(flat)];
    });
  }

  std::optional<Tensor> operator()(const GatherOp& op) {
    const Tensor& data = inputs_[0];
    const Tensor& index = inputs_[1];
    const std::size_t axis = at(op.axis);
    const std::size_t index_rank = index.shape.size();
    const bool in_range =
        for_each_element(node_.shape, [&](const Position& position, std::int64_t flat) {
          const auto begin = position.begin() + op.axis;
          const auto end = begin + static_cast<std::ptrdiff_t>(index_rank);
          std::int64_t chosen = index.at(flat_index(index.shape, Position(begin, end))).as_int();
          if (chosen < 0) chosen += data.shape[axis];
          if (chosen < 0 || chosen >= data.shape[axis]) return false;
          Position source(position.begin(), begin);
          source.push_back(chosen);
          source.insert(source.end(), end, position.end());
          copy(data, flat_index(data.shape, source), flat);
          return true;
        });
    return in_range ? made() : std::nullopt;
  }

 private:
  // Movement copies bytes: no bit of a NaN may change.
  void copy(const Tensor& from, std::int64_t from_flat, std::int64_t to_flat) {
    std::memcpy(bytes_.data() + to_flat * size_, from.bytes.data() + from_flat * size_,
                static_cast<std::size_t>(size_));
  }

  std::optional<Tensor> made() { return Tensor::own(node_.dtype, node_.shape, std::move(bytes_)); }

  template <typename Value>
  std::optional<Tensor> filled(Value value) {
    const bool complete =
        for_each_element(node_.shape, [&](const Position& position, std::int64_t flat) {
          const std::optional<Scalar> element = value(position, flat);
          if (element) element->store(bytes_.data() + flat * size_);
          return element.has_value();
        });
    return complete ? made() : std::nullopt;
  }

  const Node& node_;
  std::span<const Tensor> inputs_;
  std::int64_t size_;
  std::vector<std::byte> bytes_;
};

}  // namespace

std::optional<Tensor> fold_node(const Node& node, std::span<const Tensor> inputs) {
  // Constants and reshapes share bytes: they cost nothing at any size.
  const bool shares =
      std::holds_alternative<ConstantOp>(node.op) || std::holds_alternative<ReshapeOp>(node.op);
  if (!shares && element_count(node.shape) > kFoldLimit) return std::nullopt;
  if (std::holds_alternative<ReduceNodeOp>(node.op) &&
      element_count(inputs[0].shape) > kFoldLimit) {
    return std::nullopt;
  }
  return std::visit(Folding(node, inputs), node.op);
}

}  // namespace ingot
