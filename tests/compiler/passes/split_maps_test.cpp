#include "compiler/passes/split_maps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>

#include "compiler/compile.h"
#include "compiler/graph/builder.h"
#include "compiler/plan/plan.h"
#include "tests/support/graph_interpreter.h"

namespace ingot {
namespace {

constexpr std::int64_t kFirst = 2, kSecond = 3;

struct Network {
  GraphBuilder b{"g"};
  ValueId x = b.input("x", DType::U8, {1, kFirst, 4});
  ValueId y = b.input("y", DType::U8, {1, kSecond, 4});
  ValueId constant(const Shape& shape) {
    return b.constant(
        Tensor::own(DType::F32, shape, generate_input("c", DType::F32, shape, 1, 1, 2)));
  }
  ValueId neg(ValueId value) { return b.map(ScalarOp::Neg, value); }
  ValueId exp(ValueId value) { return b.map(ScalarOp::Exp, value); }
  ValueId joined(ValueId first, ValueId second) { return b.concat(std::array{first, second}, 1); }
};

std::ptrdiff_t concatenations(const Graph& graph) {
  return std::ranges::count_if(
      graph.nodes, [](const Node& node) { return std::holds_alternative<ConcatOp>(node.op); });
}

bool a_map_reads_a_concatenation(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    return std::holds_alternative<MapOp>(node.op) &&
           std::ranges::any_of(node.inputs, [&](ValueId input) {
             return std::holds_alternative<ConcatOp>(graph[input].op);
           });
  });
}

void expect_same(const Graph& graph, const Graph& split) {
  const auto valid = validate_graph(split);
  ASSERT_TRUE(valid) << to_line(valid.error().diagnostics[0]) << print_graph(split);
  NamedTensors inputs;
  for (const Node& node : graph.nodes) {
    const auto* input = std::get_if<InputOp>(&node.op);
    if (input == nullptr) continue;
    inputs.emplace(input->name,
                   Tensor::own(node.dtype, node.shape,
                               generate_input(input->name, node.dtype, node.shape, 3, 0, 200)));
  }
  const NamedTensors wanted = interpret_outputs(graph, inputs);
  const NamedTensors got = interpret_outputs(split, inputs);
  for (const auto& [name, tensor] : wanted) {
    EXPECT_TRUE(std::ranges::equal(tensor.bytes, got.at(name).bytes)) << name;
  }
}

Graph made(const std::function<ValueId(Network&)>& make) {
  Network network;
  network.b.output("out", make(network));
  return network.b.take();
}

TEST(SplitMaps, MapsGoToTheParts) {
  const Graph graph = made([](Network& n) {
    const ValueId wide = n.joined(n.b.cast(n.x, DType::I64), n.b.cast(n.y, DType::I64));
    const ValueId scaled = n.b.div(n.b.cast(wide, DType::F32), n.constant({1, 5, 4}));
    return n.b.sub(scaled, n.b.like(scaled, 7));
  });
  const Graph split = split_maps(graph);
  EXPECT_FALSE(a_map_reads_a_concatenation(split)) << print_graph(split);
  EXPECT_EQ(concatenations(split), 1);
  expect_same(graph, split);
  // A kernel for each part, which writes where the whole lies.
  const Plan plan = make_plan(split, default_target(), PlanOptions{}).value();
  EXPECT_EQ(plan.kernels.size(), 2U) << print_plan(plan);
}

TEST(SplitMaps, TwoConcatenationsOfEqualAndOfOtherParts) {
  for (const bool equal : {true, false}) {
    const Graph graph = made([&](Network& n) {
      const ValueId x = n.b.cast(n.x, DType::F32), y = n.b.cast(n.y, DType::F32);
      const ValueId first = n.joined(n.neg(x), n.exp(y));
      const ValueId second = equal ? n.joined(n.exp(x), n.neg(y)) : n.joined(n.neg(y), n.exp(x));
      return n.b.add(first, second);
    });
    const Graph split = split_maps(graph);
    EXPECT_EQ(concatenations(split), equal ? 1 : 2) << print_graph(split);
    expect_same(graph, split);
  }
}

// Each map waits for the concatenation of the other.
TEST(SplitMaps, MapsOfTwoConcatenationsMeet) {
  const Graph graph = made([](Network& n) {
    const ValueId first = n.joined(n.b.cast(n.x, DType::F32), n.b.cast(n.y, DType::F32));
    const ValueId second =
        n.joined(n.exp(n.b.cast(n.x, DType::F32)), n.exp(n.b.cast(n.y, DType::F32)));
    return n.b.add(n.neg(first), n.b.map(ScalarOp::Sqrt, second));
  });
  // Casts of one input are one node, which two read.
  const Graph again = made([](Network& n) {
    const ValueId u = n.b.input("u", DType::F32, {1, kFirst, 4});
    const ValueId v = n.b.input("v", DType::F32, {1, kSecond, 4});
    const ValueId joined = n.joined(u, v);
    const ValueId other = n.joined(n.exp(u), n.exp(v));
    return n.b.add(n.neg(joined), n.b.map(ScalarOp::Sqrt, other));
  });
  EXPECT_TRUE(a_map_reads_a_concatenation(split_maps(graph)));
  const Graph split = split_maps(again);
  EXPECT_FALSE(a_map_reads_a_concatenation(split)) << print_graph(split);
  EXPECT_EQ(print_graph(split_maps(split)), print_graph(split));
  expect_same(graph, split_maps(graph));
  expect_same(again, split);
}

TEST(SplitMaps, OnePartTwiceAndAPartOfNothing) {
  const Graph graph = made([](Network& n) {
    n.b.set_strict(true);
    const ValueId u = n.b.input("u", DType::F32, {1, kFirst, 4});
    const ValueId none = n.b.input("none", DType::F32, {1, 0, 4});
    const ValueId whole = n.b.concat(std::array{u, none, u}, 1);
    return n.b.mul(whole, n.b.like(whole, 3));
  });
  const Graph split = split_maps(graph);
  EXPECT_FALSE(a_map_reads_a_concatenation(split)) << print_graph(split);
  EXPECT_TRUE(std::ranges::all_of(split.nodes, [](const Node& node) {
    return node.strict || !std::holds_alternative<MapOp>(node.op);
  }));
  expect_same(graph, split);
}

TEST(SplitMaps, WhatOthersReadOrAKernelMakesStaysWhole) {
  const std::function<ValueId(Network&)> cases[] = {
      [](Network& n) {  // another reader of the whole
        const ValueId whole = n.joined(n.b.cast(n.x, DType::F32), n.b.cast(n.y, DType::F32));
        n.b.output("whole", whole);
        return n.exp(whole);
      },
      [](Network& n) {  // of a part that is no input
        const ValueId part = n.exp(n.b.cast(n.x, DType::F32));
        n.b.output("part", part);
        return n.exp(n.joined(part, n.b.cast(n.y, DType::F32)));
      },
      [](Network& n) {  // the map belongs to the product
        const ValueId whole = n.joined(n.b.cast(n.x, DType::F32), n.b.cast(n.y, DType::F32));
        const ValueId product = n.b.matmul(n.constant({1, 5, 6}), n.constant({1, 6, 4}));
        const ValueId other = n.b.matmul(n.b.cast(n.b.input("z", DType::U8, {1, 5, 6}), DType::F32),
                                         n.constant({1, 6, 4}));
        return n.b.add(n.b.mul(whole, n.b.add(product, other)), product);
      }};
  for (const auto& make : cases) {
    const Graph graph = made(make);
    const Graph split = split_maps(graph);
    EXPECT_TRUE(a_map_reads_a_concatenation(split)) << print_graph(split);
    expect_same(graph, split);
  }
}

}  // namespace
}  // namespace ingot
