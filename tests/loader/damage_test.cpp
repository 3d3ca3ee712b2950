// Every place of a file damaged in turn: always refused, with the exit code of its kind.
#include <gtest/gtest.h>

#include <cstring>

#include "artifact_builder.h"

namespace ingot::test {
namespace {

Bytes singly_signed() {
  ArtifactBuilder builder;
  builder.signatures = {{1}};
  return builder.seal();
}

// Dense where every byte means something, sparse in padding and contents.
std::vector<std::uint64_t> places(const Bytes& file) {
  std::vector<std::uint64_t> result;
  const std::uint64_t end = content_size(file);
  for (std::uint64_t at = 0; at < file.size(); ++at) {
    const bool dense = at < 0x1000 || at >= end || at % 65536 < 40;
    if (dense || at % 211 == 0) result.push_back(at);
  }
  return result;
}

TEST(Damage, a_flipped_byte_of_a_file_with_one_signature_is_refused) {
  const TestPolicy device;
  Bytes file = singly_signed();
  for (const std::uint64_t at : places(file)) {
    for (const std::uint8_t bits : {std::uint8_t{1}, std::uint8_t{0xFF}}) {
      file[at] ^= bits;
      const ingot_status status = open_status(file, device.policy);
      file[at] ^= bits;
      const int expected = at == 8 || at == 9 ? 6 : 5;
      ASSERT_EQ(ingot_status_exit_code(status), expected)
          << "byte " << at << ": " << ingot_status_name(status);
      if (at > 0x1000 && at < content_size(file)) break;
    }
  }
  EXPECT_EQ(open_status(file, device.policy), 0u);
}

TEST(Damage, a_shorter_or_longer_file_is_refused) {
  const TestPolicy device;
  const Bytes file = singly_signed();
  for (const std::uint64_t size : places(file)) {
    const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_EQ(ingot_status_exit_code(open_status(cut, device.policy)), 5) << size;
  }
  for (const std::size_t more : {1, 31, 128, 65536}) {
    Bytes longer = file;
    longer.resize(file.size() + more);
    EXPECT_EQ(ingot_status_exit_code(open_status(longer, device.policy)), 5) << more;
  }
}

// Fields of all tables at extreme values, sealed and signed: any answer, but never a crash.
TEST(Damage, extreme_values_in_signed_tables_are_survived) {
  const TestPolicy device;
  int accepted = 0;
  int tried = 0;
  const ArtifactBuilder good;
  std::vector<TestSection> originals;
  ArtifactBuilder probe;
  probe.on_sections = [&](std::vector<TestSection>& sections) { originals = sections; };
  (void)probe.seal();
  for (std::size_t n = 0; n < originals.size(); ++n) {
    const IngotSectionEntry& entry = originals[n].entry;
    if (entry.entry_size == 0 || entry.variant == 1) continue;
    const std::size_t limit = std::min<std::size_t>(originals[n].bytes.size(), 640);
    for (std::size_t at = 0; at + 4 <= limit; at += 4) {
      for (const std::uint32_t value : {0u, 1u, 0x7FFFFFFFu, 0xFFFFFF00u, 0xFFFFFFFFu}) {
        ArtifactBuilder b;
        b.on_sections = [&](std::vector<TestSection>& sections) {
          std::memcpy(sections[n].bytes.data() + at, &value, 4);
        };
        b.signatures = {{1}};
        accepted += open_status(b.seal(), device.policy) == 0 ? 1 : 0;
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 2000);
  EXPECT_LT(accepted, tried / 2);
}

TEST(Damage, error_texts_hold_numbers_only) {
  const TestPolicy device;
  Bytes file = singly_signed();
  file[65536] ^= 1;
  ingot_error error;
  EXPECT_EQ(open_status(file, device.policy, &error), 109u);
  EXPECT_EQ(error.step, 11u);
  EXPECT_EQ(error.record, 0u);
  char line[200];
  const std::size_t length = ingot_error_format(&error, line, sizeof line);
  EXPECT_EQ(std::string(line).size(), length);
  EXPECT_EQ(std::string(line).rfind("E_BLOCK_DIGEST (109): ", 0), 0u);
  char tiny[8];
  EXPECT_EQ(ingot_error_format(&error, tiny, sizeof tiny), length);
  EXPECT_EQ(std::string(tiny), "E_BLOCK");
  EXPECT_EQ(ingot_error_format(&error, nullptr, 0), length);
}

}  // namespace
}  // namespace ingot::test
