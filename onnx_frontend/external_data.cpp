#include "onnx_frontend/external_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

namespace ingot {

namespace fs = std::filesystem;

ExternalFiles::ExternalFiles(const fs::path& model) : folder_(model.parent_path()) {
  if (folder_.empty()) folder_ = ".";
}

Result<fs::path> ExternalFiles::resolve(const std::string& location) const {
  const auto outside = [&](std::string_view why) {
    return fail(ExitCode::Malformed, "bad-external-data",
                fmt::format("external data location '{}' {}", location, why));
  };
  const fs::path relative(location);
  if (location.empty()) return outside("is empty");
  if (location.find('\0') != std::string::npos) return outside("holds a zero byte");
  if (relative.is_absolute()) return outside("is an absolute path");
  if (std::ranges::find(relative, fs::path("..")) != relative.end()) return outside("holds '..'");

  std::error_code error;
  const fs::path folder = fs::canonical(folder_, error);
  if (error) {
    return fail(ExitCode::Io, "cannot-read", "cannot read: " + error.message(), folder_.string());
  }
  const fs::path file = fs::canonical(folder / relative, error);
  if (error) {
    return fail(ExitCode::Io, "cannot-read", "cannot read: " + error.message(),
                (folder_ / relative).string());
  }
  const auto [end, unused] = std::ranges::mismatch(folder, file);
  if (end != folder.end()) return outside("leads out of the model's folder");
  return file;
}

Result<MappedFile> ExternalFiles::read(const ExternalRange& range, std::uint64_t size) {
  auto found = files_.find(range.location);
  if (found == files_.end()) {
    INGOT_ASSIGN(const fs::path path, resolve(range.location));
    INGOT_ASSIGN(const MappedFile mapped, map_file(path));
    const SourceFile source{range.location, path, mapped.owner, mapped.bytes};
    found = files_.emplace(range.location, source).first;
  }
  const SourceFile& file = found->second;
  const auto malformed = [&](std::string message) {
    return fail(ExitCode::Malformed, "bad-external-data", std::move(message));
  };
  if (range.length && *range.length != size) {
    return malformed(
        fmt::format("external data has {} bytes, type and shape need {}", *range.length, size));
  }
  if (range.offset > file.bytes.size() || size > file.bytes.size() - range.offset) {
    return malformed(fmt::format("external data needs bytes {} to {} of '{}', which has {}",
                                 range.offset, range.offset + size, range.location,
                                 file.bytes.size()));
  }
  const auto bytes =
      file.bytes.subspan(static_cast<std::size_t>(range.offset), static_cast<std::size_t>(size));
  return MappedFile{file.owner, bytes};
}

std::vector<SourceFile> ExternalFiles::sources() const {
  std::vector<SourceFile> sources;
  for (const auto& [name, source] : files_) sources.push_back(source);
  return sources;
}

}  // namespace ingot
