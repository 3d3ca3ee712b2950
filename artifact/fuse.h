// A compiled model and a compiled warp as one artifact, without compiling anything: the warp's
// calls run first, and what they write is what the model's calls read.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "artifact/contents.h"
#include "base/result.h"

namespace ingot::artifact {

struct FuseOptions {
  std::string product;  // empty: the model's
  // Outputs of the warp for inputs of the model, by name. Without one an output goes to the input
  // of its name, else to the only input of its type and shape.
  std::vector<std::pair<std::string, std::string>> connections;  // input, output
};

// Which input of the model each output of the warp became, by slot of the first interface of each.
struct FusedSlot {
  std::string model_input, warp_output;
};

struct Fused {
  ArtifactContents contents;  // without references: nobody has computed them
  std::vector<FusedSlot> slots;
};

// Variants are those of the warp (cameras times targets), each with the model's of that target.
// Scratch of both shares an arena, states and weights stay apart. Blobs are those of the parts.
//
// Every condition that does not hold is a diagnostic of the failure (Malformed), with these codes:
//   fuse-cameras      the model has cameras of its own, or the warp has none
//   fuse-targets      targets of only one of them
//   fuse-interfaces   variants of a part with other inputs, outputs or states than its first
//   fuse-outputs      an output of the warp without an input of its type and shape, or with several
//   fuse-names        inputs, outputs or states of both have one name
//   fuse-states       the output of the warp would replace a state of the model
//   fuse-family       made for different families of devices
//   fuse-threads      made for different numbers of threads
//   fuse-float        the model's floats are not to be flushed as the warp's code asks
//   fuse-device       a part runs on a device of its own
//   fuse-sections     a part has sections that cannot be joined
[[nodiscard]] Result<Fused> fuse(const ArtifactContents& model, const ArtifactContents& warp,
                                 const FuseOptions& options);

}  // namespace ingot::artifact
