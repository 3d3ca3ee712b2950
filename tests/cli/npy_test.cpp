#include "cli/npy.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <string_view>

namespace ingot::cli {
namespace {

std::vector<std::byte> file_with_header(const std::string& header, std::size_t data_bytes) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xFF);
  file += static_cast<char>(header.size() >> 8);
  file += header + std::string(data_bytes, '\0');
  const auto* bytes = reinterpret_cast<const std::byte*>(file.data());
  return {bytes, bytes + file.size()};
}

ExitCode exit_of(const std::vector<std::byte>& file) {
  const Result<Tensor> tensor = parse_npy(file, "f.npy");
  return tensor ? ExitCode::Done : tensor.error().exit;
}

TEST(Npy, EveryTypeComesBack) {
  for (int code = 1; code <= 13; ++code) {
    const auto dtype = static_cast<DType>(code);
    const Shape shape = {2, 3};
    std::vector<std::byte> data(6 * static_cast<std::size_t>(size_bytes(dtype)), std::byte{1});
    const Result<Tensor> tensor = parse_npy(encode_npy(dtype, shape, data), "f.npy");
    ASSERT_TRUE(tensor) << name(dtype);
    EXPECT_EQ(tensor->dtype, dtype);
    EXPECT_EQ(tensor->shape, shape);
    EXPECT_TRUE(std::ranges::equal(tensor->bytes, data));
  }
}

TEST(Npy, RanksZeroAndOneAndEmptyDimensions) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{0}, Shape{3, 0, 2}}) {
    std::vector<std::byte> data(static_cast<std::size_t>(element_count(shape)) * 4);
    const Result<Tensor> tensor = parse_npy(encode_npy(DType::F32, shape, data), "f.npy");
    ASSERT_TRUE(tensor);
    EXPECT_EQ(tensor->shape, shape);
  }
}

TEST(Npy, DataStartsOnSixtyFourBytes) {
  const std::vector<std::byte> file = encode_npy(DType::U8, {5}, std::vector<std::byte>(5));
  EXPECT_EQ((file.size() - 5) % 64, 0U);
}

TEST(Npy, FortranOrderBecomesRowMajor) {
  std::vector<std::byte> file =
      file_with_header("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", 6);
  for (std::size_t i = 0; i < 6; ++i) file[file.size() - 6 + i] = static_cast<std::byte>(i);
  const Result<Tensor> tensor = parse_npy(file, "f.npy");
  ASSERT_TRUE(tensor);
  const std::array<int, 6> expected = {0, 2, 4, 1, 3, 5};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(std::to_integer<int>(tensor->bytes[i]), expected[i]);
  }
}

TEST(Npy, RefusesWhatNumPyDoesNotWrite) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n";
  EXPECT_EQ(exit_of(file_with_header(good, 12)), ExitCode::Done);
  EXPECT_EQ(exit_of(file_with_header(good, 11)), ExitCode::Malformed);
  EXPECT_EQ(exit_of(file_with_header(good, 13)), ExitCode::Malformed);
  for (const char* header : {
           "",
           "{",
           "{}",
           "{'descr': '<f4', 'fortran_order': False}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x",
           "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'shape': (3,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
           "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}",
       }) {
    EXPECT_EQ(exit_of(file_with_header(header, 12)), ExitCode::Malformed) << header;
  }
  for (const char* descr : {">f4", "<c8", "|S4", "<M8", "|V4", "<f16", "|O"}) {
    const std::string header =
        std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (3,), }";
    EXPECT_EQ(exit_of(file_with_header(header, 12)), ExitCode::Unsupported) << descr;
  }
}

TEST(Npy, RefusesBoolsThatAreNeitherZeroNorOne) {
  std::vector<std::byte> file = encode_npy(DType::Bool, {1}, std::vector<std::byte>(1));
  file.back() = std::byte{2};
  EXPECT_EQ(exit_of(file), ExitCode::Malformed);
}

TEST(Npy, EveryPrefixAndRandomEditIsHandled) {
  const std::vector<std::byte> good = encode_npy(DType::F32, {2, 2}, std::vector<std::byte>(16));
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(exit_of({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}),
              ExitCode::Done);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> edited = good;
    edited[random() % edited.size()] = static_cast<std::byte>(random());
    edited[random() % edited.size()] = static_cast<std::byte>(random());
    const Result<Tensor> tensor = parse_npy(edited, "f.npy");
    if (tensor) {
      EXPECT_EQ(tensor->bytes.size(), static_cast<std::size_t>(element_count(tensor->shape)) *
                                          static_cast<std::size_t>(size_bytes(tensor->dtype)));
    }
  }
}

}  // namespace
}  // namespace ingot::cli
