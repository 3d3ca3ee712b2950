// The graph: what an ONNX model, a camera warp or a queue becomes. Nothing here knows ONNX.
//
// A graph is a list of nodes in order of definition; every node gives one value with a static
// shape and an element type, and reads only earlier nodes. There are few operations: everything
// else is a composition made by the builder (builder.h). Grammar and examples: docs/ir/graph.md.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "compiler/graph/affine.h"
#include "compiler/tensor/scalar_op.h"
#include "compiler/tensor/tensor.h"

namespace ingot {

struct ValueId {
  std::uint32_t index = 0xFFFFFFFF;
  [[nodiscard]] bool valid() const { return index != 0xFFFFFFFF; }
  friend auto operator<=>(const ValueId&, const ValueId&) = default;
};

enum class ReduceOp : std::uint8_t { Sum, Product, Max, Min };
[[nodiscard]] std::string_view name(ReduceOp op);
[[nodiscard]] ScalarOp scalar_op(ReduceOp op);  // that combines two elements
// The value that changes nothing: 0, 1, lowest, highest (-inf, inf for floats).
[[nodiscard]] Scalar identity(ReduceOp op, DType dtype);

// One operation per struct; a node holds one of them.
struct InputOp {
  std::string name;  // as the caller names it; unique among inputs
};
struct ConstantOp {
  Tensor tensor;
};
// out[i...] = i[axis], an integer type.
struct IotaOp {
  int axis = 0;
};
// Element by element; all inputs have the node's shape (the builder broadcasts by views).
struct MapOp {
  ScalarOp op = ScalarOp::Add;
};
// To the node's dtype. Float to integer truncates, saturates, and takes NaN to 0; integer to
// integer wraps; anything to bool is `!= 0`.
struct CastOp {};
// out[a...] = in[index(a)...], one index per input dimension over the output axes. Where an index
// leaves the input (or its division is not exact) the result is `fill`; without a fill no index
// may leave. Slice, transpose, expand, pad, flip and sliding windows are all this.
struct ViewOp {
  std::vector<AffineIndex> index;
  std::optional<Scalar> fill;
};
// The same elements in row-major order under another shape.
struct ReshapeOp {};
// Joins inputs of equal shape but for `axis`.
struct ConcatOp {
  int axis = 0;
};
// Drops `axes` (sorted, unique) of the input. An empty range gives the identity.
struct ReduceNodeOp {
  ReduceOp op = ReduceOp::Sum;
  std::vector<int> axes;
};
// out[output(a)] = combine over reduce axes of the product of all operands at their indices:
// matrix products and convolutions of every kind. An operand read outside its shape counts as 0.
// Axes come as given: output axes first, then reduce axes. `output` has one index per output
// dimension over the output axes and must hit every output element exactly once (for example
// g*Og+o of a grouped convolution). Operands are converted to the node's dtype before the product.
struct ContractOp {
  std::vector<std::int64_t> extents;  // of all axes
  int output_axes = 0;                // axes [0, output_axes) are output axes
  std::vector<AffineIndex> output;
  std::vector<std::vector<AffineIndex>> operands;  // per input, per dimension
};
// out[..., i..., ...] = data[..., index[i...], ...] along `axis`; inputs are data and an i32 or i64
// index. A negative index counts from the end; one still outside is clamped and reported by the
// frame as INDEX_CLAMPED. With `in_range` the producer has proved that every index lies between 0
// and the last, so that it is used as it is.
struct GatherOp {
  int axis = 0;
  bool in_range = false;
};

using GraphOp = std::variant<InputOp, ConstantOp, IotaOp, MapOp, CastOp, ViewOp, ReshapeOp,
                             ConcatOp, ReduceNodeOp, ContractOp, GatherOp>;

struct Node {
  GraphOp op;
  DType dtype = DType::F32;
  Shape shape;
  std::vector<ValueId> inputs;
  // Float policy of this node (docs/ir/graph.md): strict means every operation is one IEEE
  // operation in the order written; otherwise sums may be regrouped and a*b+c fused.
  bool strict = false;
  std::string source;  // where it came from, for diagnostics; never affects code
};

struct GraphOutput {
  std::string name;
  ValueId value;
};

// After an accepted frame the value `next` becomes the input `state`. Of a ring, `next` is one
// entry [1, ...] of the state [entries, ...] and replaces the one at `entry` alone; all that the
// frame reads of the state is older. What a rejected frame wrote there must not matter to the next
// one.
struct GraphState {
  ValueId state;  // an InputOp node
  ValueId next;
  std::optional<Tensor> initial = std::nullopt;  // zeros if absent
  // A ring: an input of one i64, taken modulo the entries.
  std::optional<ValueId> entry = std::nullopt;
};

// A matrix that the loader checks before each frame (docs/artifact_format.md, TRANSFORMS).
struct GraphTransform {
  ValueId input;                       // f32 input that holds the matrix, row-major 3x3
  std::int64_t offset_bytes = 0;       // of the matrix in the input
  std::int64_t width = 0, height = 0;  // output rectangle
  bool cabin = false;
  ValueId frame;  // the camera input it warps
};

// Which inputs are camera frames, bound by pointer.
struct GraphCamera {
  ValueId input;   // u8 [bytes of the frame]
  int camera = 0;  // index into the pipeline's cameras
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<GraphOutput> outputs;
  std::vector<GraphState> states;
  std::vector<GraphTransform> transforms;
  std::vector<GraphCamera> cameras;

  [[nodiscard]] const Node& operator[](ValueId id) const { return nodes[id.index]; }
  [[nodiscard]] Node& operator[](ValueId id) { return nodes[id.index]; }
};

// What a well-formed graph is; the failure (Internal) names the node and the rule.
[[nodiscard]] Result<void> validate_graph(const Graph& graph);

// Whether some float value is compared for equality: last bits then decide more than last bits.
[[nodiscard]] bool tests_equality_of_floats(const Graph& graph);

// Text form (docs/ir/graph.md). print -> parse -> print is a fixed point. Constants above 64
// elements print as a digest and parse only through `constants`. Parsing checks the syntax and that
// values are defined before use; whether the graph is well-formed is validate_graph's business.
using DigestedConstants = std::map<std::string, Tensor, std::less<>>;
[[nodiscard]] std::string print_graph(const Graph& graph);
[[nodiscard]] Result<Graph> parse_graph(std::string_view text,
                                        const DigestedConstants& constants = {});
// One node as it stands after "%3 = ", without its source.
[[nodiscard]] std::string to_text(const Node& node);
// 16 hexadecimal digits that depend on dtype, shape and bytes. Names a constant in texts; it does
// not protect against anybody.
[[nodiscard]] std::string digest(const Tensor& tensor);

}  // namespace ingot
