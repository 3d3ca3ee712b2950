#include "cli/describe_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/diagnostics.h"
#include "cli/options.h"

namespace ingot::cli {
namespace {

constexpr std::string_view kStyle =
    "body{font:14px sans-serif;margin:2em;color:#222}table{border-collapse:collapse;"
    "display:block;max-width:100%;overflow-x:auto}"
    "td,th{border:1px solid #ccc;padding:2px 6px;text-align:left}td.n{text-align:right}"
    "svg.picture{background:#fafafa;border:1px solid #ccc;display:block;margin:1em 0;"
    "max-width:100%;height:auto}"
    "code{font-size:12px;overflow-wrap:anywhere}";

// Bytes of the character that begins here; 0 if it is none.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Longer than need be, surrogates, beyond the last one, and what XML does not know.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) {
    return 0;
  }
  return text.starts_with("\xEF\xBF\xBE") || text.starts_with("\xEF\xBF\xBF") ? 0 : length;
}

// As text or as the value of an attribute, whatever it holds.
std::string escape(std::string_view text) {
  const std::string safe = printable(text);
  std::string result;
  for (std::size_t at = 0; at < safe.size();) {
    const std::size_t length = character_length(std::string_view(safe).substr(at));
    switch (safe[at]) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result += length == 0 ? "?" : safe.substr(at, length);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return result;
}

std::string escaped(const Json& text) { return escape(text.get<std::string>()); }

// It shrinks with the window.
std::string picture(int width, int height) {
  return fmt::format(
      "<svg class=\"picture\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\">\n",
      width, height);
}

std::string cell(const std::string& text) { return "<td>" + text + "</td>"; }
std::string number_cell(const std::string& text) { return "<td class=\"n\">" + text + "</td>"; }
std::string number_cell(std::uint64_t value) { return number_cell(std::to_string(value)); }

std::string head(std::initializer_list<std::string_view> names) {
  std::string row = "<tr>";
  for (const std::string_view name : names) row += fmt::format("<th>{}</th>", name);
  return row + "</tr>\n";
}

std::string shape_text(const Json& slot) {
  return escaped(slot["dtype"]) + escape(to_compact_text(slot["shape"]));
}

// --- the pipeline as a picture

constexpr int kBoxWidth = 300, kBoxHeight = 24, kGap = 8, kMargin = 10;

std::string box(int x, int y, int height, std::string_view colour, const std::string& text) {
  return fmt::format(
      "<g><title>{0}</title><rect x=\"{1}\" y=\"{2}\" width=\"{3}\" height=\"{4}\" fill=\"{5}\" "
      "stroke=\"#666\"/><svg x=\"{1}\" y=\"{2}\" width=\"{3}\" height=\"{4}\">"
      "<text x=\"6\" y=\"{6}\" font-size=\"12\">{0}</text></svg>"
      "</g>\n",
      text, x, y, kBoxWidth, height, colour, height / 2 + 4);
}

std::string line(int x1, int y1, int x2, int y2) {
  return fmt::format("<path d=\"M{} {} C{} {} {} {} {} {}\" fill=\"none\" stroke=\"#888\"/>\n", x1,
                     y1, (x1 + x2) / 2, y1, (x1 + x2) / 2, y2, x2, y2);
}

// What goes in on the left, what comes out on the right; states are on both sides.
std::string pipeline_picture(const Json& description, const Json& variant) {
  struct Slot {
    std::string text;
    std::string_view colour;
  };
  std::vector<Slot> in, out;
  for (const Json& slot : variant["slots"]) {
    const std::string direction = slot["direction"];
    const std::string text = escaped(slot["name"]) + " " + shape_text(slot);
    const bool is_state = direction == "state";
    const bool is_frame = !slot["camera"].is_null();
    if (direction != "output") {
      in.push_back({is_frame ? "frame: " + text : text, is_state   ? "#ffe9b3"
                                                        : is_frame ? "#d5f0d5"
                                                                   : "#d9e8fb"});
    }
    if (direction != "input") {
      out.push_back({is_state ? "next " + text : text, is_state ? "#ffe9b3" : "#f6dede"});
    }
  }
  const auto rows = static_cast<int>(std::max({in.size(), out.size(), std::size_t{1}}));
  const int height = rows * (kBoxHeight + kGap) - kGap;
  const int middle = kMargin + kBoxWidth + 80, right = middle + kBoxWidth + 80;
  std::string names;
  for (const Json& model : description["models"]) {
    names += (names.empty() ? "" : ", ") + escaped(model["graph_name"]);
  }
  std::string svg = picture(right + kBoxWidth + kMargin, height + 2 * kMargin);
  const int centre = kMargin + height / 2;
  svg += box(middle, kMargin, height, "#eeeeee",
             fmt::format("{}: {} calls", names, variant["calls"].get<std::size_t>()));
  const auto side = [&](const std::vector<Slot>& slots, bool is_left) {
    int y = kMargin;
    for (const Slot& slot : slots) {
      const int slot_centre = y + kBoxHeight / 2;
      svg += is_left ? line(kMargin + kBoxWidth, slot_centre, middle, centre)
                     : line(middle + kBoxWidth, centre, right, slot_centre);
      svg += box(is_left ? kMargin : right, y, kBoxHeight, slot.colour, slot.text);
      y += kBoxHeight + kGap;
    }
  };
  side(in, true);
  side(out, false);
  return svg + "</svg>\n";
}

// --- memory over the call list

constexpr int kPictureWidth = 1000, kPictureHeight = 360;

std::string memory_picture(const Json& variant, std::size_t arena, std::uint64_t bytes) {
  constexpr std::array<std::string_view, 6> kColours = {"#8fb8de", "#9ad0a5", "#e3b587",
                                                        "#c7a5d8", "#d8cf85", "#e09a9a"};
  const auto calls = std::max<std::size_t>(variant["calls"].get<std::size_t>(), 1);
  const double x_scale = kPictureWidth / static_cast<double>(calls);
  const double y_scale = kPictureHeight / static_cast<double>(std::max<std::uint64_t>(bytes, 1));
  std::string svg = picture(kPictureWidth, kPictureHeight);
  std::size_t index = 0;
  for (const Json& buffer : variant["buffers"]) {
    const std::size_t number = index++;
    if (buffer["arena"].is_null() || buffer["arena"].get<std::size_t>() != arena) continue;
    const auto first = buffer["first_call"].get<std::uint64_t>();
    const auto last = buffer["last_call"].get<std::uint64_t>();
    const auto offset = buffer["arena_offset"].get<std::uint64_t>();
    const auto size = buffer["bytes"].get<std::uint64_t>();
    if (last < first || size == 0) continue;
    svg += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" "
        "stroke=\"#444\" stroke-width=\"0.4\"><title>buffer {} ({}): {} bytes at {}, calls {} to "
        "{}</title></rect>\n",
        static_cast<double>(first) * x_scale,
        kPictureHeight - static_cast<double>(offset + size) * y_scale,
        static_cast<double>(last - first + 1) * x_scale, static_cast<double>(size) * y_scale,
        kColours[number % kColours.size()], number, escaped(buffer["kind"]), size, offset, first,
        last);
  }
  svg += fmt::format(
      "<text x=\"4\" y=\"14\" font-size=\"12\">{}</text><text x=\"{}\" y=\"{}\" font-size=\"12\" "
      "text-anchor=\"end\">call {}</text>\n",
      size_text(bytes), kPictureWidth - 4, kPictureHeight - 4, calls - 1);
  return svg + "</svg>\n";
}

std::string memory_html(const Json& variant) {
  std::string html = "<h3>Memory</h3>\n";
  std::size_t arena = 0;
  for (const Json& entry : variant["memory"]["arenas"]) {
    const auto bytes = entry["bytes"].get<std::uint64_t>();
    html += fmt::format("<p>Arena {} ({}): {}. Calls from left to right, offsets from below.</p>\n",
                        arena, escaped(entry["role"]), size_text(bytes));
    html += memory_picture(variant, arena++, bytes);
  }
  return html;
}

// --- tables

std::string interface_html(const Json& variant) {
  std::string html = "<h3>Inputs, states, outputs</h3>\n<table>\n" +
                     head({"direction", "name", "type", "strides", "bytes"});
  for (const Json& slot : variant["slots"]) {
    const bool is_frame = !slot["camera"].is_null();
    html += "<tr>" + cell(escaped(slot["direction"]) + (is_frame ? ", camera frame" : "")) +
            cell(escaped(slot["name"])) + cell(shape_text(slot)) +
            cell(to_compact_text(slot["strides"])) +
            number_cell(slot["bytes"].get<std::uint64_t>()) + "</tr>\n";
  }
  html += "</table>\n";
  if (!variant["slices"].empty()) {
    html += "<h3>Slices</h3>\n<table>\n" + head({"slot", "name", "type", "from byte", "bytes"});
    for (const Json& slice : variant["slices"]) {
      html += "<tr>" + cell(escaped(slice["slot"])) + cell(escaped(slice["name"])) +
              cell(shape_text(slice)) + number_cell(slice["offset"].get<std::uint64_t>()) +
              number_cell(slice["bytes"].get<std::uint64_t>()) + "</tr>\n";
    }
    html += "</table>\n";
  }
  for (const Json& camera : variant["cameras"]) {
    html +=
        fmt::format("<p>Camera {}: {} {}x{}, stride {}, {} bytes</p>\n", escaped(camera["name"]),
                    escaped(camera["pixel_format"]), camera["width"].get<std::uint32_t>(),
                    camera["height"].get<std::uint32_t>(), camera["stride"].get<std::uint32_t>(),
                    camera["buffer_bytes"].get<std::uint64_t>());
  }
  for (const Json& transform : variant["transforms"]) {
    html += fmt::format("<p>Matrix in {}: {} warp to {}x{}, bad ones: {}</p>\n",
                        escaped(transform["slot"]), escaped(transform["kind"]),
                        transform["width"].get<std::uint32_t>(),
                        transform["height"].get<std::uint32_t>(), escaped(transform["policy"]));
  }
  return html;
}

// The measured calls, if they are those of the variant.
const Json* times_of(const Json& times, const Json& variant, const std::vector<CallCost>& costs) {
  const auto calls = times.find("calls");
  if (calls == times.end() || !calls->is_array()) return nullptr;
  if (calls->empty() || calls->size() != variant["call_list"].size()) return nullptr;
  for (std::size_t i = 0; i < calls->size(); ++i) {
    const Json& call = (*calls)[i];
    if (!call.is_object()) return nullptr;
    for (const char* key : {"ms", "share"}) {
      const auto value = call.find(key);
      if (value == call.end() || !value->is_number()) return nullptr;
    }
    if (i < costs.size() && call.value("name", Json()) != costs[i].name) return nullptr;
  }
  return &*calls;
}

std::string calls_html(const Json& variant, const std::vector<CallCost>& costs, const Json* times) {
  std::string html = "<h3>Calls</h3>\n<table>\n";
  html +=
      times == nullptr
          ? head({"call", "node", "program", "parts", "operations", "read", "written", "buffers"})
          : head({"call", "node", "program", "parts", "operations", "read", "written", "ms",
                  "of the ceiling", "buffers"});
  std::size_t index = 0;
  for (const Json& call : variant["call_list"]) {
    const CallCost cost = index < costs.size() ? costs[index] : CallCost{};
    const bool is_program = call.contains("program");
    html += "<tr>" + number_cell(index) + cell(escape(cost.name)) +
            cell(escaped(is_program ? call["program"] : call["kind"])) +
            number_cell(is_program ? std::to_string(call["grid"].get<std::uint32_t>()) : "") +
            number_cell(cost.operations) + number_cell(cost.read_bytes) +
            number_cell(cost.written_bytes);
    if (times != nullptr) {
      const Json& time = (*times)[index];
      html += number_cell(fmt::format("{:.4f}", time["ms"].get<double>())) +
              number_cell(fmt::format("{:.0f}%", 100 * time["share"].get<double>()));
    }
    std::string buffers;
    for (const Json& argument : call["arguments"]) {
      buffers += fmt::format("{}{}:{}", buffers.empty() ? "" : " ",
                             escaped(argument["access"]).substr(0, 1),
                             argument["buffer"].get<std::uint32_t>());
    }
    html += cell("<code>" + buffers + "</code>") + "</tr>\n";
    ++index;
  }
  return html + "</table>\n";
}

std::string identity_html(const Json& json) {
  std::string html = "<table>\n";
  const auto row = [&](std::string_view key, const std::string& value) {
    html += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", key, value);
  };
  row("artifact id", "<code>" + escaped(json["id"]) + "</code>");
  row("product", escaped(json["product"]));
  const std::string family = escaped(json["device_family"]);
  row("device family", family.empty() ? "any" : family);
  row("build class", escaped(json["build_class"]));
  row("security counter", std::to_string(json["security_counter"].get<std::uint64_t>()));
  row("made by", "ingot " + escaped(json["producer"]));
  row("file", std::to_string(json["file_bytes"].get<std::uint64_t>()) + " bytes");
  for (const Json& model : json["models"]) {
    row("model", fmt::format("{} (opset {}), <code>{}</code>", escaped(model["graph_name"]),
                             model["opset"].get<std::uint32_t>(), escaped(model["onnx_sha256"])));
  }
  for (const Json& signature : json["signatures"]) {
    std::string text = escaped(signature["algorithm"]);
    if (signature.contains("key_id")) {
      text += fmt::format(" key <code>{}</code>, purpose {}", escaped(signature["key_id"]),
                          escaped(signature["purpose"]));
    }
    row("signature", text);
  }
  if (json["signatures"].empty()) row("signatures", "none");
  return html + "</table>\n";
}

}  // namespace

Result<std::string> description_html(const Json& description,
                                     const std::vector<std::vector<CallCost>>& costs,
                                     const Json& times) {
  const std::string title = escaped(description["product"]);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width\"/>\n<title>{0}</title>\n"
      "<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
      title, kStyle);
  html += identity_html(description);
  bool has_times = false;
  std::size_t index = 0;
  for (const Json& variant : description["variants"]) {
    const std::vector<CallCost>& own =
        index < costs.size() ? costs[index] : std::vector<CallCost>{};
    const Json* measured = times.is_object() ? times_of(times, variant, own) : nullptr;
    has_times = has_times || measured != nullptr;
    ++index;
    const Json& memory = variant["memory"];
    html += fmt::format(
        "<h2>{} ({})</h2>\n<p>{} calls of {} programs, code {}, weights {}, arena "
        "{}, stack {}</p>\n",
        escaped(variant["name"]), escaped(variant["architecture"]),
        variant["calls"].get<std::size_t>(), variant["programs"].get<std::size_t>(),
        size_text(memory["code_bytes"].get<std::uint64_t>()),
        size_text(memory["constant_bytes"].get<std::uint64_t>()),
        size_text(memory["host_arena_bytes"].get<std::uint64_t>()),
        size_text(memory["stack_bytes"].get<std::uint64_t>()));
    html += pipeline_picture(description, variant) + interface_html(variant) +
            memory_html(variant) + calls_html(variant, own, measured);
  }
  if (!times.is_null() && !has_times) {
    return usage_error("--times: these are not the calls of any variant",
                       "make the file with ingot bench --per-call --json");
  }
  return html + "</body>\n</html>\n";
}

}  // namespace ingot::cli
