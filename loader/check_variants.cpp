// Steps 17 and 18: variant records, and the choice among them.
#include "loader/internal.h"

namespace ingot::loader {

namespace {

#define FIELD(name) INGOT_FIELD(IngotVariantRecord, name)

constexpr uint32_t kMaxSveBits = 2048;

constexpr FieldRule kRules[] = {
    INGOT_ZERO(IngotVariantRecord, reserved),
    INGOT_RANGE(IngotVariantRecord, arch, INGOT_ARCH_X86_64, INGOT_ARCH_AARCH64),
    INGOT_RANGE(IngotVariantRecord, endian, INGOT_ENDIAN_LITTLE, INGOT_ENDIAN_LITTLE),
    INGOT_RANGE(IngotVariantRecord, os, INGOT_OS_LINUX, INGOT_OS_NONE),
    INGOT_RANGE(IngotVariantRecord, threads, 1, INGOT_MAX_THREADS),
    INGOT_RANGE(IngotVariantRecord, device_kind, INGOT_DEVICE_NONE, INGOT_DEVICE_VULKAN),
    INGOT_RANGE(IngotVariantRecord, stack_bytes, 0, INGOT_MAX_STACK_BYTES),
};

ingot_status check_processor(const IngotVariantRecord& v, const Place& place) {
  const auto bad = [&](uint32_t field, uint64_t found, uint64_t allowed) {
    return place.fail(INGOT_E_VARIANT, field, found, allowed);
  };
  const bool x86 = v.arch == INGOT_ARCH_X86_64;
  if (!x86 && v.xcr0 != 0) return bad(FIELD(xcr0), v.xcr0, 0);
  if (v.sve_bits != 0 && (x86 || v.sve_bits % 128 != 0 || v.sve_bits > kMaxSveBits)) {
    return bad(FIELD(sve_bits), v.sve_bits, x86 ? 0 : kMaxSveBits);
  }
  if (v.max_page_size != 4096 && v.max_page_size != 16384 && v.max_page_size != 65536) {
    return bad(FIELD(max_page_size), v.max_page_size, 65536);
  }
  const uint32_t usual = x86 ? INGOT_FP_X86_DEFAULT : INGOT_FP_AARCH64_DEFAULT;
  const uint32_t flush = x86 ? INGOT_FP_X86_FLUSH : INGOT_FP_AARCH64_FLUSH;
  const bool known_control = v.fp_control == usual || v.fp_control == flush;
  return known_control ? kOk : bad(FIELD(fp_control), v.fp_control, usual);
}

ingot_status check_device(const IngotVariantRecord& v, const Place& place) {
  const auto bad = [&](uint32_t field, uint64_t found, uint64_t allowed) {
    return place.fail(INGOT_E_VARIANT, field, found, allowed);
  };
  if (v.device_kind == INGOT_DEVICE_NONE) {
    const bool nothing = v.device_arch_rule == 0 && v.device_arch == 0 && v.driver_min[0] == 0 &&
                         v.driver_min[1] == 0 && v.device_memory == 0 &&
                         v.device_arena_bytes == 0 && all_zero(v.device_name, sizeof v.device_name);
    return nothing ? kOk : bad(FIELD(device_kind), 0, INGOT_DEVICE_VULKAN);
  }
  if (v.device_arch_rule < INGOT_DEVICE_EXACT || v.device_arch_rule > INGOT_DEVICE_SAME_MAJOR) {
    return bad(FIELD(device_arch_rule), v.device_arch_rule, INGOT_DEVICE_SAME_MAJOR);
  }
  uint32_t length = 0;
  while (length < sizeof v.device_name && v.device_name[length] > 0x20) ++length;
  if (!all_zero(v.device_name + length, sizeof v.device_name - length)) {
    return bad(FIELD(device_name), length, 0);
  }
  return kOk;
}

ingot_status check_variant(const ingot_artifact& artifact, const IngotVariantRecord& v,
                           const Place& place) {
  INGOT_RETURN_IF(check_fields(&v, kRules, INGOT_E_VARIANT, place));
  INGOT_RETURN_IF(check_name(artifact, v.name, place, FIELD(name)));
  for (uint32_t i = 0; i < place.record; ++i) {
    if (same_name(artifact, artifact.variants[i].name, v.name)) {
      return place.fail(INGOT_E_STRING, FIELD(name), place.record, i);
    }
  }
  INGOT_RETURN_IF(check_processor(v, place));
  INGOT_RETURN_IF(check_device(v, place));
  const IngotHeader& header = artifact.header;
  if (v.host_arena_bytes > INGOT_MAX_ARENA_BYTES || v.host_arena_bytes > header.max_host_arena) {
    return place.fail(INGOT_E_VARIANT, FIELD(host_arena_bytes), v.host_arena_bytes,
                      header.max_host_arena);
  }
  if (v.device_arena_bytes > INGOT_MAX_ARENA_BYTES ||
      v.device_arena_bytes > header.max_device_arena) {
    return place.fail(INGOT_E_VARIANT, FIELD(device_arena_bytes), v.device_arena_bytes,
                      header.max_device_arena);
  }
  return kOk;
}

// The register state that a feature keeps: asked for even if the record forgot it.
uint64_t state_needed(const IngotVariantRecord& v) {
  if (v.arch != INGOT_ARCH_X86_64) return 0;
  constexpr uint64_t ymm_users = INGOT_X86_AVX2 | INGOT_X86_F16C | INGOT_X86_AVX_VNNI;
  constexpr uint64_t zmm_users =
      INGOT_X86_AVX512 | INGOT_X86_AVX512_VNNI | INGOT_X86_AVX512_BF16 | INGOT_X86_AVX512_FP16;
  constexpr uint64_t tile_users =
      INGOT_X86_AMX_TILE | INGOT_X86_AMX_INT8 | INGOT_X86_AMX_BF16 | INGOT_X86_AMX_FP16;
  uint64_t state = v.xcr0;
  if ((v.cpu_features[0] & ymm_users) != 0) state |= 0x6;
  if ((v.cpu_features[0] & zmm_users) != 0) state |= 0xE6;
  if ((v.cpu_features[0] & tile_users) != 0) state |= 0x60000;
  return state;
}

// A text of the caller against a stored name that is not yet validated.
bool name_is(const ingot_artifact& artifact, IngotName name, const char* text) {
  const Bytes& strings = artifact.strings;
  if (!inside(name.offset, uint64_t{name.length} + 1, strings.nbytes)) return false;
  const auto* stored = reinterpret_cast<const char*>(strings.data + name.offset);
  return std::strlen(text) == name.length && std::memcmp(stored, text, name.length) == 0;
}

// The device's layouts must all be known, and the named camera must have one of them.
ingot_status check_layouts(const ingot_artifact& artifact, const ingot_policy& policy,
                           uint32_t variant, const Place& place) {
  Table<IngotCameraRecord> cameras;
  INGOT_RETURN_IF(find_cameras(artifact, variant, &cameras, place.error));
  for (uint32_t n = 0; n < policy.layout_count; ++n) {
    bool known = false;
    for (uint32_t i = 0; i < cameras.count; ++i) {
      const IngotCameraRecord& camera = cameras[i];
      known = known || (same_layout(layout_of(camera), policy.layouts[n]) &&
                        (policy.camera == nullptr || policy.layout_count > 1 ||
                         name_is(artifact, camera.name, policy.camera)));
    }
    if (!known) {
      const ingot_status status = place.fail(INGOT_E_LAYOUT, kNone, n, cameras.count);
      if (place.error != nullptr) {
        store_layout(place.error->layout_found, policy.layouts[n]);
        if (cameras.count > 0) store_layout(place.error->layout_allowed, layout_of(cameras[0]));
      }
      return status;
    }
  }
  if (policy.camera == nullptr) return kOk;
  for (uint32_t i = 0; i < cameras.count; ++i) {
    if (name_is(artifact, cameras[i].name, policy.camera)) return kOk;
  }
  return place.fail(INGOT_E_LAYOUT, 0, 0, cameras.count);
}

// Everything of step 18 for one variant. The order of its checks is how far it came.
ingot_status check_candidate(const ingot_artifact& artifact, const ingot_policy& policy,
                             const ingot_host& host, uint32_t variant, const Place& place) {
  const IngotVariantRecord& v = artifact.variants[variant];
  const ingot_status fits = variant_fits(v, host);
  if (fits != kOk) return place.fail(fits, kNone, v.arch, host.arch);
  if (policy.interface_sha256 != nullptr &&
      std::memcmp(policy.interface_sha256, v.interface_sha256, 32) != 0) {
    return place.fail(INGOT_E_INTERFACE, FIELD(interface_sha256));
  }
  INGOT_RETURN_IF(check_layouts(artifact, policy, variant, place));
  const uint64_t limit =
      policy.max_arena_nbytes == 0 ? INGOT_MAX_ARENA_BYTES : policy.max_arena_nbytes;
  if (v.host_arena_bytes > limit) {
    return place.fail(INGOT_E_LIMIT, FIELD(host_arena_bytes), v.host_arena_bytes, limit);
  }
  return kOk;
}

uint32_t rank_of(ingot_status status) {
  switch (status) {
    case INGOT_E_ARCH: return 1;
    case INGOT_E_ABI: return 2;
    case INGOT_E_CPU_FEATURE: return 3;
    case INGOT_E_OS_FEATURE: return 4;
    case INGOT_E_PAGE_SIZE: return 5;
    case INGOT_E_DEVICE: return 6;
    case INGOT_E_INTERFACE: return 7;
    case INGOT_E_LAYOUT: return 8;
    case INGOT_E_LIMIT: return 9;
    default: return 0;
  }
}

// The candidate after `previous` in (priority, index) order, or kNone.
uint32_t next_candidate(const Table<IngotVariantRecord>& variants, uint32_t previous) {
  const auto order = [&](uint32_t i) { return uint64_t{variants[i].priority} << 32 | i; };
  uint32_t best = kNone;
  for (uint32_t i = 0; i < variants.count; ++i) {
    if (previous != kNone && order(i) <= order(previous)) continue;
    if (best == kNone || order(i) < order(best)) best = i;
  }
  return best;
}

// The caller's frame period against what the models were made for.
ingot_status check_frame_period(const ingot_artifact& artifact, const ingot_policy& policy,
                                Place place) {
  if (policy.frame_period_us == 0) return kOk;
  place.section = artifact.models.section;
  for (place.record = 0; place.record < artifact.models.count; ++place.record) {
    const uint32_t period = artifact.models[place.record].frame_period_us;
    if (period != 0 && period != policy.frame_period_us) {
      return place.fail(INGOT_E_INTERFACE, INGOT_FIELD(IngotModelRecord, frame_period_us),
                        policy.frame_period_us, period);
    }
  }
  return kOk;
}

}  // namespace

ingot_status check_variants(const ingot_artifact& artifact, ingot_error* error) {
  const Table<IngotVariantRecord>& variants = artifact.variants;
  Place place = {error, 17, kNone, variants.section, kNone};
  if (variants.count != artifact.header.variant_count) {
    return place.fail(INGOT_E_VARIANT, kNone, variants.count, artifact.header.variant_count);
  }
  uint64_t host_arena = 0;
  uint64_t device_arena = 0;
  for (place.record = 0; place.record < variants.count; ++place.record) {
    const IngotVariantRecord& v = variants[place.record];
    place.variant = place.record;
    INGOT_RETURN_IF(check_variant(artifact, v, place));
    if (v.host_arena_bytes > host_arena) host_arena = v.host_arena_bytes;
    if (v.device_arena_bytes > device_arena) device_arena = v.device_arena_bytes;
  }
  place.variant = place.record = kNone;
  if (host_arena != artifact.header.max_host_arena) {
    return place.fail(INGOT_E_VARIANT, FIELD(host_arena_bytes), host_arena,
                      artifact.header.max_host_arena);
  }
  if (device_arena != artifact.header.max_device_arena) {
    return place.fail(INGOT_E_VARIANT, FIELD(device_arena_bytes), device_arena,
                      artifact.header.max_device_arena);
  }
  return kOk;
}

ingot_status variant_fits(const IngotVariantRecord& v, const ingot_host& host) {
  if (v.arch != host.arch) return INGOT_E_ARCH;
  if (v.os != INGOT_OS_LINUX || v.call_abi != INGOT_CALL_ABI_1) return INGOT_E_ABI;
  for (int i = 0; i < 4; ++i) {
    // A bit that this loader cannot test is absent in host.features.
    if ((v.cpu_features[i] & ~host.features[i]) != 0) return INGOT_E_CPU_FEATURE;
  }
  if ((state_needed(v) & ~host.xcr0) != 0) return INGOT_E_OS_FEATURE;
  if (v.sve_bits != 0 && v.sve_bits != host.sve_bits) return INGOT_E_OS_FEATURE;
  if (host.page_size > v.max_page_size) return INGOT_E_PAGE_SIZE;
  if (v.device_kind != INGOT_DEVICE_NONE) return INGOT_E_DEVICE;  // none in this version
  return kOk;
}

ingot_status choose_variant(const ingot_artifact& artifact, const ingot_policy& policy,
                            const ingot_host& host, uint32_t* chosen, ingot_error* error) {
  Place place = {error, 18, kNone, artifact.variants.section, kNone};
  INGOT_RETURN_IF(check_frame_period(artifact, policy, place));
  if (policy.variant > artifact.variants.count) {
    return place.fail(INGOT_E_ARG_UNKNOWN, kNone, policy.variant, artifact.variants.count);
  }
  ingot_error best = {};
  uint32_t best_rank = 0;
  uint32_t candidate = kNone;
  while ((candidate = next_candidate(artifact.variants, candidate)) != kNone) {
    if (policy.variant != 0 && candidate != policy.variant - 1) continue;
    ingot_error reason;
    place.error = &reason;
    place.variant = place.record = candidate;
    const ingot_status status = check_candidate(artifact, policy, host, candidate, place);
    if (status == kOk) {
      *chosen = candidate;
      return kOk;
    }
    // A malformed table, step 15, ends the search.
    const uint32_t rank = reason.step == place.step ? rank_of(status) : 0;
    if (rank > best_rank || rank == 0) {
      best = reason;
      best_rank = rank;
    }
    if (rank == 0) break;
  }
  if (error != nullptr) *error = best;
  return best.number;
}

#undef FIELD

}  // namespace ingot::loader
