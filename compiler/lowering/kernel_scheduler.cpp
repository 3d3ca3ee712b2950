#include "compiler/lowering/kernel_scheduler.h"

#include <fmt/format.h>

#include <array>

#include "base/check.h"

namespace ingot {

KernelScheduler::KernelScheduler(const RangedKernel& kernel, const Schedule& schedule,
                                 const Target& target)
    : source_(kernel), schedule_(schedule), target_(target) {
  out_.name = kernel.name;
  out_.parameters = kernel.parameters;
  for (const Schedule::Packing& packing : schedule.packings) {
    KernelParameter& parameter = out_.parameters[packing.parameter];
    parameter.layout = packing.layout;
    parameter.shape = packed_shape(packing, parameter.shape);
    if (packing.winograd > 0) parameter.dtype = DType::F32;  // transformed
  }
  out_.steps = to_steps(schedule, kernel);
  coordinate_.assign(kernel.ranges.size(), pool().index(0));
}

std::uint32_t KernelScheduler::add_variable(std::string name, std::int64_t count, LoopKind kind) {
  out_.variables.push_back(Variable{std::move(name), count, kind});
  return static_cast<std::uint32_t>(out_.variables.size() - 1);
}

std::uint32_t KernelScheduler::add_registers(DType dtype, std::int64_t elements,
                                             std::int64_t lanes) {
  RegisterArray array;
  array.name = fmt::format("acc{}", out_.registers.size());
  array.dtype = dtype;
  array.elements = elements;
  array.lanes = lanes;
  out_.registers.push_back(array);
  return static_cast<std::uint32_t>(out_.registers.size() - 1);
}

void KernelScheduler::set_coordinate(std::uint32_t range, ExprId coordinate) {
  coordinate_[range] = coordinate;
  translated_.clear();
}

Statement KernelScheduler::loop(std::uint32_t variable, Block body) {
  return Statement{ForStatement{variable, std::move(body)}};
}

void KernelScheduler::append(Block& to, Block from) {
  for (Statement& statement : from) to.push_back(std::move(statement));
}

Statement KernelScheduler::set(std::uint32_t array, ExprId element, ExprId lane, ExprId value) {
  return Statement{SetRegisterStatement{array, element, lane, value}};
}

Statement KernelScheduler::store_statement() {
  const RangedStore& store = source_.stores[0];
  StoreStatement statement;
  statement.parameter = store.parameter;
  statement.address = address(store.parameter, store.coordinates);
  statement.value = translate(store.value);
  return Statement{statement};
}

ExprId KernelScheduler::combine(const Expr& reduce, ExprId sum, ExprId value) {
  const Expr body = pool()[value];
  const bool fuse = reduce.reduce == Combine::Sum && target_.has_fma && !reduce.strict &&
                    body.kind == ExprKind::Scalar && body.op == ScalarOp::Mul && !body.strict &&
                    (reduce.dtype == DType::F32 || reduce.dtype == DType::F64);
  if (fuse) {
    const std::array<ExprId, 3> operands{body.operands[0], body.operands[1], sum};
    return pool().scalar(ScalarOp::Fma, operands);
  }
  const std::array<ExprId, 2> operands{sum, value};
  return pool().scalar(scalar_op(reduce.reduce), operands, reduce.strict);
}

ExprId KernelScheduler::address(std::uint32_t parameter, const std::vector<ExprId>& coordinates) {
  const KernelParameter& p = out_.parameters[parameter];
  const std::vector<std::int64_t> stride = strides(p.layout, p.shape);
  ExprId sum = pool().index(0);
  for (std::size_t d = 0; d < p.shape.size(); ++d) {
    const ExprId coordinate =
        pool().add(translate(coordinates[d]), pool().index(p.layout.before[d]));
    if (static_cast<int>(d) == p.layout.block_dim) {
      const ExprId block = pool().floor_div(coordinate, p.layout.block);
      sum = pool().add(sum, pool().mul(block, stride[d]));
      sum = pool().add(sum, pool().floor_mod(coordinate, p.layout.block));
    } else {
      sum = pool().add(sum, pool().mul(coordinate, stride[d]));
    }
  }
  return simplify(sum);
}

ExprId KernelScheduler::translate(ExprId id) {
  if (const auto known = translated_.find(id.index); known != translated_.end()) {
    return known->second;
  }
  const ExprId result = translate_new(id);
  translated_.emplace(id.index, result);
  return result;
}

ExprId KernelScheduler::translate_new(ExprId id) {
  const Expr& expr = source_.pool[id];
  switch (expr.kind) {
    case ExprKind::Variable: return coordinate_[expr.id];
    case ExprKind::Load: return translate_load(expr);
    case ExprKind::Reduce:
      return pool().read_register(reduced_.at(id), expr.dtype, element_, lane_);
    case ExprKind::Constant:
    case ExprKind::Scalar:
    case ExprKind::Cast:
    case ExprKind::ClampIndex: break;
    case ExprKind::LoadFlat:
    case ExprKind::ReadRegister:
      check_failed(__FILE__, __LINE__, "kind", "a scheduled expression in a ranged kernel");
  }
  Expr copy = expr;
  for (ExprId& operand : copy.operands) operand = translate(operand);
  const ExprId copied = pool().intern(std::move(copy));
  return expr.dtype == DType::I64 && expr.kind == ExprKind::Scalar ? simplify(copied) : copied;
}

ExprId KernelScheduler::translate_load(const Expr& expr) {
  std::vector<ExprId> coordinates = expr.operands;
  const DType dtype = out_.parameters[expr.id].dtype;
  if (!expr.gated) return pool().load_flat(expr.id, dtype, address(expr.id, coordinates));
  const ExprId gate = simplify(translate(coordinates.back()));
  coordinates.pop_back();
  return pool().load_flat_gated(expr.id, dtype, address(expr.id, coordinates), gate, expr.constant);
}

}  // namespace ingot
