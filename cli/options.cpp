#include "cli/options.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "artifact/format.h"
#include "base/hex.h"

namespace ingot::cli {
namespace {

std::unexpected<Failure> read_failure(const std::filesystem::path& path, int error) {
  return fail(ExitCode::Io, "io-error", fmt::format("cannot read: {}", std::strerror(error)),
              path.string());
}

// A device may have no end; one that has nothing to say is as good as an empty file.
Result<std::vector<std::byte>> read_device(int fd, const std::filesystem::path& path) {
  std::byte first{};
  const ssize_t got = read(fd, &first, 1);
  if (got < 0) return read_failure(path, errno);
  if (got == 0) return std::vector<std::byte>{};
  return fail(ExitCode::Io, "io-error", "a device, not a file", path.string());
}

// At most `most` bytes.
Result<std::vector<std::byte>> read_all(int fd, const std::filesystem::path& path,
                                        std::size_t most = SIZE_MAX) {
  struct stat status = {};
  if (fstat(fd, &status) != 0) return read_failure(path, errno);
  if (S_ISDIR(status.st_mode)) return read_failure(path, EISDIR);
  if (S_ISCHR(status.st_mode)) return read_device(fd, path);
  const auto size = static_cast<std::size_t>(status.st_size > 0 ? status.st_size : 0);
  std::vector<std::byte> bytes(std::min(size, most));
  std::size_t filled = 0;
  while (filled < most) {
    // A pipe, or it has grown.
    if (filled == bytes.size()) bytes.resize(std::min(bytes.size() + 4096, most));
    const ssize_t got = read(fd, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return read_failure(path, errno);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace

std::unexpected<Failure> usage_error(std::string message, std::string hint) {
  return fail(ExitCode::Usage, "usage", std::move(message), {}, std::move(hint));
}

std::unexpected<Failure> not_supported_yet(std::string_view option) {
  return fail(ExitCode::Unsupported, "unsupported-option",
              fmt::format("{} is not supported by this version of ingot", option));
}

Result<NameValue> split_at_last_equals(const std::string& text, std::string_view option) {
  const std::size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    return usage_error(fmt::format("{} '{}': expected NAME=VALUE", option, text));
  }
  return NameValue{text.substr(0, at), text.substr(at + 1)};
}

Result<std::map<std::string, std::string>> name_values(const std::vector<std::string>& texts,
                                                       std::string_view option) {
  std::map<std::string, std::string> values;
  for (const std::string& text : texts) {
    INGOT_ASSIGN(NameValue entry, split_at_last_equals(text, option));
    if (!values.emplace(entry.name, std::move(entry.value)).second) {
      return usage_error(fmt::format("{} names '{}' twice", option, entry.name));
    }
  }
  return values;
}

Result<std::int64_t> parse_integer(std::string_view text, std::string_view option) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return usage_error(fmt::format("{}: '{}' is not an integer", option, text));
  }
  return value;
}

Result<Shape> parse_shape(std::string_view text, std::string_view option) {
  Shape shape;
  if (text.empty() || text == "scalar") return shape;
  while (true) {
    const std::size_t end = text.find('x');
    INGOT_ASSIGN(const std::int64_t extent, parse_integer(text.substr(0, end), option));
    if (extent < 0) return usage_error(fmt::format("{}: a dimension is negative", option));
    shape.push_back(extent);
    if (end == std::string_view::npos) return shape;
    text.remove_prefix(end + 1);
  }
}

namespace {

// CLI11 would read 010 as eight.
bool looks_octal(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return text.size() > 1 && text.front() == '0';
}

}  // namespace

std::string check_counter(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && !looks_octal(text)) return {};
  return "expected a whole number from 0 to 18446744073709551615";
}

namespace {

template <typename Number>
NumberCheck number_check(Number least, Number most, const char* kind) {
  return [=](const std::string& text) -> std::string {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    const bool octal = std::is_integral_v<Number> && looks_octal(text);
    if (whole && !octal && value >= least && value <= most) return {};
    return fmt::format("'{}' is not {} from {} to {}", text, kind, least, most);
  };
}

}  // namespace

NumberCheck whole_number(std::int64_t least, std::int64_t most) {
  return number_check(least, most, "a whole number");
}

NumberCheck real_number(double least, double most) { return number_check(least, most, "a number"); }

Result<ArtifactId> parse_artifact_id(std::string_view text, std::string_view option) {
  ArtifactId id{};
  if (!from_hex(text, id)) {
    return usage_error(fmt::format("{}: an artifact id has 64 hexadecimal digits", option));
  }
  return id;
}

Result<std::vector<std::byte>> read_file(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return read_failure(path, errno);
  Result<std::vector<std::byte>> bytes = read_all(fd, path);
  close(fd);
  return bytes;
}

Result<std::vector<std::byte>> read_artifact_file(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return read_failure(path, errno);
  Result<std::vector<std::byte>> bytes = read_all(fd, path, INGOT_MIN_FILE_SIZE);
  if (bytes && bytes->size() >= 8 && std::memcmp(bytes->data(), INGOT_MAGIC, 8) == 0) {
    const bool again = lseek(fd, 0, SEEK_SET) == 0;
    Result<std::vector<std::byte>> rest = read_all(fd, path);
    if (rest && !again) rest->insert(rest->begin(), bytes->begin(), bytes->end());  // a pipe
    bytes = std::move(rest);
  }
  close(fd);
  return bytes;
}

Result<std::string> read_text_file(const std::filesystem::path& path) {
  constexpr std::size_t kMost = std::size_t{16} << 20;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return read_failure(path, errno);
  const Result<std::vector<std::byte>> read = read_all(fd, path, kMost + 1);
  close(fd);
  if (!read) return std::unexpected(read.error());
  const std::vector<std::byte>& bytes = *read;
  if (bytes.size() > kMost) {
    return fail(ExitCode::Malformed, "too-large", "larger than 16 MiB", path.string());
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<void> print_result(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    return fail(ExitCode::Io, "io-error",
                fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  }
  return {};
}

std::string size_text(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  const char* unit = "KiB";
  for (const char* next : {"MiB", "GiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

}  // namespace ingot::cli
