// History queues as graphs: a ring of entries and the place of the newest one, both states.
//
//   entry k of the history, oldest first:  ring[(place + 1 + k) mod length], the newest at `place`
//
// A frame reads the older entries of the ring, takes the newest from where it is made, and writes
// it over the oldest one: nothing else moves. A rejected frame leaves `place`, so that the entry it
// wrote is written again before anybody reads it.
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

// Names of the two states: the ring [length, entry...] and the place, one i64.
[[nodiscard]] std::string queue_state_name(const std::string& id);
[[nodiscard]] std::string queue_entry_name(const std::string& id);

struct Queue {
  std::optional<ValueId> ring, place;  // none if nothing is remembered
  ValueId samples;
};

// Samples the history that ends with `newest`. Needs: a value if the delay is 0; with a delay the
// samples do not depend on it, and the frame's own results may become the newest entry later.
[[nodiscard]] Queue sample_queue(GraphBuilder& builder, const QueueStage& queue,
                                 const std::string& id, DType dtype, const Shape& entry,
                                 std::optional<ValueId> newest);
// Declares what the states are in the next frame.
void append_to_queue(GraphBuilder& builder, const QueueStage& queue, const Queue& sampled,
                     ValueId newest);

}  // namespace ingot
