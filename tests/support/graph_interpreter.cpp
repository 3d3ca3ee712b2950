#include "tests/support/graph_interpreter.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace ingot {
namespace {

using Position = std::vector<std::int64_t>;

// All positions of a shape in row-major order.
std::vector<Position> positions(const Shape& shape) {
  std::vector<Position> all{{}};
  for (const std::int64_t extent : shape) {
    std::vector<Position> longer;
    for (const Position& start : all) {
      for (std::int64_t i = 0; i < extent; ++i) {
        longer.push_back(start);
        longer.back().push_back(i);
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::size_t flat(const Shape& shape, const Position& position) {
  std::int64_t result = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) result = result * shape[d] + position[d];
  return static_cast<std::size_t>(result);
}

// Elements while they are computed; the tensor is made at the end.
struct Elements {
  Shape shape;
  std::vector<Scalar> values;

  explicit Elements(const Tensor& tensor) : shape(tensor.shape) {
    for (std::int64_t i = 0; i < element_count(shape); ++i) values.push_back(tensor.at(i));
  }
  Elements(Shape new_shape, Scalar value)
      : shape(std::move(new_shape)),
        values(static_cast<std::size_t>(element_count(shape)), value) {}

  [[nodiscard]] Scalar& at(const Position& position) { return values[flat(shape, position)]; }
  [[nodiscard]] const Scalar& at(const Position& position) const {
    return values[flat(shape, position)];
  }
  [[nodiscard]] bool contains(const Position& position) const {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (position[d] < 0 || position[d] >= shape[d]) return false;
    }
    return true;
  }
};

Tensor tensor_of(DType dtype, const Elements& elements) {
  std::vector<std::byte> bytes(elements.values.size() *
                               static_cast<std::size_t>(size_bytes(dtype)));
  std::byte* next = bytes.data();
  for (const Scalar& value : elements.values) {
    value.store(next);
    next += size_bytes(dtype);
  }
  return Tensor::own(dtype, elements.shape, std::move(bytes));
}

Scalar truth(bool value) { return Scalar::of_int(DType::Bool, value ? 1 : 0); }

double float_result(ScalarOp op, double a, double b, double c) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  switch (op) {
    case ScalarOp::Neg: return -a;
    case ScalarOp::Abs: return std::fabs(a);
    case ScalarOp::Sqrt: return std::sqrt(a);
    case ScalarOp::Floor: return std::floor(a);
    case ScalarOp::Ceil: return std::ceil(a);
    case ScalarOp::Trunc: return std::trunc(a);
    case ScalarOp::Round: return std::nearbyint(a);
    case ScalarOp::Exp: return std::exp(a);
    case ScalarOp::Log: return std::log(a);
    case ScalarOp::Sin: return std::sin(a);
    case ScalarOp::Cos: return std::cos(a);
    case ScalarOp::Tanh: return std::tanh(a);
    case ScalarOp::Sigmoid:
    case ScalarOp::SigmoidInSteps: return 1 / (1 + std::exp(-a));
    case ScalarOp::Erf: return std::erf(a);
    case ScalarOp::Add: return a + b;
    case ScalarOp::Sub: return a - b;
    case ScalarOp::Mul: return a * b;
    case ScalarOp::Div: return a / b;
    case ScalarOp::Min: return std::isnan(a) || std::isnan(b) ? kNan : std::fmin(a, b);
    case ScalarOp::Max: return std::isnan(a) || std::isnan(b) ? kNan : std::fmax(a, b);
    case ScalarOp::Fma: return std::fma(a, b, c);
    default: INGOT_CHECK(false, "an operation that floats do not have");
  }
  return kNan;
}

Scalar evaluate_float(ScalarOp op, const std::vector<Scalar>& x) {
  const double a = x[0].as_double();
  const double b = x.size() > 1 ? x[1].as_double() : 0;
  const double c = x.size() > 2 ? x[2].as_double() : 0;
  switch (op) {
    case ScalarOp::IsNan: return truth(std::isnan(a));
    case ScalarOp::Eq: return truth(a == b);
    case ScalarOp::Ne: return truth(a != b);
    case ScalarOp::Lt: return truth(a < b);
    case ScalarOp::Le: return truth(a <= b);
    default: return Scalar::of_float(x[0].dtype, float_result(op, a, b, c));
  }
}

// 128 bits hold every 64-bit operand and result, signed or not: only the wrap at the end differs.
__extension__ using Wide = __int128;

Wide wide(const Scalar& scalar) {
  return scalar.dtype == DType::U64 ? Wide{scalar.bits} : Wide{scalar.as_int()};
}

Scalar narrow(DType dtype, Wide value) {
  return Scalar::of_int(dtype, static_cast<std::int64_t>(static_cast<std::uint64_t>(value)));
}

Wide floor_mod(Wide a, Wide b) {
  if (b == 0) return 0;
  const Wide rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Scalar evaluate_integer(ScalarOp op, const std::vector<Scalar>& x) {
  const DType dtype = x[0].dtype;
  const Wide a = wide(x[0]);
  const Wide b = x.size() > 1 ? wide(x[1]) : 0;
  switch (op) {
    case ScalarOp::Neg: return narrow(dtype, -a);
    case ScalarOp::Abs: return narrow(dtype, a < 0 ? -a : a);
    case ScalarOp::Not: return dtype == DType::Bool ? truth(a == 0) : narrow(dtype, ~a);
    case ScalarOp::Add: return narrow(dtype, a + b);
    case ScalarOp::Sub: return narrow(dtype, a - b);
    // Two unsigned 64-bit factors may exceed 127 bits: multiply what will be kept.
    case ScalarOp::Mul: return narrow(dtype, Wide{x[0].bits * x[1].bits});
    case ScalarOp::Div: return narrow(dtype, b == 0 ? Wide{0} : a / b);
    case ScalarOp::FloorDiv: return narrow(dtype, b == 0 ? Wide{0} : (a - floor_mod(a, b)) / b);
    case ScalarOp::FloorMod: return narrow(dtype, floor_mod(a, b));
    case ScalarOp::Min: return narrow(dtype, std::min(a, b));
    case ScalarOp::Max: return narrow(dtype, std::max(a, b));
    case ScalarOp::And: return narrow(dtype, a & b);
    case ScalarOp::Or: return narrow(dtype, a | b);
    case ScalarOp::Xor: return narrow(dtype, a ^ b);
    case ScalarOp::Eq: return truth(a == b);
    case ScalarOp::Ne: return truth(a != b);
    case ScalarOp::Lt: return truth(a < b);
    case ScalarOp::Le: return truth(a <= b);
    default: INGOT_CHECK(false, "an operation that integers do not have");
  }
  return x[0];
}

Scalar evaluate(ScalarOp op, const std::vector<Scalar>& operands) {
  if (op == ScalarOp::Select) return operands[0].as_int() != 0 ? operands[1] : operands[2];
  return is_float(operands[0].dtype) ? evaluate_float(op, operands)
                                     : evaluate_integer(op, operands);
}

Scalar convert(const Scalar& value, DType dtype) {
  if (is_float(value.dtype)) return Scalar::of_float(dtype, value.as_double());
  if (is_float(dtype) && value.dtype == DType::U64) {
    return Scalar::of_float(dtype, value.as_double());
  }
  return Scalar::of_int(dtype, value.as_int());
}

ScalarOp combination(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum: return ScalarOp::Add;
    case ReduceOp::Product: return ScalarOp::Mul;
    case ReduceOp::Max: return ScalarOp::Max;
    case ReduceOp::Min: return ScalarOp::Min;
  }
  return ScalarOp::Add;
}

// The position an affine index names; false if a division is not exact.
bool follow(const std::vector<AffineIndex>& indices, const Position& axes, Position& result) {
  result.clear();
  bool exact = true;
  for (const AffineIndex& index : indices) {
    std::int64_t numerator = index.offset;
    for (const auto& term : index.terms) {
      numerator += term.coefficient * axes[static_cast<std::size_t>(term.axis)];
    }
    exact = exact && numerator % index.divisor == 0;
    result.push_back(numerator / index.divisor);
  }
  return exact;
}

// Computes one node; every overload is one operation.
class NodeRun {
 public:
  NodeRun(const Graph& graph, const Node& node, const NamedTensors& bound, GraphRun& run)
      : graph_(graph), node_(node), bound_(bound), run_(run) {}

  Tensor operator()(const InputOp& op) const {
    if (const auto found = bound_.find(op.name); found != bound_.end()) {
      INGOT_CHECK(found->second.dtype == node_.dtype && found->second.shape == node_.shape,
                  "an input of another type");
      return found->second;
    }
    for (const GraphState& state : graph_.states) {
      if (&graph_[state.state] != &node_) continue;
      return state.initial ? *state.initial : Tensor::splat(node_.shape, Scalar::zero(node_.dtype));
    }
    INGOT_CHECK(false, "an input without a value");
    return {};
  }

  Tensor operator()(const ConstantOp& op) const { return op.tensor; }

  Tensor operator()(const IotaOp& op) const {
    Elements out = zeros();
    for (const Position& place : positions(node_.shape)) {
      out.at(place) = Scalar::of_int(node_.dtype, place[static_cast<std::size_t>(op.axis)]);
    }
    return tensor_of(node_.dtype, out);
  }

  Tensor operator()(const MapOp& op) const {
    std::vector<Elements> in;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) in.push_back(operand(i));
    Elements out = zeros();
    for (std::size_t i = 0; i < out.values.size(); ++i) {
      std::vector<Scalar> operands;
      for (const Elements& elements : in) operands.push_back(elements.values[i]);
      out.values[i] = evaluate(op.op, operands);
    }
    return tensor_of(node_.dtype, out);
  }

  Tensor operator()(const CastOp&) const {
    Elements out = operand(0);
    for (Scalar& value : out.values) value = convert(value, node_.dtype);
    return tensor_of(node_.dtype, out);
  }

  Tensor operator()(const ViewOp& op) const {
    const Elements in = operand(0);
    Elements out = zeros();
    Position source;
    for (const Position& place : positions(node_.shape)) {
      if (follow(op.index, place, source) && in.contains(source)) {
        out.at(place) = in.at(source);
      } else {
        INGOT_CHECK(op.fill.has_value(), "a view without a fill leaves its input");
        out.at(place) = *op.fill;
      }
    }
    return tensor_of(node_.dtype, out);
  }

  Tensor operator()(const ReshapeOp&) const {
    Tensor result = run_[node_.inputs[0]];
    result.shape = node_.shape;
    return result;
  }

  Tensor operator()(const ConcatOp& op) const {
    Elements out = zeros();
    std::int64_t start = 0;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      const Elements in = operand(i);
      for (const Position& place : positions(in.shape)) {
        Position target = place;
        target[static_cast<std::size_t>(op.axis)] += start;
        out.at(target) = in.at(place);
      }
      start += in.shape[static_cast<std::size_t>(op.axis)];
    }
    return tensor_of(node_.dtype, out);
  }

  // Float sums and products stay in double and are rounded once.
  Tensor operator()(const ReduceNodeOp& op) const {
    const Elements in = operand(0);
    const DType precise = is_float(node_.dtype) ? DType::F64 : node_.dtype;
    Elements out(node_.shape, identity(op.op, precise));
    for (const Position& place : positions(in.shape)) {
      Position target;
      for (std::size_t d = 0; d < place.size(); ++d) {
        if (std::ranges::find(op.axes, static_cast<int>(d)) == op.axes.end()) {
          target.push_back(place[d]);
        }
      }
      Scalar& result = out.at(target);
      result = evaluate(combination(op.op), {result, convert(in.at(place), precise)});
    }
    for (Scalar& value : out.values) value = convert(value, node_.dtype);
    return tensor_of(node_.dtype, out);
  }

  Tensor operator()(const ContractOp& op) const {
    std::vector<Elements> in;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) in.push_back(operand(i));
    const DType precise = is_float(node_.dtype) ? DType::F64 : node_.dtype;
    Elements out(node_.shape, Scalar::zero(precise));
    Position target, source;
    for (const Position& place : positions(op.extents)) {
      Scalar product = Scalar::of_int(precise, 1);
      for (std::size_t i = 0; i < in.size(); ++i) {
        const bool inside = follow(op.operands[i], place, source) && in[i].contains(source);
        const Scalar factor =
            inside ? convert(in[i].at(source), node_.dtype) : Scalar::zero(node_.dtype);
        product = evaluate(ScalarOp::Mul, {product, convert(factor, precise)});
      }
      follow(op.output, place, target);
      out.at(target) = evaluate(ScalarOp::Add, {out.at(target), product});
    }
    for (Scalar& value : out.values) value = convert(value, node_.dtype);
    return tensor_of(node_.dtype, out);
  }

  Tensor operator()(const GatherOp& op) const {
    const Elements data = operand(0);
    const Elements index = operand(1);
    const std::int64_t extent = data.shape[static_cast<std::size_t>(op.axis)];
    const auto index_rank = static_cast<std::ptrdiff_t>(index.shape.size());
    Elements out = zeros();
    for (const Position& place : positions(node_.shape)) {
      const auto begin = place.begin() + op.axis;
      std::int64_t chosen = index.at(Position(begin, begin + index_rank)).as_int();
      INGOT_CHECK(!op.in_range || (chosen >= 0 && chosen < extent), "an index is not in range");
      if (chosen < 0) chosen += extent;
      if (chosen < 0 || chosen >= extent) run_.index_clamped = true;
      Position source(place.begin(), begin);
      source.push_back(std::clamp<std::int64_t>(chosen, 0, extent - 1));
      source.insert(source.end(), begin + index_rank, place.end());
      out.at(place) = data.at(source);
    }
    return tensor_of(node_.dtype, out);
  }

 private:
  [[nodiscard]] Elements zeros() const { return Elements(node_.shape, Scalar::zero(node_.dtype)); }
  [[nodiscard]] Elements operand(std::size_t i) const { return Elements(run_[node_.inputs[i]]); }

  const Graph& graph_;
  const Node& node_;
  const NamedTensors& bound_;
  GraphRun& run_;
};

}  // namespace

GraphRun interpret_graph(const Graph& graph, const NamedTensors& inputs) {
  GraphRun run;
  for (const Node& node : graph.nodes) {
    run.values.push_back(std::visit(NodeRun(graph, node, inputs, run), node.op));
  }
  return run;
}

NamedTensors next_states(const Graph& graph, const GraphRun& run) {
  NamedTensors states;
  for (const GraphState& state : graph.states) {
    Tensor next = run[state.next];
    if (state.entry) {
      const Tensor& ring = run[state.state];
      const std::int64_t entries = ring.shape[0];
      const std::int64_t place = (run[*state.entry].at(0).as_int() % entries + entries) % entries;
      std::vector<std::byte> bytes(ring.bytes.begin(), ring.bytes.end());
      std::ranges::copy(next.bytes, bytes.begin() + place * std::ssize(next.bytes));
      next = Tensor::own(ring.dtype, ring.shape, std::move(bytes));
    }
    states[std::get<InputOp>(graph[state.state].op).name] = std::move(next);
  }
  return states;
}

NamedTensors interpret_outputs(const Graph& graph, const NamedTensors& inputs) {
  const GraphRun run = interpret_graph(graph, inputs);
  NamedTensors outputs;
  for (const GraphOutput& output : graph.outputs) outputs[output.name] = run[output.value];
  return outputs;
}

std::vector<double> doubles(const Tensor& tensor) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < element_count(tensor.shape); ++i) {
    result.push_back(tensor.at(i).as_double());
  }
  return result;
}

std::vector<std::int64_t> ints(const Tensor& tensor) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < element_count(tensor.shape); ++i) {
    result.push_back(tensor.at(i).as_int());
  }
  return result;
}

}  // namespace ingot
