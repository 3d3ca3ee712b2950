#include "onnx_frontend/read_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "onnx_frontend/wire_format.h"
#include "tests/onnx_frontend/model_writer.h"

namespace ingot {
namespace {

namespace fs = std::filesystem;

// y = x + w, with 300 weights: more than stay in the message.
ModelWriter add_model(std::size_t weights = 300) {
  ModelWriter model;
  const auto size = static_cast<std::int64_t>(weights);
  model.input("x", {size}).output("y");
  std::vector<float> values(weights);
  for (std::size_t i = 0; i < weights; ++i) values[i] = static_cast<float>(i) / 4;
  model.floats("w", {size}, values);
  model.node("Add", {"x", "w"}, {"y"}, "plus");
  return model;
}

Result<Model> read_bytes(const std::string& bytes) {
  const TestFolder folder;
  write_file(folder / "m.onnx", bytes);
  return read_model(folder / "m.onnx");
}

TEST(ReadModel, ReadsWhatAModelSays) {
  ModelWriter writer = add_model();
  writer.proto.set_model_version(7);
  auto* entry = writer.proto.add_metadata_props();
  entry->set_key("k");
  entry->set_value("v");
  const Result<Model> model = writer.read();
  ASSERT_TRUE(model) << problems(model);
  EXPECT_EQ(model->ir_version, 8);
  EXPECT_EQ(model->model_version, 7);
  EXPECT_EQ(model->producer_name, "test");
  EXPECT_EQ(model->opsets.at(""), 17);
  EXPECT_EQ(model->metadata.at("k"), "v");
  EXPECT_EQ(model->graph.name, "g");
  ASSERT_EQ(model->graph.nodes.size(), 1U);
  EXPECT_EQ(model->graph.nodes[0].label, "plus");
  ASSERT_EQ(model->sources.size(), 1U);
  EXPECT_EQ(model->sources[0].name, "model.onnx");
  EXPECT_EQ(model->sources[0].bytes.size(), writer.bytes().size());
}

TEST(ReadModel, LeavesLargeWeightsInTheFile) {
  for (const std::size_t count :
       {std::size_t{10}, std::size_t{255}, std::size_t{256}, std::size_t{300}}) {
    const Result<Model> model = add_model(count).read();
    ASSERT_TRUE(model) << problems(model);
    const OnnxTensor& w = model->graph.initializers.at(0);
    const std::span<const std::byte> file = model->sources[0].bytes;
    const bool inside = w.bytes.data() >= file.data() && w.bytes.data() < file.data() + file.size();
    EXPECT_EQ(inside, count >= 256) << count;
    const Result<Tensor> tensor = to_tensor(w);
    ASSERT_TRUE(tensor);
    EXPECT_EQ(tensor->at(5).as_double(), 1.25);
    EXPECT_EQ(element_count(tensor->shape), static_cast<std::int64_t>(count));
  }
}

TEST(ReadModel, KeepsWeightsAliveAfterTheModel) {
  OnnxTensor weights;
  {
    const Result<Model> model = add_model().read();
    ASSERT_TRUE(model);
    weights = model->graph.initializers.at(0);
  }
  EXPECT_EQ(to_tensor(weights)->at(299).as_double(), 299.0 / 4);
}

TEST(ReadModel, ReadsTypedData) {
  ModelWriter model;
  model.output("a");
  model.node("Identity", {"x"}, {"a"});
  onnx::TensorProto* x = model.proto.mutable_graph()->add_initializer();
  x->set_name("x");
  x->set_data_type(onnx::TensorProto::FLOAT16);
  x->add_dims(2);
  x->add_int32_data(0x3C00);
  x->add_int32_data(0xC000);
  Result<Model> read = model.read();
  ASSERT_TRUE(read) << problems(read);
  EXPECT_EQ(to_tensor(read->graph.initializers[0])->at(1).as_double(), -2);

  x->add_int32_data(1);  // three elements for two places
  EXPECT_EQ(exit_of(model.read()), ExitCode::Malformed);
  x->clear_int32_data();
  x->add_int32_data(0x10000);
  x->add_int32_data(0);
  EXPECT_EQ(exit_of(model.read()), ExitCode::Malformed);
}

TEST(ReadModel, RefusesFilesThatAreNoModel) {
  EXPECT_EQ(exit_of(read_model("/nonexistent/x.onnx")), ExitCode::Io);
  EXPECT_EQ(exit_of(read_model(fs::temp_directory_path())), ExitCode::Io);
  EXPECT_EQ(exit_of(read_bytes("")), ExitCode::Malformed);
  EXPECT_EQ(exit_of(read_bytes("hello, world")), ExitCode::Malformed);
  EXPECT_EQ(exit_of(read_bytes(std::string(1000, '\0'))), ExitCode::Malformed);
  EXPECT_EQ(exit_of(read_bytes(std::string(1000, '\xFF'))), ExitCode::Malformed);
  EXPECT_EQ(exit_of(read_bytes("{\"json\": true}")), ExitCode::Malformed);
  // A length of 2^63 and one of 2 GB.
  EXPECT_EQ(exit_of(read_bytes(std::string("\x3A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11))),
            ExitCode::Malformed);
  EXPECT_EQ(exit_of(read_bytes(std::string("\x3A\xFF\xFF\xFF\xFF\x07", 6))), ExitCode::Malformed);
  const Result<Model> text = read_bytes("hello, world");
  EXPECT_EQ(text.error().diagnostics.size(), 1U);
}

TEST(ReadModel, RefusesGraphsNestedTooDeep) {
  std::string graph = "\x12\x01g";
  for (int i = 0; i < 200; ++i) {
    // graph { node { attribute { g { ... } } } }
    std::string attribute;
    append_bytes_field(attribute, 6, graph);
    std::string node;
    append_bytes_field(node, 5, attribute);
    graph.clear();
    append_bytes_field(graph, 1, node);
  }
  std::string model;
  append_varint_field(model, 1, 8);
  append_bytes_field(model, 7, graph);
  EXPECT_EQ(exit_of(read_bytes(model)), ExitCode::Malformed);
}

TEST(ReadModel, RefusesBadTensors) {
  const auto with = [](auto change) {
    ModelWriter model = add_model(4);
    change(*model.proto.mutable_graph()->mutable_initializer(0));
    return exit_of(model.read());
  };
  using T = onnx::TensorProto;
  EXPECT_EQ(with([](T&) {}), ExitCode::Done);
  EXPECT_EQ(with([](T& t) { t.set_dims(0, 5); }), ExitCode::Malformed);
  EXPECT_EQ(with([](T& t) { t.set_dims(0, -4); }), ExitCode::Malformed);
  EXPECT_EQ(with([](T& t) { t.set_dims(0, std::int64_t{1} << 62); }), ExitCode::Malformed);
  EXPECT_EQ(with([](T& t) {
              t.add_dims(std::int64_t{1} << 40);
              t.add_dims(std::int64_t{1} << 40);
              t.add_dims(0);
            }),
            ExitCode::Malformed);
  EXPECT_EQ(with([](T& t) { t.set_data_type(0); }), ExitCode::Malformed);
  EXPECT_EQ(with([](T& t) { t.add_float_data(1); }), ExitCode::Malformed);
  EXPECT_EQ(with([](T& t) { t.set_name("\xC3\x28"); }), ExitCode::Malformed);
  // The marker of the scanner is not for files.
  EXPECT_EQ(with([](T& t) { t.mutable_unknown_fields()->AddVarint(500001, 0); }),
            ExitCode::Malformed);
}

TEST(ReadModel, CollectsUnknownFieldsAndIgnoresHarmlessOnes) {
  ModelWriter model = add_model(4);
  model.proto.mutable_graph()->mutable_node(0)->mutable_unknown_fields()->AddLengthDelimited(9, "");
  Result<Model> read = model.read();
  ASSERT_TRUE(read) << problems(read);
  EXPECT_TRUE(read->unsupported.empty());
  model.proto.mutable_graph()->mutable_node(0)->mutable_unknown_fields()->AddVarint(77, 1);
  read = model.read();
  ASSERT_TRUE(read) << problems(read);
  ASSERT_EQ(read->unsupported.size(), 1U);
  EXPECT_EQ(read->unsupported[0].code, "unknown-field");
  EXPECT_EQ(exit_of(import_graph(*read, {})), ExitCode::Unsupported);
}

TEST(ReadModel, ReadsOverloadsAndAttributeDefaultsOfFunctions) {
  ModelWriter model = add_model(4);
  model.proto.mutable_graph()->mutable_node(0)->mutable_unknown_fields()->AddLengthDelimited(8,
                                                                                             "o");
  onnx::FunctionProto* function = model.proto.add_functions();
  function->set_name("F");
  onnx::AttributeProto alpha;
  alpha.set_name("alpha");
  alpha.set_type(onnx::AttributeProto::FLOAT);
  alpha.set_f(2);
  function->mutable_unknown_fields()->AddLengthDelimited(11, alpha.SerializeAsString());
  const Result<Model> read = model.read();
  ASSERT_TRUE(read) << problems(read);
  EXPECT_EQ(read->graph.nodes[0].overload, "o");
  ASSERT_EQ(read->functions.at(0).attribute_defaults.size(), 1U);
  EXPECT_EQ(read->functions[0].attribute_defaults[0].f, 2);
}

// --- external data

void set_external(onnx::TensorProto& tensor, const std::string& location, const std::string& offset,
                  const std::string& length) {
  tensor.clear_raw_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto add = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    auto* entry = tensor.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  };
  add("location", location);
  add("offset", offset);
  add("length", length);
}

Result<Model> read_external(const TestFolder& folder, const std::string& location,
                            const std::string& offset, const std::string& length) {
  ModelWriter model = add_model(4);
  set_external(*model.proto.mutable_graph()->mutable_initializer(0), location, offset, length);
  write_file(folder / "m.onnx", model.bytes());
  return read_model(folder / "m.onnx");
}

TEST(ExternalData, IsReadFromBesideTheModel) {
  const TestFolder folder;
  const float values[] = {9, 1, 2, 3, 4};
  write_file(folder / "w.bin", {reinterpret_cast<const char*>(values), sizeof values});
  const Result<Model> model = read_external(folder, "w.bin", "4", "16");
  ASSERT_TRUE(model) << problems(model);
  EXPECT_EQ(to_tensor(model->graph.initializers[0])->at(3).as_double(), 4);
  ASSERT_EQ(model->sources.size(), 2U);
  EXPECT_EQ(model->sources[1].name, "w.bin");
  EXPECT_EQ(model->sources[1].bytes.size(), 20U);
  EXPECT_TRUE(read_external(folder, "w.bin", "", ""));
  EXPECT_TRUE(read_external(folder, "./w.bin", "0", "16"));
}

TEST(ExternalData, MustFitItsFile) {
  const TestFolder folder;
  write_file(folder / "w.bin", std::string(20, 'x'));
  EXPECT_EQ(exit_of(read_external(folder, "w.bin", "5", "16")), ExitCode::Malformed);
  EXPECT_EQ(exit_of(read_external(folder, "w.bin", "0", "12")), ExitCode::Malformed);
  EXPECT_EQ(exit_of(read_external(folder, "w.bin", "18446744073709551615", "16")),
            ExitCode::Malformed);
  EXPECT_EQ(exit_of(read_external(folder, "w.bin", "-4", "16")), ExitCode::Malformed);
  EXPECT_EQ(exit_of(read_external(folder, "w.bin", "4x", "16")), ExitCode::Malformed);
  EXPECT_EQ(exit_of(read_external(folder, "missing.bin", "0", "16")), ExitCode::Io);
}

TEST(ExternalData, StaysInTheFolder) {
  const TestFolder outside;
  write_file(outside / "w.bin", std::string(20, 'x'));
  const TestFolder folder;
  write_file(folder / "w.bin", std::string(20, 'x'));
  fs::create_directory(folder / "sub");
  write_file(folder / "sub/w.bin", std::string(20, 'x'));
  fs::create_symlink(outside / "w.bin", folder / "link.bin");
  fs::create_directory_symlink(outside.path(), folder / "way");
  fs::create_symlink("sub/w.bin", folder / "inside.bin");
  EXPECT_EQ(exit_of(read_external(folder, (outside / "w.bin").string(), "0", "16")),
            ExitCode::Malformed);
  EXPECT_EQ(exit_of(read_external(folder, "../w.bin", "0", "16")), ExitCode::Malformed);
  EXPECT_EQ(exit_of(read_external(folder, "sub/../w.bin", "0", "16")), ExitCode::Malformed);
  EXPECT_EQ(exit_of(read_external(folder, "link.bin", "0", "16")), ExitCode::Malformed);
  EXPECT_EQ(exit_of(read_external(folder, "way/w.bin", "0", "16")), ExitCode::Malformed);
  EXPECT_EQ(exit_of(read_external(folder, "", "0", "16")), ExitCode::Malformed);
  EXPECT_TRUE(read_external(folder, "sub/w.bin", "0", "16"));
  EXPECT_TRUE(read_external(folder, "inside.bin", "0", "16"));
}

TEST(ExternalData, RefusesUnknownEntries) {
  const TestFolder folder;
  write_file(folder / "w.bin", std::string(20, 'x'));
  ModelWriter model = add_model(4);
  onnx::TensorProto& w = *model.proto.mutable_graph()->mutable_initializer(0);
  set_external(w, "w.bin", "0", "16");
  auto* entry = w.add_external_data();
  entry->set_key("compression");
  entry->set_value("zip");
  write_file(folder / "m.onnx", model.bytes());
  const Result<Model> read = read_model(folder / "m.onnx");
  ASSERT_TRUE(read) << problems(read);
  EXPECT_EQ(exit_of(import_graph(*read, {})), ExitCode::Unsupported);
}

// --- sizes

// A sparse file of 2.5 GB: protobuf alone would refuse it.
TEST(ReadModel, ReadsModelsAboveTwoGigabytes) {
  const TestFolder folder;
  constexpr std::uint64_t size = std::uint64_t{5} << 29;
  std::string tensor;
  append_varint_field(tensor, 1, size);
  append_varint_field(tensor, 2, onnx::TensorProto::UINT8);
  append_bytes_field(tensor, 8, "w");
  append_varint(tensor, 9 << 3 | 2);
  append_varint(tensor, size);
  ModelWriter writer;
  writer.output("y", onnx::TensorProto::UINT8);
  writer.node("Identity", {"w"}, {"y"});
  std::string graph = writer.proto.graph().SerializeAsString();
  append_varint(graph, 5 << 3 | 2);
  append_varint(graph, tensor.size() + size);
  graph += tensor;
  writer.proto.clear_graph();
  std::string model = writer.bytes();
  append_varint(model, 7 << 3 | 2);
  append_varint(model, graph.size() + size);
  model += graph;
  const fs::path path = folder / "large.onnx";
  write_file(path, model);
  std::error_code error;
  fs::resize_file(path, model.size() + size, error);
  if (error) GTEST_SKIP() << "no sparse file of that size here: " << error.message();
  const Result<Model> read = read_model(path);
  ASSERT_TRUE(read) << problems(read);
  EXPECT_EQ(read->graph.initializers[0].bytes.size(), size);
  EXPECT_EQ(read->graph.initializers[0].bytes.back(), std::byte{0});
}

// --- damage: any bytes give a graph or a failure

void read_and_import(const fs::path& path, const std::string& bytes) {
  write_file(path, bytes);
  const Result<Model> model = read_model(path);
  if (!model) {
    ASSERT_FALSE(model.error().diagnostics.empty());
    return;
  }
  const Result<ImportedModel> imported = import_graph(*model, {});
  if (!imported) {
    ASSERT_FALSE(imported.error().diagnostics.empty());
  } else {
    const Result<void> valid = validate_graph(imported->graph);
    ASSERT_TRUE(valid) << problems(valid);
  }
}

void damage(const std::string& file, int truncations, int flips) {
  const TestFolder folder;
  const fs::path path = folder / "m.onnx";
  const std::string bytes = read_file(shared_folder() / file);
  std::uint64_t state = 42;
  const auto random = [&] {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return state >> 33;
  };
  for (int i = 0; i < truncations; ++i) {
    const std::size_t length =
        i < truncations / 2 ? static_cast<std::size_t>(i) * 3 : random() % bytes.size();
    read_and_import(path, bytes.substr(0, length));
  }
  for (int i = 0; i < flips; ++i) {
    std::string damaged = bytes;
    for (std::uint64_t k = random() % 4 + 1; k > 0; --k) {
      char& c = damaged[random() % damaged.size()];
      c = static_cast<char>(c ^ (1 << random() % 8));
    }
    read_and_import(path, damaged);
  }
}

TEST(Damage, NeverCrashesOnARealModel) {
  INGOT_NEED_SHARED("models/files/mnist.onnx");
  damage("models/files/mnist.onnx", 300, 1500);
}

// Small models are all structure, so that every flip hits something.
TEST(Damage, NeverCrashesOnSmallModels) {
  INGOT_NEED_SHARED("onnx_suite/node");
  for (const char* name :
       {"test_conv_with_strides_padding", "test_averagepool_2d_ceil", "test_gemm_all_attributes",
        "test_resize_upsample_scales_linear_antialias", "test_slice_neg_steps",
        "test_gelu_tanh_1_expanded", "test_layer_normalization_2d_axis0_expanded",
        "test_convtranspose_dilations", "test_maxpool_with_argmax_2d_precomputed_pads",
        "test_squeeze", "test_cumsum_1d"}) {
    const std::string file = std::string("onnx_suite/node/") + name + "/model.onnx";
    if (fs::exists(shared_folder() / file)) damage(file, 60, 400);
  }
}

}  // namespace
}  // namespace ingot
