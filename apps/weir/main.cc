#include <iostream>
#include <string>

#include "weir/experimental/gateway/version.h"
#include "weir/experimental/io/fd.h"
#include "weir/experimental/io/tls_memory.h"

#include "subcommand.h"

namespace {

constexpr const char* kFooter = R"(Start here:
  weir demo                              three replicas behind a gateway, and what to try
  weir run --to 127.0.0.1:3000           in front of a service of yours, on 127.0.0.1:8080
  weir check --print-defaults > weir.toml   every option with its default, explained
  weir run --config weir.toml
  weir top                               what a running gateway does, and whose fault it is
  weir simulate scenarios/sustained-10x.toml   what would happen, in virtual time

`weir COMMAND --help` says more.)";

/// The error if the first argument is not a command; empty if it is one, or an option.
std::string unknown_command(const CLI::App& program, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  std::string names;
  for (const CLI::App* command : program.get_subcommands(nullptr)) {
    if (command->get_name() == argv[1]) return {};
    if (command->get_group().empty()) continue;  // hidden
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return std::string("weir: there is no command ") + argv[1] + "; there are " + names +
         ". Try weir --help";
}

}  // namespace

int main(int argc, char** argv) {
  weir::io::fill_standard_descriptors();
  // Before OpenSSL allocates anything; the configuration sets the final bound later.
  constexpr std::uint64_t kUntilConfigured = 64 * 1024 * 1024;
  static_cast<void>(weir::io::install_tls_memory(kUntilConfigured));
  CLI::App program("Keeps a service answering when it is asked for more than it can do", "weir");
  program.set_version_flag("--version", "weir " + std::string(weir::gateway::version()));
  program.require_subcommand(0, 1);  // none is reported below: a wrong option comes first
  program.footer(kFooter);
  int status = weir::app::kOk;
  weir::app::add_run(program, status);
  weir::app::add_demo(program, status);
  weir::app::add_check(program, status);
  weir::app::add_budget(program, status);
  weir::app::add_simulate(program, status);
  weir::app::add_replay(program, status);
  weir::app::add_top(program, status);
  weir::app::add_action(program, status);
  weir::app::add_dashboard(program, status);
  weir::app::add_probe(program, status);
  weir::app::add_completion(program, status);
  weir::app::add_manual(program, status);
  if (argc < 2) {
    std::cerr << program.help();
    return weir::app::kUsageError;
  }
  if (const std::string wrong = unknown_command(program, argc, argv); !wrong.empty()) {
    std::cerr << wrong << "\n";
    return weir::app::kUsageError;
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);  // prints help or the version
    const std::string command = argv[1][0] == '-' ? "weir" : std::string("weir ") + argv[1];
    std::cerr << command << ": " << error.what() << "; try " << command << " --help\n";
    return weir::app::kUsageError;
  }
  return status;
}
