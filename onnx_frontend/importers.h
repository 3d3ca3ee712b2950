// The import functions that operators.def names, one per form of an operator. Each family lives in
// its import_<family>.cpp.
#pragma once

#include "base/result.h"
#include "onnx_frontend/node_import.h"

namespace ingot {

#define OPERATOR(domain, op, since, importer, limits) Result<void> importer(NodeImport& node);
#include "onnx_frontend/operators.def"
#undef OPERATOR

}  // namespace ingot
