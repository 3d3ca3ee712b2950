// Runs kernels element by element, as the judge of passes.
//
// Values are evaluated when a statement needs them and kept until a variable (or register) they
// depend on changes: every turn of a loop takes a new number from one counter, and a kept value is
// good while no dependency has a later number than the value itself. Every operand is evaluated,
// also behind a closed gate or in the unused arm of a select, as compiled code may do.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/tensor/scalar_arithmetic.h"

namespace ingot {
namespace {

// Register arrays above this many values are refused, not allocated.
constexpr std::int64_t kMostRegisterValues = std::int64_t{1} << 28;

// A value as Scalar holds it: floats as binary64, everything else as 64 bits in two's complement.
using Bits = std::uint64_t;

double as_double(Bits bits) { return std::bit_cast<double>(bits); }
std::int64_t as_int(Bits bits) { return static_cast<std::int64_t>(bits); }
Bits of_double(double value) { return std::bit_cast<Bits>(value); }
Bits of_int(std::int64_t value) { return static_cast<Bits>(value); }

Bits read_memory(DType dtype, const std::byte* at) {
  const auto read = [at]<typename T>(T value) {
    std::memcpy(&value, at, sizeof(T));
    return value;
  };
  switch (dtype) {
    case DType::F32: return of_double(static_cast<double>(read(float{})));
    case DType::F64: return of_double(read(double{}));
    case DType::F16: return of_double(double_from_f16(read(std::uint16_t{})));
    case DType::BF16: return of_double(double_from_bf16(read(std::uint16_t{})));
    case DType::U8: return read(std::uint8_t{});
    case DType::U16: return read(std::uint16_t{});
    case DType::U32: return read(std::uint32_t{});
    case DType::U64: return read(std::uint64_t{});
    case DType::I8: return of_int(read(std::int8_t{}));
    case DType::I16: return of_int(read(std::int16_t{}));
    case DType::I32: return of_int(read(std::int32_t{}));
    case DType::I64: return of_int(read(std::int64_t{}));
    case DType::Bool: return read(std::uint8_t{}) != 0 ? 1 : 0;
  }
  return 0;
}

void write_memory(DType dtype, std::byte* at, Bits value) {
  const auto write = [at](auto number) { std::memcpy(at, &number, sizeof(number)); };
  switch (dtype) {
    case DType::F32: write(static_cast<float>(as_double(value))); break;
    case DType::F64: write(as_double(value)); break;
    case DType::F16: write(f16_from_double(as_double(value))); break;
    case DType::BF16: write(bf16_from_double(as_double(value))); break;
    case DType::U8:
    case DType::I8:
    case DType::Bool: write(static_cast<std::uint8_t>(value)); break;
    case DType::U16:
    case DType::I16: write(static_cast<std::uint16_t>(value)); break;
    case DType::U32:
    case DType::I32: write(static_cast<std::uint32_t>(value)); break;
    case DType::U64:
    case DType::I64: write(value); break;
  }
}

// A parameter's memory and what its layout allows.
struct Buffer {
  struct Dimension {
    std::int64_t first = 0, end = 0;  // coordinates that have an address, halo included
    std::int64_t before = 0;
    std::int64_t stride = 0;
    bool blocked = false;
  };
  const KernelParameter* parameter = nullptr;
  std::byte* memory = nullptr;
  std::int64_t elements = 0;
  std::int64_t size_bytes = 1;
  std::int64_t block = 1, streams = 1, blocks_of_stream = 0;
  std::vector<Dimension> dimensions;

  Buffer(const KernelParameter& of, std::byte* bytes)
      : parameter(&of),
        memory(bytes),
        elements(element_count(of.layout, of.shape)),
        size_bytes(ingot::size_bytes(of.dtype)),
        block(of.layout.block),
        streams(of.layout.streams) {
    if (block > 1) blocks_of_stream = ingot::blocks_of_stream(of.layout, of.shape);
    const std::vector<std::int64_t> stride = strides(of.layout, of.shape);
    for (std::size_t d = 0; d < of.shape.size(); ++d) {
      Dimension dimension;
      dimension.blocked = block > 1 && of.layout.block_dim == static_cast<int>(d);
      dimension.first = -of.layout.before[d];
      dimension.end = padded_extent(of.layout, of.shape, static_cast<int>(d)) + of.layout.after[d];
      dimension.before = of.layout.before[d];
      dimension.stride = stride[d];
      dimensions.push_back(dimension);
    }
  }
};

// The state that both forms share: values of expressions and of variables.
class Evaluator {
 public:
  Evaluator(const ExprPool& pool, std::string kernel, std::size_t variables)
      : pool_(pool),
        kernel_(std::move(kernel)),
        nodes_(pool.size()),
        values_(variables, 0),
        turns_(variables + 2, 0),
        in_scope_(variables, false) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Node& node = nodes_[i];
      node.expr = &pool[ExprId{static_cast<std::uint32_t>(i)}];
      const std::vector<ExprId>& operands = node.expr->operands;
      if (operands.empty()) continue;
      for (std::size_t k = 0; k < std::min<std::size_t>(operands.size(), 3); ++k) {
        node.operands[k] = operands[k].index;
      }
      node.operand_type = pool[operands.back()].dtype;
    }
    turns_[registers_changed()] = 1;
    turns_[always()] = 1;
    counter_ = 1;
  }
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;
  virtual ~Evaluator() = default;

 protected:
  struct Node {
    Bits value = 0;
    std::uint64_t evaluated = 0;  // the counter then
    const Expr* expr = nullptr;
    // What the value depends on: variables, registers_changed(), or always() alone. What changes
    // most often stands first.
    std::uint32_t first_dependency = 0;
    std::uint32_t dependency_count = 0;
    std::array<std::uint32_t, 3> operands = {};  // of a scalar operation
    DType operand_type = DType::F32;
  };

  std::uint32_t registers_changed() const { return static_cast<std::uint32_t>(values_.size()); }
  std::uint32_t always() const { return static_cast<std::uint32_t>(values_.size() + 1); }

  void set_variable(std::uint32_t variable, std::int64_t value) {
    values_[variable] = value;
    turns_[variable] = ++counter_;
  }

  Bits evaluate(ExprId id) {
    Node& node = nodes_[id.index];
    if (is_good(node)) return node.value;
    const Bits value = compute(node);
    node.value = value;
    node.evaluated = counter_;
    return value;
  }

  std::span<const std::uint32_t> dependencies(std::size_t index) const {
    const Node& node = nodes_[index];
    return std::span(dependencies_).subspan(node.first_dependency, node.dependency_count);
  }
  void set_dependencies(std::size_t index, std::span<const std::uint32_t> list) {
    nodes_[index].first_dependency = static_cast<std::uint32_t>(dependencies_.size());
    nodes_[index].dependency_count = static_cast<std::uint32_t>(list.size());
    dependencies_.insert(dependencies_.end(), list.begin(), list.end());
  }

  std::int64_t evaluate_int(ExprId id) { return as_int(evaluate(id)); }

  void fail_at(std::string what) {
    if (failed_) return;
    failed_ = true;
    problem_ = std::move(what);
    bool first = true;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (!in_scope_[i]) continue;
      problem_ += (first ? " (where " : ", ") + variable_name(static_cast<std::uint32_t>(i)) +
                  " = " + std::to_string(values_[i]);
      first = false;
    }
    if (!first) problem_ += ")";
  }

  Result<InterpreterResult> result() const {
    if (!failed_) return InterpreterResult{clamped_};
    return fail(ExitCode::Internal, "kernel-access", "kernel '" + kernel_ + "': " + problem_);
  }

  virtual std::string variable_name(std::uint32_t variable) const = 0;
  virtual Bits compute_reduce(const Expr& expr) = 0;
  virtual Bits compute_register(const Expr& expr) = 0;

  // Element address of the access; nullopt after noting that it lies outside.
  std::optional<std::int64_t> address_of(const char* access, const Buffer& buffer,
                                         std::span<const ExprId> coordinates, bool flat) {
    if (flat) {
      const std::int64_t address = evaluate_int(coordinates[0]);
      if (address >= 0 && address < buffer.elements) return address;
      fail_at(std::string(access) + " '" + buffer.parameter->name + "' at address " +
              std::to_string(address) + ": the buffer has " + std::to_string(buffer.elements) +
              " elements");
      return std::nullopt;
    }
    std::int64_t address = 0;
    for (std::size_t d = 0; d < coordinates.size(); ++d) {
      const Buffer::Dimension& dimension = buffer.dimensions[d];
      const std::int64_t coordinate = evaluate_int(coordinates[d]);
      if (coordinate < dimension.first || coordinate >= dimension.end) {
        fail_at(std::string(access) + " '" + buffer.parameter->name + "': coordinate " +
                std::to_string(d) + " is " + std::to_string(coordinate) + ", outside of [" +
                std::to_string(dimension.first) + ", " + std::to_string(dimension.end) + ")");
        return std::nullopt;
      }
      if (dimension.blocked) {
        const std::int64_t block = coordinate / buffer.block;
        address += (block % buffer.streams * buffer.blocks_of_stream + block / buffer.streams) *
                       dimension.stride +
                   coordinate % buffer.block;
      } else {
        address += (coordinate + dimension.before) * dimension.stride;
      }
    }
    if (address < buffer.elements) return address;
    fail_at(std::string(access) + " '" + buffer.parameter->name + "': the buffer is empty");
    return std::nullopt;
  }

  void store(std::uint32_t parameter, std::span<const ExprId> coordinates, bool flat,
             ExprId value) {
    const Buffer& buffer = buffers_[parameter];
    const Bits bits = evaluate(value);
    const auto address = address_of("store to", buffer, coordinates, flat);
    if (!address || failed_) return;
    write_memory(buffer.parameter->dtype, buffer.memory + *address * buffer.size_bytes, bits);
  }

  const ExprPool& pool_;
  std::string kernel_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> dependencies_;
  std::vector<Buffer> buffers_;
  std::vector<std::int64_t> values_;  // of variables
  std::vector<std::uint64_t> turns_;  // the counter when a variable last changed
  std::vector<bool> in_scope_;
  std::uint64_t counter_ = 0;
  bool clamped_ = false;
  bool failed_ = false;
  std::string problem_;

 private:
  bool is_good(const Node& node) const {
    for (std::uint32_t i = 0; i < node.dependency_count; ++i) {
      if (turns_[dependencies_[node.first_dependency + i]] > node.evaluated) return false;
    }
    return true;
  }

  Bits compute(const Node& node) {
    const Expr& expr = *node.expr;
    switch (expr.kind) {
      case ExprKind::Constant: return expr.constant.bits;
      case ExprKind::Variable: return of_int(values_[expr.id]);
      case ExprKind::Scalar: {
        const std::size_t count = expr.operands.size();
        const Bits a = evaluate(ExprId{node.operands[0]});
        const Bits b = count > 1 ? evaluate(ExprId{node.operands[1]}) : 0;
        const Bits c = count > 2 ? evaluate(ExprId{node.operands[2]}) : 0;
        if (expr.op == ScalarOp::Select) return a != 0 ? b : c;
        return apply(expr.op, node.operand_type, a, b, c);
      }
      case ExprKind::Cast:
        return convert(node.operand_type, expr.dtype, evaluate(expr.operands[0]));
      case ExprKind::Load:
      case ExprKind::LoadFlat: return compute_load(expr);
      case ExprKind::Reduce: return compute_reduce(expr);
      case ExprKind::ReadRegister: return compute_register(expr);
      case ExprKind::ClampIndex: {
        const std::int64_t value = evaluate_int(expr.operands[0]);
        const std::int64_t clamped = std::clamp<std::int64_t>(value, 0, expr.constant.as_int() - 1);
        clamped_ = clamped_ || clamped != value;
        return of_int(clamped);
      }
    }
    return 0;
  }

  Bits compute_load(const Expr& expr) {
    const Buffer& buffer = buffers_[expr.id];
    const std::span<const ExprId> operands(expr.operands);
    const auto coordinates = operands.first(operands.size() - (expr.gated ? 1 : 0));
    if (expr.gated && evaluate(operands.back()) == 0) {
      for (const ExprId coordinate : coordinates) evaluate(coordinate);
      return expr.constant.bits;
    }
    const auto address =
        address_of("load of", buffer, coordinates, expr.kind == ExprKind::LoadFlat);
    if (!address) return 0;
    return read_memory(buffer.parameter->dtype, buffer.memory + *address * buffer.size_bytes);
  }
};

class RangedRun : Evaluator {
 public:
  RangedRun(const RangedKernel& kernel, std::span<std::byte* const> buffers)
      : Evaluator(kernel.pool, kernel.name, kernel.ranges.size()), ranged_(kernel) {
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
      buffers_.emplace_back(kernel.parameters[i], buffers[i]);
    }
    for (std::size_t i = 0; i < kernel.pool.size(); ++i) {
      const Expr& expr = kernel.pool[ExprId{static_cast<std::uint32_t>(i)}];
      std::vector<std::uint32_t> depends;
      if (expr.kind == ExprKind::Variable && expr.id < kernel.ranges.size()) {
        depends.push_back(expr.id);
      }
      for (const ExprId operand : expr.operands) {
        for (const std::uint32_t variable : dependencies(operand.index)) {
          if (variable != always()) depends.push_back(variable);
        }
      }
      for (const std::uint32_t range : expr.ranges) std::erase(depends, range);
      std::sort(depends.begin(), depends.end(), std::greater<>());
      depends.erase(std::unique(depends.begin(), depends.end()), depends.end());
      if (depends.empty()) depends.push_back(always());
      set_dependencies(i, depends);
    }
  }

  Result<InterpreterResult> run() {
    for (const RangedStore& store_statement : ranged_.stores) {
      // The output ranges that the store uses, in order.
      std::vector<std::uint32_t> ranges;
      std::vector<ExprId> roots = store_statement.coordinates;
      roots.push_back(store_statement.value);
      for (const ExprId root : roots) {
        const auto more = dependencies(root.index);
        ranges.insert(ranges.end(), more.begin(), more.end());
      }
      std::sort(ranges.begin(), ranges.end());
      ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());
      std::erase(ranges, always());
      for_each(ranges, [&] {
        store(store_statement.parameter, store_statement.coordinates, false, store_statement.value);
      });
    }
    return result();
  }

 private:
  // Calls body() for all values of the ranges, outermost first.
  template <typename Body>
  void for_each(std::span<const std::uint32_t> ranges, const Body& body) {
    if (failed_) return;
    if (ranges.empty()) {
      body();
      return;
    }
    const std::uint32_t range = ranges.front();
    in_scope_[range] = true;
    for (std::int64_t i = 0; i < ranged_.ranges[range].extent && !failed_; ++i) {
      set_variable(range, i);
      for_each(ranges.subspan(1), body);
    }
    in_scope_[range] = false;
  }

  Bits compute_reduce(const Expr& expr) override {
    Bits total = identity(expr.reduce, expr.dtype).bits;
    const ScalarOp op = scalar_op(expr.reduce);
    for_each(expr.ranges,
             [&] { total = apply(op, expr.dtype, total, evaluate(expr.operands[0])); });
    return total;
  }

  Bits compute_register(const Expr&) override { return 0; }
  std::string variable_name(std::uint32_t variable) const override {
    return ranged_.ranges[variable].name;
  }

  const RangedKernel& ranged_;
};

class ScheduledRun : Evaluator {
 public:
  ScheduledRun(const ScheduledKernel& kernel, std::span<std::byte* const> buffers)
      : Evaluator(kernel.pool, kernel.name, kernel.variables.size()),
        scheduled_(kernel),
        depths_(kernel.variables.size(), 0) {
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
      buffers_.emplace_back(kernel.parameters[i], buffers[i]);
    }
    note_depths(kernel.body, 1);
    for (std::size_t i = 0; i < kernel.pool.size(); ++i) {
      note_dependencies(i, kernel.pool[ExprId{static_cast<std::uint32_t>(i)}]);
    }
  }

  Result<InterpreterResult> run() {
    for (const RegisterArray& array : scheduled_.registers) {
      const std::int64_t count = array.elements * array.lanes;
      if (count > kMostRegisterValues) {
        fail_at("register array '" + array.name + "': too large to interpret");
        return result();
      }
      registers_.emplace_back(static_cast<std::size_t>(count));
    }
    run_block(scheduled_.body);
    return result();
  }

 private:
  struct RegisterValue {
    Bits value = 0;
    bool is_set = false;
  };

  void note_depths(const Block& block, int depth) {
    for (const Statement& statement : block) {
      if (const auto* loop = std::get_if<ForStatement>(&statement.node)) {
        depths_[loop->variable] = depth;
        note_depths(loop->body, depth + 1);
      } else if (const auto* branch = std::get_if<IfStatement>(&statement.node)) {
        note_depths(branch->body, depth);
      }
    }
  }

  // Loops in scope are nested, so the innermost variable changes whenever an outer one does.
  void note_dependencies(std::size_t index, const Expr& expr) {
    // Expressions that no statement reaches may hold anything.
    const bool variable_exists = expr.kind == ExprKind::Variable && expr.id < depths_.size();
    std::uint32_t innermost = variable_exists ? expr.id : always();
    bool registers = expr.kind == ExprKind::ReadRegister;
    for (const ExprId operand : expr.operands) {
      for (const std::uint32_t variable : dependencies(operand.index)) {
        if (variable == registers_changed()) {
          registers = true;
        } else if (variable != always() &&
                   (innermost == always() || depths_[variable] > depths_[innermost])) {
          innermost = variable;
        }
      }
    }
    const std::uint32_t both[] = {innermost, registers_changed()};
    set_dependencies(index, std::span(both).first(registers ? 2 : 1));
  }

  void run_block(const Block& block) {
    for (const Statement& statement : block) {
      if (failed_) return;
      std::visit([this](const auto& node) { run_statement(node); }, statement.node);
    }
  }

  void run_statement(const ForStatement& loop) {
    in_scope_[loop.variable] = true;
    const std::int64_t extent = scheduled_.variables[loop.variable].extent;
    for (std::int64_t i = 0; i < extent && !failed_; ++i) {
      set_variable(loop.variable, i);
      run_block(loop.body);
    }
    in_scope_[loop.variable] = false;
  }

  void run_statement(const StoreStatement& statement) {
    store(statement.parameter, std::span(&statement.address, 1), true, statement.value);
  }

  void run_statement(const SetRegisterStatement& set) {
    const Bits value = evaluate(set.value);
    RegisterValue* place = find_register("set of", set.array, set.element, set.lane);
    if (place == nullptr) return;
    *place = {value, true};
    turns_[registers_changed()] = ++counter_;
  }

  void run_statement(const IfStatement& branch) {
    if (evaluate(branch.condition) != 0) run_block(branch.body);
  }

  void run_statement(const PrefetchStatement& prefetch) { evaluate(prefetch.address); }
  void run_statement(const BarrierStatement&) {}

  RegisterValue* find_register(const char* access, std::uint32_t id, ExprId element, ExprId lane) {
    const RegisterArray& array = scheduled_.registers[id];
    const std::int64_t e = evaluate_int(element);
    const std::int64_t l = evaluate_int(lane);
    if (e >= 0 && e < array.elements && l >= 0 && l < array.lanes) {
      return &registers_[id][static_cast<std::size_t>(e * array.lanes + l)];
    }
    fail_at(std::string(access) + " register '" + array.name + "' at element " + std::to_string(e) +
            ", lane " + std::to_string(l) + ": it has " + std::to_string(array.elements) +
            " elements of " + std::to_string(array.lanes) + " lanes");
    return nullptr;
  }

  Bits compute_register(const Expr& expr) override {
    const RegisterValue* place =
        find_register("read of", expr.id, expr.operands[0], expr.operands[1]);
    if (place == nullptr) return 0;
    if (!place->is_set) {
      fail_at("read of register '" + scheduled_.registers[expr.id].name + "' at element " +
              std::to_string(evaluate_int(expr.operands[0])) + ", lane " +
              std::to_string(evaluate_int(expr.operands[1])) + ": it was never set");
    }
    return place->value;
  }

  Bits compute_reduce(const Expr&) override { return 0; }
  std::string variable_name(std::uint32_t variable) const override {
    return scheduled_.variables[variable].name;
  }

  const ScheduledKernel& scheduled_;
  std::vector<int> depths_;
  std::vector<std::vector<RegisterValue>> registers_;
};

template <typename Kernel>
Result<void> check_call(const Kernel& kernel, std::span<std::byte* const> buffers) {
  INGOT_RETURN_IF_ERROR(validate_kernel(kernel));
  if (buffers.size() != kernel.parameters.size()) {
    return fail(ExitCode::Internal, "kernel-access",
                "kernel '" + kernel.name + "': " + std::to_string(buffers.size()) +
                    " buffers for " + std::to_string(kernel.parameters.size()) + " parameters");
  }
  return {};
}

}  // namespace

Result<InterpreterResult> interpret(const RangedKernel& kernel,
                                    std::span<std::byte* const> buffers) {
  INGOT_RETURN_IF_ERROR(check_call(kernel, buffers));
  return RangedRun(kernel, buffers).run();
}

Result<InterpreterResult> interpret(const ScheduledKernel& kernel,
                                    std::span<std::byte* const> buffers) {
  INGOT_RETURN_IF_ERROR(check_call(kernel, buffers));
  return ScheduledRun(kernel, buffers).run();
}

}  // namespace ingot
