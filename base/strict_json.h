// Reading JSON files of the project: every key is known, every type is right, and everything that
// is not gets reported, with its place, in one go.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ingot {

using Json = nlohmann::ordered_json;  // keys stay in the order in which they were set

// Any JSON. Malformed, with line and column, if it is none or repeats a key of an object: readers
// would not agree on which of the two counts.
[[nodiscard]] Result<Json> parse_json(std::string_view text, const std::string& file);

// A file that people write: also Malformed if it is no object or larger than 1 MiB.
[[nodiscard]] Result<Json> parse_json_file(std::string_view text, const std::string& file);

// What is wrong with a file, in the order it was found.
class JsonProblems {
 public:
  explicit JsonProblems(std::string file) : file_(std::move(file)) {}

  void add(const std::string& place, std::string code, std::string message, std::string hint = {});
  [[nodiscard]] bool empty() const { return diagnostics_.empty(); }
  // The Malformed failure of all of them. Needs: not empty.
  [[nodiscard]] std::unexpected<Failure> failure() const;
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  std::string file_;
  std::vector<Diagnostic> diagnostics_;
};

// One object of a file. Reading a key marks it as known; finish() reports the others. Getters
// report a missing or wrong value and then give a harmless one.
class JsonObject {
 public:
  // `place` is "" for the whole file, else such as "stages[3]".
  JsonObject(const Json& value, std::string place, JsonProblems& problems);

  // Null if the key is missing.
  [[nodiscard]] const Json* find(std::string_view key);
  [[nodiscard]] const Json* require(std::string_view key);
  [[nodiscard]] std::string text(std::string_view key);
  [[nodiscard]] std::string text_or(std::string_view key, std::string_view absent);
  [[nodiscard]] std::int64_t integer(std::string_view key, std::int64_t min, std::int64_t max);
  [[nodiscard]] std::int64_t integer_or(std::string_view key, std::int64_t absent, std::int64_t min,
                                        std::int64_t max);
  // These four give nothing for a key that is missing or wrong.
  [[nodiscard]] std::optional<std::string> optional_text(std::string_view key);
  [[nodiscard]] std::optional<std::uint64_t> optional_count(std::string_view key, std::uint64_t min,
                                                            std::uint64_t max);
  [[nodiscard]] std::optional<double> optional_real(std::string_view key, double min, double max);
  [[nodiscard]] std::optional<bool> optional_flag(std::string_view key);
  // Reports keys that nobody asked for.
  void finish();

  // "stages[3]" and "id" -> "stages[3].id".
  [[nodiscard]] std::string place_of(std::string_view key) const;
  void problem(std::string_view key, std::string message, std::string hint = {});

 private:
  const Json* object_ = nullptr;  // null if the value is no object
  std::string place_;
  JsonProblems& problems_;
  std::vector<std::string> known_;
};

// "an object", "text", "a number" ...; for messages.
[[nodiscard]] std::string_view json_kind(const Json& value);

}  // namespace ingot
