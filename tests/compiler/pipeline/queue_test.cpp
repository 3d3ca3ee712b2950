#include "compiler/pipeline/queue.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "compiler/interpreter_runner.h"
#include "compiler/plan/plan.h"
#include "compiler/program/build_program.h"
#include "compiler/program/run_program.h"
#include "compiler/reference.h"
#include "compiler/target/target.h"
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
    state_ = next_states(graph_, run);
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

// A queue that moves its history, for entries of integers.
class ShiftedQueue {
 public:
  ShiftedQueue(const QueueStage& queue, std::int64_t size)
      : queue_(queue),
        history_(static_cast<std::size_t>(queue_length(queue)),
                 std::vector<std::int64_t>(static_cast<std::size_t>(size),
                                           static_cast<std::int64_t>(queue.initial))) {}

  // All samples, one after the other.
  std::vector<std::int64_t> frame(const std::vector<std::int64_t>& value) {
    history_.erase(history_.begin());
    history_.push_back(value);
    std::vector<std::int64_t> samples;
    for (std::int64_t s = 0; s < queue_.samples; ++s) {
      auto sample = history_[static_cast<std::size_t>(s * queue_.stride)];
      for (std::int64_t k = 1; queue_.pool_max && k < queue_.stride; ++k) {
        const auto& other = history_[static_cast<std::size_t>(s * queue_.stride + k)];
        for (std::size_t e = 0; e < sample.size(); ++e) sample[e] = std::max(sample[e], other[e]);
      }
      samples.insert(samples.end(), sample.begin(), sample.end());
    }
    return samples;
  }

 private:
  const QueueStage& queue_;
  std::vector<std::vector<std::int64_t>> history_;
};

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  return {tensor.bytes.begin(), tensor.bytes.end()};
}

void expect_shifted_samples(const QueueStage& queue, const Target& target, bool optimize) {
  constexpr std::int64_t kSize = 21;
  const QueueRun run(queue, DType::U8, {kSize});
  const auto plan = make_plan(run.graph(), target, PlanOptions{optimize, optimize});
  ASSERT_TRUE(plan && validate_plan(*plan));
  BuildOptions options;
  options.schedule = optimize;
  const auto program = build_program(*plan, target, options);
  ASSERT_TRUE(program && validate_program(*program) && check_overlap(*program));
  InterpreterRunner runner;
  ShiftedQueue shifted(queue, kSize);
  std::vector<std::vector<std::byte>> states;
  for (const GraphState& state : run.graph().states) {
    states.push_back(initial_state(run.graph(), state));
  }
  for (std::int64_t t = 0; t < 3 * queue_length(queue); ++t) {
    std::vector<std::int64_t> value;
    for (std::int64_t e = 0; e < kSize; ++e) value.push_back((t * 37 + e * 11 + t * t) % 251);
    const std::vector<std::vector<std::byte>> inputs = {
        bytes_of(Tensor::of_ints(DType::U8, {kSize}, value))};
    auto result = run_program(*program, inputs, states, runner);
    ASSERT_TRUE(result) << to_line(result.error().diagnostics.front());
    std::vector<std::int64_t> samples;
    for (const std::byte byte : result->outputs.front()) {
      samples.push_back(std::to_integer<std::int64_t>(byte));
    }
    ASSERT_EQ(samples, shifted.frame(value)) << target.name << " frame " << t;
    states = std::move(result->next_states);
  }
}

TEST(Queue, ProgramsGiveWhatAShiftedHistoryGives) {
  const QueueStage queues[] = {
      {.value = "v", .samples = 2, .stride = 4, .stack = true},
      {.value = "v", .samples = 1, .stride = 1, .delay = 1, .stack = true, .initial = 9},
      {.value = "v", .samples = 3, .stride = 2, .delay = 2, .initial = 4},
      {.value = "v", .samples = 3, .stride = 4, .pool_max = true, .stack = true},
      {.value = "v", .samples = 2, .stride = 1, .pool_max = true, .initial = 200},
      {.value = "v", .samples = 2, .stride = 3, .delay = 1, .pool_max = true, .stack = true},
  };
  for (const QueueStage& queue : queues) {
    for (const Target& target : known_targets()) {
      for (const bool optimize : {false, true}) expect_shifted_samples(queue, target, optimize);
      if (HasFatalFailure()) return;
    }
  }
}

// Whatever a state holds, code stays inside the ring; the interpreter checks every access.
TEST(Queue, NoPlaceLeadsOutside) {
  const QueueStage queue{.value = "v", .samples = 2, .stride = 2, .stack = true};
  const QueueRun run(queue, DType::U8, {40});
  for (const bool optimize : {false, true}) {
    const auto plan = make_plan(run.graph(), default_target(), PlanOptions{optimize, optimize});
    BuildOptions options;
    options.schedule = optimize;
    const auto program = build_program(*plan, default_target(), options);
    ASSERT_TRUE(program);
    InterpreterRunner runner;
    const std::vector<std::vector<std::byte>> inputs = {std::vector<std::byte>(40)};
    for (const std::int64_t place :
         {std::int64_t{-1}, std::int64_t{3}, std::numeric_limits<std::int64_t>::min(),
          std::numeric_limits<std::int64_t>::max()}) {
      const std::vector<std::vector<std::byte>> states = {
          std::vector<std::byte>(120), bytes_of(Tensor::of_ints(DType::I64, {1}, {&place, 1}))};
      const auto result = run_program(*program, inputs, states, runner);
      EXPECT_TRUE(result) << to_line(result.error().diagnostics.front());
    }
  }
}

}  // namespace
}  // namespace ingot
