// An artifact opened with the loader library, and what the loader does not keep: original names,
// sources and the cost of calls.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/decode.h"
#include "base/result.h"
#include "cli/loader_policy.h"
#include "compiler/tensor/tensor.h"
#include "loader/ingot_loader.h"

namespace ingot::cli {

struct SlotView {
  std::uint32_t index = 0;
  std::string name;    // as in the model
  std::string stored;  // as in the artifact
  std::uint32_t direction = 0;
  DType dtype = DType::F32;
  Shape shape;
  std::uint64_t nbytes = 0;
  bool dense = true;
  std::uint32_t camera = INGOT_NONE;
  std::uint32_t alignment = 1;
};

// What a caller gives for every frame: an input, or a named part of a packed one.
struct InputView {
  std::string name, stored;
  std::uint32_t slot = 0;
  std::uint64_t offset = 0;  // bytes within the slot
  DType dtype = DType::F32;
  Shape shape;
  std::uint64_t nbytes = 0;
  bool dense = true;
};

// Where a 3x3 matrix lies that the loader checks before every frame.
struct MatrixPlace {
  std::uint32_t slot = 0;
  std::uint64_t offset = 0;
};

struct CallCost {
  std::string name;
  std::uint64_t operations = 0;
  std::uint64_t read_bytes = 0, written_bytes = 0;
};

// Original names of an artifact's stored names: decoded, or from the manifest where they were cut.
class NameTable {
 public:
  NameTable() = default;
  explicit NameTable(std::string_view manifest);
  [[nodiscard]] std::string original(std::string_view stored) const;

 private:
  std::map<std::string, std::string, std::less<>> cut_;
};

// One of the tool's options as the manifest records them; empty if it is not there, or not as the
// tool writes it: the manifest beyond the facts of the tables is any JSON.
[[nodiscard]] std::string recorded_option(std::string_view manifest, std::string_view name);

// An unsigned artifact may be looked at, a malformed one not: its tables mean nothing.
[[nodiscard]] Result<void> check_structure(const std::vector<std::byte>& bytes,
                                           const std::string& file);

// Of each call of a variant; empty if the artifact does not say.
[[nodiscard]] std::vector<CallCost> call_costs(const artifact::Decoded& decoded,
                                               std::uint32_t variant);

class LoadedArtifact {
 public:
  // Ready to run frames; the self-test is left to the caller. `camera` may be empty; Usage if the
  // artifact has cameras by other names only.
  [[nodiscard]] static Result<LoadedArtifact> open(const std::string& path,
                                                   const TrustOptions& trust,
                                                   const std::string& camera);

  [[nodiscard]] ingot_artifact* get() const { return artifact_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const ingot_artifact_info& description() const { return description_; }
  [[nodiscard]] const std::vector<SlotView>& slots() const { return slots_; }
  // By the model's name, or by the stored one.
  [[nodiscard]] const SlotView* find_slot(std::string_view name) const;
  [[nodiscard]] const std::vector<InputView>& inputs() const { return inputs_; }
  [[nodiscard]] const InputView* find_input(std::string_view name) const;
  [[nodiscard]] const std::vector<MatrixPlace>& matrices() const { return matrices_; }
  [[nodiscard]] const std::vector<CallCost>& costs() const { return costs_; }
  [[nodiscard]] const std::vector<artifact::Digest>& model_digests() const { return models_; }
  // "float32", "float16" or "quantized", as the compiler recorded it; empty if it did not.
  [[nodiscard]] const std::string& numerics() const { return numerics_; }

 private:
  struct Close {
    void operator()(ingot_artifact* artifact) const { ingot_close(artifact); }
  };
  LoadedArtifact() = default;
  [[nodiscard]] static Result<LoadedArtifact> open_bytes(const std::vector<std::byte>& bytes,
                                                         const std::string& path,
                                                         const ingot_policy& policy);
  [[nodiscard]] Result<void> describe(const std::vector<std::byte>& bytes);
  void describe_slots(const NameTable& names);
  void describe_variant(const artifact::Decoded& decoded);

  std::unique_ptr<ingot_artifact, Close> artifact_;
  std::string path_;
  ingot_artifact_info description_{};
  std::vector<SlotView> slots_;
  std::vector<InputView> inputs_;
  std::vector<MatrixPlace> matrices_;
  std::vector<CallCost> costs_;
  std::vector<artifact::Digest> models_;
  std::string numerics_;
};

}  // namespace ingot::cli
