#include "tests/cli/tool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

namespace ingot::cli {
namespace {

namespace fs = std::filesystem;

std::string read_file_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void redirect(const fs::path& file, int flags, int to) {
  const int fd = open(file.c_str(), flags | O_CREAT, 0600);
  if (fd < 0 || dup2(fd, to) < 0) _exit(126);
  close(fd);
}

[[noreturn]] void become(const char* program, const fs::path& folder, const fs::path& streams,
                         const std::vector<std::string>& arguments) {
  redirect(streams / "in", O_RDONLY, STDIN_FILENO);
  redirect(streams / "out", O_WRONLY | O_TRUNC, STDOUT_FILENO);
  redirect(streams / "err", O_WRONLY | O_TRUNC, STDERR_FILENO);
  if (chdir(folder.c_str()) != 0) _exit(126);
  std::vector<std::string> copies = {program};
  copies.insert(copies.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& copy : copies) argv.push_back(copy.data());
  argv.push_back(nullptr);
  execv(program, argv.data());
  _exit(126);
}

// `meanwhile` gets the process.
ToolResult run_program(const char* program, const fs::path& folder,
                       const std::vector<std::string>& arguments, const std::string& input,
                       const std::function<void(pid_t)>& meanwhile = {}) {
  const TemporaryFolder streams;
  streams.write("in", input);
  const pid_t child = fork();
  if (child == 0) become(program, folder, streams.path(), arguments);
  if (meanwhile) meanwhile(child);
  int status = 0;
  waitpid(child, &status, 0);
  ToolResult result;
  result.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.output = read_file_text(streams / "out");
  result.errors = read_file_text(streams / "err");
  return result;
}

}  // namespace

ToolResult run_tool(const fs::path& folder, const std::vector<std::string>& arguments,
                    const std::string& input) {
  return run_program(INGOT_TOOL, folder, arguments, input);
}

ToolResult run_replay(const fs::path& folder, const std::vector<std::string>& arguments) {
  return run_program(INGOT_REPLAY, folder, arguments, {});
}

ToolResult run_embed(const fs::path& folder, const std::vector<std::string>& arguments) {
  return run_program(INGOT_EMBED, folder, arguments, {});
}

ToolResult interrupt_tool(const fs::path& folder, const std::vector<std::string>& arguments,
                          int signal, const std::function<bool()>& ready) {
  return run_program(INGOT_TOOL, folder, arguments, {}, [&](pid_t child) {
    for (int i = 0; i < 3000 && !ready(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    kill(child, signal);
  });
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "ingot-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

std::vector<std::string> TemporaryFolder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(path_)) {
    names.push_back(fs::relative(entry.path(), path_).string());
  }
  std::ranges::sort(names);
  return names;
}

void TemporaryFolder::write(const std::string& name, std::string_view bytes) const {
  fs::create_directories((path_ / name).parent_path());
  std::ofstream file(path_ / name, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string TemporaryFolder::read(const std::string& name) const {
  return read_file_text(path_ / name);
}

std::string noise(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random() & 0xFF);
  return bytes;
}

}  // namespace ingot::cli
