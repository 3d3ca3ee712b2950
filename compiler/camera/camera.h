// How one camera lays out its frames in memory. NV12 and NV21: a plane of brightness bytes, then a
// plane of interleaved chroma bytes at half resolution, both with the same row pitch.
//
// The numbers come from a camera file (docs/camera.schema.json) and are used as given: other
// capture stacks use other pitches. Where the usual formula gives another number, parsing warns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ingot {

enum class PixelFormat : std::uint8_t { Nv12 = 1, Nv21 = 2 };     // codes of CAMERA.pixel_format
enum class SampleRange : std::uint8_t { Full = 1, Limited = 2 };  // 0..255; 16..235 and 16..240
enum class ColourMatrix : std::uint8_t { Bt601 = 1, Bt709 = 2 };  // as CAMERA.colour_matrix

struct Camera {
  std::string name;
  PixelFormat pixel_format = PixelFormat::Nv12;
  std::uint32_t width = 0, height = 0;        // pixels, even
  std::uint32_t stride = 0;                   // bytes per row, both planes
  std::uint32_t y_height = 0, uv_height = 0;  // rows allocated
  std::uint64_t uv_offset = 0;                // bytes from the start of the frame
  std::uint64_t size_bytes = 0;               // whole allocation: what is bound as the frame
  SampleRange sample_range = SampleRange::Full;
  ColourMatrix colour_matrix = ColourMatrix::Bt601;
  std::uint32_t max_age_us = 0;  // oldest frame that may be used; 0: not stated

  // End of the chroma plane: what an upload of the frame moves.
  [[nodiscard]] std::uint64_t copy_bytes() const {
    return uv_offset + std::uint64_t{stride} * uv_height;
  }
  friend bool operator==(const Camera&, const Camera&) = default;
};

[[nodiscard]] std::string_view name(PixelFormat format);   // "nv12"
[[nodiscard]] std::string_view name(SampleRange range);    // "full"
[[nodiscard]] std::string_view name(ColourMatrix matrix);  // "bt601"

// The layout that the formulas give for a frame size: camera_layout(1928, 1208).stride is 2048.
[[nodiscard]] Camera camera_layout(std::uint32_t width, std::uint32_t height);

struct ParsedCamera {
  Camera camera;
  std::vector<Diagnostic> warnings;  // numbers that differ from the formulas
};

// The text of a camera file; `file` names it in diagnostics. Malformed lists everything that is
// wrong: unknown and missing keys, wrong types, and the rules of a well-formed layout.
[[nodiscard]] Result<ParsedCamera> parse_camera(const std::string& json, const std::string& file);
// A camera file that parses back to the same camera.
[[nodiscard]] std::string print_camera(const Camera& camera);

// What `ingot cameras` prints.
struct KnownCamera {
  Camera camera;
  std::string devices;  // which sensors and devices deliver it
};
[[nodiscard]] const std::vector<KnownCamera>& known_cameras();

}  // namespace ingot
