// ingot keygen NAME
#include <fmt/format.h>
#include <string.h>

#include <memory>
#include <string>
#include <vector>

#include "artifact/digest.h"
#include "artifact/keys.h"
#include "cli/atomic_file.h"
#include "cli/commands.h"
#include "cli/options.h"

namespace ingot::cli {
namespace {

struct KeygenOptions {
  std::string name;
};

// Both files or none; the private one is never readable by others.
Result<artifact::PrivateKey> write_new_pair(const std::string& name) {
  INGOT_ASSIGN(artifact::PrivateKey key, artifact::generate_key());
  INGOT_ASSIGN(std::string private_text, artifact::private_key_pem(key));
  OutputSet files;
  const Result<void> added = files.add(name + ".key", private_text, 0600);
  explicit_bzero(private_text.data(), private_text.size());
  INGOT_RETURN_IF_ERROR(added);
  INGOT_ASSIGN(const std::string public_text, artifact::public_key_pem(key.public_key));
  INGOT_RETURN_IF_ERROR(files.add(name + ".pub", public_text, 0644));
  INGOT_RETURN_IF_ERROR(files.commit(Overwrite::No));
  return key;
}

Result<ExitCode> run_keygen(const KeygenOptions& options, std::vector<Diagnostic>&) {
  INGOT_ASSIGN(const artifact::PrivateKey key, write_new_pair(options.name));
  INGOT_RETURN_IF_ERROR(print_result(
      fmt::format("private key  {0}.key (keep it secret)\npublic key   {0}.pub\nkey id       {1}\n",
                  options.name, artifact::to_hex(artifact::key_id(key.public_key)))));
  return ExitCode::Done;
}

}  // namespace

void add_keygen_command(CLI::App& app, Invocation& invocation) {
  CLI::App& command = add_command(app, "keygen", "Make a key pair for signing artifacts",
                                  "ingot keygen team    (writes team.key and team.pub)");
  auto options = std::make_shared<KeygenOptions>();
  command.add_option("NAME", options->name, "Files to write: NAME.key and NAME.pub")->required();
  set_action(command, invocation, options, run_keygen);
}

}  // namespace ingot::cli
