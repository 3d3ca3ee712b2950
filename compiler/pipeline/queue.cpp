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

ValueId as_entry(GraphBuilder& builder, ValueId value) {
  return builder.reshape(value, prepend(1, builder.shape(value)));
}

class Sampler {
 public:
  Sampler(GraphBuilder& builder, const QueueStage& queue, const Queue& states,
          std::optional<ValueId> newest)
      : builder_(builder), queue_(queue), states_(states), newest_(newest) {}

  // Without a delay the last sample takes the newest entry from where it is made.
  ValueId run() {
    const std::int64_t whole = queue_.samples - (newest_ ? 1 : 0);
    std::vector<ValueId> parts;
    if (whole > 0) {
      parts.push_back(arranged(groups(0, whole, queue_.pool_max ? queue_.stride : 1)));
    }
    if (newest_) parts.push_back(arranged(last_sample()));
    return builder_.concat(parts, queue_.axis);
  }

 private:
  // [samples, entry...] with the samples' axis where the reader wants it, joined with the one it
  // precedes.
  ValueId arranged(ValueId samples) {
    const Shape& shape = builder_.shape(samples);
    QueueStage part = queue_;
    part.samples = shape[0];
    const Shape to = queue_shape(part, {shape.begin() + 1, shape.end()});
    if (shape[0] == 1) return builder_.reshape(samples, to);
    std::vector<int> order(shape.size() - 1);
    std::iota(order.begin(), order.end(), 1);
    order.insert(order.begin() + queue_.axis, 0);
    return builder_.reshape(builder_.transpose(samples, order), to);
  }

  ValueId last_sample() {
    const std::int64_t before = queue_.pool_max ? queue_.stride - 1 : 0;
    if (before == 0) return *newest_;
    return builder_.max(groups((queue_.samples - 1) * queue_.stride, 1, before), *newest_);
  }

  // Every `stride`-th entry of the history from `first`, or the maximum of as many as `size` from
  // there on.
  ValueId groups(std::int64_t first, std::int64_t count, std::int64_t size) {
    const ValueId entries = builder_.gather(*states_.ring, places(first, count, size), 0);
    if (size == 1) {
      return builder_.reshape(entries, prepend(count, entry_shape()));
    }
    return builder_.reduce(ReduceOp::Max, entries, {1}, false);
  }

  Shape entry_shape() const {
    const Shape& ring = builder_.shape(*states_.ring);
    return {ring.begin() + 1, ring.end()};
  }

  // [count, size]: where in the ring they are.
  ValueId places(std::int64_t first, std::int64_t count, std::int64_t size) {
    const Shape shape = {count, size};
    const auto number = [&](std::int64_t value) {
      return builder_.splat(Scalar::of_int(DType::I64, value), shape);
    };
    const ValueId group = builder_.mul(builder_.iota(DType::I64, shape, 0), number(queue_.stride));
    const ValueId offset = builder_.add(group, builder_.iota(DType::I64, shape, 1));
    const ValueId place = builder_.expand(*states_.place, shape);
    const ValueId moved = builder_.add(builder_.add(place, number(first + 1)), offset);
    return builder_.map(ScalarOp::FloorMod, moved, number(builder_.shape(*states_.ring)[0]));
  }

  GraphBuilder& builder_;
  const QueueStage& queue_;
  const Queue& states_;
  std::optional<ValueId> newest_;  // [1, entry...]
};

}  // namespace

std::string queue_state_name(const std::string& id) { return id + ".queue"; }
std::string queue_entry_name(const std::string& id) { return id + ".place"; }

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

Queue sample_queue(GraphBuilder& builder, const QueueStage& queue, const std::string& id,
                   DType dtype, const Shape& entry, std::optional<ValueId> newest) {
  INGOT_CHECK(newest.has_value() == (queue.delay == 0), "only a delayed queue has no newest entry");
  Queue sampled;
  const std::int64_t length = queue_length(queue);
  if (length > 1) {
    sampled.ring = builder.input(queue_state_name(id), dtype, prepend(length, entry));
    sampled.place = builder.input(queue_entry_name(id), DType::I64, {1});
  }
  std::optional<ValueId> newest_entry;
  if (newest) newest_entry = as_entry(builder, *newest);
  sampled.samples = Sampler(builder, queue, sampled, newest_entry).run();
  return sampled;
}

void append_to_queue(GraphBuilder& builder, const QueueStage& queue, const Queue& sampled,
                     ValueId newest) {
  if (!sampled.ring) return;
  const Shape shape = builder.shape(*sampled.ring);
  const DType dtype = builder.dtype(newest);
  std::optional<Tensor> initial;
  if (queue.initial != 0) {
    const Scalar value = is_float(dtype)
                             ? Scalar::of_float(dtype, queue.initial)
                             : Scalar::of_int(dtype, static_cast<std::int64_t>(queue.initial));
    initial = Tensor::splat(shape, value);
  }
  builder.state(*sampled.ring, as_entry(builder, newest), std::move(initial), sampled.place);

  const auto number = [&](std::int64_t value) {
    return builder.splat(Scalar::of_int(DType::I64, value), {1});
  };
  const ValueId after = builder.add(*sampled.place, number(1));
  builder.state(*sampled.place, builder.map(ScalarOp::FloorMod, after, number(shape[0])));
}

}  // namespace ingot
