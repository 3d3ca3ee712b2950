// Matrix products.
#include <fmt/format.h>

#include "onnx_frontend/importers.h"
#include "onnx_frontend/legacy_broadcast.h"
#include "onnx_frontend/wide_contraction.h"

namespace ingot {
namespace {

Result<void> check_product(const NodeImport& node, ValueId a, ValueId b) {
  const Shape& x = node.shape(a);
  const Shape& y = node.shape(b);
  if (x.empty() || y.empty()) return node.malformed("a matrix product of a scalar");
  const std::int64_t depth = y.size() > 1 ? y[y.size() - 2] : y[0];
  const auto batch = [](const Shape& s) {
    return s.size() > 2 ? Shape(s.begin(), s.end() - 2) : Shape();
  };
  if (x.back() != depth || !broadcast_shapes(batch(x), batch(y))) {
    return node.malformed(
        fmt::format("matrices {} and {} do not fit", shape_text(x), shape_text(y)));
  }
  INGOT_RETURN_IF_ERROR(node.broadcast(batch(x), batch(y)));
  return {};
}

ValueId transposed(GraphBuilder& b, ValueId x) {
  const int exchange[] = {1, 0};
  return b.transpose(x, exchange);
}

}  // namespace

Result<void> import_matmul(NodeImport& node) {
  INGOT_ASSIGN(const ValueId a, node.input(0, Types::Numbers));
  INGOT_ASSIGN(const ValueId b, node.input(1, Types::Numbers));
  INGOT_RETURN_IF_ERROR(node.at_most(2));
  INGOT_RETURN_IF_ERROR(node.same_type(a, b));
  INGOT_RETURN_IF_ERROR(check_product(node, a, b));
  return node.set_output(sum_in_f32(node.builder, node.builder.matmul(a, b)));
}

// Integers minus their zero points, multiplied and summed in i32.
Result<void> import_matmul_integer(NodeImport& node) {
  INGOT_RETURN_IF_ERROR(node.at_most(4));
  ValueId operands[2];
  for (std::size_t i = 0; i < 2; ++i) {
    INGOT_ASSIGN(const ValueId x, node.input(i, Types::Integers));
    INGOT_ASSIGN(const std::optional<ValueId> zero, node.optional_input(i + 2, Types::Integers));
    if (size_bytes(node.dtype(x)) != 1) return node.malformed("operands must be int8 or uint8");
    operands[i] = node.builder.cast(x, DType::I32);
    if (!zero) continue;
    INGOT_RETURN_IF_ERROR(node.same_type(x, *zero));
    // One zero point for each row of A or column of B.
    ValueId point = node.builder.cast(*zero, DType::I32);
    if (element_count(node.shape(point)) == 1) {
      point = node.builder.reshape(point, {});
    } else if (node.rank(point) == 1 && i == 0) {
      point = node.builder.reshape(point, {node.shape(point)[0], 1});
    }
    INGOT_ASSIGN(const Shape shape, node.broadcast(node.shape(x), node.shape(point)));
    if (shape != node.shape(x)) return node.malformed("a zero point has too many elements");
    operands[i] = node.builder.sub(operands[i], point);
  }
  INGOT_RETURN_IF_ERROR(check_product(node, operands[0], operands[1]));
  return node.set_output(node.builder.matmul(operands[0], operands[1]));
}

// alpha * A' * B' + beta * C
Result<void> import_gemm(NodeImport& node) {
  const double alpha = node.attributes.number("alpha", 1.0F);
  const double beta = node.attributes.number("beta", 1.0F);
  const bool transpose_a = node.attributes.flag("transA", false);
  const bool transpose_b = node.attributes.flag("transB", false);
  // Up to opset 6 C needs broadcast=1 to be smaller than the result; newer opsets always allow it.
  if (node.opset < 7) node.attributes.ignore({"broadcast"});
  INGOT_ASSIGN(ValueId a, node.input(0, Types::Numbers));
  INGOT_ASSIGN(ValueId b, node.input(1, Types::Numbers));
  INGOT_RETURN_IF_ERROR(node.at_most(3));
  INGOT_ASSIGN(const std::optional<ValueId> c, node.optional_input(2, Types::Numbers));
  INGOT_RETURN_IF_ERROR(node.same_type(a, b));
  if (node.rank(a) != 2 || node.rank(b) != 2) return node.malformed("A and B must be matrices");
  const bool is_whole = is_integer(node.dtype(a));
  if (is_whole && (alpha != 1 || beta != 1)) {
    return node.unsupported_attribute("alpha and beta of integers must be 1");
  }
  GraphBuilder& g = node.builder;
  if (transpose_a) a = transposed(g, a);
  if (transpose_b) b = transposed(g, b);
  INGOT_RETURN_IF_ERROR(check_product(node, a, b));
  ValueId y = sum_in_f32(g, g.matmul(a, b));
  if (alpha != 1) y = g.mul(y, g.like(y, alpha));
  if (!c) return node.set_output(y);
  INGOT_RETURN_IF_ERROR(node.same_type(a, *c));
  INGOT_ASSIGN(const Shape shape, node.broadcast(node.shape(y), node.shape(*c)));
  if (shape != node.shape(y)) return node.malformed("C does not fit the product");
  return node.set_output(g.add(y, beta == 1 ? *c : g.mul(*c, g.like(*c, beta))));
}

}  // namespace ingot
