#include "onnx_frontend/operator_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "onnx_frontend/importers.h"

namespace ingot {
namespace {

constexpr std::array rows = {
#define OPERATOR(domain, op, since, importer, limits) \
  OperatorRow{domain, op, since, importer, limits},
#include "onnx_frontend/operators.def"
#undef OPERATOR
};

constexpr bool before(const OperatorRow& a, const OperatorRow& b) {
  if (a.domain != b.domain) return a.domain < b.domain;
  if (a.op != b.op) return a.op < b.op;
  return a.since < b.since;
}

static_assert(std::ranges::adjacent_find(rows, [](const auto& a,
                                                  const auto& b) { return !before(a, b); }) ==
                  rows.end(),
              "operators.def is sorted by domain, operator and since-version");

// All versions of one operator.
std::span<const OperatorRow> versions(std::string_view domain, std::string_view op) {
  const auto range = std::ranges::equal_range(
      rows, std::pair(domain, op), {},
      [](const OperatorRow& row) { return std::pair(row.domain, row.op); });
  return {range.begin(), range.end()};
}

}  // namespace

std::span<const OperatorRow> operator_rows() { return rows; }

const OperatorRow* find_operator(std::string_view domain, std::string_view op, std::int64_t opset) {
  const OperatorRow* found = nullptr;
  for (const OperatorRow& row : versions(domain, op)) {
    if (row.since <= opset) found = &row;
  }
  return found;
}

bool knows_operator(std::string_view domain, std::string_view op) {
  return !versions(domain, op).empty();
}

namespace {

// Limits of all versions of an operator: "no block_size", or "up to 9: spatial=1; from 14: ..."
// where they change.
std::string limits_text(std::span<const OperatorRow> all) {
  std::string text;
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i + 1;
    while (end < all.size() && all[end].limits == all[i].limits) ++end;
    if (!all[i].limits.empty()) {
      if (!text.empty()) text += "; ";
      if (i > 0) {
        text += fmt::format("from {}: ", all[i].since);
      } else if (end < all.size()) {
        text += fmt::format("before {}: ", all[end].since);
      }
      text += all[i].limits;
    }
    i = end;
  }
  return text;
}

}  // namespace

std::string operators_markdown() {
  std::string page = fmt::format(
      "# Operators\n\n"
      "Made from `onnx_frontend/operators.def`; `ingot ops` prints the same. A model may use any "
      "opset\n"
      "of the default domain up to {}. *Since* lists the opsets in which an operator changed; each "
      "of\n"
      "these forms is accepted, with the limits given.\n\n"
      "| operator | since | limits |\n| --- | --- | --- |\n",
      newest_opset);
  for (std::size_t i = 0; i < rows.size();) {
    const std::span<const OperatorRow> all = versions(rows[i].domain, rows[i].op);
    std::string since;
    for (const OperatorRow& row : all) {
      since += fmt::format("{}{}", since.empty() ? "" : ", ", row.since);
    }
    const std::string domain = rows[i].domain.empty() ? "" : std::string(rows[i].domain) + ".";
    page += fmt::format("| {}{} | {} | {} |\n", domain, rows[i].op, since, limits_text(all));
    i += all.size();
  }
  return page;
}

}  // namespace ingot
