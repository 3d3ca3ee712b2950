// Problems on standard error: one line each, or an array of objects with --json.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/json.h"

namespace ingot::cli {

// `text` with control characters written as \n, \t, \xNN: names come from files, and a terminal
// must not obey them.
[[nodiscard]] std::string printable(std::string_view text);

// severity, code, file, node, op, opset, message, hint; absent facts are "" or 0.
[[nodiscard]] Json to_json(std::span<const Diagnostic> diagnostics);

void print_diagnostics(std::span<const Diagnostic> diagnostics, bool json);

// Failures without a file speak of this one.
template <typename T>
[[nodiscard]] Result<T> about(const std::string& file, Result<T> result) {
  if (result) return result;
  for (Diagnostic& diagnostic : result.error().diagnostics) {
    if (diagnostic.file.empty()) diagnostic.file = file;
  }
  return result;
}

[[nodiscard]] Diagnostic make_warning(std::string code, std::string message, std::string file = {},
                                      std::string hint = {});

}  // namespace ingot::cli
