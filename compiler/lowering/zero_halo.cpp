#include "compiler/lowering/zero_halo.h"

namespace ingot {
namespace {

// The halo of one dimension lies in two runs for each position of the dimensions outside of it.
class ZeroHalo {
 public:
  ZeroHalo(DType dtype, const Shape& shape, const Layout& layout, const Target& target, bool always)
      : shape_(shape), layout_(layout), always_(always), stride_(strides(layout, shape)) {
    kernel_.name = "zero halo";
    kernel_.parameters.push_back(KernelParameter{"out", dtype, shape, layout, Access::Write});
    zero_ = pool().constant(Scalar::zero(dtype));
    lanes_ = target.lanes(dtype);
  }

  std::optional<ScheduledKernel> run() {
    const std::int64_t all = element_count(layout_, shape_);
    std::size_t first = 0;  // dimension with a halo, in memory order
    while (first < shape_.size() && !has_halo(layout_.order[first])) ++first;
    if (first == shape_.size() || all == 0) return std::nullopt;
    const std::int64_t inside = stride_of(first) * positions(first);
    const std::int64_t outside = all / inside;
    if (outside > kMostTurns && !always_) return std::nullopt;
    const std::uint32_t parallel = add_variable("p", outside, LoopKind::Parallel);
    const ExprId base = pool().mul(pool().variable(parallel), inside);
    Block body;
    for (std::size_t place = first; place < shape_.size(); ++place) {
      if (!has_halo(layout_.order[place])) continue;
      const std::int64_t size = stride_of(place) * positions(place);
      const std::int64_t around = inside / size;
      const std::uint32_t turn = add_variable("i", around, LoopKind::Serial);
      const ExprId start = pool().add(base, pool().mul(pool().variable(turn), size));
      const auto d = static_cast<std::size_t>(layout_.order[place]);
      const std::int64_t behind = stride_of(place) * (layout_.before[d] + shape_[d]);
      Block runs;
      add_run(runs, start, stride_of(place) * layout_.before[d]);
      add_run(runs, pool().add(start, pool().index(behind)), stride_of(place) * layout_.after[d]);
      body.push_back(Statement{ForStatement{turn, std::move(runs)}});
      written_ += outside * around * (size - stride_of(place) * shape_[d]);
    }
    if (written_ * kWorthwhile > all && !always_) return std::nullopt;
    kernel_.body.push_back(Statement{ForStatement{parallel, std::move(body)}});
    return std::move(kernel_);
  }

 private:
  static constexpr std::int64_t kMostTurns = 65535;  // CALLS.grid
  // Filling a whole buffer writes that much faster than runs.
  static constexpr std::int64_t kWorthwhile = 2;

  ExprPool& pool() { return kernel_.pool; }
  bool has_halo(int d) const {
    const auto i = static_cast<std::size_t>(d);
    return layout_.before[i] > 0 || layout_.after[i] > 0;
  }
  std::int64_t stride_of(std::size_t place) const {
    return stride_[static_cast<std::size_t>(layout_.order[place])];
  }
  std::int64_t positions(std::size_t place) const {
    const auto d = static_cast<std::size_t>(layout_.order[place]);
    return layout_.before[d] + shape_[d] + layout_.after[d];
  }

  std::uint32_t add_variable(const char* name, std::int64_t extent, LoopKind kind) {
    kernel_.variables.push_back(Variable{name, extent, kind});
    return static_cast<std::uint32_t>(kernel_.variables.size() - 1);
  }

  // Whole vectors, then smaller ones.
  void add_run(Block& to, ExprId start, std::int64_t count) {
    std::int64_t done = 0;
    for (std::int64_t lanes = lanes_; done < count; lanes /= 2) {
      const std::int64_t turns = (count - done) / lanes;
      if (turns == 0) continue;
      const std::uint32_t turn = add_variable("t", turns, LoopKind::Serial);
      const ExprId first = pool().add(
          start, pool().add(pool().mul(pool().variable(turn), lanes), pool().index(done)));
      Block body;
      if (lanes == 1) {
        body.push_back(Statement{StoreStatement{0, first, zero_}});
      } else {
        const std::uint32_t lane = add_variable("v", lanes, LoopKind::Vector);
        Block vector;
        vector.push_back(
            Statement{StoreStatement{0, pool().add(first, pool().variable(lane)), zero_}});
        body.push_back(Statement{ForStatement{lane, std::move(vector)}});
      }
      to.push_back(Statement{ForStatement{turn, std::move(body)}});
      done += turns * lanes;
    }
  }

  const Shape& shape_;
  const Layout& layout_;
  const bool always_;
  const std::vector<std::int64_t> stride_;
  ScheduledKernel kernel_;
  ExprId zero_;
  std::int64_t lanes_ = 1, written_ = 0;
};

}  // namespace

std::optional<ScheduledKernel> zero_halo_kernel(DType dtype, const Shape& shape,
                                                const Layout& layout, const Target& target,
                                                bool always) {
  return ZeroHalo(dtype, shape, layout, target, always).run();
}

}  // namespace ingot
