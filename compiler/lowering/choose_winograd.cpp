// Whether a kernel is a convolution that Winograd's algorithm computes in fewer cycles.
#include <algorithm>
#include <optional>

#include "compiler/kernel/index_arithmetic.h"
#include "compiler/lowering/schedule.h"
#include "compiler/plan/winograd.h"

namespace ingot {
namespace {

constexpr std::int64_t kKernelSide = 3;
// Written out: of tiles, and of sums.
constexpr std::int64_t kMostPositions = 64, kMostSums = 256;

class WinogradChooser {
 public:
  WinogradChooser(const RangedKernel& kernel, const std::vector<bool>& is_constant,
                  const Target& target)
      : kernel_(kernel), is_constant_(is_constant), target_(target) {}

  // Whether the kernel is a convolution that the algorithm can compute.
  bool matches() { return find_operands() && match_weights() && match_input() && match_store(); }

  WinogradPlan cheapest(int largest_tile) const {
    const WinogradPlan plan =
        plan_winograd({extent(step_.input_channel), extent(step_.output_channel), extent(step_.row),
                       extent(step_.column)},
                      target_, largest_tile);
    const KernelParameter& weights = kernel_.parameters[step_.weights];
    // Transformed halves are floats, up to eight times as long: not where they leave the cache.
    if (weights.dtype != DType::F32 &&
        element_count(transformed_shape(weights.shape, plan.tile)) * size_bytes(DType::F32) >
            target_.l2_bytes) {
      return {};
    }
    return plan;
  }

  bool fits(const WinogradPlan& plan) const {
    if ((plan.tile != 2 && plan.tile != 4) || plan.vectors < 1 || plan.band < 1 || plan.parts < 1 ||
        plan.positions < 1) {
      return false;
    }
    const std::int64_t lanes = target_.lanes(DType::F32);
    const std::int64_t vectors = (extent(step_.output_channel) + lanes - 1) / lanes;
    const std::int64_t rows = winograd_tiles(plan.tile, extent(step_.row));
    const std::int64_t columns = winograd_tiles(plan.tile, extent(step_.column));
    return vectors % plan.vectors == 0 && plan.parts <= vectors / plan.vectors &&
           plan.band <= rows && plan.positions <= std::min(plan.band * columns, kMostPositions) &&
           plan.positions * plan.vectors <= kMostSums && has_halo(plan.tile);
  }

  // Needs: matches() and fits(plan).
  Schedule schedule(const WinogradPlan& plan) {
    step_.tile = plan.tile;
    step_.band = plan.band;
    step_.parts = plan.parts;
    step_.positions = plan.positions;
    Schedule schedule;
    VectorStep vector;
    vector.range = step_.output_channel;
    vector.lanes = target_.lanes(DType::F32);
    vector.vectors = plan.vectors;
    vector.tail = extent(step_.output_channel) % vector.lanes == 0 ? Tail::Exact : Tail::Padded;
    schedule.vector = vector;
    for (std::uint32_t r = 0; r < kernel_.ranges.size(); ++r) {
      const bool own = r == step_.output_channel || r == step_.row || r == step_.column;
      if (!kernel_.ranges[r].is_reduce && !own) schedule.outer.push_back(r);
    }
    schedule.parallel = schedule.outer.size();
    Schedule::Packing packing;
    packing.parameter = step_.weights;
    packing.winograd = plan.tile;
    packing.layout = Layout::row_major(4);
    packing.layout.order = {0, 2, 3, 1};
    packing.layout.block_dim = 0;
    packing.layout.block = vector.lanes * vector.vectors;
    schedule.packings.push_back(packing);
    pack_others(schedule);
    schedule.winograd = step_;
    return schedule;
  }

 private:
  const ExprPool& pool() const { return kernel_.pool; }
  std::int64_t extent(std::uint32_t range) const { return kernel_.ranges[range].extent; }

  std::optional<std::uint32_t> bare(ExprId coordinate) const {
    const Expr& expr = pool()[coordinate];
    if (expr.kind != ExprKind::Variable) return std::nullopt;
    return expr.id;
  }

  // The load of an operand, and what makes floats of halves around it.
  const Expr* load_of(ExprId operand) const {
    const Expr& expr = pool()[operand];
    return expr.kind == ExprKind::Cast ? &pool()[expr.operands[0]] : &expr;
  }

  // One relaxed sum of a product of two loads over three ranges, of f32.
  bool find_operands() {
    ExprId reduce;
    for (std::uint32_t i = 0; i < pool().size(); ++i) {
      if (pool()[ExprId{i}].kind != ExprKind::Reduce) continue;
      if (reduce.valid()) return false;
      reduce = ExprId{i};
    }
    if (!reduce.valid()) return false;
    const Expr& sum = pool()[reduce];
    const Expr& product = pool()[sum.operands[0]];
    if (sum.strict || sum.reduce != Combine::Sum || sum.dtype != DType::F32 ||
        sum.ranges.size() != 3 || product.kind != ExprKind::Scalar || product.op != ScalarOp::Mul ||
        product.strict) {
      return false;
    }
    input_ = load_of(product.operands[0]);
    weights_ = load_of(product.operands[1]);
    if (input_->kind != ExprKind::Load || weights_->kind != ExprKind::Load) return false;
    if (is_constant_[input_->id]) std::swap(input_, weights_);
    step_.input = input_->id;
    step_.weights = weights_->id;
    // Nothing else reads the weights, which change their form; the input may be added, too.
    std::size_t readers = 0;
    for (std::uint32_t i = 0; i < pool().size(); ++i) {
      const Expr& expr = pool()[ExprId{i}];
      if (expr.kind == ExprKind::Load && expr.id == step_.weights) ++readers;
    }
    return !input_->gated && !weights_->gated && !is_constant_[step_.input] &&
           is_constant_[step_.weights] && readers == 1;
  }

  // [o, c, ky, kx], as they are.
  bool match_weights() {
    const KernelParameter& parameter = kernel_.parameters[step_.weights];
    const bool is_at_most_float32 = parameter.dtype == DType::F32 ||
                                    parameter.dtype == DType::F16 || parameter.dtype == DType::BF16;
    if (!is_at_most_float32 || parameter.shape.size() != 4) return false;
    std::uint32_t* const ranges[] = {&step_.output_channel, &step_.input_channel, &step_.kernel_row,
                                     &step_.kernel_column};
    for (std::size_t d = 0; d < 4; ++d) {
      const std::optional<std::uint32_t> range = bare(weights_->operands[d]);
      if (!range || extent(*range) != parameter.shape[d] ||
          kernel_.ranges[*range].is_reduce != (d > 0)) {
        return false;
      }
      *ranges[d] = *range;
    }
    return parameter.shape[2] == kKernelSide && parameter.shape[3] == kKernelSide;
  }

  // Coordinate = output range + kernel range + constant, in dimension `d`.
  bool match_window(std::size_t d, std::uint32_t kernel_range, std::uint32_t& output_range) const {
    const ExprId coordinate = input_->operands[d];
    if (linear_coefficient(pool(), coordinate, kernel_range) != 1) return false;
    std::size_t others = 0;
    for (std::uint32_t r = 0; r < kernel_.ranges.size(); ++r) {
      if (r == kernel_range || !depends_on(pool(), coordinate, r)) continue;
      if (kernel_.ranges[r].is_reduce || linear_coefficient(pool(), coordinate, r) != 1) {
        return false;
      }
      output_range = r;
      ++others;
    }
    return others == 1;
  }

  // [n, c + aligned, y + ky - p, x + kx - p] of channels in blocks.
  bool match_input() {
    const KernelParameter& parameter = kernel_.parameters[step_.input];
    const Layout& layout = parameter.layout;
    if (parameter.dtype != DType::F32 || parameter.shape.size() != 4 || layout.block_dim != 1 ||
        layout.block % target_.lanes(DType::F32) != 0) {
      return false;
    }
    step_.block = layout.block;
    const ExprId channel = input_->operands[1];
    const std::int64_t first =
        bounds_of(pool(), channel, [](std::uint32_t) { return std::int64_t{1}; }).min;
    if (linear_coefficient(pool(), channel, step_.input_channel) != 1 ||
        first % layout.block != 0) {
      return false;
    }
    for (std::uint32_t r = 0; r < kernel_.ranges.size(); ++r) {
      if (r != step_.input_channel && depends_on(pool(), channel, r)) return false;
    }
    for (const std::uint32_t r :
         {step_.input_channel, step_.kernel_row, step_.kernel_column, step_.output_channel}) {
      if (depends_on(pool(), input_->operands[0], r)) return false;
    }
    return match_window(2, step_.kernel_row, step_.row) &&
           match_window(3, step_.kernel_column, step_.column) && step_.row != step_.column;
  }

  // Channels of the result are dense in the destination, or run into its padding.
  bool match_store() const {
    const RangedStore& store = kernel_.stores[0];
    const KernelParameter& parameter = kernel_.parameters[store.parameter];
    const std::int64_t lanes = target_.lanes(DType::F32);
    if (parameter.shape.size() != 4) return false;
    const ExprId channel = store.coordinates[1];
    if (linear_coefficient(pool(), channel, step_.output_channel) != 1) return false;
    const std::int64_t first =
        bounds_of(pool(), channel, [](std::uint32_t) { return std::int64_t{1}; }).min;
    const Layout& layout = parameter.layout;
    if (layout.block_dim != 1 || layout.block % lanes != 0 || first % lanes != 0) return false;
    const std::int64_t count = extent(step_.output_channel);
    if (count % lanes == 0) return true;
    return first + count == parameter.shape[1] && others_have_room();
  }

  // Other constants along output channels, such as a bias: in vectors of the same channels.
  void pack_others(Schedule& schedule) const {
    for (std::uint32_t i = 0; i < pool().size(); ++i) {
      const Expr& expr = pool()[ExprId{i}];
      if (expr.kind != ExprKind::Load || expr.id == step_.weights || !is_constant_[expr.id])
        continue;
      for (std::size_t d = 0; d < expr.operands.size(); ++d) {
        if (bare(expr.operands[d]) != step_.output_channel || is_packed(schedule, expr.id))
          continue;
        const KernelParameter& parameter = kernel_.parameters[expr.id];
        Schedule::Packing packing;
        packing.parameter = expr.id;
        packing.layout = Layout::row_major(static_cast<int>(parameter.shape.size()));
        packing.layout.block_dim = static_cast<int>(d);
        packing.layout.block = schedule.vector->lanes * schedule.vector->vectors;
        schedule.packings.push_back(packing);
      }
    }
  }

  static bool is_packed(const Schedule& schedule, std::uint32_t parameter) {
    return std::ranges::any_of(schedule.packings, [&](const Schedule::Packing& packing) {
      return packing.parameter == parameter;
    });
  }

  // Whatever else the epilogue reads along output channels may be read beyond the last one.
  bool others_have_room() const {
    for (std::uint32_t i = 0; i < pool().size(); ++i) {
      const Expr& expr = pool()[ExprId{i}];
      if (expr.kind != ExprKind::Load || expr.id == step_.weights) continue;
      for (std::size_t d = 0; d + (expr.gated ? 1 : 0) < expr.operands.size(); ++d) {
        if (!depends_on(pool(), expr.operands[d], step_.output_channel)) continue;
        if (is_constant_[expr.id] && bare(expr.operands[d]) == step_.output_channel) continue;
        const KernelParameter& parameter = kernel_.parameters[expr.id];
        const std::int64_t lanes = target_.lanes(DType::F32);
        const std::int64_t padded = (extent(step_.output_channel) + lanes - 1) / lanes * lanes;
        const bool plain = bare(expr.operands[d]) == step_.output_channel;
        if (!plain || parameter.layout.block_dim != static_cast<int>(d) ||
            padded_extent(parameter.layout, parameter.shape, static_cast<int>(d)) < padded) {
          return false;
        }
      }
    }
    return true;
  }

  // Tiles at the end read zeros behind the window of the last output: the plan made a zeroed halo
  // as large as the tiles need it.
  bool has_halo(int tile) const {
    const KernelParameter& parameter = kernel_.parameters[step_.input];
    for (const auto& [dimension, range] : {std::pair{2, step_.row}, std::pair{3, step_.column}}) {
      const auto d = static_cast<std::size_t>(dimension);
      const std::int64_t first =
          bounds_of(pool(), input_->operands[d], [](std::uint32_t) { return std::int64_t{1}; }).min;
      const std::int64_t last =
          first + winograd_tiles(tile, extent(range)) * tile + kKernelSide - 2;
      // Behind the last window there must be a halo, not the rows of somebody else.
      const std::int64_t last_of_windows = first + extent(range) + kKernelSide - 2;
      if (last > last_of_windows && last_of_windows < parameter.shape[d] - 1) return false;
      if (first < -parameter.layout.before[d] ||
          last >= parameter.shape[d] + parameter.layout.after[d]) {
        return false;
      }
    }
    return true;
  }

  const RangedKernel& kernel_;
  const std::vector<bool>& is_constant_;
  const Target& target_;
  const Expr* input_ = nullptr;
  const Expr* weights_ = nullptr;
  WinogradStep step_;
};

}  // namespace

std::optional<Schedule> choose_winograd(const RangedKernel& kernel,
                                        const std::vector<bool>& is_constant, const Target& target,
                                        int largest_tile) {
  WinogradChooser chooser(kernel, is_constant, target);
  if (!chooser.matches()) return std::nullopt;
  const WinogradPlan plan = chooser.cheapest(largest_tile);
  if (!chooser.fits(plan)) return std::nullopt;
  return chooser.schedule(plan);
}

std::optional<Schedule> winograd_schedule(const RangedKernel& kernel,
                                          const std::vector<bool>& is_constant,
                                          const Target& target, const WinogradPlan& plan) {
  WinogradChooser chooser(kernel, is_constant, target);
  if (!chooser.matches() || !chooser.fits(plan)) return std::nullopt;
  return chooser.schedule(plan);
}

}  // namespace ingot
