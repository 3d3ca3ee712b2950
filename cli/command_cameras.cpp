// ingot cameras
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "compiler/camera/camera.h"

namespace ingot::cli {
namespace {

struct CamerasOptions {
  bool json = false;
};

// The members of a camera file, and who delivers such frames.
Result<Json> camera_json(const KnownCamera& known) {
  INGOT_ASSIGN(Json json, parse_json(print_camera(known.camera), known.camera.name));
  json["devices"] = known.devices;
  return json;
}

std::string camera_line(const KnownCamera& known) {
  const Camera& camera = known.camera;
  return fmt::format(
      "{:<18} {} {:>4}x{:<4}  stride {:>4}  rows {:>4}+{:<4}  uv at {:>8}  {:>8} "
      "bytes  {}\n",
      camera.name, name(camera.pixel_format), camera.width, camera.height, camera.stride,
      camera.y_height, camera.uv_height, camera.uv_offset, camera.size_bytes, known.devices);
}

Result<ExitCode> run_cameras(const CamerasOptions& options, std::vector<Diagnostic>&) {
  Json list = Json::array();
  std::string text;
  for (const KnownCamera& known : known_cameras()) {
    INGOT_ASSIGN(Json json, camera_json(known));
    list.push_back(std::move(json));
    text += camera_line(known);
  }
  INGOT_RETURN_IF_ERROR(print_result(options.json ? to_text(list) : text));
  return ExitCode::Done;
}

}  // namespace

void add_cameras_command(CLI::App& app, Invocation& invocation) {
  CLI::App& command = add_command(app, "cameras", "List the frame layouts of known cameras",
                                  "ingot cameras --json");
  auto options = std::make_shared<CamerasOptions>();
  command.add_flag("--json", options->json, "Print JSON");
  set_action(command, invocation, options, run_cameras);
}

}  // namespace ingot::cli
