#include "cli/interface_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <set>
#include <vector>

namespace ingot::cli {
namespace {

using artifact::Tables;
using artifact::VariantTables;

constexpr std::size_t kRank = 8;  // INGOT_MAX_RANK of the loader's header

// Between the name of a slot and that of a slice: no name becomes this.
constexpr std::string_view kBetween = "_x_";

std::string in_case(std::string text, int (*change)(int)) {
  std::ranges::transform(text, text.begin(),
                         [&](unsigned char c) { return static_cast<char>(change(c)); });
  return text;
}

// `a-z 0-9 - .` in capitals or not; small x and hexadecimal digits stand for what is neither.
std::string product_part(std::string_view product, int (*change)(int)) {
  std::string part = std::isdigit(static_cast<unsigned char>(product.front())) != 0 ? "x" : "";
  for (const char c : product) {
    part += c == '.' ? "_x2e" : c == '-' ? "_" : in_case(std::string(1, c), change);
  }
  return part;
}

// `{1u, 2u, 0u, ...}` with an entry for each dimension that a binding has.
template <typename T>
std::string list_text(const T* values, std::size_t count, const char* form) {
  std::string text;
  for (std::size_t i = 0; i < kRank; ++i) {
    if (!text.empty()) text += ", ";
    text += fmt::format(fmt::runtime(form), i < count ? values[i] : T{0});
  }
  return "{" + text + "}";
}

class HeaderWriter {
 public:
  explicit HeaderWriter(const artifact::Decoded& decoded)
      : tables_(decoded.tables), product_(artifact::fixed_text(tables_.header.product)) {}

  std::string write() {
    const std::string guard = "INGOT_INTERFACE_" + product_part(product_, std::toupper) + "_H";
    text_ = fmt::format(
        "/* The interface of product {}. Made by `ingot inspect --header`; do not edit.\n"
        " *\n"
        " * SLOT: number of an input, output or state. NAME: its name, as the loader knows it.\n"
        " * DIRECTION: 1 input, 2 output, 3 state. DTYPE: INGOT_ELEMENT_*. NBYTES, STRIDES: "
        "bytes.\n"
        " * SHAPE, STRIDES: initializers of 8 numbers, RANK of which count. SLICE_*: part of a "
        "slot,\n"
        " * OFFSET and NBYTES in bytes, FIRST and COUNT in elements. FRAME_CAMERA: number of the "
        "camera\n"
        " * whose frames a slot takes. CAMERA_LAYOUT: initializer of an ingot_layout. Give "
        "interface_sha256 to ingot_policy: an artifact with another "
        "interface is\n"
        " * then refused. Characters that C does not allow are written as _x and two hexadecimal\n"
        " * digits. */\n"
        "#ifndef {}\n#define {}\n\n#include <stdint.h>\n\n",
        product_, guard, guard);
    define(product_part(product_, std::toupper) + "_PRODUCT", quoted(product_));
    const std::vector<std::uint32_t> interfaces = first_of_each_interface();
    for (const std::uint32_t variant : interfaces) {
      add_interface(variant, interfaces.size() > 1);
    }
    text_ += fmt::format("\n#endif /* {} */\n", guard);
    return std::move(text_);
  }

 private:
  static std::string quoted(std::string_view name) { return fmt::format("\"{}\"", name); }
  static std::string wide(std::uint64_t value) { return fmt::format("UINT64_C({})", value); }
  static std::string narrow(std::uint32_t value) { return fmt::format("{}u", value); }

  // Names are unique by construction, but for slices of one name; those are numbered.
  std::string unique(std::string name) {
    const std::string wanted = name;
    for (int n = 2; !names_.insert(name).second; ++n) name = fmt::format("{}_x_{}", wanted, n);
    return name;
  }

  void define(const std::string& name, const std::string& value) {
    text_ += fmt::format("#define {} {}\n", unique(name), value);
  }

  // Variants with the same interface are one block.
  std::vector<std::uint32_t> first_of_each_interface() const {
    std::vector<std::uint32_t> found;
    for (std::uint32_t v = 0; v < tables_.variants.size(); ++v) {
      const bool known = std::ranges::any_of(found, [&](std::uint32_t other) {
        return std::memcmp(tables_.variants[other].interface_sha256,
                           tables_.variants[v].interface_sha256, 32) == 0;
      });
      if (!known) found.push_back(v);
    }
    return found;
  }

  void add_interface(std::uint32_t index, bool with_cameras) {
    const VariantTables& tables = tables_.variant_tables[index];
    std::string cameras;
    for (const IngotCameraRecord& camera : tables.cameras) {
      if (with_cameras) cameras += "_" + identifier_part(tables_.name(camera.name));
    }
    prefix_ = product_part(product_, std::toupper) + cameras + "_";
    const std::string small = product_part(product_, std::tolower) + cameras;
    add_digest(small, tables_.variants[index].interface_sha256);
    for (std::uint32_t i = 0; i < tables.io.size(); ++i) add_slot(tables, i);
    for (const IngotSliceRecord& slice : tables.slices) add_slice(tables, slice);
    for (std::uint32_t i = 0; i < tables.cameras.size(); ++i) add_camera(tables.cameras[i], i);
  }

  void add_digest(const std::string& small, const std::uint8_t (&digest)[32]) {
    const std::string array = unique(small + "_interface_sha256");
    text_ += fmt::format("\nstatic const uint8_t {}[32] = {{", array);
    for (std::size_t i = 0; i < 32; ++i) {
      text_ += fmt::format("{}0x{:02x}",
                           i == 0        ? "\n    "
                           : i % 12 == 0 ? ",\n    "
                                         : ", ",
                           digest[i]);
    }
    text_ += "};\n";
    // For programs that ask after opening, with what ingot_artifact_describe gave.
    text_ += fmt::format(
        "/* 1 if this is the digest of the same interface, else 0. */\n"
        "static inline int {}(const uint8_t sha256[32]) {{\n"
        "  int i, same = 1;\n"
        "  for (i = 0; i < 32; ++i) same &= sha256[i] == {}[i];\n"
        "  return same;\n"
        "}}\n",
        unique(small + "_interface_is"), array);
  }

  void add_slot(const VariantTables& tables, std::uint32_t index) {
    const IngotIoRecord& io = tables.io[index];
    const std::string_view name = tables_.name(io.name);
    const std::string part = identifier_part(name);
    std::string shape;
    for (std::size_t i = 0; i < io.rank; ++i) {
      shape += fmt::format("{}{}", i == 0 ? "" : ",", io.shape[i]);
    }
    text_ += fmt::format("\n/* {} {}: {}[{}] */\n", artifact::direction_name(io.direction), name,
                         artifact::dtype_name(io.dtype), shape);
    define(prefix_ + "SLOT_" + part, narrow(index));
    define(prefix_ + "NAME_" + part, quoted(name));
    define(prefix_ + "DIRECTION_" + part, narrow(io.direction));
    define(prefix_ + "DTYPE_" + part, narrow(io.dtype));
    define(prefix_ + "RANK_" + part, narrow(io.rank));
    define(prefix_ + "SHAPE_" + part, list_text(io.shape, io.rank, "{}u"));
    define(prefix_ + "STRIDES_" + part, list_text(io.strides, io.rank, "UINT64_C({})"));
    define(prefix_ + "NBYTES_" + part, wide(io.nbytes));
    if (io.camera != INGOT_NO_INDEX) define(prefix_ + "FRAME_CAMERA_" + part, narrow(io.camera));
  }

  void add_slice(const VariantTables& tables, const IngotSliceRecord& slice) {
    if (slice.io >= tables.io.size()) return;
    const std::string_view slot = tables_.name(tables.io[slice.io].name);
    const std::string_view name = tables_.name(slice.name);
    const std::string part = identifier_part(slot) + std::string(kBetween) + identifier_part(name);
    std::uint64_t count = 1;
    for (std::size_t i = 0; i < slice.rank; ++i) count *= slice.shape[i];
    const std::uint64_t element = count == 0 ? 1 : std::max<std::uint64_t>(1, slice.nbytes / count);
    text_ += fmt::format("\n/* slice {} of {} */\n", name, slot);
    define(prefix_ + "SLICE_DTYPE_" + part, narrow(slice.dtype));
    define(prefix_ + "SLICE_OFFSET_" + part, wide(slice.offset));
    define(prefix_ + "SLICE_NBYTES_" + part, wide(slice.nbytes));
    define(prefix_ + "SLICE_FIRST_" + part, wide(slice.offset / element));
    define(prefix_ + "SLICE_COUNT_" + part, wide(count));
  }

  void add_camera(const IngotCameraRecord& camera, std::uint32_t index) {
    const std::string_view name = tables_.name(camera.name);
    const std::string part = identifier_part(name);
    text_ += fmt::format("\n/* camera {}: {} x {} */\n", name, camera.width, camera.height);
    define(prefix_ + "CAMERA_INDEX_" + part, narrow(index));
    define(prefix_ + "CAMERA_NAME_" + part, quoted(name));
    define(prefix_ + "CAMERA_WIDTH_" + part, narrow(camera.width));
    define(prefix_ + "CAMERA_HEIGHT_" + part, narrow(camera.height));
    define(prefix_ + "CAMERA_STRIDE_" + part, narrow(camera.stride));
    define(prefix_ + "CAMERA_Y_HEIGHT_" + part, narrow(camera.y_height));
    define(prefix_ + "CAMERA_UV_HEIGHT_" + part, narrow(camera.uv_height));
    define(prefix_ + "CAMERA_UV_OFFSET_" + part, wide(camera.uv_offset));
    define(prefix_ + "CAMERA_COPY_NBYTES_" + part, wide(camera.copy_nbytes));
    define(prefix_ + "CAMERA_BUFFER_NBYTES_" + part, wide(camera.buffer_nbytes));
    define(prefix_ + "CAMERA_LAYOUT_" + part,
           fmt::format("{{{}u, {}u, {}u, {}u, {}u, 0u, UINT64_C({})}}", camera.width, camera.height,
                       camera.stride, camera.y_height, camera.uv_height, camera.uv_offset));
  }

  const Tables& tables_;
  std::string product_;
  std::string prefix_;
  std::string text_;
  std::set<std::string> names_;
};

}  // namespace

std::string identifier_part(std::string_view name) {
  std::string part;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    const bool escapes = c == '_' && i + 1 < name.size() && name[i + 1] == 'x';
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    part += plain || (c == '_' && !escapes) ? std::string(1, static_cast<char>(c))
                                            : fmt::format("_x{:02x}", c);
  }
  return part;
}

std::string interface_header(const artifact::Decoded& decoded) {
  return HeaderWriter(decoded).write();
}

}  // namespace ingot::cli
