// Reads an .onnx file and its external data into a Model.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "onnx_frontend/model.h"

namespace ingot {

// The files are mapped, not copied: weights stay where they are, and a model above 2 GB is fine.
// Anything that is not a well-formed model fails with Malformed and one line; a file that cannot be
// opened fails with Io. What is well-formed but not supported ends up in Model::unsupported.
//
// External data must be regular files inside the model's folder (no absolute path, no "..", no
// symbolic link that leaves it), and every range must lie inside its file.
[[nodiscard]] Result<Model> read_model(const std::filesystem::path& path);

// One serialized TensorProto, as the ONNX test data keeps them (.pb). No external data.
[[nodiscard]] Result<OnnxTensor> read_tensor(const std::filesystem::path& path);

}  // namespace ingot
