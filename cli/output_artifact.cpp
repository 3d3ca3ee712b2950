#include "cli/output_artifact.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "artifact/format.h"
#include "cli/diagnostics.h"
#include "cli/options.h"

namespace ingot::cli {
namespace {

bool holds_something_else(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  if (std::filesystem::file_size(path, error) == 0) return false;
  std::ifstream file(path, std::ios::binary);
  std::array<char, 8> magic{};
  file.read(magic.data(), magic.size());
  return !file || std::memcmp(magic.data(), INGOT_MAGIC, magic.size()) != 0;
}

}  // namespace

Result<void> check_output_artifact(const std::string& path) {
  if (!holds_something_else(path)) return {};
  return usage_error(fmt::format("'{}' exists and is no artifact", path),
                     "remove it or choose another name");
}

void warn_of_packed_frames(const artifact::ArtifactContents& contents, const std::string& file,
                           std::vector<Diagnostic>& warnings) {
  std::set<std::string> named;
  for (const artifact::Interface& interface : contents.interfaces) {
    for (const artifact::Slice& slice : interface.slices) {
      if (!slice.camera) continue;
      const artifact::Camera& camera = interface.cameras[*slice.camera];
      if (camera.max_age_us == 0 || !named.insert(camera.name).second) continue;
      warnings.push_back(
          make_warning("packed-max-age",
                       fmt::format("camera '{}': max_age_us is not looked at, its frames are parts "
                                   "of a packed input",
                                   camera.name),
                       file, "bind the frames in place, or let the caller look at their age"));
    }
  }
}

}  // namespace ingot::cli
