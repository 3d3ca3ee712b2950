// Schedules in text form: replayed they give the same kernel, and whatever else they say either is
// refused or computes the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "compiler/compile.h"
#include "compiler/graph/builder.h"
#include "compiler/lowering/lower_kernel.h"
#include "compiler/lowering/schedule.h"
#include "compiler/passes/widen_floats.h"
#include "compiler/plan/plan.h"
#include "compiler/program/build_program.h"

namespace ingot {
namespace {

Target target(const std::string& name) { return find_target(name).value(); }

// Small whole numbers: sums are exact in every order.
float small_number(std::size_t i) { return static_cast<float>((i * 7 + i / 5) % 5) - 2; }

Tensor small_numbers(const Shape& shape, DType dtype = DType::F32) {
  if (dtype == DType::F16) {  // -2 to 2
    static constexpr std::array<std::uint16_t, 5> kHalves{0xC000, 0xBC00, 0, 0x3C00, 0x4000};
    std::vector<std::byte> halves(static_cast<std::size_t>(element_count(shape)) * 2);
    for (std::size_t i = 0; i * 2 < halves.size(); ++i) {
      std::memcpy(&halves[i * 2], &kHalves[static_cast<std::size_t>(small_number(i) + 2)], 2);
    }
    return Tensor::own(DType::F16, shape, std::move(halves));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(element_count(shape)) * sizeof(float));
  for (std::size_t i = 0; i * sizeof(float) < bytes.size(); ++i) {
    const float value = small_number(i);
    std::memcpy(&bytes[i * sizeof value], &value, sizeof value);
  }
  return Tensor::own(DType::F32, shape, std::move(bytes));
}

ValueId weights(GraphBuilder& b, const Shape& shape) { return b.constant(small_numbers(shape)); }

std::vector<Graph> graphs() {
  std::vector<Graph> result;
  const auto make = [&](const std::string& name, const auto& build) {
    GraphBuilder b(name);
    b.output("y", build(b));
    result.push_back(b.take());
  };
  make("convolution", [](GraphBuilder& b) {
    const ValueId x = b.input("x", DType::F32, {1, 12, 6, 5});
    const GraphBuilder::Convolution how{{2, 1}, {1, 1}, {1, 1}, {3, 5}, 1};
    return b.convolution(
        b.convolution(x, weights(b, {18, 12, 1, 1}), {{1, 1}, {1, 1}, {0, 0}, {6, 5}, 1}),
        weights(b, {20, 18, 3, 3}), how);
  });
  make("winograd", [](GraphBuilder& b) {
    const ValueId x = b.input("x", DType::F32, {1, 16, 16, 16});
    const GraphBuilder::Convolution one{{1, 1}, {1, 1}, {0, 0}, {16, 16}, 1};
    const GraphBuilder::Convolution three{{1, 1}, {1, 1}, {1, 1}, {16, 16}, 1};
    const ValueId y = b.convolution(x, weights(b, {16, 16, 1, 1}), one);
    const ValueId z = b.convolution(y, weights(b, {32, 16, 3, 3}), three);
    return b.convolution(z, weights(b, {4, 32, 1, 1}), one);
  });
  make("row", [](GraphBuilder& b) {
    return b.matmul(b.input("x", DType::F32, {1, 40}), weights(b, {40, 50}));
  });
  make("halves", [](GraphBuilder& b) {
    const ValueId x = b.input("x", DType::F16, {1, 20, 12, 14});
    const GraphBuilder::Convolution one{{1, 1}, {1, 1}, {0, 0}, {12, 14}, 1};
    const ValueId y = b.convolution(x, b.constant(small_numbers({70, 20, 1, 1}, DType::F16)), one);
    return b.cast(b.convolution(y, b.constant(small_numbers({24, 70, 1, 1}, DType::F16)), one),
                  DType::F32);
  });
  result.back() = widen_halves(result.back());
  make("dots", [](GraphBuilder& b) {
    const std::vector<int> swap = {1, 0};
    return b.matmul(b.input("x", DType::F32, {6, 70}),
                    b.transpose(b.input("z", DType::F32, {10, 70}), swap));
  });
  make("largest", [](GraphBuilder& b) {
    return b.reduce(ReduceOp::Max, b.input("x", DType::F32, {5, 19, 8}), {1}, false);
  });
  make("sum", [](GraphBuilder& b) {
    b.set_strict(true);
    return b.reduce(ReduceOp::Sum, b.input("x", DType::F32, {3, 18, 5}), {1, 2}, false);
  });
  return result;
}

std::vector<LoweredKernel> kernels_of(const Graph& graph, const Target& target) {
  const Plan plan = make_plan(graph, target, PlanOptions{}).value();
  std::vector<LoweredKernel> kernels;
  for (const PlanKernel& kernel : plan.kernels) {
    kernels.push_back(lower_kernel(plan, kernel).value());
  }
  return kernels;
}

// Parameters in memory, written with small numbers; halos and padding hold zeros.
std::vector<std::vector<std::byte>> memory(const std::vector<KernelParameter>& parameters,
                                           const RangedKernel& kernel, const Schedule& schedule) {
  std::vector<std::vector<std::byte>> buffers;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const KernelParameter& parameter = parameters[p];
    if (parameter.access != Access::Read) {
      buffers.emplace_back(
          static_cast<std::size_t>(element_count(parameter.layout, parameter.shape)) *
          static_cast<std::size_t>(size_bytes(parameter.dtype)));
      continue;
    }
    Tensor tensor = small_numbers(kernel.parameters[p].shape,
                                  parameter.dtype == DType::F16 ? DType::F16 : DType::F32);
    for (const Schedule::Packing& packing : schedule.packings) {
      if (packing.parameter == p && packing.winograd > 0) {
        tensor = transform_weights(tensor, packing.winograd);
      }
    }
    buffers.push_back(pack(parameter.layout, tensor));
  }
  return buffers;
}

template <typename Kernel>
std::vector<float> results(const Kernel& kernel, const LoweredKernel& lowered,
                           const Schedule& schedule) {
  auto buffers = memory(kernel.parameters, lowered.kernel, schedule);
  std::vector<std::byte*> pointers;
  for (auto& buffer : buffers) pointers.push_back(buffer.data());
  const Result<InterpreterResult> run = interpret(kernel, pointers);
  EXPECT_TRUE(run) << run.error().diagnostics.front().message;
  const KernelParameter& out = kernel.parameters[0];
  std::vector<float> values;
  std::vector<std::int64_t> at(out.shape.size());
  for (std::int64_t i = 0; i < element_count(out.shape); ++i) {
    std::int64_t rest = i;
    for (std::size_t d = at.size(); d-- > 0; rest /= out.shape[d]) at[d] = rest % out.shape[d];
    float value = 0;
    std::memcpy(
        &value,
        &buffers[0][static_cast<std::size_t>(address(out.layout, out.shape, at)) * sizeof value],
        sizeof value);
    values.push_back(value);
  }
  return values;
}

void expect_same(const LoweredKernel& lowered, const Schedule& schedule, const Target& target,
                 const std::vector<float>& wanted, const std::string& steps) {
  const Result<ScheduledKernel> scheduled = apply_schedule(lowered.kernel, schedule, target);
  ASSERT_TRUE(scheduled) << steps;
  const Result<void> valid = validate_kernel(*scheduled);
  ASSERT_TRUE(valid) << valid.error().diagnostics.front().message << "\n" << steps;
  const std::vector<float> found = results(*scheduled, lowered, schedule);
  ASSERT_EQ(wanted.size(), found.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    // Tiles divide by 24: not exact, but far nearer than the next whole number.
    ASSERT_NEAR(wanted[i], found[i], schedule.winograd ? 0.1 : 0)
        << steps << print_kernel(*scheduled);
  }
}

std::string joined(const std::vector<std::string>& steps) {
  std::string text;
  for (const std::string& step : steps) text += step + "\n";
  return text;
}

TEST(GivenSchedule, StepsAreReadAsTheyWerePrinted) {
  bool has_winograd = false, widens = false, widens_all = false, has_chunks = false;
  for (const std::string name : {"x86-64-v2", "x86-64-v4", "aarch64"}) {
    const Target device = target(name);
    for (const Graph& graph : graphs()) {
      for (const LoweredKernel& lowered : kernels_of(graph, device)) {
        const Schedule chosen = choose_schedule(lowered.kernel, lowered.is_constant, device);
        has_winograd = has_winograd || chosen.winograd.has_value();
        widens = widens || (chosen.widen && chosen.parallel == 1);
        has_chunks = has_chunks || chosen.chunk;
        widens_all = widens_all || (chosen.widen && chosen.parallel == 0);
        const std::vector<std::string> steps = to_steps(chosen, lowered.kernel);
        const Result<Schedule> read =
            parse_steps(steps, lowered.kernel, lowered.is_constant, device);
        ASSERT_TRUE(read) << joined(steps) << read.error().diagnostics.front().message;
        EXPECT_EQ(to_steps(*read, lowered.kernel), steps);
        EXPECT_EQ(identity_key(apply_schedule(lowered.kernel, *read, device).value()),
                  identity_key(apply_schedule(lowered.kernel, chosen, device).value()));
      }
    }
  }
  EXPECT_TRUE(has_winograd);
  EXPECT_TRUE(has_chunks);
  EXPECT_TRUE(widens);
  EXPECT_TRUE(widens_all) << "no kernel with one panel";
}

// One number, word or line is another.
void change(std::vector<std::string>& steps, const RangedKernel& kernel, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  if (steps.empty()) return;
  std::string& step = steps[below(steps.size())];
  switch (below(6)) {
    case 0: steps.erase(steps.begin() + (&step - steps.data())); return;
    case 1: steps.push_back(step); return;
    case 2: std::swap(step, steps[below(steps.size())]); return;
    case 3: {
      const std::string& range = kernel.ranges[below(kernel.ranges.size())].name;
      const std::size_t at = step.find(' ');
      const std::size_t end = step.find(' ', at + 1);
      if (at != std::string::npos && end != std::string::npos) {
        step.replace(at + 1, end - at - 1, range);
      }
      return;
    }
    case 4: {
      static constexpr std::array kTails{"exact", "padded", "overlap", "narrow"};
      for (const char* tail : kTails) {
        const std::size_t at = step.find(tail);
        if (at == std::string::npos) continue;
        step.replace(at, std::string::npos, kTails[below(kTails.size())]);
        return;
      }
      return;
    }
    default: {
      std::vector<std::size_t> digits;
      for (std::size_t i = 1; i < step.size(); ++i) {
        const bool is_digit = step[i] >= '0' && step[i] <= '9';
        if (is_digit && (step[i - 1] == ' ' || step[i - 1] == 'x')) digits.push_back(i);
      }
      if (digits.empty()) return;
      const std::size_t at = digits[below(digits.size())];
      std::size_t end = at;
      while (end < step.size() && step[end] >= '0' && step[end] <= '9') ++end;
      static constexpr std::array kNumbers{0, 1, 2, 3, 4, 5, 7, 8, 10, 16, 24, 64};
      step.replace(at, end - at, std::to_string(kNumbers[below(kNumbers.size())]));
      return;
    }
  }
}

TEST(GivenSchedule, FitsOrIsRefused) {
  std::mt19937 random(5);
  int fits = 0, refused = 0;
  for (const std::string name : {"x86-64-v3", "x86-64-v4"}) {
    const Target device = target(name);
    for (const Graph& graph : graphs()) {
      for (const LoweredKernel& lowered : kernels_of(graph, device)) {
        const Schedule chosen = choose_schedule(lowered.kernel, lowered.is_constant, device);
        const std::vector<float> wanted = results(lowered.kernel, lowered, Schedule{});
        const int turns = graph.name == "winograd" ? 12 : 60;
        for (int turn = 0; turn < turns; ++turn) {
          std::vector<std::string> steps =
              to_steps(turn % 4 == 0 ? plain_schedule(lowered.kernel) : chosen, lowered.kernel);
          for (int i = 0; i <= turn % 3; ++i) change(steps, lowered.kernel, random);
          const Result<Schedule> read =
              parse_steps(steps, lowered.kernel, lowered.is_constant, device);
          if (!read) {
            ++refused;
            EXPECT_EQ(read.error().exit, ExitCode::Malformed);
            continue;
          }
          ++fits;
          expect_same(lowered, *read, device, wanted, joined(steps));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(fits, 200);
  EXPECT_GT(refused, 200);
}

// A packed constant in any number of streams, their ends full or not, under any tile.
TEST(GivenSchedule, StreamsOfAPackedConstant) {
  Target device = target("x86-64-v4");
  device.l2_bytes = 1 << 10;
  for (const DType dtype : {DType::F32, DType::F16}) {
    for (const std::int64_t columns : {168, 176}) {  // a last vector that is narrow, or whole
      GraphBuilder b("row");
      const ValueId w = b.constant(small_numbers({24, columns}, dtype));
      b.output("y", b.cast(b.matmul(b.input("x", dtype, {1, 24}), w), DType::F32));
      const Graph graph = widen_halves(b.take());
      const LoweredKernel lowered = kernels_of(graph, device).back();
      const std::vector<float> wanted = results(lowered.kernel, lowered, Schedule{});
      const Schedule chosen = choose_schedule(lowered.kernel, lowered.is_constant, device);
      ASSERT_TRUE(chosen.vector);
      EXPECT_EQ(chosen.vector->tail, columns == 168 ? Tail::Narrow : Tail::Exact);
      EXPECT_EQ(chosen.packings.at(0).layout.streams, 4);
      const std::vector<std::string> steps = to_steps(chosen, lowered.kernel);
      expect_same(lowered, chosen, device, wanted, joined(steps));
      const Result<Schedule> again =
          parse_steps(steps, lowered.kernel, lowered.is_constant, device);
      ASSERT_TRUE(again) << joined(steps);
      EXPECT_EQ(to_steps(*again, lowered.kernel), steps);
      const auto read = [&](const std::string& streams, const std::string& vectors) {
        return parse_steps({"pack in1 order 1,0 block " + streams, "vector a1 " + vectors,
                            "reduce k2 split 1 unroll 4", "loops a1 |"},
                           lowered.kernel, lowered.is_constant, device);
      };
      for (const std::string streams :
           {"1x8 streams 2", "1x16 streams 3", "1x32 streams 4", "1x5 streams 7"}) {
        for (const std::string vectors : {"2x1 exact", "2x4 exact", "16x4 overlap"}) {
          const Result<Schedule> given = read(streams, vectors);
          ASSERT_TRUE(given) << to_line(given.error().diagnostics[0]);
          expect_same(lowered, *given, device, wanted, streams + ", " + vectors);
        }
      }
      EXPECT_TRUE(read("1x16 streams 11", "2x1 exact"));
      for (const std::string streams : {"12", "1", "9223372036854775807"}) {
        EXPECT_FALSE(read("1x16 streams " + streams, "2x1 exact")) << streams;
      }
    }
  }
}

TEST(GivenSchedule, StreamsAreNoPanelsToWiden) {
  const Target device = target("x86-64-v4");
  int tried = 0;
  for (const Graph& graph : graphs()) {
    for (const LoweredKernel& lowered : kernels_of(graph, device)) {
      Schedule chosen = choose_schedule(lowered.kernel, lowered.is_constant, device);
      if (!chosen.widen || chosen.parallel != 1) continue;
      ++tried;
      for (Schedule::Packing& packing : chosen.packings) {
        if (packing.parameter == chosen.widen->parameter) packing.layout.streams = 2;
      }
      const Result<Schedule> read = parse_steps(to_steps(chosen, lowered.kernel), lowered.kernel,
                                                lowered.is_constant, device);
      ASSERT_FALSE(read);
      ASSERT_EQ(read.error().diagnostics.size(), 1U);
      EXPECT_NE(read.error().diagnostics[0].message.find("widened"), std::string::npos);
    }
  }
  EXPECT_GT(tried, 0);
}

TEST(GivenSchedule, EveryReasonIsTold) {
  const Target device = target("x86-64-v4");
  GraphBuilder b("row");
  b.output("y", b.matmul(b.input("x", DType::F32, {1, 64}), weights(b, {64, 10})));
  const Graph graph = b.take();
  const LoweredKernel lowered = kernels_of(graph, device).back();
  const Result<Schedule> read =
      parse_steps({"vector a1 16x1 overlap", "tile a1 3", "reduce k2 split 1 unroll 5", "loops"},
                  lowered.kernel, lowered.is_constant, device);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().diagnostics.size(), 3U);
  EXPECT_FALSE(
      parse_steps({"vector a1 1x2 exact", "loops a1"}, lowered.kernel, lowered.is_constant, device))
      << "one lane is no vector";
  const Result<Schedule> narrow =
      parse_steps({"vector a1 8x2 narrow", "reduce k2 split 1 unroll 4", "loops"}, lowered.kernel,
                  lowered.is_constant, device);
  EXPECT_TRUE(narrow) << to_line(narrow.error().diagnostics[0]);
  EXPECT_FALSE(parse_steps({"vector a1 2x5 narrow", "reduce k2 split 1 unroll 4", "loops"},
                           lowered.kernel, lowered.is_constant, device))
      << "2 divides 10: nothing is left";
  for (const std::string chunk : {"chunk a1 3", "chunk a1 0", "chunk a1 9223372036854775807"}) {
    EXPECT_FALSE(parse_steps({chunk, "reduce k2 split 1 unroll 4", "loops a1 |"}, lowered.kernel,
                             lowered.is_constant, device))
        << chunk;
  }
  EXPECT_TRUE(parse_steps({"chunk a1 5", "reduce k2 split 1 unroll 4", "loops a1 |"},
                          lowered.kernel, lowered.is_constant, device));
  EXPECT_FALSE(parse_steps({"chunk a1 5", "reduce k2 split 1 unroll 4", "loops a1"}, lowered.kernel,
                           lowered.is_constant, device))
      << "no parallel loop";
  const Result<Schedule> unread = parse_steps({"vector", "tile nothing 3", "dance", "loops a1"},
                                              lowered.kernel, lowered.is_constant, device);
  ASSERT_FALSE(unread);
  EXPECT_EQ(unread.error().diagnostics.size(), 3U);
}

TEST(GivenSchedule, FilesAreReadAsTheyWerePrinted) {
  const std::vector<KernelSchedule> schedules = {
      {"x86-64-v3", 0x12, "a \"b\"", {"vector a1 8x1 exact", "loops |"}, {}, 0},
      {"x86-64-v3", 0x13, "c", {"loops"}, {}, 0},
      {"aarch64", 0x12, "a", {"loops"}, {}, 0}};
  const std::string text = print_schedules(schedules);
  const Result<std::vector<KernelSchedule>> read = parse_schedules(text, "f");
  ASSERT_TRUE(read);
  EXPECT_EQ(print_schedules(*read), text);
  EXPECT_EQ(read->at(0).name, "a \"b\"");
  EXPECT_EQ(read->at(2).file, "f");
}

TEST(GivenSchedule, EveryBadLineIsNamed) {
  const Result<std::vector<KernelSchedule>> read = parse_schedules(
      "; a comment\n"
      "kernel 0000000000000001 \"no target\"\n"
      "target v3\n"
      "  loops\n"
      "kernel 1 \"short key\"\n"
      "kernel 0000000000000001 \"fine\"\n"
      "  loops\n"
      "kernel 0000000000000001 \"again\"\n"
      "kernel 0000000000000002 unquoted\n"
      "dance\n",
      "f");
  ASSERT_FALSE(read);
  std::vector<std::string> lines;
  for (const Diagnostic& diagnostic : read.error().diagnostics) {
    EXPECT_EQ(diagnostic.file, "f");
    lines.push_back(diagnostic.message.substr(0, diagnostic.message.find(':')));
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"line 2", "line 4", "line 5", "line 8", "line 9",
                                             "line 10"}));
}

}  // namespace
}  // namespace ingot
