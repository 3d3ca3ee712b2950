// SOURCE of compile and check-model: an .onnx file or a pipeline .json -> graphs, with everything
// that the artifact says of their origin.
#pragma once

#include <string>
#include <vector>

#include "artifact/contents.h"
#include "base/result.h"
#include "cli/commands.h"
#include "compiler/pipeline/pipeline.h"

namespace ingot::cli {

// The options that decide what the graphs are.
struct SourceOptions {
  std::string source;
  std::vector<std::string> shapes;   // --shape INPUT=1x3x8x8
  std::vector<std::string> dims;     // --dim BATCH=1
  std::vector<std::string> states;   // --state OUTPUT=INPUT
  std::vector<std::string> binds;    // --bind INPUT=FILE
  std::vector<std::string> cameras;  // --camera C.json
  std::string warp;                  // --warp road|cabin
  bool split_frames = false;
};
void add_source_options(CLI::App& command, SourceOptions& options);

struct ModelSources {
  PipelineResult pipeline;
  std::vector<artifact::ModelSource> models;
  artifact::ManifestFacts facts;  // sources, metadata, and the options above
};

// Reads all files and imports all models. A failure lists everything that is wrong with the model
// whose import failed first.
[[nodiscard]] Result<ModelSources> read_source(const SourceOptions& options,
                                               std::vector<Diagnostic>& warnings);

}  // namespace ingot::cli
