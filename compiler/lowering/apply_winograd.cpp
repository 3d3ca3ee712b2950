// Loops of a Winograd convolution (schedule.h: WinogradStep).
#include <array>

#include "base/check.h"
#include "compiler/lowering/kernel_scheduler.h"
#include "compiler/plan/winograd.h"

namespace ingot {
namespace {

constexpr std::int64_t kChannelUnroll = 4;  // input channels written out in the product loop

class WinogradApplier : KernelScheduler {
 public:
  WinogradApplier(const RangedKernel& kernel, const Schedule& schedule, const Target& target)
      : KernelScheduler(kernel, schedule, target),
        step_(*schedule.winograd),
        lanes_(schedule.vector->lanes),
        vectors_(schedule.vector->vectors),
        side_(step_.tile + 2),
        frequencies_(side_ * side_),
        tile_rows_(winograd_tiles(step_.tile, extent(step_.row))),
        tile_columns_(winograd_tiles(step_.tile, extent(step_.column))),
        tiles_(step_.band * tile_columns_),
        blocks_(divided(extent(step_.input_channel), step_.block)) {
    find_reduce();
  }

  ScheduledKernel run() {
    add_memory();
    open_parallel_loop();
    Block body = transform_inputs();
    const std::int64_t groups = divided(extent(step_.output_channel), lanes_ * vectors_);
    const std::int64_t per_part = divided(groups, step_.parts);
    const std::uint32_t group = add_variable("g", per_part, LoopKind::Serial);
    // The last part starts early where parts do not divide the groups.
    group_ = pool().add(pool().min(pool().mul(part_, per_part), groups - per_part),
                        pool().variable(group));
    Block of_group = multiply();
    append(of_group, transform_outputs());
    body.push_back(loop(group, std::move(of_group)));
    out_.body.push_back(loop(parallel_, std::move(body)));
    return std::move(out_);
  }

 private:
  static std::int64_t divided(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

  // The factors of the sum's products; the input may be read behind the sum as well.
  void find_reduce() {
    for (std::uint32_t i = 0; i < source_.pool.size(); ++i) {
      if (source_.pool[ExprId{i}].kind == ExprKind::Reduce) reduce_ = ExprId{i};
    }
    INGOT_CHECK(reduce_.valid(), "not a convolution");
    for (ExprId factor : source_.pool[source_.pool[reduce_].operands[0]].operands) {
      if (source_.pool[factor].kind == ExprKind::Cast) factor = source_.pool[factor].operands[0];
      const Expr& load = source_.pool[factor];
      if (load.id == step_.input) input_load_ = factor;
      if (load.id == step_.weights) weights_load_ = factor;
    }
    INGOT_CHECK(input_load_.valid() && weights_load_.valid(), "not a convolution");
  }

  // --- memory of the worker

  // Distances between frequencies are odd numbers of lines, so that these do not share cache sets.
  static std::int64_t odd(std::int64_t count) { return count | 1; }

  void add_memory() {
    input_stride_ = odd(blocks_ * tiles_);
    product_stride_ = odd(tiles_ * vectors_);
    inputs_ = add_worker_array("inputs", frequencies_ * input_stride_, step_.block);
    products_ = add_worker_array("products", frequencies_ * product_stride_, lanes_);
    out_.parameters.push_back(worker_memory(
        target_, frequencies_ * (input_stride_ * step_.block + product_stride_ * lanes_)));
  }

  std::uint32_t add_worker_array(std::string name, std::int64_t elements, std::int64_t lanes) {
    RegisterArray array;
    array.name = std::move(name);
    array.space = AddressSpace::Worker;
    array.elements = elements;
    array.lanes = lanes;
    array.parameter = static_cast<std::uint32_t>(out_.parameters.size());
    out_.registers.push_back(std::move(array));
    return static_cast<std::uint32_t>(out_.registers.size() - 1);
  }

  // --- loops

  // Other output ranges, then bands, then parts.
  void open_parallel_loop() {
    const std::int64_t bands = divided(tile_rows_, step_.band);
    std::int64_t turns = bands * step_.parts;
    for (const std::uint32_t range : schedule_.outer) turns *= extent(range);
    parallel_ = add_variable("p", turns, LoopKind::Parallel);
    const ExprId p = pool().variable(parallel_);
    part_ = simplify(pool().floor_mod(p, step_.parts));
    const ExprId band = simplify(pool().floor_mod(pool().floor_div(p, step_.parts), bands));
    first_row_ = simplify(pool().min(pool().mul(band, step_.band), tile_rows_ - step_.band));
    std::int64_t inner = bands * step_.parts;
    for (auto range = schedule_.outer.rbegin(); range != schedule_.outer.rend(); ++range) {
      set_coordinate(*range,
                     simplify(pool().floor_mod(pool().floor_div(p, inner), extent(*range))));
      inner *= extent(*range);
    }
  }

  ExprId output_channel(ExprId vector, ExprId lane) {
    const ExprId first = pool().mul(pool().add(pool().mul(group_, vectors_), vector), lanes_);
    return pool().add(first, lane);
  }

  // Calls `make` with a vector variable; its statements form the vector loop.
  template <typename Make>
  Statement in_lanes(const Make& make) {
    const std::uint32_t variable = add_variable("v", lanes_, LoopKind::Vector);
    return loop(variable, make(pool().variable(variable)));
  }

  ExprId at(std::int64_t row, std::int64_t column, std::int64_t columns) {
    return pool().index(row * columns + column);
  }

  // --- 1. inputs: one tile of a block of channels at a time

  Block transform_inputs() {
    const std::uint32_t block = add_variable("cb", blocks_, LoopKind::Serial);
    const std::uint32_t row = add_variable("ty", step_.band, LoopKind::Serial);
    const std::uint32_t column = add_variable("tx", tile_columns_, LoopKind::Serial);
    const std::uint32_t half = add_variable("h", step_.block / lanes_, LoopKind::Serial);
    const std::uint32_t columns = add_registers(DType::F32, frequencies_, lanes_);
    const ExprId tile =
        pool().add(pool().mul(pool().variable(row), tile_columns_), pool().variable(column));
    const ExprId place = pool().add(pool().mul(pool().variable(block), tiles_), tile);
    Block body;
    body.push_back(in_lanes([&](ExprId lane) {
      const ExprId in_block = pool().add(pool().mul(pool().variable(half), lanes_), lane);
      set_coordinate(step_.input_channel,
                     pool().add(pool().mul(pool().variable(block), step_.block), in_block));
      set_coordinate(step_.row,
                     pool().mul(pool().add(first_row_, pool().variable(row)), step_.tile));
      set_coordinate(step_.column, pool().mul(pool().variable(column), step_.tile));
      Block statements;
      for (std::int64_t x = 0; x < side_; ++x) {
        std::vector<ExprId> values;
        for (std::int64_t y = 0; y < side_; ++y) {
          set_coordinate(step_.kernel_row, pool().index(y));
          set_coordinate(step_.kernel_column, pool().index(x));
          values.push_back(translate(input_load_));
        }
        values = transform_input(pool(), target_.has_fma, step_.tile, values);
        for (std::int64_t y = 0; y < side_; ++y) {
          statements.push_back(
              set(columns, at(y, x, side_), lane, values[static_cast<std::size_t>(y)]));
        }
      }
      for (std::int64_t y = 0; y < side_; ++y) {
        std::vector<ExprId> values;
        for (std::int64_t x = 0; x < side_; ++x) {
          values.push_back(pool().read_register(columns, DType::F32, at(y, x, side_), lane));
        }
        values = transform_input(pool(), target_.has_fma, step_.tile, values);
        for (std::int64_t x = 0; x < side_; ++x) {
          const ExprId element =
              simplify(pool().add(place, pool().index((y * side_ + x) * input_stride_)));
          statements.push_back(
              set(inputs_, element, in_block, values[static_cast<std::size_t>(x)]));
        }
      }
      return statements;
    }));
    for (const std::uint32_t variable : {half, column, row, block}) {
      Block outer;
      outer.push_back(loop(variable, std::move(body)));
      body = std::move(outer);
    }
    return body;
  }

  // --- 2. products of one group of output channels

  Block multiply() {
    const std::int64_t positions = step_.positions;
    const std::int64_t turns = divided(tiles_, positions);
    const std::uint32_t frequency = add_variable("f", frequencies_, LoopKind::Serial);
    const std::uint32_t turn = add_variable("t", turns, LoopKind::Serial);
    frequency_ = pool().variable(frequency);
    first_tile_ =
        simplify(pool().min(pool().mul(pool().variable(turn), positions), tiles_ - positions));
    accumulators_ = add_registers(DType::F32, positions * vectors_, lanes_);

    Block body = in_register_tile([&](ExprId, ExprId, ExprId element, ExprId lane) {
      return set(accumulators_, element, lane, pool().constant(Scalar::zero(DType::F32)));
    });
    const std::int64_t channels = extent(step_.input_channel);
    const std::int64_t full = channels / step_.block, rest = channels % step_.block;
    if (full > 0) {
      const std::uint32_t block = add_variable("cb", full, LoopKind::Serial);
      body.push_back(loop(
          block,
          channel_loop(pool().variable(block), step_.block, [&](ExprId first, std::int64_t count) {
            return prefetches(pool().variable(block), first, count, pool().variable(turn), turns);
          })));
    }
    if (rest > 0) append(body, channel_loop(pool().index(full), rest));
    append(body, in_register_tile([&](ExprId position, ExprId vector, ExprId element, ExprId lane) {
             const ExprId tile = pool().add(first_tile_, position);
             const ExprId place = pool().add(pool().mul(frequency_, product_stride_),
                                             pool().add(pool().mul(tile, vectors_), vector));
             return set(products_, simplify(place), lane,
                        pool().read_register(accumulators_, DType::F32, element, lane));
           }));
    for (const std::uint32_t variable : {turn, frequency}) {
      Block outer;
      outer.push_back(loop(variable, std::move(body)));
      body = std::move(outer);
    }
    return body;
  }

  template <typename Make>
  Block in_register_tile(const Make& make) {
    const std::uint32_t position = add_variable("tt", step_.positions, LoopKind::Unroll);
    const std::uint32_t vector = add_variable("j", vectors_, LoopKind::Unroll);
    const ExprId element =
        pool().add(pool().mul(pool().variable(position), vectors_), pool().variable(vector));
    Block body;
    body.push_back(in_lanes([&](ExprId lane) {
      return Block{make(pool().variable(position), pool().variable(vector), element, lane)};
    }));
    for (const std::uint32_t variable : {vector, position}) {
      Block outer;
      outer.push_back(loop(variable, std::move(body)));
      body = std::move(outer);
    }
    return body;
  }

  static Block nothing(ExprId, std::int64_t) { return {}; }

  // `ahead` stands before the channels that are written out: the first one, and how many.
  template <typename Ahead = Block (*)(ExprId, std::int64_t)>
  Block channel_loop(ExprId block, std::int64_t channels, const Ahead& ahead = nothing) {
    const std::int64_t unroll = channels % kChannelUnroll == 0 ? kChannelUnroll : 1;
    const std::uint32_t outer = add_variable("c", channels / unroll, LoopKind::Serial);
    const std::uint32_t inner = add_variable("cu", unroll, LoopKind::Unroll);
    const ExprId in_block =
        pool().add(pool().mul(pool().variable(outer), unroll), pool().variable(inner));
    Block body = in_register_tile([&](ExprId position, ExprId vector, ExprId element, ExprId lane) {
      set_weight_coordinates(block, in_block, vector, lane);
      const ExprId place =
          pool().add(pool().add(pool().mul(frequency_, input_stride_), pool().mul(block, tiles_)),
                     pool().add(first_tile_, position));
      const std::array<ExprId, 2> factors{
          pool().read_register(inputs_, DType::F32, simplify(place), in_block),
          translate(weights_load_)};
      const ExprId sum = pool().read_register(accumulators_, DType::F32, element, lane);
      return set(accumulators_, element, lane,
                 combine(source_.pool[reduce_], sum, pool().scalar(ScalarOp::Mul, factors)));
    });
    Block turn = ahead(simplify(pool().mul(pool().variable(outer), unroll)), unroll);
    turn.push_back(loop(inner, std::move(body)));
    return Block{loop(outer, std::move(turn))};
  }

  void set_weight_coordinates(ExprId block, ExprId in_block, ExprId vector, ExprId lane) {
    set_coordinate(step_.output_channel, output_channel(vector, lane));
    set_coordinate(step_.input_channel, pool().add(pool().mul(block, step_.block), in_block));
    set_coordinate(step_.kernel_row, frequency_);
    set_coordinate(step_.kernel_column, pool().index(0));
  }

  // What the next frequency (or group) reads of these channels; the turns share it.
  Block prefetches(ExprId block, ExprId channel, std::int64_t channels, ExprId turn,
                   std::int64_t turns) {
    const std::int64_t line = kLineBytes / size_bytes(DType::F32);
    const std::int64_t lines = channels * vectors_ * lanes_ / line;
    const std::int64_t share = divided(lines, turns);
    const std::int64_t distance = extent(step_.input_channel) * vectors_ * lanes_;
    const ExprId zero = pool().index(0);
    set_weight_coordinates(block, channel, zero, zero);
    const ExprId part = pool().floor_mod(turn, divided(lines, share));
    const ExprId first = pool().add(address(step_.weights, source_.pool[weights_load_].operands),
                                    pool().mul(part, share * line));
    Block out;
    for (std::int64_t i = 0; i < share; ++i) {
      const ExprId ahead = pool().add(first, pool().index(distance + i * line));
      out.push_back(Statement{PrefetchStatement{step_.weights, simplify(ahead)}});
    }
    return out;
  }

  // --- 3. outputs: one tile of a vector of channels at a time

  Block transform_outputs() {
    const std::uint32_t row = add_variable("ty", step_.band, LoopKind::Serial);
    const std::uint32_t column = add_variable("tx", tile_columns_, LoopKind::Serial);
    const std::uint32_t vector = add_variable("j", vectors_, LoopKind::Serial);
    const std::uint32_t rows = add_registers(DType::F32, step_.tile * side_, lanes_);
    const std::uint32_t results = add_registers(DType::F32, step_.tile * step_.tile, lanes_);
    const ExprId tile =
        pool().add(pool().mul(pool().variable(row), tile_columns_), pool().variable(column));
    const ExprId place = pool().add(pool().mul(tile, vectors_), pool().variable(vector));
    Block body;
    body.push_back(in_lanes([&](ExprId lane) {
      Block statements;
      for (std::int64_t x = 0; x < side_; ++x) {
        std::vector<ExprId> values;
        for (std::int64_t y = 0; y < side_; ++y) {
          const ExprId element =
              simplify(pool().add(place, pool().index((y * side_ + x) * product_stride_)));
          values.push_back(pool().read_register(products_, DType::F32, element, lane));
        }
        values = transform_output(pool(), target_.has_fma, step_.tile, values);
        for (std::int64_t y = 0; y < step_.tile; ++y) {
          statements.push_back(
              set(rows, at(y, x, side_), lane, values[static_cast<std::size_t>(y)]));
        }
      }
      for (std::int64_t y = 0; y < step_.tile; ++y) {
        std::vector<ExprId> values;
        for (std::int64_t x = 0; x < side_; ++x) {
          values.push_back(pool().read_register(rows, DType::F32, at(y, x, side_), lane));
        }
        values = transform_output(pool(), target_.has_fma, step_.tile, values);
        for (std::int64_t x = 0; x < step_.tile; ++x) {
          statements.push_back(
              set(results, at(y, x, step_.tile), lane, values[static_cast<std::size_t>(x)]));
        }
      }
      return statements;
    }));
    reduced_[reduce_] = results;
    for (std::int64_t y = 0; y < step_.tile; ++y) {
      for (std::int64_t x = 0; x < step_.tile; ++x) {
        const ExprId at_row = simplify(pool().add(
            pool().mul(pool().add(first_row_, pool().variable(row)), step_.tile), pool().index(y)));
        const ExprId at_column =
            simplify(pool().add(pool().mul(pool().variable(column), step_.tile), pool().index(x)));
        element_ = at(y, x, step_.tile);
        Statement stored = in_lanes([&](ExprId lane) {
          lane_ = lane;
          set_coordinate(step_.row, at_row);
          set_coordinate(step_.column, at_column);
          set_coordinate(step_.output_channel, output_channel(pool().variable(vector), lane));
          return Block{store_statement()};
        });
        stored = if_below(at_column, extent(step_.column), std::move(stored));
        body.push_back(if_below(at_row, extent(step_.row), std::move(stored)));
      }
    }
    for (const std::uint32_t variable : {vector, column, row}) {
      Block outer;
      outer.push_back(loop(variable, std::move(body)));
      body = std::move(outer);
    }
    return body;
  }

  // The last tile may reach beyond the result.
  Statement if_below(ExprId index, std::int64_t bound, Statement statement) {
    const std::array<ExprId, 2> operands{index, pool().index(bound)};
    const ExprId condition = simplify(pool().scalar(ScalarOp::Lt, operands));
    const Expr& known = pool()[condition];
    if (known.kind == ExprKind::Constant && known.constant.as_int() != 0) return statement;
    Block body;
    body.push_back(std::move(statement));
    return Statement{IfStatement{condition, std::move(body)}};
  }

  const WinogradStep& step_;
  const std::int64_t lanes_, vectors_;
  const std::int64_t side_, frequencies_;
  const std::int64_t tile_rows_, tile_columns_, tiles_;         // in all; tiles of a band
  const std::int64_t blocks_;                                   // of input channels
  ExprId reduce_, input_load_, weights_load_;                   // of the ranged kernel
  std::uint32_t inputs_ = 0, products_ = 0, accumulators_ = 0;  // arrays
  std::int64_t input_stride_ = 0, product_stride_ = 0;          // elements between frequencies
  std::uint32_t parallel_ = 0;
  ExprId part_, first_row_, group_, frequency_, first_tile_;
};

}  // namespace

ScheduledKernel apply_winograd(const RangedKernel& kernel, const Schedule& schedule,
                               const Target& target) {
  return WinogradApplier(kernel, schedule, target).run();
}

}  // namespace ingot
