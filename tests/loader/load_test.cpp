// Loading: every way in, the choice of a variant, what can be asked, the self-test.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <set>
#include <string>

#include "session.h"

namespace {
std::atomic<bool> g_refuse_memory_files{false};
}  // namespace

extern "C" int __real_memfd_create(const char* name, unsigned flags);
extern "C" int __wrap_memfd_create(const char* name, unsigned flags) {
  if (g_refuse_memory_files) {
    errno = EPERM;
    return -1;
  }
  return __real_memfd_create(name, flags);
}

namespace ingot::test {
namespace {

int open_file_count() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) count += fcntl(fd, F_GETFD) != -1 ? 1 : 0;
  return count;
}

int temporary_file(const Bytes& content) {
  std::string path = testing::TempDir() + "ingot-loader-test-XXXXXX";
  const int fd = mkstemp(path.data());
  unlink(path.c_str());
  EXPECT_EQ(write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
  return fd;
}

TEST(Load, from_a_file_and_from_memory_alike) {
  const TestPolicy device;
  const Bytes file = ArtifactBuilder().seal();
  const int fd = temporary_file(file);
  const int before = open_file_count();
  ingot_artifact* artifact = nullptr;
  ASSERT_EQ(ingot_open_fd(fd, &device.policy, nullptr, &artifact, nullptr),
            kCanRun ? 0u : ingot_status{INGOT_STATUS_OK});
  EXPECT_EQ(open_file_count(), before);
  // What happens to the file now is of no interest.
  ASSERT_EQ(ftruncate(fd, 0), 0);
  EXPECT_EQ(ingot_recheck(artifact, 0, nullptr), 0u);
  ingot_artifact_info info;
  ingot_artifact_describe(artifact, &info);
  EXPECT_EQ(std::memcmp(info.id, file.data() + INGOT_HEADER_DIGEST_OFFSET, 32), 0);
  EXPECT_EQ(info.state, static_cast<std::uint32_t>(INGOT_STATE_COMPATIBLE));
  EXPECT_STREQ(info.product, "road-vision");
  EXPECT_EQ(info.counted_keys, 2u);
  EXPECT_EQ(info.io_count, 4u);
  EXPECT_EQ(info.step_count, 2u);
  EXPECT_EQ(info.frame_period_us, 50000u);
  ingot_close(artifact);
  close(fd);
}

TEST(Load, what_is_no_regular_file_is_an_input_error) {
  const TestPolicy device;
  ingot_artifact* artifact = nullptr;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int folder = open("/tmp", O_RDONLY);
  const int null_device = open("/dev/null", O_RDONLY);
  for (const int fd : {ends[0], folder, null_device, 250}) {
    EXPECT_EQ(ingot_open_fd(fd, &device.policy, nullptr, &artifact, nullptr), 601u) << fd;
    EXPECT_EQ(artifact, nullptr);
  }
  for (const int fd : {ends[0], ends[1], folder, null_device}) close(fd);
}

TEST(Load, a_huge_sparse_file_is_refused_before_anything_is_allocated) {
  const TestPolicy device;
  const int fd = temporary_file(ArtifactBuilder().seal());
  if (ftruncate(fd, off_t{1} << 40) != 0) GTEST_SKIP() << "no sparse files here";
  ingot_artifact* artifact = nullptr;
  EXPECT_EQ(ingot_open_fd(fd, &device.policy, nullptr, &artifact, nullptr), 102u);
  close(fd);
}

TEST(Load, misuse_is_a_state_error) {
  const TestPolicy device;
  const Bytes file = ArtifactBuilder().seal();
  ingot_artifact* artifact = nullptr;
  EXPECT_EQ(ingot_open_memory(file.data(), file.size(), nullptr, nullptr, &artifact, nullptr),
            801u);
  EXPECT_EQ(ingot_open_memory(file.data(), file.size(), &device.policy, nullptr, nullptr, nullptr),
            801u);
  EXPECT_EQ(ingot_open_memory(nullptr, 0, &device.policy, nullptr, &artifact, nullptr), 101u);
  ingot_policy lax = device.policy;
  lax.allow_unsigned = 1;
  EXPECT_EQ(ingot_open_memory(file.data(), file.size(), &lax, nullptr, &artifact, nullptr), 801u)
      << "this library has no such rule";
  ingot_close(nullptr);
  ingot_instance_destroy(nullptr);
}

// Every mapping of this process, with its permissions.
std::set<std::string> permissions() {
  std::set<std::string> result;
  std::ifstream maps("/proc/self/maps");
  std::string range, flags, rest;
  while (maps >> range >> flags && std::getline(maps, rest)) result.insert(flags);
  return result;
}

TEST(Load, every_path_to_executable_memory_works_and_none_is_writable) {
  REQUIRE_RUNNABLE();
  struct Path {
    std::uint32_t flags;
    std::uint32_t sealed;
  };
  for (const Path& path : {Path{0, 1}, Path{INGOT_LOAD_NO_MEMFD, 0},
                           Path{INGOT_LOAD_NO_SHARED_EXEC, 0}, Path{INGOT_LOAD_NO_HUGE_PAGES, 1},
                           Path{INGOT_LOAD_PORTABLE_HASH | INGOT_LOAD_LOCK_PAGES, 1}}) {
    Session session;
    ASSERT_EQ(session.start(ArtifactBuilder(), path.flags), 0u) << path.flags;
    ingot_artifact_info info;
    ingot_artifact_describe(session.artifact, &info);
    EXPECT_EQ(info.code_sealed, path.sealed) << path.flags;
    for (const std::string& flags : permissions()) {
      EXPECT_FALSE(flags.find('w') != std::string::npos && flags.find('x') != std::string::npos);
    }
    EXPECT_EQ(ingot_run(session.instance, nullptr), 0u);
    EXPECT_EQ(session.out[0], 0.25f * session.frame[0]);
    EXPECT_EQ(ingot_recheck(session.artifact, 1, nullptr), 0u);
  }
  Session refused;
  EXPECT_EQ(refused.open(ArtifactBuilder(), INGOT_LOAD_NO_MEMFD | INGOT_LOAD_NO_PRIVATE_EXEC),
            604u);
}

TEST(Load, the_fallback_is_taken_where_memory_files_are_forbidden) {
  REQUIRE_RUNNABLE();
  g_refuse_memory_files = true;
  Session session;
  const ingot_status status = session.start(ArtifactBuilder());
  Session strict;
  const ingot_status refused = strict.open(ArtifactBuilder(), INGOT_LOAD_NO_PRIVATE_EXEC);
  g_refuse_memory_files = false;
  EXPECT_EQ(status, 0u);
  EXPECT_EQ(refused, 604u);
  EXPECT_EQ(ingot_run(session.instance, nullptr), 0u);
}

TEST(Load, the_variant_with_the_lowest_priority_number_that_fits_is_chosen) {
  const TestPolicy device;
  const auto chosen = [&](const ArtifactBuilder& builder, std::uint64_t hidden,
                          std::uint32_t only = 0) -> int {
    const Bytes file = builder.seal();
    const ingot_host host = usual_host();
    ingot_load_options options{};
    options.host = &host;
    options.hidden_features[0] = hidden;
    ingot_policy policy = device.policy;
    policy.variant = only;
    ingot_artifact* artifact = nullptr;
    if (ingot_open_memory(file.data(), file.size(), &policy, &options, &artifact, nullptr) != 0) {
      return -1;
    }
    ingot_artifact_info info;
    ingot_artifact_describe(artifact, &info);
    ingot_close(artifact);
    return static_cast<int>(info.variant);
  };
  ArtifactBuilder builder;
  builder.variants[1].record.arch = INGOT_ARCH_X86_64;
  builder.variants[1].record.cpu_features[0] = INGOT_X86_AVX2;
  builder.variants[1].record.xcr0 = 7;
  builder.variants[1].record.fp_control = INGOT_FP_X86_DEFAULT;
  builder.variants[0].record.priority = 5;
  EXPECT_EQ(chosen(builder, 0), 1);
  EXPECT_EQ(chosen(builder, INGOT_X86_AVX2), 0);
  EXPECT_EQ(chosen(builder, INGOT_X86_AVX2 | INGOT_X86_SSE42), -1);
  EXPECT_EQ(chosen(builder, 0, 1), 0);
  builder.variants[1].record.priority = 5;
  EXPECT_EQ(chosen(builder, 0), 0) << "ties by index";
}

TEST(Load, the_machine_is_read) {
  ingot_host host;
  ingot_host_read(&host);
  EXPECT_EQ(host.arch, kCanRun ? 1u : 2u);
  EXPECT_GE(host.page_size, 4096u);
  EXPECT_NE(host.features[0] & 1, 0u);
#if defined(__x86_64__)
  EXPECT_EQ((host.features[0] & INGOT_X86_AVX2) != 0,
            __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  EXPECT_EQ((host.features[0] & INGOT_X86_AVX512) != 0, __builtin_cpu_supports("avx512bw") != 0);
#endif
}

TEST(Describe, names_shapes_and_calls) {
  REQUIRE_RUNNABLE();
  Session session;
  ASSERT_EQ(session.open(ArtifactBuilder()), 0u);
  ingot_io_info io;
  ASSERT_EQ(ingot_io_describe(session.artifact, 0, &io), 0u);
  EXPECT_STREQ(io.name, "frame");
  EXPECT_EQ(io.by_pointer, 1u);
  EXPECT_EQ(io.alignment, 256u);
  EXPECT_EQ(ingot_find_io(session.artifact, "hidden"), 3u);
  EXPECT_EQ(ingot_find_io(session.artifact, "hidde"), INGOT_NONE);
  EXPECT_EQ(ingot_io_describe(session.artifact, 4, &io), 811u);
  ingot_slice_info slice;
  ASSERT_EQ(ingot_slice_describe(session.artifact, 3, &slice), 0u);
  EXPECT_STREQ(slice.name, "b");
  EXPECT_EQ(slice.offset, 16u);
  ingot_camera_info camera;
  ASSERT_EQ(ingot_camera_describe(session.artifact, 0, &camera), 0u);
  EXPECT_EQ(camera.layout.uv_offset, 2048u);
  ingot_call_info call;
  ASSERT_EQ(ingot_call_describe(session.artifact, 3, &call), 0u);
  EXPECT_STREQ(call.program_name, "mix");
  EXPECT_EQ(call.read_nbytes, 192u);
  EXPECT_EQ(call.written_nbytes, 128u);
  ingot_argument_info argument;
  ASSERT_EQ(ingot_argument_describe(session.artifact, 4, 1, &argument), 0u);
  EXPECT_EQ(argument.buffer, INGOT_NONE);
  EXPECT_EQ(ingot_argument_describe(session.artifact, 4, 2, &argument), 811u);
  ingot_variant_info variant;
  ASSERT_EQ(ingot_variant_describe(session.artifact, 1, &variant), 0u);
  EXPECT_STREQ(variant.name, "aarch64");
  EXPECT_EQ(variant.fits, 501u);
  ingot_buffer_info buffer;
  ASSERT_EQ(ingot_buffer_describe(session.artifact, 4, &buffer), 0u);
  EXPECT_EQ(buffer.kind, static_cast<std::uint32_t>(INGOT_STORE_NEXT_STATE));
}

TEST(Describe, before_a_variant_is_chosen_its_parts_are_empty) {
  const Bytes file = ArtifactBuilder().seal();
  const TestPolicy device;
  ingot_load_options options{};
  options.flags = INGOT_LOAD_STOP_AT_VERIFIED;
  ingot_artifact* artifact = nullptr;
  ASSERT_EQ(
      ingot_open_memory(file.data(), file.size(), &device.policy, &options, &artifact, nullptr),
      0u);
  ingot_artifact_info info;
  ingot_artifact_describe(artifact, &info);
  EXPECT_EQ(info.state, static_cast<std::uint32_t>(INGOT_STATE_VERIFIED));
  EXPECT_EQ(info.variant, INGOT_NONE);
  EXPECT_EQ(info.variant_count, 2u);
  EXPECT_EQ(info.io_count, 0u);
  EXPECT_EQ(info.interface_sha256[0], 0u);
  ingot_variant_info variant;
  EXPECT_EQ(ingot_variant_describe(artifact, 1, &variant), 0u);
  ingot_io_info io;
  EXPECT_EQ(ingot_io_describe(artifact, 0, &io), static_cast<ingot_status>(INGOT_STATUS_STATE));
  EXPECT_EQ(ingot_verify_all_variants(artifact, nullptr), 0u);
  ingot_close(artifact);
}

TEST(SelfTest, raises_the_state_and_reports_errors) {
  REQUIRE_RUNNABLE();
  const TestPolicy device;
  const Bytes file = ArtifactBuilder().seal();
  ingot_artifact* artifact = nullptr;
  ASSERT_EQ(
      ingot_open_memory(file.data(), file.size(), &device.policy, nullptr, &artifact, nullptr), 0u);
  ingot_instance* instance = nullptr;
  EXPECT_EQ(ingot_instance_create(artifact, nullptr, &instance, nullptr), 801u);
  ingot_slot_report report[4];
  std::uint32_t count = 0;
  EXPECT_EQ(ingot_self_test(artifact, report, 4, &count, nullptr), 0u);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(report[0].slot, 2u);
  EXPECT_EQ(report[0].failed, 0u);
  EXPECT_NEAR(report[0].min_cosine, 1.0, 1e-12);
  EXPECT_EQ(ingot_instance_create(artifact, nullptr, &instance, nullptr), 0u);
  ingot_instance_destroy(instance);
  ingot_close(artifact);
}

ingot_status self_test_of(const ArtifactBuilder& builder, ingot_error* error) {
  const TestPolicy device;
  const Bytes file = builder.seal();
  ingot_artifact* artifact = nullptr;
  ingot_status status =
      ingot_open_memory(file.data(), file.size(), &device.policy, nullptr, &artifact, error);
  if (status == 0) status = ingot_self_test(artifact, nullptr, 0, nullptr, error);
  ingot_close(artifact);
  return status;
}

TEST(SelfTest, a_reference_outside_tolerance_is_named) {
  REQUIRE_RUNNABLE();
  ArtifactBuilder builder;
  float value = 0;
  std::uint8_t* at = builder.refdata.data() + builder.refs[5].offset + 4 * 7;
  std::memcpy(&value, at, 4);
  const float wrong = value + 5.0f;
  std::memcpy(at, &wrong, 4);
  ingot_error error;
  EXPECT_EQ(self_test_of(builder, &error), 701u);
  EXPECT_EQ(error.step, 28u);
  EXPECT_EQ(error.record, 5u);
  EXPECT_EQ(error.slot, 2u);
  EXPECT_EQ(error.element_index, 7u);
  EXPECT_EQ(error.value_found, static_cast<double>(value));
  EXPECT_EQ(error.value_allowed, static_cast<double>(wrong));
}

TEST(SelfTest, comparison_kinds) {
  REQUIRE_RUNNABLE();
  ArtifactBuilder exact;
  for (const int n : {2, 5}) {
    exact.refs[n].compare = INGOT_COMPARE_EXACT;
    exact.refs[n].atol = exact.refs[n].rtol = 0;
  }
  ingot_error error;
  EXPECT_EQ(self_test_of(exact, &error), 0u);
  std::uint8_t* first = exact.refdata.data() + exact.refs[2].offset + 4;
  ++*first;
  EXPECT_EQ(self_test_of(exact, &error), 701u);
  ArtifactBuilder ulp = exact;
  for (const int n : {2, 5}) {
    ulp.refs[n].compare = INGOT_COMPARE_ULP;
    ulp.refs[n].max_ulp = 1;
  }
  EXPECT_EQ(self_test_of(ulp, &error), 0u);
  ulp.refdata[ulp.refs[2].offset + 4] = static_cast<std::uint8_t>(*first + 1);
  EXPECT_EQ(self_test_of(ulp, &error), 701u);
  ArtifactBuilder cosine;
  for (const int n : {2, 5}) {
    cosine.refs[n].compare = INGOT_COMPARE_COSINE;
    cosine.refs[n].rtol = 0;
    cosine.refs[n].min_cosine = 0.999f;
  }
  EXPECT_EQ(self_test_of(cosine, &error), 0u);
  ArtifactBuilder nan;
  const std::uint32_t bits = 0x7FC00000;
  std::memcpy(nan.refdata.data() + nan.refs[2].offset, &bits, 4);
  EXPECT_EQ(self_test_of(nan, &error), 701u);
}

TEST(Verify, three_verdicts) {
  REQUIRE_RUNNABLE();
  TestPolicy device;
  const Bytes file = ArtifactBuilder().seal();
  ingot_verdicts verdicts;
  EXPECT_EQ(ingot_verify_memory(file.data(), file.size(), &device.policy, nullptr, 1, &verdicts),
            0u);
  EXPECT_EQ(verdicts.numbers_known, 1u);
  device.policy.product = "cabin-vision";
  EXPECT_EQ(ingot_verify_memory(file.data(), file.size(), &device.policy, nullptr, 1, &verdicts),
            303u);
  EXPECT_EQ(verdicts.origin.number, 0u);
  EXPECT_EQ(verdicts.compatible_known, 1u);
  EXPECT_EQ(verdicts.numbers_known, 0u);
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(Load, too_little_address_space_is_an_error_that_leaves_nothing) {
  REQUIRE_RUNNABLE();
  ArtifactBuilder builder;
  for (TestVariant& v : builder.variants) {
    v.arenas[0].nbytes = std::uint64_t{1} << 35;
    v.record.host_arena_bytes = v.arenas[0].nbytes + 512;
  }
  builder.header.max_host_arena = (std::uint64_t{1} << 35) + 512;
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  const rlimit small{std::uint64_t{8} << 30, before.rlim_max};
  setrlimit(RLIMIT_AS, &small);
  Session session;
  const ingot_status status = session.open(builder);
  setrlimit(RLIMIT_AS, &before);
  EXPECT_EQ(status, 602u);
  EXPECT_EQ(session.instance, nullptr);
}
#endif

}  // namespace
}  // namespace ingot::test
