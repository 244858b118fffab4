#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "command_table.h"
#include "subcommand.h"

namespace weir::app {
namespace {

using Commands = std::vector<CommandFacts>;

/// `text` with `before` in front of each character of `marked`.
std::string escaped(std::string_view text, std::string_view marked, std::string_view before) {
  std::string out;
  for (const char c : text) {
    if (marked.find(c) != std::string_view::npos) out += before;
    out += c;
  }
  return out;
}

std::string joined(const std::vector<std::string>& words, std::string_view separator = " ") {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : std::string(separator)) + word;
  return out;
}

std::string names_of(const Commands& commands) {
  std::vector<std::string> names;
  for (const CommandFacts& command : commands) names.push_back(command.name);
  return joined(names);
}

std::string option_names(const CommandFacts& command) {
  std::string out;
  for (const OptionFacts& option : command.options) {
    if (!option.names.empty()) out += (out.empty() ? "" : " ") + joined(option.names);
  }
  return out;
}

// ---- bash

std::string bash_values(const OptionFacts& option) {
  if (!option.words.empty()) return "_weir_words '" + joined(option.words) + "'";
  return option.is_file() ? "_weir_files" : ":";
}

/// The branches of one command: after an option that takes a value, after "-", and anywhere else.
std::string bash_command(const CommandFacts& command) {
  std::string out = "    " + command.name + ")\n      case $previous in\n";
  std::string anywhere = ":";
  for (const OptionFacts& option : command.options) {
    if (option.positional) anywhere = bash_values(option);
    if (option.value.empty() || option.names.empty()) continue;
    out += "        " + joined(option.names, "|") + ") " + bash_values(option) + "; return ;;\n";
  }
  out += "      esac\n      case $word in\n        -*) _weir_words '" + option_names(command) +
         "' ;;\n        *) " + anywhere + " ;;\n      esac ;;\n";
  return out;
}

std::string bash(const Commands& commands, const CommandFacts& program) {
  std::string out = R"(# bash completion of weir, made by `weir completion bash`.
_weir_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word"); }
_weir_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$word")
}
_weir() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
)";
  out += "    _weir_words '" + names_of(commands) + " " + option_names(program) + "'\n";
  out += "    return\n  fi\n  case ${COMP_WORDS[1]} in\n";
  for (const CommandFacts& command : commands) out += bash_command(command);
  return out + "  esac\n}\ncomplete -F _weir weir\n";
}

// ---- zsh

std::string zsh_quoted(std::string_view text) {
  std::string out;
  for (const char c : escaped(text, "[]:\\", "\\")) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out;
}

std::string zsh_values(const OptionFacts& option) {
  if (!option.words.empty()) return "(" + joined(option.words) + ")";
  return option.is_file() ? "_files" : " ";
}

std::string zsh_option(const OptionFacts& option) {
  const std::string value =
      option.value.empty() ? "" : ":" + zsh_quoted(option.value) + ":" + zsh_values(option);
  if (option.names.empty()) return "'" + std::string(option.repeats ? "*" : "1") + value + "'";
  const std::string tail = "[" + zsh_quoted(option.help) + "]" + value + "'";
  if (option.names.size() == 1) {
    return "'" + std::string(option.repeats ? "*" : "") + option.names[0] + tail;
  }
  return "'(" + joined(option.names) + ")'{" + joined(option.names, ",") + "}'" + tail;
}

std::string zsh(const Commands& commands, const CommandFacts& program) {
  std::string out = R"(#compdef weir
# zsh completion of weir, made by `weir completion zsh`.
_weir() {
  local -a commands
  if (( CURRENT == 2 )); then
    commands=(
)";
  for (const CommandFacts& command : commands) {
    out += "      '" + command.name + ":" + zsh_quoted(command.help) + "'\n";
  }
  out += "    )\n    _describe command commands\n    _values option " + option_names(program) +
         "\n    return\n  fi\n  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n"
         "  case $command in\n";
  for (const CommandFacts& command : commands) {
    out += "    " + command.name + ") _arguments";
    for (const OptionFacts& option : command.options) out += " \\\n      " + zsh_option(option);
    out += " ;;\n";
  }
  return out + "  esac\n}\n_weir \"$@\"\n";
}

// ---- fish

std::string fish_option(const OptionFacts& option, const std::string& condition) {
  std::string out = "complete -c weir " + condition;
  for (const std::string& name : option.names) {
    out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!option.value.empty() && !option.names.empty()) out += " -r";
  if (!option.words.empty()) out += " -a '" + joined(option.words) + "'";
  if (option.is_file()) out += " -F";
  return out + " -d '" + escaped(option.help, "'\\", "\\") + "'\n";
}

std::string fish(const Commands& commands, const CommandFacts& program) {
  std::string out =
      "# fish completion of weir, made by `weir completion fish`.\ncomplete -c weir -f\n";
  for (const OptionFacts& option : program.options) {
    out += fish_option(option, "-n __fish_use_subcommand");
  }
  for (const CommandFacts& command : commands) {
    out += "complete -c weir -n __fish_use_subcommand -a " + command.name + " -d '" +
           escaped(command.help, "'\\", "\\") + "'\n";
    for (const OptionFacts& option : command.options) {
      out += fish_option(option, "-n '__fish_seen_subcommand_from " + command.name + "'");
    }
  }
  return out;
}

}  // namespace

void add_completion(CLI::App& program, int& status) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command =
      program.add_subcommand("completion", "Print the completion of the command line for a shell");
  command->add_option("SHELL", *shell, "The shell that is to complete")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(R"(Examples:
  weir completion bash > /etc/bash_completion.d/weir
  weir completion zsh > "${fpath[1]}/_weir"
  weir completion fish > ~/.config/fish/completions/weir.fish
The Debian package installs all three.)");
  command->callback([shell, &program, &status] {
    const auto print = *shell == "bash" ? bash : *shell == "zsh" ? zsh : fish;
    std::cout << print(commands_of(program), facts_of(program));
    status = kOk;
  });
}

}  // namespace weir::app
