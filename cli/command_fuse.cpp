// ingot fuse MODEL.ingot WARP.ingot -o FUSED.ingot: prebuilt parts as one call list.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artifact/decode.h"
#include "artifact/encode.h"
#include "artifact/fuse.h"
#include "artifact/keys.h"
#include "artifact/names.h"
#include "artifact/pack_inputs.h"
#include "artifact/policy.h"
#include "artifact/read_contents.h"
#include "artifact/sign.h"
#include "cli/atomic_file.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "cli/json.h"
#include "cli/loaded_artifact.h"
#include "cli/options.h"
#include "cli/output_artifact.h"
#include "cli/self_check.h"
#include "cli/session.h"

namespace ingot::cli {
namespace {

struct FuseCommandOptions {
  std::string model, warp;
  std::string output;
  std::vector<std::string> connections;
  std::vector<std::string> sign;
  bool unsigned_artifact = false;
  std::string product;
  std::string build_class = "development";
  bool packed = false;
  TrustOptions trust;
  bool json = false;
};

// A part: its bytes, which the contents borrow, and what the loader says about it.
struct Part {
  std::string path;
  std::vector<std::byte> bytes;
  artifact::Decoded decoded;
  artifact::ArtifactContents contents;
};

// Trusted and well formed, for whatever machine.
Result<std::unique_ptr<Part>> read_part(const std::string& path, const TrustOptions& trust) {
  auto part = std::make_unique<Part>();
  part->path = path;
  INGOT_ASSIGN(part->bytes, read_artifact_file(path));
  INGOT_ASSIGN(const auto keys, read_public_keys(trust.public_keys));
  LoaderPolicy loader(artifact::policy_of_keys(keys));
  loader.get().allow_unsigned = trust.allow_unsigned ? 1 : 0;
  ingot_load_options load{};
  load.flags = INGOT_LOAD_STOP_AT_VERIFIED;
  ingot_artifact* opened = nullptr;
  ingot_error error{};
  if (ingot_open_memory(part->bytes.data(), part->bytes.size(), &loader.get(), &load, &opened,
                        &error) != INGOT_STATUS_OK) {
    return loader_failure(error, path);
  }
  const ingot_status tables = ingot_verify_all_variants(opened, &error);
  ingot_close(opened);
  if (tables != INGOT_STATUS_OK) return loader_failure(error, path);
  INGOT_ASSIGN(part->decoded, about(path, artifact::decode(part->bytes)));
  INGOT_ASSIGN(part->contents, about(path, artifact::read_contents(part->decoded)));
  return part;
}

// ---------------------------------------------------------------------------------------------
// References: what the parts compute one after the other

using Bytes = std::vector<std::byte>;

// The value of a slot in a step of the first sequence, or in the last step that has one.
const artifact::Reference* reference_of(const artifact::Interface& interface, std::uint32_t slot,
                                        std::uint32_t step) {
  const artifact::Reference* found = nullptr;
  for (const artifact::Reference& reference : interface.references) {
    if (reference.sequence == 0 && reference.slot == slot && reference.step <= step) {
      found = &reference;
    }
  }
  return found;
}

std::uint32_t step_count(const artifact::Interface& interface) {
  std::uint32_t count = 0;
  for (const artifact::Reference& reference : interface.references) {
    if (reference.sequence == 0) count = std::max(count, reference.step + 1);
  }
  return count;
}

std::optional<std::uint32_t> slot_named(const artifact::Interface& interface,
                                        const std::string& name) {
  const auto at = std::ranges::find(interface.slots, name, &artifact::Slot::name);
  if (at == interface.slots.end()) return std::nullopt;
  return static_cast<std::uint32_t>(at - interface.slots.begin());
}

// Runs the parts apart and writes down what went in and came out.
class ReferenceRecorder {
 public:
  ReferenceRecorder(const FuseCommandOptions& options, const Part& model, const Part& warp,
                    artifact::Fused& fused)
      : options_(options), model_(model), warp_(warp), fused_(fused) {}

  // Why there is nothing to record, if so.
  Result<std::optional<Diagnostic>> run() {
    for (const Part* part : {&model_, &warp_}) {
      for (const artifact::Interface& interface : part->contents.interfaces) {
        if (step_count(interface) == 0) return no_vectors(part->path);
      }
    }
    std::uint32_t interface = 0;
    for (const artifact::Interface& warp : warp_.contents.interfaces) {
      INGOT_ASSIGN(const bool executed, record(warp, fused_.contents.interfaces[interface++]));
      if (!executed) return not_run(model_.path);
    }
    return std::nullopt;
  }

 private:
  static Diagnostic no_vectors(const std::string& part) {
    return make_warning("fuse-no-vectors",
                        "this part has no reference vectors: the result has none either", part,
                        "compile the part anew, or fuse on a machine of one of the targets");
  }
  static Diagnostic not_run(const std::string& part) {
    return make_warning("fuse-not-run",
                        "nothing here executes the parts: there are no reference vectors", part,
                        "fuse on a machine of one of the targets");
  }
  static bool is_about_the_machine(const Failure& failure) {
    return failure.exit == ExitCode::Incompatible;
  }

  Result<bool> record(const artifact::Interface& warp, artifact::Interface& fused) {
    const std::string camera = warp.cameras.front().name;
    const Result<LoadedArtifact> warp_part =
        LoadedArtifact::open(options_.warp, options_.trust, camera);
    const Result<LoadedArtifact> model_part =
        LoadedArtifact::open(options_.model, options_.trust, "");
    for (const Result<LoadedArtifact>* part : {&warp_part, &model_part}) {
      if (*part) continue;
      if (is_about_the_machine(part->error())) return false;
      return std::unexpected(part->error());
    }
    INGOT_ASSIGN(Session warp_session, Session::create(*warp_part));
    INGOT_ASSIGN(Session model_session, Session::create(*model_part));
    const artifact::Interface& model = model_.contents.interfaces[0];
    const std::uint32_t steps = std::max(step_count(warp), step_count(model));
    for (std::uint32_t step = 0; step < steps; ++step) {
      INGOT_RETURN_IF_ERROR(set_inputs(*warp_part, warp, step, warp_session, fused));
      INGOT_RETURN_IF_ERROR(warp_session.run());
      for (const artifact::FusedSlot& slot : fused_.slots) {
        INGOT_RETURN_IF_ERROR(
            model_session.set(*model_part->find_slot(slot.model_input),
                              warp_session.value(*warp_part->find_slot(slot.warp_output))));
      }
      INGOT_RETURN_IF_ERROR(set_inputs(*model_part, model, step, model_session, fused));
      INGOT_RETURN_IF_ERROR(model_session.run());
      record_outputs(*model_part, model, step, model_session, fused);
    }
    artifact::ReferenceSource source;
    source.camera = camera;
    source.name = "parts";
    fused_.contents.manifest.references.push_back(std::move(source));
    return true;
  }

  // Inputs that the fused artifact has too get the values of the part's own reference.
  Result<void> set_inputs(const LoadedArtifact& part, const artifact::Interface& interface,
                          std::uint32_t step, Session& session, artifact::Interface& fused) const {
    for (std::uint32_t s = 0; s < interface.slots.size(); ++s) {
      const artifact::Slot& slot = interface.slots[s];
      // What was connected is no input any more, even if a frame of the warp has its name.
      const bool connected = &interface == &model_.contents.interfaces[0] &&
                             std::ranges::any_of(fused_.slots, [&](const auto& pair) {
                               return pair.model_input == slot.name;
                             });
      const auto place = slot_named(fused, slot.name);
      if (slot.direction != INGOT_DIRECTION_INPUT || connected || !place) continue;
      const artifact::Reference* known = reference_of(interface, s, step);
      const SlotView* view = part.find_slot(slot.name);
      if (known == nullptr || view == nullptr) {
        return fail(ExitCode::Malformed, "no-reference",
                    fmt::format("no reference vector for input '{}'", slot.name), part.path());
      }
      INGOT_RETURN_IF_ERROR(session.set(*view, known->data.bytes));
      artifact::Reference reference = *known;
      reference.slot = *place;
      reference.step = step;
      fused.references.push_back(std::move(reference));
    }
    return {};
  }

  static void record_outputs(const LoadedArtifact& part, const artifact::Interface& model,
                             std::uint32_t step, const Session& session,
                             artifact::Interface& fused) {
    for (std::uint32_t s = 0; s < model.slots.size(); ++s) {
      if (model.slots[s].direction != INGOT_DIRECTION_OUTPUT) continue;
      const artifact::Reference* known = reference_of(model, s, step);
      if (known == nullptr) continue;
      artifact::Reference reference = *known;  // its tolerance
      reference.slot = *slot_named(fused, model.slots[s].name);
      reference.step = step;
      reference.origin = INGOT_ORIGIN_MEASURED;
      const std::span<const std::byte> value = session.value(*part.find_slot(model.slots[s].name));
      reference.data = artifact::own(Bytes(value.begin(), value.end()));
      fused.references.push_back(std::move(reference));
    }
  }

  const FuseCommandOptions& options_;
  const Part& model_;
  const Part& warp_;
  artifact::Fused& fused_;
};

// ---------------------------------------------------------------------------------------------
// The command

Result<void> check_usage(const FuseCommandOptions& options) {
  if (options.sign.empty() && !options.unsigned_artifact) {
    return usage_error("fuse needs --sign KEY or --unsigned",
                       "make a key with 'ingot keygen team', then give --sign team.key");
  }
  if (!options.product.empty() && !artifact::is_product_name(options.product)) {
    return usage_error("--product: 1 to 32 characters of a-z 0-9 - .");
  }
  return check_output_artifact(options.output);
}

void add_options(const FuseCommandOptions& options, const Part& model, const Part& warp,
                 artifact::ArtifactContents& contents) {
  contents.build_class = *artifact::parse_build_class(options.build_class);
  auto& facts = contents.manifest.options;
  facts = model.contents.manifest.options;
  facts.emplace_back("fused-model", artifact::to_hex(model.decoded.id));
  facts.emplace_back("fused-warp", artifact::to_hex(warp.decoded.id));
}

struct FusedFile {
  std::vector<std::byte> bytes;
  bool has_vectors = false;
};

Result<FusedFile> make_artifact(const FuseCommandOptions& options,
                                std::vector<Diagnostic>& warnings) {
  artifact::FuseOptions how;
  how.product = options.product;
  INGOT_ASSIGN(const auto connections, name_values(options.connections, "--connect"));
  for (const auto& [input, output] : connections) how.connections.emplace_back(input, output);
  INGOT_ASSIGN(const std::unique_ptr<Part> model, read_part(options.model, options.trust));
  INGOT_ASSIGN(const std::unique_ptr<Part> warp, read_part(options.warp, options.trust));
  INGOT_ASSIGN(artifact::Fused fused,
               about(options.model, artifact::fuse(model->contents, warp->contents, how)));
  add_options(options, *model, *warp, fused.contents);
  INGOT_ASSIGN(const std::optional<Diagnostic> missing,
               ReferenceRecorder(options, *model, *warp, fused).run());
  if (missing) {
    for (artifact::Interface& interface : fused.contents.interfaces) interface.references.clear();
    fused.contents.manifest.references.clear();
    warnings.push_back(*missing);
  }
  artifact::PackOptions packing;
  packing.frames = options.packed;
  INGOT_RETURN_IF_ERROR(about(options.model, artifact::pack_inputs(fused.contents, packing)));
  warn_of_packed_frames(fused.contents, options.warp, warnings);
  FusedFile file;
  INGOT_ASSIGN(file.bytes, about(options.model, artifact::encode(fused.contents)));
  file.has_vectors = !missing;
  return file;
}

Result<ExitCode> run_fuse(const FuseCommandOptions& options, std::vector<Diagnostic>& warnings) {
  INGOT_RETURN_IF_ERROR(check_usage(options));
  artifact::SignOptions signing;
  INGOT_ASSIGN(signing.signed_at, artifact::signed_at_from_environment());
  std::vector<artifact::PrivateKey> keys;
  for (const std::string& path : options.sign) {
    INGOT_ASSIGN(keys.emplace_back(), artifact::read_private_key(path));
  }
  INGOT_ASSIGN(FusedFile file, make_artifact(options, warnings));
  std::vector<std::byte> bytes = std::move(file.bytes);
  for (const artifact::PrivateKey& key : keys) {
    INGOT_ASSIGN(bytes, artifact::add_signature(std::move(bytes), key, signing));
  }
  INGOT_ASSIGN(
      const std::vector<VariantCheck> checks,
      self_check(bytes, options.output, file.has_vectors ? CheckLevel::Sampled : CheckLevel::Off));
  INGOT_RETURN_IF_ERROR(write_file(options.output, bytes));
  INGOT_ASSIGN(const artifact::Digest id, artifact::artifact_id(bytes));
  const auto run = std::ranges::count_if(checks, [](const VariantCheck& check) {
    return check.outcome == VariantCheck::Outcome::Passed;
  });
  if (options.json) {
    Json json;
    json["output"] = options.output;
    json["id"] = artifact::to_hex(id);
    json["file_bytes"] = bytes.size();
    json["signatures"] = keys.size();
    json["variants"] = checks.size();
    json["executed"] = run;
    INGOT_RETURN_IF_ERROR(print_result(to_text(json)));
    return ExitCode::Done;
  }
  INGOT_RETURN_IF_ERROR(print_result(fmt::format(
      "{}\nartifact id  {}\nsignatures   {}\nsize         {} bytes\nvariants     {}, {} of them "
      "run "
      "here like their parts\n",
      options.output, artifact::to_hex(id), keys.empty() ? "none" : std::to_string(keys.size()),
      bytes.size(), checks.size(), run)));
  return ExitCode::Done;
}

}  // namespace

void add_fuse_command(CLI::App& app, Invocation& invocation) {
  CLI::App& command = add_command(
      app, "fuse", "Join a compiled model and a compiled warp without recompiling",
      "ingot fuse vision.ingot warp.ingot -o fused.ingot --pub team.pub --sign team.key");
  auto options = std::make_shared<FuseCommandOptions>();
  command.add_option("MODEL", options->model, "Artifact of a model without cameras")->required();
  command.add_option("WARP", options->warp, "Artifact of a pipeline of warps")->required();
  command.add_option("-o", options->output, "Artifact to write")->required();
  add_repeatable(command, "--connect", options->connections,
                 "INPUT=OUTPUT: this output of the warp is this input of the model; default: by "
                 "name, then by type and shape; repeatable");
  command.add_flag("--packed", options->packed,
                   "Camera frames too are parts of the one packed input");
  CLI::Option* sign =
      add_repeatable(command, "--sign", options->sign, "Sign with this private key; repeatable");
  command.add_flag("--unsigned", options->unsigned_artifact, "Leave the artifact unsigned")
      ->excludes(sign);
  command.add_option("--product", options->product,
                     "What the artifact is for; default: the model's");
  command.add_option("--build-class", options->build_class, "How far the build has come")
      ->check(CLI::IsMember({"development", "candidate", "release"}))
      ->capture_default_str();
  add_trust_options(command, options->trust);
  command.add_flag("--json", options->json, "Print the result as JSON");
  set_action(command, invocation, options, run_fuse);
}

}  // namespace ingot::cli
