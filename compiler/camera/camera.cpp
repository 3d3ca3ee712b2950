#include "compiler/camera/camera.h"

#include <fmt/format.h>

#include <array>

#include "base/check.h"
#include "base/strict_json.h"

namespace ingot {
namespace {

constexpr std::string_view kFormat = "ingot-camera/1";
constexpr std::int64_t kLargestFrame = std::int64_t{2} << 30;  // bytes, as the artifact allows

std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// One of the words that `name` gives for the enumerators 1 and 2.
template <typename Enum>
Enum choice(JsonObject& object, std::string_view key) {
  const std::string text = object.text_or(key, name(Enum{1}));
  for (const auto value : {Enum{1}, Enum{2}}) {
    if (text == name(value)) return value;
  }
  object.problem(key,
                 fmt::format("'{}' is neither '{}' nor '{}'", text, name(Enum{1}), name(Enum{2})));
  return Enum{1};
}

Camera read_camera(JsonObject& object, JsonProblems& problems) {
  constexpr std::int64_t largest = kLargestFrame;
  Camera camera;
  if (const std::string format = object.text("format"); !format.empty() && format != kFormat) {
    object.problem("format", fmt::format("'{}' is not '{}'", format, kFormat));
  }
  camera.name = object.text("name");
  const bool nv = object.require("pixel_format") != nullptr;
  if (nv) camera.pixel_format = choice<PixelFormat>(object, "pixel_format");
  const auto rows = [&](std::string_view key) {
    return static_cast<std::uint32_t>(object.integer(key, 1, 1 << 20));
  };
  camera.width = rows("width");
  camera.height = rows("height");
  camera.stride = rows("stride");
  camera.y_height = rows("y_height");
  camera.uv_height = rows("uv_height");
  const std::uint64_t y_bytes = std::uint64_t{camera.stride} * camera.y_height;
  camera.uv_offset = static_cast<std::uint64_t>(
      object.integer_or("uv_offset", static_cast<std::int64_t>(y_bytes), 0, largest));
  camera.size_bytes = static_cast<std::uint64_t>(object.integer("size", 1, largest));
  camera.sample_range = choice<SampleRange>(object, "sample_range");
  camera.colour_matrix = choice<ColourMatrix>(object, "colour_matrix");
  camera.max_age_us =
      static_cast<std::uint32_t>(object.integer_or("max_age_us", 0, 0, std::int64_t{0xFFFFFFFF}));
  if (camera.max_age_us != 0 && (camera.max_age_us < 1000 || camera.max_age_us > 10'000'000)) {
    object.problem("max_age_us", "expected 0 or 1000 to 10000000 microseconds");
  }
  static_cast<void>(object.text_or("devices", ""));  // for people
  object.finish();
  if (!problems.empty()) return camera;

  // The rules of a layout; each names the number that breaks it.
  const auto rule = [&](bool holds, std::string_view key, std::string message) {
    if (!holds) object.problem(key, std::move(message));
  };
  rule(camera.width % 2 == 0, "width", fmt::format("{} is odd", camera.width));
  rule(camera.height % 2 == 0, "height", fmt::format("{} is odd", camera.height));
  rule(camera.stride >= camera.width, "stride",
       fmt::format("{} is less than the width {}", camera.stride, camera.width));
  rule(camera.y_height >= camera.height, "y_height",
       fmt::format("{} is less than the height {}", camera.y_height, camera.height));
  rule(camera.uv_height >= camera.height / 2, "uv_height",
       fmt::format("{} is less than half the height, {}", camera.uv_height, camera.height / 2));
  rule(camera.uv_offset >= y_bytes, "uv_offset",
       fmt::format("{} lies inside the Y plane, which ends at {}", camera.uv_offset, y_bytes));
  rule(camera.size_bytes >= camera.copy_bytes(), "size",
       fmt::format("{} is less than the end of the chroma plane, {}", camera.size_bytes,
                   camera.copy_bytes()));
  return camera;
}

std::vector<Diagnostic> formula_warnings(const Camera& camera, const std::string& file) {
  const Camera formula = camera_layout(camera.width, camera.height);
  std::vector<Diagnostic> warnings;
  const auto compare = [&](std::string key, std::uint64_t given, std::uint64_t expected,
                           std::string_view rule) {
    if (given == expected) return;
    Diagnostic warning;
    warning.severity = Severity::Warning;
    warning.code = "unusual-layout";
    warning.file = file;
    warning.node = std::move(key);
    warning.message = fmt::format("{} is used as given; {} would be {}", given, rule, expected);
    warnings.push_back(std::move(warning));
  };
  compare("stride", camera.stride, formula.stride, "the width rounded up to 128");
  compare("y_height", camera.y_height, formula.y_height, "the height rounded up to 32");
  compare("uv_height", camera.uv_height, formula.uv_height, "half the height rounded up to 16");
  compare("uv_offset", camera.uv_offset, std::uint64_t{camera.stride} * camera.y_height,
          "stride * y_height");
  // The formula of the size follows from the other numbers; one warning per cause is enough.
  if (warnings.empty()) {
    compare("size", camera.size_bytes, formula.size_bytes, "the usual allocation");
  }
  return warnings;
}

KnownCamera known(std::string name, std::uint32_t width, std::uint32_t height,
                  std::string devices) {
  KnownCamera known{.camera = camera_layout(width, height), .devices = std::move(devices)};
  known.camera.name = std::move(name);
  return known;
}

}  // namespace

std::string_view name(PixelFormat format) {
  switch (format) {
    case PixelFormat::Nv12: return "nv12";
    case PixelFormat::Nv21: return "nv21";
  }
  INGOT_CHECK(false, "not a pixel format");
}

std::string_view name(SampleRange range) {
  switch (range) {
    case SampleRange::Full: return "full";
    case SampleRange::Limited: return "limited";
  }
  INGOT_CHECK(false, "not a sample range");
}

std::string_view name(ColourMatrix matrix) {
  switch (matrix) {
    case ColourMatrix::Bt601: return "bt601";
    case ColourMatrix::Bt709: return "bt709";
  }
  INGOT_CHECK(false, "not a colour matrix");
}

Camera camera_layout(std::uint32_t width, std::uint32_t height) {
  Camera camera;
  camera.width = width;
  camera.height = height;
  const std::uint64_t stride = align_up(width, 128);
  const std::uint64_t y_height = align_up(height, 32);
  const std::uint64_t uv_height = align_up(height / 2, 16);
  camera.stride = static_cast<std::uint32_t>(stride);
  camera.y_height = static_cast<std::uint32_t>(y_height);
  camera.uv_height = static_cast<std::uint32_t>(uv_height);
  camera.uv_offset = stride * y_height;
  const std::uint64_t planes = stride * (y_height + uv_height);
  const std::uint64_t base =
      align_up(planes + 4096 + std::max<std::uint64_t>(16384, 8 * stride), 4096);
  camera.size_bytes = align_up(base + align_up(width, 512) * 512, 4096);
  return camera;
}

Result<ParsedCamera> parse_camera(const std::string& json, const std::string& file) {
  INGOT_ASSIGN(const Json root, parse_json_file(json, file));
  JsonProblems problems(file);
  JsonObject object(root, "", problems);
  ParsedCamera parsed;
  parsed.camera = read_camera(object, problems);
  if (!problems.empty()) return problems.failure();
  parsed.warnings = formula_warnings(parsed.camera, file);
  return parsed;
}

std::string print_camera(const Camera& camera) {
  Json json;
  json["format"] = kFormat;
  json["name"] = camera.name;
  json["pixel_format"] = name(camera.pixel_format);
  json["width"] = camera.width;
  json["height"] = camera.height;
  json["stride"] = camera.stride;
  json["y_height"] = camera.y_height;
  json["uv_height"] = camera.uv_height;
  json["uv_offset"] = camera.uv_offset;
  json["size"] = camera.size_bytes;
  if (camera.sample_range != SampleRange::Full) json["sample_range"] = name(camera.sample_range);
  if (camera.colour_matrix != ColourMatrix::Bt601) {
    json["colour_matrix"] = name(camera.colour_matrix);
  }
  if (camera.max_age_us != 0) json["max_age_us"] = camera.max_age_us;
  return json.dump(2) + "\n";
}

const std::vector<KnownCamera>& known_cameras() {
  static const std::vector<KnownCamera> cameras = {
      known("ar0231", 1928, 1208, "AR0231 in tici, tizi and mici"),
      known("ox03c10", 1928, 1208, "OX03C10 in tici, tizi and mici"),
      known("os04c10-half", 1344, 760,
            "OS04C10 read out at half resolution in tici, tizi and mici"),
      known("os04c10", 2688, 1520, "OS04C10 at full resolution; no model uses it"),
      known("neo-road", 1164, 874, "road camera of neo (historic)"),
      known("neo-driver", 816, 612, "driver camera of neo (historic)"),
  };
  return cameras;
}

}  // namespace ingot
