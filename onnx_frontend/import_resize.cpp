// Resize and Upsample: every output element is a weighted sum of input elements, one axis at a
// time.
//
// Which elements and which weights is computed here, in double precision, from the static shapes:
//   out[o] = sum over taps t of weight[o][t] * in[index[o][t]]
// Nearest has one tap and no weights, linear two, cubic four, antialiasing more.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "onnx_frontend/importers.h"

namespace ingot {
namespace {

std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

enum class Mode { Nearest, Linear, Cubic };

struct ResizeForm {
  Mode mode = Mode::Nearest;
  std::string coordinates = "half_pixel";
  std::string nearest = "round_prefer_floor";
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  double extrapolation = 0;
};

// One axis.
struct Axis {
  std::int64_t from = 0;
  std::int64_t to = 0;
  double scale = 1;
  double roi_start = 0, roi_end = 1;
};

double source_place(const ResizeForm& form, const Axis& axis, std::int64_t out) {
  const auto o = static_cast<double>(out);
  const auto from = static_cast<double>(axis.from);
  const std::string& mode = form.coordinates;
  if (mode == "asymmetric") return o / axis.scale;
  if (mode == "align_corners") {
    // With a fractional scale the length before rounding counts.
    const double length = axis.scale * from;
    return length == 1 ? 0 : o * (from - 1) / (length - 1);
  }
  if (mode == "pytorch_half_pixel") {
    return axis.to > 1 ? (o + 0.5) / axis.scale - 0.5 : 0;
  }
  if (mode == "tf_half_pixel_for_nn") return (o + 0.5) / axis.scale;
  if (mode == "tf_crop_and_resize") {
    const double start = axis.roi_start * (from - 1);
    if (axis.to > 1) {
      return start +
             o * (axis.roi_end - axis.roi_start) * (from - 1) / static_cast<double>(axis.to - 1);
    }
    return 0.5 * (axis.roi_start + axis.roi_end) * (from - 1);
  }
  const double half_pixel = (o + 0.5) / axis.scale - 0.5;
  if (mode == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(axis.to) / (axis.scale * from);
    const double center = from / 2;
    const double offset = center * (1 - adjustment);
    return offset + half_pixel;
  }
  return half_pixel;
}

std::int64_t nearest_index(const std::string& mode, double place) {
  if (mode == "floor") return static_cast<std::int64_t>(std::floor(place));
  if (mode == "ceil") return static_cast<std::int64_t>(std::ceil(place));
  if (mode == "round_prefer_ceil") return static_cast<std::int64_t>(std::floor(place + 0.5));
  return static_cast<std::int64_t>(std::ceil(place - 0.5));
}

double cubic_weight(double a, double distance) {
  const double d = std::abs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

double weight(const ResizeForm& form, double distance) {
  if (form.mode == Mode::Cubic) return cubic_weight(form.cubic_a, distance);
  return std::max(0.0, 1 - std::abs(distance));
}

struct Taps {
  std::int64_t count = 1;
  std::vector<std::int64_t> index;  // [to, count]
  std::vector<double> weights;      // [to, count]; empty for nearest
  std::vector<bool> outside;        // [to]: replaced by the extrapolation value
};

// The weights around one place; elements beyond the edge repeat it, or are left out.
void add_taps(const ResizeForm& form, const Axis& axis, double place, Taps& taps) {
  const double stretch = form.antialias ? std::max(1.0, 1 / axis.scale) : 1;
  const std::int64_t half = taps.count / 2;
  const auto first = static_cast<std::int64_t>(std::floor(place)) - half + 1;
  std::vector<double> weights;
  double sum = 0;
  for (std::int64_t k = 0; k < taps.count; ++k) {
    const std::int64_t index = first + k;
    double w = weight(form, (static_cast<double>(index) - place) / stretch);
    if (form.exclude_outside && (index < 0 || index >= axis.from)) w = 0;
    sum += w;
    weights.push_back(w);
    taps.index.push_back(std::clamp<std::int64_t>(index, 0, axis.from - 1));
  }
  const bool normalize = form.exclude_outside || form.antialias;
  for (const double w : weights) taps.weights.push_back(normalize ? w / sum : w);
}

Taps find_taps(const ResizeForm& form, const Axis& axis) {
  Taps taps;
  if (form.mode != Mode::Nearest) {
    const double stretch = form.antialias ? std::max(1.0, 1 / axis.scale) : 1;
    const double reach = (form.mode == Mode::Cubic ? 2 : 1) * stretch;
    taps.count = 2 * static_cast<std::int64_t>(std::ceil(reach));
  }
  for (std::int64_t o = 0; o < axis.to; ++o) {
    const double place = source_place(form, axis, o);
    const auto end = static_cast<double>(axis.from - 1);
    taps.outside.push_back(form.coordinates == "tf_crop_and_resize" && (place < 0 || place > end));
    if (form.mode == Mode::Nearest) {
      const std::int64_t index = nearest_index(form.nearest, std::clamp(place, -1.0, end + 1));
      taps.index.push_back(std::clamp<std::int64_t>(index, 0, axis.from - 1));
    } else {
      add_taps(form, axis, std::clamp(place, -1e9, 1e9), taps);
    }
  }
  return taps;
}

// The factor by which every element is repeated, if that is all.
std::optional<std::int64_t> repetition(const Axis& axis, const std::vector<std::int64_t>& index) {
  if (axis.to % axis.from != 0) return std::nullopt;
  const std::int64_t factor = axis.to / axis.from;
  for (std::int64_t o = 0; o < axis.to; ++o) {
    if (index[static_cast<std::size_t>(o)] != o / factor) return std::nullopt;
  }
  return factor;
}

ValueId repeat(GraphBuilder& b, ValueId x, int axis, std::int64_t factor) {
  Shape shape = b.shape(x);
  Shape apart = shape;
  apart.insert(apart.begin() + axis + 1, 1);
  Shape repeated = apart;
  repeated[at(axis) + 1] = factor;
  shape[at(axis)] *= factor;
  return b.reshape(b.expand(b.reshape(x, apart), repeated), shape);
}

ValueId resize_axis(NodeImport& node, ValueId x, int d, const Axis& axis, const Taps& taps) {
  GraphBuilder& b = node.builder;
  if (taps.weights.empty()) {
    if (const auto factor = repetition(axis, taps.index)) return repeat(b, x, d, *factor);
    return b.gather(x, node.ints(taps.index, {axis.to}), d, true);
  }
  Shape line(node.rank(x), 1);
  line[at(d)] = axis.to;
  std::optional<ValueId> sum;
  for (std::int64_t t = 0; t < taps.count; ++t) {
    std::vector<std::int64_t> index;
    std::vector<double> weights;
    for (std::int64_t o = 0; o < axis.to; ++o) {
      index.push_back(taps.index[static_cast<std::size_t>(o * taps.count + t)]);
      weights.push_back(taps.weights[static_cast<std::size_t>(o * taps.count + t)]);
    }
    if (std::ranges::all_of(weights, [](double w) { return w == 0; })) continue;
    const ValueId part = b.mul(b.gather(x, node.ints(index, {axis.to}), d, true),
                               node.floats(weights, line, node.dtype(x)));
    sum = sum ? b.add(*sum, part) : part;
  }
  return sum.value_or(x);
}

// Whether the axis gives its input back.
bool is_unchanged(const Axis& axis, const Taps& taps) {
  if (axis.from != axis.to) return false;
  for (std::int64_t o = 0; o < axis.to; ++o) {
    if (taps.outside[static_cast<std::size_t>(o)]) return false;
    for (std::int64_t t = 0; t < taps.count; ++t) {
      const auto i = static_cast<std::size_t>(o * taps.count + t);
      const double w = taps.weights.empty() ? 1 : taps.weights[i];
      if (w != 0 && (w != 1 || taps.index[i] != o)) return false;
    }
  }
  return true;
}

Result<void> resize(NodeImport& node, ValueId x, const ResizeForm& form,
                    const std::vector<Axis>& axes) {
  GraphBuilder& b = node.builder;
  const DType dtype = node.dtype(x);
  if (form.mode != Mode::Nearest && !is_float(dtype)) {
    return node.unsupported("interpolation of integers is not supported", "cast to float32 first");
  }
  Shape shape;
  for (const Axis& axis : axes) {
    if (axis.from == 0 && axis.to != 0) return node.malformed("an empty dimension is resized");
    if (axis.to > 1 << 24 || !(axis.scale > 0)) return node.unsupported("the scale is not usable");
    if (form.antialias && 1 / axis.scale > 1 << 10)
      return node.unsupported("the scale is too small");
    shape.push_back(axis.to);
  }
  INGOT_RETURN_IF_ERROR(node.checked_shape(shape));
  const bool narrow = dtype == DType::F16 || dtype == DType::BF16;
  ValueId y = form.mode != Mode::Nearest && narrow ? b.cast(x, DType::F32) : x;
  std::optional<ValueId> outside;
  for (int d = 0; d < static_cast<int>(axes.size()); ++d) {
    const Axis& axis = axes[at(d)];
    const Taps taps = find_taps(form, axis);
    if (!is_unchanged(axis, taps)) y = resize_axis(node, y, d, axis, taps);
    if (std::ranges::find(taps.outside, true) == taps.outside.end()) continue;
    std::vector<std::int64_t> flags(taps.outside.begin(), taps.outside.end());
    Shape line(axes.size(), 1);
    line[at(d)] = axis.to;
    const ValueId here = node.ints(flags, line, DType::Bool);
    outside = outside ? b.map(ScalarOp::Or, *outside, here) : here;
  }
  y = b.cast(y, dtype);
  if (outside) {
    const ValueId value = b.cast(node.floats({form.extrapolation}, {}, DType::F32), dtype);
    y = b.select(*outside, value, y);
  }
  return node.set_output(y);
}

Result<std::int64_t> scaled(const NodeImport& node, std::int64_t extent, double scale) {
  if (!(scale > 0) || !(scale < 1 << 24)) return node.malformed("a scale is not positive");
  const double length = std::floor(static_cast<double>(extent) * scale);
  if (length > 1 << 24) return node.unsupported("the result is too large");
  return static_cast<std::int64_t>(length);
}

Result<std::vector<Axis>> axes_by_scales(const NodeImport& node, ValueId x,
                                         const std::vector<double>& scales) {
  if (scales.size() != node.rank(x)) return node.malformed("one scale is needed per dimension");
  std::vector<Axis> axes;
  for (std::size_t d = 0; d < scales.size(); ++d) {
    Axis axis;
    axis.from = node.shape(x)[d];
    axis.scale = scales[d];
    INGOT_ASSIGN(axis.to, scaled(node, axis.from, scales[d]));
    axes.push_back(axis);
  }
  return axes;
}

}  // namespace

// --- Upsample: nearest and linear with coordinates scaled from the first corner

namespace {

Result<void> upsample(NodeImport& node, const std::string& mode,
                      const std::vector<double>& scales) {
  ResizeForm form;
  form.mode = mode == "nearest" ? Mode::Nearest : Mode::Linear;
  form.coordinates = "asymmetric";
  form.nearest = "floor";
  INGOT_ASSIGN(const ValueId x, node.input(0));
  INGOT_ASSIGN(const std::vector<Axis> axes, axes_by_scales(node, x, scales));
  return resize(node, x, form, axes);
}

}  // namespace

Result<void> import_upsample_7(NodeImport& node) {
  const std::string mode = node.attributes.choice("mode", {"nearest", "linear"});
  std::vector<double> scales;
  for (const float scale : node.attributes.numbers("scales")) scales.push_back(scale);
  return upsample(node, mode, scales);
}

// Upsample 9 and Resize 10.
Result<void> import_upsample_9(NodeImport& node) {
  const std::string mode = node.attributes.choice("mode", {"nearest", "linear"});
  INGOT_RETURN_IF_ERROR(node.at_most(2));
  INGOT_ASSIGN(const std::vector<double> scales, node.known_numbers(1));
  return upsample(node, mode, scales);
}

// --- Resize from opset 11 on

namespace {

enum class AspectPolicy { Stretch, NotLarger, NotSmaller };

Result<ResizeForm> read_form(NodeImport& node) {
  AttributeReader& a = node.attributes;
  ResizeForm form;
  const std::string mode = a.choice("mode", {"nearest", "linear", "cubic"});
  form.mode = mode == "nearest" ? Mode::Nearest : mode == "linear" ? Mode::Linear : Mode::Cubic;
  form.coordinates =
      node.opset >= 19   ? a.choice("coordinate_transformation_mode",
                                    {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                     "align_corners", "asymmetric", "tf_crop_and_resize"})
      : node.opset >= 13 ? a.choice("coordinate_transformation_mode",
                                    {"half_pixel", "pytorch_half_pixel", "align_corners",
                                     "asymmetric", "tf_crop_and_resize"})
                         : a.choice("coordinate_transformation_mode",
                                    {"half_pixel", "pytorch_half_pixel", "align_corners",
                                     "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"});
  form.nearest =
      a.choice("nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  form.cubic_a = a.number("cubic_coeff_a", -0.75F);
  form.exclude_outside = a.flag("exclude_outside", false);
  form.extrapolation = a.number("extrapolation_value", 0.0F);
  form.antialias = node.opset >= 18 && a.flag("antialias", false);
  if (form.antialias && form.mode == Mode::Nearest) form.antialias = false;
  return form;
}

AspectPolicy read_policy(NodeImport& node) {
  if (node.opset < 18) return AspectPolicy::Stretch;
  const std::string policy =
      node.attributes.choice("keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"});
  if (policy == "not_larger") return AspectPolicy::NotLarger;
  return policy == "not_smaller" ? AspectPolicy::NotSmaller : AspectPolicy::Stretch;
}

// Extents from sizes. Both other policies use one scale for all axes.
Result<void> apply_sizes(const NodeImport& node, const std::vector<std::int64_t>& sizes,
                         const std::vector<int>& named, AspectPolicy policy,
                         std::vector<Axis>& axes) {
  if (sizes.size() != named.size()) return node.malformed("one size is needed per axis");
  INGOT_RETURN_IF_ERROR(node.checked_shape(sizes));
  std::optional<double> common;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Axis& axis = axes[at(named[i])];
    if (axis.from == 0) return node.malformed("an empty dimension is resized");
    axis.to = sizes[i];
    axis.scale = static_cast<double>(sizes[i]) / static_cast<double>(axis.from);
    if (!common) common = axis.scale;
    common = policy == AspectPolicy::NotLarger ? std::min(*common, axis.scale)
                                               : std::max(*common, axis.scale);
  }
  if (policy == AspectPolicy::Stretch) return {};
  for (const int d : named) {
    Axis& axis = axes[at(d)];
    axis.scale = *common;
    axis.to = static_cast<std::int64_t>(std::floor(*common * static_cast<double>(axis.from) + 0.5));
  }
  return {};
}

Result<void> apply_scales(const NodeImport& node, const std::vector<double>& scales,
                          const std::vector<int>& named, std::vector<Axis>& axes) {
  if (scales.size() != named.size()) return node.malformed("one scale is needed per axis");
  for (std::size_t i = 0; i < scales.size(); ++i) {
    Axis& axis = axes[at(named[i])];
    axis.scale = scales[i];
    INGOT_ASSIGN(axis.to, scaled(node, axis.from, scales[i]));
  }
  return {};
}

bool has_elements(const NodeImport& node, std::size_t input) {
  return node.has_input(input) && element_count(node.shape(*node.input(input))) > 0;
}

Result<void> apply_roi(const NodeImport& node, const std::vector<int>& named,
                       std::vector<Axis>& axes) {
  INGOT_ASSIGN(const std::vector<double> roi, node.known_numbers(1));
  if (roi.size() != 2 * named.size()) return node.malformed("roi needs two values per axis");
  for (std::size_t i = 0; i < named.size(); ++i) {
    axes[at(named[i])].roi_start = roi[i];
    axes[at(named[i])].roi_end = roi[i + named.size()];
  }
  return {};
}

}  // namespace

Result<void> import_resize(NodeImport& node) {
  INGOT_ASSIGN(const ResizeForm form, read_form(node));
  const AspectPolicy policy = read_policy(node);
  const std::optional<std::vector<std::int64_t>> given =
      node.opset >= 18 ? node.attributes.optional_integers("axes") : std::nullopt;
  INGOT_ASSIGN(const ValueId x, node.input(0, Types::Numbers));
  INGOT_RETURN_IF_ERROR(node.at_most(4));
  std::vector<Axis> axes;
  std::vector<int> named;
  for (std::size_t d = 0; d < node.rank(x); ++d) {
    Axis axis;
    axis.from = axis.to = node.shape(x)[d];
    axes.push_back(axis);
    if (!given) named.push_back(static_cast<int>(d));
  }
  if (given) {
    INGOT_RETURN_IF_ERROR(node.axes(*given, node.rank(x)));
    for (const std::int64_t each : *given) {
      INGOT_ASSIGN(const int axis, node.axis(each, node.rank(x)));
      named.push_back(axis);
    }
  }
  const bool by_sizes = has_elements(node, 3);
  if (by_sizes == has_elements(node, 2)) return node.malformed("either scales or sizes are needed");
  if (by_sizes) {
    INGOT_ASSIGN(const std::vector<std::int64_t> sizes, node.known_ints(3));
    INGOT_RETURN_IF_ERROR(apply_sizes(node, sizes, named, policy, axes));
  } else {
    INGOT_ASSIGN(const std::vector<double> scales, node.known_numbers(2));
    INGOT_RETURN_IF_ERROR(apply_scales(node, scales, named, axes));
  }
  if (form.coordinates == "tf_crop_and_resize") {
    INGOT_RETURN_IF_ERROR(apply_roi(node, named, axes));
  }
  return resize(node, x, form, axes);
}

}  // namespace ingot
