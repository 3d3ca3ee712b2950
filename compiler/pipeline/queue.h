// History queues as graphs: a state that holds the entries before the newest one.
//
//   entries, oldest first:  [ state[0] ... state[n-1], newest ]   next state: all but the oldest
#pragma once

#include <optional>
#include <string>

#include "compiler/graph/builder.h"
#include "compiler/pipeline/pipeline.h"

namespace ingot {

// Entries of the history, the newest included: samples * stride when pooling, else
// (samples - 1) * stride + 1, and `delay` more.
[[nodiscard]] std::int64_t queue_length(const QueueStage& queue);

// What sampling gives for entries of one shape. Needs: an axis that fits it.
[[nodiscard]] Shape queue_shape(const QueueStage& queue, const Shape& entry);

// All entries of the history together: no value of a queue has more elements.
[[nodiscard]] Shape queue_history(const QueueStage& queue, const Shape& entry);

struct Queue {
  std::optional<ValueId> state;  // [length - 1, entry...]; none if nothing is remembered
  ValueId samples;
};

// Samples the history that ends with `newest`. Needs: a value if the delay is 0; with a delay the
// samples do not depend on it, and the frame's own results may become the newest entry later.
[[nodiscard]] Queue sample_queue(GraphBuilder& builder, const QueueStage& queue,
                                 const std::string& state_name, DType dtype, const Shape& entry,
                                 std::optional<ValueId> newest);
// Declares what the state is in the next frame.
void append_to_queue(GraphBuilder& builder, const QueueStage& queue, const Queue& sampled,
                     ValueId newest);

}  // namespace ingot
