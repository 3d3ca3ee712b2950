// ingot verify A.ingot: three verdicts that are never mixed.
//
//   intact and signed   every byte as sealed, enough trusted signatures, all tables of all variants
//                       well formed, manifest agrees with them
//   compatible          product, counters, processor ... of this device, or of --device
//   reference vectors   computed here and within tolerance (--self-test)
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "artifact/decode.h"
#include "artifact/policy.h"
#include "artifact/tables.h"
#include "artifact/verify_signature.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/loader_policy.h"
#include "cli/options.h"
#include "cli/reference_report.h"
#include "compiler/target/target.h"
#include "loader/ingot_loader.h"

namespace ingot::cli {
namespace {

struct VerifyOptions {
  std::string artifact;
  std::vector<std::string> public_keys;
  std::string id;
  std::string ids;
  std::string policy;
  std::string detached;
  std::string product;
  std::string device;
  std::uint64_t min_security_counter = 0;
  bool self_test = false;
  bool json = false;
};

// One of the three. Not established: an earlier one failed, or nobody asked.
struct Verdict {
  std::optional<Failure> failure;
  bool established = true;
  std::string text;
};

struct Verdicts {
  ArtifactId id{};
  Verdict origin, compatible, numbers;
  ReferenceCounts references;     // that were run
  std::optional<Verdict> listed;  // with --id or --ids
};

// Both the policy's product and that of the command line must hold.
Result<void> demand_product(const VerifyOptions& options, artifact::Policy& policy) {
  if (options.product.empty()) return {};
  if (policy.product && *policy.product != options.product) {
    return fail(ExitCode::Incompatible, "product-contradicts",
                fmt::format("no artifact is for both '{}' (--product) and '{}' (the policy)",
                            options.product, *policy.product),
                options.policy);
  }
  policy.product = options.product;
  return {};
}

Result<artifact::Policy> read_policy(const VerifyOptions& options) {
  artifact::Policy policy;
  if (!options.policy.empty()) {
    INGOT_ASSIGN(const std::string text, read_text_file(options.policy));
    INGOT_ASSIGN(policy, artifact::parse_policy(text, options.policy));
  }
  INGOT_ASSIGN(const std::vector<artifact::PublicKey> keys, read_public_keys(options.public_keys));
  for (artifact::TrustedKey& key : artifact::policy_of_keys(keys).keys) {
    if (std::ranges::find(policy.keys, key.key, &artifact::TrustedKey::key) == policy.keys.end()) {
      policy.keys.push_back(std::move(key));
    }
  }
  INGOT_RETURN_IF_ERROR(demand_product(options, policy));
  policy.lowest_counter = std::max(policy.lowest_counter, options.min_security_counter);
  return policy;
}

Result<std::optional<ingot_host>> read_device(const std::string& path) {
  if (path.empty()) return std::nullopt;
  INGOT_ASSIGN(const std::string text, read_text_file(path));
  INGOT_ASSIGN(const Target target, parse_device(text, path));
  return host_of_target(target);
}

// A line of a deploy list: an id, then whatever helps people. Empty lines and # are skipped.
Result<void> read_list_line(const std::string& line, int number, const std::string& path,
                            std::vector<ArtifactId>& ids) {
  std::istringstream words(line);
  std::string word;
  if (!(words >> word) || word.front() == '#') return {};
  const Result<ArtifactId> id = parse_artifact_id(word, "--ids");
  if (!id) {
    return fail(ExitCode::Malformed, "bad-deploy-list",
                fmt::format("line {} does not start with an artifact id", number), path);
  }
  ids.push_back(*id);
  return {};
}

// Nothing if no list was asked for.
Result<std::optional<std::vector<ArtifactId>>> read_ids(const VerifyOptions& options) {
  std::vector<ArtifactId> ids;
  if (!options.id.empty()) {
    INGOT_ASSIGN(const ArtifactId id, parse_artifact_id(options.id, "--id"));
    ids.push_back(id);
  } else if (!options.ids.empty()) {
    INGOT_ASSIGN(const std::string text, read_text_file(options.ids));
    std::istringstream lines(text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      INGOT_RETURN_IF_ERROR(read_list_line(line, ++number, options.ids, ids));
    }
  } else {
    return std::nullopt;
  }
  return ids;
}

std::string trust_hint(ingot_status status) {
  switch (status) {
    case INGOT_STATUS_UNSIGNED: return "sign it with ingot sign";
    case INGOT_STATUS_KEY_UNKNOWN: return "give the signer's public key with --pub or --policy";
    default: return {};
  }
}

Verdict verdict_of(const ingot_error& error, bool established, const std::string& file) {
  Verdict verdict;
  verdict.established = established;
  if (established && error.number != INGOT_STATUS_OK) {
    verdict.failure = to_failure(error, file, trust_hint(error.number));
  }
  return verdict;
}

// Both names, where the loader only says that they differ. Needs: an intact artifact.
std::string product_hint(const std::vector<std::byte>& bytes, const artifact::Policy& policy) {
  IngotHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::string product = artifact::fixed_text(header.product);
  const std::string family = artifact::fixed_text(header.device_family);
  if (policy.product && *policy.product != product) {
    return fmt::format("the artifact is for product '{}', and '{}' is asked for", product,
                       *policy.product);
  }
  return fmt::format("the artifact is for device family '{}', and '{}' is asked for", family,
                     policy.device_family.value_or(""));
}

Verdict failed(Failure failure, const std::string& file) {
  for (Diagnostic& diagnostic : failure.diagnostics) diagnostic.file = file;
  return {std::move(failure), true, {}};
}

// What the loader does not check: the manifest, and that the tool's own reading of the signatures
// agrees with the loader's.
Verdict confirm_origin(const std::vector<std::byte>& bytes,
                       const std::optional<std::vector<std::byte>>& detached,
                       const artifact::Policy& policy, const std::string& file,
                       const std::string& detached_file) {
  const Result<artifact::Decoded> decoded = artifact::decode(bytes);
  if (!decoded) return failed(decoded.error(), file);
  std::optional<artifact::Detached> extra;
  if (detached) {  // an empty file is no signature
    Result<artifact::Detached> read = artifact::decode_detached(*detached);
    if (!read) return failed(read.error(), detached_file);
    extra = std::move(*read);
  }
  const Result<std::vector<artifact::CountedSignature>> counted =
      artifact::verify_signatures(*decoded, extra ? &*extra : nullptr, policy);
  if (!counted) return failed(counted.error(), file);
  std::set<std::size_t> keys;
  for (const artifact::CountedSignature& signature : *counted) keys.insert(signature.key);
  Verdict verdict;
  verdict.text =
      fmt::format("signed by {} trusted key{}", keys.size(), keys.size() == 1 ? "" : "s");
  return verdict;
}

ingot_verdicts ask_loader(const std::vector<std::byte>& bytes, LoaderPolicy& policy,
                          const std::optional<ingot_host>& host) {
  ingot_load_options load{};
  load.host = host ? &*host : nullptr;
  ingot_verdicts verdicts{};
  ingot_verify_memory(bytes.data(), bytes.size(), &policy.get(), &load, 0, &verdicts);
  return verdicts;
}

// Stored names of all camera layouts; one empty name if there are none.
std::set<std::string> camera_names(const artifact::Decoded& decoded) {
  std::set<std::string> names;
  for (const artifact::VariantTables& variant : decoded.tables.variant_tables) {
    for (const IngotCameraRecord& camera : variant.cameras) {
      names.emplace(decoded.tables.name(camera.name));
    }
  }
  if (names.empty()) names.emplace();
  return names;
}

// Runs every embedded sequence of every camera layout here, with the variant that a frame would
// take. Needs: a trusted artifact.
class ReferenceRun {
 public:
  ReferenceRun(const std::vector<std::byte>& bytes, LoaderPolicy& policy, const std::string& file)
      : bytes_(bytes), policy_(policy), file_(file) {}

  Verdict run() {
    const Result<artifact::Decoded> decoded = artifact::decode(bytes_);
    if (!decoded) return failed(decoded.error(), file_);
    for (const std::string& camera : camera_names(*decoded)) {
      if (std::optional<Failure> failure = run_camera(camera, *decoded)) {
        return {std::move(failure), true, {}};
      }
    }
    Verdict verdict;
    verdict.established = ran_;
    if (ran_) verdict.text = counts_text(counts_);
    return verdict;
  }

  [[nodiscard]] const ReferenceCounts& counts() const { return counts_; }

 private:
  struct Close {
    void operator()(ingot_artifact* artifact) const { ingot_close(artifact); }
  };

  // A layout that is not for this machine is no matter of its numbers.
  std::optional<Failure> run_camera(const std::string& camera, const artifact::Decoded& decoded) {
    policy_.set_camera(camera);
    ingot_artifact* opened = nullptr;
    ingot_error error{};
    ingot_open_memory(bytes_.data(), bytes_.size(), &policy_.get(), nullptr, &opened, &error);
    policy_.set_camera({});
    const std::unique_ptr<ingot_artifact, Close> artifact(opened);
    if (artifact == nullptr) {
      Failure failure = to_failure(error, file_);
      if (failure.exit == ExitCode::Incompatible) return std::nullopt;
      return failure;
    }
    ran_ = true;
    ingot_artifact_info info{};
    ingot_artifact_describe(artifact.get(), &info);
    counts_ += count_references(decoded.tables.variant_tables[info.variant]);
    if (ingot_self_test(artifact.get(), nullptr, 0, nullptr, &error) == INGOT_STATUS_OK) {
      return std::nullopt;
    }
    return reference_failure(error, decoded, file_);
  }

  const std::vector<std::byte>& bytes_;
  LoaderPolicy& policy_;
  const std::string& file_;
  ReferenceCounts counts_;
  bool ran_ = false;
};

Verdict listed_verdict(const ArtifactId& id, const std::vector<ArtifactId>& ids,
                       const std::string& file) {
  if (std::ranges::find(ids, id) != ids.end()) return {};
  return failed(fail(ExitCode::NotTrusted, "not-on-the-list",
                     "the artifact's id is not the one that the deploy list names")
                    .error(),
                file);
}

Result<Verdicts> find_verdicts(const VerifyOptions& options) {
  INGOT_ASSIGN(const artifact::Policy policy, read_policy(options));
  INGOT_ASSIGN(const std::optional<ingot_host> device, read_device(options.device));
  INGOT_ASSIGN(const std::optional<std::vector<ArtifactId>> ids, read_ids(options));
  std::optional<std::vector<std::byte>> detached;
  if (!options.detached.empty()) {
    INGOT_ASSIGN(detached, read_file(options.detached));
  }
  INGOT_ASSIGN(const std::vector<std::byte> bytes, read_artifact_file(options.artifact));
  LoaderPolicy loader_policy(policy);
  if (detached) loader_policy.set_detached(*detached);

  const ingot_verdicts said = ask_loader(bytes, loader_policy, device);
  Verdicts verdicts;
  std::ranges::copy(said.id, verdicts.id.begin());
  verdicts.origin = verdict_of(said.origin, true, options.artifact);
  if (!verdicts.origin.failure) {
    verdicts.origin = confirm_origin(bytes, detached, policy, options.artifact, options.detached);
  }
  const bool trusted = !verdicts.origin.failure;
  verdicts.compatible =
      verdict_of(said.compatible, trusted && said.compatible_known != 0, options.artifact);
  if (trusted && said.compatible.number == INGOT_STATUS_PRODUCT) {
    verdicts.compatible.failure->diagnostics.front().hint = product_hint(bytes, policy);
  }
  // A described device cannot execute anything here, so the numbers are asked of this machine.
  const bool may_run = trusted && (device || !verdicts.compatible.failure);
  verdicts.numbers.established = false;
  if (options.self_test && may_run) {
    ReferenceRun run(bytes, loader_policy, options.artifact);
    verdicts.numbers = run.run();
    verdicts.references = run.counts();
  }
  if (!options.self_test) verdicts.numbers.text = "not asked for, see --self-test";
  if (ids) verdicts.listed = listed_verdict(verdicts.id, *ids, options.artifact);
  return verdicts;
}

std::string verdict_line(const char* question, const Verdict& verdict) {
  std::string answer = verdict.failure ? "no" : "yes";
  std::string reason = verdict.text;
  if (!verdict.established) {
    answer = "not established";
    if (reason.empty()) reason = "an earlier verdict failed";
  }
  if (verdict.failure) reason = verdict.failure->diagnostics.front().message;
  return fmt::format("{:<18} {}{}\n", question, answer, reason.empty() ? "" : " (" + reason + ")");
}

Json verdict_json(const Verdict& verdict) {
  Json json;
  json["established"] = verdict.established;
  json["passed"] = verdict.established && !verdict.failure;
  json["code"] = verdict.failure ? verdict.failure->diagnostics.front().code : "";
  json["message"] = verdict.failure ? verdict.failure->diagnostics.front().message : verdict.text;
  return json;
}

std::string verdicts_text(const Verdicts& verdicts) {
  std::string text = verdict_line("intact and signed", verdicts.origin) +
                     verdict_line("compatible", verdicts.compatible) +
                     verdict_line("reference vectors", verdicts.numbers);
  if (verdicts.listed) text += verdict_line("on the list", *verdicts.listed);
  return text;
}

std::string verdicts_json(const Verdicts& verdicts) {
  Json json;
  json["id"] = artifact::to_hex(verdicts.id);
  json["intact_and_signed"] = verdict_json(verdicts.origin);
  json["compatible"] = verdict_json(verdicts.compatible);
  json["reference_vectors"] = verdict_json(verdicts.numbers);
  json["reference_vectors"].update(counts_json(verdicts.references));
  if (verdicts.listed) json["on_the_list"] = verdict_json(*verdicts.listed);
  return to_text(json);
}

// All failures, with the exit code of the first.
Result<ExitCode> conclusion(const Verdicts& verdicts) {
  Failure all;
  std::vector<const Verdict*> order = {&verdicts.origin};
  if (verdicts.listed) order.push_back(&*verdicts.listed);
  order.insert(order.end(), {&verdicts.compatible, &verdicts.numbers});
  for (const Verdict* verdict : order) {
    if (!verdict->failure) continue;
    if (all.diagnostics.empty()) all.exit = verdict->failure->exit;
    all.diagnostics.insert(all.diagnostics.end(), verdict->failure->diagnostics.begin(),
                           verdict->failure->diagnostics.end());
  }
  if (all.diagnostics.empty()) return ExitCode::Done;
  return std::unexpected(std::move(all));
}

Result<ExitCode> run_verify(const VerifyOptions& options, std::vector<Diagnostic>&) {
  INGOT_ASSIGN(const Verdicts verdicts, find_verdicts(options));
  INGOT_RETURN_IF_ERROR(
      print_result(options.json ? verdicts_json(verdicts) : verdicts_text(verdicts)));
  return conclusion(verdicts);
}

}  // namespace

void add_verify_command(CLI::App& app, Invocation& invocation) {
  CLI::App& command = add_command(
      app, "verify", "Is an artifact genuine, does it fit, does it compute the right numbers?",
      "ingot verify model.ingot --pub team.pub --product road-vision --self-test");
  auto options = std::make_shared<VerifyOptions>();
  command.add_option("ARTIFACT", options->artifact, "Artifact to verify")->required();
  add_repeatable(command, "--pub", options->public_keys, "Trusted public key (PEM); repeatable");
  CLI::Option* id = command.add_option("--id", options->id, "The artifact must have this id");
  command.add_option("--ids", options->ids, "Deploy list: the id must start one of its lines")
      ->excludes(id);
  command.add_option("--policy", options->policy,
                     "Policy file: keys, thresholds, purposes, limits");
  command.add_option("--detached", options->detached, "Detached signatures, besides those inside");
  command.add_option("--product", options->product, "Product that the artifact must be for");
  command.add_option("--device", options->device,
                     "Device description to judge compatibility for, instead of this machine");
  command
      .add_option("--min-security-counter", options->min_security_counter,
                  "Lowest acceptable security counter")
      ->check(check_counter);
  command.add_flag("--self-test", options->self_test, "Run the reference vectors here");
  command.add_flag("--json", options->json, "Print the verdicts as JSON");
  set_action(command, invocation, options, run_verify);
}

}  // namespace ingot::cli
