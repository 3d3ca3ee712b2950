#include "artifact/manifest.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>

#include "artifact/errors.h"
#include "artifact/policy.h"

namespace ingot::artifact {

namespace {

using Json = nlohmann::json;

// Names and options are bytes to us; JSON wants UTF-8, so anything else is shown as U+FFFD.
std::string canonical(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string real(double value) { return fmt::format("{:.17g}", value); }

Json optional_index(std::uint32_t index) {
  return index == INGOT_NO_INDEX ? Json(nullptr) : Json(index);
}

std::string hex(std::span<const std::uint8_t> bytes) { return to_hex(bytes); }

template <typename T>
Json dims(const T* values, std::size_t rank, std::size_t most) {
  Json list = Json::array();
  for (std::size_t i = 0; i < rank && i < most; ++i) list.push_back(values[i]);
  return list;
}

Json identity(const Tables& tables) {
  const IngotHeader& header = tables.header;
  return {{"product", fixed_text(header.product)},
          {"device_family", fixed_text(header.device_family)},
          {"build_class", build_class_name(header.build_class)},
          {"security_counter", header.security_counter},
          {"producer", {header.producer[0], header.producer[1], header.producer[2]}},
          {"features_required", header.features_required},
          {"model_sha256", hex(header.model_sha256)}};
}

Json models(const Tables& tables) {
  Json list = Json::array();
  for (const IngotModelRecord& model : tables.models) {
    list.push_back({{"onnx_sha256", hex(model.onnx_sha256)},
                    {"external_sha256", hex(model.external_sha256)},
                    {"pipeline_sha256", hex(model.pipeline_sha256)},
                    {"ir_version", model.ir_version},
                    {"opset", model.opset},
                    {"producer", tables.name(model.producer)},
                    {"graph_name", tables.name(model.graph_name)},
                    {"domain", tables.name(model.domain)},
                    {"model_version", model.model_version},
                    {"precision", model.precision},
                    {"frame_period_us", model.frame_period_us},
                    {"float_policy", model.float_policy}});
  }
  return list;
}

Json slots(const Tables& tables, const VariantTables& variant) {
  Json list = Json::array();
  for (const IngotIoRecord& io : variant.io) {
    list.push_back({{"name", tables.name(io.name)},
                    {"direction", direction_name(io.direction)},
                    {"dtype", dtype_name(io.dtype)},
                    {"shape", dims(io.shape, io.rank, INGOT_MAX_TENSOR_RANK)},
                    {"strides", dims(io.strides, io.rank, INGOT_MAX_TENSOR_RANK)},
                    {"nbytes", io.nbytes},
                    {"logical_nbytes", io.logical_nbytes},
                    {"camera", optional_index(io.camera)}});
  }
  return list;
}

Json slices(const Tables& tables, const VariantTables& variant) {
  Json list = Json::array();
  for (const IngotSliceRecord& slice : variant.slices) {
    list.push_back({{"name", tables.name(slice.name)},
                    {"slot", slice.io},
                    {"dtype", dtype_name(slice.dtype)},
                    {"shape", dims(slice.shape, slice.rank, INGOT_MAX_SLICE_RANK)},
                    {"offset", slice.offset},
                    {"nbytes", slice.nbytes},
                    {"overlaps", (slice.flags & INGOT_SLICE_OVERLAPS) != 0},
                    {"camera", optional_index(slice.camera)}});
  }
  return list;
}

Json cameras(const Tables& tables, const VariantTables& variant) {
  Json list = Json::array();
  for (const IngotCameraRecord& camera : variant.cameras) {
    list.push_back({{"name", tables.name(camera.name)},
                    {"width", camera.width},
                    {"height", camera.height},
                    {"stride", camera.stride},
                    {"y_height", camera.y_height},
                    {"uv_height", camera.uv_height},
                    {"pixel_format", camera.pixel_format},
                    {"uv_offset", camera.uv_offset},
                    {"copy_nbytes", camera.copy_nbytes},
                    {"buffer_nbytes", camera.buffer_nbytes},
                    {"sample_range", camera.sample_range},
                    {"colour_matrix", camera.colour_matrix},
                    {"max_age_us", camera.max_age_us}});
  }
  return list;
}

Json references(const VariantTables& variant) {
  Json list = Json::array();
  for (const IngotRefRecord& ref : variant.refs) {
    list.push_back({{"sequence", ref.sequence},
                    {"step", ref.step},
                    {"slot", ref.io},
                    {"compare", ref.compare},
                    {"nan_matches", (ref.flags & INGOT_REF_NAN_MATCHES) != 0},
                    {"atol", real(static_cast<double>(ref.atol))},
                    {"rtol", real(static_cast<double>(ref.rtol))},
                    {"max_ulp", ref.max_ulp},
                    {"min_cosine", real(static_cast<double>(ref.min_cosine))},
                    {"origin", ref.origin},
                    {"nbytes", ref.nbytes}});
  }
  return list;
}

// Equal interfaces are shown once, with the variants that have them.
Json interfaces(const Tables& tables) {
  Json list = Json::array();
  for (std::size_t v = 0; v < tables.variant_tables.size(); ++v) {
    const VariantTables& variant = tables.variant_tables[v];
    Json one = {{"slots", slots(tables, variant)},
                {"slices", slices(tables, variant)},
                {"cameras", cameras(tables, variant)},
                {"references", references(variant)}};
    bool known = false;
    for (Json& other : list) {
      Json bare = other;
      bare.erase("variants");
      if (bare != one) continue;
      other["variants"].push_back(v);
      known = true;
      break;
    }
    if (known) continue;
    one["variants"] = Json::array({v});
    list.push_back(std::move(one));
  }
  return list;
}

Json targets(const Tables& tables) {
  Json list = Json::array();
  for (const IngotVariantRecord& variant : tables.variants) {
    list.push_back({{"name", tables.name(variant.name)},
                    {"arch", variant.arch},
                    {"os", variant.os},
                    {"call_abi", variant.call_abi},
                    {"cpu_features", dims(variant.cpu_features, 4, 4)},
                    {"xcr0", variant.xcr0},
                    {"sve_bits", variant.sve_bits},
                    {"max_page_size", variant.max_page_size},
                    {"fp_control", variant.fp_control},
                    {"threads", variant.threads},
                    {"priority", variant.priority},
                    {"device_kind", variant.device_kind},
                    {"device_arch_rule", variant.device_arch_rule},
                    {"device_arch", variant.device_arch},
                    {"driver_min", dims(variant.driver_min, 2, 2)},
                    {"device_memory", variant.device_memory},
                    {"device_name", fixed_text(variant.device_name)},
                    {"host_arena_bytes", variant.host_arena_bytes},
                    {"device_arena_bytes", variant.device_arena_bytes},
                    {"stack_bytes", variant.stack_bytes},
                    {"interface_sha256", hex(variant.interface_sha256)}});
  }
  return list;
}

// One list of programs for each variant, with the number of calls of each.
Json kernels(const Tables& tables) {
  Json list = Json::array();
  for (const VariantTables& variant : tables.variant_tables) {
    std::vector<std::uint64_t> calls(variant.programs.size());
    for (const IngotCallRecord& call : variant.calls) {
      if (call.kind == INGOT_CALL_PROGRAM && call.program < calls.size()) ++calls[call.program];
    }
    Json programs = Json::array();
    for (std::size_t p = 0; p < variant.programs.size(); ++p) {
      const IngotProgramRecord& program = variant.programs[p];
      programs.push_back({{"name", tables.name(program.name)},
                          {"kind", program.kind},
                          {"code_nbytes", program.code_nbytes},
                          {"stack_bytes", program.stack_bytes},
                          {"calls", calls[p]}});
    }
    list.push_back(std::move(programs));
  }
  return list;
}

Json memory(const Tables& tables) {
  Json list = Json::array();
  for (const VariantTables& variant : tables.variant_tables) {
    Json arenas = Json::array();
    for (const IngotArenaRecord& arena : variant.arenas) {
      arenas.push_back({{"nbytes", arena.nbytes}, {"place", arena.memory}, {"role", arena.role}});
    }
    list.push_back({{"arenas", std::move(arenas)},
                    {"buffers", variant.buffers.size()},
                    {"calls", variant.calls.size()}});
  }
  return {{"max_host_arena", tables.header.max_host_arena},
          {"max_device_arena", tables.header.max_device_arena},
          {"variants", std::move(list)}};
}

Json transforms(const Tables& tables) {
  Json list = Json::array();
  for (const VariantTables& variant : tables.variant_tables) {
    Json records = Json::array();
    for (const IngotTransformRecord& transform : variant.transforms) {
      records.push_back({{"slot", transform.io},
                         {"camera", optional_index(transform.camera)},
                         {"matrix_offset", transform.matrix_offset},
                         {"width", transform.width},
                         {"height", transform.height},
                         {"kind", transform.kind},
                         {"policy", transform.policy}});
    }
    list.push_back(std::move(records));
  }
  return list;
}

Json sections(const Tables& tables, const std::vector<Digest>& digests) {
  Json list = Json::array();
  for (std::size_t i = 0; i < tables.sections.size(); ++i) {
    const IngotSectionEntry& section = tables.sections[i];
    if (section.type == INGOT_SECTION_MANIFEST) continue;
    list.push_back({{"type", section.type},
                    {"name", section_name(section.type)},
                    {"variant", section.variant == INGOT_VARIANT_COMMON ? Json(nullptr)
                                                                        : Json(section.variant)},
                    {"index", section.index},
                    {"nbytes", section.size},
                    {"sha256", to_hex(digests[i])}});
  }
  return list;
}

// Printing recurses once for each level, and a stranger chooses how many there are.
bool nests_too_deep(std::string_view text) {
  constexpr int kMaxDepth = 16;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

Json reference_sources(const std::vector<ReferenceSource>& sources) {
  Json list = Json::array();
  for (const ReferenceSource& source : sources) {
    list.push_back({{"camera", source.camera},
                    {"sequence", source.sequence},
                    {"case", source.name},
                    {"seed", source.seed ? Json(*source.seed) : Json(nullptr)}});
  }
  return list;
}

// What the tables say; a reader makes it again and compares.
Json table_facts(const Tables& tables, const std::vector<Digest>& section_digests) {
  return {{"format", "ingot-manifest/1"},
          {"identity", identity(tables)},
          {"models", models(tables)},
          {"targets", targets(tables)},
          {"interfaces", interfaces(tables)},
          {"kernels", kernels(tables)},
          {"memory", memory(tables)},
          {"transforms", transforms(tables)},
          {"sections", sections(tables, section_digests)}};
}

}  // namespace

std::string write_manifest(const Tables& tables, const std::vector<Digest>& section_digests,
                           const ManifestFacts& facts,
                           const std::map<std::string, std::string>& cut_names) {
  Json json = table_facts(tables, section_digests);
  Json options = Json::array();
  for (const auto& [name, value] : facts.options) options.push_back(Json::array({name, value}));
  json["tool"] = {{"version", facts.tool_version}, {"options", std::move(options)}};
  Json sources = Json::array();
  for (const SourceFile& source : facts.sources) {
    sources.push_back(
        {{"name", source.name}, {"nbytes", source.nbytes}, {"sha256", to_hex(source.sha256)}});
  }
  json["sources"] = std::move(sources);
  json["licences"] = facts.licences;
  Json metadata = Json::array();
  for (const auto& [key, value] : facts.metadata) metadata.push_back(Json::array({key, value}));
  json["metadata"] = std::move(metadata);
  json["references"] = reference_sources(facts.references);
  json["names"] = cut_names;
  return canonical(json);
}

Result<void> check_manifest(std::string_view text, const Tables& tables,
                            const std::vector<Digest>& section_digests) {
  if (nests_too_deep(text)) return fail_with(INGOT_E_MANIFEST, "the manifest nests too deep");
  try {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded() || !json.is_object()) {
      return fail_with(INGOT_E_MANIFEST, "the manifest is not a JSON object");
    }
    if (canonical(json) != text) {
      return fail_with(INGOT_E_MANIFEST, "the manifest is not in canonical form");
    }
    const Json facts = table_facts(tables, section_digests);
    Failure failure{error_exit_code(INGOT_E_MANIFEST), {}};
    for (const auto& [key, value] : facts.items()) {
      const auto found = json.find(key);
      // Compared as text: a number is the same only if it is written the same.
      if (found != json.end() && canonical(*found) == canonical(value)) continue;
      failure.diagnostics.push_back(
          fail_with(INGOT_E_MANIFEST, "the manifest's '" + key + "' differs from the tables")
              .error()
              .diagnostics.front());
    }
    if (!failure.diagnostics.empty()) return std::unexpected(std::move(failure));
    return {};
  } catch (const std::exception&) {
    return fail_with(INGOT_E_MANIFEST, "the manifest cannot be read");
  }
}

}  // namespace ingot::artifact
