// The pipeline that `ingot compile MODEL.onnx` writes itself.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/pipeline/pipeline.h"

namespace ingot {
namespace {

// The published size of the cabin picture.
constexpr std::int64_t kCabinWidth = 1440, kCabinHeight = 960;

struct ImageInput {
  std::string name;
  Warp warp;
  std::int64_t frames = 1;
};

// The input as the picture of a warp, if it can be one.
std::optional<ImageInput> as_image(const std::string& name, const Node& node, bool cabin) {
  if (node.dtype != DType::U8) return std::nullopt;
  ImageInput image{.name = name, .warp = {}, .frames = 1};
  const Shape& shape = node.shape;
  if (cabin) {
    if (shape != Shape{1, kCabinWidth * kCabinHeight}) return std::nullopt;
    image.warp = {.cabin = true, .width = kCabinWidth, .height = kCabinHeight, .fill = {}};
    return image;
  }
  if (shape.size() != 4 || shape[0] < 1 || shape[0] > 2 || shape[1] != 6) return std::nullopt;
  image.warp = {.cabin = false, .width = shape[3] * 2, .height = shape[2] * 2, .fill = {}};
  image.frames = shape[0];
  if (!illegal_size(image.warp).empty()) return std::nullopt;
  return image;
}

// An artifact has one thing of each name; ONNX lets an output be an input.
Result<void> check_output_names(const Graph& graph, const std::vector<std::string>& inputs,
                                const std::string& file) {
  Failure failure{ExitCode::Unsupported, {}};
  for (const GraphOutput& output : graph.outputs) {
    if (std::ranges::find(inputs, output.name) == inputs.end()) continue;
    Diagnostic diagnostic;
    diagnostic.code = "output-is-input";
    diagnostic.file = file;
    diagnostic.message = fmt::format("output '{}' is the input of that name", output.name);
    diagnostic.hint =
        "give it a name of its own: with an Identity node in the model, or under 'outputs' of a "
        "pipeline file";
    failure.diagnostics.push_back(std::move(diagnostic));
  }
  if (failure.diagnostics.empty()) return {};
  return std::unexpected(std::move(failure));
}

}  // namespace

Result<Pipeline> pipeline_of_model(std::shared_ptr<const PipelineModel> model,
                                   const ModelCommand& command) {
  const Graph& graph = model->graph;
  std::vector<std::string> names;
  std::vector<ImageInput> images;
  const bool cabin = command.warp == "cabin";
  if (command.warp && !cabin && command.warp != "road") {
    return fail(ExitCode::Usage, "bad-warp",
                fmt::format("--warp '{}' is neither 'road' nor 'cabin'", *command.warp));
  }
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const auto* input = std::get_if<InputOp>(&graph.nodes[i].op);
    if (input == nullptr) continue;
    names.push_back(input->name);
    const auto is_this = [&](const GraphState& state) { return state.state == ValueId{i}; };
    if (!command.warp || std::ranges::any_of(graph.states, is_this)) continue;
    if (auto image = as_image(input->name, graph.nodes[i], cabin)) images.push_back(*image);
  }

  Pipeline pipeline;
  pipeline.file = command.path;
  pipeline.name = command.name;
  // Stage ids that no input of the model has.
  const auto free_id = [&](std::string id) {
    while (std::ranges::find(names, id) != names.end()) id += '_';
    return id;
  };
  Stage stage{.id = free_id("model"), .op = {}};
  ModelStage model_stage;
  model_stage.path = command.path;
  if (command.warp) {
    if (images.size() != 1) {
      return fail(ExitCode::Malformed, "no-image-input",
                  fmt::format("{} inputs can take the {} picture, and exactly one must",
                              images.size(), *command.warp),
                  command.path,
                  cabin ? "it is u8[1,1382400]; say more in a pipeline file"
                        : "it is u8[1,6,h,w] or u8[2,6,h,w]; say more in a pipeline file");
    }
    const ImageInput& image = images.front();
    pipeline.packed = image.frames == 2 && !command.split_frames;
    pipeline.frames = {"frame"};
    if (image.frames == 2) pipeline.frames.emplace_back("big_frame");
    const std::string id = free_id("picture");
    pipeline.stages.push_back(
        {.id = id,
         .op = WarpStage{.warp = image.warp, .frames = pipeline.frames, .transform = "tfm"}});
    model_stage.inputs = {{image.name, id}};
  }
  INGOT_RETURN_IF_ERROR(check_output_names(graph, names, command.path));
  for (const GraphOutput& output : graph.outputs) {
    pipeline.outputs.emplace_back(output.name, fmt::format("{}.{}", stage.id, output.name));
  }
  model_stage.imported = std::move(model);
  stage.op = std::move(model_stage);
  pipeline.stages.push_back(std::move(stage));
  return pipeline;
}

}  // namespace ingot
