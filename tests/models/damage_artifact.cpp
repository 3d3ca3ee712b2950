// Every byte of an artifact changed in turn, and every shorter file: none may be accepted.
//
// usage: damage_artifact ARTIFACT RAW_KEY     (an artifact with one signature; 32 bytes of key)
// Exit 0 if all were refused with the exit code that docs/cli.md gives: 6 for the two bytes of the
// major version, 5 for everything else.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#include "loader/ingot_loader.h"

namespace {

std::vector<std::uint8_t> read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// splitmix64, for the changed bit of each byte.
std::uint64_t mix(std::uint64_t z) {
  z += 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

struct Device {
  ingot_key key{};
  ingot_policy policy{};

  ingot_status open(const std::uint8_t* bytes, std::size_t size) const {
    ingot_artifact* artifact = nullptr;
    ingot_error error;
    const ingot_status status = ingot_open_memory(bytes, size, &policy, nullptr, &artifact, &error);
    ingot_close(artifact);
    return status;
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::vector<std::uint8_t> file = read(argv[1]);
  const std::vector<std::uint8_t> key = read(argv[2]);
  Device device;
  if (key.size() != sizeof device.key.public_key) return 2;
  std::memcpy(device.key.public_key, key.data(), key.size());
  device.policy.keys = &device.key;
  device.policy.key_count = 1;
  if (device.open(file.data(), file.size()) != 0) {
    std::puts("the artifact itself is refused");
    return 1;
  }
  std::map<ingot_status, std::size_t> refused;
  std::size_t wrong = 0;
  auto expect = [&](ingot_status status, int exit_code, const char* what, std::size_t at) {
    ++refused[status];
    if (status != 0 && ingot_status_exit_code(status) == exit_code) return;
    if (++wrong <= 10) std::printf("%s %zu: %s\n", what, at, ingot_status_name(status));
  };
  for (std::size_t at = 0; at < file.size(); ++at) {
    const auto bit = static_cast<std::uint8_t>(1U << (mix(at) % 8));
    file[at] ^= bit;
    expect(device.open(file.data(), file.size()), at == 8 || at == 9 ? 6 : 5, "byte", at);
    file[at] ^= bit;
  }
  for (std::size_t size = 0; size < file.size(); ++size) {
    expect(device.open(file.data(), size), 5, "length", size);
  }
  std::printf("%zu bytes changed in turn, %zu shorter files\n", file.size(), file.size());
  for (const auto& [status, count] : refused) {
    std::printf("  %-20s %zu\n", ingot_status_name(status), count);
  }
  std::printf("%zu accepted or refused with another code\n", wrong);
  return wrong == 0 ? 0 : 1;
}
