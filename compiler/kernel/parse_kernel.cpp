// Kernel text: grammar and examples in docs/ir/kernel.md. Whatever the text is, the result is a
// kernel or a failure that names the line; whether the kernel is well formed is the validator's
// question.
#include <charconv>
#include <map>
#include <unordered_map>

#include "compiler/kernel/kernel.h"
#include "compiler/kernel/kernel_words.h"

namespace ingot {
namespace {

constexpr int kDeepest = 128;  // nesting of expressions and of blocks
constexpr std::size_t kHighestRank = 32;

// One line without its comment.
class Line {
 public:
  explicit Line(std::string_view text) : text_(text) {}

  bool at_end() {
    skip_blanks();
    return text_.empty();
  }
  // Takes a mark such as "[" or "&&".
  bool mark(std::string_view expected) {
    skip_blanks();
    if (!text_.starts_with(expected)) return false;
    text_.remove_prefix(expected.size());
    return true;
  }
  bool next_is(std::string_view expected) {
    skip_blanks();
    return text_.starts_with(expected);
  }
  // The plain word that comes next, without taking it.
  std::string_view peek_word() {
    skip_blanks();
    if (text_.empty() || !starts_name(text_.front())) return {};
    std::size_t size = 1;
    while (size < text_.size() && continues_name(text_[size])) ++size;
    return text_.substr(0, size);
  }
  bool word(std::string_view expected) {
    if (peek_word() != expected) return false;
    text_.remove_prefix(expected.size());
    return true;
  }
  bool next_is_number() {
    skip_blanks();
    if (text_.empty()) return false;
    if (text_.front() == '-') return text_.size() > 1 && is_digit(text_[1]);
    return is_digit(text_.front());
  }
  template <typename Int>
  bool number(Int& value) {
    skip_blanks();
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc()) return false;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return true;
  }
  // Everything up to a blank, comma or closing bracket: a constant after its type.
  std::string_view literal() {
    skip_blanks();
    const std::size_t size = std::min(text_.find_first_of(" ,)]}"), text_.size());
    const std::string_view result = text_.substr(0, size);
    text_.remove_prefix(size);
    return result;
  }
  // A name, plain or in quotes; `suffix` is the number after '$', 1 without one.
  bool name(std::string& name, int& suffix) {
    skip_blanks();
    if (!text_.empty() && text_.front() == '"') {
      if (!quoted(name)) return false;
    } else {
      const std::string_view plain = peek_word();
      if (plain.empty() || is_reserved_word(plain)) return false;
      name = plain;
      text_.remove_prefix(plain.size());
    }
    suffix = 1;
    if (text_.empty() || text_.front() != '$') return true;
    text_.remove_prefix(1);
    return number(suffix) && suffix > 1;
  }
  bool quoted(std::string& content) {
    if (!mark("\"")) return false;
    content.clear();
    while (!text_.empty()) {
      const char c = text_.front();
      text_.remove_prefix(1);
      if (c == '"') return true;
      if (c != '\\') {
        content += c;
      } else if (text_.starts_with("x")) {
        unsigned byte = 0;
        if (text_.size() < 3) return false;
        const auto [end, error] = std::from_chars(text_.data() + 1, text_.data() + 3, byte, 16);
        if (error != std::errc() || end != text_.data() + 3) return false;
        content += static_cast<char>(byte);
        text_.remove_prefix(3);
      } else if (text_.starts_with("\"") || text_.starts_with("\\")) {
        content += text_.front();
        text_.remove_prefix(1);
      } else {
        return false;
      }
    }
    return false;
  }
  std::string_view rest() {
    skip_blanks();
    return std::exchange(text_, {});
  }

 private:
  void skip_blanks() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\t')) {
      text_.remove_prefix(1);
    }
  }

  std::string_view text_;
};

std::string_view without_comment(std::string_view line) {
  bool in_quotes = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (in_quotes && line[i] == '\\') {
      ++i;
    } else if (line[i] == '"') {
      in_quotes = !in_quotes;
    } else if (line[i] == '#' && !in_quotes) {
      return line.substr(0, i);
    }
  }
  return line;
}

// What both forms share. Functions return false after they noted what is wrong.
class KernelParser {
 protected:
  explicit KernelParser(std::string_view text) : text_(text) {}

  enum class Entity { Parameter, Variable, Register };
  struct Named {
    Entity entity = Entity::Parameter;
    std::uint32_t id = 0;
    bool open = true;  // a loop's name may be used again after the loop
  };

  bool wrong(std::string what) {
    if (problem_.empty()) problem_ = std::move(what);
    return false;
  }

  // Calls statement(line) for every line that has something on it.
  template <typename Statement>
  bool for_each_line(const Statement& statement) {
    while (!text_.empty()) {
      ++line_number_;
      const std::size_t size = std::min(text_.find('\n'), text_.size());
      std::string_view content = text_.substr(0, size);
      text_.remove_prefix(std::min(size + 1, text_.size()));
      if (content.ends_with('\r')) content.remove_suffix(1);
      Line line(without_comment(content));
      if (line.at_end()) continue;
      if (!statement(line)) return false;
      if (!line.at_end()) {
        return wrong("unexpected text '" + std::string(line.rest().substr(0, 40)) + "'");
      }
    }
    return true;
  }

  Failure failure() const {
    return fail(ExitCode::Malformed, "malformed-kernel",
                "line " + std::to_string(line_number_) + ": " + problem_)
        .error();
  }

  bool header(Line& line, std::string_view form, std::string& name) {
    int suffix = 1;
    if (!line.word(form) || !line.word("kernel")) {
      return wrong("expected '" + std::string(form) + " kernel NAME'");
    }
    if (!line.name(name, suffix) || suffix != 1) return wrong("expected the kernel's name");
    return true;
  }

  bool declare(Line& line, Entity entity, std::uint32_t id, std::string& name) {
    int suffix = 1;
    if (!line.name(name, suffix)) return wrong("expected a name");
    Named& named = names_[{name, suffix}];
    if (named.id != kNone && named.open) return wrong("'" + name + "' is declared twice");
    named = {entity, id, true};
    last_declared_ = &named;
    if (!line.mark(":")) return wrong("expected ':' after the name");
    return true;
  }

  bool extent(Line& line, std::int64_t& value) {
    if (!line.number(value) || value < 0) return wrong("expected an extent");
    return true;
  }

  bool dtype(Line& line, DType& dtype) {
    const std::string_view word = line.peek_word();
    const auto found = dtype_from_name(word);
    if (!found || !line.word(word)) return wrong("expected an element type");
    dtype = *found;
    return true;
  }

  bool parameter(Line& line, Access access) {
    KernelParameter parameter;
    parameter.access = access;
    const auto id = static_cast<std::uint32_t>(parameters_.size());
    if (!declare(line, Entity::Parameter, id, parameter.name)) return false;
    if (!dtype(line, parameter.dtype)) return false;
    if (!line.mark("[")) return wrong("expected the shape in brackets");
    while (!line.mark("]")) {
      std::int64_t value = 0;
      if (!parameter.shape.empty() && !line.mark(",")) return wrong("expected ',' or ']'");
      if (!extent(line, value)) return false;
      if (parameter.shape.size() == kHighestRank) return wrong("too many dimensions");
      parameter.shape.push_back(value);
    }
    std::string_view layout = line.rest();
    while (layout.ends_with(' ') || layout.ends_with('\t')) layout.remove_suffix(1);
    auto parsed = parse_layout(layout, static_cast<int>(parameter.shape.size()));
    if (!parsed) return wrong(parsed.error().diagnostics.front().message);
    parameter.layout = std::move(*parsed);
    parameters_.push_back(std::move(parameter));
    return true;
  }

  // `%7 = expression`
  bool definition(Line& line) {
    std::uint32_t number = 0;
    if (!line.mark("%") || !line.number(number)) return wrong("expected '%' and a number");
    if (!line.mark("=")) return wrong("expected '='");
    ExprId value;
    if (!expression(line, value)) return false;
    if (!values_.emplace(number, value).second) {
      return wrong("%" + std::to_string(number) + " is defined twice");
    }
    return true;
  }

  bool entity(Line& line, Entity wanted, const char* what, std::uint32_t& id) {
    std::string name;
    int suffix = 1;
    if (!line.name(name, suffix)) return wrong(std::string("expected the name of a ") + what);
    const auto found = names_.find({name, suffix});
    if (found == names_.end() || found->second.entity != wanted) {
      return wrong(std::string("no ") + what + " '" + name + "'");
    }
    id = found->second.id;
    return true;
  }

  // `[a, b, ...]`
  bool bracketed(Line& line, std::vector<ExprId>& ids) {
    if (!line.mark("[")) return wrong("expected '['");
    while (!line.mark("]")) {
      if (!ids.empty() && !line.mark(",")) return wrong("expected ',' or ']'");
      ExprId id;
      if (!expression(line, id)) return false;
      ids.push_back(id);
    }
    return true;
  }

  // --- expressions, weakest binding first

  bool expression(Line& line, ExprId& result) {
    if (++depth_ > kDeepest) return wrong("the expression is nested too deeply");
    if (!comparison(line, result)) return false;
    while (line.mark("&&")) {
      ExprId right;
      if (!comparison(line, right)) return false;
      if (!infix(ScalarOp::And, DType::Bool, result, right)) return false;
    }
    --depth_;
    return true;
  }

  bool comparison(Line& line, ExprId& result) {
    if (!sum(line, result)) return false;
    ScalarOp op{};
    if (line.mark("<=")) {
      op = ScalarOp::Le;
    } else if (line.mark("<")) {
      op = ScalarOp::Lt;
    } else if (line.mark("==")) {
      op = ScalarOp::Eq;
    } else if (line.mark("!=")) {
      op = ScalarOp::Ne;
    } else {
      return true;
    }
    ExprId right;
    return sum(line, right) && infix(op, DType::I64, result, right);
  }

  bool sum(Line& line, ExprId& result) {
    if (!product(line, result)) return false;
    while (true) {
      ExprId right;
      if (line.mark("+")) {
        if (!product(line, right)) return false;
      } else if (line.mark("-")) {
        std::int64_t value = 0;
        if (!line.number(value) || value < 0) return wrong("expected a number after '-'");
        right = pool_.index(-value);
      } else {
        return true;
      }
      if (!infix(ScalarOp::Add, DType::I64, result, right)) return false;
    }
  }

  bool product(Line& line, ExprId& result) {
    if (!primary(line, result)) return false;
    while (true) {
      ScalarOp op{};
      if (line.mark("*")) {
        op = ScalarOp::Mul;
      } else if (line.word("div")) {
        op = ScalarOp::FloorDiv;
      } else if (line.word("mod")) {
        op = ScalarOp::FloorMod;
      } else {
        return true;
      }
      ExprId right;
      if (!primary(line, right) || !infix(op, DType::I64, result, right)) return false;
    }
  }

  bool infix(ScalarOp op, DType dtype, ExprId& left, ExprId right) {
    if (pool_[left].dtype != dtype || pool_[right].dtype != dtype) {
      return wrong("'" + std::string(name(op)) + "' is written between operands only for " +
                   std::string(name(dtype)));
    }
    const ExprId operands[] = {left, right};
    left = pool_.scalar(op, operands);
    return true;
  }

  bool primary(Line& line, ExprId& result) {
    if (line.mark("(")) {
      if (!expression(line, result)) return false;
      return line.mark(")") || wrong("expected ')'");
    }
    if (line.mark("%")) {
      std::uint32_t number = 0;
      if (!line.number(number)) return wrong("expected a number after '%'");
      const auto found = values_.find(number);
      if (found == values_.end()) return wrong("%" + std::to_string(number) + " is not defined");
      result = found->second;
      return true;
    }
    if (line.next_is_number()) {
      std::int64_t value = 0;
      if (!line.number(value)) return wrong("the number is too large");
      result = pool_.index(value);
      return true;
    }
    const std::string_view word = line.peek_word();
    if (word == "true" || word == "false") {
      result = pool_.constant(Scalar::of_int(DType::Bool, word == "true" ? 1 : 0));
      return line.word(word);
    }
    if (word == "load") return line.word(word) && load(line, result);
    if (const auto dtype = dtype_from_name(word)) {
      return line.word(word) && typed(line, *dtype, result);
    }
    if (!word.empty() && is_reserved_word(word)) return call(line, result);
    return named(line, result);
  }

  // After an element type: a cast or a constant.
  bool typed(Line& line, DType dtype, ExprId& result) {
    if (!line.next_is("(")) {
      Scalar value;
      if (!constant(line, dtype, value)) return false;
      result = pool_.constant(value);
      return true;
    }
    Expr expr;
    expr.kind = ExprKind::Cast;
    expr.dtype = dtype;
    expr.operands.resize(1);
    if (!line.mark("(") || !expression(line, expr.operands[0])) return false;
    if (!line.mark(")")) return wrong("expected ')'");
    result = pool_.intern(std::move(expr));
    return true;
  }

  bool constant(Line& line, DType dtype, Scalar& value) {
    const std::string_view text = line.literal();
    const auto scalar = scalar_from_text(dtype, text);
    if (!scalar) {
      return wrong("'" + std::string(text) + "' is no constant of " + std::string(name(dtype)));
    }
    value = *scalar;
    return true;
  }

  // After `load`.
  bool load(Line& line, ExprId& result) {
    Expr expr;
    expr.kind = flat_ ? ExprKind::LoadFlat : ExprKind::Load;
    if (!entity(line, Entity::Parameter, "parameter", expr.id)) return false;
    expr.dtype = parameters_[expr.id].dtype;
    if (!bracketed(line, expr.operands)) return false;
    if (line.word("if")) {
      ExprId gate;
      if (!expression(line, gate)) return false;
      expr.operands.push_back(gate);
      expr.gated = true;
      if (!line.word("else")) return wrong("expected 'else' and the value without a load");
      ExprId fill;
      if (!primary(line, fill)) return false;
      if (pool_[fill].kind != ExprKind::Constant) return wrong("expected a constant");
      expr.constant = pool_[fill].constant;
    }
    result = pool_.intern(std::move(expr));
    return true;
  }

  // `op(a, b)`, `op!(a, b)`, `sum(a over k)`, `clamp(a, 10)`
  bool call(Line& line, ExprId& result) {
    const std::string_view word = line.peek_word();
    std::vector<ExprId> operands;
    if (!line.word(word)) return false;
    const bool strict = line.mark("!");
    if (!line.mark("(")) return wrong("expected '(' after '" + std::string(word) + "'");
    while (!line.mark(")")) {
      if (!operands.empty() && line.word("over")) {
        if (operands.size() != 1) return wrong("a reduce takes one operand");
        return reduce(line, word, strict, operands[0], result);
      }
      if (!operands.empty() && !line.mark(",")) return wrong("expected ',' or ')'");
      ExprId operand;
      if (!expression(line, operand)) return false;
      operands.push_back(operand);
    }
    if (word == "clamp") {
      if (operands.size() != 2 || strict || pool_[operands[1]].kind != ExprKind::Constant ||
          pool_[operands[1]].dtype != DType::I64) {
        return wrong("'clamp' takes an index and a constant extent");
      }
      result = pool_.clamp_index(operands[0], pool_[operands[1]].constant.as_int());
      return true;
    }
    const auto op = scalar_op_from_name(word);
    if (!op) return wrong("no operation '" + std::string(word) + "'");
    if (operands.size() != static_cast<std::size_t>(operand_count(*op))) {
      return wrong("'" + std::string(word) + "' takes " + std::to_string(operand_count(*op)) +
                   " operands");
    }
    result = pool_.scalar(*op, operands, strict);
    return true;
  }

  bool reduce(Line& line, std::string_view word, bool strict, ExprId operand, ExprId& result) {
    for (const Combine combine : {Combine::Sum, Combine::Product, Combine::Max, Combine::Min}) {
      if (name(combine) != word) continue;
      std::vector<std::uint32_t> ranges;
      do {
        std::uint32_t id = 0;
        if (!entity(line, Entity::Variable, "range", id)) return false;
        ranges.push_back(id);
      } while (line.mark(","));
      if (!line.mark(")")) return wrong("expected ',' or ')'");
      result = pool_.reduce(combine, operand, std::move(ranges), strict);
      return true;
    }
    return wrong("no reduce '" + std::string(word) + "'");
  }

  // A variable, or a register array with element and lane.
  bool named(Line& line, ExprId& result) {
    std::string name;
    int suffix = 1;
    if (!line.name(name, suffix)) return wrong("expected an expression");
    const auto found = names_.find({name, suffix});
    if (found == names_.end()) return wrong("nothing is called '" + name + "'");
    const Named& named = found->second;
    switch (named.entity) {
      case Entity::Variable: result = pool_.variable(named.id); return true;
      case Entity::Register: {
        std::vector<ExprId> operands;
        if (!bracketed(line, operands)) return false;
        if (operands.size() != 2) return wrong("a register is read by element and lane");
        result = pool_.read_register(named.id, register_type(named.id), operands[0], operands[1]);
        return true;
      }
      case Entity::Parameter: break;
    }
    return wrong("'" + name + "' is a parameter: expected 'load'");
  }

  virtual DType register_type(std::uint32_t id) const = 0;
  virtual ~KernelParser() = default;

  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  struct NamedOrNone : Named {
    NamedOrNone() { id = kNone; }
    NamedOrNone& operator=(const Named& named) {
      Named::operator=(named);
      return *this;
    }
  };

  ExprPool pool_;
  std::vector<KernelParameter> parameters_;
  bool flat_ = false;  // loads by address
  Named* last_declared_ = nullptr;

 private:
  std::string_view text_;
  std::size_t line_number_ = 0;
  int depth_ = 0;
  std::string problem_;
  std::map<std::pair<std::string, int>, NamedOrNone> names_;
  std::unordered_map<std::uint32_t, ExprId> values_;
};

class RangedParser : KernelParser {
 public:
  explicit RangedParser(std::string_view text) : KernelParser(text) {}

  Result<RangedKernel> parse() {
    bool started = false;
    const bool good = for_each_line([&](Line& line) {
      if (started) return statement(line);
      started = true;
      return header(line, "ranged", kernel_.name);
    });
    if (good && !started) wrong("expected 'ranged kernel NAME'");
    if (!good || !started) return std::unexpected(failure());
    kernel_.pool = std::move(pool_);
    kernel_.parameters = std::move(parameters_);
    return std::move(kernel_);
  }

 private:
  bool statement(Line& line) {
    if (line.word("read")) return parameter(line, Access::Read);
    if (line.word("write")) return parameter(line, Access::Write);
    if (line.word("range")) return range(line, false);
    if (line.word("reduce")) return range(line, true);
    if (line.next_is("%")) return definition(line);
    if (line.word("store")) return store(line);
    return wrong("expected a declaration, '%' or 'store'");
  }

  bool range(Line& line, bool is_reduce) {
    Range range;
    range.is_reduce = is_reduce;
    const auto id = static_cast<std::uint32_t>(kernel_.ranges.size());
    if (!declare(line, Entity::Variable, id, range.name) || !extent(line, range.extent)) {
      return false;
    }
    kernel_.ranges.push_back(std::move(range));
    return true;
  }

  bool store(Line& line) {
    RangedStore store;
    if (!entity(line, Entity::Parameter, "parameter", store.parameter)) return false;
    if (!bracketed(line, store.coordinates)) return false;
    if (!line.mark("=")) return wrong("expected '='");
    if (!expression(line, store.value)) return false;
    kernel_.stores.push_back(std::move(store));
    return true;
  }

  DType register_type(std::uint32_t) const override { return DType::F32; }

  RangedKernel kernel_;
};

class ScheduledParser : KernelParser {
 public:
  explicit ScheduledParser(std::string_view text) : KernelParser(text) { flat_ = true; }

  Result<ScheduledKernel> parse() {
    bool started = false;
    open_.push_back({});
    const bool good = for_each_line([&](Line& line) {
      if (started) return statement(line);
      started = true;
      return header(line, "scheduled", kernel_.name);
    });
    if (good && !started) wrong("expected 'scheduled kernel NAME'");
    if (good && open_.size() != 1) wrong("a block is not closed");
    if (!good || !started || open_.size() != 1) return std::unexpected(failure());
    kernel_.body = std::move(open_.back().block);
    kernel_.pool = std::move(pool_);
    kernel_.parameters = std::move(parameters_);
    return std::move(kernel_);
  }

 private:
  // A block whose '}' has not come yet, and the statement it belongs to.
  struct OpenBlock {
    Block block;
    Statement owner;
    Named* loop = nullptr;
  };

  bool statement(Line& line) {
    if (line.word("read")) return parameter(line, Access::Read);
    if (line.word("write")) return parameter(line, Access::Write);
    if (line.word("update")) return parameter(line, Access::Update);
    if (line.word("register")) return array(line, AddressSpace::Register);
    if (line.word("worker")) return array(line, AddressSpace::Worker);
    if (line.word("group")) return array(line, AddressSpace::Group);
    if (line.word("step")) {
      std::string step;
      if (!line.quoted(step)) return wrong("expected the step in quotes");
      kernel_.steps.push_back(std::move(step));
      return true;
    }
    if (line.next_is("%")) return definition(line);
    if (line.word("for")) return loop(line, LoopKind::Serial);
    if (line.word("parallel")) return loop(line, LoopKind::Parallel);
    if (line.word("unroll")) return loop(line, LoopKind::Unroll);
    if (line.word("vector")) return loop(line, LoopKind::Vector);
    if (line.word("if")) return branch(line);
    if (line.word("store")) return store(line);
    if (line.word("set")) return set(line);
    if (line.word("prefetch")) return prefetch(line);
    if (line.word("barrier")) return add({BarrierStatement{}});
    if (line.mark("}")) return close();
    return wrong("expected a declaration or a statement");
  }

  bool add(Statement statement) {
    open_.back().block.push_back(std::move(statement));
    return true;
  }

  bool array(Line& line, AddressSpace space) {
    RegisterArray array;
    array.space = space;
    const auto id = static_cast<std::uint32_t>(kernel_.registers.size());
    if (!declare(line, Entity::Register, id, array.name) || !dtype(line, array.dtype)) return false;
    if (!line.mark("[") || !extent(line, array.elements) || !line.mark("]") || !line.mark("[") ||
        !extent(line, array.lanes) || !line.mark("]")) {
      return wrong("expected '[ELEMENTS][LANES]'");
    }
    if (line.word("in") && !entity(line, Entity::Parameter, "parameter", array.parameter)) {
      return false;
    }
    kernel_.registers.push_back(std::move(array));
    return true;
  }

  bool open(Line& line, Statement owner, Named* loop) {
    if (!line.mark("{")) return wrong("expected '{'");
    if (open_.size() > static_cast<std::size_t>(kDeepest)) {
      return wrong("blocks are nested too deeply");
    }
    open_.push_back({{}, std::move(owner), loop});
    return true;
  }

  bool loop(Line& line, LoopKind kind) {
    Variable variable;
    variable.kind = kind;
    const auto id = static_cast<std::uint32_t>(kernel_.variables.size());
    if (!declare(line, Entity::Variable, id, variable.name) || !extent(line, variable.extent)) {
      return false;
    }
    Named* named = last_declared_;
    kernel_.variables.push_back(std::move(variable));
    return open(line, {ForStatement{id, {}}}, named);
  }

  bool branch(Line& line) {
    IfStatement branch;
    if (!expression(line, branch.condition)) return false;
    return open(line, {std::move(branch)}, nullptr);
  }

  bool close() {
    if (open_.size() == 1) return wrong("'}' closes nothing");
    OpenBlock block = std::move(open_.back());
    open_.pop_back();
    if (block.loop != nullptr) block.loop->open = false;
    if (auto* loop = std::get_if<ForStatement>(&block.owner.node)) {
      loop->body = std::move(block.block);
    } else if (auto* branch = std::get_if<IfStatement>(&block.owner.node)) {
      branch->body = std::move(block.block);
    }
    return add(std::move(block.owner));
  }

  bool store(Line& line) {
    StoreStatement store;
    if (!entity(line, Entity::Parameter, "parameter", store.parameter)) return false;
    if (!one(line, store.address)) return false;
    if (!line.mark("=")) return wrong("expected '='");
    return expression(line, store.value) && add({store});
  }

  bool set(Line& line) {
    SetRegisterStatement set;
    std::vector<ExprId> place;
    if (!entity(line, Entity::Register, "register array", set.array)) return false;
    if (!bracketed(line, place)) return false;
    if (place.size() != 2) return wrong("a register is set by element and lane");
    set.element = place[0];
    set.lane = place[1];
    if (!line.mark("=")) return wrong("expected '='");
    return expression(line, set.value) && add({set});
  }

  bool prefetch(Line& line) {
    PrefetchStatement prefetch;
    if (!entity(line, Entity::Parameter, "parameter", prefetch.parameter)) return false;
    return one(line, prefetch.address) && add({prefetch});
  }

  bool one(Line& line, ExprId& address) {
    std::vector<ExprId> ids;
    if (!bracketed(line, ids)) return false;
    if (ids.size() != 1) return wrong("expected one element address");
    address = ids[0];
    return true;
  }

  DType register_type(std::uint32_t id) const override { return kernel_.registers[id].dtype; }

  ScheduledKernel kernel_;
  std::vector<OpenBlock> open_;
};

}  // namespace

Result<RangedKernel> parse_ranged_kernel(std::string_view text) {
  return RangedParser(text).parse();
}

Result<ScheduledKernel> parse_scheduled_kernel(std::string_view text) {
  return ScheduledParser(text).parse();
}

}  // namespace ingot
