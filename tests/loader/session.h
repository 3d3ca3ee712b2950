// An opened good artifact with bound memory, for tests that run frames.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "artifact_builder.h"

namespace ingot::test {

struct Session {
  ingot_artifact* artifact = nullptr;
  ingot_instance* instance = nullptr;
  std::uint8_t* frame = nullptr;  // 256-aligned, 4096 bytes
  Bytes packed = Bytes(512);
  std::array<float, 16> out{};
  ingot_layout layout = {32, 16, 64, 32, 16, 0, 2048};

  Session() {
    frame = static_cast<std::uint8_t*>(std::aligned_alloc(4096, 4096));
    for (int i = 0; i < 4096; ++i) frame[i] = static_cast<std::uint8_t>(i * 3 + 1);
    const float identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    std::memcpy(packed.data(), identity, sizeof identity);
  }
  ~Session() {
    ingot_instance_destroy(instance);
    ingot_close(artifact);
    std::free(frame);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  static ingot_policy lenient(const TestPolicy& device) {
    ingot_policy policy = device.policy;
    policy.run_without_self_test = 1;
    return policy;
  }

  ingot_status open(const ArtifactBuilder& builder, std::uint32_t load_flags = 0,
                    std::uint32_t run_flags = 0, std::uint32_t workers = 0,
                    std::uint32_t spin_us = 0) {
    const TestPolicy device;
    const ingot_policy policy = lenient(device);
    const Bytes file = builder.seal();
    ingot_load_options options{};
    options.flags = load_flags;
    ingot_error error;
    ingot_status status =
        ingot_open_memory(file.data(), file.size(), &policy, &options, &artifact, &error);
    if (status != 0) return status;
    ingot_instance_options run{};
    run.flags = run_flags;
    run.workers = workers;
    run.spin_us = spin_us;
    return ingot_instance_create(artifact, &run, &instance, &error);
  }

  ingot_binding expected(std::uint32_t slot) {
    ingot_binding binding;
    EXPECT_EQ(ingot_binding_expected(artifact, slot, &binding), 0u);
    if (slot == 0) {
      binding.data = frame;
      binding.layout = &layout;
    }
    if (slot == 1) binding.data = packed.data();
    if (slot == 2) binding.data = out.data();
    return binding;
  }

  ingot_status bind_all(ingot_error* error = nullptr) {
    const ingot_binding list[3] = {expected(0), expected(1), expected(2)};
    return ingot_bind(instance, list, 3, error);
  }

  ingot_status start(const ArtifactBuilder& builder, std::uint32_t load_flags = 0,
                     std::uint32_t run_flags = 0, std::uint32_t workers = 0,
                     std::uint32_t spin_us = 0) {
    const ingot_status status = open(builder, load_flags, run_flags, workers, spin_us);
    return status != 0 ? status : bind_all();
  }
};

// The test programs are x86-64 code without extensions.
#define REQUIRE_RUNNABLE() \
  if (!kCanRun) GTEST_SKIP() << "no test programs for this architecture"

}  // namespace ingot::test
