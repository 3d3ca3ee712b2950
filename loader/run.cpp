// One frame: inputs in, transforms checked, calls made, results checked, then accepted or not.
#include <time.h>

#include "loader/instance.h"

namespace ingot::loader {

namespace {

#if defined(__x86_64__)
constexpr uint32_t kPlainControl = INGOT_FP_X86_DEFAULT;
#else
constexpr uint32_t kPlainControl = INGOT_FP_AARCH64_DEFAULT;
#endif

class FrameRun {
 public:
  FrameRun(ingot_instance* instance, ingot_frame* frame, uint64_t begin)
      : instance_(*instance), tables_(instance->artifact->tables), frame_(*frame), begin_(begin) {}

  void run();

 private:
  bool everything_bound();
  void poison();
  void copy_inputs();
  bool check_transforms();
  void note_frames();
  uint32_t note_age(const Slot& slot);
  bool in_time(uint32_t call);
  bool make_calls();
  bool make_call(uint32_t index);
  int32_t run_program(const PlannedCall& call);
  bool skip_call(uint32_t index);
  void fill(const IngotTransformRecord& transform);
  bool check_finite();
  bool finite(const Slot& slot, uint32_t buffer);
  void accept();

  bool reject(ingot_status status, uint32_t slot) {
    frame_.status = status;
    frame_.slot = slot;
    return false;
  }

  ingot_instance& instance_;
  const Tables& tables_;
  ingot_frame& frame_;
  uint64_t begin_;
  uint64_t filled_ = 0;  // one bit for each transform whose warp is replaced
};

bool FrameRun::everything_bound() {
  for (uint32_t i = 0; i < tables_.io.count; ++i) {
    const Slot& slot = instance_.slots[i];
    const bool needed = slot.io.direction == INGOT_DIRECTION_INPUT || slot.by_pointer;
    if (needed && !slot.bound.is_bound) return reject(INGOT_E_ARG_MISSING, i);
  }
  return true;
}

void FrameRun::poison() {
  for (uint32_t i = 0; i < tables_.arenas.count; ++i) {
    const IngotArenaRecord& arena = tables_.arenas[i];
    if (arena.role == INGOT_ARENA_FRAME) {
      std::memset(instance_.arena_start[i], 0xFF, static_cast<size_t>(arena.nbytes));
    }
  }
  for (uint32_t i = 0; i < tables_.io.count; ++i) {
    const Slot& slot = instance_.slots[i];
    if (slot.bound.staged) std::memset(slot.staging.address, 0xFF, slot.staging.nbytes);
  }
}

void FrameRun::copy_inputs() {
  for (uint32_t i = 0; i < tables_.io.count; ++i) {
    const Slot& slot = instance_.slots[i];
    if (slot.io.direction != INGOT_DIRECTION_INPUT || !slot.copied() || slot.io.nbytes == 0) {
      continue;
    }
    frame_.copied_nbytes += slot.io.nbytes;
    std::memcpy(instance_.buffer_address[slot.buffer], slot.bound.data,
                static_cast<size_t>(slot.io.nbytes));
  }
}

// Reads the matrices where the calls will read them.
bool FrameRun::check_transforms() {
  for (uint32_t i = 0; i < tables_.transforms.count; ++i) {
    const IngotTransformRecord& t = tables_.transforms[i];
    const uint8_t* slot = instance_.buffer_address[instance_.slots[t.io].buffer];
    const ingot_status status = check_matrix(slot + t.matrix_offset, t.width, t.height);
    if (status == kOk) continue;
    if (t.policy != INGOT_TRANSFORM_FILL) return reject(status, t.io);
    if (filled_ == 0) reject(status, t.io);  // the number stays with the frame
    // Warps that share calls are replaced together.
    for (uint32_t k = 0; k < tables_.transforms.count; ++k) {
      const IngotTransformRecord& other = tables_.transforms[k];
      if (other.policy != INGOT_TRANSFORM_FILL || other.first_call != t.first_call) continue;
      filled_ |= uint64_t{1} << k;
    }
    frame_.flags |= INGOT_FRAME_FILLED;
  }
  return true;
}

// How old a camera frame was when this frame began, by its stamp or by what the caller says.
uint32_t FrameRun::note_age(const Slot& slot) {
  const Bound& bound = slot.bound;
  uint32_t flags = 0;
  uint64_t age_us = bound.has_age ? bound.age_us : 0;
  if (bound.has_timestamp) {
    if (bound.timestamp_ns > begin_) {
      flags = INGOT_FRAME_AHEAD;
    } else if ((begin_ - bound.timestamp_ns) / 1000 > age_us) {
      age_us = (begin_ - bound.timestamp_ns) / 1000;
    }
  }
  if (age_us > frame_.age_us) frame_.age_us = age_us;
  const uint32_t limit = tables_.cameras[slot.io.camera].max_age_us;
  if (limit != 0 && age_us > limit) flags |= INGOT_FRAME_OLD;
  return flags;
}

// Frames that were seen before or are too old are used, but not silently.
void FrameRun::note_frames() {
  for (uint32_t i = 0; i < tables_.io.count; ++i) {
    Slot& slot = instance_.slots[i];
    const Bound& bound = slot.bound;
    if (bound.staged) frame_.flags |= INGOT_FRAME_STAGED;
    if (slot.io.camera == kNone) continue;
    uint32_t flags = note_age(slot);
    if (bound.has_sequence) {
      if (slot.has_last_sequence && bound.sequence <= slot.last_sequence)
        flags |= INGOT_FRAME_STALE;
      slot.has_last_sequence = true;
      slot.last_sequence = bound.sequence;
    }
    if (flags != 0 && frame_.slot == kNone) frame_.slot = i;
    frame_.flags |= flags;
  }
}

int32_t FrameRun::run_program(const PlannedCall& call) {
  if (call.parts > 1) return run_parts(&instance_, call, &frame_.taken_over);
  return call.program(instance_.addresses + call.first_pointer,
                      instance_.scalars + call.first_scalar, 0, call.outer_range, 0);
}

bool FrameRun::make_call(uint32_t index) {
  const PlannedCall& call = instance_.calls[index];
  const void** addresses = instance_.addresses + call.first_pointer;
  switch (call.kind) {
    case INGOT_CALL_PROGRAM: {
      const int32_t result = run_program(call);
      if ((result & INGOT_PROGRAM_INDEX_CLAMPED) != 0) frame_.flags |= INGOT_FRAME_CLAMPED;
      if ((result & ~INGOT_PROGRAM_INDEX_CLAMPED) == 0) return true;
      frame_.call = index;
      frame_.result = result;
      return reject(INGOT_E_RUN_FAILED, kNone);
    }
    case INGOT_CALL_COPY:
      std::memcpy(const_cast<void*>(addresses[1]), addresses[0], static_cast<size_t>(call.nbytes));
      return true;
    case INGOT_CALL_FILL:
      std::memset(const_cast<void*>(addresses[0]), call.fill_value,
                  static_cast<size_t>(call.nbytes));
      return true;
    default: return true;  // BARRIER: there is no other queue
  }
}

void FrameRun::fill(const IngotTransformRecord& t) {
  uint8_t* to = instance_.buffer_address[t.fill_buffer] + t.fill_offset;
  const size_t luma = size_t{t.width} * t.height;
  std::memset(to, t.fill_luma, luma);
  if (t.kind == INGOT_TRANSFORM_ROAD) std::memset(to + luma, t.fill_chroma, luma / 2);
}

// True if a replaced warp covers this call. Its last call is where the fill value goes.
bool FrameRun::skip_call(uint32_t index) {
  bool skipped = false;
  for (uint32_t i = 0; i < tables_.transforms.count; ++i) {
    if ((filled_ >> i & 1) == 0) continue;
    const IngotTransformRecord& t = tables_.transforms[i];
    if (index < t.first_call || index > t.last_call) continue;
    skipped = true;
    if (index == t.last_call) fill(t);
  }
  return skipped;
}

// A deadline is looked at between calls: what runs is never cut off.
bool FrameRun::in_time(uint32_t call) {
  const uint64_t limit = instance_.deadline_nanoseconds;
  if (limit == 0 || now_nanoseconds() - begin_ <= limit) return true;
  frame_.call = call;
  return reject(INGOT_E_DEADLINE, kNone);
}

bool FrameRun::make_calls() {
  for (uint32_t i = 0; i < tables_.calls.count; ++i) {
    if (!in_time(i)) return false;
    const uint64_t begin = instance_.hook != nullptr ? now_nanoseconds() : 0;
    const bool skipped = filled_ != 0 && skip_call(i);
    if (!skipped && !make_call(i)) return false;
    if (instance_.hook != nullptr) {
      instance_.hook(instance_.hook_user, i, now_nanoseconds() - begin);
    }
  }
  const bool refuse = (instance_.flags & INGOT_RUN_REFUSE_CLAMPED) != 0;
  if ((frame_.flags & INGOT_FRAME_CLAMPED) == 0) return true;
  if (frame_.status == kOk || refuse) frame_.status = INGOT_E_INDEX_CLAMPED;
  return !refuse;
}

// Of a floating-point type, repeated over a word: the bits of the exponent and the lowest of them.
// An exponent of ones, and only that, carries into the sign when the lowest is added.
struct FloatBits {
  uint64_t exponent;
  uint64_t lowest;

  bool finite(uint64_t word) const {
    const uint64_t signs = exponent + lowest;
    return (((word & exponent) + lowest) & signs) == 0;
  }
};

FloatBits float_bits(uint32_t dtype) {
  switch (dtype) {
    case INGOT_DTYPE_F16: return {0x7C007C007C007C00u, 0x0400040004000400u};
    case INGOT_DTYPE_BF16: return {0x7F807F807F807F80u, 0x0080008000800080u};
    case INGOT_DTYPE_F64: return {0x7FF0000000000000u, 0x0010000000000000u};
    default: return {0x7F8000007F800000u, 0x0080000000800000u};
  }
}

// A state may be a long queue, so whole words first: 4 to 8 bytes for each cycle.
bool dense_finite(const FloatBits& bits, const uint8_t* data, uint64_t nbytes) {
  for (; nbytes >= 8; nbytes -= 8, data += 8) {
    if (!bits.finite(load<uint64_t>(data))) return false;
  }
  uint64_t rest = 0;
  std::memcpy(&rest, data, static_cast<size_t>(nbytes));
  return bits.finite(rest);
}

bool FrameRun::finite(const Slot& slot, uint32_t buffer) {
  const uint8_t* data = instance_.buffer_address[buffer];
  const FloatBits bits = float_bits(slot.io.dtype);
  if (slot.io.nbytes == slot.io.logical_nbytes && dense_finite(bits, data, slot.io.nbytes)) {
    return true;
  }
  const uint32_t size = element_size(slot.io.dtype);
  bool good = true;
  for_each_element(slot.io, [&](uint64_t index, uint64_t offset) {
    good = dense_finite(bits, data + offset, size);
    if (!good) frame_.element = index;
    return good;
  });
  return good;
}

// A next state that is not finite would poison every later frame, so those are always looked at.
bool FrameRun::check_finite() {
  const bool outputs = (instance_.flags & INGOT_RUN_CHECK_OUTPUTS) != 0;
  for (uint32_t i = 0; i < tables_.io.count; ++i) {
    const Slot& slot = instance_.slots[i];
    const bool checked = slot.io.direction == INGOT_DIRECTION_STATE ||
                         (outputs && slot.io.direction == INGOT_DIRECTION_OUTPUT);
    if (!checked || !is_float(slot.io.dtype) || slot.io.nbytes == 0) continue;
    const uint32_t buffer = slot.next_buffer != kNone ? slot.next_buffer : slot.buffer;
    if (!finite(slot, buffer)) return reject(INGOT_E_OUTPUT_NONFINITE, i);
  }
  return true;
}

void FrameRun::accept() {
  for (uint32_t i = 0; i < tables_.io.count; ++i) {
    const Slot& slot = instance_.slots[i];
    if (slot.next_buffer != kNone) {
      uint8_t* state = instance_.buffer_address[slot.buffer];
      set_buffer(&instance_, slot.buffer, instance_.buffer_address[slot.next_buffer]);
      set_buffer(&instance_, slot.next_buffer, state);
    }
    const bool copied_out = slot.io.direction == INGOT_DIRECTION_OUTPUT && slot.copied() &&
                            slot.bound.is_bound && slot.io.nbytes > 0;
    if (copied_out) {
      std::memcpy(slot.bound.data, instance_.buffer_address[slot.buffer],
                  static_cast<size_t>(slot.io.nbytes));
    }
  }
  frame_.accepted = 1;
  frame_.valid = filled_ == 0 ? 1 : 0;
}

void FrameRun::run() {
  if (!everything_bound()) return;
  if (instance_.crew != nullptr) begin_frame(instance_.crew);
  if ((instance_.flags & INGOT_RUN_POISON) != 0) poison();
  copy_inputs();
  const uint32_t host_control = read_fp_control();
  // The matrices are judged with plain rounding and denormals, whatever host and artifact use.
  write_fp_control(kPlainControl);
  bool good = check_transforms();
  if (good) {
    note_frames();
    write_fp_control(tables_.record->fp_control);
    good = make_calls();
  }
  write_fp_control(host_control);
  if (good && check_finite() && in_time(kNone)) accept();
}

}  // namespace

uint64_t now_nanoseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

bool is_float(uint32_t dtype) { return dtype >= INGOT_DTYPE_F32 && dtype <= INGOT_DTYPE_F64; }

}  // namespace ingot::loader

ingot_status ingot_run(ingot_instance* instance, ingot_frame* frame) {
  ingot_frame own;
  if (frame == nullptr) frame = &own;
  std::memset(frame, 0, sizeof *frame);
  frame->slot = frame->call = INGOT_NONE;
  const ingot::loader::Hold hold(instance);
  if (hold.status() != ingot::loader::kOk) return frame->status = hold.status();
  const uint64_t begin = ingot::loader::now_nanoseconds();
  instance->valid_generation = 0;
  ingot::loader::FrameRun(instance, frame, begin).run();
  frame->generation = ++instance->generation;
  if (frame->valid != 0) instance->valid_generation = frame->generation;
  frame->nanoseconds = ingot::loader::now_nanoseconds() - begin;
  return frame->status;
}

uint32_t ingot_outputs_valid(const ingot_instance* instance, uint64_t generation) {
  return instance != nullptr && generation != 0 && instance->valid_generation == generation ? 1 : 0;
}
