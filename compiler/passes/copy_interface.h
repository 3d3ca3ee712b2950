// What a graph shows outside of its nodes, for passes that make the nodes anew.
#pragma once

#include "compiler/graph/graph.h"

namespace ingot {

// Outputs, states, transforms and cameras of `from`, in order, at the end of those of `to`.
// `moved`: the value of `to` that takes the place of one of `from`.
template <typename Moved>
void copy_interface(const Graph& from, Graph& to, const Moved& moved) {
  for (const GraphOutput& output : from.outputs) {
    to.outputs.push_back({output.name, moved(output.value)});
  }
  for (const GraphState& state : from.states) {
    GraphState& made = to.states.emplace_back(state);
    made.state = moved(state.state);
    made.next = moved(state.next);
    if (state.entry) made.entry = moved(*state.entry);
  }
  for (GraphTransform transform : from.transforms) {
    transform.input = moved(transform.input);
    transform.frame = moved(transform.frame);
    to.transforms.push_back(transform);
  }
  for (GraphCamera camera : from.cameras) {
    camera.input = moved(camera.input);
    to.cameras.push_back(camera);
  }
}

}  // namespace ingot
