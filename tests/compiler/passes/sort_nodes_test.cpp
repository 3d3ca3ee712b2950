#include "compiler/passes/sort_nodes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "compiler/compile.h"
#include "compiler/graph/builder.h"
#include "tests/support/graph_interpreter.h"

namespace ingot {
namespace {

std::string sorted_text(const std::string& text) {
  const auto result = run_pass("sort-nodes", text);
  EXPECT_TRUE(result) << to_line(result.error().diagnostics[0]);
  return result ? *result : "";
}

TEST(SortNodes, OperandsComeRightBeforeTheirReaderInItsOrder) {
  EXPECT_EQ(sorted_text("graph \"g\" {\n"
                        "%0 = constant f32[2] {3,4}\n"
                        "%1 = input f32[2] \"x\"\n"
                        "%2 = map.exp f32[2] %1 source \"late\"\n"
                        "%3 = map.sqrt f32[2] %1 source \"unused\"\n"
                        "%4 = input f32[2] \"unread\"\n"
                        "%5 = map.neg f32[2] %1 source \"first\"\n"
                        "%6 = map.add f32[2] %5 %0\n"
                        "%7 = map.sub f32[2] %6 %2\n"
                        "output \"y\" %7\n"
                        "output \"z\" %2\n"
                        "}\n"),
            "graph \"g\" {\n"
            "  %0 = input f32[2] \"x\"\n"
            "  %1 = input f32[2] \"unread\"\n"
            "  %2 = map.neg f32[2] %0 source \"first\"\n"
            "  %3 = constant f32[2] {3,4}\n"
            "  %4 = map.add f32[2] %2 %3\n"
            "  %5 = map.exp f32[2] %0 source \"late\"\n"
            "  %6 = map.sub f32[2] %4 %5\n"
            "  output \"y\" %6\n"
            "  output \"z\" %5\n"
            "}\n");
}

// q and v are all that is ever read of %1; in the second graph something else is, too.
TEST(SortNodes, ValuesThatAreOnlyMovedAreMovedAtOnce) {
  const std::string before =
      "graph \"g\" {\n"
      "%0 = input f32[4] \"x\"\n"
      "%1 = map.exp f32[4] %0\n"
      "%2 = view f32[2] %1 [a0]\n"
      "%3 = map.sin f32[2] %2\n"
      "%4 = view f32[2] %1 [a0+2]\n"
      "%5 = map.add f32[2] %3 %4\n"
      "output \"y\" %5\n";
  EXPECT_EQ(sorted_text(before + "}\n"),
            "graph \"g\" {\n"
            "  %0 = input f32[4] \"x\"\n"
            "  %1 = map.exp f32[4] %0\n"
            "  %2 = view f32[2] %1 [a0+2]\n"
            "  %3 = view f32[2] %1 [a0]\n"
            "  %4 = map.sin f32[2] %3\n"
            "  %5 = map.add f32[2] %4 %2\n"
            "  output \"y\" %5\n"
            "}\n");
  EXPECT_EQ(sorted_text(before + "%6 = map.neg f32[4] %1\noutput \"z\" %6\n}\n"),
            "graph \"g\" {\n"
            "  %0 = input f32[4] \"x\"\n"
            "  %1 = map.exp f32[4] %0\n"
            "  %2 = view f32[2] %1 [a0]\n"
            "  %3 = map.sin f32[2] %2\n"
            "  %4 = view f32[2] %1 [a0+2]\n"
            "  %5 = map.add f32[2] %3 %4\n"
            "  %6 = map.neg f32[4] %1\n"
            "  output \"y\" %5\n"
            "  output \"z\" %6\n"
            "}\n");
}

TEST(SortNodes, DeclarationsMoveWithTheirNodes) {
  const std::string text =
      "graph \"g\" {\n"
      "  %0 = input u8[64] \"frame\"\n"
      "  %1 = input f32[3,3] \"tfm\"\n"
      "  %2 = input f32[3,3] \"s\"\n"
      "  %3 = map.sqrt f32[3,3] %1\n"
      "  %4 = map.add f32[3,3] %1 %2\n"
      "  output \"y\" %3\n"
      "  state %2 next %4 initial {1,2,3,4,5,6,7,8,9}\n"
      "  transform %1 offset=0 width=4 height=2 frame %0\n"
      "  camera %0 index=1\n"
      "}\n";
  const auto graph = parse_graph(text);
  ASSERT_TRUE(graph) << to_line(graph.error().diagnostics[0]);
  EXPECT_EQ(print_graph(*graph), text);
  EXPECT_EQ(sorted_text(text), text);
  // The same with the inputs behind.
  EXPECT_EQ(sorted_text("graph \"g\" {\n"
                        "%0 = constant f32[3,3] {0,0,0,0,0,0,0,0,0}\n"
                        "%1 = input u8[64] \"frame\"\n"
                        "%2 = input f32[3,3] \"tfm\"\n"
                        "%3 = input f32[3,3] \"s\"\n"
                        "%4 = map.add f32[3,3] %2 %3\n"
                        "%5 = map.sqrt f32[3,3] %2\n"
                        "output \"y\" %5\n"
                        "state %3 next %4 initial {1,2,3,4,5,6,7,8,9}\n"
                        "transform %2 offset=0 width=4 height=2 frame %1\n"
                        "camera %1 index=1\n"
                        "}\n"),
            text);
}

// A random graph, and the numbers of its nodes in another order that works.
Graph random_graph(std::mt19937& random) {
  GraphBuilder b("random");
  std::vector<ValueId> values;
  for (const char* name : {"x", "y"}) values.push_back(b.input(name, DType::I32, {3}));
  for (int i = 0; i < 40; ++i) {
    const ValueId a = values[random() % values.size()], c = values[random() % values.size()];
    b.set_source("node" + std::to_string(i));
    const ScalarOp op = random() % 2 == 0 ? ScalarOp::Add : ScalarOp::Mul;
    const Shape shape = {3};
    switch (random() % 6) {
      case 0:
        values.push_back(
            b.add(a, b.constant(Tensor::splat(shape, Scalar::of_int(DType::I32, random() % 9)))));
        break;
      case 1:
        values.push_back(b.view(
            a, shape, {AffineIndex::of_axis(0, 1, static_cast<std::int64_t>(random() % 3) - 1)},
            Scalar::zero(DType::I32)));
        break;
      default: values.push_back(b.map(op, a, c));
    }
  }
  for (const char* name : {"p", "q", "r"}) b.output(name, values[2 + random() % 40]);
  b.state(values[1], values.back());
  return b.take();
}

Graph shuffled(const Graph& graph, std::mt19937& random) {
  std::vector<std::uint32_t> waiting(graph.nodes.size());
  std::iota(waiting.begin(), waiting.end(), 0U);
  std::vector<ValueId> place(graph.nodes.size());
  Graph result = graph;
  result.nodes.clear();
  // Inputs keep their order, as those of a file do.
  const auto add = [&](std::uint32_t i) {
    place[i] = ValueId{static_cast<std::uint32_t>(result.nodes.size())};
    Node node = graph.nodes[i];
    for (ValueId& input : node.inputs) input = place[input.index];
    result.nodes.push_back(std::move(node));
    std::erase(waiting, i);
  };
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
    if (std::holds_alternative<InputOp>(graph.nodes[i].op)) add(i);
  }
  while (!waiting.empty()) {
    std::ranges::shuffle(waiting, random);
    const auto ready = std::ranges::find_if(waiting, [&](std::uint32_t i) {
      return std::ranges::all_of(graph.nodes[i].inputs,
                                 [&](ValueId input) { return place[input.index].valid(); });
    });
    add(*ready);
  }
  for (GraphOutput& output : result.outputs) output.value = place[output.value.index];
  for (GraphState& state : result.states) {
    state.state = place[state.state.index];
    state.next = place[state.next.index];
    if (state.entry) state.entry = place[state.entry->index];
  }
  return result;
}

TEST(SortNodes, EveryOrderBecomesTheSame) {
  std::mt19937 random(5);
  int others = 0;
  for (int round = 0; round < 50; ++round) {
    const Graph graph = random_graph(random);
    const std::string expected = print_graph(sort_nodes(graph));
    for (int order = 0; order < 4; ++order) {
      const Graph other = shuffled(graph, random);
      ASSERT_TRUE(validate_graph(other));
      others += print_graph(other) != print_graph(graph) ? 1 : 0;
      const Graph sorted = sort_nodes(other);
      ASSERT_TRUE(validate_graph(sorted));
      EXPECT_EQ(print_graph(sorted), expected) << print_graph(other);
    }
    NamedTensors inputs;
    for (const char* name : {"x", "y"}) {
      inputs.emplace(
          name, Tensor::own(DType::I32, {3}, generate_input(name, DType::I32, {3}, 7, -100, 100)));
    }
    const NamedTensors want = interpret_outputs(graph, inputs);
    const NamedTensors got = interpret_outputs(sort_nodes(graph), inputs);
    for (const auto& [name, tensor] : want) {
      EXPECT_TRUE(std::ranges::equal(tensor.bytes, got.at(name).bytes)) << name;
    }
  }
  EXPECT_GT(others, 150);
}

// Which of several equal nodes comes first is up to the file.
TEST(SortNodes, EqualNodesHaveTheLeastOfTheirNames) {
  for (const bool backwards : {false, true}) {
    GraphBuilder b("names");
    const ValueId x = b.input("x", DType::F32, {3});
    ValueId value;
    for (const char* name : backwards ? std::array{"c", "b", "a"} : std::array{"a", "c", "b"}) {
      b.set_source(name);
      value = b.map(ScalarOp::Exp, x);
    }
    b.set_source("");
    value = b.map(ScalarOp::Exp, x);
    EXPECT_EQ(b[value].source, "a");
  }
}

}  // namespace
}  // namespace ingot
