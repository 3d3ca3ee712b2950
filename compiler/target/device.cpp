// Device files: a target, and what is known of the machine beyond it.
#include <fmt/format.h>

#include <bit>

#include "base/strict_json.h"
#include "compiler/target/target.h"

namespace ingot {
namespace {

constexpr std::string_view kFormat = "ingot-device/1";

void read_size(JsonObject& object, std::string_view key, std::int64_t& bytes) {
  constexpr std::uint64_t kLeast = 1 << 10;
  constexpr std::uint64_t kMost = std::uint64_t{4} << 30;
  if (const auto size = object.optional_count(key, kLeast, kMost)) {
    bytes = static_cast<std::int64_t>(*size);
  }
}

void read_vector_bits(JsonObject& object, Target& target) {
  const auto bits = object.optional_count("vector_bits", 128, 512);
  if (!bits) return;
  if (!std::has_single_bit(*bits)) {
    object.problem("vector_bits", "expected 128, 256 or 512");
  } else if (static_cast<int>(*bits) > target.vector_bits) {
    object.problem("vector_bits", fmt::format("{} is more than the {} of target '{}'", *bits,
                                              target.vector_bits, target.name));
  } else {
    target.vector_bits = static_cast<int>(*bits);
  }
}

Target read_device(JsonObject& object) {
  if (const std::string format = object.text("format"); !format.empty() && format != kFormat) {
    object.problem("format", fmt::format("'{}' is not '{}'", format, kFormat));
  }
  (void)object.optional_text("name");  // for people
  Target target;
  if (const std::string name = object.text("target"); !name.empty()) {
    if (Result<Target> found = find_target(name)) {
      target = *std::move(found);
    } else {
      const Diagnostic& cause = found.error().diagnostics.front();
      object.problem("target", cause.message, cause.hint);
    }
  }
  read_vector_bits(object, target);
  read_size(object, "l1_bytes", target.l1_bytes);
  read_size(object, "l2_bytes", target.l2_bytes);
  read_size(object, "l3_bytes", target.l3_bytes);
  object.finish();
  return target;
}

}  // namespace

Result<Target> parse_device(const std::string& json, const std::string& file) {
  INGOT_ASSIGN(const Json root, parse_json_file(json, file));
  JsonProblems problems(file);
  JsonObject object(root, "", problems);
  Target target = read_device(object);
  if (!problems.empty()) return problems.failure();
  return target;
}

}  // namespace ingot
