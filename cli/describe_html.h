// What an artifact holds, as one page for a browser: no scripts, nothing from elsewhere.
#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "cli/loaded_artifact.h"

namespace ingot::cli {

// `description` is describe_artifact() with calls and buffers; `costs` are those of the calls, by
// variant, and may be empty. `times` is what `bench --per-call --json` printed, or null: it is
// shown with the variants that have just these calls; Usage if there are none.
[[nodiscard]] Result<std::string> description_html(const Json& description,
                                                   const std::vector<std::vector<CallCost>>& costs,
                                                   const Json& times);

}  // namespace ingot::cli
