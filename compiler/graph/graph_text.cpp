// Printing and parsing of graphs; the grammar is in docs/ir/graph.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "compiler/graph/graph.h"

namespace ingot {
namespace {

constexpr std::int64_t kInlineElements = 64;

// --- printing

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string text_of(const std::vector<AffineIndex>& indices) {
  std::vector<std::string> texts;
  for (const AffineIndex& index : indices) texts.push_back(to_text(index));
  return fmt::format("[{}]", fmt::join(texts, ","));
}

std::string text_of(const Tensor& tensor) {
  const std::int64_t count = element_count(tensor.shape);
  if (count > kInlineElements) return "#" + digest(tensor);
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < count; ++i) texts.push_back(to_text(tensor.at(i)));
  return fmt::format("{{{}}}", fmt::join(texts, ","));
}

struct OperationName {
  std::string operator()(const InputOp&) const { return "input"; }
  std::string operator()(const ConstantOp&) const { return "constant"; }
  std::string operator()(const IotaOp&) const { return "iota"; }
  std::string operator()(const MapOp& op) const { return fmt::format("map.{}", name(op.op)); }
  std::string operator()(const CastOp&) const { return "cast"; }
  std::string operator()(const ViewOp&) const { return "view"; }
  std::string operator()(const ReshapeOp&) const { return "reshape"; }
  std::string operator()(const ConcatOp&) const { return "concat"; }
  std::string operator()(const ReduceNodeOp& op) const {
    return fmt::format("reduce.{}", name(op.op));
  }
  std::string operator()(const ContractOp&) const { return "contract"; }
  std::string operator()(const GatherOp&) const { return "gather"; }
};

// What follows the inputs, with a leading space.
struct Attributes {
  std::string operator()(const InputOp& op) const { return " " + quoted(op.name); }
  std::string operator()(const ConstantOp& op) const { return " " + text_of(op.tensor); }
  std::string operator()(const IotaOp& op) const { return fmt::format(" axis={}", op.axis); }
  std::string operator()(const MapOp&) const { return {}; }
  std::string operator()(const CastOp&) const { return {}; }
  std::string operator()(const ViewOp& op) const {
    std::string text = " " + text_of(op.index);
    if (op.fill) text += " fill " + to_text(*op.fill);
    return text;
  }
  std::string operator()(const ReshapeOp&) const { return {}; }
  std::string operator()(const ConcatOp& op) const { return fmt::format(" axis={}", op.axis); }
  std::string operator()(const ReduceNodeOp& op) const {
    return fmt::format(" axes=[{}]", fmt::join(op.axes, ","));
  }
  std::string operator()(const ContractOp& op) const {
    const auto split = op.extents.begin() + op.output_axes;
    std::string text =
        fmt::format(" extents=[{}|{}] output={}", fmt::join(op.extents.begin(), split, ","),
                    fmt::join(split, op.extents.end(), ","), text_of(op.output));
    for (const auto& operand : op.operands) text += " reads=" + text_of(operand);
    return text;
  }
  std::string operator()(const GatherOp& op) const {
    return fmt::format(" axis={}{}", op.axis, op.in_range ? " in_range" : "");
  }
};

// --- parsing

// The rest of one line. Every take_ skips blanks first and consumes only what it accepts.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  bool take(std::string_view wanted) {
    skip_blanks();
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(wanted.size());
    return true;
  }

  // A word stands alone: "fill" does not match "filled".
  bool take_word(std::string_view wanted) {
    skip_blanks();
    if (!rest_.starts_with(wanted)) return false;
    if (rest_.size() > wanted.size() && !std::string_view(" \t").contains(rest_[wanted.size()])) {
      return false;
    }
    rest_.remove_prefix(wanted.size());
    return true;
  }

  // Up to a blank or one of the delimiters of lists.
  std::string_view token() {
    skip_blanks();
    return cut(rest_.find_first_of(" \t,[]{}|=\""));
  }

  template <typename T>
  std::optional<T> number() {
    skip_blanks();
    T value{};
    const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()));
    return value;
  }

  std::optional<std::string> quoted_text() {
    if (!take("\"")) return std::nullopt;
    std::string text;
    while (!rest_.empty() && rest_.front() != '"') {
      if (rest_.front() != '\\') {
        text += rest_.front();
        rest_.remove_prefix(1);
      } else if (rest_.starts_with("\\x") && rest_.size() >= 4) {
        unsigned code = 0;
        const auto [stop, error] = std::from_chars(rest_.data() + 2, rest_.data() + 4, code, 16);
        if (error != std::errc() || stop != rest_.data() + 4) return std::nullopt;
        text += static_cast<char>(code);
        rest_.remove_prefix(4);
      } else if (rest_.size() >= 2) {
        text += rest_[1];
        rest_.remove_prefix(2);
      } else {
        return std::nullopt;
      }
    }
    if (!take_raw('"')) return std::nullopt;
    return text;
  }

  // Comma-separated numbers up to `close`, which is consumed.
  template <typename T>
  std::optional<std::vector<T>> numbers_until(char close) {
    std::vector<T> values;
    if (take(std::string_view(&close, 1))) return values;
    do {
      const auto value = number<T>();
      if (!value) return std::nullopt;
      values.push_back(*value);
    } while (take(","));
    if (!take(std::string_view(&close, 1))) return std::nullopt;
    return values;
  }

  std::optional<std::vector<AffineIndex>> indices() {
    if (!take("[")) return std::nullopt;
    std::vector<AffineIndex> values;
    if (take("]")) return values;
    do {
      const auto value = affine_from_text(token());
      if (!value) return std::nullopt;
      values.push_back(*value);
    } while (take(","));
    if (!take("]")) return std::nullopt;
    return values;
  }

  bool next_is(char wanted) {
    skip_blanks();
    return rest_.starts_with(wanted);
  }

  bool at_end() {
    skip_blanks();
    return rest_.empty();
  }

 private:
  void skip_blanks() {
    const std::size_t count = rest_.find_first_not_of(" \t\r");
    rest_.remove_prefix(count == std::string_view::npos ? rest_.size() : count);
  }
  bool take_raw(char wanted) {
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view cut(std::size_t size) {
    const std::string_view result = rest_.substr(0, size);
    rest_.remove_prefix(result.size());
    return result;
  }

  std::string_view rest_;
};

// Throughout, an empty message means that all went well; otherwise it says what was expected.
class Parser {
 public:
  explicit Parser(const DigestedConstants& constants) : constants_(constants) {}

  Result<Graph> parse(std::string_view text) {
    int number = 0;
    while (!text.empty()) {
      ++number;
      const std::size_t end = text.find('\n');
      Line line(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (line.at_end() || line.take(";")) continue;
      std::string message = parse_line(line);
      if (message.empty() && !line.at_end()) message = "nothing more on this line";
      if (!message.empty()) return malformed(number, message);
    }
    if (place_ != Place::After) return malformed(number, "a closing brace");
    return std::move(graph_);
  }

 private:
  enum class Place { Before, Inside, After };

  static std::unexpected<Failure> malformed(int line, const std::string& message) {
    return fail(ExitCode::Malformed, "malformed-graph-text",
                fmt::format("line {}: expected {}", line, message));
  }

  std::string parse_line(Line& line) {
    if (place_ == Place::Before) {
      const bool keyword = line.take_word("graph");
      auto name = line.quoted_text();
      if (!keyword || !name || !line.take("{")) return "'graph \"NAME\" {'";
      graph_.name = std::move(*name);
      place_ = Place::Inside;
      return {};
    }
    if (place_ == Place::After) return "the end of the text";
    if (line.take("}")) {
      place_ = Place::After;
      return {};
    }
    if (line.take_word("output")) return parse_output(line);
    if (line.take_word("state")) return parse_state(line);
    if (line.take_word("transform")) return parse_transform(line);
    if (line.take_word("camera")) return parse_camera(line);
    return parse_node(line);
  }

  std::optional<ValueId> value(Line& line) const {
    if (!line.take("%")) return std::nullopt;
    const auto index = line.number<std::uint32_t>();
    if (!index || *index >= graph_.nodes.size()) return std::nullopt;
    return ValueId{*index};
  }

  template <typename T>
  static bool attribute(Line& line, std::string_view key, T& result) {
    if (!line.take(key) || !line.take("=")) return false;
    const auto number = line.number<T>();
    if (number) result = *number;
    return number.has_value();
  }

  std::string parse_type(Line& line, DType& dtype, Shape& shape) const {
    const auto parsed = dtype_from_name(line.token());
    if (!parsed || !line.take("[")) return "a type such as f32[1,8]";
    auto dimensions = line.numbers_until<std::int64_t>(']');
    if (!dimensions) return "dimensions";
    dtype = *parsed;
    shape = std::move(*dimensions);
    std::int64_t size = size_bytes(dtype);
    for (const std::int64_t extent : shape) {
      if (extent < 0 || __builtin_mul_overflow(size, extent, &size)) {
        return "a shape that fits memory";
      }
    }
    return {};
  }

  std::string parse_tensor(Line& line, DType dtype, const Shape& shape, Tensor& tensor) const {
    if (line.take("#")) {
      const auto found = constants_.find(line.token());
      if (found == constants_.end()) return "the digest of a constant that was passed";
      tensor = found->second;
      return {};
    }
    if (!line.take("{")) return "a constant: '{...}' or '#DIGEST'";
    const std::int64_t count = element_count(shape);
    if (count > kInlineElements) return "a digest, for a constant this large";
    std::vector<std::byte> bytes(static_cast<std::size_t>(count * size_bytes(dtype)));
    for (std::int64_t i = 0; i < count; ++i) {
      if (i > 0 && !line.take(",")) return "as many elements as the shape has";
      const auto element = scalar_from_text(dtype, line.token());
      if (!element) return fmt::format("an element of type {}", name(dtype));
      element->store(bytes.data() + i * size_bytes(dtype));
    }
    if (!line.take("}")) return "as many elements as the shape has";
    tensor = Tensor::own(dtype, shape, std::move(bytes));
    return {};
  }

  std::string parse_node(Line& line) {
    const auto index = line.take("%") ? line.number<std::size_t>() : std::nullopt;
    if (index != graph_.nodes.size()) return fmt::format("'%{} = ...'", graph_.nodes.size());
    if (!line.take("=")) return "'='";
    const std::string_view operation = line.token();
    Node node;
    if (auto message = parse_type(line, node.dtype, node.shape); !message.empty()) return message;
    while (line.next_is('%')) {
      const auto input = value(line);
      if (!input) return "a value defined before";
      node.inputs.push_back(*input);
    }
    if (auto message = parse_operation(line, operation, node); !message.empty()) return message;
    node.strict = line.take_word("strict");
    if (line.take_word("source")) {
      auto source = line.quoted_text();
      if (!source) return "a quoted source";
      node.source = std::move(*source);
    }
    graph_.nodes.push_back(std::move(node));
    return {};
  }

  std::string parse_operation(Line& line, std::string_view operation, Node& node) const {
    if (operation == "input") {
      auto name = line.quoted_text();
      if (!name) return "a quoted name";
      node.op = InputOp{std::move(*name)};
      return {};
    }
    if (operation == "constant") {
      ConstantOp op;
      std::string message = parse_tensor(line, node.dtype, node.shape, op.tensor);
      node.op = std::move(op);
      return message;
    }
    if (operation == "iota") {
      IotaOp op;
      if (!attribute(line, "axis", op.axis)) return "'axis='";
      node.op = op;
      return {};
    }
    if (operation.starts_with("map.")) {
      const auto op = scalar_op_from_name(operation.substr(4));
      if (!op) return "a scalar operation after 'map.'";
      node.op = MapOp{*op};
      return {};
    }
    if (operation == "cast") {
      node.op = CastOp{};
      return {};
    }
    if (operation == "view") return parse_view(line, node);
    if (operation == "reshape") {
      node.op = ReshapeOp{};
      return {};
    }
    if (operation == "concat") {
      ConcatOp op;
      if (!attribute(line, "axis", op.axis)) return "'axis='";
      node.op = op;
      return {};
    }
    if (operation.starts_with("reduce.")) return parse_reduce(line, operation.substr(7), node);
    if (operation == "contract") return parse_contract(line, node);
    if (operation == "gather") {
      GatherOp op;
      if (!attribute(line, "axis", op.axis)) return "'axis='";
      op.in_range = line.take_word("in_range");
      node.op = op;
      return {};
    }
    return "an operation";
  }

  static std::string parse_view(Line& line, Node& node) {
    auto index = line.indices();
    if (!index) return "the indices of a view";
    ViewOp op;
    op.index = std::move(*index);
    if (line.take_word("fill")) {
      op.fill = scalar_from_text(node.dtype, line.token());
      if (!op.fill) return fmt::format("a fill of type {}", name(node.dtype));
    }
    node.op = std::move(op);
    return {};
  }

  static std::string parse_reduce(Line& line, std::string_view which, Node& node) {
    for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Product, ReduceOp::Max, ReduceOp::Min}) {
      if (name(op) != which) continue;
      auto axes = line.take("axes=[") ? line.numbers_until<int>(']') : std::nullopt;
      if (!axes) return "'axes=[...]'";
      node.op = ReduceNodeOp{op, std::move(*axes)};
      return {};
    }
    return "sum, product, max or min after 'reduce.'";
  }

  static std::string parse_contract(Line& line, Node& node) {
    ContractOp op;
    auto outer = line.take("extents=[") ? line.numbers_until<std::int64_t>('|') : std::nullopt;
    auto inner = outer ? line.numbers_until<std::int64_t>(']') : std::nullopt;
    if (!outer || !inner) return "'extents=[...|...]'";
    op.output_axes = static_cast<int>(outer->size());
    op.extents = std::move(*outer);
    op.extents.insert(op.extents.end(), inner->begin(), inner->end());
    auto output = line.take("output=") ? line.indices() : std::nullopt;
    if (!output) return "'output=[...]'";
    op.output = std::move(*output);
    while (line.take("reads=")) {
      auto operand = line.indices();
      if (!operand) return "indices after 'reads='";
      op.operands.push_back(std::move(*operand));
    }
    node.op = std::move(op);
    return {};
  }

  std::string parse_output(Line& line) {
    auto name = line.quoted_text();
    const auto id = value(line);
    if (!name || !id) return "a quoted name and a value";
    graph_.outputs.push_back({std::move(*name), *id});
    return {};
  }

  std::string parse_state(Line& line) {
    const auto state = value(line);
    const bool next_follows = line.take_word("next");
    const auto next = value(line);
    if (!state || !next_follows || !next) return "'state %A next %B'";
    GraphState result{*state, *next};
    if (line.take_word("entry")) {
      result.entry = value(line);
      if (!result.entry) return "'state %A next %B entry %C'";
    }
    if (line.take_word("initial")) {
      Tensor initial;
      const Node& node = graph_[*state];
      if (auto message = parse_tensor(line, node.dtype, node.shape, initial); !message.empty()) {
        return message;
      }
      result.initial = std::move(initial);
    }
    graph_.states.push_back(std::move(result));
    return {};
  }

  std::string parse_transform(Line& line) {
    GraphTransform transform;
    const auto input = value(line);
    if (!input || !attribute(line, "offset", transform.offset_bytes) ||
        !attribute(line, "width", transform.width) ||
        !attribute(line, "height", transform.height)) {
      return "'transform %A offset=N width=N height=N'";
    }
    transform.cabin = line.take_word("cabin");
    const bool frame_follows = line.take_word("frame");
    const auto frame = value(line);
    if (!frame_follows || !frame) return "'frame %B'";
    transform.input = *input;
    transform.frame = *frame;
    graph_.transforms.push_back(transform);
    return {};
  }

  std::string parse_camera(Line& line) {
    GraphCamera camera;
    const auto input = value(line);
    if (!input || !attribute(line, "index", camera.camera)) return "'camera %A index=N'";
    camera.input = *input;
    graph_.cameras.push_back(camera);
    return {};
  }

  const DigestedConstants& constants_;
  Graph graph_;
  Place place_ = Place::Before;
};

}  // namespace

std::string digest(const Tensor& tensor) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&hash](const void* data, std::size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  };
  const std::string type = to_text(tensor.dtype, tensor.shape);
  mix(type.data(), type.size());
  mix(tensor.bytes.data(), tensor.bytes.size());
  return fmt::format("{:016x}", hash);
}

std::string to_text(const Node& node) {
  std::string text = std::visit(OperationName{}, node.op) + " " + to_text(node.dtype, node.shape);
  for (const ValueId input : node.inputs) text += fmt::format(" %{}", input.index);
  text += std::visit(Attributes{}, node.op);
  if (node.strict) text += " strict";
  return text;
}

std::string print_graph(const Graph& graph) {
  std::string text = fmt::format("graph {} {{\n", quoted(graph.name));
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    text += fmt::format("  %{} = {}", i, to_text(graph.nodes[i]));
    if (!graph.nodes[i].source.empty()) text += " source " + quoted(graph.nodes[i].source);
    text += '\n';
  }
  for (const GraphOutput& output : graph.outputs) {
    text += fmt::format("  output {} %{}\n", quoted(output.name), output.value.index);
  }
  for (const GraphState& state : graph.states) {
    text += fmt::format("  state %{} next %{}", state.state.index, state.next.index);
    if (state.entry) text += fmt::format(" entry %{}", state.entry->index);
    if (state.initial) text += " initial " + text_of(*state.initial);
    text += '\n';
  }
  for (const GraphTransform& t : graph.transforms) {
    text += fmt::format("  transform %{} offset={} width={} height={}{} frame %{}\n", t.input.index,
                        t.offset_bytes, t.width, t.height, t.cabin ? " cabin" : "", t.frame.index);
  }
  for (const GraphCamera& camera : graph.cameras) {
    text += fmt::format("  camera %{} index={}\n", camera.input.index, camera.camera);
  }
  return text + "}\n";
}

Result<Graph> parse_graph(std::string_view text, const DigestedConstants& constants) {
  return Parser(constants).parse(text);
}

}  // namespace ingot
