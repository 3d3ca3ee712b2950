// The mutable half of a replay: arenas, states, address tables. One artifact may have many.
#pragma once

#include "loader/bind_cache.h"
#include "loader/internal.h"

namespace ingot::loader {

// What the caller bound to a slot, reduced to what a frame needs.
struct Bound : Memory {
  uint64_t sequence;
  uint64_t age_us;
  uint64_t timestamp_ns;
  bool has_sequence;
  bool has_age;
  bool has_timestamp;
  bool staged;    // the slot is by pointer, but this memory is only copied
  bool is_bound;  // a slot of no bytes may be bound to null
};

struct Slot {
  IngotIoRecord io;
  uint32_t buffer;
  uint32_t next_buffer;  // kNone unless a state with a second buffer
  bool by_pointer;
  bool has_last_sequence;
  Mapping staging;  // of a slot by pointer, if asked for
  uint64_t last_sequence;
  Bound bound;
  Bound pending;  // while a list of bindings is being checked

  bool copied() const { return !by_pointer || bound.staged; }
};

// A call, ready to be made.
struct PlannedCall {
  IngotProgram program;    // null unless PROGRAM
  uint32_t first_pointer;  // in the pointer table
  uint32_t first_scalar;
  uint32_t outer_range;
  uint32_t parts;  // among workers; 1: the caller alone
  uint16_t kind;
  uint8_t fill_value;
  uint64_t nbytes;  // COPY and FILL
};

// An entry of the pointer table: a view of a buffer, in the order of the arguments.
struct Pointer {
  uint32_t buffer;
  uint32_t next_of_buffer;  // the next entry of the same buffer, or kNone
  uint64_t offset;
};

}  // namespace ingot::loader

struct ingot_instance {
  const ingot_artifact* artifact;
  uint32_t flags;
  ingot::loader::SharedWord held;  // by a call that changes the instance
  ingot_call_hook hook;
  void* hook_user;
  uint64_t generation;
  uint64_t valid_generation;      // of the frame whose outputs may be used, or 0
  uint64_t deadline_nanoseconds;  // 0: none
  ingot::loader::Mapping arenas[INGOT_MAX_ARENAS];
  uint8_t* arena_start[INGOT_MAX_ARENAS];
  ingot::loader::Slot* slots;
  ingot::loader::PlannedCall* calls;
  uint8_t** buffer_address;  // null while the caller's memory is not known
  uint32_t* first_pointer_of_buffer;
  ingot::loader::Pointer* pointers;
  const void** addresses;  // what programs get; parallel to `pointers`
  uint64_t* scalars;
  ingot::loader::Crew* crew;        // null with one worker
  ingot::loader::BindCache* cache;  // null if there is none
};

namespace ingot::loader {

// Keeps other calls out of the instance: those of a hook, and of other threads.
class Hold {
 public:
  explicit Hold(ingot_instance* instance);
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold();

  ingot_status status() const { return status_; }

 private:
  ingot_instance* instance_;
  ingot_status status_ = kOk;
};

// Without the question whether the artifact may run already: for the self-test. bind_sets is taken
// as it is.
ingot_status create_instance(const ingot_artifact& artifact, const ingot_instance_options& options,
                             ingot_instance** instance, ingot_error* error);

// Of a clock that only rises.
uint64_t now_nanoseconds();

// Moves a buffer: every address of it in the tables follows.
void set_buffer(ingot_instance* instance, uint32_t buffer, uint8_t* address);

// Row-major walk over the elements of a slot: visit(element index, byte offset) until it is false.
template <typename Visit>
void for_each_element(const IngotIoRecord& io, Visit visit) {
  uint32_t index[INGOT_MAX_TENSOR_RANK] = {};
  const uint64_t elements = io.logical_nbytes / element_size(io.dtype);
  uint64_t offset = 0;
  for (uint64_t n = 0; n < elements; ++n) {
    if (!visit(n, offset)) return;
    for (uint32_t d = io.rank; d-- > 0;) {
      offset += io.strides[d];
      if (++index[d] < io.shape[d]) break;
      offset -= io.strides[d] * io.shape[d];
      index[d] = 0;
    }
  }
}

bool is_float(uint32_t dtype);

// Value of one element; integers above 2^53 lose their last bits.
double element_value(uint32_t dtype, const uint8_t* at);

}  // namespace ingot::loader
