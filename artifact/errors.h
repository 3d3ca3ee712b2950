// Error numbers of the format as failures of the tool.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "artifact/format.h"
#include "base/result.h"

namespace ingot::artifact {

// "E_BLOCK_DIGEST"; "E_UNKNOWN" for a number that the format does not have.
[[nodiscard]] std::string_view error_name(std::uint32_t number);

// Exit code that the number asks for; Internal where it has none.
[[nodiscard]] ExitCode error_exit_code(std::uint32_t number);

// A Failure whose diagnostic has the number's name as code. `detail` is our own text, never the
// file's.
[[nodiscard]] std::unexpected<Failure> fail_with(IngotErrorNumber number, std::string detail);

}  // namespace ingot::artifact
