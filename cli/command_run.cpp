// ingot run A.ingot: one frame, or a sequence of frames through one session.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "artifact/names.h"
#include "cli/atomic_file.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "cli/loaded_artifact.h"
#include "cli/npy.h"
#include "cli/options.h"
#include "cli/session.h"
#include "cli/tensor_file.h"

namespace ingot::cli {
namespace {

namespace fs = std::filesystem;

struct RunOptions {
  std::string artifact;
  std::vector<std::string> inputs;
  std::string sequence;
  std::string output_folder;
  std::string camera;
  std::uint32_t threads = 1;
  TrustOptions trust;
};

// Inputs or outputs with the stems of their files.
template <typename View>
struct Named {
  std::vector<const View*> views;
  std::vector<std::string> stems;
};

// Refuses names that would lead to one file.
template <typename View>
Result<Named<View>> named(const LoadedArtifact& artifact, const std::vector<View>& views) {
  Named<View> result;
  std::vector<std::string> names;
  for (const View& view : views) {
    if constexpr (requires { view.direction; }) {
      if (view.direction != INGOT_SLOT_OUTPUT) continue;
    }
    result.views.push_back(&view);
    names.push_back(view.name);
  }
  INGOT_ASSIGN(result.stems, about(artifact.path(), artifact::file_stems(names)));
  return result;
}

std::string input_names(const LoadedArtifact& artifact) {
  std::vector<std::string> names;
  for (const InputView& input : artifact.inputs()) names.push_back(input.name);
  for (const SlotView& slot : artifact.slots()) {
    if (slot.direction == INGOT_SLOT_STATE) names.push_back(slot.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<void> add_outputs(const Session& session, const Named<SlotView>& slots,
                         const fs::path& folder, OutputSet& files) {
  INGOT_RETURN_IF_ERROR(files.make_folder(folder));
  for (std::size_t i = 0; i < slots.views.size(); ++i) {
    const SlotView& slot = *slots.views[i];
    INGOT_RETURN_IF_ERROR(files.add(folder / (slots.stems[i] + ".npy"),
                                    encode_npy(slot.dtype, slot.shape, session.value(slot))));
  }
  return {};
}

// --input NAME=FILE. States may be set too; inputs must be.
Result<void> set_given_inputs(const LoadedArtifact& artifact, const RunOptions& options,
                              Session& session) {
  INGOT_ASSIGN(const auto given, name_values(options.inputs, "--input"));
  std::set<const InputView*> set;
  for (const auto& [name, file] : given) {
    if (const InputView* input = artifact.find_input(name)) {
      INGOT_ASSIGN(const Tensor tensor, read_tensor_file(file, input->dtype, input->shape));
      INGOT_RETURN_IF_ERROR(session.set(*input, tensor.bytes));
      set.insert(input);
      continue;
    }
    const SlotView* state = artifact.find_slot(name);
    if (state != nullptr && state->direction == INGOT_SLOT_INPUT) {
      return usage_error(fmt::format("--input: '{}' is given by its parts", name),
                         "inputs: " + input_names(artifact));
    }
    if (state == nullptr || state->direction != INGOT_SLOT_STATE) {
      return usage_error(fmt::format("--input: the artifact has no input '{}'", name),
                         "inputs: " + input_names(artifact));
    }
    INGOT_ASSIGN(const Tensor tensor, read_tensor_file(file, state->dtype, state->shape));
    INGOT_RETURN_IF_ERROR(session.set(*state, tensor.bytes));
  }
  for (const InputView& input : artifact.inputs()) {
    if (!set.contains(&input)) {
      return usage_error(
          fmt::format("input '{}' is missing, give --input {}=FILE", input.name, input.name));
    }
  }
  return {};
}

Result<void> run_single(const LoadedArtifact& artifact, const RunOptions& options, Session& session,
                        std::vector<Diagnostic>& warnings) {
  INGOT_ASSIGN(const Named<SlotView> outputs, named(artifact, artifact.slots()));
  INGOT_RETURN_IF_ERROR(set_given_inputs(artifact, options, session));
  INGOT_RETURN_IF_ERROR(session.run(&warnings));
  OutputSet files;
  INGOT_RETURN_IF_ERROR(add_outputs(session, outputs, options.output_folder, files));
  return files.commit();
}

// ---------------------------------------------------------------------------------------------
// --sequence

struct Frame {
  std::string name;
  std::vector<fs::path> inputs;  // by input
};

// Names in the folder that are numbers of frames: 0000, 0001 ...
Result<std::set<std::string>> numbered_entries(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool is_number = name.find_first_not_of("0123456789") == std::string::npos;
    if (is_number) names.insert(name);
  }
  if (error) {
    return fail(ExitCode::Io, "io-error", "cannot read: " + error.message(), folder.string());
  }
  return names;
}

// A tensor's file that no input takes was probably meant for one. Files of other endings, and what
// has the name of an output, may lie beside the inputs.
Result<void> refuse_unknown_files(const LoadedArtifact& artifact, const fs::path& folder,
                                  const Named<InputView>& inputs, const Named<SlotView>& outputs) {
  std::set<fs::path> unknown;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const fs::path& file = it->path();
    const std::string stem = file.stem().string();
    const auto among = [&](const auto& names) {
      return std::ranges::find(names, stem) != names.end();
    };
    if (is_tensor_file(file) && !among(inputs.stems) && !among(outputs.stems)) unknown.insert(file);
  }
  if (error) {
    return fail(ExitCode::Io, "io-error", "cannot read: " + error.message(), folder.string());
  }
  if (unknown.empty()) return {};
  const fs::path& file = *unknown.begin();
  const std::string stem = file.stem().string();
  const SlotView* slot = artifact.find_slot(stem);
  const bool state = slot != nullptr && slot->direction == INGOT_SLOT_STATE;
  return fail(ExitCode::Usage, "unknown-input",
              state ? fmt::format("'{}' is a state, and a sequence carries it itself", stem)
                    : fmt::format("the artifact has no input '{}'", stem),
              file.string(), fmt::format("inputs: {}", fmt::join(inputs.stems, ", ")));
}

// All frames from 0000 on. One that is missing must not end the sequence silently.
Result<std::vector<Frame>> find_frames(const LoadedArtifact& artifact, const fs::path& folder,
                                       const Named<InputView>& inputs,
                                       const Named<SlotView>& outputs) {
  INGOT_ASSIGN(std::set<std::string> numbers, numbered_entries(folder));
  std::vector<Frame> frames;
  while (!numbers.empty()) {
    Frame frame;
    frame.name = fmt::format("{:04}", frames.size());
    if (numbers.erase(frame.name) == 0) {
      return fail(
          ExitCode::Malformed, "missing-frame",
          fmt::format("frame '{}' is missing, and '{}' is there", frame.name, *numbers.begin()),
          folder.string(), "frames are called 0000, 0001, 0002 ... without a gap");
    }
    for (const std::string& stem : inputs.stems) {
      INGOT_ASSIGN(frame.inputs.emplace_back(), find_tensor_file(folder / frame.name, stem));
    }
    INGOT_RETURN_IF_ERROR(refuse_unknown_files(artifact, folder / frame.name, inputs, outputs));
    frames.push_back(std::move(frame));
  }
  if (frames.empty()) {
    return fail(ExitCode::Io, "missing-file", "no such folder", (folder / "0000").string());
  }
  return frames;
}

Result<void> set_frame_inputs(const Named<InputView>& inputs, const Frame& frame,
                              Session& session) {
  for (std::size_t i = 0; i < inputs.views.size(); ++i) {
    const InputView& input = *inputs.views[i];
    INGOT_ASSIGN(const Tensor tensor, read_tensor_file(frame.inputs[i], input.dtype, input.shape));
    INGOT_RETURN_IF_ERROR(session.set(input, tensor.bytes));
  }
  return {};
}

Result<void> run_sequence(const LoadedArtifact& artifact, const RunOptions& options,
                          Session& session, std::vector<Diagnostic>& warnings) {
  INGOT_ASSIGN(const Named<InputView> inputs, named(artifact, artifact.inputs()));
  INGOT_ASSIGN(const Named<SlotView> outputs, named(artifact, artifact.slots()));
  INGOT_ASSIGN(const std::vector<Frame> frames,
               find_frames(artifact, options.sequence, inputs, outputs));
  OutputSet files;
  for (const Frame& frame : frames) {
    INGOT_RETURN_IF_ERROR(set_frame_inputs(inputs, frame, session));
    INGOT_RETURN_IF_ERROR(session.run(&warnings));
    INGOT_RETURN_IF_ERROR(
        add_outputs(session, outputs, fs::path(options.output_folder) / frame.name, files));
  }
  return files.commit();
}

// ---------------------------------------------------------------------------------------------

Result<ExitCode> run_run(const RunOptions& options, std::vector<Diagnostic>& warnings) {
  INGOT_ASSIGN(const LoadedArtifact artifact,
               LoadedArtifact::open(options.artifact, options.trust, options.camera));
  for (const SlotView& slot : artifact.slots()) {
    if (!slot.dense)
      return fail(ExitCode::Unsupported, "padded-slot",
                  fmt::format("'{}' has padded rows", slot.name), options.artifact);
  }
  INGOT_ASSIGN(Session session, Session::create(artifact, 0, options.threads));
  if (options.sequence.empty()) {
    INGOT_RETURN_IF_ERROR(run_single(artifact, options, session, warnings));
  } else {
    INGOT_RETURN_IF_ERROR(run_sequence(artifact, options, session, warnings));
  }
  return ExitCode::Done;
}

}  // namespace

void add_run_command(CLI::App& app, Invocation& invocation) {
  CLI::App& command =
      add_command(app, "run", "Run one frame, or a sequence, and write the outputs as .npy",
                  "ingot run model.ingot --input x=x.npy --output-dir out --pub team.pub");
  auto options = std::make_shared<RunOptions>();
  command.add_option("ARTIFACT", options->artifact, "Artifact to run")->required();
  CLI::Option* inputs = add_repeatable(
      command, "--input", options->inputs,
      "NAME=FILE with a .npy, .pb or raw .bin file, split at the last =; repeatable");
  command
      .add_option("--sequence", options->sequence,
                  "Folder with frames 0000/NAME.npy, 0001/NAME.npy ... instead of --input")
      ->excludes(inputs);
  command.add_option("--output-dir", options->output_folder, "Folder for NAME.npy of each output")
      ->required();
  command.add_option("--camera", options->camera, "Use the variant for this camera layout");
  command.add_option("--threads", options->threads, "Threads; never changes the outputs")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  add_trust_options(command, options->trust);
  set_action(command, invocation, options, run_run);
}

}  // namespace ingot::cli
