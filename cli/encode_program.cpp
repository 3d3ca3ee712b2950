#include "cli/encode_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>

#include "cli/json.h"
#include "cli/version.h"

namespace ingot::cli {
namespace {

// The codes of the compiler's enumerations are those of the format; these say so to the reader.
IngotDtype to_format(DType dtype) { return static_cast<IngotDtype>(dtype); }
IngotBufferKind to_format(BufferKind kind) { return static_cast<IngotBufferKind>(kind); }
IngotArch to_format(Architecture architecture) { return static_cast<IngotArch>(architecture); }
IngotAccess to_format(Access access) { return static_cast<IngotAccess>(access); }

std::unexpected<Failure> contradiction(std::string message) {
  return fail(ExitCode::Internal, "compiled-program", std::move(message), {},
              "this is a defect in ingot; please report it");
}

artifact::Camera to_format(const Camera& camera) {
  artifact::Camera result;
  result.name = camera.name;
  result.width = camera.width;
  result.height = camera.height;
  result.stride = camera.stride;
  result.y_height = camera.y_height;
  result.uv_height = camera.uv_height;
  result.pixel_format = static_cast<IngotPixelFormat>(camera.pixel_format);
  result.uv_offset = camera.uv_offset;
  result.buffer_nbytes = camera.size_bytes;
  result.sample_range = static_cast<IngotSampleRange>(camera.sample_range);
  result.colour_matrix = static_cast<IngotColourMatrix>(camera.colour_matrix);
  result.max_age_us = camera.max_age_us;
  return result;
}

// ---------------------------------------------------------------------------------------------
// Interface

IngotDirection direction(BufferKind kind) {
  if (kind == BufferKind::Input) return INGOT_DIRECTION_INPUT;
  return kind == BufferKind::State ? INGOT_DIRECTION_STATE : INGOT_DIRECTION_OUTPUT;
}

artifact::Slot to_slot(const PlanIo& io) {
  artifact::Slot slot;
  slot.name = io.name;
  slot.direction = direction(io.kind);
  slot.dtype = to_format(io.dtype);
  for (const std::int64_t extent : io.shape) {
    slot.shape.push_back(static_cast<std::uint32_t>(extent));
  }
  // A variant has one layout, so it is the first and only one of its interface.
  if (io.camera >= 0) slot.camera = 0;
  return slot;
}

// Slices cut the last dimension, and a named range of the format has no holes: an output of several
// rows gets one range for each slice of each row, `NAME.ROW`.
void add_slices(const PipelineResult::OutputSlices& output, artifact::Interface& interface) {
  const auto slot = std::ranges::find_if(interface.slots, [&](const artifact::Slot& candidate) {
    return candidate.name == output.output && candidate.direction == INGOT_DIRECTION_OUTPUT;
  });
  if (slot == interface.slots.end() || slot->shape.empty() || output.slices.empty()) return;
  const auto element = static_cast<std::uint64_t>(size_bytes(static_cast<DType>(slot->dtype)));
  std::uint64_t rows = 1;
  for (const std::uint32_t extent : std::span(slot->shape).first(slot->shape.size() - 1)) {
    rows *= extent;
  }
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (const ValueSlice& part : output.slices) {
      artifact::Slice slice;
      slice.name = rows == 1 ? part.name : fmt::format("{}.{}", part.name, row);
      slice.slot = static_cast<std::uint32_t>(slot - interface.slots.begin());
      slice.dtype = slot->dtype;
      slice.shape = {static_cast<std::uint32_t>(part.stop - part.start)};
      slice.offset = (row * slot->shape.back() + static_cast<std::uint64_t>(part.start)) * element;
      interface.slices.push_back(std::move(slice));
      // The writer refuses more than it can hold; this keeps the list short until then.
      if (interface.slices.size() > INGOT_MAX_SLICES) return;
    }
  }
}

bool holds_nan(DType dtype, std::span<const std::byte> bytes) {
  if (!is_float(dtype)) return false;
  const auto element = static_cast<std::size_t>(size_bytes(dtype));
  for (std::size_t at = 0; at + element <= bytes.size(); at += element) {
    if (std::isnan(Scalar::load(dtype, bytes.data() + at).as_double())) return true;
  }
  return false;
}

artifact::Reference expected_output(const PlanIo& io, const ReferenceTolerance& tolerance,
                                    std::span<const std::byte> bytes) {
  artifact::Reference reference;
  reference.compare = tolerance.same_bits ? INGOT_COMPARE_EXACT : INGOT_COMPARE_ABS_REL;
  reference.atol = tolerance.same_bits ? 0.0F : tolerance.atol;
  reference.nan_matches = !tolerance.same_bits && holds_nan(io.dtype, bytes);
  return reference;
}

// Adds the records of one sequence: every input, every output after the step, and states that
// another runtime gave.
class SequenceBuilder {
 public:
  SequenceBuilder(SharedReference sequence, std::uint32_t number, artifact::Interface& interface)
      : sequence_(std::move(sequence)), number_(number), interface_(interface) {}

  Result<void> add_step(std::uint32_t number, const Program& program) {
    const ReferenceStep& step = sequence_->steps[number];
    step_ = number;
    std::size_t inputs = 0;
    std::size_t states = 0;
    std::size_t outputs = 0;
    for (slot_ = 0; slot_ < program.io.size(); ++slot_) {
      const PlanIo& io = program.io[slot_];
      bool known = true;
      switch (io.kind) {
        case BufferKind::Input: known = add_input(step, inputs++); break;
        case BufferKind::State: known = add_state(io, step, states++); break;
        default: known = add_output(io, step, outputs++); break;
      }
      if (!known) return contradiction(fmt::format("reference step {} lacks '{}'", step_, io.name));
    }
    return {};
  }

 private:
  bool add_input(const ReferenceStep& step, std::size_t at) {
    if (at >= step.inputs.size()) return false;
    add({}, step.inputs[at], !sequence_->name.empty());
    return true;
  }

  bool add_output(const PlanIo& io, const ReferenceStep& step, std::size_t at) {
    if (at >= step.outputs.size() || at >= sequence_->tolerances.size()) return false;
    const bool is_outside = at < step.is_outside.size() && step.is_outside[at];
    add(expected_output(io, sequence_->tolerances[at], step.outputs[at]), step.outputs[at],
        is_outside);
    return true;
  }

  bool add_state(const PlanIo& io, const ReferenceStep& step, std::size_t at) {
    if (at >= step.next_states.size() || !step.next_states[at]) return true;
    if (at >= sequence_->state_tolerances.size()) return false;
    const std::vector<std::byte>& bytes = *step.next_states[at];
    add(expected_output(io, sequence_->state_tolerances[at], bytes), bytes, true);
    return true;
  }

  void add(artifact::Reference reference, const std::vector<std::byte>& bytes, bool is_outside) {
    reference.sequence = number_;
    reference.step = step_;
    reference.slot = static_cast<std::uint32_t>(slot_);
    reference.origin = is_outside ? INGOT_ORIGIN_ONNX_RUNTIME : INGOT_ORIGIN_OWN_DOUBLE;
    reference.data = {std::span<const std::byte>(bytes), sequence_};
    interface_.references.push_back(std::move(reference));
  }

  SharedReference sequence_;
  std::uint32_t number_;
  std::uint32_t step_ = 0;
  std::size_t slot_ = 0;
  artifact::Interface& interface_;
};

Result<void> add_references(const CompiledVariant& variant, artifact::Interface& interface) {
  for (std::uint32_t i = 0; i < variant.references.size(); ++i) {
    SequenceBuilder builder(variant.references[i], i, interface);
    for (std::uint32_t step = 0; step < variant.references[i]->steps.size(); ++step) {
      INGOT_RETURN_IF_ERROR(builder.add_step(step, variant.program));
    }
  }
  return {};
}

void describe_references(const CompiledVariant& variant, artifact::ManifestFacts& facts) {
  for (std::uint32_t i = 0; i < variant.references.size(); ++i) {
    const ReferenceSequence& sequence = *variant.references[i];
    facts.references.push_back({variant.camera, i, sequence.name, sequence.seed});
  }
}

Result<artifact::Interface> make_interface(const CompiledVariant& variant,
                                           const ArtifactFacts& facts) {
  artifact::Interface interface;
  if (!variant.camera.empty()) {
    const auto camera = std::ranges::find(facts.cameras, variant.camera, &Camera::name);
    if (camera == facts.cameras.end()) {
      return contradiction(fmt::format("no layout is named '{}'", variant.camera));
    }
    interface.cameras.push_back(to_format(*camera));
  }
  for (const PlanIo& io : variant.program.io) interface.slots.push_back(to_slot(io));
  for (const PipelineResult::OutputSlices& output : facts.slices) add_slices(output, interface);
  INGOT_RETURN_IF_ERROR(add_references(variant, interface));
  return interface;
}

// ---------------------------------------------------------------------------------------------
// Variants

// Subnormal numbers cost some processors a hundred cycles each; only strict arithmetic keeps them
// (docs/decisions/0010-subnormals.md).
bool has_relaxed_floats(const Program& program) {
  return std::ranges::any_of(program.kernels, [](const auto& kernel) {
    for (std::uint32_t i = 0; i < kernel->pool.size(); ++i) {
      const Expr& expr = kernel->pool[ExprId{i}];
      if (expr.kind == ExprKind::Scalar && is_float(expr.dtype) && !expr.strict) return true;
    }
    return false;
  });
}

// Weights by the memory they lie in: call lists of several cameras and targets share it. Equal
// bytes in different memory are found by the writer.
class DataPool {
 public:
  explicit DataPool(std::vector<artifact::Blob>& data) : data_(data) {}

  std::uint32_t add(const ProgramConstant& constant) {
    const auto next = static_cast<std::uint32_t>(data_.size());
    const auto [place, fresh] = places_.emplace(constant.bytes.get(), next);
    if (fresh) data_.push_back({std::span<const std::byte>(*constant.bytes), constant.bytes});
    return place->second;
  }

 private:
  std::vector<artifact::Blob>& data_;
  std::map<const void*, std::uint32_t> places_;
};

// Converts one call list. Views are made where a call needs them: one for each buffer, type and
// extent.
class VariantBuilder {
 public:
  VariantBuilder(const CompiledVariant& compiled, DataPool& data)
      : compiled_(compiled), program_(compiled.program), data_(data) {}

  Result<artifact::Variant> build() {
    describe_target();
    for (const ProgramArena& arena : program_.arenas) add_arena(arena);
    for (const ProgramBuffer& buffer : program_.buffers) add_buffer(buffer);
    INGOT_RETURN_IF_ERROR(add_programs());
    for (const ProgramCall& call : program_.calls) INGOT_RETURN_IF_ERROR(add_call(call));
    write_empty_results();
    for (const ProgramTransform& transform : program_.transforms) add_transform(transform);
    return std::move(variant_);
  }

 private:
  void describe_target() {
    const Target& target = compiled_.target;
    variant_.name = compiled_.camera.empty() ? target.name : compiled_.camera + "/" + target.name;
    variant_.arch = to_format(target.architecture);
    variant_.cpu_features[0] = target.feature_bits;
    variant_.xcr0 = target.xcr0;
    variant_.threads = program_.workers;
    const bool flush = has_relaxed_floats(program_);
    if (target.architecture == Architecture::X86_64) {
      variant_.fp_control = flush ? INGOT_FP_X86_FLUSH : INGOT_FP_X86_DEFAULT;
    } else {
      variant_.fp_control = flush ? INGOT_FP_AARCH64_FLUSH : INGOT_FP_AARCH64_DEFAULT;
    }
  }

  void add_arena(const ProgramArena& arena) {
    artifact::Arena result;
    result.nbytes = arena.size_bytes;
    result.role = arena.state ? INGOT_ARENA_STATE : INGOT_ARENA_FRAME;
    variant_.arenas.push_back(result);
  }

  // A state without a second buffer is written where it is read.
  bool is_in_place(const ProgramBuffer& buffer) const {
    if (buffer.kind != BufferKind::State) return false;
    return std::ranges::none_of(program_.buffers, [&](const ProgramBuffer& other) {
      return other.kind == BufferKind::NextState && other.io == buffer.io;
    });
  }

  void add_buffer(const ProgramBuffer& buffer) {
    artifact::Buffer result;
    result.kind = to_format(buffer.kind);
    result.nbytes = buffer.size_bytes;
    if (buffer.arena != kNone) result.arena = buffer.arena;
    result.arena_offset = buffer.arena_offset;
    if (buffer.io != kNone) result.slot = buffer.io;
    if (buffer.constant != kNone) result.data = data_.add(program_.constants[buffer.constant]);
    if (buffer.kind == BufferKind::State && program_.io[buffer.io].initial) {
      const std::span<const std::byte> bytes = program_.io[buffer.io].initial->bytes;
      result.data = data_.add(ProgramConstant{
          std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end())});
    }
    result.first_call = buffer.first_call;
    result.last_call = buffer.last_call;
    const bool is_caller_kind =
        buffer.kind == BufferKind::Input || buffer.kind == BufferKind::Output;
    result.caller_memory = is_caller_kind && buffer.arena == kNone;
    result.in_place = is_in_place(buffer);
    variant_.buffers.push_back(result);
  }

  Result<void> add_programs() {
    if (compiled_.code.entries.size() != program_.kernels.size()) {
      return contradiction("the code does not have one entry for each kernel");
    }
    if (program_.kernels.empty()) return {};
    variant_.code.push_back(artifact::borrow(compiled_.code.bytes));
    for (std::size_t i = 0; i < program_.kernels.size(); ++i) {
      add_program(*program_.kernels[i], compiled_.code.entries[i]);
    }
    return {};
  }

  void add_program(const ScheduledKernel& kernel, const CodeBlob::Entry& entry) {
    artifact::Program result;
    result.name = kernel.name;
    result.entry_offset = entry.offset;
    result.code_nbytes = entry.size_bytes;
    result.stack_bytes = entry.stack_bytes;
    for (const KernelParameter& parameter : kernel.parameters) {
      artifact::Param param;
      param.nbytes = extent_bytes(parameter);
      param.dtype = to_format(parameter.dtype);
      param.access = to_format(parameter.access);
      param.align_log2 = INGOT_MIN_ALIGN_LOG2;
      result.params.push_back(param);
    }
    variant_.programs.push_back(std::move(result));
  }

  static std::uint64_t extent_bytes(const KernelParameter& parameter) {
    return static_cast<std::uint64_t>(element_count(parameter.layout, parameter.shape)) *
           static_cast<std::uint64_t>(size_bytes(parameter.dtype));
  }

  Result<void> add_call(const ProgramCall& call) {
    artifact::Call result;
    result.source = static_cast<std::uint32_t>(variant_.calls.size());
    result.kind = static_cast<IngotCallKind>(call.kind);
    for (const std::uint32_t buffer : call.buffers) {
      if (buffer >= program_.buffers.size()) return contradiction("a call names no buffer");
    }
    switch (call.kind) {
      case CallKind::Program: INGOT_RETURN_IF_ERROR(fill_program_call(call, result)); break;
      case CallKind::Copy:
        result.args = {bytes_of(call.buffers[0], INGOT_ACCESS_READ),
                       bytes_of(call.buffers[1], INGOT_ACCESS_WRITE)};
        break;
      case CallKind::Fill:
        result.args = {bytes_of(call.buffers[0], INGOT_ACCESS_WRITE)};
        result.immediate = call.fill;
        break;
    }
    variant_.calls.push_back(std::move(result));
    return {};
  }

  Result<void> fill_program_call(const ProgramCall& call, artifact::Call& result) {
    if (call.kernel >= program_.kernels.size() ||
        program_.kernels[call.kernel]->parameters.size() != call.buffers.size()) {
      return contradiction(fmt::format("call '{}' does not fit its kernel", call.name));
    }
    result.program = call.kernel;
    result.grid = {call.grid, 1, 1};
    const ScheduledKernel& kernel = *program_.kernels[call.kernel];
    for (std::size_t i = 0; i < call.buffers.size(); ++i) {
      const KernelParameter& parameter = kernel.parameters[i];
      artifact::Arg arg;
      arg.view = view(call.buffers[i], parameter.dtype, extent_bytes(parameter));
      arg.access = to_format(parameter.access);
      result.args.push_back(arg);
    }
    return {};
  }

  artifact::Arg bytes_of(std::uint32_t buffer, IngotAccess access) {
    artifact::Arg arg;
    arg.view = view(buffer, DType::U8, program_.buffers[buffer].size_bytes);
    arg.access = access;
    return arg;
  }

  std::uint32_t view(std::uint32_t buffer, DType dtype, std::uint64_t nbytes) {
    const auto next = static_cast<std::uint32_t>(variant_.views.size());
    const auto [place, fresh] = views_.emplace(std::tuple(buffer, dtype, nbytes), next);
    if (!fresh) return place->second;
    artifact::View result;
    result.buffer = buffer;
    result.dtype = to_format(dtype);
    result.shape = flat_shape(nbytes / static_cast<std::uint64_t>(size_bytes(dtype)));
    variant_.views.push_back(std::move(result));
    return next;
  }

  // One dimension, or two where one dimension may not be that long.
  static std::vector<std::uint32_t> flat_shape(std::uint64_t elements) {
    if (elements < INGOT_MAX_DIMENSION) return {static_cast<std::uint32_t>(elements)};
    std::uint64_t inner = 1;
    while (elements / inner >= INGOT_MAX_DIMENSION || elements % inner != 0) ++inner;
    return {static_cast<std::uint32_t>(elements / inner), static_cast<std::uint32_t>(inner)};
  }

  // No kernel computes a result of no elements, but an artifact writes each of its results: a fill
  // of no bytes does.
  void write_empty_results() {
    for (std::uint32_t i = 0; i < program_.buffers.size(); ++i) {
      const ProgramBuffer& buffer = program_.buffers[i];
      const bool is_result =
          buffer.kind == BufferKind::Output || buffer.kind == BufferKind::NextState;
      const bool is_used = std::ranges::any_of(program_.calls, [&](const ProgramCall& call) {
        return std::ranges::find(call.buffers, i) != call.buffers.end();
      });
      if (!is_result || is_used || buffer.size_bytes != 0) continue;
      const auto index = static_cast<std::uint32_t>(variant_.calls.size());
      artifact::Call fill;
      fill.kind = INGOT_CALL_FILL;
      fill.source = index;
      fill.args = {bytes_of(i, INGOT_ACCESS_WRITE)};
      variant_.calls.push_back(std::move(fill));
      variant_.buffers[i].first_call = std::min(buffer.first_call, index);
      variant_.buffers[i].last_call = std::max(buffer.last_call, index);
    }
  }

  void add_transform(const ProgramTransform& transform) {
    artifact::Transform result;
    result.slot = transform.io;
    if (transform.camera >= 0) result.camera = 0;
    result.matrix_offset = transform.offset_bytes;
    result.width = transform.width;
    result.height = transform.height;
    result.kind = transform.cabin ? INGOT_TRANSFORM_CABIN : INGOT_TRANSFORM_ROAD;
    variant_.transforms.push_back(result);
  }

  const CompiledVariant& compiled_;
  const Program& program_;
  DataPool& data_;
  artifact::Variant variant_;
  std::map<std::tuple<std::uint32_t, DType, std::uint64_t>, std::uint32_t> views_;
};

// Sorts before less capable targets of its architecture.
auto capability(const Target& target) {
  return std::tuple(target.architecture, -target.vector_bits, -std::popcount(target.feature_bits),
                    target.name);
}

// The most capable target is tried first; layouts of one target in the order they were named.
void set_priorities(const Compiled& compiled, artifact::ArtifactContents& contents) {
  std::map<decltype(capability(Target{})), std::uint32_t> ranks;
  for (const CompiledVariant& variant : compiled.variants) ranks[capability(variant.target)] = 0;
  std::uint32_t next = 0;
  for (auto& [key, rank] : ranks) rank = next++;
  for (std::size_t i = 0; i < compiled.variants.size(); ++i) {
    contents.variants[i].priority = ranks[capability(compiled.variants[i].target)];
  }
}

artifact::ExtraSection debug_section(const Program& program, std::uint32_t variant) {
  const std::string text = call_costs_text(program);
  const auto bytes = std::as_bytes(std::span(text));
  artifact::ExtraSection section;
  section.type = INGOT_SECTION_DEBUG;
  section.variant = variant;
  section.bytes = artifact::own(std::vector<std::byte>(bytes.begin(), bytes.end()));
  return section;
}

artifact::ArtifactContents identity(const ArtifactFacts& facts) {
  artifact::ArtifactContents contents;
  contents.product = facts.product;
  contents.device_family = facts.device_family;
  contents.build_class = facts.build_class;
  contents.security_counter = facts.security_counter;
  contents.models = facts.models;
  contents.manifest = facts.manifest;
  return contents;
}

}  // namespace

std::string call_costs_text(const Program& program) {
  Json calls = Json::array();
  for (const ProgramCall& call : program.calls) {
    Json entry;
    entry["name"] = call.name;
    entry["operations"] = call.flops;
    entry["read_bytes"] = call.bytes_read;
    entry["written_bytes"] = call.bytes_written;
    calls.push_back(std::move(entry));
  }
  return to_compact_text(Json{{"calls", std::move(calls)}});
}

Result<artifact::ArtifactContents> encode_program(const Compiled& compiled,
                                                  const ArtifactFacts& facts) {
  artifact::ArtifactContents contents = identity(facts);
  contents.producer = {kVersionMajor, kVersionMinor, kVersionPatch};
  DataPool data(contents.data);
  std::map<std::string, std::uint32_t> interfaces;  // by camera
  for (const CompiledVariant& compiled_variant : compiled.variants) {
    const auto next = static_cast<std::uint32_t>(contents.interfaces.size());
    const auto [interface, fresh] = interfaces.emplace(compiled_variant.camera, next);
    if (fresh) {
      INGOT_ASSIGN(artifact::Interface made, make_interface(compiled_variant, facts));
      contents.interfaces.push_back(std::move(made));
      describe_references(compiled_variant, contents.manifest);
    }
    INGOT_ASSIGN(artifact::Variant variant, VariantBuilder(compiled_variant, data).build());
    variant.interface = interface->second;
    const auto index = static_cast<std::uint32_t>(contents.variants.size());
    contents.extra_sections.push_back(debug_section(compiled_variant.program, index));
    contents.variants.push_back(std::move(variant));
  }
  set_priorities(compiled, contents);
  return contents;
}

}  // namespace ingot::cli
