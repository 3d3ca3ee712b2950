// ArtifactContents -> the bytes of an unsigned artifact.
//
// Deterministic: equal contents give equal bytes. The result has an empty signature block; sign.h
// adds entries to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "artifact/contents.h"
#include "base/result.h"

namespace ingot::artifact {

// Fails with Unsupported where the contents need more than the format has (limits, names that
// collide) and with Internal where they contradict themselves (an index out of range, a blob of
// another size than its buffer). It does not repeat the loader's semantic checks: a tool opens the
// result with the loader before it keeps it.
[[nodiscard]] Result<std::vector<std::byte>> encode(const ArtifactContents& contents);

// The digest that an integrator pins: IO, SLICES and CAMERA with their names (docs, "Interface").
// encode() stores the same value in every variant that uses this interface.
[[nodiscard]] Result<Digest> interface_digest(const Interface& interface);

struct ExternalFile {
  std::string name;
  std::uint64_t nbytes = 0;
  Digest sha256{};
};

// ModelSource::external_sha256 of a model's side files; zero for none. Sorted here, by name.
[[nodiscard]] Digest external_files_digest(std::vector<ExternalFile> files);

}  // namespace ingot::artifact
