#include "manual.h"

#include <cstdlib>
#include <iostream>
#include <memory>

#include "command_table.h"
#include "roff.h"
#include "subcommand.h"

namespace weir::app {
namespace {

/// "-c, --config FILE", names in bold and the value in italics.
std::string heading_of(const OptionFacts& option) {
  std::string out;
  for (const std::string& name : option.names) out += (out.empty() ? "" : ", ") + roff::bold(name);
  if (!option.value.empty()) out += (out.empty() ? "" : " ") + roff::italic(option.value);
  return out + "\n";
}

std::string options_of(const CommandFacts& command) {
  std::string out;
  for (const OptionFacts& option : command.options) {
    out += ".TP\n" + heading_of(option) + roff::prose(option.help);
    if (!option.words.empty()) {
      out += ":";
      for (const std::string& word : option.words) out += " " + roff::bold(word);
    }
    if (option.repeats) out += " (may be repeated)";
    out += "\n";
  }
  return out;
}

/// ".B weir run [options] FILE..."
std::string synopsis_of(const CommandFacts& command) {
  std::string out = roff::bold("weir " + command.name) + " [" + roff::italic("options") + "]";
  for (const OptionFacts& option : command.options) {
    if (!option.positional) continue;
    const std::string value =
        roff::italic(option.value) + (option.repeats ? std::string("...") : "");
    out += option.required ? " " + value : " [" + value + "]";
  }
  return out + "\n";
}

std::string manual_of_commands(const CLI::App& program, std::string_view source_date) {
  const CommandFacts whole = facts_of(program);
  const std::vector<CommandFacts> commands = commands_of(program);
  std::string out = roff::title("WEIR", 1, source_date);
  out += ".SH NAME\nweir \\- " + roff::text(whole.help) + "\n.SH SYNOPSIS\n.nf\n";
  for (const CommandFacts& command : commands) out += synopsis_of(command);
  out += ".fi\n.SH DESCRIPTION\n" +
         roff::prose(
             "Weir stands in front of a service, or in it. For each request it decides "
             "whether to start it, to let it wait briefly, or to refuse it at once with a "
             "reason and a retry hint, so that the service stays responsive when it "
             "receives more requests than it can handle.") +
         "\n";
  out += roff::block(whole.footer);
  out += ".SH OPTIONS\n" + options_of(whole) + ".SH COMMANDS\n";
  for (const CommandFacts& command : commands) {
    out += roff::request("SS", "weir " + command.name);
    out += roff::prose(command.help) + ".\n" + options_of(command) + roff::block(command.footer);
  }
  out += ".SH FILES\n.TP\n.I /etc/weir/weir.toml\nConfiguration of the service.\n";
  out += ".SH SEE ALSO\n.BR weir.toml (5)\n";
  return out;
}

}  // namespace

void add_manual(CLI::App& program, int& status) {
  const auto page = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand("manual", "Print a man page");
  command->group("");  // for those who build packages
  command->add_option("PAGE", *page, "The page")
      ->required()
      ->check(CLI::IsMember({"weir.1", "weir.toml.5"}));
  command->callback([page, &program, &status] {
    const char* date = std::getenv("SOURCE_DATE_EPOCH");
    const std::string_view source_date = date == nullptr ? "" : date;
    std::cout << (*page == "weir.1" ? manual_of_commands(program, source_date)
                                    : manual_of_options(source_date));
    status = kOk;
  });
}

}  // namespace weir::app
