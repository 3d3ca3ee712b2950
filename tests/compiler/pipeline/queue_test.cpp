#include "compiler/pipeline/queue.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/compiler/camera/warp_vectors.h"
#include "tests/support/graph_interpreter.h"

namespace ingot {
namespace {

// Runs a queue frame by frame, carrying its state by hand.
class QueueRun {
 public:
  QueueRun(const QueueStage& queue, DType dtype, const Shape& entry) {
    GraphBuilder builder("queue");
    const ValueId value = builder.input("value", dtype, entry);
    std::optional<ValueId> newest;
    if (queue.delay == 0) newest = value;
    const Queue sampled = sample_queue(builder, queue, "history", dtype, entry, newest);
    append_to_queue(builder, queue, sampled, value);
    builder.output("samples", sampled.samples);
    graph_ = builder.take();
  }

  Tensor frame(const Tensor& value) {
    NamedTensors inputs = state_;
    inputs["value"] = value;
    const GraphRun run = interpret_graph(graph_, inputs);
    for (const GraphState& state : graph_.states) state_["history"] = run[state.next];
    return run[graph_.outputs.front().value];
  }
  [[nodiscard]] const Graph& graph() const { return graph_; }

 private:
  Graph graph_;
  NamedTensors state_;
};

TEST(Queue, LengthsAreThoseOfTheFormula) {
  EXPECT_EQ(queue_length({.value = "v", .samples = 2, .stride = 4}), 5);
  EXPECT_EQ(queue_length({.value = "v", .samples = 25, .stride = 4, .pool_max = true}), 100);
  EXPECT_EQ(queue_length({.value = "v", .samples = 24, .stride = 4, .delay = 3}), 96);
}

TEST(Queue, StartsFromItsInitialValue) {
  const QueueStage queue{.value = "v", .samples = 3, .stack = true, .axis = 0, .initial = 7};
  QueueRun run(queue, DType::U8, {2});
  const std::vector<std::int64_t> value = {1, 2};
  EXPECT_EQ(ints(run.frame(Tensor::of_ints(DType::U8, {2}, value))),
            (std::vector<std::int64_t>{7, 7, 7, 7, 1, 2}));
}

TEST(Queue, OneSampleWithoutDelayRemembersNothing) {
  const QueueStage queue{.value = "v", .samples = 1, .stack = true, .axis = 1};
  QueueRun run(queue, DType::F32, {2});
  EXPECT_TRUE(run.graph().states.empty());
  const std::vector<std::int64_t> value = {3, 4};
  const Tensor samples = run.frame(Tensor::of_ints(DType::F32, {2}, value));
  EXPECT_EQ(samples.shape, (Shape{2, 1}));
  EXPECT_EQ(doubles(samples), (std::vector<double>{3, 4}));
}

TEST(Queue, StackPutsTheSamplesWhereAsked) {
  for (int axis = 0; axis <= 2; ++axis) {
    const QueueStage queue{.value = "v", .samples = 3, .stack = true, .axis = axis};
    QueueRun run(queue, DType::I32, {2, 2});
    Tensor samples;
    for (std::int64_t t = 1; t <= 3; ++t) {
      const std::vector<std::int64_t> value = {10 * t, 10 * t + 1, 10 * t + 2, 10 * t + 3};
      samples = run.frame(Tensor::of_ints(DType::I32, {2, 2}, value));
    }
    Shape shape = {2, 2};
    shape.insert(shape.begin() + axis, 3);
    ASSERT_EQ(samples.shape, shape);
    const auto strides = row_major_strides(shape);
    for (std::int64_t s = 0; s < 3; ++s) {
      for (std::int64_t e = 0; e < 4; ++e) {
        std::vector<std::int64_t> place = {e / 2, e % 2};
        place.insert(place.begin() + axis, s);
        std::int64_t flat = 0;
        for (std::size_t d = 0; d < 3; ++d) flat += place[d] * strides[d];
        EXPECT_EQ(samples.at(flat).as_int(), 10 * (s + 1) + e);
      }
    }
  }
}

TEST(Queue, GoldenHistory) {
  const auto shared = shared_folder();
  if (!shared) {
    const char* ci = std::getenv("CI");
    ASSERT_FALSE(ci != nullptr && std::string(ci) == "true") << "no shared data to compare with";
    GTEST_SKIP() << "no shared data: set INGOT_SHARED to its folder";
  }
  const auto json = nlohmann::json::parse(read_text(*shared / "golden" / "history" / "cases.json"));
  std::size_t frames = 0;
  for (const auto& test : json.at("cases")) {
    const std::string id = test.at("id");
    const auto shape = test.at("shape").get<Shape>();
    const auto axis = test.at("axis").get<std::size_t>();
    Shape entry = shape;
    entry[axis] = test.at("size");
    const QueueStage queue{.value = "v",
                           .samples = shape[axis] / entry[axis],
                           .stride = test.at("stride"),
                           .delay = test.at("delay"),
                           .pool_max = test.at("reduce") == "max",
                           .axis = static_cast<int>(axis)};
    EXPECT_EQ(queue_length(queue), test.at("queue_length")) << id;
    QueueRun run(queue, DType::F32, entry);
    const auto& values = test.at("values");
    for (std::size_t t = 0; t < values.size(); ++t, ++frames) {
      const auto value = values.at(t).get<std::vector<double>>();
      const Tensor samples = run.frame(Tensor::of_floats(DType::F32, entry, value));
      ASSERT_EQ(samples.shape, shape) << id;
      ASSERT_EQ(doubles(samples), test.at("outputs").at(t).get<std::vector<double>>())
          << id << " frame " << t;
    }
  }
  EXPECT_GT(frames, 500U);
}

}  // namespace
}  // namespace ingot
