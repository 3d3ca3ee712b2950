#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "compiler/graph/builder.h"
#include "compiler/pipeline/pipeline.h"
#include "tests/support/graph_interpreter.h"

namespace ingot {
namespace {

Camera tiny_camera(const std::string& name, std::uint32_t width) {
  Camera camera = camera_layout(width, 32);
  camera.name = name;
  camera.size_bytes = camera.copy_bytes();
  return camera;
}

// "add": out = a + b, f32 [2] each. "slices": outputs = concat(x, 2x), cut into low and high.
// "counter": a state `count` that grows by the input `step`; `total` repeats it.
PipelineModel small_model(const std::string& path, Shape shape = {1, 2}) {
  PipelineModel model;
  GraphBuilder builder(path);
  if (path == "add.onnx") {
    const ValueId a = builder.input("a", DType::F32, shape);
    const ValueId b = builder.input("b", DType::F32, shape);
    builder.output("sum", builder.add(a, b));
  } else if (path == "slices.onnx") {
    const ValueId x = builder.input("x", DType::F32, shape);
    const std::vector<ValueId> parts = {x, builder.add(x, x)};
    builder.output("outputs", builder.concat(parts, static_cast<int>(shape.size()) - 1));
    model.sliced_output = "outputs";
    model.slices = {{.name = "low", .start = 0, .stop = 2},
                    {.name = "high", .start = 2, .stop = 4}};
  } else if (path == "counter.onnx") {
    const ValueId step = builder.input("step", DType::F32, {1});
    const ValueId count = builder.input("count", DType::F32, {1});
    const ValueId next = builder.add(count, step);
    builder.output("total", builder.add(next, next));
    builder.output("next_count", next);
    builder.state(count, next);
  } else if (path == "image.onnx") {
    const ValueId image = builder.input("image", DType::U8, {1, 6, 2, 2});
    builder.output(
        "sum", builder.reduce(ReduceOp::Sum, builder.cast(image, DType::I32), {0, 1, 2, 3}, false));
  }
  model.graph = builder.take();
  return model;
}

Result<PipelineModel> import_small(const ModelRequest& request) {
  if (request.path == "broken.onnx") {
    return fail(ExitCode::Unsupported, "unsupported-operator", "no such operator", request.path);
  }
  return small_model(request.path);
}

Result<PipelineResult> build(const std::string& json, const std::vector<Camera>& cameras = {}) {
  const auto pipeline = parse_pipeline(json, "p.json");
  if (!pipeline) return std::unexpected(pipeline.error());
  return build_pipeline(*pipeline, cameras, import_small);
}

std::string with(const std::string& stages, const std::string& outputs,
                 const std::string& inputs = "{}") {
  return R"({"format": "ingot-pipeline/1", "name": "p", "inputs": )" + inputs + R"(, "stages": [)" +
         stages + R"(], "outputs": )" + outputs + "}";
}

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    if (const auto* input = std::get_if<InputOp>(&node.op)) names.push_back(input->name);
  }
  return names;
}

const Graph& only_graph(const Result<PipelineResult>& result) {
  EXPECT_EQ(result->input.variants.size(), 1U);
  const auto valid = validate_graph(result->input.variants[0].graph);
  EXPECT_TRUE(valid.has_value()) << to_line(valid.error().diagnostics.front());
  return result->input.variants[0].graph;
}

std::string first_line(const Result<PipelineResult>& result) {
  return result ? "no failure" : to_line(result.error().diagnostics.front());
}

// Feeds `inputs` each frame and carries all states.
class Frames {
 public:
  explicit Frames(const Graph& graph) : graph_(graph) {}
  std::map<std::string, std::vector<double>> run(const NamedTensors& inputs) {
    NamedTensors all = states_;
    all.insert(inputs.begin(), inputs.end());
    const GraphRun run = interpret_graph(graph_, all);
    states_ = next_states(graph_, run);
    std::map<std::string, std::vector<double>> outputs;
    for (const GraphOutput& output : graph_.outputs) {
      outputs[output.name] = doubles(run[output.value]);
    }
    return outputs;
  }

 private:
  const Graph& graph_;
  NamedTensors states_;
};

Tensor floats(const Shape& shape, const std::vector<double>& values) {
  return Tensor::of_floats(DType::F32, shape, values);
}

using Doubles = std::vector<double>;

TEST(BuildPipeline, ModelsFeedEachOtherBySlices) {
  const auto result = build(with(
      R"({"id": "first", "model": "slices.onnx"},
         {"id": "second", "model": "add.onnx",
          "inputs": {"a": "first.outputs[low]", "b": "first.outputs[high]"}})",
      R"({"cut": "first", "sum": "second.sum", "high": "first.outputs[high]"})"));
  ASSERT_TRUE(result.has_value()) << first_line(result);
  const Graph& graph = only_graph(result);
  EXPECT_EQ(input_names(graph), std::vector<std::string>{"x"});
  auto outputs = Frames(graph).run({{"x", floats({1, 2}, {1, 5})}});
  EXPECT_EQ(outputs["sum"], (Doubles{3, 15}));
  EXPECT_EQ(outputs["high"], (Doubles{2, 10}));
  ASSERT_EQ(result->slices.size(), 1U);
  EXPECT_EQ(result->slices[0].output, "cut");
  EXPECT_EQ(result->slices[0].slices[1].name, "high");
  ASSERT_EQ(result->models.size(), 2U);
  EXPECT_EQ(result->models[1].stage, "second");
}

TEST(BuildPipeline, QueueInFrontOfAModel) {
  const auto result = build(with(
      R"({"id": "past", "queue": "v", "samples": 2, "stride": 2, "concat": 1},
         {"id": "m", "model": "add.onnx", "inputs": {"a": "past", "b": "other"}})",
      R"({"sum": "m"})", R"({"v": {"dtype": "f32", "shape": [1, 1]}})"));
  ASSERT_TRUE(result.has_value()) << first_line(result);
  const Graph& graph = only_graph(result);
  EXPECT_EQ(input_names(graph),
            (std::vector<std::string>{"v", "other", "past.queue", "past.place"}));
  Frames frames(graph);
  const auto frame = [&](double v) {
    return frames.run({{"v", floats({1, 1}, {v})}, {"other", floats({1, 2}, {100, 200})}})["sum"];
  };
  EXPECT_EQ(frame(1), (Doubles{100, 201}));
  EXPECT_EQ(frame(2), (Doubles{100, 202}));
  EXPECT_EQ(frame(3), (Doubles{101, 203}));
}

// With a delay, a queue may feed the model that fills it.
TEST(BuildPipeline, DelayedQueueFeedsItsOwnModel) {
  const std::string stages = R"({"id": "past", "queue": "m.sum", "samples": 1, "delay": DELAY,
                                 "concat": 0},
                                {"id": "m", "model": "add.onnx", "inputs": {"a": "past"}})";
  const auto with_delay = [&](const std::string& delay) {
    std::string text = stages;
    text.replace(text.find("DELAY"), 5, delay);
    return build(with(text, R"({"sum": "m.sum"})"));
  };
  const auto result = with_delay("1");
  ASSERT_TRUE(result.has_value()) << first_line(result);
  Frames frames(only_graph(result));
  const NamedTensors ones = {{"b", floats({1, 2}, {1, 10})}};
  EXPECT_EQ(frames.run(ones)["sum"], (Doubles{1, 10}));
  EXPECT_EQ(frames.run(ones)["sum"], (Doubles{2, 20}));
  EXPECT_EQ(frames.run(ones)["sum"], (Doubles{3, 30}));

  const auto cycle = with_delay("0");
  ASSERT_FALSE(cycle.has_value());
  EXPECT_EQ(cycle.error().exit, ExitCode::Malformed);
  EXPECT_EQ(cycle.error().diagnostics.front().code, "cycle");
}

TEST(BuildPipeline, StatesAreCarriedAndNamed) {
  const auto one = build(with(R"({"id": "c", "model": "counter.onnx"})", R"({"t": "c"})"));
  ASSERT_TRUE(one.has_value()) << first_line(one);
  EXPECT_EQ(input_names(only_graph(one)), (std::vector<std::string>{"step", "count"}));
  Frames frames(only_graph(one));
  EXPECT_EQ(frames.run({{"step", floats({1}, {2})}})["t"], Doubles{4});
  EXPECT_EQ(frames.run({{"step", floats({1}, {3})}})["t"], Doubles{10});

  const auto two = build(with(
      R"({"id": "c", "model": "counter.onnx"},
         {"id": "d", "model": "counter.onnx", "inputs": {"step": "c.next_count"}})",
      R"({"t": "d.total"})"));
  ASSERT_TRUE(two.has_value()) << first_line(two);
  EXPECT_EQ(input_names(only_graph(two)), (std::vector<std::string>{"step", "c.count", "d.count"}));
}

TEST(BuildPipeline, OneGraphPerCamera) {
  const std::string json = R"({"format": "ingot-pipeline/1", "name": "p",
    "cameras": ["a.json", "b.json"], "frames": ["frame"],
    "stages": [{"id": "img", "warp": "road", "frame": "frame", "transform": "tfm", "size": [4, 4]},
               {"id": "m", "model": "image.onnx", "inputs": {"image": "img"}}],
    "outputs": {"sum": "m", "img": "img"}})";
  const auto result = build(json, {tiny_camera("a", 64), tiny_camera("b", 256)});
  ASSERT_TRUE(result.has_value()) << first_line(result);
  ASSERT_EQ(result->input.variants.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& variant = result->input.variants[i];
    EXPECT_EQ(variant.camera, result->cameras[i].name);
    EXPECT_TRUE(validate_graph(variant.graph).has_value());
    ASSERT_EQ(variant.graph.cameras.size(), 1U);
    EXPECT_EQ(variant.graph.cameras[0].camera, static_cast<int>(i));
    const auto bytes = static_cast<std::int64_t>(result->cameras[i].size_bytes);
    EXPECT_EQ(variant.graph[variant.graph.cameras[0].input].shape, Shape{bytes});
    const Tensor frame = Tensor::splat({bytes}, Scalar::of_int(DType::U8, 3));
    auto outputs =
        Frames(variant.graph)
            .run({{"frame", frame}, {"tfm", floats({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1})}});
    EXPECT_EQ(outputs["sum"], Doubles{72});
  }
  EXPECT_EQ(build(json, {tiny_camera("a", 64), tiny_camera("a", 256)}).error().exit,
            ExitCode::Malformed);
}

TEST(BuildPipeline, GraphsOfPackedPipelinesHaveTheirInputsApart) {
  const auto result = build(R"({"format": "ingot-pipeline/1", "name": "p", "cameras": ["a.json"],
    "frames": ["frame"], "frame_binding": "packed",
    "stages": [{"id": "img", "warp": "cabin", "frame": "frame", "transform": "tfm", "size": [3, 5]}],
    "outputs": {"img": "img"}})",
                            {tiny_camera("a", 64)});
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->packed);
  EXPECT_EQ(result->input.variants[0].graph.cameras.size(), 1U);
}

// Both states of a queue have names that nothing else may have.
TEST(BuildPipeline, StatesOfQueuesMeetNoOtherName) {
  for (const std::string transform : {"img.queue", "img.place"}) {
    const auto result = build(R"({"format": "ingot-pipeline/1", "name": "p", "cameras": ["a.json"],
    "frames": ["frame"], "stages": [
      {"id": "new", "warp": "road", "frame": "frame", "size": [8, 4], "transform": ")" +
                                  transform + R"("},
      {"id": "img", "queue": "new", "samples": 2, "concat": 1}], "outputs": {"y": "img"}})",
                              {tiny_camera("a", 64)});
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().diagnostics.front().node, "stages[1]") << first_line(result);
  }
}

TEST(BuildPipeline, MistakesAreNamed) {
  const std::string add = R"({"id": "m", "model": "add.onnx"})";
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {with(add, R"({"y": "n"})"), "outputs.y"},
      {with(add, R"({"y": "m.total"})"), "outputs.y"},
      {with(add, R"({"a": "m"})"), "outputs.a"},
      {with(add, R"({"y": "m"})", R"({"z": {"dtype": "f32", "shape": [1]}})"), "inputs.z"},
      {with(add, R"({"y": "m"})", R"({"a": {"dtype": "f32", "shape": [1, 2]}})"), "stages[0]"},
      {with(R"({"id": "m", "model": "add.onnx", "inputs": {"c": "a"}})", R"({"y": "m"})"),
       "stages[0].inputs.c"},
      {with(R"({"id": "m", "model": "add.onnx", "inputs": {"a": "m.sum[low]"}})", R"({"y": "m"})"),
       "stages[0].inputs.a"},
      {with(R"({"id": "m", "model": "add.onnx", "inputs": {"a": "v"}})", R"({"y": "m"})",
            R"({"v": {"dtype": "f16", "shape": [1, 2]}})"),
       "stages[0].inputs.a"},
      {with(R"({"id": "a", "model": "add.onnx"})", R"({"y": "a"})"), "stages[0]"},
      {with(R"({"id": "q", "queue": "v", "samples": 2, "stack": 0})", R"({"y": "q"})"),
       "stages[0].queue"},
      {with(R"({"id": "q", "queue": "v", "samples": 2, "concat": 2})", R"({"y": "q"})",
            R"({"v": {"dtype": "f32", "shape": [1, 2]}})"),
       "stages[0].concat"},
      {with(R"({"id": "q", "queue": "v", "samples": 2, "stack": 0, "initial": 0.5})",
            R"({"y": "q"})", R"({"v": {"dtype": "u8", "shape": [1, 2]}})"),
       "stages[0].initial"},
      {with(R"({"id": "q", "queue": "v", "samples": 2, "stack": 0, "initial": 256})",
            R"({"y": "q"})", R"({"v": {"dtype": "u8", "shape": [1, 2]}})"),
       "stages[0].initial"},
      {with(R"({"id": "q", "queue": "v", "samples": 2, "stack": 0, "initial": 1e30})",
            R"({"y": "q"})", R"({"v": {"dtype": "f16", "shape": [1, 2]}})"),
       "stages[0].initial"},
      {with(R"({"id": "q", "queue": "r", "samples": 2, "stack": 0, "delay": 1},
               {"id": "r", "queue": "q", "samples": 2, "stack": 0, "delay": 1})",
            R"({"y": "q"})"),
       "stages[0].queue"},
  };
  for (const auto& [json, place] : mistakes) {
    const auto result = build(json);
    ASSERT_FALSE(result.has_value()) << json;
    EXPECT_EQ(result.error().exit, ExitCode::Malformed) << json;
    EXPECT_EQ(result.error().diagnostics.front().node, place) << json << "\n" << first_line(result);
  }
}

std::vector<std::string> warnings_of(const Result<PipelineResult>& result) {
  std::vector<std::string> lines;
  if (!result) return {first_line(result)};
  for (const Diagnostic& warning : result->warnings) lines.push_back(to_line(warning));
  return lines;
}

// "imgg" for "img": an input of the caller, and the queue and what fills it compute for nobody.
TEST(BuildPipeline, StagesThatNobodyReadsAreWarnedAbout) {
  const auto stages = [](const std::string& value) {
    return R"({"id": "first", "model": "slices.onnx"},
              {"id": "img", "queue": "first.outputs[low]", "samples": 1, "concat": 1},
              {"id": "second", "model": "add.onnx", "inputs": {"a": ")" +
           value + R"(", "b": "b"}})";
  };
  const std::string outputs = R"({"sum": "second.sum"})";
  EXPECT_TRUE(warnings_of(build(with(stages("img"), outputs))).empty());
  EXPECT_EQ(warnings_of(build(with(stages("imgg"), outputs))),
            (std::vector<std::string>{
                "p.json: warning: node 'stages[0]': the result of model 'first' reaches no output",
                "p.json: warning: node 'stages[1]': no stage and no output reads queue 'img'\n"
                "  hint: names that no stage has became inputs of the artifact: imgg"}));
}

TEST(BuildPipeline, ImportFailuresKeepTheirExitCode) {
  const auto result = build(with(
      R"({"id": "m", "model": "broken.onnx"},
         {"id": "q", "queue": "m.x", "samples": 2, "stack": 0},
         {"id": "n", "model": "add.onnx", "inputs": {"a": "q"}})",
      R"({"y": "n"})"));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().exit, ExitCode::Unsupported);
  EXPECT_EQ(result.error().diagnostics.size(), 1U) << "only the cause is reported";
}

TEST(PipelineOfModel, KeepsTheModelsNames) {
  const auto model = std::make_shared<const PipelineModel>(small_model("counter.onnx"));
  const auto pipeline = pipeline_of_model(model, {.path = "counter.onnx", .name = "counter"});
  ASSERT_TRUE(pipeline.has_value());
  const auto result = build_pipeline(*pipeline, {}, nullptr);
  ASSERT_TRUE(result.has_value()) << first_line(result);
  EXPECT_EQ(input_names(only_graph(result)), (std::vector<std::string>{"step", "count"}));
  Frames frames(only_graph(result));
  frames.run({{"step", floats({1}, {2})}});
  auto outputs = frames.run({{"step", floats({1}, {2})}});
  EXPECT_EQ(outputs["total"], Doubles{8});
  EXPECT_EQ(outputs["next_count"], Doubles{4});
}

TEST(PipelineOfModel, PutsAWarpInFront) {
  const auto model = std::make_shared<const PipelineModel>(small_model("image.onnx"));
  const auto pipeline =
      pipeline_of_model(model, {.path = "image.onnx", .name = "image", .warp = "road"});
  ASSERT_TRUE(pipeline.has_value());
  const auto result = build_pipeline(*pipeline, {tiny_camera("a", 64)}, nullptr);
  ASSERT_TRUE(result.has_value()) << first_line(result);
  EXPECT_EQ(input_names(only_graph(result)), (std::vector<std::string>{"frame", "tfm"}));

  EXPECT_EQ(build_pipeline(*pipeline, {}, nullptr).error().exit, ExitCode::Usage);

  const auto cabin =
      pipeline_of_model(model, {.path = "image.onnx", .name = "image", .warp = "cabin"});
  ASSERT_FALSE(cabin.has_value());
  EXPECT_EQ(cabin.error().diagnostics.front().code, "no-image-input");
}

}  // namespace
}  // namespace ingot
