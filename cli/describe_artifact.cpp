#include "cli/describe_artifact.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "artifact/policy.h"
#include "cli/diagnostics.h"
#include "cli/loaded_artifact.h"
#include "cli/options.h"
#include "cli/reference_report.h"

namespace ingot::cli {
namespace {

using artifact::Decoded;
using artifact::Tables;
using artifact::VariantTables;

template <typename T>
Json list_of(const T* values, std::size_t count, std::size_t most) {
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(count, most); ++i) list.push_back(values[i]);
  return list;
}

Json optional_index(std::uint32_t index) {
  return index == INGOT_NO_INDEX ? Json(nullptr) : Json(index);
}

std::string_view architecture_name(std::uint32_t arch) {
  if (arch == INGOT_ARCH_X86_64) return "x86-64";
  return arch == INGOT_ARCH_AARCH64 ? "aarch64" : "?";
}

std::string_view call_kind_name(std::uint32_t kind) {
  switch (kind) {
    case INGOT_CALL_PROGRAM: return "program";
    case INGOT_CALL_COPY: return "copy";
    case INGOT_CALL_BARRIER: return "barrier";
    case INGOT_CALL_FILL: return "fill";
    case INGOT_CALL_WAIT: return "wait";
    case INGOT_CALL_SIGNAL: return "signal";
    case INGOT_CALL_REPEAT: return "repeat";
    default: return "?";
  }
}

std::string_view buffer_kind_name(std::uint32_t kind) {
  switch (kind) {
    case INGOT_BUFFER_INPUT: return "input";
    case INGOT_BUFFER_OUTPUT: return "output";
    case INGOT_BUFFER_STATE: return "state";
    case INGOT_BUFFER_CONST: return "constant";
    case INGOT_BUFFER_SCRATCH: return "scratch";
    case INGOT_BUFFER_NEXT_STATE: return "next-state";
    default: return "?";
  }
}

std::string_view origin_name(std::uint32_t origin) {
  switch (origin) {
    case INGOT_ORIGIN_OWN_DOUBLE: return "own evaluation in double precision";
    case INGOT_ORIGIN_ONNX_RUNTIME: return "ONNX Runtime";
    case INGOT_ORIGIN_FRAMEWORK: return "training framework";
    case INGOT_ORIGIN_MEASURED: return "measured on a device";
    default: return "?";
  }
}

// Describes one artifact; the members only save passing the tables around.
class Describer {
 public:
  Describer(const Decoded& decoded, const DescribeOptions& options)
      : decoded_(decoded), tables_(decoded.tables), options_(options), names_(decoded.manifest) {}

  Json describe() {
    Json json = identity();
    json["models"] = models();
    json["variants"] = Json::array();
    for (std::size_t v = 0; v < tables_.variants.size(); ++v) {
      json["variants"].push_back(variant(static_cast<std::uint32_t>(v)));
    }
    add_manifest_facts(json);
    json["signatures"] = signatures();
    json["sections"] = sections();
    return json;
  }

 private:
  struct Sequence {
    std::size_t steps = 0;
    std::set<std::string_view> origins;
  };

  std::string name(IngotName place) const { return names_.original(tables_.name(place)); }

  Json identity() const {
    const IngotHeader& header = tables_.header;
    Json json;
    json["id"] = artifact::to_hex(decoded_.id);
    json["format"] = fmt::format("{}.{}", header.version_major, header.version_minor);
    json["producer"] =
        fmt::format("{}.{}.{}", header.producer[0], header.producer[1], header.producer[2]);
    json["product"] = artifact::fixed_text(header.product);
    json["device_family"] = artifact::fixed_text(header.device_family);
    json["build_class"] = artifact::build_class_name(header.build_class);
    json["security_counter"] = header.security_counter;
    json["model_sha256"] = artifact::to_hex(header.model_sha256);
    json["file_bytes"] = decoded_.file.size();
    json["content_bytes"] = header.content_size;
    json["max_host_arena"] = header.max_host_arena;
    json["max_device_arena"] = header.max_device_arena;
    return json;
  }

  Json models() const {
    Json list = Json::array();
    for (const IngotModelRecord& model : tables_.models) {
      Json json;
      json["onnx_sha256"] = artifact::to_hex(model.onnx_sha256);
      json["external_sha256"] = artifact::to_hex(model.external_sha256);
      json["pipeline_sha256"] = artifact::to_hex(model.pipeline_sha256);
      json["opset"] = model.opset;
      json["ir_version"] = model.ir_version;
      json["producer"] = name(model.producer);
      json["graph_name"] = name(model.graph_name);
      json["domain"] = name(model.domain);
      json["model_version"] = model.model_version;
      json["precision"] = model.precision;
      json["float_policy"] = model.float_policy;
      json["frame_period_us"] = model.frame_period_us;
      list.push_back(std::move(json));
    }
    return list;
  }

  Json variant(std::uint32_t index) const {
    const IngotVariantRecord& record = tables_.variants[index];
    const VariantTables& tables = tables_.variant_tables[index];
    Json json;
    json["name"] = name(record.name);
    json["architecture"] = architecture_name(record.arch);
    json["cpu_features"] = list_of(record.cpu_features, 4, 4);
    json["priority"] = record.priority;
    json["threads"] = record.threads;
    json["fp_control"] = record.fp_control;
    json["interface_sha256"] = artifact::to_hex(record.interface_sha256);
    json["memory"] = memory(record, tables, index);
    json["slots"] = slots(tables);
    json["slices"] = slices(tables);
    json["cameras"] = cameras(tables);
    json["transforms"] = transforms(tables);
    json["references"] = references(tables);
    json["programs"] = tables.programs.size();
    json["calls"] = tables.calls.size();
    if (options_.calls) json["call_list"] = calls(tables);
    if (options_.buffers) json["buffers"] = buffers(tables);
    return json;
  }

  Json memory(const IngotVariantRecord& record, const VariantTables& tables,
              std::uint32_t index) const {
    std::uint64_t code = 0;
    for (const IngotSectionEntry& section : tables_.sections) {
      if (section.type == INGOT_SECTION_CODE && section.variant == index) code += section.size;
    }
    Json json;
    json["host_arena_bytes"] = record.host_arena_bytes;
    json["device_arena_bytes"] = record.device_arena_bytes;
    json["stack_bytes"] = record.stack_bytes;
    json["code_bytes"] = code;
    json["constant_bytes"] = constant_bytes(tables);
    json["arenas"] = Json::array();
    for (const IngotArenaRecord& arena : tables.arenas) {
      json["arenas"].push_back(Json{{"role", arena.role == INGOT_ARENA_STATE ? "state" : "frame"},
                                    {"bytes", arena.nbytes}});
    }
    return json;
  }

  static std::uint64_t constant_bytes(const VariantTables& tables) {
    std::uint64_t sum = 0;
    std::set<std::pair<std::uint32_t, std::uint64_t>> seen;
    for (const IngotBufferRecord& buffer : tables.buffers) {
      if (buffer.kind != INGOT_BUFFER_CONST) continue;
      if (seen.emplace(buffer.init_section, buffer.init_offset).second) sum += buffer.nbytes;
    }
    return sum;
  }

  Json slots(const VariantTables& tables) const {
    Json list = Json::array();
    for (const IngotIoRecord& io : tables.io) {
      Json json;
      json["name"] = name(io.name);
      json["stored_name"] = tables_.name(io.name);
      json["direction"] = artifact::direction_name(io.direction);
      json["dtype"] = artifact::dtype_name(io.dtype);
      json["shape"] = list_of(io.shape, io.rank, INGOT_MAX_TENSOR_RANK);
      json["strides"] = list_of(io.strides, io.rank, INGOT_MAX_TENSOR_RANK);
      json["bytes"] = io.nbytes;
      json["logical_bytes"] = io.logical_nbytes;
      json["camera"] = optional_index(io.camera);
      list.push_back(std::move(json));
    }
    return list;
  }

  Json slices(const VariantTables& tables) const {
    Json list = Json::array();
    for (const IngotSliceRecord& slice : tables.slices) {
      Json json;
      json["name"] = name(slice.name);
      json["slot"] = slice.io < tables.io.size() ? name(tables.io[slice.io].name) : "?";
      json["dtype"] = artifact::dtype_name(slice.dtype);
      json["shape"] = list_of(slice.shape, slice.rank, INGOT_MAX_SLICE_RANK);
      json["offset"] = slice.offset;
      json["bytes"] = slice.nbytes;
      list.push_back(std::move(json));
    }
    return list;
  }

  Json cameras(const VariantTables& tables) const {
    Json list = Json::array();
    for (const IngotCameraRecord& camera : tables.cameras) {
      Json json;
      json["name"] = name(camera.name);
      json["pixel_format"] = camera.pixel_format == INGOT_PIXEL_NV21 ? "nv21" : "nv12";
      json["width"] = camera.width;
      json["height"] = camera.height;
      json["stride"] = camera.stride;
      json["y_height"] = camera.y_height;
      json["uv_height"] = camera.uv_height;
      json["uv_offset"] = camera.uv_offset;
      json["copy_bytes"] = camera.copy_nbytes;
      json["buffer_bytes"] = camera.buffer_nbytes;
      json["max_age_us"] = camera.max_age_us;
      list.push_back(std::move(json));
    }
    return list;
  }

  Json transforms(const VariantTables& tables) const {
    Json list = Json::array();
    for (const IngotTransformRecord& transform : tables.transforms) {
      Json json;
      json["slot"] = transform.io < tables.io.size() ? name(tables.io[transform.io].name) : "?";
      json["offset"] = transform.matrix_offset;
      json["kind"] = transform.kind == INGOT_TRANSFORM_CABIN ? "cabin" : "road";
      json["width"] = transform.width;
      json["height"] = transform.height;
      json["policy"] = transform.policy == INGOT_TRANSFORM_FILL ? "fill" : "refuse";
      list.push_back(std::move(json));
    }
    return list;
  }

  Json references(const VariantTables& tables) const {
    std::map<std::uint32_t, Sequence> sequences;
    std::size_t steps = 0;
    std::set<std::string_view> origins;
    for (const IngotRefRecord& record : tables.refs) {
      Sequence& sequence = sequences[record.sequence];
      sequence.steps = std::max<std::size_t>(sequence.steps, record.step + std::size_t{1});
      if (record.role == INGOT_DIRECTION_INPUT) continue;
      sequence.origins.insert(origin_name(record.origin));
      origins.insert(origin_name(record.origin));
    }
    Json list = Json::array();
    const std::string camera = tables.cameras.empty() ? "" : name(tables.cameras.front().name);
    for (const auto& [number, sequence] : sequences) {
      steps += sequence.steps;
      const ReferenceOrigin origin = reference_origin(decoded_.manifest, camera, number);
      list.push_back({{"steps", sequence.steps},
                      {"origins", sequence.origins},
                      {"case", origin.case_name},
                      {"seed", origin.seed ? Json(*origin.seed) : Json(nullptr)}});
    }
    return Json{{"steps", steps},
                {"records", tables.refs.size()},
                {"origins", origins},
                {"sequences", std::move(list)}};
  }

  Json calls(const VariantTables& tables) const {
    Json list = Json::array();
    for (const IngotCallRecord& call : tables.calls) {
      Json json;
      json["kind"] = call_kind_name(call.kind);
      if (call.kind == INGOT_CALL_PROGRAM && call.program < tables.programs.size()) {
        json["program"] = name(tables.programs[call.program].name);
        json["grid"] = call.grid[0];
      }
      json["arguments"] = arguments(call, tables);
      list.push_back(std::move(json));
    }
    return list;
  }

  static Json arguments(const IngotCallRecord& call, const VariantTables& tables) {
    Json list = Json::array();
    for (std::uint64_t i = 0; i < call.arg_count; ++i) {
      const std::uint64_t at = call.arg_first + i;
      if (at >= tables.args.size()) break;
      const IngotArgRecord& arg = tables.args[at];
      if (arg.kind != INGOT_ARG_VIEW || arg.view >= tables.views.size()) continue;
      const IngotViewRecord& view = tables.views[arg.view];
      constexpr std::array<const char*, 4> kAccess = {"?", "read", "write", "both"};
      list.push_back(Json{{"buffer", view.buffer},
                          {"access", kAccess[arg.access & 3]},
                          {"offset", view.offset},
                          {"bytes", view.nbytes}});
    }
    return list;
  }

  Json buffers(const VariantTables& tables) const {
    Json list = Json::array();
    for (const IngotBufferRecord& buffer : tables.buffers) {
      Json json;
      json["kind"] = buffer_kind_name(buffer.kind);
      json["bytes"] = buffer.nbytes;
      json["arena"] = optional_index(buffer.arena);
      json["arena_offset"] = buffer.arena_offset;
      json["slot"] = buffer.io < tables.io.size() ? Json(name(tables.io[buffer.io].name)) : nullptr;
      json["first_call"] = buffer.first_call;
      json["last_call"] = buffer.last_call;
      list.push_back(std::move(json));
    }
    return list;
  }

  // What only the manifest says.
  void add_manifest_facts(Json& json) const {
    const Result<Json> manifest = parse_json(decoded_.manifest, {});
    if (!manifest) return;
    for (const char* key : {"metadata", "sources", "licences", "tool"}) {
      const auto found = manifest->find(key);
      if (found != manifest->end()) json[key] = *found;
    }
  }

  Json signatures() const {
    Json list = Json::array();
    for (const artifact::SignatureEntry& entry : decoded_.signatures) {
      Json json;
      json["algorithm"] = entry.ed25519 ? "ed25519" : fmt::format("unknown {}", entry.algorithm);
      if (entry.ed25519) {
        json["key_id"] = artifact::to_hex(std::span(entry.ed25519->key_id));
        json["purpose"] = artifact::purpose_name(entry.ed25519->purpose);
        json["signed_at"] = entry.ed25519->signed_at;
      }
      list.push_back(std::move(json));
    }
    return list;
  }

  Json sections() const {
    Json list = Json::array();
    for (const IngotSectionEntry& section : tables_.sections) {
      list.push_back(
          Json{{"type", artifact::section_name(section.type)},
               {"variant",
                section.variant == INGOT_VARIANT_COMMON ? Json(nullptr) : Json(section.variant)},
               {"offset", section.offset},
               {"bytes", section.size}});
    }
    return list;
  }

  const Decoded& decoded_;
  const Tables& tables_;
  DescribeOptions options_;
  NameTable names_;
};

// ---------------------------------------------------------------------------------------------
// Text

std::string text_of(const Json& json) { return printable(json.get<std::string>()); }

std::string slot_text(const Json& slot) {
  std::string line =
      fmt::format("    {:<6} {:<28} {}{} strides {} {} bytes", text_of(slot["direction"]),
                  text_of(slot["name"]), text_of(slot["dtype"]), to_compact_text(slot["shape"]),
                  to_compact_text(slot["strides"]), slot["bytes"].get<std::uint64_t>());
  if (!slot["camera"].is_null()) line += ", camera frame";
  return line + "\n";
}

std::string call_text(std::size_t index, const Json& call) {
  std::string line = fmt::format("    {:>5} {:<8}", index, text_of(call["kind"]));
  if (call.contains("program")) {
    line += fmt::format(" {} x{}", text_of(call["program"]), call["grid"].get<std::uint32_t>());
  }
  for (const Json& argument : call["arguments"]) {
    line += fmt::format(" {}:{}", text_of(argument["access"]).substr(0, 1),
                        argument["buffer"].get<std::uint32_t>());
  }
  return line + "\n";
}

std::string buffer_text(std::size_t index, const Json& buffer) {
  std::string line = fmt::format("    {:>5} {:<10} {:>12} bytes", index, text_of(buffer["kind"]),
                                 buffer["bytes"].get<std::uint64_t>());
  if (!buffer["arena"].is_null()) {
    line += fmt::format("  arena {} at {}", buffer["arena"].get<std::uint32_t>(),
                        buffer["arena_offset"].get<std::uint64_t>());
  }
  line += fmt::format("  calls {}..{}", buffer["first_call"].get<std::uint32_t>(),
                      buffer["last_call"].get<std::uint32_t>());
  if (!buffer["slot"].is_null()) line += "  " + text_of(buffer["slot"]);
  return line + "\n";
}

std::string interface_text(const Json& variant) {
  std::string text;
  for (const Json& slot : variant["slots"]) text += slot_text(slot);
  for (const Json& slice : variant["slices"]) {
    text += fmt::format("    slice  {:<28} {} bytes {}..{}\n",
                        text_of(slice["slot"]) + "[" + text_of(slice["name"]) + "]",
                        text_of(slice["dtype"]) + to_compact_text(slice["shape"]),
                        slice["offset"].get<std::uint64_t>(),
                        slice["offset"].get<std::uint64_t>() + slice["bytes"].get<std::uint64_t>());
  }
  for (const Json& camera : variant["cameras"]) {
    text +=
        fmt::format("    camera {:<28} {} {}x{} stride {}\n", text_of(camera["name"]),
                    text_of(camera["pixel_format"]), camera["width"].get<std::uint32_t>(),
                    camera["height"].get<std::uint32_t>(), camera["stride"].get<std::uint32_t>());
  }
  for (const Json& transform : variant["transforms"]) {
    text += fmt::format("    matrix {:<28} {} warp to {}x{}, bad ones: {}\n",
                        text_of(transform["slot"]), text_of(transform["kind"]),
                        transform["width"].get<std::uint32_t>(),
                        transform["height"].get<std::uint32_t>(), text_of(transform["policy"]));
  }
  return text;
}

std::string variant_text(const Json& variant, bool with_interface) {
  const Json& memory = variant["memory"];
  std::string text = fmt::format(
      "  {} ({}): {} calls of {} programs, code {}, weights {}, arena {}, stack {}, "
      "{} reference steps\n",
      text_of(variant["name"]), text_of(variant["architecture"]),
      variant["calls"].get<std::size_t>(), variant["programs"].get<std::size_t>(),
      size_text(memory["code_bytes"].get<std::uint64_t>()),
      size_text(memory["constant_bytes"].get<std::uint64_t>()),
      size_text(memory["host_arena_bytes"].get<std::uint64_t>()),
      size_text(memory["stack_bytes"].get<std::uint64_t>()),
      variant["references"]["steps"].get<std::size_t>());
  if (with_interface) text += interface_text(variant);
  std::size_t index = 0;
  if (variant.contains("call_list")) {
    for (const Json& call : variant["call_list"]) text += call_text(index++, call);
  }
  index = 0;
  if (variant.contains("buffers")) {
    for (const Json& buffer : variant["buffers"]) text += buffer_text(index++, buffer);
  }
  return text;
}

std::string identity_text(const Json& json) {
  return fmt::format(
      "artifact id       {}\nproduct           {}\ndevice family     {}\nbuild class       {}\n"
      "security counter  {}\nmade by           ingot {}\nmodel identity    {}\nfile              "
      "{} "
      "bytes\n",
      text_of(json["id"]), text_of(json["product"]),
      text_of(json["device_family"]).empty() ? "any" : text_of(json["device_family"]),
      text_of(json["build_class"]), json["security_counter"].get<std::uint64_t>(),
      text_of(json["producer"]), text_of(json["model_sha256"]),
      json["file_bytes"].get<std::uint64_t>());
}

std::string signature_text(const Json& signature) {
  if (!signature.contains("key_id")) return "  " + text_of(signature["algorithm"]) + "\n";
  return fmt::format("  {} key {} purpose {}\n", text_of(signature["algorithm"]),
                     text_of(signature["key_id"]), text_of(signature["purpose"]));
}

// Pairs of the manifest's metadata, long values cut.
std::string metadata_text(const Json& json) {
  constexpr std::size_t kMostShown = 60;
  if (!json.contains("metadata") || !json["metadata"].is_array()) return {};
  std::string text;
  for (const Json& pair : json["metadata"]) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      continue;
    }
    std::string value = text_of(pair[1]);
    if (value.size() > kMostShown) value = value.substr(0, kMostShown) + "...";
    text += fmt::format("  {} = {}\n", text_of(pair[0]), value);
  }
  return text.empty() ? text : "metadata\n" + text;
}

}  // namespace

Json describe_artifact(const Decoded& decoded, const DescribeOptions& options) {
  return Describer(decoded, options).describe();
}

std::string description_text(const Json& json) {
  std::string text = identity_text(json);
  for (const Json& model : json["models"]) {
    text += fmt::format("model             {} (opset {}, {})\n", text_of(model["graph_name"]),
                        model["opset"].get<std::uint32_t>(), text_of(model["onnx_sha256"]));
  }
  text += "variants\n";
  std::string shown;  // an interface that several variants share is printed with the first
  for (const Json& variant : json["variants"]) {
    const std::string interface = text_of(variant["interface_sha256"]);
    text += variant_text(variant, interface != shown);
    shown = interface;
  }
  text += metadata_text(json);
  text += json["signatures"].empty() ? "signatures: none\n" : "signatures\n";
  for (const Json& signature : json["signatures"]) text += signature_text(signature);
  return text;
}

}  // namespace ingot::cli
