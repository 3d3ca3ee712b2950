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

// Names of numbers of the format; "?" for unknown ones.
[[nodiscard]] std::string_view architecture_name(std::uint32_t arch);
[[nodiscard]] std::string_view call_kind_name(std::uint32_t kind);
[[nodiscard]] std::string_view buffer_kind_name(std::uint32_t kind);

}  // namespace ingot::cli
