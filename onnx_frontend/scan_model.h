// Takes the large tensors out of a serialized model before protobuf sees it.
//
// Protobuf copies every byte and refuses messages above 2 GB. So the file is scanned first: each
// raw_data of at least 1 KiB is replaced by a small marker that names its range in the file. What
// is left is a valid message of a few kilobytes, and weights are read from the mapped file.
//
//   TensorProto { dims: 1000; raw_data: <4000 bytes> }
//   TensorProto { dims: 1000; 500001: 0 }                with ranges[0] = those 4000 bytes
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace ingot {

// The marker's field number in TensorProto; its value indexes ScannedModel::ranges.
inline constexpr std::uint32_t range_marker_field = 500001;
inline constexpr std::size_t smallest_range = 1024;

enum class ScanRoot { Model, Tensor };

struct ScannedModel {
  std::string message;
  std::vector<std::span<const std::byte>> ranges;
};

// Fails with Malformed if the bytes are no message, nest too deep or hold the marker already.
[[nodiscard]] Result<ScannedModel> scan_model(std::span<const std::byte> bytes, ScanRoot root);

}  // namespace ingot
