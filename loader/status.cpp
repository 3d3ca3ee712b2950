// Texts of the numbers, and the error record.
#include <cstdarg>
#include <cstdio>

#include "loader/internal.h"

namespace {

// One text for each name of INGOT_ERROR_LIST: a name without a text does not compile.
constexpr char k_TRUNCATED[] = "the file is shorter than it says";
constexpr char k_TOO_LARGE[] = "the file is larger than allowed";
constexpr char k_MAGIC[] = "this is not an artifact, or it was changed in a text-mode transfer";
constexpr char k_VERSION[] = "the format version is not known to this loader";
constexpr char k_HEADER_SIZE[] = "the header or content size is impossible";
constexpr char k_HEADER_DIGEST[] = "the header was changed";
constexpr char k_SIZE_MISMATCH[] = "the file length differs from what the file says";
constexpr char k_META_DIGEST[] = "the section table or the digest table was changed";
constexpr char k_BLOCK_DIGEST[] = "a block of the content was changed";
constexpr char k_PADDING[] = "padding is not zero";
constexpr char k_SIG_BLOCK[] = "the signature block is malformed";
constexpr char k_UNSIGNED[] = "there is no signature";
constexpr char k_KEY_UNKNOWN[] = "no signature is by a trusted key";
constexpr char k_SIG_INVALID[] = "a signature by a trusted key is wrong";
constexpr char k_SIG_POLICY[] = "too few signatures count for this purpose";
constexpr char k_KEY_REVOKED[] = "a signature is by a revoked key";
constexpr char k_SIG_DUPLICATE[] = "one key signed twice";
constexpr char k_KEY_WEAK[] = "a key of the trust store is not a valid key";
constexpr char k_DETACHED_MISMATCH[] = "the detached signature is for another artifact";
constexpr char k_FEATURE[] = "a required feature is not known to this loader";
constexpr char k_DENYLISTED[] = "the artifact is on the deny list";
constexpr char k_PRODUCT[] = "the artifact is for another product or device family";
constexpr char k_BUILD_CLASS[] = "the build class is not accepted here";
constexpr char k_COUNTER[] = "the security counter is below the accepted minimum";
constexpr char k_LIMIT[] = "a number is above a limit";
constexpr char k_INTERFACE[] = "the interface differs from the expected one";
constexpr char k_LAYOUT[] = "no such camera layout";
constexpr char k_SELFTEST_MISSING[] = "reference vectors are missing";
constexpr char k_TOLERANCE[] = "a tolerance is wider than this device accepts";
constexpr char k_RESERVED[] = "a reserved field is not zero";
constexpr char k_HEADER_FIELD[] = "a header field is impossible";
constexpr char k_SECTION_TABLE[] = "a section entry is malformed";
constexpr char k_SECTION_LAYOUT[] = "sections overlap, leave gaps or exceed the content";
constexpr char k_SECTION_UNKNOWN[] = "a required section is not known to this loader";
constexpr char k_SECTION_DUPLICATE[] = "a section is there twice";
constexpr char k_SECTION_MISSING[] = "a required section is missing";
constexpr char k_STRING[] = "a name is malformed or not unique";
constexpr char k_MODEL[] = "a model record is malformed";
constexpr char k_CAMERA[] = "a camera record is malformed";
constexpr char k_IO[] = "an input, output or state record is malformed";
constexpr char k_SLICE[] = "a slice record is malformed";
constexpr char k_VARIANT[] = "a variant record is malformed";
constexpr char k_ARENA[] = "an arena record is malformed";
constexpr char k_BUFFER[] = "a buffer record is malformed";
constexpr char k_BUFFER_OVERLAP[] = "buffers share bytes";
constexpr char k_INIT[] = "initial data is malformed";
constexpr char k_VIEW[] = "a view record is malformed";
constexpr char k_PARAM[] = "a parameter record is malformed";
constexpr char k_PROGRAM[] = "a program record is malformed";
constexpr char k_CALL[] = "a call record is malformed";
constexpr char k_CALL_ACCESS[] = "a call does not match its program";
constexpr char k_CALL_ORDER[] = "calls are in an impossible order";
constexpr char k_REFVEC[] = "a reference record is malformed";
constexpr char k_MANIFEST[] = "the manifest contradicts the tables";
constexpr char k_TRANSFORM[] = "a transform record is malformed";
constexpr char k_ARCH[] = "no variant is for this processor architecture";
constexpr char k_ABI[] = "no variant is for this operating system or call convention";
constexpr char k_CPU_FEATURE[] = "the processor lacks a feature";
constexpr char k_OS_FEATURE[] = "the operating system has not enabled a processor feature";
constexpr char k_PAGE_SIZE[] = "the pages of this system are too large";
constexpr char k_DEVICE[] = "a required device is absent";
constexpr char k_SYSTEM_IO[] = "reading failed";
constexpr char k_NOMEM[] = "out of memory";
constexpr char k_EXEC_DENIED[] = "this process may not map code";
constexpr char k_SEAL[] = "a memory file could not be sealed or mapped";
constexpr char k_WORKSPACE[] = "the workspace is too small";
constexpr char k_SELFTEST[] = "a reference vector did not come out";
constexpr char k_STATE[] = "wrong order of calls, or an impossible argument";
constexpr char k_ARG_NULL[] = "the pointer is null";
constexpr char k_ARG_DTYPE[] = "the element type differs";
constexpr char k_ARG_RANK[] = "the number of dimensions differs";
constexpr char k_ARG_SHAPE[] = "a dimension differs";
constexpr char k_ARG_STRIDE[] = "a stride differs";
constexpr char k_ARG_LENGTH[] = "the length in bytes differs";
constexpr char k_ARG_ALIGNMENT[] = "the address is not aligned";
constexpr char k_ARG_MEMORY[] = "this kind of memory is not accepted here";
constexpr char k_ARG_MISSING[] = "a slot is not bound";
constexpr char k_ARG_UNKNOWN[] = "there is no such slot or index";
constexpr char k_ARG_DUPLICATE[] = "a slot is named twice";
constexpr char k_ARG_OVERLAP[] = "memory of two slots overlaps";
constexpr char k_ARG_LAYOUT[] = "the frame layout differs";
constexpr char k_ARG_GENERATION[] = "the memory was mapped anew since";
constexpr char k_RUN_FAILED[] = "a program reported failure";
constexpr char k_OUTPUT_NONFINITE[] = "an output or state is not finite";
constexpr char k_INDEX_CLAMPED[] = "an index was out of range and was clamped";
constexpr char k_DEADLINE[] = "the frame took longer than allowed";
constexpr char k_TRANSFORM_NOT_FINITE[] = "a transform is not finite";
constexpr char k_TRANSFORM_NONE_YET[] = "there is no transform yet";
constexpr char k_TRANSFORM_DEGENERATE[] = "a transform is degenerate";
constexpr char k_TRANSFORM_OUT_OF_RANGE[] = "a transform leaves the range of coordinates";
constexpr char k_WORKER_LIMIT[] = "more workers than the artifact was made for";
constexpr char k_WORKER_NUMBER[] = "there is no such worker";
constexpr char k_WORKER_TAKEN[] = "another thread is this worker";
constexpr char k_IN_USE[] = "another call is inside, or an instance exists";

struct StatusRow {
  uint16_t number;
  uint8_t exit_code;
  const char* name;
  const char* text;
};

constexpr StatusRow kRows[] = {
#define INGOT_ROW(name, number, exit_code) {number, exit_code, "E_" #name, k_##name},
    INGOT_ERROR_LIST(INGOT_ROW)
#undef INGOT_ROW
};

const StatusRow* find_row(ingot_status status) {
  for (const StatusRow& row : kRows) {
    if (row.number == status) return &row;
  }
  return nullptr;
}

// Appends to a text of limited size and keeps counting beyond it.
struct Line {
  char* buffer;
  size_t size;
  size_t length;

  __attribute__((format(printf, 2, 3))) void add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const size_t room = length < size ? size - length : 0;
    const int added = vsnprintf(room > 0 ? buffer + length : nullptr, room, format, arguments);
    va_end(arguments);
    if (added > 0) length += static_cast<size_t>(added);
  }

  void add_index(const char* what, uint32_t index) {
    if (index != INGOT_NONE) add(", %s %u", what, index);
  }
};

}  // namespace

// The public header and the format must give every number the same meaning.
#define INGOT_SAME(ours, format) static_assert(int{ours} == int{format}, "one number, one meaning")
INGOT_SAME(INGOT_STATUS_PADDING, INGOT_E_PADDING);
INGOT_SAME(INGOT_STATUS_DETACHED_MISMATCH, INGOT_E_DETACHED_MISMATCH);
INGOT_SAME(INGOT_STATUS_TOLERANCE, INGOT_E_TOLERANCE);
INGOT_SAME(INGOT_STATUS_IO_TABLE, INGOT_E_IO);
INGOT_SAME(INGOT_STATUS_REFVEC, INGOT_E_REFVEC);
INGOT_SAME(INGOT_STATUS_TRANSFORM_TABLE, INGOT_E_TRANSFORM);
INGOT_SAME(INGOT_STATUS_DEVICE, INGOT_E_DEVICE);
INGOT_SAME(INGOT_STATUS_IO_SYSTEM, INGOT_E_SYSTEM_IO);
INGOT_SAME(INGOT_STATUS_WORKSPACE, INGOT_E_WORKSPACE);
INGOT_SAME(INGOT_STATUS_SELFTEST, INGOT_E_SELFTEST);
INGOT_SAME(INGOT_STATUS_ARG_LAYOUT, INGOT_E_ARG_LAYOUT);
INGOT_SAME(INGOT_STATUS_ARG_GENERATION, INGOT_E_ARG_GENERATION);
INGOT_SAME(INGOT_STATUS_DEADLINE, INGOT_E_DEADLINE);
INGOT_SAME(INGOT_STATUS_TRANSFORM_NONE, INGOT_E_TRANSFORM_NONE_YET);
INGOT_SAME(INGOT_STATUS_TRANSFORM_RANGE, INGOT_E_TRANSFORM_OUT_OF_RANGE);
INGOT_SAME(INGOT_STATUS_WORKER_LIMIT, INGOT_E_WORKER_LIMIT);
INGOT_SAME(INGOT_STATUS_IN_USE, INGOT_E_IN_USE);

const char* ingot_status_text(ingot_status status) {
  if (status == INGOT_E_NONE) return "no error";
  const StatusRow* row = find_row(status);
  return row != nullptr ? row->text : "unknown status";
}

const char* ingot_status_name(ingot_status status) {
  if (status == INGOT_E_NONE) return "OK";
  const StatusRow* row = find_row(status);
  return row != nullptr ? row->name : "E_UNKNOWN";
}

int ingot_status_exit_code(ingot_status status) {
  if (status == INGOT_E_NONE) return 0;
  if (status == INGOT_E_OUTPUT_NONFINITE) return 7;
  if (status == INGOT_E_INDEX_CLAMPED) return 3;
  if (status >= INGOT_E_ARG_NULL && status <= INGOT_E_ARG_GENERATION) return 3;
  const StatusRow* row = find_row(status);
  return row != nullptr && row->exit_code != 0 ? row->exit_code : 70;
}

size_t ingot_error_format(const ingot_error* error, char* buffer, size_t size) {
  Line line = {buffer, size, 0};
  if (size > 0) buffer[0] = 0;
  line.add("%s (%u): %s", ingot_status_name(error->number), error->number,
           ingot_status_text(error->number));
  if (error->number == INGOT_E_NONE) return line.length;
  if (error->step != 0) line.add(", step %u", error->step);
  line.add_index("variant", error->variant);
  line.add_index("section", error->section);
  line.add_index("record", error->record);
  line.add_index("slot", error->slot);
  if (error->field != INGOT_NONE) line.add(", field at 0x%x", error->field);
  if (error->found != error->allowed) {
    line.add(", found %llu, allowed %llu", static_cast<unsigned long long>(error->found),
             static_cast<unsigned long long>(error->allowed));
  }
  if (error->element_index_valid != 0) {
    line.add(", element %llu: %.9g instead of %.9g",
             static_cast<unsigned long long>(error->element_index), error->value_found,
             error->value_allowed);
  }
  if (error->number == INGOT_E_ARG_LAYOUT || error->number == INGOT_E_LAYOUT) {
    const uint64_t* const layouts[2] = {error->layout_found, error->layout_allowed};
    for (int i = 0; i < 2; ++i) {
      line.add("%s", i == 0 ? ", layout" : ", built for");
      for (int n = 0; n < 6; ++n) {
        line.add(" %llu", static_cast<unsigned long long>(layouts[i][n]));
      }
    }
  }
  return line.length;
}

namespace ingot::loader {

void clear_error(ingot_error* error) {
  if (error == nullptr) return;
  std::memset(error, 0, sizeof *error);
  error->variant = error->section = error->record = error->field = error->slot = kNone;
}

ingot_status Place::store(uint32_t number_and_field, uint64_t found, uint64_t allowed) const {
  const ingot_status number = number_and_field >> 16;
  const uint32_t field = number_and_field & 0xFFFF;
  if (error != nullptr) {
    clear_error(error);
    error->number = number;
    error->step = step;
    error->variant = variant;
    error->section = section;
    error->record = record;
    error->field = field == 0xFFFF ? kNone : field;
    error->found = found;
    error->allowed = allowed;
  }
  return number;
}

}  // namespace ingot::loader
