/* The ingot loader: verifies an artifact, binds the caller's memory, replays the call list.
 *
 * Plain C. Order of use:
 *
 *   ingot_open_fd / ingot_open_memory    file -> artifact, state COMPATIBLE (or an error)
 *   ingot_self_test                      artifact reaches SELF_TESTED
 *   ingot_instance_create                arenas, states, address tables; all memory of the replay
 *   ingot_bind                           the caller's inputs and outputs
 *   ingot_run                            one frame; no allocation, no lock; no system call with one
 *                                        worker, else at most to sleep and to wake
 *   ingot_instance_destroy, ingot_close
 *
 * Errors. Every call that can fail returns an ingot_status: 0, or one of the numbers below. A call
 * that fails leaves everything as it was and hands back nothing to release. Where there is an
 * `error` argument it may be NULL; it is filled on failure and set to zeros on success. It holds
 * numbers only: nothing from the file is ever quoted.
 *
 * Ownership. Structures given to a call are read during that call only; what they point to need not
 * outlive it. Two exceptions, both stated again below: the memory named in a binding, and the
 * pointers of the *_info structures, which live as long as the artifact.
 *
 * Threads. An artifact is read-only after ingot_open returned: any number of threads may enumerate
 * it and create instances from it. ingot_self_test, ingot_recheck and ingot_close need it alone.
 * An instance belongs to one thread at a time, the caller; other threads of the program may help it
 * with ingot_work. A call that finds another one inside of the instance (from a second thread, or
 * from the call hook) returns IN_USE and does nothing. There is no global mutable state; no signal
 * handlers, no threads of its own, no files, no environment variables, no network.
 *
 * Order of calls. docs/loader.md has the table of states. A call in the wrong order is refused by a
 * number, or does what is written at it. NULL for an artifact or an instance is STATE, or 0 where
 * something is released. What was released must not be named again: that cannot be noticed.
 *
 * A structure set to zeros is a valid default. New members are added at the end only.
 */
#ifndef INGOT_LOADER_H
#define INGOT_LOADER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- numbers */

#define INGOT_NONE 0xFFFFFFFFu /* "no index" */
#define INGOT_MAX_RANK 8

typedef uint32_t ingot_status;

enum {
  INGOT_STATUS_OK = 0,
  /* damage: the bytes are not what was written */
  INGOT_STATUS_TRUNCATED = 101,
  INGOT_STATUS_TOO_LARGE = 102,
  INGOT_STATUS_MAGIC = 103,
  INGOT_STATUS_VERSION = 104, /* counts as acceptance */
  INGOT_STATUS_HEADER_SIZE = 105,
  INGOT_STATUS_HEADER_DIGEST = 106,
  INGOT_STATUS_SIZE_MISMATCH = 107,
  INGOT_STATUS_META_DIGEST = 108,
  INGOT_STATUS_BLOCK_DIGEST = 109,
  INGOT_STATUS_PADDING = 110,
  /* origin: who wrote it */
  INGOT_STATUS_SIG_BLOCK = 201,
  INGOT_STATUS_UNSIGNED = 202,
  INGOT_STATUS_KEY_UNKNOWN = 203,
  INGOT_STATUS_SIG_INVALID = 204,
  INGOT_STATUS_SIG_POLICY = 205,
  INGOT_STATUS_KEY_REVOKED = 206,
  INGOT_STATUS_SIG_DUPLICATE = 207,
  INGOT_STATUS_KEY_WEAK = 208,
  INGOT_STATUS_DETACHED_MISMATCH = 209,
  /* acceptance: genuine, but not for this device or this loader */
  INGOT_STATUS_FEATURE = 301,
  INGOT_STATUS_DENYLISTED = 302,
  INGOT_STATUS_PRODUCT = 303,
  INGOT_STATUS_BUILD_CLASS = 304,
  INGOT_STATUS_COUNTER = 305,
  INGOT_STATUS_LIMIT = 306,
  INGOT_STATUS_INTERFACE = 307,
  INGOT_STATUS_LAYOUT = 308,
  INGOT_STATUS_SELFTEST_MISSING = 309,
  INGOT_STATUS_TOLERANCE = 310,
  /* structure: signed, but not well formed */
  INGOT_STATUS_RESERVED = 401,
  INGOT_STATUS_HEADER_FIELD = 402,
  INGOT_STATUS_SECTION_TABLE = 403,
  INGOT_STATUS_SECTION_LAYOUT = 404,
  INGOT_STATUS_SECTION_UNKNOWN = 405, /* counts as acceptance */
  INGOT_STATUS_SECTION_DUPLICATE = 406,
  INGOT_STATUS_SECTION_MISSING = 407,
  INGOT_STATUS_STRING = 408,
  INGOT_STATUS_MODEL = 409,
  INGOT_STATUS_CAMERA = 410,
  INGOT_STATUS_IO_TABLE = 411,
  INGOT_STATUS_SLICE = 412,
  INGOT_STATUS_VARIANT = 413,
  INGOT_STATUS_ARENA = 414,
  INGOT_STATUS_BUFFER = 415,
  INGOT_STATUS_BUFFER_OVERLAP = 416,
  INGOT_STATUS_INIT = 417,
  INGOT_STATUS_VIEW = 418,
  INGOT_STATUS_PARAM = 419,
  INGOT_STATUS_PROGRAM = 420,
  INGOT_STATUS_CALL = 421,
  INGOT_STATUS_CALL_ACCESS = 422,
  INGOT_STATUS_CALL_ORDER = 423,
  INGOT_STATUS_REFVEC = 424,
  INGOT_STATUS_MANIFEST = 425, /* the tool's; never returned by the loader */
  INGOT_STATUS_TRANSFORM_TABLE = 426,
  /* device: no variant runs here */
  INGOT_STATUS_ARCH = 501,
  INGOT_STATUS_ABI = 502,
  INGOT_STATUS_CPU_FEATURE = 503,
  INGOT_STATUS_OS_FEATURE = 504,
  INGOT_STATUS_PAGE_SIZE = 505,
  INGOT_STATUS_DEVICE = 506,
  /* system */
  INGOT_STATUS_IO_SYSTEM = 601,
  INGOT_STATUS_NOMEM = 602,
  INGOT_STATUS_EXEC_DENIED = 603,
  INGOT_STATUS_SEAL = 604,
  INGOT_STATUS_WORKSPACE = 605,
  /* numbers */
  INGOT_STATUS_SELFTEST = 701,
  /* use */
  INGOT_STATUS_STATE = 801, /* wrong order of calls, or an argument that makes no sense */
  INGOT_STATUS_ARG_NULL = 802,
  INGOT_STATUS_ARG_DTYPE = 803,
  INGOT_STATUS_ARG_RANK = 804,
  INGOT_STATUS_ARG_SHAPE = 805,
  INGOT_STATUS_ARG_STRIDE = 806,
  INGOT_STATUS_ARG_LENGTH = 807,
  INGOT_STATUS_ARG_ALIGNMENT = 808,
  INGOT_STATUS_ARG_MEMORY = 809,
  INGOT_STATUS_ARG_MISSING = 810,
  INGOT_STATUS_ARG_UNKNOWN = 811,
  INGOT_STATUS_ARG_DUPLICATE = 812,
  INGOT_STATUS_ARG_OVERLAP = 813,
  INGOT_STATUS_ARG_LAYOUT = 814,
  INGOT_STATUS_ARG_GENERATION = 815, /* a mapping that was replaced by a newer one */
  /* frame */
  INGOT_STATUS_RUN_FAILED = 820,
  INGOT_STATUS_OUTPUT_NONFINITE = 821,
  INGOT_STATUS_INDEX_CLAMPED = 822,
  INGOT_STATUS_DEADLINE = 823, /* the frame took longer than the instance's options allow */
  INGOT_STATUS_TRANSFORM_NOT_FINITE = 830,
  INGOT_STATUS_TRANSFORM_NONE = 831, /* all zero: no calibration yet */
  INGOT_STATUS_TRANSFORM_DEGENERATE = 832,
  INGOT_STATUS_TRANSFORM_RANGE = 833,
  /* workers */
  INGOT_STATUS_WORKER_LIMIT = 840,  /* more workers than the artifact was made for */
  INGOT_STATUS_WORKER_NUMBER = 841, /* no such worker, or the caller's own number */
  INGOT_STATUS_WORKER_TAKEN = 842,  /* another thread is this worker */
  INGOT_STATUS_IN_USE = 843 /* another call is inside of the instance; closing: one exists */
};

/* Fixed English text for a number, never NULL ("unknown status" for others); static storage. */
const char* ingot_status_text(ingot_status status);

/* Short stable name such as "E_BLOCK_DIGEST"; "OK" for 0. Static storage. */
const char* ingot_status_name(ingot_status status);

/* The tool's exit code for a number: 0, 5, 6, 7, 8, 3 (binding and frame errors) or 70. */
int ingot_status_exit_code(ingot_status status);

/* Element types, as in the file. */
enum {
  INGOT_ELEMENT_F32 = 1,
  INGOT_ELEMENT_F16 = 2,
  INGOT_ELEMENT_BF16 = 3,
  INGOT_ELEMENT_F64 = 4,
  INGOT_ELEMENT_U8 = 5,
  INGOT_ELEMENT_I8 = 6,
  INGOT_ELEMENT_I16 = 7,
  INGOT_ELEMENT_I32 = 8,
  INGOT_ELEMENT_I64 = 9,
  INGOT_ELEMENT_BOOL = 10,
  INGOT_ELEMENT_U16 = 11,
  INGOT_ELEMENT_U32 = 12,
  INGOT_ELEMENT_U64 = 13
};

/* Bytes of one element, 0 for a number that is no element type. */
uint32_t ingot_element_size(uint32_t dtype);

/* What an artifact went through. States only go up. */
enum {
  INGOT_STATE_NONE = 0,
  INGOT_STATE_INTACT = 1,     /* digests agree (all an unsigned artifact can claim on its own) */
  INGOT_STATE_VERIFIED = 2,   /* and signed by enough trusted keys */
  INGOT_STATE_COMPATIBLE = 3, /* and fits this device; tables of the chosen variant are sound */
  INGOT_STATE_SELF_TESTED = 4 /* and its reference vectors came out right here */
};

/* Where and what. Fields without meaning for a number are INGOT_NONE (indices) or 0. */
typedef struct ingot_error {
  ingot_status number;
  uint32_t step;    /* of the order of validation, 1..28; 0 for binding and running */
  uint32_t variant; /* variant whose tables were read */
  uint32_t section; /* index in the section table */
  uint32_t record;  /* record within the section; block number for BLOCK_DIGEST */
  uint32_t field;   /* byte offset of the field within its record */
  uint64_t found;   /* for errors of binding: what the caller gave */
  uint64_t allowed;
  uint32_t slot; /* input, output or state concerned */
  uint32_t element_index_valid;
  uint64_t element_index;     /* SELFTEST, OUTPUT_NONFINITE */
  double value_found;         /* SELFTEST */
  double value_allowed;       /* SELFTEST: the reference */
  uint64_t layout_found[6];   /* ARG_LAYOUT, LAYOUT: the six numbers given */
  uint64_t layout_allowed[6]; /* and those of the artifact */
} ingot_error;

/* Writes one line of fixed text and numbers ("E_BLOCK_DIGEST (109): ... step 11, record 3, ...")
 * into `buffer`, always NUL-terminated if size > 0. Returns the length that the whole text has. */
size_t ingot_error_format(const ingot_error* error, char* buffer, size_t size);

/* ---------------------------------------------------------------- trust and policy */

enum {
  INGOT_SIGN_DEVELOPMENT = 1,
  INGOT_SIGN_RELEASE = 2,
  INGOT_SIGN_FLEET = 3,
  INGOT_SIGN_SUPPLIER = 4
};

enum { INGOT_BUILD_DEVELOPMENT = 1, INGOT_BUILD_CANDIDATE = 2, INGOT_BUILD_RELEASE = 3 };

/* One trusted Ed25519 key. */
typedef struct ingot_key {
  uint8_t public_key[32];
  uint32_t purposes;        /* mask: 1u << INGOT_SIGN_*; 0: all four */
  uint32_t revoked;         /* nonzero: a signature by it refuses the artifact */
  uint64_t lowest_counter;  /* it counts only for artifacts whose security counter is in */
  uint64_t highest_counter; /* [lowest, highest]; highest 0: no upper end */
} ingot_key;

/* The six numbers of an NV12 frame. */
typedef struct ingot_layout {
  uint32_t width, height, stride, y_height, uv_height;
  uint32_t reserved; /* 0 */
  uint64_t uv_offset;
} ingot_layout;

/* What the device demands. Zeros: one valid signature of any purpose, nothing else. */
typedef struct ingot_policy {
  /* origin */
  const ingot_key* keys;
  uint32_t key_count;
  uint32_t threshold;         /* distinct keys that must count; 0 means 1 */
  uint32_t counted_purposes;  /* mask: signatures that count; 0: all four */
  uint32_t required_purposes; /* mask: each of these must be among those that count; 0: none */
  uint32_t allow_unsigned;    /* only in a loader built with INGOT_LOADER_ALLOW_UNSIGNED (else STATE
                                 is returned); a bad signature of a known key is still refused */
  const void* detached;       /* content of a detached signature file, or NULL */
  size_t detached_nbytes;
  /* acceptance */
  const char* product;       /* NULL: any */
  const char* device_family; /* NULL: any; an artifact without a family fits every device */
  uint64_t lowest_counter;
  uint32_t build_classes; /* mask: 1u << INGOT_BUILD_*; 0: all */
  uint32_t deny_count;
  const uint8_t (*deny_ids)[32];   /* artifact ids that are refused */
  const uint8_t* interface_sha256; /* 32 bytes the application was compiled against, or NULL */
  uint64_t max_file_nbytes;        /* narrows the format's 8 GiB; 0: does not */
  uint64_t max_arena_nbytes;       /* host arenas of the chosen variant; 0: 64 GiB */
  uint64_t frame_period_us;        /* the caller's frame period; 0: not compared */
  /* self-test */
  uint32_t require_vectors; /* nonzero: an artifact without reference vectors is refused */
  uint32_t max_ulp;         /* ceilings for tolerances; 0 in a field: no ceiling of that kind */
  float max_atol, max_rtol;
  float min_cosine;
  uint32_t run_without_self_test; /* nonzero: instances may run at COMPATIBLE */
  /* choice among variants that differ in their camera layouts */
  const char* camera;          /* a camera of this name must exist, or NULL */
  const ingot_layout* layouts; /* layouts the device delivers, */
  uint32_t layout_count;       /* in any order; each must be known; 0: not compared */
  uint32_t variant;            /* 1 + index of the only variant to consider; 0: choose */
} ingot_policy;

/* How to load. Zeros: everything the machine offers. Most fields exist for tests. */
enum {
  INGOT_LOAD_NO_MEMFD = 1,        /* behave as if memory files were forbidden */
  INGOT_LOAD_NO_SHARED_EXEC = 2,  /* as if a sealed memory file could not be mapped shared */
  INGOT_LOAD_NO_PRIVATE_EXEC = 4, /* refuse the private copy: SEAL or EXEC_DENIED instead */
  INGOT_LOAD_NO_HUGE_PAGES = 8,
  INGOT_LOAD_LOCK_PAGES = 16,      /* mlock all pages; failure is a status, see artifact_info */
  INGOT_LOAD_PORTABLE_HASH = 32,   /* do not use the processor's SHA instructions */
  INGOT_LOAD_STOP_AT_VERIFIED = 64 /* steps 1 to 17 only: enumerate and verify, never run */
};

/* The processor as the choice of a variant sees it. */
typedef struct ingot_host {
  uint32_t arch; /* 1 x86-64, 2 aarch64 */
  uint32_t page_size;
  uint64_t features[4]; /* bits of the format's feature words */
  uint64_t xcr0;
  uint32_t sve_bits;
  uint32_t reserved;
} ingot_host;

/* Reads the processor this runs on: CPUID with XGETBV, or AT_HWCAP. Asks for AMX permission. */
void ingot_host_read(ingot_host* host);

typedef struct ingot_load_options {
  uint32_t flags; /* INGOT_LOAD_* */
  uint32_t reserved;
  uint64_t hidden_features[4]; /* feature bits to treat as absent */
  const ingot_host* host;      /* pretend to be this machine (then nothing of another architecture
                                  can run); NULL: read it */
} ingot_load_options;

/* ---------------------------------------------------------------- artifacts */

typedef struct ingot_artifact ingot_artifact;

/* Steps 1 to 27. On success *artifact is in state COMPATIBLE (VERIFIED with STOP_AT_VERIFIED;
 * INTACT at most is claimed by ingot_artifact_info of an unsigned one) and is released by
 * ingot_close. The bytes are copied first; they are not used after return and may change at any
 * time, even during the call. `fd` must be a regular file opened for reading; it is read with pread
 * and neither closed nor moved. policy must not be NULL; options may be. Errors: all of 101 to 605;
 * nothing is left behind. */
ingot_status ingot_open_memory(const void* bytes, size_t nbytes, const ingot_policy* policy,
                               const ingot_load_options* options, ingot_artifact** artifact,
                               ingot_error* error);
ingot_status ingot_open_fd(int fd, const ingot_policy* policy, const ingot_load_options* options,
                           ingot_artifact** artifact, ingot_error* error);

/* Releases the artifact. NULL is allowed. IN_USE: an instance of it exists; nothing was released.
 */
ingot_status ingot_close(ingot_artifact* artifact);

/* Steps 16 to 26 for every variant, not only the one that fits here; for tools. The state stays.
 * Works in every state from VERIFIED on. error->variant says which one. */
ingot_status ingot_verify_all_variants(const ingot_artifact* artifact, ingot_error* error);

/* Steps 9 and 18 to 26 against another policy, without changing the artifact: is it compatible
 * with this device? For tools that opened it with STOP_AT_VERIFIED. Trust fields are not read. */
ingot_status ingot_check_compatible(const ingot_artifact* artifact, const ingot_policy* policy,
                                    const ingot_load_options* options, ingot_error* error);

/* Hashes `count` 64 KiB blocks of the copies in memory again, continuing where the last call ended
 * and starting over at the end. 0: all blocks. BLOCK_DIGEST with the block number on damage. */
ingot_status ingot_recheck(ingot_artifact* artifact, uint32_t count, ingot_error* error);

/* Three verdicts, each independent of the later ones. */
typedef struct ingot_verdicts {
  ingot_error origin;     /* intact, and signed by enough trusted keys; every variant well formed */
  ingot_error compatible; /* fits this device; number 0 only if origin is 0 too */
  ingot_error numbers;    /* self-test; SELFTEST_MISSING if there are no vectors */
  uint32_t compatible_known; /* 0: not established because an earlier verdict failed */
  uint32_t numbers_known;    /* 0: not established or not asked for */
  uint8_t id[32];            /* artifact id, zeros unless the header digest agreed */
} ingot_verdicts;

/* Everything `verify` needs in one call. Returns the first failing number, or 0. */
ingot_status ingot_verify_memory(const void* bytes, size_t nbytes, const ingot_policy* policy,
                                 const ingot_load_options* options, uint32_t with_self_test,
                                 ingot_verdicts* verdicts);

/* ---------------------------------------------------------------- what an artifact holds */

typedef struct ingot_artifact_info {
  uint8_t id[32]; /* artifact id: SHA-256 of the header */
  uint8_t model_sha256[32];
  uint8_t interface_sha256[32]; /* of the chosen variant */
  char product[33];
  char device_family[33];
  uint16_t version_major, version_minor;
  uint32_t producer[3];
  uint32_t build_class;
  uint64_t security_counter;
  uint64_t content_nbytes;
  uint64_t max_host_arena, max_device_arena;
  uint32_t state;           /* INGOT_STATE_* */
  uint32_t signature_count; /* entries in the file and the detached file */
  uint32_t counted_keys;    /* distinct trusted keys whose signature counted */
  uint32_t variant;         /* chosen variant, INGOT_NONE before COMPATIBLE */
  uint32_t variant_count, model_count;
  uint32_t io_count, slice_count, camera_count; /* of the chosen variant; 0 before COMPATIBLE */
  uint32_t buffer_count, call_count, program_count, arena_count, transform_count;
  uint32_t reference_count; /* reference records */
  uint32_t step_count;      /* distinct (sequence, step) pairs among them */
  uint64_t frame_period_us; /* 0: independent of the frame rate */
  uint32_t code_sealed;     /* 1: code runs from a sealed memory file, 0: from a private copy */
  uint32_t huge_pages;      /* 1: huge pages were asked for and not refused */
  uint32_t locked;          /* 1: all pages locked; 0: not asked for, or the limit was too low */
  uint32_t block_count;
} ingot_artifact_info;

enum { INGOT_SLOT_INPUT = 1, INGOT_SLOT_OUTPUT = 2, INGOT_SLOT_STATE = 3 };

/* One input, output or state. Strings and arrays belong to the artifact. */
typedef struct ingot_io_info {
  const char* name;
  uint32_t index;
  uint32_t direction; /* INGOT_SLOT_* */
  uint32_t dtype;
  uint32_t rank;
  uint32_t shape[INGOT_MAX_RANK];
  uint64_t strides[INGOT_MAX_RANK]; /* bytes */
  uint64_t nbytes;                  /* what the caller provides or receives, padding included */
  uint64_t logical_nbytes;          /* without padding */
  uint32_t camera;                  /* index, or INGOT_NONE */
  uint32_t buffer;                  /* index of its buffer */
  uint32_t alignment;               /* of a bound pointer, bytes */
  uint32_t by_pointer;              /* 1: the caller's memory is used where it is, 0: copied */
  uint32_t in_place;                /* states: 1 if written in place */
} ingot_io_info;

typedef struct ingot_slice_info {
  const char* name;
  uint32_t io;
  uint32_t dtype;
  uint32_t rank;
  uint32_t shape[INGOT_MAX_RANK];
  uint64_t offset, nbytes; /* bytes within the slot */
  uint32_t camera;
  uint32_t overlaps;
} ingot_slice_info;

typedef struct ingot_camera_info {
  const char* name;
  ingot_layout layout;
  uint32_t pixel_format; /* 1 NV12, 2 NV21 */
  uint32_t sample_range; /* as in the file */
  uint32_t colour_matrix;
  uint64_t max_age_us; /* 0: no limit */
  uint64_t copy_nbytes, buffer_nbytes;
} ingot_camera_info;

typedef struct ingot_variant_info {
  const char* name;
  uint32_t arch;
  uint32_t os;
  uint64_t cpu_features[4];
  uint64_t xcr0;
  uint32_t sve_bits, max_page_size, fp_control, threads, priority, stack_nbytes;
  uint32_t device_kind;
  uint64_t host_arena_nbytes, device_arena_nbytes;
  uint8_t interface_sha256[32];
  ingot_status fits; /* 0, or why it does not fit this machine (501 to 506) */
} ingot_variant_info;

enum {
  INGOT_STORE_INPUT = 1,
  INGOT_STORE_OUTPUT = 2,
  INGOT_STORE_STATE = 3,
  INGOT_STORE_CONST = 4,
  INGOT_STORE_SCRATCH = 5,
  INGOT_STORE_NEXT_STATE = 6
};

typedef struct ingot_buffer_info {
  uint32_t kind;  /* INGOT_STORE_* */
  uint32_t arena; /* INGOT_NONE: constants and the caller's memory */
  uint64_t arena_offset, nbytes;
  uint32_t io;
  uint32_t first_call, last_call;
} ingot_buffer_info;

enum {
  INGOT_STEP_PROGRAM = 1,
  INGOT_STEP_COPY = 2,
  INGOT_STEP_BARRIER = 3,
  INGOT_STEP_FILL = 4,
  INGOT_STEP_WAIT = 5, /* this and the next two: reserved, refused by this loader */
  INGOT_STEP_SIGNAL = 6,
  INGOT_STEP_REPEAT = 7
};

typedef struct ingot_call_info {
  uint32_t kind; /* INGOT_STEP_* */
  uint32_t queue;
  uint32_t program;         /* index or INGOT_NONE */
  const char* program_name; /* NULL unless a program */
  uint32_t grid[3];
  uint32_t arg_count;
  uint32_t source;                      /* debug number */
  uint64_t read_nbytes, written_nbytes; /* sums over its arguments */
} ingot_call_info;

typedef struct ingot_argument_info {
  uint32_t buffer; /* INGOT_NONE for an immediate */
  uint32_t access; /* 1 read, 2 write, 3 both */
  uint32_t dtype, rank;
  uint32_t shape[INGOT_MAX_RANK];
  uint64_t strides[INGOT_MAX_RANK];
  uint64_t offset, nbytes;
  uint64_t immediate;
} ingot_argument_info;

/* Never fails for a valid artifact. */
void ingot_artifact_describe(const ingot_artifact* artifact, ingot_artifact_info* info);

/* The rest: STATE if the artifact has not reached COMPATIBLE (variants: VERIFIED is enough),
 * ARG_UNKNOWN if the index is out of range. */
ingot_status ingot_variant_describe(const ingot_artifact* artifact, uint32_t index,
                                    ingot_variant_info* info);
ingot_status ingot_io_describe(const ingot_artifact* artifact, uint32_t index, ingot_io_info* info);
ingot_status ingot_slice_describe(const ingot_artifact* artifact, uint32_t index,
                                  ingot_slice_info* info);
ingot_status ingot_camera_describe(const ingot_artifact* artifact, uint32_t index,
                                   ingot_camera_info* info);
ingot_status ingot_buffer_describe(const ingot_artifact* artifact, uint32_t index,
                                   ingot_buffer_info* info);
ingot_status ingot_call_describe(const ingot_artifact* artifact, uint32_t index,
                                 ingot_call_info* info);
ingot_status ingot_argument_describe(const ingot_artifact* artifact, uint32_t call,
                                     uint32_t argument, ingot_argument_info* info);

/* Index of the slot with this name, INGOT_NONE if there is none. Exact match. */
uint32_t ingot_find_io(const ingot_artifact* artifact, const char* name);

/* ---------------------------------------------------------------- instances */

typedef struct ingot_instance ingot_instance;

enum {
  INGOT_RUN_CHECK_OUTPUTS = 1,  /* float outputs must be finite; next states always must */
  INGOT_RUN_REFUSE_CLAMPED = 2, /* a clamped index rejects the frame instead of only flagging it */
  INGOT_RUN_POISON = 4,     /* fill frame arenas, copied outputs and staging with 0xFF before every
                               frame */
  INGOT_RUN_LOCK_PAGES = 8, /* mlock arenas and staging; failure is not an error and not told */
  INGOT_RUN_STAGING = 16    /* memory of the instance's own for by_pointer slots, so that
                               NON_COHERENT memory can be copied there (and outputs back) */
};

/* Called after each call of the list, with its wall-clock time, on the thread in ingot_run. May
 * look (ingot_slot_data and the *_describe calls); everything else on the instance is IN_USE. */
typedef void (*ingot_call_hook)(void* user, uint32_t call, uint64_t nanoseconds);

/* Microseconds that a waiting thread spins before it sleeps, unless the options say otherwise. */
#define INGOT_SPIN_US 200

/* Sets of bindings that an instance remembers, unless the options say otherwise. */
#define INGOT_BIND_SETS 64

typedef struct ingot_instance_options {
  uint32_t flags;       /* INGOT_RUN_* */
  uint32_t workers;     /* the caller and this many - 1 helpers; 0 means 1 */
  uint32_t spin_us;     /* at most 1000000; 0: INGOT_SPIN_US */
  uint32_t bind_sets;   /* capacity of the binding cache, at most 4096; 0: INGOT_BIND_SETS;
                           INGOT_NONE: no cache. About 48 bytes for each set and slot */
  uint32_t deadline_us; /* longest time of a frame, from the start of ingot_run; 0: any */
} ingot_instance_options;

/* Allocates every byte the replay will use: arenas between guard pages, states at their initial
 * values, tables. The artifact must outlive the instance. Options may be NULL.
 * Errors: STATE (not COMPATIBLE; or not SELF_TESTED and the policy does not allow that; or opened
 * for another machine; or spin_us or bind_sets out of range), WORKER_LIMIT (allowed:
 * ingot_variant_info.threads of the chosen variant), NOMEM. */
ingot_status ingot_instance_create(const ingot_artifact* artifact,
                                   const ingot_instance_options* options, ingot_instance** instance,
                                   ingot_error* error);

/* Releases the memory of the instance. Bound memory is the caller's. NULL is allowed. IN_USE: a
 * thread is inside of ingot_work or of another call; nothing was released, ingot_close must wait
 * too. */
ingot_status ingot_instance_destroy(ingot_instance* instance);

enum {
  INGOT_MEMORY_HOST = 0,         /* ordinary cached memory of this process */
  INGOT_MEMORY_NON_COHERENT = 1, /* only copied: by_pointer slots need INGOT_RUN_STAGING, else
                                    ARG_MEMORY; ingot_frame says when it was (STAGED) */
  INGOT_MEMORY_DEVICE = 2        /* refused by this version */
};

/* The caller's memory for one slot. Everything is stated and everything is compared with the
 * artifact: nothing is assumed from the slot. */
typedef struct ingot_binding {
  const char* name; /* of the slot; NULL: `slot` counts */
  uint32_t slot;
  uint32_t dtype;
  void* data;      /* inputs are only read */
  uint64_t nbytes; /* exactly the slot's; camera slots: at least */
  uint32_t rank;
  uint32_t memory; /* INGOT_MEMORY_* */
  uint32_t shape[INGOT_MAX_RANK];
  uint64_t strides[INGOT_MAX_RANK]; /* bytes */
  const ingot_layout* layout;       /* camera slots: required, all six numbers compared */
  uint32_t has_sequence; /* 1: `sequence` numbers the frame; a number that is not above that
                            of the last frame run flags the frame as stale */
  uint32_t has_age;      /* 1: `age_us` is the age of the frame, compared with the camera's
                            limit */
  uint64_t sequence;
  uint64_t age_us;
  uint64_t generation;    /* the caller's number for the mapping that `data` is in, higher for each
                             newer one; 0: not stated, never compared */
  uint32_t has_timestamp; /* 1: `timestamp_ns` is when the frame was captured; its age is taken */
  uint32_t reserved;      /* when ingot_run begins (with age_us as well, the larger counts) */
  uint64_t timestamp_ns;  /* of CLOCK_MONOTONIC */
} ingot_binding;

/* Fills a binding with what the slot expects (dtype, rank, shape, strides, nbytes; for a camera
 * slot `layout` stays NULL). For callers whose memory was laid out from the artifact's own
 * description. */
ingot_status ingot_binding_expected(const ingot_artifact* artifact, uint32_t slot,
                                    ingot_binding* binding);

/* Binds some or all inputs and outputs; others keep their binding. All of the list is taken or
 * none. The memory is the caller's; it must stay valid, and outputs writable, until it is bound
 * anew, unbound or invalidated, or the instance is destroyed. Inputs may overlap each other;
 * everything else must be disjoint, also from the instance's own memory. Inputs without by_pointer
 * are copied at the start of each ingot_run, outputs without by_pointer are copied out after a
 * frame was accepted. Cheap enough for every frame: no allocation.
 *
 * The cache. A list that was found good is remembered, with the addresses of all other bound slots;
 * the set that was not asked for longest makes room. A list hits if count, order, slots (by name or
 * number), element types, ranks, shapes, strides, layouts, lengths, memory kinds, addresses and
 * generations are all the same, and all other slots are bound where they were. All of these are
 * compared on every call. What a hit leaves out is what follows from them: the search for names and
 * duplicates, alignment, overlaps, and whether a generation is outdated. Sequence numbers, ages and
 * time stamps are never part of a set: they are taken from the list, hit or not. The content of the
 * memory, and whether it is still mapped, is never looked at.
 *
 * Generations. Memory of two slots that overlaps must be of one generation, and of none that is
 * lower than that of a remembered set for the same bytes: ARG_GENERATION (found, allowed). A higher
 * one makes the cache forget the sets of the lower.
 *
 * Errors: STATE, IN_USE, 802 to 809, 811 to 815; error->slot. */
ingot_status ingot_bind(ingot_instance* instance, const ingot_binding* bindings, uint32_t count,
                        ingot_error* error);

/* Forgets all bindings; the caller may then free the memory. The cache stays. STATE, IN_USE. */
ingot_status ingot_unbind_all(ingot_instance* instance);

/* To be called before memory is unmapped or serves another purpose: slots that are bound in
 * [address, address + nbytes) are not bound any more, and the cache forgets all sets that touch it.
 * address NULL: everything, whatever nbytes says. STATE, IN_USE. */
ingot_status ingot_invalidate(ingot_instance* instance, const void* address, uint64_t nbytes);

typedef struct ingot_bind_info {
  uint32_t capacity; /* 0: no cache */
  uint32_t used;
  uint64_t hits;      /* lists that were found */
  uint64_t misses;    /* and lists that were not, refused ones among them; empty ones are neither */
  uint64_t evictions; /* sets that made room */
  uint64_t invalidated; /* sets forgotten by ingot_invalidate or for a newer generation */
} ingot_bind_info;

/* Since the instance was made. Never fails. */
void ingot_bind_describe(const ingot_instance* instance, ingot_bind_info* info);

enum {
  INGOT_FRAME_CLAMPED = 1, /* an index was out of range and was clamped */
  INGOT_FRAME_FILLED = 2,  /* a warp was replaced by its fill value */
  INGOT_FRAME_STALE = 4,   /* a camera frame was seen before, by its sequence number */
  INGOT_FRAME_OLD = 8,     /* a camera frame is older than the artifact allows */
  INGOT_FRAME_STAGED = 16, /* memory that is not coherent was copied */
  INGOT_FRAME_AHEAD = 32   /* a time stamp is later than now: of another clock, or made up */
};

typedef struct ingot_frame {
  ingot_status status;
  uint32_t accepted; /* 1: states advanced and outputs written; 0: as if it had not been run,
                        but for in_place states (see ingot_run) */
  uint32_t valid;    /* 1: the outputs may be used (accepted, not filled) */
  uint32_t flags;    /* INGOT_FRAME_* */
  uint32_t slot;     /* ARG_MISSING, TRANSFORM_*, OUTPUT_NONFINITE: the slot. RUN_FAILED, DEADLINE:
                        INGOT_NONE. Else the first that is STALE, OLD or AHEAD, if any */
  uint32_t call;     /* RUN_FAILED: the call. DEADLINE: the call that was not begun any more,
                        INGOT_NONE if all were made. Else INGOT_NONE */
  int32_t result;    /* RUN_FAILED: what the program returned, all parts or-ed */
  uint32_t taken_over;  /* parts of absent or late workers that the caller did itself */
  uint64_t element;     /* OUTPUT_NONFINITE: index of the first such element */
  uint64_t generation;  /* number of frames run so far; a holder of outputs that compares it detects
                           that they were overwritten */
  uint64_t nanoseconds; /* wall-clock time of the call */
  uint64_t copied_nbytes; /* of inputs, copied at the start of the frame */
  uint64_t age_us;        /* of the oldest camera frame when the frame began; 0 if none is known */
} ingot_frame;

/* Runs one frame on the calling thread. The floating-point control register is set as the artifact
 * says and restored before return. Returns frame->status (frame may be NULL):
 *   0                    accepted and valid; look at flags for STALE, OLD
 *   ARG_MISSING          a slot that needs memory is not bound; nothing ran
 *   TRANSFORM_*          a matrix was refused: nothing ran, or (policy "fill" of the artifact) the
 *                        frame ran with the fill value: accepted, not valid
 *   RUN_FAILED           a program reported failure; states keep their old values
 *   OUTPUT_NONFINITE     a next state or, with CHECK_OUTPUTS, an output; states keep their old
 *                        values
 *   INDEX_CLAMPED        accepted and valid, unless REFUSE_CLAMPED
 *   DEADLINE             it took longer than options.deadline_us; states keep their old values. The
 *                        clock is read before each call and before the frame is accepted; a call
 *                        that was begun is finished, and copying outputs out is not counted
 *   IN_USE               another call is inside of the instance; nothing ran
 *   STATE                no instance; nothing ran
 * After a frame that was not accepted the content of bound by_pointer outputs is undefined; copied
 * outputs still hold the last accepted frame. The next ingot_run is always possible.
 *
 * An in_place state (ingot_io_info) has no old value to keep: it is written while the frame runs.
 * Where it is a ring, a frame that was not accepted wrote the spare entry; the index, a state of
 * two buffers, stays, so that the next frame writes the same entry again. OUTPUT_NONFINITE looks at
 * all entries of a float ring. */
ingot_status ingot_run(ingot_instance* instance, ingot_frame* frame);

/* 1 if the outputs are still those of the frame that returned this generation, and that frame was
 * valid. 0 once another frame began, accepted or not, after a reset, and for frames that were not
 * valid: then they must not be used. It is about the memory that was bound during that frame. */
uint32_t ingot_outputs_valid(const ingot_instance* instance, uint64_t generation);

/* States back to their initial values, sequence numbers forgotten; bindings stay. Afterwards the
 * instance gives the same bytes as a new one. STATE, IN_USE. */
ingot_status ingot_reset(ingot_instance* instance);

/* Memory of a slot. States: the value that the next frame will read. Outputs: the bound memory, or
 * the instance's own if the slot is not bound; that is overwritten by the next run, accepted or
 * not. NULL for inputs, and for by_pointer slots that are not bound. */
const void* ingot_slot_data(const ingot_instance* instance, uint32_t slot);

/* Replaces the value of a state between frames. nbytes must be the slot's.
 * Errors: STATE, IN_USE, ARG_UNKNOWN (no such state), ARG_NULL, ARG_LENGTH. */
ingot_status ingot_set_state(ingot_instance* instance, uint32_t slot, const void* data,
                             uint64_t nbytes);

/* Turns per-call timing on, or off with NULL. In the hook: from the next call of the list on. */
void ingot_set_call_hook(ingot_instance* instance, ingot_call_hook hook, void* user);

/* ---------------------------------------------------------------- workers */

/* Makes the calling thread a worker: it stays inside, does its part of each call of every frame,
 * spins options.spin_us when there is nothing to do and then sleeps, until ingot_stop_work. Workers
 * have the numbers 1 to options.workers - 1; the thread in ingot_run is worker 0. May be entered
 * and left at any time, even during a frame: what an absent or late worker does not begin, the
 * caller does itself, with the same bytes. While a thread is inside it must not be ended or
 * unwound, and it runs generated code on its own stack (ingot_variant_info.stack_nbytes and 4 KiB).
 * The floating-point control register is set meanwhile and restored before return.
 * Returns 0 after ingot_stop_work, also if that came first; STATE; WORKER_NUMBER; WORKER_TAKEN. */
ingot_status ingot_work(ingot_instance* instance, uint32_t worker);

/* Sends all workers out for good, those that come later too. Any thread may call it, at any time
 * before destruction, during a frame as well. Does not wait: join the threads. Later frames are run
 * by the caller alone. */
void ingot_stop_work(ingot_instance* instance);

/* How many threads are inside of ingot_work now. Any thread may ask. */
uint32_t ingot_workers_inside(const ingot_instance* instance);

/* ---------------------------------------------------------------- self-test */

/* Worst result of one output or state over all steps. */
typedef struct ingot_slot_report {
  uint32_t slot;
  uint32_t compare; /* 1 same bits, 2 absolute + relative, 3 units in the last place, 4 cosine */
  uint32_t failed;  /* 1: outside tolerance in some step */
  uint32_t sequence, step; /* of the worst element */
  uint32_t origin;         /* who made the reference */
  uint64_t worst_index;
  double worst_found, worst_expected;
  double max_abs_error, max_rel_error;
  double min_cosine;
  uint64_t max_ulp_error; /* 0 for integer types */
} ingot_slot_report;

/* Runs every reference sequence on an instance of its own, with the code pages that frames will
 * use. Success raises the artifact to SELF_TESTED. Up to `capacity` reports (one for each compared
 * slot) are written, *count says how many there are; both pointers may be NULL. Errors: STATE,
 * SELFTEST_MISSING, NOMEM, SELFTEST (slot, element_index, both values), 820, 83x. */
ingot_status ingot_self_test(ingot_artifact* artifact, ingot_slot_report* reports,
                             uint32_t capacity, uint32_t* count, ingot_error* error);

/* ---------------------------------------------------------------- building blocks */

/* The loader's own primitives, for tools and tests that must agree with it. */
void ingot_sha256(const void* data, size_t nbytes, uint8_t digest[32]);
/* 1 if the signature is good by docs/artifact_format.md, "Which signatures are good", else 0. */
int ingot_ed25519_verify(const uint8_t public_key[32], const void* message, size_t nbytes,
                         const uint8_t signature[64]);
/* 1 if the key is a canonical point of large order, that is, fit for a trust store. */
int ingot_ed25519_key_valid(const uint8_t public_key[32]);
/* First 16 bytes of the tagged digest that names a key in signature entries. */
void ingot_key_id(const uint8_t public_key[32], uint8_t key_id[16]);

#ifdef __cplusplus
}
#endif

#endif /* INGOT_LOADER_H */
