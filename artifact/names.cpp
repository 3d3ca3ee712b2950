#include "artifact/names.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "artifact/digest.h"
#include "artifact/format.h"
#include "base/hex.h"

namespace ingot::artifact {

namespace {

constexpr std::size_t kHashDigits = 32;
constexpr std::size_t kMaxStem = 200;
constexpr std::size_t kMaxProduct = 32;
constexpr char kUpperDigits[] = "0123456789ABCDEF";

bool is_alphanumeric(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

// The alphabet without `%`, which only the encoding itself writes.
bool is_plain(char c) {
  return is_alphanumeric(c) || std::string_view("_.:/-+").find(c) != std::string_view::npos;
}

std::string short_hash(std::string_view original) {
  return to_hex(sha256(original)).substr(0, kHashDigits);
}

}  // namespace

std::string encode_name(std::string_view original) {
  if (original.empty()) return "%-";
  const std::size_t room = INGOT_MAX_NAME - 2 - kHashDigits;
  std::string encoded;
  std::size_t cut = 0;  // longest part that leaves room for the hash and ends between characters
  for (const char c : original) {
    if (encoded.size() <= room) cut = encoded.size();
    if (is_plain(c)) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += '%';
      encoded += kUpperDigits[byte >> 4];
      encoded += kUpperDigits[byte & 15];
    }
  }
  if (encoded.size() <= INGOT_MAX_NAME) return encoded;
  encoded.resize(cut);
  return encoded + "%-" + short_hash(original);
}

std::optional<std::string> decode_name(std::string_view encoded) {
  if (encoded == "%-") return std::string();
  if (encoded.empty() || encoded.size() > INGOT_MAX_NAME) return std::nullopt;
  std::string original;
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    const char c = encoded[i];
    if (is_plain(c)) {
      original += c;
      continue;
    }
    if (c != '%' || encoded.size() - i < 3) return std::nullopt;
    const int high = hex_digit(encoded[i + 1]);
    const int low = hex_digit(encoded[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    original += static_cast<char>(high * 16 + low);
    i += 2;
  }
  // Only one spelling counts: `%41` for a plain `A`, or `%3f`, is not what encode_name writes.
  if (encode_name(original) != encoded) return std::nullopt;
  return original;
}

bool is_stored_name(std::string_view name) {
  return !name.empty() && name.size() <= INGOT_MAX_NAME &&
         std::ranges::all_of(name, [](char c) { return c == '%' || is_plain(c); });
}

std::string file_stem(std::string_view original) {
  std::string stem(original);
  for (char& c : stem) {
    if (!is_alphanumeric(c) && c != '.' && c != '_' && c != '-') c = '_';
  }
  if (stem.empty()) return "_";
  if (stem.size() <= kMaxStem) return stem;
  stem.resize(kMaxStem - 1 - kHashDigits);
  return stem + "-" + short_hash(original);
}

Result<std::vector<std::string>> file_stems(std::span<const std::string> originals) {
  std::vector<std::string> stems;
  std::map<std::string, std::string> taken;
  Failure failure{ExitCode::Unsupported, {}};
  for (const std::string& original : originals) {
    stems.push_back(file_stem(original));
    const auto [other, fresh] = taken.emplace(stems.back(), original);
    if (fresh) continue;
    Diagnostic diagnostic;
    diagnostic.code = "file-name-collision";
    diagnostic.message = "outputs '" + encode_name(other->second) + "' and '" +
                         encode_name(original) + "' would both be written to '" + stems.back() +
                         "'";
    diagnostic.hint = "rename one of the outputs in the model";
    failure.diagnostics.push_back(std::move(diagnostic));
  }
  if (!failure.diagnostics.empty()) return std::unexpected(std::move(failure));
  return stems;
}

std::string product_name(std::string_view name) {
  std::string product;
  for (const char c : name.substr(0, kMaxProduct)) {
    if (c >= 'A' && c <= 'Z') {
      product += static_cast<char>(c - 'A' + 'a');
    } else {
      product += is_alphanumeric(c) || c == '.' ? c : '-';
    }
  }
  return product.empty() ? "model" : product;
}

bool is_product_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxProduct && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

}  // namespace ingot::artifact
