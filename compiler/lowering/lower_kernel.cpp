#include "compiler/lowering/lower_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "base/check.h"
#include "compiler/kernel/index_arithmetic.h"

namespace ingot {
namespace {

using Coordinates = std::vector<ExprId>;

class Lowering {
 public:
  Lowering(const Plan& plan, const PlanKernel& kernel)
      : plan_(plan),
        graph_(*plan.graph),
        root_(kernel.root),
        destination_(kernel.destination),
        entry_(kernel.entry),
        computes_root_(computes_root(plan, kernel)) {
    out_.kernel.name = kernel.name;
  }

  Result<LoweredKernel> run() {
    const PlanBuffer& buffer = plan_.buffers[destination_.buffer];
    add_parameter(destination_.buffer, "out", Access::Write);
    const Coordinates coordinates = output_coordinates();
    const ExprId value =
        computes_root_ ? compute(root_, coordinates, ExprId{}) : read(root_, coordinates, ExprId{});
    RangedStore store;
    store.parameter = 0;
    store.value = value;
    for (std::size_t d = 0; d < coordinates.size(); ++d) {
      store.coordinates.push_back(pool().add(coordinates[d], pool().index(destination_.offset[d])));
    }
    if (entry_) store.coordinates[0] = ring_entry(buffer.shape[0]);
    INGOT_CHECK(pool()[value].dtype == buffer.dtype, "kernel value and destination differ in type");
    out_.kernel.stores.push_back(std::move(store));
    count_flops();
    return std::move(out_);
  }

 private:
  ExprPool& pool() { return out_.kernel.pool; }

  std::uint32_t add_range(std::string name, std::int64_t extent, bool is_reduce) {
    out_.kernel.ranges.push_back(Range{std::move(name), extent, is_reduce});
    return static_cast<std::uint32_t>(out_.kernel.ranges.size() - 1);
  }

  ExprId range_or_zero(std::string name, std::int64_t extent, bool is_reduce) {
    if (extent == 1) return pool().index(0);
    return pool().variable(add_range(std::move(name), extent, is_reduce));
  }

  // The contraction at the root of an elementwise region, if there is one: its axes then are the
  // ranges.
  const ContractOp* core_contraction(ValueId value, ValueId& core) const {
    const Node& node = graph_[value];
    if (const auto* contract = std::get_if<ContractOp>(&node.op)) {
      core = value;
      return contract;
    }
    if (!std::holds_alternative<MapOp>(node.op) && !std::holds_alternative<CastOp>(node.op)) {
      return nullptr;
    }
    for (ValueId input : node.inputs) {
      if (plan_.placed.contains(input)) continue;
      if (const ContractOp* found = core_contraction(input, core)) return found;
    }
    return nullptr;
  }

  Coordinates output_coordinates() {
    const Shape& shape = graph_[root_].shape;
    const ContractOp* contract = computes_root_ ? core_contraction(root_, core_) : nullptr;
    Coordinates coordinates;
    if (contract == nullptr) {
      for (std::size_t d = 0; d < shape.size(); ++d) {
        coordinates.push_back(range_or_zero(fmt::format("i{}", d), shape[d], false));
      }
      return coordinates;
    }
    for (int axis = 0; axis < contract->output_axes; ++axis) {
      axes_.push_back(range_or_zero(fmt::format("a{}", axis), extent(*contract, axis), false));
    }
    for (const AffineIndex& index : contract->output) {
      coordinates.push_back(affine(index, axes_));
    }
    core_coordinates_ = coordinates;
    return coordinates;
  }

  // Inside the ring whatever its place holds.
  ExprId ring_entry(std::int64_t entries) {
    const Coordinates first(graph_[*entry_].shape.size(), pool().index(0));
    return pool().floor_mod(pool().cast(read(*entry_, first, ExprId{}), DType::I64), entries);
  }

  static std::int64_t extent(const ContractOp& contract, int axis) {
    return contract.extents[static_cast<std::size_t>(axis)];
  }

  // Numerator of an affine index; the divisor is the caller's.
  ExprId affine(const AffineIndex& index, const Coordinates& axes) {
    ExprId sum = pool().index(index.offset);
    for (const AffineIndex::Term& term : index.terms) {
      sum =
          pool().add(sum, pool().mul(axes[static_cast<std::size_t>(term.axis)], term.coefficient));
    }
    return sum;
  }

  IndexRange range_of(ExprId index) { return simplifier_.bounds(index); }
  ExprId simplify(ExprId index) { return simplifier_.simplify(index); }

  // lowest <= index <= highest, as a gate; invalid if bounds prove it.
  ExprId inside(ExprId index, std::int64_t lowest, std::int64_t highest, ExprId gate) {
    const IndexRange range = range_of(index);
    auto le = [&](ExprId a, ExprId b) {
      const std::array<ExprId, 2> operands{a, b};
      gate = pool().logical_and(gate, pool().scalar(ScalarOp::Le, operands));
    };
    if (range.min < lowest) le(pool().index(lowest), index);
    if (range.max > highest) le(index, pool().index(highest));
    return gate;
  }

  std::uint32_t add_parameter(std::uint32_t buffer, std::string name, Access access) {
    const PlanBuffer& b = plan_.buffers[buffer];
    out_.kernel.parameters.push_back(
        KernelParameter{std::move(name), b.dtype, b.shape, b.layout, access});
    out_.buffers.push_back(buffer);
    out_.is_constant.push_back(b.kind == BufferKind::Constant);
    return static_cast<std::uint32_t>(out_.kernel.parameters.size() - 1);
  }

  std::uint32_t parameter_of(std::uint32_t buffer) {
    for (std::uint32_t p = 1; p < out_.buffers.size(); ++p) {
      if (out_.buffers[p] == buffer) return p;
    }
    return add_parameter(buffer, fmt::format("in{}", out_.buffers.size() - 1), Access::Read);
  }

  // Element of a placed value. With `outside_is` the coordinates may leave the value, which then
  // reads as that; otherwise the gate alone keeps the read inside.
  ExprId load(const Placement& placement, ValueId value, const Coordinates& coordinates,
              ExprId gate, std::optional<Scalar> outside_is = std::nullopt) {
    const PlanBuffer& buffer = plan_.buffers[placement.buffer];
    const Shape& shape = graph_[value].shape;
    Coordinates absolute;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      ExprId coordinate = simplify(coordinates[d]);
      if (outside_is) {
        std::int64_t before = 0, after = 0;
        const bool edges_match = placement.offset[d] == 0 && buffer.shape[d] == shape[d];
        if (buffer.zero_before && edges_match && *outside_is == Scalar::zero(outside_is->dtype)) {
          before = buffer.layout.before[d];
          after = buffer.layout.after[d];
        }
        const IndexRange range = range_of(coordinate);
        const bool halo_covers = range.within(-before, shape[d] - 1 + after);
        if (!halo_covers) gate = inside(coordinate, 0, shape[d] - 1, gate);
      }
      absolute.push_back(pool().add(coordinate, pool().index(placement.offset[d])));
    }
    const std::uint32_t parameter = parameter_of(placement.buffer);
    if (!gate.valid()) return pool().load(parameter, buffer.dtype, std::move(absolute));
    const Scalar fill = outside_is.value_or(Scalar::zero(buffer.dtype));
    return pool().load_gated(parameter, buffer.dtype, std::move(absolute), gate, fill);
  }

  const Placement* placement_of(ValueId value) const {
    return ingot::placement_of(plan_, root_, value);
  }

  // Value at coordinates that lie inside its shape wherever `gate` holds (an invalid gate: always).
  ExprId read(ValueId value, const Coordinates& coordinates, ExprId gate) {
    const Node& node = graph_[value];
    if (const auto* constant = std::get_if<ConstantOp>(&node.op)) {
      if (element_count(node.shape) == 1) return pool().constant(constant->tensor.at(0));
    }
    if (const Placement* placement = placement_of(value)) {
      return load(*placement, value, coordinates, gate);
    }
    return compute(value, coordinates, gate);
  }

  ExprId compute(ValueId value, const Coordinates& coordinates, ExprId gate) {
    std::tuple key{value, coordinates, gate};
    if (const auto known = memo_.find(key); known != memo_.end()) return known->second;
    const ExprId result = std::visit(
        [&](const auto& op) { return lower(op, value, graph_[value], coordinates, gate); },
        graph_[value].op);
    memo_.emplace(std::move(key), result);
    return result;
  }

  ExprId lower(const InputOp&, ValueId, const Node&, const Coordinates&, ExprId) {
    check_failed(__FILE__, __LINE__, "input", "an input has no buffer");
  }
  ExprId lower(const ConstantOp&, ValueId, const Node&, const Coordinates&, ExprId) {
    check_failed(__FILE__, __LINE__, "constant", "a constant has no buffer");
  }
  ExprId lower(const ConcatOp&, ValueId, const Node&, const Coordinates&, ExprId) {
    check_failed(__FILE__, __LINE__, "concat", "a concatenation has no buffer");
  }

  // Through 32 bits where the extent allows: vector units convert those to floats.
  ExprId lower(const IotaOp& op, ValueId, const Node& node, const Coordinates& at, ExprId) {
    const ExprId index = at[static_cast<std::size_t>(op.axis)];
    if (node.dtype == DType::I64) return index;
    return pool().cast(index, node.dtype);
  }

  ExprId lower(const MapOp& op, ValueId, const Node& node, const Coordinates& at, ExprId gate) {
    std::vector<ExprId> operands;
    for (ValueId input : node.inputs) operands.push_back(read(input, at, gate));
    return pool().scalar(op.op, operands, node.strict);
  }

  ExprId lower(const CastOp&, ValueId, const Node& node, const Coordinates& at, ExprId gate) {
    return pool().cast(read(node.inputs[0], at, gate), node.dtype);
  }

  ExprId lower(const ViewOp& op, ValueId, const Node& node, const Coordinates& at, ExprId gate) {
    const ValueId input = node.inputs[0];
    const Shape& shape = graph_[input].shape;
    Coordinates inner;
    ExprId exact;  // divisions that must have no remainder
    for (const AffineIndex& index : op.index) {
      ExprId coordinate = affine(index, at);
      if (index.divisor != 1) {
        const std::array<ExprId, 2> operands{simplify(pool().floor_mod(coordinate, index.divisor)),
                                             pool().index(0)};
        exact = pool().logical_and(exact, pool().scalar(ScalarOp::Eq, operands));
        coordinate = pool().floor_div(coordinate, index.divisor);
      }
      inner.push_back(simplify(coordinate));
    }
    if (!op.fill) return read(input, inner, gate);
    const Placement* placement = placement_of(input);
    if (placement != nullptr && element_count(shape) > 1) {
      return load(*placement, input, inner, pool().logical_and(gate, exact), *op.fill);
    }
    ExprId within = exact;
    for (std::size_t d = 0; d < inner.size(); ++d)
      within = inside(inner[d], 0, shape[d] - 1, within);
    if (!within.valid()) return read(input, inner, gate);
    const ExprId value = read(input, inner, pool().logical_and(gate, within));
    const std::array<ExprId, 3> operands{within, value, pool().constant(*op.fill)};
    return pool().scalar(ScalarOp::Select, operands, node.strict);
  }

  // Groups of dimensions with equal products map onto each other; divisions stay inside a group.
  ExprId lower(const ReshapeOp&, ValueId, const Node& node, const Coordinates& at, ExprId gate) {
    const Shape& outer = node.shape;
    const Shape& shape = graph_[node.inputs[0]].shape;
    Coordinates inner(shape.size(), pool().index(0));
    std::size_t o = 0, i = 0;
    while (o < outer.size() || i < shape.size()) {
      const std::size_t first_outer = o, first_inner = i;
      std::int64_t outer_product = 1, inner_product = 1;
      if (o < outer.size()) outer_product = outer[o++];
      if (i < shape.size()) inner_product = shape[i++];
      while (outer_product != inner_product) {
        if (outer_product < inner_product && o < outer.size()) {
          outer_product *= outer[o++];
        } else {
          inner_product *= shape[i++];
        }
      }
      ExprId linear = pool().index(0);
      for (std::size_t d = first_outer; d < o; ++d) {
        linear = pool().add(pool().mul(linear, outer[d]), at[d]);
      }
      std::int64_t stride = inner_product;
      for (std::size_t d = first_inner; d < i; ++d) {
        if (shape[d] == 0) break;
        stride /= shape[d];
        ExprId coordinate = stride == 1 ? linear : pool().floor_div(linear, stride);
        if (d != first_inner) coordinate = pool().floor_mod(coordinate, shape[d]);
        inner[d] = simplify(coordinate);
      }
    }
    return read(node.inputs[0], inner, gate);
  }

  ExprId lower(const ReduceNodeOp& op, ValueId, const Node& node, const Coordinates& at,
               ExprId gate) {
    const ValueId input = node.inputs[0];
    const Shape& shape = graph_[input].shape;
    for (int axis : op.axes) {
      if (shape[static_cast<std::size_t>(axis)] == 0) {
        return pool().constant(identity(op.op, node.dtype));
      }
    }
    Coordinates inner;
    std::vector<std::uint32_t> ranges;
    std::size_t kept = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const bool reduced = std::ranges::find(op.axes, static_cast<int>(d)) != op.axes.end();
      if (!reduced) {
        inner.push_back(at[kept++]);
      } else if (shape[d] == 1) {
        inner.push_back(pool().index(0));
      } else {
        ranges.push_back(add_range(fmt::format("r{}", d), shape[d], true));
        inner.push_back(pool().variable(ranges.back()));
      }
    }
    const ExprId value = read(input, inner, gate);
    if (ranges.empty()) return value;
    return pool().reduce(combine(op.op), value, std::move(ranges), node.strict);
  }

  static Combine combine(ReduceOp op) {
    switch (op) {
      case ReduceOp::Sum: return Combine::Sum;
      case ReduceOp::Product: return Combine::Product;
      case ReduceOp::Max: return Combine::Max;
      case ReduceOp::Min: return Combine::Min;
    }
    check_failed(__FILE__, __LINE__, "op", "unknown reduction");
  }

  ExprId lower(const ContractOp& op, ValueId value, const Node& node, const Coordinates& at,
               ExprId gate) {
    INGOT_CHECK(value == core_ && at == core_coordinates_ && !gate.valid(),
                "a contraction is computed only at its own kernel's coordinates");
    if (std::ranges::find(op.extents, 0) != op.extents.end()) {
      return pool().constant(Scalar::zero(node.dtype));
    }
    Coordinates axes = axes_;
    std::vector<std::uint32_t> ranges;
    for (int axis = op.output_axes; axis < static_cast<int>(op.extents.size()); ++axis) {
      axes.push_back(range_or_zero(fmt::format("k{}", axis), extent(op, axis), true));
      if (extent(op, axis) != 1) {
        ranges.push_back(static_cast<std::uint32_t>(out_.kernel.ranges.size() - 1));
      }
    }
    std::vector<ExprId> factors;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      factors.push_back(pool().cast(operand(op.operands[k], node.inputs[k], axes), node.dtype));
    }
    ExprId product = factors[0];
    for (std::size_t k = 1; k < factors.size(); ++k) {
      const std::array<ExprId, 2> operands{product, factors[k]};
      product = pool().scalar(ScalarOp::Mul, operands, node.strict);
    }
    if (ranges.empty()) return product;
    return pool().reduce(Combine::Sum, product, std::move(ranges), node.strict);
  }

  // An operand read outside its shape counts as 0.
  ExprId operand(const std::vector<AffineIndex>& index, ValueId value, const Coordinates& axes) {
    const Shape& shape = graph_[value].shape;
    Coordinates coordinates;
    ExprId exact;
    for (const AffineIndex& affine_index : index) {
      ExprId coordinate = affine(affine_index, axes);
      if (affine_index.divisor != 1) {
        const std::array<ExprId, 2> operands{
            simplify(pool().floor_mod(coordinate, affine_index.divisor)), pool().index(0)};
        exact = pool().logical_and(exact, pool().scalar(ScalarOp::Eq, operands));
        coordinate = pool().floor_div(coordinate, affine_index.divisor);
      }
      coordinates.push_back(simplify(coordinate));
    }
    const Scalar zero = Scalar::zero(graph_[value].dtype);
    const Placement* placement = placement_of(value);
    if (placement != nullptr && element_count(shape) > 1) {
      return load(*placement, value, coordinates, exact, zero);
    }
    ExprId within = exact;
    for (std::size_t d = 0; d < coordinates.size(); ++d) {
      within = inside(coordinates[d], 0, shape[d] - 1, within);
    }
    const ExprId inner = read(value, coordinates, within);
    if (!within.valid()) return inner;
    const std::array<ExprId, 3> operands{within, inner, pool().constant(zero)};
    return pool().scalar(ScalarOp::Select, operands);
  }

  ExprId lower(const GatherOp& op, ValueId, const Node& node, const Coordinates& at, ExprId gate) {
    const Shape& data = graph_[node.inputs[0]].shape;
    const auto axis = static_cast<std::size_t>(op.axis);
    const std::size_t index_rank = graph_[node.inputs[1]].shape.size();
    const auto first = at.begin() + op.axis;
    const Coordinates index_at(first, first + static_cast<std::ptrdiff_t>(index_rank));
    ExprId index = pool().cast(read(node.inputs[1], index_at, gate), DType::I64);
    if (!op.in_range && !range_of(index).within(0, data[axis] - 1)) {
      const std::array<ExprId, 2> less{index, pool().index(0)};
      const std::array<ExprId, 3> wrapped{pool().scalar(ScalarOp::Lt, less),
                                          pool().add(index, pool().index(data[axis])), index};
      index = pool().clamp_index(pool().scalar(ScalarOp::Select, wrapped), data[axis]);
    }
    Coordinates inner(at.begin(), first);
    inner.push_back(index);
    inner.insert(inner.end(), first + static_cast<std::ptrdiff_t>(index_rank), at.end());
    return read(node.inputs[0], inner, gate);
  }

  // Float and integer arithmetic per output element; index arithmetic is not counted.
  void count_flops() {
    const RangedKernel& kernel = out_.kernel;
    std::uint64_t outputs = 1;
    for (const Range& range : kernel.ranges) {
      if (!range.is_reduce) outputs *= static_cast<std::uint64_t>(range.extent);
    }
    std::vector<std::uint64_t> turns(kernel.pool.size(), 0);
    turns[kernel.stores[0].value.index] = outputs;
    for (std::uint32_t i = static_cast<std::uint32_t>(kernel.pool.size()); i-- > 0;) {
      const Expr& expr = kernel.pool[ExprId{i}];
      if (turns[i] == 0) continue;
      std::uint64_t inner = turns[i];
      if (expr.kind == ExprKind::Reduce) {
        for (std::uint32_t range : expr.ranges) {
          inner *= static_cast<std::uint64_t>(kernel.ranges[range].extent);
        }
        out_.flops += inner;
      } else if (expr.kind == ExprKind::Scalar) {
        out_.flops += turns[i] * static_cast<std::uint64_t>(operations(expr.op));
      } else if (expr.kind == ExprKind::Load) {
        continue;
      }
      for (ExprId operand : expr.operands) {
        turns[operand.index] = std::max(turns[operand.index], inner);
      }
    }
  }

  const Plan& plan_;
  const Graph& graph_;
  const ValueId root_;
  const Placement& destination_;
  const std::optional<ValueId>& entry_;
  const bool computes_root_;
  LoweredKernel out_;
  ValueId core_;
  Coordinates axes_, core_coordinates_;
  std::map<std::tuple<ValueId, Coordinates, ExprId>, ExprId> memo_;
  IndexSimplifier simplifier_{
      out_.kernel.pool, [this](std::uint32_t range) { return out_.kernel.ranges[range].extent; }};
};

}  // namespace

Result<LoweredKernel> lower_kernel(const Plan& plan, const PlanKernel& kernel) {
  return Lowering(plan, kernel).run();
}

}  // namespace ingot
