#include "cli/commands.h"

namespace ingot::cli {

CLI::App& add_command(CLI::App& app, const std::string& name, const std::string& text,
                      const std::string& example) {
  CLI::App* command = app.add_subcommand(name, text);
  command->footer("Example:\n  " + example);
  return *command;
}

CLI::Option* add_repeatable(CLI::App& command, const std::string& name,
                            std::vector<std::string>& values, const std::string& text) {
  // One value each: what follows it is a positional argument.
  return command.add_option(name, values, text)->expected(1)->take_all()->allow_extra_args(false);
}

}  // namespace ingot::cli
