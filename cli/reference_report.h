// What tools say about reference vectors: how many there are, who made them, which one failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "artifact/decode.h"
#include "base/result.h"
#include "cli/json.h"
#include "loader/ingot_loader.h"

namespace ingot::cli {

// A sequence is outside if another runtime gave any of its outputs.
struct ReferenceCounts {
  std::size_t own = 0, outside = 0;  // sequences
  std::size_t steps = 0;             // of all of them

  ReferenceCounts& operator+=(const ReferenceCounts& other);
};
[[nodiscard]] ReferenceCounts count_references(const artifact::VariantTables& tables);
// "1 own sequence, 2 outside, 4 steps"
[[nodiscard]] std::string counts_text(const ReferenceCounts& counts);
[[nodiscard]] Json counts_json(const ReferenceCounts& counts);

// Where a sequence comes from, as the manifest says.
struct ReferenceOrigin {
  std::string case_name;  // empty: the own sequence, or not recorded
  std::optional<std::uint64_t> seed;
};
[[nodiscard]] ReferenceOrigin reference_origin(std::string_view manifest, std::string_view camera,
                                               std::uint32_t sequence);

// The loader's error of a self-test, with the name of the output and of the case.
[[nodiscard]] Failure reference_failure(const ingot_error& error, const artifact::Decoded& decoded,
                                        const std::string& file);

}  // namespace ingot::cli
