// What a well-formed kernel is.
//
// Parameters (both forms)
//   P1  the layout fits the shape: a permutation, extents and halos not negative, a block only of
//       one dimension without halo
//   P2  fewer than 2^40 elements
// Expressions (both forms)
//   E1  operands: as many as the operation takes, of types it accepts, giving the stated type
//   E2  constants and fills have the type of their expression
//   E3  variables, parameters and register arrays exist
//   E4  loads only of Read parameters, in their element type; a gate is bool
//   E5  clamped indices are I64, the extent at least 1
//   E6  the kind of expression belongs to the form
// Ranged form
//   R1  extents are not negative; output ranges stand before reduce ranges
//   R2  coordinates: I64, one per dimension
//   R3  a reduce runs over at least one reduce range, each once, none reduced again inside; truth
//       values have no sum or product
//   R4  a store depends on output ranges only
//   R5  stores only to Write parameters, in their element type
// Scheduled form
//   S1  extents are not negative; a variable belongs to exactly one loop
//   S2  expressions use only variables of enclosing loops
//   S3  a parallel loop is the only statement of the kernel's body, and the only parallel loop
//   S4  a vector loop has no loop and no barrier inside and a power of two of at most 256 turns
//   S5  register arrays have elements and a power of two of at most 256 lanes
//   S6  address space Register: the element depends on unrolled loops only and is always inside;
//       the lane does too, or is the enclosing vector variable with as many turns as lanes
//   S7  stores only to Write parameters, in their element type; addresses are I64
//   S8  in a vector loop every lane writes elsewhere: a store's address depends on the vector
//       variable, the lane of space Register is that variable, elsewhere element or lane depend on
//       it; what is written there is read there only by the lane that wrote it: at that lane
//       (Register) or at the same element and lane (elsewhere)
//   S9  a condition is bool and does not depend on an enclosing vector variable
//   S10 worker arrays in a parameter: a dense Write parameter [workers, elements] of their type
//       whose rows have room for all of them
//   S11 an Update parameter is loaded only without a gate by the statement that stores to it, at
//   the
//       address that it stores to (that each address comes once is for the maker to prove)
#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "compiler/kernel/index_arithmetic.h"
#include "compiler/kernel/kernel.h"

namespace ingot {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
constexpr std::int64_t kMostLanes = 256;
// Turns of unrolled loops that are tried one by one for rule S6.
constexpr std::int64_t kMostUnrolled = 1 << 16;

enum class Form { Ranged, Scheduled };

// Checks return what is wrong, or nothing.
using Problem = std::optional<std::string>;

std::string quoted(const std::string& name) { return "'" + name + "'"; }

Problem check_parameter(const KernelParameter& parameter) {
  const std::string who = "parameter " + quoted(parameter.name) + ": ";
  const Layout& layout = parameter.layout;
  const std::size_t rank = parameter.shape.size();
  if (layout.order.size() != rank || layout.before.size() != rank || layout.after.size() != rank) {
    return who + "the layout's rank is not the shape's (P1)";
  }
  std::vector<bool> seen(rank, false);
  for (const int d : layout.order) {
    if (d < 0 || static_cast<std::size_t>(d) >= rank || seen[static_cast<std::size_t>(d)]) {
      return who + "the layout's order is not a permutation (P1)";
    }
    seen[static_cast<std::size_t>(d)] = true;
  }
  if (layout.block < 1 || layout.streams < 1 || (layout.streams > 1 && layout.block == 1) ||
      (layout.block > 1) != (layout.block_dim >= 0) || layout.block_dim >= static_cast<int>(rank)) {
    return who + "no such block (P1)";
  }
  for (std::size_t d = 0; d < rank; ++d) {
    if (parameter.shape[d] < 0) return who + "a negative extent (P1)";
    if (layout.before[d] < 0 || layout.after[d] < 0) return who + "a negative halo (P1)";
    const bool halo = layout.before[d] != 0 || layout.after[d] != 0;
    if (halo && layout.block_dim == static_cast<int>(d)) {
      return who + "a halo around the blocked dimension (P1)";
    }
  }
  // Strides of an empty tensor must not grow without bound either.
  Shape shape = parameter.shape;
  for (std::int64_t& extent : shape) extent = std::max<std::int64_t>(extent, 1);
  if (element_count(layout, shape) >= kMostElements) return who + "too large (P2)";
  return std::nullopt;
}

// Marks what the roots reach. Operands precede their users, so one walk downward does it.
class Reached {
 public:
  explicit Reached(const ExprPool& pool) : pool_(pool), marks_(pool.size(), false) {}

  bool add_root(ExprId id) {
    if (id.index >= marks_.size()) return false;
    marks_[id.index] = true;
    return true;
  }
  void close() {
    for (std::size_t i = marks_.size(); i-- > 0;) {
      if (!marks_[i]) continue;
      for (const ExprId operand : pool_[ExprId{static_cast<std::uint32_t>(i)}].operands) {
        marks_[operand.index] = true;
      }
    }
  }
  // Calls visit(id, expr) upward until it returns a problem.
  template <typename Visit>
  Problem for_each(const Visit& visit) const {
    for (std::size_t i = 0; i < marks_.size(); ++i) {
      if (!marks_[i]) continue;
      const ExprId id{static_cast<std::uint32_t>(i)};
      if (Problem problem = visit(id, pool_[id])) return problem;
    }
    return std::nullopt;
  }

 private:
  const ExprPool& pool_;
  std::vector<bool> marks_;
};

// What an expression may refer to.
struct Context {
  Form form = Form::Ranged;
  const ExprPool& pool;
  const std::vector<KernelParameter>& parameters;
  std::size_t variables = 0;
  const std::vector<RegisterArray>* registers = nullptr;
};

Problem check_scalar(const Context& context, const Expr& expr) {
  const std::string who = "operation '" + std::string(name(expr.op)) + "': ";
  if (expr.operands.size() != static_cast<std::size_t>(operand_count(expr.op))) {
    return who + "wrong number of operands (E1)";
  }
  const DType dtype = context.pool[expr.operands.back()].dtype;
  if (!accepts(expr.op, dtype)) {
    return who + "does not accept " + std::string(name(dtype)) + " (E1)";
  }
  for (std::size_t i = 0; i < expr.operands.size(); ++i) {
    const DType expected = expr.op == ScalarOp::Select && i == 0 ? DType::Bool : dtype;
    if (context.pool[expr.operands[i]].dtype != expected) {
      return who + "operands of unlike types (E1)";
    }
  }
  if (expr.dtype != (gives_bool(expr.op) ? DType::Bool : dtype)) {
    return who + "states the wrong type (E1)";
  }
  return std::nullopt;
}

// `coordinates` of parameter `id` for a load or store; `count` of them.
Problem check_coordinates(const Context& context, const KernelParameter& parameter,
                          const std::vector<ExprId>& coordinates, std::size_t count) {
  const std::size_t expected = context.form == Form::Ranged ? parameter.shape.size() : 1;
  const char* const rule = context.form == Form::Ranged ? "R2" : "S7";
  if (count != expected) {
    return "parameter " + quoted(parameter.name) + ": " + std::to_string(count) +
           " coordinates, not " + std::to_string(expected) + " (" + rule + ")";
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (context.pool[coordinates[i]].dtype != DType::I64) {
      return "parameter " + quoted(parameter.name) + ": an index that is not i64 (" + rule + ")";
    }
  }
  return std::nullopt;
}

Problem check_load(const Context& context, const Expr& expr) {
  if (expr.id >= context.parameters.size()) return "a load of no parameter (E3)";
  const KernelParameter& parameter = context.parameters[expr.id];
  const std::string who = "load of " + quoted(parameter.name) + ": ";
  if (parameter.access == Access::Update && context.form == Form::Scheduled) {
    if (expr.gated) return who + "a gate on what is updated (S11)";
  } else if (parameter.access != Access::Read) {
    return who + "it is not a Read parameter (E4)";
  }
  if (expr.dtype != parameter.dtype) return who + "not its element type (E4)";
  if (expr.gated) {
    if (expr.operands.empty()) return who + "the gate is missing (E4)";
    if (context.pool[expr.operands.back()].dtype != DType::Bool) {
      return who + "the gate is not bool (E4)";
    }
    if (expr.constant.dtype != expr.dtype) return who + "the fill has another type (E2)";
  }
  return check_coordinates(context, parameter, expr.operands,
                           expr.operands.size() - (expr.gated ? 1 : 0));
}

Problem check_expr(const Context& context, const Expr& expr) {
  const auto needs = [&](std::size_t count) { return expr.operands.size() == count; };
  const auto belongs_to = [&](Form form) { return context.form == form; };
  switch (expr.kind) {
    case ExprKind::Constant:
      if (!needs(0)) return "a constant with operands (E1)";
      if (expr.constant.dtype != expr.dtype) return "a constant of another type (E2)";
      return std::nullopt;
    case ExprKind::Variable:
      if (!needs(0) || expr.dtype != DType::I64) return "a variable that is not plain i64 (E1)";
      if (expr.id >= context.variables) return "no such variable (E3)";
      return std::nullopt;
    case ExprKind::Scalar: return check_scalar(context, expr);
    case ExprKind::Cast:
      if (!needs(1)) return "a cast takes one operand (E1)";
      return std::nullopt;
    case ExprKind::Load:
      if (!belongs_to(Form::Ranged)) return "a load by coordinates in a scheduled kernel (E6)";
      return check_load(context, expr);
    case ExprKind::LoadFlat:
      if (!belongs_to(Form::Scheduled)) return "a load by address in a ranged kernel (E6)";
      return check_load(context, expr);
    case ExprKind::Reduce:
      if (!belongs_to(Form::Ranged)) return "a reduce in a scheduled kernel (E6)";
      if (!needs(1)) return "a reduce takes one operand (E1)";
      if (context.pool[expr.operands[0]].dtype != expr.dtype) {
        return "a reduce of another type than its operand (E1)";
      }
      return std::nullopt;
    case ExprKind::ReadRegister: {
      if (!belongs_to(Form::Scheduled)) return "a register in a ranged kernel (E6)";
      if (expr.id >= context.registers->size()) return "no such register array (E3)";
      const RegisterArray& array = (*context.registers)[expr.id];
      if (!needs(2)) return "a register is read by element and lane (E1)";
      if (expr.dtype != array.dtype) {
        return "register array " + quoted(array.name) + ": read in another type (E1)";
      }
      for (const ExprId operand : expr.operands) {
        if (context.pool[operand].dtype != DType::I64) {
          return "register array " + quoted(array.name) + ": an index that is not i64 (E1)";
        }
      }
      return std::nullopt;
    }
    case ExprKind::ClampIndex:
      if (!needs(1) || expr.dtype != DType::I64 ||
          context.pool[expr.operands[0]].dtype != DType::I64 || expr.constant.dtype != DType::I64 ||
          expr.constant.as_int() < 1) {
        return "a clamped index is i64 with an extent of at least 1 (E5)";
      }
      return std::nullopt;
  }
  return "an unknown kind of expression (E6)";
}

// Variables that the value of each reached expression depends on, sorted.
class FreeVariables {
 public:
  explicit FreeVariables(std::size_t size) : of_(size) {}

  void add(ExprId id, const Expr& expr) {
    std::vector<std::uint32_t>& own = of_[id.index];
    if (expr.kind == ExprKind::Variable) own.push_back(expr.id);
    for (const ExprId operand : expr.operands) {
      const std::vector<std::uint32_t>& more = of_[operand.index];
      std::vector<std::uint32_t> both;
      std::set_union(own.begin(), own.end(), more.begin(), more.end(), std::back_inserter(both));
      own = std::move(both);
    }
    for (const std::uint32_t range : expr.ranges) std::erase(own, range);
  }
  const std::vector<std::uint32_t>& operator[](ExprId id) const { return of_[id.index]; }

 private:
  std::vector<std::vector<std::uint32_t>> of_;
};

Failure failure(const std::string& kernel, const std::string& problem) {
  return fail(ExitCode::Internal, "invalid-kernel", "kernel " + quoted(kernel) + ": " + problem)
      .error();
}

Problem check_store_target(const std::vector<KernelParameter>& parameters, std::uint32_t id,
                           DType value, const char* rule) {
  if (id >= parameters.size()) return "a store to no parameter (E3)";
  const std::string who = "store to " + quoted(parameters[id].name) + ": ";
  if (!writes(parameters[id].access)) {
    return who + "it is not a Write parameter (" + rule + ")";
  }
  if (value != parameters[id].dtype) return who + "not its element type (" + rule + ")";
  return std::nullopt;
}

// --- ranged form

Problem check_reduce(const RangedKernel& kernel, const Expr& expr,
                     const std::vector<std::uint32_t>& reduced_inside) {
  if (expr.ranges.empty()) return "a reduce over no range (R3)";
  if (expr.dtype == DType::Bool &&
      (expr.reduce == Combine::Sum || expr.reduce == Combine::Product)) {
    return "a sum or product of bool (R3)";
  }
  for (std::size_t i = 0; i < expr.ranges.size(); ++i) {
    const std::uint32_t range = expr.ranges[i];
    if (range >= kernel.ranges.size()) return "a reduce over no range of the kernel (E3)";
    const std::string who = "range " + quoted(kernel.ranges[range].name) + ": ";
    if (!kernel.ranges[range].is_reduce) return who + "an output range is reduced (R3)";
    if (std::find(expr.ranges.begin(), expr.ranges.begin() + static_cast<std::ptrdiff_t>(i),
                  range) != expr.ranges.begin() + static_cast<std::ptrdiff_t>(i)) {
      return who + "reduced twice (R3)";
    }
    if (std::binary_search(reduced_inside.begin(), reduced_inside.end(), range)) {
      return who + "reduced again inside (R3)";
    }
  }
  return std::nullopt;
}

Problem check(const RangedKernel& kernel) {
  for (const KernelParameter& parameter : kernel.parameters) {
    if (Problem problem = check_parameter(parameter)) return problem;
  }
  bool reduce_seen = false;
  for (const Range& range : kernel.ranges) {
    if (range.extent < 0) return "range " + quoted(range.name) + ": a negative extent (R1)";
    if (!range.is_reduce && reduce_seen) {
      return "range " + quoted(range.name) + ": an output range after a reduce range (R1)";
    }
    reduce_seen = reduce_seen || range.is_reduce;
  }

  Reached reached(kernel.pool);
  for (const RangedStore& store : kernel.stores) {
    bool known = reached.add_root(store.value);
    for (const ExprId coordinate : store.coordinates) {
      known = known && reached.add_root(coordinate);
    }
    if (!known) return "a store of no expression (E3)";
  }
  reached.close();

  const Context context{Form::Ranged, kernel.pool, kernel.parameters, kernel.ranges.size(),
                        nullptr};
  FreeVariables free(kernel.pool.size());
  std::vector<std::vector<std::uint32_t>> reduced(kernel.pool.size());
  Problem problem = reached.for_each([&](ExprId id, const Expr& expr) -> Problem {
    if (Problem found = check_expr(context, expr)) return found;
    std::vector<std::uint32_t>& own = reduced[id.index];
    for (const ExprId operand : expr.operands) {
      const std::vector<std::uint32_t>& more = reduced[operand.index];
      std::vector<std::uint32_t> both;
      std::set_union(own.begin(), own.end(), more.begin(), more.end(), std::back_inserter(both));
      own = std::move(both);
    }
    if (expr.kind == ExprKind::Reduce) {
      if (Problem found = check_reduce(kernel, expr, own)) return found;
      own.insert(own.end(), expr.ranges.begin(), expr.ranges.end());
      std::sort(own.begin(), own.end());
    }
    free.add(id, expr);
    return std::nullopt;
  });
  if (problem) return problem;

  for (const RangedStore& store : kernel.stores) {
    if (Problem found = check_store_target(kernel.parameters, store.parameter,
                                           kernel.pool[store.value].dtype, "R5")) {
      return found;
    }
    const KernelParameter& parameter = kernel.parameters[store.parameter];
    if (Problem found =
            check_coordinates(context, parameter, store.coordinates, store.coordinates.size())) {
      return found;
    }
    std::vector<ExprId> roots = store.coordinates;
    roots.push_back(store.value);
    for (const ExprId root : roots) {
      for (const std::uint32_t range : free[root]) {
        if (kernel.ranges[range].is_reduce) {
          return "store to " + quoted(parameter.name) + ": depends on the reduce range " +
                 quoted(kernel.ranges[range].name) + " (R4)";
        }
      }
    }
  }
  return std::nullopt;
}

// --- scheduled form

class ScheduleChecker {
 public:
  explicit ScheduleChecker(const ScheduledKernel& kernel)
      : kernel_(kernel),
        context_{Form::Scheduled, kernel.pool, kernel.parameters, kernel.variables.size(),
                 &kernel.registers},
        free_(kernel.pool.size()),
        reads_(kernel.pool.size()),
        loads_(kernel.pool.size(), false),
        updates_(kernel.pool.size()),
        looped_(kernel.variables.size(), false) {}

  Problem check() {
    for (const KernelParameter& parameter : kernel_.parameters) {
      if (Problem problem = check_parameter(parameter)) return problem;
    }
    for (const Variable& variable : kernel_.variables) {
      if (variable.extent < 0) {
        return "variable " + quoted(variable.name) + ": a negative extent (S1)";
      }
    }
    for (const RegisterArray& array : kernel_.registers) {
      if (array.elements < 1 || array.elements >= kMostElements || array.lanes < 1 ||
          array.lanes > kMostLanes ||
          !std::has_single_bit(static_cast<std::uint64_t>(array.lanes))) {
        return "register array " + quoted(array.name) + ": no such size (S5)";
      }
    }
    if (Problem problem = check_worker_memory()) return problem;
    if (Problem problem = check_expressions()) return problem;
    return check_block(kernel_.body, true);
  }

 private:
  // One place of a register array.
  struct Place {
    std::uint32_t array = 0;
    ExprId element, lane;
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  // Arrays in parameters: the row has room for all of them, and they are of its type.
  Problem check_worker_memory() const {
    std::map<std::uint32_t, std::int64_t> elements;
    for (const RegisterArray& array : kernel_.registers) {
      if (array.parameter == kNoParameter) continue;
      const std::string who = "register array " + quoted(array.name) + ": ";
      if (array.parameter >= kernel_.parameters.size()) return who + "in no parameter (E3)";
      const KernelParameter& memory = kernel_.parameters[array.parameter];
      std::int64_t& used = elements[array.parameter];
      used += array.elements * array.lanes;
      if (array.space != AddressSpace::Worker || memory.access != Access::Write ||
          memory.dtype != array.dtype || memory.shape.size() != 2 ||
          !memory.layout.is_row_major() || used > memory.shape[1]) {
        return who + "no room in parameter " + quoted(memory.name) + " (S10)";
      }
    }
    return std::nullopt;
  }

  Problem check_expressions() {
    Reached reached(kernel_.pool);
    if (!add_roots(reached, kernel_.body)) return "a statement without its expressions (E3)";
    reached.close();
    return reached.for_each([&](ExprId id, const Expr& expr) -> Problem {
      if (Problem problem = check_expr(context_, expr)) return problem;
      free_.add(id, expr);
      std::set<Place>& reads = reads_[id.index];
      bool loads = expr.kind == ExprKind::LoadFlat;
      for (const ExprId operand : expr.operands) {
        reads.insert(reads_[operand.index].begin(), reads_[operand.index].end());
        loads = loads || loads_[operand.index];
        updates_[id.index].insert(updates_[operand.index].begin(), updates_[operand.index].end());
      }
      loads_[id.index] = loads;
      if (expr.kind == ExprKind::LoadFlat && kernel_.parameters[expr.id].access == Access::Update) {
        updates_[id.index].insert({expr.id, expr.operands[0]});
      }
      if (expr.kind == ExprKind::ReadRegister) {
        reads.insert({expr.id, expr.operands[0], expr.operands[1]});
      }
      return std::nullopt;
    });
  }

  bool add_roots(Reached& reached, const Block& block) {
    bool known = true;
    for (const Statement& statement : block) {
      if (const auto* loop = std::get_if<ForStatement>(&statement.node)) {
        known = known && add_roots(reached, loop->body);
      } else if (const auto* store = std::get_if<StoreStatement>(&statement.node)) {
        known = known && reached.add_root(store->address) && reached.add_root(store->value);
      } else if (const auto* set = std::get_if<SetRegisterStatement>(&statement.node)) {
        known = known && reached.add_root(set->element) && reached.add_root(set->lane) &&
                reached.add_root(set->value);
      } else if (const auto* branch = std::get_if<IfStatement>(&statement.node)) {
        known = known && reached.add_root(branch->condition) && add_roots(reached, branch->body);
      } else if (const auto* prefetch = std::get_if<PrefetchStatement>(&statement.node)) {
        known = known && reached.add_root(prefetch->address);
      }
    }
    return known;
  }

  Problem check_block(const Block& block, bool outermost) {
    for (const Statement& statement : block) {
      Problem problem =
          std::visit([&](const auto& node) { return check_statement(node); }, statement.node);
      if (problem) return problem;
      const auto* loop = std::get_if<ForStatement>(&statement.node);
      if (loop != nullptr && kernel_.variables[loop->variable].kind == LoopKind::Parallel &&
          (!outermost || block.size() != 1)) {
        return "parallel loop " + quoted(kernel_.variables[loop->variable].name) +
               ": not the kernel's only outermost statement (S3)";
      }
    }
    return std::nullopt;
  }

  Problem check_statement(const ForStatement& loop) {
    if (loop.variable >= kernel_.variables.size()) return "a loop without its variable (E3)";
    const Variable& variable = kernel_.variables[loop.variable];
    const std::string who = "loop " + quoted(variable.name) + ": ";
    if (looped_[loop.variable]) return who + "its variable has another loop (S1)";
    looped_[loop.variable] = true;
    if (vector_) return who + "inside a vector loop (S4)";
    if (variable.kind == LoopKind::Vector) {
      if (variable.extent < 1 || variable.extent > kMostLanes ||
          !std::has_single_bit(static_cast<std::uint64_t>(variable.extent))) {
        return who + "not a power of two of at most 256 turns (S4)";
      }
      vector_ = loop.variable;
      collect_written(loop.body);
    }
    scope_.insert(loop.variable);
    Problem problem = check_block(loop.body, false);
    scope_.erase(loop.variable);
    if (variable.kind == LoopKind::Vector) {
      vector_.reset();
      written_.clear();
    }
    return problem;
  }

  Problem check_statement(const StoreStatement& store) {
    if (Problem problem = check_store_target(kernel_.parameters, store.parameter,
                                             kernel_.pool[store.value].dtype, "S7")) {
      return problem;
    }
    const std::string who = "store to " + quoted(kernel_.parameters[store.parameter].name) + ": ";
    if (kernel_.pool[store.address].dtype != DType::I64) return who + "an address not i64 (S7)";
    if (vector_ && !depends(store.address, *vector_)) {
      return who + "all lanes write to one place (S8)";
    }
    for (const auto& [parameter, address] : updates_[store.value.index]) {
      if (parameter != store.parameter || address != store.address) {
        return who + "updates another element than it reads (S11)";
      }
    }
    return check_uses({store.address, store.value}, &store);
  }

  Problem check_statement(const SetRegisterStatement& set) {
    if (set.array >= kernel_.registers.size()) return "no such register array (E3)";
    const RegisterArray& array = kernel_.registers[set.array];
    const std::string who = "register array " + quoted(array.name) + ": ";
    if (kernel_.pool[set.value].dtype != array.dtype) return who + "set in another type (E1)";
    if (kernel_.pool[set.element].dtype != DType::I64 ||
        kernel_.pool[set.lane].dtype != DType::I64) {
      return who + "an index that is not i64 (E1)";
    }
    if (Problem problem = check_uses({set.element, set.lane, set.value})) return problem;
    const bool apart =
        array.space == AddressSpace::Register
            ? is_vector_variable(set.lane)
            : vector_ && (depends(set.element, *vector_) || depends(set.lane, *vector_));
    if (vector_ && !apart) return who + "all lanes write to one place (S8)";
    return check_register({set.array, set.element, set.lane});
  }

  Problem check_statement(const IfStatement& branch) {
    if (kernel_.pool[branch.condition].dtype != DType::Bool) return "a condition not bool (S9)";
    if (Problem problem = check_uses({branch.condition})) return problem;
    if (vector_ && depends(branch.condition, *vector_)) {
      return "a condition that differs between lanes (S9)";
    }
    return check_block(branch.body, false);
  }

  Problem check_statement(const PrefetchStatement& prefetch) {
    if (prefetch.parameter >= kernel_.parameters.size()) return "a prefetch of no parameter (E3)";
    if (kernel_.pool[prefetch.address].dtype != DType::I64) {
      return "prefetch of " + quoted(kernel_.parameters[prefetch.parameter].name) +
             ": an address not i64 (S7)";
    }
    return check_uses({prefetch.address});
  }

  Problem check_statement(const BarrierStatement&) {
    if (vector_) return "a barrier inside a vector loop (S4)";
    return std::nullopt;
  }

  // Scopes and register reads of a statement's expressions.
  Problem check_uses(std::initializer_list<ExprId> roots, const StoreStatement* store = nullptr) {
    for (const ExprId root : roots) {
      if (!updates_[root.index].empty() && (store == nullptr || root != store->value)) {
        return "an updated parameter is read outside of its store (S11)";
      }
      for (const std::uint32_t variable : free_[root]) {
        if (!scope_.contains(variable)) {
          return "variable " + quoted(kernel_.variables[variable].name) +
                 ": used outside its loop (S2)";
        }
      }
      for (const Place& read : reads_[root.index]) {
        if (read_by_another_lane(read)) {
          return "register array " + quoted(kernel_.registers[read.array].name) +
                 ": written in a vector loop and read there by another lane (S8)";
        }
        if (Problem problem = check_register(read)) return problem;
      }
    }
    return std::nullopt;
  }

  // Whether a place is read that another lane of the enclosing vector loop may have written.
  bool read_by_another_lane(const Place& read) const {
    const bool at_own_lane = kernel_.registers[read.array].space == AddressSpace::Register &&
                             is_vector_variable(read.lane);
    return !at_own_lane && !written_.contains(read) &&
           std::any_of(written_.begin(), written_.end(),
                       [&](const Place& written) { return written.array == read.array; });
  }

  Problem check_register(const Place& read) {
    const RegisterArray& array = kernel_.registers[read.array];
    if (array.space != AddressSpace::Register) return std::nullopt;
    const std::string who = "register array " + quoted(array.name) + ": ";
    if (Problem problem = check_constant(who + "element", read.element, array.elements)) {
      return problem;
    }
    if (is_vector_variable(read.lane)) {
      if (kernel_.variables[*vector_].extent == array.lanes) return std::nullopt;
      return who + "the vector loop has another number of turns than lanes (S6)";
    }
    return check_constant(who + "lane", read.lane, array.lanes);
  }

  // Whether an index depends on unrolled loops only and stays in [0, count) in all their turns.
  Problem check_constant(const std::string& who, ExprId index, std::int64_t count) {
    if (inside_.contains({index, count})) return std::nullopt;
    const std::vector<std::uint32_t>& variables = free_[index];
    std::int64_t turns = 1;
    for (const std::uint32_t id : variables) {
      const Variable& variable = kernel_.variables[id];
      if (variable.kind != LoopKind::Unroll) {
        return who + " depends on " + quoted(variable.name) + ", not an unrolled loop (S6)";
      }
      if (variable.extent == 0) return std::nullopt;
      turns = variable.extent > kMostUnrolled / turns ? kMostUnrolled + 1 : turns * variable.extent;
    }
    if (loads_[index.index] || !reads_[index.index].empty()) {
      return who + " is not a constant (S6)";
    }
    if (!bounds_of(kernel_.pool, index, extents()).within(0, count - 1)) {
      if (turns > kMostUnrolled) return who + " cannot be shown to stay inside (S6)";
      for (std::int64_t turn = 0; turn < turns; ++turn) {
        if (!value_in_turn(index, turn).within(0, count - 1)) {
          return who + " leaves [0, " + std::to_string(count) + ") (S6)";
        }
      }
    }
    inside_.insert({index, count});
    return std::nullopt;
  }

  // The value with every variable fixed, where interval arithmetic is exact; the turn counts
  // through all values of all variables.
  IndexRange value_in_turn(ExprId index, std::int64_t turn) {
    if (!scratch_) scratch_ = kernel_.pool;
    std::map<std::uint32_t, ExprId> values;
    for (const std::uint32_t variable : free_[index]) {
      const std::int64_t extent = kernel_.variables[variable].extent;
      values[variable] = scratch_->index(turn % extent);
      turn /= extent;
    }
    return bounds_of(*scratch_, substitute(*scratch_, index, values), extents());
  }

  Extents extents() const {
    return [this](std::uint32_t variable) { return kernel_.variables[variable].extent; };
  }

  bool depends(ExprId id, std::uint32_t variable) const {
    return std::binary_search(free_[id].begin(), free_[id].end(), variable);
  }

  bool is_vector_variable(ExprId id) const {
    const Expr& expr = kernel_.pool[id];
    return vector_ && expr.kind == ExprKind::Variable && expr.id == *vector_;
  }

  void collect_written(const Block& block) {
    for (const Statement& statement : block) {
      if (const auto* set = std::get_if<SetRegisterStatement>(&statement.node)) {
        written_.insert({set->array, set->element, set->lane});
      } else if (const auto* branch = std::get_if<IfStatement>(&statement.node)) {
        collect_written(branch->body);
      }
    }
  }

  const ScheduledKernel& kernel_;
  Context context_;
  FreeVariables free_;
  std::vector<std::set<Place>> reads_;  // of each expression
  std::vector<bool> loads_;
  // Parameters and addresses of updates that each expression reads.
  std::vector<std::set<std::pair<std::uint32_t, ExprId>>> updates_;
  std::vector<bool> looped_;
  std::set<std::uint32_t> scope_;
  std::optional<std::uint32_t> vector_;  // variable of the enclosing vector loop
  std::set<Place> written_;              // what that loop writes
  std::set<std::pair<ExprId, std::int64_t>> inside_;
  std::optional<ExprPool> scratch_;
};

}  // namespace

std::int64_t ScheduledKernel::parallel_extent() const {
  for (const Statement& statement : body) {
    const auto* loop = std::get_if<ForStatement>(&statement.node);
    if (loop != nullptr && loop->variable < variables.size() &&
        variables[loop->variable].kind == LoopKind::Parallel) {
      return variables[loop->variable].extent;
    }
  }
  return 1;
}

Result<void> validate_kernel(const RangedKernel& kernel) {
  if (Problem problem = check(kernel)) return std::unexpected(failure(kernel.name, *problem));
  return {};
}

Result<void> validate_kernel(const ScheduledKernel& kernel) {
  if (Problem problem = ScheduleChecker(kernel).check()) {
    return std::unexpected(failure(kernel.name, *problem));
  }
  return {};
}

}  // namespace ingot
