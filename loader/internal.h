// What the files of the loader share: tables of records, the artifact in memory, error places.
#pragma once

#include <cstddef>
#include <cstdint>

#include "artifact/format.h"
#include "loader/bytes.h"
#include "loader/ingot_loader.h"
#include "loader/sha256.h"
#include "loader/system_memory.h"
#include "loader/workers.h"

namespace ingot::loader {

// ---- errors -------------------------------------------------------------------------------------

inline constexpr ingot_status kOk = INGOT_E_NONE;

// Knows where validation stands, so that a failing check only adds what it saw.
struct Place {
  ingot_error* error;
  uint32_t step;
  uint32_t variant;
  uint32_t section;
  uint32_t record;

  ingot_status fail(ingot_status number, uint32_t field = kNone, uint64_t found = 0,
                    uint64_t allowed = 0) const {
    return store(number << 16 | (field & 0xFFFF), found, allowed);
  }

 private:
  // Number and field in one word: there are some 300 callers.
  ingot_status store(uint32_t number_and_field, uint64_t found, uint64_t allowed) const;
};

// Zeros, with "none" in every index. `error` may be null.
void clear_error(ingot_error* error);

#define INGOT_RETURN_IF(expression)                  \
  do {                                               \
    const ingot_status ingot_status_ = (expression); \
    if (ingot_status_ != kOk) return ingot_status_;  \
  } while (false)

// Offset of a field within a record, for error places.
#define INGOT_FIELD(record, field) static_cast<uint32_t>(offsetof(record, field))

// A field of a record and the range that it must be in. Fields longer than 8 bytes must be zero.
struct FieldRule {
  uint16_t offset;
  uint16_t nbytes;
  uint32_t min;
  uint32_t max;
};

#define INGOT_RANGE(record, field, min, max) \
  {offsetof(record, field), sizeof(record::field), min, max}
#define INGOT_ZERO(record, field) INGOT_RANGE(record, field, 0, 0)

// The first field that is out of its range fails with this number.
ingot_status check_fields(const void* record, const FieldRule* rules, size_t count,
                          ingot_status number, const Place& place);

template <size_t kCount>
ingot_status check_fields(const void* record, const FieldRule (&rules)[kCount], ingot_status number,
                          const Place& place) {
  return check_fields(record, rules, kCount, number, place);
}

// ---- tables -------------------------------------------------------------------------------------

// Records of one section, read where they lie: in the private copy, which nobody can write any
// more. Sections start on 256 bytes and the sizes of records are multiples of 16, both checked
// before a table is made.
struct AnyTable {
  const uint8_t* base;
  uint32_t count;
  uint32_t section;  // kNone if there is none
};

template <typename Record>
struct Table : AnyTable {
  const Record& operator[](uint32_t index) const {
    return reinterpret_cast<const Record*>(base)[index];
  }
};

struct Bytes {
  const uint8_t* data;
  uint64_t nbytes;
  uint32_t section;
};

// Everything that belongs to one variant, common sections included.
struct Tables {
  uint32_t variant;
  const IngotVariantRecord* record;  // null until a variant is chosen
  Table<IngotIoRecord> io;
  Table<IngotSliceRecord> slices;
  Table<IngotCameraRecord> cameras;
  Table<IngotRefRecord> refs;
  Bytes refdata;
  Table<IngotArenaRecord> arenas;
  Table<IngotBufferRecord> buffers;
  Table<IngotViewRecord> views;
  Table<IngotParamRecord> params;
  Table<IngotArgRecord> args;
  Table<IngotProgramRecord> programs;
  Table<IngotCallRecord> calls;
  Table<IngotTransformRecord> transforms;
};

// The part of a policy that is needed after loading.
struct Ceilings {
  float max_atol, max_rtol, min_cosine;
  uint32_t max_ulp;
  bool require_vectors;
};

// Where a CODE section was mapped executable.
struct CodePlace {
  uint32_t section;
  const uint8_t* address;
};

}  // namespace ingot::loader

struct ingot_artifact {
  IngotHeader header;  // private copy; the one in `content` is equal
  uint8_t id[32];
  ingot::loader::Mapping copy;  // the whole content, read-only
  const uint8_t* content;
  ingot::loader::Sha256Blocks hash;
  uint32_t load_flags;
  uint32_t state;
  uint32_t signature_count;
  uint32_t counted_keys;
  uint32_t block_next;  // of ingot_recheck
  bool trusted;         // enough keys signed; false only for an accepted unsigned artifact
  bool huge_pages;
  bool locked;
  bool code_sealed;
  bool foreign;  // opened for another machine: never run
  bool run_without_self_test;
  ingot::loader::Ceilings ceilings;
  ingot::loader::Bytes strings;
  ingot::loader::Table<IngotModelRecord> models;
  ingot::loader::Table<IngotVariantRecord> variants;
  ingot::loader::Tables tables;  // of the chosen variant
  ingot_host host;
  ingot::loader::Mapping code;
  ingot::loader::CodePlace* code_places;
  uint32_t code_count;
  mutable ingot::loader::SharedWord instances;

  const IngotSectionEntry& section(uint32_t index) const {
    return reinterpret_cast<const IngotSectionEntry*>(content + INGOT_HEADER_SIZE)[index];
  }
};

namespace ingot::loader {

// Name of a record that was validated; NUL-terminated inside STRINGS.
inline const char* name_of(const ingot_artifact& artifact, IngotName name) {
  return reinterpret_cast<const char*>(artifact.strings.data + name.offset);
}

inline bool has_device(const Tables& tables) {
  return tables.record->device_kind != INGOT_DEVICE_NONE;
}

uint32_t element_size(uint32_t dtype);

// True if all elements touch each other: no padding between them.
bool is_dense(uint32_t dtype, uint32_t rank, const uint32_t* shape, uint64_t nbytes);

// ---- steps of validation, each in a file of its own ---------------------------------------------

// Steps 6 and 7. `read_tail` bytes follow the content in the file.
struct Source;
ingot_status check_signatures(ingot_artifact* artifact, const Source& source,
                              const ingot_policy& policy, ingot_error* error);

// Steps 8 and 9.
ingot_status check_header_fields(const IngotHeader& header, ingot_error* error);
ingot_status check_acceptance(const ingot_artifact& artifact, const ingot_policy& policy,
                              ingot_error* error);

// Steps 12 to 14.
ingot_status check_sections(const ingot_artifact& artifact, ingot_error* error);

// Step 15, and finds the tables of a variant.
ingot_status find_common_tables(ingot_artifact* artifact, ingot_error* error);
ingot_status find_tables(const ingot_artifact& artifact, uint32_t variant, Tables* tables,
                         ingot_error* error);
ingot_status find_cameras(const ingot_artifact& artifact, uint32_t variant,
                          Table<IngotCameraRecord>* cameras, ingot_error* error);

// Step 16; step 17.
ingot_status check_models(const ingot_artifact& artifact, ingot_error* error);
ingot_status check_variants(const ingot_artifact& artifact, ingot_error* error);

// Step 18. Reports the reason of the variant that came furthest if none fits.
ingot_status choose_variant(const ingot_artifact& artifact, const ingot_policy& policy,
                            const ingot_host& host, uint32_t* chosen, ingot_error* error);
ingot_status variant_fits(const IngotVariantRecord& record, const ingot_host& host);

// Steps 19 to 26 of one variant.
ingot_status check_variant_tables(const ingot_artifact& artifact, const Tables& tables,
                                  ingot_error* error);
ingot_status check_interface_tables(const ingot_artifact& artifact, const Tables& tables,
                                    Place place);
ingot_status check_memory_tables(const ingot_artifact& artifact, const Tables& tables, Place place);
ingot_status check_call_tables(const ingot_artifact& artifact, const Tables& tables, Place place);
ingot_status check_transforms(const Tables& tables, Place place);
ingot_status check_references(const ingot_artifact& artifact, const Tables& tables, Place place);
ingot_status check_interface_digest(const ingot_artifact& artifact, const Tables& tables,
                                    Place place);

// A stored name: 1..255 bytes of the alphabet, on its own in STRINGS.
ingot_status check_name(const ingot_artifact& artifact, IngotName name, const Place& place,
                        uint32_t field);
bool same_name(const ingot_artifact& artifact, IngotName a, IngotName b);

// Shape and strides: positive strides, row-major, no overlap. Gives elements and span; false if
// anything is out of bounds.
struct Extent {
  uint64_t elements;
  uint64_t span;
};
bool measure(uint32_t dtype, uint32_t rank, const uint32_t* shape, const uint64_t* strides,
             Extent* extent);

// ---- camera layouts -----------------------------------------------------------------------------

ingot_layout layout_of(const IngotCameraRecord& camera);
bool same_layout(const ingot_layout& a, const ingot_layout& b);
void store_layout(uint64_t to[6], const ingot_layout& layout);

// ---- processor ----------------------------------------------------------------------------------

// Control register of floating-point arithmetic: MXCSR or FPCR.
uint32_t read_fp_control();
void write_fp_control(uint32_t value);

// ---- transforms ---------------------------------------------------------------------------------

// The checks of one matrix, in double precision; 0 or INGOT_E_TRANSFORM_*.
ingot_status check_matrix(const uint8_t matrix[36], uint32_t width, uint32_t height);

}  // namespace ingot::loader
