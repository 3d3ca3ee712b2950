// Shapes, dimensions and values given on the command line.
#include <gtest/gtest.h>

#include "tests/onnx_frontend/model_writer.h"

namespace ingot {
namespace {

ModelWriter dynamic_model() {
  ModelWriter model;
  model.input("x", {"batch", 3, "height"}).input("z", {"batch", 3, "height"}).output("y");
  model.node("Add", {"x", "z"}, {"y"});
  return model;
}

TEST(BindInputs, ListsEveryOpenDimensionAtOnce) {
  const auto imported = dynamic_model().import();
  EXPECT_EQ(exit_of(imported), ExitCode::Unsupported);
  ASSERT_EQ(imported.error().diagnostics.size(), 4U) << problems(imported);
  EXPECT_EQ(imported.error().diagnostics[0].code, "open-dimension");
  EXPECT_NE(problems(imported).find("input 'x': dimension 0 ('batch') is not fixed"),
            std::string::npos);
  EXPECT_NE(problems(imported).find("--dim height=N"), std::string::npos);
}

TEST(BindInputs, ListsUnsupportedOperatorsBesideOpenDimensions) {
  ModelWriter model = dynamic_model();
  model.output("u");
  model.node("NoSuchOperator", {"x"}, {"u"}, "odd");
  const auto imported = model.import();
  EXPECT_TRUE(has_code(imported, "open-dimension"));
  EXPECT_TRUE(has_code(imported, "unsupported-operator"));
}

TEST(BindInputs, FixesNamesEverywhere) {
  ImportOptions options;
  options.dims = {{"batch", 2}, {"height", 5}};
  auto imported = dynamic_model().import(options);
  ASSERT_TRUE(imported) << problems(imported);
  EXPECT_EQ(imported->inputs[1].shape, (Shape{2, 3, 5}));
  EXPECT_EQ(imported->outputs[0].shape, (Shape{2, 3, 5}));

  // One shape fixes the names in it for all inputs.
  options = {};
  options.shapes["x"] = {1, 3, 7};
  imported = dynamic_model().import(options);
  ASSERT_TRUE(imported) << problems(imported);
  EXPECT_EQ(imported->inputs[1].shape, (Shape{1, 3, 7}));
}

TEST(BindInputs, RefusesContradictions) {
  const auto exit_with = [](auto set) {
    ImportOptions options;
    set(options);
    return exit_of(dynamic_model().import(options));
  };
  EXPECT_EQ(exit_with([](ImportOptions& o) { o.shapes["x"] = {1, 4, 7}; }), ExitCode::Usage);
  EXPECT_EQ(exit_with([](ImportOptions& o) { o.shapes["x"] = {1, 3}; }), ExitCode::Usage);
  EXPECT_EQ(exit_with([](ImportOptions& o) { o.shapes["x"] = {-1, 3, 7}; }), ExitCode::Usage);
  EXPECT_EQ(exit_with([](ImportOptions& o) { o.shapes["nobody"] = {1}; }), ExitCode::Usage);
  EXPECT_EQ(exit_with([](ImportOptions& o) { o.dims["nobody"] = 1; }), ExitCode::Usage);
  EXPECT_EQ(exit_with([](ImportOptions& o) {
              o.shapes["x"] = {1, 3, 7};
              o.shapes["z"] = {1, 3, 8};
            }),
            ExitCode::Usage);
  EXPECT_EQ(exit_with([](ImportOptions& o) {
              o.dims["batch"] = 2;
              o.shapes["x"] = {1, 3, 7};
            }),
            ExitCode::Usage);
  EXPECT_EQ(exit_with([](ImportOptions& o) {
              o.binds["x"] =
                  Tensor::of_ints(DType::I64, {1, 3, 1}, std::vector<std::int64_t>{1, 2, 3});
            }),
            ExitCode::Usage);
}

TEST(BindInputs, NeedsShapesOfUnknownRank) {
  ModelWriter model;
  model.output("y");
  auto* x = model.proto.mutable_graph()->add_input();
  x->set_name("x");
  x->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  model.node("Relu", {"x"}, {"y"});
  EXPECT_TRUE(has_code(model.import(), "open-dimension"));
  ImportOptions options;
  options.shapes["x"] = {4};
  EXPECT_TRUE(model.import(options));
}

TEST(BindInputs, MakesBoundInputsConstants) {
  ModelWriter model;
  model.input("x", {6}).input("shape", {2}, onnx::TensorProto::INT64).output("y");
  model.node("Reshape", {"x", "shape"}, {"y"});
  const auto open = model.import();
  EXPECT_TRUE(has_code(open, "value-not-known")) << problems(open);
  ImportOptions options;
  options.binds["shape"] = Tensor::of_ints(DType::I64, {2}, std::vector<std::int64_t>{2, -1});
  const auto imported = model.import(options);
  ASSERT_TRUE(imported) << problems(imported);
  EXPECT_EQ(imported->inputs.size(), 1U);
  EXPECT_EQ(imported->outputs[0].shape, (Shape{2, 3}));
}

// Before IR version 4 every initializer had to be an input too.
TEST(BindInputs, TakesInitializersAsConstants) {
  for (const std::int64_t ir : {3, 8}) {
    ModelWriter model(9, ir);
    model.input("x", {2}).input("w", {2}).output("y");
    model.floats("w", {2}, {1, 2});
    model.node("Add", {"x", "w"}, {"y"});
    const auto imported = model.import();
    ASSERT_TRUE(imported) << problems(imported);
    EXPECT_EQ(imported->inputs.size(), 1U);
    EXPECT_EQ(imported->warnings.size(), ir == 3 ? 0U : 1U);
  }
}

TEST(BindInputs, ManyDefaultsAreOneWarning) {
  ModelWriter model(9, 8);
  model.input("x", {2}).output("y5");
  std::string last = "x";
  for (const char* number : {"1", "2", "3", "4", "5"}) {
    const std::string weight = std::string("w") + number;
    const std::string next = std::string("y") + number;
    model.input(weight, {2});
    model.floats(weight, {2}, {1, 2});
    model.node("Add", {last, weight}, {next});
    last = next;
  }
  const auto imported = model.import();
  ASSERT_TRUE(imported) << problems(imported);
  ASSERT_EQ(imported->warnings.size(), 1U);
  EXPECT_EQ(imported->warnings[0].message,
            "5 inputs have default values and became constants: 'w1', 'w2', 'w3' ...");
}

TEST(BindInputs, RefusesInputsThatAreNoTensorsOfItsTypes) {
  ModelWriter model;
  model.input("x", {2}, onnx::TensorProto::STRING).output("y", onnx::TensorProto::STRING);
  model.node("Identity", {"x"}, {"y"});
  EXPECT_TRUE(has_code(model.import(), "unsupported-type"));
  ModelWriter sequence;
  sequence.output("y");
  auto* x = sequence.proto.mutable_graph()->add_input();
  x->set_name("x");
  x->mutable_type()
      ->mutable_sequence_type()
      ->mutable_elem_type()
      ->mutable_tensor_type()
      ->set_elem_type(1);
  sequence.node("Identity", {"x"}, {"y"});
  EXPECT_TRUE(has_code(sequence.import(), "unsupported-type"));
}

}  // namespace
}  // namespace ingot
