#include "base/check.h"

#include <unistd.h>

#include <cstdio>

namespace ingot {

void check_failed(const char* file, int line, const char* condition,
                  std::string_view what) noexcept {
  std::fprintf(
      stderr,
      "ingot: internal error: %.*s\n  %s:%d: %s\n"
      "  hint: this is a defect in ingot; please report it with the command and its input\n",
      static_cast<int>(what.size()), what.data(), file, line, condition);
  std::fflush(stderr);
  _exit(70);
}

}  // namespace ingot
