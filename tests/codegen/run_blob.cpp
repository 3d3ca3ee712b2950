// Runs programs of a code blob on data from a file: how the tests reach another processor, built
// for it and started under qemu. Needs nothing but the C library.
//
//   run_blob BLOB REQUEST REPLY
//
// REQUEST: number of jobs; of each the program's offset, its turns, the number of buffers, and each
// buffer's size and bytes. REPLY: of each job the result and the buffers' bytes. Numbers are 64-bit
// little-endian, the result 32-bit.
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

std::string read_file(const char* path) {
  std::string bytes;
  std::FILE* const file = std::fopen(path, "rb");
  if (file == nullptr) std::exit(2);
  char part[65536];
  for (std::size_t n = 0; (n = std::fread(part, 1, sizeof part, file)) != 0;) bytes.append(part, n);
  std::fclose(file);
  return bytes;
}

using ProgramFunction = std::int32_t (*)(const void* const*, const std::uint64_t*, std::uint32_t,
                                         std::uint32_t, std::uint32_t);

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string blob = read_file(argv[1]);
  // 256 bytes after a page: code must run wherever it lies.
  constexpr std::size_t kShift = 256;
  void* const memory = mmap(nullptr, blob.size() + kShift, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 2;
  char* const code = static_cast<char*>(memory) + kShift;
  std::memcpy(code, blob.data(), blob.size());
  if (mprotect(memory, blob.size() + kShift, PROT_READ | PROT_EXEC) != 0) return 2;
  __builtin___clear_cache(code, code + blob.size());

  const std::string request = read_file(argv[2]);
  std::FILE* const reply = std::fopen(argv[3], "wb");
  if (reply == nullptr) return 2;
  std::size_t at = 0;
  const auto number = [&] {
    std::uint64_t value = 0;
    std::memcpy(&value, request.data() + at, sizeof value);
    at += sizeof value;
    return value;
  };
  for (std::uint64_t jobs = number(); jobs != 0; --jobs) {
    auto* const program = reinterpret_cast<ProgramFunction>(code + number());
    const auto turns = static_cast<std::uint32_t>(number());
    std::vector<std::uint64_t> sizes(number());
    std::vector<void*> buffers;
    for (std::uint64_t& size : sizes) {
      size = number();
      void* const buffer = std::aligned_alloc(64, (size + 64) / 64 * 64);
      std::memcpy(buffer, request.data() + at, size);
      at += size;
      buffers.push_back(buffer);
    }
    const std::int32_t result = program(buffers.data(), nullptr, 0, turns, 0);
    std::fwrite(&result, sizeof result, 1, reply);
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      std::fwrite(buffers[i], 1, sizes[i], reply);
      std::free(buffers[i]);
    }
  }
  return std::fclose(reply) == 0 ? 0 : 2;
}
