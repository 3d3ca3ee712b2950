// Values of options as text -> numbers, names and files. Wrong ones are Usage failures that name
// the option.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "compiler/tensor/tensor.h"

namespace ingot::cli {

[[nodiscard]] std::unexpected<Failure> usage_error(std::string message, std::string hint = {});
// For what docs/cli.md names and this version does not do yet.
[[nodiscard]] std::unexpected<Failure> not_supported_yet(std::string_view option);

struct NameValue {
  std::string name;
  std::string value;
};
// "a=b=c" is a=b and c: names of tensors may hold an equals sign, values do not.
[[nodiscard]] Result<NameValue> split_at_last_equals(const std::string& text,
                                                     std::string_view option);
// Several of them by name; a name that comes twice is refused.
[[nodiscard]] Result<std::map<std::string, std::string>> name_values(
    const std::vector<std::string>& texts, std::string_view option);

// "1x3x224x224"; "scalar" or nothing is rank 0.
[[nodiscard]] Result<Shape> parse_shape(std::string_view text, std::string_view option);
[[nodiscard]] Result<std::int64_t> parse_integer(std::string_view text, std::string_view option);

// For CLI11: why the text is no number from 0 to 2^64 - 1, or nothing. Every option of a number has
// such a check: numbers are decimal, without leading zeros.
[[nodiscard]] std::string check_counter(const std::string& text);

// For CLI11: the same for a whole number, and for any number, from `least` to `most`.
using NumberCheck = std::function<std::string(const std::string&)>;
[[nodiscard]] NumberCheck whole_number(std::int64_t least, std::int64_t most);
[[nodiscard]] NumberCheck real_number(double least, double most);

using ArtifactId = std::array<std::uint8_t, 32>;
// 64 hexadecimal digits of either case.
[[nodiscard]] Result<ArtifactId> parse_artifact_id(std::string_view text, std::string_view option);

[[nodiscard]] Result<std::vector<std::byte>> read_file(const std::filesystem::path& path);
// Only the first bytes of a file that does not begin as an artifact: enough to refuse it.
[[nodiscard]] Result<std::vector<std::byte>> read_artifact_file(const std::filesystem::path& path);
// At most 16 MiB.
[[nodiscard]] Result<std::string> read_text_file(const std::filesystem::path& path);

// Everything of a result at once, so that a closed pipe or a full disk is noticed.
[[nodiscard]] Result<void> print_result(std::string_view text);

// "1.5 MiB", "312 B".
[[nodiscard]] std::string size_text(std::uint64_t bytes);

}  // namespace ingot::cli
