#include "base/result.h"

#include <fmt/format.h>

namespace ingot {

std::string to_line(const Diagnostic& diagnostic) {
  std::string line;
  if (!diagnostic.file.empty()) line += diagnostic.file + ": ";
  switch (diagnostic.severity) {
    case Severity::Error: line += "error: "; break;
    case Severity::Warning: line += "warning: "; break;
    case Severity::Note: line += "note: "; break;
  }
  if (!diagnostic.node.empty()) {
    line += fmt::format("node '{}'", diagnostic.node);
    if (!diagnostic.op.empty() && diagnostic.opset != 0) {
      line += fmt::format(" ({}, opset {})", diagnostic.op, diagnostic.opset);
    } else if (!diagnostic.op.empty()) {
      line += fmt::format(" ({})", diagnostic.op);
    }
    line += ": ";
  }
  line += diagnostic.message;
  if (!diagnostic.hint.empty()) line += "\n  hint: " + diagnostic.hint;
  return line;
}

}  // namespace ingot
