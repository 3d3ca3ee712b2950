// ingot sign A.ingot --key K
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "artifact/decode.h"
#include "artifact/keys.h"
#include "artifact/policy.h"
#include "artifact/sign.h"
#include "cli/atomic_file.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "cli/options.h"

namespace ingot::cli {
namespace {

struct SignCommandOptions {
  std::string artifact;
  std::string key;
  std::string purpose = "development";
  std::string detached;
};

Result<std::vector<std::byte>> existing_detached(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::vector<std::byte>{};
  INGOT_ASSIGN(std::vector<std::byte> existing, read_file(path));
  // An empty file too is somebody's, and no signature.
  const Result<artifact::Detached> detached = artifact::decode_detached(existing);
  if (!detached) return std::unexpected(detached.error());
  return existing;
}

// Nobody should put a name under a damaged file.
Result<artifact::Digest> intact_id(const std::vector<std::byte>& bytes) {
  INGOT_ASSIGN(const artifact::Decoded decoded, artifact::decode(bytes));
  return decoded.id;
}

Result<void> sign_into_detached(const SignCommandOptions& options,
                                const std::vector<std::byte>& bytes,
                                const artifact::PrivateKey& key, const artifact::SignOptions& how) {
  INGOT_ASSIGN(const std::vector<std::byte> existing,
               about(options.detached, existing_detached(options.detached)));
  INGOT_ASSIGN(const std::vector<std::byte> file,
               about(options.detached, artifact::sign_detached(bytes, key, how, existing)));
  return write_file(options.detached, file);
}

Result<ExitCode> run_sign(const SignCommandOptions& options, std::vector<Diagnostic>&) {
  artifact::SignOptions how;
  const std::optional<IngotPurpose> purpose = artifact::parse_purpose(options.purpose);
  if (!purpose) return usage_error(fmt::format("--purpose: unknown '{}'", options.purpose));
  how.purpose = *purpose;
  INGOT_ASSIGN(how.signed_at, artifact::signed_at_from_environment());
  INGOT_ASSIGN(const artifact::PrivateKey key, artifact::read_private_key(options.key));
  INGOT_ASSIGN(std::vector<std::byte> bytes, read_artifact_file(options.artifact));
  INGOT_ASSIGN(const artifact::Digest id, about(options.artifact, intact_id(bytes)));
  if (options.detached.empty()) {
    INGOT_ASSIGN(bytes,
                 about(options.artifact, artifact::add_signature(std::move(bytes), key, how)));
    INGOT_RETURN_IF_ERROR(write_file(options.artifact, bytes));
  } else {
    INGOT_RETURN_IF_ERROR(sign_into_detached(options, bytes, key, how));
  }
  INGOT_RETURN_IF_ERROR(print_result(
      fmt::format("artifact id  {}\nkey id       {}\npurpose      {}\n", artifact::to_hex(id),
                  artifact::to_hex(artifact::key_id(key.public_key)), options.purpose)));
  return ExitCode::Done;
}

}  // namespace

void add_sign_command(CLI::App& app, Invocation& invocation) {
  CLI::App& command =
      add_command(app, "sign", "Add a signature to an artifact, or write a detached one",
                  "ingot sign model.ingot --key release.key --purpose release");
  auto options = std::make_shared<SignCommandOptions>();
  command.add_option("ARTIFACT", options->artifact, "Artifact to sign")->required();
  command.add_option("--key", options->key, "Private key (PEM), made by ingot keygen")->required();
  command.add_option("--purpose", options->purpose, "What the signature says")
      ->check(CLI::IsMember({"development", "release", "fleet", "supplier"}))
      ->capture_default_str();
  command.add_option("--detached", options->detached,
                     "Write the signature to this file instead; an existing one is added to");
  set_action(command, invocation, options, run_sign);
}

}  // namespace ingot::cli
