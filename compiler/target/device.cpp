// Device files: a target, and what is known of the machine beyond it. Strict: an unknown key, a
// repeated key and a wrong type are errors, and all of them are reported.
#include <bit>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/target/target.h"

namespace ingot {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "ingot-device/1";

struct Reader {
  const std::string& file;
  std::vector<Diagnostic> diagnostics;

  void error(const std::string& message, const std::string& hint = {}) {
    Diagnostic diagnostic;
    diagnostic.code = "malformed-device";
    diagnostic.file = file;
    diagnostic.message = message;
    diagnostic.hint = hint;
    diagnostics.push_back(std::move(diagnostic));
  }
  void read_size(const Json& json, const char* key, std::int64_t& bytes) {
    constexpr std::int64_t kLeast = 1 << 10;
    constexpr std::int64_t kMost = std::int64_t{4} << 30;
    const auto found = json.find(key);
    if (found == json.end()) return;
    const bool is_size = found->is_number_unsigned() && found->get<std::uint64_t>() >= kLeast &&
                         found->get<std::uint64_t>() <= kMost;
    if (!is_size) {
      error(std::string("'") + key + "' is not a whole number of bytes from 1024 to 4294967296");
      return;
    }
    bytes = found->get<std::int64_t>();
  }
  void read_vector_bits(const Json& json, Target& target) {
    const auto found = json.find("vector_bits");
    if (found == json.end()) return;
    const bool is_count = found->is_number_unsigned() && found->get<std::uint64_t>() >= 128 &&
                          found->get<std::uint64_t>() <= 512 &&
                          std::has_single_bit(found->get<std::uint64_t>());
    if (!is_count) {
      error("'vector_bits' is not 128, 256 or 512");
      return;
    }
    const auto bits = found->get<int>();
    if (bits > target.vector_bits) {
      error("'vector_bits' is more than the " + std::to_string(target.vector_bits) +
            " of target '" + target.name + "'");
      return;
    }
    target.vector_bits = bits;
  }
  void read_text(const Json& json, const char* key) {
    const auto found = json.find(key);
    if (found != json.end() && !found->is_string())
      error(std::string("'") + key + "' is not a text");
  }
};

// Parses without exceptions; a key that occurs twice is reported.
Json parse_strictly(const std::string& text, Reader& reader) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end && !keys.empty()) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.empty()) {
      const auto key = parsed.get<std::string>();
      if (!keys.back().insert(key).second) reader.error("key '" + key + "' occurs twice");
    }
    return true;
  };
  return Json::parse(text, watch, /*allow_exceptions=*/false);
}

void read_device(const Json& json, Reader& reader, Target& target) {
  static const std::set<std::string> known = {"format",   "name",     "target",  "vector_bits",
                                              "l1_bytes", "l2_bytes", "l3_bytes"};
  for (const auto& [key, value] : json.items()) {
    if (!known.contains(key)) {
      reader.error("unknown key '" + key + "'", "docs/device.schema.json lists the keys");
    }
  }
  const auto format = json.find("format");
  if (format == json.end() || *format != kFormat) {
    reader.error(std::string("'format' is not \"") + kFormat + "\"");
  }
  const auto name = json.find("target");
  if (name == json.end() || !name->is_string()) {
    reader.error("'target' does not name a target");
  } else if (Result<Target> found = find_target(name->get<std::string>())) {
    target = *std::move(found);
    reader.read_vector_bits(json, target);
  } else {
    const Diagnostic& cause = found.error().diagnostics.front();
    reader.error(cause.message, cause.hint);
  }
  reader.read_text(json, "name");
  reader.read_size(json, "l1_bytes", target.l1_bytes);
  reader.read_size(json, "l2_bytes", target.l2_bytes);
  reader.read_size(json, "l3_bytes", target.l3_bytes);
}

}  // namespace

Result<Target> parse_device(const std::string& json, const std::string& file) {
  Reader reader{file, {}};
  const Json parsed = parse_strictly(json, reader);
  Target target;
  if (parsed.is_discarded()) {
    reader.error("not valid JSON");
  } else if (!parsed.is_object()) {
    reader.error("not a JSON object");
  } else {
    read_device(parsed, reader, target);
  }
  if (reader.diagnostics.empty()) return target;
  return std::unexpected(Failure{ExitCode::Malformed, std::move(reader.diagnostics)});
}

}  // namespace ingot
