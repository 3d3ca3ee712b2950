#include "compiler/tensor/dtype.h"

#include <array>

#include "base/check.h"

namespace ingot {
namespace {

enum class Kind : std::uint8_t { Float, Signed, Unsigned, Bool };

struct Row {
  DType dtype;
  std::string_view name;
  int size_bytes;
  Kind kind;
};

constexpr std::array kRows = {
    Row{DType::F32, "f32", 4, Kind::Float},    Row{DType::F16, "f16", 2, Kind::Float},
    Row{DType::BF16, "bf16", 2, Kind::Float},  Row{DType::F64, "f64", 8, Kind::Float},
    Row{DType::U8, "u8", 1, Kind::Unsigned},   Row{DType::I8, "i8", 1, Kind::Signed},
    Row{DType::I16, "i16", 2, Kind::Signed},   Row{DType::I32, "i32", 4, Kind::Signed},
    Row{DType::I64, "i64", 8, Kind::Signed},   Row{DType::Bool, "bool", 1, Kind::Bool},
    Row{DType::U16, "u16", 2, Kind::Unsigned}, Row{DType::U32, "u32", 4, Kind::Unsigned},
    Row{DType::U64, "u64", 8, Kind::Unsigned},
};

constexpr bool rows_follow_the_codes() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::size_t>(kRows[i].dtype) != i + 1) return false;
  }
  return true;
}
static_assert(rows_follow_the_codes());

const Row& row(DType dtype) {
  const auto code = static_cast<std::size_t>(dtype);
  INGOT_CHECK(code >= 1 && code <= kRows.size(), "not an element type");
  return kRows[code - 1];
}

}  // namespace

int size_bytes(DType dtype) { return row(dtype).size_bytes; }
bool is_float(DType dtype) { return row(dtype).kind == Kind::Float; }
bool is_integer(DType dtype) {
  return row(dtype).kind == Kind::Signed || row(dtype).kind == Kind::Unsigned;
}
bool is_signed(DType dtype) { return row(dtype).kind == Kind::Signed; }
std::string_view name(DType dtype) { return row(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Row& candidate : kRows) {
    if (candidate.name == name) return candidate.dtype;
  }
  return std::nullopt;
}

}  // namespace ingot
