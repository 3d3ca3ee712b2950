#include "cli/diagnostics.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace ingot::cli {
namespace {

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::Error: return "error";
    case Severity::Warning: return "warning";
    case Severity::Note: return "note";
  }
  return "error";
}

Diagnostic printable(const Diagnostic& diagnostic) {
  Diagnostic safe = diagnostic;
  for (std::string* text : {&safe.file, &safe.node, &safe.op, &safe.message, &safe.hint}) {
    *text = cli::printable(*text);
  }
  if (safe.file.empty()) safe.file = "ingot";
  return safe;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      safe += "\\n";
    } else if (c == '\t') {
      safe += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      safe += fmt::format("\\x{:02x}", byte);
    } else {
      safe += c;
    }
  }
  return safe;
}

Json to_json(std::span<const Diagnostic> diagnostics) {
  Json array = Json::array();
  for (const Diagnostic& diagnostic : diagnostics) {
    Json object;
    object["severity"] = severity_name(diagnostic.severity);
    object["code"] = diagnostic.code;
    object["file"] = diagnostic.file;
    object["node"] = diagnostic.node;
    object["op"] = diagnostic.op;
    object["opset"] = diagnostic.opset;
    object["message"] = diagnostic.message;
    object["hint"] = diagnostic.hint;
    array.push_back(std::move(object));
  }
  return array;
}

void print_diagnostics(std::span<const Diagnostic> diagnostics, bool json) {
  if (diagnostics.empty()) return;
  std::string text;
  if (json) {
    text = to_text(to_json(diagnostics));
  } else {
    for (const Diagnostic& diagnostic : diagnostics) text += to_line(printable(diagnostic)) + "\n";
  }
  std::fwrite(text.data(), 1, text.size(), stderr);
}

Diagnostic make_warning(std::string code, std::string message, std::string file, std::string hint) {
  Diagnostic warning;
  warning.severity = Severity::Warning;
  warning.code = std::move(code);
  warning.message = std::move(message);
  warning.file = std::move(file);
  warning.hint = std::move(hint);
  return warning;
}

}  // namespace ingot::cli
