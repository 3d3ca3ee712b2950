#include "cli/model_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <variant>

#include "artifact/digest.h"
#include "artifact/encode.h"
#include "cli/options.h"
#include "cli/tensor_file.h"
#include "compiler/camera/camera.h"
#include "onnx_frontend/import_graph.h"
#include "onnx_frontend/read_model.h"

namespace ingot::cli {
namespace {

namespace fs = std::filesystem;

// ---------------------------------------------------------------------------------------------
// Options

Result<ImportOptions> import_options(const SourceOptions& options) {
  ImportOptions result;
  INGOT_ASSIGN(const auto shapes, name_values(options.shapes, "--shape"));
  for (const auto& [name, text] : shapes) {
    INGOT_ASSIGN(result.shapes[name], parse_shape(text, "--shape"));
  }
  INGOT_ASSIGN(const auto dims, name_values(options.dims, "--dim"));
  for (const auto& [name, text] : dims) {
    INGOT_ASSIGN(result.dims[name], parse_integer(text, "--dim"));
  }
  INGOT_ASSIGN(const auto binds, name_values(options.binds, "--bind"));
  for (const auto& [name, file] : binds) {
    INGOT_ASSIGN(result.binds[name], read_tensor_file(file));
  }
  for (const std::string& text : options.states) {
    INGOT_ASSIGN(NameValue pair, split_at_last_equals(text, "--state"));
    result.states.push_back({std::move(pair.name), std::move(pair.value)});
  }
  return result;
}

// As the manifest records them, in the order of the command line's documentation.
void record_options(const SourceOptions& options, artifact::ManifestFacts& facts) {
  const auto add = [&](const char* name, std::vector<std::string> values) {
    std::ranges::sort(values);
    for (std::string& value : values) facts.options.emplace_back(name, std::move(value));
  };
  add("shape", options.shapes);
  add("dim", options.dims);
  add("state", options.states);
  std::vector<std::string> bound;  // names only: the value is part of the graph
  for (const std::string& text : options.binds) bound.push_back(text.substr(0, text.rfind('=')));
  add("bind", bound);
  if (!options.warp.empty()) facts.options.emplace_back("warp", options.warp);
  if (options.split_frames) facts.options.emplace_back("split-frames", "1");
}

// ---------------------------------------------------------------------------------------------
// Models

// How exact a model can be, most exact first: decides the tolerances of `check`.
enum class Numerics { Float32, Quantized, Float16 };

Numerics numerics_of(const Model& model) {
  const auto is_quantized = [](const OnnxNode& node) {
    return node.op_type.find("Quantize") != std::string::npos ||
           node.op_type.starts_with("QLinear");
  };
  if (std::ranges::any_of(model.graph.nodes, is_quantized)) return Numerics::Quantized;
  const auto is_half = [](const OnnxTensor& tensor) {
    const std::optional<DType> dtype = dtype_from_onnx(tensor.data_type);
    return dtype == DType::F16 || dtype == DType::BF16;
  };
  const auto has_half = [&](const OnnxNode& node) {
    return std::ranges::any_of(node.attributes, [&](const OnnxAttribute& attribute) {
      return std::ranges::any_of(attribute.tensors, is_half);
    });
  };
  return std::ranges::any_of(model.graph.initializers, is_half) ||
                 std::ranges::any_of(model.graph.nodes, has_half)
             ? Numerics::Float16
             : Numerics::Float32;
}

const char* name(Numerics numerics) {
  if (numerics == Numerics::Quantized) return "quantized";
  return numerics == Numerics::Float16 ? "float16" : "float32";
}

// Share of the largest expected magnitude that a model's own references may be off.
double float_tolerance(Numerics numerics) {
  if (numerics == Numerics::Quantized) return 8e-3;
  return numerics == Numerics::Float16 ? 2e-2 : 1e-4;
}

PipelineModel to_pipeline_model(ImportedModel imported) {
  PipelineModel model;
  model.graph = std::move(imported.graph);
  if (imported.slices) {
    model.sliced_output = imported.slices->output;
    for (const OutputSlice& slice : imported.slices->slices) {
      model.slices.push_back({slice.name, slice.start, slice.stop});
    }
  }
  model.metadata = std::move(imported.metadata);
  model.graph_name = std::move(imported.graph_name);
  model.producer_name = std::move(imported.producer_name);
  model.producer_version = std::move(imported.producer_version);
  model.domain = std::move(imported.domain);
  model.ir_version = imported.ir_version;
  model.model_version = imported.model_version;
  model.opset = imported.opset;
  for (SourceFile& source : imported.sources) {
    model.sources.push_back({source.name, source.owner, source.bytes});
  }
  model.warnings = std::move(imported.warnings);
  return model;
}

Result<PipelineModel> import_file(const fs::path& path, const ImportOptions& options,
                                  Numerics& numerics) {
  INGOT_ASSIGN(const Model model, read_model(path));
  numerics = numerics_of(model);
  INGOT_ASSIGN(ImportedModel imported, import_graph(model, options));
  return to_pipeline_model(std::move(imported));
}

std::uint32_t float_policy(const Graph& graph) {
  const auto may_change = [](const Node& node) {
    const bool computes = std::holds_alternative<MapOp>(node.op) ||
                          std::holds_alternative<ReduceNodeOp>(node.op) ||
                          std::holds_alternative<ContractOp>(node.op);
    return computes && is_float(node.dtype) && !node.strict;
  };
  return std::ranges::any_of(graph.nodes, may_change)
             ? static_cast<std::uint32_t>(INGOT_FLOAT_CONTRACT) | INGOT_FLOAT_REGROUP
             : 0;
}

artifact::ModelSource describe_model(const PipelineModel& model) {
  artifact::ModelSource source;
  if (!model.sources.empty()) source.onnx_sha256 = artifact::sha256(model.sources.front().bytes);
  std::vector<artifact::ExternalFile> external;
  for (std::size_t i = 1; i < model.sources.size(); ++i) {
    const PipelineModel::Source& file = model.sources[i];
    external.push_back({file.name, file.bytes.size(), artifact::sha256(file.bytes)});
  }
  source.external_sha256 = artifact::external_files_digest(std::move(external));
  source.ir_version = static_cast<std::uint32_t>(model.ir_version);
  source.opset = static_cast<std::uint32_t>(model.opset);
  source.producer = model.producer_name;
  source.graph_name = model.graph_name;
  source.domain = model.domain;
  source.model_version = static_cast<std::uint64_t>(model.model_version);
  return source;
}

void add_source_file(const std::string& name, std::span<const std::byte> bytes,
                     artifact::ManifestFacts& facts) {
  facts.sources.push_back(
      {fs::path(name).filename().string(), artifact::sha256(bytes), bytes.size()});
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// ---------------------------------------------------------------------------------------------
// Cameras

Result<Camera> read_camera(const fs::path& path, ModelSources& sources,
                           std::vector<Diagnostic>& warnings) {
  INGOT_ASSIGN(const std::string text, read_text_file(path));
  INGOT_ASSIGN(ParsedCamera parsed, parse_camera(text, path.string()));
  warnings.insert(warnings.end(), parsed.warnings.begin(), parsed.warnings.end());
  add_source_file(path.string(), bytes_of(text), sources.facts);
  return std::move(parsed.camera);
}

// ---------------------------------------------------------------------------------------------
// The two kinds of source

// What the artifact says of the models, once the graphs exist.
void describe_origin(const artifact::Digest& pipeline_sha256, ModelSources& sources) {
  const PipelineResult& pipeline = sources.pipeline;
  const std::uint32_t policy =
      pipeline.input.variants.empty() ? 0 : float_policy(pipeline.input.variants.front().graph);
  for (const PipelineResult::Part& part : pipeline.models) {
    sources.models.push_back(describe_model(part.model));
    for (const PipelineModel::Source& file : part.model.sources) {
      add_source_file(file.name, file.bytes, sources.facts);
    }
    const std::string prefix = pipeline.models.size() > 1 ? part.stage + "." : "";
    for (const auto& [key, value] : part.model.metadata) {
      sources.facts.metadata.emplace_back(prefix + key, value);
    }
  }
  if (sources.models.empty()) sources.models.emplace_back();
  for (artifact::ModelSource& model : sources.models) {
    model.pipeline_sha256 = pipeline_sha256;
    model.frame_period_us = pipeline.frame_period_us;
    model.float_policy = policy;
  }
}

Result<ModelSources> read_onnx(const SourceOptions& options, std::vector<Diagnostic>& warnings) {
  if (options.split_frames && options.warp.empty()) {
    return usage_error("--split-frames: without --warp there are no frames to split");
  }
  ModelSources sources;
  record_options(options, sources.facts);
  std::vector<Camera> cameras;
  for (const std::string& path : options.cameras) {
    INGOT_ASSIGN(cameras.emplace_back(), read_camera(path, sources, warnings));
  }
  INGOT_ASSIGN(const ImportOptions how, import_options(options));
  Numerics numerics = Numerics::Float32;
  INGOT_ASSIGN(PipelineModel imported, import_file(options.source, how, numerics));
  sources.facts.options.emplace_back("numerics", name(numerics));
  warnings.insert(warnings.end(), imported.warnings.begin(), imported.warnings.end());
  imported.warnings.clear();
  ModelCommand command;
  command.path = options.source;
  command.name = fs::path(options.source).stem().string();
  if (!options.warp.empty()) command.warp = options.warp;
  command.split_frames = options.split_frames;
  const auto model = std::make_shared<const PipelineModel>(std::move(imported));
  INGOT_ASSIGN(const Pipeline pipeline, pipeline_of_model(model, command));
  INGOT_ASSIGN(sources.pipeline, build_pipeline(pipeline, cameras, {}));
  sources.pipeline.input.float_tolerance = float_tolerance(numerics);
  describe_origin({}, sources);
  return sources;
}

// Gives each model of a pipeline those options that it knows the names of, and notes which names
// were known to any.
class PipelineImporter {
 public:
  PipelineImporter(ImportOptions options, fs::path folder, std::string file)
      : options_(std::move(options)), folder_(std::move(folder)), file_(std::move(file)) {}

  Result<PipelineModel> import(const ModelRequest& request) {
    INGOT_ASSIGN(const fs::path path, resolve_path(folder_, request.path, file_));
    INGOT_ASSIGN(const Model model, read_model(path));
    numerics_ = std::max(numerics_, numerics_of(model));
    ImportOptions chosen = choose(model);
    INGOT_RETURN_IF_ERROR(add_fed_shapes(model, request, chosen));
    for (const StatePair& pair : request.states) {
      chosen.states.push_back(
          {pair.output, pair.input,
           ImportOptions::Place{file_, fmt::format("{}.states.{}", request.place, pair.output)}});
    }
    INGOT_ASSIGN(ImportedModel imported, import_graph(model, chosen));
    return to_pipeline_model(std::move(imported));
  }

  // Of the least exact model.
  [[nodiscard]] Numerics numerics() const { return numerics_; }

  Result<void> check_all_used() const {
    for (const auto& [name, shape] : options_.shapes) INGOT_RETURN_IF_ERROR(check(name, "--shape"));
    for (const auto& [name, value] : options_.dims) INGOT_RETURN_IF_ERROR(check(name, "--dim"));
    for (const auto& [name, value] : options_.binds) INGOT_RETURN_IF_ERROR(check(name, "--bind"));
    return {};
  }

 private:
  ImportOptions choose(const Model& model) {
    ImportOptions chosen;
    for (const OnnxValueInfo& input : model.graph.inputs) {
      take(options_.shapes, input.name, chosen.shapes);
      take(options_.binds, input.name, chosen.binds);
      if (!input.shape) continue;
      for (const OnnxDimension& dimension : *input.shape) {
        take(options_.dims, dimension.name, chosen.dims);
      }
    }
    return chosen;
  }

  // Inputs take the shapes of what the pipeline feeds them; the command line may not say others.
  Result<void> add_fed_shapes(const Model& model, const ModelRequest& request,
                              ImportOptions& chosen) const {
    for (const auto& [name, shape] : request.shapes) {
      // Where there is no such input, build_pipeline says so.
      const auto is_this = [&](const auto& value) { return value.name == name; };
      if (std::ranges::none_of(model.graph.inputs, is_this) ||
          std::ranges::any_of(model.graph.initializers, is_this)) {
        continue;
      }
      const std::string place = fmt::format("{}.inputs.{}", request.place, name);
      if (chosen.binds.contains(name)) {
        return usage_error(fmt::format("--bind {}: the pipeline feeds this input", name),
                           fmt::format("at {} of {}", place, file_));
      }
      const auto [entry, fresh] = chosen.shapes.emplace(name, shape);
      if (!fresh && entry->second != shape) {
        return usage_error(
            fmt::format("--shape {}: the pipeline feeds this input another shape", name),
            fmt::format("at {} of {}", place, file_));
      }
      chosen.places[name] = {file_, place};
    }
    return {};
  }

  template <typename Map>
  void take(const Map& from, const std::string& name, Map& to) {
    const auto found = from.find(name);
    if (found == from.end()) return;
    to.insert(*found);
    used_.insert(name);
  }

  Result<void> check(const std::string& name, const char* option) const {
    if (used_.contains(name)) return {};
    return usage_error(fmt::format("{}: no model of the pipeline has '{}'", option, name));
  }

  ImportOptions options_;
  fs::path folder_;
  std::string file_;
  std::set<std::string> used_;
  Numerics numerics_ = Numerics::Float32;
};

Result<ModelSources> read_pipeline(const SourceOptions& options,
                                   std::vector<Diagnostic>& warnings) {
  if (!options.cameras.empty() || !options.warp.empty() || options.split_frames ||
      !options.states.empty()) {
    return usage_error("--camera, --warp, --split-frames and --state are for an .onnx source",
                       "a pipeline file says these things itself");
  }
  ModelSources sources;
  record_options(options, sources.facts);
  INGOT_ASSIGN(const std::string text, read_text_file(options.source));
  INGOT_ASSIGN(const Pipeline pipeline, parse_pipeline(text, options.source));
  add_source_file(options.source, bytes_of(text), sources.facts);
  const fs::path folder = fs::absolute(options.source).parent_path();
  std::vector<Camera> cameras;
  for (const std::string& name : pipeline.cameras) {
    INGOT_ASSIGN(const fs::path path, resolve_path(folder, name, options.source));
    INGOT_ASSIGN(cameras.emplace_back(), read_camera(path, sources, warnings));
  }
  INGOT_ASSIGN(ImportOptions how, import_options(options));
  PipelineImporter importer(std::move(how), folder, options.source);
  INGOT_ASSIGN(sources.pipeline,
               build_pipeline(pipeline, cameras, [&](const ModelRequest& request) {
                 return importer.import(request);
               }));
  INGOT_RETURN_IF_ERROR(importer.check_all_used());
  sources.facts.options.emplace_back("numerics", name(importer.numerics()));
  sources.pipeline.input.float_tolerance = float_tolerance(importer.numerics());
  describe_origin(artifact::sha256(text), sources);
  return sources;
}

}  // namespace

void add_source_options(CLI::App& command, SourceOptions& options) {
  command.add_option("SOURCE", options.source, "An .onnx model or a pipeline .json")->required();
  add_repeatable(command, "--shape", options.shapes,
                 "Fix an input's shape, INPUT=1x3x224x224; repeatable");
  add_repeatable(command, "--dim", options.dims, "Fix a named dimension, BATCH=1; repeatable");
  add_repeatable(command, "--state", options.states,
                 "A state pair OUTPUT=INPUT that is not called next_X and X; repeatable");
  add_repeatable(command, "--bind", options.binds,
                 "Fix an input's value, INPUT=FILE (.npy or .pb); repeatable");
  add_repeatable(command, "--camera", options.cameras, "Camera file of the frames; repeatable");
  command.add_option("--warp", options.warp, "Feed the image input from a warped camera frame")
      ->check(CLI::IsMember({"road", "cabin"}));
  command.add_flag("--split-frames", options.split_frames,
                   "Two frames as two inputs, each bound by pointer");
}

Result<ModelSources> read_source(const SourceOptions& options, std::vector<Diagnostic>& warnings) {
  const bool is_pipeline = fs::path(options.source).extension() == ".json";
  INGOT_ASSIGN(ModelSources sources,
               is_pipeline ? read_pipeline(options, warnings) : read_onnx(options, warnings));
  warnings.insert(warnings.end(), sources.pipeline.warnings.begin(),
                  sources.pipeline.warnings.end());
  return sources;
}

}  // namespace ingot::cli
