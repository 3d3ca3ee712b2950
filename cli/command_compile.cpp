// ingot compile SOURCE -o OUT.ingot: from files to one signed artifact.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "artifact/decode.h"
#include "artifact/encode.h"
#include "artifact/format.h"
#include "artifact/keys.h"
#include "artifact/names.h"
#include "artifact/pack_inputs.h"
#include "artifact/policy.h"
#include "artifact/sign.h"
#include "cli/atomic_file.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "cli/emit_files.h"
#include "cli/encode_program.h"
#include "cli/json.h"
#include "cli/model_source.h"
#include "cli/options.h"
#include "cli/output_artifact.h"
#include "cli/outside_references.h"
#include "cli/progress.h"
#include "cli/self_check.h"
#include "cli/version.h"
#include "codegen/llvm_code_generator.h"
#include "codegen/native_runner.h"
#include "compiler/compile.h"
#include "compiler/target/target.h"

namespace ingot::cli {
namespace {

struct CompileCommandOptions {
  SourceOptions source;
  std::string output;
  std::vector<std::string> targets;
  std::vector<std::string> devices;
  std::vector<std::string> sign;
  bool unsigned_artifact = false;
  std::string product;
  std::string device_family;
  std::string build_class = "development";
  std::uint64_t security_counter = 0;
  GoldenOptions golden;
  std::string check = "sampled";
  int optimization = 2;
  std::string emit;
  std::string emit_folder;
  std::string print_after;
  std::string schedule;
  bool time_passes = false, rule_counters = false, verify_passes = false;
  int jobs = 0;
  bool no_progress = false;
  bool json = false;
  // Documented, and done by no version yet.
  std::string precision, cache_folder;
  bool retargetable = false;
};

// What the options ask for, with everything read that must exist before the work starts.
struct Request {
  std::vector<Target> targets;
  std::vector<artifact::PrivateKey> keys;
  std::uint64_t signed_at = 0;
  IngotBuildClass build_class = INGOT_BUILD_CLASS_DEVELOPMENT;
  CheckLevel check = CheckLevel::Sampled;
  std::vector<KernelSchedule> schedules;
  std::string schedule_digest;  // of their text
};

// ---------------------------------------------------------------------------------------------
// Options

Result<void> refuse_later_options(const CompileCommandOptions& options) {
  if (!options.precision.empty() && options.precision != "f32") {
    return not_supported_yet("--precision " + options.precision);
  }
  if (options.retargetable) return not_supported_yet("--retargetable");
  if (!options.cache_folder.empty()) return not_supported_yet("--cache-dir");
  return {};
}

// Found here and not after all the code is made.
Result<void> check_variant_count(std::size_t cameras, std::size_t targets,
                                 const std::string& file) {
  if (cameras * targets <= INGOT_MAX_VARIANTS) return {};
  return fail(ExitCode::Unsupported, "too-many-variants",
              fmt::format("{} cameras for {} targets are {} variants, an artifact holds {}",
                          cameras, targets, cameras * targets, INGOT_MAX_VARIANTS),
              file, "compile several artifacts with fewer cameras or targets each");
}

Result<void> check_usage(const CompileCommandOptions& options) {
  if (options.sign.empty() && !options.unsigned_artifact) {
    return usage_error("compile needs --sign KEY or --unsigned",
                       "make a key with 'ingot keygen team', then give --sign team.key");
  }
  if (!options.product.empty() && !artifact::is_product_name(options.product)) {
    return usage_error("--product: 1 to 32 characters of a-z 0-9 - .");
  }
  if (!options.device_family.empty() && !artifact::is_product_name(options.device_family)) {
    return usage_error("--device-family: 1 to 32 characters of a-z 0-9 - .");
  }
  if (options.emit.empty() != options.emit_folder.empty()) {
    return usage_error("--emit and --emit-dir belong together");
  }
  if (!options.schedule.empty() && options.optimization == 0) {
    return usage_error("--schedule needs -O2");
  }
  return check_output_artifact(options.output);
}

Result<void> check_pass_name(const std::string& name) {
  if (name.empty() || name == "all") return {};
  std::string known;
  bool found = name == "import";
  for (const PassInfo& pass : pass_list()) {
    found = found || pass.name == name;
    known += " " + pass.name;
  }
  if (found) return {};
  return usage_error(fmt::format("--print-after: no pass is called '{}'", name),
                     "passes: all import" + known);
}

Result<std::vector<Target>> find_targets(const CompileCommandOptions& options) {
  std::vector<Target> targets;
  for (const std::string& name : options.targets) {
    INGOT_ASSIGN(targets.emplace_back(), find_target(name));
  }
  for (const std::string& path : options.devices) {
    INGOT_ASSIGN(const std::string text, read_text_file(path));
    INGOT_ASSIGN(targets.emplace_back(), parse_device(text, path));
  }
  if (targets.empty()) targets.push_back(default_target());
  std::set<std::string> names;
  for (const Target& target : targets) {
    if (!names.insert(target.name).second) {
      return usage_error(fmt::format("target '{}' is named twice", target.name));
    }
  }
  return targets;
}

Result<Request> read_request(const CompileCommandOptions& options) {
  INGOT_RETURN_IF_ERROR(refuse_later_options(options));
  INGOT_RETURN_IF_ERROR(check_usage(options));
  INGOT_RETURN_IF_ERROR(check_pass_name(options.print_after));
  Request request;
  request.build_class = *artifact::parse_build_class(options.build_class);
  request.check = options.check == "off"    ? CheckLevel::Off
                  : options.check == "full" ? CheckLevel::Full
                                            : CheckLevel::Sampled;
  INGOT_ASSIGN(request.targets, find_targets(options));
  INGOT_ASSIGN(request.signed_at, artifact::signed_at_from_environment());
  if (!options.schedule.empty()) {
    INGOT_ASSIGN(const std::string text, read_text_file(options.schedule));
    INGOT_ASSIGN(request.schedules, parse_schedules(text, options.schedule));
    request.schedule_digest = artifact::to_hex(artifact::sha256(text));
  }
  for (const std::string& path : options.sign) {
    INGOT_ASSIGN(request.keys.emplace_back(), artifact::read_private_key(path));
  }
  return request;
}

// ---------------------------------------------------------------------------------------------
// Stages

CompileOptions compile_options(const CompileCommandOptions& options, const Request& request,
                               Progress& progress, Progress& passes) {
  CompileOptions result;
  result.targets = request.targets;
  result.optimization = options.optimization;
  result.schedules = request.schedules;
  result.try_inputs = request.check != CheckLevel::Off;
  result.checked_elements = request.check == CheckLevel::Off    ? 0
                            : request.check == CheckLevel::Full ? 256
                                                                : 24;
  const auto hardware = static_cast<int>(std::thread::hardware_concurrency());
  result.jobs = options.jobs > 0 ? options.jobs : std::max(1, hardware);
  result.progress = [&](const std::string& stage, std::size_t done, std::size_t total) {
    progress.report(stage, done, total);
  };
  result.verify_passes = result.verify_passes || options.verify_passes;
  result.begins = [&](const std::string& pass) {
    if (pass.empty()) {
      passes.finish();
    } else {
      passes.report(pass);
    }
  };
  if (!options.print_after.empty()) {
    // Asked for explicitly, but not the result: that is the artifact and its report.
    result.trace = [wanted = options.print_after](const std::string& name,
                                                  const std::string& text) {
      if (wanted == "all" || wanted == name) fmt::print(stderr, "; after {}\n{}\n", name, text);
    };
  }
  return result;
}

std::string default_product(const CompileCommandOptions& options, const ModelSources& sources) {
  if (!options.product.empty()) return options.product;
  return artifact::product_name(sources.pipeline.name);
}

ArtifactFacts artifact_facts(const CompileCommandOptions& options, const Request& request,
                             ModelSources& sources) {
  ArtifactFacts facts;
  facts.product = default_product(options, sources);
  facts.device_family = options.device_family;
  facts.build_class = request.build_class;
  facts.security_counter = options.security_counter;
  facts.models = std::move(sources.models);
  facts.cameras = sources.pipeline.cameras;
  facts.slices = sources.pipeline.slices;
  facts.manifest = std::move(sources.facts);
  facts.manifest.tool_version = kVersion;
  for (const Target& target : request.targets) {
    facts.manifest.options.emplace_back("target", target.name);
  }
  facts.manifest.options.emplace_back("optimization", std::to_string(options.optimization));
  if (!request.schedule_digest.empty()) {
    facts.manifest.options.emplace_back("schedule", request.schedule_digest);
  }
  return facts;
}

Result<std::vector<std::byte>> sign_all(std::vector<std::byte> bytes, const Request& request) {
  artifact::SignOptions how;
  how.signed_at = request.signed_at;
  for (const artifact::PrivateKey& key : request.keys) {
    INGOT_ASSIGN(bytes, artifact::add_signature(std::move(bytes), key, how));
  }
  return bytes;
}

void warn_of_idle_inputs(const std::vector<IdleInput>& inputs, const std::string& file,
                         std::vector<Diagnostic>& warnings) {
  for (const IdleInput& input : inputs) {
    const bool is_used = !input.reaches.empty();
    warnings.push_back(make_warning(
        is_used ? "idle-input" : "unused-input",
        fmt::format("{} '{}' {}", input.is_state ? "state" : "input", input.name,
                    is_used ? "changes no output" : "is not used"),
        file, is_used ? fmt::format("computed from it: {}", fmt::join(input.reaches, ", ")) : ""));
  }
}

void warn_of_unused_schedules(const std::vector<KernelSchedule>& schedules,
                              std::vector<Diagnostic>& warnings) {
  for (const KernelSchedule& schedule : schedules) {
    warnings.push_back(make_warning(
        "unused-schedule",
        fmt::format("line {}: no kernel for {} is the one called '{}'", schedule.line,
                    schedule.target, schedule.name),
        schedule.file, "the model, the version or the cameras have changed since it was written"));
  }
}

// The outputs of another runtime are compared by running the code.
void warn_of_unchecked_cases(const GoldenOptions& golden, const std::vector<VariantCheck>& checks,
                             std::vector<Diagnostic>& warnings) {
  const auto passed = [](const VariantCheck& check) {
    return check.outcome == VariantCheck::Outcome::Passed;
  };
  if (golden.path.empty() || std::ranges::any_of(checks, passed)) return;
  warnings.push_back(make_warning("golden-not-run",
                                  "the embedded cases were not run: nothing here executes the code",
                                  golden.path, "run ingot verify --self-test on the device"));
}

// ---------------------------------------------------------------------------------------------
// Report

struct VariantReport {
  std::string name;
  FusionCounts fusion;
  std::size_t calls = 0, programs = 0;
  std::uint64_t code_bytes = 0, constant_bytes = 0, scratch_bytes = 0, state_bytes = 0;
  std::uint64_t least_scratch_bytes = 0;  // what any plan would need
  std::uint32_t stack_bytes = 0;
  VariantCheck check;
  std::optional<KernelCheckCounts> kernels;
  RuleCounts rules{};
};

struct Report {
  std::string output;
  std::string id;
  std::string product;
  std::size_t signatures = 0;
  std::uint64_t file_bytes = 0;
  std::vector<VariantReport> variants;
  std::vector<IdleInput> idle_inputs;
  std::vector<Progress::StageTime> times, passes;
};

VariantReport report_variant(const CompiledVariant& compiled) {
  VariantReport report;
  report.name =
      compiled.camera.empty() ? compiled.target.name : compiled.camera + "/" + compiled.target.name;
  report.fusion = compiled.fusion;
  report.calls = compiled.program.calls.size();
  report.programs = compiled.program.kernels.size();
  report.code_bytes = compiled.code.bytes.size();
  for (const ProgramConstant& constant : compiled.program.constants) {
    report.constant_bytes += constant.bytes->size();
  }
  for (const ProgramArena& arena : compiled.program.arenas) {
    (arena.state ? report.state_bytes : report.scratch_bytes) += arena.size_bytes;
  }
  report.least_scratch_bytes = compiled.program.largest_live_bytes;
  for (const CodeBlob::Entry& entry : compiled.code.entries) {
    report.stack_bytes = std::max(report.stack_bytes, entry.stack_bytes);
  }
  report.kernels = compiled.checked;
  report.rules = compiled.rules;
  return report;
}

std::string check_text(const VariantCheck& check) {
  switch (check.outcome) {
    case VariantCheck::Outcome::NotAsked: return "not checked";
    case VariantCheck::Outcome::NotExecuted: return "not executed";
    case VariantCheck::Outcome::Passed:
      return fmt::format("self-check passed, largest error {:.3g}", check.max_abs_error);
  }
  return {};
}

Json report_json(const Report& report) {
  Json json;
  json["output"] = report.output;
  json["id"] = report.id;
  json["product"] = report.product;
  json["signatures"] = report.signatures;
  json["file_bytes"] = report.file_bytes;
  json["targets"] = Json::array();
  for (const VariantReport& variant : report.variants) {
    Json entry;
    entry["name"] = variant.name;
    entry["nodes"] = variant.fusion.nodes;
    entry["unfused_kernels"] = variant.fusion.unfused_kernels;
    entry["kernels"] = variant.fusion.kernels;
    entry["calls"] = variant.calls;
    entry["programs"] = variant.programs;
    entry["code_bytes"] = variant.code_bytes;
    entry["constant_bytes"] = variant.constant_bytes;
    entry["scratch_bytes"] = variant.scratch_bytes;
    entry["least_scratch_bytes"] = variant.least_scratch_bytes;
    entry["state_bytes"] = variant.state_bytes;
    entry["stack_bytes"] = variant.stack_bytes;
    const bool executed = variant.check.outcome == VariantCheck::Outcome::Passed;
    entry["executed"] = executed;
    entry["self_check"] = check_text(variant.check);
    entry["max_abs_error"] = executed ? Json(variant.check.max_abs_error) : Json(nullptr);
    entry["checked_kernels"] = Json(nullptr);
    if (variant.kernels) {
      entry["checked_kernels"] = Json{{"kernels", variant.kernels->kernels},
                                      {"elements", variant.kernels->elements},
                                      {"undecided", variant.kernels->undecided}};
    }
    entry["rules"] = Json::object();
    for (const RuleInfo& rule : rule_list()) {
      entry["rules"][std::string(rule.name)] = variant.rules[static_cast<std::size_t>(rule.rule)];
    }
    json["targets"].push_back(std::move(entry));
  }
  json["idle_inputs"] = Json::array();
  for (const IdleInput& input : report.idle_inputs) {
    json["idle_inputs"].push_back(
        Json{{"name", input.name}, {"state", input.is_state}, {"reaches", input.reaches}});
  }
  json["stages"] = Json::array();
  for (const Progress::StageTime& time : report.times) {
    json["stages"].push_back(
        Json{{"stage", time.stage}, {"ms", time.milliseconds}, {"cpu_ms", time.cpu_milliseconds}});
  }
  json["passes"] = Json::array();
  for (const Progress::StageTime& time : report.passes) {
    json["passes"].push_back(Json{{"pass", time.stage}, {"ms", time.milliseconds}});
  }
  return json;
}

std::string variant_line(const VariantReport& variant) {
  return fmt::format(
      "  {:<16} {} calls of {} programs, code {}, weights {}, scratch {} (at least {}), states {}, "
      "stack {}; {}\n",
      variant.name, variant.calls, variant.programs, size_text(variant.code_bytes),
      size_text(variant.constant_bytes), size_text(variant.scratch_bytes),
      size_text(variant.least_scratch_bytes), size_text(variant.state_bytes),
      size_text(variant.stack_bytes), check_text(variant.check));
}

std::string times_text(const std::vector<Progress::StageTime>& times) {
  std::string text;
  for (const Progress::StageTime& time : times) {
    text += fmt::format("  {:<24} {:>9.1f} ms\n", time.stage, time.milliseconds);
  }
  return text;
}

std::string rules_text(const VariantReport& variant) {
  std::string text = fmt::format("rules of {}\n", variant.name);
  for (const RuleInfo& rule : rule_list()) {
    text += fmt::format("  {:<24} {:>9}\n", rule.name,
                        variant.rules[static_cast<std::size_t>(rule.rule)]);
  }
  return text;
}

std::string report_text(const CompileCommandOptions& options, const Report& report) {
  std::string text = fmt::format(
      "{}\nartifact id  {}\nproduct      {}\nsignatures   {}\nsize         {} bytes\ntargets\n",
      report.output, report.id, report.product,
      report.signatures == 0 ? "none" : std::to_string(report.signatures), report.file_bytes);
  for (const VariantReport& variant : report.variants) text += variant_line(variant);
  text += "time\n" + times_text(report.times);
  if (options.time_passes) text += "passes\n" + times_text(report.passes);
  if (options.rule_counters) {
    for (const VariantReport& variant : report.variants) text += rules_text(variant);
  }
  return text;
}

// ---------------------------------------------------------------------------------------------
// The command

// Weights exist once while the artifact is written, once while it is checked: what has been used is
// given back.
Result<std::vector<std::byte>> encode_and_release(Compiled& compiled, const ArtifactFacts& facts,
                                                  bool packed, const std::string& source,
                                                  std::vector<Diagnostic>& warnings) {
  INGOT_ASSIGN(artifact::ArtifactContents contents, about(source, encode_program(compiled, facts)));
  if (packed) {
    artifact::PackOptions packing;
    packing.frames = true;
    INGOT_RETURN_IF_ERROR(about(source, artifact::pack_inputs(contents, packing)));
    warn_of_packed_frames(contents, source, warnings);
  }
  Result<std::vector<std::byte>> bytes = about(source, artifact::encode(contents));
  for (CompiledVariant& variant : compiled.variants) variant.program.constants.clear();
  return bytes;
}

ProgressStyle progress_style(const CompileCommandOptions& options) {
  return options.no_progress || options.json ? ProgressStyle::None : default_progress_style();
}

Result<Report> compile_source(const CompileCommandOptions& options, const Request& request,
                              Progress& progress, std::vector<Diagnostic>& warnings) {
  const std::string& source = options.source.source;
  progress.report("read");
  INGOT_ASSIGN(ModelSources sources, read_source(options.source, warnings));
  INGOT_RETURN_IF_ERROR(
      check_variant_count(sources.pipeline.input.variants.size(), request.targets.size(), source));
  INGOT_RETURN_IF_ERROR(about(source, add_outside_references(options.golden, sources)));
  const std::unique_ptr<CodeGenerator> generator = make_llvm_code_generator();
  Progress passes(ProgressStyle::None);
  const CompileOptions how = compile_options(options, request, progress, passes);
  const std::unique_ptr<KernelRunner> runner = make_native_runner(how.jobs);
  INGOT_ASSIGN(Compiled compiled,
               about(source, compile(sources.pipeline.input, how, *generator, *runner)));
  warn_of_idle_inputs(compiled.idle_inputs, source, warnings);
  warn_of_unused_schedules(compiled.unused_schedules, warnings);

  // From here on nothing is compiled: the call lists become bytes, which are signed and checked.
  progress.report("encode");
  const ArtifactFacts facts = artifact_facts(options, request, sources);
  const bool packed = sources.pipeline.packed;
  sources = {};
  Report report;
  for (const CompiledVariant& variant : compiled.variants) {
    report.variants.push_back(report_variant(variant));
  }
  INGOT_ASSIGN(std::vector<std::byte> bytes,
               encode_and_release(compiled, facts, packed, source, warnings));
  INGOT_ASSIGN(bytes, about(source, sign_all(std::move(bytes), request)));
  progress.report("check");
  INGOT_ASSIGN(const std::vector<VariantCheck> checks, self_check(bytes, source, request.check));
  warn_of_unchecked_cases(options.golden, checks, warnings);
  progress.report("write");
  OutputSet outputs;
  if (!options.emit.empty()) {
    INGOT_RETURN_IF_ERROR(
        emit_files(compiled, options.emit, options.emit_folder, *generator, outputs));
  }
  INGOT_RETURN_IF_ERROR(outputs.add(options.output, bytes));
  INGOT_RETURN_IF_ERROR(outputs.commit());
  progress.finish();

  report.output = options.output;
  INGOT_ASSIGN(const artifact::Digest id, artifact::artifact_id(bytes));
  report.id = artifact::to_hex(id);
  report.product = facts.product;
  report.signatures = request.keys.size();
  report.file_bytes = bytes.size();
  for (std::size_t i = 0; i < checks.size(); ++i) report.variants[i].check = checks[i];
  report.idle_inputs = compiled.idle_inputs;
  report.times = progress.times();
  report.passes = passes.times();
  return report;
}

Result<ExitCode> run_compile(const CompileCommandOptions& options,
                             std::vector<Diagnostic>& warnings) {
  INGOT_ASSIGN(const Request request, read_request(options));
  Progress progress(progress_style(options));
  Result<Report> report = compile_source(options, request, progress, warnings);
  progress.finish();
  if (!report) return std::unexpected(std::move(report).error());
  INGOT_RETURN_IF_ERROR(
      print_result(options.json ? to_text(report_json(*report)) : report_text(options, *report)));
  return ExitCode::Done;
}

void add_identity_options(CLI::App& command, CompileCommandOptions& options) {
  CLI::Option* sign =
      add_repeatable(command, "--sign", options.sign, "Sign with this private key; repeatable");
  command.add_flag("--unsigned", options.unsigned_artifact, "Leave the artifact unsigned")
      ->excludes(sign);
  command.add_option("--product", options.product,
                     "What the artifact is for; default: the name of the model or pipeline");
  command.add_option("--device-family", options.device_family, "Devices it is for; default: any");
  command.add_option("--build-class", options.build_class, "How far the build has come")
      ->check(CLI::IsMember({"development", "candidate", "release"}))
      ->capture_default_str();
  command
      .add_option("--security-counter", options.security_counter, "Raised when a weakness is fixed")
      ->check(check_counter)
      ->capture_default_str();
}

void add_debug_options(CLI::App& command, CompileCommandOptions& options) {
  command.add_option("--emit", options.emit, "Also write the code of all kernels in this form")
      ->check(CLI::IsMember({"ir", "schedule", "llvm", "asm", "obj"}));
  command.add_option("--emit-dir", options.emit_folder, "Folder for --emit");
  command.add_option("--schedule", options.schedule,
                     "Replay the schedules of this file, as --emit schedule writes them");
  command.add_option("--print-after", options.print_after,
                     "Print the program after this pass, or all, on standard error");
  command.add_flag("--time-passes", options.time_passes, "Also print the time of each pass");
  command.add_flag("--rule-counters", options.rule_counters,
                   "Also print how often each rule was applied");
  command.add_flag("--verify-passes", options.verify_passes,
                   "Validate every kernel after every change of a rule");
  command.add_option("-j", options.jobs, "Threads; never changes the result; default: all")
      ->check(whole_number(1, 1024));
  command.add_flag("--no-progress", options.no_progress, "No progress on standard error");
  command.add_flag("--json", options.json, "Print the result as JSON");
}

void add_later_options(CLI::App& command, CompileCommandOptions& options) {
  command.add_option("--precision", options.precision, "f32; f16 and bf16 are not supported yet")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
  command.add_flag("--retargetable", options.retargetable,
                   "Not supported yet: keep portable kernels");
  command.add_option("--cache-dir", options.cache_folder, "Not supported yet: a cache of kernels");
}

}  // namespace

void add_compile_command(CLI::App& app, Invocation& invocation) {
  CLI::App& command =
      add_command(app, "compile", "Compile a model or a pipeline into one artifact",
                  "ingot compile model.onnx -o model.ingot --target x86-64-v3 --target aarch64 "
                  "--sign team.key");
  auto options = std::make_shared<CompileCommandOptions>();
  add_source_options(command, options->source);
  command.add_option("-o", options->output, "Artifact to write")->required();
  add_repeatable(command, "--target", options->targets,
                 "Target, or host for this machine; repeatable; see ingot targets");
  add_repeatable(command, "--device", options->devices,
                 "Device description as a target; repeatable");
  add_identity_options(command, *options);
  CLI::Option* golden = command.add_option(
      "--golden", options->golden.path,
      "Embed the outputs of another runtime: a folder with CASE/input_*.npy and CASE/output_*.npy "
      "(or .pb), or a cases.json");
  command
      .add_option("--case", options->golden.case_name,
                  "Only this case of --golden; default: all folders, or the case of cases.json "
                  "whose model this is")
      ->needs(golden);
  command.add_option("--check", options->check, "How much of the result is run here")
      ->check(CLI::IsMember({"off", "sampled", "full"}))
      ->capture_default_str();
  command.add_option("-O", options->optimization, "Optimization: -O0 or -O2")
      ->check(CLI::IsMember({0, 2}))
      ->capture_default_str();
  add_debug_options(command, *options);
  add_later_options(command, *options);
  set_action(command, invocation, options, run_compile);
}

}  // namespace ingot::cli
