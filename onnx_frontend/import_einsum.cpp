// Einsum: sums of products named by an equation, such as "bij,bjk->bik". It is a contraction as the
// graph knows it: output labels become output axes, the others are summed over.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "onnx_frontend/importers.h"
#include "onnx_frontend/wide_contraction.h"

namespace ingot {
namespace {

// Labels of one operand, outermost first. Letters stand for themselves; dimensions under an
// ellipsis get the labels -1 (the last one), -2, ...
using Labels = std::vector<int>;

Result<Labels> parse_term(const NodeImport& node, std::string_view term, std::size_t rank) {
  Labels labels;
  const std::size_t letters =
      static_cast<std::size_t>(std::ranges::count_if(term, [](char c) { return c != '.'; }));
  bool seen = false;
  for (std::size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels.push_back(c);
    } else if (term.substr(i, 3) == "..." && !seen && letters <= rank) {
      for (std::size_t d = rank - letters; d > 0; --d) labels.push_back(-static_cast<int>(d));
      seen = true;
      i += 2;
    } else {
      return node.malformed("the equation is malformed");
    }
  }
  return labels;
}

struct Equation {
  std::vector<Labels> operands;
  Labels output;
};

Result<Equation> parse_equation(const NodeImport& node, std::string text,
                                const std::vector<ValueId>& values) {
  std::erase(text, ' ');
  const std::size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  Equation equation;
  std::size_t start = 0;
  std::size_t most = 0;  // dimensions under an ellipsis
  for (const ValueId value : values) {
    if (start > left.size()) return node.malformed("the equation has too few operands");
    const std::size_t comma = std::min(left.find(',', start), left.size());
    INGOT_ASSIGN(
        Labels labels,
        parse_term(node, std::string_view(left).substr(start, comma - start), node.rank(value)));
    if (labels.size() != node.rank(value)) {
      return node.malformed("the equation does not fit the ranks of the inputs");
    }
    for (const int label : labels) {
      if (label < 0) most = std::max(most, static_cast<std::size_t>(-label));
    }
    equation.operands.push_back(std::move(labels));
    start = comma + 1;
  }
  if (start <= left.size()) return node.malformed("the equation has too many operands");
  if (arrow != std::string::npos) {
    const std::string right = text.substr(arrow + 2);
    const std::size_t letters =
        static_cast<std::size_t>(std::ranges::count_if(right, [](char c) { return c != '.'; }));
    const bool dots = right.find('.') != std::string::npos;
    INGOT_ASSIGN(equation.output, parse_term(node, right, letters + (dots ? most : 0)));
    return equation;
  }
  // Without an arrow: the ellipsis, then the letters that occur once, in order.
  for (std::size_t d = most; d > 0; --d) equation.output.push_back(-static_cast<int>(d));
  std::map<int, int> uses;
  for (const Labels& labels : equation.operands) {
    for (const int label : labels) ++uses[label];
  }
  for (const auto& [label, count] : uses) {
    if (label > 0 && count == 1) equation.output.push_back(label);
  }
  return equation;
}

}  // namespace

Result<void> import_einsum(NodeImport& node) {
  const std::string text = node.attributes.text("equation", "");
  INGOT_ASSIGN(const std::vector<ValueId> values, node.all_inputs(1, Types::Numbers));
  if (values.size() > 2) return node.unsupported("at most two inputs are supported");
  INGOT_ASSIGN(const Equation equation, parse_equation(node, text, values));
  std::map<int, std::int64_t> extents;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t d = 0; d < equation.operands[i].size(); ++d) {
      std::int64_t& extent = extents.emplace(equation.operands[i][d], 1).first->second;
      const std::int64_t own = node.shape(values[i])[d];
      if (own != extent && own != 1 && extent != 1) {
        return node.malformed("a label has two different extents");
      }
      if (own != 1) extent = own;
    }
  }
  ContractOp op;
  std::map<int, int> axes;
  const auto add_axis = [&](int label) {
    axes[label] = static_cast<int>(op.extents.size());
    op.extents.push_back(extents.at(label));
  };
  for (const int label : equation.output) {
    if (!extents.contains(label)) return node.malformed("an output label is in no input");
    if (axes.contains(label)) return node.malformed("an output label is there twice");
    add_axis(label);
    op.output.push_back(AffineIndex::of_axis(axes[label]));
  }
  op.output_axes = static_cast<int>(op.extents.size());
  INGOT_RETURN_IF_ERROR(node.checked_shape(op.extents));
  for (const auto& [label, extent] : extents) {
    if (!axes.contains(label)) add_axis(label);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::vector<AffineIndex> reads;
    for (std::size_t d = 0; d < equation.operands[i].size(); ++d) {
      const int label = equation.operands[i][d];
      const bool repeats = node.shape(values[i])[d] == 1;
      reads.push_back(repeats ? AffineIndex::constant(0) : AffineIndex::of_axis(axes[label]));
    }
    op.operands.push_back(std::move(reads));
  }
  GraphBuilder& b = node.builder;
  const ValueId y = b.contract(node.dtype(values[0]), values, std::move(op));
  return node.set_output(sum_in_f32(b, y));
}

}  // namespace ingot
