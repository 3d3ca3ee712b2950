// The way back: a decoded artifact as the contents that it was written from, for tools that make
// new artifacts of old ones.
#pragma once

#include "artifact/contents.h"
#include "artifact/decode.h"
#include "base/result.h"

namespace ingot::artifact {

// encode() of the result gives the same file, without signatures. Blobs borrow the decoded file,
// which must outlive them. Needs: a file that the loader accepts (step 1 to 26); what contradicts
// itself fails as Malformed here at the latest. Failures: Unsupported for an artifact that another
// writer laid out differently (extra sections that the contents cannot express).
[[nodiscard]] Result<ArtifactContents> read_contents(const Decoded& decoded);

}  // namespace ingot::artifact
