#include "loader/instance.h"

#include <cstdlib>

namespace ingot::loader {

namespace {

constexpr uint32_t kStep = 27;
constexpr uint32_t kMaxSpinUs = 1000000;
constexpr uint32_t kMaxBindSets = 4096;

// Handing a call out and waiting for its parts takes about half a microsecond, in which one core
// moves this many bytes between the second cache and registers.
constexpr uint64_t kLeastSharedBytes = 16384;

// At least one element, so that an empty table is not an error.
template <typename T>
bool allocate(T** table, uint64_t count) {
  *table = static_cast<T*>(std::calloc(count > 0 ? count : 1, sizeof(T)));
  return *table != nullptr;
}

bool allocate_tables(ingot_instance* instance, const Tables& tables) {
  return allocate(&instance->slots, tables.io.count) &&
         allocate(&instance->calls, tables.calls.count) &&
         allocate(&instance->buffer_address, tables.buffers.count) &&
         allocate(&instance->first_pointer_of_buffer, tables.buffers.count) &&
         allocate(&instance->pointers, tables.args.count) &&
         allocate(&instance->addresses, tables.args.count) &&
         allocate(&instance->scalars, tables.args.count);
}

ingot_status allocate_arenas(ingot_instance* instance, const Tables& tables, const Place& place) {
  for (uint32_t i = 0; i < tables.arenas.count; ++i) {
    const IngotArenaRecord& arena = tables.arenas[i];
    const size_t nbytes = static_cast<size_t>(arena.nbytes);
    instance->arenas[i] =
        map_guarded(nbytes, size_t{1} << arena.align_log2, &instance->arena_start[i]);
    if (instance->arenas[i].address == nullptr) {
      return place.fail(INGOT_E_NOMEM, kNone, arena.nbytes, 0);
    }
    if (nbytes >= (size_t{2} << 20)) ask_huge_pages(instance->arena_start[i], nbytes);
    if ((instance->flags & INGOT_RUN_LOCK_PAGES) != 0) {
      lock_pages(instance->arena_start[i], nbytes);
    }
  }
  return kOk;
}

// Memory for what may only be copied although its slot is by pointer. Touched, so that no frame
// waits for pages.
bool allocate_staging(ingot_instance* instance, const Tables& tables) {
  for (uint32_t i = 0; i < tables.io.count; ++i) {
    Slot& slot = instance->slots[i];
    if (!slot.by_pointer || slot.io.nbytes == 0) continue;
    const size_t alignment = size_t{1} << tables.buffers[slot.buffer].align_log2;
    const size_t page = page_size();
    slot.staging =
        map_memory(static_cast<size_t>(slot.io.nbytes), alignment > page ? alignment : page);
    if (slot.staging.address == nullptr) return false;
    std::memset(slot.staging.address, 0, slot.staging.nbytes);
    if ((instance->flags & INGOT_RUN_LOCK_PAGES) != 0) {
      lock_pages(slot.staging.address, slot.staging.nbytes);
    }
  }
  return true;
}

const uint8_t* initial_data(const ingot_artifact& artifact, const IngotBufferRecord& b) {
  return artifact.content + artifact.section(b.init_section).offset + b.init_offset;
}

void place_buffers(ingot_instance* instance, const Tables& tables) {
  const ingot_artifact& artifact = *instance->artifact;
  for (uint32_t i = 0; i < tables.buffers.count; ++i) {
    const IngotBufferRecord& b = tables.buffers[i];
    instance->first_pointer_of_buffer[i] = kNone;
    uint8_t*& address = instance->buffer_address[i];
    if (b.kind == INGOT_BUFFER_CONST) {
      address = const_cast<uint8_t*>(initial_data(artifact, b));  // no call may write it
    } else if (b.arena != kNone) {
      address = instance->arena_start[b.arena] + b.arena_offset;
    }
    if (b.io == kNone) continue;
    Slot& slot = instance->slots[b.io];
    if (b.kind == INGOT_BUFFER_NEXT_STATE) {
      slot.next_buffer = i;
    } else {
      slot.buffer = i;
      slot.by_pointer = (b.flags & INGOT_BUFFER_CALLER_MEMORY) != 0;
    }
  }
}

IngotProgram find_code(const ingot_artifact& artifact, const IngotProgramRecord& program) {
  for (uint32_t i = 0; i < artifact.code_count; ++i) {
    const CodePlace& place = artifact.code_places[i];
    if (place.section == program.code_section) {
      const auto address = reinterpret_cast<uintptr_t>(place.address) + program.entry_offset;
      return reinterpret_cast<IngotProgram>(address);
    }
  }
  return nullptr;
}

// Fills the pointer and scalar tables, and one plan for each call.
void plan_calls(ingot_instance* instance, const Tables& tables) {
  uint32_t pointers = 0;
  uint32_t scalars = 0;
  for (uint32_t i = 0; i < tables.calls.count; ++i) {
    const IngotCallRecord& call = tables.calls[i];
    PlannedCall& plan = instance->calls[i];
    plan.kind = call.kind;
    plan.first_pointer = pointers;
    plan.first_scalar = scalars;
    plan.fill_value = static_cast<uint8_t>(call.immediate);
    if (call.kind == INGOT_CALL_PROGRAM) {
      plan.program = find_code(*instance->artifact, tables.programs[call.program]);
      plan.outer_range = call.grid[0];
    }
    uint64_t touched = 0;
    for (uint32_t n = 0; n < call.arg_count; ++n) {
      const IngotArgRecord& arg = tables.args[call.arg_first + n];
      if (arg.kind == INGOT_ARG_IMMEDIATE) {
        instance->scalars[scalars++] = arg.immediate;
        continue;
      }
      const IngotViewRecord& view = tables.views[arg.view];
      plan.nbytes = view.nbytes;
      touched += view.nbytes;
      uint32_t& head = instance->first_pointer_of_buffer[view.buffer];
      instance->pointers[pointers] = {view.buffer, head, view.offset};
      head = pointers++;
    }
    const uint32_t workers = instance->crew != nullptr ? instance->crew->count : 1;
    plan.parts = touched < kLeastSharedBytes ? 1 : workers;
    if (plan.parts > plan.outer_range) plan.parts = plan.outer_range;
  }
  for (uint32_t i = 0; i < tables.buffers.count; ++i) {
    set_buffer(instance, i, instance->buffer_address[i]);
  }
}

}  // namespace

Hold::Hold(ingot_instance* instance) : instance_(instance) {
  if (instance == nullptr) {
    status_ = INGOT_E_STATE;
  } else if (!instance->held.change(0, 1)) {
    status_ = INGOT_E_IN_USE;
  }
}

Hold::~Hold() {
  if (status_ == kOk) instance_->held.set(0);
}

void set_buffer(ingot_instance* instance, uint32_t buffer, uint8_t* address) {
  instance->buffer_address[buffer] = address;
  uint32_t entry = instance->first_pointer_of_buffer[buffer];
  while (entry != kNone) {
    const Pointer& pointer = instance->pointers[entry];
    instance->addresses[entry] = address == nullptr ? nullptr : address + pointer.offset;
    entry = pointer.next_of_buffer;
  }
}

ingot_status create_instance(const ingot_artifact& artifact, const ingot_instance_options& options,
                             ingot_instance** created, ingot_error* error) {
  const Tables& tables = artifact.tables;
  const Place place = {error, kStep, tables.variant, tables.arenas.section, kNone};
  auto* instance = static_cast<ingot_instance*>(std::calloc(1, sizeof(ingot_instance)));
  if (instance == nullptr) return place.fail(INGOT_E_NOMEM);
  instance->artifact = &artifact;
  artifact.instances.add_one();
  instance->flags = options.flags;
  instance->deadline_nanoseconds = uint64_t{options.deadline_us} * 1000;
  ingot_status status = kOk;
  if (!allocate_tables(instance, tables)) status = place.fail(INGOT_E_NOMEM);
  if (options.workers > 1) {
    const uint32_t spin_us = options.spin_us != 0 ? options.spin_us : INGOT_SPIN_US;
    instance->crew = create_crew(options.workers, uint64_t{spin_us} * 1000);
    if (instance->crew == nullptr) status = place.fail(INGOT_E_NOMEM);
  }
  if (options.bind_sets > 0) {
    instance->cache = create_bind_cache(options.bind_sets, tables.io.count);
    if (instance->cache == nullptr) status = place.fail(INGOT_E_NOMEM);
  }
  if (status == kOk) status = allocate_arenas(instance, tables, place);
  if (status != kOk) {
    ingot_instance_destroy(instance);
    return status;
  }
  for (uint32_t i = 0; i < tables.io.count; ++i) {
    instance->slots[i].io = tables.io[i];
    instance->slots[i].next_buffer = kNone;
  }
  place_buffers(instance, tables);
  if ((options.flags & INGOT_RUN_STAGING) != 0 && !allocate_staging(instance, tables)) {
    ingot_instance_destroy(instance);
    return place.fail(INGOT_E_NOMEM);
  }
  plan_calls(instance, tables);
  ingot_reset(instance);
  *created = instance;
  return kOk;
}

}  // namespace ingot::loader

using namespace ingot::loader;

ingot_status ingot_instance_create(const ingot_artifact* artifact,
                                   const ingot_instance_options* options, ingot_instance** instance,
                                   ingot_error* error) {
  clear_error(error);
  const Place place = {error, kStep, kNone, kNone, kNone};
  if (instance == nullptr || artifact == nullptr) return place.fail(INGOT_E_STATE);
  *instance = nullptr;
  const uint32_t needed =
      artifact->run_without_self_test ? INGOT_STATE_COMPATIBLE : INGOT_STATE_SELF_TESTED;
  if (artifact->state < needed || artifact->foreign) {
    return place.fail(INGOT_E_STATE, kNone, artifact->state, needed);
  }
  ingot_instance_options given = {};
  if (options != nullptr) given = *options;
  if (given.spin_us > kMaxSpinUs) {
    return place.fail(INGOT_E_STATE, kNone, given.spin_us, kMaxSpinUs);
  }
  if (given.bind_sets == 0) given.bind_sets = INGOT_BIND_SETS;
  if (given.bind_sets == INGOT_NONE) given.bind_sets = 0;
  if (given.bind_sets > kMaxBindSets) {
    return place.fail(INGOT_E_STATE, kNone, given.bind_sets, kMaxBindSets);
  }
  const uint32_t most = artifact->tables.record->threads;
  if (given.workers > most) {
    return place.fail(INGOT_E_WORKER_LIMIT, kNone, given.workers, most);
  }
  return create_instance(*artifact, given, instance, error);
}

ingot_status ingot_instance_destroy(ingot_instance* instance) {
  if (instance == nullptr) return kOk;
  if (!instance->held.change(0, 1)) return INGOT_E_IN_USE;
  if (ingot_workers_inside(instance) > 0) {
    instance->held.set(0);
    return INGOT_E_IN_USE;
  }
  free_crew(instance->crew);
  for (Mapping& arena : instance->arenas) unmap(&arena);
  for (uint32_t i = 0; instance->slots != nullptr && i < instance->artifact->tables.io.count; ++i) {
    unmap(&instance->slots[i].staging);
  }
  instance->artifact->instances.remove_one();
  std::free(instance->cache);
  std::free(instance->slots);
  std::free(instance->calls);
  std::free(instance->buffer_address);
  std::free(instance->first_pointer_of_buffer);
  std::free(instance->pointers);
  std::free(instance->addresses);
  std::free(instance->scalars);
  std::free(instance);
  return kOk;
}

ingot_status ingot_reset(ingot_instance* instance) {
  const Hold hold(instance);
  INGOT_RETURN_IF(hold.status());
  instance->valid_generation = 0;
  const Tables& tables = instance->artifact->tables;
  for (uint32_t i = 0; i < tables.buffers.count; ++i) {
    const IngotBufferRecord& b = tables.buffers[i];
    if (b.kind != INGOT_BUFFER_STATE && b.kind != INGOT_BUFFER_NEXT_STATE) continue;
    const auto nbytes = static_cast<size_t>(b.nbytes);
    if (b.init_section == kNone) {
      std::memset(instance->buffer_address[i], 0, nbytes);
    } else {
      std::memcpy(instance->buffer_address[i], initial_data(*instance->artifact, b), nbytes);
    }
  }
  for (uint32_t i = 0; i < tables.io.count; ++i) instance->slots[i].has_last_sequence = false;
  return kOk;
}

const void* ingot_slot_data(const ingot_instance* instance, uint32_t slot) {
  if (instance == nullptr || slot >= instance->artifact->tables.io.count) return nullptr;
  const Slot& s = instance->slots[slot];
  if (s.io.direction == INGOT_DIRECTION_INPUT) return nullptr;
  return s.bound.is_bound ? s.bound.data : instance->buffer_address[s.buffer];
}

ingot_status ingot_set_state(ingot_instance* instance, uint32_t slot, const void* data,
                             uint64_t nbytes) {
  const Hold hold(instance);
  INGOT_RETURN_IF(hold.status());
  if (slot >= instance->artifact->tables.io.count) return INGOT_E_ARG_UNKNOWN;
  const Slot& s = instance->slots[slot];
  if (s.io.direction != INGOT_DIRECTION_STATE) return INGOT_E_ARG_UNKNOWN;
  if (nbytes != s.io.nbytes) return INGOT_E_ARG_LENGTH;
  if (data == nullptr && nbytes > 0) return INGOT_E_ARG_NULL;
  if (nbytes > 0)
    std::memcpy(instance->buffer_address[s.buffer], data, static_cast<size_t>(nbytes));
  return kOk;
}

void ingot_set_call_hook(ingot_instance* instance, ingot_call_hook hook, void* user) {
  if (instance == nullptr) return;
  instance->hook = hook;
  instance->hook_user = user;
}
