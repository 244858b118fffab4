#include "command_table.h"

#include <string_view>

namespace weir::app {
namespace {

/// CLI11 writes a set of words as part of the type: "TEXT:{bash,fish,zsh}".
std::vector<std::string> words_in(std::string_view type) {
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}');
  std::vector<std::string> words;
  if (open == std::string_view::npos || close == std::string_view::npos) return words;
  std::string_view list = type.substr(open + 1, close - open - 1);
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    words.emplace_back(list.substr(0, comma));
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return words;
}

OptionFacts facts_of(const CLI::Option& option) {
  OptionFacts facts;
  for (const std::string& name : option.get_snames()) facts.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) facts.names.push_back("--" + name);
  const bool takes_value = option.get_items_expected_max() > 0;
  const std::string type = option.get_type_name();
  if (takes_value) facts.value = type.substr(0, type.find_first_of(":{"));
  facts.positional = option.get_positional();
  if (facts.positional) facts.value = option.get_name(true);
  facts.words = words_in(type);
  facts.help = option.get_description();
  facts.required = option.get_required();
  facts.repeats = option.get_items_expected_max() > 1;
  return facts;
}

}  // namespace

CommandFacts facts_of(const CLI::App& command) {
  CommandFacts facts{command.get_name(), command.get_description(), command.get_footer(), {}};
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_group().empty()) facts.options.push_back(facts_of(*option));
  }
  return facts;
}

std::vector<CommandFacts> commands_of(const CLI::App& program) {
  std::vector<CommandFacts> commands;
  for (const CLI::App* command : program.get_subcommands(nullptr)) {
    if (!command->get_group().empty()) commands.push_back(facts_of(*command));
  }
  return commands;
}

}  // namespace weir::app
