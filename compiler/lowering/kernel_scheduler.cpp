#include "compiler/lowering/kernel_scheduler.h"

#include <fmt/format.h>

#include <array>

#include "base/check.h"

namespace ingot {

KernelParameter worker_memory(const Target& target, std::int64_t elements) {
  KernelParameter memory;
  memory.name = "worker";
  memory.dtype = DType::F32;
  memory.shape = {target.workers, elements};
  memory.layout = Layout::row_major(2);
  memory.access = Access::Write;
  return memory;
}

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

KernelScheduler::KernelScheduler(const BandGroup& group, const BandStage& stage,
                                 const Target& target)
    : KernelScheduler(stage.kernel, stage.schedule, target) {
  group_ = &group;
  stage_ = &stage;
}

std::optional<std::uint32_t> KernelScheduler::open_bands() {
  if (group_ == nullptr) return std::nullopt;
  const std::uint32_t parallel = add_variable("p", group_->turns(), LoopKind::Parallel);
  std::int64_t inner = group_->turns();
  for (const BandLevel& level : group_->levels) {
    inner /= level.count();
    const ExprId band =
        pool().floor_mod(pool().floor_div(pool().variable(parallel), inner), level.count());
    origins_.push_back(
        simplify(pool().min(pool().mul(band, level.size), level.extent - level.size)));
  }
  return parallel;
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
  forget_translations();
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
  statement.value = zero_outside(translate(store.value));
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
  const LocalArray* const local = local_array(parameter);
  const std::vector<std::int64_t> stride = strides(p.layout, p.shape);
  ExprId sum = pool().index(0);
  for (std::size_t d = 0; d < p.shape.size(); ++d) {
    const ExprId logical =
        local != nullptr ? local_coordinate(*local, d, coordinates[d]) : translate(coordinates[d]);
    const ExprId coordinate = pool().add(logical, pool().index(p.layout.before[d]));
    if (static_cast<int>(d) == p.layout.block_dim) {
      const ExprId block = pool().floor_div(coordinate, p.layout.block);
      const ExprId stream = pool().mul(pool().floor_mod(block, p.layout.streams),
                                       blocks_of_stream(p.layout, p.shape));
      const ExprId position = pool().add(stream, pool().floor_div(block, p.layout.streams));
      sum = pool().add(sum, pool().mul(position, stride[d]));
      sum = pool().add(sum, pool().floor_mod(coordinate, p.layout.block));
    } else {
      sum = pool().add(sum, pool().mul(coordinate, stride[d]));
    }
  }
  return simplify(sum);
}

const LocalArray* KernelScheduler::local_array(std::uint32_t parameter) const {
  if (stage_ == nullptr) return nullptr;
  const std::uint32_t local = stage_->local[parameter];
  return local == kNoLocal ? nullptr : &group_->locals[local];
}

// Along a banded dimension the stage's own turns count from its origin, which is a multiple of the
// array's; the rest of both is constant.
ExprId KernelScheduler::local_coordinate(const LocalArray& local, std::size_t dimension,
                                         ExprId coordinate) {
  for (const LocalArray::Level& level : local.levels) {
    if (level.dimension != dimension) continue;
    is_local_ = true;
    const ExprId own = translate(coordinate);
    is_local_ = false;
    return pool().add(own, pool().index(-level.offset));
  }
  return translate(coordinate);
}

ExprId KernelScheduler::turn_of_whole(std::size_t level) {
  const BandedRange& banded = stage_->ranges[level];
  return pool().add(pool().mul(origins_[level], banded.factor),
                    pool().add(coordinate_[banded.range], pool().index(banded.offset)));
}

ExprId KernelScheduler::translate_variable(std::uint32_t range) {
  if (stage_ == nullptr) return coordinate_[range];
  for (std::size_t level = 0; level < stage_->ranges.size(); ++level) {
    const BandedRange& banded = stage_->ranges[level];
    if (banded.range != range) continue;
    if (is_local_) return pool().add(coordinate_[range], pool().index(banded.offset));
    const ExprId turn = simplify(turn_of_whole(level));
    if (simplifier_.bounds(turn).within(0, banded.extent - 1)) return turn;
    // Outside of the whole anything may be read: zero_outside stores 0.
    const std::array<ExprId, 2> operands{pool().min(turn, banded.extent - 1), pool().index(0)};
    return simplify(pool().scalar(ScalarOp::Max, operands));
  }
  return coordinate_[range];
}

// What a window reads before the first turn and behind the last one.
ExprId KernelScheduler::zero_outside(ExprId value) {
  if (stage_ == nullptr) return value;
  for (std::size_t level = 0; level < stage_->ranges.size(); ++level) {
    const std::int64_t extent = stage_->ranges[level].extent;
    const ExprId turn = simplify(turn_of_whole(level));
    if (simplifier_.bounds(turn).within(0, extent - 1)) continue;
    const std::array<ExprId, 2> first{pool().index(0), turn};
    const std::array<ExprId, 2> last{turn, pool().index(extent)};
    const ExprId inside = simplify(
        pool().logical_and(pool().scalar(ScalarOp::Le, first), pool().scalar(ScalarOp::Lt, last)));
    const ExprId zero = pool().constant(Scalar::zero(pool()[value].dtype));
    const std::array<ExprId, 3> operands{inside, value, zero};
    value = pool().scalar(ScalarOp::Select, operands);
  }
  return value;
}

ExprId KernelScheduler::translate(ExprId id) {
  auto& translated = is_local_ ? translated_locally_ : translated_;
  if (const auto known = translated.find(id.index); known != translated.end()) {
    return known->second;
  }
  const ExprId result = translate_new(id);
  translated.emplace(id.index, result);
  return result;
}

ExprId KernelScheduler::translate_new(ExprId id) {
  const Expr& expr = source_.pool[id];
  switch (expr.kind) {
    case ExprKind::Variable: return translate_variable(expr.id);
    case ExprKind::Load: return translate_load(expr);
    case ExprKind::Reduce:
      return pool().read_register(reduced_.at(id) + part_, expr.dtype, element_, lane_);
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
  if (copy.kind == ExprKind::Cast && pool()[copy.operands[0]].dtype == copy.dtype) {
    return copy.operands[0];  // widened before
  }
  const ExprId copied = pool().intern(std::move(copy));
  return expr.dtype == DType::I64 && expr.kind == ExprKind::Scalar ? simplify(copied) : copied;
}

Block KernelScheduler::widen_panel(const Schedule::Packing& packing, std::int64_t lanes,
                                   ExprId first) {
  const std::uint32_t parameter = packing.parameter;
  const std::int64_t elements = panel_elements(packing, source_.parameters[parameter].shape);
  RegisterArray array;
  array.name = "panel";
  array.space = AddressSpace::Worker;
  array.elements = elements;
  array.parameter = static_cast<std::uint32_t>(out_.parameters.size());
  const auto index = static_cast<std::uint32_t>(out_.registers.size());
  out_.registers.push_back(std::move(array));
  out_.parameters.push_back(worker_memory(target_, elements));
  const std::uint32_t turn = add_variable("w", elements / lanes, LoopKind::Serial);
  const std::uint32_t lane = add_variable("v", lanes, LoopKind::Vector);
  const ExprId place = pool().add(pool().mul(pool().variable(turn), lanes), pool().variable(lane));
  const ExprId narrow = pool().load_flat(parameter, source_.parameters[parameter].dtype,
                                         simplify(pool().add(first, place)));
  Block body{set(index, place, pool().index(0), pool().cast(narrow, DType::F32))};
  panel_ = Panel{parameter, index, first};
  return Block{loop(turn, Block{loop(lane, std::move(body))})};
}

ExprId KernelScheduler::translate_load(const Expr& expr) {
  if (panel_ && panel_->parameter == expr.id) {
    const ExprId place = pool().add(address(expr.id, expr.operands), pool().mul(panel_->first, -1));
    return pool().read_register(panel_->array, DType::F32, simplify(place), pool().index(0));
  }
  std::vector<ExprId> coordinates = expr.operands;
  const DType dtype = out_.parameters[expr.id].dtype;
  if (!expr.gated) return pool().load_flat(expr.id, dtype, address(expr.id, coordinates));
  const ExprId gate = simplify(translate(coordinates.back()));
  coordinates.pop_back();
  return pool().load_flat_gated(expr.id, dtype, address(expr.id, coordinates), gate, expr.constant);
}

}  // namespace ingot
