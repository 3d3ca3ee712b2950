// Binding: everything the caller states about its memory is compared with the artifact.
#include "loader/instance.h"

namespace ingot::loader {

namespace {

// One binding against its slot.
class BindingCheck {
 public:
  BindingCheck(const ingot_instance& instance, const ingot_binding& binding, uint32_t slot,
               ingot_error* error)
      : tables_(instance.artifact->tables),
        slot_(instance.slots[slot]),
        binding_(binding),
        index_(slot),
        error_(error) {}

  ingot_status run();
  // What a remembered list does not hold.
  ingot_status form() const;

 private:
  ingot_status fail(ingot_status number, uint64_t found, uint64_t allowed) const;
  ingot_status check_shape() const;
  ingot_status check_layout() const;
  ingot_status check_address() const;

  const Tables& tables_;
  const Slot& slot_;
  const ingot_binding& binding_;
  uint32_t index_;
  ingot_error* error_;
};

ingot_status BindingCheck::fail(ingot_status number, uint64_t found, uint64_t allowed) const {
  Place{error_, 0, tables_.variant, kNone, kNone}.fail(number, kNone, found, allowed);
  if (error_ != nullptr) error_->slot = index_;
  return number;
}

ingot_status BindingCheck::check_shape() const {
  const IngotIoRecord& io = slot_.io;
  if (binding_.dtype != io.dtype) return fail(INGOT_E_ARG_DTYPE, binding_.dtype, io.dtype);
  if (binding_.rank != io.rank) return fail(INGOT_E_ARG_RANK, binding_.rank, io.rank);
  for (uint32_t i = 0; i < io.rank; ++i) {
    if (binding_.shape[i] != io.shape[i]) {
      return fail(INGOT_E_ARG_SHAPE, binding_.shape[i], io.shape[i]);
    }
  }
  for (uint32_t i = 0; i < io.rank; ++i) {
    if (binding_.strides[i] != io.strides[i]) {
      return fail(INGOT_E_ARG_STRIDE, binding_.strides[i], io.strides[i]);
    }
  }
  return kOk;
}

// A frame of another layout with enough bytes would give a sheared picture.
ingot_status BindingCheck::check_layout() const {
  if (slot_.io.camera == kNone) {
    return binding_.layout == nullptr ? kOk : fail(INGOT_E_ARG_LAYOUT, 1, 0);
  }
  const ingot_layout built = layout_of(tables_.cameras[slot_.io.camera]);
  const ingot_layout given = binding_.layout != nullptr ? *binding_.layout : ingot_layout{};
  if (same_layout(built, given)) return kOk;
  fail(INGOT_E_ARG_LAYOUT, 0, 0);
  if (error_ != nullptr) {
    store_layout(error_->layout_found, given);
    store_layout(error_->layout_allowed, built);
  }
  return INGOT_E_ARG_LAYOUT;
}

ingot_status BindingCheck::check_address() const {
  const IngotIoRecord& io = slot_.io;
  const bool frame = io.camera != kNone;
  if (frame ? binding_.nbytes < io.nbytes : binding_.nbytes != io.nbytes) {
    return fail(INGOT_E_ARG_LENGTH, binding_.nbytes, io.nbytes);
  }
  const auto address = reinterpret_cast<uintptr_t>(binding_.data);
  if (binding_.nbytes > UINTPTR_MAX - address) {
    return fail(INGOT_E_ARG_LENGTH, binding_.nbytes, UINTPTR_MAX - address);
  }
  const uint64_t alignment = slot_.by_pointer
                                 ? uint64_t{1} << tables_.buffers[slot_.buffer].align_log2
                                 : element_size(io.dtype);
  if ((address & (alignment - 1)) != 0) {
    return fail(INGOT_E_ARG_ALIGNMENT, address & (alignment - 1), alignment);
  }
  return kOk;
}

ingot_status BindingCheck::run() {
  if (binding_.data == nullptr && slot_.io.nbytes > 0) return fail(INGOT_E_ARG_NULL, 0, 0);
  const bool can_copy = !slot_.by_pointer || slot_.staging.address != nullptr;
  const uint32_t last = can_copy ? INGOT_MEMORY_NON_COHERENT : INGOT_MEMORY_HOST;
  if (binding_.memory > last) return fail(INGOT_E_ARG_MEMORY, binding_.memory, last);
  INGOT_RETURN_IF(check_shape());
  INGOT_RETURN_IF(check_address());
  return check_layout();
}

ingot_status BindingCheck::form() const {
  INGOT_RETURN_IF(check_shape());
  return check_layout();
}

uint32_t find_slot(const ingot_instance& instance, const ingot_binding& binding) {
  const uint32_t slot =
      binding.name != nullptr ? ingot_find_io(instance.artifact, binding.name) : binding.slot;
  if (slot >= instance.artifact->tables.io.count) return kNone;
  // States belong to the instance.
  return instance.slots[slot].io.direction == INGOT_DIRECTION_STATE ? kNone : slot;
}

struct Range {
  uintptr_t begin;
  uintptr_t end;

  // What is empty meets nothing, wherever it is.
  bool meets(const Range& other) const {
    const uintptr_t first = begin > other.begin ? begin : other.begin;
    return first < end && first < other.end;
  }
};

Range range_of(const void* data, uint64_t nbytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  return {begin, begin + static_cast<uintptr_t>(nbytes)};
}

Range range_of(const Mapping& mapping) { return range_of(mapping.address, mapping.nbytes); }
Range range_of(const Memory& memory) { return range_of(memory.data, memory.nbytes); }

// The same bytes of an older mapping.
bool outdated(const Memory& older, const Memory& newer) {
  return older.generation != 0 && newer.generation > older.generation &&
         range_of(older).meets(range_of(newer));
}

// In the memory that the caller gives up; all of it if that has no address.
bool given_up(const Memory& known, const Memory& gone) {
  return gone.data == nullptr || range_of(known).meets(range_of(gone));
}

// Inputs may share memory. Nothing may share memory with an output or with the instance.
ingot_status check_overlaps(const ingot_instance& instance, const Place& place) {
  const ingot_artifact& artifact = *instance.artifact;
  const Tables& tables = artifact.tables;
  const auto fail = [&](ingot_status number, uint32_t slot, uint32_t other) {
    place.fail(number, kNone, other, 0);
    if (place.error != nullptr) place.error->slot = slot;
    return number;
  };
  for (uint32_t i = 0; i < tables.io.count; ++i) {
    const Slot& slot = instance.slots[i];
    if (!slot.pending.is_bound || slot.io.nbytes == 0) continue;
    const Range range = range_of(slot.pending.data, slot.io.nbytes);
    for (uint32_t n = 0; n < tables.arenas.count; ++n) {
      if (range.meets(range_of(instance.arenas[n]))) return fail(INGOT_E_ARG_OVERLAP, i, kNone);
    }
    if (slot.io.direction != INGOT_DIRECTION_OUTPUT) continue;
    if (range.meets(range_of(artifact.copy)) || range.meets(range_of(artifact.code))) {
      return fail(INGOT_E_ARG_MEMORY, i, kNone);
    }
    for (uint32_t n = 0; n < tables.io.count; ++n) {
      const Slot& other = instance.slots[n];
      if (n == i || !other.pending.is_bound) continue;
      if (range.meets(range_of(other.pending.data, other.io.nbytes))) {
        return fail(INGOT_E_ARG_OVERLAP, i, n);
      }
    }
  }
  return kOk;
}

void take(Slot& slot, const ingot_binding& binding) {
  Bound& to = slot.pending;
  to.data = static_cast<uint8_t*>(binding.data);
  to.nbytes = binding.nbytes;
  to.generation = binding.generation;
  to.sequence = binding.sequence;
  to.age_us = binding.age_us;
  to.timestamp_ns = binding.timestamp_ns;
  to.has_sequence = binding.has_sequence != 0;
  to.has_age = binding.has_age != 0;
  to.has_timestamp = binding.has_timestamp != 0;
  to.staged = slot.by_pointer && binding.memory == INGOT_MEMORY_NON_COHERENT;
  to.is_bound = true;
}

ingot_status take_binding(ingot_instance* instance, const ingot_binding* list, uint32_t n,
                          const Place& place) {
  const ingot_binding& binding = list[n];
  const uint32_t index = find_slot(*instance, binding);
  if (index == kNone) return place.fail(INGOT_E_ARG_UNKNOWN, kNone, n, 0);
  for (uint32_t i = 0; i < n; ++i) {
    if (find_slot(*instance, list[i]) != index) continue;
    place.fail(INGOT_E_ARG_DUPLICATE, kNone, n, i);
    if (place.error != nullptr) place.error->slot = index;
    return INGOT_E_ARG_DUPLICATE;
  }
  INGOT_RETURN_IF(BindingCheck(*instance, binding, index, place.error).run());
  take(instance->slots[index], binding);
  return kOk;
}

// No slot may stand for a mapping of which another slot, or the cache, knows a newer one.
ingot_status check_generations(const ingot_instance& instance, const Place& place) {
  const uint32_t slots = instance.artifact->tables.io.count;
  const BindCache* cache = instance.cache;
  for (uint32_t i = 0; i < slots; ++i) {
    const Memory& mine = instance.slots[i].pending;
    const Memory* newer = nullptr;
    for (uint32_t k = 0; k < slots; ++k) {
      if (outdated(mine, instance.slots[k].pending)) newer = &instance.slots[k].pending;
    }
    for (uint32_t k = 0; cache != nullptr && mine.generation != 0 && k < cache->info.capacity;
         ++k) {
      const KnownSet& set = cache->sets[k];
      for (uint32_t n = 0; set.used != 0 && n < set.count; ++n) {
        if (outdated(mine, set.bindings[n])) newer = &set.bindings[n];
      }
    }
    if (newer == nullptr) continue;
    place.fail(INGOT_E_ARG_GENERATION, kNone, mine.generation, newer->generation);
    if (place.error != nullptr) place.error->slot = i;
    return INGOT_E_ARG_GENERATION;
  }
  return kOk;
}

// What is pending for a slot holds from now on.
void settle(ingot_instance* instance, Slot& slot) {
  slot.bound = slot.pending;
  if (!slot.by_pointer) return;
  uint8_t* address = slot.bound.staged ? slot.staging.address : slot.bound.data;
  if (instance->buffer_address[slot.buffer] != address) {
    set_buffer(instance, slot.buffer, address);
  }
}

void commit(ingot_instance* instance) {
  for (uint32_t i = 0; i < instance->artifact->tables.io.count; ++i) {
    settle(instance, instance->slots[i]);
  }
}

// Nothing is about to change.
void clear_pending(ingot_instance* instance) {
  for (uint32_t i = 0; i < instance->artifact->tables.io.count; ++i) {
    instance->slots[i].pending = instance->slots[i].bound;
  }
}

void unbind(ingot_instance* instance, const Memory& gone) {
  clear_pending(instance);
  for (uint32_t i = 0; i < instance->artifact->tables.io.count; ++i) {
    Slot& slot = instance->slots[i];
    if (given_up(slot.bound, gone)) slot.pending = {};
  }
  commit(instance);
}

bool names_slot(const ingot_instance& instance, const ingot_binding& binding, uint32_t slot) {
  if (binding.name == nullptr) return binding.slot == slot;
  const IngotName name = instance.slots[slot].io.name;
  return std::strcmp(binding.name, name_of(*instance.artifact, name)) == 0;
}

// Takes the list if it equals the set in all that a hit promises.
bool take_known(ingot_instance* instance, const KnownSet& set, const ingot_binding* list) {
  for (uint32_t n = 0; n < set.count; ++n) {
    const KnownBinding& known = set.bindings[n];
    const ingot_binding& given = list[n];
    if (given.data != known.data || given.nbytes != known.nbytes ||
        given.generation != known.generation || given.memory != known.memory ||
        !names_slot(*instance, given, known.slot) ||
        BindingCheck(*instance, given, known.slot, nullptr).form() != kOk) {
      return false;
    }
  }
  // After a frame little of the instance is in a cache: only what must be is looked at.
  for (uint32_t i = 0; i < instance->artifact->tables.io.count; ++i) {
    if (instance->slots[i].bound.data == set.addresses[i]) continue;
    uint32_t n = 0;
    while (n < set.count && set.bindings[n].slot != i) ++n;
    if (n == set.count) return false;  // not in the list, and bound elsewhere by now
  }
  for (uint32_t n = 0; n < set.count; ++n) {
    Slot& slot = instance->slots[set.bindings[n].slot];
    take(slot, list[n]);
    settle(instance, slot);
  }
  return true;
}

bool take_from_cache(ingot_instance* instance, const ingot_binding* list, uint32_t count,
                     uint64_t key) {
  BindCache& cache = *instance->cache;
  for (uint32_t i = 0; i < cache.info.capacity; ++i) {
    KnownSet& set = cache.sets[i];
    if (set.used == 0 || set.key != key || set.count != count) continue;
    if (!take_known(instance, set, list)) continue;
    set.used = ++cache.clock;
    ++cache.info.hits;
    return true;
  }
  ++cache.info.misses;
  return false;
}

// After commit().
void remember(ingot_instance* instance, const ingot_binding* list, uint32_t count, uint64_t key) {
  BindCache& cache = *instance->cache;
  for (uint32_t n = 0; n < count; ++n) {
    forget(&cache, outdated, instance->slots[find_slot(*instance, list[n])].bound);
  }
  KnownSet& set = *make_room(&cache);
  set.key = key;
  set.used = ++cache.clock;
  set.count = count;
  ++cache.info.used;
  for (uint32_t n = 0; n < count; ++n) {
    const uint32_t slot = find_slot(*instance, list[n]);
    static_cast<Memory&>(set.bindings[n]) = instance->slots[slot].bound;
    set.bindings[n].slot = slot;
    set.bindings[n].memory = list[n].memory;
  }
  for (uint32_t i = 0; i < cache.slots; ++i) set.addresses[i] = instance->slots[i].bound.data;
}

}  // namespace

}  // namespace ingot::loader

using namespace ingot::loader;

ingot_status ingot_bind(ingot_instance* instance, const ingot_binding* bindings, uint32_t count,
                        ingot_error* error) {
  clear_error(error);
  const Hold hold(instance);
  Place place = {error, 0, kNone, kNone, kNone};
  if (hold.status() != kOk) return place.fail(hold.status());
  place.variant = instance->artifact->tables.variant;
  if (bindings == nullptr && count > 0) return place.fail(INGOT_E_ARG_NULL);
  if (count == 0) return kOk;
  const bool cached = instance->cache != nullptr;
  const uint64_t key = cached ? key_of(bindings, count) : 0;
  if (cached && take_from_cache(instance, bindings, count, key)) return kOk;
  clear_pending(instance);
  for (uint32_t n = 0; n < count; ++n) INGOT_RETURN_IF(take_binding(instance, bindings, n, place));
  INGOT_RETURN_IF(check_overlaps(*instance, place));
  INGOT_RETURN_IF(check_generations(*instance, place));
  commit(instance);
  if (cached) remember(instance, bindings, count, key);
  return kOk;
}

ingot_status ingot_unbind_all(ingot_instance* instance) {
  const Hold hold(instance);
  INGOT_RETURN_IF(hold.status());
  unbind(instance, {});
  return kOk;
}

ingot_status ingot_invalidate(ingot_instance* instance, const void* address, uint64_t nbytes) {
  const Hold hold(instance);
  INGOT_RETURN_IF(hold.status());
  const uint64_t room = UINTPTR_MAX - reinterpret_cast<uintptr_t>(address);
  const Memory gone = {static_cast<uint8_t*>(const_cast<void*>(address)),
                       nbytes < room ? nbytes : room, 0};
  unbind(instance, gone);
  forget(instance->cache, given_up, gone);
  return kOk;
}

void ingot_bind_describe(const ingot_instance* instance, ingot_bind_info* info) {
  *info = {};
  if (instance != nullptr && instance->cache != nullptr) *info = instance->cache->info;
}

ingot_status ingot_binding_expected(const ingot_artifact* artifact, uint32_t slot,
                                    ingot_binding* binding) {
  std::memset(binding, 0, sizeof *binding);
  if (slot >= artifact->tables.io.count) return INGOT_E_ARG_UNKNOWN;
  const IngotIoRecord& io = artifact->tables.io[slot];
  binding->slot = slot;
  binding->dtype = io.dtype;
  binding->nbytes = io.nbytes;
  binding->rank = io.rank;
  std::memcpy(binding->shape, io.shape, sizeof io.shape);
  std::memcpy(binding->strides, io.strides, sizeof io.strides);
  return kOk;
}
