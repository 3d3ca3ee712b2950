// Walks the model's nodes in order, looks each operator up (operator_table.h) and lets its importer
// add nodes to the graph. Problems are collected, not thrown: a value that could not be made is
// replaced by a stand-in of its declared type, so that what depends on it is still looked at.
#include "onnx_frontend/import_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "onnx_frontend/bind_inputs.h"
#include "onnx_frontend/node_import.h"
#include "onnx_frontend/node_order.h"
#include "onnx_frontend/operator_table.h"

namespace ingot {
namespace {

constexpr std::int64_t oldest_ir_version = 3;
constexpr std::int64_t newest_ir_version = 13;
constexpr std::size_t deepest_functions = 32;

// A named value while importing: a graph value, a constant that nothing has read yet, or neither
// because its node was refused.
struct Value {
  ValueId id;
  const OnnxTensor* constant = nullptr;
};

using OpsetMap = std::map<std::string, std::int64_t>;

// The names that one graph or function body defines. Bodies of If see the outer ones.
struct Scope {
  const Scope* outer = nullptr;
  const OpsetMap* opsets = nullptr;
  std::string prefix;  // of node labels, for bodies of functions
  std::size_t function_depth = 0;
  std::map<std::string, Value> values;
  std::map<std::string, const OnnxValueInfo*> declared;
};

// Problems of nodes, reported once each.
class Problems {
 public:
  void add(ExitCode exit, Diagnostic diagnostic) {
    if (exit != ExitCode::Unsupported) worst_ = exit;
    list_.push_back(std::move(diagnostic));
  }
  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] Failure take() { return {worst_, std::move(list_)}; }
  // What does not depend on guessed dimensions.
  void keep_shape_independent() {
    static const std::set<std::string_view> codes = {
        "unsupported-operator", "unsupported-attribute", "unsupported-type", "unsupported-model",
        "unknown-field",        "open-dimension",        "newer-opset"};
    std::erase_if(list_, [](const Diagnostic& d) { return !codes.contains(d.code); });
    worst_ = ExitCode::Unsupported;
  }

 private:
  ExitCode worst_ = ExitCode::Unsupported;
  std::vector<Diagnostic> list_;
};

class GraphImport {
 public:
  GraphImport(const Model& model, const ImportOptions& options)
      : model_(model), options_(options), builder_(model.graph.name) {}

  Result<ImportedModel> run();

 private:
  // --- the model as a whole
  void check_model();
  Result<void> define_inputs();
  Result<std::set<std::string>> given_names() const;
  Result<void> import_outputs();
  void check_output(const OnnxValueInfo& output, ValueId value);
  Result<void> pair_states();
  Result<void> pair_state(const ImportOptions::StatePair& pair, ExitCode exit);
  void find_slices();
  void describe();

  // --- nodes
  void import_node(const OnnxNode& node, Scope& scope);
  void call_importer(const OnnxNode& node, const OperatorRow& row, std::int64_t opset,
                     Scope& scope);
  void call_function(const OnnxNode& node, const OnnxFunction& function, Scope& scope);
  Result<std::vector<ValueId>> import_branch(const OnnxGraph& graph, const Scope& scope);
  void look_up_only(const OnnxGraph& graph, const Scope& scope);
  const OperatorRow* find_row(const OnnxNode& node, const Scope& scope);
  const OnnxFunction* find_function(const OnnxNode& node) const;
  void finish(const OnnxNode& node, std::int64_t opset, const Scope& scope, NodeImport& import,
              Result<void> result);

  // --- values
  std::optional<ValueId> find_value(const std::string& name, Scope& scope);
  Value* find_in_scopes(const std::string& name, Scope& scope);
  void define(const std::string& name, ValueId id, Scope& scope) {
    scope.values[name] = {id, nullptr};
  }
  void define_stand_ins(const OnnxNode& node, Scope& scope);
  void declare(const OnnxGraph& graph, Scope& scope) const;

  // --- problems
  void problem(ExitCode exit, const OnnxNode& node, std::int64_t opset, const Scope& scope,
               Diagnostic diagnostic);
  void model_problem(std::string code, std::string message, std::string hint = {});
  void warn(std::string code, std::string message);

  const Model& model_;
  const ImportOptions& options_;
  GraphBuilder builder_;
  Scope top_;
  BoundInputs bound_;
  Problems problems_;
  ImportedModel result_;
  std::size_t stand_ins_ = 0;
};

// --- problems

void GraphImport::problem(ExitCode exit, const OnnxNode& node, std::int64_t opset,
                          const Scope& scope, Diagnostic diagnostic) {
  diagnostic.file = model_.file;
  diagnostic.node = scope.prefix + node.label;
  diagnostic.op = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
  diagnostic.opset = static_cast<int>(std::min<std::int64_t>(opset, 1'000'000));
  problems_.add(exit, std::move(diagnostic));
}

Diagnostic plain(std::string code, std::string message, std::string hint = {}) {
  Diagnostic diagnostic;
  diagnostic.code = std::move(code);
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  return diagnostic;
}

void GraphImport::model_problem(std::string code, std::string message, std::string hint) {
  Diagnostic diagnostic = plain(std::move(code), std::move(message), std::move(hint));
  diagnostic.file = model_.file;
  problems_.add(ExitCode::Unsupported, std::move(diagnostic));
}

void GraphImport::warn(std::string code, std::string message) {
  Diagnostic diagnostic = plain(std::move(code), std::move(message));
  diagnostic.severity = Severity::Warning;
  diagnostic.file = model_.file;
  result_.warnings.push_back(std::move(diagnostic));
}

// --- values

Value* GraphImport::find_in_scopes(const std::string& name, Scope& scope) {
  for (Scope* s = &scope; s != nullptr; s = const_cast<Scope*>(s->outer)) {
    if (const auto found = s->values.find(name); found != s->values.end()) return &found->second;
  }
  return nullptr;
}

std::optional<ValueId> GraphImport::find_value(const std::string& name, Scope& scope) {
  Value* value = find_in_scopes(name, scope);
  if (value == nullptr) return std::nullopt;
  if (value->constant != nullptr) {
    const OnnxTensor& constant = *value->constant;
    value->constant = nullptr;
    if (Result<Tensor> tensor = to_tensor(constant)) {
      value->id = builder_.constant(*std::move(tensor));
    } else {
      for (Diagnostic& diagnostic : tensor.error().diagnostics) {
        diagnostic.file = model_.file;
        problems_.add(tensor.error().exit, std::move(diagnostic));
      }
    }
  }
  if (!value->id.valid()) return std::nullopt;
  return value->id;
}

// Values of a refused node, as far as the file declares their types.
void GraphImport::define_stand_ins(const OnnxNode& node, Scope& scope) {
  for (const std::string& output : node.outputs) {
    if (output.empty()) continue;
    Value& value = scope.values[output];
    value = {};
    const auto declared = scope.declared.find(output);
    if (declared == scope.declared.end()) continue;
    const OnnxValueInfo& info = *declared->second;
    const std::optional<DType> dtype = dtype_from_onnx(info.elem_type);
    const std::optional<Shape> shape = static_shape(info, bound_.symbols);
    if (info.kind != OnnxTypeKind::Tensor || !dtype || !shape) continue;
    std::int64_t size = 1;
    for (const std::int64_t dim : *shape) {
      if (dim > 1 << 20 || (size *= std::max<std::int64_t>(dim, 1)) > 1 << 30) size = -1;
      if (size < 0) break;
    }
    if (size < 0) continue;
    // The first byte is no UTF-8, so that no input of the model has this name.
    value.id = builder_.input(fmt::format("\xFFstand-in {}", stand_ins_++), *dtype, *shape);
  }
}

void GraphImport::declare(const OnnxGraph& graph, Scope& scope) const {
  for (const OnnxTensor& tensor : graph.initializers) {
    scope.values[tensor.name] = {ValueId{}, &tensor};
  }
  for (const OnnxValueInfo& info : graph.values) scope.declared[info.name] = &info;
  for (const OnnxValueInfo& info : graph.outputs) scope.declared[info.name] = &info;
}

// --- the model as a whole

void GraphImport::check_model() {
  for (const Diagnostic& diagnostic : model_.unsupported) {
    problems_.add(ExitCode::Unsupported, diagnostic);
  }
  if (model_.ir_version < oldest_ir_version || model_.ir_version > newest_ir_version) {
    model_problem("unsupported-model",
                  fmt::format("IR version {} is not supported; versions {} to {} are",
                              model_.ir_version, oldest_ir_version, newest_ir_version));
  }
  if (model_.has_training_info) {
    model_problem("unsupported-model", "the model carries training information",
                  "export the model for inference");
  }
  const auto opset = model_.opsets.find("");
  if (opset != model_.opsets.end() && opset->second > newest_opset) {
    model_problem("newer-opset",
                  fmt::format("opset {} is newer than {}", opset->second, newest_opset));
  }
  for (const std::string& name : model_.graph.sparse_initializers) {
    model_problem("unsupported-type", fmt::format("initializer '{}' is sparse", name),
                  "store it dense");
  }
}

// Names that exist before the first node: inputs and initializers, each once.
Result<std::set<std::string>> GraphImport::given_names() const {
  std::set<std::string> names;
  for (const OnnxTensor& tensor : model_.graph.initializers) {
    if (tensor.name.empty() || !names.insert(tensor.name).second) {
      return fail(ExitCode::Malformed, "invalid-model",
                  fmt::format("initializer '{}' is there twice", tensor.name), model_.file);
    }
  }
  for (const std::string& name : model_.graph.sparse_initializers) names.insert(name);
  std::set<std::string> inputs;
  for (const OnnxValueInfo& input : model_.graph.inputs) {
    if (!inputs.insert(input.name).second) {
      return fail(ExitCode::Malformed, "invalid-model",
                  fmt::format("input '{}' is there twice", input.name), model_.file);
    }
    names.insert(input.name);
  }
  return names;
}

Result<void> GraphImport::define_inputs() {
  INGOT_ASSIGN(bound_, bind_inputs(model_, options_));
  for (const OnnxValueInfo& input : model_.graph.inputs) {
    if (!top_.values.contains(input.name)) top_.values[input.name] = {};
  }
  for (const BoundInput& input : bound_.inputs) {
    if (input.value) {
      define(input.name, builder_.constant(*input.value), top_);
      continue;
    }
    define(input.name, builder_.input(input.name, input.dtype, input.shape), top_);
    result_.inputs.push_back({input.name, input.dtype, input.shape});
  }
  for (const Diagnostic& diagnostic : bound_.problems) {
    problems_.add(ExitCode::Unsupported, diagnostic);
  }
  for (const Diagnostic& diagnostic : bound_.warnings) result_.warnings.push_back(diagnostic);
  return {};
}

void GraphImport::check_output(const OnnxValueInfo& output, ValueId value) {
  const std::optional<DType> dtype = dtype_from_onnx(output.elem_type);
  if (dtype && *dtype != builder_.dtype(value)) {
    Diagnostic diagnostic =
        plain("invalid-model", fmt::format("output '{}' is declared {} and computed {}",
                                           output.name, name(*dtype), name(builder_.dtype(value))));
    diagnostic.file = model_.file;
    problems_.add(ExitCode::Malformed, std::move(diagnostic));
  }
  const std::optional<Shape> shape = static_shape(output, bound_.symbols);
  if (shape && *shape != builder_.shape(value)) {
    warn("declared-shape", fmt::format("output '{}' is declared {} and computed {}", output.name,
                                       shape_text(*shape), shape_text(builder_.shape(value))));
  }
}

Result<void> GraphImport::import_outputs() {
  std::set<std::string> names;
  for (const OnnxValueInfo& output : model_.graph.outputs) {
    if (!names.insert(output.name).second) {
      return fail(ExitCode::Malformed, "invalid-model",
                  fmt::format("output '{}' is there twice", output.name), model_.file);
    }
    if (output.kind != OnnxTypeKind::Tensor && output.kind != OnnxTypeKind::Missing) {
      model_problem("unsupported-type", fmt::format("output '{}' is a {}, not a tensor",
                                                    output.name, name(output.kind)));
      continue;
    }
    if (output.kind == OnnxTypeKind::Tensor && output.elem_type != 0 &&
        !dtype_from_onnx(output.elem_type)) {
      model_problem("unsupported-type", fmt::format("output '{}' has element type {}", output.name,
                                                    onnx_type_name(output.elem_type)));
      continue;
    }
    const std::optional<ValueId> value = find_value(output.name, top_);
    if (!value) {
      // Its node was refused, and is in the list.
      if (problems_.empty()) {
        model_problem("unsupported-form", fmt::format("output '{}' has no value", output.name));
      }
      continue;
    }
    check_output(output, *value);
    builder_.output(output.name, *value);
    result_.outputs.push_back({output.name, builder_.dtype(*value), builder_.shape(*value)});
  }
  return {};
}

Result<void> GraphImport::pair_state(const ImportOptions::StatePair& pair, ExitCode exit) {
  const auto& [output, input, place] = pair;
  const auto refuse = [&](std::string message) {
    Diagnostic diagnostic = plain("invalid-state", std::move(message));
    diagnostic.file = place ? place->file : model_.file;
    if (place) diagnostic.node = place->place;
    return fail(place ? ExitCode::Malformed : exit, std::move(diagnostic));
  };
  const auto find = [](const std::vector<ImportedValue>& values, const std::string& name) {
    return std::ranges::find_if(values, [&](const auto& value) { return value.name == name; });
  };
  const auto from = find(result_.outputs, output);
  const auto to = find(result_.inputs, input);
  if (from == result_.outputs.end())
    return refuse(fmt::format("no output '{}' for a state", output));
  if (to == result_.inputs.end()) return refuse(fmt::format("no input '{}' for a state", input));
  if (from->dtype != to->dtype || from->shape != to->shape) {
    return refuse(fmt::format("output '{}' ({}) does not fit the state '{}' ({})", output,
                              to_text(from->dtype, from->shape), input,
                              to_text(to->dtype, to->shape)));
  }
  const ValueId state = top_.values.at(input).id;
  for (const GraphState& other : builder_.graph().states) {
    if (other.state == state) return refuse(fmt::format("state '{}' is set twice", input));
  }
  builder_.state(state, top_.values.at(output).id);
  return {};
}

Result<void> GraphImport::pair_states() {
  std::set<std::string> paired;
  for (const ImportOptions::StatePair& pair : options_.states) {
    INGOT_RETURN_IF_ERROR(pair_state(pair, ExitCode::Usage));
    paired.insert(pair.output);
  }
  if (!options_.find_states) return {};
  constexpr std::string_view next = "next_";
  for (const ImportedValue& output : result_.outputs) {
    if (!output.name.starts_with(next) || paired.contains(output.name)) continue;
    const std::string input = output.name.substr(next.size());
    const bool there =
        std::ranges::any_of(result_.inputs, [&](const auto& i) { return i.name == input; });
    if (there) INGOT_RETURN_IF_ERROR(pair_state({output.name, input}, ExitCode::Malformed));
  }
  return {};
}

// The slices belong to the output `outputs`, or to the only output that is no next state.
void GraphImport::find_slices() {
  const auto entry = model_.metadata.find("output_slices");
  if (entry == model_.metadata.end()) return;
  std::vector<const ImportedValue*> candidates;
  for (const ImportedValue& output : result_.outputs) {
    if (output.name == "outputs") {
      candidates = {&output};
      break;
    }
    if (!output.name.starts_with("next_")) candidates.push_back(&output);
  }
  if (candidates.size() != 1 || candidates[0]->shape.empty()) {
    return warn("unused-slices", "output_slices is left out: it is not clear which output it cuts");
  }
  const std::int64_t width = candidates[0]->shape.back();
  Result<std::vector<OutputSlice>> slices = decode_output_slices(entry->second, width);
  if (slices) slices = sort_slices(*std::move(slices));
  if (!slices) {
    for (Diagnostic& diagnostic : slices.error().diagnostics) {
      diagnostic.file = model_.file;
      problems_.add(slices.error().exit, std::move(diagnostic));
    }
    return;
  }
  std::int64_t place = 0;
  const auto warn_of_gap = [&](std::int64_t end) {
    if (place == end) return;
    warn("unused-slice", fmt::format("values {} to {} of output '{}' are in no slice", place, end,
                                     candidates[0]->name));
  };
  for (const OutputSlice& slice : *slices) {
    warn_of_gap(slice.start);
    place = slice.stop;
  }
  warn_of_gap(width);
  result_.slices = {candidates[0]->name, *std::move(slices)};
}

void GraphImport::describe() {
  result_.metadata = model_.metadata;
  result_.graph_name = model_.graph.name;
  result_.producer_name = model_.producer_name;
  result_.producer_version = model_.producer_version;
  result_.domain = model_.domain;
  result_.ir_version = model_.ir_version;
  result_.model_version = model_.model_version;
  result_.opsets = model_.opsets;
  const auto opset = model_.opsets.find("");
  result_.opset = opset == model_.opsets.end() ? 0 : opset->second;
  result_.sources = model_.sources;
  result_.warnings.insert(result_.warnings.begin(), model_.warnings.begin(), model_.warnings.end());
}

namespace {

// Detectors keep the peaks of a score map by comparing it with its own maximum over a window. Which
// neighbours tie depends on the steps of the sigmoid, and such models are trained and judged with
// runtimes whose sigmoid has steps (docs/math.md).
void use_sigmoid_steps(Graph& graph) {
  if (!tests_equality_of_floats(graph)) return;
  for (Node& node : graph.nodes) {
    const auto* map = std::get_if<MapOp>(&node.op);
    if (map != nullptr && map->op == ScalarOp::Sigmoid) node.op = MapOp{ScalarOp::SigmoidInSteps};
  }
}

}  // namespace

Result<ImportedModel> GraphImport::run() {
  describe();
  check_model();
  if (model_.graph.outputs.empty()) {
    return fail(ExitCode::Malformed, "invalid-model", "the graph has no outputs", model_.file);
  }
  top_.opsets = &model_.opsets;
  declare(model_.graph, top_);
  for (const std::string& name : model_.graph.sparse_initializers) top_.values[name] = {};
  INGOT_ASSIGN(const std::set<std::string> given, given_names());
  INGOT_RETURN_IF_ERROR(define_inputs());

  std::vector<std::string> wanted;
  for (const OnnxValueInfo& output : model_.graph.outputs) wanted.push_back(output.name);
  Result<NodeOrder> order = order_nodes(model_.graph.nodes, given, wanted);
  if (!order) {
    for (Diagnostic& diagnostic : order.error().diagnostics) diagnostic.file = model_.file;
    return std::unexpected(std::move(order).error());
  }
  for (const std::size_t node : order->nodes) import_node(model_.graph.nodes[node], top_);
  if (!order->unused.empty()) {
    warn("unused-nodes",
         fmt::format("{} nodes are left out because no output needs them", order->unused.size()));
  }
  INGOT_RETURN_IF_ERROR(import_outputs());
  if (!bound_.problems.empty()) problems_.keep_shape_independent();
  if (problems_.empty()) {
    INGOT_RETURN_IF_ERROR(pair_states());
    find_slices();
  }
  if (!problems_.empty()) return std::unexpected(problems_.take());
  result_.graph = builder_.take();
  use_sigmoid_steps(result_.graph);
  return std::move(result_);
}

// --- nodes

std::string operator_hint(const OnnxNode& node, std::int64_t opset) {
  if (node.domain.starts_with("ai.onnx.preview.training") ||
      node.domain.starts_with("ai.onnx.training")) {
    return "training operators are not compiled; export the model for inference";
  }
  if (knows_operator(node.domain, node.op_type)) {
    return fmt::format("it is supported in other opsets than {}; convert the model", opset);
  }
  if (!node.domain.empty()) return "rewrite it with operators of ai.onnx or as a model function";
  return "docs/operators.md lists what is supported";
}

const OnnxFunction* GraphImport::find_function(const OnnxNode& node) const {
  for (const OnnxFunction& function : model_.functions) {
    if (function.domain == node.domain && function.name == node.op_type &&
        function.overload == node.overload) {
      return &function;
    }
  }
  return nullptr;
}

// Null, with the problem noted, if the operator is not there.
const OperatorRow* GraphImport::find_row(const OnnxNode& node, const Scope& scope) {
  const auto version = scope.opsets->find(node.domain);
  const std::int64_t opset = version == scope.opsets->end() ? 0 : version->second;
  if (version == scope.opsets->end() && knows_operator(node.domain, node.op_type)) {
    problem(ExitCode::Malformed, node, opset, scope,
            plain("invalid-model", "the model imports no opset of this operator's domain"));
    return nullptr;
  }
  const OperatorRow* row = find_operator(node.domain, node.op_type, opset);
  if (row == nullptr || !node.overload.empty()) {
    problem(
        ExitCode::Unsupported, node, opset, scope,
        plain("unsupported-operator", "the operator is not supported", operator_hint(node, opset)));
    return nullptr;
  }
  return row;
}

void GraphImport::import_node(const OnnxNode& node, Scope& scope) {
  if (const OnnxFunction* function = find_function(node)) {
    return call_function(node, *function, scope);
  }
  const OperatorRow* row = find_row(node, scope);
  if (row == nullptr) {
    for (const OnnxAttribute& attribute : node.attributes) {
      for (const auto& graph : attribute.graphs) look_up_only(*graph, scope);
    }
    return define_stand_ins(node, scope);
  }
  call_importer(node, *row, scope.opsets->at(node.domain), scope);
}

// Values of a node's inputs, or nothing if one of them could not be made.
std::optional<std::vector<ValueId>> collect(const std::vector<std::optional<ValueId>>& found,
                                            const std::vector<std::string>& names) {
  std::vector<ValueId> values;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty() && !found[i]) return std::nullopt;
    values.push_back(found[i].value_or(ValueId{}));
  }
  return values;
}

void GraphImport::call_importer(const OnnxNode& node, const OperatorRow& row, std::int64_t opset,
                                Scope& scope) {
  std::vector<std::optional<ValueId>> found;
  for (const std::string& input : node.inputs) {
    found.push_back(input.empty() ? std::nullopt : find_value(input, scope));
  }
  std::optional<std::vector<ValueId>> values = collect(found, node.inputs);
  if (!values) {
    for (const OnnxAttribute& attribute : node.attributes) {
      for (const auto& graph : attribute.graphs) look_up_only(*graph, scope);
    }
    return define_stand_ins(node, scope);
  }
  builder_.set_source(scope.prefix + node.label);
  bool entered = false;
  NodeImport import(builder_, node, static_cast<int>(opset), *std::move(values),
                    [&](const OnnxGraph& graph) {
                      entered = true;
                      return import_branch(graph, scope);
                    });
  Result<void> result = row.import(import);
  if (result) result = import.no_surplus();
  if (!result && !entered) {
    for (const OnnxAttribute& attribute : node.attributes) {
      for (const auto& graph : attribute.graphs) look_up_only(*graph, scope);
    }
  }
  finish(node, opset, scope, import, std::move(result));
}

// Defines the outputs, or notes why there are none.
void GraphImport::finish(const OnnxNode& node, std::int64_t opset, const Scope& scope,
                         NodeImport& import, Result<void> result) {
  bool good = result.has_value();
  for (const AttributeReader::Problem& p : import.attributes.problems()) {
    good = false;
    problem(p.exit, node, opset, scope, plain(p.code, p.message));
  }
  if (!result) {
    for (Diagnostic& diagnostic : result.error().diagnostics) {
      problem(result.error().exit, node, opset, scope, std::move(diagnostic));
    }
  } else {
    for (const std::string& name : import.attributes.unread()) {
      good = false;
      problem(ExitCode::Unsupported, node, opset, scope,
              plain("unsupported-attribute",
                    fmt::format("attribute '{}' is not supported in this opset", name)));
    }
    for (std::size_t i = 0; i < node.outputs.size() && good; ++i) {
      if (!import.wants_output(i) || import.outputs()[i].valid()) continue;
      good = false;
      problem(ExitCode::Unsupported, node, opset, scope,
              plain("unsupported-form",
                    fmt::format("output {} ('{}') is not supported", i, node.outputs[i])));
    }
  }
  Scope& own = const_cast<Scope&>(scope);
  if (!good) return define_stand_ins(node, own);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (import.wants_output(i)) define(node.outputs[i], import.outputs()[i], own);
  }
}

Result<std::vector<ValueId>> GraphImport::import_branch(const OnnxGraph& graph,
                                                        const Scope& scope) {
  Scope inner;
  inner.outer = &scope;
  inner.opsets = scope.opsets;
  inner.prefix = scope.prefix;
  inner.function_depth = scope.function_depth;
  declare(graph, inner);
  const auto refuse = [&](ExitCode exit, std::string message) {
    return fail(exit, exit == ExitCode::Malformed ? "invalid-model" : "unsupported-type",
                fmt::format("branch '{}': {}", graph.name, message));
  };
  if (!graph.inputs.empty()) return refuse(ExitCode::Malformed, "it has inputs");
  if (!graph.sparse_initializers.empty()) {
    return refuse(ExitCode::Unsupported, "it has sparse initializers");
  }
  std::set<std::string> given = outer_names(graph);
  for (const std::string& name : given) {
    if (find_in_scopes(name, inner) == nullptr) {
      return refuse(ExitCode::Malformed, fmt::format("value '{}' is not defined", name));
    }
  }
  for (const OnnxTensor& tensor : graph.initializers) given.insert(tensor.name);
  std::vector<std::string> wanted;
  for (const OnnxValueInfo& output : graph.outputs) wanted.push_back(output.name);
  INGOT_ASSIGN(const NodeOrder order, order_nodes(graph.nodes, given, wanted));
  for (const std::size_t node : order.nodes) import_node(graph.nodes[node], inner);
  std::vector<ValueId> values;
  for (const std::string& name : wanted) {
    const std::optional<ValueId> value = find_value(name, inner);
    // Its own node is in the list of problems already.
    if (!value) return std::unexpected(Failure{ExitCode::Unsupported, {}});
    values.push_back(*value);
  }
  return values;
}

// For branches that are not imported: are their operators there at all?
void GraphImport::look_up_only(const OnnxGraph& graph, const Scope& scope) {
  for (const OnnxNode& node : graph.nodes) {
    if (find_function(node) == nullptr) (void)find_row(node, scope);
    for (const OnnxAttribute& attribute : node.attributes) {
      for (const auto& inner : attribute.graphs) look_up_only(*inner, scope);
    }
  }
}

// The body's node with the attributes of the call in place of references to them.
OnnxNode resolve_attributes(const OnnxNode& node, const OnnxNode& call,
                            const OnnxFunction& function) {
  OnnxNode resolved = node;
  resolved.attributes.clear();
  for (const OnnxAttribute& attribute : node.attributes) {
    if (attribute.refers_to.empty()) {
      resolved.attributes.push_back(attribute);
      continue;
    }
    const auto named = [&](const auto& a) { return a.name == attribute.refers_to; };
    auto found = std::ranges::find_if(call.attributes, named);
    if (found == call.attributes.end()) {
      found = std::ranges::find_if(function.attribute_defaults, named);
      if (found == function.attribute_defaults.end()) continue;  // left out: the default applies
    }
    resolved.attributes.push_back(*found);
    resolved.attributes.back().name = attribute.name;
  }
  return resolved;
}

// Whether a graph attribute refers to attributes of the call; those are not followed.
bool refers_inside(const OnnxNode& node) {
  for (const OnnxAttribute& attribute : node.attributes) {
    for (const auto& graph : attribute.graphs) {
      for (const OnnxNode& inner : graph->nodes) {
        if (refers_inside(inner)) return true;
        for (const OnnxAttribute& a : inner.attributes) {
          if (!a.refers_to.empty()) return true;
        }
      }
    }
  }
  return false;
}

void GraphImport::call_function(const OnnxNode& node, const OnnxFunction& function, Scope& scope) {
  const auto version = scope.opsets->find(node.domain);
  const std::int64_t opset = version == scope.opsets->end() ? 0 : version->second;
  const auto refuse = [&](ExitCode exit, std::string message) {
    problem(exit, node, opset, scope,
            plain(exit == ExitCode::Malformed ? "invalid-model" : "unsupported-form",
                  std::move(message)));
    define_stand_ins(node, scope);
  };
  if (scope.function_depth >= deepest_functions) {
    return refuse(ExitCode::Malformed, "functions call each other without end");
  }
  if (node.inputs.size() > function.inputs.size() ||
      node.outputs.size() > function.outputs.size()) {
    return refuse(ExitCode::Malformed, "more inputs or outputs than the function has");
  }
  for (const OnnxAttribute& attribute : node.attributes) {
    const auto named = [&](const auto& a) { return a.name == attribute.name; };
    if (std::ranges::find(function.attributes, attribute.name) == function.attributes.end() &&
        std::ranges::none_of(function.attribute_defaults, named)) {
      return refuse(ExitCode::Unsupported,
                    fmt::format("the function has no attribute '{}'", attribute.name));
    }
  }
  std::vector<OnnxNode> body;
  for (const OnnxNode& inner : function.nodes) {
    if (refers_inside(inner)) {
      return refuse(ExitCode::Unsupported, "its branches refer to attributes of the call");
    }
    body.push_back(resolve_attributes(inner, node, function));
  }

  Scope inside;
  inside.opsets = &function.opsets;
  inside.prefix = scope.prefix + node.label + "/";
  inside.function_depth = scope.function_depth + 1;
  std::set<std::string> given;
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    given.insert(function.inputs[i]);
    const bool there = i < node.inputs.size() && !node.inputs[i].empty();
    const std::optional<ValueId> value =
        there ? find_value(node.inputs[i], scope) : std::optional<ValueId>();
    if (there && !value) return define_stand_ins(node, scope);
    // An input that is left out stays an empty name inside.
    if (!there) {
      for (OnnxNode& inner : body) {
        std::ranges::replace(inner.inputs, function.inputs[i], std::string());
      }
    }
    inside.values[function.inputs[i]] = {value.value_or(ValueId{}), nullptr};
  }
  std::vector<std::string> wanted;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].empty()) wanted.push_back(function.outputs[i]);
  }
  const Result<NodeOrder> order = order_nodes(body, given, wanted);
  if (!order) return refuse(ExitCode::Malformed, order.error().diagnostics[0].message);
  for (const std::size_t inner : order->nodes) import_node(body[inner], inside);
  std::vector<ValueId> values(node.outputs.size());
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    const std::optional<ValueId> value = find_value(function.outputs[i], inside);
    if (!value) return define_stand_ins(node, scope);
    values[i] = *value;
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].empty()) define(node.outputs[i], values[i], scope);
  }
}

}  // namespace

Result<ImportedModel> import_graph(const Model& model, const ImportOptions& options) {
  return GraphImport(model, options).run();
}

}  // namespace ingot
