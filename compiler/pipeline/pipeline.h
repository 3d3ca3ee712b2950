// Pipelines: what happens in one frame, from camera buffers over history queues to models. A
// pipeline file (docs/pipeline.md) or a single model becomes one graph per camera layout.
//
//   parse_pipeline -> Pipeline -> build_pipeline -> CompileInput and what the artifact says of it
//
// Models come through a callback, so that nothing here knows ONNX.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "compiler/camera/camera.h"
#include "compiler/camera/warp.h"
#include "compiler/compile.h"
#include "compiler/graph/graph.h"

namespace ingot {

// --- models, as the caller's importer hands them over

struct ValueSlice {
  std::string name;
  std::int64_t start = 0, stop = 0;  // elements of the last dimension; stop is one past the end
};

struct PipelineModel {
  Graph graph;                // inputs and outputs under the model's own names; states declared
  std::string sliced_output;  // the output that `slices` cut; empty without slices
  std::vector<ValueSlice> slices;
  std::map<std::string, std::string> metadata;
  std::string graph_name, producer_name, producer_version, domain;
  std::int64_t ir_version = 0, model_version = 0, opset = 0;
  // The .onnx file first, then its side files.
  struct Source {
    std::string name;
    std::shared_ptr<const void> owner;
    std::span<const std::byte> bytes;
  };
  std::vector<Source> sources;
  std::vector<Diagnostic> warnings;
};

struct StatePair {
  std::string output, input;
};

// What the pipeline wants of a model; an importer that cannot do it fails with Malformed and names
// the place in the pipeline file: PLACE.inputs.NAME, PLACE.states.OUTPUT.
struct ModelRequest {
  std::string path;  // as the pipeline names it, relative to the pipeline's folder
  std::string stage;
  std::string place;                    // of the stage in the file: "stages[3]"
  std::map<std::string, Shape> shapes;  // of inputs that the pipeline feeds; others are ignored
  std::vector<StatePair> states;        // named by the pipeline, besides next_X and X
};
using ModelImporter = std::function<Result<PipelineModel>(const ModelRequest&)>;

// --- the pipeline file as structs; values are text such as "vision.outputs[plan]"

struct PipelineInput {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;
};

struct WarpStage {
  Warp warp;
  std::vector<std::string> frames;  // one or two
  std::string transform;
};

// Appends the newest entry, drops the oldest, leaves out the newest `delay`, then samples, oldest
// first.
struct QueueStage {
  std::string value;
  std::int64_t samples = 1, stride = 1, delay = 0;
  bool pool_max = false;  // the largest of each group of `stride`, instead of every stride-th
  bool stack = false;     // along a new axis, instead of joining along an existing one
  int axis = 0;
  double initial = 0;
};

struct ModelStage {
  std::string path;
  std::vector<std::pair<std::string, std::string>> inputs;  // model input, value
  std::vector<StatePair> states;
  std::shared_ptr<const PipelineModel> imported;  // set: the importer is not asked
};

struct Stage {
  std::string id;
  std::variant<WarpStage, QueueStage, ModelStage> op;
};

struct Pipeline {
  std::string file;  // for diagnostics
  std::string name;
  std::vector<std::string> cameras;   // paths of camera files
  std::vector<std::string> frames;    // names of the frame inputs
  bool packed = false;                // one host buffer instead of pointers
  std::uint32_t frame_period_us = 0;  // 0: not stated
  std::vector<PipelineInput> inputs;
  std::vector<Stage> stages;
  std::vector<std::pair<std::string, std::string>> outputs;  // name, value
};

// The text of a pipeline file. Malformed lists everything that is wrong, each with its place.
[[nodiscard]] Result<Pipeline> parse_pipeline(const std::string& json, const std::string& file);

// A path of a pipeline file, opened from the folder the file is in. Malformed if it is absolute,
// has a "..", or leads out of the folder through a symbolic link.
[[nodiscard]] Result<std::filesystem::path> resolve_path(const std::filesystem::path& folder,
                                                         const std::string& path,
                                                         const std::string& file);

// --- `ingot compile MODEL.onnx`

struct ModelCommand {
  std::string path;  // for diagnostics and as the stage's path
  std::string name;  // of the pipeline
  std::optional<std::string> warp =
      {};                     // "road" or "cabin": the model's image input comes from a frame
  bool split_frames = false;  // two frames: two inputs instead of one
};

// The pipeline of one stage (two with a warp). Inputs, states and outputs keep the model's names.
// With a warp, the model must have exactly one input that fits: u8 [1 or 2, 6, h, w] for road,
// u8 [1, 1382400] for cabin.
[[nodiscard]] Result<Pipeline> pipeline_of_model(std::shared_ptr<const PipelineModel> model,
                                                 const ModelCommand& command);

// --- graphs

struct PipelineResult {
  std::string name;
  // One variant per camera, in order; one without a camera otherwise. GraphCamera::camera indexes
  // `cameras`.
  CompileInput input;
  std::vector<Camera> cameras;
  bool packed = false;  // all inputs are to be parts of one; the graphs have them apart

  // The models in stage order, without their graphs.
  struct Part {
    std::string stage;
    PipelineModel model;
  };
  std::vector<Part> models;
  // Named parts of outputs, as the models' metadata cut them.
  struct OutputSlices {
    std::string output;
    std::vector<ValueSlice> slices;
  };
  std::vector<OutputSlices> slices;
  std::uint32_t frame_period_us = 0;
  std::vector<Diagnostic> warnings;
};

// Failures:
//   Usage        cameras without a warp, or a warp without cameras
//   Malformed    a value, name, shape or type that does not fit; stages that need each other
// and whatever the importer reports.
[[nodiscard]] Result<PipelineResult> build_pipeline(const Pipeline& pipeline,
                                                    const std::vector<Camera>& cameras,
                                                    const ModelImporter& importer);

}  // namespace ingot
