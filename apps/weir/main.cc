#include "weir/gateway/version.h"
#include "weir/io/tls_memory.h"

#include "subcommand.h"

namespace {

constexpr const char* kFooter = R"(Start here:
  weir demo                              three replicas behind a gateway, and what to try
  weir run --to 127.0.0.1:3000           in front of a service of yours, on 127.0.0.1:8080
  weir check --print-defaults > weir.toml   every option with its default, explained
  weir run --config weir.toml
  weir simulate scenarios/sustained-10x.toml   what would happen, in virtual time

`weir COMMAND --help` says more.)";

}  // namespace

int main(int argc, char** argv) {
  // Before OpenSSL allocates anything; the configuration says later how much it may have.
  constexpr std::uint64_t kUntilConfigured = 64 * 1024 * 1024;
  static_cast<void>(weir::io::install_tls_memory(kUntilConfigured));
  CLI::App program("Keeps a service answering when it is asked for more than it can do", "weir");
  program.set_version_flag("--version", "weir " + std::string(weir::version()));
  program.require_subcommand(1);
  program.footer(kFooter);
  int status = weir::app::kOk;
  weir::app::add_run(program, status);
  weir::app::add_demo(program, status);
  weir::app::add_check(program, status);
  weir::app::add_budget(program, status);
  weir::app::add_simulate(program, status);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = program.exit(error);  // prints help, version or what is wrong
    return code == 0 ? weir::app::kOk : weir::app::kUsageError;
  }
  return status;
}
