// Running the built tool, and folders to run it in.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::cli {

struct ToolResult {
  int exit = -1;  // 128 + signal if one ended it
  std::string output;
  std::string errors;
};

// Runs `ingot ARGUMENTS...` in `folder` with `input` as standard input.
ToolResult run_tool(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
                    const std::string& input = {});

// The same with `ingot_replay`.
ToolResult run_replay(const std::filesystem::path& folder,
                      const std::vector<std::string>& arguments);

// The same with `ingot_embed` (samples/embed).
ToolResult run_embed(const std::filesystem::path& folder,
                     const std::vector<std::string>& arguments);

// Runs the tool, and sends it `signal` as soon as `ready` says so, or after half a minute.
ToolResult interrupt_tool(const std::filesystem::path& folder,
                          const std::vector<std::string>& arguments, int signal,
                          const std::function<bool()>& ready);

// A folder of its own that is removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }
  // Names of everything inside, sorted.
  [[nodiscard]] std::vector<std::string> names() const;
  void write(const std::string& name, std::string_view bytes) const;
  [[nodiscard]] std::string read(const std::string& name) const;
  // Runs the tool here.
  ToolResult tool(const std::vector<std::string>& arguments, const std::string& input = {}) const {
    return run_tool(path_, arguments, input);
  }

 private:
  std::filesystem::path path_;
};

// `count` bytes that are no file of any kind.
std::string noise(std::size_t count, unsigned seed);

}  // namespace ingot::cli
