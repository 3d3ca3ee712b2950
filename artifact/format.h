// The artifact format, version 1: every number that the writer and the loader share.
//
// docs/artifact_format.md explains the rules; this header states the layout. It is the only file
// that the loader takes from outside its own folder, so it stays C99 and C++17 and needs nothing
// but the two headers below. All records are little-endian, naturally aligned and free of implicit
// padding. The loader reads tables in place, through a pointer to the record: it is compiled for a
// little-endian machine with -fno-strict-aliasing, from a copy of the file whose sections start on
// multiples of 256. Whoever cannot say the same copies records out with memcpy.
#ifndef INGOT_ARTIFACT_FORMAT_H
#define INGOT_ARTIFACT_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define INGOT_FORMAT_ASSERT(condition, name) static_assert(condition, #name)
#else
#define INGOT_FORMAT_ASSERT(condition, name) typedef char ingot_assert_##name[(condition) ? 1 : -1]
#endif
#define INGOT_FORMAT_SIZE(type, size) INGOT_FORMAT_ASSERT(sizeof(type) == (size), type##_is_##size)
#define INGOT_FORMAT_OFFSET(type, field, offset) \
  INGOT_FORMAT_ASSERT(offsetof(type, field) == (offset), type##_##field)

// ---------------------------------------------------------------------------------------------
// Container

#define INGOT_MAGIC "\x89ING\r\n\x1a\n"    // 8 bytes
#define INGOT_SIGNATURE_MAGIC "INGSIG1\0"  // 8 bytes
#define INGOT_DETACHED_MAGIC "INGSIGD1"    // 8 bytes
#define INGOT_VERSION_MAJOR 1U
#define INGOT_VERSION_MINOR 0U

#define INGOT_HEADER_SIZE 512U
#define INGOT_HEADER_DIGEST_OFFSET 0x1E0U  // header_sha256 covers the bytes before it
#define INGOT_SECTION_ENTRY_SIZE 64U
#define INGOT_DIGEST_SIZE 32U
#define INGOT_BLOCK_SIZE 65536U
#define INGOT_BLOCK_SIZE_LOG2 16U
#define INGOT_ALIGNMENT 256U
#define INGOT_ALIGNMENT_LOG2 8U
#define INGOT_PAGE_ALIGNMENT 65536U  // body, EXEC and PAGE sections
#define INGOT_SIGNATURE_HEADER_SIZE 32U
#define INGOT_DETACHED_HEADER_SIZE 64U
#define INGOT_MIN_FILE_SIZE 544U      // header and an empty signature block
#define INGOT_MAX_SPAN_SLACK 131072U  // span - size stays below this

#define INGOT_NO_INDEX 0xFFFFFFFFU    // an index that names nothing
#define INGOT_VARIANT_COMMON 0xFFFFU  // a section that belongs to every variant

// Tags of digests, padded with zero bytes: 32 bytes each, the signature domain 64.
#define INGOT_TAG_SIZE 32U
#define INGOT_TAG_MODEL "ingot model identity v1"
#define INGOT_TAG_INTERFACE "ingot interface v1"
#define INGOT_TAG_KEY_ID "ingot key id v1"
#define INGOT_SIGNATURE_DOMAIN "ingot artifact signature v1"
#define INGOT_SIGNATURE_DOMAIN_SIZE 64U
#define INGOT_SIGNED_MESSAGE_SIZE 640U  // domain, entry bytes [0, 64), header

// ---------------------------------------------------------------------------------------------
// Limits

#define INGOT_MAX_CONTENT (UINT64_C(8) << 30)
#define INGOT_MAX_SECTIONS 1024U
#define INGOT_MAX_VARIANTS 32U
#define INGOT_MAX_SIGNATURES 8U
#define INGOT_MAX_KEYS 1024U  // of a trust store
#define INGOT_MIN_SIGNATURE_ENTRY 128U
#define INGOT_MAX_SIGNATURE_ENTRY 8192U
#define INGOT_MAX_MODELS 16U
#define INGOT_MAX_STRINGS (16U << 20)  // bytes of STRINGS
#define INGOT_MAX_NAME 255U
#define INGOT_MAX_IO 256U
#define INGOT_MAX_SLICES 1024U
#define INGOT_MAX_CAMERAS 64U
#define INGOT_MAX_TRANSFORMS 64U
#define INGOT_MAX_ARENAS 16U
#define INGOT_MAX_BUFFERS 4096U
#define INGOT_MAX_VIEWS 65536U
#define INGOT_MAX_PARAMS 65536U
#define INGOT_MAX_CALLS 65536U
#define INGOT_MAX_ARGS 1048576U
#define INGOT_MAX_PROGRAMS 8192U
#define INGOT_MAX_REFS 4096U
#define INGOT_MAX_PROGRAM_PARAMS 32U
#define INGOT_MAX_TENSOR_RANK 8U
#define INGOT_MAX_SLICE_RANK 6U
#define INGOT_MAX_ARENA_BYTES (UINT64_C(64) << 30)
#define INGOT_MAX_STACK_BYTES (1U << 20)
#define INGOT_MAX_SHARED_BYTES (256U << 10)  // local memory of a device work-group
#define INGOT_MAX_THREADS 256U
#define INGOT_MAX_GRID 65535U
#define INGOT_MAX_BLOCK 1024U  // product of the three block sizes
#define INGOT_MAX_CAMERA_BYTES (UINT64_C(2) << 30)
#define INGOT_MAX_TRANSFORM_EXTENT 32768U        // output pixels of a warp, each way
#define INGOT_MAX_ELEMENTS (UINT64_C(1) << 40)   // of a view or slot; fewer than this
#define INGOT_MAX_VIEW_SPAN (UINT64_C(1) << 41)  // bytes; fewer than this
#define INGOT_MAX_DIMENSION (UINT32_C(1) << 31)  // fewer than this
#define INGOT_MIN_ALIGN_LOG2 8U                  // of arenas and buffers
#define INGOT_MAX_ALIGN_LOG2 21U
#define INGOT_MIN_FRAME_PERIOD_US 1000U  // also of max_age_us; 0 says "any"
#define INGOT_MAX_FRAME_PERIOD_US 10000000U
#define INGOT_MIN_IR_VERSION 3U
#define INGOT_MAX_IR_VERSION 64U
#define INGOT_MAX_OPSET 255U

// ---------------------------------------------------------------------------------------------
// Numbers

// Bits of features_required. A loader refuses each bit that it does not know; a writer sets a bit
// if and only if the feature is used. All of these are reserved: the first loader knows none.
#define INGOT_FEATURE_QUEUES (UINT64_C(1) << 0)  // queues 2..7, WAIT and SIGNAL records
#define INGOT_FEATURE_IMAGES (UINT64_C(1) << 1)  // image buffers
#define INGOT_FEATURE_REPEAT (UINT64_C(1) << 2)  // REPEAT records and iteration arguments
#define INGOT_FEATURES_KNOWN UINT64_C(0)

#define INGOT_HASH_SHA256 1U

enum IngotBuildClass {
  INGOT_BUILD_CLASS_DEVELOPMENT = 1,
  INGOT_BUILD_CLASS_CANDIDATE = 2,
  INGOT_BUILD_CLASS_RELEASE = 3
};

enum IngotSectionFlag {
  INGOT_SECTION_REQUIRED = 1,  // set exactly on types below INGOT_FIRST_IGNORABLE_SECTION
  INGOT_SECTION_EXEC = 2,      // set exactly on CODE
  INGOT_SECTION_PAGE = 4       // start and span on 64 KiB
};

enum IngotSectionType {
  INGOT_SECTION_STRINGS = 1,
  INGOT_SECTION_MODEL = 2,
  INGOT_SECTION_IO = 3,
  INGOT_SECTION_SLICES = 4,
  INGOT_SECTION_CAMERA = 5,
  INGOT_SECTION_VARIANTS = 6,
  INGOT_SECTION_REFS = 7,
  INGOT_SECTION_REFDATA = 8,
  INGOT_SECTION_ARENAS = 16,
  INGOT_SECTION_BUFFERS = 17,
  INGOT_SECTION_VIEWS = 18,
  INGOT_SECTION_PARAMS = 19,
  INGOT_SECTION_ARGS = 20,
  INGOT_SECTION_PROGRAMS = 21,
  INGOT_SECTION_CALLS = 22,
  INGOT_SECTION_CODE = 23,
  INGOT_SECTION_DEVCODE = 24,
  INGOT_SECTION_DATA = 25,
  INGOT_SECTION_TRANSFORMS = 26,
  INGOT_SECTION_MANIFEST = 64,
  INGOT_SECTION_PROVENANCE = 65,
  INGOT_SECTION_SBOM = 66,
  INGOT_SECTION_RETARGET = 67,
  INGOT_SECTION_DEBUG = 68
};
#define INGOT_FIRST_IGNORABLE_SECTION 64U

enum IngotDtype {
  INGOT_DTYPE_F32 = 1,
  INGOT_DTYPE_F16 = 2,
  INGOT_DTYPE_BF16 = 3,
  INGOT_DTYPE_F64 = 4,
  INGOT_DTYPE_U8 = 5,
  INGOT_DTYPE_I8 = 6,
  INGOT_DTYPE_I16 = 7,
  INGOT_DTYPE_I32 = 8,
  INGOT_DTYPE_I64 = 9,
  INGOT_DTYPE_BOOL = 10,  // one byte, 0 or 1
  INGOT_DTYPE_U16 = 11,
  INGOT_DTYPE_U32 = 12,
  INGOT_DTYPE_U64 = 13
};

enum IngotPrecision { INGOT_PRECISION_F32 = 1, INGOT_PRECISION_F16 = 2, INGOT_PRECISION_BF16 = 3 };

enum IngotFloatPolicy {
  INGOT_FLOAT_CONTRACT = 1,  // a multiply and an add may be fused
  INGOT_FLOAT_REGROUP = 2    // sums may be regrouped
};

enum IngotDirection {
  INGOT_DIRECTION_INPUT = 1,
  INGOT_DIRECTION_OUTPUT = 2,
  INGOT_DIRECTION_STATE = 3
};

enum IngotSliceFlag { INGOT_SLICE_OVERLAPS = 1 };

enum IngotPixelFormat { INGOT_PIXEL_NV12 = 1, INGOT_PIXEL_NV21 = 2 };
enum IngotSampleRange { INGOT_RANGE_FULL = 1, INGOT_RANGE_LIMITED = 2 };  // 0..255; 16..235/240
enum IngotColourMatrix { INGOT_COLOUR_BT601 = 1, INGOT_COLOUR_BT709 = 2 };
#define INGOT_CAMERA_PLANES 2U

enum IngotTransformKind { INGOT_TRANSFORM_ROAD = 1, INGOT_TRANSFORM_CABIN = 2 };
enum IngotTransformPolicy { INGOT_TRANSFORM_REFUSE = 1, INGOT_TRANSFORM_FILL = 2 };
#define INGOT_TRANSFORM_MATRIX_BYTES 36U  // nine binary32 values, row by row

enum IngotArch { INGOT_ARCH_X86_64 = 1, INGOT_ARCH_AARCH64 = 2 };
enum IngotEndian { INGOT_ENDIAN_LITTLE = 1 };
enum IngotOs { INGOT_OS_LINUX = 1, INGOT_OS_QNX = 2, INGOT_OS_NONE = 3 };
enum IngotCallAbi { INGOT_CALL_ABI_1 = 1 };

// Bits of cpu_features[0]; no bit implies another, the other three words have none yet.
enum IngotX86Feature {
  INGOT_X86_SSE42 = 1 << 0,  // SSE4.2 and POPCNT
  INGOT_X86_AVX2 = 1 << 1,   // AVX2, FMA, BMI1, BMI2, LZCNT, MOVBE
  INGOT_X86_F16C = 1 << 2,
  INGOT_X86_AVX512 = 1 << 3,  // F, BW, DQ, VL, CD
  INGOT_X86_AVX512_VNNI = 1 << 4,
  INGOT_X86_AVX_VNNI = 1 << 5,
  INGOT_X86_AVX512_BF16 = 1 << 6,
  INGOT_X86_AVX512_FP16 = 1 << 7,
  INGOT_X86_AMX_TILE = 1 << 8,
  INGOT_X86_AMX_INT8 = 1 << 9,
  INGOT_X86_AMX_BF16 = 1 << 10,
  INGOT_X86_AMX_FP16 = 1 << 11
};
enum IngotAarch64Feature {
  INGOT_AARCH64_ASIMD = 1 << 0,
  INGOT_AARCH64_FP16 = 1 << 1,
  INGOT_AARCH64_DOTPROD = 1 << 2,
  INGOT_AARCH64_I8MM = 1 << 3,
  INGOT_AARCH64_BF16 = 1 << 4,
  INGOT_AARCH64_FHM = 1 << 5,
  INGOT_AARCH64_SVE = 1 << 6,
  INGOT_AARCH64_SVE2 = 1 << 7,
  INGOT_AARCH64_SME = 1 << 8
};

// The only values of fp_control; anything else could fault when it is loaded.
#define INGOT_FP_X86_DEFAULT 0x1F80U
#define INGOT_FP_X86_FLUSH 0x9FC0U
#define INGOT_FP_AARCH64_DEFAULT 0U
#define INGOT_FP_AARCH64_FLUSH 0x01000000U

enum IngotDeviceKind {
  INGOT_DEVICE_NONE = 0,
  INGOT_DEVICE_CUDA = 1,
  INGOT_DEVICE_HIP = 2,
  INGOT_DEVICE_OPENCL = 3,
  INGOT_DEVICE_VULKAN = 4
};
enum IngotDeviceRule { INGOT_DEVICE_EXACT = 1, INGOT_DEVICE_SAME_MAJOR = 2 };

enum IngotPlace {
  INGOT_PLACE_HOST = 0,
  INGOT_PLACE_DEVICE = 1,
  INGOT_PLACE_IMAGE = 2  // reserved, INGOT_FEATURE_IMAGES
};
enum IngotArenaRole { INGOT_ARENA_FRAME = 1, INGOT_ARENA_STATE = 2 };

enum IngotBufferKind {
  INGOT_BUFFER_INPUT = 1,
  INGOT_BUFFER_OUTPUT = 2,
  INGOT_BUFFER_STATE = 3,
  INGOT_BUFFER_CONST = 4,
  INGOT_BUFFER_SCRATCH = 5,
  INGOT_BUFFER_NEXT_STATE = 6
};
enum IngotBufferFlag { INGOT_BUFFER_CALLER_MEMORY = 1, INGOT_BUFFER_IN_PLACE = 2 };

enum IngotAccess { INGOT_ACCESS_READ = 1, INGOT_ACCESS_WRITE = 2, INGOT_ACCESS_BOTH = 3 };

// What a parameter is, and what a call passes for it.
enum IngotArgKind {
  INGOT_ARG_VIEW = 0,
  INGOT_ARG_IMMEDIATE = 1,
  INGOT_ARG_ITERATION = 2  // reserved, INGOT_FEATURE_REPEAT; passed for an immediate
};

enum IngotProgramKind {
  INGOT_PROGRAM_HOST = 1,
  INGOT_PROGRAM_DEVICE = 2,
  INGOT_PROGRAM_BUILT_IN = 3
};

enum IngotCallKind {
  INGOT_CALL_PROGRAM = 1,
  INGOT_CALL_COPY = 2,
  INGOT_CALL_BARRIER = 3,
  INGOT_CALL_FILL = 4,
  INGOT_CALL_WAIT = 5,    // reserved, INGOT_FEATURE_QUEUES
  INGOT_CALL_SIGNAL = 6,  // reserved, INGOT_FEATURE_QUEUES
  INGOT_CALL_REPEAT = 7   // reserved, INGOT_FEATURE_REPEAT
};
#define INGOT_QUEUE_HOST 0U
#define INGOT_QUEUE_DEVICE 1U
#define INGOT_MAX_QUEUE 7U             // 2..7 reserved, INGOT_FEATURE_QUEUES
#define INGOT_MAX_EVENT 63U            // immediate of WAIT and SIGNAL
#define INGOT_MAX_REPEAT_COUNT 65535U  // grid[1] of REPEAT; grid[0] is the number of records

enum IngotCompare {
  INGOT_COMPARE_NONE = 0,  // inputs
  INGOT_COMPARE_EXACT = 1,
  INGOT_COMPARE_ABS_REL = 2,
  INGOT_COMPARE_ULP = 3,
  INGOT_COMPARE_COSINE = 4  // and absolute
};
enum IngotRefFlag { INGOT_REF_NAN_MATCHES = 1 };
enum IngotOrigin {
  INGOT_ORIGIN_OWN_DOUBLE = 1,
  INGOT_ORIGIN_ONNX_RUNTIME = 2,
  INGOT_ORIGIN_FRAMEWORK = 3,
  INGOT_ORIGIN_MEASURED = 4
};

enum IngotSignatureAlgorithm { INGOT_SIGNATURE_ED25519 = 1 };
enum IngotPurpose {
  INGOT_PURPOSE_DEVELOPMENT = 1,
  INGOT_PURPOSE_RELEASE = 2,
  INGOT_PURPOSE_FLEET = 3,
  INGOT_PURPOSE_SUPPLIER = 4
};

// ---------------------------------------------------------------------------------------------
// Errors: X(NAME, number, exit code of the tool; 0 where the tool has none). One meaning each.

#define INGOT_ERROR_LIST(X)         \
  /* damage */                      \
  X(TRUNCATED, 101, 5)              \
  X(TOO_LARGE, 102, 5)              \
  X(MAGIC, 103, 5)                  \
  X(VERSION, 104, 6)                \
  X(HEADER_SIZE, 105, 5)            \
  X(HEADER_DIGEST, 106, 5)          \
  X(SIZE_MISMATCH, 107, 5)          \
  X(META_DIGEST, 108, 5)            \
  X(BLOCK_DIGEST, 109, 5)           \
  X(PADDING, 110, 5)                \
  /* origin */                      \
  X(SIG_BLOCK, 201, 5)              \
  X(UNSIGNED, 202, 5)               \
  X(KEY_UNKNOWN, 203, 5)            \
  X(SIG_INVALID, 204, 5)            \
  X(SIG_POLICY, 205, 5)             \
  X(KEY_REVOKED, 206, 5)            \
  X(SIG_DUPLICATE, 207, 5)          \
  X(KEY_WEAK, 208, 5)               \
  X(DETACHED_MISMATCH, 209, 5)      \
  /* acceptance */                  \
  X(FEATURE, 301, 6)                \
  X(DENYLISTED, 302, 6)             \
  X(PRODUCT, 303, 6)                \
  X(BUILD_CLASS, 304, 6)            \
  X(COUNTER, 305, 6)                \
  X(LIMIT, 306, 6)                  \
  X(INTERFACE, 307, 6)              \
  X(LAYOUT, 308, 6)                 \
  X(SELFTEST_MISSING, 309, 6)       \
  X(TOLERANCE, 310, 6)              \
  /* structure */                   \
  X(RESERVED, 401, 5)               \
  X(HEADER_FIELD, 402, 5)           \
  X(SECTION_TABLE, 403, 5)          \
  X(SECTION_LAYOUT, 404, 5)         \
  X(SECTION_UNKNOWN, 405, 6)        \
  X(SECTION_DUPLICATE, 406, 5)      \
  X(SECTION_MISSING, 407, 5)        \
  X(STRING, 408, 5)                 \
  X(MODEL, 409, 5)                  \
  X(CAMERA, 410, 5)                 \
  X(IO, 411, 5)                     \
  X(SLICE, 412, 5)                  \
  X(VARIANT, 413, 5)                \
  X(ARENA, 414, 5)                  \
  X(BUFFER, 415, 5)                 \
  X(BUFFER_OVERLAP, 416, 5)         \
  X(INIT, 417, 5)                   \
  X(VIEW, 418, 5)                   \
  X(PARAM, 419, 5)                  \
  X(PROGRAM, 420, 5)                \
  X(CALL, 421, 5)                   \
  X(CALL_ACCESS, 422, 5)            \
  X(CALL_ORDER, 423, 5)             \
  X(REFVEC, 424, 5)                 \
  X(MANIFEST, 425, 5)               \
  X(TRANSFORM, 426, 5)              \
  /* device */                      \
  X(ARCH, 501, 6)                   \
  X(ABI, 502, 6)                    \
  X(CPU_FEATURE, 503, 6)            \
  X(OS_FEATURE, 504, 6)             \
  X(PAGE_SIZE, 505, 6)              \
  X(DEVICE, 506, 6)                 \
  /* system */                      \
  X(SYSTEM_IO, 601, 8)              \
  X(NOMEM, 602, 8)                  \
  X(EXEC_DENIED, 603, 8)            \
  X(SEAL, 604, 8)                   \
  X(WORKSPACE, 605, 8)              \
  /* numbers */                     \
  X(SELFTEST, 701, 7)               \
  /* use */                         \
  X(STATE, 801, 0)                  \
  X(ARG_NULL, 802, 0)               \
  X(ARG_DTYPE, 803, 0)              \
  X(ARG_RANK, 804, 0)               \
  X(ARG_SHAPE, 805, 0)              \
  X(ARG_STRIDE, 806, 0)             \
  X(ARG_LENGTH, 807, 0)             \
  X(ARG_ALIGNMENT, 808, 0)          \
  X(ARG_MEMORY, 809, 0)             \
  X(ARG_MISSING, 810, 0)            \
  X(ARG_UNKNOWN, 811, 0)            \
  X(ARG_DUPLICATE, 812, 0)          \
  X(ARG_OVERLAP, 813, 0)            \
  X(ARG_LAYOUT, 814, 0)             \
  X(ARG_GENERATION, 815, 0)         \
  X(RUN_FAILED, 820, 0)             \
  X(OUTPUT_NONFINITE, 821, 0)       \
  X(INDEX_CLAMPED, 822, 0)          \
  X(DEADLINE, 823, 0)               \
  X(TRANSFORM_NOT_FINITE, 830, 3)   \
  X(TRANSFORM_NONE_YET, 831, 3)     \
  X(TRANSFORM_DEGENERATE, 832, 3)   \
  X(TRANSFORM_OUT_OF_RANGE, 833, 3) \
  X(WORKER_LIMIT, 840, 0)           \
  X(WORKER_NUMBER, 841, 0)          \
  X(WORKER_TAKEN, 842, 0)           \
  X(IN_USE, 843, 0)

enum IngotErrorNumber {
  INGOT_E_NONE = 0,
#define INGOT_ERROR_ENUMERATOR(name, number, exit_code) INGOT_E_##name = number,
  INGOT_ERROR_LIST(INGOT_ERROR_ENUMERATOR)
#undef INGOT_ERROR_ENUMERATOR
      INGOT_E_END = 1000
};

// ---------------------------------------------------------------------------------------------
// Code

// A program of call convention 1: addresses of the views and values of the immediates, each in
// parameter order, the part [first, last) of the outer range, and the number of the worker.
// Returns 0, bit 0 for a clamped index; any other bit means that it failed.
typedef int32_t (*IngotProgram)(const void* const* buffers, const uint64_t* scalars, uint32_t first,
                                uint32_t last, uint32_t worker);
#define INGOT_PROGRAM_INDEX_CLAMPED 1

// ---------------------------------------------------------------------------------------------
// Records

// A place in STRINGS. An optional name that is absent is {0, 0}.
typedef struct IngotName {
  uint32_t offset;
  uint32_t length;  // without the NUL
} IngotName;
INGOT_FORMAT_SIZE(IngotName, 8);

typedef struct IngotHeader {
  uint8_t magic[8];
  uint16_t version_major;
  uint16_t version_minor;
  uint32_t header_size;
  uint64_t content_size;
  uint64_t body_offset;
  uint64_t section_table_offset;
  uint32_t section_count;
  uint32_t section_entry_size;
  uint64_t digest_table_offset;
  uint32_t block_count;
  uint32_t block_size_log2;
  uint64_t features_required;
  uint64_t features_optional;
  uint64_t security_counter;
  uint32_t hash_algorithm;
  uint32_t build_class;
  uint32_t variant_count;
  uint32_t alignment_log2;
  uint64_t max_host_arena;
  uint64_t max_device_arena;
  uint64_t reserved_78;
  uint8_t meta_sha256[32];
  uint8_t model_sha256[32];
  uint8_t reserved_c0[64];
  uint32_t producer[3];
  uint32_t reserved_10c;
  char product[32];        // a-z 0-9 - . padded with NUL
  char device_family[32];  // likewise, or all NUL
  uint8_t reserved_150[144];
  uint8_t header_sha256[32];
} IngotHeader;
INGOT_FORMAT_SIZE(IngotHeader, 512);
INGOT_FORMAT_OFFSET(IngotHeader, magic, 0x000);
INGOT_FORMAT_OFFSET(IngotHeader, version_major, 0x008);
INGOT_FORMAT_OFFSET(IngotHeader, version_minor, 0x00A);
INGOT_FORMAT_OFFSET(IngotHeader, header_size, 0x00C);
INGOT_FORMAT_OFFSET(IngotHeader, content_size, 0x010);
INGOT_FORMAT_OFFSET(IngotHeader, body_offset, 0x018);
INGOT_FORMAT_OFFSET(IngotHeader, section_table_offset, 0x020);
INGOT_FORMAT_OFFSET(IngotHeader, section_count, 0x028);
INGOT_FORMAT_OFFSET(IngotHeader, section_entry_size, 0x02C);
INGOT_FORMAT_OFFSET(IngotHeader, digest_table_offset, 0x030);
INGOT_FORMAT_OFFSET(IngotHeader, block_count, 0x038);
INGOT_FORMAT_OFFSET(IngotHeader, block_size_log2, 0x03C);
INGOT_FORMAT_OFFSET(IngotHeader, features_required, 0x040);
INGOT_FORMAT_OFFSET(IngotHeader, features_optional, 0x048);
INGOT_FORMAT_OFFSET(IngotHeader, security_counter, 0x050);
INGOT_FORMAT_OFFSET(IngotHeader, hash_algorithm, 0x058);
INGOT_FORMAT_OFFSET(IngotHeader, build_class, 0x05C);
INGOT_FORMAT_OFFSET(IngotHeader, variant_count, 0x060);
INGOT_FORMAT_OFFSET(IngotHeader, alignment_log2, 0x064);
INGOT_FORMAT_OFFSET(IngotHeader, max_host_arena, 0x068);
INGOT_FORMAT_OFFSET(IngotHeader, max_device_arena, 0x070);
INGOT_FORMAT_OFFSET(IngotHeader, reserved_78, 0x078);
INGOT_FORMAT_OFFSET(IngotHeader, meta_sha256, 0x080);
INGOT_FORMAT_OFFSET(IngotHeader, model_sha256, 0x0A0);
INGOT_FORMAT_OFFSET(IngotHeader, reserved_c0, 0x0C0);
INGOT_FORMAT_OFFSET(IngotHeader, producer, 0x100);
INGOT_FORMAT_OFFSET(IngotHeader, reserved_10c, 0x10C);
INGOT_FORMAT_OFFSET(IngotHeader, product, 0x110);
INGOT_FORMAT_OFFSET(IngotHeader, device_family, 0x130);
INGOT_FORMAT_OFFSET(IngotHeader, reserved_150, 0x150);
INGOT_FORMAT_OFFSET(IngotHeader, header_sha256, 0x1E0);

typedef struct IngotSectionEntry {
  uint32_t type;
  uint16_t variant;
  uint16_t flags;
  uint64_t offset;
  uint64_t size;
  uint64_t span;
  uint32_t entry_size;
  uint32_t entry_count;
  uint32_t index;
  uint8_t reserved[20];
} IngotSectionEntry;
INGOT_FORMAT_SIZE(IngotSectionEntry, 64);
INGOT_FORMAT_OFFSET(IngotSectionEntry, type, 0x00);
INGOT_FORMAT_OFFSET(IngotSectionEntry, variant, 0x04);
INGOT_FORMAT_OFFSET(IngotSectionEntry, flags, 0x06);
INGOT_FORMAT_OFFSET(IngotSectionEntry, offset, 0x08);
INGOT_FORMAT_OFFSET(IngotSectionEntry, size, 0x10);
INGOT_FORMAT_OFFSET(IngotSectionEntry, span, 0x18);
INGOT_FORMAT_OFFSET(IngotSectionEntry, entry_size, 0x20);
INGOT_FORMAT_OFFSET(IngotSectionEntry, entry_count, 0x24);
INGOT_FORMAT_OFFSET(IngotSectionEntry, index, 0x28);
INGOT_FORMAT_OFFSET(IngotSectionEntry, reserved, 0x2C);

typedef struct IngotModelRecord {
  uint8_t onnx_sha256[32];
  uint8_t external_sha256[32];
  uint8_t pipeline_sha256[32];
  uint32_t ir_version;
  uint32_t opset;
  IngotName producer;    // optional
  IngotName graph_name;  // optional
  IngotName domain;      // optional
  uint64_t model_version;
  uint32_t precision;
  uint32_t frame_period_us;
  uint32_t float_policy;
  uint8_t reserved[108];
} IngotModelRecord;
INGOT_FORMAT_SIZE(IngotModelRecord, 256);
INGOT_FORMAT_OFFSET(IngotModelRecord, onnx_sha256, 0x00);
INGOT_FORMAT_OFFSET(IngotModelRecord, external_sha256, 0x20);
INGOT_FORMAT_OFFSET(IngotModelRecord, pipeline_sha256, 0x40);
INGOT_FORMAT_OFFSET(IngotModelRecord, ir_version, 0x60);
INGOT_FORMAT_OFFSET(IngotModelRecord, opset, 0x64);
INGOT_FORMAT_OFFSET(IngotModelRecord, producer, 0x68);
INGOT_FORMAT_OFFSET(IngotModelRecord, graph_name, 0x70);
INGOT_FORMAT_OFFSET(IngotModelRecord, domain, 0x78);
INGOT_FORMAT_OFFSET(IngotModelRecord, model_version, 0x80);
INGOT_FORMAT_OFFSET(IngotModelRecord, precision, 0x88);
INGOT_FORMAT_OFFSET(IngotModelRecord, frame_period_us, 0x8C);
INGOT_FORMAT_OFFSET(IngotModelRecord, float_policy, 0x90);
INGOT_FORMAT_OFFSET(IngotModelRecord, reserved, 0x94);

typedef struct IngotIoRecord {
  IngotName name;
  uint8_t direction;
  uint8_t rank;
  uint16_t dtype;
  uint32_t camera;
  uint64_t nbytes;          // what the caller provides or receives, padding included
  uint64_t logical_nbytes;  // elements times element size; 0 if a dimension is 0
  uint32_t shape[8];
  uint64_t strides[8];  // bytes, positive up to rank
} IngotIoRecord;
INGOT_FORMAT_SIZE(IngotIoRecord, 128);
INGOT_FORMAT_OFFSET(IngotIoRecord, name, 0x00);
INGOT_FORMAT_OFFSET(IngotIoRecord, direction, 0x08);
INGOT_FORMAT_OFFSET(IngotIoRecord, rank, 0x09);
INGOT_FORMAT_OFFSET(IngotIoRecord, dtype, 0x0A);
INGOT_FORMAT_OFFSET(IngotIoRecord, camera, 0x0C);
INGOT_FORMAT_OFFSET(IngotIoRecord, nbytes, 0x10);
INGOT_FORMAT_OFFSET(IngotIoRecord, logical_nbytes, 0x18);
INGOT_FORMAT_OFFSET(IngotIoRecord, shape, 0x20);
INGOT_FORMAT_OFFSET(IngotIoRecord, strides, 0x40);

typedef struct IngotSliceRecord {
  IngotName name;
  uint32_t io;
  uint16_t dtype;
  uint8_t rank;
  uint8_t flags;
  uint64_t offset;  // bytes from the start of the slot
  uint64_t nbytes;
  uint32_t shape[6];
  uint32_t camera;
  uint32_t reserved;
} IngotSliceRecord;
INGOT_FORMAT_SIZE(IngotSliceRecord, 64);
INGOT_FORMAT_OFFSET(IngotSliceRecord, name, 0x00);
INGOT_FORMAT_OFFSET(IngotSliceRecord, io, 0x08);
INGOT_FORMAT_OFFSET(IngotSliceRecord, dtype, 0x0C);
INGOT_FORMAT_OFFSET(IngotSliceRecord, rank, 0x0E);
INGOT_FORMAT_OFFSET(IngotSliceRecord, flags, 0x0F);
INGOT_FORMAT_OFFSET(IngotSliceRecord, offset, 0x10);
INGOT_FORMAT_OFFSET(IngotSliceRecord, nbytes, 0x18);
INGOT_FORMAT_OFFSET(IngotSliceRecord, shape, 0x20);
INGOT_FORMAT_OFFSET(IngotSliceRecord, camera, 0x38);
INGOT_FORMAT_OFFSET(IngotSliceRecord, reserved, 0x3C);

typedef struct IngotCameraRecord {
  IngotName name;
  uint32_t width;   // pixels
  uint32_t height;  // rows
  uint32_t stride;  // bytes, both planes
  uint32_t y_height;
  uint32_t uv_height;
  uint16_t pixel_format;
  uint16_t planes;
  uint64_t uv_offset;
  uint64_t copy_nbytes;
  uint64_t buffer_nbytes;
  uint16_t sample_range;
  uint16_t colour_matrix;
  uint32_t max_age_us;  // oldest frame that may be used; 0: not stated
  uint8_t reserved[64];
} IngotCameraRecord;
INGOT_FORMAT_SIZE(IngotCameraRecord, 128);
INGOT_FORMAT_OFFSET(IngotCameraRecord, name, 0x00);
INGOT_FORMAT_OFFSET(IngotCameraRecord, width, 0x08);
INGOT_FORMAT_OFFSET(IngotCameraRecord, height, 0x0C);
INGOT_FORMAT_OFFSET(IngotCameraRecord, stride, 0x10);
INGOT_FORMAT_OFFSET(IngotCameraRecord, y_height, 0x14);
INGOT_FORMAT_OFFSET(IngotCameraRecord, uv_height, 0x18);
INGOT_FORMAT_OFFSET(IngotCameraRecord, pixel_format, 0x1C);
INGOT_FORMAT_OFFSET(IngotCameraRecord, planes, 0x1E);
INGOT_FORMAT_OFFSET(IngotCameraRecord, uv_offset, 0x20);
INGOT_FORMAT_OFFSET(IngotCameraRecord, copy_nbytes, 0x28);
INGOT_FORMAT_OFFSET(IngotCameraRecord, buffer_nbytes, 0x30);
INGOT_FORMAT_OFFSET(IngotCameraRecord, sample_range, 0x38);
INGOT_FORMAT_OFFSET(IngotCameraRecord, colour_matrix, 0x3A);
INGOT_FORMAT_OFFSET(IngotCameraRecord, max_age_us, 0x3C);
INGOT_FORMAT_OFFSET(IngotCameraRecord, reserved, 0x40);

// One matrix that the loader checks before every frame. With REFUSE the five fields from
// fill_buffer on are none or zero. With FILL and a bad matrix, the calls [first_call, last_call]
// are skipped and the fill buffer gets, from fill_offset on, width * height bytes of fill_luma and
// (road) width * height / 2 bytes of fill_chroma. Records with the same range of calls share their
// fate: one bad matrix fills for all of them.
typedef struct IngotTransformRecord {
  uint32_t io;             // input slot that holds the matrix, f32 or u8, dense
  uint32_t camera;         // layout of the source frame, or none
  uint64_t matrix_offset;  // bytes from the start of the slot, a multiple of 4
  uint32_t width;          // output of the warp, pixels
  uint32_t height;
  uint16_t kind;
  uint16_t policy;
  uint32_t fill_buffer;  // SCRATCH, OUTPUT or NEXT_STATE in host memory
  uint32_t first_call;
  uint32_t last_call;    // inclusive
  uint64_t fill_offset;  // bytes from the start of the buffer
  uint8_t fill_luma;
  uint8_t fill_chroma;  // 0 for the cabin kind
  uint8_t reserved[14];
} IngotTransformRecord;
INGOT_FORMAT_SIZE(IngotTransformRecord, 64);
INGOT_FORMAT_OFFSET(IngotTransformRecord, io, 0x00);
INGOT_FORMAT_OFFSET(IngotTransformRecord, camera, 0x04);
INGOT_FORMAT_OFFSET(IngotTransformRecord, matrix_offset, 0x08);
INGOT_FORMAT_OFFSET(IngotTransformRecord, width, 0x10);
INGOT_FORMAT_OFFSET(IngotTransformRecord, height, 0x14);
INGOT_FORMAT_OFFSET(IngotTransformRecord, kind, 0x18);
INGOT_FORMAT_OFFSET(IngotTransformRecord, policy, 0x1A);
INGOT_FORMAT_OFFSET(IngotTransformRecord, fill_buffer, 0x1C);
INGOT_FORMAT_OFFSET(IngotTransformRecord, first_call, 0x20);
INGOT_FORMAT_OFFSET(IngotTransformRecord, last_call, 0x24);
INGOT_FORMAT_OFFSET(IngotTransformRecord, fill_offset, 0x28);
INGOT_FORMAT_OFFSET(IngotTransformRecord, fill_luma, 0x30);
INGOT_FORMAT_OFFSET(IngotTransformRecord, fill_chroma, 0x31);
INGOT_FORMAT_OFFSET(IngotTransformRecord, reserved, 0x32);

typedef struct IngotVariantRecord {
  IngotName name;
  uint16_t arch;
  uint16_t endian;
  uint16_t os;
  uint16_t call_abi;
  uint64_t cpu_features[4];
  uint64_t xcr0;
  uint32_t sve_bits;
  uint32_t max_page_size;
  uint32_t fp_control;
  uint32_t threads;
  uint16_t device_kind;
  uint16_t device_arch_rule;
  uint32_t device_arch;
  uint32_t driver_min[2];
  uint64_t device_memory;
  uint64_t host_arena_bytes;
  uint64_t device_arena_bytes;
  uint32_t stack_bytes;
  uint32_t priority;
  char device_name[32];  // padded with NUL; not terminated if 32 long
  uint8_t interface_sha256[32];
  uint8_t reserved[72];
} IngotVariantRecord;
INGOT_FORMAT_SIZE(IngotVariantRecord, 256);
INGOT_FORMAT_OFFSET(IngotVariantRecord, name, 0x00);
INGOT_FORMAT_OFFSET(IngotVariantRecord, arch, 0x08);
INGOT_FORMAT_OFFSET(IngotVariantRecord, endian, 0x0A);
INGOT_FORMAT_OFFSET(IngotVariantRecord, os, 0x0C);
INGOT_FORMAT_OFFSET(IngotVariantRecord, call_abi, 0x0E);
INGOT_FORMAT_OFFSET(IngotVariantRecord, cpu_features, 0x10);
INGOT_FORMAT_OFFSET(IngotVariantRecord, xcr0, 0x30);
INGOT_FORMAT_OFFSET(IngotVariantRecord, sve_bits, 0x38);
INGOT_FORMAT_OFFSET(IngotVariantRecord, max_page_size, 0x3C);
INGOT_FORMAT_OFFSET(IngotVariantRecord, fp_control, 0x40);
INGOT_FORMAT_OFFSET(IngotVariantRecord, threads, 0x44);
INGOT_FORMAT_OFFSET(IngotVariantRecord, device_kind, 0x48);
INGOT_FORMAT_OFFSET(IngotVariantRecord, device_arch_rule, 0x4A);
INGOT_FORMAT_OFFSET(IngotVariantRecord, device_arch, 0x4C);
INGOT_FORMAT_OFFSET(IngotVariantRecord, driver_min, 0x50);
INGOT_FORMAT_OFFSET(IngotVariantRecord, device_memory, 0x58);
INGOT_FORMAT_OFFSET(IngotVariantRecord, host_arena_bytes, 0x60);
INGOT_FORMAT_OFFSET(IngotVariantRecord, device_arena_bytes, 0x68);
INGOT_FORMAT_OFFSET(IngotVariantRecord, stack_bytes, 0x70);
INGOT_FORMAT_OFFSET(IngotVariantRecord, priority, 0x74);
INGOT_FORMAT_OFFSET(IngotVariantRecord, device_name, 0x78);
INGOT_FORMAT_OFFSET(IngotVariantRecord, interface_sha256, 0x98);
INGOT_FORMAT_OFFSET(IngotVariantRecord, reserved, 0xB8);

typedef struct IngotArenaRecord {
  uint64_t nbytes;
  uint32_t align_log2;
  uint16_t memory;
  uint16_t role;
  uint8_t reserved[16];
} IngotArenaRecord;
INGOT_FORMAT_SIZE(IngotArenaRecord, 32);
INGOT_FORMAT_OFFSET(IngotArenaRecord, nbytes, 0x00);
INGOT_FORMAT_OFFSET(IngotArenaRecord, align_log2, 0x08);
INGOT_FORMAT_OFFSET(IngotArenaRecord, memory, 0x0C);
INGOT_FORMAT_OFFSET(IngotArenaRecord, role, 0x0E);
INGOT_FORMAT_OFFSET(IngotArenaRecord, reserved, 0x10);

typedef struct IngotBufferRecord {
  uint32_t id;
  uint8_t kind;
  uint8_t memory;
  uint16_t align_log2;
  uint64_t nbytes;
  uint64_t arena_offset;
  uint32_t arena;
  uint32_t io;
  uint32_t init_section;  // row of the section table
  uint32_t first_call;
  uint32_t last_call;  // inclusive
  uint32_t flags;
  uint64_t init_offset;  // bytes from the start of the section
  uint64_t init_nbytes;
} IngotBufferRecord;
INGOT_FORMAT_SIZE(IngotBufferRecord, 64);
INGOT_FORMAT_OFFSET(IngotBufferRecord, id, 0x00);
INGOT_FORMAT_OFFSET(IngotBufferRecord, kind, 0x04);
INGOT_FORMAT_OFFSET(IngotBufferRecord, memory, 0x05);
INGOT_FORMAT_OFFSET(IngotBufferRecord, align_log2, 0x06);
INGOT_FORMAT_OFFSET(IngotBufferRecord, nbytes, 0x08);
INGOT_FORMAT_OFFSET(IngotBufferRecord, arena_offset, 0x10);
INGOT_FORMAT_OFFSET(IngotBufferRecord, arena, 0x18);
INGOT_FORMAT_OFFSET(IngotBufferRecord, io, 0x1C);
INGOT_FORMAT_OFFSET(IngotBufferRecord, init_section, 0x20);
INGOT_FORMAT_OFFSET(IngotBufferRecord, first_call, 0x24);
INGOT_FORMAT_OFFSET(IngotBufferRecord, last_call, 0x28);
INGOT_FORMAT_OFFSET(IngotBufferRecord, flags, 0x2C);
INGOT_FORMAT_OFFSET(IngotBufferRecord, init_offset, 0x30);
INGOT_FORMAT_OFFSET(IngotBufferRecord, init_nbytes, 0x38);

typedef struct IngotViewRecord {
  uint32_t buffer;
  uint16_t dtype;
  uint8_t rank;
  uint8_t flags;  // 0
  uint64_t offset;
  uint64_t nbytes;  // exact span; 0 if a dimension is 0
  uint64_t reserved;
  uint32_t shape[8];
  uint64_t strides[8];
} IngotViewRecord;
INGOT_FORMAT_SIZE(IngotViewRecord, 128);
INGOT_FORMAT_OFFSET(IngotViewRecord, buffer, 0x00);
INGOT_FORMAT_OFFSET(IngotViewRecord, dtype, 0x04);
INGOT_FORMAT_OFFSET(IngotViewRecord, rank, 0x06);
INGOT_FORMAT_OFFSET(IngotViewRecord, flags, 0x07);
INGOT_FORMAT_OFFSET(IngotViewRecord, offset, 0x08);
INGOT_FORMAT_OFFSET(IngotViewRecord, nbytes, 0x10);
INGOT_FORMAT_OFFSET(IngotViewRecord, reserved, 0x18);
INGOT_FORMAT_OFFSET(IngotViewRecord, shape, 0x20);
INGOT_FORMAT_OFFSET(IngotViewRecord, strides, 0x40);

// An immediate has nbytes 8, dtype u64, access READ and align_log2 0.
typedef struct IngotParamRecord {
  uint64_t nbytes;  // extent that the code touches from the address it is given; 0 is legal
  uint16_t dtype;
  uint8_t access;
  uint8_t align_log2;
  uint8_t kind;  // INGOT_ARG_VIEW or INGOT_ARG_IMMEDIATE
  uint8_t reserved[3];
} IngotParamRecord;
INGOT_FORMAT_SIZE(IngotParamRecord, 16);
INGOT_FORMAT_OFFSET(IngotParamRecord, nbytes, 0x00);
INGOT_FORMAT_OFFSET(IngotParamRecord, dtype, 0x08);
INGOT_FORMAT_OFFSET(IngotParamRecord, access, 0x0A);
INGOT_FORMAT_OFFSET(IngotParamRecord, align_log2, 0x0B);
INGOT_FORMAT_OFFSET(IngotParamRecord, kind, 0x0C);
INGOT_FORMAT_OFFSET(IngotParamRecord, reserved, 0x0D);

// A view has immediate 0; an immediate has view none and access READ.
typedef struct IngotArgRecord {
  uint32_t view;
  uint8_t access;
  uint8_t kind;
  uint16_t reserved;
  uint64_t immediate;
} IngotArgRecord;
INGOT_FORMAT_SIZE(IngotArgRecord, 16);
INGOT_FORMAT_OFFSET(IngotArgRecord, view, 0x00);
INGOT_FORMAT_OFFSET(IngotArgRecord, access, 0x04);
INGOT_FORMAT_OFFSET(IngotArgRecord, kind, 0x05);
INGOT_FORMAT_OFFSET(IngotArgRecord, reserved, 0x06);
INGOT_FORMAT_OFFSET(IngotArgRecord, immediate, 0x08);

typedef struct IngotProgramRecord {
  IngotName name;
  uint16_t kind;
  uint16_t param_count;
  uint32_t code_section;  // row of the section table; none for built-in programs
  uint64_t entry_offset;  // bytes from the start of the section
  uint64_t code_nbytes;
  uint32_t param_first;
  uint32_t stack_bytes;
  uint32_t flags;    // 0
  IngotName symbol;  // device programs only
  uint32_t shared_bytes;
  uint32_t threads;
  uint32_t reserved;
} IngotProgramRecord;
INGOT_FORMAT_SIZE(IngotProgramRecord, 64);
INGOT_FORMAT_OFFSET(IngotProgramRecord, name, 0x00);
INGOT_FORMAT_OFFSET(IngotProgramRecord, kind, 0x08);
INGOT_FORMAT_OFFSET(IngotProgramRecord, param_count, 0x0A);
INGOT_FORMAT_OFFSET(IngotProgramRecord, code_section, 0x0C);
INGOT_FORMAT_OFFSET(IngotProgramRecord, entry_offset, 0x10);
INGOT_FORMAT_OFFSET(IngotProgramRecord, code_nbytes, 0x18);
INGOT_FORMAT_OFFSET(IngotProgramRecord, param_first, 0x20);
INGOT_FORMAT_OFFSET(IngotProgramRecord, stack_bytes, 0x24);
INGOT_FORMAT_OFFSET(IngotProgramRecord, flags, 0x28);
INGOT_FORMAT_OFFSET(IngotProgramRecord, symbol, 0x2C);
INGOT_FORMAT_OFFSET(IngotProgramRecord, shared_bytes, 0x34);
INGOT_FORMAT_OFFSET(IngotProgramRecord, threads, 0x38);
INGOT_FORMAT_OFFSET(IngotProgramRecord, reserved, 0x3C);

typedef struct IngotCallRecord {
  uint16_t kind;
  uint16_t queue;
  uint32_t flags;  // 0
  uint32_t program;
  uint32_t arg_first;
  uint32_t arg_count;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t reserved_2c;
  uint64_t immediate;
  uint32_t reserved_38;
  uint32_t source;  // debug number, free
} IngotCallRecord;
INGOT_FORMAT_SIZE(IngotCallRecord, 64);
INGOT_FORMAT_OFFSET(IngotCallRecord, kind, 0x00);
INGOT_FORMAT_OFFSET(IngotCallRecord, queue, 0x02);
INGOT_FORMAT_OFFSET(IngotCallRecord, flags, 0x04);
INGOT_FORMAT_OFFSET(IngotCallRecord, program, 0x08);
INGOT_FORMAT_OFFSET(IngotCallRecord, arg_first, 0x0C);
INGOT_FORMAT_OFFSET(IngotCallRecord, arg_count, 0x10);
INGOT_FORMAT_OFFSET(IngotCallRecord, grid, 0x14);
INGOT_FORMAT_OFFSET(IngotCallRecord, block, 0x20);
INGOT_FORMAT_OFFSET(IngotCallRecord, reserved_2c, 0x2C);
INGOT_FORMAT_OFFSET(IngotCallRecord, immediate, 0x30);
INGOT_FORMAT_OFFSET(IngotCallRecord, reserved_38, 0x38);
INGOT_FORMAT_OFFSET(IngotCallRecord, source, 0x3C);

typedef struct IngotRefRecord {
  uint32_t sequence;
  uint32_t step;
  uint32_t io;
  uint8_t role;  // the slot's direction
  uint8_t compare;
  uint16_t flags;
  uint64_t offset;  // bytes from the start of REFDATA
  uint64_t nbytes;
  float atol;
  float rtol;
  uint32_t max_ulp;
  uint32_t reserved_2c;
  float min_cosine;
  uint32_t origin;
  uint64_t reserved_38;
} IngotRefRecord;
INGOT_FORMAT_SIZE(IngotRefRecord, 64);
INGOT_FORMAT_OFFSET(IngotRefRecord, sequence, 0x00);
INGOT_FORMAT_OFFSET(IngotRefRecord, step, 0x04);
INGOT_FORMAT_OFFSET(IngotRefRecord, io, 0x08);
INGOT_FORMAT_OFFSET(IngotRefRecord, role, 0x0C);
INGOT_FORMAT_OFFSET(IngotRefRecord, compare, 0x0D);
INGOT_FORMAT_OFFSET(IngotRefRecord, flags, 0x0E);
INGOT_FORMAT_OFFSET(IngotRefRecord, offset, 0x10);
INGOT_FORMAT_OFFSET(IngotRefRecord, nbytes, 0x18);
INGOT_FORMAT_OFFSET(IngotRefRecord, atol, 0x20);
INGOT_FORMAT_OFFSET(IngotRefRecord, rtol, 0x24);
INGOT_FORMAT_OFFSET(IngotRefRecord, max_ulp, 0x28);
INGOT_FORMAT_OFFSET(IngotRefRecord, reserved_2c, 0x2C);
INGOT_FORMAT_OFFSET(IngotRefRecord, min_cosine, 0x30);
INGOT_FORMAT_OFFSET(IngotRefRecord, origin, 0x34);
INGOT_FORMAT_OFFSET(IngotRefRecord, reserved_38, 0x38);

typedef struct IngotSignatureHeader {
  uint8_t magic[8];
  uint32_t block_size;
  uint32_t count;
  uint8_t reserved[16];
} IngotSignatureHeader;
INGOT_FORMAT_SIZE(IngotSignatureHeader, 32);
INGOT_FORMAT_OFFSET(IngotSignatureHeader, magic, 0x00);
INGOT_FORMAT_OFFSET(IngotSignatureHeader, block_size, 0x08);
INGOT_FORMAT_OFFSET(IngotSignatureHeader, count, 0x0C);
INGOT_FORMAT_OFFSET(IngotSignatureHeader, reserved, 0x10);

typedef struct IngotDetachedHeader {
  uint8_t magic[8];
  uint32_t file_size;
  uint32_t count;
  uint8_t reserved[16];
  uint8_t artifact_id[32];
} IngotDetachedHeader;
INGOT_FORMAT_SIZE(IngotDetachedHeader, 64);
INGOT_FORMAT_OFFSET(IngotDetachedHeader, magic, 0x00);
INGOT_FORMAT_OFFSET(IngotDetachedHeader, file_size, 0x08);
INGOT_FORMAT_OFFSET(IngotDetachedHeader, count, 0x0C);
INGOT_FORMAT_OFFSET(IngotDetachedHeader, reserved, 0x10);
INGOT_FORMAT_OFFSET(IngotDetachedHeader, artifact_id, 0x20);

// An entry of another algorithm shares only the first two fields.
typedef struct IngotSignatureEntry {
  uint32_t algorithm;
  uint32_t entry_size;
  uint32_t purpose;
  uint32_t flags;  // 0
  uint8_t key_id[16];
  uint64_t signed_at;  // seconds since 1970 or 0; informative only
  uint8_t reserved[24];
  uint8_t signature[64];
} IngotSignatureEntry;
INGOT_FORMAT_SIZE(IngotSignatureEntry, 128);
INGOT_FORMAT_OFFSET(IngotSignatureEntry, algorithm, 0x00);
INGOT_FORMAT_OFFSET(IngotSignatureEntry, entry_size, 0x04);
INGOT_FORMAT_OFFSET(IngotSignatureEntry, purpose, 0x08);
INGOT_FORMAT_OFFSET(IngotSignatureEntry, flags, 0x0C);
INGOT_FORMAT_OFFSET(IngotSignatureEntry, key_id, 0x10);
INGOT_FORMAT_OFFSET(IngotSignatureEntry, signed_at, 0x20);
INGOT_FORMAT_OFFSET(IngotSignatureEntry, reserved, 0x28);
INGOT_FORMAT_OFFSET(IngotSignatureEntry, signature, 0x40);

// ---------------------------------------------------------------------------------------------
// Sections: X(NAME, place, presence, several, record size, limit).
// `several`: the field index tells those of one variant apart. Record size 0: bytes. The limit
// counts records or bytes. No empty section exists, so a table that may be empty is OPTIONAL.

enum IngotSectionPlace {
  INGOT_PLACED_COMMON,
  INGOT_PLACED_EACH_VARIANT,
  INGOT_PLACED_EITHER,  // common, or for every variant; never both
  INGOT_PLACED_ANYWHERE
};

enum IngotSectionPresence { INGOT_PRESENCE_OPTIONAL, INGOT_PRESENCE_REQUIRED };

#define INGOT_UNLIMITED UINT32_MAX

#define INGOT_SECTION_LIST(X)                                                                      \
  X(STRINGS, COMMON, REQUIRED, false, 0, INGOT_MAX_STRINGS)                                        \
  X(MODEL, COMMON, REQUIRED, false, sizeof(IngotModelRecord), INGOT_UNLIMITED)                     \
  X(IO, EITHER, REQUIRED, false, sizeof(IngotIoRecord), INGOT_MAX_IO)                              \
  X(SLICES, EITHER, OPTIONAL, false, sizeof(IngotSliceRecord), INGOT_MAX_SLICES)                   \
  X(CAMERA, EITHER, OPTIONAL, false, sizeof(IngotCameraRecord), INGOT_MAX_CAMERAS)                 \
  X(VARIANTS, COMMON, REQUIRED, false, sizeof(IngotVariantRecord), INGOT_UNLIMITED)                \
  X(REFS, EITHER, OPTIONAL, false, sizeof(IngotRefRecord), INGOT_MAX_REFS)                         \
  X(REFDATA, EITHER, OPTIONAL, false, 0, INGOT_UNLIMITED)                                          \
  X(ARENAS, EACH_VARIANT, OPTIONAL, false, sizeof(IngotArenaRecord), INGOT_MAX_ARENAS)             \
  X(BUFFERS, EACH_VARIANT, REQUIRED, false, sizeof(IngotBufferRecord), INGOT_MAX_BUFFERS)          \
  X(VIEWS, EACH_VARIANT, OPTIONAL, false, sizeof(IngotViewRecord), INGOT_MAX_VIEWS)                \
  X(PARAMS, EACH_VARIANT, OPTIONAL, false, sizeof(IngotParamRecord), INGOT_MAX_PARAMS)             \
  X(ARGS, EACH_VARIANT, OPTIONAL, false, sizeof(IngotArgRecord), INGOT_MAX_ARGS)                   \
  X(PROGRAMS, EACH_VARIANT, OPTIONAL, false, sizeof(IngotProgramRecord), INGOT_MAX_PROGRAMS)       \
  X(CALLS, EACH_VARIANT, REQUIRED, false, sizeof(IngotCallRecord), INGOT_MAX_CALLS)                \
  X(CODE, EACH_VARIANT, OPTIONAL, true, 0, INGOT_UNLIMITED)                                        \
  X(DEVCODE, ANYWHERE, OPTIONAL, true, 0, INGOT_UNLIMITED)                                         \
  X(DATA, ANYWHERE, OPTIONAL, true, 0, INGOT_UNLIMITED)                                            \
  X(TRANSFORMS, EACH_VARIANT, OPTIONAL, false, sizeof(IngotTransformRecord), INGOT_MAX_TRANSFORMS) \
  X(MANIFEST, COMMON, REQUIRED, false, 0, INGOT_UNLIMITED)                                         \
  X(PROVENANCE, ANYWHERE, OPTIONAL, false, 0, INGOT_UNLIMITED)                                     \
  X(SBOM, ANYWHERE, OPTIONAL, false, 0, INGOT_UNLIMITED)                                           \
  X(RETARGET, ANYWHERE, OPTIONAL, false, 0, INGOT_UNLIMITED)                                       \
  X(DEBUG, ANYWHERE, OPTIONAL, false, 0, INGOT_UNLIMITED)

#undef INGOT_FORMAT_OFFSET
#undef INGOT_FORMAT_SIZE
#undef INGOT_FORMAT_ASSERT

#endif
