// Several threads on one frame: the caller offers each worker its part of a call, and does what
// nobody takes. What several threads touch is here and nowhere else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "loader/ingot_loader.h"

namespace ingot::loader {

struct PlannedCall;

// A word that several threads read and write. Every access is ordered with all others: what
// depends on two words (offers and sleepers) then needs no further thought.
class SharedWord {
 public:
  uint32_t get() const { return __atomic_load_n(&value_, __ATOMIC_SEQ_CST); }
  void set(uint32_t value) { __atomic_store_n(&value_, value, __ATOMIC_SEQ_CST); }
  // False, and nothing changed, if it is not `from`.
  bool change(uint32_t from, uint32_t to) {
    return __atomic_compare_exchange_n(&value_, &from, to, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
  }
  void add_one() { __atomic_fetch_add(&value_, 1, __ATOMIC_SEQ_CST); }
  void remove_one() { __atomic_fetch_sub(&value_, 1, __ATOMIC_SEQ_CST); }
  uint32_t* address() { return &value_; }

 private:
  uint32_t value_;
};

// Waiting first spins, then sleeps; ringing costs a system call only if somebody sleeps.
class Bell {
 public:
  // Returns once ready() holds. Whoever makes it hold rings afterwards.
  template <typename Ready>
  void wait(uint64_t spin_nanoseconds, Ready ready);
  void ring();

 private:
  SharedWord rings_;
  SharedWord sleepers_;  // 1: somebody may sleep
};

// Adjacent lines are fetched in pairs.
constexpr size_t kLine = 128;

// Where one worker gets its part of a call.
struct alignas(kLine) Post {
  SharedWord offer;   // Offer
  SharedWord inside;  // 1: a thread is this worker
  int32_t result;     // of the part done last; read when the offer is gone
};

struct alignas(kLine) Crew {
  uint32_t count;  // workers, the caller included
  uint64_t spin_nanoseconds;
  SharedWord stopped;
  const PlannedCall* call;   // of the open offers
  alignas(kLine) Bell work;  // workers wait for offers
  alignas(kLine) Bell done;  // the caller waits for results
  Post* posts;               // [count]; the first one is the caller's, unused
};

// Null without memory.
Crew* create_crew(uint32_t count, uint64_t spin_nanoseconds);
void free_crew(Crew* crew);

// Workers that sleep wake up while the inputs are copied.
inline void begin_frame(Crew* crew) { crew->work.ring(); }

// Runs a call of several parts; the results of all, or-ed. Parts that the caller did for others are
// added to *taken_over.
int32_t run_parts(ingot_instance* instance, const PlannedCall& call, uint32_t* taken_over);

}  // namespace ingot::loader
