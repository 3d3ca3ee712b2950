#include "loader/source.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/internal.h"

namespace ingot::loader {

ingot_status open_source(int fd, Source* source) {
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size < 0) {
    return INGOT_E_SYSTEM_IO;
  }
  *source = {nullptr, fd, static_cast<uint64_t>(status.st_size)};
  return kOk;
}

ingot_status read_source(const Source& source, uint64_t offset, void* to, uint64_t nbytes) {
  auto* at = static_cast<uint8_t*>(to);
  if (source.bytes != nullptr) {
    std::memcpy(at, source.bytes + offset, nbytes);
    return kOk;
  }
  while (nbytes > 0) {
    // Linux moves at most 2 GiB - 4 KiB with one call.
    const size_t part = nbytes < (size_t{1} << 30) ? static_cast<size_t>(nbytes) : size_t{1} << 30;
    const ssize_t got = pread(source.fd, at, part, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return INGOT_E_SYSTEM_IO;
    at += got;
    offset += static_cast<uint64_t>(got);
    nbytes -= static_cast<uint64_t>(got);
  }
  return kOk;
}

}  // namespace ingot::loader
