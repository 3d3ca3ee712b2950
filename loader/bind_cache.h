// Lists of bindings that were found good. A ring of buffers is checked once for each buffer.
#pragma once

#include "loader/internal.h"

namespace ingot::loader {

// Memory of the caller, as a binding states it.
struct Memory {
  uint8_t* data;
  uint64_t nbytes;
  uint64_t generation;
};

// A binding of a remembered list, without what the artifact says itself (element type, shape,
// strides, layout): a good binding says the same.
struct KnownBinding : Memory {
  uint32_t slot;
  uint32_t memory;
};

struct KnownSet {
  uint64_t key;   // of addresses and generations: most other lists differ in it
  uint64_t used;  // when it was asked for last; 0: the entry is free
  uint32_t count;
  KnownBinding* bindings;  // [slots], of which `count` are filled
  uint8_t** addresses;     // [slots]: where every slot is bound once the list is taken
};

struct BindCache {
  KnownSet* sets;  // [info.capacity]
  uint32_t slots;
  uint64_t clock;
  ingot_bind_info info;
};

// One piece of memory, to be released with std::free; null without memory.
BindCache* create_bind_cache(uint32_t capacity, uint32_t slots);

// What both sides of a comparison are made of.
uint64_t key_of(const ingot_binding* list, uint32_t count);

// The entry that makes room for a new set: `used` is 0, nothing else is filled.
KnownSet* make_room(BindCache* cache);

// Forgets the sets with a binding for which is_gone(its memory, other) holds.
void forget(BindCache* cache, bool (*is_gone)(const Memory& known, const Memory& other),
            const Memory& other);

}  // namespace ingot::loader
