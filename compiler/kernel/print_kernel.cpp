// Kernel text: grammar and examples in docs/ir/kernel.md.
//
// Expressions become lines `%7 = ...` just before the statement that first needs them, in its
// block; a block's lines end with it. What reads registers is written out again for every
// statement, since its value may have changed. Small index arithmetic stands in place.
#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>

#include "compiler/kernel/kernel.h"
#include "compiler/kernel/kernel_words.h"

namespace ingot {
namespace {

// Index arithmetic of more operations than this gets a line of its own.
constexpr int kMostInPlace = 12;

// Binding strength of text, weakest first.
enum Strength { kAnd, kCompare, kSum, kProduct, kPrimary };

// Gives every entity a word of its own: its name, or "name$2", "name$3" ... while that is taken.
class NameTable {
 public:
  explicit NameTable(bool real_names) : real_names_(real_names) {}

  std::string add(std::string_view name, char letter, std::size_t index) {
    if (!real_names_) return letter + std::to_string(index);
    const std::string plain = name_in_text(name);
    std::string word = plain;
    for (int i = 2; !taken_.insert(word).second; ++i) word = plain + '$' + std::to_string(i);
    return word;
  }
  // A loop's name may be used again after the loop.
  void release(const std::string& word) { taken_.erase(word); }

 private:
  bool real_names_;
  std::set<std::string> taken_;
};

class KernelPrinter {
 public:
  KernelPrinter(const ExprPool& pool, bool real_names)
      : pool_(pool), real_names_(real_names), names_(real_names), uses_(pool.size(), 0) {}

  std::string print(const RangedKernel& kernel) {
    header("ranged", kernel.name, kernel.parameters);
    for (std::size_t i = 0; i < kernel.ranges.size(); ++i) {
      const Range& range = kernel.ranges[i];
      variables_.push_back(names_.add(range.name, 'v', i));
      line(std::string(range.is_reduce ? "reduce " : "range ") + variables_.back() + ": " +
           std::to_string(range.extent));
    }
    for (const RangedStore& store : kernel.stores) {
      for (const ExprId coordinate : store.coordinates) count_use(coordinate);
      count_use(store.value);
    }
    for (const RangedStore& store : kernel.stores) {
      std::vector<ExprId> roots = store.coordinates;
      roots.push_back(store.value);
      prepare(roots);
      line("store " + word(parameters_, store.parameter) + "[" + list(store.coordinates) +
           "] = " + root(store.value));
    }
    return std::move(text_);
  }

  std::string print(const ScheduledKernel& kernel) {
    header("scheduled", kernel.name, kernel.parameters);
    for (std::size_t i = 0; i < kernel.registers.size(); ++i) {
      const RegisterArray& array = kernel.registers[i];
      registers_.push_back(names_.add(array.name, 'r', i));
      const char* space = array.space == AddressSpace::Register ? "register "
                          : array.space == AddressSpace::Worker ? "worker "
                                                                : "group ";
      line(space + registers_.back() + ": " + std::string(name(array.dtype)) + "[" +
           std::to_string(array.elements) + "][" + std::to_string(array.lanes) + "]" +
           (array.parameter == kNoParameter ? "" : " in " + word(parameters_, array.parameter)));
    }
    if (real_names_) {
      for (const std::string& step : kernel.steps) line("step " + quoted_text(step));
    }
    variables_.resize(kernel.variables.size());
    count_uses(kernel.body);
    print_block(kernel, kernel.body);
    return std::move(text_);
  }

 private:
  static std::string quoted_text(const std::string& text) {
    // A name with a space is never plain.
    std::string quoted = name_in_text(" " + text);
    quoted.erase(1, 1);
    return quoted;
  }

  static const char* access_word(Access access) {
    if (access == Access::Update) return "update";
    return access == Access::Read ? "read" : "write";
  }

  void header(const char* form, const std::string& kernel_name,
              const std::vector<KernelParameter>& parameters) {
    text_ = std::string(form) + " kernel";
    text_ += real_names_ ? ' ' + name_in_text(kernel_name) + '\n' : std::string("\n");
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const KernelParameter& parameter = parameters[i];
      parameters_.push_back(names_.add(parameter.name, 'p', i));
      line(std::string(access_word(parameter.access)) + " " + parameters_.back() + ": " +
           to_text(parameter.dtype, parameter.shape) + " " + to_text(parameter.layout));
    }
  }

  void line(const std::string& content) {
    text_.append(static_cast<std::size_t>(depth_) * 2, ' ');
    text_ += content;
    text_ += '\n';
  }

  // --- statements

  void print_block(const ScheduledKernel& kernel, const Block& block) {
    const std::size_t known = scope_.size();
    for (const Statement& statement : block) {
      std::visit([&](const auto& node) { print_statement(kernel, node); }, statement.node);
    }
    while (scope_.size() > known) {
      numbers_.erase(scope_.back());
      scope_.pop_back();
    }
  }

  void print_statement(const ScheduledKernel& kernel, const ForStatement& loop) {
    const Variable& variable = kernel.variables[loop.variable];
    const char* kind = "for ";
    switch (variable.kind) {
      case LoopKind::Serial: break;
      case LoopKind::Parallel: kind = "parallel "; break;
      case LoopKind::Unroll: kind = "unroll "; break;
      case LoopKind::Vector: kind = "vector "; break;
    }
    std::string& word = variables_[loop.variable];
    word = names_.add(variable.name, 'v', loops_++);
    line(kind + word + ": " + std::to_string(variable.extent) + " {");
    print_body(kernel, loop.body);
    names_.release(word);
    word.clear();
  }

  void print_statement(const ScheduledKernel&, const StoreStatement& store) {
    prepare({store.address, store.value});
    line("store " + word(parameters_, store.parameter) + "[" + in_place(store.address, kAnd) +
         "] = " + root(store.value));
  }

  void print_statement(const ScheduledKernel&, const SetRegisterStatement& set) {
    prepare({set.element, set.lane, set.value});
    line("set " + word(registers_, set.array) + "[" + in_place(set.element, kAnd) + ", " +
         in_place(set.lane, kAnd) + "] = " + root(set.value));
  }

  void print_statement(const ScheduledKernel& kernel, const IfStatement& branch) {
    prepare({branch.condition});
    line("if " + root(branch.condition) + " {");
    print_body(kernel, branch.body);
  }

  void print_statement(const ScheduledKernel&, const PrefetchStatement& prefetch) {
    prepare({prefetch.address});
    line("prefetch " + word(parameters_, prefetch.parameter) + "[" +
         in_place(prefetch.address, kAnd) + "]");
  }

  void print_statement(const ScheduledKernel&, const BarrierStatement&) { line("barrier"); }

  void print_body(const ScheduledKernel& kernel, const Block& body) {
    ++depth_;
    print_block(kernel, body);
    --depth_;
    line("}");
  }

  // --- which expressions get lines

  void count_uses(const Block& block) {
    for (const Statement& statement : block) {
      if (const auto* loop = std::get_if<ForStatement>(&statement.node)) {
        count_uses(loop->body);
      } else if (const auto* store = std::get_if<StoreStatement>(&statement.node)) {
        count_use(store->address);
        count_use(store->value);
      } else if (const auto* set = std::get_if<SetRegisterStatement>(&statement.node)) {
        count_use(set->element);
        count_use(set->lane);
        count_use(set->value);
      } else if (const auto* branch = std::get_if<IfStatement>(&statement.node)) {
        count_use(branch->condition);
        count_uses(branch->body);
      } else if (const auto* prefetch = std::get_if<PrefetchStatement>(&statement.node)) {
        count_use(prefetch->address);
      }
    }
  }

  void count_use(ExprId id) {
    if (uses_[id.index]++ > 0) return;
    for (const ExprId operand : pool_[id].operands) count_use(operand);
  }

  bool is_index_arithmetic(const Expr& expr) const {
    if (expr.kind == ExprKind::ClampIndex) return true;
    if (expr.kind != ExprKind::Scalar) return false;
    const DType operand = pool_[expr.operands.back()].dtype;
    return operand == DType::I64 || operand == DType::Bool;
  }

  bool gets_line(ExprId id) {
    const Expr& expr = pool_[id];
    switch (expr.kind) {
      case ExprKind::Constant:
      case ExprKind::Variable:
      case ExprKind::ReadRegister: return false;
      case ExprKind::Load:
      case ExprKind::LoadFlat:
      case ExprKind::Reduce: return true;
      case ExprKind::Scalar:
      case ExprKind::Cast:
      case ExprKind::ClampIndex: break;
    }
    if (!is_index_arithmetic(expr)) return true;
    const int operations = operations_in_place(id);
    return operations > kMostInPlace || (operations > 1 && uses_[id.index] > 1);
  }

  // Operations written where this one is: itself and operands without lines.
  int operations_in_place(ExprId id) {
    if (const auto known = operations_.find(id.index); known != operations_.end()) {
      return known->second;
    }
    int count = 1;
    for (const ExprId operand : pool_[id].operands) {
      const ExprKind kind = pool_[operand].kind;
      if (kind == ExprKind::Constant || kind == ExprKind::Variable || gets_line(operand)) continue;
      count += operations_in_place(operand);
    }
    operations_.emplace(id.index, count);
    return count;
  }

  bool reads_register(ExprId id) {
    if (const auto known = reads_register_.find(id.index); known != reads_register_.end()) {
      return known->second;
    }
    const Expr& expr = pool_[id];
    bool reads = expr.kind == ExprKind::ReadRegister;
    for (const ExprId operand : expr.operands) reads = reads_register(operand) || reads;
    reads_register_.emplace(id.index, reads);
    return reads;
  }

  // Writes the lines that a statement with these expressions needs.
  void prepare(const std::vector<ExprId>& roots) {
    for (const ExprId id : this_statement_) numbers_.erase(id.index);
    this_statement_.clear();
    for (std::size_t i = 0; i < roots.size(); ++i) {
      // The last one is the statement's value and stands in place if nothing else uses it.
      if (i + 1 == roots.size() && uses_[roots[i].index] == 1) {
        prepare_operands(roots[i]);
      } else {
        prepare_one(roots[i]);
      }
    }
  }

  void prepare_operands(ExprId id) {
    for (const ExprId operand : pool_[id].operands) prepare_one(operand);
  }

  void prepare_one(ExprId id) {
    if (numbers_.contains(id.index)) return;
    prepare_operands(id);
    if (!gets_line(id)) return;
    const std::string number = "%" + std::to_string(next_number_++);
    line(number + " = " + written_out(id, kAnd));
    numbers_.emplace(id.index, number);
    if (reads_register(id)) {
      this_statement_.push_back(id);
    } else {
      scope_.push_back(id.index);
    }
  }

  // --- text of expressions

  std::string root(ExprId id) {
    return numbers_.contains(id.index) ? in_place(id, kAnd) : written_out(id, kAnd);
  }

  std::string in_place(ExprId id, Strength least) {
    if (const auto number = numbers_.find(id.index); number != numbers_.end()) {
      return number->second;
    }
    return written_out(id, least);
  }

  std::string list(const std::vector<ExprId>& ids, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) text += ", ";
      text += in_place(ids[i], kAnd);
    }
    return text;
  }
  std::string list(const std::vector<ExprId>& ids) { return list(ids, ids.size()); }

  static std::string constant_text(const Scalar& constant) {
    if (constant.dtype == DType::I64 || constant.dtype == DType::Bool) return to_text(constant);
    return std::string(name(constant.dtype)) + " " + to_text(constant);
  }

  // "?7" where there is no such thing or it is out of scope, which the validator refuses.
  static std::string word(const std::vector<std::string>& words, std::uint32_t id) {
    return id < words.size() && !words[id].empty() ? words[id] : "?" + std::to_string(id);
  }

  std::string infix(const Expr& expr, const char* between, Strength own, Strength left,
                    Strength right, Strength least) {
    std::string text = in_place(expr.operands[0], left);
    text += between;
    text += in_place(expr.operands[1], right);
    return own < least ? "(" + text + ")" : text;
  }

  // Whether the operation may stand between its operands.
  bool written_between(const Expr& expr, DType dtype) const {
    return !expr.strict && expr.operands.size() == 2 && pool_[expr.operands[0]].dtype == dtype &&
           pool_[expr.operands[1]].dtype == dtype;
  }

  std::string scalar_text(const Expr& expr, Strength least) {
    if (written_between(expr, DType::I64)) {
      if (expr.op == ScalarOp::Add) {
        const Expr& right = pool_[expr.operands[1]];
        if (right.kind == ExprKind::Constant && right.constant.as_int() < 0 &&
            right.constant.as_int() != std::numeric_limits<std::int64_t>::min()) {
          const std::string text =
              in_place(expr.operands[0], kSum) + " - " + std::to_string(-right.constant.as_int());
          return kSum < least ? "(" + text + ")" : text;
        }
        return infix(expr, " + ", kSum, kSum, kProduct, least);
      }
      if (expr.op == ScalarOp::Mul) {
        return infix(expr, " * ", kProduct, kProduct, kPrimary, least);
      }
      if (expr.op == ScalarOp::FloorDiv) {
        return infix(expr, " div ", kProduct, kProduct, kPrimary, least);
      }
      if (expr.op == ScalarOp::FloorMod) {
        return infix(expr, " mod ", kProduct, kProduct, kPrimary, least);
      }
      if (expr.op == ScalarOp::Lt) return infix(expr, " < ", kCompare, kSum, kSum, least);
      if (expr.op == ScalarOp::Le) return infix(expr, " <= ", kCompare, kSum, kSum, least);
      if (expr.op == ScalarOp::Eq) return infix(expr, " == ", kCompare, kSum, kSum, least);
      if (expr.op == ScalarOp::Ne) return infix(expr, " != ", kCompare, kSum, kSum, least);
    }
    if (expr.op == ScalarOp::And && written_between(expr, DType::Bool)) {
      return infix(expr, " && ", kAnd, kAnd, kCompare, least);
    }
    return std::string(name(expr.op)) + (expr.strict ? "!(" : "(") + list(expr.operands) + ")";
  }

  std::string load_text(const Expr& expr) {
    const std::size_t coordinates = expr.operands.size() - (expr.gated ? 1 : 0);
    std::string text =
        "load " + word(parameters_, expr.id) + "[" + list(expr.operands, coordinates) + "]";
    if (expr.gated) {
      text +=
          " if " + in_place(expr.operands.back(), kAnd) + " else " + constant_text(expr.constant);
    }
    return text;
  }

  // The expression itself, whether or not it has a line.
  std::string written_out(ExprId id, Strength least) {
    const Expr& expr = pool_[id];
    switch (expr.kind) {
      case ExprKind::Constant: return constant_text(expr.constant);
      case ExprKind::Variable: return word(variables_, expr.id);
      case ExprKind::Scalar: return scalar_text(expr, least);
      case ExprKind::Cast: return std::string(name(expr.dtype)) + "(" + list(expr.operands) + ")";
      case ExprKind::Load:
      case ExprKind::LoadFlat: return load_text(expr);
      case ExprKind::Reduce: {
        std::string text = std::string(name(expr.reduce)) + (expr.strict ? "!(" : "(") +
                           list(expr.operands) + " over ";
        for (std::size_t i = 0; i < expr.ranges.size(); ++i) {
          if (i > 0) text += ", ";
          text += word(variables_, expr.ranges[i]);
        }
        return text + ")";
      }
      case ExprKind::ReadRegister:
        return word(registers_, expr.id) + "[" + list(expr.operands) + "]";
      case ExprKind::ClampIndex:
        return "clamp(" + list(expr.operands) + ", " + to_text(expr.constant) + ")";
    }
    return {};
  }

  const ExprPool& pool_;
  bool real_names_;
  NameTable names_;
  std::string text_;
  int depth_ = 0;
  std::vector<std::string> parameters_, registers_, variables_;
  std::size_t loops_ = 0;
  std::vector<std::uint32_t> uses_;
  std::unordered_map<std::uint32_t, int> operations_;
  std::unordered_map<std::uint32_t, bool> reads_register_;
  // Lines now in force: number of each, those of open blocks, those of this statement only.
  std::unordered_map<std::uint32_t, std::string> numbers_;
  std::vector<std::uint32_t> scope_;
  std::vector<ExprId> this_statement_;
  int next_number_ = 0;
};

}  // namespace

bool is_reserved_word(std::string_view word) {
  static const std::set<std::string_view> words = [] {
    std::set<std::string_view> all = {
        "ranged", "scheduled", "kernel", "read",   "write",    "update",  "range",   "reduce",
        "group",  "register",  "worker", "step",   "store",    "set",     "if",      "else",
        "for",    "parallel",  "unroll", "vector", "prefetch", "barrier", "load",    "over",
        "div",    "mod",       "true",   "false",  "clamp",    "sum",     "product",
    };
    for (const std::string_view op : {
#define SCALAR_OP(enumerator, text, operands) std::string_view(text),
#include "compiler/tensor/scalar_op.def"
#undef SCALAR_OP
         }) {
      all.insert(op);
    }
    return all;
  }();
  return words.contains(word) || dtype_from_name(word).has_value();
}

std::string name_in_text(std::string_view name) {
  if (!name.empty() && starts_name(name.front()) &&
      std::all_of(name.begin(), name.end(), continues_name) && !is_reserved_word(name)) {
    return std::string(name);
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text = "\"";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      text += "\\x";
      text += kHex[byte >> 4];
      text += kHex[byte & 15];
    } else {
      text += c;
    }
  }
  return text + '"';
}

std::string print_kernel(const RangedKernel& kernel) {
  return KernelPrinter(kernel.pool, true).print(kernel);
}

std::string print_kernel(const ScheduledKernel& kernel) {
  return KernelPrinter(kernel.pool, true).print(kernel);
}

std::string identity_key(const ScheduledKernel& kernel) {
  return KernelPrinter(kernel.pool, false).print(kernel);
}

}  // namespace ingot
