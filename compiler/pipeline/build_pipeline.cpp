// From stages to graphs, in two steps: first the type of every value (models are imported here,
// once), then one graph per camera.
//
// A queue with a delay does not need its value in the same frame, so its stage may come before the
// one that fills it: its samples come from the state, and the state is completed at the end.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/check.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/pipeline/queue.h"

namespace ingot {
namespace {

struct ValueType {
  DType dtype = DType::F32;
  Shape shape;
  friend bool operator==(const ValueType&, const ValueType&) = default;
};

// As many elements as a value of a model may have.
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

bool fits(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) return false;
  }
  return count <= kMostElements;
}

std::string to_text(const ValueType& type) { return to_text(type.dtype, type.shape); }

// Where the text of a value leads.
struct ValueRef {
  enum class Kind { Stage, Declared, Unknown } kind = Kind::Unknown;
  std::size_t index = 0;  // of the stage or the declared input
  std::string output;     // of a model
  std::optional<ValueSlice> slice;
};

// What is known of one stage.
struct StageFacts {
  enum class Typing { Open, Running, Done, Failed } typing = Typing::Open;
  ValueType type;                              // of a warp or queue
  std::shared_ptr<const PipelineModel> model;  // of a model
};

// What is wrong, with the exit code of the first cause.
struct Problems {
  Failure failure;

  void add(ExitCode exit, std::string place, const std::string& file, std::string code,
           std::string message, std::string hint) {
    if (failure.diagnostics.empty()) failure.exit = exit;
    Diagnostic diagnostic;
    diagnostic.code = std::move(code);
    diagnostic.file = file;
    diagnostic.node = std::move(place);
    diagnostic.message = std::move(message);
    diagnostic.hint = std::move(hint);
    failure.diagnostics.push_back(std::move(diagnostic));
  }
  void add(const Failure& other) {
    if (failure.diagnostics.empty()) failure.exit = other.exit;
    failure.diagnostics.insert(failure.diagnostics.end(), other.diagnostics.begin(),
                               other.diagnostics.end());
  }
  [[nodiscard]] bool empty() const { return failure.diagnostics.empty(); }
};

// Inputs of a model that the caller feeds: all but its states.
std::vector<ValueId> fed_inputs(const Graph& graph) {
  std::vector<ValueId> inputs;
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const ValueId id{i};
    if (!std::holds_alternative<InputOp>(graph[id].op)) continue;
    const auto is_this = [&](const GraphState& state) { return state.state == id; };
    if (std::ranges::none_of(graph.states, is_this)) inputs.push_back(id);
  }
  return inputs;
}

const std::string& input_name(const Graph& graph, ValueId id) {
  return std::get<InputOp>(graph[id].op).name;
}

// Outputs that are no state's next value.
std::vector<const GraphOutput*> plain_outputs(const Graph& graph) {
  std::vector<const GraphOutput*> outputs;
  for (const GraphOutput& output : graph.outputs) {
    const auto is_next = [&](const GraphState& state) { return state.next == output.value; };
    if (graph.outputs.size() == 1 || std::ranges::none_of(graph.states, is_next)) {
      outputs.push_back(&output);
    }
  }
  return outputs;
}

const GraphOutput* find_output(const Graph& graph, std::string_view name) {
  const auto found = std::ranges::find(graph.outputs, name, &GraphOutput::name);
  return found == graph.outputs.end() ? nullptr : &*found;
}

std::vector<std::string> names_of(const std::vector<const GraphOutput*>& outputs) {
  std::vector<std::string> names;
  for (const GraphOutput* output : outputs) names.push_back(output->name);
  return names;
}

std::string place_of(std::size_t stage) { return fmt::format("stages[{}]", stage); }

// --- step 1

class PipelineTypes {
 public:
  PipelineTypes(const Pipeline& pipeline, const ModelImporter& importer)
      : pipeline_(pipeline), importer_(importer), facts_(pipeline.stages.size()) {}

  // Types everything; afterwards the stages can be built in `order`.
  void run() {
    for (const PipelineInput& input : pipeline_.inputs) {
      check_size(fmt::format("inputs.{}.shape", input.name), input.shape);
    }
    if (!problems.empty()) return;
    for (std::size_t i = 0; i < pipeline_.stages.size(); ++i) type_stage(i);
    for (std::size_t i = 0; i < pipeline_.stages.size(); ++i) {
      if (facts_[i].typing == StageFacts::Typing::Done) check_stage(i);
    }
    if (problems.empty()) collect_inputs();
    if (problems.empty()) check_outputs();
    if (problems.empty()) sort_stages();
  }

  [[nodiscard]] const StageFacts& facts(std::size_t stage) const { return facts_[stage]; }
  [[nodiscard]] ValueRef find(std::string_view text) const;
  [[nodiscard]] std::string state_name(std::size_t stage, const std::string& name) const {
    return several_models() ? fmt::format("{}.{}", pipeline_.stages[stage].id, name) : name;
  }

  Problems problems;
  std::vector<std::size_t> order;  // of building
  // Inputs that exist because a warp or a model reads them, in order of their first reader.
  std::vector<PipelineInput> transforms;
  std::vector<PipelineInput> implied;

 private:
  void problem(std::size_t stage, std::string_view key, std::string code, std::string message,
               std::string hint = {}) {
    std::string place = place_of(stage);
    if (!key.empty()) place += fmt::format(".{}", key);
    problems.add(ExitCode::Malformed, std::move(place), pipeline_.file, std::move(code),
                 std::move(message), std::move(hint));
  }
  // Whether a value of this shape is possible; if not, says so.
  bool check_size(std::string place, const Shape& shape) {
    if (fits(shape)) return true;
    problems.add(ExitCode::Unsupported, std::move(place), pipeline_.file, "too-large",
                 fmt::format("a value of shape [{}] is too large", fmt::join(shape, ",")), "");
    return false;
  }
  [[nodiscard]] bool several_models() const {
    return std::ranges::count_if(pipeline_.stages, [](const Stage& stage) {
             return std::holds_alternative<ModelStage>(stage.op);
           }) > 1;
  }

  void type_stage(std::size_t index);
  [[nodiscard]] StageFacts::Typing type_queue(std::size_t index, const QueueStage& queue);
  [[nodiscard]] StageFacts::Typing import_model(std::size_t index, const ModelStage& stage);
  // The stage that the text of a value begins with.
  [[nodiscard]] std::optional<std::size_t> stage_of(std::string_view text) const;
  [[nodiscard]] std::optional<ValueType> type_of(const ValueRef& ref) const;
  // Types the stage it leads to first; nothing if that is being typed right now.
  [[nodiscard]] std::optional<ValueType> resolve(std::string_view text);
  [[nodiscard]] std::string why_unknown(std::string_view text) const;

  void check_stage(std::size_t index);
  void check_model(std::size_t index, const ModelStage& stage);
  void collect_inputs();
  void add_input(std::vector<PipelineInput>& list, std::size_t stage, const std::string& name,
                 const ValueType& type);
  void check_outputs();
  void sort_stages();

  const Pipeline& pipeline_;
  const ModelImporter& importer_;
  std::vector<StageFacts> facts_;
};

std::optional<std::size_t> PipelineTypes::stage_of(std::string_view text) const {
  const auto stage =
      std::ranges::find(pipeline_.stages, text.substr(0, text.find('.')), &Stage::id);
  if (stage == pipeline_.stages.end()) return std::nullopt;
  return static_cast<std::size_t>(stage - pipeline_.stages.begin());
}

ValueRef PipelineTypes::find(std::string_view text) const {
  ValueRef ref;
  const auto stage = stage_of(text);
  if (!stage) {
    const auto input = std::ranges::find(pipeline_.inputs, text, &PipelineInput::name);
    if (input == pipeline_.inputs.end()) return ref;
    ref.kind = ValueRef::Kind::Declared;
    ref.index = static_cast<std::size_t>(input - pipeline_.inputs.begin());
    return ref;
  }
  ref.index = *stage;
  const std::string& id = pipeline_.stages[*stage].id;
  const PipelineModel* model = facts_[ref.index].model.get();
  const bool whole = text.size() == id.size();
  if (model == nullptr) {
    if (whole) ref.kind = ValueRef::Kind::Stage;
    return ref;
  }
  if (whole) {
    const auto outputs = plain_outputs(model->graph);
    if (outputs.size() != 1) return ref;
    ref.output = outputs.front()->name;
    ref.kind = ValueRef::Kind::Stage;
    return ref;
  }
  std::string_view output = text.substr(id.size() + 1);
  if (find_output(model->graph, output) == nullptr && output.ends_with(']')) {
    const std::size_t open = output.rfind('[');
    if (open == std::string_view::npos) return ref;
    const std::string_view name = output.substr(open + 1, output.size() - open - 2);
    output = output.substr(0, open);
    const auto slice = std::ranges::find(model->slices, name, &ValueSlice::name);
    if (output != model->sliced_output || slice == model->slices.end()) return ref;
    ref.slice = *slice;
  }
  if (find_output(model->graph, output) == nullptr) return ref;
  ref.output = output;
  ref.kind = ValueRef::Kind::Stage;
  return ref;
}

std::optional<ValueType> PipelineTypes::type_of(const ValueRef& ref) const {
  if (ref.kind == ValueRef::Kind::Unknown) return std::nullopt;
  if (ref.kind == ValueRef::Kind::Declared) {
    const PipelineInput& input = pipeline_.inputs[ref.index];
    return ValueType{input.dtype, input.shape};
  }
  const StageFacts& facts = facts_[ref.index];
  if (facts.typing != StageFacts::Typing::Done) return std::nullopt;
  if (!facts.model) return facts.type;
  const Graph& graph = facts.model->graph;
  const Node& node = graph[find_output(graph, ref.output)->value];
  ValueType type{node.dtype, node.shape};
  if (ref.slice) {
    if (type.shape.empty() || ref.slice->stop > type.shape.back()) return std::nullopt;
    type.shape.back() = ref.slice->stop - ref.slice->start;
  }
  return type;
}

std::optional<ValueType> PipelineTypes::resolve(std::string_view text) {
  if (const auto stage = stage_of(text)) type_stage(*stage);
  return type_of(find(text));
}

std::string PipelineTypes::why_unknown(std::string_view text) const {
  const auto stage = stage_of(text);
  if (!stage) return "no stage or declared input has this name";
  const std::string& id = pipeline_.stages[*stage].id;
  if (text == id && facts_[*stage].typing != StageFacts::Typing::Done) {
    return fmt::format("nothing says what '{}' is", id);
  }
  const PipelineModel* model = facts_[*stage].model.get();
  if (model == nullptr) return fmt::format("stage '{}' has one result and no outputs", id);
  std::string why = fmt::format("outputs of '{}': {}", id,
                                fmt::join(names_of(plain_outputs(model->graph)), ", "));
  if (!model->slices.empty()) {
    std::vector<std::string> names;
    for (const ValueSlice& slice : model->slices) names.push_back(slice.name);
    why += fmt::format("; slices of '{}': {}", model->sliced_output, fmt::join(names, ", "));
  }
  return why;
}

void PipelineTypes::type_stage(std::size_t index) {
  StageFacts& facts = facts_[index];
  if (facts.typing != StageFacts::Typing::Open) return;
  facts.typing = StageFacts::Typing::Running;
  auto typing = StageFacts::Typing::Done;
  if (const auto* stage = std::get_if<WarpStage>(&pipeline_.stages[index].op)) {
    const Warp& warp = stage->warp;
    const auto count = static_cast<std::int64_t>(stage->frames.size());
    facts.type.dtype = DType::U8;
    facts.type.shape = warp.cabin ? Shape{1, warp.width * warp.height}
                                  : Shape{count, 6, warp.height / 2, warp.width / 2};
  } else if (const auto* queue = std::get_if<QueueStage>(&pipeline_.stages[index].op)) {
    typing = type_queue(index, *queue);
  } else {
    typing = import_model(index, std::get<ModelStage>(pipeline_.stages[index].op));
  }
  facts.typing = typing;
}

StageFacts::Typing PipelineTypes::type_queue(std::size_t index, const QueueStage& queue) {
  if (stage_of(queue.value) == index) {
    problem(index, "queue", "cycle", fmt::format("the queue '{}' is its own source", queue.value));
    return StageFacts::Typing::Failed;
  }
  const std::size_t before = problems.failure.diagnostics.size();
  const std::optional<ValueType> entry = resolve(queue.value);
  if (!entry) {
    // The stage that fills it may be waiting for this very queue: it is typed again from there.
    const std::optional<std::size_t> source = stage_of(queue.value);
    if (source && facts_[*source].typing == StageFacts::Typing::Running) {
      return StageFacts::Typing::Open;
    }
    if (source && facts_[*source].typing == StageFacts::Typing::Failed) {
      return StageFacts::Typing::Failed;  // and it said why
    }
    if (problems.failure.diagnostics.size() == before) {
      problem(index, "queue", "unknown-value", fmt::format("unknown value '{}'", queue.value),
              why_unknown(queue.value));
    }
    return StageFacts::Typing::Failed;
  }
  const auto rank = static_cast<int>(entry->shape.size());
  const int last = queue.stack ? rank : rank - 1;
  if (queue.axis > last || rank > 6) {
    problem(index, queue.stack ? "stack" : "concat", "bad-axis",
            fmt::format("{} has no place for axis {}", to_text(*entry), queue.axis),
            rank > 6 ? "entries of a queue have at most 6 dimensions" : "");
    return StageFacts::Typing::Failed;
  }
  if (queue.pool_max && !accepts(ScalarOp::Max, entry->dtype)) {
    problem(index, "pool", "bad-pool", fmt::format("{} has no maximum", to_text(*entry)));
    return StageFacts::Typing::Failed;
  }
  if (!is_float(entry->dtype) && queue.initial != 0) {
    const auto whole = Scalar::of_int(entry->dtype, std::llrint(queue.initial));
    if (std::fabs(queue.initial) > 0x1p62 || whole.as_double() != queue.initial) {
      problem(index, "initial", "bad-value",
              fmt::format("{} is no {}", queue.initial, name(entry->dtype)));
      return StageFacts::Typing::Failed;
    }
  }
  if (is_float(entry->dtype) &&
      !std::isfinite(Scalar::of_float(entry->dtype, queue.initial).as_double())) {
    problem(index, "initial", "bad-value",
            fmt::format("{} is no finite {}", queue.initial, name(entry->dtype)));
    return StageFacts::Typing::Failed;
  }
  const std::string place = fmt::format("{}.samples", place_of(index));
  if (!check_size(place, queue_history(queue, entry->shape))) return StageFacts::Typing::Failed;
  facts_[index].type = {entry->dtype, queue_shape(queue, entry->shape)};
  return StageFacts::Typing::Done;
}

StageFacts::Typing PipelineTypes::import_model(std::size_t index, const ModelStage& stage) {
  StageFacts& facts = facts_[index];
  if (stage.imported) {
    facts.model = stage.imported;
    return StageFacts::Typing::Done;
  }
  ModelRequest request;
  request.path = stage.path;
  request.stage = pipeline_.stages[index].id;
  request.place = place_of(index);
  request.states = stage.states;
  for (const auto& [input, value] : stage.inputs) {
    if (const auto type = resolve(value)) request.shapes[input] = type->shape;
  }
  Result<PipelineModel> model = importer_(request);
  if (!model) {
    problems.add(model.error());
    return StageFacts::Typing::Failed;
  }
  facts.model = std::make_shared<const PipelineModel>(std::move(*model));
  return StageFacts::Typing::Done;
}

void PipelineTypes::check_stage(std::size_t index) {
  if (const auto* stage = std::get_if<ModelStage>(&pipeline_.stages[index].op)) {
    check_model(index, *stage);
  }
}

void PipelineTypes::check_model(std::size_t index, const ModelStage& stage) {
  const Graph& graph = facts_[index].model->graph;
  const std::vector<ValueId> inputs = fed_inputs(graph);
  std::vector<std::string> names;
  for (const ValueId id : inputs) names.push_back(input_name(graph, id));
  for (const auto& [name, value] : stage.inputs) {
    const std::string key = fmt::format("inputs.{}", name);
    const auto position = std::ranges::find(names, name);
    if (position == names.end()) {
      problem(index, key, "unknown-input", fmt::format("the model has no input '{}' to feed", name),
              fmt::format("its inputs are: {}", fmt::join(names, ", ")));
      continue;
    }
    const Node& node = graph[inputs[static_cast<std::size_t>(position - names.begin())]];
    const ValueType wanted{node.dtype, node.shape};
    const std::optional<std::size_t> source = stage_of(value);
    if (source && facts_[*source].typing != StageFacts::Typing::Done) continue;  // said there
    const ValueRef ref = find(value);
    if (ref.kind == ValueRef::Kind::Unknown) {
      // A plain name without a stage is an input of the pipeline, with the model's own type.
      const bool plain = value.find_first_of(".[]") == std::string::npos;
      const bool is_frame = std::ranges::find(pipeline_.frames, value) != pipeline_.frames.end();
      if (!plain || source || is_frame) {
        problem(index, key, "unknown-value", fmt::format("unknown value '{}'", value),
                is_frame ? "a frame is read through a warp" : why_unknown(value));
      }
      continue;
    }
    const std::optional<ValueType> given = type_of(ref);
    if (!given) {
      problem(index, key, "bad-slice", fmt::format("'{}' is longer than its output", value));
      continue;
    }
    if (*given != wanted) {
      problem(index, key, "type-differs",
              fmt::format("'{}' is {}, and the model's input '{}' is {}", value, to_text(*given),
                          name, to_text(wanted)));
    }
  }
}

void PipelineTypes::add_input(std::vector<PipelineInput>& list, std::size_t stage,
                              const std::string& name, const ValueType& type) {
  for (const PipelineInput& other : pipeline_.inputs) {
    if (other.name != name) continue;
    problem(stage, "", "repeated-name",
            fmt::format("input '{}' is declared, and this stage reads it without naming it", name),
            fmt::format("map it: \"inputs\": {{\"{}\": \"{}\"}}", name, name));
    return;
  }
  for (const auto* known : {&transforms, &implied}) {
    const auto same = std::ranges::find(*known, name, &PipelineInput::name);
    if (same == known->end()) continue;
    if (known != &list || ValueType{same->dtype, same->shape} != type) {
      problem(stage, "", "repeated-name",
              fmt::format("input '{}' is {} here and {} elsewhere", name, to_text(type),
                          to_text(same->dtype, same->shape)),
              "map one of them to another name");
    }
    return;
  }
  const bool is_frame = std::ranges::find(pipeline_.frames, name) != pipeline_.frames.end();
  const bool is_stage =
      std::ranges::find(pipeline_.stages, name, &Stage::id) != pipeline_.stages.end();
  if (is_frame || is_stage) {
    problem(stage, "", "repeated-name",
            fmt::format("input '{}' has the name of a {}", name, is_frame ? "frame" : "stage"),
            "map it to a value under 'inputs'");
    return;
  }
  list.push_back({.name = name, .dtype = type.dtype, .shape = type.shape});
}

void PipelineTypes::collect_inputs() {
  std::set<std::string> read;
  for (std::size_t i = 0; i < pipeline_.stages.size(); ++i) {
    if (const auto* stage = std::get_if<WarpStage>(&pipeline_.stages[i].op)) {
      const auto count = static_cast<std::int64_t>(stage->frames.size());
      add_input(transforms, i, stage->transform,
                {DType::F32, count == 1 ? Shape{3, 3} : Shape{count, 3, 3}});
    } else if (const auto* queue = std::get_if<QueueStage>(&pipeline_.stages[i].op)) {
      read.insert(queue->value);
    } else {
      const auto& model = std::get<ModelStage>(pipeline_.stages[i].op);
      const Graph& graph = facts_[i].model->graph;
      for (const ValueId id : fed_inputs(graph)) {
        std::string name = input_name(graph, id);
        const auto mapped =
            std::ranges::find(model.inputs, name, &std::pair<std::string, std::string>::first);
        if (mapped != model.inputs.end()) {
          name = mapped->second;
          read.insert(name);
          if (find(name).kind != ValueRef::Kind::Unknown) continue;
        }
        add_input(implied, i, name, {graph[id].dtype, graph[id].shape});
      }
    }
  }
  for (const PipelineInput& input : pipeline_.inputs) {
    if (!read.contains(input.name)) {
      problems.add(ExitCode::Malformed, fmt::format("inputs.{}", input.name), pipeline_.file,
                   "unused-input", "no stage reads this input", "");
    }
  }
}

void PipelineTypes::check_outputs() {
  std::set<std::string> taken(pipeline_.frames.begin(), pipeline_.frames.end());
  const auto take = [&](const std::vector<PipelineInput>& inputs) {
    for (const PipelineInput& input : inputs) taken.insert(input.name);
  };
  take(pipeline_.inputs);
  take(transforms);
  take(implied);
  for (std::size_t i = 0; i < pipeline_.stages.size(); ++i) {
    const Stage& stage = pipeline_.stages[i];
    const auto take_state = [&](const std::string& name) {
      if (taken.insert(name).second) return;
      problem(i, "", "repeated-name",
              fmt::format("state '{}' has the name of another input", name));
    };
    const auto* queue = std::get_if<QueueStage>(&stage.op);
    if (queue != nullptr && queue_length(*queue) > 1) {
      take_state(queue_state_name(stage.id));
      take_state(queue_entry_name(stage.id));
    }
    if (!facts_[i].model) continue;
    const Graph& graph = facts_[i].model->graph;
    for (const GraphState& state : graph.states) {
      take_state(state_name(i, input_name(graph, state.state)));
    }
  }
  for (const auto& [name, value] : pipeline_.outputs) {
    const std::string place = fmt::format("outputs.{}", name);
    if (!taken.insert(name).second) {
      problems.add(ExitCode::Malformed, place, pipeline_.file, "repeated-name",
                   fmt::format("output '{}' has the name of an input or state", name), "");
    }
    const ValueRef ref = find(value);
    if (ref.kind != ValueRef::Kind::Stage || !type_of(ref)) {
      problems.add(ExitCode::Malformed, place, pipeline_.file, "unknown-value",
                   fmt::format("'{}' is no result of a stage", value), why_unknown(value));
    }
  }
}

// In file order, but every stage after those it needs in the same frame.
void PipelineTypes::sort_stages() {
  enum class Visit { Open, Running, Done };
  std::vector<Visit> visits(pipeline_.stages.size(), Visit::Open);
  std::vector<std::size_t> path;
  const auto visit = [&](const auto& self, std::size_t index) -> bool {
    if (visits[index] == Visit::Done) return true;
    path.push_back(index);
    if (visits[index] == Visit::Running) {
      std::vector<std::string> ids;
      for (auto it = std::ranges::find(path, index); it != path.end(); ++it) {
        ids.push_back(pipeline_.stages[*it].id);
      }
      problem(index, "", "cycle",
              fmt::format("stages need each other in the same frame: {}", fmt::join(ids, " <- ")),
              "a queue between them with \"delay\": 1 or more reads earlier frames only");
      return false;
    }
    visits[index] = Visit::Running;
    std::vector<std::string> needed;
    if (const auto* queue = std::get_if<QueueStage>(&pipeline_.stages[index].op)) {
      if (queue->delay == 0) needed.push_back(queue->value);
    } else if (const auto* model = std::get_if<ModelStage>(&pipeline_.stages[index].op)) {
      for (const auto& [input, value] : model->inputs) needed.push_back(value);
    }
    for (const std::string& value : needed) {
      const ValueRef ref = find(value);
      if (ref.kind == ValueRef::Kind::Stage && !self(self, ref.index)) return false;
    }
    visits[index] = Visit::Done;
    path.pop_back();
    order.push_back(index);
    return true;
  };
  for (std::size_t i = 0; i < pipeline_.stages.size(); ++i) {
    if (!visit(visit, i)) return;
  }
}

// --- step 2

class PipelineGraph {
 public:
  PipelineGraph(const Pipeline& pipeline, const PipelineTypes& types)
      : pipeline_(pipeline),
        types_(types),
        builder_(pipeline.name),
        results_(pipeline.stages.size()),
        queues_(pipeline.stages.size()) {}

  Graph build(const Camera* camera, int camera_index) {
    for (const std::string& frame : pipeline_.frames) {
      const Shape shape = {static_cast<std::int64_t>(camera->size_bytes)};
      const ValueId input = add_input({.name = frame, .dtype = DType::U8, .shape = shape});
      builder_.camera({.input = input, .camera = camera_index});
    }
    for (const auto* list : {&types_.transforms, &pipeline_.inputs, &types_.implied}) {
      for (const PipelineInput& input : *list) add_input(input);
    }
    for (const std::size_t index : types_.order) {
      builder_.set_source(pipeline_.stages[index].id);
      build_stage(index, camera);
    }
    finish_queues();
    for (const auto& [name, value] : pipeline_.outputs) builder_.output(name, value_of(value));
    return builder_.take();
  }

 private:
  ValueId add_input(const PipelineInput& input) {
    const ValueId id = builder_.input(input.name, input.dtype, input.shape);
    inputs_[input.name] = id;
    return id;
  }

  ValueId value_of(const std::string& text) {
    const ValueRef ref = types_.find(text);
    if (ref.kind != ValueRef::Kind::Stage) return inputs_.at(text);
    const ValueId whole = results_[ref.index].at(ref.output);
    if (!ref.slice) return whole;
    Shape shape = builder_.shape(whole);
    std::vector<std::int64_t> starts(shape.size(), 0);
    const std::vector<std::int64_t> steps(shape.size(), 1);
    starts.back() = ref.slice->start;
    shape.back() = ref.slice->stop - ref.slice->start;
    return builder_.slice(whole, starts, steps, shape);
  }

  void build_stage(std::size_t index, const Camera* camera) {
    const Stage& stage = pipeline_.stages[index];
    if (const auto* warp = std::get_if<WarpStage>(&stage.op)) {
      std::vector<ValueId> frames;
      for (const std::string& frame : warp->frames) frames.push_back(inputs_.at(frame));
      const ValueId matrix = inputs_.at(warp->transform);
      results_[index][""] = warp->warp.cabin
                                ? cabin_warp(builder_, warp->warp, *camera, frames.front(), matrix)
                                : road_warp(builder_, warp->warp, *camera, frames, matrix);
    } else if (const auto* queue = std::get_if<QueueStage>(&stage.op)) {
      build_queue(index, *queue);
    } else {
      build_model(index, std::get<ModelStage>(stage.op));
    }
  }

  void build_queue(std::size_t index, const QueueStage& queue) {
    // Undo queue_shape: the entry's type is that of the value, which may not be built yet.
    const ValueType& sampled = types_.facts(index).type;
    Shape entry = sampled.shape;
    if (queue.stack) {
      entry.erase(entry.begin() + queue.axis);
    } else {
      entry[static_cast<std::size_t>(queue.axis)] /= queue.samples;
    }
    std::optional<ValueId> newest;
    if (queue.delay == 0) newest = value_of(queue.value);
    queues_[index] =
        sample_queue(builder_, queue, pipeline_.stages[index].id, sampled.dtype, entry, newest);
    results_[index][""] = queues_[index].samples;
  }

  void finish_queues() {
    for (std::size_t i = 0; i < pipeline_.stages.size(); ++i) {
      const auto* queue = std::get_if<QueueStage>(&pipeline_.stages[i].op);
      if (queue == nullptr) continue;
      builder_.set_source(pipeline_.stages[i].id);
      append_to_queue(builder_, *queue, queues_[i], value_of(queue->value));
    }
  }

  void build_model(std::size_t index, const ModelStage& stage) {
    const Graph& graph = types_.facts(index).model->graph;
    std::vector<GraphBuilder::Binding> bindings;
    for (const ValueId id : fed_inputs(graph)) {
      const std::string& name = input_name(graph, id);
      const auto mapped =
          std::ranges::find(stage.inputs, name, &std::pair<std::string, std::string>::first);
      bindings.push_back(
          {.name = name,
           .value = mapped == stage.inputs.end() ? inputs_.at(name) : value_of(mapped->second)});
    }
    std::vector<ValueId> states;
    for (const GraphState& state : graph.states) {
      const Node& node = graph[state.state];
      const std::string& name = input_name(graph, state.state);
      states.push_back(builder_.input(types_.state_name(index, name), node.dtype, node.shape));
      bindings.push_back({.name = name, .value = states.back()});
    }
    const std::vector<ValueId> values = builder_.splice(graph, bindings);
    for (std::size_t i = 0; i < graph.states.size(); ++i) {
      const GraphState& state = graph.states[i];
      INGOT_CHECK(!state.entry, "an imported model has no rings");
      builder_.state(states[i], values[state.next.index], state.initial);
    }
    for (const GraphOutput& output : graph.outputs) {
      results_[index][output.name] = values[output.value.index];
    }
  }

  const Pipeline& pipeline_;
  const PipelineTypes& types_;
  GraphBuilder builder_;
  std::map<std::string, ValueId> inputs_;
  std::vector<std::map<std::string, ValueId>> results_;  // per stage, by output name
  std::vector<Queue> queues_;
};

// --- stages that come to nothing

// The values that a stage reads, as the file has them.
std::vector<std::string> values_read(const Stage& stage) {
  std::vector<std::string> values;
  if (const auto* queue = std::get_if<QueueStage>(&stage.op)) {
    values.push_back(queue->value);
  } else if (const auto* model = std::get_if<ModelStage>(&stage.op)) {
    for (const auto& [input, value] : model->inputs) values.push_back(value);
  }
  return values;
}

std::string described(const Stage& stage) {
  const char* kind = std::holds_alternative<WarpStage>(stage.op)    ? "warp"
                     : std::holds_alternative<QueueStage>(stage.op) ? "queue"
                                                                    : "model";
  return fmt::format("{} '{}'", kind, stage.id);
}

// A name that is misspelt where it is read becomes an input of the caller, and what was meant is
// computed for nobody.
void warn_of_unread_stages(const Pipeline& pipeline, const PipelineTypes& types,
                           PipelineResult& result) {
  std::vector<bool> read(pipeline.stages.size(), false);
  std::vector<bool> reaches(pipeline.stages.size(), false);  // an output
  const auto visit = [&](const auto& self, const std::string& value) -> void {
    const ValueRef ref = types.find(value);
    if (ref.kind != ValueRef::Kind::Stage || reaches[ref.index]) return;
    reaches[ref.index] = true;
    for (const std::string& source : values_read(pipeline.stages[ref.index])) self(self, source);
  };
  for (const auto& [name, value] : pipeline.outputs) visit(visit, value);
  std::set<std::string> undeclared;  // names of its own that the file gives to inputs
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
    if (const auto* model = std::get_if<ModelStage>(&pipeline.stages[i].op)) {
      for (const auto& [input, value] : model->inputs) {
        const bool unknown = types.find(value).kind == ValueRef::Kind::Unknown;
        if (unknown && value != input) undeclared.insert(value);
      }
    }
    for (const std::string& value : values_read(pipeline.stages[i])) {
      const ValueRef ref = types.find(value);
      if (ref.kind == ValueRef::Kind::Stage && ref.index != i) read[ref.index] = true;
    }
  }
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
    if (reaches[i]) continue;
    Diagnostic warning;
    warning.severity = Severity::Warning;
    warning.code = "unread-stage";
    warning.file = pipeline.file;
    warning.node = place_of(i);
    const std::string stage = described(pipeline.stages[i]);
    warning.message = read[i] ? fmt::format("the result of {} reaches no output", stage)
                              : fmt::format("no stage and no output reads {}", stage);
    if (!read[i] && !undeclared.empty()) {
      warning.hint = fmt::format("names that no stage has became inputs of the artifact: {}",
                                 fmt::join(undeclared, ", "));
    }
    result.warnings.push_back(std::move(warning));
  }
}

void describe_models(const Pipeline& pipeline, const PipelineTypes& types, PipelineResult& result) {
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
    const auto& model = types.facts(i).model;
    if (!model) continue;
    PipelineResult::Part part{.stage = pipeline.stages[i].id, .model = *model};
    part.model.graph = {};
    result.warnings.insert(result.warnings.end(), model->warnings.begin(), model->warnings.end());
    result.models.push_back(std::move(part));
  }
  for (const auto& [name, value] : pipeline.outputs) {
    const ValueRef ref = types.find(value);
    const auto& model = types.facts(ref.index).model;
    if (model && !ref.slice && ref.output == model->sliced_output) {
      result.slices.push_back({.output = name, .slices = model->slices});
    }
  }
}

}  // namespace

Result<PipelineResult> build_pipeline(const Pipeline& pipeline, const std::vector<Camera>& cameras,
                                      const ModelImporter& importer) {
  if (pipeline.frames.empty() != cameras.empty()) {
    return fail(ExitCode::Usage, "camera-without-warp",
                "a camera and a warp belong together, and only one of them is given",
                pipeline.file);
  }
  PipelineTypes types(pipeline, importer);
  for (std::size_t i = 0; i < cameras.size(); ++i) {
    const auto same = std::ranges::find(cameras, cameras[i].name, &Camera::name);
    if (same != cameras.begin() + static_cast<std::ptrdiff_t>(i)) {
      types.problems.add(ExitCode::Malformed, fmt::format("cameras[{}]", i), pipeline.file,
                         "repeated-name",
                         fmt::format("another camera is called '{}'", cameras[i].name), "");
    }
  }
  types.run();
  if (!types.problems.empty()) return std::unexpected(std::move(types.problems.failure));

  PipelineResult result;
  result.name = pipeline.name;
  result.cameras = cameras;
  result.packed = pipeline.packed;
  result.frame_period_us = pipeline.frame_period_us;
  for (std::size_t i = 0; i < std::max<std::size_t>(cameras.size(), 1); ++i) {
    const Camera* camera = cameras.empty() ? nullptr : &cameras[i];
    result.input.variants.push_back(
        {.camera = camera == nullptr ? std::string() : camera->name,
         .graph = PipelineGraph(pipeline, types).build(camera, static_cast<int>(i))});
  }
  describe_models(pipeline, types, result);
  warn_of_unread_stages(pipeline, types, result);
  return result;
}

}  // namespace ingot
