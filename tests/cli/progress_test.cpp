#include "cli/progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <thread>

namespace ingot::cli {
namespace {

TEST(Progress, AddsUpRepeatedStages) {
  Progress progress(ProgressStyle::None);
  progress.report("a");
  progress.report("b", 1, 2);
  progress.report("b", 2, 2);
  progress.report("a");
  progress.finish();
  ASSERT_EQ(progress.times().size(), 2U);
  EXPECT_EQ(progress.times()[0].stage, "a");
  EXPECT_EQ(progress.times()[1].stage, "b");
}

// Waiting takes time and no processor; work takes both.
TEST(Progress, TimeOfTheProcessorIsCountedApart) {
  Progress progress(ProgressStyle::None);
  progress.report("wait");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  progress.report("work");
  const std::clock_t begin = std::clock();
  while (std::clock() - begin < CLOCKS_PER_SEC / 20) {
  }
  progress.finish();
  ASSERT_EQ(progress.times().size(), 2U);
  EXPECT_GE(progress.times()[0].milliseconds, 200);
  EXPECT_LT(progress.times()[0].cpu_milliseconds, 100);
  EXPECT_GE(progress.times()[1].cpu_milliseconds, 45);
}

TEST(Progress, LinesNameEachStageOnce) {
  testing::internal::CaptureStderr();
  {
    Progress progress(ProgressStyle::Lines);
    for (std::size_t i = 0; i <= 10; ++i) progress.report("code", i, 10);
    progress.report("write");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "code\nwrite\n");
}

TEST(Progress, TheBarIsTakenOffTheScreen) {
  testing::internal::CaptureStderr();
  {
    Progress progress(ProgressStyle::Bar);
    progress.report("code", 5, 10);
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("5/10"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\r\033[K"));
}

}  // namespace
}  // namespace ingot::cli
