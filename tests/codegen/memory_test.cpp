// Loads and stores: how the lanes of an address lie in memory, and that a closed gate reads
// nothing.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "tests/codegen/program.h"

namespace ingot {
namespace {

constexpr std::int64_t kLanes = 8;
constexpr std::int64_t kRows = 6;
constexpr std::int64_t kElements = 256;

// out[row * lanes + lane] = in[address(row, lane)]
using Address = std::function<ExprId(KernelWriter&, ExprId row, ExprId lane)>;

ScheduledKernel copy(const std::string& name, DType dtype, const Address& from,
                     const Address& gate = {}) {
  KernelWriter w(name);
  const auto in = w.input("in", dtype, kElements);
  const auto out = w.output("out", dtype, kRows * kLanes);
  w.loop("row", LoopKind::Serial, kRows, [&](ExprId row) {
    w.loop("lane", LoopKind::Vector, kLanes, [&](ExprId lane) {
      const ExprId address = from(w, row, lane);
      const ExprId value = gate ? w.load(in, address, gate(w, row, lane), Scalar::of_int(dtype, 1))
                                : w.load(in, address);
      w.store(out, w.sum({{row, kLanes}, {lane, 1}}), value);
    });
  });
  return w.finish();
}

TEST(Loads, LanesNextToEachOtherFarApartReversedOrAllAtOnePlace) {
  for (const DType dtype : {DType::F32, DType::F64, DType::U8, DType::Bool, DType::F16}) {
    for (const std::int64_t step : {0, 1, 2, 3, 4, 5, -1, -2}) {
      const std::int64_t start = step < 0 ? -step * (kLanes - 1) : 0;
      expect_as_interpreted_everywhere(copy(
          "step " + std::to_string(step), dtype, [&](KernelWriter& w, ExprId row, ExprId lane) {
            return w.sum({{row, 5}, {lane, step}, {w.at(1), start}});
          }));
    }
  }
}

// floor_mod(16 * row + lane, 16) is the lane: the division must not hide that lanes are adjacent.
TEST(Loads, DivisionsThatCancel) {
  const ScheduledKernel kernel =
      copy("blocked", DType::F32, [](KernelWriter& w, ExprId row, ExprId lane) {
        const ExprId channel =
            w.op(ScalarOp::Add, {w.op(ScalarOp::Mul, {row, w.at(kLanes)}), lane});
        const ExprId block = w.op(ScalarOp::FloorDiv, {channel, w.at(kLanes)});
        const ExprId within = w.op(ScalarOp::FloorMod, {channel, w.at(kLanes)});
        return w.sum({{block, 3 * kLanes}, {within, 1}});
      });
  expect_as_interpreted_everywhere(kernel);
  for (const Target& target : known_targets()) {
    EXPECT_EQ(assembly(kernel, target).find("insert"), std::string::npos) << target.name;
  }
}

// Rows of four from rows of ten; a last column would lie outside.
TEST(Loads, GroupsOfNeighbours) {
  for (const DType dtype : {DType::F32, DType::F64, DType::U8, DType::Bool, DType::F16}) {
    for (const std::int64_t group : {2, 4}) {
      expect_as_interpreted_everywhere(
          copy("groups", dtype, [&](KernelWriter& w, ExprId row, ExprId lane) {
            return w.sum({{row, 5},
                          {w.kernel.pool.floor_div(lane, group), 10},
                          {w.kernel.pool.floor_mod(lane, group), 1}});
          }));
    }
  }
}

// Lanes of one quotient with a remainder that depends on the row: no constant step or group.
TEST(Loads, QuotientsThatAreNoNumbers) {
  for (const std::int64_t divisor : {4, 12}) {
    expect_as_interpreted_everywhere(
        copy("quotient", DType::F32, [&](KernelWriter& w, ExprId row, ExprId lane) {
          const ExprId at = w.sum({{row, 3}, {lane, 1}});
          return w.sum(
              {{w.kernel.pool.floor_div(at, divisor), 10}, {w.kernel.pool.floor_mod(lane, 4), 1}});
        }));
  }
}

TEST(Loads, LanesAnyhow) {
  expect_as_interpreted_everywhere(
      copy("folded", DType::F32, [](KernelWriter& w, ExprId row, ExprId lane) {
        return w.sum({{w.kernel.pool.floor_div(w.sum({{row, 7}, {lane, 3}}), 5), 9},
                      {w.kernel.pool.floor_mod(w.sum({{row, 7}, {lane, 3}}), 5), 2}});
      }));
}

// The address comes from memory, and is clamped where it leaves the buffer.
TEST(Loads, GatherThroughAnIndex) {
  for (const std::int64_t extent : {kElements, std::int64_t{20}}) {
    KernelWriter w("gather");
    const auto index = w.input("index", DType::I32, kElements);
    const auto table = w.input("table", DType::F32, kElements);
    const auto out = w.output("out", DType::F32, kElements);
    w.loop("i", LoopKind::Serial, kElements / kLanes, [&](ExprId i) {
      w.loop("lane", LoopKind::Vector, kLanes, [&](ExprId lane) {
        const ExprId at = w.sum({{i, kLanes}, {lane, 1}});
        const ExprId wanted = w.kernel.pool.cast(w.load(index, at), DType::I64);
        w.store(out, at, w.load(table, w.kernel.pool.clamp_index(wanted, extent)));
      });
    });
    const ScheduledKernel kernel = w.finish();
    for (const Target& target : runnable_targets()) {
      Buffers buffers = random_buffers(kernel, 2);
      expect_as_interpreted({{kernel, buffers}}, target);  // out of range: reported
      std::vector<std::int32_t> inside(kElements);
      for (std::size_t i = 0; i < inside.size(); ++i) {
        inside[i] = static_cast<std::int32_t>(i * 7 % 20);
      }
      std::memcpy(buffers[index].data(), inside.data(), buffers[index].size());
      expect_as_interpreted({{kernel, buffers}}, target);  // nothing to report
    }
  }
}

// Places that the maker proved to lie inside: negative ones count from a base, gates are of each
// lane, and elements are bytes as of a picture.
TEST(Loads, GatherAtProvenPlaces) {
  for (const bool gated : {false, true}) {
    KernelWriter w("picture");
    const auto index = w.input("index", DType::I32, kElements);
    const auto table = w.input("table", DType::U8, 2 * kElements);
    const auto out = w.output("out", DType::U8, kElements);
    w.loop("i", LoopKind::Serial, kElements / kLanes, [&](ExprId i) {
      w.loop("lane", LoopKind::Vector, kLanes, [&](ExprId lane) {
        const ExprId at = w.sum({{i, kLanes}, {lane, 1}});
        const ExprId place = w.kernel.pool.cast(w.load(index, at), DType::I64);
        const ExprId address = w.sum({{place, 1}, {i, 1}, {w.at(1), 100}});
        const ExprId is_open =
            w.op(ScalarOp::Lt,
                 {w.load(index, at), w.kernel.pool.constant(Scalar::of_int(DType::I32, 40))});
        w.store(out, at,
                gated ? w.load(table, address, is_open, Scalar::of_int(DType::U8, 7))
                      : w.load(table, address));
      });
    });
    const ScheduledKernel kernel = w.finish();
    Buffers buffers = random_buffers(kernel, 3);
    std::vector<std::int32_t> places(kElements);
    for (std::size_t i = 0; i < places.size(); ++i) {
      places[i] = static_cast<std::int32_t>(i * 37 % 190) - 100;
    }
    std::memcpy(buffers[index].data(), places.data(), buffers[index].size());
    for (const Target& target : runnable_targets()) {
      expect_as_interpreted({{kernel, buffers}}, target);
    }
  }
}

TEST(Loads, GatesOfAllLanesAndOfEach) {
  const Address adjacent = [](KernelWriter& w, ExprId row, ExprId lane) {
    return w.sum({{row, kLanes}, {lane, 1}});
  };
  const Address strided = [](KernelWriter& w, ExprId row, ExprId lane) {
    return w.sum({{row, kLanes}, {lane, 2}});
  };
  const Address one_place = [](KernelWriter& w, ExprId row, ExprId) { return w.sum({{row, 3}}); };
  const Address reversed = [](KernelWriter& w, ExprId row, ExprId lane) {
    return w.sum({{row, 3}, {lane, -1}, {w.at(1), kLanes}});
  };
  const Address by_row = [](KernelWriter& w, ExprId row, ExprId) {
    return w.op(ScalarOp::Lt, {row, w.at(kRows / 2)});
  };
  const Address by_lane = [](KernelWriter& w, ExprId row, ExprId lane) {
    return w.op(ScalarOp::Le, {w.sum({{lane, 1}, {row, 1}}), w.at(kLanes - 2)});
  };
  const Address never = [](KernelWriter& w, ExprId, ExprId) {
    return w.kernel.pool.constant(Scalar::of_int(DType::Bool, 0));
  };
  for (const DType dtype : {DType::F32, DType::F64, DType::I8, DType::I16, DType::Bool}) {
    for (const Address& address : {adjacent, strided, one_place, reversed}) {
      for (const Address& gate : {by_row, by_lane, never}) {
        expect_as_interpreted_everywhere(copy("gated", dtype, address, gate));
      }
    }
  }
}

// Memory that ends where a page without access begins.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(std::size_t size_bytes) {
    page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    pages_ = static_cast<std::byte*>(
        mmap(nullptr, 3 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(pages_, page_, PROT_NONE);
    mprotect(pages_ + 2 * page_, page_, PROT_NONE);
    end_ = pages_ + 2 * page_ - size_bytes;
  }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer() { munmap(pages_, 3 * page_); }
  [[nodiscard]] std::byte* at_end() const { return end_; }
  [[nodiscard]] std::byte* at_begin() const { return pages_ + page_; }

 private:
  std::size_t page_ = 0;
  std::byte* pages_ = nullptr;
  std::byte* end_ = nullptr;
};

// Lanes that are picked from whole vectors: the first and the last element of a buffer are lanes.
TEST(Loads, PickedLanesEndTheirBuffer) {
  for (const DType dtype : {DType::F32, DType::U8}) {
    for (const std::int64_t step : {2, 3, 4}) {
      KernelWriter w("picked");
      const auto in = w.input("in", dtype, (kLanes - 1) * step + 1);
      const auto out = w.output("out", dtype, kLanes);
      w.loop("lane", LoopKind::Vector, kLanes,
             [&](ExprId lane) { w.store(out, lane, w.load(in, w.sum({{lane, step}}))); });
      const ScheduledKernel kernel = w.finish();
      for (const Target& target : runnable_targets()) {
        const CompiledProgram program(kernel, target);
        const GuardedBuffer guarded(
            static_cast<std::size_t>(((kLanes - 1) * step + 1) * size_bytes(dtype)));
        std::vector<std::byte> output(static_cast<std::size_t>(kLanes * size_bytes(dtype)));
        EXPECT_EQ(program.run({guarded.at_end(), output.data()}), 0);
        EXPECT_EQ(program.run({guarded.at_begin(), output.data()}), 0);
      }
    }
  }
}

// A row of 11 in vectors of 8, shifted by one to the left: the first lane and the last five lie
// outside, where no byte may be touched.
TEST(Loads, NothingOutsideIsTouched) {
  constexpr std::int64_t kInside = 11;
  for (const DType dtype : {DType::F32, DType::U8, DType::F64}) {
    for (const std::int64_t step : {std::int64_t{1}, std::int64_t{2}}) {
      KernelWriter w("edges");
      const auto in = w.input("in", dtype, kInside);
      const auto out = w.output("out", dtype, 32);
      w.loop("i", LoopKind::Serial, 4, [&](ExprId i) {
        w.loop("lane", LoopKind::Vector, kLanes, [&](ExprId lane) {
          const ExprId at = w.sum({{i, kLanes}, {lane, 1}});
          const ExprId from = w.sum({{at, step}, {w.at(1), -1}});
          const ExprId inside = w.op(ScalarOp::And, {w.op(ScalarOp::Le, {w.at(0), from}),
                                                     w.op(ScalarOp::Lt, {from, w.at(kInside)})});
          w.store(out, at, w.load(in, from, inside, Scalar::of_int(dtype, 1)));
        });
      });
      const ScheduledKernel kernel = w.finish();
      for (const Target& target : runnable_targets()) {
        const CompiledProgram program(kernel, target);
        const auto size = static_cast<std::size_t>(kInside * size_bytes(dtype));
        const GuardedBuffer guarded(size);
        std::vector<std::byte> output(static_cast<std::size_t>(32 * size_bytes(dtype)));
        EXPECT_EQ(program.run({guarded.at_end(), output.data()}), 0);
        EXPECT_EQ(program.run({guarded.at_begin(), output.data()}), 0);
        expect_as_interpreted({{kernel, random_buffers(kernel, 4)}}, target);
      }
    }
  }
}

TEST(Stores, LanesNextToEachOtherFarApartReversedOrAnyhow) {
  for (const DType dtype : {DType::F32, DType::Bool, DType::I16}) {
    for (const std::int64_t step : {1, 2, 3, -1, -3}) {
      KernelWriter w("store step " + std::to_string(step));
      const auto in = w.input("in", dtype, kElements);
      const auto out = w.output("out", dtype, kElements);
      const std::int64_t start = step < 0 ? -step * (kLanes - 1) : 0;
      w.loop("row", LoopKind::Serial, kRows, [&](ExprId row) {
        w.loop("lane", LoopKind::Vector, kLanes, [&](ExprId lane) {
          const ExprId to = w.sum({{row, 3 * kLanes}, {lane, step}, {w.at(1), start}});
          w.store(out, to, w.load(in, w.sum({{row, kLanes}, {lane, 1}})));
          const ExprId scattered = w.sum({{w.kernel.pool.floor_div(lane, 3), 20},
                                          {w.kernel.pool.floor_mod(lane, 3), 1},
                                          {w.at(1), 190}});
          w.store(out, scattered, w.load(in, row));
        });
      });
      expect_as_interpreted_everywhere(w.finish());
    }
  }
}

// More lanes than a register holds, and fewer.
TEST(Stores, AnyNumberOfLanes) {
  for (const std::int64_t lanes : {1, 2, 4, 8, 16, 32, 64}) {
    KernelWriter w("lanes " + std::to_string(lanes));
    const auto in = w.input("in", DType::F32, kElements);
    const auto out = w.output("out", DType::F32, kElements);
    w.loop("i", LoopKind::Serial, kElements / lanes, [&](ExprId i) {
      w.loop("lane", LoopKind::Vector, lanes, [&](ExprId lane) {
        const ExprId at = w.sum({{i, lanes}, {lane, 1}});
        const ExprId x = w.load(in, at);
        w.store(out, at, w.op(ScalarOp::Add, {w.op(ScalarOp::Mul, {x, x}), x}, true));
      });
    });
    expect_as_interpreted_everywhere(w.finish());
  }
}

TEST(Prefetch, MayLieOutside) {
  KernelWriter w("prefetch");
  const auto in = w.input("in", DType::F32, kElements);
  const auto out = w.output("out", DType::F32, kElements);
  w.loop("i", LoopKind::Serial, kElements / kLanes, [&](ExprId i) {
    w.prefetch(in, w.sum({{i, std::int64_t{1} << 40}}));
    w.loop("lane", LoopKind::Vector, kLanes, [&](ExprId lane) {
      const ExprId at = w.sum({{i, kLanes}, {lane, 1}});
      w.prefetch(in, w.sum({{at, 1}, {w.at(1), 512}}));
      w.store(out, at, w.load(in, at));
    });
  });
  expect_as_interpreted_everywhere(w.finish());
}

}  // namespace
}  // namespace ingot
