// The golden vectors of the camera warps (their README: shared/golden/warp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "compiler/camera/camera.h"

namespace ingot {

// The folder of the shared data: $INGOT_SHARED, else ../shared beside the source tree. Nothing if
// it is not there.
[[nodiscard]] std::optional<std::filesystem::path> shared_folder();
[[nodiscard]] std::string read_text(const std::filesystem::path& path);

struct WarpCase {
  std::string id;
  bool cabin = false;
  Camera camera;
  std::int64_t width = 0, height = 0;
  std::optional<std::uint8_t> fill;
  std::vector<std::vector<std::byte>> frames;
  std::vector<std::vector<float>> matrices;  // nine numbers each, one per frame
  std::vector<std::byte> expected;
};

// Cases of at most `largest` output bytes whose whole output is stored.
[[nodiscard]] std::vector<WarpCase> warp_cases(const std::filesystem::path& shared,
                                               std::int64_t largest);

}  // namespace ingot
