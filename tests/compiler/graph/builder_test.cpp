// The form of what the builder makes: sharing, merging, folding. What it means is tested in
// builder_semantics_test.cpp.
#include "compiler/graph/builder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/graph_interpreter.h"

namespace ingot {
namespace {

class GraphBuilderTest : public testing::Test {
 protected:
  GraphBuilder g{"test"};

  ValueId input(Shape shape, DType dtype = DType::F32) {
    return g.input("input" + std::to_string(g.graph().nodes.size()), dtype, std::move(shape));
  }
  ValueId i64s(std::vector<std::int64_t> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return g.constant(Tensor::of_ints(DType::I64, {count}, values));
  }
  ValueId f32s(std::vector<double> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return g.constant(Tensor::of_floats(DType::F32, {count}, values));
  }
  std::string text(ValueId value) { return to_text(g[value]); }
  template <typename Op>
  bool is(ValueId value) {
    return std::holds_alternative<Op>(g[value].op);
  }

  void TearDown() override {
    const auto valid = validate_graph(g.graph());
    EXPECT_TRUE(valid.has_value()) << to_line(valid.error().diagnostics[0]);
  }
};

// --- sharing

TEST_F(GraphBuilderTest, EqualNodesAreOne) {
  const ValueId x = input({4});
  EXPECT_EQ(g.map(ScalarOp::Exp, x), g.map(ScalarOp::Exp, x));
  EXPECT_NE(g.map(ScalarOp::Exp, x), g.map(ScalarOp::Sin, x));
  const ValueId relaxed = g.add(x, x);
  g.set_source("elsewhere");
  EXPECT_EQ(g.add(x, x), relaxed);
  g.set_strict(true);
  EXPECT_NE(g.add(x, x), relaxed);
  EXPECT_TRUE(g[g.add(x, x)].strict);
}

TEST_F(GraphBuilderTest, ConstantsAreComparedByContentIfSmall) {
  EXPECT_EQ(f32s({1, 2}), f32s({1, 2}));
  EXPECT_NE(f32s({0.0}), f32s({-0.0}));
  EXPECT_NE(f32s({0.0}), g.constant(Tensor::splat({1}, Scalar::zero(DType::I32))));
  const Tensor large = Tensor::splat({5000}, Scalar::zero(DType::U8));
  const Tensor copy = large;
  const Tensor other = Tensor::splat({5000}, Scalar::zero(DType::U8));
  EXPECT_EQ(g.constant(large), g.constant(copy));
  EXPECT_NE(g.constant(large), g.constant(other));
}

// --- views

TEST_F(GraphBuilderTest, IdentitiesVanish) {
  const ValueId x = input({2, 1, 3});
  const int same[] = {0, 1, 2};
  EXPECT_EQ(g.transpose(x, same), x);
  EXPECT_EQ(g.expand(x, {2, 1, 3}), x);
  EXPECT_EQ(g.reshape(x, {2, 1, 3}), x);
  const int there[] = {2, 0, 1};
  const int back[] = {1, 2, 0};
  EXPECT_EQ(g.transpose(g.transpose(x, there), back), x);
  EXPECT_EQ(g.reshape(g.reshape(x, {6}), {2, 1, 3}), x);
  EXPECT_EQ(g.reshape(g.reshape(x, {2, 3}), {2, 1, 3}), x);
  const std::int64_t zeros[] = {0, 0, 0};
  EXPECT_EQ(g.pad(x, zeros, zeros, Scalar::zero(DType::F32)), x);
}

TEST_F(GraphBuilderTest, ViewsOfViewsAreOne) {
  const ValueId x = input({4, 6});
  const int swap[] = {1, 0};
  const std::int64_t starts[] = {5, 1};
  const std::int64_t steps[] = {-2, 1};
  const ValueId y = g.slice(g.transpose(x, swap), starts, steps, {3, 2});
  EXPECT_EQ(text(y), "view f32[3,2] %0 [a1+1,-2*a0+5]");
  EXPECT_EQ(text(g.expand(g.reshape(y, {1, 3, 2}), {5, 3, 2})),
            "view f32[5,3,2] %0 [a2+1,-2*a1+5]");
}

TEST_F(GraphBuilderTest, PaddingMergesWhereItCannotLeakData) {
  const ValueId x = input({4, 6});
  const Scalar zero = Scalar::zero(DType::F32);
  const Scalar one = Scalar::of_float(DType::F32, 1);
  const std::int64_t two[] = {2, 2};
  const int swap[] = {1, 0};
  // Padding of a transposition is one view, and so is padding of padding with the same value.
  const ValueId padded = g.pad(g.transpose(x, swap), two, two, zero);
  EXPECT_EQ(text(padded), "view f32[10,8] %0 [a1-2,a0-2] fill 0");
  EXPECT_EQ(text(g.pad(padded, two, two, zero)), "view f32[14,12] %0 [a1-4,a0-4] fill 0");
  // Another value, or padding of a crop, would show what is not there.
  EXPECT_TRUE(is<ViewOp>(g[g.pad(padded, two, two, one)].inputs[0]));
  const std::int64_t minus_one[] = {-1, -1};
  const ValueId cropped = g.pad(x, minus_one, minus_one, zero);
  EXPECT_EQ(text(cropped), "view f32[2,4] %0 [a0+1,a1+1]");
  EXPECT_TRUE(is<ViewOp>(g[g.pad(cropped, two, two, zero)].inputs[0]));
  // A crop that only removes padding is no fill at all.
  const std::int64_t minus_two[] = {-2, -2};
  EXPECT_EQ(g.pad(g.pad(x, two, two, zero), minus_two, minus_two, zero), x);
}

TEST_F(GraphBuilderTest, WindowsOfPaddingAreOneView) {
  const ValueId x = input({1, 2, 8, 8});
  const std::int64_t pads[] = {0, 0, 1, 1};
  const Scalar zero = Scalar::zero(DType::F32);
  const ValueId y =
      g.windows(g.pad(x, pads, pads, zero), {{3, 3}, {2, 2}, {1, 1}, {0, 0}, {4, 4}}, zero);
  EXPECT_EQ(text(y), "view f32[1,2,4,4,3,3] %0 [0,a1,2*a2+a4-1,2*a3+a5-1] fill 0");
}

TEST_F(GraphBuilderTest, DivisorsThatAlwaysDivideVanish) {
  const ValueId x = input({4});
  AffineIndex index = AffineIndex::of_axis(0, 2, 2);
  index.divisor = 2;
  EXPECT_EQ(text(g.view(x, {3}, {index})), "view f32[3] %0 [a0+1]");
  AffineIndex sparse = AffineIndex::of_axis(0);
  sparse.divisor = 2;
  EXPECT_EQ(text(g.view(x, {7}, {sparse}, Scalar::zero(DType::F32))),
            "view f32[7] %0 [(a0)/2] fill 0");
}

TEST_F(GraphBuilderTest, ReshapesMergeAndUnitDimensionsAreViews) {
  const ValueId x = input({2, 3, 4});
  EXPECT_EQ(text(g.reshape(x, {1, 2, 3, 1, 4})), "view f32[1,2,3,1,4] %0 [a1,a2,a4]");
  const ValueId flat = g.reshape(x, {24});
  EXPECT_EQ(text(flat), "reshape f32[24] %0");
  EXPECT_EQ(text(g.reshape(g.reshape(flat, {24, 1}), {6, 4})), "reshape f32[6,4] %0");
  EXPECT_EQ(g.reshape(g.reshape(flat, {1, 24}), {2, 3, 4}), x);
}

TEST_F(GraphBuilderTest, EmptyTensorsMoveToo) {
  const ValueId x = input({0, 3});
  EXPECT_EQ(g.shape(g.reshape(x, {3, 0})), (Shape{3, 0}));
  const int swap[] = {1, 0};
  EXPECT_EQ(g.shape(g.transpose(x, swap)), (Shape{3, 0}));
  const std::int64_t one[] = {1, 0};
  const std::int64_t none[] = {0, 0};
  const ValueId padded = g.pad(x, one, none, Scalar::zero(DType::F32));
  EXPECT_EQ(g.shape(padded), (Shape{1, 3}));
  const ValueId y = input({2, 3});
  const ValueId parts[] = {x, y, x};
  EXPECT_EQ(g.concat(parts, 0), y);
}

// --- folding

TEST_F(GraphBuilderTest, IntegerArithmeticFolds) {
  const ValueId shape = i64s({2, 3, 224});
  const ValueId doubled = g.mul(shape, g.like(shape, 2));
  EXPECT_TRUE(is<ConstantOp>(doubled));
  EXPECT_EQ(g.known_ints(doubled), (std::vector<std::int64_t>{4, 6, 448}));
  const ValueId parts[] = {doubled, i64s({-1})};
  const ValueId joined = g.concat(parts, 0);
  EXPECT_EQ(text(joined), "constant i64[4] {4,6,448,-1}");
  EXPECT_EQ(text(g.reduce(ReduceOp::Product, shape, {0}, false)), "constant i64[] {1344}");
  EXPECT_EQ(text(g.reduce(ReduceOp::Min, joined, {0}, true)),
            "view i64[1] %" +
                std::to_string(g[g.reduce(ReduceOp::Min, joined, {0}, true)].inputs[0].index) +
                " []");
  EXPECT_EQ(g.known_ints(g.gather(joined, i64s({-2, 0}), 0)), (std::vector<std::int64_t>{448, 4}));
  EXPECT_EQ(g.known_ints(g.cast(joined, DType::U8)), (std::vector<std::int64_t>{4, 6, 192, 255}));
}

TEST_F(GraphBuilderTest, ViewsOfConstantsStayButAreKnown) {
  const ValueId constant = i64s({1, 2, 3, 4, 5, 6});
  const ValueId matrix = g.reshape(constant, {2, 3});
  EXPECT_TRUE(is<ReshapeOp>(matrix));
  const int swap[] = {1, 0};
  const ValueId turned = g.transpose(matrix, swap);
  EXPECT_TRUE(is<ViewOp>(turned));
  EXPECT_EQ(g.known_ints(turned), (std::vector<std::int64_t>{1, 4, 2, 5, 3, 6}));
  const std::int64_t one[] = {1, 0};
  const std::int64_t none[] = {0, 0};
  EXPECT_EQ(g.known_ints(g.pad(matrix, one, none, Scalar::of_int(DType::I64, 9))),
            (std::vector<std::int64_t>{9, 9, 9, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(g.known_ints(input({2}, DType::I64)), std::nullopt);
  EXPECT_EQ(g.known_ints(f32s({1})), std::nullopt);
}

TEST_F(GraphBuilderTest, CountingIsKnownButStaysArithmeticInFloats) {
  const ValueId count = g.iota(DType::I32, {2, 3}, 1);
  EXPECT_EQ(g.known_ints(count), (std::vector<std::int64_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(g.known_ints(g.add(count, g.like(count, 5))),
            (std::vector<std::int64_t>{5, 6, 7, 5, 6, 7}));
  const ValueId floats = g.cast(count, DType::F32);
  EXPECT_TRUE(is<CastOp>(floats));
  ASSERT_TRUE(g.known(floats).has_value());
  EXPECT_EQ(doubles(*g.known(floats)), (std::vector<double>{0, 1, 2, 0, 1, 2}));
}

TEST_F(GraphBuilderTest, LargeIntegerArithmeticStays) {
  const ValueId limit = g.constant(Tensor::splat({4096}, Scalar::of_int(DType::I32, 1)));
  EXPECT_TRUE(is<ConstantOp>(g.add(limit, limit)));
  const ValueId above = g.constant(Tensor::splat({4097}, Scalar::of_int(DType::I32, 1)));
  EXPECT_TRUE(is<MapOp>(g.add(above, above)));
  EXPECT_FALSE(g.known(g.add(above, above)).has_value());
}

TEST_F(GraphBuilderTest, SplatsFoldAtAnySize) {
  const Scalar two = Scalar::of_float(DType::F32, 2);
  const ValueId big = g.splat(two, {100, 100});
  const ValueId sum = g.add(big, g.like(big, 3));
  ASSERT_TRUE(is<ViewOp>(sum));
  EXPECT_EQ(text(g[sum].inputs[0]), "constant f32[] {5}");
  EXPECT_EQ(g.shape(sum), (Shape{100, 100}));
  const ValueId flag = g.cast(big, DType::Bool);
  EXPECT_EQ(text(g[flag].inputs[0]), "constant bool[] {true}");
}

TEST_F(GraphBuilderTest, APaddedScalarIsNoSplat) {
  const std::int64_t one[] = {1};
  const ValueId padded = g.pad(i64s({3}), one, one, Scalar::of_int(DType::I64, 9));
  EXPECT_EQ(text(g.add(padded, g.like(padded, 1))), "constant i64[3] {10,4,10}");
}

TEST_F(GraphBuilderTest, FloatsFoldOnlyWhereTheirBitsAreCertain) {
  const ValueId x = f32s({1, 2});
  EXPECT_EQ(text(g.div(g.like(x, 1), f32s({3, 4}))), "constant f32[2] {0.33333334,0.25}");
  EXPECT_EQ(text(g.map(ScalarOp::Sqrt, f32s({2, 4}))), "constant f32[2] {1.4142135,2}");
  EXPECT_EQ(text(g.map(ScalarOp::Lt, x, f32s({2, 2}))), "constant bool[2] {true,false}");
  EXPECT_TRUE(is<MapOp>(g.map(ScalarOp::Exp, x)));
  EXPECT_TRUE(is<MapOp>(g.div(f32s({0, 1}), f32s({0, 1}))));  // a NaN
  EXPECT_TRUE(is<ReduceNodeOp>(g.reduce(ReduceOp::Sum, x, {0}, false)));
  const ValueId half = g.cast(x, DType::F16);
  EXPECT_EQ(text(half), "constant f16[2] {1,2}");
  EXPECT_TRUE(is<MapOp>(g.add(half, half)));
  EXPECT_FALSE(g.known(g.map(ScalarOp::Exp, x)).has_value());
}

TEST_F(GraphBuilderTest, GatherOfAKnownIndexIsAView) {
  const ValueId x = input({3, 8});
  const ValueId scalar = g.constant(Tensor::splat({}, Scalar::of_int(DType::I64, -1)));
  EXPECT_EQ(text(g.gather(x, scalar, 0)), "view f32[8] %0 [2,a0]");
  EXPECT_EQ(text(g.gather(x, i64s({6, 4, 2}), 1)), "view f32[3,3] %0 [a0,-2*a1+6]");
  // Unequal steps stay a gather, but the range is proved and negative indices are gone.
  const ValueId uneven = g.gather(x, i64s({6, 4, -7}), 1);
  ASSERT_TRUE(is<GatherOp>(uneven));
  EXPECT_TRUE(std::get<GatherOp>(g[uneven].op).in_range);
  EXPECT_EQ(g.known_ints(g[uneven].inputs[1]), (std::vector<std::int64_t>{6, 4, 1}));
  const ValueId outside = g.gather(x, i64s({8}), 1);
  ASSERT_TRUE(is<GatherOp>(outside));
  EXPECT_FALSE(std::get<GatherOp>(g[outside].op).in_range);
  const ValueId square = g.reshape(i64s({0, 1, 2, 3}), {2, 2});
  EXPECT_TRUE(is<GatherOp>(g.gather(x, square, 1)));  // one view axis cannot be two
  EXPECT_EQ(text(g.gather(x, g.reshape(i64s({5}), {1, 1}), 1)), "view f32[3,1,1] %0 [a0,5]");
  // The frame must report it even if the data is known.
  EXPECT_TRUE(is<GatherOp>(g.gather(i64s({1, 2}), i64s({2}), 0)));
}

// --- contractions

TEST_F(GraphBuilderTest, ConvolutionForms) {
  const ValueId x = input({1, 4, 8, 8});
  const GraphBuilder::Convolution same{{1, 1}, {1, 1}, {1, 1}, {8, 8}, 1};
  EXPECT_EQ(text(g.convolution(x, input({6, 4, 3, 3}), same)),
            "contract f32[1,6,8,8] %0 %1 extents=[1,6,8,8|4,3,3] output=[a0,a1,a2,a3] "
            "reads=[a0,a4,a2+a5-1,a3+a6-1] reads=[a1,a4,a5,a6]");
  GraphBuilder::Convolution grouped{{2, 2}, {1, 2}, {0, 1}, {3, 3}, 2};
  EXPECT_EQ(text(g.convolution(x, input({6, 2, 3, 3}), grouped)),
            "contract f32[1,6,3,3] %0 %4 extents=[1,2,3,3,3|2,3,3] output=[a0,3*a1+a2,a3,a4] "
            "reads=[a0,2*a1+a5,2*a3+a6,2*a4+2*a7-1] reads=[a1,a2,a5,a6,a7]");
  EXPECT_EQ(text(ValueId{4}), "reshape f32[2,3,2,3,3] %3");
  GraphBuilder::Convolution depthwise = same;
  depthwise.groups = 4;
  EXPECT_EQ(text(g.convolution(x, input({4, 1, 3, 3}), depthwise)),
            "contract f32[1,4,8,8] %0 %6 extents=[1,4,8,8|3,3] output=[a0,a1,a2,a3] "
            "reads=[a0,a1,a2+a4-1,a3+a5-1] reads=[a1,0,a4,a5]");
}

TEST_F(GraphBuilderTest, MatmulForms) {
  const ValueId a = input({5, 1, 2, 3});
  const ValueId b = input({4, 3, 6});
  EXPECT_EQ(text(g.matmul(a, b)),
            "contract f32[5,4,2,6] %0 %1 extents=[5,4,2,6|3] output=[a0,a1,a2,a3] "
            "reads=[a0,0,a2,a4] reads=[a1,a4,a3]");
  const ValueId v = input({3});
  EXPECT_EQ(text(g.matmul(v, v)),
            "contract f32[] %3 %3 extents=[|3] output=[] reads=[a0] reads=[a0]");
  EXPECT_EQ(g.shape(g.matmul(a, v)), (Shape{5, 1, 2}));
  EXPECT_EQ(g.shape(g.matmul(v, b)), (Shape{4, 6}));
}

TEST_F(GraphBuilderTest, CompositionsShareTheirParts) {
  const ValueId x = input({2, 3});
  const ValueId first = g.softmax(x, 1);
  const std::size_t nodes = g.graph().nodes.size();
  EXPECT_EQ(g.softmax(x, 1), first);
  EXPECT_EQ(g.graph().nodes.size(), nodes);
}

// --- splicing

TEST_F(GraphBuilderTest, SpliceBindsByNameAndFoldsAgain) {
  GraphBuilder inner("inner");
  const ValueId a = inner.input("a", DType::I64, {2});
  const ValueId b = inner.input("b", DType::I64, {2});
  inner.set_strict(true);
  inner.set_source("inner node");
  const ValueId sum = inner.add(a, b);
  const ValueId product = inner.mul(sum, inner.like(sum, 3));

  const GraphBuilder::Binding known[] = {{"a", i64s({1, 2})}, {"b", i64s({10, 20})}};
  const auto folded = g.splice(inner.graph(), known);
  EXPECT_EQ(g.known_ints(folded[product.index]), (std::vector<std::int64_t>{33, 66}));

  const GraphBuilder::Binding half[] = {{"a", i64s({1, 2})}};
  const auto values = g.splice(inner.graph(), half);
  ASSERT_TRUE(is<InputOp>(values[b.index]));
  EXPECT_EQ(std::get<InputOp>(g[values[b.index]].op).name, "b");
  EXPECT_TRUE(g[values[sum.index]].strict);
  EXPECT_EQ(g[values[sum.index]].source, "inner node");
  EXPECT_FALSE(g.strict());
}

TEST_F(GraphBuilderTest, SpliceOfEveryOperation) {
  GraphBuilder inner("inner");
  const ValueId x = inner.input("x", DType::F32, {1, 2, 4, 4});
  const ValueId w = inner.constant(Tensor::splat({2, 2, 1, 1}, Scalar::of_float(DType::F32, 0.5)));
  const ValueId y = inner.convolution(x, w, {{1, 1}, {1, 1}, {0, 0}, {4, 4}, 1});
  const ValueId index = inner.input("i", DType::I32, {3});
  const ValueId chosen = inner.gather(inner.reshape(y, {32}), index, 0);
  const ValueId parts[] = {chosen, inner.cast(inner.iota(DType::I32, {3}, 0), DType::F32)};
  inner.output("y", inner.reduce(ReduceOp::Max, inner.concat(parts, 0), {0}, true));
  const std::string before = print_graph(inner.graph());

  GraphBuilder copy("inner");
  const auto values = copy.splice(inner.graph(), {});
  copy.output("y", values[inner.graph().outputs[0].value.index]);
  EXPECT_EQ(print_graph(copy.graph()), before);
}

TEST_F(GraphBuilderTest, Broadcasting) {
  EXPECT_EQ(broadcast_shapes({2, 1, 3}, {4, 1}), (Shape{2, 4, 3}));
  EXPECT_EQ(broadcast_shapes({}, {0, 2}), (Shape{0, 2}));
  EXPECT_EQ(broadcast_shapes({1}, {0}), (Shape{0}));
  EXPECT_EQ(broadcast_shapes({2}, {3}), std::nullopt);
  const ValueId x = input({2, 3});
  const ValueId y = input({3});
  const ValueId sum = g.add(x, y);
  EXPECT_EQ(g[sum].inputs[0], x);
  EXPECT_EQ(text(g[sum].inputs[1]), "view f32[2,3] %1 [a1]");
}

}  // namespace
}  // namespace ingot
