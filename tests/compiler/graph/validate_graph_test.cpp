#include <gtest/gtest.h>

#include "compiler/graph/graph.h"

namespace ingot {
namespace {

// The rule that the text breaks; the lines stand inside a graph with two inputs.
std::string broken_rule(const std::string& lines) {
  const std::string text =
      "graph \"g\" {\n%0 = input f32[2,3] \"x\"\n%1 = input i32[2] \"i\"\n" + lines + "\n}\n";
  const auto graph = parse_graph(text);
  if (!graph) return graph.error().diagnostics[0].message;
  const auto valid = validate_graph(*graph);
  if (valid) return "none";
  EXPECT_EQ(valid.error().exit, ExitCode::Internal);
  const std::string message = valid.error().diagnostics[0].message;
  return message.substr(message.find("broken rule: ") + 13);
}

TEST(ValidateGraph, NamesGraphNodeAndRule) {
  const auto graph = parse_graph("graph \"g\" {\n%0 = input f32[2] \"x\"\n%1 = cast f32[3] %0\n}");
  ASSERT_TRUE(graph.has_value());
  const auto valid = validate_graph(*graph);
  ASSERT_FALSE(valid.has_value());
  EXPECT_EQ(valid.error().diagnostics[0].message,
            "graph 'g', %1: broken rule: a cast has its operand's shape");
}

TEST(ValidateGraph, Leaves) {
  EXPECT_EQ(broken_rule(""), "none");
  EXPECT_EQ(broken_rule("%2 = input f32[2] \"x\""), "an input has a name of its own");
  EXPECT_EQ(broken_rule("%2 = input f32[2] \"\""), "an input has a name");
  EXPECT_EQ(broken_rule("%2 = input f32[2] %0 \"y\""), "this operation has 0 operands");
  EXPECT_EQ(broken_rule("%2 = iota f32[2] axis=0"), "an iota has an integer type");
  EXPECT_EQ(broken_rule("%2 = iota i32[2] axis=1"), "an iota has its axis");
  EXPECT_EQ(broken_rule("%2 = iota i32[2] axis=-1"), "an iota has its axis");
}

TEST(ValidateGraph, ConstantsAgreeWithTheirTensor) {
  auto graph = parse_graph("graph \"g\" {\n%0 = constant u8[2] {1,2}\n}");
  ASSERT_TRUE(graph.has_value());
  EXPECT_TRUE(validate_graph(*graph).has_value());
  graph->nodes[0].shape = {1};
  EXPECT_FALSE(validate_graph(*graph).has_value());
}

TEST(ValidateGraph, OnlyEarlierValues) {
  auto graph = parse_graph("graph \"g\" {\n%0 = input f32[2] \"x\"\n%1 = cast i32[2] %0\n}");
  ASSERT_TRUE(graph.has_value());
  graph->nodes[1].inputs[0] = ValueId{1};
  EXPECT_FALSE(validate_graph(*graph).has_value());
  graph->nodes[1].inputs[0] = ValueId{};
  EXPECT_FALSE(validate_graph(*graph).has_value());
}

TEST(ValidateGraph, Maps) {
  EXPECT_EQ(broken_rule("%2 = map.add f32[2,3] %0 %0"), "none");
  EXPECT_EQ(broken_rule("%2 = map.add f32[2,3] %0"), "this operation has 2 operands");
  EXPECT_EQ(broken_rule("%2 = map.add f32[3,2] %0 %0"), "the operands of a map have its shape");
  EXPECT_EQ(broken_rule("%2 = map.add i32[2] %1 %0"), "the operands of a map have one type");
  EXPECT_EQ(broken_rule("%2 = map.sqrt i32[2] %1"), "a map accepts its operands' type");
  EXPECT_EQ(broken_rule("%2 = map.lt i32[2] %1 %1"),
            "a map has the type of its last operand, a comparison bool");
  EXPECT_EQ(broken_rule("%2 = map.lt bool[2] %1 %1\n%3 = map.select i32[2] %2 %1 %1"), "none");
  EXPECT_EQ(broken_rule("%2 = map.select i32[2] %1 %1 %1"), "the operands of a map have one type");
}

TEST(ValidateGraph, Movement) {
  EXPECT_EQ(broken_rule("%2 = view f32[3,2] %0 [a1,a0]"), "none");
  EXPECT_EQ(broken_rule("%2 = view f32[3,2] %0 [a0,a1]"),
            "a view without a fill stays within its operand");
  EXPECT_EQ(broken_rule("%2 = view f32[3,2] %0 [a0,a1] fill 0"), "none");
  EXPECT_EQ(broken_rule("%2 = view f32[2,3] %0 [a0,(a1)/2]"),
            "a view without a fill stays within its operand");
  EXPECT_EQ(broken_rule("%2 = view f32[2] %0 [a0]"), "a view has an index per dimension");
  EXPECT_EQ(broken_rule("%2 = view f32[2] %0 [a0,a1]"), "an index is well-formed");
  EXPECT_EQ(broken_rule("%2 = view i32[2,3] %0 [a0,a1]"), "a view has its operand's type");
  EXPECT_EQ(broken_rule("%2 = reshape f32[6] %0"), "none");
  EXPECT_EQ(broken_rule("%2 = reshape f32[5] %0"),
            "a reshape has its operand's number of elements");
  EXPECT_EQ(broken_rule("%2 = concat f32[2,6] %0 %0 axis=1"), "none");
  EXPECT_EQ(broken_rule("%2 = concat f32[2,5] %0 %0 axis=1"), "the operands of a concat add up");
  EXPECT_EQ(broken_rule("%2 = concat f32[3,6] %0 %0 axis=1"),
            "the operands of a concat fit but for the axis");
  EXPECT_EQ(broken_rule("%2 = concat f32[2,6] %0 %0 axis=2"), "a concat has its axis");
}

TEST(ValidateGraph, Reductions) {
  EXPECT_EQ(broken_rule("%2 = reduce.sum f32[2] %0 axes=[1]"), "none");
  EXPECT_EQ(broken_rule("%2 = reduce.sum f32[] %0 axes=[0,1]"), "none");
  EXPECT_EQ(broken_rule("%2 = reduce.sum f32[3] %0 axes=[1]"), "a reduction drops its axes");
  EXPECT_EQ(broken_rule("%2 = reduce.sum f32[] %0 axes=[1,0]"),
            "a reduction has sorted axes of its operand");
  EXPECT_EQ(broken_rule("%2 = reduce.sum f32[3] %0 axes=[0,0]"),
            "a reduction has sorted axes of its operand");
  EXPECT_EQ(broken_rule("%2 = reduce.sum f32[2,3] %0 axes=[2]"),
            "a reduction has sorted axes of its operand");
  EXPECT_EQ(broken_rule("%2 = map.lt bool[2] %1 %1\n%3 = reduce.sum bool[] %2 axes=[0]"),
            "a reduction of bool is max or min");
}

TEST(ValidateGraph, Contractions) {
  const auto contraction = [](const std::string& type, const std::string& rest) {
    return broken_rule("%2 = contract " + type + " %0 %0 " + rest);
  };
  EXPECT_EQ(contraction("f32[2,2]", "extents=[2,2|3] output=[a0,a1] reads=[a0,a2] reads=[a1,a2]"),
            "none");
  EXPECT_EQ(contraction("f32[4]", "extents=[2,2|3] output=[2*a0+a1] reads=[a0,a2] reads=[a1,a2]"),
            "none");
  for (const char* output : {"a0+a1", "a0+3*a1", "2*a0+a1+1", "2*a0", "4*a0+2*a1"}) {
    EXPECT_EQ(contraction("f32[4]", std::string("extents=[2,2|3] output=[") + output +
                                        "] reads=[a0,a2] reads=[a1,a2]"),
              "a contraction hits each output once")
        << output;
  }
  EXPECT_EQ(contraction("f32[2,2]", "extents=[2,2|3] output=[a0,a0] reads=[a0,a2] reads=[a1,a2]"),
            "a contraction hits each output once");
  EXPECT_EQ(contraction("f32[2,3]", "extents=[2,2|3] output=[a0,a2] reads=[a0,a2] reads=[a1,a2]"),
            "an output index is over output axes");
  EXPECT_EQ(contraction("f32[2,2]", "extents=[2,2|3] output=[a0,a1] reads=[a0,a2]"),
            "a contraction indexes each operand");
  EXPECT_EQ(contraction("f32[2,2]", "extents=[2,2|3] output=[a0,a1] reads=[a0] reads=[a1,a2]"),
            "a contraction has an index per dimension");
  EXPECT_EQ(contraction("f32[2,2]", "extents=[2,2|3] output=[a0,a1] reads=[a0,a3] reads=[a1,a2]"),
            "an index is well-formed");
}

TEST(ValidateGraph, Gathers) {
  EXPECT_EQ(broken_rule("%2 = gather f32[2,2] %0 %1 axis=1"), "none");
  EXPECT_EQ(broken_rule("%2 = gather f32[2,3] %0 %1 axis=1"),
            "a gather replaces its axis by the index's dimensions");
  EXPECT_EQ(broken_rule("%2 = gather f32[2,2] %0 %0 axis=1"), "an index is i32 or i64");
  EXPECT_EQ(broken_rule("%2 = gather f32[2,2] %0 %1 axis=2"), "a gather has its axis");
  EXPECT_EQ(broken_rule("%2 = input f32[0] \"e\"\n%3 = gather f32[2] %2 %1 axis=0"),
            "a gather has data");
}

TEST(ValidateGraph, Declarations) {
  EXPECT_EQ(broken_rule("output \"y\" %0\noutput \"z\" %0"), "none");
  EXPECT_EQ(broken_rule("output \"y\" %0\noutput \"y\" %1"), "an output has a name of its own");
  EXPECT_EQ(broken_rule("%2 = map.neg f32[2,3] %0\nstate %0 next %2"), "none");
  EXPECT_EQ(broken_rule("%2 = map.neg f32[2,3] %0\nstate %2 next %0"), "a state is an input");
  EXPECT_EQ(broken_rule("state %0 next %0\nstate %0 next %0"), "a state has one next");
  EXPECT_EQ(broken_rule("state %0 next %1"), "a state keeps its type");
  const auto ring = [](const std::string& place, const std::string& next) {
    return broken_rule("%2 = input " + place + " \"p\"\n%3 = view " + next +
                       " %0 [a0,a1]\nstate %0 next %3 entry %2");
  };
  EXPECT_EQ(ring("i64[1]", "f32[1,3]"), "none");
  EXPECT_EQ(ring("i64[1]", "f32[2,3]"), "a state keeps its type");
  EXPECT_EQ(ring("i64[2]", "f32[1,3]"), "an input of one i64 says which entry of a ring is next");
  EXPECT_EQ(ring("i32[1]", "f32[1,3]"), "an input of one i64 says which entry of a ring is next");
  EXPECT_EQ(broken_rule("%2 = input u8[9] \"c\"\n%3 = input f32[9] \"m\"\n"
                        "transform %3 offset=0 width=2 height=2 frame %2\ncamera %2 index=0"),
            "none");
  EXPECT_EQ(broken_rule("%2 = input u8[9] \"c\"\n%3 = input f32[9] \"m\"\n"
                        "transform %3 offset=4 width=2 height=2 frame %2"),
            "a matrix lies within its input");
  EXPECT_EQ(broken_rule("%2 = input u8[9] \"c\"\n"
                        "transform %1 offset=0 width=2 height=2 frame %2"),
            "a matrix is f32");
  EXPECT_EQ(broken_rule("camera %0 index=0"), "a camera is bytes in one dimension");
}

}  // namespace
}  // namespace ingot
