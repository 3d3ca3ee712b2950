// A case of another runtime against the slots of an artifact: which value goes where.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/golden_cases.h"
#include "cli/loaded_artifact.h"
#include "compiler/tensor/tensor.h"

namespace ingot::cli {

// One of the two is there.
struct StepInput {
  const SlotView* slot = nullptr;
  std::optional<Tensor> value;
  const SlotView* fed_by = nullptr;  // its value after the step before
};

// Failures are Malformed and name the case, or Io for a file that is not there.
class CaseReader {
 public:
  // `file` is what failures speak of. The case and the slots must outlive the reader.
  CaseReader(const CaseRun& run, std::span<const SlotView> slots, std::string file)
      : run_(run), slots_(slots), file_(std::move(file)) {}

  // Every input that the case gives in this step; states only in the first. A state that the
  // artifact carries itself needs no feedback.
  [[nodiscard]] Result<std::vector<StepInput>> step_inputs(int step) const;

  // An output that became a state is the state as the next frame would read it.
  [[nodiscard]] Result<const SlotView*> output_slot(const CaseOutput& output) const;

  [[nodiscard]] std::unexpected<Failure> failure(std::string_view message) const;

 private:
  [[nodiscard]] const SlotView* input_at(std::size_t position) const;
  [[nodiscard]] const SlotView* output_at(std::size_t position) const;
  [[nodiscard]] const SlotView* slot_called(const std::string& name) const;
  [[nodiscard]] const SlotView* input_slot(const CaseInput& input) const;
  [[nodiscard]] const SlotView* find_output(const CaseOutput& output) const;
  [[nodiscard]] const CaseFeedback* feedback_to(const std::string& input) const;
  [[nodiscard]] bool is_bound(const std::string& input) const;
  [[nodiscard]] Result<void> check_all_given() const;
  [[nodiscard]] Result<Tensor> value(const CaseInput& input, const SlotView& slot, int step) const;

  const CaseRun& run_;
  std::span<const SlotView> slots_;
  std::string file_;
};

}  // namespace ingot::cli
