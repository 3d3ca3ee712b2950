// The subcommands. Each add_* registers one with its options; after parsing, Invocation::run is the
// chosen command with its options filled in.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace ingot::cli {

struct Invocation {
  std::function<Result<ExitCode>(std::vector<Diagnostic>& warnings)> run;
  // Diagnostics as JSON: set by the command's --json.
  bool json = false;
};

void add_bench_command(CLI::App& app, Invocation& invocation);
void add_cameras_command(CLI::App& app, Invocation& invocation);
void add_check_command(CLI::App& app, Invocation& invocation);
void add_check_model_command(CLI::App& app, Invocation& invocation);
void add_compile_command(CLI::App& app, Invocation& invocation);
void add_diff_command(CLI::App& app, Invocation& invocation);
void add_fuse_command(CLI::App& app, Invocation& invocation);
void add_inspect_command(CLI::App& app, Invocation& invocation);
void add_keygen_command(CLI::App& app, Invocation& invocation);
void add_ops_command(CLI::App& app, Invocation& invocation);
void add_pass_command(CLI::App& app, Invocation& invocation);
void add_run_command(CLI::App& app, Invocation& invocation);
void add_sign_command(CLI::App& app, Invocation& invocation);
void add_targets_command(CLI::App& app, Invocation& invocation);
void add_verify_command(CLI::App& app, Invocation& invocation);

// A subcommand whose help ends in an example.
[[nodiscard]] CLI::App& add_command(CLI::App& app, const std::string& name, const std::string& text,
                                    const std::string& example);

// An option that may be given several times, once for each value.
CLI::Option* add_repeatable(CLI::App& command, const std::string& name,
                            std::vector<std::string>& values, const std::string& text);

// Makes `function(options, warnings)` the action of `command`. `options` must have a member `json`
// if the command has --json; it is kept alive by the caller's shared pointer.
template <typename Options, typename Function>
void set_action(CLI::App& command, Invocation& invocation, const std::shared_ptr<Options>& options,
                Function function) {
  command.callback([&invocation, options, function] {
    if constexpr (requires { options->json; }) invocation.json = options->json;
    invocation.run = [options, function](std::vector<Diagnostic>& warnings) {
      return function(*options, warnings);
    };
  });
}

}  // namespace ingot::cli
