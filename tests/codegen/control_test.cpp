// Loops of every kind, register arrays, scratch memory, conditions, and the program's arguments.
#include <array>
#include <cstring>

#include "tests/codegen/program.h"

namespace ingot {
namespace {

// out[i] = i-th row's sum of 5 values
ScheduledKernel row_sums(std::int64_t rows) {
  KernelWriter w("row sums");
  const auto in = w.input("in", DType::I32, rows * 5);
  const auto out = w.output("out", DType::I32, rows);
  const auto sum = w.registers("sum", DType::I32, 1);
  w.loop("row", LoopKind::Parallel, rows, [&](ExprId row) {
    w.set(sum, w.at(0), w.at(0), w.kernel.pool.constant(Scalar::zero(DType::I32)));
    w.loop("k", LoopKind::Serial, 5, [&](ExprId k) {
      const ExprId before = w.read(sum, w.at(0), w.at(0));
      const ExprId value = w.load(in, w.sum({{row, 5}, {k, 1}}));
      w.set(sum, w.at(0), w.at(0), w.op(ScalarOp::Add, {before, value}));
    });
    w.store(out, row, w.read(sum, w.at(0), w.at(0)));
  });
  return w.finish();
}

TEST(ParallelLoop, PartsMakeTheWhole) {
  constexpr std::uint32_t kRows = 13;
  const ScheduledKernel kernel = row_sums(kRows);
  expect_as_interpreted_everywhere(kernel);
  for (const Target& target : runnable_targets()) {
    Buffers buffers = random_buffers(kernel, 8);
    const CompiledProgram program(kernel, target);
    std::vector<std::byte> whole(buffers[1].size());
    EXPECT_EQ(program.run({buffers[0].data(), whole.data()}, 0, kRows), 0);
    std::vector<std::byte> parts(buffers[1].size());
    for (const auto& [first, last] : {std::pair{5U, 13U}, {0U, 2U}, {3U, 3U}, {2U, 5U}}) {
      EXPECT_EQ(program.run({buffers[0].data(), parts.data()}, first, last), 0);
    }
    EXPECT_EQ(whole, parts);
  }
}

// Without a parallel loop a program has one turn; a worker with none does nothing.
TEST(ParallelLoop, WithoutOneThereIsOneTurn) {
  KernelWriter w("fill");
  const auto out = w.output("out", DType::I8, 4);
  w.loop("i", LoopKind::Serial, 4,
         [&](ExprId i) { w.store(out, i, w.kernel.pool.constant(Scalar::of_int(DType::I8, 7))); });
  const ScheduledKernel kernel = w.finish();
  for (const Target& target : runnable_targets()) {
    const CompiledProgram program(kernel, target);
    std::uint32_t filled = 0;
    EXPECT_EQ(program.run({&filled}, 1, 1), 0);
    EXPECT_EQ(program.run({&filled}, 1, 2), 0);
    EXPECT_EQ(filled, 0U);
    EXPECT_EQ(program.run({&filled}, 0, 1), 0);
    EXPECT_EQ(filled, 0x07070707U);
  }
}

// Two arrays in the row of the worker that runs; other rows are left alone.
TEST(WorkerMemory, LiesInTheRowOfTheWorker) {
  KernelWriter w("rows");
  const auto in = w.input("in", DType::I32, 8);
  const auto out = w.output("out", DType::I32, 8);
  const auto memory = w.parameter("memory", DType::I32, {3, 16}, Access::Write);
  const auto first = w.scratch("first", DType::I32, 4);
  const auto second = w.scratch("second", DType::I32, 8);
  w.kernel.registers[first].parameter = memory;
  w.kernel.registers[second].parameter = memory;
  w.loop("i", LoopKind::Serial, 4, [&](ExprId i) {
    w.set(first, i, w.at(0), w.load(in, i));
    w.set(second, i, w.at(0), w.load(in, w.sum({{i, 1}, {w.at(4), 1}})));
  });
  w.loop("o", LoopKind::Serial, 4, [&](ExprId o) {
    const ExprId back = w.sum({{w.at(3), 1}, {o, -1}});
    w.store(out, o, w.read(first, back, w.at(0)));
    w.store(out, w.sum({{o, 1}, {w.at(4), 1}}), w.read(second, back, w.at(0)));
  });
  const ScheduledKernel kernel = w.finish();
  const std::array<std::int32_t, 8> given{1, 2, 3, 4, 5, 6, 7, 8};
  const std::array<std::int32_t, 8> want{4, 3, 2, 1, 8, 7, 6, 5};
  for (const Target& target : runnable_targets()) {
    const CompiledProgram program(kernel, target);
    for (std::uint32_t worker = 0; worker < 3; ++worker) {
      std::array<std::int32_t, 8> got{};
      std::array<std::int32_t, 48> rows{};
      EXPECT_EQ(program.run({given.data(), got.data(), rows.data()}, 0, 1, worker), 0);
      EXPECT_EQ(got, want) << target.name;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const bool own = i / 16 == worker;
        EXPECT_EQ(rows[i], own && i % 16 < 8 ? given[i % 16] : 0) << worker << ' ' << i;
      }
    }
  }
}

// A dot product in lanes, whose partial sums meet in lane 0 after the loop.
TEST(Registers, LanesMeetAfterTheLoop) {
  constexpr std::int64_t kLanes = 8;
  KernelWriter w("dot product");
  const auto a = w.input("a", DType::I32, 64);
  const auto b = w.input("b", DType::I32, 64);
  const auto out = w.output("out", DType::I32, 2);
  const auto sums = w.registers("sums", DType::I32, 2, kLanes);
  const auto total = w.registers("total", DType::I32, 1);
  const ExprId zero = w.kernel.pool.constant(Scalar::zero(DType::I32));
  w.loop("e", LoopKind::Unroll, 2, [&](ExprId e) {
    w.loop("l0", LoopKind::Vector, kLanes, [&](ExprId l) { w.set(sums, e, l, zero); });
  });
  w.loop("i", LoopKind::Serial, 4, [&](ExprId i) {
    w.loop("e1", LoopKind::Unroll, 2, [&](ExprId e) {
      w.loop("l1", LoopKind::Vector, kLanes, [&](ExprId l) {
        const ExprId at = w.sum({{i, 2 * kLanes}, {e, kLanes}, {l, 1}});
        const ExprId product = w.op(ScalarOp::Mul, {w.load(a, at), w.load(b, at)});
        w.set(sums, e, l, w.op(ScalarOp::Add, {w.read(sums, e, l), product}));
      });
    });
  });
  w.loop("e2", LoopKind::Unroll, 2, [&](ExprId e) {
    w.set(total, w.at(0), w.at(0), zero);
    w.loop("l2", LoopKind::Unroll, kLanes, [&](ExprId l) {
      const ExprId before = w.read(total, w.at(0), w.at(0));
      w.set(total, w.at(0), w.at(0), w.op(ScalarOp::Add, {before, w.read(sums, e, l)}));
    });
    w.store(out, e, w.read(total, w.at(0), w.at(0)));
  });
  expect_as_interpreted_everywhere(w.finish());
}

// Single lanes are set, all are read; a lane of another array is read by all.
TEST(Registers, SingleLanes) {
  constexpr std::int64_t kLanes = 4;
  KernelWriter w("lanes");
  const auto in = w.input("in", DType::F32, 16);
  const auto out = w.output("out", DType::F32, 16);
  const auto lanes = w.registers("lanes", DType::F32, 1, kLanes);
  w.loop("i", LoopKind::Serial, 4, [&](ExprId i) {
    w.loop("l0", LoopKind::Unroll, kLanes, [&](ExprId l) {
      w.set(lanes, w.at(0), l, w.load(in, w.sum({{i, kLanes}, {l, -1}, {w.at(1), kLanes - 1}})));
    });
    w.loop("l1", LoopKind::Vector, kLanes, [&](ExprId l) {
      const ExprId own = w.read(lanes, w.at(0), l);
      const ExprId third = w.read(lanes, w.at(0), w.at(2));
      w.store(out, w.sum({{i, kLanes}, {l, 1}}), w.op(ScalarOp::Sub, {own, third}, true));
    });
  });
  expect_as_interpreted_everywhere(w.finish());
}

TEST(Registers, TruthValues) {
  KernelWriter w("any");
  const auto in = w.input("in", DType::I32, 64);
  const auto out = w.output("out", DType::Bool, 8);
  const auto seen = w.registers("seen", DType::Bool, 1, 8);
  w.loop("l0", LoopKind::Vector, 8, [&](ExprId l) {
    w.set(seen, w.at(0), l, w.kernel.pool.constant(Scalar::of_int(DType::Bool, 0)));
  });
  w.loop("i", LoopKind::Serial, 8, [&](ExprId i) {
    w.loop("l1", LoopKind::Vector, 8, [&](ExprId l) {
      const ExprId value = w.load(in, w.sum({{i, 8}, {l, 1}}));
      const ExprId is_one =
          w.op(ScalarOp::Eq, {value, w.kernel.pool.constant(Scalar::of_int(DType::I32, 1))});
      w.set(seen, w.at(0), l, w.op(ScalarOp::Or, {w.read(seen, w.at(0), l), is_one}));
    });
  });
  w.loop("l2", LoopKind::Vector, 8, [&](ExprId l) { w.store(out, l, w.read(seen, w.at(0), l)); });
  expect_as_interpreted_everywhere(w.finish());
}

// A tile in scratch memory: written row by row, read column by column.
TEST(Scratch, TransposesATile) {
  for (const DType dtype : {DType::F32, DType::Bool}) {
    KernelWriter w("transpose");
    const auto in = w.input("in", dtype, 64);
    const auto out = w.output("out", dtype, 64);
    const auto tile = w.scratch("tile", dtype, 64);
    w.loop("row", LoopKind::Serial, 8, [&](ExprId row) {
      w.loop("l0", LoopKind::Vector, 8, [&](ExprId l) {
        const ExprId at = w.sum({{row, 8}, {l, 1}});
        w.set(tile, at, w.at(0), w.load(in, at));
      });
    });
    w.loop("column", LoopKind::Serial, 8, [&](ExprId column) {
      w.loop("l1", LoopKind::Vector, 8, [&](ExprId l) {
        w.store(out, w.sum({{column, 8}, {l, 1}}),
                w.read(tile, w.sum({{l, 8}, {column, 1}}), w.at(0)));
      });
    });
    expect_as_interpreted_everywhere(w.finish());
  }
}

// What is computed inside of a condition must not be used behind it, and the other way round may.
TEST(Conditions, ValuesStayInside) {
  KernelWriter w("conditions");
  const auto in = w.input("in", DType::I64, 64);
  const auto out = w.output("out", DType::I64, 64);
  const auto count = w.registers("count", DType::I64, 1);
  w.set(count, w.at(0), w.at(0), w.at(0));
  w.loop("i", LoopKind::Serial, 8, [&](ExprId i) {
    const ExprId outer = w.load(in, i);
    const ExprId inner = w.load(in, w.sum({{i, 3}}));
    const ExprId product = w.op(ScalarOp::Mul, {outer, inner});
    w.branch(w.op(ScalarOp::Lt, {w.at(2), i}), [&] {
      w.set(count, w.at(0), w.at(0),
            w.op(ScalarOp::Add, {w.read(count, w.at(0), w.at(0)), product}));
      w.loop("j", LoopKind::Serial, 2, [&](ExprId j) {
        w.store(out, w.sum({{i, 2}, {j, 1}}), w.op(ScalarOp::Add, {product, j}));
      });
    });
    w.branch(w.op(ScalarOp::Le, {outer, w.at(5)}),
             [&] { w.store(out, w.sum({{i, 1}, {w.at(1), 32}}), product); });
    w.store(out, w.sum({{i, 1}, {w.at(1), 48}}), w.read(count, w.at(0), w.at(0)));
  });
  expect_as_interpreted_everywhere(w.finish());
}

// A clamped index is reported only if it is evaluated.
TEST(Conditions, ClampsInsideAreReportedIfTheyRun) {
  for (const std::int64_t limit : {std::int64_t{0}, std::int64_t{9}}) {
    KernelWriter w("clamped");
    const auto in = w.input("in", DType::F32, 8);
    const auto out = w.output("out", DType::F32, 8);
    const auto bound = w.input("bound", DType::I64, 1);
    w.loop("i", LoopKind::Serial, 8, [&](ExprId i) {
      const ExprId far = w.kernel.pool.clamp_index(w.sum({{i, 2}}), 8);
      w.branch(w.op(ScalarOp::Lt, {i, w.load(bound, w.at(0))}),
               [&] { w.store(out, i, w.load(in, far)); });
    });
    const ScheduledKernel kernel = w.finish();
    for (const Target& target : runnable_targets()) {
      Buffers buffers = random_buffers(kernel, 3);
      std::memcpy(buffers[bound].data(), &limit, sizeof limit);
      expect_as_interpreted({{kernel, buffers}}, target);
    }
  }
}

TEST(Loops, OfNoTurnAndOfOne) {
  KernelWriter w("short loops");
  const auto in = w.input("in", DType::F32, 8);
  const auto out = w.output("out", DType::F32, 8);
  for (const LoopKind kind : {LoopKind::Serial, LoopKind::Unroll}) {
    for (const std::int64_t extent : {0, 1}) {
      w.loop("i", kind, extent, [&](ExprId i) {
        w.loop("l", LoopKind::Vector, 1, [&](ExprId l) {
          const std::int64_t start = kind == LoopKind::Serial ? 0 : 4;
          const ExprId at = w.sum({{i, 1}, {l, 1}, {w.at(1), start + extent}});
          w.store(out, at, w.load(in, at));
        });
      });
    }
  }
  expect_as_interpreted_everywhere(w.finish());
}

// Unrolled loops of which only some expressions depend: each is emitted where it belongs.
TEST(Loops, NestedUnrolledOnes) {
  KernelWriter w("outer products");
  const auto a = w.input("a", DType::I32, 24);
  const auto b = w.input("b", DType::I32, 24);
  const auto out = w.output("out", DType::I32, 4 * 3 * 2);
  const auto sums = w.registers("sums", DType::I32, 6);
  w.loop("e", LoopKind::Unroll, 6, [&](ExprId e) {
    w.set(sums, e, w.at(0), w.kernel.pool.constant(Scalar::zero(DType::I32)));
  });
  w.loop("x", LoopKind::Serial, 4, [&](ExprId x) {
    w.loop("p", LoopKind::Unroll, 3, [&](ExprId p) {
      w.loop("v", LoopKind::Unroll, 2, [&](ExprId v) {
        const ExprId left = w.load(a, w.sum({{x, 3}, {p, 1}}));
        const ExprId right = w.load(b, w.sum({{v, 4}, {x, 1}}));
        const ExprId element = w.sum({{p, 2}, {v, 1}});
        const ExprId product = w.op(ScalarOp::Mul, {left, right});
        w.set(sums, element, w.at(0),
              w.op(ScalarOp::Add, {w.read(sums, element, w.at(0)), product}));
        w.store(out, w.sum({{x, 6}, {p, 2}, {v, 1}}), w.read(sums, element, w.at(0)));
      });
    });
  });
  expect_as_interpreted_everywhere(w.finish());
}

}  // namespace
}  // namespace ingot
