#include "compiler/lowering/bands.h"

#include <algorithm>

#include "base/check.h"
#include "compiler/kernel/rename_statements.h"
#include "compiler/lowering/kernel_scheduler.h"
#include "compiler/lowering/zero_halo.h"

namespace ingot {
namespace {

// Arrays start on lines of the cache, as vectors like them.
constexpr std::int64_t kAlignedElements = 64;

std::int64_t elements_of(const LocalArray& local) {
  const std::int64_t count = element_count(local.layout, local.shape);
  return (count + kAlignedElements - 1) / kAlignedElements * kAlignedElements;
}

class BandFuser {
 public:
  BandFuser(const BandGroup& group, const Target& target) : group_(group), target_(target) {}

  FusedBands run() {
    out().name = group_.stages.back().kernel.name;
    out().variables.push_back(Variable{"p", group_.turns(), LoopKind::Parallel});
    // The result comes first, whoever stores it.
    const BandStage& last = group_.stages.back();
    add_parameter(last.kernel.parameters[0], last.identity[0]);
    add_arrays();
    for (const BandStage& stage : group_.stages) add_stage(stage);
    for (RegisterArray& array : out().registers) {
      if (array.space == AddressSpace::Worker) {
        array.parameter = static_cast<std::uint32_t>(out().parameters.size());
      }
    }
    out().parameters.push_back(
        worker_memory(target_, group_.local_bytes() / size_bytes(DType::F32)));
    INGOT_CHECK(fused_.identity.size() <= kMostBandParameters, "too many parameters");
    out().body = {Statement{ForStatement{0, std::move(body_)}}};
    return std::move(fused_);
  }

  // --- names of StatementRenamer, for the stage being added
  ExprId expression(ExprId id) const { return expressions_[id.index]; }
  std::uint32_t variable(std::uint32_t index) const { return variables_[index]; }
  std::uint32_t array(std::uint32_t index) const { return first_register_ + index; }
  std::uint32_t parameter(std::uint32_t index) const { return parameters_[index]; }
  Statement store(const StoreStatement& store) const {
    const ExprId address = expression(store.address), value = expression(store.value);
    if (local_[store.parameter] == kNoLocal) {
      return {StoreStatement{parameter(store.parameter), address, value}};
    }
    return {SetRegisterStatement{arrays_[local_[store.parameter]], address, zero_, value}};
  }

 private:
  ScheduledKernel& out() { return fused_.kernel; }

  void add_arrays() {
    zero_ = out().pool.index(0);
    for (const LocalArray& local : group_.locals) {
      if (local.in_place_of != kNoLocal) {
        arrays_.push_back(arrays_[local.in_place_of]);
        continue;
      }
      arrays_.push_back(static_cast<std::uint32_t>(out().registers.size()));
      out().registers.push_back(
          RegisterArray{local.name, AddressSpace::Worker, DType::F32, elements_of(local), 1, 0});
    }
  }

  std::uint32_t add_parameter(const KernelParameter& parameter, std::uint32_t identity) {
    // Constants are packed for one kernel.
    const auto known = std::ranges::find(fused_.identity, identity);
    if (known != fused_.identity.end()) {
      const auto index = static_cast<std::uint32_t>(known - fused_.identity.begin());
      if (out().parameters[index].layout == parameter.layout) return index;
    }
    out().parameters.push_back(parameter);
    fused_.identity.push_back(identity);
    return static_cast<std::uint32_t>(out().parameters.size() - 1);
  }

  void add_stage(const BandStage& stage) {
    if (stage.local[0] != kNoLocal) zero_halo(stage.local[0]);
    const ScheduledKernel kernel = apply_band(group_, stage, target_);
    add_kernel(kernel, stage.local, stage.identity, true);
    out().steps.insert(out().steps.end(), kernel.steps.begin(), kernel.steps.end());
  }

  // What no stage writes: the halo, or the padding of a block as well.
  void zero_halo(std::uint32_t index) {
    const LocalArray& local = group_.locals[index];
    if (local.in_place_of != kNoLocal) return;
    const int blocked = local.layout.block_dim;
    if (blocked >= 0 && padded_extent(local.layout, local.shape, blocked) !=
                            local.shape[static_cast<std::size_t>(blocked)]) {
      return zero_all(index);
    }
    const std::optional<ScheduledKernel> kernel =
        zero_halo_kernel(DType::F32, local.shape, local.layout, target_, true);
    if (kernel) add_kernel(*kernel, {index}, {0}, false);
  }

  void zero_all(std::uint32_t index) {
    const std::int64_t lanes = target_.lanes(DType::F32);
    const auto turn = static_cast<std::uint32_t>(out().variables.size());
    out().variables.push_back(
        Variable{"z", elements_of(group_.locals[index]) / lanes, LoopKind::Serial});
    out().variables.push_back(Variable{"v", lanes, LoopKind::Vector});
    ExprPool& pool = out().pool;
    const ExprId place = pool.add(pool.mul(pool.variable(turn), lanes), pool.variable(turn + 1));
    const ExprId zero = pool.constant(Scalar::zero(DType::F32));
    Block set{Statement{SetRegisterStatement{arrays_[index], place, zero_, zero}}};
    Block vector{Statement{ForStatement{turn + 1, std::move(set)}}};
    body_.push_back(Statement{ForStatement{turn, std::move(vector)}});
  }

  // A parallel loop over bands is that of the fused kernel, any other one a plain loop in it.
  void add_kernel(const ScheduledKernel& kernel, const std::vector<std::uint32_t>& local,
                  const std::vector<std::uint32_t>& identity, bool is_stage) {
    local_ = local;
    parameters_.assign(kernel.parameters.size(), 0);
    for (std::size_t p = 0; p < kernel.parameters.size(); ++p) {
      if (local[p] == kNoLocal) parameters_[p] = add_parameter(kernel.parameters[p], identity[p]);
    }
    variables_.clear();
    for (const Variable& variable : kernel.variables) {
      const bool is_parallel = variable.kind == LoopKind::Parallel;
      if (is_parallel && is_stage) {
        variables_.push_back(0);
        continue;
      }
      variables_.push_back(static_cast<std::uint32_t>(out().variables.size()));
      out().variables.push_back(variable);
      if (is_parallel) out().variables.back().kind = LoopKind::Serial;
    }
    first_register_ = static_cast<std::uint32_t>(out().registers.size());
    out().registers.insert(out().registers.end(), kernel.registers.begin(), kernel.registers.end());
    copy_expressions(kernel.pool);
    Block body = StatementRenamer(*this).renamed(kernel.body);
    if (is_stage) body = std::move(std::get<ForStatement>(body.front().node).body);
    for (Statement& statement : body) body_.push_back(std::move(statement));
  }

  void copy_expressions(const ExprPool& pool) {
    expressions_.clear();
    for (std::uint32_t i = 0; i < pool.size(); ++i) {
      Expr expr = pool[ExprId{i}];
      for (ExprId& operand : expr.operands) operand = expression(operand);
      if (expr.kind == ExprKind::Variable) {
        expr.id = variable(expr.id);
      } else if (expr.kind == ExprKind::ReadRegister) {
        expr.id = array(expr.id);
      } else if (expr.kind == ExprKind::LoadFlat && local_[expr.id] != kNoLocal) {
        INGOT_CHECK(!expr.gated, "a band is read behind a gate");
        expressions_.push_back(out().pool.read_register(arrays_[local_[expr.id]], expr.dtype,
                                                        expr.operands[0], zero_));
        continue;
      } else if (expr.kind == ExprKind::LoadFlat) {
        expr.id = parameter(expr.id);
      }
      expressions_.push_back(out().pool.intern(std::move(expr)));
    }
  }

  const BandGroup& group_;
  const Target& target_;
  FusedBands fused_;
  Block body_;
  std::vector<std::uint32_t> arrays_;  // by local array
  ExprId zero_;
  // Of the kernel being added.
  std::vector<std::uint32_t> local_, parameters_, variables_;
  std::vector<ExprId> expressions_;
  std::uint32_t first_register_ = 0;
};

}  // namespace

std::int64_t BandGroup::turns() const {
  std::int64_t turns = 1;
  for (const BandLevel& level : levels) turns *= level.count();
  return turns;
}

std::int64_t BandGroup::local_bytes() const {
  std::int64_t bytes = 0;
  for (const LocalArray& local : locals) {
    if (local.in_place_of == kNoLocal) bytes += elements_of(local) * size_bytes(DType::F32);
  }
  return bytes;
}

FusedBands fuse_bands(const BandGroup& group, const Target& target) {
  return BandFuser(group, target).run();
}

}  // namespace ingot
