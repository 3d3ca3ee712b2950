// Compiled call lists and facts about their origin -> the contents of an artifact.
//
// One artifact variant for every camera layout and target; what they have in common (interface,
// weights, reference vectors) is referred to, not repeated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifact/contents.h"
#include "base/result.h"
#include "compiler/camera/camera.h"
#include "compiler/compile.h"
#include "compiler/pipeline/pipeline.h"

namespace ingot::cli {

// What the call lists do not say.
struct ArtifactFacts {
  std::string product;
  std::string device_family;
  IngotBuildClass build_class = INGOT_BUILD_CLASS_DEVELOPMENT;
  std::uint64_t security_counter = 0;
  std::vector<artifact::ModelSource> models;
  std::vector<Camera> cameras;  // every layout that a variant names
  std::vector<PipelineResult::OutputSlices> slices;
  artifact::ManifestFacts manifest;
};

[[nodiscard]] Result<artifact::ArtifactContents> encode_program(const Compiled& compiled,
                                                                const ArtifactFacts& facts);

// Text of a variant's DEBUG section: name, operations and bytes of each call, for `bench`.
[[nodiscard]] std::string call_costs_text(const Program& program);

}  // namespace ingot::cli
