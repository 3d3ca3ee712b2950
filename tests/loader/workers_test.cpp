// Several threads on one frame: who does what, the same bytes, threads that come late, leave or
// never come, and what is refused.
#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "session.h"

namespace ingot::test {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kGrid = 64;
constexpr std::uint32_t kBigBytes = 32768;
constexpr std::uint32_t kLanes = kBigBytes / 4 / kGrid;

// One call of the program: a part of the range.
struct Part {
  std::uint32_t first, last, worker;
  std::thread::id thread;
};

// What the program of call 4 does: its code jumps to `run_part`.
struct Work {
  std::function<std::int32_t(const Part&)> extra;  // inside of each part, on its thread
  std::array<float, kGrid * kLanes> values{};  // not atomic: a race is for the sanitizer to find
  std::array<int, kGrid> turns{};
  std::mutex mutex;
  std::vector<Part> parts;

  void clear() {
    values = {};
    turns = {};
    parts.clear();
  }
};

std::int32_t run_part(const void* const* buffers, const std::uint64_t* scalars, std::uint32_t first,
                      std::uint32_t last, std::uint32_t worker) {
  Work& work = *reinterpret_cast<Work*>(scalars[1]);
  auto* big = static_cast<float*>(const_cast<void*>(buffers[0]));
  for (std::uint32_t i = first; i < last; ++i) {
    ++work.turns[i];
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      const std::uint32_t at = i * kLanes + lane;
      big[at] = work.values[at] = 1.0f / static_cast<float>(at + 3);
    }
  }
  const Part part = {first, last, worker, std::this_thread::get_id()};
  const std::lock_guard lock(work.mutex);
  work.parts.push_back(part);
  return 0;
}

std::int32_t run_part_and_extra(const void* const* buffers, const std::uint64_t* scalars,
                                std::uint32_t first, std::uint32_t last, std::uint32_t worker) {
  run_part(buffers, scalars, first, last, worker);
  Work& work = *reinterpret_cast<Work*>(scalars[1]);
  return work.extra ? work.extra({first, last, worker, std::this_thread::get_id()}) : 0;
}

// The good artifact, made for 4 workers, in which call 4 writes `bytes` in `grid` turns.
ArtifactBuilder shared_work(Work& work, std::uint32_t grid = kGrid,
                            std::uint32_t bytes = kBigBytes) {
  ArtifactBuilder builder;
  builder.header.max_host_arena += kBigBytes;
  for (TestVariant& v : builder.variants) {
    v.record.threads = 4;
    v.record.host_arena_bytes += kBigBytes;
    IngotBufferRecord big = v.buffers[8];
    big.id = 9;
    big.nbytes = kBigBytes;
    big.arena_offset = v.arenas[0].nbytes;
    big.first_call = big.last_call = 4;
    v.buffers.push_back(big);
    v.arenas[0].nbytes += kBigBytes;
    IngotViewRecord view = v.views[3];
    view.buffer = 9;
    view.shape[0] = bytes / 4;
    view.nbytes = bytes;
    v.args[10].view = static_cast<std::uint32_t>(v.views.size());
    v.args[10].access = INGOT_ACCESS_WRITE;
    v.views.push_back(view);
    v.params[7].nbytes = bytes;
    v.params[7].access = INGOT_ACCESS_WRITE;
    v.params.push_back(v.params[8]);
    v.args.push_back(v.args[11]);
    v.args[11].immediate = reinterpret_cast<std::uint64_t>(&run_part_and_extra);
    v.args[12].immediate = reinterpret_cast<std::uint64_t>(&work);
    v.code.resize((v.code.size() + 15) / 16 * 16);
    v.programs[2].entry_offset = v.code.size();
    v.programs[2].code_nbytes = 16;
    v.programs[2].param_count = 3;
    v.code.insert(v.code.end(),
                  {0xFF, 0x26, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});  // jmp *(%rsi)
    v.calls[4].arg_count = 3;
    v.calls[5].arg_first = 13;
    v.calls[4].grid[0] = grid;
  }
  return builder;
}

// Threads in ingot_work.
class Helpers {
 public:
  explicit Helpers(ingot_instance* instance) : instance_(instance) {}
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;
  ~Helpers() { stop(); }

  void start(std::uint32_t worker) {
    threads_.emplace_back([this, worker] { EXPECT_EQ(ingot_work(instance_, worker), 0u); });
  }
  void start_all(std::uint32_t workers) {
    for (std::uint32_t i = 1; i < workers; ++i) start(i);
    wait_for(workers - 1);
  }
  void wait_for(std::uint32_t inside) {
    while (ingot_workers_inside(instance_) != inside) std::this_thread::yield();
  }
  pthread_t thread(std::size_t i) { return threads_[i].native_handle(); }
  void stop() {
    ingot_stop_work(instance_);
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  ingot_instance* instance_;
  std::vector<std::thread> threads_;
};

class Workers : public testing::Test {
 protected:
  void SetUp() override { REQUIRE_RUNNABLE(); }

  // One frame gives what one thread gives, each turn once.
  ingot_frame expect_right_frame() {
    work.clear();
    ingot_frame frame;
    EXPECT_EQ(ingot_run(session.instance, &frame), 0u);
    EXPECT_EQ(frame.accepted, 1u);
    for (std::uint32_t i = 0; i < kGrid; ++i) EXPECT_EQ(work.turns[i], 1) << i;
    for (std::uint32_t i = 0; i < kGrid * kLanes; ++i) {
      const float right = 1.0f / static_cast<float>(i + 3);
      if (work.values[i] != right) {
        ADD_FAILURE() << "element " << i;
        break;
      }
    }
    for (int i = 0; i < 16; ++i) {
      state[i] =
          static_cast<float>(session.frame[i]) * 0.25f * static_cast<float>(i + 1) + state[i];
      EXPECT_EQ(session.out[i], state[i]) << i;
    }
    return frame;
  }

  // A frame in which nothing was taken over; the system may keep threads from running for a while.
  ingot_frame shared_frame() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    ingot_frame frame = expect_right_frame();
    while (frame.taken_over != 0 && std::chrono::steady_clock::now() < end) {
      frame = expect_right_frame();
    }
    EXPECT_EQ(frame.taken_over, 0u);
    return frame;
  }

  Work work;
  Session session;
  std::array<float, 16> state{};
};

TEST_F(Workers, parts_are_those_of_the_worker_numbers_and_on_their_threads) {
  for (const std::uint32_t workers : {1u, 2u, 3u, 4u}) {
    Session fresh;
    ASSERT_EQ(fresh.start(shared_work(work), 0, 0, workers), 0u);
    std::swap(fresh.artifact, session.artifact);
    std::swap(fresh.instance, session.instance);
    ASSERT_EQ(session.bind_all(), 0u);
    state = {};
    {
      // Parts last a moment, so that nobody is late.
      work.extra = [](const Part&) {
        std::this_thread::sleep_for(milliseconds(2));
        return 0;
      };
      Helpers helpers(session.instance);
      helpers.start_all(workers);
      shared_frame();
      work.extra = nullptr;
    }
    ASSERT_EQ(work.parts.size(), workers);
    for (const Part& part : work.parts) {
      EXPECT_EQ(part.first, kGrid * part.worker / workers);
      EXPECT_EQ(part.last, kGrid * (part.worker + 1) / workers);
      for (const Part& other : work.parts) {
        EXPECT_EQ(part.worker == other.worker, part.thread == other.thread);
      }
    }
    std::swap(fresh.artifact, session.artifact);
    std::swap(fresh.instance, session.instance);
  }
}

TEST_F(Workers, what_nobody_takes_the_caller_does) {
  ASSERT_EQ(session.start(shared_work(work), 0, 0, 4), 0u);
  for (int n = 0; n < 10; ++n) {
    EXPECT_EQ(expect_right_frame().taken_over, 3u);
    ASSERT_EQ(work.parts.size(), 4u);
    for (const Part& part : work.parts) EXPECT_EQ(part.worker, 0u) << "its own scratch memory";
  }
  Helpers helpers(session.instance);
  helpers.start(2);
  helpers.wait_for(1);
  for (int n = 0; n < 100; ++n) EXPECT_GE(expect_right_frame().taken_over, 2u);
}

TEST_F(Workers, they_come_late_and_leave_during_frames) {
  ASSERT_EQ(session.start(shared_work(work), 0, 0, 4, 1), 0u);
  for (int n = 0; n < 50; ++n) expect_right_frame();
  {
    Helpers helpers(session.instance);
    for (std::uint32_t worker = 3; worker > 0; --worker) {
      helpers.start(worker);
      for (int n = 0; n < 100; ++n) expect_right_frame();
    }
    std::thread stopper([&] {
      std::this_thread::sleep_for(milliseconds(3));
      ingot_stop_work(session.instance);
    });
    while (ingot_workers_inside(session.instance) > 0) expect_right_frame();
    stopper.join();
  }
  for (int n = 0; n < 10; ++n) EXPECT_EQ(expect_right_frame().taken_over, 3u);
  EXPECT_EQ(ingot_work(session.instance, 1), 0u) << "stopped for good: returns at once";
}

std::uint64_t processor_nanoseconds(pthread_t thread) {
  clockid_t clock = 0;
  timespec time{};
  EXPECT_EQ(pthread_getcpuclockid(thread, &clock), 0);
  EXPECT_EQ(clock_gettime(clock, &time), 0);
  return static_cast<std::uint64_t>(time.tv_sec) * 1000000000u +
         static_cast<std::uint64_t>(time.tv_nsec);
}

TEST_F(Workers, they_sleep_between_frames_and_wake_up_for_the_next) {
  ASSERT_EQ(session.start(shared_work(work), 0, 0, 2), 0u);
  work.extra = [](const Part&) {
    std::this_thread::sleep_for(milliseconds(20));  // the caller waits asleep, too
    return 0;
  };
  Helpers helpers(session.instance);
  helpers.start_all(2);
  std::this_thread::sleep_for(milliseconds(20));
  const std::uint64_t before = processor_nanoseconds(helpers.thread(0));
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_LT(processor_nanoseconds(helpers.thread(0)) - before, 1000000u) << "it slept";
  shared_frame();
  const std::uint64_t caller = processor_nanoseconds(pthread_self());
  work.extra = [&](const Part& part) {
    if (part.worker == 1) std::this_thread::sleep_for(milliseconds(200));
    if (part.worker == 0) std::this_thread::sleep_for(milliseconds(20));
    return 0;
  };
  expect_right_frame();
  EXPECT_LT(processor_nanoseconds(pthread_self()) - caller, 100000000u) << "it slept";
}

TEST_F(Workers, results_of_all_parts_count) {
  for (const std::uint32_t joined : {1u, 4u}) {
    Session other;
    ASSERT_EQ(other.start(shared_work(work), 0, 0, 4), 0u);
    Helpers helpers(other.instance);
    helpers.start_all(joined);
    ingot_frame frame;
    // Parts last a moment, so that workers that are there do theirs, sooner or later.
    const auto run = [&] {
      ingot_status status = ingot_run(other.instance, &frame);
      for (int n = 0; n < 1000 && joined > 1 && frame.taken_over > 0; ++n) {
        status = ingot_run(other.instance, &frame);
      }
      EXPECT_EQ(frame.taken_over, 4 - joined);
      return status;
    };
    const auto moment = [] { std::this_thread::sleep_for(milliseconds(2)); };
    work.extra = [&](const Part& part) {
      moment();
      return part.last == kGrid ? 1 : 0;
    };
    EXPECT_EQ(run(), 822u);
    EXPECT_EQ(frame.flags & INGOT_FRAME_CLAMPED, std::uint32_t{INGOT_FRAME_CLAMPED});
    work.extra = [&](const Part& part) {
      moment();
      return 1 << (part.first * 4 / kGrid);
    };
    EXPECT_EQ(run(), 820u);
    EXPECT_EQ(frame.call, 4u);
    EXPECT_EQ(frame.result, 15);
    work.extra = nullptr;
    EXPECT_EQ(ingot_run(other.instance, &frame), 0u) << "nothing is left of the failure";
  }
}

TEST_F(Workers, calls_that_do_not_pay_stay_whole) {
  struct Case {
    std::uint32_t grid, bytes;
    std::size_t parts;
  };
  const Case cases[] = {{kGrid, 16384, 4}, {kGrid, 16380, 1}, {1, kBigBytes, 1}, {3, kBigBytes, 3}};
  for (const Case& c : cases) {
    Session other;
    ASSERT_EQ(other.start(shared_work(work, c.grid, c.bytes), 0, 0, 4), 0u);
    work.clear();
    ASSERT_EQ(ingot_run(other.instance, nullptr), 0u);
    EXPECT_EQ(work.parts.size(), c.parts) << c.grid << " turns, " << c.bytes << " bytes";
    std::uint32_t next = 0;
    for (const Part& part : work.parts) {
      EXPECT_EQ(part.first, next);
      EXPECT_GT(part.last, part.first);
      next = part.last;
    }
    EXPECT_EQ(next, c.grid);
  }
}

TEST_F(Workers, more_than_the_artifact_was_made_for_are_refused) {
  ASSERT_EQ(session.open(shared_work(work), 0, 0, 4), 0u);
  ingot_instance_options options{};
  options.workers = 5;
  ingot_instance* other = nullptr;
  ingot_error error;
  EXPECT_EQ(ingot_instance_create(session.artifact, &options, &other, &error), 840u);
  EXPECT_EQ(error.found, 5u);
  EXPECT_EQ(error.allowed, 4u);
  EXPECT_EQ(other, nullptr);
  options.workers = 4;
  options.spin_us = 1000001;
  EXPECT_EQ(ingot_instance_create(session.artifact, &options, &other, &error), 801u);
  EXPECT_STREQ(ingot_status_name(840), "E_WORKER_LIMIT");
}

TEST_F(Workers, wrong_numbers_and_taken_ones_are_refused) {
  ASSERT_EQ(session.start(shared_work(work), 0, 0, 3), 0u);
  EXPECT_EQ(ingot_work(session.instance, 0), 841u);
  EXPECT_EQ(ingot_work(session.instance, 3), 841u);
  EXPECT_EQ(ingot_work(session.instance, 0xFFFFFFFFu), 841u);
  Helpers helpers(session.instance);
  helpers.start_all(3);
  EXPECT_EQ(ingot_work(session.instance, 1), 842u);
  EXPECT_EQ(ingot_work(session.instance, 2), 842u);
  expect_right_frame();
  Session alone;
  ASSERT_EQ(alone.open(shared_work(work)), 0u);
  EXPECT_EQ(ingot_work(alone.instance, 1), 841u);
  ingot_stop_work(alone.instance);
  EXPECT_EQ(ingot_workers_inside(alone.instance), 0u);
}

TEST_F(Workers, an_instance_in_use_is_not_destroyed_and_runs_one_frame_at_a_time) {
  ASSERT_EQ(session.start(shared_work(work), 0, 0, 2), 0u);
  {
    Helpers helpers(session.instance);
    helpers.start_all(2);
    EXPECT_EQ(ingot_instance_destroy(session.instance), 843u);
    expect_right_frame();
  }
  std::atomic<int> step{0};
  work.extra = [&](const Part& part) {
    if (part.first > 0) return 0;
    step = 1;
    while (step != 2) std::this_thread::yield();
    return 0;
  };
  std::thread runner([&] { EXPECT_EQ(ingot_run(session.instance, nullptr), 0u); });
  while (step != 1) std::this_thread::yield();
  ingot_frame frame;
  EXPECT_EQ(ingot_run(session.instance, &frame), 843u);
  EXPECT_EQ(frame.accepted, 0u);
  EXPECT_EQ(ingot_instance_destroy(session.instance), 843u);
  step = 2;
  runner.join();
  work.extra = nullptr;
  EXPECT_EQ(ingot_run(session.instance, &frame), 0u);
  EXPECT_EQ(frame.generation, 3u) << "the refused frame does not count";
}

#if defined(__x86_64__)
TEST_F(Workers, their_rounding_is_the_artifacts_and_comes_back) {
  ASSERT_EQ(session.start(shared_work(work), 0, 0, 2), 0u);
  constexpr unsigned up_and_flush = 0x1F80 | 0x4000 | 0x8040;
  std::atomic<unsigned> inside{0}, after{0};
  work.extra = [&](const Part& part) {
    std::this_thread::sleep_for(milliseconds(2));
    if (part.worker == 1) inside = _mm_getcsr() & ~0x3Fu;
    return 0;
  };
  std::thread helper([&] {
    _mm_setcsr(up_and_flush);
    EXPECT_EQ(ingot_work(session.instance, 1), 0u);
    after = _mm_getcsr() & ~0x3Fu;
  });
  while (ingot_workers_inside(session.instance) != 1) std::this_thread::yield();
  shared_frame();
  ingot_stop_work(session.instance);
  helper.join();
  EXPECT_EQ(inside, 0x1F80u);
  EXPECT_EQ(after, up_and_flush);
}
#endif

}  // namespace
}  // namespace ingot::test
