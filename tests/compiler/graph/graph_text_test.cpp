#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "compiler/graph/builder.h"
#include "compiler/graph/graph.h"

namespace ingot {
namespace {

// The text as it is printed, with everything there is.
constexpr std::string_view kEverything = R"(graph "demo \"1\"\x0a" {
  %0 = input f32[1,3,8,8] "x"
  %1 = constant f32[2,1,3,3] {0,1,2,3,-0,5,6,inf,nan,0.1,1.5,2.5,3.5,1e-08,nan:fff8000000000000,6.5,7.5,8.5}
  %2 = constant bool[2] {true,false}
  %3 = constant u64[0] {}
  %4 = iota i32[8] axis=0
  %5 = cast f32[8] %4 source "node 'a'"
  %6 = map.add f32[8] %5 %5 strict source "b"
  %7 = view f32[4,8] %6 [a1]
  %8 = view f32[9] %6 [(a0-1)/2] fill -inf
  %9 = reshape f32[32] %7
  %10 = concat f32[41] %8 %9 axis=0
  %11 = reduce.max f32[] %10 axes=[0]
  %12 = view f32[1,1,8,8] %0 [a0,1,a2,-a3+7]
  %13 = contract f32[1,2,6,6] %12 %1 extents=[1,2,6,6|3,3] output=[a0,a1,a2,a3] reads=[a0,0,a2+a4,a3+a5] reads=[a1,0,a4,a5]
  %14 = gather f32[1,2,6,8] %13 %4 axis=3
  %15 = gather f32[1,2,6,8] %13 %4 axis=3 in_range strict
  %16 = input f32[41] "s"
  %17 = input u8[64] "camera"
  %18 = input f32[3,41] "r"
  %19 = input i64[1] "p"
  %20 = reshape f32[1,41] %10
  output "y" %13
  output "z" %11
  state %16 next %10
  state %18 next %20 entry %19
  transform %0 offset=4 width=640 height=480 cabin frame %17
  transform %0 offset=0 width=1 height=1 frame %17
  camera %17 index=2
}
)";

std::string parse_error(std::string_view text) {
  const auto graph = parse_graph(text);
  return graph ? "no error" : graph.error().diagnostics[0].message;
}

TEST(GraphText, ComesBackAsItWas) {
  const auto graph = parse_graph(kEverything);
  ASSERT_TRUE(graph.has_value()) << to_line(graph.error().diagnostics[0]);
  EXPECT_EQ(print_graph(*graph), kEverything);
  const auto valid = validate_graph(*graph);
  EXPECT_TRUE(valid.has_value()) << to_line(valid.error().diagnostics[0]);
}

TEST(GraphText, SpacesAndWholeLineCommentsAreFree) {
  const auto graph =
      parse_graph("\n; a comment\ngraph \"g\" {\n%0=input  f32[ 2 , 3 ] \"x\"\r\n  ; another\n\n}");
  ASSERT_TRUE(graph.has_value()) << to_line(graph.error().diagnostics[0]);
  EXPECT_EQ(graph->nodes[0].shape, (Shape{2, 3}));
  EXPECT_EQ(parse_error("graph \"g\" {\n%0 = input f32[2] \"x\" ; not here\n}"),
            "line 2: expected nothing more on this line");
}

TEST(GraphText, LargeConstantsAreDigests) {
  GraphBuilder builder("g");
  const Tensor large = Tensor::splat({65}, Scalar::of_int(DType::U8, 3));
  builder.output("y", builder.constant(large));
  const std::string text = print_graph(builder.graph());
  EXPECT_NE(text.find("#" + digest(large)), std::string::npos) << text;

  EXPECT_EQ(parse_error(text), "line 2: expected the digest of a constant that was passed");
  const auto graph = parse_graph(text, {{digest(large), large}});
  ASSERT_TRUE(graph.has_value());
  EXPECT_EQ(print_graph(*graph), text);
}

TEST(GraphText, DigestsDependOnTypeAndBytes) {
  const Tensor bytes = Tensor::splat({4}, Scalar::of_int(DType::U8, 0));
  EXPECT_NE(digest(bytes), digest(Tensor::splat({1}, Scalar::of_int(DType::U32, 0))));
  EXPECT_NE(digest(bytes), digest(Tensor::splat({2, 2}, Scalar::of_int(DType::U8, 0))));
  EXPECT_NE(digest(bytes), digest(Tensor::splat({4}, Scalar::of_int(DType::U8, 1))));
  EXPECT_EQ(digest(bytes), digest(Tensor::splat({4}, Scalar::of_int(DType::U8, 0))));
}

TEST(GraphText, ErrorsNameLineAndExpectation) {
  const auto in_graph = [](const std::string& line) {
    return parse_error("graph \"g\" {\n%0 = input f32[4] \"x\"\n" + line + "\n}\n");
  };
  EXPECT_EQ(in_graph("%1 = cast i32[4] %0"), "no error");
  EXPECT_EQ(in_graph("%2 = cast i32[4] %0"), "line 3: expected '%1 = ...'");
  EXPECT_EQ(in_graph("%1 = cast f33[4] %0"), "line 3: expected a type such as f32[1,8]");
  EXPECT_EQ(in_graph("%1 = cast f32[-4] %0"), "line 3: expected a shape that fits memory");
  EXPECT_EQ(in_graph("%1 = cast f32[9999999999,9999999999] %0"),
            "line 3: expected a shape that fits memory");
  EXPECT_EQ(in_graph("%1 = cast f32[4] %1"), "line 3: expected a value defined before");
  EXPECT_EQ(in_graph("%1 = cast f32[4] %0 strict x"), "line 3: expected nothing more on this line");
  EXPECT_EQ(in_graph("%1 = map.pow f32[4] %0 %0"),
            "line 3: expected a scalar operation after 'map.'");
  EXPECT_EQ(in_graph("%1 = frobnicate f32[4] %0"), "line 3: expected an operation");
  EXPECT_EQ(in_graph("%1 = view f32[4] %0 [b0]"), "line 3: expected the indices of a view");
  EXPECT_EQ(in_graph("%1 = view f32[4] %0 [a0] fill x"), "line 3: expected a fill of type f32");
  EXPECT_EQ(in_graph("%1 = constant u8[2] {1,256}"), "line 3: expected an element of type u8");
  EXPECT_EQ(in_graph("%1 = constant u8[2] {1}"),
            "line 3: expected as many elements as the shape has");
  EXPECT_EQ(in_graph("%1 = constant u8[1] {1,2}"),
            "line 3: expected as many elements as the shape has");
  EXPECT_EQ(in_graph("output \"y\" %7"), "line 3: expected a quoted name and a value");
  EXPECT_EQ(in_graph("}\nmore"), "line 4: expected the end of the text");
  EXPECT_EQ(parse_error("graph \"g\" {\n"), "line 1: expected a closing brace");
  EXPECT_EQ(parse_error("module"), "line 1: expected 'graph \"NAME\" {'");
}

TEST(GraphText, TheDocumentedExampleIsReal) {
  GraphBuilder builder("example");
  const ValueId image = builder.input("image", DType::F32, {1, 3, 8, 8});
  const ValueId weights =
      builder.constant(Tensor::splat({4, 3, 3, 3}, Scalar::of_float(DType::F32, 0.125)));
  builder.set_source("conv1");
  const ValueId product = builder.convolution(image, weights, {{1, 1}, {1, 1}, {1, 1}, {8, 8}, 1});
  builder.set_source("");
  const double values[] = {0.5, -0.25, 0, 1};
  const ValueId bias = builder.constant(Tensor::of_floats(DType::F32, {4}, values));
  builder.set_source("conv1");
  const ValueId sum =
      builder.add(product, builder.view(bias, {1, 4, 8, 8}, {AffineIndex::of_axis(1)}));
  builder.set_source("");
  const ValueId zero = builder.like(sum, 0);
  builder.set_source("relu1");
  builder.output("features", builder.max(sum, zero));
  ASSERT_TRUE(validate_graph(builder.graph()).has_value());

  std::ifstream file(INGOT_GRAPH_PAGE);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::string text = print_graph(builder.graph());
  EXPECT_NE(page.find("```\n" + text + "```"), std::string::npos) << text;
}

}  // namespace
}  // namespace ingot
