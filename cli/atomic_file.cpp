#include "cli/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>

namespace ingot::cli {
namespace {

namespace fs = std::filesystem;

// What the signal handler removes. Strings in it are never freed: the handler may read one while
// another thread releases its place.
std::array<std::atomic<const char*>, 1024> temporaries;

std::unexpected<Failure> io_failure(const fs::path& path, std::string_view what, int error) {
  return fail(ExitCode::Io, "io-error", fmt::format("{}: {}", what, std::strerror(error)),
              path.string());
}

const char* keep(const std::string& name) {
  static std::mutex mutex;
  static std::deque<std::string>& names = *new std::deque<std::string>;
  const std::lock_guard lock(mutex);
  return names.emplace_back(name).c_str();
}

int remember(const std::string& name) {
  const char* kept = keep(name);
  for (std::size_t i = 0; i < temporaries.size(); ++i) {
    const char* empty = nullptr;
    if (temporaries[i].compare_exchange_strong(empty, kept)) return static_cast<int>(i);
  }
  return -1;
}

void forget(int slot) {
  if (slot >= 0) temporaries[static_cast<std::size_t>(slot)].store(nullptr);
}

extern "C" void remove_temporaries(int signal) {
  for (auto& entry : temporaries) {
    const char* name = entry.load();
    if (name != nullptr) unlink(name);
  }
  // The handler was installed with SA_RESETHAND: this ends the process as if nobody had caught it.
  raise(signal);
}

// A name that no other process can have, so that the handler may know it before it exists.
std::string temporary_name(const std::string& final_name) {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != static_cast<ssize_t>(sizeof(number))) {
    static std::atomic<std::uint64_t> counter;
    number = (static_cast<std::uint64_t>(getpid()) << 32) | counter.fetch_add(1);
  }
  return (fs::path(final_name).parent_path() / fmt::format(".ingot-{:016x}.tmp", number)).string();
}

// Where symbolic links lead, so that a link stays one.
std::string follow_links(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::canonical(path, error);
  return error ? path.string() : target.string();
}

bool is_device(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return fs::is_character_file(status) || fs::is_fifo(status) || fs::is_socket(status);
}

std::string folder_of(const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  return folder.empty() ? "." : folder.string();
}

void flush_folder(const std::string& file) {
  const int fd = open(folder_of(file).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const fs::path& path, unsigned mode) {
  AtomicFile file;
  file.path_ = path;
  file.final_ = follow_links(path);
  std::error_code error;
  if (fs::is_directory(file.final_, error)) return io_failure(path, "cannot write", EISDIR);
  if (!file.open_for_writing(mode)) {
    const int number = errno;
    file.temporary_.clear();
    return io_failure(path, "cannot write", number);
  }
  return file;
}

// Sets fd_ and kind_; false with errno.
bool AtomicFile::open_for_writing(unsigned mode) {
  if (is_device(final_)) {
    kind_ = Kind::Device;
    fd_ = open(final_.c_str(), O_WRONLY | O_CLOEXEC);
    return fd_ >= 0;
  }
  kind_ = Kind::Nameless;
  if (access("/proc/self/fd", X_OK) == 0) {  // how such a file gets its name
    fd_ = open(folder_of(final_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
  }
  if (fd_ >= 0) return true;
  kind_ = Kind::Temporary;
  reserve_temporary_name();
  fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  return fd_ >= 0;
}

void AtomicFile::reserve_temporary_name() {
  temporary_ = temporary_name(final_);
  slot_ = remember(temporary_);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      final_(std::move(other.final_)),
      kind_(other.kind_),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)),
      slot_(std::exchange(other.slot_, -1)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this != &other) {
    discard();
    path_ = std::move(other.path_);
    final_ = std::move(other.final_);
    kind_ = other.kind_;
    temporary_ = std::exchange(other.temporary_, {});
    fd_ = std::exchange(other.fd_, -1);
    slot_ = std::exchange(other.slot_, -1);
  }
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
  if (!temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
  forget(std::exchange(slot_, -1));
}

Result<void> AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return io_failure(path_, "cannot write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> AtomicFile::write(std::string_view text) {
  return write(std::as_bytes(std::span(text.data(), text.size())));
}

Result<void> AtomicFile::give_name(Overwrite overwrite) {
  const std::string source =
      kind_ == Kind::Nameless ? fmt::format("/proc/self/fd/{}", fd_) : temporary_;
  const auto link_to = [&](const std::string& name) {
    return linkat(AT_FDCWD, source.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  if (overwrite == Overwrite::No) {
    if (!link_to(final_)) return io_failure(path_, "will not overwrite", errno);
    return {};
  }
  if (kind_ == Kind::Nameless) {
    if (link_to(final_)) return {};
    // There is a file already, and only a rename replaces one.
    reserve_temporary_name();
    if (!link_to(temporary_)) return io_failure(path_, "cannot name the finished file", errno);
  }
  if (rename(temporary_.c_str(), final_.c_str()) != 0) {
    return io_failure(path_, "cannot rename the finished file", errno);
  }
  temporary_.clear();
  return {};
}

Result<void> AtomicFile::commit(Overwrite overwrite) {
  if (kind_ != Kind::Device) {
    if (fsync(fd_) != 0) return io_failure(path_, "cannot flush", errno);
    INGOT_RETURN_IF_ERROR(give_name(overwrite));
    flush_folder(final_);
  }
  if (close(std::exchange(fd_, -1)) != 0) return io_failure(path_, "cannot write", errno);
  discard();
  return {};
}

Result<void> write_file(const fs::path& path, std::span<const std::byte> bytes) {
  INGOT_ASSIGN(AtomicFile file, AtomicFile::create(path));
  INGOT_RETURN_IF_ERROR(file.write(bytes));
  return file.commit();
}

Result<void> write_file(const fs::path& path, std::string_view text) {
  return write_file(path, std::as_bytes(std::span(text.data(), text.size())));
}

Result<void> make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    return fail(ExitCode::Io, "io-error", "cannot create the folder: " + error.message(),
                path.string());
  }
  return {};
}

void clean_up_on_signals() {
  struct sigaction action = {};
  action.sa_handler = remove_temporaries;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old = {};
    sigaction(signal, &action, &old);
    if (old.sa_handler == SIG_IGN) sigaction(signal, &old, nullptr);
  }
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace ingot::cli
