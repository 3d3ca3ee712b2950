// Files that appear whole or not at all.
//
// Bytes go to a file without a name in the folder of the result, which vanishes with the process
// whatever ends it; commit() flushes it to the disk and gives it its name. Where the file system
// has no such files, it is a hidden temporary file, which failures and signals remove.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ingot::cli {

enum class Overwrite { Yes, No };

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
  // With Overwrite::No an existing file is left alone and the call fails with Io.
  [[nodiscard]] Result<void> commit(Overwrite overwrite = Overwrite::Yes);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  enum class Kind { Device, Nameless, Temporary };

  AtomicFile() = default;
  bool open_for_writing(unsigned mode);
  void reserve_temporary_name();
  void discard();
  [[nodiscard]] Result<void> give_name(Overwrite overwrite);

  std::filesystem::path path_;  // as the user named it
  std::string final_;           // where links lead
  Kind kind_ = Kind::Temporary;
  std::string temporary_;  // empty if there is no such file
  int fd_ = -1;
  int slot_ = -1;  // place in the list that the signal handler reads
};

[[nodiscard]] Result<void> write_file(const std::filesystem::path& path,
                                      std::span<const std::byte> bytes);
[[nodiscard]] Result<void> write_file(const std::filesystem::path& path, std::string_view text);

// Creates a folder and what is missing above it.
[[nodiscard]] Result<void> make_folder(const std::filesystem::path& path);

// From here on SIGINT, SIGTERM and SIGHUP remove temporary files before they end the process, and a
// closed pipe is a failed write instead of a signal.
void clean_up_on_signals();

}  // namespace ingot::cli
