// Reference vectors, made on the build host (docs/decisions/0005-references.md).
//
// Shares as little as possible with the optimized code: the graph in double precision, planned
// without fusion and without layouts, compiled strictly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "compiler/code_generator.h"
#include "compiler/compile.h"
#include "compiler/graph/graph.h"
#include "compiler/program/program.h"

namespace ingot {

// What an input holds in the own reference: seeded values, or a mild perspective where the loader
// checks a matrix.
[[nodiscard]] std::vector<std::byte> reference_input(const Graph& graph, ValueId input,
                                                     std::uint64_t seed);
[[nodiscard]] std::vector<std::byte> initial_state(const Graph& graph, const GraphState& state);

class ReferenceMaker {
 public:
  // `share`: of the largest expected magnitude, within which floats must agree. The graph and the
  // runner must outlive the result.
  [[nodiscard]] static Result<ReferenceMaker> create(const Graph& graph, double share,
                                                     KernelRunner& runner);

  // Seeded inputs and the outputs in double precision.
  [[nodiscard]] Result<ReferenceSequence> make_own(const CompileOptions& options) const;

  // What another runtime did not say (outputs of earlier steps, of which the next inputs may be
  // made, and outputs without a file) is computed in double precision.
  [[nodiscard]] Result<ReferenceSequence> complete(const OutsideReference& outside) const;

  // The graph in double precision, for the build host.
  [[nodiscard]] const Program& program() const { return wide_; }

 private:
  ReferenceMaker(const Graph& graph, double share, KernelRunner& runner, Program wide)
      : graph_(&graph), share_(share), runner_(&runner), wide_(std::move(wide)) {}
  [[nodiscard]] Result<void> run_outside(const OutsideReference& outside,
                                         ReferenceSequence& sequence) const;

  const Graph* graph_;
  double share_;
  KernelRunner* runner_;
  Program wide_;
  std::optional<Program> plain_;  // single precision, where rounding may choose another branch
};

}  // namespace ingot
