// A file mapped read-only, alive as long as somebody holds the owner.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "base/result.h"

namespace ingot {

struct MappedFile {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

// Regular files only. Fails with Io; an empty file maps to no bytes.
[[nodiscard]] Result<MappedFile> map_file(const std::filesystem::path& path);

}  // namespace ingot
