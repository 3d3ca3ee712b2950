#include "cli/loaded_artifact.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "artifact/names.h"
#include "cli/json.h"
#include "cli/options.h"

namespace ingot::cli {
namespace {

SlotView view_of(const ingot_io_info& io, const NameTable& names) {
  SlotView slot;
  slot.index = io.index;
  slot.stored = io.name;
  slot.name = names.original(slot.stored);
  slot.direction = io.direction;
  slot.dtype = static_cast<DType>(io.dtype);
  slot.shape.assign(io.shape, io.shape + io.rank);
  slot.nbytes = io.nbytes;
  slot.dense = io.nbytes == io.logical_nbytes;
  slot.camera = io.camera;
  slot.alignment = io.alignment;
  return slot;
}

std::uint64_t number_or_zero(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

// What encode_program.cpp wrote; an artifact without it, or with something else, has no costs.
std::vector<CallCost> parse_costs(std::string_view text) {
  const Result<Json> json = parse_json(text, {});
  if (!json || !json->is_object() || !json->contains("calls")) return {};
  std::vector<CallCost> costs;
  for (const Json& entry : (*json)["calls"]) {
    if (!entry.is_object()) return {};
    CallCost cost;
    const auto name = entry.find("name");
    if (name != entry.end() && name->is_string()) cost.name = name->get<std::string>();
    cost.operations = number_or_zero(entry, "operations");
    cost.read_bytes = number_or_zero(entry, "read_bytes");
    cost.written_bytes = number_or_zero(entry, "written_bytes");
    costs.push_back(std::move(cost));
  }
  return costs;
}

// Layouts of any variant, by their original names.
std::vector<std::string> camera_names(const artifact::Decoded& decoded) {
  const NameTable originals(decoded.manifest);
  std::set<std::string> names;
  for (const artifact::VariantTables& variant : decoded.tables.variant_tables) {
    for (const IngotCameraRecord& camera : variant.cameras) {
      names.insert(originals.original(decoded.tables.name(camera.name)));
    }
  }
  return {names.begin(), names.end()};
}

// Why no variant has the camera's layout, if the reason is that the artifact never heard of it.
std::optional<Failure> unknown_camera(const std::vector<std::byte>& bytes, const std::string& path,
                                      const std::string& camera) {
  const Result<artifact::Decoded> decoded = artifact::decode(bytes);
  if (!decoded) return std::nullopt;
  const std::vector<std::string> names = camera_names(*decoded);
  if (std::ranges::find(names, camera) != names.end()) return std::nullopt;
  return fail(ExitCode::Usage, "unknown-camera",
              fmt::format("--camera: the artifact has no camera '{}'", camera), path,
              names.empty() ? "it was compiled without cameras, leave --camera out"
                            : fmt::format("cameras: {}", fmt::join(names, ", ")))
      .error();
}

std::string trust_hint(ingot_status status) {
  switch (status) {
    case INGOT_STATUS_UNSIGNED: return "sign it with ingot sign, or give --allow-unsigned";
    case INGOT_STATUS_KEY_UNKNOWN: return "give the signer's public key with --pub";
    default: return {};
  }
}

}  // namespace

Result<void> check_structure(const std::vector<std::byte>& bytes, const std::string& file) {
  LoaderPolicy policy{artifact::Policy{}};
  policy.get().allow_unsigned = 1;
  ingot_load_options load{};
  load.flags = INGOT_LOAD_STOP_AT_VERIFIED;
  ingot_artifact* opened = nullptr;
  ingot_error error{};
  ingot_status status =
      ingot_open_memory(bytes.data(), bytes.size(), &policy.get(), &load, &opened, &error);
  if (status == INGOT_STATUS_OK) status = ingot_verify_all_variants(opened, &error);
  ingot_close(opened);
  if (status != INGOT_STATUS_OK) return loader_failure(error, file);
  return {};
}

std::vector<CallCost> call_costs(const artifact::Decoded& decoded, std::uint32_t variant) {
  const std::optional<std::size_t> row = decoded.find(INGOT_SECTION_DEBUG, variant);
  if (!row) return {};
  const std::span<const std::byte> payload = decoded.payload(*row);
  return parse_costs({reinterpret_cast<const char*>(payload.data()), payload.size()});
}

std::string recorded_option(std::string_view manifest, std::string_view name) {
  const Result<Json> json = parse_json(manifest, {});
  if (!json || !json->is_object()) return {};
  const auto tool = json->find("tool");
  if (tool == json->end() || !tool->is_object()) return {};
  const auto options = tool->find("options");
  if (options == tool->end() || !options->is_array()) return {};
  for (const Json& option : *options) {
    if (option.is_array() && option.size() == 2 && option[0] == name && option[1].is_string()) {
      return option[1].get<std::string>();
    }
  }
  return {};
}

NameTable::NameTable(std::string_view manifest) {
  const Result<Json> json = parse_json(manifest, {});
  if (!json || !json->is_object()) return;
  const auto names = json->find("names");
  if (names == json->end() || !names->is_object()) return;
  for (const auto& [stored, original] : names->items()) {
    if (original.is_string()) cut_[stored] = original.get<std::string>();
  }
}

std::string NameTable::original(std::string_view stored) const {
  const auto cut = cut_.find(stored);
  if (cut != cut_.end()) return cut->second;
  return artifact::decode_name(stored).value_or(std::string(stored));
}

Result<LoadedArtifact> LoadedArtifact::open(const std::string& path, const TrustOptions& trust,
                                            const std::string& camera) {
  INGOT_ASSIGN(const std::vector<artifact::PublicKey> keys, read_public_keys(trust.public_keys));
  INGOT_ASSIGN(const std::vector<std::byte> bytes, read_artifact_file(path));
  LoaderPolicy policy(artifact::policy_of_keys(keys));
  policy.set_camera(camera.empty() ? std::string() : artifact::encode_name(camera));
  policy.get().allow_unsigned = trust.allow_unsigned ? 1 : 0;
  policy.get().run_without_self_test = 1;
  Result<LoadedArtifact> loaded = open_bytes(bytes, path, policy.get());
  if (!loaded && !camera.empty() && loaded.error().exit == ExitCode::Incompatible) {
    if (auto failure = unknown_camera(bytes, path, camera)) {
      return std::unexpected(*std::move(failure));
    }
  }
  return loaded;
}

Result<LoadedArtifact> LoadedArtifact::open_bytes(const std::vector<std::byte>& bytes,
                                                  const std::string& path,
                                                  const ingot_policy& policy) {
  LoadedArtifact loaded;
  loaded.path_ = path;
  ingot_artifact* artifact = nullptr;
  ingot_error error{};
  const ingot_status status =
      ingot_open_memory(bytes.data(), bytes.size(), &policy, nullptr, &artifact, &error);
  if (status != INGOT_STATUS_OK) return loader_failure(error, path, trust_hint(status));
  loaded.artifact_.reset(artifact);
  INGOT_RETURN_IF_ERROR(loaded.describe(bytes));
  return loaded;
}

Result<void> LoadedArtifact::describe(const std::vector<std::byte>& bytes) {
  ingot_artifact_describe(get(), &description_);
  Result<artifact::Decoded> decoded = artifact::decode(bytes);
  if (!decoded) {
    for (Diagnostic& diagnostic : decoded.error().diagnostics) diagnostic.file = path_;
    return std::unexpected(std::move(decoded).error());
  }
  describe_slots(NameTable(decoded->manifest));
  describe_variant(*decoded);
  numerics_ = recorded_option(decoded->manifest, "numerics");
  return {};
}

void LoadedArtifact::describe_slots(const NameTable& names) {
  for (std::uint32_t i = 0; i < description_.io_count; ++i) {
    ingot_io_info io{};
    if (ingot_io_describe(get(), i, &io) == INGOT_STATUS_OK) slots_.push_back(view_of(io, names));
  }
  std::vector<std::vector<InputView>> parts(slots_.size());
  for (std::uint32_t i = 0; i < description_.slice_count; ++i) {
    ingot_slice_info slice{};
    if (ingot_slice_describe(get(), i, &slice) != INGOT_STATUS_OK) continue;
    InputView part;
    part.stored = slice.name;
    part.name = names.original(part.stored);
    part.slot = slice.io;
    part.offset = slice.offset;
    part.dtype = static_cast<DType>(slice.dtype);
    part.shape.assign(slice.shape, slice.shape + slice.rank);
    part.nbytes = slice.nbytes;
    parts[slice.io].push_back(std::move(part));
  }
  for (const SlotView& slot : slots_) {
    if (slot.direction != INGOT_SLOT_INPUT) continue;
    std::vector<InputView>& own = parts[slot.index];
    if (own.empty()) {
      own.push_back(InputView{slot.name, slot.stored, slot.index, 0, slot.dtype, slot.shape,
                              slot.nbytes, slot.dense});
    }
    inputs_.insert(inputs_.end(), own.begin(), own.end());
  }
}

void LoadedArtifact::describe_variant(const artifact::Decoded& decoded) {
  for (const IngotModelRecord& model : decoded.tables.models) {
    artifact::Digest& digest = models_.emplace_back();
    std::ranges::copy(model.onnx_sha256, digest.begin());
  }
  const std::uint32_t variant = description_.variant;
  if (variant >= decoded.tables.variant_tables.size()) return;
  for (const IngotTransformRecord& transform : decoded.tables.variant_tables[variant].transforms) {
    matrices_.push_back({transform.io, transform.matrix_offset});
  }
  costs_ = call_costs(decoded, variant);
  if (costs_.size() != description_.call_count) costs_.clear();
}

const InputView* LoadedArtifact::find_input(std::string_view name) const {
  for (const auto& key : {&InputView::name, &InputView::stored}) {
    const auto found = std::ranges::find(inputs_, name, key);
    if (found != inputs_.end()) return &*found;
  }
  return nullptr;
}

const SlotView* LoadedArtifact::find_slot(std::string_view name) const {
  for (const SlotView& slot : slots_) {
    if (slot.name == name) return &slot;
  }
  for (const SlotView& slot : slots_) {
    if (slot.stored == name) return &slot;
  }
  return nullptr;
}

}  // namespace ingot::cli
