#include "artifact/string_table.h"

#include "artifact/names.h"

namespace ingot::artifact {

IngotName StringTable::add(std::string_view original) {
  std::string encoded = encode_name(original);
  if (!decode_name(encoded)) cut_.emplace(encoded, original);
  const auto [place, fresh] = places_.emplace(encoded, IngotName{});
  if (fresh) {
    place->second = {static_cast<std::uint32_t>(bytes_.size()),
                     static_cast<std::uint32_t>(encoded.size())};
    bytes_ += encoded;
    bytes_ += '\0';
  }
  return place->second;
}

}  // namespace ingot::artifact
