#include "codegen/emit_operations.h"

namespace ingot {

llvm::Value* emit_math(const Emission& emission, ScalarOp op, DType, bool, llvm::Value* value) {
  emission.refuse("operation '" + std::string(name(op)) + "'");
  return value;
}

}  // namespace ingot
