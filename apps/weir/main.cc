#include "subcommand.h"

namespace {

constexpr int kUsageError = 2;

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("Keeps a service answering when it is asked for more than it can do", "weir");
  program.set_version_flag("--version", "weir " WEIR_VERSION);
  program.require_subcommand(1);
  int status = 0;
  weir::app::add_simulate(program, status);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = program.exit(error);  // prints help, version or what is wrong
    return code == 0 ? 0 : kUsageError;
  }
  return status;
}
