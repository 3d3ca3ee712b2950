#include "compiler/interpreter_runner.h"

namespace ingot {

Result<void> InterpreterRunner::run(std::span<const Call> calls) {
  for (const Call& call : calls) INGOT_RETURN_IF_ERROR(interpret(*call.kernel, call.buffers));
  return {};
}

}  // namespace ingot
