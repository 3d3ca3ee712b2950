// CHECK for broken invariants: a defect of ingot, never a bad input.
//
// Prints place and condition, then ends the process with exit code 70. Bad models, files and
// options never reach a CHECK: they become a Failure (result.h).
#pragma once

#include <string_view>

namespace ingot {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view what) noexcept;

}  // namespace ingot

#define INGOT_CHECK(condition, what)                                               \
  do {                                                                             \
    if (!(condition)) ::ingot::check_failed(__FILE__, __LINE__, #condition, what); \
  } while (false)
