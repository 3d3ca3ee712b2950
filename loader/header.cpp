// Steps 8 and 9: header fields, now authentic, and the rules of acceptance.
#include "loader/internal.h"

namespace ingot::loader {

namespace {

constexpr uint64_t kFirstEntries = INGOT_HEADER_SIZE;

#define FIELD(name) INGOT_FIELD(IngotHeader, name)

constexpr FieldRule kReserved[] = {
    INGOT_ZERO(IngotHeader, reserved_78),
    INGOT_ZERO(IngotHeader, reserved_c0),
    INGOT_ZERO(IngotHeader, reserved_10c),
    INGOT_ZERO(IngotHeader, reserved_150),
};

constexpr FieldRule kConstants[] = {
    INGOT_RANGE(IngotHeader, section_table_offset, INGOT_HEADER_SIZE, INGOT_HEADER_SIZE),
    INGOT_RANGE(IngotHeader, section_entry_size, INGOT_SECTION_ENTRY_SIZE,
                INGOT_SECTION_ENTRY_SIZE),
    INGOT_RANGE(IngotHeader, block_size_log2, INGOT_BLOCK_SIZE_LOG2, INGOT_BLOCK_SIZE_LOG2),
    INGOT_RANGE(IngotHeader, hash_algorithm, INGOT_HASH_SHA256, INGOT_HASH_SHA256),
    INGOT_RANGE(IngotHeader, alignment_log2, INGOT_ALIGNMENT_LOG2, INGOT_ALIGNMENT_LOG2),
    INGOT_RANGE(IngotHeader, build_class, INGOT_BUILD_CLASS_DEVELOPMENT, INGOT_BUILD_CLASS_RELEASE),
};

constexpr FieldRule kLimits[] = {
    INGOT_RANGE(IngotHeader, section_count, 1, INGOT_MAX_SECTIONS),
    INGOT_RANGE(IngotHeader, variant_count, 1, INGOT_MAX_VARIANTS),
};

// The layout follows from two counts; every number must be the one that follows.
ingot_status check_equations(const IngotHeader& header, const Place& place) {
  const uint64_t table_end =
      kFirstEntries + uint64_t{header.section_count} * INGOT_SECTION_ENTRY_SIZE;
  const uint64_t digest_table = align_up(table_end, INGOT_ALIGNMENT);
  if (header.digest_table_offset != digest_table) {
    return place.fail(INGOT_E_HEADER_FIELD, FIELD(digest_table_offset), header.digest_table_offset,
                      digest_table);
  }
  const uint64_t digests_end = digest_table + uint64_t{header.block_count} * INGOT_DIGEST_SIZE;
  const uint64_t body = align_up(digests_end, INGOT_PAGE_ALIGNMENT);
  if (header.body_offset != body || body > header.content_size) {
    return place.fail(INGOT_E_HEADER_FIELD, FIELD(body_offset), header.body_offset, body);
  }
  const uint64_t blocks = align_up(header.content_size - body, INGOT_BLOCK_SIZE) / INGOT_BLOCK_SIZE;
  if (header.block_count != blocks) {
    return place.fail(INGOT_E_HEADER_FIELD, FIELD(block_count), header.block_count, blocks);
  }
  return kOk;
}

bool product_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

// Characters of the alphabet, then zeros to the end.
bool well_formed(const char text[32]) {
  uint32_t length = 0;
  while (length < 32 && product_character(text[length])) ++length;
  return all_zero(text + length, 32 - length);
}

// `wanted` may be longer than 32 characters; then it is not equal.
bool same_text(const char text[32], const char* wanted) {
  for (uint32_t i = 0; i < 32; ++i) {
    if (text[i] != wanted[i]) return false;
    if (wanted[i] == 0) return true;
  }
  return wanted[32] == 0;
}

ingot_status check_product(const IngotHeader& header, const ingot_policy& policy,
                           const Place& place) {
  const bool product_good = header.product[0] != 0 && well_formed(header.product);
  if (!product_good || (policy.product != nullptr && !same_text(header.product, policy.product))) {
    return place.fail(INGOT_E_PRODUCT, FIELD(product));
  }
  const bool for_any = all_zero(header.device_family, sizeof header.device_family);
  if (!well_formed(header.device_family) ||
      (!for_any && policy.device_family != nullptr &&
       !same_text(header.device_family, policy.device_family))) {
    return place.fail(INGOT_E_PRODUCT, FIELD(device_family));
  }
  return kOk;
}

}  // namespace

ingot_status check_header_fields(const IngotHeader& header, ingot_error* error) {
  const Place place = {error, 8, kNone, kNone, kNone};
  INGOT_RETURN_IF(check_fields(&header, kReserved, INGOT_E_RESERVED, place));
  const uint64_t unknown = header.features_required & ~INGOT_FEATURES_KNOWN;
  if (unknown != 0) return place.fail(INGOT_E_FEATURE, FIELD(features_required), unknown, 0);
  INGOT_RETURN_IF(check_fields(&header, kConstants, INGOT_E_HEADER_FIELD, place));
  INGOT_RETURN_IF(check_fields(&header, kLimits, INGOT_E_LIMIT, place));
  return check_equations(header, place);
}

ingot_status check_acceptance(const ingot_artifact& artifact, const ingot_policy& policy,
                              ingot_error* error) {
  const Place place = {error, 9, kNone, kNone, kNone};
  const IngotHeader& header = artifact.header;
  for (uint32_t i = 0; i < policy.deny_count; ++i) {
    if (std::memcmp(policy.deny_ids[i], artifact.id, 32) == 0) {
      return place.fail(INGOT_E_DENYLISTED, FIELD(header_sha256), i, 0);
    }
  }
  INGOT_RETURN_IF(check_product(header, policy, place));
  const uint32_t classes = policy.build_classes == 0 ? ~0u : policy.build_classes;
  if ((classes & (1u << header.build_class)) == 0) {
    return place.fail(INGOT_E_BUILD_CLASS, FIELD(build_class), header.build_class, classes);
  }
  if (header.security_counter < policy.lowest_counter) {
    return place.fail(INGOT_E_COUNTER, FIELD(security_counter), header.security_counter,
                      policy.lowest_counter);
  }
  return kOk;
}

#undef FIELD

}  // namespace ingot::loader
