#include "cli/reference_report.h"

#include <fmt/format.h>

#include <map>

#include "cli/loaded_artifact.h"
#include "cli/loader_policy.h"

namespace ingot::cli {
namespace {

std::string camera_of(const artifact::Decoded& decoded, const artifact::VariantTables& tables,
                      const NameTable& names) {
  if (tables.cameras.empty()) return {};
  return names.original(decoded.tables.name(tables.cameras.front().name));
}

std::string difference_text(const ingot_error& error, const artifact::Decoded& decoded,
                            const artifact::VariantTables& tables) {
  const NameTable names(decoded.manifest);
  const IngotRefRecord& record = tables.refs[error.record];
  std::string text =
      fmt::format("; {} '{}' element {}: {} instead of {}, step {} of ",
                  record.role == INGOT_DIRECTION_STATE ? "state" : "output",
                  names.original(decoded.tables.name(tables.io[error.slot].name)),
                  error.element_index, error.value_found, error.value_allowed, record.step);
  const std::string name =
      reference_origin(decoded.manifest, camera_of(decoded, tables, names), record.sequence)
          .case_name;
  text +=
      name.empty() ? fmt::format("sequence {}", record.sequence) : fmt::format("case '{}'", name);
  return text;
}

}  // namespace

// The manifest beyond the facts of the tables is any JSON.
ReferenceOrigin reference_origin(std::string_view manifest, std::string_view camera,
                                 std::uint32_t sequence) {
  const Result<Json> json = parse_json(manifest, {});
  if (!json || !json->is_object() || !json->contains("references")) return {};
  for (const Json& entry : (*json)["references"]) {
    if (!entry.is_object() || entry.value("camera", Json()) != camera ||
        entry.value("sequence", Json()) != sequence) {
      continue;
    }
    ReferenceOrigin origin;
    const Json name = entry.value("case", Json());
    const Json seed = entry.value("seed", Json());
    if (name.is_string()) origin.case_name = name.get<std::string>();
    if (seed.is_number_unsigned()) origin.seed = seed.get<std::uint64_t>();
    return origin;
  }
  return {};
}

ReferenceCounts& ReferenceCounts::operator+=(const ReferenceCounts& other) {
  own += other.own;
  outside += other.outside;
  steps += other.steps;
  return *this;
}

ReferenceCounts count_references(const artifact::VariantTables& tables) {
  std::map<std::uint32_t, bool> is_outside;  // by sequence
  std::map<std::uint32_t, std::uint32_t> last_step;
  for (const IngotRefRecord& record : tables.refs) {
    const bool given =
        record.role != INGOT_DIRECTION_INPUT && record.origin != INGOT_ORIGIN_OWN_DOUBLE;
    is_outside[record.sequence] = is_outside[record.sequence] || given;
    last_step[record.sequence] = record.step;
  }
  ReferenceCounts counts;
  for (const auto& [sequence, outside] : is_outside) {
    ++(outside ? counts.outside : counts.own);
    counts.steps += last_step[sequence] + 1;
  }
  return counts;
}

std::string counts_text(const ReferenceCounts& counts) {
  return fmt::format("{} own sequence{}, {} outside, {} step{}", counts.own,
                     counts.own == 1 ? "" : "s", counts.outside, counts.steps,
                     counts.steps == 1 ? "" : "s");
}

Json counts_json(const ReferenceCounts& counts) {
  return {{"own", counts.own}, {"outside", counts.outside}, {"steps", counts.steps}};
}

Failure reference_failure(const ingot_error& error, const artifact::Decoded& decoded,
                          const std::string& file) {
  Failure failure = to_failure(error, file);
  if (error.number != INGOT_STATUS_SELFTEST ||
      error.variant >= decoded.tables.variant_tables.size()) {
    return failure;
  }
  const artifact::VariantTables& tables = decoded.tables.variant_tables[error.variant];
  if (error.record < tables.refs.size() && error.slot < tables.io.size()) {
    failure.diagnostics.front().message += difference_text(error, decoded, tables);
  }
  return failure;
}

}  // namespace ingot::cli
