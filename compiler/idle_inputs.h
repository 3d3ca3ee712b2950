// Which inputs and states make no difference: a model that ignores one was probably exported wrong.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "compiler/code_generator.h"
#include "compiler/compile.h"
#include "compiler/graph/graph.h"
#include "compiler/program/program.h"

namespace ingot {

// Those that no output and no next state hangs on.
[[nodiscard]] std::vector<IdleInput> find_unused_inputs(const Graph& graph);

// Those, and those of which three other values, each for two sets of values of all the others,
// leave every bit of every output and next state as it is. `program` is the graph, built for the
// host.
[[nodiscard]] Result<std::vector<IdleInput>> find_idle_inputs(const Graph& graph,
                                                              const Program& program,
                                                              std::uint64_t seed,
                                                              KernelRunner& runner);

}  // namespace ingot
