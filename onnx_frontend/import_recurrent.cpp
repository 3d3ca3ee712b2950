// LSTM, GRU and RNN. The number of steps is static, so the recurrence is written out: the products
// with the inputs of all steps are one matrix product, then each step adds its part of the state.
#include <fmt/format.h>

#include <algorithm>

#include "onnx_frontend/importers.h"

namespace ingot {
namespace {

using enum ScalarOp;

constexpr std::int64_t most_steps = 512;

enum class Activation { Sigmoid, Tanh, Relu };

enum class CellKind { Lstm, Gru, Rnn };

int gate_count(CellKind kind) {
  switch (kind) {
    case CellKind::Lstm: return 4;
    case CellKind::Gru: return 3;
    case CellKind::Rnn: return 1;
  }
  return 0;
}

std::vector<Activation> default_activations(CellKind kind) {
  switch (kind) {
    case CellKind::Lstm: return {Activation::Sigmoid, Activation::Tanh, Activation::Tanh};
    case CellKind::Gru: return {Activation::Sigmoid, Activation::Tanh};
    case CellKind::Rnn: return {Activation::Tanh};
  }
  return {};
}

struct Recurrence {
  CellKind kind;
  std::int64_t steps, batch, input, hidden, directions;
  bool reverse = false;
  bool batch_first = false;
  bool reset_after = false;             // GRU: linear_before_reset
  std::vector<Activation> activations;  // of all directions
  DType compute = DType::F32;
};

// What one direction works with.
struct Direction {
  ValueId gates;                          // [steps, batch, gates * hidden]: inputs and biases
  ValueId recurrence;                     // [gates * hidden, hidden]
  std::optional<ValueId> recurrent_bias;  // [gates * hidden], where it must stay apart
  std::optional<ValueId> peephole;        // [3 * hidden]
  ValueId h, c;                           // [batch, hidden]
  std::span<const Activation> activations;
};

struct DirectionResult {
  std::vector<ValueId> outputs;  // h of every step, in order of time
  ValueId h, c;
};

ValueId activate(GraphBuilder& b, Activation activation, ValueId x) {
  switch (activation) {
    case Activation::Sigmoid: return b.sigmoid(x);
    case Activation::Tanh: return b.map(Tanh, x);
    case Activation::Relu: return b.max(x, b.like(x, 0));
  }
  return x;
}

// `count` elements from `start` along the last axis.
ValueId part(GraphBuilder& b, ValueId x, std::int64_t start, std::int64_t count) {
  Shape shape = b.shape(x);
  const std::size_t last = shape.size() - 1;
  std::vector<std::int64_t> starts(last + 1, 0);
  const std::vector<std::int64_t> steps(last + 1, 1);
  starts.at(last) = start;
  shape.at(last) = count;
  return b.slice(x, starts, steps, shape);
}

// x[i], without its first axis.
ValueId element(GraphBuilder& b, ValueId x, std::int64_t i) {
  Shape shape = b.shape(x);
  std::vector<std::int64_t> starts(shape.size(), 0);
  const std::vector<std::int64_t> steps(shape.size(), 1);
  starts[0] = i;
  shape[0] = 1;
  const ValueId one = b.slice(x, starts, steps, shape);
  shape.erase(shape.begin());
  return b.reshape(one, shape);
}

ValueId times_transposed(GraphBuilder& b, ValueId x, ValueId w) {
  const int exchange[] = {1, 0};
  return b.matmul(x, b.transpose(w, exchange));
}

// Gates: input, output, forget, cell.
void lstm_step(GraphBuilder& b, const Recurrence& r, const Direction& d, ValueId x, ValueId& h,
               ValueId& c) {
  const std::int64_t n = r.hidden;
  const ValueId sum = b.add(x, times_transposed(b, h, d.recurrence));
  const auto gate = [&](std::int64_t i) { return part(b, sum, i * n, n); };
  const auto looking = [&](ValueId value, std::int64_t i, ValueId cell) {
    return d.peephole ? b.add(value, b.mul(part(b, *d.peephole, i * n, n), cell)) : value;
  };
  const ValueId in = activate(b, d.activations[0], looking(gate(0), 0, c));
  const ValueId forget = activate(b, d.activations[0], looking(gate(2), 2, c));
  const ValueId candidate = activate(b, d.activations[1], gate(3));
  c = b.add(b.mul(forget, c), b.mul(in, candidate));
  const ValueId out = activate(b, d.activations[0], looking(gate(1), 1, c));
  h = b.mul(out, activate(b, d.activations[2], c));
}

// Gates: update, reset, hidden.
void gru_step(GraphBuilder& b, const Recurrence& r, const Direction& d, ValueId x, ValueId& h) {
  const std::int64_t n = r.hidden;
  const auto rows = [&](std::int64_t first, std::int64_t count) {
    const std::int64_t starts[] = {first, 0}, steps[] = {1, 1};
    return b.slice(d.recurrence, starts, steps, {count, n});
  };
  const ValueId both = b.add(part(b, x, 0, 2 * n), times_transposed(b, h, rows(0, 2 * n)));
  const ValueId update = activate(b, d.activations[0], part(b, both, 0, n));
  const ValueId reset = activate(b, d.activations[0], part(b, both, n, n));
  const ValueId own = part(b, x, 2 * n, n);
  ValueId state;
  if (r.reset_after) {
    state = times_transposed(b, h, rows(2 * n, n));
    if (d.recurrent_bias) state = b.add(state, part(b, *d.recurrent_bias, 2 * n, n));
    state = b.mul(reset, state);
  } else {
    state = times_transposed(b, b.mul(reset, h), rows(2 * n, n));
  }
  const ValueId candidate = activate(b, d.activations[1], b.add(own, state));
  const ValueId rest = b.sub(b.like(update, 1), update);
  h = b.add(b.mul(rest, candidate), b.mul(update, h));
}

void rnn_step(GraphBuilder& b, const Direction& d, ValueId x, ValueId& h) {
  h = activate(b, d.activations[0], b.add(x, times_transposed(b, h, d.recurrence)));
}

DirectionResult run(GraphBuilder& b, const Recurrence& r, const Direction& d, bool backward) {
  DirectionResult result;
  result.h = d.h;
  result.c = d.c;
  for (std::int64_t i = 0; i < r.steps; ++i) {
    const ValueId x = element(b, d.gates, backward ? r.steps - 1 - i : i);
    switch (r.kind) {
      case CellKind::Lstm: lstm_step(b, r, d, x, result.h, result.c); break;
      case CellKind::Gru: gru_step(b, r, d, x, result.h); break;
      case CellKind::Rnn: rnn_step(b, d, x, result.h); break;
    }
    result.outputs.push_back(result.h);
  }
  if (backward) std::ranges::reverse(result.outputs);
  return result;
}

Result<std::vector<Activation>> read_activations(NodeImport& node, CellKind kind,
                                                 std::int64_t directions) {
  const std::vector<Activation> one = default_activations(kind);
  std::vector<Activation> result;
  for (std::int64_t d = 0; d < directions; ++d) result.insert(result.end(), one.begin(), one.end());
  const std::vector<std::string> names = node.attributes.texts("activations");
  if (names.empty()) return result;
  if (names.size() != result.size()) return node.malformed("activations do not fit the directions");
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == "Sigmoid") {
      result[i] = Activation::Sigmoid;
    } else if (names[i] == "Tanh") {
      result[i] = Activation::Tanh;
    } else if (names[i] == "Relu") {
      result[i] = Activation::Relu;
    } else {
      return node.unsupported_attribute(fmt::format("activation '{}' is not supported", names[i]));
    }
  }
  return result;
}

Result<Recurrence> read_recurrence(NodeImport& node, CellKind kind) {
  Recurrence r{};
  r.kind = kind;
  const std::int64_t hidden = node.attributes.integer("hidden_size", 0);
  const std::string direction =
      node.attributes.choice("direction", {"forward", "reverse", "bidirectional"});
  r.batch_first = node.opset >= 14 && node.attributes.flag("layout", false);
  if (kind == CellKind::Gru) r.reset_after = node.attributes.flag("linear_before_reset", false);
  if (kind == CellKind::Lstm && node.attributes.flag("input_forget", false)) {
    return node.unsupported_attribute("input_forget is not supported");
  }
  if (node.attributes.has("clip")) return node.unsupported_attribute("clip is not supported");
  // Parameters of activations that have none.
  node.attributes.ignore({"clip", "activation_alpha", "activation_beta"});
  r.directions = direction == "bidirectional" ? 2 : 1;
  r.reverse = direction == "reverse";
  INGOT_ASSIGN(r.activations, read_activations(node, kind, r.directions));
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Floats));
  INGOT_ASSIGN(const ValueId w, node.input(2, Types::Floats));
  if (node.rank(x) != 3 || node.rank(w) != 3) return node.malformed("X, W and R need 3 dimensions");
  const Shape shape = node.shape(x);
  r.steps = shape[r.batch_first ? 1 : 0];
  r.batch = shape[r.batch_first ? 0 : 1];
  r.input = shape[2];
  r.hidden = node.shape(w)[2];
  r.compute = node.dtype(x) == DType::F64 ? DType::F64 : DType::F32;
  if (hidden != 0 && hidden != r.hidden) return node.malformed("hidden_size does not fit R");
  if (r.hidden == 0) return node.malformed("there are no hidden values");
  if (r.steps == 0) return node.unsupported("a sequence of no steps");
  if (r.steps > most_steps) {
    return node.unsupported(fmt::format("{} steps, at most {} are supported", r.steps, most_steps));
  }
  return r;
}

// An input of this shape, in the type of the computation.
Result<std::optional<ValueId>> shaped_input(NodeImport& node, const Recurrence& r, std::size_t i,
                                            const Shape& wanted) {
  INGOT_ASSIGN(const std::optional<ValueId> value, node.optional_input(i, Types::Floats));
  if (!value) return std::nullopt;
  if (node.shape(*value) != wanted) {
    return node.malformed(fmt::format("input {} has shape {}, {} is needed", i,
                                      shape_text(node.shape(*value)), shape_text(wanted)));
  }
  return node.builder.cast(*value, r.compute);
}

// Every sequence must have all steps.
Result<void> check_lengths(NodeImport& node, const Recurrence& r) {
  if (!node.has_input(4)) return {};
  INGOT_ASSIGN(const std::vector<std::int64_t> lengths, node.known_ints(4));
  const bool whole = static_cast<std::int64_t>(lengths.size()) == r.batch &&
                     std::ranges::all_of(lengths, [&](std::int64_t n) { return n == r.steps; });
  if (!whole) return node.unsupported("sequences of different lengths are not supported");
  return {};
}

// The first state, [directions, batch, hidden]; zeros if it is left out.
Result<ValueId> first_state(NodeImport& node, const Recurrence& r, std::size_t input) {
  const Shape shape = {r.directions, r.batch, r.hidden};
  const Shape given = r.batch_first ? Shape{r.batch, r.directions, r.hidden} : shape;
  INGOT_ASSIGN(const std::optional<ValueId> value, shaped_input(node, r, input, given));
  if (!value) return node.builder.splat(Scalar::of_float(r.compute, 0), shape);
  const int exchange[] = {1, 0, 2};
  return r.batch_first ? node.builder.transpose(*value, exchange) : *value;
}

// Input products and biases of one direction.
void add_gates(GraphBuilder& b, const Recurrence& r, ValueId x, ValueId w,
               std::optional<ValueId> bias, Direction& d) {
  const std::int64_t size = gate_count(r.kind) * r.hidden;
  const ValueId flat = b.reshape(x, {r.steps * r.batch, r.input});
  d.gates = times_transposed(b, flat, w);
  if (bias) {
    d.gates = b.add(d.gates, part(b, *bias, 0, size));
    ValueId recurrent = part(b, *bias, size, size);
    if (r.reset_after) {
      // The part of the hidden gate is added inside the reset.
      d.recurrent_bias = recurrent;
      const ValueId zeros = b.splat(Scalar::of_float(r.compute, 0), {r.hidden});
      const ValueId parts[] = {part(b, recurrent, 0, 2 * r.hidden), zeros};
      recurrent = b.concat(parts, 0);
    }
    d.gates = b.add(d.gates, recurrent);
  }
  d.gates = b.reshape(d.gates, {r.steps, r.batch, size});
}

// Joins along a new first axis.
ValueId stack(GraphBuilder& b, const std::vector<ValueId>& values) {
  std::vector<ValueId> parts;
  for (const ValueId value : values) {
    Shape shape = b.shape(value);
    shape.insert(shape.begin(), 1);
    parts.push_back(b.reshape(value, shape));
  }
  return b.concat(parts, 0);
}

void set_outputs(NodeImport& node, const Recurrence& r, const std::vector<DirectionResult>& results,
                 DType dtype) {
  GraphBuilder& b = node.builder;
  std::vector<ValueId> sequences, h, c;
  for (const DirectionResult& result : results) {
    sequences.push_back(stack(b, result.outputs));
    h.push_back(result.h);
    c.push_back(result.c);
  }
  // [directions, steps, batch, hidden] to the order of the layout.
  const std::vector<int> order =
      r.batch_first ? std::vector<int>{2, 1, 0, 3} : std::vector<int>{1, 0, 2, 3};
  node.set_output(0, b.cast(b.transpose(stack(b, sequences), order), dtype));
  const std::vector<int> state_order =
      r.batch_first ? std::vector<int>{1, 0, 2} : std::vector<int>{0, 1, 2};
  node.set_output(1, b.cast(b.transpose(stack(b, h), state_order), dtype));
  if (r.kind == CellKind::Lstm) {
    node.set_output(2, b.cast(b.transpose(stack(b, c), state_order), dtype));
  }
}

Result<void> import_recurrence(NodeImport& node, CellKind kind) {
  INGOT_ASSIGN(const Recurrence r, read_recurrence(node, kind));
  INGOT_RETURN_IF_ERROR(node.at_most(kind == CellKind::Lstm ? 8 : 6));
  INGOT_RETURN_IF_ERROR(check_lengths(node, r));
  GraphBuilder& b = node.builder;
  const std::int64_t size = gate_count(kind) * r.hidden;
  INGOT_ASSIGN(ValueId x, node.input(0, Types::Floats));
  const DType dtype = node.dtype(x);
  INGOT_ASSIGN(const auto w, shaped_input(node, r, 1, {r.directions, size, r.input}));
  INGOT_ASSIGN(const auto recurrence, shaped_input(node, r, 2, {r.directions, size, r.hidden}));
  INGOT_ASSIGN(const auto bias, shaped_input(node, r, 3, {r.directions, 2 * size}));
  if (!w || !recurrence) return node.malformed("W or R is missing");
  INGOT_ASSIGN(const ValueId h, first_state(node, r, 5));
  ValueId c = h;
  std::optional<ValueId> peephole;
  if (kind == CellKind::Lstm) {
    INGOT_ASSIGN(c, first_state(node, r, 6));
    INGOT_ASSIGN(peephole, shaped_input(node, r, 7, {r.directions, 3 * r.hidden}));
  }
  x = b.cast(x, r.compute);
  const int exchange[] = {1, 0, 2};
  if (r.batch_first) x = b.transpose(x, exchange);
  const std::size_t per_direction = default_activations(kind).size();
  std::vector<DirectionResult> results;
  for (std::int64_t i = 0; i < r.directions; ++i) {
    Direction d;
    d.recurrence = element(b, *recurrence, i);
    if (peephole) d.peephole = element(b, *peephole, i);
    add_gates(b, r, x, element(b, *w, i), bias ? std::optional(element(b, *bias, i)) : std::nullopt,
              d);
    d.h = element(b, h, i);
    d.c = element(b, c, i);
    d.activations = std::span(r.activations)
                        .subspan(static_cast<std::size_t>(i) * per_direction, per_direction);
    results.push_back(run(b, r, d, r.reverse || i == 1));
  }
  set_outputs(node, r, results, dtype);
  return {};
}

}  // namespace

Result<void> import_lstm(NodeImport& node) { return import_recurrence(node, CellKind::Lstm); }
Result<void> import_gru(NodeImport& node) { return import_recurrence(node, CellKind::Gru); }
Result<void> import_rnn(NodeImport& node) { return import_recurrence(node, CellKind::Rnn); }

}  // namespace ingot
