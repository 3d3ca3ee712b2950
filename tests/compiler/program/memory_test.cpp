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
      if (random() % 8 == 0) program.buffers.back().kind = BufferKind::State;
    }
    ASSERT_TRUE(plan_memory(program));
    const auto apart = check_overlap(program);
    ASSERT_TRUE(apart) << apart.error().diagnostics[0].message;
    for (const ProgramArena& arena : program.arenas) {
      if (!arena.state) {
        EXPECT_GE(arena.size_bytes, program.largest_live_bytes);
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
