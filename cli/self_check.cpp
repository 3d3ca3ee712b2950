#include "cli/self_check.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "artifact/decode.h"
#include "cli/loader_policy.h"
#include "cli/reference_report.h"
#include "loader/ingot_loader.h"

namespace ingot::cli {
namespace {

struct Close {
  void operator()(ingot_artifact* artifact) const { ingot_close(artifact); }
};
using Artifact = std::unique_ptr<ingot_artifact, Close>;

struct Opened {
  ingot_error error{};
  Artifact artifact;
};

// `variant`: the only one to consider, or INGOT_NONE for all.
Opened open(const std::vector<std::byte>& bytes, std::uint32_t variant, std::uint32_t flags) {
  LoaderPolicy policy{artifact::Policy{}};
  policy.get().allow_unsigned = 1;
  policy.get().variant = variant + 1;
  ingot_load_options load{};
  load.flags = flags;
  ingot_artifact* artifact = nullptr;
  Opened opened;
  ingot_open_memory(bytes.data(), bytes.size(), &policy.get(), &load, &artifact, &opened.error);
  opened.artifact.reset(artifact);
  return opened;
}

std::unexpected<Failure> refused(const ingot_error& error, const std::string& file) {
  Failure failure = to_failure(error, file);
  failure.exit = ExitCode::Internal;
  failure.diagnostics.front().message =
      "the loader refuses what was compiled: " + failure.diagnostics.front().message;
  return std::unexpected(std::move(failure));
}

bool is_about_the_machine(ingot_status status) {
  return status >= INGOT_STATUS_ARCH && status <= INGOT_STATUS_DEVICE;
}

// All variants, whatever runs here. Returns how many there are.
Result<std::uint32_t> check_tables(const std::vector<std::byte>& bytes, const std::string& file) {
  Opened opened = open(bytes, INGOT_NONE, INGOT_LOAD_STOP_AT_VERIFIED);
  if (!opened.artifact) return refused(opened.error, file);
  ingot_error error{};
  if (ingot_verify_all_variants(opened.artifact.get(), &error) != INGOT_STATUS_OK) {
    return refused(error, file);
  }
  ingot_artifact_info info{};
  ingot_artifact_describe(opened.artifact.get(), &info);
  return info.variant_count;
}

// The names are looked up only when something is wrong.
Failure numbers_failure(const std::vector<std::byte>& bytes, const ingot_error& error,
                        const std::string& file) {
  const Result<artifact::Decoded> decoded = artifact::decode(bytes);
  return decoded ? reference_failure(error, *decoded, file) : to_failure(error, file);
}

Result<VariantCheck> run_vectors(const std::vector<std::byte>& bytes, std::uint32_t variant,
                                 std::uint32_t flags, const std::string& file) {
  Opened opened = open(bytes, variant, flags);
  VariantCheck check;
  check.outcome = VariantCheck::Outcome::NotExecuted;
  if (!opened.artifact && is_about_the_machine(opened.error.number)) return check;
  if (!opened.artifact) return refused(opened.error, file);
  std::vector<ingot_slot_report> reports(256);
  std::uint32_t count = 0;
  ingot_error error{};
  const ingot_status status =
      ingot_self_test(opened.artifact.get(), reports.data(),
                      static_cast<std::uint32_t>(reports.size()), &count, &error);
  if (status != INGOT_STATUS_OK) return std::unexpected(numbers_failure(bytes, error, file));
  reports.resize(std::min<std::size_t>(count, reports.size()));
  for (const ingot_slot_report& report : reports) {
    check.max_abs_error = std::max(check.max_abs_error, report.max_abs_error);
  }
  check.outcome = VariantCheck::Outcome::Passed;
  return check;
}

}  // namespace

Result<std::vector<VariantCheck>> self_check(const std::vector<std::byte>& artifact,
                                             const std::string& file, CheckLevel level) {
  INGOT_ASSIGN(const std::uint32_t count, check_tables(artifact, file));
  std::vector<VariantCheck> checks(count);
  if (level == CheckLevel::Off) return checks;
  for (std::uint32_t variant = 0; variant < count; ++variant) {
    INGOT_ASSIGN(checks[variant], run_vectors(artifact, variant, 0, file));
    if (level == CheckLevel::Full) {
      INGOT_RETURN_IF_ERROR(run_vectors(artifact, variant, INGOT_LOAD_NO_MEMFD, file));
    }
  }
  return checks;
}

}  // namespace ingot::cli
