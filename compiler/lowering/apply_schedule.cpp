// Ranged form -> scheduled form, following a schedule step by step.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/lowering/kernel_accesses.h"
#include "compiler/lowering/kernel_scheduler.h"

namespace ingot {
namespace {

class Applier : KernelScheduler {
 public:
  Applier(const RangedKernel& kernel, const Schedule& schedule, const Target& target)
      : KernelScheduler(kernel, schedule, target) {}
  Applier(const BandGroup& group, const BandStage& stage, const Target& target)
      : KernelScheduler(group, stage, target) {}

  ScheduledKernel run() {
    open_outer_loops();
    Block widened = widen_weights();
    Block body = tile_bodies();
    for (auto variable = serial_.rbegin(); variable != serial_.rend(); ++variable) {
      Block outer;
      outer.push_back(loop(*variable, std::move(body)));
      body = std::move(outer);
    }
    if (!widened.empty()) {
      append(widened, std::move(body));
      body = std::move(widened);
    }
    if (parallel_) {
      Block outer;
      outer.push_back(loop(*parallel_, std::move(body)));
      body = std::move(outer);
    }
    out_.body = std::move(body);
    return std::move(out_);
  }

 private:
  // --- outer loops

  std::int64_t step_of(std::uint32_t range) const {
    if (schedule_.vector && schedule_.vector->range == range) {
      return static_cast<std::int64_t>(schedule_.vector->lanes) * schedule_.vector->vectors;
    }
    for (const TileStep& tile : schedule_.tiles) {
      if (tile.range == range) return tile.size;
    }
    return 1;
  }

  std::int64_t turns(std::uint32_t range) const {
    return (extent(range) + step_of(range) - 1) / step_of(range);
  }

  // block_[range]: which tile; base_[range]: its first element.
  void open_outer_loops() {
    block_.assign(source_.ranges.size(), pool().index(0));
    base_.assign(source_.ranges.size(), pool().index(0));
    parallel_ = open_bands();
    const std::size_t joined = parallel_ ? 0 : schedule_.parallel;
    // One range may be cut: its chunks are turns of the parallel loop.
    std::int64_t chunks = 1;
    std::optional<std::uint32_t> cut;
    if (schedule_.widen) {
      chunks = schedule_.widen->chunks;
      cut = schedule_.outer[joined];
    } else if (schedule_.chunk && joined > 0) {
      chunks = schedule_.chunk->chunks;
      cut = schedule_.chunk->range;
    }
    const auto part = [&](std::uint32_t range) {
      return range == cut ? turns(range) / chunks : turns(range);
    };
    std::int64_t product = chunks;
    for (std::size_t i = 0; i < joined; ++i) product *= part(schedule_.outer[i]);
    ExprId chunk = pool().index(0);
    if (joined > 0 || schedule_.widen) {
      parallel_ = add_variable("p", product, LoopKind::Parallel);
      // A widened panel serves all of its chunks; other chunks are outside of everything.
      std::int64_t inner = schedule_.widen ? product : product / chunks;
      const auto digit = [&](std::int64_t inside, std::int64_t count) {
        return simplify(
            pool().floor_mod(pool().floor_div(pool().variable(*parallel_), inside), count));
      };
      chunk = digit(schedule_.widen ? 1 : inner, chunks);
      for (std::size_t i = 0; i < joined; ++i) {
        const std::uint32_t range = schedule_.outer[i];
        inner /= part(range);
        block_[range] = digit(inner, part(range));
      }
    }
    for (std::size_t i = joined; i < schedule_.outer.size(); ++i) {
      const std::uint32_t range = schedule_.outer[i];
      serial_.push_back(add_variable(source_.ranges[range].name, part(range), LoopKind::Serial));
      block_[range] = pool().variable(serial_.back());
    }
    if (cut) {
      block_[*cut] = simplify(pool().add(pool().mul(chunk, part(*cut)), block_[*cut]));
    }
    for (std::uint32_t range : schedule_.outer) base_[range] = base(range);
    for (std::uint32_t range = 0; range < source_.ranges.size(); ++range) {
      if (!source_.ranges[range].is_reduce) coordinate_[range] = base_[range];
    }
  }

  ExprId base(std::uint32_t range) {
    const std::int64_t step = step_of(range);
    const ExprId start = pool().mul(block_[range], step);
    const bool is_vector = schedule_.vector && schedule_.vector->range == range;
    const bool overlaps =
        is_vector ? schedule_.vector->tail == Tail::Overlap : extent(range) % step != 0;
    return overlaps ? pool().min(start, extent(range) - step) : start;
  }

  Block widen_weights() {
    if (!schedule_.widen) return {};
    const auto packing = std::ranges::find(schedule_.packings, schedule_.widen->parameter,
                                           &Schedule::Packing::parameter);
    const Shape& shape = source_.parameters[packing->parameter].shape;
    const ExprId first =
        pool().mul(block_[schedule_.vector->range], panel_elements(*packing, shape));
    return widen_panel(*packing, schedule_.vector->lanes, first);
  }

  // --- one tile

  // Full tiles and, where the vectors do not fill the last one or one of them is narrow, another
  // body for it.
  Block tile_bodies() {
    if (!schedule_.vector) return tile_body(1, 1);
    const VectorStep& vector = *schedule_.vector;
    const std::int64_t in_all = (extent(vector.range) + vector.lanes - 1) / vector.lanes;
    const int last_lanes = vector.last_lanes(extent(vector.range));
    std::int64_t full = in_all / vector.vectors;
    std::int64_t rest = in_all % vector.vectors;
    if (vector.tail == Tail::Narrow && rest == 0) {
      --full;
      rest = vector.vectors;
    }
    if (vector.tail == Tail::Overlap || rest == 0) return tile_body(vector.vectors, vector.lanes);
    if (full == 0) return tile_body(rest, last_lanes);
    const ExprId block = block_[vector.range];
    const std::array<ExprId, 2> is_full{block, pool().index(full)};
    const std::array<ExprId, 2> is_rest{pool().index(full), block};
    Block body;
    const ExprId first = pool().scalar(ScalarOp::Lt, is_full);
    body.push_back(Statement{IfStatement{first, tile_body(vector.vectors, vector.lanes)}});
    const ExprId last = pool().scalar(ScalarOp::Le, is_rest);
    body.push_back(Statement{IfStatement{last, tile_body(rest, last_lanes)}});
    return body;
  }

  Block tile_body(std::int64_t vectors, int last_lanes) {
    parts_.clear();
    const bool is_narrow = last_lanes < lanes();
    const std::int64_t wide = is_narrow ? vectors - 1 : vectors;
    if (wide > 0) parts_.push_back(Part{0, wide, lanes()});
    if (is_narrow) parts_.push_back(Part{wide, 1, last_lanes});
    reduced_.clear();
    Block body;
    for (std::uint32_t i = 0; i < source_.pool.size(); ++i) {
      const ExprId id{i};
      if (source_.pool[id].kind == ExprKind::Reduce && reaches(id)) append(body, reduce_block(id));
    }
    append(body, prefetches_ahead());
    append(body, in_tile([&] { return store_statement(); }));
    return body;
  }

  Block prefetches_ahead() {
    Block out;
    if (!schedule_.ahead) return out;
    const std::uint32_t range = schedule_.vector->range;
    const std::int64_t last = std::max<std::int64_t>(0, extent(range) - schedule_.vector->lanes);
    const std::int64_t step = schedule_.ahead->vectors * schedule_.vector->lanes;
    const ExprId later = pool().min(pool().add(base_[range], pool().index(step)), last);
    set_coordinate(range, later);
    for (std::uint32_t i = 0; i < source_.pool.size(); ++i) {
      const Expr& load = source_.pool[ExprId{i}];
      if (load.kind != ExprKind::Load || !reaches(ExprId{i})) continue;
      const std::vector<ExprId> coordinates = coordinates_of(load);
      if (!follows_data(source_.pool, coordinates)) continue;
      out.push_back(Statement{PrefetchStatement{load.id, address(load.id, coordinates)}});
    }
    set_coordinate(range, base_[range]);
    return out;
  }

  std::vector<ExprId> coordinates_of(const Expr& load) const {
    const std::size_t rank = source_.parameters[load.id].shape.size();
    return {load.operands.begin(), load.operands.begin() + static_cast<std::ptrdiff_t>(rank)};
  }

  bool reaches(ExprId reduce) {
    if (reachable_.empty()) {
      reachable_.assign(source_.pool.size(), false);
      reachable_[source_.stores[0].value.index] = true;
      for (std::uint32_t i = source_.stores[0].value.index + 1; i-- > 0;) {
        if (!reachable_[i]) continue;
        for (ExprId operand : source_.pool[ExprId{i}].operands) reachable_[operand.index] = true;
      }
    }
    return reachable_[reduce.index];
  }

  // Vectors of a tile that have the same lanes.
  struct Part {
    std::int64_t first = 0, vectors = 1;
    std::int64_t lanes = 1;
  };

  std::int64_t lanes() const { return schedule_.vector ? schedule_.vector->lanes : 1; }

  // Accumulators of a tile: the array of its first part.
  std::uint32_t add_accumulators(DType dtype, std::int64_t lanes_of_reduce = 1) {
    std::int64_t tiles = 1;
    for (const TileStep& tile : schedule_.tiles) tiles *= tile.size;
    const auto first = static_cast<std::uint32_t>(out_.registers.size());
    for (const Part& part : parts_) {
      add_registers(dtype, tiles * part.vectors, part.lanes * lanes_of_reduce);
    }
    return first;
  }

  // The loops of a tile, with variables of their own, around one statement; it is made once per
  // part, with the coordinates set.
  template <typename Make>
  Block in_tile(const Make& make) {
    std::vector<std::uint32_t> variables;
    ExprId element = pool().index(0);
    const auto open = [&](std::string name, std::int64_t count) {
      variables.push_back(add_variable(std::move(name), count, LoopKind::Unroll));
      element = pool().add(pool().mul(element, count), pool().variable(variables.back()));
      return pool().variable(variables.back());
    };
    const auto close = [&](std::size_t from, Block body) {
      for (; variables.size() > from; variables.pop_back()) {
        Block outer;
        outer.push_back(loop(variables.back(), std::move(body)));
        body = std::move(outer);
      }
      return body;
    };
    forget_translations();
    for (const TileStep& tile : schedule_.tiles) {
      const ExprId turn = open(fmt::format("{}t", source_.ranges[tile.range].name), tile.size);
      set_coordinate(tile.range, pool().add(base_[tile.range], turn));
    }
    const std::size_t tiles = variables.size();
    const ExprId of_tile = element;
    Block parts;
    for (part_ = 0; part_ < parts_.size(); ++part_) {
      const Part& part = parts_[part_];
      element = of_tile;
      lane_ = pool().index(0);
      if (schedule_.vector) {
        ExprId vector = pool().index(part.first);
        if (part.vectors > 1) vector = pool().add(vector, open("j", part.vectors));
        variables.push_back(add_variable("v", part.lanes, LoopKind::Vector));
        lane_ = pool().variable(variables.back());
        const std::uint32_t range = schedule_.vector->range;
        set_coordinate(range,
                       pool().add(pool().add(base_[range], pool().mul(vector, lanes())), lane_));
      }
      element_ = element;
      Block body;
      body.push_back(make());
      append(parts, close(tiles, std::move(body)));
    }
    part_ = 0;
    return close(0, std::move(parts));
  }

  // --- reduces

  ExprId start_value(const Expr& reduce) {
    return pool().constant(identity(reduce.reduce, reduce.dtype));
  }

  Block reduce_block(ExprId id) {
    const Expr& reduce = source_.pool[id];
    if (schedule_.vector_reduce) return vector_reduce_block(id);
    const std::uint32_t array = add_accumulators(reduce.dtype);
    Block body = in_tile([&] { return set(array + part_, element_, lane_, start_value(reduce)); });
    if (is_long_sum(reduce)) {
      open_partial_sums(reduce, array, 1, depth_of_partial_sums(), body);
    }
    append(body, reduce_loops(reduce, 0, [&] {
             return in_tile([&] { return accumulate(reduce, array + part_, element_, lane_); });
           }));
    append(body, end_of_partial_sum(reduce));
    reduced_[id] = partial_ ? partial_->total : array;
    partial_.reset();
    return body;
  }

  // --- long sums

  struct PartialSums {
    std::uint32_t array = 0, total = 0;
    std::int64_t lanes = 1;  // over the reduce
    std::size_t depth = 0;   // a turn of this loop, or of its blocks, ends a partial sum
  };

  bool is_long_sum(const Expr& reduce) const {
    std::int64_t terms = 1;
    for (const std::uint32_t range : reduce.ranges) terms *= extent(range);
    return reduce.reduce == Combine::Sum && is_float(reduce.dtype) && !reduce.strict &&
           terms > kLongSum;
  }

  // The innermost loop with which the sum becomes long (choose_schedule.cpp splits it).
  std::size_t depth_of_partial_sums() const {
    std::int64_t inside = 1;
    for (std::size_t depth = schedule_.reduces.size(); depth-- > 0;) {
      const std::uint32_t range = schedule_.reduces[depth].range;
      const bool in_lanes = schedule_.vector_reduce && schedule_.vector_reduce->range == range;
      inside *= in_lanes ? std::max<std::int64_t>(1, extent(range) / schedule_.vector_reduce->lanes)
                         : extent(range);
      if (inside > kLongSum) return depth;
    }
    return 0;
  }

  // Statements for all elements of a tile and, if there are several, all lanes.
  template <typename Make>
  Block in_tile_lanes(std::int64_t lanes, const Make& make) {
    return in_tile([&] {
      if (!schedule_.vector_reduce) return make(lane_);
      const std::uint32_t lane = add_variable("v", lanes, LoopKind::Vector);
      return loop(lane, Block{make(pool().variable(lane))});
    });
  }

  void open_partial_sums(const Expr& reduce, std::uint32_t array, std::int64_t lanes,
                         std::size_t depth, Block& body) {
    PartialSums sums;
    sums.array = array;
    sums.total = add_accumulators(reduce.dtype, lanes);
    sums.lanes = lanes;
    sums.depth = depth;
    append(body, in_tile_lanes(lanes, [&](ExprId lane) {
             return set(sums.total + part_, element_, lane, start_value(reduce));
           }));
    partial_ = sums;
  }

  // The partial sum joins the total and starts again.
  Block end_of_partial_sum(const Expr& reduce) {
    if (!partial_) return {};
    Block body = in_tile_lanes(partial_->lanes, [&](ExprId lane) {
      const std::uint32_t array = partial_->array + part_, sum = partial_->total + part_;
      const ExprId total = pool().read_register(sum, reduce.dtype, element_, lane);
      const ExprId part = pool().read_register(array, reduce.dtype, element_, lane);
      return set(sum, element_, lane, combine(reduce, total, part));
    });
    append(body, in_tile_lanes(partial_->lanes, [&](ExprId lane) {
             return set(partial_->array + part_, element_, lane, start_value(reduce));
           }));
    return body;
  }

  Block end_of_turn(const Expr& reduce, std::size_t depth) {
    return partial_ && partial_->depth == depth ? end_of_partial_sum(reduce) : Block{};
  }

  // The load of `parameter` below an expression; operands have lower numbers.
  const Expr* find_load(ExprId id, std::uint32_t parameter) const {
    std::vector<bool> below(id.index + 1);
    below[id.index] = true;
    for (std::uint32_t i = id.index + 1; i-- > 0;) {
      if (!below[i]) continue;
      const Expr& expr = source_.pool[ExprId{i}];
      if (expr.kind == ExprKind::Load && expr.id == parameter) return &expr;
      for (const ExprId operand : expr.operands) below[operand.index] = true;
    }
    return nullptr;
  }

  // What one turn of the innermost real reduce loop asks for ahead; the coordinate of its range is
  // that of the first turn.
  Block prefetches(const Expr& reduce) {
    Block out;
    if (!schedule_.prefetch) return out;
    const PrefetchStep& step = *schedule_.prefetch;
    const Expr* load = find_load(reduce.operands[0], step.parameter);
    if (load == nullptr) return out;
    for (std::uint32_t range = 0; range < source_.ranges.size(); ++range) {
      if (!source_.ranges[range].is_reduce) set_coordinate(range, base_[range]);
    }
    std::vector<ExprId> coordinates = load->operands;
    if (load->gated) coordinates.pop_back();
    const std::int64_t line = kLineBytes / size_bytes(load->dtype);
    ExprId tile = pool().index(0);  // of the panel
    for (const std::uint32_t range : schedule_.outer) {
      if (range == schedule_.vector->range) continue;
      tile = pool().add(pool().mul(tile, turns(range)), block_[range]);
    }
    const std::int64_t shares = (step.lines + step.share - 1) / step.share;
    const ExprId first = pool().mul(pool().floor_mod(tile, shares), step.share * line);
    const ExprId ahead = pool().add(pool().add(address(step.parameter, coordinates), first),
                                    pool().index(step.distance));
    for (std::int64_t i = 0; i < step.share; ++i) {
      out.push_back(Statement{
          PrefetchStatement{step.parameter, simplify(pool().add(ahead, pool().index(i * line)))}});
    }
    return out;
  }

  Statement accumulate(const Expr& reduce, std::uint32_t array, ExprId element, ExprId lane) {
    const ExprId sum = pool().read_register(array, reduce.dtype, element, lane);
    const ExprId value = translate(reduce.operands[0]);
    return set(array, element, lane, combine(reduce, sum, value));
  }

  bool runs_over(const Expr& reduce, std::uint32_t range) const {
    return std::ranges::find(reduce.ranges, range) != reduce.ranges.end();
  }

  // The nest of the reduce's loops from step `depth` on; `body` makes the innermost block with the
  // coordinates set.
  template <typename Body>
  Block reduce_loops(const Expr& reduce, std::size_t depth, const Body& body) {
    if (depth == schedule_.reduces.size()) return body();
    const ReduceStep& step = schedule_.reduces[depth];
    const bool is_lanes = schedule_.vector_reduce && schedule_.vector_reduce->range == step.range;
    if (is_lanes || !runs_over(reduce, step.range)) return reduce_loops(reduce, depth + 1, body);
    auto inner = [&] { return reduce_loops(reduce, depth + 1, body); };
    auto ahead = [&]() -> Block { return is_innermost(depth) ? prefetches(reduce) : Block{}; };
    const std::string& name = source_.ranges[step.range].name;
    if (step.split <= 1) {
      auto turn = [&] {
        Block body_and_end = inner();
        append(body_and_end, end_of_turn(reduce, depth));
        return body_and_end;
      };
      return counted_loop(step, name, extent(step.range), pool().index(0), step.unroll, turn,
                          ahead);
    }
    const std::int64_t blocks = extent(step.range) / step.split;
    const std::int64_t rest = extent(step.range) % step.split;
    Block out;
    const std::uint32_t block =
        add_variable(name + "o", blocks, blocks == 1 ? LoopKind::Unroll : LoopKind::Serial);
    const ExprId first = pool().mul(pool().variable(block), step.split);
    set_coordinate(step.range, first);
    Block turn;
    if (step.unroll == step.split) turn = ahead();
    append(turn, counted_loop(step, name, step.split, first, step.unroll, inner, ahead));
    append(turn, end_of_turn(reduce, depth));
    out.push_back(loop(block, std::move(turn)));
    if (rest > 0) {
      append(out, counted_loop(step, name, rest, pool().index(blocks * step.split), 1, inner));
    }
    return out;
  }

  bool is_innermost(std::size_t depth) const { return depth + 1 == schedule_.reduces.size(); }

  static Block nothing() { return {}; }

  // `count` turns from `start` on, `unroll` of them written out (unroll divides count); `ahead`
  // stands before them.
  template <typename Body, typename Ahead = Block (*)()>
  Block counted_loop(const ReduceStep& step, const std::string& name, std::int64_t count,
                     ExprId start, std::int64_t unroll, const Body& body,
                     const Ahead& ahead = nothing) {
    Block out;
    if (unroll == count) {
      const std::uint32_t variable = add_variable(name, count, LoopKind::Unroll);
      set_coordinate(step.range, pool().add(start, pool().variable(variable)));
      out.push_back(loop(variable, body()));
      return out;
    }
    const std::uint32_t variable = add_variable(name, count / unroll, LoopKind::Serial);
    const ExprId first = pool().add(start, pool().mul(pool().variable(variable), unroll));
    set_coordinate(step.range, first);
    Block unrolled = ahead();
    if (unroll == 1) {
      append(unrolled, body());
      out.push_back(loop(variable, std::move(unrolled)));
      return out;
    }
    const std::uint32_t inner = add_variable(name + "u", unroll, LoopKind::Unroll);
    set_coordinate(step.range, pool().add(first, pool().variable(inner)));
    unrolled.push_back(loop(inner, body()));
    out.push_back(loop(variable, std::move(unrolled)));
    return out;
  }

  // Lanes over the innermost reduce range, then the lanes in order, then what is left over.
  Block vector_reduce_block(ExprId id) {
    const Expr& reduce = source_.pool[id];
    const VectorStep& step = *schedule_.vector_reduce;
    const std::int64_t full = extent(step.range) / step.lanes;
    const std::int64_t rest = extent(step.range) % step.lanes;
    const ExprId zero = pool().index(0);
    const std::uint32_t partial = add_accumulators(reduce.dtype, step.lanes);
    const std::uint32_t total = add_accumulators(reduce.dtype);
    Block body = in_tile([&] {
      const std::uint32_t lane = add_variable("v", step.lanes, LoopKind::Vector);
      return loop(lane, Block{set(partial, element_, pool().variable(lane), start_value(reduce))});
    });
    const std::size_t innermost = schedule_.reduces.size() - 1;
    if (is_long_sum(reduce)) {
      open_partial_sums(reduce, partial, step.lanes, depth_of_partial_sums(), body);
    }
    const auto turns = [&](ExprId first, std::int64_t count) {
      const std::uint32_t turn = add_variable("b", count, LoopKind::Serial);
      const ExprId at = pool().mul(pool().add(first, pool().variable(turn)), step.lanes);
      return loop(turn, in_tile_lanes(step.lanes, [&](ExprId lane) {
                    set_coordinate(step.range, pool().add(at, lane));
                    return accumulate(reduce, partial, element_, lane);
                  }));
    };
    append(body, reduce_loops(reduce, 0, [&] {
             if (!partial_ || partial_->depth != innermost) return Block{turns(zero, full)};
             Block all;
             const std::uint32_t part = add_variable("s", full / kPartialSum, LoopKind::Serial);
             Block one{turns(pool().mul(pool().variable(part), kPartialSum), kPartialSum)};
             append(one, end_of_partial_sum(reduce));
             all.push_back(loop(part, std::move(one)));
             const std::int64_t left = full % kPartialSum;
             if (left > 0) all.push_back(turns(pool().index(full - left), left));
             return all;
           }));
    append(body, end_of_partial_sum(reduce));
    const std::uint32_t sums = partial_ ? partial_->total : partial;
    partial_.reset();
    append(body, in_tile([&] { return set(total, element_, zero, start_value(reduce)); }));
    const std::uint32_t each = add_variable("l", step.lanes, LoopKind::Unroll);
    body.push_back(loop(each, in_tile([&] {
                          const ExprId value = pool().read_register(sums, reduce.dtype, element_,
                                                                    pool().variable(each));
                          const ExprId sum =
                              pool().read_register(total, reduce.dtype, element_, zero);
                          return set(total, element_, zero, combine(reduce, sum, value));
                        })));
    if (rest > 0) {
      append(body, reduce_loops(reduce, 0, [&] {
               const std::uint32_t turn = add_variable("t", rest, LoopKind::Serial);
               set_coordinate(step.range,
                              pool().add(pool().index(full * step.lanes), pool().variable(turn)));
               return Block{
                   loop(turn, in_tile([&] { return accumulate(reduce, total, element_, zero); }))};
             }));
    }
    reduced_[id] = total;
    return body;
  }

  std::optional<std::uint32_t> parallel_;
  std::vector<std::uint32_t> serial_;
  std::vector<ExprId> block_, base_;    // per source range
  std::vector<Part> parts_;             // of the tile being made
  std::optional<PartialSums> partial_;  // of the reduce being made
  std::vector<bool> reachable_;
};

}  // namespace

Result<ScheduledKernel> apply_schedule(const RangedKernel& kernel, const Schedule& schedule,
                                       const Target& target) {
  if (schedule.winograd) return apply_winograd(kernel, schedule, target);
  return Applier(kernel, schedule, target).run();
}

ScheduledKernel apply_band(const BandGroup& group, const BandStage& stage, const Target& target) {
  return Applier(group, stage, target).run();
}

}  // namespace ingot
