#include "cli/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "cli/diagnostics.h"
#include "cli/options.h"
#include "compiler/compile.h"

namespace ingot::cli {
namespace {

constexpr std::size_t kAlignment = 4096;

std::size_t round_up(std::uint64_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

InputRange default_range(DType dtype) {
  if (is_float(dtype)) return {-1, 1};
  if (dtype == DType::Bool) return {0, 1};
  return size_bytes(dtype) == 1 ? InputRange{0, dtype == DType::U8 ? 255.0 : 127.0}
                                : InputRange{0, 15};
}

Session::Workers::~Workers() { ingot_stop_work(instance_); }

bool Session::Workers::start(std::uint32_t threads) {
  try {
    for (std::uint32_t i = 1; i < threads; ++i) {
      threads_.emplace_back([instance = instance_, i] { ingot_work(instance, i); });
    }
  } catch (const std::system_error&) {
    return false;
  }
  while (ingot_workers_inside(instance_) + 1 < threads) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

Result<Session> Session::create(const LoadedArtifact& artifact, std::uint32_t flags,
                                std::uint32_t threads) {
  ingot_variant_info variant{};
  ingot_variant_describe(artifact.get(), artifact.description().variant, &variant);
  if (threads > variant.threads) {
    return usage_error(
        fmt::format("--threads: the artifact was made for at most {}", variant.threads));
  }
  Session session(artifact);
  ingot_instance_options options{};
  options.flags = flags;
  options.workers = threads;
  ingot_instance* instance = nullptr;
  ingot_error error{};
  if (ingot_instance_create(artifact.get(), &options, &instance, &error) != INGOT_STATUS_OK) {
    return loader_failure(error, artifact.path());
  }
  session.instance_.reset(instance);
  session.memory_.resize(artifact.slots().size());
  for (const SlotView& slot : artifact.slots()) {
    if (slot.direction != INGOT_SLOT_STATE) INGOT_RETURN_IF_ERROR(session.bind(slot));
  }
  if (threads > 1) {
    session.workers_ = std::make_unique<Workers>(session.get());
    if (!session.workers_->start(threads)) {
      return fail(ExitCode::Io, "no-thread", "the system gives no more threads", artifact.path());
    }
  }
  return session;
}

Result<void> Session::bind(const SlotView& slot) {
  const std::size_t size = round_up(slot.nbytes);
  Memory& memory = memory_[slot.index];
  memory.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, size)));
  if (memory == nullptr)
    return fail(ExitCode::Io, "out-of-memory", "not enough memory", artifact_->path());
  std::memset(memory.get(), 0, size);
  ingot_binding binding{};
  ingot_binding_expected(artifact_->get(), slot.index, &binding);
  binding.data = memory.get();
  ingot_camera_info camera{};
  if (slot.camera != INGOT_NONE) {
    ingot_camera_describe(artifact_->get(), slot.camera, &camera);
    binding.layout = &camera.layout;
  }
  ingot_error error{};
  if (ingot_bind(get(), &binding, 1, &error) != INGOT_STATUS_OK) {
    return loader_failure(error, artifact_->path());
  }
  return {};
}

Result<void> Session::set(const SlotView& slot, std::span<const std::byte> bytes) {
  if (bytes.size() != slot.nbytes) {
    return fail(
        ExitCode::Malformed, "wrong-size",
        fmt::format("input '{}' has {} bytes, given {}", slot.name, slot.nbytes, bytes.size()),
        artifact_->path());
  }
  if (slot.direction == INGOT_SLOT_STATE) {
    if (ingot_set_state(get(), slot.index, bytes.data(), bytes.size()) != INGOT_STATUS_OK) {
      return fail(ExitCode::Internal, "loader-state", "the loader refused the value of a state",
                  artifact_->path());
    }
  } else if (!bytes.empty()) {
    std::memcpy(memory_[slot.index].get(), bytes.data(), bytes.size());
  }
  return {};
}

Result<void> Session::set(const InputView& input, std::span<const std::byte> bytes) {
  if (bytes.size() != input.nbytes) {
    return fail(
        ExitCode::Malformed, "wrong-size",
        fmt::format("input '{}' has {} bytes, given {}", input.name, input.nbytes, bytes.size()),
        artifact_->path());
  }
  if (!bytes.empty()) {
    std::memcpy(memory_[input.slot].get() + input.offset, bytes.data(), bytes.size());
  }
  return {};
}

Result<void> Session::fill_inputs(std::uint64_t seed) {
  for (const InputView& input : artifact_->inputs()) {
    if (!input.dense) continue;
    const auto [lo, hi] = default_range(input.dtype);
    INGOT_RETURN_IF_ERROR(
        set(input, generate_input(input.name, input.dtype, input.shape, seed, lo, hi)));
  }
  for (const SlotView& slot : artifact_->slots()) {
    if (slot.direction == INGOT_SLOT_INPUT) set_identity_matrices(slot);
  }
  return {};
}

void Session::set_identity_matrices(const SlotView& slot) {
  constexpr std::array<float, 9> kIdentity = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  for (const MatrixPlace& matrix : artifact_->matrices()) {
    if (matrix.slot != slot.index || matrix.offset + sizeof(kIdentity) > slot.nbytes) continue;
    std::memcpy(memory_[slot.index].get() + matrix.offset, kIdentity.data(), sizeof(kIdentity));
  }
}

std::unexpected<Failure> Session::frame_failure(const ingot_frame& frame) const {
  ingot_error error{};
  error.number = frame.status;
  error.slot = frame.slot;
  error.section = error.record = error.variant = error.field = INGOT_NONE;
  Failure failure = to_failure(error, artifact_->path());
  Diagnostic& diagnostic = failure.diagnostics.front();
  diagnostic.message = fmt::format("{} ({}): {}", ingot_status_name(frame.status), frame.status,
                                   ingot_status_text(frame.status));
  if (frame.slot < artifact_->slots().size()) {
    diagnostic.message += fmt::format(", slot '{}'", artifact_->slots()[frame.slot].name);
  }
  if (frame.call != INGOT_NONE) diagnostic.message += fmt::format(", call {}", frame.call);
  return std::unexpected(std::move(failure));
}

Result<ingot_frame> Session::run(std::vector<Diagnostic>* warnings) {
  ingot_frame frame{};
  ingot_run(get(), &frame);
  if (frame.accepted == 0 || frame.valid == 0) return frame_failure(frame);
  if ((frame.flags & INGOT_FRAME_CLAMPED) != 0 && warnings != nullptr) {
    warnings->push_back(make_warning("index-clamped", "an index was out of range and was clamped",
                                     artifact_->path()));
  }
  return frame;
}

std::span<const std::byte> Session::value(const SlotView& slot) const {
  const void* data = slot.direction == INGOT_SLOT_STATE ? ingot_slot_data(get(), slot.index)
                                                        : memory_[slot.index].get();
  return {static_cast<const std::byte*>(data), slot.nbytes};
}

}  // namespace ingot::cli
