#include "compiler/idle_inputs.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "compiler/program/run_program.h"
#include "compiler/reference.h"

namespace ingot {
namespace {

using Bytes = std::vector<std::byte>;

// Of every node, whether it follows from the input.
std::vector<bool> reached_from(const Graph& graph, ValueId input) {
  std::vector<bool> reached(graph.nodes.size());
  reached[input.index] = true;
  for (std::size_t i = input.index + 1; i < graph.nodes.size(); ++i) {
    reached[i] = std::ranges::any_of(graph.nodes[i].inputs,
                                     [&](ValueId value) { return reached[value.index]; });
  }
  return reached;
}

const std::string& input_name(const Graph& graph, ValueId input) {
  return std::get<InputOp>(graph[input].op).name;
}

IdleInput describe(const Graph& graph, ValueId input) {
  IdleInput result;
  result.name = input_name(graph, input);
  result.is_state = std::ranges::any_of(
      graph.states, [&](const GraphState& state) { return state.state == input; });
  const std::vector<bool> reached = reached_from(graph, input);
  for (const GraphOutput& output : graph.outputs) {
    if (reached[output.value.index]) result.reaches.push_back(output.name);
  }
  for (const GraphState& state : graph.states) {
    if (reached[state.next.index]) result.reaches.push_back(input_name(graph, state.state));
  }
  return result;
}

// Inputs that are no states, then states, as a program has them.
std::vector<ValueId> all_inputs(const Graph& graph) {
  std::vector<ValueId> inputs;
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const bool is_state = std::ranges::any_of(
        graph.states, [&](const GraphState& state) { return state.state == ValueId{i}; });
    if (std::holds_alternative<InputOp>(graph.nodes[i].op) && !is_state) {
      inputs.push_back(ValueId{i});
    }
  }
  for (const GraphState& state : graph.states) inputs.push_back(state.state);
  return inputs;
}

bool is_matrix(const Graph& graph, ValueId input) {
  return std::ranges::any_of(
      graph.transforms, [&](const GraphTransform& transform) { return transform.input == input; });
}

// Moves the picture.
Bytes other_matrix(Bytes bytes, int attempt) {
  std::array<float, 9> matrix{};
  for (std::size_t at = 0; at + sizeof(matrix) <= bytes.size(); at += sizeof(matrix)) {
    std::memcpy(matrix.data(), &bytes[at], sizeof(matrix));
    matrix[2] += 17.0F * static_cast<float>(attempt + 1);
    matrix[5] += 9.0F * static_cast<float>(attempt + 1);
    std::memcpy(&bytes[at], matrix.data(), sizeof(matrix));
  }
  return bytes;
}

struct Range {
  double lo, hi;
};
constexpr int kAttempts = 3;

// Wider from attempt to attempt: an input may matter only beyond a threshold.
Range range_of(DType dtype, int attempt) {
  const auto at = static_cast<std::size_t>(attempt);
  if (is_float(dtype)) return std::array<Range, kAttempts>{{{0, 1}, {-8, 8}, {-1e3, 1e3}}}[at];
  if (dtype == DType::U8) return {0, 255};
  const bool is_signed =
      dtype == DType::I8 || dtype == DType::I16 || dtype == DType::I32 || dtype == DType::I64;
  const Range wide = is_signed ? Range{-128, 127} : Range{0, 255};
  return std::array<Range, kAttempts>{{{0, 3}, {0, 127}, wide}}[at];
}

class Search {
 public:
  Search(const Graph& graph, const Program& program, std::uint64_t seed, KernelRunner& runner)
      : graph_(graph),
        program_(program),
        seed_(seed),
        runner_(runner),
        inputs_(all_inputs(graph)),
        suspicious_(inputs_.size(), true) {}

  // First around the values of the reference, then, for what is still suspicious, around others:
  // a state that begins with zeros hides what it is multiplied with.
  Result<std::vector<IdleInput>> run() {
    std::vector<IdleInput> idle;
    std::vector<bool> is_used(inputs_.size());
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const bool is_place = std::ranges::any_of(graph_.states, [&](const GraphState& state) {
        return state.entry == inputs_[i];  // matters after a whole round only
      });
      is_used[i] = is_place || !describe(graph_, inputs_[i]).reaches.empty();
      suspicious_[i] = is_used[i] && !is_place && element_count(graph_[inputs_[i]].shape) > 0;
    }
    INGOT_RETURN_IF_ERROR(try_around(reference_values()));
    INGOT_RETURN_IF_ERROR(try_around(other_values()));
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (suspicious_[i] || !is_used[i]) idle.push_back(describe(graph_, inputs_[i]));
    }
    return idle;
  }

 private:
  std::vector<Bytes> reference_values() const {
    std::vector<Bytes> values;
    const std::size_t states = inputs_.size() - graph_.states.size();
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      values.push_back(i < states ? reference_input(graph_, inputs_[i], seed_)
                                  : initial_state(graph_, graph_.states[i - states]));
    }
    return values;
  }

  std::vector<Bytes> other_values() const {
    std::vector<Bytes> values = reference_values();
    for (std::size_t i = 0; i < inputs_.size(); ++i) values[i] = other_value(i, 1, values[i]);
    return values;
  }

  Bytes other_value(std::size_t i, int attempt, const Bytes& base) const {
    if (is_matrix(graph_, inputs_[i])) return other_matrix(base, attempt);
    const Node& node = graph_[inputs_[i]];
    const auto [lo, hi] = range_of(node.dtype, attempt);
    const std::uint64_t seed = seed_ + 101 + static_cast<std::uint64_t>(attempt);
    Bytes bytes =
        generate_input(input_name(graph_, inputs_[i]), node.dtype, node.shape, seed, lo, hi);
    if (node.dtype == DType::Bool && (attempt == 2 || bytes == base)) {
      for (std::size_t at = 0; at < bytes.size(); ++at) bytes[at] = base[at] ^ std::byte{1};
    }
    return bytes;
  }

  Result<FrameResult> evaluate(const std::vector<Bytes>& values) const {
    const std::span<const Bytes> all(values);
    const std::size_t inputs = inputs_.size() - graph_.states.size();
    return run_program(program_, all.first(inputs), all.subspan(inputs), runner_);
  }

  Result<void> try_around(const std::vector<Bytes>& base) {
    if (std::ranges::none_of(suspicious_, std::identity{})) return {};
    INGOT_ASSIGN(const FrameResult expected, evaluate(base));
    std::vector<Bytes> values = base;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      for (int attempt = 0; attempt < kAttempts && suspicious_[i]; ++attempt) {
        values[i] = other_value(i, attempt, base[i]);
        if (values[i] == base[i]) continue;
        INGOT_ASSIGN(const FrameResult found, evaluate(values));
        suspicious_[i] =
            found.outputs == expected.outputs && found.next_states == expected.next_states;
      }
      values[i] = base[i];
    }
    return {};
  }

  const Graph& graph_;
  const Program& program_;
  std::uint64_t seed_;
  KernelRunner& runner_;
  std::vector<ValueId> inputs_;
  std::vector<bool> suspicious_;  // by input
};

}  // namespace

std::vector<IdleInput> find_unused_inputs(const Graph& graph) {
  std::vector<IdleInput> idle;
  for (const ValueId input : all_inputs(graph)) {
    IdleInput described = describe(graph, input);
    if (described.reaches.empty()) idle.push_back(std::move(described));
  }
  return idle;
}

Result<std::vector<IdleInput>> find_idle_inputs(const Graph& graph, const Program& program,
                                                std::uint64_t seed, KernelRunner& runner) {
  return Search(graph, program, seed, runner).run();
}

}  // namespace ingot
