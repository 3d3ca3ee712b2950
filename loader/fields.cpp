// Fields whose range does not depend on anything else.
#include "loader/internal.h"

namespace ingot::loader {

ingot_status check_fields(const void* record, const FieldRule* rules, size_t count,
                          ingot_status number, const Place& place) {
  for (; count > 0; --count, ++rules) {
    const auto* field = static_cast<const uint8_t*>(record) + rules->offset;
    uint64_t value = 0;
    if (rules->nbytes > sizeof value) {
      value = all_zero(field, rules->nbytes) ? 0 : 1;
    } else {
      std::memcpy(&value, field, rules->nbytes);
    }
    if (value < rules->min || value > rules->max) {
      return place.fail(number, rules->offset, value, rules->max);
    }
  }
  return kOk;
}

}  // namespace ingot::loader
