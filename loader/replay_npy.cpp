#include "loader/replay_npy.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ingot::replay {

namespace {

struct TypeName {
  uint32_t dtype;
  const char* name;
};

// bfloat16 has no name in NumPy.
constexpr TypeName kTypes[] = {
    {INGOT_ELEMENT_F32, "<f4"},  {INGOT_ELEMENT_F16, "<f2"}, {INGOT_ELEMENT_BF16, "|V2"},
    {INGOT_ELEMENT_F64, "<f8"},  {INGOT_ELEMENT_U8, "|u1"},  {INGOT_ELEMENT_I8, "|i1"},
    {INGOT_ELEMENT_I16, "<i2"},  {INGOT_ELEMENT_I32, "<i4"}, {INGOT_ELEMENT_I64, "<i8"},
    {INGOT_ELEMENT_BOOL, "|b1"}, {INGOT_ELEMENT_U16, "<u2"}, {INGOT_ELEMENT_U32, "<u4"},
    {INGOT_ELEMENT_U64, "<u8"},
};

const char* type_name(uint32_t dtype) {
  for (const TypeName& type : kTypes) {
    if (type.dtype == dtype) return type.name;
  }
  return "";
}

constexpr size_t kPrefix = 10;  // magic, version, length of the header

// Text after `key`, or null.
const char* value_of(const char* header, const char* key) {
  const char* at = std::strstr(header, key);
  if (at == nullptr) return nullptr;
  at = std::strchr(at + std::strlen(key), ':');
  if (at == nullptr) return nullptr;
  for (++at; *at == ' '; ++at) {
  }
  return at;
}

// "(2, 3)", "(5,)" or "()" against the slot's shape.
bool same_shape(const char* text, const ingot_io_info& io) {
  if (*text++ != '(') return false;
  for (uint32_t i = 0; i < io.rank; ++i) {
    char* end = nullptr;
    if (std::strtoull(text, &end, 10) != io.shape[i] || end == text) return false;
    for (text = end; *text == ',' || *text == ' '; ++text) {
    }
  }
  return *text == ')';
}

// Calls visit(offset in the slot) for every element in row-major order.
template <typename Visit>
void for_each_offset(const ingot_io_info& io, Visit visit) {
  uint32_t index[INGOT_MAX_RANK] = {};
  uint64_t offset = 0;
  const uint64_t count = io.logical_nbytes / ingot_element_size(io.dtype);
  for (uint64_t n = 0; n < count; ++n) {
    visit(offset);
    for (uint32_t d = io.rank; d-- > 0;) {
      offset += io.strides[d];
      if (++index[d] < io.shape[d]) break;
      offset -= io.strides[d] * io.shape[d];
      index[d] = 0;
    }
  }
}

size_t make_header(const ingot_io_info& io, char* header, size_t size) {
  char shape[16 * INGOT_MAX_RANK] = "";
  size_t length = 0;
  for (uint32_t i = 0; i < io.rank; ++i) {
    length += static_cast<size_t>(std::snprintf(shape + length, sizeof shape - length, "%s%u",
                                                i > 0 ? ", " : "", io.shape[i]));
  }
  const int text =
      std::snprintf(header, size, "{'descr': '%s', 'fortran_order': False, 'shape': (%s%s), }",
                    type_name(io.dtype), shape, io.rank == 1 ? "," : "");
  // Data starts on a multiple of 64; the header ends with a line feed.
  size_t end = static_cast<size_t>(text);
  while ((kPrefix + end + 1) % 64 != 0) header[end++] = ' ';
  header[end++] = '\n';
  return end;
}

}  // namespace

bool read_file(const char* path, FileBytes* file) {
  std::FILE* stream = std::fopen(path, "rb");
  if (stream == nullptr) return false;
  bool good = std::fseek(stream, 0, SEEK_END) == 0;
  const long size = good ? std::ftell(stream) : -1;
  good = size >= 0 && std::fseek(stream, 0, SEEK_SET) == 0;
  if (good) {
    file->nbytes = static_cast<size_t>(size);
    file->data = static_cast<uint8_t*>(std::malloc(file->nbytes + 1));
    good = file->data != nullptr && std::fread(file->data, 1, file->nbytes, stream) == file->nbytes;
  }
  std::fclose(stream);
  return good;
}

NpyResult load_npy(const FileBytes& file, const ingot_io_info& io, uint8_t* to) {
  if (file.nbytes < kPrefix + 2 || std::memcmp(file.data, "\x93NUMPY", 6) != 0) {
    return NpyResult::NotNpy;
  }
  const bool wide = file.data[6] >= 2;
  const size_t prefix = wide ? kPrefix + 2 : kPrefix;
  size_t length = file.data[8] | static_cast<size_t>(file.data[9]) << 8;
  if (wide)
    length |= static_cast<size_t>(file.data[10]) << 16 | static_cast<size_t>(file.data[11]) << 24;
  // Zeros behind the text: a value is compared without asking where the header ends.
  char header[1024 + 8] = {};
  if (length > 1024 || prefix + length > file.nbytes) return NpyResult::NotNpy;
  std::memcpy(header, file.data + prefix, length);
  const char* type = value_of(header, "'descr'");
  const char* order = value_of(header, "'fortran_order'");
  const char* shape = value_of(header, "'shape'");
  if (type == nullptr || order == nullptr || shape == nullptr) return NpyResult::NotNpy;
  const char* expected = type_name(io.dtype);
  const bool same_type = std::strncmp(type + 1, expected, 3) == 0 && type[4] == type[0];
  if (!same_type) return NpyResult::WrongType;
  if (std::strncmp(order, "False", 5) != 0 && io.rank > 1) return NpyResult::WrongShape;
  if (!same_shape(shape, io)) return NpyResult::WrongShape;
  if (file.nbytes - prefix - length != io.logical_nbytes) return NpyResult::Truncated;
  const uint8_t* from = file.data + prefix + length;
  const size_t size = ingot_element_size(io.dtype);
  for_each_offset(io, [&](uint64_t offset) {
    std::memcpy(to + offset, from, size);
    from += size;
  });
  return NpyResult::Done;
}

bool save_npy(const char* path, const ingot_io_info& io, const uint8_t* from) {
  char temporary[1100];
  if (std::snprintf(temporary, sizeof temporary, "%s.tmp", path) >=
      static_cast<int>(sizeof temporary)) {
    return false;
  }
  std::FILE* stream = std::fopen(temporary, "wb");
  if (stream == nullptr) return false;
  char header[512];
  const size_t length = make_header(io, header, sizeof header);
  const uint8_t prefix[kPrefix] = {0x93,
                                   'N',
                                   'U',
                                   'M',
                                   'P',
                                   'Y',
                                   1,
                                   0,
                                   static_cast<uint8_t>(length & 255),
                                   static_cast<uint8_t>(length >> 8)};
  bool good = std::fwrite(prefix, 1, sizeof prefix, stream) == sizeof prefix &&
              std::fwrite(header, 1, length, stream) == length;
  const size_t size = ingot_element_size(io.dtype);
  for_each_offset(io, [&](uint64_t offset) {
    good = good && std::fwrite(from + offset, 1, size, stream) == size;
  });
  good = std::fclose(stream) == 0 && good;
  good = good && std::rename(temporary, path) == 0;
  if (!good) std::remove(temporary);
  return good;
}

}  // namespace ingot::replay
