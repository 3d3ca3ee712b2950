// Fixes the shapes of the model's inputs by the user's options.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "onnx_frontend/import_graph.h"
#include "onnx_frontend/model.h"

namespace ingot {

struct BoundInput {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;
  std::optional<Tensor> value;  // of inputs fixed by --bind
};

struct BoundInputs {
  std::vector<BoundInput> inputs;  // in file order, without those that are initializers
  std::map<std::string, std::int64_t> symbols;  // value of every dimension name
  // Types and dimensions that keep the model from compiling. Shapes then hold guesses that serve to
  // find further problems.
  std::vector<Diagnostic> problems;
  std::vector<Diagnostic> warnings;
};

// Fails with Usage if an option names nothing or contradicts the model or another option, with
// Malformed if the model itself does.
[[nodiscard]] Result<BoundInputs> bind_inputs(const Model& model, const ImportOptions& options);

// The declared shape with the names replaced by their values, if that makes it static.
[[nodiscard]] std::optional<Shape> static_shape(const OnnxValueInfo& info,
                                                const std::map<std::string, std::int64_t>& symbols);

}  // namespace ingot
