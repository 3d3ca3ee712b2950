#include "loader/workers.h"

#include <cstdlib>

#include "loader/instance.h"

namespace ingot::loader {

namespace {

// States of an offer. Only the caller opens one, and only after it wrote what the offer is about;
// whoever changes it from open has the part, so that each part is done once.
enum Offer : uint32_t { kClosed = 0, kOpen = 1, kTaken = 2 };

// Turns between two looks at the clock.
constexpr uint32_t kSpinTurns = 64;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  synchronize_context();  // about as long; `yield` is nothing on most cores
#endif
}

template <typename Ready>
bool spin(uint64_t nanoseconds, Ready ready) {
  uint64_t end = 0;
  for (;;) {
    for (uint32_t i = 0; i < kSpinTurns; ++i) {
      if (ready()) return true;
      pause();
    }
    const uint64_t now = now_nanoseconds();
    if (end == 0) end = now + nanoseconds;
    if (now >= end) return ready();
  }
}

int32_t run_part(const ingot_instance& instance, const PlannedCall& call, uint32_t part,
                 uint32_t worker) {
  const uint32_t first = call.outer_range * part / call.parts;
  const uint32_t last = call.outer_range * (part + 1) / call.parts;
  return call.program(instance.addresses + call.first_pointer, instance.scalars + call.first_scalar,
                      first, last, worker);
}

void serve(ingot_instance* instance, uint32_t worker) {
  Crew& crew = *instance->crew;
  Post& post = crew.posts[worker];
  while (crew.stopped.get() == 0) {
    if (post.offer.change(kOpen, kTaken)) {
      post.result = run_part(*instance, *crew.call, worker, worker);
      post.offer.set(kClosed);
      crew.done.ring();
    }
    crew.work.wait(crew.spin_nanoseconds,
                   [&] { return post.offer.get() == kOpen || crew.stopped.get() != 0; });
  }
}

}  // namespace

// The order of a sleeper: rings, sleepers, ready. That of a ringer: what makes ready() true,
// sleepers, rings. So either the sleeper sees that it is ready, or the ringer sees a sleeper, and
// then `rings` is not what the sleeper read.
template <typename Ready>
void Bell::wait(uint64_t spin_nanoseconds, Ready ready) {
  while (!spin(spin_nanoseconds, ready)) {
    const uint32_t seen = rings_.get();
    sleepers_.set(1);
    if (ready()) return;
    sleep_while(rings_.address(), seen);
  }
}

void Bell::ring() {
  if (!sleepers_.change(1, 0)) return;
  rings_.add_one();
  wake_all(rings_.address());
}

Crew* create_crew(uint32_t count, uint64_t spin_nanoseconds) {
  void* memory = nullptr;
  const size_t nbytes = sizeof(Crew) + count * sizeof(Post);
  if (posix_memalign(&memory, kLine, nbytes) != 0) return nullptr;
  std::memset(memory, 0, nbytes);
  auto* crew = static_cast<Crew*>(memory);
  crew->count = count;
  crew->spin_nanoseconds = spin_nanoseconds;
  crew->posts = reinterpret_cast<Post*>(crew + 1);
  return crew;
}

void free_crew(Crew* crew) { std::free(crew); }

int32_t run_parts(ingot_instance* instance, const PlannedCall& call, uint32_t* taken_over) {
  Crew& crew = *instance->crew;
  crew.call = &call;
  for (uint32_t i = 1; i < call.parts; ++i) crew.posts[i].offer.set(kOpen);
  crew.work.ring();
  int32_t result = run_part(*instance, call, 0, 0);
  // Nobody is waited for who has not begun: a worker that is late, gone or was never there costs
  // its time and nothing else.
  for (uint32_t i = 1; i < call.parts; ++i) {
    if (!crew.posts[i].offer.change(kOpen, kClosed)) continue;
    result |= run_part(*instance, call, i, 0);
    crew.posts[i].result = 0;
    ++*taken_over;
  }
  for (uint32_t i = 1; i < call.parts; ++i) {
    Post& post = crew.posts[i];
    crew.done.wait(crew.spin_nanoseconds, [&] { return post.offer.get() == kClosed; });
    result |= post.result;
  }
  return result;
}

}  // namespace ingot::loader

using namespace ingot::loader;

ingot_status ingot_work(ingot_instance* instance, uint32_t worker) {
  if (instance == nullptr) return INGOT_E_STATE;
  Crew* crew = instance->crew;
  if (crew == nullptr || worker == 0 || worker >= crew->count) return INGOT_E_WORKER_NUMBER;
  if (!crew->posts[worker].inside.change(0, 1)) return INGOT_E_WORKER_TAKEN;
  // The code was made visible to all cores when it was mapped, before this thread came in.
  synchronize_context();
  const uint32_t host_control = read_fp_control();
  write_fp_control(instance->artifact->tables.record->fp_control);
  serve(instance, worker);
  write_fp_control(host_control);
  crew->posts[worker].inside.set(0);  // the last access: the instance may be destroyed now
  return kOk;
}

void ingot_stop_work(ingot_instance* instance) {
  Crew* crew = instance != nullptr ? instance->crew : nullptr;
  if (crew == nullptr) return;
  crew->stopped.set(1);
  crew->work.ring();
}

uint32_t ingot_workers_inside(const ingot_instance* instance) {
  uint32_t inside = 0;
  const Crew* crew = instance != nullptr ? instance->crew : nullptr;
  for (uint32_t i = 1; crew != nullptr && i < crew->count; ++i)
    inside += crew->posts[i].inside.get();
  return inside;
}
