#include "artifact/errors.h"

#include <utility>

namespace ingot::artifact {

namespace {

struct Row {
  std::uint32_t number;
  std::string_view name;
  int exit_code;
};

constexpr Row kRows[] = {
#define INGOT_ROW(name, number, exit_code) {number, "E_" #name, exit_code},
    INGOT_ERROR_LIST(INGOT_ROW)
#undef INGOT_ROW
};

const Row* find(std::uint32_t number) {
  for (const Row& row : kRows) {
    if (row.number == number) return &row;
  }
  return nullptr;
}

}  // namespace

std::string_view error_name(std::uint32_t number) {
  const Row* row = find(number);
  return row == nullptr ? "E_UNKNOWN" : row->name;
}

ExitCode error_exit_code(std::uint32_t number) {
  const Row* row = find(number);
  if (row == nullptr || row->exit_code == 0) return ExitCode::Internal;
  return static_cast<ExitCode>(row->exit_code);
}

std::unexpected<Failure> fail_with(IngotErrorNumber number, std::string detail) {
  const std::string name(error_name(number));
  return fail(error_exit_code(number), name, name + ": " + std::move(detail));
}

}  // namespace ingot::artifact
