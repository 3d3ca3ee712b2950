#include "artifact/fuse.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "artifact/geometry.h"
#include "artifact/tables.h"

namespace ingot::artifact {
namespace {

using Json = nlohmann::json;

// "x86-64-v3" of "ox03c10/x86-64-v3".
std::string target_of(const Variant& variant) {
  return variant.name.substr(variant.name.rfind('/') + 1);
}

std::string type_of(const Slot& slot) {
  return fmt::format("{}[{}]", dtype_name(slot.dtype), fmt::join(slot.shape, ","));
}

bool same_type(const Slot& a, const Slot& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides && a.nbytes == b.nbytes;
}

// A camera frame, or an input that frames are packed into.
bool holds_frames(const Interface& interface, std::uint32_t slot) {
  return interface.slots[slot].camera.has_value() ||
         std::ranges::any_of(interface.slices, [&](const Slice& slice) {
           return slice.slot == slot && slice.camera.has_value();
         });
}

// But for the size of camera frames.
bool same_slots(const Interface& a, const Interface& b) {
  if (a.slots.size() != b.slots.size()) return false;
  for (std::uint32_t s = 0; s < a.slots.size(); ++s) {
    const Slot& x = a.slots[s];
    const Slot& y = b.slots[s];
    const bool frames = holds_frames(a, s);
    if (x.name != y.name || x.direction != y.direction || x.dtype != y.dtype ||
        x.camera.has_value() != y.camera.has_value() || frames != holds_frames(b, s) ||
        (!frames && !same_type(x, y))) {
      return false;
    }
  }
  return std::ranges::equal(a.slices, b.slices, [](const Slice& x, const Slice& y) {
    return x.name == y.name && x.slot == y.slot && x.dtype == y.dtype;
  });
}

bool is_input(const Slot& slot) { return slot.direction == INGOT_DIRECTION_INPUT; }
bool is_output(const Slot& slot) { return slot.direction == INGOT_DIRECTION_OUTPUT; }

// Calls that touch each buffer.
struct Touches {
  std::vector<std::uint32_t> first, last;
  std::vector<bool> any;

  explicit Touches(const Variant& variant)
      : first(variant.buffers.size()), last(variant.buffers.size()), any(variant.buffers.size()) {
    for (std::uint32_t c = 0; c < variant.calls.size(); ++c) {
      for (const Arg& arg : variant.calls[c].args) {
        if (arg.kind != INGOT_ARG_VIEW) continue;
        const std::uint32_t buffer = variant.views[arg.view].buffer;
        if (!any[buffer]) first[buffer] = c;
        any[buffer] = true;
        last[buffer] = c;
      }
    }
  }
};

// One variant of each as one.
class VariantJoiner {
 public:
  // Slots of both in the fused interface; none: a slot that the other part's takes the place of.
  using SlotMap = std::vector<std::optional<std::uint32_t>>;

  VariantJoiner(const Variant& model, const Variant& warp, const SlotMap& model_slots,
                const SlotMap& warp_slots,
                const std::map<std::uint32_t, std::uint32_t>& input_of_output,
                std::uint32_t warp_data)
      : model_(model),
        warp_(warp),
        model_slots_(model_slots),
        warp_slots_(warp_slots),
        input_of_output_(input_of_output),
        warp_data_(warp_data),
        model_touches_(model),
        warp_touches_(warp) {}

  Variant run(std::uint32_t interface) {
    out_ = warp_;
    out_.interface = interface;
    out_.fp_control = model_.fp_control;
    out_.arenas.clear();
    out_.buffers.clear();
    out_.views.clear();
    out_.programs = model_.programs;
    out_.calls.clear();
    out_.transforms.clear();
    out_.code = model_.code;
    join_arenas();
    join_buffers();
    join_programs();
    join_calls();
    return std::move(out_);
  }

 private:
  std::uint32_t warp_calls() const { return static_cast<std::uint32_t>(warp_.calls.size()); }
  std::uint32_t last_call() const {
    const std::size_t calls = warp_.calls.size() + model_.calls.size();
    return static_cast<std::uint32_t>(std::max<std::size_t>(calls, 1) - 1);
  }

  static std::uint64_t bytes_of(const Variant& variant, IngotArenaRole role) {
    std::uint64_t bytes = 0;
    for (const Arena& arena : variant.arenas) {
      if (arena.role == role) bytes += align_up(arena.nbytes, INGOT_ALIGNMENT);
    }
    return bytes;
  }

  // Where the arenas of a part begin in those of the whole.
  static std::vector<std::uint64_t> bases(const Variant& variant, std::uint64_t states) {
    std::uint64_t frame = 0;
    std::vector<std::uint64_t> result;
    for (const Arena& arena : variant.arenas) {
      std::uint64_t& next = arena.role == INGOT_ARENA_FRAME ? frame : states;
      result.push_back(next);
      next += align_up(arena.nbytes, INGOT_ALIGNMENT);
    }
    return result;
  }

  // Scratch of the warp is dead when the model begins: both begin at 0. Behind them stand the
  // pictures.
  void join_arenas() {
    pictures_ = std::max(bytes_of(model_, INGOT_ARENA_FRAME), bytes_of(warp_, INGOT_ARENA_FRAME));
    const std::uint64_t model_states = bytes_of(model_, INGOT_ARENA_STATE);
    model_bases_ = bases(model_, 0);
    warp_bases_ = bases(warp_, model_states);
    std::uint64_t frame = pictures_;
    for (const auto& [output, input] : input_of_output_) {
      picture_at_[output] = frame;
      frame += align_up(buffer_of(warp_, output).nbytes, INGOT_ALIGNMENT);
    }
    std::uint32_t align = INGOT_ALIGNMENT_LOG2;
    for (const Variant* part : {&model_, &warp_}) {
      for (const Arena& arena : part->arenas) align = std::max(align, arena.align_log2);
    }
    out_.arenas.push_back(Arena{frame, align, INGOT_PLACE_HOST, INGOT_ARENA_FRAME});
    const std::uint64_t states = model_states + bytes_of(warp_, INGOT_ARENA_STATE);
    if (states > 0) {
      out_.arenas.push_back(Arena{states, align, INGOT_PLACE_HOST, INGOT_ARENA_STATE});
    }
  }

  static const Buffer& buffer_of(const Variant& variant, std::uint32_t slot) {
    return *std::ranges::find_if(variant.buffers, [&](const Buffer& buffer) {
      return buffer.slot == slot && buffer.kind != INGOT_BUFFER_NEXT_STATE;
    });
  }

  void join_buffers() {
    for (const Buffer& buffer : warp_.buffers) {
      warp_buffers_.push_back(static_cast<std::uint32_t>(out_.buffers.size()));
      const std::size_t index = warp_buffers_.size() - 1;
      const bool is_picture = buffer.kind == INGOT_BUFFER_OUTPUT;
      out_.buffers.push_back(is_picture ? picture(index, buffer)
                                        : moved(buffer, 0, warp_.arenas, warp_bases_, warp_slots_));
      if (buffer.data) out_.buffers.back().data = *buffer.data + warp_data_;
    }
    for (const Buffer& buffer : model_.buffers) {
      if (buffer.kind == INGOT_BUFFER_INPUT && !model_slots_[*buffer.slot]) {
        model_buffers_.push_back(warp_buffers_[picture_for(*buffer.slot)]);
        continue;
      }
      model_buffers_.push_back(static_cast<std::uint32_t>(out_.buffers.size()));
      out_.buffers.push_back(
          moved(buffer, warp_calls(), model_.arenas, model_bases_, model_slots_));
    }
  }

  // Index of the warp's buffer that is an input of the model.
  std::size_t picture_for(std::uint32_t model_slot) const {
    const auto output = std::ranges::find_if(
        input_of_output_, [&](const auto& pair) { return pair.second == model_slot; });
    return static_cast<std::size_t>(&buffer_of(warp_, output->first) - warp_.buffers.data());
  }

  Buffer picture(std::size_t index, const Buffer& output) const {
    Buffer made;
    made.align_log2 = output.align_log2;
    made.nbytes = output.nbytes;
    made.arena = 0;
    made.arena_offset = picture_at_.at(*output.slot);
    made.first_call = warp_touches_.first[index];
    made.last_call = warp_touches_.last[index];
    const std::uint32_t input = input_of_output_.at(*output.slot);
    for (std::size_t b = 0; b < model_.buffers.size(); ++b) {
      const Buffer& reader = model_.buffers[b];
      if (reader.kind == INGOT_BUFFER_INPUT && reader.slot == input && model_touches_.any[b]) {
        made.last_call = model_touches_.last[b] + warp_calls();
      }
    }
    return made;
  }

  Buffer moved(Buffer buffer, std::uint32_t calls_before, const std::vector<Arena>& arenas,
               const std::vector<std::uint64_t>& bases, const SlotMap& slots) const {
    if (buffer.arena) {
      buffer.arena_offset += bases[*buffer.arena];
      buffer.arena = arenas[*buffer.arena].role == INGOT_ARENA_FRAME ? 0 : 1;
    }
    if (buffer.slot) buffer.slot = slots[*buffer.slot];
    if (buffer.kind == INGOT_BUFFER_SCRATCH) {
      buffer.first_call += calls_before;
      buffer.last_call += calls_before;
    } else {
      buffer.first_call = 0;
      buffer.last_call = last_call();
    }
    return buffer;
  }

  void join_programs() {
    for (Program program : warp_.programs) {
      program.code += static_cast<std::uint32_t>(model_.code.size());
      out_.programs.push_back(std::move(program));
    }
    out_.code.insert(out_.code.end(), warp_.code.begin(), warp_.code.end());
  }

  void join_calls() {
    add_calls(warp_, warp_buffers_, static_cast<std::uint32_t>(model_.programs.size()));
    add_calls(model_, model_buffers_, 0);
    for (Transform transform : warp_.transforms) {
      transform.slot = *warp_slots_[transform.slot];
      if (transform.fill) transform.fill->buffer = warp_buffers_[transform.fill->buffer];
      out_.transforms.push_back(transform);
    }
  }

  void add_calls(const Variant& part, const std::vector<std::uint32_t>& buffers,
                 std::uint32_t first_program) {
    const auto first_view = static_cast<std::uint32_t>(out_.views.size());
    for (View view : part.views) {
      view.buffer = buffers[view.buffer];
      out_.views.push_back(std::move(view));
    }
    for (Call call : part.calls) {
      call.program += first_program;
      call.source = static_cast<std::uint32_t>(out_.calls.size());
      for (Arg& arg : call.args) arg.view += first_view;
      out_.calls.push_back(std::move(call));
    }
  }

  const Variant& model_;
  const Variant& warp_;
  const SlotMap& model_slots_;
  const SlotMap& warp_slots_;
  const std::map<std::uint32_t, std::uint32_t>& input_of_output_;  // slots
  const std::uint32_t warp_data_;
  const Touches model_touches_, warp_touches_;
  Variant out_;
  std::uint64_t pictures_ = 0;
  std::map<std::uint32_t, std::uint64_t> picture_at_;  // by slot of the warp
  std::vector<std::uint64_t> model_bases_, warp_bases_;
  std::vector<std::uint32_t> model_buffers_, warp_buffers_;  // where each went
};

class Fuser {
 public:
  Fuser(const ArtifactContents& model, const ArtifactContents& warp, const FuseOptions& options)
      : model_(model), warp_(warp), options_(options) {}

  Result<Fused> run() {
    check_parts();
    if (!failure_.diagnostics.empty()) return std::unexpected(std::move(failure_));
    connect();
    if (!failure_.diagnostics.empty()) return std::unexpected(std::move(failure_));
    describe();
    for (const Interface& interface : warp_.interfaces) {
      fused_.contents.interfaces.push_back(join(interface));
    }
    const auto warp_data = static_cast<std::uint32_t>(model_.data.size());
    for (const Variant& variant : warp_.variants) {
      fused_.contents.variants.push_back(VariantJoiner(model_for(variant), variant, model_slots_,
                                                       warp_slots_, input_of_output_, warp_data)
                                             .run(variant.interface));
      join_costs(variant);
    }
    return std::move(fused_);
  }

 private:
  template <typename... Args>
  void problem(const char* code, fmt::format_string<Args...> text, Args&&... args) {
    Diagnostic diagnostic;
    diagnostic.code = code;
    diagnostic.message = fmt::format(text, std::forward<Args>(args)...);
    failure_.exit = ExitCode::Malformed;
    failure_.diagnostics.push_back(std::move(diagnostic));
  }

  // All interfaces of a part have the same slots (check_parts).
  const std::vector<Slot>& model_interface() const { return model_.interfaces[0].slots; }
  const std::vector<Slot>& warp_interface() const { return warp_.interfaces[0].slots; }

  static bool same_target(const Variant& a, const Variant& b) {
    return a.arch == b.arch && a.os == b.os && a.cpu_features == b.cpu_features &&
           a.xcr0 == b.xcr0 && a.sve_bits == b.sve_bits;
  }

  const Variant& model_for(const Variant& variant) const {
    return *std::ranges::find_if(model_.variants,
                                 [&](const Variant& other) { return same_target(other, variant); });
  }

  void check_parts() {
    if (std::ranges::any_of(model_.interfaces,
                            [](const Interface& i) { return !i.cameras.empty(); })) {
      problem("fuse-cameras", "the model has cameras of its own");
    }
    if (std::ranges::any_of(warp_.interfaces,
                            [](const Interface& i) { return i.cameras.empty(); })) {
      problem("fuse-cameras", "the warp has no camera");
    }
    if (!model_.device_family.empty() && !warp_.device_family.empty() &&
        model_.device_family != warp_.device_family) {
      problem("fuse-family", "the model is for '{}', the warp for '{}'", model_.device_family,
              warp_.device_family);
    }
    for (const auto& [name, part] : {std::pair("model", &model_), std::pair("warp", &warp_)}) {
      for (const Interface& interface : part->interfaces) {
        if (!same_slots(interface, part->interfaces[0])) {
          problem("fuse-interfaces", "variants of the {} differ in their inputs and outputs", name);
        }
      }
      for (const ExtraSection& section : part->extra_sections) {
        if (section.type == INGOT_SECTION_DEBUG) continue;
        problem("fuse-sections", "the {} has a section {}, which cannot be joined", name,
                section_name(section.type));
      }
      for (const Variant& variant : part->variants) {
        if (variant.device.kind != INGOT_DEVICE_NONE) {
          problem("fuse-device", "variant '{}' of the {} runs on a device of its own", variant.name,
                  name);
        }
      }
    }
    check_targets();
  }

  void check_targets() {
    std::set<std::string> of_model, of_warp;
    for (const Variant& variant : model_.variants) of_model.insert(target_of(variant));
    for (const Variant& variant : warp_.variants) of_warp.insert(target_of(variant));
    for (const std::string& target : of_model) {
      if (!of_warp.contains(target))
        problem("fuse-targets", "the warp is not built for {}", target);
    }
    for (const std::string& target : of_warp) {
      if (!of_model.contains(target))
        problem("fuse-targets", "the model is not built for {}", target);
    }
    for (const Variant& variant : warp_.variants) {
      const auto found = std::ranges::find_if(
          model_.variants, [&](const Variant& other) { return same_target(other, variant); });
      if (found == model_.variants.end()) {
        if (of_model.contains(target_of(variant))) {
          problem("fuse-targets", "target {} of the model and of the warp are not the same",
                  target_of(variant));
        }
        continue;
      }
      if (found->threads != variant.threads) {
        problem("fuse-threads", "{}: the model is made for {} threads, the warp for {}",
                variant.name, found->threads, variant.threads);
      }
      // Flushing does not change what a warp computes (docs/artifact_format.md: TRANSFORMS).
      const bool strict = variant.fp_control == INGOT_FP_X86_DEFAULT ||
                          variant.fp_control == INGOT_FP_AARCH64_DEFAULT;
      if (found->fp_control != variant.fp_control && !strict) {
        problem("fuse-float", "{}: the warp's code flushes subnormal numbers, the model's does not",
                variant.name);
      }
    }
  }

  std::optional<std::uint32_t> find(const std::vector<Slot>& slots, const std::string& name) const {
    const auto at = std::ranges::find(slots, name, &Slot::name);
    if (at == slots.end()) return std::nullopt;
    return static_cast<std::uint32_t>(at - slots.begin());
  }

  void connect() {
    const std::vector<Slot>& outputs = warp_interface();
    for (const auto& [input, output] : options_.connections) {
      const auto from = find(outputs, output);
      const auto to = find(model_interface(), input);
      if (!from || !is_output(outputs[*from])) {
        problem("fuse-outputs", "the warp has no output '{}'", output);
      } else if (!to) {
        problem("fuse-outputs", "the model has no input '{}'", input);
      } else {
        connect(*from, *to);
      }
    }
    for (std::uint32_t o = 0; o < outputs.size(); ++o) {
      if (!is_output(outputs[o]) || tried_.contains(o)) continue;
      if (const auto to = find(model_interface(), outputs[o].name)) {
        connect(o, *to);
        continue;
      }
      connect_by_type(o);
    }
    if (failure_.diagnostics.empty()) check_names();
  }

  void connect_by_type(std::uint32_t output) {
    const Slot& from = warp_interface()[output];
    std::vector<std::uint32_t> fitting;
    std::vector<std::string> names, all;
    for (std::uint32_t i = 0; i < model_interface().size(); ++i) {
      const Slot& slot = model_interface()[i];
      if (!is_input(slot)) continue;
      all.push_back(slot.name + " " + type_of(slot));
      if (!same_type(slot, from)) continue;
      fitting.push_back(i);
      names.push_back(slot.name);
    }
    if (fitting.size() == 1) return connect(output, fitting[0]);
    if (fitting.empty()) {
      problem("fuse-outputs", "no input of the model takes '{}', {}; inputs: {}", from.name,
              type_of(from), fmt::join(all, ", "));
    } else {
      problem("fuse-outputs", "'{}' could be each of {}", from.name, fmt::join(names, ", "));
    }
  }

  void connect(std::uint32_t output, std::uint32_t input) {
    const Slot& from = warp_interface()[output];
    const Slot& to = model_interface()[input];
    if (!tried_.insert(output).second) {
      return problem("fuse-outputs", "the warp's '{}' is given twice", from.name);
    }
    if (to.direction == INGOT_DIRECTION_STATE) {
      return problem("fuse-states", "'{}' is a state of the model", to.name);
    }
    if (!is_input(to)) return problem("fuse-names", "'{}' is an output of the model", to.name);
    if (!same_type(from, to)) {
      return problem("fuse-outputs", "the warp's '{}' is {}, the model's input '{}' is {}",
                     from.name, type_of(from), to.name, type_of(to));
    }
    for (const auto& [other, taken] : input_of_output_) {
      if (taken == input) {
        return problem("fuse-outputs", "two outputs of the warp for the model's '{}'", to.name);
      }
    }
    input_of_output_[output] = input;
    fused_.slots.push_back({to.name, from.name});
  }

  bool is_connected(std::uint32_t model_slot) const {
    return std::ranges::any_of(input_of_output_,
                               [&](const auto& pair) { return pair.second == model_slot; });
  }

  void check_names() {
    const auto is_kept = [&](std::uint32_t slot) { return !is_connected(slot); };
    const std::set<std::string> of_model = names_of(model_.interfaces[0], is_kept);
    const auto is_no_output = [&](std::uint32_t slot) {
      return !is_output(warp_interface()[slot]);
    };
    for (const std::string& name : names_of(warp_.interfaces[0], is_no_output)) {
      if (of_model.contains(name)) {
        problem("fuse-names", "the model and the warp both have '{}'", name);
      }
    }
    place_slots();
  }

  // Of slots, and of what is packed into them.
  template <typename Wanted>
  static std::set<std::string> names_of(const Interface& interface, const Wanted& wanted) {
    std::set<std::string> names;
    for (std::uint32_t s = 0; s < interface.slots.size(); ++s) {
      if (wanted(s)) names.insert(interface.slots[s].name);
    }
    for (const Slice& slice : interface.slices) {
      if (wanted(slice.slot) && is_input(interface.slots[slice.slot])) names.insert(slice.name);
    }
    return names;
  }

  // Inputs, then states, then outputs; the warp's before the model's.
  void place_slots() {
    warp_slots_.resize(warp_interface().size());
    model_slots_.resize(model_interface().size());
    std::uint32_t next = 0;
    for (const IngotDirection direction :
         {INGOT_DIRECTION_INPUT, INGOT_DIRECTION_STATE, INGOT_DIRECTION_OUTPUT}) {
      for (std::uint32_t s = 0; s < warp_slots_.size(); ++s) {
        if (warp_interface()[s].direction != direction || is_output(warp_interface()[s])) continue;
        warp_slots_[s] = next++;
      }
      for (std::uint32_t s = 0; s < model_slots_.size(); ++s) {
        if (model_interface()[s].direction != direction || is_connected(s)) continue;
        model_slots_[s] = next++;
      }
    }
  }

  void describe() {
    ArtifactContents& out = fused_.contents;
    out.product = options_.product.empty() ? model_.product : options_.product;
    out.device_family = model_.device_family.empty() ? warp_.device_family : model_.device_family;
    out.security_counter = std::max(model_.security_counter, warp_.security_counter);
    out.producer = model_.producer;
    out.models = model_.models;
    out.models.insert(out.models.end(), warp_.models.begin(), warp_.models.end());
    out.data = model_.data;
    out.data.insert(out.data.end(), warp_.data.begin(), warp_.data.end());
    ManifestFacts& facts = out.manifest;
    facts.tool_version = model_.manifest.tool_version;
    facts.metadata = model_.manifest.metadata;
    for (const ManifestFacts* part : {&model_.manifest, &warp_.manifest}) {
      facts.sources.insert(facts.sources.end(), part->sources.begin(), part->sources.end());
      for (const std::string& licence : part->licences) {
        if (std::ranges::find(facts.licences, licence) == facts.licences.end()) {
          facts.licences.push_back(licence);
        }
      }
    }
  }

  // {"calls": [...]}, of the variant that was made last.
  void join_costs(const Variant& variant) {
    const auto calls_of = [](const ArtifactContents& part, const Variant& one) {
      const auto index = static_cast<std::uint32_t>(&one - part.variants.data());
      for (const ExtraSection& section : part.extra_sections) {
        if (section.type != INGOT_SECTION_DEBUG || section.variant != index) continue;
        const std::span<const std::byte> bytes = section.bytes.bytes;
        Json json =
            Json::parse(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                        nullptr, false);
        if (json.is_object() && json.contains("calls") && json["calls"].is_array()) {
          return std::move(json["calls"]);
        }
      }
      return Json();
    };
    const Variant& model = model_for(variant);
    Json calls = calls_of(warp_, variant);
    const Json more = calls_of(model_, model);
    if (calls.size() != variant.calls.size() || more.size() != model.calls.size()) return;
    calls.insert(calls.end(), more.begin(), more.end());
    const std::string text = Json{{"calls", std::move(calls)}}.dump();
    const auto bytes = std::as_bytes(std::span(text));
    ExtraSection section;
    section.type = INGOT_SECTION_DEBUG;
    section.variant = static_cast<std::uint32_t>(fused_.contents.variants.size() - 1);
    section.bytes = own(std::vector<std::byte>(bytes.begin(), bytes.end()));
    fused_.contents.extra_sections.push_back(std::move(section));
  }

  Interface join(const Interface& warp) const {
    Interface out;
    out.cameras = warp.cameras;
    std::size_t count = 0;
    for (const VariantJoiner::SlotMap* map : {&warp_slots_, &model_slots_}) {
      count += static_cast<std::size_t>(
          std::ranges::count_if(*map, [](const auto& slot) { return slot.has_value(); }));
    }
    out.slots.resize(count);
    const auto add = [&](const Interface& part, const VariantJoiner::SlotMap& slots) {
      for (std::size_t s = 0; s < slots.size(); ++s) {
        if (slots[s]) out.slots[*slots[s]] = part.slots[s];
      }
      for (Slice slice : part.slices) {
        if (!slots[slice.slot]) continue;
        slice.slot = *slots[slice.slot];
        out.slices.push_back(std::move(slice));
      }
    };
    add(warp, warp_slots_);
    add(model_.interfaces[0], model_slots_);
    return out;
  }

  const ArtifactContents& model_;
  const ArtifactContents& warp_;
  const FuseOptions& options_;
  Failure failure_;
  Fused fused_;
  std::set<std::uint32_t> tried_;                           // outputs of the warp
  std::map<std::uint32_t, std::uint32_t> input_of_output_;  // slots of the warp and of the model
  VariantJoiner::SlotMap model_slots_, warp_slots_;
};

}  // namespace

Result<Fused> fuse(const ArtifactContents& model, const ArtifactContents& warp,
                   const FuseOptions& options) {
  return Fuser(model, warp, options).run();
}

}  // namespace ingot::artifact
