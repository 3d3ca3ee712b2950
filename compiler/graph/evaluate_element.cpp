#include "compiler/graph/evaluate_element.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "base/check.h"
#include "compiler/tensor/scalar_arithmetic.h"

namespace ingot {
namespace {

using Coordinates = ElementEvaluator::Coordinates;

double number(std::uint64_t bits) { return std::bit_cast<double>(bits); }

Element undecided() { return Element{.undecided = true}; }
Element exact(std::uint64_t bits) { return Element{.bits = bits}; }

// Half of the distance from 1 to the next number.
double unit(DType dtype) {
  switch (dtype) {
    case DType::F16: return 0x1p-11;
    case DType::BF16: return 0x1p-8;
    case DType::F32: return 0x1p-24;
    default: return 0x1p-53;
  }
}
double smallest_normal(DType dtype) {
  switch (dtype) {
    case DType::F16: return 0x1p-14;
    case DType::BF16:
    case DType::F32: return 0x1p-126;
    default: return std::numeric_limits<double>::min();
  }
}
double largest(DType dtype) {
  switch (dtype) {
    case DType::F16: return 65504;
    case DType::BF16: return 0x1.FEp127;
    case DType::F32: return static_cast<double>(std::numeric_limits<float>::max());
    default: return std::numeric_limits<double>::max();
  }
}

// The error of an operation that has no bound: next to a pole, say.
constexpr double kUnbounded = std::numeric_limits<double>::quiet_NaN();

// A float result of type `dtype`, given the error that its operands bring and that of the operation
// itself. Results that are too large for the type are infinite.
Element rounded(DType dtype, double value, double error) {
  if (std::isnan(error)) return undecided();
  Element result{std::bit_cast<std::uint64_t>(value), error};
  if (!std::isfinite(value)) {
    result.error = 0;
    return result;
  }
  const double limit = largest(dtype);
  if (std::abs(value) + error < limit) return result;
  if (dtype == DType::F64 || std::abs(value) - error < limit * (1 + unit(dtype))) {
    return undecided();
  }
  const double infinity = std::numeric_limits<double>::infinity();
  return exact(std::bit_cast<std::uint64_t>(value < 0 ? -infinity : infinity));
}

double step(ScalarOp op, double value) {
  return number(apply(op, DType::F64, std::bit_cast<std::uint64_t>(value)));
}

bool is_step(ScalarOp op) {
  return op == ScalarOp::Floor || op == ScalarOp::Ceil || op == ScalarOp::Trunc ||
         op == ScalarOp::Round;
}

// Error of an operation whose operands are as far off as they say.
// Formulas: first-order propagation, with the worst slope over the operands' intervals.
double carried_error(ScalarOp op, double result, const Element& a, const Element& b,
                     const Element& c) {
  const double x = std::abs(a.as_double()), y = std::abs(b.as_double());
  switch (op) {
    case ScalarOp::Neg:
    case ScalarOp::Abs: return a.error;
    case ScalarOp::Add:
    case ScalarOp::Sub: return a.error + b.error;
    case ScalarOp::Mul: return x * b.error + y * a.error + a.error * b.error;
    case ScalarOp::Fma: return x * b.error + y * a.error + a.error * b.error + c.error;
    case ScalarOp::Div:
      if (a.error == 0 && b.error == 0) return 0;
      if (y <= b.error) return kUnbounded;
      return (a.error + std::abs(result) * b.error) / (y - b.error);
    case ScalarOp::Min:
    case ScalarOp::Max: return std::max(a.error, b.error);
    case ScalarOp::Sqrt:
      if (a.error == 0) return 0;
      return x <= a.error ? kUnbounded : a.error / (2 * std::sqrt(x - a.error));
    case ScalarOp::Exp: return a.error == 0 ? 0 : std::exp(a.as_double() + a.error) - result;
    case ScalarOp::Log:
      if (a.error == 0) return 0;
      return x <= a.error ? kUnbounded : a.error / (x - a.error);
    case ScalarOp::Sin:
    case ScalarOp::Cos:
    case ScalarOp::Tanh: return a.error;
    case ScalarOp::Sigmoid:
    case ScalarOp::SigmoidInSteps: return a.error / 4;
    case ScalarOp::Erf: return 1.13 * a.error;
    default: return 0;
  }
}

// Whether the type holds the sum or product as it is, so that no implementation rounds: quantized
// values are whole numbers, and a rounding error next to one would leave its truncation open.
bool is_exact(ScalarOp op, DType dtype, double result, const Element& a, const Element& b) {
  if (a.error != 0 || b.error != 0) return false;
  const auto held = convert(DType::F64, dtype, std::bit_cast<std::uint64_t>(result));
  if (number(held) != result) return false;
  const double x = a.as_double(), y = b.as_double();
  switch (op) {
    case ScalarOp::Add: return result - x == y && result - y == x;
    case ScalarOp::Sub: return x - result == y && result + y == x;
    case ScalarOp::Mul: return std::fma(x, y, -result) == 0;
    default: return false;
  }
}

// What the operation adds of its own. Sums may be regrouped with those around them: not the result
// counts but the terms.
double own_error(ScalarOp op, DType dtype, bool strict, double result, const Element& a,
                 const Element& b, const Element& c) {
  const double u = unit(dtype);
  const double lost = smallest_normal(dtype);  // subnormal results may become 0
  // Bounded functions lose a share of 1 where their own steps do.
  if (is_transcendental(op)) {
    const double scale = op == ScalarOp::Exp ? std::abs(result) : std::max(1.0, std::abs(result));
    return 16 * u * scale + lost;
  }
  if (strict && a.error == 0 && b.error == 0) return 0;
  if (is_exact(op, dtype, result, a, b)) return 0;
  const double x = std::abs(a.as_double()), y = std::abs(b.as_double());
  switch (op) {
    case ScalarOp::Add:
    case ScalarOp::Sub: return 4 * u * (x + y) + lost;
    case ScalarOp::Fma: return 4 * u * (x * y + std::abs(c.as_double())) + lost;
    case ScalarOp::Mul:
    case ScalarOp::Div:
    case ScalarOp::Sqrt: return 4 * u * std::abs(result) + lost;
    default: return 0;
  }
}

Element compare(ScalarOp op, const Element& a, const Element& b) {
  const double error = a.error + b.error;
  const double distance = std::abs(a.as_double() - b.as_double());
  if (error > 0 && op != ScalarOp::IsNan && distance <= error) return undecided();
  return exact(apply(op, DType::F64, a.bits, b.bits));
}

Element apply_to_floats(ScalarOp op, const Node& node, DType operand, const Element& a,
                        const Element& b, const Element& c) {
  if (gives_bool(op)) return compare(op, a, b);
  if (is_step(op)) {
    const double below = step(op, a.as_double() - a.error);
    const double above = step(op, a.as_double() + a.error);
    if (below != above) return undecided();
  }
  // Strict operations round; the others keep what binary64 has.
  const DType type = node.strict ? operand : DType::F64;
  const std::uint64_t bits = apply(op, type, a.bits, b.bits, c.bits);
  const double result = number(bits);
  return rounded(
      operand, result,
      carried_error(op, result, a, b, c) + own_error(op, operand, node.strict, result, a, b, c));
}

// Sums, products and extremes, term by term.
class Accumulator {
 public:
  Accumulator(ReduceOp op, const Node& node)
      : op_(op), node_(node), is_float_(is_float(node.dtype)) {
    bits_ = identity(op, is_float_ && !node.strict ? DType::F64 : node.dtype).bits;
  }

  void add(const Element& term) {
    undecided_ = undecided_ || term.undecided;
    ++count_;
    const DType type = is_float_ && !node_.strict ? DType::F64 : node_.dtype;
    bits_ = apply(scalar_op(op_), type, bits_, term.bits);
    if (!is_float_) return;
    const double magnitude = std::abs(term.as_double());
    switch (op_) {
      case ReduceOp::Sum:
        error_ += term.error;
        magnitudes_ += magnitude;
        // Equal terms are rounded alike, so that their errors do not cancel.
        if (magnitude != 0 &&
            std::abs(term.as_double() - last_) <= unit(node_.dtype) * magnitudes_) {
          ++alike_;
        }
        last_ = term.as_double();
        break;
      case ReduceOp::Product:  // the logarithm of the relative error
        if (magnitude > 0) (magnitude > 1 ? above_ : below_) += std::abs(std::log2(magnitude));
        if (term.error == 0) break;
        error_ += magnitude <= term.error ? kUnbounded : std::log1p(term.error / magnitude);
        break;
      case ReduceOp::Max:
      case ReduceOp::Min: error_ = std::max(error_, term.error); break;
    }
  }

  [[nodiscard]] Element result() const {
    if (undecided_) return undecided();
    if (!is_float_) return exact(bits_);
    // In another order a part of the sum or product may leave the range of the type.
    const double limit = largest(node_.dtype);
    const bool leaves = op_ == ReduceOp::Product ? std::max(above_, below_) > std::log2(limit) - 2
                                                 : magnitudes_ > limit / 2;
    if (leaves && !node_.strict) return undecided();
    const double value = number(bits_);
    const double u = unit(node_.dtype);
    const double lost = smallest_normal(node_.dtype) * static_cast<double>(count_);
    const auto count = static_cast<double>(count_);
    const bool is_exact = node_.strict && error_ == 0;
    double error = error_;
    if (op_ == ReduceOp::Product) {
      error = std::abs(value) * std::expm1(error_);
      if (!is_exact) error += 4 * u * count * std::abs(value) + lost;
    } else if (op_ == ReduceOp::Sum && !is_exact) {
      const double terms = 8 * std::sqrt(count) + static_cast<double>(alike_);
      error += terms * u * magnitudes_ + lost;
    }
    return rounded(node_.dtype, value, error);
  }

 private:
  ReduceOp op_;
  const Node& node_;
  bool is_float_;
  std::uint64_t bits_ = 0;
  double error_ = 0, magnitudes_ = 0, last_ = 0;
  double above_ = 0, below_ = 0;  // binary logarithms of the factors above and below 1
  std::int64_t count_ = 0, alike_ = 0;
  bool undecided_ = false;
};

// Place of an element in row-major order.
std::int64_t flat_index(const Shape& shape, const Coordinates& at) {
  std::int64_t flat = 0;
  for (std::size_t d = 0; d < at.size(); ++d) flat = flat * shape[d] + at[d];
  return flat;
}

// Coordinates that the indices name; false where a division is not exact or the shape is left.
bool follow(const std::vector<AffineIndex>& indices, const Coordinates& axes, const Shape& shape,
            Coordinates& result) {
  bool inside = true;
  for (std::size_t d = 0; d < indices.size(); ++d) {
    const AffineIndex& index = indices[d];
    std::int64_t sum = index.offset;
    for (const AffineIndex::Term& term : index.terms) {
      sum += term.coefficient * axes[static_cast<std::size_t>(term.axis)];
    }
    inside = inside && sum % index.divisor == 0;
    result[d] = sum / index.divisor;
    inside = inside && result[d] >= 0 && result[d] < shape[d];
  }
  return inside;
}

// Steps to the next position of axes [first, end); false after the last one.
bool advance(Coordinates& axes, const std::vector<std::int64_t>& extents, std::size_t first) {
  for (std::size_t d = extents.size(); d-- > first;) {
    if (++axes[d] < extents[d]) return true;
    axes[d] = 0;
  }
  return false;
}

// The output axes of a contraction for one output element. Each dimension is a mixed-radix number
// of its axes (g*Og+o), so that the largest coefficient goes first.
void solve_output_axes(const ContractOp& op, const Coordinates& at, Coordinates& axes) {
  for (std::size_t d = 0; d < op.output.size(); ++d) {
    const AffineIndex& index = op.output[d];
    std::vector<AffineIndex::Term> terms = index.terms;
    std::ranges::sort(terms, std::greater{}, &AffineIndex::Term::coefficient);
    std::int64_t rest = at[d] * index.divisor - index.offset;
    for (const AffineIndex::Term& term : terms) {
      const auto axis = static_cast<std::size_t>(term.axis);
      axes[axis] = std::clamp<std::int64_t>(rest / term.coefficient, 0, op.extents[axis] - 1);
      rest -= axes[axis] * term.coefficient;
    }
    INGOT_CHECK(rest == 0, "an output element of a contraction has no axes");
  }
}

}  // namespace

double Element::as_double() const { return number(bits); }

ElementEvaluator::ElementEvaluator(const Graph& graph, const StoredValues& stored)
    : graph_(graph), stored_(stored), kept_(graph.nodes.size()) {
  std::vector<bool> read(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    for (const ValueId input : node.inputs) {
      const GraphOp& op = graph[input].op;
      const bool is_sum =
          std::holds_alternative<ReduceNodeOp>(op) || std::holds_alternative<ContractOp>(op);
      const bool computes = is_sum || std::holds_alternative<MapOp>(op) ||
                            std::holds_alternative<CastOp>(op) ||
                            std::holds_alternative<GatherOp>(op);
      if (is_sum || (read[input.index] && computes)) kept_[input.index] = true;
      read[input.index] = true;
    }
  }
}

Element ElementEvaluator::evaluate(ValueId value, const Coordinates& at, std::uint64_t most_steps) {
  known_.clear();
  steps_ = 0;
  most_steps_ = most_steps;
  return compute(value, at);
}

Element ElementEvaluator::read(ValueId value, const Coordinates& at) {
  const bool is_constant = std::holds_alternative<ConstantOp>(graph_[value].op);
  if (!is_constant && stored_.contains(value)) return exact(stored_.load(value, at).bits);
  return compute(value, at);
}

Element ElementEvaluator::compute(ValueId value, const Coordinates& at) {
  if (++steps_ > most_steps_) return undecided();
  const Node& node = graph_[value];
  const auto run = [&] {
    Element result = std::visit([&](const auto& op) { return element(op, node, at); }, node.op);
    const auto wide = widened_.find(value);
    if (wide != widened_.end()) result.error += wide->second;
    return result;
  };
  if (!kept_[value.index]) return run();
  const auto flat = static_cast<std::uint64_t>(flat_index(node.shape, at));
  // What is kept has at most 4 GiB (compile.cpp), so that the halves of the key stay apart.
  const std::uint64_t key = (std::uint64_t{value.index} << 40) ^ flat;
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  const Element result = run();
  known_.emplace(key, result);
  return result;
}

Element ElementEvaluator::element(const InputOp&, const Node&, const Coordinates&) {
  check_failed(__FILE__, __LINE__, "input", "an input is not stored");
}

Element ElementEvaluator::element(const ConstantOp& op, const Node& node, const Coordinates& at) {
  const std::int64_t flat = flat_index(node.shape, at);
  return exact(op.tensor.at(flat).bits);
}

Element ElementEvaluator::element(const IotaOp& op, const Node& node, const Coordinates& at) {
  return exact(Scalar::of_int(node.dtype, at[static_cast<std::size_t>(op.axis)]).bits);
}

Element ElementEvaluator::element(const MapOp& op, const Node& node, const Coordinates& at) {
  if (op.op == ScalarOp::Select) {
    const Element condition = read(node.inputs[0], at);
    if (condition.undecided) return condition;
    return read(node.inputs[condition.bits != 0 ? 1 : 2], at);
  }
  Element operands[3];
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    operands[i] = read(node.inputs[i], at);
    if (operands[i].undecided) return undecided();
  }
  const auto& [a, b, c] = operands;
  const DType operand = graph_[node.inputs[0]].dtype;
  if (is_float(operand)) return apply_to_floats(op.op, node, operand, a, b, c);
  return exact(apply(op.op, operand, a.bits, b.bits, c.bits));
}

Element ElementEvaluator::element(const CastOp&, const Node& node, const Coordinates& at) {
  const Element from = read(node.inputs[0], at);
  if (from.undecided) return from;
  const DType type = graph_[node.inputs[0]].dtype;
  if (!is_float(type)) {
    const std::uint64_t bits = convert(type, node.dtype, from.bits);
    return exact(bits);
  }
  if (is_float(node.dtype)) {
    // Halves are rounded here whatever comes before; wider types lose nothing that counts.
    const double value =
        number(convert(DType::F64, node.strict ? node.dtype : DType::F64, from.bits));
    const bool narrows = size_bytes(node.dtype) < size_bytes(type);
    const double own = narrows && !(node.strict && from.error == 0)
                           ? 2 * unit(node.dtype) * std::abs(value) + smallest_normal(node.dtype)
                           : 0;
    return rounded(node.dtype, value, from.error + own);
  }
  const auto to_integer = [&](double value) {
    return convert(DType::F64, node.dtype, std::bit_cast<std::uint64_t>(value));
  };
  const double value = from.as_double();
  const bool is_open = node.dtype == DType::Bool
                           ? std::abs(value) <= from.error
                           : to_integer(value - from.error) != to_integer(value + from.error);
  if (from.error > 0 && is_open) return undecided();
  return exact(to_integer(value));
}

Element ElementEvaluator::element(const ViewOp& op, const Node& node, const Coordinates& at) {
  const ValueId input = node.inputs[0];
  Coordinates inner(op.index.size());
  if (follow(op.index, at, graph_[input].shape, inner)) return read(input, inner);
  INGOT_CHECK(op.fill.has_value(), "a view without a fill leaves its input");
  return exact(op.fill->bits);
}

Element ElementEvaluator::element(const ReshapeOp&, const Node& node, const Coordinates& at) {
  std::int64_t flat = flat_index(node.shape, at);
  const Shape& shape = graph_[node.inputs[0]].shape;
  Coordinates inner(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    inner[d] = flat % shape[d];
    flat /= shape[d];
  }
  return read(node.inputs[0], inner);
}

Element ElementEvaluator::element(const ConcatOp& op, const Node& node, const Coordinates& at) {
  const auto axis = static_cast<std::size_t>(op.axis);
  Coordinates inner = at;
  for (const ValueId input : node.inputs) {
    const std::int64_t extent = graph_[input].shape[axis];
    if (inner[axis] < extent) return read(input, inner);
    inner[axis] -= extent;
  }
  check_failed(__FILE__, __LINE__, "concat", "an element lies behind the last part");
}

Element ElementEvaluator::element(const ReduceNodeOp& op, const Node& node, const Coordinates& at) {
  const ValueId input = node.inputs[0];
  const Shape& shape = graph_[input].shape;
  Accumulator sum(op.op, node);
  Coordinates place(shape.size());
  std::vector<std::size_t> reduced;
  std::size_t kept = 0;
  bool empty = false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (std::ranges::find(op.axes, static_cast<int>(d)) == op.axes.end()) {
      place[d] = at[kept++];
    } else {
      reduced.push_back(d);
      empty = empty || shape[d] == 0;
    }
  }
  while (!empty) {
    if (steps_ > most_steps_) return undecided();
    sum.add(read(input, place));
    std::size_t next = reduced.size();
    while (next-- > 0) {
      const std::size_t d = reduced[next];
      if (++place[d] < shape[d]) break;
      place[d] = 0;
    }
    empty = next == std::numeric_limits<std::size_t>::max();
  }
  return sum.result();
}

Element ElementEvaluator::element(const ContractOp& op, const Node& node, const Coordinates& at) {
  Accumulator sum(ReduceOp::Sum, node);
  const auto first = static_cast<std::size_t>(op.output_axes);
  Coordinates axes(op.extents.size());
  solve_output_axes(op, at, axes);
  std::vector<Coordinates> places;
  for (const ValueId input : node.inputs) places.emplace_back(graph_[input].shape.size());
  const bool empty = std::ranges::find(op.extents, 0) != op.extents.end();
  for (bool more = !empty; more; more = advance(axes, op.extents, first)) {
    if (++steps_ > most_steps_) return undecided();
    Element product;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      const DType type = graph_[input].dtype;
      Element factor = exact(Scalar::zero(type).bits);
      if (follow(op.operands[i], axes, graph_[input].shape, places[i])) {
        factor = read(input, places[i]);
      }
      if (!is_float(type) || !is_float(node.dtype) || node.strict) {
        factor.bits = convert(type, node.dtype, factor.bits);
      }
      if (i == 0) {
        product = factor;
        continue;
      }
      const bool lost = product.undecided || factor.undecided;
      product = is_float(node.dtype)
                    ? apply_to_floats(ScalarOp::Mul, node, node.dtype, product, factor, {})
                    : exact(apply(ScalarOp::Mul, node.dtype, product.bits, factor.bits));
      product.undecided = product.undecided || lost;
    }
    sum.add(product);
  }
  return sum.result();
}

Element ElementEvaluator::element(const GatherOp& op, const Node& node, const Coordinates& at) {
  const Shape& data = graph_[node.inputs[0]].shape;
  const std::int64_t extent = data[static_cast<std::size_t>(op.axis)];
  const auto first = at.begin() + op.axis;
  const auto index_rank = static_cast<std::ptrdiff_t>(graph_[node.inputs[1]].shape.size());
  const Element index = read(node.inputs[1], Coordinates(first, first + index_rank));
  if (index.undecided) return index;
  auto chosen = static_cast<std::int64_t>(index.bits);
  if (chosen < 0) chosen += extent;
  Coordinates inner(at.begin(), first);
  inner.push_back(std::clamp<std::int64_t>(chosen, 0, extent - 1));
  inner.insert(inner.end(), first + index_rank, at.end());
  return read(node.inputs[0], inner);
}

}  // namespace ingot
