// Several inputs as one: the caller fills one buffer and binds it once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifact/contents.h"
#include "base/result.h"

namespace ingot::artifact {

struct PackOptions {
  std::string name = "host";  // of the slot that takes their place
  bool frames = false;        // camera frames too, behind everything else
};

// Replaces the inputs of every interface by one input `u8[n]` with a slice for each of them, in
// this order: matrices of warps, other inputs, then (if asked for) camera frames, each at the next
// multiple of 256. The calls stay; what read an input reads its part. States, outputs and unpacked
// frames stay as they are; the parts of an input that was packed before stay parts. A packed frame
// is only bytes to the loader: its slice names the camera, but no layout is compared when it is
// bound, and it has neither a sequence number nor an age. An interface
// that has nothing to pack is left alone. Failures: Unsupported where a slot that stays already has
// the name, or an input is padded.
[[nodiscard]] Result<void> pack_inputs(ArtifactContents& contents, const PackOptions& options);

}  // namespace ingot::artifact
