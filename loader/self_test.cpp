// Step 28: do the reference vectors come out right, here, with the code that frames will use?
#include <cstdlib>

#include "loader/instance.h"

namespace ingot::loader {

namespace {

constexpr double kInfinity = __builtin_huge_val();

double half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double magnitude = 0;
  if (exponent == 31) {
    magnitude = fraction == 0 ? kInfinity : __builtin_nan("");
  } else if (exponent == 0) {
    magnitude = fraction * (1.0 / 16777216.0);  // 2^-24
  } else {
    // Shift the fields to where a double has them.
    const uint64_t wide =
        static_cast<uint64_t>(exponent + 1008) << 52 | static_cast<uint64_t>(fraction) << 42;
    magnitude = load<double>(&wide);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

bool is_nan(double value) { return value != value; }

double magnitude_of(double value) { return value < 0 ? -value : value; }

// Position of a float among all floats of its type, so that neighbours differ by one.
int64_t order_of(uint32_t dtype, const uint8_t* at) {
  int64_t bits = 0;
  int64_t sign = 0;
  switch (dtype) {
    case INGOT_DTYPE_F32: bits = load<uint32_t>(at), sign = int64_t{1} << 31; break;
    case INGOT_DTYPE_F64: bits = load<int64_t>(at), sign = INT64_MIN; break;
    case INGOT_DTYPE_F16:
    case INGOT_DTYPE_BF16: bits = load<uint16_t>(at), sign = 1 << 15; break;
    default: return 0;
  }
  const bool negative = dtype == INGOT_DTYPE_F64 ? bits < 0 : (bits & sign) != 0;
  return negative ? -(bits & ~sign) : bits;
}

uint64_t distance(int64_t a, int64_t b) {
  return a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b)
               : static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
}

// Compares one slot of one step with its reference.
struct Comparison {
  const IngotRefRecord& ref;
  const IngotIoRecord& io;
  const uint8_t* found;
  const uint8_t* expected;

  bool failed = false;
  uint64_t failed_index = 0;  // of the largest failure
  double failed_error = -1;
  double max_abs = 0, max_rel = 0;
  uint64_t max_ulp = 0;
  uint64_t worst_index = 0;
  double dot = 0, found_norm = 0, expected_norm = 0;
  double cosine = 1;

  void run();

 private:
  void element(uint64_t index, uint64_t offset);
  bool good(const uint8_t* f, const uint8_t* e, double error, double reference, uint64_t ulp) const;
};

bool Comparison::good(const uint8_t* f, const uint8_t* e, double error, double reference,
                      uint64_t ulp) const {
  switch (ref.compare) {
    case INGOT_COMPARE_EXACT: return std::memcmp(f, e, element_size(io.dtype)) == 0;
    case INGOT_COMPARE_ULP: return ulp <= ref.max_ulp;
    case INGOT_COMPARE_COSINE: return error <= static_cast<double>(ref.atol);
    default:
      return error == 0 ||  // infinities agree too
             error <= static_cast<double>(ref.atol) +
                          static_cast<double>(ref.rtol) * magnitude_of(reference);
  }
}

void Comparison::element(uint64_t index, uint64_t offset) {
  const uint8_t* f = found + offset;
  const uint8_t* e = expected + offset;
  const double a = element_value(io.dtype, f);
  const double b = element_value(io.dtype, e);
  double error = a == b ? 0.0 : magnitude_of(a - b);
  bool fine = false;
  uint64_t ulp = 0;
  if (is_nan(a) || is_nan(b)) {
    fine = is_nan(a) && is_nan(b) && (ref.flags & INGOT_REF_NAN_MATCHES) != 0;
    error = fine ? 0.0 : kInfinity;
  } else {
    ulp = is_float(io.dtype) ? distance(order_of(io.dtype, f), order_of(io.dtype, e))
                             : static_cast<uint64_t>(error < 1e18 ? error : 1e18);
    fine = good(f, e, error, b, ulp);
    dot += a * b;
    found_norm += a * a;
    expected_norm += b * b;
  }
  if (error > max_abs || index == 0) max_abs = error, worst_index = index;
  const double relative = error == 0 ? 0.0 : error / magnitude_of(b);
  if (relative > max_rel) max_rel = relative;
  if (ulp > max_ulp) max_ulp = ulp;
  if (!fine && (!failed || error > failed_error)) {
    failed = true;
    failed_error = error;
    failed_index = index;
  }
}

void Comparison::run() {
  for_each_element(io, [this](uint64_t index, uint64_t offset) {
    element(index, offset);
    return true;
  });
  if (found_norm > 0 && expected_norm > 0) {
    cosine = dot / (__builtin_sqrt(found_norm) * __builtin_sqrt(expected_norm));
  } else {
    cosine = found_norm == expected_norm ? 1.0 : 0.0;
  }
  if (ref.compare == INGOT_COMPARE_COSINE && !(cosine >= static_cast<double>(ref.min_cosine)) &&
      !failed) {
    failed = true;
    failed_index = worst_index;
  }
}

void read_element(const Comparison& result, uint64_t index, double* found, double* expected) {
  for_each_element(result.io, [&](uint64_t i, uint64_t offset) {
    if (i != index) return true;
    *found = element_value(result.io.dtype, result.found + offset);
    *expected = element_value(result.io.dtype, result.expected + offset);
    return false;
  });
}

class SelfTest {
 public:
  SelfTest(const ingot_artifact& artifact, ingot_slot_report* reports, uint32_t capacity,
           ingot_error* error)
      : artifact_(artifact),
        tables_(artifact.tables),
        reports_(reports),
        capacity_(capacity),
        place_{error, 28, artifact.tables.variant, artifact.tables.refs.section, kNone} {}

  ingot_status run();
  void release();
  uint32_t report_count() const { return report_count_; }

 private:
  ingot_status prepare();
  ingot_status run_step(uint32_t first, uint32_t end);
  void compare(uint32_t record);
  void report(const Comparison& result);
  void note_failure(uint32_t record, const Comparison& result);

  const ingot_artifact& artifact_;
  const Tables& tables_;
  ingot_slot_report* reports_;
  uint32_t capacity_;
  uint32_t report_count_ = 0;
  uint16_t positions_[INGOT_MAX_IO] = {};
  Place place_;
  ingot_instance* instance_ = nullptr;
  Mapping* memory_ = nullptr;  // one for each slot
  ingot_status outcome_ = kOk;
};

ingot_status SelfTest::prepare() {
  INGOT_RETURN_IF(create_instance(artifact_, {}, &instance_, place_.error));
  memory_ = static_cast<Mapping*>(std::calloc(tables_.io.count, sizeof(Mapping)));
  if (memory_ == nullptr) return place_.fail(INGOT_E_NOMEM);
  for (uint32_t i = 0; i < tables_.io.count; ++i) {
    const Slot& slot = instance_->slots[i];
    if (slot.io.direction == INGOT_DIRECTION_STATE) continue;
    const uint16_t align = tables_.buffers[slot.buffer].align_log2;
    memory_[i] = map_memory(static_cast<size_t>(slot.io.nbytes) + 1, size_t{1} << align);
    if (memory_[i].address == nullptr) return place_.fail(INGOT_E_NOMEM);
    ingot_binding binding;
    ingot_binding_expected(&artifact_, i, &binding);
    binding.data = memory_[i].address;
    ingot_layout layout = {};
    if (slot.io.camera != kNone) {
      layout = layout_of(tables_.cameras[slot.io.camera]);
      binding.layout = &layout;
    }
    INGOT_RETURN_IF(ingot_bind(instance_, &binding, 1, place_.error));
  }
  return kOk;
}

void SelfTest::report(const Comparison& result) {
  uint16_t& position = positions_[result.ref.io];  // 1 + index; 0 before the first comparison
  const bool fresh = position == 0;
  if (fresh) position = static_cast<uint16_t>(++report_count_);
  if (position > capacity_) return;
  ingot_slot_report& r = reports_[position - 1];
  if (fresh || result.max_abs > r.max_abs_error || (result.failed && r.failed == 0)) {
    r.sequence = result.ref.sequence;
    r.step = result.ref.step;
    r.worst_index = result.failed ? result.failed_index : result.worst_index;
    read_element(result, r.worst_index, &r.worst_found, &r.worst_expected);
  }
  r.slot = result.ref.io;
  r.compare = result.ref.compare;
  r.origin = result.ref.origin;
  if (result.failed) r.failed = 1;
  if (result.max_abs > r.max_abs_error) r.max_abs_error = result.max_abs;
  if (result.max_rel > r.max_rel_error) r.max_rel_error = result.max_rel;
  if (result.max_ulp > r.max_ulp_error && is_float(result.io.dtype)) {
    r.max_ulp_error = result.max_ulp;
  }
  if (fresh || result.cosine < r.min_cosine) r.min_cosine = result.cosine;
}

void SelfTest::note_failure(uint32_t record, const Comparison& result) {
  if (outcome_ != kOk) return;  // the first one is reported
  place_.record = record;
  outcome_ = place_.fail(INGOT_E_SELFTEST);
  ingot_error* error = place_.error;
  if (error == nullptr) return;
  error->slot = result.ref.io;
  error->element_index_valid = 1;
  error->element_index = result.failed_index;
  read_element(result, result.failed_index, &error->value_found, &error->value_allowed);
}

void SelfTest::compare(uint32_t record) {
  const IngotRefRecord& ref = tables_.refs[record];
  const auto* found = static_cast<const uint8_t*>(ingot_slot_data(instance_, ref.io));
  Comparison result{ref, instance_->slots[ref.io].io, found, tables_.refdata.data + ref.offset};
  result.run();
  report(result);
  if (result.failed) note_failure(record, result);
}

ingot_status SelfTest::run_step(uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end; ++i) {
    const IngotRefRecord& ref = tables_.refs[i];
    if (ref.role != INGOT_DIRECTION_INPUT || ref.nbytes == 0) continue;
    std::memcpy(memory_[ref.io].address, tables_.refdata.data + ref.offset,
                static_cast<size_t>(ref.nbytes));
  }
  ingot_frame frame;
  const ingot_status status = ingot_run(instance_, &frame);
  if (frame.accepted == 0) {
    place_.record = first;
    place_.fail(status, kNone, frame.call, 0);
    if (place_.error != nullptr) place_.error->slot = frame.slot;
    return status;
  }
  for (uint32_t i = first; i < end; ++i) {
    if (tables_.refs[i].role != INGOT_DIRECTION_INPUT) compare(i);
  }
  return kOk;
}

ingot_status SelfTest::run() {
  if (tables_.refs.count == 0) return place_.fail(INGOT_E_SELFTEST_MISSING);
  INGOT_RETURN_IF(prepare());
  uint32_t first = 0;
  while (first < tables_.refs.count) {
    const IngotRefRecord& head = tables_.refs[first];
    uint32_t end = first;
    while (end < tables_.refs.count && tables_.refs[end].sequence == head.sequence &&
           tables_.refs[end].step == head.step) {
      ++end;
    }
    if (head.step == 0) ingot_reset(instance_);
    INGOT_RETURN_IF(run_step(first, end));
    first = end;
  }
  return outcome_;
}

void SelfTest::release() {
  ingot_instance_destroy(instance_);
  for (uint32_t i = 0; memory_ != nullptr && i < tables_.io.count; ++i) unmap(&memory_[i]);
  std::free(memory_);
}

}  // namespace

double element_value(uint32_t dtype, const uint8_t* at) {
  switch (dtype) {
    case INGOT_DTYPE_F32: return static_cast<double>(load<float>(at));
    case INGOT_DTYPE_F16: return half_value(load<uint16_t>(at));
    case INGOT_DTYPE_BF16: {
      const uint32_t wide = uint32_t{load<uint16_t>(at)} << 16;
      return static_cast<double>(load<float>(&wide));
    }
    case INGOT_DTYPE_F64: return load<double>(at);
    case INGOT_DTYPE_I8: return load<int8_t>(at);
    case INGOT_DTYPE_I16: return load<int16_t>(at);
    case INGOT_DTYPE_U16: return load<uint16_t>(at);
    case INGOT_DTYPE_I32: return load<int32_t>(at);
    case INGOT_DTYPE_U32: return load<uint32_t>(at);
    case INGOT_DTYPE_I64: return static_cast<double>(load<int64_t>(at));
    case INGOT_DTYPE_U64: return static_cast<double>(load<uint64_t>(at));
    default: return load<uint8_t>(at);
  }
}

}  // namespace ingot::loader

using namespace ingot::loader;

ingot_status ingot_self_test(ingot_artifact* artifact, ingot_slot_report* reports,
                             uint32_t capacity, uint32_t* count, ingot_error* error) {
  clear_error(error);
  if (count != nullptr) *count = 0;
  if (artifact == nullptr || artifact->state < INGOT_STATE_COMPATIBLE || artifact->foreign) {
    return Place{error, 28, kNone, kNone, kNone}.fail(INGOT_E_STATE);
  }
  if (reports == nullptr) capacity = 0;
  if (capacity > 0) std::memset(reports, 0, capacity * sizeof *reports);
  SelfTest test(*artifact, reports, capacity, error);
  const ingot_status status = test.run();
  test.release();
  if (count != nullptr) *count = test.report_count();
  if (status == kOk) artifact->state = INGOT_STATE_SELF_TESTED;
  return status;
}
