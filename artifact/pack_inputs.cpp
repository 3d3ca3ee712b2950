#include "artifact/pack_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "artifact/geometry.h"
#include "artifact/names.h"
#include "artifact/tables.h"

namespace ingot::artifact {
namespace {

// Where the slots of one interface went.
struct Packing {
  std::vector<std::uint32_t> packed;               // slots in the order of their parts
  std::vector<std::uint64_t> offset;               // of each part
  std::uint64_t nbytes = 0;                        // of all
  std::vector<std::optional<std::uint32_t>> slot;  // by old slot: where it is now; none: packed

  std::optional<std::uint64_t> offset_of(std::uint32_t old_slot) const {
    const auto at = std::ranges::find(packed, old_slot);
    if (at == packed.end()) return std::nullopt;
    return offset[static_cast<std::size_t>(at - packed.begin())];
  }
};

class Packer {
 public:
  Packer(ArtifactContents& contents, const PackOptions& options)
      : contents_(contents), options_(options) {}

  Result<void> run() {
    std::vector<Packing> packings;
    for (std::uint32_t i = 0; i < contents_.interfaces.size(); ++i) {
      INGOT_ASSIGN(packings.emplace_back(), plan(i));
    }
    for (std::uint32_t i = 0; i < packings.size(); ++i) {
      if (!packings[i].packed.empty()) pack(contents_.interfaces[i], packings[i]);
    }
    for (Variant& variant : contents_.variants) {
      const Packing& packing = packings[variant.interface];
      if (!packing.packed.empty()) pack(variant, packing);
    }
    return {};
  }

 private:
  // Matrices first: they are what changes with every frame.
  Result<Packing> plan(std::uint32_t index) const {
    const Interface& interface = contents_.interfaces[index];
    std::set<std::uint32_t> matrices;
    for (const Variant& variant : contents_.variants) {
      if (variant.interface != index) continue;
      for (const Transform& transform : variant.transforms) matrices.insert(transform.slot);
    }
    Packing packing;
    const auto add_all = [&](const auto& wanted) {
      for (std::uint32_t s = 0; s < interface.slots.size(); ++s) {
        const Slot& slot = interface.slots[s];
        if (slot.direction == INGOT_DIRECTION_INPUT && wanted(s, slot)) packing.packed.push_back(s);
      }
    };
    add_all([&](std::uint32_t s, const Slot&) { return matrices.contains(s); });
    add_all(
        [&](std::uint32_t s, const Slot& slot) { return !matrices.contains(s) && !slot.camera; });
    if (options_.frames)
      add_all([](std::uint32_t, const Slot& slot) { return slot.camera.has_value(); });
    if (packing.packed.empty()) return packing;

    for (const std::uint32_t s : packing.packed) {
      const Slot& slot = interface.slots[s];
      INGOT_ASSIGN(const Geometry shape, geometry(slot.name, slot.dtype, slot.shape, slot.strides,
                                                  INGOT_MAX_TENSOR_RANK));
      const std::uint64_t nbytes = slot.nbytes.value_or(shape.span);
      if (shape.span != shape.logical_nbytes || nbytes != shape.logical_nbytes) {
        return fail(ExitCode::Unsupported, "padded-input",
                    fmt::format("input '{}' has padding and cannot be part of another", slot.name));
      }
      packing.offset.push_back(packing.nbytes);
      packing.nbytes = align_up(packing.nbytes + nbytes, INGOT_ALIGNMENT);
    }
    if (packing.nbytes > INT32_MAX) {
      return over_limit("bytes of one input", packing.nbytes, INT32_MAX);
    }
    packing.slot.resize(interface.slots.size());
    std::uint32_t next = 1;  // after the packed one
    for (std::uint32_t s = 0; s < interface.slots.size(); ++s) {
      if (packing.offset_of(s)) continue;
      if (interface.slots[s].name == options_.name) {
        return fail(ExitCode::Unsupported, "duplicate-name",
                    fmt::format("a slot is called '{}' already", options_.name));
      }
      packing.slot[s] = next++;
    }
    return packing;
  }

  void pack(Interface& interface, const Packing& packing) const {
    std::vector<Slot> slots(1);
    slots[0].name = options_.name;
    slots[0].dtype = INGOT_DTYPE_U8;
    slots[0].shape = {static_cast<std::uint32_t>(packing.nbytes)};
    std::vector<Slice> slices;
    for (std::size_t i = 0; i < packing.packed.size(); ++i) {
      const std::uint32_t old = packing.packed[i];
      const Slot& slot = interface.slots[old];
      bool has_parts = false;  // it was packed before
      for (const Slice& part : interface.slices) {
        if (part.slot != old) continue;
        has_parts = true;
        slices.push_back(part);
        slices.back().slot = 0;
        slices.back().offset += packing.offset[i];
      }
      if (has_parts) continue;
      Slice slice;
      slice.name = slot.name;
      slice.dtype = slot.dtype;
      slice.shape = slot.shape;
      if (slice.shape.size() > INGOT_MAX_SLICE_RANK) {  // the first ones as one
        std::uint32_t joined = 1;
        while (slice.shape.size() >= INGOT_MAX_SLICE_RANK) {
          joined *= slice.shape.front();
          slice.shape.erase(slice.shape.begin());
        }
        slice.shape.insert(slice.shape.begin(), joined);
      }
      slice.offset = packing.offset[i];
      slice.camera = slot.camera;
      slices.push_back(std::move(slice));
    }
    for (const Slice& slice : interface.slices) {
      if (!packing.slot[slice.slot]) continue;
      slices.push_back(slice);
      slices.back().slot = *packing.slot[slice.slot];
    }
    interface.references = pack_references(interface, packing);
    for (std::uint32_t s = 0; s < interface.slots.size(); ++s) {
      if (packing.slot[s]) slots.push_back(std::move(interface.slots[s]));
    }
    interface.slots = std::move(slots);
    interface.slices = std::move(slices);
  }

  // The parts of every step in one; between them zeros.
  static std::vector<Reference> pack_references(const Interface& interface,
                                                const Packing& packing) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::byte>> packed;
    std::map<std::pair<std::uint32_t, std::uint32_t>, IngotOrigin> origins;
    std::vector<Reference> references;
    for (const Reference& reference : interface.references) {
      const std::optional<std::uint64_t> offset = packing.offset_of(reference.slot);
      if (!offset) {
        references.push_back(reference);
        references.back().slot = *packing.slot[reference.slot];
        continue;
      }
      const std::pair key(reference.sequence, reference.step);
      std::vector<std::byte>& bytes = packed[key];
      bytes.resize(packing.nbytes);
      origins.emplace(key, reference.origin);
      if (!reference.data.bytes.empty()) {
        std::memcpy(&bytes[*offset], reference.data.bytes.data(), reference.data.bytes.size());
      }
    }
    for (auto& [key, bytes] : packed) {
      Reference reference;
      reference.sequence = key.first;
      reference.step = key.second;
      reference.origin = origins.at(key);
      reference.data = own(std::move(bytes));
      references.push_back(std::move(reference));
    }
    return references;
  }

  static void pack(Variant& variant, const Packing& packing) {
    std::vector<std::uint32_t> renamed(variant.buffers.size(), 0);
    std::vector<std::uint64_t> offset(variant.buffers.size(), 0);
    std::vector<Buffer> buffers(1);
    Buffer& host = buffers[0];
    host.kind = INGOT_BUFFER_INPUT;
    host.nbytes = packing.nbytes;
    host.slot = 0;
    host.caller_memory = true;
    const std::size_t calls = std::max<std::size_t>(variant.calls.size(), 1);
    host.last_call = static_cast<std::uint32_t>(calls - 1);
    for (std::size_t b = 0; b < variant.buffers.size(); ++b) {
      Buffer& buffer = variant.buffers[b];
      const bool is_input = buffer.kind == INGOT_BUFFER_INPUT;
      const std::optional<std::uint64_t> part =
          is_input ? packing.offset_of(*buffer.slot) : std::nullopt;
      if (part) {
        offset[b] = *part;
        continue;
      }
      if (buffer.slot) buffer.slot = packing.slot[*buffer.slot];
      renamed[b] = static_cast<std::uint32_t>(buffers.size());
      buffers.push_back(buffer);
    }
    variant.buffers = std::move(buffers);
    for (View& view : variant.views) {
      view.offset += offset[view.buffer];
      view.buffer = renamed[view.buffer];
    }
    for (Transform& transform : variant.transforms) {
      if (const auto part = packing.offset_of(transform.slot)) {
        transform.matrix_offset += *part;
        transform.slot = 0;
      } else {
        transform.slot = *packing.slot[transform.slot];
      }
      if (transform.fill) transform.fill->buffer = renamed[transform.fill->buffer];
    }
  }

  ArtifactContents& contents_;
  const PackOptions& options_;
};

}  // namespace

Result<void> pack_inputs(ArtifactContents& contents, const PackOptions& options) {
  return Packer(contents, options).run();
}

}  // namespace ingot::artifact
