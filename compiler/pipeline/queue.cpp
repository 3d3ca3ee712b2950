#include "compiler/pipeline/queue.h"

#include <numeric>

#include "base/check.h"

namespace ingot {
namespace {

Shape prepend(std::int64_t extent, const Shape& shape) {
  Shape longer = {extent};
  longer.insert(longer.end(), shape.begin(), shape.end());
  return longer;
}

// Entries first, first + step, ... of a history [entries, entry...].
ValueId take_entries(GraphBuilder& builder, ValueId history, std::int64_t first, std::int64_t step,
                     std::int64_t count) {
  Shape shape = builder.shape(history);
  std::vector<std::int64_t> starts(shape.size(), 0);
  std::vector<std::int64_t> steps(shape.size(), 1);
  shape[0] = count;
  starts[0] = first;
  steps[0] = step;
  return builder.slice(history, starts, steps, shape);
}

ValueId as_entry(GraphBuilder& builder, ValueId value) {
  return builder.reshape(value, prepend(1, builder.shape(value)));
}

ValueId join(GraphBuilder& builder, ValueId older, ValueId newer) {
  const std::vector<ValueId> parts = {older, newer};
  return builder.concat(parts, 0);
}

// [samples, entry...]
ValueId pick(GraphBuilder& builder, const QueueStage& queue, std::optional<ValueId> state,
             std::optional<ValueId> newest) {
  if (queue.pool_max) {
    ValueId history = state ? *state : *newest;
    if (state && newest) history = join(builder, *state, *newest);
    const ValueId groups = take_entries(builder, history, 0, 1, queue.samples * queue.stride);
    Shape shape = builder.shape(groups);
    shape[0] = queue.stride;
    return builder.reduce(ReduceOp::Max, builder.reshape(groups, prepend(queue.samples, shape)),
                          {1}, false);
  }
  // Without a delay the last sample is the newest entry itself.
  const std::int64_t from_state = newest ? queue.samples - 1 : queue.samples;
  if (from_state == 0) return *newest;
  const ValueId older = take_entries(builder, *state, 0, queue.stride, from_state);
  return newest ? join(builder, older, *newest) : older;
}

}  // namespace

std::int64_t queue_length(const QueueStage& queue) {
  const std::int64_t sampled =
      queue.pool_max ? queue.samples * queue.stride : (queue.samples - 1) * queue.stride + 1;
  return sampled + queue.delay;
}

Shape queue_shape(const QueueStage& queue, const Shape& entry) {
  Shape shape = entry;
  if (queue.stack) {
    shape.insert(shape.begin() + queue.axis, queue.samples);
  } else {
    shape[static_cast<std::size_t>(queue.axis)] *= queue.samples;
  }
  return shape;
}

Shape queue_history(const QueueStage& queue, const Shape& entry) {
  return prepend(queue_length(queue), entry);
}

Queue sample_queue(GraphBuilder& builder, const QueueStage& queue, const std::string& state_name,
                   DType dtype, const Shape& entry, std::optional<ValueId> newest) {
  INGOT_CHECK(newest.has_value() == (queue.delay == 0), "only a delayed queue has no newest entry");
  Queue sampled;
  const std::int64_t remembered = queue_length(queue) - 1;
  if (remembered > 0) sampled.state = builder.input(state_name, dtype, prepend(remembered, entry));
  std::optional<ValueId> newest_entry;
  if (newest) newest_entry = as_entry(builder, *newest);
  const ValueId picked = pick(builder, queue, sampled.state, newest_entry);

  // The samples' axis goes where the reader wants it, and is joined with the one it precedes.
  std::vector<int> order(entry.size());
  std::iota(order.begin(), order.end(), 1);
  order.insert(order.begin() + queue.axis, 0);
  sampled.samples = builder.reshape(builder.transpose(picked, order), queue_shape(queue, entry));
  return sampled;
}

void append_to_queue(GraphBuilder& builder, const QueueStage& queue, const Queue& sampled,
                     ValueId newest) {
  if (!sampled.state) return;
  const Shape shape = builder.shape(*sampled.state);
  const DType dtype = builder.dtype(newest);
  ValueId next = as_entry(builder, newest);
  if (shape[0] > 1) {
    next = join(builder, take_entries(builder, *sampled.state, 1, 1, shape[0] - 1), next);
  }
  std::optional<Tensor> initial;
  if (queue.initial != 0) {
    const Scalar value = is_float(dtype)
                             ? Scalar::of_float(dtype, queue.initial)
                             : Scalar::of_int(dtype, static_cast<std::int64_t>(queue.initial));
    initial = Tensor::splat(shape, value);
  }
  builder.state(*sampled.state, next, std::move(initial));
}

}  // namespace ingot
