// Results in the place of operands: a residual sum, say, that nobody needs apart from its result.
#include <algorithm>
#include <map>
#include <optional>

#include "compiler/kernel/rename_statements.h"
#include "compiler/program/program.h"

namespace ingot {
namespace {

// The kernel with `operand`, a Read parameter, and its destination as one Update parameter.
class Updater {
 public:
  Updater(const ScheduledKernel& kernel, std::uint32_t operand)
      : kernel_(kernel), operand_(operand) {}

  ScheduledKernel run() {
    out_.name = kernel_.name;
    out_.steps = kernel_.steps;
    out_.parameters = kernel_.parameters;
    out_.parameters.erase(out_.parameters.begin() + operand_);
    out_.parameters[0].access = Access::Update;
    out_.variables = kernel_.variables;
    out_.registers = kernel_.registers;
    for (RegisterArray& array : out_.registers) {
      if (array.parameter != kNoParameter) array.parameter = renamed(array.parameter);
    }
    for (std::uint32_t i = 0; i < kernel_.pool.size(); ++i) {
      Expr expr = kernel_.pool[ExprId{i}];
      if (expr.kind == ExprKind::LoadFlat) expr.id = renamed(expr.id);
      for (ExprId& operand : expr.operands) operand = renamed_[operand.index];
      renamed_.push_back(out_.pool.intern(std::move(expr)));
    }
    out_.body = StatementRenamer(*this).renamed(kernel_.body);
    return std::move(out_);
  }

  // Names of StatementRenamer.
  ExprId expression(ExprId id) const { return renamed_[id.index]; }
  std::uint32_t parameter(std::uint32_t index) const { return renamed(index); }
  static std::uint32_t variable(std::uint32_t index) { return index; }
  static std::uint32_t array(std::uint32_t index) { return index; }
  Statement store(const StoreStatement& store) const {
    return {StoreStatement{renamed(store.parameter), expression(store.address),
                           expression(store.value)}};
  }

 private:
  std::uint32_t renamed(std::uint32_t parameter) const {
    if (parameter == operand_) return 0;
    return parameter > operand_ ? parameter - 1 : parameter;
  }

  const ScheduledKernel& kernel_;
  const std::uint32_t operand_;
  ScheduledKernel out_;
  std::vector<ExprId> renamed_;
};

class InPlaceSharer {
 public:
  explicit InPlaceSharer(Program& program) : program_(program) {
    for (std::uint32_t k = 0; k < program.kernels.size(); ++k) {
      kernels_.emplace(identity_key(*program.kernels[k]), k);
    }
    touches_.resize(program.buffers.size());
    for (std::uint32_t i = 0; i < program.calls.size(); ++i) {
      for (const std::uint32_t buffer : program.calls[i].buffers) touches_[buffer].push_back(i);
    }
    keeps_call_.assign(program.calls.size(), true);
  }

  void run() {
    for (std::uint32_t i = 0; i < program_.calls.size(); ++i) {
      const ProgramCall& call = program_.calls[i];
      if (call.kind != CallKind::Program || !call.stores_once) continue;
      for (std::uint32_t p = 1; p < call.buffers.size(); ++p) {
        if (share(i, p)) break;
      }
    }
    (void)drop(program_.calls, keeps_call_);
    drop_unused_buffers();
    drop_unused_kernels();
  }

 private:
  bool occurs_once(const ProgramCall& call, std::uint32_t buffer) const {
    return std::ranges::count(call.buffers, buffer) == 1;
  }

  static bool zeroes_a_halo(const ProgramCall& call) {
    return call.plan_kernel == kNone && call.buffers.size() == 1;
  }

  // Whether call i is the first to write the buffer, but for its halo; then `halo` is that call.
  bool begins_with(std::uint32_t buffer, std::uint32_t i,
                   std::optional<std::uint32_t>& halo) const {
    const std::vector<std::uint32_t>& touches = touches_[buffer];
    if (touches[0] == i) return true;
    halo = touches[0];
    return touches[1] == i && zeroes_a_halo(program_.calls[touches[0]]);
  }

  // Argument p of call i takes the result.
  bool share(std::uint32_t i, std::uint32_t p) {
    ProgramCall& call = program_.calls[i];
    const ScheduledKernel& kernel = *program_.kernels[call.kernel];
    const std::uint32_t from = call.buffers[p], to = call.buffers[0];
    ProgramBuffer& operand = program_.buffers[from];
    ProgramBuffer& result = program_.buffers[to];
    if (operand.kind != BufferKind::Scratch || result.kind != BufferKind::Scratch ||
        kernel.parameters[p].access != Access::Read ||
        kernel.parameters[0].access != Access::Write || operand.dtype != result.dtype ||
        touches_[from].back() != i || !occurs_once(call, from) || !occurs_once(call, to) ||
        !same_places(operand.layout, operand.shape, result.layout, result.shape)) {
      return false;
    }
    std::optional<std::uint32_t> halo;  // then the operand must have one of zeros too
    if (!begins_with(to, i, halo) ||
        (halo && !zeroes_a_halo(program_.calls[touches_[from].front()]))) {
      return false;
    }
    const std::optional<std::uint32_t> updating = updating_kernel(call.kernel, p);
    if (!updating) return false;
    call.kernel = *updating;
    call.buffers.erase(call.buffers.begin() + p);
    if (halo) keeps_call_[*halo] = false;
    operand.plan_buffers.insert(operand.plan_buffers.end(), result.plan_buffers.begin(),
                                result.plan_buffers.end());
    for (const std::uint32_t touched : touches_[to]) {
      if (touched < i) continue;
      std::ranges::replace(program_.calls[touched].buffers, to, from);
      if (touched > i) touches_[from].push_back(touched);
    }
    return true;
  }

  // Only what the validator accepts: each element is read by the statement that stores it.
  std::optional<std::uint32_t> updating_kernel(std::uint32_t index, std::uint32_t operand) {
    const auto [known, fresh] = updating_.emplace(std::pair(index, operand), std::nullopt);
    if (!fresh) return known->second;
    ScheduledKernel kernel = Updater(*program_.kernels[index], operand).run();
    if (!validate_kernel(kernel)) return std::nullopt;
    const auto [entry, added] =
        kernels_.emplace(identity_key(kernel), static_cast<std::uint32_t>(program_.kernels.size()));
    if (added) {
      program_.kernels.push_back(std::make_shared<const ScheduledKernel>(std::move(kernel)));
    }
    known->second = entry->second;
    return known->second;
  }

  void drop_unused_buffers() {
    std::vector<bool> used(program_.buffers.size());
    for (std::size_t b = 0; b < used.size(); ++b) {
      used[b] = program_.buffers[b].kind != BufferKind::Scratch;
    }
    for (const ProgramCall& call : program_.calls) {
      for (const std::uint32_t buffer : call.buffers) used[buffer] = true;
    }
    const std::vector<std::uint32_t> renamed = drop(program_.buffers, used);
    for (ProgramCall& call : program_.calls) {
      for (std::uint32_t& buffer : call.buffers) buffer = renamed[buffer];
    }
  }

  void drop_unused_kernels() {
    std::vector<bool> used(program_.kernels.size());
    for (const ProgramCall& call : program_.calls) {
      if (call.kind == CallKind::Program) used[call.kernel] = true;
    }
    const std::vector<std::uint32_t> renamed = drop(program_.kernels, used);
    for (ProgramCall& call : program_.calls) {
      if (call.kind == CallKind::Program) call.kernel = renamed[call.kernel];
    }
  }

  // Where each element went.
  template <typename T>
  static std::vector<std::uint32_t> drop(std::vector<T>& elements, const std::vector<bool>& used) {
    std::vector<std::uint32_t> renamed(elements.size(), kNone);
    std::vector<T> left;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (!used[i]) continue;
      renamed[i] = static_cast<std::uint32_t>(left.size());
      left.push_back(std::move(elements[i]));
    }
    elements = std::move(left);
    return renamed;
  }

  Program& program_;
  std::map<std::string, std::uint32_t> kernels_;     // by identity_key
  std::vector<std::vector<std::uint32_t>> touches_;  // calls of each buffer
  std::vector<bool> keeps_call_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::optional<std::uint32_t>> updating_;
};

}  // namespace

void share_in_place(Program& program) { InPlaceSharer(program).run(); }

}  // namespace ingot
