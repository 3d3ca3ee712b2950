// What an artifact holds, as JSON and as text.
#pragma once

#include <string>

#include "artifact/decode.h"
#include "cli/json.h"

namespace ingot::cli {

struct DescribeOptions {
  bool calls = false;
  bool buffers = false;
};

[[nodiscard]] Json describe_artifact(const artifact::Decoded& decoded,
                                     const DescribeOptions& options);

// The description of describe_artifact() for people.
[[nodiscard]] std::string description_text(const Json& description);

}  // namespace ingot::cli
