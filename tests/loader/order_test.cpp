// Calls in the wrong order: the table of docs/loader.md, refusal by refusal.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "session.h"

namespace ingot::test {
namespace {

class Order : public testing::Test {
 protected:
  void SetUp() override { REQUIRE_RUNNABLE(); }

  ingot_status open(const ingot_policy& policy, std::uint32_t flags = 0,
                    const ingot_host* host = nullptr) {
    const Bytes file = ArtifactBuilder().seal();
    ingot_load_options options{};
    options.flags = flags;
    options.host = host;
    return ingot_open_memory(file.data(), file.size(), &policy, &options, &session_.artifact,
                             &error_);
  }
  ingot_status create() {
    return ingot_instance_create(session_.artifact, nullptr, &session_.instance, &error_);
  }

  const TestPolicy device_;
  Session session_;
  ingot_error error_{};
};

TEST_F(Order, nothing_is_there) {
  ingot_instance* instance = nullptr;
  const ingot_binding binding{};
  ingot_frame frame;
  EXPECT_EQ(ingot_open_memory("", 0, nullptr, nullptr, &session_.artifact, nullptr), 801u);
  EXPECT_EQ(ingot_self_test(nullptr, nullptr, 0, nullptr, nullptr), 801u);
  EXPECT_EQ(ingot_instance_create(nullptr, nullptr, &instance, nullptr), 801u);
  EXPECT_EQ(ingot_bind(nullptr, &binding, 1, &error_), 801u);
  EXPECT_EQ(error_.number, 801u);
  EXPECT_EQ(ingot_unbind_all(nullptr), 801u);
  EXPECT_EQ(ingot_invalidate(nullptr, nullptr, 0), 801u);
  EXPECT_EQ(ingot_run(nullptr, &frame), 801u);
  EXPECT_EQ(frame.status, 801u);
  EXPECT_EQ(frame.accepted, 0u);
  EXPECT_EQ(ingot_reset(nullptr), 801u);
  EXPECT_EQ(ingot_set_state(nullptr, 0, "", 0), 801u);
  EXPECT_EQ(ingot_work(nullptr, 1), 801u);
  EXPECT_EQ(ingot_slot_data(nullptr, 0), nullptr);
  EXPECT_EQ(ingot_outputs_valid(nullptr, 1), 0u);
  EXPECT_EQ(ingot_workers_inside(nullptr), 0u);
  ingot_stop_work(nullptr);
  ingot_set_call_hook(nullptr, nullptr, nullptr);
  EXPECT_EQ(ingot_instance_destroy(nullptr), 0u);
  EXPECT_EQ(ingot_close(nullptr), 0u);
}

TEST_F(Order, an_artifact_that_is_only_verified_can_be_looked_at) {
  ASSERT_EQ(open(device_.policy, INGOT_LOAD_STOP_AT_VERIFIED), 0u);
  ingot_io_info io;
  ingot_binding binding;
  EXPECT_EQ(ingot_io_describe(session_.artifact, 0, &io), 801u);
  EXPECT_EQ(ingot_binding_expected(session_.artifact, 0, &binding), 811u);
  EXPECT_EQ(ingot_self_test(session_.artifact, nullptr, 0, nullptr, nullptr), 801u);
  EXPECT_EQ(create(), 801u);
  EXPECT_EQ(session_.instance, nullptr);
}

TEST_F(Order, no_instance_before_the_self_test) {
  ASSERT_EQ(open(device_.policy), 0u);
  EXPECT_EQ(create(), 801u);
  EXPECT_EQ(error_.found, INGOT_STATE_COMPATIBLE + 0u);
  EXPECT_EQ(error_.allowed, INGOT_STATE_SELF_TESTED + 0u);
  ASSERT_EQ(ingot_self_test(session_.artifact, nullptr, 0, nullptr, nullptr), 0u);
  EXPECT_EQ(create(), 0u);
  EXPECT_EQ(ingot_self_test(session_.artifact, nullptr, 0, nullptr, nullptr), 0u)
      << "again, beside an instance: allowed";
}

TEST_F(Order, an_artifact_of_another_machine_never_runs) {
  ingot_host host{};
  host.arch = INGOT_ARCH_AARCH64;
  host.page_size = 4096;
  host.features[0] = INGOT_AARCH64_ASIMD;
  ASSERT_EQ(open(Session::lenient(device_), 0, &host), 0u);
  EXPECT_EQ(ingot_self_test(session_.artifact, nullptr, 0, nullptr, nullptr), 801u);
  EXPECT_EQ(create(), 801u);
}

TEST_F(Order, an_artifact_with_instances_is_not_closed) {
  ASSERT_EQ(session_.start(ArtifactBuilder()), 0u);
  ingot_instance* second = nullptr;
  ASSERT_EQ(ingot_instance_create(session_.artifact, nullptr, &second, nullptr), 0u);
  EXPECT_EQ(ingot_close(session_.artifact), 843u);
  EXPECT_EQ(ingot_instance_destroy(second), 0u);
  EXPECT_EQ(ingot_close(session_.artifact), 843u);
  EXPECT_EQ(ingot_run(session_.instance, nullptr), 0u) << "nothing was released";
  EXPECT_EQ(ingot_instance_destroy(session_.instance), 0u);
  session_.instance = nullptr;
  EXPECT_EQ(ingot_close(session_.artifact), 0u);
  session_.artifact = nullptr;
}

TEST_F(Order, a_frame_needs_all_its_memory) {
  ASSERT_EQ(session_.open(ArtifactBuilder()), 0u);
  EXPECT_EQ(ingot_run(session_.instance, nullptr), 810u);
  ASSERT_EQ(session_.bind_all(), 0u);
  EXPECT_EQ(ingot_run(session_.instance, nullptr), 0u);
  ASSERT_EQ(ingot_unbind_all(session_.instance), 0u);
  EXPECT_EQ(ingot_run(session_.instance, nullptr), 810u);
  ASSERT_EQ(session_.bind_all(), 0u);
  ASSERT_EQ(ingot_invalidate(session_.instance, session_.frame, 1), 0u);
  EXPECT_EQ(ingot_run(session_.instance, nullptr), 810u);
}

// Everything that changes an instance, with the number that it must give.
void expect_refused(Session& session, ingot_status number) {
  const ingot_binding binding = session.expected(2);
  const std::array<float, 16> state{};
  ingot_frame frame;
  EXPECT_EQ(ingot_bind(session.instance, &binding, 1, nullptr), number);
  EXPECT_EQ(ingot_unbind_all(session.instance), number);
  EXPECT_EQ(ingot_invalidate(session.instance, nullptr, 0), number);
  EXPECT_EQ(ingot_run(session.instance, &frame), number);
  EXPECT_EQ(frame.accepted, 0u);
  EXPECT_EQ(frame.generation, 0u);
  EXPECT_EQ(ingot_reset(session.instance), number);
  EXPECT_EQ(ingot_set_state(session.instance, 3, state.data(), 64), number);
  EXPECT_EQ(ingot_instance_destroy(session.instance), number);
  EXPECT_EQ(ingot_close(session.artifact), number);
}

struct Visit {
  std::function<void(std::uint32_t)> inside;
};

void visit(void* user, std::uint32_t call, std::uint64_t) {
  static_cast<Visit*>(user)->inside(call);
}

TEST_F(Order, a_frame_keeps_all_other_calls_out) {
  Session other;
  ASSERT_EQ(session_.start(ArtifactBuilder()), 0u);
  ASSERT_EQ(other.start(ArtifactBuilder()), 0u);
  std::uint32_t calls = 0;
  Visit hook{[&](std::uint32_t) {
    ++calls;
    expect_refused(session_, 843);
    EXPECT_EQ(ingot_slot_data(session_.instance, 2), session_.out.data()) << "looking is allowed";
    EXPECT_EQ(ingot_run(other.instance, nullptr), 0u) << "another instance is not concerned";
  }};
  ingot_set_call_hook(session_.instance, visit, &hook);
  ingot_frame frame;
  EXPECT_EQ(ingot_run(session_.instance, &frame), 0u);
  EXPECT_EQ(calls, 6u);
  EXPECT_EQ(frame.valid, 1u);
  EXPECT_EQ(session_.out[3], static_cast<float>(session_.frame[3])) << "nothing was disturbed";
  ingot_set_call_hook(session_.instance, nullptr, nullptr);
  EXPECT_EQ(ingot_reset(session_.instance), 0u) << "and it is over afterwards";
}

TEST_F(Order, a_frame_keeps_other_threads_out) {
  ASSERT_EQ(session_.start(ArtifactBuilder()), 0u);
  Visit hook{[&](std::uint32_t call) {
    if (call == 2) std::thread([&] { expect_refused(session_, 843); }).join();
  }};
  ingot_set_call_hook(session_.instance, visit, &hook);
  EXPECT_EQ(ingot_run(session_.instance, nullptr), 0u);
}

TEST_F(Order, a_hook_may_be_taken_away_inside_of_it) {
  ASSERT_EQ(session_.start(ArtifactBuilder()), 0u);
  std::uint32_t calls = 0;
  Visit hook{[&](std::uint32_t) {
    ++calls;
    ingot_set_call_hook(session_.instance, nullptr, nullptr);
  }};
  ingot_set_call_hook(session_.instance, visit, &hook);
  EXPECT_EQ(ingot_run(session_.instance, nullptr), 0u);
  EXPECT_EQ(calls, 1u);
}

TEST_F(Order, outputs_that_were_kept_too_long_are_noticed) {
  ASSERT_EQ(session_.start(ArtifactBuilder()), 0u);
  EXPECT_EQ(ingot_outputs_valid(session_.instance, 0), 0u) << "there was no frame";
  ingot_frame first;
  ingot_frame second;
  ASSERT_EQ(ingot_run(session_.instance, &first), 0u);
  EXPECT_EQ(ingot_outputs_valid(session_.instance, first.generation), 1u);
  const auto copy = session_.out;
  ASSERT_EQ(ingot_run(session_.instance, &second), 0u);
  EXPECT_NE(session_.out, copy) << "the caller's own memory was written again";
  EXPECT_EQ(ingot_outputs_valid(session_.instance, first.generation), 0u);
  EXPECT_EQ(ingot_outputs_valid(session_.instance, second.generation), 1u);
  ASSERT_EQ(ingot_reset(session_.instance), 0u);
  EXPECT_EQ(ingot_outputs_valid(session_.instance, second.generation), 0u);
  ASSERT_EQ(ingot_run(session_.instance, &first), 0u);
  ASSERT_EQ(ingot_unbind_all(session_.instance), 0u);
  ASSERT_EQ(ingot_run(session_.instance, &second), 810u);
  EXPECT_EQ(ingot_outputs_valid(session_.instance, first.generation), 0u);
  EXPECT_EQ(ingot_outputs_valid(session_.instance, second.generation), 0u) << "it was refused";
}

}  // namespace
}  // namespace ingot::test
