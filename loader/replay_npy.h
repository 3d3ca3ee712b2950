// NumPy's .npy files, version 1, as far as the replay program needs them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "loader/ingot_loader.h"

namespace ingot::replay {

// A whole file in memory; released with std::free.
struct FileBytes {
  uint8_t* data = nullptr;
  size_t nbytes = 0;
};

bool read_file(const char* path, FileBytes* file);

enum class NpyResult { Done, NotNpy, WrongType, WrongShape, Truncated };

// Spreads the elements of an .npy file over `to`, which has the slot's strides and nbytes.
NpyResult load_npy(const FileBytes& file, const ingot_io_info& io, uint8_t* to);

// Writes the slot's elements densely to `path`, by way of a temporary file beside it.
bool save_npy(const char* path, const ingot_io_info& io, const uint8_t* from);

}  // namespace ingot::replay
