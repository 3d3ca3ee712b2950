#include "cli/progress.h"

#include <gtest/gtest.h>

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
