// The order of validation: one function, one step after the other. Whatever fails, nothing stays.
#include <cstdlib>

#include "loader/internal.h"
#include "loader/source.h"

namespace ingot::loader {

namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr uint64_t kMaxSignatureBlock =
    INGOT_SIGNATURE_HEADER_SIZE + uint64_t{INGOT_MAX_SIGNATURES} * INGOT_MAX_SIGNATURE_ENTRY;

// The caller's limit narrows the format's, never the other way round; 0 says nothing.
uint64_t narrowed(uint64_t limit, uint64_t callers) {
  return callers != 0 && callers < limit ? callers : limit;
}

// Steps 1 to 5.
ingot_status check_envelope(ingot_artifact* artifact, const Source& source,
                            const ingot_policy& policy, ingot_error* error) {
  Place place = {error, 1, kNone, kNone, kNone};
  const uint64_t content_limit = narrowed(INGOT_MAX_CONTENT, policy.max_file_nbytes);
  const uint64_t file_limit =
      narrowed(INGOT_MAX_CONTENT + kMaxSignatureBlock, policy.max_file_nbytes);
  if (source.length < INGOT_MIN_FILE_SIZE) {
    return place.fail(INGOT_E_TRUNCATED, kNone, source.length, INGOT_MIN_FILE_SIZE);
  }
  if (source.length > file_limit) {
    return place.fail(INGOT_E_TOO_LARGE, kNone, source.length, file_limit);
  }
  IngotHeader& header = artifact->header;
  const ingot_status status = read_source(source, 0, &header, sizeof header);
  if (status != kOk) return place.fail(status);
  place.step = 2;
  if (std::memcmp(header.magic, INGOT_MAGIC, 8) != 0) return place.fail(INGOT_E_MAGIC, 0);
  place.step = 3;
  if (header.version_major != INGOT_VERSION_MAJOR) {
    return place.fail(INGOT_E_VERSION, INGOT_FIELD(IngotHeader, version_major),
                      header.version_major, INGOT_VERSION_MAJOR);
  }
  place.step = 4;
  if (header.header_size != INGOT_HEADER_SIZE) {
    return place.fail(INGOT_E_HEADER_SIZE, INGOT_FIELD(IngotHeader, header_size),
                      header.header_size, INGOT_HEADER_SIZE);
  }
  constexpr uint32_t field = INGOT_FIELD(IngotHeader, content_size);
  if (header.content_size % INGOT_ALIGNMENT != 0 || header.content_size < INGOT_HEADER_SIZE) {
    return place.fail(INGOT_E_HEADER_SIZE, field, header.content_size, INGOT_ALIGNMENT);
  }
  if (header.content_size > content_limit) {
    return place.fail(INGOT_E_TOO_LARGE, field, header.content_size, content_limit);
  }
  if (!inside(header.content_size, INGOT_SIGNATURE_HEADER_SIZE, source.length)) {
    return place.fail(INGOT_E_TRUNCATED, field, header.content_size, source.length);
  }
  place.step = 5;
  sha256(artifact->hash, &header, INGOT_HEADER_DIGEST_OFFSET, artifact->id);
  if (std::memcmp(artifact->id, header.header_sha256, 32) != 0) {
    return place.fail(INGOT_E_HEADER_DIGEST, INGOT_HEADER_DIGEST_OFFSET);
  }
  return kOk;
}

// Step 10. The header is not read a second time: the copy gets the one that was checked.
ingot_status copy_content(ingot_artifact* artifact, const Source& source, ingot_error* error) {
  const Place place = {error, 10, kNone, kNone, kNone};
  const uint64_t nbytes = artifact->header.content_size;
  // Always on a large page: offsets of weights then keep their alignment in memory.
  artifact->copy = map_memory(static_cast<size_t>(nbytes), kHugePage);
  uint8_t* content = artifact->copy.address;
  if (content == nullptr) return place.fail(INGOT_E_NOMEM, kNone, nbytes, 0);
  const bool want_huge = (artifact->load_flags & INGOT_LOAD_NO_HUGE_PAGES) == 0;
  if (want_huge && nbytes >= kHugePage) {
    artifact->huge_pages = ask_huge_pages(content, artifact->copy.nbytes);
  }
  std::memcpy(content, &artifact->header, sizeof artifact->header);
  const ingot_status status = read_source(source, INGOT_HEADER_SIZE, content + INGOT_HEADER_SIZE,
                                          nbytes - INGOT_HEADER_SIZE);
  if (status != kOk) return place.fail(status);
  if (!make_read_only(artifact->copy)) return place.fail(INGOT_E_SEAL);
  if ((artifact->load_flags & INGOT_LOAD_LOCK_PAGES) != 0) {
    artifact->locked = lock_pages(content, artifact->copy.nbytes);
  }
  artifact->content = content;
  return kOk;
}

bool block_good(const ingot_artifact& artifact, uint32_t block, const uint8_t* data) {
  const IngotHeader& header = artifact.header;
  const uint64_t offset = uint64_t{block} * INGOT_BLOCK_SIZE;
  const uint64_t left = header.content_size - header.body_offset - offset;
  const uint64_t nbytes = left < INGOT_BLOCK_SIZE ? left : INGOT_BLOCK_SIZE;
  uint8_t digest[32];
  sha256(artifact.hash, data, static_cast<size_t>(nbytes), digest);
  const uint8_t* listed =
      artifact.content + header.digest_table_offset + uint64_t{block} * INGOT_DIGEST_SIZE;
  return std::memcmp(digest, listed, 32) == 0;
}

const uint8_t* block_data(const ingot_artifact& artifact, uint32_t block) {
  return artifact.content + artifact.header.body_offset + uint64_t{block} * INGOT_BLOCK_SIZE;
}

// Step 11.
ingot_status check_digests(const ingot_artifact& artifact, ingot_error* error) {
  Place place = {error, 11, kNone, kNone, kNone};
  const IngotHeader& header = artifact.header;
  uint8_t digest[32];
  sha256(artifact.hash, artifact.content + INGOT_HEADER_SIZE,
         static_cast<size_t>(header.body_offset - INGOT_HEADER_SIZE), digest);
  if (std::memcmp(digest, header.meta_sha256, 32) != 0) {
    return place.fail(INGOT_E_META_DIGEST, INGOT_FIELD(IngotHeader, meta_sha256));
  }
  for (place.record = 0; place.record < header.block_count; ++place.record) {
    if (!block_good(artifact, place.record, block_data(artifact, place.record))) {
      return place.fail(INGOT_E_BLOCK_DIGEST);
    }
  }
  return kOk;
}

// Steps 1 to 17.
ingot_status verify_source(ingot_artifact* artifact, const Source& source,
                           const ingot_policy& policy, ingot_error* error) {
  INGOT_RETURN_IF(check_envelope(artifact, source, policy, error));
  INGOT_RETURN_IF(check_signatures(artifact, source, policy, error));
  INGOT_RETURN_IF(check_header_fields(artifact->header, error));
  INGOT_RETURN_IF(check_acceptance(*artifact, policy, error));
  INGOT_RETURN_IF(copy_content(artifact, source, error));
  INGOT_RETURN_IF(check_digests(*artifact, error));
  INGOT_RETURN_IF(check_sections(*artifact, error));
  INGOT_RETURN_IF(find_common_tables(artifact, error));
  INGOT_RETURN_IF(check_models(*artifact, error));
  INGOT_RETURN_IF(check_variants(*artifact, error));
  artifact->state = INGOT_STATE_VERIFIED;
  return kOk;
}

bool is_code_of(const IngotSectionEntry& entry, uint32_t variant) {
  return entry.type == INGOT_SECTION_CODE && entry.variant == variant;
}

ingot_status code_status(CodeMapping outcome, const Place& place) {
  switch (outcome) {
    case CodeMapping::Done: return kOk;
    case CodeMapping::NoMemory: return place.fail(INGOT_E_NOMEM);
    case CodeMapping::SealFailed: return place.fail(INGOT_E_SEAL);
    case CodeMapping::ExecDenied: return place.fail(INGOT_E_EXEC_DENIED);
  }
  return place.fail(INGOT_E_EXEC_DENIED);
}

// What will run is hashed where it will run.
ingot_status check_mapped_code(const ingot_artifact& artifact, Place place) {
  for (uint32_t i = 0; i < artifact.code_count; ++i) {
    const IngotSectionEntry& entry = artifact.section(artifact.code_places[i].section);
    place.section = artifact.code_places[i].section;
    const uint64_t body = artifact.header.body_offset;
    const auto first = static_cast<uint32_t>((entry.offset - body) / INGOT_BLOCK_SIZE);
    for (uint64_t at = 0; at < entry.span; at += INGOT_BLOCK_SIZE) {
      place.record = first + static_cast<uint32_t>(at / INGOT_BLOCK_SIZE);
      if (!block_good(artifact, place.record, artifact.code_places[i].address + at)) {
        return place.fail(INGOT_E_BLOCK_DIGEST);
      }
    }
  }
  return kOk;
}

// Step 27 for code: whole 64 KiB blocks, so pages of every size are filled by this artifact alone.
ingot_status map_code_sections(ingot_artifact* artifact, ingot_error* error) {
  const Place place = {error, 27, artifact->tables.variant, kNone, kNone};
  uint32_t count = 0;
  for (uint32_t i = 0; i < artifact->header.section_count; ++i) {
    if (is_code_of(artifact->section(i), artifact->tables.variant)) ++count;
  }
  if (count == 0) return kOk;
  artifact->code_places = static_cast<CodePlace*>(std::calloc(count, sizeof(CodePlace)));
  auto* pieces = static_cast<CodePiece*>(std::calloc(count, sizeof(CodePiece)));
  if (artifact->code_places == nullptr || pieces == nullptr) {
    std::free(pieces);
    return place.fail(INGOT_E_NOMEM);
  }
  uint32_t n = 0;
  for (uint32_t i = 0; i < artifact->header.section_count; ++i) {
    const IngotSectionEntry& entry = artifact->section(i);
    if (!is_code_of(entry, artifact->tables.variant)) continue;
    artifact->code_places[n].section = i;
    pieces[n++] = {artifact->content + entry.offset, static_cast<size_t>(entry.span)};
  }
  const uint32_t flags = artifact->load_flags;
  const CodeRequest request = {pieces, count, (flags & INGOT_LOAD_NO_MEMFD) == 0,
                               (flags & INGOT_LOAD_NO_SHARED_EXEC) == 0,
                               (flags & INGOT_LOAD_NO_PRIVATE_EXEC) == 0};
  const CodeMapping outcome = map_code(request, &artifact->code, &artifact->code_sealed);
  if (outcome == CodeMapping::Done) {
    artifact->code_count = count;
    const uint8_t* at = artifact->code.address;
    for (uint32_t i = 0; i < count; ++i) {
      artifact->code_places[i].address = at;
      at += pieces[i].nbytes;
    }
    if ((flags & INGOT_LOAD_LOCK_PAGES) != 0) {
      artifact->locked =
          lock_pages(artifact->code.address, artifact->code.nbytes) && artifact->locked;
    }
  }
  std::free(pieces);
  INGOT_RETURN_IF(code_status(outcome, place));
  return check_mapped_code(*artifact, place);
}

// A program that the integrator would have to link in: this version has no way to register one.
ingot_status check_runnable(const Tables& tables, ingot_error* error) {
  Place place = {error, 27, tables.variant, tables.programs.section, kNone};
  for (place.record = 0; place.record < tables.programs.count; ++place.record) {
    const uint16_t kind = tables.programs[place.record].kind;
    if (kind != INGOT_PROGRAM_HOST) {
      return place.fail(INGOT_E_FEATURE, INGOT_FIELD(IngotProgramRecord, kind), kind,
                        INGOT_PROGRAM_HOST);
    }
  }
  return kOk;
}

// Steps 18 to 26.
ingot_status select_variant(const ingot_artifact& artifact, const ingot_policy& policy,
                            const ingot_host& host, Tables* tables, ingot_error* error) {
  uint32_t chosen = kNone;
  INGOT_RETURN_IF(choose_variant(artifact, policy, host, &chosen, error));
  INGOT_RETURN_IF(find_tables(artifact, chosen, tables, error));
  return check_variant_tables(artifact, *tables, error);
}

void read_host(const ingot_load_options* options, ingot_host* host) {
  if (options != nullptr && options->host != nullptr) {
    *host = *options->host;
  } else {
    ingot_host_read(host);
  }
  for (int i = 0; options != nullptr && i < 4; ++i) {
    host->features[i] &= ~options->hidden_features[i];
  }
}

ingot_status open_steps(ingot_artifact* artifact, const Source& source, const ingot_policy& policy,
                        const ingot_load_options* options, ingot_error* error) {
  INGOT_RETURN_IF(verify_source(artifact, source, policy, error));
  if ((artifact->load_flags & INGOT_LOAD_STOP_AT_VERIFIED) != 0) return kOk;
  INGOT_RETURN_IF(select_variant(*artifact, policy, artifact->host, &artifact->tables, error));
  INGOT_RETURN_IF(check_runnable(artifact->tables, error));
  ingot_host real;
  ingot_host_read(&real);
  artifact->foreign = artifact->tables.record->arch != real.arch ||
                      (options != nullptr && options->host != nullptr &&
                       variant_fits(*artifact->tables.record, real) != kOk);
  if (!artifact->foreign) INGOT_RETURN_IF(map_code_sections(artifact, error));
  artifact->state = INGOT_STATE_COMPATIBLE;
  return kOk;
}

Ceilings ceilings_of(const ingot_policy& policy) {
  return {policy.max_atol, policy.max_rtol, policy.min_cosine, policy.max_ulp,
          policy.require_vectors != 0};
}

bool policy_usable(const ingot_policy& policy) {
#ifndef INGOT_LOADER_ALLOW_UNSIGNED
  if (policy.allow_unsigned != 0) return false;
#endif
  return policy.detached != nullptr || policy.detached_nbytes == 0;
}

ingot_status open_source_as(const Source& source, const ingot_policy* policy,
                            const ingot_load_options* options, ingot_artifact** opened,
                            ingot_error* error) {
  clear_error(error);
  const Place place = {error, 0, kNone, kNone, kNone};
  if (opened != nullptr) *opened = nullptr;
  if (policy == nullptr || opened == nullptr || !policy_usable(*policy)) {
    return place.fail(INGOT_E_STATE);
  }
  auto* artifact = static_cast<ingot_artifact*>(std::calloc(1, sizeof(ingot_artifact)));
  if (artifact == nullptr) return place.fail(INGOT_E_NOMEM);
  artifact->load_flags = options != nullptr ? options->flags : 0;
  const bool portable = (artifact->load_flags & INGOT_LOAD_PORTABLE_HASH) != 0;
  artifact->hash = portable ? sha256_blocks_portable : sha256_select();
  artifact->ceilings = ceilings_of(*policy);
  artifact->run_without_self_test = policy->run_without_self_test != 0;
  artifact->tables.variant = kNone;
  read_host(options, &artifact->host);
  const ingot_status status = open_steps(artifact, source, *policy, options, error);
  if (status != kOk) {
    ingot_close(artifact);
    return status;
  }
  *opened = artifact;
  return kOk;
}

}  // namespace

}  // namespace ingot::loader

using namespace ingot::loader;

ingot_status ingot_open_memory(const void* bytes, size_t nbytes, const ingot_policy* policy,
                               const ingot_load_options* options, ingot_artifact** artifact,
                               ingot_error* error) {
  static const uint8_t nothing = 0;
  const auto* from = bytes != nullptr ? static_cast<const uint8_t*>(bytes) : &nothing;
  const Source source = {from, -1, bytes != nullptr ? nbytes : 0};
  return open_source_as(source, policy, options, artifact, error);
}

ingot_status ingot_open_fd(int fd, const ingot_policy* policy, const ingot_load_options* options,
                           ingot_artifact** artifact, ingot_error* error) {
  Source source = {};
  const ingot_status status = open_source(fd, &source);
  if (status != kOk) {
    if (artifact != nullptr) *artifact = nullptr;
    return Place{error, 1, kNone, kNone, kNone}.fail(status);
  }
  return open_source_as(source, policy, options, artifact, error);
}

ingot_status ingot_close(ingot_artifact* artifact) {
  if (artifact == nullptr) return kOk;
  if (artifact->instances.get() != 0) return INGOT_E_IN_USE;
  unmap(&artifact->code);
  unmap(&artifact->copy);
  std::free(artifact->code_places);
  std::free(artifact);
  return kOk;
}

ingot_status ingot_verify_all_variants(const ingot_artifact* artifact, ingot_error* error) {
  clear_error(error);
  for (uint32_t i = 0; i < artifact->variants.count; ++i) {
    Tables tables;
    INGOT_RETURN_IF(find_tables(*artifact, i, &tables, error));
    INGOT_RETURN_IF(check_variant_tables(*artifact, tables, error));
  }
  return kOk;
}

ingot_status ingot_check_compatible(const ingot_artifact* artifact, const ingot_policy* policy,
                                    const ingot_load_options* options, ingot_error* error) {
  clear_error(error);
  if (policy == nullptr) return Place{error, 0, kNone, kNone, kNone}.fail(INGOT_E_STATE);
  ingot_host host;
  read_host(options, &host);
  INGOT_RETURN_IF(check_acceptance(*artifact, *policy, error));
  // Only numbers and pointers to read-only memory are copied; nothing of the copy is released.
  ingot_artifact under_policy = *artifact;
  under_policy.ceilings = ceilings_of(*policy);
  Tables tables;
  INGOT_RETURN_IF(select_variant(under_policy, *policy, host, &tables, error));
  return check_runnable(tables, error);
}

ingot_status ingot_recheck(ingot_artifact* artifact, uint32_t count, ingot_error* error) {
  clear_error(error);
  Place place = {error, 11, kNone, kNone, kNone};
  const uint32_t blocks = artifact->header.block_count;
  const bool whole = count == 0 || count >= blocks;
  if (whole) {
    count = blocks;
    artifact->block_next = 0;
  }
  for (; count > 0; --count) {
    place.record = artifact->block_next;
    artifact->block_next = place.record + 1 == blocks ? 0 : place.record + 1;
    if (!block_good(*artifact, place.record, block_data(*artifact, place.record))) {
      return place.fail(INGOT_E_BLOCK_DIGEST);
    }
    // The pages that run are another copy; they are few, so they go along with every full round.
    if (artifact->block_next == 0) {
      INGOT_RETURN_IF(check_mapped_code(*artifact, place));
    }
  }
  return kOk;
}

ingot_status ingot_verify_memory(const void* bytes, size_t nbytes, const ingot_policy* policy,
                                 const ingot_load_options* options, uint32_t with_self_test,
                                 ingot_verdicts* verdicts) {
  std::memset(verdicts, 0, sizeof *verdicts);
  clear_error(&verdicts->origin);
  clear_error(&verdicts->compatible);
  clear_error(&verdicts->numbers);
  if (policy == nullptr) return verdicts->origin.number = INGOT_E_STATE;

  // Origin: trust only, every rule of acceptance left for later.
  ingot_policy trust = {};
  trust.keys = policy->keys;
  trust.key_count = policy->key_count;
  trust.threshold = policy->threshold;
  trust.counted_purposes = policy->counted_purposes;
  trust.required_purposes = policy->required_purposes;
  trust.allow_unsigned = policy->allow_unsigned;
  trust.detached = policy->detached;
  trust.detached_nbytes = policy->detached_nbytes;
  trust.max_file_nbytes = policy->max_file_nbytes;
  ingot_load_options inspect = {};
  if (options != nullptr) inspect = *options;
  inspect.flags |= INGOT_LOAD_STOP_AT_VERIFIED;
  ingot_artifact* artifact = nullptr;
  ingot_status status =
      ingot_open_memory(bytes, nbytes, &trust, &inspect, &artifact, &verdicts->origin);
  if (status == kOk) {
    std::memcpy(verdicts->id, artifact->id, 32);
    status = ingot_verify_all_variants(artifact, &verdicts->origin);
  }
  if (status != kOk) {
    ingot_close(artifact);
    return status;
  }
  status = ingot_check_compatible(artifact, policy, options, &verdicts->compatible);
  verdicts->compatible_known = 1;
  ingot_close(artifact);
  if (status != kOk || with_self_test == 0) return status;

  verdicts->numbers_known = 1;
  artifact = nullptr;
  status = ingot_open_memory(bytes, nbytes, policy, options, &artifact, &verdicts->numbers);
  // The bytes were read again; the verdicts must be about one artifact.
  if (status == kOk && std::memcmp(artifact->id, verdicts->id, 32) != 0) {
    status = Place{&verdicts->numbers, 5, kNone, kNone, kNone}.fail(INGOT_E_HEADER_DIGEST,
                                                                    INGOT_HEADER_DIGEST_OFFSET);
  }
  if (status == kOk) {
    status = ingot_self_test(artifact, nullptr, 0, nullptr, &verdicts->numbers);
  }
  ingot_close(artifact);
  return status;
}
