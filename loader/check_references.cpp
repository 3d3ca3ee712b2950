// Step 25: reference vectors.
#include "loader/internal.h"

namespace ingot::loader {

namespace {

#define FIELD(name) INGOT_FIELD(IngotRefRecord, name)

// Finite and not negative. Comparisons with NaN are false.
bool sane(float value) { return value >= 0.0f && value <= 3.4028235e38f; }

constexpr FieldRule kRules[] = {
    INGOT_ZERO(IngotRefRecord, reserved_2c),
    INGOT_ZERO(IngotRefRecord, reserved_38),
    INGOT_RANGE(IngotRefRecord, origin, INGOT_ORIGIN_OWN_DOUBLE, INGOT_ORIGIN_MEASURED),
};

class ReferenceWalk {
 public:
  ReferenceWalk(const ingot_artifact& artifact, const Tables& tables, const Place& place)
      : artifact_(artifact), tables_(tables), place_(place) {}

  ingot_status run();

 private:
  ingot_status check_record(const IngotRefRecord& r);
  ingot_status check_position(const IngotRefRecord& r);
  ingot_status check_tolerances(const IngotRefRecord& r);
  ingot_status check_ceilings(const IngotRefRecord& r);
  ingot_status check_data(const IngotRefRecord& r);
  ingot_status finish_step();
  ingot_status check_coverage();

  ingot_status bad(uint32_t field, uint64_t found, uint64_t allowed) const {
    return place_.fail(INGOT_E_REFVEC, field, found, allowed);
  }

  const ingot_artifact& artifact_;
  const Tables& tables_;
  Place place_;
  uint32_t sequence_ = 0;
  uint32_t step_ = 0;
  uint64_t data_end_ = 0;
  bool two_steps_ = false;
  bool seen_[INGOT_MAX_IO] = {};
};

// Every step has every input and every output.
ingot_status ReferenceWalk::finish_step() {
  for (uint32_t i = 0; i < tables_.io.count; ++i) {
    const bool state = tables_.io[i].direction == INGOT_DIRECTION_STATE;
    if (!state && !seen_[i]) return bad(FIELD(io), i, tables_.io.count);
  }
  std::memset(seen_, 0, sizeof seen_);
  return kOk;
}

ingot_status ReferenceWalk::check_position(const IngotRefRecord& r) {
  if (r.sequence == sequence_ && r.step == step_) return kOk;
  const bool next_step = r.sequence == sequence_ && r.step == step_ + 1;
  const bool next_sequence = r.sequence == sequence_ + 1 && r.step == 0;
  if (place_.record == 0 || (!next_step && !next_sequence)) {
    return bad(FIELD(step), r.step, step_);
  }
  INGOT_RETURN_IF(finish_step());
  two_steps_ = two_steps_ || next_step;
  sequence_ = r.sequence;
  step_ = r.step;
  return kOk;
}

ingot_status ReferenceWalk::check_tolerances(const IngotRefRecord& r) {
  if (!sane(r.atol)) return bad(FIELD(atol), 0, 0);
  if (!sane(r.rtol)) return bad(FIELD(rtol), 0, 0);
  if (!sane(r.min_cosine) || r.min_cosine > 1.0f) return bad(FIELD(min_cosine), 0, 0);
  const bool absolute = r.compare == INGOT_COMPARE_ABS_REL || r.compare == INGOT_COMPARE_COSINE;
  // What the comparison does not use is zero.
  if (!absolute && r.atol != 0.0f) return bad(FIELD(atol), 0, 0);
  if (r.compare != INGOT_COMPARE_ABS_REL && r.rtol != 0.0f) return bad(FIELD(rtol), 0, 0);
  if (r.compare != INGOT_COMPARE_ULP && r.max_ulp != 0) return bad(FIELD(max_ulp), r.max_ulp, 0);
  if (r.compare != INGOT_COMPARE_COSINE && r.min_cosine != 0.0f) {
    return bad(FIELD(min_cosine), 0, 0);
  }
  return kOk;
}

// A wide tolerance would make the self-test empty.
ingot_status ReferenceWalk::check_ceilings(const IngotRefRecord& r) {
  const Ceilings& limit = artifact_.ceilings;
  const auto wide = [&](uint32_t field) { return place_.fail(INGOT_E_TOLERANCE, field); };
  if (limit.max_atol > 0.0f && r.atol > limit.max_atol) return wide(FIELD(atol));
  if (limit.max_rtol > 0.0f && r.rtol > limit.max_rtol) return wide(FIELD(rtol));
  if (limit.max_ulp > 0 && r.max_ulp > limit.max_ulp) return wide(FIELD(max_ulp));
  if (r.compare == INGOT_COMPARE_COSINE && r.min_cosine < limit.min_cosine) {
    return wide(FIELD(min_cosine));
  }
  return kOk;
}

ingot_status ReferenceWalk::check_data(const IngotRefRecord& r) {
  const uint64_t expected = align_up(data_end_, INGOT_ALIGNMENT);
  if (r.offset != expected) return bad(FIELD(offset), r.offset, expected);
  const uint64_t nbytes = tables_.io[r.io].nbytes;
  if (r.nbytes != nbytes) return bad(FIELD(nbytes), r.nbytes, nbytes);
  if (!inside(r.offset, r.nbytes, tables_.refdata.nbytes)) {
    return bad(FIELD(offset), r.offset, tables_.refdata.nbytes);
  }
  data_end_ = r.offset + r.nbytes;
  return kOk;
}

ingot_status ReferenceWalk::check_record(const IngotRefRecord& r) {
  INGOT_RETURN_IF(check_fields(&r, kRules, INGOT_E_REFVEC, place_));
  INGOT_RETURN_IF(check_position(r));
  if (r.io >= tables_.io.count) return bad(FIELD(io), r.io, tables_.io.count);
  if (seen_[r.io]) return bad(FIELD(io), r.io, tables_.io.count);
  seen_[r.io] = true;
  const uint8_t direction = tables_.io[r.io].direction;
  if (r.role != direction) return bad(FIELD(role), r.role, direction);
  const bool input = direction == INGOT_DIRECTION_INPUT;
  if (input ? r.compare != INGOT_COMPARE_NONE
            : r.compare < INGOT_COMPARE_EXACT || r.compare > INGOT_COMPARE_COSINE) {
    return bad(FIELD(compare), r.compare, INGOT_COMPARE_COSINE);
  }
  if (input ? r.flags != 0 : r.flags > INGOT_REF_NAN_MATCHES) return bad(FIELD(flags), r.flags, 1);
  INGOT_RETURN_IF(check_data(r));
  INGOT_RETURN_IF(check_tolerances(r));
  return check_ceilings(r);
}

// With vectors required, a release whose model keeps a state must show that the state works.
ingot_status ReferenceWalk::check_coverage() {
  if (!artifact_.ceilings.require_vectors) return kOk;
  bool has_state = false;
  for (uint32_t i = 0; i < tables_.io.count; ++i) {
    has_state = has_state || tables_.io[i].direction == INGOT_DIRECTION_STATE;
  }
  const bool release = artifact_.header.build_class == INGOT_BUILD_CLASS_RELEASE;
  if (tables_.refs.count == 0 || (release && has_state && !two_steps_)) {
    return place_.fail(INGOT_E_SELFTEST_MISSING);
  }
  return kOk;
}

ingot_status ReferenceWalk::run() {
  place_.step = 25;
  place_.section = tables_.refs.section;
  if ((tables_.refs.count == 0) != (tables_.refdata.data == nullptr)) {
    return bad(kNone, tables_.refs.count, tables_.refdata.nbytes);
  }
  for (place_.record = 0; place_.record < tables_.refs.count; ++place_.record) {
    INGOT_RETURN_IF(check_record(tables_.refs[place_.record]));
  }
  place_.record = kNone;
  if (tables_.refs.count > 0) INGOT_RETURN_IF(finish_step());
  const uint64_t nbytes = tables_.refdata.nbytes;
  // Vectors without bytes still need a section, which is never empty.
  const bool all_used = nbytes == data_end_ || (data_end_ == 0 && nbytes == 1);
  if (!all_used) return bad(kNone, nbytes, data_end_);
  return check_coverage();
}

#undef FIELD

}  // namespace

ingot_status check_references(const ingot_artifact& artifact, const Tables& tables, Place place) {
  return ReferenceWalk(artifact, tables, place).run();
}

ingot_status check_variant_tables(const ingot_artifact& artifact, const Tables& tables,
                                  ingot_error* error) {
  Place place = {error, 19, tables.variant, kNone, kNone};
  INGOT_RETURN_IF(check_interface_tables(artifact, tables, place));
  INGOT_RETURN_IF(check_memory_tables(artifact, tables, place));
  INGOT_RETURN_IF(check_call_tables(artifact, tables, place));
  INGOT_RETURN_IF(check_references(artifact, tables, place));
  place.step = 26;
  return check_interface_digest(artifact, tables, place);
}

}  // namespace ingot::loader
