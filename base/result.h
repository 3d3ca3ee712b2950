// The one result type of the project: a value, or a Failure that says whose fault it is.
//
// Nothing here throws. Exceptions of third-party libraries are caught where they are called.
#pragma once

#include <expected>
#include <string>
#include <utility>
#include <vector>

namespace ingot {

// Exit codes of the tool (docs/cli.md). A Failure carries the one that its cause asks for.
enum class ExitCode : int {
  Done = 0,
  Usage = 2,
  Malformed = 3,
  Unsupported = 4,
  NotTrusted = 5,
  Incompatible = 6,
  NumbersDiffer = 7,
  Io = 8,
  Internal = 70,
};

enum class Severity { Error, Warning, Note };

// One problem, one line. Empty fields are not printed.
//   file: error: node 'NODE' (OP, opset N): MESSAGE
//     hint: HINT
struct Diagnostic {
  Severity severity = Severity::Error;
  std::string code;     // stable kebab-case name, such as "unsupported-operator"
  std::string file;     // source file as the user named it
  std::string node;     // ONNX node, pipeline place or kernel
  std::string op;       // operator type
  int opset = 0;        // 0 where it has no meaning
  std::string message;  // what is wrong, one line, no full stop
  std::string hint;     // what would help, may be empty
};

// Why something failed. `diagnostics` is never empty: everything that is wrong, in source order.
struct Failure {
  ExitCode exit = ExitCode::Internal;
  std::vector<Diagnostic> diagnostics;
};

template <typename T>
using Result = std::expected<T, Failure>;

// A Failure with one diagnostic.
[[nodiscard]] inline std::unexpected<Failure> fail(ExitCode exit, Diagnostic diagnostic) {
  Failure failure;
  failure.exit = exit;
  failure.diagnostics.push_back(std::move(diagnostic));
  return std::unexpected(std::move(failure));
}

[[nodiscard]] inline std::unexpected<Failure> fail(ExitCode exit, std::string code,
                                                   std::string message, std::string file = {},
                                                   std::string hint = {}) {
  Diagnostic diagnostic;
  diagnostic.code = std::move(code);
  diagnostic.message = std::move(message);
  diagnostic.file = std::move(file);
  diagnostic.hint = std::move(hint);
  return fail(exit, std::move(diagnostic));
}

// "file: error: node 'x' (Op, opset 13): message", with the hint on a second line if there is one.
[[nodiscard]] std::string to_line(const Diagnostic& diagnostic);

}  // namespace ingot

// Returns the failure of `expression` to the caller, if it failed.
#define INGOT_RETURN_IF_ERROR(expression)                                         \
  do {                                                                            \
    auto ingot_result_ = (expression);                                            \
    if (!ingot_result_) return std::unexpected(std::move(ingot_result_).error()); \
  } while (false)

#define INGOT_CONCAT_INNER(a, b) a##b
#define INGOT_CONCAT(a, b) INGOT_CONCAT_INNER(a, b)

// INGOT_ASSIGN(auto x, f()): x becomes the value, or the failure is returned to the caller.
#define INGOT_ASSIGN(declaration, expression) \
  INGOT_ASSIGN_IMPL(INGOT_CONCAT(ingot_assign_, __LINE__), declaration, expression)
#define INGOT_ASSIGN_IMPL(temporary, declaration, expression)           \
  auto temporary = (expression);                                        \
  if (!temporary) return std::unexpected(std::move(temporary).error()); \
  declaration = std::move(*temporary)
