#include "cli/artifact_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/describe_artifact.h"
#include "cli/diagnostics.h"
#include "cli/loaded_artifact.h"
#include "cli/options.h"

namespace ingot::cli {
namespace {

using artifact::Decoded;
using artifact::VariantTables;

// ---------------------------------------------------------------------------------------------
// Descriptions

using Leaves = std::map<std::string, Json>;  // by path

bool is_pair(const Json& json) {
  return json.is_array() && json.size() == 2 && json[0].is_string() && json[1].is_string();
}

// Lists whose elements have names are taken by name, so that an addition is one difference.
std::string element_path(const std::string& path, std::size_t index, const Json& element) {
  if (element.is_object() && element.contains("name") && element["name"].is_string()) {
    return path + "." + element["name"].get<std::string>();
  }
  if (is_pair(element)) return path + "." + element[0].get<std::string>();
  return fmt::format("{}[{}]", path, index);
}

void flatten(const Json& json, const std::string& path, Leaves& leaves) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      flatten(value, path.empty() ? key : fmt::format("{}.{}", path, key), leaves);
    }
    return;
  }
  const bool is_leaf = !json.is_array() || is_pair(json) ||
                       std::ranges::none_of(json, [](const Json& e) { return e.is_structured(); });
  if (is_leaf) {
    // Of a pair the first is in the path; a path that comes again (two targets) gets a number.
    std::string free = path;
    for (int i = 2; leaves.contains(free); ++i) free = fmt::format("{}#{}", path, i);
    leaves[free] = is_pair(json) ? json[1] : json;
    return;
  }
  std::size_t index = 0;
  for (const Json& element : json) {
    flatten(element, element_path(path, index, element), leaves);
    ++index;
  }
}

// Everything but call lists and places in the file.
Leaves leaves_of(const Decoded& decoded) {
  Json description = describe_artifact(decoded, {});
  for (const char* key : {"id", "sections", "content_bytes"}) description.erase(key);
  for (std::size_t v = 0; v < decoded.tables.variants.size(); ++v) {
    const auto variant = static_cast<std::uint32_t>(v);
    auto row = decoded.find(INGOT_SECTION_REFDATA, variant);
    if (!row) row = decoded.find(INGOT_SECTION_REFDATA, INGOT_VARIANT_COMMON);
    if (!row) continue;
    description["variants"][v]["references"]["values_sha256"] =
        artifact::to_hex(decoded.section_digests[*row]);
  }
  Leaves leaves;
  flatten(description, "", leaves);
  return leaves;
}

Json differences(const Leaves& a, const Leaves& b) {
  std::set<std::string> paths;
  for (const auto& [path, value] : a) paths.insert(path);
  for (const auto& [path, value] : b) paths.insert(path);
  Json list = Json::array();
  for (const std::string& path : paths) {
    const auto in_a = a.find(path);
    const auto in_b = b.find(path);
    const Json left = in_a == a.end() ? Json(nullptr) : in_a->second;
    const Json right = in_b == b.end() ? Json(nullptr) : in_b->second;
    const bool in_both = in_a != a.end() && in_b != b.end();
    if (in_both && left == right) continue;
    list.push_back({{"path", path}, {"a", left}, {"b", right}});
  }
  return list;
}

// ---------------------------------------------------------------------------------------------
// Calls

// What the calls of a name do, sorted; equal lists are no change.
using Calls = std::map<std::string, std::vector<std::string>>;

std::string code_digest(const Decoded& decoded, const IngotProgramRecord& program) {
  if (program.code_section >= decoded.tables.sections.size()) return {};
  const std::span<const std::byte> code = decoded.payload(program.code_section);
  return artifact::to_hex(
      artifact::sha256(code.subspan(program.entry_offset, program.code_nbytes)));
}

std::string call_signature(const Decoded& decoded, const VariantTables& tables,
                           const IngotCallRecord& call) {
  std::string text = fmt::format("{} {}x{}x{} {}", call.kind, call.grid[0], call.grid[1],
                                 call.grid[2], call.immediate);
  for (std::uint64_t i = 0; i < call.arg_count; ++i) {
    const IngotArgRecord& arg = tables.args[call.arg_first + i];
    text += fmt::format(" {}:{}", arg.kind, arg.access);
    if (arg.kind == INGOT_ARG_VIEW) text += fmt::format(":{}", tables.views[arg.view].nbytes);
  }
  if (call.kind == INGOT_CALL_PROGRAM) {
    text += " " + code_digest(decoded, tables.programs[call.program]);
  }
  return text;
}

// Nodes of the model where they are recorded, else programs.
std::string call_name(const Decoded& decoded, const VariantTables& tables,
                      const std::vector<CallCost>& costs, std::size_t index) {
  if (costs.size() == tables.calls.size() && !costs[index].name.empty()) return costs[index].name;
  const IngotCallRecord& call = tables.calls[index];
  if (call.kind != INGOT_CALL_PROGRAM) return fmt::format("kind {}", call.kind);
  return std::string(decoded.tables.name(tables.programs[call.program].name));
}

Calls calls_of(const Decoded& decoded, std::uint32_t variant) {
  const VariantTables& tables = decoded.tables.variant_tables[variant];
  const std::vector<CallCost> costs = call_costs(decoded, variant);
  Calls calls;
  for (std::size_t i = 0; i < tables.calls.size(); ++i) {
    calls[call_name(decoded, tables, costs, i)].push_back(
        call_signature(decoded, tables, tables.calls[i]));
  }
  for (auto& [name, signatures] : calls) std::ranges::sort(signatures);
  return calls;
}

Json call_differences(const Calls& a, const Calls& b) {
  Json json{{"added", Json::array()}, {"removed", Json::array()}, {"changed", Json::array()}};
  for (const auto& [name, signatures] : a) {
    const auto other = b.find(name);
    if (other == b.end()) {
      json["removed"].push_back(name);
    } else if (other->second != signatures) {
      json["changed"].push_back(name);
    }
  }
  for (const auto& [name, signatures] : b) {
    if (!a.contains(name)) json["added"].push_back(name);
  }
  return json;
}

std::map<std::string, std::uint32_t> variants_of(const Decoded& decoded) {
  std::map<std::string, std::uint32_t> variants;
  const NameTable names(decoded.manifest);
  for (std::uint32_t v = 0; v < decoded.tables.variants.size(); ++v) {
    variants[names.original(decoded.tables.name(decoded.tables.variants[v].name))] = v;
  }
  return variants;
}

Json variant_differences(const Decoded& a, const Decoded& b) {
  const auto in_a = variants_of(a);
  const auto in_b = variants_of(b);
  Json list = Json::array();
  for (const auto& [name, variant] : in_a) {
    const auto other = in_b.find(name);
    Json json{{"name", name}, {"in", other == in_b.end() ? "a" : "both"}};
    if (other != in_b.end()) {
      json["calls"] = call_differences(calls_of(a, variant), calls_of(b, other->second));
    }
    list.push_back(std::move(json));
  }
  for (const auto& [name, variant] : in_b) {
    if (!in_a.contains(name)) list.push_back({{"name", name}, {"in", "b"}});
  }
  return list;
}

// ---------------------------------------------------------------------------------------------
// Weights

// Constants of all variants by content; equal ones count once, as they are stored once.
std::map<artifact::Digest, std::uint64_t> weights_of(const Decoded& decoded) {
  std::map<artifact::Digest, std::uint64_t> weights;
  std::set<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>> seen;
  for (const VariantTables& tables : decoded.tables.variant_tables) {
    for (const IngotBufferRecord& buffer : tables.buffers) {
      const bool is_stored = buffer.init_section < decoded.tables.sections.size();
      if (!is_stored ||
          !seen.emplace(buffer.init_section, buffer.init_offset, buffer.init_nbytes).second) {
        continue;
      }
      const std::span<const std::byte> data = decoded.payload(buffer.init_section);
      weights[artifact::sha256(data.subspan(buffer.init_offset, buffer.init_nbytes))] =
          buffer.init_nbytes;
    }
  }
  return weights;
}

Json weight_differences(const Decoded& a, const Decoded& b) {
  const auto in_a = weights_of(a);
  const auto in_b = weights_of(b);
  std::uint64_t same = 0, only_a = 0, only_b = 0, only_a_bytes = 0, only_b_bytes = 0;
  for (const auto& [digest, bytes] : in_a) {
    if (in_b.contains(digest)) {
      ++same;
    } else {
      ++only_a;
      only_a_bytes += bytes;
    }
  }
  for (const auto& [digest, bytes] : in_b) {
    if (in_a.contains(digest)) continue;
    ++only_b;
    only_b_bytes += bytes;
  }
  return {{"same", same},
          {"only_a", only_a},
          {"only_b", only_b},
          {"only_a_bytes", only_a_bytes},
          {"only_b_bytes", only_b_bytes}};
}

// ---------------------------------------------------------------------------------------------
// Text

std::string value_text(const Json& value) {
  constexpr std::size_t kMostShown = 80;
  if (value.is_null()) return "-";
  std::string text =
      printable(value.is_string() ? value.get<std::string>() : to_compact_text(value));
  if (text.size() > kMostShown) text = text.substr(0, kMostShown) + "...";
  return text;
}

std::string variant_text(const Json& variant) {
  const std::string name = printable(variant["name"].get<std::string>());
  if (!variant.contains("calls")) {
    return fmt::format("variant {} only in {}\n", name, variant["in"].get<std::string>());
  }
  const Json& calls = variant["calls"];
  std::string text =
      fmt::format("calls of {}: {} added, {} removed, {} changed\n", name, calls["added"].size(),
                  calls["removed"].size(), calls["changed"].size());
  for (const auto& [key, mark] :
       {std::pair("added", '+'), std::pair("removed", '-'), std::pair("changed", '~')}) {
    for (const Json& call : calls[key]) {
      text += fmt::format("  {} {}\n", mark, printable(call.get<std::string>()));
    }
  }
  return text;
}

}  // namespace

Json diff_artifacts(const Decoded& a, const Decoded& b) {
  Json json;
  json["a"] = artifact::to_hex(a.id);
  json["b"] = artifact::to_hex(b.id);
  json["differences"] = differences(leaves_of(a), leaves_of(b));
  json["variants"] = variant_differences(a, b);
  json["weights"] = weight_differences(a, b);
  return json;
}

std::string diff_text(const Json& diff) {
  std::string text =
      fmt::format("a  {}\nb  {}\n", diff["a"].get<std::string>(), diff["b"].get<std::string>());
  if (diff["a"] == diff["b"]) text += "the same content\n";
  for (const Json& difference : diff["differences"]) {
    text += fmt::format("{}: {} -> {}\n", printable(difference["path"].get<std::string>()),
                        value_text(difference["a"]), value_text(difference["b"]));
  }
  for (const Json& variant : diff["variants"]) text += variant_text(variant);
  const Json& weights = diff["weights"];
  text += fmt::format("weights: {} the same, {} only in a ({}), {} only in b ({})\n",
                      weights["same"].get<std::uint64_t>(), weights["only_a"].get<std::uint64_t>(),
                      size_text(weights["only_a_bytes"].get<std::uint64_t>()),
                      weights["only_b"].get<std::uint64_t>(),
                      size_text(weights["only_b_bytes"].get<std::uint64_t>()));
  return text;
}

}  // namespace ingot::cli
