// What every way of applying a schedule shares: expressions of a ranged kernel, written again at
// the coordinates that loops give, and statements around them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/kernel/index_arithmetic.h"
#include "compiler/kernel/kernel.h"
#include "compiler/lowering/bands.h"
#include "compiler/lowering/schedule.h"

namespace ingot {

// The parameter in which arrays of the workers lie: f32, a row for each.
[[nodiscard]] KernelParameter worker_memory(const Target& target, std::int64_t elements);

class KernelScheduler {
 protected:
  KernelScheduler(const RangedKernel& kernel, const Schedule& schedule, const Target& target);
  // One band of a stage of the group; the parallel loop runs over bands.
  KernelScheduler(const BandGroup& group, const BandStage& stage, const Target& target);

  ExprPool& pool() { return out_.pool; }
  std::int64_t extent(std::uint32_t range) const { return source_.ranges[range].extent; }
  ExprId simplify(ExprId expr) { return simplifier_.simplify(expr); }

  std::uint32_t add_variable(std::string name, std::int64_t count, LoopKind kind);
  // Accumulators of a reduce.
  std::uint32_t add_registers(DType dtype, std::int64_t elements, std::int64_t lanes);
  void set_coordinate(std::uint32_t range, ExprId coordinate);
  void forget_translations() {
    translated_.clear();
    translated_locally_.clear();
  }

  static Statement loop(std::uint32_t variable, Block body);
  static void append(Block& to, Block from);
  static Statement set(std::uint32_t array, ExprId element, ExprId lane, ExprId value);

  // At the coordinates as they are now, from the band's origin on; reduces are read from the
  // registers that hold them.
  ExprId translate(ExprId id);
  // f32 of the panel at `first`, in a new array of the worker; from now on it is read from there.
  Block widen_panel(const Schedule::Packing& packing, std::int64_t lanes, ExprId first);
  // The parallel loop of bands, if there are bands: its variable.
  std::optional<std::uint32_t> open_bands();
  ExprId address(std::uint32_t parameter, const std::vector<ExprId>& coordinates);
  Statement store_statement();
  // A turn of a reduce: relaxed products and sums are fused where the target can.
  ExprId combine(const Expr& reduce, ExprId sum, ExprId value);

  const RangedKernel& source_;
  const Schedule& schedule_;
  const Target& target_;
  ScheduledKernel out_;
  std::vector<ExprId> coordinate_;           // per source range
  ExprId element_, lane_;                    // of the registers that hold reduces
  std::map<ExprId, std::uint32_t> reduced_;  // register array that holds a reduce's result
  std::uint32_t part_ = 0;                   // of a tile: its arrays follow one another

 private:
  ExprId translate_new(ExprId id);
  ExprId translate_load(const Expr& expr);
  ExprId translate_variable(std::uint32_t range);
  const LocalArray* local_array(std::uint32_t parameter) const;
  ExprId local_coordinate(const LocalArray& local, std::size_t dimension, ExprId coordinate);
  ExprId turn_of_whole(std::size_t level);
  ExprId zero_outside(ExprId value);

  // Where a widened panel lies (WidenStep).
  struct Panel {
    std::uint32_t parameter = 0, array = 0;
    ExprId first;  // element address in the parameter
  };
  std::optional<Panel> panel_;

  const BandGroup* group_ = nullptr;
  const BandStage* stage_ = nullptr;
  std::vector<ExprId> origins_;  // by level
  bool is_local_ = false;        // coordinates from the origin on; they hold no loads
  std::unordered_map<std::uint32_t, ExprId> translated_, translated_locally_;
  IndexSimplifier simplifier_{out_.pool,
                              [this](std::uint32_t v) { return out_.variables[v].extent; }};
};

// One stage of a group of bands, with its local arrays as parameters.
[[nodiscard]] ScheduledKernel apply_band(const BandGroup& group, const BandStage& stage,
                                         const Target& target);

// Winograd convolution (schedule.h: WinogradStep).
[[nodiscard]] ScheduledKernel apply_winograd(const RangedKernel& kernel, const Schedule& schedule,
                                             const Target& target);

}  // namespace ingot
