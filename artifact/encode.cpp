#include "artifact/encode.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "artifact/encoder.h"
#include "artifact/names.h"

namespace ingot::artifact {

static_assert(std::endian::native == std::endian::little, "records are written as they lie");

Result<void> Encoder::fill_identity() {
  IngotHeader& header = tables_.header;
  if (!is_product_name(contents_.product)) {
    return fail(ExitCode::Usage, "bad-product",
                fmt::format("'{}' is no product name", encode_name(contents_.product)), {},
                "use 1 to 32 characters of a-z 0-9 - .");
  }
  if (!contents_.device_family.empty() && !is_product_name(contents_.device_family)) {
    return fail(ExitCode::Usage, "bad-device-family",
                fmt::format("'{}' is no device family", encode_name(contents_.device_family)), {},
                "use 1 to 32 characters of a-z 0-9 - .");
  }
  std::memcpy(header.magic, INGOT_MAGIC, sizeof header.magic);
  header.version_major = INGOT_VERSION_MAJOR;
  header.version_minor = INGOT_VERSION_MINOR;
  header.header_size = INGOT_HEADER_SIZE;
  header.section_table_offset = INGOT_HEADER_SIZE;
  header.section_entry_size = INGOT_SECTION_ENTRY_SIZE;
  header.block_size_log2 = INGOT_BLOCK_SIZE_LOG2;
  header.security_counter = contents_.security_counter;
  header.hash_algorithm = INGOT_HASH_SHA256;
  header.build_class = contents_.build_class;
  header.variant_count = static_cast<std::uint32_t>(contents_.variants.size());
  header.alignment_log2 = INGOT_ALIGNMENT_LOG2;
  std::ranges::copy(contents_.producer, header.producer);
  put_text(header.product, contents_.product);
  put_text(header.device_family, contents_.device_family);
  return {};
}

Result<void> Encoder::fill_models() {
  if (contents_.models.empty()) return contradiction("no model and no pipeline");
  INGOT_RETURN_IF_ERROR(check_count("models", contents_.models.size(), INGOT_MAX_MODELS));
  for (const ModelSource& model : contents_.models) {
    IngotModelRecord record{};
    put_digest(record.onnx_sha256, model.onnx_sha256);
    put_digest(record.external_sha256, model.external_sha256);
    put_digest(record.pipeline_sha256, model.pipeline_sha256);
    record.ir_version = model.ir_version;
    record.opset = model.opset;
    record.producer = strings_.add_optional(model.producer);
    record.graph_name = strings_.add_optional(model.graph_name);
    record.domain = strings_.add_optional(model.domain);
    record.model_version = model.model_version;
    record.precision = model.precision;
    record.frame_period_us = model.frame_period_us;
    record.float_policy = model.float_policy;
    tables_.models.push_back(record);
  }
  put_digest(tables_.header.model_sha256, model_identity(tables_.models));
  return {};
}

Result<std::vector<std::byte>> Encoder::encode() {
  if (contents_.variants.empty()) return contradiction("no variants");
  INGOT_RETURN_IF_ERROR(check_count("variants", contents_.variants.size(), INGOT_MAX_VARIANTS));
  INGOT_RETURN_IF_ERROR(fill_identity());
  INGOT_RETURN_IF_ERROR(fill_models());

  std::vector<VariantTables> interfaces;
  for (const Interface& interface : contents_.interfaces) {
    INGOT_RETURN_IF_ERROR(fill_interface(interface, interfaces.emplace_back()));
  }
  std::set<std::string> names;
  for (const Variant& variant : contents_.variants) {
    if (variant.interface >= interfaces.size()) return contradiction("a variant has no interface");
    if (!names.insert(encode_name(variant.name)).second) {
      return contradiction(fmt::format("variant '{}' exists twice", encode_name(variant.name)));
    }
    tables_.variant_tables.push_back(interfaces[variant.interface]);
  }
  for (std::size_t v = 0; v < contents_.variants.size(); ++v) {
    INGOT_RETURN_IF_ERROR(fill_variant(static_cast<std::uint16_t>(v)));
  }
  INGOT_RETURN_IF_ERROR(place_data());
  INGOT_RETURN_IF_ERROR(list_sections());
  for (std::size_t v = 0; v < tables_.variants.size(); ++v) {
    put_digest(tables_.variants[v].interface_sha256,
               artifact::interface_digest(tables_, tables_.variant_tables[v]));
  }
  name_sections_in_records();
  return lay_out();
}

Result<std::vector<std::byte>> encode(const ArtifactContents& contents) {
  return Encoder(contents).encode();
}

Result<Digest> interface_digest(const Interface& interface) {
  const ArtifactContents none;
  return Encoder(none).digest_of_interface(interface);
}

Digest external_files_digest(std::vector<ExternalFile> files) {
  if (files.empty()) return {};
  std::ranges::sort(files, {}, &ExternalFile::name);
  Sha256 hash;
  for (const ExternalFile& file : files) {
    hash.add_u32(static_cast<std::uint32_t>(file.name.size()));
    hash.add(file.name);
    hash.add_u64(file.nbytes);
    hash.add(std::as_bytes(std::span(file.sha256)));
  }
  return hash.finish();
}

}  // namespace ingot::artifact
