// Tensors whose bytes are in files beside the model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "onnx_frontend/mapped_file.h"
#include "onnx_frontend/model.h"

namespace ingot {

// The entries of TensorProto.external_data that ingot knows.
struct ExternalRange {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

// Opens side files, each once, and only inside the model's folder.
class ExternalFiles {
 public:
  explicit ExternalFiles(const std::filesystem::path& model);

  // The bytes of a tensor of `size` bytes. Fails with Malformed for a location outside the folder
  // or a range that does not fit, with Io for a file that cannot be read.
  [[nodiscard]] Result<MappedFile> read(const ExternalRange& range, std::uint64_t size);
  // The files read so far, sorted by name.
  [[nodiscard]] std::vector<SourceFile> sources() const;

 private:
  [[nodiscard]] Result<std::filesystem::path> resolve(const std::string& location) const;

  std::filesystem::path folder_;
  std::map<std::string, SourceFile> files_;
};

}  // namespace ingot
