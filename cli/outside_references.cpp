#include "cli/outside_references.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "artifact/names.h"
#include "cli/case_reader.h"
#include "cli/tensor_file.h"

namespace ingot::cli {
namespace {

// One case for one graph.
class OutsideBuilder {
 public:
  OutsideBuilder(const CaseRun& run, const Graph& graph, const std::string& file)
      : run_(run), graph_(graph), slots_(slots_of(graph)), reader_(run, slots_, file) {}

  Result<OutsideReference> build() {
    OutsideReference result;
    result.name = run_.name;
    const auto is_generated = [](const CaseInput& input) { return !input.file; };
    if (std::ranges::any_of(run_.inputs, is_generated)) result.seed = run_.seed;
    for (int step = 0; step < run_.steps; ++step) INGOT_RETURN_IF_ERROR(add_step(step, result));
    INGOT_RETURN_IF_ERROR(add_outputs(result));
    return result;
  }

 private:
  // Inputs, then states, then outputs, as in an artifact.
  static std::vector<SlotView> slots_of(const Graph& graph) {
    std::vector<SlotView> slots;
    for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
      const auto* input = std::get_if<InputOp>(&graph.nodes[i].op);
      const auto is_this = [&](const GraphState& state) { return state.state == ValueId{i}; };
      if (input == nullptr || std::ranges::any_of(graph.states, is_this)) continue;
      slots.push_back(slot_of(INGOT_SLOT_INPUT, input->name, graph.nodes[i]));
    }
    for (const GraphState& state : graph.states) {
      const Node& node = graph[state.state];
      slots.push_back(slot_of(INGOT_SLOT_STATE, std::get<InputOp>(node.op).name, node));
    }
    for (const GraphOutput& output : graph.outputs) {
      slots.push_back(slot_of(INGOT_SLOT_OUTPUT, output.name, graph[output.value]));
    }
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i].index = static_cast<std::uint32_t>(i);
    return slots;
  }

  static SlotView slot_of(std::uint32_t direction, const std::string& name, const Node& node) {
    SlotView slot;
    slot.direction = direction;
    slot.name = name;
    slot.stored = artifact::encode_name(name);
    slot.dtype = node.dtype;
    slot.shape = node.shape;
    slot.nbytes = static_cast<std::uint64_t>(element_count(node.shape)) *
                  static_cast<std::uint64_t>(size_bytes(node.dtype));
    return slot;
  }

  std::size_t input_count() const { return slots_.size() - graph_.states.size() - output_count(); }
  std::size_t output_count() const { return graph_.outputs.size(); }

  Result<void> add_step(int step, OutsideReference& result) const {
    INGOT_ASSIGN(const std::vector<StepInput> inputs, reader_.step_inputs(step));
    OutsideReference::Values& values = result.inputs.emplace_back(input_count());
    for (const StepInput& input : inputs) {
      if (input.slot->direction == INGOT_SLOT_STATE) {
        INGOT_RETURN_IF_ERROR(check_start(*input.slot, *input.value));
      } else if (input.value) {
        values[input.slot->index].assign(input.value->bytes.begin(), input.value->bytes.end());
      } else {
        INGOT_RETURN_IF_ERROR(add_feedback(input, step, result));
      }
    }
    return {};
  }

  Result<void> add_feedback(const StepInput& input, int step, OutsideReference& result) const {
    if (input.fed_by->direction != INGOT_SLOT_OUTPUT) {
      return reader_.failure(
          fmt::format("input '{}' is fed by '{}', which is no output of the artifact",
                      input.slot->name, input.fed_by->name));
    }
    const std::size_t output = input.fed_by->index - input_count() - graph_.states.size();
    if (step == 1) result.feedback.push_back({output, input.slot->index});
    return {};
  }

  Result<void> check_start(const SlotView& slot, const Tensor& value) const {
    const GraphState& state = graph_.states[slot.index - input_count()];
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    const bool same = state.initial ? std::ranges::equal(state.initial->bytes, value.bytes)
                                    : std::ranges::all_of(value.bytes, is_zero);
    if (same) return {};
    return fail(ExitCode::Unsupported, "state-start",
                fmt::format("{}: state '{}' does not begin with its initial value, as every "
                            "embedded sequence does",
                            run_.name, slot.name),
                {}, "compare such a case with ingot check");
  }

  Result<void> add_outputs(OutsideReference& result) const {
    result.outputs.resize(output_count());
    result.next_states.resize(graph_.states.size());
    for (const CaseOutput& output : run_.outputs) {
      INGOT_ASSIGN(const SlotView* const slot, reader_.output_slot(output));
      INGOT_ASSIGN(const Tensor tensor, read_tensor_file(output.file, slot->dtype, slot->shape));
      auto& value = slot->direction == INGOT_SLOT_STATE
                        ? result.next_states[slot->index - input_count()]
                        : result.outputs[slot->index - input_count() - graph_.states.size()];
      value.emplace(tensor.bytes.begin(), tensor.bytes.end());
    }
    return {};
  }

  const CaseRun& run_;
  const Graph& graph_;
  std::vector<SlotView> slots_;
  CaseReader reader_;
};

// The frames of a camera have the size of its layout, so a case is for those that it fits.
Result<void> add_case(const CaseRun& run, const std::string& file, ModelSources& sources) {
  std::optional<Failure> first;
  bool fits = false;
  for (CompileInput::Variant& variant : sources.pipeline.input.variants) {
    Result<OutsideReference> made = OutsideBuilder(run, variant.graph, file).build();
    if (!made && made.error().exit == ExitCode::Io) return std::unexpected(made.error());
    if (!made && !first) first = made.error();
    if (!made) continue;
    variant.outside.push_back(std::move(*made));
    fits = true;
  }
  if (!fits && first) return std::unexpected(std::move(*first));
  return {};
}

}  // namespace

Result<void> add_outside_references(const GoldenOptions& options, ModelSources& sources) {
  if (options.path.empty()) return {};
  CaseChoice choice;
  choice.name = options.case_name;
  for (const artifact::ModelSource& model : sources.models) {
    choice.models.push_back(model.onnx_sha256);
  }
  INGOT_ASSIGN(const std::vector<CaseRun> runs, read_cases(options.path, choice));
  for (const CaseRun& run : runs) {
    INGOT_RETURN_IF_ERROR(add_case(run, options.path, sources));
  }
  return {};
}

}  // namespace ingot::cli
