// One instance of a loaded artifact with memory for all its inputs and outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/result.h"
#include "cli/loaded_artifact.h"
#include "loader/ingot_loader.h"

namespace ingot::cli {

// What a seeded test tensor of an input may hold.
struct InputRange {
  double lo = 0, hi = 1;
};
// -1..1 for floats, 0..255 for bytes, 0..15 for other integers.
[[nodiscard]] InputRange default_range(DType dtype);

class Session {
 public:
  // `flags`: INGOT_RUN_*. `threads` run every frame, the caller included; Usage if the artifact was
  // made for fewer. The artifact must outlive the session.
  [[nodiscard]] static Result<Session> create(const LoadedArtifact& artifact,
                                              std::uint32_t flags = 0, std::uint32_t threads = 1);

  // Inputs, and states before a frame. Needs: exactly the slot's bytes.
  [[nodiscard]] Result<void> set(const SlotView& slot, std::span<const std::byte> bytes);
  // An input, or a part of one. Needs: exactly its bytes.
  [[nodiscard]] Result<void> set(const InputView& input, std::span<const std::byte> bytes);
  // Every input gets its seeded tensor; matrices that the loader checks become the identity.
  [[nodiscard]] Result<void> fill_inputs(std::uint64_t seed);

  // A frame that was not accepted, or whose outputs may not be used, is a failure. Clamped indices
  // are a warning.
  [[nodiscard]] Result<ingot_frame> run(std::vector<Diagnostic>* warnings = nullptr);

  // Outputs of the last frame, and states as the next one will read them.
  [[nodiscard]] std::span<const std::byte> value(const SlotView& slot) const;

  [[nodiscard]] ingot_instance* get() const { return instance_.get(); }

 private:
  struct Destroy {
    void operator()(ingot_instance* instance) const { ingot_instance_destroy(instance); }
  };
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<std::byte, Free>;

  // The caller's helpers, inside of the instance until the end.
  class Workers {
   public:
    explicit Workers(ingot_instance* instance) : instance_(instance) {}
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;
    ~Workers();
    // False if the system has no more threads. Returns when all have joined.
    [[nodiscard]] bool start(std::uint32_t threads);

   private:
    ingot_instance* instance_;
    std::vector<std::jthread> threads_;
  };

  explicit Session(const LoadedArtifact& artifact) : artifact_(&artifact) {}
  [[nodiscard]] Result<void> bind(const SlotView& slot);
  [[nodiscard]] std::unexpected<Failure> frame_failure(const ingot_frame& frame) const;
  void set_identity_matrices(const SlotView& slot);

  const LoadedArtifact* artifact_;
  std::vector<Memory> memory_;  // by slot; none for states
  std::unique_ptr<ingot_instance, Destroy> instance_;
  std::unique_ptr<Workers> workers_;  // ends before the instance
};

}  // namespace ingot::cli
