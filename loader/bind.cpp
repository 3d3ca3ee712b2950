// Binding: everything the caller states about its memory is compared with the artifact.
#include "loader/instance.h"

namespace ingot::loader {

namespace {

struct Layout {
  uint64_t number[6];
};

Layout numbers_of(const IngotCameraRecord& c) {
  return {{c.width, c.height, c.stride, c.y_height, c.uv_height, c.uv_offset}};
}

Layout numbers_of(const ingot_layout& l) {
  return {{l.width, l.height, l.stride, l.y_height, l.uv_height, l.uv_offset}};
}

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
  const Layout built = numbers_of(tables_.cameras[slot_.io.camera]);
  const Layout given = binding_.layout != nullptr ? numbers_of(*binding_.layout) : Layout{};
  if (std::memcmp(&built, &given, sizeof built) == 0) return kOk;
  fail(INGOT_E_ARG_LAYOUT, 0, 0);
  if (error_ != nullptr) {
    std::memcpy(error_->layout_found, &given, sizeof given);
    std::memcpy(error_->layout_allowed, &built, sizeof built);
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
  const uint32_t last = slot_.by_pointer ? INGOT_MEMORY_HOST : INGOT_MEMORY_NON_COHERENT;
  if (binding_.memory > last) return fail(INGOT_E_ARG_MEMORY, binding_.memory, last);
  INGOT_RETURN_IF(check_shape());
  INGOT_RETURN_IF(check_address());
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

  bool meets(const Range& other) const { return begin < other.end && other.begin < end; }
};

Range range_of(const void* data, uint64_t nbytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  return {begin, begin + static_cast<uintptr_t>(nbytes)};
}

Range range_of(const Mapping& mapping) { return range_of(mapping.address, mapping.nbytes); }

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
  instance->slots[index].pending = {
      static_cast<uint8_t*>(binding.data), binding.sequence,     binding.age_us,
      binding.has_sequence != 0,           binding.has_age != 0, true};
  return kOk;
}

void commit(ingot_instance* instance) {
  for (uint32_t i = 0; i < instance->artifact->tables.io.count; ++i) {
    Slot& slot = instance->slots[i];
    const bool moved = slot.bound.data != slot.pending.data;
    slot.bound = slot.pending;
    if (slot.by_pointer && moved) set_buffer(instance, slot.buffer, slot.bound.data);
  }
}

}  // namespace

}  // namespace ingot::loader

using namespace ingot::loader;

ingot_status ingot_bind(ingot_instance* instance, const ingot_binding* bindings, uint32_t count,
                        ingot_error* error) {
  clear_error(error);
  const Place place = {error, 0, instance->artifact->tables.variant, kNone, kNone};
  if (bindings == nullptr && count > 0) return place.fail(INGOT_E_ARG_NULL);
  for (uint32_t i = 0; i < instance->artifact->tables.io.count; ++i) {
    instance->slots[i].pending = instance->slots[i].bound;
  }
  for (uint32_t n = 0; n < count; ++n) INGOT_RETURN_IF(take_binding(instance, bindings, n, place));
  INGOT_RETURN_IF(check_overlaps(*instance, place));
  commit(instance);
  return kOk;
}

void ingot_unbind_all(ingot_instance* instance) {
  for (uint32_t i = 0; i < instance->artifact->tables.io.count; ++i) {
    instance->slots[i].pending = {};
  }
  commit(instance);
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
