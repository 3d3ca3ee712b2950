// A pipeline file as structs. What needs shapes or models is checked by build_pipeline.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/strict_json.h"
#include "compiler/pipeline/pipeline.h"

namespace ingot {
namespace {

constexpr std::string_view kFormat = "ingot-pipeline/1";
constexpr std::int64_t kLargestExtent = std::int64_t{1} << 31;
constexpr std::size_t kMostStages = 256;  // stages are resolved recursively

std::string element(std::string_view list, std::size_t index) {
  return fmt::format("{}[{}]", list, index);
}

// Text elements of the list under `key`; empty if there is none.
std::vector<std::string> text_list(JsonObject& object, std::string_view key) {
  const Json* list = object.find(key);
  std::vector<std::string> texts;
  if (list == nullptr) return texts;
  if (!list->is_array()) {
    object.problem(key, fmt::format("expected an array, found {}", json_kind(*list)));
    return texts;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Json& text = (*list)[i];
    if (!text.is_string() || text.get_ref<const std::string&>().empty()) {
      object.problem(element(key, i), "expected text that is not empty");
    } else {
      texts.push_back(text.get<std::string>());
    }
  }
  return texts;
}

// Text under every key of the object under `key`, in the file's order.
std::vector<std::pair<std::string, std::string>> text_map(JsonObject& object,
                                                          std::string_view key) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const Json* map = object.find(key);
  if (map == nullptr) return pairs;
  if (!map->is_object()) {
    object.problem(key, fmt::format("expected an object, found {}", json_kind(*map)));
    return pairs;
  }
  for (const auto& [name, value] : map->items()) {
    if (name.empty() || !value.is_string() || value.get_ref<const std::string&>().empty()) {
      object.problem(fmt::format("{}.{}", key, name), "expected text that is not empty");
    } else {
      pairs.emplace_back(name, value.get<std::string>());
    }
  }
  return pairs;
}

// Integers of the list under `key`, each in min..max; empty if there is none.
std::vector<std::int64_t> integer_list(JsonObject& object, std::string_view key, std::int64_t min,
                                       std::int64_t max) {
  std::vector<std::int64_t> numbers;
  const Json* list = object.require(key);
  if (list == nullptr) return numbers;
  if (!list->is_array()) {
    object.problem(key, fmt::format("expected an array, found {}", json_kind(*list)));
    return numbers;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Json& number = (*list)[i];
    if (!number.is_number_integer() || number.get<std::int64_t>() < min ||
        number.get<std::int64_t>() > max) {
      object.problem(element(key, i), fmt::format("expected a whole number in {}..{}", min, max));
    } else {
      numbers.push_back(number.get<std::int64_t>());
    }
  }
  return numbers;
}

void check_path(JsonObject& object, std::string_view key, const std::string& path) {
  const std::filesystem::path name(path);
  const bool climbs = std::ranges::find(name, std::filesystem::path("..")) != name.end();
  if (name.is_absolute() || climbs || path.find('\0') != std::string::npos) {
    object.problem(key, fmt::format("path '{}' leaves the folder of the pipeline", path),
                   "put the file beside the pipeline and name it relative to it");
  }
}

WarpStage read_warp(JsonObject& object) {
  WarpStage stage;
  const std::string kind = object.text("warp");
  stage.warp.cabin = kind == "cabin";
  if (!kind.empty() && kind != "road" && kind != "cabin") {
    object.problem("warp", fmt::format("'{}' is neither 'road' nor 'cabin'", kind));
  }
  if (const Json* frame = object.require("frame"); frame != nullptr) {
    if (frame->is_array()) {
      stage.frames = text_list(object, "frame");
      if (frame->size() != 2) object.problem("frame", "a list must have two frames");
    } else {
      stage.frames.push_back(object.text("frame"));
    }
  }
  if (stage.warp.cabin && stage.frames.size() > 1) {
    object.problem("frame", "the cabin warp takes one frame");
  }
  stage.transform = object.text("transform");
  if (const auto size = integer_list(object, "size", 1, kLargestExtent); size.size() == 2) {
    stage.warp.width = size[0];
    stage.warp.height = size[1];
    if (const std::string illegal = illegal_size(stage.warp); !illegal.empty()) {
      object.problem("size", illegal);
    }
  } else if (const Json* given = object.find("size");
             given != nullptr && given->is_array() && given->size() == size.size()) {
    object.problem("size", "expected [width, height]");
  }
  if (object.find("fill") != nullptr) {
    stage.warp.fill = static_cast<std::uint8_t>(object.integer("fill", 0, 255));
    if (!stage.warp.cabin) object.problem("fill", "only the cabin warp fills");
  }
  return stage;
}

QueueStage read_queue(JsonObject& object) {
  constexpr std::int64_t longest = 1 << 16;
  QueueStage stage;
  stage.value = object.text("queue");
  stage.samples = object.integer("samples", 1, longest);
  stage.stride = object.integer_or("stride", 1, 1, longest);
  stage.delay = object.integer_or("delay", 0, 0, longest);
  const std::string pool = object.text_or("pool", "none");
  stage.pool_max = pool == "max";
  if (pool != "none" && pool != "max") {
    object.problem("pool", fmt::format("'{}' is neither 'none' nor 'max'", pool));
  }
  const bool concat = object.find("concat") != nullptr;
  stage.stack = object.find("stack") != nullptr;
  if (concat == stage.stack) {
    object.problem("concat", "exactly one of 'concat' and 'stack' says where the samples go");
  } else {
    stage.axis = static_cast<int>(object.integer(concat ? "concat" : "stack", 0, 8));
  }
  if (const Json* initial = object.find("initial"); initial != nullptr) {
    if (!initial->is_number() || !std::isfinite(initial->get<double>())) {
      object.problem("initial", "expected a number");
    } else {
      stage.initial = initial->get<double>();
    }
  }
  return stage;
}

ModelStage read_model_stage(JsonObject& object) {
  ModelStage stage;
  stage.path = object.text("model");
  check_path(object, "model", stage.path);
  stage.inputs = text_map(object, "inputs");
  for (auto& [output, input] : text_map(object, "states")) {
    stage.states.push_back({.output = output, .input = input});
  }
  return stage;
}

std::optional<Stage> read_stage(const Json& json, std::size_t index, JsonProblems& problems) {
  JsonObject object(json, element("stages", index), problems);
  if (!json.is_object()) return std::nullopt;
  Stage stage;
  stage.id = object.text("id");
  if (stage.id.find_first_of(".[]") != std::string::npos) {
    object.problem("id", fmt::format("'{}' has one of the characters . [ ]", stage.id));
  }
  int kinds = 0;
  for (const char* kind : {"warp", "queue", "model"}) kinds += json.contains(kind) ? 1 : 0;
  if (kinds != 1) {
    problems.add(element("stages", index), "bad-stage",
                 "a stage has exactly one of the keys 'warp', 'queue' and 'model'");
    return std::nullopt;
  }
  if (json.contains("warp")) stage.op = read_warp(object);
  if (json.contains("queue")) stage.op = read_queue(object);
  if (json.contains("model")) stage.op = read_model_stage(object);
  object.finish();
  return stage;
}

std::vector<PipelineInput> read_inputs(JsonObject& root, JsonProblems& problems) {
  std::vector<PipelineInput> inputs;
  const Json* map = root.find("inputs");
  if (map == nullptr) return inputs;
  if (!map->is_object()) {
    root.problem("inputs", fmt::format("expected an object, found {}", json_kind(*map)));
    return inputs;
  }
  for (const auto& [name, value] : map->items()) {
    JsonObject object(value, fmt::format("inputs.{}", name), problems);
    if (!value.is_object()) continue;
    PipelineInput input;
    input.name = name;
    const std::string dtype = object.text("dtype");
    if (const auto known = dtype_from_name(dtype)) {
      input.dtype = *known;
    } else if (!dtype.empty()) {
      object.problem("dtype", fmt::format("'{}' is no element type", dtype),
                     "such as f32, f16, u8, i32, i64 or bool");
    }
    input.shape = integer_list(object, "shape", 1, kLargestExtent);
    if (input.shape.size() > 8) object.problem("shape", "more than 8 dimensions");
    object.finish();
    inputs.push_back(std::move(input));
  }
  return inputs;
}

// Every name is one thing: an input, a frame or a stage.
void check_names(const Pipeline& pipeline, JsonProblems& problems) {
  std::set<std::string> names;
  const auto add = [&](const std::string& place, const std::string& name) {
    if (!names.insert(name).second) {
      problems.add(place, "repeated-name", fmt::format("name '{}' is used twice", name));
    }
  };
  for (std::size_t i = 0; i < pipeline.frames.size(); ++i) {
    add(element("frames", i), pipeline.frames[i]);
  }
  for (const PipelineInput& input : pipeline.inputs) {
    add(fmt::format("inputs.{}", input.name), input.name);
  }
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
    add(element("stages", i), pipeline.stages[i].id);
  }
}

// Frames that the warps use and frames that the file lists are the same.
void check_frames(const Pipeline& pipeline, JsonProblems& problems) {
  std::set<std::string> used;
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
    const auto* stage = std::get_if<WarpStage>(&pipeline.stages[i].op);
    if (stage == nullptr) continue;
    for (const std::string& frame : stage->frames) {
      used.insert(frame);
      if (std::ranges::find(pipeline.frames, frame) == pipeline.frames.end() && !frame.empty()) {
        problems.add(element("stages", i) + ".frame", "unknown-frame",
                     fmt::format("'{}' is not among the pipeline's frames", frame),
                     "list it under 'frames'");
      }
    }
  }
  for (std::size_t i = 0; i < pipeline.frames.size(); ++i) {
    if (!used.contains(pipeline.frames[i])) {
      problems.add(element("frames", i), "unused-frame",
                   fmt::format("no warp reads frame '{}'", pipeline.frames[i]));
    }
  }
  if (!used.empty() && pipeline.cameras.empty()) {
    problems.add("", "missing-camera", "a warp needs a camera, and 'cameras' lists none");
  }
  if (used.empty() && !pipeline.cameras.empty()) {
    problems.add("cameras", "unused-camera", "cameras are listed, and no stage warps a frame");
  }
}

}  // namespace

Result<Pipeline> parse_pipeline(const std::string& json, const std::string& file) {
  INGOT_ASSIGN(const Json root_json, parse_json_file(json, file));
  JsonProblems problems(file);
  JsonObject root(root_json, "", problems);
  Pipeline pipeline;
  pipeline.file = file;
  if (const std::string format = root.text("format"); !format.empty() && format != kFormat) {
    root.problem("format", fmt::format("'{}' is not '{}'", format, kFormat));
  }
  pipeline.name = root.text("name");
  pipeline.cameras = text_list(root, "cameras");
  for (std::size_t i = 0; i < pipeline.cameras.size(); ++i) {
    check_path(root, element("cameras", i), pipeline.cameras[i]);
  }
  pipeline.frames = text_list(root, "frames");
  const std::string binding = root.text_or("frame_binding", "in_place");
  pipeline.packed = binding == "packed";
  if (binding != "packed" && binding != "in_place") {
    root.problem("frame_binding", fmt::format("'{}' is neither 'in_place' nor 'packed'", binding));
  }
  if (root.find("frame_period_us") != nullptr) {
    pipeline.frame_period_us =
        static_cast<std::uint32_t>(root.integer("frame_period_us", 1000, 10'000'000));
  }
  pipeline.inputs = read_inputs(root, problems);
  if (const Json* stages = root.require("stages"); stages != nullptr) {
    if (!stages->is_array() || stages->empty()) {
      root.problem("stages", "expected an array with at least one stage");
    } else if (stages->size() > kMostStages) {
      root.problem("stages", fmt::format("more than {} stages", kMostStages));
    } else {
      for (std::size_t i = 0; i < stages->size(); ++i) {
        if (auto stage = read_stage((*stages)[i], i, problems)) {
          pipeline.stages.push_back(std::move(*stage));
        }
      }
    }
  }
  if (root.require("outputs") != nullptr) {
    pipeline.outputs = text_map(root, "outputs");
    if (pipeline.outputs.empty()) root.problem("outputs", "a pipeline needs an output");
  }
  root.finish();
  if (problems.empty()) {
    check_names(pipeline, problems);
    check_frames(pipeline, problems);
  }
  if (!problems.empty()) return problems.failure();
  return pipeline;
}

Result<std::filesystem::path> resolve_path(const std::filesystem::path& folder,
                                           const std::string& path, const std::string& file) {
  const auto leaves = [&] {
    return fail(ExitCode::Malformed, "path-outside",
                fmt::format("path '{}' leaves the folder of the pipeline", path), file);
  };
  const std::filesystem::path name(path);
  if (name.is_absolute() || std::ranges::find(name, std::filesystem::path("..")) != name.end()) {
    return leaves();
  }
  std::error_code error;
  const std::filesystem::path base =
      std::filesystem::canonical(folder.empty() ? std::filesystem::path(".") : folder, error);
  const std::filesystem::path target =
      error ? std::filesystem::path() : std::filesystem::canonical(base / name, error);
  if (error) {
    return fail(ExitCode::Io, "cannot-open",
                fmt::format("cannot open '{}': {}", path, error.message()), file);
  }
  const auto [base_end, unused] = std::ranges::mismatch(base, target);
  if (base_end != base.end()) return leaves();
  return target;
}

}  // namespace ingot
