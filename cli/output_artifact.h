// The file that an artifact is written to.
#pragma once

#include <string>

#include "base/result.h"

namespace ingot::cli {

// Usage if something else than an artifact is there: the output may have been mistaken for a key, a
// model or its weights.
[[nodiscard]] Result<void> check_output_artifact(const std::string& path);

}  // namespace ingot::cli
