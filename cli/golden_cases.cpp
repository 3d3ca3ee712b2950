#include "cli/golden_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "cli/json.h"
#include "cli/options.h"

namespace ingot::cli {
namespace {

namespace fs = std::filesystem;

// ---------------------------------------------------------------------------------------------
// Folders

struct NumberedFile {
  std::string name;  // empty if a number follows the prefix
  std::size_t position = 0;
  fs::path path;
};

// input_3.npy -> position 3; input_x.pb -> name x; other files -> nothing.
std::optional<NumberedFile> parse_file_name(const fs::path& path, std::string_view prefix) {
  if (path.extension() != ".npy" && path.extension() != ".pb") return std::nullopt;
  const std::string stem = path.stem().string();
  if (!stem.starts_with(prefix) || stem.size() == prefix.size()) return std::nullopt;
  const std::string rest = stem.substr(prefix.size());
  NumberedFile file;
  file.path = path;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), file.position);
  if (error != std::errc{} || end != rest.data() + rest.size()) file.name = rest;
  return file;
}

std::unexpected<Failure> cannot_read(const fs::path& path, const std::error_code& error) {
  return fail(ExitCode::Io, "io-error", fmt::format("cannot read: {}", error.message()),
              path.string());
}

Result<std::vector<fs::path>> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(it->path());
  }
  if (error) return cannot_read(folder, error);
  std::ranges::sort(entries);
  return entries;
}

Result<bool> is_folder(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::none) return cannot_read(path, error);
  return fs::is_directory(status);
}

// Also that of "cases/." and "cases/".
std::string folder_name(const fs::path& folder) {
  std::error_code error;
  const fs::path whole = fs::canonical(folder, error);
  return (error ? folder : whole).filename().string();
}

bool is_wanted(const std::string& name, const CaseChoice& choice) {
  return choice.name.empty() || name == choice.name;
}

Result<CaseRun> read_folder(const fs::path& folder) {
  CaseRun run;
  run.name = folder.filename().string();
  INGOT_ASSIGN(const std::vector<fs::path> entries, sorted_entries(folder));
  for (const fs::path& path : entries) {
    if (auto input = parse_file_name(path, "input_")) {
      CaseInput& entry = run.inputs.emplace_back();
      entry.name = std::move(input->name);
      entry.position = input->position;
      entry.file = std::move(input->path);
    } else if (auto output = parse_file_name(path, "output_")) {
      run.outputs.push_back({std::move(output->name), output->position, std::move(output->path)});
    }
  }
  return run;
}

Result<std::vector<CaseRun>> read_folders(const fs::path& folder, const CaseChoice& choice) {
  std::vector<CaseRun> runs;
  INGOT_ASSIGN(CaseRun own, read_folder(folder));
  own.name = folder_name(folder);
  if (!own.outputs.empty() && is_wanted(own.name, choice)) runs.push_back(std::move(own));
  INGOT_ASSIGN(const std::vector<fs::path> entries, sorted_entries(folder));
  for (const fs::path& path : entries) {
    if (!is_wanted(path.filename().string(), choice)) continue;
    INGOT_ASSIGN(const bool is_case, is_folder(path));
    if (!is_case) continue;
    INGOT_ASSIGN(CaseRun run, read_folder(path));
    if (!run.outputs.empty()) runs.push_back(std::move(run));
  }
  if (runs.empty()) {
    return usage_error(fmt::format("--golden {}: no case with output_* files{}", folder.string(),
                                   choice.name.empty() ? "" : " is called " + choice.name));
  }
  return runs;
}

// ---------------------------------------------------------------------------------------------
// cases.json

struct CasesFile {
  fs::path folder;
  std::string shown;
};

std::unexpected<Failure> bad_case(const CasesFile& file, const std::string& name,
                                  std::string_view what) {
  return fail(ExitCode::Malformed, "bad-cases", fmt::format("case '{}': {}", name, what),
              file.shown);
}

// "float32" and the like, as NumPy writes them.
std::optional<DType> dtype_from_numpy(const std::string& name) {
  static const std::map<std::string, DType> kNames = {
      {"float32", DType::F32}, {"float16", DType::F16}, {"bfloat16", DType::BF16},
      {"float64", DType::F64}, {"uint8", DType::U8},    {"int8", DType::I8},
      {"int16", DType::I16},   {"int32", DType::I32},   {"int64", DType::I64},
      {"bool", DType::Bool},   {"uint16", DType::U16},  {"uint32", DType::U32},
      {"uint64", DType::U64}};
  const auto found = kNames.find(name);
  return found == kNames.end() ? std::nullopt : std::optional(found->second);
}

Result<CaseInput> read_input(const Json& json, const CasesFile& file, const std::string& name) {
  CaseInput input;
  INGOT_ASSIGN(input.name, string_member(json, "name", file.shown));
  INGOT_ASSIGN(const std::string dtype, string_member(json, "dtype", file.shown));
  const std::optional<DType> known = dtype_from_numpy(dtype);
  if (!known) return bad_case(file, name, "unknown dtype " + dtype);
  input.dtype = *known;
  if (!json.contains("shape") || !json["shape"].is_array()) {
    return bad_case(file, name, "an input without a shape");
  }
  for (const Json& extent : json["shape"]) {
    if (!extent.is_number_integer() || extent.get<std::int64_t>() < 0) {
      return bad_case(file, name, "a dimension is no number");
    }
    input.shape.push_back(extent.get<std::int64_t>());
  }
  if (json.contains("file")) {
    INGOT_ASSIGN(const std::string path, string_member(json, "file", file.shown));
    input.file = file.folder / path;
    return input;
  }
  for (const auto& [key, value] : {std::pair("lo", &input.lo), std::pair("hi", &input.hi)}) {
    if (!json.contains(key) || !json[key].is_number()) {
      return bad_case(file, name, "an input has neither a file nor lo and hi");
    }
    *value = json[key].get<double>();
  }
  return input;
}

Result<CaseRun> read_run(const Json& json, const CaseRun& common, const CasesFile& file) {
  CaseRun run = common;
  INGOT_ASSIGN(const std::int64_t seed, int_member(json, "seed", file.shown));
  INGOT_ASSIGN(const std::int64_t steps, int_member(json, "steps", file.shown));
  if (seed < 0 || steps < 1 || steps > 1000000)
    return bad_case(file, run.name, "bad seed or steps");
  run.seed = static_cast<std::uint64_t>(seed);
  run.steps = static_cast<int>(steps);
  run.name += fmt::format("/s{}_n{}", seed, steps);
  if (!json.contains("outputs") || !json["outputs"].is_object() || json["outputs"].empty()) {
    return bad_case(file, run.name, "no outputs");
  }
  for (const auto& [name, output] : json["outputs"].items()) {
    INGOT_ASSIGN(const std::string path, string_member(output, "file", file.shown));
    run.outputs.push_back({name, 0, file.folder / path});
  }
  return run;
}

Result<std::vector<std::string>> text_list(const Json& json, const char* key, const CasesFile& file,
                                           const std::string& name) {
  std::vector<std::string> list;
  if (!json.contains(key)) return list;
  if (!json[key].is_array()) return bad_case(file, name, fmt::format("'{}' is no list", key));
  for (const Json& entry : json[key]) {
    if (!entry.is_string()) return bad_case(file, name, fmt::format("'{}' holds no text", key));
    list.push_back(entry.get<std::string>());
  }
  return list;
}

Result<std::vector<CaseRun>> read_case(const Json& json, const std::string& name,
                                       const CasesFile& file) {
  CaseRun common;
  common.name = name;
  for (const char* key : {"inputs", "runs"}) {
    if (!json.contains(key) || !json[key].is_array()) {
      return bad_case(file, name, fmt::format("no list '{}'", key));
    }
  }
  if (json["runs"].empty()) return bad_case(file, name, "no runs");
  for (const Json& input : json["inputs"]) {
    INGOT_ASSIGN(common.inputs.emplace_back(), read_input(input, file, name));
  }
  INGOT_ASSIGN(common.bound, text_list(json, "bind", file, name));
  INGOT_ASSIGN(const std::vector<std::string> pairs, text_list(json, "feedback", file, name));
  for (const std::string& text : pairs) {
    Result<NameValue> pair = split_at_last_equals(text, "feedback");
    if (!pair) return bad_case(file, name, fmt::format("feedback '{}' is not OUTPUT=INPUT", text));
    common.feedback.push_back({std::move(pair->name), std::move(pair->value)});
  }
  std::vector<CaseRun> runs;
  for (const Json& run : json["runs"]) {
    INGOT_ASSIGN(runs.emplace_back(), read_run(run, common, file));
  }
  return runs;
}

bool is_chosen(const Json& json, const std::string& name, const CaseChoice& choice) {
  if (!choice.name.empty()) return name == choice.name;
  const auto digest = json.find("sha256");
  if (digest == json.end() || !digest->is_string()) return false;
  const std::string text = digest->get<std::string>();
  return std::ranges::any_of(choice.models, [&](const artifact::Digest& model) {
    return artifact::to_hex(model) == text;
  });
}

Result<std::vector<CaseRun>> read_cases_file(const fs::path& path, const CaseChoice& choice) {
  const CasesFile file{path.parent_path(), path.string()};
  INGOT_ASSIGN(const std::string text, read_text_file(path));
  INGOT_ASSIGN(const Json json, parse_json(text, file.shown));
  if (!json.is_array())
    return fail(ExitCode::Malformed, "bad-cases", "no list of cases", file.shown);
  std::string names;
  for (const Json& entry : json) {
    INGOT_ASSIGN(const std::string name, string_member(entry, "name", file.shown));
    if (is_chosen(entry, name, choice)) return read_case(entry, name, file);
    names += (names.empty() ? "" : " ") + name;
  }
  return usage_error(choice.name.empty()
                         ? fmt::format("{}: no case has the SHA-256 of this model", file.shown)
                         : fmt::format("{}: no case is called '{}'", file.shown, choice.name),
                     "give --case with one of: " + names);
}

}  // namespace

Result<std::vector<CaseRun>> read_cases(const fs::path& path, const CaseChoice& choice) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    return fail(ExitCode::Io, "missing-file", "no such file or folder", path.string());
  }
  if (!fs::is_directory(path, error)) return read_cases_file(path, choice);
  if (fs::exists(path / "cases.json", error)) return read_cases_file(path / "cases.json", choice);
  return read_folders(path, choice);
}

}  // namespace ingot::cli
