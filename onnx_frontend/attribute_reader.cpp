#include "onnx_frontend/attribute_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ingot {

AttributeReader::AttributeReader(const OnnxNode& node) : node_(node) {
  std::set<std::string_view> seen;
  for (const OnnxAttribute& attribute : node.attributes) {
    if (seen.insert(attribute.name).second) continue;
    problems_.push_back({ExitCode::Malformed, "invalid-model",
                         fmt::format("attribute '{}' is there twice", attribute.name)});
  }
}

bool AttributeReader::has(std::string_view name) const {
  return std::ranges::any_of(node_.attributes, [&](const auto& a) { return a.name == name; });
}

const OnnxAttribute* AttributeReader::find(std::string_view name, OnnxAttributeType type) {
  read_.emplace(name);
  const auto found =
      std::ranges::find_if(node_.attributes, [&](const auto& a) { return a.name == name; });
  if (found == node_.attributes.end()) return nullptr;
  if (found->type == type) return &*found;
  // An empty list has no member that would tell its type in files without a type field.
  if (found->type != OnnxAttributeType::Undefined) {
    problems_.push_back({ExitCode::Malformed, "invalid-model",
                         fmt::format("attribute '{}' must be of type {}, not {}", name,
                                     ingot::name(type), ingot::name(found->type))});
  }
  return nullptr;
}

std::int64_t AttributeReader::integer(std::string_view name, std::int64_t fallback) {
  const OnnxAttribute* attribute = find(name, OnnxAttributeType::Int);
  return attribute == nullptr ? fallback : attribute->i;
}

std::int64_t AttributeReader::required_integer(std::string_view name) {
  if (!has(name)) {
    problems_.push_back(
        {ExitCode::Malformed, "invalid-model", fmt::format("attribute '{}' is missing", name)});
  }
  return integer(name, 0);
}

bool AttributeReader::flag(std::string_view name, bool fallback) {
  return integer(name, fallback ? 1 : 0) != 0;
}

float AttributeReader::number(std::string_view name, float fallback) {
  const OnnxAttribute* attribute = find(name, OnnxAttributeType::Float);
  return attribute == nullptr ? fallback : attribute->f;
}

std::string AttributeReader::text(std::string_view name, std::string_view fallback) {
  const OnnxAttribute* attribute = find(name, OnnxAttributeType::String);
  return attribute == nullptr ? std::string(fallback) : attribute->s;
}

std::string AttributeReader::choice(std::string_view name,
                                    std::initializer_list<std::string_view> choices) {
  std::string value = text(name, *choices.begin());
  if (std::ranges::find(choices, value) != choices.end()) return value;
  problems_.push_back({ExitCode::Unsupported, "unsupported-attribute",
                       fmt::format("{} '{}' is not supported; it may be {}", name, value,
                                   fmt::join(choices, ", "))});
  return std::string(*choices.begin());
}

std::vector<std::int64_t> AttributeReader::integers(std::string_view name) {
  return optional_integers(name).value_or(std::vector<std::int64_t>());
}

std::optional<std::vector<std::int64_t>> AttributeReader::optional_integers(std::string_view name) {
  const OnnxAttribute* attribute = find(name, OnnxAttributeType::Ints);
  if (attribute == nullptr) return std::nullopt;
  return attribute->ints;
}

std::vector<float> AttributeReader::numbers(std::string_view name) {
  const OnnxAttribute* attribute = find(name, OnnxAttributeType::Floats);
  return attribute == nullptr ? std::vector<float>() : attribute->floats;
}

std::vector<std::string> AttributeReader::texts(std::string_view name) {
  const OnnxAttribute* attribute = find(name, OnnxAttributeType::Strings);
  return attribute == nullptr ? std::vector<std::string>() : attribute->strings;
}

const OnnxTensor* AttributeReader::tensor(std::string_view name) {
  const OnnxAttribute* attribute = find(name, OnnxAttributeType::Tensor);
  return attribute == nullptr || attribute->tensors.empty() ? nullptr : &attribute->tensors[0];
}

std::shared_ptr<const OnnxGraph> AttributeReader::graph(std::string_view name) {
  const OnnxAttribute* attribute = find(name, OnnxAttributeType::Graph);
  return attribute == nullptr || attribute->graphs.empty() ? nullptr : attribute->graphs[0];
}

void AttributeReader::ignore(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) read_.emplace(name);
}

std::vector<std::string> AttributeReader::unread() const {
  std::vector<std::string> names;
  for (const OnnxAttribute& attribute : node_.attributes) {
    if (!read_.contains(attribute.name)) names.push_back(attribute.name);
  }
  return names;
}

}  // namespace ingot
