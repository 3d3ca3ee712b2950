#include "cli/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/cli/tool.h"

namespace ingot::cli {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  const TemporaryFolder folder;
  {
    Result<AtomicFile> file = AtomicFile::create(folder / "a");
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write("hello"));
    EXPECT_FALSE(fs::exists(folder / "a"));
    ASSERT_TRUE(file->commit());
  }
  EXPECT_EQ(folder.names(), Names{"a"});
  EXPECT_EQ(folder.read("a"), "hello");
}

TEST(AtomicFile, LeavesTheOldFileAloneIfDropped) {
  const TemporaryFolder folder;
  folder.write("a", "old");
  {
    Result<AtomicFile> file = AtomicFile::create(folder / "a");
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write("new"));
  }
  EXPECT_EQ(folder.names(), Names{"a"});
  EXPECT_EQ(folder.read("a"), "old");
}

TEST(AtomicFile, ReplacesAFileAndKeepsALink) {
  const TemporaryFolder folder;
  folder.write("target", "old");
  fs::create_symlink("target", folder / "link");
  ASSERT_TRUE(write_file(folder / "link", std::string_view("new")));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(folder.read("target"), "new");
}

TEST(AtomicFile, RefusesToOverwriteWhenAskedTo) {
  const TemporaryFolder folder;
  folder.write("a", "old");
  Result<AtomicFile> file = AtomicFile::create(folder / "a");
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->write("new"));
  const Result<void> committed = file->commit(Overwrite::No);
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().exit, ExitCode::Io);
  *file = std::move(*AtomicFile::create(folder / "b"));
  EXPECT_EQ(folder.read("a"), "old");
}

TEST(AtomicFile, FailsWithIoWhereNothingCanBeWritten) {
  const TemporaryFolder folder;
  for (const fs::path& path : {folder / "missing/a", folder.path(), fs::path("/proc/none")}) {
    const Result<void> written = write_file(path, std::string_view("x"));
    ASSERT_FALSE(written) << path;
    EXPECT_EQ(written.error().exit, ExitCode::Io);
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(AtomicFile, WritesToDevices) { EXPECT_TRUE(write_file("/dev/null", std::string_view("x"))); }

TEST(AtomicFile, AFullDeviceIsAFailure) {
  const Result<void> written = write_file("/dev/full", std::string_view("x"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().exit, ExitCode::Io);
}

TEST(AtomicFile, ModeIsReducedByTheUmask) {
  const TemporaryFolder folder;
  const mode_t old = umask(0027);
  ASSERT_TRUE(write_file(folder / "a", std::string_view("x")));
  umask(old);
  struct stat status = {};
  ASSERT_EQ(stat((folder / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

TEST(AtomicFile, SignalsLeaveNothingBehind) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const TemporaryFolder folder;
    const pid_t child = fork();
    if (child == 0) {
      std::signal(signal, SIG_DFL);  // who started the tests may ignore it
      clean_up_on_signals();
      Result<AtomicFile> file = AtomicFile::create(folder / "a");
      if (!file || !file->write("half")) _exit(1);
      raise(signal);
      _exit(2);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_TRUE(folder.names().empty());
  }
}

TEST(AtomicFile, ACommittedFileCanBeTakenBack) {
  const TemporaryFolder folder;
  Result<AtomicFile> file = AtomicFile::create(folder / "a");
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->write("x"));
  ASSERT_TRUE(file->seal());
  EXPECT_FALSE(fs::exists(folder / "a"));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(folder.names(), Names{"a"});
  file->take_back();
  EXPECT_TRUE(folder.names().empty());
}

TEST(OutputSet, AppearsOnlyWhenCommitted) {
  const TemporaryFolder folder;
  folder.write("old", "old");
  OutputSet set;
  ASSERT_TRUE(set.make_folder(folder / "a/b"));
  ASSERT_TRUE(set.add(folder / "a/b/one", std::string_view("1")));
  ASSERT_TRUE(set.add(folder / "old", std::string_view("new")));
  EXPECT_FALSE(fs::exists(folder / "a/b/one"));
  EXPECT_EQ(folder.read("old"), "old");
  ASSERT_TRUE(set.commit());
  EXPECT_EQ(folder.names(), (Names{"a", "a/b", "a/b/one", "old"}));
  EXPECT_EQ(folder.read("old"), "new");
}

TEST(OutputSet, LeavesNothingBehindIfDropped) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "there");
  {
    OutputSet set;
    ASSERT_TRUE(set.make_folder(folder / "there/a/b"));
    ASSERT_TRUE(set.add(folder / "there/a/b/one", std::string_view("1")));
    EXPECT_FALSE(set.add(folder / "missing/two", std::string_view("2")));
  }
  EXPECT_EQ(folder.names(), Names{"there"});
}

TEST(OutputSet, OneFileThatExistsKeepsAllAway) {
  const TemporaryFolder folder;
  folder.write("b", "mine");
  OutputSet set;
  ASSERT_TRUE(set.add(folder / "a", std::string_view("1")));
  ASSERT_TRUE(set.add(folder / "b", std::string_view("2")));
  const Result<void> committed = set.commit(Overwrite::No);
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().exit, ExitCode::Io);
  EXPECT_FALSE(fs::exists(folder / "a"));
  EXPECT_EQ(folder.read("b"), "mine");
}

TEST(OutputSet, HoldsMoreFilesThanMayBeOpen) {
  const TemporaryFolder folder;
  struct rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  struct rlimit few = before;
  few.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  {
    OutputSet set;
    for (int i = 0; i < 200; ++i) {
      EXPECT_TRUE(set.add(folder / std::to_string(i), std::string_view("x"))) << i;
    }
  }
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(OutputSet, SignalsLeaveNothingBehind) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    clean_up_on_signals();
    OutputSet set;
    if (!set.make_folder(folder / "a/b") || !set.add(folder / "a/b/c", std::string_view("x"))) {
      _exit(1);
    }
    raise(SIGTERM);
    _exit(2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  EXPECT_TRUE(folder.names().empty());
}

TEST(AtomicFile, AnIgnoredHangUpStaysIgnored) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGHUP, SIG_IGN);
    clean_up_on_signals();
    raise(SIGHUP);
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

}  // namespace
}  // namespace ingot::cli
