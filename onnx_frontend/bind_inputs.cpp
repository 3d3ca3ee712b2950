#include "onnx_frontend/bind_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "onnx_frontend/node_import.h"

namespace ingot {
namespace {

constexpr std::int64_t largest_dimension = std::int64_t{1} << 32;
constexpr std::int64_t most_elements = std::int64_t{1} << 40;
// Stands for an open dimension while looking for other problems.
constexpr std::int64_t guess = 64;
constexpr std::size_t highest_rank = 8;  // of an artifact's inputs and outputs

class Binding {
 public:
  Binding(const Model& model, const ImportOptions& options) : model_(model), options_(options) {}

  Result<BoundInputs> run() {
    find_inputs();
    INGOT_RETURN_IF_ERROR(check_names());
    for (const auto& [name, value] : options_.dims) bound_.symbols[name] = value;
    for (const OnnxValueInfo* input : inputs_) INGOT_RETURN_IF_ERROR(fix_symbols(*input));
    for (const OnnxValueInfo* input : inputs_) INGOT_RETURN_IF_ERROR(bind(*input));
    return std::move(bound_);
  }

 private:
  std::unexpected<Failure> usage(std::string message) const {
    return fail(ExitCode::Usage, "contradictory-option", std::move(message), model_.file);
  }

  // Of the shape of an input: the pipeline file's fault if it says the shape.
  std::unexpected<Failure> refuse_shape(const std::string& input, std::string message) const {
    const auto place = options_.places.find(input);
    if (place == options_.places.end()) return usage(std::move(message));
    Diagnostic diagnostic;
    diagnostic.code = "type-differs";
    diagnostic.file = place->second.file;
    diagnostic.node = place->second.place;
    diagnostic.message = std::move(message);
    return fail(ExitCode::Malformed, std::move(diagnostic));
  }

  void find_inputs() {
    std::set<std::string_view> constants;
    std::vector<std::string_view> defaults;
    for (const OnnxTensor& tensor : model_.graph.initializers) constants.insert(tensor.name);
    for (const OnnxValueInfo& input : model_.graph.inputs) {
      if (!constants.contains(input.name) || options_.binds.contains(input.name)) {
        inputs_.push_back(&input);
      } else if (model_.ir_version >= 4) {
        defaults.push_back(input.name);
      }
    }
    warn_of_defaults(defaults);
  }

  // Some exporters list every weight as an input: one line for all of them.
  void warn_of_defaults(std::vector<std::string_view> names) {
    if (names.empty()) return;
    std::string message =
        fmt::format("input '{}' has a default value and became a constant", names.front());
    if (names.size() > 1) {
      constexpr std::size_t shown = 3;
      const bool all = names.size() <= shown;
      message = fmt::format("{} inputs have default values and became constants: ", names.size());
      names.resize(std::min(names.size(), shown));
      message += fmt::format("'{}'{}", fmt::join(names, "', '"), all ? "" : " ...");
    }
    bound_.warnings.push_back(note(Severity::Warning, "default-input", std::move(message)));
  }

  Diagnostic note(Severity severity, std::string code, std::string message,
                  std::string hint = {}) const {
    Diagnostic diagnostic;
    diagnostic.severity = severity;
    diagnostic.code = std::move(code);
    diagnostic.file = model_.file;
    diagnostic.message = std::move(message);
    diagnostic.hint = std::move(hint);
    return diagnostic;
  }

  bool is_input(const std::string& name) const {
    return std::ranges::any_of(inputs_, [&](const auto* input) { return input->name == name; });
  }

  // Options must name something that is there.
  Result<void> check_names() const {
    for (const auto& [name, shape] : options_.shapes) {
      if (!is_input(name)) return usage(fmt::format("--shape {}: no such input", name));
    }
    for (const auto& [name, value] : options_.binds) {
      if (!is_input(name)) return usage(fmt::format("--bind {}: no such input", name));
    }
    std::set<std::string_view> symbols;
    for (const OnnxValueInfo* input : inputs_) {
      if (!input->shape) continue;
      for (const OnnxDimension& dim : *input->shape) symbols.insert(dim.name);
    }
    for (const auto& [name, value] : options_.dims) {
      if (name.empty() || !symbols.contains(name)) {
        return usage(fmt::format("--dim {}: no input has a dimension of that name", name));
      }
      if (value < 0 || value > largest_dimension) {
        return usage(fmt::format("--dim {}: {} is no size", name, value));
      }
    }
    return {};
  }

  // The shape that an option gives to an input, if one does.
  std::optional<Shape> given(const std::string& name) const {
    if (const auto bind = options_.binds.find(name); bind != options_.binds.end()) {
      return bind->second.shape;
    }
    if (const auto shape = options_.shapes.find(name); shape != options_.shapes.end()) {
      return shape->second;
    }
    return std::nullopt;
  }

  // A given shape must agree with the declared one, and fixes the names in it.
  Result<void> fix_symbols(const OnnxValueInfo& input) {
    const std::optional<Shape> shape = given(input.name);
    if (!shape) return {};
    const auto both = options_.shapes.find(input.name);
    if (both != options_.shapes.end() && both->second != *shape) {
      return usage(fmt::format("input '{}': --bind and --shape give different shapes", input.name));
    }
    for (const std::int64_t dim : *shape) {
      if (dim < 0 || dim > largest_dimension) {
        return refuse_shape(input.name, fmt::format("input '{}': {} is no size", input.name, dim));
      }
    }
    if (!input.shape) return {};
    if (input.shape->size() != shape->size()) {
      return refuse_shape(input.name, fmt::format("input '{}' has {} dimensions, {} are given",
                                                  input.name, input.shape->size(), shape->size()));
    }
    for (std::size_t d = 0; d < shape->size(); ++d) {
      INGOT_RETURN_IF_ERROR(fix_dimension(input.name, d, (*input.shape)[d], (*shape)[d]));
    }
    return {};
  }

  Result<void> fix_dimension(const std::string& input, std::size_t d, const OnnxDimension& declared,
                             std::int64_t value) {
    if (declared.value && *declared.value != value) {
      return refuse_shape(
          input, fmt::format("input '{}': dimension {} is {} in the model, {} is given", input, d,
                             *declared.value, value));
    }
    if (declared.value || declared.name.empty()) return {};
    const auto [symbol, added] = bound_.symbols.emplace(declared.name, value);
    if (!added && symbol->second != value) {
      std::string message = fmt::format("input '{}': dimension {} ('{}') is given as {} and as {}",
                                        input, d, declared.name, symbol->second, value);
      if (options_.dims.contains(declared.name)) return usage(std::move(message));
      return refuse_shape(input, std::move(message));
    }
    return {};
  }

  void open_dimension(const std::string& input, std::size_t d, const std::string& name) {
    const std::string what = name.empty() ? std::to_string(d) : fmt::format("{} ('{}')", d, name);
    bound_.problems.push_back(
        note(Severity::Error, "open-dimension",
             fmt::format("input '{}': dimension {} is not fixed", input, what),
             name.empty() ? fmt::format("give --shape {}=...", input)
                          : fmt::format("give --dim {}=N or --shape {}=...", name, input)));
  }

  Shape shape_of(const OnnxValueInfo& input) {
    if (const std::optional<Shape> shape = given(input.name)) return *shape;
    if (!input.shape) {
      bound_.problems.push_back(note(Severity::Error, "open-dimension",
                                     fmt::format("input '{}' has no declared shape", input.name),
                                     fmt::format("give --shape {}=...", input.name)));
      return {};
    }
    Shape shape;
    for (std::size_t d = 0; d < input.shape->size(); ++d) {
      const OnnxDimension& dim = (*input.shape)[d];
      const auto symbol = bound_.symbols.find(dim.name);
      if (dim.value) {
        shape.push_back(*dim.value);
      } else if (!dim.name.empty() && symbol != bound_.symbols.end()) {
        shape.push_back(symbol->second);
      } else {
        open_dimension(input.name, d, dim.name);
        shape.push_back(guess);
      }
    }
    return shape;
  }

  Result<void> bind(const OnnxValueInfo& input) {
    if (input.name.empty()) {
      return fail(ExitCode::Malformed, "invalid-model", "an input has no name", model_.file);
    }
    if (input.kind == OnnxTypeKind::Missing) {
      return fail(ExitCode::Malformed, "invalid-model",
                  fmt::format("input '{}' has no type", input.name), model_.file);
    }
    if (input.kind != OnnxTypeKind::Tensor) {
      return problem(fmt::format("input '{}' is a {}, not a tensor", input.name, name(input.kind)));
    }
    const std::optional<DType> dtype = dtype_from_onnx(input.elem_type);
    if (!dtype) {
      return problem(fmt::format("input '{}' has element type {}", input.name,
                                 onnx_type_name(input.elem_type)));
    }
    BoundInput bound;
    bound.name = input.name;
    bound.dtype = *dtype;
    bound.shape = shape_of(input);
    INGOT_RETURN_IF_ERROR(check_size(bound));
    if (const auto bind = options_.binds.find(input.name); bind != options_.binds.end()) {
      if (bind->second.dtype != *dtype) {
        return usage(fmt::format("--bind {}: the value is {}, the input {}", input.name,
                                 name(bind->second.dtype), name(*dtype)));
      }
      bound.value = bind->second;
    }
    bound_.inputs.push_back(std::move(bound));
    return {};
  }

  Result<void> check_size(const BoundInput& input) {
    std::int64_t count = 1;
    for (const std::int64_t dim : input.shape) {
      if (dim > largest_dimension || (dim != 0 && count > most_elements / dim)) {
        return fail(ExitCode::Unsupported, "too-large",
                    fmt::format("input '{}' has too many elements", input.name), model_.file);
      }
      if (dim != 0) count *= dim;
    }
    if (input.shape.size() > highest_rank) {
      return problem(fmt::format("input '{}' has {} dimensions, at most {} are supported",
                                 input.name, input.shape.size(), highest_rank));
    }
    return {};
  }

  Result<void> problem(std::string message) {
    bound_.problems.push_back(note(Severity::Error, "unsupported-type", std::move(message)));
    return {};
  }

  const Model& model_;
  const ImportOptions& options_;
  std::vector<const OnnxValueInfo*> inputs_;
  BoundInputs bound_;
};

}  // namespace

Result<BoundInputs> bind_inputs(const Model& model, const ImportOptions& options) {
  return Binding(model, options).run();
}

std::optional<Shape> static_shape(const OnnxValueInfo& info,
                                  const std::map<std::string, std::int64_t>& symbols) {
  if (!info.shape) return std::nullopt;
  Shape shape;
  for (const OnnxDimension& dim : *info.shape) {
    const auto symbol = symbols.find(dim.name);
    if (dim.value) {
      shape.push_back(*dim.value);
    } else if (!dim.name.empty() && symbol != symbols.end()) {
      shape.push_back(symbol->second);
    } else {
      return std::nullopt;
    }
  }
  return shape;
}

}  // namespace ingot
