// Trust and demands, from the tool's options and policy files to the loader's structures.
#pragma once

#include <string>
#include <vector>

#include "artifact/policy.h"
#include "base/result.h"
#include "cli/commands.h"
#include "compiler/target/target.h"
#include "loader/ingot_loader.h"

namespace ingot::cli {

// --pub and --allow-unsigned of the commands that execute an artifact.
struct TrustOptions {
  std::vector<std::string> public_keys;
  bool allow_unsigned = false;
};
void add_trust_options(CLI::App& command, TrustOptions& trust);

[[nodiscard]] Result<std::vector<artifact::PublicKey>> read_public_keys(
    const std::vector<std::string>& paths);

// An ingot_policy and the memory that it points to.
class LoaderPolicy {
 public:
  explicit LoaderPolicy(artifact::Policy policy);
  LoaderPolicy(const LoaderPolicy&) = delete;
  LoaderPolicy& operator=(const LoaderPolicy&) = delete;

  [[nodiscard]] ingot_policy& get() { return loader_; }
  void set_detached(std::vector<std::byte> file);
  void set_camera(std::string name);

 private:
  void add_key(const artifact::TrustedKey& key);

  artifact::Policy policy_;
  std::vector<ingot_key> keys_;
  std::vector<std::byte> detached_;
  std::string camera_;
  ingot_policy loader_{};
};

// A machine that has what the target asks for, and nothing else.
[[nodiscard]] ingot_host host_of_target(const Target& target);

// The loader's error as a failure; `file` is the artifact.
[[nodiscard]] std::unexpected<Failure> loader_failure(const ingot_error& error,
                                                      const std::string& file,
                                                      std::string hint = {});
[[nodiscard]] Failure to_failure(const ingot_error& error, const std::string& file,
                                 std::string hint = {});

}  // namespace ingot::cli
