// Reductions, contractions, gathers and what is composed of them.
#include <algorithm>

#include "base/check.h"
#include "compiler/graph/builder.h"
#include "compiler/graph/fold_node.h"

namespace ingot {
namespace {

std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

// Collects the axes of a contraction in order.
class Axes {
 public:
  int add(std::int64_t extent) {
    extents_.push_back(extent);
    return static_cast<int>(extents_.size()) - 1;
  }
  [[nodiscard]] std::vector<std::int64_t> extents() const { return extents_; }
  [[nodiscard]] int count() const { return static_cast<int>(extents_.size()); }

 private:
  std::vector<std::int64_t> extents_;
};

// A known index counted from the start; nullopt if one of them is out of range.
std::optional<std::vector<std::int64_t>> from_start(std::vector<std::int64_t> index,
                                                    std::int64_t extent) {
  for (std::int64_t& i : index) {
    if (i < 0) i += extent;
    if (i < 0 || i >= extent) return std::nullopt;
  }
  return index;
}

// Start and step of an index with equal steps, for a gather that is a view.
struct Steps {
  std::int64_t start = 0;
  std::int64_t step = 0;
};
std::optional<Steps> equal_steps(const std::vector<std::int64_t>& index) {
  if (index.empty()) return std::nullopt;
  const Steps steps{index[0], index.size() > 1 ? index[1] - index[0] : 0};
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (index[i] != steps.start + static_cast<std::int64_t>(i) * steps.step) return std::nullopt;
  }
  return steps;
}

}  // namespace

ValueId GraphBuilder::reduce(ReduceOp op, ValueId value, std::vector<int> axes,
                             bool keep_dimensions) {
  const Shape from = shape(value);
  std::ranges::sort(axes);
  INGOT_CHECK(std::ranges::adjacent_find(axes) == axes.end(), "a reduction names an axis twice");
  INGOT_CHECK(dtype(value) != DType::Bool || op == ReduceOp::Max || op == ReduceOp::Min,
              "a sum or product of bool");
  if (axes.empty()) return value;
  INGOT_CHECK(axes.front() >= 0 && at(axes.back()) < from.size(), "a reduction without its axis");
  Shape kept, kept_rank;
  for (std::size_t d = 0; d < from.size(); ++d) {
    const bool reduced = std::ranges::binary_search(axes, static_cast<int>(d));
    if (!reduced) kept.push_back(from[d]);
    kept_rank.push_back(reduced ? 1 : from[d]);
  }
  const ValueId result =
      fold_or_append(node(ReduceNodeOp{op, std::move(axes)}, dtype(value), kept, {value}));
  return keep_dimensions ? reshape(result, std::move(kept_rank)) : result;
}

ValueId GraphBuilder::contract(DType dtype, std::span<const ValueId> operands, ContractOp op) {
  INGOT_CHECK(dtype != DType::Bool, "a contraction in bool");
  INGOT_CHECK(op.output_axes >= 0 && at(op.output_axes) <= op.extents.size(),
              "a contraction with more output axes than axes");
  INGOT_CHECK(operands.size() == op.operands.size() && !operands.empty(),
              "a contraction needs the indices of each operand");
  for (std::size_t i = 0; i < operands.size(); ++i) {
    INGOT_CHECK(op.operands[i].size() == shape(operands[i]).size(),
                "a contraction needs an index per dimension");
    for (const AffineIndex& index : op.operands[i]) {
      for (const auto& term : index.terms) {
        INGOT_CHECK(at(term.axis) < op.extents.size(), "a contraction over an axis it lacks");
      }
    }
  }
  Shape result;
  for (const AffineIndex& index : op.output) {
    std::int64_t extent = index.offset + 1;
    for (const auto& term : index.terms) {
      INGOT_CHECK(term.axis < op.output_axes, "an output index over a reduce axis");
      const std::int64_t axis_extent = op.extents[at(term.axis)];
      if (axis_extent == 0) {
        extent = 0;
        break;
      }
      extent += term.coefficient * (axis_extent - 1);
    }
    result.push_back(extent);
  }
  return append(node(std::move(op), dtype, std::move(result),
                     std::vector<ValueId>(operands.begin(), operands.end())));
}

ValueId GraphBuilder::matmul(ValueId a, ValueId b) {
  const Shape a_shape = shape(a);
  const Shape b_shape = shape(b);
  INGOT_CHECK(!a_shape.empty() && !b_shape.empty(), "a matrix product of a scalar");
  INGOT_CHECK(dtype(a) == dtype(b), "a matrix product of different element types");
  const bool has_m = a_shape.size() > 1;
  const bool has_n = b_shape.size() > 1;
  const std::size_t a_batch = has_m ? a_shape.size() - 2 : 0;
  const std::size_t b_batch = has_n ? b_shape.size() - 2 : 0;
  const std::int64_t depth = a_shape.back();
  INGOT_CHECK(depth == (has_n ? b_shape[b_batch] : b_shape[0]),
              "a matrix product of different depths");
  const auto batch = broadcast_shapes(
      Shape(a_shape.begin(), a_shape.begin() + static_cast<std::ptrdiff_t>(a_batch)),
      Shape(b_shape.begin(), b_shape.begin() + static_cast<std::ptrdiff_t>(b_batch)));
  INGOT_CHECK(batch.has_value(), "a matrix product of batches that do not broadcast");

  Axes axes;
  ContractOp op;
  op.operands.resize(2);
  for (const std::int64_t extent : *batch)
    op.output.push_back(AffineIndex::of_axis(axes.add(extent)));
  // An operand's batch dimensions are the last ones of the common batch.
  const auto read_batch = [&](const Shape& from, std::size_t rank,
                              std::vector<AffineIndex>& reads) {
    for (std::size_t d = 0; d < rank; ++d) {
      const auto axis = static_cast<int>(batch->size() - rank + d);
      reads.push_back(from[d] == 1 ? AffineIndex::constant(0) : AffineIndex::of_axis(axis));
    }
  };
  read_batch(a_shape, a_batch, op.operands[0]);
  read_batch(b_shape, b_batch, op.operands[1]);
  if (has_m) {
    op.output.push_back(AffineIndex::of_axis(axes.add(a_shape[a_batch])));
    op.operands[0].push_back(op.output.back());
  }
  if (has_n) op.output.push_back(AffineIndex::of_axis(axes.add(b_shape.back())));
  op.output_axes = axes.count();
  const AffineIndex k = AffineIndex::of_axis(axes.add(depth));
  op.operands[0].push_back(k);
  op.operands[1].push_back(k);
  if (has_n) op.operands[1].push_back(op.output.back());
  op.extents = axes.extents();
  const ValueId operands[] = {a, b};
  return contract(dtype(a), operands, std::move(op));
}

namespace {

// First and last tap of dimension d that reads the image for some output; all taps if none does.
std::pair<std::int64_t, std::int64_t> useful_taps(const GraphBuilder::Convolution& c, std::size_t d,
                                                  std::int64_t image, std::int64_t taps) {
  const std::int64_t last_start = (c.outputs[d] - 1) * c.strides[d] - c.pads_before[d];
  const auto reads = [&](std::int64_t k) {
    const std::int64_t reach = k * c.dilations[d];
    if (last_start + reach < 0 || reach - c.pads_before[d] >= image) return false;
    if (c.strides[d] <= image) return true;  // no step jumps over the image
    for (std::int64_t y = 0; y < c.outputs[d]; ++y) {
      const std::int64_t place = y * c.strides[d] - c.pads_before[d] + reach;
      if (0 <= place && place < image) return true;
    }
    return false;
  };
  std::int64_t first = 0, last = taps - 1;
  while (first <= last && !reads(first)) ++first;
  while (first <= last && !reads(last)) --last;
  return first <= last ? std::pair{first, last} : std::pair{std::int64_t{0}, taps - 1};
}

}  // namespace

ValueId GraphBuilder::convolution(ValueId x, ValueId w, const Convolution& given) {
  const Shape x_shape = shape(x);
  Shape w_shape = shape(w);
  Convolution convolution = given;
  const std::size_t spatial = convolution.outputs.size();
  INGOT_CHECK(x_shape.size() == spatial + 2 && w_shape.size() == spatial + 2 &&
                  convolution.strides.size() == spatial &&
                  convolution.dilations.size() == spatial &&
                  convolution.pads_before.size() == spatial,
              "a convolution of different ranks");
  INGOT_CHECK(dtype(x) == dtype(w), "a convolution of different element types");
  // Taps that only ever read padding would cost time and a wide halo (dilation 36 on 8x8 pixels).
  std::vector<std::int64_t> starts(w_shape.size(), 0);
  for (std::size_t d = 0; d < spatial; ++d) {
    const auto [first, last] = useful_taps(convolution, d, x_shape[2 + d], w_shape[2 + d]);
    starts[2 + d] = first;
    w_shape[2 + d] = last - first + 1;
    convolution.pads_before[d] -= first * convolution.dilations[d];
  }
  if (w_shape != shape(w))
    w = slice(w, starts, std::vector<std::int64_t>(w_shape.size(), 1), w_shape);
  const std::int64_t groups = convolution.groups;
  INGOT_CHECK(groups >= 1 && w_shape[0] % groups == 0 && x_shape[1] == w_shape[1] * groups,
              "a convolution whose groups do not fit its channels");
  const std::int64_t group_inputs = w_shape[1];
  const std::int64_t group_outputs = w_shape[0] / groups;
  const bool depthwise = 1 < groups && group_inputs == 1 && group_outputs == 1;

  // Output axes n, (g,) o, spatial; depthwise the channel takes the place of o.
  Axes axes;
  ContractOp op;
  op.operands.resize(2);
  std::vector<AffineIndex>& image = op.operands[0];
  std::vector<AffineIndex>& weights = op.operands[1];
  const AffineIndex n = AffineIndex::of_axis(axes.add(x_shape[0]));
  AffineIndex input_channel, output_channel;
  if (depthwise) {
    output_channel = AffineIndex::of_axis(axes.add(groups));
    input_channel = output_channel;
    weights = {output_channel};
  } else if (1 < groups) {
    // Weights as [g, o, c, kernel]: either axis may then run over lanes.
    Shape split = {groups, group_outputs};
    split.insert(split.end(), w_shape.begin() + 1, w_shape.end());
    w = reshape(w, std::move(split));
    const int g = axes.add(groups);
    const int o = axes.add(group_outputs);
    output_channel = AffineIndex::of_axis(g, group_outputs).add(o, 1);
    input_channel = AffineIndex::of_axis(g, group_inputs);
    weights = {AffineIndex::of_axis(g), AffineIndex::of_axis(o)};
  } else {
    output_channel = AffineIndex::of_axis(axes.add(group_outputs));
    weights = {output_channel};
  }
  op.output = {n, output_channel};
  std::vector<int> places;
  for (const std::int64_t extent : convolution.outputs) {
    places.push_back(axes.add(extent));
    op.output.push_back(AffineIndex::of_axis(places.back()));
  }
  op.output_axes = axes.count();

  // Reduce axes c, kernel.
  if (depthwise) {
    weights.push_back(AffineIndex::constant(0));
  } else {
    const int c = axes.add(group_inputs);
    input_channel.add(c, 1);
    weights.push_back(AffineIndex::of_axis(c));
  }
  image = {n, input_channel};
  for (std::size_t d = 0; d < spatial; ++d) {
    const int k = axes.add(w_shape[2 + d]);
    image.push_back(
        AffineIndex::of_axis(places[d], convolution.strides[d], -convolution.pads_before[d])
            .add(k, convolution.dilations[d]));
    weights.push_back(AffineIndex::of_axis(k));
  }
  op.extents = axes.extents();
  const ValueId operands[] = {x, w};
  return contract(dtype(x), operands, std::move(op));
}

ValueId GraphBuilder::gather(ValueId data, ValueId index, int axis, bool in_range) {
  const Shape from = shape(data);
  const Shape chosen = shape(index);
  INGOT_CHECK(axis >= 0 && at(axis) < from.size(), "a gather without axis");
  INGOT_CHECK(dtype(index) == DType::I32 || dtype(index) == DType::I64,
              "a gather whose index is neither i32 nor i64");
  Shape to(from.begin(), from.begin() + axis);
  to.insert(to.end(), chosen.begin(), chosen.end());
  to.insert(to.end(), from.begin() + axis + 1, from.end());

  const auto values = known_ints(index);
  const auto places = values ? from_start(*values, from[at(axis)]) : std::nullopt;
  if (places) {
    const bool small_data = is_known_[data.index] && element_count(from) <= kFoldLimit;
    const auto steps = equal_steps(*places);
    if (steps && !small_data && (chosen.size() <= 1 || places->size() == 1)) {
      const auto shift = static_cast<int>(chosen.size()) - 1;
      std::vector<AffineIndex> reads;
      for (int d = 0; d < static_cast<int>(from.size()); ++d) {
        if (d == axis) {
          reads.push_back(AffineIndex::of_axis(axis, steps->step, steps->start));
        } else {
          reads.push_back(AffineIndex::of_axis(d < axis ? d : d + shift));
        }
      }
      return view(data, std::move(to), std::move(reads));
    }
    in_range = true;
    if (*places != *values) index = constant(Tensor::of_ints(dtype(index), chosen, *places));
  }
  return fold_or_append(node(GatherOp{axis, in_range}, dtype(data), std::move(to), {data, index}));
}

// --- compositions

ValueId GraphBuilder::softmax(ValueId x, int axis) {
  const ValueId highest = reduce(ReduceOp::Max, x, {axis}, true);
  const ValueId powers = map(ScalarOp::Exp, sub(x, highest));
  return div(powers, reduce(ReduceOp::Sum, powers, {axis}, true));
}

}  // namespace ingot
