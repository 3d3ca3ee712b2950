// A slow, obvious evaluator of graphs: what a graph means, for tests to compare with.
//
// Floats are computed in double and rounded to the node's type after each node; integers in 64
// bits and wrapped. Transcendental functions are those of the C++ library, so that their last bits
// may differ from compiled code. It shares no arithmetic with the compiler's own folding.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"

namespace ingot {

struct GraphRun {
  std::vector<Tensor> values;  // indexed by ValueId::index
  bool index_clamped = false;  // a gather met an index out of range

  [[nodiscard]] const Tensor& operator[](ValueId id) const { return values[id.index]; }
};

using NamedTensors = std::map<std::string, Tensor>;

// Every input must be in `inputs` with its type, or else be a state with an initial value (zeros if
// it declares none). Anything else fails the process: tests give what they declared.
[[nodiscard]] GraphRun interpret_graph(const Graph& graph, const NamedTensors& inputs);

// The states of the next frame, by name.
[[nodiscard]] NamedTensors next_states(const Graph& graph, const GraphRun& run);

// One frame: the declared outputs, by name.
[[nodiscard]] NamedTensors interpret_outputs(const Graph& graph, const NamedTensors& inputs);

// For expectations; floats as they are, integers and bool as numbers.
[[nodiscard]] std::vector<double> doubles(const Tensor& tensor);
[[nodiscard]] std::vector<std::int64_t> ints(const Tensor& tensor);

}  // namespace ingot
