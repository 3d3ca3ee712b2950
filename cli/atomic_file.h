// Files that appear whole or not at all.
//
// Bytes go to a file without a name in the folder of the result, which vanishes with the process
// whatever ends it; commit() flushes it to the disk and gives it its name. Where the file system
// has no such files, it is a hidden temporary file, which failures and signals remove.
//
// A command with several results collects them in an OutputSet: all of them appear, or none.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ingot::cli {

enum class Overwrite { Yes, No };

struct CleanUpEntry;

class AtomicFile {
 public:
  // `mode` is reduced by the umask. Devices and pipes (-o /dev/null) are written directly.
  [[nodiscard]] static Result<AtomicFile> create(const std::filesystem::path& path,
                                                 unsigned mode = 0666);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  [[nodiscard]] Result<void> write(std::span<const std::byte> bytes);
  [[nodiscard]] Result<void> write(std::string_view text);
  // Everything is written: flushes and closes the file. Only commit() may follow.
  [[nodiscard]] Result<void> seal();
  // With Overwrite::No an existing file is left alone and the call fails with Io.
  [[nodiscard]] Result<void> commit(Overwrite overwrite = Overwrite::Yes);

  // Removes what commit() put there.
  void take_back() const;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  enum class Kind { Device, Nameless, Temporary };

  AtomicFile() = default;
  bool open_for_writing(unsigned mode);
  [[nodiscard]] Result<void> become_temporary();
  void reserve_temporary_name();
  void discard();
  [[nodiscard]] bool link_to(const std::string& name) const;
  [[nodiscard]] Result<void> give_name(Overwrite overwrite);
  [[nodiscard]] Result<void> flush();
  [[nodiscard]] Result<void> close_file();

  std::filesystem::path path_;  // as the user named it
  std::string final_;           // where links lead
  Kind kind_ = Kind::Temporary;
  std::string temporary_;  // empty if there is no such file
  int fd_ = -1;
  CleanUpEntry* entry_ = nullptr;  // in the list that the signal handler reads
};

// Files, and the folders they need, of one command. What was added is invisible until commit();
// without it the set leaves nothing behind, also when a signal ends the process.
class OutputSet {
 public:
  OutputSet() = default;
  OutputSet(const OutputSet&) = delete;
  OutputSet& operator=(const OutputSet&) = delete;
  ~OutputSet();

  // Creates a folder and what is missing above it.
  [[nodiscard]] Result<void> make_folder(const std::filesystem::path& path);
  [[nodiscard]] Result<void> add(const std::filesystem::path& path,
                                 std::span<const std::byte> bytes, unsigned mode = 0666);
  [[nodiscard]] Result<void> add(const std::filesystem::path& path, std::string_view text,
                                 unsigned mode = 0666);
  // Gives all files their names, in the order of adding. A signal meanwhile waits for the end.
  [[nodiscard]] Result<void> commit(Overwrite overwrite = Overwrite::Yes);

 private:
  struct Folder {
    std::string name;
    CleanUpEntry* entry;
  };

  std::vector<AtomicFile> files_;
  std::vector<Folder> folders_;  // those that the set created, outer ones first
};

[[nodiscard]] Result<void> write_file(const std::filesystem::path& path,
                                      std::span<const std::byte> bytes);
[[nodiscard]] Result<void> write_file(const std::filesystem::path& path, std::string_view text);

// From here on SIGINT, SIGTERM and SIGHUP remove temporary files before they end the process, and a
// closed pipe is a failed write instead of a signal.
void clean_up_on_signals();

}  // namespace ingot::cli
