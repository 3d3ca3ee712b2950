// One element of a graph value in double precision, by the meaning of the graph's operations alone:
// nothing here knows kernels, schedules or machine code, so that it can judge them.
//
// Besides the value every element carries a bound for the rounding errors of an implementation in
// the node's own type (running error analysis, Higham, Accuracy and Stability of Numerical
// Algorithms, 3.3): an operation adds 4 unit roundoffs (halves of a unit in the last place) of its
// result, an addition of its operands, transcendental ones 16; a sum of n terms adds 8 sqrt(n) of
// the sum of magnitudes, which covers every order of summation but for rare cases (Higham and Mary
// 2019), and one for each term that is like the one before, since such errors do not cancel. Strict
// operations add nothing but for transcendental ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "compiler/graph/graph.h"

namespace ingot {

struct Element {
  std::uint64_t bits = 0;  // as Scalar::bits; floats that are not strict keep all of binary64
  double error = 0;        // floats: how far an implementation may be from the value
  // Whether rounding may choose another branch (a comparison, a step of a rounding) or has no bound
  // (next to a pole), so that nothing can be said about an implementation.
  bool undecided = false;

  [[nodiscard]] double as_double() const;
};

// Values that are stored somewhere.
class StoredValues {
 public:
  virtual ~StoredValues() = default;
  [[nodiscard]] virtual bool contains(ValueId value) const = 0;
  // Element `at` (coordinates inside the value's shape) of a value that is contained.
  [[nodiscard]] virtual Scalar load(ValueId value, const std::vector<std::int64_t>& at) const = 0;
};

class ElementEvaluator {
 public:
  using Coordinates = std::vector<std::int64_t>;

  // Both must outlive the evaluator. Inputs must be stored.
  ElementEvaluator(const Graph& graph, const StoredValues& stored);

  // Every element of a contraction may be further off by this much: its implementation is not a
  // sum of the products.
  void widen(ValueId contraction, double error) { widened_.insert_or_assign(contraction, error); }

  // `value` itself is computed even if it is stored; what it reads is taken from the stored values
  // where they have it. Undecided after `most_steps` operations.
  [[nodiscard]] Element evaluate(ValueId value, const Coordinates& at, std::uint64_t most_steps);
  // Operations of the last evaluation.
  [[nodiscard]] std::uint64_t steps() const { return steps_; }

 private:
  Element read(ValueId value, const Coordinates& at);
  Element compute(ValueId value, const Coordinates& at);

  Element element(const InputOp& op, const Node& node, const Coordinates& at);
  Element element(const ConstantOp& op, const Node& node, const Coordinates& at);
  Element element(const IotaOp& op, const Node& node, const Coordinates& at);
  Element element(const MapOp& op, const Node& node, const Coordinates& at);
  Element element(const CastOp& op, const Node& node, const Coordinates& at);
  Element element(const ViewOp& op, const Node& node, const Coordinates& at);
  Element element(const ReshapeOp& op, const Node& node, const Coordinates& at);
  Element element(const ConcatOp& op, const Node& node, const Coordinates& at);
  Element element(const ReduceNodeOp& op, const Node& node, const Coordinates& at);
  Element element(const ContractOp& op, const Node& node, const Coordinates& at);
  Element element(const GatherOp& op, const Node& node, const Coordinates& at);

  const Graph& graph_;
  const StoredValues& stored_;
  std::vector<bool> kept_;  // by value: read more than once, or costly
  std::unordered_map<std::uint64_t, Element> known_;
  std::map<ValueId, double> widened_;
  std::uint64_t steps_ = 0, most_steps_ = 0;
};

}  // namespace ingot
