// What the builder's compositions mean, against loops written from their definition.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "compiler/graph/builder.h"
#include "tests/support/graph_interpreter.h"

namespace ingot {
namespace {

using Ints = std::vector<std::int64_t>;

// Small integers in f32: sums and products are exact in any order, so results compare with ==.
class BuilderSemantics : public testing::Test {
 protected:
  GraphBuilder g{"test"};
  NamedTensors inputs;
  std::mt19937 random{7};

  ValueId input(const std::string& name, Shape shape, DType dtype = DType::F32) {
    Ints values;
    for (std::int64_t i = 0; i < element_count(shape); ++i) {
      values.push_back(std::uniform_int_distribution<std::int64_t>(-4, 4)(random));
    }
    inputs[name] = Tensor::of_ints(dtype, shape, values);
    return g.input(name, dtype, std::move(shape));
  }
  ValueId indices(const std::string& name, Ints values) {
    const Shape shape{std::ssize(values)};
    inputs[name] = Tensor::of_ints(DType::I64, shape, values);
    return g.input(name, DType::I64, shape);
  }
  Tensor run(ValueId value) {
    const auto valid = validate_graph(g.graph());
    EXPECT_TRUE(valid.has_value()) << to_line(valid.error().diagnostics[0]);
    return interpret_graph(g.graph(), inputs)[value];
  }
  // Reads the named input; outside its shape `outside`.
  double read(const std::string& name, const Ints& place, double outside = 0) const {
    const Tensor& tensor = inputs.at(name);
    std::int64_t flat = 0;
    for (std::size_t d = 0; d < place.size(); ++d) {
      if (place[d] < 0 || place[d] >= tensor.shape[d]) return outside;
      flat = flat * tensor.shape[d] + place[d];
    }
    return tensor.at(flat).as_double();
  }
};

struct ConvolutionCase {
  const char* what;
  std::int64_t batch, channels, height, width, outputs, kernel_y, kernel_x, groups;
  std::int64_t stride, dilation, pad, out_height, out_width;
};

class ConvolutionSemantics : public BuilderSemantics,
                             public testing::WithParamInterface<ConvolutionCase> {};

TEST_P(ConvolutionSemantics, MatchesTheLoop) {
  const ConvolutionCase& c = GetParam();
  const std::int64_t group_inputs = c.channels / c.groups;
  const std::int64_t group_outputs = c.outputs / c.groups;
  const ValueId x = input("x", {c.batch, c.channels, c.height, c.width});
  const ValueId w = input("w", {c.outputs, group_inputs, c.kernel_y, c.kernel_x});
  const Tensor result = run(g.convolution(x, w,
                                          {{c.stride, c.stride},
                                           {c.dilation, c.dilation},
                                           {c.pad, c.pad},
                                           {c.out_height, c.out_width},
                                           c.groups}));
  ASSERT_EQ(result.shape, (Shape{c.batch, c.outputs, c.out_height, c.out_width}));
  std::vector<double> expected;
  for (std::int64_t n = 0; n < c.batch; ++n) {
    for (std::int64_t o = 0; o < c.outputs; ++o) {
      for (std::int64_t y = 0; y < c.out_height; ++y) {
        for (std::int64_t z = 0; z < c.out_width; ++z) {
          double sum = 0;
          for (std::int64_t i = 0; i < group_inputs; ++i) {
            for (std::int64_t ky = 0; ky < c.kernel_y; ++ky) {
              for (std::int64_t kx = 0; kx < c.kernel_x; ++kx) {
                sum += read("x", {n, o / group_outputs * group_inputs + i,
                                  y * c.stride + ky * c.dilation - c.pad,
                                  z * c.stride + kx * c.dilation - c.pad}) *
                       read("w", {o, i, ky, kx});
              }
            }
          }
          expected.push_back(sum);
        }
      }
    }
  }
  EXPECT_EQ(doubles(result), expected);
}

INSTANTIATE_TEST_SUITE_P(
    All, ConvolutionSemantics,
    testing::Values(ConvolutionCase{"Plain", 2, 3, 5, 6, 4, 3, 2, 1, 1, 1, 0, 3, 5},
                    ConvolutionCase{"Padded", 1, 2, 5, 5, 2, 3, 3, 1, 1, 1, 1, 5, 5},
                    ConvolutionCase{"Strided", 1, 2, 7, 7, 3, 3, 3, 1, 2, 1, 1, 4, 4},
                    ConvolutionCase{"Dilated", 1, 2, 7, 8, 2, 3, 3, 1, 1, 2, 2, 7, 8},
                    ConvolutionCase{"TapsOutsideOnBothSides", 1, 2, 4, 5, 2, 3, 3, 1, 1, 9, 9, 4,
                                    5},
                    ConvolutionCase{"TapsOutsideBefore", 1, 2, 3, 3, 2, 4, 4, 1, 1, 2, 6, 3, 3},
                    ConvolutionCase{"StridePastTheImage", 1, 1, 2, 2, 1, 3, 3, 1, 5, 1, 4, 2, 2},
                    ConvolutionCase{"NothingInside", 1, 1, 2, 2, 1, 2, 2, 1, 1, 1, 9, 1, 1},
                    ConvolutionCase{"Grouped", 1, 6, 4, 4, 4, 3, 3, 2, 1, 1, 1, 4, 4},
                    ConvolutionCase{"Depthwise", 2, 4, 5, 5, 4, 3, 3, 4, 2, 1, 1, 3, 3},
                    ConvolutionCase{"DepthMultiplier", 1, 3, 4, 4, 6, 2, 2, 3, 1, 1, 0, 3, 3},
                    ConvolutionCase{"OneByOne", 1, 5, 3, 3, 2, 1, 1, 1, 1, 1, 0, 3, 3},
                    ConvolutionCase{"OneChannelOneOutput", 1, 1, 4, 4, 1, 3, 3, 1, 1, 1, 1, 4, 4},
                    ConvolutionCase{"NoBatch", 0, 2, 4, 4, 2, 3, 3, 1, 1, 1, 1, 4, 4}),
    [](const auto& test) { return test.param.what; });

TEST_F(BuilderSemantics, ConvolutionInOneAndThreeDimensions) {
  const ValueId x1 = input("x1", {1, 2, 6});
  const ValueId w1 = input("w1", {3, 2, 3});
  const Tensor r1 = run(g.convolution(x1, w1, {{2}, {1}, {1}, {3}, 1}));
  const auto at1 = [&](std::int64_t o, std::int64_t y) {
    double sum = 0;
    for (std::int64_t c = 0; c < 2; ++c) {
      for (std::int64_t k = 0; k < 3; ++k) {
        sum += read("x1", {0, c, 2 * y + k - 1}) * read("w1", {o, c, k});
      }
    }
    return sum;
  };
  EXPECT_EQ(doubles(r1), (std::vector<double>{at1(0, 0), at1(0, 1), at1(0, 2), at1(1, 0), at1(1, 1),
                                              at1(1, 2), at1(2, 0), at1(2, 1), at1(2, 2)}));
  const ValueId x3 = input("x3", {1, 1, 2, 2, 2});
  const ValueId w3 = input("w3", {1, 1, 2, 2, 2});
  double sum = 0;
  for (std::int64_t i = 0; i < 8; ++i) {
    const Ints place{0, 0, i / 4, i / 2 % 2, i % 2};
    sum += read("x3", place) * read("w3", place);
  }
  EXPECT_EQ(doubles(run(g.convolution(x3, w3, {{1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, 1}))),
            std::vector<double>{sum});
}

TEST_F(BuilderSemantics, PoolingByWindows) {
  const ValueId x = input("x", {1, 2, 5, 5});
  const Scalar lowest = identity(ReduceOp::Max, DType::F32);
  const ValueId windows = g.windows(x, {{3, 2}, {2, 2}, {1, 2}, {1, 0}, {3, 2}}, lowest);
  ASSERT_EQ(g.shape(windows), (Shape{1, 2, 3, 2, 3, 2}));
  const Tensor pooled = run(g.reduce(ReduceOp::Max, windows, {4, 5}, false));
  std::vector<double> expected;
  for (std::int64_t c = 0; c < 2; ++c) {
    for (std::int64_t y = 0; y < 3; ++y) {
      for (std::int64_t z = 0; z < 2; ++z) {
        double highest = -INFINITY;
        for (std::int64_t ky = 0; ky < 3; ++ky) {
          for (std::int64_t kx = 0; kx < 2; ++kx) {
            highest =
                std::max(highest, read("x", {0, c, 2 * y + ky - 1, 2 * z + 2 * kx}, -INFINITY));
          }
        }
        expected.push_back(highest);
      }
    }
  }
  EXPECT_EQ(doubles(pooled), expected);
}

TEST_F(BuilderSemantics, TransposedConvolutionByZeroInsertion) {
  // A stride of 2 in the gradient direction: out[y] = sum over k of x[(y-k)/2] * w[k].
  const ValueId x = input("x", {3});
  const ValueId w = input("w", {3});
  AffineIndex spread = AffineIndex::of_axis(0).add(1, -1);
  spread.divisor = 2;
  const ContractOp op{{7, 3}, 1, {AffineIndex::of_axis(0)}, {{spread}, {AffineIndex::of_axis(1)}}};
  const ValueId operands[] = {x, w};
  std::vector<double> expected(7, 0);
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t k = 0; k < 3; ++k) {
      expected[static_cast<std::size_t>(2 * i + k)] += read("x", {i}) * read("w", {k});
    }
  }
  EXPECT_EQ(doubles(run(g.contract(DType::F32, operands, op))), expected);
}

TEST_F(BuilderSemantics, MatmulBroadcastsBatches) {
  const ValueId a = input("a", {2, 1, 3, 4});
  const ValueId b = input("b", {5, 4, 2});
  const Tensor result = run(g.matmul(a, b));
  ASSERT_EQ(result.shape, (Shape{2, 5, 3, 2}));
  std::vector<double> expected;
  for (std::int64_t i = 0; i < 2 * 5 * 3 * 2; ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < 4; ++k) {
      sum += read("a", {i / 30, 0, i / 2 % 3, k}) * read("b", {i / 6 % 5, k, i % 2});
    }
    expected.push_back(sum);
  }
  EXPECT_EQ(doubles(result), expected);
}

TEST_F(BuilderSemantics, MatmulWithVectors) {
  const ValueId v = input("v", {4});
  const ValueId m = input("m", {2, 4, 3});
  const Tensor left = run(g.matmul(v, m));
  ASSERT_EQ(left.shape, (Shape{2, 3}));
  std::vector<double> expected;
  for (std::int64_t i = 0; i < 6; ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < 4; ++k) sum += read("v", {k}) * read("m", {i / 3, k, i % 3});
    expected.push_back(sum);
  }
  EXPECT_EQ(doubles(left), expected);
  double square = 0;
  for (std::int64_t k = 0; k < 4; ++k) square += read("v", {k}) * read("v", {k});
  EXPECT_EQ(doubles(run(g.matmul(v, v))), std::vector<double>{square});
}

TEST_F(BuilderSemantics, MatmulOverNothingIsZero) {
  const ValueId a = input("a", {2, 0});
  const ValueId b = input("b", {0, 3});
  EXPECT_EQ(doubles(run(g.matmul(a, b))), std::vector<double>(6, 0.0));
}

TEST_F(BuilderSemantics, ContractionsConvertTheirOperandsFirst) {
  inputs["a"] = Tensor::of_ints(DType::U8, {2}, Ints{200, 100});
  inputs["b"] = Tensor::of_ints(DType::I8, {2}, Ints{-100, 3});
  const ValueId a = g.input("a", DType::U8, {2});
  const ValueId b = g.input("b", DType::I8, {2});
  const ContractOp op{{2}, 0, {}, {{AffineIndex::of_axis(0)}, {AffineIndex::of_axis(0)}}};
  const ValueId operands[] = {a, b};
  EXPECT_EQ(ints(run(g.contract(DType::I32, operands, op))), Ints{-19700});
}

TEST_F(BuilderSemantics, SlicesWithNegativeSteps) {
  const ValueId x = input("x", {3, 5});
  const std::int64_t starts[] = {2, 4};
  const std::int64_t steps[] = {-1, -2};
  const Tensor result = run(g.slice(x, starts, steps, {2, 3}));
  EXPECT_EQ(doubles(result),
            (std::vector<double>{read("x", {2, 4}), read("x", {2, 2}), read("x", {2, 0}),
                                 read("x", {1, 4}), read("x", {1, 2}), read("x", {1, 0})}));
}

TEST_F(BuilderSemantics, ChainsOfViews) {
  const ValueId x = input("x", {2, 3, 4});
  const int turn[] = {2, 0, 1};
  const std::int64_t before[] = {1, 0, -1};
  const std::int64_t after[] = {0, 1, 0};
  const Scalar nine = Scalar::of_float(DType::F32, 9);
  const ValueId y = g.pad(g.transpose(x, turn), before, after, nine);
  ASSERT_EQ(g.shape(y), (Shape{5, 3, 2}));
  ASSERT_TRUE(std::holds_alternative<InputOp>(g[g[y].inputs[0]].op));
  std::vector<double> expected;
  for (std::int64_t i = 0; i < 30; ++i) {
    const std::int64_t a = i / 6, b = i / 2 % 3, c = i % 2;
    expected.push_back(a < 1 || b >= 2 ? 9 : read("x", {b, c + 1, a - 1}));
  }
  EXPECT_EQ(doubles(run(y)), expected);
}

// One random movement of `value` in `builder`.
ValueId move_randomly(GraphBuilder& builder, ValueId value, std::mt19937& random) {
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  const Shape from = builder.shape(value);
  const std::size_t rank = from.size();
  switch (between(0, 4)) {
    case 0: {
      std::vector<int> order(rank);
      std::iota(order.begin(), order.end(), 0);
      std::ranges::shuffle(order, random);
      return builder.transpose(value, order);
    }
    case 1: {
      // The prime factors of the number of elements and some ones, in any grouping.
      Shape to;
      std::int64_t rest = element_count(from);
      for (std::int64_t factor = 2; rest > 1; ++factor) {
        for (; rest % factor == 0; rest /= factor) {
          if (to.empty() || between(0, 1) == 0) to.push_back(1);
          to.back() *= factor;
        }
      }
      if (between(0, 1) == 0) to.insert(to.begin() + between(0, std::ssize(to)), 1);
      return builder.reshape(value, to);
    }
    case 2: {
      Ints starts, steps;
      Shape to;
      for (const std::int64_t extent : from) {
        to.push_back(between(1, extent));
        const std::int64_t step = to.back() > 1 ? (extent - 1) / (to.back() - 1) : 1;
        steps.push_back(between(0, 1) == 0 ? step : -step);
        starts.push_back(steps.back() > 0 ? 0 : extent - 1);
      }
      return builder.slice(value, starts, steps, to);
    }
    case 3: {
      Ints before, after;
      for (std::size_t d = 0; d < rank; ++d) {
        before.push_back(between(from[d] > 1 ? -1 : 0, 1));
        after.push_back(between(0, 1));
      }
      return builder.pad(value, before, after, Scalar::of_int(DType::I32, between(-1, 0)));
    }
    default: {
      Shape to = from;
      for (std::int64_t& extent : to) extent = extent == 1 ? between(1, 2) : extent;
      if (between(0, 2) == 0) to.insert(to.begin(), between(1, 2));
      return builder.expand(value, to);
    }
  }
}

TEST_F(BuilderSemantics, MergedMovementEqualsMovementStepByStep) {
  std::int64_t nodes = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    const Shape shape{2, 3, 2};
    Ints values(12);
    std::iota(values.begin(), values.end(), 1);
    Tensor step_by_step = Tensor::of_ints(DType::I32, shape, values);
    const NamedTensors given{{"x", step_by_step}};
    GraphBuilder merged("merged");
    ValueId value = merged.input("x", DType::I32, shape);
    std::mt19937 one(seed), other(seed);
    for (int i = 0; i < 7 && element_count(merged.shape(value)) < 300; ++i) {
      value = move_randomly(merged, value, one);
      GraphBuilder single("single");
      const ValueId x = single.input("x", DType::I32, step_by_step.shape);
      const ValueId y = move_randomly(single, x, other);
      step_by_step = interpret_graph(single.graph(), {{"x", step_by_step}})[y];
    }
    ASSERT_TRUE(validate_graph(merged.graph()).has_value()) << print_graph(merged.graph());
    const Tensor result = interpret_graph(merged.graph(), given)[value];
    ASSERT_EQ(result.shape, step_by_step.shape);
    ASSERT_EQ(ints(result), ints(step_by_step)) << "seed " << seed << print_graph(merged.graph());
    while (!std::holds_alternative<InputOp>(merged[value].op)) {
      value = merged[value].inputs[0];
      ++nodes;
    }
  }
  // Of seven movements fewer than three nodes are left.
  EXPECT_LT(nodes, 1500 * 3);
}

TEST_F(BuilderSemantics, GatherWithNegativeIndices) {
  const ValueId x = input("x", {2, 4, 3});
  const ValueId index = indices("i", {-1, 0, -4});
  const Tensor result = run(g.gather(x, index, 1));
  ASSERT_EQ(result.shape, (Shape{2, 3, 3}));
  std::vector<double> expected;
  for (std::int64_t a = 0; a < 2; ++a) {
    for (const std::int64_t chosen : {3, 0, 0}) {
      for (std::int64_t c = 0; c < 3; ++c) expected.push_back(read("x", {a, chosen, c}));
    }
  }
  EXPECT_EQ(doubles(result), expected);
  EXPECT_FALSE(interpret_graph(g.graph(), inputs).index_clamped);
}

TEST_F(BuilderSemantics, GatherClampsAndReports) {
  const ValueId x = input("x", {4});
  const ValueId index = indices("i", {4, -5, 1});
  const ValueId y = g.gather(x, index, 0);
  EXPECT_EQ(doubles(run(y)), (std::vector<double>{read("x", {3}), read("x", {0}), read("x", {1})}));
  EXPECT_TRUE(interpret_graph(g.graph(), inputs).index_clamped);
}

TEST_F(BuilderSemantics, KnownGathersGiveWhatGathersGive) {
  // The same index once known (a view where the steps are equal) and once as an input.
  const ValueId x = input("x", {3, 6});
  for (const Ints& values :
       {Ints{-1}, Ints{4, 2, 0}, Ints{-6, -5, -4}, Ints{2, 2, 2}, Ints{5, 0, -2}}) {
    const std::string name = "i" + std::to_string(g.graph().nodes.size());
    const ValueId known = g.constant(Tensor::of_ints(DType::I64, {std::ssize(values)}, values));
    const ValueId moved = g.gather(x, known, 1);
    EXPECT_EQ(std::holds_alternative<ViewOp>(g[moved].op), values[0] != 5);
    EXPECT_EQ(doubles(run(moved)), doubles(run(g.gather(x, indices(name, values), 1))));
  }
}

TEST_F(BuilderSemantics, SoftmaxAndSigmoid) {
  inputs["x"] =
      Tensor::of_floats(DType::F32, {2, 3}, std::vector<double>{1, 2, 3, 1000, 1000, 999});
  const ValueId x = g.input("x", DType::F32, {2, 3});
  const auto soft = doubles(run(g.softmax(x, 1)));
  const double sum = std::exp(-2.0) + std::exp(-1.0) + 1;
  EXPECT_NEAR(soft[0], std::exp(-2.0) / sum, 1e-7);
  EXPECT_NEAR(soft[2], 1 / sum, 1e-7);
  EXPECT_NEAR(soft[5], std::exp(-1.0) / (2 + std::exp(-1.0)), 1e-7);
  const auto along = doubles(run(g.softmax(x, 0)));
  EXPECT_NEAR(along[0] + along[3], 1, 1e-7);
  EXPECT_EQ(along[0], 0);
  const auto sigmoid = doubles(run(g.sigmoid(x)));
  EXPECT_NEAR(sigmoid[1], 1 / (1 + std::exp(-2.0)), 1e-7);
  EXPECT_EQ(sigmoid[3], 1);
}

TEST_F(BuilderSemantics, ReductionsOverNothingGiveTheIdentity) {
  const ValueId x = input("x", {2, 0});
  EXPECT_EQ(doubles(run(g.reduce(ReduceOp::Sum, x, {1}, false))), (std::vector<double>{0, 0}));
  EXPECT_EQ(doubles(run(g.reduce(ReduceOp::Product, x, {1}, true))), (std::vector<double>{1, 1}));
  EXPECT_EQ(doubles(run(g.reduce(ReduceOp::Max, x, {1}, false))),
            (std::vector<double>{-INFINITY, -INFINITY}));
  const ValueId i = input("i", {0}, DType::I8);
  EXPECT_EQ(ints(run(g.reduce(ReduceOp::Max, i, {0}, false))), Ints{-128});
  EXPECT_EQ(ints(run(g.reduce(ReduceOp::Min, i, {0}, false))), Ints{127});
  const ValueId b = input("b", {0}, DType::Bool);
  EXPECT_EQ(ints(run(g.reduce(ReduceOp::Min, b, {0}, false))), Ints{1});
}

// Two values that must be equal, and what they are.
struct Pair {
  ValueId folded, computed;
  std::string what;
};

TEST_F(BuilderSemantics, FoldingEqualsInterpretation) {
  std::vector<Pair> pairs;
  // The same integer expression once over constants and once over inputs of the same value.
  const ScalarOp ops[] = {ScalarOp::Neg,      ScalarOp::Abs, ScalarOp::Not, ScalarOp::Add,
                          ScalarOp::Sub,      ScalarOp::Mul, ScalarOp::Div, ScalarOp::FloorDiv,
                          ScalarOp::FloorMod, ScalarOp::Min, ScalarOp::Max, ScalarOp::And,
                          ScalarOp::Or,       ScalarOp::Xor, ScalarOp::Eq,  ScalarOp::Ne,
                          ScalarOp::Lt,       ScalarOp::Le};
  Ints corner{0, 1, -1, 2, -3, 127, -128, 255, 1000, INT64_MIN, INT64_MAX, INT32_MIN};
  for (const DType dtype : {DType::U8, DType::I8, DType::I16, DType::I32, DType::I64, DType::U16,
                            DType::U32, DType::U64}) {
    Ints left, right;
    for (const std::int64_t a : corner) {
      for (const std::int64_t b : corner) {
        left.push_back(a);
        right.push_back(b);
      }
    }
    const Shape shape{std::ssize(left)};
    const Tensor values[] = {Tensor::of_ints(dtype, shape, left),
                             Tensor::of_ints(dtype, shape, right)};
    std::vector<ValueId> known, given;
    for (int i = 0; i < 2; ++i) {
      const std::string name = std::string(ingot::name(dtype)) + std::to_string(i);
      inputs[name] = values[i];
      known.push_back(g.constant(values[i]));
      given.push_back(g.input(name, dtype, shape));
    }
    for (const ScalarOp op : ops) {
      const auto count = static_cast<std::size_t>(operand_count(op));
      const ValueId folded = g.map(op, std::span(known).first(count));
      ASSERT_TRUE(std::holds_alternative<ConstantOp>(g[folded].op));
      pairs.push_back({folded, g.map(op, std::span(given).first(count)),
                       fmt::format("{} of {}", name(op), name(dtype))});
    }
    for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Product, ReduceOp::Max, ReduceOp::Min}) {
      pairs.push_back({g.reduce(op, known[0], {0}, false), g.reduce(op, given[0], {0}, false),
                       fmt::format("{} of {}", name(op), name(dtype))});
    }
  }
  const GraphRun result = interpret_graph(g.graph(), inputs);
  for (const Pair& pair : pairs) {
    EXPECT_EQ(ints(result[pair.folded]), ints(result[pair.computed])) << pair.what;
  }
}

TEST_F(BuilderSemantics, FloatFoldingEqualsInterpretation) {
  std::vector<Pair> pairs;
  const ScalarOp ops[] = {ScalarOp::Neg,  ScalarOp::Abs,   ScalarOp::Sqrt,  ScalarOp::Floor,
                          ScalarOp::Ceil, ScalarOp::Trunc, ScalarOp::Round, ScalarOp::Add,
                          ScalarOp::Sub,  ScalarOp::Mul,   ScalarOp::Div,   ScalarOp::Min,
                          ScalarOp::Max,  ScalarOp::Eq,    ScalarOp::Le};
  for (const DType dtype : {DType::F32, DType::F64}) {
    std::vector<double> left, right;
    std::uniform_real_distribution<double> real(0.01, 30);
    for (int i = 0; i < 200; ++i) {
      left.push_back(real(random));
      right.push_back(real(random));
    }
    left[0] = 2.5;
    left[1] = 3.5;
    left[2] = right[2];
    const Tensor values[] = {Tensor::of_floats(dtype, {200}, left),
                             Tensor::of_floats(dtype, {200}, right)};
    std::vector<ValueId> known, given;
    for (int i = 0; i < 2; ++i) {
      const std::string name = std::string(ingot::name(dtype)) + std::to_string(i);
      inputs[name] = values[i];
      known.push_back(g.constant(values[i]));
      given.push_back(g.input(name, dtype, {200}));
    }
    for (const ScalarOp op : ops) {
      const auto count = static_cast<std::size_t>(operand_count(op));
      const ValueId folded = g.map(op, std::span(known).first(count));
      ASSERT_TRUE(std::holds_alternative<ConstantOp>(g[folded].op)) << name(op);
      pairs.push_back({folded, g.map(op, std::span(given).first(count)),
                       fmt::format("{} of {}", name(op), name(dtype))});
    }
  }
  const GraphRun result = interpret_graph(g.graph(), inputs);
  for (const Pair& pair : pairs) {
    EXPECT_EQ(doubles(result[pair.folded]), doubles(result[pair.computed])) << pair.what;
  }
}

TEST_F(BuilderSemantics, StatesStartAsDeclared) {
  const ValueId zeros = g.input("zeros", DType::I32, {2});
  const ValueId sevens = g.input("sevens", DType::I32, {2});
  g.state(zeros, sevens);
  g.state(sevens, zeros, Tensor::splat({2}, Scalar::of_int(DType::I32, 7)));
  g.output("sum", g.add(zeros, sevens));
  EXPECT_EQ(ints(interpret_outputs(g.graph(), {}).at("sum")), (Ints{7, 7}));
}

}  // namespace
}  // namespace ingot
