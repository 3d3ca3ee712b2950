#include "cli/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>

namespace ingot::cli {

// What the signal handler removes.
struct CleanUpEntry {
  std::atomic<const char*> name;  // null: nothing any more
  bool is_folder = false;
  CleanUpEntry* next = nullptr;
};

namespace {

namespace fs = std::filesystem;

std::unexpected<Failure> io_failure(const fs::path& path, std::string_view what, int error) {
  return fail(ExitCode::Io, "io-error", fmt::format("{}: {}", what, std::strerror(error)),
              path.string());
}

// The list only grows, and strings in it are never freed: the handler may read one while another
// thread releases its entry.
std::atomic<CleanUpEntry*> clean_up_list;
// While several files get their names, a signal is noted here and waits.
std::atomic<bool> signals_wait;
std::atomic<int> waiting_signal;

const char* keep(const std::string& name) {
  static std::mutex mutex;
  static std::deque<std::string>& names = *new std::deque<std::string>;
  const std::lock_guard lock(mutex);
  return names.emplace_back(name).c_str();
}

CleanUpEntry* remember(const std::string& name, bool is_folder = false) {
  auto* entry = new CleanUpEntry{keep(name), is_folder, clean_up_list.load()};
  while (!clean_up_list.compare_exchange_weak(entry->next, entry)) {
  }
  return entry;
}

void forget(CleanUpEntry* entry) {
  if (entry != nullptr) entry->name.store(nullptr);
}

extern "C" void clean_up_and_end(int signal) {
  if (signals_wait.load()) {
    waiting_signal.store(signal);
    return;
  }
  // The newest first: files before the folder that was made for them.
  for (CleanUpEntry* entry = clean_up_list.load(); entry != nullptr; entry = entry->next) {
    const char* name = entry->name.load();
    if (name != nullptr) entry->is_folder ? rmdir(name) : unlink(name);
  }
  // Ends the process as if nobody had caught it.
  std::signal(signal, SIG_DFL);
  raise(signal);
}

class SignalsWait {
 public:
  SignalsWait() { signals_wait.store(true); }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;
  ~SignalsWait() {
    signals_wait.store(false);
    if (const int signal = waiting_signal.exchange(0); signal != 0) clean_up_and_end(signal);
  }
};

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
  entry_ = remember(temporary_);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      final_(std::move(other.final_)),
      kind_(other.kind_),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)),
      entry_(std::exchange(other.entry_, nullptr)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this != &other) {
    discard();
    path_ = std::move(other.path_);
    final_ = std::move(other.final_);
    kind_ = other.kind_;
    temporary_ = std::exchange(other.temporary_, {});
    fd_ = std::exchange(other.fd_, -1);
    entry_ = std::exchange(other.entry_, nullptr);
  }
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
  if (!temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
  forget(std::exchange(entry_, nullptr));
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

bool AtomicFile::link_to(const std::string& name) const {
  const std::string source =
      kind_ == Kind::Nameless ? fmt::format("/proc/self/fd/{}", fd_) : temporary_;
  return linkat(AT_FDCWD, source.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

Result<void> AtomicFile::become_temporary() {
  if (kind_ != Kind::Nameless) return {};
  reserve_temporary_name();
  if (!link_to(temporary_)) return io_failure(path_, "cannot name the finished file", errno);
  kind_ = Kind::Temporary;
  return {};
}

Result<void> AtomicFile::give_name(Overwrite overwrite) {
  if (overwrite == Overwrite::No) {
    if (link_to(final_)) return {};
    if (errno != EEXIST) return io_failure(path_, "cannot name the finished file", errno);
    return fail(ExitCode::Io, "exists", "the file exists and is not overwritten", path_.string(),
                "choose another name or move the old one away");
  }
  if (kind_ == Kind::Nameless) {
    if (link_to(final_)) return {};
    // There is a file already, and only a rename replaces one.
    INGOT_RETURN_IF_ERROR(become_temporary());
  }
  if (rename(temporary_.c_str(), final_.c_str()) != 0) {
    return io_failure(path_, "cannot rename the finished file", errno);
  }
  temporary_.clear();
  return {};
}

Result<void> AtomicFile::flush() {
  if (kind_ == Kind::Device || fsync(fd_) == 0) return {};
  return io_failure(path_, "cannot flush", errno);
}

Result<void> AtomicFile::close_file() {
  if (fd_ < 0 || close(std::exchange(fd_, -1)) == 0) return {};
  return io_failure(path_, "cannot write", errno);
}

Result<void> AtomicFile::seal() {
  INGOT_RETURN_IF_ERROR(flush());
  INGOT_RETURN_IF_ERROR(become_temporary());
  return close_file();
}

Result<void> AtomicFile::commit(Overwrite overwrite) {
  if (fd_ >= 0) INGOT_RETURN_IF_ERROR(flush());
  if (kind_ != Kind::Device) {
    INGOT_RETURN_IF_ERROR(give_name(overwrite));
    flush_folder(final_);
  }
  INGOT_RETURN_IF_ERROR(close_file());
  discard();
  return {};
}

void AtomicFile::take_back() const {
  if (kind_ != Kind::Device) unlink(final_.c_str());
}

// ---------------------------------------------------------------------------------------------
// Several files

OutputSet::~OutputSet() {
  files_.clear();
  while (!folders_.empty()) {
    rmdir(folders_.back().name.c_str());
    forget(folders_.back().entry);
    folders_.pop_back();
  }
}

Result<void> OutputSet::make_folder(const fs::path& path) {
  fs::path partial;
  for (const fs::path& part : path) {
    partial /= part;
    std::error_code error;
    if (fs::is_directory(partial, error)) continue;
    const std::string name = partial.string();
    // Known before it exists, so that a signal in between finds it.
    CleanUpEntry* entry = remember(name, true);
    if (mkdir(name.c_str(), 0777) == 0) {
      folders_.push_back({name, entry});
      continue;
    }
    const int number = errno;
    forget(entry);
    if (number != EEXIST || !fs::is_directory(partial, error)) {
      return io_failure(path, "cannot create the folder", number);
    }
  }
  return {};
}

Result<void> OutputSet::add(const fs::path& path, std::span<const std::byte> bytes, unsigned mode) {
  INGOT_ASSIGN(AtomicFile file, AtomicFile::create(path, mode));
  INGOT_RETURN_IF_ERROR(file.write(bytes));
  INGOT_RETURN_IF_ERROR(file.seal());
  files_.push_back(std::move(file));
  return {};
}

Result<void> OutputSet::add(const fs::path& path, std::string_view text, unsigned mode) {
  return add(path, std::as_bytes(std::span(text.data(), text.size())), mode);
}

Result<void> OutputSet::commit(Overwrite overwrite) {
  const SignalsWait wait;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const Result<void> committed = files_[i].commit(overwrite);
    if (committed) continue;
    for (std::size_t done = 0; done < i; ++done) files_[done].take_back();
    return committed;
  }
  files_.clear();
  for (const Folder& folder : folders_) forget(folder.entry);
  folders_.clear();
  return {};
}

// ---------------------------------------------------------------------------------------------

Result<void> write_file(const fs::path& path, std::span<const std::byte> bytes) {
  INGOT_ASSIGN(AtomicFile file, AtomicFile::create(path));
  INGOT_RETURN_IF_ERROR(file.write(bytes));
  return file.commit();
}

Result<void> write_file(const fs::path& path, std::string_view text) {
  return write_file(path, std::as_bytes(std::span(text.data(), text.size())));
}

void clean_up_on_signals() {
  struct sigaction action = {};
  action.sa_handler = clean_up_and_end;
  action.sa_flags = static_cast<int>(SA_NODEFER);
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old = {};
    sigaction(signal, &action, &old);
    if (old.sa_handler == SIG_IGN) sigaction(signal, &old, nullptr);
  }
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace ingot::cli
