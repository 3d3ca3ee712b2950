// The walk over a scheduled kernel. Internal to codegen/.
//
// Expressions are emitted once, in the outermost loop body where everything they depend on exists
// ("scope"), before the inner loop that asked for them. What depends on an expanded loop is emitted
// once per turn that it differs in. Expressions that read registers belong to their statement and
// are never kept. A vector loop is emitted once, each value with one element per lane; the rules of
// scheduled kernels (validate_kernel.cpp) keep its turns independent of each other.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <bitset>
#include <map>
#include <optional>
#include <unordered_map>

#include "codegen/emit_operations.h"
#include "codegen/linear_index.h"
#include "compiler/kernel/kernel.h"

namespace ingot {

// A value that is the same for all lanes, or has one element per lane.
struct Emitted {
  llvm::Value* value = nullptr;
  bool lanes = false;
};

class KernelEmitter {
 public:
  KernelEmitter(const ScheduledKernel& kernel, const Target& target, bool strict,
                const std::string& symbol, llvm::Module& module);
  [[nodiscard]] Result<void> emit();

 private:
  static constexpr std::size_t kMaxVariables = 256;
  using VariableSet = std::bitset<kMaxVariables>;

  // What an expression depends on, over all its operands.
  struct Dependence {
    VariableSet variables;
    bool momentary = false;  // reads a register or memory that this kernel writes
    bool is_long = false;    // calls a mathematical function: dozens of instructions
    bool anchored = false;   // reads memory or reports a clamped index: not moved out of an if
  };

  // A loop body, the body of an if, or the function. `entry` is the branch in the enclosing scope
  // behind which it begins; code for the enclosing scope is put before it.
  struct Scope {
    llvm::Instruction* entry = nullptr;
    bool is_if = false;
    int hoisted_registers = 0;  // vector registers that values put before its loops occupy
    std::unordered_map<std::string, Emitted> values;
  };

  // How the lanes of an address lie relative to lane 0.
  struct Spread {
    enum class Kind { Uniform, Contiguous, Reversed, Other };
    Kind kind = Kind::Uniform;
    LinearIndex first;  // address of lane 0, unless Other
  };

  // emit_kernel.cpp: loops and scopes
  void find_dependences();
  void begin_function();
  void find_worker_memory();
  void emit_block(const Block& block);
  void emit_statement(const Statement& statement);
  void emit_for(const ForStatement& loop);
  void emit_turns(const ForStatement& loop, llvm::Value* first, llvm::Value* last);
  void emit_expanded(const ForStatement& loop);
  void emit_vector(const ForStatement& loop);
  void emit_if(const IfStatement& statement);
  void end_of_long_statement(ExprId value);
  [[nodiscard]] std::optional<std::int64_t> constant_of(ExprId id);

  // emit_kernel.cpp: expressions
  [[nodiscard]] Emitted evaluate(ExprId id);
  [[nodiscard]] Emitted compute(ExprId id);
  [[nodiscard]] Emitted compute_linear(const LinearIndex& form);
  [[nodiscard]] Emitted clamp_index(const Expr& expr);
  [[nodiscard]] llvm::Value* scalar_of(ExprId id);  // must not depend on the lane
  [[nodiscard]] llvm::Value* lanes_of(ExprId id);   // splat if it does not
  [[nodiscard]] int scope_of(const Dependence& dependence) const;
  [[nodiscard]] bool depends_on_lane(ExprId id) const;
  [[nodiscard]] std::string key_of(ExprId id) const;
  // Terms of outer loops first, those that are never kept last.
  [[nodiscard]] std::vector<LinearTerm> by_scope(const LinearIndex& form) const;
  void append_key(std::string& key, ExprId id) const;
  template <typename Emit>
  auto emit_in_scope(int scope, Emit emit);
  [[nodiscard]] llvm::Value* splat(llvm::Value* value);
  // Calls emit with the vector variable bound to each lane in turn.
  template <typename Emit>
  void for_each_lane(Emit emit);

  [[nodiscard]] bool is_clamped_into(ExprId id, DType dtype) const;

  // emit_memory.cpp
  [[nodiscard]] Emitted load(ExprId id);
  void store(const StoreStatement& statement);
  void set_register(const SetRegisterStatement& statement);
  [[nodiscard]] Emitted read_register(const Expr& expr);
  void prefetch(const PrefetchStatement& statement);
  [[nodiscard]] Spread spread_of(const LinearIndex& address);
  [[nodiscard]] llvm::Value* opaque(llvm::Value* pointer);
  [[nodiscard]] llvm::Value* pointer_to(std::uint32_t parameter, const LinearIndex& address);
  [[nodiscard]] llvm::Value* pointer_into(llvm::Value* base, DType dtype, std::string key,
                                          const LinearIndex& address);
  [[nodiscard]] llvm::Value* load_at(std::uint32_t parameter, llvm::Value* address, int lanes);
  void store_at(std::uint32_t parameter, llvm::Value* address, llvm::Value* value);
  [[nodiscard]] llvm::Value* from_memory(DType dtype, llvm::Value* value);
  [[nodiscard]] llvm::Value* to_memory(DType dtype, llvm::Value* value);
  [[nodiscard]] llvm::Value* gated_address(llvm::Value* gate, llvm::Value* address,
                                           const Expr& load, int lanes);
  [[nodiscard]] llvm::Value* load_masked(const Expr& expr, const LinearIndex& address);
  [[nodiscard]] llvm::Value* load_per_lane(const Expr& expr);
  [[nodiscard]] llvm::Value* load_runs(const Expr& expr);
  [[nodiscard]] bool follows_data(ExprId id) const;
  [[nodiscard]] llvm::Value* narrow_offsets(const LinearIndex& offsets);
  [[nodiscard]] std::vector<llvm::Value*> lanes_as_indices(llvm::Value* vector);
  void store_per_lane(const StoreStatement& statement, llvm::Value* value);
  void annotate(llvm::Instruction* access, std::uint32_t parameter);
  [[nodiscard]] bool has_masked_load(DType dtype) const;
  struct RegisterPlace {
    llvm::AllocaInst* slot = nullptr;  // of one element
    std::optional<std::int64_t> lane;  // one lane of several; otherwise all there are
    bool lanes = false;                // the value has lanes
  };
  [[nodiscard]] std::optional<RegisterPlace> register_place(std::uint32_t array, ExprId element,
                                                            ExprId lane);
  [[nodiscard]] Emitted read_scratch(const Expr& expr);
  void set_scratch(const SetRegisterStatement& statement);
  [[nodiscard]] LinearIndex scratch_index(std::uint32_t array, ExprId element, ExprId lane);
  [[nodiscard]] llvm::Value* scratch_pointer(std::uint32_t array, const LinearIndex& index);

  const ScheduledKernel& kernel_;
  const Target& target_;
  const bool strict_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> builder_;
  std::string refusal_;
  Emission emission_;
  IndexAnalyzer index_;

  llvm::Function* function_ = nullptr;
  llvm::Value* first_ = nullptr;
  llvm::Value* last_ = nullptr;
  llvm::AllocaInst* clamped_ = nullptr;
  bool parallel_seen_ = false;
  std::vector<llvm::Value*> buffers_;
  std::vector<llvm::MDNode*> own_scope_, other_scopes_;
  std::vector<Dependence> dependences_;                    // per expression
  std::vector<llvm::Value*> counters_;                     // per variable, while its loop is open
  std::vector<std::vector<llvm::AllocaInst*>> registers_;  // per array and element
  std::vector<llvm::Value*> scratch_;                      // per array: memory of the worker

  std::vector<Scope> scopes_;
  int place_ = 0;  // scope of the builder's present position
  std::unordered_map<std::string, Emitted> statement_values_;
  std::optional<std::uint32_t> vector_variable_;
  int lanes_ = 1;  // of the open vector loop
};

template <typename Emit>
auto KernelEmitter::emit_in_scope(int scope, Emit emit) {
  if (scope == place_) return emit();
  const llvm::IRBuilder<>::InsertPointGuard guard(builder_);
  const int place = place_;
  builder_.SetInsertPoint(scopes_[static_cast<std::size_t>(scope) + 1].entry);
  place_ = scope;
  auto result = emit();
  place_ = place;
  return result;
}

template <typename Emit>
void KernelEmitter::for_each_lane(Emit emit) {
  const std::uint32_t variable = *vector_variable_;
  const Binding all = index_.binding(variable);
  for (int lane = 0; lane < lanes_; ++lane) {
    index_.bind(variable, {Binding::Kind::Constant, lane});
    emit(lane);
  }
  index_.bind(variable, all);
}

}  // namespace ingot
