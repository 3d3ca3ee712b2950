// Runs call lists on the build host: constants and references.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "compiler/code_generator.h"
#include "compiler/program/program.h"

namespace ingot {

// Bytes of the program's outputs and next states after one frame, given those of its inputs and
// states, each in the order of Program::io. The program is built once and may run many frames.
struct FrameResult {
  std::vector<std::vector<std::byte>> outputs;
  std::vector<std::vector<std::byte>> next_states;
};
[[nodiscard]] Result<FrameResult> run_program(const Program& program,
                                              std::span<const std::vector<std::byte>> inputs,
                                              std::span<const std::vector<std::byte>> states,
                                              KernelRunner& runner);

// Plans and builds the graph without fusion or layouts for the baseline of the build host.
[[nodiscard]] Result<Program> build_strict_program(const Graph& graph);

// One evaluation of a graph without states: its outputs.
[[nodiscard]] Result<std::vector<std::vector<std::byte>>> evaluate_graph(
    const Graph& graph, std::span<const std::vector<std::byte>> inputs, KernelRunner& runner);

}  // namespace ingot
