// --golden of compile: cases of another runtime, to be embedded into the artifact.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/model_source.h"

namespace ingot::cli {

struct GoldenOptions {
  std::string path;       // as `check` takes it; empty: none
  std::string case_name;  // --case
};

// Adds every case to each graph that it fits. Malformed if it fits none, Unsupported for a state
// that does not begin with its initial value: each embedded sequence starts from there.
[[nodiscard]] Result<void> add_outside_references(const GoldenOptions& options,
                                                  ModelSources& sources);

}  // namespace ingot::cli
