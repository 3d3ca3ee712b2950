// Rules of the graph as a whole; single operators are in import_families_test.cpp.
#include "onnx_frontend/import_graph.h"

#include <gtest/gtest.h>

#include "onnx_frontend/operator_table.h"
#include "tests/onnx_frontend/model_writer.h"
#include "tests/support/graph_interpreter.h"

namespace ingot {
namespace {

ModelWriter relu_model() {
  ModelWriter model;
  model.input("x", {2, 3}).output("y");
  model.node("Relu", {"x"}, {"y"}, "act");
  return model;
}

TEST(ImportGraph, KeepsNamesAndSources) {
  ModelWriter model;
  model.input("a b:0", {2}).output("out/1");
  model.node("Exp", {"a b:0"}, {"out/1"}, "layer/exp");
  const auto imported = model.import();
  ASSERT_TRUE(imported) << problems(imported);
  EXPECT_EQ(imported->inputs[0].name, "a b:0");
  EXPECT_EQ(imported->graph.outputs[0].name, "out/1");
  EXPECT_EQ(imported->graph[imported->graph.outputs[0].value].source, "layer/exp");
  EXPECT_EQ(imported->opset, 17);
  EXPECT_EQ(imported->graph_name, "g");
  EXPECT_EQ(imported->sources.size(), 1U);
}

TEST(ImportGraph, ReportsEverythingUnsupportedInOneRun) {
  ModelWriter model(13);
  model.input("x", {1, 2, 8, 8}).output("y");
  model.node("NoSuchOperator", {"x"}, {"a"}, "first");
  // Its input is declared, so this node is looked at although `first` failed.
  auto* value = model.proto.mutable_graph()->add_value_info();
  value->set_name("a");
  auto* type = value->mutable_type()->mutable_tensor_type();
  type->set_elem_type(1);
  for (const std::int64_t dim : {1, 2, 8, 8}) type->mutable_shape()->add_dim()->set_dim_value(dim);
  set_int(model.node("Relu", {"a"}, {"b"}, "second"), "strange", 1);
  set_text(model.node("MaxPool", {"b"}, {"c"}, "third"), "auto_pad", "SOMETIMES");
  model.node("AnotherOne", {"c"}, {"y"}, "fourth");
  const auto imported = model.import();
  EXPECT_EQ(exit_of(imported), ExitCode::Unsupported) << problems(imported);
  const std::string text = problems(imported);
  EXPECT_NE(text.find("node 'first' (NoSuchOperator, opset 13)"), std::string::npos) << text;
  EXPECT_NE(text.find("node 'second' (Relu, opset 13): attribute 'strange'"), std::string::npos)
      << text;
  EXPECT_NE(text.find("node 'fourth' (AnotherOne, opset 13)"), std::string::npos) << text;
  EXPECT_NE(text.find("hint:"), std::string::npos);
}

TEST(ImportGraph, RefusesBrokenGraphs) {
  const auto broken = [](auto change) {
    ModelWriter model = relu_model();
    change(model);
    const auto imported = model.import();
    EXPECT_EQ(exit_of(imported), ExitCode::Malformed) << problems(imported);
    return problems(imported);
  };
  EXPECT_NE(broken([](ModelWriter& m) {
              m.node("Exp", {"x"}, {"y"}, "again");
            }).find("node 'again' (Exp): value 'y' is defined twice"),
            std::string::npos);
  EXPECT_NE(broken([](ModelWriter& m) {
              m.node("Exp", {"nothing"}, {"z"}, "lost");
            }).find("input 'nothing' is not defined"),
            std::string::npos);
  EXPECT_NE(broken([](ModelWriter& m) {
              m.output("p");
              m.node("Add", {"x", "q"}, {"p"}, "one");
              m.node("Exp", {"p"}, {"q"}, "two");
            }).find("cycle"),
            std::string::npos);
  broken([](ModelWriter& m) { m.output("nowhere"); });
  broken([](ModelWriter& m) { m.output("y"); });
  broken([](ModelWriter& m) { m.input("x", {2, 3}); });
  broken([](ModelWriter& m) { m.proto.mutable_graph()->clear_output(); });
  broken([](ModelWriter& m) { m.proto.clear_opset_import(); });
  broken([](ModelWriter& m) {
    m.proto.mutable_graph()
        ->mutable_output(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->set_elem_type(onnx::TensorProto::INT32);
  });
  broken([](ModelWriter& m) {
    m.output("z");
    m.floats("w", {5}, {1, 2, 3, 4, 5});
    m.node("Add", {"x", "w"}, {"z"});
  });
  broken([](ModelWriter& m) {
    m.output("z", onnx::TensorProto::INT64);
    m.ints("w", {3}, {1, 2, 3});
    m.node("Add", {"x", "w"}, {"z"});
  });
}

// Ties of a score map depend on the steps of the sigmoid; shape arithmetic does not.
TEST(ImportGraph, SigmoidHasStepsWhereFloatsAreComparedForEquality) {
  for (const bool floats : {true, false}) {
    ModelWriter model;
    model.input("x", {2, 3}).input("i", {2, 3}, floats ? 1 : 7).output("y").output("same");
    model.node("Sigmoid", {"x"}, {"y"}, "score");
    model.node("Equal", {floats ? "y" : "i", "i"}, {"e"}, "equal");
    set_int(model.node("Cast", {"e"}, {"same"}, "cast"), "to", 1);
    const auto imported = model.import();
    ASSERT_TRUE(imported) << problems(imported);
    const std::string text = print_graph(imported->graph);
    EXPECT_EQ(text.find("map.sigmoid_in_steps") != std::string::npos, floats) << text;
  }
}

TEST(ImportGraph, SortsNodes) {
  ModelWriter model;
  model.input("x", {2}).output("y");
  model.node("Exp", {"h"}, {"y"});
  model.node("Neg", {"x"}, {"h"});
  EXPECT_TRUE(model.import());
}

TEST(ImportGraph, LeavesOutNodesThatNothingNeeds) {
  ModelWriter model = relu_model();
  model.node("NoSuchOperator", {"x"}, {"unused"});
  const auto imported = model.import();
  ASSERT_TRUE(imported) << problems(imported);
  ASSERT_EQ(imported->warnings.size(), 1U);
  EXPECT_EQ(imported->warnings[0].code, "unused-nodes");
}

TEST(ImportGraph, RefusesModelsForTraining) {
  ModelWriter dropout(12);
  dropout.input("x", {2}).output("y");
  dropout.floats("ratio", {}, {0.5F});
  onnx::TensorProto* training = dropout.proto.mutable_graph()->add_initializer();
  training->set_name("training");
  training->set_data_type(onnx::TensorProto::BOOL);
  training->add_int32_data(1);
  dropout.node("Dropout", {"x", "ratio", "training"}, {"y"}, "drop");
  EXPECT_EQ(exit_of(dropout.import()), ExitCode::Unsupported);
  EXPECT_NE(problems(dropout.import()).find("node 'drop' (Dropout, opset 12): dropout in training"),
            std::string::npos);

  ModelWriter norm(15);
  norm.input("x", {1, 2, 3}).output("y");
  for (const char* name : {"s", "b", "m", "v"}) norm.floats(name, {2}, {1, 1});
  set_int(norm.node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"}, "bn"), "training_mode",
          1);
  EXPECT_EQ(exit_of(norm.import()), ExitCode::Unsupported);

  ModelWriter adam;
  adam.input("x", {2}).output("y");
  auto* opset = adam.proto.add_opset_import();
  opset->set_domain("ai.onnx.preview.training");
  opset->set_version(1);
  adam.node("Adam", {"x"}, {"y"}, "adam").set_domain("ai.onnx.preview.training");
  EXPECT_TRUE(has_code(adam.import(), "unsupported-operator"));
  EXPECT_NE(problems(adam.import()).find("training operators"), std::string::npos);

  ModelWriter info = relu_model();
  info.proto.add_training_info();
  EXPECT_TRUE(has_code(info.import(), "unsupported-model"));
}

TEST(ImportGraph, RefusesVersionsItDoesNotKnow) {
  ModelWriter newer(newest_opset + 1);
  newer.input("x", {2}).output("y");
  newer.node("Relu", {"x"}, {"y"});
  EXPECT_TRUE(has_code(newer.import(), "newer-opset"));
  for (const std::int64_t ir : {2, 99}) {
    ModelWriter model(13, ir);
    model.input("x", {2}).output("y");
    model.node("Relu", {"x"}, {"y"});
    EXPECT_TRUE(has_code(model.import(), "unsupported-model")) << ir;
  }
}

TEST(ImportGraph, RefusesOutputsThatAreNoTensors) {
  ModelWriter model;
  model.input("x", {2});
  auto* output = model.proto.mutable_graph()->add_output();
  output->set_name("s");
  output->mutable_type()
      ->mutable_sequence_type()
      ->mutable_elem_type()
      ->mutable_tensor_type()
      ->set_elem_type(1);
  model.node("SequenceConstruct", {"x"}, {"s"}, "seq");
  const auto imported = model.import();
  EXPECT_EQ(exit_of(imported), ExitCode::Unsupported);
  EXPECT_NE(problems(imported).find("output 's' is a sequence"), std::string::npos);
}

TEST(ImportGraph, RefusesSparseAndSubByteConstants) {
  ModelWriter sparse = relu_model();
  sparse.proto.mutable_graph()->add_sparse_initializer()->mutable_values()->set_name("w");
  EXPECT_TRUE(has_code(sparse.import(), "unsupported-type"));

  ModelWriter small = relu_model();
  onnx::TensorProto* w = small.proto.mutable_graph()->add_initializer();
  w->set_name("w");
  w->set_data_type(22);  // int4
  w->add_dims(3);
  w->set_raw_data("\1\2", 2);
  small.output("z");
  small.node("Cast", {"w"}, {"z"}, "unpack");
  const auto imported = small.import();
  EXPECT_TRUE(has_code(imported, "unsupported-type"));
  EXPECT_NE(problems(imported).find("tensor 'w' has element type int4"), std::string::npos);
}

// --- states

ModelWriter state_model(const std::string& next) {
  ModelWriter model;
  model.input("x", {2}).input("h", {2}).output("y").output(next);
  model.node("Add", {"x", "h"}, {next});
  model.node("Relu", {next}, {"y"});
  return model;
}

TEST(ImportGraph, PairsStates) {
  auto imported = state_model("next_h").import();
  ASSERT_TRUE(imported) << problems(imported);
  ASSERT_EQ(imported->graph.states.size(), 1U);
  EXPECT_EQ(imported->graph.states[0].next, imported->graph.outputs[1].value);

  imported = state_model("hN").import();
  ASSERT_TRUE(imported);
  EXPECT_TRUE(imported->graph.states.empty());

  ImportOptions options;
  options.states = {{"hN", "h"}};
  imported = state_model("hN").import(options);
  ASSERT_TRUE(imported) << problems(imported);
  EXPECT_EQ(imported->graph.states.size(), 1U);
}

TEST(ImportGraph, RefusesStatesThatDoNotFit) {
  const auto exit_with = [](std::vector<ImportOptions::StatePair> states) {
    ImportOptions options;
    options.states = std::move(states);
    return exit_of(state_model("hN").import(options));
  };
  EXPECT_EQ(exit_with({{"nobody", "h"}}), ExitCode::Usage);
  EXPECT_EQ(exit_with({{"hN", "nobody"}}), ExitCode::Usage);
  EXPECT_EQ(exit_with({{"hN", "h"}, {"y", "h"}}), ExitCode::Usage);
  ModelWriter model;
  model.input("h", {2}).output("next_h");
  model.node("Concat", {"h", "h"}, {"next_h"});
  set_int(*model.proto.mutable_graph()->mutable_node(0), "axis", 0);
  EXPECT_EQ(exit_of(model.import()), ExitCode::Malformed);
}

// --- functions and branches

void add_scale_function(ModelWriter& model) {
  // Scale(x) = x * alpha, alpha an attribute
  onnx::FunctionProto* function = model.proto.add_functions();
  function->set_domain("local");
  function->set_name("Scale");
  function->add_input("v");
  function->add_output("w");
  function->add_attribute("alpha");
  function->add_opset_import()->set_version(17);
  onnx::NodeProto* constant = function->add_node();
  constant->set_op_type("Constant");
  constant->add_output("a");
  onnx::AttributeProto* value = constant->add_attribute();
  value->set_name("value_float");
  value->set_type(onnx::AttributeProto::FLOAT);
  value->set_ref_attr_name("alpha");
  onnx::NodeProto* product = function->add_node();
  product->set_op_type("Mul");
  product->add_input("v");
  product->add_input("a");
  product->add_output("w");
  auto* opset = model.proto.add_opset_import();
  opset->set_domain("local");
  opset->set_version(1);
}

TEST(ImportGraph, InlinesFunctions) {
  ModelWriter model;
  model.input("x", {2}).output("y");
  add_scale_function(model);
  onnx::NodeProto& call = model.node("Scale", {"x"}, {"y"}, "call");
  call.set_domain("local");
  set_float(call, "alpha", 3);
  const auto imported = model.import();
  ASSERT_TRUE(imported) << problems(imported);
  const double values[] = {1, -2};
  const NamedTensors outputs =
      interpret_outputs(imported->graph, {{"x", Tensor::of_floats(DType::F32, {2}, values)}});
  EXPECT_EQ(doubles(outputs.at("y")), (std::vector<double>{3, -6}));
}

TEST(ImportGraph, RefusesFunctionsThatCallThemselves) {
  ModelWriter model;
  model.input("x", {2}).output("y");
  onnx::FunctionProto* function = model.proto.add_functions();
  function->set_name("Loop1");
  function->add_input("v");
  function->add_output("w");
  function->add_opset_import()->set_version(17);
  onnx::NodeProto* call = function->add_node();
  call->set_op_type("Loop1");
  call->add_input("v");
  call->add_output("w");
  model.node("Loop1", {"x"}, {"y"});
  EXPECT_EQ(exit_of(model.import()), ExitCode::Malformed);
}

ModelWriter branching_model() {
  ModelWriter model;
  model.input("x", {2}).input("c", std::vector<TestDim>{}, onnx::TensorProto::BOOL).output("y");
  onnx::NodeProto& node = model.node("If", {"c"}, {"y"}, "branch");
  for (const char* op : {"Neg", "NoSuchOperator"}) {
    onnx::AttributeProto* attribute = node.add_attribute();
    attribute->set_name(std::string(op) == "Neg" ? "then_branch" : "else_branch");
    attribute->set_type(onnx::AttributeProto::GRAPH);
    onnx::NodeProto* inner = attribute->mutable_g()->add_node();
    inner->set_op_type(op);
    inner->add_input("x");
    inner->add_output("r");
    attribute->mutable_g()->add_output()->set_name("r");
  }
  return model;
}

TEST(ImportGraph, FoldsBranchesWhoseConditionIsKnown) {
  ImportOptions options;
  options.binds["c"] = Tensor::of_ints(DType::Bool, {}, std::vector<std::int64_t>{1});
  const auto imported = branching_model().import(options);
  ASSERT_TRUE(imported) << problems(imported);
  options.binds["c"] = Tensor::of_ints(DType::Bool, {}, std::vector<std::int64_t>{0});
  EXPECT_TRUE(has_code(branching_model().import(options), "unsupported-operator"));
  // Not known: both the condition and the operator in the branch are reported.
  const auto open = branching_model().import();
  EXPECT_NE(problems(open).find("condition must be known"), std::string::npos);
  EXPECT_TRUE(has_code(open, "unsupported-operator"));
}

// --- metadata

TEST(ImportGraph, ReturnsMetadataAndSlices) {
  ModelWriter model;
  model.input("x", {1, 2576}).output("outputs");
  model.node("Relu", {"x"}, {"outputs"});
  auto* entry = model.proto.add_metadata_props();
  entry->set_key("output_slices");
  // {'a': slice(0, 5, None)}, protocol 2
  entry->set_value("gAJ9cQBYAQAAAGFxAWNfX2J1aWx0aW5fXwpzbGljZQpxAksASwVOh3EDUnEEcy4=");
  auto imported = model.import();
  ASSERT_TRUE(imported) << problems(imported);
  ASSERT_TRUE(imported->slices);
  EXPECT_EQ(imported->slices->output, "outputs");
  ASSERT_EQ(imported->slices->slices.size(), 1U);
  EXPECT_EQ(imported->slices->slices[0], (OutputSlice{"a", 0, 5}));
  ASSERT_EQ(imported->warnings.size(), 1U);
  EXPECT_EQ(imported->warnings[0].message, "values 5 to 2576 of output 'outputs' are in no slice");
  EXPECT_TRUE(imported->metadata.contains("output_slices"));

  entry->set_value("Y29zCnN5c3RlbQou");
  EXPECT_EQ(exit_of(model.import()), ExitCode::Malformed);
}

// What an importer neither reads nor allows, its operator does not have.
TEST(ImportGraph, SurplusInputsAreMalformed) {
  for (const std::string op : {"Relu", "Softmax", "MaxPool", "Erf", "Transpose"}) {
    ModelWriter writer;
    writer.input("x", {2, 2}).output("y");
    writer.node(op, {"x", "x"}, {"y"}, "n");
    const Result<ImportedModel> model = writer.import();
    ASSERT_FALSE(model) << op;
    EXPECT_EQ(model.error().exit, ExitCode::Malformed) << op << problems(model);
  }
}

TEST(ImportGraph, InputsLeftOutAtTheEndAreNoSurplus) {
  ModelWriter writer;
  writer.input("x", {2, 2}).output("y");
  writer.node("Clip", {"x", "", ""}, {"y"});
  EXPECT_TRUE(writer.import());
}

// With a place in a pipeline file, the file is at fault and not the command line.
TEST(ImportGraph, WishesOfPipelinesNameTheirPlace) {
  ModelWriter writer;
  writer.input("x", {2, "n"}).input("s", {3}).output("y").output("t");
  writer.node("Relu", {"x"}, {"y"});
  writer.node("Relu", {"s"}, {"t"});
  ImportOptions options;
  options.shapes["x"] = {3, 3};
  EXPECT_EQ(writer.import(options).error().exit, ExitCode::Usage);
  options.places["x"] = {"p.json", "stages[1].inputs.x"};
  Result<ImportedModel> model = writer.import(options);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().exit, ExitCode::Malformed);
  EXPECT_EQ(model.error().diagnostics.front().file, "p.json");
  EXPECT_EQ(model.error().diagnostics.front().node, "stages[1].inputs.x");

  options.shapes["x"] = {2, 3};
  options.states = {{"y", "s", ImportOptions::Place{"p.json", "stages[1].states.y"}}};
  model = writer.import(options);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().exit, ExitCode::Malformed);
  EXPECT_EQ(model.error().diagnostics.front().node, "stages[1].states.y");
  options.states[0].place.reset();
  EXPECT_EQ(writer.import(options).error().exit, ExitCode::Usage);
}

}  // namespace
}  // namespace ingot
