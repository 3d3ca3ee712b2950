// What the caller of the loader sees: slots, slices, cameras, references.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "artifact/encoder.h"
#include "artifact/names.h"

namespace ingot::artifact {

Result<void> Encoder::fill_interface(const Interface& interface, VariantTables& tables) {
  INGOT_RETURN_IF_ERROR(fill_slots(interface, tables));
  INGOT_RETURN_IF_ERROR(fill_slices(interface, tables));
  INGOT_RETURN_IF_ERROR(fill_cameras(interface, tables));
  return fill_references(interface, tables);
}

Result<void> Encoder::fill_slots(const Interface& interface, VariantTables& tables) {
  INGOT_RETURN_IF_ERROR(
      check_count("inputs, outputs and states", interface.slots.size(), INGOT_MAX_IO));
  std::set<std::string> names;
  for (const Slot& slot : interface.slots) {
    const std::string shown = fmt::format("slot '{}'", encode_name(slot.name));
    if (!names.insert(encode_name(slot.name)).second) {
      return fail(ExitCode::Unsupported, "duplicate-name", shown + " exists twice", {},
                  "give inputs, outputs and states different names");
    }
    INGOT_ASSIGN(const Geometry shape,
                 geometry(shown, slot.dtype, slot.shape, slot.strides, INGOT_MAX_TENSOR_RANK));
    if (slot.camera && *slot.camera >= interface.cameras.size()) {
      return contradiction(shown + " names a camera that does not exist");
    }
    IngotIoRecord record{};
    record.name = strings_.add(slot.name);
    record.direction = static_cast<std::uint8_t>(slot.direction);
    record.rank = static_cast<std::uint8_t>(slot.shape.size());
    record.dtype = static_cast<std::uint16_t>(slot.dtype);
    record.camera = slot.camera.value_or(INGOT_NO_INDEX);
    record.nbytes = slot.nbytes.value_or(shape.span);
    record.logical_nbytes = shape.logical_nbytes;
    std::ranges::copy(slot.shape, record.shape);
    std::ranges::copy(shape.strides, record.strides);
    tables.io.push_back(record);
  }
  return {};
}

Result<void> Encoder::fill_slices(const Interface& interface, VariantTables& tables) {
  std::vector<const Slice*> sorted;
  for (const Slice& slice : interface.slices) {
    if (slice.slot >= interface.slots.size()) {
      return contradiction("a slice of a slot that does not exist");
    }
    if (slice.camera && *slice.camera >= interface.cameras.size()) {
      return contradiction("a slice names a camera that does not exist");
    }
    sorted.push_back(&slice);
  }
  std::ranges::stable_sort(sorted, {},
                           [](const Slice* s) { return std::tuple(s->slot, s->offset); });

  for (std::size_t first = 0; first < sorted.size();) {
    const std::uint32_t slot_index = sorted[first]->slot;
    const Slot& slot = interface.slots[slot_index];
    std::size_t last = first;
    std::set<std::string> names;
    for (; last < sorted.size() && sorted[last]->slot == slot_index; ++last) {
      if (!names.insert(encode_name(sorted[last]->name)).second) {
        return fail(ExitCode::Unsupported, "duplicate-name",
                    fmt::format("slice '{}' of '{}' exists twice", encode_name(sorted[last]->name),
                                encode_name(slot.name)));
      }
    }
    const bool fills_gaps = slot.direction != INGOT_DIRECTION_INPUT;
    std::uint64_t end = 0;
    std::uint32_t unused_count = 0;
    const auto cover_gap = [&](std::uint64_t gap_end) -> Result<void> {
      if (!fills_gaps || gap_end <= end) return {};
      const std::uint64_t elements = (gap_end - end) / dtype_size(slot.dtype);
      if ((gap_end - end) % dtype_size(slot.dtype) != 0 || elements > UINT32_MAX) {
        return contradiction(
            fmt::format("slices of '{}' leave a part of an element", encode_name(slot.name)));
      }
      IngotSliceRecord record{};
      std::string name;
      do {
        name = unused_count == 0 ? "unused" : fmt::format("unused.{}", unused_count);
        ++unused_count;
      } while (!names.insert(name).second);
      record.name = strings_.add(name);
      record.io = slot_index;
      record.dtype = static_cast<std::uint16_t>(slot.dtype);
      record.rank = 1;
      record.offset = end;
      record.nbytes = gap_end - end;
      record.shape[0] = static_cast<std::uint32_t>(elements);
      record.camera = INGOT_NO_INDEX;
      tables.slices.push_back(record);
      end = gap_end;
      return {};
    };
    for (; first < last; ++first) {
      const Slice& slice = *sorted[first];
      const std::string shown = fmt::format("slice '{}'", encode_name(slice.name));
      INGOT_ASSIGN(const Geometry shape,
                   geometry(shown, slice.dtype, slice.shape, {}, INGOT_MAX_SLICE_RANK));
      INGOT_RETURN_IF_ERROR(cover_gap(slice.offset));
      IngotSliceRecord record{};
      record.name = strings_.add(slice.name);
      record.io = slot_index;
      record.dtype = static_cast<std::uint16_t>(slice.dtype);
      record.rank = static_cast<std::uint8_t>(slice.shape.size());
      record.flags = slice.offset < end ? INGOT_SLICE_OVERLAPS : 0;
      record.offset = slice.offset;
      record.nbytes = shape.logical_nbytes;
      std::ranges::copy(slice.shape, record.shape);
      record.camera = slice.camera.value_or(INGOT_NO_INDEX);
      tables.slices.push_back(record);
      std::uint64_t slice_end = 0;
      if (!add(slice.offset, shape.logical_nbytes, slice_end) ||
          slice_end > tables.io[slot_index].nbytes) {
        return contradiction(shown + " ends after its slot");
      }
      end = std::max(end, slice_end);
    }
    INGOT_RETURN_IF_ERROR(cover_gap(tables.io[slot_index].nbytes));
  }
  return check_count("slices", tables.slices.size(), INGOT_MAX_SLICES);
}

Result<void> Encoder::fill_cameras(const Interface& interface, VariantTables& tables) {
  INGOT_RETURN_IF_ERROR(check_count("camera layouts", interface.cameras.size(), INGOT_MAX_CAMERAS));
  for (const Camera& camera : interface.cameras) {
    IngotCameraRecord record{};
    record.name = strings_.add(camera.name);
    record.width = camera.width;
    record.height = camera.height;
    record.stride = camera.stride;
    record.y_height = camera.y_height;
    record.uv_height = camera.uv_height;
    record.pixel_format = static_cast<std::uint16_t>(camera.pixel_format);
    record.planes = INGOT_CAMERA_PLANES;
    record.uv_offset = camera.uv_offset;
    if (!add(camera.uv_offset, std::uint64_t{camera.stride} * camera.uv_height,
             record.copy_nbytes)) {
      return contradiction("a camera layout is larger than memory can be");
    }
    record.buffer_nbytes = camera.buffer_nbytes;
    record.sample_range = static_cast<std::uint16_t>(camera.sample_range);
    record.colour_matrix = static_cast<std::uint16_t>(camera.colour_matrix);
    record.max_age_us = camera.max_age_us;
    tables.cameras.push_back(record);
  }
  return {};
}

Result<void> Encoder::fill_references(const Interface& interface, VariantTables& tables) {
  INGOT_RETURN_IF_ERROR(
      check_count("reference records", interface.references.size(), INGOT_MAX_REFS));
  std::vector<const Reference*> sorted;
  for (const Reference& reference : interface.references) {
    if (reference.slot >= interface.slots.size()) {
      return contradiction("a reference for a slot that does not exist");
    }
    if (reference.data.bytes.size() != tables.io[reference.slot].nbytes) {
      return contradiction(fmt::format(
          "a reference of {} bytes for slot '{}' of {} bytes", reference.data.bytes.size(),
          encode_name(interface.slots[reference.slot].name), tables.io[reference.slot].nbytes));
    }
    sorted.push_back(&reference);
  }
  std::ranges::stable_sort(
      sorted, {}, [](const Reference* r) { return std::tuple(r->sequence, r->step, r->slot); });
  Payload data;
  for (const Reference* reference : sorted) {
    IngotRefRecord record{};
    record.sequence = reference->sequence;
    record.step = reference->step;
    record.io = reference->slot;
    record.role = static_cast<std::uint8_t>(interface.slots[reference->slot].direction);
    record.compare = static_cast<std::uint8_t>(reference->compare);
    record.flags = reference->nan_matches ? INGOT_REF_NAN_MATCHES : 0;
    record.offset = data.append(reference->data.bytes, INGOT_ALIGNMENT);
    record.nbytes = reference->data.bytes.size();
    record.atol = reference->atol;
    record.rtol = reference->rtol;
    record.max_ulp = reference->max_ulp;
    record.min_cosine = reference->min_cosine;
    record.origin = reference->origin;
    tables.refs.push_back(record);
  }
  // A section is never empty, even if every slot of the references is.
  if (!sorted.empty() && data.size == 0) data.size = 1;
  reference_data_.push_back(std::move(data));
  return {};
}

}  // namespace ingot::artifact
