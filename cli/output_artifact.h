// The artifact that a command writes, and the file that it goes to.
#pragma once

#include <string>
#include <vector>

#include "artifact/contents.h"
#include "base/result.h"

namespace ingot::cli {

// Usage if something else than an artifact is there: the output may have been mistaken for a key, a
// model or its weights.
[[nodiscard]] Result<void> check_output_artifact(const std::string& path);

// A camera's max_age_us that nobody will look at, since its frames are parts of a packed input.
void warn_of_packed_frames(const artifact::ArtifactContents& contents, const std::string& file,
                           std::vector<Diagnostic>& warnings);

}  // namespace ingot::cli
