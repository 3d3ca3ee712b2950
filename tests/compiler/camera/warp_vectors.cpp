#include "tests/compiler/camera/warp_vectors.h"

#include <bit>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace ingot {
namespace {

std::vector<std::byte> splitmix_frame(std::uint64_t seed, std::size_t size) {
  std::vector<std::byte> bytes;
  bytes.reserve(size + 8);
  for (std::uint64_t state = seed; bytes.size() < size;) {
    state += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    z ^= z >> 31U;
    for (unsigned shift = 0; shift < 64; shift += 8) {
      bytes.push_back(static_cast<std::byte>((z >> shift) & 0xFFU));
    }
  }
  bytes.resize(size);
  return bytes;
}

std::vector<std::byte> ramp_frame(std::size_t size) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < size; ++i) {
    bytes.push_back(static_cast<std::byte>((167 * i + 13 * (i / 256) + 11) % 256));
  }
  return bytes;
}

// The last `size` bytes: elements of a uint8 .npy file come after its header.
std::vector<std::byte> npy_bytes(const std::filesystem::path& path, std::size_t size) {
  const std::string text = read_text(path);
  INGOT_CHECK(text.size() > size && text.substr(1, 5) == "NUMPY", "not the expected .npy file");
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin + (text.size() - size), begin + text.size()};
}

Camera camera_of(const nlohmann::json& json) {
  Camera camera;
  camera.name = json.at("name");
  camera.width = json.at("width");
  camera.height = json.at("height");
  camera.stride = json.at("stride");
  camera.y_height = json.at("y_height");
  camera.uv_height = json.at("uv_height");
  camera.uv_offset = std::uint64_t{camera.stride} * camera.y_height;
  camera.size_bytes = json.at("size");
  return camera;
}

}  // namespace

std::optional<std::filesystem::path> shared_folder() {
  const char* given = std::getenv("INGOT_SHARED");
  const std::filesystem::path folder =
      given != nullptr ? std::filesystem::path(given)
                       : std::filesystem::path(INGOT_SOURCE_DIR).parent_path() / "shared";
  if (!std::filesystem::is_directory(folder)) return std::nullopt;
  return folder;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<WarpCase> warp_cases(const std::filesystem::path& shared, std::int64_t largest) {
  const std::filesystem::path folder = shared / "golden" / "warp";
  std::vector<WarpCase> cases;
  const auto json = nlohmann::json::parse(read_text(folder / "cases.json"));
  for (const auto& record : json.at("cases")) {
    std::int64_t bytes = 1;
    for (const auto& extent : record.at("out_shape")) bytes *= extent.get<std::int64_t>();
    if (bytes > largest || !record.contains("full_output")) continue;
    WarpCase entry;
    entry.id = record.at("id");
    entry.cabin = record.at("layout") == "luma";
    entry.camera = camera_of(record.at("camera"));
    entry.width = record.at("out_width");
    entry.height = record.at("out_height");
    if (!record.at("border_fill").is_null()) entry.fill = record.at("border_fill");
    const bool ramp = record.at("frame_kind") == "ramp";
    for (std::size_t i = 0; i < record.at("frames"); ++i) {
      entry.frames.push_back(
          ramp ? ramp_frame(entry.camera.size_bytes)
               : splitmix_frame(record.at("frame_seeds").at(i), entry.camera.size_bytes));
      entry.matrices.emplace_back();
      for (const auto& word : record.at("matrices_f32_hex").at(i)) {
        const unsigned long bits = std::stoul(word.get<std::string>(), nullptr, 16);
        entry.matrices.back().push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
      }
    }
    entry.expected = npy_bytes(folder / record.at("full_output").get<std::string>(),
                               static_cast<std::size_t>(bytes));
    cases.push_back(std::move(entry));
  }
  return cases;
}

}  // namespace ingot
