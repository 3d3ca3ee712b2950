// ingot: picks a subcommand, runs it, prints what went wrong, returns the exit code.
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/atomic_file.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "cli/options.h"
#include "cli/version.h"

namespace ingot::cli {
namespace {

void add_commands(CLI::App& app, Invocation& invocation) {
  add_compile_command(app, invocation);
  add_check_model_command(app, invocation);
  add_keygen_command(app, invocation);
  add_sign_command(app, invocation);
  add_verify_command(app, invocation);
  add_inspect_command(app, invocation);
  add_run_command(app, invocation);
  add_bench_command(app, invocation);
  add_check_command(app, invocation);
  add_diff_command(app, invocation);
  add_fuse_command(app, invocation);
  add_pass_command(app, invocation);
  add_targets_command(app, invocation);
  add_cameras_command(app, invocation);
  add_ops_command(app, invocation);
}

// Help goes to standard output; everything else that parsing reports is a usage error.
ExitCode report_parse_end(const CLI::App& app, const CLI::ParseError& error, bool json) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    app.exit(error);
    return ExitCode::Done;
  }
  const std::string name = app.get_subcommands().empty()
                               ? std::string("ingot")
                               : "ingot " + app.get_subcommands().front()->get_name();
  Diagnostic diagnostic;
  diagnostic.code = "usage";
  diagnostic.file = name;
  diagnostic.message = error.what();
  diagnostic.hint = fmt::format("see {} --help", name);
  print_diagnostics(std::vector{diagnostic}, json);
  return ExitCode::Usage;
}

std::string dump_text(const std::vector<Diagnostic>& diagnostics,
                      const std::vector<std::string>& arguments) {
  std::string text = fmt::format("ingot {}\ncommand:", kVersion);
  for (const std::string& argument : arguments) text += " '" + argument + "'";
  text += "\n";
  for (const Diagnostic& diagnostic : diagnostics) text += to_line(diagnostic) + "\n";
  return text;
}

// Leaves what a report needs in the folder for temporary files.
void leave_dump(const std::vector<Diagnostic>& diagnostics,
                const std::vector<std::string>& arguments) {
  const char* folder = std::getenv("TMPDIR");
  std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/ingot-dump-XXXXXX";
  const int fd = mkstemp(path.data());
  const std::string text = dump_text(diagnostics, arguments);
  const bool written = fd >= 0 && write(fd, text.data(), text.size()) >= 0;
  if (fd >= 0) close(fd);
  fmt::print(stderr, "ingot: this is a defect in ingot itself; please report it{}{}\n",
             written ? " with the file " : "", written ? path : "");
}

ExitCode finish(const Result<ExitCode>& result, std::vector<Diagnostic> diagnostics, bool json,
                const std::vector<std::string>& arguments) {
  if (!result) {
    diagnostics.insert(diagnostics.end(), result.error().diagnostics.begin(),
                       result.error().diagnostics.end());
  }
  print_diagnostics(diagnostics, json);
  if (result) return *result;
  if (result.error().exit == ExitCode::Internal) leave_dump(diagnostics, arguments);
  return result.error().exit;
}

Result<ExitCode> run_guarded(const Invocation& invocation, std::vector<Diagnostic>& warnings) {
  try {
    return invocation.run(warnings);
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::Io, "out-of-memory", "not enough memory");
  } catch (const std::exception& error) {
    return fail(ExitCode::Internal, "internal-error",
                fmt::format("unexpected exception: {}", error.what()));
  }
}

// A variable that was not set must not switch off the check it was meant for.
Result<void> check_arguments(const std::vector<std::string>& arguments) {
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.empty()) {
      return usage_error(fmt::format("argument {} is empty (after '{}')", i, arguments[i - 1]));
    }
    if (argument.starts_with("--") && argument.ends_with('=')) {
      return usage_error(fmt::format("{} has no value", argument));
    }
  }
  return {};
}

// How many characters must change, come or go to make one word of the other.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

// The first argument must be an option or a command; CLI11 would blame the ones after it.
Result<void> check_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.size() < 2 || arguments[1].starts_with('-')) return {};
  const std::string word = arguments[1].substr(0, 40);  // no command is nearly as long
  std::string all;
  std::string nearest;
  std::size_t least = 3;
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string& name = command->get_name();
    if (name == arguments[1]) return {};
    all += (all.empty() ? "" : " ") + name;
    const std::size_t distance = edit_distance(word, name);
    if (distance < least) {
      least = distance;
      nearest = name;
    }
  }
  return usage_error(fmt::format("unknown command '{}'", word),
                     nearest.empty()
                         ? "commands: " + all
                         : fmt::format("did you mean '{}'? commands: {}", nearest, all));
}

ExitCode run_tool(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  // Before any of them is understood.
  const bool json = std::ranges::find(arguments, "--json") != arguments.end();
  if (const Result<void> usable = check_arguments(arguments); !usable) {
    print_diagnostics(usable.error().diagnostics, json);
    return usable.error().exit;
  }
  CLI::App app("Compiles neural networks ahead of time into signed artifacts, and runs them.",
               "ingot");
  app.set_version_flag("--version", std::string("ingot ") + kVersion);
  app.require_subcommand(1);
  app.footer(
      "Example:\n  ingot compile model.onnx -o model.ingot --sign team.key\n"
      "'ingot COMMAND --help' explains a command.");
  Invocation invocation;
  add_commands(app, invocation);
  if (const Result<void> known = check_command(app, arguments); !known) {
    print_diagnostics(known.error().diagnostics, json);
    return known.error().exit;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_parse_end(app, error, json);
  }
  std::vector<Diagnostic> warnings;
  const Result<ExitCode> result = run_guarded(invocation, warnings);
  return finish(result, std::move(warnings), invocation.json, arguments);
}

}  // namespace
}  // namespace ingot::cli

int main(int argc, char** argv) {
  ingot::cli::clean_up_on_signals();
  std::signal(SIGXFSZ, SIG_IGN);  // writes beyond the limit fail instead
  try {
    return static_cast<int>(ingot::cli::run_tool(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ingot: error: defect in ingot, please report it: %s\n", error.what());
    return static_cast<int>(ingot::ExitCode::Internal);
  }
}
