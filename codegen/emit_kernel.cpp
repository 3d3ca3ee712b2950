// The walk: statements in order, loops by kind, expressions where they belong (kernel_emitter.h).
#include "codegen/emit_kernel.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "codegen/kernel_emitter.h"

namespace ingot {
namespace {

bool has_parallel_loop(const ScheduledKernel& kernel) {
  return std::ranges::any_of(kernel.body, [&](const Statement& statement) {
    const auto* loop = std::get_if<ForStatement>(&statement.node);
    return loop != nullptr && kernel.variables[loop->variable].kind == LoopKind::Parallel;
  });
}

}  // namespace

Result<void> emit_kernel(const ScheduledKernel& kernel, const Target& target, bool strict,
                         const std::string& symbol, llvm::Module& module) {
  return KernelEmitter(kernel, target, strict, symbol, module).emit();
}

KernelEmitter::KernelEmitter(const ScheduledKernel& kernel, const Target& target, bool strict,
                             const std::string& symbol, llvm::Module& module)
    : kernel_(kernel),
      target_(target),
      strict_(strict),
      module_(module),
      context_(module.getContext()),
      builder_(context_),
      emission_{builder_, target, &refusal_},
      index_(kernel.pool, kernel.variables),
      counters_(kernel.variables.size()) {
  llvm::Type* const pointer_type = llvm::PointerType::get(context_, 0);
  llvm::Type* const word = builder_.getInt32Ty();
  auto* const type = llvm::FunctionType::get(word, {pointer_type, pointer_type, word, word, word},
                                             /*isVarArg=*/false);
  function_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol, module_);
  function_->setVisibility(llvm::GlobalValue::HiddenVisibility);
  function_->setDSOLocal(true);
  function_->setDoesNotThrow();
  // A whole cache line, so that the place in the blob does not change a loop's alignment.
  function_->setAlignment(llvm::Align(64));
}

Result<void> KernelEmitter::emit() {
  if (kernel_.variables.size() > kMaxVariables) {
    refusal_ = "more loops than code generation can keep apart";
  } else {
    find_dependences();
    begin_function();
    emit_block(kernel_.body);
    llvm::BasicBlock* const exit = &function_->back();
    builder_.CreateBr(exit);
    builder_.SetInsertPoint(exit);
    builder_.CreateRet(builder_.CreateLoad(builder_.getInt32Ty(), clamped_));
  }
  if (refusal_.empty()) return {};
  Diagnostic diagnostic;
  diagnostic.code = "cannot-emit-kernel";
  diagnostic.node = kernel_.name;
  diagnostic.message = refusal_;
  return fail(ExitCode::Internal, std::move(diagnostic));
}

void KernelEmitter::find_dependences() {
  dependences_.resize(kernel_.pool.size());
  for (std::size_t i = 0; i < dependences_.size(); ++i) {
    const Expr& expr = kernel_.pool[ExprId{static_cast<std::uint32_t>(i)}];
    Dependence& own = dependences_[i];
    for (const ExprId operand : expr.operands) {
      const Dependence& other = dependences_[operand.index];
      own.variables |= other.variables;
      own.momentary |= other.momentary;
      own.anchored |= other.anchored;
      own.is_long |= other.is_long;
    }
    if (expr.kind == ExprKind::Scalar && expr.op >= ScalarOp::Exp && expr.op <= ScalarOp::Erf) {
      own.is_long = true;
    }
    switch (expr.kind) {
      case ExprKind::Variable: own.variables.set(expr.id); break;
      case ExprKind::LoadFlat:
      case ExprKind::ClampIndex: own.anchored = true; break;
      case ExprKind::ReadRegister: own.momentary = true; break;
      case ExprKind::Constant:
      case ExprKind::Scalar:
      case ExprKind::Cast:
      case ExprKind::Load:
      case ExprKind::Reduce: break;
    }
  }
}

// entry: slots and buffer addresses; body: only if there is something to run; exit: the result.
void KernelEmitter::begin_function() {
  auto* const entry = llvm::BasicBlock::Create(context_, "entry", function_);
  auto* const body = llvm::BasicBlock::Create(context_, "body", function_);
  auto* const exit = llvm::BasicBlock::Create(context_, "exit", function_);
  builder_.SetInsertPoint(entry);

  clamped_ = builder_.CreateAlloca(builder_.getInt32Ty(), nullptr, "clamped");
  builder_.CreateStore(builder_.getInt32(0), clamped_);
  for (const RegisterArray& array : kernel_.registers) {
    std::vector<llvm::AllocaInst*> slots;
    if (array.space == AddressSpace::Group) emission_.refuse("local memory of a work-group");
    llvm::Value* scratch = nullptr;
    if (array.space == AddressSpace::Worker && array.parameter == kNoParameter) {
      auto* const type =
          llvm::ArrayType::get(memory_type(context_, array.dtype),
                               static_cast<std::uint64_t>(array.elements * array.lanes));
      auto* const memory = builder_.CreateAlloca(type, nullptr, array.name);
      memory->setAlignment(llvm::Align(64));
      scratch = memory;
    } else if (array.space == AddressSpace::Register) {
      llvm::Type* type = value_type(context_, array.dtype);
      if (array.lanes > 1) {
        type = llvm::FixedVectorType::get(type, static_cast<unsigned>(array.lanes));
      }
      for (std::int64_t i = 0; i < array.elements; ++i) {
        slots.push_back(builder_.CreateAlloca(type, nullptr, array.name));
        builder_.CreateStore(llvm::Constant::getNullValue(type), slots.back());
      }
    }
    registers_.push_back(std::move(slots));
    scratch_.push_back(scratch);
  }

  // Parameters never overlap: each has a scope of its own, and no access aliases another scope.
  llvm::MDNode* const domain =
      llvm::MDNode::getDistinct(context_, {llvm::MDString::get(context_, "parameters")});
  std::vector<llvm::Metadata*> scopes;
  for (const KernelParameter& parameter : kernel_.parameters) {
    scopes.push_back(llvm::MDNode::getDistinct(
        context_, {llvm::MDString::get(context_, parameter.name), domain}));
  }
  for (std::size_t i = 0; i < kernel_.parameters.size(); ++i) {
    auto* const slot = builder_.CreateConstGEP1_64(builder_.getPtrTy(), function_->getArg(0), i);
    auto* const address =
        builder_.CreateLoad(builder_.getPtrTy(), slot, kernel_.parameters[i].name);
    address->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    buffers_.push_back(address);
    std::vector<llvm::Metadata*> others = scopes;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    own_scope_.push_back(llvm::MDNode::get(context_, {scopes[i]}));
    other_scopes_.push_back(llvm::MDNode::get(context_, others));
  }
  find_worker_memory();

  llvm::Value* const first = function_->getArg(2);
  llvm::Value* const last = function_->getArg(3);
  llvm::Value* wanted = builder_.CreateICmpULT(first, last);
  if (!has_parallel_loop(kernel_)) {
    wanted = builder_.CreateAnd(wanted, builder_.CreateICmpEQ(first, builder_.getInt32(0)));
  }
  first_ = builder_.CreateZExt(first, builder_.getInt64Ty());
  last_ = builder_.CreateZExt(last, builder_.getInt64Ty());
  builder_.CreateCondBr(wanted, body, exit);
  builder_.SetInsertPoint(body);
  scopes_.emplace_back();
}

// Row `worker` of a parameter, one array after the other.
void KernelEmitter::find_worker_memory() {
  std::vector<std::int64_t> used(kernel_.parameters.size(), 0);
  for (std::size_t i = 0; i < kernel_.registers.size(); ++i) {
    const RegisterArray& array = kernel_.registers[i];
    if (array.parameter == kNoParameter) continue;
    llvm::Value* const worker = builder_.CreateZExt(function_->getArg(4), builder_.getInt64Ty());
    llvm::Value* const row = builder_.CreateMul(
        worker, builder_.getInt64(
                    static_cast<std::uint64_t>(kernel_.parameters[array.parameter].shape[1])));
    std::int64_t& first = used[array.parameter];
    scratch_[i] = builder_.CreateGEP(
        memory_type(context_, array.dtype), buffers_[array.parameter],
        builder_.CreateAdd(row, builder_.getInt64(static_cast<std::uint64_t>(first))), array.name);
    first += array.elements * array.lanes;
  }
}

void KernelEmitter::emit_block(const Block& block) {
  for (const Statement& statement : block) {
    if (!refusal_.empty()) return;
    emit_statement(statement);
  }
}

void KernelEmitter::emit_statement(const Statement& statement) {
  statement_values_.clear();
  if (const auto* loop = std::get_if<ForStatement>(&statement.node)) {
    emit_for(*loop);
  } else if (const auto* stored = std::get_if<StoreStatement>(&statement.node)) {
    store(*stored);
    end_of_long_statement(stored->value);
  } else if (const auto* set = std::get_if<SetRegisterStatement>(&statement.node)) {
    set_register(*set);
    end_of_long_statement(set->value);
  } else if (const auto* branch = std::get_if<IfStatement>(&statement.node)) {
    emit_if(*branch);
  } else if (const auto* hint = std::get_if<PrefetchStatement>(&statement.node)) {
    prefetch(*hint);
  }
  // A barrier orders the lanes of a work-group; on a processor one worker runs them in order.
}

// A label that nothing refers to, which the scheduler does not move instructions across. Without
// it, the statements of an unrolled loop are interleaved for the sake of latency, which processors
// hide themselves; with a mathematical function in each, dozens of vectors are live at once and
// spilled.
void KernelEmitter::end_of_long_statement(ExprId value) {
  if (!dependences_[value.index].is_long) return;
  auto* const note = llvm::MDNode::get(context_, {llvm::MDString::get(context_, "statement")});
  builder_.CreateIntrinsic(llvm::Intrinsic::codeview_annotation, {},
                           {llvm::MetadataAsValue::get(context_, note)});
}

void KernelEmitter::emit_for(const ForStatement& loop) {
  const Variable& variable = kernel_.variables[loop.variable];
  if (variable.kind == LoopKind::Parallel) {
    if (scopes_.size() != 1 || parallel_seen_) emission_.refuse("a parallel loop inside a loop");
    parallel_seen_ = true;
    emit_turns(loop, first_, last_);
    return;
  }
  if (variable.extent <= 0) return;
  if (variable.extent == 1 || variable.kind == LoopKind::Unroll) {
    emit_expanded(loop);
    return;
  }
  if (variable.kind == LoopKind::Vector) {
    if (vector_variable_) emission_.refuse("a vector loop inside a vector loop");
    emit_vector(loop);
    return;
  }
  emit_turns(loop, builder_.getInt64(0),
             builder_.getInt64(static_cast<std::uint64_t>(variable.extent)));
}

// At least one turn is known to run, so the test stands at the end.
void KernelEmitter::emit_turns(const ForStatement& loop, llvm::Value* first, llvm::Value* last) {
  llvm::BasicBlock* const before = builder_.GetInsertBlock();
  llvm::BasicBlock* const exit = &function_->back();
  auto* const body = llvm::BasicBlock::Create(context_, "loop", function_, exit);
  auto* const after = llvm::BasicBlock::Create(context_, "after", function_, exit);
  llvm::Instruction* const entry = builder_.CreateBr(body);
  builder_.SetInsertPoint(body);
  llvm::PHINode* const counter =
      builder_.CreatePHI(builder_.getInt64Ty(), 2, kernel_.variables[loop.variable].name);
  counter->addIncoming(first, before);

  counters_[loop.variable] = counter;
  index_.bind(loop.variable, {Binding::Kind::Loop, static_cast<std::int64_t>(scopes_.size())});
  scopes_.emplace_back();
  scopes_.back().entry = entry;
  place_ = static_cast<int>(scopes_.size()) - 1;
  emit_block(loop.body);
  llvm::Value* const next = builder_.CreateAdd(counter, builder_.getInt64(1), "", /*NUW=*/true,
                                               /*NSW=*/true);
  counter->addIncoming(next, builder_.GetInsertBlock());
  builder_.CreateCondBr(builder_.CreateICmpULT(next, last), body, after);
  scopes_.pop_back();
  place_ = static_cast<int>(scopes_.size()) - 1;
  index_.bind(loop.variable, {});
  builder_.SetInsertPoint(after);
}

void KernelEmitter::emit_expanded(const ForStatement& loop) {
  for (std::int64_t turn = 0; turn < kernel_.variables[loop.variable].extent; ++turn) {
    index_.bind(loop.variable, {Binding::Kind::Constant, turn});
    emit_block(loop.body);
  }
  index_.bind(loop.variable, {});
}

void KernelEmitter::emit_vector(const ForStatement& loop) {
  vector_variable_ = loop.variable;
  lanes_ = static_cast<int>(kernel_.variables[loop.variable].extent);
  index_.bind(loop.variable, {Binding::Kind::Lanes, 0});
  emit_block(loop.body);
  index_.bind(loop.variable, {});
  vector_variable_.reset();
  lanes_ = 1;
}

void KernelEmitter::emit_if(const IfStatement& statement) {
  llvm::Value* const condition = scalar_of(statement.condition);
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    if (known->isOne()) emit_block(statement.body);
    return;
  }
  llvm::BasicBlock* const exit = &function_->back();
  auto* const body = llvm::BasicBlock::Create(context_, "then", function_, exit);
  auto* const after = llvm::BasicBlock::Create(context_, "after", function_, exit);
  llvm::Instruction* const entry = builder_.CreateCondBr(condition, body, after);
  builder_.SetInsertPoint(body);
  scopes_.emplace_back();
  scopes_.back().entry = entry;
  scopes_.back().is_if = true;
  place_ = static_cast<int>(scopes_.size()) - 1;
  emit_block(statement.body);
  builder_.CreateBr(after);
  scopes_.pop_back();
  place_ = static_cast<int>(scopes_.size()) - 1;
  builder_.SetInsertPoint(after);
}

std::optional<std::int64_t> KernelEmitter::constant_of(ExprId id) {
  const LinearIndex form = index_.linearize(id);
  if (!form.terms.empty()) return std::nullopt;
  return form.constant;
}

bool KernelEmitter::depends_on_lane(ExprId id) const {
  return vector_variable_ && index_.binding(*vector_variable_).kind == Binding::Kind::Lanes &&
         dependences_[id.index].variables[*vector_variable_];
}

int KernelEmitter::scope_of(const Dependence& dependence) const {
  const int innermost = static_cast<int>(scopes_.size()) - 1;
  if (dependence.momentary) return innermost;
  int scope = 0;
  if (dependence.anchored) {
    for (int i = innermost; i > 0 && scope == 0; --i) {
      if (scopes_[static_cast<std::size_t>(i)].is_if) scope = i;
    }
  }
  for (std::size_t i = 0; i < kernel_.variables.size(); ++i) {
    if (!dependence.variables[i]) continue;
    const Binding& bound = index_.binding(static_cast<std::uint32_t>(i));
    if (bound.kind == Binding::Kind::Loop) scope = std::max(scope, static_cast<int>(bound.value));
  }
  return scope;
}

// Equal keys name equal values as long as the scope that keeps them is open.
void KernelEmitter::append_key(std::string& key, ExprId id) const {
  const auto append = [&key](const auto& number) {
    key.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  append(id.index);
  const VariableSet& variables = dependences_[id.index].variables;
  for (std::uint32_t i = 0; i < kernel_.variables.size(); ++i) {
    if (!variables[i] || index_.binding(i).kind != Binding::Kind::Constant) continue;
    append(i);
    append(index_.binding(i).value);
  }
  key += ';';
}

std::string KernelEmitter::key_of(ExprId id) const {
  std::string key;
  append_key(key, id);
  // What is broadcast to vectors of two widths is loaded for each, from a pointer of its own: a
  // load can be part of the operation, half of a register cannot.
  if (kernel_.pool[id].kind == ExprKind::LoadFlat) key += static_cast<char>(lanes_);
  return key;
}

Emitted KernelEmitter::evaluate(ExprId id) {
  const Expr& expr = kernel_.pool[id];
  if (expr.kind == ExprKind::Constant) return {constant_value(context_, expr.constant), false};
  if (expr.kind == ExprKind::Variable) {
    const Binding& bound = index_.binding(expr.id);
    switch (bound.kind) {
      case Binding::Kind::Loop: return {counters_[expr.id], false};
      case Binding::Kind::Constant:
        return {builder_.getInt64(static_cast<std::uint64_t>(bound.value)), false};
      case Binding::Kind::Lanes: {
        std::vector<std::uint64_t> turns;
        for (int lane = 0; lane < lanes_; ++lane) turns.push_back(static_cast<std::uint64_t>(lane));
        return {llvm::ConstantDataVector::get(context_, turns), true};
      }
      case Binding::Kind::Unbound: break;
    }
    emission_.refuse("a loop variable outside of its loop");
    return {builder_.getInt64(0), false};
  }

  const Dependence& dependence = dependences_[id.index];
  const std::string key = key_of(id);
  if (dependence.momentary) {
    if (const auto found = statement_values_.find(key); found != statement_values_.end()) {
      return found->second;
    }
    const Emitted result = compute(id);
    statement_values_.emplace(key, result);
    return result;
  }
  int scope = scope_of(dependence);
  for (int i = scope; i <= place_; ++i) {
    const auto& values = scopes_[static_cast<std::size_t>(i)].values;
    if (const auto found = values.find(key); found != values.end()) return found->second;
  }
  // Vectors are kept across an inner loop only while registers are left for them and for what the
  // loop itself needs beside its accumulators.
  if (expr.kind == ExprKind::LoadFlat && depends_on_lane(id) && scope < place_) {
    const auto in_registers = [this](std::int64_t lanes, DType dtype) {
      const std::int64_t bits = lanes * 8 * size_bytes(dtype);
      return static_cast<int>((bits + target_.vector_bits - 1) / target_.vector_bits);
    };
    int taken = in_registers(lanes_, expr.dtype);
    for (const RegisterArray& array : kernel_.registers) {
      if (array.space != AddressSpace::Register) continue;
      taken += static_cast<int>(array.elements) * in_registers(array.lanes, array.dtype);
    }
    for (int i = 0; i <= place_; ++i) {
      taken += scopes_[static_cast<std::size_t>(i)].hoisted_registers;
    }
    if (taken + 4 > target_.vector_registers) {
      scope = place_;
    } else {
      scopes_[static_cast<std::size_t>(scope)].hoisted_registers +=
          in_registers(lanes_, expr.dtype);
    }
  }
  const Emitted result = emit_in_scope(scope, [&] { return compute(id); });
  scopes_[static_cast<std::size_t>(scope)].values.emplace(key, result);
  return result;
}

Emitted KernelEmitter::compute(ExprId id) {
  const Expr& expr = kernel_.pool[id];
  switch (expr.kind) {
    case ExprKind::LoadFlat: return load(id);
    case ExprKind::ReadRegister: return read_register(expr);
    case ExprKind::ClampIndex: return clamp_index(expr);
    case ExprKind::Cast: {
      const Emitted value = evaluate(expr.operands[0]);
      return {emit_cast(emission_, kernel_.pool[expr.operands[0]].dtype, expr.dtype, value.value,
                        is_clamped_into(expr.operands[0], expr.dtype)),
              value.lanes};
    }
    case ExprKind::Scalar: break;
    case ExprKind::Constant:
    case ExprKind::Variable:
    case ExprKind::Load:
    case ExprKind::Reduce:
      emission_.refuse("an expression of the ranged form");
      return {llvm::PoisonValue::get(value_type(context_, expr.dtype)), false};
  }
  if (expr.dtype == DType::I64) {
    const LinearIndex form = index_.linearize(id);
    const bool is_atom = form.constant == 0 && form.terms.size() == 1 && form.terms[0].atom == id;
    if (!is_atom) return compute_linear(form);
  }
  std::vector<Emitted> operands;
  bool lanes = false;
  for (const ExprId operand : expr.operands) {
    operands.push_back(evaluate(operand));
    lanes |= operands.back().lanes;
  }
  std::vector<llvm::Value*> values;
  for (const Emitted& operand : operands) {
    values.push_back(lanes && !operand.lanes ? splat(operand.value) : operand.value);
  }
  const DType dtype = kernel_.pool[expr.operands.back()].dtype;
  return {emit_scalar_op(emission_, expr.op, dtype, expr.strict || strict_, values), lanes};
}

// Whether a float is NaN or inside of an integer's range.
bool KernelEmitter::is_clamped_into(ExprId id, DType dtype) const {
  const auto range = clamped_range(kernel_.pool, id);
  if (!range || !is_integer(dtype)) return false;
  const int width = 8 * size_bytes(dtype);
  const double least = is_signed(dtype) ? -std::ldexp(1.0, width - 1) : 0;
  const double most = least + std::ldexp(1.0, width) - 1;
  return least <= range->low && range->high <= most;
}

std::vector<LinearTerm> KernelEmitter::by_scope(const LinearIndex& form) const {
  std::vector<LinearTerm> terms = form.terms;
  std::ranges::sort(terms, {}, [this](const LinearTerm& term) {
    const Dependence& dependence = dependences_[term.atom.index];
    return std::tuple{scope_of(dependence), dependence.momentary, term.atom};
  });
  return terms;
}

// Terms of outer loops are summed first, so that they are summed outside of the inner ones.
Emitted KernelEmitter::compute_linear(const LinearIndex& form) {
  llvm::Value* scalars = nullptr;
  llvm::Value* lanes = nullptr;
  std::string key = "sum";
  for (const LinearTerm& term : by_scope(form)) {
    const Dependence& dependence = dependences_[term.atom.index];
    const Emitted atom = evaluate(term.atom);
    const auto scaled = [&] {
      if (term.coefficient == 1) return atom.value;
      const auto factor = static_cast<std::uint64_t>(term.coefficient);
      return builder_.CreateMul(atom.value, llvm::ConstantInt::get(atom.value->getType(), factor));
    };
    if (atom.lanes) {
      lanes = lanes == nullptr ? scaled() : builder_.CreateAdd(lanes, scaled());
      continue;
    }
    append_key(key, term.atom);
    key.append(reinterpret_cast<const char*>(&term.coefficient), sizeof term.coefficient);
    const auto extend = [&] {
      llvm::Value* const more = scaled();
      return scalars == nullptr ? more : builder_.CreateAdd(scalars, more);
    };
    if (dependence.momentary) {
      scalars = extend();
      continue;
    }
    const int scope = scope_of(dependence);
    auto& values = scopes_[static_cast<std::size_t>(scope)].values;
    if (const auto found = values.find(key); found != values.end()) {
      scalars = found->second.value;
    } else {
      scalars = emit_in_scope(scope, extend);
      values.emplace(key, Emitted{scalars, false});
    }
  }
  if (form.constant != 0 || scalars == nullptr) {
    llvm::Value* const constant = builder_.getInt64(static_cast<std::uint64_t>(form.constant));
    scalars = scalars == nullptr ? constant : builder_.CreateAdd(scalars, constant);
  }
  if (lanes == nullptr) return {scalars, false};
  return {builder_.CreateAdd(lanes, splat(scalars)), true};
}

Emitted KernelEmitter::clamp_index(const Expr& expr) {
  const Emitted index = evaluate(expr.operands[0]);
  llvm::Type* const type = index.value->getType();
  const auto limit = static_cast<std::uint64_t>(expr.constant.as_int() - 1);
  llvm::Value* const zero = llvm::ConstantInt::get(type, 0);
  llvm::Value* const high = llvm::ConstantInt::get(type, limit, /*isSigned=*/true);
  llvm::Value* bounded = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, index.value, high);
  bounded = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, bounded, zero);
  llvm::Value* changed = builder_.CreateICmpNE(bounded, index.value);
  if (index.lanes) changed = builder_.CreateOrReduce(changed);
  llvm::Value* const before = builder_.CreateLoad(builder_.getInt32Ty(), clamped_);
  builder_.CreateStore(
      builder_.CreateOr(before, builder_.CreateZExt(changed, builder_.getInt32Ty())), clamped_);
  return {bounded, index.lanes};
}

llvm::Value* KernelEmitter::scalar_of(ExprId id) {
  const Emitted emitted = evaluate(id);
  if (emitted.lanes) emission_.refuse("a value that must be the same for all lanes is not");
  return emitted.lanes ? builder_.CreateExtractElement(emitted.value, std::uint64_t{0})
                       : emitted.value;
}

llvm::Value* KernelEmitter::lanes_of(ExprId id) {
  const Emitted emitted = evaluate(id);
  return emitted.lanes ? emitted.value : splat(emitted.value);
}

llvm::Value* KernelEmitter::splat(llvm::Value* value) {
  return builder_.CreateVectorSplat(static_cast<unsigned>(lanes_), value);
}

}  // namespace ingot
