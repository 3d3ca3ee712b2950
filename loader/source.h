// Where the bytes come from: the caller's memory or a file. Both may change while they are read,
// so everything is copied out once and only the copy is looked at.
#pragma once

#include <cstddef>
#include <cstdint>

#include "loader/ingot_loader.h"

namespace ingot::loader {

struct Source {
  const uint8_t* bytes;  // null for a file
  int fd;
  uint64_t length;
};

// Finds the length. SYSTEM_IO unless it is a regular file.
ingot_status open_source(int fd, Source* source);

// Copies [offset, offset + nbytes), which the caller has checked to be inside the length.
ingot_status read_source(const Source& source, uint64_t offset, void* to, uint64_t nbytes);

}  // namespace ingot::loader
