// Loads, stores and registers. What decides their form is how the lanes of an address lie in
// memory: next to each other, all at one place, or anyhow.
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/InlineAsm.h>

#include "codegen/kernel_emitter.h"

namespace ingot {
namespace {

// Between lanes that are picked from whole vectors, and of neighbours that are loaded together.
constexpr std::int64_t kLargestStep = 4;
constexpr int kShortestRun = 4;

llvm::Align element_alignment(DType dtype) {
  return llvm::Align(static_cast<std::uint64_t>(size_bytes(dtype)));
}

std::vector<int> descending(int lanes) {
  std::vector<int> mask;
  for (int lane = lanes - 1; lane >= 0; --lane) mask.push_back(lane);
  return mask;
}

}  // namespace

void KernelEmitter::annotate(llvm::Instruction* access, std::uint32_t parameter) {
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, own_scope_[parameter]);
  if (kernel_.parameters.size() > 1) {
    access->setMetadata(llvm::LLVMContext::MD_noalias, other_scopes_[parameter]);
  }
  // What a kernel only reads it never stores to.
  if (llvm::isa<llvm::LoadInst>(access) && kernel_.parameters[parameter].access == Access::Read) {
    access->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  }
}

llvm::Value* KernelEmitter::from_memory(DType dtype, llvm::Value* value) {
  if (dtype != DType::Bool) return value;
  return builder_.CreateIsNotNull(value);
}

llvm::Value* KernelEmitter::to_memory(DType dtype, llvm::Value* value) {
  if (dtype != DType::Bool) return value;
  return builder_.CreateZExt(value, with_lanes_of(builder_.getInt8Ty(), value->getType()));
}

// Masked loads of one and two byte elements need AVX-512 BW; of wider ones AVX is enough.
bool KernelEmitter::has_masked_load(DType dtype) const {
  return target_.has_masked_memory && (size_bytes(dtype) >= 4 || target_.vector_bits >= 512);
}

KernelEmitter::Spread KernelEmitter::spread_of(const LinearIndex& address) {
  Spread spread;
  spread.first = address;
  if (!vector_variable_ || index_.binding(*vector_variable_).kind != Binding::Kind::Lanes) {
    return spread;
  }
  std::int64_t step = 0;
  spread.first.terms.clear();
  for (const LinearTerm& term : address.terms) {
    const Expr& atom = kernel_.pool[term.atom];
    if (!depends_on_lane(term.atom)) {
      spread.first.terms.push_back(term);
    } else if (atom.kind == ExprKind::Variable) {
      step = term.coefficient;
    } else {
      spread.kind = Spread::Kind::Other;
      return spread;
    }
  }
  if (step == 0) {
    spread.kind = Spread::Kind::Uniform;
  } else if (step == 1) {
    spread.kind = Spread::Kind::Contiguous;
  } else if (step == -1) {
    spread.kind = Spread::Kind::Reversed;
  } else {
    spread.kind = Spread::Kind::Other;
  }
  return spread;
}

// The same pointer, of which the optimizer knows nothing.
llvm::Value* KernelEmitter::opaque(llvm::Value* pointer) {
  auto* const type = llvm::FunctionType::get(pointer->getType(), {pointer->getType()}, false);
  return builder_.CreateCall(type, llvm::InlineAsm::get(type, "", "=r,0", false), {pointer});
}

// The sum of an outer loop's terms is added outside of the inner loops, constants at the very end,
// where they become the displacement of the access.
llvm::Value* KernelEmitter::pointer_to(std::uint32_t parameter, const LinearIndex& address) {
  return pointer_into(buffers_[parameter], kernel_.parameters[parameter].dtype,
                      "address" + std::to_string(parameter) + "x" + std::to_string(lanes_) + ":",
                      address);
}

llvm::Value* KernelEmitter::pointer_into(llvm::Value* base, DType dtype, std::string key,
                                         const LinearIndex& address) {
  llvm::Type* const element = memory_type(context_, dtype);
  llvm::Value* pointer = base;
  const std::vector<LinearTerm> terms = by_scope(address);
  for (std::size_t begin = 0; begin < terms.size();) {
    const int scope = scope_of(dependences_[terms[begin].atom.index]);
    bool momentary = false;
    LinearIndex group;
    std::size_t end = begin;
    for (; end < terms.size() && scope_of(dependences_[terms[end].atom.index]) == scope; ++end) {
      const LinearTerm& term = terms[end];
      group.terms.push_back(term);
      momentary |= dependences_[term.atom.index].momentary;
      append_key(key, term.atom);
      key.append(reinterpret_cast<const char*>(&term.coefficient), sizeof term.coefficient);
    }
    begin = end;
    const auto extend = [&] {
      llvm::Value* const sum = builder_.CreateGEP(element, pointer, compute_linear(group).value);
      return begin == terms.size() && scope > 0 ? opaque(sum) : sum;
    };
    auto& values = scopes_[static_cast<std::size_t>(scope)].values;
    const auto found = momentary ? values.end() : values.find(key);
    if (found != values.end()) {
      pointer = found->second.value;
    } else {
      pointer = emit_in_scope(scope, extend);
      if (!momentary) values.emplace(key, Emitted{pointer, false});
    }
  }
  if (address.constant == 0) return pointer;
  return builder_.CreateGEP(element, pointer,
                            builder_.getInt64(static_cast<std::uint64_t>(address.constant)));
}

llvm::Value* KernelEmitter::load_at(std::uint32_t parameter, llvm::Value* address, int lanes) {
  const DType dtype = kernel_.parameters[parameter].dtype;
  llvm::Type* type = memory_type(context_, dtype);
  if (lanes > 1) type = llvm::FixedVectorType::get(type, static_cast<unsigned>(lanes));
  auto* const loaded = builder_.CreateAlignedLoad(type, address, element_alignment(dtype));
  annotate(loaded, parameter);
  return from_memory(dtype, loaded);
}

void KernelEmitter::store_at(std::uint32_t parameter, llvm::Value* address, llvm::Value* value) {
  const DType dtype = kernel_.parameters[parameter].dtype;
  auto* const stored =
      builder_.CreateAlignedStore(to_memory(dtype, value), address, element_alignment(dtype));
  annotate(stored, parameter);
}

// A load whose gate is closed reads its fill from a constant instead: no branch, and nothing
// outside of the buffer is touched.
llvm::Value* KernelEmitter::gated_address(llvm::Value* gate, llvm::Value* address, const Expr& load,
                                          int lanes) {
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(gate); known && known->isOne()) {
    return address;
  }
  llvm::Constant* fill = constant_value(context_, load.constant);
  if (load.dtype == DType::Bool) fill = builder_.getInt8(load.constant.as_int() != 0 ? 1 : 0);
  if (lanes > 1) {
    fill = llvm::ConstantVector::getSplat(
        llvm::ElementCount::getFixed(static_cast<unsigned>(lanes)), fill);
  }
  auto* const place = new llvm::GlobalVariable(module_, fill->getType(), /*isConstant=*/true,
                                               llvm::GlobalValue::PrivateLinkage, fill, "fill");
  place->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  place->setAlignment(element_alignment(load.dtype));
  return builder_.CreateSelect(gate, address, place);
}

Emitted KernelEmitter::load(ExprId id) {
  const Expr& expr = kernel_.pool[id];
  const ExprId address = expr.operands[0];
  if (kernel_.parameters[expr.id].dtype != expr.dtype) {
    emission_.refuse("a load of another type than its buffer");
  }
  Emitted gate;
  if (expr.gated) gate = evaluate(expr.operands[1]);
  if (const auto* known = llvm::dyn_cast_or_null<llvm::ConstantInt>(gate.value)) {
    if (known->isZero()) return {constant_value(context_, expr.constant), false};
    gate.value = nullptr;
  }
  const Spread spread = spread_of(index_.linearize(address));
  const bool is_gated = gate.value != nullptr;
  const bool lane_gate = is_gated && gate.lanes;
  using Kind = Spread::Kind;

  if (spread.kind == Kind::Uniform) {
    llvm::Value* pointer = pointer_to(expr.id, spread.first);
    if (!is_gated) return {load_at(expr.id, pointer, 1), false};
    llvm::Value* const any = lane_gate ? builder_.CreateOrReduce(gate.value) : gate.value;
    llvm::Value* const loaded = load_at(expr.id, gated_address(any, pointer, expr, 1), 1);
    if (!lane_gate) return {loaded, false};
    llvm::Value* const fill = splat(constant_value(context_, expr.constant));
    return {builder_.CreateSelect(gate.value, splat(loaded), fill), true};
  }
  if (spread.kind == Kind::Other) return {load_per_lane(expr), true};
  if (lane_gate && spread.kind == Kind::Contiguous && has_masked_load(expr.dtype)) {
    return {load_masked(expr, spread.first), true};
  }
  if (lane_gate) return {load_per_lane(expr), true};

  LinearIndex lowest = spread.first;
  if (spread.kind == Kind::Reversed) lowest.constant -= lanes_ - 1;
  llvm::Value* pointer = pointer_to(expr.id, lowest);
  if (is_gated) pointer = gated_address(gate.value, pointer, expr, lanes_);
  llvm::Value* loaded = load_at(expr.id, pointer, lanes_);
  if (spread.kind == Kind::Reversed) {
    loaded = builder_.CreateShuffleVector(loaded, descending(lanes_));
  }
  return {loaded, true};
}

llvm::Value* KernelEmitter::load_masked(const Expr& expr, const LinearIndex& address) {
  llvm::Value* const gate = lanes_of(expr.operands[1]);
  llvm::Value* const pointer = pointer_to(expr.id, address);
  llvm::Constant* fill = constant_value(context_, expr.constant);
  if (expr.dtype == DType::Bool) fill = builder_.getInt8(expr.constant.as_int() != 0 ? 1 : 0);
  llvm::Value* const fills = splat(fill);
  llvm::CallInst* const loaded = builder_.CreateMaskedLoad(
      fills->getType(), pointer, element_alignment(expr.dtype), gate, fills);
  annotate(loaded, expr.id);
  return from_memory(expr.dtype, loaded);
}

// Whether what depends on the lane is more than index arithmetic.
bool KernelEmitter::follows_data(ExprId id) const {
  std::vector<ExprId> open = {id};
  std::vector<bool> seen(kernel_.pool.size());
  while (!open.empty()) {
    const ExprId at = open.back();
    open.pop_back();
    if (seen[at.index] || !depends_on_lane(at)) continue;
    seen[at.index] = true;
    const Expr& expr = kernel_.pool[at];
    if (expr.kind == ExprKind::LoadFlat) return true;
    if (expr.dtype != DType::I64 && expr.dtype != DType::Bool) return true;
    open.insert(open.end(), expr.operands.begin(), expr.operands.end());
  }
  return false;
}

// A vector of offsets as it is before it becomes one of i64, if that is signed.
llvm::Value* KernelEmitter::narrow_offsets(const LinearIndex& offsets) {
  if (offsets.terms.size() == 1 && offsets.terms[0].coefficient == 1) {
    const Expr& term = kernel_.pool[offsets.terms[0].atom];
    if (term.kind == ExprKind::Cast && kernel_.pool[term.operands[0]].dtype == DType::I32) {
      return evaluate(term.operands[0]).value;
    }
  }
  return compute_linear(offsets).value;
}

// On x86 through memory: loads are cheaper there than taking lanes out of a register.
std::vector<llvm::Value*> KernelEmitter::lanes_as_indices(llvm::Value* vector) {
  llvm::Type* const element = vector->getType()->getScalarType();
  llvm::Value* memory = nullptr;
  if (target_.architecture == Architecture::X86_64 && lanes_ >= 8) {
    llvm::BasicBlock& entry = function_->getEntryBlock();
    llvm::IRBuilder<> at_entry(&entry, entry.begin());
    auto* const slot = at_entry.CreateAlloca(vector->getType(), nullptr, "places");
    builder_.CreateAlignedStore(vector, slot, slot->getAlign());
    memory = opaque(slot);
  }
  std::vector<llvm::Value*> lanes;
  for (int lane = 0; lane < lanes_; ++lane) {
    const auto at = static_cast<std::uint64_t>(lane);
    llvm::Value* const index =
        memory == nullptr ? builder_.CreateExtractElement(vector, at)
                          : builder_.CreateLoad(
                                element, builder_.CreateConstInBoundsGEP1_64(element, memory, at));
    lanes.push_back(builder_.CreateSExt(index, builder_.getInt64Ty()));
  }
  return lanes;
}

// Lanes in groups of neighbours, or each the same step from the last: whole vectors are loaded, and
// lanes picked. Nothing outside of the first and last lane is read. Null where lanes lie in another
// way.
llvm::Value* KernelEmitter::load_runs(const Expr& expr) {
  if (expr.gated || lanes_ < 2 || kernel_.parameters[expr.id].access != Access::Read)
    return nullptr;
  std::vector<LinearIndex> places;
  for_each_lane([&](int) { places.push_back(index_.linearize(expr.operands[0])); });
  for (const LinearIndex& place : places) {
    if (place.terms != places[0].terms) return nullptr;
  }
  // A quotient that is no number has one name for all lanes, and may have another value in each.
  if (std::ranges::any_of(places[0].terms,
                          [this](const LinearTerm& term) { return depends_on_lane(term.atom); })) {
    return nullptr;
  }
  const auto offset = [&](int lane) {
    return places[static_cast<std::size_t>(lane)].constant - places[0].constant;
  };
  const auto load_from = [&](std::int64_t first, int count) {
    LinearIndex at = places[0];
    at.constant += first;
    return load_at(expr.id, pointer_to(expr.id, at), count);
  };
  std::vector<int> picked(static_cast<std::size_t>(lanes_));

  const std::int64_t step = offset(1);
  bool is_even = step >= 2 && step <= kLargestStep;
  for (int lane = 0; lane < lanes_; ++lane) is_even = is_even && offset(lane) == step * lane;
  if (is_even) {
    llvm::Value* lanes = nullptr;
    for (std::int64_t part = 0; part < step; ++part) {
      // The last one ends with the last lane.
      const std::int64_t first = std::min(part * lanes_, offset(lanes_ - 1) + 1 - lanes_);
      llvm::Value* const loaded = load_from(first, lanes_);
      for (int lane = 0; lane < lanes_; ++lane) {
        const bool here = offset(lane) / lanes_ == part;
        const auto place = static_cast<int>(offset(lane) - first);
        picked[static_cast<std::size_t>(lane)] = here ? place + lanes_ : lane;
      }
      lanes = builder_.CreateShuffleVector(lanes == nullptr ? loaded : lanes, loaded, picked);
    }
    return lanes;
  }

  int run = 1;
  while (lanes_ % (run * 2) == 0) {
    bool continues = true;
    for (int lane = 0; lane < lanes_; ++lane) {
      const int first = lane / (run * 2) * (run * 2);
      continues = continues && offset(lane) == offset(first) + lane - first;
    }
    if (!continues) break;
    run *= 2;
  }
  if (run < kShortestRun) return nullptr;
  std::vector<llvm::Value*> runs;
  for (int lane = 0; lane < lanes_; lane += run) runs.push_back(load_from(offset(lane), run));
  return llvm::concatenateVectors(builder_, runs);
}

// A place that follows data is computed for all lanes together; index arithmetic lane by lane,
// where it becomes constants.
llvm::Value* KernelEmitter::load_per_lane(const Expr& expr) {
  if (llvm::Value* const runs = load_runs(expr)) return runs;
  LinearIndex shared, own;
  bool by_data = false;
  const LinearIndex address = index_.linearize(expr.operands[0]);
  shared.constant = address.constant;
  for (const LinearTerm& term : address.terms) {
    (depends_on_lane(term.atom) ? own : shared).terms.push_back(term);
    by_data = by_data || follows_data(term.atom);
  }
  llvm::Value* base = nullptr;
  std::vector<llvm::Value*> offsets;
  llvm::Value* gates = nullptr;
  if (by_data) {
    base = pointer_to(expr.id, shared);
    offsets = lanes_as_indices(narrow_offsets(own));
    if (expr.gated) gates = lanes_of(expr.operands[1]);
  }
  llvm::Value* lanes = llvm::PoisonValue::get(
      llvm::FixedVectorType::get(value_type(context_, expr.dtype), static_cast<unsigned>(lanes_)));
  for_each_lane([&](int lane) {
    const auto at = static_cast<std::uint64_t>(lane);
    llvm::Value* pointer =
        by_data ? builder_.CreateGEP(memory_type(context_, expr.dtype), base, offsets[at])
                : pointer_to(expr.id, index_.linearize(expr.operands[0]));
    if (expr.gated) {
      llvm::Value* const gate =
          by_data ? builder_.CreateExtractElement(gates, at) : scalar_of(expr.operands[1]);
      pointer = gated_address(gate, pointer, expr, 1);
    }
    llvm::Value* const element = load_at(expr.id, pointer, 1);
    lanes = builder_.CreateInsertElement(lanes, element, at);
  });
  return lanes;
}

void KernelEmitter::store(const StoreStatement& statement) {
  if (kernel_.parameters[statement.parameter].dtype != kernel_.pool[statement.value].dtype) {
    emission_.refuse("a store of another type than its buffer");
    return;
  }
  const Emitted value = evaluate(statement.value);
  const Spread spread = spread_of(index_.linearize(statement.address));
  using Kind = Spread::Kind;
  if (spread.kind == Kind::Uniform) {
    // All lanes write one place: the last turn stays.
    llvm::Value* const last = value.lanes ? builder_.CreateExtractElement(
                                                value.value, static_cast<std::uint64_t>(lanes_ - 1))
                                          : value.value;
    store_at(statement.parameter, pointer_to(statement.parameter, spread.first), last);
    return;
  }
  llvm::Value* lanes = value.lanes ? value.value : splat(value.value);
  if (spread.kind == Kind::Other) {
    store_per_lane(statement, lanes);
    return;
  }
  LinearIndex lowest = spread.first;
  if (spread.kind == Kind::Reversed) {
    lowest.constant -= lanes_ - 1;
    lanes = builder_.CreateShuffleVector(lanes, descending(lanes_));
  }
  store_at(statement.parameter, pointer_to(statement.parameter, lowest), lanes);
}

void KernelEmitter::store_per_lane(const StoreStatement& statement, llvm::Value* value) {
  for_each_lane([&](int lane) {
    llvm::Value* const element =
        builder_.CreateExtractElement(value, static_cast<std::uint64_t>(lane));
    store_at(statement.parameter,
             pointer_to(statement.parameter, index_.linearize(statement.address)), element);
  });
}

// The first cache keeps what is in use.
constexpr std::uint32_t kSecondCache = 2;

void KernelEmitter::prefetch(const PrefetchStatement& statement) {
  LinearIndex address = index_.linearize(statement.address);
  if (depends_on_lane(statement.address)) {
    // One line for all lanes: that of the first.
    const Binding all = index_.binding(*vector_variable_);
    index_.bind(*vector_variable_, {Binding::Kind::Constant, 0});
    address = index_.linearize(statement.address);
    builder_.CreateIntrinsic(llvm::Intrinsic::prefetch, {builder_.getPtrTy()},
                             {pointer_to(statement.parameter, address), builder_.getInt32(0),
                              builder_.getInt32(kSecondCache), builder_.getInt32(1)});
    index_.bind(*vector_variable_, all);
    return;
  }
  builder_.CreateIntrinsic(llvm::Intrinsic::prefetch, {builder_.getPtrTy()},
                           {pointer_to(statement.parameter, address), builder_.getInt32(0),
                            builder_.getInt32(kSecondCache), builder_.getInt32(1)});
}

std::optional<KernelEmitter::RegisterPlace> KernelEmitter::register_place(std::uint32_t array,
                                                                          ExprId element,
                                                                          ExprId lane) {
  const RegisterArray& registers = kernel_.registers[array];
  const auto at = constant_of(element);
  if (!at || *at < 0 || *at >= registers.elements) {
    emission_.refuse("register '" + registers.name + "' at an element that is not a constant");
    return std::nullopt;
  }
  RegisterPlace place;
  place.slot = registers_[array][static_cast<std::size_t>(*at)];
  if (depends_on_lane(lane)) {
    if (kernel_.pool[lane].kind != ExprKind::Variable || registers.lanes != lanes_) {
      emission_.refuse("register '" + registers.name + "' at other lanes than those of the loop");
      return std::nullopt;
    }
    place.lanes = true;
    return place;
  }
  const auto one = constant_of(lane);
  if (!one || *one < 0 || *one >= registers.lanes) {
    emission_.refuse("register '" + registers.name + "' at a lane that is not a constant");
    return std::nullopt;
  }
  if (registers.lanes > 1) place.lane = *one;
  return place;
}

Emitted KernelEmitter::read_register(const Expr& expr) {
  if (kernel_.registers[expr.id].space != AddressSpace::Register) return read_scratch(expr);
  const auto place = register_place(expr.id, expr.operands[0], expr.operands[1]);
  if (!place) return {llvm::PoisonValue::get(value_type(context_, expr.dtype)), false};
  llvm::Value* value = builder_.CreateLoad(place->slot->getAllocatedType(), place->slot);
  if (place->lane) {
    value = builder_.CreateExtractElement(value, static_cast<std::uint64_t>(*place->lane));
  }
  return {value, place->lanes};
}

void KernelEmitter::set_register(const SetRegisterStatement& statement) {
  if (kernel_.registers[statement.array].dtype != kernel_.pool[statement.value].dtype) {
    emission_.refuse("a register set to another type than its own");
    return;
  }
  if (kernel_.registers[statement.array].space != AddressSpace::Register) {
    set_scratch(statement);
    return;
  }
  const Emitted emitted = evaluate(statement.value);
  const auto place = register_place(statement.array, statement.element, statement.lane);
  if (!place) return;
  llvm::Value* value = emitted.value;
  if (place->lanes && !emitted.lanes) value = splat(value);
  if (!place->lanes && emitted.lanes) {  // every lane sets the same place: the last turn stays
    value = builder_.CreateExtractElement(value, static_cast<std::uint64_t>(lanes_ - 1));
  }
  if (place->lane) {
    llvm::Value* const before = builder_.CreateLoad(place->slot->getAllocatedType(), place->slot);
    value = builder_.CreateInsertElement(before, value, static_cast<std::uint64_t>(*place->lane));
  }
  builder_.CreateStore(value, place->slot);
}

// Scratch memory of a worker, on the stack (the frame is checked against its limit) or in a
// parameter.
LinearIndex KernelEmitter::scratch_index(std::uint32_t array, ExprId element, ExprId lane) {
  return combine(index_.linearize(element), kernel_.registers[array].lanes, index_.linearize(lane),
                 1);
}

llvm::Value* KernelEmitter::scratch_pointer(std::uint32_t array, const LinearIndex& index) {
  return pointer_into(scratch_[array], kernel_.registers[array].dtype,
                      "scratch" + std::to_string(array) + ":", index);
}

Emitted KernelEmitter::read_scratch(const Expr& expr) {
  const DType dtype = kernel_.registers[expr.id].dtype;
  llvm::Type* const element = memory_type(context_, dtype);
  const auto load_one = [&](llvm::Type* type, const LinearIndex& index) {
    llvm::Value* const pointer = scratch_pointer(expr.id, index);
    return from_memory(dtype, builder_.CreateAlignedLoad(type, pointer, element_alignment(dtype)));
  };
  const Spread spread = spread_of(scratch_index(expr.id, expr.operands[0], expr.operands[1]));
  if (spread.kind == Spread::Kind::Uniform) return {load_one(element, spread.first), false};
  auto* const lanes_type = llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes_));
  if (spread.kind == Spread::Kind::Contiguous) return {load_one(lanes_type, spread.first), true};
  llvm::Value* lanes = llvm::PoisonValue::get(
      llvm::FixedVectorType::get(value_type(context_, dtype), static_cast<unsigned>(lanes_)));
  for_each_lane([&](int lane) {
    llvm::Value* const one =
        load_one(element, scratch_index(expr.id, expr.operands[0], expr.operands[1]));
    lanes = builder_.CreateInsertElement(lanes, one, static_cast<std::uint64_t>(lane));
  });
  return {lanes, true};
}

void KernelEmitter::set_scratch(const SetRegisterStatement& statement) {
  const DType dtype = kernel_.registers[statement.array].dtype;
  const Emitted value = evaluate(statement.value);
  const auto store_one = [&](llvm::Value* stored, const LinearIndex& index) {
    llvm::Value* const pointer = scratch_pointer(statement.array, index);
    builder_.CreateAlignedStore(to_memory(dtype, stored), pointer, element_alignment(dtype));
  };
  const Spread spread =
      spread_of(scratch_index(statement.array, statement.element, statement.lane));
  if (spread.kind == Spread::Kind::Uniform && !value.lanes) {
    store_one(value.value, spread.first);
    return;
  }
  llvm::Value* const lanes = value.lanes ? value.value : splat(value.value);
  if (spread.kind == Spread::Kind::Contiguous) {
    store_one(lanes, spread.first);
    return;
  }
  for_each_lane([&](int lane) {
    store_one(builder_.CreateExtractElement(lanes, static_cast<std::uint64_t>(lane)),
              scratch_index(statement.array, statement.element, statement.lane));
  });
}

}  // namespace ingot
