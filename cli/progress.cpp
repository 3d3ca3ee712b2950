#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string_view>

namespace ingot::cli {
namespace {

constexpr std::size_t kBarWidth = 30;
constexpr std::chrono::milliseconds kRedrawInterval(50);

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

double cpu_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

std::string bar(std::size_t done, std::size_t total) {
  if (total == 0) return {};
  const std::size_t filled = std::min(done, total) * kBarWidth / total;
  return fmt::format("[{}{}] {}/{}", std::string(filled, '#'), std::string(kBarWidth - filled, '.'),
                     done, total);
}

}  // namespace

ProgressStyle default_progress_style() {
  return isatty(STDERR_FILENO) != 0 ? ProgressStyle::Bar : ProgressStyle::Lines;
}

void Progress::report(const std::string& stage, std::size_t done, std::size_t total) {
  const std::lock_guard lock(mutex_);
  if (stage != stage_) {
    end_stage();
    stage_ = stage;
    started_ = Clock::now();
    cpu_started_ = cpu_milliseconds();
    drawn_ = {};
    if (style_ == ProgressStyle::Lines) print(fmt::format("{}\n", stage));
  }
  if (style_ == ProgressStyle::Bar) draw(done, total);
}

void Progress::finish() {
  const std::lock_guard lock(mutex_);
  end_stage();
  if (bar_visible_) print("\r\033[K");
  bar_visible_ = false;
}

void Progress::end_stage() {
  if (stage_.empty()) return;
  const std::chrono::duration<double, std::milli> spent = Clock::now() - started_;
  auto same = std::ranges::find(times_, stage_, &StageTime::stage);
  if (same == times_.end()) same = times_.insert(same, {stage_, 0, 0});
  same->milliseconds += spent.count();
  same->cpu_milliseconds += cpu_milliseconds() - cpu_started_;
  stage_.clear();
}

void Progress::draw(std::size_t done, std::size_t total) {
  const Clock::time_point now = Clock::now();
  if (bar_visible_ && now - drawn_ < kRedrawInterval && done != total) return;
  drawn_ = now;
  bar_visible_ = true;
  print(fmt::format("\r\033[K{:<24} {}", stage_, bar(done, total)));
}

}  // namespace ingot::cli
