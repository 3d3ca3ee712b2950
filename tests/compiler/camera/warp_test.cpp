#include "compiler/camera/warp.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include "tests/compiler/camera/warp_vectors.h"
#include "tests/support/graph_interpreter.h"

namespace ingot {
namespace {

Tensor tensor_of(const std::vector<std::vector<float>>& matrices) {
  std::vector<double> numbers;
  for (const auto& matrix : matrices) numbers.insert(numbers.end(), matrix.begin(), matrix.end());
  const auto count = static_cast<std::int64_t>(matrices.size());
  // Not of_floats alone: a NaN's bits do not matter, but everything else must survive exactly.
  return Tensor::of_floats(DType::F32, count == 1 ? Shape{3, 3} : Shape{count, 3, 3}, numbers);
}

Tensor frame_of(const std::vector<std::byte>& bytes) {
  return Tensor::own(DType::U8, {static_cast<std::int64_t>(bytes.size())}, bytes);
}

Graph graph_of(const WarpCase& test) {
  GraphBuilder builder("warp");
  std::vector<ValueId> frames;
  NamedTensors inputs;
  for (std::size_t i = 0; i < test.frames.size(); ++i) {
    frames.push_back(builder.input("frame" + std::to_string(i), DType::U8,
                                   {static_cast<std::int64_t>(test.camera.size_bytes)}));
  }
  const auto count = static_cast<std::int64_t>(frames.size());
  const ValueId matrix =
      builder.input("tfm", DType::F32, count == 1 ? Shape{3, 3} : Shape{count, 3, 3});
  const Warp warp{
      .cabin = test.cabin, .width = test.width, .height = test.height, .fill = test.fill};
  builder.output("picture", test.cabin ? cabin_warp(builder, warp, test.camera, frames[0], matrix)
                                       : road_warp(builder, warp, test.camera, frames, matrix));
  return builder.take();
}

std::vector<std::int64_t> picture(const WarpCase& test) {
  const Graph graph = graph_of(test);
  const auto valid = validate_graph(graph);
  EXPECT_TRUE(valid.has_value()) << to_line(valid.error().diagnostics.front());
  NamedTensors inputs;
  for (std::size_t i = 0; i < test.frames.size(); ++i) {
    inputs["frame" + std::to_string(i)] = frame_of(test.frames[i]);
  }
  inputs["tfm"] = tensor_of(test.matrices);
  const GraphRun run = interpret_graph(graph, inputs);
  EXPECT_FALSE(run.index_clamped) << test.id;
  return ints(run[graph.outputs.front().value]);
}

// The frame of the reference's own unit tests: 8x6 pixels in rows of 12 bytes.
WarpCase small_case(bool cabin, std::int64_t width, std::int64_t height) {
  WarpCase test;
  test.cabin = cabin;
  test.width = width;
  test.height = height;
  test.camera.width = 8;
  test.camera.height = 6;
  test.camera.stride = 12;
  test.camera.y_height = 8;
  test.camera.uv_height = 4;
  test.camera.uv_offset = 96;
  test.camera.size_bytes = 144;
  std::vector<std::byte> frame(144, std::byte{99});
  for (std::size_t row = 0; row < 6; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      frame[row * 12 + column] = static_cast<std::byte>(row * 8 + column);
    }
  }
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 4; ++column) {
      frame[96 + row * 12 + 2 * column] = std::byte{100};
      frame[96 + row * 12 + 2 * column + 1] = std::byte{200};
    }
  }
  test.frames = {frame};
  test.matrices = {{1, 0, 0, 0, 1, 0, 0, 0, 1}};
  return test;
}

TEST(Warp, RoadPhasesComeInTheOrder00_10_01_11) {
  const WarpCase test = small_case(false, 4, 4);
  const std::vector<std::int64_t> expected = {0,   2,   16,  18,  8,   10,  24,  26,
                                              1,   3,   17,  19,  9,   11,  25,  27,
                                              100, 100, 100, 100, 200, 200, 200, 200};
  EXPECT_EQ(picture(test), expected);
}

TEST(Warp, Nv21SwapsUAndV) {
  WarpCase test = small_case(false, 4, 4);
  test.camera.pixel_format = PixelFormat::Nv21;
  const auto got = picture(test);
  EXPECT_EQ(got[16], 200);
  EXPECT_EQ(got[20], 100);
}

TEST(Warp, CabinFillsOutsideAndClampsWithoutFill) {
  WarpCase test = small_case(true, 8, 6);
  test.fill = std::uint8_t{16};
  test.matrices[0][2] = -1;  // one pixel to the right
  auto got = picture(test);
  EXPECT_EQ(got[0], 16);
  EXPECT_EQ(got[1], 0);
  EXPECT_EQ(got[7], 6);
  EXPECT_EQ(got[8], 16);
  test.matrices[0][2] = 1000;
  EXPECT_EQ(picture(test), std::vector<std::int64_t>(48, 16));
  test.fill.reset();
  got = picture(test);
  EXPECT_EQ(got[0], 7);
  EXPECT_EQ(got[47], 47);
}

// No matrix may lead outside the frame, whatever it is: gathers are not checked again.
TEST(Warp, BadMatricesStayInsideThePlane) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float inf = std::numeric_limits<float>::infinity();
  const std::vector<std::vector<float>> matrices = {
      {0, 0, 0, 0, 0, 0, 0, 0, 0},        {nan, 0, 0, 0, nan, 0, 0, 0, 1},
      {1, 0, 0, 0, 1, 0, 0, 0, 0},        {1, 0, inf, 0, 1, -inf, 0, 0, 1},
      {1, 0, 0, 0, 1, 0, 1, 0, -2},       {3e38F, 3e38F, 3e38F, -3e38F, 1, 1, 0, 0, 1e-38F},
      {-1, 0, 0, 0, -1, 0, 0, 0, -1e-45F}};
  for (const auto& matrix : matrices) {
    for (const bool cabin : {false, true}) {
      WarpCase test = small_case(cabin, 8, 8);
      test.matrices = {matrix};
      // Padding is 99: a byte of it in the picture means that the plane was left.
      for (const std::int64_t byte : picture(test)) EXPECT_NE(byte, 99);
    }
  }
}

TEST(Warp, NaNIsOutside) {
  WarpCase test = small_case(true, 4, 2);
  test.fill = std::uint8_t{16};
  test.matrices = {{0, 0, 0, 0, 0, 0, 0, 0, 0}};
  EXPECT_EQ(picture(test), std::vector<std::int64_t>(8, 16));
}

TEST(Warp, DeclaresItsMatricesAndStaysStrict) {
  WarpCase test = small_case(false, 4, 4);
  test.frames.push_back(test.frames[0]);
  test.matrices.push_back(test.matrices[0]);
  const Graph graph = graph_of(test);
  ASSERT_EQ(graph.transforms.size(), 2U);
  EXPECT_EQ(graph.transforms[0].offset_bytes, 0);
  EXPECT_EQ(graph.transforms[1].offset_bytes, 36);
  EXPECT_EQ(graph.transforms[1].width, 4);
  EXPECT_FALSE(graph.transforms[1].cabin);
  for (const Node& node : graph.nodes) {
    EXPECT_TRUE(node.strict || !std::holds_alternative<MapOp>(node.op));
  }
  EXPECT_EQ(graph[graph.outputs.front().value].shape, (Shape{2, 6, 2, 2}));
}

TEST(Warp, IllegalSizes) {
  const auto road = [](std::int64_t width, std::int64_t height) {
    return illegal_size({.cabin = false, .width = width, .height = height, .fill = {}});
  };
  EXPECT_EQ(road(512, 256), "");
  EXPECT_NE(road(511, 256), "");
  EXPECT_NE(road(512, 254), "");
  EXPECT_NE(road(512, 17), "");
  EXPECT_NE(road(0, 4), "");
  EXPECT_EQ(illegal_size({.cabin = true, .width = 3, .height = 5, .fill = {}}), "");
  EXPECT_NE(illegal_size({.cabin = true, .width = 3, .height = -1, .fill = {}}), "");
}

TEST(Warp, GoldenVectors) {
  const auto shared = shared_folder();
  if (!shared) {
    const char* ci = std::getenv("CI");
    ASSERT_FALSE(ci != nullptr && std::string(ci) == "true") << "no shared data to compare with";
    GTEST_SKIP() << "no shared data: set INGOT_SHARED to its folder";
  }
  const std::vector<WarpCase> cases = warp_cases(*shared, 10000);
  EXPECT_EQ(cases.size(), 42U);
  for (const WarpCase& test : cases) {
    const std::vector<std::int64_t> got = picture(test);
    ASSERT_EQ(got.size(), test.expected.size()) << test.id;
    std::size_t different = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (got[i] != std::to_integer<std::int64_t>(test.expected[i])) ++different;
    }
    EXPECT_EQ(different, 0U) << test.id;
  }
}

}  // namespace
}  // namespace ingot
