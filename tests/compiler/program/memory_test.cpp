// The arena planner against its judge, on random lifetimes.
#include <gtest/gtest.h>

#include <random>

#include "compiler/program/program.h"

namespace ingot {
namespace {

ProgramBuffer scratch(std::uint64_t size, std::uint32_t first, std::uint32_t last) {
  ProgramBuffer buffer;
  buffer.dtype = DType::U8;
  buffer.shape = {static_cast<std::int64_t>(size)};
  buffer.layout = Layout::row_major(1);
  buffer.size_bytes = size;
  buffer.first_call = first;
  buffer.last_call = last;
  return buffer;
}

Program with_calls(std::size_t count) {
  Program program;
  program.calls.resize(count);
  return program;
}

// All pairs, by hand: the judge is judged too.
void expect_no_pair_shares(const Program& program) {
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const ProgramBuffer& a = program.buffers[i];
    EXPECT_EQ(a.arena_offset % 256, 0U);
    EXPECT_LE(a.arena_offset + a.size_bytes, program.arenas[a.arena].size_bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const ProgramBuffer& b = program.buffers[j];
      const bool meet = a.first_call <= b.last_call && b.first_call <= a.last_call;
      const bool share = a.arena_offset < b.arena_offset + b.size_bytes &&
                         b.arena_offset < a.arena_offset + a.size_bytes;
      EXPECT_FALSE(a.arena == b.arena && meet && share) << i << " and " << j;
    }
  }
}

TEST(PlanMemory, RandomLifetimesNeverShareBytes) {
  std::mt19937 engine(11);
  auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  for (int round = 0; round < 200; ++round) {
    const std::uint32_t calls = 1 + random() % 30;
    Program program = with_calls(calls);
    for (std::uint32_t i = 0; i < 1 + random() % 40; ++i) {
      const std::uint32_t first = random() % calls;
      const std::uint32_t last = first + random() % (calls - first);
      program.buffers.push_back(scratch(random() % 5000, first, last));
      if (random() % 8 != 0) continue;
      program.buffers.back() = scratch(random() % 5000, 0, calls - 1);
      program.buffers.back().kind = BufferKind::State;
    }
    ASSERT_TRUE(plan_memory(program));
    const auto apart = check_overlap(program);
    ASSERT_TRUE(apart) << apart.error().diagnostics[0].message;
    expect_no_pair_shares(program);
    for (std::uint32_t a = 0; a < program.arenas.size(); ++a) {
      std::uint64_t sum = 0;
      for (const ProgramBuffer& buffer : program.buffers) {
        if (buffer.arena == a) sum += (buffer.size_bytes + 255) / 256 * 256;
      }
      EXPECT_LE(program.arenas[a].size_bytes, sum);
      if (!program.arenas[a].state) {
        EXPECT_GE(program.arenas[a].size_bytes, program.largest_live_bytes);
      }
    }
  }
}

TEST(PlanMemory, AChainNeedsTwoBuffers) {
  Program program = with_calls(10);
  for (std::uint32_t i = 0; i + 1 < 10; ++i) program.buffers.push_back(scratch(1000, i, i + 1));
  ASSERT_TRUE(plan_memory(program));
  ASSERT_EQ(program.arenas.size(), 1U);
  EXPECT_EQ(program.arenas[0].size_bytes, 2048U);
  EXPECT_EQ(program.largest_live_bytes, 2048U);
}

TEST(CheckOverlap, NamesBuffersThatShareBytes) {
  Program program = with_calls(3);
  program.buffers = {scratch(512, 0, 1), scratch(512, 1, 2)};
  ASSERT_TRUE(plan_memory(program));
  program.buffers[1].arena_offset = 256;
  program.buffers[0].arena_offset = 0;
  program.arenas[0].size_bytes = 4096;
  const auto apart = check_overlap(program);
  ASSERT_FALSE(apart);
  EXPECT_NE(apart.error().diagnostics[0].message.find("share bytes"), std::string::npos);
}

TEST(CheckOverlap, SeesTheEndOfTheArenaAndUseOutsideALifetime) {
  Program program = with_calls(2);
  program.buffers = {scratch(512, 0, 0)};
  ASSERT_TRUE(plan_memory(program));
  program.arenas[0].size_bytes = 256;
  EXPECT_FALSE(check_overlap(program));
  program.arenas[0].size_bytes = 512;
  EXPECT_TRUE(check_overlap(program));
  program.calls[1].buffers = {0};
  EXPECT_FALSE(check_overlap(program));
}

// Broken plans, each of which lets something that is held lie where it can be overwritten.
TEST(CheckOverlap, HeldBuffersShareNothing) {
  Program program = with_calls(4);
  program.buffers = {scratch(512, 0, 3), scratch(512, 0, 3), scratch(512, 0, 1),
                     scratch(512, 2, 3)};
  program.buffers[0].kind = BufferKind::State;
  program.buffers[1].kind = BufferKind::NextState;
  ASSERT_TRUE(plan_memory(program));
  ASSERT_TRUE(check_overlap(program));
  ASSERT_EQ(program.arenas.size(), 2U);
  const auto problem = [](const Program& broken) {
    const auto apart = check_overlap(broken);
    return apart ? "none" : apart.error().diagnostics[0].message;
  };
  Program broken = program;
  broken.buffers[1].arena_offset = broken.buffers[0].arena_offset;
  EXPECT_NE(problem(broken).find("share bytes"), std::string::npos);
  // The state is not read any more where the next one is written.
  broken.buffers[0].last_call = 1;
  broken.buffers[1].first_call = 2;
  EXPECT_EQ(problem(broken), "buffer 0 is held, but not through the whole list");
  broken = program;
  broken.buffers[0].arena = broken.buffers[2].arena;
  broken.arenas[broken.buffers[2].arena].size_bytes = 4096;
  broken.buffers[0].arena_offset = 2048;
  EXPECT_EQ(problem(broken), "buffer 0 lies in an arena of another kind");
  broken = program;
  broken.buffers[2].arena = broken.buffers[0].arena;
  EXPECT_EQ(problem(broken), "buffer 2 lies in an arena of another kind");
  for (const BufferKind kind : {BufferKind::Input, BufferKind::Output}) {
    broken = program;
    broken.buffers[3].kind = kind;
    EXPECT_NE(problem(broken), "none");
    broken.buffers[3].first_call = 0;
    EXPECT_EQ(problem(broken), "buffer 3 lies in an arena of another kind");
    broken.buffers[3].arena = kNone;
    EXPECT_EQ(problem(broken), "none");
  }
}

TEST(ProgramText, PrintsWhatItParses) {
  const std::string text =
      "program \"net\" {\n"
      "  workers 3\n"
      "  io \"x\" input f32[4]\n"
      "  io \"y\" output f32[4]\n"
      "  arena 256\n"
      "  buffer 0 input io 0 f32[4] 16 bytes calls 0 1 row\n"
      "  buffer 1 output io 1 f32[4] 16 bytes calls 0 1 row\n"
      "  buffer 2 scratch f32[4] 16 bytes arena 0 0 calls 0 1 row\n"
      "  fill 0 (2) \"zero halo\" flops 0 read 0 written 16\n"
      "  call \"k\" grid 4 (1,0,2) \"add\" flops 4 read 32 written 16\n"
      "}\n";
  const auto program = parse_program(text);
  ASSERT_TRUE(program) << program.error().diagnostics[0].message;
  EXPECT_EQ(print_program(*program), text);
  EXPECT_TRUE(validate_program(*program));
  for (std::size_t cut = 0; cut < text.size(); cut += 3) {
    (void)parse_program(text.substr(0, cut));
  }
  EXPECT_FALSE(parse_program("program \"x\" {\n"));
  EXPECT_FALSE(
      parse_program("program \"x\" {\n  call \"k\" grid 1 (0) \"\" flops 0 read 0 written 0\n}\n"));
}

}  // namespace
}  // namespace ingot
