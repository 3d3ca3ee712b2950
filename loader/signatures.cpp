// Steps 6 and 7: is the signature block well formed, and did enough trusted keys sign this header?
#include <cstdlib>

#include "loader/ed25519.h"
#include "loader/internal.h"
#include "loader/source.h"

namespace ingot::loader {

namespace {

constexpr uint32_t kStepBlock = 6;
constexpr uint32_t kStepTrust = 7;
constexpr uint64_t kMaxEntries = uint64_t{INGOT_MAX_SIGNATURES} * INGOT_MAX_SIGNATURE_ENTRY;
constexpr uint64_t kMaxBlock = INGOT_DETACHED_HEADER_SIZE + kMaxEntries;

// Fixed size, so that nothing is allocated from numbers of an unverified file.
struct Workspace {
  uint8_t embedded[kMaxBlock];
  uint8_t detached[kMaxBlock];
};

struct EntryList {
  const uint8_t* data;
  uint64_t nbytes;
  uint32_t count;
};

constexpr uint32_t kAllPurposes = 0xFFFFFFFFu;

uint32_t or_all(uint32_t mask) { return mask == 0 ? kAllPurposes : mask; }

// Calls visit(algorithm, entry, index) for every entry; fails unless they fill the list exactly.
template <typename Visit>
ingot_status walk_entries(const EntryList& list, const Place& place, Visit visit) {
  uint64_t at = 0;
  for (uint32_t i = 0; i < list.count; ++i) {
    if (list.nbytes - at < 8) return place.fail(INGOT_E_SIG_BLOCK, 0x0C, list.count, i);
    const uint32_t algorithm = load<uint32_t>(list.data + at);
    const uint32_t size = load<uint32_t>(list.data + at + 4);
    const bool size_good = size >= INGOT_MIN_SIGNATURE_ENTRY && size <= INGOT_MAX_SIGNATURE_ENTRY &&
                           size % 64 == 0 && size <= list.nbytes - at;
    if (!size_good) return place.fail(INGOT_E_SIG_BLOCK, 0x04, size, list.nbytes - at);
    INGOT_RETURN_IF(visit(algorithm, list.data + at, size));
    at += size;
  }
  if (at != list.nbytes) return place.fail(INGOT_E_SIG_BLOCK, 0x08, list.nbytes, at);
  return kOk;
}

ingot_status check_entry(uint32_t algorithm, const uint8_t* data, uint32_t size,
                         const Place& place) {
  if (algorithm != INGOT_SIGNATURE_ED25519) return kOk;  // room for others beside it
  if (size != sizeof(IngotSignatureEntry)) return place.fail(INGOT_E_SIG_BLOCK, 0x04, size, 128);
  const auto entry = load<IngotSignatureEntry>(data);
  if (entry.purpose < INGOT_PURPOSE_DEVELOPMENT || entry.purpose > INGOT_PURPOSE_SUPPLIER) {
    return place.fail(INGOT_E_SIG_BLOCK, 0x08, entry.purpose, INGOT_PURPOSE_SUPPLIER);
  }
  if (entry.flags != 0) return place.fail(INGOT_E_SIG_BLOCK, 0x0C, entry.flags, 0);
  if (!all_zero(entry.reserved, sizeof entry.reserved)) return place.fail(INGOT_E_SIG_BLOCK, 0x28);
  return kOk;
}

ingot_status check_entries(const EntryList& list, const Place& place) {
  if (list.count > INGOT_MAX_SIGNATURES) {
    return place.fail(INGOT_E_SIG_BLOCK, 0x0C, list.count, INGOT_MAX_SIGNATURES);
  }
  return walk_entries(list, place, [&](uint32_t algorithm, const uint8_t* data, uint32_t size) {
    return check_entry(algorithm, data, size, place);
  });
}

ingot_status read_embedded(const ingot_artifact& artifact, const Source& source, uint8_t* to,
                           EntryList* list, ingot_error* error) {
  const Place place = {error, kStepBlock, kNone, kNone, kNone};
  const uint64_t start = artifact.header.content_size;
  const uint64_t room = source.length - start;  // at least 32, by step 4
  IngotSignatureHeader block;
  ingot_status status = read_source(source, start, &block, sizeof block);
  if (status != kOk) return place.fail(status);
  if (std::memcmp(block.magic, INGOT_SIGNATURE_MAGIC, 8) != 0) {
    return place.fail(INGOT_E_SIG_BLOCK, 0x00);
  }
  if (!all_zero(block.reserved, sizeof block.reserved)) return place.fail(INGOT_E_SIG_BLOCK, 0x10);
  if (block.block_size != room) {
    return place.fail(INGOT_E_SIZE_MISMATCH, 0x08, room, block.block_size);
  }
  list->count = block.count;
  list->nbytes = room - sizeof block;
  list->data = to;
  if (block.count > INGOT_MAX_SIGNATURES || list->nbytes > kMaxEntries) {
    return place.fail(INGOT_E_SIG_BLOCK, 0x0C, block.count, INGOT_MAX_SIGNATURES);
  }
  status = read_source(source, start + sizeof block, to, list->nbytes);
  if (status != kOk) return place.fail(status);
  return check_entries(*list, place);
}

ingot_status read_detached(const ingot_artifact& artifact, const ingot_policy& policy, uint8_t* to,
                           EntryList* list, ingot_error* error) {
  const Place place = {error, kStepBlock, kNone, kNone, kNone};
  const uint64_t nbytes = policy.detached_nbytes;
  if (nbytes < INGOT_DETACHED_HEADER_SIZE || nbytes > kMaxBlock) {
    return place.fail(INGOT_E_SIG_BLOCK, kNone, nbytes, INGOT_DETACHED_HEADER_SIZE);
  }
  std::memcpy(to, policy.detached, nbytes);
  const auto file = load<IngotDetachedHeader>(to);
  if (std::memcmp(file.magic, INGOT_DETACHED_MAGIC, 8) != 0) {
    return place.fail(INGOT_E_SIG_BLOCK, 0x00);
  }
  if (!all_zero(file.reserved, sizeof file.reserved)) return place.fail(INGOT_E_SIG_BLOCK, 0x10);
  if (file.file_size != nbytes) {
    return place.fail(INGOT_E_SIG_BLOCK, 0x08, nbytes, file.file_size);
  }
  *list = {to + INGOT_DETACHED_HEADER_SIZE, nbytes - INGOT_DETACHED_HEADER_SIZE, file.count};
  INGOT_RETURN_IF(check_entries(*list, place));
  if (std::memcmp(file.artifact_id, artifact.id, 32) != 0) {
    return place.fail(INGOT_E_DETACHED_MISMATCH, 0x20);
  }
  return kOk;
}

// Counts what trusted keys signed.
struct Tally {
  const ingot_artifact& artifact;
  const ingot_policy& policy;
  Place place;
  uint64_t seen[(INGOT_MAX_KEYS + 63) / 64];  // one bit for each key
  uint32_t known;
  uint32_t counted;
  uint32_t purposes;

  ingot_status add(const uint8_t* data);
  bool good_signature(const ingot_key& key, const IngotSignatureEntry& entry) const;
  bool counts(const ingot_key& key, uint32_t purpose) const;
};

bool Tally::good_signature(const ingot_key& key, const IngotSignatureEntry& entry) const {
  uint8_t message[INGOT_SIGNED_MESSAGE_SIZE] = INGOT_SIGNATURE_DOMAIN;
  std::memcpy(message + 64, &entry, 64);
  std::memcpy(message + 128, &artifact.header, sizeof artifact.header);
  return ed25519_verify(key.public_key, message, sizeof message, entry.signature);
}

bool Tally::counts(const ingot_key& key, uint32_t purpose) const {
  const uint32_t bit = 1u << purpose;
  const uint64_t counter = artifact.header.security_counter;
  return (or_all(key.purposes) & or_all(policy.counted_purposes) & bit) != 0 &&
         counter >= key.lowest_counter &&
         (key.highest_counter == 0 || counter <= key.highest_counter);
}

ingot_status Tally::add(const uint8_t* data) {
  const auto entry = load<IngotSignatureEntry>(data);
  for (uint32_t k = 0; k < policy.key_count; ++k) {
    const ingot_key& key = policy.keys[k];
    uint8_t key_id[16];
    ingot_key_id(key.public_key, key_id);
    if (std::memcmp(key_id, entry.key_id, 16) != 0) continue;
    place.record = k;
    uint64_t& word = seen[k / 64];
    const uint64_t bit = uint64_t{1} << (k % 64);
    if ((word & bit) != 0) return place.fail(INGOT_E_SIG_DUPLICATE);
    if (key.revoked != 0) return place.fail(INGOT_E_KEY_REVOKED);
    if (!good_signature(key, entry)) return place.fail(INGOT_E_SIG_INVALID);
    word |= bit;
    ++known;
    if (counts(key, entry.purpose)) {
      ++counted;
      purposes |= 1u << entry.purpose;
    }
    return kOk;
  }
  return kOk;  // a key that we do not know proves nothing, and harms nothing
}

ingot_status check_keys(const ingot_policy& policy, Place place) {
  if (policy.key_count > INGOT_MAX_KEYS) {
    return place.fail(INGOT_E_LIMIT, kNone, policy.key_count, INGOT_MAX_KEYS);
  }
  for (place.record = 0; place.record < policy.key_count; ++place.record) {
    if (!ed25519_key_valid(policy.keys[place.record].public_key)) {
      return place.fail(INGOT_E_KEY_WEAK);
    }
  }
  return kOk;
}

ingot_status check_trust(ingot_artifact* artifact, const EntryList lists[2],
                         const ingot_policy& policy, ingot_error* error) {
  const Place place = {error, kStepTrust, kNone, kNone, kNone};
  INGOT_RETURN_IF(check_keys(policy, place));
  const bool demanded = policy.allow_unsigned == 0;
  artifact->signature_count = lists[0].count + lists[1].count;
  if (demanded && artifact->signature_count == 0) return place.fail(INGOT_E_UNSIGNED);
  Tally tally = {*artifact, policy, place, {}, 0, 0, 0};
  for (int i = 0; i < 2; ++i) {
    INGOT_RETURN_IF(walk_entries(
        lists[i], place, [&](uint32_t algorithm, const uint8_t* data, uint32_t) -> ingot_status {
          return algorithm == INGOT_SIGNATURE_ED25519 ? tally.add(data) : kOk;
        }));
  }
  const uint32_t threshold = policy.threshold == 0 ? 1 : policy.threshold;
  const bool enough =
      tally.counted >= threshold && (policy.required_purposes & ~tally.purposes) == 0;
  artifact->counted_keys = tally.counted;
  artifact->trusted = enough;
  if (enough || !demanded) return kOk;
  if (tally.known == 0) return place.fail(INGOT_E_KEY_UNKNOWN);
  return place.fail(INGOT_E_SIG_POLICY, kNone, tally.counted, threshold);
}

}  // namespace

ingot_status check_signatures(ingot_artifact* artifact, const Source& source,
                              const ingot_policy& policy, ingot_error* error) {
  auto* workspace = static_cast<Workspace*>(std::malloc(sizeof(Workspace)));
  if (workspace == nullptr) {
    return Place{error, kStepBlock, kNone, kNone, kNone}.fail(INGOT_E_NOMEM);
  }
  EntryList lists[2] = {};
  ingot_status status = read_embedded(*artifact, source, workspace->embedded, &lists[0], error);
  if (status == kOk && policy.detached != nullptr) {
    status = read_detached(*artifact, policy, workspace->detached, &lists[1], error);
  }
  if (status == kOk) status = check_trust(artifact, lists, policy, error);
  std::free(workspace);
  return status;
}

}  // namespace ingot::loader

void ingot_key_id(const uint8_t public_key[32], uint8_t key_id[16]) {
  uint8_t text[68] = INGOT_TAG_KEY_ID;
  text[32] = INGOT_SIGNATURE_ED25519;
  std::memcpy(text + 36, public_key, 32);
  uint8_t digest[32];
  ingot::loader::sha256(ingot::loader::sha256_select(), text, sizeof text, digest);
  std::memcpy(key_id, digest, 16);
}

int ingot_ed25519_verify(const uint8_t public_key[32], const void* message, size_t nbytes,
                         const uint8_t signature[64]) {
  return ingot::loader::ed25519_verify(public_key, message, nbytes, signature) ? 1 : 0;
}

int ingot_ed25519_key_valid(const uint8_t public_key[32]) {
  return ingot::loader::ed25519_key_valid(public_key) ? 1 : 0;
}

void ingot_sha256(const void* data, size_t nbytes, uint8_t digest[32]) {
  ingot::loader::sha256(ingot::loader::sha256_select(), data, nbytes, digest);
}
