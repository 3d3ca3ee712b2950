// How far a long command is: a bar on a terminal, a line per stage otherwise, on standard error.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace ingot::cli {

enum class ProgressStyle { None, Lines, Bar };

// Bar if standard error is a terminal, else Lines.
[[nodiscard]] ProgressStyle default_progress_style();

class Progress {
 public:
  struct StageTime {
    std::string stage;
    double milliseconds = 0;
    double cpu_milliseconds = 0;  // of all threads of the process
  };

  explicit Progress(ProgressStyle style) : style_(style) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { finish(); }

  // A new name starts a stage and ends the one before. May be called from any thread.
  void report(const std::string& stage, std::size_t done = 0, std::size_t total = 0);
  // Ends the last stage and takes the bar off the screen.
  void finish();

  // Stages that ended, in order; repeated ones are added up.
  [[nodiscard]] const std::vector<StageTime>& times() const { return times_; }

 private:
  using Clock = std::chrono::steady_clock;

  void end_stage();
  void draw(std::size_t done, std::size_t total);

  ProgressStyle style_;
  std::mutex mutex_;
  std::string stage_;
  Clock::time_point started_;
  double cpu_started_ = 0;  // milliseconds
  Clock::time_point drawn_;
  bool bar_visible_ = false;
  std::vector<StageTime> times_;
};

}  // namespace ingot::cli
