#include "cli/case_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "artifact/names.h"
#include "cli/tensor_file.h"
#include "compiler/compile.h"

namespace ingot::cli {

std::unexpected<Failure> CaseReader::failure(std::string_view message) const {
  return fail(ExitCode::Malformed, "bad-case", fmt::format("{}: {}", run_.name, message), file_);
}

// Inputs in order, then states.
const SlotView* CaseReader::input_at(std::size_t position) const {
  for (const std::uint32_t direction : {INGOT_SLOT_INPUT, INGOT_SLOT_STATE}) {
    for (const SlotView& slot : slots_) {
      if (slot.direction == direction && position-- == 0) return &slot;
    }
  }
  return nullptr;
}

const SlotView* CaseReader::output_at(std::size_t position) const {
  for (const SlotView& slot : slots_) {
    if (slot.direction == INGOT_SLOT_OUTPUT && position-- == 0) return &slot;
  }
  return nullptr;
}

// By the model's name, by the stored one, or by the stem of a file made from the name.
const SlotView* CaseReader::slot_called(const std::string& name) const {
  for (const SlotView& slot : slots_) {
    if (slot.name == name) return &slot;
  }
  for (const SlotView& slot : slots_) {
    if (slot.stored == name) return &slot;
  }
  for (const SlotView& slot : slots_) {
    if (artifact::file_stem(slot.name) == name) return &slot;
  }
  return nullptr;
}

const SlotView* CaseReader::input_slot(const CaseInput& input) const {
  const SlotView* slot = input.name.empty() ? input_at(input.position) : slot_called(input.name);
  return slot != nullptr && slot->direction == INGOT_SLOT_OUTPUT ? nullptr : slot;
}

const CaseFeedback* CaseReader::feedback_to(const std::string& input) const {
  const auto found = std::ranges::find(run_.feedback, input, &CaseFeedback::input);
  return found == run_.feedback.end() ? nullptr : &*found;
}

bool CaseReader::is_bound(const std::string& input) const {
  return std::ranges::find(run_.bound, input) != run_.bound.end();
}

Result<void> CaseReader::check_all_given() const {
  for (const SlotView& slot : slots_) {
    const bool given = std::ranges::any_of(
        run_.inputs, [&](const CaseInput& input) { return input_slot(input) == &slot; });
    if (slot.direction == INGOT_SLOT_INPUT && !given) {
      return failure(fmt::format("no value for input '{}'", slot.name));
    }
  }
  return {};
}

Result<Tensor> CaseReader::value(const CaseInput& input, const SlotView& slot, int step) const {
  if (input.file) return read_tensor_file(*input.file, slot.dtype, slot.shape);
  if (input.dtype != slot.dtype || input.shape != slot.shape) {
    return failure(fmt::format("input '{}' is {}, the artifact has {}", slot.name,
                               to_text(input.dtype, input.shape), to_text(slot.dtype, slot.shape)));
  }
  return Tensor::own(
      slot.dtype, slot.shape,
      generate_input(input.name, slot.dtype, slot.shape,
                     run_.seed + static_cast<std::uint64_t>(step), input.lo, input.hi));
}

Result<std::vector<StepInput>> CaseReader::step_inputs(int step) const {
  if (step == 0) INGOT_RETURN_IF_ERROR(check_all_given());
  std::vector<StepInput> inputs;
  for (const CaseInput& input : run_.inputs) {
    const SlotView* slot = input_slot(input);
    if (slot == nullptr) {
      if (is_bound(input.name)) continue;
      return failure(fmt::format("the artifact has no input '{}'", input.name));
    }
    if (step > 0 && slot->direction == INGOT_SLOT_STATE) continue;
    const CaseFeedback* pair = step > 0 ? feedback_to(input.name) : nullptr;
    if (pair == nullptr) {
      INGOT_ASSIGN(Tensor given, value(input, *slot, step));
      inputs.push_back({slot, std::move(given), nullptr});
      continue;
    }
    const SlotView* source = slot_called(pair->output);
    if (source == nullptr || source->nbytes != slot->nbytes) {
      return failure(fmt::format("no output is fed to input '{}'", input.name));
    }
    inputs.push_back({slot, std::nullopt, source});
  }
  return inputs;
}

const SlotView* CaseReader::find_output(const CaseOutput& output) const {
  if (output.name.empty()) return output_at(output.position);
  if (const SlotView* slot = slot_called(output.name)) return slot;
  for (const CaseFeedback& pair : run_.feedback) {
    if (pair.output == output.name) return slot_called(pair.input);
  }
  return nullptr;
}

Result<const SlotView*> CaseReader::output_slot(const CaseOutput& output) const {
  const SlotView* slot = find_output(output);
  if (slot != nullptr && slot->direction != INGOT_SLOT_INPUT) return slot;
  return failure(fmt::format("the artifact has no output for {}", output.file.string()));
}

}  // namespace ingot::cli
