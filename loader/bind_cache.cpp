#include "loader/bind_cache.h"

#include <cstdlib>

namespace ingot::loader {

BindCache* create_bind_cache(uint32_t capacity, uint32_t slots) {
  const size_t each = slots * (sizeof(KnownBinding) + sizeof(void*));
  const size_t nbytes = sizeof(BindCache) + capacity * (sizeof(KnownSet) + each);
  auto* memory = static_cast<uint8_t*>(std::malloc(nbytes));
  if (memory == nullptr) return nullptr;
  // Written now, so that no later frame meets a page for the first time.
  std::memset(memory, 0xFF, nbytes);
  auto* cache = reinterpret_cast<BindCache*>(memory);
  *cache = {};
  cache->info.capacity = capacity;
  cache->slots = slots;
  cache->sets = reinterpret_cast<KnownSet*>(cache + 1);
  auto* bindings = reinterpret_cast<KnownBinding*>(cache->sets + capacity);
  auto* addresses = reinterpret_cast<uint8_t**>(bindings + size_t{capacity} * slots);
  for (uint32_t i = 0; i < capacity; ++i) {
    cache->sets[i] = {0, 0, 0, bindings + size_t{i} * slots, addresses + size_t{i} * slots};
  }
  return cache;
}

uint64_t key_of(const ingot_binding* list, uint32_t count) {
  uint64_t key = count;
  for (uint32_t n = 0; n < count; ++n) {
    key = (key ^ reinterpret_cast<uintptr_t>(list[n].data)) * 0x9E3779B97F4A7C15u;
    key = (key ^ list[n].generation ^ key >> 29) * 0x9E3779B97F4A7C15u;
  }
  return key;
}

KnownSet* make_room(BindCache* cache) {
  KnownSet* oldest = cache->sets;
  for (uint32_t i = 0; i < cache->info.capacity && oldest->used != 0; ++i) {
    if (cache->sets[i].used < oldest->used) oldest = &cache->sets[i];
  }
  if (oldest->used != 0) {
    oldest->used = 0;
    --cache->info.used;
    ++cache->info.evictions;
  }
  return oldest;
}

void forget(BindCache* cache, bool (*is_gone)(const Memory& known, const Memory& other),
            const Memory& other) {
  for (uint32_t i = 0; cache != nullptr && i < cache->info.capacity; ++i) {
    KnownSet& set = cache->sets[i];
    for (uint32_t n = 0; set.used != 0 && n < set.count; ++n) {
      if (!is_gone(set.bindings[n], other)) continue;
      set.used = 0;
      --cache->info.used;
      ++cache->info.invalidated;
    }
  }
}

}  // namespace ingot::loader
