// Forms of operators that ONNX's suite does not have: older opsets, special values, refusals.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/onnx_frontend/model_writer.h"
#include "tests/support/graph_interpreter.h"

namespace ingot {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

using Values = std::vector<double>;

// A model of one node. Inputs are given at run time, constants stand in the model.
class OneNode {
 public:
  OneNode(std::int64_t opset, const std::string& op, std::size_t outputs = 1)
      : model_(opset, opset < 9 ? 3 : 8) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < outputs; ++i) names.push_back("y" + std::to_string(i));
    node_ = &model_.node(op, {}, names, "n");
  }

  OneNode& input(const Shape& shape, const Values& values, DType dtype = DType::F32) {
    const std::string name = "x" + std::to_string(node_->input_size());
    node_->add_input(name);
    model_.input(name, std::vector<TestDim>(shape.begin(), shape.end()), code(dtype));
    inputs_[name] = Tensor::of_floats(DType::F64, shape, values);
    if (dtype == DType::F32) inputs_[name] = Tensor::of_floats(dtype, shape, values);
    if (!is_float(dtype)) {
      const std::vector<std::int64_t> numbers(values.begin(), values.end());
      inputs_[name] = Tensor::of_ints(dtype, shape, numbers);
    }
    return *this;
  }
  // A constant of i64, as shapes and axes are.
  OneNode& constant(const std::vector<std::int64_t>& values) {
    const std::string name = "x" + std::to_string(node_->input_size());
    node_->add_input(name);
    model_.ints(name, {static_cast<std::int64_t>(values.size())}, values);
    return *this;
  }
  OneNode& no_input() {
    node_->add_input("");
    return *this;
  }
  onnx::NodeProto& node() { return *node_; }

  Result<ImportedModel> import() {
    model_.proto.mutable_graph()->clear_output();
    for (const std::string& name : node_->output()) {
      model_.proto.mutable_graph()->add_output()->set_name(name);
    }
    return model_.import();
  }
  NamedTensors run() {
    const auto imported = import();
    if (!imported) {
      ADD_FAILURE() << problems(imported);
      return {};
    }
    return interpret_outputs(imported->graph, inputs_);
  }
  Values values() {
    const NamedTensors outputs = run();
    return outputs.empty() ? Values() : doubles(outputs.at("y0"));
  }
  Shape shape() {
    const NamedTensors outputs = run();
    return outputs.empty() ? Shape() : outputs.at("y0").shape;
  }

 private:
  static int code(DType dtype) {
    switch (dtype) {
      case DType::F32: return onnx::TensorProto::FLOAT;
      case DType::I32: return onnx::TensorProto::INT32;
      case DType::I64: return onnx::TensorProto::INT64;
      case DType::Bool: return onnx::TensorProto::BOOL;
      default: return onnx::TensorProto::DOUBLE;
    }
  }

  ModelWriter model_;
  onnx::NodeProto* node_;
  NamedTensors inputs_;
};

void expect_values(const Values& got, const Values& want, double tolerance = 0) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << i << ": " << got[i];
    } else if (std::isinf(want[i])) {
      EXPECT_EQ(got[i], want[i]) << i;
    } else {
      EXPECT_LE(std::abs(got[i] - want[i]), tolerance * std::max(1.0, std::abs(want[i])))
          << i << ": " << got[i] << " instead of " << want[i];
    }
  }
}

// --- elementwise

TEST(Elementwise, KeepsNan) {
  expect_values(OneNode(14, "Relu").input({3}, {nan, -1, 2}).values(), {nan, 0, 2});
  OneNode clip(6, "Clip");
  set_float(clip.node(), "min", -1);
  set_float(clip.node(), "max", 1);
  expect_values(clip.input({3}, {nan, -inf, inf}).values(), {nan, -1, 1});
  expect_values(OneNode(13, "Max").input({2}, {nan, 1}).input({2}, {1, 2}).values(), {nan, 2});
}

TEST(Elementwise, ClipsFirstBelowThenAbove) {
  OneNode clip(13, "Clip");
  clip.input({3}, {-5, 0, 5}).input({}, {3}).input({}, {1});
  expect_values(clip.values(), {1, 1, 1});
  OneNode only_max(13, "Clip");
  only_max.input({2}, {-5, 5}).no_input().input({}, {1});
  expect_values(only_max.values(), {-5, 1});
}

TEST(Elementwise, DividesIntegersTowardZero) {
  OneNode div(13, "Div");
  div.input({4}, {7, -7, 7, -7}, DType::I32).input({4}, {2, 2, -2, -2}, DType::I32);
  expect_values(div.values(), {3, -3, -3, 3});
}

TEST(Elementwise, BroadcastsByAttributesBeforeOpset7) {
  OneNode add(6, "Add");
  set_int(add.node(), "broadcast", 1);
  set_int(add.node(), "axis", 0);
  add.input({2, 3}, {0, 0, 0, 0, 0, 0}).input({2}, {1, 2});
  expect_values(add.values(), {1, 1, 1, 2, 2, 2});

  OneNode suffix(6, "Add");
  set_int(suffix.node(), "broadcast", 1);
  suffix.input({2, 3}, {0, 0, 0, 0, 0, 0}).input({3}, {1, 2, 3});
  expect_values(suffix.values(), {1, 2, 3, 1, 2, 3});

  OneNode none(6, "Add");
  none.input({2, 3}, {0, 0, 0, 0, 0, 0}).input({3}, {1, 2, 3});
  EXPECT_EQ(exit_of(none.import()), ExitCode::Malformed);
}

TEST(Elementwise, RaisesToConstantPowers) {
  const auto power = [](double exponent, const Values& x) {
    ModelWriter model(13);
    model.input("x", {static_cast<std::int64_t>(x.size())}).output("y");
    model.floats("e", {}, {static_cast<float>(exponent)});
    model.node("Pow", {"x", "e"}, {"y"});
    const auto imported = model.import();
    if (!imported) return Values{};
    const Tensor input = Tensor::of_floats(DType::F32, {static_cast<std::int64_t>(x.size())}, x);
    return doubles(interpret_outputs(imported->graph, {{"x", input}}).at("y"));
  };
  expect_values(power(2, {-3, 0, nan, inf}), {9, 0, nan, inf});
  expect_values(power(3, {-2}), {-8});
  expect_values(power(0, {nan, inf, 0}), {1, 1, 1});
  expect_values(power(-1, {4, 0}), {0.25, inf});
  expect_values(power(0.5, {4, -inf, -1, 0, nan}), {2, inf, nan, 0, nan});
  EXPECT_FALSE(std::signbit(power(0.5, {-0.0}).at(0)));
  expect_values(power(-0.5, {4, 0}), {0.5, inf}, 1e-6);
  expect_values(power(2.5, {2, 0, -1, inf}), {std::pow(2, 2.5), 0, nan, inf}, 1e-6);
}

TEST(Elementwise, RaisesToPowersKnownAtRunTime) {
  const Values x = {2, -2, -2, 0, 0, 0, 1, nan, -1, inf, -inf, -inf, -8, 0.5, -0.0, 3};
  const Values y = {3, 3, 2, 0, 2, -1, nan, 0, inf, -1, 3, 2, 1.5, inf, -3, 2.5};
  Values want;
  for (std::size_t i = 0; i < x.size(); ++i) want.push_back(std::pow(x[i], y[i]));
  const auto size = static_cast<std::int64_t>(x.size());
  expect_values(OneNode(13, "Pow").input({size}, x).input({size}, y).values(), want, 1e-6);
}

TEST(Elementwise, LimitsSlopesByChannelBeforeOpset7) {
  OneNode prelu(6, "PRelu");
  prelu.input({1, 2, 2}, {-1, 1, -1, 1}).input({2}, {0.5, 0.25});
  expect_values(prelu.values(), {-0.5, 1, -0.25, 1});
}

TEST(Elementwise, DropsNothingOutsideTraining) {
  OneNode test_mode(6, "Dropout");
  set_int(test_mode.node(), "is_test", 1);
  expect_values(test_mode.input({2}, {1, 2}).values(), {1, 2});
  EXPECT_EQ(exit_of(OneNode(6, "Dropout").input({2}, {1, 2}).import()), ExitCode::Unsupported);
}

// --- view

TEST(View, TakesAxesFromAttributesAndInputs) {
  OneNode old_squeeze(11, "Squeeze");
  set_ints(old_squeeze.node(), "axes", {-2});
  EXPECT_EQ(old_squeeze.input({2, 1, 1}, {1, 2}).shape(), (Shape{2, 1}));
  EXPECT_EQ(OneNode(13, "Squeeze").input({2, 1, 1}, {1, 2}).constant({-2}).shape(), (Shape{2, 1}));
  EXPECT_EQ(OneNode(13, "Squeeze").input({2, 1, 1}, {1, 2}).shape(), (Shape{2}));
  OneNode old_unsqueeze(11, "Unsqueeze");
  set_ints(old_unsqueeze.node(), "axes", {0, 3});
  EXPECT_EQ(old_unsqueeze.input({2, 1}, {1, 2}).shape(), (Shape{1, 2, 1, 1}));
  OneNode mixed(13, "Squeeze");
  set_ints(mixed.node(), "axes", {1});
  EXPECT_TRUE(has_code(mixed.input({2, 1}, {1, 2}).import(), "unsupported-attribute"));
}

TEST(View, SlicesLikePython) {
  const Values x = {0, 1, 2, 3, 4};
  const auto slice = [&](std::int64_t start, std::int64_t end, std::int64_t step) {
    return OneNode(13, "Slice")
        .input({5}, x)
        .constant({start})
        .constant({end})
        .constant({0})
        .constant({step})
        .values();
  };
  constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max();
  expect_values(slice(1, far, 2), {1, 3});
  expect_values(slice(-1, -far - 1, -2), {4, 2, 0});
  expect_values(slice(4, -6, -1), {4, 3, 2, 1, 0});
  expect_values(slice(3, 1, 1), {});
  expect_values(slice(0, 5, far), {0});
  expect_values(slice(4, -far - 1, -far - 1), {4});
  OneNode old(9, "Slice");
  set_ints(old.node(), "starts", {-3});
  set_ints(old.node(), "ends", {-1});
  expect_values(old.input({5}, x).values(), {2, 3});
}

TEST(View, ReshapesByItsRules) {
  const Values x = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(OneNode(13, "Reshape").input({2, 3}, x).constant({0, -1, 1}).shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(exit_of(OneNode(13, "Reshape").input({2, 3}, x).constant({4, -1}).import()),
            ExitCode::Malformed);
  EXPECT_EQ(exit_of(OneNode(13, "Reshape").input({2, 3}, x).constant({-1, -1}).import()),
            ExitCode::Malformed);
  EXPECT_EQ(exit_of(OneNode(13, "Reshape").input({2, 3}, x).constant({5}).import()),
            ExitCode::Malformed);
}

TEST(View, PadsByAttributesBeforeOpset11) {
  OneNode pad(2, "Pad");
  set_ints(pad.node(), "pads", {1, -1});
  set_float(pad.node(), "value", 7);
  expect_values(pad.input({3}, {1, 2, 3}).values(), {7, 1, 2});
  OneNode reflect(2, "Pad");
  set_text(reflect.node(), "mode", "reflect");
  set_ints(reflect.node(), "pads", {2, 1});
  expect_values(reflect.input({3}, {1, 2, 3}).values(), {3, 2, 1, 2, 3, 2});
}

TEST(View, CannotReshapeToValuesOfRunTime) {
  OneNode reshape(13, "Reshape");
  reshape.input({4}, {1, 2, 3, 4}).input({2}, {2, 2}, DType::I64);
  EXPECT_TRUE(has_code(reshape.import(), "value-not-known"));
}

// --- gather

TEST(Gather, CountsFromTheEndAndRefusesWhatIsOutside) {
  const Values x = {10, 20, 30};
  expect_values(OneNode(13, "Gather").input({3}, x).constant({-1, 0}).values(), {30, 10});
  expect_values(OneNode(13, "Gather").input({3}, x).input({2}, {-3, 2}, DType::I64).values(),
                {10, 30});
  EXPECT_EQ(exit_of(OneNode(13, "Gather").input({3}, x).constant({3}).import()),
            ExitCode::Malformed);
  EXPECT_EQ(exit_of(OneNode(13, "Gather").input({3}, x).constant({-4}).import()),
            ExitCode::Malformed);
}

TEST(Gather, ReportsIndicesOutsideAtRunTime) {
  OneNode elements(13, "GatherElements");
  set_int(elements.node(), "axis", 1);
  elements.input({2, 2}, {1, 2, 3, 4}).input({2, 1}, {2, 0}, DType::I64);
  const auto imported = elements.import();
  ASSERT_TRUE(imported) << problems(imported);
  const double data[] = {1, 2, 3, 4};
  const std::int64_t bad[] = {2, 0};
  const std::int64_t good[] = {-1, 0};
  NamedTensors inputs = {{"x0", Tensor::of_floats(DType::F32, {2, 2}, data)},
                         {"x1", Tensor::of_ints(DType::I64, {2, 1}, bad)}};
  EXPECT_TRUE(interpret_graph(imported->graph, inputs).index_clamped);
  inputs["x1"] = Tensor::of_ints(DType::I64, {2, 1}, good);
  EXPECT_FALSE(interpret_graph(imported->graph, inputs).index_clamped);
}

// --- softmax

TEST(Softmax, FlattensBeforeOpset13) {
  const Values x = {0, 0, 0, 0, 0, 0};
  expect_values(OneNode(11, "Softmax").input({1, 2, 3}, x).values(), Values(6, 1.0 / 6), 1e-6);
  expect_values(OneNode(13, "Softmax").input({1, 2, 3}, x).values(), Values(6, 1.0 / 3), 1e-6);
  expect_values(OneNode(13, "Softmax").input({2}, {1000, 1000}).values(), {0.5, 0.5}, 1e-6);
}

// --- reduce

TEST(Reduce, HandlesEmptyAxesAsTheOpsetSays) {
  const Values x = {1, 2, 3, 4};
  expect_values(OneNode(11, "ReduceSum").input({2, 2}, x).values(), {10});
  OneNode nothing(13, "ReduceSum");
  set_int(nothing.node(), "noop_with_empty_axes", 1);
  expect_values(nothing.input({2, 2}, x).values(), x);
  OneNode last(11, "ReduceMean");
  set_ints(last.node(), "axes", {-1});
  set_int(last.node(), "keepdims", 0);
  expect_values(last.input({2, 2}, x).values(), {1.5, 3.5});
}

TEST(Reduce, FindsExtremesWithNan) {
  expect_values(OneNode(13, "ArgMax").input({3}, {1, nan, 5}).values(), {1});
  OneNode last(13, "ArgMax");
  set_int(last.node(), "select_last_index", 1);
  expect_values(last.input({3}, {5, 5, 1}).values(), {1});
  expect_values(OneNode(13, "ReduceLogSumExp").input({2}, {-inf, -inf}).values(), {-inf});
  expect_values(OneNode(13, "ReduceLogSumExp").input({2}, {1000, 1000}).values(),
                {1000 + std::log(2)}, 1e-6);
}

// --- convolution and pools

// 7x7, stride 2, two outputs for each of three channels, as driving models begin.
TEST(Conv, GroupsWithTwoOutputsPerChannel) {
  const Shape x_shape = {1, 3, 9, 9};
  const Shape w_shape = {6, 1, 7, 7};
  Values x, w;
  for (int i = 0; i < 3 * 81; ++i) x.push_back(i * 37 % 11 - 5);
  for (int i = 0; i < 6 * 49; ++i) w.push_back(i * 13 % 7 - 3);
  Values want;
  for (int o = 0; o < 6; ++o) {
    for (int y = 0; y < 5; ++y) {
      for (int column = 0; column < 5; ++column) {
        double sum = 0;
        for (int k = 0; k < 49; ++k) {
          const int row = y * 2 + k / 7 - 3;
          const int place = column * 2 + k % 7 - 3;
          if (row < 0 || row >= 9 || place < 0 || place >= 9) continue;
          sum += x[static_cast<std::size_t>(o / 2 * 81 + row * 9 + place)] *
                 w[static_cast<std::size_t>(o * 49 + k)];
        }
        want.push_back(sum);
      }
    }
  }
  OneNode conv(13, "Conv");
  set_int(conv.node(), "group", 3);
  set_ints(conv.node(), "strides", {2, 2});
  set_ints(conv.node(), "pads", {3, 3, 3, 3});
  set_ints(conv.node(), "kernel_shape", {7, 7});
  conv.input(x_shape, x).input(w_shape, w);
  expect_values(conv.values(), want);
}

TEST(Conv, ComputesPaddingByItself) {
  OneNode upper(13, "Conv");
  set_text(upper.node(), "auto_pad", "SAME_UPPER");
  upper.input({1, 1, 3}, {1, 2, 3}).input({1, 1, 2}, {1, 10});
  expect_values(upper.values(), {21, 32, 3});
  OneNode lower(13, "Conv");
  set_text(lower.node(), "auto_pad", "SAME_LOWER");
  lower.input({1, 1, 3}, {1, 2, 3}).input({1, 1, 2}, {1, 10});
  expect_values(lower.values(), {10, 21, 32});
}

TEST(Conv, RefusesWeightsThatDoNotFit) {
  OneNode channels(13, "Conv");
  channels.input({1, 2, 3}, Values(6)).input({1, 1, 2}, {1, 1});
  EXPECT_EQ(exit_of(channels.import()), ExitCode::Malformed);
  OneNode large(13, "Conv");
  large.input({1, 1, 3}, Values(3)).input({1, 1, 5}, Values(5));
  EXPECT_EQ(exit_of(large.import()), ExitCode::Malformed);
}

TEST(Pool, CountsPaddingIfAsked) {
  const auto average = [](std::int64_t include) {
    OneNode pool(11, "AveragePool");
    set_ints(pool.node(), "kernel_shape", {3});
    set_ints(pool.node(), "pads", {1, 1});
    set_int(pool.node(), "count_include_pad", include);
    return pool.input({1, 1, 3}, {3, 6, 9}).values();
  };
  expect_values(average(0), {4.5, 6, 7.5});
  expect_values(average(1), {3, 6, 5});
}

TEST(Pool, RoundsUpWithoutCountingWhatIsBeyond) {
  OneNode pool(11, "AveragePool");
  set_ints(pool.node(), "kernel_shape", {3});
  set_ints(pool.node(), "strides", {2});
  set_int(pool.node(), "ceil_mode", 1);
  set_int(pool.node(), "count_include_pad", 1);
  expect_values(pool.input({1, 1, 4}, {1, 2, 3, 4}).values(), {2, 3.5});
  OneNode none(11, "MaxPool");
  set_ints(none.node(), "kernel_shape", {1});
  set_ints(none.node(), "strides", {2});
  set_int(none.node(), "ceil_mode", 1);
  expect_values(none.input({1, 1, 4}, {1, 2, 3, 4}).values(), {1, 3});
}

// --- resize

TEST(Resize, DoublesInItsOlderForms) {
  OneNode upsample(7, "Upsample");
  onnx::AttributeProto* scales = upsample.node().add_attribute();
  scales->set_name("scales");
  scales->set_type(onnx::AttributeProto::FLOATS);
  scales->add_floats(1);
  scales->add_floats(2);
  expect_values(upsample.input({1, 2}, {1, 2}).values(), {1, 1, 2, 2});
  OneNode gone(10, "Upsample");
  EXPECT_EQ(exit_of(gone.input({1, 2}, {1, 2}).import()), ExitCode::Malformed);
}

}  // namespace
}  // namespace ingot
