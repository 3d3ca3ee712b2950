// The interface of an artifact as a C header, for programs that are written against it.
#pragma once

#include <string>
#include <string_view>

#include "artifact/decode.h"

namespace ingot::cli {

// One block for each interface: artifacts for several cameras have several. Says nothing that may
// change while the interface stays, such as the artifact's id.
[[nodiscard]] std::string interface_header(const artifact::Decoded& decoded);

// A stored name as part of a C identifier. Different names stay different: letters, digits and `_`
// are kept, everything else, and a `_` in front of an `x`, becomes `_x` and two hexadecimal digits.
[[nodiscard]] std::string identifier_part(std::string_view name);

}  // namespace ingot::cli
