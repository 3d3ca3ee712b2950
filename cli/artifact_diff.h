// What differs between two artifacts, without running them.
#pragma once

#include <string>

#include "artifact/decode.h"
#include "cli/json.h"

namespace ingot::cli {

// `a`, `b` (ids), `differences` (`path`, `a`, `b`; null where a side has none), `variants` with the
// calls that were `added`, `removed` or `changed` by name, and `weights`. Both must be well formed.
[[nodiscard]] Json diff_artifacts(const artifact::Decoded& a, const artifact::Decoded& b);

// The same for people.
[[nodiscard]] std::string diff_text(const Json& diff);

}  // namespace ingot::cli
