#include "cli/tensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "cli/npy.h"
#include "cli/options.h"
#include "onnx_frontend/import_graph.h"
#include "onnx_frontend/read_model.h"

namespace ingot::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEndings[] = {".npy", ".pb", ".bin"};

Result<Tensor> read_pb(const fs::path& path) {
  INGOT_ASSIGN(const OnnxTensor tensor, read_tensor(path));
  Result<Tensor> result = to_tensor(tensor);
  if (!result) {
    for (Diagnostic& diagnostic : result.error().diagnostics) diagnostic.file = path.string();
  }
  return result;
}

Result<Tensor> read_bin(const fs::path& path, DType dtype, const Shape& shape) {
  INGOT_ASSIGN(std::vector<std::byte> bytes, read_file(path));
  const auto expected =
      static_cast<std::uint64_t>(element_count(shape)) * static_cast<unsigned>(size_bytes(dtype));
  if (bytes.size() != expected) {
    return fail(
        ExitCode::Malformed, "wrong-size",
        fmt::format("{} bytes, but {} has {}", bytes.size(), to_text(dtype, shape), expected),
        path.string());
  }
  return Tensor::own(dtype, shape, std::move(bytes));
}

}  // namespace

Result<Tensor> read_tensor_file(const fs::path& path) {
  const fs::path ending = path.extension();
  if (ending == ".pb") return read_pb(path);
  if (ending == ".npy") {
    INGOT_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
    return parse_npy(bytes, path.string());
  }
  return usage_error(fmt::format("'{}': a tensor file ends in .npy, .pb or .bin", path.string()),
                     "a .bin file needs a known type and shape");
}

Result<Tensor> read_tensor_file(const fs::path& path, DType dtype, const Shape& shape) {
  if (path.extension() == ".bin") return read_bin(path, dtype, shape);
  INGOT_ASSIGN(Tensor tensor, read_tensor_file(path));
  if (tensor.dtype != dtype || tensor.shape != shape) {
    return fail(ExitCode::Malformed, "wrong-tensor",
                fmt::format("is {}, expected {}", to_text(tensor.dtype, tensor.shape),
                            to_text(dtype, shape)),
                path.string());
  }
  return tensor;
}

bool is_tensor_file(const fs::path& path) {
  return std::ranges::find(kEndings, path.extension().string()) != std::end(kEndings);
}

Result<fs::path> find_tensor_file(const fs::path& folder, const std::string& stem) {
  for (const char* ending : kEndings) {
    fs::path path = folder / (stem + ending);
    std::error_code error;
    if (fs::exists(path, error)) return path;
  }
  return fail(ExitCode::Io, "missing-file", "no such file (.npy, .pb or .bin)",
              (folder / stem).string());
}

}  // namespace ingot::cli
