#include "compiler/program/check_kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "compiler/graph/evaluate_element.h"
#include "compiler/plan/winograd.h"
#include "compiler/program/build_program.h"
#include "compiler/program/program_memory.h"

namespace ingot {
namespace {

using Coordinates = ElementEvaluator::Coordinates;

// What one kernel reads: placed values but constants, which the graph itself has, and what only
// passes between kernels that were fused, which is computed anew.
class PlacedValues final : public StoredValues {
 public:
  PlacedValues(const Plan& plan, const std::vector<std::byte*>& memory, ValueId root)
      : plan_(plan), memory_(memory), root_(root) {}

  bool contains(ValueId value) const override {
    const Placement* placement = find(value);
    return placement != nullptr && plan_.buffers[placement->buffer].kind != BufferKind::Constant;
  }

  Scalar load(ValueId value, const Coordinates& at) const override {
    return load(*find(value), at);
  }

  Scalar load(const Placement& placement, const Coordinates& at) const {
    const PlanBuffer& buffer = plan_.buffers[placement.buffer];
    Coordinates absolute = at;
    for (std::size_t d = 0; d < at.size(); ++d) absolute[d] += placement.offset[d];
    const std::int64_t element = address(buffer.layout, buffer.shape, absolute);
    return Scalar::load(buffer.dtype,
                        memory_[placement.buffer] + element * size_bytes(buffer.dtype));
  }

 private:
  const Placement* find(ValueId value) const {
    const Placement* placement = placement_of(plan_, root_, value);
    if (placement != nullptr && !is_stored(*placement)) {  // a copy that was fused
      const auto original = plan_.placed.find(value);
      placement = original == plan_.placed.end() ? nullptr : &original->second;
    }
    return placement != nullptr && is_stored(*placement) ? placement : nullptr;
  }
  bool is_stored(const Placement& placement) const {
    return plan_.buffers[placement.buffer].kind == BufferKind::Constant ||
           memory_[placement.buffer] != nullptr;
  }

  const Plan& plan_;
  const std::vector<std::byte*>& memory_;  // by plan buffer
  ValueId root_;
};

// splitmix64 (Steele, Lea, Flood 2014).
std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9E3779B97F4A7C15U);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

struct Sample {
  Coordinates at;
  Element want;
};

bool agrees(DType dtype, const Element& want, const Scalar& got) {
  if (!is_float(dtype)) return want.bits == got.bits;
  const double a = want.as_double(), b = got.as_double();
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= want.error;
}

class KernelChecker {
 public:
  KernelChecker(const Plan& plan, const Program& program, LoadedCode& code,
                const KernelCheckOptions& options)
      : plan_(plan),
        program_(program),
        code_(code),
        options_(options),
        memory_(program, ScratchFill::NotANumber),
        plan_memory_(plan.buffers.size()) {
    for (std::uint32_t b = 0; b < program.buffers.size(); ++b) {
      for (const std::uint32_t plan_buffer : program.buffers[b].plan_buffers) {
        plan_memory_[plan_buffer] = memory_.at(b);
      }
    }
  }

  Result<KernelCheckCounts> run(std::span<const std::vector<std::byte>> states,
                                std::span<const KernelCheckFrame> frames) {
    memory_.write(BufferKind::State, states);
    for (std::size_t frame = 0; frame < frames.size(); ++frame) {
      if (frame > 0) memory_.advance();
      memory_.write(BufferKind::Input, frames[frame].inputs);
      INGOT_RETURN_IF_ERROR(run_frame(frame + 1 == frames.size()));
    }
    return counts_;
  }

 private:
  Result<void> run_frame(bool judge) {
    for (std::size_t i = 0; i < program_.calls.size(); ++i) {
      const ProgramCall& call = program_.calls[i];
      if (call.kind != CallKind::Program) {
        memory_.run_fill(call);
        continue;
      }
      if (call.plan_kernel == kNone) {  // a halo: what reads it is judged
        INGOT_RETURN_IF_ERROR(code_.run(call.kernel, memory_.arguments(call), call.grid));
        continue;
      }
      // Before the call: it may write over what it reads.
      std::vector<Sample> samples;
      if (judge) samples = take_samples(plan_.kernels[call.plan_kernel], i, call.winograd);
      INGOT_RETURN_IF_ERROR(code_.run(call.kernel, memory_.arguments(call), call.grid));
      if (judge) INGOT_RETURN_IF_ERROR(compare(plan_.kernels[call.plan_kernel], i, samples));
      if (judge && options_.progress) options_.progress(i + 1, program_.calls.size());
    }
    return {};
  }

  // Corners first, then anywhere.
  std::vector<Sample> take_samples(const PlanKernel& kernel, std::size_t call, int winograd) const {
    const Shape& shape = (*plan_.graph)[kernel.root].shape;
    const std::int64_t elements = element_count(shape);
    const PlacedValues stored(plan_, plan_memory_, kernel.root);
    ElementEvaluator evaluator(*plan_.graph, stored);
    if (winograd > 0) widen(evaluator, kernel.root, winograd);
    const bool copy = !computes_root(plan_, kernel) && stored.contains(kernel.root);
    std::uint64_t random = options_.seed + call;
    std::uint64_t steps = 0;
    std::vector<Sample> samples;
    const std::int64_t most = std::min<std::int64_t>(options_.elements, elements);
    for (std::int64_t i = 0; i < most; ++i) {
      if (i >= 2 && steps > options_.steps_per_kernel) break;
      std::int64_t flat = i;
      if (most < elements) {
        flat = i == 0   ? 0
               : i == 1 ? elements - 1
                        : static_cast<std::int64_t>(next_random(random) %
                                                    static_cast<std::uint64_t>(elements));
      }
      Sample sample;
      sample.at.resize(shape.size());
      for (std::size_t d = shape.size(); d-- > 0;) {
        sample.at[d] = flat % shape[d];
        flat /= shape[d];
      }
      if (copy) {
        sample.want.bits = stored.load(kernel.root, sample.at).bits;
      } else {
        sample.want = evaluator.evaluate(kernel.root, sample.at, kMostSteps);
        steps += evaluator.steps();
      }
      samples.push_back(std::move(sample));
    }
    return samples;
  }

  // The contraction at the root of the kernel, through what is computed after it.
  std::optional<ValueId> contraction_of(ValueId root, ValueId value) const {
    const Node& node = (*plan_.graph)[value];
    if (std::holds_alternative<ContractOp>(node.op)) return value;
    for (const ValueId input : node.inputs) {
      if (placement_of(plan_, root, input) != nullptr) continue;
      if (const std::optional<ValueId> found = contraction_of(root, input)) return found;
    }
    return std::nullopt;
  }

  // Of a Winograd convolution: by its bound for the largest input and the largest weights.
  void widen(ElementEvaluator& evaluator, ValueId root, int tile) const {
    const std::optional<ValueId> contraction = contraction_of(root, root);
    INGOT_CHECK(contraction.has_value(), "a Winograd kernel without a convolution");
    const Node& node = (*plan_.graph)[*contraction];
    const Placement& input = *placement_of(plan_, root, node.inputs[0]);
    const PlanBuffer& buffer = plan_.buffers[input.buffer];
    double largest = 0;
    for (std::int64_t i = 0; i < element_count(buffer.layout, buffer.shape); ++i) {
      float value = 0;
      std::memcpy(&value, plan_memory_[input.buffer] + i * std::int64_t{sizeof value},
                  sizeof value);
      largest = std::fmax(largest, std::abs(value));  // padding may be anything, NaN here
    }
    const Tensor weights = materialize(*plan_.graph, node.inputs[1]);
    const std::int64_t per_channel = element_count(weights.shape) / weights.shape[0];
    double largest_sum = 0, sum = 0;
    for (std::int64_t i = 0; i < element_count(weights.shape); ++i) {
      if (i % per_channel == 0) sum = 0;
      sum += std::abs(weights.at(i).as_double());
      largest_sum = std::max(largest_sum, sum);
    }
    evaluator.widen(*contraction, winograd_error(tile) * largest * largest_sum);
  }

  Result<void> compare(const PlanKernel& kernel, std::size_t call,
                       const std::vector<Sample>& samples) {
    ++counts_.kernels;
    const DType dtype = (*plan_.graph)[kernel.root].dtype;
    const PlacedValues stored(plan_, plan_memory_, kernel.root);
    Placement destination = kernel.destination;
    if (kernel.entry) {
      const std::int64_t entries = plan_.buffers[destination.buffer].shape[0];
      const Coordinates first((*plan_.graph)[*kernel.entry].shape.size(), 0);
      destination.offset[0] = floored_mod(stored.load(*kernel.entry, first).as_int(), entries);
    }
    for (const Sample& sample : samples) {
      ++counts_.elements;
      if (sample.want.undecided) {
        ++counts_.undecided;
        continue;
      }
      const Scalar got = stored.load(destination, sample.at);
      if (agrees(dtype, sample.want, got)) continue;
      const Scalar want{is_float(dtype) ? DType::F64 : dtype, sample.want.bits};
      Diagnostic diagnostic;
      diagnostic.code = "kernel-differs";
      diagnostic.node = kernel.name;
      diagnostic.message = fmt::format(
          "call {}, kernel {}, element [{}]: the machine code gives {}, the graph in double "
          "precision {}; allowed difference {:.3g}",
          call, program_.kernels[program_.calls[call].kernel]->name, fmt::join(sample.at, ","),
          to_text(got), to_text(want), sample.want.error);
      return fail(ExitCode::Internal, std::move(diagnostic));
    }
    return {};
  }

  // Of one element.
  static constexpr std::uint64_t kMostSteps = 20'000'000;

  const Plan& plan_;
  const Program& program_;
  LoadedCode& code_;
  const KernelCheckOptions& options_;
  ProgramMemory memory_;
  std::vector<std::byte*> plan_memory_;  // by plan buffer
  KernelCheckCounts counts_;
};

}  // namespace

Result<KernelCheckCounts> check_kernels(const Plan& plan, const Program& program, LoadedCode& code,
                                        std::span<const std::vector<std::byte>> states,
                                        std::span<const KernelCheckFrame> frames,
                                        const KernelCheckOptions& options) {
  return KernelChecker(plan, program, code, options).run(states, frames);
}

}  // namespace ingot
