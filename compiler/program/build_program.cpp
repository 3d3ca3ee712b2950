#include "compiler/program/build_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/check.h"
#include "compiler/lowering/lower_kernel.h"
#include "compiler/lowering/schedule.h"
#include "compiler/lowering/zero_halo.h"
#include "compiler/plan/winograd.h"
#include "compiler/program/find_bands.h"

namespace ingot {
namespace {

std::uint64_t buffer_bytes(DType dtype, const Shape& shape, const Layout& layout) {
  return static_cast<std::uint64_t>(element_count(layout, shape)) *
         static_cast<std::uint64_t>(size_bytes(dtype));
}

class ProgramBuilder {
 public:
  ProgramBuilder(const Plan& plan, const Target& target, const BuildOptions& options)
      : plan_(plan),
        target_(target),
        options_(options),
        largest_tile_(largest_winograd_tile(*plan.graph)) {}

  Result<Program> run() {
    program_.name = plan_.graph->name;
    program_.workers = target_.workers;
    program_.io = plan_.io;
    buffer_of_.assign(plan_.buffers.size(), kNone);
    for (std::uint32_t i = 0; i < plan_.buffers.size(); ++i) {
      if (is_slot(plan_.buffers[i].kind)) (void)buffer(i);
    }
    INGOT_RETURN_IF_ERROR(lower_kernels());
    INGOT_RETURN_IF_ERROR(add_kernels());
    if (!misfits_.diagnostics.empty()) return std::unexpected(std::move(misfits_));
    if (options_.schedule) {
      begins("share-in-place");
      share_in_place(program_);
    }
    find_lifetimes();
    add_transforms();
    if (options_.schedule && options_.trace) {
      options_.trace("share-in-place", print_program(program_));
    }
    begins("plan-memory");
    INGOT_RETURN_IF_ERROR(plan_memory(program_));
    begins("");
    pack_constants();
    return std::move(program_);
  }

 private:
  static bool is_slot(BufferKind kind) {
    return kind != BufferKind::Constant && kind != BufferKind::Scratch;
  }

  // The program's buffer for a plan buffer, made at first use.
  std::uint32_t buffer(std::uint32_t plan_buffer) {
    std::uint32_t& known = buffer_of_[plan_buffer];
    if (known != kNone) return known;
    const PlanBuffer& source = plan_.buffers[plan_buffer];
    ProgramBuffer made;
    made.kind = source.kind;
    made.dtype = source.dtype;
    made.shape = source.shape;
    made.layout = source.layout;
    made.size_bytes = buffer_bytes(source.dtype, source.shape, source.layout);
    if (is_slot(source.kind)) made.io = source.io;
    made.plan_buffers = {plan_buffer};
    program_.buffers.push_back(std::move(made));
    known = static_cast<std::uint32_t>(program_.buffers.size() - 1);
    if (source.zero_before) add_zero_halo(source, known);
    return known;
  }

  void add_zero_halo(const PlanBuffer& source, std::uint32_t index) {
    ProgramCall call;
    call.kind = CallKind::Fill;
    call.buffers = {index};
    call.name = "zero halo";
    call.bytes_written = program_.buffers[index].size_bytes;
    std::optional<ScheduledKernel> kernel;
    if (options_.schedule) {
      kernel = zero_halo_kernel(source.dtype, source.shape, source.layout, target_);
    }
    if (kernel) {
      call.kind = CallKind::Program;
      call.grid = static_cast<std::uint32_t>(kernel->parallel_extent());
      call.bytes_written -= static_cast<std::uint64_t>(element_count(source.shape)) *
                            static_cast<std::uint64_t>(size_bytes(source.dtype));
      call.kernel = kernel_index(*std::move(kernel));
    }
    program_.calls.push_back(std::move(call));
  }

  // A constant as its reader wants it; equal value and packing are one buffer.
  std::uint32_t constant_buffer(std::uint32_t plan_buffer, const Shape& shape, const Layout& layout,
                                int winograd) {
    const PlanBuffer& source = plan_.buffers[plan_buffer];
    const auto key = std::tuple(source.constant, shape, to_text(layout), winograd);
    if (const auto known = constants_.find(key); known != constants_.end()) return known->second;
    ProgramBuffer made;
    made.kind = BufferKind::Constant;
    made.dtype = winograd > 0 ? DType::F32 : source.dtype;
    made.shape = winograd > 0 ? transformed_shape(shape, winograd) : shape;
    made.layout = layout;
    made.size_bytes = buffer_bytes(made.dtype, made.shape, layout);
    made.constant = static_cast<std::uint32_t>(program_.constants.size());
    program_.constants.emplace_back();
    program_.buffers.push_back(std::move(made));
    unpacked_.push_back({source.constant, shape, layout, winograd});
    const auto index = static_cast<std::uint32_t>(program_.buffers.size() - 1);
    constants_.emplace(key, index);
    return index;
  }

  // Last, and timed apart: the work grows with the weights alone.
  void pack_constants() {
    for (std::size_t i = 0; i < unpacked_.size(); ++i) {
      if (options_.packing) options_.packing(i, unpacked_.size());
      const UnpackedConstant& source = unpacked_[i];
      Tensor tensor = materialize(*plan_.graph, source.value);
      tensor.shape = source.shape;  // rules may have joined dimensions
      if (source.winograd > 0) tensor = transform_weights(tensor, source.winograd);
      program_.constants[i].bytes =
          std::make_shared<const std::vector<std::byte>>(pack(source.layout, tensor));
    }
    if (options_.packing) options_.packing(unpacked_.size(), unpacked_.size());
  }

  // Memory of the workers, for one call.
  std::uint32_t worker_buffer(const KernelParameter& parameter) {
    ProgramBuffer made;
    made.kind = BufferKind::Scratch;
    made.dtype = parameter.dtype;
    made.shape = parameter.shape;
    made.layout = parameter.layout;
    made.size_bytes = buffer_bytes(made.dtype, made.shape, made.layout);
    program_.buffers.push_back(std::move(made));
    return static_cast<std::uint32_t>(program_.buffers.size() - 1);
  }

  // The first pass of rules runs before bands are chosen: it takes extents for what they are.
  Result<void> lower_kernels() {
    for (const PlanKernel& plan_kernel : plan_.kernels) {
      begins("lower-kernel");
      INGOT_ASSIGN(LoweredKernel lowered, lower_kernel(plan_, plan_kernel));
      INGOT_RETURN_IF_ERROR(validate_kernel(lowered.kernel));
      if (options_.trace) options_.trace("lower-kernel", print_kernel(lowered.kernel));
      if (options_.schedule) {
        INGOT_RETURN_IF_ERROR(apply_rules(ranged_passes().front(), lowered.kernel));
      }
      lowered_.push_back(std::move(lowered));
    }
    return {};
  }

  // Those of a group where its last one stands.
  Result<void> add_kernels() {
    std::map<std::uint32_t, FoundBands> groups;  // by last kernel
    std::vector<bool> in_group(lowered_.size());
    if (options_.schedule && options_.bands) {
      begins("fuse-bands");
      std::string text;
      for (FoundBands& bands : find_bands(plan_, lowered_, winograd_kernels(), target_)) {
        text += describe(bands);
        for (const std::uint32_t kernel : bands.kernels) in_group[kernel] = true;
        groups.emplace(bands.kernels.back(), std::move(bands));
      }
      if (options_.trace) options_.trace("fuse-bands", text.empty() ? "; no groups\n" : text);
    }
    for (std::uint32_t i = 0; i < lowered_.size(); ++i) {
      const auto group = groups.find(i);
      if (group != groups.end()) {
        INGOT_RETURN_IF_ERROR(add_bands(std::move(group->second)));
      } else if (!in_group[i]) {
        INGOT_RETURN_IF_ERROR(add_kernel(i));
      }
    }
    return {};
  }

  std::string describe(const FoundBands& bands) const {
    std::string text = "; group of";
    for (const std::uint32_t kernel : bands.kernels) {
      text += fmt::format(" \"{}\"", plan_.kernels[kernel].name);
    }
    for (const BandLevel& level : bands.group.levels) {
      text += fmt::format(", {} of {}", level.size, level.extent);
    }
    return text + fmt::format(": {} bytes of a worker\n", bands.group.local_bytes());
  }

  std::vector<bool> winograd_kernels() const {
    std::vector<bool> found;
    for (const LoweredKernel& lowered : lowered_) {
      found.push_back(
          choose_winograd(lowered.kernel, lowered.is_constant, target_, largest_tile_).has_value());
    }
    return found;
  }

  Result<void> add_bands(FoundBands bands) {
    for (std::size_t s = 0; s < bands.kernels.size(); ++s) {
      BandStage& stage = bands.group.stages[s];
      begins("apply-schedule");
      stage.schedule = schedule_of(stage.kernel, lowered_[bands.kernels[s]].is_constant, true);
      // Where elements are stored twice the operand must last until the end.
      if (stage.local[0] != kNoLocal && !stores_once(stage.schedule, stage.kernel)) {
        bands.group.locals[stage.local[0]].in_place_of = kNoLocal;
      }
    }
    begins("fuse-bands");
    FusedBands fused = fuse_bands(bands.group, target_);
    ScheduledKernel& scheduled = fused.kernel;
    INGOT_RETURN_IF_ERROR(validate_kernel(scheduled));
    if (options_.trace) options_.trace("fuse-bands", print_kernel(scheduled));
    ProgramCall call = call_of(bands.kernels.back(), scheduled);
    for (const std::uint32_t kernel : bands.kernels) {
      if (kernel != bands.kernels.back()) call.flops += lowered_[kernel].flops;
    }
    for (std::size_t p = 0; p < fused.identity.size(); ++p) {
      const std::uint32_t index = fused.identity[p];
      const KernelParameter& parameter = scheduled.parameters[p];
      const bool is_constant = plan_.buffers[index].kind == BufferKind::Constant;
      add_argument(call, p,
                   is_constant ? constant_buffer(index, parameter.shape, parameter.layout, 0)
                               : buffer(index));
    }
    call.buffers.push_back(worker_buffer(scheduled.parameters.back()));
    call.kernel = kernel_index(std::move(scheduled));
    program_.calls.push_back(std::move(call));
    return {};
  }

  ProgramCall call_of(std::uint32_t index_in_plan, const ScheduledKernel& scheduled) const {
    ProgramCall call;
    call.name = plan_.kernels[index_in_plan].name;
    call.plan_kernel = index_in_plan;
    call.grid = static_cast<std::uint32_t>(scheduled.parallel_extent());
    call.flops = lowered_[index_in_plan].flops;
    return call;
  }

  void add_argument(ProgramCall& call, std::size_t p, std::uint32_t index) const {
    call.buffers.push_back(index);
    const ProgramBuffer& b = program_.buffers[index];
    const auto element = static_cast<std::uint64_t>(size_bytes(b.dtype));
    if (p == 0) {
      const Shape& shape = (*plan_.graph)[plan_.kernels[call.plan_kernel].root].shape;
      call.bytes_written = static_cast<std::uint64_t>(element_count(shape)) * element;
    } else {
      call.bytes_read += static_cast<std::uint64_t>(element_count(b.shape)) * element;
    }
  }

  Result<void> add_kernel(std::uint32_t index_in_plan) {
    LoweredKernel& lowered = lowered_[index_in_plan];
    if (options_.schedule) {
      INGOT_RETURN_IF_ERROR(apply_rules(ranged_passes().back(), lowered.kernel));
    }
    begins("apply-schedule");
    const Schedule schedule = schedule_of(lowered.kernel, lowered.is_constant, false);
    INGOT_ASSIGN(ScheduledKernel scheduled, apply_schedule(lowered.kernel, schedule, target_));
    INGOT_RETURN_IF_ERROR(validate_kernel(scheduled));
    if (options_.trace) options_.trace("apply-schedule", print_kernel(scheduled));

    ProgramCall call = call_of(index_in_plan, scheduled);
    if (schedule.winograd) call.winograd = schedule.winograd->tile;
    call.stores_once = stores_once(schedule, lowered.kernel);
    for (std::size_t p = 0; p < lowered.buffers.size(); ++p) {
      add_argument(call, p,
                   lowered.is_constant[p]
                       ? constant_buffer(lowered.buffers[p], lowered.kernel.parameters[p].shape,
                                         scheduled.parameters[p].layout, winograd_of(schedule, p))
                       : buffer(lowered.buffers[p]));
    }
    for (std::size_t p = lowered.buffers.size(); p < scheduled.parameters.size(); ++p) {
      call.buffers.push_back(worker_buffer(scheduled.parameters[p]));
    }
    call.kernel = kernel_index(std::move(scheduled));
    program_.calls.push_back(std::move(call));
    return {};
  }

  void begins(std::string_view pass) const {
    if (options_.begins) options_.begins(std::string(pass));
  }

  Result<void> apply_rules(const RangedPass& pass, RangedKernel& kernel) const {
    begins(pass.name);
    INGOT_ASSIGN(Rewritten rewritten, pass.run(kernel, options_.rules));
    kernel = std::move(rewritten.kernel);
    if (options_.counted) options_.counted(rewritten.counts);
    if (options_.trace) options_.trace(std::string(pass.name), print_kernel(kernel));
    return {};
  }

  // A given schedule that does not fit is noted, so that all of them are told together. A stage of
  // bands has no memory of its own.
  Schedule schedule_of(const RangedKernel& kernel, const std::vector<bool>& is_constant,
                       bool is_stage) {
    const int largest_tile = is_stage ? 0 : largest_tile_;
    if (!options_.schedule) return plain_schedule(kernel);
    const std::uint64_t key = schedule_key(kernel, is_constant);
    const KernelSchedule* given = options_.find_schedule ? options_.find_schedule(key) : nullptr;
    if (is_stage && given != nullptr && has_winograd(*given)) given = nullptr;  // of a whole kernel
    Result<Schedule> schedule =
        given == nullptr ? choose_schedule(kernel, is_constant, target_, largest_tile, is_stage)
                         : parse_steps(given->steps, kernel, is_constant, target_, largest_tile);
    if (!schedule) {
      note_failure(*given, std::move(schedule).error());
      return plain_schedule(kernel);
    }
    if (is_stage) {
      schedule->widen.reset();
      schedule->chunk.reset();
      schedule->ahead.reset();
    }
    if (scheduled_.insert(key).second) {
      program_.schedules.push_back(
          {target_.name, key, kernel.name, to_steps(*schedule, kernel), {}, 0});
    }
    return *std::move(schedule);
  }

  static bool has_winograd(const KernelSchedule& given) {
    return std::ranges::any_of(
        given.steps, [](const std::string& step) { return step.starts_with("winograd"); });
  }

  void note_failure(const KernelSchedule& given, Failure failure) {
    misfits_.exit = failure.exit;
    for (Diagnostic& diagnostic : failure.diagnostics) {
      diagnostic.file = given.file;
      diagnostic.message =
          fmt::format("line {}: kernel '{}': {}", given.line, given.name, diagnostic.message);
      misfits_.diagnostics.push_back(std::move(diagnostic));
    }
  }

  static int winograd_of(const Schedule& schedule, std::size_t parameter) {
    for (const Schedule::Packing& packing : schedule.packings) {
      if (packing.parameter == parameter) return packing.winograd;
    }
    return 0;
  }

  std::uint32_t kernel_index(ScheduledKernel kernel) {
    const auto [entry, added] =
        kernels_.emplace(identity_key(kernel), static_cast<std::uint32_t>(program_.kernels.size()));
    if (added) {
      program_.kernels.push_back(std::make_shared<const ScheduledKernel>(std::move(kernel)));
    }
    return entry->second;
  }

  // Inputs, states, constants and outputs live through the whole list: the caller owns or reads
  // them outside of it.
  void find_lifetimes() {
    const std::uint32_t last =
        program_.calls.empty() ? 0 : static_cast<std::uint32_t>(program_.calls.size() - 1);
    for (ProgramBuffer& buffer : program_.buffers) {
      const bool scratch = buffer.kind == BufferKind::Scratch;
      buffer.first_call = scratch ? last : 0;
      buffer.last_call = scratch ? 0 : last;
    }
    for (std::uint32_t i = 0; i < program_.calls.size(); ++i) {
      for (std::uint32_t index : program_.calls[i].buffers) {
        ProgramBuffer& buffer = program_.buffers[index];
        if (buffer.kind != BufferKind::Scratch) continue;
        buffer.first_call = std::min(buffer.first_call, i);
        buffer.last_call = std::max(buffer.last_call, i);
      }
    }
  }

  // What a constant of the program is made of.
  struct UnpackedConstant {
    ValueId value;
    Shape shape;
    Layout layout;
    int winograd;  // tile, 0: none
  };

  std::uint32_t io_of(ValueId input) const {
    return plan_.buffers[plan_.placed.at(input).buffer].io;
  }

  void add_transforms() {
    for (const GraphTransform& transform : plan_.graph->transforms) {
      ProgramTransform made;
      made.io = io_of(transform.input);
      made.offset_bytes = static_cast<std::uint64_t>(transform.offset_bytes);
      made.width = static_cast<std::uint32_t>(transform.width);
      made.height = static_cast<std::uint32_t>(transform.height);
      made.camera = program_.io[io_of(transform.frame)].camera;
      made.cabin = transform.cabin;
      program_.transforms.push_back(made);
    }
  }

  const Plan& plan_;
  const Target& target_;
  const BuildOptions& options_;
  const int largest_tile_;  // of Winograd convolutions
  Program program_;
  std::vector<LoweredKernel> lowered_;  // of the plan's kernels
  std::vector<std::uint32_t> buffer_of_;
  std::map<std::tuple<ValueId, Shape, std::string, int>, std::uint32_t> constants_;
  std::vector<UnpackedConstant> unpacked_;  // in the order of the program's constants
  std::map<std::string, std::uint32_t> kernels_;
  std::set<std::uint64_t> scheduled_;  // keys
  Failure misfits_;                    // given schedules that do not fit
};

}  // namespace

Result<Program> build_program(const Plan& plan, const Target& target, const BuildOptions& options) {
  return ProgramBuilder(plan, target, options).run();
}

}  // namespace ingot
