// The section STRINGS while it is written: encoded names in order of first use, each once.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "artifact/format.h"

namespace ingot::artifact {

class StringTable {
 public:
  // The place of the encoded form of `original`.
  IngotName add(std::string_view original);

  // {0, 0} where there is none.
  IngotName add_optional(std::string_view original) {
    return original.empty() ? IngotName{} : add(original);
  }

  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  // Encoded names that were too long, with their originals.
  [[nodiscard]] const std::map<std::string, std::string>& cut_names() const { return cut_; }

 private:
  std::string bytes_;
  std::unordered_map<std::string, IngotName> places_;
  std::map<std::string, std::string> cut_;
};

}  // namespace ingot::artifact
