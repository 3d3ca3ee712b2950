// ONNX model -> graph: fixes the shapes, then translates every node through GraphBuilder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/graph.h"
#include "onnx_frontend/model.h"
#include "onnx_frontend/output_slices.h"

namespace ingot {

struct ImportOptions {
  // The place of a pipeline file that asks for something. A wish that cannot be granted is then
  // Malformed there; without a place it is the command line's, and Usage.
  struct Place {
    std::string file, place;
  };
  struct StatePair {
    std::string output;
    std::string input;
    std::optional<Place> place = {};
  };

  std::map<std::string, Shape> shapes;       // --shape INPUT=1x3x224x224
  std::map<std::string, Place> places;       // of shapes that a pipeline file decides
  std::map<std::string, std::int64_t> dims;  // --dim NAME=1
  std::map<std::string, Tensor> binds;       // --bind INPUT=value: a constant, no longer an input
  std::vector<StatePair> states;             // --state OUT=IN
  // Pair an output next_X with an input X without being told.
  bool find_states = true;
};

// An input or output as the file declares it, after binding.
struct ImportedValue {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;
};

struct ImportedModel {
  Graph graph;  // inputs and outputs keep the file's names and order; states are declared
  std::vector<ImportedValue> inputs;
  std::vector<ImportedValue> outputs;
  // The metadata entry `output_slices`, if there is one: which output, and its slices by start,
  // without gaps.
  struct Slices {
    std::string output;
    std::vector<OutputSlice> slices;
  };
  std::optional<Slices> slices;

  std::map<std::string, std::string> metadata;
  std::string graph_name;
  std::string producer_name;
  std::string producer_version;
  std::string domain;
  std::int64_t ir_version = 0;
  std::int64_t model_version = 0;
  std::int64_t opset = 0;  // of the default domain
  std::map<std::string, std::int64_t> opsets;
  std::vector<SourceFile> sources;
  std::vector<Diagnostic> warnings;
};

// Failures:
//   Usage        an option names no input, dimension or output, or two options contradict
//   Malformed    the graph breaks a rule of ONNX (a missing value, a cycle, shapes that do not fit)
//   Unsupported  every operator, attribute, type and open dimension that is not supported, at once
[[nodiscard]] Result<ImportedModel> import_graph(const Model& model, const ImportOptions& options);

// The element type of a TensorProto.DataType code, if ingot has it.
[[nodiscard]] std::optional<DType> dtype_from_onnx(int data_type);
// "float32", "int4", "string" ... or "type 99".
[[nodiscard]] std::string onnx_type_name(int data_type);
// A tensor of the file as a constant; fails with Unsupported for types that ingot lacks.
[[nodiscard]] Result<Tensor> to_tensor(const OnnxTensor& tensor);

}  // namespace ingot
