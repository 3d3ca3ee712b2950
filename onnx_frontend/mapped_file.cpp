#include "onnx_frontend/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace ingot {
namespace {

std::unexpected<Failure> io_failure(const std::filesystem::path& path, int error) {
  return fail(ExitCode::Io, "cannot-read",
              fmt::format("cannot read: {}", std::generic_category().message(error)),
              path.string());
}

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

Result<MappedFile> map_file(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a named pipe must not hang; it is refused below.
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return io_failure(path, errno);
  struct stat status{};
  if (fstat(file.fd, &status) != 0) return io_failure(path, errno);
  if (!S_ISREG(status.st_mode)) {
    return fail(ExitCode::Io, "cannot-read", "not a regular file", path.string());
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return MappedFile{};
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED) return io_failure(path, errno);
  MappedFile mapped;
  mapped.owner = std::shared_ptr<const void>(
      address, [size](const void* p) { munmap(const_cast<void*>(p), size); });
  mapped.bytes = {static_cast<const std::byte*>(address), size};
  return mapped;
}

}  // namespace ingot
